/* heap.h -- entries in order of (time, sequence number).
 *
 * Entries of equal time come out in the order in which they went in.  So a
 * simulated run does not depend on the shape of the heap.
 *
 * The heap owns its array of entries; the owner of the heap frees it.  No
 * function here waits or reads a clock.
 */
#ifndef KF_HEAP_H
#define KF_HEAP_H

#include "base.h"

typedef struct kf_heap_entry {
    kofn_time time;
    uint64_t number;
    uint32_t kind, worker, task;
} kf_heap_entry;

typedef struct kf_heap {
    kf_heap_entry *entry;
    size_t count, cap;
    uint64_t pushed;
} kf_heap;

/* True if a comes out before b. */
static inline bool kf_heap_before(const kf_heap_entry *a,
                                  const kf_heap_entry *b)
{
    return a->time != b->time ? a->time < b->time : a->number < b->number;
}

/* Adds an entry, and sets its number. */
static inline kofn_status kf_heap_push(kf_heap *h, kf_heap_entry e)
{
    size_t i = h->count;

    TRY(kf_grow(&h->entry, &h->cap, h->count, sizeof *h->entry));
    e.number = h->pushed++;
    h->count++;
    while (i > 0 && kf_heap_before(&e, &h->entry[(i - 1) / 2])) {
        h->entry[i] = h->entry[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    h->entry[i] = e;
    return KOFN_OK;
}

/* Takes out the first entry.  The heap must not be empty. */
static inline kf_heap_entry kf_heap_pop(kf_heap *h)
{
    assert(h->count > 0);
    kf_heap_entry top = h->entry[0], last = h->entry[--h->count];
    size_t i = 0;

    for (;;) {
        size_t child = 2 * i + 1;

        if (child >= h->count)
            break;
        if (child + 1 < h->count &&
            kf_heap_before(&h->entry[child + 1], &h->entry[child]))
            child++;
        if (!kf_heap_before(&h->entry[child], &last))
            break;
        h->entry[i] = h->entry[child];
        i = child;
    }
    if (h->count)
        h->entry[i] = last;
    return top;
}

#endif
