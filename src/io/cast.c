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

#include <assert.h>
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

static inline double number(const kf_kind *kind, uint64_t bits)
{
    size_t spare = 64 - 8 * kind->size;

    if (kind->kind == 'u')
        return (double)bits;
    if (kind->kind == 'f')
        return real(bits, kind->size);
    return (double)((int64_t)(bits << spare) >> spare);
}

double kf_io_number(const kf_kind *kind, const unsigned char *p)
{
    return number(kind, kf_io_bits(p, kind->size, kind->big));
}

/* A boolean, or an integer of eight bytes: is it one, and that of float64? */
static kofn_status check(const kf_file *f, const kf_kind *kind, uint64_t bits,
                         size_t i, size_t j)
{
    bool minus = kind->kind == 'i' && bits >> 63;
    char what[120];

    if (minus)
        bits = ~bits + 1; /* its magnitude */
    if (kind->kind == 'b')
        snprintf(what, sizeof what,
                 "the byte %" PRIu64 ", and booleans are 0 or 1; convert with "
                 "a.astype('u1') if they are numbers",
                 bits);
    else if (bits >> __builtin_ctzll(bits) >> 53)
        snprintf(what, sizeof what,
                 "%s%" PRIu64 ", which float64 cannot hold exactly; convert "
                 "with a.astype('<f8') if its neighbour will do",
                 minus ? "-" : "", bits);
    else
        return KOFN_OK;
    return kf_file_odd(f, KOFN_FORMAT, i, j, what);
}

kofn_status kf_io_cast(kf_file *f, const size_t shape[2], kf_kind kind,
                       const unsigned char *from, bool transposed)
{
    size_t rows = shape[0], cols = shape[1];
    size_t down = transposed ? 1 : cols, right = transposed ? rows : 1;
    /* Bits up to here are well. */
    uint64_t sure = kind.kind == 'f'   ? UINT64_MAX
                    : kind.kind == 'b' ? 1
                                       : (uint64_t)1 << 53;
    double *to;

    assert(kind.size > 0);
    assert(kind.size <= sizeof(uint64_t));
    TRY(kf_file_dense(f, rows, cols));
    to = f->owned;
    for (size_t i = 0; i < rows; i++) {
        const unsigned char *p = from + i * down * kind.size;

        for (size_t j = 0; j < cols; j++, p += right * kind.size) {
            uint64_t bits = kf_io_bits(p, kind.size, kind.big);

            *to++ = number(&kind, bits);
            if (bits > sure)
                TRY(check(f, &kind, bits, i, j));
        }
    }
    return KOFN_OK;
}
