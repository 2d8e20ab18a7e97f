/* suspect.c -- locating corrupt results by their syndromes.
 *
 * All entries of a result lie or are honest together.  So with Y = G X + E,
 * E zero but on the rows of a few nodes T, and parities H with H G = 0,
 *
 *     S = H Y = H_T E_T.
 *
 * Honest results leave rounding in S and nothing else; that is tested first
 * and nearly always the end of it.  Otherwise nodes are suspended, that is
 * struck from H, until the others agree:
 *
 *   1. Any q columns of H are independent, so a column of H lies in the span
 *      of the columns of S only if its node lied, or by accident.  A node's
 *      lie can be estimated from that without knowing who else lied: by the
 *      Capon estimate 1 / (h' (S S' + noise)^-1 h), which for an honest node
 *      is as small as the noise.  The q - 1 nodes of largest estimates are
 *      suspended; nothing has to be counted, and no rank decided.
 *   2. Where that is not enough, those whose columns lie in the span (MUSIC).
 *   3. Lies that depend on each other span too little to hold their columns
 *      one by one.  Then a single column of S is explained: guess q - 1 nodes
 *      until they contain the liars, which shows, and reduce them (decoding by
 *      information sets, Prange 1962).
 *
 * Who is suspended is not yet guilty.  Every one is let back in turn unless
 * that makes the results disagree, and in the end nobody else may do as well
 * in the place of one who is named.  Only what passes that is a verdict: it
 * does not rest on how the suspicion arose.
 *
 * Schmidt, "Multiple emitter location and signal parameter estimation", 1986,
 * and Capon, "High-resolution frequency-wavenumber spectrum analysis", 1969,
 * are the sources of 1 and 2 in array processing; that coded results carry
 * the same structure is in Sect. E.8 and E.10 of the project's specification.
 */
#include "suspect.h"

#include "base/rng.h"

#include <math.h>
#include <stdlib.h>

/* A norm of n entries of noise is below sqrt(n) + TAIL for good. */
#define TAIL 6
/* Large entries of S are not exact either. */
#define ROUNDING (32 * 0x1p-52)
/* A column of H that is smaller depends on those that were struck. */
#define DEPENDENT 1e-12
/* Somebody else does as well when the results then disagree less than this
 * many times as much. */
#define AS_WELL 3
/* ... or, in units of the usual noise, than this. */
#define CLEARLY 8
/* Explanations by guesses must be rarer accidents than this. */
#define ACCIDENT 1e-9
/* Multiply-adds that may go into guesses. */
#define GUESSING 6e8
#define COLUMNS_TRIED 6

/* Parities and syndromes [H | S], from which nodes can be struck. */
typedef struct table {
    size_t q, ld;
    double *memory, *first; /* q rows begin at `first` */
} table;

typedef struct state {
    const kf_evidence *e;
    size_t nodes, lanes, rows; /* nodes lanes */
    size_t columns;            /* of S */
    table base, work, trial, extra;
    double *Y;         /* rows x columns, wild rows zeroed */
    double *allowance; /* per column: alarm, and rounding  */
    uint8_t *wild, *held, *named; /* per node */
    size_t wilds;
    /* of the decomposition of S */
    size_t closed;    /* its columns */
    double *C, *U;    /* q x closed: singular vectors times values; q x q */
    double *value;    /* q */
    double *power;    /* per node: how strongly it may have lied */
    uint32_t *order;  /* nodes, largest power first              */
    uint32_t *pick;   /* nodes of a guess, then the others       */
    double *v, *w;    /* scratch: ld, rows or columns; ld        */
    double *span;     /* q x (q + 1): of guesses                 */
    kf_rng rng;
} state;

/* ---- small vectors ------------------------------------------------------------ */

/* Eight sums side by side: the order is the same on every machine. */
static double dot(const double *restrict a, const double *restrict b, size_t n)
{
    double sum[8] = {0}, rest = 0;
    size_t i = 0;

    for (; i + 8 <= n; i += 8)
        for (size_t k = 0; k < 8; k++)
            sum[k] += a[i + k] * b[i + k];
    for (; i < n; i++)
        rest += a[i] * b[i];
    for (size_t k = 0; k < 8; k++)
        rest += sum[k];
    return rest;
}

static void axpy(size_t n, double f, const double *restrict x,
                 double *restrict y)
{
    for (size_t i = 0; i < n; i++)
        y[i] += f * x[i];
}

/* ---- tables ---------------------------------------------------------------------- */

static bool table_new(table *t, size_t q, size_t ld)
{
    *t = (table){.q = q, .ld = ld, .memory = kf_new(q * ld, sizeof(double))};
    t->first = t->memory;
    return t->memory;
}

static void table_copy(table *to, const table *from)
{
    to->q = from->q;
    to->first = to->memory;
    memcpy(to->first, from->first, from->q * from->ld * sizeof *from->first);
}

/* Householder from the left: all but the first parity do not see column j any
 * more; the first is dropped. */
static void strike_column(state *s, table *t, size_t j)
{
    double norm = 0, alpha, head;

    for (size_t i = 0; i < t->q; i++) {
        s->v[i] = t->first[i * t->ld + j];
        norm += s->v[i] * s->v[i];
        t->first[i * t->ld + j] = 0;
    }
    norm = sqrt(norm);
    if (!(norm > DEPENDENT))
        return;
    alpha = s->v[0] > 0 ? -norm : norm;
    head = s->v[0] - alpha;
    s->v[0] = 1;
    for (size_t i = 1; i < t->q; i++)
        s->v[i] /= head;
    memset(s->w, 0, t->ld * sizeof *s->w);
    kf_subtract_product(1, t->q, t->ld, s->v, t->q, t->first, t->ld, s->w,
                        t->ld);
    for (size_t i = 1; i < t->q; i++)
        s->v[i] *= head / alpha;
    t->q--;
    t->first += t->ld;
    kf_subtract_product(t->q, 1, t->ld, s->v + 1, 1, s->w, t->ld, t->first,
                        t->ld);
}

static void strike(state *s, table *t, size_t node)
{
    for (size_t l = 0; l < s->lanes && t->q > 0; l++)
        strike_column(s, t, node * s->lanes + l);
}

/* All that are held, but one; nodes for: but none. */
static void strike_held(state *s, table *t, size_t but)
{
    table_copy(t, &s->base);
    for (size_t n = 0; n < s->nodes; n++)
        if (s->held[n] && n != but)
            strike(s, t, n);
}

/* ---- do they agree? ----------------------------------------------------------------- */

/* How loudly S disagrees; 1 is what honest results never reach. */
static double loudness(const state *s, const table *t)
{
    double one = sqrt((double)t->q) + TAIL, top = 0, all = 0;
    double total = sqrt((double)(t->q * s->columns)) + TAIL;
    double *sum = s->w;

    memset(sum, 0, s->columns * sizeof *sum);
    for (size_t i = 0; i < t->q; i++) {
        const double *S = t->first + i * t->ld + s->rows;

        for (size_t c = 0; c < s->columns; c++)
            sum[c] += S[c] * S[c];
    }
    for (size_t c = 0; c < s->columns; c++) {
        double x = sum[c] / (s->allowance[c] * s->allowance[c]);

        top = fmax(top, x);
        all += x;
    }
    return fmax(sqrt(top) / one, sqrt(all) / total);
}

static bool agree(const state *s, const table *t)
{
    return loudness(s, t) <= 1;
}

/* Nodes that can be suspended with a parity left to say that the rest agree. */
static size_t room(const state *s, const table *t)
{
    return t->q == 0 ? 0 : (t->q - 1) / s->lanes;
}

/* ---- setting up ------------------------------------------------------------------------ */

static kofn_status set_up(state *s, const kf_evidence *e)
{
    size_t rows = e->nodes * e->lanes;

    *s = (state){.e = e,
                 .nodes = e->nodes,
                 .lanes = e->lanes,
                 .rows = rows,
                 .columns = e->columns,
                 .rng = kf_rng_stream(1, KF_FOR_SAMPLE, 0, 0)};
    s->Y = kf_new(rows * e->columns, sizeof *s->Y);
    s->allowance = kf_new(e->columns, sizeof *s->allowance);
    s->wild = kf_zero(e->nodes, 1);
    s->v = kf_new(rows + kf_max(e->q, e->columns), sizeof *s->v);
    s->w = kf_new(rows + kf_max(e->q, e->columns), sizeof *s->w);
    if (!table_new(&s->base, e->q, rows + e->columns) || !s->Y ||
        !s->allowance || !s->wild || !s->v || !s->w)
        return KOFN_NOMEM;
    return KOFN_OK;
}

/* What only a disagreement needs. */
static kofn_status set_up_search(state *s)
{
    size_t q = s->base.q, ld = s->base.ld;

    s->closed = s->columns * (s->e->closed ? 4 : 1);
    s->held = kf_zero(s->nodes, 1);
    s->named = kf_zero(s->nodes, 1);
    s->C = kf_new(q * s->closed, sizeof *s->C);
    s->U = kf_new(q * q, sizeof *s->U);
    s->value = kf_new(q, sizeof *s->value);
    s->power = kf_new(s->nodes, sizeof *s->power);
    s->order = kf_new(s->nodes, sizeof *s->order);
    s->pick = kf_new(s->nodes, sizeof *s->pick);
    s->span = kf_new(q * (q + 1), sizeof *s->span);
    return table_new(&s->work, q, ld) && table_new(&s->trial, q, ld) &&
                   table_new(&s->extra, q, ld) && s->held && s->named &&
                   s->C && s->U && s->value && s->power && s->order && s->pick &&
                   s->span
               ? KOFN_OK
               : KOFN_NOMEM;
}

static void tear_down(state *s)
{
    kf_free(s->base.memory);
    kf_free(s->work.memory);
    kf_free(s->trial.memory);
    kf_free(s->extra.memory);
    kf_free(s->Y);
    kf_free(s->allowance);
    kf_free(s->wild);
    kf_free(s->held);
    kf_free(s->named);
    kf_free(s->C);
    kf_free(s->U);
    kf_free(s->value);
    kf_free(s->power);
    kf_free(s->order);
    kf_free(s->pick);
    kf_free(s->v);
    kf_free(s->w);
    kf_free(s->span);
}

/* What is not a number, or larger than any honest result can be, needs no
 * algebra; and it would drown all else. */
static void find_wild(state *s)
{
    size_t each = s->lanes * s->columns;

    memcpy(s->Y, s->e->Y, s->nodes * each * sizeof *s->Y);
    for (size_t n = 0; n < s->nodes; n++) {
        double *y = s->Y + n * each;
        bool wild = false;

        for (size_t i = 0; i < each; i++)
            wild |= !(fabs(y[i]) <= s->e->bound) || isinf(y[i]);
        if (wild)
            memset(y, 0, each * sizeof *y);
        s->wild[n] = wild;
        s->wilds += wild;
    }
}

static void fill_base(state *s)
{
    table *t = &s->base;

    memset(t->first, 0, t->q * t->ld * sizeof *t->first);
    for (size_t i = 0; i < t->q; i++)
        memcpy(t->first + i * t->ld, s->e->H + i * s->rows,
               s->rows * sizeof *t->first);
    kf_subtract_product(t->q, s->rows, s->columns, s->e->H, s->rows, s->Y,
                        s->columns, t->first + s->rows, t->ld);
    for (size_t n = 0; n < s->nodes; n++)
        if (s->wild[n])
            strike(s, t, n);
    for (size_t c = 0; c < s->columns; c++) {
        double size = 0;

        for (size_t i = 0; i < t->q; i++)
            size += fabs(t->first[i * t->ld + s->rows + c]);
        s->allowance[c] = s->e->alarm + ROUNDING * size;
    }
}

/* ---- decomposing the syndromes ------------------------------------------------------------ */

/* The multiples of a column by 1, i, j, k from the right: all are codewords
 * when it is, and a lie in one lane then shows in as many dimensions as one
 * in all four.  Column c of node n by the m-th of them. */
static void close_column(const double *y, size_t ld, size_t m, double *out,
                         size_t out_ld)
{
    static const int from[4][4] = {
        {0, 1, 2, 3}, {1, 0, 3, 2}, {2, 3, 0, 1}, {3, 2, 1, 0}};
    static const double sign[4][4] = {
        {1, 1, 1, 1}, {-1, 1, 1, -1}, {-1, -1, 1, 1}, {-1, 1, -1, 1}};

    for (size_t l = 0; l < 4; l++)
        out[l * out_ld] = sign[m][l] * y[(size_t)from[m][l] * ld];
}

/* C = -S, closed. */
static kofn_status fill_closed(state *s, const table *t)
{
    double *all;

    if (!s->e->closed) {
        for (size_t i = 0; i < t->q; i++)
            memcpy(s->C + i * s->closed, t->first + i * t->ld + s->rows,
                   s->columns * sizeof *s->C);
        return KOFN_OK;
    }
    all = kf_new(s->rows * s->closed, sizeof *all);
    if (!all)
        return KOFN_NOMEM;
    for (size_t n = 0; n < s->nodes; n++)
        for (size_t c = 0; c < s->columns; c++)
            for (size_t m = 0; m < 4; m++)
                close_column(s->Y + 4 * n * s->columns + c, s->columns, m,
                             all + 4 * n * s->closed + 4 * c + m, s->closed);
    memset(s->C, 0, t->q * s->closed * sizeof *s->C);
    kf_subtract_product(t->q, s->rows, s->closed, t->first, t->ld, all,
                        s->closed, s->C, s->closed);
    kf_free(all);
    return KOFN_OK;
}

/* Householder from the right makes a lower triangle of the q rows of C; the
 * number of columns that are left. */
static size_t compress(state *s, size_t q)
{
    size_t m = s->closed;

    for (size_t i = 0; i < q && i + 1 < m; i++) {
        double *x = s->C + i * m + i, norm = sqrt(dot(x, x, m - i)), head;

        if (!(norm > 0))
            continue;
        head = x[0] > 0 ? x[0] + norm : x[0] - norm;
        for (size_t c = 1; c < m - i; c++)
            x[c] /= head;
        for (size_t k = i + 1; k < q; k++) {
            double *y = s->C + k * m + i;
            double f = y[0] + dot(x + 1, y + 1, m - i - 1);

            f *= fabs(head) / norm;
            y[0] -= f;
            axpy(m - i - 1, -f, x + 1, y + 1);
        }
        x[0] = head > 0 ? -norm : norm;
    }
    for (size_t i = 0; i < q; i++) {
        double *to = s->C + i * kf_min(q, m);

        memmove(to, s->C + i * m, kf_min(i + 1, m) * sizeof *to);
        for (size_t c = i + 1; c < kf_min(q, m); c++)
            to[c] = 0;
    }
    return kf_min(q, m);
}

/* Rotate rows a and b of both until they are orthogonal; false when they are. */
static bool rotate(double *a, double *b, size_t n, double *u, double *v,
                   size_t q)
{
    double aa = dot(a, a, n), bb = dot(b, b, n), ab = dot(a, b, n);
    double zeta, t, cosine, sine;

    if (!(fabs(ab) > 1e-15 * sqrt(aa) * sqrt(bb)) || ab == 0)
        return false;
    zeta = (bb - aa) / (2 * ab);
    t = (zeta >= 0 ? 1 : -1) / (fabs(zeta) + sqrt(1 + zeta * zeta));
    cosine = 1 / sqrt(1 + t * t);
    sine = cosine * t;
    for (size_t k = 0; k < n; k++) {
        double x = a[k], y = b[k];

        a[k] = cosine * x - sine * y;
        b[k] = sine * x + cosine * y;
    }
    for (size_t k = 0; k < q; k++) {
        double x = u[k], y = v[k];

        u[k] = cosine * x - sine * y;
        v[k] = sine * x + cosine * y;
    }
    return true;
}

/* One-sided Jacobi: row k of U becomes a left singular vector of S. */
static kofn_status decompose(state *s, const table *t)
{
    size_t q = t->q, m;
    bool still = true;

    TRY(fill_closed(s, t));
    m = compress(s, q);
    memset(s->U, 0, q * q * sizeof *s->U);
    for (size_t i = 0; i < q; i++)
        s->U[i * q + i] = 1;
    for (int sweep = 0; sweep < 40 && still; sweep++) {
        still = false;
        for (size_t i = 0; i + 1 < q; i++)
            for (size_t j = i + 1; j < q; j++)
                still |= rotate(s->C + i * m, s->C + j * m, m, s->U + i * q,
                                s->U + j * q, q);
    }
    for (size_t i = 0; i < q; i++)
        s->value[i] = sqrt(dot(s->C + i * m, s->C + i * m, m));
    return KOFN_OK;
}

/* Singular values that an entry's noise of `size` can make. */
static double spectral(const state *s, const table *t, double size)
{
    return size * (sqrt((double)s->closed) + sqrt((double)t->q) + TAIL);
}

static size_t values_above(const state *s, const table *t, double level)
{
    size_t n = 0;

    for (size_t i = 0; i < t->q; i++)
        n += s->value[i] > level;
    return n;
}

/* ---- whom to suspect -------------------------------------------------------------------------- */

static void get_column(const table *t, size_t j, double *out)
{
    for (size_t i = 0; i < t->q; i++)
        out[i] = t->first[i * t->ld + j];
}

static bool struck(const state *s, size_t node)
{
    return s->wild[node] || s->held[node];
}

/* The Capon estimate of every node that is not struck, and their order. */
static void rank_nodes(state *s, const table *t)
{
    double least = spectral(s, t, s->e->noise);

    for (size_t n = 0; n < s->nodes; n++) {
        s->power[n] = struck(s, n) ? -1 : 0;
        for (size_t l = 0; l < s->lanes && !struck(s, n); l++) {
            double sum = 0;

            get_column(t, n * s->lanes + l, s->v);
            for (size_t k = 0; k < t->q; k++) {
                double x = dot(s->U + k * t->q, s->v, t->q);

                sum += x * x /
                       (s->value[k] * s->value[k] + least * least);
            }
            s->power[n] = fmax(s->power[n], sum > 0 ? 1 / sum : HUGE_VAL);
        }
        s->order[n] = (uint32_t)n;
    }
    for (size_t i = 1; i < s->nodes; i++) {
        uint32_t node = s->order[i];
        size_t j = i;

        for (; j > 0 && s->power[s->order[j - 1]] < s->power[node]; j--)
            s->order[j] = s->order[j - 1];
        s->order[j] = node;
    }
}

/* Suspend as many as there is room for; true when the rest agree. */
static bool suspend_strongest(state *s)
{
    size_t n = room(s, &s->work);

    table_copy(&s->trial, &s->work);
    for (size_t i = 0; i < n && i < s->nodes; i++)
        if (!struck(s, s->order[i]))
            strike(s, &s->trial, s->order[i]);
    if (!agree(s, &s->trial))
        return false;
    for (size_t i = 0; i < n && i < s->nodes; i++)
        s->held[s->order[i]] |= !struck(s, s->order[i]);
    return true;
}

/* How much of a node's columns lies outside the signal space, 0 to 1. */
static double outside(state *s, const table *t, size_t node, double level)
{
    double whole = 0, left = 0;

    for (size_t l = 0; l < s->lanes; l++) {
        get_column(t, node * s->lanes + l, s->v);
        whole += dot(s->v, s->v, t->q);
        for (size_t k = 0; k < t->q; k++) {
            double x = dot(s->U + k * t->q, s->v, t->q);

            left += s->value[k] > level ? 0 : x * x;
        }
    }
    return whole > 0 ? sqrt(left / whole) : 1;
}

/* Suspend whose columns lie inside, unless more do than can by right. */
static bool suspend_inside(state *s)
{
    table *t = &s->work;
    double level = spectral(s, t, s->e->noise), weakest = HUGE_VAL, limit;
    size_t rank = values_above(s, t, level), found = 0;

    for (size_t i = 0; i < t->q; i++)
        if (s->value[i] > level)
            weakest = fmin(weakest, s->value[i]);
    limit = fmin(0.05, fmax(1e-9, 10 * level / weakest));
    if (rank + s->lanes > t->q)
        return false;
    for (size_t n = 0; n < s->nodes; n++) {
        s->named[n] = !struck(s, n) && outside(s, t, n, level) < limit;
        found += s->named[n];
    }
    if (found == 0 || found * s->lanes > rank)
        return false;
    for (size_t n = 0; n < s->nodes; n++)
        if (s->named[n]) {
            s->held[n] = 1;
            strike(s, t, n);
        }
    return true;
}

/* ---- guessing ------------------------------------------------------------------------------------ */

/* What the columns of some nodes leave of a column of syndromes.  Vectors of
 * the span lie one after the other, the column behind them. */
static double left_of(state *s, const table *t, size_t c,
                      const uint32_t *nodes, size_t n)
{
    size_t q = t->q, have = 0;
    double *x = s->span + q * q;

    for (size_t i = 0; i < n; i++)
        for (size_t l = 0; l < s->lanes && have < q; l++) {
            double *b = s->span + have * q, norm;

            get_column(t, nodes[i] * s->lanes + l, b);
            for (int pass = 0; pass < 2; pass++)
                for (size_t k = 0; k < have; k++)
                    axpy(q, -dot(s->span + k * q, b, q), s->span + k * q, b);
            norm = sqrt(dot(b, b, q));
            if (!(norm > DEPENDENT))
                continue;
            for (size_t k = 0; k < q; k++)
                b[k] /= norm;
            have++;
        }
    get_column(t, s->rows + c, x);
    for (int pass = 0; pass < 2; pass++)
        for (size_t k = 0; k < have; k++)
            axpy(q, -dot(s->span + k * q, x, q), s->span + k * q, x);
    return sqrt(dot(x, x, q));
}

/* The first `want` of the n become a random choice. */
static void shuffle(state *s, uint32_t *nodes, size_t n, size_t want)
{
    for (size_t i = 0; i < want; i++) {
        size_t j = i + (size_t)kf_rng_below(&s->rng, n - i);
        uint32_t t = nodes[i];

        nodes[i] = nodes[j];
        nodes[j] = t;
    }
}

/* Leave out whoever is not needed. */
static size_t reduce(state *s, const table *t, size_t c, uint32_t *nodes,
                     size_t n, double limit)
{
    for (size_t i = n; i-- > 0;) {
        uint32_t out = nodes[i];

        nodes[i] = nodes[n - 1];
        if (left_of(s, t, c, nodes, n - 1) <= limit) {
            n--;
            continue;
        }
        nodes[n - 1] = nodes[i];
        nodes[i] = out;
    }
    return n;
}

/* Sets of this size that would explain a column by accident. */
static double accidents(const state *s, const table *t, size_t alive,
                        size_t size, double share)
{
    double n = 1;

    for (size_t i = 0; i < size; i++)
        n *= (double)(alive - i) / (double)(i + 1);
    return n * pow(share, (double)(t->q - kf_min(t->q, size * s->lanes)));
}

/* Suspend those who made column c, if guessing finds out. */
static bool explain_column(state *s, size_t c, double *budget)
{
    table *t = &s->work;
    size_t alive = 0, want = room(s, t), n;
    double norm = left_of(s, t, c, NULL, 0), one = sqrt((double)t->q) + TAIL;
    double limit = s->allowance[c] * one, cost = (double)(t->q * t->q);
    bool found = false;

    cost *= 4 * (double)t->q;
    for (uint32_t i = 0; i < s->nodes; i++)
        if (!struck(s, i))
            s->pick[alive++] = i;
    while (!found && *budget > 0 && want < alive) {
        shuffle(s, s->pick, alive, want);
        *budget -= cost;
        found = left_of(s, t, c, s->pick, want) <= limit;
    }
    if (!found)
        return false;
    n = reduce(s, t, c, s->pick, want, limit);
    limit = fmax(left_of(s, t, c, s->pick, n), s->e->noise * one);
    if (n > 1 && accidents(s, t, alive, n, limit / norm) > ACCIDENT)
        return false;
    for (size_t i = 0; i < n; i++) {
        s->held[s->pick[i]] = 1;
        strike(s, t, s->pick[i]);
    }
    return n > 0;
}

static double column_loudness(const state *s, const table *t, size_t c)
{
    double sum = 0;

    for (size_t i = 0; i < t->q; i++) {
        double x = t->first[i * t->ld + s->rows + c];

        sum += x * x;
    }
    return sqrt(sum) / s->allowance[c] / (sqrt((double)t->q) + TAIL);
}

/* One column after another, the loudest first. */
static bool suspend_by_columns(state *s, double *budget)
{
    double below = HUGE_VAL, share = *budget / COLUMNS_TRIED;

    for (int i = 0; i < COLUMNS_TRIED && room(s, &s->work) > 0; i++) {
        double loudest = 1, spend = share;
        size_t c = s->columns;

        for (size_t k = 0; k < s->columns; k++) {
            double x = column_loudness(s, &s->work, k);

            if (x > loudest && x < below) {
                loudest = x;
                c = k;
            }
        }
        if (c == s->columns)
            return false;
        if (explain_column(s, c, &spend))
            return true;
        *budget -= share - spend;
        below = loudest;
    }
    return false;
}

/* ---- the verdict ------------------------------------------------------------------------------------ */

/* Suspend until the rest agree. */
static kofn_status suspend(state *s)
{
    double budget = GUESSING;

    table_copy(&s->work, &s->base);
    for (;;) {
        size_t rank;

        if (agree(s, &s->work))
            return s->work.q > 0 ? KOFN_OK : KOFN_CORRUPT;
        if (room(s, &s->work) == 0)
            return KOFN_CORRUPT;
        TRY(decompose(s, &s->work));
        rank = values_above(s, &s->work,
                            spectral(s, &s->work, s->e->alarm));
        if (rank > room(s, &s->work) * s->lanes)
            return KOFN_CORRUPT; /* so many lie that nobody is left to tell */
        rank_nodes(s, &s->work);
        if (suspend_strongest(s))
            return KOFN_OK;
        if (!suspend_inside(s) && !suspend_by_columns(s, &budget))
            return KOFN_CORRUPT;
    }
}

/* Let back in who makes no difference, the weakest first; how many stay. */
static size_t acquit(state *s)
{
    size_t n = 0;

    for (size_t i = s->nodes; i-- > 0;) {
        size_t node = s->order[i];

        if (!s->held[node])
            continue;
        strike_held(s, &s->trial, node);
        s->held[node] = !agree(s, &s->trial);
        n += s->held[node];
    }
    return n;
}

/* Who would do as well in the place of `node`; s->nodes when nobody. */
static size_t double_of(state *s, size_t node)
{
    double noise = CLEARLY * s->e->noise / s->e->alarm, best;

    strike_held(s, &s->trial, node);
    table_copy(&s->extra, &s->trial);
    strike(s, &s->extra, node);
    best = fmin(1, fmax(AS_WELL * loudness(s, &s->extra), noise));
    for (size_t i = 0; i < s->nodes; i++) {
        if (struck(s, i))
            continue;
        table_copy(&s->extra, &s->trial);
        strike(s, &s->extra, i);
        if (loudness(s, &s->extra) < best)
            return i;
    }
    return s->nodes;
}

/* Name those who are needed, if nobody could be in their place.  Where somebody
 * could and fewer are needed then, take those. */
static kofn_status convict(state *s, size_t *count)
{
    *count = acquit(s);
    for (size_t n = 0; n < s->nodes; n++) {
        size_t other, fewer;

        if (!s->held[n])
            continue;
        other = double_of(s, n);
        if (other == s->nodes)
            continue;
        s->held[n] = 0;
        s->held[other] = 1;
        fewer = acquit(s);
        if (fewer >= *count)
            return KOFN_CORRUPT;
        *count = fewer;
        n = SIZE_MAX; /* from the beginning */
    }
    return KOFN_OK;
}

/* An entry wrong by less than this may be among what is left. */
static double least_seen(state *s, const table *t)
{
    double least = HUGE_VAL;

    for (size_t n = 0; n < s->nodes; n++)
        for (size_t l = 0; l < s->lanes; l++) {
            if (s->wild[n] || (s->held && s->held[n]))
                continue;
            get_column(t, n * s->lanes + l, s->v);
            least = fmin(least, sqrt(dot(s->v, s->v, t->q)));
        }
    return s->e->alarm * (sqrt((double)t->q) + TAIL) / least;
}

static kofn_status search(state *s, size_t most, uint8_t *bad, size_t *count,
                          double *floor)
{
    size_t liars;

    TRY(set_up_search(s));
    TRY(suspend(s));
    TRY(convict(s, &liars));
    if (s->wilds + liars > most)
        return KOFN_CORRUPT;
    strike_held(s, &s->trial, s->nodes);
    *floor = least_seen(s, &s->trial);
    *count += liars;
    for (size_t n = 0; n < s->nodes; n++)
        bad[n] |= s->held[n];
    return KOFN_OK;
}

static kofn_status examine(state *s, size_t most, uint8_t *bad, size_t *count,
                           double *floor)
{
    find_wild(s);
    memcpy(bad, s->wild, s->nodes);
    *count = s->wilds;
    if (s->wilds > most)
        return KOFN_CORRUPT;
    fill_base(s);
    if (s->base.q == 0)
        return s->wilds ? KOFN_CORRUPT : KOFN_OK;
    if (agree(s, &s->base)) {
        *floor = least_seen(s, &s->base);
        return KOFN_OK;
    }
    return most > s->wilds ? search(s, most, bad, count, floor)
                           : KOFN_CORRUPT;
}

kofn_status kf_suspect(const kf_evidence *e, size_t most, uint8_t *bad,
                       size_t *count, double *floor)
{
    kofn_status st;
    state s;

    *count = 0;
    *floor = HUGE_VAL;
    st = set_up(&s, e);
    if (!st)
        st = examine(&s, most, bad, count, floor);
    tear_down(&s);
    return st;
}
