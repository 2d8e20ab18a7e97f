/* peer.h -- iterations without a master: every node its own decoder.
 *
 * v <- f(A g(v)) on nodes that each hold a coded block of A and the whole v;
 * where a step takes several products, of one matrix or several, from either
 * side, it is made in as many *stages*, one after the other in turn.
 * kofn_node is what one node decides, as a pure state machine like kofn_core:
 * events and notes of other nodes in, notes and work out, the time handed in;
 * no clock, no socket, never a matrix.  kofn_peer_run is a node's whole life
 * on a transport.  docs/masterless.md tells the protocol.
 *
 *   - Strips are cut into *groups*, the same for the whole run
 *     (math/elastic.md 3; not the groups of a scheme, of which a mesh has one).
 *     A *piece* is what one seat's block makes of one group.  Any k pieces of a
 *     group, all made of the same iterate, decode it.
 *   - An iterate is named by its *mark*: its number and a digest of which
 *     epochs made it.  Everything that is sent says of which iterate it
 *     speaks, and pieces of different iterates are never mixed; this, not
 *     agreement, is what makes answers right.
 *   - Matrices may change: after every *turn* of the stages each node changes its
 *     own block by what the vector tells.  Who has none makes one of those of
 *     others, and in the end the matrices are read from the blocks.
 *   - An *epoch* is a number, the node that proposed it (its *leader*) and the
 *     members with their seats.  Within it one node decides, once, which
 *     pieces decode a group: so all have the same iterate, bit for bit.  A
 *     higher epoch ends a lower one wherever it becomes known.
 *
 * Others may be hostile: what they say is checked by the host, or believed of
 * `confirm` of them, see docs/masterless.md.
 */
#ifndef KOFN_PEER_H
#define KOFN_PEER_H

#include <kofn/scheme.h>
#include <kofn/transport.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- words --------------------------------------------------------------- */

/* One incarnation of one node: a number that no other incarnation has; never
 * 0. */
typedef uint64_t kofn_incarnation;

/* Ordered by number, then by proposer; {0, 0} before the first. */
typedef struct kofn_epoch {
    uint64_t number;
    kofn_incarnation proposer;
} kofn_epoch;

typedef struct kofn_mark {
    uint64_t t, line;
} kofn_mark;

typedef struct kofn_member {
    kofn_incarnation incarnation;
    uint32_t seat;
    bool prompt; /* decodes for others; distributed decoding only */
} kofn_member;

#define KOFN_NO_SEAT UINT32_MAX
#define KOFN_MAX_GROUPS 64 /* so that a set of groups is a number */

/* ---- what is computed ---------------------------------------------------- */

/* A product with one of the matrices.  What is sent of an iterate speaks of the
 * product that leads from it to the next: from iterate t, stage t mod stages. */
typedef struct kofn_stage {
    const kofn_plan *plan; /* of the matrix: the same in all stages of it; a
                              MATVEC or MATMUL in float64, with one group, whose
                              answers decode strip by strip                  */
    uint32_t operand;      /* which matrix, from 0                           */
    bool left; /* not the plan's operation, but the left product on the same
                  blocks: kofn_plan_serve_left                               */
    bool read; /* neither: what comes out is the matrix itself, read from the
                  blocks.  Of those that change (kofn_program)               */
} kofn_stage;

/* Most programs go through their stages in turn until the last iterate.  With
 * `turns` the last `after` of them come once instead, when the others have had so
 * many turns. */
typedef struct kofn_course {
    size_t stages;
    uint64_t turns; /* 0: for ever */
    size_t after;
} kofn_course;
/* The stage that is made of iterate t, and how many turns are over at it. */
KOFN_API size_t kofn_course_stage(const kofn_course *c, uint64_t t);
KOFN_API uint64_t kofn_course_turn(const kofn_course *c, uint64_t t);

/* ---- what nodes tell each other ------------------------------------------ */

typedef enum kofn_note_type {
    KOFN_NOTE_BEAT = 1, /* I stand at `at`; coded: pieces of it I made; seat:
                           whose block I have, or would like               */
    KOFN_NOTE_EPOCH,    /* the epoch that I am in, and its members         */
    KOFN_NOTE_DECIDE,   /* of `at`, the groups in `coded` are decoded from
                           the seats in `list`                             */
    KOFN_NOTE_WANT,     /* of `at`, send me your pieces of the groups in
                           `coded`, and the results of those in `decoded`,
                           once you have them                              */
    KOFN_NOTE_ENOUGH,   /* of `at`, I do not need the groups in `coded`
                           any more                                        */
    KOFN_NOTE_PIECE,    /* body: seat's piece of a group of `at`; without a
                           seat the group's result, decoded in `epoch`     */
    KOFN_NOTE_ASK,      /* send me the iterate you have; with a key in
                           `coded`, only its fingerprint under that key    */
    KOFN_NOTE_VECTOR,   /* body: the iterate `at`                          */
    KOFN_NOTE_BYE,      /* I am leaving                                    */
    KOFN_NOTE_PRINT,    /* coded: fingerprint of the iterate `at`, float64  */
    KOFN_NOTE_READ,     /* send me your blocks, of matrices that change     */
    KOFN_NOTE_BLOCK,    /* body: seat's block of matrix `group` after the turn
                           that made the iterate `at`                      */
    KOFN_NOTE_KEPT      /* I have the iterate `at`, and my blocks, on disk  */
} kofn_note_type;

typedef struct kofn_note {
    kofn_note_type type;
    kofn_incarnation from;
    kofn_epoch epoch; /* the sender's; PIECE: in which it was made */
    kofn_mark at;
    bool final;              /* BEAT, VECTOR, PRINT: `at` is the last one  */
    bool idle;               /* BEAT: nothing is left to be made of `at`   */
    uint64_t coded, decoded; /* sets of groups: bit j is group j           */
    uint32_t group, seat;
    const kofn_member *member; /* EPOCH: ascending seats                   */
    size_t members;
    /* DECIDE: for each group of `coded`, ascending, how many seats and then
     * the seats, ascending. */
    const uint32_t *list;
    size_t listed;
} kofn_note;

/* ---- the coordinator of one node ----------------------------------------- */

typedef enum kofn_decoding {
    KOFN_DECODE_AUTO,       /* kofn_decoding_for the plan of the first stage */
    KOFN_DECODE_REPLICATED, /* every node decodes everything                 */
    KOFN_DECODE_DISTRIBUTED /* every node decodes its groups for all         */
} kofn_decoding;

typedef struct kofn_node_options {
    kofn_incarnation incarnation;
    uint64_t job;   /* line of the start; nodes of other jobs never mix  */
    size_t nodes;   /* that will found the mesh                          */
    size_t quorum;  /* nodes without which nothing is proposed or decided;
                         0: as many as decode.  With more than half of all
                         nodes two parts of a cut network do not both go on
                         for longer than a silence                         */
    size_t confirm; /* others that must say the same before this node
                         takes their word for what it cannot check: f + 1
                         where f of them may be hostile; 1 believes each;
                         0: more than half of the other nodes.  Those of
                         one principal are one of them                     */
    size_t groups;  /* 1..64, the same on all nodes; a stage of fewer strips
                         has a group for each                              */
    kofn_decoding decoding; /* not AUTO, the same on all nodes             */
    uint64_t turns;         /* as in kofn_course ... */
    size_t after;
    kofn_mark from;     /* the iterate that it has; of t = 0: the start  */
    bool changes;       /* nobody has the matrices: no iterate is made alone */
    uint32_t wish;      /* seat, or KOFN_NO_SEAT                             */
    double tolerance;   /* of decoding; 0: 1e-9                              */
    kofn_errors errors; /* pieces that are wrong are looked for: replicated
                           decoding, of at least one piece more than decode */
    kofn_time beat;     /* how often to tell where one stands; 0: 50 ms     */
    kofn_time silence;  /* who is silent for so long is gone; 0: 20 beats   */
    kofn_time hedge;    /* ask again, or another, after so long; 0: 2 beats */
    kofn_time patience; /* everybody is ready and nothing is decided: the
                          next one leads; 0: 5 beats.  Also 4 times as long
                          as iterations took so far, where that is longer  */
    kofn_time linger;   /* the longest that one who has the result serves
                          those who do not; 0: 2 s                         */
    kofn_time give_up;  /* KOFN_TOOFEW after so long below the quorum; 0:
                          never                                            */
} kofn_node_options;

typedef enum kofn_task_type {
    KOFN_TASK_NONE,
    KOFN_TASK_ENCODE,  /* make the blocks of `seat`, one of each matrix; it may
                          have to wait for those of others                  */
    KOFN_TASK_COMPUTE, /* own piece of `group`                              */
    KOFN_TASK_CHECK,   /* do the pieces of the decoder's seats agree?       */
    KOFN_TASK_DECODE,  /* `group` from the pieces of the decoder's seats    */
    KOFN_TASK_UPDATE,  /* all groups are there: make the next iterate       */
    KOFN_TASK_ALONE    /* make the next iterate from the matrix itself      */
} kofn_task_type;

struct kf_cache;
struct kf_decoder;

typedef struct kofn_task {
    kofn_task_type type;
    kofn_mark at;
    kofn_epoch epoch;
    uint32_t seat, group;
    const struct kf_decoder *decoder; /* until the next step */
    /* CHECK: as of KOFN_DO_CHECK in <kofn/core.h>. */
    size_t most, liars, promised;
    bool last; /* there are no more pieces */
} kofn_task;

typedef enum kofn_node_event_type {
    KOFN_NODE_TICK = 1, /* time has passed                               */
    KOFN_NODE_WENT,  /* incarnation cannot be reached any more               */
    KOFN_NODE_NOTE,  /* note                                          */
    KOFN_NODE_DONE,  /* task; final: the iterate made is the last      */
    KOFN_NODE_LEAVE, /* this node is going to leave                   */
    KOFN_NODE_LOST,  /* the blocks that are here are of no use any more */
    KOFN_NODE_LIAR   /* as WENT, for what it sent was wrong           */
} kofn_node_event_type;

typedef struct kofn_node_event {
    kofn_node_event_type type;
    kofn_time now;
    kofn_incarnation incarnation;
    const kofn_note *note;
    uint64_t principal; /* NOTE: who answers for the sender, and perhaps for
                           other incarnations; 0: itself                  */
    const kofn_task *task;
    bool final;
    /* DONE of a CHECK: KOFN_OK, KOFN_CORRUPT, or KOFN_AGAIN where more pieces
     * are needed to tell; which seats of the decoder are left out, and of how
     * many of these, the last, it is not certain that they are wrong. */
    kofn_status verdict;
    const uint32_t *bad;
    size_t bad_count, doubted;
} kofn_node_event;

typedef enum kofn_node_action_type {
    KOFN_NODE_SEND = 1, /* note; PIECE, VECTOR: with its body */
    KOFN_NODE_TAKE      /* keep the body of the note that came */
} kofn_node_action_type;

typedef struct kofn_node_action {
    kofn_node_action_type type;
    kofn_incarnation to;
    kofn_note note; /* pointers in it: until the next step */
} kofn_node_action;

typedef struct kofn_node kofn_node;

/* Are they as kofn_stage says?  KOFN_UNSUITED: a plan is of something that a
 * mesh does not compute. */
KOFN_API kofn_status kofn_stages_check(const kofn_stage *stage, size_t stages);

/* Of so many stages, whose plans are borrowed. */
KOFN_API kofn_status kofn_node_new(kofn_node **out, const kofn_stage *stage,
                                   size_t stages, const kofn_node_options *opt,
                                   kofn_time now);
/* KOFN_TOOFEW: given up; KOFN_UNSTABLE: all pieces there are do not decode
 * accurately.  Anything that comes late, twice, out of order or malformed is
 * dropped and counted. */
KOFN_API kofn_status kofn_node_step(kofn_node *n, const kofn_node_event *ev);
/* The next action of the last step; drain them before the next step. */
KOFN_API bool kofn_node_next(kofn_node *n, kofn_node_action *out);
/* What to work on; answer with KOFN_NODE_DONE.  DECODE, UPDATE, CHECK and ALONE
 * are done before the next event; the others may be interrupted by events, and given
 * up where kofn_node_wanted says that nobody needs them any more. */
KOFN_API void kofn_node_work(const kofn_node *n, kofn_task *out);
KOFN_API bool kofn_node_wanted(const kofn_node *n, const kofn_task *task);
KOFN_API kofn_time kofn_node_alarm(const kofn_node *n);
/* What the decoder of a CHECK is from. */
KOFN_API struct kf_cache *kofn_node_cache(const kofn_node *n);
/* A BEAT for somebody who has just come and whose incarnation is not known. */
KOFN_API void kofn_node_greet(const kofn_node *n, kofn_note *out);
KOFN_API void kofn_node_free(kofn_node *n);

typedef struct kofn_node_view {
    kofn_epoch epoch;
    size_t members, live; /* live: this node included */
    uint32_t seat;        /* KOFN_NO_SEAT: not a member */
    kofn_mark at;
    bool leader, final;
    bool over; /* everybody who can be reached has the result */
    uint64_t epochs, adopted, dropped; /* so far: entered; vectors taken from
                                          others; events that did not fit */
    uint64_t liars;     /* who are not heard any more, each counted once */
    uint64_t alone;     /* iterates that were made alone       */
    uint64_t left_out;  /* pieces that were, for they were wrong, or may be */
    kofn_status failed; /* KOFN_CORRUPT, KOFN_TOOFEW: pieces disagree, or are
                           too few to tell, and there are no more; `over` once
                           others could come to see that                    */
} kofn_node_view;
KOFN_API void kofn_node_look(const kofn_node *n, kofn_node_view *v);

/* Others that must confirm an iterate, of so many nodes, unless told. */
KOFN_API size_t kofn_node_confirm(size_t nodes);
/* Groups that `nodes` nodes cut the strips of a stage into. */
KOFN_API size_t kofn_node_groups(const kofn_stage *stage, size_t nodes);

/* Which way to decode (math/elastic.md 14): distributed decoding saves (1 -
 * 1/n) of the k N multiply-adds and moves (k-1) N / (k n) numbers more, one
 * trip later. Seconds a multiply-add, a number moved, a trip; 0: 0.5 ns, 8 ns,
 * 100 us. */
KOFN_API kofn_decoding kofn_decoding_for(const kofn_plan *plan, size_t nodes,
                                         double multiply, double move,
                                         double trip);

/* ---- a node's whole life ------------------------------------------------- */

#define KOFN_SCALARS 8

/* One of both; the other is NULL. */
typedef struct kofn_operand {
    const kofn_matrix *dense;
    const kofn_sparse *sparse;
} kofn_operand;

/* What is iterated.  All nodes have the same.  Iterate t, from 1, is made by
 * stage (t - 1) mod stages: `input` makes of the vector what is multiplied,
 * and `output` makes the next vector of the product.  Nothing but their
 * arguments may matter to what they make, for who joins or falls behind goes on
 * from another's vector. */
/* What a turn does to a matrix: it is changed by U' V. */
typedef struct kofn_turned {
    kofn_change change;
    kofn_matrix U, V;
} kofn_turned;

typedef struct kofn_program {
    const kofn_stage *stage;
    size_t stages;
    const kofn_operand *operand;
    size_t operands;
    /* Of iterate t - 1: all of `in`, which has the shape of the stage's input.
     * NULL: the vector itself is the input of every stage. */
    kofn_status (*input)(void *ud, uint64_t t, const kofn_matrix *v,
                         const double scalar[KOFN_SCALARS], kofn_matrix *in);
    /* The next iterate in v (`product` may be written on), what else goes with
     * it in `scalar`, which starts as zeros and travels with the vector, and
     * whether it is the last. */
    kofn_status (*output)(void *ud, uint64_t t, kofn_matrix *product,
                          kofn_matrix *v, double scalar[KOFN_SCALARS],
                          bool *final);
    void *ud;
    uint64_t digest; /* of what these depend on besides: options */
    uint64_t turns;  /* as in kofn_course; 0: for ever */
    size_t after;
    /* How a matrix changes with a turn, counted from 1, as kofn_update would have
     * it: U and V may point into v and are looked at until the next call.  v is
     * of any iterate that comes when the turn is over and less than `recalls`
     * after it are.  NULL: no matrix changes.  Otherwise all are dense, and nobody
     * may be hostile: `confirm` is 1. */
    kofn_status (*change)(void *ud, uint64_t turn, uint32_t operand,
                          const kofn_matrix *v, kofn_turned *to);
    size_t recalls; /* at least 2: a node that is farther behind needs a new
                       block                                             */
} kofn_program;

typedef struct kofn_peer_options {
    size_t size;   /* sizeof(kofn_peer_options), so that it may grow */
    size_t nodes;  /* that found the mesh; 0: the first plan's workers */
    uint32_t seat; /* to prepare for before anybody is met, or
                                KOFN_NO_SEAT: whichever is free            */
    size_t quorum; /* as in kofn_node_options, and so the rest   */
    size_t confirm;
    kofn_decoding decoding;
    kofn_time beat, silence, hedge, patience, linger, give_up;
    kofn_incarnation incarnation; /* 0: a random one */
    kofn_errors errors;
    /* NULL, or emulates a node that is wrong: called with every piece that is
     * made of iterate t, which it may change. */
    void (*spoil)(void *ud, uint64_t t, uint32_t group, kofn_matrix *piece);
    void *spoil_ud;
    /* NULL, or a folder that is there: of every `every`th turn in which matrices
     * change, or where they do not of every `every`th iterate, it gets a file with
     * the vector and this node's blocks that have changed, so that a mesh of
     * which all nodes are lost goes on with `resume`, from the last iterate of which
     * all had one (docs/masterless.md, "Going on").  Of its own, unless each node is
     * told its `seat`.  All nodes have the same `every`. */
    const char *keep;
    uint64_t every;
    bool resume;
    /* May be NULL: called after every iterate and now and then; not 0 has
     * this node leave, with KOFN_AGAIN. */
    int (*watch)(void *ud, const kofn_node_view *view, const double *scalar);
    void *watch_ud;
    unsigned quarantine; /* as in kofn_options; 0: 3 */
    /* NULL, or called when an iterate is over of which another node sent wrong
     * pieces: its seat, who answers for it ("" where nobody is known to), and
     * whether it is not heard any more for that. */
    void (*erred)(void *ud, uint32_t seat, const char *name, bool excluded);
    void *erred_ud;
} kofn_peer_options;

/* Goes on from v (n x 1, contiguous, float64, the same on all nodes) together
 * with all nodes that `t` can reach, until the last iterate, which is then in
 * v, and everybody who can be reached has it.  A node reads its own blocks from
 * the operands alone.  t is not closed, and should be given some time to send
 * what is under way when it is. */
KOFN_API kofn_status kofn_peer_run(kofn_transport *t,
                                   const kofn_program *program,
                                   const kofn_peer_options *opt, kofn_matrix *v,
                                   double scalar[KOFN_SCALARS],
                                   kofn_node_view *end);

/* The same for power iteration and PageRank, with what kofn_power and
 * kofn_pagerank say of their arguments; opt's watch is not used.  v holds the
 * start (power) and the result. */
KOFN_API kofn_status kofn_power_peers(kofn_transport *t, const kofn_plan *plan,
                                      const kofn_matrix *A, kofn_matrix *v,
                                      const kofn_iterate_options *opt,
                                      const kofn_peer_options *peers,
                                      kofn_iterate_result *res,
                                      kofn_node_view *end);
KOFN_API kofn_status kofn_pagerank_peers(
    kofn_transport *t, const kofn_plan *plan, const kofn_sparse *M,
    const uint8_t *dangling, kofn_matrix *v, const kofn_iterate_options *opt,
    const kofn_peer_options *peers, kofn_iterate_result *res,
    kofn_node_view *end);

/* ---- a mesh of threads of this process ----------------------------------- */

typedef struct kofn_mesh kofn_mesh;
KOFN_API kofn_status kofn_mesh_new(kofn_mesh **out);
/* One more node's end, which reaches all that are there and to come; for one
 * thread, which closes it.  On any thread. */
KOFN_API kofn_status kofn_mesh_join(kofn_mesh *m, kofn_transport **out);
/* The same on a thread of its own, which ends with `run`; the end is closed
 * then.  On any thread that is not done itself. */
KOFN_API kofn_status kofn_mesh_start(kofn_mesh *m,
                                     void (*run)(void *ud, kofn_transport *t),
                                     void *ud);
/* Until all that were started have ended. */
KOFN_API void kofn_mesh_wait(kofn_mesh *m);
/* All ends were closed, and all threads waited for. */
KOFN_API void kofn_mesh_free(kofn_mesh *m);

#ifdef __cplusplus
}
#endif
#endif
