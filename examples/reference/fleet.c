/* fleet.c -- a fleet of workers with two jobs at once, and one after them. Here
 * the workers are threads; elsewhere they are other programs. */
#include "example.h"

#include <kofn/fleet.h>
#include <kofn/net.h>

#include <pthread.h>
#include <stdatomic.h>

#define ROWS 40
#define COLS 5
#define WORKERS 3

static double X[2][ROWS * COLS], w[COLS], y[ROWS];
static const char *address = "ipc://example-fleet.sock";

/* Runs a worker until the fleet is closed. */
static void *work(void *name)
{
    kofn_serve_options opt = KOFN_SERVE_OPTIONS_INIT;
    kofn_transport *t;

    opt.patience = 60 * KOFN_SECOND;
    opt.stay = true;
    opt.name = name;
    must(kofn_net_connect(&t, address, NULL));
    kofn_serve(t, &opt); /* closes the transport */
    return NULL;
}

/* Opens a job on the fleet, with twice the time of others at the workers. */
static kofn_job *begin(kofn_fleet *f, kofn_plan **plan, double *numbers)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATVEC, ROWS, COLS, 1, KOFN_F64, false);
    kofn_matrix A = matrix(numbers, ROWS, COLS);
    kofn_away_options away = KOFN_AWAY_OPTIONS_INIT;
    kofn_port *port;
    kofn_job *job;

    away.workers = WORKERS;
    away.weight = 2;
    must(kofn_plan_new(plan, &pb, "mds:k=2", WORKERS, 1));
    must(kofn_fleet_port(&port, f, &away));
    must(kofn_open(&job, *plan, port, NULL));
    must(kofn_place(job, &A));
    must(kofn_job_label(job, "example", "product", 0, 4));
    return job;
}

static void multiply(kofn_job *job, double *numbers)
{
    kofn_matrix A = matrix(numbers, ROWS, COLS), in = matrix(w, COLS, 1);
    kofn_matrix out = matrix(y, ROWS, 1);

    must(kofn_round(job, &in, &out, NULL));
    expect(is_product(&A, &in, &out), "A x");
}

/* Prints what the workers have done for one job. */
static void look_at(const kofn_job *job)
{
    kofn_fleet_worker it = KOFN_FLEET_WORKER_INIT;

    for (size_t i = 0; i < WORKERS; i++) {
        must(kofn_job_describe(job, i, &it));
        printf("%s: %llu results, and none in %llu rounds\n", it.name,
               (unsigned long long)it.tasks, (unsigned long long)it.late);
    }
}

/* Prints the workers, and lets the first one leave. */
static void look(kofn_fleet *f)
{
    kofn_fleet_worker it = KOFN_FLEET_WORKER_INIT;

    must(kofn_fleet_poll(f, 0));
    for (size_t i = 0; i < kofn_fleet_workers(f); i++) {
        must(kofn_fleet_at(f, i, &it));
        printf("%s on %s: %llu results\n", it.name, it.host,
               (unsigned long long)it.tasks);
    }
    must(kofn_fleet_drain(f, "first"));
}

/* Prints a worker of a fleet that another program has. */
static void print(void *ud, const kofn_fleet_worker *it)
{
    (void)ud;
    printf("%s takes %g times as long as others\n", it->name, it->slow);
}

/* Prints a job of a fleet that another program has. */
static void print_job(void *ud, const kofn_fleet_job *it)
{
    (void)ud;
    printf("%s (%s): %s %llu, %zu workers live\n", it->name, it->scheme,
           it->unit, (unsigned long long)it->at, it->live);
}

/* Asks from outside, as kofn status does, while the fleet looks after that. */
static void *ask(void *ud)
{
    kofn_transport *t;

    must(kofn_net_connect(&t, address, NULL));
    must(kofn_fleet_ask(t, NULL, 60 * KOFN_SECOND, print, NULL));
    must(kofn_net_connect(&t, address, NULL));
    must(kofn_fleet_ask_jobs(t, 60 * KOFN_SECOND, print_job, NULL, NULL));
    *(atomic_bool *)ud = true;
    return NULL;
}

static void be_asked(kofn_fleet *f)
{
    atomic_bool told = false;
    pthread_t thread;

    expect(!pthread_create(&thread, NULL, ask, &told), "a thread");
    while (!told)
        must(kofn_fleet_poll(f, KOFN_SECOND / 100));
    pthread_join(thread, NULL);
}

int main(void)
{
    char names[WORKERS][10] = {"first", "second", "third"};
    kofn_fleet_options opt = KOFN_FLEET_OPTIONS_INIT;
    pthread_t worker[WORKERS];
    kofn_plan *plan[3];
    kofn_job *job[3];
    kofn_transport *t;
    kofn_fleet *f;

    fill(X[0], ROWS * COLS, 1);
    fill(X[1], ROWS * COLS, 2);
    fill(w, COLS, 3);
    opt.workers = WORKERS;
    must(kofn_net_listen(&t, address, NULL));
    must(kofn_fleet_open(&f, t, &opt));
    for (int i = 0; i < WORKERS; i++)
        expect(!pthread_create(&worker[i], NULL, work, names[i]), "a thread");
    job[0] = begin(f, &plan[0], X[0]);
    job[1] = begin(f, &plan[1], X[1]);
    for (int i = 0; i < 4; i++)
        multiply(job[i % 2], X[i % 2]);
    kofn_close(job[0]);
    job[2] = begin(f, &plan[2], X[0]);
    multiply(job[2], X[0]);
    be_asked(f);
    look_at(job[2]);
    look(f);
    multiply(job[1], X[1]); /* any two suffice */
    kofn_close(job[1]);
    kofn_close(job[2]);
    kofn_fleet_close(f);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(worker[i], NULL);
    for (int i = 0; i < 3; i++)
        kofn_plan_free(plan[i]);
    return 0;
}
