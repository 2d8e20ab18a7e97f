/* fit_test.c -- the quick test whether a few nodes explain a column of
 * syndromes agrees with the exact one. */
#include "suspect_rig.h"

#include "code/syndrome.h"

/* Makes columns from `want` nodes of any size, plus noise of any size. */
static void make_results(const code_case *f, const uint32_t *nodes, size_t want,
                         double noise, double *Y, kf_rng *r)
{
    double size = pow(10, 18 * kf_rng_uniform(r) - 12);

    for (size_t i = 0; i < f->nodes * f->components; i++)
        Y[i] = noise * size * kf_rng_normal(r);
    for (size_t i = 0; i < want * f->components; i++)
        Y[nodes[i / f->components] * f->components + i % f->components] +=
            size * kf_rng_normal(r);
}

/* Sets tested with a residual above a thousandth, and sets decided quickly. */
static size_t asked, found;

/* Tries limits on both sides of the residual, for sets side by side. */
static void same_as_exactly(kf_fit *fit, const uint32_t *pick, size_t nodes,
                            size_t n)
{
    static const double of_it[] = {1e-3, 0.9, 1 - 1e-6, 1 + 1e-6, 1.1, 1e3};
    uint32_t sets[KF_SETS * MOST_NODES];
    double left[KF_SETS];

    for (size_t s = 0; s < KF_SETS; s++) {
        for (size_t i = 0; i < n; i++)
            sets[s * n + i] = pick[(s * n + i) % nodes];
        left[s] = kf_fit_left(fit, sets + s * n, n);
    }
    for (size_t s = 0; s < KF_SETS; s++)
        for (size_t i = 0; i < sizeof of_it / sizeof *of_it; i++) {
            double limit = of_it[i] * left[s];
            unsigned more = kf_fit_surely_more(fit, sets, n, limit);

            for (size_t k = 0; k < KF_SETS; k++)
                if (more >> k & 1 && left[k] <= limit)
                    fail_msg("%zu nodes leave %g of %g, found more than %g", n,
                             left[k], fit->length, limit);
            asked += i == 0 && left[s] > 1e-6 * fit->length;
            found += i == 0 && left[s] > 1e-6 * fit->length && more >> s & 1;
        }
}

static void try_fleet(const char *spec, size_t nodes, size_t rounds)
{
    uint32_t seat[MOST_NODES], pick[MOST_NODES];
    double *Y, *H, allowance = 1;
    kf_evidence e;
    kf_arrays a = {0};
    kf_syndromes t;
    kf_fit fit;
    code_case f;
    size_t q;

    fleet_up(&f, spec, nodes);
    for (uint32_t i = 0; i < nodes; i++)
        seat[i] = i;
    assert_ok(kf_parity(f.code, seat, nodes, &H, &q));
    e = (kf_evidence){.nodes = nodes,
                      .components = f.components,
                      .closed = f.components == 4,
                      .q = q,
                      .H = H,
                      .columns = 1};
    Y = kf_new(nodes * f.components, sizeof *Y);
    assert_non_null(Y);
    kf_syndromes_new(&t, &a, &e, &allowance);
    kf_fit_new(&fit, &a, &e);
    assert_ok(kf_arrays_status(&a));
    for (size_t i = 0; i < rounds; i++) {
        kf_rng r = kf_rng_stream(21, KF_FOR_SAMPLE, (uint32_t)i, 0);
        size_t most = q / f.components, want = 1 + kf_rng_below(&r, most);

        for (uint32_t k = 0; k < nodes; k++)
            pick[k] = k;
        for (size_t k = 0; k < nodes; k++) {
            size_t other = k + kf_rng_below(&r, nodes - k);
            uint32_t was = pick[k];

            pick[k] = pick[other];
            pick[other] = was;
        }
        make_results(&f, pick, want,
                     i % 3 ? pow(10, -2.0 * (double)(i % 7)) : 0, Y, &r);
        assert_ok(kf_syndromes_fill(&t, H, Y));
        kf_fit_of(&fit, &t, 0);
        for (size_t n = 1; n <= most; n++)
            same_as_exactly(&fit, pick, nodes, n);
    }
    kf_arrays_free(&a);
    kf_free(Y);
    kf_free(H);
    fleet_down(&f);
}

static void quickly_as_exactly(void **state)
{
    size_t rounds = effort(300);

    (void)state;
    try_fleet("mds:k=4", 9, rounds);
    try_fleet("mds:k=9,basis=harmonic", 18, rounds);
    try_fleet("mds-published:k=5,basis=chebyshev", 14, rounds);
    try_fleet("polynomial:m=2,p=2,basis=circle", 12, rounds);
    try_fleet("replication:k=2", 8, rounds);
    print_message("    %zu of %zu found quickly\n", found, asked);
    assert_true(100 * found > 95 * asked);
}

/* A node that is removed takes the parities that involve it, one per component.
 * Removed again, it takes none. */
static void removed_twice(void **state)
{
    static const struct {
        const char *spec;
        size_t nodes;
    } codes[] = {{"mds:k=4", 9}, {"polynomial:m=2,p=2,basis=circle", 12}};

    (void)state;
    for (size_t c = 0; c < sizeof codes / sizeof *codes; c++) {
        uint32_t seat[MOST_NODES];
        double *H, *Y, allowance = 1;
        kf_evidence e;
        kf_syndromes t;
        code_case f;
        size_t q;

        fleet_up(&f, codes[c].spec, codes[c].nodes);
        for (uint32_t i = 0; i < codes[c].nodes; i++)
            seat[i] = i;
        assert_ok(kf_parity(f.code, seat, codes[c].nodes, &H, &q));
        e = (kf_evidence){.nodes = codes[c].nodes,
                          .components = f.components,
                          .q = q,
                          .H = H,
                          .columns = 1};
        Y = kf_zero(e.nodes * e.components, sizeof *Y);
        assert_non_null(Y);
        for (size_t node = 0; node < e.nodes; node++) {
            kf_arrays a = {0};

            kf_syndromes_new(&t, &a, &e, &allowance);
            assert_ok(kf_arrays_status(&a));
            assert_ok(kf_syndromes_fill(&t, H, Y));
            assert_int_equal(t.q, q);
            for (int times = 0; times < 2; times++) {
                kf_syndromes_strike(&t, node);
                assert_int_equal(t.q, q - f.components);
            }
            kf_arrays_free(&a);
        }
        kf_free(Y);
        kf_free(H);
        fleet_down(&f);
    }
}

TEST_FILE(fit_test)
{
    const struct CMUnitTest tests[] = {
        TEST(quickly_as_exactly,
             "fit: the quick test agrees with the exact one"),
        TEST(removed_twice, "fit: a node is removed once only")};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
