/* factor.c -- D as a product V Z of two matrices with fewer multiplications.
 *
 * If messages have a fraction of the vector's length, each is multiplied for
 * more outputs in the same proportion.  Then memory bandwidth is no longer the
 * limit.  But for codes of sums D has structure.
 *
 * Consider D over the answers of one submessage, with a row for each want and
 * component.  This matrix has low rank: at most d minus the number of
 * stragglers, in units of the field.  If the columns of the code are cosines
 * and sines, its row space has a real basis, although D is complex
 * (gradient_field.c).  In groups that miss the same seats, the corresponding
 * seats of all groups have equal columns of D.  So their messages can be added
 * first.
 *
 * So Z has a block for each submessage, or for each set of answers with equal
 * columns.  The block is applied to all components in the same way; V mixes its
 * outputs.  The outputs of Z wait in double precision, and both steps run tile
 * by tile.  Messages are read once, outputs are written once, and no digit is
 * lost.
 *
 * A factor belongs to its decoder.  The caller that applies it provides the
 * memory; nothing is allocated then.  If a factor would save nothing, there is
 * none. */
#include "code.h"

#include "combine.h"

#include <assert.h>
#include <math.h>

/* The times to read a number from memory, and to keep one in the cache, in
 * multiplications. */
#define READING 3
#define KEEPING 4
/* Numbers below this fraction of the largest row are rounding. */
#define ROUNDING 1e-14
/* With fewer outputs than this, memory is the limit. */
#define FEWEST 4
/* Bytes of waiting sums, and the least number of columns at a time. */
#define WAITING ((size_t)2 << 20)
#define STEP 32
#define NARROWEST 256
#define TOGETHER 4 /* outputs that are made from the same sums */
#define NEAR ((size_t)1 << 20)

typedef struct block {
    size_t first, count; /* answers     */
    size_t row, rank;    /* rows of Z   */
    double *Z;           /* rank x count */
} block;

struct kf_factor {
    size_t components, mixed, answers, rows, blocks;
    uint32_t *answer; /* of all blocks, in order */
    block *block;
    double *V; /* mixed x (rows x components) */
    kf_arrays owned;
};

void kf_factor_free(kf_factor *f)
{
    if (f)
        kf_arrays_free(&f->owned);
    kf_free(f);
}

/* ---- columns ------------------------------------------------------------- */

/* Returns the column of D for one component of an answer: its weight in each
 * want, the first want first. */
static const double *column(const kofn_decoder *d, const kf_factor *f, size_t a,
                            size_t component)
{
    assert(component < f->components);
    return d->D + a * f->components + component;
}

static bool same_column(const kofn_decoder *d, const kf_factor *f, size_t a,
                        size_t b)
{
    for (size_t w = 0; w < d->mixed; w++)
        if (memcmp(column(d, f, a, 0) + w * d->results,
                   column(d, f, b, 0) + w * d->results,
                   f->components * sizeof(double)))
            return false;
    return true;
}

static bool is_nothing(const kofn_decoder *d, const kf_factor *f, size_t a)
{
    for (size_t w = 0; w < d->mixed; w++)
        for (size_t l = 0; l < f->components; l++)
            if (column(d, f, a, l)[w * d->results] != 0)
                return false;
    return true;
}

/* ---- blocks -------------------------------------------------------------- */

/* Returns the cost of a block: reading its answers, multiplying them by Z,
 * keeping the outputs and mixing them. */
static double cost_of(const kf_factor *f, size_t count, size_t rank)
{
    return (double)f->components *
           ((double)count * (double)(READING + rank) +
            (double)rank * (double)(KEEPING + f->mixed));
}

/* Sorts answers with equal columns next to each other; end[k] is the end of the
 * k-th set. */
static size_t gather(const kofn_decoder *d, const kf_factor *f,
                     uint32_t *answer, size_t count, size_t *end)
{
    size_t sets = 0, at = 0;

    assert(count > 0);
    while (at < count) {
        size_t first = at++;

        for (size_t k = at; k < count; k++)
            if (same_column(d, f, answer[first], answer[k])) {
                uint32_t other = answer[at];

                answer[at++] = answer[k];
                answer[k] = other;
            }
        end[sets++] = at;
    }
    return sets;
}

static kofn_status add_block(kf_factor *f, size_t first, size_t count,
                             size_t rank)
{
    block *b = &f->block[f->blocks];

    assert(count > 0);
    assert(rank > 0);
    *b = (block){first, count, f->rows, rank,
                 kf_arrays_new(&f->owned, rank * count, sizeof *b->Z)};
    if (!b->Z)
        return KOFN_NOMEM;
    for (size_t e = 0; e < rank * count; e++)
        b->Z[e] = 1;
    f->blocks++;
    f->rows += rank;
    return KOFN_OK;
}

/* Removes from row r of A its component along z. */
static void take_off(double *A, size_t r, const double *z, size_t count)
{
    double *row = A + r * count, dot = kf_code_sum(row, z, count);

    for (size_t c = 0; c < count; c++)
        row[c] -= dot * z[c];
}

/* Computes an orthonormal basis Z of the rows of A (rows x count) by
 * Gram-Schmidt, taking the largest remaining row each time.  Returns the rank,
 * or most + 1 if it exceeds `most`. */
static size_t basis(double *A, size_t rows, size_t count, size_t most,
                    double *Z)
{
    double top = 0;

    for (size_t rank = 0;; rank++) {
        double *z = Z + rank * count, largest = 0;
        size_t best = 0;

        for (size_t r = 0; r < rows; r++) {
            double s = kf_code_sum(A + r * count, A + r * count, count);

            if (s > largest) {
                largest = s;
                best = r;
            }
        }
        top = rank ? top : largest;
        if (!(largest > ROUNDING * ROUNDING * top))
            return rank;
        if (rank == most)
            return most + 1;
        memcpy(z, A + best * count, count * sizeof *z);
        for (size_t b = 0; b < rank; b++)
            take_off(z, 0, Z + b * count, count);
        largest = sqrt(kf_code_sum(z, z, count));
        for (size_t c = 0; c < count; c++)
            z[c] /= largest;
        for (size_t r = 0; r < rows; r++)
            take_off(A, r, z, count);
    }
}

/* Fills A with one row for each want and component. */
static void fill(const kofn_decoder *d, const kf_factor *f,
                 const uint32_t *answer, size_t count, double *A)
{
    for (size_t w = 0; w < d->mixed; w++)
        for (size_t l = 0; l < f->components; l++)
            for (size_t c = 0; c < count; c++)
                *A++ = column(d, f, answer[c], l)[w * d->results];
}

/* Adds the blocks of answers first .. first+count-1, which belong to one
 * submessage, and adds their cost to *cost. */
static kofn_status add_submessage(const kofn_decoder *d, kf_factor *f,
                                  size_t first, size_t count, double *cost)
{
    size_t rows = d->mixed * f->components, most = kf_min(d->mixed - 1, count);
    size_t rank, sets;
    kf_arrays arrays = {0};
    size_t *end = kf_arrays_new(&arrays, count, sizeof *end);
    double *A = kf_arrays_new(&arrays, rows * count, sizeof *A);
    double *Z = kf_arrays_new(&arrays, most * count, sizeof *Z), apart;
    kofn_status st = kf_arrays_status(&arrays);

    if (!st) {
        sets = gather(d, f, f->answer + first, count, end);
        fill(d, f, f->answer + first, count, A);
        rank = basis(A, rows, count, most, Z);
        apart = cost_of(f, count, 1) + cost_of(f, 0, sets - 1);
        if (rank <= most && cost_of(f, count, rank) <= apart) {
            *cost += cost_of(f, count, rank);
            st = add_block(f, first, count, rank);
            if (!st)
                memcpy(f->block[f->blocks - 1].Z, Z, rank * count * sizeof *Z);
        } else {
            *cost += apart;
            for (size_t k = 0, at = 0; k < sets && !st; at = end[k++])
                st = add_block(f, first + at, end[k] - at, 1);
        }
    }
    kf_arrays_free(&arrays);
    return st;
}

/* Computes V = D Z'. For a set of equal columns, V is that column. */
static void fill_V(const kofn_decoder *d, const kf_factor *f, const block *b)
{
    assert(f->V);
    for (size_t w = 0; w < d->mixed; w++)
        for (size_t r = 0; r < b->rank; r++) {
            const double *z = b->Z + r * b->count;
            double scale = 1 / kf_code_sum(z, z, b->count);

            for (size_t l = 0; l < f->components; l++) {
                double sum = 0;

                for (size_t c = 0; c < b->count; c++)
                    sum += z[c] * column(d, f, f->answer[b->first + c],
                                         l)[w * d->results];
                f->V[(w * f->rows + b->row + r) * f->components + l] =
                    sum * scale;
            }
        }
}

/* ---- is it quicker? ------------------------------------------------------ */

/* Returns the cost of using D itself in runs (runs.c). */
static double plain_cost(const kofn_decoder *d)
{
    double cost = 0;

    for (size_t row = 0, end; row < d->mixed; row = end) {
        size_t used = 0;

        end = d->run ? d->run[row] : d->mixed;
        for (size_t r = 0; r < d->results; r++)
            for (size_t w = row; w < end; w++)
                if (d->D[w * d->results + r] != 0) {
                    used++;
                    break;
                }
        cost += (double)used * (double)(READING + end - row);
    }
    return cost;
}

/* Sorts the answers by submessage, without unused ones, and adds their blocks.
 */
static kofn_status add_submessages(const kofn_decoder *d, kf_factor *f,
                                   size_t submessages, double *cost)
{
    kofn_status st = KOFN_OK;

    for (size_t t = 0; t < submessages && !st; t++) {
        size_t first = f->answers;

        for (size_t a = 0; a < d->seats; a++)
            if (d->seat[a] % submessages == t && !is_nothing(d, f, a))
                f->answer[f->answers++] = (uint32_t)a;
        if (f->answers > first)
            st = add_submessage(d, f, first, f->answers - first, cost);
    }
    return st;
}

/* Fills the factor. V stays NULL if D itself is faster. */
static kofn_status fill_factor(const kofn_decoder *d, kf_factor *f,
                               size_t submessages)
{
    double cost = 0;

    f->answer = kf_arrays_new(&f->owned, d->seats, sizeof *f->answer);
    f->block = kf_arrays_new(&f->owned, d->seats, sizeof *f->block);
    TRY(kf_arrays_status(&f->owned));
    TRY(add_submessages(d, f, submessages, &cost));
    if (!(cost < plain_cost(d)))
        return KOFN_OK;
    f->V = kf_arrays_table(&f->owned, d->mixed, f->rows * f->components);
    TRY(kf_arrays_status(&f->owned));
    for (size_t b = 0; b < f->blocks; b++)
        fill_V(d, f, &f->block[b]);
    return KOFN_OK;
}

kofn_status kf_decoder_factor(kofn_decoder *d, size_t components,
                              size_t submessages)
{
    kf_factor *f;
    kofn_status st;

    assert(!d->factor);
    assert(submessages > 0);
    if (d->mixed < FEWEST)
        return KOFN_OK;
    TRY_ZERO(f, 1);
    f->components = components;
    f->mixed = d->mixed;
    st = fill_factor(d, f, submessages);
    if (!st && f->V)
        d->factor = f;
    else
        kf_factor_free(f);
    return st;
}

/* ---- use ----------------------------------------------------------------- */

static size_t width_of(const kf_factor *f, size_t len)
{
    size_t row = f->rows * f->components * sizeof(double);

    assert(f->rows > 0);
    return kf_min(len, kf_max(WAITING / row / STEP * STEP, NARROWEST));
}

size_t kf_factor_room(const kf_factor *f, size_t len)
{
    size_t waiting = f->rows * f->components;

    return waiting * width_of(f, len) * sizeof(double) + KF_COMBINE_LINE +
           (f->answers + waiting + f->mixed) * sizeof(void *);
}

typedef struct use {
    const kf_factor *f;
    const void *const *src;
    kofn_dtype dtype;
    size_t size, width;
    bool far;
    double *sums;
    const void **from; /* sources of a block */
    const void **wait; /* the sums   */
    void **to;
} use;

static void apply_block(const use *u, const block *b, size_t at, size_t len)
{
    const kf_factor *f = u->f;
    kf_combine_tile t = {b->rank, b->count, b->count, b->Z,
                         len,     u->dtype, u->far};

    for (size_t l = 0; l < f->components; l++) {
        for (size_t c = 0; c < b->count; c++)
            u->from[c] =
                (const char *)
                    u->src[f->answer[b->first + c] * f->components + l] +
                at * u->size;
        kf_combine_sums(&t, u->from,
                        u->sums + (b->row * f->components + l) * u->width,
                        f->components * u->width);
    }
}

void kf_factor_apply(const kf_factor *f, const void *const *src,
                     void *const *dst, size_t len, kofn_dtype dtype,
                     void *scratch)
{
    size_t size = dtype == KOFN_F32 ? sizeof(float) : sizeof(double);
    size_t waiting = f->rows * f->components, width = width_of(f, len);
    char *line = (char *)scratch + kf_to_line(scratch);
    use u = {f,
             src,
             dtype,
             size,
             width,
             (f->answers * f->components + f->mixed) * len * size > NEAR,
             (double *)(void *)line,
             NULL,
             NULL,
             NULL};

    u.to = (void **)(void *)(u.sums + waiting * width);
    u.from = (const void **)(void *)(u.to + f->mixed);
    u.wait = u.from + f->answers;
    for (size_t r = 0; r < waiting; r++)
        u.wait[r] = u.sums + r * width;
    for (size_t at = 0; at < len; at += width) {
        size_t n = kf_min(width, len - at);

        for (size_t b = 0; b < f->blocks; b++)
            apply_block(&u, &f->block[b], at, n);
        for (size_t w = 0; w < f->mixed; w++)
            u.to[w] = (char *)dst[w] + at * size;
        for (size_t w = 0; w < f->mixed; w += TOGETHER) {
            kf_combine_tile t = {kf_min(TOGETHER, f->mixed - w),
                                 waiting,
                                 waiting,
                                 f->V + w * waiting,
                                 n,
                                 dtype,
                                 u.far};

            kf_combine_rounded(&t, u.wait, u.to + w);
        }
    }
    if (u.far)
        kf_combine_done();
}
