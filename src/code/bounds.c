/* bounds.c -- how many results are awaited for comparison, and how many of
 * them may be wrong: the numbers of docs/errors.md and math/errors.md 2, 3 and
 * 6.
 *
 * Owns nothing: pure functions of numbers. */
#include "bounds.h"

#include <assert.h>

static size_t beyond(size_t n, size_t enough)
{
    return n - kf_min(n, enough);
}

/* True if results may agree on a wrong value by accident.  If not every set of
 * `enough` seats decodes, some rows are copies, and equal errors in all copies
 * agree.  The same is possible if operands are smaller than half of their parts
 * (math/errors.md 6). */
static bool has_copies(const kf_bounds *p, const kofn_plan *plan, size_t group)
{
    return plan->layout.enough == 1 || p->surely == 1 ||
           p->surely > p->enough || kf_code_is_sparse_part(plan, group);
}

kf_bounds kf_bounds_of(const kofn_plan *plan, size_t group, kofn_errors errors)
{
    bool compared = errors != KOFN_ERRORS_NONE;
    kf_bounds p = {.errors = errors, .enough = kf_code_enough(plan, compared)};

    assert(plan->layout.threshold > 0);
    p.surely = compared && plan->layout.submessages > 1
                   ? p.enough
                   : plan->layout.threshold;
    p.copies = compared && has_copies(&p, plan, group);
    return p;
}

bool kf_bounds_allow_collusion(const kf_bounds *p)
{
    if (p->errors == KOFN_ERRORS_KEYED) /* the test is of each result */
        return false;
    return p->errors == KOFN_ERRORS_ADVERSARIAL ||
           (p->errors == KOFN_ERRORS_PROBABILISTIC && p->copies) ||
           (p->errors != KOFN_ERRORS_NONE && p->alike);
}

/* Returns the number of spare results to await.  Principals that do not
 * conspire hardly ever agree on a wrong codeword.  So an error shows if there
 * are as many spare results as one principal can return.  With collusion, the
 * number of faulty results is assumed to be what all results together can
 * correct. */
size_t kf_bounds_spare(const kf_bounds *p, const kf_voices *v)
{
    size_t one = kf_max(1, v->one), half = beyond(v->all, p->surely) / 2;

    if (p->errors == KOFN_ERRORS_NONE || p->errors == KOFN_ERRORS_KEYED)
        return 0;
    return kf_bounds_allow_collusion(p) ? kf_max(one, half) : one;
}

size_t kf_bounds_vouch(const kf_bounds *p, const kf_voices *v)
{
    return kf_bounds_besides(kf_bounds_spare(p, v), v->known);
}

/* Returns the largest number of results that may be located.  It leaves the
 * results that one principal can return or, in the other modes, those that must
 * vouch for the rest.  In float32 at most half can be located, because rounding
 * hides more (docs/errors.md). */
static size_t most(const kf_bounds *p, const kf_voices *v)
{
    size_t over = beyond(v->here, p->enough), located;

    if (p->errors == KOFN_ERRORS_DETECT)
        return 0;
    located = beyond(over, p->errors == KOFN_ERRORS_PROBABILISTIC
                               ? kf_max(1, v->one)
                               : kf_bounds_vouch(p, v));
    return p->half ? kf_min(located, over / 2) : located;
}

/* Sets `liars` so that no honest result is located if at most this number are
 * wrong in any way.  It is half of the possible results beyond those that
 * decode (math/errors.md 3).  Without collusion, all but one of them may be
 * wrong, not counting silent ones; this is `independent`.  To detect errors,
 * one wrong principal is enough. */
kf_verdicts kf_bounds_verdicts(const kf_bounds *p, const kf_voices *v)
{
    kf_verdicts to = {.most = most(p, v)};
    size_t over = beyond(kf_max(v->all, v->here), p->surely);

    to.liars = kf_bounds_spare(p, v);
    if (p->errors != KOFN_ERRORS_DETECT)
        to.liars = kf_max(to.liars, over / 2);
    to.independent = to.liars;
    if (p->errors != KOFN_ERRORS_ADVERSARIAL && !p->copies)
        to.independent = kf_max(to.independent, beyond(over, v->silent + 1));
    to.liars = beyond(to.liars, v->known);
    to.independent = beyond(to.independent, v->known);
    assert(to.most <= v->here);
    assert(to.liars <= to.independent);
    return to;
}

/* Returns the number of results to request at once.  With fewer than surely +
 * liars + 1 results none can be located (math/errors.md 2.2). */
size_t kf_bounds_apart(const kf_bounds *p, size_t here, size_t liars)
{
    return kf_max(here, p->surely + liars) + 1;
}
