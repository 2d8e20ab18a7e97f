/* gradient_linked.c -- codes given by a staircase V (Cao, Yan, Tang, Han,
 * "Adaptive gradient coding", 2021, section IV).
 *
 *     V_t = [ A_t | C_t0 .. C_tt 0 .. 0 ]    n x (units + submessages (n-d))
 *
 * The code is E = V S.  S has the identity on top for every part; its lower
 * half makes E zero at the seats that do not hold the part.  So answers are V
 * times the wanted sum and some nuisances.  A column of M removes the
 * nuisances.  It consists of combinations w_t of the answers of each submessage
 * with
 *
 *     w_b' C_bb + .. + w_t' C_tb = 0    for b = 0..t.
 *
 * A column starts at submessage t with one of the d solutions of w_t' C_tt = 0.
 * The earlier w_b follow backwards, each with the smallest norm.  Then M' E =
 * M' A for every part.
 *
 * One submessage with n - d + units columns is the random code of Ye and Abbe
 * (2018).
 *
 * Scratch lives for one call; M goes into the dual. */
#include "gradient.h"

typedef struct stairs {
    const kf_dual *u;
    const double *V;
    size_t rest, wide; /* n - d; of V */
    double **Q;        /* per submessage: [R | Q'] of C_tt, n x (rest + n) */
    double *y;         /* scratch: `rest` numbers */
    kf_arrays scratch;
} stairs;

static const double *stair(const stairs *s, size_t t, size_t i, size_t b)
{
    return s->V + (t * s->u->n + i) * s->wide + s->u->units + b * s->rest;
}

static double *entry(const stairs *s, size_t t, size_t i, size_t col)
{
    return s->u->M + (t * s->u->n + i) * s->u->submessages * s->u->d + col;
}

/* Factors Q' C = [R; 0]: the last d rows of Q' are the solutions of w' C = 0.
 */
static kofn_status factor(stairs *s, size_t t)
{
    size_t n = s->u->n, wide = s->rest + n;
    double *T = s->Q[t] = kf_arrays_table(&s->scratch, n + 1, wide);

    TRY(kf_arrays_status(&s->scratch));
    for (size_t i = 0; i < n; i++) {
        memcpy(T + i * wide, stair(s, t, i, t), s->rest * sizeof *T);
        T[i * wide + s->rest + i] = 1;
    }
    for (size_t c = 0; c < s->rest; c++) /* row n is its scratch */
        kf_gradient_eliminate(T, n, wide, c, T + n * wide);
    for (size_t c = 0; c < s->rest; c++)
        if (!(fabs(T[c * wide + c]) > 1e-13 * fabs(T[0])))
            return KOFN_UNSTABLE;
    return KOFN_OK;
}

/* Computes w_b of a column; the w of the later submessages up to `top` exist.
 */
static void step_back(const stairs *s, size_t top, size_t b, size_t col)
{
    size_t n = s->u->n, wide = s->rest + n;
    const double *T = s->Q[b];
    double *y = s->y;

    memset(y, 0, s->rest * sizeof *y);
    for (size_t t = b + 1; t <= top; t++)
        for (size_t i = 0; i < n; i++)
            for (size_t c = 0; c < s->rest; c++)
                y[c] -= *entry(s, t, i, col) * stair(s, t, i, b)[c];
    for (size_t c = 0; c < s->rest; c++) { /* R' y = y */
        y[c] /= T[c * wide + c];
        for (size_t k = c + 1; k < s->rest; k++)
            y[k] -= T[c * wide + k] * y[c];
    }
    for (size_t c = 0; c < s->rest; c++)
        for (size_t i = 0; i < n; i++)
            *entry(s, b, i, col) += y[c] * T[c * wide + s->rest + i];
}

static void fill_columns(const stairs *s)
{
    size_t n = s->u->n, d = s->u->d, wide = s->rest + n;

    for (size_t t = 0; t < s->u->submessages; t++)
        for (size_t q = 0; q < d; q++) {
            for (size_t i = 0; i < n; i++)
                *entry(s, t, i, t * d + q) =
                    s->Q[t][(s->rest + q) * wide + s->rest + i];
            for (size_t b = t; b-- > 0;)
                step_back(s, t, b, t * d + q);
        }
}

/* Computes P = M' A. */
static void fill_P(const stairs *s)
{
    const kf_dual *u = s->u;
    size_t cols = u->submessages * u->d, rows = u->submessages * u->n;

    memset(u->P, 0, cols * u->units * sizeof *u->P);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++)
            for (size_t z = 0; z < u->units; z++)
                u->P[c * u->units + z] +=
                    u->M[r * cols + c] * s->V[r * s->wide + z];
}

static kofn_status solve_stairs(stairs *s)
{
    const kf_dual *u = s->u;

    memset(u->M, 0,
           u->submessages * u->n * u->submessages * u->d * sizeof *u->M);
    s->Q = kf_arrays_new(&s->scratch, u->submessages, sizeof *s->Q);
    s->y = kf_arrays_new(&s->scratch, s->rest, sizeof *s->y);
    TRY(kf_arrays_status(&s->scratch));
    for (size_t t = 0; t < u->submessages; t++)
        TRY(factor(s, t));
    fill_columns(s);
    fill_P(s);
    return KOFN_OK;
}

kofn_status kf_dual_of(kf_dual *u, const double *V)
{
    size_t rest = u->n - u->d;
    stairs s = {
        .u = u, .V = V, .rest = rest, .wide = u->units + u->submessages * rest};
    kofn_status st = solve_stairs(&s);

    kf_arrays_free(&s.scratch);
    return st;
}

kofn_status kf_dual_draw(kf_dual *u, uint64_t seed)
{
    double *V = kf_gradient_gaussian_V(u, seed);
    kofn_status st = V ? kf_dual_of(u, V) : KOFN_NOMEM;

    kofn_free(V);
    return st ? st : kf_dual_encode(u);
}

double *kf_gradient_gaussian_V(const kf_dual *u, uint64_t seed)
{
    size_t rows = u->submessages * u->n, rest = u->n - u->d;
    size_t wide = u->units + u->submessages * rest;
    double *V = kofn_layout_table(rows, wide);

    for (size_t r = 0; r < rows && V; r++) {
        size_t k = u->units + (r / u->n + 1) * rest;
        kf_family gauss = {KF_BASIS_GAUSS, rows, k, 0, seed, NULL};

        kf_basis_rows(&gauss, r, V + r * wide);
    }
    return V;
}
