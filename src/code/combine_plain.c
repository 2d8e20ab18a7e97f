/* combine_plain.c -- the dot-product kernel without instructions of any
 * particular processor.  The other kernels are tested against it.
 *
 * The compiler provides vectors of two doubles: SSE2, NEON, or plain doubles.
 * C has no non-temporal stores.
 *
 * No state and no allocation; it runs everywhere. */
#include "combine.h"

#define TARGET
#define INLINE static inline __attribute__((always_inline))
#define W 2
typedef double vec __attribute__((vector_size(16)));
typedef vec loose __attribute__((aligned(1), may_alias)); /* in memory */

INLINE vec splat(double x)
{
    return (vec){x, x};
}

INLINE vec madd(vec a, vec b, vec c)
{
    return a * b + c;
}

INLINE double one(const void *p, bool f32)
{
    float narrow;
    double x;

    if (!f32) {
        memcpy(&x, p, sizeof x);
        return x;
    }
    memcpy(&narrow, p, sizeof narrow);
    return (double)narrow;
}

INLINE void put_one(void *p, double x, bool f32)
{
    float narrow = (float)x;

    if (f32)
        memcpy(p, &narrow, sizeof narrow);
    else
        memcpy(p, &x, sizeof x);
}

INLINE vec get(const void *p, bool f32)
{
    if (f32)
        return (vec){one(p, true), one((const char *)p + sizeof(float), true)};
    return *(const loose *)p;
}

INLINE void put(void *p, vec x, bool f32)
{
    if (f32) {
        put_one(p, x[0], true);
        put_one((char *)p + sizeof(float), x[1], true);
    } else {
        *(loose *)p = x;
    }
}

INLINE vec get_some(const void *p, bool f32, size_t n)
{
    return n == W ? get(p, f32) : splat(one(p, f32));
}

INLINE void put_some(void *p, vec x, bool f32, size_t n)
{
    if (n == W)
        put(p, x, f32);
    else
        put_one(p, x[0], f32);
}

#define put_around put

#include "combine_kernel.h"

KERNEL(1, 4)
KERNEL(2, 4)
KERNEL(3, 4)
KERNEL(4, 2)

static void nothing(void)
{
}

const kf_combine_simd *kf_combine_plain(void)
{
    static const kf_combine_simd simd = {
        "plain",
        4,
        nothing,
        {{f64_1, f64_2, f64_3, f64_4},
         {f32_1, f32_2, f32_3, f32_4},
         {round_1, round_2, round_3, round_4}}};

    return &simd;
}
