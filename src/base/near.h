/* near.h -- the word of a list that is nearest to a mistyped one, by the number
 * of letters to insert, delete, replace or swap (Damerau 1964, restricted). */
#ifndef KF_BASE_NEAR_H
#define KF_BASE_NEAR_H

#include <stddef.h>

#define KF_NEAR_MOST 32 /* longer words are near no other */

typedef struct kf_near {
    const char *word; /* as it was typed; not ended by 0 */
    size_t length;
    const char *best; /* NULL: none is near enough */
    size_t best_length, distance;
} kf_near;

static inline size_t kf_near_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Returns the distance of two words. */
static inline size_t kf_near_distance(const char *a, size_t m, const char *b,
                                      size_t n)
{
    size_t row[3][KF_NEAR_MOST + 1] = {{0}};

    for (size_t j = 0; j <= n; j++)
        row[0][j] = j;
    for (size_t i = 1; i <= m; i++) {
        size_t *now = row[i % 3], *last = row[(i + 2) % 3],
               *before = row[(i + 1) % 3];

        now[0] = i;
        for (size_t j = 1; j <= n; j++) {
            now[j] = kf_near_least(last[j - 1] + (a[i - 1] != b[j - 1]),
                                   kf_near_least(last[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = kf_near_least(now[j], before[j - 2] + 1);
        }
    }
    return row[m % 3][n];
}

/* Keeps a word of the list if it is nearer than those before: at most a third
 * of the letters differ, or one. */
static inline void kf_near_try(kf_near *k, const char *word, size_t n)
{
    size_t d, limit = k->length < 6 ? 1 : k->length / 3;

    if (k->length < 2 || k->length > KF_NEAR_MOST || n > KF_NEAR_MOST)
        return;
    d = kf_near_distance(k->word, k->length, word, n);
    if (d > limit || (k->best && d >= k->distance))
        return;
    k->best = word;
    k->best_length = n;
    k->distance = d;
}

#endif
