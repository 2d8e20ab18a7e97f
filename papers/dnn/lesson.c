/* lesson.c -- parts that the trainings of kofn-papers dnn share: points, the
 * training without errors, and trainings with faulty nodes in four ways. The
 * paper has no training. Here kofn's own nodes train on a mesh (mesh.c).
 * baseline.c trains the paper's baselines, which kofn does not have. */
#include "dnn/dnn.h"

#include <stdlib.h>

const char *const dnn_names[DNN_WAYS] = {"uncoded", "coded", "replication",
                                         "two MDS"};

#define EPOCHS 10
#define NODES 12
#define SMALL 7 /* side of the images: 28 x 28 averaged over 4 x 4 */

/* Replaces squares of pixels by their means. */
static kofn_status shrink(kofn_matrix *X)
{
    size_t side = 4 * SMALL;
    double *small = calloc(X->rows, SMALL * SMALL * sizeof *small);

    if (!small)
        return KOFN_NOMEM;
    for (size_t r = 0; r < X->rows; r++)
        for (size_t k = 0; k < side * side; k++)
            small[r * SMALL * SMALL + k / side / 4 * SMALL + k % side / 4] +=
                ((double *)X->data)[r * X->ld + k] / 16;
    free(X->data);
    *X = as_matrix(small, X->rows, SMALL * SMALL);
    return KOFN_OK;
}

/* MNIST has more points; the number of steps stays the same. */
kofn_status dnn_points(const papers_args *a, images *p, unsigned *epochs)
{
    *epochs = (unsigned)papers_runs(a, EPOCHS);
    *p = (images){.X = {.data = NULL}};
    if (a->points)
        return papers_points(a, p);
    if (a->mnist && *epochs > 2)
        *epochs /= 5;
    if (a->mnist)
        return papers_mnist(a, p);
    PAPERS_TRY(images_make(p, 1200, 400, a->seed));
    PAPERS_TRY(shrink(&p->X));
    return shrink(&p->test_X);
}

kofn_status dnn_err_once(const papers_args *a, const dnn_lesson *l, size_t way,
                         double rate, dnn_run *out)
{
    const dnn_baseline b = {.l = l,
                            .nodes = {way == 2 ? DNN_REPLICATION : DNN_TWO_MDS,
                                      NODES,
                                      2,
                                      2,
                                      {1, 1}},
                            .chance = rate,
                            .threads = a->mesh == 2};

    return way < 2 ? dnn_mesh_train(l, way == 1, rate, out)
                   : dnn_baseline_train(&b, out, NULL);
}

kofn_status dnn_learn_plainly(dnn_lesson *l, const images *points,
                              kofn_score *clean)
{
    bool labels = !l->shape.autoencoder;
    kofn_training *t = NULL;
    kofn_status st = kofn_net_new(&l->plain, &l->shape, l->seed);

    l->opt.size = sizeof l->opt;
    l->opt.l2 = 1e-5;
    l->opt.batch = DNN_BATCH;
    l->opt.seed = l->seed;
    l->X = &points->X;
    l->y = labels ? &points->y : NULL;
    l->test_X = &points->test_X;
    l->test_y = labels ? &points->test_y : NULL;
    l->steps = l->opt.epochs * (unsigned)ceil_div(points->X.rows, DNN_BATCH);
    if (!st)
        st = kofn_training_new(&t, l->plain, l->X, l->y, &l->opt);
    if (!st)
        st = kofn_train_plain(t, NULL);
    kofn_training_free(t);
    return st ? st : dnn_lesson_score(l, l->plain, clean);
}

json_t *dnn_run_json(const dnn_run *r, bool loss)
{
    json_t *o = papers_pack("measured:b mesh:s", true, r->mesh);

    json_object_update_new(
        o, papers_pack("apart:f steps:i rollbacks:z faults:z corrected:z "
                       "outvoted:z finished:b",
                       r->apart, r->did.steps, r->did.rollbacks, r->did.faults,
                       r->did.corrected, r->did.outvoted, r->did.finished));
    json_object_update_new(o, loss ? papers_pack("loss:f", r->loss)
                                   : papers_pack("accuracy:f", r->accuracy));
    return o;
}
