/* graph.c -- remarks on a graph that may have been read in an unintended way.
 *
 * Borrows the file. The library takes each edge of a list as one arc and each
 * number up to the largest as a node. This file counts them and prints
 * remarks. */
#include "cli.h"

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

static int by_column(const void *key, const void *at)
{
    uint32_t a = *(const uint32_t *)key, b = *(const uint32_t *)at;

    return a < b ? -1 : a > b;
}

/* True if every arc has one back. Then directions make no difference. */
static bool goes_both_ways(const kofn_sparse *g)
{
    for (size_t i = 0; i < g->rows; i++)
        for (size_t e = g->ptr[i]; e < g->ptr[i + 1]; e++) {
            size_t j = g->col[e];
            uint32_t back = (uint32_t)i;

            if (!bsearch(&back, g->col + g->ptr[j], g->ptr[j + 1] - g->ptr[j],
                         sizeof back, by_column))
                return false;
        }
    return true;
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
    out->one_way = file->undirected && !goes_both_ways(g);
    return 0;
}

void cli_tell_graph(const cli_graph *g, const kofn_file *file, const char *path)
{
    if (file->edges && g->alone)
        cli_say(0,
                "%s: %zu of %zu nodes have no edge, since every number from 0 "
                "to the largest is a node; number nodes without gaps if they "
                "are none",
                path, g->alone, g->nodes);
    if (g->one_way)
        cli_say(0,
                "%s: its comments call the graph undirected, but each edge was "
                "read as an arc from its first node to its second; list every "
                "edge in both directions if you want both",
                path);
}

json_t *cli_graph_json(const cli_graph *g)
{
    return json_pack("{s:I, s:I, s:b}", "nodes", (json_int_t)g->nodes,
                     "without_edges", (json_int_t)g->alone,
                     "undirected_taken_as_arcs", g->one_way);
}
