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
    return json_pack("{s:o, s:o}", "kofn", ours, "published", published);
}

static json_t *pair_of(double a, double b)
{
    return json_pack("[o, o]", papers_number(a), papers_number(b));
}

/* ---- Tables I and III: what is stood ------------------------------------- */

static const char *const ways[] = {"gpd_uvn", "gpd_vum", "replication",
                                   "two_mds"};
#define WAYS (sizeof ways / sizeof *ways)

/* What a plan of kofn needs, and what it stands by that. */
typedef struct stood {
    size_t workers, K, adversarial, probabilistic;
} stood;

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

static kofn_status ask_plan(size_t way, const shape *s, bool back, stood *out)
{
    kofn_problem pb = {
        back ? KOFN_LEFT : KOFN_MATMUL, s->N, s->N, s->B, KOFN_F64, false};
    size_t workers, spare;
    kofn_plan_info info;
    char spec[120];
    kofn_status st;

    workers = spec_of(way, s, back, spec, sizeof spec);
    st = describe(&pb, spec, workers, &info);
    if (st)
        return st;
    spare = workers - info.threshold;
    *out = (stood){workers, info.threshold, spare / 2, spare ? spare - 1 : 0};
    return KOFN_OK;
}

/* Both products of a way; KOFN_TOOFEW where the paper has nothing to say. */
static kofn_status ask_both(size_t way, const shape *s, stood ours[2],
                            dnn_tolerance *published)
{
    kofn_status st = dnn_tolerance_of(
        &(dnn_nodes){
            (dnn_redundancy)way, s->P, s->m, s->n, {s->cut[0], s->cut[1]}},
        published);

    for (int back = 0; back < 2 && !st; back++)
        st = ask_plan(way, s, back, &ours[back]);
    return st;
}

static json_t *pair_of_sizes(size_t a, size_t b)
{
    return json_pack("[I, I]", (json_int_t)a, (json_int_t)b);
}

static json_t *way_json(const stood o[2], const dnn_tolerance *p)
{
    json_t *j = json_object();

    if (p->K[0]) {
        json_object_set_new(j, "Kf",
                            beside(json_integer((json_int_t)o[0].K),
                                   json_integer((json_int_t)p->K[0])));
        json_object_set_new(j, "Kb",
                            beside(json_integer((json_int_t)o[1].K),
                                   json_integer((json_int_t)p->K[1])));
    }
    json_object_set_new(
        j, "adversarial",
        beside(pair_of_sizes(o[0].adversarial, o[1].adversarial),
               pair_of_sizes(p->adversarial[0], p->adversarial[1])));
    json_object_set_new(
        j, "probabilistic",
        beside(pair_of_sizes(o[0].probabilistic, o[1].probabilistic),
               pair_of_sizes(p->probabilistic[0], p->probabilistic[1])));
    return j;
}

static void way_text(const char *name, const stood o[2], const dnn_tolerance *p)
{
    printf("  %-12s", name);
    if (p->K[0])
        printf(" %5zu (%zu) %5zu (%zu)", o[0].K, p->K[0], o[1].K, p->K[1]);
    else
        printf(" %9s %9s", "", "");
    printf("   %zu %zu (%zu %zu)   %zu %zu (%zu %zu)\n", o[0].adversarial,
           o[1].adversarial, p->adversarial[0], p->adversarial[1],
           o[0].probabilistic, o[1].probabilistic, p->probabilistic[0],
           p->probabilistic[1]);
}

static kofn_status tolerances(const shape *s, const char *name, json_t *into)
{
    json_t *table = into ? json_object() : NULL;

    if (!into)
        printf(
            "Table %s: answers that decode forward and back; how many may lie "
            "(forward, back), or fail without a plan; published in brackets\n",
            name);
    for (size_t i = 0; i < WAYS; i++) {
        dnn_tolerance published;
        stood ours[2];
        kofn_status st = ask_both(i, s, ours, &published);

        if (st && st != KOFN_TOOFEW) {
            json_decref(table);
            return st;
        }
        if (table)
            json_object_set_new(table, ways[i],
                                st ? json_null() : way_json(ours, &published));
        else if (st)
            printf("  %-12s too few nodes\n", ways[i]);
        else
            way_text(ways[i], ours, &published);
    }
    if (table)
        json_object_set_new(into, name, table);
    return KOFN_OK;
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

static json_t *cost_json(const cost *c)
{
    return c->sent ? beside(pair_of(c->kofn[0], c->kofn[1]),
                            pair_of(c->published[0], c->published[1]))
                   : beside(papers_number(c->kofn[0]),
                            papers_number(c->published[0]));
}

static void cost_text(const cost *c)
{
    if (c->sent)
        printf("  %-15s %4.0f alpha + %.6g beta  (%.3g alpha + %.6g beta)\n",
               c->name, c->kofn[0], c->kofn[1], c->published[0],
               c->published[1]);
    else
        printf("  %-15s %14.6g  (%.6g)\n", c->name, c->kofn[0],
               c->published[0]);
}

static void costs(const shape *s, const char *name, json_t *into)
{
    json_t *table = into ? json_object() : NULL;
    cost c[COSTS];

    fill_costs(s, c);
    if (!into)
        printf(
            "Table %s: numbers that a node keeps, all-gathers, multiply-adds of a "
            "node; %zu wide, %zu points; published orders in brackets\n",
            name, s->N, s->B);
    for (size_t i = 0; i < COSTS; i++)
        if (table)
            json_object_set_new(table, c[i].name, cost_json(&c[i]));
        else
            cost_text(&c[i]);
    if (table)
        json_object_set_new(into, name, table);
}

/* ---- times of messages --------------------------------------------------- */

/* A message of X numbers takes alpha + X beta. */
static void messages(const shape *s, json_t *into)
{
    double X = up(s->N, s->m) * up(s->B, s->cut[0]);
    double steps = ceil(log2((double)s->P)), P = (double)s->P;

    if (into)
        json_object_set_new(into, "alpha_beta",
                            json_pack("{s:o, s:o, s:o}", "numbers",
                                      papers_number(X), "broadcast",
                                      pair_of(steps, steps * X), "allgather",
                                      pair_of(steps, (P - 1) * X)));
    else
        printf("of %.6g numbers: broadcast %.0f alpha + %.6g beta, all-gather "
               "%.0f alpha + %.6g beta\n",
               X, steps, steps * X, steps, (P - 1) * X);
}

/* ---- Fig. 5: answers against numbers ------------------------------------- */

/* The numbers by which a plan decodes; beyond that kofn is not asked. */
#define MOST_DECODING 1e7

/* A product of square matrices with both operands kept as m n-ths, p = m, on as
 * many workers as decode. */
typedef struct trade {
    size_t m, n;
    double kofn[2], published[2];
    bool planned;
} trade;

static kofn_status plan_trade(const shape *s, size_t workers, trade *t)
{
    kofn_problem pb = {KOFN_MATMUL, s->N, s->N, s->N, KOFN_F64, false};
    kofn_plan_info info;
    char spec[80];
    kofn_status st;

    snprintf(spec, sizeof spec, "gpd:m=%zu,n=%zu,p=%zu", t->m, t->n, t->m);
    st = describe(&pb, spec, workers, &info);
    if (st)
        return st;
    t->kofn[0] = (double)info.threshold;
    t->kofn[1] = t->kofn[0] * up(s->N, t->m) * up(s->N, t->m);
    t->planned = true;
    return KOFN_OK;
}

static kofn_status fill_trade(const shape *s, size_t m, size_t n, trade *t)
{
    double side = (double)s->N / (double)m;
    size_t K = m * n * m + n - 1;

    *t = (trade){.m = m, .n = n};
    t->published[0] = (double)K;
    t->published[1] = (double)K * side * side;
    return (double)K * (double)(m * m) <= MOST_DECODING ? plan_trade(s, K, t)
                                                        : KOFN_OK;
}

static json_t *trade_json(const trade *t)
{
    json_t *ours = t->planned ? pair_of(t->kofn[0], t->kofn[1]) : json_null();

    return json_pack("{s:I, s:I, s:o}", "m", (json_int_t)t->m, "n",
                     (json_int_t)t->n, "point",
                     beside(ours, pair_of(t->published[0], t->published[1])));
}

static void trade_text(const trade *t)
{
    printf("  m=%zu,n=%zu,p=%zu", t->m, t->n, t->m);
    if (t->planned)
        printf("  %.0f (%.0f)  %.6g (%.6g)\n", t->kofn[0], t->published[0],
               t->kofn[1], t->published[1]);
    else
        printf("  (%.0f)  (%.6g)\n", t->published[0], t->published[1]);
}

static kofn_status trades(const shape *s, json_t *into)
{
    size_t all = s->m * s->n;
    json_t *list = into ? json_array() : NULL;
    kofn_status st = KOFN_OK;

    if (!into)
        printf(
            "Fig. 5: answers that decode a product of %zu x %zu, both operands "
            "kept in %zu parts, and numbers sent; published in brackets\n",
            s->N, s->N, all);
    for (size_t m = 1; m <= all && !st; m++) {
        trade t;

        if (all % m)
            continue;
        st = fill_trade(s, m, all / m, &t);
        if (!st && list)
            json_array_append_new(list, trade_json(&t));
        else if (!st)
            trade_text(&t);
    }
    if (st)
        json_decref(list);
    else if (list)
        json_object_set_new(into, "fig_5", list);
    return st;
}

/* ---- the command --------------------------------------------------------- */

static kofn_status tables(const shape *s, json_t *into)
{
    shape whole = *s, one = *s;
    kofn_status st;

    whole.cut[0] = whole.cut[1] = one.cut[0] = one.cut[1] = one.B = 1;
    st = tolerances(&whole, "I", into);
    if (st)
        return st;
    costs(&one, "II", into);
    st = tolerances(s, "III", into);
    if (st)
        return st;
    costs(s, "IV", into);
    return KOFN_OK;
}

int papers_codes(const papers_args *a)
{
    size_t grid[2] = {2, 2}, cut[2] = {1, 1};
    int code = tolerance_grid(a, grid, cut);
    json_t *o, *t;
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
    o = a->json ? json_pack("{s:I, s:o, s:o, s:I, s:I}", "workers",
                            (json_int_t)s.P, "grid", pair_of_sizes(s.m, s.n),
                            "batch_cut", pair_of_sizes(cut[0], cut[1]), "width",
                            (json_int_t)s.N, "batch", (json_int_t)s.B)
                : NULL;
    t = o ? json_object() : NULL;
    st = tables(&s, t);
    if (!st) {
        messages(&s, o);
        st = trades(&s, o);
    }
    if (!st && o) {
        json_object_set(o, "tables", t);
        papers_print_json(json_incref(o));
    }
    json_decref(t);
    json_decref(o);
    return st ? papers_ended(st) : 0;
}
