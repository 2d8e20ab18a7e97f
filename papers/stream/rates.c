/* rates.c -- products of real matrices one after the other, by workers
 * whose time is real.
 *
 * Who straggles waits, and so does everybody else for most of a task's time: what
 * is measured is a fleet whose workers have a core each, on a machine that has
 * fewer, as long as they compute for less of the time than there are cores.
 */
#include "stream/stream.h"

#include "base/clock.h"

#include <stdlib.h>

/* ---- a stream's job ------------------------------------------------------ */

static void add_round(void *ud, const kofn_stream_round *round)
{
    stream_job *s = ud;

    s->took += (double)round->took * 1e-9;
}

kofn_status stream_job_open(stream_job *s, const kofn_problem *pb,
                            const char *spec, double mu, kofn_port *port)
{
    kofn_options opt = KOFN_OPTIONS_INIT;
    kofn_status st;

    *s = (stream_job){.plan = NULL};
    opt.mu = mu;
    opt.late = -1; /* as published: nobody else stands in for who is slow */
    st = kofn_plan_new(&s->plan, pb, spec, 4, 1);
    if (st) {
        kofn_port_close(port);
        return st;
    }
    st = kofn_open(&s->job, s->plan, port, &opt);
    if (!st)
        kofn_on_round(s->job, add_round, s);
    return st;
}

void stream_job_count(stream_job *s, const kofn_report *rep)
{
    s->encoding += (double)rep->encoding * 1e-9;
    s->decoding += (double)rep->decoding * 1e-9;
}

void stream_job_close(stream_job *s)
{
    kofn_close(s->job);
    kofn_plan_free(s->plan);
    s->job = NULL;
    s->plan = NULL;
}

/* ---- products ------------------------------------------------------------ */

#define FLIGHT 5 /* products that are put and not taken: delay + 2 */
#define PAIRS 2  /* of operands, in turn                           */

typedef struct workload {
    size_t size, products;
    double *X[PAIRS], *Y[PAIRS], *C[FLIGHT];
    double *v, *want[PAIRS]; /* a vector, and X Y v */
} workload;

static void times(const double *A, size_t n, const double *v, double *out)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = 0;
        for (size_t j = 0; j < n; j++)
            out[i] += A[i * n + j] * v[j];
    }
}

static kofn_status load(workload *w, uint64_t seed)
{
    size_t n = w->size;
    double *half = malloc(n * sizeof *half);
    bool all = half != NULL;

    w->v = dice_matrix(seed, 0, n, 1);
    all &= w->v != NULL;
    for (size_t i = 0; i < PAIRS; i++) {
        w->X[i] = dice_matrix(seed, 2 * i + 1, n, n);
        w->Y[i] = dice_matrix(seed, 2 * i + 2, n, n);
        w->want[i] = malloc(n * sizeof(double));
        all &= w->X[i] && w->Y[i] && w->want[i];
        if (!all)
            break;
        times(w->Y[i], n, w->v, half);
        times(w->X[i], n, half, w->want[i]);
    }
    for (size_t i = 0; i < FLIGHT; i++)
        all &= (w->C[i] = malloc(n * n * sizeof(double))) != NULL;
    free(half);
    return all ? KOFN_OK : KOFN_NOMEM;
}

static void unload(workload *w)
{
    for (size_t i = 0; i < PAIRS; i++) {
        free(w->X[i]);
        free(w->Y[i]);
        free(w->want[i]);
    }
    for (size_t i = 0; i < FLIGHT; i++)
        free(w->C[i]);
    free(w->v);
}

static kofn_status put(const workload *w, kofn_job *job, size_t i)
{
    size_t n = w->size;
    kofn_matrix X = as_matrix(w->X[i % PAIRS], n, n),
                Y = as_matrix(w->Y[i % PAIRS], n, n),
                C = as_matrix(w->C[i % FLIGHT], n, n);
    uint32_t number;

    return kofn_put_pair(job, &X, &Y, &C, &number);
}

/* What this product makes of the vector, against what it should. */
static double error_of(const workload *w, size_t i)
{
    const double *C = w->C[i % FLIGHT], *want = w->want[i % PAIRS];
    double off = 0, size = 0;

    for (size_t r = 0; r < w->size; r++) {
        double sum = -want[r];

        for (size_t j = 0; j < w->size; j++)
            sum += C[r * w->size + j] * w->v[j];
        off += sum * sum;
        size += want[r] * want[r];
    }
    return sqrt(off / size);
}

/* The time is that until the last is over, however long the stream then needs to
 * end. */
static kofn_status multiply_all(const workload *w, stream_job *s,
                                double *seconds, double *worst)
{
    kofn_time began = kf_clock();
    kofn_status st = KOFN_OK;

    for (size_t i = 0; i < w->products + FLIGHT && !st; i++) {
        kofn_report rep = KOFN_REPORT_INIT;

        if (i >= FLIGHT) {
            st =
                kofn_take(s->job, (uint32_t)(i - FLIGHT + 1), KOFN_NEVER, &rep);
            if (!st) {
                stream_job_count(s, &rep);
                *worst = fmax(*worst, error_of(w, i - FLIGHT));
            }
        }
        if (i < w->products && !st)
            st = put(w, s->job, i);
        if (i + 1 == w->products + FLIGHT)
            *seconds = (double)(kf_clock() - began) * 1e-9;
    }
    return st;
}

/* ---- all schemes --------------------------------------------------------- */

/* As kofn has them, and the rules. */
static const struct {
    const char *spec;
    rhat_scheme rules;
} schemes[TABLE1_SCHEMES] = {
    {"polynomial:m=1,p=3", {.kind = RHAT_ONCE, .threshold = 3}},
    {"uncoded", {.kind = RHAT_ONCE, .threshold = 4}},
    {"dip:m=2,p=4,T=3,lambda=2",
     {.kind = RHAT_DIP, .threshold = 8, .T = 3, .lambda = 2}},
    {"idip:m=2,p=4,N=8,W=4", {.kind = RHAT_IDIP, .N = 8, .W = 4}}};

static kofn_status run_scheme(const workload *w, size_t k,
                              const kofn_matrix *slowed, const rates_port *port,
                              size_t turn, rates_result *out)
{
    const kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_STREAM, w->size, w->size,
                                              w->size, KOFN_F64, false);
    const kofn_faults faults = KOFN_FAULTS_INIT(.pattern = slowed);
    bool once = schemes[k].rules.kind == RHAT_ONCE;
    struct rates_row *row = &out->row[k];
    stream_job s;
    kofn_port *workers;
    kofn_status st;

    PAPERS_TRY(port->open(port->ud, &pb, &faults, &workers));
    st =
        stream_job_open(&s, &pb, schemes[k].spec, once ? 0 : RATES_MU, workers);
    if (!st)
        st = multiply_all(w, &s, &row->turn[turn], &out->worst);
    stream_job_close(&s);
    if (port->close)
        port->close(port->ud);
    row->encoding += s.encoding;
    row->decoding += s.decoding;
    return st;
}

/* The same rounds by the rules. */
static kofn_status play(const workload *w, size_t k, const kofn_matrix *pattern,
                        double *time)
{
    const stream_setup x = {.scheme = schemes[k].rules,
                            .workers = 4,
                            .products = w->products,
                            .alpha = RATES_FACTOR,
                            .mu = RATES_MU,
                            .pattern = pattern};
    stream_played p;
    kofn_status st = stream_play(&x, &p);
    *time = p.time;
    return st;
}

/* Everybody takes so many times as long. */
static void slow_down(kofn_matrix *pattern)
{
    double *f = pattern->data;

    for (size_t i = 0; i < pattern->rows * pattern->ld; i++)
        f[i] *= RATES_IDLE;
}

/* What else the machine does changes from minute to minute: all schemes have the
 * same short stretch of the pattern, one right after the other, each turn another
 * first, and are compared within it. */
static kofn_status run_turn(const workload *w, size_t turn,
                            const rates_port *port, kofn_matrix *pattern,
                            rates_result *out)
{
    kofn_status st = KOFN_OK;

    for (size_t k = 0; k < TABLE1_SCHEMES && !st; k++)
        st = play(w, k, pattern, &out->row[k].turn_model[turn]);
    slow_down(pattern);
    for (size_t i = 0; i < TABLE1_SCHEMES && !st; i++) {
        size_t k = (turn + i) % TABLE1_SCHEMES;

        st = run_scheme(w, k, pattern, port, turn, out);
    }
    return st;
}

/* The median of what each turn took by what the first scheme took in it. */
static double middle(const double *took, const double *usual)
{
    double ratio[RATES_TURNS];

    for (size_t i = 0; i < RATES_TURNS; i++)
        ratio[i] = took[i] / usual[i];
    return papers_median(ratio, RATES_TURNS);
}

static void sum_up(rates_result *out)
{
    for (size_t k = 0; k < TABLE1_SCHEMES; k++) {
        struct rates_row *row = &out->row[k];

        row->spec = schemes[k].spec;
        for (size_t i = 0; i < RATES_TURNS; i++)
            row->seconds += row->turn[i];
        row->ratio = middle(row->turn, out->row[0].turn);
        row->model = middle(row->turn_model, out->row[0].turn_model);
        row->encoding /= (double)out->products;
        row->decoding /= (double)out->products;
    }
}

kofn_status rates_run(size_t size, uint64_t seed, const rates_port *port,
                      rates_result *out)
{
    size_t rows = RATES_EACH + 4; /* until the last is over */
    workload w = {.size = size, .products = RATES_EACH};
    kofn_matrix pattern = {.data = NULL};
    kofn_status st = load(&w, seed);

    *out = (rates_result){.size = size,
                          .products = (size_t)RATES_TURNS * w.products};
    if (!st)
        st = kofn_pattern_new(&pattern, RATES_PATTERN, 4, RATES_TURNS * rows,
                              RATES_FACTOR, seed);
    for (size_t i = 0; i < RATES_TURNS && !st; i++) {
        kofn_matrix part = pattern;

        part.rows = rows;
        part.data = (double *)pattern.data + i * rows * pattern.ld;
        st = run_turn(&w, i, port, &part, out);
    }
    if (!st)
        sum_up(out);
    kofn_free(pattern.data);
    unload(&w);
    return st;
}
