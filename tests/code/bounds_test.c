/* bounds_test.c -- how many results are awaited and how many faulty workers
 * are located, against numbers worked out by hand from docs/errors.md and
 * docs/math/errors.md. */
#include "code_rig.h"

#include "code/bounds.h"

typedef struct independent {
    const char *what;
    kf_bounds p;
    kf_voices v;
    size_t want[5]; /* spare, vouch, most, liars, promised */
} independent;

#define PROBABLY KOFN_ERRORS_PROBABILISTIC
#define SURELY KOFN_ERRORS_ADVERSARIAL
#define DETECT KOFN_ERRORS_DETECT
#define OF(mode, k, any)                                                       \
    {                                                                          \
        .errors = mode, .enough = k, .surely = any                             \
    }
#define ALIKE(mode, k, any)                                                    \
    {                                                                          \
        .errors = mode, .enough = k, .surely = any, .copies = true             \
    }

/* n results: any K decode, some are spare, known wrong ones are left out; and
 * the findings that a check of them permits. */
static const independent table[] = {
    {"nothing is looked for",
     OF(KOFN_ERRORS_NONE, 9, 9),
     {.all = 12},
     {0, 0, 0, 0, 0}},
    /* docs/errors.md, the table of modes, for 12 answers, any 9 decode: k
     * + 1 are awaited; n - k - 1 = 2 errors are promised to be seen, and 1
     * from a conspiracy */
    {"detect", OF(DETECT, 9, 9), {.all = 12, .here = 10}, {1, 1, 0, 1, 2}},
    {"detect, all", OF(DETECT, 9, 9), {.all = 12, .here = 12}, {1, 1, 0, 1, 2}},
    {"by chance, k + 1",
     OF(PROBABLY, 9, 9),
     {.all = 12, .here = 10},
     {1, 1, 0, 1, 2}},
    {"by chance, all",
     OF(PROBABLY, 9, 9),
     {.all = 12, .here = 12},
     {1, 1, 2, 1, 2}},
    /* k + floor((n - k)/2), the number located: for 18 answers, any 9 decode,
     * four
     */
    {"whatever they do, k + 4",
     OF(SURELY, 9, 9),
     {.all = 18, .here = 13},
     {4, 4, 0, 4, 4}},
    {"whatever they do, all",
     OF(SURELY, 9, 9),
     {.all = 18, .here = 18},
     {4, 4, 5, 4, 4}},
    /* principals: the number of results that one principal can give, in every
     * mode */
    {"three of one, detect",
     OF(DETECT, 9, 9),
     {.one = 3, .all = 12, .here = 12},
     {3, 3, 0, 3, 3}},
    {"three of one, by chance",
     OF(PROBABLY, 9, 9),
     {.one = 3, .all = 15, .here = 15},
     {3, 3, 3, 3, 5}},
    {"six of one, whatever they do",
     OF(SURELY, 9, 9),
     {.one = 6, .all = 18, .here = 18},
     {6, 6, 3, 6, 6}},
    /* math/errors.md 2.5: e minus those without a part in these; one more is
     * awaited all the same */
    {"two are known",
     OF(SURELY, 9, 9),
     {.all = 18, .here = 16, .known = 2},
     {4, 2, 5, 2, 2}},
    {"all are known",
     OF(SURELY, 9, 9),
     {.all = 18, .here = 14, .known = 4},
     {4, 1, 4, 0, 0}},
    /* one spare result names no worker of a principal with three */
    {"three of one, others known",
     OF(PROBABLY, 9, 9),
     {.one = 3, .all = 12, .here = 10, .known = 2},
     {3, 1, 0, 1, 1}},
    /* math/errors.md 6: copies, K = 1, wait for floor((n - 1)/2) and promise
     * that */
    {"copies, by chance",
     ALIKE(PROBABLY, 1, 1),
     {.all = 8, .here = 8},
     {3, 3, 6, 3, 3}},
    {"copies, whatever they do",
     ALIKE(SURELY, 1, 1),
     {.all = 8, .here = 8},
     {3, 3, 4, 3, 3}},
    {"copies, detect: one only",
     ALIKE(DETECT, 1, 1),
     {.all = 8, .here = 2},
     {1, 1, 0, 1, 1}},
    /* four may decode, any seven do: 12 - 7 = 5 are spare for adversaries, and
     * 8 of 12 for locating */
    {"some decode",
     ALIKE(PROBABLY, 4, 7),
     {.all = 12, .here = 12},
     {2, 2, 7, 2, 2}},
    /* 6: a silent worker does not count: one, besides the one that all but one
     * are */
    {"one is silent",
     OF(PROBABLY, 9, 9),
     {.all = 13, .here = 13, .silent = 1},
     {1, 1, 3, 2, 2}},
    /* docs/errors.md: float32 locates half of the answers beyond k */
    {"float32",
     {.errors = PROBABLY, .enough = 9, .surely = 9, .half = true},
     {.all = 18, .here = 18},
     {1, 1, 4, 4, 8}},
    {"fewer than decode",
     OF(PROBABLY, 9, 9),
     {.all = 7, .here = 7},
     {1, 1, 0, 1, 1}},
    /* answers of workers that left count: there are more than could still come
     */
    {"some have left",
     OF(SURELY, 9, 9),
     {.all = 12, .here = 15},
     {1, 1, 5, 3, 3}},
};

static void as_by_hand(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const independent *t = &table[i];
        kf_verdicts to = {0};
        size_t got[5];

        if (t->p.errors != KOFN_ERRORS_NONE)
            to = kf_bounds_verdicts(&t->p, &t->v);
        got[0] = kf_bounds_spare(&t->p, &t->v);
        got[1] = kf_bounds_vouch(&t->p, &t->v);
        got[2] = to.most;
        got[3] = to.liars;
        got[4] = to.independent;
        for (size_t k = 0; k < 5; k++)
            if (got[k] != t->want[k])
                fail_msg("%s: number %zu is %zu, and not %zu", t->what, k,
                         got[k], t->want[k]);
    }
}

/* math/errors.md 2.2: K + e + 1 results, and more than there were. */
static void asks_for_those_that_tell(void **state)
{
    const kf_bounds p = OF(SURELY, 9, 9);

    (void)state;
    assert_int_equal(kf_bounds_apart(&p, 10, 4), 14);
    assert_int_equal(kf_bounds_apart(&p, 14, 4), 15);
}

typedef struct kind {
    kofn_op op;
    const char *spec;
    size_t workers, m;
    kofn_errors errors;
    size_t enough, surely;
    bool copies, conspires;
} kind;

static const kind kinds[] = {
    {KOFN_MATVEC, "mds:k=9", 12, 90, PROBABLY, 9, 9, false, false},
    {KOFN_MATVEC, "mds:k=9", 12, 90, SURELY, 9, 9, false, true},
    {KOFN_MATVEC, "replication:k=1", 3, 90, PROBABLY, 1, 1, true, true},
    {KOFN_MATVEC, "replication:k=1", 3, 90, DETECT, 1, 1, true, false},
    {KOFN_MATVEC, "replication:k=1", 3, 90, KOFN_ERRORS_NONE, 1, 1, false,
     false},
    /* two copies of each of four: four may decode, and any seven of the eight
     * do */
    {KOFN_MATMUL, "grid:m=2,n=2,copies=2", 8, 90, PROBABLY, 4, 7, true, true},
    /* 5 of 9 rows are more than half of the parts, 4 are fewer */
    {KOFN_MATVEC, "mds:k=9,basis=gauss", 12, 5, PROBABLY, 9, 9, false, false},
    {KOFN_MATVEC, "mds:k=9,basis=gauss", 12, 4, PROBABLY, 9, 9, true, true},
};

static void as_of_plans(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const kind *k = &kinds[i];
        kofn_problem pb = KOFN_PROBLEM_INIT(
            k->op, k->m, 7, k->op == KOFN_MATMUL ? 8 : 1, KOFN_F64, false);
        kofn_plan *plan;
        kf_bounds p;

        assert_ok(kofn_plan_new(&plan, &pb, k->spec, k->workers, 5));
        p = kf_bounds_of(plan, 0, k->errors);
        if (p.enough != k->enough || p.surely != k->surely ||
            p.copies != k->copies ||
            kf_bounds_allow_collusion(&p) != k->conspires)
            fail_msg("%s of %zu, case %zu: %zu, surely %zu, copies %d, "
                     "conspire %d",
                     k->spec, k->workers, i, p.enough, p.surely, p.copies,
                     kf_bounds_allow_collusion(&p));
        assert_false(p.half);
        kofn_plan_free(plan);
    }
}

TEST_FILE(bounds_test)
{
    const struct CMUnitTest tests[] = {
        TEST(
            as_by_hand,
            "bounds: awaited and located results agree with hand calculations"),
        TEST(asks_for_those_that_tell,
             "bounds: a check asks for K + e + 1 results"),
        TEST(as_of_plans, "bounds: plans give the documented bounds")};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
