/* matvec.c -- computes y = X w on eight workers; any four suffice.
 *
 *     cc matvec.c $(pkg-config --cflags --libs kofn) -o matvec && ./matvec
 */
#include <kofn.h>
#include <stdio.h>

int main(void)
{
    static double X[1000 * 50], w[50], y[1000];
    kofn_matrix A = {X, 1000, 50, 50, KOFN_F64};
    kofn_matrix in = {w, 50, 1, 1, KOFN_F64}, out = {y, 1000, 1, 1, KOFN_F64};
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATVEC, 1000, 50, 1, KOFN_F64, false);
    kofn_plan *plan = NULL;
    kofn_port *port = NULL;
    kofn_job *job = NULL;
    kofn_status st;

    for (int i = 0; i < 1000 * 50; i++)
        X[i] = i % 7, w[i % 50] = i % 50;
    if ((st = kofn_plan_new(&plan, &pb, "elastic:k=4", 8, 1)) ||
        (st = kofn_port_threads(&port, 8, NULL)) ||
        (st = kofn_open(&job, plan, port, NULL)) ||
        (st = kofn_place(job, &A)) || (st = kofn_round(job, &in, &out, NULL)))
        fprintf(stderr, "%s: %s\n", kofn_strerror(st), kofn_errmsg());
    else
        printf("y[999] = %g\n", y[999]);
    kofn_close(job);
    kofn_plan_free(plan);
    return st != KOFN_OK;
}
