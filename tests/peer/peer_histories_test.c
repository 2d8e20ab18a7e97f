/* peer_histories_test.c -- iterations without a master, on the simulated mesh,
 * with any fault at any moment. */
#include "mesh_faults.h"

/* ---- seeded histories ---------------------------------------------------- */

static void history(uint64_t seed, double *worst, uint64_t *adopted)
{
    static const char *const spec[] = {
        "mds:k=1", "mds:k=2", "mds:k=3,basis=gauss_sys",
        "mds:k=4", "mds:k=3", "mds:k=2,basis=gauss"};
    static const size_t needs[] = {1, 2, 3, 4, 3, 2};
    kf_rng r = kf_rng_stream(seed, KF_FOR_SAMPLE, 78, 0);
    size_t which = kf_rng_below(&r, 6), k = needs[which];
    size_t nodes = k + 1 + kf_rng_below(&r, 4);
    size_t faults = kf_rng_below(&r, 16);
    kofn_time bound;
    sim s;

    sim_up(&s, spec[which], nodes, 19, 8 + kf_rng_below(&r, 40), seed);
    if (kf_rng_below(&r, 2))
        s.opt.decoding = KOFN_DECODE_DISTRIBUTED;
    faults_draw(&s, &r);
    for (size_t i = 0; i < nodes; i++)
        if (i < k || sim_draw(&s) < 0.9)
            sim_start(&s, i, sim_draw(&s) < 0.8);
    for (size_t f = 0; f < faults; f++)
        sim_at(&s, (kofn_time)(sim_draw(&s) * 800 * (double)MS), SIM_FAULT, 0,
               0);
    sim_run(&s, 800 * MS, faults_inject);
    bound = faults_end(&s, k);
    sim_finish(&s, bound, faults_inject, spec[which], seed);
    for (size_t i = 0; i < nodes; i++) {
        kofn_node_view v;

        if (!s.node[i].up)
            continue;
        kf_node_look(s.node[i].host->node, &v);
        *adopted += v.adopted;
        assert_int_equal(v.at.step, s.steps);
    }
    *worst = fmax(*worst, s.worst);
    sim_down(&s);
}

static void histories(void **state)
{
    size_t n = often(300);
    double worst = 0;
    uint64_t adopted = 0, first;
    const char *one = getenv("KOFN_TEST_SEED"); /* the first seed */

    (void)state;
    first = one ? strtoull(one, NULL, 10) : 0;
    for (uint64_t seed = first; seed < first + n; seed++)
        history(seed, &worst, &adopted);
    print_message("EVENTS %zu faults in %zu histories: worst deviation "
                  "%.3g, %llu vectors adopted\n",
                  faults_injected, n, worst, (unsigned long long)adopted);
}

static void exits(void **state)
{
    size_t n = often(60);

    (void)state;
    for (uint64_t seed = 0; seed < n; seed++) {
        sim s;

        sim_up(&s, "mds:k=3", 6, 19, 10 + seed % 9, seed);
        s.exits = true;
        s.report_deaths = seed % 2;
        if (seed % 3 == 0)
            s.opt.decoding = KOFN_DECODE_DISTRIBUTED;
        for (size_t i = 0; i < 6; i++)
            sim_start(&s, i, seed % 5 > 0);
        for (size_t i = 0; i < 3;
             i++) /* at most three faults; slowness is one of their kinds */
            sim_at(&s, (kofn_time)(sim_draw(&s) * 120 * (double)MS), SIM_FAULT,
                   0, 1);
        sim_finish(&s, 6 * KOFN_SECOND, faults_inject, "exits", seed);
        sim_down(&s);
    }
}

/* Announces that the node leaves, and stops it. */
static void leave(sim *s, size_t id)
{
    const kf_node_event bye = {.type = KF_NODE_LEAVE, .now = s->now};

    assert_ok(kf_host_step(s->node[id].host, &bye));
    sim_stop(s, id);
}

/* The leader leaves at any moment, or two nodes do, and the rest are at two
 * different iterates. Too few nodes have either iterate to confirm it. They
 * may compute a few iterates alone until they are together again. */
static void leavers(void **state)
{
    size_t n = often(200);
    kofn_time longest = 0;
    uint64_t most = 0;

    (void)state;
    for (uint64_t seed = 0; seed < n; seed++) {
        sim s;

        sim_up(&s, "mds:k=3", 5, 19, 40, seed);
        s.opt.confirm = 0; /* the default */
        s.opt.linger = 20 * MS;
        s.exits = s.report_deaths = true;
        if (seed % 3 == 0)
            s.opt.decoding = KOFN_DECODE_DISTRIBUTED;
        for (size_t i = 0; i < 5; i++)
            sim_start(&s, i, seed % 5 > 0);
        for (size_t i = 0; i < 1 + seed % 2; i++)
            sim_at(&s, (kofn_time)(sim_draw(&s) * 60 * (double)MS), SIM_FAULT,
                   0, i);
        sim_finish(&s, 4 * KOFN_SECOND, leave, "leavers", seed);
        longest = s.now > longest ? s.now : longest;
        for (size_t i = 2; i < 5; i++) {
            kofn_node_view v;

            kf_node_look(s.node[i].host->node, &v);
            most = v.alone > most ? v.alone : most;
        }
        sim_down(&s);
    }
    print_message("the longest took %.3g s, %llu iterates alone\n",
                  (double)longest * 1e-9, (unsigned long long)most);
    assert_true(most <= 4);
}

static void sleep_long(sim *s, size_t id)
{
    s->node[id].stopped = s->now + 400 * MS;
}

/* The quorum is gone when they wake up. */
static void sleepers(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 16; seed++) {
        sim s;

        sim_up(&s, "mds:k=3", 5, 19, 8, seed);
        s.opt.confirm = seed % 2;
        s.opt.linger = 20 * MS;
        s.exits = s.report_deaths = true;
        for (size_t i = 0; i < 5; i++)
            sim_start(&s, i, true);
        for (size_t i = 3; i < 5; i++)
            sim_at(&s, 20 * MS + (kofn_time)(sim_draw(&s) * 10 * (double)MS),
                   SIM_FAULT, 0, i);
        sim_run(&s, 300 * MS, sleep_long);
        assert_true(s.node[0].over && !s.node[3].over && !s.node[4].over);
        sim_finish(&s, 4 * KOFN_SECOND, sleep_long, "sleepers", seed);
        sim_down(&s);
    }
}

/* ---- every moment, every order ------------------------------------------- */

enum { DIE, PAUSE, APART, RETURN, BREAK, KINDS };

typedef struct timed_fault {
    size_t when; /* before this packet */
    size_t node, kind;
} timed_fault;

typedef struct timed_faults {
    timed_fault timed_fault[2];
    size_t count, needs;
} timed_faults;

#define ABSENCE (300 * MS) /* longer than the failure timeout */

static void inject_one(sim *s, const timed_fault *b, size_t needs)
{
    sim_node *n = &s->node[b->node];

    if (!n->up)
        return;
    switch (b->kind) {
    case DIE:
        if (sim_count_up(s) > needs)
            sim_stop(s, b->node);
        break;
    case PAUSE:
        n->stopped = s->now + ABSENCE;
        break;
    case APART:
        for (size_t i = 0; i < s->nodes; i++)
            s->cut[i][b->node] = s->cut[b->node][i] = true;
        sim_at(s, s->now + ABSENCE, SIM_FAULT, 0, 0);
        break;
    case RETURN: /* dies and restarts */
        sim_stop(s, b->node);
        sim_start(s, b->node, false);
        break;
    default:
        for (size_t i = 0; i < s->nodes; i++)
            if (i != b->node && s->node[i].up) {
                sim_link(s, i, b->node, KOFN_WENT);
                sim_link(s, b->node, i, KOFN_WENT);
                sim_link(s, i, b->node, KOFN_CAME);
                sim_link(s, b->node, i, KOFN_CAME);
            }
    }
}

static void inject(sim *s)
{
    timed_faults *all = s->inject_ud;

    for (size_t i = 0; i < all->count; i++)
        if (all->timed_fault[i].when == s->delivered)
            inject_one(s, &all->timed_fault[i], all->needs);
}

static void heal_now(sim *s, size_t what)
{
    (void)what;
    sim_rebuil(s);
}

typedef struct small_mesh {
    const char *spec;
    size_t nodes, needs;
} small_mesh;

static const small_mesh small_meshes[] = {{"mds:k=2,basis=gauss_sys", 3, 2},
                                          {"mds:k=2,basis=gauss_sys", 4, 2},
                                          {"mds:k=3,basis=gauss_sys", 4, 3}};

/* Returns the number of packets of the run. */
static size_t small_run(const small_mesh *c, bool distributed,
                        bool report_deaths, timed_faults *all,
                        const unsigned char *order, size_t orders)
{
    char what[96];
    size_t packets;
    sim s;

    sim_up(&s, c->spec, c->nodes, 7, 3, 1);
    s.report_deaths = report_deaths;
    if (distributed)
        s.opt.decoding = KOFN_DECODE_DISTRIBUTED;
    s.order = order;
    s.orders = orders;
    if (all) {
        all->needs = c->needs;
        s.inject = inject;
        s.inject_ud = all;
    }
    for (size_t i = 0; i < c->nodes; i++)
        sim_start(&s, i, true);
    snprintf(what, sizeof what, "%zu nodes, %s, %s", c->nodes, c->spec,
             distributed ? "distributed" : "replicated");
    for (size_t i = 0; all && i < all->count; i++) {
        size_t n = strlen(what);

        snprintf(what + n, sizeof what - n, ", %zu:%zu:%zu",
                 all->timed_fault[i].when, all->timed_fault[i].node,
                 all->timed_fault[i].kind);
    }
    sim_finish(&s, 4 * KOFN_SECOND, heal_now, what, 0);
    packets = s.delivered;
    sim_down(&s);
    return packets;
}

/* Returns the stride for a sample of one in `n`; 1 if there is time for all. */
static size_t sparse(size_t n)
{
    double x = (double)n * SLOWED / test_scale();

    return x < 1 ? 1 : (size_t)x;
}

static void one_fault(void **state)
{
    size_t runs = 0, stride = sparse(4);

    (void)state;
    for (size_t c = 0; c < 3; c++)
        for (int d = 0; d < 2; d++) {
            size_t packets =
                small_run(&small_meshes[c], d, true, NULL, NULL, 0);

            for (size_t m = 1; m <= packets; m += stride)
                for (size_t i = 0; i < small_meshes[c].nodes * KINDS;
                     i++, runs++) {
                    timed_faults b = {{{m, i / KINDS, i % KINDS}}, 1, 0};

                    small_run(&small_meshes[c], d, (m + i) % 2, &b, NULL, 0);
                }
        }
    print_message("%zu runs\n", runs);
}

/* The two moments lie on a grid. */
static void two_faults(void **state)
{
    size_t runs = 0, stride = sparse(29);

    (void)state;
    for (size_t c = 0; c < 3; c += 2)
        for (int d = 0; d < 2; d++) {
            size_t packets =
                small_run(&small_meshes[c], d, true, NULL, NULL, 0);
            size_t all = small_meshes[c].nodes * KINDS;

            for (size_t m = 1; m <= packets; m += stride)
                for (size_t n = m; n <= packets; n += stride)
                    for (size_t i = runs % 7; i < all * all; i += 7, runs++) {
                        timed_faults b = {
                            {{m, i % all / KINDS, i % KINDS},
                             {n, i / all / KINDS, i / all % KINDS}},
                            2,
                            0};

                        small_run(&small_meshes[c], d, runs % 2, &b, NULL, 0);
                    }
        }
    print_message("%zu runs\n", runs);
}

/* Three packets are outstanding at a time. The permutation begins at several
 * points of the run. */
static void orders(void **state)
{
    enum { DEPTH = 6 };
    unsigned char order[64] = {0};
    size_t runs = 0;

    (void)state;
    for (size_t c = 0; c < 3; c++)
        for (size_t from = 0; from < 36; from += sparse(18))
            for (size_t code = 0; code < 729; code++, runs++) {
                size_t x = code;

                memset(order, 0, sizeof order);
                for (size_t i = 0; i < DEPTH; i++, x /= 3)
                    order[from + i] = (unsigned char)(x % 3);
                small_run(&small_meshes[c], code % 2, true, NULL, order,
                          from + DEPTH);
            }
    print_message("%zu runs\n", runs);
}

TEST_FILE(peer_histories_test)
{
    const struct CMUnitTest tests[] = {
        TEST(one_fault,
             "mesh: a fault of any node before any packet does no harm"),
        TEST(two_faults,
             "mesh: any two faults at moments on a grid do no harm"),
        TEST(orders, "mesh: every order of the first packets gives the result"),
        TEST(histories,
             "mesh: seeded histories of faults end with the plain iterates"),
        TEST(exits,
             "mesh: nodes that exit with the result leave no node without it"),
        TEST(leavers, "mesh: leaving leaders leave no node without the result"),
        TEST(sleepers,
             "mesh: nodes that sleep until the others have gone end alone"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
