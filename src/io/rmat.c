/* rmat.c -- graphs with the skewed degrees of real ones.
 *
 * R-MAT: Chakrabarti, Zhan, Faloutsos, "R-MAT: A Recursive Model for Graph
 * Mining", SDM 2004.  An arc falls into one of the four quadrants of the
 * adjacency matrix, then of that quadrant, and so on, each time with the
 * chances 0.57, 0.19, 0.19 and 0.05.  The smallest power of two that holds
 * the nodes is split, and arcs outside are drawn again.  That happens to fewer
 * than half of the draws, because the quadrant that is whole has the chance
 * 0.57.  Low numbers would be the well-connected ones, so nodes are shuffled.
 *
 * The graph is the caller's.  All draws are from one named stream, so that a
 * seed gives the same graph everywhere.
 */
#include "io.h"

#include "base/rng.h"

/* Streams: (KF_FOR_DATA, RMAT, 0) shuffles, (.., 1 + c) draws arcs c CHUNK
 * and after.  In chunks, because a stream's counter has 32 bits. */
#define RMAT 0x524d4154u
#define CHUNK ((size_t)1 << 20)

static uint32_t *shuffled(size_t nodes, uint64_t seed)
{
    kf_rng r = kf_rng_stream(seed, KF_FOR_DATA, RMAT, 0);
    uint32_t *to = kf_new(nodes, sizeof *to);

    for (size_t i = 0; to && i < nodes; i++) {
        size_t k = (size_t)kf_rng_below(&r, i + 1);

        to[i] = (uint32_t)i;
        to[i] = to[k];
        to[k] = (uint32_t)i;
    }
    return to;
}

/* Draws one edge in the square of 2^levels nodes. */
static uint64_t draw(kf_rng *r, unsigned levels)
{
    const uint32_t a = (uint32_t)(0.57 * 0x1p32);
    const uint32_t ab = (uint32_t)(0.76 * 0x1p32);
    const uint32_t abc = (uint32_t)(0.95 * 0x1p32);
    uint64_t i = 0, j = 0;

    for (; levels > 0; levels--) {
        uint32_t u = kf_rng_u32(r);
        unsigned quadrant =
            (unsigned)(u >= a) + (unsigned)(u >= ab) + (unsigned)(u >= abc);

        i = i << 1 | quadrant >> 1;
        j = j << 1 | (quadrant & 1);
    }
    return i << 32 | j;
}

/* Draw all arcs, keep those that are no loops and count them by row.  The
 * places in memory that are to hold the values hold the arcs until these are
 * sorted into rows: from << 32 | to. */
static void draw_arcs(kofn_sparse *s, size_t arcs, const uint32_t *name,
                      uint64_t seed)
{
    size_t *ptr = kf_sparse_ptr(s), kept = 0;
    double *val = kf_sparse_val(s);
    unsigned levels = 0;
    kf_rng r = {0};

    while ((uint64_t)1 << levels < s->rows)
        levels++;
    for (size_t k = 0; k < arcs; k++) {
        uint64_t arc, from, to;

        if (k % CHUNK == 0)
            r = kf_rng_stream(seed, KF_FOR_DATA, RMAT,
                              (uint32_t)(1 + k / CHUNK));
        do {
            arc = draw(&r, levels);
            from = arc >> 32;
            to = arc & UINT32_MAX;
        } while (from >= s->rows || to >= s->rows);
        if (from == to)
            continue;
        arc = (uint64_t)name[from] << 32 | name[to];
        memcpy(val + kept++, &arc, sizeof arc);
        ptr[name[from] + 1]++;
    }
}

static void place_arcs(kofn_sparse *s)
{
    size_t *ptr = kf_sparse_ptr(s), kept = kf_io_sparse_lay(s);
    double *val = kf_sparse_val(s);

    for (size_t k = 0; k < kept; k++) {
        uint64_t arc;

        memcpy(&arc, val + k, sizeof arc);
        kf_sparse_col(s)[ptr[arc >> 32]++] = (uint32_t)arc;
        val[k] = 1;
    }
    kf_io_sparse_laid(s, kept, true);
}

kofn_status kofn_rmat(kofn_sparse **out, size_t nodes, size_t arcs,
                      uint64_t seed)
{
    kofn_sparse *s;
    uint32_t *name;

    if (!out)
        return kf_fail(KOFN_INVAL, "out is NULL");
    *out = NULL;
    if (nodes < 2 || nodes > UINT32_MAX)
        return kf_fail(KOFN_INVAL,
                       "%zu nodes; an R-MAT graph has at least 2 and fewer "
                       "than 2^32",
                       nodes);
    s = kf_io_sparse_new(nodes, nodes, arcs);
    if (!s)
        return KOFN_NOMEM;
    name = shuffled(nodes, seed);
    if (!name) {
        kofn_free(s);
        return KOFN_NOMEM;
    }
    draw_arcs(s, arcs, name, seed);
    place_arcs(s);
    kf_free(name);
    /* Values of 1 add up to at most the number of arcs: no failure here. */
    kf_io_sparse_tidy(s);
    for (size_t k = 0; k < s->ptr[nodes]; k++)
        kf_sparse_val(s)[k] = 1;
    *out = s;
    return KOFN_OK;
}
