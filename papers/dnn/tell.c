/* tell.c -- what dnn.c finds, as JSON, tables and pictures. */
#include "dnn/dnn.h"
#include "show.h"

#define TRIALS 8
#define CURVES 3

static const char *const curves[CURVES] = {"gpd", "replication", "two MDS"};

/* ---- limits ---------------------------------------------------------------- */

/* Corollary 1: of P and of its root. */
static const double limit[2] = {0.25, 1}, band[2] = {0.01, 0.05};

static void add_table(const dnn_table *t, json_t *list)
{
    json_t *codes = json_object();

    for (size_t k = 0; k < DNN_KINDS; k++) {
        const dnn_tolerance *p = &t->published[k];
        const dnn_tried *g = &t->got[k];

        json_object_set_new(
            codes, dnn_kinds[k],
            papers_pack("tried:{adversarial:p probabilistic:p declared:b} "
                        "published:{adversarial:p probabilistic:p answers:p} "
                        "ok:b",
                        g->adversarial, g->probabilistic, g->declared,
                        p->adversarial, p->probabilistic, p->K, t->ok[k]));
    }
    papers_add(list, "table:s nodes:z grid:p batch_cut:p codes:o",
               t->cut[0] * t->cut[1] > 1 ? "III" : "I", t->P,
               (size_t[]){t->m, t->n}, t->cut, codes);
}

static kofn_status run_limits(const papers_args *a, size_t k, json_t *list)
{
    dnn_table table[DNN_TABLES];
    dnn_growth growth[DNN_GROWTH], *last = &growth[DNN_GROWTH - 1];
    dnn_figure figure[DNN_POINTS];
    json_t *tables, *grown, *fig_8;

    PAPERS_TRY(dnn_limits(papers_runs(a, TRIALS), a->seed, table));
    PAPERS_TRY(dnn_corollary(growth));
    PAPERS_TRY(dnn_figure8(3, 3, figure));
    tables = json_array();
    grown = json_array();
    fig_8 = json_object();
    for (size_t i = 0; i < DNN_TABLES; i++)
        add_table(&table[i], tables);
    for (size_t i = 0; i < DNN_GROWTH; i++)
        papers_add(grown, "nodes:z by_replication:f by_two_mds:f", growth[i].P,
                   growth[i].by_replication, growth[i].by_two_mds);
    for (size_t c = 0; c < CURVES; c++) {
        json_t *points = json_array();

        for (size_t i = 0; i < DNN_POINTS; i++)
            json_array_append_new(
                points,
                papers_sizes((size_t[]){figure[i].P, figure[i].adversarial[c],
                                        figure[i].probabilistic[c]},
                             3));
        json_object_set_new(fig_8, curves[c], points);
    }
    papers_add(list,
               "scenario:z tables:o corollary_1:o corollary_1_ok:b fig_8:o", k,
               tables, grown,
               fabs(last->by_replication - limit[0]) <= band[0] &&
                   fabs(last->by_two_mds - limit[1]) <= band[1],
               fig_8);
    return KOFN_OK;
}

static void tell_tables(json_t *o)
{
    json_t *t, *code;
    const char *name;
    size_t i;

    printf("Tables I and III: nodes that may be wrong, by trying; forward and "
           "back;\npublished in brackets\nnodes, grid, batch in    code       "
           "               lie             fail\n");
    for (i = 0; (t = json_array_get(papers_at(o, "tables"), i)); i++) {
        char about[40];

        snprintf(about, sizeof about, "%.0f, %.0fx%.0f, %.0f and %.0f",
                 papers_real(t, "nodes"), papers_real(t, "grid.0"),
                 papers_real(t, "grid.1"), papers_real(t, "batch_cut.0"),
                 papers_real(t, "batch_cut.1"));
        json_object_foreach(papers_at(t, "codes"), name, code)
        {
            printf("%-24s %-12s ", about, name);
            *about = 0;
            papers_print(
                code,
                "{tried.adversarial.0:4} {tried.adversarial.1:2} "
                "({published.adversarial.0:2} {published.adversarial.1:2})  "
                "{tried.probabilistic.0:4} {tried.probabilistic.1:2} "
                "({published.probabilistic.0:2} {published.probabilistic.1:2}) "
                "{ok}\n");
        }
    }
}

static void tell_limits(json_t *o)
{
    json_t *points;
    const char *name;

    tell_tables(o);
    printf("\nCorollary 1: those of GPD by those of others, m = n = "
           "sqrt(P/4)\n       P  replication / P     two MDS / sqrt P\n");
    papers_each(papers_at(o, "corollary_1"),
                "{nodes:8} {by_replication:16.4f} {by_two_mds:20.4f}\n");
    printf("published: %g +- %g and %g +- %g ", limit[0], band[0], limit[1],
           band[1]);
    papers_print(o, "{corollary_1_ok}\n\nnodes that may lie, or fail, of a "
                    "grid of 3x3 (Fig. 8)\nnodes       ");
    papers_each(papers_at(o, "fig_8.gpd"), " {0:5}");
    json_object_foreach(papers_at(o, "fig_8"), name, points)
    {
        printf("\n%-12s", name);
        papers_each(points, " {1:2} {2:2}");
    }
    putchar('\n');
}

static void draw_limits(json_t *o, plot *p)
{
    plot_titles(
        p, "nodes", "nodes that may be wrong, forward product",
        "Generalized PolyDot codes, Fig. 8: what a grid of 3 x 3 stands");
    for (size_t i = 0; i < 2 * CURVES; i++) {
        json_t *points = json_object_get(papers_at(o, "fig_8"), curves[i / 2]);

        plot_curve(p, i % 2 ? PLOT_DASHED : PLOT_LINE, i / 2, "%s, %s",
                   curves[i / 2], i % 2 ? "fail" : "lie");
        papers_curve(p, points, "0", i % 2 ? "2" : "1");
    }
}

/* ---- trainings --------------------------------------------------------------- */

static json_t *run_json(const dnn_run *r, bool loss)
{
    json_t *o = loss ? json_object() : papers_pack("accuracy:f", r->accuracy);

    json_object_update_new(
        o, papers_pack("apart:f steps:i rollbacks:z faults:z corrected:z "
                       "outvoted:z finished:b",
                       r->apart, r->did.steps, r->did.rollbacks, r->did.faults,
                       r->did.corrected, r->did.outvoted, r->did.finished));
    if (loss)
        json_object_update_new(o, papers_pack("loss:f", r->loss));
    return o;
}

static void add_soft(const dnn_soft *s, json_t *list)
{
    json_t *rates = json_array();

    for (size_t q = 0; q < DNN_RATES; q++) {
        json_t *runs = json_object();

        for (size_t w = 0; w < DNN_WAYS; w++) {
            json_t *each = json_array();

            for (size_t k = 0; k < s->seeds; k++)
                json_array_append_new(each, run_json(&s->run[q][k][w], false));
            json_object_set_new(runs, dnn_names[w], each);
        }
        papers_add(rates,
                   "q:f runs:o coded_as_clean:b uncoded_lost:b "
                   "fewest_rollbacks:b",
                   dnn_rates[q], runs, s->same[q], s->lost[q], s->fewest[q]);
    }
    papers_add(list, "scenario:i points:z pixels:z steps:z clean:o rates:o", 2,
               s->points, s->pixels, (size_t)s->steps,
               papers_reals(s->clean, s->seeds), rates);
}

static void add_hidden(const dnn_hidden *h, json_t *list)
{
    json_t *runs = json_object();

    for (size_t w = 0; w < DNN_WAYS; w++)
        json_object_set_new(runs, dnn_names[w], run_json(&h->run[w], true));
    papers_add(list, "scenario:i widths:p q:f clean_loss:f runs:o ok:b", 3,
               h->widths, dnn_rates[1], h->clean, runs, h->ok);
}

/* With MNIST's points as many steps as of fewer, and more. */
static kofn_status run_training(const papers_args *a, size_t k, json_t *list)
{
    unsigned epochs = (unsigned)papers_runs(a, DNN_EPOCHS);
    images p = {.X = {.data = NULL}};
    dnn_soft s;
    dnn_hidden h;
    kofn_status st =
        a->mnist ? papers_mnist(a, &p) : dnn_points_make(&p, a->seed);

    if (a->mnist && epochs > 2)
        epochs = epochs / 5;
    if (!st)
        st = k == 2 ? dnn_soft_errors(&p, epochs, papers_runs(a, DNN_SEEDS),
                                      a->seed, &s)
                    : dnn_autoencoder(&p, epochs, a->seed, &h);
    images_free(&p);
    if (!st && k == 2)
        add_soft(&s, list);
    else if (!st)
        add_hidden(&h, list);
    return st;
}

/* Right, in %, the mean of those that have ended; infinite: none has. */
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

/* Of numbers that there may not be. */
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
    double apart = -1;
    json_t *r;

    for (i = 0; (r = json_array_get(runs, i)); i++) {
        size_t rollbacks = (size_t)papers_real(r, "rollbacks");

        if (isfinite(papers_real(r, "apart")))
            apart = fmax(apart, papers_real(r, "apart"));
        done += papers_true(r, "finished");
        faults += (size_t)papers_real(r, "faults");
        corrected += (size_t)papers_real(r, "corrected");
        back[0] = smaller(back[0], rollbacks);
        back[1] = larger(back[1], rollbacks);
    }
    printf("%-6g %-12s", rate, name);
    print_or_dash("%.1f", mean_right(runs));
    printf(" %4zu/%zu %5zu to %-5zu %8zu %9zu ", done, seeds, back[0], back[1],
           faults / seeds, corrected / seeds);
    print_or_dash("%.1e", apart < 0 ? HUGE_VAL : apart);
    putchar('\n');
}

static void tell_soft(json_t *o)
{
    json_t *clean = papers_at(o, "clean"), *rate, *runs, *x;
    double sum = 0;
    const char *name;
    size_t i;

    for (i = 0; (x = json_array_get(clean, i)); i++)
        sum += 100 * json_number_value(x) / (double)json_array_size(clean);
    papers_print(o, "{pixels}-32-32-10, {points} points, {steps} steps, ");
    printf("%zu seeds: without errors %.1f %% right\n"
           "%-6s %-12s %7s %6s %14s %8s %9s %8s\n",
           json_array_size(clean), sum, "q", "way", "right", "done",
           "rollbacks", "errors", "corrected", "apart");
    for (i = 0; (rate = json_array_get(papers_at(o, "rates"), i)); i++) {
        json_object_foreach(papers_at(rate, "runs"), name, runs)
            tell_way(papers_real(rate, "q"), name, runs);
        papers_print(rate, "  coded as without errors (0.3 %, 1e-8) "
                           "{coded_as_clean}, uncoded below 50 % "
                           "{uncoded_lost},\n  coded goes back least "
                           "{fewest_rollbacks}\n");
    }
}

static void draw_soft(json_t *o, plot *p)
{
    json_t *rate, *rates = papers_at(o, "rates");

    plot_titles(p, "chance that an operation goes wrong",
                "right, %, mean of those that ended",
                "Trainings whose nodes err: held-out points told right");
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

static void tell_hidden(json_t *o)
{
    papers_print(o, "sparse autoencoder {widths.0}-{widths.1}-{widths.0}, q = "
                    "{q}: without errors a loss of {clean_loss:.4f}\n");
    printf("way                loss  rollbacks  corrected      apart\n");
    papers_each(papers_at(o, "runs"), "{@:-12} {loss:10.4g} {rollbacks:10} "
                                      "{corrected:10} {apart:10.1e}\n");
    papers_print(o, "coded weights within 1e-8 of those without errors {ok}\n");
}

/* ---- all ---------------------------------------------------------------------- */

int papers_dnn(const papers_args *a)
{
    static const papers_scenario what[] = {
        {0},
        {run_limits, tell_limits, draw_limits},
        {run_training, tell_soft, draw_soft},
        {run_training, tell_hidden, NULL}};

    return papers_scenarios(a, 0, what);
}
