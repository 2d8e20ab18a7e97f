/* steps.c -- step lengths.
 *
 * Along -g from w least squares is a parabola, which one product determines.
 * For other losses every trial step costs a pass over the margins if these are
 * known (math/elastic.md 11), else a round.
 *
 * Owns its scratch within a call; the descent is the caller's. Only the
 * returned step changes w. */
#include "regress.h"
#include "vector.h"
#include "watch.h"

#include "base/rng.h"

#include <math.h>

#define POWER_ITERATIONS 30
#define POWER_MARGIN 1.02

/* ---- L ------------------------------------------------------------------- */

/* Returns a start vector with a part in every direction. */
static void start(double *v, size_t n, uint64_t seed)
{
    kf_rng r = kf_rng_stream(seed, KF_FOR_SAMPLE, 0, 0);

    for (size_t i = 0; i < n; i++)
        v[i] = kf_rng_normal(&r);
}

/* Estimates the largest eigenvalue of X' X, from below. v and t have n
 * numbers. */
static kofn_status largest(kf_descent *d, double *v, double *t, double *value)
{
    size_t n = kf_learn_features(d);

    start(v, n, d->r->opt.seed);
    for (int k = 0; k < POWER_ITERATIONS; k++) {
        double length = kf_norm(v, n);

        for (size_t i = 0; i < n; i++)
            v[i] /= length;
        TRY(d->way->gram(d, v, t));
        *value = kf_norm(t, n);
        if (!(*value > 0))
            return kf_fail(KOFN_INVAL, "X is zero, or its squares are; there "
                                       "is nothing to fit");
        if (!(*value < HUGE_VAL))
            return kf_fail(KOFN_NONFINITE, "the squares of X are more than "
                                           "float64 can hold; scale it");
        memcpy(v, t, n * sizeof *v);
    }
    return KOFN_OK;
}

/* Begins the setup: its rounds are counted apart from the iteration's. The
 * iteration's report takes the workers present from the last of these rounds.
 */
static void begin_setup(kf_descent *d, kofn_report *before)
{
    *before = d->sum;
    d->sum = (kofn_report)KOFN_REPORT_INIT;
}

static void end_setup(kf_descent *d, const kofn_report *before)
{
    kofn_report now = d->sum;

    d->setup = d->sum;
    d->now.setup = &d->setup;
    d->sum = *before;
    if (!now.rounds)
        return;
    d->sum.live = now.live;
    d->sum.rows = now.rows;
    d->sum.located = now.located;
    d->sum.states = now.states;
    d->sum.workers = now.workers;
    d->sum.weights = now.weights;
    d->sum.ages = now.ages;
    d->sum.parts = now.parts;
}

/* Finds L by power iterations, the first time. */
static kofn_status know_lipschitz(kf_descent *d)
{
    kofn_report before = KOFN_REPORT_INIT;
    double most = kf_loss_curvature(d->r->opt.loss), value = 0;
    double *v;
    kofn_status st;

    if (d->lipschitz > 0)
        return KOFN_OK;
    TRY_NEW(v, kf_learn_features(d));
    begin_setup(d, &before);
    st = largest(d, v, d->at.t, &value);
    end_setup(d, &before);
    kf_free(v);
    if (!st)
        d->lipschitz = POWER_MARGIN * value / (double)d->r->X.rows *
                           (most > 0 ? most : 1) +
                       d->r->opt.l2;
    return st;
}

/* ---- F along the line ---------------------------------------------------- */

bool kf_learn_is_parabola(const kf_descent *d)
{
    return d->r->opt.loss == KOFN_LOSS_SQUARES && !d->way->bent;
}

double kf_learn_line_square(const kf_descent *d)
{
    const kofn_regression *r = d->r;
    double sum = 0;

    assert(d->at.line);
    for (size_t i = 0; i < r->X.rows; i++)
        sum += d->at.line[i] * d->at.line[i] * (r->weights ? r->weights[i] : 1);
    return sum;
}

/* Computes the product that the line needs. */
static kofn_status line_begin(kf_descent *d, const double *w)
{
    const kofn_regression *r = d->r;
    size_t n = r->X.cols, m = r->X.rows;
    double sum = 0;
    kofn_status st = KOFN_OK;

    d->from = w;
    d->gg = kf_learn_dot(d->at.g, d->at.g, n);
    if (d->way->margins) {
        st = kf_learn_margins(d, d->at.g, d->at.line);
        sum = st ? 0 : kf_learn_line_square(d);
    } else if (kf_learn_is_parabola(d)) {
        st = d->way->gram(d, d->at.g, d->at.t);
        sum = st ? 0 : kf_learn_dot(d->at.g, d->at.t, n);
    }
    d->curvature =
        sum / (double)m +
        r->opt.l2 * kf_learn_dot(d->at.g, d->at.g, kf_learn_penalised(d));
    return st;
}

/* Returns ridge/2 |w - step g|^2. */
static double penalty(const kf_descent *d, double step)
{
    double sum = 0;

    for (size_t j = 0; j < kf_learn_penalised(d); j++) {
        double x = d->from[j] - step * d->at.g[j];

        sum += x * x;
    }
    return d->r->opt.l2 / 2 * sum;
}

/* Returns F by the margins. Sets *slope to its derivative by the step. */
static double by_margins(const kf_descent *d, double step, double *slope)
{
    double F = kf_learn_losses_along(d, -step, slope);
    double n = (double)d->r->X.rows;
    size_t ridged = kf_learn_penalised(d);

    *slope = -*slope / n -
             d->r->opt.l2 * (kf_learn_dot(d->from, d->at.g, ridged) -
                             step * kf_learn_dot(d->at.g, d->at.g, ridged));
    return F / n + penalty(d, step);
}

/* Computes F by a round at that point. */
static kofn_status by_round(kf_descent *d, double step, double *F)
{
    kofn_status st =
        kf_learn_gradient_along(d, d->from, -step, d->at.g, d->at.t, F);

    if (st != KOFN_NONFINITE)
        return st;
    *F = HUGE_VAL; /* the step is far too long */
    return KOFN_OK;
}

/* Sets *out to F at the step minus F here. */
static kofn_status change(kf_descent *d, double F, double step, double *out)
{
    double there = F, slope;
    kofn_status st = KOFN_OK;

    if (kf_learn_is_parabola(d)) { /* no cancellation near the minimum */
        *out = step * (step * d->curvature / 2 - d->gg);
        return KOFN_OK;
    }
    if (d->way->margins)
        there = by_margins(d, step, &slope);
    else
        st = by_round(d, step, &there);
    *out = there - F;
    if (!st && isnan(there))
        return kf_fail(KOFN_NONFINITE,
                       "iteration %u: the loss at the step %g is not a number",
                       d->now.iteration, step);
    return st;
}

/* ---- rules --------------------------------------------------------------- */

/* Returns the minimum of a convex function: doubles the step until it rises,
 * then bisects. */
static double by_bisection(const kf_descent *d, double first)
{
    double lo = 0, hi = first, slope;

    for (int k = 0; k < 60; k++) {
        by_margins(d, hi, &slope);
        if (!(slope < 0))
            break;
        lo = hi;
        hi *= 2;
    }
    for (int k = 0; k < 60 && hi - lo > 1e-15 * hi; k++) {
        double mid = lo + (hi - lo) / 2;

        by_margins(d, mid, &slope);
        *(slope < 0 ? &lo : &hi) = mid;
    }
    return lo > 0 ? lo : hi;
}

static kofn_status exact_step(kf_descent *d, double *step)
{
    if (!(d->curvature > 0) && d->way->differs)
        return kf_fail(KOFN_INVAL,
                       "iteration %u: the curvature along the gradient is "
                       "lost in the rounding of X' X, because some rows or "
                       "columns of X are far larger than the others; scale "
                       "them (and the labels of rows), or use scheme "
                       "elastic",
                       d->now.iteration);
    if (!(d->curvature > 0))
        return kf_fail(KOFN_INVAL,
                       "iteration %u: F falls without end along "
                       "the gradient; there is no exact step",
                       d->now.iteration);
    *step = d->gg / d->curvature;
    if (d->r->opt.loss != KOFN_LOSS_SQUARES)
        *step = by_bisection(d, *step);
    return KOFN_OK;
}

static kofn_status armijo_step(kf_descent *d, double F, double *step)
{
    for (int k = 0; k < 60; k++, *step /= 2) {
        double by;
        kofn_status st = change(d, F, *step, &by);

        if (st || by <= -1e-4 * *step * d->gg)
            return st;
    }
    return KOFN_OK; /* at a minimum up to rounding */
}

static kofn_status grid_step(kf_descent *d, double F, double *step)
{
    double best = 0, at = *step, found = *step * 0x1p-13;

    for (int k = 0; k < 14; k++, at /= 2) {
        double by;

        TRY(change(d, F, at, &by));
        if (by < best) {
            best = by;
            found = at;
        }
    }
    *step = found;
    return KOFN_OK;
}

kofn_status kf_step(kf_descent *d, const double *w, double F, double *step)
{
    const kofn_regress_options *o = &d->r->opt;
    kofn_status st = KOFN_OK;

    if (!(o->step > 0) && o->line_search != KOFN_LINE_SEARCH_EXACT)
        st = know_lipschitz(d);
    *step = o->step > 0                               ? o->step
            : o->line_search == KOFN_LINE_SEARCH_NONE ? 1 / d->lipschitz
                                                      : 16 / d->lipschitz;
    if (st || o->line_search == KOFN_LINE_SEARCH_NONE)
        return st;
    TRY(line_begin(d, w));
    return o->line_search == KOFN_LINE_SEARCH_EXACT    ? exact_step(d, step)
           : o->line_search == KOFN_LINE_SEARCH_ARMIJO ? armijo_step(d, F, step)
                                                       : grid_step(d, F, step);
}
