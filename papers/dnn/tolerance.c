/* tolerance.c -- computes how many nodes of a training may be faulty
 * (math/training.md 7). */
#include "dnn/dnn.h"

#define MOST                                                                   \
    ((size_t)1 << 20) /* limit of a side or a cut; keeps products small */

/* Computes the answers that suffice: the degree of the product plus one. */
static kofn_status of_code(const dnn_nodes *c, dnn_tolerance *t)
{
    bool uvn = c->kind == DNN_GPD_UVN;
    size_t mn = c->m * c->n;

    t->K[0] = mn * c->cut[0] + (uvn ? c->n - 1 : mn - c->m);
    t->K[1] = mn * c->cut[1] + (uvn ? mn - c->n : c->m - 1);
    for (int i = 0; i < 2; i++) {
        if (c->P < t->K[i] + 1)
            return papers_fail(
                KOFN_TOOFEW,
                "%zu nodes cannot detect an error: decoding needs %zu answers",
                c->P, t->K[i]);
        t->adversarial[i] = (c->P - t->K[i]) / 2;
        t->probabilistic[i] = c->P - t->K[i] - 1;
    }
    return KOFN_OK;
}

/* Sets the limits of a code with `more` answers beyond the ones it needs. */
static void spare(dnn_tolerance *t, size_t more)
{
    for (int i = 0; i < 2; i++) {
        t->adversarial[i] = more / 2;
        t->probabilistic[i] = more ? more - 1 : 0;
    }
}

kofn_status dnn_tolerance_of(const dnn_nodes *c, dnn_tolerance *out)
{
    size_t P = c->P, m = c->m, n = c->n;

    *out = (dnn_tolerance){{0}, {0}, {0}};
    if (m - 1 >= MOST || n - 1 >= MOST || c->cut[0] - 1 >= MOST ||
        c->cut[1] - 1 >= MOST)
        return papers_fail(
            KOFN_INVAL,
            "a grid of %zu x %zu and a batch cut into %zu and %zu: "
            "all are 1 to %zu",
            m, n, c->cut[0], c->cut[1], MOST);
    if (c->kind == DNN_GPD_UVN || c->kind == DNN_GPD_VUM)
        return of_code(c, out);
    if (P < m * n)
        return papers_fail(KOFN_TOOFEW,
                           "%zu nodes are less than a grid of %zu x %zu", P, m,
                           n);
    if (c->kind == DNN_NONE)
        spare(out, 0);
    else if (c->kind == DNN_REPLICATION)
        spare(out, P / (m * n) - 1);
    else /* there are as few parity rows as parity columns */
        spare(out, (P - m * n) / (m + n));
    return KOFN_OK;
}
