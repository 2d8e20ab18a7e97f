/* fuzz_cifar.c -- fuzzes CIFAR-10 files. fuzz-iterations: 400000 */
#include "parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kofn_file *f = parse(data, size, "fuzz.bin");
    const kofn_matrix *X, *y;

    if (!f)
        return 0;
    y = f->labels;
    X = f->matrix.dense;
    if (y) {
        MUST(y->rows == X->rows && y->cols == 1 && X->cols == 3072);
        MUST(X->rows * 3073 == size);
        for (size_t i = 0; i < X->rows; i++) {
            MUST(((double *)y->data)[i] == data[i * 3073]);
            MUST(data[i * 3073] < 10);
            MUST(((double *)X->data)[i * 3072 + 3071] == data[i * 3073 + 3072]);
        }
    }
    done(f, data, size, "fuzz.bin");
    return 0;
}
