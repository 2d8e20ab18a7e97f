/* put.c -- products: put, with the workers, over, and taken or cancelled.
 *
 * Those that are put begin in that order, each as soon as everybody who is
 * there has a block, and are with the workers together: the oldest first, and
 * the next where workers have nothing more to do for it.  A round is a product
 * that is put and then taken.
 */
#include "job.h"

#include "base/clock.h"
#include "base/report.h"
#include "code/operation.h"

/* ---- what there is ------------------------------------------------------- */

product *kf_job_search(const kofn_job *j, uint32_t number)
{
    for (size_t i = j->opens; i > 0; i--)
        if (j->open[i - 1]->number == number)
            return j->open[i - 1];
    return NULL;
}

/* Numbers ascend, and begin again at 0 when there are no more. */
KF_WRAPS slot *kf_job_search_slot(const product *p, uint32_t task)
{
    uint32_t first = p->first_task;
    size_t lo = 0, hi = kf_min(p->slots, (size_t)(task - first) + 1);

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;

        if (p->slot[mid].task - first < task - first)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < p->slots && p->slot[lo].task == task ? &p->slot[lo] : NULL;
}

static void tables_free(tables *t)
{
    kf_free(t->rows);
    kf_free(t->states);
    kf_free(t->located);
    kf_free(t->weights);
    kf_free(t->ages);
}

static void product_free(product *p)
{
    for (size_t i = 0; i < p->slots; i++)
        kofn_parcel_drop(p->slot[i].result);
    kf_pair_release(p);
    kf_free(p->block);
    kf_messages_free(&p->messages);
    kf_free(p->measure.input);
    kf_free(p->slot);
    tables_free(&p->tables);
    kf_free(p);
}

void kf_job_free_products(kofn_job *j)
{
    for (size_t i = 0; i < j->opens; i++)
        product_free(j->open[i]);
    for (size_t i = 0; i < j->idles; i++)
        product_free(j->idle[i]);
    j->opens = j->idles = 0;
    tables_free(&j->tables);
}

/* ---- putting ------------------------------------------------------------- */

kofn_status kf_job_check_room(const kofn_job *j)
{
    if (j->broken)
        return kf_fail(KOFN_STATE,
                       "the job has failed before (%s); open "
                       "another",
                       kofn_strerror(j->broken));
    if (j->opens < KOFN_OPEN_MOST)
        return KOFN_OK;
    return kf_fail(KOFN_STATE,
                   "%d products are open, as many as may be; take one of "
                   "them (kofn_take)",
                   KOFN_OPEN_MOST);
}

static kofn_status check_whole(const kofn_job *j)
{
    if (!j->broken)
        return KOFN_OK;
    return kf_fail(KOFN_STATE,
                   "the job has failed before (%s); open "
                   "another",
                   kofn_strerror(j->broken));
}

static kofn_status check_state(const kofn_job *j, const kofn_plan *use)
{
    TRY(check_whole(j));
    if (kf_is_stream(j))
        return kf_fail(KOFN_STATE, "products of a stream bring both operands; "
                                   "call kofn_put_pair");
    if (!j->placed)
        return kf_fail(KOFN_STATE, "no matrix was placed; call kofn_place");
    TRY(kf_job_check_room(j));
    if (!use)
        return kf_fail(KOFN_STATE,
                       "the plan does not serve left products; "
                       "call kofn_plan_serve_left before kofn_open");
    return KOFN_OK;
}

static kofn_status check_product(const kofn_plan *use, const kofn_matrix *in,
                                 const kofn_matrix *out, double *most)
{
    const kofn_problem *pb = &use->layout.problem;
    const kf_operation *op = use->op;
    size_t in_rows = kf_size_of(pb, op->in.rows);
    size_t in_cols = kf_size_of(pb, op->in.cols);
    size_t out_rows = kf_size_of(pb, op->out.rows);
    size_t out_cols = kf_size_of(pb, op->out.cols);

    TRY(kf_mat_check_matrix(in, "the product's input"));
    TRY(kf_mat_check_matrix(out, "the product's output"));
    if (in->rows != in_rows || in->cols != in_cols)
        return kf_fail(KOFN_SHAPE,
                       "the product's input is %zu x %zu and A, "
                       "%zu x %zu, takes %zu x %zu",
                       in->rows, in->cols, pb->m, pb->n, in_rows, in_cols);
    if (out->rows != out_rows || out->cols != out_cols)
        return kf_fail(KOFN_SHAPE,
                       "the product's output is %zu x %zu and must "
                       "be %zu x %zu",
                       out->rows, out->cols, out_rows, out_cols);
    if (in->dtype != pb->dtype || out->dtype != pb->dtype)
        return kf_fail(KOFN_SHAPE, "input and output must be of A's type");
    return kf_mat_check_range(in, "the product's input", most);
}

product *kf_job_last_idle(kofn_job *j)
{
    if (j->idles == 0) {
        product *p = kf_zero(1, sizeof *p);

        if (!p)
            return NULL;
        j->idle[j->idles++] = p;
    }
    return j->idle[j->idles - 1];
}

void kf_job_reset(const kofn_job *j, product *p, const kofn_plan *use)
{
    p->number = j->puts;
    p->use = use;
    p->lo = j->lo;
    p->hi = j->hi;
    p->count = j->step ? j->step : p->number;
    p->measure.messages = &p->messages;
    p->measure.known = false;
    p->measure.floor = p->measure.error = 0;
    p->slots = 0;
    p->begun = p->shown = false;
    p->ended = KOFN_AGAIN;
    p->odd = KOFN_OK;
    p->why[0] = 0;
    p->undecoded = (kf_undecoded){.at = 0};
    p->rep = (kofn_report){.rounds = 1, .number = p->number};
}

void kf_job_opened(kofn_job *j, product *p)
{
    j->idles--;
    j->open[j->opens++] = p;
}

/* Open it; it is the newest now. */
static kofn_status open_product(kofn_job *j, const kofn_plan *use,
                                const kofn_matrix *in, kofn_matrix *out)
{
    product *p;
    double most, by;

    TRY(check_state(j, use));
    TRY(check_product(use, in, out, &most));
    by = kf_range_input(use, &j->resident, most);
    if (by != 1) /* it may be much smaller: what is tiny should not vanish */
        by = kf_range_input(use, &j->resident, kf_mat_most(in));
    p = kf_job_last_idle(j);
    if (!p)
        return KOFN_NOMEM;
    TRY(kf_messages_begin(&p->messages, use, in, by));
    p->back = kf_range_back(use, &j->resident, by);
    p->out = *out;
    j->puts++;
    kf_job_reset(j, p, use);
    kf_job_opened(j, p);
    return KOFN_OK;
}

/* ---- beginning ----------------------------------------------------------- */

/* So many answers of the workers at the start that any such set is enough. */
static size_t enough(const kofn_plan *p)
{
    const kofn_layout *L = &p->layout;
    size_t seats = kf_ceil_div(L->threshold, L->submessages);

    return p->workers - (p->workers / L->groups - seats);
}

/* Who is given a block is waited for.  But where the others are enough, nobody
 * is for longer than the lease after any of them had its own: a joiner that
 * never stores would hold every round. */
static bool wait_for_blocks(kofn_job *j, kofn_time *atmost)
{
    kofn_time now = kf_clock(), most = kf_job_lease(j), left;
    size_t storing = kofn_core_storing(j->core);

    if (j->storing != storing) {
        j->storing = storing;
        j->storing_since = now;
    }
    if (storing == 0 || most == 0 || kofn_core_live(j->core) < enough(j->plan))
        return storing > 0;
    left = j->storing_since + most - now;
    *atmost = *atmost < left ? *atmost : left;
    return left > 0;
}

/* The oldest that has not begun, or NULL. */
static product *next_to_begin(const kofn_job *j)
{
    size_t i = j->opens;

    if (j->in_round)
        return NULL;
    while (i > 0 && !j->open[i - 1]->begun)
        i--;
    return i < j->opens ? j->open[i] : NULL;
}

static kofn_status begin(kofn_job *j, product *p)
{
    kofn_event ev = {.type = KOFN_EV_BEGIN,
                     .product = p->number,
                     .use = kf_job_use_number(j, p)};

    j->rep.waiting = 0;
    p->began = kf_job_now(j);
    p->begun = true;
    if (kf_is_stream(j))
        return kf_pair_begin(j, p);
    if (kofn_strips(j) && (!ev.use || p->use->layout.adjoint)) {
        ev.lo = p->lo;
        ev.hi = p->hi;
    }
    return kf_job_step(j, &ev);
}

/* One step towards the beginning: everybody who is to come at the start says
 * hello and gets a block, what is to happen before the product happens, and
 * those who come by that are served as well. */
static kofn_status get_ready(kofn_job *j, product *p, kofn_time atmost)
{
    if (wait_for_blocks(j, &atmost) || j->greeted < j->port->workers)
        return kf_job_pass(j, atmost);
    if (kf_job_is_due(j, p))
        return kf_job_stage(j, p, 0);
    return begin(j, p);
}

kofn_status kf_job_begin_now(kofn_job *j)
{
    product *p = next_to_begin(j);
    kofn_status st;

    if (p != j->open[j->opens - 1] || kofn_core_storing(j->core) > 0 ||
        j->greeted < j->port->workers || kf_job_is_due(j, p))
        return KOFN_OK;
    st = begin(j, p);
    j->broken = st;
    return st;
}

kofn_status kofn_put(kofn_job *j, const kofn_matrix *in, kofn_matrix *out,
                     uint32_t *number)
{
    TRY(open_product(j, j->plan, in, out));
    *number = j->puts;
    return kf_job_begin_now(j);
}

kofn_status kofn_put_left(kofn_job *j, const kofn_matrix *in, kofn_matrix *out,
                          uint32_t *number)
{
    TRY(open_product(j, j->plan->op->left ? j->plan : j->plan->left, in, out));
    *number = j->puts;
    return kf_job_begin_now(j);
}

/* ---- taking -------------------------------------------------------------- */

void kf_job_sum(const kofn_job *j, kofn_report *sum)
{
    *sum = j->total;
    kf_report_add(sum, &j->rep);
    for (size_t i = 0; i < j->opens; i++)
        kf_report_add(sum, &j->open[i]->rep);
    sum->rounds = j->total.rounds; /* that are over */
}

/* Until there are enough for the first round: no longer than is allowed, and
 * what is left of it in *atmost. */
static kofn_status check_start(kofn_job *j, kofn_time *atmost)
{
    kofn_time now = kf_clock(), left;
    kofn_progress p;

    if (j->started || j->opt.start_within <= 0)
        return KOFN_OK;
    kofn_job_progress(j, &p);
    j->started = p.round > 0 && p.needed == 0;
    j->asked = j->asked ? j->asked : now;
    left = j->opt.start_within - (now - j->asked);
    *atmost = left < *atmost ? left : *atmost;
    if (j->started || left > 0)
        return KOFN_OK;
    if (p.round > 0)
        return kf_fail(KOFN_LATE,
                       "%zu worker%s live after %.3g s and %zu are needed; "
                       "start more workers",
                       p.live, p.live == 1 ? " is" : "s are",
                       (double)(now - j->asked) * 1e-9, p.needed);
    return kf_fail(KOFN_LATE,
                   "%zu of %zu workers came within %.3g s; start "
                   "more workers",
                   p.here, p.expected, (double)(now - j->asked) * 1e-9);
}

/* What is waited for: that product, or NULL for any. */
static product *awaited(const kofn_job *j, product *p)
{
    for (size_t i = 0; !p && i < j->opens; i++)
        if (j->open[i]->ended != KOFN_AGAIN)
            return j->open[i];
    return p && p->ended != KOFN_AGAIN ? p : NULL;
}

static bool in_flight(const kofn_job *j)
{
    for (size_t i = 0; i < j->opens; i++)
        if (kf_job_is_running(j->open[i]) && !j->open[i]->undecoded.how.type)
            return true;
    return false;
}

/* The next begins, or else a message is waited for; a stream decodes while
 * there is none, and goes on without a next one. */
static kofn_status one_thing(kofn_job *j, product *p, kofn_time atmost)
{
    product *next;

    TRY(check_start(j, &atmost));
    TRY(kf_lease_look(j, &atmost));
    TRY(kf_job_stage_now(j));
    if (awaited(j, p))
        return KOFN_OK;
    next = next_to_begin(j);
    if (next)
        return get_ready(j, next, atmost);
    if (kf_pair_has_undecoded(j)) {
        kofn_status st = kf_job_poll(j);

        return st == KOFN_AGAIN ? kf_pair_decode_some(j, p) : st;
    }
    if (kf_is_stream(j) && !j->in_round && in_flight(j))
        return kf_pair_go_on(j);
    return kf_job_pass(j, atmost);
}

static kofn_status pump(kofn_job *j, product **p, kofn_time atmost)
{
    kofn_time start = kf_clock();
    product *over;

    while (!(over = awaited(j, *p))) {
        kofn_status st;

        if (kf_clock() - start >= atmost)
            return KOFN_AGAIN;
        st = one_thing(j, *p, atmost);
        if (st < 0)
            return st;
    }
    *p = over;
    return KOFN_OK;
}

/* It is over, and its memory is for others.  What its report points to is kept
 * until the next one is taken. */
static void close_product(kofn_job *j, product *p)
{
    tables mine = j->tables;
    size_t i = 0;

    while (j->open[i] != p)
        i++;
    memmove(&j->open[i], &j->open[i + 1], (--j->opens - i) * sizeof *j->open);
    j->idle[j->idles++] = p;
    j->tables = p->tables;
    p->tables = mine;
    j->rep = (kofn_report){0};
}

/* Of NULL: any. */
static kofn_status take(kofn_job *j, product *p, kofn_time atmost,
                        kofn_report *rep)
{
    kofn_report r;
    kofn_status st;

    while (j->broken && p && p->undecoded.how.type)
        TRY(kf_pair_decode_some(j, p));
    if (!awaited(j, p)) /* else it was over before the job failed */
        TRY(check_whole(j));
    st = pump(j, &p, atmost);
    r = j->rep;
    if (p)
        kf_report_add(&r, &p->rep);
    r.number = p ? p->number : 0;
    if (rep)
        *rep = r;
    if (st < 0)
        j->broken = st;
    if (st)
        return st;
    r.rounds = p->ended >= 0;
    kf_report_add(&j->total, &r);
    close_product(j, p);
    return p->ended < 0 ? kf_fail(p->ended, "%s", p->why) : p->ended;
}

static kofn_status find_put(const kofn_job *j, uint32_t number, product **p)
{
    *p = kf_job_find(j, number);
    if (*p && number != j->round)
        return KOFN_OK;
    return kf_fail(KOFN_STATE, "product %u is not open: %s", number,
                   number == 0 || number > j->puts
                       ? "no such product was put (kofn_put)"
                   : *p ? "kofn_begin began it; call kofn_pump"
                        : "it has been taken or cancelled");
}

kofn_status kofn_take(kofn_job *j, uint32_t number, kofn_time atmost,
                      kofn_report *rep)
{
    product *p;

    if (number == 0 && j->opens > 0 && !j->round)
        return take(j, NULL, atmost, rep);
    TRY(find_put(j, number, &p));
    return take(j, p, atmost, rep);
}

kofn_status kofn_cancel(kofn_job *j, uint32_t number)
{
    kofn_event ev = {.type = KOFN_EV_CANCEL, .product = number};
    kofn_report r;
    product *p;

    if (kf_is_stream(j))
        return kf_fail(KOFN_UNSUITED,
                       "the products of a stream share its rounds, so none can "
                       "be cancelled; take it (kofn_take)");
    TRY(find_put(j, number, &p));
    if (kf_job_is_running(p)) {
        TRY(check_whole(j));
        j->broken = kf_job_step(j, &ev);
        TRY(j->broken);
    }
    r = j->rep;
    kf_report_add(&r, &p->rep);
    r.rounds = 0;
    kf_report_add(&j->total, &r);
    close_product(j, p);
    return KOFN_OK;
}

/* ---- rounds -------------------------------------------------------------- */

static kofn_status begin_round(kofn_job *j, const kofn_plan *use,
                               const kofn_matrix *in, kofn_matrix *out)
{
    if (j->round)
        return kf_fail(KOFN_STATE, "a round is under way; call kofn_pump");
    TRY(open_product(j, use, in, out));
    j->round = j->puts;
    return kf_job_begin_now(j);
}

kofn_status kofn_begin(kofn_job *j, const kofn_matrix *in, kofn_matrix *out)
{
    return begin_round(j, j->plan, in, out);
}

kofn_status kofn_begin_left(kofn_job *j, const kofn_matrix *in,
                            kofn_matrix *out)
{
    return begin_round(j, j->plan->op->left ? j->plan : j->plan->left, in, out);
}

kofn_status kofn_pump(kofn_job *j, kofn_time atmost, kofn_report *rep)
{
    product *p = kf_job_find(j, j->round);
    kofn_status st;

    if (!p)
        return kf_fail(KOFN_STATE, "no round is under way; call kofn_begin");
    st = take(j, p, atmost, rep);
    if (st != KOFN_AGAIN)
        j->round = 0;
    return st;
}

kofn_status kofn_round(kofn_job *j, const kofn_matrix *in, kofn_matrix *out,
                       kofn_report *rep)
{
    TRY(kofn_begin(j, in, out));
    return kofn_pump(j, KOFN_NEVER, rep);
}

kofn_status kofn_left(kofn_job *j, const kofn_matrix *in, kofn_matrix *out,
                      kofn_report *rep)
{
    TRY(kofn_begin_left(j, in, out));
    return kofn_pump(j, KOFN_NEVER, rep);
}
