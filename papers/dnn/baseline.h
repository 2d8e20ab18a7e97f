/* baseline.h -- the baselines of the paper, trained: replication and two
 * systematic MDS codes, on blocks that nodes hold and with products that they
 * make (math/training.md 7).
 *
 * A baseline_train owns its nodes, a node its blocks, its batch and its mail.
 * All of it ends with the call of dnn_baseline_train. */
#ifndef PAPERS_DNN_BASELINE_H
#define PAPERS_DNN_BASELINE_H

#include "dnn/dnn.h"

#include <stdatomic.h>

#define BASELINE_MOST_NODES 48  /* a set of them is a number in a note */
#define BASELINE_MOST_VALUES 12 /* of two codes: all sets of them are tried */

/* ---- places and codes (baseline_code.c) -----------------------------------
 */

/* The values of a product come in groups, each a code word.  A value is the sum
 * of what its members, which are nodes, answer. */
typedef struct baseline_way {
    size_t groups, values, members;
    size_t K;  /* values that make all others */
    double *G; /* values x K: [I; parity], or ones */
} baseline_way;

typedef struct baseline_code {
    dnn_nodes nodes;     /* P: without those of no use */
    bool copies;         /* replication; else two codes */
    size_t more;         /* parity rows, and as many parity columns */
    baseline_way way[2]; /* forward and back */
    double *
        mix[2]; /* what a row, or a column, is of the parts of W: a line each */
} baseline_code;

typedef struct baseline_place {
    size_t copy, row, col;
} baseline_place;

kofn_status baseline_code_new(baseline_code *c, const dnn_nodes *nodes);
void baseline_code_free(baseline_code *c);
baseline_place baseline_place_of(const baseline_code *c, size_t node);
/* The node that is member k of a value. */
size_t baseline_member(const baseline_code *c, bool back, size_t group,
                       size_t value, size_t k);
size_t baseline_leader(const baseline_code *c, bool back, size_t group,
                       size_t value);
/* out[i] = sum of weight[p] times a[p * len + i]; a weight of 0 is left out. */
void baseline_combine(const double *weight, size_t parts, const double *a,
                      size_t len, double *out);

/* The values of one code word, each `len` numbers, one behind the other. */
typedef struct baseline_word {
    const double *value;
    const double *bound; /* no value is longer than this, for each of them */
    size_t len;
    unsigned updates; /* of the blocks that they were made with */
} baseline_word;
/* Writes the set of wrong values; false: more are wrong than the code
 * corrects. */
bool baseline_judge(const baseline_code *c, bool back, const baseline_word *w,
                    uint64_t *bad);
/* Writes by which weights the good values make value v; what is not used has
 * 0. */
void baseline_weights(const baseline_code *c, bool back, uint64_t bad, size_t v,
                      double *weight);

/* ---- a batch (baseline_batch.c) ------------------------------------------ */

/* A batch on its way through the layers, a row a unit, a column a point.  Rows
 * are padded with zeros to whole parts. */
typedef struct baseline_batch {
    const dnn_lesson *l;
    size_t B, count;                /* columns; points            */
    size_t rows[KOFN_NET_MOST + 1]; /* of X; all of them are zero
                                                behind the ones of biases  */
    double *X[KOFN_NET_MOST + 1];   /* X[l] is what layer l made  */
    double *D[KOFN_NET_MOST + 1];   /* D[l]: deltas of layer l    */
    double *product;                /* S of a layer, or C         */
    double *label;                  /* of each point, or NULL     */
    void *memory;
} baseline_batch;

kofn_status baseline_batch_new(baseline_batch *b, const dnn_lesson *l,
                               const dnn_nodes *nodes);
void baseline_batch_free(baseline_batch *b);
/* Loads the points of a step, from 0. */
void baseline_batch_load(baseline_batch *b, unsigned step);
/* Makes X[l] of the product, and of the last layer its deltas. */
void baseline_batch_forward(baseline_batch *b, size_t layer);
/* Makes D[l-1] of the product, for a layer of 2 or more. */
void baseline_batch_back(baseline_batch *b, size_t layer);

/* ---- nodes (baseline_node.c) --------------------------------------------- */

/* Numbers from one node to another. */
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
    double *blocks, *kept; /* of all layers, layer after layer; as last kept */
    double *value;         /* that it leads, and the values of its group    */
    double *group, *bound;
    uint64_t bad[BASELINE_MOST_NODES]; /* values of each group */
    baseline_batch b;
    unsigned taken, saved; /* steps tried; steps done when blocks were kept */
    size_t stage, phase;   /* of a step */
    bool failed;           /* this product, or this check */
    bool over;
    dnn_did did;
    baseline_note *first[BASELINE_MOST_NODES], *last[BASELINE_MOST_NODES];
    struct {
        kofn_transport *t;
        kofn_peer peer[BASELINE_MOST_NODES];
        bool known[BASELINE_MOST_NODES];
        unsigned silent; /* looks since anything came */
    } net;
    kofn_status status;
    char why[400]; /* of a status that is no success */
} baseline_node;

/* How notes travel.  A carrier only moves them: a note that was sent is in the
 * mail of the other node by the time that `wait` has returned there. */
typedef struct baseline_carrier {
    kofn_status (*run)(struct baseline_train *all);
    kofn_status (*send)(baseline_node *from, size_t to, baseline_note *m);
    kofn_status (*wait)(baseline_node *n); /* for any note more */
} baseline_carrier;

typedef struct baseline_train {
    const dnn_baseline *asked;
    const dnn_lesson *l;
    const baseline_carrier *carrier;
    baseline_code code;
    kofn_net *net; /* the weights to begin with, and at the end */
    size_t h[KOFN_NET_MOST + 1], w[KOFN_NET_MOST + 1]; /* of a layer's blocks */
    size_t at[KOFN_NET_MOST + 2]; /* where a layer's begins; all numbers */
    size_t longest;               /* of values */
    baseline_node *node;
    atomic_bool abandoned; /* a node has failed */
} baseline_train;

kofn_status baseline_node_new(baseline_node *n, baseline_train *all,
                              size_t number);
void baseline_node_free(baseline_node *n);
/* A phase is a post and a take, for all nodes in lock step, until it is
 * over. */
kofn_status baseline_node_post(baseline_node *n);
kofn_status baseline_node_take(baseline_node *n);
void baseline_node_receive(baseline_node *n, size_t from, baseline_note *m);
baseline_note *baseline_note_new(size_t count);

/* ---- carriers (baseline_carry.c) ----------------------------------------- */

/* All nodes in turn on this thread. */
extern const baseline_carrier baseline_simulated;
/* Nodes of a mesh of threads, by packets. */
extern const baseline_carrier baseline_threads;

#endif
