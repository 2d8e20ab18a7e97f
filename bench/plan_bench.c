/* plan_bench.c -- forecasts beside measured jobs on threads of this machine,
 * and on processes that are reached over the loopback.
 *
 * For each operation, code and set of faults it prints the predicted and the
 * measured median time of a round, and their ratio; at last the median and the
 * 90 % quantile of the errors.
 *
 *     plan_bench [threads|processes] */
#include "net.h"

#include <kofn/forecast.h>
#include <kofn/net.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 40
#define TURNS 3
#define CASES 400
#define WORKERS 8
/* as src/cli/cmd_plan.c has them */
#define MESSAGE 3e-5 /* seconds for a message to a process */
#define COPIES 10    /* times of a copy that each end takes for bytes */

static double error[CASES];
static int errors;

/* ---- processes ----------------------------------------------------------- */

static const kofn_net_options net = {
    .size = sizeof net, .insecure = true, .body_max = (size_t)1 << 30};
static const kofn_faults *faults_of_workers;

static void worker_life(const char *address)
{
    kofn_serve_options o = KOFN_SERVE_OPTIONS_INIT;
    kofn_transport *t;

    check(kofn_net_connect(&t, address, &net), address);
    o.faults = faults_of_workers;
    o.patience = 5 * KOFN_SECOND;
    check(kofn_serve(t, &o), address);
}

static kofn_port *processes(pid_t *pid, size_t n, const kofn_faults *faults)
{
    kofn_away_options o = KOFN_AWAY_OPTIONS_INIT;
    kofn_transport *t;
    kofn_port *port;

    check(kofn_net_listen(&t, "tcp://127.0.0.1:*", &net), "listen");
    faults_of_workers = faults;
    for (size_t i = 0; i < n; i++)
        pid[i] = child(worker_life, kofn_net_endpoint(t));
    o.workers = n;
    check(kofn_port_away(&port, t, &o), "port");
    return port;
}

/* ---- jobs ---------------------------------------------------------------- */

static kofn_matrix matrix(size_t rows, size_t cols)
{
    kofn_matrix m = {malloc(rows * cols * 8), rows, cols, cols, KOFN_F64};

    for (size_t i = 0; i < rows * cols; i++)
        ((double *)m.data)[i] = (double)(i % 13) - 6;
    return m;
}

/* Returns the median of the seconds of a round, and the time of placing. */
static double measure(const kofn_problem *pb, const char *spec, size_t n,
                      const kofn_faults *faults, bool away, double *place)
{
    kofn_matrix A = matrix(pb->m, pb->n), B = matrix(pb->n, pb->p),
                C = matrix(pb->op == KOFN_GRAM ? pb->n : pb->m, pb->p);
    kofn_options o = KOFN_OPTIONS_INIT;
    double took[ROUNDS], begin = now();
    kofn_plan *plan;
    pid_t pid[WORKERS];
    kofn_port *port;
    kofn_job *job;

    check(kofn_plan_new(&plan, pb, spec, n, 1), spec);
    if (away)
        port = processes(pid, n, faults);
    else
        check(kofn_port_threads(&port, n, faults), "threads");
    check(kofn_open(&job, plan, port, &o), "open");
    check(kofn_place(job, &A), "place");
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
    for (size_t i = 0; away && i < n; i++)
        end(pid[i]);
    kofn_plan_free(plan);
    free(A.data);
    free(B.data);
    free(C.data);
    *place -= median(took, ROUNDS);
    return median(took, ROUNDS);
}

/* Forecasts with costs that are measured now, beside a measured job, TURNS
 * times: the machine may have other work.  Prints medians. */
static void compare(const kofn_problem *pb, const char *spec, size_t n,
                    const char *words, bool away)
{
    kofn_faults faults = KOFN_FAULTS_INIT();
    kofn_forecast_options o = KOFN_FORECAST_OPTIONS_INIT;
    double said[TURNS], took[TURNS], ratio[TURNS], said_place[TURNS],
        placed[TURNS];

    if (*words)
        check(kofn_faults_parse(&faults, words), words);
    o.faults = &faults;
    o.rounds = ROUNDS;
    for (int i = 0; i < TURNS; i++) {
        kofn_costs costs = KOFN_COSTS_INIT;
        kofn_forecast f = KOFN_FORECAST_INIT;

        check(kofn_costs_measure(&costs, pb, n), "costs");
        o.costs = &costs;
        o.away = away;
        if (away) {
            costs.message = MESSAGE;
            costs.bandwidth = 1e9 / (COPIES * costs.copy);
        }
        check(kofn_forecast_job(&f, pb, spec, n, &o), spec);
        took[i] = measure(pb, spec, n, &faults, away, &placed[i]);
        said[i] = f.round50;
        said_place[i] = f.place;
        ratio[i] = said[i] / took[i];
    }
    error[errors++] = fabs(median(ratio, TURNS) - 1);
    printf("%5zux%-5zu x%-4zu %-24s %2zu %-24s %9.3f %9.3f %6.2f   place "
           "%8.2f %8.2f\n",
           pb->m, pb->n, pb->p, spec, n, words, 1e3 * median(said, TURNS),
           1e3 * median(took, TURNS), median(ratio, TURNS),
           1e3 * median(said_place, TURNS), 1e3 * median(placed, TURNS));
}

/* Prints the median and the 90 % quantile of the errors, and forgets them. */
static void sum_up(const char *where)
{
    if (errors == 0)
        return;
    qsort(error, (size_t)errors, sizeof *error, by_value);
    printf("errors on %s: median %.0f %%, 90 %% quantile %.0f %%\n", where,
           100 * error[errors / 2], 100 * error[errors * 9 / 10]);
    errors = 0;
}

int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : "";
    static const char *const words[] = {"", "straggle=0.2,factor=5",
                                        "spread=0.5"};
    static const struct {
        kofn_problem pb;
        const char *spec[10], *away[4]; /* codes on threads, on processes */
    } table[] = {
        {KOFN_PROBLEM_INIT(KOFN_MATVEC, 8000, 2000, 1, KOFN_F64, false),
         {"uncoded", "replication:k=4", "mds:k=6", "elastic:k=4", "elastic:k=6",
          "elastic:k=6,deal=speed"},
         {"uncoded", "mds:k=6", "elastic:k=6"}},
        {KOFN_PROBLEM_INIT(KOFN_MATMUL, 2000, 1000, 200, KOFN_F64, false),
         {"uncoded", "replication:k=4", "mds:k=6", "elastic:k=4", "elastic:k=6",
          "polynomial:m=3,p=2", "matdot:n=3", "gpd:m=2,n=2,p=1",
          "polydot:m=2,n=2,p=1"},
         {"uncoded", "mds:k=6", "elastic:k=6", "polynomial:m=3,p=2"}},
        {KOFN_PROBLEM_INIT(KOFN_GRAM, 8000, 1000, 1, KOFN_F64, false),
         {"pcr:r=3", "pcr:r=2"},
         {"pcr:r=2"}},
    };

    printf("predicted and measured median of a round, milliseconds\n");
    for (size_t t = 0; t < sizeof table / sizeof *table; t++)
        for (size_t s = 0; s < 10 && table[t].spec[s]; s++)
            for (size_t w = 0; w < 3 && strcmp(only, "processes"); w++)
                compare(&table[t].pb, table[t].spec[s], WORKERS, words[w],
                        false);
    sum_up("threads");
    for (size_t t = 0; t < sizeof table / sizeof *table; t++)
        for (size_t s = 0; s < 4 && table[t].away[s]; s++)
            for (size_t w = 0; w < 2 && strcmp(only, "threads"); w++)
                compare(&table[t].pb, table[t].away[s], WORKERS, words[w],
                        true);
    sum_up("processes");
    return 0;
}
