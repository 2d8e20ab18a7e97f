/* guard.c -- which results are checked, as the core asks, and when it gets the
 * verdicts.  src/verify decides which results are wrong.
 *
 * Owns the verdicts that the core has not received, and the secret that the
 * weights of checks follow from. */
#include "run.h"

#include "base/entropy.h"
#include "code/operation.h"
#include "verify/key.h"

#include <assert.h>
#include <math.h>

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
    if (repeatable)
        return KOFN_OK;
    g->secret = 0;
    return kf_entropy_number(&g->secret);
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

/* ---- scales -------------------------------------------------------------- */

/* Sets both operands of a product. */
static kf_sides *sides_of(kf_held *h, kf_measure *of)
{
    const kf_messages *m = of->sides.messages;

    of->sides.resident = &h->resident;
    of->sides.norms = &h->norms;
    of->sides.whole = m->plain ? &m->plain->m : NULL;
    return &of->sides;
}

kofn_status kf_guard_renew(kf_held *h, const kofn_matrix *A)
{
    kofn_matrix scaled = *A;
    kf_resident now = {.plan = h->plan};
    kofn_status st = KOFN_OK;

    assert(A->rows == h->plan->layout.problem.m);
    if (kf_scaling_any(&h->levels))
        st = kf_scaling_copy(A, h->levels.row, h->levels.col, 1, &scaled);
    if (!st)
        st = kf_resident_dense(&now, h->plan, &scaled);
    now.by = h->resident.by;
    if (!st)
        st = kf_norms_renew(&h->norms, &now);
    kf_resident_free(&now);
    if (scaled.data != A->data)
        kf_free(scaled.data);
    return st;
}

/* ---- checks -------------------------------------------------------------- */

/* Returns the error that accepted results may hide, relative to the operands.
 * Together with the rounding of decoding it stays within the tolerance. */
static double most_hidden(const kf_guard *g, const kf_compare *c)
{
    if (g->max_error > 0)
        return (g->max_error - c->decoder->predicted) /
               kf_verify_error(c->plan, 1);
    return c->plan->layout.problem.dtype == KOFN_F64 ? HIDDEN_F64 : HIDDEN_F32;
}

/* Records the verdict, for which there is room; takes found->bad over. */
static void tell(kf_guard *g, kf_measure *of, const kofn_action *a,
                 const kf_found *found)
{
    const kofn_plan *use = of->sides.messages->plan;

    assert(g->count < g->cap);
    if (found->status == KOFN_OK) {
        of->floor = kf_larger(of->floor, found->floor);
        of->error = kf_larger(of->error, kf_verify_error(use, found->floor));
        of->drift = kf_larger(of->drift, found->drift);
    }
    g->verdict[g->count++] = (kf_verdict){{.type = KOFN_EV_VERDICT,
                                           .product = a->product,
                                           .task = a->task,
                                           .status = found->status,
                                           .bad = found->bad,
                                           .bad_count = found->count,
                                           .doubted = found->doubted},
                                          found->bad};
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
        TRY(kf_norms_know(&h->norms, &h->resident, false, group));
    return kf_key_new(&h->key, &h->resident, h->norms.norm, h->levels.row,
                      kf_mix64(kf_state64(g->secret, KEYS)));
}

kofn_status kf_guard_test(kf_held *h, kf_measure *of, double noise,
                          const kofn_matrix *out, const kf_back *back,
                          bool *agrees)
{
    const kf_messages *m = of->sides.messages;
    kf_keyed test = {.plan = h->plan,
                     .out = out,
                     .back = back,
                     .in = &m->plain->m,
                     .cols = m->parts.count ? m->parts.cols : m->plain->m.cols,
                     .error = kf_key_error(h->key, h->plan, h->changes, noise)};

    *agrees = true;
    if (of->keyed) {
        of->floor = kf_key_floor(h->key, test.error);
        of->error = kf_verify_error(h->plan, of->floor);
    } else if (of->lenient) {
        test.error += of->floor;
    }
    if (of->each)
        return KOFN_OK;
    TRY(kf_sides_know_input(sides_of(h, of), m->plan));
    test.col = of->sides.input;
    return kf_key_test(h->key, &test, agrees);
}

/* ---- answers ---------------------------------------------------------------
 */

/* Tests answers one by one if the product has failed its test as a whole;
 * otherwise accepts all. */
static kofn_status test_each(const kf_guard *g, const kf_held *h,
                             kf_measure *of, kf_compare *c, kf_found *found)
{
    if (!of->each)
        return KOFN_OK;
    c->secret = kf_mix64(kf_state64(g->secret, KEYS + 1 + c->number));
    return kf_key_test_answers(
        c, &of->sides, kf_key_error(h->key, h->plan, h->changes, 0), found);
}

kofn_status kf_guard_check(kf_guard *g, kf_held *h, kf_measure *of,
                           const kf_use *by, const kofn_action *a,
                           const kf_source *source)
{
    const kofn_plan *use = of->sides.messages->plan;
    kf_compare c = {.plan = use,
                    .code = by->code,
                    .decoder = a->decoder,
                    .source = source,
                    .group = a->group,
                    .lo = a->lo,
                    .hi = a->hi,
                    .most = a->most,
                    .liars = a->liars,
                    .independent = a->independent,
                    .changes = h->changes,
                    .drifts = of->drifts,
                    .secret = g->secret,
                    .number = a->task};
    kf_found found = {.status = KOFN_OK};
    kf_sides *s = sides_of(h, of);
    kofn_status st;

    assert(a->count == a->decoder->seats);
    TRY(kf_grow(&g->verdict, &g->cap, g->count, sizeof *g->verdict));
    TRY_NEW(found.bad, a->decoder->seats);
    st = by->errors == KOFN_ERRORS_KEYED
             ? test_each(g, h, of, &c, &found)
             : kf_verify_results(&c, s, by->cache, most_hidden(g, &c), a->last,
                                 &found);
    if (st)
        kf_free(found.bad);
    else
        tell(g, of, a, &found);
    return st;
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
