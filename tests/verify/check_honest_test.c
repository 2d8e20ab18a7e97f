/* check_honest_test.c -- tests that honest results of any numbers are not
 * taken for faulty ones. Rounding errors stay within the scales that they are
 * compared with. */
#include "check_rig.h"

/* ---- honest results pass ------------------------------------------------- */

typedef enum texture {
    NORMAL,
    POSITIVE,
    TENTHS,
    NEARLY_EQUAL,
    CANCELLING,
    ZERO_ROWS,
    LADDER,
    TINY,
    HUGE_NUMBERS,
    SPIKES,
    ALTERNATING,
    TEXTURES
} texture;

static const char *const texture_names[] = {"normal",
                                            "positive",
                                            "all equal",
                                            "nearly equal",
                                            "cancelling",
                                            "zero rows and columns",
                                            "rows of all sizes",
                                            "tiny",
                                            "huge",
                                            "spikes",
                                            "alternating"};

static double entry_of(texture x, size_t i, size_t j, bool wide, kf_rng *r)
{
    double decades = wide ? 100 : 12;

    switch (x) {
    case POSITIVE:
        return kf_rng_uniform(r);
    case TENTHS:
        return wide ? 0.1 : 0.7;
    case NEARLY_EQUAL:
        return 1 + 1e-3 * kf_rng_uniform(r);
    case CANCELLING:
        return (j % 2 ? -1 : 1) * (1 + 1e-6 * kf_rng_normal(r));
    case ZERO_ROWS:
        return i % 3 && j % 5 ? kf_rng_normal(r) : 0;
    case LADDER:
        return kf_rng_normal(r) * pow(10, decades * ((double)(i % 7) / 3 - 1));
    case TINY:
        return kf_rng_normal(r) * (wide ? 1e-155 : 1e-21);
    case HUGE_NUMBERS:
        return kf_rng_normal(r) * (wide ? 1e150 : 1e17);
    case SPIKES:
        return kf_rng_below(r, 50) ? 1e-6 : kf_rng_normal(r);
    case ALTERNATING:
        return (i + j) % 2 ? 0.3 : -0.3;
    default:
        return kf_rng_normal(r);
    }
}

/* Fills a matrix with numbers of a texture. Rows and columns of the input are
 * exchanged, so that rows of all sizes do not give products that overflow. */
static void fill_texture(kofn_matrix *a, texture x, bool across, kf_rng *r)
{
    for (size_t i = 0; i < a->rows; i++)
        for (size_t j = 0; j < a->cols; j++)
            put(a, i * a->cols + j,
                entry_of(x, across ? j : i, across ? i : j,
                         a->dtype == KOFN_F64, r));
}

static void honest_results_pass(void **state)
{
    static const size_t lengths[] = {1, 7, 64, 300, 384, 1000, 5000};
    size_t cells = 0;
    double floor64 = 0, floor32 = 0;

    (void)state;
    for (uint32_t n = 0; n < often(330); n++) {
        kf_rng r = kf_rng_stream(6, KF_FOR_SAMPLE, n, 0);
        kind k = kinds[kf_rng_below(&r, sizeof kinds / sizeof *kinds)];
        texture of_A = (texture)(n % TEXTURES), of_in;
        const bool none[MOST_SEATS] = {false};
        verdict v;
        check_case f;

        if (k.sparse)
            continue;
        k.dtype = n / TEXTURES % 2 ? KOFN_F32 : KOFN_F64;
        *(is_left(&k) ? &k.m : &k.n) = lengths[kf_rng_below(&r, 7)];
        of_in = of_A == TENTHS || of_A == CANCELLING
                    ? TENTHS
                    : (texture)kf_rng_below(&r, TEXTURES);
        if (of_A == HUGE_NUMBERS || of_A == TINY || of_A == LADDER)
            of_in = NORMAL;
        check_case_plan(&f, &k);
        fill_texture(&f.A, of_A, is_left(&k), &r);
        fill_texture(&f.in, of_in, !is_left(&k), &r);
        check_case_work(&f);
        send_honest(&f);
        for (uint64_t again = 0; again < 3; again++) {
            v = ask_all(&f, f.seats - f.enough - 1, again);
            if (v.st != KOFN_OK || v.count > 0)
                fail_msg("%s %s: %s times %s numbers (%zu): honest results "
                         "were taken for faulty",
                         k.spec, k.dtype == KOFN_F64 ? "f64" : "f32",
                         texture_names[of_A], texture_names[of_in], k.n);
            cells++;
        }
        check_verdict(&f, &v, none, texture_names[of_A]);
        assert_int_equal(v.eased, 0);
        if (k.dtype == KOFN_F64)
            floor64 = fmax(floor64, v.floor);
        else
            floor32 = fmax(floor32, v.floor);
        check_case_down(&f);
    }
    print_message("    %zu honest cells; the floor is at most %.1e, in single "
                  "precision %.1e\n",
                  cells, floor64, floor32);
}

/* ---- scales -------------------------------------------------------------- */

static void norms_are_norms(void **state)
{
    static const double units[] = {1, 1e-200, 1e200, 0};

    (void)state;
    for (size_t u = 0; u < 4; u++) {
        kofn_matrix part[3] = {random_matrix(5, 37, KOFN_F64, 1),
                               {NULL, 0, 37, 37, KOFN_F64},
                               random_matrix(5, 37, KOFN_F64, 2)};
        double row[5], col[37];

        for (size_t i = 0; i < 5; i++)
            for (size_t j = 0; j < 37; j++)
                for (size_t p = 0; p < 3; p += 2)
                    put(&part[p], i * 37 + j,
                        get(&part[p], i * 37 + j) * units[u]);
        assert_ok(kf_norms_of_part_rows(part, 3, row, 5));
        assert_ok(kf_norms_of_columns(part, 3, 1, col, 37));
        for (size_t i = 0; i < 5; i++) {
            long double sum = 0;

            for (size_t j = 0; j < 37; j++)
                for (size_t p = 0; p < 3; p += 2)
                    sum += (long double)get(&part[p], i * 37 + j) *
                           get(&part[p], i * 37 + j);
            assert_at_most(fabs(row[i] - (double)sqrtl(sum)), 1e-14 * row[i]);
        }
        for (size_t j = 0; j < 37; j++) {
            long double sum = 0;

            for (size_t i = 0; i < 5; i++)
                for (size_t p = 0; p < 3; p += 2)
                    sum += (long double)get(&part[p], i * 37 + j) *
                           get(&part[p], i * 37 + j);
            assert_at_most(fabs(col[j] - (double)sqrtl(sum)), 1e-14 * col[j]);
        }
        kf_free(part[0].data);
        kf_free(part[2].data);
    }
}

/* The scales must not be far too large either. */
static void scales_are_bounds(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        double most = 0;
        check_case f;

        check_case_up(&f, &kinds[i]);
        for (size_t s = 0; s < f.seats; s++)
            for (size_t e = 0; e < f.entries; e++) {
                double x = fabs(get(&f.result[s], e));

                if (x > 0)
                    most = fmax(most, x / scale(&f, e) / weight(&f, s));
            }
        assert_at_most(most, 1 + 1e-12);
        assert_true(most > 0.01); /* a scale far too large would be useless */
        check_case_down(&f);
    }
}

TEST_FILE(check_honest_test)
{
    const struct CMUnitTest tests[] = {
        TEST(honest_results_pass,
             "check: honest results pass, whatever the numbers"),
        TEST(norms_are_norms, "check: norms are right at all magnitudes"),
        TEST(scales_are_bounds,
             "check: no honest entry exceeds its scale (15 codes)"),
    };

    count_allocations();
    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
