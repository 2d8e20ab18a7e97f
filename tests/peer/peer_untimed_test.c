/* peer_untimed_test.c -- nodes without faults, on a network without loss, wait
 * for each other and for no timer. All timers are set to an hour, and the
 * nodes end within a minute of the simulated clock. Covers every way to
 * decode, codes that need all partial products or few, nodes of different
 * speed, and trainings. No node is hostile: otherwise a node that is behind may
 * have to wait until enough others have an iterate that it can take. */
#include "train_mesh_rig.h"

#define HOUR (3600 * KOFN_SECOND)
#define MINUTE (60 * KOFN_SECOND)

enum { ROWS = 19, STEPS = 12 };

/* Draws latency and speed of nodes. Packets may take far less time than
 * partial products, or more, so that a node hears of an iterate before it has
 * it. */
static void start_unevenly(sim *s)
{
    static const kofn_time latency[] = {MS / 50, MS / 5, MS, 5 * MS};

    s->latency = latency[kf_rng_below(&s->rng, COUNT(latency))];
    s->retries = true;
    s->opt.beat = HOUR;
    for (size_t i = 0; i < s->nodes; i++) {
        sim_start(s, i, true);
        s->node[i].slow = sim_draw(s) < 0.3 ? 1 + 9 * sim_draw(s) : 1;
    }
}

static void try_code(const char *spec, size_t nodes, uint64_t seed)
{
    static const kofn_errors errors[] = {KOFN_ERRORS_NONE, KOFN_ERRORS_DETECT};
    bool checks = seed % 3 == 2;
    sim s;

    sim_up(&s, spec, nodes, ROWS, STEPS, seed);
    if (checks && s.plan->layout.enough == nodes)
        checks =
            false; /* there are no spare partial products to find errors with */
    s.opt.errors = errors[checks];
    if (seed % 3 == 1)
        s.opt.decoding = KOFN_DECODE_DISTRIBUTED;
    start_unevenly(&s);
    sim_finish(&s, MINUTE, NULL, spec, seed);
    sim_down(&s);
}

static void products_need_no_timer(void **state)
{
    (void)state;
    for (size_t nodes = 2; nodes <= 6; nodes++)
        for (size_t k = 1; k <= nodes; k++)
            for (uint64_t seed = 0; seed < often(24); seed++) {
                char spec[64];

                snprintf(spec, sizeof spec, "%s:k=%zu",
                         seed % 2 ? "mds" : "elastic", k);
                try_code(spec, nodes, seed);
            }
}

/* In the last one, one product needs all nodes and other products of the same
 * step need two. These two continue without the third until they need it. */
static const training_case small[] = {
    {.scheme = "gpd:m=2,n=1,p=1",
     .nodes = 4,
     .layers = 2,
     .widths = {SIDE * SIDE, 7, 3}},
    {.scheme = "matdot:n=2",
     .nodes = 3,
     .layers = 2,
     .widths = {SIDE * SIDE, 5, 3},
     .momentum = 0.9},
    {.scheme = "gpd:m=2,n=1,p=1",
     .nodes = 3,
     .layers = 2,
     .widths = {SIDE * SIDE, 7, 3},
     .momentum = 0.9},
};

static void try_lesson(const training_case *l, uint64_t seed)
{
    fixture f;
    sim s;

    mesh_up(&s, &f, l, 3, seed);
    if (seed % 3 == 1)
        s.opt.decoding = KOFN_DECODE_DISTRIBUTED;
    if (seed % 3 == 2 && f.needs < l->nodes)
        s.opt.errors = KOFN_ERRORS_DETECT;
    start_unevenly(&s);
    sim_finish(&s, MINUTE, NULL, l->scheme, seed);
    mesh_down(&s, &f);
}

static void trainings_need_no_timer(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < often(24); seed++) {
        for (size_t i = 0; i < COUNT(small); i++)
            try_lesson(&small[i], seed);
        for (size_t i = 0; i < COUNT(training_cases); i++)
            try_lesson(&training_cases[i], seed);
    }
}

/* Regression: a node that was behind computed an iterate itself while the one
 * that it had requested was arriving. It had to request that again, or refused
 * it because it had all partial products of the next iterate. */
static void answers_are_not_lost(void **state)
{
    (void)state;
    try_code("elastic:k=1", 6, 156);
    try_lesson(&training_cases[0], 186);
    try_lesson(&small[0], 215);
    try_lesson(&training_cases[0], 279);
}

TEST_FILE(peer_untimed_test)
{
    const struct CMUnitTest tests[] = {
        TEST(products_need_no_timer,
             "mesh: nodes without faults iterate without a timer (k=1..6)"),
        TEST(trainings_need_no_timer,
             "mesh: nodes without faults train without a timer"),
        TEST(answers_are_not_lost,
             "mesh: an iterate that arrives late is not requested again"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
