/* tell.c -- what stream.c finds, as JSON, tables and pictures. */
#include "stream/tell.h"
#include "stream/stream.h"

#define ROUNDS 100000 /* of a point of Figure 1 */
#define RUNS 10       /* of a training, averaged */
#define SEEDS 50      /* of each style of pattern */

/* ---- 1 and 2: Figure 1 --------------------------------------------------- */

static void add_curve(const figure1_curve *c, size_t k, json_t *list)
{
    json_t *o =
        papers_pack("scheme:s rhat:f simulated:f ok:b", figure1_names[k],
                    c->model, c->simulated, c->within);

    json_object_update_new(
        o, c->scheme.kind == RHAT_IDIP
               ? papers_pack("N:z bound_corrected:f exact:f", c->scheme.N,
                             c->corrected, c->exact)
               : papers_pack("threshold:z", c->scheme.threshold));
    if (c->scheme.kind == RHAT_DIP && c->scheme.T < SIZE_MAX)
        json_object_set_new(o, "lambda",
                            json_integer((json_int_t)c->scheme.lambda));
    json_array_append_new(list, o);
}

static kofn_status run_figure1(const papers_args *a, size_t k, json_t *list)
{
    figure1_result r;
    json_t *points;

    PAPERS_TRY(figure1_run(k, papers_runs(a, ROUNDS), a->seed, &r));
    points = json_array();
    for (size_t i = 0; i < FIGURE1_POINTS; i++) {
        const figure1_point *p = &r.point[i];
        json_t *curves = json_array();

        for (size_t c = 0; c < FIGURE1_CURVES; c++)
            add_curve(&p->curve[c], c, curves);
        papers_add(points, "delta:f curves:o ordered:b", p->delta, curves,
                   p->ordered);
    }
    papers_add(list, "scenario:z workers:z alpha:f delay:z rounds:z points:o",
               k, r.workers, r.alpha, r.T, r.rounds, points);
    return KOFN_OK;
}

static void tell_figure1(json_t *o)
{
    json_t *point, *curve;
    size_t off = 0, i, k;

    papers_print(
        o, "{scenario}: {workers} workers, {alpha} times as long when slow, a "
           "delay of {delay} (Fig. ");
    printf("1%c): time of a\n   round, the least of each scheme, by its "
           "formula or chain, and of ",
           papers_real(o, "scenario") == 1 ? 'a' : 'b');
    papers_print(o, "{rounds} rounds played;\n   idip: the printed bound, and "
                    "what is played; then the corrected bound and the exact "
                    "value\ndelta");
    for (k = 0; k < FIGURE1_CURVES; k++)
        printf("  %-14s", figure1_names[k]);
    printf(" %-6s %-6s order\n", "bound", "exact");
    for (i = 0; (point = json_array_get(papers_at(o, "points"), i)); i++) {
        papers_print(point, "{delta:5.2f}");
        for (k = 0; (curve = json_array_get(papers_at(point, "curves"), k));
             k++) {
            papers_print(curve, "  {rhat:6.4f} {simulated:6.4f}");
            putchar(papers_true(curve, "ok") ? ' ' : '*');
            off += !papers_true(curve, "ok");
        }
        papers_print(point, " {curves.2.bound_corrected:6.4f} "
                            "{curves.2.exact:6.4f} {ordered}\n");
    }
    printf("played within %.0f %% of formula or chain: %s\n",
           100 * FIGURE1_BAND, papers_mark(off == 0));
}

static void draw_figure1(json_t *o, plot *p)
{
    plot_titles(p, "chance that a worker is slow in a round",
                "mean time of a round, the least of each scheme",
                "Streams, Fig. 1: %.0f workers, %g times as long when slow, a "
                "delay of %.0f",
                papers_real(o, "workers"), papers_real(o, "alpha"),
                papers_real(o, "delay"));
    for (size_t c = 0; c < FIGURE1_CURVES; c++) {
        plot_curve(p, PLOT_LINE, c, "%s, %s", figure1_names[c],
                   c == 2 ? "printed bound" : "model");
        papers_curve(p, papers_at(o, "points"), "delta", "curves.%zu.rhat", c);
        plot_curve(p, PLOT_MARKS, c, "%s, played", figure1_names[c]);
        papers_curve(p, papers_at(o, "points"), "delta", "curves.%zu.simulated",
                     c);
    }
}

/* ---- 3: Table 1 ---------------------------------------------------------- */

static kofn_status run_table1(const papers_args *a, size_t k, json_t *list)
{
    table1_result r;
    json_t *rows;

    PAPERS_TRY(table1_run(papers_runs(a, RUNS), a->seed, &r));
    rows = json_array();
    for (size_t i = 0; i < TABLE1_ROWS; i++) {
        const table1_row *w = &r.row[i];

        papers_add(rows, "name:s pattern:s mu:f band:f missed:z", w->title,
                   w->pattern, w->mu, w->band, w->missed);
        for (size_t c = 0; c < 3; c++)
            json_object_set_new(json_array_get(rows, i), table1_names[c + 1],
                                papers_pack("ratio:f expected:f printed:f ok:b",
                                            w->ratio[c], w->expected[c],
                                            w->printed[c], w->within[c]));
    }
    papers_add(list,
               "scenario:z runs:z products:z multiply_adds_an_iteration:f "
               "rows:o",
               k, r.runs, r.products, r.multiply_adds, rows);
    return KOFN_OK;
}

static void tell_table1(json_t *o)
{
    json_t *row;
    size_t i;

    papers_print(
        o, "3: five networks trained side by side, {products} products, {runs} "
           "times: time by that of the\n   polynomial code, of rounds played "
           "by the rules (Table 1); {multiply_adds_an_iteration:.0f} "
           "multiply-adds\n   an iteration of one network; expected: of the "
           "rules; printed: in the paper, whose\n   parameters of Fritchman's "
           "chain are not public\n           mu");
    for (size_t k = 1; k < TABLE1_SCHEMES; k++)
        printf("  %-8s expected    printed", table1_names[k]);
    putchar('\n');
    for (i = 0; (row = json_array_get(papers_at(o, "rows"), i)); i++) {
        papers_print(row, "{name:-7} {mu:5.2f}");
        for (size_t k = 1; k < TABLE1_SCHEMES; k++) {
            json_t *one = papers_at(row, table1_names[k]);

            papers_print(one, "  {ratio:-8.3f} ");
            papers_print(one, isfinite(papers_real(one, "expected"))
                                  ? "{expected:.3f} {ok:-5}"
                                  : "{expected:-11}");
            papers_print(one, " {printed:7.2f}");
        }
        putchar('\n');
    }
}

static void draw_table1(json_t *o, plot *p)
{
    json_t *row, *rows = papers_at(o, "rows");

    plot_titles(p, "who is slow, and the patience mu",
                "time by the polynomial code",
                "Streams, Table 1: five networks trained, by the time of the "
                "polynomial code");
    for (size_t i = 0; (row = json_array_get(rows, i)); i++)
        plot_group(p, "%s, %g", json_string_value(papers_at(row, "name")),
                   papers_real(row, "mu"));
    for (size_t c = 1; c < TABLE1_SCHEMES; c++) {
        plot_curve(p, PLOT_BAR, c - 1, "%s, played", table1_names[c]);
        papers_curve(p, rows, NULL, "%s.ratio", table1_names[c]);
        plot_curve(p, PLOT_OUTLINE, c - 1, "%s, printed", table1_names[c]);
        papers_curve(p, rows, NULL, "%s.printed", table1_names[c]);
    }
}

/* ---- 4: the largest load ------------------------------------------------- */

static kofn_status run_loads(const papers_args *a, size_t k, json_t *list)
{
    worst_load w;

    PAPERS_TRY(stream_worst_load(papers_runs(a, SEEDS), a->seed, &w));
    if (!a->json) /* which does not say how many */
        printf("4: the largest load under patterns with at most 10 marks in 4 "
               "rounds of 4 workers\n   (%zu of each style): ",
               papers_runs(a, SEEDS));
    papers_add(list,
               "scenario:z bound:f dip:{load:f ok:b} idip:{load:f ok:b} "
               "missed:z waits:z",
               k, w.bound, w.dip, fabs(w.dip - w.bound) < 1e-12, w.idip,
               fabs(w.idip - w.bound) < 1e-12, w.missed, w.waits);
    return KOFN_OK;
}

static void tell_loads(json_t *o)
{
    papers_print(o, "bound {bound:.4f}, dip {dip.load:.4f} {dip.ok}, idip "
                    "{idip.load:.4f} {idip.ok}; late products {missed},\n   "
                    "rounds that waited though not all were slow {waits}\n");
}

/* ---- all ----------------------------------------------------------------- */

int papers_stream(const papers_args *a)
{
    static const papers_scenario what[] = {
        {0},
        {run_figure1, tell_figure1, draw_figure1},
        {run_figure1, tell_figure1, draw_figure1},
        {run_table1, tell_table1, draw_table1},
        {run_loads, tell_loads, NULL},
        {run_rates, tell_rates, NULL},
        {run_nets, tell_nets, NULL}};

    return papers_scenarios(a, 0, what);
}
