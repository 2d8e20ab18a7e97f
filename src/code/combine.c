/* combine.c -- the dot-product engine: choice of kernel, blocking.
 *
 * Blocking.  A kernel keeps the sums of up to `rows` outputs over a few vectors
 * of columns in registers while it passes over all sources.  There are three
 * cases:
 *
 *   - With at most `rows` outputs, memory is the limit.  One pass of the kernel
 *     along the columns reads every source and writes every output once.
 *   - With more outputs, columns are cut into slivers.  The sources of a sliver
 *     stay in the cache until all its outputs are made.
 *   - With many sources, these are cut into chunks.  Between chunks the sums
 *     wait in a tile of doubles.  Columns are cut so that the tile has room for
 *     all outputs, or for one panel of them after the other.
 *
 * Memory.  Hardware prefetching follows only about a dozen streams of reads,
 * and outstanding loads are too few to compensate.  Prefetches into the
 * second-level cache have a higher limit.  A call larger than the caches uses
 * non-temporal stores, because an ordinary store first reads the memory that it
 * overwrites.
 *
 * Its only state is the kernel in use, the same for all threads.  It allocates
 * nothing.  An output depends only on its sources and coefficients, not on how
 * the call was cut. */
#include "combine.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

#define CHUNK 256         /* most sources in a chunk */
#define STREAMS 64        /* the same, if reading is the limit */
#define FOLLOWED 12       /* read streams that hardware follows */
#define BUSY 4            /* outputs from which on arithmetic is the limit */
#define BURST (32 << 10)  /* bytes, if the start of a stream costs nothing */
#define TILE 8192         /* sums that wait between chunks */
#define STEP 32           /* columns: a multiple of every kernel's group */
#define SLIVER (64 << 10) /* bytes of sources in a sliver */
#define AHEAD 1024        /* prefetch distance in bytes */
#define NEAR (1 << 20)    /* bytes that need no prefetching */
#define AROUND (32 << 20) /* bytes beyond which stores are non-temporal */

/* ---- level of SIMD ------------------------------------------------------- */

static const struct {
    const char *name;
    const kf_combine_simd *(*find)(void);
} levels[] = {
#if KF_COMBINE_X86
    {"avx512", kf_combine_avx512},
    {"avx2", kf_combine_avx2},
#endif
    {"plain", kf_combine_plain},
};
#define LEVELS (sizeof levels / sizeof levels[0])

static _Atomic(const kf_combine_simd *) in_force;

static size_t level_named(const char *name)
{
    size_t i = 0;

    while (i < LEVELS && strcmp(name, levels[i].name))
        i++;
    return i;
}

/* Chooses the kernel. Concurrent calls find the same. */
static const kf_combine_simd *choose(void)
{
    const char *highest = getenv("KOFN_SIMD");
    size_t i = highest ? level_named(highest) % LEVELS : 0;
    const kf_combine_simd *simd = levels[i].find();

    while (!simd)
        simd = levels[++i].find();
    atomic_store_explicit(&in_force, simd, memory_order_release);
    return simd;
}

static const kf_combine_simd *simd_in_force(void)
{
    const kf_combine_simd *simd =
        atomic_load_explicit(&in_force, memory_order_acquire);

    return simd ? simd : choose();
}

const char *kf_combine_level(void)
{
    return simd_in_force()->name;
}

bool kf_combine_use(const char *level)
{
    size_t i = level_named(level);
    const kf_combine_simd *simd = i < LEVELS ? levels[i].find() : NULL;

    if (simd)
        atomic_store_explicit(&in_force, simd, memory_order_release);
    return simd != NULL;
}

/* ---- blocking ------------------------------------------------------------ */

typedef struct call {
    const kf_combine_simd *simd;
    size_t m, k;
    const double *D;
    size_t ldd;
    const void *const *src;
    void *const *dst;
    int kernel;  /* dtype, or KF_ROUNDED */
    size_t size; /* of an element of the sources */
    size_t ahead;
    bool stream;
} call;

/* The sources of a chunk with a coefficient that is not zero.  Their order is
 * the first, the last, the second, the last but one, and so on.  In ascending
 * order they often have equal distances.  Hardware would then also prefetch the
 * memory behind the last one.  If that is an output with non-temporal stores,
 * it would take twice the time. */
typedef struct used {
    const char *src[CHUNK];
    size_t col[CHUNK];
    size_t count;
} used;

static void find_used(used *u, const call *c, size_t first, size_t count)
{
    bool any[CHUNK] = {false};
    size_t left = count, low = 0, high = count;

    assert(count <= CHUNK && first + count <= c->k);
    for (size_t i = 0; i < c->m && left; i++) {
        const double *row = c->D + i * c->ldd + first;

        for (size_t j = 0; j < count; j++) {
            if (!any[j] && row[j] != 0) {
                any[j] = true;
                left--;
            }
        }
    }
    for (u->count = 0; u->count < count - left; u->count++) {
        size_t j = u->count % 2 ? --high : low++;

        while (!any[j])
            j = u->count % 2 ? --high : low++;
        u->src[u->count] = c->src[first + j];
        u->col[u->count] = first + j;
    }
}

/* Outputs row .. row+m-1, of columns from .. to-1. */
typedef struct panel {
    size_t row, m, from, to;
} panel;

/* Makes a panel from the sources in use. */
static void sweep(const call *c, kf_combine_block b, const used *u, panel p)
{
    size_t passes = kf_ceil_div(p.m, c->simd->rows), width = p.to - p.from;
    double *acc = b.acc;

    assert(p.from <= p.to);
    b.k = u->count;
    b.src = u->src;
    b.col = u->col;
    b.ldd = c->ldd;
    b.stream = c->stream;
    if (passes > 1)
        width = kf_max(SLIVER / (c->size * (b.k + 1)) / STEP * STEP, STEP);
    for (size_t t = p.from; t < p.to; t += width) {
        size_t done = 0;

        for (size_t left = passes; left; left--) {
            size_t rows = kf_ceil_div(p.m - done, left);

            assert(rows > 0 && rows <= c->simd->rows);
            if (b.k)
                b.D = c->D + (p.row + done) * c->ldd;
            b.dst = b.last ? c->dst + p.row + done : NULL;
            b.acc = acc ? acc + done * b.ldacc : NULL;
            b.ahead = done ? 0 : c->ahead;
            c->simd->kernel[c->kernel][rows - 1](&b, t,
                                                 kf_min(t + width, p.to));
            done += rows;
        }
    }
}

/* Handles all sources in one chunk. */
static void whole(const call *c, size_t from, size_t to)
{
    kf_combine_block b = {.first = true, .last = true};
    used u;

    find_used(&u, c, 0, c->k);
    sweep(c, b, &u, (panel){0, c->m, from, to});
}

/* Makes a panel chunk by chunk. */
static void tile(const call *c, size_t chunk, double *acc, panel p)
{
    kf_combine_block b = {.acc = acc, .ldacc = p.to - p.from, .begin = p.from};
    used u;

    assert(chunk > 0);
    for (size_t j = 0; j < c->k; j += chunk) {
        b.first = j == 0;
        b.last = c->k - j <= chunk;
        find_used(&u, c, j, kf_min(chunk, c->k - j));
        sweep(c, b, &u, p);
    }
}

static void chunked(const call *c, size_t chunk, size_t from, size_t to)
{
    _Alignas(KF_COMBINE_LINE) double acc[TILE];
    size_t width = kf_max(TILE / c->m / STEP * STEP, STEP);
    size_t high = kf_min(TILE / width, c->m);

    assert(high > 0 && high * width <= TILE);
    for (size_t t = from; t < to; t += width)
        for (size_t i = 0; i < c->m; i += high)
            tile(c, chunk, acc,
                 (panel){i, kf_min(high, c->m - i), t, kf_min(t + width, to)});
}

/* Returns the number of sources to read at once. */
static size_t chunk_of(const call *c)
{
    size_t most = CHUNK;

    if (c->m <= c->simd->rows)
        most = TILE / c->m * c->size >= BURST ? FOLLOWED : STREAMS;
    return c->k <= most ? c->k : kf_ceil_div(c->k, kf_ceil_div(c->k, most));
}

static void combine_columns(const call *c, size_t from, size_t to)
{
    size_t chunk = chunk_of(c);

    if (from == to)
        return;
    if (c->k <= chunk)
        whole(c, from, to);
    else
        chunked(c, chunk, from, to);
}

/* Uses non-temporal stores from the first cache line boundary of output 0;
 * mostly all outputs share it. */
static void combine_around(call *c, size_t len)
{
    size_t head = kf_min(len, kf_to_line(c->dst[0]) / c->size);

    combine_columns(c, 0, head);
    c->stream = true;
    combine_columns(c, head, len);
}

static call call_of(const kf_combine_tile *t, const void *const *src,
                    void *const *dst, size_t ahead)
{
    return (call){
        .simd = simd_in_force(),
        .m = t->m,
        .k = t->k,
        .D = t->D,
        .ldd = t->ldd,
        .src = src,
        .dst = dst,
        .kernel = (int)t->dtype,
        .size = t->dtype == KOFN_F32 ? sizeof(float) : sizeof(double),
        .ahead = ahead,
    };
}

static void combine(call *c, size_t len, bool far)
{
    if (c->m == 0 || len == 0)
        return;
    if (far)
        combine_around(c, len);
    else
        combine_columns(c, 0, len);
}

void kf_combine(const kf_combination *x, size_t len, kofn_dtype dtype)
{
    kf_combine_tile t = {x->m, x->k, x->ldd, x->D, len, dtype, false};
    call c = call_of(&t, x->src, x->dst, 0);
    size_t bytes = (x->m + x->k) * len * c.size;

    c.ahead = bytes > NEAR ? AHEAD : 0;
    combine(&c, len, bytes > AROUND);
    if (bytes > AROUND)
        c.simd->fence();
}

bool kf_combine_is_far(size_t bytes)
{
    return bytes > AROUND;
}

void kf_combine_part(const kf_combine_tile *t, const void *const *src,
                     void *const *dst)
{
    call c = call_of(t, src, dst, AHEAD);

    combine(&c, t->len, t->far);
}

void kf_combine_sums(const kf_combine_tile *t, const void *const *src,
                     double *sums, size_t ld)
{
    call c = call_of(t, src, NULL, t->far ? AHEAD : 0);
    kf_combine_block b = {.first = true, .acc = sums, .ldacc = ld};
    size_t most = t->m > c.simd->rows                       ? CHUNK
                  : t->m >= BUSY || t->len * c.size < BURST ? STREAMS
                                                            : FOLLOWED;
    size_t chunk = kf_ceil_div(t->k, kf_ceil_div(t->k, most));
    used u;

    assert(t->k > 0);
    assert(t->m > 0);
    for (size_t j = 0; j < t->k; j += chunk, b.first = false) {
        find_used(&u, &c, j, kf_min(chunk, t->k - j));
        sweep(&c, b, &u, (panel){0, t->m, 0, t->len});
    }
}

void kf_combine_rounded(const kf_combine_tile *t, const void *const *sums,
                        void *const *dst)
{
    call c = call_of(t, sums, dst, 0);

    if (t->dtype == KOFN_F32)
        c.kernel = KF_ROUNDED;
    c.size = sizeof(double);
    c.stream = t->far;
    combine(&c, t->len, false);
}

void kf_combine_done(void)
{
    simd_in_force()->fence();
}
