/* unknown.c -- the symbols that no result holds plainly.
 *
 * With K the known and U the unknown symbols,
 *
 *     G_QU x_U = y_Q - G_QK x_K.
 *
 * It is solved for all unit vectors y at once.  So decoding is one
 * multiplication of D with the results, and its noise is known before any data
 * moves.  If there are more results than unknowns, least squares uses them all.
 *
 * Scratch is in the arrays of the sift; D belongs to the caller.  A set that
 * does not determine the symbols gives KOFN_UNSTABLE or KOFN_TOOFEW, never a
 * guess. */
#include "sift.h"

#include "operation.h"

#include <assert.h>
#include <math.h>

/* Allocates scratch without initialization. */
static double *room(kf_sift *s, size_t rows, size_t cols)
{
    return kf_arrays_new(&s->arrays, rows, cols * sizeof(double));
}

/* ---- sorting ------------------------------------------------------------- */

static double squares(const kf_row *rows, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        for (size_t e = 0; e < rows[i].n; e++)
            sum += rows[i].val[e] * rows[i].val[e];
    return sum;
}

/* Returns the rounding of a result: the norm of the block's coefficients times
 * the norm of the message's coefficients. */
static double rounding_of(const kf_code *c, const kf_seat *seat,
                          size_t component)
{
    size_t inner = c->plan->layout.inner, factors = c->plan->op->factors;
    double block = squares(seat->E0 + component * inner, inner), owned;

    assert(component < c->plan->layout.components);
    if (factors == 0)
        return sqrt(squares(&seat->G[component], 1));
    owned = sqrt(seat->E1 ? block * squares(seat->E1, inner) : block);
    return c->uneven && factors > 1 ? kf_larger(seat->weight, owned) : owned;
}

static bool is_unit(const kf_row *r)
{
    return r->n == 1 && r->val[0] == 1;
}

bool kf_sift_is_plain(const kf_sift *s, size_t result)
{
    const kf_row *row = s->row[result];

    assert(result < s->results);
    return is_unit(row) && s->from[row->col[0]] == (int32_t)result;
}

static kofn_status sift_new(kf_sift *s, const kofn_layout *L, size_t n)
{
    kf_arrays *a = &s->arrays;

    s->symbols = L->symbols;
    s->results = n * L->components;
    s->row = kf_arrays_new(a, s->results, sizeof *s->row);
    s->weight = kf_arrays_new(a, s->results, sizeof *s->weight);
    s->first = kf_arrays_new(a, s->results, sizeof *s->first);
    s->from = kf_arrays_new(a, s->symbols, sizeof *s->from);
    s->place = kf_arrays_new(a, s->symbols, sizeof *s->place);
    s->use = kf_arrays_new(a, s->results, sizeof *s->use);
    return kf_arrays_status(a);
}

kofn_status kf_sift_rows(kf_sift *s, kf_code *c, const uint32_t *seats,
                         size_t n, bool parities)
{
    const kofn_layout *L = &c->plan->layout;

    TRY(sift_new(s, L, n));
    s->quaternions = true;
    for (size_t i = 0; i < s->symbols; i++)
        s->from[i] = -1;
    for (size_t i = 0; i < n; i++) {
        const kf_seat *seat;

        TRY(kf_code_seat(c, seats[i], &seat));
        s->quaternions &= seat->quaternions;
        for (size_t l = 0; l < L->components; l++) {
            const kf_row *g = &seat->G[l];
            size_t r = i * L->components + l;

            s->row[r] = g;
            s->weight[r] = !parities          ? rounding_of(c, seat, l)
                           : seat->weight > 0 ? seat->weight
                                              : 1;
            if (is_unit(g) && !(parities && s->from[g->col[0]] >= 0))
                s->from[g->col[0]] = (int32_t)r;
        }
    }
    for (size_t i = 0, known = 0; i < s->symbols; i++)
        s->place[i] = (uint32_t)(s->from[i] < 0 ? s->unknown++ : known++);
    assert(s->unknown <= s->symbols);
    return KOFN_OK;
}

/* ---- solving ------------------------------------------------------------- */

/* Fills P = G_QU and K = G_QK. */
static void fill_system(const kf_sift *s, double *P, double *K)
{
    size_t known = s->symbols - s->unknown;

    assert(s->unknown <= s->symbols);
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

    for (size_t j = 0; j < cols; j += 8) { /* one cache line at a time */
        size_t width = kf_min(8, cols - j);
        double sum[8] = {0};

        for (size_t i = 0; i < rows; i++)
            for (size_t c = 0; c < width; c++)
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

/* Computes C -= A B; if P and B consist of quaternion blocks, these matrices do
 * too. */
static kofn_status subtract_product(const kf_sift *s, const kf_difference *d)
{
    if (s->quaternions)
        return kf_code_subtract_quaternions(d->m, d->k, d->n, d->A, d->B, d->C);
    kf_code_subtract_product(d);
    return KOFN_OK;
}

static kofn_status invert(kf_sift *s, const double *P, double *W)
{
    size_t n = s->unknown, components = s->quaternions ? 4 : 1,
           wide = n / components;
    double *T = room(s, n, n);
    double *X = kf_arrays_table(&s->arrays, n, wide);

    assert(s->rows == n);
    assert(n % components == 0);
    TRY(kf_arrays_status(&s->arrays));
    memcpy(T, P, n * n * sizeof *T);
    for (size_t i = 0; i < wide; i++)
        X[i * components * wide + i] = 1;
    TRY(kf_solve(n, T, n, wide, X, wide));
    if (components > 1)
        kf_code_all_components(n, n, X, W);
    else
        memcpy(W, X, n * n * sizeof *W);
    return KOFN_OK;
}

/* Inverts a P with m > n rows by least squares, W = (P'P)^-1 P'. */
static kofn_status invert_tall(kf_sift *s, const double *P, double *W)
{
    size_t m = s->rows, n = s->unknown;
    double *T = room(s, m, n), *X = room(s, m, m);

    assert(m >= n);
    TRY(kf_arrays_status(&s->arrays));
    memcpy(T, P, m * n * sizeof *T);
    set_identity(m, X, 1);
    TRY(kf_code_least_squares(&(kf_system){m, n, T, n, m, X, m}));
    memcpy(W, X, n * m * sizeof *W);
    return KOFN_OK;
}

/* Estimates the error after polishing, -E E with E = W P - I, per row. */
static double after_polish(size_t n, const double *E)
{
    return kf_code_sum(E, E, n * n) / sqrt((double)n);
}

/* Computes W + (I - W P) W.  Elimination solves P W = I column by column, so P
 * W - I is small.  But the error of decoding is W P - I times the answer, which
 * may be larger by the condition of P.  This step reduces it to the rounding of
 * one product. */
static kofn_status polish(kf_sift *s, const double *P, double *W, double *off)
{
    size_t m = s->rows, n = s->unknown;
    double *N = room(s, n, m), *E = room(s, n, n);

    TRY(kf_arrays_status(&s->arrays));
    set_identity(n, E, -1);
    for (size_t i = 0; i < n * m; i++)
        N[i] = -W[i];
    TRY(subtract_product(
        s, &(kf_difference){n, m, n, N, m, P, n, E, n})); /* W P - I */
    memcpy(N, W, n * m * sizeof *N);
    *off = after_polish(n, E);
    return subtract_product(s, &(kf_difference){n, n, m, E, n, N, m, W, m});
}

/* Computes D = W [-G_QK, I], unknown x results; K is G_QK. */
static kofn_status fill_decoder(kf_sift *s, const double *W, const double *K,
                                double *D)
{
    size_t known = s->symbols - s->unknown;
    double *C = kf_arrays_table(&s->arrays, s->unknown, known);

    TRY(kf_arrays_status(&s->arrays));
    TRY(subtract_product(s, &(kf_difference){s->unknown, s->rows, known, W,
                                             s->rows, K, known, C, known}));
    for (size_t u = 0; u < s->unknown; u++) {
        double *row = D + u * s->results;

        for (size_t i = 0; known > 0 && i < s->symbols; i++)
            if (s->from[i] >= 0)
                row[s->from[i]] = C[u * known + s->place[i]];
        for (size_t q = 0; q < s->rows; q++)
            row[s->use[q]] = W[u * s->rows + q];
    }
    return KOFN_OK;
}

kofn_status kf_solve_unknown(kf_sift *s, double **D, double *condition,
                             double *off)
{
    size_t rows = s->rows, unknown = s->unknown;
    double *P = kf_arrays_table(&s->arrays, rows, unknown);
    double *W = room(s, unknown, rows);
    double *K = kf_arrays_table(&s->arrays, rows, s->symbols - unknown);

    assert(unknown <= rows);
    *D = kofn_layout_table(unknown, s->results);
    TRY(*D ? kf_arrays_status(&s->arrays) : KOFN_NOMEM);
    fill_system(s, P, K);
    TRY(rows == unknown ? invert(s, P, W) : invert_tall(s, P, W));
    TRY(polish(s, P, W, off));
    TRY(fill_decoder(s, W, K, *D));
    *condition =
        norm1(P, rows, unknown, unknown) * norm1(W, unknown, rows, rows);
    return KOFN_OK;
}
