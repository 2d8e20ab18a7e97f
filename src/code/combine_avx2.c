/* combine_avx2.c -- the dot-product kernel on AVX2 and FMA: 4 doubles per
 * vector.
 *
 * Of 16 registers 12 hold sums (3 outputs x 4 vectors), 3 coefficients and one
 * the source.  In cache, 4 outputs by 2 vectors are a little slower.  If memory
 * is the limit, they are faster than 2 outputs twice.
 *
 * No state and no allocation.  Call it only if kf_combine_avx2 returns it: the
 * processor then has both. */
#include "combine.h"

#if KF_COMBINE_X86

#include <immintrin.h>

#define TARGET __attribute__((target("avx2,fma")))
#define W 4
typedef __m256d vec;

#define INLINE static inline __attribute__((always_inline)) TARGET

/* Returns a mask with all ones in the first n of four places. */
INLINE __m128i lowest32(size_t n)
{
    return _mm_cmpgt_epi32(_mm_set1_epi32((int)n), _mm_setr_epi32(0, 1, 2, 3));
}

INLINE __m256i lowest64(size_t n)
{
    return _mm256_cvtepi32_epi64(lowest32(n));
}

INLINE vec splat(double x)
{
    return _mm256_set1_pd(x);
}

INLINE vec madd(vec a, vec b, vec c)
{
    return _mm256_fmadd_pd(a, b, c);
}

INLINE vec get(const void *p, bool f32)
{
    return f32 ? _mm256_cvtps_pd(_mm_loadu_ps(p)) : _mm256_loadu_pd(p);
}

INLINE vec get_some(const void *p, bool f32, size_t n)
{
    if (f32)
        return _mm256_cvtps_pd(_mm_maskload_ps(p, lowest32(n)));
    return _mm256_maskload_pd(p, lowest64(n));
}

INLINE void put(void *p, vec x, bool f32)
{
    if (f32)
        _mm_storeu_ps(p, _mm256_cvtpd_ps(x));
    else
        _mm256_storeu_pd(p, x);
}

INLINE void put_some(void *p, vec x, bool f32, size_t n)
{
    if (f32)
        _mm_maskstore_ps(p, lowest32(n), _mm256_cvtpd_ps(x));
    else
        _mm256_maskstore_pd(p, lowest64(n), x);
}

INLINE void put_around(void *p, vec x, bool f32)
{
    if (f32)
        _mm_stream_ps(p, _mm256_cvtpd_ps(x));
    else
        _mm256_stream_pd(p, x);
}

#include "combine_kernel.h"

KERNEL(1, 4)
KERNEL(2, 4)
KERNEL(3, 4)
KERNEL(4, 2)

static void fence(void)
{
    _mm_sfence();
}

static const kf_combine_simd simd = {"avx2",
                                     4,
                                     fence,
                                     {{f64_1, f64_2, f64_3, f64_4},
                                      {f32_1, f32_2, f32_3, f32_4},
                                      {round_1, round_2, round_3, round_4}}};

const kf_combine_simd *kf_combine_avx2(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")
               ? &simd
               : NULL;
}

#endif
