/* net.h -- dense networks inside the library: weights, and the passes through
 * the layers, written once for every way to multiply.
 *
 * A network and its passes are freed by the functions declared next to those
 * that create them. Passes borrow the network and may not change its weights.
 */
#ifndef KF_NET_H
#define KF_NET_H

#include "base/base.h"

#include <kofn/train.h>

struct kofn_net {
    kofn_net_shape shape; /* its `widths` point to the array below */
    size_t widths[KOFN_NET_MOST + 1];
    size_t total; /* number of weights of all layers; the layers follow each
                     other in memory, W[0] first */
    kofn_matrix W[KOFN_NET_MOST]; /* W[l] computes layer l + 1 */
};

/* ---- net.c --------------------------------------------------------------- */

kofn_status kf_net_check(const kofn_net_shape *shape);
/* Sets everything but the weights. */
void kf_net_fill(kofn_net *net, const kofn_net_shape *shape);
/* Points W[] into `weights`, which is borrowed. */
void kf_net_lay(kofn_net *net, void *weights);
/* Create a network: of a checked shape, with unset weights; or as a copy of
 * another network. Freed by kofn_net_free. */
kofn_status kf_net_of_shape(kofn_net **out, const kofn_net_shape *shape);
kofn_status kf_net_copy(kofn_net **out, const kofn_net *net);
/* Copy the weights, as doubles, layer after layer: out of the network, or into
 * it. */
void kf_net_read(const kofn_net *net, double *to);
void kf_net_write(kofn_net *net, const double *from);

/* Checks that y fits m points of this network. Sets *classes if y holds
 * labels. */
kofn_status kf_net_check_targets(const kofn_net *net, size_t m,
                                 const kofn_matrix *y, const char *name,
                                 bool *classes);
kofn_status kf_net_check_points(const kofn_net *net, const kofn_matrix *X,
                                const char *name);

/* ---- passes.c ------------------------------------------------------------ */

/* The three kinds of products of an iteration. There are 3 L - 1 products in
 * all. */
typedef enum kf_pass {
    KF_PASS_FORWARD, /* X_{l-1} W_l', a x b'                    */
    KF_PASS_BACK,    /* D_l W_l without its biases, a x b; l >= 2 */
    KF_PASS_GRADIENT /* D_l' X_{l-1}, a' x b                    */
} kf_pass;

/* Computes out = the product of this kind. Whoever multiplies, BLAS or
 * workers, supplies the function. */
typedef struct kf_multiplier {
    kofn_status (*multiply)(void *ud, kf_pass pass, size_t layer,
                            const kofn_matrix *a, const kofn_matrix *b,
                            kofn_matrix *out);
    void *ud;
} kf_multiplier;

/* Multiplies by BLAS on this thread. */
extern const kf_multiplier kf_multiplier_plain;

/* A batch during its passes. The first `count` of `rows` rows are points. All
 * other rows are zero, also in the column of ones for the biases. */
typedef struct kf_passes {
    const kofn_net *net;
    bool classes; /* targets are labels */
    size_t room, rows, count;
    kofn_matrix X[KOFN_NET_MOST + 1]; /* activations, rows x (width + 1); the
                                         last layer has no column of ones */
    kofn_matrix D[KOFN_NET_MOST];     /* deltas by layer, from 0 */
    kofn_matrix T;                    /* targets, or labels */
    double *row, *other;              /* scratch, one row each */
    void *memory;
} kf_passes;

kofn_status kf_passes_new(kf_passes *p, const kofn_net *net, bool classes,
                          size_t room);
void kf_passes_free(kf_passes *p);
/* Empties the batch. */
void kf_passes_begin(kf_passes *p);
/* Adds one point. y: its label or targets; NULL if unknown. */
void kf_passes_put(kf_passes *p, const double *x, const double *y);
/* Adds zero rows up to `rows`. */
void kf_passes_pad(kf_passes *p, size_t rows);
kofn_status kf_passes_forward(kf_passes *p, const kf_multiplier *by);
/* Adds to sums[j] the activations of hidden unit j of the first layer, over
 * the points. */
void kf_passes_hidden(kf_passes *p, double *sums);
/* Sets the mean activation of each hidden unit, if there is a sparsity penalty.
 * The whole batch must be here. */
void kf_passes_know_means(kf_passes *p, double *means);
/* Returns the weight of one point of a whole batch, 1 / count. */
double kf_passes_weight(const kf_passes *p);
/* Adds the costs of the points to *cost, and the number of labels predicted
 * correctly to *right. Keeps the last layer's deltas, times `weight`, for the
 * backward pass. */
void kf_passes_cost(kf_passes *p, double weight, double *cost, double *right);
/* Does the same for a batch that is here as a whole. Returns the mean cost
 * with the penalty, and sets `means`. */
double kf_passes_mean_cost(kf_passes *p, double *means, double *right);
/* True if all deltas of the points are finite. */
bool kf_passes_finite(const kf_passes *p);
/* Sets gradient[l], which has the shape of W_{l+1}, to the gradient of
 * `weight` times the sum of the costs. With a sparsity penalty, `means` are
 * those of the whole batch. */
kofn_status kf_passes_back(kf_passes *p, double weight, const double *means,
                           const kf_multiplier *by, kofn_matrix *gradient);
/* The same passes one product at a time, for a caller that has other work
 * between products. For s = 0 .. products - 1, get product s by
 * kf_passes_wanted, compute it, then call kf_passes_done. Call kf_passes_cost
 * before product `layers`, the first of the backward pass. */
typedef struct kf_wanted {
    kf_pass pass;
    size_t layer;
    kofn_matrix a, b, out;
} kf_wanted;
size_t kf_passes_products(const kf_passes *p);
kf_wanted kf_passes_wanted(const kf_passes *p, size_t s,
                           const kofn_matrix *gradient);
/* The pull of the sparsity penalty on activations, in the backward pass.
 * `means` are over all points; each point has weight `weight`. */
typedef struct kf_draw {
    double weight;
    const double *means;
} kf_draw;
/* Completes rows [from, to) of product s: applies the activation, or turns the
 * product into deltas. */
void kf_passes_done(kf_passes *p, size_t s, kf_draw draw, size_t from,
                    size_t to);
/* Returns the sparsity penalty for these mean activations. */
double kf_passes_penalty(const kofn_net *net, const double *means);
/* Returns the length of `means`: 0 without a sparsity penalty. */
size_t kf_passes_means(const kofn_net *net);

/* ---- activation.c -------------------------------------------------------- */

/* Replaces each x by f(x). */
void kf_activation_apply(kofn_activation f, double *x, size_t n);
/* Multiplies d by f'(s), where x is f(s). */
void kf_activation_slope(kofn_activation f, const double *x, double *d,
                         size_t n);

/* ---- order.c ------------------------------------------------------------- */

/* Returns the point, of m, at place i in this epoch's order. The order is a
 * permutation of the points; each place is computed on its own. */
size_t kf_order_at(uint64_t seed, uint64_t epoch, size_t i, size_t m);
/* Returns the place of this point in that order. */
size_t kf_order_place(uint64_t seed, uint64_t epoch, size_t point, size_t m);

/* ---- train_sum.c --------------------------------------------------------- */

/* The points of a batch that one round is about. */
typedef struct kf_batch {
    uint64_t seed, epoch;
    size_t points;   /* number of points in all */
    size_t from, to; /* places in the epoch's order */
    bool means;      /* true: compute the means of hidden units instead of the
                        gradient */
} kf_batch;

/* Numbers in `out` after the gradient: the mean cost, the share of labels
 * predicted correctly, and the share of points included, each of the whole
 * batch. If means are wanted, `out` has the means instead of the gradient. A
 * code may mix these numbers, so none is much larger than the others. */
#define KF_SUM_EXTRA 3
/* Returns the columns of the workers' rows of points. Targets of more than one
 * number follow the point in its row. */
size_t kf_train_columns(const kofn_net *net, bool classes);
kofn_status kf_train_part(const kofn_net *net, bool classes,
                          const kf_batch *batch, const double *means,
                          const kofn_rows *part, double *out);
/* kf_train_input returns the length of a round's input. kf_train_ask writes
 * the numbers in front of the means and the weights. */
size_t kf_train_input(const kofn_net *net);
void kf_train_ask(const kofn_net *net, bool classes, const kf_batch *batch,
                  const double *means, double *in);
/* The function for kofn_formulas. */
kofn_status kf_train_formula(const double *arg, const kofn_rows *part,
                             const kofn_matrix *in, kofn_matrix *out);

#endif
