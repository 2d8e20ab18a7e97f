/* tables_ii_iv.c -- Tables II and IV of "A unified coded deep neural network
 * training strategy based on generalized PolyDot codes" (Dutta, Bai, Jeong,
 * Low, Grover, 2018): what a node keeps, sends and computes per training step,
 * for one point and for a batch, and the times of messages; math/training.md
 * 9. */
#include "dnn/dnn.h"

#include <string.h>

/* kofn: counted, with sides padded to whole blocks. published: orders of
 * magnitude. Sent: messages in sequence, and numbers. */
typedef struct cost {
    const char *name;
    double kofn[2], published[2];
    bool sent;
} cost;

#define COSTS 8

static double up(size_t a, size_t b)
{
    return (double)ceil_div(a, b);
}

static void fill_costs(const dnn_layer *s, cost c[COSTS])
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

void dnn_costs(const dnn_layer *s, json_t *table)
{
    cost c[COSTS];

    fill_costs(s, c);
    for (size_t i = 0; i < COSTS; i++)
        json_object_set_new(table, c[i].name,
                            c[i].sent
                                ? dnn_beside(papers_reals(c[i].kofn, 2),
                                             papers_reals(c[i].published, 2))
                                : dnn_beside(json_real(c[i].kofn[0]),
                                             json_real(c[i].published[0])));
}

void dnn_costs_tell(const dnn_layer *s, const char *name, json_t *table)
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

/* A message of X numbers takes alpha + X beta. */
json_t *dnn_messages(const dnn_layer *s)
{
    double X = up(s->N, s->m) * up(s->B, s->cut[0]);
    double steps = ceil(log2((double)s->P)), P = (double)s->P;

    return papers_pack("numbers:f broadcast:o allgather:o", X,
                       papers_reals((double[]){steps, steps * X}, 2),
                       papers_reals((double[]){steps, (P - 1) * X}, 2));
}

void dnn_messages_tell(json_t *o)
{
    papers_print(
        o, "of {numbers:.6g} numbers: broadcast {broadcast.0:.0f} alpha + "
           "{broadcast.1:.6g} beta, all-gather {allgather.0:.0f} alpha + "
           "{allgather.1:.6g} beta\n");
}
