/* codes.c -- kofn-papers codes: tolerated faults, costs and answers needed of
 * training on coded weights, for kofn's codes and as published in Tables I to
 * IV and Fig. 5 of "A unified coded deep neural network training strategy
 * based on generalized PolyDot codes" (Dutta, Bai, Jeong, Low, Grover, 2018);
 * math/training.md 7, 9. */
#include "dnn/dnn.h"

json_t *dnn_beside(json_t *ours, json_t *published)
{
    return papers_pack("kofn:o published:o", ours, published);
}

kofn_status dnn_describe(const kofn_problem *pb, const char *spec,
                         size_t workers, kofn_plan_info *info)
{
    kofn_plan *plan;
    kofn_status st = kofn_plan_new(&plan, pb, spec, workers, 1);

    if (!st)
        st = kofn_plan_describe(plan, false, info);
    kofn_plan_free(plan);
    return st;
}

static const char *const names[] = {"I", "II", "III", "IV"};

/* Tables I and II have batches in one part; Table II has one point. */
static dnn_layer layer_of(const dnn_layer *s, size_t table)
{
    dnn_layer one = *s;

    if (table < 2)
        one.cut[0] = one.cut[1] = one.B = 1;
    return one;
}

static kofn_status compute(const dnn_layer *s, json_t *tables, json_t *list)
{
    for (size_t i = 0; i < 4; i++) {
        json_t *table = json_object();
        dnn_layer one = layer_of(s, i);

        json_object_set_new(tables, names[i], table);
        if (i % 2)
            dnn_costs(&one, table);
        else
            PAPERS_TRY(dnn_tolerances(&one, table));
    }
    return dnn_figure_5(s, list);
}

static void tell(const dnn_layer *s, json_t *o)
{
    for (size_t i = 0; i < 4; i++) {
        json_t *table = json_object_get(papers_at(o, "tables"), names[i]);
        dnn_layer one = layer_of(s, i);

        if (i % 2)
            dnn_costs_tell(&one, names[i], table);
        else
            dnn_tolerances_tell(names[i], table);
    }
    dnn_messages_tell(papers_at(o, "alpha_beta"));
    dnn_figure_5_tell(s, papers_at(o, "fig_5"));
}

int papers_codes(const papers_args *a)
{
    size_t grid[2] = {2, 2}, cut[2] = {1, 1};
    int code = dnn_grid(a, grid, cut);
    json_t *tables, *list, *o;
    kofn_status st;
    dnn_layer s;

    if (code)
        return code;
    s = (dnn_layer){.P = a->workers ? a->workers : 3 * grid[0] * grid[1],
                    .m = grid[0],
                    .n = grid[1],
                    .cut = {cut[0], cut[1]},
                    .N = a->width ? a->width : 1024,
                    .B = a->batch ? a->batch : 64};
    if (cut[0] > s.B || cut[1] > s.B)
        return papers_say(
            PAPERS_USAGE,
            "--batch-cut %zu,%zu: a batch of %zu points has fewer parts",
            cut[0], cut[1], s.B);
    if (s.P < s.m * s.n)
        return papers_say(PAPERS_USAGE,
                          "--workers %zu: a grid of %zu x %zu needs %zu", s.P,
                          s.m, s.n, s.m * s.n);
    tables = json_object();
    list = json_array();
    o = papers_pack("workers:z grid:p batch_cut:p width:z batch:z alpha_beta:o "
                    "fig_5:o tables:o",
                    s.P, grid, cut, s.N, s.B, dnn_messages(&s), list, tables);
    st = compute(&s, tables, list);
    if (st) {
        json_decref(o);
        return papers_ended(st);
    }
    if (!a->json)
        tell(&s, o);
    return papers_ending(a, o);
}
