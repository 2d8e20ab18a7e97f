/* tolerance.h -- how many of the nodes that train a network may be wrong. */
#ifndef PAPERS_DNN_TOLERANCE_H
#define PAPERS_DNN_TOLERANCE_H

#include "papers.h"

/* Ways to have P nodes, each with a block of weights cut m x n, train a network
 * though some compute wrongly: a coded block each, with either substitution
 * (docs/math/products.md), P/(m n) copies of the grid, or two codes, on its rows
 * and on its columns. */
typedef enum dnn_redundancy {
    DNN_GPD_UVN,
    DNN_GPD_VUM,
    DNN_REPLICATION,
    DNN_TWO_MDS,
    DNN_NONE
} dnn_redundancy;

/* So many nodes, each with a block of weights that are cut m x n; cut: parts of the
 * batch for the forward product and for that on the way back, 1 or more. */
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

/* KOFN_TOOFEW when P nodes do not even tell that something is wrong, or are less than
 * the grid. */
kofn_status dnn_tolerance_of(const dnn_nodes *c, dnn_tolerance *out);

/* What is stood by trying: a product of such nodes is computed, node by node, some
 * are made wrong, and it is compared with the plain one; for more and more of them,
 * as often as `trials`, with noise and in the worst way that is known. */
typedef struct dnn_tried {
    size_t adversarial[2], probabilistic[2];
    bool
        declared; /* with one more than the probabilistic limit, and with all of
                      them, nothing wrong passed                              */
} dnn_tried;
kofn_status dnn_tolerance_try(const dnn_nodes *nodes, size_t trials,
                              uint64_t seed, dnn_tried *out);

#endif
