/* seats.c -- workers come, sit down, and go.
 *
 * A joiner takes the lowest empty seat of the group with the fewest members, of
 * which the round still wants something where there is one, which makes the
 * code whole again; when none is empty, the next fresh row of the code; when
 * there is none, it stands by.  It works from the next round on, or at once
 * when the round cannot be finished without it.
 */
#include "state.h"

static void set_state(kofn_core *c, uint32_t worker, kf_worker_state state)
{
    c->in_state[c->worker[worker].state]--;
    c->in_state[state]++;
    c->worker[worker].state = state;
}

bool kf_can_work(const kofn_core *c, const kf_worker *w)
{
    return w->state == KF_WORKER_LIVE && w->from <= c->round &&
           w->failed != c->round;
}

size_t kf_live_count(const kofn_core *c, size_t group)
{
    size_t n = 0;

    for (size_t s = group; s < c->seats; s += c->plan->layout.groups)
        n += c->seat[s] != KF_NOBODY && kf_can_work(c, &c->worker[c->seat[s]]);
    return n;
}

kofn_status kf_live_members(kofn_core *c, size_t group, size_t *n)
{
    double mean = 0;
    size_t known = 0;

    *n = 0;
    if (c->live_cap < c->seats) {
        kf_free(c->live);
        kf_free(c->live_worker);
        c->live_cap = 0;
        c->live = kf_new(c->seats, sizeof *c->live);
        c->live_worker = kf_new(c->seats, sizeof *c->live_worker);
        if (!c->live || !c->live_worker)
            return KOFN_NOMEM;
        c->live_cap = c->seats;
    }
    for (size_t s = group; s < c->seats; s += c->plan->layout.groups) {
        const kf_worker *w;

        if (c->seat[s] == KF_NOBODY)
            continue;
        w = &c->worker[c->seat[s]];
        if (!kf_can_work(c, w))
            continue;
        c->worker[c->seat[s]].place = (uint32_t)*n;
        c->live_worker[*n] = c->seat[s];
        c->live[(*n)++] = (kofn_live){kf_local(c->plan, s), w->speed};
        mean += w->speed;
        known += w->speed > 0;
    }
    for (size_t i = 0; i < *n; i++)
        if (c->live[i].speed <= 0)
            c->live[i].speed = known ? mean / (double)known : 1;
    return KOFN_OK;
}

/* ---- sitting down -------------------------------------------------------- */

/* Has this seat answered in the round that is under way? */
static bool answered(const kofn_core *c, size_t seat)
{
    for (size_t t = 0; t < c->tasks; t++)
        if (c->task[t].seat == seat && c->task[t].state == KF_TASK_DONE)
            return true;
    return false;
}

/* The lowest empty seat of a group; beyond the last when all are taken.  Where
 * answers are whole one that has answered in this round, before its worker
 * left, is taken last: nothing more can come of it. */
static size_t empty_seat(kofn_core *c, size_t group)
{
    bool whole = c->plan->layout.whole && c->state != KF_ROUND_IDLE;
    size_t groups = c->plan->layout.groups, spent = SIZE_MAX, s;
    size_t *taken = &c->ledger[group].taken;

    for (s = group + *taken * groups; s < c->seats; s += groups) {
        c->looked++;
        if (c->seat[s] != KF_NOBODY) {
            *taken += s == group + *taken * groups;
            continue;
        }
        if (!whole || !answered(c, s))
            return s;
        spent = kf_min(spent, s);
    }
    return kf_min(spent, s);
}

/* The first of the groups with the fewest members. */
static size_t smallest_group(kofn_core *c)
{
    size_t groups = c->plan->layout.groups;

    while (c->ledger[c->fuller].members > c->fewest) {
        c->looked++;
        if (++c->fuller == groups) {
            c->fuller = 0;
            c->fewest++;
        }
    }
    return c->fuller;
}

static bool choose_seat(kofn_core *c, size_t *seat)
{
    size_t group = smallest_group(c);

    if (c->ledger[group].members >= c->plan->layout.max_seats)
        return false;
    *seat = empty_seat(c, group);
    return true;
}

static void take_seat(kofn_core *c, uint32_t worker, size_t seat)
{
    c->seat[seat] = worker;
    c->worker[worker].seat = (uint32_t)seat;
    c->ledger[kf_group(c->plan, seat)].members++;
}

static void free_seat(kofn_core *c, size_t seat)
{
    size_t group = kf_group(c->plan, seat);
    kf_ledger *l = &c->ledger[group];

    c->seat[seat] = KF_NOBODY;
    l->members--;
    l->taken = kf_min(l->taken, kf_local(c->plan, seat));
    if (l->members < c->fewest ||
        (l->members == c->fewest && group < c->fuller)) {
        c->fewest = l->members;
        c->fuller = group;
    }
}

/* Does its principal have all the seats that it may have? */
static bool has_its_seats(const kofn_core *c, uint32_t principal)
{
    size_t n = 0;

    if (!principal || !c->opt.seats)
        return false;
    for (size_t s = 0; s < c->seats; s++)
        n += c->seat[s] != KF_NOBODY &&
             c->worker[c->seat[s]].principal == principal;
    return n >= c->opt.seats;
}

bool kofn_core_crowded(const kofn_core *c, uint32_t worker)
{
    return worker < c->workers &&
           c->worker[worker].state == KF_WORKER_STANDBY &&
           has_its_seats(c, c->worker[worker].principal);
}

static kofn_status sit(kofn_core *c, uint32_t worker)
{
    const kf_seat *rows;
    size_t seat;

    if (kf_banned(c, worker)) {
        set_state(c, worker, KF_WORKER_QUARANTINED);
        return KOFN_OK;
    }
    if (has_its_seats(c, c->worker[worker].principal) || !choose_seat(c, &seat)) {
        set_state(c, worker, KF_WORKER_STANDBY);
        return KOFN_OK;
    }
    TRY(kf_code_seat(c->code, kf_local(c->plan, seat), &rows));
    while (c->seats <= seat) {
        TRY(kf_grow(&c->seat, &c->seat_cap, c->seats, sizeof *c->seat));
        c->seat[c->seats++] = KF_NOBODY;
    }
    take_seat(c, worker, seat);
    set_state(c, worker, KF_WORKER_STORING);
    return kf_act(c, (kofn_action){.type = KOFN_DO_STORE,
                                   .worker = worker,
                                   .seat = seat});
}

static kofn_status know(kofn_core *c, uint32_t worker, uint32_t principal)
{
    while (c->workers <= worker) {
        TRY(kf_grow(&c->worker, &c->worker_cap, c->workers, sizeof *c->worker));
        TRY(kf_grow(&c->rows, &c->row_cap, c->workers, sizeof *c->rows));
        TRY(kf_grow(&c->lies, &c->lies_cap, c->workers, sizeof *c->lies));
        c->rows[c->workers] = 0;
        c->lies[c->workers] = 0;
        c->worker[c->workers++] = (kf_worker){.seat = KF_NOBODY};
        c->in_state[KF_WORKER_UNKNOWN]++;
    }
    while (principal && c->principals <= principal) {
        TRY(kf_grow(&c->principal, &c->principal_cap, c->principals,
                    sizeof *c->principal));
        c->principal[c->principals++] = (kf_principal){.seats = 0};
    }
    return KOFN_OK;
}

kofn_status kf_join(kofn_core *c, uint32_t worker, uint32_t principal)
{
    /* Numbers are given out in order; a wild one must not cost memory. */
    if (worker > c->workers + 65536 || principal > c->principals + 65536 ||
        (worker < c->workers &&
         c->worker[worker].state != KF_WORKER_UNKNOWN)) {
        c->dropped++;
        return KOFN_OK;
    }
    TRY(know(c, worker, principal));
    c->worker[worker].principal = principal;
    return sit(c, worker);
}

kofn_status kf_moved(kofn_core *c, uint32_t worker, uint32_t principal)
{
    if (worker >= c->workers || principal > c->principals + 65536 ||
        (c->worker[worker].state != KF_WORKER_STORING &&
         c->worker[worker].state != KF_WORKER_STANDBY)) {
        c->dropped++;
        return KOFN_OK;
    }
    TRY(know(c, worker, principal));
    c->worker[worker].principal = principal;
    return KOFN_OK;
}

kofn_status kf_stored(kofn_core *c, uint32_t worker)
{
    kf_worker *w;

    if (worker >= c->workers ||
        c->worker[worker].state != KF_WORKER_STORING) {
        c->dropped++;
        return KOFN_OK;
    }
    w = &c->worker[worker];
    set_state(c, worker, KF_WORKER_LIVE);
    w->from = c->round + (c->state == KF_ROUND_RUNNING);
    /* Perhaps it is the one that was missed. */
    return c->state == KF_ROUND_STARVED ? kf_deal_more(c) : KOFN_OK;
}

/* ---- getting up ---------------------------------------------------------- */

static kofn_status next_in_line(kofn_core *c)
{
    for (size_t i = 0; c->in_state[KF_WORKER_STANDBY] && i < c->workers; i++)
        if (c->worker[i].state == KF_WORKER_STANDBY &&
            !has_its_seats(c, c->worker[i].principal) &&
            !kf_banned(c, (uint32_t)i))
            return sit(c, (uint32_t)i);
    return KOFN_OK;
}

kofn_status kf_leaving(kofn_core *c, uint32_t worker)
{
    if (worker >= c->workers || c->worker[worker].state != KF_WORKER_LIVE) {
        c->dropped++;
        return KOFN_OK;
    }
    /* What it has in hand it may finish; nothing more is dealt to it. */
    set_state(c, worker, KF_WORKER_LEAVING);
    return KOFN_OK;
}

/* What has come for cells that are not settled no longer counts. */
static void forget_open(kofn_core *c)
{
    for (size_t g = 0; g < c->plan->layout.groups; g++)
        for (size_t i = 0; i < c->ledger[g].count; i++)
            if (!c->ledger[g].cell[i].settled) {
                kf_cell *cell = &c->ledger[g].cell[i];

                cell->count = cell->lied = cell->extra = 0;
            }
}

/* Deal again what is open, as far as there are enough to deal to. */
static kofn_status deal_afresh(kofn_core *c)
{
    for (size_t g = 0; g < c->plan->layout.groups; g++)
        if (kf_live_count(c, g) * c->plan->layout.turns >=
            c->plan->layout.enough + kf_spare(c, g))
            TRY(kf_deal_open(c, g));
    return kf_starve_if_short(c);
}

static kofn_status redeal(kofn_core *c)
{
    kf_set_spare(c);
    if (c->degraded) /* whoever is left has been asked for all there is */
        return kf_deal_more(c);
    switch (c->opt.in_flight) {
    case KOFN_IN_FLIGHT_ABORT:
        TRY(kf_drop_all(c));
        return kf_deal_round(c);
    case KOFN_IN_FLIGHT_KEEP:
        TRY(kf_drop_all(c));
        forget_open(c);
        return deal_afresh(c);
    case KOFN_IN_FLIGHT_LEDGER:
        break;
    }
    return kf_deal_more(c);
}

/* The worker's seat is free, what it has in hand will not come. */
kofn_status kf_vacate(kofn_core *c, uint32_t worker, kf_worker_state state)
{
    kf_worker *w = &c->worker[worker];

    if (w->state != KF_WORKER_STANDBY && w->state != KF_WORKER_QUARANTINED)
        free_seat(c, w->seat);
    set_state(c, worker, state);
    for (size_t i = 0; i < c->tasks; i++)
        if (c->task[i].worker == worker)
            TRY(kf_drop_task(c, i, false));
    return next_in_line(c);
}

/* Somebody who worked in this round does not any more. */
kofn_status kf_lost(kofn_core *c)
{
    if (c->state == KF_ROUND_STARVED)
        return kf_starve_if_short(c);
    return c->plan->layout.adjoint ? kf_adjoint_restart(c) : redeal(c);
}

/* Gone, or mute: whoever was given up stays so. */
kofn_status kf_left(kofn_core *c, uint32_t worker, kf_worker_state state)
{
    kf_worker *w = worker < c->workers ? &c->worker[worker] : NULL;
    bool was_live, had_work;

    if (!w || w->state == KF_WORKER_GONE || w->state == KF_WORKER_MUTE ||
        w->state == KF_WORKER_UNKNOWN) {
        c->dropped++;
        return KOFN_OK;
    }
    was_live = w->state == KF_WORKER_LIVE || w->state == KF_WORKER_LEAVING;
    had_work = w->out > 0;
    TRY(kf_vacate(c, worker, state));
    if (state == KF_WORKER_MUTE) {
        c->mutes++;
        c->mute = worker;
    }
    if (c->state == KF_ROUND_IDLE)
        return KOFN_OK;
    if (c->state == KF_ROUND_STARVED ||
        (c->plan->layout.adjoint
             ? had_work
             : was_live && c->worker[worker].from <= c->round))
        return kf_lost(c);
    return KOFN_OK;
}
