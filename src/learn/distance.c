/* distance.c -- estimates the distance to the minimum when the gradient has
 * become small.
 *
 * A small gradient alone proves nothing. With one large point it falls by ten
 * orders of magnitude while most weights have not moved (math/regression.md
 * 17). So the distance |H^+ g| itself is found by conjugate gradients on H d =
 * -g; H is the curvature of F at this point. Their d only grow in length
 * (Steihaug, 1983), so one that is too long decides.
 *
 * Owns the vectors of conjugate gradients within a call. The rounds it takes
 * are counted in the report. */
#include "regress.h"
#include "vector.h"
#include "watch.h"

#include <assert.h>
#include <float.h>

#define FEW 8   /* steps that are always taken, even if the rest seems small */
#define MOST 30 /* most steps; finding L takes the same number */

/* Rounding level of a gradient, relative to the size it would have if the rows
 * did not cancel. */
#define NOISE (1000 * DBL_EPSILON)

typedef struct probe {
    kf_descent *d;
    const double *at;
    double F, enough; /* F at `at`; a distance that is small enough */
    double *r, *p, *q, *x;
    double rr, least, most; /* |r|^2; smallest and largest curvature seen */
    bool here;              /* compute products on this thread */
    bool blind;             /* rounding may hide further directions */
} probe;

/* Returns an upper estimate of the distance, from the curvatures seen. */
static double reach(const probe *b, size_t n)
{
    return kf_norm(b->x, n) + sqrt(b->rr) / b->least;
}

/* Returns the rounding error of the gradient: that of the rows, and that of X'
 * X w and X' y if they are subtracted. */
static double noise(const probe *b)
{
    const kofn_regression *r = b->d->r;
    double gram = 0;

    if (b->d->way->differs && !b->here)
        gram = kf_norm(r->Xy, r->X.cols) / (double)r->X.rows +
               b->most * kf_norm(b->at, r->X.cols);
    return NOISE * (sqrt(2 * fabs(b->F) * b->most) + gram);
}

/* Computes out = X' X p / m + ridge p on this thread. With y, also subtracts
 * X' y / m and sets b->F. */
static kofn_status product_here(probe *b, const double *p, const double *y,
                                double *out)
{
    double m = (double)b->d->r->X.rows, squares;

    TRY(kf_learn_gram_here(b->d->r, p, y, out, &squares));
    if (y)
        b->F = squares / (2 * m);
    kf_learn_mean(b->d, m, p, out);
    return KOFN_OK;
}

/* Computes q = H p.  If rounding of the workers' products hides the curvature,
 * computes it on this thread. */
static kofn_status curve(probe *b, size_t n, double pp, double *pq)
{
    kf_descent *d = b->d;

    TRY(b->here ? product_here(b, b->p, NULL, b->q)
                : kf_learn_curved(d, b->at, b->p, b->q));
    *pq = kf_learn_dot(b->p, b->q, n);
    b->most = kf_larger(b->most, *pq / pp);
    if (b->here || d->way->margins || d->r->opt.loss != KOFN_LOSS_SQUARES ||
        *pq > KF_HIDDEN * b->most * pp)
        return KOFN_OK;
    TRY(product_here(b, b->p, NULL, b->q));
    *pq = kf_learn_dot(b->p, b->q, n);
    return KOFN_OK;
}

/* Takes one step. Sets *over if further steps would learn nothing. */
static kofn_status advance(probe *b, size_t n, bool *over)
{
    double pp = kf_learn_dot(b->p, b->p, n), pq, next, by;

    assert(b->rr > 0);
    TRY(curve(b, n, pp, &pq));
    *over = true;
    b->blind = !(pq > KF_FLAT * b->most * pp);
    if (!(pq > 0) || (b->blind && sqrt(b->rr) <= noise(b)))
        return KOFN_OK;
    b->blind = false;
    b->least = b->least > 0 ? fmin(b->least, pq / pp) : pq / pp;
    for (size_t j = 0; j < n; j++) {
        b->x[j] -= b->rr / pq * b->p[j];
        b->r[j] -= b->rr / pq * b->q[j];
    }
    next = kf_learn_dot(b->r, b->r, n);
    by = next / b->rr;
    b->rr = next;
    for (size_t j = 0; j < n; j++)
        b->p[j] = b->r[j] + by * b->p[j];
    *over = !(next > 0);
    return KOFN_OK;
}

/* Returns the distance, or HUGE_VAL if rounding hides directions in which F
 * may still fall. Hidden directions do not matter if g is small compared with
 * the points and their residuals (Paige and Saunders, 1982). */
static double conclude(const probe *b, size_t n, double gradient)
{
    double tolerance = b->d->r->opt.tol;

    if (!(b->least > 0) ||
        (b->blind && !(gradient <= tolerance * sqrt(2 * b->F * b->most))))
        return HUGE_VAL;
    return reach(b, n);
}

/* Runs conjugate gradients until the distance is known to be too long or small
 * enough. A few steps mostly suffice (math/regression.md 17). */
static kofn_status look(probe *b, size_t n, double *distance)
{
    double gradient;
    bool over;

    assert(n > 0);
    memcpy(b->p, b->r, n * sizeof *b->p);
    memset(b->x, 0, n * sizeof *b->x);
    b->rr = kf_learn_dot(b->r, b->r, n);
    b->least = b->most = 0;
    gradient = sqrt(b->rr);
    over = !(gradient > 0);
    b->blind = over;
    *distance = 0;
    if (over)
        return KOFN_OK;
    for (size_t k = 0; k < MOST && !over; k++) {
        TRY(advance(b, n, &over));
        if (kf_norm(b->x, n) > b->enough)
            break;
        /* on this thread all are taken: rounding hides small curvatures long */
        if (!b->here)
            over |= k + 1 >= n || (k + 1 >= FEW && reach(b, n) <= b->enough);
    }
    *distance = conclude(b, n, gradient);
    return KOFN_OK;
}

kofn_status kf_learn_distance(kf_descent *d, const double *at, double F,
                              double enough, double *distance)
{
    size_t n = kf_learn_features(d);
    double *room;
    probe b = {.d = d, .at = at, .F = F, .enough = enough};
    kofn_status st;

    TRY_ZERO(room, 4 * n);
    b.r = room;
    b.p = room + n;
    b.q = room + 2 * n;
    b.x = room + 3 * n;
    memcpy(b.r, d->at.g, n * sizeof *b.r);
    st = look(&b, n, distance);
    /* X itself shows more than X' X, which may also hide the gradient */
    if (!st && d->way->differs &&
        (b.blind || kf_norm(d->at.g, n) <= noise(&b))) {
        b.here = true;
        st = product_here(&b, at, d->r->y, b.r);
        if (!st)
            st = look(&b, n, distance);
    }
    kf_free(room);
    return st;
}
