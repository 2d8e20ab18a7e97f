/* train_histories_test.c -- trainings without a master with each fault at each
 * moment. A run has three nodes, two layers and two steps. Before each packet,
 * each fault is injected into each node; train_faults.h has what must hold.
 * Then pairs of faults follow, where pairs are most dangerous.
 *
 * If errors are searched, there are enough nodes to find one that errs: three
 * if one node's partial products decode, five if three must.
 *
 * KOFN_TEST_SCENARIO="CASE SEED KIND@PACKET:NODE ..." repeats one run, with
 * CASE the index in `cases`. */
#include "train_faults.h"

#define NET                                                                    \
    .layers = 2, .widths = {SIDE * SIDE, 5, 3}, .activation = KOFN_TANH,       \
    .batch = 6

static const training_case small_cases[] = {
    /* each node has everything, and any two can continue; the others find one
     * that errs */
    {.scheme = "gpd:m=1,n=1,p=1", .nodes = 3, NET, .momentum = 0.9},
    /* all three are needed, and two determine the third's block */
    {.scheme = "matdot:n=2", .nodes = 3, NET},
    /* three are needed, and four to find one that errs */
    {.scheme = "matdot:n=2", .nodes = 5, NET, .momentum = 0.9},
};

static const scenario cases[] = {
    {.l = &small_cases[0], .epochs = 1},
    {.l = &small_cases[1], .epochs = 1},
    {.l = &small_cases[0], .epochs = 1, .distributed = true},
    /* with checkpoints, so that nodes left at different iterates return */
    {.l = &small_cases[0],
     .epochs = 1,
     .errors = KOFN_ERRORS_ADVERSARIAL,
     .every = 1},
    {.l = &small_cases[2],
     .epochs = 1,
     .errors = KOFN_ERRORS_PROBABILISTIC,
     .every = 1},
    {.l = &small_cases[0], .epochs = 1, .every = 1},
    {.l = &small_cases[1], .epochs = 1, .every = 1},
    /* only numbers are wrong */
    {.l = &small_cases[0],
     .epochs = 1,
     .errors = KOFN_ERRORS_ADVERSARIAL,
     .scrub = 1},
    {.l = &small_cases[2],
     .epochs = 1,
     .errors = KOFN_ERRORS_PROBABILISTIC,
     .scrub = 1},
    {.l = &small_cases[2],
     .epochs = 1,
     .errors = KOFN_ERRORS_ADVERSARIAL,
     .scrub = 1},
};

/* Runs until all nodes that are up have ended. */
static void run_to_the_end(sim *s, kofn_time by)
{
    for (bool all = false; !all;) {
        if (s->now >= by) {
            sim_print(s);
            fail_msg("not every node has ended after %.3g s",
                     (double)s->now * 1e-9);
        }
        sim_run(s, s->now + MS, end_fault);
        all = all_have_ended(s);
        for (size_t i = 0; i < s->nodes; i++)
            if (s->node[i].up && !s->node[i].turncoat && s->node[i].status)
                fail_msg("node %zu: %s", i, kofn_errmsg());
    }
}

static void try_scenario(const scenario *o, outcome *sum)
{
    fixture f;
    sim s;

    scenario_up(&s, &f, o);
    run_to_the_end(&s, 120 * KOFN_SECOND);
    scenario_end(&s, &f, sum);
    mesh_down(&s, &f);
    scenario_text[0] = 0;
}

/* Returns the distance between places, by day and in the long form. Under a
 * sanitizer it is larger. */
static size_t stride(size_t day, size_t night)
{
    double x = test_scale() < 1 ? (double)day / (4 * test_scale())
                                : (double)night / test_scale();

    return x * SLOWED < 1 ? 1 : (size_t)(x * SLOWED);
}

static size_t packets_of(const scenario *o)
{
    outcome alone = {0};

    try_scenario(o, &alone);
    assert_at_most(alone.worst, 1e-9);
    assert_true(alone.blocks > 0 && alone.injected == 0);
    return alone.packets;
}

static size_t nodes_of(const scenario *o, size_t kind)
{
    return kind == LOSE_ALL ? 1 : o->l->nodes;
}

/* Injects each kind of fault into each node before every `each`-th packet.
 * Returns the number of runs. */
static size_t try_places(const scenario *of, size_t first, size_t last,
                         size_t each, outcome *sum)
{
    size_t packets = packets_of(of), runs = 0;

    for (size_t kind = first; kind < last; kind++)
        for (size_t i = 0; i < nodes_of(of, kind); i++)
            for (size_t m = 1 + (7 * kind + 3 * i) % each; m <= packets;
                 m += each, runs++) {
                scenario o = *of;

                o.report_deaths = (m + i) % 2;
                o.timed_fault[0] =
                    (timed_fault){m, kind == JOIN ? o.l->nodes : i, kind};
                o.timed_faults = 1;
                try_scenario(&o, sum);
            }
    return runs;
}

static void print_outcome(size_t runs, const outcome *sum)
{
    print_message(
        "EVENTS %zu in %zu runs: worst deviation %.3g, drift %.3g of "
        "%zu blocks; %zu vectors taken, %zu outvoted, %zu partial products "
        "left out, %zu recomputed, %zu rebuilt, %zu returned\n",
        sum->injected, runs, sum->worst, sum->drift, sum->blocks, sum->adopted,
        sum->outvoted, sum->left_out, sum->again, sum->rebuilt, sum->back);
}

static void honest(void **state)
{
    outcome sum = {0};
    size_t runs = 0;

    (void)state;
    for (size_t i = 0; i < 3; i++)
        runs += try_places(&cases[i], 0, LOSE_ALL, stride(37, 1), &sum);
    print_outcome(runs, &sum);
    assert_int_equal(sum.back, 0);
    assert_true(sum.injected > 0 && sum.adopted > 0);
}

static void guarded(void **state)
{
    outcome sum = {0};
    size_t runs = 0;

    (void)state;
    for (size_t i = 3; i < 5; i++)
        runs += try_places(&cases[i], 0, LOSE_ALL,
                           stride(i < 4 ? 101 : 997, i < 4 ? 1 : 4), &sum);
    print_outcome(runs, &sum);
    assert_true(sum.injected > 0 && sum.adopted > 0);
}

static void all_lost(void **state)
{
    outcome sum = {0};
    size_t runs = 0;

    (void)state;
    for (size_t i = 3; i < 7; i++)
        runs +=
            try_places(&cases[i], LOSE_ALL, LOSE_ALL + 1, stride(50, 1), &sum);
    print_outcome(runs, &sum);
}

static void erring(void **state)
{
    outcome sum = {0};
    size_t runs = 0;

    (void)state;
    for (size_t i = 7; i < COUNT(cases); i++)
        runs += try_places(&cases[i], FLIP, KINDS,
                           stride(i < 8 ? 83 : 797, i < 8 ? 1 : 8), &sum);
    print_outcome(runs, &sum);
    assert_int_equal(sum.back, 0);
    assert_true(sum.outvoted > 0 && sum.left_out > 0);
}

/* ---- two faults ---------------------------------------------------------- */

/* More nodes, so that one may err while another is down. */
static const training_case larger_case = {
    .scheme = "matdot:n=2", .nodes = 6, NET, .momentum = 0.9};

/* Returns the packet before which node 0 has done `turn` steps and returned
 * `times` times. */
static size_t packet_of(const scenario *o, uint64_t turn, size_t times)
{
    size_t at;
    fixture f;
    sim s;

    scenario_up(&s, &f, o);
    while (s.node[0].host->blocks.changing.turn < turn ||
           s.node[0].host->disk.back.times < times)
        sim_run(&s, s.now + MS, end_fault);
    at = s.delivered;
    mesh_down(&s, &f);
    return at;
}

static size_t another(const scenario *o, size_t i, size_t d)
{
    return (i + 1 + d % (o->l->nodes - 1)) % o->l->nodes;
}

static void try_with(const scenario *of, size_t m, size_t node, size_t kind,
                     outcome *sum)
{
    scenario o = *of;

    o.timed_fault[o.timed_faults++] = (timed_fault){m, node, kind};
    try_scenario(&o, sum);
}

/* A node was down for long enough that it rebuilds its blocks from the others.
 * Meanwhile one of the others fails. */
static void lender_fails(void **state)
{
    static const size_t kinds[] = {DIE, STOP, CUT_OFF, REPLACED, RESTART, FLAP};
    scenario o = {.l = &larger_case, .epochs = 5};
    size_t each = stride(331, 11), went = packet_of(&o, 1, 0), k = 0, runs = 0;
    outcome sum = {0};

    (void)state;
    for (size_t i = 1; i < o.l->nodes; i++) {
        size_t came;

        o.timed_fault[0] = (timed_fault){went, i, DIE};
        o.timed_faults = 1;
        came = packet_of(&o, 6, 0);
        o.timed_fault[o.timed_faults++] = (timed_fault){came, i, JOIN};
        for (size_t j = 0; j < COUNT(kinds); j++)
            for (size_t d = 1 + 5 * k++ % each; d < 400; d += each, runs++) {
                o.report_deaths = d % 2;
                try_with(&o, came + d, another(&o, i, d), kinds[j], &sum);
            }
    }
    print_outcome(runs, &sum);
    assert_happened(sum.rebuilt > 0);
}

static void flip_while_stopped(void **state)
{
    scenario o = {.l = &larger_case,
                  .epochs = 12, /* the node is back before the others end */
                  .errors = KOFN_ERRORS_PROBABILISTIC,
                  .scrub = 1};
    size_t each = stride(197, 7), at = packet_of(&o, 2, 0), k = 0, runs = 0;
    outcome sum = {0};

    (void)state;
    for (size_t i = 0; i < o.l->nodes; i++)
        for (size_t m = at; m < at + 300; m += 60)
            for (size_t d = 1 + 5 * k++ % each; d < 200; d += each, runs++) {
                o.seed = d;
                o.report_deaths = d % 2;
                o.timed_fault[0] = (timed_fault){m, i, STOP};
                o.timed_faults = 1;
                try_with(&o, m + d, i, FLIP, &sum);
            }
    print_outcome(runs, &sum);
    assert_true(2 * sum.rebuilt >= runs);
}

/* The leader dies before or after it has decided, and another node errs in the
 * next result. */
static void error_as_leader_dies(void **state)
{
    scenario o = {.l = &larger_case,
                  .epochs = 2,
                  .errors = KOFN_ERRORS_PROBABILISTIC,
                  .every = 2};
    size_t each = stride(397, 7), at = packet_of(&o, 1, 0), k = 0, runs = 0;
    outcome sum = {0};

    (void)state;
    for (size_t kind = ERR_ENCODING; kind <= ERR_UPDATE; kind++)
        for (size_t i = 1; i < o.l->nodes; i++)
            for (size_t d = 1 + 5 * k++ % each; d < 400; d += each, runs++) {
                o.report_deaths = d % 2;
                o.timed_fault[0] = (timed_fault){at + d - d % 40, i, kind};
                o.timed_faults = 1;
                try_with(&o, at + d, 0, DIE, &sum);
            }
    print_outcome(runs, &sum);
}

/* Enough nodes err that all return. */
static const scenario lost = {.l = &larger_case,
                              .epochs = 3,
                              .errors = KOFN_ERRORS_PROBABILISTIC,
                              .every = 2,
                              .lost = true,
                              .lost_at = 3};

static void absent_on_return(void **state)
{
    static const size_t kinds[] = {CUT_OFF, STOP, RESTART, REPLACED, FLAP};
    scenario o = lost;
    size_t each = stride(601, 31), at = packet_of(&o, 0, 1), k = 0, runs = 0;
    size_t nodes = test_scale() < 1 ? 1 : o.l->nodes;
    outcome sum = {0};

    (void)state;
    for (size_t j = 0; j < COUNT(kinds); j++)
        for (size_t i = 0; i < nodes; i++)
            for (size_t d = 1 + 5 * k++ % each; d < 1000; d += each, runs++) {
                o.report_deaths = d % 2;
                try_with(&o, at - 500 + d, i, kinds[j], &sum);
            }
    print_outcome(runs, &sum);
    assert_true(sum.back >= runs * (o.l->nodes - 1));
}

/* ---- regressions --------------------------------------------------------- */

/* A node is stopped until the others have the last iterate. It computes that
 * iterate itself, under another lineage, and no other node could confirm that
 * both are the same. */
static void two_lineages(void **state)
{
    scenario o = cases[7];
    outcome sum = {0};

    (void)state;
    o.report_deaths = true;
    for (size_t m = 317; m < 325; m++) {
        o.timed_faults = 0;
        try_with(&o, m, 0, STOP, &sum);
    }
    assert_int_equal(sum.back, 0);
}

/* The leader dies when it and one other node have an iterate. It restarts with
 * nothing. Three nodes are then at three iterates, and none can be confirmed.
 */
static void three_iterates(void **state)
{
    scenario o = cases[3];
    outcome sum = {0};

    (void)state;
    for (size_t m = 1; m < 340; m++) {
        o.timed_faults = 0;
        try_with(&o, m, 0, REPLACED, &sum);
    }
    assert_true(sum.back > 0);
}

static void joins_after_return(void **state)
{
    size_t at = packet_of(&lost, 0, 1);
    outcome sum = {0};

    (void)state;
    try_with(&lost, at + 60, 0, RESTART, &sum);
    assert_int_equal(sum.back, lost.l->nodes);
}

/* Nodes that return to the start, and one that joins then, have the same
 * blocks and the same input. So no partial product is left out. */
static void joins_at_the_start(void **state)
{
    scenario o = lost;
    size_t at, comes = o.l->nodes - 1;

    (void)state;
    o.lost_at = 1;
    o.report_deaths = true;
    at = packet_of(&o, 0, 1);
    for (size_t m = at - 60; m < at; m += 20) {
        outcome sum = {0};
        fixture f;
        sim s;

        o.timed_fault[0] = (timed_fault){m, comes, RESTART};
        o.timed_faults = 1;
        scenario_up(&s, &f, &o);
        run_to_the_end(&s, 120 * KOFN_SECOND);
        for (size_t i = 0; i < o.l->nodes; i++) {
            kofn_node_view v; /* of the current attempt */

            kf_node_look(s.node[i].host->node, &v);
            assert_int_equal(v.left_out, 0);
        }
        scenario_end(&s, &f, &sum);
        assert_int_equal(sum.back, o.l->nodes);
        mesh_down(&s, &f);
        scenario_text[0] = 0;
    }
}

/* ---- a run that is described --------------------------------------------- */

static void repeat(void **state)
{
    const char *at = getenv("KOFN_TEST_SCENARIO");
    unsigned which;
    unsigned long long seed;
    outcome sum = {0};
    char name[20];
    int n;
    scenario o;

    (void)state;
    if (!at || sscanf(at, "%u %llu%n", &which, &seed, &n) < 2)
        return;
    assert_true(which < COUNT(cases));
    o = cases[which];
    o.seed = seed / 2;
    o.report_deaths = seed % 2;
    for (at += n; o.timed_faults < FAULTS_MAX; at += n, o.timed_faults++) {
        timed_fault *b = &o.timed_fault[o.timed_faults];

        if (sscanf(at, " %19[a-z_]@%zu:%zu%n", name, &b->when, &b->node, &n) <
            3)
            break;
        while (b->kind < KINDS && strcmp(kind_names[b->kind], name) != 0)
            b->kind++;
        assert_true(b->kind < KINDS);
    }
    try_scenario(&o, &sum);
    print_outcome(1, &sum);
}

#define CASE(test, sentence) TEST_AROUND(test, sentence, NULL, print_scenario)

TEST_FILE(train_histories_test)
{
    const struct CMUnitTest tests[] = {
        CASE(
            honest,
            "train: one fault of a node at any packet leaves the result right"),
        CASE(guarded,
             "train: one fault leaves it right if errors are searched as well"),
        CASE(all_lost,
             "train: losing all nodes at any packet leaves the result right"),
        CASE(erring, "train: one error in any place at any packet is found"),
        CASE(lender_fails,
             "train: a node rebuilds its blocks while another node fails"),
        CASE(flip_while_stopped,
             "train: a bit that flips while the node is stopped is found"),
        CASE(error_as_leader_dies,
             "train: an error of a node as the leader dies is found"),
        CASE(absent_on_return,
             "train: a node that is down as all return follows them"),
        CASE(two_lineages,
             "train: a last iterate of two lineages ends the run"),
        CASE(three_iterates,
             "train: three nodes at three iterates return to a checkpoint"),
        CASE(joins_after_return,
             "train: a node that joins after all returned follows them"),
        CASE(joins_at_the_start,
             "train: a node that joins at the start loses no partial product"),
        CASE(repeat, "train: KOFN_TEST_SCENARIO repeats one run"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, make_folders, remove_folders);
}
