/* check_test.c -- tests a whole check: faulty results are located, the output
 * is within the floor, and the sketch sees every error. */
#include "check_rig.h"

/* Counts of the trials. */
typedef struct tally {
    /* below the limit, at it, decided at it; with a raised alarm */
    size_t trials, edge, sorted, eased;
    double worst, floor;
} tally;

/* Runs trial n of the i-th code with t faulty workers. */
static void try_way(check_case *f, size_t i, size_t t, size_t n, tally *all)
{
    kf_rng r = kf_rng_stream(i, KF_FOR_SAMPLE, (uint32_t)t, (uint32_t)n);
    size_t most = f->seats - f->enough - 1;
    way w = (way)(n % WAYS);
    bool faulty[MOST_SEATS], sure;
    verdict v;

    /* Results of zeros are a word of the code, so a lot of them look right. */
    if (w == ZERO && 2 * t > f->seats - f->enough)
        w = DENSE;
    send_honest(f);
    choose_faulty(f, faulty, t, &r);
    for (size_t s = 0; s < f->seats; s++)
        if (faulty[s])
            spoil(f, s, w, &r);
    v = ask_all(f, most, 77 + n);
    sure = decidable(f, faulty, t);
    all->trials += t < most && sure;
    all->edge += t == most && sure;
    all->sorted += t == most && sure && v.st == KOFN_OK;
    if (check_verdict(f, &v, faulty, way_names[w])) {
        /* Errors below the floor add to the error. */
        if (f->plan->layout.groups == 1 && w != FLIP)
            all->worst = fmax(all->worst, decode_rest(f, &v));
        if (2 * t <= most)
            all->floor = fmax(all->floor, v.floor);
        /* Errors well above the alarm do not raise it. */
        if (2 * t <= most + 1 && w != FLIP)
            assert_int_equal(v.eased, 0);
        all->eased += v.eased > 0;
    } else if (t < most && sure) {
        fail_msg("%s: %zu faulty, %s: %s", f->plan->spec, t, way_names[w],
                 kofn_errmsg());
    }
}

static void whole_check(void **state)
{
    tally all = {0};

    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        check_case f;

        check_case_up(&f, &kinds[i]);
        for (size_t t = 0; t < f.seats - f.enough; t++)
            for (size_t n = 0; n < often(2 * WAYS); n++)
                try_way(&f, i, t, n, &all);
        check_case_down(&f);
    }
    print_message("    %zu trials below the limit, %zu of %zu at it, %zu with "
                  "a raised alarm; error at most %.2f of predicted, "
                  "floor %.1e up to half of it\n",
                  all.trials, all.sorted, all.edge, all.eased, all.worst,
                  all.floor);
    assert_at_most(all.worst, 1);
    assert_true((double)all.sorted >= 0.99 * (double)all.edge);
}

/* Whether a location is an accident is decided from the results that remain
 * without the certainly faulty ones. This trial of seven faulty workers needs
 * that. */
static void certain_errors_first(void **state)
{
    const size_t i = 9;
    tally all = {0};
    check_case f;

    (void)state;
    assert_string_equal(kinds[i].spec, "matdot:n=5,angles=24");
    check_case_up(&f, &kinds[i]);
    try_way(&f, i, 7, WAYS + FLIP, &all);
    assert_int_equal(all.trials, 1);
    check_case_down(&f);
}

/* True if exactly half of the spare results are faulty, all in one column.
 * Then only half of the parities are left to exclude an accident, which is
 * little in single precision (math/errors.md 3). */
static bool in_one_column(const check_case *f, const bool *faulty, size_t t)
{
    size_t column = SIZE_MAX;

    for (size_t s = 0; s < f->seats; s++) {
        size_t only = faulty[s] ? only_column(f, s) : column;

        if (only == SIZE_MAX && faulty[s])
            return false;
        if (faulty[s] && column != SIZE_MAX && only != column)
            return false;
        column = only;
    }
    return t > 1 && 2 * t == f->seats - f->enough;
}

/* In single precision all are located up to half of the spare results.
 * Exceptions are bit flips that hardly show, and rarely single entries in the
 * same column. Beyond half no honest worker is named. */
static void single_precision(void **state)
{
    static const kind singles[] = {
        {"mds:k=4", 8, KOFN_MATVEC, 400, 64, 1, KOFN_F32, false},
        {"mds:k=10", 20, KOFN_MATMUL, 400, 64, 30, KOFN_F32, false},
        {"mds:k=9,basis=harmonic", 14, KOFN_MATMUL, 200, 150, 30, KOFN_F32,
         false},
        {"mds:k=9,basis=gauss_sys", 18, KOFN_MATVEC, 900, 64, 1, KOFN_F32,
         false},
        {"matdot:n=3", 9, KOFN_MATMUL, 50, 60, 41, KOFN_F32, false},
        {"polynomial:m=2,p=2", 8, KOFN_MATMUL, 90, 60, 41, KOFN_F32, false},
    };
    double worst = 0, floor = 0;
    size_t flips = 0, found = 0, beyond = 0, sorted = 0, met = 0, located = 0;

    (void)state;
    for (size_t i = 0; i < sizeof singles / sizeof *singles; i++) {
        check_case f;
        size_t most;

        check_case_up(&f, &singles[i]);
        most = f.seats - f.enough - 1;
        for (size_t t = 0; t <= most; t++)
            for (size_t n = 0; n < often(2 * WAYS); n++) {
                kf_rng r = kf_rng_stream(50 + i, KF_FOR_SAMPLE, (uint32_t)t,
                                         (uint32_t)n);
                way w = (way)(n % WAYS);
                bool faulty[MOST_SEATS], half = 2 * t <= f.seats - f.enough;
                bool meet, ok;
                verdict v;

                if (w == ZERO && !half)
                    w = DENSE;
                send_honest(&f);
                choose_faulty(&f, faulty, t, &r);
                for (size_t s = 0; s < f.seats; s++)
                    if (faulty[s])
                        spoil(&f, s, w, &r);
                v = ask_all(&f, most, n);
                ok = check_verdict(&f, &v, faulty, way_names[w]);
                meet = w == ENTRY && in_one_column(&f, faulty, t);
                met += meet;
                located += meet && ok;
                if (half && !ok && !meet && w != FLIP)
                    fail_msg("%s: %zu faulty, %s: %s", f.plan->spec, t,
                             way_names[w], kofn_errmsg());
                if (ok && v.count == t)
                    worst = fmax(worst, decode_rest(&f, &v));
                if (half && ok)
                    floor = fmax(floor, v.floor);
                flips += half && w == FLIP;
                found += half && w == FLIP && ok;
                beyond += !half;
                sorted += !half && ok;
            }
        check_case_down(&f);
    }
    print_message(
        "    error at most %.2f of predicted, floor %.1e; of flipped "
        "bits %zu of %zu, of entries that meet %zu of %zu, beyond half "
        "%zu of %zu\n",
        worst, floor, found, flips, located, met, sorted, beyond);
    assert_at_most(worst, 1);
    assert_true((double)found >= 0.9 * (double)flips);
}

/* ---- parts of results ---------------------------------------------------- */

static void any_strips(void **state)
{
    (void)state;
    for (uint32_t n = 0; n < often(200); n++) {
        kf_rng r = kf_rng_stream(3, KF_FOR_SAMPLE, n, 0);
        kind k = {"mds:k=4",   9,
                  KOFN_MATMUL, 16 * (1 + kf_rng_below(&r, 60)),
                  20,          1 + kf_rng_below(&r, 70),
                  KOFN_F64,    false};
        size_t seats = 0, lo, hi, strip, col;
        uint32_t seat[MOST_SEATS], one;
        kofn_matrix *to;
        verdict v;
        check_case f;

        check_case_up(&f, &k);
        send_honest(&f);
        for (uint32_t i = 0; i < 9; i++)
            if (9 - i + seats <= 7 || kf_rng_below(&r, 4))
                seat[seats++] = i;
        lo = kf_rng_below(&r, f.plan->span);
        hi = lo + 1 + kf_rng_below(&r, f.plan->span - lo);
        v = ask(&f, seat, seats, lo, hi, seats - 5, n);
        assert_int_equal(v.st, KOFN_OK);
        assert_int_equal(v.count, 0);
        /* one entry of one component, in these strips */
        one = (uint32_t)kf_rng_below(&r, seats);
        to = &f.sent[seat[one]];
        strip = lo + kf_rng_below(&r, hi - lo);
        col = kf_rng_below(&r, to->cols);
        put(to, (kf_rng_below(&r, 4) * f.plan->span + strip) * to->cols + col,
            1e-3);
        v = ask(&f, seat, seats, lo, hi, seats - 5, n);
        assert_int_equal(v.st, KOFN_OK);
        assert_int_equal(v.count, 1);
        assert_int_equal(v.bad[0], one);
        /* an error in other strips does not matter */
        send_honest(&f);
        if (lo > 0) {
            put(to, (lo - 1) * to->cols + col, NAN);
            v = ask(&f, seat, seats, lo, hi, seats - 5, n);
            assert_int_equal(v.count, 0);
        }
        check_case_down(&f);
    }
}

/* The errors would cancel in a sum without weights or with signs as weights. */
static void no_errors_cancel(void **state)
{
    const kind k = {"mds:k=4", 9, KOFN_MATMUL, 1600, 20, 64, KOFN_F64, false};
    uint64_t passed = 0;
    check_case f;

    (void)state;
    check_case_up(&f, &k);
    for (uint32_t n = 0; n < often(400); n++) {
        kf_rng r = kf_rng_stream(4, KF_FOR_SAMPLE, n, 0);
        size_t e = kf_rng_below(&r, 256),
               step = kf_rng_below(&r, 2) ? 256 : 2048;
        double x = 1e-3;
        verdict v;

        send_honest(&f);
        put(&f.sent[2], e, get(&f.sent[2], e) + x * scale(&f, e));
        put(&f.sent[2], e + step,
            get(&f.sent[2], e + step) +
                (kf_rng_below(&r, 2) ? x : -x) * scale(&f, e + step));
        v = ask_all(&f, 4, n);
        passed += v.count == 0;
        assert_int_equal(v.st, KOFN_OK);
    }
    assert_int_equal(passed, 0);
    check_case_down(&f);
}

/* Returns the drift of these honest results, computed with the weights of one
 * cell. */
static double drift_by(check_case *f, uint64_t secret, uint32_t number)
{
    verdict v;

    f->checks = number;
    v = ask_all(f, 4, secret);
    assert_int_equal(v.st, KOFN_OK);
    assert_true(v.drift > 0);
    return v.drift;
}

/* A worker that knows the weights of one cell, or of another secret, does not
 * know the weights of the others. */
static void weights_differ_by_cell(void **state)
{
    const kind k = {"mds:k=4", 9, KOFN_MATMUL, 1600, 20, 64, KOFN_F64, false};
    check_case f;

    (void)state;
    check_case_up(&f, &k);
    send_honest(&f);
    assert_true(drift_by(&f, 1, 0) == drift_by(&f, 1, 0));
    assert_true(drift_by(&f, 1, 0) != drift_by(&f, 2, 0));
    assert_true(drift_by(&f, 1, 0) != drift_by(&f, 1, 1));
    check_case_down(&f);
}

/* The results are too few to compare. */
static void nothing_to_compare(void **state)
{
    const kind k = {"mds:k=4", 9, KOFN_MATVEC, 160, 20, 1, KOFN_F64, false};
    const uint32_t seat[] = {0, 3, 5, 8};
    verdict v;
    check_case f;

    (void)state;
    check_case_up(&f, &k);
    send_honest(&f);
    v = ask(&f, seat, 4, 0, f.plan->span, 3, 1);
    assert_int_equal(v.st, KOFN_OK);
    assert_int_equal(v.count, 0);
    assert_true(v.floor == HUGE_VAL);
    put(&f.sent[5], 3, NAN);
    v = ask(&f, seat, 4, 0, f.plan->span, 3, 1);
    assert_int_equal(v.st, KOFN_CORRUPT);
    assert_int_equal(v.count, 1);
    assert_int_equal(v.bad[0], 2);
    /* detection only */
    send_honest(&f);
    put(&f.sent[5], 3, 1);
    v = ask_all(&f, 0, 1);
    assert_int_equal(v.st, KOFN_CORRUPT);
    assert_int_equal(v.count, 0);
    check_case_down(&f);
}

static void memory_runs_out(void **state)
{
    const kind k = {"mds:k=4", 9, KOFN_MATMUL, 160, 20, 60, KOFN_F64, false};
    const uint32_t seat[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    kf_source source[9];
    kofn_status st = KOFN_NOMEM;
    kofn_decoder *d;
    uint32_t bad[9];
    kf_found found = {.bad = bad};
    kf_compare c;
    check_case f;

    (void)state;
    check_case_up(&f, &k);
    send_honest(&f);
    put(&f.sent[2], 7, 1);
    put(&f.sent[3], 7, NAN);
    put(&f.sent[5], 7, 1);
    assert_ok(kf_decoder_new(&d, f.code, seat, 9, false));
    for (size_t i = 0; i < 9; i++)
        source[i] = (kf_source){&f.sent[i], 0, f.plan->span};
    for (long n = 1; st == KOFN_NOMEM; n++) {
        long before = allocated();
        double *H;

        c = (kf_compare){.plan = f.plan,
                         .code = f.code,
                         .decoder = d,
                         .source = source,
                         .hi = f.plan->span,
                         .most = 4,
                         .liars = 2,
                         .independent = 4,
                         .row = f.row,
                         .col = f.col};
        fail_allocation(n);
        st = kf_parity(f.code, seat, 9, &H, &c.q);
        c.H = H;
        if (!st)
            st = kf_compare_results(&c, &found);
        fail_allocation(0);
        kf_free(H);
        assert_int_equal(allocated(), before);
        assert_true(n < 200);
    }
    assert_int_equal(st, KOFN_OK);
    kf_decoder_free(d);
    check_case_down(&f);
}

TEST_FILE(check_test)
{
    const struct CMUnitTest tests[] = {
        TEST(whole_check,
             "check: faulty results are located up to the limit (15 codes)"),
        TEST(certain_errors_first,
             "check: certainly faulty results are left out first (7 of 24)"),
        TEST(single_precision,
             "check: float32 locates up to half of the spare results"),
        TEST(any_strips, "check: any run of strips can be checked"),
        TEST(no_errors_cancel,
             "check: pairs of wrong entries never cancel in the sketch"),
        TEST(weights_differ_by_cell,
             "check: weights differ by cell and by secret"),
        TEST(nothing_to_compare,
             "check: too few results have an infinite floor, and NaN is found"),
        TEST(memory_runs_out,
             "check: each failed allocation is reported and leaks nothing"),
    };

    count_allocations();
    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
