/* put.c -- products: put, with the workers, over, and taken or cancelled.
 *
 * Those that are put begin in that order, each as soon as everybody who is
 * there has a block, and are with the workers together: the oldest first, and
 * the next where workers have nothing more to do for it.  A round is a product
 * that is put and then taken.
 *
 * Products are the job's; outputs are the caller's and borrowed until the
 * product is taken.  A product that failed is told once, when it is taken.
 */
#include "job.h"

#include "base/clock.h"
#include "base/report.h"
#include "code/operation.h"

#include <assert.h>

/* ---- what there is ------------------------------------------------------- */

product *kf_job_search(const kofn_job *j, uint32_t number)
{
    for (size_t i = j->opens; i > 0; i--)
        if (j->open[i - 1]->core == number)
            return j->open[i - 1];
    return NULL;
}

/* The product that is put and not taken, by the number that the caller has, or
 * NULL. */
static product *find_number(const kofn_job *j, uint32_t number)
{
    for (size_t i = 0; number && i < j->opens; i++)
        if (j->open[i]->number == number)
            return j->open[i];
    return NULL;
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
    for (size_t i = 0; p->tasks && i < p->tasks->count; i++)
        kf_buffer_drop(p->tasks->task[i].result);
    kf_pair_release(p);
    kf_free(p->block);
    kf_levels_free(&p->raised);
    kf_messages_free(&p->messages);
    kf_free(p->measure.input);
    kf_free(p->fed);
    kf_free(p->failure);
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
    kf_free(j->failure);
    j->failure = NULL;
}

/* ---- beginning ----------------------------------------------------------- */

/* The number of answers of the workers at the start of which any such set is
 * enough, where they are compared with one more. */
static size_t enough(const kofn_plan *p, bool compared)
{
    const kofn_layout *L = &p->layout;
    size_t each = p->workers / L->groups;
    size_t seats = kf_ceil_div(L->threshold, L->submessages) + compared;

    return p->workers - (each - kf_min(seats, each));
}

bool kf_job_has_enough(const kofn_job *j)
{
    bool all = true, compared = j->opt.errors != KOFN_ERRORS_NONE;
    size_t live = kf_core_live(j->core);

    for (size_t o = 0; o < j->operands; o++) {
        const kofn_plan *p = j->held[o].plan;

        all &= live >= enough(p, compared);
        all &= !p->left || live >= enough(p->left, compared);
    }
    return all;
}

/* True while a worker that is given a block made here is waited for.  But where
 * the others are enough, nobody is waited for longer than the lease after any
 * of them had its own: a joiner that never stores would hold every round. */
static bool wait_for_blocks(kofn_job *j, kofn_time *atmost)
{
    kofn_time now = kf_clock(), most = j->opt.lease, left;
    size_t storing = kf_core_storing(j->core);
    bool live = kf_job_has_enough(j);

    storing -= live ? kf_min(storing, j->heal.count) : 0;
    if (j->storing != storing) {
        j->storing = storing;
        j->storing_since = now;
    }
    if (storing == 0 || most == 0 || !live)
        return storing > 0;
    left = j->storing_since + most - now;
    *atmost = *atmost < left ? *atmost : left;
    return left > 0;
}

bool kf_job_starves(const kofn_job *j, const product *p)
{
    kf_core_view v;

    kf_core_look_at(j->core, p->core, &v);
    return v.needed > 0;
}

/* The oldest that has not begun, or NULL. */
static product *next_to_begin(const kofn_job *j)
{
    size_t i = 0;

    if (j->in_round)
        return NULL;
    while (i < j->opens && j->open[i]->begun)
        i++;
    return i < j->opens ? j->open[i] : NULL;
}

/* Has the product coded where a worker was located, since the answer of such a
 * worker alone is not believed. */
static void distrust(const kofn_job *j, product *p)
{
    if (p->as == KOFN_USE_PARTS && kf_core_suspects(j->core) > 0)
        kf_job_code_it(j, p);
}

/* Everybody answers what is read, and what they are believed for afterwards. */
static kofn_status begin(kofn_job *j, product *p)
{
    kofn_event ev = {
        .type = KOFN_EV_BEGIN, .all = p->window > 0, .late_too = p->audited};

    distrust(j, p);
    ev.use = kf_job_use_number(p);

    /* numbers of the core ascend as products begin */
    p->core = j->begun = j->begun < p->number ? p->number : j->begun + 1;
    ev.product = p->core;
    j->rep.waiting = 0;
    p->began = p->again ? p->began : kf_job_now(j);
    p->begun = true;
    TRY(kf_fates_open(&j->fates, p->core, &p->tasks));
    p->level = 0;
    if (kf_is_stream(j))
        return kf_pair_begin(j, p);
    if (p->window ||
        (kofn_strips(j) && (p->as == KOFN_USE_OWN || p->use->layout.adjoint))) {
        ev.lo = p->lo;
        ev.hi = p->hi;
    }
    return kf_job_step(j, &ev);
}

/* Takes one step towards the beginning: every worker that is to come at the
 * start says hello and gets a block, what is to happen before the product
 * happens, and workers that come by that are served as well. */
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

    if (p != j->open[j->opens - 1] || kf_core_storing(j->core) > 0 ||
        j->greeted < j->port->workers || kf_job_is_due(j, p) || j->scrub.on)
        return KOFN_OK;
    st = begin(j, p);
    j->broken = st;
    return st;
}

kofn_status kofn_put(kofn_job *j, const kofn_matrix *in, kofn_matrix *out,
                     uint32_t *number)
{
    TRY(kf_job_open_product(j, 0, KOFN_USE_OWN, in, out));
    *number = j->puts;
    return kf_job_begin_now(j);
}

/* The use of this operand that a left product is. */
static kofn_use left_of(const kofn_job *j, uint32_t operand)
{
    return j->held[operand].plan->op->left ? KOFN_USE_OWN : KOFN_USE_LEFT;
}

kofn_status kofn_put_left(kofn_job *j, const kofn_matrix *in, kofn_matrix *out,
                          uint32_t *number)
{
    TRY(kf_job_open_product(j, 0, left_of(j, 0), in, out));
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
    kofn_progress p = KOFN_PROGRESS_INIT;

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
                   "%zu of %zu workers came within %.3g s; start more workers",
                   p.here, p.expected, (double)(now - j->asked) * 1e-9);
}

/* The product that is over among those waited for: that product, or any if it
 * is NULL. */
static product *awaited(const kofn_job *j, product *p)
{
    for (size_t i = 0; !p && i < j->opens; i++)
        if (j->open[i]->ended != KOFN_AGAIN && j->open[i]->number)
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
    bool busy;

    TRY(check_start(j, &atmost));
    TRY(kf_lease_look(j, &atmost));
    TRY(kf_job_stage_now(j));
    if (awaited(j, p))
        return KOFN_OK;
    next = next_to_begin(j);
    TRY(kf_heal_go_on(j, next, &busy));
    if (busy)
        return kf_job_pass(j, atmost);
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

/* Closes a product that is over; its memory is for others.  The tables that its
 * report points to are kept until the next product is taken. */
static void close_product(kofn_job *j, product *p)
{
    tables mine = j->tables;
    size_t i = 0;

    while (j->open[i] != p)
        i++;
    assert(i < j->opens);
    memmove(&j->open[i], &j->open[i + 1], (--j->opens - i) * sizeof *j->open);
    j->idle[j->idles++] = p;
    j->tables = p->tables;
    p->tables = mine;
    kf_free(j->failure);
    j->failure = p->failure;
    p->failure = NULL;
    if (p->number)
        j->moved = p->rep.sent + p->rep.received;
    j->rep = (kofn_report)KOFN_REPORT_INIT;
}

/* Of NULL: any. */
static kofn_status take(kofn_job *j, product *p, kofn_time atmost,
                        kofn_report *rep)
{
    kofn_report r;
    kofn_status st;

    TRY(kf_begun(rep, "KOFN_REPORT_INIT"));
    while (j->broken && p && p->undecoded.how.type)
        TRY(kf_pair_decode_some(j, p));
    if (!awaited(j, p)) /* else it was over before the job failed */
        TRY(kf_job_check_whole(j));
    st = pump(j, &p, atmost);
    r = j->rep;
    if (p)
        kf_report_add(&r, &p->rep);
    r.number = p ? p->number : 0;
    kf_give(rep, &r, sizeof r);
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
    *p = find_number(j, number);
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
    kofn_event ev = {.type = KOFN_EV_CANCEL};
    kofn_report r = KOFN_REPORT_INIT;
    product *p;

    if (kf_is_stream(j))
        return kf_fail(KOFN_UNSUITED,
                       "the products of a stream share its rounds, so none can "
                       "be cancelled; take it (kofn_take)");
    TRY(find_put(j, number, &p));
    if (kf_job_is_running(p)) {
        TRY(kf_job_check_whole(j));
        ev.product = p->core;
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

static kofn_status begin_round(kofn_job *j, uint32_t operand, kofn_use as,
                               const kofn_matrix *in, kofn_matrix *out)
{
    if (j->round)
        return kf_fail(KOFN_STATE, "a round is under way; call kofn_pump");
    TRY(kf_job_open_product(j, operand, as, in, out));
    j->round = j->puts;
    return kf_job_begin_now(j);
}

kofn_status kofn_begin(kofn_job *j, const kofn_matrix *in, kofn_matrix *out)
{
    return begin_round(j, 0, KOFN_USE_OWN, in, out);
}

kofn_status kf_job_check_operand(const kofn_job *j, size_t operand)
{
    if (operand < j->operands)
        return KOFN_OK;
    return kf_fail(KOFN_INVAL, "operand %zu: the job has %zu, counted from 0",
                   operand, j->operands);
}

kofn_status kofn_begin_at(kofn_job *j, size_t operand, bool left,
                          const kofn_matrix *in, kofn_matrix *out)
{
    TRY(kf_job_check_operand(j, operand));
    if (!left && j->held[operand].plan->op->left)
        return kf_fail(KOFN_STATE,
                       "the plan of operand %zu is for left products", operand);
    return begin_round(j, (uint32_t)operand,
                       left ? left_of(j, (uint32_t)operand) : KOFN_USE_OWN, in,
                       out);
}

kofn_status kofn_pump(kofn_job *j, kofn_time atmost, kofn_report *rep)
{
    product *p = find_number(j, j->round);
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
    TRY(kf_begun(rep, "KOFN_REPORT_INIT"));
    TRY(kofn_begin(j, in, out));
    return kofn_pump(j, KOFN_NEVER, rep);
}

kofn_status kofn_left(kofn_job *j, const kofn_matrix *in, kofn_matrix *out,
                      kofn_report *rep)
{
    TRY(kf_begun(rep, "KOFN_REPORT_INIT"));
    TRY(kofn_begin_at(j, 0, true, in, out));
    return kofn_pump(j, KOFN_NEVER, rep);
}

/* Nothing is sent with the work but that. */
static kofn_status begin_to_read(kofn_job *j, size_t operand, bool velocity,
                                 kofn_matrix *out)
{
    double zero = 0;
    kofn_matrix in = {&zero, 1, 1, 1, j->plan->layout.problem.dtype};

    if (j->round)
        return kf_fail(KOFN_STATE, "a round is under way; call kofn_pump");
    TRY(kf_job_open_product(j, (uint32_t)operand, KOFN_USE_READ, &in, out));
    j->round = j->puts;
    find_number(j, j->round)->velocity = velocity;
    find_number(j, j->round)->measure.velocity = velocity;
    return kf_job_begin_now(j);
}

kofn_status kofn_fetch(kofn_job *j, size_t operand, kofn_matrix *A,
                       kofn_report *rep)
{
    kofn_status st;

    TRY(kf_begun(rep, "KOFN_REPORT_INIT"));
    TRY(kf_job_check_operand(j, operand));
    TRY(begin_to_read(j, operand, false, A));
    st = kofn_pump(j, KOFN_NEVER, rep);
    if (st == KOFN_OK && j->held[operand].norms)
        st = kf_guard_renew(&j->held[operand], A);
    return st;
}

kofn_status kofn_fetch_velocity(kofn_job *j, size_t operand, kofn_matrix *M,
                                kofn_report *rep)
{
    const kofn_report none = KOFN_REPORT_INIT;
    const kofn_problem *pb;

    TRY(kf_begun(rep, "KOFN_REPORT_INIT"));
    TRY(kf_job_check_operand(j, operand));
    if (j->held[operand].moves) {
        TRY(begin_to_read(j, operand, true, M));
        return kofn_pump(j, KOFN_NEVER, rep);
    }
    TRY(kf_job_check_whole(j));
    TRY(kf_mat_check_matrix(M, "M"));
    pb = &j->held[operand].plan->layout.problem;
    if (M->rows != pb->m || M->cols != pb->n || M->dtype != pb->dtype)
        return kf_fail(KOFN_SHAPE,
                       "M is %zu x %zu, and the operand's velocity %zu x %zu "
                       "and of its type",
                       M->rows, M->cols, pb->m, pb->n);
    for (size_t i = 0; i < M->rows; i++)
        memset(kf_at(M, i, 0), 0, M->cols * kf_dtype_size(M->dtype));
    kf_give(rep, &none, sizeof none);
    return KOFN_OK;
}

/* Everybody who is to come before the first round has come. */
kofn_status kf_job_await_start(kofn_job *j)
{
    while (j->greeted < j->port->workers) {
        kofn_time atmost = KOFN_NEVER;
        kofn_status st;

        TRY(check_start(j, &atmost));
        TRY(kf_lease_look(j, &atmost));
        st = kf_job_pass(j, atmost);
        if (st < 0)
            return st;
    }
    return KOFN_OK;
}

/* ---- reading for the job itself ------------------------------------------ */

/* Opens the product before all that have not begun. */
static void open_before(kofn_job *j, product *p)
{
    size_t i = j->opens++;

    assert(j->idles > 0);
    j->idles--;
    for (; i > 0 && !j->open[i - 1]->begun; i--)
        j->open[i] = j->open[i - 1];
    j->open[i] = p;
}

kofn_status kf_job_read(kofn_job *j, kf_window *w, const kofn_plan *shape)
{
    uint32_t operand = (uint32_t)w->operand;
    const kofn_plan *use = kf_job_plan(j, operand, KOFN_USE_READ);
    double zero = 0;
    kofn_matrix in = {&zero, 1, 1, 1, use->layout.problem.dtype};
    product *p = kf_job_last_idle(j);

    if (!p)
        return KOFN_NOMEM;
    TRY(kf_messages_begin(&p->messages, use, &in, 1));
    kf_job_reset(j, p, use);
    p->number = p->count = 0;
    p->rep = (kofn_report)KOFN_REPORT_INIT;
    p->operand = operand;
    p->as = KOFN_USE_READ;
    p->velocity = p->measure.velocity = w->velocity;
    p->scrubs = p->measure.drifts = w->scrubs;
    p->shape = *shape;
    p->window = shape->span;
    p->lo = w->at;
    p->hi = w->to;
    p->back =
        (kf_back){.by = kf_range_back(use, &j->held[operand].resident, 1)};
    p->room = true;
    p->out = w->into;
    open_before(j, p);
    w->reading = p;
    return begin(j, p);
}

/* Closes a read; its cost is told with the product that is taken next. */
void kf_job_close_read(kofn_job *j, kf_window *w)
{
    product *p = w->reading;
    kofn_report r = j->rep;
    tables last = j->tables;

    r.encoding += p->rep.encoding;
    r.waiting += p->rep.waiting;
    r.decoding += p->rep.decoding;
    r.dropped += p->rep.dropped;
    r.sent += p->rep.sent;
    r.received += p->rep.received;
    r.corrupt += p->rep.corrupt;
    r.drift = kf_larger(r.drift, p->rep.drift);
    w->reading = NULL;
    close_product(j, p);
    p->tables = j->tables; /* the caller still looks at those of before */
    j->tables = last;
    j->rep = r;
}
