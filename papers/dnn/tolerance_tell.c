/* tolerance_tell.c -- how many of the nodes that train a
 * network may be wrong, by the way in which they are redundant, and a picture of it. */
#include "dnn/tolerance.h"
#include "show.h"

#include <stdlib.h>

const char *const tolerance_ways[TOLERANCE_WAYS] = {"gpd_uvn", "gpd_vum",
                                                    "replication", "two_mds"};

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
    json_t *o =
        t->K[0] ? papers_pack("Kf:z Kb:z", t->K[0], t->K[1]) : json_object();

    json_object_update_new(o, papers_pack("adversarial:p probabilistic:p",
                                          t->adversarial, t->probabilistic));
    return o;
}

/* What P nodes stand; null where they are too few. */
static json_t *nodes_json(size_t P, const size_t grid[2], const size_t cut[2])
{
    json_t *o = papers_pack("workers:z grid:p batch_cut:p", P, grid, cut);

    for (size_t i = 0; i < TOLERANCE_WAYS; i++) {
        const dnn_nodes c = {
            (dnn_redundancy)i, P, grid[0], grid[1], {cut[0], cut[1]}};
        dnn_tolerance t;

        json_object_set_new(o, tolerance_ways[i],
                            dnn_tolerance_of(&c, &t) ? json_null()
                                                     : way_json(&t));
    }
    return o;
}

static void tell(json_t *list)
{
    json_t *o, *way;
    size_t k;

    printf("so many may lie (forward, back), or fail without a plan (forward, "
           "back)\nnodes");
    for (size_t i = 0; i < TOLERANCE_WAYS; i++)
        printf("  %15s", tolerance_ways[i]);
    putchar('\n');
    for (k = 0; (o = json_array_get(list, k)); k++) {
        papers_print(o, "{workers:5}");
        for (size_t i = 0; i < TOLERANCE_WAYS; i++) {
            way = papers_at(o, tolerance_ways[i]);
            papers_print(way, json_is_null(way)
                                  ? "                -"
                                  : "  {adversarial.0:3} {adversarial.1:3} "
                                    "{probabilistic.0:3} {probabilistic.1:3}");
        }
        putchar('\n');
    }
}

/* Fig. 8: lies and failures in the forward product. */
static plot *draw(json_t *list, const size_t grid[2])
{
    static const char *const what[] = {"adversarial", "probabilistic"};
    plot *p = plot_new();

    if (!p)
        return NULL;
    plot_titles(
        p, "nodes", "nodes that may be wrong, forward product",
        "Generalized PolyDot codes, Fig. 8: what a grid of %zu x %zu stands",
        grid[0], grid[1]);
    for (size_t i = 0; i < 2 * TOLERANCE_WAYS; i++) {
        plot_curve(p, i % 2 ? PLOT_DASHED : PLOT_LINE, i / 2, "%s, %s",
                   tolerance_ways[i / 2], i % 2 ? "fail" : "lie");
        papers_curve(p, list, "workers", "%s.%s.0", tolerance_ways[i / 2],
                     what[i % 2]);
    }
    return p;
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
    plot *picture;
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
    list = json_array();
    for (size_t P = from; P <= to; P++)
        json_array_append_new(list, nodes_json(P, grid, cut));
    if (!a->json)
        tell(list);
    picture = a->svg ? draw(list, grid) : NULL;
    papers_ending(a, a->workers
                         ? json_incref(json_array_get(list, 0))
                         : papers_pack("per_workers:o", json_incref(list)));
    json_decref(list);
    return a->svg ? papers_draw(a, picture) : 0;
}
