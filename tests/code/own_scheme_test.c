/* own_scheme_test.c -- kofn_scheme_add: schemes of the program, by name. */
#include "support.h"

#include <kofn.h>
#include <kofn/scheme.h>

#include "code/outside.h"

#include <stdio.h>
#include <string.h>

static kofn_status layout(kofn_layout *L)
{
    L->seats = L->max_seats = L->workers;
    L->enough = L->workers - 1;
    L->cut[0].rows = L->workers - 1;
    return KOFN_OK;
}

static kofn_status seat(const kofn_layout *L, size_t i, double *E0, double *E1,
                        double *G)
{
    (void)E1, (void)G;
    for (size_t j = 0; j < L->cut[0].rows; j++)
        E0[j] = i == j || i == L->cut[0].rows;
    return KOFN_OK;
}

static kofn_scheme named(const char *name)
{
    return (kofn_scheme){.size = sizeof(kofn_scheme),
                         .name = name,
                         .ops = KOFN_MATVEC,
                         .layout = layout,
                         .seat = seat};
}

static size_t count(void)
{
    size_t n = 0;

    while (kofn_scheme_at(n))
        n++;
    return n;
}

static void by_name(void **state)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_MATVEC, 40, 8, 1, KOFN_F64, false);
    kofn_plan_info info = KOFN_PLAN_INFO_INIT;
    kofn_scheme s = named("parity-1");
    size_t before = count();
    kofn_plan *plan;

    (void)state;
    assert_status(KOFN_NOSCHEME, kofn_plan_new(&plan, &pb, "parity-1", 5, 1));
    assert_ok(kofn_scheme_add(&s));
    s.name = "other"; /* it was copied */
    assert_int_equal(count(), before + 1);
    assert_string_equal(kofn_scheme_at(before)->name, "parity-1");
    assert_string_equal(kofn_scheme_find("parity-1")->summary, "");
    assert_ok(kofn_plan_new(&plan, &pb, "parity-1", 5, 1));
    assert_ok(kofn_plan_describe(plan, false, &info));
    assert_int_equal(info.threshold, 4);
    kofn_plan_free(plan);
    assert_status(KOFN_INVAL, kofn_plan_new(&plan, &pb, "parity-1:k=3", 5, 1));
}

static void refused(void **state)
{
    static const char *const names[] = {
        "mds",
        "",
        "Parity",
        "a:b",
        "a/b",
        "a b",
        "a123456789012345678901234567890123456789"};
    kofn_scheme s;
    size_t before = count();

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        s = named(names[i]);
        assert_status(KOFN_INVAL, kofn_scheme_add(&s));
        assert_non_null(strstr(kofn_errmsg(), i ? "a name has" : "already"));
    }
    s = named(NULL);
    assert_status(KOFN_INVAL, kofn_scheme_add(&s));
    assert_status(KOFN_INVAL, kofn_scheme_add(NULL));
    s = named("bare");
    s.layout = NULL;
    assert_status(KOFN_INVAL, kofn_scheme_add(&s));
    s = named("bare");
    s.ops = 0;
    assert_status(KOFN_INVAL, kofn_scheme_add(&s));
    s = named("bare");
    s.size = 0;
    assert_status(KOFN_INVAL, kofn_scheme_add(&s));
    assert_int_equal(count(), before);
}

static void as_many_as_there_is_room(void **state)
{
    size_t before = count();
    kofn_status st = KOFN_OK;
    static char name[100][20]; /* the library borrows them */

    (void)state;
    for (size_t i = 0; i < 100 && !st; i++) {
        kofn_scheme s = named(name[i]);

        snprintf(name[i], sizeof *name, "many%zu", i);
        st = kofn_scheme_add(&s);
    }
    assert_status(KOFN_INVAL, st);
    assert_non_null(strstr(kofn_errmsg(), "64"));
    assert_true(count() > before);
}

/* The message without the plugin is for its schemes, and for no other. */
static void outside(void **state)
{
    const kofn_scheme *const *s = kf_plug_schemes();
    char names[200] = "";

    (void)state;
    for (; *s; s++) {
        strcat(strcat(names, *names ? "|" : ""), (*s)->name);
        assert_ptr_equal(kofn_scheme_find((*s)->name), *s);
    }
    assert_string_equal(names, KF_CODE_OUTSIDE);
}

TEST_FILE(own_scheme_test)
{
    const struct CMUnitTest tests[] = {
        TEST(by_name, "own scheme: plans know an added scheme by its name"),
        TEST(refused, "own scheme: an unfit scheme is refused with the reason"),
        TEST(as_many_as_there_is_room, "own scheme: the number is limited"),
        TEST(outside, "own scheme: schemes of the plugin are known, and named "
                      "where it is absent"),
    };

    return cmocka_run_group_tests_name("own_scheme", tests, NULL, NULL);
}
