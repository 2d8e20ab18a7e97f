/* check_test.c -- the whole way of a check: who lied is found, what is
 * delivered is within the floor, and no lie is made which the sketch does not
 * see.
 */
#include "check_rig.h"

/* What came of the trials. */
typedef struct tally {
    size_t trials, edge, sorted,
        eased; /* below the limit, at it, sorted out there */
    double worst, floor;
} tally;

/* The n-th with t liars of the i-th kind. */
static void try_way(fleet *f, size_t i, size_t t, size_t n, tally *all)
{
    kf_rng r = kf_rng_stream(i, KF_FOR_SAMPLE, (uint32_t)t, (uint32_t)n);
    size_t most = f->seats - f->enough - 1;
    way w = (way)(n % WAYS);
    bool liar[MOST_SEATS], told;
    verdict v;

    /* Many zeros are a word of the code. */
    if (w == ZERO && 2 * t > f->seats - f->enough)
        w = DENSE;
    send_honest(f);
    choose_liars(f, liar, t, &r);
    for (size_t s = 0; s < f->seats; s++)
        if (liar[s])
            spoil(f, s, w, &r);
    v = ask_all(f, most, 77 + n);
    told = suffices(f, liar, t);
    all->trials += t < most && told;
    all->edge += t == most && told;
    all->sorted += t == most && told && v.st == KOFN_OK;
    if (judge(f, &v, liar, way_names[w])) {
        /* Lies below the floor add to the error. */
        if (f->plan->layout.groups == 1 && w != FLIP)
            all->worst = fmax(all->worst, decode_rest(f, &v));
        if (2 * t <= most)
            all->floor = fmax(all->floor, v.floor);
        /* Lies that are well above the alarm are told by it. */
        if (2 * t <= most + 1 && w != FLIP)
            assert_int_equal(v.eased, 0);
        all->eased += v.eased > 0;
    } else if (t < most && told) {
        fail_msg("%s: %zu liars, %s: %s", f->plan->spec, t, way_names[w],
                 kofn_errmsg());
    }
}

static void whole_way(void **state)
{
    tally all = {0};

    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        fleet f;

        fleet_up(&f, &kinds[i]);
        for (size_t t = 0; t < f.seats - f.enough; t++)
            for (size_t n = 0; n < often(2 * WAYS); n++)
                try_way(&f, i, t, n, &all);
        fleet_down(&f);
    }
    print_message("    %zu trials below the limit, %zu of %zu at it, %zu with "
                  "an alarm made higher; error at most %.2f of predicted, "
                  "floor %.1e up to half of it\n",
                  all.trials, all.sorted, all.edge, all.eased, all.worst,
                  all.floor);
    assert_at_most(all.worst, 1);
    assert_true((double)all.sorted >= 0.99 * (double)all.edge);
}

/* Whether others are only there by accident is asked of what those leave who
 * are certain to lie, not of all: a trial of seven liars in which that matters.
 */
static void who_is_certain_is_left_out_first(void **state)
{
    const size_t i = 9;
    tally all = {0};
    fleet f;

    (void)state;
    assert_string_equal(kinds[i].spec, "matdot:n=5,angles=24");
    fleet_up(&f, &kinds[i]);
    try_way(&f, i, 7, WAYS + FLIP, &all);
    assert_int_equal(all.trials, 1);
    fleet_down(&f);
}

/* Are just as many wrong as half of what is over, and in one column only?  That
 * leaves half of the parities to say that it was no accident, which in single
 * precision is little (math/errors.md 3). */
static bool met_in_one(const fleet *f, const bool *liar, size_t t)
{
    size_t column = SIZE_MAX;

    for (size_t s = 0; s < f->seats; s++) {
        size_t only = liar[s] ? only_column(f, s) : column;

        if (only == SIZE_MAX && liar[s])
            return false;
        if (liar[s] && column != SIZE_MAX && only != column)
            return false;
        column = only;
    }
    return t > 1 && 2 * t == f->seats - f->enough;
}

/* Single precision: all found up to half of the results over, but for flips of
 * bits that hardly show, and rarely for single entries that meet; beyond it
 * what can be, and nothing wrong. */
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
    size_t flips = 0, found = 0, beyond = 0, sorted = 0, met = 0, told = 0;

    (void)state;
    for (size_t i = 0; i < sizeof singles / sizeof *singles; i++) {
        fleet f;
        size_t most;

        fleet_up(&f, &singles[i]);
        most = f.seats - f.enough - 1;
        for (size_t t = 0; t <= most; t++)
            for (size_t n = 0; n < often(2 * WAYS); n++) {
                kf_rng r = kf_rng_stream(50 + i, KF_FOR_SAMPLE, (uint32_t)t,
                                         (uint32_t)n);
                way w = (way)(n % WAYS);
                bool liar[MOST_SEATS], half = 2 * t <= f.seats - f.enough;
                bool meet, ok;
                verdict v;

                if (w == ZERO && !half)
                    w = DENSE;
                send_honest(&f);
                choose_liars(&f, liar, t, &r);
                for (size_t s = 0; s < f.seats; s++)
                    if (liar[s])
                        spoil(&f, s, w, &r);
                v = ask_all(&f, most, n);
                ok = judge(&f, &v, liar, way_names[w]);
                meet = w == ENTRY && met_in_one(&f, liar, t);
                met += meet;
                told += meet && ok;
                if (half && !ok && !meet && w != FLIP)
                    fail_msg("%s: %zu liars, %s: %s", f.plan->spec, t,
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
        fleet_down(&f);
    }
    print_message(
        "    error at most %.2f of predicted, floor %.1e; of flipped "
        "bits %zu of %zu, of entries that meet %zu of %zu, beyond half "
        "%zu of %zu\n",
        worst, floor, found, flips, told, met, sorted, beyond);
    assert_at_most(worst, 1);
    assert_true((double)found >= 0.9 * (double)flips);
}

/* ---- parts of results ---------------------------------------------------- */

/* Any run of strips of any seats can be asked about. */
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
        uint32_t seat[MOST_SEATS], who;
        kofn_matrix *to;
        verdict v;
        fleet f;

        fleet_up(&f, &k);
        send_honest(&f);
        for (uint32_t i = 0; i < 9; i++)
            if (9 - i + seats <= 7 || kf_rng_below(&r, 4))
                seat[seats++] = i;
        lo = kf_rng_below(&r, f.plan->span);
        hi = lo + 1 + kf_rng_below(&r, f.plan->span - lo);
        v = ask(&f, seat, seats, lo, hi, seats - 5, n);
        assert_int_equal(v.st, KOFN_OK);
        assert_int_equal(v.count, 0);
        /* one entry of one lane, in these strips */
        who = (uint32_t)kf_rng_below(&r, seats);
        to = &f.sent[seat[who]];
        strip = lo + kf_rng_below(&r, hi - lo);
        col = kf_rng_below(&r, to->cols);
        put(to, (kf_rng_below(&r, 4) * f.plan->span + strip) * to->cols + col,
            1e-3);
        v = ask(&f, seat, seats, lo, hi, seats - 5, n);
        assert_int_equal(v.st, KOFN_OK);
        assert_int_equal(v.count, 1);
        assert_int_equal(v.bad[0], who);
        /* and none of the others' business */
        send_honest(&f);
        if (lo > 0) {
            put(to, (lo - 1) * to->cols + col, NAN);
            v = ask(&f, seat, seats, lo, hi, seats - 5, n);
            assert_int_equal(v.count, 0);
        }
        fleet_down(&f);
    }
}

/* Lies that cancel in a sum that is not weighted, or weighted with signs. */
static void nothing_cancels(void **state)
{
    const kind k = {"mds:k=4", 9, KOFN_MATMUL, 1600, 20, 64, KOFN_F64, false};
    uint64_t passed = 0;
    fleet f;

    (void)state;
    fleet_up(&f, &k);
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
    fleet_down(&f);
}

/* Of the rounding of these honest results, by the weights of a cell. */
static double drift_by(fleet *f, uint64_t secret, uint32_t number)
{
    verdict v;

    f->checks = number;
    v = ask_all(f, 4, secret);
    assert_int_equal(v.st, KOFN_OK);
    assert_true(v.drift > 0);
    return v.drift;
}

/* Who knows the weights of one cell, or another's secret, does not know those
 * of others. */
static void weights_are_the_cells_own(void **state)
{
    const kind k = {"mds:k=4", 9, KOFN_MATMUL, 1600, 20, 64, KOFN_F64, false};
    fleet f;

    (void)state;
    fleet_up(&f, &k);
    send_honest(&f);
    assert_true(drift_by(&f, 1, 0) == drift_by(&f, 1, 0));
    assert_true(drift_by(&f, 1, 0) != drift_by(&f, 2, 0));
    assert_true(drift_by(&f, 1, 0) != drift_by(&f, 1, 1));
    fleet_down(&f);
}

/* Fewer results than can say anything. */
static void nothing_to_compare(void **state)
{
    const kind k = {"mds:k=4", 9, KOFN_MATVEC, 160, 20, 1, KOFN_F64, false};
    const uint32_t seat[] = {0, 3, 5, 8};
    verdict v;
    fleet f;

    (void)state;
    fleet_up(&f, &k);
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
    fleet_down(&f);
}

/* Whichever allocation fails, it is said and nothing is lost. */
static void memory_runs_out(void **state)
{
    const kind k = {"mds:k=4", 9, KOFN_MATMUL, 160, 20, 60, KOFN_F64, false};
    const uint32_t seat[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    kf_source source[9];
    kofn_status st = KOFN_NOMEM;
    kofn_decoder *d;
    uint32_t bad[9];
    kf_found found = {.bad = bad};
    kf_check c;
    fleet f;

    (void)state;
    fleet_up(&f, &k);
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

        c = (kf_check){.plan = f.plan,
                       .code = f.code,
                       .decoder = d,
                       .source = source,
                       .hi = f.plan->span,
                       .most = 4,
                       .liars = 2,
                       .promised = 4,
                       .row = f.row,
                       .col = f.col};
        fail_allocation(n);
        st = kf_parity(f.code, seat, 9, &H, &c.q);
        c.H = H;
        if (!st)
            st = kf_check_results(&c, &found);
        fail_allocation(0);
        kf_free(H);
        assert_int_equal(allocated(), before);
        assert_true(n < 200);
    }
    assert_int_equal(st, KOFN_OK);
    kf_decoder_free(d);
    fleet_down(&f);
}

TEST_FILE(check_test)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_way),
        cmocka_unit_test(who_is_certain_is_left_out_first),
        cmocka_unit_test(single_precision),
        cmocka_unit_test(any_strips),
        cmocka_unit_test(nothing_cancels),
        cmocka_unit_test(weights_are_the_cells_own),
        cmocka_unit_test(nothing_to_compare),
        cmocka_unit_test(memory_runs_out),
    };

    count_allocations();
    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
