/* place.c -- gives a job what its workers store: matrices, or the functions of
 * a sum.
 *
 * The job borrows all of it until kofn_close.  Nothing is sent here, but by
 * kofn_place_from (feed.c). */
#include "job.h"

#include <assert.h>

/* ---- matrices ------------------------------------------------------------ */

kofn_status kf_job_check_place(const kofn_job *j, size_t operand, size_t rows,
                               size_t cols, bool sparse)
{
    const kofn_problem *pb;

    TRY(kf_job_check_operand(j, operand));
    pb = &j->held[operand].plan->layout.problem;
    if (kf_is_stream(j))
        return kf_fail(KOFN_STATE, "nothing is resident in a stream: its "
                                   "products bring both operands; call "
                                   "kofn_put_pair");
    if (j->held[operand].placed)
        return kf_fail(KOFN_STATE,
                       "the job holds a matrix%s already; open another job for "
                       "another matrix",
                       j->operands > 1 ? " for this operand" : "");
    if (j->plan->op->factors == 0)
        return kf_fail(KOFN_SHAPE, "the plan is for a sum of functions; call "
                                   "kofn_place_parts or kofn_place_rows");
    if (sparse != pb->sparse)
        return kf_fail(KOFN_SHAPE, "the plan is for a %s matrix",
                       pb->sparse ? "sparse" : "dense");
    if (rows != pb->m || cols != pb->n)
        return kf_fail(KOFN_SHAPE,
                       "A is %zu x %zu and the plan is for %zu x %zu", rows,
                       cols, pb->m, pb->n);
    return KOFN_OK;
}

kofn_status kf_job_placed(kofn_job *j, kf_held *h)
{
    assert(!h->placed);
    if (j->port->away)
        TRY(kf_resident_away(&h->resident));
    if (j->opt.errors != KOFN_ERRORS_NONE)
        TRY(kf_guard_make_key(&j->guard, h));
    h->placed = true;
    return KOFN_OK;
}

static kofn_status place_dense(kofn_job *j, size_t operand,
                               const kofn_matrix *A)
{
    kf_held *h;

    TRY(kf_mat_check_matrix(A, "A"));
    TRY(kf_job_check_place(j, operand, A->rows, A->cols, false));
    h = &j->held[operand];
    if (A->dtype != h->plan->layout.problem.dtype)
        return kf_fail(KOFN_SHAPE, "A is not of the type of the plan");
    TRY(kf_job_hold(j, h, A, "A"));
    return kf_job_placed(j, h);
}

static kofn_status place_sparse(kofn_job *j, size_t operand,
                                const kofn_sparse *A)
{
    kf_held *h;
    kofn_sparse scaled;
    unsigned kind;

    TRY(kf_mat_check_sparse(A, "A"));
    TRY(kf_job_check_place(j, operand, A->rows, A->cols, true));
    h = &j->held[operand];
    if (h->plan->layout.problem.dtype != KOFN_F64)
        return kf_fail(KOFN_SHAPE, "sparse matrices are float64");
    scaled = *A;
    kind = kf_equilibrate_kind(h->plan, j->opt.errors);
    TRY(kf_equilibrate_sparse(kind, &scaled, &h->levels, &h->scaled));
    TRY(kf_resident_sparse(&h->resident, h->plan, &scaled));
    h->resident.scaled = h->scaled ? kind : 0;
    return kf_job_placed(j, h);
}

kofn_status kofn_place_at(kofn_job *j, size_t operand, kofn_operand A)
{
    kf_phase before = kf_phase_turn(j, KF_ENCODE);
    kofn_status st = A.sparse ? place_sparse(j, operand, A.sparse)
                              : place_dense(j, operand, A.dense);

    kf_phase_turn(j, before);
    return st;
}

kofn_status kofn_place(kofn_job *j, const kofn_matrix *A)
{
    return kofn_place_at(j, 0, (kofn_operand){.dense = A});
}

/* ---- sums ---------------------------------------------------------------- */

static kofn_status check_sum(const kofn_job *j, bool there)
{
    if (!there)
        return kf_fail(KOFN_INVAL, "the function is missing");
    if (j->held->placed)
        return kf_fail(KOFN_STATE, "the job has its function already; open "
                                   "another job for another");
    if (j->plan->op->factors > 0)
        return kf_fail(KOFN_SHAPE, "the plan is for a matrix; call kofn_place");
    return KOFN_OK;
}

kofn_status kofn_place_parts(kofn_job *j, kofn_part_fn f, void *ctx)
{
    TRY(check_sum(j, f != NULL));
    TRY(kf_tally_new(&j->tally, j->plan));
    kf_resident_sum(&j->held->resident, j->plan);
    j->held->resident.f = f;
    j->held->resident.ctx = ctx;
    return kf_job_placed(j, j->held);
}

kofn_status kofn_place_rows(kofn_job *j, const kofn_formula *formula,
                            const double arg[KOFN_FORMULA_ARGS],
                            const kofn_matrix *X, const double *y)
{
    kf_resident *r = &j->held->resident;
    size_t n;

    TRY(check_sum(j, formula && formula->name && formula->f));
    TRY(kf_mat_check_matrix(X, "X"));
    if (X->dtype != KOFN_F64 || j->plan->layout.problem.dtype != KOFN_F64)
        return kf_fail(KOFN_SHAPE, "sums over rows are of float64");
    if (!y || !arg || !kf_mul(X->rows, j->plan->parts, &n))
        return kf_fail(KOFN_INVAL,
                       "y or arg is missing, or X has too many "
                       "rows, %zu, for %zu parts",
                       X->rows, j->plan->parts);
    TRY(kf_mat_check_finite(X, "X"));
    n = kf_mat_first_odd(y, X->rows, KOFN_F64);
    if (n < X->rows)
        return kf_fail(KOFN_NONFINITE, "y: element %zu is NaN or infinite", n);
    TRY(kf_tally_new(&j->tally, j->plan));
    kf_resident_sum(r, j->plan);
    r->formula = formula;
    memcpy(r->arg, arg, sizeof r->arg);
    r->X = *X;
    r->y = y;
    return kf_job_placed(j, j->held);
}

kofn_status kofn_parts_work(kofn_job *j, double work)
{
    if (!j->held->resident.f && !j->held->resident.formula)
        return kf_fail(KOFN_STATE, "no function was placed; call "
                                   "kofn_place_parts or kofn_place_rows");
    if (j->loop.greeted)
        return kf_fail(KOFN_STATE, "the parts are with the workers already; "
                                   "call kofn_parts_work before the first "
                                   "round");
    if (!(work > 0 && work - work == 0))
        return kf_fail(KOFN_INVAL, "work = %g is not a number > 0", work);
    j->held->resident.work = work;
    return KOFN_OK;
}
