/* regress.c -- linear models by gradient descent, one coded gradient per step.
 *
 * Only the gradient is coded (gradient_modes.c); w is updated here. With a
 * fixed step the iterates equal those of the plain descent up to rounding,
 * whatever the workers do.
 *
 * Nesterov's constants t/(t+3) are those of math/regression.md 9. w and v
 * start at the same point, and workers receive v:
 *
 *     w' = v - g(v)/L,   v' = w' + t/(t+3) (w' - w),   t = 0, 1, ...
 *
 * A regression borrows points and labels and owns what it derived from them. A
 * fit owns its vectors while it runs. Rounds are its only contact with
 * workers. */
#include "regress.h"

#include "audit.h"
#include "options.h"
#include "vector.h"
#include "watch.h"

#include "base/report.h"
#include "base/rng.h"
#include "mat/mat.h"

#include <math.h>
#include <stdio.h>

/* ---- a problem ----------------------------------------------------------- */

static kofn_status with_defaults(kofn_regress_options *o,
                                 const kofn_regress_options *opt)
{
    *o = (kofn_regress_options)KOFN_REGRESS_OPTIONS_INIT;
    TRY(kf_given(o, sizeof *o, opt, "KOFN_REGRESS_OPTIONS_INIT"));
    return kf_learn_settle(KOFN_TABLE_REGRESS, o);
}

/* Replaces AUTO.  `partial`: sums lack some points, so differences of gradients
 * mean nothing to L-BFGS. */
static void choose_optimizer(kofn_regress_options *o, bool automatic,
                             bool partial)
{
    if (automatic)
        o->optimizer =
            partial || o->step > 0 || o->line_search != KOFN_LINE_SEARCH_NONE
                ? KOFN_OPTIMIZER_GD
                : KOFN_OPTIMIZER_LBFGS;
    if (o->loss == KOFN_LOSS_POISSON && o->optimizer == KOFN_OPTIMIZER_GD &&
        o->line_search == KOFN_LINE_SEARCH_NONE && o->step == 0)
        o->line_search = KOFN_LINE_SEARCH_ARMIJO; /* this loss has no 1/L */
}

/* True if the sums of this job's scheme lack some points. */
static bool is_partial(const kofn_job *job)
{
    kofn_plan_info info = KOFN_PLAN_INFO_INIT;

    return !kofn_plan_describe(kofn_job_plan(job), false, &info) &&
           (!strcmp(info.scheme, "ignore") ||
            !strcmp(info.scheme, "distr-bgd"));
}

static kofn_status check_options(const kofn_regress_options *o, size_t m)
{
    if (o->optimizer != KOFN_OPTIMIZER_GD &&
        o->line_search != KOFN_LINE_SEARCH_NONE)
        return kf_fail(KOFN_INVAL, "line searches go with plain gradient "
                                   "descent; the others need a fixed step, or "
                                   "have a search of their own (lbfgs)");
    if (o->optimizer == KOFN_OPTIMIZER_LBFGS && o->step > 0)
        return kf_fail(KOFN_INVAL,
                       "step = %g is for descents with fixed steps; lbfgs "
                       "finds its own, leave it out",
                       o->step);
    if (o->line_search == KOFN_LINE_SEARCH_NONE && !(o->step > 0) &&
        o->loss == KOFN_LOSS_POISSON && o->optimizer != KOFN_OPTIMIZER_LBFGS)
        return kf_fail(KOFN_INVAL,
                       "the curvature of Poisson's loss has no "
                       "bound, so there is no fixed step 1/L; give a step, or "
                       "use lbfgs or plain gradient descent, which search "
                       "for one");
    if (o->optimizer == KOFN_OPTIMIZER_SGD && o->batches > m)
        return kf_fail(KOFN_INVAL, "%u batches of %zu points", o->batches, m);
    return KOFN_OK;
}

kofn_status kf_regress_shape(const kofn_matrix *X, const char *name)
{
    if (!X || !X->data)
        return kf_fail(KOFN_SHAPE, "%s is missing", name);
    TRY(kf_mat_check_matrix(X, name));
    if (X->dtype != KOFN_F64)
        return kf_fail(KOFN_SHAPE, "%s must be float64", name);
    return KOFN_OK;
}

kofn_status kf_regress_labels(const kofn_matrix *y, size_t rows,
                              const char *what, kofn_loss loss, double **labels)
{
    kofn_status st;

    TRY(kf_regress_shape(y, "y"));
    if (y->cols != 1 || y->rows != rows)
        return kf_fail(KOFN_SHAPE,
                       "y is %zu x %zu and must be %zu x 1: a "
                       "label for each row of %s",
                       y->rows, y->cols, rows, what);
    *labels = kf_new(y->rows, sizeof **labels);
    st = *labels ? kf_loss_labels(loss, y, "y", *labels) : KOFN_NOMEM;
    if (st) {
        kf_free(*labels);
        *labels = NULL;
    }
    return st;
}

/* Checks the labels of classification. With one class alone, weights grow
 * without limit, or the ridge alone determines them. */
static kofn_status check_classes(const kofn_regression *r)
{
    size_t m = r->X.rows, ones = 0;

    if (r->opt.loss != KOFN_LOSS_LOGISTIC)
        return KOFN_OK;
    for (size_t i = 0; i < m; i++)
        ones += r->y[i] > 0;
    if (ones == 0 || ones == m)
        return kf_fail(KOFN_INVAL,
                       "all %zu labels of y are of one class; logistic "
                       "regression needs points of two classes",
                       m);
    return KOFN_OK;
}

kofn_status kf_regress_points(const kofn_matrix *X, const kofn_matrix *y,
                              const char *what, kofn_loss loss, double **labels)
{
    *labels = NULL;
    TRY(kf_regress_shape(X, what));
    TRY(kf_mat_check_finite(X, what));
    return kf_regress_labels(y, X->rows, what, loss, labels);
}

static kofn_status fill_dense(kofn_regression *r, const kofn_matrix *X,
                              const kofn_matrix *y)
{
    TRY(kf_regress_points(X, y, "X", r->opt.loss, &r->y));
    r->X = *X;
    if (r->opt.optimizer == KOFN_OPTIMIZER_SGD &&
        X->ld > INT32_MAX / r->opt.batches)
        return kf_fail(KOFN_INVAL,
                       "%u batches of rows of %zu numbers are too far apart",
                       r->opt.batches, X->ld);
    return KOFN_OK;
}

static kofn_status fill_sparse(kofn_regression *r, const kofn_sparse *X,
                               const kofn_matrix *y)
{
    TRY(kf_mat_check_sparse(X, "X"));
    TRY(kf_regress_labels(y, X->rows, "X", r->opt.loss, &r->y));
    r->S = *X;
    r->X = (kofn_matrix){NULL, X->rows, X->cols, X->cols, KOFN_F64};
    return KOFN_OK;
}

/* Copies the weights of the points, and scales them to a mean of 1. */
static kofn_status take_weights(kofn_regression *r)
{
    const kofn_matrix *from = r->opt.weights;
    size_t m = r->X.rows;
    double sum = 0;

    if (!from)
        return KOFN_OK;
    TRY(kf_regress_shape(from, "weights"));
    if (from->cols != 1 || from->rows != m)
        return kf_fail(KOFN_SHAPE,
                       "weights is %zu x %zu and must be %zu x 1: a weight "
                       "for each row of X",
                       from->rows, from->cols, m);
    TRY_NEW(r->weights, m);
    for (size_t i = 0; i < m; i++) {
        double s = ((const double *)from->data)[i * from->ld];

        if (!(s >= 0 && s < HUGE_VAL))
            return kf_fail(KOFN_INVAL,
                           "weights[%zu] = %g; weights are finite and not "
                           "negative",
                           i, s);
        r->weights[i] = s;
        sum += s / (double)m;
    }
    if (!(sum > 0))
        return kf_fail(KOFN_INVAL, "all weights of the points are 0");
    for (size_t i = 0; i < m; i++)
        r->weights[i] /= sum;
    r->opt.weights = NULL;
    return KOFN_OK;
}

static kofn_status fill(kofn_regression *r, kofn_operand X,
                        const kofn_matrix *y)
{
    const kofn_regress_options *o = &r->opt;

    if (!X.dense && !X.sparse)
        return kf_fail(KOFN_INVAL, "X is missing");
    TRY(X.sparse ? fill_sparse(r, X.sparse, y) : fill_dense(r, X.dense, y));
    TRY(check_options(o, r->X.rows));
    TRY(check_classes(r));
    TRY(take_weights(r));
    if (!o->test_X)
        return KOFN_OK;
    TRY(kf_regress_points(o->test_X, o->test_y, "the held-out X", o->loss,
                          &r->test_y));
    r->test = *o->test_X;
    if (r->test.cols != r->X.cols)
        return kf_fail(KOFN_SHAPE, "the held-out X has %zu columns and X %zu",
                       r->test.cols, r->X.cols);
    return KOFN_OK;
}

kofn_status kofn_regression_new(kofn_regression **out, kofn_operand X,
                                const kofn_matrix *y,
                                const kofn_regress_options *opt)
{
    kofn_regression *r;
    kofn_status st;

    *out = NULL;
    TRY_ZERO(r, 1);
    st = with_defaults(&r->opt, opt);
    r->automatic = r->opt.optimizer == KOFN_OPTIMIZER_AUTO;
    choose_optimizer(&r->opt, r->automatic, false);
    if (!st)
        st = fill(r, X, y);
    if (st) {
        kofn_regression_free(r);
        return st;
    }
    *out = r;
    return KOFN_OK;
}

void kofn_regression_free(kofn_regression *r)
{
    if (!r)
        return;
    kf_free(r->y);
    kf_free(r->test_y);
    kf_free(r->weights);
    kf_free(r->Xy);
    kf_free(r);
}

/* ---- which way ----------------------------------------------------------- */

#define SMALL ((size_t)1 << 20) /* numbers of X that count as small: 8 MB */

const char *kofn_regression_scheme(const kofn_regression *r, size_t workers,
                                   char *out, size_t size)
{
    size_t spare = kf_min(workers / 2, 16);
    size_t parts =
        (workers - spare + 1) / 2; /* pcr decodes from 2 parts - 1 answers */

    if (workers >= 3 && workers <= 16 && r->X.rows >= workers &&
        r->X.rows <= SMALL / r->X.cols && r->X.rows / 2 >= r->X.cols &&
        !kf_gradient_mode_check(kf_gradient_mode_by(KOFN_GRAM), r))
        snprintf(out, size, "pcr:r=%zu", kf_ceil_div(workers, parts));
    else
        snprintf(out, size, "elastic");
    return out;
}

kofn_status kofn_regression_problem(const kofn_regression *r, const char *spec,
                                    size_t workers, kofn_problem *pb)
{
    TRY(kf_begun(pb, "KOFN_PROBLEM_INIT"));
    for (size_t i = 0; kf_gradient_modes[i]; i++) {
        const kofn_problem of =
            kf_gradient_mode_problem(kf_gradient_modes[i], r);
        kofn_plan *plan;
        kofn_status st = kofn_plan_new(&plan, &of, spec, workers, 0);

        if (!st && kf_gradient_modes[i]->left)
            st = kofn_plan_serve_left(plan, 1);
        kofn_plan_free(plan);
        kf_give(pb, &of, sizeof of);
        if (st != KOFN_UNSUITED)
            return st ? st : kf_gradient_mode_check(kf_gradient_modes[i], r);
    }
    return kf_fail(KOFN_UNSUITED,
                   "scheme %.*s computes neither X' X w nor sums of gradients "
                   "nor both X w and z' X; use scheme elastic",
                   (int)strcspn(spec, ":"), spec);
}

kofn_status kofn_regression_place(kofn_regression *r, kofn_job *job, kofn_op op)
{
    const kf_gradient_mode *way = kf_gradient_mode_by(op);

    if (!way)
        return kf_fail(KOFN_INVAL,
                       "a regression is computed by KOFN_GRAM, "
                       "KOFN_SUM or KOFN_MATVEC; see kofn_regression_problem");
    TRY(kf_gradient_mode_check(way, r));
    choose_optimizer(&r->opt, r->automatic, is_partial(job));
    r->strips = 0;
    TRY(way->place(r, job));
    r->job = job;
    r->way = way;
    return KOFN_OK;
}

kofn_status kofn_regression_relabel(kofn_regression *r, const kofn_matrix *y)
{
    double *old = r->y, *labels = NULL;
    kofn_status st;

    if (r->way && !r->way->margins)
        return kf_fail(KOFN_UNSUITED,
                       "under this scheme workers have the labels, or what was "
                       "computed of them; make another regression and job, or "
                       "use scheme elastic");
    TRY(kf_regress_labels(y, r->X.rows, "X", r->opt.loss, &labels));
    r->y = labels;
    st = check_classes(r);
    if (st) {
        r->y = old;
        kf_free(labels);
        return st;
    }
    kf_free(old);
    kf_free(r->Xy);
    r->Xy = NULL;
    return KOFN_OK;
}

kofn_status kofn_regression_penalise(kofn_regression *r, double l2)
{
    kofn_regress_options o = r->opt;

    o.l2 = l2;
    TRY(kf_learn_settle(KOFN_TABLE_REGRESS, &o));
    r->opt.l2 = l2;
    return KOFN_OK;
}

/* ---- descents ------------------------------------------------------------ */

static void descent_free(kf_descent *d)
{
    kf_free(d->at.memory);
    kf_lbfgs_free(d->pairs);
}

static kofn_status descent_new(kf_descent *d)
{
    size_t m = d->way->margins ? d->r->X.rows : 0, n = d->r->X.cols;

    d->at.memory = kf_new(4 * n + 2 * (n + 1) + 3 * m, sizeof(double));
    if (!d->at.memory)
        return KOFN_NOMEM;
    d->at.v = d->at.memory;
    d->at.g = d->at.v + n;
    d->at.t = d->at.g + n;
    d->at.there = d->at.t + n;
    d->at.in = d->at.there + n;
    d->at.out = d->at.in + n + 1;
    d->at.margin = d->at.out + n + 1;
    d->at.line = d->at.margin + m;
    d->at.z = d->at.line + m;
    return d->r->opt.optimizer == KOFN_OPTIMIZER_LBFGS
               ? kf_lbfgs_new(&d->pairs, n)
               : KOFN_OK;
}

/* Returns the points of iteration t: all, or a batch. An epoch visits each
 * batch once, in a shuffled order. Batches are equal runs of strips if workers
 * can do single strips (math/elastic.md 11), else every B-th point. */
static kf_some points_of(const kofn_regression *r, unsigned t)
{
    size_t B = r->opt.batches, at = t % B, first = 0;
    size_t of = r->strips >= B ? r->strips : B;
    kf_rng rng = kf_rng_stream(r->opt.seed, KF_FOR_DATA, t / r->opt.batches, 0);

    if (r->opt.optimizer != KOFN_OPTIMIZER_SGD)
        return KF_ALL;
    first = at; /* follows batch 0 .. B-1 through a shuffle */
    for (size_t i = 1; i < B; i++) {
        size_t j = (size_t)kf_rng_below(&rng, i + 1);

        if (first == i)
            first = j;
        else if (first == j)
            first = i;
    }
    return (kf_some){first * of / B, (first + 1) * of / B, of};
}

static kofn_status test_loss(const kofn_regression *r, const double *w,
                             double *mean)
{
    kofn_matrix in = kf_learn_column(w, r->X.cols), out;
    double *t, z, sum = 0;
    kofn_status st;

    *mean = NAN;
    if (!r->test_y)
        return KOFN_OK;
    TRY_NEW(t, r->test.rows);
    out = kf_learn_column(t, r->test.rows);
    st = kofn_product_plain(KOFN_DENSE(&r->test), &in, &out);
    for (size_t i = 0; i < r->test.rows && !st; i++)
        sum += kf_loss(r->opt.loss, t[i], r->test_y[i], &z);
    kf_free(t);
    *mean = sum / (double)r->test.rows;
    return st;
}

/* Moves w and v, which differ in Nesterov's descent only. */
static void move(const kf_descent *d, double *w, double *v)
{
    unsigned t = d->now.iteration - 1;
    double on = d->r->opt.optimizer == KOFN_OPTIMIZER_NESTEROV
                    ? (double)t / ((double)t + 3)
                    : 0;

    for (size_t j = 0; j < kf_learn_features(d); j++) {
        double next = v[j] - d->now.step * d->at.g[j];

        v[j] = next + on * (next - w[j]);
        w[j] = next;
    }
}

/* Decides whether a small gradient means that the minimum is near. The next
 * check waits until the gradient has shrunk in proportion to the missing
 * distance. A gradient of some of the points, or with remembered parts,
 * decides nothing. */
static kofn_status is_over(kf_descent *d, const double *v, bool *converged)
{
    const kofn_regress_options *o = &d->r->opt;
    kofn_regress_step *now = &d->now;
    /* a share of |w|: F is flat at its minimum, so w is known to half of F's
     * digits */
    double enough = sqrt(o->tol) * kf_norm(v, kf_learn_features(d));

    *converged = now->gradient == 0 && (now->first == 0 || !d->way->differs);
    if (*converged || o->optimizer == KOFN_OPTIMIZER_SGD ||
        !(now->gradient < o->tol * now->first) ||
        (now->ask > 0 && !(now->gradient < now->ask)))
        return KOFN_OK;
    *converged = d->way->bent || d->partial || d->remembers || d->flat;
    if (*converged)
        return KOFN_OK;
    TRY(kf_learn_distance(d, v, now->objective, enough, &d->distance));
    *converged = d->distance <= enough;
    now->ask = now->gradient * fmin(0.5, fmax(0.1, enough / d->distance));
    return KOFN_OK;
}

/* Sets now->first to the norm of the gradient at w = 0, which `tol` refers to.
 * A start near the minimum would otherwise ask for digits that do not exist. */
static kofn_status look_at_zero(kf_descent *d, const double *v)
{
    size_t n = kf_learn_features(d);
    double F;

    if (d->r->opt.optimizer == KOFN_OPTIMIZER_SGD || kf_norm(v, n) == 0)
        return KOFN_OK;
    memset(d->at.there, 0, n * sizeof *d->at.there);
    TRY(kf_learn_gradient_at(d, d->at.there, KF_ALL, &F));
    d->now.first = kf_norm(d->at.g, n);
    return KOFN_OK;
}

/* Computes a gradient and takes a step. */
static kofn_status iterate(kf_descent *d, double *w, double *v, bool *converged)
{
    kofn_regress_step *now = &d->now;
    size_t n = kf_learn_features(d);

    if (d->job) /* the rounds of the iteration are counted together */
        TRY(kofn_step(d->job, now->iteration - d->done));
    if (now->iteration == 1)
        TRY(look_at_zero(d, v));
    TRY(d->pairs
            ? kf_lbfgs_gradient(d, v, &now->objective)
            : kf_learn_gradient_at(d, v, points_of(d->r, now->iteration - 1),
                                   &now->objective));
    now->gradient = kf_norm(d->at.g, n);
    if (!(now->gradient < HUGE_VAL))
        return kf_fail(KOFN_NONFINITE,
                       "iteration %u: the gradient is not finite; %s",
                       now->iteration, kf_learn_remedy_of(d));
    if (now->iteration == 1)
        now->first = kf_larger(now->first, now->gradient);
    now->step = 0;
    TRY(is_over(d, v, converged));
    if (!*converged && !d->pairs) {
        TRY(kf_step(d, v, now->objective, &now->step));
        move(d, w, v);
    } else {
        if (!*converged)
            TRY(kf_lbfgs_step(d, v, now->objective));
        memcpy(w, v, n * sizeof *w);
    }
    now->lipschitz = d->lipschitz;
    now->partial = d->partial;
    return test_loss(d->r, w, &now->test);
}

/* Continues from the kept state. */
static void went_back(kf_descent *d)
{
    d->lipschitz = d->now.lipschitz;
    d->partial = d->now.partial;
    if (d->pairs)
        kf_lbfgs_forget(d->pairs);
}

/* Takes one iteration, and lets the audit judge it. */
static kofn_status take_step(kf_descent *d, kf_audit *a, double *w,
                             bool *converged)
{
    const kofn_regress_options *o = &d->r->opt;
    unsigned t = ++d->now.iteration;
    kf_audit_move to;
    kofn_status st = kf_audit_before(a, t, t == o->max_iterations);

    if (!st)
        st = iterate(d, w, d->at.v, converged);
    TRY(kf_audit_after(a, t, &d->sum, *converged, &st, &to));
    *converged &= to == KF_AUDIT_ON;
    if (to == KF_AUDIT_BACK)
        went_back(d);
    else if (st || to == KF_AUDIT_ONCE_MORE)
        d->now.iteration--;
    else if (o->watch && o->watch(o->watch_ud, &d->now, &d->sum))
        st = KOFN_AGAIN;
    return st;
}

/* Takes steps until the descent has converged or reached its limit. A failed
 * step does not count, but its rounds do. */
static kofn_status descend(kf_descent *d, kf_audit *a, double *w,
                           bool *converged)
{
    while (d->now.iteration < d->r->opt.max_iterations && !*converged) {
        kofn_status st = take_step(d, a, w, converged);

        kf_learn_add_up(&d->all, &d->setup);
        d->now.setup = NULL;
        kf_learn_add_up(&d->all, &d->sum);
        if (st)
            return st;
    }
    return KOFN_OK;
}

static kofn_status descend_audited(kf_descent *d, double *w, bool *converged)
{
    size_t n = kf_learn_features(d) * sizeof *w;
    const kf_audit_part state[KF_AUDIT_PARTS] = {
        {&d->now, sizeof d->now}, {w, n}, {d->at.v, n}};
    kf_audit a;
    kofn_status st = kf_audit_begin(&a, d->job, state, &d->now.objective);

    if (!st)
        st = descend(d, &a, w, converged);
    kf_audit_free(&a);
    return st;
}

/* Resumes after the step in the options. Returns true if that step was the
 * last. */
static bool go_on(kf_descent *d)
{
    d->now = *d->r->opt.resume;
    d->done = d->now.iteration;
    d->lipschitz = d->now.lipschitz;
    d->partial = d->now.partial;
    memcpy(d->at.v, d->now.v, kf_learn_features(d) * sizeof *d->at.v);
    return d->now.step == 0;
}

kofn_status kf_learn_descend(kf_descent d, kofn_matrix *w,
                             kofn_regress_result *res)
{
    kofn_regress_result own = KOFN_REGRESS_RESULT_INIT;
    kofn_status st;

    TRY(kf_begun(res, "KOFN_REGRESS_RESULT_INIT"));
    TRY(kf_vector_check(w, d.r->X.cols, 1, "w"));
    TRY(kf_mat_check_finite(w, "w"));
    st = descent_new(&d);
    if (!st) {
        memcpy(d.at.v, w->data, kf_learn_features(&d) * sizeof *d.at.v);
        if (d.job && d.r->opt.resume && d.r->opt.resume->iteration)
            own.converged = go_on(&d);
        d.now.w = w->data;
        d.now.v = d.at.v;
        st = descend_audited(&d, w->data, &own.converged);
        if (!st)
            st = kf_learn_limit(&d, KF_ALL);
        if (!st && d.partial)
            st = KOFN_PARTIAL;
    }
    own.iterations = d.now.iteration;
    own.objective = d.now.objective;
    own.gradient = d.now.gradient;
    own.test = d.now.test;
    own.lipschitz = d.lipschitz;
    own.distance = d.distance;
    own.rounds = d.all;
    kf_give(res, &own, sizeof own);
    descent_free(&d);
    return st;
}

kofn_status kofn_regress(kofn_regression *r, kofn_matrix *w,
                         kofn_regress_result *res)
{
    if (!r->job)
        return kf_fail(KOFN_STATE, "no worker has the data; call "
                                   "kofn_regression_place");
    return kf_learn_descend((kf_descent){.r = r, .job = r->job, .way = r->way},
                            w, res);
}

kofn_status kofn_regress_plain(kofn_regression *r, kofn_matrix *w,
                               kofn_regress_result *res)
{
    return kf_learn_descend((kf_descent){.r = r, .way = &kf_by_products}, w,
                            res);
}
