/* sum.c -- sums a function of your own over parts, on workers that are other
 * processes, on this machine or on others.
 *
 * Gradient coding (gc:d=2): each worker computes two of three parts, and any
 * two workers suffice. Here part j is the integral of e^(-x t) over its share
 * of 0 <= t <= 1, for each of 4 numbers x.
 *
 *     cc sum.c $(pkg-config --cflags --libs kofn) -lm -o sum
 *     ./sum tcp://127.0.0.1:5555 worker &   # three times, or on three machines
 *     ./sum tcp://127.0.0.1:5555
 */
#include <kofn.h>
#include <kofn/net.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#define NUMBERS 4
#define WORKERS 3

static kofn_status integrate(void *ctx, size_t part, size_t parts,
                             const kofn_matrix *in, kofn_matrix *out)
{
    const double *x = in->data;
    double *sum = out->data;
    double a = (double)part / (double)parts;
    double b = (double)(part + 1) / (double)parts;

    (void)ctx;
    for (int i = 0; i < NUMBERS; i++)
        sum[i] = (exp(-x[i] * a) - exp(-x[i] * b)) / x[i];
    return KOFN_OK;
}

static kofn_status work(const char *address)
{
    kofn_serve_options opt = KOFN_SERVE_OPTIONS_INIT;
    kofn_transport *t = NULL;
    kofn_status st = kofn_net_connect(&t, address, NULL);

    opt.f = integrate;
    opt.patience = 10 * KOFN_SECOND;
    return st ? st : kofn_serve(t, &opt); /* kofn_serve ends the transport */
}

static kofn_status coordinate(const char *address)
{
    double x[NUMBERS] = {1, 2, 3, 4}, y[NUMBERS];
    kofn_matrix in = {x, NUMBERS, 1, 1, KOFN_F64};
    kofn_matrix out = {y, NUMBERS, 1, 1, KOFN_F64};
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_SUM, NUMBERS, NUMBERS, 1, KOFN_F64, false);
    kofn_away_options away = KOFN_AWAY_OPTIONS_INIT;
    kofn_transport *t = NULL;
    kofn_port *port = NULL;
    kofn_plan *plan = NULL;
    kofn_job *job = NULL;
    kofn_report rep = KOFN_REPORT_INIT;
    kofn_status st;

    away.workers = WORKERS;
    if (!(st = kofn_plan_new(&plan, &pb, "gc:d=2", WORKERS, 1)) &&
        !(st = kofn_net_listen(&t, address, NULL)) &&
        !(st = kofn_port_away(&port, t, &away)) &&
        !(st = kofn_open(&job, plan, port, NULL)) &&
        !(st = kofn_place_parts(job, integrate, NULL)) &&
        !(st = kofn_round(job, &in, &out, &rep)))
        for (int i = 0; i < NUMBERS; i++)
            printf("x = %g: %.12f, in closed form %.12f\n", x[i], y[i],
                   (1 - exp(-x[i])) / x[i]);
    kofn_close(job);
    kofn_plan_free(plan);
    return st;
}

int main(int argc, char **argv)
{
    bool worker = argc == 3 && strcmp(argv[2], "worker") == 0;
    kofn_status st;

    if (argc != 2 && !worker) {
        fprintf(stderr, "usage: %s ADDRESS [worker]\n", argv[0]);
        return 2;
    }
    st = worker ? work(argv[1]) : coordinate(argv[1]);
    if (st < 0)
        fprintf(stderr, "%s: %s\n", kofn_strerror(st), kofn_errmsg());
    return st < 0;
}
