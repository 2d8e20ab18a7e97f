/* dnn.h -- trainings whose nodes err. */
#ifndef PAPERS_DNN_DNN_H
#define PAPERS_DNN_DNN_H

#include "dnn/tolerance.h"
#include "images.h"

#include <kofn/train.h>

/* Training as nodes that err would take its steps, without a master: what each of
 * them encodes, multiplies and changes is computed by itself on this thread, who
 * answered wrongly is found and given its block of others', and where they cannot be
 * told all go back to a checkpoint. */
typedef struct erring_options {
    size_t size; /* sizeof(erring_options) */
    dnn_redundancy kind;
    size_t nodes, m, n;
    double chance;    /* that an operation of a node goes wrong ...           */
    double strength;  /* ... by Gaussian noise of so many times the mean
                        magnitude of what it made; 0: 10                     */
    bool everywhere;  /* of any operation of GPD nodes but decoding; else of
                        products and changes of blocks                       */
    bool adversarial; /* assume that they may lie as they like            */
    unsigned checkpoint; /* every so many steps; 0: 50                       */
    unsigned most; /* steps to be taken, those taken again with them; 0: 10
                      times the training's                                   */
    uint64_t seed; /* of what goes wrong                                     */
} erring_options;
typedef struct erring_result {
    unsigned steps, taken, rollbacks; /* steps done, and taken in all         */
    size_t faults;    /* operations that went wrong                           */
    size_t corrected; /* products with wrong answers that were decoded        */
    size_t products;  /* decoded, in all                                      */
    size_t repaired;  /* blocks made of others'                               */
    bool finished;    /* `most` was enough                                    */
} erring_result;
/* The net, of float64 and without momentum, ends with what the nodes have. */
kofn_status erring_train(kofn_training *t, const erring_options *e,
                         erring_result *out);

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
typedef struct dnn_run {
    double accuracy, loss; /* of held-out points               */
    double apart;          /* from the plain weights, at most  */
    erring_result did;
} dnn_run;
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
