/* erring.h -- nodes that train a network together and err, each computed by itself:
 * what they hold, what they answer, and what is made of it (math/training.md 7).
 *
 * The files erring*.c stand on what is inside libkofn, for who errs is found as its
 * coordinator finds it, and the passes are those of kofn train; nothing else here
 * does. */
#ifndef PAPERS_DNN_ERRING_H
#define PAPERS_DNN_ERRING_H

#include "dnn/dnn.h"

#include "base/rng.h"
#include "learn/net.h"

/* ---- erring_code.c -------------------------------------------------------- */

/* What some values must be, whatever they were made of: independent groups, in each
 * of which `values` of them are the rows of G times symbols.  A value is the sum of
 * what its members answer. */
typedef struct erring_code {
    size_t groups, values, members;
    uint32_t *member; /* groups x values x members: nodes */
    size_t symbols, wants, needed, q;
    double *G, *W, *D; /* values x symbols; wants x symbols; wants x values */
    double *H;         /* q x values, orthonormal, H G = 0                  */
} erring_code;

/* A product of a layer: the forward one, or that on the way back. */
typedef struct erring_way {
    erring_code code;
    size_t cut, parts; /* of the batch; of what goes in */
    double *in;        /* nodes x parts                 */
    size_t rows;       /* of the cut of what goes in    */
    size_t grid_rows;  /* and of what comes out         */
} erring_way;

/* Nodes, each of whose blocks is the sum of f_i g_j times part (i, j). */
typedef struct erring_nodes {
    dnn_redundancy kind;
    size_t P, m, n;
    double *f, *g; /* P x m, P x n */
    erring_way way[2];
    erring_code blocks[2]; /* what blocks must be, as values */
    size_t checks;         /* of these                       */
} erring_nodes;

kofn_status erring_nodes_new(erring_nodes *c, const dnn_nodes *nodes);
void erring_nodes_free(erring_nodes *c);

/* ---- erring_stage.c ------------------------------------------------------- */

/* Chance, strength and dice of what goes wrong; and what did.  copies: each node made
 * its own of what came before, or of D, which may be wrong, too. */
typedef struct erring_fate {
    double chance, strength;
    bool everywhere, copies;
    kf_rng rng;
    size_t faults;
} erring_fate;
/* Does it befall these numbers? */
bool erring_strikes(erring_fate *fate, double *x, size_t n);

/* One layer's blocks at the nodes, and room for what they answer. */
typedef struct erring_layer {
    const erring_nodes *nodes;
    size_t out, in, batch;  /* of the weights, biases included; of a batch */
    size_t high, wide;      /* of a block                                  */
    double *block;          /* P x (high wide)                             */
    double *message, *copy; /* of a node                                   */
    double *Y, *scale;      /* values x columns; usual size of a value     */
    double *result;         /* wants x columns                             */
    uint8_t *bad;           /* nodes                                       */
    uint8_t *wrong;         /* values                                      */
} erring_layer;

kofn_status erring_layer_new(erring_layer *l, const erring_nodes *nodes,
                             size_t out, size_t in, size_t batch);
void erring_layer_free(erring_layer *l);
/* Hand out the blocks of W, and read it. */
void erring_encode(erring_layer *l, const kofn_matrix *W);
kofn_status erring_read(const erring_layer *l, kofn_matrix *W);
/* Numbers of a value of this product. */
size_t erring_columns(const erring_layer *l, bool back);
/* What all nodes answer to `a`, batch x what goes in, as values in l->Y. */
void erring_answer(erring_layer *l, bool back, const kofn_matrix *a,
                   erring_fate *fate);
/* The product of them, nodes whose values were wrong in l->bad, at most so many of a
 * group: KOFN_CORRUPT where they cannot be told. */
kofn_status erring_decode(erring_layer *l, bool back, bool adversarial,
                          kofn_matrix *out, size_t *bad);
/* Blocks of l->bad anew, of those of others in this product. */
kofn_status erring_repair(erring_layer *l, const erring_code *c);
/* W -= step (D' X + decay W), block by block. */
void erring_update(erring_layer *l, const kofn_matrix *D, const kofn_matrix *X,
                   double step, double decay, erring_fate *fate);
/* Are the blocks what they must be?  They are repaired, or KOFN_CORRUPT. */
kofn_status erring_verify(erring_layer *l, bool adversarial, size_t *bad);

#endif
