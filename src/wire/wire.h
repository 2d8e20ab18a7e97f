/* wire.h -- what travels between coordinator and workers; docs/wire.md.
 *
 * Every packet is a head (fields.h) and a body.  Each has a checksum against
 * faults.  Keeping attackers out is the task of the transport.
 *
 * Heads are values; the caller owns the bodies.  Nothing that is read here may
 * be used before it was checked.
 */
#ifndef KF_WIRE_H
#define KF_WIRE_H

#include <kofn/transport.h>

#include "data/data.h"
#include "fields.h"

typedef enum kf_wire {
    /* worker to coordinator */
    KF_WIRE_HELLO = 1, /* the worker enrols; body: its description in words */
    KF_WIRE_NEED,      /* requests units [lo, hi) of section `which` of block */
    KF_WIRE_STORED,    /* the block is whole                                */
    KF_WIRE_NOTICE,    /* the worker leaves soon                            */
    KF_WIRE_BYE,       /* the worker leaves now                             */
    KF_WIRE_RESULT,    /* of task, row; body: rows x cols numbers           */
    KF_WIRE_FAILED,    /* task, row, status; body: the reason in words, at most
                         KF_WORDS bytes                                  */
    KF_WIRE_CHANGED,   /* `updates` of the block are done, of all operands  */
    KF_WIRE_ASK,       /* from a peer that is no worker: the jobs and workers;
                          with a body: drain the worker of that name          */
    /* coordinator to worker */
    KF_WIRE_WELCOME = 32, /* task: the worker's number                      */
    KF_WIRE_REFUSED, /* body: the reason in words; the worker must not return */
    KF_WIRE_STORE,   /* block; row: the first one that it answers; body: a block
                             specification for each operand                 */
    KF_WIRE_SLICE,   /* units [lo, hi) of section `which` of block     */
    KF_WIRE_WORK,    /* task, row; operands: block, input; body: the input,
                             unless it was sent before; without a block, the
                             out_rows x rows numbers of a block first       */
    KF_WIRE_CANCEL,  /* task                                           */
    KF_WIRE_DISMISS, /* the job is over; which: 1 if the fleet is over too */
    KF_WIRE_INJECT,  /* tests: the worker is lo/1000 times as slow, or errs */
    KF_WIRE_UPDATE,  /* block, operand, updates: after this one; body: the
                             change, U, rows x cols, and V, rows x out_cols */
    KF_WIRE_STRIPS,  /* block, operand, updates: in these strips; strips
                             [lo, hi) of a state of the block; body: the
                             strips of its components, one below the other  */
    KF_WIRE_WHOLE,   /* block: all strips have been sent               */
    KF_WIRE_INVITE,  /* the fleet has this job; lo/1000: its weight; the worker
                        answers with a HELLO for it                        */
    KF_WIRE_RELEASE, /* this job of the fleet is over; which: 1 if the block
                        may be asked for again                             */
    KF_WIRE_DRAIN,   /* finish the tasks, then leave                      */
    KF_WIRE_TOLD     /* answer to ASK; body: a worker; which: 2 for a job, and 1
                        for the last packet, whose body is empty or a
                        refusal                                            */
} kf_wire;

typedef enum kf_injection { /* which */
                            KF_INJECT_SLOW,
                            KF_INJECT_CORRUPT,
                            KF_INJECT_FLIP
} kf_injection;

typedef struct kf_head {
    kf_wire type;
    unsigned version;
    kf_how how;
    kofn_dtype dtype;
    int status;
    uint32_t task, round, product, row;
    uint64_t job;          /* random number that the coordinator has drawn   */
    uint64_t block, input; /* numbers of the block and of the input; 0: none */
    uint64_t updates;      /* of the block's operand since it was stored   */
    uint32_t operand;      /* number of a resident operand, below 65536    */
    uint8_t state;         /* WORK that reads, STRIPS: 0 is A itself       */
    uint64_t lo, hi, which, took;
    uint64_t rows, cols;         /* WORK: of the input; RESULT: of the body */
    uint64_t out_rows, out_cols; /* WORK: of the result */
    uint64_t body_sum;           /* checksum of the body */
} kf_head;

/* Writes a head.  The caller sets body_sum; 0 if there is no body. */
void kf_head_write(unsigned char bytes[KF_HEAD], const kf_head *h);
/* Reads a head, like kf_head_fields_read.  The version is then in h->version,
 * or 0 if it could not be read. */
kofn_status kf_head_read(kf_head *h, const void *bytes, size_t n);

/* The first bytes of an UPDATE: `states`, all of `keep`, and all of `add`. */
#define KF_WIRE_CHANGE 168
void kf_wire_write_change(void *to, const kofn_change *c);
kofn_status kf_wire_read_change(kofn_change *c, const void *from);

/* ---- block specifications (block_spec.c) --------------------------------- */

/* Bytes that grow. */
typedef struct kf_bytes {
    unsigned char *p;
    size_t n, cap;
} kf_bytes;
void kf_bytes_free(kf_bytes *b);

/* Writes what a block is made of, for workers that have the operand, and the
 * shapes of its sections, for workers that do not.  `source` names the
 * operand's file, or is NULL. Specifications of several operands follow one
 * another and have no names. */
kofn_status kf_block_spec_write(const kf_block *b, const char *source,
                                kf_bytes *out);

/* A block that a worker builds. */
typedef struct kf_block_spec {
    kf_block *block;  /* has its memory; its numbers come in slices, unless
                          it is empty                                    */
    size_t spare;     /* bytes that this worker may still use            */
    size_t sections;  /* of the block's numbers                          */
    char source[256]; /* name of the operand's file; "" if it has none   */
    uint64_t digest;  /* of the operand's parts that make the block      */
    unsigned scaled;  /* KF_SCALED_*: how lines of the operand were scaled */
    size_t built;     /* sections that were built from the operand       */
    size_t A_rows, A_cols;
    size_t grid_rows,
        grid_cols; /* number of parts that the operand is cut into */
    size_t part_rows, part_cols; /* size of a part                          */
    kf_row *row; /* dense: components x inner, over the grid             */
    size_t rows;
    void *numbers; /* memory behind `row`                              */
    size_t *first; /* sparse: first row of each part in the operand */
} kf_block_spec;
/* Reads a specification and checks every number.  Allocates the block, unless
 * that takes more memory than the options allow.  The options also have the
 * functions of sums. */
kofn_status kf_block_spec_read(kf_block_spec *out, const void *bytes, size_t n,
                               const kofn_serve_options *opt);
/* Frees the specification, but not the block. */
void kf_block_spec_free(kf_block_spec *r);
/* Builds the first `built` sections of the block from the worker's own operand.
 * Fails with KOFN_SHAPE if the operand differs from the coordinator's in any
 * number. */
kofn_status kf_block_spec_build(kf_block_spec *r, const kofn_matrix *A,
                                const kofn_sparse *S);

/* ---- digests (digest.c) -------------------------------------------------- */

/* An operand in parts: `span` rows each of a sparse matrix; matrices; or rows
 * of X, for a sum. */
typedef struct kf_operand {
    size_t parts;
    const kofn_sparse *sparse;
    size_t span;
    const size_t *first; /* sparse: first row in A of each part of the block */
    const kofn_matrix *part;
    const kf_row *row; /* dense: coefficients of the parts in the block */
    size_t rows;
    const kofn_matrix *X;
    uint64_t *digest; /* of each part, 0 if unknown; NULL: none is kept */
} kf_operand;
/* Computes the digest of the parts that make the block, with their places. */
kofn_status kf_digest_block(const kf_block *b, const kf_operand *o,
                            uint64_t *digest);

/* ---- slices (slice.c) ---------------------------------------------------- */

/* Returns the number of sections.  A block's numbers come in sections of equal
 * units.  A dense block has a section of rows for each component.  A sparse
 * block has three: the ends of its rows, and the columns and the values of its
 * entries.  An empty block has none.  The sections of the next operand follow.
 */
size_t kf_wire_sections(const kf_block *b);
/* Returns the number of units of a section, and the bytes of a unit. */
void kf_wire_section(const kf_block *b, size_t section, size_t *units,
                     size_t *bytes);
/* Sets *at to units [lo, hi) of the coordinator's block.  They are in place if
 * they are contiguous there, and otherwise in `scratch`, which grows as needed.
 */
kofn_status kf_slice_from(const kf_block *b, size_t section, size_t lo,
                          size_t hi, kf_bytes *scratch, const void **at);
/* Returns the place of unit `lo` in a worker's block. */
void *kf_slice_into(const kf_block *b, size_t section, size_t lo);
/* Checks a block after all its units have come.  Fails if it cannot be computed
 * with. */
kofn_status kf_slices_check(const kf_block *b);

#endif
