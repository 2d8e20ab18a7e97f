/* hash.h -- checksums and digests of bytes: XXH3 with 64 bits, as fast as
 * memory.
 *
 * The functions are pure and give the same number on every machine.  They show
 * damage, not malice: with the seed, other bytes of the same hash can be found.
 */
#ifndef KF_HASH_H
#define KF_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the hash of n bytes. */
uint64_t kf_hash(uint64_t seed, const void *bytes, size_t n);

/* Returns the same number by wider vectors, if kf_hash_has_avx2 is true. */
bool kf_hash_has_avx2(void);
uint64_t kf_hash_avx2(uint64_t seed, const void *bytes, size_t n);

#endif
