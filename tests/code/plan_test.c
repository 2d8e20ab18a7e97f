/* plan_test.c -- argument strings and problems that plans accept and refuse. */
#include "code_rig.h"

typedef struct spelling {
    const char *spec;
    size_t workers;
    const char *whole; /* with every default */
} spelling;

/* mds keeps a quarter of the workers to spare (half of fewer than 8), elastic
 * half; neither more than 16. replication uses half of them for bands. */
static const spelling spellings[] = {
    {"uncoded", 3, "uncoded"},
    {"replication", 7, "replication:k=4"},
    {"replication:k=7", 7, "replication:k=7"},
    {"mds", 1, "mds:k=1,basis=quaternion,weight=0"},
    {"mds", 6, "mds:k=3,basis=quaternion,weight=0"},
    {"mds", 7, "mds:k=4,basis=quaternion,weight=0"},
    {"mds", 12, "mds:k=9,basis=quaternion,weight=0"},
    {"mds:", 12, "mds:k=9,basis=quaternion,weight=0"},
    {"mds", 100, "mds:k=84,basis=quaternion,weight=0"},
    {"mds:k=12", 12, "mds:k=12,basis=quaternion,weight=0"},
    {"mds:basis=haar", 8, "mds:k=6,basis=haar,weight=0"},
    {"mds:weight=3,k=9", 12, "mds:k=9,basis=quaternion,weight=3"},
    {"mds:weight=9,k=9,basis=gauss", 12, "mds:k=9,basis=gauss,weight=9"},
    {"elastic", 12,
     "elastic:k=6,basis=quaternion,weight=0,groups=1,deal=equal,cut=rows"},
    {"elastic", 40,
     "elastic:k=24,basis=quaternion,weight=0,groups=1,deal=equal,cut=rows"},
    {"elastic:groups=4", 20,
     "elastic:k=12,basis=quaternion,weight=0,groups=4,deal=equal,cut=rows"},
    {"elastic:deal=speed,basis=haar,k=2", 3,
     "elastic:k=2,basis=haar,weight=0,groups=1,deal=speed,cut=rows"},
};

static void defaults_are_spelled_out(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        const spelling *s = &spellings[i];
        kofn_plan *a, *b;

        assert_ok(kofn_plan_new(&a, &matvec, s->spec, s->workers, 5));
        assert_string_equal(a->spec, s->whole);
        assert_ok(kofn_plan_new(&b, &matvec, a->spec, s->workers, 5));
        assert_string_equal(b->spec, s->whole);
        kofn_plan_free(a);
        kofn_plan_free(b);
    }
}

/* ceil(k (n-k+1) / n) blocks per row are necessary; one more per 48. A dense
 * operand is mixed whole. */
static void sparse_operands_get_light_rows(void **state)
{
    static const size_t codes[][3] = {{6, 4, 2},   {12, 9, 3},   {40, 30, 9},
                                      {64, 56, 9}, {100, 98, 5}, {5, 5, 1},
                                      {9, 1, 1},   {200, 196, 9}};
    kofn_problem pb = matvec;

    (void)state;
    pb.m = pb.n = 2000;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        for (int sparse = 0; sparse < 2; sparse++) {
            char spec[40], whole[100];
            kofn_plan *p;

            pb.sparse = sparse;
            snprintf(spec, sizeof spec, "mds:k=%zu", codes[i][1]);
            snprintf(whole, sizeof whole, "%s,basis=quaternion,weight=%zu",
                     spec, sparse ? codes[i][2] : 0);
            assert_ok(kofn_plan_new(&p, &pb, spec, codes[i][0], 5));
            assert_string_equal(p->spec, whole);
            kofn_plan_free(p);
        }
}

/* Of 196 blocks of four parts: if A has no more rows or columns than parts. */
static void unless_solving_is_more_work(void **state)
{
    static const struct {
        const char *spec;
        size_t m, n, weight;
    } t[] = {
        {"elastic:k=196", 785, 785, 9},
        {"elastic:k=196", 784, 785, 0},
        {"elastic:k=196", 785, 784, 0},
        {"elastic:k=196", 50, 50, 0},
        {"elastic:k=196,weight=9", 50, 50, 9}, /* as requested */
        {"elastic:k=128", 50, 50, 49},         /* 512 parts */
        {"elastic:k=129", 50, 50, 0},
        /* each of two groups mixes 49 blocks of 98 or 147 of 150 */
        {"elastic:k=98,groups=2", 50, 50, 27},
        {"elastic:k=294,groups=2", 1176, 589, 0},
        {"elastic:k=294,groups=2", 1177, 589, 7},
    };

    (void)state;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        size_t workers = strstr(t[i].spec, "294") ? 300 : 200;
        kofn_problem pb =
            KOFN_PROBLEM_INIT(KOFN_MATVEC, t[i].m, t[i].n, 1, KOFN_F64, true);
        char weight[40];
        kofn_plan *p;

        snprintf(weight, sizeof weight, ",weight=%zu,", t[i].weight);
        assert_ok(kofn_plan_new(&p, &pb, t[i].spec, workers, 5));
        if (!strstr(p->spec, weight))
            fail_msg("%s of %zu x %zu is %s", t[i].spec, t[i].m, t[i].n,
                     p->spec);
        kofn_plan_free(p);
    }
}

/* Splits "a|b|c" of `choices`, or takes the ends of the range. */
static size_t values_of(const kofn_param *p, char value[][40])
{
    size_t n = 0;

    if (!p->choices) {
        snprintf(value[n++], 40, "%ld", p->min);
        snprintf(value[n++], 40, "%ld", p->max);
        return n;
    }
    for (const char *c = p->choices;; c++) {
        size_t length = strcspn(c, "|");

        snprintf(value[n++], 40, "%.*s", (int)length, c);
        c += length;
        if (!*c)
            return n;
    }
}

/* The table's range and choices are accepted, values beyond are refused.
 * Numbers may be refused together, but never because one cannot be read. */
static void every_parameter_is_read(void **state)
{
    const kofn_scheme *s;

    (void)state;
    for (size_t i = 0; (s = kofn_scheme_at(i)); i++)
        for (const kofn_param *p = s->params; p->name; p++) {
            kofn_problem pb = matvec;
            char value[16][40], spec[120];
            size_t n = values_of(p, value);
            kofn_plan *plan;

            if (!(s->ops & KOFN_MATVEC)) /* its first operation */
                pb.op = (kofn_op)(s->ops & ~(s->ops - 1));
            for (size_t v = 0; v < n; v++) {
                snprintf(spec, sizeof spec, "%s:%s=%.39s", s->name, p->name,
                         value[v]);
                if (kofn_plan_new(&plan, &pb, spec, 12, 1)) {
                    assert_null(strstr(kofn_errmsg(), "is not"));
                    assert_null(strstr(kofn_errmsg(), "is outside"));
                }
                kofn_plan_free(plan);
            }
            snprintf(spec, sizeof spec, "%s:%s=%ld", s->name, p->name,
                     p->choices ? 0 : p->min - 1);
            assert_status(KOFN_INVAL, kofn_plan_new(&plan, &pb, spec, 12, 1));
            assert_non_null(strstr(kofn_errmsg(), strchr(spec, ':') + 1));
            if (p->choices)
                continue;
            snprintf(spec, sizeof spec, "%s:%s=%ld", s->name, p->name,
                     p->max + 1);
            assert_status(KOFN_INVAL, kofn_plan_new(&plan, &pb, spec, 12, 1));
            assert_non_null(strstr(kofn_errmsg(), strchr(spec, ':') + 1));
        }
}

typedef struct refusal {
    const char *spec;
    kofn_status status;
    const char *says[3]; /* all of them */
} refusal;

static const refusal refusals[] = {
    {"", KOFN_NOSCHEME, {"\"\"", "elastic", "uncoded"}},
    {"MDS", KOFN_NOSCHEME, {"\"MDS\"", "mds"}},
    {" mds", KOFN_NOSCHEME, {"\" mds\""}},
    {"mdsx:k=3", KOFN_NOSCHEME, {"\"mdsx\""}},
    {"mds:k", KOFN_INVAL, {"\"k\"", "key=value"}},
    {"mds:,", KOFN_INVAL, {"key=value"}},
    {"mds:k=3,", KOFN_INVAL, {"comma"}},
    {"mds:k=3,,weight=0", KOFN_INVAL, {"key=value"}},
    {"mds:=3", KOFN_INVAL, {"no parameter", "basis"}},
    {"mds:K=3", KOFN_INVAL, {"no parameter K", "k, basis, weight"}},
    {"mds:kk=3", KOFN_INVAL, {"kk"}},
    {"mds:groups=2", KOFN_INVAL, {"no parameter groups"}},
    {"uncoded:k=3", KOFN_INVAL, {"no parameter k", "none"}},
    {"mds:k=3,k=3", KOFN_INVAL, {"k is given twice"}},
    {"mds:k=3,basis=haar,k=4", KOFN_INVAL, {"k is given twice"}},
    {"mds:k=", KOFN_INVAL, {"k= is not a whole number"}},
    {"mds:k=,basis=haar", KOFN_INVAL, {"k= is not a whole number"}},
    {"mds:k=3.5", KOFN_INVAL, {"k=3.5", "whole number"}},
    {"mds:k=0x3", KOFN_INVAL, {"k=0x3"}},
    {"mds:k=+3", KOFN_INVAL, {"k=+3"}},
    {"mds:k= 3", KOFN_INVAL, {"k= 3"}},
    {"mds:k=3 ", KOFN_INVAL, {"k=3 "}},
    {"mds:k=--3", KOFN_INVAL, {"k=--3"}},
    {"mds:k=3-3", KOFN_INVAL, {"k=3-3"}},
    {"mds:k=-", KOFN_INVAL, {"k=-"}},
    {"mds:k=3=4", KOFN_INVAL, {"k=3=4"}},
    {"mds:k=-1", KOFN_INVAL, {"k=-1", "1..100000"}},
    {"mds:k=99999999999999999999", KOFN_INVAL, {"k=99999999999999999999"}},
    {"mds:k=9999999999999999999999999999", KOFN_INVAL, {"9999999999999999"}},
    {"mds:basis=", KOFN_INVAL, {"basis=", "quaternion|harmonic"}},
    {"mds:basis=quat", KOFN_INVAL, {"basis=quat is not one of"}},
    {"mds:basis=haar|gauss", KOFN_INVAL, {"basis=haar|gauss"}},
    {"elastic:deal=equally", KOFN_INVAL, {"deal=equally", "equal|speed"}},
    {"mds:k=13", KOFN_INVAL, {"k = 13", "12 workers"}},
    {"elastic:k=13", KOFN_INVAL, {"k = 13", "12 workers"}},
    {"replication:k=13", KOFN_INVAL, {"k = 13", "12"}},
    {"mds:k=9,weight=10", KOFN_INVAL, {"weight = 10", "k = 9"}},
    {"mds:k=9,weight=2", KOFN_INVAL, {"weight = 2", "weight >= 3"}},
    {"mds:k=9,weight=3,basis=haar", KOFN_INVAL, {"weight", "basis=gauss"}},
    {"elastic:groups=5,k=10", KOFN_INVAL, {"groups = 5", "12 workers"}},
    {"elastic:groups=3,k=7", KOFN_INVAL, {"groups = 3", "k = 7"}},
};

static void junk_is_refused(void **state)
{
    kofn_plan *plan;

    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const refusal *r = &refusals[i];

        assert_status(r->status, kofn_plan_new(&plan, &matvec, r->spec, 12, 1));
        assert_null(plan);
        for (size_t w = 0; w < 3 && r->says[w]; w++)
            if (!strstr(kofn_errmsg(), r->says[w]))
                fail_msg("%s: \"%s\" does not say \"%s\"", r->spec,
                         kofn_errmsg(), r->says[w]);
    }
}

static void problems_are_checked(void **state)
{
    static const kofn_problem bad[] = {
        KOFN_PROBLEM_INIT(KOFN_MATVEC, 0, 7, 1, KOFN_F64, false),
        KOFN_PROBLEM_INIT(KOFN_MATVEC, 7, 0, 1, KOFN_F64, false),
        KOFN_PROBLEM_INIT(KOFN_MATMUL, 7, 7, 0, KOFN_F64, false),
        KOFN_PROBLEM_INIT(KOFN_MATVEC, 7, 7, 2, KOFN_F64, false),
        KOFN_PROBLEM_INIT(KOFN_MATVEC, 7, (size_t)1 << 32, 1, KOFN_F64, false),
        KOFN_PROBLEM_INIT(KOFN_MATVEC, SIZE_MAX / 8, 7, 1, KOFN_F64, false),
        KOFN_PROBLEM_INIT(KOFN_MATMUL, SIZE_MAX / 8, 7, 16, KOFN_F64, true),
    };
    kofn_plan *plan;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_status(KOFN_SHAPE, kofn_plan_new(&plan, &bad[i], "mds", 4, 1));
    assert_status(KOFN_INVAL, kofn_plan_new(&plan, &matvec, "mds", 0, 1));
    assert_non_null(strstr(kofn_errmsg(), "workers = 0"));
    assert_status(KOFN_INVAL, kofn_plan_new(&plan, &matvec, "mds", 1000001, 1));
}

TEST_FILE(plan_test)
{
    const struct CMUnitTest tests[] = {
        TEST(defaults_are_spelled_out,
             "plan: a scheme is spelled out with every default"),
        TEST(sparse_operands_get_light_rows,
             "plan: sparse operands get light rows"),
        TEST(unless_solving_is_more_work,
             "plan: rows stay full if solving is more work"),
        TEST(every_parameter_is_read,
             "plan: every parameter is read within its range only"),
        TEST(junk_is_refused,
             "plan: malformed strings are refused with the reason"),
        TEST(problems_are_checked, "plan: impossible problems are refused"),
    };

    return cmocka_run_group_tests_name("plan", tests, setup, NULL);
}
