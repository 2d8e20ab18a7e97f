/* train_histories_test.c -- trainings without a master to which something
 * happens at whatever moment: before each packet of a run of three nodes, two
 * layers and two steps, each of what can befall a node befalls each of the
 * nodes (train_story.h says what must hold).  Then two things, where two are
 * most dangerous.
 *
 * Where errors are looked for there are as many nodes as are needed to tell one
 * that errs: three where the pieces of one decode, five where three must.
 *
 * KOFN_TEST_STORY="CASE SEED KIND@PACKET:NODE ..." has the test `told` repeat
 * one, CASE being its place in `cases`. */
#include "train_story.h"

#define NET                                                                    \
    .layers = 2, .widths = {SIDE * SIDE, 5, 3}, .activation = KOFN_TANH,       \
    .batch = 6

static const lesson lessons_told[] = {
    /* each has everything, and any two go on: one that errs is told by the
       others */
    {.scheme = "gpd:m=1,n=1,p=1", .nodes = 3, NET, .momentum = 0.9},
    /* all three are needed, and two determine the third's block */
    {.scheme = "matdot:n=2", .nodes = 3, NET},
    /* three are needed, and four to see that one errs */
    {.scheme = "matdot:n=2", .nodes = 5, NET, .momentum = 0.9},
};

static const story cases[] = {
    {.l = &lessons_told[0], .epochs = 1},
    {.l = &lessons_told[1], .epochs = 1},
    {.l = &lessons_told[0], .epochs = 1, .distributed = true},
    /* with files, so that nodes that are left at several iterates go back */
    {.l = &lessons_told[0],
     .epochs = 1,
     .errors = KOFN_ERRORS_ADVERSARIAL,
     .every = 1},
    {.l = &lessons_told[2],
     .epochs = 1,
     .errors = KOFN_ERRORS_PROBABILISTIC,
     .every = 1},
    {.l = &lessons_told[0], .epochs = 1, .every = 1},
    {.l = &lessons_told[1], .epochs = 1, .every = 1},
    /* nothing but numbers is wrong */
    {.l = &lessons_told[0],
     .epochs = 1,
     .errors = KOFN_ERRORS_ADVERSARIAL,
     .scrub = 1},
    {.l = &lessons_told[2],
     .epochs = 1,
     .errors = KOFN_ERRORS_PROBABILISTIC,
     .scrub = 1},
    {.l = &lessons_told[2],
     .epochs = 1,
     .errors = KOFN_ERRORS_ADVERSARIAL,
     .scrub = 1},
};

/* Until all who are there have ended. */
static void play(sim *s, kofn_time by)
{
    for (bool all = false; !all;) {
        if (s->now >= by) {
            sim_print(s);
            fail_msg("not everybody has ended after %.3g s",
                     (double)s->now * 1e-9);
        }
        sim_run(s, s->now + MS, later);
        all = all_have_ended(s);
        for (size_t i = 0; i < s->nodes; i++)
            if (s->node[i].up && !s->node[i].turncoat && s->node[i].status)
                fail_msg("node %zu: %s", i, kofn_errmsg());
    }
}

static void try_story(const story *o, told *sum)
{
    fixture f;
    sim s;

    story_up(&s, &f, o);
    play(&s, 120 * KOFN_SECOND);
    story_end(&s, &f, sum);
    mesh_down(&s, &f);
    now_told[0] = 0;
}

/* Every so many-th place, by day and in the long form; fewer under a
 * sanitizer. */
static size_t stride(size_t day, size_t night)
{
    double x = test_scale() < 1 ? (double)day / (4 * test_scale())
                                : (double)night / test_scale();

    return x * SLOWED < 1 ? 1 : (size_t)(x * SLOWED);
}

static size_t packets_of(const story *o)
{
    told alone = {0};

    try_story(o, &alone);
    assert_at_most(alone.worst, 1e-9);
    assert_true(alone.blocks > 0 && alone.happened == 0);
    return alone.packets;
}

static size_t nodes_of(const story *o, size_t kind)
{
    return kind == ALL ? 1 : o->l->nodes;
}

/* Of each kind, to each node, before every so many-th packet. */
static size_t try_places(const story *of, size_t first, size_t last,
                         size_t each, told *sum)
{
    size_t packets = packets_of(of), runs = 0;

    for (size_t kind = first; kind < last; kind++)
        for (size_t i = 0; i < nodes_of(of, kind); i++)
            for (size_t m = 1 + (7 * kind + 3 * i) % each; m <= packets;
                 m += each, runs++) {
                story o = *of;

                o.tell = (m + i) % 2;
                o.blow[0] = (blow){m, kind == COME ? o.l->nodes : i, kind};
                o.blows = 1;
                try_story(&o, sum);
            }
    return runs;
}

static void tell_sum(size_t runs, const told *sum)
{
    print_message("EVENTS %zu in %zu runs: worst deviation %.3g, drift %.3g of "
                  "%zu blocks; %zu vectors taken, %zu outvoted, %zu pieces "
                  "left out, %zu made again, %zu healed, %zu went back\n",
                  sum->happened, runs, sum->worst, sum->drift, sum->blocks,
                  sum->adopted, sum->outvoted, sum->left_out, sum->again,
                  sum->healed, sum->back);
}

static void honest(void **state)
{
    told sum = {0};
    size_t runs = 0;

    (void)state;
    for (size_t i = 0; i < 3; i++)
        runs += try_places(&cases[i], 0, ALL, stride(37, 1), &sum);
    tell_sum(runs, &sum);
    assert_int_equal(sum.back, 0);
    assert_true(sum.happened > 0 && sum.adopted > 0);
}

static void guarded(void **state)
{
    told sum = {0};
    size_t runs = 0;

    (void)state;
    for (size_t i = 3; i < 5; i++)
        runs += try_places(&cases[i], 0, ALL,
                           stride(i < 4 ? 101 : 997, i < 4 ? 1 : 4), &sum);
    tell_sum(runs, &sum);
    assert_true(sum.happened > 0 && sum.adopted > 0);
}

static void all_lost(void **state)
{
    told sum = {0};
    size_t runs = 0;

    (void)state;
    for (size_t i = 3; i < 7; i++)
        runs += try_places(&cases[i], ALL, ALL + 1, stride(50, 1), &sum);
    tell_sum(runs, &sum);
}

static void erring(void **state)
{
    told sum = {0};
    size_t runs = 0;

    (void)state;
    for (size_t i = 7; i < COUNT(cases); i++)
        runs += try_places(&cases[i], FLIP, KINDS,
                           stride(i < 8 ? 83 : 797, i < 8 ? 1 : 8), &sum);
    tell_sum(runs, &sum);
    assert_int_equal(sum.back, 0);
    assert_true(sum.outvoted > 0 && sum.left_out > 0);
}

/* ---- two things ---------------------------------------------------------- */

/* More nodes, so that one may err while another is away. */
static const lesson longer = {
    .scheme = "matdot:n=2", .nodes = 6, NET, .momentum = 0.9};

/* The packet before which one node has done so many steps, and gone back so
 * often. */
static size_t packet_of(const story *o, uint64_t turn, size_t times)
{
    size_t at;
    fixture f;
    sim s;

    story_up(&s, &f, o);
    while (s.node[0].host->changing.turn < turn ||
           s.node[0].host->back.times < times)
        sim_run(&s, s.now + MS, later);
    at = s.delivered;
    mesh_down(&s, &f);
    return at;
}

static size_t another(const story *o, size_t i, size_t d)
{
    return (i + 1 + d % (o->l->nodes - 1)) % o->l->nodes;
}

static void try_with(const story *of, size_t m, size_t node, size_t kind,
                     told *sum)
{
    story o = *of;

    o.blow[o.blows++] = (blow){m, node, kind};
    try_story(&o, sum);
}

/* A node has been away for so long that it makes its blocks of those of others,
 * and something befalls one of these meanwhile. */
static void others_go_while_one_heals(void **state)
{
    static const size_t kinds[] = {DIE, STOP, APART, REPLACED, AGAIN, FLAP};
    story o = {.l = &longer, .epochs = 5};
    size_t each = stride(331, 11), went = packet_of(&o, 1, 0), k = 0, runs = 0;
    told sum = {0};

    (void)state;
    for (size_t i = 1; i < o.l->nodes; i++) {
        size_t came;

        o.blow[0] = (blow){went, i, DIE};
        o.blows = 1;
        came = packet_of(&o, 6, 0);
        o.blow[o.blows++] = (blow){came, i, COME};
        for (size_t j = 0; j < COUNT(kinds); j++)
            for (size_t d = 1 + 5 * k++ % each; d < 400; d += each, runs++) {
                o.tell = d % 2;
                try_with(&o, came + d, another(&o, i, d), kinds[j], &sum);
            }
    }
    tell_sum(runs, &sum);
    assert_happened(sum.healed > 0);
}

/* A block changes while its node is stopped, and the others go on. */
static void memory_flips_while_stopped(void **state)
{
    story o = {.l = &longer,
               .epochs = 12, /* it is back before the others end */
               .errors = KOFN_ERRORS_PROBABILISTIC,
               .scrub = 1};
    size_t each = stride(197, 7), at = packet_of(&o, 2, 0), k = 0, runs = 0;
    told sum = {0};

    (void)state;
    for (size_t i = 0; i < o.l->nodes; i++)
        for (size_t m = at; m < at + 300; m += 60)
            for (size_t d = 1 + 5 * k++ % each; d < 200; d += each, runs++) {
                o.seed = d;
                o.tell = d % 2;
                o.blow[0] = (blow){m, i, STOP};
                o.blows = 1;
                try_with(&o, m + d, i, FLIP, &sum);
            }
    tell_sum(runs, &sum);
    assert_true(2 * sum.healed >= runs);
}

/* The leader goes, before or after it has decided, and another node errs in
 * what comes next. */
static void one_errs_as_the_leader_goes(void **state)
{
    story o = {.l = &longer,
               .epochs = 2,
               .errors = KOFN_ERRORS_PROBABILISTIC,
               .every = 2};
    size_t each = stride(397, 7), at = packet_of(&o, 1, 0), k = 0, runs = 0;
    told sum = {0};

    (void)state;
    for (size_t kind = ENCODES; kind <= UPDATES; kind++)
        for (size_t i = 1; i < o.l->nodes; i++)
            for (size_t d = 1 + 5 * k++ % each; d < 400; d += each, runs++) {
                o.tell = d % 2;
                o.blow[0] = (blow){at + d - d % 40, i, kind};
                o.blows = 1;
                try_with(&o, at + d, 0, DIE, &sum);
            }
    tell_sum(runs, &sum);
}

/* So many err that all go back. */
static const story lost = {.l = &longer,
                           .epochs = 3,
                           .errors = KOFN_ERRORS_PROBABILISTIC,
                           .every = 2,
                           .lost = true,
                           .lost_at = 3};

/* One is cut off, stops or goes as they do. */
static void one_is_away_as_all_go_back(void **state)
{
    static const size_t kinds[] = {APART, STOP, AGAIN, REPLACED, FLAP};
    story o = lost;
    size_t each = stride(601, 31), at = packet_of(&o, 0, 1), k = 0, runs = 0;
    size_t nodes = test_scale() < 1 ? 1 : o.l->nodes;
    told sum = {0};

    (void)state;
    for (size_t j = 0; j < COUNT(kinds); j++)
        for (size_t i = 0; i < nodes; i++)
            for (size_t d = 1 + 5 * k++ % each; d < 1000; d += each, runs++) {
                o.tell = d % 2;
                try_with(&o, at - 500 + d, i, kinds[j], &sum);
            }
    tell_sum(runs, &sum);
    assert_true(sum.back >= runs * (o.l->nodes - 1));
}

/* ---- histories that were found ------------------------------------------- */

/* A node is stopped until the others have the last iterate, and makes it
 * itself, under another mark: nobody could tell it that it is the same. */
static void last_iterates_under_two_marks(void **state)
{
    story o = cases[7];
    told sum = {0};

    (void)state;
    o.tell = true;
    for (size_t m = 317; m < 325; m++) {
        o.blows = 0;
        try_with(&o, m, 0, STOP, &sum);
    }
    assert_int_equal(sum.back, 0);
}

/* The leader dies when it and one other have an iterate, whenever that is, and
 * comes again with nothing: three nodes at three iterates, of which none is
 * believed.  They go back. */
static void nobody_is_believed(void **state)
{
    story o = cases[3];
    told sum = {0};

    (void)state;
    for (size_t m = 1; m < 340; m++) {
        o.blows = 0;
        try_with(&o, m, 0, REPLACED, &sum);
    }
    assert_true(sum.back > 0);
}

/* A node that comes when the others have gone back does as they did. */
static void one_comes_when_all_went_back(void **state)
{
    size_t at = packet_of(&lost, 0, 1);
    told sum = {0};

    (void)state;
    try_with(&lost, at + 60, 0, AGAIN, &sum);
    assert_int_equal(sum.back, lost.l->nodes);
}

/* Nodes that go back to the start, and one that comes then, have the same
 * blocks, and multiply them by the same: no piece is left out any more. */
static void one_comes_to_the_start(void **state)
{
    story o = lost;
    size_t at, comes = o.l->nodes - 1;

    (void)state;
    o.lost_at = 1;
    o.tell = true;
    at = packet_of(&o, 0, 1);
    for (size_t m = at - 60; m < at; m += 20) {
        told sum = {0};
        fixture f;
        sim s;

        o.blow[0] = (blow){m, comes, AGAIN};
        o.blows = 1;
        story_up(&s, &f, &o);
        play(&s, 120 * KOFN_SECOND);
        for (size_t i = 0; i < o.l->nodes; i++) {
            kofn_node_view v; /* of the attempt */

            kf_node_look(s.node[i].host->node, &v);
            assert_int_equal(v.left_out, 0);
        }
        story_end(&s, &f, &sum);
        assert_int_equal(sum.back, o.l->nodes);
        mesh_down(&s, &f);
        now_told[0] = 0;
    }
}

/* ---- one that is told ---------------------------------------------------- */

static void repeat(void **state)
{
    const char *at = getenv("KOFN_TEST_STORY");
    unsigned which;
    unsigned long long seed;
    told sum = {0};
    char name[20];
    int n;
    story o;

    (void)state;
    if (!at || sscanf(at, "%u %llu%n", &which, &seed, &n) < 2)
        return;
    assert_true(which < COUNT(cases));
    o = cases[which];
    o.seed = seed / 2;
    o.tell = seed % 2;
    for (at += n; o.blows < BLOWS; at += n, o.blows++) {
        blow *b = &o.blow[o.blows];

        if (sscanf(at, " %19[a-z]@%zu:%zu%n", name, &b->when, &b->node, &n) < 3)
            break;
        while (b->kind < KINDS && strcmp(kind_names[b->kind], name) != 0)
            b->kind++;
        assert_true(b->kind < KINDS);
    }
    try_story(&o, &sum);
    tell_sum(1, &sum);
}

#define CASE(test) cmocka_unit_test_teardown(test, tell_story)

TEST_FILE(train_histories_test)
{
    const struct CMUnitTest tests[] = {
        CASE(honest),
        CASE(guarded),
        CASE(all_lost),
        CASE(erring),
        CASE(others_go_while_one_heals),
        CASE(memory_flips_while_stopped),
        CASE(one_errs_as_the_leader_goes),
        CASE(one_is_away_as_all_go_back),
        CASE(last_iterates_under_two_marks),
        CASE(nobody_is_believed),
        CASE(one_comes_when_all_went_back),
        CASE(one_comes_to_the_start),
        CASE(repeat),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, make_folders, remove_folders);
}
