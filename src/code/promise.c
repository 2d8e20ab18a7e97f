/* promise.c -- how many results are awaited where they are compared, and how
 * many of them may be wrong: docs/errors.md, and math/errors.md 2, 3 and 6, in
 * numbers.
 *
 * Owns nothing: pure functions of numbers. */
#include "promise.h"

static size_t beyond(size_t n, size_t enough)
{
    return n - kf_min(n, enough);
}

/* Where not every few of the seats decode, some are copies of others, and what
 * is wrong in all copies of a row conspires, by whatever accident.  So may what
 * is wrong alike where operands are smaller than half of the parts that they
 * are cut into (math/errors.md 6). */
static bool has_copies(const kf_promise *p, const kofn_plan *plan, size_t group)
{
    return plan->layout.enough == 1 || p->surely == 1 ||
           p->surely > p->enough || kf_code_is_sparse_part(plan, group);
}

kf_promise kf_promise_of(const kofn_plan *plan, size_t group,
                         kofn_errors errors)
{
    bool compared = errors != KOFN_ERRORS_NONE;
    kf_promise p = {.errors = errors, .enough = kf_code_enough(plan, compared)};

    p.surely = compared && plan->layout.submessages > 1
                   ? p.enough
                   : plan->layout.threshold;
    p.copies = compared && has_copies(&p, plan, group);
    return p;
}

bool kf_promise_conspires(const kf_promise *p)
{
    if (p->errors == KOFN_ERRORS_KEYED) /* what they do makes no difference */
        return false;
    return p->errors == KOFN_ERRORS_ADVERSARIAL ||
           (p->errors == KOFN_ERRORS_PROBABILISTIC && p->copies) ||
           (p->errors != KOFN_ERRORS_NONE && p->alike);
}

/* Principals that do not conspire hardly ever agree on a wrong codeword: as
 * many results to spare as one of them can give show it.  Liars who conspire
 * are assumed to be as many as can be corrected with everybody's results. */
size_t kf_promise_spare(const kf_promise *p, const kf_voices *v)
{
    size_t one = kf_max(1, v->one), half = beyond(v->all, p->surely) / 2;

    if (p->errors == KOFN_ERRORS_NONE || p->errors == KOFN_ERRORS_KEYED)
        return 0;
    return kf_promise_conspires(p) ? kf_max(one, half) : one;
}

size_t kf_promise_vouch(const kf_promise *p, const kf_voices *v)
{
    return kf_promise_besides(kf_promise_spare(p, v), v->known);
}

/* All but what one principal can say may be located, or but as many as may
 * conspire. Single precision leaves too little between rounding and a lie to
 * tell more than half (docs/errors.md). */
static size_t most(const kf_promise *p, const kf_voices *v)
{
    size_t over = beyond(v->here, p->enough), located;

    if (p->errors == KOFN_ERRORS_DETECT)
        return 0;
    located = beyond(over, p->errors == KOFN_ERRORS_PROBABILISTIC
                               ? kf_max(1, v->one)
                               : kf_promise_vouch(p, v));
    return p->half ? kf_min(located, over / 2) : located;
}

/* Nobody is located who may be honest when `liars` are not, whatever they do:
 * half of the results that could come beyond those that decode (math/errors.md
 * 3).  That all but one of those are wrong is promised where they do not
 * conspire, not counting those that say nothing.  To detect, one principal that
 * is wrong is enough. */
kf_verdicts kf_promise_verdicts(const kf_promise *p, const kf_voices *v)
{
    kf_verdicts to = {.most = most(p, v)};
    size_t over = beyond(kf_max(v->all, v->here), p->surely);

    to.liars = kf_promise_spare(p, v);
    if (p->errors != KOFN_ERRORS_DETECT)
        to.liars = kf_max(to.liars, over / 2);
    to.promised = to.liars;
    if (p->errors != KOFN_ERRORS_ADVERSARIAL && !p->copies)
        to.promised = kf_max(to.promised, beyond(over, v->silent + 1));
    to.liars = beyond(to.liars, v->known);
    to.promised = beyond(to.promised, v->known);
    return to;
}

/* Nobody can be located among fewer than one beyond those who may lie and those
 * who decode (math/errors.md 2.2), so all of these are asked for at once. */
size_t kf_promise_apart(const kf_promise *p, size_t here, size_t liars)
{
    return kf_max(here, p->surely + liars) + 1;
}
