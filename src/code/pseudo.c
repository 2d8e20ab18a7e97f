/* pseudo.c -- D = W G^+ for a G of any shape and rank.
 *
 * Results are G times symbols, and W times symbols is wanted.  So D must
 * satisfy D G = W.  There may be more results than symbols.  There may be fewer
 * if not every symbol matters (a sum of gradients).  Results may repeat each
 * other.  Of all D that come closest to D G = W, the smallest is taken, because
 * it adds up the least rounding of the workers.
 *
 * Householder QR with column pivoting of G' shows the rank,
 *
 *     G' Pi = Q [T S; 0 0],      D' = Pi [T S]^+ Q' W'.
 *
 * If there are more results than the rank, a second QR, [T S]' = Z U, gives the
 * minimum norm (the "complete orthogonal decomposition": Golub and Van Loan,
 * Matrix Computations, section 5.5).  The units of the symbols do not change D.
 * So the columns of G are first scaled to about the same size, because powers
 * of points would hide the rank.  Solving for D' rather than for G^+ makes D G
 * - W small, which is the error of the answer.  One step of refinement removes
 * the error of the elimination, which halves the total.
 *
 * Owns its scratch within a call; D belongs to the caller.  Sums have the same
 * order on every machine, so it uses no BLAS and no fused multiply-add. */
#include "qr.h"

#include <assert.h>
#include <math.h>

/* Columns of an ill-conditioned matrix fade step by step; such noise must show.
 * A drop below this factor at once is rounding. */
#define CLIFF 1e-4

/* Both factorizations: [T S] is the upper part of `first`; `second` factors its
 * transpose. */
typedef struct both {
    kf_qr first, second;
    kf_arrays arrays;
} both;

static kofn_status factor_both(both *b, size_t wide)
{
    kf_qr *f = &b->first, *g = &b->second;

    assert(!g->A);
    kf_qr_factor(f);
    assert(f->rank <= f->n);
    if (f->rank == f->n)
        return KOFN_OK;
    kf_qr_new(g, &b->arrays, f->n, f->rank, wide);
    TRY(kf_arrays_status(&b->arrays));
    for (size_t i = 0; i < f->rank; i++)
        for (size_t j = i; j < f->n; j++)
            g->A[j * f->rank + i] = f->A[i * f->n + j];
    kf_qr_factor(g);
    return KOFN_OK;
}

/* Computes X := T^-1 X, or T'^-1 X, with the triangle of a factored matrix. */
static void solve_upper(const kf_qr *f, size_t n, double *X, size_t cols)
{
    assert(n <= f->n);
    assert(n <= f->m);
    for (size_t i = n; i-- > 0;) {
        kf_code_subtract_product(
            &(kf_difference){1, n - i - 1, cols, f->A + i * f->n + i + 1, f->n,
                             X + (i + 1) * cols, cols, X + i * cols, cols});
        for (size_t c = 0; c < cols; c++)
            X[i * cols + c] /= f->A[i * f->n + i];
    }
}

static void solve_lower(const kf_qr *f, size_t n, double *X, size_t cols)
{
    assert(n <= f->n);
    assert(n <= f->m);
    for (size_t i = 0; i < n; i++) {
        for (size_t c = 0; c < cols; c++)
            X[i * cols + c] /= f->A[i * f->n + i];
        for (size_t j = i + 1; j < n; j++)
            for (size_t c = 0; c < cols; c++)
                X[j * cols + c] -= f->A[i * f->n + j] * X[i * cols + c];
    }
}

/* Computes D' += (G')^+ Y.  Y (symbols x wants) is destroyed; X is results x
 * wants. */
static void apply(both *b, double *Y, size_t wants, double *X, double *Dt)
{
    kf_qr *f = &b->first, *g = &b->second;
    size_t r = f->rank;

    assert(f->pick);
    for (size_t j = 0; j < r; j++)
        kf_qr_reflect(f, j, wants, Y + j * wants, wants);
    memset(X, 0, f->n * wants * sizeof *X);
    if (r)
        memcpy(X, Y, r * wants * sizeof *X);
    if (!g->A) {
        solve_upper(f, r, X, wants);
    } else {
        solve_lower(g, r, X, wants);
        for (size_t j = r; j-- > 0;)
            kf_qr_reflect(g, j, wants, X + j * wants, wants);
    }
    for (size_t j = 0; j < f->n; j++)
        for (size_t w = 0; w < wants; w++)
            Dt[f->pick[j] * wants + w] += X[j * wants + w];
}

/* Computes Y = W' - G' D', with the symbols scaled as in M. */
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

/* Returns the largest divided by the smallest diagonal entry of the triangle,
 * roughly the condition number. */
static double spread_of(const both *b)
{
    const kf_qr *f = b->second.A ? &b->second : &b->first;
    double top = 0, low = HUGE_VAL;

    for (size_t i = 0; i < b->first.rank; i++) {
        top = kf_larger(top, fabs(f->A[i * f->n + i]));
        low = fmin(low, fabs(f->A[i * f->n + i]));
    }
    return b->first.rank ? top / low : 1;
}

/* Sets A = M = G' with rows scaled by powers of two to norms of about 1. */
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

static kofn_status solve(both *b, const kf_equation *q, double *D,
                         double *condition)
{
    size_t results = q->results, symbols = q->symbols, wants = q->wants;
    kf_arrays *a = &b->arrays;
    double *M = kf_arrays_table(a, symbols, results);
    double *scale = kf_arrays_new(a, symbols, sizeof *scale);
    double *Y = kf_arrays_table(a, symbols, wants);
    double *X = kf_arrays_table(a, results, wants);
    double *Dt = kf_arrays_table(a, results, wants);

    assert(!b->first.A);
    kf_qr_new(&b->first, a, symbols, results, wants);
    b->first.pick = kf_arrays_new(a, results, sizeof *b->first.pick);
    b->first.nothing = 0x1p-52 * (double)kf_max(symbols, results);
    b->first.cliff = CLIFF;
    TRY(kf_arrays_status(a));
    fill(results, symbols, q->G, M, b->first.A, scale);
    TRY(factor_both(b, wants));
    for (int pass = 0; pass < 2; pass++) {
        residual(q, M, scale, Dt, Y);
        apply(b, Y, wants, X, Dt);
    }
    for (size_t r = 0; r < results; r++)
        for (size_t w = 0; w < wants; w++)
            D[w * results + r] = Dt[r * wants + w];
    *condition = spread_of(b);
    return KOFN_OK;
}

kofn_status kf_pseudo(const kf_equation *q, double *D, double *condition)
{
    both b = {0};
    kofn_status st = solve(&b, q, D, condition);

    kf_arrays_free(&b.arrays);
    return st;
}
