/* peer.h -- iterations without a coordinator, on a mesh of equal nodes.
 *
 * For programs that run a power iteration, PageRank or a training
 * (<kofn/train.h>) and must survive the loss of any machine.  Every machine
 * calls the same function on a transport that reaches the others, and each has
 * the result in the end.  The nodes iterate v <- f(A g(v)).  Each holds a coded
 * block of A and all of v.
 *
 * Terms:
 *   - The incarnation of a node lasts from its start to its end.
 *   - A mark names an iterate: its number, and a digest of the epochs that made
 *     it.
 *   - An epoch has a number, a leader, which is the node that proposed it, and
 *     members with their seats.  An epoch with a higher number ends one with a
 *     lower number.
 *
 * docs/masterless.md describes the protocol, and its guarantees against hostile
 * nodes.
 */
#ifndef KOFN_PEER_H
#define KOFN_PEER_H

#include <kofn/scheme.h>
#include <kofn/transport.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- words --------------------------------------------------------------- */

/* Number of an incarnation of a node, unique and never 0. */
typedef uint64_t kofn_incarnation;

/* Epochs are ordered by number, then by proposer.  {0, 0} precedes the
 * first. */
typedef struct kofn_epoch {
    uint64_t number;
    kofn_incarnation proposer;
} kofn_epoch;

/* Identifies an iterate: its number, and a digest of the epochs that made
 * it. */
typedef struct kofn_iterate_id {
    uint64_t step, lineage;
} kofn_iterate_id;

#define KOFN_NO_SEAT UINT32_MAX /* of a node: no seat, or any seat */

/* ---- a node of a mesh ---------------------------------------------------- */

/* Which node decodes which rows of a product. */
typedef enum kofn_decoding {
    KOFN_DECODE_AUTO, /* kofn_decoding_for the plan of the first product  */
    KOFN_DECODE_REPLICATED, /* every node decodes the whole product           */
    KOFN_DECODE_DISTRIBUTED /* every node decodes some rows for all */
} kofn_decoding;

/* The state of a node.  Counts are since its start. */
typedef struct kofn_node_view {
    size_t size; /* sizeof(kofn_node_view) */
    kofn_epoch epoch;
    size_t members, live; /* of the epoch; live ones, this one included */
    uint32_t seat;        /* KOFN_NO_SEAT: not a member                   */
    kofn_iterate_id at;   /* the present iterate                          */
    bool leader, final;   /* it leads; the present iterate is the last    */
    bool over;            /* every reachable node has the result          */
    /* Epochs entered; vectors adopted from other nodes; events ignored as stale
     * or malformed. */
    uint64_t epochs, adopted, dropped;
    uint64_t liars;    /* faulty nodes that are excluded, each counted once */
    uint64_t alone;    /* iterates that this node computed alone            */
    uint64_t left_out; /* wrong or doubtful partial products, left out */
    /* Iterates that this node, as the leader, had repeated because it could not
     * be decided which partial products were wrong. */
    uint64_t again;
    /* Times that this node differed from the majority, or had wrong blocks
     * again, and adopted the iterate of the others. */
    uint64_t outvoted;
    uint64_t scrubs;  /* comparisons of the blocks of changing matrices      */
    uint64_t rebuilt; /* times that this node's blocks were rebuilt          */
    uint64_t back;    /* times that it returned to an iterate on disk        */
    /* Relative deviation of the blocks from the code, in the last comparison in
     * which all agreed. */
    double drift;
    /* KOFN_CORRUPT: partial products disagree.  KOFN_TOOFEW: there are too few
     * to decide. No more can come.  `over` is set once the other nodes had time
     * to find the same. */
    kofn_status failed;
} kofn_node_view;
#define KOFN_NODE_VIEW_INIT                                                    \
    {                                                                          \
        sizeof(kofn_node_view), {0, 0}, 0, 0, KOFN_NO_SEAT, {0, 0}, false,     \
            false, false, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, KOFN_OK          \
    }

/* Returns the cheaper way to decode (docs/math/elastic.md, 14).  Distributed
 * decoding saves a node (1 - 1/n) of the k N multiply-adds and most of the
 * packets, which cost 5 us each.  Its results arrive one trip later.
 *
 * `multiply`, `move` and `trip` are the seconds for a multiply-add, for moving
 * a number and for a trip.  0 means 0.5 ns, 8 ns and 100 us. */
KOFN_API kofn_decoding kofn_decoding_for(const kofn_plan *plan, size_t nodes,
                                         double multiply, double move,
                                         double trip);

/* Checks whether a mesh of this number of nodes can find errors, without later
 * joiners.  Allocates no memory.
 * KOFN_TOOFEW: their partial products only just decode, so none is left for a
 * comparison. KOFN_UNSUITED: `errors` is KOFN_ERRORS_KEYED. */
KOFN_API kofn_status kofn_nodes_find(const kofn_plan *plan, kofn_errors errors,
                                     size_t nodes);

/* ---- a node's whole life ------------------------------------------------- */

#define KOFN_SCALARS 8 /* numbers that accompany the vector of an iterate */

/* A product with one of the matrices.  Product t mod `products` leads from
 * iterate t to iterate t + 1. */
typedef struct kofn_mesh_product {
    /* A plan for KOFN_MATVEC or KOFN_MATMUL, the same in all products of a
     * matrix.  It has one group, and its answers decode strip by strip.  The
     * type float32 is possible only if matrices change and `input` is given.
     * Inputs, products and changes are then float32, too. */
    const kofn_plan *plan;
    uint32_t operand; /* number of the matrix, from 0 */
    /* True: the left product on the same blocks (kofn_plan_serve_left). */
    bool left;
    /* True: the matrix itself, read from its blocks.  Only for matrices that
     * change (kofn_program.change). */
    bool read;
} kofn_mesh_product;

/* A change of a matrix after a turn: `change` with U' V, as in kofn_update. */
typedef struct kofn_turn_change {
    kofn_change change;
    kofn_matrix U, V;
} kofn_turn_change;

/* The program that is iterated, the same on all nodes.  Product (t - 1) mod
 * `products` makes iterate t, from 1: `input` computes the factor of the
 * product from the vector, and `output` computes the next vector from the
 * product. Both must depend on nothing but their arguments, because a node that
 * joins or falls behind continues from another node's vector. */
typedef struct kofn_program {
    size_t size; /* sizeof(kofn_program) */
    const kofn_mesh_product *product;
    size_t products;
    const kofn_operand *operand; /* the matrices */
    size_t operands;
    /* Computes all of `in`, which has the shape of the product's input, from
     * iterate t - 1.  NULL: the vector itself is the input of every product. */
    kofn_status (*input)(void *ud, uint64_t t, const kofn_matrix *v,
                         const double scalar[KOFN_SCALARS], kofn_matrix *in);
    /* Computes iterate t in v, from the product, which it may overwrite.
     * `scalar` is zero at first and travels with the vector.  It sets *final if
     * t is the last iterate. */
    kofn_status (*output)(void *ud, uint64_t t, kofn_matrix *product,
                          kofn_matrix *v, double scalar[KOFN_SCALARS],
                          bool *final);
    /* Sets the range of vector entries that iterate t wrote: `rows` entries
     * from `first` on.  With `errors`, nodes compare these entries of every
     * iterate.  Without, a node that is some iterates behind is sent only these
     * entries of the missing ones.  NULL: all entries. */
    void (*wrote)(void *ud, uint64_t t, size_t *first, size_t *rows);
    void *ud; /* passed to all functions */
    /* Digest of all else on which the functions depend, such as options. */
    uint64_t digest;
    /* 0: the products are repeated in turn until the last iterate.  Otherwise
     * the last `after` products run once, after `turns` turns of the other
     * products. */
    uint64_t turns;
    size_t after;
    /* Sets in *to how a matrix changes at the end of turn `turn`; turns count
     * from 1.  The call may come late: v is then a later iterate, at the latest
     * one before the end of turn `turn` + `recalls`.  So v must still have the
     * data of the last `recalls` turns.  U and V may point into v, and must
     * stay valid until the next call.  NULL: no matrix changes.  If matrices
     * change, all are dense.  More than 1 confirming node then needs `errors`
     * (kofn_peer_options.confirm). */
    kofn_status (*change)(void *ud, uint64_t turn, uint32_t operand,
                          const kofn_matrix *v, kofn_turn_change *to);
    /* At least 2.  A node that is more turns behind needs a new block. */
    size_t recalls;
    /* Most optimizer states that a change may have (kofn_change.states), 0 to
     * KOFN_CHANGE_STATES.  Bounds for each travel with the vector. */
    size_t states;
} kofn_program;
#define KOFN_PROGRAM_INIT                                                      \
    {                                                                          \
        sizeof(kofn_program), NULL, 0, NULL, 0, NULL, NULL, NULL, NULL, 0, 0,  \
            0, NULL, 0, 0                                                      \
    }

/* Options of a node.  Unless a comment says otherwise, all nodes have the
 * same. */
typedef struct kofn_peer_options {
    size_t size; /* sizeof(kofn_peer_options) */
    /* Nodes that found the mesh.  0: the workers of the first product's plan.
     */
    size_t nodes;
    /* Seat for which this node encodes its block before it has met another
     * node.  It differs between nodes.  KOFN_NO_SEAT: any free seat. */
    uint32_t seat;
    /* Fewest live nodes that propose an epoch or decide.  0: the number that
     * decodes; more than half of `nodes` if matrices change.  With more than
     * half, two parts of a divided network do not both continue for longer than
     * `silence`. */
    size_t quorum;
    /* Number of other principals that must agree before this node adopts an
     * iterate that it cannot check.  Use f + 1 if f nodes may be hostile; 1
     * trusts each node.
     *
     * 0 means more than half of the other nodes.  If matrices change, 0 means 1
     * more than the nodes that may lie together, and 1 without `errors`.  If
     * matrices change and there are `errors`, fewer suffice when faulty nodes
     * are known or nodes are missing. */
    size_t confirm;
    kofn_decoding decoding;
    /* Heartbeat period.  0 means 50 ms. */
    kofn_time beat;
    /* Failure timeout: a node that is silent for this time is lost.  0 means 20
     * beats. */
    kofn_time silence;
    /* Retry delay, after which a request is repeated to the same node or to
     * another one.  0 means 2 beats. */
    kofn_time hedge;
    /* Longest wait for a decision after all nodes are ready; then the next node
     * becomes the leader.  At least 4 times the duration of past iterations.  0
     * means 5 beats. */
    kofn_time patience;
    /* Longest time for which a node with the result serves a node that is
     * silent or has failed.  If `give_up` is longer, a node that still works is
     * served for `give_up`; a `give_up` of 0 does not count as longer.  0 means
     * 2 s. */
    kofn_time linger;
    /* Longest time below the quorum.  kofn_peer_run then returns KOFN_TOOFEW.
     * 0: no limit. */
    kofn_time give_up;
    kofn_incarnation incarnation; /* 0: a random number */
    /* How wrong partial products and iterates are found.  KOFN_ERRORS_KEYED is
     * refused. */
    kofn_errors errors;
    /* Simulates errors of this node, or NULL.  It is called in each place in
     * which a node can err, during the iterate that follows iterate t.  It may
     * change `numbers`, which the node has just computed there. */
    void (*fault)(void *ud, kofn_fault_place where, uint64_t t,
                  kofn_matrix *numbers);
    /* Simulates a slow node, or NULL.  It returns the slowdown factor of a
     * partial product of the iterate that follows iterate t.  The node still
     * receives packets meanwhile. */
    double (*slow)(void *ud, uint64_t t);
    void *fault_ud; /* passed to fault and slow */
    /* Existing folder for checkpoints, or NULL.  After every `every` turns, or
     * iterates if no matrix changes, the node writes the vector and its own
     * changed blocks there; `every` is at least 1.  Each node has its own
     * folder, unless `seat` is set.
     *
     * If a node has no blocks then, or wrong ones, all try again after an
     * eighth of `every`.  If matrices change and it cannot be decided which
     * node is wrong, nodes return to a checkpoint by themselves; `watch` then
     * sees an earlier iterate. */
    const char *keep;
    uint64_t every;
    /* Resumes after the loss of all nodes, from the last iterate with a
     * checkpoint at every node (docs/masterless.md, "Going on"). */
    bool resume;
    /* Called after every iterate, and at times in between; may be NULL.  If it
     * does not return 0, this node leaves and kofn_peer_run returns
     * KOFN_AGAIN. */
    int (*watch)(void *ud, const kofn_node_view *view, const double *scalar);
    void *watch_ud;      /* passed to watch */
    unsigned quarantine; /* as in kofn_options; 0 means 3 */
    /* Called after an iterate for each node that sent wrong partial products or
     * differed from the majority; may be NULL.  `name` is its name from the
     * transport, or "".  `excluded` says whether the node is ignored from now
     * on. */
    void (*erred)(void *ud, uint32_t seat, const char *name, bool excluded);
    void *erred_ud; /* passed to erred */
    /* If matrices change and there are `errors`: nodes compare their blocks
     * after every `scrub` turns.  0: only before a checkpoint and when an
     * iterate is repeated. */
    uint64_t scrub;
} kofn_peer_options;
#define KOFN_PEER_OPTIONS_INIT                                                 \
    {                                                                          \
        sizeof(kofn_peer_options), 0, KOFN_NO_SEAT, 0, 0, KOFN_DECODE_AUTO, 0, \
            0, 0, 0, 0, 0, 0, KOFN_ERRORS_NONE, NULL, NULL, NULL, NULL, 0,     \
            false, NULL, NULL, 0, NULL, NULL, 0                                \
    }

/* Runs this node, together with all nodes that `t` can reach, until every
 * reachable node has the last iterate.
 *
 * v is n x 1, contiguous and float64.  It holds the start, which is the same on
 * all nodes, and then the last iterate.  `scalar` and `end` may be NULL; they
 * receive the scalars and the final state of the node.  A node encodes its own
 * blocks from the operands.  t is not closed; close it with some time to send
 * what is buffered.
 *
 * KOFN_AGAIN: `watch` ended it.
 * KOFN_TOOFEW: too few nodes for `give_up`, or too few partial products or
 * blocks to continue. KOFN_CORRUPT: partial products disagree, and it cannot be
 * decided which are wrong. KOFN_UNSTABLE: all partial products together do not
 * decode accurately enough. KOFN_UNSUITED: a mesh does not support a plan or
 * option. KOFN_INVAL, KOFN_SHAPE: the program, an option or v is invalid, or a
 * checkpoint is of another run.
 * KOFN_NONFINITE: v, a matrix or an iterate has a NaN or an infinity.
 * KOFN_IO, KOFN_FORMAT: a checkpoint cannot be written or read.
 * KOFN_TRANSPORT: the transport failed.
 *
 * Otherwise it returns the failures of `input`, `output` and `change`. */
KOFN_API kofn_status kofn_peer_run(kofn_transport *t,
                                   const kofn_program *program,
                                   const kofn_peer_options *opt, kofn_matrix *v,
                                   double scalar[KOFN_SCALARS],
                                   kofn_node_view *end);

/* The place of this node in a mesh.  All pointers are borrowed. */
typedef struct kofn_peering {
    size_t size; /* sizeof(kofn_peering) */
    kofn_transport *transport;
    const kofn_plan *plan; /* the same on all nodes */
    const kofn_peer_options *options;
    kofn_node_view *end; /* receives the final state of the node; may be NULL */
} kofn_peering;
#define KOFN_PEERING_INIT                                                      \
    {                                                                          \
        sizeof(kofn_peering), NULL, NULL, NULL, NULL                           \
    }

/* Runs a power iteration as a node of a mesh.  v holds the start, the same on
 * all nodes, and then the result.  Other arguments are as in kofn_power, except
 * that opt->watch is not used.  If `at` is NULL, it computes the iteration on
 * this thread for comparison, without workers or codes; the watch is used then.
 * KOFN_UNSUITED: opt->resume is set.
 * KOFN_INVAL, KOFN_SHAPE, KOFN_NONFINITE: v is invalid, zero or infinite, or an
 * option is out of range.
 * KOFN_AGAIN: a watch ended it.
 * Otherwise it returns the failures of kofn_peer_run. */
KOFN_API kofn_status kofn_power_peers(const kofn_peering *at, kofn_operand A,
                                      kofn_matrix *v,
                                      const kofn_iterate_options *opt,
                                      kofn_iterate_result *res);
/* Runs PageRank as a node of a mesh, from v = 1 / n.  M and `dangling` are as
 * in kofn_pagerank; the rest is as in kofn_power_peers.
 * It returns the statuses of kofn_power_peers. */
KOFN_API kofn_status kofn_pagerank_peers(
    const kofn_peering *at, const kofn_sparse *M, const uint8_t *dangling,
    kofn_matrix *v, const kofn_iterate_options *opt, kofn_iterate_result *res);

/* ---- a mesh of threads of this process ----------------------------------- */

/* A mesh of nodes that are threads of this process. */
typedef struct kofn_mesh kofn_mesh;
/* Makes a mesh of threads of this process.  The caller frees it with
 * kofn_mesh_free. */
KOFN_API kofn_status kofn_mesh_new(kofn_mesh **out);
/* Makes the end of one more node, which reaches all present and future ends.
 * One thread uses it, and closes it with its close function.  May be called on
 * any thread. */
KOFN_API kofn_status kofn_mesh_join(kofn_mesh *m, kofn_transport **out);
/* Makes an end and calls run(ud, end) on a new thread.  The end is closed when
 * `run` returns.  Call it on a thread that was started so, or on the one that
 * frees the mesh.
 * KOFN_TRANSPORT: the thread cannot be started. */
KOFN_API kofn_status kofn_mesh_start(kofn_mesh *m,
                                     void (*run)(void *ud, kofn_transport *t),
                                     void *ud);
/* Waits for all started threads, and frees the mesh.  Ends made by
 * kofn_mesh_join must be closed before. */
KOFN_API void kofn_mesh_free(kofn_mesh *m);

#ifdef __cplusplus
}
#endif
#endif
