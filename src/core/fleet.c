/* fleet.c -- workers, seats and principals; see fleet.h.
 *
 * Owns the tables of workers, principals and seats.  It knows no products:
 * round.c counts a worker's outstanding tasks. */
#include "fleet.h"

kofn_status kf_fleet_open(kf_fleet *f, size_t groups, size_t most,
                          size_t allowed)
{
    assert(groups > 0);
    *f = (kf_fleet){.groups = groups, .most = most, .allowed = allowed};
    TRY_ZERO(f->bench, groups);
    return KOFN_OK;
}

void kf_fleet_close(kf_fleet *f)
{
    kf_free(f->worker);
    kf_free(f->located);
    kf_free(f->principal);
    kf_free(f->seat);
    kf_free(f->bench);
}

/* ---- workers ------------------------------------------------------------- */

bool kf_fleet_plausible(const kf_fleet *f, uint32_t worker, uint32_t principal)
{
    /* bounds the memory that a wrong number can cost */
    return worker <= f->workers + 65536 && principal <= f->principals + 65536;
}

kofn_status kf_fleet_know(kf_fleet *f, uint32_t worker, uint32_t principal)
{
    while (f->workers <= worker) {
        TRY(kf_grow(&f->worker, &f->worker_cap, f->workers, sizeof *f->worker));
        f->worker[f->workers++] = (kf_worker){.seat = KF_NOBODY};
        f->in_state[KOFN_WORKER_UNKNOWN]++;
    }
    TRY(kf_reach(&f->located, &f->located_cap, f->workers, sizeof *f->located));
    if (!principal || principal < f->principals)
        return KOFN_OK;
    TRY(kf_reach(&f->principal, &f->principal_cap, (size_t)principal + 1,
                 sizeof *f->principal));
    f->principals = (size_t)principal + 1;
    return KOFN_OK;
}

void kf_fleet_set(kf_fleet *f, uint32_t worker, kofn_worker_state state)
{
    assert(worker < f->workers && state < KOFN_WORKER_STATES);
    assert(f->in_state[f->worker[worker].state] > 0);
    f->in_state[f->worker[worker].state]--;
    f->in_state[state]++;
    f->worker[worker].state = state;
}

void kf_fleet_ask(kf_fleet *f, uint32_t worker, kofn_time now)
{
    kf_worker *w = &f->worker[worker];

    assert(worker < f->workers);
    if (w->out++ == 0) {
        f->busy++;
        w->last = now;
    }
}

void kf_fleet_unask(kf_fleet *f, uint32_t worker)
{
    assert(worker < f->workers && f->worker[worker].out > 0 && f->busy > 0);
    f->busy -= --f->worker[worker].out == 0;
}

/* Prefers the worker's own time.  On a shared machine, elapsed time would
 * measure the worker's share of the machine instead of its speed. */
void kf_fleet_measure(kf_fleet *f, uint32_t worker, size_t strips,
                      kofn_time now, kofn_time took)
{
    kf_worker *w = &f->worker[worker];
    double seconds = (double)(took > 0 ? took : now - w->last) * 1e-9, speed;

    assert(worker < f->workers);
    w->last = now;
    if (!(seconds > 0))
        return;
    speed = (double)strips / seconds;
    w->speed = w->speed > 0 ? 0.7 * w->speed + 0.3 * speed : speed;
}

/* ---- seats --------------------------------------------------------------- */

bool kf_fleet_crowded(const kf_fleet *f, uint32_t principal)
{
    size_t n = 0;

    if (!principal || !f->allowed)
        return false;
    for (size_t s = 0; s < f->seats; s++)
        n += f->seat[s] != KF_NOBODY &&
             f->worker[f->seat[s]].principal == principal;
    return n >= f->allowed;
}

/* Returns the lowest empty seat of the group for which `spent` is false; else
 * the lowest spent one; if all are taken, the next beyond the last. */
static size_t empty_seat(kf_fleet *f, size_t group,
                         bool (*spent)(const void *, size_t), const void *ud)
{
    size_t last = SIZE_MAX, s, *taken = &f->bench[group].taken;

    assert(group < f->groups);
    for (s = group + *taken * f->groups; s < f->seats; s += f->groups) {
        f->looked++;
        if (f->seat[s] != KF_NOBODY) {
            *taken += s == group + *taken * f->groups;
            continue;
        }
        if (!spent(ud, s))
            return s;
        last = kf_min(last, s);
    }
    return kf_min(last, s);
}

bool kf_fleet_choose(kf_fleet *f, bool (*spent)(const void *, size_t),
                     const void *ud, size_t *seat)
{
    while (f->bench[f->fuller].members > f->fewest) {
        f->looked++;
        if (++f->fuller == f->groups) {
            f->fuller = 0;
            f->fewest++;
        }
    }
    /* `fuller` is now the first of the groups with the fewest members */
    if (f->fewest >= f->most)
        return false;
    *seat = empty_seat(f, f->fuller, spent, ud);
    return true;
}

kofn_status kf_fleet_assign_seat(kf_fleet *f, uint32_t worker, size_t seat)
{
    while (f->seats <= seat) {
        TRY(kf_grow(&f->seat, &f->seat_cap, f->seats, sizeof *f->seat));
        f->seat[f->seats++] = KF_NOBODY;
    }
    assert(worker < f->workers && f->seat[seat] == KF_NOBODY);
    f->seat[seat] = worker;
    f->worker[worker].seat = (uint32_t)seat;
    f->bench[seat % f->groups].members++;
    return KOFN_OK;
}

void kf_fleet_release_seat(kf_fleet *f, uint32_t worker)
{
    size_t seat = f->worker[worker].seat, group = seat % f->groups;
    kf_bench *b = &f->bench[group];

    assert(seat < f->seats && f->seat[seat] == worker && b->members > 0);
    f->seat[seat] = KF_NOBODY;
    b->members--;
    b->taken = kf_min(b->taken, seat / f->groups);
    if (b->members < f->fewest ||
        (b->members == f->fewest && group < f->fuller)) {
        f->fewest = b->members;
        f->fuller = group;
    }
}

/* ---- invariants ---------------------------------------------------------- */

static const char *check_seats(const kf_fleet *f)
{
    for (size_t g = 0; g < f->groups; g++) {
        size_t members = 0;

        for (size_t s = g; s < f->seats; s += f->groups) {
            members += f->seat[s] != KF_NOBODY;
            if (f->seat[s] == KF_NOBODY && s / f->groups < f->bench[g].taken)
                return "an empty seat is passed over";
            if (f->seat[s] != KF_NOBODY && f->worker[f->seat[s]].seat != s)
                return "a worker and its seat do not refer to each other";
        }
        if (f->bench[g].members != members)
            return "a group's members are miscounted";
        if (members < f->fewest + (g < f->fuller))
            return "a smaller group is passed over";
    }
    return NULL;
}

const char *kf_fleet_check(const kf_fleet *f)
{
    size_t in_state[KOFN_WORKER_STATES] = {0}, busy = 0;

    for (size_t w = 0; w < f->workers; w++) {
        const kf_worker *x = &f->worker[w];

        in_state[x->state]++;
        busy += x->out > 0;
        if (kf_fleet_seated(f, (uint32_t)w) &&
            (x->seat >= f->seats || f->seat[x->seat] != w))
            return "a worker that works has no seat";
        if (x->out && !kf_fleet_works(f, (uint32_t)w))
            return "a worker that does not work has outstanding tasks";
    }
    if (memcmp(in_state, f->in_state, sizeof in_state) != 0)
        return "workers of a state are miscounted";
    return busy != f->busy ? "busy workers are miscounted" : check_seats(f);
}
