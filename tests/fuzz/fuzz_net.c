/* fuzz_net.c -- fuzzes the requests that a worker gets for a network.
 * fuzz-iterations: 300000 */
#include "watch.h"

#include "learn/net.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The first bytes give the rows and columns of the worker and the length of
 * the answer. The others are the round's input. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static double X[8 * 16], y[8];
    kofn_rows part = {{X, 0, 0, 0, KOFN_F64}, y, 0};
    kofn_matrix in = {NULL, 0, 1, 1, KOFN_F64}, out = in;

    if (size < 4)
        return 0;
    part.X.rows = data[0] % 9;
    part.X.cols = part.X.ld = 1 + data[1] % 16;
    part.first = data[2] % 4;
    out.rows = 1 + data[3];
    for (size_t i = 0; i < 8; i++)
        y[i] = (double)(i % 3);
    for (size_t i = 0; i < 8 * 16; i++)
        X[i] = (double)(i % 7) / 4;
    in.rows = (size - 4) / 8;
    in.data = malloc(in.rows * 8 + 1); /* exact size: no more may be read */
    out.data = malloc(out.rows * 8);
    MUST(in.data && out.data);
    memcpy(in.data, data + 4, in.rows * 8);
    watch_memory();
    most = (size_t)1 << 24;
    allocated = 0;
    if (kf_train_formula(NULL, &part, &in, &out) == KOFN_OK) {
        const double *last = (double *)out.data + out.rows - KF_SUM_EXTRA;

        MUST(out.rows > KF_SUM_EXTRA);
        MUST(last[2] >= 0 && last[2] <= 1 + 1e-12);
        MUST(last[1] >= 0 && last[1] <= last[2]); /* right ones, out of all */
    }
    MUST(blocks == 0 && held == 0);
    free(in.data);
    free(out.data);
    return 0;
}
