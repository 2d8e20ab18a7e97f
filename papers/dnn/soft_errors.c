/* soft_errors.c -- trainings with soft errors, on coded weights and uncoded.
 * Any operation of a node goes wrong with some chance. The code is that of "A
 * unified coded deep neural network training strategy based on generalized
 * PolyDot codes" (Dutta, Bai, Jeong, Low, Grover, 2018), which has no such
 * figure; math/training.md 7. */
#include "dnn/dnn.h"

#define RATES 3
#define SEEDS 5
#define BAND 0.003

/* Results of all seeds for one chance. */
typedef struct tally {
    double q;
    json_t *runs; /* for each way, a list by seed */
    bool same;    /* coded equals error-free, within BAND and 1e-8 */
    bool lost;    /* uncoded predicts less than half correctly */
    bool fewest;  /* coded has no more rollbacks than the others */
} tally;

/* Trains once in each of the four ways. */
static kofn_status err(const papers_args *a, const dnn_lesson *l,
                       const kofn_score *clean, tally *r)
{
    dnn_run run[DNN_WAYS];

    for (size_t w = 0; w < DNN_WAYS; w++) {
        PAPERS_TRY(dnn_err_once(a, l, w, r->q, &run[w]));
        json_array_append_new(json_object_get(r->runs, dnn_names[w]),
                              dnn_run_json(&run[w], false));
    }
    r->same &= run[1].did.finished &&
               fabs(run[1].accuracy - clean->accuracy) <= BAND &&
               run[1].apart < 1e-8;
    r->lost &= run[0].accuracy < 0.5;
    r->fewest &= run[1].did.rollbacks <= run[2].did.rollbacks &&
                 run[1].did.rollbacks <= run[3].did.rollbacks;
    return KOFN_OK;
}

static kofn_status train(const papers_args *a, const images *points,
                         unsigned epochs, uint64_t seed, json_t *clean,
                         tally rates[RATES])
{
    size_t widths[] = {points->X.cols, 32, 32, points->classes};
    kofn_score score = {0};
    dnn_lesson l = {
        .shape = {.size = sizeof l.shape, .layers = 3, .widths = widths},
        .opt = {.step = 2, .epochs = epochs},
        .seed = seed};
    kofn_status st = dnn_learn_plainly(&l, points, &score);

    json_array_append_new(clean, json_real(score.accuracy));
    for (size_t q = 0; q < RATES && !st; q++)
        st = err(a, &l, &score, &rates[q]);
    kofn_net_free(l.plain);
    return st;
}

static void add(const images *p, unsigned epochs, json_t *clean,
                const tally rates[RATES], json_t *list)
{
    json_t *each = json_array();

    for (const tally *r = rates; r < rates + RATES; r++)
        papers_add(each,
                   "q:f runs:o coded_as_clean:b uncoded_lost:b "
                   "fewest_rollbacks:b",
                   r->q, json_incref(r->runs), r->same, r->lost, r->fewest);
    papers_add(list,
               "scenario:i points:z held_out:z pixels:z classes:z steps:z "
               "clean:o rates:o",
               2, p->X.rows, p->test_X.rows, p->X.cols, p->classes,
               epochs * ceil_div(p->X.rows, DNN_BATCH), json_incref(clean),
               each);
}

static kofn_status run(const papers_args *a, size_t k, json_t *list)
{
    tally rates[RATES] = {{0.001, NULL, true, true, true},
                          {DNN_RATE, NULL, true, true, true},
                          {0.02, NULL, true, true, true}};
    size_t seeds = papers_runs(a, SEEDS);
    json_t *clean = json_array();
    unsigned epochs;
    images p;
    kofn_status st = dnn_points(a, &p, &epochs);

    (void)k;
    for (size_t q = 0; q < RATES; q++) {
        rates[q].runs = json_object();
        for (size_t w = 0; w < DNN_WAYS; w++)
            json_object_set_new(rates[q].runs, dnn_names[w], json_array());
    }
    for (size_t s = 0; s < seeds && !st; s++)
        st = train(a, &p, epochs, a->seed + s, clean, rates);
    if (!st)
        add(&p, epochs, clean, rates, list);
    for (size_t q = 0; q < RATES; q++)
        json_decref(rates[q].runs);
    json_decref(clean);
    images_free(&p);
    return st;
}

/* ---- output ---------------------------------------------------------------
 */

/* Returns the mean share of correct labels, in %, over finished runs; infinite
 * if none finished. */
static double mean_right(json_t *runs)
{
    double sum = 0;
    size_t ended = 0, i;
    json_t *r;

    for (i = 0; (r = json_array_get(runs, i)); i++)
        if (isfinite(papers_real(r, "accuracy"))) {
            sum += 100 * papers_real(r, "accuracy");
            ended++;
        }
    return ended ? sum / (double)ended : HUGE_VAL;
}

/* Prints a number, or a dash if it is missing. */
static void print_or_dash(const char *format, double x)
{
    char text[32] = "-";

    if (isfinite(x))
        snprintf(text, sizeof text, format, x);
    printf(" %7s", text);
}

static void tell_way(double rate, const char *name, json_t *runs)
{
    size_t done = 0, faults = 0, corrected = 0, back[2] = {SIZE_MAX, 0}, i;
    size_t seeds = json_array_size(runs);
    const char *mesh = "";
    double apart = -1;
    json_t *r;

    for (i = 0; (r = json_array_get(runs, i)); i++) {
        size_t rollbacks = (size_t)papers_real(r, "rollbacks");

        if (isfinite(papers_real(r, "apart")))
            apart = fmax(apart, papers_real(r, "apart"));
        done += papers_true(r, "finished");
        mesh = json_string_value(papers_at(r, "mesh"));
        faults += (size_t)papers_real(r, "faults");
        corrected += (size_t)papers_real(r, "corrected");
        back[0] = smaller(back[0], rollbacks);
        back[1] = larger(back[1], rollbacks);
    }
    printf("%-6g%-12s%-10s", rate, name, mesh);
    print_or_dash("%.1f", mean_right(runs));
    printf(" %3zu/%zu %4zu to %-4zu %6zu %9zu", done, seeds, back[0], back[1],
           faults / seeds, corrected / seeds);
    print_or_dash("%.1e", apart < 0 ? HUGE_VAL : apart);
    putchar('\n');
}

static void tell(json_t *o)
{
    json_t *clean = papers_at(o, "clean"), *rate, *runs, *x;
    double sum = 0;
    const char *name;

    for (size_t i = 0; (x = json_array_get(clean, i)); i++)
        sum += 100 * json_number_value(x) / (double)json_array_size(clean);
    papers_print(o, "{pixels}-32-32-{classes}, {points} points, {held_out} "
                    "held out, {steps} steps, ");
    printf(
        "%zu seeds:\nwithout errors %.1f %% right; every row is measured, on "
        "the mesh that it names\n%-6s%-12s%-10s %7s %5s %12s %6s %9s %7s\n",
        json_array_size(clean), sum, "q", "way", "mesh", "right", "done",
        "rollbacks", "errors", "corrected", "apart");
    for (size_t i = 0; (rate = json_array_get(papers_at(o, "rates"), i)); i++) {
        json_object_foreach(papers_at(rate, "runs"), name, runs)
            tell_way(papers_real(rate, "q"), name, runs);
        papers_print(rate, "  coded as without errors (0.3 %, 1e-8) "
                           "{coded_as_clean}, uncoded below 50 % "
                           "{uncoded_lost},\n  coded goes back least "
                           "{fewest_rollbacks}\n");
    }
}

static void draw(json_t *o, plot *p)
{
    json_t *rate, *rates = papers_at(o, "rates");

    plot_titles(p, "chance that an operation goes wrong",
                "correct labels, %, mean of finished runs",
                "Trainings on faulty nodes: accuracy on held-out points");
    for (size_t i = 0; (rate = json_array_get(rates, i)); i++)
        plot_group(p, "%g", papers_real(rate, "q"));
    for (size_t w = 0; w < DNN_WAYS; w++) {
        plot_curve(p, PLOT_BAR, w, "%s", dnn_names[w]);
        for (size_t i = 0; (rate = json_array_get(rates, i)); i++)
            plot_point(p, (double)i,
                       mean_right(json_object_get(papers_at(rate, "runs"),
                                                  dnn_names[w])));
    }
}

const papers_scenario dnn_soft_errors = {run, tell, draw};
