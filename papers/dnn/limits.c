/* limits.c -- kofn-papers dnn --scenario 1: the number of nodes that may be
 * wrong, in Tables I and III, Corollary 1 and Fig. 8 of "A unified coded deep
 * neural network training strategy based on generalized PolyDot codes" (Dutta,
 * Bai, Jeong, Low, Grover, 2018); math/training.md 7. */
#include "dnn/dnn.h"

/* ---- Corollary 1 ----------------------------------------------------------
 */

/* Tolerance of GPD relative to replication and to two MDS codes, per P and per
 * root of P. */
static const double limit[2] = {0.25, 1}, band[2] = {0.01, 0.05};

/* Grows P with m = n = sqrt(P/4): forward product, any kind of error, without
 * rounding down. */
static kofn_status grow(json_t *o)
{
    json_t *list = json_array();
    double replication = 0, two_mds = 0;

    json_object_set_new(o, "corollary_1", list);
    for (size_t P = 64; P <= 16384; P *= 4) {
        size_t m = (size_t)(sqrt((double)P / 4) + 0.5);
        double all = (double)P, side = (double)m, mn = side * side;
        dnn_tolerance t;
        double coded;

        PAPERS_TRY(
            dnn_tolerance_of(&(dnn_nodes){DNN_GPD_UVN, P, m, m, {1, 1}}, &t));
        coded = (all - (double)t.K[0]) / 2;
        replication = coded / ((all / mn - 1) / 2) / all;
        two_mds = coded / (((all + mn) / 2 - mn) / (2 * side)) / sqrt(all);
        papers_add(list, "nodes:z by_replication:f by_two_mds:f", P,
                   replication, two_mds);
    }
    json_object_update_new(
        o, papers_pack("corollary_1_ok:b",
                       fabs(replication - limit[0]) <= band[0] &&
                           fabs(two_mds - limit[1]) <= band[1]));
    return KOFN_OK;
}

static void tell_growth(json_t *o)
{
    printf("\nCorollary 1: those of GPD by those of others, m = n = "
           "sqrt(P/4)\n       P  replication / P     two MDS / sqrt P\n");
    papers_each(papers_at(o, "corollary_1"),
                "{nodes:8} {by_replication:16.4f} {by_two_mds:20.4f}\n");
    printf("published: %g +- %g and %g +- %g ", limit[0], band[0], limit[1],
           band[1]);
    papers_print(o, "{corollary_1_ok}\n");
}

/* ---- all of them ----------------------------------------------------------
 */

/* Puts all three into one object. */
static kofn_status run(const papers_args *a, size_t k, json_t *list)
{
    json_t *o = papers_pack("scenario:z", k);
    kofn_status st = dnn_tables_try(a, o);

    if (!st)
        st = grow(o);
    if (!st)
        st = dnn_figure_8(o);
    if (!st)
        json_array_append(list, o);
    json_decref(o);
    return st;
}

static void tell(json_t *o)
{
    dnn_tables_tell(o);
    tell_growth(o);
    dnn_figure_8_tell(o);
}

const papers_scenario dnn_limits = {run, tell, dnn_figure_8_draw};
