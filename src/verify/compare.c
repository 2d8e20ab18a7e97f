/* compare.c -- from results to a verdict.
 *
 * Results are compared by sketches, not entry by entry.  Entry e of each result
 * is divided by its largest possible size and added with a random weight to
 * bucket e mod 256.  The weights are the same for all results, so sketches
 * satisfy the same parities.  They are drawn here for each cell, so no worker
 * can choose an error that they hide.  One pass runs at the speed of memory;
 * all further work has 256 numbers per result.
 *
 * A bucket is scaled so that honest rounding is as large in it as in one entry.
 * So a single wrong entry shows less, by the square root of the number of
 * entries in a bucket.  `floor` includes this loss.
 *
 * Owns sketches and scratch within a call; results are borrowed and only read.
 * Weights are drawn for each cell and must never be sent to a worker. */
#include "compare.h"
#include "rounding.h"

#include "base/mix.h"
#include "base/vectors.h"
#include "code/operation.h"
#include "code/suspect.h"

#include <assert.h>
#include <float.h>
#include <math.h>

#define BUCKETS 256
/* Number of weights made at a time.  Together with the buckets of a result they
 * fit the first-level cache.  A multiple of BUCKETS. */
#define TILE 2048
#define LINE 64 /* bytes of a cache line */

/* Weights are products of two numbers from 1/2 to 1 of either sign: their mean
 * square, and the least magnitude. */
#define MEAN_SQUARE (7.0 / 12 * 7.0 / 12)
#define LEAST_WEIGHT 0.25

/* Rounding of honest entries, in units of row norm times column norm times the
 * weight of the seat.  The alarm is above the worst known data: with equal
 * numbers, all roundings of a sum have one direction, so the error grows with
 * their number. */
#define NOISE_LINEAR (1.0 / 300)
/* For blocks that have changed: each change adds rounding, which also grows
 * with the square root of the number of changes. */
#define NOISE_DRIFT 0.25
#define ALARM_F64 64
#define ALARM_F32 6
/* Rounding of the sums over results here, in double precision. */
#define NOISE_PARITY 0.3
/* float32 results with a floor above this multiple of the usual floor show more
 * than rounding. */
#define SUSPICIOUS 4

#define VECTORS KF_VECTORS(optimize("O3"))

typedef struct sketch {
    const kf_compare *c;
    size_t width, length, buckets,
        rows;       /* of results, component by component */
    double top;     /* largest 1 / scale; smaller scales count as 1 / top */
    double *over;   /* 1 / col, width                                   */
    double *weight; /* TILE                                             */
    double *factor; /* TILE: weight / scale                             */
    double *Y;      /* rows x buckets                                   */
    uint64_t key;   /* generates the weights */
} sketch;

/* ---- weights ------------------------------------------------------------- */

/* Draws the weights of the places in a tile.  An entry has the weight of its
 * place times the weight of its tile, which needs few random numbers.  A cell
 * that is no longer than the buckets is not mixed. */
VECTORS static void draw_places(double *weight, size_t n, uint64_t key)
{
    for (size_t e = 0; e < n; e++)
        weight[e] = kf_weight64(kf_mix64(kf_state64(key, e)));
}

static double weight_of_tile(const sketch *s, size_t at)
{
    assert(at % TILE == 0);
    return s->length <= BUCKETS
               ? 1
               : kf_weight64(kf_mix64(kf_state64(s->key, TILE + at / TILE)));
}

static void draw_tile(sketch *s)
{
    size_t n = kf_min(TILE, s->length);

    s->key = kf_mix64(kf_state64(s->c->secret, s->c->number));
    if (s->length > BUCKETS) {
        draw_places(s->weight, n, s->key);
        return;
    }
    for (size_t e = 0; e < n; e++)
        s->weight[e] = 1;
}

/* Fills f = weight / max(row col, least) for entries of the same strip. */
VECTORS static void fill_run(sketch *s, size_t from, size_t col, size_t n,
                             double over_row, double whole)
{
    const double *restrict w = s->weight + from, *restrict over = s->over + col;
    double *restrict f = s->factor + from, top = s->top;

    for (size_t k = 0; k < n; k++) {
        double x = over_row * over[k];

        f[k] = whole * w[k] * (x < top ? x : top);
    }
}

static void fill_factors(sketch *s, size_t at, size_t n)
{
    double whole = weight_of_tile(s, at);

    assert(n <= TILE);
    assert(at + n <= s->length);
    for (size_t k = 0; k < n;) {
        size_t strip = (at + k) / s->width, col = (at + k) % s->width;
        size_t run = kf_min(n - k, s->width - col);
        double over_row = 1 / s->c->row[s->c->lo + strip];

        fill_run(s, k, col, run, over_row, whole);
        k += run;
    }
}

/* ---- adding up ----------------------------------------------------------- */

/* The compiler knows the length of whole rows of buckets.  There are more
 * results than hardware prefetching follows, with one tile of each at a time.
 * So the next tile is prefetched. */
#define ADD(name, type)                                                        \
    VECTORS static void name##_row(double *restrict sum,                       \
                                   const double *restrict f,                   \
                                   const type *restrict y)                     \
    {                                                                          \
        for (size_t k = 0; k < BUCKETS; k += LINE / sizeof(type))              \
            __builtin_prefetch(y + TILE + k, 0, 3);                            \
        for (size_t k = 0; k < BUCKETS; k++)                                   \
            sum[k] += f[k] * (double)y[k];                                     \
    }                                                                          \
    static void name(double *sum, const double *f, const type *y, size_t n)    \
    {                                                                          \
        size_t k = 0;                                                          \
                                                                               \
        for (; k + BUCKETS <= n; k += BUCKETS)                                 \
            name##_row(sum, f + k, y + k);                                     \
        for (; k < n; k++)                                                     \
            sum[k % BUCKETS] += f[k] * (double)y[k];                           \
    }
ADD(add_f64, double)
ADD(add_f32, float)

static void add_tile(sketch *s, size_t at, size_t n)
{
    size_t components = s->c->plan->layout.components;

    for (size_t r = 0; r < s->rows; r++) {
        const kf_source *from = &s->c->source[r / components];
        size_t strip =
            r % components * (from->hi - from->lo) + s->c->lo - from->lo;
        assert(from->lo <= s->c->lo);
        assert(s->c->hi <= from->hi);
        const char *y = kf_at(from->result, strip, 0);

        if (from->result->dtype == KOFN_F64)
            add_f64(s->Y + r * s->buckets, s->factor,
                    (const double *)(const void *)y + at, n);
        else
            add_f32(s->Y + r * s->buckets, s->factor,
                    (const float *)(const void *)y + at, n);
    }
}

/* Returns the number of entries in bucket k. */
static size_t in_bucket(const sketch *s, size_t k)
{
    assert(k < s->buckets);
    return (s->length - k + s->buckets - 1) / s->buckets;
}

/* Returns the largest factor between a single wrong entry and its effect on the
 * sketch, for results of this length. */
static double dilution(size_t length)
{
    double crowd = (double)kf_ceil_div(length, BUCKETS);

    return length > BUCKETS ? sqrt(crowd * MEAN_SQUARE) / LEAST_WEIGHT : 1;
}

/* Returns the root mean square of bucket k if all entries are 1. */
static double root_of(const sketch *s, size_t k)
{
    return s->length > BUCKETS ? sqrt((double)in_bucket(s, k) * MEAN_SQUARE)
                               : 1;
}

static void multiply(double *x, size_t n, double by)
{
    for (size_t k = 0; k < n; k++)
        x[k] *= by;
}

/* Scales the sums of each result.  The first `full` buckets have one entry more
 * than the others. */
static kofn_status scale_rows(sketch *s)
{
    const kofn_decoder *d = s->c->decoder;
    size_t components = s->rows / d->seats, full = s->length % s->buckets;
    double first = root_of(s, 0), rest = root_of(s, s->buckets - 1);

    assert(s->rows % d->seats == 0);
    for (size_t i = 0; i < d->seats; i++) {
        double *Y = s->Y + i * components * s->buckets, over;
        const kf_seat *seat;

        TRY(kf_code_seat(s->c->code, d->seat[i], &seat));
        over = 1 / (seat->weight > 0 ? seat->weight : 1);
        for (size_t l = 0; l < components; l++, Y += s->buckets) {
            multiply(Y, full, over / first);
            multiply(Y + full, s->buckets - full, over / rest);
        }
    }
    return KOFN_OK;
}

/* Sums up every result in BUCKETS numbers with the same random weights.  It
 * works tile by tile, so each result is read once. */
static kofn_status make_sketch(sketch *s, const kf_compare *c)
{
    const kofn_matrix *first = c->source[0].result;
    bool wide = first->dtype == KOFN_F64;

    assert(c->lo < c->hi);
    assert(c->decoder->seats > 0);
    s->c = c;
    s->width = first->cols;
    s->length = (c->hi - c->lo) * s->width;
    s->buckets = kf_min(s->length, BUCKETS);
    s->rows = c->decoder->seats * c->plan->layout.components;
    /* At scales below 1 / top one rounding is smaller than the least normal
     * number, so even honest numbers have lost digits there. */
    s->top = wide ? 0x1p-52 / 0x1p-1022 : 0x1p-23 / 0x1p-126;
    s->over = kf_new(s->width, sizeof *s->over);
    s->weight = kf_new(TILE, sizeof *s->weight);
    s->factor = kf_new(TILE, sizeof *s->factor);
    s->Y = kofn_layout_table(s->rows, s->buckets);
    if (!s->over || !s->weight || !s->factor || !s->Y)
        return KOFN_NOMEM;
    for (size_t k = 0; k < s->width; k++)
        s->over[k] = 1 / c->col[k];
    draw_tile(s);
    for (size_t at = 0; at < s->length; at += TILE) {
        size_t n = kf_min(TILE, s->length - at);

        fill_factors(s, at, n);
        add_tile(s, at, n);
    }
    return scale_rows(s);
}

static void free_sketch(sketch *s)
{
    kf_free(s->over);
    kf_free(s->weight);
    kf_free(s->factor);
    kf_free(s->Y);
}

/* ---- the code ------------------------------------------------------------ */

/* Returns the number of submessages of a seat.  They count as one node, because
 * a faulty seat may falsify any of them. */
static size_t each_of(const kf_compare *c)
{
    const kofn_layout *L = &c->plan->layout;

    return L->submessages == 1
               ? 1
               : kf_code_each(L, c->decoder->seat, c->decoder->seats);
}

/* Sets *closed if right multiples of codewords are codewords. */
static kofn_status is_closed(const kf_compare *c, bool *closed)
{
    *closed = c->plan->layout.components == 4 && each_of(c) == 1;
    for (size_t i = 0; i < c->decoder->seats && *closed; i++) {
        const kf_seat *seat;

        TRY(kf_code_seat(c->code, c->decoder->seat[i], &seat));
        *closed = seat->quaternions;
    }
    return KOFN_OK;
}

/* ---- the verdict --------------------------------------------------------- */

static double usual_noise(double terms, uint64_t changes)
{
    return kf_rounding_usual(terms) + NOISE_DRIFT * sqrt((double)changes);
}

double kf_compare_alarm(const kofn_plan *plan, double terms, uint64_t changes)
{
    double noise = usual_noise(terms, changes) + NOISE_LINEAR * terms;

    return plan->layout.problem.dtype == KOFN_F64 ? ALARM_F64 * 0x1p-52 * noise
                                                  : ALARM_F32 * 0x1p-23 * noise;
}

/* Returns the evidence: the nodes, and the expected and largest honest
 * rounding. */
static kf_evidence evidence_of(const kf_compare *c)
{
    size_t each = each_of(c);
    kf_evidence e = {.nodes = c->decoder->seats / each,
                     .components = c->plan->layout.components * each};
    const kofn_problem *pb = &c->plan->layout.problem;
    bool wide = pb->dtype == KOFN_F64;
    size_t length = c->plan->op->over & KF_OVER_ROWS ? pb->m : pb->n;
    double terms = (double)((c->terms ? c->terms : length) + c->plan->parts);
    double unit = wide ? 0x1p-52 : 0x1p-23;
    double parity =
        0x1p-52 * NOISE_PARITY * sqrt((double)(e.nodes * e.components));

    e.noise = unit * usual_noise(terms, c->changes) + parity;
    e.alarm = kf_compare_alarm(c->plan, terms, c->changes) +
              (wide ? ALARM_F64 : ALARM_F32) * parity;
    return e;
}

/* Returns the number of seats beyond those that surely decode. */
static size_t over(const kf_compare *c, size_t seats)
{
    return seats - kf_min(seats, kf_code_seats(&c->plan->layout, each_of(c)));
}

size_t kf_compare_few(const kf_compare *c, size_t n, size_t located)
{
    size_t each = each_of(c);

    return kf_code_may_hide(c->liars, c->independent, located / each,
                            over(c, n / each));
}

kofn_status kf_compare_know(kf_compare *c, kf_cache *cache)
{
    const kofn_decoder *d = c->decoder;

    TRY(kf_cache_parity(cache, d, &c->H, &c->q));
    return kf_cache_hidden(cache, d, kf_compare_few(c, d->seats, 0),
                           &c->hidden);
}

/* Computes kf_hidden_of for the remaining seats: for their own decoder if they
 * decode, else for the results. */
static kofn_status hidden_in_rest(const kf_compare *c, const uint8_t *flag,
                                  size_t few, double *hidden, size_t *q)
{
    const kofn_decoder *all = c->decoder;
    uint32_t *seat = kf_new(all->seats, sizeof *seat);
    kofn_decoder *d = NULL;
    double *H = NULL;
    size_t n = 0;
    kofn_status st = KOFN_OK;

    if (!seat)
        return KOFN_NOMEM;
    for (size_t i = 0; i < all->seats; i++)
        if (!flag[i / each_of(c)])
            seat[n++] = all->seat[i];
    st = kf_decoder_new(&d, c->code, seat, n, false);
    if (st == KOFN_TOOFEW || st == KOFN_UNSTABLE)
        *hidden = HUGE_VAL;
    else if (!st)
        st = kf_parity(c->code, seat, n, &H, q);
    if (!st)
        st = kf_hidden_of(c->code, d, H, *q, few, hidden);
    if (st != KOFN_NOMEM)
        st = KOFN_OK;
    kf_free(H);
    kf_decoder_free(d);
    kf_free(seat);
    return st;
}

/* Converts a length of parities to an error of an output entry. */
static kofn_status to_output(const kf_compare *c, const sketch *s,
                             const uint8_t *flag, const kf_found *found,
                             double *floor)
{
    size_t located = found->count - found->doubted, q = c->q;
    size_t few = kf_compare_few(c, c->decoder->seats - found->count, located);
    double hidden = c->hidden;

    assert(found->doubted <= found->count);
    assert(found->count <= c->decoder->seats);
    if (*floor == HUGE_VAL)
        return KOFN_OK;
    if (found->count)
        TRY(hidden_in_rest(c, flag, few, &hidden, &q));
    *floor = kf_code_floor(*floor, hidden, q, located + few < c->independent) *
             dilution(s->length);
    return KOFN_OK;
}

double kf_compare_least_floor(const kf_compare *c)
{
    size_t length = (c->hi - c->lo) * c->source[0].result->cols;
    size_t few = kf_compare_few(c, c->decoder->seats, 0);

    if (c->q == 0)
        return HUGE_VAL;
    return kf_code_floor(kf_code_unseen(evidence_of(c).alarm, c->q), c->hidden,
                         c->q, few < c->independent) *
           dilution(length);
}

/* Judges the sketches.  First it tests only whether they agree.  If they do
 * not, it locates the corrupt nodes. */
static kofn_status judge(const kf_compare *c, const sketch *s, uint8_t *flag,
                         double *unseen)
{
    double crowd = s->length > BUCKETS ? (double)in_bucket(s, 0) : 1;
    double mean_square = s->length > BUCKETS ? MEAN_SQUARE : 1;
    kf_evidence e = evidence_of(c);
    kofn_status st;
    size_t count;

    assert(c->H || c->q == 0);
    e.q = c->q;
    e.H = c->H;
    e.columns = s->buckets;
    e.Y = s->Y;
    e.bound = 1.01 * sqrt(crowd / mean_square);
    e.over = over(c, e.nodes);
    e.liars = c->liars;
    e.independent = c->independent;
    /* The first test has no search, because results are nearly always clean. */
    st = kf_suspect(&e, 0, flag, &count, unseen);
    if (st == KOFN_CORRUPT && c->most > 0) {
        TRY(is_closed(c, &e.closed));
        st = kf_suspect(&e, c->most, flag, &count, unseen);
    }
    return st;
}

/* Appends the nodes with this flag to the list. */
static void list(const kf_compare *c, const uint8_t *flag, uint8_t which,
                 kf_found *found)
{
    for (uint32_t i = 0; i < c->decoder->seats; i++)
        if (flag[i / each_of(c)] == which)
            found->bad[found->count++] = i;
}

/* Estimates the drift: the root mean square of the parities divided by the root
 * mean square of the results.  Parities are orthonormal, so independent
 * relative errors x in the results give x. */
static double drift_of(const kf_compare *c, const sketch *s)
{
    double off = 0, size = 0;

    for (size_t p = 0; p < c->q; p++)
        for (size_t k = 0; k < s->buckets; k++) {
            double sum = 0;

            for (size_t r = 0; r < s->rows; r++)
                sum += c->H[p * s->rows + r] * s->Y[r * s->buckets + k];
            off += sum * sum;
        }
    for (size_t i = 0; i < s->rows * s->buckets; i++)
        size += s->Y[i] * s->Y[i];
    return size > 0 && c->q > 0
               ? sqrt(off / (double)c->q / (size / (double)s->rows))
               : 0;
}

kofn_status kf_compare_results(const kf_compare *c, kf_found *found)
{
    size_t seats = c->decoder->seats, located;
    uint8_t *flag = kf_zero(seats, 1);
    sketch s = {0};
    kofn_status st = flag ? make_sketch(&s, c) : KOFN_NOMEM;

    *found = (kf_found){.bad = found->bad, .floor = HUGE_VAL};
    if (!st)
        st = judge(c, &s, flag, &found->floor);
    if (st == KOFN_OK || st == KOFN_CORRUPT) {
        list(c, flag, KF_LOCATED, found);
        located = found->count;
        list(c, flag, KF_DOUBTED, found);
        found->doubted = found->count - located;
        if (st == KOFN_CORRUPT)
            kf_fail(st,
                    "strips %zu to %zu: the %zu results disagree, and %zu "
                    "of them are surely wrong, but not which others; with %zu "
                    "parities at most %zu can be left out",
                    c->lo, c->hi, seats, located, c->q, c->most);
    }
    if (st == KOFN_OK)
        st = to_output(c, &s, flag, found, &found->floor);
    if (st == KOFN_OK && c->drifts && found->count == 0)
        found->drift = drift_of(c, &s);
    free_sketch(&s);
    kf_free(flag);
    return st;
}

kofn_status kf_compare_decide(const kf_compare *c, double most, bool last,
                              kf_found *found)
{
    double least = last ? 0 : kf_compare_least_floor(c);
    kofn_status st;

    if (!last && !(least <= most)) {
        *found = (kf_found){.bad = found->bad, .floor = HUGE_VAL};
        return KOFN_AGAIN;
    }
    st = kf_compare_results(c, found);
    if (!last && c->plan->layout.problem.dtype == KOFN_F32)
        most = fmin(most, SUSPICIOUS * least);
    return st == KOFN_OK && !(found->floor <= most) ? KOFN_AGAIN : st;
}
