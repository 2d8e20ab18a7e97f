/* job.c -- products, one by one and several at a time, and the state of a job.
 */
#include "example.h"

#include <string.h>

#define ROWS 120
#define COLS 10

static double X[ROWS * COLS], w[COLS], y[ROWS], z[ROWS];
static kofn_plan *plan;

/* Computes one product on threads. */
static void one_product(void)
{
    kofn_matrix A = matrix(X, ROWS, COLS), in = matrix(w, COLS, 1);
    kofn_matrix out = matrix(y, ROWS, 1);
    kofn_report rep = KOFN_REPORT_INIT;
    kofn_port *port;
    kofn_job *job;

    must(kofn_port_threads(&port, 4, NULL));
    must(kofn_open(&job, plan, port, NULL));
    must(kofn_place(job, &A));
    must(kofn_round(job, &in, &out, &rep));
    expect(is_product(&A, &in, &out), "A x");
    printf("predicted error %.0e\n", rep.predicted);
    kofn_close(job);
}

/* Has two products under way, takes one and cancels one. */
static void two_products(kofn_job *job)
{
    kofn_matrix A = matrix(X, ROWS, COLS), in = matrix(w, COLS, 1);
    kofn_matrix out = matrix(y, ROWS, 1), other = matrix(z, ROWS, 1);
    uint32_t first, second;

    must(kofn_put(job, &in, &out, &first));
    must(kofn_put(job, &in, &other, &second));
    must(kofn_take(job, first, KOFN_NEVER, NULL));
    must(kofn_cancel(job, second));
    expect(is_product(&A, &in, &out), "A x");
}

static void look(const kofn_job *job)
{
    kofn_progress now = KOFN_PROGRESS_INIT;
    kofn_plan_info info = KOFN_PLAN_INFO_INIT;

    must(kofn_job_progress(job, &now));
    must(kofn_plan_describe(kofn_job_plan(job), false, &info));
    printf("%zu of %zu workers are live\n", now.live, info.workers);
    printf("worker 0 belongs to \"%s\"; failed tasks: \"%s\"\n",
           kofn_job_name(job, 0), kofn_job_failure(job));
    expect(now.live == 4, "all workers are live");
    expect(kofn_job_worker(job, 0) == KOFN_WORKER_LIVE &&
               kofn_job_worker(job, 99) == KOFN_WORKER_UNKNOWN,
           "the state of a worker is known by its number");
}

/* Computes some rows of the product only. */
static void some_rows(kofn_job *job)
{
    kofn_matrix in = matrix(w, COLS, 1), out = matrix(z, ROWS, 1);
    kofn_progress now = KOFN_PROGRESS_INIT;

    for (size_t i = 0; i < ROWS; i++)
        z[i] = -77;
    must(kofn_job_progress(job, &now));
    must(kofn_limit(job, 0, now.strips / 2));
    must(kofn_round(job, &in, &out, NULL));
    must(kofn_limit(job, 0, now.strips));
    for (size_t i = 0; i < ROWS; i++)
        expect(z[i] == (i % now.strips < now.strips / 2 ? y[i] : -77) ||
                   fabs(z[i] - y[i]) < 1e-12,
               "rows of the first half of the strips");
}

static void add_up(kofn_job *job)
{
    kofn_report all = KOFN_REPORT_INIT;
    char sentence[KOFN_VERDICT];

    must(kofn_job_totals(job, &all));
    expect(all.rounds >= 2, "products are counted");
    must(kofn_job_verdict(job, sentence, sizeof sentence));
    expect(strstr(sentence, " rounds in ") != NULL, "a sentence about them");
    must(kofn_caption(job, "command", "job")); /* a line of a report */
    must(kofn_finish(job)); /* writes the files of the options */
}

/* Worker 1 leaves before step 5, whatever the number of products. */
static void count_steps(void)
{
    kofn_fault_event gone = {
        .round = 5, .kind = KOFN_FAULT_EVENT_LEAVE, .worker = 1};
    kofn_matrix A = matrix(X, ROWS, COLS), in = matrix(w, COLS, 1);
    kofn_matrix out = matrix(y, ROWS, 1);
    kofn_report rep = KOFN_REPORT_INIT;
    kofn_options opt = KOFN_OPTIONS_INIT;
    kofn_job *job;

    opt.events = &gone;
    opt.event_count = 1;
    job = open_job(plan, 4, &opt);
    must(kofn_place(job, &A));
    for (unsigned step = 4; step <= 5; step++) {
        must(kofn_step(job, step));
        must(kofn_round(job, &in, &out, &rep));
        expect(rep.live == (step == 4 ? 4 : 3), "live workers");
    }
    kofn_close(job);
}

/* The same in one call. */
static void in_one_call(void)
{
    kofn_matrix A = matrix(X, ROWS, COLS), in = matrix(w, COLS, 1);
    kofn_matrix out = matrix(y, ROWS, 1);

    must(kofn_product(&A, &in, &out, "elastic:k=2", 4));
    expect(is_product(&A, &in, &out), "the product of one call");
}

/* A port that no job has taken over is closed by its owner. */
static void unused_port(void)
{
    kofn_port *port;

    must(kofn_port_sim(&port, 4, NULL));
    kofn_port_close(port);
}

int main(void)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATVEC, ROWS, COLS, 1, KOFN_F64, false);
    kofn_matrix A = matrix(X, ROWS, COLS);
    kofn_job *job;

    fill(X, ROWS * COLS, 1);
    fill(w, COLS, 2);
    must(kofn_plan_new(&plan, &pb, "elastic:k=2", 4, 1));
    one_product();
    job = open_job(plan, 4, NULL);
    must(kofn_place(job, &A));
    two_products(job);
    look(job);
    some_rows(job);
    add_up(job);
    kofn_close(job);
    count_steps();
    in_one_call();
    unused_port();
    kofn_plan_free(plan);
    return 0;
}
