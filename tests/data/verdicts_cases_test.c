/* verdicts_cases_test.c -- faults that verdicts were once wrong about, each by
 * itself; those of whole commands are in tests/cli/errors.bats. */
#include "rig.h"
#include "verdicts_rig.h"

/* ---- a common cause ------------------------------------------------------ */

/* Each pair adds the same constant to all it sends, as by the same broken
 * library: named, or declared, and never passed over. */
static void every_pair(const char *spec, size_t nodes, size_t pairs)
{
    static const double constants[] = {1, 1e-2, 1e-4};
    size_t tried = 0, right = 0, one = SLOWED;
    code_case f;

    code_case_up(&f, spec, nodes);
    for (uint32_t i = 0; i < nodes; i++)
        for (uint32_t j = i + 1; j < nodes; j++)
            for (uint32_t z = 0; z < 3; z++, tried++)
                for (int m = 0; m < MODES && tried % one == 0; m++) {
                    trial t = {.f = &f,
                               .r = kf_rng_stream(z, KF_FOR_SAMPLE, i, j),
                               .columns = 4,
                               .liars = 2,
                               .liar = {i, j},
                               .way = CONSTANT,
                               .mode = (mode)m,
                               .wide = true,
                               .constant = constants[z]};
                    end e = run(&t);

                    right += m == PROBABILISTIC && e == RIGHT;
                    if (m == ADVERSARIAL && f.nodes - f.k >= 4)
                        assert_int_equal(e, RIGHT);
                }
    assert_int_equal(tried, pairs);
    print_message("    %s: of %zu pairs %zu found\n", spec, pairs, right);
    code_case_down(&f);
}

static void pairs_of_matdot(void **state)
{
    (void)state;
    every_pair("matdot:n=3", 8, 84);
}

static void pairs_of_gpd(void **state)
{
    (void)state;
    every_pair("gpd:m=2,n=2,p=2", 14, 273);
}

/* Three that add the same constant cancel nearly in the single parity of k + 1
 * answers, for some constant: too likely in float32 to be believed. */
static void three_of_polydot(void **state)
{
    size_t rounds = (size_t)ceil(4000 * test_scale() / SLOWED);
    code_case f;

    (void)state;
    code_case_up(&f, "polydot:m=2,n=1,p=2", 8);
    for (uint32_t i = 0; i < rounds; i++) {
        trial t = {.f = &f,
                   .r = kf_rng_stream(12, KF_FOR_SAMPLE, i, 0),
                   .columns = 4,
                   .liars = 3,
                   .way = CONSTANT,
                   .mode = i % 8 ? PROBABILISTIC : DETECT};

        t.constant = pow(10, 3 * kf_rng_uniform(&t.r) - 3);
        shuffle(t.liar, f.nodes, &t.r);
        run(&t);
    }
    code_case_down(&f);
}

/* ---- rounding beside a lie ------------------------------------------------
 */

/* A lie as large as what may pass, that the rounding of the others made look a
 * little smaller: the floor counts both. */
static void hidden_by_rounding(void **state)
{
    trial t = {.r = kf_rng_stream(1, KF_FOR_SAMPLE, 6, 24408),
               .columns = 1,
               .way = FLIP,
               .mode = PROBABILISTIC};
    code_case f;

    (void)state;
    code_case_up(&f, "elastic:k=4", 8);
    t.f = &f;
    t.wide = kf_rng_below(&t.r, 2);
    t.liars = 1 + kf_rng_below(&t.r, most_liars(&t));
    shuffle(t.liar, f.nodes, &t.r);
    t.constant = pow(10, 3 * kf_rng_uniform(&t.r) - 3);
    assert_int_equal(run(&t), RIGHT);
    code_case_down(&f);
}

/* ---- copies -------------------------------------------------------------- */

/* Copies that fail alike: as many as half of those over are found out, whoever
 * answers first. */
static void copies_alike(const char *spec, size_t nodes)
{
    static const way alike[] = {CONSTANT, DOUBLED, STALE, ZEROS};
    code_case f;

    code_case_up(&f, spec, nodes);
    for (uint32_t i = 0; i < 400 / SLOWED; i++) {
        trial t = {.f = &f,
                   .r = kf_rng_stream(13, KF_FOR_SAMPLE, i, 0),
                   .columns = 1 + i % 5,
                   .liars = half(&f),
                   .way = alike[i % 4],
                   .mode = i / 4 % 2 ? PROBABILISTIC : ADVERSARIAL,
                   .wide = true,
                   .constant = 0.1};

        shuffle(t.liar, f.nodes, &t.r);
        if (run(&t) != RIGHT)
            fail_msg("%s: %zu copies %s were not found out", spec, t.liars,
                     way_names[t.way]);
    }
    code_case_down(&f);
}

static void copies(void **state)
{
    (void)state;
    copies_alike("replication:k=1", 5);
    copies_alike("replication:k=2", 15);
    copies_alike("matdot:n=2,angles=5", 12);
    copies_alike("mds:k=1", 7);
}

/* ---- what is tolerated ----------------------------------------------------
 */

/* Nobody is believed who could hide more than the tolerance that is asked
 * for. */
static void tolerance(void **state)
{
    static const struct {
        kofn_dtype dtype;
        double tolerance;
    } ask[] = {{KOFN_F64, 1e-9}, {KOFN_F32, 2e-2}, {KOFN_F32, 5e-3}};

    (void)state;
    for (size_t i = 0; i < sizeof ask / sizeof *ask; i++) {
        kofn_options o = KOFN_OPTIONS_INIT;
        rig_kind k = {.spec = "mds:k=9,basis=harmonic",
                      .workers = 18,
                      .m = 72,
                      .n = 46,
                      .p = 1,
                      .sim = true,
                      .dtype = ask[i].dtype,
                      .opt = &o};
        kofn_report rep = KOFN_REPORT_INIT;
        kofn_status st;
        rig x;

        o.errors = KOFN_ERRORS_PROBABILISTIC;
        o.tolerance = ask[i].tolerance;
        rig_up(&x, &k);
        st = rig_round(&x, &rep);
        if (st != KOFN_TOOFEW) {
            assert_ok(st);
            assert_at_most(rep.floor * sqrt(46), ask[i].tolerance);
            assert_at_most(rep.predicted, 2 * ask[i].tolerance);
        }
        rig_down(&x);
        o.tolerance = 1e-14;
        rig_up(&x, &k);
        assert_true(rig_round(&x, NULL) != KOFN_OK);
        rig_down(&x);
    }
}

TEST_FILE(verdicts_cases_test)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_of_matdot),
        cmocka_unit_test(pairs_of_gpd),
        cmocka_unit_test(three_of_polydot),
        cmocka_unit_test(hidden_by_rounding),
        cmocka_unit_test(copies),
        cmocka_unit_test(tolerance),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
