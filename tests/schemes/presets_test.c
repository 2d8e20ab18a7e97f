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

/* The decoder of all answers but those of the second worker. */
static double *decoder_of(const kofn_plan *p, kofn_status *st, size_t *count)
{
    const kofn_layout *L = &p->layout;
    size_t all = L->seats * L->submessages, n = 0;
    uint32_t *answers = calloc(all, sizeof *answers);
    double *D = calloc(L->wants * all * L->components, sizeof *D);

    assert_non_null(answers);
    assert_non_null(D);
    for (size_t i = 0; i < all; i++)
        if (i / L->submessages != 1)
            answers[n++] = (uint32_t)i;
    *st = p->scheme->decode(L, answers, n, D);
    *count = L->wants * n * L->components;
    free(answers);
    return D;
}

static void same_decoders(kofn_plan *const p[2])
{
    kofn_status st[2];
    size_t count[2];
    double *D[2];

    for (size_t i = 0; i < 2; i++)
        D[i] = decoder_of(p[i], &st[i], &count[i]);
    assert_int_equal(st[0], st[1]);
    assert_int_equal(count[0], count[1]);
    assert_memory_equal(D[0], D[1], count[0] * sizeof(double));
    free(D[0]);
    free(D[1]);
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
    assert_int_equal(p[0]->layout.submessages, p[1]->layout.submessages);
    assert_int_equal(p[0]->layout.wants, p[1]->layout.wants);
    if (op == KOFN_SUM)
        same_decoders(p);
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

static void groups(void **state)
{
    (void)state;
    same(KOFN_SUM, "g-agc:d=3", "agc:groups=4", 12);
    same(KOFN_SUM, "g-agc:d=3,lam=5,form=decoupled",
         "agc:groups=4,lam=5,form=decoupled", 12);
    same(KOFN_SUM, "g-agc:d=3,form=staircase",
         "agc:d=3,groups=4,form=staircase", 12);
    same(KOFN_SUM, "g-cgc:d=3", "cgc:groups=4", 12);
    same(KOFN_SUM, "g-cgc:d=3,m=1", "cgc:groups=4,m=1", 12);
    same(KOFN_SUM, "g-cgc:d=3,m=1", "gc:groups=4", 12);
    same(KOFN_SUM, "g-cgc:d=4,s=1", "cgc:d=4,groups=3,s=1", 12);
    /* the last group has five workers */
    same(KOFN_SUM, "g-agc:d=3", "agc:d=3,groups=3", 11);
    same(KOFN_SUM, "g-cgc:d=3,m=2", "cgc:d=3,groups=3,m=2", 11);
    /* one group has all workers, and d is what it was */
    same(KOFN_SUM, "agc", "agc:groups=1", 12);
    same(KOFN_SUM, "cgc:d=5,m=2", "cgc:d=5,m=2,groups=1", 12);
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
        TEST(groups, "g-cgc and g-agc are cgc and agc with groups"),
        TEST(products, "matdot, polynomial and polydot with p=1 are gpd"),
    };

    return cmocka_run_group_tests_name("presets", tests, NULL, NULL);
}
