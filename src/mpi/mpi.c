/* mpi.c -- all calls of MPI: Isend, Irecv and Testsome.
 *
 * Nothing here waits. A send to a rank that is dead or stopped may never end.
 * Every collective call and MPI_Finalize may hang if a rank has died.
 *
 * Owns the table of requests of the process. Only these functions may call MPI
 * while a job runs, from one thread. */
#include <mpi.h>
#include <stdio.h>

#include "requests.h"

#define PART ((size_t)16 << 20)

static struct {
    const kf_mpi_host *host;
    MPI_Request *request; /* MPI_REQUEST_NULL if the slot is free */
    kf_mpi_op **op;
    int *spare; /* free slots; the last is taken first */
    int *done;  /* results of Testsome */
    MPI_Status *status;
    size_t used, spares, cap;
    char *junk; /* PART bytes for data that is dropped */
} table;

/* ---- start and end ------------------------------------------------------- */

static kofn_status failed(const char *what, int error)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int n;

    MPI_Error_string(error, text, &n);
    return table.host->fail(KOFN_TRANSPORT, "%s: %s", what, text);
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

/* Starts MPI with MPI_Init, although other threads may compute. After
 * MPI_Init_thread Open MPI 4.1 takes locks. It takes one of them twice when a
 * TCP connection breaks, and hangs (mca_btl_tcp_endpoint_close). */
kofn_status kf_mpi_begin(const kf_mpi_host *host, kf_mpi_world *w)
{
    char machine[MPI_MAX_PROCESSOR_NAME] = "";
    int was = 0, error, n = 0, found = 0, *top = NULL;

    table.host = host;
    MPI_Initialized(&was);
    if (was)
        return host->fail(KOFN_STATE,
                          "MPI has been started in this process "
                          "already; kofn starts and ends it itself");
    error = MPI_Init(NULL, NULL);
    if (error)
        return failed("MPI does not start", error);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &w->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &w->ranks);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &top, &found);
    w->top_tag = found ? *top : 32767; /* the minimum that MPI guarantees */
    MPI_Get_processor_name(machine, &n);
    snprintf(w->machine, sizeof w->machine, "%.60s", machine);
    library_name(w->library, sizeof w->library);
    return KOFN_OK;
}

bool kf_mpi_withdraw(void)
{
    for (size_t i = 0; i < table.used; i++)
        if (table.request[i] != MPI_REQUEST_NULL)
            MPI_Cancel(&table.request[i]);
    for (int pass = 0; pass < 1000; pass++) {
        if (table.spares == table.used)
            return true;
        kf_mpi_poll();
    }
    return false;
}

void kf_mpi_finish(void)
{
    MPI_Finalize();
    table.host->drop(table.request);
    table.host->drop(table.op);
    table.host->drop(table.spare);
    table.host->drop(table.done);
    table.host->drop(table.status);
    table.host->drop(table.junk);
}

/* ---- requests ------------------------------------------------------------ */

size_t kf_mpi_parts(size_t bytes)
{
    return kf_ceil_div(bytes, PART);
}

/* Moves an array to one of `cap` elements; false leaves it unchanged. */
static bool longer(void *array, size_t used, size_t cap, size_t size)
{
    void *old, *now = table.host->room(cap, size);

    if (!now)
        return false;
    memcpy(&old, array, sizeof old);
    if (used)
        memcpy(now, old, used * size);
    table.host->drop(old);
    memcpy(array, &now, sizeof now);
    return true;
}

kofn_status kf_mpi_reserve(size_t n)
{
    size_t old = table.cap, cap;

    if (n <= table.spares + (table.cap - table.used))
        return KOFN_OK;
    if (!kf_add(table.used, n, &cap) || cap > INT32_MAX / 2)
        return table.host->fail(KOFN_NOMEM, "%zu more messages do not fit", n);
    cap = kf_max(64, 2 * cap);
    if (!longer(&table.request, old, cap, sizeof *table.request) ||
        !longer(&table.op, old, cap, sizeof *table.op) ||
        !longer(&table.spare, old, cap, sizeof *table.spare) ||
        !longer(&table.done, old, cap, sizeof *table.done) ||
        !longer(&table.status, old, cap, sizeof *table.status))
        return KOFN_NOMEM;
    table.cap = cap;
    return KOFN_OK;
}

static MPI_Request *slot(kf_mpi_op *op)
{
    size_t i =
        table.spares ? (size_t)table.spare[--table.spares] : table.used++;

    table.op[i] = op;
    table.request[i] = MPI_REQUEST_NULL;
    return &table.request[i];
}

static void give_back(size_t i)
{
    table.request[i] = MPI_REQUEST_NULL;
    table.op[i] = NULL;
    table.spare[table.spares++] = (int)i;
}

kofn_status kf_mpi_send(int rank, int tag, const void *from, size_t bytes,
                        kf_mpi_op *op)
{
    for (size_t at = 0; at < bytes; at += PART) {
        MPI_Request *r = slot(op);
        int error =
            MPI_Isend((const char *)from + at, (int)kf_min(PART, bytes - at),
                      MPI_BYTE, rank, tag, MPI_COMM_WORLD, r);

        if (error) {
            give_back((size_t)(r - table.request));
            return failed("MPI_Isend", error);
        }
    }
    return KOFN_OK;
}

kofn_status kf_mpi_receive(int rank, int tag, void *into, size_t bytes,
                           kf_mpi_op *op)
{
    if (!into && !table.junk && !(table.junk = table.host->room(PART, 1)))
        return KOFN_NOMEM;
    for (size_t at = 0; at < bytes; at += PART) {
        MPI_Request *r = slot(op);
        int error = MPI_Irecv(into ? (char *)into + at : table.junk,
                              (int)kf_min(PART, bytes - at), MPI_BYTE, rank,
                              tag, MPI_COMM_WORLD, r);

        if (error) {
            give_back((size_t)(r - table.request));
            return failed("MPI_Irecv", error);
        }
    }
    return KOFN_OK;
}

kofn_status kf_mpi_poll(void)
{
    int count = 0, error, bytes;

    error = MPI_Testsome((int)table.used, table.request, &count, table.done,
                         table.status);
    if (error && error != MPI_ERR_IN_STATUS)
        return failed("MPI_Testsome", error);
    if (count == MPI_UNDEFINED)
        return KOFN_OK;
    /* A finished request may start another, which may move the table. */
    for (int i = 0; i < count; i++) {
        size_t at = (size_t)table.done[i];
        MPI_Status *s = &table.status[i];
        kf_mpi_op *op = table.op[at];
        bool ok = !error || s->MPI_ERROR == MPI_SUCCESS;

        bytes = 0;
        MPI_Get_count(s, MPI_BYTE, &bytes);
        give_back(at);
        op->finish(op, bytes > 0 ? (size_t)bytes : 0, ok);
    }
    return KOFN_OK;
}
