/* host.h -- a node of a mesh with its data.  It is six things, and each has a
 * header: the iterate and the votes about it (iterate.h), this node's product
 * (products.h), the partial products that are here (partials.h), blocks and
 * their changes (blocks.h), connections (connections.h), and the disk (disk.h).
 *
 * The host owns all of it and uses it on one thread.  Only this folder reads
 * the structs; ports use kf_host_new and what follows it.  A file calls only
 * files that are named above it in these headers or before it here. */

#ifndef KF_MESH_HOST_H
#define KF_MESH_HOST_H

#include "base/hash.h"
#include "blocks.h"
#include "disk.h"
#include "iterate.h"
#include "products.h"

/* The source of time: the machine's clock, or a simulator's. */
typedef struct kf_timer {
    kofn_time (*now)(void *ud);
    void *ud;
} kf_timer;

/* Events that wait for the coordinator of the node (step.c). */
typedef struct kf_told {
    bool lost;   /* our blocks are of no use any more */
    bool doubt;  /* our vector may be wrong */
    bool spoilt; /* our vector differs from the one whose digest was sent */
    kf_node_digest digest; /* spoilt: that of the present vector */
} kf_told;

struct kf_host {
    kofn_transport *t;
    kofn_program program;
    kofn_peer_options opt;
    uint64_t job;
    kf_timer timer;
    size_t confirm;
    size_t largest; /* bytes: of the vector or of a seat's partial products */

    kf_node *node;
    kf_node_task task;  /* the present task */
    kofn_status status; /* failure during a computation */
    kf_told told;

    kf_mesh_iterate it;
    kf_mesh_work work;
    kf_pieces_here pieces;
    kf_mesh_blocks blocks;
    kf_connections net;
    kf_mesh_disk disk;
};

static inline kofn_time kf_host_now(const kf_host *h)
{
    return h->timer.now(h->timer.ud);
}

/* Returns the heartbeat period. */
static inline kofn_time kf_host_beat(const kf_host *h)
{
    return kf_node_reported(h->node)->beat;
}

/* Returns the failure timeout. */
static inline kofn_time kf_host_silence(const kf_host *h)
{
    return kf_node_reported(h->node)->silence;
}

/* Returns the retry delay. */
static inline kofn_time kf_host_hedge(const kf_host *h)
{
    return kf_node_reported(h->node)->hedge;
}

/* Calls the simulator of errors, for the work that follows iterate t. */
static inline void kf_host_fault(const kf_host *h, kofn_fault_place where,
                                 uint64_t t, kofn_matrix *numbers)
{
    if (h->opt.fault)
        h->opt.fault(h->opt.fault_ud, where, t, numbers);
}

/* Sets the range of the vector that iterate t wrote. */
static inline void kf_host_wrote(const kf_host *h, uint64_t t, size_t *first,
                                 size_t *rows)
{
    size_t all = h->it.v->m.rows;

    *first = 0;
    *rows = all;
    if (h->program.wrote)
        h->program.wrote(h->program.ud, t, first, rows);
    *first = kf_min(*first, all);
    *rows = kf_min(*rows, all - *first);
}

/* self.c */
/* Returns how many nodes may be wrong together: the number that can be
 * identified in the product that needs the fewest partial products
 * (docs/errors.md). */
size_t kf_host_most_wrong(const kf_host *h);
/* Creates the coordinator of the node, for the vector that is here. */
kofn_status kf_host_node_new(kf_host *h);
/* Returns the same on machines that compute the same bits. */
uint64_t kf_host_machine(void);

/* step.c */
kofn_status kf_host_step(kf_host *h, const kf_node_event *ev);
/* Does the actions of the last step of the node.  *take, unless NULL, becomes
 * true if a body must be kept. */
kofn_status kf_host_act(kf_host *h, bool *take);
/* Tells the coordinator what files below left word of. */
kofn_status kf_step_deliver(kf_host *h);

/* host.c */
kofn_status kf_host_new(kf_host **out, kofn_transport *t,
                        const kofn_program *program,
                        const kofn_peer_options *opt, const kofn_matrix *v,
                        kf_timer timer);
void kf_host_free(kf_host *h);
/* Receive the packets that have come, or that come in that time.  `pass` also
 * does one task, if there is one.  KOFN_AGAIN: `watch` wants this node to
 * leave. */
kofn_status kf_host_pass(kf_host *h, bool *worked);
kofn_status kf_host_hear(kf_host *h, kofn_time atmost);
/* Fills in the state of the node, with counts that its coordinator does not
 * have. */
void kf_host_look(const kf_host *h, kofn_node_view *out);
/* True if it has ended with the result.  A node that has failed has none, also
 * while it waits for others to return with it. */
bool kf_host_is_over(const kf_host *h);
/* Sets *over if the node has ended with the result that was agreed on.  Then
 * `v`, unless NULL, gets the result. */
kofn_status kf_host_hand_out(kf_host *h, double *v, bool *over);

#endif
