/* parity.c -- what the results of a survivor set must satisfy.
 *
 * With G the rows of the results, divided by the weights of their seats, the
 * parities are an orthonormal basis of all h with h G = 0.  As in decoder.c,
 * results that are a symbol as it stands are not solved for: with K the known
 * and U the unknown symbols, Q the other results and N the null space of
 * G_QU' (from Householder's QR of the small matrix G_QU),
 *
 *     H = N' [-G_QK, I_Q],
 *
 * whose rows are made orthonormal.  They are well-conditioned to begin with,
 * for N' I_Q alone is orthonormal.
 *
 * The rows that it returns are the caller's (of the cache).  A parity that
 * honest results could fail must not be made; one parity fewer is allowed.
 */
#include "syndrome.h"

#include <math.h>

/* The share of a column that is left by the rounding of QR when the column
 * depends on others.  Taking a small column for nothing would make parities
 * that honest results fail; taking rounding for a column only loses a parity. */
#define NOTHING (8 * 0x1p-52)

typedef struct sieve {
    size_t results, symbols, unknown, rows, rank;
    const kf_row **row; /* per result                                  */
    double *weight;     /* per result                                  */
    int32_t *from;      /* per symbol: result that is it, or -1        */
    uint32_t *place;    /* per unknown symbol: its column              */
    uint32_t *use;      /* results that are not a known symbol         */
    double *P;          /* rows x unknown, then its reflectors         */
    double *tau;        /* per reflector                               */
    double *v, *w;      /* rows; max(unknown, rows)                    */
} sieve;

static void sieve_free(sieve *s)
{
    kf_free(s->row);
    kf_free(s->weight);
    kf_free(s->from);
    kf_free(s->place);
    kf_free(s->use);
    kf_free(s->P);
    kf_free(s->tau);
    kf_free(s->v);
    kf_free(s->w);
}

/* ---- known, unknown, and the rest ---------------------------------------- */

/* Sorts the rows of the results, as sift_rows of decoder.c does: the first
 * that holds a symbol plainly makes it known, all others are used for
 * parities. */
static kofn_status sift(sieve *s, kf_code *c, const uint32_t *seats, size_t n)
{
    const kofn_layout *L = &c->plan->layout;

    s->symbols = L->symbols;
    s->results = n * L->lanes;
    TRY_NEW(s->row, s->results);
    TRY_NEW(s->weight, s->results);
    TRY_NEW(s->from, s->symbols);
    TRY_NEW(s->place, s->symbols);
    TRY_NEW(s->use, s->results);
    for (size_t i = 0; i < s->symbols; i++)
        s->from[i] = -1;
    for (size_t i = 0; i < n; i++) {
        const kf_seat *seat;

        TRY(kf_code_seat(c, seats[i], &seat));
        for (size_t l = 0; l < L->lanes; l++) {
            const kf_row *g = &seat->G[l];
            size_t r = i * L->lanes + l;

            s->row[r] = g;
            s->weight[r] = seat->weight > 0 ? seat->weight : 1;
            if (g->n == 1 && g->val[0] == 1 && s->from[g->col[0]] < 0)
                s->from[g->col[0]] = (int32_t)r;
            else
                s->use[s->rows++] = (uint32_t)r;
        }
    }
    for (size_t i = 0; i < s->symbols; i++)
        if (s->from[i] < 0)
            s->place[i] = (uint32_t)s->unknown++;
    return KOFN_OK;
}

static kofn_status fill(sieve *s)
{
    s->P = kofn_layout_table(s->rows, s->unknown);
    s->tau = kf_new(kf_min(s->rows, s->unknown), sizeof *s->tau);
    s->v = kf_new(s->rows, sizeof *s->v);
    s->w = kf_new(kf_max(s->unknown, s->rows), sizeof *s->w);
    if (!s->P || !s->tau || !s->v || !s->w)
        return KOFN_NOMEM;
    for (size_t i = 0; i < s->rows; i++) {
        const kf_row *g = s->row[s->use[i]];

        for (size_t e = 0; e < g->n; e++)
            if (s->from[g->col[e]] < 0)
                s->P[i * s->unknown + s->place[g->col[e]]] =
                    g->val[e] / s->weight[s->use[i]];
    }
    return KOFN_OK;
}

/* ---- null space ---------------------------------------------------------- */

/* A -= tau v (v' A) on rows j.. of A, n columns of it. */
static void reflect(const sieve *s, size_t j, double tau, double *A, size_t lda,
                    size_t n)
{
    memset(s->w, 0, n * sizeof *s->w);
    for (size_t i = j; i < s->rows; i++)
        kf_axpy(n, tau * s->v[i], A + i * lda, s->w);
    for (size_t i = j; i < s->rows; i++)
        kf_axpy(n, -s->v[i], s->w, A + i * lda);
}

/* The largest column of what is left comes to the front; its norm. */
static double pivot(sieve *s, size_t j)
{
    size_t n = s->unknown, best = j;

    memset(s->w, 0, n * sizeof *s->w);
    for (size_t i = j; i < s->rows; i++)
        for (size_t c = j; c < n; c++)
            s->w[c] += s->P[i * n + c] * s->P[i * n + c];
    for (size_t c = j + 1; c < n; c++)
        if (s->w[c] > s->w[best])
            best = c;
    if (best != j)
        for (size_t i = 0; i < s->rows; i++) {
            double t = s->P[i * n + j];

            s->P[i * n + j] = s->P[i * n + best];
            s->P[i * n + best] = t;
        }
    return sqrt(s->w[best]);
}

/* QR with pivoting: column j of P below the diagonal becomes reflector j. */
static void factor(sieve *s)
{
    size_t n = s->unknown, most = kf_min(s->rows, n);
    double first = 0;

    for (size_t j = 0; j < most; j++, s->rank++) {
        double norm = pivot(s, j), alpha, head;

        if (j == 0)
            first = norm;
        if (!(norm > NOTHING * sqrt((double)s->rows) * first))
            return;
        alpha = s->P[j * n + j] > 0 ? -norm : norm;
        head = s->P[j * n + j] - alpha;
        s->v[j] = 1;
        for (size_t i = j + 1; i < s->rows; i++)
            s->v[i] = s->P[i * n + j] / head;
        s->tau[j] = -head / alpha;
        reflect(s, j, s->tau[j], s->P + j + 1, n, n - j - 1);
        for (size_t i = j; i < s->rows; i++)
            s->P[i * n + j] = s->v[i];
    }
}

/* N: the last columns of Q, which the reflectors make of unit vectors. */
static void null_space(sieve *s, double *N)
{
    size_t q = s->rows - s->rank;

    memset(N, 0, s->rows * q * sizeof *N);
    for (size_t i = 0; i < q; i++)
        N[(s->rank + i) * q + i] = 1;
    for (size_t j = s->rank; j-- > 0;) {
        for (size_t i = j; i < s->rows; i++)
            s->v[i] = s->P[i * s->unknown + j];
        reflect(s, j, s->tau[j], N, q, q);
    }
}

/* ---- parities ------------------------------------------------------------ */

/* B' = [-G_QK, I_Q]' N, results x q. */
static void combine(const sieve *s, const double *N, double *B)
{
    size_t q = s->rows - s->rank;

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

/* Gram and Schmidt, each row twice. */
static void orthonormalise(double *H, size_t q, size_t n, double *along)
{
    for (size_t i = 0; i < q; i++) {
        double *h = H + i * n, norm;

        for (int pass = 0; pass < 2; pass++) {
            for (size_t j = 0; j < i; j++)
                along[j] = kf_code_dot(H + j * n, h, n);
            kf_code_subtract_product(
                &(kf_difference){1, i, n, along, i, H, n, h, n});
        }
        norm = sqrt(kf_code_dot(h, h, n));
        for (size_t k = 0; k < n; k++)
            h[k] /= norm;
    }
}

static kofn_status parities(sieve *s, double **out)
{
    size_t q = s->rows - s->rank;
    double *N = kofn_layout_table(s->rows, q);
    double *B = kofn_layout_table(s->results, q);
    double *H = kofn_layout_table(q, s->results);
    bool ok = N && B && H;

    if (ok) {
        null_space(s, N);
        combine(s, N, B);
        for (size_t r = 0; r < s->results; r++)
            for (size_t i = 0; i < q; i++)
                H[i * s->results + r] = B[r * q + i];
        orthonormalise(H, q, s->results, N);
    }
    kf_free(N);
    kf_free(B);
    if (!ok) {
        kf_free(H);
        return KOFN_NOMEM;
    }
    *out = H;
    return KOFN_OK;
}

kofn_status kf_parity(kf_code *c, const uint32_t *seats, size_t n, double **H,
                      size_t *q)
{
    sieve s = {0};
    kofn_status st = sift(&s, c, seats, n);

    *H = NULL;
    *q = 0;
    if (!st)
        st = fill(&s);
    if (!st) {
        factor(&s);
        *q = s.rows - s.rank;
        st = parities(&s, H);
    }
    sieve_free(&s);
    return st;
}
