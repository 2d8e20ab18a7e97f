/* plan_bench.c -- forecasts beside measured jobs on threads of this machine.
 *
 * For each operation, code and set of faults it prints the predicted and the
 * measured median time of a round, and their ratio; at last the median and the
 * 90 % quantile of the errors. */
#include "bench.h"

#include <kofn/forecast.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 40
#define CASES 400

static double error[CASES];
static int errors;

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static kofn_matrix matrix(size_t rows, size_t cols)
{
    kofn_matrix m = {malloc(rows * cols * 8), rows, cols, cols, KOFN_F64};

    for (size_t i = 0; i < rows * cols; i++)
        ((double *)m.data)[i] = (double)(i % 13) - 6;
    return m;
}

/* Returns the median of the seconds of a round, and the time of placing. */
static double measure(const kofn_problem *pb, const char *spec, size_t n,
                      const kofn_faults *faults, double *place)
{
    kofn_matrix A = matrix(pb->m, pb->n), B = matrix(pb->n, pb->p),
                C = matrix(pb->op == KOFN_GRAM ? pb->n : pb->m, pb->p);
    kofn_options o = KOFN_OPTIONS_INIT;
    double took[ROUNDS], begin = now();
    kofn_plan *plan;
    kofn_port *port;
    kofn_job *job;

    if (kofn_plan_new(&plan, pb, spec, n, 1) ||
        kofn_port_threads(&port, n, faults) ||
        kofn_open(&job, plan, port, &o) || kofn_place(job, &A)) {
        fprintf(stderr, "%s: %s\n", spec, kofn_errmsg());
        exit(1);
    }
    *place = now() - begin;
    for (int r = 0; r < ROUNDS; r++) {
        begin = now();
        if (kofn_round(job, &B, &C, NULL) < 0) {
            fprintf(stderr, "%s: %s\n", spec, kofn_errmsg());
            exit(1);
        }
        took[r] = now() - begin;
        if (r == 0) /* the first round waits for the blocks */
            *place += took[0];
    }
    kofn_close(job);
    kofn_plan_free(plan);
    free(A.data);
    free(B.data);
    free(C.data);
    qsort(took, ROUNDS, sizeof *took, ascending);
    *place -= took[ROUNDS / 2];
    return took[ROUNDS / 2];
}

static void compare(const kofn_problem *pb, const char *spec, size_t n,
                    const char *words, const kofn_costs *costs)
{
    kofn_faults faults = KOFN_FAULTS_INIT();
    kofn_forecast_options o = KOFN_FORECAST_OPTIONS_INIT;
    kofn_forecast f = KOFN_FORECAST_INIT;
    double took, place;

    if (*words && kofn_faults_parse(&faults, words)) {
        fprintf(stderr, "%s\n", kofn_errmsg());
        exit(1);
    }
    o.costs = costs;
    o.faults = &faults;
    o.rounds = ROUNDS;
    if (kofn_forecast_job(&f, pb, spec, n, &o)) {
        fprintf(stderr, "%s: %s\n", spec, kofn_errmsg());
        exit(1);
    }
    took = measure(pb, spec, n, &faults, &place);
    printf("%5zux%-5zu x%-4zu %-24s %2zu %-24s %9.3f %9.3f %6.2f   place "
           "%8.2f %8.2f\n",
           pb->m, pb->n, pb->p, spec, n, words, 1e3 * f.round50, 1e3 * took,
           f.round50 / took, 1e3 * f.place, 1e3 * place);
    if (errors < CASES)
        error[errors++] = fabs(f.round50 / took - 1);
}

int main(void)
{
    static const char *const words[] = {"", "straggle=0.2,factor=5",
                                        "spread=0.5"};
    static const struct {
        kofn_problem pb;
        const char *spec[10];
    } table[] = {
        {KOFN_PROBLEM_INIT(KOFN_MATVEC, 8000, 2000, 1, KOFN_F64, false),
         {"uncoded", "replication:k=4", "mds:k=6", "elastic:k=4", "elastic:k=6",
          "elastic:k=6,deal=speed"}},
        {KOFN_PROBLEM_INIT(KOFN_MATMUL, 2000, 1000, 200, KOFN_F64, false),
         {"uncoded", "replication:k=4", "mds:k=6", "elastic:k=4", "elastic:k=6",
          "polynomial:m=3,p=2", "matdot:n=3", "gpd:m=2,n=2,p=1",
          "polydot:m=2,n=2,p=1"}},
        {KOFN_PROBLEM_INIT(KOFN_GRAM, 8000, 1000, 1, KOFN_F64, false),
         {"pcr:r=3", "pcr:r=2"}},
    };

    printf("predicted and measured median of a round, milliseconds\n");
    for (size_t t = 0; t < sizeof table / sizeof *table; t++) {
        kofn_costs c = KOFN_COSTS_INIT;

        for (size_t s = 0; s < 10 && table[t].spec[s]; s++)
            for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
                check(kofn_costs_measure(&c, &table[t].pb, 8), "costs");
                compare(&table[t].pb, table[t].spec[s], 8, words[w], &c);
            }
    }
    qsort(error, (size_t)errors, sizeof *error, ascending);
    printf("errors: median %.0f %%, 90 %% quantile %.0f %%\n",
           100 * error[errors / 2], 100 * error[errors * 9 / 10]);
    return 0;
}
