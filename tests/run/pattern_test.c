/* pattern_test.c -- models of stragglers against their closed forms and their
 * definitions, and files of patterns. */
#include "pattern_rig.h"

#include <kofn/io.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void near(double got, double want, double sd)
{
    assert_at_most(fabs(got - want), 4 * sd);
}

/* ---- closed forms: within four standard deviations at a fixed seed ------- */

#define P 5
#define ROUNDS 20000

/* Bernoulli: the share, and its pairs in one round and in successive ones. */
static void iid(void **state)
{
    const double p = 0.3, n = (double)P * ROUNDS;
    kofn_matrix a = pattern("iid:p=0.3", P, ROUNDS, 7);
    double one = 0, next = 0, beside = 0;

    (void)state;
    for (size_t t = 0; t < ROUNDS; t++)
        for (size_t w = 0; w < P; w++) {
            one += slow(&a, t, w);
            next += t + 1 < ROUNDS && slow(&a, t, w) && slow(&a, t + 1, w);
            beside += w + 1 < P && slow(&a, t, w) && slow(&a, t, w + 1);
        }
    near(one / n, p, sqrt(p * (1 - p) / n));
    /* successive pairs share a round: their variance is p^2 (1 - p)(1 + 3p)
     * for each of the pairs */
    near(next / (P * (ROUNDS - 1.0)), p * p,
         sqrt(p * p * (1 - p) * (1 + 3 * p) / (P * (ROUNDS - 1.0))));
    near(beside / ((P - 1.0) * ROUNDS), p * p,
         sqrt(p * p * (1 - p) * (1 + 3 * p) / ((P - 1.0) * ROUNDS)));
    kofn_free(a.data);
}

typedef struct runs {
    double count, length, square; /* of whole runs */
    size_t least;
} runs;

static void end_run(runs *r, size_t n)
{
    r->count++;
    r->length += (double)n;
    r->square += (double)n * (double)n;
    if (r->least == 0 || n < r->least)
        r->least = n;
}

/* Counts runs of both kinds that begin and end within the pattern. */
static void count_runs(const kofn_matrix *a, runs kind[2])
{
    for (size_t w = 0; w < a->cols; w++) {
        size_t since = 0; /* 0: the first is cut off */

        for (size_t t = 1; t < a->rows; t++) {
            if (slow(a, t, w) == slow(a, t - 1, w))
                continue;
            if (since)
                end_run(&kind[slow(a, t - 1, w)], t - since);
            since = t;
        }
    }
}

/* A good run is geometric with a. A bad one is the sum of M geometric ones
 * with b: mean M/b, variance M (1-b)/b^2, never below M. The share of bad
 * rounds, bad/(good+bad), has the variance of a renewal reward. That is the
 * variance of (1-s) bad - s good for a cycle, divided by the cycle's mean and
 * the number of rounds. */
static void fritchman(void **state)
{
    static const struct {
        double a, b, M;
    } all[] = {{.2, .5, 2}, {.05, 1, 2}, {.1, .3, 1}, {.3, .6, 4}};

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        double a = all[i].a, b = all[i].b, M = all[i].M, n = 0;
        double good = 1 / a, bad = M / b, share = bad / (good + bad);
        double vg = (1 - a) / (a * a), vb = M * (1 - b) / (b * b), cycle;
        runs r[2] = {{.count = 0}, {.count = 0}};
        char text[60];
        kofn_matrix x;

        snprintf(text, sizeof text, "fritchman:a=%g,b=%g,M=%g", a, b, M);
        x = pattern(text, P, ROUNDS, 3 + i);
        count_runs(&x, r);
        near(r[0].length / r[0].count, good, sqrt(vg / r[0].count));
        near(r[1].length / r[1].count, bad, sqrt(vb / r[1].count) + 1e-12);
        assert_int_equal(r[1].least, (size_t)M);
        for (size_t t = 0; t < ROUNDS; t++)
            for (size_t w = 0; w < P; w++)
                n += slow(&x, t, w);
        cycle = (1 - share) * (1 - share) * vb + share * share * vg;
        near(n / (P * ROUNDS), share,
             sqrt(cycle / (good + bad) / (P * ROUNDS)));
        for (size_t w = 0; w < P; w++)
            assert_false(slow(&x, 0, w)); /* all begin well */
        kofn_free(x.data);
    }
}

/* Compares the lengths of bad runs with (n-1) b^2 (1-b)^(n-2) for M = 2:
 * chi-squared, with 12 cells and the rest. */
static void burst_lengths(void **state)
{
    enum { CELLS = 12 };
    const double b = 0.5;
    kofn_matrix x = pattern("fritchman:a=0.2,b=0.5,M=2", P, ROUNDS, 11);
    double seen[CELLS + 1] = {0}, all = 0, chi = 0, rest = 1;

    (void)state;
    for (size_t w = 0; w < P; w++) {
        size_t n = 0;

        for (size_t t = 0; t < ROUNDS; t++) {
            if (slow(&x, t, w)) {
                n++;
            } else if (n) {
                seen[n < CELLS ? n : CELLS]++;
                all++;
                n = 0;
            }
        }
    }
    for (size_t n = 2; n <= CELLS; n++) {
        double p = n < CELLS
                       ? (double)(n - 1) * b * b * pow(1 - b, (double)n - 2)
                       : rest;

        rest -= p;
        chi += (seen[n] - all * p) * (seen[n] - all * p) / (all * p);
    }
    assert_true(seen[1] == 0);
    /* 10 degrees of freedom: mean 10, variance 20 */
    assert_at_most(chi, 10 + 4 * sqrt(20));
    kofn_free(x.data);
}

/* ---- traces: the published statistics ------------------------------------ */

static double entry(const kofn_matrix *a, size_t t, size_t w)
{
    return ((const double *)a->data)[t * a->ld + w];
}

/* Returns the share of entries above x. */
static double above(const kofn_matrix *a, double x)
{
    double n = 0;

    for (size_t t = 0; t < a->rows; t++)
        for (size_t w = 0; w < a->cols; w++)
            n += entry(a, t, w) > x;
    return n / ((double)a->rows * (double)a->cols);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Jobs of 256 functions: in each the slowest takes 1.3 to 2.6 times the median,
 * and the worst of all 24 times.  The sample median of 256 is that of the
 * model, 1, within four of its standard deviations, 1/32 in probability.  The
 * model is steepest in probability at ln(0.5/u) = 2 (x - 1) ln(0.5/share). */
static void lambda_rounds(void **state)
{
    enum { N = 256, JOBS = 1000 };
    kofn_matrix a = pattern("lambda", N, JOBS, 5);
    double within = 0, worst = 0, row[N];
    const double steep = 0.5 * log(0.5 / (0.5 - 4.0 / 32)) / log(0.5 / 0.07);

    (void)state;
    for (size_t t = 0; t < JOBS; t++) {
        double middle;

        memcpy(row, (const double *)a.data + t * N, sizeof row);
        qsort(row, N, sizeof *row, by_size);
        middle = (row[N / 2 - 1] + row[N / 2]) / 2;
        assert_true(row[0] >= 1);
        assert_at_most(middle, 1 + steep);
        within += row[N - 1] / middle >= 1.3 && row[N - 1] / middle <= 2.6;
        worst = fmax(worst, row[N - 1]);
    }
    assert_true(within / JOBS >= 0.9);
    assert_at_most(worst, 24);
    assert_true(worst >= 6); /* five accidents; each is smaller with 1/2 */
    kofn_free(a.data);
}

/* 0.2 to 7 % of the workers are above 1.5 times the median: each end alone, and
 * log-uniform shares between p and q.  Their mean is (q - p) / ln(q / p), that
 * of their squares (q^2 - p^2) / 2 / ln(q / p).  Of the workers above 1.5, the
 * part `of` is above x. */
static void lambda_shares(void **state)
{
    static const struct {
        const char *text;
        double p, q, x, of;
    } all[] = {
        {"lambda:p=0.002,q=0.002,rare=0", 0.002, 0.002, 1.5, 1},
        {"lambda:p=0.07,q=0.07,rare=0", 0.07, 0.07, 1.5, 1},
        {"lambda:rare=0", 0.002, 0.07, 1.5, 1},
        {"lambda:p=0.01,rare=0", 0.01, 0.07, 1.5, 1},
        {"lambda:q=0.2,rare=0", 0.002, 0.2, 1.5, 1},
        /* less by (x / 1.5)^tail */
        {"lambda:p=0.4,q=0.4,rare=0", 0.4, 0.4, 1.8, 0.2325680},
        {"lambda:p=0.4,q=0.4,tail=3,rare=0", 0.4, 0.4, 3, 0.125},
        {"lambda:p=0.4,q=0.4,tail=1,rare=0", 0.4, 0.4, 3, 0.5},
        {"lambda:p=0.4,q=0.4,tail=1,rare=0,worst=3", 0.4, 0.4, 2.5, 0.6},
        {"lambda:p=0.4,q=0.4,tail=1,rare=0,worst=3", 0.4, 0.4, 3, 0},
        /* accidents: ln(worst / 8) / ln(worst / 1.5) of them are above 8 */
        {"lambda:rare=0.1", 0.1, 0.1, 8, 0.3962406},
        {"lambda:rare=0.1,worst=16", 0.1, 0.1, 8, 0.2928226},
    };

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        kofn_matrix a = pattern(all[i].text, 256, 400, 3 + i);
        double p = all[i].p, q = all[i].q, mean = p, square = p * p, m;

        if (q > p) {
            mean = (q - p) / log(q / p);
            square = (q * q - p * p) / 2 / log(q / p);
        }
        m = mean * all[i].of;
        near(above(&a, all[i].x), m,
             sqrt(m * (1 - m) / (256 * 400) + (square - mean * mean) / 400));
        kofn_free(a.data);
    }
}

typedef struct fleet {
    double there, changes; /* of the rounds; of all groups */
} fleet;

/* Counts, and finds groups that are not all there or all absent. */
static fleet look_at_fleet(const kofn_matrix *a, size_t group)
{
    fleet f = {0, 0};

    for (size_t t = 0; t < a->rows; t++)
        for (size_t w = 0; w < a->cols; w++) {
            double e = entry(a, t, w);

            assert_true(e == 1 || e == HUGE_VAL);
            assert_true(e == entry(a, t, w / group * group));
            f.there += e == 1;
            f.changes += t > 0 && w % group == 0 && e != entry(a, t - 1, w);
        }
    return f;
}

/* A fleet of 16 changes 0.6 times an hour, with 6.9 machines there on average,
 * and other fleets as they are asked for.  With hazards a and b of a group, the
 * mean of R rounds has the variance p (1-p) (2 - a - b) / (a + b) / R.  The
 * changes are twice the renewals of a cycle of two geometric stays. */
static void spot(void **state)
{
    enum { R = 40000 };
    static const struct {
        const char *text;
        double changes, present, hour;
        size_t workers, group;
    } all[] = {
        {"spot", 0.6, 6.9 / 16, 12, 16, 1},
        {"spot:group=4", 0.6, 6.9 / 16, 12, 16, 4},
        {"spot:present=0.8,changes=9", 9, 0.8, 12, 16, 1},
        {"spot:hour=3", 0.6, 6.9 / 16, 3, 16, 1},
        {"spot:group=3,hour=2,changes=1", 1, 6.9 / 16, 2, 8, 3},
    };

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        kofn_matrix x = pattern(all[i].text, all[i].workers, R, 1 + i);
        double n = (double)((all[i].workers + all[i].group - 1) / all[i].group);
        double p = all[i].present, c = all[i].changes / all[i].hour / n;
        double b = c / 2 / p, a = c / 2 / (1 - p), mean = 1 / a + 1 / b;
        double cycle = (1 - a) / (a * a) + (1 - b) / (b * b);
        fleet f = look_at_fleet(&x, all[i].group);

        near(f.there / R / (double)all[i].workers, p,
             sqrt(p * (1 - p) * (2 - a - b) / (a + b) / (R * n)));
        near(f.changes, c * n * (R - 1),
             2 * sqrt(n * R * cycle / (mean * mean * mean)));
        kofn_free(x.data);
    }
}

/* The first round has its share of workers as well. */
static void spot_begins(void **state)
{
    enum { N = 4000 };
    kofn_matrix x = pattern("spot:present=0.2", N, 1, 3);

    (void)state;
    near(1 - above(&x, 1), 0.2, sqrt(0.2 * 0.8 / N));
    kofn_free(x.data);
}

/* Workers in different groups change alone: the share of rounds in which both
 * are there is p^2. */
static void spot_groups(void **state)
{
    enum { R = 40000 };
    kofn_matrix x = pattern("spot:group=2,present=0.5,changes=12", 4, R, 2);
    double both = 0, one = 0;

    (void)state;
    for (size_t t = 0; t < R; t++) {
        both += entry(&x, t, 0) == 1 && entry(&x, t, 2) == 1;
        one += entry(&x, t, 0) == 1 && entry(&x, t, 1) == 1;
    }
    /* a + b is 1 here, so that rounds are independent */
    near(both / R, 0.25, sqrt(0.25 * 0.75 / R));
    near(one / R, 0.5, sqrt(0.5 * 0.5 / R));
    kofn_free(x.data);
}

/* ---- definitions: every window, by brute force --------------------------- */

static size_t marks_in(const kofn_matrix *a, size_t from, size_t to)
{
    size_t n = 0;

    for (size_t t = from; t < to; t++)
        for (size_t w = 0; w < a->cols; w++)
            n += slow(a, t, w);
    return n;
}

static bool is_arbitrary(const kofn_matrix *a, size_t N, size_t W)
{
    for (size_t t = 0; t < a->rows; t++)
        if (marks_in(a, t, kf_min(t + W, a->rows)) > N)
            return false;
    return true;
}

static bool is_bursty(const kofn_matrix *a, size_t B, size_t W, size_t eps)
{
    for (size_t from = 0; from < a->rows; from++) {
        size_t to = kf_min(from + W, a->rows), distinct = 0;

        for (size_t w = 0; w < a->cols; w++) {
            size_t first = to, last = 0;

            for (size_t t = from; t < to; t++)
                if (slow(a, t, w)) {
                    first = kf_min(first, t);
                    last = t;
                }
            if (first == to)
                continue;
            distinct++;
            if (last - first + 1 > B)
                return false;
        }
        if (distinct > eps)
            return false;
    }
    return true;
}

static const char *const styles[] = {"max", "uniform", "onoff", "sticky"};

/* True if one more worker could be slow in round t, with all others unchanged.
 * With style max no worker could be when the round was drawn. Later windows
 * may allow one, so they are not looked at. */
static bool could_be_more(kofn_matrix *a, size_t t, size_t x, size_t y,
                          size_t z)
{
    kofn_matrix so_far = *a;
    bool more = false;

    so_far.rows = t + 1;
    for (size_t w = 0; w < a->cols && !more; w++) {
        double *f = &((double *)a->data)[t * a->ld + w];

        if (*f > 1)
            continue;
        *f = 5;
        more = z ? is_bursty(&so_far, x, y, z) : is_arbitrary(&so_far, x, y);
        *f = 1;
    }
    return more;
}

static void try_one(const char *text, const char *style, size_t workers,
                    uint64_t seed, size_t x, size_t y, size_t z)
{
    const size_t rounds = 24;
    kofn_matrix a = pattern(text, workers, rounds, seed);

    assert_true(z ? is_bursty(&a, x, y, z) : is_arbitrary(&a, x, y));
    for (size_t t = 0; t < rounds && !strcmp(style, "max"); t++)
        assert_false(could_be_more(&a, t, x, y, z));
    kofn_free(a.data);
}

/* Tries all (N, W) and (B, W, eps) of up to four workers and five rounds, in
 * all styles. */
static void windows(void **state)
{
    char text[80];

    (void)state;
    for (size_t workers = 1; workers <= 4; workers++)
        for (size_t W = 1; W <= 5; W++)
            for (size_t s = 0; s < 4; s++) {
                for (size_t N = 0; N < workers * W; N++) {
                    snprintf(text, sizeof text,
                             "arbitrary:N=%zu,W=%zu,style=%s", N, W, styles[s]);
                    for (uint64_t seed = 0; seed < often(4); seed++)
                        try_one(text, styles[s], workers, seed, N, W, 0);
                }
                for (size_t B = 1; B < W; B++)
                    for (size_t eps = 1; eps <= workers; eps++) {
                        snprintf(text, sizeof text,
                                 "bursty:B=%zu,W=%zu,eps=%zu,style=%s", B, W,
                                 eps, styles[s]);
                        for (uint64_t seed = 0; seed < often(4); seed++)
                            try_one(text, styles[s], workers, seed, B, W, eps);
                    }
            }
}

/* Two workers and four rounds have 256 patterns. Brute force finds those that
 * conform. */
static void all_patterns(void **state)
{
    static const struct {
        const char *text;
        size_t x, y, z;
    } all[] = {{"arbitrary:N=2,W=2", 2, 2, 0},
               {"arbitrary:W=3,N=3,style=uniform", 3, 3, 0},
               {"bursty:B=1,W=2,eps=1", 1, 2, 1},
               {"bursty:B=2,W=3,eps=2", 2, 3, 2}};

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        bool came[256] = {false};
        double cells[8];
        kofn_matrix x = {cells, 4, 2, 2, KOFN_F64};

        for (uint64_t seed = 0; seed < 4000; seed++) {
            kofn_matrix a = pattern(all[i].text, 2, 4, seed);
            size_t code = 0;

            for (size_t e = 0; e < 8; e++)
                code |= (size_t)slow(&a, e / 2, e % 2) << e;
            came[code] = true;
            kofn_free(a.data);
        }
        for (size_t code = 0; code < 256; code++) {
            for (size_t e = 0; e < 8; e++)
                cells[e] = code >> e & 1 ? 5 : 1;
            assert_int_equal(came[code],
                             all[i].z
                                 ? is_bursty(&x, all[i].x, all[i].y, all[i].z)
                                 : is_arbitrary(&x, all[i].x, all[i].y));
        }
    }
}

/* Each round and worker has its own draw. So a longer pattern begins like a
 * shorter one. If workers are independent, a wider pattern contains the
 * narrower one. */
static void draws(void **state)
{
    static const char *const text[] = {
        "iid:p=0.4",         "fritchman:a=0.3,b=0.4,M=3", "lambda",
        "arbitrary:N=5,W=3", "bursty:B=2,W=4,eps=3",      "spot:hour=1"};

    (void)state;
    for (size_t i = 0; i < 6; i++) {
        kofn_matrix a = pattern(text[i], 4, 50, 9),
                    b = pattern(text[i], 4, 80, 9);
        kofn_matrix c = pattern(text[i], 4, 50, 10);
        kofn_matrix d = pattern(text[i], 6, 50, 9);

        assert_memory_equal(a.data, b.data, 200 * sizeof(double));
        assert_memory_not_equal(a.data, c.data, 200 * sizeof(double));
        for (size_t t = 0; i < 3 && t < 50; t++)
            for (size_t w = 0; w < 4; w++)
                assert_true(entry(&a, t, w) == entry(&d, t, w));
        kofn_free(a.data);
        kofn_free(b.data);
        kofn_free(c.data);
        kofn_free(d.data);
    }
}

/* ---- refusals ------------------------------------------------------------ */

static void refused(const char *text, kofn_status st, const char *words)
{
    kofn_matrix a;

    assert_status(st, kofn_pattern_new(&a, text, 4, 10, 5, 1));
    assert_null(a.data);
    if (!strstr(kofn_errmsg(), words))
        fail_msg("%s: \"%s\" does not say \"%s\"", text, kofn_errmsg(), words);
}

static void wrong_arguments(void **state)
{
    kofn_matrix a;

    (void)state;
    refused("iid", KOFN_INVAL, "needs p");
    refused("iid:", KOFN_INVAL, "needs p");
    refused("iid:p", KOFN_INVAL, "key=value");
    refused("iid:p=", KOFN_INVAL, "not a number");
    refused("iid:p=0.2x", KOFN_INVAL, "p=0.2x is not a number");
    refused("iid:p=nan", KOFN_INVAL, "not a number");
    refused("iid:p=1.2", KOFN_INVAL, "p=1.2");
    refused("iid:p=-1", KOFN_INVAL, "p=-1");
    refused("iid:q=1", KOFN_INVAL, "has no \"q\"; it takes p");
    refused("iid:p=0.1,style=max", KOFN_INVAL, "has no \"style\"");
    refused("fritchman:a=.1,b=.2", KOFN_INVAL, "needs M");
    refused("fritchman:a=.1,b=.2,M=0", KOFN_INVAL, "M=0");
    refused("fritchman:a=.1,b=.2,M=1.5", KOFN_INVAL, "whole number");
    refused("arbitrary:N=3,W=0", KOFN_INVAL, "W=0");
    refused("arbitrary:N=12,W=3", KOFN_INVAL, "at most 11");
    refused("arbitrary:N=3,W=3,style=some", KOFN_INVAL, "style=some");
    refused("bursty:B=3,W=3,eps=1", KOFN_INVAL, "not less than W=3");
    refused("bursty:B=2,W=3,eps=5", KOFN_INVAL, "more than the 4 workers");
    refused("bursty:B=2,W=3", KOFN_INVAL, "needs eps");
    refused("lambda:p=0", KOFN_INVAL, "p=0 is not");
    refused("lambda:q=0.5", KOFN_INVAL, "q=0.5 is not");
    refused("lambda:p=0.1,q=0.05", KOFN_INVAL, "p=0.1 is more than q=0.05");
    refused("lambda:tail=0", KOFN_INVAL, "tail=0");
    refused("lambda:rare=2", KOFN_INVAL, "rare=2");
    refused("lambda:worst=1", KOFN_INVAL, "worst=1");
    refused("lambda:eps=1", KOFN_INVAL, "it takes p, q, tail, rare, worst");
    refused("spot:present=0", KOFN_INVAL, "present=0");
    refused("spot:present=1", KOFN_INVAL, "present=1");
    refused("spot:changes=-1", KOFN_INVAL, "changes=-1");
    refused("spot:hour=0", KOFN_INVAL, "hour=0");
    refused("spot:group=1.5", KOFN_INVAL, "group=1.5");
    /* 4 chains of 12 rounds an hour, half of the time there */
    refused("spot:present=0.5,changes=49", KOFN_INVAL, "it is at most 48");
    refused("spot:p=1", KOFN_INVAL, "it takes changes, present, hour, group");
    refused("no-such-file.npy", KOFN_IO, "no pattern of this name");
    assert_status(KOFN_INVAL, kofn_pattern_new(&a, "iid:p=0", 4, 0, 5, 1));
    assert_status(KOFN_INVAL, kofn_pattern_new(&a, "iid:p=0", 0, 4, 5, 1));
    assert_status(KOFN_INVAL, kofn_pattern_new(&a, "iid:p=0", 4, 4, 1, 1));
    assert_status(KOFN_INVAL, kofn_pattern_new(&a, "iid:p=0", 4, 4, NAN, 1));
    assert_status(KOFN_INVAL, kofn_pattern_new(&a, "iid:p=0", 4, 4, 1e7, 1));
    assert_status(KOFN_INVAL,
                  kofn_pattern_new(&a, "iid:p=0", SIZE_MAX / 2, 3, 5, 1));
    assert_ok(kofn_pattern_new(&a, "iid:p=1", 2, 2, HUGE_VAL, 1));
    assert_true(((double *)a.data)[3] > 1e300);
    kofn_free(a.data);
}

/* ---- files --------------------------------------------------------------- */

static void files(void **state)
{
    double x[] = {1, 5, HUGE_VAL, 0, 2.5, 1};
    kofn_matrix a = {x, 2, 3, 3, KOFN_F64}, b;
    static const char *const name[] = {"pattern_test.npy", "pattern_test.csv"};
    kofn_file *f;

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_ok(kofn_write(name[i], KOFN_DENSE(&a), 2));
        assert_ok(kofn_pattern_new(&b, name[i], 3, 0, 0, 0));
        assert_true(b.rows == 2 && b.cols == 3);
        assert_memory_equal(b.data, x, sizeof x);
        kofn_free(b.data);
        assert_status(KOFN_SHAPE, kofn_pattern_new(&b, name[i], 4, 0, 0, 0));
        assert_status(KOFN_NONFINITE,
                      kofn_file_open(&f, name[i], KOFN_FILE_READ));
    }
    x[4] = -1;
    assert_ok(kofn_write(name[0], KOFN_DENSE(&a), 2));
    assert_status(KOFN_FORMAT, kofn_pattern_new(&b, name[0], 3, 0, 0, 0));
    x[4] = NAN;
    assert_ok(kofn_write(name[1], KOFN_DENSE(&a), 2));
    assert_true(kofn_pattern_new(&b, name[1], 3, 0, 0, 0) < 0);
    assert_ok(kofn_write(name[0], KOFN_DENSE(&a), 2));
    assert_status(KOFN_FORMAT, kofn_pattern_new(&b, name[0], 3, 0, 0, 0));
    unlink(name[0]);
    unlink(name[1]);
}

TEST_FILE(pattern_test)
{
    const struct CMUnitTest tests[] = {
        TEST(iid, "pattern: iid has its share and pairs of slow rounds"),
        TEST(fritchman, "pattern: fritchman has its runs and share"),
        TEST(burst_lengths,
             "pattern: fritchman bursts have their distribution (chi-squared)"),
        TEST(lambda_rounds,
             "pattern: lambda has the slowest workers of published jobs"),
        TEST(lambda_shares,
             "pattern: lambda has the published shares, and those asked for"),
        TEST(spot,
             "pattern: spot has its changes, and its share of workers there"),
        TEST(spot_begins,
             "pattern: the first round of spot is like the others"),
        TEST(spot_groups, "pattern: groups of spot change alone"),
        TEST(windows,
             "pattern: arbitrary and bursty patterns obey their windows"),
        TEST(all_patterns,
             "pattern: every conforming pattern occurs, and no other"),
        TEST(draws,
             "pattern: longer and wider patterns contain the shorter ones"),
        TEST(wrong_arguments, "pattern: invalid arguments are refused"),
        TEST(files,
             "pattern: files of patterns are written and read (.npy, .csv)"),
    };

    rig_begin();
    return cmocka_run_group_tests_name("pattern", tests, NULL, NULL);
}
