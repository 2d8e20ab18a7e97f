/* net.h -- dense networks inside: weights, and the passes through the layers,
 * written once for all who multiply in whatever way.
 *
 * A network and passes are freed by the functions beside those that make them.
 * Passes borrow the network, and may not change its weights. */
#ifndef KF_NET_H
#define KF_NET_H

#include "base/base.h"

#include <kofn/train.h>

struct kofn_net {
    kofn_net_shape shape; /* its widths are those below */
    size_t widths[KOFN_NET_MOST + 1];
    size_t total;                 /* weights of all layers; one layer's follow
                                      the other's, W[0] first             */
    kofn_matrix W[KOFN_NET_MOST]; /* W[l] makes layer l + 1               */
};

/* ---- net.c --------------------------------------------------------------- */

kofn_status kf_net_check(const kofn_net_shape *shape);
/* All but the weights. */
void kf_net_fill(kofn_net *net, const kofn_net_shape *shape);
/* Let the weights be these, which are somebody else's. */
void kf_net_lay(kofn_net *net, void *weights);
/* Of a shape that was checked, with weights that are not set yet; and with
 * those of another network.  Freed by kofn_net_free. */
kofn_status kf_net_of_shape(kofn_net **out, const kofn_net_shape *shape);
kofn_status kf_net_copy(kofn_net **out, const kofn_net *net);
/* Weights as doubles, layer after layer; and back. */
void kf_net_read(const kofn_net *net, double *to);
void kf_net_write(kofn_net *net, const double *from);

/* Does what y says of m points fit?  *classes: they are labels. */
kofn_status kf_net_check_targets(const kofn_net *net, size_t m,
                                 const kofn_matrix *y, const char *name,
                                 bool *classes);
kofn_status kf_net_check_points(const kofn_net *net, const kofn_matrix *X,
                                const char *name);

/* ---- passes.c ------------------------------------------------------------ */

/* The three kinds of products of an iteration, 3 L - 1 in all. */
typedef enum kf_pass {
    KF_PASS_FORWARD, /* X_{l-1} W_l', a x b'                    */
    KF_PASS_BACK,    /* D_l W_l without its biases, a x b; l >= 2 */
    KF_PASS_GRADIENT /* D_l' X_{l-1}, a' x b                    */
} kf_pass;

/* out = that product; whoever makes the passes says how. */
typedef struct kf_multiplier {
    kofn_status (*multiply)(void *ud, kf_pass pass, size_t layer,
                            const kofn_matrix *a, const kofn_matrix *b,
                            kofn_matrix *out);
    void *ud;
} kf_multiplier;

/* By BLAS on this thread. */
extern const kf_multiplier kf_multiplier_plain;

/* A batch on its way: the first `count` of `rows` rows are points, the others
 * zero throughout, ones for the biases included. */
typedef struct kf_passes {
    const kofn_net *net;
    bool classes; /* targets are labels */
    size_t room, rows, count;
    kofn_matrix X[KOFN_NET_MOST + 1]; /* rows x (width + 1), the last without
                                         the column of ones               */
    kofn_matrix D[KOFN_NET_MOST];     /* by layer, from 0                  */
    kofn_matrix T;                    /* what should come out, or labels   */
    double *row, *other;              /* scratch                           */
    void *memory;
} kf_passes;

kofn_status kf_passes_new(kf_passes *p, const kofn_net *net, bool classes,
                          size_t room);
void kf_passes_free(kf_passes *p);
/* An empty batch. */
void kf_passes_begin(kf_passes *p);
/* Puts one point more; y: its label or what should come out, NULL: not
 * known. */
void kf_passes_put(kf_passes *p, const double *x, const double *y);
/* Fill up with zero rows. */
void kf_passes_pad(kf_passes *p, size_t rows);
kofn_status kf_passes_forward(kf_passes *p, const kf_multiplier *by);
/* sums[j] += what hidden unit j of the first layer was, over the points. */
void kf_passes_hidden(kf_passes *p, double *sums);
/* The means of hidden units, where there is a penalty on them, of a batch that
 * is here as a whole, and what each of its points is as much as. */
void kf_passes_know_means(kf_passes *p, double *means);
double kf_passes_weight(const kf_passes *p);
/* The sum of costs, and how many labels are told right; the last layer's
 * deltas, times `weight`, are kept for the way back. */
void kf_passes_cost(kf_passes *p, double weight, double *cost, double *right);
/* The same of such a batch: the mean cost with its penalty, for which `means`
 * become known. */
double kf_passes_mean_cost(kf_passes *p, double *means, double *right);
/* Are the deltas of its points numbers? */
bool kf_passes_finite(const kf_passes *p);
/* gradient[l] (of W_{l+1}'s shape) of `weight` times the sum of the costs; with
 * a penalty on sparsity `means` are of the whole batch. */
kofn_status kf_passes_back(kf_passes *p, double weight, const double *means,
                           const kf_multiplier *by, kofn_matrix *gradient);
/* The same a product at a time, for who has others to make meanwhile: number s
 * = 0 .. products - 1 is wanted, made, and done.  Before number `layers`, the
 * first on the way back, comes the cost. */
typedef struct kf_wanted {
    kf_pass pass;
    size_t layer;
    kofn_matrix a, b, out;
} kf_wanted;
size_t kf_passes_products(const kf_passes *p);
kf_wanted kf_passes_wanted(const kf_passes *p, size_t s,
                           const kofn_matrix *gradient);
/* How activations are drawn towards their sparse mean, on the way back: `means`
 * of the points, each of which is as much as `weight`. */
typedef struct kf_draw {
    double weight;
    const double *means;
} kf_draw;
/* Of the rows [from, to) of what was made. */
void kf_passes_done(kf_passes *p, size_t s, kf_draw draw, size_t from,
                    size_t to);
/* The penalty on sparsity where hidden units are such on the average. */
double kf_passes_penalty(const kofn_net *net, const double *means);
/* Numbers of `means`: 0 without such a penalty. */
size_t kf_passes_means(const kofn_net *net);

/* ---- activation.c -------------------------------------------------------- */

/* Each of x becomes f of it. */
void kf_activation_apply(kofn_activation f, double *x, size_t n);
/* x was f(s): multiplies d by f'(s). */
void kf_activation_slope(kofn_activation f, const double *x, double *d,
                         size_t n);

/* ---- order.c ------------------------------------------------------------- */

/* The point, of m, that is at place i of this epoch's order: a permutation of
 * the points, each place found without the others. */
size_t kf_order_at(uint64_t seed, uint64_t epoch, size_t i, size_t m);
/* And at which place this point is. */
size_t kf_order_place(uint64_t seed, uint64_t epoch, size_t point, size_t m);

/* ---- train_sum.c --------------------------------------------------------- */

/* Some of the points of a batch, of which this is asked. */
typedef struct kf_batch {
    uint64_t seed, epoch;
    size_t points;   /* there are */
    size_t from, to; /* places in the order of the epoch */
    bool means;      /* not the gradient, but the means of hidden units */
} kf_batch;

/* out: gradient, layer after layer, and of the whole batch the mean cost, and
 * what share is told right and is there; or instead of the gradient the means.
 * A code may mix these: none is much larger than the others. */
#define KF_SUM_EXTRA 3
/* Columns of the rows of points: where what should come out is more than a
 * number it follows them. */
size_t kf_train_columns(const kofn_net *net, bool classes);
kofn_status kf_train_part(const kofn_net *net, bool classes,
                          const kf_batch *batch, const double *means,
                          const kofn_rows *part, double *out);
/* The round's input: how long it is, and what stands before the means and the
 * weights. */
size_t kf_train_input(const kofn_net *net);
void kf_train_ask(const kofn_net *net, bool classes, const kf_batch *batch,
                  const double *means, double *in);
/* As in kofn_formulas. */
kofn_status kf_train_formula(const double *arg, const kofn_rows *part,
                             const kofn_matrix *in, kofn_matrix *out);

#endif
