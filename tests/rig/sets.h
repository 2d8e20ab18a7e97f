/* sets.h -- makes sets of k of n seats in ascending order. */
#ifndef KF_TEST_SETS_H
#define KF_TEST_SETS_H

#include "base/rng.h"

#include <stdbool.h>

static inline void first_set(uint32_t *set, size_t k)
{
    for (size_t i = 0; i < k; i++)
        set[i] = (uint32_t)i;
}

/* Steps to the next set in lexicographic order. Returns false after the last.
 */
static inline bool next_set(uint32_t *set, size_t k, size_t n)
{
    size_t i = k;

    while (i > 0 && set[i - 1] == n - k + i - 1)
        i--;
    if (i == 0)
        return false;
    set[i - 1]++;
    for (; i < k; i++)
        set[i] = set[i - 1] + 1;
    return true;
}

static inline void random_set(kf_rng *r, uint32_t *set, size_t k, size_t n)
{
    for (size_t i = 0, taken = 0; taken < k; i++)
        if (kf_rng_below(r, n - i) < k - taken)
            set[taken++] = (uint32_t)i;
}

/* Makes the set of k seats at, at + 1, ... in the circle of n. */
static inline void window(uint32_t *set, size_t k, size_t n, size_t at)
{
    for (size_t i = 0, taken = 0; i < n; i++)
        if ((i + n - at) % n < k)
            set[taken++] = (uint32_t)i;
}

/* Makes the set without the window of n-k seats that begins at `at`. */
static inline void without_window(uint32_t *set, size_t k, size_t n, size_t at)
{
    for (size_t i = 0, taken = 0; i < n; i++)
        if ((i + n - at) % n >= n - k)
            set[taken++] = (uint32_t)i;
}

#endif
