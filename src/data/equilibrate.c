/* equilibrate.c -- equilibrates operands with rows or columns of different size
 * before they are coded (scaling.c), and undoes this in the decoded result.
 *
 * The rows of A are scaled if they are mixed.  The columns of A are scaled if
 * they are mixed, if the rows are scaled, or if results are compared.  This
 * holds while A is stored.  In an input, its own mixed rows or columns are
 * scaled.  Along the summed side, the input is scaled down by what A is scaled
 * up.  So the norms of the rows of A and of the input match the rounding of
 * plain sums, which is the scale for comparing results (docs/errors.md).
 *
 * A copy belongs to the caller, in *owned.  The caller's matrices are never
 * changed. */
#include "data.h"

#include "code/operation.h"

#include <assert.h>

/* True if rows or columns of A may be mixed.  A joiner may get a mixture even
 * if the first workers have plain parts, so only a code of a single part mixes
 * nothing. */
static bool mixes(const kofn_plan *p)
{
    kofn_cut cut = p->layout.cut[0];

    return cut.rows > 1 || cut.cols > 1;
}

/* Returns the rows or columns to equilibrate.  In A' A x the rows are not,
 * because their scaling could not be undone in the result. */
unsigned kf_equilibrate_kind(const kofn_plan *p, kofn_errors errors)
{
    unsigned cols = p->layout.cut[0].cols > 1 ? KF_SCALED_COLS : 0;

    if (p->op->factors != 1)
        return cols;
    if (errors != KOFN_ERRORS_NONE)
        return KF_SCALED_ROWS | KF_SCALED_COLS;
    return mixes(p) ? KF_SCALED_ROWS | cols : 0;
}

static kofn_status levels_of(unsigned kind, const kofn_matrix *A, kf_scaling *l)
{
    return kf_scaling_of(A, kind & KF_SCALED_ROWS, kind & KF_SCALED_COLS, l);
}

kofn_status kf_equilibrate_dense(unsigned kind, kofn_matrix *A, kf_scaling *l,
                                 void **owned)
{
    kofn_matrix scaled;

    TRY(levels_of(kind, A, l));
    if (!kf_scaling_change(l, A->rows, A->cols))
        return KOFN_OK;
    TRY(kf_scaling_copy(A, l->row, l->col, 1, &scaled));
    *owned = scaled.data;
    *A = scaled;
    return KOFN_OK;
}

kofn_status kf_equilibrate_sparse(unsigned kind, kofn_sparse *A, kf_scaling *l,
                                  void **owned)
{
    double *val;

    if (!(kind & KF_SCALED_ROWS))
        return KOFN_OK;
    TRY(kf_scaling_of_sparse(A, kind & KF_SCALED_COLS, l));
    if (!kf_scaling_change(l, A->rows, A->cols))
        return KOFN_OK;
    TRY(kf_scaling_values(A, l, &val));
    *owned = val;
    A->val = val;
    return KOFN_OK;
}

/* ---- changes ------------------------------------------------------------- */

static void await_lines(int *digits, size_t n)
{
    for (size_t i = 0; digits && i < n; i++)
        if (digits[i] == KF_SCALING_ZERO)
            digits[i] = 0;
}

void kf_equilibrate_await(const kf_scaling *l, size_t rows, size_t cols)
{
    await_lines(l->row, rows);
    await_lines(l->col, cols);
}

kofn_status kf_equilibrate_restart(unsigned kind, const kofn_matrix *A,
                                   kf_scaling *l)
{
    if (!l->row && !l->col)
        return KOFN_OK;
    kf_scaling_free(l);
    return levels_of(kind, A, l);
}

kofn_status kf_equilibrate_change(const kf_scaling *l, kofn_matrix *U,
                                  kofn_matrix *V, void *owned[2])
{
    kofn_matrix scaled_U, scaled_V;

    assert(U->rows == V->rows);
    owned[0] = owned[1] = NULL;
    if (!kf_scaling_any(l))
        return KOFN_OK;
    kf_equilibrate_await(l, U->cols, V->cols);
    if (!kf_scaling_change(l, U->cols, V->cols)) /* lines of zeros */
        return KOFN_OK;
    TRY(kf_scaling_copy(U, NULL, l->row, 1, &scaled_U));
    owned[0] = scaled_U.data;
    TRY(kf_scaling_copy(V, NULL, l->col, 1, &scaled_V));
    owned[1] = scaled_V.data;
    *U = scaled_U;
    *V = scaled_V;
    return KOFN_OK;
}

/* ---- products ------------------------------------------------------------ */

/* Returns the digits by which the input is scaled down along its summed side.
 */
static const int *summed(const kf_scaling *held, const kofn_plan *use)
{
    if (use->of) /* A itself is read */
        return NULL;
    return use->op->left ? held->row : held->col;
}

bool kf_equilibrate_divides(const kf_scaling *held, const kofn_plan *use)
{
    return summed(held, use) != NULL;
}

void kf_equilibrate_divide(const kf_scaling *held, const kofn_plan *use,
                           const kofn_matrix *in)
{
    const int *inner = summed(held, use);
    bool left = use->op->left;

    kf_scaling_multiply(in, left ? NULL : inner, left ? inner : NULL, -1);
}

/* Computes the digits of the input's other rows or columns, if they are mixed.
 */
static kofn_status own_lines(const kofn_plan *use, const kofn_matrix *in,
                             kf_scaling *out)
{
    kofn_cut cut = use->layout.cut[1];
    bool left = use->op->left;

    *out = (kf_scaling){NULL, NULL};
    if (use->of || use->op->factors == 0 || use->op->vector ||
        (left ? cut.rows : cut.cols) == 1)
        return KOFN_OK;
    return kf_scaling_of_input(in, left, out);
}

kofn_status kf_equilibrate_input(const kf_scaling *held, const kofn_plan *use,
                                 kf_scaling *scaled, kofn_matrix *in,
                                 void **owned)
{
    kofn_matrix copy = *in;

    *owned = NULL;
    kf_scaling_free(scaled);
    if (kf_equilibrate_divides(held, use)) {
        TRY(kf_scaling_copy(in, NULL, NULL, 1, &copy));
        *owned = copy.data;
        kf_equilibrate_divide(held, use, &copy);
    }
    TRY(own_lines(use, &copy, scaled));
    if (kf_scaling_any(scaled) && !*owned) {
        TRY(kf_scaling_copy(in, NULL, NULL, 1, &copy));
        *owned = copy.data;
    }
    kf_scaling_multiply(&copy, scaled->row, scaled->col, 1);
    *in = copy;
    return KOFN_OK;
}

void kf_equilibrate_back(const kf_scaling *held, const kf_scaling *scaled,
                         const kofn_plan *use, kf_back *back)
{
    if (use->of) { /* A itself is read */
        back->row = held->row;
        back->col = held->col;
    } else if (use->op->factors > 1) {
        back->row = held->col;
        back->col = NULL;
    } else {
        back->row = use->op->left ? scaled->row : held->row;
        back->col = use->op->left ? held->col : scaled->col;
    }
}
