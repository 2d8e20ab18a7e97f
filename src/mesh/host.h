/* host.h -- the body of a node of a mesh: its vector, its blocks, the pieces
 * of others, and the packets they come in.
 *
 * All is owned by the host and used on its one thread.  Only files of this
 * folder may read these structs, but for what ports start it with. */
#ifndef KF_MESH_HOST_H
#define KF_MESH_HOST_H

#include "changing.h"
#include "note.h"

#include "base/blame.h"
#include "data/check.h"

#define KF_OURS UINT32_MAX

/* A piece of a group; seat KOFN_NO_SEAT: the group's result. */
typedef struct kf_piece {
    uint32_t seat;
    kofn_peer from; /* KF_OURS: made here */
    kf_buffer *data;
} kf_piece;

typedef struct kf_pieces {
    kf_piece *piece;
    size_t count, cap;
} kf_pieces;

#define KF_PRINTS 16
#define KF_KEPT 4 /* the last that were told of */

/* A fingerprint, and how large it could be with other weights. */
typedef struct kf_print {
    double sum, most;
} kf_print;

/* A connection.  It is of one incarnation as long as it lasts, the first that
 * it names; 0: it has not said yet.  Two may name the same, one of them wrongly
 * perhaps, so what one does is held against the connection and its principal,
 * not the incarnation. */
typedef struct kf_route {
    kofn_peer peer;
    kofn_incarnation incarnation;
    uint64_t principal;
    bool over;           /* it said that it leaves, or was corrupt */
    uint64_t key;        /* for the fingerprints that it makes for us ... */
    uint64_t theirs;     /* ... and that we make for it ...               */
    unsigned more;       /* ... of so many iterates yet, as long as ...   */
    uint64_t asked_from; /* ... it has none after this one            */
    struct {
        uint64_t t;
        bool final, taken;
        double value;
    } print[KF_PRINTS]; /* what came of it */
    size_t prints;      /* ever            */
    struct {
        bool made;
        kf_print print;
    } expected;  /* of what is to be confirmed, if its vector is the same */
    bool agrees; /* with the iterate that is to be confirmed */
    struct {
        kofn_iterate_id at;
        kofn_time when;
    } told[2]; /* our iterate, its fingerprint: the last that were sent */
    kf_buffer *telling; /* our iterate as it was sent last, or NULL    */
    kofn_iterate_id
        base;        /* it needs no more of ours than was written since; or 0 */
    int64_t credit;  /* notes that it may send yet                            */
    uint64_t t;      /* iterates, ...                                         */
    kofn_time since; /* ... and time, that it got credit for                 */
    kf_blame blame;  /* an iterate of which it sent wrong pieces counts once */
    uint32_t wrong_seat;
    bool right, errs; /* what it sent of this one was compared, and is wrong  */
    kofn_iterate_id kept[KF_KEPT]; /* iterates that it has on disk */
    size_t tells;
    unsigned attempt; /* that it is in, or wants      */
    bool met;         /* it has spoken in this one    */
    bool lends_none;  /* it has no blocks, or did not answer in time */
} kf_route;
#define KF_PAST 16 /* iterates whose marks a node remembers */

/* An iterate that came and is not confirmed. */
typedef struct kf_vector_quorum {
    kofn_incarnation asked; /* who was asked last: of nobody else it is taken */
    kofn_iterate_id from;   /* our iterate when it was asked                  */
    kf_route sender;        /* who sent it, as it was then              */
    kf_note note;
    kf_buffer *body; /* NULL: none came */
    double room;     /* by which fingerprints of it may differ, for the votes */
    uint64_t merged; /* the last that was like ours, and taken for that */
} kf_vector_quorum;

#define KF_MOST_QUARANTINED 64

/* Who was found to lie, and how often. */
typedef struct kf_quarantine {
    uint64_t who; /* a principal that has a name, else an incarnation */
    bool named;
    unsigned times;
    kofn_time until; /* it is not heard */
} kf_quarantine;

#define KF_MOST_LIARS 16    /* that are found in one iterate */
#define KF_FREIVALDS_SUMS 4 /* rows, all of which must be passed */

/* Secret rows times A, or for left products A times secret columns.  A wrong
 * product passes the check of freivalds.c only by chance for whoever does not
 * know them. */
typedef struct kf_secret {
    double *row;   /* KF_FREIVALDS_SUMS by row of A: +- 1/2 to 1 */
    double *times; /* KF_FREIVALDS_SUMS by column: row A         */
    double *most;  /* of the first: |row| |A|            */
} kf_secret;

/* The findings against the product that is being made. */
typedef struct kf_mesh_freivalds {
    double noise;                  /* of what it is made of    */
    bool odd;                      /* some of it is not finite */
    kofn_peer liar[KF_MOST_LIARS]; /* found, and not told yet  */
    size_t liars;
    size_t remade; /* products so far that did not pass */
} kf_mesh_freivalds;

/* Where errors are looked for in pieces. */
typedef struct kf_comparison {
    uint64_t secret; /* of the weights that they are compared with */
    uint32_t number; /* of the comparison                          */
    double *input;   /* what h->in is measured by, or NULL         */
    uint32_t *bad;
    size_t cap;
    bool ours;      /* a piece or a block of ours was wrong */
    kf_blame blame; /* of all who are not excluded */
} kf_comparison;

/* A matrix, and the block of it that is here. */
typedef struct kf_mesh_operand {
    kofn_matrix dense;
    const kofn_sparse *sparse; /* or NULL */
    const kofn_plan *plan;
    kf_resident resident;
    kf_levels levels;  /* by which its lines are raised before they are coded */
    void *raised;      /* numbers of those, or NULL: they are not            */
    kofn_sparse coded; /* where it is sparse: with these numbers             */
    kf_code *code;     /* what blocks are encoded with */
    kf_block *block;   /* NULL, or of no use, while host.seat is none */
    double *norms;     /* norms.c, where it changes; or NULL           */
} kf_mesh_operand;

/* A block of a seat times a vector (sketch.c). */
typedef struct kf_sketch {
    uint32_t operand, seat;
    kofn_peer from;      /* KF_OURS: made here             */
    uint64_t turn, line; /* of the iterate that it goes with */
    kf_buffer *data;     /* of the velocity, too, below, if it has one */
} kf_sketch;

/* Of which blocks sketches are: of the iterate, and of what seat ours were, and
 * how often they had been healed. */
typedef struct kf_sketched {
    uint64_t turn, line;
    uint32_t seat;
    size_t healed;
} kf_sketched;

/* Blocks that are compared where they lie (sketch.c). */
typedef struct kf_sketches {
    kf_sketch *sketch;
    size_t sketches, cap;
    kf_sketched last; /* ours were made of             */
    bool on;          /* these are to be compared: */
    kf_sketched of;
    kofn_time began;
    size_t tried;   /* sketches that did not suffice            */
    uint64_t right; /* the last turn of which ours were found to agree */
    uint64_t done;  /* times that blocks were compared          */
    double drift;   /* kf_found, of the last time               */
} kf_sketches;

/* A file with our blocks and the vector (keep.c). */
typedef struct kf_kept {
    kofn_iterate_id at;
    uint64_t turn;
    uint32_t seat;
    bool sound; /* its blocks were compared, if errors are looked for */
    bool whole; /* all members have theirs; else a draft */
} kf_kept;

typedef struct kf_keeping {
    kf_kept *file;
    size_t files, cap;
    uint64_t job;    /* that a file is of                    */
    uint64_t others; /* the last turn that enough others had */
    kofn_time tried; /* when the last draft was written      */
} kf_keeping;

/* Attempts of a run (back.c). */
typedef struct kf_backing {
    uint64_t job;     /* of the first                                      */
    unsigned attempt; /* that this is                                      */
    unsigned vain;    /* that failed, one after the other, and kept nothing */
    uint64_t times;   /* that this node went back                          */
    uint64_t turn;    /* with which this one began ...                     */
    uint64_t kept;    /* ... and the last that was kept then               */
    kofn_time since;  /* when it failed, or 0 ...                          */
    kofn_time told;   /* ... and when the others were last told so         */
    kofn_node_view before; /* what was counted in those before             */
    kf_buffer *start; /* the vector of the start; NULL: nobody goes back   */
} kf_backing;

/* A stage with its data. */
typedef struct kf_mesh_product {
    const kofn_plan *plan; /* of its operation */
    kofn_plan *reader;     /* that is `plan`, or NULL */
    kf_mesh_operand *of;
    size_t groups, width; /* columns of a piece                 */
    bool mixes;           /* it mixes lines of the input that stay apart */
    kf_code *code;        /* what inputs that are cut are mixed with */
    kf_buffer *out;       /* what is being made */
    kf_secret secret;
    double *norms; /* of A: rows, or columns of left products; or NULL */
} kf_mesh_product;

/* The wrong results that nodes may take for right are below this, relative to
 * the norms of their rows and columns, or more results are awaited
 * (docs/errors.md). */
static inline double kf_mesh_hidden(const kofn_plan *p)
{
    return p->layout.problem.dtype == KOFN_F64 ? 1e-9 : 1e-2;
}

/* A packet for which the way was full. */
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
    kf_mesh_product *product; /* of each stage         */
    kf_mesh_product *on;      /* that is being made of v */
    kf_course course;         /* through them          */
    kf_changing changing;
    kf_sketches sketches;
    kf_keeping keeping;
    kf_backing back;
    uint32_t seat; /* whose the blocks are  */

    kofn_iterate_id at; /* of v            */
    kofn_iterate_id
        past[KF_PAST];  /* of iterates that v was made of, by number */
    kf_buffer *v;       /* rows x 1        */
    kf_buffer *packed;  /* v as it is sent, or NULL */
    kf_pool vectors;    /* memory of vectors that were sent or came */
    kf_buffer *in;      /* what is made of v to be multiplied, or NULL ... */
    kf_buffer *lowered; /* ... as it goes with blocks, whose lines are raised */
    kf_messages messages; /* ... and that mixed for seats, where it is cut */
    double *square;       /* of the norms of its lines, or NULL (spread.c) */
    double spread; /* the most that lines are apart that it mixes (spread.c) */
    bool odd;      /* our iterate is not finite: others may know better   */
    kofn_iterate_id blown; /* an iterate with what is not finite */
    bool encoded;          /* ... for our own seat                          */
    uint64_t machine; /* what the digests of like ones have in common     */
    uint64_t way; /* of which pieces our vector was decoded, in this turn ... */
    uint64_t from[KF_MAX_GROUPS]; /* ... and what is made of it  */
    double noise;                 /* of all that was decoded so far ... */
    double rounding;              /* ... without what may be hidden in it */
    uint64_t again;    /* times that an iterate was begun again            */
    uint64_t outvoted; /* times that others' vectors were taken for ours   */
    size_t largest;    /* bytes of the vector or of all pieces of a seat */
    bool single;       /* some products are in float32 */
    size_t confirm;
    kf_vector_quorum vector_quorum;
    kf_mesh_freivalds freivalds;
    kf_comparison comparison;
    double scalar[KOFN_SCALARS];
    kf_pieces *now, *before; /* by group        */
    kofn_iterate_id before_at;
    kf_scratch scratch;

    kf_route *route;
    size_t routes, route_cap;
    kf_quarantine liar[KF_MOST_QUARANTINED];
    size_t liars;
    kf_waiting *waiting;
    size_t waits, wait_cap;
    kofn_time greeted;
    kofn_time looked; /* at what is coming in */
    uint64_t foreign; /* packets of no note of the job, for another, too many */
    kofn_status status; /* what went wrong while it was computing  */
    kf_node_task task;  /* in hand                                 */
} kf_host;

/* Nodes that may be wrong together: as many as can be told from the others in
 * the stage that needs fewest pieces (docs/errors.md). */
size_t kf_host_most_wrong(const kf_host *h);
kofn_status kf_host_new(kf_host **out, kofn_transport *t,
                        const kofn_program *program,
                        const kofn_peer_options *opt, const kofn_matrix *v,
                        kf_timer timer);
static inline kofn_time kf_host_now(const kf_host *h)
{
    return h->timer.now(h->timer.ud);
}
/* How often to tell where one stands, and after what time who is silent is
 * gone. */
static inline kofn_time kf_host_beat(const kf_host *h)
{
    return kf_node_told(h->node)->beat;
}
static inline kofn_time kf_host_silence(const kf_host *h)
{
    return kf_node_told(h->node)->silence;
}
/* The time after which to ask again. */
static inline kofn_time kf_host_hedge(const kf_host *h)
{
    return kf_node_told(h->node)->hedge;
}
void kf_host_free(kf_host *h);
/* Hears what has come, or comes in that time; `pass` does one task as well, if
 * there is one.  KOFN_AGAIN: `watch` wants it to leave. */
kofn_status kf_host_pass(kf_host *h, bool *worked);
kofn_status kf_host_hear(kf_host *h, kofn_time atmost);

/* host.c */
/* The coordinator of the node, as of the vector that is here. */
kofn_status kf_host_node_new(kf_host *h);
/* Nothing counts any more that was made, or came, but who lied. */
void kf_host_forget(kf_host *h);
/* How the node stands, with what its coordinator does not know. */
void kf_host_look(const kf_host *h, kofn_node_view *out);
/* Has it ended with the result?  One that has failed has none, also while it
 * waits for others to go back with it. */
bool kf_host_is_over(const kf_host *h);
kofn_status kf_host_step(kf_host *h, const kf_node_event *ev);
/* Does what the last step of the node says; *take, unless NULL, becomes true
 * where a body is to be kept. */
kofn_status kf_host_act(kf_host *h, bool *take);
/* NULL when it is not here. */
kf_buffer *kf_host_piece(const kf_pieces *p, uint32_t seat);
/* The pieces that the decoder of a task takes, all of which must be here. */
kofn_status kf_host_sources(const kf_host *h, const kf_node_task *t,
                            kf_source *source);
kofn_status kf_host_keep(kf_host *h, size_t group, uint32_t seat,
                         kofn_peer from, kf_buffer *data);
kofn_status kf_host_random(void *into, size_t bytes);
/* The vector is another one now: pieces of the old one are `before`. */
void kf_host_advance(kf_host *h, kofn_iterate_id at);

/* result.c */
/* Has it ended with the result agreed on?  Then `v`, unless NULL, becomes
 * that. */
kofn_status kf_host_hand_out(kf_host *h, double *v, bool *over);
/* Are these numbers of our vector those that were told?  Else another's is
 * taken. */
kofn_status kf_host_confirm_own(kf_host *h, const double *scalar,
                                const double *v, bool *same);
/* Numbers were not finite: with errors another's vector is taken, else
 * KOFN_NONFINITE. */
kofn_status kf_host_doubt(kf_host *h);
/* The message of a node that has failed with that status. */
kofn_status kf_host_say_why(const kf_host *h, kofn_status st);

/* stage.c */
kofn_status kf_host_stages_new(kf_host *h, const kofn_matrix *v);
void kf_host_stages_free(kf_host *h);
/* The product that is made of iterate t. */
kf_mesh_product *kf_host_product(const kf_host *h, uint64_t t);
/* Strips of a group of it, and the first. */
size_t kf_host_strips(const kf_mesh_product *p, size_t group, size_t *lo);
/* The matrix that a piece of so many strips is; seat KOFN_NO_SEAT: a result. */
kofn_matrix kf_host_piece_shape(const kf_mesh_product *p, size_t strips,
                                uint32_t seat, void *numbers);
size_t kf_host_piece_bytes(const kf_mesh_product *p, size_t strips,
                           uint32_t seat);
/* A digest of the operands, with their types. */
uint64_t kf_host_operands_digest(const kf_host *h, uint64_t d);
/* The blocks of a seat, of all operands or none. */
kofn_status kf_host_encode(const kf_mesh_operand *o, uint32_t seat,
                           kf_block **block);
/* Makes h->in, if it is not there. */
kofn_status kf_host_input(kf_host *h);
void kf_host_forget_input(kf_host *h);
/* Computes what the block of that seat, which is of the operand in hand, makes
 * of a group.  KOFN_AGAIN when it was stopped. */
kofn_status kf_host_compute(kf_host *h, const kf_block *block, uint32_t seat,
                            size_t group, bool (*stopped)(void *),
                            kf_buffer **out);

/* change.c */
kofn_status kf_changing_new(kf_host *h);
void kf_changing_free(kf_host *h);
/* We made an iterate: all blocks that are here go with it then. */
kofn_status kf_changing_turn(kf_host *h);
/* We took another's, with the lines of its last turns: our blocks go with it
 * then, or are dropped. */
kofn_status kf_changing_adopt(kf_host *h, const void *lines);
/* Can blocks of the start still be brought to our iterate? */
bool kf_changing_recalls(const kf_host *h);
/* Ours, of that seat and turn (0: of the start), are such: bring them. */
kofn_status kf_changing_fresh(kf_host *h, uint32_t seat, uint64_t turn);
/* Does the vector tell of all turns since this iterate, after that turn? */
bool kf_changing_knows(const kf_host *h, uint64_t turn, uint64_t line);
/* Ours are lost, or come of a vector that was wrong. */
kofn_status kf_changing_lose(kf_host *h);
/* Ours were found to be wrong.  Where those that were made after that are, too,
 * the vector may be that they were made by. */
kofn_status kf_changing_wrong(kf_host *h);
/* The change of a matrix by a turn, raised as the matrix is. */
typedef struct kf_turned {
    kofn_turned to;
    void *own[2]; /* numbers of U and V */
} kf_turned;
kofn_status kf_changing_ask(const kf_host *h, uint64_t turn, uint32_t operand,
                            kf_turned *out);
void kf_changing_done(kf_turned *a);
/* Brings a block that was lent to this node's iterate, or drops it. */
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

/* The node may be made to err in what follows from iterate t. */
void kf_host_fault(const kf_host *h, kofn_fault_place where, uint64_t t,
                   kofn_matrix *numbers);

/* What iterate t wrote of the vector. */
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
/* The same on machines that compute the same bits. */
uint64_t kf_host_machine(void);
/* By how much sums of so many numbers of an iterate, the largest of which is
 * `most`, with weights of up to 1 may differ where honest nodes have it
 * (math/training.md 12). */
double kf_host_room(const kf_host *h, size_t numbers, double most);
/* Of iterate t, which is that vector with these scalars. */
kf_node_digest kf_host_digest(const kf_host *h, uint64_t t,
                              const double *scalar, const double *v);
/* The same, with our way; not of the last, which all are to have bit for
 * bit. */
kf_node_digest kf_host_digest_of_way(const kf_host *h, uint64_t t,
                                     const double *scalar, const double *v,
                                     bool final);
/* A group of the product was decoded of the pieces of these seats ... */
void kf_host_way_note(kf_host *h, size_t group, const kofn_decoder *d);
/* ... and the next iterate is made of all of them. */
void kf_host_way_go(kf_host *h);
/* Our iterate is one that another told with that digest. */
void kf_host_way_take(kf_host *h, const kf_node_digest *told);

/* vector.c */
size_t kf_mesh_vector_bytes(const kf_host *h);
/* Memory for a body of so many bytes, used again when nobody has it any
 * more. */
kofn_status kf_mesh_vector_room(kf_host *h, size_t bytes, kf_buffer **out);
kofn_status kf_mesh_vector_body(kf_host *h, kf_buffer **body, size_t *bytes);
kofn_status kf_mesh_vector_take(kf_host *h, kofn_iterate_id at,
                                kf_buffer *body);
/* Our iterate is over, and another will be made of it. */
void kf_mesh_part_remember(kf_host *h);
/* Are no more of an iterate asked for than what was written since ours? */
bool kf_mesh_part_suffices(const kf_host *h);
/* Our iterate is for that route: says in the note of what base it is a part, if
 * it is to be one. */
void kf_mesh_part_choose(const kf_host *h, const kf_route *r, kf_note *note);
static inline bool kf_mesh_part_is(const kf_note *note)
{
    return note->type == KF_NOTE_VECTOR && note->coded > 0;
}
/* Of a part that came; 0: it is none of what is here. */
size_t kf_mesh_part_bytes(const kf_host *h, const kf_note *note);
kofn_status kf_mesh_part_body(kf_host *h, const kf_note *note, kf_buffer **body,
                              size_t *bytes);
kofn_status kf_mesh_part_take(kf_host *h, const kf_note *note,
                              const kf_buffer *body);

/* norms.c */
kofn_status kf_mesh_norms_new(kf_host *h);
/* Of the rows of parts, or of their velocities; and of the columns. */
const double *kf_mesh_norms_rows(const kf_mesh_operand *o, bool velocity);
const double *kf_mesh_norms_cols(const kf_mesh_operand *o);
/* The turn changed the matrices. */
kofn_status kf_mesh_norms_turn(kf_host *h, uint64_t turn);
/* Numbers that travel with the vector; into and out of it. */
size_t kf_mesh_norms_count(const kf_host *h);
void kf_mesh_norms_pack(const kf_host *h, char *to);
void kf_mesh_norms_take(kf_host *h, const char *from);

/* sketch.c */
/* Nothing is to be compared any more; what was counted stays. */
void kf_sketch_forget(kf_host *h);
/* A turn is over: blocks are compared if it is time. */
kofn_status kf_sketch_turn(kf_host *h);
/* Ours are sketched, all are told, and those of all are compared when they are
 * here. */
kofn_status kf_sketch_begin(kf_host *h);
/* Were our blocks, as they are, found to agree with those of the others, or
 * does nobody compare them? */
bool kf_sketch_vouches(const kf_host *h);
/* Compares them if enough have come. */
kofn_status kf_sketch_settle(kf_host *h);
/* Bytes of a sketch, without that of the velocity. */
size_t kf_sketch_bytes(const kf_host *h, uint32_t operand);
/* Ours that this note tells, a reference of the caller's own; NULL: it is
 * gone. */
kf_buffer *kf_sketch_body(const kf_host *h, const kf_note *note);
kofn_status kf_sketch_take(kf_host *h, const kf_route *r, const kf_note *note,
                           kf_buffer *body);

/* block_comparison.c */
/* Compares the windows and drops wrong ones.  KOFN_TOOFEW: more are needed. */
kofn_status kf_borrowed_compare(kf_host *h, uint32_t operand);

/* freivalds.c */
kofn_status kf_secret_new(kf_mesh_product *p);
void kf_secret_free(kf_secret *s);
/* Is what was made the product?  Where it is not it is made so, and whoever
 * sent what made it wrong is to be told. */
kofn_status kf_mesh_freivalds_next(kf_host *h);
/* Makes it from A alone. */
kofn_status kf_mesh_freivalds_make(kf_host *h);
/* Accuse a peer, which is told when the iterate is made.  A peer for whom there
 * is no room will be found when it lies again. */
void kf_mesh_freivalds_accuse(kf_mesh_freivalds *a, kofn_peer peer);
/* Tells the coordinator, when the iterate is made. */
kofn_status kf_mesh_freivalds_tell(kf_host *h);
/* Some of it was decoded by others. */
void kf_mesh_freivalds_widen(kf_host *h);

/* comparison.c */
/* Do the pieces of the decoder's seats agree?  Says so in `ev`. */
kofn_status kf_comparison_check(kf_host *h, const kf_node_task *t,
                                kf_node_event *ev);
/* Compares blocks of a matrix, or their velocities; and strikes those who sent
 * what is wrong for certain. */
kofn_status kf_comparison_read(kf_host *h, const kf_mesh_operand *o,
                               kf_reading *r, bool velocity, kf_found *found);
void kf_comparison_strike_all(kf_host *h, const kf_reading *r,
                              const kf_found *found);
/* The incarnation had another iterate than most. */
void kf_comparison_outvoted(kf_host *h, kofn_incarnation who,
                            uint64_t principal);
/* The iterate is over: count who was compared in it and was right, or wrong. */
void kf_comparison_advance(kf_host *h);
/* A piece of ours was found to be wrong: is our block? */
kofn_status kf_comparison_appeal(kf_host *h, const kf_node_task *t);
/* The iterate is made again: what was found of it says nothing, for where it
 * could not be told whose pieces are wrong those who are right may have been
 * taken for others. */
void kf_comparison_void(kf_host *h);
/* The input is another one. */
void kf_comparison_forget(kf_host *h);
void kf_comparison_free(kf_host *h);

/* vector_quorum.c */
/* Our own fingerprint, as it travels. */
uint64_t kf_vector_quorum_own(const kf_host *h, uint64_t key);
/* `incarnation` was asked for its iterate: all others are for its
 * fingerprint. */
kofn_status kf_vector_quorum_ask(kf_host *h, kofn_incarnation incarnation,
                                 const kf_note *ask);
/* A fingerprint has come: act on it.  Takes over the body of a VECTOR that was
 * asked for. */
void kf_vector_quorum_print(kf_route *r, const kf_note *note);
/* The peer asks for fingerprints, of this iterate and of some that follow, or
 * says where it stands: when it is not behind any more it gets none. */
void kf_vector_quorum_hear(const kf_host *h, kf_route *r, const kf_note *note);
/* Our iterate is another one: whoever asked gets its fingerprint. */
kofn_status kf_vector_quorum_tell(kf_host *h);
void kf_vector_quorum_vector(kf_host *h, const kf_route *r, const kf_note *note,
                             kf_buffer *body);
/* Have enough others confirmed it?  Then it is handed over. */
bool kf_vector_quorum_ready(kf_host *h, kf_note *note, kf_buffer **body);
void kf_vector_quorum_drop(kf_host *h);
/* Do n numbers differ by no more than `room` each?  What is no number
 * differs. */
bool kf_mesh_alike(const double *x, const double *y, size_t n, double room);

/* route.c */
/* NULL: there is no such connection. */
kf_route *kf_route_of(const kf_host *h, kofn_peer peer);
/* The same, made where there is none. */
kofn_status kf_route_add(kf_host *h, kofn_peer peer, kf_route **out);
/* May this connection speak for that incarnation? */
bool kf_route_is_of(const kf_host *h, kf_route *r,
                    kofn_incarnation incarnation);
/* Is an iterate still under way to it?  Another one would come after that. */
bool kf_route_is_told(kf_route *r);
/* An iterate is sent to it: *body becomes a reference for it alone, to see when
 * the transport gives that back. */
kofn_status kf_route_tell(kf_route *r, kf_buffer **body);
/* Lets go of iterates that are under way no more. */
void kf_route_recall(kf_host *h);
/* Is a body of it coming in that will be whole within KF_SLOWEST since it
 * began, if it goes on as it did so far? */
bool kf_route_is_arriving(const kf_host *h, const kf_route *r);
/* It lied: whoever answers for it is not heard for a while, however it
 * comes. */
void kf_route_quarantine(kf_host *h, const kf_route *r);
/* Is it not heard, since it was found to lie? */
bool kf_route_is_held(const kf_host *h, kofn_peer peer,
                      kofn_incarnation incarnation);
/* One more packet of it is here: is it looked at, and does it go on although it
 * has sent far too many? */
bool kf_route_spend(kf_host *h, kf_route *r, bool *floods);

/* mail.c */
kofn_status kf_mail_to(kf_host *h, kofn_peer peer, const kf_note *note);
/* To everybody who has said who it is. */
kofn_status kf_mail_to_all(kf_host *h, const kf_note *note);
/* It lied: neither it nor who answers for it is heard, for a while. */
kofn_status kf_mail_exclude(kf_host *h, kofn_peer peer);
kofn_status kf_mail_send(kf_host *h, kofn_incarnation to, const kf_note *note);
/* Hears everything that is there, waiting for it at most so long. */
kofn_status kf_mail_receive(kf_host *h, kofn_time atmost);
/* Says who it is to all, as if it were a node of that job. */
kofn_status kf_mail_announce(kf_host *h, uint64_t job);
/* Says who it is to those who have not said it yet, now and then. */
kofn_status kf_mail_greet(kf_host *h);
/* Tells the coordinator of the node whose bodies are coming in, now and
 * then. */
kofn_status kf_mail_look(kf_host *h);
void kf_mail_free(kf_host *h);

#endif
