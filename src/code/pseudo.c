/* pseudo.c -- D = W G^+ for a G of any shape and rank.
 *
 * Results are G times symbols and W times symbols is wanted, so D is asked for
 * with D G = W.  There may be more results than symbols, or fewer when not
 * every symbol matters (a sum of gradients), or results that repeat each
 * other.  Of all D that come closest to D G = W the smallest is taken: it
 * adds up the least rounding of the workers.
 *
 * Householder QR with column pivoting of G' shows the rank,
 *
 *     G' Pi = Q [T S; 0 0],      D' = Pi [T S]^+ Q' W',
 *
 * and where results are left over a second QR, [T S]' = Z U, gives the
 * minimum norm (the "complete orthogonal decomposition": Golub and Van Loan,
 * Matrix Computations, section 5.5).  What symbols are measured in makes no
 * difference to D, so columns of G are first brought to about the same size:
 * powers of points would hide the rank.  Solving for D' rather than for G^+
 * makes D G - W small, which is what the answer meets; one step of refinement
 * takes off what elimination left, which halves the error.
 *
 * Owns its scratch within a call; D is the caller's.  The same order of sums
 * on every machine, so no BLAS and no fused multiply-add.
 */
#include "code.h"

#include <math.h>

/* m x n, m >= rank: below the diagonal the tails of the reflectors, whose
 * heads are 1; on and above it the triangle. */
typedef struct qr {
    size_t m, n, rank;
    double *A, *tau;
    size_t *pick;  /* column that came to j; NULL: in order */
    double *v, *w; /* scratch: m; the widest that is reflected */
} qr;

static void qr_free(qr *f)
{
    kf_free(f->A);
    kf_free(f->tau);
    kf_free(f->pick);
    kf_free(f->v);
    kf_free(f->w);
}

static kofn_status qr_new(qr *f, size_t m, size_t n, size_t wide, bool pivot)
{
    *f = (qr){.m = m, .n = n};
    f->A = kofn_layout_table(m, n);
    f->tau = kf_zero(n, sizeof *f->tau);
    f->pick = pivot ? kf_new(n, sizeof *f->pick) : NULL;
    f->v = kf_new(m, sizeof *f->v);
    f->w = kf_new(kf_max(n, wide), sizeof *f->w);
    return f->A && f->tau && (f->pick || !pivot) && f->v && f->w ? KOFN_OK
                                                                 : KOFN_NOMEM;
}

/* B -= tau v (v' B), rows j..m-1, v from column j of A. */
static void reflect(qr *f, size_t j, size_t cols, double *B, size_t ldb)
{
    size_t rows = f->m - j;

    f->v[0] = -f->tau[j];
    for (size_t i = 1; i < rows; i++)
        f->v[i] = -f->tau[j] * f->A[(j + i) * f->n + j];
    memset(f->w, 0, cols * sizeof *f->w);
    kf_code_subtract_product(&(kf_difference){1, rows, cols, f->v, rows,
                                              B + j * ldb, ldb, f->w, cols});
    f->v[0] = 1;
    for (size_t i = 1; i < rows; i++)
        f->v[i] = f->A[(j + i) * f->n + j];
    kf_code_subtract_product(
        &(kf_difference){rows, 1, cols, f->v, 1, f->w, cols, B + j * ldb, ldb});
}

/* Column j becomes its norm and zeros; false when it is 0. */
static bool reflector(qr *f, size_t j)
{
    double top = 0, sum = 0, *a = f->A + j * f->n + j, norm, head;

    for (size_t i = 0; i < f->m - j; i++)
        top = fmax(top, fabs(a[i * f->n]));
    if (!(top > 0) || isinf(top))
        return false;
    for (size_t i = 0; i < f->m - j; i++)
        sum += a[i * f->n] / top * (a[i * f->n] / top);
    norm = a[0] > 0 ? -top * sqrt(sum) : top * sqrt(sum);
    head = a[0] - norm;
    f->tau[j] = -head / norm;
    for (size_t i = 1; i < f->m - j; i++)
        a[i * f->n] /= head;
    reflect(f, j, f->n - j - 1, f->A + j + 1, f->n);
    a[0] = norm;
    return true;
}

/* The square of the norm of column c from row j on. */
static double rest(const qr *f, size_t j, size_t c)
{
    double sum = 0;

    for (size_t i = j; i < f->m; i++)
        sum += f->A[i * f->n + c] * f->A[i * f->n + c];
    return sum;
}

static void pivot(qr *f, size_t j)
{
    size_t best = j, was = f->pick[j];
    double most = rest(f, j, j);

    for (size_t c = j + 1; c < f->n; c++) {
        double r = rest(f, j, c);

        if (r > most) {
            most = r;
            best = c;
        }
    }
    if (best == j)
        return;
    for (size_t i = 0; i < f->m; i++) {
        double t = f->A[i * f->n + j];

        f->A[i * f->n + j] = f->A[i * f->n + best];
        f->A[i * f->n + best] = t;
    }
    f->pick[j] = f->pick[best];
    f->pick[best] = was;
}

/* True if the rest is rounding, which no longer fades away step by step as that
 * of an ill-conditioned matrix does, whose noise is to show. */
static bool exhausted(const qr *f, size_t j)
{
    double left = sqrt(rest(f, j, j)), first = fabs(f->A[0]);
    double last = j ? fabs(f->A[(j - 1) * f->n + j - 1]) : 0;

    return j && left <= first * 0x1p-52 * (double)kf_max(f->m, f->n) &&
           left <= 1e-4 * last;
}

static void factor(qr *f)
{
    for (size_t j = 0; f->pick && j < f->n; j++)
        f->pick[j] = j;
    for (size_t j = 0; j < kf_min(f->m, f->n); j++) {
        if (f->pick)
            pivot(f, j);
        if ((f->pick && exhausted(f, j)) || !reflector(f, j))
            break;
        f->rank++;
    }
}

/* The whole: [T S] is the upper part of `first`; `second` its transpose's. */
typedef struct both {
    qr first, second;
} both;

static kofn_status factor_both(both *b, size_t wide)
{
    qr *f = &b->first, *g = &b->second;

    factor(f);
    if (f->rank == f->n)
        return KOFN_OK;
    TRY(qr_new(g, f->n, f->rank, wide, false));
    for (size_t i = 0; i < f->rank; i++)
        for (size_t j = i; j < f->n; j++)
            g->A[j * f->rank + i] = f->A[i * f->n + j];
    factor(g);
    return KOFN_OK;
}

/* X := T^-1 X, or T'^-1 X, with the triangle of a factored matrix. */
static void solve_upper(const qr *f, size_t n, double *X, size_t cols)
{
    for (size_t i = n; i-- > 0;) {
        kf_code_subtract_product(
            &(kf_difference){1, n - i - 1, cols, f->A + i * f->n + i + 1, f->n,
                             X + (i + 1) * cols, cols, X + i * cols, cols});
        for (size_t c = 0; c < cols; c++)
            X[i * cols + c] /= f->A[i * f->n + i];
    }
}

static void solve_lower(const qr *f, size_t n, double *X, size_t cols)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t c = 0; c < cols; c++)
            X[i * cols + c] /= f->A[i * f->n + i];
        for (size_t j = i + 1; j < n; j++)
            for (size_t c = 0; c < cols; c++)
                X[j * cols + c] -= f->A[i * f->n + j] * X[i * cols + c];
    }
}

/* D' += (G')^+ Y; Y (symbols x wants) is destroyed, X is results x wants. */
static void apply(both *b, double *Y, size_t wants, double *X, double *Dt)
{
    qr *f = &b->first, *g = &b->second;
    size_t r = f->rank;

    for (size_t j = 0; j < r; j++)
        reflect(f, j, wants, Y, wants);
    memset(X, 0, f->n * wants * sizeof *X);
    if (r)
        memcpy(X, Y, r * wants * sizeof *X);
    if (!g->A) {
        solve_upper(f, r, X, wants);
    } else {
        solve_lower(g, r, X, wants);
        for (size_t j = r; j-- > 0;)
            reflect(g, j, wants, X, wants);
    }
    for (size_t j = 0; j < f->n; j++)
        for (size_t w = 0; w < wants; w++)
            Dt[f->pick[j] * wants + w] += X[j * wants + w];
}

/* Y = W' - G' D', with the symbols as scaled in M. */
static void residual(const kf_equation *q, const double *M, const double *scale,
                     const double *Dt, double *Y)
{
    size_t symbols = q->symbols, results = q->results, wants = q->wants;

    for (size_t s = 0; s < symbols; s++)
        for (size_t w = 0; w < wants; w++)
            Y[s * wants + w] = q->W[w * symbols + s] * scale[s];
    kf_code_subtract_product(&(kf_difference){symbols, results, wants, M,
                                              results, Dt, wants, Y, wants});
}

/* The largest over the smallest entry of the triangle: about the condition. */
static double spread_of(const both *b)
{
    const qr *f = b->second.A ? &b->second : &b->first;
    double top = 0, low = HUGE_VAL;

    for (size_t i = 0; i < b->first.rank; i++) {
        top = kf_larger(top, fabs(f->A[i * f->n + i]));
        low = fmin(low, fabs(f->A[i * f->n + i]));
    }
    return b->first.rank ? top / low : 1;
}

/* A = M = G' with rows scaled by powers of two to norms of about 1. */
static void fill(size_t results, size_t symbols, const double *G, double *M,
                 double *A, double *scale)
{
    for (size_t s = 0; s < symbols; s++) {
        double top = 0;
        int e;

        for (size_t r = 0; r < results; r++)
            top = fmax(top, fabs(G[r * symbols + s]));
        frexp(top, &e);
        scale[s] =
            top > 0 && isfinite(top) ? ldexp(1, e < -1000 ? 1000 : -e) : 1;
        for (size_t r = 0; r < results; r++)
            A[s * results + r] = M[s * results + r] =
                G[r * symbols + s] * scale[s];
    }
}

kofn_status kf_pseudo(const kf_equation *q, double *D, double *condition)
{
    size_t results = q->results, symbols = q->symbols, wants = q->wants;
    both b = {0};
    double *M = kofn_layout_table(symbols, results);
    double *scale = kf_new(symbols, sizeof *scale);
    double *Y = kofn_layout_table(symbols, wants);
    double *X = kofn_layout_table(results, wants);
    double *Dt = kofn_layout_table(results, wants);
    kofn_status st = qr_new(&b.first, symbols, results, wants, true);

    if (!M || !scale || !Y || !X || !Dt)
        st = KOFN_NOMEM;
    if (!st) {
        fill(results, symbols, q->G, M, b.first.A, scale);
        st = factor_both(&b, wants);
    }
    for (int pass = 0; pass < 2 && !st; pass++) {
        residual(q, M, scale, Dt, Y);
        apply(&b, Y, wants, X, Dt);
    }
    for (size_t r = 0; r < results && !st; r++)
        for (size_t w = 0; w < wants; w++)
            D[w * results + r] = Dt[r * wants + w];
    if (!st)
        *condition = spread_of(&b);
    qr_free(&b.first);
    qr_free(&b.second);
    kf_free(M);
    kf_free(scale);
    kf_free(Y);
    kf_free(X);
    kf_free(Dt);
    return st;
}
