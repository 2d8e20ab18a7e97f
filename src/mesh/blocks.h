/* blocks.h -- the matrices and the blocks of them that a node has: how they
 * change, are rebuilt from others, and are compared.
 *
 * The host owns all of it (kf_host.blocks). */

#ifndef KF_MESH_BLOCKS_H
#define KF_MESH_BLOCKS_H

#include "connections.h"

#include "verify/reading.h"
#include "verify/results.h"

typedef struct kf_host kf_host; /* host.h */

/* A matrix, and the block of it that is here. */
typedef struct kf_mesh_operand {
    kofn_matrix dense;
    const kofn_sparse *sparse; /* or NULL */
    const kofn_plan *plan;
    kf_resident resident;
    /* digits by which its rows and columns are scaled before coding */
    kf_scaling scaling;
    void *scaled;      /* the scaled numbers; NULL: nothing is scaled */
    kofn_sparse coded; /* if it is sparse: the matrix with these numbers */
    kf_code *code;     /* the code that encodes blocks */
    kf_block *block;   /* NULL, or of no use, while host.seat is KOFN_NO_SEAT */
    kf_norms norms;    /* known if errors are looked for */
} kf_mesh_operand;

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
    uint64_t recalls;
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

/* The product of a seat's block with a vector (sketch.c). */
typedef struct kf_sketch {
    uint32_t operand, seat;
    kofn_peer from;      /* KF_LOCAL: made here */
    uint64_t turn, line; /* of the iterate of the block */
    /* of A, and then of each optimizer state */
    kf_buffer *data;
} kf_sketch;

/* Identifies the sketched blocks: their iterate, the seat of ours, and how
 * often ours had been rebuilt. */
typedef struct kf_sketched {
    uint64_t turn, line;
    uint32_t seat;
    size_t rebuilt;
} kf_sketched;

/* Comparisons of blocks by their sketches (sketch.c). */
typedef struct kf_sketches {
    kf_sketch *sketch;
    size_t sketches, cap;
    kf_sketched last; /* identifies our newest sketches */
    bool on;          /* `of` is being compared */
    kf_sketched of;
    kofn_time began;
    size_t tried; /* number of sketches that did not suffice */
    /* the last turn for which our blocks were found right */
    uint64_t right;
    uint64_t done; /* number of comparisons */
    double drift;  /* as in kf_found, of the last comparison */
} kf_sketches;

typedef struct kf_mesh_blocks {
    kf_mesh_operand *operand;
    size_t operands;
    bool changes;  /* the program changes operands */
    size_t states; /* optimizer states that its changes may have */
    uint32_t seat; /* the seat of the blocks */
    kf_changing changing;
    kf_sketches sketches;
} kf_mesh_blocks;

/* The change of a matrix by a turn, scaled as the matrix is. */
typedef struct kf_turn_change {
    kofn_turn_change to;
    void *owned[2]; /* numbers of U and V */
} kf_turn_change;

/* turn_change.c */
/* Returns in *out how that turn changes the matrix. */
kofn_status kf_turn_change_ask(const kf_host *h, uint64_t turn,
                               uint32_t operand, kf_turn_change *out);
void kf_turn_change_done(kf_turn_change *a);

/* norms.c */
kofn_status kf_mesh_norms_new(kf_host *h);
/* Adds the change of the turn to the norms. */
kofn_status kf_mesh_norms_turn(kf_host *h, uint64_t turn);
/* Norms that travel with the vector: their number, into and out of it. */
size_t kf_mesh_norms_count(const kf_mesh_blocks *blocks);
void kf_mesh_norms_pack(const kf_mesh_blocks *blocks, char *to);
void kf_mesh_norms_take(kf_mesh_blocks *blocks, const char *from);

/* windows.c */
/* True if this window can serve to rebuild ours. */
bool kf_borrowed_serves(const kf_mesh_blocks *blocks, const kf_borrowed *l);
/* True if no node had such blocks to lend for some silences. */
bool kf_borrowed_lacks(const kf_host *h);
/* Drops window i. */
void kf_borrowed_drop(kf_changing *c, size_t i);
/* Drops all windows, and requests none. */
void kf_borrowed_forget(kf_mesh_blocks *blocks);
/* Returns the bytes of these rows in a packet, of one state: a multiple of 8,
 * with zeros at the end.  0 if there are no such rows. */
size_t kf_borrowed_bytes(const kf_mesh_blocks *blocks, uint32_t operand,
                         size_t lo, size_t hi);
/* Returns the bytes of all rows; 0 if the matrix does not change. */
size_t kf_borrowed_whole(const kf_mesh_blocks *blocks, uint32_t operand);
kofn_status kf_borrowed_body(const kf_mesh_blocks *blocks, uint32_t operand,
                             size_t lo, size_t hi, kf_buffer **body,
                             size_t *bytes);
/* True if that matrix changes. */
bool kf_borrowed_changes(const kf_mesh_blocks *blocks, uint32_t operand);
/* Returns the bytes of a row of a block, of one state. */
size_t kf_borrowed_row(const kf_mesh_blocks *blocks, uint32_t operand);

/* change.c */
kofn_status kf_changing_new(kf_host *h);
void kf_changing_free(kf_mesh_blocks *blocks);
/* Brings all blocks that are here to the iterate that this node has made. */
kofn_status kf_changing_turn(kf_host *h);
/* Brings our blocks to the iterate that this node took, with the lineages of
 * its last turns, or drops them. */
kofn_status kf_changing_adopt(kf_host *h, const void *lines);
/* True if blocks of the start can still be brought to our iterate. */
bool kf_changing_recalls(const kf_mesh_blocks *blocks);
/* Brings new blocks of that seat and turn (0: the start) to our iterate. */
kofn_status kf_changing_fresh(kf_host *h, uint32_t seat, uint64_t turn);
/* True if the vector has all turns since this iterate, which followed that
 * turn. */
bool kf_changing_knows(const kf_mesh_blocks *blocks, uint64_t turn,
                       uint64_t line);
/* Drops our blocks, and leaves word of it: they are lost, or made from a wrong
 * vector. */
void kf_changing_lose(kf_host *h);
/* Drops our blocks, which were found wrong.  If those that replace them are
 * wrong, too, the vector that made them is in doubt. */
void kf_changing_wrong(kf_host *h);
/* Brings borrowed windows to this node's iterate, or drops them. */
kofn_status kf_changing_settle(kf_host *h);

/* rebuild.c */
/* Rebuilds our blocks of that seat from the windows.  KOFN_AGAIN: more are
 * requested. */
kofn_status kf_borrowed_make(kf_host *h, uint32_t seat);
/* Lends the peer the rows that it has requested. */
kofn_status kf_borrowed_give(kf_host *h, const kf_route *r,
                             const kf_note *asked);
kofn_status kf_borrowed_take(kf_host *h, kf_route *r, const kf_note *note,
                             kf_buffer *body);

/* block_comparison.c */
/* Compares the borrowed windows (rows of our blocks that other nodes computed,
 * rebuild.c) and drops wrong ones.  KOFN_TOOFEW: more are needed. */
kofn_status kf_borrowed_compare(kf_host *h, uint32_t operand);

/* sketches.c */
/* Drops all sketches; counts stay. */
void kf_sketch_forget(kf_mesh_blocks *blocks);
/* True if our present blocks were found to agree with those of the others, or
 * blocks are not compared. */
bool kf_sketch_vouches(const kf_host *h);
/* Returns the bytes of a sketch of one state. */
size_t kf_sketch_bytes(const kf_mesh_blocks *blocks, uint32_t operand);
/* Returns a new reference to our sketch that this note names, or NULL if it is
 * gone. */
kf_buffer *kf_sketch_body(const kf_host *h, const kf_note *note);
/* True if blocks are compared: matrices change, and errors are looked for. */
bool kf_sketch_are_compared(const kf_host *h);
void kf_sketch_drop(kf_sketches *s, size_t i);
/* True if it is a sketch of the blocks of that iterate. */
bool kf_sketch_is_of(const kf_sketch *k, const kf_sketched *of);
/* Stores a sketch, and takes over its data. */
kofn_status kf_sketch_put(kf_mesh_blocks *blocks, kf_sketch k);

/* sketch.c */
/* Handles the end of a turn: starts a comparison of blocks if it is due. */
kofn_status kf_sketch_turn(kf_host *h);
/* Sketches our blocks, sends the sketches to all, and compares them when those
 * of the others are here. */
kofn_status kf_sketch_begin(kf_host *h);
/* Compares the sketches if enough have come. */
kofn_status kf_sketch_settle(kf_host *h);
kofn_status kf_sketch_take(kf_host *h, const kf_route *r, const kf_note *note,
                           kf_buffer *body);

/* turns.c */
/* Handles the end of a turn that this node made; `was` is the turn before. */
kofn_status kf_turns_made(kf_host *h, uint64_t was);
/* The same for a vector that this node took; `again`: it had an iterate of the
 * same number. */
kofn_status kf_turns_taken(kf_host *h, uint64_t was, bool again);

#endif
