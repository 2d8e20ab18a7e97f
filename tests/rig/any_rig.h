/* any_rig.h -- random jobs: any code, on the simulator, on threads or behind
 * packets that may be lost. Workers leave, join, are late and wrong. */
#ifndef KF_TEST_ANY_RIG_H
#define KF_TEST_ANY_RIG_H

#include "fleet.h"
#include "levels_rig.h"

enum { ANY_EVENTS = 5 };

typedef enum any_where { ON_SIMULATOR, ON_THREADS, BEHIND_PACKETS } any_where;

/* Some draws are impossible and are only counted. */
typedef struct any_job {
    uint64_t seed;
    char spec[96];
    size_t workers;
    any_where where;
    kofn_dtype dtype;
    bool lies, leaves; /* a worker may be wrong; a worker may be lost */
    kofn_fault_event event[ANY_EVENTS];
    size_t events;
    kofn_options opt;
} any_job;

/* Counts over all jobs. */
typedef struct any_sum {
    size_t delivered, refused, happened;
} any_sum;

static inline size_t below(kf_rng *g, size_t n)
{
    return (size_t)kf_rng_below(g, n);
}

static inline bool one_in(kf_rng *g, size_t n)
{
    return below(g, n) == 0;
}

static inline long double square(long double x)
{
    return x * x;
}

/* ---- drawing --------------------------------------------------------------
 */

static inline size_t any_size(kf_rng *g)
{
    static const size_t of[] = {1, 2, 3, 7, 16, 33, 64, 100};

    return of[below(g, sizeof of / sizeof *of)];
}

/* Returns the spread of lines in decimal digits. */
static inline double any_digits(const any_job *a, kf_rng *g)
{
    static const double of[] = {0, 0, 6, 20, 80};

    return of[below(g, sizeof of / sizeof *of)] *
           (a->dtype == KOFN_F64 ? 1 : 0.2);
}

static inline double *any_lines(kf_rng *g, size_t n, double digits)
{
    double *x = numbers(n, sizeof *x);

    for (size_t i = 0; i < n; i++)
        x[i] = line(g, digits);
    return x;
}

/* Draws a code under which matrices may change, or any code. */
static inline size_t any_code_named(char *spec, size_t room, bool changes,
                                    kf_rng *g)
{
    static const char *const basis[] = {"quaternion", "harmonic", "haar",
                                        "gauss_sys", "gauss"};
    size_t k = 1 + below(g, 8), m = 1 + below(g, 3), n = 1 + below(g, 3);
    size_t p = 1 + below(g, 2);

    switch (below(g, changes ? 10 : 12)) {
    case 0:
        snprintf(spec, room, "mds:k=%zu", k);
        return k;
    case 1:
        snprintf(spec, room, "elastic:k=%zu,cut=columns", k);
        return k;
    case 2:
        snprintf(spec, room, "product:m=%zu,m2=%zu,p=%zu,p2=%zu", m, m + p, p,
                 p + n - 1);
        return (m + p) * (p + n - 1);
    case 3:
        snprintf(spec, room, "polynomial:m=%zu,p=%zu", m, p);
        return m * p;
    case 4:
        snprintf(spec, room, "gpd:m=%zu,n=%zu,p=%zu", m, n, p);
        return m * n * p + n - 1;
    case 5:
        snprintf(spec, room, "polydot:m=%zu,n=%zu,p=%zu", m, n, p);
        return m * p * (2 * n - 1);
    case 6:
        snprintf(spec, room, "matdot:n=%zu", n);
        return 2 * n - 1;
    case 7:
        snprintf(spec, room, "elastic:k=%zu,groups=2", 2 * k);
        return 2 * k;
    case 8:
        snprintf(spec, room, "replication:k=%zu", k);
        return k * (1 + below(g, 3));
    case 10:
        snprintf(spec, room, "elastic:k=%zu,basis=%s", k,
                 basis[below(g, sizeof basis / sizeof *basis)]);
        return k;
    case 11:
        snprintf(spec, room, "grid:m=%zu,n=%zu", m, n);
        return m * n * (1 + p);
    default:
        snprintf(spec, room, "elastic:k=%zu", k);
        return k;
    }
}

/* Draws a code, and workers that may suffice for it. */
static inline void any_code(any_job *a, bool changes, kf_rng *g)
{
    a->workers = any_code_named(a->spec, sizeof a->spec, changes, g);
    if (strncmp(a->spec, "product", 7) && strncmp(a->spec, "replication", 11))
        a->workers += (strstr(a->spec, "groups") ? 2 : 1) * below(g, 5);
}

/* Draws events over `rounds` rounds. At most one worker is wrong, behind
 * packets none. */
static inline void any_events(any_job *a, size_t rounds, kf_rng *g)
{
    static const kofn_fault_event_kind of[] = {
        KOFN_FAULT_EVENT_JOIN, KOFN_FAULT_EVENT_LEAVE, KOFN_FAULT_EVENT_SLOW,
        KOFN_FAULT_EVENT_CORRUPT, KOFN_FAULT_EVENT_FLIP};
    size_t kinds = a->where == BEHIND_PACKETS          ? 2
                   : a->opt.errors == KOFN_ERRORS_NONE ? 3
                                                       : 5;
    uint32_t liar = (uint32_t)below(g, a->workers);

    a->events = below(g, ANY_EVENTS + 1);
    for (size_t i = 0; i < a->events; i++) {
        kofn_fault_event *e = &a->event[i];

        *e = (kofn_fault_event){.round = 1 + (unsigned)below(g, rounds),
                                .fraction = one_in(g, 2) ? 0 : 0.5,
                                .kind = of[below(g, kinds)],
                                .worker = (uint32_t)below(g, a->workers),
                                .factor = 10};
        if (e->kind == KOFN_FAULT_EVENT_CORRUPT ||
            e->kind == KOFN_FAULT_EVENT_FLIP) {
            e->worker = liar;
            a->lies = true;
        }
        a->leaves |= e->kind == KOFN_FAULT_EVENT_LEAVE;
    }
    a->opt.events = a->event;
    a->opt.event_count = a->events;
}

/* Waiting for missing workers takes no time on the simulator only. */
static inline void any_options(any_job *a, kf_rng *g)
{
    static const double late[] = {0, 0, -1, 3};

    if (a->where != BEHIND_PACKETS) /* on other ports tasks restart when
                                       connections break */
        a->opt.in_flight = (kofn_in_flight)below(g, 3);
    if (one_in(g, 8))
        a->opt.below = KOFN_BELOW_DEGRADE;
    else if (one_in(g, 4) && a->where == ON_SIMULATOR)
        a->opt.below = KOFN_BELOW_PAUSE;
    a->opt.late = late[below(g, 4)];
    a->opt.pieces = one_in(g, 2) ? 0 : 1 + (unsigned)below(g, 6);
    a->opt.quarantine = one_in(g, 2) ? 0 : 1 + (unsigned)below(g, 10);
    a->opt.max_error = one_in(g, 8) ? a->dtype == KOFN_F64 ? 1e-14 : 1e-6 : 0;
}

static inline void any_draw(any_job *a, uint64_t seed, bool changes, kf_rng *g)
{
    *a = (any_job){.seed = seed, .opt = KOFN_OPTIONS_INIT};
    any_code(a, changes, g);
    a->dtype = one_in(g, 3) ? KOFN_F32 : KOFN_F64;
    a->where = one_in(g, 8)   ? BEHIND_PACKETS
               : one_in(g, 4) ? ON_THREADS
                              : ON_SIMULATOR;
    if (one_in(g, 2))
        a->opt.errors = (kofn_errors)(1 + below(g, 3));
    any_options(a, g);
}

/* Returns the settings that repeat the job; valid until the next call. */
static inline const char *any_told(const any_job *a, const char *more)
{
    static const char *const kinds[] = {"",       "leave",   "join", "slow",
                                        "normal", "corrupt", "flip"};
    static const char *const places[] = {"sim", "threads", "packets"};
    static char text[1000];
    int n = snprintf(
        text, sizeof text,
        "KOFN_TEST_SEED=%llu, %s, %zu workers (%s), float%d, errors %d, below "
        "%d, in flight %d, late %g, pieces %u, %s:",
        (unsigned long long)a->seed, a->spec, a->workers, places[a->where],
        a->dtype == KOFN_F64 ? 64 : 32, (int)a->opt.errors, (int)a->opt.below,
        (int)a->opt.in_flight, a->opt.late, a->opt.pieces, more);

    for (size_t i = 0; i < a->events; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, " %g %s %u",
                      a->event[i].round + a->event[i].fraction,
                      kinds[a->event[i].kind], a->event[i].worker);
    return text;
}

/* ---- refusals -------------------------------------------------------------
 */

/* Checks that the refusal has a reason. Impossible jobs are refused earlier. */
static inline void any_refusal(const any_job *a, kofn_status st,
                               const char *told)
{
    bool few = a->leaves || a->opt.errors;
    bool right = st == KOFN_CORRUPT  ? a->lies
                 : st == KOFN_TOOFEW ? few
                 : st == KOFN_LATE
                     ? few && a->opt.below == KOFN_BELOW_PAUSE
                     : st == KOFN_NONFINITE || st == KOFN_UNSTABLE;

    if (!right)
        fail_msg("status %d: %s; %s", (int)st, kofn_errmsg(), told);
}

/* ---- ports ----------------------------------------------------------------
 */

static fleet any_fleet; /* behind packets; one job at a time */

static inline kofn_port *any_packets(any_job *a, kf_rng *g)
{
    kofn_away_options how = KOFN_AWAY_OPTIONS_INIT;
    double bad = one_in(g, 2) ? 0 : 0.005 / (double)a->workers;
    loop_faults faults = {.twice = one_in(g, 2) ? 5 * bad : 0,
                          .damage = one_in(g, 2) ? bad : 0,
                          .truncate = one_in(g, 2) ? bad : 0,
                          .cut = one_in(g, 2) ? bad : 0,
                          .seed = a->seed,
                          .room = one_in(g, 3) ? 4096 : 0,
                          .fetching = one_in(g, 2)};

    how.start = fleet_start;
    how.kill = fleet_kill;
    how.ud = &any_fleet;
    fleet_init(&any_fleet, &faults);
    any_fleet.serve.staged = true;
    a->leaves |= bad > 0;
    return fleet_port(&any_fleet, a->workers, &how);
}

static inline kofn_port *any_port(any_job *a, kf_rng *g)
{
    kofn_port *port;

    if (a->where == BEHIND_PACKETS)
        return any_packets(a, g);
    assert_ok(a->where == ON_SIMULATOR
                  ? kofn_port_sim(&port, a->workers, NULL)
                  : kofn_port_threads(&port, a->workers, NULL));
    return port;
}

/* Ends the port of a closed job. */
static inline void any_down(void)
{
    if (any_fleet.members)
        fleet_down(&any_fleet);
    any_fleet.members = 0;
}

/* ---- all of them --------------------------------------------------------- */

/* Runs n jobs, with seeds from KOFN_TEST_SEED on. */
static inline void any_run(void (*one)(uint64_t seed), size_t n,
                           const any_sum *sum, const char *what)
{
    const char *given = getenv("KOFN_TEST_SEED");
    uint64_t first = given ? strtoull(given, NULL, 10) : 0;

    for (uint64_t seed = first; seed < first + n; seed++)
        one(seed);
    print_message("EVENTS %zu in %zu %s from seed %zu: %zu results delivered, "
                  "%zu refused\n",
                  sum->happened, n, what, (size_t)first, sum->delivered,
                  sum->refused);
    assert_true(sum->delivered > n);
}

#endif
