/* regress.h -- what the files of regression share: a problem, a running
 * descent, and the three ways in which workers compute its gradient.
 *
 * A regression and a descent own what is declared in them; points, labels and
 * job are borrowed. No other room may include this. */
#ifndef KF_REGRESS_H
#define KF_REGRESS_H

#include "base/base.h"

struct kofn_regression {
    kofn_matrix X; /* has no data if X is sparse */
    kofn_sparse S; /* the sparse X; rows == 0: X is dense */
    double
        *y; /* labels as the loss uses them: 0 and 1 in logistic regression */
    kofn_matrix test;
    double *test_y;  /* NULL: no held-out points */
    double *weights; /* of the points, with the mean 1; NULL: all are 1 */
    kofn_regress_options opt;
    bool automatic; /* the optimizer was AUTO; opt has the chosen one */
    kofn_job *job;  /* the job that the points are placed on */
    const struct kf_gradient_mode *way;
    size_t strips; /* strips of that job if a round can cover some of them only;
                      else 0 */
    double *Xy, yy; /* X' y and y' y, computed when first needed */
};

/* Points k of + lo .. k of + hi - 1 for k = 0, 1, ...: from each run of `of`
 * points, those from lo to hi - 1. */
typedef struct kf_some {
    size_t lo, hi, of;
} kf_some;
#define KF_ALL ((kf_some){0, 1, 1})

static inline kofn_matrix kf_learn_column(const double *x, size_t n)
{
    return (kofn_matrix){(void *)(uintptr_t)x, n, 1, 1, KOFN_F64};
}

static inline kofn_matrix kf_learn_row_of(const double *x, size_t n)
{
    return (kofn_matrix){(void *)(uintptr_t)x, 1, n, n, KOFN_F64};
}

/* ---- regress.c ----------------------------------------------------------- */

/* Checks that X has data and is float64. */
kofn_status kf_regress_shape(const kofn_matrix *X, const char *name);
/* Checks points and labels. Sets *labels to the labels as kf_loss uses them. */
kofn_status kf_regress_points(const kofn_matrix *X, const kofn_matrix *y,
                              const char *what, kofn_loss loss,
                              double **labels);
/* Does the same for labels alone: y must have one label for each of `rows`
 * rows. `what` names the points in messages. */
kofn_status kf_regress_labels(const kofn_matrix *y, size_t rows,
                              const char *what, kofn_loss loss,
                              double **labels);

/* Computes out = X' (X v - y) on this thread, and *squares = |X v - y|^2. y
 * and squares may be NULL. In gradient_modes.c. */
kofn_status kf_learn_gram_here(const kofn_regression *r, const double *v,
                               const double *y, double *out, double *squares);

/* ---- loss.c -------------------------------------------------------------- */

/* Returns the loss of one point. Sets *z to its derivative by the margin t = x
 * . w. */
double kf_loss(kofn_loss loss, double t, double y, double *z);
/* Returns the sum of the losses of n points, each times its weight. `weights`
 * may be NULL: all are 1. Sets z[i] to the derivative for point i; z may be t.
 */
double kf_loss_sum(kofn_loss loss, const double *t, const double *y,
                   const double *weights, size_t n, double *z);
/* Returns the second derivative of the loss at margin t. */
double kf_loss_second(kofn_loss loss, double t);
/* Returns an upper bound of the second derivative; 0 if there is no bound. */
double kf_loss_curvature(kofn_loss loss);
/* Writes the labels y as kf_loss uses them. */
kofn_status kf_loss_labels(kofn_loss loss, const kofn_matrix *y,
                           const char *name, double *out);

/* Vectors of a descent. */
typedef struct kf_descent_vectors {
    void *memory;   /* holds all vectors below */
    double *v;      /* point at which the gradient is taken */
    double *g;      /* the gradient at the point under consideration */
    double *margin; /* m numbers: margins at that point */
    double *line;   /* m numbers: X g, in a line search */
    double *z;      /* m numbers: derivatives of the losses */
    double *in,
        *out; /* n + 1 numbers: input and output of a round of KOFN_SUM */
    double *t, *there; /* n numbers: scratch, and a point on a line */
} kf_descent_vectors;

/* ---- a descent ----------------------------------------------------------- */

typedef struct kf_descent {
    const kofn_regression *r;
    kofn_job *job; /* NULL: everything runs on this thread */
    const struct kf_gradient_mode *way;
    kofn_regress_step now;
    kofn_report sum, setup, all; /* rounds of this iteration; rounds that found
                                    L; all other rounds */
    bool knows_margins; /* `margin` belongs to the point of the next gradient */
    double lipschitz;   /* L; 0: unknown */
    double curvature;   /* second derivative of F along g, for squares */
    const double *from; /* start of the line */
    double gg;          /* |g|^2 at the start of the line */
    struct kf_lbfgs *pairs; /* remembered steps; NULL: none */
    double distance; /* last estimate of the distance to the minimum; 0: none
                        yet */
    bool flat;       /* along the gradient F falls by rounding only */
    unsigned done;   /* iterations before this start */
    bool partial;    /* a gradient covered some of the points only */
    const double *weights; /* weights of the last round's sum (kofn_report) */
    size_t parts;
    bool remembers; /* the scheme substitutes remembered gradients for missing
                       ones */
    kf_descent_vectors at;
} kf_descent;

static inline size_t kf_learn_features(const kf_descent *d)
{
    return d->r->X.cols;
}

/* Returns the number of weights that the ridge penalises. They come first. */
static inline size_t kf_learn_penalised(const kf_descent *d)
{
    return d->r->X.cols - d->r->opt.intercept;
}

double kf_learn_dot(const double *x, const double *y, size_t n);
/* Returns the weights of the points from k on, or NULL. */
static inline const double *kf_learn_weights(const kofn_regression *r, size_t k)
{
    return r->weights ? r->weights + k : NULL;
}
/* Multiplies the number of each point by the point's weight. */
void kf_learn_weigh(const kofn_regression *r, double *z);
/* Runs the whole descent from w. */
kofn_status kf_learn_descend(kf_descent d, kofn_matrix *w,
                             kofn_regress_result *res);

/* ---- gradient_modes.c, by_sum.c ------------------------------------------ */

/* A way in which workers compute the gradient. */
typedef struct kf_gradient_mode {
    kofn_op op;
    bool left;    /* rounds of z' X belong to it */
    bool margins; /* the coordinator knows the margins X w */
    bool differs; /* the gradient is the difference X' X w - X' y */
    bool bent;    /* F is no parabola along a line, whatever the loss is: some
                     gradients belong to earlier iterates */
    /* Returns the problem to plan; NULL: X itself is multiplied. */
    kofn_problem (*problem)(const kofn_regression *r);
    /* Checks that this regression can be computed so; NULL: any can. */
    kofn_status (*check)(const kofn_regression *r);
    kofn_status (*place)(kofn_regression *r, kofn_job *job);
    /* Sets *F to the sum of the losses at w, and d->at.g to the sum of their
     * gradients. */
    kofn_status (*gradient)(kf_descent *d, const double *w, kf_some which,
                            double *F);
    /* Computes out = X' X v. */
    kofn_status (*gram)(kf_descent *d, const double *v, double *out);
} kf_gradient_mode;

extern const kf_gradient_mode kf_by_products, kf_by_sum;
extern const kf_gradient_mode
    *const kf_gradient_modes[]; /* the preferred first; ends with NULL */
const kf_gradient_mode *
kf_gradient_mode_by(kofn_op op); /* returns NULL if there is none */
/* Return the problem that workers compute in this mode, and whether this
 * regression can be computed so. */
kofn_problem kf_gradient_mode_problem(const kf_gradient_mode *way,
                                      const kofn_regression *r);
kofn_status kf_gradient_mode_check(const kf_gradient_mode *way,
                                   const kofn_regression *r);
/* Runs one round, and calls the user's watch function now and then. */
kofn_status kf_learn_round_of(kf_descent *d, bool left, const kofn_matrix *in,
                              kofn_matrix *out);

/* Returns kf_learn_remedy for this descent. */
const char *kf_learn_remedy_of(const kf_descent *d);
/* Sets *F to F at w over these points, and d->at.g to its gradient. `which` is
 * KF_ALL except in SGD. */
kofn_status kf_learn_gradient_at(kf_descent *d, const double *w, kf_some which,
                                 double *F);
/* Limits the job's rounds to these points, if the job can do so. */
kofn_status kf_learn_limit(kf_descent *d, kf_some which);
/* Computes F at from + t p over all points, and its gradient into g. Leaves
 * d->at.g unchanged unless g is d->at.g. */
kofn_status kf_learn_gradient_along(kf_descent *d, const double *from, double t,
                                    const double *p, double *g, double *F);
/* Returns the sum of the losses at the margins d->at.margin + t d->at.line.
 * Sets *slope to its derivative by t. */
double kf_learn_losses_along(const kf_descent *d, double t, double *slope);
/* Turns a sum over `points` points into the mean, and adds the ridge's part at
 * `at`. */
void kf_learn_mean(const kf_descent *d, double points, const double *at,
                   double *sum);
/* Computes out = H p. H is the second derivative of F at `at`, where the
 * gradient was just taken. */
kofn_status kf_learn_curved(kf_descent *d, const double *at, const double *p,
                            double *out);
/* Computes out = X v, if the mode computes margins. */
kofn_status kf_learn_margins(kf_descent *d, const double *v, double *out);
/* Kinds of sums, as the number that follows w in the input of KOFN_SUM. 0 means
 * all points, b + 1 means batch b. KF_GRAM asks for X' X w. KF_OFFSET asks for
 * the gradient and for the loss minus its slope along w. To first order, that
 * difference is valid at any w, so it may be reused later. */
#define KF_GRAM (-1)
#define KF_OFFSET (-2)
/* ---- steps.c ------------------------------------------------------------- */

/* True if F is a parabola along every line. */
bool kf_learn_is_parabola(const kf_descent *d);
/* Returns the sum of the squares of d->at.line, by the weights of the points.
 */
double kf_learn_line_square(const kf_descent *d);
/* Finds the length of the step along -g from w, where F and g are known. */
kofn_status kf_step(kf_descent *d, const double *w, double F, double *step);

/* A product of workers hides a curvature below this share of the largest: its
 * relative error is at most 1e-9 by default.  X itself then shows it. */
#define KF_HIDDEN 1e-9
/* A curvature below this share of the largest counts as 0. */
#define KF_FLAT (64 * DBL_EPSILON)

/* ---- lbfgs.c ------------------------------------------------------------- */

/* The last steps that a descent remembers. */
typedef struct kf_lbfgs kf_lbfgs;

/* Creates it for n features. Free it even if this fails. */
kofn_status kf_lbfgs_new(kf_lbfgs **out, size_t n);
void kf_lbfgs_free(kf_lbfgs *b);
/* Forgets all steps. */
void kf_lbfgs_forget(kf_lbfgs *b);
/* Sets *F to F at w, and d->at.g to its gradient; d->pairs must be set.
 * Multiplies nothing if the last step already knows both. */
kofn_status kf_lbfgs_gradient(kf_descent *d, const double *w, double *F);
/* Takes a step from w, where F and d->at.g are known. Sets d->now.step to its
 * length. */
kofn_status kf_lbfgs_step(kf_descent *d, double *w, double F);

/* ---- distance.c ---------------------------------------------------------- */

/* Sets *distance to the distance from `at` to the minimum. F and its gradient
 * d->at.g were just taken at `at`. A value above `enough` is a lower estimate.
 * HUGE_VAL: the distance cannot be determined. Takes several products. */
kofn_status kf_learn_distance(kf_descent *d, const double *at, double F,
                              double enough, double *distance);

#endif
