/* tell.c -- what gradient.c finds, as tables and JSON. */
#include "gradient/gradient.h"
#include "show.h"

/* 2000 iterations as in the paper, ten times. */
#define ITERATIONS 20000

static json_t *row_json(const gradient_row *r)
{
    return json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:b}", "scheme",
                     r->name, "mean", r->mean, "standard_error", r->error,
                     "formula", r->formula, "printed", r->printed, "epochs",
                     r->epochs, "length", r->length, "ok", r->within);
}

static json_t *result_json(size_t scenario, const gradient_result *g)
{
    json_t *list = json_array();

    for (size_t i = 0; i < GRADIENT_SCHEMES; i++)
        json_array_append_new(list, row_json(&g->row[i]));
    return json_pack("{s:I, s:f, s:o, s:b, s:{s:f, s:f}}", "scenario",
                     (json_int_t)scenario, "p", g->p, "schemes", list,
                     "ordered", g->ordered, "at_most_one_straggles",
                     "simulated", g->at_most_one, "formula",
                     g->at_most_one_formula);
}

static void print_text(size_t scenario, const gradient_result *g)
{
    double most = 0;

    for (size_t i = 0; i < GRADIENT_SCHEMES; i++)
        most = fmax(most, g->row[i].mean);
    printf("%zu: p = %.2f; 0 or 1 straggle in %.4f of the iterations, by "
           "formula %.4f\n%-10s %8s %8s %9s    %8s %7s %7s\n",
           scenario, g->p, g->at_most_one, g->at_most_one_formula, "scheme",
           "mean", "error", "formula", "printed", "epochs", "length");
    for (size_t i = 0; i < GRADIENT_SCHEMES; i++) {
        const gradient_row *r = &g->row[i];

        printf("%-10s %8.3f +- %.3f %9.3f %-3s%8.2f %7.3f %7.3f  ", r->name,
               r->mean, r->error, r->formula, papers_mark(r->within),
               r->printed, r->epochs, r->length);
        for (int k = 0; k < 10; k++)
            papers_bar(10 * r->mean / most - k);
        putchar('\n');
    }
    printf("in the order of the formula: %s\n", papers_mark(g->ordered));
}

static int run_one(const papers_args *a, size_t k, json_t *list)
{
    gradient_result g;
    kofn_status st = gradient_run(k, papers_runs(a, ITERATIONS), a->seed, &g);

    if (!st && list)
        json_array_append_new(list, result_json(k, &g));
    else if (!st)
        print_text(k, &g);
    return st ? papers_ended(st) : 0;
}

int papers_gradient(const papers_args *a)
{
    if (!a->json)
        printf("adaptive gradient coding: seconds of an iteration on 20 "
               "workers of 3 subsets,\n%zu iterations with seeded "
               "stragglers; ok: within 3 errors of the formula\n\n",
               papers_runs(a, ITERATIONS));
    return papers_scenarios(a, GRADIENT_SCENARIOS, papers_runs(a, ITERATIONS),
                            run_one);
}
