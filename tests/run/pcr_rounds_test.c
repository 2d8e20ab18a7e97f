/* pcr_rounds_test.c -- polynomially coded regression in real rounds: received
 * answers, and refusals (math/regression.md 16). */
#include "pcr_rig.h"

/* ---- jobs ---------------------------------------------------------------- */

/* The master receives K messages of d numbers (C8). */
static void K_answers(void **state)
{
    static const struct {
        const char *spec;
        size_t n, K;
    } code[] = {{"pcr:r=10", 40, 7},
                {"pcr:r=3", 6, 3},
                {"pcr:r=2,basis=lagrange", 9, 9},
                {"pcr:r=2,layout=paper", 7, 7},
                {"pcr:r=5", 5, 1}};
    const kofn_faults faults =
        KOFN_FAULTS_INIT(.straggle = 0.3, .spread = 0.3, .seed = 4);

    (void)state;
    for (size_t c = 0; c < sizeof code / sizeof *code; c++)
        for (int sim = 0; sim < 2; sim++) {
            rig_kind k = {.spec = code[c].spec,
                          .workers = code[c].n,
                          .m = 97,
                          .n = 23,
                          .p = 1,
                          .op = KOFN_GRAM,
                          .sim = sim,
                          .faults = sim ? &faults : NULL};
            kofn_report rep = KOFN_REPORT_INIT;
            rig r;

            rig_up(&r, &k);
            for (uint64_t round = 0; round < 5; round++) {
                assert_ok(rig_round(&r, &rep));
                assert_at_most(rig_error(&r), 1e-11);
                assert_int_equal(rep.messages, code[c].K);
                assert_true(rep.scalars == code[c].K * 23);
                rig_next(&r, 50 + round);
            }
            rig_down(&r);
        }
}

/* There are 7 workers and c = 4, and only workers with plain blocks stay. Their
 * 4 answers suffice, although 7 are needed in general. */
static void plain_blocks(void **state)
{
    static const kofn_fault_event gone[] = {
        {1, 0, KOFN_FAULT_EVENT_LEAVE, 1, 0},
        {1, 0, KOFN_FAULT_EVENT_LEAVE, 3, 0},
        {2, 0.3, KOFN_FAULT_EVENT_LEAVE, 5, 0},
        {4, 0, KOFN_FAULT_EVENT_LEAVE, 2, 0}};
    kofn_options opt = KOFN_OPTIONS_INIT;

    (void)state;
    opt.events = gone;
    opt.event_count = 4;
    for (int sim = 0; sim < 2; sim++) {
        rig_kind k = {.spec = "pcr:r=2,systematic=1",
                      .workers = 7,
                      .m = 31,
                      .n = 8,
                      .p = 1,
                      .op = KOFN_GRAM,
                      .sim = sim,
                      .opt = &opt};
        kofn_report rep = KOFN_REPORT_INIT;
        rig r;

        rig_up(&r, &k);
        for (int round = 1; round <= 3; round++) {
            assert_ok(rig_round(&r, &rep));
            assert_at_most(rig_error(&r), 1e-13);
            /* in round 2 worker 5 may answer before it leaves */
            assert_true(rep.messages <= (round <= 2 ? 5 : 4));
        }
        assert_int_equal(rep.messages, 4);
        /* a worker with a plain block leaves, and its part is lost */
        assert_status(KOFN_TOOFEW, rig_round(&r, &rep));
        rig_down(&r);
    }
}

/* ---- refusals (C16) ------------------------------------------------------ */

static void refusals(void **state)
{
    static const struct {
        const char *spec;
        size_t n;
        kofn_status status;
        const char *says[3];
    } bad[] = {
        {"pcr:r=1", 6, KOFN_INVAL, {"r = 1 needs 11", "6 workers", "r = 2"}},
        {"pcr:r=7", 6, KOFN_INVAL, {"r = 7", "6", "r = 6 would fit"}},
        {"pcr:r=0", 6, KOFN_INVAL, {"r=0", "outside", "1.."}},
        {"pcr:r=2", 1, KOFN_INVAL, {"r = 2", "r = 1 would fit", ""}},
        {"pcr:r=2,angles=4", 6, KOFN_INVAL, {"angles = 4", "5..6", ""}},
        {"pcr:r=2,angles=7", 6, KOFN_INVAL, {"angles = 7", "5..6", ""}},
        {"pcr:r=3,angles=5,systematic=1",
         6,
         KOFN_INVAL,
         {"angles = 5", "multiple", "2 blocks"}},
        {"pcr:r=3,basis=lagrange,angles=6",
         6,
         KOFN_INVAL,
         {"angles = 6", "basis=circle", ""}},
        {"pcr:systematic=2", 6, KOFN_INVAL, {"systematic=2", "", ""}},
        {"pcr:basis=line", 6, KOFN_INVAL, {"circle|lagrange", "", ""}},
        {"pcr:layout=old", 6, KOFN_INVAL, {"super|paper", "", ""}},
    };
    static const kofn_op other[] = {KOFN_MATVEC, KOFN_MATMUL, KOFN_LEFT,
                                    KOFN_SUM};
    kofn_problem pb = gram;
    kofn_plan *plan;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_status(bad[i].status,
                      kofn_plan_new(&plan, &gram, bad[i].spec, bad[i].n, 1));
        assert_null(plan);
        for (size_t s = 0; s < 3; s++)
            if (!strstr(kofn_errmsg(), bad[i].says[s]))
                fail_msg("%s: \"%s\" is not in: %s", bad[i].spec,
                         bad[i].says[s], kofn_errmsg());
    }
    for (size_t i = 0; i < 4; i++) {
        pb.op = other[i];
        assert_status(KOFN_UNSUITED, kofn_plan_new(&plan, &pb, "pcr", 6, 1));
    }
}

/* With fewer than K answers the round fails and leaves the output unchanged. */
static void too_few(void **state)
{
    static const kofn_fault_event gone[] = {
        {1, 0, KOFN_FAULT_EVENT_LEAVE, 1, 0},
        {1, 0, KOFN_FAULT_EVENT_LEAVE, 3, 0}};
    kofn_options opt = KOFN_OPTIONS_INIT;
    rig_kind k = {.spec = "pcr:r=2",
                  .workers = 6,
                  .m = 30,
                  .n = 8,
                  .p = 1,
                  .op = KOFN_GRAM,
                  .sim = true,
                  .opt = &opt};
    double nan;
    rig r;

    (void)state;
    opt.events = gone;
    opt.event_count = 2;
    rig_up(&r, &k);
    assert_status(KOFN_TOOFEW, rig_round(&r, NULL));
    for (size_t i = 0; i < 8; i++) {
        nan = ((double *)r.y.data)[i];
        assert_true(isnan(nan));
    }
    ((double *)r.x.data)[3] = NAN;
    assert_true(kofn_round(r.job, &r.x, &r.y, NULL) < 0);
    rig_down(&r);
}

TEST_FILE(pcr_rounds_test)
{
    const struct CMUnitTest tests[] = {
        TEST(K_answers, "pcr: a round receives K answers"),
        TEST(plain_blocks, "pcr: answers of all plain blocks suffice"),
        TEST(refusals, "pcr: invalid arguments and operations are refused"),
        TEST(too_few, "pcr: fewer than K answers leave the output unchanged"),
    };

    rig_begin();
    return cmocka_run_group_tests_name("pcr_rounds", tests, NULL, NULL);
}
