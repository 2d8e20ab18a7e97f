/* change.c -- changes operands in their blocks: kofn_update.
 *
 * A worker adds to its block the product of two mixtures, of U and of V
 * (src/data/update_factors.c), which it is sent.
 *
 * U, V and their mixtures are borrowed or live for the call.  An update that
 * cannot be sent to all workers breaks the job, because their blocks would
 * belong to different matrices. */
#include "job.h"

#include "verify/key.h"

#include <assert.h>
#include <math.h>

/* ---- messages to the workers --------------------------------------------- */

typedef struct telling {
    kofn_job *job;
    uint32_t operand;
    kf_update_factors sides;
    bool reported; /* some worker was sent it */
} telling;

static kofn_status tell_worker(telling *t, uint32_t worker, size_t seat)
{
    kofn_job *j = t->job;
    const kofn_plan *plan = j->held[t->operand].plan;
    kf_msg m = {.type = KF_MSG_UPDATE,
                .worker = worker,
                .operand = t->operand,
                .round = j->start.number};

    assert(seat != SIZE_MAX);
    TRY(kf_update_factors_take(
        &t->sides, kf_core_use(j->core, KOFN_USES * t->operand)->code,
        kf_local(plan, seat), &m));
    kf_job_count(j, &(kofn_report){.sent = kf_buffer_bytes(m.in) +
                                           kf_buffer_bytes(m.with)});
    t->reported = true;
    return kf_job_send(j, &m);
}

/* Mixes U and V for the blocks and sends them to all workers.  If only some
 * were sent, the blocks belong to different matrices, and the job is broken. */
static kofn_status tell(kofn_job *j, uint32_t operand,
                        const kofn_change *change, const kofn_matrix *U,
                        const kofn_matrix *V)
{
    telling t = {.job = j, .operand = operand};
    const kofn_plan *plan = j->held[operand].plan;
    kofn_status st = kf_update_factors_new(&t.sides, &j->held[operand].resident,
                                           change, U, V);

    assert(operand < j->operands);
    /* group by group, because seats of a group share work */
    for (size_t g = 0; !st && g < plan->layout.groups; g++) {
        kf_update_factors_choose(&t.sides, g);
        for (uint32_t w = 0; !st && w < kf_core_known(j->core); w++) {
            size_t seat = kf_core_seat(j->core, w);

            if (seat != SIZE_MAX && kf_group(plan, seat) == g)
                st = tell_worker(&t, w, seat);
        }
    }
    if (st && t.reported) /* some have changed and others have not */
        kf_job_break(j, st);
    kf_update_factors_free(&t.sides);
    return st;
}

/* ---- checks -------------------------------------------------------------- */

static kofn_status check_job(const kofn_job *j, size_t operand)
{
    const kofn_plan *plan = j->held[operand].plan;

    TRY(kf_job_check_whole(j));
    TRY(kf_job_check_placed(j));
    if (!kf_code_can_be_read(plan))
        return kf_fail(KOFN_UNSUITED,
                       "blocks of scheme %s in this operation cannot change: "
                       "that needs a dense A, one product of it and no pairs "
                       "of blocks (basis=circle)",
                       plan->scheme->name);
    if (j->opt.errors == KOFN_ERRORS_KEYED)
        return kf_fail(
            KOFN_UNSUITED,
            "operands cannot change with errors = keyed, which tests answers "
            "by the A that was placed; use probabilistic or adversarial");
    if (j->port->kept)
        return kf_fail(
            KOFN_UNSUITED,
            "operands of a job with a number cannot change, because workers "
            "keep its old blocks; open the port without a number "
            "(kofn_away_options.job)");
    for (size_t i = 0; i < j->open.count;
         i++) /* the job's own products are waited for */
        if (j->open.list[i]->number && j->open.list[i]->operand == operand &&
            j->open.list[i]->end.ended == KOFN_AGAIN)
            return kf_fail(KOFN_STATE,
                           "product %u of operand %zu is not over; take or "
                           "cancel it before the operand changes",
                           j->open.list[i]->number, operand);
    return KOFN_OK;
}

/* Bounds the elements after the change.  Fails with KOFN_NONFINITE if mixtures
 * of them would not fit into the range that blocks have.  No element of U' V is
 * larger than `gain`. */
static kofn_status let_grow(kf_held *h, const kofn_change *c, double gain)
{
    kofn_dtype type = h->plan->layout.problem.dtype;
    double was[KOFN_CHANGE_STATES + 1] = {h->resident.most};
    double most[KOFN_CHANGE_STATES + 1] = {0}, by;
    bool finite = true;

    assert(gain >= 0);
    memcpy(was + 1, h->most, sizeof h->most);
    for (size_t s = 0; s <= c->states; s++) {
        most[s] = fabs(c->add[s]) * gain;
        for (size_t t = 0; t <= h->states; t++)
            most[s] += fabs(c->keep[s][t]) * was[t];
        finite &= isfinite(most[s]);
    }
    by = finite ? kf_range_resident(most[0], 1, type) : 0;
    if (by != h->resident.by)
        return kf_fail(KOFN_NONFINITE,
                       "an operand with elements up to %g would then have "
                       "elements up to %g: %s by a power of two",
                       was[0], most[0],
                       by > h->resident.by
                           ? "mixtures may lose digits; place it multiplied"
                           : "mixtures may not fit; place it divided");
    h->resident.most = most[0];
    memcpy(h->most, most + 1, sizeof h->most);
    return KOFN_OK;
}

static kofn_status update_scaled(kofn_job *j, size_t operand,
                                 const kofn_change *change,
                                 const kofn_matrix *U, const kofn_matrix *V)
{
    kf_held *h = &j->held[operand];

    TRY(let_grow(h, change, (double)U->rows * kf_mat_most(U) * kf_mat_most(V)));
    if (j->opt.errors != KOFN_ERRORS_NONE)
        TRY(kf_norms_await(&h->norms, &h->resident, change->states, true));
    if (j->opt.errors != KOFN_ERRORS_NONE)
        TRY(kf_norms_grow(&h->norms, &h->resident, change, U, V));
    if (h->key) {
        TRY(kf_key_change(h->key, &h->resident, change, U, V));
        kf_key_measure(h->key, h->plan, h->norms.norm);
    }
    TRY(tell(j, (uint32_t)operand, change, U, V));
    h->changes++;
    h->states = change->states;
    return KOFN_OK;
}

static kofn_status update(kofn_job *j, size_t operand,
                          const kofn_change *change, const kofn_matrix *U,
                          const kofn_matrix *V)
{
    kf_held *h = &j->held[operand];
    kofn_matrix scaled_U = *U, scaled_V = *V;
    kofn_status st;
    void *owned[2];

    assert(h->placed);
    TRY(kf_data_check_change(&h->plan->layout.problem, U, V));
    TRY(kf_job_await_start(j));
    /* blocks must not change while they are read */
    TRY(kf_job_break(j, kf_scrub_rest(j)));
    st = kf_equilibrate_change(&h->levels, &scaled_U, &scaled_V, owned);
    if (!st)
        st = update_scaled(j, operand, change, &scaled_U, &scaled_V);
    kf_free(owned[0]);
    kf_free(owned[1]);
    return st;
}

/* Updates by a single example of zeros, so that the states alone act. */
static kofn_status update_by_nothing(kofn_job *j, size_t operand,
                                     const kofn_change *change)
{
    const kofn_problem *pb = &j->held[operand].plan->layout.problem;
    void *zeros = kf_zero(kf_max(pb->m, pb->n), kf_dtype_size(pb->dtype));
    const kofn_matrix U = {zeros, 1, pb->m, pb->m, pb->dtype};
    const kofn_matrix V = {zeros, 1, pb->n, pb->n, pb->dtype};
    kofn_status st = zeros ? update(j, operand, change, &U, &V) : KOFN_NOMEM;

    kf_free(zeros);
    return st;
}

kofn_status kofn_update(kofn_job *j, size_t operand, const kofn_change *change,
                        const kofn_matrix *U, const kofn_matrix *V)
{
    kofn_change c = KOFN_CHANGE_INIT;

    TRY(kf_job_check_operand(j, operand));
    TRY(check_job(j, operand));
    if (!change)
        return kf_fail(KOFN_INVAL, "the change is missing; begin with "
                                   "KOFN_CHANGE_INIT");
    TRY(kf_given(&c, sizeof c, change, "KOFN_CHANGE_INIT"));
    TRY(kf_states_check_change(&c));
    if (!U != !V)
        return kf_fail(KOFN_INVAL,
                       "%s is missing; give both U and V, or neither",
                       U ? "V" : "U");
    return U ? update(j, operand, &c, U, V) : update_by_nothing(j, operand, &c);
}
