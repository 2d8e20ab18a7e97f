/* attach.c -- one rank of a program that uses MPI itself and attaches kofn.
 *
 * The ranks are split in two halves. Each half multiplies on its own workers,
 * twice, and a receive of the program from any rank is open meanwhile. Then
 * the program goes on with MPI: it sums over all ranks, and its own message
 * arrives. What kofn has to refuse is tried before, between and after.
 *
 * Prints a line "rank R: ok" and exits with 0, or reports the fault. */
#include <kofn/mpi.h>

#include <cblas.h>
#include <math.h>
#include <mpi.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROWS 301
#define COLS 57

static int rank, ranks;

static void wrong(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fprintf(stderr, "rank %d: ", rank);
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, "\n");
    va_end(ap);
    _exit(1);
}

static void must(kofn_status st, const char *what)
{
    if (st)
        wrong("%s: %s", what, kofn_errmsg());
}

/* ---- the product of a half ----------------------------------------------- */

/* Fills with numbers that differ between halves and turns. */
static void fill(double *p, size_t n, int key)
{
    for (size_t i = 0; i < n; i++)
        p[i] = sin((double)(i + 1) * (1.0 + 0.1 * key));
}

/* Rows of A that lie at the ranks of a half, `each` at every rank. */
typedef struct spread {
    MPI_Win window;
    int each;
} spread;

/* Gets rows from the ranks that have them. */
static kofn_status read_rows(void *ud, size_t row, const kofn_matrix *out)
{
    const spread *s = ud;

    for (size_t i = 0; out && i < out->rows; i++) {
        int at = (int)(row + i), from = at / s->each;
        double *to = (double *)out->data + i * out->ld;

        if (MPI_Win_lock(MPI_LOCK_SHARED, from, 0, s->window) ||
            MPI_Get(to, COLS, MPI_DOUBLE, from, at % s->each, COLS, MPI_DOUBLE,
                    s->window) ||
            MPI_Win_unlock(from, s->window))
            return kofn_say(KOFN_TRANSPORT, "rank %d gives no rows", from);
    }
    return KOFN_OK;
}

/* Places A as a whole, or as rows that lie at the ranks. */
static void place(kofn_job *job, const kofn_matrix *A, spread *s)
{
    kofn_source from = KOFN_SOURCE_INIT;

    from.read = read_rows;
    from.ud = s;
    from.panel = 40 * COLS * sizeof(double);
    must(s ? kofn_place_from(job, 0, &from) : kofn_place(job, A), "place");
}

static void coordinate(kofn_transport *t, size_t workers, int key, spread *s)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATVEC, ROWS, COLS, 1, KOFN_F64, false);
    static double X[ROWS * COLS], w[COLS], y[ROWS], right[ROWS];
    kofn_matrix A = {X, ROWS, COLS, COLS, KOFN_F64};
    kofn_matrix in = {w, COLS, 1, 1, KOFN_F64};
    kofn_matrix out = {y, ROWS, 1, 1, KOFN_F64};
    kofn_away_options away = KOFN_AWAY_OPTIONS_INIT;
    kofn_plan *plan;
    kofn_port *port;
    kofn_job *job;

    fill(X, ROWS * COLS, key);
    fill(w, COLS, key + 1);
    away.workers = workers;
    must(kofn_plan_new(&plan, &pb, "mds:k=2", workers, 1), "plan");
    must(kofn_port_away(&port, t, &away), "port");
    must(kofn_open(&job, plan, port, NULL), "job");
    place(job, &A, s);
    must(kofn_round(job, &in, &out, NULL), "round");
    kofn_close(job);
    kofn_plan_free(plan);
    cblas_dgemv(CblasRowMajor, CblasNoTrans, ROWS, COLS, 1, X, COLS, w, 1, 0,
                right, 1);
    for (int i = 0; i < ROWS; i++)
        if (!(fabs(y[i] - right[i]) < 1e-9))
            wrong("row %d is %g and not %g", i, y[i], right[i]);
}

/* Makes the window of this rank's rows of A.  Only one half may make windows:
 * those of two halves at once get the same shared memory (Open MPI 4.1.4). */
static double *spread_rows(spread *s, MPI_Comm half, int own, int all, int key)
{
    double X[ROWS * COLS], *rows;
    int first;

    s->each = (ROWS + all - 1) / all;
    first = own * s->each;
    rows = calloc((size_t)s->each * COLS, sizeof *rows);
    if (!rows)
        wrong("no memory");
    fill(X, ROWS * COLS, key);
    for (int i = 0; i < s->each && first + i < ROWS; i++)
        memcpy(rows + i * COLS, X + (first + i) * COLS, COLS * sizeof *rows);
    MPI_Win_create(rows, s->each * COLS * (MPI_Aint)sizeof *rows,
                   COLS * sizeof *rows, MPI_INFO_NULL, half, &s->window);
    return rows;
}

/* Multiplies.  Half 0 does so the second time with rows that lie at the ranks.
 */
static void multiply(MPI_Comm half, int root, int key)
{
    kofn_mpi_options opt = KOFN_MPI_OPTIONS_INIT;
    spread s = {.each = 0};
    double *rows = NULL;
    int own, all;
    kofn_transport *t;

    MPI_Comm_rank(half, &own);
    MPI_Comm_size(half, &all);
    opt.root = (unsigned)root;
    if (key == 1)
        rows = spread_rows(&s, half, own, all, key);
    must(kofn_mpi_attach(&t, MPI_Comm_c2f(half), &opt), "attach");
    if (own == root)
        coordinate(t, (size_t)all - 1, key, s.each ? &s : NULL);
    else
        must(kofn_serve(t, NULL), "serve");
    if (rows)
        MPI_Win_free(&s.window);
    free(rows);
}

/* ---- what is refused ----------------------------------------------------- */

static void refused(MPI_Fint comm, unsigned root, kofn_status expected,
                    const char *words)
{
    kofn_mpi_options opt = KOFN_MPI_OPTIONS_INIT;
    kofn_transport *t = (kofn_transport *)&opt;
    kofn_status st;

    opt.root = root;
    st = kofn_mpi_attach(&t, comm, &opt);
    if (st != expected || t || !strstr(kofn_errmsg(), words))
        wrong("attach gives %d, \"%s\", where \"%s\" was due", st,
              kofn_errmsg(), words);
}

static void *in_thread(void *comm)
{
    refused(*(MPI_Fint *)comm, 0, KOFN_STATE, "MPI_THREAD_FUNNELED");
    return NULL;
}

static void refuse(void)
{
    MPI_Fint world = MPI_Comm_c2f(MPI_COMM_WORLD);
    kofn_mpi_info info = KOFN_MPI_INFO_INIT;
    kofn_transport *t;
    pthread_t thread;

    refused(MPI_Comm_c2f(MPI_COMM_NULL), 0, KOFN_INVAL, "MPI_Comm_c2f");
    refused(MPI_Comm_c2f(MPI_COMM_SELF), 0, KOFN_INVAL, "has one rank");
    refused(world, (unsigned)ranks, KOFN_INVAL, "is not a rank of");
    refused(world, rank == 1, KOFN_INVAL, "must be the same on all");
    if (pthread_create(&thread, NULL, in_thread, &world))
        wrong("no thread");
    pthread_join(thread, NULL);
    if (kofn_mpi_open(&t, NULL, &info) != KOFN_STATE)
        wrong("MPI was started twice");
}

static void refuse_inter_communicator(MPI_Comm half, int other_leader)
{
    MPI_Comm inter;

    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, other_leader, 5, &inter);
    refused(MPI_Comm_c2f(inter), 0, KOFN_INVAL, "MPI_Intercomm_merge");
    MPI_Comm_free(&inter);
}

/* ---- the program --------------------------------------------------------- */

static void on_error(MPI_Comm *comm, int *error, ...)
{
    (void)comm;
    wrong("the program's error handler was called with %d", *error);
}

static void has_handler(MPI_Comm comm, MPI_Errhandler due)
{
    MPI_Errhandler now;

    MPI_Comm_get_errhandler(comm, &now);
    if (now != due)
        wrong("an error handler has changed");
    MPI_Errhandler_free(&now);
}

/* Multiplies in this half, with messages of the program on the same
 * communicator. Half 1 has its last rank as the coordinator. */
static void work(MPI_Comm half, int which)
{
    int own, all, got = -1, sent = 100 * which + 7;
    MPI_Request r;

    MPI_Comm_rank(half, &own);
    MPI_Comm_size(half, &all);
    MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, half, &r);
    for (int turn = 0; turn < 2; turn++)
        multiply(half, which ? all - 1 : 0, 10 * which + turn);
    MPI_Send(&sent, 1, MPI_INT, (own + 1) % all, 1, half);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    if (got != sent)
        wrong("a receive of the program has got %d and not %d", got, sent);
}

int main(int argc, char **argv)
{
    int level, which, sum, ended = 0;
    MPI_Errhandler mine;
    MPI_Comm half;

    refused(0, 0, KOFN_STATE, "call MPI_Init");
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_create_errhandler(on_error, &mine);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, mine);
    which = rank % 2;
    MPI_Comm_split(MPI_COMM_WORLD, which, rank, &half);
    refuse();
    refuse_inter_communicator(half, !which);
    work(half, which);
    has_handler(MPI_COMM_WORLD, mine);
    has_handler(half, mine);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (sum != ranks * (ranks - 1) / 2)
        wrong("the sum of the ranks is %d", sum);
    MPI_Finalized(&ended);
    if (kofn_mpi_end(3) != 3 || ended)
        wrong("kofn has ended MPI");
    MPI_Comm_free(&half);
    MPI_Errhandler_free(&mine);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    refused(0, 0, KOFN_STATE, "MPI has ended");
    printf("rank %d: ok\n", rank);
    return 0;
}
