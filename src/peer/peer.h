/* peer.h -- the decisions of one node of a mesh, as a pure state machine.
 *
 * Input: events, notes of other nodes, and the time.  Output: notes to send,
 * and the task to work on.  It reads no clock, opens no socket and never sees a
 * matrix.  docs/masterless.md describes the protocol.
 *
 *   - Strips are cut into *groups*, which are the same for the whole run
 *     (math/elastic.md 3).  They are not the groups of a scheme; the scheme of
 *     a mesh has one group.  A *partial product* is the product of the block of
 * one seat with the input, for one group.  Any k partial products of a group
 * decode it if all were made from the same iterate.
 *   - A *mark* names an iterate: its number, and a digest of the epochs that
 *     made it.  Every note names the iterate to which it refers, and partial
 * products of different iterates are never mixed.  This rule, not agreement,
 * makes results right.
 *   - Matrices may change: after every *turn* of the products each node changes
 *     its own block as the vector prescribes.  A node without a block makes one
 *     from the blocks of others.  At the end the matrices are read from the
 *     blocks.
 *   - An *epoch* has a number, a *leader* (the node that proposed it), and
 *     members with their seats.  Within an epoch one node decides, once, which
 *     partial products decode a group.  So all nodes have the same iterate, bit
 * for bit. A higher epoch ends a lower one at every node that hears of it.
 *
 * Other nodes may be hostile.  The host checks what they send, or `confirm` of
 * them must agree.
 */
#ifndef KF_PEER_H
#define KF_PEER_H

#include <kofn/peer.h>

#include "code/bounds.h"
#include "code/code.h"

typedef struct kf_member {
    kofn_incarnation incarnation;
    uint32_t seat;
    bool prompt; /* decodes for others; distributed decoding only */
} kf_member;

#define KF_MAX_GROUPS 64 /* so that a set of groups fits into 64 bits */

/* ---- what is computed ---------------------------------------------------- */

/* The order of the products.  Most programs repeat their products until the
 * last iterate.  If `turns` is not 0, the other products are repeated `turns`
 * times, and then the last `after` products run once. */
typedef struct kf_course {
    size_t products;
    uint64_t turns; /* 0: no limit */
    size_t after;
} kf_course;
/* Returns the product that is computed from iterate t; the number of turns that
 * are complete at iterate t. */
size_t kf_course_product(const kf_course *c, uint64_t t);
uint64_t kf_course_turn(const kf_course *c, uint64_t t);
/* Returns the iterate at which that turn is complete. */
uint64_t kf_course_end(const kf_course *c, uint64_t turn);

/* ---- notes between nodes ------------------------------------------------- */

/* A digest of an iterate, by which nodes compare theirs.  It covers the numbers
 * that the iterate wrote (`wrote` of kofn_program).  `sum` adds them up, each
 * times a weight from 1/2 to 1 of either sign.
 *
 * Two nodes with the same `machine` and the same `way`, which means that they
 * decoded the same partial products, have the same `exact`, unless one made a
 * mistake. If only the ways differ, the vectors differ by rounding, and the
 * values of `sum` by at most `tight`.  If the machines differ, the values of
 * `sum` differ by at most `room`. */
typedef struct kf_node_digest {
    uint64_t exact; /* a hash of the numbers; 0: there is no digest */
    uint64_t machine, way;
    double sum;
    double tight, room; /* limits of this node; they are not sent */
    /* The iterate was taken from another node: the digest says nothing about
     * what this node would compute. */
    bool taken;
} kf_node_digest;

/* Types of packets between nodes; those of workers are in wire/wire.h. */
typedef enum kf_note_type {
    /* The state of the sender, sent every heartbeat period.  `at`: its iterate.
     * `seat`: the seat of its blocks; if it has none and is no member, the seat
     * that it wishes. */
    KF_NOTE_BEAT = 16,
    KF_NOTE_EPOCH, /* The epoch of the sender, with its members. */
    /* The decision of the leader: the groups of `at` in `decide` are decoded
     * from the seats in `list`. */
    KF_NOTE_DECIDE,
    /* A request for what `want` names of `at`, each when it exists. */
    KF_NOTE_WANT,
    /* The sender needs no more partial products of `at` for the groups in
     * `enough`. */
    KF_NOTE_ENOUGH,
    /* Body: the partial product of `seat` for `group` of `at`.  Without a seat:
     * the result of the group, decoded in `epoch`. */
    KF_NOTE_PARTIAL,
    /* A request for the iterate of the receiver, or for its fingerprint. */
    KF_NOTE_ASK,
    KF_NOTE_VECTOR, /* body: the iterate `at`, or a part of it */
    KF_NOTE_BYE,    /* the sender leaves */
    KF_NOTE_PRINT,  /* the fingerprint of the iterate `at` */
    /* A request for `rows` of the receiver's block of matrix `group`, which
     * changes. */
    KF_NOTE_READ,
    /* Body: these rows of the block of `seat` of matrix `group`, after the turn
     * that made the iterate `at`.  Without a seat: the sender has none. */
    KF_NOTE_BLOCK,
    KF_NOTE_KEPT, /* the sender has `at` and its blocks on disk */
    /* Body: the block of `seat` of matrix `group`, after the turn that made
     * `at`, times a vector. */
    KF_NOTE_SKETCH
} kf_note_type;
#define KF_NOTE_LAST KF_NOTE_SKETCH

/* What a node requests of an iterate, as sets of groups. */
typedef struct kf_request {
    uint64_t partials; /* groups of which it wants the partial product */
    uint64_t results;  /* groups of which it wants the decoded result  */
} kf_request;

typedef struct kf_note {
    kf_note_type type;
    kofn_incarnation from;
    kofn_epoch epoch; /* that of the sender; PARTIAL: in which it was made */
    kofn_iterate_id at;
    bool final; /* BEAT, VECTOR, PRINT: `at` is the last one */
    bool idle;  /* BEAT: the sender has nothing left to do for `at` */
    /* BEAT: the sender has failed, or found no node that could lend the blocks
     * that it needs. */
    bool stranded;
    /* What only notes of this type have.  In sets of groups, bit j is group j.
     */
    union {
        struct {
            uint64_t
                made; /* groups whose partial product the sender has made */
        } beat;
        struct {
            uint64_t groups;
        } decide, enough;
        kf_request want;
        struct {
            uint64_t key;  /* not 0: only the fingerprint under this key */
            uint64_t part; /* not 0: the numbers written since `at` suffice */
        } ask;
        struct {
            /* 0: the body is the whole vector.  Else only the rows that
             * iterates wrote after number `after` - 1 of that lineage. */
            uint64_t after, lineage;
        } vector;
        union {
            uint64_t key; /* in the action of a node: of the request */
            double value; /* as sent: the fingerprint under that key */
        } print;
        struct {
            uint64_t lo, hi; /* rows lo .. hi - 1 of a block */
        } rows;              /* READ, BLOCK */
        uint64_t word[2];    /* the same as it is sent */
    };
    uint32_t group, seat;
    const kf_member *member; /* EPOCH: in the order of their seats */
    size_t members;
    /* DECIDE: for each group of `decide`, in ascending order: the number of
     * seats, then the seats in ascending order. */
    const uint32_t *list;
    size_t listed;
    kf_node_digest digest; /* BEAT, WANT: of `at`, if errors are looked for */
} kf_note;

/* ---- the coordinator of one node ----------------------------------------- */

/* Members without a comment have the meaning and the default that they have in
 * kofn_peer_options; kf_node_new fills the defaults in. */
typedef struct kf_node_options {
    kofn_incarnation incarnation;
    uint64_t job; /* lineage of the start; notes of other jobs are dropped */
    size_t nodes; /* that found the mesh */
    size_t quorum, confirm;
    /* 1..64, the same on all nodes; a product with fewer strips has one group
     * for each strip */
    size_t groups;
    kofn_decoding decoding; /* not AUTO; the same on all nodes */
    uint64_t turns;         /* `turns` and `after`: as in kf_course */
    size_t after;
    kofn_iterate_id from; /* the iterate that it has; t = 0: the start */
    /* No node has the matrices, so no node computes an iterate alone. */
    bool changes;
    uint32_t wish;    /* wished seat, or KOFN_NO_SEAT */
    double tolerance; /* of decoding; 0: 1e-9 */
    /* Not NONE: wrong partial products are looked for.  That needs replicated
     * decoding, of at least one partial product more than the decoding needs.
     */
    kofn_errors errors;
    kofn_time beat, silence, hedge, patience, linger, give_up;
} kf_node_options;

typedef enum kf_node_task_type {
    KF_NODE_TASK_NONE,
    /* Make the blocks of `seat`, one of each matrix.  The host may have to wait
     * for the blocks of other nodes. */
    KF_NODE_TASK_ENCODE,
    KF_NODE_TASK_COMPUTE, /* own partial product of `group` */
    KF_NODE_TASK_CHECK,   /* compare the partial products of the decoder's seats
                           */
    KF_NODE_TASK_DECODE,  /* `group` from the partial products of the decoder's
                             seats */
    KF_NODE_TASK_UPDATE,  /* all groups are there: make the next iterate */
    /* make the next iterate from the matrix, without the other nodes */
    KF_NODE_TASK_SOLO
} kf_node_task_type;

typedef struct kf_node_task {
    kf_node_task_type type;
    kofn_iterate_id at;
    kofn_epoch epoch;
    uint32_t seat, group;
    const kofn_decoder *decoder; /* valid until the next step */
    kf_verdicts verdicts; /* CHECK: as for KOFN_DO_CHECK in <kofn/core.h> */
    bool last;            /* CHECK: no more partial products can come */
} kf_node_task;

/* Longest time for a body to arrive, in units of `silence`. */
#define KF_SLOWEST 2

typedef enum kf_node_event_type {
    KF_NODE_TICK = 1, /* time has passed */
    KF_NODE_WENT,     /* the incarnation cannot be reached any more */
    KF_NODE_NOTE,     /* a note came: `note` */
    KF_NODE_DONE,     /* `task` is done; final: the new iterate is the last */
    KF_NODE_LEAVE,    /* this node is going to leave */
    KF_NODE_LOST,     /* the blocks of this node are of no use any more */
    /* the vector of this node may be wrong: take that of another node */
    KF_NODE_DOUBT,
    /* The vector of this node differs from the one whose digest was sent;
     * `digest` is that of the present vector. */
    KF_NODE_SPOILT,
    KF_NODE_LIAR, /* as WENT, because the incarnation sent something wrong */
    /* A body of the incarnation is arriving, fast enough to be complete within
     * KF_SLOWEST silences. */
    KF_NODE_ARRIVING,
    KF_NODE_RESTORED /* `note` describes a VECTOR that this node has on disk */
} kf_node_event_type;

typedef struct kf_node_event {
    kf_node_event_type type;
    kofn_time now;
    kofn_incarnation incarnation;
    const kf_note *note;
    /* NOTE: the principal of the sender, which may own other incarnations too;
     * 0: the incarnation itself */
    uint64_t principal;
    const kf_node_task *task;
    bool final;
    /* TICK: for some silences no node could lend the blocks that this node
     * needs. */
    bool lacks;
    kf_node_digest
        digest; /* DONE of an UPDATE or SOLO, SPOILT: of the iterate */
    /* DONE of a CHECK.  `verdict`: KOFN_OK, KOFN_CORRUPT, or KOFN_AGAIN if a
     * decision needs more partial products.  `bad`: indices of the decoder's
     * seats that are left out.  The last `doubted` of them are not certainly
     * wrong. */
    kofn_status verdict;
    const uint32_t *bad;
    size_t bad_count, doubted;
} kf_node_event;

typedef enum kf_node_action_type {
    KF_NODE_SEND = 1, /* send `note`; PARTIAL, VECTOR: with its body */
    KF_NODE_TAKE,     /* keep the body of the note that came */
    /* `to`, of `principal`, had another iterate than the majority */
    KF_NODE_ERRED
} kf_node_action_type;

typedef struct kf_node_action {
    kf_node_action_type type;
    kofn_incarnation to;
    uint64_t principal;
    kf_note note; /* its pointers are valid until the next step */
} kf_node_action;

typedef struct kf_node kf_node;

/* Checks that the products are as kofn_mesh_product requires.  Fails with
 * KOFN_UNSUITED if a plan is for an operation that a mesh does not compute. */
kofn_status kf_node_products_check(const kofn_mesh_product *product,
                                   size_t products);

/* Creates a node for `products` products.  Their plans are borrowed. */
kofn_status kf_node_new(kf_node **out, const kofn_mesh_product *product,
                        size_t products, const kf_node_options *opt,
                        kofn_time now);
/* Passes an event to the node.  Fails with KOFN_TOOFEW if `give_up` has passed
 * below the quorum, and with KOFN_UNSTABLE if the partial products of all seats
 * do not decode accurately.  Notes that are late, repeated, out of order or
 * malformed are dropped and counted. */
kofn_status kf_node_step(kf_node *n, const kf_node_event *ev);
/* Returns the next action of the last step.  Take all of them before the next
 * step. */
bool kf_node_next(kf_node *n, kf_node_action *out);
/* Returns the task to work on; report its end with KF_NODE_DONE.  DECODE,
 * UPDATE, CHECK and SOLO must be done before the next event.  Events may
 * interrupt the others, which may be dropped when kf_node_wanted returns
 * false. */
void kf_node_work(const kf_node *n, kf_node_task *out);
bool kf_node_wanted(const kf_node *n, const kf_node_task *task);
kofn_time kf_node_alarm(const kf_node *n);
/* Returns the cache that owns the decoder of a CHECK. */
kf_cache *kf_node_cache(const kf_node *n);
/* Returns the heartbeat of this node, also to send to a node with an unknown
 * incarnation. */
kf_note kf_node_beat(const kf_node *n);
void kf_node_free(kf_node *n);
/* Returns the options of the node, with defaults filled in. */
const kf_node_options *kf_node_reported(const kf_node *n);
/* Returns the seat of a member, or KOFN_NO_SEAT if it is no member. */
uint32_t kf_node_seat_of(const kf_node *n, kofn_incarnation incarnation);
/* Returns how often this node, as the leader, gave its iterate another mark,
 * which made all partial products of it void. */
uint64_t kf_node_agains(const kf_node *n);
/* True if it cannot be decided which partial products of the iterate with this
 * mark are wrong. */
bool kf_node_is_stuck(const kf_node *n);
/* True if the majority has our iterate, or no other node can be compared. */
bool kf_node_is_agreed(const kf_node *n);
/* Returns the first iterate at which this node may have differed from the
 * majority, as last detected. */
uint64_t kf_node_doubted(const kf_node *n);

void kf_node_look(const kf_node *n, kofn_node_view *v);
/* Return `over` and `failed` of the view, which the host asks for in every
 * pass. */
bool kf_node_is_over(const kf_node *n);
kofn_status kf_node_failed(const kf_node *n);

/* Returns the number of others that must confirm an iterate now.  It is
 * `confirm`, or less if matrices change and some nodes are known to be faulty
 * or are absent. */
size_t kf_node_confirmed_by(const kf_node *n);
/* True if that node is heard, and has iterate t or a later one. */
bool kf_node_is_ahead(const kf_node *n, kofn_incarnation who, uint64_t t);
/* True if only the nodes that made the last iterate themselves are witnesses of
 * it.  This holds if wrong results are accidents: a node that took the vector
 * of another one adds no evidence.  A hostile node would claim that it made its
 * own. */
bool kf_node_hears_makers(const kf_node *n);
/* Returns the default of `confirm` for this number of nodes. */
size_t kf_node_confirm(size_t nodes);
/* Returns the number of groups into which `nodes` nodes cut the strips of a
 * product. */
size_t kf_node_groups(const kofn_mesh_product *product, size_t nodes,
                      kofn_errors errors);

#endif
