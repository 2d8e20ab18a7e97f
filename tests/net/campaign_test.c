/* campaign_test.c -- real worker processes under random faults: killed,
 * stopped, joined, faulty and cut off.
 *
 * A run takes a random code and operation through several rounds. Every round
 * ends in time, with the result of plain BLAS or with a status that says that
 * too few workers are left. Neither processes nor memory remain.
 *
 * A plain build makes 200 runs. The long form, with hostile workers and nodes
 * in addition: make campaign EVENTS=1000000 */
#include "campaign_rig.h"

static void random_faults(void **state)
{
    const char *one = getenv("KOFN_TEST_SEED"); /* the first seed */
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
    pool_end(20 * KOFN_SECOND * SLACK); /* workers without a coordinator give
                                           the search up after their patience */
    tell(&t);
}

/* ---- memory, and many workers -------------------------------------------- */

static size_t resident(void)
{
    size_t pages = 0, skip_first;
    FILE *f = fopen("/proc/self/statm", "r");

    assert_non_null(f);
    assert_int_equal(fscanf(f, "%zu %zu", &skip_first, &pages), 2);
    fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* The inputs and answers of a round are large compared with what may remain of
 * a lost worker, which is its number. */
static void bounded_memory(void **state)
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
    for (size_t life = 0; life < lives;
         life++) { /* one worker dies, one joins */
        for (size_t i = 0; i < 20; i++) {
            rig_spoil(&r->x);
            assert_ok(play(r, NULL));
        }
        assert_at_most(rig_error(&r->x), 1e-12);
        /* Late answers are held for a while, so the minimum counts. */
        if (life < lives / 3)
            first = kf_min(first, atomic_load(&held));
        if (life >= lives - lives / 3)
            last = kf_min(last, atomic_load(&held));
        if (life == lives / 3)
            all = resident();
        end_one(r, life);
        start(r);
    }
    /* A block or an answer kept of each lost worker would be five times that.
     */
    assert_at_most((double)last, (double)first + (1 << 20));
    if (SLOWED == 1) /* sanitizers keep freed memory for a while */
        assert_at_most((double)resident(), (double)all + (8 << 20));
    finish(r);
    unlink(r->address + strlen("ipc://"));
    free(r);
    pool_end(20 * KOFN_SECOND * SLACK);
}

/* Under sanitizers there are 64 workers, because each takes five times the
 * memory. */
static void many_workers(void **state)
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
    /* with this number of processes, some wait long for a processor */
    r->life.patience = r->life.silence = 60 * KOFN_SECOND;
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
    for (size_t i = 0; i < r->processes;
         i++) /* workers that came too late to be dismissed */
        if (!r->process[i].dead)
            end_one(r, i);
    unlink(r->address + strlen("ipc://"));
    free(r);
    pool_end(20 * KOFN_SECOND * SLACK);
}

/* ---- back-pressure ------------------------------------------------------- */

/* The transport does not notice that the worker is stopped. The pipe is full
 * of large inputs, and further packets wait with the coordinator. They do not
 * wait for ever, and inputs of finished rounds do not wait at all. */
static void full_pipes(void **state)
{
    const rig_kind k = {
        .spec = "mds:k=2", .workers = 3, .m = 2, .n = 100000, .p = 5};
    kofn_time began;
    kofn_report rep = KOFN_REPORT_INIT;
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
    pool_signal(r->process[0].pid, SIGSTOP);
    r->process[0].stopped = KOFN_NEVER;
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
    /* the capacity of the pipe and little more, whatever the number of rounds
     */
    assert_at_most((double)(most - before), 20 * 4e6);
    finish(r);
    unlink(r->address + strlen("ipc://"));
    free(r);
    pool_end(20 * KOFN_SECOND * SLACK);
}

/* ---- workers that return ------------------------------------------------- */

static void open_three(run *r, const char *address)
{
    const rig_kind k = {
        .spec = "elastic:k=2", .workers = 3, .m = 300, .n = 40, .p = 2};

    r->r = kf_rng_stream(4, KF_FOR_DATA, 6, 6);
    rig_inputs(&r->x, &k);
    r->opt = (kofn_options)KOFN_OPTIONS_INIT;
    r->opt.below = KOFN_BELOW_PAUSE;
    r->opt.patience = 100 * KOFN_SECOND;
    r->quiet = true;
    r->life.kind = k;
    r->life.kind.spec = NULL;
    r->life.patience = 20 * KOFN_SECOND * SLACK;
    r->life.silence = SILENCE;
    open_run(r, address, k.workers);
}

static void stop(run *r, size_t i)
{
    pool_signal(r->process[i].pid, SIGSTOP);
    r->process[i].stopped = KOFN_NEVER;
}

static void play_right(run *r, size_t times)
{
    for (size_t i = 0; i < times; i++) {
        rig_next(&r->x, kf_rng_below(&r->r, 1000));
        assert_ok(play(r, NULL));
        assert_at_most(rig_error(&r->x), 1e-12);
    }
}

/* Plays rounds until exactly `workers` workers are live. */
static void play_until(run *r, size_t workers)
{
    kofn_time began = kf_clock();
    kofn_progress seen = KOFN_PROGRESS_INIT;

    do {
        play_right(r, 1);
        kofn_job_progress(r->x.job, &seen);
        if (kf_clock() - began > 100 * KOFN_SECOND)
            fail_msg("%zu workers, not %zu", seen.live, workers);
    } while (seen.live != workers);
}

/* Stops all workers and gives them a task, until all are lost. Then they
 * continue. */
static void silence_all(run *r)
{
    kofn_time began = kf_clock();
    kofn_progress seen = KOFN_PROGRESS_INIT;
    kofn_status st;

    for (size_t i = 0; i < r->processes; i++)
        if (!r->process[i].dead)
            stop(r, i);
    rig_next(&r->x, 7);
    rig_spoil(&r->x);
    assert_ok(kofn_put(r->x.job, &r->x.x, &r->x.y, NULL));
    do {
        assert_int_equal(kofn_take(r->x.job, 0, MILLI, NULL), KOFN_AGAIN);
        kofn_job_progress(r->x.job, &seen);
        if (kf_clock() - began > 100 * KOFN_SECOND)
            fail_msg("%zu workers are stopped and not lost", seen.live);
    } while (seen.live);
    go_on(r, true);
    while ((st = kofn_take(r->x.job, 0, MILLI, NULL)) == KOFN_AGAIN)
        ;
    assert_ok(st);
    assert_at_most(rig_error(&r->x), 1e-12);
}

/* The tasks that a worker had before it was lost are part of no answer. Later
 * one of three workers stays away until the others have completed rounds
 * without it. One of the others is then killed, so every answer needs the
 * returned worker.
 */
static void returning(void **state)
{
    run *r = calloc(1, sizeof *r);
    kofn_progress seen = KOFN_PROGRESS_INIT;

    (void)state;
    open_three(r, "tcp://127.0.0.1:*");
    play_until(r, 3);
    silence_all(r);
    play_until(r, 3);
    stop(r, 0);
    play_until(r, 2);
    end_one(r, 1);
    go_on(r, true);
    play_right(r, 5);
    kofn_job_progress(r->x.job, &seen);
    assert_true(seen.left >= 4 && seen.joined >= 3);
    finish(r);
    free(r);
    pool_end(60 * KOFN_SECOND * SLACK);
}

TEST_FILE(campaign_test)
{
    const struct CMUnitTest tests[] = {
        TEST(random_faults,
             "campaign: rounds are right or too few are left (random faults)"),
        TEST(bounded_memory,
             "campaign: memory stays the same while workers die and join"),
        TEST(full_pipes,
             "campaign: a stopped worker's full pipe holds few inputs"),
        TEST(returning,
             "campaign: answers that need workers that returned are right"),
        TEST(many_workers,
             "campaign: rounds of 256 workers are right, 20 are replaced"),
    };
    int failed;

    if (!campaign_begin(argc > 1 ? argv[1] : NULL))
        return 1;
    failed = cmocka_run_group_tests_name("campaign", tests, NULL, NULL);
    rmdir(folder);
    return failed;
}
