/* vectors.h -- functions that are compiled for several vector extensions.
 *
 * The loader chooses the best version that the processor has.  Sanitizers and
 * clang 14 do not support this, and get one version.  There are only attributes
 * here, no code.  A marked function must give the same result on every
 * processor. */
#ifndef KF_VECTORS_H
#define KF_VECTORS_H

/* Marks a function; other attributes may be added. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&         \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define KF_VECTORS(...)                                                        \
    __attribute__((target_clones("avx512f", "avx2", "default"), __VA_ARGS__))
#else
#define KF_VECTORS(...)
#endif

#endif
