/* begin.c -- begins products, the first one when there are enough workers.
 *
 * Waits for workers no longer than start_within of the options. */
#include "job.h"

#include "base/clock.h"

#include <assert.h>

/* Decides how wrong results of this product are found.  Without a test by a
 * key, or after a failed one, equal errors are found only by comparing. */
static void know_alike(const kofn_job *j, product *p)
{
    kofn_errors errors = j->opt.errors;

    p->start.keyed = p->number && p->as == KOFN_USE_OWN && p->hi == 0 &&
                     j->held[p->operand].key;
    p->measure.keyed = errors == KOFN_ERRORS_KEYED;
    p->start.alike |= errors != KOFN_ERRORS_NONE &&
                      errors != KOFN_ERRORS_ADVERSARIAL &&
                      (!p->start.keyed || j->guard.doubt);
    p->measure.each = p->measure.keyed && p->start.alike;
    p->measure.lenient = p->start.alike || errors == KOFN_ERRORS_ADVERSARIAL;
}

kofn_status kf_job_begin(kofn_job *j, product *p)
{
    kofn_event ev = {
        .type = KOFN_EV_BEGIN, .all = p->number == 0, .late_too = p->audited};

    assert(!p->start.begun);
    assert(p->end.ended == KOFN_AGAIN);
    assert(!p->start.tasks);
    /* a single answer of a located worker is not believed */
    if (p->as == KOFN_USE_PARTS && kf_core_suspects(j->core) > 0)
        kf_job_code_it(j, p);
    know_alike(j, p);
    ev.alike = p->start.alike;
    ev.use = kf_job_use_number(p);

    /* numbers in the core ascend in the order of starts */
    p->start.core = j->start.number =
        j->start.number < p->number ? p->number : j->start.number + 1;
    ev.product = p->start.core;
    if (p->start.began == KOFN_NEVER)
        p->start.began = kf_phase_mark(j, &p->start.from);
    p->start.begun = true;
    TRY(kf_task_outcomes_open(&j->outcomes, p->start.core, &p->start.tasks));
    p->feed.level = 0;
    if (kf_is_stream(j))
        TRY(kf_pair_begin(j, p, &ev));
    if (p->number == 0 || (kf_job_strips(j) &&
                           (p->as == KOFN_USE_OWN || p->use->layout.adjoint))) {
        ev.lo = p->lo;
        ev.hi = p->hi;
    }
    return kf_job_step(j, &ev);
}

kofn_status kf_job_check_start(kofn_job *j, kofn_time *atmost)
{
    kofn_time now = kf_clock(), left;
    kofn_progress p = KOFN_PROGRESS_INIT;

    if (j->start.enough || j->opt.start_within <= 0)
        return KOFN_OK;
    kofn_job_progress(j, &p);
    j->start.enough = p.round > 0 && p.needed == 0;
    j->start.asked = j->start.asked ? j->start.asked : now;
    left = j->opt.start_within - (now - j->start.asked);
    *atmost = left < *atmost ? left : *atmost;
    if (j->start.enough || left > 0)
        return KOFN_OK;
    if (p.round > 0)
        return kf_fail(KOFN_LATE,
                       "%zu worker%s live after %.3g s and %zu are needed; "
                       "start more workers",
                       p.live, p.live == 1 ? " is" : "s are",
                       (double)(now - j->start.asked) * 1e-9, p.needed);
    return kf_fail(KOFN_LATE,
                   "%zu of %zu workers came within %.3g s; start more workers",
                   p.here, p.expected, (double)(now - j->start.asked) * 1e-9);
}

kofn_status kf_job_await_start(kofn_job *j)
{
    while (!kf_job_all_came(j)) {
        kofn_time atmost = KOFN_NEVER;
        kofn_status st;

        TRY(kf_job_check_start(j, &atmost));
        TRY(kf_job_give_up(j, &atmost));
        st = kf_job_pass(j, KOFN_NEVER, atmost);
        if (st < 0)
            return st;
    }
    return KOFN_OK;
}

bool kf_job_starves(const kofn_job *j, const product *p)
{
    kf_core_view v;

    assert(p->start.begun);
    kf_core_look(j->core, p->start.core, &v);
    return v.needed > 0;
}
