/* mpi.h -- packets between the ranks of an MPI job.
 *
 * For programs that are started as ranks and are coordinator, workers or nodes of a
 * mesh there: what it opens is a transport like any other.
 *
 * MPI is no part of libkofn: what uses it is a library of its own, one for
 * Open MPI and one for MPICH, and kofn_mpi_open loads the one that the job
 * was started with.  Point to point only: no rank is ever waited for alone,
 * there is no collective call between start and end, and a rank that has said
 * nothing for a while is lost, whatever MPI thinks of it.
 */
#ifndef KOFN_MPI_H
#define KOFN_MPI_H

#include <kofn/transport.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kofn_mpi_options {
    size_t size; /* sizeof(kofn_mpi_options), so that it may grow */
    /* Every rank reaches every other, and peer r is rank r.  Otherwise rank 0
     * coordinates and its peer r is rank r + 1, and it is peer 0 and the only
     * peer of all others. */
    bool mesh;
    /* A peer that was not heard of for so long, while we listened, is lost;
     * 0: 5 s.  Ranks speak of themselves whenever they wait or send, so this
     * must exceed the longest time that a rank spends without. */
    kofn_time silence;
    /* The same for the coordinator, who may have files to read; 0: 12 times
     * `silence`. */
    kofn_time patience;
    const char *library; /* "openmpi" or "mpich"; NULL: the one that the job
                            was started with                             */
} kofn_mpi_options;
#define KOFN_MPI_OPTIONS_INIT                                                  \
    {                                                                          \
        .size = sizeof(kofn_mpi_options)                                       \
    }

typedef struct kofn_mpi_info {
    size_t size; /* sizeof(kofn_mpi_info), so that it may grow */
    unsigned rank, ranks;
    char library[64];   /* "Open MPI 4.1.4" */
    bool survives;      /* the loss of a rank other than the coordinator's */
    char survival[400]; /* what it survives and what not, for people */
} kofn_mpi_info;
#define KOFN_MPI_INFO_INIT                                                     \
    {                                                                          \
        .size = sizeof(kofn_mpi_info)                                          \
    }

/* Starts MPI in this process, once, and gives the transport; `opt` and `info`
 * may be NULL.  KOFN_STATE when this process was not started as a rank, when
 * MPI has started already or has ended; KOFN_TRANSPORT when the library for
 * this MPI is missing (the message says which package has it) or fails;
 * KOFN_INVAL when the job has one rank only. */
KOFN_API kofn_status kofn_mpi_open(kofn_transport **out,
                                   const kofn_mpi_options *opt,
                                   kofn_mpi_info *info);

/* The last act of every rank, after the transport was closed: waits until all
 * its peers have closed too or are lost, and ends MPI.  Returns `code`, or
 * ends the process with it where somebody was lost and MPI would hang.  Does
 * nothing where MPI was not started. */
KOFN_API int kofn_mpi_end(int code);

#ifdef __cplusplus
}
#endif
#endif
