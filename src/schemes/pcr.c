/* pcr.c -- A' A x, the step of least squares, from polynomials.
 *
 * Li, Mousavi Kalan, Yu, Soltanolkotabi, Avestimehr, "Polynomially coded
 * regression: optimal straggler mitigation via data encoding", 2018.
 *
 * A is cut into c = ceil(n/r) row blocks, so each of n workers stores r/n of A,
 * rounded up.  Seat j stores
 *
 *     E_j = sum_i l_i(x_j) A_i          at its own point x_j.
 *
 * Its answer E_j' (E_j x) is a polynomial of degree 2c-2 in x_j.  A' A x is the
 * sum of its values at the points where one l_i is 1 and the others are 0.  Any
 * K = 2c-1 answers determine the polynomial and so that sum.  Decoding needs
 * one weight for each answer.
 *
 * The default l_i are not those of the paper, which have degree c-1 on a line.
 * They are real trigonometric polynomials on a circle.  Then the code is MatDot
 * of A' with A (points.c), and the sum is c times the mean over the circle.
 * All points together are as well conditioned as an orthogonal transform.  The
 * Lagrange polynomials on the circle,
 *
 *     l_i(t) = 1/c sum_q f_q(t) f_q(2 pi i/c),
 *
 * are an orthogonal transform of the f_q.  With them c seats store plain
 * blocks.  The answers of these seats add up to A' A x without the others.  The
 * same holds for any c or more seats at even distances around the circle,
 * because their mean is the mean over the circle.
 *
 * Keeps no state.  Rows depend on the seat alone, so each joiner gets new rows.
 */
#include "polynomial.h"

#include <math.h>

enum { CIRCLE, LAGRANGE };

static const kofn_param params[] = {
    {"r", KOFN_AUTO, 1, 1000000,
     "batches a worker stores, of as many as there are workers; auto: what "
     "three quarters of the workers decode",
     0},
    {"basis", CIRCLE, 0, 0, "points on a circle, or on a line as published",
     "circle|lagrange"},
    {"systematic", 0, 0, 1,
     "1: ceil(n/r) seats store plain blocks, and are enough together", 0},
    {"angles", KOFN_AUTO, 1, 1000000,
     "different points of basis=circle; auto: one for each worker", 0},
    {"layout", 0, 0, 0,
     "A is cut into ceil(n/r) blocks, or as published into n batches, a block "
     "being r of them: never less work",
     "super|paper"},
    {0},
};

/* ---- sizes --------------------------------------------------------------- */

static size_t blocks(const kofn_layout *L)
{
    return kf_ceil_div(L->workers, (size_t)kofn_arg(L, "r"));
}

/* Returns the shape with A' as the left factor, cut along the summed side. */
static kf_cut_shape shape_of(const kofn_layout *L)
{
    size_t c = blocks(L);

    return (kf_cut_shape){.m = 1,
                          .n = c,
                          .p = 1,
                          .eu = c,
                          .ev = 1,
                          .ew = c,
                          .sum = c,
                          .es = 1,
                          .kept = 1,
                          .ek = c,
                          .K = 2 * c - 1,
                          .points = (size_t)kofn_arg(L, "angles"),
                          .basis = KF_CIRCLE};
}

static bool paper(const kofn_layout *L)
{
    return kofn_arg(L, "layout") == 1;
}

static bool systematic(const kofn_layout *L)
{
    return kofn_arg(L, "systematic") == 1;
}

/* Returns the least r that tolerates the loss of a quarter of the workers, at
 * most 16. */
static size_t choose_r(size_t n)
{
    return kf_ceil_div(n, (n - kf_code_spare(n) + 1) / 2);
}

static kofn_status settle_r(kofn_layout *L)
{
    size_t n = L->workers;
    long given = kofn_arg(L, "r");
    size_t r = given == KOFN_AUTO ? choose_r(n) : (size_t)given;

    if (r > n)
        return kofn_say(KOFN_INVAL,
                        "pcr: r = %zu, but there are only as many batches "
                        "as workers, %zu; r = %zu would fit",
                        r, n, n);
    if (r == 1 && n > 1)
        return kofn_say(KOFN_INVAL,
                        "pcr: r = 1 needs %zu answers and there are %zu "
                        "workers; r = 2 needs %zu, or use scheme uncoded",
                        2 * n - 1, n, 2 * kf_ceil_div(n, 2) - 1);
    kofn_arg_choose(L, "r", (long)r);
    return KOFN_OK;
}

/* Settles the number of angles.  The plain blocks of a systematic circle are
 * evenly spaced, so it may need a few more points than there are workers. */
static kofn_status settle_angles(kofn_layout *L)
{
    size_t n = L->workers, c = blocks(L), K = 2 * c - 1;
    size_t most = systematic(L) ? c * kf_ceil_div(n, c) : n;
    long given = kofn_arg(L, "angles");
    size_t angles = given == KOFN_AUTO ? most : (size_t)given;

    if (kofn_arg(L, "basis") != CIRCLE)
        return given == KOFN_AUTO
                   ? KOFN_OK
                   : kofn_say(KOFN_INVAL,
                              "pcr: angles = %ld goes with basis=circle",
                              given);
    if (angles < K || angles > most)
        return kofn_say(KOFN_INVAL,
                        "pcr: angles = %zu must be in %zu..%zu, from the "
                        "answers needed to the workers",
                        angles, K, most);
    if (systematic(L) && angles % c)
        return kofn_say(KOFN_INVAL,
                        "pcr: angles = %zu of a systematic circle must be a "
                        "multiple of its %zu blocks",
                        angles, c);
    kofn_arg_choose(L, "angles", (long)angles);
    L->threshold = kf_points_threshold(n, angles, K);
    return KOFN_OK;
}

/* ---- the line ------------------------------------------------------------ */

/* Returns the number of points on the line: an odd multiple of c, because its
 * Chebyshev points include those of c. */
static size_t line_points(const kofn_layout *L)
{
    size_t c = blocks(L), each = kf_ceil_div(L->seats, c);

    return systematic(L) ? c * (each + 1 - each % 2) : L->seats;
}

static bool is_node(size_t c, double x)
{
    for (size_t i = 0; i < c; i++)
        if (fabs(x - kf_code_chebyshev_point(i, c)) < 1e-10)
            return true;
    return false;
}

/* Returns the point of a seat.  Either the first c seats are at the nodes and
 * the others elsewhere, or all are moved inwards a little so that none is a
 * node. */
static double point(const kofn_layout *L, size_t seat)
{
    size_t c = blocks(L), n = line_points(L), others = 0;
    double x = 0;

    if (systematic(L) && seat < c)
        return kf_code_chebyshev_point(seat, c);
    if (!systematic(L))
        return kf_code_chebyshev_point(seat, n) * 0.999;
    for (size_t i = 0; i < n; i++) {
        x = kf_code_chebyshev_point(i, n);
        others += !is_node(c, x);
        if (others == seat - c + 1)
            break;
    }
    return x;
}

/* Evaluates the Lagrange polynomials at x; at a node they are exactly 1 and 0.
 */
static kofn_status lagrange(size_t c, double x, double *row)
{
    double *node = kofn_layout_table(1, c);

    if (!node)
        return KOFN_NOMEM;
    for (size_t i = 0; i < c; i++)
        node[i] = kf_code_chebyshev_point(i, c);
    for (size_t i = 0; i < c; i++) {
        row[i] = 1;
        for (size_t q = 0; q < c; q++)
            if (q != i)
                row[i] *= (x - node[q]) / (node[i] - node[q]);
    }
    kofn_free(node);
    return KOFN_OK;
}

/* Adds the first K orthonormal Chebyshev polynomials at x to `row`. */
static void add_chebyshev(size_t K, double x, double *row)
{
    double t = 1, next = x;

    for (size_t d = 0; d < K; d++) {
        double after = 2 * x * next - t;

        row[d] += d ? KF_ROOT_TWO * t : 1;
        t = next;
        next = after;
    }
}

static void line_wants(const kofn_layout *L, double *W)
{
    for (size_t i = 0; i < blocks(L); i++)
        add_chebyshev(L->symbols, kf_code_chebyshev_point(i, blocks(L)), W);
}

static kofn_status line_seat(const kofn_layout *L, size_t seat, double *E0,
                             double *G)
{
    double x = point(L, seat);

    add_chebyshev(L->symbols, x, G);
    return lagrange(blocks(L), x, E0);
}

/* ---- the circle ---------------------------------------------------------- */

/* Evaluates the Lagrange polynomials on the circle.  Seat i angles/c is at the
 * node of block i.  The order of the seats around the circle is that of
 * points.c and has no effect. */
static kofn_status circle_lagrange(const kofn_layout *L, const kf_cut_shape *s,
                                   size_t seat, double *E0, double *G)
{
    size_t each = s->points / s->n;
    double *f = kofn_layout_table(3, 2 * s->n);
    double *node_f = f + 2 * s->n, *node_G = node_f + 2 * s->n;
    kofn_status st;

    if (!f)
        return KOFN_NOMEM;
    st = kf_points_seat(L, s, seat, f, NULL, G);
    for (size_t i = 0; i < s->n && !st; i++) {
        if (seat % s->points % each == 0) {
            E0[i] = seat % s->points == i * each;
            continue;
        }
        for (size_t q = 0; q < s->n; q++)
            node_f[q] = 0;
        st = kf_points_seat(L, s, i * each, node_f, NULL, node_G);
        for (size_t q = 0; q < s->n; q++)
            E0[i] += f[q] * node_f[q] / (double)s->n;
    }
    kofn_free(f);
    return st;
}

static void circle_wants(const kofn_layout *L, double *W)
{
    kf_cut_shape s = shape_of(L);

    kf_points_wants(&s, W);
    for (size_t d = 0; d < s.K && systematic(L); d++)
        W[d] *= (double)s.n;
}

/* ---- fewer than K answers ------------------------------------------------ */

/* Returns the first seat at this place, or n. */
static size_t find(const uint32_t *seats, size_t n, size_t points, size_t place)
{
    size_t i = 0;

    while (i < n && seats[i] % points != place)
        i++;
    return i;
}

/* Sets D to the mean over the `count` evenly spaced places from place `at` on,
 * times the number of blocks.  False if one has not answered.  D is zero
 * elsewhere. */
static bool even_mean(const kofn_layout *L, const uint32_t *seats, size_t n,
                      size_t count, size_t at, double *D)
{
    size_t points = shape_of(L).points;
    double weight = (double)blocks(L) / (double)count;
    size_t each = points / count;

    for (size_t pass = 0; pass < 2; pass++)
        for (size_t k = 0; k < count; k++) {
            size_t i = find(seats, n, points, at + k * each);

            if (i == n)
                return false;
            D[i] = pass ? weight : 0;
        }
    return true;
}

/* Decodes fewer than K answers if they are from seats at even distances around
 * the circle; other sets of fewer are useless.  (The order of points.c is a
 * multiple of the seat's number, which preserves even distances.)  This search
 * is faster than least squares, which handles all other sets. */
static kofn_status decode(const kofn_layout *L, const uint32_t *seats, size_t n,
                          double *D)
{
    size_t c = blocks(L), points = shape_of(L).points;

    if (n >= L->symbols || kofn_arg(L, "basis") != CIRCLE)
        return KOFN_UNSUITED;
    for (size_t count = c; count <= n; count++)
        for (size_t at = 0; points % count == 0 && at < points / count; at++)
            if (even_mean(L, seats, n, count, at, D))
                return KOFN_OK;
    return KOFN_TOOFEW;
}

/* ---- the scheme ---------------------------------------------------------- */

static kofn_status layout(kofn_layout *L)
{
    size_t c;

    TRY(settle_r(L));
    c = blocks(L);
    L->seats = L->max_seats = L->workers;
    L->enough = systematic(L) ? c : 2 * c - 1;
    L->threshold = 2 * c - 1;
    TRY(settle_angles(L));
    L->cut[0].rows = paper(L) ? L->seats : c;
    L->inner = paper(L) ? (size_t)kofn_arg(L, "r") : 1;
    L->symbols = 2 * c - 1;
    L->wants = 1;
    L->W = kofn_layout_table(1, L->symbols);
    if (!L->W)
        return KOFN_NOMEM;
    if (kofn_arg(L, "basis") == CIRCLE)
        circle_wants(L, L->W);
    else
        line_wants(L, L->W);
    return KOFN_OK;
}

/* Computes the row over the blocks. */
static kofn_status block_row(const kofn_layout *L, size_t i, double *E0,
                             double *G)
{
    kf_cut_shape s = shape_of(L);

    if (kofn_arg(L, "basis") != CIRCLE)
        return line_seat(L, i, E0, G);
    return systematic(L) ? circle_lagrange(L, &s, i, E0, G)
                         : kf_points_seat(L, &s, i, E0, NULL, G);
}

/* Computes the row over the batches.  A block consists of consecutive batches,
 * which all have the coefficient of the block.  Batches beyond the n-th are
 * zero. */
static kofn_status seat(const kofn_layout *L, size_t i, double *E0, double *E1,
                        double *G)
{
    size_t r = (size_t)kofn_arg(L, "r"), n = L->seats;
    double *row;
    kofn_status st;

    (void)E1;
    if (!paper(L))
        return block_row(L, i, E0, G);
    row = kofn_layout_table(1, blocks(L));
    if (!row)
        return KOFN_NOMEM;
    st = block_row(L, i, row, G);
    for (size_t b = 0; b < n; b++)
        E0[b % r * n + b] = row[b / r];
    kofn_free(row);
    return st;
}

const kofn_scheme kf_pcr = {
    .size = sizeof(kofn_scheme),
    .name = "pcr",
    .summary = "A' A x, the gradient of least squares; any 2 ceil(n/r) - 1",
    .cite = "Li et al. 2018, arXiv:1805.09934",
    .ops = KOFN_GRAM,
    .params = params,
    .layout = layout,
    .seat = seat,
    .decode = decode,
};
