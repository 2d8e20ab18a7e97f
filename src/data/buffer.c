/* buffer.c -- matrices with counted references.
 *
 * A buffer is freed with its last reference; a view holds a reference to the
 * buffer under it.  Only the holder of the sole reference may write into a
 * buffer. */
#include "data.h"

#include <assert.h>

static kofn_status put_around(kf_buffer **out, const kofn_matrix *m)
{
    TRY_ZERO(*out, 1);
    atomic_init(&(*out)->refs, 1);
    (*out)->m = *m;
    return KOFN_OK;
}

kofn_status kf_buffer_new(kf_buffer **out, size_t rows, size_t cols,
                          kofn_dtype dtype)
{
    kofn_matrix m;
    kofn_status st;

    *out = NULL;
    TRY(kf_mat_new(&m, rows, cols, dtype));
    st = put_around(out, &m);
    if (st)
        kf_free(m.data);
    else
        (*out)->capacity = kf_buffer_bytes(*out);
    return st;
}

kofn_status kf_buffer_view(kf_buffer **out, kf_buffer *of,
                           const kofn_matrix *part)
{
    TRY(put_around(out, part));
    (*out)->of = kf_buffer_keep(of);
    return KOFN_OK;
}

size_t kf_buffer_bytes(const kf_buffer *p)
{
    return p ? p->m.rows * p->m.cols * kf_dtype_size(p->m.dtype) : 0;
}

kofn_status kf_buffer_around(kf_buffer **out, const kofn_matrix *m,
                             void (*release)(void *from, void *own), void *from,
                             void *own)
{
    assert(release);
    TRY(put_around(out, m));
    (*out)->release = release;
    (*out)->from = from;
    (*out)->own = own;
    return KOFN_OK;
}

/* Gives a buffer with a sole reference another shape; false if it is too small.
 */
static bool reshape(kf_buffer *p, size_t rows, size_t cols, kofn_dtype dtype)
{
    assert(atomic_load(&p->refs) == 1);
    if (rows * cols * kf_dtype_size(dtype) > p->capacity)
        return false;
    p->m.rows = rows;
    p->m.cols = p->m.ld = cols;
    p->m.dtype = dtype;
    return true;
}

kf_buffer *kf_buffer_keep(kf_buffer *p)
{
    assert(atomic_load(&p->refs) > 0);
    atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
    return p;
}

void kf_buffer_drop(kf_buffer *p)
{
    assert(!p || atomic_load(&p->refs) > 0);
    if (!p || atomic_fetch_sub(&p->refs, 1) > 1)
        return;
    if (p->of)
        kf_buffer_drop(p->of);
    else if (p->release)
        p->release(p->from, p->own);
    else
        kf_free(p->m.data);
    kf_free(p);
}

kofn_matrix *kf_buffer_matrix(kf_buffer *p)
{
    return &p->m;
}

/* ---- pools --------------------------------------------------------------- */

kofn_status kf_pool_take(kf_pool *pool, size_t rows, size_t cols,
                         kofn_dtype dtype, kf_buffer **out)
{
    for (size_t i = pool->count; i > 0; i--) {
        kf_buffer **p = &pool->buffer[i - 1];

        if (atomic_load(&(*p)->refs) == 1 && reshape(*p, rows, cols, dtype)) {
            *out = *p;
            *p = pool->buffer[--pool->count];
            return KOFN_OK;
        }
    }
    return kf_buffer_new(out, rows, cols, dtype);
}

void kf_pool_give(kf_pool *pool, kf_buffer *p)
{
    if (!p)
        return;
    if (p->capacity == 0 ||
        kf_grow(&pool->buffer, &pool->cap, pool->count, sizeof *pool->buffer))
        kf_buffer_drop(p);
    else
        pool->buffer[pool->count++] = p;
}

void kf_pool_free(kf_pool *pool)
{
    for (size_t i = 0; i < pool->count; i++)
        kf_buffer_drop(pool->buffer[i]);
    kf_free(pool->buffer);
}
