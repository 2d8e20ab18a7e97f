/* regress_bench.c -- iterations of regression against their parts.
 *
 * One step of least squares with all workers present, against one cblas_dgemv
 * and one with the transpose. Both cover the bytes that all workers together
 * are asked for, on the same number of cores: coding should cost its
 * redundancy and nothing else. If fewer answers suffice, the other workers are
 * stopped and a step costs less; the first code needs all answers. The two are
 * measured in turn, and ratios are taken turn by turn.
 *
 *     regress_bench [REPETITIONS]
 */
#include "bench.h"

#include <cblas.h>
#include <unistd.h>

static int reps = 15;

/* ---- a regression on workers --------------------------------------------- */

typedef struct rig {
    kofn_matrix X, y, w;
    kofn_regression *r;
    kofn_plan *plan;
    kofn_job *job;
    size_t rows; /* rows of work, over all workers */
} rig;

static void rig_up(rig *r, const char *spec, size_t workers, size_t m, size_t n)
{
    kofn_regress_options o = {
        .size = sizeof o, .step = 1e-9, .tol = 1e-300, .max_iterations = 1};
    kofn_plan_info info = KOFN_PLAN_INFO_INIT;
    kofn_problem pb = {.size = sizeof pb};
    kofn_port *port;

    r->X = (kofn_matrix){numbers(m * n), m, n, n, KOFN_F64};
    r->y = (kofn_matrix){numbers(m), m, 1, 1, KOFN_F64};
    r->w = (kofn_matrix){numbers(n), n, 1, 1, KOFN_F64};
    check(kofn_regression_new(&r->r, KOFN_DENSE(&r->X), &r->y, &o),
          "regression");
    check(kofn_regression_problem(r->r, spec, workers, &pb), "problem");
    check(kofn_plan_new(&r->plan, &pb, spec, workers, 1), "plan");
    if (pb.op == KOFN_MATVEC)
        check(kofn_plan_serve_left(r->plan, 1), "plan");
    check(kofn_plan_describe(r->plan, false, &info), "describe");
    check(kofn_port_threads(&port, workers, NULL), "port");
    check(kofn_open(&r->job, r->plan, port, NULL), "open");
    check(kofn_regression_place(r->r, r->job, pb.op), "place");
    r->rows = (size_t)(info.load * (double)(m * workers) + 0.5);
}

static double one_step(rig *r)
{
    double t = now();

    check(kofn_regress(r->r, &r->w, NULL), "regress");
    return now() - t;
}

static void rig_down(rig *r)
{
    kofn_close(r->job);
    kofn_plan_free(r->plan);
    kofn_regression_free(r->r);
    free(r->X.data);
    free(r->y.data);
    free(r->w.data);
}

/* ---- without workers ------------------------------------------------------
 */

typedef struct plain {
    size_t m, n;
    double *B, *w, *t, *g;
} plain;

static plain plain_up(size_t m, size_t n)
{
    return (plain){m, n, numbers(m * n), numbers(n), numbers(m), numbers(n)};
}

static double two_products(const plain *p)
{
    double t = now();

    cblas_dgemv(CblasRowMajor, CblasNoTrans, (int)p->m, (int)p->n, 1, p->B,
                (int)p->n, p->w, 1, 0, p->t, 1);
    cblas_dgemv(CblasRowMajor, CblasTrans, (int)p->m, (int)p->n, 1, p->B,
                (int)p->n, p->t, 1, 0, p->g, 1);
    return now() - t;
}

static void plain_down(plain *p)
{
    free(p->B);
    free(p->w);
    free(p->t);
    free(p->g);
}

static void against_products(const char *spec, size_t workers, size_t m,
                             size_t n)
{
    double ratio[MOST], coded[MOST], alone[MOST];
    int cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    plain p;
    rig r;

    rig_up(&r, spec, workers, m, n);
    p = plain_up(r.rows, n);
    one_step(&r);
    for (int i = 0; i < reps; i++) {
        blas_threads(cores);
        alone[i] = two_products(&p);
        blas_threads(1);
        coded[i] = one_step(&r);
        ratio[i] = coded[i] / alone[i];
    }
    printf(
        "  %-12s %2zu workers  %6.1f MB of work  step %7.2f ms  two products "
        "%7.2f ms",
        spec, workers, (double)(r.rows * n) * 8e-6, 1e3 * median(coded, reps),
        1e3 * median(alone, reps));
    printf("  ratio %.2f", median(ratio, reps));
    printf("  (%.2f..%.2f)\n", ratio[0], ratio[reps - 1]);
    figure(median(ratio, reps), "", "less", "step of %s of %zu", spec, workers);
    plain_down(&p);
    rig_down(&r);
}

int main(int argc, char **argv)
{
    kofn_machine m = KOFN_MACHINE_INIT;

    if (argc > 1)
        reps = atoi(argv[1]);
    if (reps < 1 || reps > MOST) {
        fprintf(stderr, "usage: regress_bench [REPETITIONS in 1..%d]\n", MOST);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    kofn_machine_info(&m);
    printf("steps of least squares on 16000 x 1000; kernels %s, %s\n", m.simd,
           m.blas);
    printf("X' X w, all present (wanted <= 1.10)\n");
    against_products("pcr:r=2", 7, 16000, 1000);
    against_products("pcr:r=2", 4, 16000, 1000);
    against_products("pcr:r=3", 8, 16000, 1000);
    against_products("pcr:r=10", 40, 16000, 1000);
    printf("sums over parts, and X w followed by z' X\n");
    against_products("gc:d=2", 8, 16000, 1000);
    against_products("elastic:k=4", 8, 16000, 1000);
    return 0;
}
