/* combine_avx512.c -- the dot-product kernel on AVX-512: 8 doubles per vector.
 *
 * Of 32 registers 24 hold sums (6 outputs x 4 vectors), 6 coefficients and one
 * the source.  A group of 4 vectors is whole cache lines, of doubles and of
 * floats.
 *
 * No state and no allocation.  Call it only if kf_combine_avx512 returns it. */
#include "combine.h"

#if KF_COMBINE_X86

#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512vl")))
#define W 8
typedef __m512d vec;

#define INLINE static inline __attribute__((always_inline)) TARGET

INLINE __mmask8 lowest(size_t n)
{
    return (__mmask8)((1u << n) - 1);
}

INLINE vec splat(double x)
{
    return _mm512_set1_pd(x);
}

INLINE vec madd(vec a, vec b, vec c)
{
    return _mm512_fmadd_pd(a, b, c);
}

INLINE vec get(const void *p, bool f32)
{
    return f32 ? _mm512_cvtps_pd(_mm256_loadu_ps(p)) : _mm512_loadu_pd(p);
}

INLINE vec get_some(const void *p, bool f32, size_t n)
{
    if (f32)
        return _mm512_cvtps_pd(_mm256_maskz_loadu_ps(lowest(n), p));
    return _mm512_maskz_loadu_pd(lowest(n), p);
}

INLINE void put(void *p, vec x, bool f32)
{
    if (f32)
        _mm256_storeu_ps(p, _mm512_cvtpd_ps(x));
    else
        _mm512_storeu_pd(p, x);
}

INLINE void put_some(void *p, vec x, bool f32, size_t n)
{
    if (f32)
        _mm256_mask_storeu_ps(p, lowest(n), _mm512_cvtpd_ps(x));
    else
        _mm512_mask_storeu_pd(p, lowest(n), x);
}

INLINE void put_around(void *p, vec x, bool f32)
{
    if (f32)
        _mm256_stream_ps(p, _mm512_cvtpd_ps(x));
    else
        _mm512_stream_pd(p, x);
}

#include "combine_kernel.h"

KERNEL(1, 4)
KERNEL(2, 4)
KERNEL(3, 4)
KERNEL(4, 4)
KERNEL(5, 4)
KERNEL(6, 4)

static void fence(void)
{
    _mm_sfence();
}

static const kf_combine_simd simd = {
    "avx512",
    6,
    fence,
    {{f64_1, f64_2, f64_3, f64_4, f64_5, f64_6},
     {f32_1, f32_2, f32_3, f32_4, f32_5, f32_6},
     {round_1, round_2, round_3, round_4, round_5, round_6}}};

const kf_combine_simd *kf_combine_avx512(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") &&
                   __builtin_cpu_supports("avx512vl")
               ? &simd
               : NULL;
}

#endif
