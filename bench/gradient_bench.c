/* gradient_bench.c -- the coordinator's cost of gradient codes.
 *
 * Decodes the sum of 64 workers' gradients of 10,000,000 float32 numbers with
 * a known decoder. The reference adds up the same number of messages of the
 * same length: by a plain loop over tiles, or by kofn's engine with
 * coefficients 1, whichever is faster. All are timed in turn, and ratios are
 * taken turn by turn. Then measures the time to find a decoder, once per set
 * of stragglers, and to set up adaptive codes that are drawn at random, best
 * of 8.
 *
 *     gradient_bench [REPETITIONS [NUMBERS]]
 */
#include "bench.h"

#include "base/rng.h"
#include "code/combine.h"
#include "run/run.h"

#define WORKERS 64
#define TILE 2048

static int reps = 7;
static size_t p = 4000000;

/* ---- decoding ------------------------------------------------------------ */

/* The messages; their contents do not matter. */
typedef struct fleet {
    kofn_plan *plan;
    kf_code *code;
    kofn_decoder *decoder;
    size_t count, length; /* messages; numbers in one */
    kofn_matrix *message;
    kf_source *source;
    uint32_t *answer;
} fleet;

/* True for stragglers: every third of the `out` stragglers follows another,
 * the others lie apart. */
static bool straggles(size_t i, size_t out)
{
    for (size_t k = 0; k < out; k++)
        if (i == (k / 3 * 17 + k % 3) % WORKERS)
            return true;
    return false;
}

static void fleet_up(fleet *f, const char *spec, size_t out, size_t submessages,
                     float *pool, double *found)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_SUM, p, 1, 1, KOFN_F32, false);
    const kofn_layout *L;
    double start;

    check(kofn_plan_new(&f->plan, &pb, spec, WORKERS, 1), spec);
    check(kf_code_new(&f->code, f->plan), spec);
    L = &f->plan->layout;
    f->count = 0;
    f->length = L->components * f->plan->span;
    f->answer = need(WORKERS * L->submessages * sizeof *f->answer);
    for (size_t i = 0; i < WORKERS; i++)
        for (size_t t = 0; t < submessages && !straggles(i, out); t++)
            f->answer[f->count++] = (uint32_t)(i * L->submessages + t);
    f->message = need(f->count * sizeof *f->message);
    f->source = need(f->count * sizeof *f->source);
    for (size_t k = 0; k < f->count; k++) {
        f->message[k] =
            (kofn_matrix){pool + k * f->length, f->length, 1, 1, KOFN_F32};
        f->source[k] = (kf_source){&f->message[k], 0, f->plan->span};
    }
    check(kf_decoder_new(&f->decoder, f->code, f->answer, f->count, false),
          spec); /* kofn has set up the rows */
    kf_decoder_free(f->decoder);
    start = now();
    check(kf_decoder_new(&f->decoder, f->code, f->answer, f->count, false),
          spec);
    *found = now() - start;
}

static void fleet_down(fleet *f)
{
    kf_decoder_free(f->decoder);
    kf_code_free(f->code);
    kofn_plan_free(f->plan);
    free(f->answer);
    free(f->message);
    free(f->source);
}

static void add_plainly(const fleet *f, float *out)
{
    for (size_t from = 0; from < f->length; from += TILE) {
        size_t n = kf_min(TILE, f->length - from);
        float *to = out + from;

        memset(to, 0, n * sizeof *to);
        for (size_t k = 0; k < f->count; k++) {
            const float *x = (const float *)f->message[k].data + from;

            for (size_t i = 0; i < n; i++)
                to[i] += x[i];
        }
    }
}

static void add_by_engine(const fleet *f, float *out)
{
    const void **src = need(f->count * sizeof *src);
    double *ones = need(f->count * sizeof *ones);
    void *dst = out;

    for (size_t k = 0; k < f->count; k++) {
        src[k] = f->message[k].data;
        ones[k] = 1;
    }
    kf_combine(&(kf_combination){1, f->count, ones, f->count, src, &dst},
               f->length, KOFN_F32);
    free(src);
    free(ones);
}

static double timed_decode(fleet *f, kofn_matrix *out, kf_scratch *scratch)
{
    double start = now();

    check(kf_decode(f->plan, f->decoder, f->source,
                    (kf_band){0, 0, f->plan->span}, out, scratch),
          "decoding");
    return now() - start;
}

static void decode(const char *spec, size_t out, size_t submessages,
                   float *pool, kofn_matrix *sum)
{
    double code[MOST], plain[MOST], ratio[MOST], found;
    kf_scratch scratch = {0};
    fleet f;

    fleet_up(&f, spec, out, submessages, pool, &found);
    timed_decode(&f, sum, &scratch);
    for (int r = 0; r < reps; r++) {
        double start = now(), engine;

        add_plainly(&f, sum->data);
        plain[r] = now() - start;
        start = now();
        add_by_engine(&f, sum->data);
        engine = now() - start;
        plain[r] = engine < plain[r] ? engine : plain[r];
        code[r] = timed_decode(&f, sum, &scratch);
        ratio[r] = code[r] / plain[r];
    }
    printf("  %-14s %2zu   %4.2f GB %7.0f ms %7.0f ms  %5.2f   %8.2f ms\n",
           spec, out, (double)(f.count * f.length) * 4e-9,
           median(plain, reps) * 1e3, median(code, reps) * 1e3,
           median(ratio, reps), found * 1e3);
    fflush(stdout);
    figure(median(ratio, reps), "", "less", "decoding %s, %zu out, %zu numbers",
           spec, out, p);
    kf_scratch_free(&scratch);
    fleet_down(&f);
}

/* ---- set-up -------------------------------------------------------------- */

static void set_up(const char *spec)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_SUM, p, 1, 1, KOFN_F32, false);
    double start = now();
    kofn_plan *plan;

    check(kofn_plan_new(&plan, &pb, spec, WORKERS, 1), spec);
    start = now() - start;
    printf("  %-34s %6.2f s\n", spec, start);
    figure(start, "s", "less", "set-up of %s", spec);
    kofn_plan_free(plan);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *spec;
        size_t out, submessages;
    } t[] = {
        {"uncoded", 0, 1},       {"gc:d=3", 2, 1},      {"gc:d=8", 7, 1},
        {"cgc:d=4,m=2", 2, 1},   {"cgc:d=8,m=4", 4, 1}, {"agc:d=3", 0, 2},
        {"agc:d=3", 2, 6},       {"agc:d=4", 0, 3},     {"agc:d=4", 3, 12},
        {"g-cgc:d=4,m=2", 2, 1}, {"g-agc:d=4", 0, 3},   {"g-agc:d=4", 2, 6}};
    size_t most;
    float *pool;
    kofn_matrix sum;

    if (argc > 1)
        reps = atoi(argv[1]);
    if (argc > 2)
        p = (size_t)strtoull(argv[2], NULL, 10);
    if (reps < 1 || reps > MOST || p < 1000) {
        fprintf(stderr, "usage: gradient_bench [REPETITIONS [NUMBERS]]\n");
        return 2;
    }
    most = WORKERS * (p + 1000);
    pool = need(most * sizeof *pool);
    for (size_t i = 0; i < most; i++)
        pool[i] = (float)(i % 1013) * 1e-3f - 0.5f;
    sum = (kofn_matrix){need((p + 1000) * sizeof(float)), p, 1, 1, KOFN_F32};
    printf("gradients of %zu float32 from %d workers, medians of %d, one "
           "thread, %s\n",
           p, WORKERS, reps, kf_combine_level());
    printf(
        "  scheme        out  messages  plain sum    decoding  ratio   finding "
        "the decoder\n");
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        decode(t[i].spec, t[i].out, t[i].submessages, pool, &sum);
    printf("set-up on %d workers\n", WORKERS);
    set_up("agc:d=3");
    set_up("agc:d=3,form=staircase,draws=8");
    set_up("agc:d=3,form=decoupled,draws=8");
    set_up("gc:d=12");
    free(pool);
    free(sum.data);
    return 0;
}
