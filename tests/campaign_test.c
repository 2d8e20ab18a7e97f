/* campaign_test.c -- fleets of real processes under everything that goes wrong
 * on real machines: killed, stopped, joined, lying and cut off at random.
 *
 * A run takes a random code and operation through several rounds.  Every round
 * ends in time, with the answer of plain BLAS or a status that says that too
 * few are left; nothing stays behind, neither processes nor memory.
 *
 * There are 200 runs in a plain build.  The long form, with hostile workers and
 * nodes besides: make campaign EVENTS=1000000
 */
#include "yard.h"

#include "code/code.h"

#include <malloc.h>
#include <stdatomic.h>
#include <sys/resource.h>

#define MILLI (KOFN_SECOND / 1000)
#define MOST 400 /* workers of a run, ever */

/* Every shape of message and block that travels.  m, n and p are the most
 * that they are in a run. */
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

/* How much longer things may take than on an idle machine. */
#define SLACK (SLOWED > 1 ? 4 : 1)
#define SILENCE (400 * MILLI * SLACK)
#define PATIENCE (2 * KOFN_SECOND * SLACK)
/* Patience, after a silence, and then whatever a loaded machine takes. */
#define DEADLINE (PATIENCE + 2 * SILENCE + 20 * KOFN_SECOND)

static char folder[] = "/tmp/kofn-campaign-XXXXXX";

/* ---- memory -------------------------------------------------------------- */

static atomic_size_t held; /* bytes, by the library */

static void *weigh(void *ud, void *p, size_t want)
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

typedef struct hand {
    pid_t pid;
    bool dead;
    kofn_time stopped; /* until when; 0: it runs */
} hand;

typedef struct run {
    uint64_t seed;
    kf_rng r;
    rig x;
    yard_life life;
    hand hand[MOST];
    size_t hands, events, needed;
    char address[108];
    bool quiet;     /* nothing more happens */
    kofn_time deaf; /* only the port notices silence, of so long; 0: both do */
    kofn_options opt;
    kofn_happening happen[4];
    kofn_time until;             /* nothing else happens before */
    bool (*more)(struct run *r); /* further faults, or NULL ... */
    void (*tend)(bool all);      /* ... and what ends them in time */
    pid_t other_net;             /* where every other worker lives; 0: none */
    kofn_time longest;           /* round */
    size_t left;                 /* of what may happen in this round */
} run;

static int start(void *ud)
{
    run *r = ud;

    yard_life life = r->life;

    assert_true(r->hands < MOST);
    if (r->other_net) { /* the coordinator is at another address in each */
        long house = r->hands % 2;

        life.net = house ? r->other_net : life.net;
        snprintf(life.address, sizeof life.address, "tcp://10.77.%ld.1:%s",
                 house, strrchr(r->life.address, ':') + 1);
    }
    r->hand[r->hands++] = (hand){.pid = yard_start(&life)};
    return 0;
}

static void end_one(run *r, size_t i)
{
    r->hand[i].dead = true;
    yard_signal(r->hand[i].pid, SIGKILL);
}

static int end_by_number(void *ud, uint64_t process)
{
    run *r = ud;

    for (size_t i = 0; i < r->hands; i++)
        if ((uint64_t)r->hand[i].pid == process && !r->hand[i].dead)
            end_one(r, i);
    return 0;
}

static size_t able(const run *r)
{
    size_t n = 0;

    for (size_t i = 0; i < r->hands; i++)
        n += !r->hand[i].dead && !r->hand[i].stopped;
    return n;
}

/* One of those who are able, or nobody. */
static hand *anyone(run *r)
{
    size_t n = able(r), pick;

    if (n == 0)
        return NULL;
    pick = (size_t)kf_rng_below(&r->r, n);
    for (size_t i = 0; i < r->hands; i++)
        if (!r->hand[i].dead && !r->hand[i].stopped && pick-- == 0)
            return &r->hand[i];
    return NULL;
}

static void go_on(run *r, bool all)
{
    kofn_time now = kf_clock();

    for (size_t i = 0; i < r->hands; i++)
        if (!r->hand[i].dead && r->hand[i].stopped &&
            (all || now >= r->hand[i].stopped)) {
            r->hand[i].stopped = 0;
            yard_signal(r->hand[i].pid, SIGCONT);
        }
}

/* Most of the time enough are left; now and then they are not, and the round
 * pauses until somebody joins, or in vain.  What happens in a round is limited:
 * where workers die faster than they can come, nothing is ever finished. */
static void happen(run *r)
{
    hand *h = anyone(r);
    bool spare = able(r) > r->needed || kf_rng_below(&r->r, 30) == 0;

    if (kf_clock() < r->until || r->left == 0)
        return;
    r->left--;
    r->until = kf_clock() + (kofn_time)kf_rng_below(&r->r, 8) * MILLI;
    switch (kf_rng_below(&r->r, r->more ? 4 : 3)) {
    case 0:
        if (!spare || !h)
            return;
        end_one(r, (size_t)(h - r->hand));
        break;
    case 1:
        if (!spare || !h)
            return;
        h->stopped = kf_clock() + 8 * MILLI *
                                      (kofn_time)(kf_rng_below(&r->r, 9) *
                                                  kf_rng_below(&r->r, 9));
        yard_signal(h->pid, SIGSTOP);
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

static void dimensions(rig_kind *k, kf_rng *r)
{
    k->m = k->m / 2 + (size_t)kf_rng_below(r, k->m / 2);
    if (k->op != KOFN_SUM && !(k->op & KOFN_GRAM))
        k->n = k->n / 2 + (size_t)kf_rng_below(r, k->n / 2);
}

/* Answers are looked at where there are some to spare. */
static void lies(run *r)
{
    const kofn_layout *L = &r->x.plan->layout;
    size_t spare = r->x.plan->workers / L->groups - L->enough;

    if (L->adjoint || L->whole || spare < 2 || kf_rng_below(&r->r, 2))
        return;
    r->opt.errors = (kofn_errors)(1 + kf_rng_below(&r->r, 3));
    if (kf_rng_below(&r->r, 2))
        r->life.weather.corrupt = 0.03;
    else
        for (size_t i = 0; i < 2; i++)
            r->happen[r->opt.event_count++] = (kofn_happening){
                .round = 1 + (unsigned)i,
                .fraction = 0.5,
                .kind = i ? KOFN_EVENT_NORMAL : KOFN_EVENT_CORRUPT,
                .worker = (uint32_t)kf_rng_below(&r->r, 2)};
    r->needed += 2;
}

static void begin(run *r, uint64_t seed)
{
    rig_kind k;

    *r = (run){.seed = seed};
    r->r = kf_rng_stream(seed, KF_FOR_DATA, 5, 5);
    k = kinds[seed % KINDS];
    dimensions(&k, &r->r);
    rig_inputs(&r->x, &k);
    r->life = (yard_life){.kind = k,
                          .weather = {.seed = seed, .straggle = 0.7},
                          .patience = 3 * KOFN_SECOND,
                          .silence = SILENCE,
                          .staged = true};
    r->life.weather.delay = 0.002 * (double)(1 + kf_rng_below(&r->r, 10));
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

static void open_run(run *r, const char *address, size_t workers)
{
    kofn_zmq_options z = {.silence = r->deaf ? 60 * KOFN_SECOND : SILENCE,
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
    assert_ok(kofn_zmq_listen(&t, address, &z));
    snprintf(r->life.address, sizeof r->life.address, "%s",
             kofn_zmq_endpoint(t));
    assert_ok(kofn_port_away(&port, t, &o));
    for (size_t i = 0; i < workers; i++)
        start(r);
    assert_ok(kofn_open(&r->x.job, r->x.plan, port, &r->opt));
    assert_ok(rig_place(&r->x));
}

/* The plain product, as far as rounding and the code allow; see laws_test.c. */
static void check(const run *r, const kofn_report *rep)
{
    double room = r->x.y.dtype == KOFN_F64 ? 1e-12 : 1e-5;

    room = fmax(room, 4 * rep->predicted);
    if (!(rig_error(&r->x) <= room))
        fail_msg("run %d (%s): error %g, predicted %g, floor %g", (int)r->seed,
                 kinds[r->seed % KINDS].spec, rig_error(&r->x), rep->predicted,
                 rep->floor);
}

/* One round, while things happen. */
static kofn_status play(run *r, kofn_report *rep)
{
    kofn_time began = kf_clock();
    kofn_progress seen;
    kofn_status st;

    r->left = (size_t)kf_rng_below(&r->r, 16);
    rig_spoil(&r->x);
    assert_ok(kofn_begin(r->x.job, &r->x.x, &r->x.y));
    while ((st = kofn_pump(r->x.job, MILLI, rep)) == KOFN_AGAIN) {
        kofn_job_progress(r->x.job, &seen);
        go_on(r, false);
        if (r->tend)
            r->tend(false);
        if (!r->quiet && seen.round) /* all were there once */
            happen(r);
        if (kf_clock() - began > DEADLINE)
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

static void rounds(run *r, size_t n, tally *t)
{
    for (size_t i = 0; i < n; i++) {
        kofn_report rep;
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

static void finish(run *r)
{
    go_on(r, true);
    rig_down(&r->x);
}

static void tell(const tally *t)
{
    print_message("EVENTS %zu in %zu rounds: %zu right, %zu with too few, %zu "
                  "too corrupt; the longest took %.2f s\n",
                  t->events, t->rounds, t->right, t->few, t->corrupt,
                  (double)t->longest * 1e-9);
    assert_true(t->right >= t->rounds * 3 / 4);
}

static void anything_happens(void **state)
{
    const char *one = getenv("KOFN_TEST_SEED"); /* the first of them */
    uint64_t first = one ? strtoull(one, NULL, 10) : 0;
    tally t = {0};
    run *r = calloc(1, sizeof *r);

    (void)state;
    for (uint64_t seed = first; seed < first + often(200); seed++) {
        size_t before = atomic_load(&held);
        char address[100];

        snprintf(address, sizeof address, "ipc://%s/%d", folder, (int)seed);
        begin(r, seed);
        open_run(r, address, r->x.plan->workers);
        rounds(r, 6, &t);
        finish(r);
        unlink(address + strlen("ipc://"));
        if (atomic_load(&held) != before)
            fail_msg("run %d (%s) keeps %zu bytes", (int)seed,
                     kinds[seed % KINDS].spec, atomic_load(&held) - before);
    }
    free(r);
    yard_end(20 * KOFN_SECOND * SLACK); /* those who have no coordinator any
                                           more lose patience */
    tell(&t);
}

/* ---- memory, and many ---------------------------------------------------- */

static size_t resident(void)
{
    size_t pages = 0, skip_first;
    FILE *f = fopen("/proc/self/statm", "r");

    assert_non_null(f);
    assert_int_equal(fscanf(f, "%zu %zu", &skip_first, &pages), 2);
    fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Rounds whose inputs and answers are large against what may remain of a
 * worker that is gone: its number. */
static void memory_stays(void **state)
{
    const rig_kind k = {
        .spec = "mds:k=2", .workers = 4, .m = 4000, .n = 16, .p = 16};
    const size_t lives = often(30);
    size_t first = SIZE_MAX, last = SIZE_MAX, all = 0;
    run *r = calloc(1, sizeof *r);

    (void)state;
    r->r = kf_rng_stream(1, KF_FOR_DATA, 6, 6);
    rig_inputs(&r->x, &k);
    r->opt = (kofn_options)KOFN_OPTIONS_INIT;
    r->opt.below = KOFN_BELOW_PAUSE;
    r->opt.patience = 10 * KOFN_SECOND * SLACK;
    r->quiet = true;
    r->life.kind = k;
    r->life.kind.spec = NULL;
    r->life.patience = 3 * KOFN_SECOND;
    snprintf(r->address, sizeof r->address, "ipc://%s/memory", folder);
    open_run(r, r->address, 4);
    for (size_t life = 0; life < lives; life++) { /* one dies, one comes */
        for (size_t i = 0; i < 20; i++) {
            rig_spoil(&r->x);
            assert_ok(play(r, NULL));
        }
        assert_at_most(rig_error(&r->x), 1e-12);
        /* answers that came late are held for a while, so the least counts */
        if (life < lives / 3)
            first = kf_min(first, atomic_load(&held));
        if (life >= lives - lives / 3)
            last = kf_min(last, atomic_load(&held));
        if (life == lives / 3)
            all = resident();
        end_one(r, life);
        start(r);
    }
    /* a block or an answer kept of each would be five times that */
    assert_at_most((double)last, (double)first + (1 << 20));
    if (SLOWED == 1) /* sanitizers keep what is freed for a while */
        assert_at_most((double)resident(), (double)all + (8 << 20));
    finish(r);
    unlink(r->address + strlen("ipc://"));
    free(r);
    yard_end(20 * KOFN_SECOND * SLACK);
}

/* Under sanitizers 64 workers, each of which takes five times the memory. */
static void two_hundred_and_fifty_six(void **state)
{
    const size_t workers = 256 / SLOWED, change = 20 / SLOWED;
    const rig_kind k = {
        .spec = "mds:k=50", .workers = workers, .m = 640, .n = 8, .p = 1};
    run *r = calloc(1, sizeof *r);

    (void)state;
    r->r = kf_rng_stream(2, KF_FOR_DATA, 6, 6);
    rig_inputs(&r->x, &k);
    r->opt = (kofn_options)KOFN_OPTIONS_INIT;
    r->opt.below = KOFN_BELOW_PAUSE;
    r->opt.patience = 30 * KOFN_SECOND;
    r->quiet = true;
    r->life.kind = k;
    r->life.kind.spec = NULL;
    r->life.patience = 5 * KOFN_SECOND;
    r->life.silence =
        10 * KOFN_SECOND; /* so many do not all have a turn soon */
    snprintf(r->address, sizeof r->address, "ipc://%s/many", folder);
    open_run(r, r->address, workers);
    for (size_t i = 0; i < 3; i++) {
        rig_next(&r->x, 11 + i);
        assert_ok(play(r, NULL));
        assert_at_most(rig_error(&r->x), 1e-12);
        for (size_t e = 0; i < 2 && e < change / 2; e++) {
            end_one(r, (i * 97 + e * 7) % workers);
            start(r);
        }
    }
    finish(r);
    unlink(r->address + strlen("ipc://"));
    free(r);
    yard_end(20 * KOFN_SECOND * SLACK);
}

/* ---- back-pressure ------------------------------------------------------- */

/* A stopped worker whose transport notices nothing: its pipe is full of large
 * inputs, and what it is to get waits with the coordinator, but not for ever,
 * nor the inputs of rounds that are over. */
static void full_pipes(void **state)
{
    const rig_kind k = {
        .spec = "mds:k=2", .workers = 3, .m = 2, .n = 100000, .p = 5};
    kofn_time began;
    kofn_report rep;
    run *r = calloc(1, sizeof *r);
    size_t before, most = 0, played = 0;

    (void)state;
    r->r = kf_rng_stream(3, KF_FOR_DATA, 6, 6);
    rig_inputs(&r->x, &k);
    r->opt = (kofn_options)KOFN_OPTIONS_INIT;
    r->quiet = true;
    r->life.kind = k;
    r->life.kind.spec = NULL;
    r->life.patience = 3 * KOFN_SECOND;
    r->life.silence = 60 * KOFN_SECOND;
    r->deaf = 2 * KOFN_SECOND;
    snprintf(r->address, sizeof r->address, "ipc://%s/full", folder);
    open_run(r, r->address, 3);
    assert_ok(play(r, &rep));
    before = atomic_load(&held);
    yard_signal(r->hand[0].pid, SIGSTOP);
    r->hand[0].stopped = KOFN_NEVER;
    began = kf_clock();
    for (rep.left = 0; rep.left == 0; played++) {
        assert_ok(play(r, NULL));
        most = kf_max(most, atomic_load(&held));
        kofn_job_totals(r->x.job, &rep);
        if (kf_clock() - began > 20 * KOFN_SECOND * SLACK)
            fail_msg("a full pipe is not noticed in %zu rounds", played);
    }
    assert_at_most(rig_error(&r->x), 1e-12);
    print_message(
        "noticed after %.1f s and %zu rounds; %.1f inputs were held\n",
        (double)(kf_clock() - began) * 1e-9, played,
        (double)(most - before) / 4e6);
    /* what the pipe takes, and little more, however many rounds there were */
    assert_at_most((double)(most - before), 20 * 4e6);
    finish(r);
    unlink(r->address + strlen("ipc://"));
    free(r);
    yard_end(20 * KOFN_SECOND * SLACK);
}

/* ---- networks of their own ----------------------------------------------- */

/* The coordinator has a network of its own, too, so that nothing of this meets
 * anybody else, and all of it is gone with the last process. */
typedef struct nets {
    int home;
    char home_name[64];
    pid_t house[2];
    kofn_time cut[2]; /* until when; 0: it is whole */
} nets;

static nets net;

static bool run_ip(const char *form, long a, long b)
{
    char command[200], words[160];

    snprintf(words, sizeof words, form, a, b);
    snprintf(command, sizeof command, "ip %s >/dev/null 2>&1", words);
    return system(command) == 0;
}

static bool net_name(const char *path, char name[64])
{
    ssize_t n = readlink(path, name, 63);

    name[n < 0 ? 0 : n] = 0;
    return n > 0;
}

/* A cable to each house, 10.77.HOUSE.1 here and 10.77.HOUSE.2 there. */
static bool cable(long i)
{
    pid_t house = yard_house();
    char name[64], path[64], command[200];

    net.house[i] = house;
    snprintf(path, sizeof path, "/proc/%ld/ns/net", (long)house);
    for (int k = 0; k < 100; k++) { /* until it has moved in */
        if (net_name(path, name) && strcmp(name, net.home_name) != 0)
            break;
        yard_nap(10 * MILLI);
    }
    snprintf(command, sizeof command,
             "nsenter -t %ld -n sh -c 'ip addr add 10.77.%ld.2/24 dev eth0 && "
             "ip link set eth0 up' >/dev/null 2>&1",
             (long)house, i);
    return run_ip("link add cable%ld type veth peer name eth0 netns %ld", i,
                  house) &&
           run_ip("addr add 10.77.%ld.1/24 dev cable%ld", i, i) &&
           run_ip("link set cable%ld up", i, 0) && system(command) == 0;
}

static bool nets_up(void)
{
    net.home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    return net.home >= 0 && net_name("/proc/self/ns/net", net.home_name) &&
           unshare(CLONE_NEWNET) == 0 && run_ip("link set lo up", 0, 0) &&
           cable(0) && cable(1);
}

static void nets_down(void)
{
    for (int i = 0; i < 2; i++)
        if (net.house[i])
            yard_signal(net.house[i], SIGKILL);
    if (net.home >= 0)
        assert_int_equal(setns(net.home, CLONE_NEWNET), 0);
    close(net.home);
}

/* Cut a cable, for longer or shorter than silence. */
static bool cut_cable(run *r)
{
    long i = (long)kf_rng_below(&r->r, 2);

    if (net.cut[i] || !run_ip("link set cable%ld down", i, 0))
        return false;
    net.cut[i] =
        kf_clock() + 2 * SILENCE * (kofn_time)kf_rng_below(&r->r, 10) / 10;
    return true;
}

static void mend_cables(bool all)
{
    for (long i = 0; i < 2; i++)
        if (net.cut[i] && (all || kf_clock() >= net.cut[i])) {
            net.cut[i] = 0;
            assert_true(run_ip("link set cable%ld up", i, 0));
        }
}

static void cables_are_cut(void **state)
{
    tally t = {0};
    run *r = calloc(1, sizeof *r);

    (void)state;
    if (!nets_up()) {
        nets_down();
        free(r);
        print_message("no networks can be made here: that takes root and ip\n");
        skip();
    }
    for (uint64_t seed = 1000; seed < 1000 + often(8); seed++) {
        begin(r, seed);
        r->more = cut_cable;
        r->tend = mend_cables;
        r->life.net = net.house[0];
        r->other_net = net.house[1];
        open_run(r, "tcp://0.0.0.0:*", r->x.plan->workers);
        rounds(r, 6, &t);
        mend_cables(true);
        finish(r);
    }
    nets_down();
    free(r);
    yard_end(20 * KOFN_SECOND * SLACK);
    tell(&t);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(anything_happens),
        cmocka_unit_test(cables_are_cut),
        cmocka_unit_test(memory_stays),
        cmocka_unit_test(full_pipes),
        cmocka_unit_test(two_hundred_and_fifty_six),
    };
    const kofn_alloc weighed = {weigh, NULL};
    int failed;

    if (argc > 1) /* only tests of that name, with * and ? */
        cmocka_set_test_filter(argv[1]);
    yard_open();
    kofn_set_alloc(&weighed);
    rig_begin();
    alarm((unsigned)(280 * fmax(1, test_scale())));
    if (!mkdtemp(folder))
        return 1;
    failed = cmocka_run_group_tests_name("campaign", tests, NULL, NULL);
    rmdir(folder);
    return failed;
}
