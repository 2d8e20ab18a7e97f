/* figure_8.c -- Figure 8 of "A unified coded deep neural network training
 * strategy based on generalized PolyDot codes" (Dutta, Bai, Jeong, Low,
 * Grover, 2018): the number of nodes that may be wrong, against the number of
 * nodes and for each way of redundancy. kofn-papers dnn shows GPD, copies and
 * two MDS codes; kofn-papers tolerance takes any grid; math/training.md 7. */
#include "dnn/dnn.h"

#include <stdlib.h>

/* Begins a curve: nodes that may lie or, for odd i, fail. */
static void begin_curve(plot *p, size_t i, const char *name)
{
    plot_curve(p, i % 2 ? PLOT_DASHED : PLOT_LINE, i / 2, "%s, %s", name,
               i % 2 ? "fail" : "lie");
}

static void begin_picture(plot *p, size_t m, size_t n)
{
    plot_titles(
        p, "nodes", "nodes that may be wrong, forward product",
        "Generalized PolyDot codes, Fig. 8: what a grid of %zu x %zu stands", m,
        n);
}

/* ---- the forward product of 3 x 3; the paper omits its m and n ------------
 */

#define SIDE 3
#define CURVES 3
#define POINTS 10

static const struct curve {
    const char *name;
    dnn_redundancy kind;
} curves[CURVES] = {{"gpd", DNN_GPD_UVN},
                    {"replication", DNN_REPLICATION},
                    {"two MDS", DNN_TWO_MDS}};

kofn_status dnn_figure_8(json_t *o)
{
    json_t *fig_8 = json_object();

    json_object_set_new(o, "fig_8", fig_8);
    for (const struct curve *c = curves; c < curves + CURVES; c++) {
        json_t *points = json_array();

        json_object_set_new(fig_8, c->name, points);
        for (size_t P = 10; P <= 10 * POINTS; P += 10) {
            dnn_tolerance t;
            kofn_status st = dnn_tolerance_of(
                &(dnn_nodes){c->kind, P, SIDE, SIDE, {1, 1}}, &t);

            if (st && st != KOFN_TOOFEW)
                return st;
            json_array_append_new(
                points, papers_sizes((size_t[]){P, st ? 0 : t.adversarial[0],
                                                st ? 0 : t.probabilistic[0]},
                                     3));
        }
    }
    return KOFN_OK;
}

void dnn_figure_8_tell(json_t *o)
{
    json_t *points;
    const char *name;

    printf("\nnodes that may lie, or fail, of a grid of %dx%d (Fig. 8)\n"
           "nodes       ",
           SIDE, SIDE);
    papers_each(papers_at(o, "fig_8.gpd"), " {0:5}");
    json_object_foreach(papers_at(o, "fig_8"), name, points)
    {
        printf("\n%-12s", name);
        papers_each(points, " {1:2} {2:2}");
    }
    putchar('\n');
}

void dnn_figure_8_draw(json_t *o, plot *p)
{
    begin_picture(p, SIDE, SIDE);
    for (size_t i = 0; i < 2 * CURVES; i++) {
        const char *name = curves[i / 2].name;

        begin_curve(p, i, name);
        papers_curve(p, json_object_get(papers_at(o, "fig_8"), name), "0",
                     i % 2 ? "2" : "1");
    }
}

/* ---- kofn-papers tolerance ----------------------------------------------- */

const char *const dnn_ways_published[DNN_WAYS_PUBLISHED] = {
    "gpd_uvn", "gpd_vum", "replication", "two_mds"};

/* Reads "3x2" or "1,4". */
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

/* Returns the limits of P nodes; null if they are too few. */
static json_t *nodes_json(size_t P, const size_t grid[2], const size_t cut[2])
{
    json_t *o = papers_pack("workers:z grid:p batch_cut:p", P, grid, cut);

    for (size_t i = 0; i < DNN_WAYS_PUBLISHED; i++) {
        const dnn_nodes c = {
            (dnn_redundancy)i, P, grid[0], grid[1], {cut[0], cut[1]}};
        dnn_tolerance t;

        json_object_set_new(o, dnn_ways_published[i],
                            dnn_tolerance_of(&c, &t) ? json_null()
                                                     : way_json(&t));
    }
    return o;
}

static void tell(json_t *list)
{
    json_t *o, *way;

    printf("tolerated nodes: arbitrary answers (forward, back), or "
           "independent failures (forward, back)\nnodes");
    for (size_t i = 0; i < DNN_WAYS_PUBLISHED; i++)
        printf("  %15s", dnn_ways_published[i]);
    putchar('\n');
    for (size_t k = 0; (o = json_array_get(list, k)); k++) {
        papers_print(o, "{workers:5}");
        for (size_t i = 0; i < DNN_WAYS_PUBLISHED; i++) {
            way = papers_at(o, dnn_ways_published[i]);
            papers_print(way, json_is_null(way)
                                  ? "                -"
                                  : "  {adversarial.0:3} {adversarial.1:3} "
                                    "{probabilistic.0:3} {probabilistic.1:3}");
        }
        putchar('\n');
    }
}

static plot *draw(json_t *list, const size_t grid[2])
{
    static const char *const what[] = {"adversarial", "probabilistic"};
    plot *p = plot_new();

    if (!p)
        return NULL;
    begin_picture(p, grid[0], grid[1]);
    for (size_t i = 0; i < 2 * DNN_WAYS_PUBLISHED; i++) {
        begin_curve(p, i, dnn_ways_published[i / 2]);
        papers_curve(p, list, "workers", "%s.%s.0", dnn_ways_published[i / 2],
                     what[i % 2]);
    }
    return p;
}

int dnn_grid(const papers_args *a, size_t grid[2], size_t cut[2])
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
                   ? dnn_grid(a, grid, cut)
                   : papers_say(PAPERS_USAGE,
                                "--grid is missing: give the rows and columns "
                                "of blocks of the weights, as 2x2");

    if (code)
        return code;
    from = a->workers ? a->workers : grid[0] * grid[1];
    to = a->workers || from > 100 ? from : 100;
    if (from < grid[0] * grid[1])
        return papers_say(
            PAPERS_USAGE,
            "--workers %zu: a grid of %zu x %zu needs %zu, and more to detect "
            "errors",
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
