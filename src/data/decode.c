/* decode.c -- from results to rows of the answer.
 *
 * Plain wants are copied and mixed wants are combined, tile by tile, so that
 * results are read from memory once for both.  The outputs of a tile go
 * directly into the caller's matrix unless they cross its edge.  If outputs are
 * next to others in a row, they are written row by row.  If all wants are mixed
 * and none crosses the edge, no tiles are needed.
 *
 * The caller owns the output and the scratch, which it keeps between calls.
 * Only the strips of the band are written. */
#include "data.h"

#include "code/combine.h"

#include <assert.h>
#include <math.h>

/* Bytes of results in a tile.  A smaller tile fits the second-level cache
 * better if some results are copied.  But then the engine takes its sources for
 * near and does not prefetch. */
#define TILE ((size_t)2 << 20)
/* Bytes of answers that are copied and examined while they are in a cache. */
#define NEAR ((size_t)128 << 10)
/* Least bytes of a row for which kf_combine is called once per strip. */
#define LONG 1024

/* Makes room for `want` elements; old contents are lost. */
static kofn_status room(void *p, size_t *have, size_t want, size_t size)
{
    void *now, *old;

    if (*have >= want)
        return KOFN_OK;
    now = kf_new(want, size);
    if (!now)
        return KOFN_NOMEM;
    memcpy(&old, p, sizeof old);
    kf_free(old);
    memcpy(p, &now, sizeof now);
    *have = want;
    return KOFN_OK;
}

void kf_scratch_free(kf_scratch *s)
{
    kf_free(s->p);
    kf_free((void *)(uintptr_t)s->src);
    kf_free(s->dst);
    kf_free(s->sums);
}

/* Returns the number of columns of a want. */
static size_t width_of(const kofn_plan *p, const kofn_matrix *out)
{
    return kf_ceil_div(out->cols, p->layout.wants / p->layout.grid_rows);
}

/* The place of a want: rows [row, ...) of the output, cut off at its edge. */
typedef struct place {
    size_t row, col, rows, cols;
} place;

static place place_of(const kofn_plan *p, size_t group, size_t want, size_t lo,
                      size_t hi, const kofn_matrix *out)
{
    const kofn_layout *L = &p->layout;
    size_t width = width_of(p, out);
    size_t r = group * L->grid_rows + want % L->grid_rows;
    place at = {r * p->span + lo, want / L->grid_rows * width, 0, 0};

    assert(want < L->wants);
    assert(lo <= hi);
    assert(hi <= p->span);
    if (at.row < out->rows)
        at.rows = kf_min(hi - lo, out->rows - at.row);
    if (at.col < out->cols)
        at.cols = kf_min(width, out->cols - at.col);
    return at;
}

static void put_rows(kofn_matrix *out, const place *at, const char *from,
                     size_t stride)
{
    size_t size = kf_dtype_size(out->dtype);

    assert(stride >= at->cols);
    assert(!at->rows || at->row + at->rows <= out->rows);
    if (at->rows && stride == at->cols && out->ld == at->cols) {
        memcpy(kf_at(out, at->row, at->col), from, at->rows * at->cols * size);
        return;
    }
    for (size_t i = 0; i < at->rows; i++)
        memcpy(kf_at(out, at->row + i, at->col), from + i * stride * size,
               at->cols * size);
}

static void put_lost(kofn_matrix *out, const place *at)
{
    for (size_t i = 0; i < at->rows; i++)
        for (size_t j = 0; j < at->cols; j++)
            kf_mat_put(out, at->row + i, at->col + j, NAN);
}

void kf_data_gather(const kofn_plan *plan, size_t group, size_t lo, size_t hi,
                    const kofn_matrix *out, void *rows)
{
    size_t size = kf_dtype_size(out->dtype), width = width_of(plan, out);
    char *to = rows;

    memset(to, 0, plan->layout.wants * (hi - lo) * width * size);
    for (size_t w = 0; w < plan->layout.wants; w++) {
        place at = place_of(plan, group, w, lo, hi, out);

        for (size_t i = 0; i < at.rows; i++)
            memcpy(to + (w * (hi - lo) + i) * width * size,
                   kf_at(out, at.row + i, at.col), at.cols * size);
    }
}

void kf_data_scatter(const kofn_plan *plan, size_t group, size_t lo, size_t hi,
                     const void *rows, kofn_matrix *out)
{
    size_t size = kf_dtype_size(out->dtype), width = width_of(plan, out);
    const char *from = rows;

    for (size_t w = 0; w < plan->layout.wants; w++) {
        place at = place_of(plan, group, w, lo, hi, out);

        put_rows(out, &at, from + w * (hi - lo) * width * size, width);
    }
}

/* Facts that are constant during one call. */
typedef struct decoding {
    const kofn_plan *plan;
    const kofn_decoder *d;
    const kf_source *source;
    size_t group, width; /* columns of a result */
    kofn_matrix *out;
    kf_scratch *scratch;
    bool far; /* results and outputs are larger than the caches */
} decoding;

static const char *result_rows(const decoding *j, size_t r, size_t lo)
{
    size_t components = j->plan->layout.components;
    const kf_source *s = &j->source[r / components];

    assert(r < j->d->results);
    assert(s->lo <= lo);
    return kf_at(s->result, r % components * (s->hi - s->lo) + lo - s->lo, 0);
}

static void copy_plain(const decoding *j, size_t lo, size_t hi)
{
    for (size_t w = 0; w < j->d->wants; w++) {
        place at = place_of(j->plan, j->group, w, lo, hi, j->out);

        if (j->d->copy[w] >= 0)
            put_rows(j->out, &at, result_rows(j, (size_t)j->d->copy[w], lo),
                     j->width);
        else if (j->d->copy[w] == KF_LOST)
            put_lost(j->out, &at);
    }
}

/* True if a mixed want can be written directly: its rows are contiguous in the
 * output and none is cut off.  Else it goes through scratch. */
static bool direct(const decoding *j, const place *at, size_t lo, size_t hi)
{
    return at->rows == hi - lo && at->cols == j->width &&
           (at->rows == 1 || j->out->ld == j->width);
}

/* Sets the sources of strips [lo, hi) and the destinations of mixed wants.
 * True if some go to scratch; put_aside then copies them. */
static bool aim(const decoding *j, size_t lo, size_t hi)
{
    size_t bytes = (hi - lo) * j->width * kf_dtype_size(j->out->dtype), m = 0;
    char *spare = j->scratch->p;
    bool aside = false;

    for (size_t r = 0; r < j->d->results; r++)
        j->scratch->src[r] = result_rows(j, r, lo);
    for (size_t w = 0; w < j->d->wants; w++) {
        place at = place_of(j->plan, j->group, w, lo, hi, j->out);
        bool here = direct(j, &at, lo, hi);

        if (j->d->copy[w] != KF_MIXED)
            continue;
        j->scratch->dst[m] =
            here ? kf_at(j->out, at.row, at.col) : spare + m * bytes;
        aside |= !here;
        m++;
    }
    return aside;
}

/* Copies mixed wants from scratch to the output. */
static void put_aside(const decoding *j, size_t lo, size_t hi)
{
    size_t m = 0;

    for (size_t w = 0; w < j->d->wants; w++) {
        place at = place_of(j->plan, j->group, w, lo, hi, j->out);

        if (j->d->copy[w] != KF_MIXED)
            continue;
        if (!direct(j, &at, lo, hi))
            put_rows(j->out, &at, j->scratch->dst[m], j->width);
        m++;
    }
}

/* Calls the engine, which uses all sources for all outputs.  Groups of outputs
 * with different sources are combined one after the other. */
static void combine_rows(const decoding *j, size_t length)
{
    const kofn_decoder *d = j->d;

    if (d->factor) {
        kf_factor_apply(d->factor, j->scratch->src, j->scratch->dst, length,
                        j->out->dtype, j->scratch->sums);
        return;
    }
    for (size_t row = 0, end; row < d->mixed; row = end) {
        end = d->run ? d->run[row] : d->mixed;
        kf_combine(&(kf_combination){end - row, d->results,
                                     d->D + row * d->results, d->results,
                                     j->scratch->src, j->scratch->dst + row},
                   length, j->out->dtype);
    }
}

/* True if rows of mixed wants are long and not contiguous in the output. */
static bool row_by_row(const decoding *j)
{
    return !j->d->factor && j->out->ld != j->width &&
           j->width * kf_dtype_size(j->out->dtype) >= LONG;
}

/* Makes the mixed wants of one strip, by runs of D's rows.  Wants at the
 * output's edge are copied from scratch. */
static void mix_row(const decoding *j, size_t strip)
{
    const kofn_decoder *d = j->d;
    kf_combine_tile t = {.k = d->results,
                         .ldd = d->results,
                         .len = j->width,
                         .dtype = j->out->dtype,
                         .far = j->far};
    bool aside = aim(j, strip, strip + 1);

    for (size_t row = 0, end; row < d->mixed; row = end) {
        end = d->run ? d->run[row] : d->mixed;
        t.m = end - row;
        t.D = d->D + row * d->results;
        kf_combine_part(&t, j->scratch->src, j->scratch->dst + row);
    }
    if (aside)
        put_aside(j, strip, strip + 1);
}

/* Makes all mixed wants of strips [lo, hi) in one call of the engine.  They go
 * directly into the output if their rows are whole there, else through scratch.
 */
static void combine_mixed(const decoding *j, size_t lo, size_t hi)
{
    bool aside = aim(j, lo, hi);

    combine_rows(j, (hi - lo) * j->width);
    if (aside)
        put_aside(j, lo, hi);
}

/* Returns the end of the strips from `at` on that go directly into the output
 * with all wants. */
static size_t straight(const decoding *j, size_t at, size_t hi)
{
    size_t end = hi;

    for (size_t w = 0; w < j->d->wants; w++) {
        place to = place_of(j->plan, j->group, w, at, hi, j->out);

        if (j->d->copy[w] != KF_MIXED || to.cols != j->width ||
            j->out->ld != j->width)
            return at;
        end = kf_min(end, at + to.rows);
    }
    return end;
}

kofn_status kf_decode(const kofn_plan *plan, const kofn_decoder *d,
                      const kf_source *sources, kf_band band, kofn_matrix *out,
                      kf_scratch *scratch)
{
    decoding j = {plan, d,       sources, band.group, width_of(plan, out),
                  out,  scratch, false};
    size_t size = kf_dtype_size(out->dtype);
    size_t row = kf_max(1, d->results) * j.width * size;
    size_t step = kf_max(1, TILE / row);

    assert(band.group < plan->layout.groups);
    j.far = kf_combine_is_far((band.hi - band.lo) *
                              (row + d->mixed * j.width * size));
    TRY(room(&scratch->src, &scratch->srcs, d->results + 1, sizeof(void *)));
    TRY(room(&scratch->dst, &scratch->dsts, d->mixed + 1, sizeof(void *)));
    TRY(room(&scratch->p, &scratch->bytes,
             kf_min(step, band.hi - band.lo) * j.width * size * (d->mixed + 1),
             1));
    if (d->factor)
        TRY(room(&scratch->sums, &scratch->sums_bytes,
                 kf_factor_room(d->factor, (band.hi - band.lo) * j.width), 1));
    for (size_t at = band.lo, end; at < band.hi; at = end) {
        end = kf_max(kf_min(at + step, band.hi), straight(&j, at, band.hi));
        assert(at < end);
        assert(end <= band.hi);
        copy_plain(&j, at, end);
        if (d->mixed && row_by_row(&j))
            for (size_t i = at; i < end; i++)
                mix_row(&j, i);
        else if (d->mixed)
            combine_mixed(&j, at, end);
    }
    if (j.far)
        kf_combine_done();
    return KOFN_OK;
}

/* Restores the decoded numbers that are not lost.  Fails with KOFN_NONFINITE if
 * a result is NaN or infinite. */
static kofn_status restore(const kofn_plan *plan, const kofn_decoder *d,
                           kf_band band, const kf_back *back,
                           const kofn_matrix *out)
{
    for (size_t w = 0; w < d->wants; w++) {
        place at = place_of(plan, band.group, w, band.lo, band.hi, out);
        kofn_matrix part = {NULL, at.rows, at.cols, out->ld, out->dtype};
        kf_back here = *back;

        if (d->copy[w] == KF_LOST || !at.rows || !at.cols)
            continue;
        part.data = kf_at(out, at.row, at.col);
        here.row = back->row ? back->row + at.row : NULL;
        here.col = back->col ? back->col + at.col : NULL;
        TRY(kf_range_restore(&part, &here));
    }
    return KOFN_OK;
}

kofn_status kf_data_decode(const kofn_plan *plan, const kofn_decoder *d,
                           const kf_source *sources, kf_band band,
                           const kf_output *to, kf_scratch *scratch)
{
    kofn_status st = KOFN_OK;
    size_t row =
        d->wants * width_of(plan, to->out) * kf_dtype_size(to->out->dtype);
    size_t step = d->mixed ? band.hi : kf_max(1, NEAR / kf_max(1, row));

    for (kf_band here = band; here.lo < band.hi; here.lo = here.hi) {
        here.hi = kf_min(here.lo + step, band.hi);
        TRY(kf_decode(plan, d, sources, here, to->out, scratch));
        if (!st)
            st = restore(plan, d, here, to->back, to->out);
    }
    return st;
}

kofn_status kf_data_add_up(const kf_source *source, size_t n, kofn_matrix *out)
{
    double *ones = kf_new(n, sizeof *ones);
    const void **src = kf_new(n, sizeof *src);
    size_t rows = out->rows, length = out->cols;

    if (!ones || !src) {
        kf_free(ones);
        kf_free(src);
        return KOFN_NOMEM;
    }
    for (size_t i = 0; i < n; i++)
        ones[i] = 1;
    if (out->ld == out->cols) {
        length *= rows;
        rows = 1;
    }
    for (size_t r = 0; r < rows; r++) {
        void *dst = kf_at(out, r, 0);

        for (size_t i = 0; i < n; i++)
            src[i] = kf_at(source[i].result, r, 0);
        kf_combine(&(kf_combination){1, n, ones, n, src, &dst}, length,
                   out->dtype);
    }
    kf_free(ones);
    kf_free(src);
    return KOFN_OK;
}
