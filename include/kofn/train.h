/* train.h -- dense neural networks, and their training by the workers of a job.
 *
 * For whoever trains such a network from C: on sums of gradients, on weights that
 * live coded with the workers, or without a master.
 *
 * Layer l makes X_l = f(X_{l-1} W_l'), a row a point, X_0 being the points and
 * the last column of each W_l, which is multiplied by 1, the biases.  What is
 * minimised is the mean cost over a batch of points, and penalties:
 * docs/math/training.md.
 */
#ifndef KOFN_TRAIN_H
#define KOFN_TRAIN_H

#include <kofn.h>
#include <kofn/peer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- networks ------------------------------------------------------------ */

typedef enum kofn_activation {
    KOFN_SIGMOID,
    KOFN_TANH,
    KOFN_RELU,
    KOFN_LINEAR
} kofn_activation;

typedef enum kofn_cost {
    KOFN_COST_SOFTMAX, /* labels 0, 1, ...: minus the log of the share that the
                          softmax gives to the right one                     */
    KOFN_COST_SQUARES  /* half of the square of the distance to what should be:
                          numbers, or 1 at the label and 0 elsewhere         */
} kofn_cost;

#define KOFN_NET_MOST 16 /* layers */

typedef struct kofn_net_shape {
    size_t size;          /* sizeof(kofn_net_shape)                          */
    size_t layers;        /* 1 .. KOFN_NET_MOST                              */
    const size_t *widths; /* layers + 1: of a point, and of what layers make */
    kofn_activation activation; /* of all layers but the last                */
    kofn_activation output;     /* of the last one; SOFTMAX: not used        */
    kofn_cost cost;
    kofn_dtype dtype;       /* of weights and products                      */
    bool autoencoder;       /* points are what should come out; SQUARES     */
    double sparsity;        /* of an autoencoder of two layers, the hidden one
                                of sigmoids: what they should be on the
                                average                                      */
    double sparsity_weight; /* of the Kullback-Leibler penalty on that; 0:
                                there is none                                */
} kofn_net_shape;
#define KOFN_NET_SHAPE_INIT                                                    \
    {                                                                          \
        .size = sizeof(kofn_net_shape)                                         \
    }

typedef struct kofn_net kofn_net;

/* Weights are uniform in +-sqrt(6/(inputs + outputs)), each row drawn for
 * itself from the seed, biases 0. */
KOFN_API kofn_status kofn_net_new(kofn_net **out, const kofn_net_shape *shape,
                                  uint64_t seed);
KOFN_API void kofn_net_free(kofn_net *net);
/* Begin `shape` with KOFN_NET_SHAPE_INIT; its widths are the network's. */
KOFN_API void kofn_net_describe(const kofn_net *net, kofn_net_shape *shape);
/* W_l, l = 1 .. layers: widths[l] x (widths[l-1] + 1).  Yours to read and write;
 * NULL: there is no such layer. */
KOFN_API const kofn_matrix *kofn_net_weights(const kofn_net *net, size_t l);
/* Writes the outputs of the net for the rows of X (float64): m x the last
 * width, contiguous float64; shares of classes that sum to 1 with SOFTMAX. */
KOFN_API kofn_status kofn_net_predict(const kofn_net *net, const kofn_matrix *X,
                                      kofn_matrix *out);
typedef struct kofn_score {
    double loss;     /* mean cost, without penalties                        */
    double accuracy; /* share of labels told right; NaN where there are none */
} kofn_score;
/* y (float64): m labels, or m x the last width of what should come out; NULL
 * with an autoencoder. */
KOFN_API kofn_status kofn_net_score(const kofn_net *net, const kofn_matrix *X,
                                    const kofn_matrix *y, kofn_score *score);

/* ---- training ------------------------------------------------------------ */

/* A step of it. */
typedef struct kofn_train_step {
    unsigned step, epoch;  /* 1 is the first                                  */
    unsigned steps;        /* there will be, all together                     */
    double loss, accuracy; /* of the batch, before the step        */
    double test_loss, test_accuracy; /* after the last step of an epoch; NaN */
    bool partial;        /* some gradients were of some points only         */
    const double *state; /* weights, layer after layer, and then velocities:
                             2 kofn_training_size() numbers; NULL where they are
                             with the workers: kofn_training_state             */
} kofn_train_step;

/* Called after every step with what its rounds were, and with rep == NULL at
 * least every tenth of a second while one lasts; a non-zero answer stops the
 * training, which then returns KOFN_AGAIN. */
typedef int (*kofn_train_watch)(void *ud, const kofn_train_step *now,
                                const kofn_report *rep);

typedef struct kofn_train_options {
    size_t size;     /* sizeof(kofn_train_options)                           */
    double step;     /* length of a step; 0: 0.1                             */
    double momentum; /* 0 .. 1                                               */
    bool nesterov;
    double l2;       /* weight of |W|^2/2, biases included                   */
    size_t batch;    /* points of a step; 0: 64                              */
    unsigned epochs; /* times through all points; 0: 1                       */
    uint64_t seed;   /* order of the points                                  */
    const kofn_matrix *test_X, *test_y; /* held-out points, or NULL          */
    kofn_train_watch watch;
    void *watch_ud;
    /* Go on after this step, which a watch was shown, with its state, as if
     * there had been no break.  NULL, or of step 0: begin. */
    const kofn_train_step *resume;
    /* Where weights live with the workers of a job that looks for errors:
     * kofn_scrub after every so many steps; 0: never.  Nodes without a master
     * compare their blocks then (kofn_peer_options.scrub). */
    unsigned scrub;
} kofn_train_options;
#define KOFN_TRAIN_OPTIONS_INIT                                                \
    {                                                                          \
        .size = sizeof(kofn_train_options)                                     \
    }

typedef struct kofn_train_result {
    size_t size; /* sizeof(kofn_train_result) */
    unsigned steps;
    double loss, accuracy, test_loss, test_accuracy; /* of the last step */
    kofn_report rounds; /* all together; its tables are the job's */
} kofn_train_result;
#define KOFN_TRAIN_RESULT_INIT                                                 \
    {                                                                          \
        .size = sizeof(kofn_train_result)                                      \
    }

typedef struct kofn_training kofn_training;

/* Borrows net, X and y as for kofn_net_score until kofn_training_free; the
 * options are copied, but for what they point to. */
KOFN_API kofn_status kofn_training_new(kofn_training **out, kofn_net *net,
                                       const kofn_matrix *X,
                                       const kofn_matrix *y,
                                       const kofn_train_options *opt);
/* How many weights there are. */
KOFN_API size_t kofn_training_size(const kofn_training *t);
/* The problem that a plan for the training must be made for: KOFN_SUM, the sum
 * of the gradients of parts of a batch. */
KOFN_API kofn_status kofn_training_problem(const kofn_training *t,
                                           kofn_problem *pb);
/* Or have the weights live with the workers, coded, and not the points: a plan a
 * layer, for a job of kofn_open_all, each of which serves both products of W_l.
 * `gpd` and `polydot` without sizes take as many blocks as leave two workers who
 * need not answer. */
KOFN_API kofn_status kofn_training_plans(const kofn_training *t,
                                         const char *spec, size_t workers,
                                         uint64_t seed, kofn_plan **plan);
/* Hand out what the job's plans are for, the points or the weights; it must be
 * closed before the training is freed.  Where it is the weights every product with
 * them is the workers' then, as are the steps (kofn_update); the net has them again
 * when the training ends, if not by a watch that had enough while a round lasted:
 * then those of the last kofn_training_state. */
KOFN_API kofn_status kofn_training_place(kofn_training *t, kofn_job *job);
/* From a watch that was called after a step: the state then, which is fetched from
 * the workers where they have it; until the next step. */
KOFN_API kofn_status kofn_training_state(kofn_training *t,
                                         const double **state);
/* Train the net with the workers of that job.  KOFN_PARTIAL: done, but some
 * gradients were of some of the points.  When it fails on the way the net is
 * what the last step made. */
KOFN_API kofn_status kofn_train(kofn_training *t, kofn_train_result *res);
/* The same steps on this thread alone. */
KOFN_API kofn_status kofn_train_plain(kofn_training *t, kofn_train_result *res);
/* The same steps by the nodes of a mesh (<kofn/peer.h>), all of which call this with
 * the same net, points, options, but for the watch, which is not used, and plans, of
 * kofn_training_plans.  Each ends with the same weights.  The peers' watch sees the
 * loss and the accuracy of the last batch that went forward in the first two of its
 * scalars; a step is 2 layers - 1 iterates. */
KOFN_API kofn_status kofn_train_peers(kofn_transport *transport,
                                      kofn_training *t,
                                      const kofn_plan *const *plan,
                                      const kofn_peer_options *peers,
                                      kofn_train_result *res,
                                      kofn_node_view *end);
KOFN_API void kofn_training_free(kofn_training *t);

/* ---- networks side by side ----------------------------------------------- */

/* Several networks trained together on a stream of products (KOFN_STREAM,
 * docs/stream.md): each of the 3 layers - 1 products of an iteration is put while
 * those of the other networks are under way, one after the other in turn.  A scheme
 * that has a delay is for `delay` + 2 networks at least: then nobody waits for a
 * decoding. */
typedef struct kofn_nets_step {
    size_t net;           /* whose product is over                        */
    unsigned iteration;   /* 1 is the first                               */
    unsigned product, of; /* 1 .. `of`: with the last the step is taken   */
    double loss;          /* of the batch, before the step                */
    double apart;         /* verify: how far the weights are from those of
                                 the same steps without workers, relatively */
} kofn_nets_step;         /* the last two with the last product, else NaN */

/* Called when a product is over with what came of it, and with now == NULL at
 * least every tenth of a second while one is waited for; a non-zero answer stops
 * the training, which then returns KOFN_AGAIN. */
typedef int (*kofn_nets_watch)(void *ud, const kofn_nets_step *now,
                               const kofn_report *rep);

typedef struct kofn_nets_options {
    size_t size;         /* sizeof(kofn_nets_options)                         */
    const double *step;  /* length of the steps of each; NULL: 0.1            */
    size_t batch;        /* points of a step, which all networks take in the
                            same order; 0: 64                                 */
    unsigned iterations; /* of each; 0: 1                                     */
    uint64_t seed;       /* order of the points                               */
    bool verify;         /* take every step on this thread as well            */
    kofn_nets_watch watch;
    void *watch_ud;
} kofn_nets_options;
#define KOFN_NETS_OPTIONS_INIT                                                 \
    {                                                                          \
        .size = sizeof(kofn_nets_options)                                      \
    }

typedef struct kofn_nets kofn_nets;

/* Borrows the networks, X and y as for kofn_net_score until kofn_nets_free; the
 * options are copied, but for watch_ud.  1 to KOFN_OPEN_MOST networks, of the
 * plan's type and without a penalty on sparsity. */
KOFN_API kofn_status kofn_nets_new(kofn_nets **out, kofn_net *const *net,
                                   size_t nets, const kofn_matrix *X,
                                   const kofn_matrix *y,
                                   const kofn_nets_options *opt);
/* All iterations, once.  A network is what its last step made.  KOFN_UNSUITED: the
 * delay is too long for so few networks. */
KOFN_API kofn_status kofn_nets_train(kofn_nets *nets, kofn_job *job);
/* After the job was closed: workers may read what it has put. */
KOFN_API void kofn_nets_free(kofn_nets *nets);

#ifdef __cplusplus
}
#endif
#endif
