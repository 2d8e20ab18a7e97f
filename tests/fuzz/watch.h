/* watch.h -- has what all targets share: a rule that must hold, and an
 * allocator that counts. */
#ifndef KF_FUZZ_WATCH_H
#define KF_FUZZ_WATCH_H

#include <kofn.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Like assert, but NDEBUG does not remove it. */
#define MUST(condition)                                                        \
    do {                                                                       \
        if (!(condition)) {                                                    \
            fprintf(stderr, "%s:%d: %s\n  message: %s\n", __FILE__, __LINE__,  \
                    #condition, kofn_errmsg());                                \
            abort();                                                           \
        }                                                                      \
    } while (0)

static size_t most = SIZE_MAX; /* bytes that may be held at once */
static size_t held;            /* bytes held now */
static long blocks;            /* allocations held now */
static long allocated;         /* allocations since `failing` was set */
static long failing;           /* this allocation fails; 0: none */

static inline void *watching(void *ud, void *p, size_t want)
{
    unsigned char *block;

    (void)ud;
    if (want == 0) {
        if (p) {
            size_t size;

            memcpy(&size, (unsigned char *)p - 64, sizeof size);
            held -= size;
            blocks--;
            free((unsigned char *)p - 64);
        }
        return NULL;
    }
    if (++allocated == failing)
        return NULL;
    held += want;
    blocks++;
    MUST(want <= most && held <= most);
    block = aligned_alloc(64, 64 + (want + 63) / 64 * 64);
    MUST(block);
    memcpy(block, &want, sizeof want);
    return block + 64;
}

static inline void watch_memory(void)
{

    kofn_set_alloc(watching, NULL);
}

#endif
