/* check_bench.c -- the cost of checking results that are right.
 *
 * One thread computes the results of one worker after another again, and
 * checks and decodes those of the whole fleet, in turn. The check is compared
 * with two sums. The first is decoding plus the computing time of one worker:
 * the length of a round if all work at once on their own machines. The second
 * is decoding plus the computing time of all. Figures are processor time,
 * medians of repetitions; ratios are taken turn by turn.
 *
 * Also measures the scales of the operands, once for A and once per round for
 * the input, and the parities, once per survivor set.
 *
 *     check_bench [REPETITIONS]
 */
#include "bench.h"

#include "code/suspect.h"
#include "verify/compare.h"
#include "verify/norms.h"

#define MOST_SEATS 1000

static int reps = 9;

static kofn_matrix matrix(size_t rows, size_t cols, kofn_dtype dtype)
{
    kofn_matrix a = {kf_new(rows * cols, kf_dtype_size(dtype)), rows, cols,
                     cols, dtype};

    if (!a.data)
        exit(1);
    for (size_t i = 0; i < rows * cols; i++) {
        double x = (double)(i * 2654435761u % 1013) * 1e-3 - 0.5;

        if (dtype == KOFN_F64)
            ((double *)a.data)[i] = x;
        else
            ((float *)a.data)[i] = (float)x;
    }
    return a;
}

/* ---- a fleet ------------------------------------------------------------- */

typedef struct fleet {
    kofn_plan *plan;
    kf_code *code;
    kofn_matrix A, in, out, result[MOST_SEATS];
    kf_resident resident;
    kf_block *block[MOST_SEATS];
    kf_messages messages;
    kf_source source[MOST_SEATS];
    kofn_decoder *decoder;
    double *H, *row, *col;
    size_t n, q, cols;
    kf_scratch scratch;
    double scales, parity; /* seconds */
} fleet;

static void fleet_up(fleet *f, const char *spec, size_t n, kofn_problem pb)
{
    size_t seat[MOST_SEATS], components;
    uint32_t all[MOST_SEATS];
    double t;

    *f = (fleet){.n = n};
    for (size_t i = 0; i < n; i++)
        all[i] = (uint32_t)(seat[i] = i);
    check(kofn_plan_new(&f->plan, &pb, spec, n, 1), "plan");
    check(kf_code_new(&f->code, f->plan), "code");
    f->A = matrix(pb.m, pb.n, pb.dtype);
    f->in = matrix(pb.n, pb.p, pb.dtype);
    f->out = matrix(pb.m, pb.p, pb.dtype);
    check(kf_resident_dense(&f->resident, f->plan, &f->A), "cut");
    check(kf_data_encode(&f->resident, f->code, seat, n, f->block), "encode");
    check(kf_messages_begin(&f->messages, f->plan, &f->in, 1), "input");
    check(kf_messages_encode(&f->messages, f->code, seat, n), "messages");
    f->cols = f->plan->parts1 > 1 ? f->messages.parts.cols : pb.p;
    components = f->plan->layout.components;
    for (size_t i = 0; i < n; i++) {
        f->result[i] = matrix(components * f->plan->span, f->cols, pb.dtype);
        f->source[i] = (kf_source){&f->result[i], 0, f->plan->span};
    }
    check(kf_decoder_new(&f->decoder, f->code, all, n, false), "decoder");
    t = cpu_now();
    check(kf_parity(f->code, all, n, &f->H, &f->q), "parities");
    f->parity = cpu_now() - t;
    f->row = kf_new(f->plan->span, sizeof *f->row);
    f->col = kf_new(f->cols, sizeof *f->col);
    t = cpu_now();
    check(kf_norms_of_rows(&f->resident, 0, f->row), "rows");
    f->scales = cpu_now() - t;
    if (f->plan->parts1 > 1)
        check(kf_norms_of_columns(f->messages.parts.part,
                                  f->messages.parts.count, 1, f->col, f->cols),
              "columns");
    else
        check(kf_norms_of_columns(&f->in, 1, 1, f->col, f->cols), "columns");
}

static void fleet_down(fleet *f)
{
    for (size_t i = 0; i < f->n; i++) {
        kf_free(f->result[i].data);
        kf_block_drop(f->block[i]);
    }
    kf_free(f->A.data);
    kf_free(f->in.data);
    kf_free(f->out.data);
    kf_free(f->H);
    kf_free(f->row);
    kf_free(f->col);
    kf_messages_free(&f->messages);
    kf_resident_free(&f->resident);
    kf_decoder_free(f->decoder);
    kf_scratch_free(&f->scratch);
    kf_code_free(f->code);
    kofn_plan_free(f->plan);
}

/* ---- what is compared ---------------------------------------------------- */

/* Returns the seconds of workers lo..hi-1. */
static double compute(fleet *f, size_t lo, size_t hi)
{
    double t = cpu_now();

    for (size_t i = lo; i < hi; i++) {
        kf_buffer *in = kf_messages_take(&f->messages, i);

        check(kf_data_compute(f->block[i], &in->m, 0, f->plan->span,
                              &f->result[i]),
              "compute");
        kf_buffer_drop(in);
    }
    return cpu_now() - t;
}

static double compare_results(fleet *f, uint32_t number)
{
    uint32_t bad[MOST_SEATS];
    kf_found found = {.bad = bad};
    kf_compare c = {.plan = f->plan,
                    .code = f->code,
                    .decoder = f->decoder,
                    .H = f->H,
                    .q = f->q,
                    .source = f->source,
                    .lo = 0,
                    .hi = f->plan->span,
                    .most = 1,
                    .row = f->row,
                    .col = f->col,
                    .secret = 1,
                    .number = number};
    double t;

    c.liars = (f->n - kf_min(f->n, f->plan->layout.threshold)) / 2;
    c.independent = f->n - kf_min(f->n, f->plan->layout.threshold) - 1;
    check(kf_hidden_of(f->code, f->decoder, f->H, f->q,
                       kf_compare_few(&c, f->n, 0), &c.hidden),
          "hidden");
    t = cpu_now();
    check(kf_compare_results(&c, &found), "check");
    t = cpu_now() - t;
    if (found.count)
        exit(1);
    return t;
}

static double decode(fleet *f)
{
    double t = cpu_now();

    check(kf_decode(f->plan, f->decoder, f->source,
                    (kf_band){0, 0, f->plan->span}, &f->out, &f->scratch),
          "decode");
    return cpu_now() - t;
}

static void compare(const char *spec, size_t n, kofn_problem pb)
{
    double each[MOST], checked[MOST], decoded[MOST], one[MOST], whole[MOST];
    fleet f;

    fleet_up(&f, spec, n, pb);
    compute(&f, 0, n);
    for (int i = 0; i < reps; i++) {
        size_t worker = (size_t)i % n;

        each[i] = compute(&f, worker, worker + 1);
        checked[i] = compare_results(&f, (uint32_t)i);
        decoded[i] = decode(&f);
        one[i] = checked[i] / (each[i] + decoded[i]);
        whole[i] = checked[i] / ((double)n * each[i] + decoded[i]);
    }
    printf(
        "  %-28s %4zu x %6.2f MiB of result, %6.2f MiB of block  %s\n", spec, n,
        (double)(f.result[0].rows * f.cols * kf_dtype_size(pb.dtype)) / 0x1p20,
        (double)kf_block_bytes(f.block[n - 1]) / 0x1p20,
        pb.dtype == KOFN_F64 ? "f64" : "f32");
    printf("    check %8.3f ms  decode %8.3f  compute, each %8.3f  ratio to "
           "decode and one %.3f, all %.4f",
           1e3 * median(checked, reps), 1e3 * median(decoded, reps),
           1e3 * median(each, reps), median(one, reps), median(whole, reps));
    printf("  (scales %.2f ms, parities %.2f ms)\n", 1e3 * f.scales,
           1e3 * f.parity);
    figure(median(one, reps), "", "less",
           "check of %s of %zu, %zu x %zu by %zu %s", spec, n, pb.m, pb.n, pb.p,
           pb.dtype == KOFN_F64 ? "f64" : "f32");
    figure(1e3 * f.scales, "ms", "less",
           "scales of %s of %zu, %zu x %zu by %zu %s", spec, n, pb.m, pb.n,
           pb.p, pb.dtype == KOFN_F64 ? "f64" : "f32");
    fleet_down(&f);
}

/* Measures results of `mib` MiB per seat, each number a sum of 1000 products.
 */
static void products(size_t mib, kofn_dtype dtype)
{
    size_t size = kf_dtype_size(dtype), cols = 512;
    size_t rows = (mib << 20) / size / cols; /* of a block */
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATMUL, 9 * rows, 1000, cols, dtype, false);

    compare("mds:k=9", 12, pb);
    pb.m = 12 * rows;
    compare("mds:k=12,basis=harmonic", 15, pb);
    pb.m = 3 * rows;
    pb.p = 3 * cols;
    compare("polynomial:m=3,p=3", 12, pb);
    pb.m = rows;
    pb.p = cols;
    pb.n = 5000;
    compare("matdot:n=5", 12, pb);
}

static void vectors(size_t rows, size_t cols, kofn_dtype dtype)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATVEC, 9 * rows, cols, 1, dtype, false);

    compare("mds:k=9", 12, pb);
    compare("elastic:k=9", 24, pb);
    pb.m = 90 * rows;
    compare("mds:k=90", 100, pb);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        reps = atoi(argv[1]);
    if (argc > 2 || reps < 1 || reps > MOST) {
        fprintf(stderr, "usage: check_bench [REPETITIONS, 1..%d]\n", MOST);
        return 2;
    }
    kf_blas_single();
    printf("check_bench: medians of %d repetitions, one thread\n", reps);
    printf("1. products\n");
    products(1, KOFN_F64);
    products(4, KOFN_F64);
    products(4, KOFN_F32);
    printf("2. matvecs\n");
    vectors(256, 512, KOFN_F64);
    vectors(1024, 512, KOFN_F64);
    vectors(1024, 2048, KOFN_F64);
    return 0;
}
