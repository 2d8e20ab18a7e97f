/* parcel.c -- matrices on their way, owned by whoever holds them. */
#include "data.h"

kofn_status kf_parcel_new(kf_parcel **out, size_t rows, size_t cols,
                          kofn_dtype dtype)
{
    size_t bytes;
    kf_parcel *p;

    *out = NULL;
    if (!kf_mul(rows, cols, &bytes) ||
        !kf_mul(bytes, kf_dtype_size(dtype), &bytes))
        return kf_nomem(SIZE_MAX);
    p = kf_new(1, sizeof *p);
    if (!p)
        return KOFN_NOMEM;
    atomic_init(&p->refs, 1);
    p->of = NULL;
    p->release = NULL;
    p->capacity = bytes;
    p->m = (kofn_matrix){kf_new(bytes, 1), rows, cols, cols, dtype};
    if (!p->m.data) {
        kf_free(p);
        return KOFN_NOMEM;
    }
    *out = p;
    return KOFN_OK;
}

kofn_status kf_parcel_view(kf_parcel **out, kf_parcel *of,
                           const kofn_matrix *part)
{
    kf_parcel *p = kf_new(1, sizeof *p);

    *out = p;
    if (!p)
        return KOFN_NOMEM;
    atomic_init(&p->refs, 1);
    p->m = *part;
    p->capacity = 0;
    p->release = NULL;
    p->of = kf_parcel_keep(of);
    return KOFN_OK;
}

size_t kf_parcel_bytes(const kf_parcel *p)
{
    return p ? p->m.rows * p->m.cols * kf_dtype_size(p->m.dtype) : 0;
}

kofn_status kf_parcel_around(kf_parcel **out, const kofn_matrix *m,
                             void (*release)(void *from, void *own), void *from,
                             void *own)
{
    kf_parcel *p = kf_zero(1, sizeof *p);

    *out = p;
    if (!p)
        return KOFN_NOMEM;
    atomic_init(&p->refs, 1);
    p->m = *m;
    p->release = release;
    p->from = from;
    p->own = own;
    return KOFN_OK;
}

bool kf_parcel_reshape(kf_parcel *p, size_t rows, size_t cols, kofn_dtype dtype)
{
    if (rows * cols * kf_dtype_size(dtype) > p->capacity)
        return false;
    p->m.rows = rows;
    p->m.cols = p->m.ld = cols;
    p->m.dtype = dtype;
    return true;
}

kf_parcel *kf_parcel_keep(kf_parcel *p)
{
    atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
    return p;
}

void kf_parcel_drop(kf_parcel *p)
{
    if (!p || atomic_fetch_sub(&p->refs, 1) > 1)
        return;
    if (p->of)
        kf_parcel_drop(p->of);
    else if (p->release)
        p->release(p->from, p->own);
    else
        kf_free(p->m.data);
    kf_free(p);
}

kofn_matrix *kf_parcel_matrix(kf_parcel *p)
{
    return &p->m;
}

/* ---- pools --------------------------------------------------------------- */

kofn_status kf_pool_take(kf_pool *pool, size_t rows, size_t cols,
                         kofn_dtype dtype, kf_parcel **out)
{
    for (size_t i = pool->count; i > 0; i--) {
        kf_parcel **p = &pool->parcel[i - 1];

        if (atomic_load(&(*p)->refs) == 1 &&
            kf_parcel_reshape(*p, rows, cols, dtype)) {
            *out = *p;
            *p = pool->parcel[--pool->count];
            return KOFN_OK;
        }
    }
    return kf_parcel_new(out, rows, cols, dtype);
}

void kf_pool_give(kf_pool *pool, kf_parcel *p)
{
    if (!p)
        return;
    if (p->capacity == 0 ||
        kf_grow(&pool->parcel, &pool->cap, pool->count, sizeof *pool->parcel))
        kf_parcel_drop(p);
    else
        pool->parcel[pool->count++] = p;
}

void kf_pool_free(kf_pool *pool)
{
    for (size_t i = 0; i < pool->count; i++)
        kf_parcel_drop(pool->parcel[i]);
    kf_free(pool->parcel);
}
