/* basis.c -- families of coefficients for "any k of n" over the reals.
 *
 * The default is [I; P] with P of dyadic quaternions.  For a random survivor
 * set, a generator over a division algebra of real dimension beta has P(noise >
 * x median) ~ x^-beta.  So each decade of noise is exceeded by 10^4 times fewer
 * sets, against 10 times fewer with real coefficients.  Quaternions are the
 * largest associative division algebra.  A block is cut into four quarters.
 * The coefficient q = (a,b,c,d) acts on them from the left as the real matrix
 *
 *     L(q) = [ a -b -c -d;  b  a -d  c;  c  d  a -b;  d -c  b  a ].
 *
 * Components are (u + 1/2)/32768 - 1, where u has 16 random bits.  They are
 * exact in binary, so every machine makes the same numbers without libm.
 *
 * The state of a family belongs to the layout that opened it.  Coefficients
 * must be the same on every machine, so all cosines and sines come from
 * kf_code_cossin. */
#include "code.h"

#include "base/rng.h"

#include <assert.h>
#include <math.h>

size_t kf_basis_components(kf_basis b)
{
    return b == KF_BASIS_QUATERNION ? 4 : 1;
}

bool kf_basis_open(kf_basis b)
{
    return b == KF_BASIS_QUATERNION || b == KF_BASIS_GAUSS_SYS ||
           b == KF_BASIS_GAUSS;
}

/* ---- points -------------------------------------------------------------- */

/* Computes the cosine and sine of pi x/4, 0 <= x <= 1, for x = num/den. */
static void octant(uint64_t num, uint64_t den, double *c, double *s)
{
    double a = 0.78539816339744830962 * (double)num / (double)den;

    assert(den > 0);
    assert(num <= den);
    *c = cos(a);
    *s = sin(a);
}

void kf_code_cossin(uint64_t num, uint64_t den, double *cosine, double *sine)
{
    uint64_t eighth = 8 * (num % den) / den, rest = 8 * (num % den) % den;
    double c, s;

    if (eighth % 2) {
        octant(den - rest, den, &s, &c);
    } else {
        octant(rest, den, &c, &s);
    }
    switch (eighth / 2) {
    case 0:
        *cosine = c, *sine = s;
        break;
    case 1:
        *cosine = -s, *sine = c;
        break;
    case 2:
        *cosine = -c, *sine = -s;
        break;
    default:
        *cosine = s, *sine = -c;
    }
}

/* Returns the rank of frac(i * golden ratio) among i = 0..n-1 (math/numerics.md
 * 3.2).  It separates neighbouring seats, because machines of one rack or one
 * cyclic window are often lost together. */
static size_t spread(size_t i, size_t n)
{
    const double golden = 0.6180339887498949;
    double mine = (double)i * golden - floor((double)i * golden);
    size_t rank = 0;

    for (size_t j = 0; j < n; j++) {
        double f = (double)j * golden - floor((double)j * golden);
        rank += f < mine;
    }
    return rank;
}

double kf_code_chebyshev_point(size_t i, size_t n)
{
    double c, s;

    assert(n > 0);
    kf_code_cossin(2 * spread(i, n) + 1, 4 * n, &c, &s);
    return c;
}

void kf_code_chebyshev_row(double x, size_t k, double *row)
{
    row[0] = 1;
    if (k > 1)
        row[1] = x;
    for (size_t j = 2; j < k; j++)
        row[j] = 2 * x * row[j - 1] - row[j - 2];
}

/* ---- one row of each family ---------------------------------------------- */

/* Returns the power of two nearest to 1/sqrt(k), without libm. */
static double level(size_t k)
{
    double scale = 1;

    assert(k > 0);
    for (size_t four = 2; four <= k; four *= 4) {
        scale /= 2;
        if (four > SIZE_MAX / 4)
            break;
    }
    return scale;
}

static void quaternion(double *rows, size_t k, size_t block, kf_rng *r,
                       double scale)
{
    double q[4];

    assert(block < k);
    for (int i = 0; i < 4; i++)
        q[i] = ((double)(kf_rng_u32(r) >> 16) + 0.5) / 32768 - 1;
    for (size_t s = 0; s < 4; s++)
        for (size_t t = 0; t < 4; t++)
            rows[s * 4 * k + 4 * block + t] =
                kf_code_left_entry(q, s, t) * scale;
}

/* Makes the random entry of (seat, block): four rows of a quaternion, or a
 * real. */
static void random_entry(const kf_family *f, double *rows, size_t seat,
                         size_t block, double scale)
{
    kf_rng r =
        kf_rng_stream(f->seed, KF_FOR_CODE, (uint32_t)seat, (uint32_t)block);

    if (f->basis == KF_BASIS_QUATERNION)
        quaternion(rows, f->k, block, &r, scale);
    else
        rows[block] = kf_rng_normal(&r) * scale;
}

static void unit_rows(double *rows, size_t components, size_t k, size_t block)
{
    assert(block < k);
    for (size_t s = 0; s < components; s++)
        rows[s * components * k + components * block + s] = 1;
}

/* Makes rows of low weight: the blocks floor(i k/n) .. + w-1, cyclically.  With
 * the start i mod k some survivor sets would be singular. */
static void light_rows(const kf_family *f, size_t i, double *rows)
{
    size_t k = f->k, start = i < f->n ? i * k / f->n : 0;
    size_t count = i < f->n ? f->weight : k;

    assert(f->weight <= k);
    for (size_t j = 0; j < count; j++)
        random_entry(f, rows, i, (start + j) % k, level(count));
}

static void harmonic_row(size_t i, size_t n, size_t k, double *row)
{
    size_t odd = k % 2, q = 0;

    if (odd)
        row[q++] = 1;
    for (size_t f = 1; q < k; f++, q += 2) {
        double c, s;

        /* frequency f, or f - 1/2 for even k */
        kf_code_cossin((odd ? 2 * f : 2 * f - 1) * i, 2 * n, &c, &s);
        row[q] = 1.41421356237309504880 * c;
        row[q + 1] = 1.41421356237309504880 * s;
    }
}

static bool systematic(kf_basis b)
{
    return b == KF_BASIS_QUATERNION || b == KF_BASIS_HAAR ||
           b == KF_BASIS_GAUSS_SYS;
}

void kf_basis_rows(const kf_family *f, size_t i, double *rows)
{
    size_t k = f->k;

    if (f->weight > 0) {
        light_rows(f, i, rows);
        return;
    }
    if (systematic(f->basis) && i < k) {
        unit_rows(rows, kf_basis_components(f->basis), k, i);
        return;
    }
    switch (f->basis) {
    case KF_BASIS_QUATERNION:
    case KF_BASIS_GAUSS_SYS:
    case KF_BASIS_GAUSS:
        for (size_t j = 0; j < k; j++)
            random_entry(f, rows, i, j, level(k));
        break;
    case KF_BASIS_HAAR:
        memcpy(rows, (const double *)f->state + (i - k) * k, k * sizeof *rows);
        break;
    case KF_BASIS_HARMONIC:
        harmonic_row(i, f->n, k, rows);
        break;
    }
}

/* ---- a slice of a Haar-distributed orthogonal matrix --------------------- */

void kf_code_orthonormalise(const kf_vectors *a)
{
    for (size_t i = 0; i < a->count; i++) {
        double *x = a->first + i * a->next, norm = 0;

        for (int pass = 0; pass < 2; pass++)
            for (size_t j = 0; j < i; j++) {
                const double *y = a->first + j * a->next;
                double dot = 0;

                for (size_t t = 0; t < a->length; t++)
                    dot += x[t * a->step] * y[t * a->step];
                for (size_t t = 0; t < a->length; t++)
                    x[t * a->step] -= dot * y[t * a->step];
            }
        for (size_t t = 0; t < a->length; t++)
            norm += x[t * a->step] * x[t * a->step];
        for (size_t t = 0; t < a->length; t++)
            x[t * a->step] /= sqrt(norm);
    }
}

/* Makes the rows of P, or its columns if there are fewer.  They are
 * orthonormalised Gaussian vectors, which have the Haar distribution. */
kofn_status kf_basis_prepare(kf_basis b, size_t n, size_t k, uint64_t seed,
                             void **state)
{
    size_t r = n - k;
    bool rows = r <= k;
    kf_vectors a = {rows ? r : k, rows ? k : r, NULL, rows ? k : 1,
                    rows ? 1 : k};

    assert(k <= n);
    *state = NULL;
    if (b != KF_BASIS_HAAR || r == 0)
        return KOFN_OK;
    a.first = *state = kofn_layout_table(r, k);
    if (!a.first)
        return KOFN_NOMEM;
    for (size_t i = 0; i < a.count; i++) {
        kf_rng g = kf_rng_stream(seed, KF_FOR_CODE, (uint32_t)i, 0);

        for (size_t j = 0; j < a.length; j++)
            a.first[i * a.next + j * a.step] = kf_rng_normal(&g);
    }
    kf_code_orthonormalise(&a);
    return KOFN_OK;
}

/* ---- the whole of a row-cut code ----------------------------------------- */

/* Returns the least weight of a row.  Any k of n rows can only be independent
 * if each block is in n-k+1 of them.  With that weight alone, after the loss of
 * neighbours blocks are solved one after the other in a chain.  The noise grows
 * with its length.  One more block in a row for every 48 keeps it in the
 * thousands (docs/numerics.md). */
static size_t least_weight(size_t n, size_t k)
{
    assert(k <= n);
    assert(n > 0);
    return kf_ceil_div(k * (n - k + 1), n);
}

static size_t light_weight(size_t n, size_t k)
{
    return kf_min(k, least_weight(n, k) + k / 48);
}

/* Unknowns of a system that is solved in negligible time. */
#define FEW 512

/* True if seats of a sparse A should mix few parts.  Then no part is plain, so
 * all are solved for, and each number of the answer mixes `parts` results.  If
 * the rows of A have fewer entries, that is more work than the product itself.
 * If most parts are empty, it is wasted. */
static bool light_pays(const kofn_problem *pb, size_t groups, size_t parts)
{
    return parts <= FEW || (pb->m > groups * parts && pb->n > parts);
}

static kofn_status check_code(const char *who, size_t n, size_t k, size_t w,
                              kf_basis b)
{
    if (k > n)
        return kofn_say(KOFN_INVAL,
                        "%s: k = %zu exceeds the %zu workers; ask for "
                        "k <= %zu or for more workers",
                        who, k, n, n);
    if (w > k)
        return kofn_say(KOFN_INVAL, "%s: weight = %zu exceeds k = %zu", who, w,
                        k);
    if (w > 0 && b != KF_BASIS_QUATERNION && b != KF_BASIS_GAUSS)
        return kofn_say(KOFN_INVAL,
                        "%s: a weight goes with basis=quaternion or "
                        "basis=gauss",
                        who);
    if (w > 0 && w < least_weight(n, k))
        return kofn_say(KOFN_INVAL,
                        "%s: with weight = %zu some %zu of %zu workers miss "
                        "a block; ask for weight >= %zu",
                        who, w, k, n, least_weight(n, k));
    return KOFN_OK;
}

kofn_status kf_basis_layout(kofn_layout *L, size_t n, size_t groups,
                            size_t all_but)
{
    kf_basis b = (kf_basis)kofn_arg(L, "basis");
    long given = kofn_arg(L, "k"), weight = kofn_arg(L, "weight");
    size_t k = given == KOFN_AUTO ? n - all_but : (size_t)given, w = 0;

    if (n % groups || k % groups)
        return kofn_say(KOFN_INVAL,
                        "groups = %zu must divide the %zu workers and "
                        "k = %zu",
                        groups, n, k);
    if (weight != KOFN_AUTO)
        w = (size_t)weight;
    else if (L->problem.sparse && b == KF_BASIS_QUATERNION && k <= n &&
             light_pays(&L->problem, groups,
                        k / groups * kf_basis_components(b)))
        w = light_weight(n / groups, k / groups);
    TRY(check_code("code", n / groups, k / groups, w, b));
    kofn_arg_choose(L, "k", (long)k);
    kofn_arg_choose(L, "weight", (long)w);
    L->groups = groups;
    L->seats = n / groups;
    L->max_seats = kf_basis_open(b) ? SIZE_MAX : L->seats;
    L->enough = k / groups;
    L->components = kf_basis_components(b);
    L->cut[0].rows = L->enough * L->components;
    L->free_state = kofn_free;
    return kf_basis_prepare(b, L->seats, L->enough, L->seed, &L->state);
}

kofn_status kf_basis_seat(const kofn_layout *L, size_t seat, double *E0,
                          double *E1, double *G)
{
    kf_family f = {(kf_basis)kofn_arg(L, "basis"), L->seats, L->enough,
                   (size_t)kofn_arg(L, "weight"),  L->seed,  L->state};

    (void)E1;
    (void)G;
    if (f.k == 1) /* every seat has A itself, and integers stay integers */
        unit_rows(E0, kf_basis_components(f.basis), 1, 0);
    else
        kf_basis_rows(&f, seat, E0);
    return KOFN_OK;
}
