/* parity.c -- the equations that honest results of a survivor set satisfy.
 *
 * Let G be the rows of the results, divided by the weights of their seats.  The
 * parities are an orthonormal basis of all h with h G = 0.  As in decoder.c,
 * results that are plain symbols are not solved for.  Let K be the known and U
 * the unknown symbols, Q the other results, and N the null space of G_QU' (from
 * Householder's QR of the small matrix G_QU).  Then
 *
 *     H = N' [-G_QK, I_Q],
 *
 * and its rows are made orthonormal.  They are well-conditioned before that,
 * because N' I_Q alone is orthonormal.
 *
 * The returned rows belong to the caller (the cache).  A parity that honest
 * results could violate must not be made; one parity fewer is acceptable. */
#include "qr.h"
#include "sift.h"
#include "syndrome.h"

#include <assert.h>

/* The relative length that rounding in QR leaves of a dependent column.  If a
 * small column were taken for dependent, honest results would violate the
 * parities.  If rounding is taken for a column, only a parity is lost. */
#define NOTHING (8 * 0x1p-52)

typedef struct sieve {
    kf_sift s;
    kf_qr f; /* of G_QU */
} sieve;

/* Fills G_QU: only results that are not plain symbols make parities. */
static kofn_status fill(sieve *p)
{
    kf_sift *s = &p->s;
    kf_qr *f = &p->f;

    for (size_t r = 0; r < s->results; r++)
        if (!kf_sift_is_plain(s, r))
            s->use[s->rows++] = (uint32_t)r;
    assert(s->rows <= s->results);
    kf_qr_new(f, &s->arrays, s->rows, s->unknown, s->rows);
    f->pick = kf_arrays_new(&s->arrays, f->n, sizeof *f->pick);
    f->nothing = NOTHING * sqrt((double)s->rows);
    f->cliff = HUGE_VAL;
    f->even = true;
    TRY(kf_arrays_status(&s->arrays));
    for (size_t i = 0; i < s->rows; i++) {
        const kf_row *g = s->row[s->use[i]];

        for (size_t e = 0; e < g->n; e++)
            if (s->from[g->col[e]] < 0)
                f->A[i * f->n + s->place[g->col[e]]] =
                    g->val[e] / s->weight[s->use[i]];
    }
    return KOFN_OK;
}

/* Computes N, the last columns of Q: the reflectors applied to unit vectors. */
static void null_space(const kf_qr *f, double *N)
{
    size_t q = f->m - f->rank;

    assert(f->rank <= f->m);
    for (size_t i = 0; i < q; i++)
        N[(f->rank + i) * q + i] = 1;
    for (size_t j = f->rank; j-- > 0;)
        kf_qr_reflect(f, j, q, N + j * q, q);
}

/* ---- parities ------------------------------------------------------------ */

/* Computes B' = [-G_QK, I_Q]' N, results x q. */
static void combine(const kf_sift *s, const double *N, size_t q, double *B)
{
    assert(q <= s->rows);
    for (size_t i = 0; i < s->rows; i++) {
        const kf_row *g = s->row[s->use[i]];
        double over = 1 / s->weight[s->use[i]];

        kf_axpy(q, 1, N + i * q, B + s->use[i] * q);
        for (size_t e = 0; e < g->n; e++) {
            int32_t from = s->from[g->col[e]];

            if (from >= 0)
                kf_axpy(q, -g->val[e] * over * s->weight[from], N + i * q,
                        B + (size_t)from * q);
        }
    }
}

/* Orthonormalises by Gram-Schmidt, each row twice. */
static void orthonormalise(double *H, size_t q, size_t n, double *along)
{
    assert(q <= n);
    for (size_t i = 0; i < q; i++) {
        double *h = H + i * n, norm;

        for (int pass = 0; pass < 2; pass++) {
            for (size_t j = 0; j < i; j++)
                along[j] = kf_code_dot(H + j * n, h, n);
            kf_code_subtract_product(
                &(kf_difference){1, i, n, along, i, H, n, h, n});
        }
        norm = kf_code_length(h, n);
        for (size_t k = 0; k < n; k++)
            h[k] /= norm;
    }
}

static kofn_status parities(sieve *p, size_t q, double **H)
{
    kf_sift *s = &p->s;
    double *N = kf_arrays_table(&s->arrays, s->rows, q);
    double *B = kf_arrays_table(&s->arrays, s->results, q);

    assert(q <= s->rows);
    TRY(kf_arrays_status(&s->arrays));
    *H = kofn_layout_table(q, s->results);
    if (!*H)
        return KOFN_NOMEM;
    null_space(&p->f, N);
    combine(s, N, q, B);
    for (size_t r = 0; r < s->results; r++)
        for (size_t i = 0; i < q; i++)
            (*H)[i * s->results + r] = B[r * q + i];
    orthonormalise(*H, q, s->results, N);
    return KOFN_OK;
}

kofn_status kf_parity(kf_code *c, const uint32_t *seats, size_t n, double **H,
                      size_t *q)
{
    sieve p = {0};
    kofn_status st = kf_sift_rows(&p.s, c, seats, n, true);

    *H = NULL;
    *q = 0;
    if (!st)
        st = fill(&p);
    if (!st) {
        kf_qr_factor(&p.f);
        assert(p.f.rank <= p.s.rows);
        *q = p.s.rows - p.f.rank;
        st = parities(&p, *q, H);
    }
    kf_arrays_free(&p.s.arrays);
    return st;
}
