/* presets_test.c -- schemes that are others with some parameters fixed: all
 * coefficients are the same. */
#include "support.h"

#include "code/code.h"

#include <stdlib.h>

/* All numbers of the seats of a plan: E0, E1 and G. */
static double *rows_of(const kofn_plan *p, size_t *count)
{
    const kofn_layout *L = &p->layout;
    size_t a = L->components * L->inner * p->parts, b = L->inner * p->parts1;
    size_t each = a + b + L->components * L->symbols;
    size_t answers = L->seats * L->submessages;
    double *all = calloc(answers * each, sizeof *all);

    assert_non_null(all);
    for (size_t i = 0; i < answers; i++) {
        double *E0 = all + i * each, *E1 = E0 + a;

        assert_ok(p->scheme->seat(L, i, E0, p->parts1 > 1 ? E1 : NULL, E1 + b));
    }
    *count = answers * each;
    return all;
}

static void same(kofn_op op, const char *preset, const char *general, size_t n)
{
    size_t wide = op == KOFN_SUM ? 1 : 12, count[2];
    kofn_problem pb = KOFN_PROBLEM_INIT(op, 60, 48, wide, KOFN_F64, false);
    const char *spec[] = {preset, general};
    double *rows[2];
    kofn_plan *p[2];

    for (size_t i = 0; i < 2; i++) {
        assert_ok(kofn_plan_new(&p[i], &pb, spec[i], n, 7));
        rows[i] = rows_of(p[i], &count[i]);
    }
    assert_int_equal(count[0], count[1]);
    assert_memory_equal(rows[0], rows[1], count[0] * sizeof(double));
    assert_int_equal(p[0]->layout.enough, p[1]->layout.enough);
    assert_int_equal(p[0]->layout.threshold, p[1]->layout.threshold);
    for (size_t i = 0; i < 2; i++) {
        free(rows[i]);
        kofn_plan_free(p[i]);
    }
}

static void gradients(void **state)
{
    char preset[60], general[60];

    (void)state;
    for (size_t d = 1; d <= 9; d++) {
        snprintf(preset, sizeof preset, "gc:d=%zu", d);
        snprintf(general, sizeof general, "cgc:d=%zu,m=1", d);
        same(KOFN_SUM, preset, general, 11);
    }
    /* of one group they are the same */
    same(KOFN_SUM, "g-cgc:d=4,m=2", "cgc:d=4,m=2", 7);
    same(KOFN_SUM, "g-agc:d=4", "agc:d=4", 7);
}

static void products(void **state)
{
    static const kofn_op ops[] = {KOFN_MATMUL, KOFN_LEFT};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        same(ops[i], "matdot:n=3", "gpd:m=1,n=3,p=1", 8);
        same(ops[i], "polynomial:m=2,p=3,basis=circle", "gpd:m=2,n=1,p=3", 11);
    }
    same(KOFN_MATMUL, "polydot:m=2,n=2,p=1", "gpd:m=2,n=2,p=1,sub=vum", 11);
}

TEST_FILE(presets_test)
{
    const struct CMUnitTest tests[] = {
        TEST(gradients, "gc is cgc with m=1, and one group of g-cgc or g-agc "
                        "is cgc or agc"),
        TEST(products, "matdot, polynomial and polydot with p=1 are gpd"),
    };

    return cmocka_run_group_tests_name("presets", tests, NULL, NULL);
}
