/* user_multiply.c -- products by a worker's own function.  They are cut so that
 * a call takes about the preferred work, and added up if the inner dimension is
 * cut.
 *
 * Owns its scratch within a call.  The worker's function is called on the
 * worker's thread and may fail; its status becomes the status of the task. */
#include "kernel.h"

#include <assert.h>

/* Fewer rows per call are slow if the other factor has many columns. */
#define LEAST_ROWS 64

typedef struct tile {
    size_t rows, depth;
} tile;

/* Chooses the tile: whole rows if affordable, because then nothing is added
 * up. */
static tile tile_of(size_t rows, size_t depth, size_t cols, double work)
{
    size_t least = cols == 1 ? 1 : kf_min(rows, LEAST_ROWS);
    double fit = work / ((double)depth * (double)cols);
    tile p = {rows, depth};

    assert(rows > 0);
    if (fit < (double)rows)
        p.rows = (size_t)fit;
    if (p.rows >= least)
        return p;
    p.rows = kf_min(rows, LEAST_ROWS);
    fit = work / ((double)p.rows * (double)cols);
    if (fit < (double)depth)
        p.depth = kf_min(depth, kf_max(KF_LOOK_UP_DEPTH, (size_t)fit));
    return p;
}

static void add_to(void *to, const void *from, size_t n, kofn_dtype dtype)
{
    if (dtype == KOFN_F64)
        for (size_t i = 0; i < n; i++)
            ((double *)to)[i] += ((const double *)from)[i];
    else
        for (size_t i = 0; i < n; i++)
            ((float *)to)[i] += ((const float *)from)[i];
}

/* Calls the worker's own function once.  For a factor that stays, its place in
 * the component is passed too. */
static kofn_status ask(const kf_work *w, kofn_factors f, void *to)
{
    const kofn_matrix *stays = f.left ? &f.B : &f.A;
    size_t off = (size_t)((char *)stays->data - (char *)f.whole.data) /
                 kf_dtype_size(f.whole.dtype);
    kofn_matrix out = {to, f.A.rows, f.B.cols, f.B.cols, f.A.dtype};

    assert(f.whole.ld > 0);
    f.row = off / f.whole.ld;
    f.col = off % f.whole.ld;
    f.version = w->user->version;
    return w->user->multiply(w->user->ctx, &f, &out);
}

/* Multiplies some rows of a in steps of `depth`; `room` holds the result of a
 * step. */
static kofn_status in_depth(const kf_work *w, const kofn_factors *f,
                            size_t depth, bool add, void *to, void *room)
{
    size_t numbers = f->A.rows * f->B.cols;

    assert(f->A.cols == f->B.rows);
    assert(!add || room);
    for (size_t at = 0; at < f->A.cols; at += depth, add = true) {
        size_t n = kf_min(depth, f->A.cols - at);
        kofn_factors some = *f;

        some.A.data = kf_at(&f->A, 0, at);
        some.B.data = kf_at(&f->B, at, 0);
        some.A.cols = some.B.rows = n;
        if (kf_is_stopped(w))
            return KOFN_AGAIN;
        TRY(ask(w, some, add ? room : to));
        if (add)
            add_to(to, room, numbers, f->A.dtype);
    }
    return KOFN_OK;
}

kofn_status kf_user_multiply_tiles(const kf_work *w, const kofn_factors *all,
                                   bool add, void *to)
{
    const kofn_matrix *a = &all->A, *b = &all->B;
    size_t size = kf_dtype_size(a->dtype), at = 0;
    kofn_status st = KOFN_OK;

    while (at < a->rows && !st) {
        tile p = tile_of(a->rows - at, a->cols, b->cols, w->user->work);
        assert(p.rows > 0);
        bool adds = add || p.depth < a->cols;
        kofn_factors f = *all;
        void *room = adds ? kf_new(p.rows * b->cols, size) : NULL;

        f.A.data = kf_at(a, at, 0);
        f.A.rows = p.rows;
        st = adds && !room ? KOFN_NOMEM
                           : in_depth(w, &f, p.depth, add,
                                      (char *)to + at * b->cols * size, room);
        kf_free(room);
        at += p.rows;
    }
    return st;
}
