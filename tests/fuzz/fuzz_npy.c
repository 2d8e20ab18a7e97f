/* fuzz_npy.c -- .npy from a stranger.  fuzz-iterations: 4000000 */
#include "parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* All elements' bits together, from bytes in the order the header tells. */
static uint64_t mixed(const uint8_t *p, size_t count, size_t width, int big)
{
    uint64_t all = 0;

    for (size_t k = 0; k < count; k++) {
        uint64_t x = 0;

        for (size_t b = 0; b < width; b++)
            x = x << 8 | p[k * width + (big ? b : width - 1 - b)];
        all += x * x + x; /* no order, but counts each */
    }
    return all;
}

static int says_big(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i + 1 < size; i++)
        if (data[i] == '>' && data[i + 1] == 'f')
            return 1;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int host = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
    kofn_file *f = parse(data, size, "fuzz.npy");

    if (f && kofn_file_sparse(f)) {
        done(f, data, size, "fuzz.npy"); /* the banner of another format */
    } else if (f && data[0] == 0x93) {
        const kofn_matrix *a = kofn_file_dense(f);
        size_t width = a->dtype == KOFN_F32 ? 4 : 8, n = a->rows * a->cols;
        const uint8_t *numbers = data + size - n * width;

        MUST(n * width < size);
        MUST(mixed(numbers, n, width,
                   says_big(data, (size_t)(numbers - data))) ==
             mixed(a->data, n, width, host));
        if (a->cols == 1 || a->rows == 1)
            MUST(mixed(a->data, 1, width, host) ==
                 mixed(numbers, 1, width,
                       says_big(data, (size_t)(numbers - data))));
        done(f, data, size, "fuzz.npy");
    } else if (f) {
        done(f, data, size, "fuzz.npy");
    }
    return 0;
}
