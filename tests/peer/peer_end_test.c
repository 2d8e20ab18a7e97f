/* peer_end_test.c -- how nodes end. A node that has the result serves nodes
 * that get it late because their connections broke or a link is slow. It waits
 * for no other node. Nodes exit at their end, as processes do. Time is the
 * simulator's. */
#include "mesh_link.h"
#include "train_mesh_rig.h"

enum { ROWS = 19, STEPS = 12, LATE = 3 };

#define GIVE_UP (5 * KOFN_SECOND)

/* When each node got the result, and when it exited; 0 before that. */
static struct {
    kofn_time finished[SIM_NODES], gone[SIM_NODES];
} saw;

static void begin(sim *s)
{
    memset(&saw, 0, sizeof saw);
    s->exits = true;
    s->opt.give_up = GIVE_UP;
    for (size_t i = 0; i < s->nodes; i++)
        sim_start(s, i, true);
}

static void look_at_ends(sim *s)
{
    for (size_t i = 0; i < s->nodes; i++) {
        const sim_node *n = &s->node[i];

        if (n->host && n->host->node->stage.final && !saw.finished[i])
            saw.finished[i] = s->now;
        if (n->gone && !saw.gone[i])
            saw.gone[i] = s->now;
    }
}

static void run_for(sim *s, kofn_time duration)
{
    for (kofn_time end = s->now + duration; s->now < end;) {
        sim_run(s, s->now + MS, NULL);
        look_at_ends(s);
    }
}

static void run_to(sim *s, uint64_t t)
{
    while (s->node[0].host->it.at.step < t) {
        assert_true(s->now < 60 * KOFN_SECOND);
        run_for(s, MS);
    }
}

static void run_until_gone(sim *s, size_t nodes)
{
    for (size_t i = 0; i < nodes; i++)
        while (s->node[i].up && !s->node[i].gone) {
            if (s->node[i].status || s->now > 60 * KOFN_SECOND)
                sim_print(s);
            assert_ok(s->node[i].status);
            assert_true(s->now < 60 * KOFN_SECOND);
            run_for(s, MS);
        }
}

static void part_from(sim *s, size_t id, bool apart)
{
    for (size_t i = 0; i < s->nodes; i++)
        if (i != id) {
            s->cut[i][id] = s->cut[id][i] = apart;
            sim_link(s, i, id, apart ? KOFN_WENT : KOFN_CAME);
            sim_link(s, id, i, apart ? KOFN_WENT : KOFN_CAME);
        }
}

/* The connections of the last node break before the last iterates. They return
 * after half a failure timeout, in which the others get the result. */
static void break_off(sim *s)
{
    size_t last = s->nodes - 1;

    run_to(s, s->steps - LATE);
    part_from(s, last, true);
    run_for(s, kf_host_silence(s->node[0].host) / 2);
    for (size_t i = 0; i < last; i++)
        assert_true(saw.finished[i]);
    assert_false(saw.finished[last]);
    part_from(s, last, false);
    run_until_gone(s, s->nodes);
}

static void connections_break(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 4; seed++) {
        sim s;

        sim_up(&s, "mds:k=2", 4, ROWS, STEPS, seed);
        begin(&s);
        break_off(&s);
        sim_down(&s);
    }
}

/* If matrices change, no node computes an iterate alone. */
static void connections_break_in_training(void **state)
{
    static const kofn_errors errors[] = {KOFN_ERRORS_NONE,
                                         KOFN_ERRORS_ADVERSARIAL};

    (void)state;
    for (uint64_t seed = 0; seed < 4; seed++) {
        fixture f;
        sim s;

        mesh_up(&s, &f, &training_cases[2], 2, seed);
        s.opt.errors = errors[seed / 2];
        s.opt.confirm = seed / 2 ? 0 : 1;
        s.hostile = seed / 2 ? &saw : NULL; /* vectors may differ by rounding */
        begin(&s);
        break_off(&s);
        mesh_down(&s, &f);
    }
}

/* The last node hears the others over a slow link. It is far behind when they
 * get the result, but it hears them. */
static void link_is_slow(void **state)
{
    sim_slow slow = {.to = wide_case.nodes - 1};
    size_t last = wide_case.nodes - 1;
    fixture f;
    sim s;

    (void)state;
    mesh_up(&s, &f, &wide_case, 2, 1);
    s.opt.confirm = 1;
    s.opt.linger = 20 * MS;
    begin(&s);
    run_to(&s, s.steps / 2);
    slow.rate = (double)kf_mesh_vector_bytes(s.node[0].host) /
                (10 * 1e-9 * (double)kf_host_hedge(s.node[0].host));
    link_up(&s, &slow, false);
    run_until_gone(&s, s.nodes);
    for (size_t i = 0; i < last; i++)
        assert_true(saw.finished[last] > saw.finished[i] + 2 * s.opt.linger);
    mesh_down(&s, &f);
}

/* One node reports its position, never takes the result, and reconnects all
 * the time. */
static void one_node_never_has_it(void **state)
{
    size_t last = 3;
    sim s;

    (void)state;
    sim_up(&s, "mds:k=2", 4, ROWS, STEPS, 1);
    s.opt.linger = 20 * MS;
    begin(&s);
    run_to(&s, LATE);
    for (size_t i = 0; i < last; i++)
        s.cut[i][last] = true;
    while (!saw.gone[0] || !saw.gone[1] || !saw.gone[2]) {
        assert_true(s.now < 4 * GIVE_UP);
        run_for(&s, 50 * MS);
        for (size_t i = 0; i < last; i++)
            if (!s.node[i].gone)
                faults_break(&s, i, last);
    }
    for (size_t i = 0; i < last; i++)
        assert_true(saw.gone[i] <= saw.finished[i] + GIVE_UP + s.opt.beat);
    sim_down(&s);
}

/* One node may have died more than a failure timeout before. The others end
 * once they have heard from each other that all have the result, before the
 * next heartbeat. */
static void dead_nodes_are_not_waited_for(void **state)
{
    (void)state;
    for (size_t dead = 0; dead < 2; dead++) {
        kofn_time last = 0;
        sim s;

        sim_up(&s, "mds:k=2", 4, ROWS, STEPS, 1);
        s.compute = 30 * MS;
        begin(&s);
        run_to(&s, 1);
        if (dead)
            sim_stop(&s, 3);
        run_until_gone(&s, s.nodes);
        for (size_t i = 0; i < 4; i++)
            last = last > saw.finished[i] ? last : saw.finished[i];
        assert_true(last > 2 * kf_host_silence(s.node[0].host));
        for (size_t i = 0; i < 4 - dead; i++)
            assert_true(saw.gone[i] <= last + 4 * s.latency);
        sim_down(&s);
    }
}

TEST_FILE(peer_end_test)
{
    const struct CMUnitTest tests[] = {
        TEST(connections_break,
             "end: a node that loses its connections late gets the result"),
        TEST(connections_break_in_training,
             "end: in a training such a node also gets the result"),
        TEST(link_is_slow,
             "end: the others wait for a node behind a slow link"),
        TEST(one_node_never_has_it,
             "end: a node that takes no result delays others by give_up only"),
        TEST(dead_nodes_are_not_waited_for,
             "end: nodes that all have the result wait for no dead node"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
