/* dnn.c -- training on coded weights under soft errors, and how many nodes may be
 * wrong ("A unified coded deep neural network training strategy based on generalized
 * PolyDot codes", Dutta, Bai, Jeong, Low, Grover, 2018; math/training.md 7).
 *
 * The paper has tables of what is stood and a figure of them, and no training; here
 * the nodes of a mesh train, and what kofn does not have is counted.
 */
#include "dnn/dnn.h"

#include <stdlib.h>
#include <string.h>

const char *const dnn_names[DNN_WAYS] = {"uncoded", "coded", "replication",
                                         "two MDS"};
const double dnn_rates[DNN_RATES] = {0.001, 0.005, 0.02};

/* ---- Tables I and III ------------------------------------------------------ */

static const dnn_redundancy table_kinds[DNN_KINDS] = {
    DNN_GPD_UVN, DNN_GPD_VUM, DNN_REPLICATION, DNN_TWO_MDS};
const char *const dnn_kinds[DNN_KINDS] = {"gpd u=v^n", "gpd v=u^m",
                                          "replication", "two MDS"};

/* Those of Table I have a batch in one part. */
static const dnn_table tables[DNN_TABLES] = {
    {.P = 12, .m = 2, .n = 2, .cut = {1, 1}},
    {.P = 18, .m = 3, .n = 2, .cut = {1, 1}},
    {.P = 27, .m = 3, .n = 3, .cut = {1, 1}},
    {.P = 16, .m = 2, .n = 2, .cut = {2, 1}},
    {.P = 24, .m = 2, .n = 3, .cut = {1, 2}},
};

static bool as_published(const dnn_tried *got, const dnn_tolerance *t)
{
    bool same = got->declared;

    for (size_t back = 0; back < 2; back++)
        same = same && got->adversarial[back] == t->adversarial[back] &&
               got->probabilistic[back] == t->probabilistic[back];
    return same;
}

kofn_status dnn_limits(size_t trials, uint64_t seed, dnn_table out[DNN_TABLES])
{
    for (size_t i = 0; i < DNN_TABLES; i++) {
        dnn_table *t = &out[i];

        *t = tables[i];
        for (size_t k = 0; k < DNN_KINDS; k++) {
            const dnn_nodes c = {
                table_kinds[k], t->P, t->m, t->n, {t->cut[0], t->cut[1]}};

            PAPERS_TRY(dnn_tolerance_of(&c, &t->published[k]));
            PAPERS_TRY(dnn_tolerance_try(&c, trials, seed, &t->got[k]));
            t->ok[k] = as_published(&t->got[k], &t->published[k]);
        }
    }
    return KOFN_OK;
}

/* ---- Corollary 1 and Fig. 8 ------------------------------------------------- */

/* m = n = sqrt(P/4); forward, lies of any kind, and without rounding down. */
kofn_status dnn_corollary(dnn_growth out[DNN_GROWTH])
{
    size_t P = 64;

    for (size_t i = 0; i < DNN_GROWTH; i++, P *= 4) {
        size_t m = (size_t)(sqrt((double)P / 4) + 0.5);
        double all = (double)P, side = (double)m, mn = side * side;
        dnn_tolerance t;
        double coded;

        PAPERS_TRY(
            dnn_tolerance_of(&(dnn_nodes){DNN_GPD_UVN, P, m, m, {1, 1}}, &t));
        coded = (all - (double)t.K[0]) / 2;
        out[i].P = P;
        out[i].by_replication = coded / ((all / mn - 1) / 2) / all;
        out[i].by_two_mds =
            coded / (((all + mn) / 2 - mn) / (2 * side)) / sqrt(all);
    }
    return KOFN_OK;
}

kofn_status dnn_figure8(size_t m, size_t n, dnn_figure out[DNN_POINTS])
{
    static const dnn_redundancy kinds[3] = {DNN_GPD_UVN, DNN_REPLICATION,
                                            DNN_TWO_MDS};

    for (size_t i = 0; i < DNN_POINTS; i++) {
        out[i].P = 10 * (i + 1);
        for (size_t k = 0; k < 3; k++) {
            dnn_tolerance t;
            kofn_status st = dnn_tolerance_of(
                &(dnn_nodes){kinds[k], out[i].P, m, n, {1, 1}}, &t);

            if (st && st != KOFN_TOOFEW)
                return st;
            out[i].adversarial[k] = st ? 0 : t.adversarial[0];
            out[i].probabilistic[k] = st ? 0 : t.probabilistic[0];
        }
    }
    return KOFN_OK;
}

/* ---- trainings ---------------------------------------------------------------- */

#define BATCH 20
#define STEP 2
#define DECAY 1e-5
#define NODES 12
#define SMALL 7 /* images of 28 x 28 in squares of 4 x 4 */

/* Means over squares. */
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

kofn_status dnn_points_make(images *p, uint64_t seed)
{
    kofn_status st = images_make(p, 1200, 400, seed);

    if (!st)
        st = shrink(&p->X);
    return st ? st : shrink(&p->test_X);
}

static kofn_status counted(const dnn_lesson *l, dnn_redundancy kind,
                           double rate, const kofn_score *clean, dnn_run *out)
{
    kofn_status st =
        dnn_count(l, &(dnn_nodes){kind, NODES, 2, 2, {1, 1}}, rate, &out->did);

    out->accuracy = out->did.finished ? clean->accuracy : (double)NAN;
    out->loss = out->did.finished ? clean->loss : (double)NAN;
    out->apart = NAN;
    return st;
}

/* In the order of dnn_names. */
static kofn_status err_once(const dnn_lesson *l, size_t way, double rate,
                            const kofn_score *clean, dnn_run *out)
{
    return way < 2 ? dnn_mesh_train(l, way == 1, rate, out)
                   : counted(l, way == 2 ? DNN_REPLICATION : DNN_TWO_MDS, rate,
                             clean, out);
}

/* l->plain is to be freed, after a failure, too. */
static kofn_status learn_plainly(dnn_lesson *l, const images *points,
                                 kofn_score *clean)
{
    bool labels = !l->shape.autoencoder;
    kofn_training *t = NULL;
    kofn_status st = kofn_net_new(&l->plain, &l->shape, l->seed);

    l->X = &points->X;
    l->y = labels ? &points->y : NULL;
    l->test_X = &points->test_X;
    l->test_y = labels ? &points->test_y : NULL;
    l->steps = l->opt.epochs * (unsigned)ceil_div(points->X.rows, BATCH);
    if (!st)
        st = kofn_training_new(&t, l->plain, l->X, l->y, &l->opt);
    if (!st)
        st = kofn_train_plain(t, NULL);
    kofn_training_free(t);
    return st ? st : dnn_lesson_score(l, l->plain, clean);
}

static void judge(dnn_soft *s)
{
    for (size_t q = 0; q < DNN_RATES; q++) {
        bool same = true, lost = true, fewest = true;

        for (size_t k = 0; k < s->seeds; k++) {
            const dnn_run *run = s->run[q][k];

            same = same && run[1].did.finished &&
                   fabs(run[1].accuracy - s->clean[k]) <= DNN_BAND &&
                   run[1].apart < 1e-8;
            lost = lost && run[0].accuracy < 0.5;
            fewest = fewest && run[1].did.rollbacks <= run[2].did.rollbacks &&
                     run[1].did.rollbacks <= run[3].did.rollbacks;
        }
        s->same[q] = same;
        s->lost[q] = lost;
        s->fewest[q] = fewest;
    }
}

kofn_status dnn_soft_errors(const images *points, unsigned epochs, size_t seeds,
                            uint64_t seed, dnn_soft *out)
{
    size_t widths[] = {points->X.cols, 32, 32, 10};
    kofn_status st = KOFN_OK;

    memset(out, 0, sizeof *out);
    out->seeds = seeds;
    out->points = points->X.rows;
    out->pixels = points->X.cols;
    for (size_t k = 0; k < seeds && !st; k++) {
        kofn_score clean = {0};
        dnn_lesson l = {
            .shape = {.size = sizeof l.shape, .layers = 3, .widths = widths},
            .opt = {.size = sizeof l.opt,
                    .step = STEP,
                    .l2 = DECAY,
                    .batch = BATCH,
                    .epochs = epochs,
                    .seed = seed + k},
            .seed = seed + k};

        st = learn_plainly(&l, points, &clean);
        out->clean[k] = clean.accuracy;
        for (size_t i = 0; i < DNN_RATES * DNN_WAYS && !st; i++)
            st = err_once(&l, i % DNN_WAYS, dnn_rates[i / DNN_WAYS], &clean,
                          &out->run[i / DNN_WAYS][k][i % DNN_WAYS]);
        out->steps = l.steps;
        kofn_net_free(l.plain);
    }
    judge(out);
    return st;
}

/* Sparse: F.11's cost, of images into a third as many units and back. */
kofn_status dnn_autoencoder(const images *points, unsigned epochs,
                            uint64_t seed, dnn_hidden *out)
{
    size_t n = points->X.cols, widths[] = {n, n < 100 ? n / 3 : 64, n};
    kofn_score clean = {0};
    dnn_lesson l = {.shape = {.size = sizeof l.shape,
                              .layers = 2,
                              .widths = widths,
                              .output = KOFN_SIGMOID,
                              .cost = KOFN_COST_SQUARES,
                              .autoencoder = true,
                              .sparsity = 0.1,
                              .sparsity_weight = 0.1},
                    .opt = {.size = sizeof l.opt,
                            .step = 0.5,
                            .l2 = DECAY,
                            .batch = BATCH,
                            .epochs = epochs,
                            .seed = seed},
                    .seed = seed};
    kofn_status st = learn_plainly(&l, points, &clean);

    *out = (dnn_hidden){.widths = {widths[0], widths[1]}, .clean = clean.loss};
    for (size_t way = 0; way < DNN_WAYS && !st; way++)
        st = err_once(&l, way, dnn_rates[1], &clean, &out->run[way]);
    out->ok = out->run[1].did.finished && out->run[1].apart < 1e-8;
    kofn_net_free(l.plain);
    return st;
}
