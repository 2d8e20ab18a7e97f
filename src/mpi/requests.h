/* requests.h -- MPI for the transport: sends and receives that are started, and
 * reported when they end. Nothing waits.
 *
 * A process has one MPI, so there is one table of requests.
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

typedef struct kf_mpi_world {
    int rank, ranks;
    int top_tag; /* largest tag */
    char library[64], machine[64];
} kf_mpi_world;

kofn_status kf_mpi_begin(const kf_mpi_host *host, kf_mpi_world *w);
/* kf_mpi_withdraw cancels all requests; false if one cannot be cancelled.
 * kf_mpi_finish ends MPI. */
bool kf_mpi_withdraw(void);
void kf_mpi_finish(void);

/* Returns the number of requests of a body. Its parts are so short that each is
 * a sign of life in time. */
size_t kf_mpi_parts(size_t bytes);
/* Makes room for the next `n` requests. */
kofn_status kf_mpi_reserve(size_t n);
/* Start a send or a receive, for which room was reserved. A receive into NULL
 * drops the data. */
kofn_status kf_mpi_send(int rank, int tag, const void *from, size_t bytes,
                        kf_mpi_op *op);
kofn_status kf_mpi_receive(int rank, int tag, void *into, size_t bytes,
                           kf_mpi_op *op);
kofn_status kf_mpi_poll(void);

#endif
