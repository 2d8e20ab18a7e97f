/* figure_2.c -- Figure 2 of "Coded Sequential Matrix Multiplication For
 * Straggler Mitigation" (Krishnan, Hosseini, Khisti): the loss of a network
 * against the time of its training, on a stream of the products of five
 * networks trained side by side; and Table 1 from these times.
 *
 * Every product is computed, on the simulator. A task takes a second per
 * thousand million multiply-adds, on a slow worker 5 times that. The networks
 * are narrower than the paper's, where a product has 300 times the work. */
#include "show.h"

#include <kofn/train.h>

#include <stdlib.h>

#define NETS 5
#define BATCH 1024
#define HIDDEN 48 /* parts of 1, 2, 3 and 6 of it are multiples of four */
#define ITERATIONS 250
#define POINTS 10
#define LAYERS 3
#define SLOW 5
#define BAND 0.03
#define TRAIN 8192 /* generated points used for training */
#define TEST 1024

static const size_t widths[LAYERS + 1] = {IMAGES_PIXELS, HIDDEN, HIDDEN,
                                          IMAGES_KINDS};
static const double steps[NETS] = {0.1, 0.15, 0.2, 0.25, 0.3};

typedef struct trained {
    const table1_row *of;
    double time[TABLE1_SCHEMES];       /* modelled seconds of its rounds */
    double played[TABLE1_SCHEMES];     /* the same by the rules */
    double at[TABLE1_SCHEMES][POINTS]; /* seconds until that point */
} trained;
typedef struct result {
    unsigned iterations;
    size_t points, products;
    double test_loss[POINTS]; /* test loss of the first network after each tenth
                                 of its iterations */
    double accuracy;          /* at the end */
    double worst; /* largest relative distance of weights from plain ones, at
                     any time */
    trained row[TABLE1_ROWS];
} result;

/* ---- one training -------------------------------------------------------- */

typedef struct training {
    const images *p;
    result *out;
    trained *row;
    size_t k, points; /* points: those of Figure 2 that are passed */
    kofn_net *net[NETS];
    stream_job job;
    kofn_status failed; /* status of scoring */
} training;

/* Returns the first network's iterations up to this point. */
static unsigned until(const result *out, size_t point)
{
    return (unsigned)((point + 1) * out->iterations / POINTS);
}

static int watch(void *ud, const kofn_nets_step *now, const kofn_report *rep)
{
    training *t = ud;
    kofn_score score;

    if (!now)
        return 0;
    (void)rep;
    if (now->product < now->of)
        return 0;
    t->out->worst = fmax(t->out->worst, now->apart);
    while (now->net == 0 && t->points < POINTS && !t->failed &&
           now->iteration >= until(t->out, t->points)) {
        t->row->at[t->k][t->points] = t->job.took;
        t->failed =
            kofn_net_score(t->net[0], &t->p->test_X, &t->p->test_y, &score);
        t->out->test_loss[t->points++] = score.loss;
        t->out->accuracy = score.accuracy;
    }
    return t->failed != KOFN_OK;
}

static size_t batch_of(const images *p)
{
    return smaller(p->X.rows, BATCH);
}

static kofn_status train(training *t, const kofn_matrix *pattern, double mu,
                         const char *spec, kofn_nets **nets)
{
    const kofn_nets_options o = {.size = sizeof o,
                                 .step = steps,
                                 .batch = batch_of(t->p),
                                 .iterations = t->out->iterations,
                                 .seed = 1,
                                 .verify = true,
                                 .watch = watch,
                                 .watch_ud = t};
    const kofn_faults faults =
        KOFN_FAULTS_INIT(.clock = KOFN_CLOCK_MODELLED, .pattern = pattern,
                         .whole = true);
    const kofn_problem pb = KOFN_PROBLEM_INIT(
        KOFN_STREAM, o.batch, IMAGES_PIXELS + 1, HIDDEN, KOFN_F64, false);
    kofn_port *port;
    kofn_status st = kofn_nets_new(nets, t->net, NETS, &t->p->X, &t->p->y, &o);

    if (!st)
        st = kofn_port_sim(&port, 4, &faults);
    if (!st)
        st = stream_job_open(&t->job, &pb, spec, mu, port);
    return st ? st : kofn_nets_train(*nets, t->job.job);
}

static kofn_status run_scheme(const images *p, size_t i, size_t k,
                              const kofn_matrix *pattern, result *out)
{
    const kofn_net_shape shape = {.size = sizeof shape,
                                  .layers = LAYERS,
                                  .widths = widths,
                                  .activation = KOFN_RELU};
    training t = {.p = p, .out = out, .row = &out->row[i], .k = k};
    kofn_nets *nets = NULL;
    kofn_status st = KOFN_OK;
    char spec[64];

    table1_spec(i, k, spec, sizeof spec);
    for (size_t j = 0; j < NETS && !st; j++)
        st = kofn_net_new(&t.net[j], &shape, j + 1);
    if (!st)
        st = train(&t, pattern, k < 2 ? 0 : out->row[i].of->mu, spec, &nets);
    stream_job_close(&t.job);
    kofn_nets_free(nets);
    for (size_t j = 0; j < NETS; j++)
        kofn_net_free(t.net[j]);
    out->row[i].time[k] = t.job.took;
    return t.failed ? t.failed : st;
}

/* ---- the rules ------------------------------------------------------------
 */

#define PER_ITERATION (3 * LAYERS - 1)

/* Computes the multiply-adds of the products of an iteration, in order. */
static void measure(size_t batch, double size[PER_ITERATION])
{
    size_t s = 0;
    double b = (double)batch;

    for (size_t l = 1; l <= LAYERS; l++)
        size[s++] = b * (double)(widths[l - 1] + 1) * (double)widths[l];
    for (size_t l = LAYERS; l >= 1; l--) {
        size[s++] = b * (double)(widths[l - 1] + 1) * (double)widths[l];
        if (l > 1)
            size[s++] = b * (double)widths[l - 1] * (double)widths[l];
    }
}

static kofn_status play(size_t i, size_t k, size_t batch,
                        const kofn_matrix *pattern, result *out)
{
    stream_setup x = table1_entrant(i, k);
    double size[PER_ITERATION];
    stream_played p;
    kofn_status st;

    measure(batch, size);
    x.pattern = pattern;
    x.products = out->products;
    x.size = size;
    st = stream_play(&x, &p);
    out->row[i].played[k] = p.time * 1e-9;
    return st;
}

/* Runs every row of Table 1, each scheme over the same pattern of slow
 * workers. */
static kofn_status compute(const images *p, unsigned iterations, uint64_t seed,
                           result *out)
{
    kofn_status st = KOFN_OK;

    *out = (result){.iterations = iterations,
                    .points = p->X.rows,
                    .products = (size_t)iterations * NETS * PER_ITERATION};
    for (size_t i = 0; i < TABLE1_ROWS && !st; i++) {
        trained *r = &out->row[i];
        kofn_matrix pattern;

        r->of = table1_at(i);
        st = kofn_pattern_new(&pattern, r->of->pattern, 4, out->products + 4,
                              SLOW, seed);
        for (size_t k = 0; k < TABLE1_SCHEMES && !st; k++) {
            st = play(i, k, batch_of(p), &pattern, out);
            if (!st)
                st = run_scheme(p, i, k, &pattern, out);
        }
        kofn_free(pattern.data);
    }
    return st;
}

/* ---- output ---------------------------------------------------------------
 */

static void add_row(const trained *r, json_t *rows)
{
    json_t *schemes = json_array();
    bool within = true;

    for (size_t k = 0; k < TABLE1_SCHEMES; k++) {
        within &= fabs(r->time[k] / r->played[k] - 1) <= BAND;
        papers_add(schemes,
                   "scheme:s seconds:f rules:f ratio:f printed:f seconds_to:o",
                   table1_names[k], r->time[k], r->played[k],
                   r->time[k] / r->time[0],
                   k ? r->of->printed[k - 1] : (double)NAN,
                   papers_reals(r->at[k], POINTS));
    }
    papers_add(rows, "name:s pattern:s mu:f ok:b schemes:o", r->of->title,
               r->of->pattern, r->of->mu, within, schemes);
}

static void add(const result *r, json_t *list)
{
    json_t *rows = json_array();

    for (size_t i = 0; i < TABLE1_ROWS; i++)
        add_row(&r->row[i], rows);
    papers_add(list,
               "scenario:i iterations:i points:z products:z test_loss:o "
               "test_accuracy:f apart:f ok:b rows:o",
               6, r->iterations, r->points, r->products,
               papers_reals(r->test_loss, POINTS), r->accuracy, r->worst,
               r->worst <= 1e-8, rows);
}

static kofn_status run(const papers_args *a, size_t k, json_t *list)
{
    result r;
    images p = {.X = {.data = NULL}};
    kofn_status st =
        a->mnist ? papers_mnist(a, &p) : images_make(&p, TRAIN, TEST, a->seed);

    (void)k;
    if (!st)
        st = compute(&p, (unsigned)papers_runs(a, ITERATIONS), a->seed, &r);
    images_free(&p);
    if (!st)
        add(&r, list);
    return st;
}

static void tell_table(json_t *o)
{
    json_t *row, *scheme;

    printf("%-7s %5s", "", "mu");
    for (size_t k = 1; k < TABLE1_SCHEMES; k++)
        printf("  %-7s rules printed", table1_names[k]);
    printf("  within 3 %% of the rules\n");
    for (size_t i = 0; (row = json_array_get(papers_at(o, "rows"), i)); i++) {
        papers_print(row, "{name:-7} {mu:5.2f}");
        for (size_t k = 1;
             (scheme = json_array_get(papers_at(row, "schemes"), k)); k++) {
            papers_print(scheme, "  {ratio:-7.3f} ");
            printf("%5.3f", papers_real(scheme, "rules") /
                                papers_real(row, "schemes.0.rules"));
            papers_print(scheme, " {printed:7.2f}");
        }
        papers_print(row, "  {ok}\n");
    }
}

static void tell_figure2(json_t *o)
{
    json_t *row = papers_at(o, "rows.1"), *scheme, *loss;

    papers_print(row, "\n"
                      "test loss of the first network by seconds, i.i.d., mu "
                      "= {mu} (Fig. 2)\n"
                      "iteration      loss");
    papers_each(papers_at(row, "schemes"), " {scheme:10}");
    putchar('\n');
    for (size_t i = 0; (loss = json_array_get(papers_at(o, "test_loss"), i));
         i++) {
        printf("%9zu %9.4f",
               (i + 1) * (size_t)papers_real(o, "iterations") / POINTS,
               json_number_value(loss));
        for (size_t k = 0;
             (scheme = json_array_get(papers_at(row, "schemes"), k)); k++)

            printf(" %10.1f", json_number_value(json_array_get(
                                  papers_at(scheme, "seconds_to"), i)));
        putchar('\n');
    }
}

static void tell(json_t *o)
{
    double points = papers_real(o, "points");

    printf("6: five networks 784-%d-%d-10, ", HIDDEN, HIDDEN);
    papers_print(o, "{iterations} iterations of ");
    printf("%.0f", fmin(points, BATCH));
    papers_print(o, " of {points} points, {products} products, all\n"
                    "   computed, on the simulator. Time relative to the "
                    "polynomial code (Table 1), by its\n"
                    "   rounds and by the same rounds under the rules\n");
    tell_table(o);
    tell_figure2(o);
    papers_print(o, "final accuracy {test_accuracy:.4f}; weights of all "
                    "networks, after every iteration, differ from\n"
                    "the plain ones by at most {apart:.1e} {ok}\n");
}

const papers_scenario stream_figure_2 = {run, tell, NULL};
