/* pcr_numerics_test.c -- the accuracy of polynomially coded regression, and
 * the answers that takes (math/numerics.md 3.4 and 3.6). */
#include "pcr_rig.h"

/* Returns the place of a seat, from its row of G. On the circle the middle
 * entries are the cosine and sine of its angle; on the line the second is its
 * point. */
static double place_of(const herd *h, uint32_t seat)
{
    bool line = strstr(h->plan->spec, "lagrange");
    size_t mid = h->L->symbols / 2;
    double c = 0, z = 0, x = 0;
    const kf_seat *s;

    assert_ok(kf_code_seat(h->code, seat, &s));
    for (size_t e = 0; e < s->G[0].n; e++) {
        c = s->G[0].col[e] == mid - 1 ? s->G[0].val[e] : c;
        z = s->G[0].col[e] == mid + 1 ? s->G[0].val[e] : z;
        x = s->G[0].col[e] == 1 ? s->G[0].val[e] : x;
    }
    return line ? x : atan2(z, c);
}

/* Selects k neighbours in place, from the at-th on. */
static void arc(const herd *h, uint32_t *set, size_t k, size_t at)
{
    double place[256];

    for (size_t i = 0; i < h->n; i++)
        place[i] = place_of(h, (uint32_t)i);
    for (size_t i = 0, j = 0; i < h->n; i++) {
        size_t rank = 0;

        for (size_t q = 0; q < h->n; q++)
            rank += place[q] < place[i];
        if ((rank + h->n - at) % h->n < k)
            set[j++] = (uint32_t)i;
    }
}

typedef struct tally {
    double error; /* error of answers with a useful prediction */
    size_t hopeless;
} tally;

static void measure(const herd *h, const uint32_t *set, size_t k, tally *t)
{
    kofn_decoder *d;
    kofn_status st = kf_decoder_new(&d, h->code, set, k, false);

    if (st || d->predicted > 1e-2) {
        assert_true(st == KOFN_OK || st == KOFN_UNSTABLE);
        t->hopeless++;
    } else {
        assert_at_most(error_of(h, d), d->predicted);
        t->error = fmax(t->error, error_of(h, d));
    }
    kf_decoder_free(d);
}

/* math/numerics.md 3.4: the worst loss of N - K, neighbours in angle, to one
 * digit and for one draw. Losses of neighbours in number stay at rounding. */
static void circle_table(void **state)
{
    static const size_t lost[] = {1, 2, 3, 4, 5, 6, 8, 10};
    static const struct {
        size_t c;
        double error[8];
    } table[] = {
        {3, {3e-16, 7e-16, 7e-16, 3e-15, 4e-15, 7e-15, 2e-14, 3e-14}},
        {5, {5e-16, 1e-15, 4e-15, 1e-14, 4e-14, 7e-14, 2e-13, 6e-13}},
        {10, {6e-16, 4e-15, 2e-14, 1e-13, 5e-13, 1e-12, 9e-12, 6e-11}},
        {20, {9e-16, 1e-14, 1e-13, 1e-12, 5e-12, 6e-11, 1e-9, 1e-8}},
        {30, {2e-15, 3e-14, 6e-13, 7e-12, 5e-11, 5e-10, 2e-8, 5e-7}},
        {50, {2e-15, 8e-14, 2e-12, 4e-11, 5e-10, 7e-9, 5e-7, 5e-5}},
    };

    (void)state;
    for (size_t i = 0; i < (SLOWED == 1 ? 6 : 3); i++)
        for (size_t s = 0; s < 8; s++) {
            size_t c = table[i].c, K = 2 * c - 1, n = K + lost[s];
            size_t r = (n + c - 1) / c;
            tally arcs = {0}, racks = {0};
            uint32_t set[128];
            char spec[40];
            herd h;

            if (blocks_of(n, r) != c) /* no r gives this number of blocks */
                continue;
            snprintf(spec, sizeof spec, "pcr:r=%zu", r);
            herd_up(&h, spec, n, 8 * c, 24, KOFN_F64);
            for (size_t at = 0; at < 4; at++) {
                arc(&h, set, K, at * n / 4);
                measure(&h, set, K, &arcs);
                window(set, K, n, at * n / 4);
                measure(&h, set, K, &racks);
            }
            assert_int_equal(arcs.hopeless + racks.hopeless, 0);
            assert_at_most(arcs.error, 2 * table[i].error[s] + 2e-15);
            assert_at_most(racks.error, 2.4e-14);
            herd_down(&h);
        }
}

/* Returns the number of answers, in random order, until the guard accepts. */
static double answers_needed(const herd *h, uint32_t trial, double tolerance,
                             tally *t)
{
    kf_rng r = kf_rng_stream(trial, KF_FOR_SAMPLE, 9, 0);
    bool in[256] = {false};
    uint32_t set[256];
    size_t k = 0, n;

    for (; k < h->n; k++) {
        size_t next = (size_t)kf_rng_below(&r, h->n);
        kofn_decoder *d;

        while (in[next])
            next = (next + 1) % h->n;
        in[next] = true;
        n = 0;
        for (uint32_t i = 0; i < h->n; i++)
            if (in[i])
                set[n++] = i;
        if (n < h->L->symbols ||
            kf_decoder_new(&d, h->code, set, n, false) != KOFN_OK)
            continue;
        if (d->predicted <= tolerance) {
            t->error = fmax(t->error, error_of(h, d));
            kf_decoder_free(d);
            return (double)n;
        }
        kf_decoder_free(d);
    }
    return HUGE_VAL;
}

typedef struct figures {
    size_t n, r;
    const char *more;
    double arc, rack, random; /* worst error found, with K answers */
    double mean;              /* answers until 1e-9 is predicted */
} figures;

/* math/numerics.md 3.6, and the guard's effect: with a hundred workers some
 * sets of 19 are useless, but 20 almost always suffice. */
static void many_workers(void **state)
{
    static const figures table[] = {
        {40, 10, "", 1e-10, 3e-14, 1e-10, 7.01},
        {40, 10, ",systematic=1", 1e-10, 3e-14, 1e-10, 7.01},
        {40, 10, ",basis=lagrange", 1e-4, 3e-14, 1e-4, 7.1},
        {100, 10, "", 1, 1e-14, 1e-4, 19.2},
        {100, 10, ",systematic=1", 1, 1e-14, 1e-4, 19.2},
        {100, 10, ",basis=lagrange", 1, 1e-11, 1e-2, 20},
    };
    size_t trials = often(200);

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const figures *t = &table[i];
        size_t K = 2 * blocks_of(t->n, t->r) - 1;
        tally arcs = {0}, racks = {0}, random = {0}, guarded = {0};
        kf_rng r = kf_rng_stream(i, KF_FOR_SAMPLE, 8, 0);
        double answers = 0;
        uint32_t set[128];
        char spec[80];
        herd h;

        snprintf(spec, sizeof spec, "pcr:r=%zu%s", t->r, t->more);
        herd_up(&h, spec, t->n, 120, 24, KOFN_F64);
        for (size_t at = 0; at < t->n; at++) {
            window(set, K, t->n, at);
            measure(&h, set, K, &racks);
            arc(&h, set, K, at);
            measure(&h, set, K, &arcs);
        }
        for (size_t q = 0; q < trials; q++) {
            random_set(&r, set, K, t->n);
            measure(&h, set, K, &random);
            answers += answers_needed(&h, (uint32_t)q, 1e-9, &guarded);
        }
        answers /= (double)trials;
        print_message("    %-36s n=%zu: arc %.1e  rack %.1e  random %.1e; "
                      "%.2f answers to 1e-9, then %.1e; %zu of %zu arcs "
                      "hopeless\n",
                      spec, t->n, arcs.error, racks.error, random.error,
                      answers, guarded.error, arcs.hopeless, t->n);
        assert_at_most(arcs.error, t->arc);
        assert_at_most(racks.error, t->rack);
        assert_at_most(random.error, t->random);
        assert_at_most(answers, t->mean);
        assert_at_most(guarded.error, 1e-9);
        herd_down(&h);
    }
}

TEST_FILE(pcr_numerics_test)
{
    const struct CMUnitTest tests[] = {
        TEST(circle_table,
             "pcr: the worst losses on the circle are those of the table"),
        TEST(many_workers,
             "pcr: of a hundred workers, 20 answers almost always suffice"),
    };

    rig_begin();
    return cmocka_run_group_tests_name("pcr_numerics", tests, NULL, NULL);
}
