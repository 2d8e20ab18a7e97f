/* secret.c -- secret rows of Freivalds' check, and their products with A.
 *
 * Owns them; they must never be sent (freivalds.c).
 */
#include "host.h"

#include <assert.h>
#include <math.h>

#include "code/operation.h"

/* Adds x = A(i, j) to (secret row) A; for a left product, to A (secret
 * column). */
static void add_entry(kf_host_product_data *p, size_t i, size_t j, double x)
{
    kf_secret *s = &p->secret;
    size_t at = p->plan->op->left ? j : i, into = p->plan->op->left ? i : j;

    for (size_t r = 0; r < KF_FREIVALDS_SUMS; r++)
        s->times[into * KF_FREIVALDS_SUMS + r] +=
            s->row[at * KF_FREIVALDS_SUMS + r] * x;
    s->most[into] += fabs(s->row[at * KF_FREIVALDS_SUMS] * x);
}

static void multiply(kf_host_product_data *p)
{
    const kofn_sparse *A = p->of->sparse;
    const kofn_matrix *dense = &p->of->dense;

    assert(A || dense->dtype == KOFN_F64);
    for (size_t i = 0; !A && i < dense->rows; i++) {
        const double *from = kf_at(dense, i, 0);

        for (size_t j = 0; j < dense->cols; j++)
            add_entry(p, i, j, from[j]);
    }
    for (size_t i = 0; A && i < A->rows; i++)
        for (size_t e = A->ptr[i]; e < A->ptr[i + 1]; e++)
            add_entry(p, i, A->col[e], A->val[e]);
}

/* Scales the weights of rows that were scaled, in left products of columns.  So
 * these count like the others, and their scale is that of the scaled ones. */
static void scale_weights(kf_host_product_data *p, size_t rows)
{
    const kf_scaling *l = &p->of->scaling;
    const int *digits = p->plan->op->left ? l->col : l->row;

    for (size_t i = 0; digits && i < rows; i++)
        for (size_t r = 0;
             digits[i] != KF_SCALING_ZERO && r < KF_FREIVALDS_SUMS; r++)
            p->secret.row[i * KF_FREIVALDS_SUMS + r] =
                ldexp(p->secret.row[i * KF_FREIVALDS_SUMS + r], digits[i]);
}

kofn_status kf_secret_new(kf_host_product_data *p)
{
    const kofn_problem *pb = &p->plan->layout.problem;
    bool left = p->plan->op->left;
    size_t rows = left ? pb->n : pb->m, cols = left ? pb->m : pb->n;
    kf_secret *s = &p->secret;

    s->row = kf_new(rows, KF_FREIVALDS_SUMS * sizeof *s->row);
    s->times = kf_zero(cols, KF_FREIVALDS_SUMS * sizeof *s->times);
    s->most = kf_zero(cols, sizeof *s->most);
    if (!s->row || !s->times || !s->most)
        return KOFN_NOMEM;
    TRY(kf_host_random(s->row, rows * KF_FREIVALDS_SUMS * sizeof *s->row));
    for (size_t i = 0; i < rows * KF_FREIVALDS_SUMS; i++) {
        uint64_t bits;

        memcpy(&bits, &s->row[i], sizeof bits);
        s->row[i] = kf_weight64(bits);
    }
    scale_weights(p, rows);
    multiply(p);
    return KOFN_OK;
}

void kf_secret_free(kf_secret *s)
{
    kf_free(s->row);
    kf_free(s->times);
    kf_free(s->most);
}
