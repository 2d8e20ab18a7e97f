/* sleep.c -- the effect of sleeping workers on the codes of "Polynomially
 * Coded Regression: Optimal Straggler Mitigation via Data Encoding" (Li,
 * Mousavi Kalan, Yu, Soltanolkotabi, Avestimehr, 2018), and of results that
 * come too late; math/regression.md 15. */
#include "pcr/pcr.h"

#include <stdlib.h>

double pcr_sleep_law(size_t n)
{
    return PCR_ITERATIONS * PCR_SLEEP *
           (1 - pow(1 - PCR_SLEEP_CHANCE, (double)n));
}

double pcr_sleep_published(size_t n)
{
    return n == 40 ? 44.5 : 37.0;
}

/* Compares two scenarios that differ only in artificial stragglers. Adds the
 * expected effect on gc and pcr; the slowdown of gc if sleepers woke with
 * every iteration; and the seconds that sleep adds to uncoded. The latter are
 * given for computation and in all, since messages and delays overlap with
 * sleep. */
static kofn_status compare(const papers_args *a, const pcr_panel *natural,
                           const pcr_panel *artificial, json_t *list)
{
    const pcr_panel *const q[2] = {natural, artificial};
    const pcr_mean *before = natural->mean, *after = artificial->mean;
    size_t n = pcr_scenario(natural->k, PCR_UNCODED).n;
    double total[2] = {1, 1};

    for (size_t i = 0; i < 2; i++) {
        pcr_setup s = pcr_setup_for(a, q[i]->k, PCR_GC);

        s.stale = PCR_RESET;
        PAPERS_TRY(pcr_total(&s, papers_runs(a, PCR_RUNS), &total[i]));
    }
    papers_add(
        list,
        "gc_slower:o pcr_slower:o gc_slower_reset:f "
        "uncoded_sleep_seconds:{law:f published:f asleep:f longer:f}",
        papers_band_json(after[PCR_GC].total / before[PCR_GC].total, 1.2, 2.5),
        papers_band_json(after[PCR_PCR].total / before[PCR_PCR].total, 1.0,
                         1.5),
        total[1] / total[0], pcr_sleep_law(n), pcr_sleep_published(n),
        after[PCR_UNCODED].computation - before[PCR_UNCODED].computation,
        after[PCR_UNCODED].total - before[PCR_UNCODED].total);
    return KOFN_OK;
}

/* Runs scenario 1 with late results that occupy the link as well. */
static kofn_status clog_link(const papers_args *a, double ratio[PCR_RATIOS])
{
    pcr_mean mean[PCR_SCHEMES];

    for (pcr_scheme c = 0; c < PCR_SCHEMES; c++) {
        pcr_setup s = pcr_setup_for(a, 1, c);

        s.clogged = true;
        PAPERS_TRY(pcr_average(&s, papers_runs(a, PCR_RUNS), &mean[c]));
        free(mean[c].quantile);
    }
    pcr_ratios(mean, ratio);
    return KOFN_OK;
}

kofn_status pcr_sleep_add(const papers_args *a, const pcr_panel *p, json_t *o)
{
    json_t *laws = json_array();
    double ratio[PCR_RATIOS];
    kofn_status st = compare(a, &p[0], &p[1], laws);

    if (!st)
        st = compare(a, &p[2], &p[3], laws);
    if (!st)
        st = clog_link(a, ratio);
    if (!st)
        json_object_update_new(
            o, papers_pack("laws:o clogged:{uncoded/pcr:f gc/pcr:f}",
                           json_incref(laws), ratio[0], ratio[1]));
    json_decref(laws);
    return st;
}

static void tell_law(json_t *l, const char *from_to)
{
    printf("%s", from_to);
    papers_print(
        l, "  gc takes {gc_slower.value:.2f} times as long {gc_slower.ok}, "
           "{gc_slower_reset:.2f} if sleep ended with the\n        iteration; "
           "pcr {pcr_slower.value:.2f} {pcr_slower.ok}; uncoded sleeps "
           "{uncoded_sleep_seconds.asleep:.1f} s (law "
           "{uncoded_sleep_seconds.law:.1f}) and takes\n        "
           "{uncoded_sleep_seconds.longer:.1f} s longer (published: "
           "{uncoded_sleep_seconds.published:.1f})\n");
}

void pcr_sleep_tell(json_t *o)
{
    printf("\neffect of sleep, between scenarios\n");
    tell_law(papers_at(o, "laws.0"), "1 to 2");
    tell_law(papers_at(o, "laws.1"), "3 to 4");
    papers_print(o, "1       if unneeded results occupy the link as well: "
                    "uncoded/pcr {clogged.uncoded/pcr:.2f},\n        gc/pcr "
                    "{clogged.gc/pcr:.2f}\n");
}
