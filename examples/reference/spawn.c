/* spawn.c -- a product on processes of this machine. The command kofn must be
 * in PATH, or its path in `program`. */
#include "example.h"

#include <kofn/fleet.h>

#define ROWS 40
#define COLS 5

int main(void)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATVEC, ROWS, COLS, 1, KOFN_F64, false);
    static double a[ROWS * COLS], x[COLS], y[ROWS];
    kofn_matrix A = matrix(a, ROWS, COLS), in = matrix(x, COLS, 1);
    kofn_matrix out = matrix(y, ROWS, 1);
    kofn_fleet_options opt = KOFN_FLEET_OPTIONS_INIT;
    kofn_fleet *fleet;
    kofn_port *port;
    kofn_plan *plan;
    kofn_job *job;

    fill(a, ROWS * COLS, 1);
    fill(x, COLS, 2);
    opt.workers = 3;
    must(kofn_fleet_spawn(&fleet, &opt));
    must(kofn_plan_new(&plan, &pb, "mds:k=2", opt.workers, 1));
    must(kofn_fleet_port(&port, fleet, NULL));
    must(kofn_open(&job, plan, port, NULL));
    must(kofn_place(job, &A));
    must(kofn_round(job, &in, &out, NULL));
    expect(is_product(&A, &in, &out), "A x");
    kofn_close(job);
    kofn_plan_free(plan);
    kofn_fleet_close(fleet);
    return 0;
}
