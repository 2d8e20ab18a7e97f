/* results.c -- prepares a comparison of results and has it judged.
 *
 * A result is measured by the norms of the operands that are multiplied
 * (norms.c).  Answers that operands only bound in the worst case are measured
 * by themselves (sizes.c).
 *
 * Owns nothing beyond a call, but fills in the caller's norms. */
#include "results.h"

#include "code/operation.h"

#include <assert.h>
#include <math.h>

/* ---- operands ------------------------------------------------------------ */

kofn_status kf_sides_know_input(kf_sides *s, const kofn_plan *use)
{
    return s->input ? KOFN_OK
                    : kf_norms_of_input(use, s->messages, s->whole, &s->input);
}

void kf_sides_forget(kf_sides *s)
{
    kf_free(s->input);
    s->input = NULL;
}

kofn_status kf_sides_measure(kf_sides *s, kf_compare *c)
{
    bool left = c->plan->op->left;
    const kf_norms *n = s->norms;

    TRY(kf_norms_know(s->norms, s->resident, left, c->group));
    TRY(kf_sides_know_input(s, c->plan));
    /* in left products the resident operand is the second */
    c->row = left ? s->input : kf_norms_state(n, s->state, c->group);
    c->col = left ? kf_norms_state(n, s->state, n->groups) : s->input;
    assert(c->row);
    assert(c->col);
    return KOFN_OK;
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

double kf_verify_error(const kofn_plan *use, double floor)
{
    const kofn_problem *pb = &use->layout.problem;
    double n = (double)pb->n;

    if (use->op->factors == 0) /* a sum of use->parts vectors */
        return floor * sqrt((double)use->parts);
    if (use->op->factors > 1) /* by the scales of math/errors.md 9 */
        return floor * kf_larger(sqrt(n), 0.1 * n);
    return floor * sqrt((double)(use->op->over & KF_OVER_ROWS ? pb->m : pb->n));
}

/* ---- answers that measure themselves ------------------------------------- */

/* Measures the answers of a sum or of a product of two factors. */
static kofn_status measure(const kf_compare *c, kf_sides *s, double *scale)
{
    if (c->plan->op->factors == 0) {
        kf_sizes_of_sums(c, scale);
        return KOFN_OK;
    }
    TRY(kf_norms_know(s->norms, s->resident, true, 0));
    return kf_sizes_of_gram(c, s->norms->norm[s->norms->groups], s->whole,
                            scale);
}

/* Located results are reported at once, and the rest is measured again without
 * them: a large wrong result hides smaller errors of others. */
static kofn_status decide_measured(kf_compare *c, kf_sides *s, double most,
                                   bool last, kf_found *found)
{
    static const double one = 1;
    double *scale = kf_zero(c->plan->span, sizeof *scale);
    kofn_status st = scale ? KOFN_OK : KOFN_NOMEM;

    c->row = scale;
    c->col = &one;
    if (!st && (last || kf_compare_least_floor(c) <= most))
        st = measure(c, s, scale);
    if (!st)
        st = kf_compare_decide(c, most, last, found);
    kf_free(scale);
    return (st == KOFN_OK || st == KOFN_AGAIN) && found->count ? KOFN_CORRUPT
                                                               : st;
}

/* ---- the call ------------------------------------------------------------ */

kofn_status kf_verify_results(kf_compare *c, kf_sides *s, kf_cache *cache,
                              double most, bool last, kf_found *found)
{
    bool by_operands = c->plan->op->factors == 1;

    c->terms = terms_of(c->plan);
    if (by_operands)
        TRY(kf_sides_measure(s, c));
    TRY(kf_compare_know(c, cache));
    found->status = by_operands ? kf_compare_decide(c, most, last, found)
                                : decide_measured(c, s, most, last, found);
    return found->status == KOFN_NOMEM ? KOFN_NOMEM : KOFN_OK;
}
