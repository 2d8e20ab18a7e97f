/* changing.h -- the state of a node with matrices that change: turns, and the
 * windows of other nodes' blocks from which it rebuilds its own (change.c,
 * rebuild.c).
 *
 * The host owns all of it; functions on it are declared in host.h. */
#ifndef KF_MESH_CHANGING_H
#define KF_MESH_CHANGING_H

#include <kofn/transport.h>

#include "data/data.h"

/* A borrowed window: some rows of another seat's block of a matrix that
 * changes, from which rows of this node's block are rebuilt.  Or this node's
 * own block, until it has all rows. */
typedef struct kf_borrowed {
    uint32_t operand, seat;
    kofn_peer from;      /* lender; KF_LOCAL: this node */
    uint64_t turn, line; /* of the iterate that it belongs to */
    bool local;          /* that iterate is in our lineage */
    size_t lo;           /* its first row in the whole block */
    kf_block *block;
} kf_borrowed;

/* The rows that other nodes are asked for. */
typedef struct kf_mesh_window {
    uint32_t operand;
    size_t lo, hi; /* rows */
    uint64_t turn; /* in which the request began */
} kf_mesh_window;

/* The blocks of matrices that change, and how they are rebuilt. */
typedef struct kf_changing {
    /* Turns that are complete at our iterate.  All blocks have them, except
     * some windows. */
    uint64_t turn;
    uint64_t *line; /* lineages of the iterates of the last `recalls` turns */
    kf_borrowed *lent; /* by seat */
    size_t lents, lent_cap;
    kf_mesh_window window;
    size_t bytes; /* of a block that a window may have */
    size_t small; /* bytes that a window may always have */
    /* since when nothing came; time of the last request; 0: none */
    kofn_time since, asked;
    size_t asks, next;
    /* windows disagreed: all nodes are asked and awaited, not a few */
    bool disagreed;
    /* When the window began, or when `fewest` last fell; the least number of
     * missing windows. */
    kofn_time gained;
    size_t fewest;
    /* the iterate that last changed our blocks, or from which they were made */
    uint64_t changed;
    /* Our blocks were encoded, or read from disk, and since then the majority
     * has not confirmed our vector. */
    bool unsure;
    size_t rebuilt; /* times that our blocks were rebuilt */
    size_t wrong;   /* times that they were found wrong */
    bool suspect;   /* found wrong, and not found right since */
} kf_changing;

#endif
