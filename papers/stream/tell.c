/* tell.c -- what stream.c finds, as tables and JSON. */
#include "stream/tell.h"
#include "stream/stream.h"

#define ROUNDS 100000 /* of a point of Figure 1 */
#define RUNS 10       /* of a training, averaged */
#define SEEDS 50      /* of each style of pattern */

/* ---- 1 and 2: Figure 1 --------------------------------------------------- */

static json_t *curve_json(const figure1_curve *c, size_t k)
{
    json_t *o =
        json_pack("{s:s, s:f, s:f, s:b}", "scheme", figure1_names[k], "rhat",
                  c->model, "simulated", c->simulated, "ok", c->within);

    if (o && c->scheme.kind == RHAT_IDIP) {
        json_object_set_new(o, "N", json_integer((json_int_t)c->scheme.N));
        json_object_set_new(o, "bound_corrected", json_real(c->corrected));
        json_object_set_new(o, "exact", json_real(c->exact));
    } else if (o) {
        json_object_set_new(o, "threshold",
                            json_integer((json_int_t)c->scheme.threshold));
    }
    if (o && c->scheme.kind == RHAT_DIP && c->scheme.T < SIZE_MAX)
        json_object_set_new(o, "lambda",
                            json_integer((json_int_t)c->scheme.lambda));
    return o;
}

static json_t *figure1_json(size_t panel, const figure1_result *r)
{
    json_t *list = json_array();

    for (size_t i = 0; i < FIGURE1_POINTS; i++) {
        const figure1_point *p = &r->point[i];
        json_t *curves = json_array();

        for (size_t k = 0; k < FIGURE1_CURVES; k++)
            json_array_append_new(curves, curve_json(&p->curve[k], k));
        json_array_append_new(list, json_pack("{s:f, s:o, s:b}", "delta",
                                              p->delta, "curves", curves,
                                              "ordered", p->ordered));
    }
    return json_pack("{s:I, s:I, s:f, s:I, s:I, s:o}", "scenario",
                     (json_int_t)panel, "workers", (json_int_t)r->workers,
                     "alpha", r->alpha, "delay", (json_int_t)r->T, "rounds",
                     (json_int_t)r->rounds, "points", list);
}

static void point_text(const figure1_point *p)
{
    printf("%5.2f", p->delta);
    for (size_t k = 0; k < FIGURE1_CURVES; k++)
        printf("  %6.4f %6.4f%s", p->curve[k].model, p->curve[k].simulated,
               p->curve[k].within ? " " : "*");
    printf(" %6.4f %6.4f %s\n", p->curve[2].corrected, p->curve[2].exact,
           papers_mark(p->ordered));
}

static void figure1_text(size_t panel, const figure1_result *r)
{
    size_t off = 0;

    printf(
        "%zu: %zu workers, %g times as long when slow, a delay of %zu (Fig. "
        "1%c): time of a\n   round, the least of each scheme, by its formula "
        "or chain, and of %zu rounds played;\n   idip: the printed bound, and "
        "what is played; then the corrected bound and the exact value\n%5s",
        panel, r->workers, r->alpha, r->T, panel == 1 ? 'a' : 'b', r->rounds,
        "delta");
    for (size_t k = 0; k < FIGURE1_CURVES; k++)
        printf("  %-14s", figure1_names[k]);
    printf(" %-6s %-6s order\n", "bound", "exact");
    for (size_t i = 0; i < FIGURE1_POINTS; i++) {
        point_text(&r->point[i]);
        for (size_t k = 0; k < FIGURE1_CURVES; k++)
            off += !r->point[i].curve[k].within;
    }
    printf("played within %.0f %% of formula or chain: %s\n",
           100 * FIGURE1_BAND, papers_mark(off == 0));
}

static kofn_status figure1(const papers_args *a, size_t panel, json_t *list)
{
    figure1_result r;
    kofn_status st = figure1_run(panel, papers_runs(a, ROUNDS), a->seed, &r);

    if (!st && list)
        json_array_append_new(list, figure1_json(panel, &r));
    else if (!st)
        figure1_text(panel, &r);
    return st;
}

/* ---- 3: Table 1 ---------------------------------------------------------- */

static json_t *row_json(const table1_row *r)
{
    json_t *o = json_pack("{s:s, s:s, s:f, s:f, s:I}", "name", r->title,
                          "pattern", r->pattern, "mu", r->mu, "band", r->band,
                          "missed", (json_int_t)r->missed);

    for (size_t k = 0; k < 3; k++)
        json_object_set_new(o, table1_names[k + 1],
                            json_pack("{s:f, s:o, s:f, s:b}", "ratio",
                                      r->ratio[k], "expected",
                                      papers_number(r->expected[k]), "printed",
                                      r->printed[k], "ok", r->within[k]));
    return o;
}

static json_t *table1_json(const table1_result *r)
{
    json_t *list = json_array();

    for (size_t i = 0; i < TABLE1_ROWS; i++)
        json_array_append_new(list, row_json(&r->row[i]));
    return json_pack("{s:i, s:I, s:I, s:f, s:o}", "scenario", 3, "runs",
                     (json_int_t)r->runs, "products", (json_int_t)r->products,
                     "multiply_adds_an_iteration", r->multiply_adds, "rows",
                     list);
}

static void table1_text(const table1_result *r)
{
    printf("3: five networks trained side by side, %zu products, %zu times: "
           "time by that of the\n   polynomial code, of rounds played by the "
           "rules (Table 1); %.0f multiply-adds\n   an iteration of one "
           "network; expected: of the rules; printed: in the paper, whose\n   "
           "parameters of Fritchman's chain are not public\n%-7s %5s",
           r->products, r->runs, r->multiply_adds, "", "mu");
    for (size_t k = 1; k < TABLE1_SCHEMES; k++)
        printf("  %-8s expected    printed", table1_names[k]);
    putchar('\n');
    for (size_t i = 0; i < TABLE1_ROWS; i++) {
        const table1_row *w = &r->row[i];

        printf("%-7s %5.2f", w->title, w->mu);
        for (size_t k = 0; k < 3; k++) {
            char expected[16] = "-";

            if (!isnan(w->expected[k]))
                snprintf(expected, sizeof expected, "%.3f %s", w->expected[k],
                         papers_mark(w->within[k]));
            printf("  %-8.3f %-11s %7.2f", w->ratio[k], expected,
                   w->printed[k]);
        }
        putchar('\n');
    }
}

static kofn_status table1(const papers_args *a, size_t k, json_t *list)
{
    table1_result r;
    kofn_status st = table1_run(papers_runs(a, RUNS), a->seed, &r);

    (void)k;
    if (!st && list)
        json_array_append_new(list, table1_json(&r));
    else if (!st)
        table1_text(&r);
    return st;
}

/* ---- 4: the largest load ------------------------------------------------- */

static bool attained(double load, double bound)
{
    return fabs(load - bound) < 1e-12;
}

static kofn_status loads(const papers_args *a, size_t k, json_t *list)
{
    worst_load w;
    size_t seeds = papers_runs(a, SEEDS);
    kofn_status st = stream_worst_load(seeds, a->seed, &w);

    (void)k;
    if (!st && list)
        json_array_append_new(
            list,
            json_pack("{s:i, s:f, s:{s:f, s:b}, s:{s:f, s:b}, s:I, s:I}",
                      "scenario", 4, "bound", w.bound, "dip", "load", w.dip,
                      "ok", attained(w.dip, w.bound), "idip", "load", w.idip,
                      "ok", attained(w.idip, w.bound), "missed",
                      (json_int_t)w.missed, "waits", (json_int_t)w.waits));
    else if (!st)
        printf("4: the largest load under patterns with at most 10 marks in 4 "
               "rounds of 4 workers\n   (%zu of each style): bound %.4f, dip "
               "%.4f %s, idip %.4f %s; late products %zu,\n   rounds that "
               "waited though not all were slow %zu\n",
               seeds, w.bound, w.dip, papers_mark(attained(w.dip, w.bound)),
               w.idip, papers_mark(attained(w.idip, w.bound)), w.missed,
               w.waits);
    return st;
}

/* ---- all ----------------------------------------------------------------- */

static int run_one(const papers_args *a, size_t k, json_t *list)
{
    static kofn_status (*const played[])(const papers_args *, size_t,
                                         json_t *) = {NULL, figure1, figure1,
                                                      table1, loads};
    kofn_status st;

    if (k > STREAM_PLAYED)
        return k == 5 ? stream_rates(a, list) : stream_nets(a, list);
    st = played[k](a, k, list);
    return st ? papers_ended(st) : 0;
}

int papers_stream(const papers_args *a)
{
    return papers_scenarios(a, STREAM_PLAYED, 0, run_one);
}
