/* host.h -- a node of a mesh with its data: its vector, its blocks, the partial
 * products of other nodes, and the packets that bring them.
 *
 * The host owns all of it and uses it on one thread.  Only this folder reads
 * the structs; ports use kf_host_new and what follows it. */
#ifndef KF_MESH_HOST_H
#define KF_MESH_HOST_H

#include "changing.h"
#include "note.h"
#include "partials.h"

#include "base/blame.h"
#include "data/compare.h"

#define KF_PRINTS 16
#define KF_KEPT 4 /* latest announced checkpoints of a connection */

/* A fingerprint, and the bound of its magnitude for any weights. */
typedef struct kf_print {
    double sum, most;
} kf_print;

/* A connection.  It speaks for one incarnation, the first that it names, until
 * it ends; 0: it has named none.  Two connections may name the same
 * incarnation, one perhaps falsely.  So misbehaviour counts against the
 * connection and its principal, not against the incarnation. */
typedef struct kf_route {
    kofn_peer peer;
    kofn_incarnation incarnation;
    uint64_t principal;
    bool over;       /* it left, or sent something corrupt */
    uint64_t key;    /* key of the fingerprints that it makes for us */
    uint64_t remote; /* key of our fingerprints for it */
    unsigned more;   /* number of later iterates for which it still gets one */
    uint64_t asked_from; /* its iterate when it asked */
    struct {
        uint64_t t;
        bool final, taken;
        double value;
    } print[KF_PRINTS]; /* the fingerprints that came */
    size_t prints;      /* number ever stored */
    /* its fingerprint of the vector to be confirmed, as we compute it */
    struct {
        bool made;
        kf_print print;
    } expected;
    bool agrees; /* its fingerprint fits the iterate to be confirmed */
    struct {
        kofn_iterate_id at;
        kofn_time when;
    } last_sent[2];       /* the last sent: our iterate, and its fingerprint */
    kf_buffer *telling;   /* the iterate that is being sent to it, or NULL */
    kofn_iterate_id base; /* it has this, and needs later changes; or 0 */
    int64_t credit;       /* notes that it may still send */
    uint64_t t;           /* our iterate when it last got credit */
    kofn_time since;      /* time when it last got credit */
    kf_blame
        blame; /* an iterate with wrong partial products from it counts once */
    uint32_t wrong_seat;
    /* a partial product of this iterate was compared and was right; was wrong
     */
    bool right, errs;
    kofn_iterate_id kept[KF_KEPT]; /* iterates that it has on disk */
    size_t tells;
    unsigned attempt; /* attempt in which it is, or which it wants */
    bool met;         /* it has sent a note of this attempt */
    bool lends_none;  /* it has no blocks, or did not answer in time */
} kf_route;
#define KF_PAST 16 /* iterates that a node remembers by their marks */

/* An iterate that came and is not confirmed. */
typedef struct kf_vector_quorum {
    /* the node that was asked last; only its vector is taken */
    kofn_incarnation asked;
    kofn_iterate_id from; /* our iterate when it was asked */
    kf_route sender; /* the connection that sent the vector, as it was then */
    kf_note note;
    kf_buffer *body; /* NULL: none came */
    /* allowed difference of its fingerprints, because of the votes */
    double room;
    /* number of the last iterate that agreed with ours and was taken */
    uint64_t merged;
} kf_vector_quorum;

#define KF_MOST_QUARANTINED 64

/* A faulty principal or incarnation, and how often it was found. */
typedef struct kf_quarantine {
    uint64_t who; /* a principal that has a name, else an incarnation */
    bool named;
    unsigned times;
    kofn_time until; /* ignored until this time */
} kf_quarantine;

#define KF_MOST_LIARS 16    /* that can be found in one iterate */
#define KF_FREIVALDS_SUMS 4 /* number of secret rows; all must agree */

/* Secret rows times A, or for left products A times secret columns.  A sender
 * that does not know them passes the check of freivalds.c with a wrong product
 * only by chance. */
typedef struct kf_secret {
    double *row;   /* KF_FREIVALDS_SUMS by rows of A: +- 1/2 to 1 */
    double *times; /* KF_FREIVALDS_SUMS by columns of A: row A */
    double *most;  /* of the first row: |row| |A| */
} kf_secret;

/* The findings against the product that is being made. */
typedef struct kf_mesh_freivalds {
    double noise;                  /* predicted error of its parts */
    bool odd;                      /* some of it is not finite */
    kofn_peer liar[KF_MOST_LIARS]; /* found; to be excluded after the iterate */
    size_t liars;
    size_t remade; /* products that did not pass, ever */
} kf_mesh_freivalds;

/* Comparisons of partial products, if errors are looked for. */
typedef struct kf_comparison {
    uint64_t secret; /* seed of the weights of comparisons */
    uint32_t number; /* number of the comparison */
    double *input;   /* scale of h->in, or NULL */
    uint32_t *bad;
    size_t cap;
    bool local;     /* a partial product or a block of this node was wrong */
    kf_blame blame; /* counts over all nodes that are not excluded */
} kf_comparison;

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
    double *norms;     /* norms.c, if it changes; or NULL */
} kf_mesh_operand;

/* The product of a seat's block with a vector (sketch.c). */
typedef struct kf_sketch {
    uint32_t operand, seat;
    kofn_peer from;      /* KF_LOCAL: made here */
    uint64_t turn, line; /* of the iterate of the block */
    /* if the block has a velocity, that of the velocity follows */
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

/* A file with our blocks and the vector (keep.c). */
typedef struct kf_kept {
    kofn_iterate_id at;
    uint64_t turn;
    uint32_t seat;
    bool sound; /* its blocks were compared, or errors are not looked for */
    bool whole; /* all members have theirs; else it is a draft */
} kf_kept;

typedef struct kf_keeping {
    kf_kept *file;
    size_t files, cap;
    uint64_t job;    /* job of the files */
    uint64_t others; /* the last turn that enough others announced */
    kofn_time tried; /* time of the last draft */
} kf_keeping;

/* The attempts of a run (back.c). */
typedef struct kf_backing {
    uint64_t job;          /* of the first attempt */
    unsigned attempt;      /* number of the present one */
    unsigned vain;         /* failed in succession, without a new checkpoint */
    uint64_t times;        /* times that this node returned to a checkpoint */
    uint64_t turn;         /* turn at which this attempt started */
    uint64_t kept;         /* the last turn that was kept at that time */
    kofn_time since;       /* when it failed, or 0 */
    kofn_time announced;   /* when the failure was last announced */
    kofn_node_view before; /* counts of earlier attempts */
    kf_buffer *start;      /* the first vector; NULL: this node never returns */
} kf_backing;

/* A product with its data. */
typedef struct kf_host_product_data {
    const kofn_plan *plan; /* the plan of its operation */
    kofn_plan *reader;     /* owned `plan` of a product that reads; else NULL */
    kf_mesh_operand *of;
    size_t groups, width; /* width: columns of a partial product */
    bool mixes;           /* mixes lines of input that stay apart after it */
    kf_code *code;        /* the code that mixes inputs, if these are cut */
    kf_buffer *out;       /* the product that is being made */
    kf_secret secret;
    /* norms of the rows of A, in left products of its columns; or NULL */
    double *norms;
} kf_host_product_data;

/* Returns the bound of errors that may be hidden, relative to the norms of rows
 * and columns.  If larger errors could be hidden, more results are requested
 * (docs/errors.md). */
static inline double kf_mesh_hidden(const kofn_plan *p)
{
    return p->layout.problem.dtype == KOFN_F64 ? 1e-9 : 1e-2;
}

/* A packet that waits until the connection can take it. */
typedef struct kf_waiting {
    kofn_peer peer;
    kf_note_type type;
    unsigned char head[KF_NOTE_HEAD];
    kf_buffer *body; /* or NULL */
    size_t bytes;
    bool urgent;
} kf_waiting;

/* The source of time: the machine's clock, or a simulator's. */
typedef struct kf_timer {
    kofn_time (*now)(void *ud);
    void *ud;
} kf_timer;

typedef struct kf_host {
    kofn_transport *t;
    kofn_program program;
    kofn_peer_options opt;
    uint64_t job;
    kf_timer timer;

    kf_node *node;
    kf_mesh_operand *operand;
    kf_host_product_data *product; /* one of each product */
    kf_host_product_data *on;      /* the one that is computed from v */
    kf_course course;              /* order of the products */
    kf_changing changing;
    kf_sketches sketches;
    kf_keeping keeping;
    kf_backing back;
    uint32_t seat; /* the seat of the blocks */

    kofn_iterate_id at;            /* of v */
    kofn_iterate_id past[KF_PAST]; /* v was made from these; by number */
    kf_buffer *v;                  /* rows x 1 */
    kf_buffer *packed;             /* v as it is sent, or NULL */
    kf_pool vectors;      /* memory of vectors that were sent or came */
    kf_buffer *in;        /* the input that is made from v, or NULL */
    kf_buffer *lowered;   /* the input for blocks with scaled rows or columns */
    kf_messages messages; /* the input mixed for seats, if it is cut */
    double *square; /* squares of the norms of its lines, or NULL (spread.c) */
    /* largest ratio of the norms of lines that are mixed (spread.c) */
    double spread;
    bool odd; /* our iterate is not finite; other nodes may have a finite one */
    /* an iterate that gave numbers that are not finite */
    kofn_iterate_id blown;
    bool encoded;     /* the input is mixed for our own seat */
    uint64_t machine; /* the same on machines that compute the same bits */
    uint64_t way;     /* digest of the decoded partial products of this turn */
    /* the same for each group of the present product */
    uint64_t from[KF_MAX_GROUPS];
    double noise;      /* predicted error, with hidden errors */
    double rounding;   /* without hidden errors */
    uint64_t again;    /* times that an iterate was repeated */
    uint64_t outvoted; /* our vectors that were replaced after a vote */
    size_t largest; /* bytes: of the vector or of a seat's partial products */
    bool single;    /* some products are in float32 */
    size_t confirm;
    kf_vector_quorum vector_quorum;
    kf_mesh_freivalds freivalds;
    kf_comparison comparison;
    double scalar[KOFN_SCALARS];
    kf_partials *now,
        *before; /* partial products of `at` and of `before_at`, by group */
    kofn_iterate_id before_at;
    kf_scratch scratch;

    kf_route *route;
    size_t routes, route_cap;
    kf_quarantine liar[KF_MOST_QUARANTINED];
    size_t liars;
    kf_waiting *waiting;
    size_t waits, wait_cap;
    kofn_time greeted;
    kofn_time looked; /* when bodies that arrive were last examined */
    /* packets that were dropped: no note of the job, not for us, or too many */
    uint64_t foreign;
    kofn_status status; /* failure during a computation */
    kf_node_task task;  /* the present task */
} kf_host;

/* Returns how many nodes may be wrong together: the number that can be
 * identified in the product that needs the fewest partial products
 * (docs/errors.md). */
size_t kf_host_most_wrong(const kf_host *h);
kofn_status kf_host_new(kf_host **out, kofn_transport *t,
                        const kofn_program *program,
                        const kofn_peer_options *opt, const kofn_matrix *v,
                        kf_timer timer);
static inline kofn_time kf_host_now(const kf_host *h)
{
    return h->timer.now(h->timer.ud);
}
/* Return the heartbeat period, and the failure timeout. */
static inline kofn_time kf_host_beat(const kf_host *h)
{
    return kf_node_reported(h->node)->beat;
}
static inline kofn_time kf_host_silence(const kf_host *h)
{
    return kf_node_reported(h->node)->silence;
}
/* Returns the retry delay. */
static inline kofn_time kf_host_hedge(const kf_host *h)
{
    return kf_node_reported(h->node)->hedge;
}
void kf_host_free(kf_host *h);
/* Receive the packets that have come, or that come in that time.  `pass` also
 * does one task, if there is one.  KOFN_AGAIN: `watch` wants this node to
 * leave. */
kofn_status kf_host_pass(kf_host *h, bool *worked);
kofn_status kf_host_hear(kf_host *h, kofn_time atmost);

/* host.c */
/* Creates the coordinator of the node, for the vector that is here. */
kofn_status kf_host_node_new(kf_host *h);
/* Discards all that was made or came, except the quarantine list. */
void kf_host_forget(kf_host *h);
/* Fills in the state of the node, with counts that its coordinator does not
 * have. */
void kf_host_look(const kf_host *h, kofn_node_view *out);
/* True if it has ended with the result.  A node that has failed has none, also
 * while it waits for others to return with it. */
bool kf_host_is_over(const kf_host *h);
kofn_status kf_host_step(kf_host *h, const kf_node_event *ev);
/* Does the actions of the last step of the node.  *take, unless NULL, becomes
 * true if a body must be kept. */
kofn_status kf_host_act(kf_host *h, bool *take);
kofn_status kf_host_random(void *into, size_t bytes);
/* Moves to another iterate; the partial products of the old one become
 * `before`. */
void kf_host_advance(kf_host *h, kofn_iterate_id at);

/* partials.c */
/* Stores a partial product, and takes over the buffer. */
kofn_status kf_host_keep(kf_host *h, size_t group, uint32_t seat,
                         kofn_peer from, kf_buffer *data);

/* result.c */
/* Sets *over if the node has ended with the result that was agreed on.  Then
 * `v`, unless NULL, gets the result. */
kofn_status kf_host_hand_out(kf_host *h, double *v, bool *over);
/* Sets *same if our vector, with these numbers, still has the digest that was
 * sent.  Else this node takes the vector of another one. */
kofn_status kf_host_confirm_local(kf_host *h, const double *scalar,
                                  const double *v, bool *same);
/* Handles numbers that are not finite: with errors this node takes the vector
 * of another one, else it fails with KOFN_NONFINITE. */
kofn_status kf_host_doubt(kf_host *h);
/* Sets the message of a node that has failed with that status. */
kofn_status kf_host_say_why(const kf_host *h, kofn_status st);

/* products.c */
/* Fills in the partial products that the decoder of a task uses; all must be
 * here. */
kofn_status kf_host_sources(const kf_host *h, const kf_node_task *t,
                            kf_source *source);
kofn_status kf_host_products_new(kf_host *h, const kofn_matrix *v);
void kf_host_products_free(kf_host *h);
/* Returns the product that is computed from iterate t. */
kf_host_product_data *kf_host_product(const kf_host *h, uint64_t t);
/* Returns the number of strips in a group, and the first in *lo. */
size_t kf_host_strips(const kf_host_product_data *p, size_t group, size_t *lo);
/* Returns the shape of a partial product with that number of strips;
 * KOFN_NO_SEAT: of a result. */
kofn_matrix kf_host_partial_shape(const kf_host_product_data *p, size_t strips,
                                  uint32_t seat, void *numbers);
size_t kf_host_partial_bytes(const kf_host_product_data *p, size_t strips,
                             uint32_t seat);
/* Returns a digest of the operands, with their types. */
uint64_t kf_host_operands_digest(const kf_host *h, uint64_t d);
/* Encodes the block of a seat, of one operand. */
kofn_status kf_host_encode(const kf_mesh_operand *o, uint32_t seat,
                           kf_block **block);
/* Makes h->in, if it is not there. */
kofn_status kf_host_input(kf_host *h);
void kf_host_forget_input(kf_host *h);
/* Computes the partial product of a group, from the block of that seat of the
 * present operand.  KOFN_AGAIN if it was stopped. */
kofn_status kf_host_compute(kf_host *h, const kf_block *block, uint32_t seat,
                            size_t group, bool (*stopped)(void *),
                            kf_buffer **out);

/* change.c */
kofn_status kf_changing_new(kf_host *h);
void kf_changing_free(kf_host *h);
/* Brings all blocks that are here to the iterate that this node has made. */
kofn_status kf_changing_turn(kf_host *h);
/* Brings our blocks to the iterate that this node took, with the lineages of
 * its last turns, or drops them. */
kofn_status kf_changing_adopt(kf_host *h, const void *lines);
/* True if blocks of the start can still be brought to our iterate. */
bool kf_changing_recalls(const kf_host *h);
/* Brings new blocks of that seat and turn (0: the start) to our iterate. */
kofn_status kf_changing_fresh(kf_host *h, uint32_t seat, uint64_t turn);
/* True if the vector has all turns since this iterate, which followed that
 * turn. */
bool kf_changing_knows(const kf_host *h, uint64_t turn, uint64_t line);
/* Drops our blocks: they are lost, or made from a wrong vector. */
kofn_status kf_changing_lose(kf_host *h);
/* Drops our blocks, which were found wrong.  If those that replace them are
 * wrong, too, the vector that made them is in doubt. */
kofn_status kf_changing_wrong(kf_host *h);
/* The change of a matrix by a turn, scaled as the matrix is. */
typedef struct kf_turn_change {
    kofn_turn_change to;
    void *owned[2]; /* numbers of U and V */
} kf_turn_change;
kofn_status kf_changing_ask(const kf_host *h, uint64_t turn, uint32_t operand,
                            kf_turn_change *out);
void kf_changing_done(kf_turn_change *a);
/* Brings borrowed windows to this node's iterate, or drops them. */
kofn_status kf_changing_settle(kf_host *h);

/* rebuild.c */
/* True if this window can serve to rebuild ours. */
bool kf_borrowed_serves(const kf_host *h, const kf_borrowed *l);
/* Rebuilds our blocks of that seat from the windows.  KOFN_AGAIN: more are
 * requested. */
kofn_status kf_borrowed_make(kf_host *h, uint32_t seat);
/* True if no node had such blocks to lend for some silences. */
bool kf_borrowed_lacks(const kf_host *h);
/* Drops window i. */
void kf_borrowed_drop(kf_changing *c, size_t i);
/* Drops all windows, and requests none. */
void kf_borrowed_forget(kf_host *h);
/* Lends the peer the rows that it has requested. */
kofn_status kf_borrowed_give(kf_host *h, const kf_route *r,
                             const kf_note *asked);
/* Returns the bytes of these rows in a packet, without the velocity: a multiple
 * of 8, with zeros at the end.  0 if there are no such rows. */
size_t kf_borrowed_bytes(const kf_host *h, uint32_t operand, size_t lo,
                         size_t hi);
/* Returns the bytes of all rows; 0 if the matrix does not change. */
size_t kf_borrowed_whole(const kf_host *h, uint32_t operand);
kofn_status kf_borrowed_body(const kf_host *h, uint32_t operand, size_t lo,
                             size_t hi, kf_buffer **body, size_t *bytes);
kofn_status kf_borrowed_take(kf_host *h, kf_route *r, const kf_note *note,
                             kf_buffer *body);

/* Calls the simulator of errors, for the work that follows iterate t. */
void kf_host_fault(const kf_host *h, kofn_fault_place where, uint64_t t,
                   kofn_matrix *numbers);

/* Sets the range of the vector that iterate t wrote. */
static inline void kf_host_wrote(const kf_host *h, uint64_t t, size_t *first,
                                 size_t *rows)
{
    size_t all = h->v->m.rows;

    *first = 0;
    *rows = all;
    if (h->program.wrote)
        h->program.wrote(h->program.ud, t, first, rows);
    *first = kf_min(*first, all);
    *rows = kf_min(*rows, all - *first);
}

/* ballot.c */
/* Returns the same on machines that compute the same bits. */
uint64_t kf_host_machine(void);
/* Returns by how much the sums of `numbers` numbers of an iterate may differ
 * between honest nodes.  Weights are at most 1, and the largest number is
 * `most` (math/training.md 12). */
double kf_host_room(const kf_host *h, size_t numbers, double most);
/* Returns the digest of iterate t: that vector with these scalars. */
kf_node_digest kf_host_digest(const kf_host *h, uint64_t t,
                              const double *scalar, const double *v);
/* Returns the same with our way.  The last iterate has none: all nodes must
 * have it bit for bit. */
kf_node_digest kf_host_digest_of_way(const kf_host *h, uint64_t t,
                                     const double *scalar, const double *v,
                                     bool final);
/* Records from which seats a group was decoded. */
void kf_host_way_note(kf_host *h, size_t group, const kofn_decoder *d);
/* Adds these records to our way: the next iterate is made from all groups. */
void kf_host_way_go(kf_host *h);
/* Sets our way to that of an iterate from another node. */
void kf_host_way_take(kf_host *h, const kf_node_digest *digest);

/* vector.c */
size_t kf_mesh_vector_bytes(const kf_host *h);
/* Provides memory for a body of `bytes` bytes, used again when nothing refers
 * to it. */
kofn_status kf_mesh_vector_room(kf_host *h, size_t bytes, kf_buffer **out);
kofn_status kf_mesh_vector_body(kf_host *h, kf_buffer **body, size_t *bytes);
kofn_status kf_mesh_vector_take(kf_host *h, kofn_iterate_id at,
                                kf_buffer *body);
/* Records the mark of our iterate, from which the next is made. */
void kf_mesh_part_remember(kf_host *h);
/* True if a request for an iterate needs only what was written since ours. */
bool kf_mesh_part_suffices(const kf_host *h);
/* Chooses whether our iterate goes to that connection as a part.  If so, the
 * note gets its base. */
void kf_mesh_part_choose(const kf_host *h, const kf_route *r, kf_note *note);
static inline bool kf_mesh_part_is(const kf_note *note)
{
    return note->type == KF_NOTE_VECTOR && note->vector.after > 0;
}
/* Returns the bytes of a part that came; 0: its base is not here. */
size_t kf_mesh_part_bytes(const kf_host *h, const kf_note *note);
kofn_status kf_mesh_part_body(kf_host *h, const kf_note *note, kf_buffer **body,
                              size_t *bytes);
kofn_status kf_mesh_part_take(kf_host *h, const kf_note *note,
                              const kf_buffer *body);

/* norms.c */
kofn_status kf_mesh_norms_new(kf_host *h);
/* Return the norms of the rows of parts, or of their velocities; of the
 * columns. */
const double *kf_mesh_norms_rows(const kf_mesh_operand *o, bool velocity);
const double *kf_mesh_norms_cols(const kf_mesh_operand *o);
/* Adds the change of the turn to the norms. */
kofn_status kf_mesh_norms_turn(kf_host *h, uint64_t turn);
/* Norms that travel with the vector: their number, into and out of it. */
size_t kf_mesh_norms_count(const kf_host *h);
void kf_mesh_norms_pack(const kf_host *h, char *to);
void kf_mesh_norms_take(kf_host *h, const char *from);

/* sketch.c */
/* Drops all sketches; counts stay. */
void kf_sketch_forget(kf_host *h);
/* Handles the end of a turn: starts a comparison of blocks if it is due. */
kofn_status kf_sketch_turn(kf_host *h);
/* Sketches our blocks, sends the sketches to all, and compares them when those
 * of the others are here. */
kofn_status kf_sketch_begin(kf_host *h);
/* True if our present blocks were found to agree with those of the others, or
 * blocks are not compared. */
bool kf_sketch_vouches(const kf_host *h);
/* Compares the sketches if enough have come. */
kofn_status kf_sketch_settle(kf_host *h);
/* Returns the bytes of a sketch, without that of the velocity. */
size_t kf_sketch_bytes(const kf_host *h, uint32_t operand);
/* Returns a new reference to our sketch that this note names, or NULL if it is
 * gone. */
kf_buffer *kf_sketch_body(const kf_host *h, const kf_note *note);
kofn_status kf_sketch_take(kf_host *h, const kf_route *r, const kf_note *note,
                           kf_buffer *body);

/* block_comparison.c */
/* Compares the borrowed windows (rows of our blocks that other nodes computed,
 * rebuild.c) and drops wrong ones.  KOFN_TOOFEW: more are needed. */
kofn_status kf_borrowed_compare(kf_host *h, uint32_t operand);

/* freivalds.c */
kofn_status kf_secret_new(kf_host_product_data *p);
void kf_secret_free(kf_secret *s);
/* Checks the product.  If it is wrong, it is made from A, and the senders that
 * made it wrong are accused. */
kofn_status kf_mesh_freivalds_next(kf_host *h);
/* Makes the product from A alone. */
kofn_status kf_mesh_freivalds_make(kf_host *h);
/* Accuses a peer, which is excluded when the iterate is complete.  If there is
 * no room, it will be found at its next error. */
void kf_mesh_freivalds_accuse(kf_mesh_freivalds *a, kofn_peer peer);
/* Excludes the accused peers, when the iterate is complete. */
kofn_status kf_mesh_freivalds_tell(kf_host *h);
/* Records that other nodes decoded some of it. */
void kf_mesh_freivalds_widen(kf_host *h);

/* comparison.c */
/* Compares the partial products of the decoder's seats.  The finding goes into
 * `ev`. */
kofn_status kf_comparison_check(kf_host *h, const kf_node_task *t,
                                kf_node_event *ev);
/* Compare the blocks of a matrix, or their velocities; record the senders that
 * are certainly wrong. */
kofn_status kf_comparison_read(kf_host *h, const kf_mesh_operand *o,
                               kf_reading *r, bool velocity, kf_found *found);
void kf_comparison_strike_all(kf_host *h, const kf_reading *r,
                              const kf_found *found);
/* Records that the incarnation had another iterate than the majority. */
void kf_comparison_outvoted(kf_host *h, kofn_incarnation who,
                            uint64_t principal);
/* Counts for each peer, at the end of an iterate, whether its partial products
 * were right or wrong. */
void kf_comparison_advance(kf_host *h);
/* Examines our block after a partial product of ours was found wrong. */
kofn_status kf_comparison_appeal(kf_host *h, const kf_node_task *t);
/* Discards the findings for an iterate that is repeated.  It was not clear
 * which partial products were wrong, so right ones may have been taken for
 * wrong. */
void kf_comparison_void(kf_host *h);
/* Drops the scale of the input, because the input is another one. */
void kf_comparison_forget(kf_host *h);
void kf_comparison_free(kf_host *h);

/* vector_quorum.c */
/* Returns the fingerprint of our vector under this key. */
double kf_vector_quorum_local(const kf_host *h, uint64_t key);
/* Asks other nodes for fingerprints; `incarnation` was asked for its
 * iterate. */
kofn_status kf_vector_quorum_ask(kf_host *h, kofn_incarnation incarnation,
                                 const kf_note *ask);
/* Stores a fingerprint that came.  kf_vector_quorum_vector stores a VECTOR that
 * was requested. */
void kf_vector_quorum_print(kf_route *r, const kf_note *note);
/* Reads a request for fingerprints, of one iterate and some later ones, or a
 * heartbeat: a peer that is not behind any more gets none. */
void kf_vector_quorum_hear(const kf_host *h, kf_route *r, const kf_note *note);
/* Sends the fingerprint of our new iterate to the peers that asked. */
kofn_status kf_vector_quorum_tell(kf_host *h);
void kf_vector_quorum_vector(kf_host *h, const kf_route *r, const kf_note *note,
                             kf_buffer *body);
/* True if the iterate that came can be taken, and hands it over.  Enough others
 * have confirmed it, or it agrees with ours. */
bool kf_vector_quorum_ready(kf_host *h, kf_note *note, kf_buffer **body);
void kf_vector_quorum_drop(kf_host *h);
/* True if n numbers differ by at most `room` each.  A NaN differs from
 * everything. */
bool kf_mesh_alike(const double *x, const double *y, size_t n, double room);

/* route.c */
/* Returns NULL if there is no such connection. */
kf_route *kf_route_of(const kf_host *h, kofn_peer peer);
/* Finds or adds the connection. */
kofn_status kf_route_add(kf_host *h, kofn_peer peer, kf_route **out);
/* True if this connection may speak for that incarnation. */
bool kf_route_is_of(const kf_host *h, kf_route *r,
                    kofn_incarnation incarnation);
/* True if an iterate is still being sent to it; another one would queue behind
 * it. */
bool kf_route_is_announced(kf_route *r);
/* Records that an iterate is sent to it.  *body becomes a separate reference,
 * which shows when the transport releases it. */
kofn_status kf_route_tell(kf_route *r, kf_buffer **body);
/* Releases the iterates that are no longer being sent. */
void kf_route_recall(kf_host *h);
/* True if a body from it is arriving that will be complete within KF_SLOWEST
 * silences of its start, at its present rate. */
bool kf_route_is_arriving(const kf_host *h, const kf_route *r);
/* Quarantines a faulty connection: its principal is ignored for a while,
 * whatever connection it uses. */
void kf_route_quarantine(kf_host *h, const kf_route *r);
/* True if it is quarantined. */
bool kf_route_is_held(const kf_host *h, kofn_peer peer,
                      kofn_incarnation incarnation);
/* Counts one more packet from it.  True if the packet is read.  *floods: it
 * continues although it has sent far too many. */
bool kf_route_spend(kf_host *h, kf_route *r, bool *floods);

/* mail.c */
kofn_status kf_mail_to(kf_host *h, kofn_peer peer, const kf_note *note);
/* Sends the note to all peers that have named their incarnation. */
kofn_status kf_mail_to_all(kf_host *h, const kf_note *note);
/* Quarantines a faulty peer and its principal for a while. */
kofn_status kf_mail_exclude(kf_host *h, kofn_peer peer);
kofn_status kf_mail_send(kf_host *h, kofn_incarnation to, const kf_note *note);
/* Receives all that has come, or waits for at most `atmost`. */
kofn_status kf_mail_receive(kf_host *h, kofn_time atmost);
/* Sends a heartbeat to all, as a node of that job. */
kofn_status kf_mail_announce(kf_host *h, uint64_t job);
/* Sends a heartbeat, from time to time, to each peer that has sent no note of
 * this attempt. */
kofn_status kf_mail_greet(kf_host *h);
/* Reports to the coordinator, from time to time, which nodes' bodies are
 * arriving. */
kofn_status kf_mail_look(kf_host *h);
void kf_mail_free(kf_host *h);

#endif
