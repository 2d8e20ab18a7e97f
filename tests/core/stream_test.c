/* stream_test.c -- tests deadlines of streams of products exhaustively: every
 * pattern of stragglers of small streams (dip), and every pattern of the model
 * (idip). See math/sequential.md 4, 5 and 6.
 *
 * Expected values come from the companion table of the specification
 * (facts.json), and are quoted by their names there. */
#include "stream_rig.h"

#include <stdio.h>

/* ---- every pattern ------------------------------------------------------- */

typedef struct law {
    const char *spec;
    size_t P, rounds, products;
    size_t B, W, N; /* idip; B > 0: bursty, N is eps */
    size_t slots; /* the longest list, if one worker answers in each round and a
                     product of age a misses K - a */
} law;

static void spell(char *text, const unsigned *slow, const law *l)
{
    for (size_t t = 0; t < l->rounds; t++)
        text += sprintf(text, "%s%x", t ? "." : "", slow[t]);
}

static void one_pattern(const law *l, kofn_plan *plan, uint64_t bits,
                        size_t *whole, size_t *worst)
{
    static stage s;
    unsigned slow[16];
    char text[64];

    for (size_t t = 0; t < l->rounds; t++)
        slow[t] = (unsigned)(bits >> t * l->P & ((1u << l->P) - 1));
    spell(text, slow, l);
    stage_open(&s, plan, NULL);
    s.pattern = text;
    play(&s, l->products, slow, l->rounds, 5);
    check_deadlines(&s);
    hold(&s, s.core->stream.caught == 0);
    for (unsigned t = 1; t <= s.round; t++) {
        hold(&s, s.slots[t] <= plan->layout.slots);
        if (s.slots[t] > *worst)
            *worst = s.slots[t];
    }
    if (l->W)
        hold(&s,
             l->B ? bursty(&s, l->B, l->W, l->N) : arbitrary(&s, l->W, l->N));
    *whole += s.waits == 0;
    stage_close(&s);
}

static void every_pattern_of(const law *l)
{
    kofn_plan *plan = stream_plan(l->spec, l->P);
    size_t whole = 0, worst = 0, bits = l->P * l->rounds;

    for (uint64_t x = 0; x >> bits == 0; x++)
        one_pattern(l, plan, x, &whole, &worst);
    assert_int_equal(worst, l->slots); /* the bound is attained */
    assert_true(whole > 0);
    kofn_plan_free(plan);
}

static void every_pattern(const law *laws, size_t n)
{
    for (size_t i = 0; i < n; i++)
        every_pattern_of(&laws[i]);
}

static void dip_in_time(void **state)
{
    static const law laws[] = {
        {"dip:m=1,p=2,T=0,lambda=1", 2, 4, 4, 0, 0, 0, 2},
        {"dip:m=1,p=2,T=0,lambda=2", 2, 4, 4, 0, 0, 0, 1},
        {"dip:m=2,p=2,T=1,lambda=1", 2, 5, 5, 0, 0, 0, 4},
        {"dip:m=2,p=2,T=1,lambda=2,order=due", 2, 5, 5, 0, 0, 0, 3},
        {"dip:m=2,p=2,T=1,lambda=1,plain=no", 2, 5, 4, 0, 0, 0, 4},
        {"dip:m=1,p=3,T=2,lambda=2,basis=monomial", 2, 5, 5, 0, 0, 0, 3},
        {"dip:m=2,p=2,T=1,lambda=2", 3, 4, 4, 0, 0, 0, 3},
        {"dip:m=2,n=2,p=1,T=1,lambda=3", 3, 3, 3, 0, 0, 0, 3},
    };

    (void)state;
    every_pattern(laws, sizeof laws / sizeof *laws);
}

static void idip_in_time(void **state)
{
    static const law laws[] = {
        {"idip:W=2,N=1", 2, 5, 5, 0, 2, 1, 2},
        {"idip:W=2,N=2", 2, 5, 5, 0, 2, 2, 2},
        {"idip:W=2,N=3", 2, 5, 5, 0, 2, 3, 1},
        {"idip:W=3,N=2", 2, 5, 5, 0, 3, 2, 3},
        {"idip:W=3,N=4,early=no", 2, 5, 4, 0, 3, 4, 3},
        {"idip:W=2,N=0", 2, 3, 3, 0, 2, 0, 2},
        {"idip:W=2,N=2,basis=monomial", 3, 4, 4, 0, 2, 2, 2},
        {"idip:W=2,N=4", 3, 4, 4, 0, 2, 4, 2},
    };

    (void)state;
    every_pattern(laws, sizeof laws / sizeof *laws);
}

static void bursty_in_time(void **state)
{
    static const law laws[] = {
        {"idip:model=bursty,B=1,W=2,eps=1", 2, 5, 5, 1, 2, 1, 2},
        {"idip:model=bursty,B=1,W=2,eps=2", 2, 5, 5, 1, 2, 2, 2},
        {"idip:model=bursty,B=1,W=3,eps=1", 2, 5, 5, 1, 3, 1, 3},
        {"idip:model=bursty,B=2,W=3,eps=1", 2, 5, 5, 2, 3, 1, 4},
        {"idip:model=bursty,B=2,W=3,eps=2", 2, 5, 5, 2, 3, 2, 4},
        {"idip:model=bursty,B=1,W=2,eps=2,early=no", 3, 4, 4, 1, 2, 2, 2},
    };

    (void)state;
    every_pattern(laws, sizeof laws / sizeof *laws);
}

/* ---- all parameters ------------------------------------------------------ */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FEWER 1 /* rounds: there are many patterns */
#else
#define FEWER 0
#endif

/* Runs every pattern, with one more round in the long form. */
static void in_every_pattern(law l, const char *spec)
{
    kofn_plan *plan = stream_plan(spec, l.P);
    static const size_t rounds[] = {0, 6, 4, 3}; /* by workers */
    size_t whole = 0, worst = 0, bits;

    l.spec = spec;
    l.rounds = rounds[l.P] - FEWER;
    if (test_scale() > 1)
        l.rounds++;
    l.products = l.rounds;
    bits = l.P * l.rounds;
    for (uint64_t x = 0; x >> bits == 0; x++)
        one_pattern(&l, plan, x, &whole, &worst);
    assert_true(whole > 0);
    kofn_plan_free(plan);
}

static void every_small_dip(void **state)
{
    char spec[80];

    (void)state;
    for (size_t P = 1; P <= 3; P++)
        for (size_t T = 0; T <= 2; T++)
            for (size_t lambda = 1; lambda <= P; lambda++)
                for (size_t K = 1; K <= 5; K += P > 2 ? 2 : 1) {
                    snprintf(spec, sizeof spec,
                             "dip:m=1,p=%zu,T=%zu,lambda=%zu", K, T, lambda);
                    in_every_pattern((law){.P = P}, spec);
                }
}

static void every_small_idip(void **state)
{
    char spec[80];

    (void)state;
    for (size_t P = 1; P <= 3; P++)
        for (size_t W = 1; W <= 3; W++)
            for (size_t N = 0; N < P * W; N++) {
                snprintf(spec, sizeof spec, "idip:W=%zu,N=%zu,early=%s", W, N,
                         N % 2 ? "no" : "yes");
                in_every_pattern((law){.P = P, .W = W, .N = N}, spec);
            }
}

static void every_small_burst(void **state)
{
    char spec[80];

    (void)state;
    for (size_t P = 1; P <= 3; P++)
        for (size_t W = 2; W <= 3; W++)
            for (size_t B = 1; B < W; B++)
                for (size_t eps = 1; eps <= P; eps++) {
                    snprintf(spec, sizeof spec,
                             "idip:model=bursty,B=%zu,W=%zu,eps=%zu", B, W,
                             eps);
                    in_every_pattern((law){.P = P, .B = B, .W = W, .N = eps},
                                     spec);
                }
}

/* ---- the numbers of the specification ------------------------------------ */

/* The two-speed example: dip.trace.lam1 and dip.trace.T1lam4. */
static void dip_trace(void **state)
{
    static const unsigned slow[] = {3, 7, 8, 7, 2, 15, 0, 4};
    static const struct {
        const char *spec;
        size_t rounds, time[6], delay[5];
        unsigned waits;
    } traces[] = {
        {"dip:m=2,p=3,T=3,lambda=1",
         6,
         {1, 2, 3, 3, 4, 10},
         {2, 3, 2, 2, 1},
         0},
        {"dip:m=2,p=3,T=1,lambda=4",
         6,
         {1, 10, 2, 10, 2, 5},
         {1, 1, 1, 1, 1},
         2},
    };
    static stage s;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        kofn_plan *plan = stream_plan(traces[i].spec, 4);
        kofn_core_options o = {.size = sizeof o, .mu = 0};

        stage_open(&s, plan, &o);
        play(&s, 5, slow, 8, 5);
        check_deadlines(&s);
        assert_int_equal(s.round, traces[i].rounds);
        for (unsigned t = 1; t <= s.round; t++)
            assert_int_equal(s.took[t], traces[i].time[t - 1] * UNIT);
        for (size_t k = 1; k <= 5; k++)
            assert_int_equal(s.product[k].ended - s.product[k].began,
                             traces[i].delay[k - 1]);
        assert_int_equal(s.waits, traces[i].waits);
        stage_close(&s);
        kofn_plan_free(plan);
    }
}

/* idip.trace.once gives the numbers of plain and of coded entries. */
static void idip_trace(void **state)
{
    static const unsigned slow[] = {1, 4, 0, 2, 8, 0};
    static const size_t plain[] = {10, 7, 4, 10};
    kofn_plan *plan = stream_plan("idip:m=2,p=5,W=3,N=2,early=no", 4);
    static stage s;
    size_t coded = 0;

    (void)state;
    stage_open(&s, plan, NULL);
    play(&s, 4, slow, 6, 5);
    check_deadlines(&s);
    assert_int_equal(s.round, 6);
    for (unsigned t = 1; t <= 6; t++)
        for (size_t w = 0; w < 4; w++)
            assert_int_equal(s.mark[t][w], slow[t - 1] >> w & 1);
    for (size_t k = 1; k <= 4; k++) {
        assert_int_equal(s.product[k].plain, plain[k - 1]);
        coded += s.product[k].coded;
    }
    assert_int_equal(coded, 11);
    stage_close(&s);
    kofn_plan_free(plan);
}

/* The cases are idip.line13.examples, and the first rounds of P = W = 4. */
static void line_13_examples(void **state)
{
    static const struct {
        size_t past, marked[3], l, N, W;
        bool plain;
    } cases[] = {
        {0, {0}, 1, 3, 4, true},        {0, {0}, 1, 10, 4, false},
        {3, {2, 4, 4}, 1, 10, 4, true}, {3, {2, 4, 4}, 4, 10, 4, true},
        {3, {1, 0, 1}, 2, 2, 4, true},  {2, {0, 2}, 1, 2, 3, true},
        {2, {0, 2}, 2, 2, 3, true},     {2, {0, 2}, 3, 2, 3, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char spec[60];
        kofn_plan *plan;
        kofn_ask ask;

        snprintf(spec, sizeof spec, "idip:W=%zu,N=%zu", cases[i].W, cases[i].N);
        plan = stream_plan(spec, 4);
        plan->scheme->ask(
            &plan->layout,
            &(kofn_pending){.age = cases[i].l - 1, .plain_left = 1, .live = 4},
            &(kofn_past){cases[i].past, 4, cases[i].marked, NULL}, 0, &ask);
        assert_int_equal(ask.rows, 1);
        assert_int_equal(ask.plain, cases[i].plain);
        kofn_plan_free(plan);
    }
}

/* The facts are seq.Lstar.P4W4N10, idip.dims.P4W4N10, dip.ell.range*, ent.*
 * and idip.bursty.P4_W3_B2_e2. */
static void sizes_of_theorems(void **state)
{
    static const struct {
        const char *spec;
        size_t K, delay, slots;
    } sizes[] = {
        {"idip:W=4,N=10", 6, 3, 4},
        {"idip:model=bursty,W=3,B=2,eps=2", 12, 3, 4},
        {"dip:m=2,p=3,T=3,lambda=1", 6, 3, 9},
        {"dip:m=2,p=2,T=3,lambda=2", 4, 3, 5},
        {"dip:m=1,n=3,p=1,T=1", 5, 1, 3},
        {"dip:m=2,n=2,p=2,T=1", 9, 1, 4},
    };

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        kofn_plan *plan = stream_plan(sizes[i].spec, 4);
        kofn_plan_info info = KOFN_PLAN_INFO_INIT;

        assert_ok(kofn_plan_describe(plan, false, &info));
        assert_int_equal(plan->layout.enough, sizes[i].K);
        assert_int_equal(info.delay, sizes[i].delay);
        assert_int_equal(info.slots, sizes[i].slots);
        assert_int_equal(info.threshold, sizes[i].K);
        kofn_plan_free(plan);
    }
}

/* A task is a sixth of a product, so 4 tasks are 2/3 = 1 / (P - N/W). Some
 * patterns of the model attain the bound. */
static void worst_load(void **state)
{
    static const char *const specs[] = {"idip:m=2,p=3,W=4,N=10",
                                        "dip:m=2,p=3,T=3,lambda=4"};
    static const unsigned burst[] = {14, 14, 14, 0, 14, 14, 14, 0};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        kofn_plan *plan = stream_plan(specs[i], 4);
        static stage s;
        size_t worst = 0;

        stage_open(&s, plan, NULL);
        play(&s, 8, burst, 8, 5);
        check_deadlines(&s);
        assert_true(arbitrary(&s, 4, 10));
        assert_int_equal(s.core->stream.caught, 0);
        for (unsigned t = 1; t <= s.round; t++)
            worst = s.slots[t] > worst ? s.slots[t] : worst;
        assert_int_equal(worst, 4);
        stage_close(&s);
        kofn_plan_free(plan);
    }
}

static void refused_specs(void **state)
{
    static const char *const bad[] = {
        "dip:m=0",
        "dip:lambda=5",
        "dip:lambda=0",
        "dip:T=15",
        "dip:n=2,plain=yes",
        "dip:n=2,basis=quaternion",
        "idip:W=4,N=16",
        "idip:W=2,N=2,m=2,p=2",
        "idip:n=2",
        "idip:model=bursty,B=2,W=2",
        "idip:model=bursty,B=1,W=3,eps=5",
        "idip:model=bursty,N=3",
        "idip:B=1",
        "idip:W=16",
        "idip:W=2,N=2,m=4",
        "polynomial:m=3,p=2",
    };
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_STREAM, 60, 40, 60, KOFN_F64, false);
    kofn_plan *p;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_status(KOFN_INVAL, kofn_plan_new(&p, &pb, bad[i], 4, 1));
    assert_status(KOFN_UNSUITED, kofn_plan_new(&p, &pb, "mds", 4, 1));
    pb.op = KOFN_MATMUL;
    assert_status(KOFN_UNSUITED, kofn_plan_new(&p, &pb, "dip", 4, 1));
    pb = (kofn_problem)KOFN_PROBLEM_INIT(KOFN_STREAM, 60, 40, 60, KOFN_F64,
                                         true);
    assert_status(KOFN_UNSUITED, kofn_plan_new(&p, &pb, "dip", 4, 1));
}

TEST_FILE(stream_test)
{
    const struct CMUnitTest tests[] = {
        TEST(dip_in_time, "stream: dip is in time in every pattern"),
        TEST(idip_in_time,
             "stream: idip is in time in every pattern of its model"),
        TEST(bursty_in_time, "stream: idip is in time in every bursty pattern"),
        TEST(every_small_dip, "stream: every dip is in time (P <= 3, T <= 2)"),
        TEST(every_small_idip,
             "stream: every idip is in time (P <= 3, W <= 3)"),
        TEST(every_small_burst,
             "stream: every bursty idip is in time (P <= 3, W <= 3)"),
        TEST(dip_trace, "stream: dip has the rounds and delays of the traces"),
        TEST(idip_trace,
             "stream: idip gives out the plain and coded rows of the trace"),
        TEST(line_13_examples, "stream: line 13 decides as in the examples"),
        TEST(sizes_of_theorems,
             "stream: answers, delays and lists are those of the theorems"),
        TEST(worst_load,
             "stream: the longest list has 4 tasks (P = W = 4, N = 10)"),
        TEST(refused_specs, "stream: specs that make no sense are refused"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
