/* tolerance_tell.c -- how many of the nodes that train a
 * network may be wrong, by the way in which they are redundant. */
#include "dnn/tolerance.h"
#include "show.h"

#include <stdlib.h>

static const char *const names[] = {"gpd_uvn", "gpd_vum", "replication",
                                    "two_mds"};

#define WAYS (sizeof names / sizeof *names)

/* "3x2" or "1,4". */
static int read_pair(const char *option, const char *text, char between,
                     size_t pair[2])
{
    char *end = NULL;

    pair[0] = text[0] >= '1' && text[0] <= '9' ? strtoul(text, &end, 10) : 0;
    if (pair[0] && *end == between && end[1] >= '1' && end[1] <= '9') {
        pair[1] = strtoul(end + 1, &end, 10);
        if (!*end && pair[0] <= 1000 && pair[1] <= 1000)
            return 0;
    }
    return papers_say(PAPERS_USAGE,
                      "--%s %s: give two numbers up to 1000, as 2%c2", option,
                      text, between);
}

static json_t *way_json(const dnn_tolerance *t)
{
    json_t *o = json_object();

    if (t->K[0]) {
        json_object_set_new(o, "Kf", json_integer((json_int_t)t->K[0]));
        json_object_set_new(o, "Kb", json_integer((json_int_t)t->K[1]));
    }
    json_object_set_new(o, "adversarial", papers_pair(t->adversarial));
    json_object_set_new(o, "probabilistic", papers_pair(t->probabilistic));
    return o;
}

/* What P nodes stand; null where they are too few. */
static json_t *nodes_json(size_t P, const size_t grid[2], const size_t cut[2])
{
    json_t *o = json_pack("{s:I, s:o, s:o}", "workers", (json_int_t)P, "grid",
                          papers_pair(grid), "batch_cut", papers_pair(cut));

    for (size_t i = 0; i < WAYS; i++) {
        dnn_tolerance t;
        kofn_status st = dnn_tolerance_of(
            &(dnn_nodes){
                (dnn_redundancy)i, P, grid[0], grid[1], {cut[0], cut[1]}},
            &t);

        json_object_set_new(o, names[i], st ? json_null() : way_json(&t));
    }
    return o;
}

static void nodes_text(size_t P, const size_t grid[2], const size_t cut[2])
{
    printf("%5zu", P);
    for (size_t i = 0; i < WAYS; i++) {
        dnn_tolerance t;

        if (dnn_tolerance_of(
                &(dnn_nodes){
                    (dnn_redundancy)i, P, grid[0], grid[1], {cut[0], cut[1]}},
                &t))
            printf("  %15s", "-");
        else
            printf("  %3zu %3zu %3zu %3zu", t.adversarial[0], t.adversarial[1],
                   t.probabilistic[0], t.probabilistic[1]);
    }
    putchar('\n');
}

/* From the grid itself up to a hundred, where their number is not given. */
static void over_nodes(size_t from, size_t to, const size_t grid[2],
                       const size_t cut[2])
{
    printf("so many may lie (forward, back), or fail without a plan (forward, "
           "back)\n%5s",
           "nodes");
    for (size_t i = 0; i < WAYS; i++)
        printf("  %15s", names[i]);
    putchar('\n');
    for (size_t P = from; P <= to; P++)
        nodes_text(P, grid, cut);
}

int tolerance_grid(const papers_args *a, size_t grid[2], size_t cut[2])
{
    int code = a->grid ? read_pair("grid", a->grid, 'x', grid) : 0;

    return !code && a->batch_cut
               ? read_pair("batch-cut", a->batch_cut, ',', cut)
               : code;
}

int papers_tolerance(const papers_args *a)
{
    size_t grid[2], cut[2] = {1, 1}, from, to;
    json_t *list;
    int code = a->grid
                   ? tolerance_grid(a, grid, cut)
                   : papers_say(PAPERS_USAGE,
                                "--grid is missing: into how many rows and "
                                "columns of blocks weights are cut, as 2x2");

    if (code)
        return code;
    from = a->workers ? a->workers : grid[0] * grid[1];
    to = a->workers || from > 100 ? from : 100;
    if (from < grid[0] * grid[1])
        return papers_say(
            PAPERS_USAGE,
            "--workers %zu: a grid of %zu x %zu needs %zu, to tell "
            "that something is wrong more",
            from, grid[0], grid[1], grid[0] * grid[1]);
    if (!a->json) {
        over_nodes(from, to, grid, cut);
        return 0;
    }
    if (a->workers) {
        papers_print_json(nodes_json(from, grid, cut));
        return 0;
    }
    list = json_array();
    for (size_t P = from; P <= to; P++)
        json_array_append_new(list, nodes_json(P, grid, cut));
    papers_print_json(json_pack("{s:o}", "per_workers", list));
    return 0;
}
