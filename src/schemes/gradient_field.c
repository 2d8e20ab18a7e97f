/* gradient_field.c -- matrices M (gradient.h) over the complex numbers and the
 * quaternions.
 *
 * Stride-DFT: M_iq = exp(2 pi i f_q stride i / n) / sqrt d.  The frequencies
 * are ordered so that the last s columns are consecutive for every s.  Any d
 * rows are independent, like those of a Vandermonde matrix, and all runs of d
 * seats are equivalent.  The stride is chosen so that these runs are best
 * conditioned.  Each frequency occurs with its opposite.  So the columns are
 * also combinations of cosines and sines, and so are the combinations that are
 * zero at the missing seats.  Decoders can therefore multiply by real numbers
 * first (factor.c).
 *
 * Quaternions: random orthonormal columns, the best of several draws.  Nearly
 * singular sets of rows are much rarer than with real or complex numbers
 * (docs/numerics.md).
 *
 * Writes into the arrays of the dual and owns nothing.  Cosines come from
 * kf_code_cossin, so they are the same on every machine. */
#include "gcd.h"
#include "gradient.h"

/* Up to this d complex numbers are as good as quaternions. */
#define COMPLEX 8
/* Number of draws, and of multiply-adds that they may take. */
#define DRAWS 20
#define DRAWING 4e8

/* ---- complex ------------------------------------------------------------- */

/* Returns twice the frequency of column q modulo 2 n: .., 2, -1, 1, 0 at the
 * end, minus 1/2 if d is even. */
static size_t frequency(size_t q, size_t n, size_t d)
{
    size_t e = d - 1 - q, f = e % 2 ? e + 1 : 2 * n - e % (2 * n);

    return (f + (d % 2 ? 0 : 2 * n - 1)) % (2 * n);
}

static void dft_entry(size_t at, size_t n, double scale, size_t wide,
                      double *out)
{
    double c, s;

    kf_code_cossin(at, n, &c, &s);
    out[0] = out[wide + 1] = c * scale;
    out[1] = -s * scale;
    out[wide] = s * scale;
}

/* Fills the first `rows` rows. */
static void dft_rows(size_t n, size_t d, size_t stride, size_t rows, double *M)
{
    size_t wide = 2 * d;

    for (size_t i = 0; i < rows; i++)
        for (size_t q = 0; q < d; q++)
            dft_entry(frequency(q, n, d) * (stride * i % (2 * n)) % (2 * n),
                      2 * n, 1 / sqrt((double)d), wide,
                      M + 2 * i * wide + 2 * q);
}

/* Computes |inverse| of d consecutive seats; it is the same for each run. */
static kofn_status window_spread(size_t n, size_t d, size_t stride, double *N,
                                 double *X, double *spread)
{
    size_t w = 2 * d;
    kofn_status st;

    for (size_t e = 0; e < w * w; e++)
        X[e] = e % (w + 1) == 0;
    dft_rows(n, d, stride, d, N);
    st = kf_solve(w, N, w, w, X, w);
    *spread = kf_code_sum(X, X, w * w);
    return st;
}

static kofn_status best_stride(size_t n, size_t d, size_t *stride)
{
    double *N = kofn_layout_table(2, 4 * d * d), *X = N + 4 * d * d;
    double best = HUGE_VAL;
    kofn_status st = N ? KOFN_OK : KOFN_NOMEM;

    *stride = 1;
    for (size_t s = 1; s <= n / 2 && !st; s++) {
        double spread;

        if (kf_gcd(s, n) > 1)
            continue;
        st = window_spread(n, d, s, N, X, &spread);
        if (st == KOFN_UNSTABLE)
            st = KOFN_OK;
        else if (spread < best * (1 - 1e-9)) { /* the gain exceeds rounding */
            best = spread;
            *stride = s;
        }
    }
    kofn_free(N);
    return st;
}

static kofn_status dft_M(kf_dual *u)
{
    size_t stride;

    TRY(best_stride(u->n, u->d, &stride));
    dft_rows(u->n, u->d, stride, u->n, u->M);
    return KOFN_OK;
}

/* ---- quaternions --------------------------------------------------------- */

/* Fills row `name` with Gaussian numbers of the field, as `field` real rows. */
static void random_row(size_t f, size_t name, size_t count, uint64_t seed,
                       double *scratch, double *out)
{
    size_t wide = count * f;
    kf_family gauss = {KF_BASIS_GAUSS, 1, wide, 0, seed, NULL};

    kf_basis_rows(&gauss, name, scratch);
    for (size_t q = 0; q < count; q++) {
        const double *x = scratch + q * f;
        double *at = out + q * f;

        for (size_t s = 0; f == 4 && s < 4; s++)
            for (size_t t = 0; t < 4; t++)
                at[s * wide + t] = kf_code_left_entry(x, s, t);
        at[0] = x[0];
        if (f == 2) {
            at[1] = -x[1];
            at[wide] = x[1];
            at[wide + 1] = x[0];
        }
    }
}

static kofn_status random_rows(size_t f, size_t rows, size_t count,
                               uint64_t seed, double *out)
{
    double *scratch = kofn_layout_table(count, f);

    for (size_t r = 0; r < rows && scratch; r++)
        random_row(f, r, count, seed, scratch, out + r * f * count * f);
    kofn_free(scratch);
    return scratch ? KOFN_OK : KOFN_NOMEM;
}

static kofn_status orthonormal_M(kf_dual *u, uint64_t seed)
{
    size_t wide = u->d * u->field;

    TRY(random_rows(u->field, u->n, u->d, seed, u->M));
    kf_code_orthonormalise(&(kf_vectors){wide, u->n * u->field, u->M, 1, wide});
    return KOFN_OK;
}

/* Makes several draws and keeps the one with the best conditioned runs of d
 * seats. */
static kofn_status best_orthonormal_M(kf_dual *u, size_t draws, uint64_t seed)
{
    double best = HUGE_VAL;
    size_t chosen = 0;
    kofn_status st = KOFN_OK;

    for (size_t k = 0; k < draws && draws > 1 && !st; k++) {
        st = orthonormal_M(u, kf_state64(seed, k));
        if (!st)
            st = kf_dual_encode(u);
        if (!st && kf_dual_spread(u) < best) {
            best = kf_dual_spread(u);
            chosen = k;
        }
        if (st == KOFN_UNSTABLE) /* singular: try the next draw */
            st = KOFN_OK;
    }
    return st ? st : orthonormal_M(u, kf_state64(seed, chosen));
}

/* ---- which --------------------------------------------------------------- */

size_t kf_gradient_best_field(size_t d)
{
    return d == 1 ? 1 : d <= COMPLEX ? 2 : 4;
}

static size_t draws_for(const kf_dual *u, long given)
{
    double w = (double)(u->d * u->field);
    double most = DRAWING / (w * w * w * (double)u->n);

    if (given != KOFN_AUTO)
        return (size_t)given;
    if (u->n == u->d) /* all seats together are orthogonal */
        return 1;
    return most < 1 ? 1 : most < DRAWS ? (size_t)most : DRAWS;
}

kofn_status kf_dual_fill(kf_dual *u, long draws, uint64_t seed)
{
    if (u->field == 2)
        TRY(dft_M(u));
    else if (u->field == 4)
        TRY(best_orthonormal_M(u, draws_for(u, draws), seed));
    for (size_t i = 0; u->field == 1 && i < u->n; i++)
        u->M[i] = 1;
    return kf_dual_encode(u);
}

kofn_status kf_dual_random_P(kf_dual *u, uint64_t seed)
{
    return random_rows(u->field, u->submessages * u->d, u->units, seed, u->P);
}
