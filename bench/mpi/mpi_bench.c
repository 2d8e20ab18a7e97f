/* mpi_bench.c -- the MPI transport against bare MPI_Send and MPI_Recv.
 *
 * 1. The round trip of a packet with a head of 8 bytes, against a message of 8
 * bytes. 2. Bytes per second in packets with bodies of 8 MiB, against plain
 * sends of the same size. Each packet is sent as soon as the last body is the
 * sender's again.
 *
 * 3. The round trip of bare MPI if no call may wait, as in the transport: by
 * MPI_Isend, MPI_Irecv and MPI_Testsome.
 *
 * All run in turn on the same ranks. The ratio is taken turn by turn; prints
 * its median.
 *
 *     mpirun -n 2 mpi_bench [REPETITIONS] */
#include "../bench.h"

#include <kofn/mpi.h>

#include <mpi.h>

#define TRIPS 2000
#define BODY ((size_t)8 << 20)
#define BODIES 24

static kofn_transport *t;
static unsigned rank;
static unsigned char *body;

/* ---- the transport ------------------------------------------------------- */

static unsigned arrived; /* arrived packets that were not asked for */

static kofn_status look(kofn_time atmost)
{
    kofn_packet p;
    kofn_status st = t->wait(t, atmost, &p);

    must(st >= 0 && (st != KOFN_OK || p.what != KOFN_WENT), "wait");
    if (st == KOFN_OK && p.what == KOFN_PACKET) {
        t->release(t, p.own);
        arrived++;
    }
    return st;
}

static void get(void)
{
    while (!arrived)
        must(look(10 * KOFN_SECOND) == KOFN_OK, "wait");
    arrived--;
}

static void done(void *ud)
{
    *(bool *)ud = true;
}

static void put(const void *b, size_t bytes)
{
    uint64_t head = bytes;
    bool given_back = false;
    kofn_status st;

    while ((st = t->send(t, 0, &head, sizeof head,
                         &(kofn_lent){b, bytes, done, &given_back}, false)) ==
           KOFN_AGAIN)
        look(KOFN_SECOND / 1000);
    check(st, "send");
    while (!given_back)
        look(KOFN_SECOND / 1000);
}

static double trip(void)
{
    double began = now();

    for (int i = 0; i < TRIPS; i++) {
        if (rank == 0)
            put(NULL, 0);
        get();
        if (rank == 1)
            put(NULL, 0);
    }
    return (now() - began) / TRIPS;
}

static double bulk(void)
{
    double began = now();

    for (int i = 0; i < BODIES; i++) {
        if (rank == 0)
            put(body, BODY);
        else
            get();
    }
    if (rank == 0)
        get();
    else
        put(NULL, 0);
    return (double)BODIES * (double)BODY / (now() - began);
}

/* ---- bare MPI ------------------------------------------------------------ */

static void bare_get(size_t bytes)
{
    MPI_Recv(body, (int)bytes, MPI_BYTE, 1 - (int)rank, 9999, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
}

static void bare_put(size_t bytes)
{
    MPI_Send(body, (int)bytes, MPI_BYTE, 1 - (int)rank, 9999, MPI_COMM_WORLD);
}

static double bare_trip(void)
{
    double began = now();

    for (int i = 0; i < TRIPS; i++) {
        if (rank == 0)
            bare_put(8);
        bare_get(8);
        if (rank == 1)
            bare_put(8);
    }
    return (now() - began) / TRIPS;
}

/* Starts to send a message of 8 bytes, or to receive one. */
static void start(bool send, MPI_Request *r)
{
    int other = 1 - (int)rank;

    if (send)
        MPI_Isend(body, 8, MPI_BYTE, other, 9998, MPI_COMM_WORLD, r);
    else
        MPI_Irecv(body + 8, 8, MPI_BYTE, other, 9998, MPI_COMM_WORLD, r);
}

static double unwaited_trip(void)
{
    MPI_Request r[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL}; /* send, receive */
    double began = now();
    MPI_Status status[2];
    int done[2], n;

    for (int i = 0; i < TRIPS; i++) {
        start(false, &r[1]);
        if (rank == 0)
            start(true, &r[0]);
        while (r[1] != MPI_REQUEST_NULL)
            MPI_Testsome(2, r, &n, done, status);
        if (rank == 1)
            start(true, &r[0]);
    }
    MPI_Waitall(2, r, status);
    return (now() - began) / TRIPS;
}

static double bare_bulk(void)
{
    double began = now();

    for (int i = 0; i < BODIES; i++) {
        if (rank == 0)
            bare_put(BODY);
        else
            bare_get(BODY);
    }
    if (rank == 0)
        bare_get(8);
    else
        bare_put(8);
    return (double)BODIES * (double)BODY / (now() - began);
}

int main(int argc, char **argv)
{
    int reps = argc > 1 ? atoi(argv[1]) : 9;
    double ours[2][MOST], bare[2][MOST], ratio[2][MOST];
    double unwaited[MOST];
    kofn_mpi_options opt = KOFN_MPI_OPTIONS_INIT;
    kofn_mpi_info info = KOFN_MPI_INFO_INIT;

    keep_memory();
    reps = reps < 1 ? 1 : reps > MOST ? MOST : reps;
    opt.silence = 60 * KOFN_SECOND; /* bare MPI gives no sign of life */
    check(kofn_mpi_open(&t, &opt, &info), "open");
    rank = info.rank;
    body = calloc(1, BODY);
    must(body && info.ranks == 2, "two ranks, and memory");
    for (int i = -1; i < reps; i++) {
        int at = i < 0 ? 0 : i; /* the first turn does not count */

        bare[0][at] = bare_trip();
        unwaited[at] = unwaited_trip() / bare[0][at];
        ours[0][at] = trip();
        bare[1][at] = bare_bulk();
        ours[1][at] = bulk();
        for (int k = 0; k < 2; k++)
            ratio[k][at] = ours[k][at] / bare[k][at];
    }
    if (rank == 0) {
        printf("%s, two ranks, medians of %d turns\n", info.library, reps);
        printf("  %-24s %10s %10s %8s\n", "", "transport", "bare MPI", "ratio");
        printf("  %-24s %10.2f %10.2f %8.2f\n", "round trip (us)",
               1e6 * median(ours[0], reps), 1e6 * median(bare[0], reps),
               median(ratio[0], reps));
        printf("  %-24s %30.2f\n", "bare MPI without waits",
               median(unwaited, reps));
        printf("  %-24s %10.0f %10.0f %8.2f\n", "8 MiB bodies (MB/s)",
               1e-6 * median(ours[1], reps), 1e-6 * median(bare[1], reps),
               median(ratio[1], reps));
        figure(median(ratio[0], reps), "", "less", "round trip");
        figure(median(ratio[1], reps), "", "more", "bodies of 8 MiB");
    }
    t->close(t, KOFN_SECOND);
    free(body);
    return kofn_mpi_end(0);
}
