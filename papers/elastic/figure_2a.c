/* figure_2a.c -- Figure 2a of "Coded Elastic Computing" (Yang, Interlandi,
 * Grover, Kar, Amizadeh, Weimer, 2018): y = X w on 6, 5, 4 and 3 workers, any
 * 3 suffice, fitted as c0 + c1/n; math/elastic.md 18. */
#include "elastic/elastic.h"

#include <stdlib.h>

#define SIZES 4

/* The simulated network of a data centre: every message takes LATENCY and the
 * time of its bytes. It is added to rounds that ran without it, so that the
 * workers' time and the total belong to the same rounds. */
#define LATENCY 1e-4
#define BANDWIDTH 1.25e9

static double travel(const timings *b, double of_rows)
{
    double numbers = (double)b->cols + of_rows * (double)b->rows;

    return 2 * LATENCY + 8 * numbers / BANDWIDTH;
}

/* Fits whole = c0 + c1 / n by least squares. */
static void fit(const json_t *sizes, double c[2])
{
    double n = SIZES, x = 0, y = 0, xx = 0, xy = 0;
    const json_t *o;

    for (size_t i = 0; (o = json_array_get(sizes, i)); i++) {
        double u = 1 / papers_real(o, "workers"),
               whole = papers_real(o, "seconds");

        x += u;
        y += whole;
        xx += u * u;
        xy += u * whole;
    }
    c[1] = (n * xy - x * y) / (n * xx - x * x);
    c[0] = (y - c[1] * x) / n;
}

/* Takes medians over the trials, and fits the line. */
static void conclude(const timings *b, size_t k, json_t *list)
{
    json_t *sizes = json_array();
    double c[2];

    for (size_t s = 0; s < SIZES; s++)
        papers_add(sizes, "workers:z share:f work_seconds:f seconds:f",
                   b->setting[s].live, timings_share(b, s),
                   timings_median(b, TIMINGS_WORK, s, false),
                   timings_median(b, TIMINGS_WHOLE, s, false) +
                       travel(b, timings_share(b, s)));
    fit(sizes, c);
    papers_add(
        list,
        "scenario:z size:p trials:i sizes:o c0:f c1:f count_ratio:f "
        "work_ratio:o ratio:f rel_error:f",
        k, (size_t[]){b->rows, b->cols}, TIMINGS_TRIALS, sizes, c[0], c[1],
        timings_share(b, SIZES - 1) / timings_share(b, 0),
        papers_band_json(timings_median(b, TIMINGS_WORK, SIZES - 1, true), 1.7,
                         2.5),
        papers_real(sizes, "3.seconds") / papers_real(sizes, "0.seconds"),
        b->worst);
}

static kofn_status run(const papers_args *a, size_t k, json_t *list)
{
    /* With 240 rows, shares of 6, 5, 4 and 3 workers are whole. */
    double scale = papers_scale(a, 0.2);
    timings b = {.rows = scaled_size(scale, 30000, 240),
                 .cols = scaled_size(scale, 10000, 1),
                 .settings = SIZES};
    kofn_status st;

    for (size_t s = 0; s < SIZES; s++)
        b.setting[s] =
            (setting){.fleet = {.k = 3, .n = 6, .seed = 1}, .gone = s};
    st = timings_take(&b, a->seed, timings_product);
    if (!st)
        conclude(&b, k, list);
    free(b.A);
    return st;
}

static void tell(json_t *o)
{
    papers_print(o, "1: y = X w, any 3 workers are enough, X {size.0} x "
                    "{size.1}; median of {trials} (Fig. 2a)\n"
                    "workers    share of X         work  whole round\n");
    papers_each_bar(papers_at(o, "sizes"),
                    "{workers:-8} {share:12.4f} {work_seconds*1e3:9.3f} ms "
                    "{seconds*1e3:9.3f} ms  ",
                    "seconds", 20);
    papers_print(o, "3 workers by 6: share {count_ratio:.2f}, work "
                    "{work_ratio.value:.2f} {work_ratio.ok}, whole "
                    "{ratio:.2f}; whole = {c0*1e3:.3f} + {c1*1e3:.3f}/n ms\n"
                    "answers off by {rel_error:.1e}\n");
}

const papers_scenario elastic_figure_2a = {run, tell, NULL};
