/* round_bench.c -- whole rounds against their parts.
 *
 * 1. An elastic matvec with all workers present, against one cblas_dgemv on
 * the same number of cores: the cost of coding if nothing goes wrong. 2. A
 * task with an empty kernel, against a bare hand-over by mutex and condition
 * variable: the cost of the coordinator. 3. The time of a round times n on the
 * simulator's measured clock: the work of a round falls as 1/n. 4. A thousand
 * simulated workers.
 *
 * The compared values are measured in turn; ratios are taken turn by turn.
 *
 *     round_bench [REPETITIONS] */
#include "bench.h"

#include "hand_over.h"

#include <cblas.h>
#include <sys/resource.h>
#include <unistd.h>

static int reps = 9;

/* ---- a job --------------------------------------------------------------- */

typedef struct rig {
    kofn_plan *plan;
    kofn_job *job;
    kofn_matrix A, x, y;
} rig;

static void rig_up(rig *r, const char *spec, size_t workers, size_t m, size_t n,
                   const kofn_faults *sim, unsigned pieces)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_MATVEC, m, n, 1, KOFN_F64, false);
    kofn_options opt = KOFN_OPTIONS_INIT;
    kofn_port *port;

    opt.pieces = pieces;
    r->A = (kofn_matrix){numbers(m * n), m, n, n, KOFN_F64};
    r->x = (kofn_matrix){numbers(n), n, 1, 1, KOFN_F64};
    r->y = (kofn_matrix){numbers(m), m, 1, 1, KOFN_F64};
    check(kofn_plan_new(&r->plan, &pb, spec, workers, 1), "plan");
    check(sim ? kofn_port_sim(&port, workers, sim)
              : kofn_port_threads(&port, workers, NULL),
          "port");
    check(kofn_open(&r->job, r->plan, port, &opt), "open");
    check(kofn_place(r->job, &r->A), "place");
}

static double one_round(rig *r, kofn_report *rep)
{
    double t = now();

    check(kofn_round(r->job, &r->x, &r->y, rep), "round");
    return now() - t;
}

static void rig_down(rig *r)
{
    kofn_close(r->job);
    kofn_plan_free(r->plan);
    free(r->A.data);
    free(r->x.data);
    free(r->y.data);
}

/* ---- 1: against dgemv ---------------------------------------------------- */

static void against_dgemv(const char *spec, size_t workers, size_t m, size_t n)
{
    double ratio[MOST], coded[MOST], plain[MOST];
    int cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    rig r;

    rig_up(&r, spec, workers, m, n, NULL, 0);
    one_round(&r, NULL);
    for (int i = 0; i < reps; i++) {
        double t;

        blas_threads(cores);
        t = now();
        cblas_dgemv(CblasRowMajor, CblasNoTrans, (int)m, (int)n, 1, r.A.data,
                    (int)n, r.x.data, 1, 0, r.y.data, 1);
        plain[i] = now() - t;
        blas_threads(1);
        coded[i] = one_round(&r, NULL);
        ratio[i] = coded[i] / plain[i];
    }
    printf("  %-16s %2zu workers  %5zu x %-5zu  coded %7.2f ms  dgemv %7.2f ms"
           "  ratio %.2f",
           spec, workers, m, n, 1e3 * median(coded, reps),
           1e3 * median(plain, reps), median(ratio, reps));
    printf("  (%.2f..%.2f)\n", ratio[0], ratio[reps - 1]);
    figure(median(ratio, reps), "", "less", "%s of %zu against dgemv", spec,
           workers);
    rig_down(&r);
}

/* ---- 2: against a bare hand-over ----------------------------------------- */

static void against_hand_over(int workers)
{
    int rounds = 2000 / workers + 50;
    double ratio[MOST], ours[MOST], bare[MOST];
    hands h;
    rig r;

    hands_up(&h, workers);
    rig_up(&r, "uncoded", (size_t)workers, (size_t)workers, 1, NULL, 1);
    one_round(&r, NULL);
    for (int i = 0; i < reps; i++) {
        double t;

        bare[i] = hand_over(&h, 1, rounds);
        t = now();
        for (int k = 0; k < rounds; k++)
            one_round(&r, NULL);
        ours[i] = now() - t;
        ratio[i] = ours[i] / bare[i];
        ours[i] *= 1e6 / rounds / workers;
        bare[i] *= 1e6 / rounds / workers;
    }
    printf("  %3d workers  a task %6.2f us  bare hand-over %6.2f us", workers,
           median(ours, reps), median(bare, reps));
    printf("  ratio %.2f", median(ratio, reps));
    printf("  (%.2f..%.2f)\n", ratio[0], ratio[reps - 1]);
    figure(median(ratio, reps), "", "less", "a task of %d workers", workers);
    rig_down(&r);
    hands_down(&h);
}

/* ---- 3: 1/n on the measured clock ---------------------------------------- */

static void falls_as_one_over_n(size_t k)
{
    kofn_faults measured = KOFN_FAULTS_INIT(.clock = KOFN_CLOCK_MEASURED);
    double at_k = 0;

    for (size_t n = k; n <= 2 * k; n++) {
        double t[MOST];
        kofn_report rep = KOFN_REPORT_INIT;
        char spec[32];
        rig r;

        snprintf(spec, sizeof spec, "elastic:k=%zu", k);
        rig_up(&r, spec, n, 24000, 2000, &measured, 0);
        one_round(&r, NULL);
        for (int i = 0; i < reps; i++) {
            one_round(&r, &rep);
            t[i] = (double)rep.took * 1e-9 * (double)n;
        }
        if (n == k)
            at_k = median(t, reps);
        printf(
            "  n = %zu  %7.2f ms a round  n x time / (k x time at k) = %.3f\n",
            n, 1e3 * median(t, reps) / (double)n, median(t, reps) / at_k);
        figure(median(t, reps) / at_k, "", "less", "%s of %zu against %zu",
               spec, n, k);
        rig_down(&r);
    }
}

/* ---- 4: a thousand ------------------------------------------------------- */

static void a_thousand(const char *spec, double straggle)
{
    kofn_faults w = KOFN_FAULTS_INIT(.straggle = straggle, .seed = 1);
    struct rusage use;
    double t = now();
    rig r;

    rig_up(&r, spec, 1000, 20000, 500, &w, 0);
    for (int i = 0; i < 100; i++)
        one_round(&r, NULL);
    rig_down(&r);
    t = now() - t;
    getrusage(RUSAGE_SELF, &use);
    printf("  %-12s straggle %.2f  100 rounds in %.2f s  peak of this process "
           "so far %.0f MiB\n",
           spec, straggle, t, (double)use.ru_maxrss / 1024);
    figure(t, "s", "less", "100 rounds of 1000 simulated, %s, straggle %.2f",
           spec, straggle);
}

int main(int argc, char **argv)
{
    kofn_machine m = KOFN_MACHINE_INIT;

    if (argc > 1)
        reps = atoi(argv[1]);
    if (reps < 1 || reps > MOST) {
        fprintf(stderr, "usage: round_bench [REPETITIONS in 1..%d]\n", MOST);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    kofn_machine_info(&m);
    printf("whole rounds; kernels %s, %s\n", m.simd, m.blas);
    printf("a thousand simulated workers, matvec of 20000 x 500 "
           "(wanted: under 10 s and 1 GiB)\n");
    a_thousand("elastic", 0);
    a_thousand("mds", 0.01);
    printf("coordinator: a task with an empty kernel (wanted <= 2)\n");
    against_hand_over(1);
    against_hand_over(2);
    against_hand_over(8);
    against_hand_over(32);
    printf("elastic matvec, all present, against dgemv on all cores "
           "(wanted <= 1.10)\n");
    against_dgemv("elastic:k=2", 4, 16000, 4000);
    against_dgemv("elastic:k=4", 8, 16000, 4000);
    against_dgemv("elastic:k=6", 8, 16000, 4000);
    against_dgemv("elastic:k=12", 16, 16000, 4000);
    printf(
        "elastic:k=6 on the simulator's measured clock (wanted: within 10 %% "
        "of 1)\n");
    falls_as_one_over_n(6);
    return 0;
}
