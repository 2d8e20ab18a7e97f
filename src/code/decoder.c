/* decoder.c -- from a survivor set to the numbers that decode it.
 *
 * If the wants are the symbols (W is the identity), rows of G with a single
 * entry 1 give their symbol directly.  Only the symbols that no survivor holds
 * plainly are solved for, with the remaining rows.  For a systematic code that
 * has lost m blocks, the system has the size of m for any k (unknown.c).
 *
 * If the wants are combinations of symbols, D = W G^+ (pseudo.c).  The rows of
 * G are divided by the rounding errors of their results.
 *
 * A decoder owns its arrays and is freed by kf_decoder_free; the rows of the
 * code are borrowed.  It never delivers a result that is less exact than
 * predicted: a system that it cannot solve gives an error status. */
#include "code.h"

#include "base/rng.h"
#include "operation.h"
#include "sift.h"

#include <assert.h>
#include <math.h>

/* Largest allowed difference of D G from W relative to W, in addition to the
 * predicted rounding.  If it is larger, there is no solution. */
#define OFF 1e-6
/* Number of random vectors that test D G = W. */
#define PROBES 8
/* If there may be too few results and the noise is above this, they are too
 * few: the answer would be only rounding. */
#define NOTHING 1e10

static bool same_row(const kf_row *a, const kf_row *b)
{
    return a->n == b->n && !memcmp(a->val, b->val, a->n * sizeof *a->val) &&
           !memcmp(a->col, b->col, a->n * sizeof *a->col);
}

static size_t hash_row(const kf_row *row)
{
    uint64_t h = KF_FNV, bits;

    for (size_t e = 0; e < row->n; e++) {
        memcpy(&bits, &row->val[e], sizeof bits);
        h = kf_fnv(h, bits ^ row->col[e]);
    }
    return (size_t)(h ^ h >> 32);
}

/* Finds seats with the same rows; they return the same to the last bit. */
static kofn_status find_duplicate_ids(kf_sift *s)
{
    size_t slots = 4, at;
    uint32_t *table;

    while (slots < 2 * s->results)
        slots *= 2;
    table = kf_zero(slots, sizeof *table); /* result + 1 */
    if (!table)
        return KOFN_NOMEM;
    for (size_t r = 0; r < s->results; r++) {
        at = hash_row(s->row[r]) % slots;
        while (table[at] && !same_row(s->row[table[at] - 1], s->row[r]))
            at = (at + 1) % slots;
        if (!table[at])
            table[at] = (uint32_t)r + 1;
        s->first[r] = table[at] - 1;
    }
    kf_free(table);
    return KOFN_OK;
}

/* Chooses the results that depend on an unknown symbol. */
static void choose_rows(kf_sift *s)
{
    assert(s->rows == 0);
    for (size_t r = 0; r < s->results; r++)
        for (size_t e = 0; e < s->row[r]->n; e++)
            if (s->from[s->row[r]->col[e]] < 0) {
                s->use[s->rows++] = (uint32_t)r;
                break;
            }
    s->quaternions = s->quaternions &&
                     kf_code_in_fours(s->use, s->rows, UINT32_MAX) &&
                     kf_code_in_fours((const uint32_t *)(const void *)s->from,
                                      s->symbols, (uint32_t)-1);
}

/* ---- wants --------------------------------------------------------------- */

/* Returns the result that is want w itself, or -1. */
static int32_t plainly(const kf_sift *s, const double *W, size_t w)
{
    size_t found = 0, at = w;

    for (size_t i = 0; W && i < s->symbols; i++)
        if (W[w * s->symbols + i] != 0) {
            found++;
            at = i;
        }
    return !W || (found == 1 && W[w * s->symbols + at] == 1) ? s->from[at] : -1;
}

/* Sorts the wants.  A want that a result holds plainly is copied.  The others
 * are mixed, or lost if `partial`. */
static size_t sort_wants(kofn_decoder *d, const kf_sift *s, const double *W,
                         bool partial)
{
    size_t left = 0;

    for (size_t w = 0; w < d->wants; w++) {
        d->copy[w] = plainly(s, W, w);
        left += d->copy[w] < 0;
        if (d->copy[w] < 0)
            d->copy[w] = partial ? KF_LOST : KF_MIXED;
    }
    d->whole = left == 0 || !partial;
    return left;
}

/* Computes ||D diag(weights)||_F^2 over the mixed wants.  Twins have the same
 * rounding, which adds up; other roundings are independent.  The larger
 * estimate counts, because duplicates with opposite signs indicate a singular
 * system. */
static kofn_status mixed_noise(const kofn_decoder *d, const kf_sift *s,
                               double *sum)
{
    double *row, apart = 0, together = 0;

    TRY_NEW(row, d->results);
    for (size_t i = 0; i < d->mixed; i++) {
        const double *D = d->D + i * d->results;

        memset(row, 0, d->results * sizeof *row);
        for (size_t r = 0; r < d->results; r++) {
            row[s->first[r]] += D[r] * s->weight[r];
            apart += D[r] * D[r] * s->weight[r] * s->weight[r];
        }
        for (size_t r = 0; r < d->results; r++)
            together += row[r] * row[r];
    }
    kf_free(row);
    *sum += kf_larger(apart, together);
    return KOFN_OK;
}

/* Computes ||D diag(weights)||_F / sqrt(terms wants): the amplification of the
 * workers' own rounding.  For row-cut codes this is ||R^-1 diag(row norms)||_F
 * / sqrt(wants), with R the survivors' rows.  It does not change with the scale
 * of rows, as a condition number does. */
static kofn_status measure_noise(kofn_decoder *d, const kf_sift *s,
                                 const kofn_layout *L)
{
    bool rows = kf_operation_of_layout(L)->over & KF_OVER_ROWS;
    size_t terms = L->adjoint ? 1 : rows ? L->cut[0].rows : L->cut[0].cols;
    double sum = 0;

    assert(d->wants > 0);
    for (size_t w = 0; w < d->wants; w++)
        if (d->copy[w] >= 0)
            sum += s->weight[d->copy[w]] * s->weight[d->copy[w]];
    TRY(mixed_noise(d, s, &sum));
    d->noise = sqrt(sum / (double)terms / (double)d->wants);
    return KOFN_OK;
}

static kofn_status judge(kofn_decoder *d, const kf_sift *s,
                         const kofn_layout *L)
{
    TRY(measure_noise(d, s, L));
    d->predicted = kf_code_rounding(L, d->results) * kf_larger(d->noise, 1);
    return KOFN_OK;
}

/* ---- wants that are combinations ----------------------------------------- */

/* Fills G with its rows divided by their weights. */
static void fill_rows(const kf_sift *s, double *G)
{
    for (size_t r = 0; r < s->results; r++)
        for (size_t e = 0; e < s->row[r]->n; e++)
            G[r * s->symbols + s->row[r]->col[e]] =
                s->row[r]->val[e] / s->weight[r];
}

static void fill_mixed(const kofn_decoder *d, const kf_sift *s, const double *W,
                       double *mixed)
{
    size_t i = 0;

    for (size_t w = 0; w < d->wants; w++)
        if (d->copy[w] == KF_MIXED)
            memcpy(mixed + i++ * s->symbols, W + w * s->symbols,
                   s->symbols * sizeof *W);
}

/* Returns ||D G - W||_F / sqrt(rows). D and G are scaled; W is destroyed. */
static double distance(size_t rows, const kf_sift *s, double *D,
                       const double *G, double *W)
{
    assert(rows > 0);
    kf_code_subtract_product(&(kf_difference){rows, s->results, s->symbols, D,
                                              s->results, G, s->symbols, W,
                                              s->symbols});
    return sqrt(kf_code_sum(W, W, rows * s->symbols) / (double)rows);
}

/* Computes the rows of D for the mixed wants; *off is the distance of D G from
 * W. */
static kofn_status solve_wants(kofn_decoder *d, kf_sift *s, const double *W,
                               double *off)
{
    double *G = kf_arrays_table(&s->arrays, s->results, s->symbols);
    double *M = kf_arrays_table(&s->arrays, d->mixed, s->symbols);

    assert(d->mixed > 0);
    assert(W);
    d->D = kofn_layout_table(d->mixed, s->results);
    TRY(d->D ? kf_arrays_status(&s->arrays) : KOFN_NOMEM);
    fill_rows(s, G);
    fill_mixed(d, s, W, M);
    TRY(kf_pseudo(&(kf_equation){s->results, s->symbols, G, d->mixed, M}, d->D,
                  &d->condition));
    *off = distance(d->mixed, s, d->D, G, M);
    for (size_t i = 0; i < d->mixed * s->results; i++)
        if (s->weight[i % s->results] > 0) /* else it contributes nothing */
            d->D[i] /= s->weight[i % s->results];
    return KOFN_OK;
}

/* Adds the first n rows of x, PROBES numbers each, times `by` to `sum`.  Rows
 * with coefficient 0 are skipped. */
static void add_products(const double *by, size_t n, double sign,
                         const double *x, double *sum)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; by[i] != 0 && k < PROBES; k++)
            sum[k] += sign * by[i] * x[i * PROBES + k];
}

/* Returns |(D G - W) x|^2 summed over all x, PROBES vectors side by side; y has
 * room for their results. */
static double probe(const kofn_decoder *d, const kf_sift *s, const double *W,
                    const double *x, double *y)
{
    double sum = 0;

    for (size_t r = 0; r < s->results; r++)
        for (size_t e = 0; e < s->row[r]->n; e++)
            add_products(&s->row[r]->val[e], 1, 1,
                         x + s->row[r]->col[e] * PROBES, y + r * PROBES);
    for (size_t w = 0; w < d->wants; w++) {
        double miss[PROBES] = {0};

        add_products(d->D + w * s->results, s->results, 1, y, miss);
        add_products(W + w * s->symbols, s->symbols, -1, x, miss);
        for (size_t k = 0; k < PROBES; k++)
            sum += miss[k] * miss[k];
    }
    return sum;
}

/* Estimates ||D G - W||_F / sqrt(symbols) from random vectors, because D G
 * itself may be larger than all other arrays. */
static kofn_status distance_of_all(const kofn_decoder *d, kf_sift *s,
                                   const kofn_layout *L, double *off)
{
    double *x = kf_arrays_table(&s->arrays, s->symbols, PROBES);
    double *y = kf_arrays_table(&s->arrays, s->results, PROBES);

    assert(d->mixed == d->wants);
    TRY(kf_arrays_status(&s->arrays));
    for (uint32_t k = 0; k < PROBES; k++) {
        kf_rng r = kf_rng_stream(L->seed, KF_FOR_SAMPLE, k, 1);

        for (size_t i = 0; i < s->symbols; i++)
            x[i * PROBES + k] = (kf_rng_uniform(&r) - 0.5) * 3.4641016151377546;
    }
    *off = sqrt(probe(d, s, L->W, x, y) / PROBES / (double)s->symbols);
    return KOFN_OK;
}

/* Calls the scheme's decoder, which may be better than least squares; else it
 * returns KOFN_UNSUITED.  It comes first because it may quickly report that
 * there are too few answers. */
static kofn_status ask_scheme(kofn_decoder *d, const kf_code *c)
{
    const kofn_plan *p = c->plan;
    kofn_status st;

    if (!kf_code_decodes_itself(p, c->uneven) || d->seats < p->layout.enough)
        return KOFN_UNSUITED;
    d->mixed = d->wants;
    for (size_t w = 0; w < d->wants; w++)
        d->copy[w] = KF_MIXED;
    d->D = kofn_layout_table(d->wants, d->results);
    if (!d->D)
        return KOFN_NOMEM;
    st = p->scheme->decode(&p->layout, d->seat, d->seats, d->D);
    if (st == KOFN_UNSUITED) {
        kf_free(d->D);
        d->D = NULL;
    }
    d->whole = st != KOFN_PARTIAL; /* KOFN_PARTIAL: approximate */
    return st;
}

/* ---- building ------------------------------------------------------------ */

static kofn_status too_few(const kf_code *c, const kf_sift *s, size_t n)
{
    return kf_fail(
        KOFN_TOOFEW,
        "%zu results leave %zu of %zu blocks unknown; any %zu are enough", n,
        kf_ceil_div(s->unknown, c->plan->layout.components),
        s->symbols / c->plan->layout.components, c->plan->layout.threshold);
}

/* Reports that the results do not determine the answer. */
static kofn_status undetermined(const kofn_decoder *d, const kofn_layout *L)
{
    return kf_fail(KOFN_TOOFEW,
                   "these %zu results do not determine the "
                   "answer; any %zu are enough",
                   d->seats, L->threshold);
}

/* Judges the solution by D G - W.  This difference is an error of the answer
 * itself.  If the answer nearly cancels, it may be larger than predicted. */
static kofn_status check(kofn_decoder *d, const kofn_layout *L,
                         const kf_sift *s, double off)
{
    bool solved = L->W ? off <= OFF + 1000 * d->predicted : isfinite(off);

    d->predicted = kf_larger(d->predicted, off);
    if (d->seats < L->threshold && (!(d->noise < NOTHING) || !solved))
        return undetermined(d, L);
    if (!solved)
        return kf_fail(KOFN_UNSTABLE,
                       "singular system: %zu results for %zu "
                       "symbols; choose another basis or fewer parts",
                       s->results, s->symbols);
    return KOFN_OK;
}

/* Builds a decoder of plain results only.  A want that no survivor holds
 * plainly is lost.  In most codes of two operands no want is held plainly; then
 * nothing can be delivered. */
static kofn_status build_partial(kofn_decoder *d, const kf_sift *s, kf_code *c)
{
    const kofn_plan *p = c->plan;
    size_t left = sort_wants(d, s, p->layout.W, true);

    if (left == d->wants && (p->layout.W || p->parts1 > 1))
        return too_few(c, s, d->seats);
    return judge(d, s, &p->layout);
}

static kofn_status solve(kofn_decoder *d, kf_sift *s, const kf_code *c,
                         double *off)
{
    const kofn_layout *L = &c->plan->layout;

    d->mixed = sort_wants(d, s, L->W, false);
    if (d->mixed == 0)
        return KOFN_OK;
    if (L->W)
        return solve_wants(d, s, L->W, off);
    choose_rows(s);
    if (s->rows < s->unknown)
        return too_few(c, s, d->seats);
    return kf_solve_unknown(s, &d->D, &d->condition, off);
}

/* Makes the decoder with the scheme's own function, if it has one, else by
 * solving.  In both cases D G is compared with W, and a large difference is
 * refused. */
static kofn_status build(kofn_decoder *d, kf_sift *s, kf_code *c, bool partial)
{
    const kofn_layout *L = &c->plan->layout;
    kofn_status st;
    double off = 0;

    d->results = d->seats * L->components;
    d->whole = true;
    st = partial ? KOFN_UNSUITED : ask_scheme(d, c);
    if (st < 0 && st != KOFN_UNSUITED)
        return st;
    TRY(kf_sift_rows(s, c, d->seat, d->seats, false));
    if (partial)
        return build_partial(d, s, c);
    if (d->seats < L->enough)
        return too_few(c, s, d->seats);
    TRY(find_duplicate_ids(s));
    if (st == KOFN_UNSUITED)
        st = solve(d, s, c, &off);
    else if (st == KOFN_OK)
        st = distance_of_all(d, s, L, &off);
    if (st < 0)
        return st == KOFN_UNSTABLE && d->seats < L->threshold
                   ? undetermined(d, L)
                   : st;
    TRY(judge(d, s, L));
    return check(d, L, s, off);
}

kofn_status kf_decoder_new(kofn_decoder **out, kf_code *c,
                           const uint32_t *seats, size_t n, bool partial)
{
    kofn_decoder *d = kf_zero(1, sizeof *d);
    kf_sift s = {0};
    kofn_status st = KOFN_NOMEM;

    *out = NULL;
    if (!d)
        return KOFN_NOMEM;
    d->seats = n;
    d->wants = c->plan->layout.wants;
    d->condition = 1;
    d->seat = kf_new(n, sizeof *d->seat);
    d->copy = kf_new(d->wants, sizeof *d->copy);
    if (d->seat && d->copy) {
        memcpy(d->seat, seats, n * sizeof *seats);
        st = build(d, &s, c, partial);
    }
    if (!st)
        st = kf_decoder_runs(d);
    if (!st && c->plan->op->factors == 0) /* D has structure */
        st = kf_decoder_factor(d, c->plan->layout.components,
                               c->plan->layout.submessages);
    kf_arrays_free(&s.arrays);
    if (st) {
        kf_decoder_free(d);
        return st;
    }
    *out = d;
    return KOFN_OK;
}

void kf_decoder_free(kofn_decoder *d)
{
    if (!d)
        return;
    kf_free(d->seat);
    kf_free(d->copy);
    kf_free(d->D);
    kf_free(d->run);
    kf_factor_free(d->factor);
    kf_free(d->H);
    kf_free(d);
}
