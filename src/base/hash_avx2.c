/* hash_avx2.c -- XXH3 by AVX2, which is chosen when the program runs.
 *
 * Without AVX2, or a compiler that can use it in one file, kf_hash_has_avx2 is
 * false and the other function is never called. */
#include "base/hash.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
bool kf_hash_has_avx2(void)
{
    return __builtin_cpu_supports("avx2");
}
#pragma GCC target("avx2")
#else
bool kf_hash_has_avx2(void)
{
    return false;
}
#endif

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t kf_hash_avx2(uint64_t seed, const void *bytes, size_t n)
{
    return XXH3_64bits_withSeed(bytes, n, seed);
}
