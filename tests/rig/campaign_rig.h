/* campaign_rig.h -- real worker processes of a random code. Faults are drawn
 * from a seed, and every answer is checked. */
#ifndef KF_TEST_CAMPAIGN_RIG_H
#define KF_TEST_CAMPAIGN_RIG_H

#include "process_pool.h"

#include "code/code.h"

#include <malloc.h>
#include <stdatomic.h>
#include <sys/resource.h>

#define MILLI (KOFN_SECOND / 1000)
#define MOST 400 /* workers of a run, in all */

/* Every shape of message and block that travels. m, n and p are their largest
 * values in a run. */
static const rig_kind kinds[] = {
    {.spec = "mds:k=3", .workers = 6, .m = 301, .n = 40, .p = 1},
    {.spec = "mds:k=3", .workers = 6, .m = 301, .n = 40, .p = 7},
    {.spec = "replication", .workers = 6, .m = 90, .n = 20, .p = 2},
    {.spec = "elastic:k=3", .workers = 6, .m = 301, .n = 40, .p = 3},
    {.spec = "elastic:k=2,groups=2", .workers = 8, .m = 301, .n = 40, .p = 1},
    {.spec = "elastic:k=3,cut=columns",
     .workers = 6,
     .m = 61,
     .n = 100,
     .p = 3},
    {.spec = "elastic:k=3",
     .workers = 6,
     .m = 100,
     .n = 61,
     .p = 3,
     .op = KOFN_LEFT},
    {.spec = "mds:k=3",
     .workers = 6,
     .m = 300,
     .n = 40,
     .p = 2,
     .dtype = KOFN_F32},
    {.spec = "mds:k=3",
     .workers = 6,
     .m = 200,
     .n = 90,
     .p = 1,
     .sparse = true},
    {.spec = "elastic:k=3",
     .workers = 6,
     .m = 100,
     .n = 61,
     .p = 3,
     .op = KOFN_LEFT,
     .sparse = true},
    {.spec = "pcr:r=4",
     .workers = 8,
     .m = 90,
     .n = 20,
     .p = 1,
     .op = KOFN_GRAM,
     .sparse = true},
    {.spec = "polynomial:m=2,p=2", .workers = 7, .m = 60, .n = 30, .p = 40},
    {.spec = "matdot:n=2", .workers = 6, .m = 60, .n = 30, .p = 40},
    {.spec = "gpd:m=2,n=2,p=1", .workers = 10, .m = 60, .n = 30, .p = 40},
    {.spec = "pcr:r=4",
     .workers = 8,
     .m = 90,
     .n = 20,
     .p = 1,
     .op = KOFN_GRAM},
    {.spec = "gc:d=3", .workers = 7, .m = 90, .n = 20, .p = 1, .op = KOFN_SUM},
    {.spec = "cgc:d=3", .workers = 6, .m = 90, .n = 20, .p = 1, .op = KOFN_SUM},
};
#define KINDS (sizeof kinds / sizeof *kinds)

/* Factor by which things may take longer than on an idle machine. */
#define SLACK (SLOWED > 1 ? 4 : 1)
#define SILENCE (400 * MILLI * SLACK)
#define PATIENCE (2 * KOFN_SECOND * SLACK)
/* The patience, after the failure timeout, and then time for a loaded machine.
 */
#define DEADLINE (PATIENCE + 2 * SILENCE + 20 * KOFN_SECOND)

static char folder[] = "/tmp/kofn-campaign-XXXXXX";

/* ---- memory -------------------------------------------------------------- */

static atomic_size_t held; /* bytes held by the library */

static inline void *counting_alloc(void *ud, void *p, size_t want)
{
    (void)ud;
    if (p)
        atomic_fetch_sub(&held, malloc_usable_size(p));
    free(p);
    p = want ? aligned_alloc(64, (want + 63) / 64 * 64) : NULL;
    if (p)
        atomic_fetch_add(&held, malloc_usable_size(p));
    return p;
}

/* ---- a run --------------------------------------------------------------- */

typedef struct worker_process {
    pid_t pid;
    bool dead;
    kofn_time stopped; /* until when it is stopped; 0: it runs */
} worker_process;

typedef struct run {
    uint64_t seed;
    kf_rng r;
    rig x;
    pool_worker life;
    worker_process process[MOST];
    size_t processes, events, needed;
    char address[108];
    bool quiet;     /* no further faults */
    kofn_time deaf; /* the port's failure timeout, if only the port has one; 0:
                       both do */
    kofn_options opt;
    kofn_fault_event happen[4];
    kofn_time until;             /* no other fault before */
    bool (*more)(struct run *r); /* further faults, or NULL ... */
    void (*tend)(bool all); /* ... and the function that ends them in time */
    pid_t other_net;        /* network of every other worker; 0: none */
    kofn_time longest;      /* longest round */
    size_t left;            /* faults that may still happen in this round */
} run;

static inline int start(void *ud)
{
    run *r = ud;

    pool_worker life = r->life;

    assert_true(r->processes < MOST);
    if (r->other_net) { /* the coordinator has another address in each network
                         */
        long house = r->processes % 2;

        life.net = house ? r->other_net : life.net;
        snprintf(life.address, sizeof life.address, "tcp://10.77.%ld.1:%s",
                 house, strrchr(r->life.address, ':') + 1);
    }
    r->process[r->processes++] = (worker_process){.pid = pool_start(&life)};
    return 0;
}

static inline void end_one(run *r, size_t i)
{
    r->process[i].dead = true;
    pool_signal(r->process[i].pid, SIGKILL);
}

static inline int end_by_number(void *ud, uint64_t process)
{
    run *r = ud;

    for (size_t i = 0; i < r->processes; i++)
        if ((uint64_t)r->process[i].pid == process && !r->process[i].dead)
            end_one(r, i);
    return 0;
}

static inline size_t able(const run *r)
{
    size_t n = 0;

    for (size_t i = 0; i < r->processes; i++)
        n += !r->process[i].dead && !r->process[i].stopped;
    return n;
}

/* Returns one of the able workers, or NULL if there is none. */
static inline worker_process *anyone(run *r)
{
    size_t n = able(r), pick;

    if (n == 0)
        return NULL;
    pick = (size_t)kf_rng_below(&r->r, n);
    for (size_t i = 0; i < r->processes; i++)
        if (!r->process[i].dead && !r->process[i].stopped && pick-- == 0)
            return &r->process[i];
    return NULL;
}

static inline void go_on(run *r, bool all)
{
    kofn_time now = kf_clock();

    for (size_t i = 0; i < r->processes; i++)
        if (!r->process[i].dead && r->process[i].stopped &&
            (all || now >= r->process[i].stopped)) {
            r->process[i].stopped = 0;
            pool_signal(r->process[i].pid, SIGCONT);
        }
}

/* Mostly enough workers are left. Now and then too few are, and the round
 * pauses until one joins, or fails. The number of faults in a round is
 * limited. If workers died faster than they can come, no round would end. */
static inline void happen(run *r)
{
    worker_process *h = anyone(r);
    bool spare = able(r) > r->needed || kf_rng_below(&r->r, 30) == 0;

    if (kf_clock() < r->until || r->left == 0)
        return;
    r->left--;
    r->until = kf_clock() + (kofn_time)kf_rng_below(&r->r, 8) * MILLI;
    switch (kf_rng_below(&r->r, r->more ? 4 : 3)) {
    case 0:
        if (!spare || !h)
            return;
        end_one(r, (size_t)(h - r->process));
        break;
    case 1:
        if (!spare || !h)
            return;
        h->stopped = kf_clock() + 8 * MILLI *
                                      (kofn_time)(kf_rng_below(&r->r, 9) *
                                                  kf_rng_below(&r->r, 9));
        pool_signal(h->pid, SIGSTOP);
        break;
    case 2:
        if (able(r) >= r->needed + 6)
            return;
        start(r);
        break;
    default:
        if (!r->more(r))
            return;
    }
    r->events++;
}

static inline void dimensions(rig_kind *k, kf_rng *r)
{
    k->m = k->m / 2 + (size_t)kf_rng_below(r, k->m / 2);
    if (k->op != KOFN_SUM && !(k->op & KOFN_GRAM))
        k->n = k->n / 2 + (size_t)kf_rng_below(r, k->n / 2);
}

/* Looks for faulty answers if the code has some to spare. */
static inline void lies(run *r)
{
    const kofn_layout *L = &r->x.plan->layout;
    size_t spare = r->x.plan->workers / L->groups - L->enough;

    if (L->adjoint || L->whole || spare < 2 || kf_rng_below(&r->r, 2))
        return;
    r->opt.errors = (kofn_errors)(1 + kf_rng_below(&r->r, 3));
    if (kf_rng_below(&r->r, 2))
        r->life.faults.corrupt = 0.03;
    else
        for (size_t i = 0; i < 2; i++)
            r->happen[r->opt.event_count++] = (kofn_fault_event){
                .round = 1 + (unsigned)i,
                .fraction = 0.5,
                .kind = i ? KOFN_FAULT_EVENT_NORMAL : KOFN_FAULT_EVENT_CORRUPT,
                .worker = (uint32_t)kf_rng_below(&r->r, 2)};
    r->needed += 2;
}

static inline void begin(run *r, uint64_t seed)
{
    rig_kind k;

    *r = (run){.seed = seed};
    r->r = kf_rng_stream(seed, KF_FOR_DATA, 5, 5);
    k = kinds[seed % KINDS];
    dimensions(&k, &r->r);
    rig_inputs(&r->x, &k);
    r->life = (pool_worker){.kind = k,
                            .faults = {.seed = seed, .straggle = 0.7},
                            .patience = 3 * KOFN_SECOND,
                            .silence = SILENCE,
                            .staged = true};
    r->life.faults.delay = 0.002 * (double)(1 + kf_rng_below(&r->r, 10));
    r->life.kind.spec = NULL;
    r->opt = (kofn_options)KOFN_OPTIONS_INIT;
    r->opt.below = KOFN_BELOW_PAUSE;
    r->opt.patience = PATIENCE;
    r->opt.in_flight = (kofn_in_flight)kf_rng_below(&r->r, 3);
    r->opt.late = kf_rng_below(&r->r, 3) ? 3 : 0;
    r->opt.pieces = 1 + (unsigned)kf_rng_below(&r->r, 5);
    r->opt.events = r->happen;
    r->needed = r->x.plan->layout.threshold * r->x.plan->layout.groups;
    lies(r);
}

static inline void open_run(run *r, const char *address, size_t workers)
{
    kofn_net_options z = {.size = sizeof z,
                          .silence = r->deaf ? 60 * KOFN_SECOND : SILENCE,
                          .body_max = (size_t)8 << 20,
                          .peer_bytes = (size_t)32 << 20,
                          .insecure = true};
    kofn_away_options o = KOFN_AWAY_OPTIONS_INIT;
    kofn_transport *t;
    kofn_port *port;

    o.workers = workers;
    o.alone = true;
    o.start = start;
    o.kill = end_by_number;
    o.ud = r;
    o.silence = r->deaf;
    assert_ok(kofn_net_listen(&t, address, &z));
    snprintf(r->life.address, sizeof r->life.address, "%s",
             kofn_net_endpoint(t));
    assert_ok(kofn_port_away(&port, t, &o));
    for (size_t i = 0; i < workers; i++)
        start(r);
    assert_ok(kofn_open(&r->x.job, r->x.plan, port, &r->opt));
    assert_ok(rig_place(&r->x));
}

/* Compares with the plain product, within rounding and the code's prediction.
 * See laws_test.c. */
static inline void check(const run *r, const kofn_report *rep)
{
    double room = r->x.y.dtype == KOFN_F64 ? 1e-12 : 1e-5;

    room = fmax(room, 4 * rep->predicted);
    if (!(rig_error(&r->x) <= room))
        fail_msg("run %d (%s): error %g, predicted %g, floor %g", (int)r->seed,
                 kinds[r->seed % KINDS].spec, rig_error(&r->x), rep->predicted,
                 rep->floor);
}

/* Plays one round during faults. */
static inline kofn_status play(run *r, kofn_report *rep)
{
    kofn_time began = kf_clock(), moved = began;
    kofn_progress seen = KOFN_PROGRESS_INIT;
    kofn_status st;
    size_t most = 0;

    r->left = (size_t)kf_rng_below(&r->r, 16);
    rig_spoil(&r->x);
    assert_ok(kofn_put(r->x.job, &r->x.x, &r->x.y, NULL));
    while ((st = kofn_take(r->x.job, 0, MILLI, rep)) == KOFN_AGAIN) {
        kofn_job_progress(r->x.job, &seen);
        go_on(r, false);
        if (r->tend)
            r->tend(false);
        if (!r->quiet && seen.round) /* all were there once */
            happen(r);
        if (seen.live > most) { /* many workers take long to come */
            most = seen.live;
            moved = kf_clock();
        }
        if (kf_clock() - moved > DEADLINE)
            fail_msg("run %d (%s): a round hangs, %zu of %zu workers live",
                     (int)r->seed, kinds[r->seed % KINDS].spec, seen.live,
                     able(r));
    }
    if (kf_clock() - began > r->longest)
        r->longest = kf_clock() - began;
    return st;
}

/* How the rounds of all runs ended. */
typedef struct tally {
    size_t rounds, right, few, corrupt, events;
    kofn_time longest;
} tally;

static inline void rounds(run *r, size_t n, tally *t)
{
    for (size_t i = 0; i < n; i++) {
        kofn_report rep = KOFN_REPORT_INIT;
        kofn_status st;

        rig_next(&r->x, 11 + i);
        st = play(r, &rep);
        t->rounds++;
        t->right += st == KOFN_OK;
        t->few += st == KOFN_TOOFEW || st == KOFN_LATE;
        t->corrupt += st == KOFN_CORRUPT;
        if (st == KOFN_OK)
            check(r, &rep);
        else if (st != KOFN_TOOFEW && st != KOFN_LATE &&
                 (st != KOFN_CORRUPT || r->opt.errors == KOFN_ERRORS_NONE))
            fail_msg("run %d (%s): %s (%s)", (int)r->seed,
                     kinds[r->seed % KINDS].spec, kofn_strerror(st),
                     kofn_errmsg());
        if (st == KOFN_LATE)
            break;
    }
    t->events += r->events;
    t->longest = r->longest > t->longest ? r->longest : t->longest;
}

static inline void finish(run *r)
{
    go_on(r, true);
    rig_down(&r->x);
}

static inline void tell(const tally *t)
{
    print_message("EVENTS %zu in %zu rounds: %zu right, %zu with too few, %zu "
                  "too corrupt; the longest took %.2f s\n",
                  t->events, t->rounds, t->right, t->few, t->corrupt,
                  (double)t->longest * 1e-9);
    assert_true(t->right >= t->rounds * 3 / 4);
}

/* ---- main ---------------------------------------------------------------- */

/* Starts the campaign. `only` selects tests by name, with * and ?. NULL
 * selects all tests. */
static inline bool campaign_begin(const char *only)
{

    if (only)
        cmocka_set_test_filter(only);
    pool_open();
    kofn_set_alloc(counting_alloc, NULL);
    rig_begin();
    return mkdtemp(folder) != NULL;
}

#endif
