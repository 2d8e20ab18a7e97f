/* away_bench.c -- workers that are processes, against the bare network and
 * against ScaLAPACK.
 *
 * 1. Rounds with answers of 8 MiB from one worker, computed, checked at both
 * ends
 *    and copied into the result, in bytes per second. The reference is the same
 *    bytes through a plain socket of the loopback, with the system's congestion
 *    control and with Reno, which does not pace. Each end has its own core.
 *    (net_bench measures packets alone.)
 * 2. Rounds of 8 workers with next to no work, against packets of a task's
 * size
 *    there and back between the coordinator and 8 such processes, over the
 *    transport alone.
 * 3. The product of two matrices of 4096 x 4096 on four workers, any three of
 *    which suffice: without a fault, with a worker stopped for 10 s, and with
 * one killed. The reference is ScaLAPACK's pdgemm on four ranks, which needs
 * all of them.
 * 4. The same product by elastic codes on three workers, all of them needed,
 * and
 *    on four to six. Workers are processes of this machine over a Unix socket,
 * as with `-p processes`, or threads. The work is dealt to all workers present.
 *    So one more worker makes a round longer by at most the time that sending
 * it B takes on a plain socket.
 *
 * Each round measures everything once, in turn. Prints medians, and medians of
 * the ratios within a round.
 *
 *     away_bench [ROUNDS]
 */
#define _GNU_SOURCE /* sched_setaffinity */
#include "bench.h"

#include "net.h"

#include <kofn/net.h>

#include "mat/mat.h"

#include <math.h>

#define BULK ((size_t)8 << 20)
#define BULKS 24 /* of them in a round */
#define PLAYS 4  /* of them in a round */
#define TRIPS 300
#define WORKERS 8
#define SIDE ((size_t)4096)

static kofn_matrix matrix(size_t m, size_t n)
{
    kofn_matrix a = {malloc(m * n * 8), m, n, n, KOFN_F64};

    must(a.data != NULL, "memory");
    for (size_t i = 0; i < m * n; i++)
        ((double *)a.data)[i] = (double)(i * 7919 % 1000) / 1000 - 0.5;
    return a;
}

/* ---- a plain socket ------------------------------------------------------ */

static void plain_talk(int fd)
{
    char *body = calloc(1, BULK), go;

    place(TWO_CORES, true);
    must(body != NULL, "memory");
    while (read(fd, &go, 1) == 1)
        for (int i = 0; i < BULKS; i++)
            write_all(fd, body, BULK);
}

static void plain_life(const char *port)
{
    plain_talk(plain_to(port));
}

static void unpaced_life(const char *port)
{
    plain_talk(unpaced_to(port));
}

static double plain_bulk(void (*life)(const char *))
{
    char *into = malloc(BULKS * BULK);
    double t = 0;
    pid_t pid;
    int fd;

    must(into != NULL, "memory");
    pid = plain_open(life, &fd);
    for (int i = 0; i <= PLAYS; i++) {
        if (i == 1) /* the first one allocates the pages */
            t = now();
        write_all(fd, "g", 1);
        read_all(fd, into, BULKS * BULK);
    }
    t = now() - t;
    end(pid);
    close(fd);
    free(into);
    return PLAYS * BULKS * (double)BULK / t;
}

/* ---- the transport alone ------------------------------------------------- */

static const kofn_net_options net = {.size = sizeof net,
                                     .silence = 10 * KOFN_SECOND};

static void echo_life(const char *address)
{
    kofn_transport *t;
    kofn_peer peer;

    must(!kofn_net_connect(&t, address, &net), "connect");
    peer = packet(t).peer;
    for (;;) {
        kofn_packet p = packet(t);

        deliver(t, peer, p.head, p.head_bytes);
        t->release(t, p.own);
    }
}

/* Sends a packet of a task's size to each of them and back. */
static double bare_round(void)
{
    kofn_transport *t;
    kofn_peer peer[WORKERS];
    pid_t pid[WORKERS];
    char head[120] = "t";
    double took = 0;

    must(!kofn_net_listen(&t, "tcp://127.0.0.1:*", &net), "listen");
    for (int i = 0; i < WORKERS; i++)
        pid[i] = child(echo_life, kofn_net_endpoint(t));
    for (int i = 0; i < WORKERS; i++)
        peer[i] = packet(t).peer;
    for (int k = 0; k < TRIPS + 20; k++) {
        if (k == 20)
            took = now();
        for (int i = 0; i < WORKERS; i++)
            deliver(t, peer[i], head, sizeof head);
        for (int i = 0; i < WORKERS; i++)
            t->release(t, packet(t).own);
    }
    took = (now() - took) / TRIPS;
    for (int i = 0; i < WORKERS; i++)
        end(pid[i]);
    t->close(t, 0);
    return took;
}

/* ---- jobs ---------------------------------------------------------------- */

static placing placed; /* cores of the workers */

static void worker_life(const char *address)
{
    kofn_net_options z = net;
    kofn_serve_options o = KOFN_SERVE_OPTIONS_INIT;
    kofn_transport *t;

    place(placed, true);
    z.body_max = (size_t)1 << 30;
    must(!kofn_net_connect(&t, address, &z), "connect");
    o.patience = 5 * KOFN_SECOND;
    kofn_serve(t, &o);
}

/* Address of the workers; NULL: they are threads. */
static const char *where = "tcp://127.0.0.1:*";

typedef struct work {
    kofn_plan *plan;
    kofn_job *job;
    kofn_matrix A, x, y;
    pid_t pid[WORKERS];
    size_t workers;
} work;

static void open_work(work *w, const char *spec, size_t workers, size_t m,
                      size_t n, size_t p, double late)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(p == 1 ? KOFN_MATVEC : KOFN_MATMUL, m,
                                        n, p, KOFN_F64, false);
    kofn_away_options o = KOFN_AWAY_OPTIONS_INIT;
    kofn_options jo = KOFN_OPTIONS_INIT;
    kofn_net_options z = net;
    kofn_transport *t;
    kofn_port *port;
    bool threads = !where;

    *w = (work){.A = matrix(m, n), .x = matrix(n, p), .y = matrix(m, p)};
    w->workers = workers;
    z.body_max = (size_t)1 << 30;
    jo.pieces = workers == 1 ? BULKS : 0; /* answers of 8 MiB */
    jo.late = late;
    o.workers = workers;
    must(!kofn_plan_new(&w->plan, &pb, spec, workers, 1), "plan");
    if (threads) {
        must(!kofn_port_threads(&port, workers, NULL), "threads");
    } else {
        must(!kofn_net_listen(&t, where, &z), "listen");
        for (size_t i = 0; i < workers; i++)
            w->pid[i] = child(worker_life, kofn_net_endpoint(t));
        must(!kofn_port_away(&port, t, &o), "port");
    }
    must(!kofn_open(&w->job, w->plan, port, &jo), "open");
    must(!kofn_place(w->job, &w->A), "place");
}

static double play(work *w, int times)
{
    double t = now();

    for (int i = 0; i < times; i++)
        must(!kofn_round(w->job, &w->x, &w->y, NULL), "round");
    return (now() - t) / times;
}

static void close_work(work *w)
{
    kofn_close(w->job);
    kofn_plan_free(w->plan);
    for (size_t i = 0; i < w->workers; i++)
        if (w->pid[i])
            end(w->pid[i]);
    free(w->A.data);
    free(w->x.data);
    free(w->y.data);
}

static double job_bulk(void)
{
    work w;
    double t;

    open_work(&w, "uncoded", 1, BULKS * BULK / 8, 1, 1, 0);
    play(&w, 1);
    t = play(&w, PLAYS);
    close_work(&w);
    return BULKS * (double)BULK / t;
}

static double job_round(void)
{
    work w;
    double t;

    open_work(&w, "uncoded", WORKERS, WORKERS, 1, 1, 0);
    play(&w, 20);
    t = play(&w, TRIPS);
    close_work(&w);
    return t;
}

/* ---- the product --------------------------------------------------------- */

enum { FINE, STOPPED, KILLED, PDGEMM, PRODUCTS };

static double product[PRODUCTS][MOST];

static void products(int i)
{
    double stopped;
    work w;

    open_work(&w, "mds:k=3", 4, SIDE, SIDE, SIDE, 0);
    play(&w, 1);
    product[FINE][i] = play(&w, 1);
    kill(w.pid[1], SIGSTOP);
    stopped = now();
    product[STOPPED][i] = play(&w, 1);
    while (now() - stopped < 10)
        usleep(10000);
    kill(w.pid[1], SIGCONT);
    play(&w, 1);
    kill(w.pid[1], SIGKILL);
    product[KILLED][i] = play(&w, 1);
    close_work(&w);
}

#define LEAST 3 /* workers of an elastic code */
#define FLEETS 4
#define TURNS 3 /* of all fleets, in a round */

static double fleet[FLEETS][MOST], threads[FLEETS][MOST];
static work fleet_work[FLEETS], thread_work[FLEETS];

static void open_fleets(void)
{
    const char *before = where;
    char at[64];

    for (size_t k = 0; k < FLEETS; k++) {
        snprintf(at, sizeof at, "ipc:///tmp/kofn-bench-%d-%zu.sock",
                 (int)getpid(), k);
        where = at;
        open_work(&fleet_work[k], "elastic:k=3", LEAST + k, SIDE, SIDE, SIDE,
                  0);
        where = NULL;
        open_work(&thread_work[k], "elastic:k=3", LEAST + k, SIDE, SIDE, SIDE,
                  0);
        play(&fleet_work[k], 1);
        play(&thread_work[k], 1);
    }
    where = before;
}

/* All fleets are open at a time and multiply in turn, up and down again, so
 * that neighbours share other load on the machine. */
static void fleets(int i)
{
    for (int turn = TURNS * i; turn < TURNS * (i + 1); turn++)
        for (size_t step = 0; step < FLEETS; step++) {
            size_t k = turn % 2 ? FLEETS - 1 - step : step;

            fleet[k][turn] = play(&fleet_work[k], 1);
            threads[k][turn] = play(&thread_work[k], 1);
        }
}

static void close_fleets(void)
{
    for (size_t k = 0; k < FLEETS; k++) {
        close_work(&fleet_work[k]);
        close_work(&thread_work[k]);
    }
}

/* Runs a program of a folder next to this one, if it was built. (It cannot run
 * alone, so it is not among the benches.) Its last line is a time. */
static bool scalapack(const char *self, int i, const char **why)
{
    char command[4096], line[200];
    const char *slash = strrchr(self, '/');
    int n = slash ? (int)(slash - self) : 1;
    FILE *f;

    snprintf(command, sizeof command, "%.*s/scalapack/pdgemm_bench", n,
             slash ? self : ".");
    *why = "it was not built: that takes libscalapack-openmpi-dev";
    if (access(command, X_OK))
        return false;
    snprintf(command, sizeof command,
             "OPENBLAS_NUM_THREADS=1 mpirun.openmpi --oversubscribe %s "
             "--bind-to none -n 4 %.*s/scalapack/pdgemm_bench %zu 2>/dev/null",
             geteuid() == 0 ? "--allow-run-as-root" : "", n, slash ? self : ".",
             SIDE);
    *why = "mpirun.openmpi failed";
    f = popen(command, "r");
    if (!f)
        return false;
    product[PDGEMM][i] = 0;
    while (fgets(line, sizeof line, f))
        product[PDGEMM][i] = atof(line);
    return pclose(f) == 0 && product[PDGEMM][i] > 0;
}

/* ---- report -------------------------------------------------------------- */

static void tell_fleets(double socket, int turns)
{
    double sent = SIDE * SIDE * sizeof(double) / socket;

    printf("\nthe same by elastic:k=3; one more worker is sent B, %.2f s of a "
           "plain socket\n",
           sent);
    printf("%-14s %8s %8s %8s %8s %8s\n", "workers", "seconds", "ratio",
           "at most", "threads", "ratio");
    for (size_t k = 0; k < FLEETS; k++) {
        double fewer = turn_median(fleet[k ? k - 1 : 0], turns);

        printf("%-14zu %8.2f %8.2f", LEAST + k, turn_median(fleet[k], turns),
               turn_ratio(fleet[k], fleet[k ? k - 1 : 0], turns));
        if (k)
            printf(" %8.2f", 1 + sent / fewer);
        printf("%*s %8.2f %8.2f\n", k ? 0 : 9, "",
               turn_median(threads[k], turns),
               turn_ratio(fleet[k], threads[k], turns));
        figure(turn_ratio(fleet[k], threads[k], turns), "", "less",
               "processes against threads, elastic on %zu", LEAST + k);
        figure(turn_median(fleet[k], turns), "s", "less",
               "product of %zu cubed, elastic on %zu", SIDE, LEAST + k);
    }
}

int main(int argc, char **argv)
{
    static const char *const name[] = {"no fault", "one stopped", "one killed",
                                       "pdgemm"};
    static double plain[MOST], unpaced[MOST], ours[MOST], bare[MOST],
        empty[MOST];
    int rounds = argc > 1 ? atoi(argv[1]) : 5;
    const char *why = NULL;
    bool with = true;

    must(rounds >= 1 && rounds <= MOST / TURNS, "rounds: 1 to 33");
    kf_blas_single(); /* workers inherit it; otherwise OpenBLAS would start
                         threads, which spin for a tenth of a second */
    keep_memory();
    for (int i = 0; i < rounds; i++) {
        place(placed = TWO_CORES, false);
        plain[i] = plain_bulk(plain_life);
        unpaced[i] = plain_bulk(unpaced_life);
        ours[i] = job_bulk();
        place(placed = ANYWHERE, false);
        bare[i] = bare_round();
        empty[i] = job_round();
        products(i);
        with = with && scalapack(argv[0], i, &why);
    }
    open_fleets();
    for (int i = 0; i < rounds; i++)
        fleets(i);
    close_fleets();
    printf("%d rounds\n\n", rounds);
    printf(
        "answers of 8 MiB: %.0f MB/s, a plain socket %.0f: %.2f; one that is "
        "not paced %.0f: %.2f\n",
        turn_median(ours, rounds) / 1e6, turn_median(plain, rounds) / 1e6,
        turn_ratio(ours, plain, rounds), turn_median(unpaced, rounds) / 1e6,
        turn_ratio(ours, unpaced, rounds));
    printf("rounds of %d without work: %.0f us, bare packets %.0f us: %.2f\n",
           WORKERS, turn_median(empty, rounds) * 1e6,
           turn_median(bare, rounds) * 1e6, turn_ratio(empty, bare, rounds));
    figure(turn_ratio(ours, plain, rounds), "", "more", "answers of 8 MiB");
    figure(turn_ratio(ours, unpaced, rounds), "", "more",
           "answers of 8 MiB, to a socket that is not paced");
    figure(turn_ratio(empty, bare, rounds), "", "less", "rounds without work");
    printf("\n%zu x %zu by %zu x %zu on 4 workers, any 3 enough\n", SIDE, SIDE,
           SIDE, SIDE);
    printf("%-14s %8s %8s\n", "", "seconds", "ratio");
    for (int k = 0; k < PRODUCTS - !with; k++) {
        printf("%-14s %8.2f %8.2f\n", name[k], turn_median(product[k], rounds),
               turn_ratio(product[k], product[FINE], rounds));
        figure(turn_median(product[k], rounds), "s", "less",
               "product of %zu cubed, %s", SIDE, name[k]);
    }
    if (!with)
        printf("pdgemm: skipped, %s\n", why);
    tell_fleets(turn_median(plain, rounds), TURNS * rounds);
    return 0;
}
