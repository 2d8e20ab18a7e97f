/* failing.c -- what descent becomes when machines fail and nothing is coded.
 *
 * Baselines for elastic regression (math/elastic.md 17): the points of a
 * machine that is gone are ignored, the others standing for all, or replaced by
 * what their loss was to first order when they were last seen (Narayanamurthy,
 * Weimer, Mahajan, Condie, Sellamanickam, Keerthi, "Towards resource-elastic
 * machine learning", 2013):
 *
 *     f_p(w) ~ f_p(w_p) + g_p . (w - w_p).
 */
#include "regress.h"

#include "base/rng.h"

#include <math.h>

struct kf_failing {
    const kofn_regression *r;
    kofn_failures how;
    size_t length;   /* n + 1: a gradient and a loss                     */
    unsigned *until; /* per part: the iteration it returns in, 0: it is there */
    double *known;   /* per part: g_p, and f_p(w_p) - g_p . w_p          */
    double *value;   /* scratch                                          */
    bool fresh;      /* the next gradient is to be remembered            */
};

kofn_status kf_failing_new(kf_failing **out, const kofn_regression *r,
                           const kofn_failures *f)
{
    kf_failing *x;

    *out = NULL;
    if (f->parts == 0 || f->parts > r->X.rows)
        return kf_fail(KOFN_INVAL, "%zu parts of %zu points", f->parts,
                       r->X.rows);
    if (!(f->probability >= 0 && f->probability <= 1))
        return kf_fail(KOFN_INVAL, "probability = %g is not in 0..1",
                       f->probability);
    if (r->opt.descent == KOFN_DESCENT_SGD || r->opt.rule == KOFN_STEP_EXACT)
        return kf_fail(KOFN_UNSUITED, "failing machines go with descents over "
                                      "all points, and not with exact steps");
    x = kf_zero(1, sizeof *x);
    if (!x)
        return KOFN_NOMEM;
    *x = (kf_failing){.r = r, .how = *f, .length = r->X.cols + 1};
    x->until = kf_zero(f->parts, sizeof *x->until);
    x->value = kf_new(x->length, sizeof *x->value);
    x->known = kf_zero(f->parts, x->length * sizeof *x->known);
    if (!x->until || !x->value || !x->known) {
        kf_failing_free(x);
        return KOFN_NOMEM;
    }
    *out = x;
    return KOFN_OK;
}

void kf_failing_free(kf_failing *f)
{
    if (!f)
        return;
    kf_free(f->until);
    kf_free(f->value);
    kf_free(f->known);
    kf_free(f);
}

kofn_status kf_failing_begin(kf_failing *f, unsigned t)
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
    f->fresh = true;
    if (there == 0 && f->how.missing == KOFN_MISSING_IGNORED)
        return kf_fail(KOFN_TOOFEW, "iteration %u: every machine has failed",
                       t);
    return KOFN_OK;
}

static size_t points_in(const kf_failing *f, size_t p)
{
    size_t m = f->r->X.rows;

    return (p + 1) * m / f->how.parts - p * m / f->how.parts;
}

/* out += what part p gives now, or gave. */
static kofn_status add_part(kf_failing *f, size_t p, const kofn_matrix *in,
                            double *out)
{
    size_t n = f->length - 1;
    const double *w = in->data;
    bool gram = w[n] == KF_GRAM, gone = f->until[p] && !gram;
    double *known = f->known + p * f->length;
    kofn_matrix value = {f->value, f->length, 1, 1, KOFN_F64};
    kofn_status st = KOFN_OK;

    if (gone && f->how.missing == KOFN_MISSING_IGNORED)
        return KOFN_OK;
    if (!gone)
        st = kf_learn_gradient_of_part(f->r, p, f->how.parts, in, &value);
    if (st)
        return st;
    if (!gone && !gram && f->fresh) {
        memcpy(known, f->value, f->length * sizeof *known);
        known[n] -= kf_learn_dot(f->value, w, n);
    }
    for (size_t j = 0; j < n; j++)
        out[j] += gone ? known[j] : f->value[j];
    out[n] += gone ? known[n] + kf_learn_dot(known, w, n) : f->value[n];
    return KOFN_OK;
}

kofn_status kf_failing_sum(kf_failing *f, const kofn_matrix *in,
                           kofn_matrix *out)
{
    size_t n = f->length - 1, there = 0;
    double *sum = out->data, more;
    bool gram = ((const double *)in->data)[n] == KF_GRAM;
    kofn_status st = KOFN_OK;

    memset(sum, 0, f->length * sizeof *sum);
    for (size_t p = 0; p < f->how.parts && !st; p++) {
        st = add_part(f, p, in, sum);
        there += f->until[p] ? 0 : points_in(f, p);
    }
    f->fresh &= gram;
    if (gram || f->how.missing == KOFN_MISSING_REMEMBERED)
        return st;
    more = (double)f->r->X.rows / (double)there;
    for (size_t j = 0; j < f->length; j++)
        sum[j] *= more;
    return st;
}
