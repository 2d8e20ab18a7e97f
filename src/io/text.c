/* text.c -- numbers and lines in text.
 *
 * Numbers of up to 19 significant digits, with a power of ten between -27 and
 * 27, are converted here: w 10^q = w 5^q 2^q.  w and 5^|q| fit in 64 bits each.
 * So one 128-bit product, or quotient with remainder, decides the rounding
 * exactly.  kf_read_real converts all other numbers, as digits without a point.
 *
 * Owns nothing and allocates nothing.  The locale changes neither reading nor
 * writing.
 */
#include "text.h"

#include "base/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

__extension__ typedef unsigned __int128 wide;

/* ---- lines --------------------------------------------------------------- */

kf_text kf_io_text(const void *data, size_t length)
{
    const char *p = data, *end = p + length;

    if (length >= KF_BOM_BYTES && !memcmp(p, KF_BOM, KF_BOM_BYTES))
        p += KF_BOM_BYTES;
    return (kf_text){p, p, end, 1};
}

void kf_io_skip_line(kf_text *t)
{
    const char *n = memchr(t->at, '\n', (size_t)(t->end - t->at));

    t->at = n ? n : t->end;
}

bool kf_io_next_line(kf_text *t, char comment)
{
    for (;;) {
        kf_skip_blanks(t);
        if (t->at < t->end && *t->at == comment)
            kf_io_skip_line(t);
        if (!kf_at_line_end(t))
            return true;
        t->at += t->at < t->end && *t->at == '\r';
        if (t->at == t->end)
            return false;
        t->at++;
        t->line++;
    }
}

/* ---- decimal to binary --------------------------------------------------- */

#define EXACT 27  /* 5^27 < 2^63 < 5^28 */
#define DIGITS 19 /* 10^19 < 2^64 */

/* Four powers of five, from x on. */
#define FOUR(x) (x), 5 * (x), 25 * (x), 125 * (x)
static const uint64_t five[EXACT + 1] = {
    FOUR(UINT64_C(1)),
    FOUR(UINT64_C(625)),
    FOUR(UINT64_C(390625)),
    FOUR(UINT64_C(244140625)),
    FOUR(UINT64_C(152587890625)),
    FOUR(UINT64_C(95367431640625)),
    FOUR(UINT64_C(59604644775390625)),
};

/* 2^e for -1022 <= e <= 1023. */
static double power_of_two(int e)
{
    uint64_t bits = (uint64_t)(e + 1023) << 52;
    double v;

    memcpy(&v, &bits, sizeof v);
    return v;
}

/* w 10^q rounded to nearest, ties to even; w != 0, |q| <= EXACT.  `m` holds
 * the leading 64 bits of the result, `rest` whether anything follows them. */
static double scale(uint64_t w, int q)
{
    int up = __builtin_clzll(w), e = q - up;
    uint64_t m, f = five[q < 0 ? -q : q];
    int fup = __builtin_clzll(f);
    bool rest;

    w <<= up;
    f <<= fup;
    if (q >= 0) {
        wide product = (wide)w * f;
        int gap = !(product >> 127);

        product <<= gap;
        m = (uint64_t)(product >> 64);
        rest = (uint64_t)product != 0;
        e += 64 - gap - fup;
    } else {
        /* w < 2 f, so that the quotient stays below 2^64; it is at least
         * 2^62, and 54 bits of it would do. */
        wide top = (wide)w << 63;
        int gap;

        m = (uint64_t)(top / f);
        rest = top % f != 0;
        gap = !(m >> 63);
        m <<= gap;
        e += fup - 63 - gap;
    }
    uint64_t low = m & 0x7ff, kept = m >> 11;
    kept += low > 0x400 || (low == 0x400 && (rest || kept % 2));
    return (double)kept * power_of_two(e + 11);
}

/* A number in text: its significant digits are from .. to - 1, with at most one
 * point. */
typedef struct decimal {
    const char *from, *to;
    uint64_t w;    /* the digits' value when they are few */
    size_t digits; /* significant ones */
    int64_t q;     /* the last digit counts 10^q */
    bool any;
} decimal;

/* Reads digits.  w is not used if there are more than DIGITS. */
KF_WRAPS
static const char *take_digits(const char *p, const char *end, decimal *d)
{
    const char *first = p;

    if (d->digits == 0) {
        while (p < end && *p == '0')
            p++;
        if (p < end && kf_is_digit(*p))
            d->from = p;
    }
    for (; p < end && kf_is_digit(*p); p++) {
        d->w = d->w * 10 + (uint64_t)(*p - '0');
        d->digits++;
    }
    d->any |= p > first;
    return p;
}

/* The power behind e or E; stays put when no digit follows. */
static const char *take_power(const char *p, const char *end, decimal *d)
{
    const char *q = p + 1;
    bool minus = q < end && *q == '-';
    int64_t power = 0;

    q += q < end && (*q == '-' || *q == '+');
    if (q == end || !kf_is_digit(*q))
        return p;
    /* Capped where no count of digits in a real file can bring it back. */
    for (; q < end && kf_is_digit(*q); q++)
        if (power < 1000000000000000)
            power = power * 10 + (*q - '0');
    d->q += minus ? -power : power;
    return q;
}

/* Two doubles that follow each other have a midpoint of at most 767
 * significant digits, so of more only whether they are zero matters. */
#define ENOUGH 800

static double ask_library(const decimal *d)
{
    char text[ENOUGH + 32];
    size_t n = 0, left = d->digits;
    const char *p = d->from;
    int64_t q = d->q;

    for (; p < d->to && n < ENOUGH; p++)
        if (kf_is_digit(*p)) {
            text[n++] = *p;
            left--;
        }
    q += (int64_t)left;
    for (; p < d->to; p++)
        if (*p > '0') {
            text[n++] = '1';
            q--;
            break;
        }
    q = q > 99999 ? 99999 : q < -99999 ? -99999 : q;
    snprintf(text + n, sizeof text - n, "e%d", (int)q);
    return kf_read_real(text, NULL);
}

bool kf_io_alike(const char *p, const char *q, size_t n)
{
    while (n && kf_small(*p) == kf_small(*q))
        p++, q++, n--;
    return n == 0;
}

bool kf_io_is_word(const char *p, const char *end, const char *word)
{
    size_t n = strlen(word);

    return (size_t)(end - p) == n && kf_io_alike(p, word, n);
}

static kf_scan scan_word(const char *p, const char *end, const char **next)
{
    static const char *const words[] = {"nan", "infinity", "inf"};

    for (size_t i = 0; i < 3; i++) {
        size_t n = strlen(words[i]);

        if ((size_t)(end - p) < n || !kf_io_alike(p, words[i], n))
            continue;
        *next = p + n;
        return KF_NAN;
    }
    *next = p;
    return KF_WORD;
}

/* Reads one number.  Up to DIGITS digits and a power within EXACT are
 * converted here, correctly rounded; all others are left to kf_read_real. */
static inline kf_scan scan(const char *p, const char *end, const char **next,
                           bool fortran, double *value)
{
    decimal d = {0};
    bool minus = p < end && *p == '-';
    double v = 0;

    p += p < end && (*p == '-' || *p == '+');
    p = take_digits(p, end, &d);
    if (p < end && *p == '.') {
        const char *point = p++;

        p = take_digits(p, end, &d);
        d.q = -(int64_t)(p - point - 1);
    }
    if (!d.any)
        return scan_word(p, end, next);
    d.to = p;
    if (p < end && ((*p | 0x20) == 'e' || (fortran && (*p | 0x20) == 'd')))
        p = take_power(p, end, &d);
    *next = p;
    if (d.digits > DIGITS || d.q < -EXACT || d.q > EXACT)
        v = d.digits ? ask_library(&d) : 0;
    else if (d.w)
        v = scale(d.w, (int)d.q);
    *value = minus ? -v : v;
    return isinf(v) ? KF_TOO_LARGE : KF_NUMBER;
}

kf_scan kf_scan_number(const char *p, const char *end, const char **next,
                       double *value)
{
    return scan(p, end, next, false, value);
}

kf_scan kf_scan_fortran(const char *p, const char *end, const char **next,
                        double *value)
{
    return scan(p, end, next, true, value);
}

/* ---- for messages -------------------------------------------------------- */

const char *kf_io_show(char shown[KF_SHOWN], const char *p, const char *end)
{
    size_t n = 0;

    for (; p < end; p++) {
        unsigned char c = (unsigned char)*p;

        if (n > KF_SHOWN - 9) {
            memcpy(shown + n, "...", 3);
            n += 3;
            break;
        }
        if (c >= ' ' && c < 0x7f)
            shown[n++] = (char)c;
        else
            n += (size_t)snprintf(shown + n, 5, "\\x%02x", c);
    }
    shown[n] = 0;
    return shown;
}

const char *kf_io_show_word(char shown[KF_SHOWN], const char *p,
                            const char *end)
{
    const char *to = p;

    while (!kf_line_ends(to, end) && !kf_is_blank(*to))
        to++;
    return kf_io_show(shown, p, to);
}

/* ---- binary to decimal --------------------------------------------------- */

size_t kf_io_print_number(char out[KF_DIGITS], double v, bool single)
{
    int least = single ? 6 : 15, most = single ? 9 : 17;
    size_t n = 0;

    if (isnan(v))
        return (size_t)snprintf(out, KF_DIGITS, "nan");
    for (int digits = least; digits <= most; digits++) {
        const char *end;
        double back = 0;

        n = (size_t)kf_format(out, KF_DIGITS, "%.*g", digits, v);
        if (isinf(v))
            break;
        /* %.15g of the largest double may exceed it. */
        if (kf_scan_number(out, out + n, &end, &back) != KF_NUMBER)
            continue;
        if (single ? (float)back == (float)v : back == v)
            break;
    }
    return n;
}
