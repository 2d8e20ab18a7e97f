/* gradient_numerics_test.c -- the accuracy of sums of gradients at scale
 * (math/numerics.md 4 and 7.5): the worst of straggler sets that are
 * clustered, evenly spaced, random, or found by local search.
 *
 * Each number of a sum uses the same number of each answer. So the relative
 * error does not depend on the length of the vectors if they are long enough
 * for an average. Sets are searched with short vectors; the worst of a few
 * codes is tried again with a million numbers. */
#include "gradient_rig.h"

#define SHORT 480 /* divisible into the segments of all codes */
#define MOST 400  /* workers */

typedef struct hunt {
    sum_case f;
    size_t d, lam;    /* lam: 0 if there is one message */
    bool grouped;     /* s are missing in each group */
    double worst, of; /* errors: of all sets; of sets of s */
    bool set[MOST];   /* the worst set of s */
    kf_rng r;
} hunt;

static size_t submessages_for(const hunt *h, size_t s)
{
    return h->lam == 0 ? 1 : (h->lam + h->d - s - 1) / (h->d - s);
}

/* Groups have d workers; the last one also has the rest. */
static size_t group_end(const hunt *h, size_t from)
{
    return h->grouped && from + 2 * h->d <= h->f.n ? from + h->d : h->f.n;
}

static double try_set(hunt *h, const bool *out, size_t s)
{
    double e = error_without(&h->f, out, submessages_for(h, s));

    assert_true(e >= 0); /* it decodes */
    h->worst = fmax(h->worst, e);
    if (e > h->of) {
        h->of = e;
        memcpy(h->set, out, sizeof h->set);
    }
    return e;
}

/* Loses s of the seats [from, to) at a stride. */
static void in_step(hunt *h, bool *out, size_t from, size_t to, size_t stride,
                    size_t s)
{
    size_t n = to - from, at = kf_rng_below(&h->r, n);

    for (size_t k = 0; k < s; k++) {
        size_t i = (at + k * stride) % n;

        while (out[from + i]) /* the stride has come around */
            i = (i + 1) % n;
        out[from + i] = true;
    }
}

/* Loses s of `wide` seats in a row. */
static void in_cluster(hunt *h, bool *out, size_t from, size_t to, size_t wide,
                       size_t s)
{
    size_t n = to - from, at = kf_rng_below(&h->r, n);

    wide = kf_min(n, kf_max(wide, s));
    for (size_t k = 0; k < s;) {
        size_t i = from + (at + kf_rng_below(&h->r, wide)) % n;

        k += !out[i];
        out[i] = true;
    }
}

/* Improves the worst set: one missing worker returns and another of its group
 * is lost, while that is worse. */
static void climb(hunt *h, size_t s, size_t steps)
{
    double e = h->of;
    bool out[MOST];

    memcpy(out, h->set, sizeof out);
    for (size_t k = 0; k < steps && s > 0; k++) {
        size_t i = kf_rng_below(&h->r, h->f.n), j, from = 0;
        double now;

        while (!out[i])
            i = (i + 1) % h->f.n;
        while (group_end(h, from) <= i)
            from = group_end(h, from);
        j = from + kf_rng_below(&h->r, group_end(h, from) - from);
        if (out[j])
            continue;
        out[i] = false;
        out[j] = true;
        now = try_set(h, out, s);
        if (now > e) {
            e = now;
            continue;
        }
        out[i] = true;
        out[j] = false;
    }
}

static void sets_of(hunt *h, size_t s, size_t tries)
{
    enum { STEP, CLUSTER, RANDOM, KINDS };

    h->of = -1;
    for (size_t k = 0; k < tries; k++)
        for (int kind = STEP; kind < KINDS; kind++) {
            bool out[MOST] = {false};

            for (size_t from = 0, to; from < h->f.n; from = to) {
                size_t n = (to = group_end(h, from)) - from;

                if (kind == STEP) /* start from neighbours */
                    in_step(h, out, from, to, 1 + k % (n / 2 + 1), s);
                else
                    in_cluster(h, out, from, to, kind == CLUSTER ? 2 * s : n,
                               s);
            }
            try_set(h, out, s);
        }
    climb(h, s, 2 * tries);
}

/* Returns the worst error over up to `most` stragglers. */
static double search(const char *spec, size_t n, hunt *h, size_t most,
                     kofn_dtype dtype, size_t tries)
{
    h->worst = 0;
    h->r = kf_rng_stream(9, KF_FOR_SAMPLE, (uint32_t)n, (uint32_t)h->d);
    case_up(&h->f, spec, n, SHORT, dtype);
    for (size_t s = most > 2 ? most - 2 : 0; s <= most; s++)
        sets_of(h, s, tries);
    case_down(&h->f);
    return h->worst;
}

static const size_t fleets[] = {20, 64, 200};
#define FLEETS                                                                 \
    (SLOWED > 1 ? 2 : 3) /* sanitizers look at memory, not at digits */

static void say(const char *spec, const double *worst, kofn_dtype dtype)
{
    print_message("%-16s %s", spec, dtype == KOFN_F32 ? "float32" : "float64");
    for (size_t k = 0; k < FLEETS; k++)
        print_message("  %.1e", worst[k]);
    print_message("\n");
}

/* One message each: gc and cgc, n = 20, 64, 200. */
static void single_messages(void **state)
{
    (void)state;
    for (size_t d = 2; d <= 8; d++)
        for (size_t m = 1; m < d;
             m = m == 1 ? kf_max(2, d / 2) : d - (m + 1 < d))
            for (int f64 = 0; f64 < 2; f64++) {
                kofn_dtype dtype = f64 ? KOFN_F64 : KOFN_F32;
                double worst[3];
                char spec[30];

                if (f64 && m > 1 && d < 8)
                    continue;
                snprintf(spec, sizeof spec,
                         m == 1 ? "gc:d=%zu" : "cgc:d=%zu,m=%zu", d, m);
                for (size_t k = 0; k < FLEETS; k++) {
                    worst[k] = search(spec, fleets[k], &(hunt){.d = d}, d - m,
                                      dtype, often(f64 ? 6 : 20));
                    assert_at_most(worst[k], f64      ? 1e-12
                                             : d <= 6 ? 1e-6
                                                      : 5e-6);
                }
                say(spec, worst, dtype);
            }
}

/* Submessage by submessage, with the number that the stragglers require. */
static void submessages(void **state)
{
    static const size_t lcm[] = {0, 1, 2, 6, 12};

    (void)state;
    for (size_t d = 2; d <= 4; d++)
        for (int f64 = 0; f64 < 2; f64++) {
            kofn_dtype dtype = f64 ? KOFN_F64 : KOFN_F32;
            double worst[3];
            char spec[30];

            snprintf(spec, sizeof spec, "agc:d=%zu", d);
            for (size_t k = 0; k < FLEETS; k++) {
                hunt like = {.d = d, .lam = lcm[d]};

                worst[k] = search(spec, fleets[k], &like, d - 1, dtype,
                                  often(k == 2 || f64 ? 2 : 10));
                assert_at_most(worst[k], f64 ? 1e-12 : 2e-6);
            }
            say(spec, worst, dtype);
        }
}

/* Groups: s stragglers in each at once. */
static void groups(void **state)
{
    (void)state;
    for (size_t d = 2; d <= 8; d++)
        for (size_t m = 1; m <= (d < 8 ? 2 : 4) && m < d; m++)
            for (int f64 = 0; f64 < 2; f64++) {
                kofn_dtype dtype = f64 ? KOFN_F64 : KOFN_F32;
                double worst[3];
                char spec[30];

                if (f64 && m > 1)
                    continue;
                snprintf(spec, sizeof spec, "g-cgc:d=%zu,m=%zu", d, m);
                for (size_t k = 0; k < FLEETS; k++) {
                    hunt like = {.d = d, .grouped = true};

                    worst[k] = search(spec, fleets[k], &like, d - m, dtype,
                                      often(f64 ? 4 : 12));
                    assert_at_most(worst[k], f64 ? 1e-12 : 1e-6);
                }
                say(spec, worst, dtype);
            }
}

/* The rest of the workers makes the last group larger than d. Going back
 * through the submessages multiplies its cost (math/numerics.md 4.1). */
static void groups_in_submessages(void **state)
{
    static const struct {
        size_t d, lam, n[3];
        double limit;
    } t[] = {{2, 2, {20, 64, 200}, 1e-6},  {3, 6, {20, 64, 200}, 1e-6},
             {4, 12, {20, 64, 200}, 1e-6}, {5, 60, {19, 20, 25}, 1e-6},
             {6, 60, {6, 12, 18}, 1e-6},   {6, 60, {7, 11, 20}, 3e-5}};

    (void)state;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        hunt like = {.d = t[i].d, .lam = t[i].lam, .grouped = true};
        double worst[3];
        char spec[30];

        snprintf(spec, sizeof spec, "g-agc:d=%zu", t[i].d);
        for (size_t k = 0; k < FLEETS; k++) {
            worst[k] = search(spec, t[i].n[k], &like, t[i].d - 1, KOFN_F32,
                              often(k == 2 || t[i].d > 4 ? 2 : 8));
            assert_at_most(worst[k], t[i].limit);
        }
        say(spec, worst, KOFN_F32);
    }
}

/* The worst set of short vectors, with vectors of a million numbers. */
static void long_vectors(void **state)
{
    static const struct {
        const char *spec;
        size_t d, m, lam;
        double limit;
    } t[] = {{"gc:d=6", 6, 1, 0, 1e-6},
             {"cgc:d=8,m=4", 8, 4, 0, 5e-6},
             {"agc:d=4", 4, 1, 12, 2e-6}};

    (void)state;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        hunt h = {.d = t[i].d, .lam = t[i].lam};
        size_t s = t[i].d - t[i].m;
        double few = search(t[i].spec, 20, &h, s, KOFN_F32, often(10)), many;

        case_up(&h.f, t[i].spec, 20, 1000000 / SLOWED, KOFN_F32);
        many = error_without(&h.f, h.set, submessages_for(&h, s));
        print_message("%-12s short vectors %.2e, long %.2e\n", t[i].spec, few,
                      many);
        assert_true(many >= 0);
        assert_at_most(many, t[i].limit);
        /* equal within the spread of such an average */
        assert_true(many > 0.7 * h.of && many < 1.3 * h.of);
        case_down(&h.f);
    }
}

TEST_FILE(gradient_numerics_test)
{
    const struct CMUnitTest tests[] = {
        TEST(single_messages,
             "gradients: single messages stay accurate (n = 20, 64, 200)"),
        TEST(submessages, "gradients: submessages stay accurate"),
        TEST(groups, "gradients: s stragglers in each group stay accurate"),
        TEST(groups_in_submessages,
             "gradients: a larger last group stays accurate in submessages"),
        TEST(long_vectors,
             "gradients: short vectors predict a million numbers"),
    };

    rig_begin();
    return cmocka_run_group_tests_name("gradient_numerics", tests, NULL, NULL);
}
