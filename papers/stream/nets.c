/* nets.c -- five networks trained side by side on a stream, whose rounds
 * take what Table 1's do ("Coded Sequential Matrix Multiplication For Straggler
 * Mitigation", Krishnan, Hosseini, Khisti, Table 1 and Figure 2).
 *
 * Every product is computed, on the simulator: a task takes a second for each
 * thousand million of multiply-adds, and who is slow 5 times that.  The networks
 * are narrower than the paper's, of which a product has 300 times as much work.
 */
#include "stream/stream.h"

#include <kofn/train.h>

#include <stdlib.h>
#include <string.h>

#define LAYERS 3
#define SLOW 5
#define BAND 0.03

static const size_t widths[LAYERS + 1] = {IMAGES_PIXELS, NETS_HIDDEN,
                                          NETS_HIDDEN, IMAGES_KINDS};
static const double steps[NETS] = {0.1, 0.15, 0.2, 0.25, 0.3};

/* ---- one training -------------------------------------------------------- */

typedef struct training {
    const images *p;
    nets_result *out;
    nets_row *row;
    size_t k, points; /* of Figure 2, that are behind it */
    kofn_net *net[NETS];
    stream_job job;
    kofn_status failed; /* of scoring */
} training;

/* Iterations of the first network until this point. */
static unsigned until(const nets_result *out, size_t point)
{
    return (unsigned)((point + 1) * out->iterations / FIGURE2_POINTS);
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
    while (now->net == 0 && t->points < FIGURE2_POINTS && !t->failed &&
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
    return p->X.rows < NETS_BATCH ? p->X.rows : NETS_BATCH;
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
        KOFN_STREAM, o.batch, IMAGES_PIXELS + 1, NETS_HIDDEN, KOFN_F64, false);
    kofn_port *port;
    kofn_status st = kofn_nets_new(nets, t->net, NETS, &t->p->X, &t->p->y, &o);

    if (!st)
        st = kofn_port_sim(&port, 4, &faults);
    if (!st)
        st = stream_job_open(&t->job, &pb, spec, mu, port);
    return st ? st : kofn_nets_train(*nets, t->job.job);
}

static kofn_status run_scheme(const images *p, size_t i, size_t k,
                              const kofn_matrix *pattern, nets_result *out)
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
        st = train(&t, pattern, k < 2 ? 0 : out->row[i].mu, spec, &nets);
    stream_job_close(&t.job);
    kofn_nets_free(nets);
    for (size_t j = 0; j < NETS; j++)
        kofn_net_free(t.net[j]);
    out->row[i].time[k] = t.job.took;
    return t.failed ? t.failed : st;
}

/* ---- beside the rules ---------------------------------------------------- */

#define PER_ITERATION (3 * LAYERS - 1)

/* Multiply-adds of the products of an iteration, in their order. */
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
                        const kofn_matrix *pattern, nets_result *out)
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

static void compare(nets_row *r)
{
    r->within = true;
    for (size_t k = 0; k < TABLE1_SCHEMES; k++)
        r->within &= fabs(r->time[k] / r->played[k] - 1) <= BAND;
    for (size_t k = 0; k < 3; k++) {
        r->ratio[k] = r->time[k + 1] / r->time[0];
        r->model[k] = r->played[k + 1] / r->played[0];
    }
}

kofn_status nets_run(const images *p, unsigned iterations, uint64_t seed,
                     nets_result *out)
{
    kofn_status st = KOFN_OK;

    *out = (nets_result){.iterations = iterations,
                         .points = p->X.rows,
                         .products = (size_t)iterations * NETS * PER_ITERATION};
    for (size_t i = 0; i < TABLE1_ROWS && !st; i++) {
        nets_row *r = &out->row[i];
        kofn_matrix pattern;

        table1_about(i, r);
        st = kofn_pattern_new(&pattern, r->pattern, 4, out->products + 4, SLOW,
                              seed);
        for (size_t k = 0; k < TABLE1_SCHEMES && !st; k++) {
            st = play(i, k, batch_of(p), &pattern, out);
            if (!st)
                st = run_scheme(p, i, k, &pattern, out);
        }
        if (!st)
            compare(r);
        kofn_free(pattern.data);
    }
    return st;
}
