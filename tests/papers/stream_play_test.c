/* stream_play_test.c -- simulated streams: known traces, deadlines under every
 * pattern of small fleets, and the figures of kofn-papers stream. */
#include "rig.h"

#include "shown.h"

static stream_played play(const stream_setup *x)
{
    stream_played p;

    assert_ok(stream_play(x, &p));
    return p;
}

/* ---- traces -------------------------------------------------------------- */

/* DIP, four workers, six results, five products, slow by a factor of five:
 * worked out by hand from the rules. */
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

/* Tries every pattern of `rounds` rounds, with a few parameters. */
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
        json_t *r =
            shown(&stream_figure_1, panel, (double)often(100000) / 100000, 1);
        json_t *point, *points = papers_at(r, "points");

        assert_int_equal(json_array_size(points), 8);
        for (size_t i = 0; (point = json_array_get(points, i)); i++) {
            json_t *curve, *curves = papers_at(point, "curves");

            assert_true(papers_true(point, "ordered"));
            assert_int_equal(json_array_size(curves), 5);
            for (size_t k = 0;
                 (curve = json_array_get(curves, k)) && SLOWED == 1; k++)
                assert_true(papers_true(curve, "ok") || test_scale() < 1);
            assert_true(papers_real(curves, "2.bound_corrected") >=
                        papers_real(curves, "2.exact") - 1e-12);
        }
        json_decref(r);
    }
}

static void table_1(void **state)
{
    static const char *const names[] = {"uncoded", "dip", "idip"};
    json_t *r = shown(&stream_table_1, 3, (double)often(8) / 10, 1);
    json_t *row, *rows = papers_at(r, "rows");

    (void)state;
    assert_true(papers_real(r, "products") == 10000);
    assert_true(papers_real(r, "multiply_adds_an_iteration") == 32557056000.0);
    assert_int_equal(json_array_size(rows), 6);
    for (size_t i = 0; (row = json_array_get(rows, i)); i++) {
        assert_true(papers_real(row, "missed") == 0);
        for (size_t k = 0; k < 3 && SLOWED == 1; k++)
            assert_true(papers_true(papers_at(row, names[k]), "ok") ||
                        test_scale() < 1);
        /* DIP and IDIP are below the polynomial code, which is below uncoded */
        if (i >= 4)
            assert_true(papers_real(row, "uncoded.ratio") > 1 &&
                        papers_real(row, "dip.ratio") < 1 &&
                        papers_real(row, "idip.ratio") < 1);
    }
    json_decref(r);
}

static void largest_load(void **state)
{
    json_t *w = shown(&stream_largest_load, 4, (double)often(50) / 50, 1);

    (void)state;
    assert_true(fabs(papers_real(w, "dip.load") - 2.0 / 3) < 1e-12);
    assert_true(fabs(papers_real(w, "idip.load") - 2.0 / 3) < 1e-12);
    assert_true(papers_real(w, "missed") == 0 && papers_real(w, "waits") == 0);
    json_decref(w);
}

static void out_of_memory(void **state)
{
    long before = allocated();

    (void)state;
    for (long when = 1; when <= 3; when++)
        assert_status(KOFN_NOMEM,
                      short_of_memory(&stream_figure_1, 1, 0.001, when));
    assert_status(KOFN_NOMEM, short_of_memory(&stream_table_1, 3, 0.1, 1));
    assert_status(KOFN_NOMEM,
                  short_of_memory(&stream_largest_load, 4, 0.02, 1));
    assert_int_equal(allocated(), before);
}

TEST_FILE(stream_play_test)
{
    const struct CMUnitTest tests[] = {
        TEST(traces, "stream: simulated traces agree with hand calculation"),
        TEST(deadlines_hold,
             "stream: deadlines hold under every pattern of small fleets"),
        TEST(figure_1, "stream: figure 1 is reproduced"),
        TEST(table_1, "stream: Table 1 is within its bands"),
        TEST(largest_load, "stream: the largest load is the bound 2/3"),
        TEST(out_of_memory,
             "stream: missing memory is reported and everything is freed"),
    };

    rig_begin();
    count_allocations();
    return cmocka_run_group_tests_name("stream_play", tests, NULL, NULL);
}
