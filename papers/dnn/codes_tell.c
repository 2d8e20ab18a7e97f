/* codes_tell.c -- what training on coded weights stands, costs and
 * waits for, of the codes that kofn has and as it was published (Dutta, Bai, Jeong,
 * Low, Grover 2018; docs/math/training.md 7, 9). */
#include "dnn/tolerance.h"
#include "show.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A layer as wide as the one before it, on so many nodes. */
typedef struct shape {
    size_t P, m, n, cut[2], N, B;
} shape;

/* Beside each other: of kofn, and as published. */
static json_t *beside(json_t *ours, json_t *published)
{
    return papers_pack("kofn:o published:o", ours, published);
}

static json_t *pair_of(const double x[2])
{
    return papers_reals(x, 2);
}

/* ---- Tables I and III: what is stood ------------------------------------- */

/* The scheme that is this way of redundancy, and how many of P it is on. */
static size_t spec_of(size_t way, const shape *s, bool back, char *spec,
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

static kofn_status describe(const kofn_problem *pb, const char *spec,
                            size_t workers, kofn_plan_info *info)
{
    kofn_plan *plan;
    kofn_status st = kofn_plan_new(&plan, pb, spec, workers, 1);

    if (!st)
        st = kofn_plan_describe(plan, false, info);
    kofn_plan_free(plan);
    return st;
}

static kofn_status ask_plan(size_t way, const shape *s, bool back,
                            dnn_tolerance *out)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(back ? KOFN_LEFT : KOFN_MATMUL, s->N,
                                        s->N, s->B, KOFN_F64, false);
    size_t workers, spare;
    kofn_plan_info info = KOFN_PLAN_INFO_INIT;
    char spec[120];

    workers = spec_of(way, s, back, spec, sizeof spec);
    PAPERS_TRY(describe(&pb, spec, workers, &info));
    spare = workers - info.threshold;
    out->K[back] = info.threshold;
    out->adversarial[back] = spare / 2;
    out->probabilistic[back] = spare ? spare - 1 : 0;
    return KOFN_OK;
}

static json_t *sizes_beside(const size_t a[2], const size_t b[2])
{
    return beside(papers_sizes(a, 2), papers_sizes(b, 2));
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

/* null where the paper has nothing to say. */
static kofn_status tolerances(const shape *s, json_t *table)
{
    for (size_t i = 0; i < TOLERANCE_WAYS; i++) {
        const dnn_nodes c = {
            (dnn_redundancy)i, s->P, s->m, s->n, {s->cut[0], s->cut[1]}};
        dnn_tolerance published, ours;
        kofn_status st = dnn_tolerance_of(&c, &published);

        for (int back = 0; back < 2 && !st; back++)
            st = ask_plan(i, s, back, &ours);
        if (st && st != KOFN_TOOFEW)
            return st;
        json_object_set_new(table, tolerance_ways[i],
                            st ? json_null() : way_json(&ours, &published));
    }
    return KOFN_OK;
}

static void tell_tolerances(const char *name, json_t *table)
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

/* ---- Tables II and IV: what is kept, sent and computed ------------------- */

/* kofn: counted, with sides filled up to whole blocks.  published: orders.  Of what
 * is sent the number of messages one after another, and of numbers. */
typedef struct cost {
    const char *name;
    double kofn[2], published[2];
    bool sent;
} cost;

#define COSTS 8

static double up(size_t a, size_t b)
{
    return ceil((double)a / (double)b);
}

static void fill_costs(const shape *s, cost c[COSTS])
{
    double N = (double)s->N, B = (double)s->B, P = (double)s->P;
    double m = (double)s->m, n = (double)s->n, mn = m * n;
    double B1 = (double)s->cut[0], B2 = (double)s->cut[1];
    double high = up(s->N, s->m), wide = up(s->N, s->n);
    double b1 = up(s->B, s->cut[0]), b2 = up(s->B, s->cut[1]);
    double steps = ceil(log2(P)), Kf = mn * B1 + n - 1, Kb = mn * B2 + mn - n;
    const cost all[COSTS] = {
        {"storage",
         {high * wide + 3 * N * B + P * high * b1 + P * wide * b2},
         {N * N / mn + N * B + P * N * B / (m * B1) + P * N * B / (n * B2)},
         false},
        {"gather_forward",
         {steps, (P - 1) * high * b1},
         {log2(P), P * N * B / (m * B1)},
         true},
        {"gather_back",
         {steps, (P - 1) * wide * b2},
         {log2(P), P * N * B / (n * B2)},
         true},
        {"forward", {high * wide * b1}, {N * N * B / (mn * B1)}, false},
        {"back", {high * wide * b2}, {N * N * B / (mn * B2)}, false},
        {"update", {high * wide * B}, {N * N * B / mn}, false},
        {"encode",
         {wide * n * b1 * B1 + high * m * b2 * B2 + (wide * n + high * m) * B},
         {4 * N * B},
         false},
        {"decode",
         {Kf * m * high * B1 * b1 + Kb * n * wide * B2 * b2},
         {P * P * P * N * B * (1 / (m * B1) + 1 / (n * B2))},
         false},
    };

    memcpy(c, all, sizeof all);
}

static void costs(const shape *s, json_t *table)
{
    cost c[COSTS];

    fill_costs(s, c);
    for (size_t i = 0; i < COSTS; i++)
        json_object_set_new(
            table, c[i].name,
            c[i].sent ? beside(pair_of(c[i].kofn), pair_of(c[i].published))
                      : beside(json_real(c[i].kofn[0]),
                               json_real(c[i].published[0])));
}

static void tell_costs(const shape *s, const char *name, json_t *table)
{
    json_t *o;

    printf(
        "Table %s: numbers that a node keeps, all-gathers, multiply-adds of a "
        "node; %zu wide, %zu points; published orders in brackets\n",
        name, s->N, s->B);
    json_object_foreach(table, name, o)
    {
        printf("  %-15s ", name);
        papers_print(o, json_is_array(papers_at(o, "kofn"))
                            ? "{kofn.0:4.0f} alpha + {kofn.1:.6g} beta  "
                              "({published.0:.3g} alpha + {published.1:.6g} "
                              "beta)\n"
                            : "{kofn:14.6g}  ({published:.6g})\n");
    }
}

/* ---- times of messages --------------------------------------------------- */

/* A message of X numbers takes alpha + X beta. */
static json_t *messages(const shape *s)
{
    double X = up(s->N, s->m) * up(s->B, s->cut[0]);
    double steps = ceil(log2((double)s->P)), P = (double)s->P;

    return papers_pack("numbers:f broadcast:o allgather:o", X,
                       pair_of((double[]){steps, steps * X}),
                       pair_of((double[]){steps, (P - 1) * X}));
}

/* ---- Fig. 5: answers against numbers ------------------------------------- */

/* The numbers by which a plan decodes; beyond that kofn is not asked. */
#define MOST_DECODING 1e7

/* A product of square matrices with both operands kept as m n-ths, p = m, on as
 * many workers as decode: these, and numbers sent. */
static kofn_status trade(const shape *s, size_t m, size_t n, json_t *list)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATMUL, s->N, s->N, s->N, KOFN_F64, false);
    double side = (double)s->N / (double)m, whole = up(s->N, m);
    size_t K = m * n * m + n - 1;
    kofn_plan_info info = KOFN_PLAN_INFO_INIT;
    char spec[80];

    snprintf(spec, sizeof spec, "gpd:m=%zu,n=%zu,p=%zu", m, n, m);
    if ((double)K * (double)(m * m) <= MOST_DECODING)
        PAPERS_TRY(describe(&pb, spec, K, &info));
    papers_add(list, "m:z n:z point:{kofn:o published:o}", m, n,
               info.threshold
                   ? pair_of((double[]){(double)info.threshold,
                                        (double)info.threshold * whole * whole})
                   : json_null(),
               pair_of((double[]){(double)K, (double)K * side * side}));
    return KOFN_OK;
}

static kofn_status trades(const shape *s, json_t *list)
{
    size_t all = s->m * s->n;

    for (size_t m = 1; m <= all; m++)
        if (all % m == 0)
            PAPERS_TRY(trade(s, m, all / m, list));
    return KOFN_OK;
}

static void tell_trades(const shape *s, json_t *list)
{
    json_t *o;
    size_t i;

    printf("Fig. 5: answers that decode a product of %zu x %zu, both operands "
           "kept in %zu parts, and numbers sent; published in brackets\n",
           s->N, s->N, s->m * s->n);
    for (i = 0; (o = json_array_get(list, i)); i++) {
        papers_print(o, "  m={m},n={n},p={m}");
        papers_print(papers_at(o, "point"),
                     json_is_null(papers_at(o, "point.kofn"))
                         ? "  ({published.0:.0f})  ({published.1:.6g})\n"
                         : "  {kofn.0:.0f} ({published.0:.0f})  {kofn.1:.6g} "
                           "({published.1:.6g})\n");
    }
}

/* ---- the command --------------------------------------------------------- */

static const char *const names[] = {"I", "II", "III", "IV"};

/* Tables I and II have batches in one part, II one point. */
static shape shape_of(const shape *s, size_t table)
{
    shape one = *s;

    if (table < 2)
        one.cut[0] = one.cut[1] = one.B = 1;
    return one;
}

static kofn_status compute(const shape *s, json_t *tables, json_t *list)
{
    for (size_t i = 0; i < 4; i++) {
        json_t *table = json_object();
        shape one = shape_of(s, i);

        json_object_set_new(tables, names[i], table);
        if (i % 2)
            costs(&one, table);
        else
            PAPERS_TRY(tolerances(&one, table));
    }
    return trades(s, list);
}

static void tell(const shape *s, json_t *o)
{
    for (size_t i = 0; i < 4; i++) {
        json_t *table = json_object_get(papers_at(o, "tables"), names[i]);
        shape one = shape_of(s, i);

        if (i % 2)
            tell_costs(&one, names[i], table);
        else
            tell_tolerances(names[i], table);
    }
    papers_print(
        papers_at(o, "alpha_beta"),
        "of {numbers:.6g} numbers: broadcast {broadcast.0:.0f} alpha + "
        "{broadcast.1:.6g} beta, all-gather {allgather.0:.0f} alpha + "
        "{allgather.1:.6g} beta\n");
    tell_trades(s, papers_at(o, "fig_5"));
}

int papers_codes(const papers_args *a)
{
    size_t grid[2] = {2, 2}, cut[2] = {1, 1};
    int code = tolerance_grid(a, grid, cut);
    json_t *tables, *list, *o;
    kofn_status st;
    shape s;

    if (code)
        return code;
    s = (shape){.P = a->workers ? a->workers : 3 * grid[0] * grid[1],
                .m = grid[0],
                .n = grid[1],
                .cut = {cut[0], cut[1]},
                .N = a->width ? a->width : 1024,
                .B = a->batch ? a->batch : 64};
    if (cut[0] > s.B || cut[1] > s.B)
        return papers_say(
            PAPERS_USAGE,
            "--batch-cut %zu,%zu: a batch of %zu points has not so many "
            "parts",
            cut[0], cut[1], s.B);
    if (s.P < s.m * s.n)
        return papers_say(PAPERS_USAGE,
                          "--workers %zu: a grid of %zu x %zu needs %zu", s.P,
                          s.m, s.n, s.m * s.n);
    tables = json_object();
    list = json_array();
    o = papers_pack("workers:z grid:p batch_cut:p width:z batch:z alpha_beta:o "
                    "fig_5:o tables:o",
                    s.P, grid, cut, s.N, s.B, messages(&s), list, tables);
    st = compute(&s, tables, list);
    if (st) {
        json_decref(o);
        return papers_ended(st);
    }
    if (!a->json)
        tell(&s, o);
    return papers_ending(a, o);
}
