/* guard.c -- results that are wrong without saying so.
 *
 * Any `enough` results give an answer; one more and they can be compared.
 * The core decides how many more are waited for and what a verdict means; the
 * comparing itself is arithmetic on matrices and done by the body.
 *
 * With s results beyond those that decode, any codeword that agrees with all
 * but e of n results is the true one as long as at most n - e - enough lies
 * are among those it agrees with.  So e = n - enough - s may be named where s
 * lies have to be survived, and one result more is asked for when that is not
 * enough (docs/errors.md).
 *
 * Who lies is a principal: a key or a host may have many workers, and what they
 * say may be one lie.  So s is never less than what one principal can say.
 */
#include "state.h"

/* ---- principals ---------------------------------------------------------- */

/* One seat more of this worker's principal; 1 if it has none but itself. */
static size_t add_share(kofn_core *c, const kf_worker *w)
{
    if (w->principal)
        c->principal[w->principal].seats++;
    return w->principal == 0;
}

/* Whoever may answer in this group, and whoever has and may not any more. */
static size_t share_all(kofn_core *c, size_t group, const uint32_t *tasks,
                        size_t n, size_t *seats)
{
    size_t alone = 0;

    *seats = 0;
    for (size_t p = 0; p < c->principals; p++)
        c->principal[p].seats = 0;
    for (size_t s = group; s < c->seats; s += c->plan->layout.groups)
        if (c->seat[s] != KF_NOBODY &&
            kf_can_work(c, &c->worker[c->seat[s]])) {
            alone += add_share(c, &c->worker[c->seat[s]]);
            ++*seats;
        }
    for (size_t i = 0; i < n; i++) {
        const kf_worker *w = &c->worker[c->task[tasks[i]].worker];

        if (!kf_can_work(c, w)) {
            alone += add_share(c, w);
            ++*seats;
        }
    }
    return alone;
}

static size_t largest_share(const kofn_core *c, size_t alone)
{
    size_t most = alone > 0;

    for (size_t p = 0; p < c->principals; p++)
        most = kf_max(most, c->principal[p].seats);
    return most;
}

/* So many principals, whichever they are, have at most `seats` seats. */
static size_t principals_within(const kofn_core *c, size_t alone, size_t seats)
{
    size_t who = 0;

    for (size_t each = largest_share(c, alone); each > 0; each--) {
        size_t n = each == 1 ? alone : 0, fit = seats / each;

        for (size_t p = 0; p < c->principals; p++)
            n += c->principal[p].seats == each;
        who += kf_min(n, fit);
        if (fit < n)
            break;
        seats -= n * each;
    }
    return who;
}

/* ---- how many more ------------------------------------------------------- */

/* Where not every few of the seats decode, some are copies of others, and what is
 * wrong in all copies of a row conspires, by whatever accident. */
static bool has_copies(const kofn_plan *p)
{
    return p->layout.enough == 1 || p->layout.threshold > p->layout.enough;
}

static bool may_conspire(const kofn_core *c)
{
    return c->opt.errors == KOFN_ERRORS_ADVERSARIAL ||
           (c->opt.errors == KOFN_ERRORS_PROBABILISTIC && has_copies(c->plan));
}

/* Principals that do not conspire hardly ever agree on a wrong codeword: as many
 * results to spare as one of them can give show it.  Liars who conspire are
 * assumed to be as many as can be corrected with everybody's results, those of
 * the n tasks among them whose workers have left since. */
size_t kf_vouch(kofn_core *c, size_t group, const uint32_t *tasks, size_t n)
{
    size_t surely = c->plan->layout.threshold, seats, alone, spare;

    if (c->opt.errors == KOFN_ERRORS_NONE)
        return 0;
    alone = share_all(c, group, tasks, n, &seats);
    spare = kf_max(1, largest_share(c, alone));
    if (may_conspire(c) && seats > surely)
        spare = kf_max(spare, (seats - surely) / 2);
    c->ledger[group].liars =
        may_conspire(c) ? principals_within(c, alone, spare) : 1;
    return spare;
}

void kf_set_spare(kofn_core *c)
{
    for (size_t g = 0; g < c->plan->layout.groups; g++)
        c->ledger[g].spare = kf_vouch(c, g, NULL, 0);
}

size_t kf_spare(const kofn_core *c, size_t group)
{
    return c->ledger[group].spare;
}

/* Liars that may be named among these results: all but what one principal can
 * say, or as many as may conspire. */
static size_t most(kofn_core *c, size_t group, const uint32_t *tasks, size_t n)
{
    size_t beyond = n - c->plan->layout.enough, seats;
    size_t spare = kf_vouch(c, group, tasks, n);

    if (c->opt.errors == KOFN_ERRORS_DETECT || beyond < spare)
        return 0;
    if (c->opt.errors == KOFN_ERRORS_PROBABILISTIC)
        spare = kf_max(
            1, largest_share(c, share_all(c, group, tasks, n, &seats)));
    /* single precision leaves too little between rounding and a lie to tell
     * more (docs/errors.md) */
    if (c->plan->layout.problem.dtype == KOFN_F32 && !c->opt.beyond)
        return kf_min(beyond - spare, beyond / 2);
    return beyond - spare;
}

/* Nobody is named who may be honest when so many are not, whatever they do: half
 * of the results that could come beyond those that decode.  That all but one of
 * those are wrong is promised where they do not conspire.  To detect, one
 * principal that is wrong is enough. */
static void set_promise(kofn_core *c, size_t group, const uint32_t *tasks,
                        size_t n, kofn_action *a)
{
    size_t spare = kf_vouch(c, group, tasks, n), seats, beyond;

    share_all(c, group, tasks, n, &seats);
    seats = kf_max(seats, n);
    beyond = seats - kf_min(seats, c->plan->layout.threshold);
    a->liars = a->promised =
        c->opt.errors == KOFN_ERRORS_DETECT ? spare : kf_max(spare, beyond / 2);
    if (!may_conspire(c) && !has_copies(c->plan))
        a->promised = kf_max(a->promised, beyond - kf_min(beyond, 1));
}

kofn_status kf_ask_check(kofn_core *c, size_t group, size_t lo, size_t hi,
                         const kf_decoder *d, const uint32_t *tasks, size_t n)
{
    kf_asked a = {group, lo, hi, c->evidences, n, true};
    uint32_t number = c->first_check + (uint32_t)c->checks;
    kofn_action ask = {.type = KOFN_DO_CHECK,
                       .task = number,
                       .group = group,
                       .lo = lo,
                       .hi = hi,
                       .decoder = d,
                       .first = c->pooled,
                       .count = n,
                       .most = most(c, group, tasks, n)};

    set_promise(c, group, tasks, n, &ask);
    TRY(kf_grow(&c->check, &c->check_cap, c->checks, sizeof *c->check));
    while (c->evidence_cap < c->evidences + n)
        TRY(kf_grow(&c->evidence, &c->evidence_cap, c->evidence_cap,
                    sizeof *c->evidence));
    memcpy(c->evidence + c->evidences, tasks, n * sizeof *tasks);
    c->evidences += n;
    c->check[c->checks++] = a;
    return kf_act(c, ask);
}

/* ---- verdicts ------------------------------------------------------------ */

static void name(kofn_core *c, uint32_t task)
{
    kf_worker *w = &c->worker[c->task[task].worker];

    c->corrupt++;
    if (w->named != c->round) {
        w->named = c->round;
        c->lies[c->task[task].worker]++;
    }
    if (w->principal && c->principal[w->principal].named != c->round) {
        c->principal[w->principal].named = c->round;
        c->principal[w->principal].lies++;
    }
}

static void leave_out(kofn_core *c, const kf_asked *a, uint32_t task)
{
    kf_ledger *l = &c->ledger[a->group];

    for (size_t i = kf_cells_find(l, a->lo);
         i < l->count && l->cell[i].lo < a->hi; i++)
        kf_cell_blame(&l->cell[i], task);
}

/* Take those found wrong out of the evidence, and name those who are certain to
 * be; *n is what is left of it. */
static void take_out(kofn_core *c, const kf_asked *a, const kofn_event *ev,
                     size_t *n)
{
    uint32_t *task = c->evidence + a->first;

    for (size_t i = 0; i < ev->bad_count; i++)
        if (ev->bad[i] < a->count && task[ev->bad[i]] != UINT32_MAX) {
            leave_out(c, a, task[ev->bad[i]]);
            if (i + ev->doubted < ev->bad_count)
                name(c, task[ev->bad[i]]);
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
        take_out(c, a, ev, &n);
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
    kf_fail(KOFN_TOOFEW, "%zu results agree, but are too few to tell if some "
            "were wrong by more than the tolerance; start more workers or "
            "allow a larger tolerance", count);
    return kf_deliver(c, KOFN_TOOFEW);
}

/* ---- quarantine ---------------------------------------------------------- */

bool kf_banned(const kofn_core *c, uint32_t worker)
{
    uint32_t p = c->worker[worker].principal;

    return (p ? c->principal[p].lies : c->lies[worker]) >= c->opt.quarantine;
}

/* Whoever was named too often gets no more work, under whatever number: its
 * seats are free for others. */
kofn_status kf_quarantine(kofn_core *c)
{
    for (size_t i = 0; i < c->workers; i++) {
        kf_worker_state state = c->worker[i].state;

        if ((state == KF_WORKER_LIVE || state == KF_WORKER_LEAVING ||
             state == KF_WORKER_STORING || state == KF_WORKER_STANDBY) &&
            kf_banned(c, (uint32_t)i))
            TRY(kf_vacate(c, (uint32_t)i, KF_WORKER_QUARANTINED));
    }
    return KOFN_OK;
}
