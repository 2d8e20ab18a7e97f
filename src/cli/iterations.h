/* iterations.h -- power iterations and the ranks of graphs: how edges are read,
 * the start, the result and its check.
 *
 * A cli_iteration owns what it names as such, until its command ends. */
#ifndef KOFN_ITERATIONS_H
#define KOFN_ITERATIONS_H

#include "cli.h"

/* The size of a graph, and how its edges were read. */
typedef struct cli_graph {
    size_t nodes, alone; /* `alone`: nodes without an edge */
    bool undirected;     /* every edge counts in both directions */
} cli_graph;
/* Returns 0, or the exit code after a message. */
int cli_know_graph(cli_graph *out, const kofn_file *file);
/* Prints remarks about it. */
void cli_tell_graph(const cli_graph *g, const kofn_file *file,
                    const char *path);
json_t *cli_graph_json(const cli_graph *g);
/* Writes the ranks and the names of nodes as -o, --ids and --top say.  `file`
 * may be NULL.  With --json, the largest ranks go into `figures`.  Returns 0,
 * or the exit code after a message. */
int cli_ranks(const cli_args *a, const kofn_file *file, const kofn_matrix *v,
              json_t *figures);

/* A power iteration of A, or the ranks of a graph, with A = M. */
typedef struct cli_iteration {
    kofn_file *file;
    bool power;
    kofn_operand A;
    kofn_sparse *M; /* owned */
    uint8_t *dangling;
    cli_graph graph;
    kofn_matrix personalize, sinks, start; /* pagerank; no data: not given */
    size_t n;
    kofn_matrix v; /* the start, later the result */
} cli_iteration;
kofn_iterate_options cli_iterate_options(const cli_args *a,
                                         const cli_iteration *it);
/* Reads --personalize, --sinks and --start.  Returns 0, or the exit code after
 * a message. */
int cli_read_nodes(const cli_args *a, cli_iteration *it);
/* Allocates the vector and sets the start. Power iteration starts from random
 * numbers of this seed; PageRank's start is the library's. Returns 0, or the
 * exit code after a message. */
int cli_start(const cli_iteration *it, uint64_t seed, const char *what,
              kofn_matrix *v);
/* Prints why the iteration has not converged and what may help. */
void cli_advise_iterate(const cli_args *a, const kofn_iterate_result *res);
/* Compares v after `iterations` iterations with the same iteration without
 * workers. Returns 0, or the exit code after a message. */
int cli_verify_iteration(const cli_args *a, const cli_iteration *it,
                         const kofn_matrix *v, unsigned iterations,
                         cli_exactness *found);

#endif
