/* hash.h -- checksums and digests of bytes: XXH3 in 64 bits, as fast as the memory
 * that they lie in.
 *
 * Pure functions, the same on every machine.  They show damage, not malice: who knows
 * the seed finds other bytes of the same hash. */
#ifndef KF_HASH_H
#define KF_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

uint64_t kf_hash(uint64_t seed, const void *bytes, size_t n);

/* The same by wider vectors, where `kf_hash_has_avx2`. */
bool kf_hash_has_avx2(void);
uint64_t kf_hash_avx2(uint64_t seed, const void *bytes, size_t n);

#endif
