/* deal_test.c -- the strips dealt to each worker, against published deals and
 * the water level of unequal speeds. */
#include "code_rig.h"

#include "core/core.h"

/* A core that starts rounds; the test answers by hand. */
typedef struct floor {
    kofn_plan *plan;
    kofn_core *core;
    kofn_action work[400];
    size_t works;
    uint32_t product; /* product number */
    bool delivered;
} floor_t;

static void tell(floor_t *f, kofn_event ev)
{
    kofn_action a;

    assert_ok(kofn_core_step(f->core, &ev));
    while (kofn_core_next(f->core, &a)) {
        if (a.type == KOFN_DO_WORK) {
            assert_true(f->works < 400);
            f->work[f->works++] = a;
        }
        if (a.type == KOFN_DO_DELIVER) {
            assert_int_equal(a.status, KOFN_OK);
            f->delivered = true;
        }
    }
}

static void join_all(floor_t *f, size_t n)
{
    for (uint32_t w = 0; w < n; w++) {
        tell(f, (kofn_event){.type = KOFN_EV_JOINED, .worker = w});
        tell(f, (kofn_event){.type = KOFN_EV_STORED, .worker = w});
    }
}

static void floor_up(floor_t *f, size_t n, size_t k, size_t span,
                     const char *deal)
{
    /* one task per arc, and any noise is allowed */
    kofn_core_options opt = {
        .size = sizeof opt, .pieces = 1, .max_error = 1e300};
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATVEC, span * k, 7, 1, KOFN_F64, false);
    char spec[80];

    *f = (floor_t){0};
    snprintf(spec, sizeof spec, "elastic:k=%zu,basis=gauss_sys,deal=%s", k,
             deal);
    assert_ok(kofn_plan_new(&f->plan, &pb, spec, n, 1));
    assert_int_equal(f->plan->span, span);
    assert_ok(kf_core_new(&f->core, f->plan, &opt));
    join_all(f, n);
}

static void floor_down(floor_t *f)
{
    kofn_core_free(f->core);
    kofn_plan_free(f->plan);
}

static void begin(floor_t *f)
{
    f->works = 0;
    f->delivered = false;
    tell(f, (kofn_event){.type = KOFN_EV_BEGIN, .product = ++f->product});
}

/* Returns the time, in nanoseconds, that the core reads as exactly `seconds`.
 */
static kofn_time exactly(double seconds)
{
    kofn_time guess = (kofn_time)(seconds * 1e9);

    for (kofn_time off = -64; off <= 64; off++)
        if ((double)(guess + off) * 1e-9 == seconds)
            return guess + off;
    return guess;
}

/* Answers all requests as workers of these speeds would. */
static void answer(floor_t *f, const double *speed)
{
    size_t works = f->works;

    for (size_t i = 0; i < works; i++) {
        const kofn_action *a = &f->work[i];

        tell(f, (kofn_event){.type = KOFN_EV_RESULT,
                             .worker = a->worker,
                             .product = a->product,
                             .task = a->task,
                             .row = (uint32_t)a->row,
                             .took = exactly((double)(a->hi - a->lo) * 0x1p20 /
                                             speed[a->worker])});
    }
    assert_true(f->delivered && f->works == works);
}

/* Fills used[worker][strip] and load[worker]. A worker has at most two arcs,
 * together one arc of the circle; every strip has k members. */
static void read_deal(const floor_t *f, size_t n, bool used[][200],
                      size_t *load)
{
    size_t span = f->plan->span, arcs[64] = {0}, total = 0;

    memset(used, 0, n * sizeof *used);
    memset(load, 0, n * sizeof *load);
    for (size_t i = 0; i < f->works; i++) {
        const kofn_action *a = &f->work[i];

        arcs[a->worker]++;
        for (size_t s = a->lo; s < a->hi; s++) {
            assert_false(used[a->worker][s]);
            used[a->worker][s] = true;
            load[a->worker]++;
            total++;
        }
    }
    assert_int_equal(total, f->plan->layout.enough * span);
    for (size_t s = 0; s < span; s++) {
        size_t members = 0;

        for (size_t w = 0; w < n; w++)
            members += used[w][s];
        assert_int_equal(members, f->plan->layout.enough);
    }
    for (size_t w = 0; w < n; w++) {
        size_t edges = 0;

        for (size_t s = 0; s < span; s++)
            edges += used[w][s] && !used[w][(s + 1) % span];
        assert_true(arcs[w] <= 2 && edges <= 1);
    }
}

/* Strips [s cut] of span are dealt to `users`, k of them. */
static void users_are(bool used[][200], size_t lo, size_t hi, const int *users,
                      size_t k, size_t n)
{
    for (size_t s = lo; s < hi; s++)
        for (size_t w = 0, found = 0; w < n; w++) {
            bool listed = found < k && users[found] == (int)w;

            assert_true(used[w][s] == listed);
            found += listed;
        }
}

/* facts cec.fig1b.users and cec.fig1d.users, for spans that divide and others.
 */
static void figure_1_is_dealt(void **state)
{
    static const int all[6][3] = {{0, 4, 5}, {0, 1, 5}, {0, 1, 2},
                                  {1, 2, 3}, {2, 3, 4}, {3, 4, 5}};
    static const int four[4][3] = {{0, 4, 5}, {0, 2, 5}, {0, 2, 4}, {2, 4, 5}};
    static const double even[6] = {1, 1, 1, 1, 1, 1};
    static const char *const deals[] = {"equal", "speed"};
    bool used[6][200];
    size_t load[6];

    (void)state;
    for (size_t span = 12; span <= 113; span += 101)
        for (int d = 0; d < 2; d++) {
            floor_t f;

            floor_up(&f, 6, 3, span, deals[d]);
            begin(&f);
            read_deal(&f, 6, used, load);
            for (size_t j = 0; j < 6; j++)
                users_are(used, j * span / 6, (j + 1) * span / 6, all[j], 3, 6);
            answer(&f, even);
            tell(&f, (kofn_event){.type = KOFN_EV_LEFT, .worker = 1});
            tell(&f, (kofn_event){.type = KOFN_EV_LEFT, .worker = 3});
            begin(&f);
            read_deal(&f, 6, used, load);
            for (size_t j = 0; j < 4; j++)
                users_are(used, j * span / 4, (j + 1) * span / 4, four[j], 3,
                          6);
            answer(&f, even);
            floor_down(&f);
        }
}

/* facts cec.hetero.example: speeds 1 1 4 2 8, L = 3, R = 22. */
static void unequal_example_is_dealt(void **state)
{
    static const double speed[5] = {1, 1, 4, 2, 8};
    static const size_t rows[5] = {6, 5, 22, 11, 22};
    static const int users[3][3] = {{0, 2, 4}, {1, 2, 4}, {2, 3, 4}};
    static const size_t cut[4] = {0, 6, 11, 22};
    bool used[5][200];
    size_t load[5];
    floor_t f;

    (void)state;
    floor_up(&f, 5, 3, 22, "speed");
    begin(&f);
    answer(&f, speed);
    begin(&f);
    read_deal(&f, 5, used, load);
    for (size_t p = 0; p < 5; p++)
        assert_int_equal(load[p], rows[p]);
    for (size_t s = 0; s < 3; s++)
        users_are(used, cut[s], cut[s + 1], users[s], 3, 5);
    answer(&f, speed);
    floor_down(&f);
}

/* math/elastic.md 3: cuts floor(j R/n), rank p on the k groups from p on. */
static void equal_deals(void **state)
{
    kf_rng r = kf_rng_stream(6, KF_FOR_DATA, 0, 0);
    size_t trials = (size_t)(300 * test_scale()) / EVERY;

    (void)state;
    for (size_t t = 0; t < trials; t++) {
        size_t n = 1 + kf_rng_below(&r, 24), k = 1 + kf_rng_below(&r, n);
        size_t span = 1 + kf_rng_below(&r, 199), load[24];
        bool used[24][200];
        floor_t f;

        floor_up(&f, n, k, span, "equal");
        begin(&f);
        read_deal(&f, n, used, load);
        for (size_t p = 0; p < n; p++) {
            assert_true(load[p] == k * span / n ||
                        load[p] == kf_ceil_div(k * span, n));
            for (size_t j = 0; j < n; j++)
                for (size_t s = j * span / n; s < (j + 1) * span / n; s++)
                    assert_true(used[p][s] == ((j + n - p) % n < k));
        }
        floor_down(&f);
    }
}

/* Returns the level c with sum of min(1, c v) = k, by bisection. */
static double water_level(const double *v, size_t n, size_t k)
{
    double lo = 0, hi = 1;

    for (size_t p = 0; p < n; p++)
        hi = fmax(hi, 1 / v[p]);
    for (int i = 0; i < 200; i++) {
        double c = (lo + hi) / 2, sum = 0;

        for (size_t p = 0; p < n; p++)
            sum += fmin(1, c * v[p]);
        *(sum < (double)k ? &lo : &hi) = c;
    }
    return hi;
}

/* Shares mu <= 1 with sum k and T = max mu/v have mu <= min(1, T v). This sum
 * reaches k at the water level and not below. So no shares finish before c,
 * and whole strips next to the level are optimal to a strip. */
static void deals_follow_the_water(const double *v, const size_t *load,
                                   size_t n, size_t k, size_t span)
{
    double c = water_level(v, n, k);

    for (size_t p = 0; p < n; p++) {
        double exact = fmin(1, c * v[p]) * (double)span;

        assert_true((double)load[p] >= floor(exact - 1e-6) &&
                    (double)load[p] <= ceil(exact + 1e-6));
    }
}

static void unequal_deals(void **state)
{
    kf_rng r = kf_rng_stream(7, KF_FOR_DATA, 0, 0);
    size_t trials = (size_t)(300 * test_scale()) / EVERY;

    (void)state;
    for (size_t t = 0; t < trials; t++) {
        size_t n = 1 + kf_rng_below(&r, 24), k = 1 + kf_rng_below(&r, n);
        size_t span = n + kf_rng_below(&r, 200 - n), load[24];
        double v[24], reach = kf_rng_uniform(&r) * 7;
        bool used[24][200];
        floor_t f;

        for (size_t p = 0; p < n; p++)
            v[p] = p && kf_rng_below(&r, 4) == 0
                       ? v[p - 1]
                       : exp(reach * kf_rng_uniform(&r));
        floor_up(&f, n, k, span, "speed");
        begin(&f);
        answer(&f, v);
        begin(&f);
        read_deal(&f, n, used, load);
        deals_follow_the_water(v, load, n, k, span);
        answer(&f, v);
        floor_down(&f);
    }
}

/* ---- pieces -------------------------------------------------------------- */

/* A whole block of two components comes in four results. Products of 4e7
 * multiply-adds or more with 64 columns or more send one result per 256 rows.
 * Rows of all components count. */
static void pieces_of_a_share(void **state)
{
    static const struct {
        kofn_problem pb;
        const char *spec;
        size_t want;
    } all[] = {
        {KOFN_PROBLEM_INIT(KOFN_MATVEC, 20000, 5000, 1, KOFN_F64, false),
         "gauss", 4},
        {KOFN_PROBLEM_INIT(KOFN_MATMUL, 1022, 3000, 63, KOFN_F64, false),
         "gauss", 4},
        {KOFN_PROBLEM_INIT(KOFN_MATMUL, 1022, 3000, 64, KOFN_F64, false),
         "gauss", 1},
        {KOFN_PROBLEM_INIT(KOFN_MATMUL, 1024, 3000, 64, KOFN_F64, false),
         "gauss", 2},
        {KOFN_PROBLEM_INIT(KOFN_MATMUL, 510, 3000, 64, KOFN_F64, false),
         "gauss", 1},
        {KOFN_PROBLEM_INIT(KOFN_MATMUL, 2046, 3000, 64, KOFN_F32, false),
         "gauss", 3},
        {KOFN_PROBLEM_INIT(KOFN_MATMUL, 9000, 3000, 64, KOFN_F64, false),
         "gauss", 4},
        {KOFN_PROBLEM_INIT(KOFN_MATMUL, 1024, 3000, 64, KOFN_F64, true),
         "gauss", 4},
        {KOFN_PROBLEM_INIT(KOFN_MATMUL, 1024, 1220, 64, KOFN_F64, false),
         "gauss", 4},
        {KOFN_PROBLEM_INIT(KOFN_MATMUL, 1024, 1221, 64, KOFN_F64, false),
         "gauss", 2},
        {KOFN_PROBLEM_INIT(KOFN_MATMUL, 1024, 1221, 64, KOFN_F64, false),
         "quaternion", 2},
    };

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        kofn_core_options opt = {.size = sizeof opt, .max_error = 1e300};
        floor_t f = {0};
        char spec[40];
        size_t came = 0;

        snprintf(spec, sizeof spec, "mds:k=2,basis=%s", all[i].spec);
        assert_ok(kofn_plan_new(&f.plan, &all[i].pb, spec, 3, 1));
        assert_ok(kf_core_new(&f.core, f.plan, &opt));
        join_all(&f, 3);
        begin(&f);
        for (size_t k = 0; k < f.works; k++)
            came += f.work[k].worker == 0;
        if (came != all[i].want)
            fail_msg("case %zu: %zu results, not %zu", i, came, all[i].want);
        floor_down(&f);
    }
}

TEST_FILE(deal_test)
{
    const struct CMUnitTest tests[] = {
        TEST(
            figure_1_is_dealt,
            "deal: figure 1 of the paper is dealt (spans that divide, others)"),
        TEST(unequal_example_is_dealt,
             "deal: the paper's unequal speeds are dealt (1 1 4 2 8)"),
        TEST(equal_deals, "deal: equal deals are those of the theorem"),
        TEST(unequal_deals,
             "deal: unequal deals follow the water level to a strip"),
        TEST(pieces_of_a_share,
             "deal: a share comes in the documented number of results"),
    };

    return cmocka_run_group_tests_name("deal", tests, setup, NULL);
}
