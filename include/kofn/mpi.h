/* mpi.h -- transport between the ranks of an MPI job.
 *
 * For programs that are started as MPI ranks and act as coordinator, workers or
 * nodes of a mesh.  The transport is used like any other (<kofn/transport.h>).
 *
 * libkofn itself does not depend on MPI.  The code that uses MPI is in two
 * further libraries, for Open MPI and for MPICH; kofn_mpi_open loads the one
 * with which the job was started.  Only point-to-point messages are used.
 * There is no collective call between start and end, and no wait for one
 * particular rank.  A silent rank counts as lost, whatever MPI reports about
 * it.
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
     * 0 is the coordinator, and its peer r is rank r + 1.  Each other rank has
     * one peer, number 0, which is rank 0. */
    bool mesh;
    /* A peer that is silent for this time, while this process listens, is lost.
     * 0 means 5 s.  Ranks report themselves whenever they wait or send, so it
     * must exceed the longest time that a rank spends without either. */
    kofn_time silence;
    /* The same for the coordinator, which may have files to read first.  0
     * means 12 times `silence`. */
    kofn_time patience;
    /* "openmpi" or "mpich".  NULL: the MPI with which the job was started. */
    const char *library;
} kofn_mpi_options;
#define KOFN_MPI_OPTIONS_INIT                                                  \
    {                                                                          \
        .size = sizeof(kofn_mpi_options)                                       \
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
        .size = sizeof(kofn_mpi_info)                                          \
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

/* Ends MPI.  Every rank calls it last, after it closed the transport.  It waits
 * until all peers have closed too or are lost.  Returns `code`.  If a rank was
 * lost and MPI would hang, it ends the process with exit code `code` instead.
 * It does nothing if MPI was not started. */
KOFN_API int kofn_mpi_end(int code);

#ifdef __cplusplus
}
#endif
#endif
