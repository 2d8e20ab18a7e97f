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
    static const char *const text[] = {"iid:p=0.4", "fritchman:a=0.3,b=0.4,M=3",
                                       "arbitrary:N=5,W=3",
                                       "bursty:B=2,W=4,eps=3"};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        kofn_matrix a = pattern(text[i], 4, 50, 9),
                    b = pattern(text[i], 4, 80, 9);
        kofn_matrix c = pattern(text[i], 4, 50, 10);
        kofn_matrix d = pattern(text[i], 6, 50, 9);

        assert_memory_equal(a.data, b.data, 200 * sizeof(double));
        assert_memory_not_equal(a.data, c.data, 200 * sizeof(double));
        for (size_t t = 0; i < 2 && t < 50; t++)
            for (size_t w = 0; w < 4; w++)
                assert_int_equal(slow(&a, t, w), slow(&d, t, w));
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
