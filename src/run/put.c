/* put.c -- puts products, begins them, and takes or cancels them.
 *
 * Products begin in the order in which they were put, each as soon as every
 * live worker has a block.  They are with the workers together.  A worker does
 * the oldest first, and the next when it has no more to do for it.  A round is
 * a product that is put and then taken.
 *
 * The job owns products.  Outputs are the caller's, and are borrowed until
 * the product is taken.  A failure of a product is reported once, when it is
 * taken. */
#include "job.h"

#include "base/clock.h"

#include <assert.h>

/* Returns the product with this number of the caller, if it is put and not
 * taken; else NULL. */
static product *find_number(const kofn_job *j, uint32_t number)
{
    for (size_t i = 0; number && i < j->open.count; i++)
        if (j->open.list[i]->number == number)
            return j->open.list[i];
    return NULL;
}

/* ---- starts -------------------------------------------------------------- */

/* Returns the oldest product that has not begun; NULL if there is none. */
static product *next_to_begin(const kofn_job *j)
{
    size_t i = 0;

    if (j->stream.in_round)
        return NULL;
    while (i < j->open.count && j->open.list[i]->start.begun)
        i++;
    return i < j->open.count ? j->open.list[i] : NULL;
}

/* Takes one step towards the start of the product.  All workers expected at the
 * start say hello and get a block.  Then the events that are due before the
 * product are carried out, and workers that joined by them get a block too. */
static kofn_status get_ready(kofn_job *j, product *p, kofn_time atmost)
{
    assert(!p->start.begun);
    if (kf_lease_await(j, &atmost) || !kf_job_all_came(j))
        return kf_job_pass(j, KOFN_NEVER, atmost);
    if (kf_job_is_due(j, p))
        return kf_job_stage(j, p, 0);
    return kf_job_begin(j, p);
}

/* Begins the product that was put last, if nothing delays it. */
static kofn_status begin_now(kofn_job *j, uint32_t *number)
{
    product *p = next_to_begin(j);
    kf_phase before;
    kofn_status st;

    assert(j->open.count > 0);
    if (number)
        *number = j->open.puts;
    if (p != j->open.list[j->open.count - 1] || kf_core_storing(j->core) > 0 ||
        !kf_job_all_came(j) || kf_job_is_due(j, p) || j->evidence.on)
        return KOFN_OK;
    before = kf_phase_turn(j, KF_RECEIVE);
    st = kf_job_break(j, kf_job_begin(j, p));
    kf_phase_turn(j, before);
    return st;
}

kofn_status kofn_put(kofn_job *j, const kofn_matrix *in, kofn_matrix *out,
                     uint32_t *number)
{
    TRY(kf_job_open_product(j, 0, KOFN_USE_OWN, in, out));
    return begin_now(j, number);
}

kofn_status kofn_put_pair(kofn_job *j, const kofn_matrix *X,
                          const kofn_matrix *Y, kofn_matrix *out,
                          uint32_t *number)
{
    TRY(kf_pair_open(j, X, Y, out));
    return begin_now(j, number);
}

/* Returns the use of this operand that is its left product. */
static kofn_use left_of(const kofn_job *j, uint32_t operand)
{
    return j->held[operand].plan->op->left ? KOFN_USE_OWN : KOFN_USE_LEFT;
}

kofn_status kofn_put_at(kofn_job *j, size_t operand, bool left,
                        const kofn_matrix *in, kofn_matrix *out,
                        uint32_t *number)
{
    uint32_t at = (uint32_t)operand;

    TRY(kf_job_check_operand(j, operand));
    if (!left && j->held[at].plan->op->left)
        return kf_fail(KOFN_STATE,
                       "the plan of operand %zu is for left products", operand);
    TRY(kf_job_open_product(j, at, left ? left_of(j, at) : KOFN_USE_OWN, in,
                            out));
    return begin_now(j, number);
}

/* ---- taking -------------------------------------------------------------- */

/* Returns p if it is over; if p is NULL, any product that is over.  Otherwise
 * returns NULL. */
static product *awaited(const kofn_job *j, product *p)
{
    for (size_t i = 0; !p && i < j->open.count; i++)
        if (j->open.list[i]->end.ended != KOFN_AGAIN && j->open.list[i]->number)
            return j->open.list[i];
    return p && p->end.ended != KOFN_AGAIN ? p : NULL;
}

static bool in_flight(const kofn_job *j)
{
    for (size_t i = 0; i < j->open.count; i++)
        if (kf_job_is_running(j->open.list[i]) &&
            !j->open.list[i]->pair.undecoded.how.type)
            return true;
    return false;
}

/* Begins the next product, or else waits for a message.  A stream decodes while
 * there is none, and continues without a next product. */
static kofn_status one_thing(kofn_job *j, product *p, kofn_time atmost)
{
    product *next;
    bool busy;

    TRY(kf_job_check_start(j, &atmost));
    TRY(kf_job_give_up(j, &atmost));
    TRY(kf_job_stage_now(j));
    if (awaited(j, p))
        return KOFN_OK;
    next = next_to_begin(j);
    TRY(kf_scrub_go_on(j, next, &busy));
    if (busy)
        return kf_job_pass(j, KOFN_NEVER, atmost);
    if (next)
        return get_ready(j, next, atmost);
    if (!p || !p->pair.undecoded.how.type)
        p = kf_pair_undecoded(j);
    if (p) {
        kofn_status st = kf_job_pass(j, kf_job_now(j), 0);

        return st == KOFN_AGAIN ? kf_pair_decode_some(j, p) : st;
    }
    if (kf_is_stream(j) && !j->stream.in_round && in_flight(j)) {
        TRY(kf_pair_begin_round(j));
        return kf_job_step(j, &(kofn_event){.type = KOFN_EV_BEGIN});
    }
    return kf_job_pass(j, KOFN_NEVER, atmost);
}

static kofn_status pump_on(kofn_job *j, product **p, kofn_time atmost)
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

static kofn_status pump(kofn_job *j, product **p, kofn_time atmost)
{
    kf_phase before = kf_phase_turn(j, KF_RECEIVE);
    kofn_status st = pump_on(j, p, atmost);

    kf_phase_turn(j, before);
    return st;
}

/* Takes product p; if p is NULL, any. */
static kofn_status take(kofn_job *j, product *p, kofn_time atmost,
                        kofn_report *rep)
{
    kofn_report r;
    kofn_status st;

    while (j->open.broken && p && p->pair.undecoded.how.type)
        TRY(kf_pair_decode_some(j, p));
    if (!awaited(j, p)) /* else it was over before the job failed */
        TRY(kf_job_check_whole(j));
    st = pump(j, &p, atmost);
    r = kf_job_report_of(j, p);
    kf_give(rep, &r, sizeof r);
    if (st)
        return kf_job_break(j, st);
    r.rounds = p->end.ended >= 0;
    kf_job_close(j, p, &r);
    return p->end.ended < 0 ? kf_fail(p->end.ended, "%s", p->end.why)
                            : p->end.ended;
}

static kofn_status find_put(const kofn_job *j, uint32_t number, product **p)
{
    *p = find_number(j, number);
    if (*p)
        return KOFN_OK;
    return kf_fail(KOFN_STATE, "product %u is not open: %s", number,
                   number == 0 || number > j->open.puts
                       ? "no such product was put (kofn_put)"
                       : "it has been taken or cancelled");
}

kofn_status kofn_take(kofn_job *j, uint32_t number, kofn_time atmost,
                      kofn_report *rep)
{
    product *p;

    TRY(kf_begun(rep, "KOFN_REPORT_INIT"));
    if (number == 0 && j->open.count > 0)
        return take(j, NULL, atmost, rep);
    TRY(find_put(j, number, &p));
    return take(j, p, atmost, rep);
}

kofn_status kofn_cancel(kofn_job *j, uint32_t number)
{
    kofn_event ev = {.type = KOFN_EV_CANCEL};
    kofn_report r;
    product *p;

    if (kf_is_stream(j))
        return kf_fail(KOFN_UNSUITED,
                       "the products of a stream share its rounds, so none can "
                       "be cancelled; take it (kofn_take)");
    TRY(find_put(j, number, &p));
    if (kf_job_is_running(p)) {
        TRY(kf_job_check_whole(j));
        ev.product = p->start.core;
        TRY(kf_job_break(j, kf_job_step(j, &ev)));
    }
    r = kf_job_report_of(j, p);
    r.rounds = 0;
    kf_job_close(j, p, &r);
    return KOFN_OK;
}

/* ---- rounds -------------------------------------------------------------- */

kofn_status kofn_round(kofn_job *j, const kofn_matrix *in, kofn_matrix *out,
                       kofn_report *rep)
{
    uint32_t number;

    TRY(kf_begun(rep, "KOFN_REPORT_INIT"));
    TRY(kofn_put(j, in, out, &number));
    return kofn_take(j, number, KOFN_NEVER, rep);
}

/* Makes a round that reads the blocks of the workers.  Its input is a single
 * zero. */
static kofn_status read_round(kofn_job *j, size_t operand, size_t state,
                              kofn_matrix *out, kofn_report *rep)
{
    double zero = 0;
    kofn_matrix in = {&zero, 1, 1, 1, j->plan->layout.problem.dtype};
    uint32_t number;

    TRY(kf_job_open_product(j, (uint32_t)operand, KOFN_USE_READ, &in, out));
    find_number(j, j->open.puts)->measure.sides.state = state;
    TRY(begin_now(j, &number));
    return kofn_take(j, number, KOFN_NEVER, rep);
}

/* Fills M with zeros, for an operand without this state. */
static kofn_status no_state(const kofn_job *j, size_t operand, kofn_matrix *M,
                            kofn_report *rep)
{
    const kofn_report none = KOFN_REPORT_INIT;
    const kofn_problem *pb = &j->held[operand].plan->layout.problem;

    TRY(kf_job_check_whole(j));
    TRY(kf_mat_check_matrix(M, "M"));
    if (M->rows != pb->m || M->cols != pb->n || M->dtype != pb->dtype)
        return kf_fail(KOFN_SHAPE,
                       "M is %zu x %zu; it must be %zu x %zu and of the "
                       "operand's type",
                       M->rows, M->cols, pb->m, pb->n);
    for (size_t i = 0; i < M->rows; i++)
        memset(kf_at(M, i, 0), 0, M->cols * kf_dtype_size(M->dtype));
    kf_give(rep, &none, sizeof none);
    return KOFN_OK;
}

kofn_status kofn_fetch(kofn_job *j, size_t operand, size_t state,
                       kofn_matrix *A, kofn_report *rep)
{
    kofn_status st;

    TRY(kf_begun(rep, "KOFN_REPORT_INIT"));
    TRY(kf_job_check_operand(j, operand));
    if (state > KOFN_CHANGE_STATES)
        return kf_fail(KOFN_INVAL,
                       "state %zu of operand %zu: 0 is the operand, and 1 to "
                       "%d are optimizer states",
                       state, operand, KOFN_CHANGE_STATES);
    if (state > j->held[operand].states)
        return no_state(j, operand, A, rep);
    st = read_round(j, operand, state, A, rep);
    if (st == KOFN_OK && state == 0 && j->held[operand].norms.norm)
        st = kf_guard_renew(&j->held[operand], A);
    return st;
}
