/* fuzz_npy.c -- fuzzes .npy files. fuzz-iterations: 4000000 */
#include "parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Returns a sum over all elements' bits, from bytes in the header's order. */
static uint64_t mixed(const uint8_t *p, size_t count, size_t width, int big)
{
    uint64_t all = 0;

    for (size_t k = 0; k < count; k++) {
        uint64_t x = 0;

        for (size_t b = 0; b < width; b++)
            x = x << 8 | p[k * width + (big ? b : width - 1 - b)];
        all += x * x + x; /* ignores the order, but counts each */
    }
    return all;
}

static int states_big(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i + 1 < size; i++)
        if (data[i] == '>' && (data[i + 1] == 'f' || data[i + 1] == 'c'))
            return 1;
    return 0;
}

/* Returns the letter and digit of a dtype that becomes float64, or blanks. */
static const char *kind_stated(const uint8_t *data, size_t size)
{
    static const char *const all[] = {"f2", "i8", "i4", "i2", "i1", "u8",
                                      "u4", "u2", "u1", "b1", "?'", "?\""};
    size_t at = 0;

    while (at + 16 < size && memcmp(data + at, "descr", 5) != 0)
        at++;
    for (at += 6; at + 2 < size && data[at] != ',' && data[at] != '}'; at++)
        for (size_t k = 0; k < 12; k++)
            if (memcmp(data + at, all[k], 2) == 0)
                return all[k][0] == '?' ? "b1" : all[k];
    return "  ";
}

static double number(char kind, size_t width, uint64_t bits)
{
    int exponent = (int)(bits >> 10 & 31), up = (int)(64 - 8 * width);
    double v;

    if (kind == 'i')
        return (double)((int64_t)(bits << up) >> up);
    if (kind != 'f')
        return (double)bits;
    v = (double)((bits & 1023) + (exponent ? 1024 : 0));
    v = ldexp(v, (exponent ? exponent - 1 : 0) - 24);
    return bits >> 15 ? -v : v;
}

/* Checks that the numbers are the same, in any order. */
static void check_cast(const kofn_matrix *a, const char *kind,
                       const uint8_t *data, size_t size)
{
    size_t n = a->rows * a->cols, width = (size_t)(kind[1] - '0');
    const uint8_t *p = data + size - n * width;
    int big = 0;
    uint64_t all = 0;

    MUST(a->dtype == KOFN_F64 && n * width < size);
    for (const uint8_t *q = data; q < p; q++)
        big |= *q == '>' && q[1] == (uint8_t)kind[0];
    for (size_t k = 0; k < n; k++, p += width) {
        uint64_t bits = 0;
        double v;

        for (size_t b = 0; b < width; b++)
            bits = bits << 8 | p[big ? b : width - 1 - b];
        v = number(kind[0], width, bits);
        memcpy(&bits, &v, sizeof v);
        all += bits * bits + bits;
    }
    MUST(all == mixed(a->data, n, 8, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int host = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
    kofn_file *f = parse(data, size, "fuzz.npy");

    if (f && f->matrix.sparse) {
        done(f, data, size, "fuzz.npy"); /* the banner of another format */
    } else if (f && data[0] == 0x93 && kind_stated(data, size)[0] != ' ') {
        check_cast(f->matrix.dense, kind_stated(data, size), data, size);
        done(f, data, size, "fuzz.npy");
    } else if (f && data[0] == 0x93) {
        const kofn_matrix *a = f->matrix.dense;
        size_t width = a->dtype == KOFN_F32 ? 4 : 8, n = a->rows * a->cols;
        const uint8_t *numbers = data + size - n * width;

        MUST(n * width < size);
        MUST(mixed(numbers, n, width,
                   states_big(data, (size_t)(numbers - data))) ==
             mixed(a->data, n, width, host));
        if (a->cols == 1 || a->rows == 1)
            MUST(mixed(a->data, 1, width, host) ==
                 mixed(numbers, 1, width,
                       states_big(data, (size_t)(numbers - data))));
        done(f, data, size, "fuzz.npy");
    } else if (f) {
        done(f, data, size, "fuzz.npy");
    }
    return 0;
}
