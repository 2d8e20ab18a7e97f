/* stream_play_test.c -- streams whose rounds are played out: traces that are
 * known, deadlines under every pattern of small fleets, and the figures of kofn
 * bench stream. */
#include "rig.h"

#include "stream/stream.h"

#include <string.h>

static stream_played play(const stream_setup *x)
{
    stream_played p;

    assert_ok(stream_play(x, &p));
    return p;
}

/* ---- traces -------------------------------------------------------------- */

/* DIP, four workers, six results, five products; who is slow, and five times as
 * long then: worked out by hand from the rules. */
static void traces(void **state)
{
    static const double slow[8][4] = {{5, 5, 1, 1}, {5, 5, 5, 1}, {1, 1, 1, 5},
                                      {5, 5, 5, 1}, {1, 5, 1, 1}, {5, 5, 5, 5},
                                      {1, 1, 1, 1}, {1, 1, 5, 1}};
    static const struct {
        size_t T, lambda;
        double took[8];
        size_t slots, waits;
    } all[] = {{3, 1, {1, 2, 3, 3, 4, 10, 0, 0}, 4, 0},
               {1, 4, {1, 10, 2, 10, 2, 5, 0, 0}, 2, 2}};
    kofn_matrix pattern = {(void *)(uintptr_t)slow, 8, 4, 4, KOFN_F64};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        double took[8] = {0}, sum = 0;
        stream_setup x = {.scheme = {.kind = RHAT_DIP,
                                     .threshold = 6,
                                     .T = all[i].T,
                                     .lambda = all[i].lambda},
                          .workers = 4,
                          .alpha = 5,
                          .products = 5,
                          .pattern = &pattern,
                          .took = took,
                          .rounds_kept = 8};
        stream_played p = play(&x);

        for (size_t t = 0; t < 8; t++) {
            assert_true(fabs(took[t] - all[i].took[t]) < 1e-12);
            sum += took[t];
        }
        assert_true(fabs(p.time - sum / 6) < 1e-12);
        assert_int_equal(p.slots, all[i].slots);
        assert_int_equal(p.waits, all[i].waits);
        assert_int_equal(p.missed, 0);
        assert_int_equal(p.delay, all[i].T);
    }
}

/* ---- deadlines ----------------------------------------------------------- */

/* Every pattern of `rounds` rounds, with a few parameters. */
static void every_pattern(size_t P, size_t rounds, const rhat_scheme *s,
                          size_t B, size_t eps, size_t slots)
{
    double cell[16] = {0};
    kofn_matrix pattern = {cell, rounds, P, P, KOFN_F64};
    stream_setup x = {.scheme = *s,
                      .B = B,
                      .eps = eps,
                      .workers = P,
                      .alpha = 3,
                      .products = rounds,
                      .pattern = &pattern};

    for (size_t code = 0; code < (size_t)1 << (P * rounds); code++) {
        stream_played p;

        for (size_t e = 0; e < P * rounds; e++)
            cell[e] = code >> e & 1 ? 3 : 1;
        p = play(&x);
        assert_int_equal(p.missed, 0);
        assert_in_range(p.slots, 1, slots);
    }
}

static void deadlines_hold(void **state)
{
    (void)state;
    for (size_t P = 1; P <= 3; P++) {
        size_t rounds = P == 1 ? 10 : P == 2 ? 6 : 4;

        for (size_t T = 0; T <= 3; T++)
            for (size_t lambda = 1; lambda <= P; lambda++)
                for (size_t beta = 1; beta <= 6; beta += 2)
                    every_pattern(P, rounds,
                                  &(rhat_scheme){.kind = RHAT_DIP,
                                                 .threshold = beta,
                                                 .T = T,
                                                 .lambda = lambda},
                                  0, 0, T + (beta + lambda - 1) / lambda);
        for (size_t W = 1; W <= 3; W++)
            for (size_t N = 0; N < P * W; N++)
                every_pattern(
                    P, rounds,
                    &(rhat_scheme){
                        .kind = RHAT_IDIP, .N = N, .W = W, .late = N % 2},
                    0, 0, W);
        for (size_t W = 2; W <= 3; W++)
            for (size_t B = 1; B < W; B++)
                for (size_t eps = 1; eps <= P; eps++)
                    every_pattern(P, rounds,
                                  &(rhat_scheme){.kind = RHAT_IDIP, .W = W}, B,
                                  eps, W - 1 + B);
    }
}

/* ---- figures ------------------------------------------------------------- */

static void figure_1(void **state)
{
    (void)state;
    for (size_t panel = 1; panel <= 2; panel++) {
        figure1_result r;

        assert_ok(figure1_run(panel, often(100000), 1, &r));
        for (size_t i = 0; i < FIGURE1_POINTS; i++) {
            assert_true(r.point[i].ordered);
            for (size_t k = 0; k < FIGURE1_CURVES && SLOWED == 1; k++)
                assert_true(r.point[i].curve[k].within || test_scale() < 1);
            assert_true(r.point[i].curve[2].corrected >=
                        r.point[i].curve[2].exact - 1e-12);
        }
    }
}

static void table_1(void **state)
{
    table1_result r;

    (void)state;
    assert_ok(table1_run(often(8), 1, &r));
    assert_int_equal(r.products, 10000);
    assert_true(r.multiply_adds == 32557056000.0);
    for (size_t i = 0; i < TABLE1_ROWS; i++) {
        assert_int_equal(r.row[i].missed, 0);
        for (size_t k = 0; k < 3 && SLOWED == 1; k++)
            assert_true(r.row[i].within[k] || test_scale() < 1);
    }
    /* DIP and IDIP are below the polynomial code, and that below no code */
    for (size_t i = 4; i < TABLE1_ROWS; i++)
        assert_true(r.row[i].ratio[0] > 1 && r.row[i].ratio[1] < 1 &&
                    r.row[i].ratio[2] < 1);
}

static void largest_load(void **state)
{
    worst_load w;

    (void)state;
    assert_ok(stream_worst_load(often(50), 1, &w));
    assert_true(fabs(w.dip - 2.0 / 3) < 1e-12);
    assert_true(fabs(w.idip - 2.0 / 3) < 1e-12);
    assert_true(w.missed == 0 && w.waits == 0);
}

static void out_of_memory(void **state)
{
    long before = allocated();
    figure1_result f;
    table1_result t;
    worst_load w;

    (void)state;
    for (long when = 1; when <= 3; when++) {
        fail_allocation(when);
        assert_status(KOFN_NOMEM, figure1_run(1, 100, 1, &f));
        fail_allocation(0);
    }
    fail_allocation(1);
    assert_status(KOFN_NOMEM, table1_run(1, 1, &t));
    fail_allocation(1);
    assert_status(KOFN_NOMEM, stream_worst_load(1, 1, &w));
    fail_allocation(0);
    assert_int_equal(allocated(), before);
}

TEST_FILE(stream_play_test)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(traces),       cmocka_unit_test(deadlines_hold),
        cmocka_unit_test(figure_1),     cmocka_unit_test(table_1),
        cmocka_unit_test(largest_load), cmocka_unit_test(out_of_memory),
    };

    rig_begin();
    count_allocations();
    return cmocka_run_group_tests_name("stream_play", tests, NULL, NULL);
}
