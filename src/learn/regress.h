/* regress.h -- what the files of regression share: a problem, a descent under
 * way, and the three ways in which workers compute its gradient.
 *
 * A regression and a descent own what is declared in them; points, labels and
 * job are borrowed.  No other room may include this. */
#ifndef KF_REGRESS_H
#define KF_REGRESS_H

#include "base/base.h"

struct kofn_regression {
    kofn_matrix X; /* without data where it is sparse: */
    kofn_sparse S; /* rows == 0: it is dense           */
    double *y;     /* as the loss takes them: 0 and 1 in logistic regression */
    kofn_matrix test;
    double *test_y; /* NULL: no held-out points */
    kofn_regress_options opt;
    kofn_job *job; /* that it was placed on */
    const struct kf_gradient_mode *way;
    size_t strips; /* of that job, if its rounds can be of some of them; or 0 */
    double *Xy, yy; /* X' y and y' y, where they were needed */
};

/* Points k of + lo .. k of + hi - 1 for k = 0, 1, ...: of every `of` points
 * some that follow each other. */
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

/* It is there and float64. */
kofn_status kf_regress_shape(const kofn_matrix *X, const char *name);
/* Are they points and labels?  The labels as kf_loss takes them. */
kofn_status kf_regress_points(const kofn_matrix *X, const kofn_matrix *y,
                              const char *what, kofn_loss loss,
                              double **labels);
/* A label for each of the rows of what is called `what`, likewise. */
kofn_status kf_regress_labels(const kofn_matrix *y, size_t rows,
                              const char *what, kofn_loss loss,
                              double **labels);

/* out = X' (X v - y) on this thread (gradient_modes.c), and *squares those of X
 * v - y; either may be NULL. */
kofn_status kf_learn_gram_here(const kofn_regression *r, const double *v,
                               const double *y, double *out, double *squares);

/* ---- loss.c -------------------------------------------------------------- */

/* The loss of one point; *z is its derivative by the margin t = x . w. */
double kf_loss(kofn_loss loss, double t, double y, double *z);
/* The sum of the losses of n points; z[i], which may be t[i], becomes the
 * derivative of that of point i. */
double kf_loss_sum(kofn_loss loss, const double *t, const double *y, size_t n,
                   double *z);
/* The loss's second derivative there. */
double kf_loss_second(kofn_loss loss, double t);
/* A bound of its second derivative; 0: there is none. */
double kf_loss_curvature(kofn_loss loss);
/* Labels as kf_loss takes them. */
kofn_status kf_loss_labels(kofn_loss loss, const kofn_matrix *y,
                           const char *name, double *out);

/* ---- a descent ----------------------------------------------------------- */

typedef struct kf_descent {
    const kofn_regression *r;
    kofn_job *job; /* NULL: all on this thread */
    const struct kf_gradient_mode *way;
    kofn_regress_step now;
    kofn_report sum, setup, all; /* of this iteration's rounds; of those that
                             were to find L; of the others                  */
    void *memory;           /* all the vectors below                         */
    double *v;              /* where the gradient is taken                   */
    double *g;              /* the gradient at the point under consideration  */
    double *margin;         /* m: there                                       */
    bool knows_margins;     /* they are those of the next gradient's point   */
    double *line;           /* m: X g, of a line search                       */
    double *z;              /* m: derivatives                                 */
    double *in, *out;       /* n + 1: of a round of KOFN_SUM                  */
    double *t, *there;      /* n: scratch, and a point on a line              */
    double lipschitz;       /* 0: not known                                   */
    double curvature;       /* of F along g, for squares                      */
    const double *from;     /* where the line begins                          */
    double gg;              /* |g|^2 there                                    */
    struct kf_lbfgs *pairs; /* that it remembers; or NULL                    */
    double distance;        /* to the minimum, when last asked; 0: it was not */
    unsigned done;          /* iterations before this start                   */
    bool partial;           /* a gradient was of some of the points only      */
    const double *weights;  /* of the last round's sum (kofn_report)         */
    size_t parts;
    bool remembers; /* the scheme has stand-ins for what is missing   */
} kf_descent;

static inline size_t kf_learn_features(const kf_descent *d)
{
    return d->r->X.cols;
}

/* How many of them, the first ones, the ridge is of. */
static inline size_t kf_learn_penalised(const kf_descent *d)
{
    return d->r->X.cols - d->r->opt.intercept;
}

double kf_learn_dot(const double *x, const double *y, size_t n);
/* The whole of it, from w. */
kofn_status kf_learn_descend(kf_descent d, kofn_matrix *w,
                             kofn_regress_result *res);

/* ---- gradient_modes.c, by_sum.c
 * ---------------------------------------------------- */

/* A way to have workers compute the gradient. */
typedef struct kf_gradient_mode {
    kofn_op op;
    bool left;    /* rounds from the left belong to it   */
    bool margins; /* X w is known to the master          */
    bool differs; /* the gradient is X' X w less X' y    */
    bool bent;    /* F is no parabola along a line, whatever the loss: some
                     gradients are of another time */
    /* NULL: X itself is what is multiplied. */
    kofn_problem (*problem)(const kofn_regression *r);
    /* Is this regression to be had so?  NULL: any is. */
    kofn_status (*check)(const kofn_regression *r);
    kofn_status (*place)(kofn_regression *r, kofn_job *job);
    /* The sum of the losses at w, and of their gradients in d->g. */
    kofn_status (*gradient)(kf_descent *d, const double *w, kf_some which,
                            double *F);
    /* out = X' X v. */
    kofn_status (*gram)(kf_descent *d, const double *v, double *out);
} kf_gradient_mode;

extern const kf_gradient_mode kf_by_products, kf_by_sum;
extern const kf_gradient_mode
    *const kf_gradient_modes[]; /* the best first; ends with NULL */
const kf_gradient_mode *
kf_gradient_mode_by(kofn_op op); /* NULL: there is none */
/* What workers compute in it, and whether this regression is to be had so. */
kofn_problem kf_gradient_mode_problem(const kf_gradient_mode *way,
                                      const kofn_regression *r);
kofn_status kf_gradient_mode_check(const kf_gradient_mode *way,
                                   const kofn_regression *r);
/* Runs one round, with a look at the watch now and then. */
kofn_status kf_learn_round_of(kf_descent *d, bool left, const kofn_matrix *in,
                              kofn_matrix *out);

/* kf_learn_remedy of this descent. */
const char *kf_learn_remedy_of(const kf_descent *d);
/* F at w over these points (all of them but in SGD), its gradient in d->g. */
kofn_status kf_learn_gradient_at(kf_descent *d, const double *w, kf_some which,
                                 double *F);
/* Have the job's rounds be of these points only, if it can. */
kofn_status kf_learn_limit(kf_descent *d, kf_some which);
/* F at from + t p over all points, and its gradient in g, not in d->g unless
 * that is g. */
kofn_status kf_learn_gradient_along(kf_descent *d, const double *from, double t,
                                    const double *p, double *g, double *F);
/* The losses where margins are d->margin + t d->line, added up, and their slope
 * by t. */
double kf_learn_losses_along(const kf_descent *d, double t, double *slope);
/* A sum over so many points becomes the mean, with what the ridge adds at
 * `at`. */
void kf_learn_mean(const kf_descent *d, double points, const double *at,
                   double *sum);
/* out = H p, H the second derivative of F at the point `at`, where the gradient
 * was just taken. */
kofn_status kf_learn_curved(kf_descent *d, const double *at, const double *p,
                            double *out);
/* out = X v, where the way computes such. */
kofn_status kf_learn_margins(kf_descent *d, const double *v, double *out);
/* The number after w in the input of KOFN_SUM: 0 for all points, b + 1 for
 * batch b, or this for X' X w, or with the loss less its slope along w: what
 * is left then may stand in for the loss at any w, to first order. */
#define KF_GRAM (-1)
#define KF_OFFSET (-2)
/* ---- steps.c ------------------------------------------------------------- */

/* The step along -g from w, where F and g are known. */
kofn_status kf_step(kf_descent *d, const double *w, double F, double *step);

/* ---- lbfgs.c ------------------------------------------------------------- */

/* A descent that remembers its last steps. */
typedef struct kf_lbfgs kf_lbfgs;

/* For n features; to be freed even where it fails. */
kofn_status kf_lbfgs_new(kf_lbfgs **out, size_t n);
void kf_lbfgs_free(kf_lbfgs *b);
/* It remembers no step. */
void kf_lbfgs_forget(kf_lbfgs *b);
/* F at w and its gradient in d->g, of a descent with d->pairs; without a
 * product where the last step knows them. */
kofn_status kf_lbfgs_gradient(kf_descent *d, const double *w, double *F);
/* A step from w, where F and d->g are known; its length in d->now.step. */
kofn_status kf_lbfgs_step(kf_descent *d, double *w, double F);

/* ---- distance.c
 * -------------------------------------------------------------- */

/* From `at`, where F and its gradient, in d->g, were just taken, to the
 * minimum: an estimate from below where it is more than `enough`; HUGE_VAL
 * where it cannot be told.  It takes some products. */
kofn_status kf_learn_distance(kf_descent *d, const double *at, double F,
                              double enough, double *distance);

#endif
