/* peer_hostile_test.c -- hostile nodes in a mesh, beside the honest: what is
 * forged is not believed, what is computed wrongly is not taken, nobody is
 * blamed who did nothing, and the iteration goes on. */
#include "mesh_evil.h"

#include <malloc.h>

/* ---- memory --------------------------------------------------------------- */

static size_t held, most;

static void *weigh(void *ud, void *p, size_t want)
{
    (void)ud;
    held -= p ? malloc_usable_size(p) : 0;
    free(p);
    p = want ? aligned_alloc(64, (want + 63) / 64 * 64) : NULL;
    held += p ? malloc_usable_size(p) : 0;
    most = held > most ? held : most;
    return p;
}

/* ---- a run ------------------------------------------------------------------ */

typedef struct hostile {
    const char *spec;
    size_t honest, turncoats, forgers, confirm;
    uint64_t kinds;
    kofn_time pace;
    bool distributed;
    double change;
} hostile;

static void pause_somebody(sim *s, size_t id)
{
    s->node[id].stopped = s->now + 60 * MS;
}

static size_t run(const hostile *c, uint64_t seed, double *worst,
                  uint64_t *named)
{
    evil e = {.honest = c->honest,
              .forgers = c->forgers,
              .pace = c->pace,
              .until = 3 * KOFN_SECOND,
              .change = c->change,
              .kinds = c->kinds};
    size_t events;
    sim s;

    sim_up(&s, c->spec, c->honest + c->turncoats, 19, 12, seed);
    s.nodes += c->forgers;
    s.opt.confirm = c->confirm;
    if (c->distributed)
        s.opt.decoding = KOFN_DECODE_DISTRIBUTED;
    evil_start(&s, &e);
    for (size_t i = 0; i < seed % 3; i++)
        sim_at(&s, (kofn_time)(sim_draw(&s) * 80 * (double)MS), SIM_FAULT, 0,
               kf_rng_below(&s.rng, c->honest));
    sim_finish(&s, 20 * KOFN_SECOND, pause_somebody, c->spec, seed);
    evil_check(&s);
    for (size_t i = 0; i < c->honest; i++) {
        kofn_node_view v;

        kofn_node_look(s.node[i].host->node, &v);
        assert_int_equal(v.at.t, s.steps);
        *named += v.liars;
    }
    if (getenv("SHOW"))
        fprintf(stderr, "seed %llu kinds %llx d %d: %.3g s, %zu forged\n", (unsigned long long)seed, (unsigned long long)c->kinds, c->distributed,
               (double)s.now * 1e-9, e.sent);
    *worst = fmax(*worst, s.worst);
    events = e.sent;
    sim_down(&s);
    return events;
}

/* One kind of note at a time, in a flood. */
static void forged_notes(void **state)
{
    size_t events = 0;
    uint64_t named = 0;
    double worst = 0;

    (void)state;
    for (uint64_t seed = 0; seed < often(1); seed++)
        for (unsigned type = KOFN_NOTE_BEAT; type <= KOFN_NOTE_PRINT; type++)
            for (int d = 0; d < 2; d++) {
                const hostile c = {.spec = "mds:k=2",
                                   .honest = 4,
                                   .forgers = 1,
                                   .confirm = 2,
                                   .kinds = kf_bit(type),
                                   .pace = MS / 2,
                                   .distributed = d};

                events += run(&c, seed, &worst, &named);
            }
    print_message("%zu forged notes, worst deviation %.3g\n", events, worst);
}

/* What one forger can do where each is believed, and cannot where two must
 * say the same. */
static void one_is_not_believed(void **state)
{
    size_t wrong[2] = {0, 0};

    (void)state;
    for (size_t confirm = 1; confirm <= 2; confirm++)
        for (uint64_t seed = 0; seed < 8; seed++) {
            evil e = {.honest = 4,
                      .forgers = 1,
                      .pace = MS / 2,
                      .until = KOFN_SECOND,
                      .kinds = kf_bit(KOFN_NOTE_BEAT) |
                               kf_bit(KOFN_NOTE_VECTOR)};
            sim s;

            sim_up(&s, "mds:k=2", 4, 19, 12, seed);
            s.nodes++;
            s.opt.confirm = confirm;
            s.lenient = true;
            evil_start(&s, &e);
            sim_run(&s, 2 * KOFN_SECOND, NULL);
            wrong[confirm - 1] += s.wrong;
            for (size_t i = 0; i < 4 && confirm == 2; i++) {
                kofn_node_view v;

                kofn_node_look(s.node[i].host->node, &v);
                assert_true(v.final && v.at.t == s.steps);
            }
            sim_down(&s);
        }
    print_message("%zu wrong iterates where each is believed\n", wrong[0]);
    assert_true(wrong[0] > 0);
    assert_int_equal(wrong[1], 0);
}

/* One of five whose every piece is wrong is sent away by the others, and the
 * result is right. */
static void who_lies_is_named(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 6; seed++) {
        const hostile c = {.spec = seed % 2 ? "mds:k=3" : "mds:k=2",
                           .honest = 4,
                           .turncoats = 1,
                           .confirm = 2,
                           .change = 1};
        uint64_t named = 0;
        double worst = 0;

        run(&c, seed, &worst, &named);
        assert_true(named > 0);
    }
}

static void histories(void **state)
{
    static const char *const spec[] = {"mds:k=2", "mds:k=3,basis=gauss_sys",
                                       "mds:k=1", "mds:k=3"};
    static const size_t needs[] = {2, 3, 1, 3};
    const char *one = getenv("KOFN_TEST_SEED");
    uint64_t first = one ? strtoull(one, NULL, 10) : 0, named = 0;
    size_t n = often(40), events = 0;
    double worst = 0;

    (void)state;
    for (uint64_t seed = first; seed < first + n; seed++) {
        kf_rng r = kf_rng_stream(seed, KF_FOR_SAMPLE, 79, 0);
        size_t which = kf_rng_below(&r, 4);
        hostile c = {.spec = spec[which],
                     .turncoats = kf_rng_below(&r, 3),
                     .forgers = kf_rng_below(&r, 3),
                     .distributed = kf_rng_below(&r, 2),
                     .change = 0.5 * kf_rng_uniform(&r)};
        size_t bad = c.turncoats + c.forgers;

        c.honest = kf_max(needs[which], bad + 2) + kf_rng_below(&r, 2);
        c.confirm = bad + 1;
        c.pace = (kofn_time)((0.2 + 5 * kf_rng_uniform(&r)) * (double)MS);
        events += run(&c, seed, &worst, &named);
    }
    print_message("EVENTS %zu hostile notes in %zu histories: %llu times a "
                  "liar was named, worst deviation %.3g, at most %zu KiB "
                  "held\n", events, n, (unsigned long long)named, worst, most >> 10);
    assert_true(named > 0);
    assert_true(most < (size_t)64 << 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forged_notes),
        cmocka_unit_test(one_is_not_believed),
        cmocka_unit_test(who_lies_is_named),
        cmocka_unit_test(histories),
    };
    const kofn_alloc weighed = {weigh, NULL};

    rig_begin();
    kofn_set_alloc(&weighed);
    cmocka_set_test_filter(getenv("KOFN_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
