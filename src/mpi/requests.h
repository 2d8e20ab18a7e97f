/* requests.h -- MPI for the transport: sends and receives that are started, and
 * reported when they end. Nothing waits but kf_mpi_join, which is collective.
 *
 * A world is a communicator with its table of requests. A process may have
 * several.
 *
 * The table owns each request until it is reported. Memory of a request may not
 * be freed before that. */
#ifndef KF_MPI_REQUESTS_H
#define KF_MPI_REQUESTS_H

#include "plugin.h"

/* First member of an object that is sent or received. kf_mpi_poll calls
 * `finish` for every request that was started with it. */
typedef struct kf_mpi_op {
    void (*finish)(struct kf_mpi_op *op, size_t bytes, bool ok);
} kf_mpi_op;

typedef struct kf_mpi_table kf_mpi_table;

typedef struct kf_mpi_world {
    kf_mpi_table *table;
    int rank, ranks;
    int top_tag; /* largest tag */
    char library[64], machine[64];
} kf_mpi_world;

/* Starts MPI. The world is all ranks. */
kofn_status kf_mpi_begin(const kf_mpi_host *host, kf_mpi_world *w);
/* Makes a world of a communicator of the program, given by its Fortran handle.
 * MPI runs already. All its ranks must have chosen the same root and mesh. */
kofn_status kf_mpi_join(const kf_mpi_host *host, int comm,
                        const kofn_mpi_options *opt, kf_mpi_world *w);
/* Cancels all requests; false if one cannot be cancelled. */
bool kf_mpi_withdraw(kf_mpi_world *w);
/* kf_mpi_leave frees a world without open requests, and its communicator unless
 * a rank was lost. kf_mpi_finish ends MPI and frees the world. */
void kf_mpi_leave(kf_mpi_world *w, bool lost);
void kf_mpi_finish(kf_mpi_world *w);

/* A rank, and the tag of messages from it or to it. */
typedef struct kf_mpi_place {
    int rank, tag;
} kf_mpi_place;

/* Returns the number of requests of a body. Its parts are so short that each is
 * a sign of life in time. */
size_t kf_mpi_parts(size_t bytes);
/* Makes room for the next `n` requests. */
kofn_status kf_mpi_reserve(kf_mpi_world *w, size_t n);
/* Start a send or a receive, for which room was reserved. A receive into NULL
 * drops the data. */
kofn_status kf_mpi_send(kf_mpi_world *w, kf_mpi_place to, const void *from,
                        size_t bytes, kf_mpi_op *op);
kofn_status kf_mpi_receive(kf_mpi_world *w, kf_mpi_place from, void *into,
                           size_t bytes, kf_mpi_op *op);
kofn_status kf_mpi_poll(kf_mpi_world *w);

#endif
