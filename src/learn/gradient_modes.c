/* gradient_modes.c -- three ways to have workers compute the gradient of a
 * model.
 *
 * KOFN_MATVEC computes the margins X w first, then z' X. z_i is the derivative
 * of the loss of point i by its margin. It takes two rounds on one encoding
 * and transfers 2 m numbers more than a sum, but the coordinator knows every
 * margin (Yang et al., "Coded elastic computing", 2018; math/elastic.md 11).
 *
 * KOFN_GRAM computes X' X w. Subtracting X' y, which is computed once, gives
 * the gradient of least squares (Li et al., "Polynomially coded regression",
 * 2018; math/regression.md 1).
 *
 * KOFN_SUM computes the gradient of each part of the points and sums over the
 * parts (by_sum.c).
 *
 * Without a job the first mode runs on this thread, as the reference for the
 * coded ones.
 *
 * The descent owns the vectors; the job is borrowed. The mode is decided when
 * the regression is placed and may not change later. */
#include "regress.h"
#include "vector.h"
#include "watch.h"

#include "base/report.h"
#include "mat/mat.h"

#include <assert.h>
#include <math.h>

/* ---- products on this thread --------------------------------------------- */

/* Returns X as an operand, dense or sparse. */
static kofn_operand points_of(const kofn_regression *r)
{
    return r->S.rows ? KOFN_SPARSE(&r->S) : KOFN_DENSE(&r->X);
}

/* Computes out = z X. */
static kofn_status times_points(const kofn_regression *r, const double *z,
                                double *out)
{
    const kofn_sparse *S = &r->S;
    kofn_matrix in = kf_learn_row_of(z, r->X.rows);
    kofn_matrix to = kf_learn_row_of(out, r->X.cols);

    if (S->rows == 0)
        return kofn_product_plain(KOFN_DENSE(&in), &r->X, &to);
    memset(out, 0, S->cols * sizeof *out);
    kf_mat_multiply_by_sparse(&in, S, 0, out);
    return KOFN_OK;
}

kofn_status kf_learn_gram_here(const kofn_regression *r, const double *v,
                               const double *y, double *out, double *squares)
{
    size_t m = r->X.rows, n = r->X.cols;
    kofn_matrix in = kf_learn_column(v, n), margins;
    double *z;
    kofn_status st;

    TRY_NEW(z, m);
    margins = kf_learn_column(z, m);
    st = kofn_product_plain(points_of(r), &in, &margins);
    for (size_t i = 0; i < m && y && !st; i++)
        z[i] -= y[i];
    if (squares && !st)
        *squares = kf_learn_dot(z, z, m);
    if (!st)
        st = times_points(r, z, out);
    kf_free(z);
    return st;
}

double kf_learn_dot(const double *x, const double *y, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

void kf_learn_weigh(const kofn_regression *r, double *z)
{
    for (size_t i = 0; i < r->X.rows && r->weights; i++)
        z[i] *= r->weights[i];
}

/* ---- rounds -------------------------------------------------------------- */

/* True if a has NaN. A partial answer has NaN for missing rows, unless the
 * scheme estimates them from the answers there are. */
static bool has_holes(const kofn_matrix *a)
{
    const double *x = a->data;
    bool holes = false;

    for (size_t i = 0; i < a->rows * a->cols; i++)
        holes |= isnan(x[i]);
    return holes;
}

static int look(void *ud)
{
    const kf_descent *d = ud;

    return d->r->opt.watch(d->r->opt.watch_ud, &d->now, NULL);
}

kofn_status kf_learn_round_of(kf_descent *d, bool left, const kofn_matrix *in,
                              kofn_matrix *out)
{
    kofn_report rep = KOFN_REPORT_INIT;
    kofn_status st =
        kf_learn_round(d->job, left, in, out,
                       (kf_look){d->r->opt.watch ? look : NULL, d}, &rep);

    assert(d->job);
    if (st == KOFN_AGAIN)
        return st;
    if (st == KOFN_PARTIAL && has_holes(out))
        return kf_fail(KOFN_TOOFEW, "a descent needs the whole gradient; "
                                    "degraded answers do not serve it");
    if (st < 0)
        return st;
    d->partial |= st == KOFN_PARTIAL;
    d->weights = rep.weights;
    d->parts = rep.parts;
    d->remembers = rep.ages != NULL;
    kf_report_add(&d->sum, &rep);
    return KOFN_OK;
}

/* ---- two products -------------------------------------------------------- */

kofn_status kf_learn_margins(kf_descent *d, const double *v, double *out)
{
    const kofn_matrix *X = &d->r->X;
    kofn_matrix in = kf_learn_column(v, X->cols),
                to = kf_learn_column(out, X->rows);

    return d->job ? kf_learn_round_of(d, false, &in, &to)
                  : kofn_product_plain(points_of(d->r), &in, &to);
}

/* Computes out = X' z. */
static kofn_status back(kf_descent *d, const double *z, double *out)
{
    const kofn_matrix *X = &d->r->X;
    kofn_matrix in = kf_learn_row_of(z, X->rows),
                to = kf_learn_row_of(out, X->cols);

    return d->job ? kf_learn_round_of(d, true, &in, &to)
                  : times_points(d->r, z, out);
}

kofn_status kf_learn_limit(kf_descent *d, kf_some which)
{
    size_t strips = d->job ? d->r->strips : 0;
    bool some = which.of == strips;

    return strips ? kofn_limit(d->job, some ? which.lo : 0,
                               some ? which.hi : strips)
                  : KOFN_OK;
}

static kofn_status place_products(kofn_regression *r, kofn_job *job)
{
    kofn_progress fresh = KOFN_PROGRESS_INIT;

    TRY(kofn_place_at(job, 0, points_of(r)));
    TRY(kofn_job_progress(job, &fresh));
    r->strips = fresh.strips;
    return KOFN_OK;
}

static kofn_status gradient_of_products(kf_descent *d, const double *w,
                                        kf_some which, double *F)
{
    const kofn_regression *r = d->r;
    size_t m = r->X.rows;

    assert(d->at.margin);
    assert(d->at.z);
    assert(which.lo < which.hi);
    assert(which.hi <= which.of);
    TRY(kf_learn_limit(d, which));
    if (!d->knows_margins)
        TRY(kf_learn_margins(d, w, d->at.margin));
    d->knows_margins = false;
    memset(d->at.z, 0, m * sizeof *d->at.z);
    if (which.of == 1)
        *F = kf_loss_sum(r->opt.loss, d->at.margin, r->y, r->weights, m,
                         d->at.z);
    for (size_t k = which.lo; k < m && which.of > 1; k += which.of)
        *F += kf_loss_sum(r->opt.loss, d->at.margin + k, r->y + k,
                          kf_learn_weights(r, k),
                          kf_min(which.hi - which.lo, m - k), d->at.z + k);
    return back(d, d->at.z, d->at.g);
}

static kofn_status gram_of_products(kf_descent *d, const double *v, double *out)
{
    TRY(kf_learn_limit(d, KF_ALL));
    TRY(kf_learn_margins(d, v, d->at.z));
    kf_learn_weigh(d->r, d->at.z);
    return back(d, d->at.z, out);
}

const kf_gradient_mode kf_by_products = {
    .op = KOFN_MATVEC,
    .left = true,
    .margins = true,
    .place = place_products,
    .gradient = gradient_of_products,
    .gram = gram_of_products,
};

/* ---- X' X w -------------------------------------------------------------- */

static kofn_status check_gram(const kofn_regression *r)
{
    if (r->opt.loss != KOFN_LOSS_SQUARES)
        return kf_fail(KOFN_UNSUITED,
                       "the scheme computes X' X w, which gives the "
                       "gradient of least squares only; use a gradient "
                       "code or scheme elastic");
    if (r->weights)
        return kf_fail(KOFN_UNSUITED,
                       "the scheme mixes points of equal weights; use scheme "
                       "elastic, or multiply rows and labels by the square "
                       "roots of the weights");
    if (r->opt.optimizer == KOFN_OPTIMIZER_SGD)
        return kf_fail(KOFN_UNSUITED,
                       "the scheme mixes all points when they are placed, so "
                       "it has no batches; use a gradient code or scheme "
                       "elastic");
    return KOFN_OK;
}

/* Computes X' y and y' y, once. */
static kofn_status know_Xy(kofn_regression *r)
{
    assert(r->y);
    if (r->Xy)
        return KOFN_OK;
    TRY_NEW(r->Xy, r->X.cols);
    r->yy = kf_learn_dot(r->y, r->y, r->X.rows);
    return times_points(r, r->y, r->Xy);
}

static kofn_status place_gram(kofn_regression *r, kofn_job *job)
{
    TRY(know_Xy(r));
    return kofn_place_at(job, 0, points_of(r));
}

static kofn_status gram(kf_descent *d, const double *v, double *out)
{
    kofn_matrix in = kf_learn_column(v, kf_learn_features(d));
    kofn_matrix to = kf_learn_column(out, kf_learn_features(d));

    return kf_learn_round_of(d, false, &in, &to);
}

static kofn_status gradient_of_gram(kf_descent *d, const double *w,
                                    kf_some which, double *F)
{
    const kofn_regression *r = d->r;
    size_t n = r->X.cols;

    assert(r->Xy);
    (void)which; /* X' X w always covers all points */
    TRY(gram(d, w, d->at.g));
    *F = (kf_learn_dot(w, d->at.g, n) - 2 * kf_learn_dot(w, r->Xy, n) + r->yy) /
         2;
    for (size_t i = 0; i < n; i++)
        d->at.g[i] -= r->Xy[i];
    return KOFN_OK;
}

static const kf_gradient_mode by_gram = {
    .op = KOFN_GRAM,
    .differs = true,
    .check = check_gram,
    .place = place_gram,
    .gradient = gradient_of_gram,
    .gram = gram,
};

/* ---- any way ------------------------------------------------------------- */

const kf_gradient_mode *const kf_gradient_modes[] = {&by_gram, &kf_by_sum,
                                                     &kf_by_products, NULL};

const kf_gradient_mode *kf_gradient_mode_by(kofn_op op)
{
    for (size_t i = 0; kf_gradient_modes[i]; i++)
        if (kf_gradient_modes[i]->op == op)
            return kf_gradient_modes[i];
    return NULL;
}

kofn_problem kf_gradient_mode_problem(const kf_gradient_mode *way,
                                      const kofn_regression *r)
{
    if (way->problem)
        return way->problem(r);
    return (kofn_problem)KOFN_PROBLEM_INIT(way->op, r->X.rows, r->X.cols, 1,
                                           KOFN_F64, r->S.rows > 0);
}

kofn_status kf_gradient_mode_check(const kf_gradient_mode *way,
                                   const kofn_regression *r)
{
    if (r->opt.relabels && !way->margins)
        return kf_fail(KOFN_UNSUITED,
                       "several vectors of labels are fitted, and under this "
                       "scheme workers have the labels of one; use scheme "
                       "elastic");
    return way->check ? way->check(r) : KOFN_OK;
}

void kf_learn_mean(const kf_descent *d, double points, const double *at,
                   double *sum)
{
    size_t n = kf_learn_features(d), ridged = kf_learn_penalised(d);

    for (size_t j = 0; j < n; j++)
        sum[j] = sum[j] / points + (j < ridged ? d->r->opt.l2 * at[j] : 0);
}

/* Returns the number of points, of m, that p selects. */
static double count(kf_some p, size_t m)
{
    assert(p.of > 0);
    assert(p.lo <= p.hi);
    size_t rest = kf_min(kf_max(m % p.of, p.lo), p.hi) - p.lo;

    return (double)(m / p.of * (p.hi - p.lo) + rest);
}

const char *kf_learn_remedy_of(const kf_descent *d)
{
    return kf_learn_remedy(d->job, d->now.iteration > 1);
}

kofn_status kf_learn_gradient_at(kf_descent *d, const double *w, kf_some which,
                                 double *F)
{
    double points = count(which, d->r->X.rows);
    kofn_status st;

    *F = 0;
    st = d->way->gradient(d, w, which, F);
    if (st == KOFN_NONFINITE)
        return kf_fail_in(st, "iteration %u: the loss is not finite; %s",
                          d->now.iteration, kf_learn_remedy_of(d));
    TRY(st);
    *F = *F / points +
         d->r->opt.l2 / 2 * kf_learn_dot(w, w, kf_learn_penalised(d));
    kf_learn_mean(d, points, w, d->at.g);
    if (!(*F - *F == 0))
        return kf_fail(KOFN_NONFINITE,
                       "iteration %u: the loss is not finite; %s",
                       d->now.iteration, kf_learn_remedy_of(d));
    return KOFN_OK;
}

kofn_status kf_learn_gradient_along(kf_descent *d, const double *from, double t,
                                    const double *p, double *g, double *F)
{
    double *before = d->at.g;
    kofn_status st;

    assert(g);
    assert(d->at.there);
    for (size_t j = 0; j < kf_learn_features(d); j++)
        d->at.there[j] = from[j] + t * p[j];
    d->at.g = g;
    st = kf_learn_gradient_at(d, d->at.there, KF_ALL, F);
    d->at.g = before;
    return st;
}

double kf_learn_losses_along(const kf_descent *d, double t, double *slope)
{
    const kofn_regression *r = d->r;
    double F = 0, at[256], z[256];

    assert(d->at.margin);
    assert(d->at.line);
    *slope = 0;
    for (size_t k = 0; k < r->X.rows; k += 256) {
        size_t n = kf_min(256, r->X.rows - k);

        for (size_t i = 0; i < n; i++)
            at[i] = d->at.margin[k + i] + t * d->at.line[k + i];
        F += kf_loss_sum(r->opt.loss, at, r->y + k, kf_learn_weights(r, k), n,
                         z);
        *slope += kf_learn_dot(z, d->at.line + k, n);
    }
    return F;
}

/* ---- curvature ----------------------------------------------------------- */

/* Approximates H p by the change of the gradient over a short way along p. */
static kofn_status curved_by_difference(kf_descent *d, const double *at,
                                        const double *p, double *out)
{
    size_t n = kf_learn_features(d);
    double size = kf_norm(at, n), step = 1e-5 * (size > 0 ? size : 1), F;

    assert(out != d->at.g);
    step /= kf_norm(p, n);
    TRY(kf_learn_gradient_along(d, at, step, p, out, &F));
    for (size_t j = 0; j < n; j++)
        out[j] = (out[j] - d->at.g[j]) / step;
    return KOFN_OK;
}

/* Computes X' D X p; D holds the second derivatives of the losses. */
static kofn_status curved_by_margins(kf_descent *d, const double *p,
                                     double *out)
{
    const kofn_regression *r = d->r;
    kofn_status st = kf_learn_margins(d, p, d->at.line);

    assert(d->at.line);
    assert(d->at.z);
    for (size_t i = 0; i < r->X.rows && !st; i++)
        d->at.z[i] =
            kf_loss_second(r->opt.loss, d->at.margin[i]) * d->at.line[i];
    kf_learn_weigh(r, d->at.z);
    return st ? st : back(d, d->at.z, out);
}

kofn_status kf_learn_curved(kf_descent *d, const double *at, const double *p,
                            double *out)
{
    bool squares = d->r->opt.loss == KOFN_LOSS_SQUARES;

    if (!squares && !d->way->margins)
        return curved_by_difference(d, at, p, out);
    TRY(squares ? d->way->gram(d, p, out) : curved_by_margins(d, p, out));
    kf_learn_mean(d, (double)d->r->X.rows, p, out);
    return KOFN_OK;
}
