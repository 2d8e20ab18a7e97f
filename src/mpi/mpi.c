/* mpi.c -- all calls of MPI: Isend, Irecv and Testsome.
 *
 * Nothing here waits but kf_mpi_join. A send to a rank that is dead or stopped
 * may never end. Every collective call and MPI_Finalize may hang if a rank has
 * died.
 *
 * Owns the tables of requests, and the duplicate of a communicator that
 * kf_mpi_join makes. Only one thread may call MPI for a world. */
#include <mpi.h>
#include <stdio.h>

#include "requests.h"

#define PART ((size_t)16 << 20)

struct kf_mpi_table {
    const kf_mpi_host *host;
    MPI_Comm comm;
    MPI_Request *request; /* MPI_REQUEST_NULL if the slot is free */
    kf_mpi_op **op;
    int *spare; /* free slots; the last is taken first */
    int *done;  /* results of Testsome */
    MPI_Status *status;
    size_t used, spares, cap;
    char *junk; /* PART bytes for data that is dropped */
};

/* ---- start and end ------------------------------------------------------- */

static kofn_status failed(const kf_mpi_host *host, const char *what, int error)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int n;

    MPI_Error_string(error, text, &n);
    return host->fail(KOFN_TRANSPORT, "%s: %s", what, text);
}

/* Makes "Open MPI 4.1.4" of "Open MPI v4.1.4, package: ...", and "MPICH 4.0.2"
 * of "MPICH Version:\t4.0.2\n...". */
static void library_name(char *out, size_t room)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    char name[32] = "MPI", number[24] = "";
    int n;

    MPI_Get_library_version(text, &n);
    if (sscanf(text, "Open MPI v%23[0-9.]", number) == 1)
        snprintf(name, sizeof name, "Open MPI");
    else if (sscanf(text, "MPICH Version: %23[0-9.]", number) == 1)
        snprintf(name, sizeof name, "MPICH");
    snprintf(out, room, "%s %s", name, number);
}

/* Makes the table of a communicator. Its errors are returned from now on. */
static kofn_status make_world(const kf_mpi_host *host, MPI_Comm comm,
                              kf_mpi_world *w)
{
    char machine[MPI_MAX_PROCESSOR_NAME] = "";
    int n = 0, found = 0, *top = NULL;

    w->table = host->make(1, sizeof *w->table);
    if (!w->table)
        return KOFN_NOMEM;
    w->table->host = host;
    w->table->comm = comm;
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm, &w->rank);
    MPI_Comm_size(comm, &w->ranks);
    MPI_Comm_get_attr(comm, MPI_TAG_UB, &top, &found);
    w->top_tag = found ? *top : 32767; /* the minimum that MPI guarantees */
    MPI_Get_processor_name(machine, &n);
    snprintf(w->machine, sizeof w->machine, "%.60s", machine);
    library_name(w->library, sizeof w->library);
    return KOFN_OK;
}

/* Starts MPI with MPI_Init, although other threads may compute. After
 * MPI_Init_thread Open MPI 4.1 takes locks. It takes one of them twice when a
 * TCP connection breaks, and hangs (mca_btl_tcp_endpoint_close). */
kofn_status kf_mpi_begin(const kf_mpi_host *host, kf_mpi_world *w)
{
    int was = 0, error;

    MPI_Initialized(&was);
    if (was)
        return host->fail(KOFN_STATE,
                          "MPI has been started in this process already; "
                          "kofn_mpi_attach uses it");
    error = MPI_Init(NULL, NULL);
    if (error)
        return failed(host, "MPI does not start", error);
    return make_world(host, MPI_COMM_WORLD, w);
}

static void free_table(kf_mpi_table *t)
{
    const kf_mpi_host *host = t->host;

    host->drop(t->request);
    host->drop(t->op);
    host->drop(t->spare);
    host->drop(t->done);
    host->drop(t->status);
    host->drop(t->junk);
    host->drop(t);
}

bool kf_mpi_withdraw(kf_mpi_world *w)
{
    kf_mpi_table *t = w->table;

    for (size_t i = 0; i < t->used; i++)
        if (t->request[i] != MPI_REQUEST_NULL)
            MPI_Cancel(&t->request[i]);
    for (int pass = 0; pass < 1000; pass++) {
        if (t->spares == t->used)
            return true;
        kf_mpi_poll(w);
    }
    return false;
}

void kf_mpi_leave(kf_mpi_world *w, bool lost)
{
    if (!lost)
        MPI_Comm_free(&w->table->comm);
    free_table(w->table);
}

void kf_mpi_finish(kf_mpi_world *w)
{
    MPI_Finalize();
    free_table(w->table);
}

/* ---- a communicator of the program --------------------------------------- */

/* Checks that MPI runs, and that this thread may call it. */
static kofn_status may_call(const kf_mpi_host *host)
{
    int began = 0, ended = 0, level = 0, main = 0;

    MPI_Initialized(&began);
    if (!began)
        return host->fail(KOFN_STATE,
                          "MPI has not been started; call MPI_Init first");
    MPI_Finalized(&ended);
    if (ended)
        return host->fail(KOFN_STATE, "MPI has ended; kofn_mpi_attach comes "
                                      "before MPI_Finalize");
    MPI_Query_thread(&level);
    if (level < MPI_THREAD_SERIALIZED)
        MPI_Is_thread_main(&main);
    if (level < MPI_THREAD_SERIALIZED && !main)
        return host->fail(
            KOFN_STATE,
            "MPI was started with %s, so only the thread that started it may "
            "call it, and this is another; MPI_Init_thread with "
            "MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE allows more",
            level == MPI_THREAD_SINGLE ? "MPI_THREAD_SINGLE"
                                       : "MPI_THREAD_FUNNELED");
    return KOFN_OK;
}

/* Sets the error handler of a communicator to MPI_ERRORS_RETURN and keeps the
 * former one; false if it is not a communicator. */
static bool hush(MPI_Comm comm, MPI_Errhandler *former)
{
    return MPI_Comm_get_errhandler(comm, former) == MPI_SUCCESS &&
           MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN) == MPI_SUCCESS;
}

static void restore(MPI_Comm comm, MPI_Errhandler *former)
{
    MPI_Comm_set_errhandler(comm, *former);
    MPI_Errhandler_free(former);
}

/* Finds what all ranks can find alike: none then waits for another. */
static kofn_status suits(const kf_mpi_host *host, MPI_Comm comm,
                         const kofn_mpi_options *opt)
{
    int inter = 0, ranks = 0;

    if (MPI_Comm_test_inter(comm, &inter) || MPI_Comm_size(comm, &ranks))
        return host->fail(KOFN_INVAL, "this is not a communicator");
    if (inter)
        return host->fail(KOFN_INVAL,
                          "this is an inter-communicator; MPI_Intercomm_merge "
                          "makes one that kofn can use");
    if (ranks < 2)
        return host->fail(KOFN_INVAL, "this communicator has one rank; at "
                                      "least two are needed");
    if (!opt->mesh && opt->root >= (unsigned)ranks)
        return host->fail(KOFN_INVAL,
                          "root %u is not a rank of this communicator, which "
                          "has %d",
                          opt->root, ranks);
    return KOFN_OK;
}

/* Compares the options of all ranks: a maximum is the negated minimum of the
 * negated values. */
static kofn_status agree(const kf_mpi_host *host, MPI_Comm comm,
                         const kofn_mpi_options *opt)
{
    int root = opt->mesh ? 0 : (int)(opt->root & INT32_MAX);
    int mine[4] = {root, -root, opt->mesh, -(int)opt->mesh}, least[4];
    int error = MPI_Allreduce(mine, least, 4, MPI_INT, MPI_MIN, comm);

    if (error)
        return failed(host, "MPI_Allreduce", error);
    if (least[0] != -least[1] || least[2] != -least[3])
        return host->fail(KOFN_INVAL,
                          "the ranks of this communicator gave different "
                          "options; root and mesh must be the same on all");
    return suits(host, comm, opt);
}

static kofn_status duplicate(const kf_mpi_host *host, MPI_Comm comm,
                             const kofn_mpi_options *opt, MPI_Comm *own)
{
    MPI_Errhandler former;
    kofn_status st;
    int error;

    if (!hush(comm, &former))
        return host->fail(KOFN_INVAL, "this is not a communicator; give "
                                      "MPI_Comm_c2f(comm), or comm.py2f()");
    st = agree(host, comm, opt);
    if (!st) {
        error = MPI_Comm_dup(comm, own);
        if (error)
            st = failed(host, "MPI_Comm_dup", error);
    }
    restore(comm, &former);
    return st;
}

kofn_status kf_mpi_join(const kf_mpi_host *host, int comm,
                        const kofn_mpi_options *opt, kf_mpi_world *w)
{
    MPI_Comm own = MPI_COMM_NULL, given;
    MPI_Errhandler former;
    kofn_status st;

    TRY(may_call(host));
    given = MPI_Comm_f2c(comm);
    if (!given || given == MPI_COMM_NULL)
        return host->fail(KOFN_INVAL,
                          "%d is not the Fortran handle of a "
                          "communicator of this rank; give "
                          "MPI_Comm_c2f(comm), or comm.py2f()",
                          comm);
    /* Errors of a handle that is none go to MPI_COMM_WORLD. */
    hush(MPI_COMM_WORLD, &former);
    st = duplicate(host, given, opt, &own);
    restore(MPI_COMM_WORLD, &former);
    if (!st)
        st = make_world(host, own, w);
    if (st && own != MPI_COMM_NULL)
        MPI_Comm_free(&own);
    return st;
}

/* ---- requests ------------------------------------------------------------ */

size_t kf_mpi_parts(size_t bytes)
{
    return kf_ceil_div(bytes, PART);
}

/* Moves an array of count[0] elements to one of count[1]; false leaves it
 * unchanged. */
static bool longer(const kf_mpi_host *host, void *array, const size_t *count,
                   size_t size)
{
    void *old, *now = host->room(count[1], size);

    if (!now)
        return false;
    memcpy(&old, array, sizeof old);
    if (count[0])
        memcpy(now, old, count[0] * size);
    host->drop(old);
    memcpy(array, &now, sizeof now);
    return true;
}

kofn_status kf_mpi_reserve(kf_mpi_world *w, size_t n)
{
    kf_mpi_table *t = w->table;
    size_t cap, count[2];

    if (n <= t->spares + (t->cap - t->used))
        return KOFN_OK;
    if (!kf_add(t->used, n, &cap) || cap > INT32_MAX / 2)
        return t->host->fail(KOFN_NOMEM, "%zu more messages do not fit", n);
    cap = kf_max(64, 2 * cap);
    count[0] = t->cap;
    count[1] = cap;
    if (!longer(t->host, &t->request, count, sizeof *t->request) ||
        !longer(t->host, &t->op, count, sizeof *t->op) ||
        !longer(t->host, &t->spare, count, sizeof *t->spare) ||
        !longer(t->host, &t->done, count, sizeof *t->done) ||
        !longer(t->host, &t->status, count, sizeof *t->status))
        return KOFN_NOMEM;
    t->cap = cap;
    return KOFN_OK;
}

static MPI_Request *slot(kf_mpi_table *t, kf_mpi_op *op)
{
    size_t i = t->spares ? (size_t)t->spare[--t->spares] : t->used++;

    t->op[i] = op;
    t->request[i] = MPI_REQUEST_NULL;
    return &t->request[i];
}

static void give_back(kf_mpi_table *t, size_t i)
{
    t->request[i] = MPI_REQUEST_NULL;
    t->op[i] = NULL;
    t->spare[t->spares++] = (int)i;
}

kofn_status kf_mpi_send(kf_mpi_world *w, kf_mpi_place to, const void *from,
                        size_t bytes, kf_mpi_op *op)
{
    kf_mpi_table *t = w->table;

    for (size_t at = 0; at < bytes; at += PART) {
        MPI_Request *r = slot(t, op);
        int error =
            MPI_Isend((const char *)from + at, (int)kf_min(PART, bytes - at),
                      MPI_BYTE, to.rank, to.tag, t->comm, r);

        if (error) {
            give_back(t, (size_t)(r - t->request));
            return failed(t->host, "MPI_Isend", error);
        }
    }
    return KOFN_OK;
}

kofn_status kf_mpi_receive(kf_mpi_world *w, kf_mpi_place from, void *into,
                           size_t bytes, kf_mpi_op *op)
{
    kf_mpi_table *t = w->table;

    if (!into && !t->junk && !(t->junk = t->host->room(PART, 1)))
        return KOFN_NOMEM;
    for (size_t at = 0; at < bytes; at += PART) {
        MPI_Request *r = slot(t, op);
        int error = MPI_Irecv(into ? (char *)into + at : t->junk,
                              (int)kf_min(PART, bytes - at), MPI_BYTE,
                              from.rank, from.tag, t->comm, r);

        if (error) {
            give_back(t, (size_t)(r - t->request));
            return failed(t->host, "MPI_Irecv", error);
        }
    }
    return KOFN_OK;
}

kofn_status kf_mpi_poll(kf_mpi_world *w)
{
    kf_mpi_table *t = w->table;
    int count = 0, error, bytes;

    error = MPI_Testsome((int)t->used, t->request, &count, t->done, t->status);
    if (error && error != MPI_ERR_IN_STATUS)
        return failed(t->host, "MPI_Testsome", error);
    if (count == MPI_UNDEFINED)
        return KOFN_OK;
    /* A finished request may start another, which may move the table. */
    for (int i = 0; i < count; i++) {
        size_t at = (size_t)t->done[i];
        MPI_Status *s = &t->status[i];
        kf_mpi_op *op = t->op[at];
        bool ok = !error || s->MPI_ERROR == MPI_SUCCESS;

        bytes = 0;
        MPI_Get_count(s, MPI_BYTE, &bytes);
        give_back(t, at);
        op->finish(op, bytes > 0 ? (size_t)bytes : 0, ok);
    }
    return KOFN_OK;
}
