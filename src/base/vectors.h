/* vectors.h -- functions that are compiled for several kinds of vectors, of which
 * the best that the processor has is taken when the program starts.
 *
 * Sanitizers and clang 14 do not go together with that.
 *
 * Only attributes, no code: a function so marked may not behave differently on
 * any processor. */
#ifndef KF_VECTORS_H
#define KF_VECTORS_H

/* With other attributes, or none. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&         \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define KF_VECTORS(...)                                                        \
    __attribute__((target_clones("avx512f", "avx2", "default"), __VA_ARGS__))
#else
#define KF_VECTORS(...)
#endif

#endif
