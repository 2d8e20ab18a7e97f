/* tell.c -- what elastic.c and descent.c find, as JSON, tables and a picture. */
#include "elastic/elastic.h"
#include "show.h"

#include <stdlib.h>
#include <string.h>

/* A few seconds each, and large enough to be timed. */
static const double usual_scale[] = {0, 0.2, 0.6, 0.06};

static double scale_of(const papers_args *a, size_t k)
{
    return a->scale > 0 ? a->scale : usual_scale[k];
}

/* ---- 1: Figure 2a -------------------------------------------------------- */

#define TRIALS 20

static kofn_status run_matvec(const papers_args *a, size_t k, json_t *list)
{
    matvec_result r;
    json_t *sizes;

    PAPERS_TRY(elastic_matvec(scale_of(a, k), TRIALS, a->seed, &r));
    sizes = json_array();
    for (size_t i = 0; i < MATVEC_SIZES; i++)
        papers_add(sizes, "workers:z share:f work_seconds:f seconds:f",
                   r.row[i].n, r.row[i].share, r.row[i].work, r.row[i].whole);
    papers_add(list,
               "scenario:z size:p trials:z sizes:o c0:f c1:f count_ratio:f "
               "work_ratio:o ratio:f rel_error:f",
               k, (size_t[]){r.rows, r.cols}, r.trials, sizes, r.c0, r.c1,
               r.count_ratio, papers_band_json(r.work_ratio, 1.7, 2.5),
               r.whole_ratio, r.worst);
    return KOFN_OK;
}

static void tell_matvec(json_t *o)
{
    json_t *row;
    size_t i;

    papers_print(o, "1: y = X w, any 3 workers are enough, X {size.0} x "
                    "{size.1}; median of {trials} (Fig. 2a)\n"
                    "workers    share of X         work  whole round\n");
    for (i = 0; (row = json_array_get(papers_at(o, "sizes"), i)); i++) {
        papers_print(row, "{workers:-8} {share:12.4f} {work_seconds*1e3:9.3f} "
                          "ms {seconds*1e3:9.3f} ms  ");
        papers_bars(20 * papers_real(row, "seconds") /
                        papers_real(o, "sizes.3.seconds"),
                    20);
        putchar('\n');
    }
    papers_print(o, "3 workers by 6: share {count_ratio:.2f}, work "
                    "{work_ratio.value:.2f} {work_ratio.ok}, whole "
                    "{ratio:.2f}; whole = {c0*1e3:.3f} + {c1*1e3:.3f}/n ms\n"
                    "answers off by {rel_error:.1e}\n");
}

/* ---- 2: Figure 2b -------------------------------------------------------- */

/* At the decimal that the bands are given with. */
static bool bar_ok(double ratio, size_t i)
{
    return papers_within(round(ratio * 10) / 10, bars_band[i][0],
                         bars_band[i][1]);
}

static kofn_status run_bars(const papers_args *a, size_t k, json_t *list)
{
    bars_result r;
    json_t *bars;

    PAPERS_TRY(elastic_bars(scale_of(a, k), TRIALS, a->seed, &r));
    bars = json_array();
    for (size_t i = 0; i < BARS; i++) {
        const struct bar *b = &r.bar[i];

        papers_add(bars,
                   "name:s live:z share:f work_seconds:f code_seconds:f "
                   "seconds:f count_ratio:f work_ratio:f band:o count_ok:b "
                   "work_ok:b",
                   b->name, b->live, b->share, b->work, b->code, b->whole,
                   r.count_ratio[i], r.work_ratio[i],
                   papers_reals(bars_band[i], 2), bar_ok(r.count_ratio[i], i),
                   bar_ok(r.work_ratio[i], i));
    }
    papers_add(list, "scenario:z size:p trials:z bars:o rel_error:f", k,
               (size_t[]){r.rows, r.cols}, r.trials, bars, r.worst);
    return KOFN_OK;
}

static void tell_bars(json_t *o)
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

/* ---- 3: Figure 2c -------------------------------------------------------- */

static kofn_status run_descent(const papers_args *a, size_t k, json_t *list)
{
    descent_result *r = malloc(sizeof *r);
    kofn_status st =
        r ? elastic_descent(scale_of(a, k), a->seed, r) : KOFN_NOMEM;
    json_t *curves = json_object();

    for (size_t c = 0; c < DESCENT_KINDS && !st; c++) {
        json_t *each = json_array();

        for (size_t i = 0; i < DESCENT_REALISATIONS; i++)
            json_array_append_new(
                each, papers_reals(r->mse[c][i], DESCENT_ITERATIONS));
        json_object_set_new(
            curves, descent_names[c],
            papers_pack("mean:o realisations:o",
                        papers_reals(r->mean[c], DESCENT_ITERATIONS), each));
    }
    if (!st)
        papers_add(
            list,
            "scenario:z size:p start:f test_mse:o left:o joined:o "
            "paused:o distr_bgd_ahead:o coded_by_noiseless:f "
            "rel_error:f orderings:{coded_overlaps:b ignoring_worst:b "
            "distr_bgd_differs:b}",
            k, (size_t[]){r->rows, r->cols}, r->start, json_incref(curves),
            papers_sizes(r->left, DESCENT_REALISATIONS),
            papers_sizes(r->joined, DESCENT_REALISATIONS),
            papers_sizes(r->paused, DESCENT_REALISATIONS),
            papers_sizes(r->ahead, DESCENT_REALISATIONS), r->overlap, r->worst,
            r->coded_overlaps, r->ignoring_worst, r->taylor_differs);
    json_decref(curves);
    free(r);
    return st;
}

static double entry(json_t *list, size_t i)
{
    return json_number_value(json_array_get(list, i));
}

static void tell_curve(const char *name, json_t *curve, double low, double high)
{
    const size_t end = DESCENT_ITERATIONS - 1;
    json_t *mean = papers_at(curve, "mean"), *one;
    double best = HUGE_VAL, worst = 0;
    size_t i;

    printf("%-12s", name);
    for (size_t it = 9; it <= end; it += 25)
        printf(" %6.3f", entry(mean, it));
    for (i = 0; (one = json_array_get(papers_at(curve, "realisations"), i));
         i++) {
        best = fmin(best, entry(one, end));
        worst = fmax(worst, entry(one, end));
    }
    printf("  %5.3f..%5.3f  ", best, worst);
    for (size_t it = 1; it < DESCENT_ITERATIONS; it += 2)
        papers_bar((entry(mean, it) - low) / (high - low) + 0.01);
    putchar('\n');
}

static void tell_descent(json_t *o)
{
    json_t *curves = papers_at(o, "test_mse"), *curve, *x;
    double low = HUGE_VAL, high = 0;
    const char *name;
    size_t i;

    json_object_foreach(
        curves, name,
        curve) for (i = 0; (x = json_array_get(papers_at(curve, "mean"), i));
                    i++)
    {
        low = fmin(low, json_number_value(x));
        if (i > 4)
            high = fmax(high, json_number_value(x));
    }
    papers_print(o, "3: regression on 20 machines that fail, X {size.0} x "
                    "{size.1}: test error after 10, 35,\n   60 iterations, ");
    printf("mean of %d realisations, and their range in the end (Fig. 2c)\n",
           DESCENT_REALISATIONS);
    json_object_foreach(curves, name, curve) tell_curve(name, curve, low, high);
    papers_print(
        o, "coded overlaps noiseless {orderings.coded_overlaps} "
           "({coded_by_noiseless*100:+.2f} %); ignoring is worst, forgetting "
           "most {orderings.ignoring_worst}\ndistr-bgd differs "
           "{orderings.distr_bgd_differs}: ahead of noiseless in");
    papers_each(papers_at(o, "distr_bgd_ahead"), " {.}");
    printf(" of the last 50\ncoded waited for a tenth machine in");
    papers_each(papers_at(o, "paused"), " {.}");
    papers_print(o, " iterations; products off {rel_error:.1e}\n");
}

static void draw_descent(json_t *o, plot *p)
{
    json_t *curve;
    const char *name;
    size_t colour = 0;

    plot_titles(p, "iteration", "test error, mean of five realisations",
                "Coded elastic computing, Fig. 2c: regression on machines that "
                "fail");
    json_object_foreach(papers_at(o, "test_mse"), name, curve)
    {
        plot_curve(p, strcmp(name, "coded") == 0 ? PLOT_DASHED : PLOT_LINE,
                   colour++, "%s", name);
        for (size_t i = 0; i < DESCENT_ITERATIONS; i++)
            plot_point(p, (double)(i + 1), entry(papers_at(curve, "mean"), i));
    }
}

/* ---- all ----------------------------------------------------------------- */

int papers_elastic(const papers_args *a)
{
    static const papers_scenario what[] = {
        {0},
        {run_matvec, tell_matvec, NULL},
        {run_bars, tell_bars, NULL},
        {run_descent, tell_descent, draw_descent}};

    return papers_scenarios(a, 0, what);
}
