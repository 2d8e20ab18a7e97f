/* mpi.h -- transport between the ranks of an MPI job.
 *
 * For programs that are started as MPI ranks and act as coordinator, workers or
 * nodes of a mesh.  The transport is used like any other (<kofn/transport.h>).
 * A program that uses MPI itself calls kofn_mpi_attach; another one calls
 * kofn_mpi_open, which starts MPI, and kofn_mpi_end.
 *
 * libkofn itself does not depend on MPI.  The code that uses MPI is in two
 * further libraries, for Open MPI and for MPICH.  kofn_mpi_open loads the one
 * with which the job was started, kofn_mpi_attach the one that runs in the
 * process.  Only point-to-point messages are used.  There is no collective call
 * between start and end, and no wait for one particular rank.  A silent rank
 * counts as lost, whatever MPI reports about it.
 */
#ifndef KOFN_MPI_H
#define KOFN_MPI_H

#include <kofn/transport.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Options of the transport between ranks. */
typedef struct kofn_mpi_options {
    size_t size; /* sizeof(kofn_mpi_options) */
    /* True: every rank reaches every other, and peer r is rank r.  False: rank
     * `root` is the coordinator, and its peers are the other ranks in their
     * order.  Each other rank has one peer, number 0, which is `root`. */
    bool mesh;
    /* A peer that is silent for this time, while this process listens, is lost.
     * 0 means 5 s, or 60 s for kofn_mpi_attach.  Ranks report themselves
     * whenever they wait or send, so it must exceed the longest time that a
     * rank spends without either. */
    kofn_time silence;
    /* The same for the coordinator, which may have files to read first.  0
     * means 12 times `silence`, or no limit for kofn_mpi_attach. */
    kofn_time patience;
    /* "openmpi" or "mpich".  NULL: the MPI with which the job was started, or
     * for kofn_mpi_attach the one that runs in this process. */
    const char *library;
    unsigned root; /* rank of the coordinator */
} kofn_mpi_options;
#define KOFN_MPI_OPTIONS_INIT                                                  \
    {                                                                          \
        sizeof(kofn_mpi_options), false, 0, 0, NULL, 0                         \
    }

/* Facts about the MPI job. */
typedef struct kofn_mpi_info {
    size_t size; /* sizeof(kofn_mpi_info) */
    unsigned rank, ranks;
    char library[64];   /* such as "Open MPI 4.1.4" */
    bool survives;      /* the job survives the loss of a rank, except rank 0 */
    char survival[400]; /* a description of the losses that it survives       */
} kofn_mpi_info;
#define KOFN_MPI_INFO_INIT                                                     \
    {                                                                          \
        sizeof(kofn_mpi_info), 0, 0, "", false, ""                             \
    }

/* Starts MPI in this process and opens the transport.  It can be called once.
 * `opt` and `info` may be NULL.  *out is closed with its close function, or
 * taken over by kofn_port_away or kofn_serve; call kofn_mpi_end afterwards.
 *
 * KOFN_STATE: the process was not started as a rank, or MPI was started or
 * ended before.
 * KOFN_TRANSPORT: MPI fails, or its library is missing.  The message then names
 * the package.
 * KOFN_INVAL: the job has one rank only, or an option is invalid. */
KOFN_API kofn_status kofn_mpi_open(kofn_transport **out,
                                   const kofn_mpi_options *opt,
                                   kofn_mpi_info *info);

/* Opens the transport between the ranks of a communicator of a program that has
 * started MPI itself.  `comm` is its Fortran handle: MPI_Comm_c2f(comm) in C,
 * comm.py2f() in mpi4py.  Every rank of the communicator calls it, with the
 * same `root` and `mesh` in `opt`, which may be NULL.
 *
 * The communicator is duplicated, so that packets never meet messages of the
 * program.  It must stay as it is only during this call.  MPI is neither
 * started nor ended, and error handlers stay as they are.  Several transports
 * may be open, for example one in each half of the ranks.
 *
 * The transport's close function waits until all of its peers have closed
 * theirs or are lost, whatever its `linger`.  kofn_serve and
 * kofn_port_close call it.  Then the program goes on with MPI.  MPI_Finalize
 * comes after it.  All calls for one transport come from threads that may call
 * MPI; two threads with a transport each need MPI_THREAD_MULTIPLE.
 *
 * KOFN_STATE: MPI does not run in this process, or its thread level forbids
 * calls from this thread.
 * KOFN_TRANSPORT: MPI fails, or the library for it is missing.
 * KOFN_INVAL: `comm` is not a communicator, has one rank only or is an
 * inter-communicator.  Or an option is invalid, or not the same on all ranks.
 */
KOFN_API kofn_status kofn_mpi_attach(kofn_transport **out, int comm,
                                     const kofn_mpi_options *opt);

/* Ends MPI.  Every rank calls it last, after it closed the transport.  It waits
 * until all peers have closed too or are lost.  Returns `code`.  If a rank was
 * lost and MPI would hang, it ends the process with exit code `code` instead.
 * It does nothing if kofn_mpi_open has not started MPI. */
KOFN_API int kofn_mpi_end(int code);

#ifdef __cplusplus
}
#endif
#endif
