/* figure_1.c -- Figure 1 of "Coded Sequential Matrix Multiplication For
 * Straggler Mitigation" (Krishnan, Hosseini, Khisti): the mean time of a round
 * against the chance of being slow, minimised for each scheme. In closed form
 * or by its Markov chain, and simulated; math/stream_model.md 2 to 7. */
#include "show.h"

#define ROUNDS 100000 /* rounds per point */
#define POINTS 8
#define CURVES 5
#define BAND 0.02

static const char *const names[CURVES] = {"uncoded", "polynomial", "idip",
                                          "dip", "dip, T = inf"};

typedef struct entrant {
    rhat_scheme scheme;
    double model, corrected; /* IDIP: the bound, as printed and corrected */
    double exact, simulated; /* the quantity that the bound limits */
} entrant;

/* Minimises the printed bound, which the figure shows for IDIP. */
static kofn_status least_bound(const rhat_params *q, size_t T, entrant *c)
{
    c->model = HUGE_VAL;
    for (size_t N = 1; N < q->workers * (T + 1); N++) {
        rhat_scheme s = {.kind = RHAT_IDIP, .N = N, .W = T + 1, .late = true};
        rhat_result r;

        PAPERS_TRY(rhat_of(q, &s, &r));
        if (r.bound_printed >= c->model)
            continue;
        c->model = r.bound_printed;
        c->corrected = r.bound_corrected;
        c->exact = r.exact_fixed_load;
        c->scheme = s;
    }
    return KOFN_OK;
}

/* Minimises each scheme over its parameters; for IDIP, its bound. */
static kofn_status model(const rhat_params *q, size_t T, size_t k, entrant *c)
{
    rhat_result r;
    kofn_status st;

    if (k == 2)
        return least_bound(q, T, c);
    c->scheme = (rhat_scheme){.kind = RHAT_ONCE, .threshold = q->workers};
    st = k == 0 ? rhat_of(q, &c->scheme, &r)
                : rhat_best(q, k == 1 ? RHAT_ONCE : RHAT_DIP,
                            k == 4 ? RHAT_ENDLESS : T, &c->scheme, &r);
    c->model = c->corrected = c->exact = r.rhat;
    return st;
}

/* Simulates rounds with the same parameters. */
static kofn_status simulate(const rhat_params *q, size_t rounds,
                            const kofn_matrix *pattern, entrant *c)
{
    stream_setup x = {.scheme = c->scheme,
                      .workers = q->workers,
                      .alpha = q->alpha,
                      .pattern = pattern,
                      .products = rounds};
    stream_played p;
    kofn_status st = stream_play(&x, &p);

    c->simulated = p.time / (double)rounds;
    return st;
}

static void add_curve(const entrant *c, size_t k, json_t *list)
{
    const rhat_scheme *s = &c->scheme;
    json_t *o =
        papers_pack("scheme:s rhat:f simulated:f ok:b", names[k], c->model,
                    c->simulated, fabs(c->simulated / c->exact - 1) <= BAND);

    json_object_update_new(o, s->kind == RHAT_IDIP
                                  ? papers_pack("N:z bound_corrected:f exact:f",
                                                s->N, c->corrected, c->exact)
                                  : papers_pack("threshold:z", s->threshold));
    if (s->kind == RHAT_DIP && s->T < SIZE_MAX)
        json_object_update_new(o, papers_pack("lambda:z", s->lambda));
    json_array_append_new(list, o);
}

/* Each curve must lie above the next, with either bound. */
static kofn_status point(const rhat_params *q, size_t T, size_t rounds,
                         uint64_t seed, json_t *points)
{
    json_t *curves = json_array();
    entrant c[CURVES] = {{.model = 0}};
    bool ordered = true;
    kofn_matrix pattern;
    char text[40];
    kofn_status st;

    snprintf(text, sizeof text, "iid:p=%.2f", q->delta);
    st = kofn_pattern_new(&pattern, text, q->workers, rounds, q->alpha, seed);
    for (size_t k = 0; k < CURVES && !st; k++) {
        st = model(q, T, k, &c[k]);
        if (!st)
            st = simulate(q, rounds, &pattern, &c[k]);
        if (!st)
            add_curve(&c[k], k, curves);
        if (k > 0)
            ordered &= c[k - 1].corrected > c[k].corrected &&
                       c[k - 1].model > c[k].model;
    }
    kofn_free(pattern.data);
    papers_add(points, "delta:f curves:o ordered:b", q->delta, curves, ordered);
    return st;
}

/* Panel 1 has four workers, panel 2 six. */
static kofn_status run(const papers_args *a, size_t panel, json_t *list)
{
    rhat_params q = {panel == 1 ? 4 : 6, panel == 1 ? 5 : 10, 0, 0};
    size_t T = panel == 1 ? 3 : 4, rounds = papers_runs(a, ROUNDS);
    json_t *points = json_array();
    kofn_status st = KOFN_OK;

    for (size_t i = 0; i < POINTS && !st; i++) {
        q.delta = 0.05 * (double)(i + 1);
        st = point(&q, T, rounds, a->seed + 100 * panel + i, points);
    }
    if (!st)
        papers_add(list,
                   "scenario:z workers:z alpha:f delay:z rounds:z points:o",
                   panel, q.workers, q.alpha, T, rounds, json_incref(points));
    json_decref(points);
    return st;
}

/* ---- output ---------------------------------------------------------------
 */

static void tell(json_t *o)
{
    json_t *point, *curve;
    size_t off = 0, i, k;

    papers_print(
        o, "{scenario}: {workers} workers, slow by a factor of {alpha}, a "
           "delay of {delay} (Fig. ");
    printf("1%c): time of a\n"
           "   round, the least of each scheme, by its formula or chain, and "
           "of ",
           papers_real(o, "scenario") == 1 ? 'a' : 'b');
    papers_print(o, "{rounds} rounds played;\n"
                    "   idip: the printed bound, and what is played; then the "
                    "corrected bound and the exact value\n"
                    "delta");
    for (k = 0; k < CURVES; k++)
        printf("  %-14s", names[k]);
    printf(" %-6s %-6s order\n", "bound", "exact");
    for (i = 0; (point = json_array_get(papers_at(o, "points"), i)); i++) {
        papers_print(point, "{delta:5.2f}");
        for (k = 0; (curve = json_array_get(papers_at(point, "curves"), k));
             k++) {
            papers_print(curve, "  {rhat:6.4f} {simulated:6.4f}");
            putchar(papers_true(curve, "ok") ? ' ' : '*');
            off += !papers_true(curve, "ok");
        }
        papers_print(point, " {curves.2.bound_corrected:6.4f} "
                            "{curves.2.exact:6.4f} {ordered}\n");
    }
    printf("played within %.0f %% of formula or chain: %s\n", 100 * BAND,
           papers_mark(off == 0));
}

static void draw(json_t *o, plot *p)
{
    plot_titles(p, "chance that a worker is slow in a round",
                "mean time of a round, minimised for each scheme",
                "Streams, Fig. 1: %.0f workers, slow by a factor of %g, a "
                "delay of %.0f",
                papers_real(o, "workers"), papers_real(o, "alpha"),
                papers_real(o, "delay"));
    for (size_t c = 0; c < CURVES; c++) {
        plot_curve(p, PLOT_LINE, c, "%s, %s", names[c],
                   c == 2 ? "printed bound" : "model");
        papers_curve(p, papers_at(o, "points"), "delta", "curves.%zu.rhat", c);
        plot_curve(p, PLOT_MARKS, c, "%s, played", names[c]);
        papers_curve(p, papers_at(o, "points"), "delta", "curves.%zu.simulated",
                     c);
    }
}

const papers_scenario stream_figure_1 = {run, tell, draw};
