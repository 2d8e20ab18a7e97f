/* tables_i_iii.c -- Tables I and III of "A unified coded deep neural network
 * training strategy based on generalized PolyDot codes" (Dutta, Bai, Jeong,
 * Low, Grover, 2018): the number of nodes that may be wrong, with a batch in
 * one part and in several. By experiment for kofn-papers dnn, and for kofn's
 * plans for kofn-papers codes; math/training.md 7. */
#include "dnn/dnn.h"

/* ---- by experiment --------------------------------------------------------
 */

#define TRIALS 8
#define KINDS 4
#define TABLES 5

static const dnn_redundancy table_kinds[KINDS] = {DNN_GPD_UVN, DNN_GPD_VUM,
                                                  DNN_REPLICATION, DNN_TWO_MDS};
static const char *const kinds[KINDS] = {"gpd u=v^n", "gpd v=u^m",
                                         "replication", "two MDS"};

/* Table I has batches in one part. */
static const dnn_nodes sizes[TABLES] = {{0, 12, 2, 2, {1, 1}},
                                        {0, 18, 3, 2, {1, 1}},
                                        {0, 27, 3, 3, {1, 1}},
                                        {0, 16, 2, 2, {2, 1}},
                                        {0, 24, 2, 3, {1, 2}}};

static bool as_published(const dnn_tried *got, const dnn_tolerance *t)
{
    bool same = got->declared;

    for (size_t back = 0; back < 2; back++)
        same = same && got->adversarial[back] == t->adversarial[back] &&
               got->probabilistic[back] == t->probabilistic[back];
    return same;
}

static kofn_status try_size(const papers_args *a, const dnn_nodes *t,
                            json_t *codes)
{
    for (size_t k = 0; k < KINDS; k++) {
        dnn_nodes c = *t;
        dnn_tolerance p;
        dnn_tried g;

        c.kind = table_kinds[k];
        PAPERS_TRY(dnn_tolerance_of(&c, &p));
        PAPERS_TRY(dnn_tolerance_try(&c, papers_runs(a, TRIALS), a->seed, &g));
        json_object_set_new(
            codes, kinds[k],
            papers_pack("tried:{adversarial:p probabilistic:p declared:b} "
                        "published:{adversarial:p probabilistic:p answers:p} "
                        "ok:b",
                        g.adversarial, g.probabilistic, g.declared,
                        p.adversarial, p.probabilistic, p.K,
                        as_published(&g, &p)));
    }
    return KOFN_OK;
}

kofn_status dnn_tables_try(const papers_args *a, json_t *o)
{
    json_t *list = json_array();

    json_object_set_new(o, "tables", list);
    for (const dnn_nodes *t = sizes; t < sizes + TABLES; t++) {
        json_t *codes = json_object();

        papers_add(list, "table:s nodes:z grid:p batch_cut:p codes:o",
                   t->cut[0] * t->cut[1] > 1 ? "III" : "I", t->P,
                   (size_t[]){t->m, t->n}, t->cut, codes);
        PAPERS_TRY(try_size(a, t, codes));
    }
    return KOFN_OK;
}

void dnn_tables_tell(json_t *o)
{
    json_t *t, *code;
    const char *name;

    printf("Tables I and III: nodes that may be wrong, by trying; forward and "
           "back;\npublished in brackets\nnodes, grid, batch in    code       "
           "               lie             fail\n");
    for (size_t i = 0; (t = json_array_get(papers_at(o, "tables"), i)); i++) {
        char about[40];

        snprintf(about, sizeof about, "%.0f, %.0fx%.0f, %.0f and %.0f",
                 papers_real(t, "nodes"), papers_real(t, "grid.0"),
                 papers_real(t, "grid.1"), papers_real(t, "batch_cut.0"),
                 papers_real(t, "batch_cut.1"));
        json_object_foreach(papers_at(t, "codes"), name, code)
        {
            printf("%-24s %-12s ", about, name);
            *about = 0;
            papers_print(
                code,
                "{tried.adversarial.0:4} {tried.adversarial.1:2} "
                "({published.adversarial.0:2} {published.adversarial.1:2})  "
                "{tried.probabilistic.0:4} {tried.probabilistic.1:2} "
                "({published.probabilistic.0:2} {published.probabilistic.1:2}) "
                "{ok}\n");
        }
    }
}

/* ---- for kofn's plans -----------------------------------------------------
 */

/* Returns the scheme for this way of redundancy, and its number of nodes, at
 * most P. */
static size_t spec_of(size_t way, const dnn_layer *s, bool back, char *spec,
                      size_t size)
{
    size_t mn = s->m * s->n, more = (s->P - mn) / (s->m + s->n);

    switch (way) {
    case DNN_REPLICATION:
        snprintf(spec, size, "grid:m=%zu,n=%zu,copies=%zu", s->m, s->n,
                 s->P / mn);
        return s->P / mn * mn;
    case DNN_TWO_MDS:
        snprintf(spec, size, "grid:m=%zu,n=%zu,m2=%zu,n2=%zu", s->m, s->n,
                 s->m + more, s->n + more);
        return mn + more * (s->m + s->n);
    default:
        snprintf(spec, size, "gpd:m=%zu,n=%zu,p=%zu,sub=%s,angles=%zu", s->m,
                 s->n, s->cut[back], way ? "vum" : "uvn", s->P);
        return s->P;
    }
}

static kofn_status ask_plan(size_t way, const dnn_layer *s, bool back,
                            dnn_tolerance *out)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(back ? KOFN_LEFT : KOFN_MATMUL, s->N,
                                        s->N, s->B, KOFN_F64, false);
    size_t workers, spare;
    kofn_plan_info info = KOFN_PLAN_INFO_INIT;
    char spec[120];

    workers = spec_of(way, s, back, spec, sizeof spec);
    PAPERS_TRY(dnn_describe(&pb, spec, workers, &info));
    spare = workers - info.threshold;
    out->K[back] = info.threshold;
    out->adversarial[back] = spare / 2;
    out->probabilistic[back] = spare ? spare - 1 : 0;
    return KOFN_OK;
}

static json_t *sizes_beside(const size_t a[2], const size_t b[2])
{
    return dnn_beside(papers_sizes(a, 2), papers_sizes(b, 2));
}

static json_t *way_json(const dnn_tolerance *o, const dnn_tolerance *p)
{
    json_t *j = p->K[0] ? papers_pack("Kf:{kofn:z published:z} "
                                      "Kb:{kofn:z published:z}",
                                      o->K[0], p->K[0], o->K[1], p->K[1])
                        : json_object();

    json_object_update_new(
        j, papers_pack("adversarial:o probabilistic:o",
                       sizes_beside(o->adversarial, p->adversarial),
                       sizes_beside(o->probabilistic, p->probabilistic)));
    return j;
}

/* null if the paper has no value. */
kofn_status dnn_tolerances(const dnn_layer *s, json_t *table)
{
    for (size_t i = 0; i < DNN_WAYS_PUBLISHED; i++) {
        const dnn_nodes c = {
            (dnn_redundancy)i, s->P, s->m, s->n, {s->cut[0], s->cut[1]}};
        dnn_tolerance published, ours;
        kofn_status st = dnn_tolerance_of(&c, &published);

        for (int back = 0; back < 2 && !st; back++)
            st = ask_plan(i, s, back, &ours);
        if (st && st != KOFN_TOOFEW)
            return st;
        json_object_set_new(table, dnn_ways_published[i],
                            st ? json_null() : way_json(&ours, &published));
    }
    return KOFN_OK;
}

void dnn_tolerances_tell(const char *name, json_t *table)
{
    const char *way;
    json_t *o;

    printf("Table %s: answers that decode forward and back; how many may lie "
           "(forward, back), or fail without a plan; published in brackets\n",
           name);
    json_object_foreach(table, way, o)
    {
        printf("  %-12s ", way);
        if (json_is_null(o)) {
            printf("too few nodes\n");
            continue;
        }
        papers_print(o, papers_at(o, "Kf")
                            ? "{Kf.kofn:5} ({Kf.published}) {Kb.kofn:5} "
                              "({Kb.published})"
                            : "                   ");
        papers_print(o, "   {adversarial.kofn.0} {adversarial.kofn.1} "
                        "({adversarial.published.0} "
                        "{adversarial.published.1})   "
                        "{probabilistic.kofn.0} {probabilistic.kofn.1} "
                        "({probabilistic.published.0} "
                        "{probabilistic.published.1})\n");
    }
}
