/* peer_end_test.c -- how nodes end.  A node that has the result serves those
 * that come by it late because their connections broke or a link is slow, and
 * waits for no other. Nodes exit when they are over, as processes do; time is
 * the simulator's. */
#include "mesh_link.h"
#include "train_mesh_rig.h"

enum { ROWS = 19, STEPS = 12, LATE = 3 };

#define GIVE_UP (5 * KOFN_SECOND)

/* When each node came by the result, and when it went; 0: it has not. */
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

        if (n->host && n->host->node->final && !saw.finished[i])
            saw.finished[i] = s->now;
        if (n->gone && !saw.gone[i])
            saw.gone[i] = s->now;
    }
}

static void go_on(sim *s, kofn_time for_so_long)
{
    for (kofn_time end = s->now + for_so_long; s->now < end;) {
        sim_run(s, s->now + MS, NULL);
        look_at_ends(s);
    }
}

static void run_to(sim *s, uint64_t t)
{
    while (s->node[0].host->at.step < t) {
        assert_true(s->now < 60 * KOFN_SECOND);
        go_on(s, MS);
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
            go_on(s, MS);
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

/* The connections of the last node break before the last iterates, and are
 * there again after half a silence, in which the others come by the result. */
static void break_off(sim *s)
{
    size_t who = s->nodes - 1;

    run_to(s, s->steps - LATE);
    part_from(s, who, true);
    go_on(s, kf_host_silence(s->node[0].host) / 2);
    for (size_t i = 0; i < who; i++)
        assert_true(saw.finished[i]);
    assert_false(saw.finished[who]);
    part_from(s, who, false);
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

/* If matrices change, no node makes an iterate alone. */
static void connections_break_in_training(void **state)
{
    static const kofn_errors errors[] = {KOFN_ERRORS_NONE,
                                         KOFN_ERRORS_ADVERSARIAL};

    (void)state;
    for (uint64_t seed = 0; seed < 4; seed++) {
        fixture f;
        sim s;

        mesh_up(&s, &f, &lessons[2], 2, seed);
        s.opt.errors = errors[seed / 2];
        s.opt.confirm = seed / 2 ? 0 : 1;
        s.evil = seed / 2 ? &saw : NULL; /* vectors may differ by rounding */
        begin(&s);
        break_off(&s);
        mesh_down(&s, &f);
    }
}

/* The last node hears the others over a slow link.  It is far behind when they
 * have the result, but they hear it. */
static void link_is_slow(void **state)
{
    sim_slow slow = {.to = wide.nodes - 1};
    size_t who = wide.nodes - 1;
    fixture f;
    sim s;

    (void)state;
    mesh_up(&s, &f, &wide, 2, 1);
    s.opt.confirm = 1;
    s.opt.linger = 20 * MS;
    begin(&s);
    run_to(&s, s.steps / 2);
    slow.rate = (double)kf_mesh_vector_bytes(s.node[0].host) /
                (10 * 1e-9 * (double)kf_host_hedge(s.node[0].host));
    link_up(&s, &slow, false);
    run_until_gone(&s, s.nodes);
    for (size_t i = 0; i < who; i++)
        assert_true(saw.finished[who] > saw.finished[i] + 2 * s.opt.linger);
    mesh_down(&s, &f);
}

/* One node says where it stands, never takes the result, and connects anew all
 * the time. It holds the others up for no longer than their patience. */
static void one_never_has_it(void **state)
{
    size_t who = 3;
    sim s;

    (void)state;
    sim_up(&s, "mds:k=2", 4, ROWS, STEPS, 1);
    s.opt.linger = 20 * MS;
    begin(&s);
    run_to(&s, LATE);
    for (size_t i = 0; i < who; i++)
        s.cut[i][who] = true;
    while (!saw.gone[0] || !saw.gone[1] || !saw.gone[2]) {
        assert_true(s.now < 4 * GIVE_UP);
        go_on(&s, 50 * MS);
        for (size_t i = 0; i < who; i++)
            if (!s.node[i].gone)
                fate_breaks(&s, i, who);
    }
    for (size_t i = 0; i < who; i++)
        assert_true(saw.gone[i] <= saw.finished[i] + GIVE_UP + s.opt.beat);
    sim_down(&s);
}

/* All have the result, but for one that died more than a silence before.  They
 * end as soon as they have heard so of each other, before the next beat. */
static void none_waits_for_the_dead(void **state)
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
        cmocka_unit_test(connections_break),
        cmocka_unit_test(connections_break_in_training),
        cmocka_unit_test(link_is_slow),
        cmocka_unit_test(one_never_has_it),
        cmocka_unit_test(none_waits_for_the_dead),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
