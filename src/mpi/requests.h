/* requests.h -- MPI as the transport wants it: sends and receives that are
 * begun and reported when they are over, and nothing that waits.
 *
 * There is one MPI in a process, so there is one table of requests.
 *
 * The table owns each request until it is reported; memory that a request
 * refers to may not be freed before that. */
#ifndef KF_MPI_REQUESTS_H
#define KF_MPI_REQUESTS_H

#include "plugin.h"

/* First member of whatever is being sent or received.  `finish` is called in
 * kf_mpi_poll for every request that was begun with it. */
typedef struct kf_mpi_op {
    void (*finish)(struct kf_mpi_op *op, size_t bytes, bool ok);
} kf_mpi_op;

typedef struct kf_mpi_world {
    int rank, ranks;
    int top_tag; /* the largest */
    char library[64], machine[64];
} kf_mpi_world;

kofn_status kf_mpi_begin(const kf_mpi_host *host, kf_mpi_world *w);
/* MPI itself ends; false when some request cannot be taken back. */
bool kf_mpi_withdraw(void);
void kf_mpi_finish(void);

/* How many requests a body of so many bytes is: parts are short enough that
 * each is a sign of life in time. */
size_t kf_mpi_parts(size_t bytes);
/* The next `n` requests find room. */
kofn_status kf_mpi_reserve(size_t n);
/* Begin; the room was reserved.  A receive into NULL throws away what
 * comes. */
kofn_status kf_mpi_send(int rank, int tag, const void *from, size_t bytes,
                        kf_mpi_op *op);
kofn_status kf_mpi_receive(int rank, int tag, void *into, size_t bytes,
                           kf_mpi_op *op);
kofn_status kf_mpi_poll(void);

#endif
