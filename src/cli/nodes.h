/* nodes.h -- the nodes of a mesh that run in this process.
 *
 * A cli_nodes owns its nodes, threads and transports from nodes_open to
 * nodes_close. A command sets what it has to set, runs the nodes and reports.
 */
#ifndef KOFN_NODES_H
#define KOFN_NODES_H

#include "masterless.h"

/* A node of a mesh in this process, and its result. */
typedef struct cli_node {
    struct cli_nodes *all; /* NULL: the node was never started */
    uint32_t seat;
    size_t number;
    kofn_status status;
    char *reason;  /* why it failed */
    size_t failed; /* its place among the failed nodes, from 1; 0: it did not
                      fail */
    kofn_node_view end;
    bool resumes;  /* resumes from what it kept */
    bool began;    /* `from` is known */
    uint64_t from; /* step from which it resumed; UINT64_MAX: it ended before */
    /* The result: of an iteration, or of a training. */
    kofn_matrix v;
    kofn_iterate_result iterated;
    kofn_net *net;
    kofn_train_result trained;
    struct cli_wrong *wrong; /* counts of wrong pieces, by sender */
    size_t wrongs;
    uint64_t erred, draws; /* last step with an injected error; random draws */
    uint32_t faults;       /* faults injected */
    size_t live;           /* live nodes that the log has; 0: none yet */
} cli_node;

typedef struct cli_nodes {
    const cli_args *a;
    size_t count; /* nodes in the mesh at its start */
    size_t here;  /* nodes ever started in this process */
    cli_node *node;
    kofn_mesh *mesh; /* a mesh of threads */
    kofn_fault_event *events;
    size_t event_count;
    atomic_size_t due; /* joins of all earlier events have been done */
    atomic_size_t failures;
    atomic_size_t began; /* nodes that have told from where they resume */
    struct {
        bool open;
        int file;
    } lock; /* of the folder of --checkpoint */
    /* Set by the command that opens it: */
    kofn_decoding decoding;
    size_t confirm, each; /* each: iterates per step of the events */
    size_t bytes;         /* size of the largest message */
    uint64_t every;       /* iterates between two checkpoints */
    kofn_status (*live)(
        cli_node *n, kofn_transport *t,
        const kofn_peer_options *p); /* runs a node from start to end */
    /* NULL, or called on each node's thread after an iterate. */
    void (*watch)(const cli_node *n, const kofn_node_view *view,
                  const double *scalar);
    /* Adds the command's own figures to the report: into o, or to the terminal
     * if o is NULL. */
    void (*put)(const struct cli_nodes *m, const kofn_plan_info *info,
                json_t *o);
    void (*say)(const struct cli_nodes *m, const kofn_plan_info *info);
    void *ud;
    const kofn_plan *plan; /* the plan given to nodes_take_plan */
    /* Set by nodes_run: */
    double seconds;
    size_t have;          /* number of nodes that have the result */
    const cli_node *best; /* the first node that has the result */
} cli_nodes;

/* Opens the mesh and refuses options that a mesh does not support. Events may
 * name up to `rounds` rounds. Returns 0, or the exit code after a message; so
 * do the functions below. */
int nodes_open(cli_nodes *m, const cli_args *a, size_t rounds);
/* Refuses options that a mesh does not support (nodes_options.c). */
int nodes_check_options(const cli_args *a);
/* nodes_folder.c: nodes_claim_folder locks the folder of --checkpoint, and
 * refuses one in use: by another process, or, without --resume, by files of
 * this seat (KOFN_NO_SEAT: any). A new node must not find, at a later start,
 * the files of another training. */
int nodes_claim_folder(cli_nodes *m, uint32_t seat);
void nodes_leave_folder(cli_nodes *m);
/* nodes_record.c: nodes_record_options leaves the options in the folder of
 * --checkpoint. nodes_differences puts those into `to` that differ from those
 * of the run that is resumed: "", if none is known to. */
void nodes_record_options(const cli_nodes *m);
void nodes_differences(const cli_nodes *m, char *to, size_t room);
/* Records where a node begins that resumes, or, for NULL, that it ended before.
 * The last node of this process to begin says from where all resume. */
void nodes_began(cli_node *n, const kofn_node_view *view);
/* nodes_take_plan refuses a plan that needs more nodes, and chooses how to
 * decode: as asked for, or what suits the plan. nodes_decoding returns the
 * choice in words. */
int nodes_take_plan(cli_nodes *m, const kofn_plan *plan);
static inline const char *nodes_decoding(const cli_nodes *m)
{
    return m->decoding == KOFN_DECODE_REPLICATED ? "replicated" : "distributed";
}
/* Runs all nodes of this process. If no node has the result, prints the reason
 * of the first failure. */
int nodes_run(cli_nodes *m);
/* Prints the report, as --json or as text: the state of the best node, the
 * senders of wrong pieces, and why other nodes of this process failed. */
void nodes_report(const cli_nodes *m, double rel_error);
/* True if the node has the result. */
bool nodes_have(const cli_node *n);
/* Frees everything and returns the exit code. */
int nodes_close(cli_nodes *m, int code);

#endif
