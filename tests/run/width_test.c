/* width_test.c -- products of one job with other numbers of columns, or of rows
 * from the left, than the plan has. */
#include "put_rig.h"
#include "sites_rig.h"

#include "data/port.h"

/* Blocks do not depend on the number of columns, nor do the cuts of inputs. */
static void any_width(void **state)
{
    static const char *const spec[] = {"uncoded", "mds:k=3",
                                       "elastic:k=3,cut=columns",
                                       "gpd:m=2,n=1,p=2", "product:p=2"};
    static const size_t width[] = {3, 1, 7, 2, 90, 4};

    (void)state;
    for (size_t s = 0; s < sizeof spec / sizeof *spec; s++)
        for (int site = 0; site < SITES; site++) {
            rig_kind k = {.spec = spec[s],
                          .workers = 9,
                          .m = 45,
                          .n = 14,
                          .p = 3,
                          .dtype = s == 1 ? KOFN_F32 : KOFN_F64};
            rig r;

            up(&r, &k, site);
            for (size_t i = 0; i < sizeof width / sizeof *width; i++) {
                rig one;

                set_width(&r, width[i]);
                one = rig_beside(&r, i);
                assert_ok(kofn_round(r.job, &one.x, &one.y, NULL));
                assert_at_most(rig_error(&one), k.dtype ? 1e-5 : 1e-11);
                rig_put_away(&one);
            }
            down(&r, site);
        }
}

/* A vector is one column, and the strips of some left products are their rows.
 */
static void fixed_width(void **state)
{
    rig_kind k = {
        .spec = "mds:k=2", .workers = 3, .m = 12, .n = 5, .p = 1, .sim = true};
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_MATMUL, 12, 5, 3, KOFN_F64, false);
    kofn_port *port;
    rig r;

    (void)state;
    rig_up(&r, &k);
    set_width(&r, 2);
    assert_status(KOFN_SHAPE, kofn_put(r.job, &r.x, &r.y, NULL));
    rig_down(&r);

    k.p = 3;
    rig_inputs(&r, &k);
    kofn_plan_free(r.plan);
    assert_ok(kofn_plan_new(&r.plan, &pb, "gpd:m=2,n=1,p=1", 3, 7));
    assert_ok(kofn_plan_serve_left(r.plan, 3));
    assert_ok(kofn_port_sim(&port, 3, NULL));
    assert_ok(kofn_open(&r.job, r.plan, port, NULL));
    assert_ok(kofn_place(r.job, &r.A));
    for (size_t p = 2; p <= 4; p++) {
        kofn_matrix x = random_matrix(p, 12, KOFN_F64, 1);
        kofn_matrix y = random_matrix(p, 5, KOFN_F64, 2);

        assert_int_equal(kofn_put_at(r.job, 0, true, &x, &y, NULL),
                         p == 3 ? KOFN_OK : KOFN_SHAPE);
        if (p == 3)
            assert_ok(kofn_take(r.job, 0, KOFN_NEVER, NULL));
        kf_free(x.data);
        kf_free(y.data);
    }
    rig_down(&r);
}

/* An answer has 12 / 2 rows, and at most 4 columns fit. */
static void longest_answer(void **state)
{
    rig_kind k = {
        .spec = "uncoded", .workers = 2, .m = 12, .n = 5, .p = 2, .sim = true};
    kofn_port *port;
    rig r, one;

    (void)state;
    rig_inputs(&r, &k);
    assert_ok(kofn_port_sim(&port, 2, NULL));
    port->longest = 6 * 4 * sizeof(double);
    assert_ok(kofn_open(&r.job, r.plan, port, NULL));
    assert_ok(kofn_place(r.job, &r.A));
    for (size_t p = 3; p <= 5; p++) {
        set_width(&r, p);
        one = rig_beside(&r, p);
        assert_int_equal(kofn_round(r.job, &one.x, &one.y, NULL),
                         p <= 4 ? KOFN_OK : KOFN_UNSUITED);
        assert_true(p > 4 || rig_error(&one) < 1e-11);
        rig_put_away(&one);
    }
    assert_non_null(strstr(kofn_errmsg(), "240 bytes"));
    rig_down(&r);
}

TEST_FILE(width_test)
{
    const struct CMUnitTest tests[] = {
        TEST(any_width, "width: products of any number of columns are right"),
        TEST(fixed_width,
             "width: vectors, and gpd from the left, have the plan's width"),
        TEST(longest_answer,
             "width: products with answers too long for the port are refused"),
    };

    rig_begin();
    return cmocka_run_group_tests_name("width", tests, NULL, NULL);
}
