/* verdicts_cases_test.c -- tests single errors for which verdicts were once
 * wrong. The cases of whole commands are in tests/cli/errors.bats. */
#include "rig.h"
#include "verdicts_rig.h"

/* ---- a common cause ------------------------------------------------------ */

/* Each pair of workers adds the same constant to all its results, as a shared
 * broken library would. The pair is named or the round fails; the error never
 * passes. */
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

/* Three equal constants nearly cancel in the single parity of k + 1 answers,
 * for some constant. In float32 that is too likely, so such a verdict is not
 * used. */
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

/* ---- rounding besides an error ------------------------------------------- */

/* An error as large as the floor allows looks a little smaller by the rounding
 * of the other results. The floor counts both. */
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

/* Runs rounds in which half of the spare copies fail alike. They are found,
 * whichever answers first. */
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
            fail_msg("%s: %zu faulty copies (%s) were not found", spec, t.liars,
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

/* ---- tolerance ----------------------------------------------------------- */

/* No result is used that could hide an error above the requested tolerance. */
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
        o.max_error = ask[i].tolerance;
        rig_up(&x, &k);
        st = rig_round(&x, &rep);
        if (st != KOFN_TOOFEW) {
            assert_ok(st);
            assert_at_most(rep.floor * sqrt(46), ask[i].tolerance);
            assert_at_most(rep.predicted, 2 * ask[i].tolerance);
        }
        rig_down(&x);
        o.max_error = 1e-14;
        rig_up(&x, &k);
        assert_true(rig_round(&x, NULL) != KOFN_OK);
        rig_down(&x);
    }
}

TEST_FILE(verdicts_cases_test)
{
    const struct CMUnitTest tests[] = {
        TEST(pairs_of_matdot,
             "verdicts: no pair with one constant error passes (matdot)"),
        TEST(pairs_of_gpd,
             "verdicts: no pair with one constant error passes (gpd)"),
        TEST(three_of_polydot,
             "verdicts: three with one constant error never pass (polydot)"),
        TEST(hidden_by_rounding,
             "verdicts: the floor counts an error and the rounding"),
        TEST(copies,
             "verdicts: half of the spare copies may fail alike (4 codes)"),
        TEST(tolerance, "verdicts: a round ends only within its tolerance"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
