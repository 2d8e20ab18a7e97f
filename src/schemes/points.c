/* points.c -- the rows of polynomial codes at their evaluation points.
 *
 * On the circle, x = exp(i theta), everything can be made real.  Exponents are
 * counted from their middle, so reversing both axes of an operand turns each of
 * its terms into the conjugate.  The unitary matrix
 *
 *     U = 1/sqrt2 [ 1  -i ]    on the axis positions a, size-1-a
 *                 [ 1  +i ]
 *
 * mixes the parts accordingly; the middle position stays as it is.  The
 * coefficients are real with at most four terms each, and the conditioning is
 * that of complex roots of unity.  The product is a real trigonometric
 * polynomial.  The symbols are its coefficients in the basis sqrt2 cos, sqrt2
 * sin.  Undoing U on both axes of the product gives the wants.  Angles are
 * reduced as integers, because floating-point e theta loses a factor of 3 to 10
 * in accuracy.
 *
 * Complex points are the same without U, with two real numbers for each.  Three
 * other bases serve for comparison: powers of Chebyshev points, powers of 1..N,
 * and orthonormal Chebyshev polynomials (Fahim, Cadambe, "Numerically stable
 * polynomially coded computing", 2019).
 *
 * If nothing is summed, the symbols are the products of parts and G is the
 * outer product of the rows of both operands.
 *
 * Keeps no state. */
#include "gcd.h"
#include "polynomial.h"

#include <math.h>

#define ROOT_HALF 0.70710678118654752440

typedef struct cplx {
    double re, im;
} cplx;

static cplx times(cplx a, cplx b)
{
    return (cplx){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

static cplx conj_of(cplx a)
{
    return (cplx){a.re, -a.im};
}

/* Returns U[row][col] for this size; row is col or its mirror position. */
static cplx mirror(size_t size, size_t row, size_t col)
{
    size_t other = size - 1 - col;

    if (col == other)
        return (cplx){1, 0};
    if (col < other)
        return (cplx){ROOT_HALF, 0};
    return (cplx){0, row < col ? -ROOT_HALF : ROOT_HALF};
}

/* ---- points -------------------------------------------------------------- */

/* Returns the place of a seat on the circle of n points.  Neighbouring seats
 * are often lost together.  So they are about 0.618 of the circle apart, by the
 * nearest step that is coprime to n. */
static size_t place_of(size_t seat, size_t n)
{
    size_t near = (size_t)(0.6180339887498949 * (double)n + 0.5);

    for (size_t d = 0; d < near; d++) {
        if (kf_gcd(near + d, n) == 1)
            return (near + d) * (seat % n) % n;
        if (kf_gcd(near - d, n) == 1)
            return (near - d) * (seat % n) % n;
    }
    return seat % n;
}

/* Returns exp(i half theta / 2) at place `at` of n, with half = up - down. */
static cplx root(size_t up, size_t down, size_t at, size_t n)
{
    size_t whole = 2 * n, half = (up % whole + whole - down % whole) % whole;
    cplx z;

    kf_code_cossin((uint64_t)half * at % whole, whole, &z.re, &z.im);
    return z;
}

/* Computes x^e at the complex point `at` of n. */
static void root_power(size_t e, size_t at, size_t n, double *re, double *im)
{
    size_t whole = 4 * n;

    kf_code_cossin((uint64_t)(e % whole) * (4 * at + 1) % whole, whole, re, im);
}

static double power(double x, size_t e)
{
    double y = 1;

    for (; e; e /= 2, x *= x)
        if (e % 2)
            y *= x;
    return y;
}

/* Returns the real point of a seat: a Chebyshev point, spread, or seat + 1. */
static double point_of(const kf_cut_shape *s, size_t seat)
{
    return s->basis == KF_VANDERMONDE
               ? (double)seat + 1
               : kf_code_chebyshev_point(seat, s->points);
}

/* ---- exponents ----------------------------------------------------------- */

/* The grid of an operand.  Part (a, b) has the exponent ea a + eb b; a reversed
 * axis counts backwards.  U is conjugated on the summed axis. */
typedef struct grid {
    size_t rows, cols, er, ec;
    bool back_rows, back_cols; /* the summed axis of the input */
} grid;

static grid grid_of_A(const kf_cut_shape *s)
{
    return (grid){s->m, s->n, s->eu, s->ev, false, false};
}

static grid grid_of_input(const kf_cut_shape *s)
{
    return s->left ? (grid){s->p, s->m, s->ew, s->eu, false, true}
                   : (grid){s->n, s->p, s->ev, s->ew, true, false};
}

static size_t exponent(const grid *g, size_t a, size_t b)
{
    assert(a < g->rows && b < g->cols);
    return g->er * (g->back_rows ? g->rows - 1 - a : a) +
           g->ec * (g->back_cols ? g->cols - 1 - b : b);
}

/* Returns the number of the product (f, k) among the wants; f is the part of
 * the kept axis. */
static size_t want_of(const kf_cut_shape *s, size_t f, size_t k)
{
    return s->left ? k + s->p * f : f + s->kept * k;
}

/* Returns the exponent of that product. */
static size_t exponent_of(const kf_cut_shape *s, size_t f, size_t k)
{
    return s->ek * f + s->es * (s->sum - 1) + s->ew * k;
}

/* ---- the circle ---------------------------------------------------------- */

/* Lists position i and its mirror, unless i is the middle; returns their
 * number. */
static size_t mirrored(size_t size, size_t i, size_t at[2])
{
    at[0] = i;
    at[1] = size - 1 - i;
    return at[0] == at[1] ? 1 : 2;
}

static double circle_coefficient(const grid *g, size_t a, size_t b, size_t at,
                                 size_t n)
{
    size_t middle = g->er * (g->rows - 1) + g->ec * (g->cols - 1);
    size_t as[2], bs[2], rows = mirrored(g->rows, a, as);
    size_t cols = mirrored(g->cols, b, bs);
    double sum = 0;

    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++) {
            cplx u = mirror(g->rows, as[i], a);
            cplx v = mirror(g->cols, bs[j], b);
            cplx z = root(2 * exponent(g, as[i], bs[j]), middle, at, n);

            u = times(g->back_rows ? conj_of(u) : u,
                      g->back_cols ? conj_of(v) : v);
            sum += times(u, z).re;
        }
    return sum;
}

/* Computes the real coefficients of the product: sqrt2 cos and -sqrt2 sin of
 * the d-th angle from the middle, and 1 in the middle. */
static void circle_symbols(const kf_cut_shape *s, size_t at, double *G)
{
    size_t D = s->K - 1;

    for (size_t d = 0; d < s->K; d++) {
        cplx z = d < D - d ? root(D, 2 * d, at, s->points)
                           : root(2 * d, D, at, s->points);

        if (d == D - d)
            G[d] = 1;
        else
            G[d] = KF_ROOT_TWO * (d < D - d ? z.re : -z.im);
    }
}

/* Applies conj(U) on both axes of the product, then U on its coefficients. */
static void circle_wants(const kf_cut_shape *s, double *W)
{
    for (size_t f = 0; f < s->kept; f++)
        for (size_t k = 0; k < s->p; k++) {
            double *row = W + want_of(s, f, k) * s->K;
            size_t fs[2], ks[2], rows = mirrored(s->kept, f, fs);
            size_t cols = mirrored(s->p, k, ks);

            for (size_t i = 0; i < rows; i++)
                for (size_t j = 0; j < cols; j++) {
                    size_t d = exponent_of(s, fs[i], ks[j]), e = s->K - 1 - d;
                    cplx u = conj_of(times(mirror(s->kept, fs[i], f),
                                           mirror(s->p, ks[j], k)));

                    row[d] += times(u, mirror(s->K, d, d)).re;
                    if (e != d)
                        row[e] += times(u, mirror(s->K, d, e)).re;
                }
        }
}

static void circle_row(grid g, size_t at, size_t n, double *row)
{
    for (size_t b = 0; b < g.cols; b++)
        for (size_t a = 0; a < g.rows; a++)
            *row++ = circle_coefficient(&g, a, b, at, n);
}

static void circle_seat(const kf_cut_shape *s, size_t seat, double *E0,
                        double *E1, double *G)
{
    size_t at = place_of(seat, s->points);

    circle_row(grid_of_A(s), at, s->points, E0);
    if (E1)
        circle_row(grid_of_input(s), at, s->points, E1);
    if (s->sum > 1)
        circle_symbols(s, at, G);
}

/* ---- complex roots of unity ---------------------------------------------- */

/* Component 0 answers the real part and component 1 the imaginary part of the
 * product. The block is [Re -Im; Im Re] and the message [Re; Im].  A whole
 * input is real.  The symbols are real too, so each answer gives two equations:
 * the point conj(x) would give the same two.  Therefore the roots are turned by
 * a quarter of a step.  So they and their conjugates are 2 n different points,
 * and half of K answers are enough. */
static void complex_seat(const kf_cut_shape *s, size_t seat, double *E0,
                         double *E1, double *G)
{
    size_t at = place_of(seat, s->points), parts = s->m * s->n;
    size_t inner = E1 ? 2 : 1, inputs = s->sum * s->p;
    grid A = grid_of_A(s), B = grid_of_input(s);

    for (size_t j = 0; j < parts; j++)
        root_power(exponent(&A, j % A.rows, j / A.rows), at, s->points, E0 + j,
                   E0 + inner * parts + j);
    for (size_t j = 0; E1 && j < parts; j++) {
        E0[parts + j] = -E0[2 * parts + j];
        E0[3 * parts + j] = E0[j];
    }
    for (size_t j = 0; E1 && j < inputs; j++)
        root_power(exponent(&B, j % B.rows, j / B.rows), at, s->points, E1 + j,
                   E1 + inputs + j);
    for (size_t f = 0; s->sum == 1 && f < s->kept; f++)
        for (size_t k = 0; k < s->p; k++) {
            double *g = G + want_of(s, f, k);

            root_power(exponent_of(s, f, k), at, s->points, g, g + s->K);
        }
    for (size_t d = 0; s->sum > 1 && d < s->K; d++)
        root_power(d, at, s->points, G + d, G + s->K + d);
}

/* ---- real points --------------------------------------------------------- */

static void power_seat(const kf_cut_shape *s, size_t seat, double *E0,
                       double *E1, double *G)
{
    grid A = grid_of_A(s), B = grid_of_input(s);
    double x = point_of(s, seat);

    for (size_t j = 0; j < A.rows * A.cols; j++)
        E0[j] = power(x, exponent(&A, j % A.rows, j / A.rows));
    for (size_t j = 0; E1 && j < B.rows * B.cols; j++)
        E1[j] = power(x, exponent(&B, j % B.rows, j / B.rows));
    for (size_t d = 0; s->sum > 1 && d < s->K; d++)
        G[d] = power(x, d);
}

/* Two cases.  The summed axis of both operands has the same orthonormal
 * polynomials, with products that integrate to 1 or 0.  Or nothing is summed
 * and all products have different degrees. */
static void chebyshev_seat(const kofn_layout *L, const kf_cut_shape *s,
                           size_t seat, double *E0, double *E1, double *G)
{
    kf_code_chebyshev_row(kf_code_chebyshev_point(seat, L->seats), s->K, G);
    for (size_t d = 1; d < s->K; d++)
        G[d] *= KF_ROOT_TWO;
    for (size_t j = 0; j < s->m * s->n; j++)
        E0[j] = G[j];
    for (size_t j = 0; E1 && j < s->sum * s->p; j++)
        E1[j] = s->sum > 1 ? G[j] : G[j * s->kept];
}

/* ---- all ----------------------------------------------------------------- */

const char *kf_points_refuse(const kf_cut_shape *s)
{
    if (s->basis == KF_COMPLEX && s->left)
        return "basis=complex does not serve left products; basis=circle does";
    if (s->basis == KF_QUATERNION && s->left)
        return "basis=quaternion does not serve left products, since the "
               "coefficients act from the left; basis=circle does";
    if (s->basis == KF_CHEBYSHEV && s->sum > 1 && (s->kept > 1 || s->p > 1))
        return "basis=chebyshev wants either the summed side alone to be cut "
               "or that side to be whole, for only then do products of "
               "orthogonal polynomials separate; basis=circle has no such "
               "limit";
    return NULL;
}

void kf_points_wants(const kf_cut_shape *s, double *W)
{
    if (s->basis == KF_CIRCLE) {
        circle_wants(s, W);
        return;
    }
    if (s->basis == KF_CHEBYSHEV) {
        W[0] = 1; /* the integral */
        return;
    }
    for (size_t f = 0; f < s->kept; f++)
        for (size_t k = 0; k < s->p; k++)
            W[want_of(s, f, k) * s->K + exponent_of(s, f, k)] = 1;
}

kofn_status kf_points_seat(const kofn_layout *L, const kf_cut_shape *s,
                           size_t seat, double *E0, double *E1, double *G)
{
    switch (s->basis) {
    case KF_COMPLEX:
        complex_seat(s, seat, E0, E1, G);
        return KOFN_OK;
    case KF_CHEBYSHEV:
        chebyshev_seat(L, s, seat, E0, E1, G);
        break;
    case KF_MONOMIAL:
    case KF_VANDERMONDE:
        power_seat(s, seat, E0, E1, G);
        break;
    default:
        circle_seat(s, seat, E0, E1, G);
    }
    for (size_t f = 0; s->sum == 1 && f < s->kept; f++)
        for (size_t k = 0; k < s->p; k++)
            G[want_of(s, f, k)] = E0[f] * (E1 ? E1[k] : 1);
    return KOFN_OK;
}
