/* dnn.h -- trainings whose nodes err. */
#ifndef PAPERS_DNN_DNN_H
#define PAPERS_DNN_DNN_H

#include "dnn/tolerance.h"
#include "images.h"

#include <kofn/train.h>

/* A training, the same without errors, and the points that it is judged by. */
typedef struct dnn_lesson {
    kofn_net_shape shape;
    kofn_train_options opt;                     /* float64, without momentum */
    const kofn_matrix *X, *y, *test_X, *test_y; /* y: NULL of an autoencoder */
    uint64_t seed;
    unsigned steps;  /* there are, all together */
    kofn_net *plain; /* that they lead to       */
} dnn_lesson;

/* Of nodes that err. */
typedef struct dnn_did {
    unsigned steps;   /* done                                               */
    size_t rollbacks; /* to a checkpoint                                    */
    size_t faults;    /* operations that went wrong                         */
    size_t corrected; /* products with wrong values that were decoded; on a
                         mesh: wrong pieces that the node which saw most of
                         them left out                                      */
    size_t outvoted;  /* on a mesh: iterates that a node took from others   */
    bool finished;    /* all steps; on a mesh: more than half of the nodes  */
} dnn_did;
typedef struct dnn_run {
    double accuracy, loss; /* of held-out points; NaN: it has not finished   */
    double apart;          /* from the plain weights, at most, of any node that
                              has some; NaN: not finished, or not computed   */
    dnn_did did;
} dnn_run;

/* Nodes of a mesh take the steps, each operation of which goes wrong with this chance,
 * by Gaussian noise of ten times the mean magnitude of what it made: with a code any
 * operation, without one products and changes of blocks. */
kofn_status dnn_mesh_train(const dnn_lesson *l, bool coded, double chance,
                           dnn_run *out);
/* How far apart any weight of both is at most. */
double dnn_apart(const kofn_net *a, const kofn_net *b);
kofn_status dnn_lesson_score(const dnn_lesson *l, const kofn_net *net,
                             kofn_score *score);
/* Of replication or two MDS codes it is only counted what would go wrong in products
 * and changes of blocks, and be found. */
kofn_status dnn_count(const dnn_lesson *l, const dnn_nodes *nodes,
                      double chance, dnn_did *out);

#define DNN_SCENARIOS 3
#define DNN_KINDS 4
extern const char *const dnn_kinds[DNN_KINDS];

/* Tables I and III: limits as published, and as they are reached. */
#define DNN_TABLES 5
typedef struct dnn_table {
    size_t P, m, n, cut[2];
    dnn_tolerance published[DNN_KINDS];
    dnn_tried got[DNN_KINDS];
    bool ok[DNN_KINDS];
} dnn_table;
kofn_status dnn_limits(size_t trials, uint64_t seed, dnn_table out[DNN_TABLES]);

/* Corollary 1, m = n = sqrt(P/4): what GPD stands by what others do, by P and by its
 * root; to 1/4 and 1. */
#define DNN_GROWTH 5 /* P = 64 to 16384 */
typedef struct dnn_growth {
    size_t P;
    double by_replication, by_two_mds;
} dnn_growth;
kofn_status dnn_corollary(dnn_growth out[DNN_GROWTH]);

/* Fig. 8: what P nodes stand in the forward product: GPD, replication, two MDS. */
#define DNN_POINTS 10
typedef struct dnn_figure {
    size_t P, adversarial[3], probabilistic[3];
} dnn_figure;
kofn_status dnn_figure8(size_t m, size_t n, dnn_figure out[DNN_POINTS]);

/* Trainings of which each operation of a node goes wrong with some chance. */
#define DNN_WAYS 4
#define DNN_RATES 3
#define DNN_SEEDS 5
#define DNN_EPOCHS 10
#define DNN_BAND 0.003
extern const char *const dnn_names[DNN_WAYS];
extern const double dnn_rates[DNN_RATES];
typedef struct dnn_soft {
    size_t seeds, points, pixels;
    unsigned steps;
    double clean[DNN_SEEDS];
    dnn_run run[DNN_RATES][DNN_SEEDS][DNN_WAYS];
    bool same[DNN_RATES];   /* coded as error-free, 0.3 % and 1e-8           */
    bool lost[DNN_RATES];   /* uncoded tells less than half right            */
    bool fewest[DNN_RATES]; /* rollbacks of coded: no more than of the others */
} dnn_soft;
/* Images of 7 x 7; freed with images_free. */
kofn_status dnn_points_make(images *p, uint64_t seed);
kofn_status dnn_soft_errors(const images *points, unsigned epochs, size_t seeds,
                            uint64_t seed, dnn_soft *out);
typedef struct dnn_hidden {
    size_t widths[2];
    double clean; /* loss without errors */
    dnn_run run[DNN_WAYS];
    bool ok; /* coded weights are the plain ones to 1e-8 */
} dnn_hidden;
kofn_status dnn_autoencoder(const images *points, unsigned epochs,
                            uint64_t seed, dnn_hidden *out);

#endif
