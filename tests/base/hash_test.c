/* hash_test.c -- XXH3 for all vector units. */
#include "support.h"

#include "base/hash.h"
#include "base/rng.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define LONG 70000

/* Compares with the hashes of the xxHash library. */
static void same_as_xxhash(void **state)
{
    static unsigned char bytes[LONG + 64];
    kf_rng r = kf_rng_stream(1, KF_FOR_SAMPLE, 2, 3);

    (void)state;
    assert_true(kf_hash(0, NULL, 0) == UINT64_C(0x2d06800538d394c2));
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)kf_rng_u64(&r);
    for (size_t n = 0; n <= LONG; n += n < 1100 ? 1 : 1 + kf_rng_below(&r, 999))
        for (size_t at = 0; at < 64; at += 1 + kf_rng_below(&r, 20)) {
            uint64_t seed = kf_rng_u64(&r);
            uint64_t right = XXH3_64bits_withSeed(bytes + at, n, seed);

            assert_true(kf_hash(seed, bytes + at, n) == right);
            if (kf_hash_has_avx2())
                assert_true(kf_hash_avx2(seed, bytes + at, n) == right);
        }
}

TEST_FILE(hash_test)
{
    const struct CMUnitTest tests[] = {
        TEST(same_as_xxhash,
             "base: XXH3 equals the library's hash (all lengths, alignments)"),
    };

    return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
