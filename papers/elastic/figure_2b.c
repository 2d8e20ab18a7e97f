/* figure_2b.c -- Figure 2b of "Coded Elastic Computing" (Yang, Interlandi,
 * Grover, Kar, Amizadeh, Weimer, 2018): a gradient of regression on 20 workers
 * uncoded, 20 coded and 10 coded; math/elastic.md 18. */
#include "elastic/elastic.h"

#include <stdlib.h>

#define BARS 3

/* The figure's values relative to uncoded, with the printed precision. */
static const double bands[BARS][2] = {{1, 1}, {1.0, 1.3}, {1.7, 2.5}};

static bool within(double ratio, size_t i)
{
    return papers_within(round(ratio * 10) / 10, bands[i][0], bands[i][1]);
}

static json_t *conclude(const timings *b)
{
    static const char *const names[BARS] = {"uncoded, 20 live",
                                            "coded, 20 live", "coded, 10 live"};
    json_t *bars = json_array();

    for (size_t s = 0; s < BARS; s++) {
        double count = timings_share(b, s) / timings_share(b, 0),
               work = timings_median(b, TIMINGS_WORK, s, true);

        papers_add(bars,
                   "name:s live:z share:f work_seconds:f code_seconds:f "
                   "seconds:f count_ratio:f work_ratio:f band:o count_ok:b "
                   "work_ok:b",
                   names[s], b->setting[s].live, timings_share(b, s),
                   timings_median(b, TIMINGS_WORK, s, false),
                   timings_median(b, TIMINGS_CODE, s, false),
                   timings_median(b, TIMINGS_WHOLE, s, false), count, work,
                   papers_reals(bands[s], 2), within(count, s),
                   within(work, s));
    }
    return bars;
}

static kofn_status run(const papers_args *a, size_t k, json_t *list)
{
    /* With 80 rows, shares of 20 and of 10 workers are whole. Any 20 of 20 is
     * what the paper calls uncoded: plain parts, and all must answer. */
    double scale = papers_scale(a, 0.6);
    timings b = {
        .rows = scaled_size(scale, 10000, 80),
        .cols = scaled_size(scale, 3352, 1),
        .settings = BARS,
        .setting = {{.fleet = {.k = 20, .n = 20, .seed = 1}},
                    {.fleet = {.k = 10, .n = 20, .seed = 1}},
                    {.fleet = {.k = 10, .n = 20, .seed = 1}, .gone = 10}}};
    kofn_status st = timings_take(&b, a->seed, timings_gradient);

    if (!st)
        papers_add(list, "scenario:z size:p trials:i bars:o rel_error:f", k,
                   (size_t[]){b.rows, b.cols}, TIMINGS_TRIALS, conclude(&b),
                   b.worst);
    free(b.A);
    return st;
}

static void tell(json_t *o)
{
    papers_print(o,
                 "2: a gradient of regression, X {size.0} x {size.1}, "
                 "median of {trials}; ratios by uncoded\n   (Fig. 2b)\n"
                 "                  share ratio       work     code    whole "
                 " ratio of work\n");
    papers_each(papers_at(o, "bars"),
                "{name:-16} {share:6.4f} {count_ratio:4.2f} {count_ok:-3}"
                "{work_seconds*1e3:5.3f} ms {code_seconds*1e3:5.3f} ms "
                "{seconds*1e3:5.3f} ms  {work_ratio:4.2f} in "
                "{band.0:.1f}..{band.1:.1f} {work_ok}\n");
    papers_print(o, "gradients off by {rel_error:.1e}\n");
}

const papers_scenario elastic_figure_2b = {run, tell, NULL};
