/* wire.h -- what travels between coordinator and workers; docs/wire.md.
 *
 * Every packet is a head of KF_HEAD bytes and a body.  Numbers are
 * little-endian whatever the machine is.  Both head and body carry a
 * checksum: they are meant for faults, not for enemies, whom the transport
 * keeps out.
 *
 * Heads are values; bodies are the caller's.  Nothing that is read here may be
 * used before it was checked.
 */
#ifndef KF_WIRE_H
#define KF_WIRE_H

#include <kofn/transport.h>

#include "base/hash.h"
#include "data/data.h"

#define KF_WIRE_VERSION 8
#define KF_HEAD 144

typedef enum kf_wire {
    /* worker to coordinator */
    KF_WIRE_HELLO = 1, /* here I am; body: what this worker is, in words    */
    KF_WIRE_NEED,      /* send units [lo, hi) of section `which` of block */
    KF_WIRE_STORED,    /* that block is whole                               */
    KF_WIRE_NOTICE,    /* I shall go soon                                   */
    KF_WIRE_BYE,       /* I go                                              */
    KF_WIRE_RESULT,    /* of task, row; body: rows x cols numbers           */
    KF_WIRE_FAILED,    /* task, row, status; body: why, in words, KF_WORDS
                         at most                                        */
    KF_WIRE_CHANGED,   /* so many updates of block are done, of all operands */
    /* coordinator to worker */
    KF_WIRE_WELCOME = 32, /* task: the worker's number                      */
    KF_WIRE_REFUSED,      /* body: why, in words; do not come back          */
    KF_WIRE_STORE,        /* block, row: the first that it answers; body: its
                             block specification, of each operand                        */
    KF_WIRE_PIECE,        /* units [lo, hi) of section `which` of block     */
    KF_WIRE_WORK,         /* task, row; operands: block, input; body: the
                             input, unless it was sent before; where no block
                             is named, out_rows x rows numbers of one first */
    KF_WIRE_CANCEL,       /* task                                           */
    KF_WIRE_DISMISS,      /* the job is over                                */
    KF_WIRE_STAGE,        /* tests: be lo/1000 times as slow, or wrong      */
    KF_WIRE_UPDATE,       /* block, operand, updates: then; body: the change,
                             U, rows x cols, and V, rows x out_cols         */
    KF_WIRE_STRIPS,       /* block, operand, updates: until then; strips
                             [lo, hi) of it, or of its velocity; body: those
                             of its lanes one below the other               */
    KF_WIRE_WHOLE         /* block: all strips have come                    */
} kf_wire;

typedef enum kf_stage { /* which */
                        KF_STAGE_SLOW,
                        KF_STAGE_CORRUPT,
                        KF_STAGE_FLIP
} kf_stage;

typedef struct kf_head {
    kf_wire type;
    unsigned version;
    kf_how how;
    kofn_dtype dtype;
    int status;
    uint32_t task, round, product, row;
    uint64_t job;          /* which job; drawn by its coordinator            */
    uint64_t block, input; /* operands: a resident one, one that is sent; 0:
                              none                                  */
    uint64_t updates;      /* of that block's operand, since it was stored */
    uint32_t operand;      /* of several that are resident; below 65536    */
    bool velocity;         /* WORK that reads, STRIPS: of that             */
    uint64_t lo, hi, which, took;
    uint64_t rows, cols;         /* WORK: of the input; RESULT: of the body */
    uint64_t out_rows, out_cols; /* WORK: of the result */
    uint64_t body_sum;           /* checksum of the body */
} kf_head;

/* body_sum is the caller's to fill in; 0 where there is no body. */
void kf_head_write(unsigned char bytes[KF_HEAD], const kf_head *h);
/* KOFN_FORMAT when this is no head, or one of another version: h->version is
 * then set, and 0 when it is not even that, or damaged.  Every number is
 * plausible afterwards by itself; what it means is for the caller to check. */
kofn_status kf_head_read(kf_head *h, const void *bytes, size_t n);
kofn_status kf_wire_check_body(const kf_head *h, const void *body, size_t n);

/* The first bytes of an UPDATE: step, decay, momentum, and 1 for Nesterov's. */
#define KF_WIRE_CHANGE 32
void kf_wire_write_change(void *to, const kofn_change *c);
kofn_status kf_wire_read_change(kofn_change *c, const void *from);

/* ---- block specifications (block_spec.c) --------------------------------- */

/* Growing bytes. */
typedef struct kf_bytes {
    unsigned char *p;
    size_t n, cap;
} kf_bytes;
void kf_bytes_free(kf_bytes *b);

/* Writes what a block is made of, for workers that have the operand, and the
 * shapes of its sections, for those that do not.  `source` names the operand,
 * or is NULL.  Specifications of several operands follow one another, and have
 * no names. */
kofn_status kf_block_spec_write(const kf_block *b, const char *source,
                                kf_bytes *out);

/* A block in the making at a worker. */
typedef struct kf_block_spec {
    kf_block *block;  /* its memory is there; its numbers come in pieces, but
                          for those of empty ones                        */
    size_t spare;     /* memory that may still be spent                 */
    size_t sections;  /* in which they come                              */
    char source[256]; /* name of the operand; "" when it has none        */
    uint64_t digest;  /* ... and of its parts that the block is made of  */
    unsigned raised;  /* ... KF_RAISED_*: once lines of it are raised    */
    size_t built;     /* sections that were made of it                   */
    size_t A_rows, A_cols;
    size_t grid_rows, grid_cols; /* how the operand is cut ...              */
    size_t part_rows, part_cols; /* ... and into parts of which size        */
    kf_row *row; /* dense: lanes x inner, over the grid             */
    size_t rows;
    void *numbers; /* that `row` points to                            */
    size_t *first; /* sparse: row of the operand where each part begins */
} kf_block_spec;
/* Checks every number, and that the block's memory is at most what the options
 * allow before it is allocated.  Of them are the functions of sums, too. */
kofn_status kf_block_spec_read(kf_block_spec *out, const void *bytes, size_t n,
                               const kofn_serve_options *opt);
void kf_block_spec_free(kf_block_spec *r); /* not the block */
/* Make the first `built` sections of the block from the operand itself, if it
 * is the coordinator's to the last number: KOFN_SHAPE when it is not. */
kofn_status kf_block_spec_build(kf_block_spec *r, const kofn_matrix *A,
                                const kofn_sparse *S);

/* ---- digests (digest.c) -------------------------------------------------- */

/* An operand in parts: rows of a sparse matrix, `span` each; matrices; or rows
 * of X, as those of a sum. */
typedef struct kf_operand {
    size_t parts;
    const kofn_sparse *sparse;
    size_t span;
    const size_t
        *first; /* sparse: row of A where each part of the block begins */
    const kofn_matrix *part;
    const kf_row *row; /* dense: what the block mixes of the parts */
    size_t rows;
    const kofn_matrix *X;
    uint64_t *digest; /* known ones, or 0; NULL: none is kept */
} kf_operand;
/* Of the parts that the block is made of, with their places. */
kofn_status kf_digest_block(const kf_block *b, const kf_operand *o,
                            uint64_t *digest);

/* ---- pieces (piece.c) ---------------------------------------------------- */

/* A block's numbers come in sections of equal units: a dense block has one
 * section a lane, of rows; a sparse one has three, the ends of its rows, the
 * columns and the values of its entries; an empty one has none.  Those of the
 * next operand follow. */
size_t kf_wire_sections(const kf_block *b);
/* How many units there are, and bytes in each. */
void kf_wire_section(const kf_block *b, size_t section, size_t *units,
                     size_t *bytes);
/* Units [lo, hi) at the coordinator: *at points to them, in place where they
 * lie in one piece, else in `scratch`, grown as needed. */
kofn_status kf_piece_from(const kf_block *b, size_t section, size_t lo,
                          size_t hi, kf_bytes *scratch, const void **at);
/* Where units from `lo` on go at a worker. */
void *kf_piece_into(const kf_block *b, size_t section, size_t lo);
/* Everything has come: is it a block that can be computed with? */
kofn_status kf_pieces_check(const kf_block *b);

#endif
