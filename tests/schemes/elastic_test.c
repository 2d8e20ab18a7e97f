/* elastic_test.c -- coded elastic computing against its paper,
 * math/elastic.md: shares that follow the live set, groups, speeds. */
#include "elastic_rig.h"
#include "figure1.h"

#define L_MOST 8 /* largest threshold here */

/* ---- requests -------------------------------------------------------------
 */

static kofn_plan *core_plan(const char *spec, size_t workers, size_t m)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_MATVEC, m, 4, 1, KOFN_F64, false);
    kofn_plan *p;

    assert_ok(kofn_plan_new(&p, &pb, spec, workers, 11));
    return p;
}

/* n live machines touch floor or ceil of L span / n strips each, L span in
 * all, for every n from L to 2 L. */
static void shares_follow_the_live_set(void **state)
{
    (void)state;
    for (size_t L = 1; L <= L_MOST; L++)
        for (size_t span = 1; span < 60; span += 29) {
            char spec[40];
            kofn_plan *p;
            scripted_core w;

            snprintf(spec, sizeof spec, "elastic:k=%zu,basis=gauss", L);
            p = core_plan(spec, 2 * L, L * span);
            assert_int_equal(p->span, span);
            script_up(&w, p, NULL);
            for (size_t n = 2 * L; n >= L; n--) {
                size_t total = 0;

                script_begin(&w);
                for (uint32_t i = 0; i < w.workers; i++) {
                    size_t load = script_load(&w, i, 0);

                    total += load;
                    assert_true(w.gone[i]
                                    ? load == 0
                                    : load == L * span / n ||
                                          load == kf_ceil_div(L * span, n));
                }
                assert_int_equal(total, L * span);
                script_answer_all(&w);
                assert_int_equal(w.ended, KOFN_OK);
                script_leave(&w, (uint32_t)(2 * L - n) * 13 % w.workers);
            }
            script_begin(&w);
            assert_int_equal(w.ended, KOFN_TOOFEW);
            script_down(&w);
            kofn_plan_free(p);
        }
}

/* math/elastic.md 5.6: a round has no redundancy of its own. If one machine is
 * lost after all others have answered, exactly its L groups stay open. One
 * more result is requested for each of their strips. */
static void one_loss_opens_L_groups(void **state)
{
    (void)state;
    for (size_t n = 2; n <= 9; n++)
        for (size_t L = 1; L < n; L++) {
            char spec[40];
            kofn_core_options o = {.size = sizeof o, .pieces = 1};
            size_t span = 5 * n;
            kofn_plan *p;
            scripted_core w;

            snprintf(spec, sizeof spec, "elastic:k=%zu,basis=gauss", L);
            p = core_plan(spec, n, L * span);
            for (uint32_t lost = 0; lost < n; lost++) {
                bool open[60] = {false};
                size_t before, again = 0;

                script_up(&w, p, &o);
                script_begin(&w);
                for (size_t i = 0; i < w.tasks; i++)
                    if (w.task[i].worker != lost)
                        script_answer(&w, i, 0);
                before = w.tasks;
                script_leave(&w, lost);
                for (size_t i = before; i < w.tasks; i++)
                    for (size_t s = w.task[i].lo; s < w.task[i].hi; s++) {
                        assert_false(open[s]); /* one more result suffices */
                        open[s] = true;
                        again++;
                    }
                assert_int_equal(again, L * 5);
                for (size_t j = 0; j < n; j++) /* groups lost .. lost+L-1 */
                    for (size_t s = 5 * j; s < 5 * j + 5; s++)
                        assert_true(open[s] == ((j + n - lost) % n < L));
                script_answer_all(&w);
                assert_int_equal(w.ended, KOFN_OK);
                script_down(&w);
            }
            kofn_plan_free(p);
        }
}

/* Facts cec.eu.*: (e*, u*) = (n - L, N / n) at memory N / L. */
static void tolerance_and_load_of_the_paper(void **state)
{
    static const struct {
        const char *id;
        size_t n, L, N, e, u, m;
    } facts[] = {
        {"cec.eu.n6_L3_N30000", 6, 3, 30000, 3, 5000, 10000},
        {"cec.eu.n20_L10_N10000", 20, 10, 10000, 10, 500, 1000},
        {"cec.eu.n4_L3_N30000", 4, 3, 30000, 1, 7500, 10000},
        {"cec.eu.n3_L3_N30000", 3, 3, 30000, 0, 10000, 10000},
    };

    (void)state;
    for (size_t f = 0; f < sizeof facts / sizeof *facts; f++) {
        char spec[40];
        kofn_plan_info info = KOFN_PLAN_INFO_INIT;
        kofn_plan *p;
        scripted_core w;

        snprintf(spec, sizeof spec, "elastic:k=%zu", facts[f].L);
        p = core_plan(spec, facts[f].n, facts[f].N);
        assert_ok(kofn_plan_describe(p, false, &info));
        assert_int_equal(info.block_rows, facts[f].m);
        assert_int_equal(info.workers - info.threshold, facts[f].e);
        script_up(&w, p, NULL);
        script_begin(&w);
        for (uint32_t i = 0; i < w.workers; i++)
            assert_int_equal(script_load(&w, i, 0) * p->layout.components,
                             facts[f].u);
        script_answer_all(&w);
        for (uint32_t i = 0; i < facts[f].e; i++)
            script_leave(&w, i);
        script_begin(&w);
        script_answer_all(&w);
        assert_int_equal(w.ended, KOFN_OK);
        script_leave(&w, (uint32_t)facts[f].e);
        script_begin(&w);
        assert_int_equal(w.ended, KOFN_TOOFEW);
        script_down(&w);
        kofn_plan_free(p);
    }
}

/* I4 and I5, including rows of joining workers. */
static void rows_are_well_conditioned(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIZES; i++) {
        size_t P = sizes[i].P, L = sizes[i].L, most = P + 6;
        kf_rng r = kf_rng_stream(i, KF_FOR_DATA, 45, 0);
        char spec[40];
        kofn_plan *p;
        kf_code *code;

        snprintf(spec, sizeof spec, "elastic:k=%zu", L);
        p = core_plan(spec, P, 100);
        assert_ok(kf_code_new(&code, p));
        for (size_t t = 0; t < 400; t++) {
            uint32_t set[16];
            size_t n = 0, at = t % most;
            kofn_decoder *d;

            for (uint32_t s = 0; s < most; s++) /* windows, then any set */
                if (t < most ? (s + most - at) % most < L
                             : kf_rng_below(&r, most - s) < L - n)
                    set[n++] = s;
            assert_int_equal(n, L);
            assert_ok(kf_decoder_new(&d, code, set, L, false));
            assert_at_most(d->condition, 1e8);
            kf_decoder_free(d);
        }
        kf_code_free(code);
        kofn_plan_free(p);
    }
}

/* ---- the paper's figure 1, worked ---------------------------------------- */

static const kofn_param fig1_params[] = {
    {"deal", 0, 0, 0, "shares of the work", "equal|speed"},
    {0},
};

/* The results, per worker and strip. */
typedef struct fig1_seen {
    double value[6][3];
    bool came[6][3];
} fig1_seen;

static void fig1_result(void *ud, const kf_msg *m)
{
    fig1_seen *seen = ud;

    for (size_t s = m->lo; s < m->hi; s++) {
        seen->came[m->worker][s] = true;
        seen->value[m->worker][s] =
            ((const double *)kf_buffer_matrix(m->result)->data)[s - m->lo];
    }
}

/* Fact cec.worked.matvec: X[i][k] = 10 i + k + 1 (9 x 2), w = (1, -2), without
 * machines 1 and 3. */
static void figure_1_worked(void **state)
{
    static const double coded[6][3] = {{-3, -13, -23},     {0, 0, 0},
                                       {-63, -73, -83},    {0, 0, 0},
                                       {-258, -318, -378}, {-702, -842, -982}};
    /* groups 1, 2, 3 are strips 0, 1, 2; group 0 is empty (cuts 0 0 1 2 3) */
    static const int users[3][3] = {{0, 2, 5}, {0, 2, 4}, {2, 4, 5}};
    static const kofn_fault_event events[] = {
        {1, 0, KOFN_FAULT_EVENT_LEAVE, 1, 0},
        {1, 0, KOFN_FAULT_EVENT_LEAVE, 3, 0}};
    kofn_scheme scheme = {.size = sizeof(kofn_scheme),
                          .name = "fig1",
                          .summary = "figure 1 of the paper",
                          .ops = KOFN_MATVEC,
                          .params = fig1_params,
                          .layout = fig1_layout,
                          .seat = fig1_seat,
                          .deal = kofn_scheme_find("elastic")->deal};
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_MATVEC, 9, 2, 1, KOFN_F64, false);
    double x[18], v[2] = {1, -2}, y[9];
    kofn_matrix X = {x, 9, 2, 2, KOFN_F64}, in = {v, 2, 1, 1, KOFN_F64};
    kofn_matrix out = {y, 9, 1, 1, KOFN_F64};
    kofn_options o = KOFN_OPTIONS_INIT;
    fig1_seen seen = {0};
    kofn_plan *p;
    kofn_job *job;
    watcher *w;

    (void)state;
    for (size_t i = 0; i < 18; i++)
        x[i] = (double)(10 * (i / 2) + i % 2 + 1);
    o.events = events;
    o.event_count = 2;
    assert_ok(kofn_plan_new_for(&p, &pb, &scheme, NULL, 6, 0));
    w = watch_port(true, 6, NULL);
    w->seen = fig1_result;
    w->ud = &seen;
    assert_ok(kofn_open(&job, p, &w->base, &o));
    assert_ok(kofn_place(job, &X));
    assert_ok(kofn_round(job, &in, &out, NULL));
    for (size_t i = 0; i < 9; i++)
        assert_at_most(fabs(y[i] - (-3 - 10 * (double)i)), 1e-12);
    for (int s = 0; s < 3; s++)
        for (int i = 0; i < 6; i++) {
            bool used =
                users[s][0] == i || users[s][1] == i || users[s][2] == i;

            assert_true(seen.came[i][s] == used);
            if (used)
                assert_true(seen.value[i][s] == coded[i][s]);
        }
    kofn_close(job);
    kofn_plan_free(p);
}

/* ---- groups (math/elastic.md 13) ----------------------------------------- */

static double choose(size_t n, size_t k)
{
    double c = 1;

    for (size_t i = 0; i < k; i++)
        c = c * (double)(n - i) / (double)(i + 1);
    return c;
}

/* [z^e] (sum_{i <= (P-L)/g} C(P/g, i) z^i)^g / C(P, e) */
static double survival(size_t P, size_t L, size_t g, size_t e)
{
    double c[64] = {1};

    for (size_t j = 0; j < g; j++) {
        double next[64] = {0};

        for (size_t a = 0; a <= e; a++)
            for (size_t i = 0; i <= (P - L) / g && a + i <= e; i++)
                next[a + i] += c[a] * choose(P / g, i);
        memcpy(c, next, sizeof c);
    }
    return c[e] / choose(P, e);
}

static bool survives(const kofn_plan *p, size_t losses, kf_rng *r)
{
    bool alive;
    scripted_core w;

    script_up(&w, p, NULL);
    for (size_t i = 0; i < losses;) {
        uint32_t who = (uint32_t)kf_rng_below(r, w.workers);

        if (w.gone[who])
            continue;
        script_leave(&w, who);
        i++;
    }
    script_begin(&w);
    script_answer_all(&w);
    assert_false(w.running);
    alive = w.ended == KOFN_OK;
    assert_true(alive || w.ended == KOFN_TOOFEW);
    script_down(&w);
    return alive;
}

static void groups_survive(void **state)
{
    const size_t P = 20, L = 10, trials = often(1000);

    (void)state;
    /* replication by two: five random losses survive with 0.520 */
    assert_at_most(fabs(survival(P, L, 10, 5) - 0.520), 5e-4);
    for (size_t g = 1; g <= 10; g++) {
        char spec[60];
        kofn_plan *p;

        if (P % g || L % g)
            continue;
        snprintf(spec, sizeof spec, "elastic:k=%zu,groups=%zu,basis=gauss", L,
                 g);
        p = core_plan(spec, P, 2 * L);
        for (size_t e = 1; e <= 11; e += 2) {
            kf_rng r = kf_rng_stream(13, KF_FOR_DATA, (uint32_t)g, (uint32_t)e);
            double want = survival(P, L, g, e), n = (double)trials;
            double sigma = sqrt(want * (1 - want) / n);
            size_t alive = 0;

            for (size_t t = 0; t < trials; t++)
                alive += survives(p, e, &r);
            assert_at_most(fabs((double)alive / n - want), 4.5 * sigma);
            if (e <= (P - L) / g) /* what each group certainly tolerates */
                assert_int_equal(alive, trials);
        }
        kofn_plan_free(p);
    }
}

/* ---- unequal speeds (math/elastic.md 12) --------------------------------- */

/* Fact cec.hetero.example: rows and segments for speeds 1 1 4 2 8. */
static void unequal_speeds_example(void **state)
{
    static const double speed[5] = {1, 1, 4, 2, 8};
    static const size_t rows[5] = {6, 5, 22, 11, 22};
    kofn_core_options o = {.size = sizeof o, .pieces = 1};
    kofn_plan *p = core_plan("elastic:k=3,basis=gauss,deal=speed", 5, 66);
    bool used[22][5] = {{false}};
    scripted_core w;

    (void)state;
    assert_int_equal(p->span, 22);
    script_up(&w, p, &o);
    script_begin(&w);
    for (size_t i = 0; i < w.tasks; i++)
        script_answer(&w, i,
                      (kofn_time)((double)(w.task[i].hi - w.task[i].lo) /
                                  speed[w.task[i].worker] * 1e6));
    script_begin(&w);
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(script_load(&w, i, 0), rows[i]);
    for (size_t i = 0; i < w.tasks; i++)
        for (size_t s = w.task[i].lo; s < w.task[i].hi; s++)
            used[s][w.task[i].worker] = true;
    for (size_t s = 0; s < 22; s++) {
        assert_true(used[s][2] && used[s][4]);
        assert_true(used[s][0] == (s < 6));
        assert_true(used[s][1] == (s >= 6 && s < 11));
        assert_true(used[s][3] == (s >= 11));
    }
    script_down(&w);
    kofn_plan_free(p);
}

/* Returns the largest share / speed at the water-filling optimum: c with sum
 * min(1, c v) = L by bisection. */
static double best_time(const double *v, size_t n, size_t L)
{
    double lo = 0, hi = 1e6, time = 0;

    for (int i = 0; i < 200; i++) {
        double c = (lo + hi) / 2, sum = 0;

        for (size_t p = 0; p < n; p++)
            sum += fmin(1, c * v[p]);
        *(sum < (double)L ? &lo : &hi) = c;
    }
    for (size_t p = 0; p < n; p++)
        time = fmax(time, fmin(1, hi * v[p]) / v[p]);
    return time;
}

/* On the simulator's clock the first round is dealt equally, later ones by
 * measured speeds. One group of strips of difference is allowed. */
static void shares_follow_the_speeds(void **state)
{
    const size_t n = 9, L = 4, span = 300;

    (void)state;
    for (uint64_t seed = 0; seed < 8; seed++) {
        kofn_faults faults = KOFN_FAULTS_INIT(.spread = 0.7, .seed = seed);
        kofn_options o = {.size = sizeof o,
                          .late = -1}; /* rounds wait for slow workers */
        rig_kind k = {.opt = &o,
                      .spec = "elastic:k=4,basis=gauss,deal=speed",
                      .workers = n,
                      .m = L * span,
                      .n = 10,
                      .p = 1,
                      .sim = true,
                      .faults = &faults};
        double v[9], slowest = 0, strip = 10; /* nanoseconds */
        kofn_report rep = KOFN_REPORT_INIT;
        rig r;

        for (uint32_t i = 0; i < n; i++)
            v[i] = kf_faults_speed(&faults, i);
        rig_up(&r, &k);
        assert_ok(rig_round(&r, &rep));
        for (size_t i = 0; i < n; i++)
            slowest = fmax(slowest, (double)rep.rows[i] * strip / v[i]);
        assert_at_most(fabs((double)rep.took - slowest), 8);
        for (int round = 0; round < 3; round++) {
            double best = best_time(v, n, L) * (double)span * strip;

            assert_ok(rig_round(&r, &rep));
            assert_at_most(rig_error(&r), 1e-12);
            assert_at_most((double)rep.took, best + 2 * strip / 0.3);
            assert_at_most(best - 2 * strip / 0.3, (double)rep.took);
            assert_at_most((double)rep.took, slowest);
        }
        rig_down(&r);
    }
}

TEST_FILE(elastic_test)
{
    const struct CMUnitTest tests[] = {
        TEST(shares_follow_the_live_set,
             "elastic: shares follow the live set (n from L to 2 L)"),
        TEST(one_loss_opens_L_groups,
             "elastic: one loss in mid-round opens exactly L groups"),
        TEST(tolerance_and_load_of_the_paper,
             "elastic: tolerance and load are the paper's"),
        TEST(rows_are_well_conditioned,
             "elastic: any L live rows are well conditioned"),
        TEST(figure_1_worked,
             "elastic: the paper's figure 1 gives its numbers"),
        TEST(groups_survive,
             "elastic: groups survive losses with the predicted probability"),
        TEST(unequal_speeds_example,
             "elastic: the paper's unequal speeds are dealt as published"),
        TEST(shares_follow_the_speeds,
             "elastic: shares follow measured speeds"),
    };

    rig_begin();
    return cmocka_run_group_tests_name("elastic", tests, NULL, NULL);
}
