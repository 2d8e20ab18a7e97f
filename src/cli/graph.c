/* graph.c -- remarks on a graph that may have been read in an unintended way.
 *
 * Borrows the file, counts nodes and edges, and prints remarks. */
#include "iterations.h"

#include <stdlib.h>
#include <string.h>

/* Counts the nodes without arcs, from or to them. */
static size_t alone(const kofn_sparse *g, bool *has)
{
    size_t count = 0;

    for (size_t i = 0; i < g->rows; i++)
        has[i] = g->ptr[i + 1] > g->ptr[i];
    for (size_t e = 0; e < g->ptr[g->rows]; e++)
        has[g->col[e]] = true;
    for (size_t i = 0; i < g->rows; i++)
        count += !has[i];
    return count;
}

int cli_know_graph(cli_graph *out, const kofn_file *file)
{
    const kofn_sparse *g = file->matrix.sparse;
    bool *has;

    *out = (cli_graph){.nodes = g->rows};
    if (g->rows != g->cols)
        return 0; /* not a graph: the library refuses it */
    has = calloc(g->rows + 1, sizeof *has);
    if (!has)
        return cli_say(EXIT_FAILED, "out of memory for %zu nodes", g->rows);
    out->alone = alone(g, has);
    free(has);
    out->undirected = file->undirected;
    return 0;
}

/* Compares with the numbers that a comment of SNAP states. */
static void tell_counts(const cli_graph *g, const kofn_file *file,
                        const char *path)
{
    size_t nodes = file->said_nodes, edges = file->said_edges;

    if ((nodes && nodes != g->nodes) || (edges && edges != file->listed))
        cli_say(0,
                "%s: its comment states %zu nodes and %zu edges, and it has "
                "%zu and %zu",
                path, nodes, edges, g->nodes, file->listed);
}

void cli_tell_graph(const cli_graph *g, const kofn_file *file, const char *path)
{
    if (file->edges && g->alone)
        cli_say(0, "%s: %zu of %zu nodes have no edge (--keep-isolated)", path,
                g->alone, g->nodes);
    if (g->undirected)
        cli_say(0,
                "%s: undirected, so every edge counts in both directions "
                "(--directed: only from its first node)",
                path);
    tell_counts(g, file, path);
}

json_t *cli_graph_json(const cli_graph *g)
{
    return json_pack("{s:I, s:I, s:b}", "nodes", (json_int_t)g->nodes,
                     "without_edges", (json_int_t)g->alone, "undirected",
                     g->undirected);
}
