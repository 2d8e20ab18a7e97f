/* tell.c -- what dnn.c finds, as tables and as JSON. */
#include "dnn/dnn.h"
#include "show.h"

#include <string.h>

#define TRIALS 8
#define CURVES 3

static const char *const curves[CURVES] = {"gpd", "replication", "two MDS"};

typedef struct found {
    dnn_table table[DNN_TABLES];
    dnn_growth growth[DNN_GROWTH];
    dnn_figure figure[DNN_POINTS];
} found;

/* ---- limits ---------------------------------------------------------------- */

/* Corollary 1: of P and of its root. */
static const double limit[2] = {0.25, 1}, band[2] = {0.01, 0.05};

static bool grown(const dnn_growth *g)
{
    return fabs(g->by_replication - limit[0]) <= band[0] &&
           fabs(g->by_two_mds - limit[1]) <= band[1];
}

static json_t *table_json(const dnn_table *t)
{
    json_t *codes = json_object();

    for (size_t k = 0; k < DNN_KINDS; k++) {
        const dnn_tolerance *p = &t->published[k];
        const dnn_tried *g = &t->got[k];

        json_object_set_new(
            codes, dnn_kinds[k],
            json_pack("{s:{s:o, s:o, s:b}, s:{s:o, s:o, s:o}, s:b}", "tried",
                      "adversarial", papers_pair(g->adversarial),
                      "probabilistic", papers_pair(g->probabilistic),
                      "declared", g->declared, "published", "adversarial",
                      papers_pair(p->adversarial), "probabilistic",
                      papers_pair(p->probabilistic), "answers",
                      papers_pair(p->K), "ok", t->ok[k]));
    }
    return json_pack("{s:s, s:I, s:[I, I], s:o, s:o}", "table",
                     t->cut[0] * t->cut[1] > 1 ? "III" : "I", "nodes",
                     (json_int_t)t->P, "grid", (json_int_t)t->m,
                     (json_int_t)t->n, "batch_cut", papers_pair(t->cut),
                     "codes", codes);
}

static json_t *limits_json(const found *f)
{
    json_t *tables = json_array(), *growth = json_array(),
           *figure = json_object();

    for (size_t i = 0; i < DNN_TABLES; i++)
        json_array_append_new(tables, table_json(&f->table[i]));
    for (size_t i = 0; i < DNN_GROWTH; i++)
        json_array_append_new(
            growth,
            json_pack("{s:I, s:f, s:f}", "nodes", (json_int_t)f->growth[i].P,
                      "by_replication", f->growth[i].by_replication,
                      "by_two_mds", f->growth[i].by_two_mds));
    for (size_t c = 0; c < CURVES; c++) {
        json_t *list = json_array();

        for (size_t i = 0; i < DNN_POINTS; i++)
            json_array_append_new(
                list, json_pack("[I, I, I]", (json_int_t)f->figure[i].P,
                                (json_int_t)f->figure[i].adversarial[c],
                                (json_int_t)f->figure[i].probabilistic[c]));
        json_object_set_new(figure, curves[c], list);
    }
    return json_pack("{s:i, s:o, s:o, s:b, s:o}", "scenario", 1, "tables",
                     tables, "corollary_1", growth, "corollary_1_ok",
                     grown(&f->growth[DNN_GROWTH - 1]), "fig_8", figure);
}

static void limits_text(const found *f)
{
    printf("Tables I and III: nodes that may be wrong, by trying; forward and "
           "back;\npublished in brackets\n%-24s %-12s %16s %16s\n",
           "nodes, "
           "grid, batch in",
           "code", "lie", "fail");
    for (size_t i = 0; i < DNN_TABLES; i++)
        for (size_t k = 0; k < DNN_KINDS; k++) {
            const dnn_table *t = &f->table[i];
            const dnn_tolerance *p = &t->published[k];
            const dnn_tried *g = &t->got[k];
            char name[40] = "";

            if (k == 0)
                snprintf(name, sizeof name, "%zu, %zux%zu, %zu and %zu", t->P,
                         t->m, t->n, t->cut[0], t->cut[1]);
            printf("%-24s %-12s %4zu %2zu (%2zu %2zu)  %4zu %2zu (%2zu %2zu) "
                   "%s\n",
                   name, dnn_kinds[k], g->adversarial[0], g->adversarial[1],
                   p->adversarial[0], p->adversarial[1], g->probabilistic[0],
                   g->probabilistic[1], p->probabilistic[0],
                   p->probabilistic[1], papers_mark(t->ok[k]));
        }
    printf("\nCorollary 1: those of GPD by those of others, m = n = "
           "sqrt(P/4)\n%8s %16s %20s\n",
           "P", "replication / P", "two MDS / sqrt P");
    for (size_t i = 0; i < DNN_GROWTH; i++)
        printf("%8zu %16.4f %20.4f\n", f->growth[i].P,
               f->growth[i].by_replication, f->growth[i].by_two_mds);
    printf("published: %g +- %g and %g +- %g %s\n", limit[0], band[0], limit[1],
           band[1], papers_mark(grown(&f->growth[DNN_GROWTH - 1])));
    printf("\nnodes that may lie, or fail, of a grid of 3x3 (Fig. 8)\n%-12s",
           "nodes");
    for (size_t i = 0; i < DNN_POINTS; i++)
        printf(" %5zu", f->figure[i].P);
    for (size_t c = 0; c < CURVES; c++) {
        printf("\n%-12s", curves[c]);
        for (size_t i = 0; i < DNN_POINTS; i++)
            printf(" %2zu %2zu", f->figure[i].adversarial[c],
                   f->figure[i].probabilistic[c]);
    }
    putchar('\n');
}

/* ---- trainings --------------------------------------------------------------- */

static json_t *run_json(const dnn_run *r)
{
    return json_pack(
        "{s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:b}", "accuracy",
        papers_number(r->accuracy), "apart", papers_number(r->apart), "steps",
        (json_int_t)r->steps, "taken", (json_int_t)r->taken, "rollbacks",
        (json_int_t)r->rollbacks, "faults", (json_int_t)r->faults, "corrected",
        (json_int_t)r->corrected, "finished", r->finished);
}

static json_t *soft_json(const dnn_soft *s)
{
    json_t *rates = json_array();

    for (size_t q = 0; q < DNN_RATES; q++) {
        json_t *runs = json_object();

        for (size_t w = 0; w < DNN_WAYS; w++) {
            json_t *list = json_array();

            for (size_t k = 0; k < s->seeds; k++)
                json_array_append_new(list, run_json(&s->run[q][k][w]));
            json_object_set_new(runs, dnn_names[w], list);
        }
        json_array_append_new(
            rates,
            json_pack("{s:f, s:o, s:b, s:b, s:b}", "q", dnn_rates[q], "runs",
                      runs, "coded_as_clean", s->same[q], "uncoded_lost",
                      s->lost[q], "fewest_rollbacks", s->fewest[q]));
    }
    return json_pack("{s:i, s:I, s:I, s:I, s:o, s:o}", "scenario", 2, "points",
                     (json_int_t)s->points, "pixels", (json_int_t)s->pixels,
                     "steps", (json_int_t)s->steps, "clean",
                     papers_reals(s->clean, s->seeds), "rates", rates);
}

static void soft_row(const dnn_soft *s, size_t q, size_t w)
{
    double accuracy = 0, apart = 0;
    size_t done = 0, faults = 0, corrected = 0, back[2] = {SIZE_MAX, 0};

    for (size_t k = 0; k < s->seeds; k++) {
        const dnn_run *r = &s->run[q][k][w];

        accuracy += 100 * r->accuracy / (double)s->seeds;
        apart = fmax(apart, r->apart);
        done += r->finished;
        faults += r->faults;
        corrected += r->corrected;
        back[0] = r->rollbacks < back[0] ? r->rollbacks : back[0];
        back[1] = r->rollbacks > back[1] ? r->rollbacks : back[1];
    }
    printf("%-6g %-12s %6.1f %6zu/%zu %5zu to %-5zu %8zu %9zu  %.1e\n",
           dnn_rates[q], dnn_names[w], accuracy, done, s->seeds, back[0],
           back[1], faults / s->seeds, corrected / s->seeds, apart);
}

static void soft_text(const dnn_soft *s)
{
    double clean = 0;

    for (size_t k = 0; k < s->seeds; k++)
        clean += 100 * s->clean[k] / (double)s->seeds;
    printf("%zu-32-32-10, %zu points, %u steps, %zu seeds: without errors "
           "%.1f %% right\n%-6s %-12s %6s %8s %14s %8s %9s  %s\n",
           s->pixels, s->points, s->steps, s->seeds, clean, "q", "way", "right",
           "done", "rollbacks", "errors", "corrected", "apart");
    for (size_t q = 0; q < DNN_RATES; q++) {
        for (size_t w = 0; w < DNN_WAYS; w++)
            soft_row(s, q, w);
        printf("  coded as without errors (0.3 %%, 1e-8) %s, uncoded below 50 "
               "%% %s,\n  coded goes back least %s\n",
               papers_mark(s->same[q]), papers_mark(s->lost[q]),
               papers_mark(s->fewest[q]));
    }
}

static json_t *hidden_json(const dnn_hidden *h)
{
    json_t *runs = json_object();

    for (size_t w = 0; w < DNN_WAYS; w++) {
        json_t *r = run_json(&h->run[w]);

        json_object_del(r, "accuracy");
        json_object_set_new(r, "loss", papers_number(h->run[w].loss));
        json_object_set_new(runs, dnn_names[w], r);
    }
    return json_pack("{s:i, s:o, s:f, s:f, s:o, s:b}", "scenario", 3, "widths",
                     papers_pair(h->widths), "q", dnn_rates[1], "clean_loss",
                     h->clean, "runs", runs, "ok", h->ok);
}

static void hidden_text(const dnn_hidden *h)
{
    printf("sparse autoencoder %zu-%zu-%zu, q = %g: without errors a loss of "
           "%.4f\n%-12s %10s %10s %10s %10s\n",
           h->widths[0], h->widths[1], h->widths[0], dnn_rates[1], h->clean,
           "way", "loss", "rollbacks", "corrected", "apart");
    for (size_t w = 0; w < DNN_WAYS; w++)
        printf("%-12s %10.4g %10u %10zu %10.1e\n", dnn_names[w], h->run[w].loss,
               h->run[w].rollbacks, h->run[w].corrected, h->run[w].apart);
    printf("coded weights within 1e-8 of those without errors %s\n",
           papers_mark(h->ok));
}

/* ---- all ---------------------------------------------------------------------- */

static kofn_status limits(const papers_args *a, json_t *list)
{
    found f;
    kofn_status st = dnn_limits(papers_runs(a, TRIALS), a->seed, f.table);

    if (!st)
        st = dnn_corollary(f.growth);
    if (!st)
        st = dnn_figure8(3, 3, f.figure);
    if (!st && list)
        json_array_append_new(list, limits_json(&f));
    else if (!st)
        limits_text(&f);
    return st;
}

/* With MNIST's points as many steps as of fewer, and more. */
static kofn_status trainings(const papers_args *a, const images *p, size_t k,
                             json_t *list)
{
    unsigned epochs = (unsigned)papers_runs(a, DNN_EPOCHS);
    dnn_soft s;
    dnn_hidden h;
    kofn_status st;

    if (a->mnist && epochs > 2)
        epochs = epochs / 5;
    st = k == 2 ? dnn_soft_errors(p, epochs, papers_runs(a, DNN_SEEDS), a->seed,
                                  &s)
                : dnn_autoencoder(p, epochs, a->seed, &h);
    if (!st && list)
        json_array_append_new(list, k == 2 ? soft_json(&s) : hidden_json(&h));
    else if (!st && k == 2)
        soft_text(&s);
    else if (!st)
        hidden_text(&h);
    return st;
}

static int run_one(const papers_args *a, size_t k, json_t *list)
{
    images p = {.X = {.data = NULL}};
    kofn_status st = KOFN_OK;
    int code = k > 1 && a->mnist ? papers_mnist(a, &p) : 0;

    if (!code && k > 1 && !a->mnist)
        st = dnn_points_make(&p, a->seed);
    if (!code && !st)
        st = k == 1 ? limits(a, list) : trainings(a, &p, k, list);
    images_free(&p);
    return st ? papers_ended(st) : code;
}

int papers_dnn(const papers_args *a)
{
    return papers_scenarios(a, DNN_SCENARIOS, 0, run_one);
}
