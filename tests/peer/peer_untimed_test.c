/* peer_untimed_test.c -- nodes that all are well, and lose nothing, wait for
 * each other and for no timer: where whatever is repeated is repeated after an
 * hour only, they end within a minute of the clock that they are handed.  By
 * every way to decode, by codes that need all pieces or few, where some are
 * slower than others, and in trainings. Nobody is hostile: else who is behind
 * may have to wait until enough others stand where it can follow. */
#include "train_mesh_rig.h"

#define HOUR (3600 * KOFN_SECOND)
#define MINUTE (60 * KOFN_SECOND)

enum { ROWS = 19, STEPS = 12 };

/* Where they are and how fast they are is drawn: packets may take far less time
 * than pieces, or more, so that a node hears of an iterate before it has it. */
static void start_at_odds(sim *s)
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
        checks = false; /* there is nothing to tell wrong pieces by */
    s.opt.errors = errors[checks];
    if (seed % 3 == 1)
        s.opt.decoding = KOFN_DECODE_DISTRIBUTED;
    start_at_odds(&s);
    sim_finish(&s, MINUTE, NULL, spec, seed);
    sim_down(&s);
}

static void products_wait_for_no_timer(void **state)
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

/* In the last all nodes are needed by a stage, and in others of the same step
 * only two, who go on without the third until they need it. */
static const lesson small[] = {
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

static void try_lesson(const lesson *l, uint64_t seed)
{
    fixture f;
    sim s;

    mesh_up(&s, &f, l, 3, seed);
    if (seed % 3 == 1)
        s.opt.decoding = KOFN_DECODE_DISTRIBUTED;
    if (seed % 3 == 2 && f.needs < l->nodes)
        s.opt.errors = KOFN_ERRORS_DETECT;
    start_at_odds(&s);
    sim_finish(&s, MINUTE, NULL, l->scheme, seed);
    mesh_down(&s, &f);
}

static void trainings_wait_for_no_timer(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < often(24); seed++) {
        for (size_t i = 0; i < COUNT(small); i++)
            try_lesson(&small[i], seed);
        for (size_t i = 0; i < COUNT(lessons); i++)
            try_lesson(&lessons[i], seed);
    }
}

/* Found: who is behind makes an iterate itself while the one that it asked for
 * is on its way, and has to ask for that again, or would not have taken it for
 * having all pieces of its own next one. */
static void answers_are_not_lost(void **state)
{
    (void)state;
    try_code("elastic:k=1", 6, 156);
    try_lesson(&lessons[0], 186);
    try_lesson(&small[0], 215);
    try_lesson(&lessons[0], 279);
}

TEST_FILE(peer_untimed_test)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_wait_for_no_timer),
        cmocka_unit_test(trainings_wait_for_no_timer),
        cmocka_unit_test(answers_are_not_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
