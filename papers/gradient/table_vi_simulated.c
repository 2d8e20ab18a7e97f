/* table_vi_simulated.c -- Table VI of "Adaptive Gradient Coding" (Cao, Yan,
 * Tang, Han, 2020) in simulated time: an iteration of gradient descent on 20
 * workers with stragglers, under nine gradient codes, for p = 0.05 and 0.10.
 *
 * It uses equations 91 and 92 with the measurements of its Tables IV and V;
 * math/gradients.md 11, 12. Stragglers are drawn and counted here. The closed
 * form (aet.c) adds up probabilities. The two are independent.
 *
 * Every scheme meets the same workers: the draw is the number of consecutive
 * epochs in which a worker straggles. */
#include "show.h"

#define SCHEMES 9

#define WORKERS 20
#define SUBSETS 3 /* d */
#define PIECES 6  /* lambda */

/* 2000 iterations as in the paper, ten times. */
#define ITERATIONS 20000

typedef struct contender {
    agc_row row;
    bool adaptive;
    size_t tolerance, groups,
        first[WORKERS + 1];               /* first worker of each group */
    double mean, squares, epochs, length; /* squares: about the mean */
} contender;

static void enter(contender *c, const agc_row *row)
{
    const aet_params q = {.n = WORKERS, .d = SUBSETS, .lam = PIECES};
    double lengths[SUBSETS];

    *c = (contender){.row = *row,
                     .adaptive = row->scheme.kind & (AET_AGC | AET_G_AGC),
                     .groups = aet_groups(&q, row->scheme)};
    c->tolerance = aet_lengths(&q, row->scheme, lengths) - 1;
    for (size_t h = 0; h < c->groups; h++)
        c->first[h + 1] = c->first[h] + aet_group_size(&q, row->scheme, h);
}

/* ---- one iteration ------------------------------------------------------- */

/* Returns the workers of group h that straggle in epoch i and in all epochs
 * before. */
static size_t stragglers(const contender *c, size_t h, const size_t *failures,
                         size_t i)
{
    size_t count = 0;

    for (size_t w = c->first[h]; w < c->first[h + 1]; w++)
        count += failures[w] > i;
    return count;
}

/* Returns the epoch in which the last group decodes. Sets *most to the most
 * stragglers in it in a group that was still running. */
static size_t last_epoch(const contender *c, const size_t *failures,
                         size_t *most)
{
    size_t last = 0;

    *most = 0;
    for (size_t h = 0; h < c->groups; h++) {
        size_t i = 0, s;

        while ((s = stragglers(c, h, failures, i)) > c->tolerance)
            i++;
        if (i > last || (i == last && s > *most))
            *most = s;
        if (i > last)
            last = i;
    }
    return last;
}

/* ---- many iterations ------------------------------------------------------
 */

static void count(contender *c, const size_t *failures, size_t done)
{
    size_t most, i = last_epoch(c, failures, &most);
    size_t s = c->adaptive ? most : c->tolerance;
    double x = agc_seconds(&c->row.costs, i, s), off = x - c->mean;

    c->mean += off / (double)(done + 1);
    c->squares += off * (x - c->mean);
    c->epochs += (double)(i + 1);
    c->length += c->row.costs.length[s];
}

/* Draws how many consecutive epochs each worker fails. Returns true if at most
 * one worker fails at all. */
static bool draw_stragglers(double p, uint64_t seed, size_t iteration,
                            size_t *failures)
{
    dice d = dice_for(seed, 3, iteration);
    size_t first = 0;

    for (size_t w = 0; w < WORKERS; w++) {
        failures[w] = 0;
        while (dice_uniform(&d) < p)
            failures[w]++;
        first += failures[w] > 0;
    }
    return first <= 1;
}

/* Sets up the rows in the order of the published table. */
static kofn_status contenders(double p, contender c[SCHEMES])
{
    agc_row table[AGC_ROWS];
    kofn_status st = agc_table(table);

    for (size_t i = 0, n = 0; i < AGC_ROWS && !st; i++)
        if (table[i].p == p)
            enter(&c[n++], &table[i]);
    return st;
}

/* True if simulated means have the order of the formula, as far as it
 * distinguishes them. */
static bool same_order(const contender *c)
{
    for (size_t i = 0; i < SCHEMES; i++)
        for (size_t j = 0; j < SCHEMES; j++)
            if (c[i].row.straight < c[j].row.straight - 0.01 &&
                !(c[i].mean < c[j].mean))
                return false;
    return true;
}

static json_t *conclude(const contender *c, double iterations)
{
    json_t *schemes = json_array();

    for (size_t i = 0; i < SCHEMES; i++, c++) {
        double error = sqrt(c->squares / (iterations - 1) / iterations);
        char name[16];

        papers_add(schemes,
                   "scheme:s mean:f standard_error:f formula:f printed:f "
                   "epochs:f length:f ok:b",
                   aet_name(c->row.scheme, name, sizeof name), c->mean, error,
                   c->row.straight, c->row.printed, c->epochs / iterations,
                   c->length / iterations,
                   fabs(c->mean - c->row.straight) <= 3 * error);
    }
    return schemes;
}

static kofn_status run(const papers_args *a, size_t k, json_t *list)
{
    contender c[SCHEMES];
    size_t failures[WORKERS], few = 0, iterations = papers_runs(a, ITERATIONS);
    double p = k == 1 ? 0.05 : 0.10;

    PAPERS_TRY(contenders(p, c));
    for (size_t it = 0; it < iterations; it++) {
        few += draw_stragglers(p, a->seed, it, failures);
        for (size_t i = 0; i < SCHEMES; i++)
            count(&c[i], failures, it);
    }
    papers_add(list,
               "scenario:z p:f schemes:o ordered:b "
               "at_most_one_straggles:{simulated:f formula:f}",
               k, p, conclude(c, (double)iterations), same_order(c),
               (double)few / (double)iterations,
               pow(1 - p, WORKERS - 1) * (1 + (WORKERS - 1) * p));
    return KOFN_OK;
}

/* ---- output ---------------------------------------------------------------
 */

static void tell(json_t *o)
{
    papers_print(o,
                 "{scenario}: p = {p:.2f}; 0 or 1 straggle in "
                 "{at_most_one_straggles.simulated:.4f} of the iterations, by "
                 "formula {at_most_one_straggles.formula:.4f}\n"
                 "scheme         mean    error   formula     printed  epochs  "
                 "length\n");
    papers_each_bar(papers_at(o, "schemes"),
                    "{scheme:-10} {mean:8.3f} +- {standard_error:.3f} "
                    "{formula:9.3f} {ok:-3}{printed:8.2f} {epochs:7.3f} "
                    "{length:7.3f}  ",
                    "mean", 10);
    papers_print(o, "in the order of the formula: {ordered}\n");
}

/* Draws Table VI: simulated next to printed values. */
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

const papers_scenario gradient_table_vi = {run, tell, draw};

int papers_gradient(const papers_args *a)
{
    size_t iterations = papers_runs(a, ITERATIONS);

    if (!a->json)
        printf("adaptive gradient coding: seconds of an iteration on 20 "
               "workers of 3 subsets,\n%zu iterations with seeded "
               "stragglers; ok: within 3 errors of the formula\n\n",
               iterations);
    return papers_scenarios(a, iterations);
}
