/* learn.h -- iterations and regression, computed by the rounds of a job.
 *
 * For programs that run po+ l2/2 |w|^2er iteration, PageRank or a linear model
 * on the workers of a job.  <kofn.h> includes this header.
 */
#ifndef KOFN_LEARN_H
#define KOFN_LEARN_H

#include <kofn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- iterations ---------------------------------------------------------- */

/* Called after every iteration with its report.  While a round lasts, it is
 * also called with rep == NULL, at least every tenth of a second.  Any value
 * but 0 stops the iteration, which then returns KOFN_AGAIN. */
typedef int (*kofn_watch)(void *ud, unsigned iteration, double change,
                          const kofn_report *rep);

/* Options of power iteration and PageRank. */
typedef struct kofn_iterate_options {
    size_t size;             /* sizeof(kofn_iterate_options)              */
    double tol;              /* converged below this change; 0 means 1e-10 */
    unsigned max_iterations; /* 0 means 200                                */
    /* PageRank: d, the probability of following an arc, in (0, 1]; 0 means
     * 0.85, and KOFN_NO_DAMPING means d = 0. */
    double damping;
    kofn_watch watch; /* NULL: none                                 */
    void *watch_ud;   /* passed to watch                            */
    /* Resumes after these iterations, from the vector that they made, which the
     * caller puts into v.  The result is that of a run without a break.  NULL:
     * starts anew. */
    const struct kofn_iterate_result *resume;
    /* PageRank: where jumps go, and where nodes without arcs point.  Each has a
     * weight for each node (n x 1, float64, not negative, not all 0), which is
     * divided by their sum.  NULL: `personalize` weighs all nodes equally, and
     * `sinks` is as `personalize`.  Borrowed during the call. */
    const kofn_matrix *personalize, *sinks;
    /* PageRank: v holds the start, which is divided by its sum, a number above
     * 0; else it starts from 1 / n. */
    bool warm;
} kofn_iterate_options;
#define KOFN_NO_DAMPING (-1.0) /* the damping 0: every step is a jump */
#define KOFN_ITERATE_OPTIONS_INIT                                              \
    {                                                                          \
        sizeof(kofn_iterate_options), 0, 0, 0, NULL, NULL, NULL, NULL, NULL,   \
            false                                                              \
    }

/* The result of an iteration, updated before every call of the watch. */
typedef struct kofn_iterate_result {
    size_t size; /* sizeof(kofn_iterate_result) */
    unsigned iterations;
    double change;     /* of the vector in the last iteration */
    double eigenvalue; /* power iteration only                */
    bool converged;    /* change < tol                        */
} kofn_iterate_result;
#define KOFN_ITERATE_RESULT_INIT                                               \
    {                                                                          \
        sizeof(kofn_iterate_result), 0, 0, 0, false                            \
    }

/* Computes the dominant eigenvector of a square A, which is placed on the job,
 * by power iteration: v <- A v / |A v|.  The vector v is n x 1, float64 and
 * contiguous.  It holds the start and then the result.  The change is the
 * length of the difference of two vectors, up to the sign.  `opt` and `res` may
 * be NULL.  kofn_power_peers of <kofn/peer.h> does without a job.
 *
 * KOFN_AGAIN: the watch stopped it.
 * KOFN_INVAL, KOFN_SHAPE: v is invalid or zero, or an option is out of range.
 * KOFN_NONFINITE: the vector became infinite.
 * KOFN_TOOFEW: also if a product is KOFN_PARTIAL.
 * Otherwise it returns the failures of kofn_put and kofn_take. */
KOFN_API kofn_status kofn_power(kofn_job *job, kofn_matrix *v,
                                const kofn_iterate_options *opt,
                                kofn_iterate_result *res);
/* Makes the matrix of PageRank from a graph.  The graph has an entry (i, j), a
 * weight, for each arc i -> j.  The result is its transpose, with weights
 * divided by the sum of the weights of node i, so its columns sum to 1.  The
 * array *dangling has a flag for each node, 1 if it has no outgoing arc.  The
 * caller frees both with kofn_free; they are NULL on failure.
 *
 * KOFN_SHAPE: the graph is not square.  KOFN_INVAL: it is malformed, or a
 * weight is negative.  KOFN_NONFINITE: a weight, or the sum of the weights of a
 * node, is infinite. */
KOFN_API kofn_status kofn_pagerank_matrix(kofn_sparse **out, uint8_t **dangling,
                                          const kofn_sparse *graph);
/* Computes PageRank: v <- d (M v + (sum of v over dangling nodes) s) +
 * (1 - d) p, until the L1 norm of the change is below `tol`.  The
 * vectors s and p are `sinks` and `personalize` of the options, 1 / n by
 * default, and so is the start.  KOFN_INVAL and KOFN_SHAPE also if one of them
 * is invalid.  M is the matrix of kofn_pagerank_matrix, placed on the job.  v
 * is n x 1, float64 and contiguous.  `dangling`, `opt` and `res` may be NULL.
 * It returns the statuses of kofn_power.  Source: Brin and Page, 1998. */
KOFN_API kofn_status kofn_pagerank(kofn_job *job, const uint8_t *dangling,
                                   kofn_matrix *v,
                                   const kofn_iterate_options *opt,
                                   kofn_iterate_result *res);
/* ---- regression ---------------------------------------------------------- */

/* The loss of a linear model.  A regression minimises, over m points x_i (the
 * rows of X) with labels y_i,
 *
 *     F(w) = 1/m sum_i loss(x_i . w, y_i) + ridge/2 |w|^2
 *
 * by gradient descent.  Workers compute the gradient of the sum
 * (docs/regression.md).  In the formulas below, t = x . w. */
typedef enum kofn_loss {
    KOFN_LOSS_SQUARES,  /* (t - y)^2 / 2                                     */
    KOFN_LOSS_LOGISTIC, /* log(1 + e^t) - y t; labels 0 and 1, or -1 and 1   */
    KOFN_LOSS_POISSON   /* e^t - y t; counts y >= 0                          */
} kofn_loss;

/* Method by which a regression minimises F. */
typedef enum kofn_optimizer {
    /* LBFGS.  GD if a step or a line search is given, and for schemes with sums
     * that lack some points (ignore, distr-bgd). */
    KOFN_OPTIMIZER_AUTO,
    /* Gradient descent. */
    KOFN_OPTIMIZER_GD,
    /* Nesterov's accelerated gradient. */
    KOFN_OPTIMIZER_NESTEROV,
    /* Stochastic gradient: a step uses one batch of points, in shuffled order.
     * A batch is every `batches`-th row or, with row codes, a run of strips
     * (kofn_limit). */
    KOFN_OPTIMIZER_SGD,
    /* Limited-memory BFGS with 10 pairs and its own line search, which is exact
     * for squares.  Pairs are not part of `resume`; a resumed descent starts
     * with steepest descent. */
    KOFN_OPTIMIZER_LBFGS
} kofn_optimizer;

/* Choice of the step.  L is the Lipschitz constant of the gradient, estimated
 * by 30 power iterations. */
typedef enum kofn_line_search {
    /* The option `step`; 0 means 1/L.  Poisson's loss has no L: GD uses ARMIJO
     * instead, and NESTEROV and SGD need a step. */
    KOFN_LINE_SEARCH_NONE,
    /* The minimum along the gradient. */
    KOFN_LINE_SEARCH_EXACT,
    /* Backtracking: `step`, or 16/L if it is 0, is halved until F decreases
     * enough. */
    KOFN_LINE_SEARCH_ARMIJO,
    /* The best of step 2^-k for k = 0 .. 13; a `step` of 0 means 16/L. */
    KOFN_LINE_SEARCH_GRID
} kofn_line_search;

/* An iteration: one gradient and one step. */
typedef struct kofn_regress_step {
    unsigned iteration; /* 1 is the first                               */
    double objective;   /* F at the point of the gradient; SGD: of the batch */
    double gradient;    /* norm of the gradient                         */
    double test;        /* mean loss of the held-out points at w; NaN if none */
    double step;        /* length; 0: none, because it has converged    */
    const double *w;    /* weights after the step                       */
    const double *v;    /* point of the next gradient; NESTEROV: not w  */
    double first;       /* norm of the first gradient                   */
    double lipschitz;   /* L; 0 if it was not estimated                 */
    bool partial;       /* some gradients lack some points              */
    /* The distance to the minimum is computed again once the gradient's norm is
     * below this.  0: once `tol` is met. */
    double ask;
    /* Report of the rounds that estimated L, in the iteration that did so;
     * otherwise NULL.  The iteration's own report excludes them. */
    const kofn_report *setup;
} kofn_regress_step;

/* Called after every iteration with the report of all its rounds.  During an
 * iteration it is also called with rep == NULL, at least every tenth of a
 * second.  Any value but 0 stops the descent, which then returns KOFN_AGAIN. */
typedef int (*kofn_regress_watch)(void *ud, const kofn_regress_step *now,
                                  const kofn_report *rep);

/* Options of a regression. */
typedef struct kofn_regress_options {
    size_t size; /* sizeof(kofn_regress_options) */
    kofn_loss loss;
    kofn_optimizer optimizer;
    kofn_line_search line_search; /* NONE, unless the optimizer is GD */
    double step; /* at least 0; see kofn_line_search                  */
    double l2;   /* weight of the penalty |w|^2 / 2, at least 0      */
    /* Converged if the norm of the gradient is below `tol` times that of
     * the first gradient (or that at w = 0, if it is larger), and the distance
     * to the minimum is at most sqrt(tol) |w|.  The distance is estimated from
     * products with the curvature.  It is not tested if gradients lack points
     * or belong to earlier iterates; then the norm alone decides.  0 means
     * 1e-8.  Not used by SGD. */
    double tol;
    unsigned max_iterations; /* 0 means 100                                   */
    unsigned batches;        /* SGD: number of batches; 0 means 10            */
    uint64_t seed;           /* order of batches, start of power iterations   */
    const kofn_matrix *test_X, *test_y; /* held-out points, or NULL           */
    kofn_regress_watch watch;           /* NULL: none                         */
    void *watch_ud;                     /* passed to watch                    */
    /* Resumes after this step, which a watch was given; the caller's w holds
     * its w.  The result is that of a run without a break, except under
     * KOFN_OPTIMIZER_LBFGS.  Read by the next
     * kofn_regress only.  NULL, or iteration 0: starts anew. */
    const kofn_regress_step *resume;
    /* True if the last column of X is all ones.  Its weight is the intercept,
     * which `l2` does not penalise.  The command and Python add this column by
     * default.  The library does not: it borrows X and never copies it, and a
     * column more is a copy. */
    bool intercept;
    /* Weights of the points (m x 1, float64, not negative), or NULL: all are
     * equal.  F is then the mean of the losses by these weights.  They are
     * copied.  Only KOFN_MATVEC serves them. */
    const kofn_matrix *weights;
    /* True if kofn_regression_relabel will be called.  Then only KOFN_MATVEC
     * serves the regression. */
    bool relabels;
} kofn_regress_options;
#define KOFN_REGRESS_OPTIONS_INIT                                              \
    {                                                                          \
        sizeof(kofn_regress_options), KOFN_LOSS_SQUARES, KOFN_OPTIMIZER_AUTO,  \
            KOFN_LINE_SEARCH_NONE, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL,   \
            NULL, false, NULL, false                                           \
    }

/* The result of a regression. */
typedef struct kofn_regress_result {
    size_t size; /* sizeof(kofn_regress_result) */
    unsigned iterations;
    double objective, gradient, test; /* of the last iteration           */
    double lipschitz;                 /* L; 0 if it was not estimated    */
    bool converged;
    /* Distance from w to the minimum when it was last computed, or a lower
     * bound if it is too large.  HUGE_VAL: undetermined.  0: it was not
     * computed. */
    double distance;
    kofn_report rounds; /* totals of all rounds */
} kofn_regress_result;
#define KOFN_REGRESS_RESULT_INIT                                               \
    {                                                                          \
        sizeof(kofn_regress_result), 0, 0, 0, 0, 0, false, 0,                  \
            KOFN_REPORT_OF_(0)                                                 \
    }

/* A regression: points, labels and options. */
typedef struct kofn_regression kofn_regression;

/* Makes a regression on X (m x n) with labels y (m x 1), both float64.  For a
 * sparse X the schemes pcr and elastic make no dense block.  Borrows X and
 * test_X until kofn_regression_free; labels and options are copied.  `opt` may
 * be NULL.
 *
 * KOFN_INVAL: X is missing, an option, weight or label is invalid, options
 * contradict each other, or logistic labels are all of one class.
 * KOFN_SHAPE: shapes do not agree, or a matrix is not float64.
 * KOFN_NONFINITE: a number is NaN or infinite. */
KOFN_API kofn_status kofn_regression_new(kofn_regression **out, kofn_operand X,
                                         const kofn_matrix *y,
                                         const kofn_regress_options *opt);
/* Writes the default scheme string into `out` (`size` bytes) and returns `out`.
 * The command and Python use it if no scheme is given.  The scheme tolerates
 * half of the workers missing or slow, at most 16.  For squares and a small X
 * with twice as many rows as columns it is pcr, which needs one answer in an
 * iteration: messages cost more than work there.  Otherwise it is elastic,
 * which does no work twice, and serves weights and several vectors of labels.
 */
KOFN_API const char *kofn_regression_scheme(const kofn_regression *r,
                                            size_t workers, char *out,
                                            size_t size);
/* Fills *pb with the problem for which the plan must be made under this scheme:
 *   KOFN_GRAM    X' X w, for squares only.
 *   KOFN_SUM     The sum of the gradients of parts of the points.
 *   KOFN_MATVEC  X w and then z' X.  Call kofn_plan_serve_left(plan, 1) as
 *                well.
 * KOFN_UNSUITED: the scheme serves none of them, or not this regression.
 * Otherwise it returns the failures of kofn_plan_new. */
KOFN_API kofn_status kofn_regression_problem(const kofn_regression *r,
                                             const char *spec, size_t workers,
                                             kofn_problem *pb);
/* Places the data on a job with a plan for operation `op`; it replaces
 * kofn_place.  Close the job before freeing the regression.
 * KOFN_INVAL: `op` is none of the three.
 * Otherwise it returns the failures of kofn_place_at and kofn_place_rows. */
KOFN_API kofn_status kofn_regression_place(kofn_regression *r, kofn_job *job,
                                           kofn_op op);
/* Replaces the labels, for another descent over the same points, on the same
 * job if it has them.  The labels are copied. KOFN_UNSUITED: the points are
 * placed by another operation than KOFN_MATVEC; then workers have the labels,
 * or what was computed of them. KOFN_INVAL, KOFN_SHAPE, KOFN_NONFINITE: as for
 * kofn_regression_new. */
KOFN_API kofn_status kofn_regression_relabel(kofn_regression *r,
                                             const kofn_matrix *y);
/* Replaces the penalty l2, for another descent on the same job.  If w of the
 * last descent is its start, a path of penalties takes few iterations each.
 * KOFN_INVAL: l2 is out of range. */
KOFN_API kofn_status kofn_regression_penalise(kofn_regression *r, double l2);
/* Minimises F with the workers of the job.  w is n x 1, float64 and contiguous;
 * it holds the start and then the result.  If it fails on the way, w is that of
 * the last complete iteration.  `res` may be NULL.
 *
 * KOFN_OK: it converged or did max_iterations; see res->converged.
 * KOFN_PARTIAL: also complete, but the scheme left late workers out, so some
 * gradients lack some points.
 * KOFN_AGAIN: the watch stopped it.
 * KOFN_STATE: kofn_regression_place was not called.
 * KOFN_INVAL, KOFN_NONFINITE: w, or a value on the way, is invalid or infinite.
 * Otherwise it returns the failures of kofn_put and kofn_take. */
KOFN_API kofn_status kofn_regress(kofn_regression *r, kofn_matrix *w,
                                  kofn_regress_result *res);
/* Makes the same steps on this thread, without workers.  Batches are those of
 * the workers once the data is placed.
 *
 * KOFN_OK: it converged or did max_iterations; see res->converged.
 * KOFN_AGAIN: the watch stopped it.
 * KOFN_INVAL, KOFN_SHAPE, KOFN_NONFINITE: w, or a value on the way, is invalid
 * or infinite. */
KOFN_API kofn_status kofn_regress_plain(kofn_regression *r, kofn_matrix *w,
                                        kofn_regress_result *res);
/* Frees the regression; NULL is allowed. */
KOFN_API void kofn_regression_free(kofn_regression *r);

/* Computes predictions for the rows of X (float64) into `out` (m x 1,
 * contiguous): the mean of y.  That is x . w for squares, the probability of
 * label 1 for logistic regression, and e^(x . w) for Poisson regression.  If w
 * has one number more than X has columns, the last is the intercept.
 * KOFN_INVAL, KOFN_SHAPE: a matrix is missing or misaligned, or shapes or types
 * do not agree.
 * KOFN_NONFINITE: a number, or a prediction, is NaN or infinite. */
KOFN_API kofn_status kofn_predict(kofn_matrix *out, const kofn_matrix *X,
                                  const kofn_matrix *w, kofn_loss loss);
/* Quality of a fit. */
typedef struct kofn_fit {
    double loss; /* mean loss, without the penalty */
    /* Squares: R^2.  Poisson: the explained share of the deviance.  If y is
     * constant, it is 1 if the rest is rounding (2^-50 of the squares or
     * counts), and otherwise 0.  Logistic: the share of correct labels. */
    double share;
} kofn_fit;
/* Fills *fit for the points X with labels y and weights w, which are as in
 * kofn_predict.
 * KOFN_SHAPE, KOFN_INVAL, KOFN_NONFINITE: an argument is invalid. */
KOFN_API kofn_status kofn_fit_of(kofn_fit *fit, kofn_operand X,
                                 const kofn_matrix *y, const kofn_matrix *w,
                                 kofn_loss loss);

/* Computes the kernel matrix K[i][j] = k(x_i, z_j) over the rows of X and Z
 * (float64).  `kernel` is one of
 *     "linear"               x . z
 *     "rbf:s=S"              exp(-|x - z|^2 / (2 S^2))
 *     "poly:degree=D,c=C"    (x . z + C)^D
 * Kernel regression: a regression on K(X, X) gives coefficients, and K(T, X)
 * times them predicts at T.  The caller frees K->data with kofn_free.
 * KOFN_INVAL: `kernel` is invalid, or a matrix is misaligned.
 * KOFN_SHAPE: a matrix is missing or not float64, or X and Z do not have
 * equally many columns. */
KOFN_API kofn_status kofn_kernel(kofn_matrix *K, const kofn_matrix *X,
                                 const kofn_matrix *Z, const char *kernel);

#ifdef __cplusplus
}
#endif
#endif
