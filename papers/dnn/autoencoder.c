/* autoencoder.c -- trains a sparse autoencoder on faulty nodes, coded and
 * uncoded. The code is that of "A unified coded deep neural network training
 * strategy based on generalized PolyDot codes" (Dutta, Bai, Jeong, Low,
 * Grover, 2018); math/training.md 7. */
#include "dnn/dnn.h"

/* Trains images to a third of their size and back, with the sparse cost of
 * F.11. */
static kofn_status train(const papers_args *a, const images *points,
                         unsigned epochs, json_t *list)
{
    size_t n = points->X.cols, widths[] = {n, n < 100 ? n / 3 : 64, n};
    kofn_score clean = {0};
    dnn_lesson l = {.shape = {.size = sizeof l.shape,
                              .layers = 2,
                              .widths = widths,
                              .output = KOFN_SIGMOID,
                              .loss = KOFN_NET_LOSS_SQUARES,
                              .autoencoder = true,
                              .sparsity = 0.1,
                              .sparsity_weight = 0.1},
                    .opt = {.step = 0.5, .epochs = epochs},
                    .seed = a->seed};
    json_t *runs = json_object();
    bool ok = false;
    kofn_status st = dnn_learn_plainly(&l, points, &clean);

    for (size_t way = 0; way < DNN_WAYS && !st; way++) {
        dnn_run run;

        st = dnn_err_once(a, &l, way, DNN_RATE, &run);
        if (!st)
            json_object_set_new(runs, dnn_names[way], dnn_run_json(&run, true));
        if (!st && way == 1)
            ok = run.did.finished && run.apart < 1e-8;
    }
    if (!st)
        papers_add(list, "scenario:i widths:p q:f clean_loss:f runs:o ok:b", 3,
                   widths, DNN_RATE, clean.loss, json_incref(runs), ok);
    json_decref(runs);
    kofn_net_free(l.plain);
    return st;
}

static kofn_status run(const papers_args *a, size_t k, json_t *list)
{
    unsigned epochs;
    images p;
    kofn_status st = dnn_points(a, &p, &epochs);

    (void)k;
    if (!st)
        st = train(a, &p, epochs, list);
    images_free(&p);
    return st;
}

static void tell(json_t *o)
{
    papers_print(o, "sparse autoencoder {widths.0}-{widths.1}-{widths.0}, q = "
                    "{q}: without errors a loss of {clean_loss:.4f}\n");
    printf("way          measured on       loss  rollbacks  corrected      "
           "apart\n");
    papers_each(papers_at(o, "runs"),
                "{@:-12} {mesh:-11} {loss:10.4g} {rollbacks:10} "
                "{corrected:10} {apart:10.1e}\n");
    papers_print(o,
                 "coded weights within 1e-8 of the error-free weights {ok}\n");
}

const papers_scenario dnn_autoencoder = {run, tell, NULL};
