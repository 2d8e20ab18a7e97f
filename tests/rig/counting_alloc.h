/* counting_alloc.h -- an allocator that reports how much memory is held, and
 * the most that was held. Any thread may call it. */
#ifndef KF_TEST_COUNTING_ALLOC_H
#define KF_TEST_COUNTING_ALLOC_H

#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>

static atomic_size_t held, most_held;

static inline void *counting_alloc(void *ud, void *p, size_t want)
{
    size_t now, top = atomic_load(&most_held);

    (void)ud;
    if (p)
        atomic_fetch_sub(&held, malloc_usable_size(p));
    free(p);
    p = want ? aligned_alloc(64, (want + 63) / 64 * 64) : NULL;
    if (!p)
        return NULL;
    now =
        atomic_fetch_add(&held, malloc_usable_size(p)) + malloc_usable_size(p);
    while (now > top && !atomic_compare_exchange_weak(&most_held, &top, now))
        ;
    return p;
}

#endif
