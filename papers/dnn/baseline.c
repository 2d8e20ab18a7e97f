/* baseline.c -- runs a whole training of a baseline: replication or two
 * systematic MDS codes of "A unified coded deep neural network training
 * strategy based on generalized PolyDot codes" (Dutta, Bai, Jeong, Low,
 * Grover, 2018); math/training.md 7. */
#include "dnn/baseline.h"

#include <stdlib.h>

/* ---- sizes --------------------------------------------------------------- */

static kofn_status check(const dnn_baseline *b)
{
    const kofn_net_shape *s = &b->l->shape;
    bool softmax = s->loss == KOFN_NET_LOSS_SOFTMAX;

    if (b->nodes.kind != DNN_REPLICATION && b->nodes.kind != DNN_TWO_MDS)
        return papers_fail(KOFN_INVAL,
                           "redundancy %d is no baseline; give replication or "
                           "two MDS codes",
                           (int)b->nodes.kind);
    if (s->activation != KOFN_SIGMOID || s->dtype != KOFN_F64 ||
        (!softmax && (s->output != KOFN_SIGMOID || !s->autoencoder)))
        return papers_fail(KOFN_UNSUITED,
                           "baselines train sigmoids in float64, for labels or "
                           "as an autoencoder");
    return KOFN_OK;
}

static void measure(baseline_train *t)
{
    const dnn_nodes *k = &t->code.nodes;

    for (size_t l = 1; l <= t->l->shape.layers; l++) {
        t->h[l] = ceil_div(t->l->shape.widths[l], k->m);
        t->w[l] = ceil_div(t->l->shape.widths[l - 1] + 1, k->n);
        t->at[l + 1] = t->at[l] + t->h[l] * t->w[l];
        t->longest =
            larger(t->longest, larger(t->h[l], t->w[l]) * t->l->opt.batch);
    }
}

/* ---- the result -----------------------------------------------------------
 */

/* Copies the blocks that were kept last into the network. Both ways have the
 * blocks of the first grid. */
static void read_weights(baseline_train *t)
{
    const baseline_code *c = &t->code;

    for (size_t l = 1; l <= t->l->shape.layers; l++) {
        const kofn_matrix *W = kofn_net_weights(t->net, l);
        size_t h = t->h[l], w = t->w[l];

        for (size_t i = 0; i < W->rows; i++)
            for (size_t j = 0; j < W->cols; j++) {
                size_t node = c->copies
                                  ? baseline_member(c, false, i / h, 0, j / w)
                                  : baseline_member(c, false, 0, i / h, j / w);
                const double *block = t->node[node].kept + t->at[l];

                ((double *)W->data)[i * W->ld + j] = block[i % h * w + j % w];
            }
    }
}

static kofn_status gather(baseline_train *t, dnn_run *out)
{
    size_t faults = 0;
    kofn_score score;

    *out = (dnn_run){.mesh = t->asked->threads ? "threads" : "simulated",
                     .accuracy = NAN,
                     .loss = NAN,
                     .apart = NAN,
                     .did = t->node[0].did};
    for (size_t i = 0; i < t->code.nodes.P; i++)
        faults += t->node[i].did.faults;
    out->did.faults = faults;
    read_weights(t);
    if (!out->did.finished)
        return KOFN_OK;
    PAPERS_TRY(dnn_lesson_score(t->l, t->net, &score));
    out->accuracy = score.accuracy;
    out->loss = score.loss;
    out->apart = dnn_apart(t->net, t->l->plain);
    return KOFN_OK;
}

/* ---- the run --------------------------------------------------------------
 */

static kofn_status train(baseline_train *t, dnn_run *out)
{
    size_t P;

    PAPERS_TRY(baseline_code_new(&t->code, &t->asked->nodes));
    P = t->code.nodes.P;
    PAPERS_TRY(kofn_net_new(&t->net, &t->l->shape, t->l->seed));
    measure(t);
    t->node = calloc(P, sizeof *t->node);
    if (!t->node)
        return KOFN_NOMEM;
    for (size_t i = 0; i < P; i++)
        PAPERS_TRY(baseline_node_new(&t->node[i], t, i));
    PAPERS_TRY(t->carrier->run(t));
    return gather(t, out);
}

kofn_status dnn_baseline_train(const dnn_baseline *b, dnn_run *out,
                               kofn_net **weights)
{
    baseline_train t = {.asked = b,
                        .l = b->l,
                        .carrier = b->threads ? &baseline_threads
                                              : &baseline_simulated};
    kofn_status st = check(b);

    if (!st)
        st = train(&t, out);
    for (size_t i = 0; t.node && i < t.code.nodes.P; i++)
        baseline_node_free(&t.node[i]);
    free(t.node);
    baseline_code_free(&t.code);
    if (!st && weights) {
        *weights = t.net;
        return KOFN_OK;
    }
    kofn_net_free(t.net);
    return st;
}
