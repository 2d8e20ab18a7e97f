/* peer.h -- iterations without a master: every node its own decoder.
 *
 * For whoever runs a power iteration, PageRank or a training (<kofn/train.h>) on
 * equals, so that no single machine's loss ends it: every machine calls the same
 * function on a transport that reaches the others, and each has the result in the
 * end.  v <- f(A g(v)) is computed on nodes that each hold a coded block of A and
 * the whole v.
 *
 * A node's *incarnation* lasts from its start to its end.  An iterate has a *mark*,
 * its number and a digest of who made it.  An *epoch* is a number, the node that
 * proposed it, which leads, and the members with their seats; a higher one ends a
 * lower one.  docs/masterless.md tells the protocol, and what is promised where
 * others are hostile.
 */
#ifndef KOFN_PEER_H
#define KOFN_PEER_H

#include <kofn/scheme.h>
#include <kofn/transport.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- words --------------------------------------------------------------- */

/* The number of one incarnation of one node, which no other incarnation has;
 * never 0. */
typedef uint64_t kofn_incarnation;

/* Ordered by number, then by proposer; {0, 0} before the first. */
typedef struct kofn_epoch {
    uint64_t number;
    kofn_incarnation proposer;
} kofn_epoch;

typedef struct kofn_mark {
    uint64_t t, line;
} kofn_mark;

#define KOFN_NO_SEAT UINT32_MAX /* of a node: none, or any */

/* ---- a node of a mesh ---------------------------------------------------- */

typedef enum kofn_decoding {
    KOFN_DECODE_AUTO,       /* kofn_decoding_for the plan of the first stage */
    KOFN_DECODE_REPLICATED, /* every node decodes everything                 */
    KOFN_DECODE_DISTRIBUTED /* every node decodes its groups for all         */
} kofn_decoding;

typedef struct kofn_node_view {
    size_t size; /* sizeof(kofn_node_view), so that it may grow */
    kofn_epoch epoch;
    size_t members, live; /* live: this node included */
    uint32_t seat;        /* KOFN_NO_SEAT: not a member */
    kofn_mark at;
    bool leader, final;
    bool over; /* everybody who can be reached has the result */
    uint64_t epochs, adopted, dropped; /* so far: entered; vectors taken from
                                          others; events that did not fit */
    uint64_t liars;    /* who are not heard any more, each counted once */
    uint64_t alone;    /* iterates that were made alone       */
    uint64_t left_out; /* pieces that were, for they were wrong, or may be */
    uint64_t again; /* iterates that this node, as the leader, had made again,
                           for it could not be told which pieces were wrong  */
    uint64_t outvoted; /* times that this node had another iterate than most
                           others, or blocks that were wrong again, and took
                           theirs                                           */
    uint64_t scrubs;   /* times that blocks of matrices that change were
                           compared where they lie                          */
    uint64_t healed;   /* times that this node's were made anew of others'  */
    uint64_t back;     /* times that it went back to what was kept          */
    double drift; /* the last time that blocks were compared and all agreed: by
                     so much of their size their numbers were off             */
    kofn_status failed; /* KOFN_CORRUPT, KOFN_TOOFEW: pieces disagree, or are
                           too few to tell, and there are no more; `over` once
                           others could come to see that                    */
} kofn_node_view;
#define KOFN_NODE_VIEW_INIT                                                    \
    {                                                                          \
        .size = sizeof(kofn_node_view), .seat = KOFN_NO_SEAT                   \
    }

/* The cheaper way to decode (math/elastic.md 14): distributed decoding saves (1
 * - 1/n) of the k N multiply-adds and of most packets, 5 us each, and what it moves
 * comes one trip later.  The arguments are seconds for a multiply-add, for a number
 * moved and for a trip; 0: 0.5 ns, 8 ns, 100 us. */
KOFN_API kofn_decoding kofn_decoding_for(const kofn_plan *plan, size_t nodes,
                                         double multiply, double move,
                                         double trip);

/* Can so many nodes, of whom none comes later, find errors?  KOFN_TOOFEW: their pieces
 * are no more than decode, so that none is left to compare with. */
KOFN_API kofn_status kofn_nodes_find(const kofn_plan *plan, kofn_errors errors,
                                     size_t nodes);

/* ---- a node's whole life ------------------------------------------------- */

#define KOFN_SCALARS 8 /* that go with an iterate's vector */

/* A product with one of the matrices.  What is sent of an iterate speaks of the
 * product that leads from it to the next: from iterate t, stage t mod stages. */
typedef struct kofn_stage {
    const kofn_plan *plan; /* of the matrix: the same in all stages of it; a
                              MATVEC or MATMUL, with one group, whose answers
                              decode strip by strip; in float32 only where
                              matrices change and `input` is given: inputs,
                              products and changes are float32 then, too     */
    uint32_t operand;      /* which matrix, from 0                           */
    bool left; /* not the plan's operation, but the left product on the same
                  blocks: kofn_plan_serve_left                               */
    bool read; /* neither: what comes out is the matrix itself, read from the
                  blocks.  Of those that change (kofn_program)               */
} kofn_stage;

/* The program that is iterated.  All nodes have the same.  Iterate t, from 1,
 * is made by stage (t - 1) mod stages: `input` makes of the vector what is
 * multiplied, and `output` makes the next vector of the product.  Nothing but
 * their arguments may matter to what they make, for a node that joins or falls
 * behind goes on from another's vector. */
/* The change of a matrix by one turn: it is changed by U' V. */
typedef struct kofn_turned {
    kofn_change change;
    kofn_matrix U, V;
} kofn_turned;

typedef struct kofn_program {
    size_t size; /* sizeof(kofn_program), so that it may grow */
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
    /* NULL, or which entries of the vector iterate t wrote: `rows` from `first` on,
     * and no others.  Where errors are looked for nodes compare these of all iterates
     * (NULL: all entries); else a node that is some iterates behind is sent these of
     * the iterates that it lacks. */
    void (*wrote)(void *ud, uint64_t t, size_t *first, size_t *rows);
    void *ud;
    uint64_t digest; /* of what these depend on besides: options */
    /* Most programs go through their stages in turn until the last iterate: 0.
     * Otherwise the last `after` of them come once, when the others have had so
     * many turns. */
    uint64_t turns;
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
#define KOFN_PROGRAM_INIT                                                      \
    {                                                                          \
        .size = sizeof(kofn_program)                                           \
    }

typedef struct kofn_peer_options {
    size_t size;    /* sizeof(kofn_peer_options), so that it may grow */
    size_t nodes;   /* that found the mesh; 0: the first plan's workers */
    uint32_t seat;  /* to prepare for before anybody is met, or
                                KOFN_NO_SEAT: whichever is free            */
    size_t quorum;  /* nodes without which nothing is proposed or decided;
                       0: as many as decode.  With more than half of all
                       nodes two parts of a cut network do not both go on
                       for longer than a silence                         */
    size_t confirm; /* others that must say the same before this node
                       takes their word for what it cannot check: f + 1
                       where f of them may be hostile; 1 believes each;
                       0: more than half of the other nodes, where
                       matrices change one more than may lie together
                       (`errors`; KOFN_ERRORS_NONE: 1).  Those of one
                       principal are one of them.  Where matrices change
                       and errors are looked for fewer will do when nodes
                       are known to lie, or are not there               */
    kofn_decoding decoding;
    kofn_time beat;     /* how often to tell where one stands; 0: 50 ms     */
    kofn_time silence;  /* who is silent for so long is gone; 0: 20 beats   */
    kofn_time hedge;    /* ask again, or another, after so long; 0: 2 beats */
    kofn_time patience; /* everybody is ready and nothing is decided: the
                           next one leads; 0: 5 beats.  Also 4 times as long
                           as iterations took so far, where that is longer  */
    kofn_time linger;   /* the longest that a node with the result waits for
                           one that is silent or has failed; for one that
                           goes on it is `give_up`, if longer; 0: 2 s       */
    kofn_time give_up;  /* KOFN_TOOFEW after so long below the quorum; 0:
                           never                                            */
    kofn_incarnation incarnation; /* 0: a random one */
    kofn_errors errors;
    /* NULL, or emulates a node that errs: called where it may, in what follows from
     * iterate t, with the numbers that it has made there, which it may change. */
    void (*fault)(void *ud, kofn_fault_place where, uint64_t t,
                  kofn_matrix *numbers);
    /* NULL, or how many times as long a piece of what follows from iterate t takes,
     * in which others are heard as if it was computed. */
    double (*slow)(void *ud, uint64_t t);
    void *fault_ud; /* of both */
    /* NULL, or a folder that is there: of every `every`th turn in which matrices
     * change, or where they do not of every `every`th iterate, it gets a file with
     * the vector and this node's blocks that have changed, so that a mesh of
     * which all nodes are lost goes on with `resume`, from the last iterate of which
     * all had one (docs/masterless.md, "Going on").  Of its own, unless each node is
     * told its `seat`.  All nodes have the same `every`; where one had no blocks just
     * then, or wrong ones, all try again after an eighth of it.  Where errors are
     * looked for and it cannot be told who is wrong, nodes that change matrices go
     * back to it by themselves; the watch then sees an earlier iterate. */
    const char *keep;
    uint64_t every;
    bool resume;
    /* May be NULL: called after every iterate and now and then; not 0 has
     * this node leave, with KOFN_AGAIN. */
    int (*watch)(void *ud, const kofn_node_view *view, const double *scalar);
    void *watch_ud;
    unsigned quarantine; /* as in kofn_options; 0: 3 */
    /* NULL, or called when an iterate is over of which another node sent wrong
     * pieces, or had another vector than most: its seat, who it is, as far as the
     * transport knows ("": it does not), and whether it is not heard any more. */
    void (*erred)(void *ud, uint32_t seat, const char *name, bool excluded);
    void *erred_ud;
    /* Where matrices change and errors are looked for: nodes compare their blocks
     * after every so many turns; 0: only before they are kept, and when an iterate
     * is made again.  All nodes have the same. */
    uint64_t scrub;
} kofn_peer_options;
#define KOFN_PEER_OPTIONS_INIT                                                 \
    {                                                                          \
        .size = sizeof(kofn_peer_options), .seat = KOFN_NO_SEAT                \
    }

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

/* The place of this node in a mesh.  All pointers are borrowed. */
typedef struct kofn_peering {
    size_t size; /* sizeof(kofn_peering), so that it may grow */
    kofn_transport *transport;
    const kofn_plan *plan; /* the same on all nodes              */
    const kofn_peer_options *options;
    kofn_node_view *end; /* is told how this node stood in the end; or NULL */
} kofn_peering;
#define KOFN_PEERING_INIT                                                      \
    {                                                                          \
        .size = sizeof(kofn_peering)                                           \
    }

/* The same for power iteration and PageRank, with what kofn_power and
 * kofn_pagerank say of their arguments; opt's watch is not used.  v holds the
 * start (power) and the result.  at == NULL: no mesh, but this thread alone, without
 * workers or codes, which the coded ones are compared with; the watch is used then. */
KOFN_API kofn_status kofn_power_peers(const kofn_peering *at,
                                      const kofn_matrix *A, kofn_matrix *v,
                                      const kofn_iterate_options *opt,
                                      kofn_iterate_result *res);
KOFN_API kofn_status kofn_pagerank_peers(
    const kofn_peering *at, const kofn_sparse *M, const uint8_t *dangling,
    kofn_matrix *v, const kofn_iterate_options *opt, kofn_iterate_result *res);

/* ---- a mesh of threads of this process ----------------------------------- */

typedef struct kofn_mesh kofn_mesh;
KOFN_API kofn_status kofn_mesh_new(kofn_mesh **out);
/* Makes one more node's end, which reaches all ends that are there and to come;
 * it is for one thread, which closes it.  May be called on any thread. */
KOFN_API kofn_status kofn_mesh_join(kofn_mesh *m, kofn_transport **out);
/* The same on a thread of its own, which ends with `run`; the end is closed
 * then.  On any thread that is not done itself, or that frees the mesh. */
KOFN_API kofn_status kofn_mesh_start(kofn_mesh *m,
                                     void (*run)(void *ud, kofn_transport *t),
                                     void *ud);
/* Waits until all that were started have ended; whoever joined has closed its
 * end. */
KOFN_API void kofn_mesh_free(kofn_mesh *m);

#ifdef __cplusplus
}
#endif
#endif
