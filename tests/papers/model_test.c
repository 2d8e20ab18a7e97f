/* model_test.c -- the restart model of gradient codes: facts, the published
 * table, explicit Markov chains, simulation, and theorems. */
#include "support.h"

#include "base/rng.h"
#include "gradient/gradient.h"

#include <math.h>
#include <string.h>

#define UNCODED ((aet_scheme){AET_UNCODED, 0})
#define GC ((aet_scheme){AET_GC, 0})
#define CGC(s) ((aet_scheme){AET_CGC, s})
#define G_CGC(s) ((aet_scheme){AET_G_CGC, s})
#define AGC ((aet_scheme){AET_AGC, 0})
#define G_AGC ((aet_scheme){AET_G_AGC, 0})

#define assert_near(value, want, tol)                                          \
    do {                                                                       \
        double near_v_ = (value), near_w_ = (want);                            \
        if (!(fabs(near_v_ - near_w_) <= (tol)))                               \
            fail_msg("%s = %.12g, not %.12g", #value, near_v_, near_w_);       \
    } while (0)

static aet_result average(const aet_params *q, aet_scheme s)
{
    aet_result r;

    assert_ok(aet_of(q, s, &r));
    return r;
}

static double aet(size_t n, size_t d, double p, double t_cp, double t_cm,
                  aet_scheme s)
{
    aet_params q = {n, d, p, t_cp, t_cm, 0};

    return average(&q, s).time;
}

/* ---- facts --------------------------------------------------------------- */

/* D.AET.N10.d3.p0.05, t = (1, 1) and (2.45, 13). */
static void average_times_are_the_facts(void **state)
{
    static const struct {
        aet_scheme scheme;
        double fact[2];
    } rows[] = {
        {{AET_AGC, 0}, {1.458947, 8.294928943}},
        {{AET_G_AGC, 0}, {1.415337381, 7.841671713}},
        {{AET_CGC, 0}, {2.187930858, 13.38509921}},
        {{AET_G_CGC, 0}, {2.187930858, 13.38509921}},
        {{AET_CGC, 1}, {1.67283317, 10.28513624}},
        {{AET_G_CGC, 1}, {1.556677303, 9.387832163}},
        {{AET_CGC, 2}, {2.023010816, 15.62775856}},
        {{AET_G_CGC, 2}, {2.001462415, 15.46129716}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_near(aet(10, 3, 0.05, 1, 1, rows[i].scheme), rows[i].fact[0],
                    1e-8);
        assert_near(aet(10, 3, 0.05, 2.45, 13, rows[i].scheme), rows[i].fact[1],
                    1e-8);
    }
}

/* D.tableVI: the values of the two columns, in the order of the table. */
static void the_published_table_is_reproduced(void **state)
{
    static const double want[AGC_ROWS][2] = {
        {18.39189123, 18.40189123}, {19.95019139, 19.96019139},
        {16.99733718, 16.99733718}, {20.45091149, 20.45091149},
        {16.99733718, 16.99733718}, {20.45091149, 20.45091149},
        {14.17622638, 14.16622638}, {17.68072597, 17.67072597},
        {11.89753483, 12.09575949}, {12.8581475, 13.56050287},
        {18.96200372, 18.96200372}, {19.95631159, 19.95631159},
        {18.66563203, 18.66712992}, {18.702215, 18.71408864},
        {12.19286961, 12.76029377}, {15.84639022, 16.4699693},
        {9.953798048, 11.03022832}, {11.10150854, 12.77291519}};
    static const double printed[AGC_ROWS] = {
        18.39, 19.95, 17.00, 20.45, 17.00, 20.45, 14.18, 17.68, 11.90,
        12.86, 18.96, 19.96, 18.67, 18.70, 12.19, 15.85, 9.95,  11.10};
    agc_row rows[AGC_ROWS];

    (void)state;
    assert_ok(agc_table(rows));
    for (int i = 0; i < AGC_ROWS; i++) {
        assert_near(rows[i].printed, printed[i], 1e-12);
        assert_near(rows[i].as_printed, printed[i], 0.005);
        assert_near(rows[i].as_printed, want[i][0], 1e-8);
        assert_near(rows[i].straight, want[i][1], 1e-8);
        assert_near(rows[i].p, i % 2 ? 0.10 : 0.05, 1e-15);
    }
}

/* The table's conclusions hold: its order with the straight numbers, from the
 * least to the greatest (math/gradients.md 11). */
static void table_order(void **state)
{
    static const int order[2][8] = {{16, 8, 14, 6, 2, 0, 12, 10},
                                    {17, 9, 15, 7, 13, 11, 1, 3}};
    agc_row rows[AGC_ROWS];

    (void)state;
    assert_ok(agc_table(rows));
    for (int p = 0; p < 2; p++)
        for (int i = 1; i < 8; i++)
            assert_true(rows[order[p][i - 1]].straight <
                        rows[order[p][i]].straight);
}

/* ---- lengths and groups -------------------------------------------------- */

static void check_vector(const aet_params *q, aet_scheme scheme,
                         const double *want, size_t n)
{
    double c[64];

    assert_int_equal(aet_lengths(q, scheme, c), n);
    for (size_t s = 0; s < n; s++)
        assert_near(c[s], want[s], 1e-15);
}

static void communication_vectors(void **state)
{
    static const double agc4[] = {1. / 4, 1. / 3, 1. / 2, 1};
    static const double one[] = {1, 1, 1, 1}, half[] = {0.5, 0.5, 0.5};
    static const struct { /* D.commvec */
        size_t d, lam;
        double c[5];
    } cut[] = {{3, 1, {1, 1, 1}},
               {3, 2, {1. / 2, 1. / 2, 1}},
               {3, 3, {1. / 3, 2. / 3, 1}},
               {3, 4, {1. / 2, 1. / 2, 1}},
               {3, 5, {2. / 5, 3. / 5, 1}},
               {4, 4, {1. / 4, 1. / 2, 1. / 2, 1}},
               {4, 6, {1. / 3, 1. / 3, 1. / 2, 1}},
               {5, 10, {1. / 5, 3. / 10, 2. / 5, 1. / 2, 1}}};
    static const size_t lcm[] = {0, 1, 2, 6, 12, 60, 60, 420, 840};
    aet_params q = {20, 4, 0, 1, 1, 0};

    (void)state;
    check_vector(&q, AGC, agc4, 4);
    check_vector(&q, G_AGC, agc4, 4);
    check_vector(&q, GC, one, 4);
    check_vector(&q, CGC(2), half, 3);
    check_vector(&q, G_CGC(2), half, 3);
    check_vector(&q, CGC(0), agc4, 1);
    check_vector(&q, UNCODED, one, 1);
    for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) {
        q.d = cut[i].d;
        q.lam = cut[i].lam;
        check_vector(&q, AGC, cut[i].c, q.d);
    }
    for (size_t d = 1; d <= 8; d++) { /* lcm(1..d) segments reach the optimum */
        double want[8];

        for (size_t s = 0; s < d; s++)
            want[s] = 1 / (double)(d - s);
        q.d = d;
        q.lam = lcm[d];
        check_vector(&q, AGC, want, d);
        q.lam = 0;
        check_vector(&q, AGC, want, d);
    }
}

static void check_groups(size_t n, size_t d, const size_t *sizes, size_t count)
{
    aet_params q = {n, d, 0, 1, 1, 0};

    assert_int_equal(aet_groups(&q, G_AGC), count);
    assert_int_equal(aet_groups(&q, G_CGC(0)), count);
    assert_int_equal(aet_groups(&q, AGC), 1);
    assert_int_equal(aet_group_size(&q, CGC(0), 0), n);
    for (size_t h = 0; h < count; h++)
        assert_int_equal(aet_group_size(&q, G_AGC, h), sizes[h]);
    assert_int_equal(aet_group_size(&q, G_AGC, count), 0);
}

/* math/gradients.md 7.1. */
static void groups_are_those_of_the_paper(void **state)
{
    (void)state;
    check_groups(7, 2, (size_t[]){2, 2, 3}, 3);
    check_groups(11, 3, (size_t[]){3, 3, 5}, 3);
    check_groups(20, 3, (size_t[]){3, 3, 3, 3, 3, 5}, 6);
    check_groups(20, 4, (size_t[]){4, 4, 4, 4, 4}, 5);
    check_groups(5, 3, (size_t[]){5}, 1);
    check_groups(1, 1, (size_t[]){1}, 1);
}

/* Theorem 4: grouping loses at most max(n mod d - 1, 0) of the stragglers that
 * any grouping of this load could tolerate. */
static void group_tolerance(void **state)
{
    (void)state;
    for (size_t n = 1; n <= 40; n++)
        for (size_t d = 1; d <= 6 && d <= n; d++) {
            aet_params q = {n, d, 0, 1, 1, 0};
            size_t groups = aet_groups(&q, G_AGC), total = groups * (d - 1);
            size_t bound = n - (n + d - 1) / d;
            size_t loss = n % d > 1 ? n % d - 1 : 0;

            assert_int_equal(total, n / d * (d - 1));
            assert_int_equal(bound - total, loss);
            assert_true(loss == 0 || loss <= d - 2);
        }
}

/* ---- explicit chains ------------------------------------------------------
 */

#define EPOCHS 60
#define MOST 16

/* Returns P{Bin(n, p) = k} by Pascal's triangle, independently of the library.
 */
static double pascal(size_t n, double p, size_t k)
{
    double row[MOST + 2] = {1};

    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 2; j-- > 0;)
            row[j] = (1 - p) * row[j] + (j ? p * row[j - 1] : 0);
    return k <= n ? row[k] : 0;
}

/* Computes ends[i][s] = P{tau = i, X_i = s} of one group, by stepping through
 * the distribution of the number of stragglers. */
static void chain(size_t n, size_t S, double p, double ends[EPOCHS][MOST])
{
    double x[MOST + 1] = {0};

    memset(ends, 0, sizeof(double[EPOCHS][MOST]));
    x[n] = 1; /* all start */
    for (size_t i = 0; i < EPOCHS; i++) {
        double next[MOST + 1] = {0};

        for (size_t v = 0; v <= n; v++)
            for (size_t s = 0; s <= v; s++)
                next[s] += x[v] * pascal(v, p, s);
        for (size_t s = 0; s <= S; s++) {
            ends[i][s] = next[s];
            next[s] = 0;
        }
        memcpy(x, next, sizeof x);
    }
}

/* Joins the groups: the last group to end decides the epoch, and the most
 * stragglers among those that ended in it decide the length. */
static void join(double all[EPOCHS][MOST], double one[EPOCHS][MOST], size_t S)
{
    double was[EPOCHS][MOST];

    memcpy(was, all, sizeof was);
    memset(all, 0, sizeof was);
    for (size_t i = 0; i < EPOCHS; i++)
        for (size_t s = 0; s <= S; s++)
            for (size_t j = 0; j < EPOCHS; j++)
                for (size_t r = 0; r <= S; r++) {
                    size_t e = i > j ? i : j, most = s > r ? s : r;

                    if (i != j)
                        most = i > j ? s : r;
                    all[e][most] += was[i][s] * one[j][r];
                }
}

typedef struct cell {
    size_t i, s;
} cell;

static double is_cell(void *ctx, size_t i, size_t s)
{
    const cell *c = ctx;

    return c->i == i && c->s == s;
}

static void check_chain(size_t n, size_t d, double p, aet_scheme scheme)
{
    aet_params q = {n, d, p, 1, 1, 0};
    bool flat = scheme.kind & (AET_CGC | AET_G_CGC);
    size_t S = flat ? scheme.s : d - 1;
    double all[EPOCHS][MOST], one[EPOCHS][MOST];
    aet_result r;

    chain(aet_group_size(&q, scheme, 0), S, p, all);
    for (size_t h = 1; h < aet_groups(&q, scheme); h++) {
        chain(aet_group_size(&q, scheme, h), S, p, one);
        join(all, one, S);
    }
    for (size_t i = 0; i < EPOCHS; i += i < 6 ? 1 : 9) {
        double sum = 0;

        for (size_t s = 0; s <= S; s++) {
            sum += all[i][s];
            if (flat && s < S)
                continue; /* their sum is compared with the tolerance */
            assert_ok(aet_with(&q, scheme, is_cell, &(cell){i, s}, &r));
            assert_near(r.time, flat ? sum : all[i][s], 1e-12);
        }
    }
}

/* Compares equations 81 and 90 with the chain, cell by cell. */
static void closed_forms_are_the_markov_chain(void **state)
{
    static const double ps[] = {0, 0.003, 0.05, 0.3, 0.6, 0.9};

    (void)state;
    for (int i = 0; i < 6; i++) {
        check_chain(10, 3, ps[i], AGC);
        check_chain(10, 3, ps[i], CGC(1));
        check_chain(11, 3, ps[i], G_AGC);
        check_chain(11, 3, ps[i], G_CGC(0));
        check_chain(11, 3, ps[i], G_CGC(2));
        check_chain(7, 5, ps[i], AGC);
        check_chain(7, 2, ps[i], G_AGC);
        check_chain(4, 4, ps[i], AGC);
        check_chain(1, 1, ps[i], AGC);
    }
}

/* Hundreds of workers and of epochs lose no probability. */
static void probabilities_sum_to_one(void **state)
{
    static const size_t ns[] = {1, 2, 7, 20, 100, 333, 1000, 10000};
    static const double ps[] = {0, 1e-6, 0.01, 0.1, 0.5, 0.9, 0.99};

    (void)state;
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 7; j++)
            for (size_t d = 1; d <= 7 && d <= ns[i]; d += 2) {
                aet_params q = {ns[i], d, ps[j], 1, 1, 0};

                assert_near(average(&q, AGC).mass, 1, 1e-12);
                assert_near(average(&q, G_AGC).mass, 1, 1e-12);
                assert_near(average(&q, CGC(d / 2)).mass, 1, 1e-12);
                assert_near(average(&q, G_CGC(d / 2)).mass, 1, 1e-12);
            }
}

/* Known values: the mean maximum of n geometric variables, D.P_le1, one
 * worker, and no stragglers. */
static void known_values(void **state)
{
    aet_params q = {300, 3, 0.9, 1, 1, 0};
    double want = 0, left = 1;

    (void)state;
    for (int i = 0; left > 1e-18; i++, want += left)
        left = -expm1(300 * log1p(-pow(0.9, i)));
    assert_near(average(&q, CGC(0)).epochs / want, 1, 1e-12);

    q = (aet_params){20, 2, 0.05, 0, 0, 0};
    for (int i = 0; i < 2; i++) {
        aet_result r;

        q.p = i ? 0.1 : 0.05;
        assert_ok(aet_with(&q, CGC(1), is_cell, &(cell){0, 1}, &r));
        assert_near(r.time, i ? 0.3917469981 : 0.7358395249, 1e-10);
    }
    assert_near(aet(1, 1, 0.75, 2, 3, AGC), 4 * 5, 1e-11);
    assert_near(aet(9, 3, 0, 2, 3, AGC), 3, 1e-15);
    assert_near(aet(9, 3, 0, 2, 3, UNCODED), 2. / 3 + 3, 1e-15);
    assert_near(aet(9, 3, 0.2, 2, 3, GC), aet(9, 3, 0.2, 2, 3, CGC(2)), 1e-15);
    /* A failed uncoded epoch costs the same as a coded one; its end costs
     * less. */
    assert_near(aet(9, 3, 0.2, 6, 3, UNCODED),
                aet(9, 3, 0.2, 6, 3, CGC(0)) - 4 + 2, 1e-12);
}

/* ---- simulation ---------------------------------------------------------- */

/* Simulates one iteration, worker by worker. */
static double simulate(const aet_params *q, aet_scheme scheme, size_t S,
                       const double *c, kf_rng *rng)
{
    size_t groups = aet_groups(q, scheme), waiting[64], most;
    bool over[64] = {false}, more = true;
    size_t i;

    for (size_t h = 0; h < groups; h++)
        waiting[h] = aet_group_size(q, scheme, h);
    for (i = 0; more; i++) {
        more = false;
        most = 0;
        for (size_t h = 0; h < groups; h++) {
            size_t started = over[h] ? 0 : waiting[h];

            if (over[h])
                continue;
            for (size_t w = 0; w < started; w++)
                waiting[h] -= kf_rng_uniform(rng) >= q->p;
            over[h] = waiting[h] <= S;
            more = more || !over[h];
            most = waiting[h] > most ? waiting[h] : most;
        }
    }
    return (double)(i - 1) * (q->t_cp + q->t_cm) + q->t_cp + c[most] * q->t_cm;
}

static void check_simulation(const aet_params *q, aet_scheme scheme)
{
    size_t runs = (size_t)(50000 * fmax(test_scale(), 0.1)), count;
    kf_rng rng = kf_rng_stream(7, KF_FOR_SAMPLE, (uint32_t)scheme.kind,
                               (uint32_t)(q->n * 100 + scheme.s));
    double sum = 0, squares = 0, c[16], mean, deviation;
    double want = average(q, scheme).time;

    count = aet_lengths(q, scheme, c);
    for (size_t i = 0; i < runs; i++) {
        double t = simulate(q, scheme, count - 1, c, &rng) - want;

        sum += t;
        squares += t * t;
    }
    mean = sum / (double)runs;
    deviation = sqrt((squares / (double)runs - mean * mean) / (double)runs);
    assert_at_most(fabs(mean), 4 * deviation + 1e-12);
}

static void simulation_agrees(void **state)
{
    static const aet_params at[] = {
        {10, 3, 0.05, 1, 1, 0}, {20, 3, 0.10, 2.45, 13, 0},
        {20, 3, 0.6, 1, 1, 6},  {7, 2, 0.3, 1, 5, 0},
        {12, 4, 0.2, 3, 1, 5},  {5, 5, 0.9, 1, 1, 0},
        {40, 6, 0.15, 1, 2, 60}};

    (void)state;
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        check_simulation(&at[i], AGC);
        check_simulation(&at[i], G_AGC);
        for (size_t s = 0; s < at[i].d; s++) {
            check_simulation(&at[i], CGC(s));
            check_simulation(&at[i], G_CGC(s));
        }
    }
}

/* ---- theorems ------------------------------------------------------------ */

static void at_most(double a, double b)
{
    assert_at_most(a, b * (1 + 1e-13));
}

/* Checks math/gradients.md 10.4 for one set of parameters. */
static void check_dominance(const aet_params *q)
{
    double agc = average(q, AGC).time, g_agc = average(q, G_AGC).time;

    at_most(g_agc, agc);
    for (size_t s = 0; s < q->d; s++) {
        double cgc = average(q, CGC(s)).time;
        double g_cgc = average(q, G_CGC(s)).time;

        at_most(agc, cgc);
        at_most(g_agc, g_cgc);
        at_most(g_cgc, cgc);
        if (s == 0)
            assert_near(g_cgc / cgc, 1, 1e-12);
    }
    if (q->n < 2 * q->d) /* one group is the plain scheme */
        assert_near(g_agc, agc, 0);
}

static void adaptive_and_grouped_codes_dominate(void **state)
{
    static const size_t ns[] = {1, 2, 5, 10, 15, 20, 64, 301};
    static const double ps[] = {0.001, 0.02, 0.1, 0.35, 0.6, 0.9};
    static const double ts[][2] = {{1, 1},  {1, 5}, {2.45, 13},
                                   {10, 1}, {0, 1}, {1, 0}};

    (void)state;
    for (int i = 0; i < 8; i++)
        for (size_t d = 1; d <= 6 && d <= ns[i]; d++)
            for (int j = 0; j < 6; j++)
                for (int k = 0; k < 6; k++) {
                    aet_params q = {ns[i], d, ps[j], ts[k][0], ts[k][1], 0};

                    check_dominance(&q);
                }
}

/* Returns the p at which two schemes take the same time; `below` is the better
 * one below it. */
static double crossing(double t_cp, double t_cm, aet_scheme below,
                       aet_scheme above)
{
    double low = 1e-4, high = 0.6;

    for (int i = 0; i < 50; i++) {
        double p = (low + high) / 2;

        if (aet(20, 3, p, t_cp, t_cm, below) < aet(20, 3, p, t_cp, t_cm, above))
            low = p;
        else
            high = p;
    }
    return low;
}

/* math/gradients.md 10.5, to the printed digits. */
static void curves_cross_where_they_should(void **state)
{
    (void)state;
    assert_near(crossing(1, 1, CGC(0), CGC(1)), 0.0045, 5e-5);
    assert_near(crossing(1, 1, CGC(1), CGC(2)), 0.0676, 5e-5);
    assert_near(crossing(1, 1, G_CGC(0), G_CGC(1)), 0.0043, 5e-5);
    assert_near(crossing(1, 1, G_CGC(1), G_CGC(2)), 0.1177, 5e-5);
    assert_near(crossing(2.45, 13, CGC(0), CGC(1)), 0.0081, 5e-5);
    assert_near(crossing(2.45, 13, CGC(1), CGC(2)), 0.3099, 5e-5);
    assert_near(crossing(2.45, 13, G_CGC(0), G_CGC(1)), 0.0075, 5e-5);
    assert_near(crossing(2.45, 13, G_CGC(1), G_CGC(2)), 0.1687, 5e-5);
}

/* ---- the best ------------------------------------------------------------ */

static void check_best(double p, double t_cp, double t_cm, unsigned among,
                       const char *want)
{
    aet_params q = {20, 3, p, t_cp, t_cm, 0};
    aet_scheme best;
    aet_result r;
    char name[32];

    assert_ok(aet_best(&q, among, &best, &r));
    assert_string_equal(aet_name(best, name, sizeof name), want);
    assert_near(r.time, average(&q, best).time, 0);
    assert_ok(aet_best(&q, among, &best, NULL));
}

static void the_best_is_chosen(void **state)
{
    (void)state;
    check_best(0.05, 1, 1, 0, "G-AGC");
    check_best(0.001, 9, 1, 0, "uncoded"); /* a third of the computation */
    check_best(0, 1, 3, 0, "CGC(0)");      /* the simplest of equal schemes */
    check_best(0.001, 1, 1, AET_CGC, "CGC(0)");
    check_best(0.05, 1, 1, AET_CGC, "CGC(1)");
    check_best(0.1, 1, 1, AET_CGC, "CGC(2)");
    check_best(0.1, 1, 1, AET_G_CGC, "G-CGC(1)");
    check_best(0.1, 1, 1, AET_CGC | AET_AGC, "AGC");
    check_best(0.3, 1, 1, AET_GC | AET_UNCODED, "GC");
    for (int i = 1; i < 90; i++) { /* d = 1: they are one scheme */
        aet_params q = {20, 1, 0.01 * i, 1, 3, 0};
        aet_scheme best;

        assert_ok(aet_best(&q, 0, &best, NULL));
        assert_int_equal(best.kind, AET_UNCODED);
    }
}

/* ---- refusals -------------------------------------------------------------
 */

static double endless(void *ctx, size_t i, size_t s)
{
    (void)ctx;
    (void)s;
    return i ? INFINITY : 1;
}

static void not_finite(void **state)
{
    aet_params q = {20, 3, 0.05, 1, 1, 0};
    aet_result r;

    (void)state;
    assert_status(KOFN_NONFINITE, aet_with(&q, AGC, endless, NULL, &r));
}

TEST_FILE(model_test)
{
    const struct CMUnitTest tests[] = {
        TEST(average_times_are_the_facts,
             "aet: mean times are the specified facts"),
        TEST(the_published_table_is_reproduced,
             "aet: the published table is reproduced, with its slips"),
        TEST(table_order,
             "aet: the table's order of schemes holds without its slips"),
        TEST(communication_vectors,
             "aet: communication vectors are the published ones"),
        TEST(groups_are_those_of_the_paper,
             "aet: groups are those of the paper"),
        TEST(group_tolerance,
             "aet: groups tolerate nearly the maximum (Theorem 4)"),
        TEST(closed_forms_are_the_markov_chain,
             "aet: closed forms equal the Markov chain"),
        TEST(probabilities_sum_to_one,
             "aet: probabilities sum to 1 (hundreds of workers and epochs)"),
        TEST(known_values, "aet: known special cases agree"),
        TEST(simulation_agrees,
             "aet: a simulation agrees with the closed form"),
        TEST(adaptive_and_grouped_codes_dominate,
             "aet: adaptive and grouped codes are never slower"),
        TEST(curves_cross_where_they_should,
             "aet: curves cross at the published probabilities"),
        TEST(the_best_is_chosen, "aet: the best scheme is chosen"),
        TEST(not_finite,
             "aet: parameters and times that are not finite are refused"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
