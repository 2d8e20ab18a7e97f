/* stream_bench.c -- the coordinator's cost of a stream.
 *
 * Products have one number, so tasks compute next to nothing. A task of a
 * stream is compared with a bare hand-over by mutex and condition variable,
 * with the same number of tasks in lists of the same length. All tasks count
 * that are handed over, even if their answers came too late to be decoded.
 * Measures wall time and the processor time of all threads; other load changes
 * the latter less.
 *
 * The compared values are measured in turn, and ratios are taken turn by turn.
 *
 *     stream_bench [REPETITIONS]
 */
#include "bench.h"

#include "hand_over.h"

#include "data/port.h"

#include <time.h>

static int reps = 9;

/* Returns the processor time of all threads. */
static double all_now(void)
{
    struct timespec t;

    must(!clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t), "clock");
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct flow {
    kofn_plan *plan;
    kofn_job *job;
    kofn_matrix X, Y, C[KOFN_OPEN_MOST];
    uint32_t puts, takes, flight; /* flight: products open at a time */
} flow;

static kofn_status (*send_on)(kofn_port *p, kf_msg *m);
static double handed; /* tasks handed over */

static kofn_status send_and_count(kofn_port *p, kf_msg *m)
{
    handed += m->type == KF_MSG_WORK;
    return send_on(p, m);
}

static void flow_up(flow *f, const char *spec, size_t workers)
{
    kofn_options opt = KOFN_OPTIONS_INIT;
    kofn_plan_info info = KOFN_PLAN_INFO_INIT;
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_STREAM, 1, 1, 1, KOFN_F64, false);
    kofn_port *port;

    check(kofn_plan_new(&f->plan, &pb, spec, workers, 1), "plan");
    check(kofn_plan_describe(f->plan, false, &info), "describe");
    pb.m = pb.p = info.threshold; /* every part has a number */
    kofn_plan_free(f->plan);
    check(kofn_plan_new(&f->plan, &pb, spec, workers, 1), "plan");
    check(kofn_port_threads(&port, workers, NULL), "port");
    send_on = port->send;
    port->send = send_and_count;
    check(kofn_open(&f->job, f->plan, port, &opt), "open");
    f->X = (kofn_matrix){numbers(pb.m), pb.m, 1, 1, KOFN_F64};
    f->Y = (kofn_matrix){numbers(pb.p), 1, pb.p, pb.p, KOFN_F64};
    f->flight = (uint32_t)info.delay + 2;
    for (size_t i = 0; i < f->flight; i++)
        f->C[i] =
            (kofn_matrix){numbers(pb.m * pb.p), pb.m, pb.p, pb.p, KOFN_F64};
    f->puts = f->takes = 0;
}

static void take(flow *f)
{
    kofn_report rep = KOFN_REPORT_INIT;

    check(kofn_take(f->job, ++f->takes, KOFN_NEVER, &rep), "take");
}

/* Runs `products` more products. */
static double run(flow *f, int products)
{
    double t = now();
    uint32_t number;

    for (int i = 0; i < products; i++) {
        if (f->puts - f->takes == f->flight)
            take(f);
        check(kofn_put_pair(f->job, &f->X, &f->Y, &f->C[f->puts % f->flight],
                            &number),
              "put");
        f->puts++;
    }
    return now() - t;
}

static void flow_down(flow *f)
{
    while (f->takes < f->puts)
        take(f);
    kofn_close(f->job);
    kofn_plan_free(f->plan);
    free(f->X.data);
    free(f->Y.data);
    for (size_t i = 0; i < f->flight; i++)
        free(f->C[i].data);
}

/* Lists have `each` tasks if no worker is slow. */
static void against_hand_over(const char *spec, int workers, int each)
{
    int products = 2000 / workers + 50, tasks = products * each * workers;
    double ours[MOST], bare[MOST], ours_all[MOST], bare_all[MOST];
    hands h;
    flow f;

    hands_up(&h, workers);
    flow_up(&f, spec, (size_t)workers);
    run(&f, 2 * KOFN_OPEN_MOST);
    for (int i = 0; i < reps; i++) {
        double had, t = all_now();

        bare[i] = 1e6 * hand_over(&h, each, products) / tasks;
        bare_all[i] = 1e6 * (all_now() - t) / tasks;
        had = handed;
        t = all_now();
        ours[i] = 1e6 * run(&f, products) / (handed - had);
        ours_all[i] = 1e6 * (all_now() - t) / (handed - had);
    }
    printf("  %-16s %2d workers  a task %6.2f us  bare hand-over %6.2f us"
           "  ratio %.2f  of processor time %.2f\n",
           spec, workers, turn_median(ours, reps), turn_median(bare, reps),
           turn_ratio(ours, bare, reps), turn_ratio(ours_all, bare_all, reps));
    figure(turn_ratio(ours, bare, reps), "", "less", "a task of %s, %d workers",
           spec, workers);
    figure(turn_ratio(ours_all, bare_all, reps), "", "less",
           "processor time of a task of %s, %d workers", spec, workers);
    flow_down(&f);
    hands_down(&h);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        reps = atoi(argv[1]);
    if (reps < 1 || reps > MOST) {
        fprintf(stderr, "usage: stream_bench [REPETITIONS in 1..%d]\n", MOST);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    keep_memory();
    blas_threads(1);
    printf(
        "coordinator of a stream: a task of next to nothing (wanted <= 2)\n");
    against_hand_over("uncoded", 1, 1);
    against_hand_over("uncoded", 2, 1);
    against_hand_over("uncoded", 8, 1);
    against_hand_over("uncoded", 32, 1);
    against_hand_over("dip:m=1,p=2,T=0", 2, 1);
    against_hand_over("dip:m=2,p=4,T=1", 4, 2);
    against_hand_over("dip:m=4,p=6,T=2", 8, 3);
    against_hand_over("idip:W=3,N=6", 8, 3);
    return 0;
}
