/* unknown.c -- the symbols that no result holds plainly.
 *
 * With K the known and U the unknown symbols,
 *
 *     G_QU x_U = y_Q - G_QK x_K,
 *
 * solved for all unit vectors y at once, so that decoding is one multiply of D
 * with the results, and the noise it makes is known before any data moves.  More
 * results than unknowns are used together by least squares.
 *
 * Owns its scratch within a call; D is the caller's.  A set that does not
 * determine the symbols is KOFN_UNSTABLE or KOFN_TOOFEW, never a guess.
 */
#include "code.h"
#include "sift.h"

#include <math.h>
#include <string.h>

/* As kofn_layout_table, of what is written before it is read. */
static double *room(size_t rows, size_t cols)
{
    size_t n;

    if (!kf_mul(rows, cols, &n)) {
        kf_nomem(SIZE_MAX);
        return NULL;
    }
    return kf_new(n, sizeof(double));
}

/* P = G_QU and K = G_QK. */
static void fill_system(const kf_sift *s, double *P, double *K)
{
    size_t known = s->symbols - s->unknown;

    for (size_t q = 0; q < s->rows; q++) {
        const kf_row *g = s->row[s->use[q]];

        for (size_t e = 0; e < g->n; e++) {
            uint32_t i = g->col[e];

            if (s->from[i] < 0)
                P[q * s->unknown + s->place[i]] = g->val[e];
            else
                K[q * known + s->place[i]] = g->val[e];
        }
    }
}

static double norm1(const double *P, size_t rows, size_t cols, size_t ld)
{
    double top = 0;

    for (size_t j = 0; j < cols; j += 8) { /* a line of the cache */
        double sum[8] = {0};

        for (size_t i = 0; i < rows && j + 8 <= cols; i++)
            for (size_t c = 0; c < 8; c++)
                sum[c] += fabs(P[i * ld + j + c]);
        for (size_t i = 0; i < rows && j + 8 > cols; i++)
            for (size_t c = 0; j + c < cols; c++)
                sum[c] += fabs(P[i * ld + j + c]);
        for (size_t c = 0; c < 8; c++)
            top = kf_larger(top, sum[c]);
    }
    return top;
}

static void set_identity(size_t n, double *I, double one)
{
    memset(I, 0, n * n * sizeof *I);
    for (size_t i = 0; i < n; i++)
        I[i * n + i] = one;
}

/* C -= A B of matrices that are made of what P and B are. */
static kofn_status subtract_product(const kf_sift *s, const kf_difference *d)
{
    if (s->quaternions)
        return kf_code_subtract_quaternions(d->m, d->k, d->n, d->A, d->B, d->C);
    kf_code_subtract_product(d);
    return KOFN_OK;
}

static kofn_status invert(const kf_sift *s, const double *P, double *W)
{
    size_t n = s->unknown, lanes = s->quaternions ? 4 : 1;
    double *T = room(n, n), *X = kofn_layout_table(n, n / lanes);
    kofn_status st = KOFN_NOMEM;

    if (T && X) {
        memcpy(T, P, n * n * sizeof *T);
        for (size_t i = 0; i < n / lanes; i++)
            X[i * lanes * (n / lanes) + i] = 1;
        st = kf_solve(n, T, n, n / lanes, X, n / lanes);
    }
    if (!st && lanes > 1)
        kf_code_all_lanes(n, n, X, W);
    else if (!st)
        memcpy(W, X, n * n * sizeof *W);
    kf_free(T);
    kf_free(X);
    return st;
}

/* The same for m > n rows by least squares, W = (P'P)^-1 P'. */
static kofn_status invert_tall(size_t m, size_t n, const double *P, double *W)
{
    double *T = room(m, n), *X = room(m, m);
    kofn_status st = KOFN_NOMEM;

    if (T && X) {
        memcpy(T, P, m * n * sizeof *T);
        set_identity(m, X, 1);
        st = kf_code_least_squares(&(kf_system){m, n, T, n, m, X, m});
        memcpy(W, X, n * m * sizeof *W);
    }
    kf_free(T);
    kf_free(X);
    return st;
}

/* The part of W P - I = E that polishing leaves, which is -E E; per row of it. */
static double after_polish(size_t n, const double *E)
{
    double sum = 0;

    for (size_t i = 0; i < n * n; i++)
        sum += E[i] * E[i];
    return sum / sqrt((double)n);
}

/* W + (I - W P) W.  Elimination solves P W = I column by column, so that
 * P W - I is small; but what decoding multiplies with the answer is W P - I,
 * which may be larger by the condition of P.  This brings it down to the
 * rounding of one product. */
static kofn_status polish(const kf_sift *s, const double *P, double *W,
                          double *off)
{
    size_t m = s->rows, n = s->unknown;
    double *N = room(n, m), *E = room(n, n);
    kofn_status st = KOFN_NOMEM;

    if (N && E) {
        set_identity(n, E, -1);
        for (size_t i = 0; i < n * m; i++)
            N[i] = -W[i];
        st = subtract_product(
            s, &(kf_difference){n, m, n, N, m, P, n, E, n}); /* W P - I */
    }
    if (!st) {
        for (size_t i = 0; i < n * m; i++)
            N[i] = W[i];
        st = subtract_product(s, &(kf_difference){n, n, m, E, n, N, m, W, m});
        *off = after_polish(n, E);
    }
    kf_free(N);
    kf_free(E);
    return st;
}

/* D = W [-G_QK, I]: unknown x results, K is G_QK. */
static kofn_status fill_decoder(const kf_sift *s, const double *W,
                                const double *K, double *D)
{
    size_t known = s->symbols - s->unknown;
    double *C = kofn_layout_table(s->unknown, known);
    kofn_status st =
        C ? subtract_product(s, &(kf_difference){s->unknown, s->rows, known, W,
                                                 s->rows, K, known, C, known})
          : KOFN_NOMEM;

    for (size_t u = 0; u < s->unknown && !st; u++) {
        double *row = D + u * s->results;

        for (size_t i = 0; known > 0 && i < s->symbols; i++)
            if (s->from[i] >= 0)
                row[s->from[i]] = C[u * known + s->place[i]];
        for (size_t q = 0; q < s->rows; q++)
            row[s->use[q]] = W[u * s->rows + q];
    }
    kf_free(C);
    return st;
}

kofn_status kf_solve_unknown(const kf_sift *s, double **out, double *condition,
                             double *off)
{
    double *P = kofn_layout_table(s->rows, s->unknown);
    double *W = room(s->unknown, s->rows);
    double *K = kofn_layout_table(s->rows, s->symbols - s->unknown);
    double *D = kofn_layout_table(s->unknown, s->results);
    kofn_status st = KOFN_NOMEM;

    if (P && W && K && D) {
        fill_system(s, P, K);
        st = s->rows == s->unknown ? invert(s, P, W)
                                   : invert_tall(s->rows, s->unknown, P, W);
        if (!st)
            st = polish(s, P, W, off);
        if (!st)
            st = fill_decoder(s, W, K, D);
    }
    if (!st) {
        *condition = norm1(P, s->rows, s->unknown, s->unknown) *
                     norm1(W, s->unknown, s->rows, s->rows);
    }
    kf_free(P);
    kf_free(W);
    kf_free(K);
    if (st) {
        kf_free(D);
        D = NULL;
    }
    *out = D;
    return st;
}
