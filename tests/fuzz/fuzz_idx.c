/* fuzz_idx.c -- fuzzes IDX files. fuzz-iterations: 4000000 */
#include "parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const size_t width[16] = {
    [8] = 1, [9] = 1, [11] = 2, [12] = 4, [13] = 4, [14] = 8};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kofn_file *f = parse(data, size, "fuzz-ubyte");

    if (!f)
        return 0;
    if (data[0] == 0 && data[1] == 0) {
        const kofn_matrix *a = f->matrix.dense;
        size_t n = a->rows * a->cols, each = width[data[2]];
        const uint8_t *last = data + size - each;

        MUST(4 + 4 * (size_t)data[3] + n * each == size);
        MUST(a->rows == ((size_t)data[4] << 24 | (size_t)data[5] << 16 |
                         (size_t)data[6] << 8 | data[7]));
        MUST((f->dims == 1) == (data[3] == 1));
        if (data[2] == 8)
            MUST(((double *)a->data)[n - 1] == *last);
        if (data[2] == 11)
            MUST(((double *)a->data)[n - 1] ==
                 (int16_t)(uint16_t)(last[0] << 8 | last[1]));
        MUST(!f->labels);
    }
    done(f, data, size, "fuzz-ubyte");
    return 0;
}
