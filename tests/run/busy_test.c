/* busy_test.c -- the simulator's workers, directed by the test: their work
 * while the coordinator is busy, and answers that come together.
 *
 * On the measured clock messages take hundreds of seconds here. Compared with
 * them, the processor time of a product of 20 x 5 is nothing on any machine. */
#include "rig.h"

#include "run/run.h"

#define HOP (100 * KOFN_SECOND) /* time of a message */

typedef struct sim_case {
    kofn_port *port;
    kf_resident resident;
    kf_code *code;
    rig r;
} sim_case;

static void sim_case_up(sim_case *o, size_t workers, const kofn_faults *like)
{
    rig_kind k = {
        .spec = "mds:k=2,basis=gauss", .workers = 3, .m = 40, .n = 5, .p = 1};
    kofn_faults w = like ? *like : (kofn_faults)KOFN_FAULTS_INIT();
    kf_msg m;

    if (!w.whole) {
        w.clock = KOFN_CLOCK_MEASURED;
        w.latency = 100;
    }
    *o = (sim_case){.port = NULL};
    rig_inputs(&o->r, &k);
    assert_ok(kf_code_new(&o->code, o->r.plan));
    assert_ok(kf_resident_dense(&o->resident, o->r.plan, &o->r.A));
    assert_ok(kofn_port_sim(&o->port, workers, &w));
    for (size_t i = 0; i < workers; i++) {
        assert_ok(o->port->wait(o->port, 0, 0, &m));
        assert_int_equal(m.type, KF_MSG_HELLO);
    }
}

static void sim_case_down(sim_case *o)
{
    kofn_port_close(o->port);
    kf_resident_free(&o->resident);
    kf_code_free(o->code);
    rig_down(&o->r);
}

/* Sends a task that brings its block. */
static void give_in(sim_case *o, uint32_t worker, uint32_t task, unsigned round)
{
    const size_t seat = 1;
    kf_msg m = {.type = KF_MSG_WORK,
                .worker = worker,
                .product = 1,
                .task = task,
                .round = round,
                .how = KF_HOW_ROWS,
                .hi = 20};

    assert_ok(kf_data_encode(&o->resident, o->code, &seat, 1, &m.block));
    assert_ok(kf_buffer_new(&m.in, 5, 1, KOFN_F64));
    memcpy(m.in->m.data, o->r.x.data, 5 * sizeof(double));
    assert_ok(kf_buffer_new(&m.result, 20, 1, KOFN_F64));
    assert_ok(o->port->send(o->port, &m));
}

static void give(sim_case *o, uint32_t worker, uint32_t task)
{
    give_in(o, worker, task, 1);
}

static void take_back(sim_case *o, uint32_t worker, uint32_t task)
{
    kf_msg m = {.type = KF_MSG_CANCEL, .worker = worker, .task = task};

    assert_ok(o->port->send(o->port, &m));
}

/* Checks that the next message is the result of this task. */
static void comes(sim_case *o, uint32_t task)
{
    kf_msg m;

    assert_ok(o->port->wait(o->port, KOFN_NEVER, 0, &m));
    assert_int_equal(m.type, KF_MSG_RESULT);
    assert_int_equal(m.task, task);
    kf_buffer_drop(m.in);
    kf_buffer_drop(m.result);
    kofn_free(m.why);
    kf_block_drop(m.block);
}

static void nothing_comes(sim_case *o)
{
    kf_msg m;

    assert_status(KOFN_LATE, o->port->wait(o->port, KOFN_NEVER, 0, &m));
}

/* The way there and back is two hops. The coordinator works for five hops.
 * Then the answer is there. */
static void work_continues(void **state)
{
    sim_case o;

    (void)state;
    sim_case_up(&o, 1, NULL);
    give(&o, 0, 1);
    o.port->spend(o.port, 5 * HOP);
    comes(&o, 1);
    assert_int_equal(o.port->now(o.port), 5 * HOP);
    give(&o, 0, 2); /* an idle coordinator waits for it */
    comes(&o, 2);
    assert_in_range(o.port->now(o.port), 7 * HOP, 7 * HOP + HOP / 2);
    sim_case_down(&o);
}

/* A completed task cannot be cancelled. A task that has not arrived can. */
static void late_cancellation(void **state)
{
    sim_case o;

    (void)state;
    sim_case_up(&o, 1, NULL);
    give(&o, 0, 1);
    give(&o, 0, 2);
    o.port->spend(o.port, 5 * HOP);
    give(&o, 0, 3);
    take_back(&o, 0, 1);
    take_back(&o, 0, 2);
    take_back(&o, 0, 3);
    comes(&o, 1);
    comes(&o, 2);
    nothing_comes(&o);
    assert_in_range(o.port->now(o.port), 5 * HOP, 6 * HOP);
    sim_case_down(&o);
}

/* A slowdown applies to later tasks, not to past ones. */
static void late_slowdown(void **state)
{
    sim_case o;

    (void)state;
    sim_case_up(&o, 1, NULL);
    give(&o, 0, 1);
    o.port->spend(o.port, 5 * HOP);
    o.port->slow(o.port, 0, 1e6);
    o.port->corrupt(o.port, 0, true);
    comes(&o, 1);
    assert_int_equal(o.port->now(o.port), 5 * HOP);
    sim_case_down(&o);
}

/* Messages under way are dropped, too. */
static void removed(void **state)
{
    sim_case o;

    (void)state;
    count_allocations();
    sim_case_up(&o, 2, NULL);
    for (uint32_t task = 0; task < 6; task++)
        give(&o, task % 2, task);
    o.port->spend(o.port, 5 * HOP);
    assert_ok(o.port->remove(o.port, 0));
    for (uint32_t task = 1; task < 6; task += 2)
        comes(&o, task);
    nothing_comes(&o);
    for (uint32_t task = 6; task < 9; task++)
        give(&o, 1, task);
    o.port->spend(o.port, 5 * HOP);
    give(&o, 1, 9);
    sim_case_down(&o); /* with messages that were not read */
    assert_int_equal(allocated(), 0);
    kofn_set_alloc(NULL, NULL);
}

/* Before it leaves, a worker sends the results that it has. */
static void answer_and_leave(void **state)
{
    kofn_faults w = KOFN_FAULTS_INIT(.leave = 1e-3);
    sim_case o;
    kf_msg m;
    double stays;

    (void)state;
    do { /* until it stays for about ten hops */
        kf_rng r = kf_rng_stream(++w.seed, KF_FOR_LEAVE, 0, 0);

        stays = kf_rng_exponential(&r) / w.leave;
    } while (stays < 900 || stays > 1100);
    sim_case_up(&o, 1, &w);
    give(&o, 0, 1);
    o.port->spend(o.port, 15 * HOP);
    take_back(&o, 0, 7); /* makes the port look at its workers */
    comes(&o, 1);
    assert_ok(o.port->wait(o.port, KOFN_NEVER, 0, &m));
    assert_int_equal(m.type, KF_MSG_BYE);
    nothing_comes(&o);
    sim_case_down(&o);
}

static void comes_at(sim_case *o, uint32_t task, kofn_time t)
{
    comes(o, task);
    assert_int_equal(o->port->now(o->port), t);
}

/* A task has 100 multiply-adds. Worker 0 is slow in round 1 and not in round
 * 2. Worker 1 is never slow. */
static void slow_lists(void **state)
{
    double x[] = {4, 1, 1, 1};
    kofn_matrix a = {x, 2, 2, 2, KOFN_F64};
    kofn_faults w = KOFN_FAULTS_INIT(.pattern = &a, .whole = true);
    sim_case o;

    (void)state;
    sim_case_up(&o, 2, &w);
    for (uint32_t task = 0; task < 6; task++)
        give_in(&o, task % 2, task, 1);
    give_in(&o, 0, 6, 2);
    comes_at(&o, 1, 100);
    comes_at(&o, 3, 200);
    comes_at(&o, 5, 300);
    comes_at(&o, 0, 1200); /* not when it begins a task of another round */
    comes_at(&o, 2, 1200);
    comes_at(&o, 4, 1200);
    comes_at(&o, 6, 1300);
    sim_case_down(&o);
}

/* A result that is held back can be cancelled. One that is not comes with the
 * rest. */
static void held_cancelled(void **state)
{
    double x[] = {4};
    kofn_matrix a = {x, 1, 1, 1, KOFN_F64};
    kofn_faults w = KOFN_FAULTS_INIT(.pattern = &a, .whole = true);
    kf_msg m;
    sim_case o;

    (void)state;
    count_allocations();
    sim_case_up(&o, 1, &w);
    for (uint32_t task = 0; task < 4; task++)
        give(&o, 0, task);
    assert_status(KOFN_AGAIN, o.port->wait(o.port, 1000, 0, &m));
    take_back(&o, 0, 0);
    take_back(&o, 0, 3);
    take_back(&o, 0, 2); /* being computed */
    comes_at(&o, 1, 1000);
    nothing_comes(&o);
    for (uint32_t task = 4; task < 7; task++)
        give(&o, 0, task);
    assert_status(KOFN_AGAIN, o.port->wait(o.port, 2000, 0, &m));
    assert_ok(o.port->remove(o.port, 0));
    nothing_comes(&o);
    sim_case_down(&o);
    assert_int_equal(allocated(), 0);
    kofn_set_alloc(NULL, NULL);
}

TEST_FILE(busy_test)
{
    const struct CMUnitTest tests[] = {
        TEST(work_continues,
             "sim: workers compute while the coordinator is busy"),
        TEST(late_cancellation,
             "sim: completed tasks cannot be cancelled, unsent ones can"),
        TEST(late_slowdown,
             "sim: slowness and faults do not apply to past tasks"),
        TEST(removed, "sim: no message of a removed worker arrives"),
        TEST(answer_and_leave,
             "sim: a leaving worker's earlier answer arrives first"),
        TEST(slow_lists,
             "sim: the answers of a slow worker's round come together"),
        TEST(held_cancelled,
             "sim: held answers can be cancelled, the others still come"),
    };

    rig_begin();
    return cmocka_run_group_tests_name("busy", tests, NULL, NULL);
}
