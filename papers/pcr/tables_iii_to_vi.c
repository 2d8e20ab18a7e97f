/* tables_iii_to_vi.c -- Tables III to VI of "Polynomially Coded Regression:
 * Optimal Straggler Mitigation via Data Encoding" (Li, Mousavi Kalan, Yu,
 * Soltanolkotabi, Avestimehr, 2018): the time of 100 iterations, coded and
 * uncoded, and its ratios, in simulated time; math/regression.md 15. */
#include "pcr/pcr.h"

#include <stdlib.h>
#include <string.h>

static const char *const ratio_names[PCR_RATIOS] = {
    "uncoded/pcr", "gc/pcr", "uncoded/gc", "commun. gc/pcr", "comput. gc/pcr"};

/* Published values of Tables III to VI. */
const double pcr_published[PCR_SCENARIOS][PCR_RATIOS] = {
    {6.79, 2.36, 2.88, 3.51, 1.30},
    {13.43, 4.29, 3.13, 7.14, 1.26},
    {5.27, 1.50, 3.51, 1.91, 1.20},
    {12.53, 2.58, 4.85, 3.98, 1.20}};

void pcr_ratios(const pcr_mean mean[PCR_SCHEMES], double ratio[PCR_RATIOS])
{
    const pcr_mean *u = &mean[PCR_UNCODED], *g = &mean[PCR_GC],
                   *p = &mean[PCR_PCR];

    ratio[0] = u->total / p->total;
    ratio[1] = g->total / p->total;
    ratio[2] = u->total / g->total;
    ratio[3] = (g->total - g->computation) / (p->total - p->computation);
    ratio[4] = g->computation / p->computation;
}

double pcr_factor(double a, double b)
{
    return a > b ? a / b : b / a;
}

static json_t *mean_json(const pcr_panel *p, pcr_scheme c)
{
    const pcr_mean *m = &p->mean[c];
    pcr_setup s = pcr_scenario(p->k, c);
    double cdf[101];

    for (size_t i = 0; i <= 100; i++)
        cdf[i] = m->quantile[i * (m->runs * m->iterations - 1) / 100];
    return papers_pack("threshold:z total:f communication:f computation:f "
                       "iteration:{mean:f sd:f percentiles:o} "
                       "messages:{mean:f sd:f}",
                       pcr_threshold(c, s.n, s.r), m->total,
                       m->total - m->computation, m->computation, m->took,
                       m->took_sd, papers_reals(cdf, 101), m->messages,
                       m->messages_sd);
}

static json_t *panel_json(const pcr_panel *p)
{
    pcr_setup s = pcr_scenario(p->k, PCR_PCR);
    json_t *schemes = json_object(), *ratios = json_object();
    double ratio[PCR_RATIOS];

    pcr_ratios(p->mean, ratio);
    for (pcr_scheme c = 0; c < PCR_SCHEMES; c++)
        json_object_set_new(schemes, pcr_names[c], mean_json(p, c));
    for (size_t i = 0; i < PCR_RATIOS; i++) {
        double published = pcr_published[p->k - 1][i],
               factor = pcr_factor(ratio[i], published);

        json_object_set_new(ratios, ratio_names[i],
                            papers_pack("value:f published:f factor:f ok:b",
                                        ratio[i], published, factor,
                                        factor <= PCR_BAND));
    }
    return papers_pack("scenario:z workers:z batches:z sleeps:b schemes:o "
                       "ratios:o ordered:b",
                       p->k, s.n, s.r, s.sleeps, schemes, ratios,
                       p->mean[PCR_PCR].total < p->mean[PCR_GC].total &&
                           p->mean[PCR_GC].total < p->mean[PCR_UNCODED].total);
}

/* ---- output ---------------------------------------------------------------
 */

static void tell_totals(json_t *o)
{
    const char *scheme;
    char name[40];
    json_t *m;

    snprintf(name, sizeof name, "%.0f: %.0f workers%s",
             papers_real(o, "scenario"), papers_real(o, "workers"),
             papers_true(o, "sleeps") ? ", sleeps" : "");
    json_object_foreach(papers_at(o, "schemes"), scheme, m)
    {
        printf("%-22s %-8s ", name, scheme);
        papers_print(m, "{threshold:6} {total:8.2f} {communication:8.2f} "
                        "{computation:8.2f} {messages.mean:6.1f} +- "
                        "{messages.sd:.1f}\n");
        *name = 0;
    }
}

static void tell_ratios(json_t *list)
{
    json_t *o;

    printf("\n%-14s", "here/published");
    papers_each(list, "    scenario {scenario}  ");
    putchar('\n');
    for (size_t i = 0; i < PCR_RATIOS; i++) {
        printf("%-14s", ratio_names[i]);
        for (size_t k = 0; (o = json_array_get(list, k)); k++)
            papers_print(
                json_object_get(papers_at(o, "ratios"), ratio_names[i]),
                "{value:6.2f}/{published:-5.2f} {ok:-3}");
        putchar('\n');
    }
    printf("ok: within a factor of %g; pcr < gc < uncoded:", PCR_BAND);
    papers_each(list, " {ordered}");
    putchar('\n');
}

/* Draws Tables III to VI. Published ratios are multiplied by the time of pcr
 * here. */
static void draw(json_t *list, plot *p)
{
    json_t *o;

    plot_titles(p, "scenario; 2 and 4 with sleeping workers", "seconds",
                "Polynomially coded regression: time of 100 iterations");
    for (size_t i = 0; (o = json_array_get(list, i)); i++)
        plot_group(p, "%.0f: %.0f workers", papers_real(o, "scenario"),
                   papers_real(o, "workers"));
    for (size_t c = 0; c < PCR_SCHEMES; c++) {
        plot_curve(p, PLOT_BAR, c, "%s, computation", pcr_names[c]);
        papers_curve(p, list, NULL, "schemes.%s.computation", pcr_names[c]);
        plot_curve(p, PLOT_ON, c, "%s, communication", pcr_names[c]);
        papers_curve(p, list, NULL, "schemes.%s.communication", pcr_names[c]);
        if (c > PCR_GC)
            continue;
        plot_curve(p, PLOT_OUTLINE, c, "%s, published, by pcr", pcr_names[c]);
        for (size_t i = 0; (o = json_array_get(list, i)); i++)
            plot_point(
                p, (double)i,
                pcr_published[(size_t)papers_real(o, "scenario") - 1][c] *
                    papers_real(o, "schemes.pcr.total"));
    }
}

/* ---- kofn-papers pcr ------------------------------------------------------
 */

pcr_setup pcr_setup_for(const papers_args *a, size_t k, pcr_scheme scheme)
{
    pcr_setup s = pcr_scenario(k, scheme);

    s.seed = a->seed;
    s.stale = a->stale ? (pcr_stale)(a->stale - 1) : PCR_FIFO;
    return s;
}

/* Computes one scenario: the data of the tables and Fig. 4, and the times by
 * stored batches. */
static kofn_status compute(const papers_args *a, pcr_panel *p, json_t *list)
{
    json_t *o;

    for (pcr_scheme c = 0; c < PCR_SCHEMES; c++) {
        pcr_setup s = pcr_setup_for(a, p->k, c);

        PAPERS_TRY(pcr_average(&s, papers_runs(a, PCR_RUNS), &p->mean[c]));
    }
    o = panel_json(p);
    json_array_append_new(list, o);
    json_object_update_new(o, pcr_figure_4_json(p));
    return pcr_batches_add(a, p->k, o);
}

static void tell(json_t *o, const pcr_panel *p)
{
    json_t *list = papers_at(o, "scenarios"), *one;

    papers_print(o, "polynomially coded regression: seconds for {iterations} "
                    "iterations, mean of {runs} runs\n\nscenario               "
                    "scheme   enough    total  commun.  comput. messages\n");
    for (size_t i = 0; (one = json_array_get(list, i)); i++)
        tell_totals(one);
    tell_ratios(list);
    if (papers_at(o, "laws"))
        pcr_sleep_tell(o);
    pcr_figure_4_tell(p, json_array_size(list));
    pcr_batches_tell(list);
}

static int show(const papers_args *a, const pcr_panel *p, json_t *o)
{
    plot *picture = a->svg ? plot_new() : NULL;

    if (!a->json)
        tell(o, p);
    if (picture)
        draw(papers_at(o, "scenarios"), picture);
    papers_ending(a, json_incref(o));
    return a->svg ? papers_draw(a, picture) : 0;
}

int papers_pcr(const papers_args *a)
{
    static const char *const stale[] = {"fifo", "latest", "reset"};
    size_t panels = a->scenario ? 1 : PCR_SCENARIOS;
    pcr_panel p[PCR_SCENARIOS];
    json_t *list = json_array(), *o = papers_json(a);
    kofn_status st = KOFN_OK;
    int code;

    memset(p, 0, sizeof p);
    json_object_update_new(
        o, papers_pack("runs:z iterations:i stale:s scenarios:o",
                       papers_runs(a, PCR_RUNS), PCR_ITERATIONS,
                       stale[a->stale ? a->stale - 1 : 0], list));
    for (size_t i = 0; i < panels && !st; i++) {
        p[i].k = a->scenario ? a->scenario : i + 1;
        st = compute(a, &p[i], list);
    }
    if (!st && panels == PCR_SCENARIOS)
        st = pcr_sleep_add(a, p, o);
    code = st ? papers_ended(st) : show(a, p, o);
    json_decref(o);
    for (size_t i = 0; i < panels; i++)
        for (size_t c = 0; c < PCR_SCHEMES; c++)
            free(p[i].mean[c].quantile);
    return code;
}
