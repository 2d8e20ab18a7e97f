/* suspect.c -- locating corrupt results by their syndromes.
 *
 * All entries of a result lie or are honest together.  So with Y = G X + E,
 * E zero but on the rows of a few nodes T, and parities H with H G = 0,
 *
 *     S = H Y = H_T E_T,
 *
 * and the columns of S lie in the span of the columns H_T.  Any q columns of
 * H are independent, so another column lies in that span only by accident:
 * one decomposition of S and a projection of every column of H name T (the
 * subspace test known as MUSIC from array processing).  When the errors of
 * several nodes depend on each other the span is too small to hold their
 * columns one by one; then single columns of S are explained by as few nodes
 * as possible, which finds nodes that each spoil a few entries.
 *
 * Nodes that are found are erased from H, not subtracted from Y, and the rest
 * is looked at again: strong errors hide weak ones only until then.  It ends
 * when what is left is consistent, with a parity to spare as witness.
 */
#include "suspect.h"

#include <math.h>

/* A column of H counts as inside the signal space when this much of it is
 * outside, at the least and at the most. */
#define INSIDE_LEAST 1e-9
#define INSIDE_MOST 0.05
/* ... times the share of noise in the weakest signal. */
#define INSIDE_NOISE 10
/* Rounding of a projection: what an exact explanation may leave. */
#define ROUNDING 1e-13
/* Explanations by few nodes that are tried before giving up. */
#define MOST_TRIALS 400000
/* Accidents are to be rarer than this. */
#define ACCIDENT 1e-9

typedef struct state {
    const kf_evidence *e;
    size_t q, rows, columns; /* parities left; results; closed columns */
    double *H;               /* q x rows, zero in the columns of bad nodes */
    double *Y;               /* rows x columns, zero in their rows         */
    double *S, *U;           /* q x columns; q x q                         */
    double *basis;           /* q x q: of a span being built up            */
    double *rest;            /* q: what a span leaves of a vector          */
    double floor;            /* singular values that noise can reach       */
    uint8_t *bad;
    size_t count;
} state;

/* ---- small vectors ------------------------------------------------------- */

static double dot(const double *a, const double *b, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static void axpy(size_t n, double f, const double *x, double *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] += f * x[i];
}

/* Column j of H into out (q). */
static void column(const state *s, size_t j, double *out)
{
    for (size_t i = 0; i < s->q; i++)
        out[i] = s->H[i * s->rows + j];
}

/* ---- setting up ------------------------------------------------------------ */

/* The multiples of a column by 1, i, j, k from the right: all are codewords
 * when it is, and an error of one lane then shows in as many dimensions as
 * one of all four. */
static void close_columns(const kf_evidence *e, double *Y, size_t columns)
{
    static const int from[4][4] = {
        {0, 1, 2, 3}, {1, 0, 3, 2}, {2, 3, 0, 1}, {3, 2, 1, 0}};
    static const double sign[4][4] = {
        {1, 1, 1, 1}, {-1, 1, 1, -1}, {-1, -1, 1, 1}, {-1, 1, -1, 1}};

    for (size_t n = 0; n < e->nodes; n++)
        for (size_t c = 0; c < e->columns; c++)
            for (size_t m = 0; m < 4; m++)
                for (size_t l = 0; l < 4; l++)
                    Y[(4 * n + l) * columns + 4 * c + m] =
                        sign[m][l] *
                        e->Y[(4 * n + (size_t)from[m][l]) * e->columns + c];
}

static kofn_status set_up(state *s, const kf_evidence *e, uint8_t *bad)
{
    *s = (state){.e = e,
                 .q = e->q,
                 .rows = e->nodes * e->lanes,
                 .columns = e->columns * (e->closed ? 4 : 1),
                 .bad = bad};
    memset(bad, 0, e->nodes);
    s->H = kofn_layout_table(e->q, s->rows);
    s->Y = kofn_layout_table(s->rows, s->columns);
    s->S = kofn_layout_table(e->q, s->columns);
    s->U = kofn_layout_table(e->q, e->q);
    s->basis = kofn_layout_table(e->q, e->q);
    s->rest = kf_new(e->q, sizeof *s->rest);
    if (!s->H || !s->Y || !s->S || !s->U || !s->basis || !s->rest)
        return KOFN_NOMEM;
    memcpy(s->H, e->H, e->q * s->rows * sizeof *s->H);
    if (e->closed)
        close_columns(e, s->Y, s->columns);
    else
        memcpy(s->Y, e->Y, s->rows * s->columns * sizeof *s->Y);
    return KOFN_OK;
}

static void tear_down(state *s)
{
    kf_free(s->H);
    kf_free(s->Y);
    kf_free(s->S);
    kf_free(s->U);
    kf_free(s->basis);
    kf_free(s->rest);
}

/* ---- erasing --------------------------------------------------------------- */

/* Householder from the left: make H zero below row 0 in one column, so that
 * rows 1.. are parities that do not see it; drop row 0. */
static void drop_column(state *s, size_t j)
{
    double norm = 0, alpha, head;
    size_t top = 0;

    for (size_t i = 0; i < s->q; i++) {
        norm += s->H[i * s->rows + j] * s->H[i * s->rows + j];
        if (fabs(s->H[i * s->rows + j]) > fabs(s->H[top * s->rows + j]))
            top = i;
    }
    norm = sqrt(norm);
    if (norm > 1e-13) {
        for (size_t c = 0; c < s->rows; c++) {
            double t = s->H[c];

            s->H[c] = s->H[top * s->rows + c];
            s->H[top * s->rows + c] = t;
        }
        column(s, j, s->rest);
        alpha = s->rest[0] > 0 ? -norm : norm;
        head = s->rest[0] - alpha;
        s->rest[0] = 1;
        for (size_t i = 1; i < s->q; i++)
            s->rest[i] /= head;
        for (size_t c = 0; c < s->rows; c++) {
            double w = 0;

            for (size_t i = 0; i < s->q; i++)
                w += s->rest[i] * s->H[i * s->rows + c];
            w *= -head / alpha;
            for (size_t i = 0; i < s->q; i++)
                s->H[i * s->rows + c] -= w * s->rest[i];
        }
        s->q--;
        memmove(s->H, s->H + s->rows, s->q * s->rows * sizeof *s->H);
    }
    for (size_t i = 0; i < s->q; i++)
        s->H[i * s->rows + j] = 0;
}

static void erase(state *s, size_t node)
{
    size_t lanes = s->e->lanes;

    if (s->bad[node])
        return;
    s->bad[node] = 1;
    s->count++;
    memset(s->Y + node * lanes * s->columns, 0,
           lanes * s->columns * sizeof *s->Y);
    for (size_t l = 0; l < lanes && s->q > 0; l++)
        drop_column(s, node * lanes + l);
}

/* What is not a number, or larger than any honest result can be, needs no
 * algebra; and it would drown all else. */
static void erase_wild(state *s)
{
    size_t lanes = s->e->lanes;

    for (size_t n = 0; n < s->e->nodes; n++) {
        const double *y = s->e->Y + n * lanes * s->e->columns;
        bool wild = false;

        for (size_t i = 0; i < lanes * s->e->columns; i++)
            wild |= !(fabs(y[i]) <= s->e->bound) || isinf(y[i]);
        if (wild)
            erase(s, n);
    }
}

/* ---- decomposing the syndromes ----------------------------------------------- */

/* One-sided Jacobi: rotate rows of S until they are orthogonal.  Row k of U
 * is then a left singular vector and the norm of row k of S its value. */
static void decompose(state *s)
{
    size_t q = s->q, m = s->columns;

    memset(s->S, 0, q * m * sizeof *s->S);
    for (size_t i = 0; i < q; i++)
        for (size_t r = 0; r < s->rows; r++)
            if (s->H[i * s->rows + r] != 0)
                axpy(m, s->H[i * s->rows + r], s->Y + r * m, s->S + i * m);
    memset(s->U, 0, q * q * sizeof *s->U);
    for (size_t i = 0; i < q; i++)
        s->U[i * q + i] = 1;
    for (int sweep = 0; sweep < 40; sweep++) {
        bool still = true;

        for (size_t i = 0; i + 1 < q; i++)
            for (size_t j = i + 1; j < q; j++) {
                double *a = s->S + i * m, *b = s->S + j * m;
                double aa = dot(a, a, m), bb = dot(b, b, m), ab = dot(a, b, m);
                double zeta, t, c, sn;

                if (!(fabs(ab) > 1e-15 * sqrt(aa * bb)) || ab == 0)
                    continue;
                still = false;
                zeta = (bb - aa) / (2 * ab);
                t = (zeta >= 0 ? 1 : -1) /
                    (fabs(zeta) + sqrt(1 + zeta * zeta));
                c = 1 / sqrt(1 + t * t);
                sn = c * t;
                for (size_t k = 0; k < m; k++) {
                    double x = a[k], y = b[k];

                    a[k] = c * x - sn * y;
                    b[k] = sn * x + c * y;
                }
                for (size_t k = 0; k < q; k++) {
                    double x = s->U[i * q + k], y = s->U[j * q + k];

                    s->U[i * q + k] = c * x - sn * y;
                    s->U[j * q + k] = sn * x + c * y;
                }
            }
        if (still)
            break;
    }
}

/* Rows of U with a value above the floor to the front; how many, and the
 * weakest of them. */
static size_t signal(state *s, double *weakest)
{
    size_t r = 0;

    *weakest = HUGE_VAL;
    for (size_t i = 0; i < s->q; i++) {
        const double *row = s->S + i * s->columns;
        double value = sqrt(dot(row, row, s->columns));

        if (!(value > s->floor))
            continue;
        for (size_t k = 0; k < s->q; k++) {
            double t = s->U[r * s->q + k];

            s->U[r * s->q + k] = s->U[i * s->q + k];
            s->U[i * s->q + k] = t;
        }
        for (size_t k = 0; k < s->columns; k++) {
            double t = s->S[r * s->columns + k];

            s->S[r * s->columns + k] = s->S[i * s->columns + k];
            s->S[i * s->columns + k] = t;
        }
        r++;
        *weakest = fmin(*weakest, value);
    }
    return r;
}

/* ---- the subspace test ---------------------------------------------------------- */

/* How much of a node's columns of H lies outside the signal space, 0 to 1. */
static double outside(const state *s, size_t node, size_t r)
{
    double whole = 0, left = 0;

    for (size_t l = 0; l < s->e->lanes; l++) {
        column(s, node * s->e->lanes + l, s->rest);
        whole += dot(s->rest, s->rest, s->q);
        for (size_t k = 0; k < r; k++)
            axpy(s->q, -dot(s->U + k * s->q, s->rest, s->q), s->U + k * s->q,
                 s->rest);
        left += dot(s->rest, s->rest, s->q);
    }
    return whole > 0 ? sqrt(left / whole) : 1;
}

/* Erase whose columns lie inside; how many were. */
static size_t erase_inside(state *s, size_t r, double weakest)
{
    double limit = fmin(INSIDE_MOST, fmax(INSIDE_LEAST,
                                          INSIDE_NOISE * s->floor / weakest));
    size_t lanes = s->e->lanes, found = 0;
    uint8_t inside[4096];

    if (r + lanes > s->q || s->e->nodes > sizeof inside)
        return 0; /* no room outside to tell */
    for (size_t n = 0; n < s->e->nodes; n++) {
        inside[n] = !s->bad[n] && outside(s, n, r) < limit;
        found += inside[n];
    }
    if (found * lanes > r)
        return 0; /* some are there by accident: who can tell which */
    for (size_t n = 0; n < s->e->nodes; n++)
        if (inside[n])
            erase(s, n);
    return found;
}

/* ---- few nodes a column ------------------------------------------------------------ */

/* The explanation of one column of syndromes by few nodes. */
typedef struct search {
    state *s;
    const double *target; /* q */
    double limit;         /* what may be left of it */
    size_t size, trials;
    size_t chosen[16], best[16];
    double best_left, second_left;
} search;

/* Extend the span by a node's columns; how many dimensions that adds. */
static size_t extend(state *s, size_t have, size_t node)
{
    size_t added = 0;

    for (size_t l = 0; l < s->e->lanes && have + added < s->q; l++) {
        double *b = s->basis + (have + added) * s->q, before, after;

        column(s, node * s->e->lanes + l, b);
        before = dot(b, b, s->q);
        for (int pass = 0; pass < 2; pass++)
            for (size_t k = 0; k < have + added; k++)
                axpy(s->q, -dot(s->basis + k * s->q, b, s->q),
                     s->basis + k * s->q, b);
        after = dot(b, b, s->q);
        if (!(after > 1e-20 * before))
            continue;
        for (size_t k = 0; k < s->q; k++)
            b[k] /= sqrt(after);
        added++;
    }
    return added;
}

static double left_over(const state *s, const double *target, size_t have)
{
    memcpy(s->rest, target, s->q * sizeof *target);
    for (size_t k = 0; k < have; k++)
        axpy(s->q, -dot(s->basis + k * s->q, s->rest, s->q),
             s->basis + k * s->q, s->rest);
    return sqrt(dot(s->rest, s->rest, s->q));
}

static void try_nodes(search *x, size_t depth, size_t from, size_t have)
{
    state *s = x->s;

    for (size_t n = from; n < s->e->nodes && x->trials < MOST_TRIALS; n++) {
        size_t added;
        double left;

        if (s->bad[n])
            continue;
        added = extend(s, have, n);
        x->chosen[depth] = n;
        x->trials++;
        if (depth + 1 < x->size) {
            try_nodes(x, depth + 1, n + 1, have + added);
            continue;
        }
        left = left_over(s, x->target, have + added);
        if (left < x->best_left) {
            x->second_left = x->best_left;
            x->best_left = left;
            memcpy(x->best, x->chosen, sizeof x->best);
        } else if (left < x->second_left) {
            x->second_left = left;
        }
    }
}

/* Explanations of this size that would fit by accident. */
static double accidents(const state *s, size_t size, double share)
{
    double n = 1, room = (double)(s->q - size * s->e->lanes);
    size_t alive = s->e->nodes - s->count;

    for (size_t i = 0; i < size; i++)
        n *= (double)(alive - i) / (double)(i + 1);
    return n * pow(share, room);
}

/* The strongest column of syndromes that is above the floor; false when it
 * cannot be told who made it. */
static bool explain_column(state *s, const double *target, double floor)
{
    search x = {.s = s, .target = target};
    double size = sqrt(dot(target, target, s->q));

    x.limit = fmax(ROUNDING * size, 5 * floor);
    for (x.size = 1; x.size * s->e->lanes < s->q && x.size < 16 &&
                     x.size + s->count < s->e->nodes;
         x.size++) {
        if (accidents(s, x.size, x.limit / size) > ACCIDENT)
            return false;
        x.best_left = x.second_left = HUGE_VAL;
        try_nodes(&x, 0, 0, 0);
        if (x.trials >= MOST_TRIALS)
            return false;
        if (x.best_left > x.limit)
            continue;
        if (x.second_left < 10 * x.limit)
            return false;
        for (size_t i = 0; i < x.size; i++)
            erase(s, x.best[i]);
        return true;
    }
    return false;
}

/* Column c of H Y. */
static void syndrome(const state *s, size_t c, double *out)
{
    memset(out, 0, s->q * sizeof *out);
    for (size_t i = 0; i < s->q; i++)
        for (size_t r = 0; r < s->rows; r++)
            out[i] += s->H[i * s->rows + r] * s->Y[r * s->columns + c];
}

/* One column that few nodes explain, the strongest first. */
static kofn_status erase_by_columns(state *s, bool *found)
{
    size_t m = s->columns, step = s->e->closed ? 4 : 1;
    double *all = kofn_layout_table(m, s->q), *norm = kf_new(m, sizeof *norm);
    double floor = s->floor / sqrt((double)m) * 2;

    *found = false;
    if (!all || !norm) {
        kf_free(all);
        kf_free(norm);
        return KOFN_NOMEM;
    }
    for (size_t c = 0; c < m; c += step) {
        syndrome(s, c, all + c * s->q);
        norm[c] = dot(all + c * s->q, all + c * s->q, s->q);
    }
    for (int attempt = 0; attempt < 32 && !*found; attempt++) {
        size_t best = m;

        for (size_t c = 0; c < m; c += step)
            if (norm[c] > floor * floor && (best == m || norm[c] > norm[best]))
                best = c;
        if (best == m)
            break;
        norm[best] = 0;
        *found = explain_column(s, all + best * s->q, floor);
    }
    kf_free(all);
    kf_free(norm);
    return KOFN_OK;
}

/* ---- the loop ----------------------------------------------------------------------- */

/* KOFN_AGAIN: somebody was erased, look again. */
static kofn_status look(state *s)
{
    size_t r, had = s->count;
    double weakest;
    bool found;

    if (s->q == 0)
        return KOFN_CORRUPT; /* no witness is left */
    s->floor = 4 * s->e->noise *
               (sqrt((double)s->columns) + sqrt((double)s->q));
    decompose(s);
    r = signal(s, &weakest);
    if (r == 0)
        return KOFN_OK;
    erase_inside(s, r, weakest);
    if (s->count > had)
        return KOFN_AGAIN;
    TRY(erase_by_columns(s, &found));
    return found ? KOFN_AGAIN : KOFN_CORRUPT;
}

kofn_status kf_suspect(const kf_evidence *e, size_t most, uint8_t *bad,
                       size_t *count)
{
    kofn_status st;
    state s;

    *count = 0;
    st = set_up(&s, e, bad);
    if (!st) {
        erase_wild(&s);
        do {
            st = s.count > most ? KOFN_CORRUPT : look(&s);
        } while (st == KOFN_AGAIN);
        *count = s.count;
    }
    tear_down(&s);
    return st;
}
