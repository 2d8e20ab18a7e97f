/* fit.c -- tests whether the results of a few nodes explain a column of
 * syndromes.
 *
 * They do if little of the column v remains after the columns H_U of H are
 * removed from it by Gram-Schmidt.  A search tests many sets of nodes, and
 * nearly all of them explain nothing.  So with at most WIDEST results, the
 * products of all columns are computed once.  For each set, the products of U
 * and of v / |v| are then eliminated, which is much less work.  The last pivot
 * is the square of the remainder of v / |v|.  Several sets are eliminated side
 * by side, one in each place of all vectors.
 *
 * If a code is closed, the products of two nodes' columns are those of a
 * quaternion with 1, i, j, k.  Those of one node are a multiple of the
 * identity.  So the elimination runs on quaternions, from the first columns
 * only, with a sixteenth of the work.  The deviation of the products from
 * quaternions is measured.
 *
 * The computed pivot is the exact last pivot of a nearby matrix.  For n columns
 * of length at most 1 it differs by at most e = (n + q) n 2^-52 in norm (N. J.
 * Higham, "Accuracy and stability of numerical algorithms", 2002, theorem
 * 10.3), plus the deviation from quaternions.  So the pivot is off by at most e
 * (1 + |x|^2) in first order, where H_U x is nearest to v / |v|.  If the pivot
 * could be within the limit after this error, the set is tested again, exactly.
 *
 * A kf_fit is for one thread.  It proves nothing: certain.c does. */
#include "syndrome.h"

#include "base/vectors.h"

#include <assert.h>

#define VECTORS KF_VECTORS()
/* For functions inlined into VECTORS functions. */
#define INLINE __attribute__((always_inline)) static inline

/* A column of H with less length than this left depends on the columns before
 * it. */
#define DEPENDENT 1e-12
/* Pivots below this may be only rounding. */
#define SMALL 1e-8
/* Most results for which all products are computed. */
#define WIDEST 256

/* ---- setting up ---------------------------------------------------------- */

void kf_fit_new(kf_fit *f, kf_arrays *a, const kf_evidence *e)
{
    size_t n = e->nodes * e->components, q = e->q, parts = e->closed ? 4 : 1;
    size_t numbers = sizeof(double);
    bool quick = n <= WIDEST;
    size_t ld = quick ? n / parts + 1 : 0, pivots = quick ? q / parts + 1 : 0;

    *f = (kf_fit){.components = e->components,
                  .rows = n,
                  .quick = quick,
                  .parts = parts,
                  .rng = kf_rng_stream(1, KF_FOR_SAMPLE, 0, 0)};
    f->columns = kf_arrays_new(a, n * q, numbers);
    f->v = kf_arrays_new(a, q, numbers);
    f->left = kf_arrays_new(a, (q + 2) * q, numbers);
    f->A = kf_arrays_new(a, ld * ld * parts, numbers);
    f->R = kf_arrays_new(a, pivots * pivots * parts * KF_SETS, numbers);
    f->at = kf_arrays_new(a, pivots * KF_SETS, sizeof *f->at);
    f->drawn = kf_arrays_new(a, e->nodes, sizeof *f->drawn);
    f->sets = kf_arrays_new(a, KF_SETS * e->nodes, sizeof *f->sets);
    f->random = kf_arrays_new(a, KF_SETS * e->nodes, sizeof *f->random);
}

/* Returns the largest difference between two sets of products.  B has the
 * products of four columns with four others.  The second set is the products of
 * the quaternion in B's first column with 1, i, j, k. */
static double unlike_quaternion(double B[4][4])
{
    double q[4] = {B[0][0], B[1][0], B[2][0], B[3][0]}, most = 0;

    for (size_t l = 0; l < 4; l++)
        for (size_t k = 1; k < 4; k++)
            most = fmax(most, fabs(B[l][k] - kf_code_left_entry(q, l, k)));
    return most;
}

/* Computes the products of the four columns from 4 i on with those from 4 j on.
 */
VECTORS static void multiply_quaternions(kf_fit *f, size_t i, size_t j)
{
    size_t q = f->q, ld = f->rows / 4 + 1;
    double B[4][4];

    assert(j <= i);
    for (size_t l = 0; l < 4; l++)
        for (size_t k = 0; k < 4; k++)
            B[l][k] = kf_code_dot(f->columns + (i * 4 + l) * q,
                                  f->columns + (j * 4 + k) * q, q);
    for (size_t l = 0; l < 4; l++) {
        f->A[(i * ld + j) * 4 + l] = B[l][0];
        f->A[(j * ld + i) * 4 + l] = B[0][l];
    }
    f->unlike = fmax(f->unlike, unlike_quaternion(B));
    for (size_t l = 1; l < 4 && i == j; l++)
        f->unlike = fmax(f->unlike, fabs(B[l][0]));
}

VECTORS static void multiply_numbers(kf_fit *f, size_t i, size_t j)
{
    size_t q = f->q, ld = f->rows + 1;

    assert(j <= i);
    f->A[i * ld + j] = f->A[j * ld + i] =
        kf_code_dot(f->columns + i * q, f->columns + j * q, q);
}

/* Computes A: the products of all columns, and last those with v / |v|. */
VECTORS static void multiply_all(kf_fit *f)
{
    size_t parts = f->parts, n = f->rows / parts, q = f->q;

    f->unlike = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++)
            if (parts == 1)
                multiply_numbers(f, i, j);
            else
                multiply_quaternions(f, i, j);
        for (size_t l = 0; l < parts; l++)
            f->A[(i * (n + 1) + n) * parts + l] =
                kf_code_dot(f->columns + (i * parts + l) * q, f->v, q) /
                f->length;
    }
}

void kf_fit_of(kf_fit *f, const kf_syndromes *t, size_t c)
{
    assert(c < t->columns);
    f->q = t->q;
    for (size_t j = 0; j < f->rows; j++)
        kf_code_get_column(t, j, f->columns + j * f->q);
    kf_code_get_column(t, t->rows + c, f->v);
    f->length = kf_code_length(f->v, f->q);
    if (f->quick)
        multiply_all(f);
}

/* ---- what is left -------------------------------------------------------- */

/* For the remaining length this is as stable as Householder's method. */
VECTORS double kf_fit_left(kf_fit *f, const uint32_t *nodes, size_t n)
{
    size_t q = f->q;
    double *v = f->left, *to = f->left + q;

    memcpy(v, f->v, q * sizeof *v);
    for (size_t i = 0; i < n * f->components; i++) {
        size_t j = nodes[i / f->components] * f->components + i % f->components;
        double norm;

        memcpy(to, f->columns + j * q, q * sizeof *to);
        for (double *u = f->left + q; u < to; u += q)
            kf_axpy(q, -kf_code_dot(u, to, q), u, to);
        norm = kf_code_length(to, q);
        if (!(norm > DEPENDENT))
            continue;
        for (size_t k = 0; k < q; k++)
            to[k] /= norm;
        kf_axpy(q, -kf_code_dot(to, v, q), to, v);
        to += q;
    }
    return kf_code_length(v, q);
}

/* ---- sets side by side --------------------------------------------------- */

/* Computes out -= a b for each set.  An operand is a vector of one number per
 * set, or of the parts of a quaternion one after the other. */
INLINE void subtract_product(size_t parts, const double *restrict a,
                             const double *restrict b, double *restrict out)
{
    enum { J = KF_SETS, K = 2 * J, L = 3 * J };

    for (size_t s = 0; s < KF_SETS; s++, a++, b++, out++) {
        if (parts == 1) {
            out[0] -= a[0] * b[0];
            continue;
        }
        out[0] -= a[0] * b[0] - a[J] * b[J] - a[K] * b[K] - a[L] * b[L];
        out[J] -= a[0] * b[J] + a[J] * b[0] + a[K] * b[L] - a[L] * b[K];
        out[K] -= a[0] * b[K] - a[J] * b[L] + a[K] * b[0] + a[L] * b[J];
        out[L] -= a[0] * b[L] + a[J] * b[K] - a[K] * b[J] + a[L] * b[0];
    }
}

/* Computes to = a / d, or its conjugate. */
INLINE void divide(size_t parts, bool conjugate, const double *restrict a,
                   const double *restrict d, double *restrict to)
{
    for (size_t l = 0; l < parts; l++)
        for (size_t s = 0; s < KF_SETS; s++)
            to[l * KF_SETS + s] =
                (l > 0 && conjugate ? -1 : 1) * a[l * KF_SETS + s] / d[s];
}

/* Eliminates the upper half of m + 1 rows of m + 1 numbers.  *least is the
 * smallest pivot, without the last, of each set. */
INLINE void eliminate(size_t parts, double *R, size_t m, double *least)
{
    size_t one = parts * KF_SETS, ld = (m + 1) * one;
    double f[4 * KF_SETS];

    for (size_t k = 0; k < m; k++) {
        const double *row = R + k * ld, *pivot = row + k * one;

        for (size_t s = 0; s < KF_SETS; s++)
            least[s] = pivot[s] < least[s] ? pivot[s] : least[s];
        for (size_t i = k + 1; i <= m; i++) {
            divide(parts, true, row + i * one, pivot, f);
            for (size_t j = i; j <= m; j++)
                subtract_product(parts, f, row + j * one, R + i * ld + j * one);
        }
    }
}

/* Adds |x|^2 of the solution to *size. */
INLINE void size_of_solution(size_t parts, double *R, size_t m, double *size)
{
    size_t one = parts * KF_SETS, ld = (m + 1) * one;
    double x[4 * KF_SETS];

    for (size_t k = m; k > 0; k--) {
        double *row = R + (k - 1) * ld;

        divide(parts, false, row + m * one, row + (k - 1) * one, x);
        for (size_t l = 0; l < parts; l++)
            for (size_t s = 0; s < KF_SETS; s++)
                size[s] += x[l * KF_SETS + s] * x[l * KF_SETS + s];
        for (size_t i = 0; i + 1 < k; i++)
            subtract_product(parts, R + i * ld + (k - 1) * one, x,
                             R + i * ld + m * one);
    }
}

/* Finds the positions of the products of the m columns of each set, and of v.
 */
static void find_rows(kf_fit *f, const uint32_t *nodes, size_t m)
{
    uint32_t each = (uint32_t)(f->components / f->parts);
    size_t n = m / each;

    assert(m % (f->components / f->parts) == 0);
    for (size_t s = 0; s < KF_SETS; s++) {
        uint32_t *at = f->at + s;

        for (size_t i = 0; i < n; i++)
            for (uint32_t l = 0; l < each; l++, at += KF_SETS)
                *at = nodes[s * n + i] * each + l;
        *at = (uint32_t)(f->rows / f->parts);
    }
}

/* Gathers these products for each set: the upper half of m rows, and 1. */
INLINE void gather(size_t parts, kf_fit *f, size_t m)
{
    size_t ld = f->rows / parts + 1;
    double *to = f->R;

    for (size_t i = 0; i < m; i++) {
        const double *from[KF_SETS];

        for (size_t s = 0; s < KF_SETS; s++)
            from[s] = f->A + f->at[i * KF_SETS + s] * ld * parts;
        to = f->R + i * (m + 2) * parts * KF_SETS;
        for (const uint32_t *at = f->at + i * KF_SETS;
             at <= f->at + m * KF_SETS; at += KF_SETS, to += parts * KF_SETS)
            for (size_t s = 0; s < KF_SETS; s++)
                for (size_t l = 0; l < parts; l++)
                    to[l * KF_SETS + s] = from[s][at[s] * parts + l];
    }
    to = f->R + m * (m + 2) * parts * KF_SETS;
    for (size_t i = 0; i < parts * KF_SETS; i++)
        to[i] = i < KF_SETS;
}

VECTORS static void solve(kf_fit *f, size_t m, double *least, double *size)
{
    if (f->parts == 1) {
        gather(1, f, m);
        eliminate(1, f->R, m, least);
        size_of_solution(1, f->R, m, size);
    } else {
        gather(4, f, m);
        eliminate(4, f->R, m, least);
        size_of_solution(4, f->R, m, size);
    }
}

unsigned kf_fit_surely_more(kf_fit *f, const uint32_t *nodes, size_t n,
                            double limit)
{
    size_t all = n * f->components, m = all / f->parts;
    double share = limit / f->length, off, least[KF_SETS], size[KF_SETS];
    unsigned more = 0;

    if (!f->quick || all > f->q)
        return 0;
    for (size_t s = 0; s < KF_SETS; s++) {
        least[s] = 1;
        size[s] = 1;
    }
    find_rows(f, nodes, m);
    solve(f, m, least, size);
    off = (double)((all + 1 + f->q) * (all + 1)) * 0x1p-52 +
          (double)all * f->unlike;
    for (size_t s = 0; s < KF_SETS; s++) {
        double left = f->R[(m * (m + 2) * f->parts) * KF_SETS + s];

        if (least[s] > SMALL && left - off * size[s] > share * share)
            more |= 1u << s;
    }
    return more;
}

/* ---- guessing ------------------------------------------------------------ */

static void swap(uint32_t *nodes, size_t i, size_t j)
{
    uint32_t node = nodes[i];

    nodes[i] = nodes[j];
    nodes[j] = node;
}

/* Draws `times` random choices of `want` of the n nodes and keeps them.  Each
 * becomes the first `want` entries of nodes[]. */
static void draw(kf_fit *f, uint32_t *nodes, size_t n, size_t want,
                 size_t times)
{
    uint32_t *set = f->sets;
    const uint64_t *x = f->random;

    assert(want <= n);
    assert(times <= KF_SETS);
    kf_rng_fill(&f->rng, f->random, times * want);
    for (; times > 0; times--, set += want)
        for (size_t i = 0; i < want; i++) {
            swap(nodes, i, i + (size_t)kf_rng_scale(*x++, n - i));
            set[i] = nodes[i];
        }
}

bool kf_fit_choose(kf_fit *f, uint32_t *nodes, size_t n, size_t want,
                   double limit, kf_budget *b)
{
    double rest = b->left;
    bool found = false;

    assert(want <= n);
    while (rest > 0 && !found) {
        kf_rng was = f->rng;
        unsigned more;
        size_t i;

        memcpy(f->drawn, nodes, n * sizeof *nodes);
        draw(f, nodes, n, want, KF_SETS);
        more = kf_fit_surely_more(f, f->sets, want, limit);
        for (i = 0; i < KF_SETS && rest > 0 && !found; i++) {
            found = !(more >> i & 1) &&
                    kf_fit_left(f, f->sets + i * want, want) <= limit;
            rest -= found ? 0 : b->each;
        }
        if (i == KF_SETS)
            continue;
        f->rng = was; /* continue as if only i sets had been drawn */
        memcpy(nodes, f->drawn, n * sizeof *nodes);
        draw(f, nodes, n, want, i);
    }
    b->left = rest;
    return found;
}

size_t kf_fit_reduce(kf_fit *f, uint32_t *nodes, size_t n, double limit)
{
    for (size_t i = n; i > 0; i--) {
        swap(nodes, i - 1, n - 1);
        if (kf_fit_left(f, nodes, n - 1) <= limit)
            n--;
        else
            swap(nodes, i - 1, n - 1);
    }
    return n;
}
