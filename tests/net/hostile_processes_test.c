/* hostile_processes_test.c -- real hostile processes next to honest ones,
 * which are killed, stopped and joined. The hostile ones send anything at any
 * time. Every round ends, and its answer is the plain product or an error. No
 * honest worker is named, and memory stays bounded.
 *
 * The long form is in make campaign EVENTS=1000000. */
#include "process_pool.h"

#include "ports/away.h"

#include "counting_alloc.h"

#define MILLI (KOFN_SECOND / 1000)
#define SLACK (SLOWED > 1 ? 4 : 1)

enum { HONEST = 8, HOSTILE = 2, ROUNDS = 60, MOST = 400 };

static char folder[] = "/tmp/kofn-hostile-XXXXXX";

/* ---- a run --------------------------------------------------------------- */

typedef struct run {
    uint64_t seed;
    kf_rng r;
    rig x;
    pool_worker life;
    const port *port;
    pid_t honest[MOST], stopped;
    size_t started;
    kofn_time go_on;
} run;

typedef struct tally {
    size_t rounds, right, errors, faults;
    kofn_time longest;
} tally;

static void open_run(run *r, uint64_t seed)
{
    static const rig_kind kind = {
        .spec = "mds:k=3", .workers = HONEST, .m = 301, .n = 40, .p = 1};
    kofn_net_options z = {.size = sizeof z,
                          .silence = 400 * MILLI * SLACK,
                          .insecure = true,
                          .body_max = (size_t)8 << 20,
                          .peer_bytes = (size_t)32 << 20};
    kofn_away_options o = KOFN_AWAY_OPTIONS_INIT;
    kofn_options opt = KOFN_OPTIONS_INIT;
    kofn_transport *t;
    kofn_port *base;

    *r = (run){.seed = seed};
    r->r = kf_rng_stream(seed, KF_FOR_DATA, 32, 0);
    r->life = (pool_worker){
        .kind = kind, .patience = 3 * KOFN_SECOND, .silence = z.silence};
    r->life.kind.spec = NULL;
    rig_inputs(&r->x, &kind);
    opt.errors = KOFN_ERRORS_ADVERSARIAL;
    opt.below = KOFN_BELOW_PAUSE;
    opt.patience = 20 * KOFN_SECOND * SLACK;
    opt.late = 3;
    o.workers = HONEST;
    o.alone = true;
    snprintf(r->life.address, sizeof r->life.address, "ipc://%s/%d", folder,
             (int)seed);
    assert_ok(kofn_net_listen(&t, r->life.address, &z));
    assert_ok(kofn_port_away(&base, t, &o));
    r->port = (const port *)base;
    assert_ok(kofn_open(&r->x.job, r->x.plan, base, &opt));
    assert_ok(rig_place(&r->x));
    for (size_t i = 0; i < HONEST + HOSTILE; i++) {
        pool_worker life = r->life;

        life.hostile = i < HONEST ? 0 : 1 + 2 * seed + i - HONEST;
        if (life.hostile)
            pool_start(&life);
        else
            r->honest[r->started++] = pool_start(&life);
    }
}

/* Kills one honest worker and starts another, or stops one for a while. */
static void happen(run *r, tally *t)
{
    size_t who = (size_t)kf_rng_below(&r->r, HONEST);

    if (r->stopped && kf_clock() >= r->go_on) {
        pool_signal(r->stopped, SIGCONT);
        r->stopped = 0;
    }
    if (kf_rng_below(&r->r, 40))
        return;
    if (kf_rng_below(&r->r, 2) && !r->stopped) {
        r->stopped = r->honest[who];
        r->go_on = kf_clock() + 8 * MILLI * (kofn_time)kf_rng_below(&r->r, 80);
        pool_signal(r->stopped, SIGSTOP);
    } else if (r->honest[who] != r->stopped && r->started < MOST) {
        pool_signal(r->honest[who], SIGKILL);
        r->honest[who] = pool_start(&r->life);
        r->started++;
    } else {
        return;
    }
    t->faults++;
}

static kofn_status play(run *r, tally *t)
{
    kofn_time began = kf_clock();
    kofn_status st;

    rig_spoil(&r->x);
    assert_ok(kofn_put(r->x.job, &r->x.x, &r->x.y, NULL));
    while ((st = kofn_take(r->x.job, 0, MILLI, NULL)) == KOFN_AGAIN) {
        happen(r, t);
        if (kf_clock() - began > 100 * KOFN_SECOND * SLACK)
            fail_msg("run %d: a round hangs", (int)r->seed);
    }
    if (kf_clock() - began > t->longest)
        t->longest = kf_clock() - began;
    return st;
}

/* Fails if an honest worker was located. Only honest workers report their
 * process. */
static void check_blame(const run *r)
{
    kofn_report rep = KOFN_REPORT_INIT;

    kofn_job_totals(r->x.job, &rep);
    for (uint32_t w = 0; w < rep.workers; w++)
        if (rep.located && rep.located[w] && r->port->worker[w]->process)
            fail_msg("run %d: worker %u was named and is honest", (int)r->seed,
                     w);
}

static void close_run(run *r)
{
    if (r->stopped)
        pool_signal(r->stopped, SIGCONT);
    kofn_close(r->x.job);
    r->x.job = NULL;
    rig_down(&r->x);
    unlink(r->life.address + strlen("ipc://"));
}

static void play_all(run *r, tally *t)
{
    for (uint64_t round = 0; round < ROUNDS; round++) {
        kofn_status st;

        rig_next(&r->x, 11 + round);
        st = play(r, t);
        t->rounds++;
        t->right += st == KOFN_OK;
        t->errors += st != KOFN_OK;
        if (st == KOFN_OK && !(rig_error(&r->x) <= 1e-9))
            fail_msg("run %d: round %d is off by %g", (int)r->seed, (int)round,
                     rig_error(&r->x));
        if (st != KOFN_OK && st != KOFN_CORRUPT && st != KOFN_TOOFEW &&
            st != KOFN_LATE)
            fail_msg("run %d: %s (%s)", (int)r->seed, kofn_strerror(st),
                     kofn_errmsg());
    }
}

static void hostile_packets(void **state)
{
    const char *one = getenv("KOFN_TEST_SEED");
    uint64_t first = one ? strtoull(one, NULL, 10) : 0;
    run *r = calloc(1, sizeof *r);
    tally t = {0};

    (void)state;
    for (uint64_t seed = first; seed < first + often(4); seed++) {
        size_t before = atomic_load(&held);

        open_run(r, seed);
        play_all(r, &t);
        check_blame(r);
        close_run(r);
        if (atomic_load(&held) != before)
            fail_msg("run %d keeps %zu bytes", (int)seed,
                     atomic_load(&held) - before);
    }
    free(r);
    pool_end(20 * KOFN_SECOND * SLACK);
    print_message("EVENTS %zu hostile packets and faults in %zu rounds: %zu "
                  "right, %zu errors; at most %zu KiB held, the longest round "
                  "took %.2f s\n",
                  atomic_load(pool_sent) + t.faults, t.rounds, t.right,
                  t.errors, atomic_load(&most_held) >> 10,
                  (double)t.longest * 1e-9);
    assert_true(t.right >= t.rounds * 3 / 4);
    assert_true(atomic_load(&most_held) < (size_t)128 << 20);
}

TEST_FILE(hostile_processes_test)
{
    const struct CMUnitTest tests[] = {
        TEST(hostile_packets,
             "campaign: rounds are right or fail next to hostile processes")};
    int failed;

    pool_open();
    kofn_set_alloc(counting_alloc, NULL);
    rig_begin();
    if (!mkdtemp(folder))
        return 1;
    failed =
        cmocka_run_group_tests_name("hostile_processes", tests, NULL, NULL);
    rmdir(folder);
    return failed;
}
