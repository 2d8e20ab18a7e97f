/* tell.c -- what pcr.c finds, as tables and as JSON. */
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
            kofn_status st;

            s.r = stores[i];
            if ((c == PCR_UNCODED) != (s.r == 1)) /* all codes are that then */
                continue;
            st = total_of(&s, runs, &p->total[c][i]);
            if (st)
                return st;
        }
    return KOFN_OK;
}

static kofn_status compute(const papers_args *a, panel *p)
{
    for (pcr_scheme c = 0; c < PCR_SCHEMES; c++) {
        pcr_setup s = setup_for(a, p->k, c);
        kofn_status st = pcr_average(&s, papers_runs(a, RUNS), &p->mean[c]);

        if (st)
            return st;
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
    kofn_status st = KOFN_OK;

    for (pcr_scheme c = 0; c < PCR_SCHEMES; c++) {
        pcr_setup s = setup_for(a, 1, c);

        s.clogged = true;
        if (!st)
            st = pcr_average(&s, papers_runs(a, RUNS), &mean[c]);
        if (!st)
            free(mean[c].quantile);
    }
    if (!st)
        pcr_ratios(mean, ratio);
    return st;
}

static bool ratio_ok(const panel *p, size_t i)
{
    return pcr_factor(p->ratio[i], pcr_published[p->k - 1][i]) <= PCR_BAND;
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
    size_t count = m->runs * m->iterations;
    json_t *cdf = json_array();

    for (size_t i = 0; i <= 100; i++)
        json_array_append_new(cdf,
                              json_real(m->quantile[i * (count - 1) / 100]));
    return json_pack("{s:I, s:f, s:f, s:f, s:{s:f, s:f, s:o}, s:{s:f, s:f}}",
                     "threshold", (json_int_t)pcr_threshold(c, s.n, s.r),
                     "total", m->total, "communication",
                     m->total - m->computation, "computation", m->computation,
                     "iteration", "mean", m->took, "sd", m->took_sd,
                     "percentiles", cdf, "messages", "mean", m->messages, "sd",
                     m->messages_sd);
}

static json_t *ratios_json(const panel *p)
{
    json_t *o = json_object();

    for (size_t i = 0; i < PCR_RATIOS; i++) {
        double published = pcr_published[p->k - 1][i];

        json_object_set_new(
            o, pcr_ratio_names[i],
            json_pack("{s:f, s:f, s:f, s:b}", "value", p->ratio[i], "published",
                      published, "factor", pcr_factor(p->ratio[i], published),
                      "ok", ratio_ok(p, i)));
    }
    return o;
}

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

static json_t *panel_json(const panel *p)
{
    pcr_setup s = pcr_scenario(p->k, PCR_PCR);
    json_t *schemes = json_object();

    for (pcr_scheme c = 0; c < PCR_SCHEMES; c++)
        json_object_set_new(schemes, pcr_names[c], mean_json(p, c));
    return json_pack("{s:I, s:I, s:I, s:b, s:o, s:o, s:b, s:b, s:b, s:o}",
                     "scenario", (json_int_t)p->k, "workers", (json_int_t)s.n,
                     "batches", (json_int_t)s.r, "sleeps", s.sleeps, "schemes",
                     schemes, "ratios", ratios_json(p), "ordered", p->ordered,
                     "bcc_close", close_means(p), "pcr_steeper", steeper(p),
                     "total_by_batches", sweep_json(p));
}

static json_t *laws_json(const laws *l)
{
    return json_pack(
        "{s:o, s:o, s:f, s:{s:f, s:f, s:f, s:f}}", "gc_slower",
        papers_band_json(l->slower[PCR_GC], gc_band[0], gc_band[1]),
        "pcr_slower",
        papers_band_json(l->slower[PCR_PCR], pcr_band[0], pcr_band[1]),
        "gc_slower_reset", l->slower_reset, "uncoded_sleep_seconds", "law",
        l->law, "published", l->published, "asleep", l->asleep, "longer",
        l->longer);
}

static void print_json(const papers_args *a, const panel *p, size_t panels,
                       const laws *l, const double *clogged)
{
    static const char *const stale[] = {"fifo", "latest", "reset"};
    json_t *o = papers_json(a), *list = json_array();

    json_object_set_new(o, "runs",
                        json_integer((json_int_t)papers_runs(a, RUNS)));
    json_object_set_new(o, "iterations", json_integer(PCR_ITERATIONS));
    json_object_set_new(o, "stale",
                        json_string(stale[a->stale ? a->stale - 1 : 0]));
    for (size_t i = 0; i < panels; i++)
        json_array_append_new(list, panel_json(&p[i]));
    json_object_set_new(o, "scenarios", list);
    if (panels == PCR_SCENARIOS) {
        json_object_set_new(
            o, "laws", json_pack("[o, o]", laws_json(&l[0]), laws_json(&l[1])));
        json_object_set_new(o, "clogged",
                            json_pack("{s:f, s:f}", pcr_ratio_names[0],
                                      clogged[0], pcr_ratio_names[1],
                                      clogged[1]));
    }
    papers_print_json(o);
}

/* ---- text ---------------------------------------------------------------- */

static void print_totals(const panel *p)
{
    for (pcr_scheme c = 0; c < PCR_SCHEMES; c++) {
        const pcr_mean *m = &p->mean[c];
        pcr_setup s = pcr_scenario(p->k, c);
        char name[40] = "";

        if (c == 0)
            snprintf(name, sizeof name, "%zu: %zu workers%s", p->k, s.n,
                     s.sleeps ? ", sleeps" : "");
        printf("%-22s %-8s %6zu %8.2f %8.2f %8.2f %6.1f +- %.1f\n", name,
               pcr_names[c], pcr_threshold(c, s.n, s.r), m->total,
               m->total - m->computation, m->computation, m->messages,
               m->messages_sd);
    }
}

static void print_ratios(const panel *p, size_t panels)
{
    printf("\n%-14s", "here/published");
    for (size_t k = 0; k < panels; k++)
        printf("%12s %zu  ", "scenario", p[k].k);
    putchar('\n');
    for (size_t i = 0; i < PCR_RATIOS; i++) {
        printf("%-14s", pcr_ratio_names[i]);
        for (size_t k = 0; k < panels; k++)
            printf("%6.2f/%-5.2f %-3s", p[k].ratio[i],
                   pcr_published[p[k].k - 1][i],
                   papers_mark(ratio_ok(&p[k], i)));
        putchar('\n');
    }
    printf("ok: within a factor of %g; pcr < gc < uncoded:", PCR_BAND);
    for (size_t k = 0; k < panels; k++)
        printf(" %s", papers_mark(p[k].ordered));
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

static void print_cdf(const panel *p, size_t panels)
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
static void print_best(const panel *p)
{
    size_t best_c = 0, best_i = 0;

    printf("%zu %-8s", p->k, "least");
    for (size_t i = 0; i < STORES; i++) {
        for (size_t c = 0; c < PCR_SCHEMES; c++)
            if (p->total[c][i] > 0 &&
                p->total[c][i] < p->total[best_c][best_i]) {
                best_c = c;
                best_i = i;
            }
        printf("%9s", pcr_names[best_c]);
    }
    putchar('\n');
}

static void print_sweep(const panel *p, size_t panels)
{
    printf("\nseconds by batches stored\n%-10s", "");
    for (size_t i = 0; i < STORES; i++)
        printf("%9zu", stores[i]);
    putchar('\n');
    for (size_t k = 0; k < panels; k++) {
        for (size_t c = 0; c < PCR_SCHEMES; c++) {
            printf("%zu %-8s", p[k].k, pcr_names[c]);
            for (size_t i = 0; i < STORES; i++)
                if (p[k].total[c][i] > 0)
                    printf("%9.2f", p[k].total[c][i]);
                else
                    printf("%9s", "-");
            putchar('\n');
        }
        print_best(&p[k]);
    }
}

static void print_law(const panel *p, const laws *l)
{
    double gc = l->slower[PCR_GC], pcr = l->slower[PCR_PCR];

    printf("%zu to %zu  gc takes %.2f times as long %s, %.2f if sleeps ended "
           "with the\n        iteration; pcr %.2f %s; uncoded sleeps %.1f s "
           "(law %.1f) and takes\n        %.1f s longer (published: %.1f)\n",
           p[0].k, p[1].k, gc,
           papers_mark(papers_within(gc, gc_band[0], gc_band[1])),
           l->slower_reset, pcr,
           papers_mark(papers_within(pcr, pcr_band[0], pcr_band[1])), l->asleep,
           l->law, l->longer, l->published);
}

static void print_text(const papers_args *a, const panel *p, size_t panels,
                       const laws *l, const double *clogged)
{
    printf("polynomially coded regression: seconds for %d iterations, mean of "
           "%zu runs\n\n%-22s %-8s %6s %8s %8s %8s %6s\n",
           PCR_ITERATIONS, papers_runs(a, RUNS), "scenario", "scheme", "enough",
           "total", "commun.", "comput.", "messages");
    for (size_t k = 0; k < panels; k++)
        print_totals(&p[k]);
    print_ratios(p, panels);
    if (panels == PCR_SCENARIOS) {
        printf("\nwhat sleeps do, from scenario\n");
        print_law(&p[0], &l[0]);
        print_law(&p[2], &l[1]);
        printf("1       when results that nobody waits for take the link, too: "
               "uncoded/pcr %.2f,\n        gc/pcr %.2f\n",
               clogged[0], clogged[1]);
    }
    print_cdf(p, panels);
    print_sweep(p, panels);
}

/* ---- both ---------------------------------------------------------------- */

int papers_pcr(const papers_args *a)
{
    panel p[PCR_SCENARIOS];
    laws l[2];
    double clogged[PCR_RATIOS];
    size_t panels = a->scenario ? 1 : PCR_SCENARIOS;
    kofn_status st = KOFN_OK;

    memset(p, 0, sizeof p);
    for (size_t i = 0; i < panels && !st; i++) {
        p[i].k = a->scenario ? a->scenario : i + 1;
        st = compute(a, &p[i]);
    }
    for (size_t i = 0; i < 2 && !st && panels == PCR_SCENARIOS; i++)
        st = compare(a, &p[2 * i], &l[i]);
    if (!st && panels == PCR_SCENARIOS)
        st = clog_link(a, clogged);
    if (!st) {
        if (a->json)
            print_json(a, p, panels, l, clogged);
        else
            print_text(a, p, panels, l, clogged);
    }
    for (size_t i = 0; i < panels; i++)
        for (size_t c = 0; c < PCR_SCHEMES; c++)
            free(p[i].mean[c].quantile);
    return st ? papers_ended(st) : 0;
}
