/* subset.c -- a worker's share of a sum of functions.  It computes the values
 * of f for its parts once a round, and mixtures of their segments, one per
 * submessage.
 *
 * A kf_subset owns the values of its worker's parts for one round.  The user's
 * function is called at most once per part and round. */
#include "kernel.h"

#include "base/vectors.h"
#include "code/combine.h"

#include <assert.h>

void kf_subset_free(kf_subset *s)
{
    if (!s)
        return;
    kf_free(s->own);
    kf_free(s->at);
    kf_free(s->part);
    kf_free(s->mix);
    kf_free(s->value);
    kf_free(s);
}

static kofn_status list_parts(kf_subset *s, const kf_row *held)
{
    assert(held->n <= s->of);
    s->parts = held->n;
    TRY_NEW(s->part, held->n);
    for (size_t e = 0; e < held->n; e++)
        s->part[e] = held->col[e];
    return KOFN_OK;
}

kofn_status kf_subset_rows(kf_subset *s, bool elsewhere)
{
    s->held = 0;
    TRY_NEW(s->at, s->parts);
    for (size_t k = 0; k < s->parts; k++) {
        size_t from = kf_part_begin(s->points, s->part[k], s->of);
        size_t to = kf_part_begin(s->points, s->part[k] + 1, s->of);

        s->at[k] = elsewhere ? s->held : from;
        if (!kf_add(s->held, to - from, &s->held))
            return kf_nomem(SIZE_MAX);
    }
    return KOFN_OK;
}

/* Converts a row of the mixture from symbols of all parts to those of this
 * share. */
static kofn_status fill_row(const kf_subset *s, const kf_row *g, double *row)
{
    size_t k = 0;

    for (size_t e = 0; e < g->n; e++) {
        size_t part = g->col[e] / s->segments,
               segment = g->col[e] % s->segments;

        while (k < s->parts && s->part[k] < part)
            k++;
        if (k == s->parts || s->part[k] != part)
            return kf_fail(KOFN_INVAL,
                           "a scheme mixes part %zu into the "
                           "answer of a seat that does not compute it",
                           part);
        row[k * s->segments + segment] = g->val[e];
    }
    return KOFN_OK;
}

static kofn_status fill(kf_subset *s, kf_code *code, size_t seat)
{
    size_t wide;

    for (size_t t = 0; t < s->submessages; t++) {
        const kf_seat *rows;

        TRY(kf_code_seat(code, seat * s->submessages + t, &rows));
        if (t == 0)
            TRY(list_parts(s, &rows->E0[0]));
        wide = s->parts * s->segments;
        if (t == 0)
            s->mix = kofn_layout_table(s->submessages * s->components, wide);
        if (!s->mix)
            return KOFN_NOMEM;
        for (size_t l = 0; l < s->components; l++)
            TRY(fill_row(s, &rows->G[l],
                         s->mix + (t * s->components + l) * wide));
    }
    s->value = kf_zero(s->parts * s->segments, /* padding stays zero */
                       s->span * sizeof(double));
    return s->value ? KOFN_OK : KOFN_NOMEM;
}

kofn_status kf_subset_new(kf_subset **out, const kf_resident *r, kf_code *code,
                          size_t seat)
{
    const kofn_layout *L = &r->plan->layout;
    kf_subset *s = kf_zero(1, sizeof *s);
    kofn_status st;

    *out = NULL;
    if (!s)
        return KOFN_NOMEM;
    s->f = r->f;
    s->ctx = r->ctx;
    s->formula = r->formula;
    memcpy(s->arg, r->arg, sizeof s->arg);
    s->points = r->X.rows;
    s->X = r->X;
    s->y = (double *)(uintptr_t)r->y;
    s->of = r->plan->parts;
    s->length = L->problem.m;
    s->work = r->work > 0 ? r->work / (double)s->of : (double)s->length;
    s->segments = L->wants;
    s->span = r->plan->span;
    s->submessages = L->submessages;
    s->components = L->components;
    st = fill(s, code, seat);
    if (!st && s->formula)
        st = kf_subset_rows(s, false);
    if (st) {
        kf_subset_free(s);
        return st;
    }
    *out = s;
    return KOFN_OK;
}

static char *value_of(const kf_subset *s, size_t k, kofn_dtype dtype)
{
    assert(k < s->parts);
    return (char *)s->value + k * s->segments * s->span * kf_dtype_size(dtype);
}

/* Reports a failure for a function that gives no reason itself. */
static kofn_status failure(const kf_subset *s, size_t k, kofn_status st)
{
    if (st < 0 && *kofn_errmsg())
        return st;
    if (st < 0)
        return kf_fail(st, "the function of part %zu says %d (%s)",
                       (size_t)s->part[k], (int)st, kofn_strerror(st));
    return kf_fail(KOFN_INVAL,
                   "the function of part %zu says %d (%s), which is neither "
                   "KOFN_OK nor an error",
                   (size_t)s->part[k], (int)st, kofn_strerror(st));
}

static kofn_status call(const kf_subset *s, size_t k, const kofn_matrix *in,
                        kofn_matrix *out)
{
    size_t from = kf_part_begin(s->points, s->part[k], s->of);
    size_t to = kf_part_begin(s->points, s->part[k] + 1, s->of);
    kofn_rows rows = {.X = s->X, .first = from};

    if (!s->formula)
        return s->f(s->ctx, s->part[k], s->of, in, out);
    rows.X.data = kf_at(&s->X, s->at[k], 0);
    rows.X.rows = to - from;
    rows.y = s->y + s->at[k];
    return s->formula->f(s->arg, &rows, in, out);
}

static kofn_status evaluate_part(const kf_subset *s, size_t k,
                                 const kofn_matrix *in, kofn_matrix *out)
{
    kofn_status st;

    kf_fail(KOFN_OK, "%s", ""); /* clear an earlier message */
    st = call(s, k, in, out);
    return st ? failure(s, k, st) : KOFN_OK;
}

static kofn_status evaluate(kf_subset *s, const kf_work *w)
{
    kofn_dtype dtype = w->out->dtype;

    s->product = 0;
    for (size_t k = 0; k < s->parts; k++) {
        kofn_matrix out = {value_of(s, k, dtype), s->length, 1, 1, dtype};

        if (k && kf_is_stopped(w))
            return KOFN_AGAIN;
        TRY(evaluate_part(s, k, w->in, &out));
    }
    s->product = w->product;
    return KOFN_OK;
}

/* ---- answers ------------------------------------------------------------- */

/* Numbers that are mixed at a time. */
#define BLOCK 512
/* 2^27 + 1, which splits a number into two halves of its digits. */
#define HALVES 134217729.0

#define VECTORS KF_VECTORS(optimize("O3"))

/* Computes sum + lost += c x, where `lost` has the rounding errors of all
 * steps.  So an answer is exact even if it is small compared with its terms.
 * Rounding can then be distinguished from errors by the answers alone
 * (math/errors.md 8; T. Ogita, S. M. Rump, S. Oishi, "Accurate sum and dot
 * product", SIAM J. Sci. Comput. 26(6), 2005). */
#define ADD_TIMES(name, type)                                                  \
    VECTORS static void name(double c, const type *restrict x, size_t n,       \
                             double *restrict sum, double *restrict lost)      \
    {                                                                          \
        double c1 = HALVES * c - (HALVES * c - c), c2 = c - c1;                \
                                                                               \
        for (size_t i = 0; i < n; i++) {                                       \
            double y = (double)x[i], p = c * y, s = sum[i] + p;                \
            double y1 = HALVES * y - (HALVES * y - y), y2 = y - y1;            \
            double back = s - sum[i];                                          \
                                                                               \
            lost[i] += (sum[i] - (s - back)) + (p - back) +                    \
                       (((c1 * y1 - p) + c1 * y2 + c2 * y1) + c2 * y2);        \
            sum[i] = s;                                                        \
        }                                                                      \
    }
ADD_TIMES(add_times_f64, double)
ADD_TIMES(add_times_f32, float)

/* Rounds sum + lost once; only `sum` counts if the halves overflowed. */
static void round_once(const double *sum, const double *lost, size_t n,
                       void *to, kofn_dtype dtype)
{
    for (size_t i = 0; i < n; i++) {
        double y = sum[i] + lost[i];

        y = y - y == 0 ? y : sum[i];
        if (dtype == KOFN_F64)
            ((double *)to)[i] = y;
        else
            ((float *)to)[i] = (float)y;
    }
}

/* Mixes one component of an answer: coefficients times the segments of the
 * values.
 */
static void mix(const kf_subset *s, const double *c, const kofn_matrix *out,
                size_t row)
{
    double sum[BLOCK], lost[BLOCK];
    size_t size = kf_dtype_size(out->dtype);

    for (size_t at = 0; at < s->span; at += BLOCK) {
        size_t n = kf_min(BLOCK, s->span - at);

        memset(sum, 0, sizeof sum);
        memset(lost, 0, sizeof lost);
        for (size_t k = 0; k < s->parts * s->segments; k++) {
            const void *x = (char *)s->value + (k * s->span + at) * size;

            if (c[k] != 0 && out->dtype == KOFN_F64)
                add_times_f64(c[k], x, n, sum, lost);
            else if (c[k] != 0)
                add_times_f32(c[k], x, n, sum, lost);
        }
        round_once(sum, lost, n, kf_at(out, row + at, 0), out->dtype);
    }
}

kofn_status kf_subset_submessage(const kf_block *b, const kf_work *w)
{
    kf_subset *s = b->subset;
    size_t n = s->parts * s->segments;

    assert(w->submessage < s->submessages);
    if (s->product != w->product)
        TRY(evaluate(s, w));
    for (size_t l = 0; l < s->components; l++)
        mix(s, s->mix + (w->submessage * s->components + l) * n, w->out,
            l * s->span);
    return KOFN_OK;
}

kofn_status kf_subset_part(const kf_block *b, const kf_work *w)
{
    kf_subset *s = b->subset;
    size_t k = 0;

    while (k < s->parts && s->part[k] != b->row)
        k++;
    if (k == s->parts)
        return kf_fail(
            KOFN_INVAL,
            "the part of seat %zu itself is none of those it computes",
            (size_t)b->row);
    return evaluate_part(s, k, w->in, w->out);
}
