/* baseline_code.c -- assigns blocks to nodes, makes the two codes, and locates
 * wrong values of a word (math/training.md 7). */
#include "dnn/baseline.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#define UNIT (DBL_EPSILON / 2)

/* ---- codes --------------------------------------------------------------- */

/* Writes [I; parity] with K + more lines. Parity lines come from a Cauchy
 * matrix and have length 1. Its points are Chebyshev's, dealt in turn, so that
 * lines differ. Every square part of a Cauchy matrix is invertible, so any K
 * lines decode. */
static void fill_systematic(double *G, size_t K, size_t more)
{
    size_t all = K + more, data = 0, parity = 0;
    double of_data[BASELINE_MOST_NODES], of_parity[BASELINE_MOST_NODES];

    for (size_t i = 0; i < all; i++) {
        double x = cos(acos(-1) * (2 * (double)i + 1) / (2 * (double)all));

        if ((i + 1) * K / all > data)
            of_data[data++] = x;
        else
            of_parity[parity++] = x;
    }
    for (size_t i = 0; i < K; i++)
        G[i * K + i] = 1;
    for (size_t i = 0; i < more; i++) {
        double *g = G + (K + i) * K, square = 0;

        for (size_t j = 0; j < K; j++) {
            g[j] = 1 / (of_parity[i] - of_data[j]);
            square += g[j] * g[j];
        }
        for (size_t j = 0; j < K; j++)
            g[j] /= sqrt(square);
    }
}

static kofn_status fill_way(baseline_code *c, bool back)
{
    const dnn_nodes *k = &c->nodes;
    size_t lines = back ? k->n : k->m, across = back ? k->m : k->n;
    baseline_way *w = &c->way[back];

    *w = c->copies ? (baseline_way){lines, k->P / (k->m * k->n), across, 1, 0}
                   : (baseline_way){1, lines + c->more, across, lines, 0};
    w->G = calloc(w->values * w->K, sizeof *w->G);
    c->mix[back] = calloc((lines + c->more) * lines, sizeof *w->G);
    if (!w->G || !c->mix[back])
        return KOFN_NOMEM;
    fill_systematic(c->mix[back], lines, c->more);
    for (size_t i = 0; i < w->values * w->K; i++)
        w->G[i] = c->copies ? 1 : c->mix[back][i];
    return KOFN_OK;
}

static kofn_status check(const dnn_nodes *k)
{
    size_t more = (k->P - k->m * k->n) / (k->m + k->n);
    size_t widest = larger(k->m, k->n) + more;

    if (k->P > BASELINE_MOST_NODES)
        return papers_fail(KOFN_INVAL, "%zu nodes; give %d at most", k->P,
                           BASELINE_MOST_NODES);
    if (k->kind == DNN_TWO_MDS && widest > BASELINE_MOST_VALUES)
        return papers_fail(KOFN_INVAL,
                           "%zu rows or columns of two codes; give %d at most",
                           widest, BASELINE_MOST_VALUES);
    return KOFN_OK;
}

kofn_status baseline_code_new(baseline_code *c, const dnn_nodes *nodes)
{
    size_t mn = nodes->m * nodes->n;
    dnn_tolerance t;

    *c = (baseline_code){.nodes = *nodes,
                         .copies = nodes->kind == DNN_REPLICATION};
    PAPERS_TRY(dnn_tolerance_of(nodes, &t));
    PAPERS_TRY(check(nodes));
    if (!c->copies)
        c->more = (nodes->P - mn) / (nodes->m + nodes->n);
    c->nodes.P =
        c->copies ? nodes->P / mn * mn : mn + c->more * (nodes->m + nodes->n);
    PAPERS_TRY(fill_way(c, false));
    return fill_way(c, true);
}

void baseline_code_free(baseline_code *c)
{
    for (int back = 0; back < 2; back++) {
        free(c->way[back].G);
        free(c->mix[back]);
    }
}

/* ---- places -------------------------------------------------------------- */

/* Copies: the grids one after another. Two codes: the grid with its parity
 * rows, column by column, then the parity columns. */
static size_t node_at(const baseline_code *c, baseline_place p)
{
    size_t m = c->nodes.m, n = c->nodes.n, tall = m + c->more;

    if (c->copies)
        return p.copy * m * n + p.row + m * p.col;
    return p.col < n ? p.row + tall * p.col
                     : tall * n + p.row + m * (p.col - n);
}

baseline_place baseline_place_of(const baseline_code *c, size_t node)
{
    size_t m = c->nodes.m, n = c->nodes.n, tall = m + c->more;

    if (c->copies)
        return (baseline_place){node / (m * n), node % m, node / m % n};
    if (node < tall * n)
        return (baseline_place){0, node % tall, node / tall};
    return (baseline_place){0, (node - tall * n) % m,
                            n + (node - tall * n) / m};
}

size_t baseline_member(const baseline_code *c, bool back, size_t group,
                       size_t value, size_t k)
{
    size_t line = c->copies ? group : value;

    return node_at(c, (baseline_place){c->copies ? value : 0, back ? k : line,
                                       back ? line : k});
}

size_t baseline_leader(const baseline_code *c, bool back, size_t group,
                       size_t value)
{
    return baseline_member(c, back, group, value,
                           back ? c->way[back].members - 1 : 0);
}

void baseline_combine(const double *weight, size_t parts, const double *a,
                      size_t len, double *out)
{
    bool begun = false;

    for (size_t p = 0; p < parts; p++) {
        const double *x = a + p * len;

        if (weight[p] == 0)
            continue;
        for (size_t i = 0; i < len; i++)
            out[i] = (begun ? out[i] : 0) + weight[p] * x[i];
        begun = true;
    }
    if (!begun)
        memset(out, 0, len * sizeof *out);
}

/* ---- small matrices ------------------------------------------------------ */

/* Holds the good lines of G as Q R; columns of Q are orthonormal. */
typedef struct lines {
    size_t count, K, of[BASELINE_MOST_VALUES];
    double Q[BASELINE_MOST_VALUES][BASELINE_MOST_VALUES];
    double R[BASELINE_MOST_VALUES][BASELINE_MOST_VALUES];
} lines;

/* Subtracts column k of Q from column j, twice: once leaves rounding. */
static void orthogonalize(lines *s, size_t j)
{
    for (size_t k = 0; k < 2 * j; k++) {
        double dot = 0;

        for (size_t i = 0; i < s->count; i++)
            dot += s->Q[i][k % j] * s->Q[i][j];
        for (size_t i = 0; i < s->count; i++)
            s->Q[i][j] -= dot * s->Q[i][k % j];
        s->R[k % j][j] += dot;
    }
}

static void factor(const baseline_way *w, uint64_t bad, lines *s)
{
    *s = (lines){.K = w->K};
    for (size_t v = 0; v < w->values; v++)
        if (!(bad >> v & 1)) {
            memcpy(s->Q[s->count], w->G + v * w->K, w->K * sizeof *w->G);
            s->of[s->count++] = v;
        }
    for (size_t j = 0; j < s->K; j++) {
        double square = 0;

        orthogonalize(s, j);
        for (size_t i = 0; i < s->count; i++)
            square += s->Q[i][j] * s->Q[i][j];
        s->R[j][j] = sqrt(square);
        for (size_t i = 0; i < s->count; i++)
            s->Q[i][j] /= s->R[j][j];
    }
}

/* ---- locating errors ------------------------------------------------------
 */

/* Returns the length of H Y for an orthonormal parity H of the lines, which is
 * that of Y - Q Q' Y. */
static double syndrome(const lines *s, const baseline_word *w)
{
    double sum = 0;

    for (size_t c = 0; c < w->len; c++) {
        double in[BASELINE_MOST_VALUES] = {0};

        for (size_t j = 0; j < s->K; j++)
            for (size_t i = 0; i < s->count; i++)
                in[j] += s->Q[i][j] * w->value[s->of[i] * w->len + c];
        for (size_t i = 0; i < s->count; i++) {
            double rest = w->value[s->of[i] * w->len + c];

            for (size_t j = 0; j < s->K; j++)
                rest -= s->Q[i][j] * in[j];
            sum += rest * rest;
        }
    }
    return sqrt(sum);
}

/* Returns the longest syndrome of right values. A rounded value is off by a
 * few units of its bound, and each update of its block has rounded once more.
 * The median bound belongs to a right value, unless most are wrong. */
static double threshold(const baseline_word *w, size_t values)
{
    double bound[BASELINE_MOST_VALUES];

    memcpy(bound, w->bound, values * sizeof *bound);
    return (64 + 2 * sqrt((double)w->updates)) * UNIT *
           papers_median(bound, values) * sqrt((double)values);
}

static size_t size_of(uint64_t set)
{
    size_t n = 0;

    for (; set; set &= set - 1)
        n++;
    return n;
}

/* Finds the smallest set of wrong values that leaves all others consistent, by
 * trying all sets. At least K + 1 values must remain; otherwise nothing
 * confirms them. */
static bool judge_code(const baseline_way *w, const baseline_word *word,
                       uint64_t *bad)
{
    size_t spare = w->values - w->K;
    double most = threshold(word, w->values);

    for (size_t t = 0; t < spare; t++)
        for (*bad = 0; *bad >> w->values == 0; ++*bad) {
            lines s;

            if (size_of(*bad) != t)
                continue;
            factor(w, *bad, &s);
            if (syndrome(&s, word) <= most)
                return true;
        }
    *bad = 0;
    return spare == 0; /* without spare values no error shows */
}

/* Votes: a value that occurs at least twice, bit for bit, is right. */
static bool judge_copies(const baseline_way *w, const baseline_word *word,
                         uint64_t *bad)
{
    size_t most = 0;

    for (size_t v = 0; v < w->values; v++) {
        uint64_t other = 0;
        size_t votes;

        for (size_t u = 0; u < w->values; u++)
            if (memcmp(word->value + v * word->len, word->value + u * word->len,
                       word->len * sizeof(double)) != 0)
                other |= UINT64_C(1) << u;
        votes = w->values - size_of(other);
        if (votes > most) {
            most = votes;
            *bad = other;
        }
    }
    return most > 1 || w->values == 1;
}

bool baseline_judge(const baseline_code *c, bool back, const baseline_word *w,
                    uint64_t *bad)
{
    *bad = 0;
    return c->copies ? judge_copies(&c->way[back], w, bad)
                     : judge_code(&c->way[back], w, bad);
}

void baseline_weights(const baseline_code *c, bool back, uint64_t bad, size_t v,
                      double *weight)
{
    const baseline_way *w = &c->way[back];
    double y[BASELINE_MOST_VALUES];
    size_t first = 0;
    lines s;

    memset(weight, 0, w->values * sizeof *weight);
    while (bad >> first & 1)
        first++;
    if (c->copies || !(bad >> v & 1)) {
        weight[c->copies ? first : v] = 1;
        return;
    }
    factor(w, bad, &s); /* solve y R = line v; the weights are y Q' */
    for (size_t j = 0; j < s.K; j++) {
        y[j] = w->G[v * w->K + j];
        for (size_t k = 0; k < j; k++)
            y[j] -= y[k] * s.R[k][j];
        y[j] /= s.R[j][j];
    }
    for (size_t i = 0; i < s.count; i++)
        for (size_t j = 0; j < s.K; j++)
            weight[s.of[i]] += y[j] * s.Q[i][j];
}
