/* train.h -- dense neural networks, and their training by the workers of a job.
 *
 * For C programs that train such a network.  There are three ways: with sums of
 * gradients, with coded weights at the workers, or on a mesh without a
 * coordinator.
 *
 * Layer l computes X_l = f(X_{l-1} W_l'), with one row for each point; X_0 are
 * the points.  The last column of W_l is the biases; it is multiplied by 1.
 * The training minimises the mean loss over a batch of points, plus penalties
 * (docs/math/training.md).
 */
#ifndef KOFN_TRAIN_H
#define KOFN_TRAIN_H

#include <kofn.h>
#include <kofn/peer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- networks ------------------------------------------------------------ */

/* Function that a layer applies to its products. */
typedef enum kofn_activation {
    KOFN_SIGMOID,
    KOFN_TANH,
    KOFN_RELU,
    KOFN_LINEAR
} kofn_activation;

/* The loss that a training minimises. */
typedef enum kofn_net_loss {
    /* Labels are 0, 1, ...; the loss is minus the log of the softmax
     * probability of the label. */
    KOFN_NET_LOSS_SOFTMAX,
    /* Half of the squared distance to the target: numbers, or 1 at the label
     * and 0 elsewhere. */
    KOFN_NET_LOSS_SQUARES
} kofn_net_loss;

#define KOFN_NET_MOST 16 /* layers */

/* Layers, widths and loss of a network. */
typedef struct kofn_net_shape {
    size_t size;   /* sizeof(kofn_net_shape) */
    size_t layers; /* 1 .. KOFN_NET_MOST     */
    /* layers + 1 numbers: the width of a point and of the output of each
     * layer. */
    const size_t *widths;
    kofn_activation activation; /* of all layers but the last       */
    kofn_activation output;     /* of the last; not used by SOFTMAX */
    kofn_net_loss loss;
    kofn_dtype dtype; /* of weights and products                    */
    bool autoencoder; /* the points are the targets; SQUARES only   */
    /* Autoencoders with two layers and a hidden layer of sigmoids: the desired
     * mean activation, and the weight of the Kullback-Leibler penalty on it.  A
     * weight of 0 means no penalty. */
    double sparsity;
    double sparsity_weight;
} kofn_net_shape;
#define KOFN_NET_SHAPE_INIT                                                    \
    {                                                                          \
        sizeof(kofn_net_shape), 0, NULL, KOFN_SIGMOID, KOFN_SIGMOID,           \
            KOFN_NET_LOSS_SOFTMAX, KOFN_F64, false, 0, 0                       \
    }

/* A dense neural network with its weights. */
typedef struct kofn_net kofn_net;

/* Makes a network.  Weights are uniform in +-sqrt(6 / (inputs + outputs)), and
 * biases are 0.  Each row of weights is drawn separately from `seed`.  The
 * caller frees *out with kofn_net_free.
 * KOFN_INVAL, KOFN_SHAPE: the shape is invalid. */
KOFN_API kofn_status kofn_net_new(kofn_net **out, const kofn_net_shape *shape,
                                  uint64_t seed);
/* Frees the network; NULL is allowed. */
KOFN_API void kofn_net_free(kofn_net *net);
/* Fills *shape, which is initialised with KOFN_NET_SHAPE_INIT.  Its widths are
 * owned by the network. */
KOFN_API void kofn_net_describe(const kofn_net *net, kofn_net_shape *shape);
/* Returns W_l, l = 1 .. layers: widths[l] x (widths[l-1] + 1), owned by the
 * network.  The caller may read and write its numbers.  NULL if there is no
 * such layer. */
KOFN_API const kofn_matrix *kofn_net_weights(const kofn_net *net, size_t l);
/* Computes the outputs of the network for the rows of X (m x widths[0],
 * float64) into `out`: m x the last width, float64, contiguous.  With SOFTMAX
 * they are probabilities.
 * KOFN_INVAL, KOFN_SHAPE: X or out is invalid.  KOFN_NONFINITE: X or an output
 * has a NaN or an infinity. */
KOFN_API kofn_status kofn_net_predict(const kofn_net *net, const kofn_matrix *X,
                                      kofn_matrix *out);
/* Quality of a network on some points. */
typedef struct kofn_score {
    double loss;     /* mean loss, without penalties               */
    double accuracy; /* share of correct labels; NaN without labels */
} kofn_score;
/* Computes the score for points X (float64) and targets y (float64): m labels,
 * or m x the last width of numbers.  y is NULL for an autoencoder.
 * KOFN_INVAL, KOFN_SHAPE, KOFN_NONFINITE: X or y is invalid. */
KOFN_API kofn_status kofn_net_score(const kofn_net *net, const kofn_matrix *X,
                                    const kofn_matrix *y, kofn_score *score);

/* ---- training ------------------------------------------------------------ */

/* A step of a training. */
typedef struct kofn_train_step {
    unsigned step, epoch;  /* 1 is the first                          */
    unsigned steps;        /* of the whole training                   */
    double loss, accuracy; /* of the batch, before the step           */
    /* Scores of the held-out points, after the last step of an epoch; otherwise
     * NaN. */
    double test_loss, test_accuracy;
    bool partial; /* some gradients lack some points */
    /* The weights, layer after layer, followed by the velocities:
     * 2 kofn_training_size() numbers.  NULL if the workers store them;
     * kofn_training_state fetches them. */
    const double *state;
} kofn_train_step;

/* Called after every step with the report of its rounds.  During a step it is
 * also called with rep == NULL, at least every tenth of a second.  Any value
 * but 0 stops the training, which then returns KOFN_AGAIN. */
typedef int (*kofn_train_watch)(void *ud, const kofn_train_step *now,
                                const kofn_report *rep);

/* Options of a training. */
typedef struct kofn_train_options {
    size_t size;     /* sizeof(kofn_train_options)              */
    double step;     /* step length; 0 means 0.1                */
    double momentum; /* 0 .. less than 1                        */
    bool nesterov;   /* Nesterov's momentum; needs a momentum   */
    double l2;       /* weight of |W|^2 / 2, biases included    */
    size_t batch;    /* points in a batch; 0 means 32           */
    unsigned epochs; /* passes over all points; 0 means 100     */
    uint64_t seed;   /* determines the order of the points      */
    const kofn_matrix *test_X, *test_y; /* held-out points, or NULL */
    kofn_train_watch watch;             /* NULL: none               */
    void *watch_ud;                     /* passed to watch          */
    /* Resumes after this step, which a watch was given, from its state.  The
     * result is that of a run without a break.  NULL, or step 0: starts
     * anew. */
    const kofn_train_step *resume;
    /* For weights stored at workers, with `errors`: number of steps between
     * calls of kofn_scrub; 0: never.  A mesh compares its blocks then, unless
     * kofn_peer_options.scrub is set. */
    unsigned scrub;
} kofn_train_options;
#define KOFN_TRAIN_OPTIONS_INIT                                                \
    {                                                                          \
        sizeof(kofn_train_options), 0, 0, false, 0, 0, 0, 0, NULL, NULL, NULL, \
            NULL, NULL, 0                                                      \
    }

/* The result of a training. */
typedef struct kofn_train_result {
    size_t size; /* sizeof(kofn_train_result) */
    unsigned steps;
    double loss, accuracy, test_loss, test_accuracy; /* of the last step */
    kofn_report rounds; /* totals of all rounds; the job owns its arrays */
} kofn_train_result;
#define KOFN_TRAIN_RESULT_INIT                                                 \
    {                                                                          \
        sizeof(kofn_train_result), 0, 0, 0, 0, 0, KOFN_REPORT_OF_(0)           \
    }

/* A training: a network, points and options. */
typedef struct kofn_training kofn_training;

/* Makes a training of `net` with points X and targets y, which are as in
 * kofn_net_score.  Borrows all three until kofn_training_free.  Options are
 * copied, but not what they point to; `opt` may be NULL.
 * KOFN_INVAL, KOFN_SHAPE, KOFN_NONFINITE: an argument or option is invalid. */
KOFN_API kofn_status kofn_training_new(kofn_training **out, kofn_net *net,
                                       const kofn_matrix *X,
                                       const kofn_matrix *y,
                                       const kofn_train_options *opt);
/* Returns the number of weights, biases included. */
KOFN_API size_t kofn_training_size(const kofn_training *t);
/* Writes the default scheme string into `out` (`size` bytes) and returns `out`.
 * The command and Python use it if no scheme is given.  It is gpd for a mesh,
 * and otherwise gc:d=2 (uncoded for one worker): any worker may be missing, and
 * each point is computed twice.  No other scheme that may lose a worker
 * computes less.  Allocates no memory. */
KOFN_API const char *kofn_training_scheme(const kofn_training *t,
                                          size_t workers, bool mesh, char *out,
                                          size_t size);
/* First way, sums of gradients: fills *pb with the problem for which the plan
 * must be made, a KOFN_SUM over parts of a batch.  Allocates no memory. */
KOFN_API kofn_status kofn_training_problem(const kofn_training *t,
                                           kofn_problem *pb);
/* Second way, coded weights: makes a plan for each layer, which serves both
 * products of W_l.  They are for a job of kofn_open_all.  Its workers then
 * store the weights and not the points.  The caller frees the plans.  The
 * schemes `gpd` and `polydot` without sizes use the most blocks that let two
 * workers be missing.  It returns the statuses of kofn_plan_new and
 * kofn_plan_serve_left. */
KOFN_API kofn_status kofn_training_plans(const kofn_training *t,
                                         const char *spec, size_t workers,
                                         uint64_t seed, kofn_plan **plan);
/* Places the points, or the weights, on a job with such a plan or plans.  Close
 * the job before freeing the training.
 *
 * If it places the weights, the workers compute all products with them, and all
 * steps (kofn_update).  The network gets the weights back when the training
 * ends.  If a watch stops it during a round, it gets those of the last
 * kofn_training_state instead.  It returns the failures of kofn_place_rows or
 * kofn_place_at. */
KOFN_API kofn_status kofn_training_place(kofn_training *t, kofn_job *job);
/* Sets *state to the state after the present step, fetched from the workers if
 * they store it.  Call it from a watch after a step.  The state is valid until
 * the next step.
 * KOFN_STATE: no training is running.
 * Otherwise it returns the failures of kofn_fetch. */
KOFN_API kofn_status kofn_training_state(kofn_training *t,
                                         const double **state);
/* Trains the network with the workers of the job.  If it fails on the way, the
 * network is that of the last complete step.  `res` may be NULL.
 *
 * KOFN_PARTIAL: complete, but the scheme left late workers out, so some
 * gradients lack some points.
 * KOFN_AGAIN: the watch stopped it.
 * KOFN_STATE: kofn_training_place was not called.
 * KOFN_UNSUITED: `scrub` is set and the workers do not store the weights.
 * KOFN_NONFINITE: weights or the loss became infinite.
 * Otherwise it returns the failures of kofn_put, kofn_take and kofn_update. */
KOFN_API kofn_status kofn_train(kofn_training *t, kofn_train_result *res);
/* Makes the same steps on this thread, without workers.
 * KOFN_AGAIN: the watch stopped it.
 * KOFN_NONFINITE: weights or the loss became infinite. */
KOFN_API kofn_status kofn_train_plain(kofn_training *t, kofn_train_result *res);
/* Third way: makes the same steps as a node of a mesh (<kofn/peer.h>).  All
 * nodes call it with the same network, points, options and plans
 * (kofn_training_plans).  The watch of the training is not used.  Each node
 * ends with the same weights.
 *
 * A step takes 2 layers - 1 iterates.  The watch of `peers` sees, as the first
 * two scalars, loss and accuracy of the last batch that went forward.  It
 * returns the statuses of kofn_peer_run. */
KOFN_API kofn_status kofn_train_peers(kofn_transport *transport,
                                      kofn_training *t,
                                      const kofn_plan *const *plan,
                                      const kofn_peer_options *peers,
                                      kofn_train_result *res,
                                      kofn_node_view *end);
/* Frees the training; NULL is allowed. */
KOFN_API void kofn_training_free(kofn_training *t);

/* ---- networks side by side ----------------------------------------------- */

/* A step of several networks that are trained together on a stream of products
 * (KOFN_STREAM, docs/stream.md).  An iteration of a network has 3 layers - 1
 * products.  Products of the networks alternate, so each is computed while
 * others are decoded.  A scheme with a delay needs at least `delay` + 2
 * networks; then none waits for a decoding. */
typedef struct kofn_nets_step {
    size_t net;           /* network with a completed product        */
    unsigned iteration;   /* 1 is the first                          */
    unsigned product, of; /* 1 .. `of`; the last completes the step  */
    /* Both are NaN, except with the last product.  `loss` is that of the batch,
     * before the step.  `apart`, with `verify`, is the relative distance of the
     * weights from those of the same steps without workers. */
    double loss;
    double apart;
} kofn_nets_step;

/* Called after every product with its report.  During a wait it is also called
 * with now == NULL, at least every tenth of a second.  Any value but 0 stops
 * the training, which then returns KOFN_AGAIN. */
typedef int (*kofn_nets_watch)(void *ud, const kofn_nets_step *now,
                               const kofn_report *rep);

/* Options of a training of several networks. */
typedef struct kofn_nets_options {
    size_t size; /* sizeof(kofn_nets_options) */
    /* Step length of each network; NULL means 0.1. */
    const double *step;
    /* Points in a batch, the same batches for all networks; 0 means 32. */
    size_t batch;
    unsigned iterations;   /* of each network; 0 means 1              */
    uint64_t seed;         /* determines the order of the points      */
    bool verify;           /* also makes every step on this thread    */
    kofn_nets_watch watch; /* NULL: none                              */
    void *watch_ud;        /* passed to watch                         */
} kofn_nets_options;
#define KOFN_NETS_OPTIONS_INIT                                                 \
    {                                                                          \
        sizeof(kofn_nets_options), NULL, 0, 0, 0, false, NULL, NULL            \
    }

/* A training of several networks. */
typedef struct kofn_nets kofn_nets;

/* Makes a training of 1 .. KOFN_OPEN_MOST networks, of the type of the plan and
 * without a penalty on sparsity.  X and y are as in kofn_net_score.  Borrows
 * networks, X and y until kofn_nets_free.  The options are copied, except what
 * watch_ud points to.
 * KOFN_INVAL, KOFN_SHAPE, KOFN_NONFINITE: an argument or option is invalid.
 * KOFN_UNSUITED: a network has a penalty on sparsity. */
KOFN_API kofn_status kofn_nets_new(kofn_nets **out, kofn_net *const *net,
                                   size_t nets, const kofn_matrix *X,
                                   const kofn_matrix *y,
                                   const kofn_nets_options *opt);
/* Runs all iterations, once.  If it fails, each network is that of its last
 * step.
 * KOFN_STATE: it was called before.
 * KOFN_UNSUITED: the delay is too long for this number of networks.
 * KOFN_AGAIN: the watch stopped it.
 * Otherwise it returns the failures of kofn_put_pair and kofn_take. */
KOFN_API kofn_status kofn_nets_train(kofn_nets *nets, kofn_job *job);
/* Frees the training; NULL is allowed.  Close the job first, because workers
 * may still read its operands. */
KOFN_API void kofn_nets_free(kofn_nets *nets);

#ifdef __cplusplus
}
#endif
#endif
