/* guard.c -- results that are wrong without saying so.
 *
 * Any `enough` results give an answer; one more and they can be compared.
 * The core decides how many more are waited for and what a verdict means; the
 * comparing itself is arithmetic on matrices and done by the body.
 *
 * With s results beyond those that decode, any codeword that agrees with all
 * but e of n results is the true one as long as at most n - e - enough liars
 * are among those it agrees with.  So e = n - enough - s may be named where s
 * liars have to be survived, and one result more is asked for when that is not
 * enough (docs/errors.md).
 */
#include "state.h"

/* Faults that do not conspire never agree on a wrong codeword: one result to
 * spare shows them.  Liars who conspire are assumed to be as many as can be
 * corrected with everybody's results. */
void kf_set_spare(kofn_core *c)
{
    size_t enough = c->plan->layout.enough;

    for (size_t g = 0; g < c->plan->layout.groups; g++) {
        size_t live = kf_live_count(c, g), *spare = &c->ledger[g].spare;

        *spare = c->opt.errors != KOFN_ERRORS_NONE;
        if (c->opt.errors == KOFN_ERRORS_ADVERSARIAL && live > enough + 1)
            *spare = (live - enough) / 2;
    }
}

size_t kf_spare(const kofn_core *c, size_t group)
{
    return c->ledger[group].spare;
}

/* Liars that may be named among n results. */
static size_t most(const kofn_core *c, size_t group, size_t n)
{
    size_t beyond = n - c->plan->layout.enough, spare = kf_spare(c, group);

    if (c->opt.errors == KOFN_ERRORS_DETECT || beyond < spare)
        return 0;
    /* single precision leaves too little between rounding and a lie to tell
     * more (docs/errors.md) */
    if (c->plan->layout.problem.dtype == KOFN_F32 && !c->opt.beyond)
        return kf_min(beyond - spare, beyond / 2);
    return beyond - spare;
}

kofn_status kf_ask_check(kofn_core *c, size_t group, size_t lo, size_t hi,
                         const kf_decoder *d, const uint32_t *tasks, size_t n)
{
    kf_asked a = {group, lo, hi, c->evidences, n, true};
    uint32_t number = c->first_check + (uint32_t)c->checks;

    TRY(kf_grow(&c->check, &c->check_cap, c->checks, sizeof *c->check));
    while (c->evidence_cap < c->evidences + n)
        TRY(kf_grow(&c->evidence, &c->evidence_cap, c->evidence_cap,
                    sizeof *c->evidence));
    memcpy(c->evidence + c->evidences, tasks, n * sizeof *tasks);
    c->evidences += n;
    c->check[c->checks++] = a;
    return kf_act(c, (kofn_action){.type = KOFN_DO_CHECK,
                                   .task = number,
                                   .group = group,
                                   .lo = lo,
                                   .hi = hi,
                                   .decoder = d,
                                   .first = c->pooled,
                                   .count = n,
                                   .most = most(c, group, n)});
}

/* ---- verdicts ------------------------------------------------------------ */

static void name(kofn_core *c, const kf_asked *a, uint32_t task)
{
    kf_ledger *l = &c->ledger[a->group];
    kf_worker *w = &c->worker[c->task[task].worker];

    c->corrupt++;
    if (w->named != c->round) {
        w->named = c->round;
        c->lies[c->task[task].worker]++;
    }
    for (size_t i = kf_cells_find(l, a->lo);
         i < l->count && l->cell[i].lo < a->hi; i++)
        kf_cell_blame(&l->cell[i], task);
}

/* Take those found wrong out of the evidence; *n is what is left of it. */
static void name_all(kofn_core *c, const kf_asked *a, const kofn_event *ev,
                     size_t *n)
{
    uint32_t *task = c->evidence + a->first;

    for (size_t i = 0; i < ev->bad_count; i++)
        if (ev->bad[i] < a->count && task[ev->bad[i]] != UINT32_MAX) {
            name(c, a, task[ev->bad[i]]);
            task[ev->bad[i]] = UINT32_MAX;
        }
    *n = 0;
    for (size_t i = 0; i < a->count; i++)
        if (task[i] != UINT32_MAX)
            task[(*n)++] = task[i];
}

kofn_status kf_hear(kofn_core *c, const kofn_event *ev)
{
    uint32_t number = ev->task - c->first_check;
    bool sure = ev->status == KOFN_OK;
    kf_asked *a;
    size_t n;

    if (c->state == KF_ROUND_IDLE || number >= c->checks ||
        !c->check[number].open ||
        (sure && ev->bad_count > c->check[number].count)) {
        c->dropped++;
        return KOFN_OK;
    }
    a = &c->check[number];
    a->open = false;
    n = a->count;
    if (sure)
        name_all(c, a, ev, &n);
    else
        *(ev->status == KOFN_CORRUPT ? &c->disagree : &c->unsure) = true;
    if (c->disagree && c->opt.errors == KOFN_ERRORS_DETECT)
        return kf_corrupt_beyond(c);
    return kf_settle_checked(c, *a, n, sure);
}

kofn_status kf_corrupt_beyond(kofn_core *c)
{
    if (c->opt.errors == KOFN_ERRORS_DETECT)
        kf_fail(KOFN_CORRUPT, "results of different workers disagree; run "
                "with errors probabilistic or adversarial to find out whose "
                "are wrong");
    else
        kf_fail(KOFN_CORRUPT, "results disagree, and with those of all "
                "workers it cannot be told whose are wrong; use more workers "
                "or a smaller threshold than %zu", c->plan->layout.enough);
    return kf_deliver(c, KOFN_CORRUPT);
}

kofn_status kf_unsure(kofn_core *c, size_t count)
{
    kf_fail(KOFN_TOOFEW, "%zu results agree, but some of them not with any "
            "that could tell if they were wrong; start more workers", count);
    return kf_deliver(c, KOFN_TOOFEW);
}

/* ---- quarantine ---------------------------------------------------------- */

/* Whoever was named too often gets no more work: its seat is free for others. */
kofn_status kf_quarantine(kofn_core *c)
{
    for (size_t i = 0; i < c->workers; i++) {
        kf_worker *w = &c->worker[i];

        if ((w->state == KF_WORKER_LIVE || w->state == KF_WORKER_LEAVING) &&
            c->lies[i] >= c->opt.quarantine)
            TRY(kf_vacate(c, (uint32_t)i, KF_WORKER_QUARANTINED));
    }
    return KOFN_OK;
}
