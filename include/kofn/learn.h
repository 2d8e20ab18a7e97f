/* learn.h -- users of the rounds of kofn.h, which includes this: iterations,
 * models of what gradient codes and streams of products take, regression.
 *
 * For whoever wants the whole iteration, and not its rounds, from a job.  Vectors are
 * n x 1, contiguous, float64; points are rows.
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
    unsigned iterations;
    double change;     /* of the last iteration */
    double eigenvalue; /* power iteration       */
    bool converged;
} kofn_iterate_result;

/* v <- A v / |A v|, A square, from the vector in v (n x 1 float64). */
KOFN_API kofn_status kofn_power(kofn_job *job, kofn_matrix *v,
                                const kofn_iterate_options *opt,
                                kofn_iterate_result *res);
/* The column-stochastic matrix of a graph with an entry (i,j) for each arc
 * i -> j: its transpose with rows scaled to sum 1.  *dangling (n flags) marks
 * nodes without an arc out.  Free both with kofn_sparse_free and kofn_free. */
KOFN_API kofn_status kofn_pagerank_matrix(kofn_sparse **out, uint8_t **dangling,
                                          const kofn_sparse *graph);
/* v <- d (M v + (sum of v over dangling)/n) + (1-d)/n from v = 1/n, until the
 * L1 change is below the tolerance.  M was placed on the job. */
KOFN_API kofn_status kofn_pagerank(kofn_job *job, const uint8_t *dangling,
                                   kofn_matrix *v,
                                   const kofn_iterate_options *opt,
                                   kofn_iterate_result *res);
/* The same on this thread alone, without workers or codes: what the coded
 * ones are compared with. */
KOFN_API kofn_status kofn_pagerank_plain(const kofn_sparse *M,
                                         const uint8_t *dangling,
                                         kofn_matrix *v,
                                         const kofn_iterate_options *opt,
                                         kofn_iterate_result *res);
KOFN_API kofn_status kofn_power_plain(const kofn_matrix *A, kofn_matrix *v,
                                      const kofn_iterate_options *opt,
                                      kofn_iterate_result *res);
/* ---- model: what gradient schemes take on the average -------------------- */

/* The restart model of adaptive gradient coding (docs/model.md).  An epoch is
 * a computation and then a message.  A worker that was started, or started
 * again, straggles with probability p, whatever the others do; while there are
 * too many stragglers to decode, they are started again in the next epoch. */
typedef struct kofn_aet_params {
    size_t n;    /* workers, and subsets of the data                     */
    size_t d;    /* subsets that each worker computes                    */
    double p;    /* chance of straggling, 0 .. KOFN_AET_MOST_P           */
    double t_cp; /* time of the computation of d subsets                 */
    double t_cm; /* time of a message as long as the gradient            */
    size_t lam;  /* AGC: segments a gradient is cut into; 0: as many as give
                    the optimum, lcm(1..d)                               */
} kofn_aet_params;
#define KOFN_AET_MOST_P 0.9999
#define KOFN_AET_MOST_N 10000

typedef enum kofn_aet_kind {
    KOFN_AET_UNCODED = 1 << 0, /* a subset a worker, all must answer        */
    KOFN_AET_GC = 1 << 1,      /* whole gradients, d - 1 may straggle       */
    KOFN_AET_CGC = 1 << 2,     /* s may straggle, messages of 1/(d-s)       */
    KOFN_AET_G_CGC = 1 << 3,   /* the same in groups                        */
    KOFN_AET_AGC = 1 << 4,     /* as short as the stragglers there are let  */
    KOFN_AET_G_AGC = 1 << 5    /* the same in groups                        */
} kofn_aet_kind;

typedef struct kofn_aet_scheme {
    kofn_aet_kind kind;
    size_t s; /* CGC, G_CGC: how many may straggle, 0 .. d-1 */
} kofn_aet_scheme;

typedef struct kofn_aet_result {
    double time;   /* the average execution time of an iteration, AET */
    double epochs; /* epochs it takes on the average, >= 1            */
    double length; /* of the messages that are decoded, 1: a gradient */
    double mass;   /* probability that was summed over: 1 to rounding */
} kofn_aet_result;

KOFN_API kofn_status kofn_aet(const kofn_aet_params *q, kofn_aet_scheme scheme,
                              kofn_aet_result *res);
/* The same for any cost: time(ctx, i, s) is what the iteration has taken when
 * epoch i = 0, 1, .. is the one that decodes, with s stragglers, in the group
 * with the most of those that were running; s is the tolerance where the
 * messages have one length. */
typedef double (*kofn_aet_time)(void *ctx, size_t i, size_t s);
KOFN_API kofn_status kofn_aet_with(const kofn_aet_params *q,
                                   kofn_aet_scheme scheme, kofn_aet_time time,
                                   void *ctx, kofn_aet_result *res);
/* The scheme with the least AET among those whose kinds are in the mask, 0:
 * all; of equals the first by kind and s.  res may be NULL. */
KOFN_API kofn_status kofn_aet_best(const kofn_aet_params *q, unsigned among,
                                   kofn_aet_scheme *best, kofn_aet_result *res);
/* The communication vector: c[s], s = 0 .. *count-1, is the length of messages
 * when s straggle; there is room for d. */
KOFN_API kofn_status kofn_aet_lengths(const kofn_aet_params *q,
                                      kofn_aet_scheme scheme, double *c,
                                      size_t *count);
/* The length when stragglers[h] straggle in group h; KOFN_TOOFEW when that is
 * too many. */
KOFN_API kofn_status kofn_aet_length(const kofn_aet_params *q,
                                     kofn_aet_scheme scheme,
                                     const size_t *stragglers, double *length);
/* How many groups the scheme makes of the workers, and workers in group h. */
KOFN_API size_t kofn_aet_groups(const kofn_aet_params *q,
                                kofn_aet_scheme scheme);
KOFN_API size_t kofn_aet_group_size(const kofn_aet_params *q,
                                    kofn_aet_scheme scheme, size_t h);
/* "AGC", "G-CGC(1)", ..., into out and returned. */
KOFN_API const char *kofn_aet_name(kofn_aet_scheme scheme, char *out,
                                   size_t size);

/* The published comparison of schemes on 20 workers (Table VI of the paper),
 * its numbers as they are printed, computed with the paper's two slips, and
 * without them. */
typedef struct kofn_agc_row {
    kofn_aet_scheme scheme;
    double p;                             /* chance of straggling */
    double printed, as_printed, straight; /* seconds              */
} kofn_agc_row;
#define KOFN_AGC_ROWS 18
KOFN_API kofn_status kofn_agc_table(kofn_agc_row rows[KOFN_AGC_ROWS]);

/* ---- model: what streams of products take --------------------------------- */

/* A product begins every round; each worker is slow in a round with chance
 * delta, whatever it was before, and then takes alpha times as long for all it
 * is asked for, of which nothing comes earlier.  A round lasts until the scheme
 * can do without those that are not done, and unless all are done mu times
 * longer than the first worker took. */
typedef struct kofn_rhat_params {
    size_t workers;
    double alpha, delta, mu;
} kofn_rhat_params;

typedef enum kofn_rhat_kind {
    KOFN_RHAT_ONCE = 1, /* every product by itself, a result from each worker */
    KOFN_RHAT_DIP,
    KOFN_RHAT_IDIP
} kofn_rhat_kind;

#define KOFN_RHAT_ENDLESS SIZE_MAX

typedef struct kofn_rhat_scheme {
    kofn_rhat_kind kind;
    size_t threshold; /* results that decode a product; IDIP: 0, or PW - N   */
    size_t parts;     /* one is so much of a product; 0: threshold           */
    size_t T, lambda; /* DIP: rounds of delay, or KOFN_RHAT_ENDLESS; workers
                         that are enough in the last of them, 0: all         */
    size_t N, W;      /* IDIP: of any W rounds N marks are done without      */
    bool late;        /* IDIP: products are carried to their due rounds though
                         they could be decoded before                        */
} kofn_rhat_scheme;

typedef struct kofn_rhat_result {
    double rhat;  /* mean time of a round, by that of a whole product on one
                        worker; IDIP: exact_early_finish, or exact_fixed_load
                        where that is late                                   */
    size_t slots; /* mini-tasks of a worker in a round, at most; or
                        KOFN_RHAT_ENDLESS, and likewise delay                */
    size_t threshold, delay;
    double load;      /* slots by parts */
    double mean_load; /* of a round     */
    /* DIP: rounds that a product takes without a deadline, where all being slow
     * counts as nobody being so, and where it brings nothing. */
    double f_tie, f_binomial;
    /* IDIP, the first two with mu = 0: the paper's bound, what it should be, and
     * the mean where each product is carried to its end, or finished early. */
    double bound_printed, bound_corrected, exact_fixed_load, exact_early_finish;
} kofn_rhat_result;

KOFN_API kofn_status kofn_rhat(const kofn_rhat_params *q,
                               const kofn_rhat_scheme *scheme,
                               kofn_rhat_result *out);
/* The parameters with the least rhat: ONCE a threshold below the number of
 * workers P, DIP P to (T+1)P results, without end P to 10P - 1, and any lambda,
 * IDIP any N with W = T+1.  out may be NULL. */
KOFN_API kofn_status kofn_rhat_best(const kofn_rhat_params *q,
                                    kofn_rhat_kind kind, size_t T,
                                    kofn_rhat_scheme *best,
                                    kofn_rhat_result *out);

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

/* One iteration: a gradient and a step. */
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

typedef struct kofn_regression kofn_regression;

/* X is m x n and y m x 1, float64.  Borrows X and test_X until
 * kofn_regression_free; the labels are copied. */
KOFN_API kofn_status kofn_regression_new(kofn_regression **out,
                                         const kofn_matrix *X,
                                         const kofn_matrix *y,
                                         const kofn_regress_options *opt);
/* The same of a sparse X, of which schemes pcr and elastic hold no dense block. */
KOFN_API kofn_status kofn_regression_new_sparse(
    kofn_regression **out, const kofn_sparse *X, const kofn_matrix *y,
    const kofn_regress_options *opt);
/* A scheme for it on so many workers, of which half may vanish or straggle, at
 * most 16, into `out` and returned.  Where X is small messages take longer than
 * work, and there are fewest under pcr (least squares) or gc; else elastic,
 * which does no work twice. */
KOFN_API const char *kofn_regression_scheme(const kofn_regression *r,
                                            size_t workers, char *out,
                                            size_t size);
/* What the plan for it must be made for under this scheme: KOFN_GRAM, X' X w
 * (squares only); KOFN_SUM, the sum of the gradients of parts of the points;
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
/* What becomes of it without a code, on this thread: the points lie in `parts`
 * parts, one on each machine; a machine fails in an iteration with this
 * probability and is replaced `delay` iterations later, 0: never. */
typedef enum kofn_missing {
    KOFN_MISSING_IGNORED,   /* the other points stand for all             */
    KOFN_MISSING_REMEMBERED /* to first order, where they last were there */
} kofn_missing;

typedef struct kofn_failures {
    size_t parts;
    double probability;
    unsigned delay;
    kofn_missing missing;
    uint64_t seed;
} kofn_failures;

KOFN_API kofn_status kofn_regress_failing(kofn_regression *r,
                                          const kofn_failures *failures,
                                          kofn_matrix *w,
                                          kofn_regress_result *res);
KOFN_API void kofn_regression_free(kofn_regression *r);

/* What a model says of the rows of X (float64): the mean of y, which is x . w
 * for squares, the chance of label 1 for logistic regression, e^(x . w) for
 * Poisson's.  Where w is longer than rows by one its end is an intercept.
 * out is m x 1, contiguous. */
KOFN_API kofn_status kofn_predict(kofn_matrix *out, const kofn_matrix *X,
                                  const kofn_matrix *w, kofn_loss loss);
typedef struct kofn_fit {
    double loss;  /* mean, without any ridge                                */
    double share; /* explained: R^2 of squares, of the deviance of counts (NaN
                     where y is constant); of labels that are told right     */
} kofn_fit;
KOFN_API kofn_status kofn_fit_of(kofn_fit *fit, const kofn_matrix *X,
                                 const kofn_matrix *y, const kofn_matrix *w,
                                 kofn_loss loss);
/* The same of the points of a regression; w is n x 1. */
KOFN_API kofn_status kofn_regression_fit(kofn_fit *fit,
                                         const kofn_regression *r,
                                         const kofn_matrix *w);

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
