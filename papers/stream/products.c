/* products.c -- products of real matrices in a stream of "Coded Sequential
 * Matrix Multiplication For Straggler Mitigation" (Krishnan, Hosseini,
 * Khisti), on workers in real time: threads, and processes.
 *
 * Workers sleep for most of a task's time, slow ones longer. So a machine with
 * few cores behaves like a fleet with one core per worker, as long as the
 * workers' computing time fits on its cores. */
#include "show.h"

#include "base/clock.h"

#include <stdlib.h>

#define SIZE 2000
/* Workers sleep most of the time, so few cores suffice. A usual task takes
 * IDLE times the time of its multiplications, a slow one FACTOR times that. */
#define IDLE 8
#define FACTOR 3
#define PATTERN "fritchman:a=0.05,b=1,M=2"
#define MU 0.25
#define TURNS 5 /* turns of all schemes, with a stretch of the pattern each */
#define EACH 12 /* products of each scheme in a turn */
#define PRODUCTS ((size_t)TURNS * EACH)

typedef struct result {
    struct row {
        double turn[TURNS], played[TURNS]; /* seconds; by the rules */
        double encoding, decoding;         /* seconds */
    } row[TABLE1_SCHEMES];
    double worst;     /* relative error of a product in one direction, ... */
    double predicted; /* ... and the error that the library predicts */
} result;

/* A place for workers. */
typedef struct place {
    const char *name;
    kofn_status (*open)(const kofn_problem *pb, const kofn_faults *faults,
                        kofn_port **out);
    void (*close)(void); /* called after its job was closed; or NULL */
} place;

/* ---- products ------------------------------------------------------------ */

#define FLIGHT 5 /* open products: delay + 2 */
#define PAIRS 2  /* pairs of operands, in turn */

typedef struct workload {
    size_t size;
    double *X[PAIRS], *Y[PAIRS], *C[FLIGHT];
    double *v, *want[PAIRS]; /* a vector, and X Y v; free(v) frees all */
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
    double *half, *next = malloc(n * ((2 * PAIRS + FLIGHT) * n + PAIRS + 2) *
                                 sizeof *next);

    w->v = next;
    if (!next)
        return KOFN_NOMEM;
    half = dice_matrix(seed, 0, n, 1, w->v);
    next = half + n;
    for (size_t i = 0; i < PAIRS; i++) {
        w->X[i] = next;
        w->Y[i] = dice_matrix(seed, 2 * i + 1, n, n, w->X[i]);
        w->want[i] = dice_matrix(seed, 2 * i + 2, n, n, w->Y[i]);
        next = w->want[i] + n;
        times(w->Y[i], n, w->v, half);
        times(w->X[i], n, half, w->want[i]);
    }
    for (size_t i = 0; i < FLIGHT; i++, next += n * n)
        w->C[i] = next;
    return KOFN_OK;
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

/* Returns the error of this product times the vector. */
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

/* Measures the time until the last product is finished, without the end of the
 * stream. */
static kofn_status multiply_all(const workload *w, stream_job *s,
                                double *seconds, result *out)
{
    kofn_time began = kf_clock();
    kofn_status st = KOFN_OK;

    for (size_t i = 0; i < EACH + FLIGHT && !st; i++) {
        kofn_report rep = KOFN_REPORT_INIT;

        if (i >= FLIGHT) {
            st =
                kofn_take(s->job, (uint32_t)(i - FLIGHT + 1), KOFN_NEVER, &rep);
            if (!st) {
                s->encoding += (double)rep.encoding * 1e-9;
                s->decoding += (double)rep.decoding * 1e-9;
                out->worst = fmax(out->worst, error_of(w, i - FLIGHT));
                out->predicted = fmax(out->predicted, rep.predicted);
            }
        }
        if (i < EACH && !st)
            st = put(w, s->job, i);
        if (i + 1 == EACH + FLIGHT)
            *seconds = (double)(kf_clock() - began) * 1e-9;
    }
    return st;
}

/* ---- all schemes --------------------------------------------------------- */

/* kofn's schemes, and the rules for each. */
static const struct {
    const char *spec;
    rhat_scheme rules;
} specs[TABLE1_SCHEMES] = {
    {"polynomial:m=1,p=3", {.kind = RHAT_ONCE, .threshold = 3}},
    {"uncoded", {.kind = RHAT_ONCE, .threshold = 4}},
    {"dip:m=2,p=4,T=3,lambda=2",
     {.kind = RHAT_DIP, .threshold = 8, .T = 3, .lambda = 2}},
    {"idip:m=2,p=4,N=8,W=4", {.kind = RHAT_IDIP, .N = 8, .W = 4}}};

static kofn_status run_scheme(const workload *w, size_t k,
                              const kofn_matrix *slowed, const place *where,
                              size_t turn, result *out)
{
    const kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_STREAM, w->size, w->size,
                                              w->size, KOFN_F64, false);
    const kofn_faults faults = KOFN_FAULTS_INIT(.pattern = slowed);
    bool once = specs[k].rules.kind == RHAT_ONCE;
    struct row *row = &out->row[k];
    stream_job s;
    kofn_port *workers;
    kofn_status st;

    PAPERS_TRY(where->open(&pb, &faults, &workers));
    st = stream_job_open(&s, &pb, specs[k].spec, once ? 0 : MU, workers);
    if (!st)
        st = multiply_all(w, &s, &row->turn[turn], out);
    stream_job_close(&s);
    if (where->close)
        where->close();
    row->encoding += s.encoding;
    row->decoding += s.decoding;
    return st;
}

/* Simulates the same rounds by the rules. */
static kofn_status play(size_t k, const kofn_matrix *pattern, double *time)
{
    const stream_setup x = {.scheme = specs[k].rules,
                            .workers = 4,
                            .products = EACH,
                            .alpha = FACTOR,
                            .mu = MU,
                            .pattern = pattern};
    stream_played p;
    kofn_status st = stream_play(&x, &p);
    *time = p.time;
    return st;
}

/* Slows all workers down by the same factor. */
static void slow_down(kofn_matrix *pattern)
{
    double *f = pattern->data;

    for (size_t i = 0; i < pattern->rows * pattern->ld; i++)
        f[i] *= IDLE;
}

/* Other load changes from minute to minute. So all schemes run over the same
 * short stretch of the pattern, one right after another, in rotating order,
 * and are compared within it. */
static kofn_status run_turn(const workload *w, size_t turn, const place *where,
                            kofn_matrix *pattern, result *out)
{
    kofn_status st = KOFN_OK;

    for (size_t k = 0; k < TABLE1_SCHEMES && !st; k++)
        st = play(k, pattern, &out->row[k].played[turn]);
    slow_down(pattern);
    for (size_t i = 0; i < TABLE1_SCHEMES && !st; i++) {
        size_t k = (turn + i) % TABLE1_SCHEMES;

        st = run_scheme(w, k, pattern, where, turn, out);
    }
    return st;
}

/* Returns the median of each turn's time relative to the first scheme's. */
static double middle(const double *took, const double *usual)
{
    double ratio[TURNS];

    for (size_t i = 0; i < TURNS; i++)
        ratio[i] = took[i] / usual[i];
    return papers_median(ratio, TURNS);
}

static kofn_status compute(size_t size, uint64_t seed, const place *where,
                           result *out)
{
    size_t rows = EACH + 4; /* until the last one is finished */
    workload w = {.size = size};
    kofn_matrix pattern = {.data = NULL};
    kofn_status st = load(&w, seed);

    *out = (result){.worst = 0};
    if (!st)
        st = kofn_pattern_new(&pattern, PATTERN, 4, TURNS * rows, FACTOR, seed);
    for (size_t i = 0; i < TURNS && !st; i++) {
        kofn_matrix part = pattern;

        part.rows = rows;
        part.data = (double *)pattern.data + i * rows * pattern.ld;
        st = run_turn(&w, i, where, &part, out);
    }
    kofn_free(pattern.data);
    free(w.v);
    return st;
}

/* ---- output ---------------------------------------------------------------
 */

static void add(const char *port, size_t size, const result *r, json_t *list)
{
    json_t *schemes = json_array();

    for (size_t k = 0; k < TABLE1_SCHEMES; k++) {
        const struct row *w = &r->row[k];
        double seconds = 0;

        for (size_t i = 0; i < TURNS; i++)
            seconds += w->turn[i];
        papers_add(schemes,
                   "scheme:s seconds:f products_a_second:f ratio:f model:f "
                   "encode_seconds:f decode_seconds:f",
                   specs[k].spec, seconds, PRODUCTS / seconds,
                   middle(w->turn, r->row[0].turn),
                   middle(w->played, r->row[0].played), w->encoding / PRODUCTS,
                   w->decoding / PRODUCTS);
    }
    papers_add(list,
               "scenario:i port:s size:z products:z turns:i idle:i factor:i "
               "rel_error:f predicted:f schemes:o",
               5, port, size, PRODUCTS, TURNS, IDLE, FACTOR, r->worst,
               r->predicted, schemes);
}

static kofn_status threads_open(const kofn_problem *pb,
                                const kofn_faults *faults, kofn_port **out)
{
    (void)pb;
    return kofn_port_threads(out, 4, faults);
}

static kofn_status run(const papers_args *a, size_t k, json_t *list)
{
    static const place places[] = {
        {"threads", threads_open, NULL},
        {"processes", processes_open, processes_close}};
    size_t size = scaled_size(fmin(papers_scale(a, 1), 1), SIZE, 4);
    kofn_status st = KOFN_OK;

    (void)k;
    for (size_t i = 0; i < 2 && !st; i++) {
        result r;

        st = compute(size, a->seed, &places[i], &r);
        if (!st)
            add(places[i].name, size, &r, list);
    }
    return st;
}

static void tell(json_t *o)
{
    papers_print(o, "5: {products} products of {size} x {size} each, four "
                    "workers on port {port}. A usual task takes\n"
                    "   {idle} times its computing time, a slow one {factor} "
                    "times that ");
    printf("(F2, mu = %g).\n"
           "   Time relative to the polynomial code: measured, and simulated "
           "by the rules; medians of %d turns\n"
           "%-26s %10s %6s %6s %8s %8s\n",
           MU, TURNS, "scheme", "products/s", "ratio", "rules", "encode s",
           "decode s");
    papers_each(papers_at(o, "schemes"),
                "{scheme:-26} {products_a_second:10.4f} {ratio:6.3f} "
                "{model:6.3f} {encode_seconds:8.4f} {decode_seconds:8.4f}\n");
    papers_print(
        o,
        "largest relative error {rel_error:.1e}, predicted {predicted:.1e}\n");
}

const papers_scenario stream_products = {run, tell, NULL};
