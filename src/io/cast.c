/* cast.c -- the numbers of a .npy that are neither float64 nor float32, as
 * float64: integers, booleans and half precision.
 *
 * All that have up to 53 bits are exact; a longer integer is refused where
 * float64 has only a neighbour of it.  Half precision becomes float64 as well,
 * since what has been kept in 11 bits is seldom meant to be summed in 24.
 *
 * Writes into the caller's matrix and owns nothing.  A number that float64
 * cannot hold exactly is an error and never rounded in silence.
 */
#include "io.h"

#include <inttypes.h>
#include <stdio.h>

/* The element's bytes as a number without a sign. */
static uint64_t bits_of(const unsigned char *p, size_t size, bool big)
{
    uint64_t x = 0;

    for (size_t i = 0; i < size; i++)
        x = x << 8 | p[big ? i : size - 1 - i];
    return x;
}

/* IEEE 754 binary16: a sign, 5 bits of exponent and 10 of the mantissa. */
static double half(uint64_t bits)
{
    uint64_t sign = bits >> 15 << 63, exponent = bits >> 10 & 31;
    uint64_t mantissa = bits & 1023;
    double v;

    if (exponent == 0) { /* zero, or less than normal */
        v = (double)mantissa / (1 << 24);
        return sign ? -v : v;
    }
    exponent = exponent == 31 ? 2047 : exponent + 1023 - 15;
    bits = sign | exponent << 52 | mantissa << 42;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* The magnitude of a signed integer of `size` bytes. */
static uint64_t magnitude(uint64_t bits, size_t size, bool *minus)
{
    uint64_t top = (uint64_t)1 << (8 * size - 1);

    *minus = bits & top;
    return *minus ? top - (bits & (top - 1)) : bits;
}

static kofn_status place_fail(const kofn_file *f, size_t i, size_t j,
                              const char *what)
{
    if (f->dims == 1)
        return kf_fail(KOFN_FORMAT, "element [%zu] is %s", i, what);
    return kf_fail(KOFN_FORMAT, "element [%zu, %zu] is %s", i, j, what);
}

/* Converts one element; *why gets what is wrong with it and stays "" when
 * nothing is. */
static double element(const kf_npy_kind *kind, const unsigned char *p,
                      char why[120])
{
    uint64_t bits = bits_of(p, kind->size, kind->big);
    bool minus = false;
    double v;

    if (kind->kind == 'f')
        return half(bits);
    if (kind->kind == 'b' && bits > 1)
        snprintf(why, 120,
                 "the byte %" PRIu64 ", and booleans are 0 or 1; convert with "
                 "a.astype('u1') if they are numbers",
                 bits);
    if (kind->kind == 'i')
        bits = magnitude(bits, kind->size, &minus);
    if (bits && bits >> __builtin_ctzll(bits) >> 53)
        snprintf(why, 120,
                 "%s%" PRIu64 ", which float64 cannot hold exactly; convert "
                 "with a.astype('<f8') if its neighbour will do",
                 minus ? "-" : "", bits);
    v = (double)bits;
    return minus ? -v : v;
}

kofn_status kf_npy_cast(kofn_file *f, const kf_npy_kind *kind,
                        const unsigned char *from, bool transposed)
{
    size_t rows = f->dense.rows, cols = f->dense.cols;
    char why[120] = "";

    TRY(kf_file_dense(f, rows, cols));
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++) {
            size_t at = transposed ? j * rows + i : i * cols + j;

            ((double *)f->owned)[i * cols + j] =
                element(kind, from + at * kind->size, why);
            if (why[0])
                return place_fail(f, i, j, why);
        }
    return KOFN_OK;
}
