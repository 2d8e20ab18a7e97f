/* tell.c -- what gradient.c finds, as JSON, tables and a picture. */
#include "gradient/gradient.h"
#include "show.h"

/* 2000 iterations as in the paper, ten times. */
#define ITERATIONS 20000

static kofn_status run(const papers_args *a, size_t k, json_t *list)
{
    gradient_result g;
    json_t *schemes;

    PAPERS_TRY(gradient_run(k, papers_runs(a, ITERATIONS), a->seed, &g));
    schemes = json_array();
    for (size_t i = 0; i < GRADIENT_SCHEMES; i++) {
        const gradient_row *r = &g.row[i];

        papers_add(schemes,
                   "scheme:s mean:f standard_error:f formula:f printed:f "
                   "epochs:f length:f ok:b",
                   r->name, r->mean, r->error, r->formula, r->printed,
                   r->epochs, r->length, r->within);
    }
    papers_add(list,
               "scenario:z p:f schemes:o ordered:b "
               "at_most_one_straggles:{simulated:f formula:f}",
               k, g.p, schemes, g.ordered, g.at_most_one,
               g.at_most_one_formula);
    return KOFN_OK;
}

static void tell(json_t *o)
{
    double most = 0;
    json_t *r;
    size_t i;

    for (i = 0; (r = json_array_get(papers_at(o, "schemes"), i)); i++)
        most = fmax(most, papers_real(r, "mean"));
    papers_print(o,
                 "{scenario}: p = {p:.2f}; 0 or 1 straggle in "
                 "{at_most_one_straggles.simulated:.4f} of the iterations, by "
                 "formula {at_most_one_straggles.formula:.4f}\n"
                 "scheme         mean    error   formula     printed  epochs  "
                 "length\n");
    for (i = 0; (r = json_array_get(papers_at(o, "schemes"), i)); i++) {
        papers_print(r, "{scheme:-10} {mean:8.3f} +- {standard_error:.3f} "
                        "{formula:9.3f} {ok:-3}{printed:8.2f} {epochs:7.3f} "
                        "{length:7.3f}  ");
        papers_bars(10 * papers_real(r, "mean") / most, 10);
        putchar('\n');
    }
    papers_print(o, "in the order of the formula: {ordered}\n");
}

/* Table VI: what was simulated beside what is printed. */
static void draw(json_t *o, plot *p)
{
    json_t *r, *schemes = papers_at(o, "schemes");

    plot_titles(p, "scheme", "seconds an iteration",
                "Adaptive gradient coding, Table VI: p = %.2f",
                papers_real(o, "p"));
    for (size_t i = 0; (r = json_array_get(schemes, i)); i++)
        plot_group(p, "%s", json_string_value(papers_at(r, "scheme")));
    plot_curve(p, PLOT_BAR, 0, "simulated");
    papers_curve(p, schemes, NULL, "mean");
    plot_curve(p, PLOT_BAR, 5, "formula");
    papers_curve(p, schemes, NULL, "formula");
    plot_curve(p, PLOT_OUTLINE, 0, "printed in the paper");
    papers_curve(p, schemes, NULL, "printed");
}

int papers_gradient(const papers_args *a)
{
    static const papers_scenario one = {run, tell, draw};
    const papers_scenario what[] = {{0}, one, one};

    if (!a->json)
        printf("adaptive gradient coding: seconds of an iteration on 20 "
               "workers of 3 subsets,\n%zu iterations with seeded "
               "stragglers; ok: within 3 errors of the formula\n\n",
               papers_runs(a, ITERATIONS));
    return papers_scenarios(a, papers_runs(a, ITERATIONS), what);
}
