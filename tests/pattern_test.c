/* pattern_test.c -- models of stragglers against their closed forms and their
 * definitions, files of them, and workers that are slow by them. */
#include "rig.h"

#include <kofn/io.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static kofn_matrix pattern(const char *text, size_t workers, size_t rounds,
                           uint64_t seed)
{
    kofn_matrix a;

    assert_ok(kofn_pattern_new(&a, text, workers, rounds, 5, seed));
    assert_true(a.rows == rounds && a.cols == workers && a.ld == workers);
    return a;
}

static bool slow(const kofn_matrix *a, size_t t, size_t w)
{
    double f = ((const double *)a->data)[t * a->ld + w];

    assert_true(f == 1 || f == 5);
    return f > 1;
}

static void near(double got, double want, double sd)
{
    assert_at_most(fabs(got - want), 4 * sd);
}

/* ---- closed forms: within four standard deviations at a fixed seed -------- */

#define P 5
#define ROUNDS 20000

/* Bernoulli: the share, its pairs in the same round and in successive ones. */
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

/* Runs of both kinds that begin and end within the pattern. */
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

/* A good run is geometric with a; a bad one is the sum of M geometric ones with
 * b: mean M/b, variance M (1-b)/b^2, never below M.  The share of bad rounds,
 * bad/(good+bad), has the variance of a renewal reward: that of
 * (1-s) bad - s good a cycle, by the cycle's mean and the number of rounds. */
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

/* The lengths of bad runs themselves: chi-squared of M = 2 by
 * (n-1) b^2 (1-b)^(n-2), with 12 cells and the rest. */
static void lengths_of_bursts(void **state)
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

/* Could one more worker be slow in some round, all others staying as they are?
 * Under max nobody could when the round was drawn, so it may only be for later
 * ones, whose windows are not to be looked at. */
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

/* All (N, W) and (B, W, eps) of up to four workers and five rounds, in all
 * styles. */
static void windows_hold(void **state)
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

/* Every pattern that conforms comes, and no other: two workers and four rounds
 * have 256, of which brute force knows which. */
static void every_conforming_one_comes(void **state)
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

/* A lot for each round and worker: a longer pattern begins as a shorter one,
 * and where workers are independent a wider one has the narrower one in it. */
static void draws_are_named(void **state)
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

/* ---- what is refused ----------------------------------------------------- */

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

/* Written as .npy or .csv, infinity and all, and read again. */
static void files_of_patterns(void **state)
{
    double x[] = {1, 5, HUGE_VAL, 0, 2.5, 1};
    kofn_matrix a = {x, 2, 3, 3, KOFN_F64}, b;
    static const char *const name[] = {"pattern_test.npy", "pattern_test.csv"};
    kofn_file *f;

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_ok(kofn_write(name[i], &a, 2));
        assert_ok(kofn_pattern_new(&b, name[i], 3, 0, 0, 0));
        assert_true(b.rows == 2 && b.cols == 3);
        assert_memory_equal(b.data, x, sizeof x);
        kofn_free(b.data);
        assert_status(KOFN_SHAPE, kofn_pattern_new(&b, name[i], 4, 0, 0, 0));
        assert_status(KOFN_NONFINITE, kofn_file_open(&f, name[i]));
    }
    x[4] = -1;
    assert_ok(kofn_write(name[0], &a, 2));
    assert_status(KOFN_FORMAT, kofn_pattern_new(&b, name[0], 3, 0, 0, 0));
    x[4] = NAN;
    assert_ok(kofn_write(name[1], &a, 2));
    assert_true(kofn_pattern_new(&b, name[1], 3, 0, 0, 0) < 0);
    assert_ok(kofn_write(name[0], &a, 2));
    assert_status(KOFN_FORMAT, kofn_pattern_new(&b, name[0], 3, 0, 0, 0));
    unlink(name[0]);
    unlink(name[1]);
}

/* ---- workers by a pattern ------------------------------------------------ */

/* Each round takes as long as its slowest worker, and the pattern begins again.
 * Three rounds of pattern, seven of products: each of four workers has 600
 * multiply-adds, a nanosecond each. */
static void simulated(void **state)
{
    double x[] = {1, 1, 7, 1, 0, 1, 1, 1, 2, 2, 2.5, 2};
    float y[12];
    kofn_options o = KOFN_OPTIONS_INIT;
    kofn_matrix a = {x, 3, 4, 4, KOFN_F64}, single = {y, 3, 4, 4, KOFN_F32};
    const double longest[] = {7, 1, 2.5};
    kofn_weather w = {.pattern = &a};
    rig_kind k = {.spec = "uncoded",
                  .workers = 4,
                  .m = 240,
                  .n = 10,
                  .p = 1,
                  .sim = true,
                  .weather = &w,
                  .opt = &o};

    (void)state;
    o.pieces = 1;
    for (int i = 0; i < 12; i++)
        y[i] = (float)x[i];
    for (int i = 0; i < 2; i++) {
        kofn_report rep;
        rig r;

        w.pattern = i ? &single : &a;
        rig_up(&r, &k);
        for (size_t t = 0; t < 7; t++) {
            assert_ok(rig_round(&r, &rep));
            assert_int_equal(rep.took, (kofn_time)(600 * longest[t % 3]));
        }
        rig_down(&r);
    }
}

/* Who never answers is done without, on all ports; joiners are as usual. */
static void who_never_answers(void **state)
{
    double x[] = {1, HUGE_VAL, 1, 1};
    kofn_matrix a = {x, 1, 4, 4, KOFN_F64};
    kofn_weather w = {.pattern = &a};
    kofn_options o = KOFN_OPTIONS_INIT;

    (void)state;
    count_allocations();
    o.late = -1;
    for (int sim = 0; sim < 2; sim++) {
        rig_kind k = {.spec = "mds:k=3",
                      .workers = 5,
                      .m = 240,
                      .n = 10,
                      .p = 1,
                      .sim = sim,
                      .weather = &w,
                      .opt = &o};
        rig r;

        rig_up(&r, &k);
        for (int t = 0; t < 20; t++) {
            assert_ok(rig_round(&r, NULL));
            assert_at_most(rig_error(&r), 1e-12);
        }
        rig_down(&r);
    }
    assert_int_equal(allocated(), 0);
    kofn_set_alloc(NULL);
}

/* ---- recorded, and again ------------------------------------------------- */

static kofn_matrix recorded(const rig_kind *like, size_t rounds,
                            const kofn_matrix *by)
{
    static const char path[] = "pattern_test_record.npy";
    kofn_weather w = {.pattern = by};
    kofn_options o = like->opt ? *like->opt : (kofn_options)KOFN_OPTIONS_INIT;
    rig_kind k = *like;
    kofn_matrix a;
    rig r;

    o.record = path;
    o.late = -1;
    k.opt = &o;
    k.weather = &w;
    rig_up(&r, &k);
    for (size_t t = 0; t < rounds; t++)
        assert_ok(rig_round(&r, NULL));
    assert_ok(kofn_finish(r.job));
    rig_down(&r);
    assert_ok(kofn_pattern_new(&a, path, like->workers, 0, 0, 0));
    assert_int_equal(a.rows, rounds);
    unlink(path);
    return a;
}

/* Of equal workers who all are waited for, the pattern itself, by the first of
 * each round; what that was made of gives the same again, to the bit. */
static void recorded_and_replayed(void **state)
{
    kofn_matrix a = pattern("fritchman:a=0.3,b=0.5,M=2", 6, 40, 5), b, c;
    rig_kind k = {.spec = "uncoded",
                  .workers = 6,
                  .m = 240,
                  .n = 10,
                  .p = 1,
                  .sim = true};
    const double *x = a.data, *y;

    (void)state;
    b = recorded(&k, 40, &a);
    assert_int_equal(b.cols, 6);
    y = b.data;
    for (size_t t = 0; t < 40; t++) {
        double least = 5;

        for (size_t w = 0; w < 6; w++)
            least = fmin(least, x[6 * t + w]);
        for (size_t w = 0; w < 6; w++)
            assert_true(y[6 * t + w] == x[6 * t + w] / least);
    }
    c = recorded(&k, 40, &b);
    assert_memory_equal(b.data, c.data, 240 * sizeof(double));
    kofn_free(a.data);
    kofn_free(b.data);
    kofn_free(c.data);
}

/* Where some are not waited for they never answer, in the record and when it is
 * had again. */
static void recorded_without_the_slow(void **state)
{
    static const kofn_happening events[] = {{9, 0, KOFN_HAPPENING_LEAVE, 1, 0},
                                            {9, 0, KOFN_HAPPENING_JOIN, 0, 0}};
    kofn_matrix a = pattern("arbitrary:N=2,W=1,style=max", 5, 20, 5), b, c;
    kofn_options o = KOFN_OPTIONS_INIT;
    rig_kind k = {.spec = "mds:k=3",
                  .workers = 5,
                  .m = 240,
                  .n = 10,
                  .p = 1,
                  .sim = true,
                  .opt = &o};
    const double *x;

    (void)state;
    b = recorded(&k, 20, &a);
    assert_int_equal(b.cols, 5);
    x = b.data;
    for (size_t e = 0; e < 100; e++)
        assert_true(slow(&a, e / 5, e % 5) ? isinf(x[e]) : x[e] == 1);
    c = recorded(&k, 20, &b);
    assert_memory_equal(b.data, c.data, 100 * sizeof(double));
    kofn_free(b.data);
    kofn_free(c.data);
    /* Who comes later has a column; who is not there is as usual. */
    o.events = events;
    o.event_count = 2;
    k.spec = "elastic:k=3";
    b = recorded(&k, 20, NULL);
    assert_int_equal(b.cols, 6);
    x = b.data;
    for (size_t e = 0; e < 120; e++)
        assert_true(x[e] == 1);
    kofn_free(a.data);
    kofn_free(b.data);
}

static void note_round(void *ud, const kofn_stream_round *r)
{
    uint8_t *marks = ud;

    assert_in_range(r->round, 1, 64);
    assert_int_equal(r->workers, 4);
    memcpy(marks + 4 * (r->round - 1), r->mark, 4);
}

/* Of a stream, whose products last for several rounds: who is slow is marked,
 * and a stream under what was recorded is the same. */
static kofn_matrix recorded_stream(const kofn_matrix *by, uint8_t *marks)
{
    enum { COUNT = 12 };
    static const char path[] = "pattern_test_stream.npy";
    kofn_problem pb = {KOFN_STREAM, 24, 20, 36, KOFN_F64, false};
    kofn_weather w = {.pattern = by, .whole = true};
    kofn_options o = KOFN_OPTIONS_INIT;
    kofn_matrix X[COUNT], Y[COUNT], out[COUNT], a;
    kofn_plan *plan;
    kofn_port *port;
    kofn_job *job;
    uint32_t number;

    o.record = path;
    assert_ok(kofn_plan_new(&plan, &pb, "dip:m=2,p=3,T=3,lambda=2", 4, 7));
    assert_ok(kofn_port_sim(&port, 4, &w));
    assert_ok(kofn_open(&job, plan, port, &o));
    kofn_on_round(job, note_round, marks);
    for (size_t i = 0; i < COUNT; i++) {
        X[i] = random_matrix(24, 20, KOFN_F64, 3 * i);
        Y[i] = random_matrix(20, 36, KOFN_F64, 3 * i + 1);
        out[i] = random_matrix(24, 36, KOFN_F64, 3 * i + 2);
        assert_ok(kofn_put_pair(job, &X[i], &Y[i], &out[i], &number));
    }
    for (uint32_t i = 1; i <= COUNT; i++)
        assert_ok(kofn_take(job, i, KOFN_NEVER, NULL));
    assert_ok(kofn_finish(job));
    kofn_close(job);
    kofn_plan_free(plan);
    for (size_t i = 0; i < COUNT; i++) {
        kf_free(X[i].data);
        kf_free(Y[i].data);
        kf_free(out[i].data);
    }
    assert_ok(kofn_pattern_new(&a, path, 4, 0, 0, 0));
    unlink(path);
    return a;
}

static void recorded_of_streams(void **state)
{
    kofn_matrix a = pattern("arbitrary:N=5,W=3,style=uniform", 4, 64, 4), b, c;
    uint8_t marks[2][64 * 4] = {{0}};
    size_t never = 0;
    const double *x;

    (void)state;
    b = recorded_stream(&a, marks[0]);
    assert_int_equal(b.cols, 4);
    assert_true(b.rows >= 12 && b.rows <= 15);
    x = b.data;
    for (size_t e = 0; e < 4 * b.rows; e++) {
        assert_int_equal(isinf(x[e]) != 0, marks[0][e]);
        if (isinf(x[e]))
            assert_true(slow(&a, e / 4, e % 4));
        never += isinf(x[e]) != 0;
    }
    assert_true(never > 5);
    c = recorded_stream(&b, marks[1]);
    assert_memory_equal(marks[0], marks[1], sizeof marks[0]);
    assert_true(c.rows == b.rows);
    assert_memory_equal(b.data, c.data, 4 * b.rows * sizeof(double));
    kofn_free(a.data);
    kofn_free(b.data);
    kofn_free(c.data);
}

/* Real workers: no more than that there is one who was first, or nobody. */
static void recorded_of_threads(void **state)
{
    double x[] = {1, 1, HUGE_VAL, 1};
    kofn_matrix a = {x, 1, 4, 4, KOFN_F64}, b;
    rig_kind k = {.spec = "mds:k=3", .workers = 4, .m = 240, .n = 10, .p = 1};
    const double *y;

    (void)state;
    b = recorded(&k, 10, &a);
    y = b.data;
    for (size_t t = 0; t < 10; t++) {
        size_t first = 0, never = 0;

        for (size_t w = 0; w < 4; w++) {
            first += y[4 * t + w] == 1;
            never += isinf(y[4 * t + w]) != 0;
            assert_true(y[4 * t + w] >= 1);
        }
        assert_true(first >= 1 && never == 1 && isinf(y[4 * t + 2]));
    }
    kofn_free(b.data);
}

static void wrong_records(void **state)
{
    kofn_options o = KOFN_OPTIONS_INIT;
    rig_kind k = {
        .spec = "uncoded", .workers = 2, .m = 40, .n = 5, .p = 1, .opt = &o};
    kofn_port *port;
    kofn_job *job;
    rig r;

    (void)state;
    o.record = "pattern_test.txt";
    rig_inputs(&r, &k);
    assert_ok(kofn_port_sim(&port, 2, NULL));
    assert_status(KOFN_INVAL, kofn_open(&job, r.plan, port, &o));
    o.record = "/nowhere/at/all.npy";
    assert_ok(kofn_port_sim(&port, 2, NULL));
    assert_ok(kofn_open(&job, r.plan, port, &o));
    assert_ok(kofn_place(job, &r.A));
    assert_ok(kofn_round(job, &r.x, &r.y, NULL));
    assert_status(KOFN_IO, kofn_finish(job));
    kofn_close(job);
    assert_ok(kofn_port_sim(&port, 2, NULL));
    assert_ok(kofn_open(&job, r.plan, port, &o));
    assert_status(KOFN_STATE, kofn_finish(job)); /* there was nothing */
    kofn_close(job);
    rig_down(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(iid),
        cmocka_unit_test(fritchman),
        cmocka_unit_test(lengths_of_bursts),
        cmocka_unit_test(windows_hold),
        cmocka_unit_test(every_conforming_one_comes),
        cmocka_unit_test(draws_are_named),
        cmocka_unit_test(wrong_arguments),
        cmocka_unit_test(files_of_patterns),
        cmocka_unit_test(simulated),
        cmocka_unit_test(who_never_answers),
        cmocka_unit_test(recorded_and_replayed),
        cmocka_unit_test(recorded_without_the_slow),
        cmocka_unit_test(recorded_of_streams),
        cmocka_unit_test(recorded_of_threads),
        cmocka_unit_test(wrong_records),
    };

    rig_begin();
    return cmocka_run_group_tests_name("pattern", tests, NULL, NULL);
}
