/* hash.c -- XXH3 as the compiler's own kind of vectors computes it, or AVX2's.
 *
 * Which of the two depends on the processor and the length alone. */
#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define SHORT 1024 /* bytes that wider vectors gain nothing with */

uint64_t kf_hash(uint64_t seed, const void *bytes, size_t n)
{
    return n > SHORT && kf_hash_has_avx2()
               ? kf_hash_avx2(seed, bytes, n)
               : XXH3_64bits_withSeed(bytes, n, seed);
}
