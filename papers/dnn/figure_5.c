/* figure_5.c -- Figure 5 of "A unified coded deep neural network training
 * strategy based on generalized PolyDot codes" (Dutta, Bai, Jeong, Low,
 * Grover, 2018): answers needed against numbers sent; math/training.md 9. */
#include "dnn/dnn.h"

/* Limit of the numbers in a decoding matrix; larger plans are not made. */
#define MOST_DECODING 1e7

/* Adds one point of the trade-off. Square matrices are cut so that a worker
 * keeps an (m n)-th of both operands, with p = m, on the minimum number of
 * workers. The point is that number and the numbers sent. */
static kofn_status trade(const dnn_layer *s, size_t m, size_t n, json_t *list)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATMUL, s->N, s->N, s->N, KOFN_F64, false);
    double side = (double)s->N / (double)m, whole = (double)ceil_div(s->N, m);
    size_t K = m * n * m + n - 1;
    kofn_plan_info info = KOFN_PLAN_INFO_INIT;
    char spec[80];

    snprintf(spec, sizeof spec, "gpd:m=%zu,n=%zu,p=%zu", m, n, m);
    if ((double)K * (double)(m * m) <= MOST_DECODING)
        PAPERS_TRY(dnn_describe(&pb, spec, K, &info));
    papers_add(list, "m:z n:z point:{kofn:o published:o}", m, n,
               info.threshold ? papers_reals((double[]){(double)info.threshold,
                                                        (double)info.threshold *
                                                            whole * whole},
                                             2)
                              : json_null(),
               papers_reals((double[]){(double)K, (double)K * side * side}, 2));
    return KOFN_OK;
}

kofn_status dnn_figure_5(const dnn_layer *s, json_t *list)
{
    size_t all = s->m * s->n;

    for (size_t m = 1; m <= all; m++)
        if (all % m == 0)
            PAPERS_TRY(trade(s, m, all / m, list));
    return KOFN_OK;
}

void dnn_figure_5_tell(const dnn_layer *s, json_t *list)
{
    json_t *o;

    printf("Fig. 5: answers that decode a product of %zu x %zu, both operands "
           "kept in %zu parts, and numbers sent; published in brackets\n",
           s->N, s->N, s->m * s->n);
    for (size_t i = 0; (o = json_array_get(list, i)); i++) {
        papers_print(o, "  m={m},n={n},p={m}");
        papers_print(papers_at(o, "point"),
                     json_is_null(papers_at(o, "point.kofn"))
                         ? "  ({published.0:.0f})  ({published.1:.6g})\n"
                         : "  {kofn.0:.0f} ({published.0:.0f})  {kofn.1:.6g} "
                           "({published.1:.6g})\n");
    }
}
