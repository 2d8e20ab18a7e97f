/* guard.c -- the body's part in finding wrong results: scales of the operands
 * to measure them by, checks that the core asks for, and their verdicts.
 *
 * Owns the verdicts that the core has not received, and the norms of operands.
 * The weights of a check are secret and are drawn for it alone. */
#include "run.h"

#include "code/operation.h"
#include "verify/compare.h"
#include "verify/key.h"
#include "verify/norms.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <sys/random.h>

/* Errors that may be hidden in agreeing results, relative to the operands, if
 * no tolerance was given.  If more may be hidden, one more result is wanted. */
#define HIDDEN_F64 1e-6
#define HIDDEN_F32 1e-2
/* The number of the secret for keys, among the numbers of secrets. */
#define KEYS (UINT64_C(1) << 63)

/* Draws the secret.  A worker that could predict the weights could give wrong
 * results that they do not show. */
kofn_status kf_guard_init(kf_guard *g, bool repeatable, uint64_t seed,
                          double max_error)
{
    *g = (kf_guard){.secret = seed, .max_error = max_error};
    if (!repeatable &&
        getrandom(&g->secret, sizeof g->secret, 0) != (ssize_t)sizeof g->secret)
        return kf_fail(KOFN_IO, "the system returned no random numbers");
    return KOFN_OK;
}

/* Frees the verdicts after the core has received them all. */
static void forget_verdicts(kf_guard *g)
{
    for (size_t i = 0; i < g->count; i++)
        kf_free(g->verdict[i].bad);
    g->next = g->count = 0;
}

void kf_guard_free(kf_guard *g)
{
    forget_verdicts(g);
    kf_free(g->verdict);
}

void kf_guard_forget_lines(const kf_held *h, double ***norms)
{
    for (size_t i = 0; *norms && i < 2 * h->plan->layout.groups; i++)
        kf_free((*norms)[i]);
    kf_free(*norms);
    *norms = NULL;
}

void kf_guard_forget(kf_held *h)
{
    kf_guard_forget_lines(h, &h->norms);
    kf_guard_forget_lines(h, &h->speed);
    kf_guard_forget_lines(h, &h->least);
}

/* ---- scales -------------------------------------------------------------- */

/* Computes the scales of the rows of A, for one group; for left products, of
 * its columns. */
static kofn_status know_resident(kf_held *h, bool left, size_t group)
{
    size_t groups = h->plan->layout.groups;

    assert(group < groups);
    if (!h->norms)
        TRY_ZERO(h->norms, 2 * groups);
    return kf_norms_of_resident(&h->resident, left, group,
                                &h->norms[group + (left ? groups : 0)]);
}

kofn_status kf_guard_know(kf_held *h)
{
    for (size_t g = 0; g < h->plan->layout.groups; g++)
        TRY(know_resident(h, false, g));
    return know_resident(h, true, 0);
}

/* Computes the scales of the columns of the input over its parts; for left
 * products, of its rows. */
static kofn_status know_input(kf_measure *of)
{
    const kf_messages *m = of->messages;
    bool cut = m->plan->parts1 > 1;
    double by = cut && m->lent ? m->by : 1; /* a lent input is not multiplied */

    if (of->known)
        return KOFN_OK;
    kf_free(of->input);
    of->known = true;
    return kf_norms_of_input(m->plan, cut ? &m->parts : NULL,
                             m->plain ? &m->plain->m : NULL, by, &of->input);
}

/* ---- sums ---------------------------------------------------------------- */

/* Measures a strip by the largest answer to it, because nothing else is known
 * of a function.  Workers round their answers once (math/errors.md 8).  Answers
 * that are not finite are ignored. */
#define MEASURE(name, type)                                                    \
    static void name(const type *restrict y, size_t n, double *restrict scale) \
    {                                                                          \
        for (size_t i = 0; i < n; i++) {                                       \
            double x = fabs((double)y[i]);                                     \
                                                                               \
            scale[i] = x > scale[i] && x <= DBL_MAX ? x : scale[i];            \
        }                                                                      \
    }
MEASURE(measure_f64, double)
MEASURE(measure_f32, float)

static kofn_status measure_answers(const kf_compare *c, double *scale)
{
    size_t components = c->plan->layout.components, n = c->decoder->seats;

    for (size_t k = 0; k < n * components; k++) {
        const kf_source *from = &c->source[k / components];
        size_t at = k % components * (from->hi - from->lo) + c->lo - from->lo;
        const void *y = kf_at(from->result, at, 0);

        if (from->result->dtype == KOFN_F64)
            measure_f64(y, c->hi - c->lo, scale + c->lo);
        else
            measure_f32(y, c->hi - c->lo, scale + c->lo);
    }
    return KOFN_OK;
}

/* ---- A' A x -------------------------------------------------------------- */

/* Measures the answers of a product of two factors.  Its operands only bound
 * the worst case; the answers give the rest. */
static kofn_status measure_margins(kf_held *h, const kf_measure *of,
                                   const kf_compare *c, double *scale)
{
    TRY(know_resident(h, true, 0));
    return kf_verify_gram(c, h->norms[c->plan->layout.groups],
                          &of->messages->plain->m, scale);
}

/* ---- checks -------------------------------------------------------------- */

/* Returns the relative error of an output with the same error in every entry,
 * if the operands are like random numbers. */
static double as_error(const kofn_plan *use, double floor)
{
    const kofn_problem *pb = &use->layout.problem;
    double n = (double)pb->n;

    if (use->op->factors == 0) /* a sum of use->parts vectors */
        return floor * sqrt((double)use->parts);
    if (use->op->factors > 1) /* by the scales of math/errors.md 9 */
        return floor * kf_larger(sqrt(n), 0.1 * n);
    return floor * sqrt((double)(use->op->over & KF_OVER_ROWS ? pb->m : pb->n));
}

/* Returns the error that accepted results may hide, relative to the operands.
 * Together with the rounding of decoding it stays within the tolerance. */
static double most_hidden(const kf_guard *g, const kf_compare *c)
{
    if (g->max_error > 0)
        return (g->max_error - c->decoder->predicted) / as_error(c->plan, 1);
    return c->plan->layout.problem.dtype == KOFN_F64 ? HIDDEN_F64 : HIDDEN_F32;
}

/* Measures again without the located workers.  A large wrong result hides
 * smaller errors of others. */
static kofn_status check_measured(kf_held *h, const kf_measure *of,
                                  kf_compare *c, double most, bool last,
                                  kf_found *found)
{
    static const double one = 1;
    double *scale = kf_zero(c->plan->span, sizeof *scale);
    kofn_status st = scale ? KOFN_OK : KOFN_NOMEM;

    c->row = scale;
    c->col = &one;
    if (!st && (last || kf_compare_least_floor(c) <= most))
        st = c->plan->op->factors ? measure_margins(h, of, c, scale)
                                  : measure_answers(c, scale);
    if (!st)
        st = kf_compare_decide(c, most, last, found);
    kf_free(scale);
    return (st == KOFN_OK || st == KOFN_AGAIN) && found->count ? KOFN_CORRUPT
                                                               : st;
}

static kofn_status know_operands(kf_held *h, kf_measure *of, size_t group,
                                 kf_compare *c)
{
    bool left = c->plan->op->left;
    double **norms;

    TRY(know_resident(h, left, group));
    TRY(know_input(of));
    norms = of->velocity ? h->speed : h->norms;
    assert(norms);
    c->row = left ? of->input : norms[group];
    c->col = left ? norms[group + c->plan->layout.groups] : of->input;
    return KOFN_OK;
}

/* Records the verdict, for which there is room; takes found->bad over. */
static void tell(kf_guard *g, kf_measure *of, const kofn_action *a,
                 const kf_found *found, kofn_status st)
{
    const kofn_plan *use = of->messages->plan;

    assert(g->count < g->cap);
    if (st == KOFN_OK) {
        of->floor = kf_larger(of->floor, found->floor);
        of->error = kf_larger(of->error, as_error(use, found->floor));
        of->drift = kf_larger(of->drift, found->drift);
    }
    g->verdict[g->count++] = (kf_verdict){{.type = KOFN_EV_VERDICT,
                                           .product = a->product,
                                           .task = a->task,
                                           .status = st,
                                           .bad = found->bad,
                                           .bad_count = found->count,
                                           .doubted = found->doubted},
                                          found->bad};
}

/* Returns the number of terms that are added one after the other in A' A x.
 * Returns 0 if they are those of the operands, and 1 if the answer itself is
 * rounded. */
static size_t terms_of(const kofn_plan *use)
{
    size_t rows, cols;

    if (use->op->factors < 2)
        return 1 - use->op->factors;
    kf_operation_block(&use->layout, &rows, &cols);
    return rows + cols;
}

/* ---- whole products ------------------------------------------------------ */

bool kf_guard_has_key(const kofn_plan *p)
{
    const kf_operation *op = p->op;

    return op->factors == 1 && !op->left && !op->stream && !p->layout.adjoint;
}

kofn_status kf_guard_make_key(const kf_guard *g, kf_held *h)
{
    assert(!h->key);
    if (!kf_guard_has_key(h->plan))
        return KOFN_OK;
    for (size_t group = 0; group < h->plan->layout.groups; group++)
        TRY(know_resident(h, false, group));
    return kf_key_new(&h->key, &h->resident, h->norms, h->levels.row,
                      kf_mix64(kf_state64(g->secret, KEYS)));
}

/* Returns the error of an entry by rounding and decoding.  The sums of the test
 * are also rounded, in double precision. */
static double error_of(const kf_held *h, double noise)
{
    const kofn_layout *L = &h->plan->layout;
    double n = (double)L->problem.n;
    double alarm =
        kf_compare_alarm(h->plan, n + (double)h->plan->parts, h->changes);
    double own = 0x1p-52 * (n + (double)kf_min(h->key->rows, h->key->run));

    assert(h->key);
    return alarm * kf_larger(1, noise * sqrt((double)L->cut[0].cols)) + own;
}

/* Returns the error that an entry may hide in the sums of a run of rows. */
static double floor_of(const kf_held *h, double error)
{
    return KF_KEY_BLUR * sqrt((double)kf_min(h->key->rows, h->key->run)) *
           error;
}

kofn_status kf_guard_test(const kf_held *h, kf_measure *of, double noise,
                          const kofn_matrix *out, const kf_back *back,
                          bool *agrees)
{
    const kf_messages *m = of->messages;
    kf_keyed test = {.plan = h->plan,
                     .out = out,
                     .back = back,
                     .in = &m->plain->m,
                     .cols = m->parts.count ? m->parts.cols : m->plain->m.cols,
                     .error = error_of(h, noise)};

    *agrees = true;
    if (of->keyed) {
        of->floor = floor_of(h, test.error);
        of->error = as_error(h->plan, of->floor);
    } else if (of->lenient) {
        test.error += of->floor;
    }
    if (of->each)
        return KOFN_OK;
    TRY(know_input(of));
    test.col = of->input;
    return kf_key_test(h->key, &test, agrees);
}

/* ---- answers, one by one ------------------------------------------------- */

/* Tests answers one by one if the product has failed its test as a whole;
 * otherwise accepts all. */
static kofn_status test_answers(kf_guard *g, kf_held *h, kf_measure *of,
                                const kf_use *by, const kofn_action *a,
                                const kf_source *source)
{
    kf_keyed_answers test = {
        .plan = of->messages->plan,
        .resident = &h->resident,
        .code = by->code,
        .decoder = a->decoder,
        .source = source,
        .messages = of->messages,
        .group = a->group,
        .lo = a->lo,
        .hi = a->hi,
        .secret = kf_mix64(kf_state64(g->secret, KEYS + 1 + a->task))};
    kf_found found = {.floor = 0};
    kofn_status st = KOFN_OK;

    TRY(know_resident(h, false, a->group));
    TRY(know_input(of));
    test.row = h->norms[a->group];
    test.col = of->input;
    test.error = error_of(h, 0);
    TRY(kf_grow(&g->verdict, &g->cap, g->count, sizeof *g->verdict));
    TRY_NEW(found.bad, a->decoder->seats);
    if (of->each)
        st = kf_key_test_answers(&test, found.bad, &found.count);
    if (st)
        kf_free(found.bad);
    else
        tell(g, of, a, &found, st);
    return st;
}

kofn_status kf_guard_check(kf_guard *g, kf_held *h, kf_measure *of,
                           const kf_use *by, const kofn_action *a,
                           const kf_source *source)
{
    const kofn_plan *use = of->messages->plan;
    kf_compare c = {.plan = use,
                    .code = by->code,
                    .decoder = a->decoder,
                    .source = source,
                    .lo = a->lo,
                    .hi = a->hi,
                    .most = a->most,
                    .liars = a->liars,
                    .independent = a->independent,
                    .changes = h->changes,
                    .drifts = of->drifts,
                    .secret = g->secret,
                    .terms = terms_of(use),
                    .number = a->task};
    kf_found found;
    kofn_status st;
    double most;

    if (by->errors == KOFN_ERRORS_KEYED)
        return test_answers(g, h, of, by, a, source);
    if (use->op->factors == 1)
        TRY(know_operands(h, of, a->group, &c));
    assert(a->count == a->decoder->seats);
    TRY(kf_compare_know(&c, by->cache));
    TRY(kf_grow(&g->verdict, &g->cap, g->count, sizeof *g->verdict));
    TRY_NEW(found.bad, a->decoder->seats);
    most = most_hidden(g, &c);
    st = use->op->factors == 1
             ? kf_compare_decide(&c, most, a->last, &found)
             : check_measured(h, of, &c, most, a->last, &found);
    if (st == KOFN_NOMEM) {
        kf_free(found.bad);
        return st;
    }
    tell(g, of, a, &found, st);
    return KOFN_OK;
}

bool kf_guard_next(kf_guard *g, kofn_event *ev)
{
    assert(g->next <= g->count);
    if (g->next == g->count) {
        forget_verdicts(g);
        return false;
    }
    *ev = g->verdict[g->next++].event;
    return true;
}
