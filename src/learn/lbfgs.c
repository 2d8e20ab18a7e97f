/* lbfgs.c -- search directions from the last few steps and their changes of
 * the gradient (Liu and Nocedal, "On the limited memory BFGS method for large
 * scale optimization", 1989; math/regression.md 18).
 *
 * Its products are those of gradient descent. If margins are known, one
 * product X p gives F and its slope along the whole line, and the margins at
 * its end. Otherwise each trial point takes a round, and the last trial's
 * gradient is that of the next iteration.
 *
 * Owns the last steps and gradients, freed by kf_lbfgs_free. A pair without
 * curvature is skipped, never repaired. */
#include "regress.h"
#include "vector.h"
#include "watch.h"

#include <assert.h>
#include <float.h>

#define PAIRS 10
#define TRIALS 60
#define REFRESH                                                                \
    16 /* iterations after which margins, or a gradient that was carried       \
          along, are computed from w again */
#define CARRIED 1e-3 /* least share of the last computed gradient, by norm */

#define ARMIJO 1e-4
#define FLAT                                                                   \
    1e-10 /* share of F that may be rounding (Hager and Zhang, 2005)           \
           */

struct kf_lbfgs {
    double *s, *y, sy[PAIRS]; /* ring of steps and of changes of the gradient */
    size_t kept, next;
    double *from, *g, *p; /* the last step's start, gradient and direction */
    bool stepped;
    bool known; /* F and g are known at the last trial point */
    double F;
    bool carried; /* they were not computed from w, but carried along */
    double fresh; /* norm of the last gradient that was computed from w */
    double most;  /* largest curvature seen, of squares */
};

/* F along w + t p. */
typedef struct line {
    kf_descent *d;
    const double *w, *p;
    double F, slope;   /* at t = 0 */
    double ww, wp, pp; /* products of the penalised weights and directions */
} line;

typedef struct point {
    double t, F, slope;
} point;

kofn_status kf_lbfgs_new(kf_lbfgs **out, size_t n)
{
    kf_lbfgs *b;

    TRY_ZERO(*out, 1);
    b = *out;
    TRY_NEW(b->s, (2 * PAIRS + 3) * n);
    b->y = b->s + PAIRS * n;
    b->from = b->y + PAIRS * n;
    b->g = b->from + n;
    b->p = b->g + n;
    return KOFN_OK;
}

void kf_lbfgs_free(kf_lbfgs *b)
{
    if (b)
        kf_free(b->s);
    kf_free(b);
}

void kf_lbfgs_forget(kf_lbfgs *b)
{
    b->kept = b->next = 0;
    b->stepped = b->known = false;
}

/* ---- directions ---------------------------------------------------------- */

/* Remembers the last step, unless rounding or a loss without curvature makes
 * it useless. */
static void learn(kf_lbfgs *b, const kf_descent *d, const double *w)
{
    size_t n = kf_learn_features(d);
    double *s = b->s + b->next * n, *y = b->y + b->next * n, sy, size;

    assert(b->next < PAIRS);
    if (!b->stepped)
        return;
    for (size_t j = 0; j < n; j++) {
        s[j] = w[j] - b->from[j];
        y[j] = d->at.g[j] - b->g[j];
    }
    sy = kf_learn_dot(s, y, n);
    size = kf_norm(s, n) * kf_norm(y, n);
    if (!(sy > DBL_EPSILON * size) || d->partial || d->remembers)
        return;
    b->sy[b->next] = sy;
    b->next = (b->next + 1) % PAIRS;
    b->kept = kf_min(b->kept + 1, PAIRS);
}

/* Computes p = -(inverse curvature) g by the two-loop recursion. */
static void direct(kf_lbfgs *b, const double *g, size_t n)
{
    double a[PAIRS], *p = b->p;
    size_t last = (b->next + PAIRS - 1) % PAIRS;
    double scale = 1;

    assert(b->next < PAIRS);
    assert(b->kept <= PAIRS);
    for (size_t j = 0; j < n; j++)
        p[j] = -g[j];
    for (size_t k = 0; k < b->kept; k++) {
        size_t i = (last + PAIRS - k) % PAIRS;

        a[i] = kf_learn_dot(b->s + i * n, p, n) / b->sy[i];
        for (size_t j = 0; j < n; j++)
            p[j] -= a[i] * b->y[i * n + j];
    }
    if (b->kept)
        scale = b->sy[last] / kf_learn_dot(b->y + last * n, b->y + last * n, n);
    for (size_t j = 0; j < n; j++)
        p[j] *= scale;
    for (size_t k = b->kept; k > 0; k--) {
        size_t i = (last + PAIRS - (k - 1)) % PAIRS;
        double by = a[i] - kf_learn_dot(b->y + i * n, p, n) / b->sy[i];

        for (size_t j = 0; j < n; j++)
            p[j] += by * b->s[i * n + j];
    }
}

/* ---- the line ------------------------------------------------------------ */

static kofn_status by_margins(const line *l, point *at)
{
    const kofn_regression *r = l->d->r;
    double m = (double)r->X.rows, ridge = r->opt.l2, slope;
    double F = kf_learn_losses_along(l->d, at->t, &slope);

    at->F = F / m + ridge / 2 * (l->ww + at->t * (2 * l->wp + at->t * l->pp));
    at->slope = slope / m + ridge * (l->wp + at->t * l->pp);
    return KOFN_OK;
}

static kofn_status by_round(const line *l, point *at)
{
    kf_descent *d = l->d;
    kofn_status st =
        kf_learn_gradient_along(d, l->w, at->t, l->p, d->at.g, &at->F);

    assert(d->pairs);
    if (st == KOFN_NONFINITE) { /* the step is far too long */
        at->F = HUGE_VAL;
        return KOFN_OK;
    }
    at->slope = st ? 0 : kf_learn_dot(d->at.g, l->p, kf_learn_features(d));
    d->pairs->F = at->F;
    return st;
}

/* True if the point meets the strong Wolfe conditions. Uses slopes if rounding
 * hides the change of F. */
static bool serves(const line *l, const point *at)
{
    double curved =
        l->d->way->margins ? 0.1 : 0.9; /* margins make trials cheap */

    return fabs(at->slope) <= -curved * l->slope &&
           (at->F <= l->F + ARMIJO * at->t * l->slope ||
            (at->F <= l->F + FLAT * fabs(l->F) &&
             at->slope <= (2 * ARMIJO - 1) * l->slope));
}

/* Returns the next t to try.  If hi is a bound, t lies between lo and hi, where
 * the secant of their slopes is zero; if F is infinite at hi, at a tenth of the
 * way.  Without a bound t is 2 to 10 times lo->t, and lies where the secant of
 * the slopes of `before` and lo is zero. */
static double next_look(const point *lo, const point *hi, const point *before)
{
    double room = hi->t - lo->t, at;

    if (room < HUGE_VAL && !(hi->F < HUGE_VAL))
        return lo->t + room / 10;
    if (room < HUGE_VAL) {
        at = hi->slope > 0 ? lo->slope / (lo->slope - hi->slope) : 0.5;
        return lo->t + room * fmin(0.9, fmax(0.1, at));
    }
    at = before->slope < lo->slope
             ? (lo->t - before->t) * lo->slope / (before->slope - lo->slope)
             : HUGE_VAL;
    return fmin(10 * lo->t, fmax(2 * lo->t, lo->t + at));
}

/* Searches along the line; *at holds the first t. F is convex: a point at
 * which it no longer falls, or has risen, is too far. */
static kofn_status search(const line *l, point *at, bool *found)
{
    point lo = {0, l->F, l->slope}, hi = {HUGE_VAL, 0, 0}, before = lo;

    *found = false;
    for (int k = 0; k < TRIALS; k++) {
        TRY(l->d->way->margins ? by_margins(l, at) : by_round(l, at));
        *found = at->F < HUGE_VAL && serves(l, at);
        if (*found)
            return KOFN_OK;
        if (!(at->F <= l->F + FLAT * fabs(l->F)) || !(at->slope <= 0)) {
            hi = *at;
        } else {
            before = lo;
            lo = *at;
        }
        at->t = next_look(&lo, &hi, &before);
    }
    return KOFN_OK;
}

/* Sets *bend to the curvature along the line, and *flat if it is 0 up to
 * rounding. */
static kofn_status bend_of(const line *l, double *bend, bool *flat)
{
    kf_descent *d = l->d;
    kf_lbfgs *b = d->pairs;
    size_t n = kf_learn_features(d);
    double m = (double)d->r->X.rows, pp = kf_learn_dot(l->p, l->p, n), squares;

    *flat = false;
    if (d->way->margins) {
        *bend = d->r->opt.l2 * l->pp + kf_learn_line_square(d) / m;
        return KOFN_OK;
    }
    TRY(kf_learn_curved(d, l->w, l->p, d->at.t));
    *bend = kf_learn_dot(l->p, d->at.t, n);
    b->most = kf_larger(b->most, *bend / pp);
    if (*bend == 0 || *bend > KF_HIDDEN * b->most * pp)
        return KOFN_OK;
    TRY(kf_learn_gram_here(d->r, l->p, NULL, d->at.t, &squares));
    kf_learn_mean(d, m, l->p, d->at.t);
    *bend = d->r->opt.l2 * l->pp + squares / m;
    *flat = *bend <= KF_FLAT * b->most * pp;
    return KOFN_OK;
}

/* Goes to the minimum along the line, if F is a parabola.  One product with the
 * curvature gives it, and the gradient there.  A line search that is not exact
 * would need many more steps if the columns of X differ in size. */
static kofn_status vertex(const line *l, point *at, bool *found, bool *flat)
{
    kf_descent *d = l->d;
    size_t n = kf_learn_features(d);
    double bend;

    *found = false;
    TRY(bend_of(l, &bend, flat));
    if (*flat)
        return KOFN_OK;
    if (bend == 0)
        return kf_fail(KOFN_INVAL,
                       "iteration %u: the squares of X are less than float64 "
                       "can hold; scale X",
                       d->now.iteration);
    *found = bend > 0 && -l->slope / bend < HUGE_VAL;
    if (!*found)
        return KOFN_OK;
    at->t = -l->slope / bend;
    at->F = l->F + at->t * l->slope / 2;
    at->slope = 0;
    if (d->way->margins)
        return KOFN_OK;
    for (size_t j = 0; j < n; j++)
        d->at.g[j] += at->t * d->at.t[j];
    d->pairs->F = at->F;
    d->pairs->carried = true;
    return KOFN_OK;
}

/* ---- an iteration -------------------------------------------------------- */

static kofn_status begin_line(line *l, kf_lbfgs *b)
{
    kf_descent *d = l->d;
    size_t n = kf_learn_features(d), ridged = kf_learn_penalised(d);

    l->slope = kf_learn_dot(d->at.g, b->p, n);
    if (!(l->slope < 0)) { /* rounding spoilt the direction: restart */
        b->kept = 0;
        direct(b, d->at.g, n);
        l->slope = kf_learn_dot(d->at.g, b->p, n);
    }
    if (!(l->slope < 0))
        return kf_fail(KOFN_INVAL,
                       "iteration %u: the gradient is not 0, but its square "
                       "is less than float64 can hold; scale X or the labels",
                       d->now.iteration);
    l->p = b->p;
    l->ww = kf_learn_dot(l->w, l->w, ridged);
    l->wp = kf_learn_dot(l->w, l->p, ridged);
    l->pp = kf_learn_dot(l->p, l->p, ridged);
    return d->way->margins ? kf_learn_margins(d, l->p, d->at.line) : KOFN_OK;
}

/* Ends the line search. Keeps what is known at the end of the step, without
 * another product. */
static void end_line(const line *l, kf_lbfgs *b, const point *at, bool found)
{
    kf_descent *d = l->d;
    size_t m = d->r->X.rows;
    bool margins = d->way->margins;

    b->known = !margins && found;
    d->knows_margins = margins && d->now.iteration % REFRESH != 0;
    for (size_t i = 0; i < m && margins; i++)
        d->at.margin[i] += at->t * d->at.line[i];
    b->stepped = true;
    if (!found)
        b->kept = 0;
}

kofn_status kf_lbfgs_gradient(kf_descent *d, const double *w, double *F)
{
    kf_lbfgs *b = d->pairs;
    size_t n = kf_learn_features(d);
    bool known = b->known;

    assert(b);
    if (known && b->carried) /* else its rounding would decide */
        known = d->now.iteration % REFRESH != 0 &&
                kf_norm(d->at.g, n) > CARRIED * b->fresh;
    b->known = b->carried = false;
    if (known) {
        *F = b->F;
        return KOFN_OK;
    }
    known = d->knows_margins;
    TRY(kf_learn_gradient_at(d, w, KF_ALL, F));
    if (known && kf_norm(d->at.g, n) > CARRIED * b->fresh)
        return KOFN_OK;
    if (known) /* the rounding of margins that were carried along decides */
        TRY(kf_learn_gradient_at(d, w, KF_ALL, F));
    b->fresh = kf_norm(d->at.g, n);
    return KOFN_OK;
}

kofn_status kf_lbfgs_step(kf_descent *d, double *w, double F)
{
    kf_lbfgs *b = d->pairs;
    size_t n = kf_learn_features(d);
    line l = {.d = d, .w = w, .F = F};
    point at = {.t = 1};
    bool found, flat = false;

    assert(b);
    d->now.step = 0;
    if (kf_norm(d->at.g, n) == 0) /* X' X w - X' y may be 0 by rounding */
        return KOFN_OK;
    learn(b, d, w);
    direct(b, d->at.g, n);
    TRY(begin_line(&l, b));
    memcpy(b->from, w, n * sizeof *w);
    memcpy(b->g, d->at.g, n * sizeof *b->g);
    if (b->kept == 0)
        at.t = fmin(1, 1 / kf_norm(d->at.g, n));
    found = false;
    if (kf_learn_is_parabola(d) && !d->partial && !d->remembers)
        TRY(vertex(&l, &at, &found, &flat));
    if (flat) { /* only rounding makes F fall along this line */
        d->flat = b->kept == 0;
        b->kept = 0;
        b->stepped = false;
        return KOFN_OK;
    }
    if (!found)
        TRY(search(&l, &at, &found));
    end_line(&l, b, &at, found);
    for (size_t j = 0; j < n; j++)
        w[j] += at.t * l.p[j];
    d->now.step = at.t;
    return KOFN_OK;
}
