/* table_1.c -- Table 1 of "Coded Sequential Matrix Multiplication For
 * Straggler Mitigation" (Krishnan, Hosseini, Khisti): the time of training
 * five networks, relative to the polynomial code, simulated by the rules of
 * math/stream_model.md 2. */
#include "show.h"

#define RUNS 10 /* trainings averaged */

/* Products of an iteration of a network 784-3000-3000-10 with batches of 1024,
 * forward and backward. */
static const double network[] = {1024.0 * 784 * 3000,  1024.0 * 3000 * 3000,
                                 1024.0 * 3000 * 10,   3000.0 * 1024 * 10,
                                 1024.0 * 10 * 3000,   3000.0 * 1024 * 3000,
                                 1024.0 * 3000 * 3000, 784.0 * 1024 * 3000};

#define PER_ITERATION (sizeof network / sizeof *network)
#define MODELS 5
#define ITERATIONS 250

#define NONE ((double)NAN)

/* The parameters of DIP and IDIP. */
static const struct parameters {
    size_t beta, lambda, N, W, B, eps;
} iid = {6, 1, 10, 4, 0, 0}, bursty = {4, 2, 0, 3, 2, 2};

/* Pattern of slow workers, the patience mu, and times of uncoded, DIP and IDIP
 * relative to the polynomial code: as printed and by the rules. */
#define IID "i.i.d.", "iid:p=0.3"
#define F1 "F1", "fritchman:a=0.2,b=0.5,M=2"
#define F2 "F2", "fritchman:a=0.05,b=1,M=2"

static const struct {
    table1_row row;
    const struct parameters *of;
} table[TABLE1_ROWS] = {
    {{IID, 0, .02, {1.97, .63, .76}, {1.51, .636, .636}}, &iid},
    {{IID, .25, .02, {1.97, .63, .76}, {1.51, .752, .751}}, &iid},
    {{F1, 0, .03, {1.19, .68, .58}, {1.20, NONE, .998}}, &bursty},
    {{F1, .25, .03, {1.19, .68, .58}, {1.20, .75, 1.03}}, &bursty},
    {{F2, 0, .03, {1.19, .68, .58}, {NONE, NONE, NONE}}, &bursty},
    {{F2, .25, .03, {1.19, .68, .58}, {NONE, .71, .69}}, &bursty}};

const char *const table1_names[TABLE1_SCHEMES] = {"polynomial", "uncoded",
                                                  "dip", "idip"};

stream_setup table1_entrant(size_t row, size_t k)
{
    const struct parameters *of = table[row].of;
    stream_setup x = {.workers = 4,
                      .alpha = 5,
                      .mu = table[row].row.mu,
                      .products = PER_ITERATION * MODELS * ITERATIONS,
                      .size = network,
                      .sizes = PER_ITERATION,
                      .models = MODELS};

    if (k < 2)
        x.scheme =
            (rhat_scheme){.kind = RHAT_ONCE, .threshold = k == 0 ? 2 : 4};
    else if (k == 2)
        x.scheme = (rhat_scheme){.kind = RHAT_DIP,
                                 .threshold = of->beta,
                                 .T = 3,
                                 .lambda = of->lambda};
    else
        x.scheme = (rhat_scheme){.kind = RHAT_IDIP, .N = of->N, .W = of->W};
    x.B = of->B;
    x.eps = of->eps;
    return x;
}

void table1_spec(size_t row, size_t k, char *spec, size_t size)
{
    const stream_setup x = table1_entrant(row, k);
    const rhat_scheme *s = &x.scheme;

    if (k < 2)
        snprintf(spec, size, k == 0 ? "polynomial:m=2,p=1" : "uncoded");
    else if (k == 2)
        snprintf(spec, size, "dip:m=2,p=%zu,T=%zu,lambda=%zu", s->threshold / 2,
                 s->T, s->lambda);
    else if (x.eps)
        snprintf(spec, size, "idip:m=2,p=%zu,model=bursty,B=%zu,W=%zu,eps=%zu",
                 stream_threshold(&x) / 2, x.B, s->W, x.eps);
    else
        snprintf(spec, size, "idip:m=2,p=%zu,N=%zu,W=%zu",
                 stream_threshold(&x) / 2, s->N, s->W);
}

const table1_row *table1_at(size_t row)
{
    return &table[row].row;
}

/* Adds the time of each scheme, and the products that were late. */
static kofn_status play(size_t row, uint64_t seed, double time[TABLE1_SCHEMES],
                        size_t *missed)
{
    kofn_matrix pattern;
    stream_setup x = table1_entrant(row, 0);
    kofn_status st = kofn_pattern_new(&pattern, table[row].row.pattern,
                                      x.workers, x.products + 4, x.alpha, seed);

    for (size_t k = 0; k < TABLE1_SCHEMES && !st; k++) {
        stream_played p;

        x = table1_entrant(row, k);
        x.pattern = &pattern;
        st = stream_play(&x, &p);
        time[k] += p.time;
        *missed += p.missed;
    }
    kofn_free(pattern.data);
    return st;
}

static kofn_status add_row(const papers_args *a, size_t row, json_t *rows)
{
    const table1_row *r = table1_at(row);
    double time[TABLE1_SCHEMES] = {0};
    size_t missed = 0;
    json_t *o;

    for (size_t run = 0; run < papers_runs(a, RUNS); run++)
        PAPERS_TRY(play(row, a->seed + run, time, &missed));
    o = papers_pack("name:s pattern:s mu:f band:f missed:z", r->title,
                    r->pattern, r->mu, r->band, missed);
    for (size_t k = 0; k < 3; k++) {
        double ratio = time[k + 1] / time[0], want = r->expected[k];

        json_object_set_new(
            o, table1_names[k + 1],
            papers_pack("ratio:f expected:f printed:f ok:b", ratio, want,
                        r->printed[k],
                        isnan(want) || fabs(ratio / want - 1) <= r->band));
    }
    json_array_append_new(rows, o);
    return KOFN_OK;
}

static kofn_status run(const papers_args *a, size_t k, json_t *list)
{
    json_t *rows = json_array();
    double multiply_adds = 0;
    kofn_status st = KOFN_OK;

    for (size_t i = 0; i < PER_ITERATION; i++)
        multiply_adds += network[i];
    for (size_t i = 0; i < TABLE1_ROWS && !st; i++)
        st = add_row(a, i, rows);
    if (!st)
        papers_add(list,
                   "scenario:z runs:z products:z multiply_adds_an_iteration:f "
                   "rows:o",
                   k, papers_runs(a, RUNS),
                   (size_t)(PER_ITERATION * MODELS * ITERATIONS), multiply_adds,
                   json_incref(rows));
    json_decref(rows);
    return st;
}

/* ---- output ---------------------------------------------------------------
 */

static void tell(json_t *o)
{
    json_t *row;

    papers_print(
        o, "3: five networks trained side by side, {products} products, "
           "{runs} runs (Table 1). Time relative to the\n"
           "   polynomial code, with rounds simulated by the rules. "
           "{multiply_adds_an_iteration:.0f} multiply-adds\n"
           "   per iteration of one network. expected: by the rules. printed: "
           "in the paper,\n"
           "   which does not give the parameters of Fritchman's chain\n"
           "           mu");
    for (size_t k = 1; k < TABLE1_SCHEMES; k++)
        printf("  %-8s expected    printed", table1_names[k]);
    putchar('\n');
    for (size_t i = 0; (row = json_array_get(papers_at(o, "rows"), i)); i++) {
        papers_print(row, "{name:-7} {mu:5.2f}");
        for (size_t k = 1; k < TABLE1_SCHEMES; k++) {
            json_t *one = papers_at(row, table1_names[k]);

            papers_print(one, "  {ratio:-8.3f} ");
            papers_print(one, isfinite(papers_real(one, "expected"))
                                  ? "{expected:.3f} {ok:-5}"
                                  : "{expected:-11}");
            papers_print(one, " {printed:7.2f}");
        }
        putchar('\n');
    }
}

static void draw(json_t *o, plot *p)
{
    json_t *row, *rows = papers_at(o, "rows");

    plot_titles(p, "pattern of slow workers, and the patience mu",
                "time by the polynomial code",
                "Streams, Table 1: five networks trained, by the time of the "
                "polynomial code");
    for (size_t i = 0; (row = json_array_get(rows, i)); i++)
        plot_group(p, "%s, %g", json_string_value(papers_at(row, "name")),
                   papers_real(row, "mu"));
    for (size_t c = 1; c < TABLE1_SCHEMES; c++) {
        plot_curve(p, PLOT_BAR, c - 1, "%s, played", table1_names[c]);
        papers_curve(p, rows, NULL, "%s.ratio", table1_names[c]);
        plot_curve(p, PLOT_OUTLINE, c - 1, "%s, printed", table1_names[c]);
        papers_curve(p, rows, NULL, "%s.printed", table1_names[c]);
    }
}

const papers_scenario stream_table_1 = {run, tell, draw};
