/* tell.c -- what elastic.c and descent.c find, as tables and JSON. */
#include "elastic/elastic.h"
#include "show.h"

#include <stdlib.h>

/* A few seconds each, and large enough to be timed. */
static const double usual_scale[] = {0, 0.2, 0.6, 0.06};

static double scale_of(const papers_args *a, size_t k)
{
    return a->scale > 0 ? a->scale : usual_scale[k];
}

static json_t *size_json(size_t rows, size_t cols)
{
    return json_pack("[I, I]", (json_int_t)rows, (json_int_t)cols);
}

/* ---- 1: Figure 2a -------------------------------------------------------- */

#define TRIALS 20

static json_t *matvec_json(const matvec_result *r)
{
    json_t *list = json_array();

    for (size_t i = 0; i < MATVEC_SIZES; i++)
        json_array_append_new(list, json_pack("{s:I, s:f, s:f, s:f}", "workers",
                                              (json_int_t)r->row[i].n, "share",
                                              r->row[i].share, "work_seconds",
                                              r->row[i].work, "seconds",
                                              r->row[i].whole));
    return json_pack("{s:i, s:o, s:I, s:o, s:f, s:f, s:f, s:o, s:f, s:f}",
                     "scenario", 1, "size", size_json(r->rows, r->cols),
                     "trials", (json_int_t)r->trials, "sizes", list, "c0",
                     r->c0, "c1", r->c1, "count_ratio", r->count_ratio,
                     "work_ratio", papers_band_json(r->work_ratio, 1.7, 2.5),
                     "ratio", r->whole_ratio, "rel_error", r->worst);
}

static void matvec_text(const matvec_result *r)
{
    printf("1: y = X w, any 3 workers are enough, X %zu x %zu; median of %zu "
           "(Fig. 2a)\n%-8s %12s %12s %12s\n",
           r->rows, r->cols, r->trials, "workers", "share of X", "work",
           "whole round");
    for (size_t i = 0; i < MATVEC_SIZES; i++) {
        printf("%-8zu %12.4f %9.3f ms %9.3f ms  ", r->row[i].n, r->row[i].share,
               r->row[i].work * 1e3, r->row[i].whole * 1e3);
        for (int k = 0; k < 20; k++)
            papers_bar(20 * r->row[i].whole / r->row[MATVEC_SIZES - 1].whole -
                       k);
        putchar('\n');
    }
    printf("3 workers by 6: share %.2f, work %.2f %s, whole %.2f; whole = "
           "%.3f + %.3f/n ms\nanswers off by %.1e\n",
           r->count_ratio, r->work_ratio,
           papers_mark(papers_within(r->work_ratio, 1.7, 2.5)), r->whole_ratio,
           r->c0 * 1e3, r->c1 * 1e3, r->worst);
}

static kofn_status matvec(const papers_args *a, json_t *list)
{
    matvec_result r;
    kofn_status st = elastic_matvec(scale_of(a, 1), TRIALS, a->seed, &r);

    if (!st && list)
        json_array_append_new(list, matvec_json(&r));
    else if (!st)
        matvec_text(&r);
    return st;
}

/* ---- 2: Figure 2b -------------------------------------------------------- */

/* At the decimal that the bands are given with. */
static bool bar_ok(double ratio, size_t i)
{
    return papers_within(round(ratio * 10) / 10, bars_band[i][0],
                         bars_band[i][1]);
}

static json_t *bars_json(const bars_result *r)
{
    json_t *list = json_array();

    for (size_t i = 0; i < BARS; i++)
        json_array_append_new(
            list,
            json_pack("{s:s, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:[f, f], "
                      "s:b, s:b}",
                      "name", r->bar[i].name, "live",
                      (json_int_t)r->bar[i].live, "share", r->bar[i].share,
                      "work_seconds", r->bar[i].work, "code_seconds",
                      r->bar[i].code, "seconds", r->bar[i].whole, "count_ratio",
                      r->count_ratio[i], "work_ratio", r->work_ratio[i], "band",
                      bars_band[i][0], bars_band[i][1], "count_ok",
                      bar_ok(r->count_ratio[i], i), "work_ok",
                      bar_ok(r->work_ratio[i], i)));
    return json_pack("{s:i, s:o, s:I, s:o, s:f}", "scenario", 2, "size",
                     size_json(r->rows, r->cols), "trials",
                     (json_int_t)r->trials, "bars", list, "rel_error",
                     r->worst);
}

static void bars_text(const bars_result *r)
{
    printf("2: a gradient of regression, X %zu x %zu, median of %zu; ratios by "
           "uncoded\n   (Fig. 2b)\n%-16s %6s %-7s %8s %8s %8s %14s\n",
           r->rows, r->cols, r->trials, "", "share", "ratio", "work", "code",
           "whole", "ratio of work");
    for (size_t i = 0; i < BARS; i++)
        printf("%-16s %6.4f %4.2f %-3s%5.3f ms %5.3f ms %5.3f ms  %4.2f in "
               "%.1f..%.1f %s\n",
               r->bar[i].name, r->bar[i].share, r->count_ratio[i],
               papers_mark(bar_ok(r->count_ratio[i], i)), r->bar[i].work * 1e3,
               r->bar[i].code * 1e3, r->bar[i].whole * 1e3, r->work_ratio[i],
               bars_band[i][0], bars_band[i][1],
               papers_mark(bar_ok(r->work_ratio[i], i)));
    printf("gradients off by %.1e\n", r->worst);
}

static kofn_status bars(const papers_args *a, json_t *list)
{
    bars_result r;
    kofn_status st = elastic_bars(scale_of(a, 2), TRIALS, a->seed, &r);

    if (!st && list)
        json_array_append_new(list, bars_json(&r));
    else if (!st)
        bars_text(&r);
    return st;
}

/* ---- 3: Figure 2c -------------------------------------------------------- */

static json_t *curves_json(const descent_result *r, size_t k)
{
    json_t *list = json_array();

    for (size_t i = 0; i < DESCENT_REALISATIONS; i++)
        json_array_append_new(list,
                              papers_reals(r->mse[k][i], DESCENT_ITERATIONS));
    return json_pack("{s:o, s:o}", "mean",
                     papers_reals(r->mean[k], DESCENT_ITERATIONS),
                     "realisations", list);
}

static json_t *counts_json(const size_t *x)
{
    json_t *list = json_array();

    for (size_t i = 0; i < DESCENT_REALISATIONS; i++)
        json_array_append_new(list, json_integer((json_int_t)x[i]));
    return list;
}

static json_t *descent_json(const descent_result *r)
{
    json_t *curves = json_object();

    for (size_t k = 0; k < DESCENT_KINDS; k++)
        json_object_set_new(curves, descent_names[k], curves_json(r, k));
    return json_pack("{s:i, s:o, s:f, s:o, s:o, s:o, s:o, s:o, s:f, s:f, "
                     "s:{s:b, s:b, s:b}}",
                     "scenario", 3, "size", size_json(r->rows, r->cols),
                     "start", r->start, "test_mse", curves, "left",
                     counts_json(r->left), "joined", counts_json(r->joined),
                     "paused", counts_json(r->paused), "distr_bgd_ahead",
                     counts_json(r->ahead), "coded_by_noiseless", r->overlap,
                     "rel_error", r->worst, "orderings", "coded_overlaps",
                     r->coded_overlaps, "ignoring_worst", r->ignoring_worst,
                     "distr_bgd_differs", r->taylor_differs);
}

static void curve_text(const descent_result *r, size_t k, double low,
                       double high)
{
    const size_t end = DESCENT_ITERATIONS - 1;
    double best = HUGE_VAL, worst = 0;

    printf("%-12s", descent_names[k]);
    for (size_t it = 9; it <= end; it += 25)
        printf(" %6.3f", r->mean[k][it]);
    for (size_t i = 0; i < DESCENT_REALISATIONS; i++) {
        best = fmin(best, r->mse[k][i][end]);
        worst = fmax(worst, r->mse[k][i][end]);
    }
    printf("  %5.3f..%5.3f  ", best, worst);
    for (size_t it = 1; it < DESCENT_ITERATIONS; it += 2)
        papers_bar((r->mean[k][it] - low) / (high - low) + 0.01);
    putchar('\n');
}

static void descent_text(const descent_result *r)
{
    double low = HUGE_VAL, high = 0;

    for (size_t k = 0; k < DESCENT_KINDS; k++)
        for (size_t it = 0; it < DESCENT_ITERATIONS; it++) {
            low = fmin(low, r->mean[k][it]);
            if (it > 4)
                high = fmax(high, r->mean[k][it]);
        }
    printf(
        "3: regression on 20 machines that fail, X %zu x %zu: test error "
        "after 10, 35,\n   60 iterations, mean of %d realisations, and their "
        "range in the end (Fig. 2c)\n",
        r->rows, r->cols, DESCENT_REALISATIONS);
    for (size_t k = 0; k < DESCENT_KINDS; k++)
        curve_text(r, k, low, high);
    printf("coded overlaps noiseless %s (%+.2f %%); ignoring is worst, "
           "forgetting most %s\ndistr-bgd differs %s: ahead of noiseless in",
           papers_mark(r->coded_overlaps), 100 * r->overlap,
           papers_mark(r->ignoring_worst), papers_mark(r->taylor_differs));
    for (size_t i = 0; i < DESCENT_REALISATIONS; i++)
        printf(" %zu", r->ahead[i]);
    printf(" of the last 50\ncoded waited for a tenth machine in");
    for (size_t i = 0; i < DESCENT_REALISATIONS; i++)
        printf(" %zu", r->paused[i]);
    printf(" iterations; products off %.1e\n", r->worst);
}

static kofn_status descent(const papers_args *a, json_t *list)
{
    descent_result *r = malloc(sizeof *r);
    kofn_status st = KOFN_NOMEM;

    if (r)
        st = elastic_descent(scale_of(a, 3), a->seed, r);
    if (!st && list)
        json_array_append_new(list, descent_json(r));
    else if (!st)
        descent_text(r);
    free(r);
    return st;
}

/* ---- all ----------------------------------------------------------------- */

static int run_one(const papers_args *a, size_t k, json_t *list)
{
    static kofn_status (*const run[])(const papers_args *,
                                      json_t *) = {matvec, bars, descent};
    kofn_status st = run[k - 1](a, list);

    return st ? papers_ended(st) : 0;
}

int papers_elastic(const papers_args *a)
{
    return papers_scenarios(a, 3, 0, run_one);
}
