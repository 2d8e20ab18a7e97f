/* cast.c -- numbers of any kind as float64: integers, booleans and floats.
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

static double real(uint64_t bits, size_t size)
{
    uint32_t few = (uint32_t)bits;
    double v;
    float x;

    if (size == 2)
        return half(bits);
    memcpy(&v, &bits, sizeof v);
    memcpy(&x, &few, sizeof x);
    return size == 8 ? v : (double)x;
}

double kf_io_number(const kf_kind *kind, const unsigned char *p,
                    char why[KF_WHY])
{
    uint64_t bits = kf_io_bits(p, kind->size, kind->big);
    bool minus = kind->kind == 'i' && bits >> (8 * kind->size - 1);
    double v;

    if (kind->kind == 'f')
        return real(bits, kind->size);
    if (kind->kind == 'b' && bits > 1)
        snprintf(why, KF_WHY,
                 "the byte %" PRIu64 ", and booleans are 0 or 1; convert with "
                 "a.astype('u1') if they are numbers",
                 bits);
    if (minus) /* its magnitude */
        bits = (~bits + 1) & UINT64_MAX >> (64 - 8 * kind->size);
    if (bits && bits >> __builtin_ctzll(bits) >> 53)
        snprintf(why, KF_WHY,
                 "%s%" PRIu64 ", which float64 cannot hold exactly; convert "
                 "with a.astype('<f8') if its neighbour will do",
                 minus ? "-" : "", bits);
    v = (double)bits;
    return minus ? -v : v;
}

kofn_status kf_io_cast(kofn_file *f, const size_t shape[2], const kf_kind *kind,
                       const unsigned char *from, bool transposed)
{
    size_t rows = shape[0], cols = shape[1];
    char why[KF_WHY] = "";

    TRY(kf_file_dense(f, rows, cols));
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++) {
            size_t at = transposed ? j * rows + i : i * cols + j;

            ((double *)f->owned)[i * cols + j] =
                kf_io_number(kind, from + at * kind->size, why);
            if (why[0])
                return kf_file_odd(f, KOFN_FORMAT, i, j, why);
        }
    return KOFN_OK;
}
