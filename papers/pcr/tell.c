/* tell.c -- what pcr.c finds, as JSON, tables and a picture. */
#include "pcr/pcr.h"
#include "show.h"

#include <stdlib.h>
#include <string.h>

#define RUNS 20
#define STORES 7
static const size_t stores[STORES] = {1, 2, 4, 5, 8, 10, 20};

typedef struct panel {
    size_t k;
    pcr_mean mean[PCR_SCHEMES];
    double ratio[PCR_RATIOS];
    bool ordered;
    /* E-C3: seconds with stores[i] batches a worker; 0: no such code. */
    double total[PCR_SCHEMES][STORES];
} panel;

/* Two scenarios apart by the artificial stragglers only. */
typedef struct laws {
    double slower[PCR_SCHEMES], slower_reset; /* reset: of gc */
    /* Seconds that sleeps add to uncoded: of computation, and in all, for
     * messages are received and delays pass in the meantime. */
    double asleep, longer, law, published;
} laws;

static pcr_setup setup_for(const papers_args *a, size_t k, pcr_scheme scheme)
{
    pcr_setup s = pcr_scenario(k, scheme);

    s.seed = a->seed;
    s.stale = a->stale ? (pcr_stale)(a->stale - 1) : PCR_FIFO;
    return s;
}

/* ---- computing ----------------------------------------------------------- */

static kofn_status total_of(const pcr_setup *s, size_t runs, double *total)
{
    pcr_mean mean;
    kofn_status st = pcr_average(s, runs, &mean);

    *total = mean.total;
    free(mean.quantile);
    return st;
}

static kofn_status sweep(const papers_args *a, panel *p)
{
    size_t runs = papers_runs(a, RUNS / 4);

    for (pcr_scheme c = 0; c < PCR_SCHEMES; c++)
        for (size_t i = 0; i < STORES; i++) {
            pcr_setup s = setup_for(a, p->k, c);

            s.r = stores[i];
            if ((c == PCR_UNCODED) != (s.r == 1)) /* all codes are that then */
                continue;
            PAPERS_TRY(total_of(&s, runs, &p->total[c][i]));
        }
    return KOFN_OK;
}

static kofn_status compute(const papers_args *a, panel *p)
{
    for (pcr_scheme c = 0; c < PCR_SCHEMES; c++) {
        pcr_setup s = setup_for(a, p->k, c);

        PAPERS_TRY(pcr_average(&s, papers_runs(a, RUNS), &p->mean[c]));
    }
    pcr_ratios(p->mean, p->ratio);
    p->ordered = p->mean[PCR_PCR].total < p->mean[PCR_GC].total &&
                 p->mean[PCR_GC].total < p->mean[PCR_UNCODED].total;
    return sweep(a, p);
}

/* On the scenarios of panels q[0], natural, and q[1], artificial. */
static kofn_status compare(const papers_args *a, const panel *q, laws *l)
{
    const pcr_mean *u[2] = {&q[0].mean[PCR_UNCODED], &q[1].mean[PCR_UNCODED]};
    size_t n = pcr_scenario(q->k, PCR_UNCODED).n;
    double total[2] = {1, 1};
    kofn_status st = KOFN_OK;

    for (size_t i = 0; i < 2 && !st; i++) {
        pcr_setup s = setup_for(a, q[i].k, PCR_GC);

        s.stale = PCR_RESET;
        st = total_of(&s, papers_runs(a, RUNS), &total[i]);
    }
    for (size_t c = 0; c < PCR_SCHEMES; c++)
        l->slower[c] = q[1].mean[c].total / q[0].mean[c].total;
    l->slower_reset = total[1] / total[0];
    l->asleep = u[1]->computation - u[0]->computation;
    l->longer = u[1]->total - u[0]->total;
    l->law = pcr_sleep_law(n);
    l->published = pcr_sleep_published(n);
    return st;
}

/* Scenario 1 when results that nobody waits for take the link, too. */
static kofn_status clog_link(const papers_args *a, double ratio[PCR_RATIOS])
{
    pcr_mean mean[PCR_SCHEMES];

    for (pcr_scheme c = 0; c < PCR_SCHEMES; c++) {
        pcr_setup s = setup_for(a, 1, c);

        s.clogged = true;
        PAPERS_TRY(pcr_average(&s, papers_runs(a, RUNS), &mean[c]));
        free(mean[c].quantile);
    }
    pcr_ratios(mean, ratio);
    return KOFN_OK;
}

/* C15's bands of the ones and the others. */
static const double gc_band[2] = {1.2, 2.5}, pcr_band[2] = {1.0, 1.5};

/* What Fig. 4 shows of E-C2: BCC's mean is close, its spread is not. */
static bool close_means(const panel *p)
{
    return pcr_factor(p->mean[PCR_BCC].took, p->mean[PCR_PCR].took) <= 1.1;
}

static bool steeper(const panel *p)
{
    return p->mean[PCR_PCR].messages_sd < p->mean[PCR_BCC].messages_sd;
}

/* ---- JSON ---------------------------------------------------------------- */

static json_t *mean_json(const panel *p, pcr_scheme c)
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

/* Of schemes by batches that are stored, where there is such a code. */
static json_t *sweep_json(const panel *p)
{
    json_t *o = json_object();
    char r[24];

    for (size_t c = 0; c < PCR_SCHEMES; c++) {
        json_t *row = json_object();

        for (size_t i = 0; i < STORES; i++) {
            snprintf(r, sizeof r, "%zu", stores[i]);
            if (p->total[c][i] > 0)
                json_object_set_new(row, r, json_real(p->total[c][i]));
        }
        json_object_set_new(o, pcr_names[c], row);
    }
    return o;
}

static void add_panel(const panel *p, json_t *list)
{
    pcr_setup s = pcr_scenario(p->k, PCR_PCR);
    json_t *schemes = json_object(), *ratios = json_object();

    for (pcr_scheme c = 0; c < PCR_SCHEMES; c++)
        json_object_set_new(schemes, pcr_names[c], mean_json(p, c));
    for (size_t i = 0; i < PCR_RATIOS; i++) {
        double published = pcr_published[p->k - 1][i];

        json_object_set_new(
            ratios, pcr_ratio_names[i],
            papers_pack("value:f published:f factor:f ok:b", p->ratio[i],
                        published, pcr_factor(p->ratio[i], published),
                        pcr_factor(p->ratio[i], published) <= PCR_BAND));
    }
    papers_add(list,
               "scenario:z workers:z batches:z sleeps:b schemes:o ratios:o "
               "ordered:b bcc_close:b pcr_steeper:b total_by_batches:o",
               p->k, s.n, s.r, s.sleeps, schemes, ratios, p->ordered,
               close_means(p), steeper(p), sweep_json(p));
}

static void add_law(const laws *l, json_t *list)
{
    papers_add(list,
               "gc_slower:o pcr_slower:o gc_slower_reset:f "
               "uncoded_sleep_seconds:{law:f published:f asleep:f longer:f}",
               papers_band_json(l->slower[PCR_GC], gc_band[0], gc_band[1]),
               papers_band_json(l->slower[PCR_PCR], pcr_band[0], pcr_band[1]),
               l->slower_reset, l->law, l->published, l->asleep, l->longer);
}

static json_t *all_json(const papers_args *a, const panel *p, size_t panels,
                        const laws *l, const double *clogged)
{
    static const char *const stale[] = {"fifo", "latest", "reset"};
    json_t *o = papers_json(a), *list = json_array(), *both = json_array();

    for (size_t i = 0; i < panels; i++)
        add_panel(&p[i], list);
    json_object_update_new(
        o, papers_pack("runs:z iterations:i stale:s scenarios:o",
                       papers_runs(a, RUNS), PCR_ITERATIONS,
                       stale[a->stale ? a->stale - 1 : 0], list));
    for (size_t i = 0; i < 2 && l; i++)
        add_law(&l[i], both);
    if (l)
        json_object_update_new(
            o, papers_pack("laws:o clogged:{uncoded/pcr:f gc/pcr:f}",
                           json_incref(both), clogged[0], clogged[1]));
    json_decref(both);
    return o;
}

/* ---- text ---------------------------------------------------------------- */

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
    size_t k;

    printf("\n%-14s", "here/published");
    papers_each(list, "    scenario {scenario}  ");
    putchar('\n');
    for (size_t i = 0; i < PCR_RATIOS; i++) {
        printf("%-14s", pcr_ratio_names[i]);
        for (k = 0; (o = json_array_get(list, k)); k++)
            papers_print(
                json_object_get(papers_at(o, "ratios"), pcr_ratio_names[i]),
                "{value:6.2f}/{published:-5.2f} {ok:-3}");
        putchar('\n');
    }
    printf("ok: within a factor of %g; pcr < gc < uncoded:", PCR_BAND);
    papers_each(list, " {ordered}");
    putchar('\n');
}

/* Share of the iterations that take at most t. */
static double within(const pcr_mean *m, double t)
{
    size_t count = m->runs * m->iterations, lo = 0, hi = count;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (m->quantile[mid] <= t)
            lo = mid + 1;
        else
            hi = mid;
    }
    return (double)lo / (double)count;
}

#define PICTURE 40
#define PICTURE_MS 80.0

static void tell_cdf(const panel *p, size_t panels)
{
    static const pcr_scheme shown[] = {PCR_PCR, PCR_BCC};

    printf("\ntime of an iteration, share done after 0 to %g ms (Fig. 4)\n",
           PICTURE_MS);
    for (size_t i = 0; i < 2 * panels; i++) {
        const pcr_mean *m = &p[i / 2].mean[shown[i % 2]];

        printf("%zu %-4s ", p[i / 2].k, pcr_names[shown[i % 2]]);
        for (int t = 1; t <= PICTURE; t++)
            papers_bar(within(m, t * PICTURE_MS * 1e-3 / PICTURE));
        printf("  %5.1f +- %.1f ms\n", m->took * 1e3, m->took_sd * 1e3);
    }
    printf("means within a tenth, pcr the steeper:");
    for (size_t k = 0; k < panels; k++)
        printf(" %s", papers_mark(close_means(&p[k]) && steeper(&p[k])));
    putchar('\n');
}

/* The least of all codes that need no more memory. */
static void tell_best(size_t k, json_t *by_batches)
{
    const char *scheme, *best = NULL;
    double least = HUGE_VAL;
    json_t *row;
    char r[24];

    printf("%zu %-8s", k, "least");
    for (size_t i = 0; i < STORES; i++) {
        snprintf(r, sizeof r, "%zu", stores[i]);
        json_object_foreach(by_batches, scheme,
                            row) if (papers_real(row, r) < least)
        {
            best = scheme;
            least = papers_real(row, r);
        }
        printf("%9s", best);
    }
    putchar('\n');
}

static void tell_sweep(json_t *list)
{
    json_t *o, *row;
    const char *scheme;
    size_t k;

    printf("\nseconds by batches stored\n%-10s", "");
    for (size_t i = 0; i < STORES; i++)
        printf("%9zu", stores[i]);
    putchar('\n');
    for (k = 0; (o = json_array_get(list, k)); k++) {
        size_t scenario = (size_t)papers_real(o, "scenario");

        json_object_foreach(papers_at(o, "total_by_batches"), scheme, row)
        {
            printf("%zu %-8s", scenario, scheme);
            for (size_t i = 0; i < STORES; i++) {
                char r[24];

                snprintf(r, sizeof r, "%zu", stores[i]);
                if (papers_at(row, r))
                    printf("%9.2f", papers_real(row, r));
                else
                    printf("%9s", "-");
            }
            putchar('\n');
        }
        tell_best(scenario, papers_at(o, "total_by_batches"));
    }
}

static void tell_law(json_t *l, const char *from_to)
{
    printf("%s", from_to);
    papers_print(
        l, "  gc takes {gc_slower.value:.2f} times as long {gc_slower.ok}, "
           "{gc_slower_reset:.2f} if sleeps ended with the\n        iteration; "
           "pcr {pcr_slower.value:.2f} {pcr_slower.ok}; uncoded sleeps "
           "{uncoded_sleep_seconds.asleep:.1f} s (law "
           "{uncoded_sleep_seconds.law:.1f}) and takes\n        "
           "{uncoded_sleep_seconds.longer:.1f} s longer (published: "
           "{uncoded_sleep_seconds.published:.1f})\n");
}

static void tell(json_t *o, const panel *p, size_t panels)
{
    json_t *list = papers_at(o, "scenarios"), *one;
    size_t k;

    papers_print(o, "polynomially coded regression: seconds for {iterations} "
                    "iterations, mean of {runs} runs\n\nscenario               "
                    "scheme   enough    total  commun.  comput. messages\n");
    for (k = 0; (one = json_array_get(list, k)); k++) {
        tell_totals(one);
    }
    tell_ratios(list);
    if (papers_at(o, "laws")) {
        printf("\nwhat sleeps do, from scenario\n");
        tell_law(papers_at(o, "laws.0"), "1 to 2");
        tell_law(papers_at(o, "laws.1"), "3 to 4");
        papers_print(
            o, "1       when results that nobody waits for take the link, too: "
               "uncoded/pcr {clogged.uncoded/pcr:.2f},\n        gc/pcr "
               "{clogged.gc/pcr:.2f}\n");
    }
    tell_cdf(p, panels);
    tell_sweep(list);
}

/* ---- picture ------------------------------------------------------------- */

/* Tables III to VI: the published ones, which are ratios, by the time of pcr here. */
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

/* ---- all ----------------------------------------------------------------- */

static int show(const papers_args *a, const panel *p, size_t panels,
                const laws *l, const double *clogged)
{
    json_t *o = all_json(a, p, panels, l, clogged);
    plot *picture = a->svg ? plot_new() : NULL;
    int code = 0;

    if (!a->json)
        tell(o, p, panels);
    if (picture)
        draw(papers_at(o, "scenarios"), picture);
    papers_ending(a, o);
    if (a->svg)
        code = papers_draw(a, picture);
    return code;
}

int papers_pcr(const papers_args *a)
{
    panel p[PCR_SCENARIOS];
    laws l[2];
    double clogged[PCR_RATIOS];
    size_t panels = a->scenario ? 1 : PCR_SCENARIOS;
    kofn_status st = KOFN_OK;
    int code;

    memset(p, 0, sizeof p);
    for (size_t i = 0; i < panels && !st; i++) {
        p[i].k = a->scenario ? a->scenario : i + 1;
        st = compute(a, &p[i]);
    }
    for (size_t i = 0; i < 2 && !st && panels == PCR_SCENARIOS; i++)
        st = compare(a, &p[2 * i], &l[i]);
    if (!st && panels == PCR_SCENARIOS)
        st = clog_link(a, clogged);
    code = st ? papers_ended(st)
              : show(a, p, panels, a->scenario ? NULL : l, clogged);
    for (size_t i = 0; i < panels; i++)
        for (size_t c = 0; c < PCR_SCHEMES; c++)
            free(p[i].mean[c].quantile);
    return code;
}
