/* dnn.h -- training on coded weights: how many nodes may be faulty, and
 * trainings with faulty nodes. */
#ifndef PAPERS_DNN_DNN_H
#define PAPERS_DNN_DNN_H

#include "show.h"

#include <kofn/train.h>

/* ---- tolerated faults (tolerance.c, erring_limits.c) --------------------- */

/* Ways to train a network on P nodes, some of them faulty. Each node has a
 * block of weights, cut m x n. The blocks are coded, with either substitution
 * (docs/math/products.md); or there are P/(m n) copies of the grid; or one
 * code on its rows and one on its columns. */
typedef enum dnn_redundancy {
    DNN_GPD_UVN,
    DNN_GPD_VUM,
    DNN_REPLICATION,
    DNN_TWO_MDS,
    DNN_NONE
} dnn_redundancy;

/* P nodes, each with a block of weights cut m x n. cut: parts of the batch for
 * the forward and for the backward product, 1 or more. */
typedef struct dnn_nodes {
    dnn_redundancy kind;
    size_t P, m, n, cut[2];
} dnn_nodes;

/* Limits for the forward product and for the backward product. */
typedef struct dnn_tolerance {
    size_t K[2];             /* answers that suffice; 0: it is no such code */
    size_t adversarial[2];   /* nodes that may send chosen wrong answers */
    size_t probabilistic[2]; /* nodes that may fail independently */
} dnn_tolerance;

/* Fails with KOFN_TOOFEW if P nodes cannot even detect an error, or are fewer
 * than the grid needs. */
kofn_status dnn_tolerance_of(const dnn_nodes *c, dnn_tolerance *out);

/* Finds the limits by experiment. Computes a product node by node, makes some
 * answers wrong, and compares with the plain product, for growing numbers of
 * wrong answers. Each number is tried `trials` times, with noise and in the
 * worst known way. */
typedef struct dnn_tried {
    size_t adversarial[2], probabilistic[2];
    bool declared; /* nothing wrong passed with one more than the probabilistic
                      limit, and with all nodes wrong */
} dnn_tried;
kofn_status dnn_tolerance_try(const dnn_nodes *nodes, size_t trials,
                              uint64_t seed, dnn_tried *out);

/* ---- parts of kofn-papers dnn --scenario 1 and codes ----------------------
 */

/* A layer of width N after one of the same width, on P nodes; batches of B
 * points. */
typedef struct dnn_layer {
    size_t P, m, n, cut[2], N, B;
} dnn_layer;
/* Returns an object with kofn's value and the published one. */
json_t *dnn_beside(json_t *ours, json_t *published);
kofn_status dnn_describe(const kofn_problem *pb, const char *spec,
                         size_t workers, kofn_plan_info *info);
/* names in the order of dnn_redundancy */
#define DNN_WAYS_PUBLISHED 4
extern const char *const dnn_ways_published[DNN_WAYS_PUBLISHED];
/* Reads --grid and --batch-cut if they are given. Returns 0, or the exit code
 * after a message. */
int dnn_grid(const papers_args *a, size_t grid[2], size_t cut[2]);

/* Tables I and III: by experiment, and for kofn's plans. */
kofn_status dnn_tables_try(const papers_args *a, json_t *o);
void dnn_tables_tell(json_t *o);
kofn_status dnn_tolerances(const dnn_layer *s, json_t *table);
void dnn_tolerances_tell(const char *name, json_t *table);
/* Tables II and IV, and the times of messages. */
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

/* A training, the same training without errors, and the points that judge it.
 */
typedef struct dnn_lesson {
    kofn_net_shape shape;
    kofn_train_options opt;                     /* float64, without momentum */
    const kofn_matrix *X, *y, *test_X, *test_y; /* y: NULL for an autoencoder */
    uint64_t seed;
    unsigned steps;  /* steps in all */
    kofn_net *plain; /* the network after them */
} dnn_lesson;

/* The result of a training on faulty nodes. */
typedef struct dnn_did {
    unsigned steps;   /* steps done */
    size_t rollbacks; /* rollbacks to a checkpoint */
    size_t faults;    /* wrong operations */
    size_t
        corrected;   /* products with wrong values that were decoded; on a mesh:
                        wrong pieces left out by the node that saw most */
    size_t outvoted; /* on a mesh: iterates that a node took from others */
    bool finished; /* all steps done; on a mesh: by more than half of the nodes
                    */
} dnn_did;
typedef struct dnn_run {
    const char *mesh;      /* kind of mesh */
    double accuracy, loss; /* of held-out points; NaN: not finished */
    double apart; /* largest distance of a node's weights from the plain ones;
                     NaN: not finished */
    dnn_did did;
} dnn_run;

/* Trains on the nodes of a mesh. Each operation goes wrong with this chance:
 * Gaussian noise of ten times the mean magnitude of its result. With a code
 * any operation may fail, without one products and updates of blocks. */
kofn_status dnn_mesh_train(const dnn_lesson *l, bool coded, double chance,
                           dnn_run *out);
kofn_status dnn_lesson_score(const dnn_lesson *l, const kofn_net *net,
                             kofn_score *score);
/* Returns the largest distance of the weights of two networks of one shape. */
double dnn_apart(const kofn_net *a, const kofn_net *b);

/* Operations of a baseline's node that may go wrong. */
typedef enum dnn_operation { DNN_FORWARD, DNN_BACK, DNN_UPDATE } dnn_operation;

/* A baseline of the paper: replication or two MDS codes. */
typedef struct dnn_baseline {
    const dnn_lesson *l;
    dnn_nodes nodes; /* batches are not cut */
    double chance;   /* of a fault in each operation */
    bool threads; /* nodes are threads of a mesh; else all nodes run in turn */
    /* NULL, or decides in place of `chance` whether this operation goes wrong.
     * `attempt` counts started steps from 1. Called on the nodes' threads. */
    bool (*err)(void *ud, size_t node, unsigned attempt, dnn_operation op,
                size_t layer);
    void *err_ud;
} dnn_baseline;

/* Trains to the end, or gives up after ten times the steps, which is not an
 * error. Both kinds of mesh give the same weights, bit for bit. `weights`:
 * NULL, or receives the last network that a check found right; the caller
 * frees it. */
kofn_status dnn_baseline_train(const dnn_baseline *b, dnn_run *out,
                               kofn_net **weights);

#define DNN_WAYS 4
#define DNN_RATE 0.005 /* the middle of the three chances */
#define DNN_BATCH 20
extern const char *const dnn_names[DNN_WAYS];
/* Reads --points or --mnist, or makes images of 7 x 7. Free them with
 * images_free, also after a failure. */
kofn_status dnn_points(const papers_args *a, images *p, unsigned *epochs);
/* Fills in all but the shape, step, epochs and seed, and trains without
 * errors. Free l->plain, also after a failure. */
kofn_status dnn_learn_plainly(dnn_lesson *l, const images *points,
                              kofn_score *clean);
/* Trains in one way, in the order of dnn_names. a: the kind of mesh for the
 * baselines. */
kofn_status dnn_err_once(const papers_args *a, const dnn_lesson *l, size_t way,
                         double rate, dnn_run *out);
/* Returns the run as JSON, with its loss or its share of correct labels. */
json_t *dnn_run_json(const dnn_run *r, bool loss);

#endif
