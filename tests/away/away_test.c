/* away_test.c -- jobs on workers that are reached by packets only. Results are
 * those of plain BLAS, whatever is lost, damaged or forged on the way. */
#include "fleet.h"
#include "sgd.h"
#include "trials.h"

#include "wire/wire.h"

static void open_away(rig *r, fleet *f, const rig_kind *k,
                      const loop_faults *faults, const kofn_away_options *o)
{
    rig_inputs(r, k);
    fleet_init(f, faults);
    f->serve.f = rig_part;
    f->serve.ctx = r;
    assert_ok(
        kofn_open(&r->job, r->plan, fleet_port(f, k->workers, o), k->opt));
    assert_ok(rig_place(r));
}

static void run_away(const trial *t, const loop_faults *faults)
{
    fleet f;
    rig r;

    open_away(&r, &f, &t->kind, faults, NULL);
    for (uint64_t round = 0; round < 3; round++) {
        rig_next(&r, 11 + round);
        assert_ok(rig_round(&r, NULL));
        if (!(rig_error(&r) <= t->most))
            fail_msg("%s, trial %d, round %d: error %g", t->kind.spec,
                     (int)(t - trials), (int)round, rig_error(&r));
    }
    kofn_close(r.job);
    r.job = NULL;
    for (size_t i = 0; i < f.members; i++) /* all are dismissed */
        pthread_join(f.member[i]->thread, NULL);
    for (size_t i = 0; i < f.members; i++) {
        assert_int_equal(f.member[i]->ended, KOFN_OK);
        free(f.member[i]);
    }
    pthread_mutex_destroy(&f.net.lock);
    rig_down(&r); /* workers read it until they end */
}

static void every_operation(void **state)
{
    (void)state;
    for (size_t i = 0; i < TRIALS; i++)
        run_away(&trials[i], NULL);
}

static void fetched_bodies(void **state)
{
    const loop_faults fetching = {.fetching = true};

    (void)state;
    for (size_t i = 0; i < TRIALS; i++)
        run_away(&trials[i], &fetching);
}

static void narrow_pipes(void **state)
{
    const loop_faults narrow = {.room = 1000};

    (void)state;
    for (size_t i = 0; i < TRIALS; i++)
        run_away(&trials[i], &narrow);
}

/* ---- faults -------------------------------------------------------------- */

/* A round ends with the right result, or with an error that says that too few
 * workers are left. */
static void faults_on_the_way(void **state)
{
    size_t failed = 0, rounds = 0, dropped = 0;

    (void)state;
    for (uint64_t seed = 0; seed < often(40); seed++) {
        const trial *t = &trials[seed % TRIALS];
        const loop_faults faults = {.twice = 0.05,
                                    .damage = 0.01,
                                    .truncate = 0.01,
                                    .cut = 0.005,
                                    .seed = seed};
        kofn_options o = KOFN_OPTIONS_INIT;
        rig_kind kind = t->kind;
        kofn_report total = KOFN_REPORT_INIT;
        fleet f;
        rig r;

        o.below = KOFN_BELOW_PAUSE;
        o.patience = 3 * KOFN_SECOND;
        o.late = 20;
        kind.opt = &o;
        open_away(&r, &f, &kind, &faults, NULL);
        for (uint64_t round = 0; round < 5; round++) {
            kofn_report rep = KOFN_REPORT_INIT;
            kofn_status st;

            rig_next(&r, 11 + round);
            rig_spoil(&r);
            assert_ok(kofn_put(r.job, &r.x, &r.y, NULL));
            st = kofn_take(r.job, 0, 300 * KOFN_SECOND, &rep);
            rounds++;
            if (st == KOFN_AGAIN)
                fail_msg("%s, seed %d: hangs", kind.spec, (int)seed);
            if (st) {
                assert_true(st == KOFN_TOOFEW || st == KOFN_LATE);
                failed++;
                break;
            }
            if (!(rig_error(&r) <= t->most))
                fail_msg("%s, seed %d: error %g", kind.spec, (int)seed,
                         rig_error(&r));
        }
        kofn_job_totals(r.job, &total);
        dropped += total.dropped;
        kofn_close(r.job);
        r.job = NULL;
        fleet_down(&f);
        rig_down(&r);
    }
    print_message("%zu rounds, %zu could not be ended, %zu packets dropped\n",
                  rounds, failed, dropped);
    assert_true(failed <= rounds / 10);
}

/* ---- a block that has arrived in part ------------------------------------ */

static void rest_of_block(void **state)
{
    const rig_kind kind = {
        .spec = "uncoded", .workers = 1, .m = 4000, .n = 640, .p = 1};
    kofn_options o = KOFN_OPTIONS_INIT;
    rig_kind k = kind;
    fleet f;
    rig r;

    (void)state;
    o.below = KOFN_BELOW_PAUSE;
    o.patience = 20 * KOFN_SECOND;
    k.opt = &o;
    rig_inputs(&r, &k);
    fleet_init(&f, NULL);
    f.net.cut_type = KF_WIRE_SLICE;
    f.net.cut_at = 2; /* of 5 */
    assert_ok(kofn_open(&r.job, r.plan, fleet_port(&f, 1, NULL), k.opt));
    assert_ok(rig_place(&r));
    assert_ok(rig_round(&r, NULL));
    assert_true(rig_error(&r) <= 1e-13);
    rig_down(&r);
    assert_int_equal(f.net.sent[KF_WIRE_HELLO], 2);
    assert_int_equal(f.net.sent[KF_WIRE_STORE], 2);
    assert_int_equal(f.net.sent[KF_WIRE_SLICE], 5);
    assert_int_equal(f.net.bytes[KF_WIRE_SLICE], 4000 * 640 * 8);
    fleet_down(&f);
}

/* ---- a worker that never stores its block -------------------------------- */

/* Makes a worker that says hello and nothing else. */
static kofn_transport *unresponsive_worker(fleet *f)
{
    const kf_head hello = {.type = KF_WIRE_HELLO};
    kofn_transport *spoke = loop_spoke(&f->net);
    unsigned char head[KF_HEAD];
    kofn_packet p;

    assert_ok(spoke->wait(spoke, 300 * KOFN_SECOND, &p));
    assert_int_equal(p.what, KOFN_CAME);
    kf_head_write(head, &hello);
    assert_ok(spoke->send(spoke, p.peer, head, sizeof head, NULL, false));
    return spoke;
}

/* The worker delays one round at most, and that only for the lease. */
static void no_block(void **state)
{
    kofn_options o = KOFN_OPTIONS_INIT;
    rig_kind k = {
        .spec = "mds:k=2", .workers = 3, .m = 60, .n = 8, .p = 1, .opt = &o};
    kofn_transport *spoke;
    kofn_report rep = KOFN_REPORT_INIT;
    fleet f;
    rig r;

    (void)state;
    o.lease = KOFN_SECOND / 5;
    rig_inputs(&r, &k);
    fleet_init(&f, NULL);
    assert_ok(kofn_open(&r.job, r.plan, fleet_port(&f, 3, NULL), &o));
    assert_ok(rig_place(&r));
    assert_ok(rig_round(&r, NULL));
    spoke = unresponsive_worker(&f);
    for (int round = 0; round < 4; round++) {
        rig_next(&r, (uint64_t)round);
        assert_ok(kofn_put(r.job, &r.x, &r.y, NULL));
        assert_int_equal(kofn_take(r.job, 0, 300 * KOFN_SECOND, &rep), KOFN_OK);
        assert_true(rig_error(&r) <= 1e-12);
    }
    assert_int_equal(rep.workers, 4);
    assert_true(rep.states[3] == KOFN_WORKER_STORING ||
                rep.states[3] == KOFN_WORKER_UNRESPONSIVE);
    assert_int_equal(rep.live, 3);
    spoke->close(spoke, 0);
    rig_down(&r);
    fleet_down(&f);
}

/* A worker would refuse it, and the job would wait. */
static void long_input(void **state)
{
    rig_kind k = {.spec = "mds:k=2", .workers = 3, .m = 4, .n = 100, .p = 8};
    kofn_away_options o = KOFN_AWAY_OPTIONS_INIT;
    kofn_transport *hub;
    kofn_port *port;
    fleet f;
    rig r;

    (void)state;
    rig_inputs(&r, &k);
    fleet_init(&f, NULL);
    o.workers = 3;
    hub = loop_hub(&f.net);
    hub->body_max = 4096;
    for (int i = 0; i < 3; i++)
        fleet_add(&f);
    assert_ok(kofn_port_away(&port, hub, &o));
    assert_ok(kofn_open(&r.job, r.plan, port, NULL));
    assert_ok(rig_place(&r));
    assert_int_equal(rig_round(&r, NULL), KOFN_UNSUITED);
    assert_non_null(
        strstr(kofn_errmsg(), "the input of a task has 6400 bytes"));
    rig_down(&r);
    fleet_down(&f);
}

/* ---- a worker that never comes ------------------------------------------- */

static size_t ended_so_far(void *ud)
{
    return *(size_t *)ud;
}

/* Opens a port for two workers, and waits until it expects fewer or fails. The
 * first worker comes, unless both have ended. */
static kofn_status wait_for_ended(fleet *f, size_t ended, kofn_port **port)
{
    kofn_away_options o = KOFN_AWAY_OPTIONS_INIT;
    kofn_time end = kf_clock() + 300 * KOFN_SECOND;
    kofn_status st = KOFN_OK;
    size_t now = 0;
    kf_msg m;

    fleet_init(f, NULL);
    o.workers = 2;
    o.ended = ended_so_far;
    o.ud = &now;
    assert_ok(kofn_port_away(port, loop_hub(&f->net), &o));
    if (ended < 2) {
        fleet_add(f);
        assert_ok((*port)->wait(*port, KOFN_NEVER, KOFN_NEVER, &m));
        assert_int_equal(m.type, KF_MSG_HELLO);
        assert_int_equal((*port)->wait(*port, KOFN_NEVER, KOFN_SECOND / 4, &m),
                         KOFN_AGAIN);
        assert_int_equal((*port)->workers, 2);
    }
    for (now = ended; st >= 0 && (*port)->workers == 2 && kf_clock() < end;)
        st = (*port)->wait(*port, KOFN_NEVER, KOFN_SECOND / 4, &m);
    return st;
}

/* No worker comes in the place of an ended one, so waiting for it would not
 * end: the others are enough to begin, and without them there is an error. */
static void early_ends(void **state)
{
    kofn_port *port;
    fleet f;

    (void)state;
    assert_int_equal(wait_for_ended(&f, 1, &port), KOFN_AGAIN);
    assert_int_equal(port->workers, 1);
    kofn_port_close(port);
    fleet_down(&f);
}

static void early_ends_of_all(void **state)
{
    kofn_port *port;
    fleet f;

    (void)state;
    assert_int_equal(wait_for_ended(&f, 2, &port), KOFN_TOOFEW);
    assert_string_equal(kofn_errmsg(), "all 2 workers ended before they came");
    kofn_port_close(port);
    fleet_down(&f);
}

/* The blocks that workers may hold for a restarted coordinator do not change.
 */
static void no_update(void **state)
{
    const rig_kind k = {
        .spec = "mds:k=2", .workers = 3, .m = 20, .n = 6, .p = 1};
    const sgd c = SGD_INIT;
    kofn_matrix U = random_matrix(1, 20, KOFN_F64, 1);
    kofn_matrix V = random_matrix(1, 6, KOFN_F64, 2);
    kofn_away_options again = KOFN_AWAY_OPTIONS_INIT;
    fleet f;
    rig r;

    (void)state;
    again.job = 7;
    open_away(&r, &f, &k, NULL, &again);
    assert_status(KOFN_UNSUITED, sgd_update(r.job, 0, &c, &U, &V));
    assert_non_null(strstr(kofn_errmsg(), "kofn_away_options.job"));
    assert_ok(rig_round(&r, NULL));
    assert_at_most(rig_error(&r), 1e-12);
    kofn_close(r.job);
    r.job = NULL;
    fleet_down(&f);
    rig_down(&r);
    kf_free(U.data);
    kf_free(V.data);
}

static void fetched_operand(void **state)
{
    const kofn_fault_event lie = {1, 0, KOFN_FAULT_EVENT_CORRUPT, 1, 0};
    kofn_options opt = KOFN_OPTIONS_INIT;
    rig_kind k = {.spec = "mds:k=3", .workers = 6, .m = 61, .n = 40, .p = 2};
    kofn_matrix A = random_matrix(61, 40, KOFN_F64, 9);
    kofn_report rep = KOFN_REPORT_INIT;
    fleet f;
    rig r;

    (void)state;
    opt.errors = KOFN_ERRORS_PROBABILISTIC;
    opt.late = -1;
    opt.events = &lie;
    opt.event_count = 1;
    rig_inputs(&r, &k);
    fleet_init(&f, NULL);
    f.serve.staged = true;
    assert_ok(kofn_open(&r.job, r.plan, fleet_port(&f, 6, NULL), &opt));
    assert_ok(rig_place(&r));
    do { /* late answers are not compared */
        assert_ok(kofn_fetch(r.job, 0, 0, &A, &rep));
        for (size_t w = 0; w < rep.workers; w++)
            assert_true(w == 1 || rep.located[w] == 0);
    } while (rep.located[1] == 0 && rep.number < 10000);
    assert_true(rep.located[1] > 0);
    for (size_t i = 0; i < A.rows * A.cols; i++)
        assert_at_most(fabs(((double *)A.data)[i] - ((double *)r.A.data)[i]),
                       1e-12);
    assert_ok(rig_round(&r, NULL));
    assert_at_most(rig_error(&r), 1e-12);
    kofn_close(r.job);
    r.job = NULL;
    kf_free(A.data);
    fleet_down(&f);
    rig_down(&r);
}

TEST_FILE(away_test)
{
    const struct CMUnitTest tests[] = {
        TEST(no_update,
             "away: no update if workers may hold blocks of a former job"),
        TEST(every_operation, "away: rounds are right (each operation)"),
        TEST(fetched_bodies, "away: rounds are right if bodies are fetched"),
        TEST(narrow_pipes, "away: rounds are right over narrow pipes"),
        TEST(rest_of_block,
             "away: after a cut only the rest of a block is sent"),
        TEST(no_block,
             "away: a joiner that never stores delays one round only"),
        TEST(faults_on_the_way,
             "away: rounds are right or fail under faults of packets"),
        TEST(long_input,
             "away: an input that is too long for a packet is refused"),
        TEST(early_ends,
             "away: fewer workers are expected if one ended before it came"),
        TEST(early_ends_of_all,
             "away: waiting fails if all workers ended before they came"),
        TEST(fetched_operand,
             "away: an operand is read, and a wrong worker is named"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
