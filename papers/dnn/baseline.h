/* baseline.h -- trains the baselines of the paper: replication and two
 * systematic MDS codes, on the blocks and with the products of nodes
 * (math/training.md 7).
 *
 * A baseline_train owns its nodes. A node owns its blocks, its batch and its
 * mail. All of it ends with the call of dnn_baseline_train. */
#ifndef PAPERS_DNN_BASELINE_H
#define PAPERS_DNN_BASELINE_H

#include "dnn/dnn.h"

#include <stdatomic.h>

#define BASELINE_MOST_NODES 48 /* a set of nodes is a number in a note */
#define BASELINE_MOST_VALUES                                                   \
    12 /* for two codes: all sets of them are tried                            \
        */

/* ---- places and codes (baseline_code.c) -----------------------------------
 */

/* The values of a product come in groups; each group is a code word. A value
 * is the sum of the answers of its members, which are nodes. */
typedef struct baseline_way {
    size_t groups, values, members;
    size_t K;  /* values that determine all others */
    double *G; /* values x K: [I; parity], or ones */
} baseline_way;

typedef struct baseline_code {
    dnn_nodes nodes; /* P: without nodes that are not needed */
    bool copies;     /* replication; else two codes */
    size_t more;     /* parity rows, and the same number of parity columns */
    baseline_way way[2]; /* forward and backward */
    double *mix[2]; /* coefficients of a row, or a column, of blocks: one line
                       each */
} baseline_code;

typedef struct baseline_place {
    size_t copy, row, col;
} baseline_place;

kofn_status baseline_code_new(baseline_code *c, const dnn_nodes *nodes);
void baseline_code_free(baseline_code *c);
baseline_place baseline_place_of(const baseline_code *c, size_t node);
/* Returns the node that is member k of a value. */
size_t baseline_member(const baseline_code *c, bool back, size_t group,
                       size_t value, size_t k);
size_t baseline_leader(const baseline_code *c, bool back, size_t group,
                       size_t value);
/* Computes out[i] = sum of weight[p] times a[p * len + i]. Skips weights of 0.
 */
void baseline_combine(const double *weight, size_t parts, const double *a,
                      size_t len, double *out);

/* The values of one code word, each `len` numbers, one after another. */
typedef struct baseline_word {
    const double *value;
    const double *bound; /* upper bound of each value's length */
    size_t len;
    unsigned updates; /* updates of the blocks that made the values */
} baseline_word;
/* Writes the set of wrong values. Returns false if more are wrong than the
 * code corrects. */
bool baseline_judge(const baseline_code *c, bool back, const baseline_word *w,
                    uint64_t *bad);
/* Writes the weights by which the good values give value v; unused values have
 * weight 0. */
void baseline_weights(const baseline_code *c, bool back, uint64_t bad, size_t v,
                      double *weight);

/* ---- a batch (baseline_batch.c) ------------------------------------------ */

/* A batch in its passes through the layers: a row per unit, a column per
 * point. Rows are padded with zeros to whole parts. */
typedef struct baseline_batch {
    const dnn_lesson *l;
    size_t B, count;                /* columns; points */
    size_t rows[KOFN_NET_MOST + 1]; /* rows of X; those after the ones for the
                                       biases are zero */
    double *X[KOFN_NET_MOST + 1];   /* X[l]: outputs of layer l */
    double *D[KOFN_NET_MOST + 1];   /* D[l]: deltas of layer l */
    double *product;                /* product of a layer: S or C */
    double *label;                  /* label of each point, or NULL */
    void *memory;
} baseline_batch;

kofn_status baseline_batch_new(baseline_batch *b, const dnn_lesson *l,
                               const dnn_nodes *nodes);
void baseline_batch_free(baseline_batch *b);
/* Loads the points of a step, counted from 0. */
void baseline_batch_load(baseline_batch *b, unsigned step);
/* Computes X[l] from the product, and the deltas of the last layer. */
void baseline_batch_forward(baseline_batch *b, size_t layer);
/* Computes D[l-1] from the product, for layer 2 or later. */
void baseline_batch_back(baseline_batch *b, size_t layer);

/* ---- nodes (baseline_node.c) --------------------------------------------- */

/* Numbers that one node sends to another. */
typedef struct baseline_note {
    struct baseline_note *next;
    size_t count;
    double x[];
} baseline_note;

typedef struct baseline_node {
    struct baseline_train *all;
    size_t number;
    baseline_place at;
    dice d;
    double *blocks, *kept; /* of all layers, one after another; as last kept */
    double *value; /* the value this node leads, and the values of its group */
    double *group, *bound;
    uint64_t bad[BASELINE_MOST_NODES]; /* wrong values of each group */
    baseline_batch b;
    unsigned taken,
        saved; /* steps tried; steps done when blocks were last kept */
    size_t stage, phase; /* position within a step */
    bool failed;         /* this product, or this check, failed */
    bool over;
    dnn_did did;
    baseline_note *first[BASELINE_MOST_NODES], *last[BASELINE_MOST_NODES];
    struct {
        kofn_transport *t;
        kofn_peer peer[BASELINE_MOST_NODES];
        bool known[BASELINE_MOST_NODES];
        unsigned silent; /* looks since the last note arrived */
    } net;
    kofn_status status;
    char why[400]; /* reason of a failure */
} baseline_node;

/* Moves notes. A note that was sent is in the other node's mail when `wait`
 * returns there. */
typedef struct baseline_carrier {
    kofn_status (*run)(struct baseline_train *all);
    kofn_status (*send)(baseline_node *from, size_t to, baseline_note *m);
    kofn_status (*wait)(
        baseline_node *n); /* waits for at least one more note */
} baseline_carrier;

typedef struct baseline_train {
    const dnn_baseline *asked;
    const dnn_lesson *l;
    const baseline_carrier *carrier;
    baseline_code code;
    kofn_net *net; /* the first weights, later the result */
    size_t h[KOFN_NET_MOST + 1],
        w[KOFN_NET_MOST + 1];     /* sizes of a layer's blocks */
    size_t at[KOFN_NET_MOST + 2]; /* start of a layer; number of all weights */
    size_t longest;               /* length of the longest value */
    baseline_node *node;
    atomic_bool abandoned; /* set if a node has failed */
} baseline_train;

kofn_status baseline_node_new(baseline_node *n, baseline_train *all,
                              size_t number);
void baseline_node_free(baseline_node *n);
/* One phase: post notes, then take them, for all nodes in lock step, until the
 * training is over. */
kofn_status baseline_node_post(baseline_node *n);
kofn_status baseline_node_take(baseline_node *n);
void baseline_node_receive(baseline_node *n, size_t from, baseline_note *m);
baseline_note *baseline_note_new(size_t count);

/* ---- carriers (baseline_carry.c) ----------------------------------------- */

/* Runs all nodes in turn on this thread. */
extern const baseline_carrier baseline_simulated;
/* Runs nodes of a mesh of threads, with packets. */
extern const baseline_carrier baseline_threads;

#endif
