/* solve.c -- small dense systems, many right-hand sides, row by row.
 *
 * Everything is an axpy of one row onto another, so that the compiler can use
 * vectors without changing the order of a single sum: compiled without fused
 * multiply-add, the result is the same to the bit on every machine.  That is
 * why this is not LAPACK: which BLAS is installed must not change a decision
 * of the coordinator, nor break a replay.
 */
#include "code.h"

#include <math.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&         \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define VECTORS __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define VECTORS
#endif

/* Right-hand sides are taken this many columns at a time: a panel of a system
 * of some hundred rows stays in the second-level cache. */
#define PANEL 64

/* y -= f x */
VECTORS static void subtract(size_t n, double f, const double *restrict x,
                             double *restrict y)
{
    for (size_t i = 0; i < n; i++)
        y[i] -= f * x[i];
}

/* y -= f[0] x[0] + f[1] x[1] + f[2] x[2] + f[3] x[3], in that order: a
 * quarter of the traffic to y. */
VECTORS static void subtract4(size_t n, const double *f,
                              const double *restrict x0,
                              const double *restrict x1,
                              const double *restrict x2,
                              const double *restrict x3, double *restrict y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = (((y[i] - f[0] * x0[i]) - f[1] * x1[i]) - f[2] * x2[i]) -
               f[3] * x3[i];
}

/* y -= sum over j in [from, to) of f[j] * row j of X. */
static void subtract_rows(size_t n, const double *f, size_t from, size_t to,
                          const double *X, size_t ldx, double *y)
{
    size_t j = from;

    for (; j + 4 <= to; j += 4)
        subtract4(n, f + j, X + j * ldx, X + (j + 1) * ldx, X + (j + 2) * ldx,
                  X + (j + 3) * ldx, y);
    for (; j < to; j++)
        subtract(n, f[j], X + j * ldx, y);
}

static void swap_rows(size_t n, double *a, double *b)
{
    for (size_t i = 0; i < n; i++) {
        double t = a[i];

        a[i] = b[i];
        b[i] = t;
    }
}

void kf_code_subtract_product(size_t m, size_t k, size_t n, const double *A,
                              size_t lda, const double *B, size_t ldb,
                              double *C, size_t ldc)
{
    for (size_t c = 0; c < n; c += PANEL)
        for (size_t i = 0; i < m; i++)
            subtract_rows(kf_min(PANEL, n - c), A + i * lda, 0, k, B + c, ldb,
                          C + i * ldc + c);
}

/* ---- square: LU with partial pivoting ------------------------------------ */

/* Row i of L left of the diagonal, U from it on; swap[i] is the row that came
 * to i. */
static kofn_status factor(size_t n, double *P, size_t ld, size_t *swap)
{
    for (size_t j = 0; j < n; j++) {
        size_t best = j;

        for (size_t i = j + 1; i < n; i++)
            if (fabs(P[i * ld + j]) > fabs(P[best * ld + j]))
                best = i;
        swap[j] = best;
        if (best != j)
            swap_rows(n, P + j * ld, P + best * ld);
        if (!(fabs(P[j * ld + j]) > 0))
            return kf_fail(KOFN_UNSTABLE,
                           "singular system: no pivot in "
                           "column %zu of %zu",
                           j, n);
        for (size_t i = j + 1; i < n; i++) {
            double f = P[i * ld + j] / P[j * ld + j];

            P[i * ld + j] = f;
            subtract(n - j - 1, f, P + j * ld + j + 1, P + i * ld + j + 1);
        }
    }
    return KOFN_OK;
}

static void substitute(size_t n, const double *P, size_t ldp,
                       const size_t *swap, size_t cols, double *B, size_t ldb)
{
    for (size_t i = 0; i < n; i++)
        if (swap[i] != i)
            swap_rows(cols, B + i * ldb, B + swap[i] * ldb);
    for (size_t i = 1; i < n; i++)
        subtract_rows(cols, P + i * ldp, 0, i, B, ldb, B + i * ldb);
    for (size_t i = n; i-- > 0;) {
        double pivot = P[i * ldp + i];

        subtract_rows(cols, P + i * ldp, i + 1, n, B, ldb, B + i * ldb);
        for (size_t c = 0; c < cols; c++)
            B[i * ldb + c] /= pivot;
    }
}

/* Rows of very different size would mislead the choice of pivots. */
static void equilibrate(size_t n, double *P, size_t ldp, size_t cols, double *B,
                        size_t ldb)
{
    for (size_t i = 0; i < n; i++) {
        double top = 0, scale;
        int e;

        for (size_t j = 0; j < n; j++)
            top = fmax(top, fabs(P[i * ldp + j]));
        if (!(top > 0) || isinf(top))
            continue;
        frexp(top, &e);
        scale = ldexp(1, e < -1000 ? 1000 : -e); /* a subnormal row: finite */
        for (size_t j = 0; j < n; j++)
            P[i * ldp + j] *= scale;
        for (size_t c = 0; c < cols; c++)
            B[i * ldb + c] *= scale;
    }
}

kofn_status kf_solve(size_t n, double *P, size_t ldp, size_t cols, double *B,
                     size_t ldb)
{
    size_t *swap = kf_new(n, sizeof *swap);
    kofn_status st;

    if (!swap)
        return KOFN_NOMEM;
    equilibrate(n, P, ldp, cols, B, ldb);
    st = factor(n, P, ldp, swap);
    for (size_t c = 0; !st && c < cols; c += PANEL)
        substitute(n, P, ldp, swap, kf_min(PANEL, cols - c), B + c, ldb);
    kf_free(swap);
    return st;
}

kofn_status kofn_solve(size_t n, double *P, size_t cols, double *B)
{
    return kf_solve(n, P, n, cols, B, cols);
}

/* ---- overdetermined: Householder QR -------------------------------------- */

/* A -= v w' with w = tau A' v, for rows j..m-1; v[j] = 1 is implied to be
 * stored in v itself.  w is scratch of `cols`. */
static void reflect(size_t j, size_t m, const double *v, double tau,
                    size_t cols, double *A, size_t lda, double *w)
{
    memset(w, 0, cols * sizeof *w);
    for (size_t i = j; i < m; i++)
        subtract(cols, -tau * v[i], A + i * lda, w);
    for (size_t i = j; i < m; i++)
        subtract(cols, v[i], w, A + i * lda);
}

/* The reflector that zeroes column j below the diagonal; 0 when there is
 * nothing to do. */
static double reflector(size_t j, size_t m, const double *P, size_t ldp,
                        double *v)
{
    double scale = 0, norm = 0, alpha, head;

    for (size_t i = j; i < m; i++)
        scale = fmax(scale, fabs(P[i * ldp + j]));
    if (!(scale > 0))
        return 0;
    for (size_t i = j; i < m; i++) {
        v[i] = P[i * ldp + j] / scale;
        norm += v[i] * v[i];
    }
    alpha = v[j] > 0 ? -sqrt(norm) : sqrt(norm);
    head = v[j] - alpha;
    v[j] = 1;
    for (size_t i = j + 1; i < m; i++)
        v[i] /= head;
    return -head / alpha;
}

static kofn_status qr_solve(size_t m, size_t n, double *P, size_t ldp,
                            size_t cols, double *B, size_t ldb, double *v,
                            double *w)
{
    for (size_t j = 0; j < n; j++) {
        double tau = reflector(j, m, P, ldp, v);

        if (tau == 0)
            return kf_fail(KOFN_UNSTABLE,
                           "singular system: column %zu of %zu "
                           "depends on those before",
                           j, n);
        reflect(j, m, v, tau, n - j, P + j, ldp, w);
        for (size_t c = 0; c < cols; c += PANEL)
            reflect(j, m, v, tau, kf_min(PANEL, cols - c), B + c, ldb, w);
    }
    for (size_t i = n; i-- > 0;) {
        double pivot = P[i * ldp + i];

        subtract_rows(cols, P + i * ldp, i + 1, n, B, ldb, B + i * ldb);
        for (size_t c = 0; c < cols; c++)
            B[i * ldb + c] /= pivot;
    }
    return KOFN_OK;
}

kofn_status kf_code_least_squares(size_t m, size_t n, double *P, size_t ldp,
                                  size_t cols, double *B, size_t ldb)
{
    double *v = kf_new(m, sizeof *v);
    double *w = kf_new(kf_max(n, PANEL), sizeof *w);
    kofn_status st = KOFN_NOMEM;

    if (v && w)
        st = qr_solve(m, n, P, ldp, cols, B, ldb, v, w);
    kf_free(v);
    kf_free(w);
    return st;
}
