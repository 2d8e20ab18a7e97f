/* dnn.h -- training on coded weights: how many nodes may be wrong, and
 * trainings whose nodes err. */
#ifndef PAPERS_DNN_DNN_H
#define PAPERS_DNN_DNN_H

#include "show.h"

#include <kofn/train.h>

/* ---- how many may be wrong (tolerance.c, erring_limits.c) ---------------- */

/* Ways to have P nodes, each with a block of weights cut m x n, train a network
 * though some compute wrongly: a coded block each, with either substitution
 * (docs/math/products.md), P/(m n) copies of the grid, or two codes, on its
 * rows and on its columns. */
typedef enum dnn_redundancy {
    DNN_GPD_UVN,
    DNN_GPD_VUM,
    DNN_REPLICATION,
    DNN_TWO_MDS,
    DNN_NONE
} dnn_redundancy;

/* So many nodes, each with a block of weights that are cut m x n; cut: parts of
 * the batch for the forward product and for that on the way back, 1 or more. */
typedef struct dnn_nodes {
    dnn_redundancy kind;
    size_t P, m, n, cut[2];
} dnn_nodes;

/* Of the forward product, and of the one on the way back. */
typedef struct dnn_tolerance {
    size_t K[2];           /* answers that decode; 0: it is not of that kind */
    size_t adversarial[2]; /* so many nodes may lie as they like             */
    size_t probabilistic[2]; /* or so many fail without a plan              */
} dnn_tolerance;

/* KOFN_TOOFEW when P nodes do not even tell that something is wrong, or are
 * less than the grid. */
kofn_status dnn_tolerance_of(const dnn_nodes *c, dnn_tolerance *out);

/* What is stood by trying: a product of such nodes is computed, node by node,
 * some are made wrong, and it is compared with the plain one; for more and more
 * of them, as often as `trials`, with noise and in the worst way that is known.
 */
typedef struct dnn_tried {
    size_t adversarial[2], probabilistic[2];
    bool declared; /* with one more than the probabilistic limit, and with all
                      of them, nothing wrong passed */
} dnn_tried;
kofn_status dnn_tolerance_try(const dnn_nodes *nodes, size_t trials,
                              uint64_t seed, dnn_tried *out);

/* ---- what kofn-papers dnn --scenario 1 and codes are made of ------------- */

/* A layer as wide, N, as the one before it, on P nodes; batches of B points. */
typedef struct dnn_layer {
    size_t P, m, n, cut[2], N, B;
} dnn_layer;
/* Beside each other: of kofn, and as published. */
json_t *dnn_beside(json_t *ours, json_t *published);
kofn_status dnn_describe(const kofn_problem *pb, const char *spec,
                         size_t workers, kofn_plan_info *info);
/* In the order of dnn_redundancy. */
#define DNN_WAYS_PUBLISHED 4
extern const char *const dnn_ways_published[DNN_WAYS_PUBLISHED];
/* --grid and --batch-cut, where they are given: 0, or the exit code after a
 * message. */
int dnn_grid(const papers_args *a, size_t grid[2], size_t cut[2]);

/* Tables I and III by trying, and of kofn's plans. */
kofn_status dnn_tables_try(const papers_args *a, json_t *o);
void dnn_tables_tell(json_t *o);
kofn_status dnn_tolerances(const dnn_layer *s, json_t *table);
void dnn_tolerances_tell(const char *name, json_t *table);
/* Tables II and IV, and times of messages. */
void dnn_costs(const dnn_layer *s, json_t *table);
void dnn_costs_tell(const dnn_layer *s, const char *name, json_t *table);
json_t *dnn_messages(const dnn_layer *s);
void dnn_messages_tell(json_t *o);

kofn_status dnn_figure_5(const dnn_layer *s, json_t *list);
void dnn_figure_5_tell(const dnn_layer *s, json_t *list);
kofn_status dnn_figure_8(json_t *o);
void dnn_figure_8_tell(json_t *o);
void dnn_figure_8_draw(json_t *o, plot *p);

/* ---- trainings (mesh.c, baseline.c, lesson.c) ---------------------------- */

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
    const char *mesh;      /* that the nodes were on                         */
    double accuracy, loss; /* of held-out points; NaN: it has not finished   */
    double apart;          /* from the plain weights, at most, of any node that
                              has some; NaN: not finished                    */
    dnn_did did;
} dnn_run;

/* Nodes of a mesh take the steps, each operation of which goes wrong with this
 * chance, by Gaussian noise of ten times the mean magnitude of what it made:
 * with a code any operation, without one products and changes of blocks. */
kofn_status dnn_mesh_train(const dnn_lesson *l, bool coded, double chance,
                           dnn_run *out);
kofn_status dnn_lesson_score(const dnn_lesson *l, const kofn_net *net,
                             kofn_score *score);
/* Returns how far apart the weights of two nets of one shape are, at most. */
double dnn_apart(const kofn_net *a, const kofn_net *b);

/* What a node of a baseline may do wrongly. */
typedef enum dnn_operation { DNN_FORWARD, DNN_BACK, DNN_UPDATE } dnn_operation;

/* A baseline of the paper: replication or two MDS codes. */
typedef struct dnn_baseline {
    const dnn_lesson *l;
    dnn_nodes nodes; /* batches are not cut */
    double chance;   /* of every operation */
    bool threads;    /* nodes of a mesh of threads; else all nodes in turn */
    /* Or NULL: says that this operation errs, in place of chance.  `attempt`
     * counts steps that were begun, from 1.  It is called on the nodes'
     * threads. */
    bool (*err)(void *ud, size_t node, unsigned attempt, dnn_operation op,
                size_t layer);
    void *err_ud;
} dnn_baseline;

/* Trains to the end, or gives up after ten times the steps, which is no
 * failure.  Both meshes lead to the same weights, bit for bit.  `weights`:
 * NULL, or where the net goes that the last check has found right; the caller
 * frees it. */
kofn_status dnn_baseline_train(const dnn_baseline *b, dnn_run *out,
                               kofn_net **weights);

#define DNN_WAYS 4
#define DNN_RATE 0.005 /* the middle one */
#define DNN_BATCH 20
extern const char *const dnn_names[DNN_WAYS];
/* Reads what --points or --mnist says, or makes images of 7 x 7.  They are
 * freed with images_free, after a failure, too. */
kofn_status dnn_points(const papers_args *a, images *p, unsigned *epochs);
/* Fills in all but the shape, step, epochs and seed, and trains; l->plain is to
 * be freed, after a failure, too. */
kofn_status dnn_learn_plainly(dnn_lesson *l, const images *points,
                              kofn_score *clean);
/* Trains in one way, in the order of dnn_names; a: which mesh the baselines are
 * on. */
kofn_status dnn_err_once(const papers_args *a, const dnn_lesson *l, size_t way,
                         double rate, dnn_run *out);
/* With its loss, or how many are told right. */
json_t *dnn_run_json(const dnn_run *r, bool loss);

#endif
