/* learn.h -- users of the rounds of kofn.h, which includes this: iterations,
 * regression.
 */
#ifndef KOFN_LEARN_H
#define KOFN_LEARN_H

#include <kofn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- iterations ---------------------------------------------------------- */

/* Called after every round; a non-zero answer stops the iteration, which then
 * returns KOFN_AGAIN.  While a round lasts it is called with rep == NULL at
 * least every tenth of a second. */
typedef int (*kofn_watch)(void *ud, unsigned iteration, double change,
                          const kofn_report *rep);

typedef struct kofn_iterate_options {
    size_t size;             /* sizeof(kofn_iterate_options) */
    double tolerance;        /* stop when the change is below it; 0: 1e-10 */
    unsigned max_iterations; /* 0: 200 */
    double damping;          /* PageRank; 0: 0.85 */
    kofn_watch watch;
    void *watch_ud;
    /* Go on after these iterations with the vector that they made, which is in
     * v, as if there had been no break; NULL: begin. */
    const struct kofn_iterate_result *resume;
} kofn_iterate_options;
#define KOFN_ITERATE_OPTIONS_INIT                                              \
    {                                                                          \
        .size = sizeof(kofn_iterate_options)                                   \
    }

/* Kept up to date before every call of the watch. */
typedef struct kofn_iterate_result {
    size_t size; /* sizeof(kofn_iterate_result), so that it may grow */
    unsigned iterations;
    double change;     /* of the last iteration */
    double eigenvalue; /* power iteration       */
    bool converged;
} kofn_iterate_result;
#define KOFN_ITERATE_RESULT_INIT                                               \
    {                                                                          \
        .size = sizeof(kofn_iterate_result)                                    \
    }

/* v <- A v / |A v|, A square, from the vector in v (n x 1 float64).  A was placed on
 * the job; kofn_power_peers of <kofn/peer.h> does without one. */
KOFN_API kofn_status kofn_power(kofn_job *job, kofn_matrix *v,
                                const kofn_iterate_options *opt,
                                kofn_iterate_result *res);
/* The column-stochastic matrix of a graph with an entry (i,j) for each arc
 * i -> j: its transpose with rows scaled to sum 1.  *dangling (n flags) marks
 * nodes without an arc out.  Free both with kofn_free. */
KOFN_API kofn_status kofn_pagerank_matrix(kofn_sparse **out, uint8_t **dangling,
                                          const kofn_sparse *graph);
/* v <- d (M v + (sum of v over dangling)/n) + (1-d)/n from v = 1/n, until the
 * L1 change is below the tolerance.  M was placed on the job. */
KOFN_API kofn_status kofn_pagerank(kofn_job *job, const uint8_t *dangling,
                                   kofn_matrix *v,
                                   const kofn_iterate_options *opt,
                                   kofn_iterate_result *res);
/* ---- regression ---------------------------------------------------------- */

/* Linear models of m points, the rows of X, by gradient descent on
 *
 *     F(w) = 1/m sum_i loss(x_i . w, y_i) + ridge/2 |w|^2
 *
 * where workers compute the gradient of the sum: docs/regression.md. */
typedef enum kofn_loss {
    KOFN_LOSS_SQUARES,  /* (t - y)^2 / 2                                     */
    KOFN_LOSS_LOGISTIC, /* labels 0 and 1, or -1 and 1: log(1 + e^t) - y t   */
    KOFN_LOSS_POISSON   /* counts y >= 0: e^t - y t                          */
} kofn_loss;

typedef enum kofn_descent {
    KOFN_DESCENT_GD,
    KOFN_DESCENT_NESTEROV,
    KOFN_DESCENT_SGD,  /* a batch a step, in shuffled order: every `batches`-th
                        row, or a run of strips (kofn_limit) under row codes */
    KOFN_DESCENT_LBFGS /* limited-memory BFGS of 10 pairs, with a line search of
                          its own; the pairs are not of `resume`, after which it
                          begins with steepest descent again */
} kofn_descent;

typedef enum kofn_step_rule {
    KOFN_STEP_FIXED,  /* `step`; 0: 1/L, L from 30 power iterations, but of GD
                         with Poisson's loss, which has no L, ARMIJO         */
    KOFN_STEP_EXACT,  /* the minimum along the gradient                      */
    KOFN_STEP_ARMIJO, /* halved from `step` on (0: 16/L) until F falls enough */
    KOFN_STEP_GRID    /* the best of step 2^-k, k = 0 .. 13 (0: 16/L)        */
} kofn_step_rule;

/* An iteration: one gradient and one step. */
typedef struct kofn_regress_step {
    unsigned iteration; /* 1 is the first                               */
    double objective;   /* F where the gradient was taken; of the batch */
    double gradient;    /* its norm                                     */
    double test;        /* mean loss of the held-out points at w; NaN   */
    double step;        /* 0: none, for it has converged                */
    const double *w;    /* after the step                               */
    const double *v;    /* where the next gradient is taken; NESTEROV: not w */
    double first;       /* norm of the first gradient                   */
    double lipschitz;   /* L, where it was estimated; or 0              */
    bool partial;       /* some gradients were of some points only      */
    double ask;         /* norm of the gradient below which it will be asked how
                           near the minimum is; 0: when the tolerance is met */
    const kofn_report *setup; /* what it took to find L, in the iteration that
                                 did; or NULL.  It is not in that iteration's
                                 report                                  */
} kofn_regress_step;

/* Called after every iteration with what its rounds were together, and with
 * rep == NULL at least every tenth of a second while one lasts; a non-zero
 * answer stops the descent, which then returns KOFN_AGAIN. */
typedef int (*kofn_regress_watch)(void *ud, const kofn_regress_step *now,
                                  const kofn_report *rep);

typedef struct kofn_regress_options {
    size_t size; /* sizeof(kofn_regress_options) */
    kofn_loss loss;
    kofn_descent descent;
    kofn_step_rule rule; /* all but GD: FIXED                              */
    double step, ridge;
    double tolerance; /* stop when the gradient's norm is below this share of
                         the first one's, and the minimum, as products with
                         the curvature there tell, no farther than the square
                         root of this share of |w|; 0: 1e-8; not in SGD    */
    unsigned max_iterations; /* 0: 100                                     */
    unsigned batches;        /* SGD: 0: 10                                 */
    uint64_t seed;           /* order of the batches, start of the power
                                iteration                                  */
    const kofn_matrix *test_X, *test_y; /* held-out points, or NULL        */
    kofn_regress_watch watch;
    void *watch_ud;
    /* Go on after this step, which a watch was shown, as if there had been no
     * break; w is in the caller's w.  Read when kofn_regress is called, and for
     * it alone.  NULL, or of iteration 0: begin. */
    const kofn_regress_step *resume;
    bool intercept; /* the last column of X is all ones; the ridge is not of
                       its weight                                          */
} kofn_regress_options;
#define KOFN_REGRESS_OPTIONS_INIT                                              \
    {                                                                          \
        .size = sizeof(kofn_regress_options)                                   \
    }

typedef struct kofn_regress_result {
    size_t size; /* sizeof(kofn_regress_result) */
    unsigned iterations;
    double objective, gradient, test; /* of the last iteration           */
    double lipschitz;                 /* L, where it was estimated; or 0 */
    bool converged;
    double distance; /* from w to the minimum, or less where it is too far; of
                        the last time that the gradient was small enough for it
                        to be asked; HUGE_VAL: it could not be told; 0: it was
                        not asked                                       */
    kofn_report rounds; /* all together */
} kofn_regress_result;
#define KOFN_REGRESS_RESULT_INIT                                               \
    {                                                                          \
        .size = sizeof(kofn_regress_result)                                    \
    }

typedef struct kofn_regression kofn_regression;

/* X is m x n and y m x 1, float64.  Of a sparse X schemes pcr and elastic hold no
 * dense block.  Borrows X and test_X until kofn_regression_free; the labels are
 * copied. */
KOFN_API kofn_status kofn_regression_new(kofn_regression **out, kofn_operand X,
                                         const kofn_matrix *y,
                                         const kofn_regress_options *opt);
/* A scheme for it on so many workers, of which half may vanish or straggle, at
 * most 16, into `out` and returned.  Where X is small messages take longer than
 * work, and there are fewest under pcr (least squares) or gc; else elastic,
 * which does no work twice. */
KOFN_API const char *kofn_regression_scheme(const kofn_regression *r,
                                            size_t workers, char *out,
                                            size_t size);
/* The problem that the plan must be made for under this scheme: KOFN_GRAM, X' X
 * w (squares only); KOFN_SUM, the sum of the gradients of parts of the points;
 * or KOFN_MATVEC, X w and then z' X, for which kofn_plan_serve_left(plan, 1)
 * must be called on it as well. */
KOFN_API kofn_status kofn_regression_problem(const kofn_regression *r,
                                             const char *spec, size_t workers,
                                             kofn_problem *pb);
/* Hand out the data, in the place of kofn_place, to a job whose plan is for
 * this operation.  The job must be closed before the regression is freed. */
KOFN_API kofn_status kofn_regression_place(kofn_regression *r, kofn_job *job,
                                           kofn_op op);
/* Descend from w (n x 1 float64) with the workers of that job.  When it fails
 * on the way w is what the last iteration made.  KOFN_PARTIAL: done, but under
 * a scheme that leaves out who is late some gradients were of the rest. */
KOFN_API kofn_status kofn_regress(kofn_regression *r, kofn_matrix *w,
                                  kofn_regress_result *res);
/* The same steps on this thread alone; in the batches that the workers make,
 * once the data is with them. */
KOFN_API kofn_status kofn_regress_plain(kofn_regression *r, kofn_matrix *w,
                                        kofn_regress_result *res);
KOFN_API void kofn_regression_free(kofn_regression *r);

/* Writes what a model predicts for the rows of X (float64): the mean of y,
 * which is x . w for squares, the chance of label 1 for logistic regression,
 * e^(x . w) for Poisson's.  Where w is longer than rows by one its end is an
 * intercept. out is m x 1, contiguous. */
KOFN_API kofn_status kofn_predict(kofn_matrix *out, const kofn_matrix *X,
                                  const kofn_matrix *w, kofn_loss loss);
typedef struct kofn_fit {
    double loss;  /* mean, without any ridge                                */
    double share; /* explained: R^2 of squares, and of the deviance of counts;
                     where y is constant 1 if nothing but rounding is left
                     (2^-50 of the squares or counts), else 0.  For classes
                     it is the share of right labels                         */
} kofn_fit;
KOFN_API kofn_status kofn_fit_of(kofn_fit *fit, kofn_operand X,
                                 const kofn_matrix *y, const kofn_matrix *w,
                                 kofn_loss loss);

/* K[i][j] = k(x_i, z_j) over the rows of X and Z (float64) for k = "linear":
 * x.z, "rbf:s=S": exp(-|x-z|^2 / (2 S^2)), or "poly:degree=D,c=C": (x.z + C)^D.
 * Regression on K(X, X) gives the coefficients of k(x_i, .), and K(T, X) times
 * them predicts at T.  K->data is freed with kofn_free. */
KOFN_API kofn_status kofn_kernel(kofn_matrix *K, const kofn_matrix *X,
                                 const kofn_matrix *Z, const char *kernel);

#ifdef __cplusplus
}
#endif
#endif
