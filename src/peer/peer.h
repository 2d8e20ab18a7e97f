/* peer.h -- what one node of a mesh decides, as a pure state machine like the
 * coordinator: events and notes of other nodes in, notes and work out, the time
 * handed in; no clock, no socket, never a matrix.  docs/masterless.md tells the
 * protocol.
 *
 *   - Strips are cut into *groups*, the same for the whole run
 *     (math/elastic.md 3; not the groups of a scheme, of which a mesh has one).
 *     A *piece* is what one seat's block makes of one group.  Any k pieces of a
 *     group, all made of the same iterate, decode it.
 *   - An iterate is named by its *mark*: its number and a digest of which
 *     epochs made it.  Everything that is sent says of which iterate it
 *     speaks, and pieces of different iterates are never mixed; this, not
 *     agreement, is what makes answers right.
 *   - Matrices may change: after every *turn* of the stages each node changes
 * its own block by what the vector tells.  Who has none makes one of those of
 *     others, and in the end the matrices are read from the blocks.
 *   - An *epoch* is a number, the node that proposed it (its *leader*) and the
 *     members with their seats.  Within it one node decides, once, which
 *     pieces decode a group: so all have the same iterate, bit for bit.  A
 *     higher epoch ends a lower one wherever it becomes known.
 *
 * Others may be hostile: what they say is checked by the host, or believed of
 * `confirm` of them.
 */
#ifndef KF_PEER_H
#define KF_PEER_H

#include <kofn/peer.h>

#include "code/code.h"
#include "code/promise.h"

typedef struct kf_member {
    kofn_incarnation incarnation;
    uint32_t seat;
    bool prompt; /* decodes for others; distributed decoding only */
} kf_member;

#define KF_MAX_GROUPS 64 /* so that a set of groups is a number */

/* ---- what is computed ---------------------------------------------------- */

/* Most programs go through their stages in turn until the last iterate.  With
 * `turns` the last `after` of them come once instead, when the others have had
 * so many turns. */
typedef struct kf_course {
    size_t stages;
    uint64_t turns; /* 0: for ever */
    size_t after;
} kf_course;
/* The stage that is made of iterate t, and how many turns are over at it. */
size_t kf_course_stage(const kf_course *c, uint64_t t);
uint64_t kf_course_turn(const kf_course *c, uint64_t t);
/* The iterate at which that turn is over. */
uint64_t kf_course_end(const kf_course *c, uint64_t turn);

/* ---- what nodes tell each other ------------------------------------------ */

/* The numbers of an iterate summed up, so that nodes can compare theirs: those
 * that the iterate wrote (kofn_program's `wrote`).  Of nodes with the same
 * `machine` that decoded the same pieces, which `way` tells, they are equal,
 * bit for bit, unless one of them made a mistake; where only the pieces differ
 * by rounding, and `sum`, of all numbers times weights between 1/2 and 1 of
 * either sign, by no more than `tight`; of other machines by no more than
 * `room`. */
typedef struct kf_node_digest {
    uint64_t exact; /* a hash of the numbers; 0: there is no digest */
    uint64_t machine, way;
    double sum;
    double tight, room; /* of this node alone: they are not sent */
    bool taken; /* of another: it tells nothing of what this node would make */
} kf_node_digest;

typedef enum kf_note_type {
    KF_NOTE_BEAT = 1, /* I stand at `at`; coded: pieces of it I made; seat:
                           whose block I have; who is no member and has
                           none: would like                                */
    KF_NOTE_EPOCH,    /* the epoch that I am in, and its members         */
    KF_NOTE_DECIDE,   /* of `at`, the groups in `coded` are decoded from
                           the seats in `list`                             */
    KF_NOTE_WANT,     /* of `at`, send me your pieces of the groups in
                           `coded`, and the results of those in `decoded`,
                           once you have them                              */
    KF_NOTE_ENOUGH,   /* of `at`, I do not need the groups in `coded`
                           any more                                        */
    KF_NOTE_PIECE,    /* body: seat's piece of a group of `at`; without a
                           seat the group's result, decoded in `epoch`     */
    KF_NOTE_ASK,      /* send me the iterate you have; with a key in
                           `coded`, only its fingerprint under that key;
                           with `decoded`, what was written since `at` will
                           do                                              */
    KF_NOTE_VECTOR,   /* body: the iterate `at`, or a part of it          */
    KF_NOTE_BYE,      /* I am leaving                                    */
    KF_NOTE_PRINT,    /* coded: fingerprint of the iterate `at`, float64  */
    KF_NOTE_READ,     /* send me rows `coded` to `decoded` of your block of
                           matrix `group`, which changes                  */
    KF_NOTE_BLOCK,    /* body: these rows of seat's block of matrix `group`
                           after the turn that made the iterate `at`;
                           without a seat: I have none                   */
    KF_NOTE_KEPT,     /* I have the iterate `at`, and my blocks, on disk  */
    KF_NOTE_SKETCH    /* body: seat's block of matrix `group` after the turn
                         that made `at`, times a vector                  */
} kf_note_type;

typedef struct kf_note {
    kf_note_type type;
    kofn_incarnation from;
    kofn_epoch epoch; /* the sender's; PIECE: in which it was made */
    kofn_iterate_id at;
    bool final;    /* BEAT, VECTOR, PRINT: `at` is the last one  */
    bool idle;     /* BEAT: nothing is left to be made of `at`   */
    bool stranded; /* BEAT: it has failed, or has no blocks and got none */
    uint64_t coded, decoded; /* sets of groups: bit j is group j           */
    uint32_t group, seat;
    const kf_member *member; /* EPOCH: ascending seats                   */
    size_t members;
    /* DECIDE: for each group of `coded`, ascending, how many seats and then
     * the seats, ascending. */
    const uint32_t *list;
    size_t listed;
    kf_node_digest
        digest; /* BEAT, WANT: of `at`, where errors are looked for */
} kf_note;

/* ---- the coordinator of one node ----------------------------------------- */

/* What is not explained here is as in kofn_peer_options, with the same
 * defaults; kf_node_new fills them in. */
typedef struct kf_node_options {
    kofn_incarnation incarnation;
    uint64_t job; /* line of the start; nodes of other jobs never mix  */
    size_t nodes; /* that will found the mesh                          */
    size_t quorum, confirm;
    size_t groups; /* 1..64, the same on all nodes; a stage of fewer strips
                      has a group for each                             */
    kofn_decoding decoding; /* not AUTO, the same on all nodes             */
    uint64_t turns;         /* as in kf_course ... */
    size_t after;
    kofn_iterate_id from; /* the iterate that it has; of t = 0: the start  */
    bool changes;       /* nobody has the matrices: no iterate is made alone */
    uint32_t wish;      /* seat, or KOFN_NO_SEAT                             */
    double tolerance;   /* of decoding; 0: 1e-9                              */
    kofn_errors errors; /* pieces that are wrong are looked for: replicated
                           decoding, of at least one piece more than decode */
    kofn_time beat, silence, hedge, patience, linger, give_up;
} kf_node_options;

typedef enum kf_node_task_type {
    KF_NODE_TASK_NONE,
    KF_NODE_TASK_ENCODE,  /* make the blocks of `seat`, one of each matrix; it
                           may  have to wait for those of others  */
    KF_NODE_TASK_COMPUTE, /* own piece of `group` */
    KF_NODE_TASK_CHECK,  /* do the pieces of the decoder's seats agree?       */
    KF_NODE_TASK_DECODE, /* `group` from the pieces of the decoder's seats    */
    KF_NODE_TASK_UPDATE, /* all groups are there: make the next iterate       */
    KF_NODE_TASK_SOLO    /* make the next iterate from the matrix itself      */
} kf_node_task_type;

typedef struct kf_node_task {
    kf_node_task_type type;
    kofn_iterate_id at;
    kofn_epoch epoch;
    uint32_t seat, group;
    const kofn_decoder *decoder; /* until the next step */
    kf_verdicts verdicts; /* CHECK: as of KOFN_DO_CHECK in <kofn/core.h> */
    bool last;            /* ... there are no more pieces */
} kf_node_task;

/* Silences in which a body has to come, or it is not waited for. */
#define KF_SLOWEST 2

typedef enum kf_node_event_type {
    KF_NODE_TICK = 1, /* time has passed                               */
    KF_NODE_WENT,     /* incarnation cannot be reached any more               */
    KF_NODE_NOTE,     /* note                                          */
    KF_NODE_DONE,     /* task; final: the iterate made is the last      */
    KF_NODE_LEAVE,    /* this node is going to leave                   */
    KF_NODE_LOST,     /* the blocks that are here are of no use any more */
    KF_NODE_DOUBT,    /* our vector may be wrong: take that of another */
    KF_NODE_SPOILT,   /* our vector is not the one that was told: digest is of
                         what it is now                                */
    KF_NODE_LIAR,     /* as WENT, for what it sent was wrong           */
    KF_NODE_ARRIVING, /* a body of incarnation's is coming in, so fast that it
                         is whole within KF_SLOWEST                       */
    KF_NODE_RESTORED  /* note is of a VECTOR that this node has on disk */
} kf_node_event_type;

typedef struct kf_node_event {
    kf_node_event_type type;
    kofn_time now;
    kofn_incarnation incarnation;
    const kf_note *note;
    uint64_t principal; /* NOTE: who answers for the sender, and perhaps for
                           other incarnations; 0: itself                  */
    const kf_node_task *task;
    bool final;
    /* TICK: for some silences nobody has had the blocks to give that this node
     * needs. */
    bool lacks;
    kf_node_digest
        digest; /* DONE of an UPDATE or SOLO, SPOILT: of the iterate */
    /* DONE of a CHECK: KOFN_OK, KOFN_CORRUPT, or KOFN_AGAIN where more pieces
     * are needed to tell; which seats of the decoder are left out, and of how
     * many of these, the last, it is not certain that they are wrong. */
    kofn_status verdict;
    const uint32_t *bad;
    size_t bad_count, doubted;
} kf_node_event;

typedef enum kf_node_action_type {
    KF_NODE_SEND = 1, /* note; PIECE, VECTOR: with its body */
    KF_NODE_TAKE,     /* keep the body of the note that came */
    KF_NODE_ERRED     /* `to`, of `principal`, had another iterate than most */
} kf_node_action_type;

typedef struct kf_node_action {
    kf_node_action_type type;
    kofn_incarnation to;
    uint64_t principal;
    kf_note note; /* pointers in it: until the next step */
} kf_node_action;

typedef struct kf_node kf_node;

/* Are they as kofn_stage says?  KOFN_UNSUITED: a plan is of something that a
 * mesh does not compute. */
kofn_status kf_node_stages_check(const kofn_stage *stage, size_t stages);

/* Of so many stages, whose plans are borrowed. */
kofn_status kf_node_new(kf_node **out, const kofn_stage *stage, size_t stages,
                        const kf_node_options *opt, kofn_time now);
/* KOFN_TOOFEW: given up; KOFN_UNSTABLE: all pieces there are do not decode
 * accurately.  Anything that comes late, twice, out of order or malformed is
 * dropped and counted. */
kofn_status kf_node_step(kf_node *n, const kf_node_event *ev);
/* The next action of the last step; drain them before the next step. */
bool kf_node_next(kf_node *n, kf_node_action *out);
/* The task to work on; answer with KF_NODE_DONE.  DECODE, UPDATE, CHECK and
 * ALONE are done before the next event; the others may be interrupted by
 * events, and given up where kf_node_wanted says that nobody needs them any
 * more. */
void kf_node_work(const kf_node *n, kf_node_task *out);
bool kf_node_wanted(const kf_node *n, const kf_node_task *task);
kofn_time kf_node_alarm(const kf_node *n);
/* The cache that the decoder of a CHECK is from. */
kf_cache *kf_node_cache(const kf_node *n);
/* Where it stands, for the others, also for one whose incarnation is not known
 * yet. */
kf_note kf_node_beat(const kf_node *n);
void kf_node_free(kf_node *n);
/* What it was told, and the defaults of what it was not. */
const kf_node_options *kf_node_told(const kf_node *n);
/* Of a member; KOFN_NO_SEAT: it is none. */
uint32_t kf_node_seat_of(const kf_node *n, kofn_incarnation incarnation);
/* Times that our iterate got another mark, and all pieces of it were void. */
uint64_t kf_node_agains(const kf_node *n);
/* Can it not be told whose pieces are wrong, as long as the iterate has this
 * mark? */
bool kf_node_is_stuck(const kf_node *n);
/* Have most others our iterate, or is there nobody to compare it with? */
bool kf_node_is_agreed(const kf_node *n);
/* The iterate from which on this node may have had others than most, when it
 * last found that. */
uint64_t kf_node_doubted(const kf_node *n);

void kf_node_look(const kf_node *n, kofn_node_view *v);
/* `over` and `failed` of that, which every pass asks for. */
bool kf_node_is_over(const kf_node *n);
kofn_status kf_node_failed(const kf_node *n);

/* Others that must confirm an iterate now: `confirm`, or fewer where matrices
 * change and some are known to lie or are not there. */
size_t kf_node_confirmed_by(const kf_node *n);
/* True if that node is heard, and has iterate t or a later one. */
bool kf_node_is_ahead(const kf_node *n, kofn_incarnation who, uint64_t t);
/* Are only those nodes witnesses of the last iterate that made it by
 * themselves?  They are where wrong results are accidents: a node that takes a
 * vector of others adds nothing to what they know.  A liar would say that it
 * made its own. */
bool kf_node_hears_makers(const kf_node *n);
/* Others that must confirm an iterate, of so many nodes, unless told. */
size_t kf_node_confirm(size_t nodes);
/* Returns how many groups `nodes` nodes cut the strips of a stage into. */
size_t kf_node_groups(const kofn_stage *stage, size_t nodes,
                      kofn_errors errors);

#endif
