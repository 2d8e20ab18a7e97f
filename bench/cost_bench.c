/* cost_bench.c -- the cost of a round if no worker is missing.
 *
 * For every scheme and operation, on threads. The time of a round is divided
 * by its share of the work (docs/model.md: `load` times the workers) times
 * plain BLAS of the same shape. 1 means that coding costs its redundancy and
 * nothing else. A round and a plain product run in turn. Prints medians of the
 * ratios of ROUNDS turns, worst first:
 *
 *     wall   time, over plain BLAS with one thread per core.
 *     cpu    processor time of the process, over one thread of BLAS. It is
 *            meaningful on a busy machine too, but misses waiting.
 *
 * A ratio below 1 is possible. If more answers are asked for than needed, the
 * rest is cancelled and counts in no worker's share.
 *
 *     cost_bench [ROUNDS [SIZE]] */
#include "bench.h"

#include <cblas.h>
#include <unistd.h>

#include "mat/mat.h"

typedef struct entry {
    kofn_op op;
    const char *spec;
    size_t workers;
    size_t cols; /* columns of the input; 0: SIZE */
} entry;

static const entry entries[] = {
    {KOFN_MATMUL, "uncoded", 1, 0},
    {KOFN_MATMUL, "uncoded", 2, 0},
    {KOFN_MATMUL, "uncoded", 4, 0},
    {KOFN_MATMUL, "elastic:k=3", 4, 0},
    {KOFN_MATMUL, "mds:k=3", 4, 0},
    {KOFN_MATMUL, "replication:k=2", 4, 0},
    {KOFN_MATMUL, "polynomial:m=2,p=2", 6, 0},
    {KOFN_MATMUL, "matdot:n=2", 4, 0},
    {KOFN_MATMUL, "polydot:m=2,n=2,p=1", 8, 0},
    {KOFN_MATMUL, "gpd:m=2,n=2,p=1", 6, 0},
    {KOFN_MATMUL, "product:m=2,m2=3,p=2,p2=3", 9, 0},
    {KOFN_MATMUL, "elastic:k=3", 4, 64},
    {KOFN_MATVEC, "uncoded", 2, 1},
    {KOFN_MATVEC, "elastic:k=3", 4, 1},
    {KOFN_MATVEC, "mds:k=3", 4, 1},
    {KOFN_LEFT, "elastic:k=2", 2, 0},
    {KOFN_LEFT, "elastic:k=3", 4, 0},
    {KOFN_GRAM, "pcr:r=2", 4, 1},
    {KOFN_GRAM, "pcr:r=2", 2, 1},
};
#define ENTRIES (sizeof entries / sizeof *entries)

static size_t size = 1500;
static int rounds = 3, cores;

typedef struct line {
    const entry *e;
    double work, wall, cpu;
} line;

static double process_cpu(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static kofn_matrix filled(size_t rows, size_t cols, uint32_t seed)
{
    kofn_matrix a = {need(rows * cols * 8), rows, cols, cols, KOFN_F64};
    double *x = a.data;

    for (size_t i = 0; i < rows * cols; i++) {
        seed = seed * 1664525 + 1013904223;
        x[i] = (double)(seed >> 8) * 0x1p-23 - 1;
    }
    return a;
}

/* ---- plain --------------------------------------------------------------- */

static void plain(const entry *e, const kofn_matrix *A, const kofn_matrix *in,
                  kofn_matrix *out, void *margins)
{
    if (e->op == KOFN_LEFT) {
        kf_mat_multiply(in, A, false, out->data);
        return;
    }
    if (e->op != KOFN_GRAM) {
        kf_mat_multiply(A, in, false, out->data);
        return;
    }
    kf_mat_multiply(A, in, false, margins);
    cblas_dgemv(CblasRowMajor, CblasTrans, (int)A->rows, (int)A->cols, 1,
                A->data, (int)A->ld, margins, 1, 0, out->data, 1);
}

/* Returns the seconds with `threads` threads of BLAS. */
static double plain_time(const entry *e, const kofn_matrix *A,
                         const kofn_matrix *in, kofn_matrix *out, void *margins,
                         int threads)
{
    double (*clock)(void) = threads > 1 ? now : process_cpu;
    double t;

    kf_blas_restore(threads);
    t = clock();
    plain(e, A, in, out, margins);
    t = clock() - t;
    kf_blas_single();
    return t;
}

/* In a left product a code of rows deals each strip to exactly as many workers
 * as needed, so it does the work once (docs/math/elastic.md). */
static kofn_status one_round(const entry *e, kofn_job *job,
                             const kofn_matrix *in, kofn_matrix *out)
{
    uint32_t number;

    if (e->op != KOFN_LEFT)
        return kofn_round(job, in, out, NULL);
    if (kofn_put_at(job, 0, true, in, out, &number))
        return KOFN_STATE;
    return kofn_take(job, number, KOFN_NEVER, NULL);
}

/* ---- a row of the table -------------------------------------------------- */

static line measure(const entry *e)
{
    size_t cols = e->cols ? e->cols : size;
    bool left = e->op == KOFN_LEFT;
    kofn_problem pb = KOFN_PROBLEM_INIT(left ? KOFN_MATMUL : e->op, size, size,
                                        cols, KOFN_F64, false);
    kofn_matrix A = filled(size, size, 1);
    kofn_matrix in = left ? filled(cols, size, 2) : filled(size, cols, 2);
    kofn_matrix out = left ? filled(cols, size, 3) : filled(size, cols, 3);
    kofn_matrix margins = filled(size, 1, 4);
    double wall[MOST], cpu[MOST];
    kofn_options o = KOFN_OPTIONS_INIT;
    kofn_plan_info info = KOFN_PLAN_INFO_INIT;
    kofn_plan *plan;
    kofn_port *port;
    kofn_job *job;
    double work;

    check(kofn_plan_new(&plan, &pb, e->spec, e->workers, 1), e->spec);
    if (left)
        check(kofn_plan_serve_left(plan, cols), e->spec);
    check(kofn_plan_describe(plan, false, &info), e->spec);
    check(kofn_port_threads(&port, e->workers, NULL), e->spec);
    check(kofn_open(&job, plan, port, &o), e->spec);
    check(kofn_place(job, &A), e->spec);
    work = left ? 1 : info.load * (double)e->workers;
    for (int i = -1; i < rounds; i++) { /* the first one warms up */
        double w = now(), c = process_cpu();
        int at = i < 0 ? 0 : i;

        check(one_round(e, job, &in, &out), e->spec);
        w = now() - w;
        c = process_cpu() - c;
        wall[at] =
            w / (work * plain_time(e, &A, &in, &out, margins.data, cores));
        cpu[at] = c / (work * plain_time(e, &A, &in, &out, margins.data, 1));
    }
    kofn_close(job);
    kofn_plan_free(plan);
    free(A.data);
    free(in.data);
    free(out.data);
    free(margins.data);
    return (line){e, work, median(wall, rounds), median(cpu, rounds)};
}

static int worst_first(const void *a, const void *b)
{
    double x = ((const line *)a)->cpu, y = ((const line *)b)->cpu;

    return (x < y) - (x > y);
}

static void table(void)
{
    static const char *const name[] = {[KOFN_MATVEC] = "A x",
                                       [KOFN_MATMUL] = "A B",
                                       [KOFN_LEFT] = "B A",
                                       [KOFN_GRAM] = "A'A x"};
    line of[ENTRIES];

    for (size_t i = 0; i < ENTRIES; i++)
        of[i] = measure(&entries[i]);
    qsort(of, ENTRIES, sizeof *of, worst_first);
    printf("%-6s %-26s %7s %7s %6s %6s %6s\n", "", "", "columns", "workers",
           "work", "wall", "cpu");
    for (size_t i = 0; i < ENTRIES; i++) {
        const entry *e = of[i].e;

        printf("%-6s %-26s %7zu %7zu %6.2f %6.2f %6.2f\n", name[e->op], e->spec,
               e->cols ? e->cols : size, e->workers, of[i].work, of[i].wall,
               of[i].cpu);
        figure(of[i].wall, "", "less", "wall %s %s, %zu columns, %zu workers",
               name[e->op], e->spec, e->cols ? e->cols : size, e->workers);
        figure(of[i].cpu, "", "less", "cpu %s %s, %zu columns, %zu workers",
               name[e->op], e->spec, e->cols ? e->cols : size, e->workers);
    }
}

int main(int argc, char **argv)
{
    kofn_machine m = KOFN_MACHINE_INIT;

    if (argc > 1)
        rounds = atoi(argv[1]);
    if (argc > 2)
        size = strtoul(argv[2], NULL, 10);
    if (size < 1 || size > 20000 || rounds < 1 || rounds > MOST || argc > 3) {
        fprintf(stderr,
                "usage: cost_bench [ROUNDS in 1..%d [SIZE in 1..20000]]\n",
                MOST);
        return 2;
    }
    cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    kofn_machine_info(&m);
    printf("A of %zu x %zu; %d cores; kernels %s, %s\n", size, size, cores,
           m.simd, m.blas);
    table();
    return 0;
}
