/* erring_stage.c -- a product by nodes that err: each encodes, multiplies and answers
 * for itself; who answered wrongly is found as anywhere in kofn, and gets its block
 * anew of those of others. */
#include "dnn/erring.h"

#include "code/code.h"
#include "code/suspect.h"
#include "mat/mat.h"

#include <math.h>

/* Rounding of values in units of what the norms of their factors allow, and of what
 * no honest one reaches, as in src/data/check.c. */
#define USUAL(terms) (0x1p-52 * (1 + 0.1 * sqrt((double)(terms))))
#define ALARM 256

/* ---- memory ---------------------------------------------------------------- */

static const erring_way *way_of(const erring_layer *l, bool back)
{
    return &l->nodes->way[back];
}

/* Points in a part of a batch. */
static size_t points(const erring_layer *l, bool back)
{
    return kf_ceil_div(l->batch, way_of(l, back)->cut);
}

size_t erring_columns(const erring_layer *l, bool back)
{
    return points(l, back) * (back ? l->wide : l->high);
}

kofn_status erring_layer_new(erring_layer *l, const erring_nodes *nodes,
                             size_t out, size_t in, size_t batch)
{
    size_t values = nodes->P, most, result = 0;

    *l = (erring_layer){.nodes = nodes,
                        .out = out,
                        .in = in,
                        .batch = batch,
                        .high = kf_ceil_div(out, nodes->m),
                        .wide = kf_ceil_div(in, nodes->n)};
    most = kf_max(kf_max(erring_columns(l, false), erring_columns(l, true)),
                  l->high * l->wide);
    for (size_t i = 0; i < 2; i++) {
        const erring_code *c = &nodes->way[i].code;

        values = kf_max(values, c->groups * c->values);
        result = kf_max(result, c->groups * c->wants);
    }
    result = kf_max(result, nodes->m * nodes->n);
    l->block = kofn_layout_table(nodes->P, l->high * l->wide);
    l->message = kofn_layout_table(batch + nodes->P, kf_max(l->high, l->wide));
    l->copy = kofn_layout_table(batch, kf_max(out, in));
    l->Y = kofn_layout_table(values + 1, most);
    l->scale = kofn_layout_table(values, 1);
    l->result = kofn_layout_table(result, most);
    l->bad = kf_zero(nodes->P + values, 1);
    if (!l->block || !l->message || !l->copy || !l->Y || !l->scale ||
        !l->result || !l->bad)
        return KOFN_NOMEM;
    l->wrong = l->bad + nodes->P;
    return KOFN_OK;
}

void erring_layer_free(erring_layer *l)
{
    kf_free(l->block);
    kf_free(l->message);
    kf_free(l->copy);
    kf_free(l->Y);
    kf_free(l->scale);
    kf_free(l->result);
    kf_free(l->bad); /* and l->wrong */
    *l = (erring_layer){0};
}

static kofn_matrix plain(double *x, size_t rows, size_t cols)
{
    return (kofn_matrix){x, rows, cols, cols, KOFN_F64};
}

/* ---- what goes wrong --------------------------------------------------------- */

bool erring_strikes(erring_fate *fate, double *x, size_t n)
{
    double mean = 0;

    if (fate->chance <= 0 || kf_rng_uniform(&fate->rng) >= fate->chance)
        return false;
    for (size_t i = 0; i < n; i++)
        mean += fabs(x[i]) / (double)n;
    for (size_t i = 0; i < n; i++) {
        double u = kf_rng_uniform(&fate->rng), v = kf_rng_uniform(&fate->rng);

        x[i] += fate->strength * mean * sqrt(-2 * log1p(-u)) *
                cos(6.283185307179586477 * v);
    }
    fate->faults++;
    return true;
}

/* ---- blocks ------------------------------------------------------------------ */

/* to += by times the part of a that begins there, as far as a goes. */
static void add_part(kofn_matrix to, double by, const kofn_matrix *a,
                     size_t row, size_t col)
{
    size_t high = row < a->rows ? kf_min(to.rows, a->rows - row) : 0;
    size_t wide = col < a->cols ? kf_min(to.cols, a->cols - col) : 0;

    for (size_t i = 0; i < high && by != 0; i++) {
        const double *x = kf_at(a, row + i, col);
        double *y = kf_at(&to, i, 0);

        for (size_t j = 0; j < wide; j++)
            y[j] += by * x[j];
    }
}

static double *block_of(const erring_layer *l, size_t p)
{
    return l->block + p * l->high * l->wide;
}

void erring_encode(erring_layer *l, const kofn_matrix *W)
{
    const erring_nodes *c = l->nodes;

    memset(l->block, 0, c->P * l->high * l->wide * sizeof *l->block);
    for (size_t p = 0; p < c->P; p++)
        for (size_t i = 0; i < c->m; i++)
            for (size_t j = 0; j < c->n; j++)
                add_part(plain(block_of(l, p), l->high, l->wide),
                         c->f[p * c->m + i] * c->g[p * c->n + j], W,
                         i * l->high, j * l->wide);
}

/* E: parts of the weights that nodes' blocks are made of. */
static void fill_rows(const erring_nodes *c, size_t p, double *E)
{
    for (size_t i = 0; i < c->m; i++)
        for (size_t j = 0; j < c->n; j++)
            E[i + c->m * j] = c->f[p * c->m + i] * c->g[p * c->n + j];
}

kofn_status erring_read(const erring_layer *l, kofn_matrix *W)
{
    const erring_nodes *c = l->nodes;
    size_t mn = c->m * c->n, size = l->high * l->wide;
    double *E = kofn_layout_table(c->P, mn), *I = kofn_layout_table(mn, mn),
           *D = kofn_layout_table(mn, c->P), condition;
    kofn_status st = E && I && D ? KOFN_OK : KOFN_NOMEM;

    for (size_t p = 0; p < c->P && !st; p++)
        fill_rows(c, p, E + p * mn);
    for (size_t x = 0; x < mn && !st; x++)
        I[x * mn + x] = 1;
    if (!st)
        st = kf_pseudo(&(kf_equation){c->P, mn, E, mn, I}, D, &condition);
    for (size_t x = 0; x < mn && !st; x++) {
        double *part = l->result + x * size;

        memset(part, 0, size * sizeof *part);
        for (size_t p = 0; p < c->P; p++)
            for (size_t k = 0; k < size; k++)
                part[k] += D[x * c->P + p] * block_of(l, p)[k];
    }
    for (size_t r = 0; r < W->rows && !st; r++)
        for (size_t k = 0; k < W->cols; k++) {
            size_t x = r / l->high + c->m * (k / l->wide);

            *(double *)kf_at(W, r, k) =
                l->result[x * size + r % l->high * l->wide + k % l->wide];
        }
    kf_free(E);
    kf_free(I);
    kf_free(D);
    return st;
}

/* ---- answers ------------------------------------------------------------------- */

/* What this node multiplies its block with. */
static void make_message(erring_layer *l, bool back, size_t p,
                         const kofn_matrix *a)
{
    const erring_way *w = way_of(l, back);
    size_t high = points(l, back), wide = back ? l->high : l->wide;

    memset(l->message, 0, high * wide * sizeof *l->message);
    for (size_t x = 0; x < w->parts; x++) {
        size_t down = back ? x % w->rows : x / w->rows,
               right = back ? x / w->rows : x % w->rows;

        add_part(plain(l->message, high, wide), w->in[p * w->parts + x], a,
                 down * high, right * wide);
    }
}

static double length(const double *x, size_t n)
{
    double s = 0;

    for (size_t i = 0; i < n; i++)
        s += x[i] * x[i];
    return sqrt(s);
}

/* Its own copy of what came before, where it makes one. */
static kofn_matrix own_copy(erring_layer *l, const kofn_matrix *a,
                            erring_fate *fate)
{
    kofn_matrix own = plain(l->copy, a->rows, a->cols);

    if (!fate->copies)
        return *a;
    for (size_t i = 0; i < a->rows; i++)
        memcpy(l->copy + i * a->cols, kf_at(a, i, 0),
               a->cols * sizeof *l->copy);
    return erring_strikes(fate, l->copy, a->rows * a->cols) ? own : *a;
}

/* Adds node p's answer to a value; how large its entries can usually be. */
static double answer(erring_layer *l, bool back, size_t p, const kofn_matrix *a,
                     erring_fate *fate, double *value)
{
    size_t high = points(l, back), inner = back ? l->high : l->wide;
    size_t n = erring_columns(l, back), size = l->high * l->wide;
    double *own = l->result; /* free until all have answered */
    kofn_matrix from = own_copy(l, a, fate), M, W, R;

    make_message(l, back, p, &from);
    if (fate->everywhere)
        erring_strikes(fate, l->message, high * inner);
    M = plain(l->message, high, inner);
    W = plain(block_of(l, p), l->high, l->wide);
    R = plain(own, high, back ? l->wide : l->high);
    kf_mat_multiply_turned(&M, false, &W, !back, &R);
    erring_strikes(fate, own, n);
    for (size_t k = 0; k < n; k++)
        value[k] += own[k];
    return length(l->message, high * inner) * length(W.data, size) /
           sqrt((double)n);
}

void erring_answer(erring_layer *l, bool back, const kofn_matrix *a,
                   erring_fate *fate)
{
    const erring_code *c = &way_of(l, back)->code;
    size_t n = erring_columns(l, back);

    memset(l->Y, 0, c->groups * c->values * n * sizeof *l->Y);
    for (size_t v = 0; v < c->groups * c->values; v++) {
        l->scale[v] = 0;
        for (size_t k = 0; k < c->members; k++)
            l->scale[v] += answer(l, back, c->member[v * c->members + k], a,
                                  fate, l->Y + v * n);
    }
}

/* ---- who is wrong ---------------------------------------------------------------- */

/* The median of positive numbers, which are put in order. */
static double middle(double *x, size_t n)
{
    for (size_t i = 1; i < n; i++)
        for (size_t j = i; j > 0 && x[j] < x[j - 1]; j--) {
            double y = x[j];

            x[j] = x[j - 1];
            x[j - 1] = y;
        }
    return x[n / 2];
}

/* What is asked of values: numbers of each, and of what so many terms they are sums. */
typedef struct question {
    const erring_code *c;
    size_t columns, terms;
    bool adversarial;
} question;

/* Those of the group whose first value is v that are wrong, by the parities of all. */
static kofn_status tell(erring_layer *l, const question *q, size_t v)
{
    const erring_code *c = q->c;
    double unit = middle(l->scale + v, c->values), unseen;
    size_t most = q->adversarial ? c->q / 2 : c->q - 1, count;
    kf_evidence e = {.nodes = c->values,
                     .lanes = 1,
                     .q = c->q,
                     .H = c->H,
                     .columns = q->columns,
                     .Y = l->Y + v * q->columns,
                     .noise = unit * USUAL(q->terms),
                     .alarm = unit * USUAL(q->terms) * ALARM,
                     .bound = HUGE_VAL,
                     .over = c->values - c->needed,
                     .liars = c->q / 2,
                     .promised = most};
    kofn_status st;

    memset(l->wrong + v, 0, c->values);
    if (c->q == 0 || unit == 0)
        return KOFN_OK;
    st = kf_suspect(&e, most, l->wrong + v, &count, &unseen);
    return st == KOFN_CORRUPT
               ? kf_fail(st, "of %zu values more than %zu are wrong", c->values,
                         most)
               : st;
}

/* All groups; KOFN_CORRUPT when one of them cannot tell. */
static kofn_status tell_all(erring_layer *l, question q, size_t *bad)
{
    const erring_code *c = q.c;

    for (size_t g = 0; g < c->groups; g++)
        TRY(tell(l, &q, g * c->values));
    memset(l->bad, 0, l->nodes->P);
    *bad = 0;
    for (size_t v = 0; v < c->groups * c->values; v++)
        for (size_t k = 0; k < c->members && l->wrong[v]; k++) {
            l->bad[c->member[v * c->members + k]] = 1;
            (*bad)++;
        }
    return KOFN_OK;
}

/* ---- what comes out ----------------------------------------------------------------- */

/* What decodes the values that are left. */
static kofn_status decoder(const erring_code *c, const uint8_t *wrong,
                           double *D)
{
    double *G = kofn_layout_table(c->values, c->symbols), condition;
    double *some = kofn_layout_table(c->wants, c->values);
    size_t left = 0;
    kofn_status st = G && some ? KOFN_OK : KOFN_NOMEM;

    for (size_t v = 0; v < c->values && !st; v++)
        if (!wrong[v])
            memcpy(G + left++ * c->symbols, c->G + v * c->symbols,
                   c->symbols * sizeof *G);
    if (!st)
        st = kf_pseudo(&(kf_equation){left, c->symbols, G, c->wants, c->W},
                       some, &condition);
    for (size_t w = 0; w < c->wants && !st; w++)
        for (size_t v = 0, k = 0; v < c->values; v++)
            D[w * c->values + v] = wrong[v] ? 0 : some[w * left + k++];
    kf_free(G);
    kf_free(some);
    return st;
}

/* Want w of group g into its place. */
static void put(const erring_layer *l, bool back, size_t number,
                const double *from, kofn_matrix *out)
{
    size_t grid = way_of(l, back)->grid_rows, high = points(l, back),
           wide = back ? l->wide : l->high;
    size_t down = (back ? number % grid : number / grid) * high,
           right = (back ? number / grid : number % grid) * wide;

    for (size_t i = 0; i < high && down + i < out->rows; i++)
        for (size_t j = 0; j < wide && right + j < out->cols; j++)
            *(double *)kf_at(out, down + i, right + j) = from[i * wide + j];
}

static kofn_status decode_group(erring_layer *l, bool back, size_t g,
                                kofn_matrix *out)
{
    const erring_code *c = &way_of(l, back)->code;
    size_t n = erring_columns(l, back), bad = 0;
    const uint8_t *wrong = l->wrong + g * c->values;
    double *mine = NULL;
    kofn_status st = KOFN_OK;

    for (size_t v = 0; v < c->values; v++)
        bad += wrong[v];
    if (bad) {
        mine = kofn_layout_table(c->wants, c->values);
        st = mine ? decoder(c, wrong, mine) : KOFN_NOMEM;
    }
    for (size_t w = 0; w < c->wants && !st; w++) {
        const double *D = (bad ? mine : c->D) + w * c->values;

        memset(l->result, 0, n * sizeof *l->result);
        for (size_t v = 0; v < c->values; v++)
            for (size_t k = 0; k < n && D[v] != 0; k++)
                l->result[k] += D[v] * l->Y[(g * c->values + v) * n + k];
        put(l, back, g * c->wants + w, l->result, out);
    }
    kf_free(mine);
    return st;
}

kofn_status erring_decode(erring_layer *l, bool back, bool adversarial,
                          kofn_matrix *out, size_t *bad)
{
    const erring_code *c = &way_of(l, back)->code;

    TRY(tell_all(l,
                 (question){c, erring_columns(l, back), back ? l->out : l->in,
                            adversarial},
                 bad));
    for (size_t g = 0; g < c->groups; g++)
        TRY(decode_group(l, back, g, out));
    return KOFN_OK;
}

/* ---- repairs ------------------------------------------------------------------------- */

/* Node p's block of those of these. */
static kofn_status regenerate(erring_layer *l, size_t p, const uint32_t *from,
                              size_t n)
{
    const erring_nodes *c = l->nodes;
    size_t mn = c->m * c->n, size = l->high * l->wide;
    double *E = kofn_layout_table(n, mn), *e = kofn_layout_table(1, mn),
           *x = kofn_layout_table(1, n), *to = block_of(l, p), condition;
    kofn_status st = E && e && x ? KOFN_OK : KOFN_NOMEM;

    if (!st) {
        for (size_t i = 0; i < n; i++)
            fill_rows(c, from[i], E + i * mn);
        fill_rows(c, p, e);
        st = kf_pseudo(&(kf_equation){n, mn, E, 1, e}, x, &condition);
    }
    if (!st)
        memset(to, 0, size * sizeof *to);
    for (size_t i = 0; i < n && !st; i++)
        for (size_t k = 0; k < size; k++)
            to[k] += x[i] * block_of(l, from[i])[k];
    kf_free(E);
    kf_free(e);
    kf_free(x);
    return st;
}

kofn_status erring_repair(erring_layer *l, const erring_code *c)
{
    size_t P = l->nodes->P, n = 0;
    uint32_t *from = kf_new(P, sizeof *from);
    uint8_t *takes = kf_zero(P, 1);
    kofn_status st = from && takes ? KOFN_OK : KOFN_NOMEM;

    for (size_t i = 0; i < c->groups * c->values * c->members && !st; i++)
        takes[c->member[i]] = 1;
    for (size_t p = 0; p < P && !st; p++)
        if (takes[p] && !l->bad[p])
            from[n++] = (uint32_t)p;
    for (size_t p = 0; p < P && !st; p++)
        if (l->bad[p])
            st = regenerate(l, p, from, n);
    kf_free(from);
    kf_free(takes);
    return st;
}

kofn_status erring_verify(erring_layer *l, bool adversarial, size_t *bad)
{
    size_t size = l->high * l->wide;

    *bad = 0;
    for (size_t i = 0; i < l->nodes->checks; i++) {
        const erring_code *c = &l->nodes->blocks[i];
        size_t now;

        for (size_t v = 0; v < c->groups * c->values; v++) {
            memcpy(l->Y + v * size, block_of(l, c->member[v]),
                   size * sizeof *l->Y);
            l->scale[v] = length(l->Y + v * size, size) / sqrt((double)size);
        }
        TRY(tell_all(l, (question){c, size, size, adversarial}, &now));
        TRY(erring_repair(l, c));
        *bad += now;
    }
    return KOFN_OK;
}

/* ---- steps ----------------------------------------------------------------------------- */

/* to: batch x wide, the bands of a mixed. */
static void mix(double *to, const kofn_matrix *a, size_t wide, size_t bands,
                const double *by)
{
    memset(to, 0, a->rows * wide * sizeof *to);
    for (size_t i = 0; i < bands; i++)
        add_part(plain(to, a->rows, wide), by[i], a, 0, i * wide);
}

void erring_update(erring_layer *l, const kofn_matrix *D, const kofn_matrix *X,
                   double step, double decay, erring_fate *fate)
{
    const erring_nodes *c = l->nodes;
    double *mixed = l->message, *other = l->copy;

    for (size_t p = 0; p < c->P; p++) {
        kofn_matrix W = plain(block_of(l, p), l->high, l->wide);
        kofn_matrix U = plain(mixed, D->rows, l->high),
                    V = plain(other, X->rows, l->wide);

        const kofn_matrix own = own_copy(l, D, fate);

        mix(mixed, &own, l->high, c->m, c->f + p * c->m);
        mix(other, X, l->wide, c->n, c->g + p * c->n);
        if (fate->everywhere) {
            erring_strikes(fate, mixed, D->rows * l->high);
            erring_strikes(fate, other, X->rows * l->wide);
        }
        kf_mat_add_turned(&U, &V, -step, 1 - step * decay, &W);
        erring_strikes(fate, W.data, l->high * l->wide);
    }
}
