/* failing.c -- descents on machines that fail, without a code.
 *
 * Baselines for elastic regression (math/elastic.md 17). The points of a
 * failed machine are ignored, and the others stand for all. Or their loss is
 * replaced by its first-order expansion at the last iterate at which it was
 * computed (Narayanamurthy, Weimer, Mahajan, Condie, Sellamanickam, Keerthi,
 * "Towards resource-elastic machine learning", 2013):
 *
 *     f_p(w) ~ f_p(w_p) + g_p . (w - w_p). */
#include "failing.h"

#include "base/rng.h"
#include "learn/regress.h"

#include <math.h>

typedef struct failing {
    kf_gradient_mode way; /* how the descent gets its gradients */
    failures how;
    size_t length; /* n + 1: a gradient and a loss */
    unsigned
        *until;    /* by part: the iteration in which it returns; 0: it is up */
    double *known; /* by part: g_p, and f_p(w_p) - g_p . w_p */
    double *value; /* scratch, of one part */
    double *in, *sum;
    unsigned now; /* the current iteration */
    bool fresh;   /* the next gradient is kept for later */
} failing;

/* Lets machines fail and return at the start of iteration t. */
static kofn_status begin(failing *f, unsigned t)
{
    size_t there = 0;

    for (size_t p = 0; p < f->how.parts; p++) {
        kf_rng r = kf_rng_stream(f->how.seed, KF_FOR_LEAVE, (uint32_t)p, t);

        if (f->until[p] == t)
            f->until[p] = 0;
        if (!f->until[p] && kf_rng_uniform(&r) < f->how.probability)
            f->until[p] = f->how.delay ? t + f->how.delay : UINT32_MAX;
        there += !f->until[p];
    }
    f->now = t;
    f->fresh = true;
    if (there == 0 && f->how.missing == MISSING_IGNORED)
        return kf_fail(KOFN_TOOFEW, "iteration %u: every machine has failed",
                       t);
    return KOFN_OK;
}

static size_t begin_of(const failing *f, const kofn_regression *r, size_t p)
{
    return p * r->X.rows / f->how.parts;
}

/* Computes in f->value what workers compute of this part. */
static kofn_status compute(const failing *f, const kofn_regression *r, size_t p)
{
    size_t from = begin_of(f, r, p);
    kofn_rows rows = {r->X, r->y + from, from};
    double arg[KOFN_FORMULA_ARGS] = {r->opt.loss, r->opt.batches};
    kofn_matrix in = kf_learn_column(f->in, f->length),
                out = kf_learn_column(f->value, f->length);

    rows.X.data = (double *)r->X.data + from * r->X.ld;
    rows.X.rows = begin_of(f, r, p + 1) - from;
    return kofn_formulas[0].f(arg, &rows, &in, &out);
}

/* Adds to f->sum the value of part p, current or remembered. */
static kofn_status add_part(failing *f, const kofn_regression *r, size_t p)
{
    size_t n = f->length - 1;
    const double *w = f->in;
    bool gram = w[n] == KF_GRAM, gone = f->until[p] && !gram;
    double *known = f->known + p * f->length;

    if (gone && f->how.missing == MISSING_IGNORED)
        return KOFN_OK;
    if (!gone)
        TRY(compute(f, r, p));
    if (!gone && !gram && f->fresh) {
        memcpy(known, f->value, f->length * sizeof *known);
        known[n] -= kf_learn_dot(f->value, w, n);
    }
    for (size_t j = 0; j < n; j++)
        f->sum[j] += gone ? known[j] : f->value[j];
    f->sum[n] += gone ? known[n] + kf_learn_dot(known, w, n) : f->value[n];
    return KOFN_OK;
}

/* Sums all parts at v in f->sum, or X' X v. */
static kofn_status sum_parts(failing *f, const kofn_regression *r,
                             const double *v, double what)
{
    size_t n = f->length - 1, there = 0;

    memcpy(f->in, v, n * sizeof *v);
    f->in[n] = what;
    memset(f->sum, 0, f->length * sizeof *f->sum);
    for (size_t p = 0; p < f->how.parts; p++) {
        TRY(add_part(f, r, p));
        there += f->until[p] ? 0 : begin_of(f, r, p + 1) - begin_of(f, r, p);
    }
    f->fresh &= what == KF_GRAM;
    for (size_t j = 0;
         j < f->length && what != KF_GRAM && f->how.missing == MISSING_IGNORED;
         j++)
        f->sum[j] *= (double)r->X.rows / (double)there;
    return KOFN_OK;
}

/* ---- as a gradient mode -------------------------------------------------- */

static failing *of(const kf_descent *d)
{
    return (failing *)(uintptr_t)d->way;
}

static kofn_status gradient(kf_descent *d, const double *w, kf_some which,
                            double *F)
{
    failing *f = of(d);

    (void)which;
    if (f->now != d->now.iteration)
        TRY(begin(f, d->now.iteration));
    TRY(sum_parts(f, d->r, w, 0));
    memcpy(d->at.g, f->sum, (f->length - 1) * sizeof *d->at.g);
    *F = f->sum[f->length - 1];
    return KOFN_OK;
}

static kofn_status gram(kf_descent *d, const double *v, double *out)
{
    failing *f = of(d);

    TRY(sum_parts(f, d->r, v, KF_GRAM));
    memcpy(out, f->sum, (f->length - 1) * sizeof *out);
    return KOFN_OK;
}

static kofn_status check(const kofn_regression *r, const failures *how)
{
    TRY(kf_gradient_mode_check(&kf_by_sum, r));
    if (how->parts == 0 || how->parts > r->X.rows)
        return kf_fail(KOFN_INVAL, "%zu parts of %zu points", how->parts,
                       r->X.rows);
    if (r->opt.optimizer == KOFN_OPTIMIZER_SGD ||
        r->opt.optimizer == KOFN_OPTIMIZER_LBFGS ||
        r->opt.line_search == KOFN_LINE_SEARCH_EXACT)
        return kf_fail(
            KOFN_UNSUITED,
            "failing machines need a descent over all points that uses no "
            "differences of gradients, and no exact steps");
    return KOFN_OK;
}

kofn_status regress_failing(kofn_regression *r, const failures *how,
                            kofn_matrix *w, kofn_regress_result *res)
{
    failing f = {.way = {.op = KOFN_SUM,
                         .bent = true,
                         .gradient = gradient,
                         .gram = gram},
                 .how = *how,
                 .length = r->X.cols + 1};
    kofn_status st = check(r, how);

    if (st)
        return st;
    f.until = kf_zero(how->parts, sizeof *f.until);
    f.known = kf_zero(how->parts, f.length * sizeof *f.known);
    f.value = kf_zero(3 * f.length, sizeof *f.value);
    st = f.until && f.known && f.value ? KOFN_OK : KOFN_NOMEM;
    if (!st) {
        f.in = f.value + f.length;
        f.sum = f.in + f.length;
        st = kf_learn_descend((kf_descent){.r = r, .way = &f.way}, w, res);
    }
    kf_free(f.until);
    kf_free(f.known);
    kf_free(f.value);
    return st;
}
