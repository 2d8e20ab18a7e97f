/* gradient_rounds_test.c -- sums of gradients in real rounds: the traffic of
 * the schemes, and refusals. */
#include "gradient_rig.h"

/* ---- traffic of real rounds ---------------------------------------------- */

typedef struct sent {
    uint64_t scalars;
    unsigned messages;
    kofn_status st;
    double error;
} sent;

/* Plays a round in step, without the first `gone` of every `stride` workers. */
static sent round_without(const char *spec, size_t n, size_t p, size_t gone,
                          size_t stride)
{
    kofn_fault_event leave[32];
    kofn_options o = KOFN_OPTIONS_INIT;
    rig_kind k = {.spec = spec,
                  .workers = n,
                  .m = 2 * n + 1,
                  .n = p,
                  .p = 1,
                  .op = KOFN_SUM,
                  .sim = true,
                  .opt = &o};
    kofn_report rep = KOFN_REPORT_INIT;
    rig x;
    sent s;

    o.events = leave;
    for (uint32_t i = 0; i < n; i++)
        if (i % stride < gone)
            leave[o.event_count++] =
                (kofn_fault_event){1, 0, KOFN_FAULT_EVENT_LEAVE, i, 0};
    rig_up(&x, &k);
    s.st = rig_round(&x, &rep);
    s.scalars = rep.scalars;
    s.messages = rep.messages;
    s.error = s.st ? -1 : rig_error(&x);
    rig_down(&x);
    return s;
}

/* n - s workers send C_s p numbers each: math/gradients.md 9, 12.3. */
static void closed_forms(void **state)
{
    static const struct {
        const char *spec;
        size_t d, m; /* m: segments; 0: as s makes it */
    } t[] = {{"uncoded", 1, 1},
             {"gc:d=4", 4, 1},
             {"gc:d=3,construction=cyclic", 3, 1},
             {"cgc:d=4,m=3", 4, 3},
             {"cgc:d=4,m=2", 4, 2},
             {"cgc:d=4,m=2,construction=random", 4, 2},
             {"cgc:d=7,m=4", 7, 4},
             {"agc:d=1", 1, 0},
             {"agc:d=2", 2, 0},
             {"agc:d=3", 3, 0},
             {"agc:d=4", 4, 0},
             {"agc:d=5", 5, 0},
             {"agc:d=6", 6, 0},
             {"agc:d=3,form=staircase", 3, 0},
             {"agc:d=4,form=decoupled", 4, 0}};
    const size_t n = 11, p = 960; /* divisible by every number of segments */

    (void)state;
    for (size_t k = 0; k < sizeof t / sizeof *t; k++)
        for (size_t s = 0; s <= t[k].d && t[k].d <= LARGEST - 1; s++) {
            sent a = round_without(t[k].spec, n, p, s, n);
            size_t segments = t[k].m ? t[k].m : t[k].d - s;

            if (s + (t[k].m ? t[k].m : 1) > t[k].d) {
                assert_int_equal(a.st, KOFN_TOOFEW);
                continue;
            }
            assert_int_equal(a.st, KOFN_OK);
            assert_at_most(a.error, 1e-9);
            /* all that are left send C_s p; cgc and gc stop at n - S answers */
            assert_int_equal(a.scalars,
                             (t[k].m ? n - (t[k].d - t[k].m) : n - s) * p /
                                 segments);
        }
}

/* lam / (d - s) is rounded up for any lam, and p need not be divisible. */
static void any_lam(void **state)
{
    static const size_t lam[] = {1, 3, 4, 10};
    const size_t n = 9, p = 101;

    (void)state;
    for (size_t d = 2; d <= 5; d++)
        for (size_t k = 0; k < sizeof lam / sizeof *lam; k++)
            for (size_t s = 0; s < d; s++) {
                char spec[60];
                sent a;
                /* the code is over complex numbers: segments of segments */
                size_t q = (p + 2 * lam[k] - 1) / (2 * lam[k]) * 2;
                size_t r = (lam[k] + d - s - 1) / (d - s);

                snprintf(spec, sizeof spec,
                         "agc:d=%zu,lam=%zu,form=decoupled,draws=1", d, lam[k]);
                a = round_without(spec, n, p, s, n);
                assert_int_equal(a.st, KOFN_OK);
                assert_at_most(a.error, 1e-7);
                assert_true(a.scalars <= (n - s) * r * q);
                assert_true(a.scalars > (n - s) * (r - 1) * q);
                if (lam[k] % (d - s) == 0) /* each sent submessage is used */
                    assert_int_equal(a.scalars, (n - s) * r * q);
            }
}

/* Groups stop by their slowest one (Theorem 3). They fail as soon as one has d
 * stragglers. */
static void groups(void **state)
{
    const size_t n = 12, d = 3, p = 960;

    (void)state;
    for (size_t s = 0; s <= d; s++) {
        sent a = round_without("g-agc:d=3", n, p, s, d);

        assert_int_equal(a.st, s < d ? KOFN_OK : KOFN_TOOFEW);
        if (s < d)
            assert_int_equal(a.scalars, (n - n / d * s) * p / (d - s));
        if (s >= d)
            continue;
        /* stragglers in the first group only */
        a = round_without("g-agc:d=3", n, p, s, n);
        assert_int_equal(a.st, KOFN_OK);
        assert_true(a.scalars <= (n - s) * p / (d - s));
    }
    for (size_t m = 1; m <= d; m++) {
        char spec[40];

        snprintf(spec, sizeof spec, "g-cgc:d=3,m=%zu", m);
        for (size_t s = 0; s <= d; s++)
            assert_int_equal(round_without(spec, n, p, s, d).st,
                             s + m <= d ? KOFN_OK : KOFN_TOOFEW);
    }
}

/* On threads workers are not in step. They send at least the minimum of any
 * code (Theorem 1), and at most all. */
static void thread_bounds(void **state)
{
    const size_t n = 6, p = 960;

    (void)state;
    for (size_t s = 0; s < 3; s++) {
        kofn_fault_event leave[3];
        kofn_options o = KOFN_OPTIONS_INIT;
        rig_kind k = {.spec = "agc:d=3",
                      .workers = n,
                      .m = 30,
                      .n = p,
                      .p = 1,
                      .op = KOFN_SUM,
                      .opt = &o};
        rig x;

        o.events = leave;
        for (uint32_t i = 0; i < s; i++)
            leave[o.event_count++] =
                (kofn_fault_event){1, 0, KOFN_FAULT_EVENT_LEAVE, 2 * i, 0};
        rig_up(&x, &k);
        for (uint64_t round = 0; round < 10; round++) {
            kofn_report rep = KOFN_REPORT_INIT;

            rig_next(&x, round);
            assert_ok(rig_round(&x, &rep));
            assert_at_most(rig_error(&x), 1e-12);
            assert_true(rep.scalars >= p && rep.scalars <= (n - s) * p);
        }
        rig_down(&x);
    }
}

/* Vectors have fewer numbers than segments, or a few more. Some rounds have
 * stragglers that are gone, and some a faulty worker, which is named. */
static void short_vectors(void **state)
{
    static const char *const spec[] = {"agc:d=4", "agc:d=3,form=staircase",
                                       "agc:d=4,lam=10,form=decoupled",
                                       "cgc:d=5,m=2"};
    const kofn_fault_event lie = {1, 0, KOFN_FAULT_EVENT_CORRUPT, 2, 1};
    kofn_options o = with_events(&lie, 1);

    (void)state;
    o.errors = KOFN_ERRORS_ADVERSARIAL;
    for (size_t k = 0; k < sizeof spec / sizeof *spec; k++)
        for (size_t p = 1; p <= 24; p += 24 / often(24)) {
            rig_kind kind = {.spec = spec[k],
                             .workers = 8,
                             .m = 30,
                             .n = p,
                             .p = 1,
                             .op = KOFN_SUM,
                             .sim = true,
                             .opt = &o};
            kofn_report rep = KOFN_REPORT_INIT;
            rig x;

            for (size_t s = 0; s < 3; s++) {
                sent a = round_without(spec[k], 8, p, s, 8);

                assert_int_equal(a.st, KOFN_OK);
                assert_at_most(a.error, 1e-9);
            }
            rig_up(&x, &kind);
            assert_ok(rig_round(&x, &rep));
            assert_at_most(rig_error(&x), 1e-9);
            assert_int_equal(rep.located[2], 1);
            rig_down(&x);
        }
}

/* ---- refusals ------------------------------------------------------------ */

static void refused(const char *spec, size_t n, size_t p, const char *say)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_SUM, p, 1, 1, KOFN_F64, false);
    kofn_plan *plan = (kofn_plan *)&pb;
    kofn_status st = kofn_plan_new(&plan, &pb, spec, n, 1);

    if (st != KOFN_INVAL || !strstr(kofn_errmsg(), say))
        fail_msg("%s on %zu workers, vectors of %zu: %s (%s), not \"%s\"", spec,
                 n, p, kofn_strerror(st), kofn_errmsg(), say);
    assert_null(plan);
}

static void refused_plans(void **state)
{
    (void)state;
    refused("gc:d=0", 8, 100, "d");
    refused("gc:d=9", 8, 100, "d = 9");
    refused("gc:d=3,construction=fractional", 8, 100, "d = 2");
    refused("cgc:d=0", 8, 100, "d");
    refused("cgc:d=9", 8, 100, "d = 9");
    refused("cgc:d=3,m=0", 8, 100, "m");
    refused("cgc:d=3,m=4", 8, 100, "4");
    refused("cgc:d=3,s=3", 8, 100, "3");
    refused("cgc:d=4,s=3,m=2", 8, 100, "2");
    refused("g-cgc:d=9", 8, 100, "d = 9");
    refused("agc:d=0", 8, 100, "d");
    refused("agc:d=9", 8, 100, "d = 9");
    refused("agc:d=3,lam=0", 8, 100, "lam");
    refused("agc:d=3,lam=4", 8, 100, "lam = 4");
    refused("agc:d=3,lam=101,form=decoupled", 8, 100, "100 numbers");
    refused("agc:d=3,lam=66,form=decoupled", 8, 5, "at most 60");
    refused("agc:d=3,form=sideways", 8, 100, "sideways");
    refused("g-agc:d=9", 8, 100, "d = 9");
    refused("agc:groups=0", 12, 100, "groups=0 is outside");
    refused("agc:groups=5", 12, 100, "the 12 workers; 4 and 6 do");
    refused("agc:groups=13", 12, 100, "groups <= 12");
    refused("cgc:groups=2", 7, 100,
            "1 and 7 do, or give d = 3 too for a last "
            "group of 4 workers");
    refused("agc:d=4,groups=4", 12, 100,
            "d = 4 goes with groups = 3, and groups = 4 with d = 3");
    refused("cgc:d=5,groups=5", 12, 100, "ask for groups = 2 with d = 5");
    refused("gc:d=13,groups=2", 12, 100, "d <= 12");
    refused("gc:groups=4,construction=fractional", 12, 100, "groups = 4");
    refused("cgc:groups=4,construction=random", 12, 100, "groups = 4");
    refused("g-agc:d=3,groups=4", 12, 100, "no parameter groups");
    refused("agc:d=5,groups=2,form=staircase", 12, 100, "form=decoupled");
    refused("bcc:r=9", 8, 100, "r = 9");
    refused("ignore:wait=9", 8, 100, "wait = 9");
    refused("replication:k=9", 8, 100, "k = 9");
}

/* The cases: the same answers twice, no answer, and too few answers. None has
 * a decoder, and the next request is served normally. */
static void refused_sets(void **state)
{
    static const char *const spec[] = {"gc:d=3", "cgc:d=4,m=2", "agc:d=3",
                                       "gc:d=3,construction=cyclic",
                                       "agc:d=3,form=staircase"};

    (void)state;
    for (size_t k = 0; k < sizeof spec / sizeof *spec; k++) {
        uint32_t answer[60];
        kofn_decoder *d;
        sum_case f;
        size_t n = 0;

        case_up(&f, spec[k], 6, LENGTH, KOFN_F64);
        assert_status(KOFN_TOOFEW,
                      kf_decoder_new(&d, f.code, answer, 0, false));
        assert_null(d);
        for (uint32_t a = 0; a < 2 * f.L->submessages; a++)
            answer[n++] = a;
        assert_status(KOFN_TOOFEW,
                      kf_decoder_new(&d, f.code, answer, n, false));
        assert_null(d);
        for (uint32_t a = 0; a < 6 * f.L->submessages; a++)
            answer[a] = a;
        assert_at_most(fabs(case_error(&f, answer, 6 * f.L->submessages)),
                       1e-9);
        case_down(&f);
    }
}

/* A round with too few workers is refused. After workers have joined, the next
 * one is right. */
static void refused_rounds(void **state)
{
    static const char *const spec[] = {
        "gc:d=2",    "cgc:d=3,m=2", "agc:d=2", "g-cgc:d=2,m=1",
        "g-agc:d=2", "uncoded",     "bcc:r=2", "replication:k=2"};

    (void)state;
    for (size_t k = 0; k < sizeof spec / sizeof *spec; k++) {
        kofn_fault_event events[12];
        kofn_options o = KOFN_OPTIONS_INIT;
        rig_kind kind = {.spec = spec[k],
                         .workers = 4,
                         .m = 30,
                         .n = 60,
                         .p = 1,
                         .op = KOFN_SUM,
                         .sim = true,
                         .opt = &o};
        rig x;

        o.events = events;
        for (uint32_t i = 0; i < 4; i++)
            events[i] = (kofn_fault_event){2, 0, KOFN_FAULT_EVENT_LEAVE, i, 0};
        for (uint32_t i = 4; i < 8; i++)
            events[i] = (kofn_fault_event){3, 0, KOFN_FAULT_EVENT_JOIN, 0, 0};
        o.event_count = 8;
        rig_up(&x, &kind);
        for (int round = 1; round <= 3; round++) {
            kofn_report rep = KOFN_REPORT_INIT;

            rig_next(&x, (uint64_t)round);
            if (round == 2) {
                assert_status(KOFN_TOOFEW, rig_round(&x, &rep));
                for (size_t i = 0; i < x.y.rows; i++)
                    assert_true(isnan(((double *)x.y.data)[i]));
                continue;
            }
            assert_ok(rig_round(&x, &rep));
            assert_at_most(rig_error(&x), 1e-12);
        }
        rig_down(&x);
    }
}

TEST_FILE(gradient_rounds_test)
{
    const struct CMUnitTest tests[] = {
        TEST(closed_forms,
             "gradients: messages have the lengths of the closed forms"),
        TEST(any_lam, "gradients: agc rounds are right for any lam"),
        TEST(groups, "gradients: a group code stops with its slowest group"),
        TEST(thread_bounds,
             "gradients: traffic on threads is within the bounds"),
        TEST(short_vectors,
             "gradients: vectors shorter than segments, with a faulty worker"),
        TEST(refused_plans,
             "gradients: plans with invalid arguments are refused"),
        TEST(refused_sets,
             "gradients: repeated and too few answers have no decoder"),
        TEST(refused_rounds,
             "gradients: a round without workers fails, the next is right"),
    };

    rig_begin();
    return cmocka_run_group_tests_name("gradient_rounds", tests, NULL, NULL);
}
