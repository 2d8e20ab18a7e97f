/* scenarios.c -- kofn-papers pcr: the four scenarios of "Polynomially Coded Regression: Optimal Straggler
 * Mitigation via Data Encoding" (Li, Mousavi Kalan, Yu, Soltanolkotabi, Avestimehr,
 * 2018),
 * and what is shown of them. */
#include "pcr/pcr.h"

#include <stdlib.h>
#include <string.h>

pcr_setup pcr_setup_for(const papers_args *a, size_t k, pcr_scheme scheme)
{
    pcr_setup s = pcr_scenario(k, scheme);

    s.seed = a->seed;
    s.stale = a->stale ? (pcr_stale)(a->stale - 1) : PCR_FIFO;
    return s;
}

static kofn_status compute(const papers_args *a, pcr_panel *p, json_t *list)
{
    json_t *o;

    for (pcr_scheme c = 0; c < PCR_SCHEMES; c++) {
        pcr_setup s = pcr_setup_for(a, p->k, c);

        PAPERS_TRY(pcr_average(&s, papers_runs(a, PCR_RUNS), &p->mean[c]));
    }
    o = pcr_tables_json(p);
    json_array_append_new(list, o);
    json_object_update_new(o, pcr_figure_4_json(p));
    return pcr_batches_add(a, p->k, o);
}

static void tell(json_t *o, const pcr_panel *p)
{
    json_t *list = papers_at(o, "scenarios");

    papers_print(o, "polynomially coded regression: seconds for {iterations} "
                    "iterations, mean of {runs} runs\n\nscenario               "
                    "scheme   enough    total  commun.  comput. messages\n");
    pcr_tables_tell(list);
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
        pcr_tables_draw(papers_at(o, "scenarios"), picture);
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
