/* liars.c -- finds the workers that returned wrong numbers.
 *
 * Nine workers, any five of which suffice. Two of them are silently wrong. The
 * four spare answers reveal the errors and locate the workers, and the product
 * is right all the same.
 *
 *     cc liars.c $(pkg-config --cflags --libs kofn) -lm -o liars && ./liars
 */
#include <kofn.h>

#include <math.h>
#include <stdio.h>

#define ROWS 2000
#define COLS 60
#define WORKERS 9

static double X[ROWS * COLS], w[COLS], y[ROWS];

static double largest_error(void)
{
    double worst = 0;

    for (int i = 0; i < ROWS; i++) {
        double sum = 0;

        for (int j = 0; j < COLS; j++)
            sum += X[i * COLS + j] * w[j];
        worst = fmax(worst, fabs(sum - y[i]));
    }
    return worst;
}

int main(void)
{
    kofn_matrix A = {X, ROWS, COLS, COLS, KOFN_F64};
    kofn_matrix in = {w, COLS, 1, 1, KOFN_F64};
    kofn_matrix out = {y, ROWS, 1, 1, KOFN_F64};
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATVEC, ROWS, COLS, 1, KOFN_F64, false);
    kofn_fault_event lies[] = {
        {.round = 1, .kind = KOFN_FAULT_EVENT_CORRUPT, .worker = 3},
        {.round = 1, .kind = KOFN_FAULT_EVENT_CORRUPT, .worker = 7},
    };
    kofn_options opt = KOFN_OPTIONS_INIT;
    kofn_plan *plan = NULL;
    kofn_port *port = NULL;
    kofn_job *job = NULL;
    kofn_report rep = KOFN_REPORT_INIT;
    kofn_status st;
    bool right = false;

    for (int i = 0; i < ROWS * COLS; i++)
        X[i] = sin(i), w[i % COLS] = cos(i % COLS);
    opt.events = lies;
    opt.event_count = 2;
    opt.errors = KOFN_ERRORS_ADVERSARIAL;
    if ((st = kofn_plan_new(&plan, &pb, "mds:k=5", WORKERS, 1)) ||
        (st = kofn_port_threads(&port, WORKERS, NULL)) ||
        (st = kofn_open(&job, plan, port, &opt)) ||
        (st = kofn_place(job, &A)) || (st = kofn_round(job, &in, &out, &rep))) {
        fprintf(stderr, "%s: %s\n", kofn_strerror(st), kofn_errmsg());
    } else {
        printf("wrong results from:");
        for (size_t i = 0; i < rep.workers; i++)
            if (rep.located[i])
                printf(" worker %zu", i);
        printf("\nthe product differs by %.0e\n", largest_error());
        right = largest_error() < 1e-10;
    }
    kofn_close(job);
    kofn_plan_free(plan);
    return !right;
}
