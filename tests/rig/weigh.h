/* weigh.h -- an allocator that tells how much memory is held, and how much was
 * at most; any thread may ask for it. */
#ifndef KF_TEST_WEIGH_H
#define KF_TEST_WEIGH_H

#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>

static atomic_size_t held, most;

static inline void *weigh(void *ud, void *p, size_t want)
{
    size_t now, top = atomic_load(&most);

    (void)ud;
    if (p)
        atomic_fetch_sub(&held, malloc_usable_size(p));
    free(p);
    p = want ? aligned_alloc(64, (want + 63) / 64 * 64) : NULL;
    if (!p)
        return NULL;
    now =
        atomic_fetch_add(&held, malloc_usable_size(p)) + malloc_usable_size(p);
    while (now > top && !atomic_compare_exchange_weak(&most, &top, now))
        ;
    return p;
}

#endif
