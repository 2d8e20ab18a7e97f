/* raise.c -- operands with rows or columns of different size are raised to one size
 * before they are coded (src/data/level.c), and what is decoded is lowered again.
 *
 * Raised are the rows of A and, where they are mixed or the rows are raised, its
 * columns, for as long as it is held; and of an input those lines of its own that
 * are mixed.  What is summed over is lowered in the input by what it is raised by
 * in A. */
#include "job.h"

#include "code/operation.h"

#include <math.h>

/* Does a block that the job begins with hold anything but plain parts of A?  Of a
 * stream any may. */
static kofn_status mixes(const kofn_job *j, uint32_t operand, bool *yes)
{
    const kofn_plan *p = kf_is_stream(j) ? j->plan : j->held[operand].plan;
    kf_code *code = kofn_core_code(j->core, KOFN_USES * operand);
    size_t rows = p->layout.lanes * p->layout.inner;
    size_t seats = kf_min(p->workers / p->layout.groups, p->layout.max_seats);

    *yes = kf_is_stream(j);
    for (size_t i = 0; i < seats && !*yes; i++) {
        const kf_seat *seat;

        TRY(kf_code_seat(code, i, &seat));
        for (size_t l = 0; l < rows; l++)
            *yes |= seat->E0[l].n > 1 ||
                    (seat->E0[l].n == 1 && seat->E0[l].val[0] != 1);
    }
    return KOFN_OK;
}

/* Rows of A are of one size in A' A x only if they were before. */
static bool rows_are_raised(const kofn_plan *p)
{
    return p->op->factors == 1;
}

static bool columns_are_raised(const kofn_plan *p)
{
    return p->layout.cut[0].cols > 1;
}

kofn_status kf_raise_dense(kofn_job *j, uint32_t operand, kf_held *h,
                           kofn_matrix *A)
{
    const kofn_plan *p = h->plan;
    kofn_matrix own;
    bool yes;

    TRY(mixes(j, operand, &yes));
    if (!yes)
        return KOFN_OK;
    TRY(kf_levels_of(A, rows_are_raised(p), columns_are_raised(p), &h->levels));
    if (!kf_levels_change(&h->levels, A->rows, A->cols))
        return KOFN_OK;
    TRY(kf_level_copy(A, h->levels.row, h->levels.col, 1, &own));
    h->raised = own.data;
    *A = own;
    return KOFN_OK;
}

kofn_status kf_raise_sparse(kofn_job *j, kf_held *h, kofn_sparse *A)
{
    double *val;
    bool yes;

    TRY(mixes(j, 0, &yes));
    if (!yes || !rows_are_raised(h->plan))
        return KOFN_OK;
    TRY(kf_levels_of_sparse(A, &h->levels));
    if (!kf_levels_change(&h->levels, A->rows, 0))
        return KOFN_OK;
    TRY(kf_level_values(A, h->levels.row, &val));
    h->raised = val;
    A->val = val;
    return KOFN_OK;
}

unsigned kf_raise_kind(const kf_held *h)
{
    if (!h->raised)
        return 0;
    return (rows_are_raised(h->plan) ? KF_RAISED_ROWS : 0u) |
           (columns_are_raised(h->plan) ? KF_RAISED_COLS : 0u);
}

void kf_raise_forget(kf_held *h)
{
    kf_levels_free(&h->levels);
    kf_free(h->raised);
    h->raised = NULL;
}

/* ---- products ------------------------------------------------------------ */

/* What is added to lines of zeros is not to vanish. */
static void await_change(int *digits, size_t n)
{
    for (size_t i = 0; digits && i < n; i++)
        if (digits[i] == KF_LEVEL_ZERO)
            digits[i] = 0;
}

kofn_status kf_raise_change(kf_held *h, const kofn_matrix *U,
                            const kofn_matrix *V, kofn_matrix *raised_U,
                            kofn_matrix *raised_V)
{
    kofn_status st;

    *raised_U = *U;
    *raised_V = *V;
    if (!kf_levels_any(&h->levels))
        return KOFN_OK;
    await_change(h->levels.row, U->cols);
    await_change(h->levels.col, V->cols);
    TRY(kf_level_copy(U, NULL, h->levels.row, 1, raised_U));
    st = kf_level_copy(V, NULL, h->levels.col, 1, raised_V);
    if (st)
        kf_free(raised_U->data);
    return st;
}

/* Digits that the lines of an input which are summed over are lowered by. */
static const int *summed(const kf_held *h, const kofn_plan *use)
{
    return use->op->left ? h->levels.row : h->levels.col;
}

/* Of its other lines, those that are mixed. */
static kofn_status own_lines(const kofn_plan *use, const kofn_matrix *in,
                             kf_levels *out)
{
    kofn_cut cut = use->layout.cut[1];
    bool left = use->op->left;

    *out = (kf_levels){NULL, NULL};
    if (use->of || use->op->factors == 0 || use->op->vector)
        return KOFN_OK;
    return kf_levels_of(in, left && cut.rows > 1, !left && cut.cols > 1, out);
}

kofn_status kf_raise_input(const kf_held *h, product *p, const kofn_plan *use,
                           kofn_matrix *in, void **own)
{
    bool left = use->op->left;
    const int *inner = use->of ? NULL : summed(h, use);
    kofn_matrix raised = *in;

    *own = NULL;
    kf_levels_free(&p->raised);
    if (inner)
        TRY(kf_level_copy(in, left ? NULL : inner, left ? inner : NULL, -1,
                          &raised));
    if (inner)
        *own = raised.data;
    TRY(own_lines(use, &raised, &p->raised));
    if (kf_levels_any(&p->raised) && !*own) {
        TRY(kf_level_copy(in, NULL, NULL, 1, &raised));
        *own = raised.data;
    }
    kf_level_multiply(&raised, p->raised.row, p->raised.col, 1);
    *in = raised;
    return KOFN_OK;
}

void kf_raise_back(const kf_held *h, product *p, const kofn_plan *use)
{
    if (use->of) { /* A is read */
        p->back.row = h->levels.row;
        p->back.col = h->levels.col;
    } else if (use->op->factors > 1) {
        p->back.row = h->levels.col;
        p->back.col = NULL;
    } else {
        p->back.row = use->op->left ? p->raised.row : h->levels.row;
        p->back.col = use->op->left ? h->levels.col : p->raised.col;
    }
}
