/* tolerance.c -- how many of the nodes that train a network together may compute
 * wrongly (math/training.md 7). */
#include "dnn/tolerance.h"

#define MOST ((size_t)1 << 20) /* of a side, a cut; products stay small */

/* Answers that decode: the degree of what is multiplied, and one. */
static void thresholds(bool uvn, size_t m, size_t n, const size_t cut[2],
                       size_t K[2])
{
    K[0] = m * n * cut[0] + (uvn ? n - 1 : m * n - m);
    K[1] = m * n * cut[1] + (uvn ? m * n - n : m - 1);
}

static kofn_status of_code(bool uvn, size_t P, size_t m, size_t n,
                           const size_t cut[2], dnn_tolerance *t)
{
    thresholds(uvn, m, n, cut, t->K);
    for (int i = 0; i < 2; i++) {
        if (P < t->K[i] + 1)
            return papers_fail(
                KOFN_TOOFEW,
                "%zu nodes do not tell that one of them is wrong: "
                "%zu answers decode",
                P, t->K[i]);
        t->adversarial[i] = (P - t->K[i]) / 2;
        t->probabilistic[i] = P - t->K[i] - 1;
    }
    return KOFN_OK;
}

/* Of a code that has so many more answers than it needs. */
static void spare(dnn_tolerance *t, size_t more)
{
    for (int i = 0; i < 2; i++) {
        t->adversarial[i] = more / 2;
        t->probabilistic[i] = more ? more - 1 : 0;
    }
}

kofn_status dnn_tolerance_of(dnn_redundancy kind, size_t P, size_t m, size_t n,
                             const size_t cut[2], dnn_tolerance *out)
{
    *out = (dnn_tolerance){{0}, {0}, {0}};
    if (m < 1 || n < 1 || m > MOST || n > MOST || cut[0] < 1 || cut[1] < 1 ||
        cut[0] > MOST || cut[1] > MOST)
        return papers_fail(
            KOFN_INVAL,
            "a grid of %zu x %zu and a batch cut into %zu and %zu: "
            "all are 1 to %zu",
            m, n, cut[0], cut[1], MOST);
    if (kind == DNN_GPD_UVN || kind == DNN_GPD_VUM)
        return of_code(kind == DNN_GPD_UVN, P, m, n, cut, out);
    if (P < m * n)
        return papers_fail(KOFN_TOOFEW,
                           "%zu nodes are less than a grid of %zu x %zu", P, m,
                           n);
    if (kind == DNN_NONE)
        spare(out, 0);
    else if (kind == DNN_REPLICATION)
        spare(out, P / (m * n) - 1);
    else /* as many more rows as columns */
        spare(out, (P - m * n) / (m + n));
    return KOFN_OK;
}
