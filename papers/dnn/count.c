/* count.c -- the strategies that nodes of a mesh do not have: copies of a grid, and two
 * systematic codes, on its rows and on its columns (math/training.md 7).  Nothing is
 * computed: of every block and every product it is counted whether it is wrong.  So many
 * wrong values as the code stands are found and what made them is repaired; more are
 * told, and all go back to a checkpoint. */
#include "dnn/dnn.h"

#include <stdlib.h>
#include <string.h>

#define CHECKPOINT 50
#define GIVE_UP 10 /* times as many steps as there should be */

/* The values of a product in groups, each a code of its own; a value is the sum of
 * what its members, nodes, answer. */
typedef struct way {
    size_t groups, values, members, stands;
} way;

typedef struct counted {
    const dnn_lesson *l;
    dnn_nodes nodes;
    size_t more; /* rows, and columns, that two codes have besides */
    way way[2];
    double chance;
    dice d;
    bool *wrong; /* layers x nodes: blocks */
    dnn_did did;
} counted;

/* ---- who holds what --------------------------------------------------------- */

static kofn_status lay_out(counted *c)
{
    const dnn_nodes *k = &c->nodes;
    size_t mn = k->m * k->n;
    dnn_tolerance t;

    PAPERS_TRY(dnn_tolerance_of(k, &t));
    c->more = k->kind == DNN_TWO_MDS ? (k->P - mn) / (k->m + k->n) : 0;
    for (size_t back = 0; back < 2; back++) {
        size_t lines = back ? k->n : k->m, across = back ? k->m : k->n;

        c->way[back] = k->kind == DNN_TWO_MDS
                           ? (way){1, lines + c->more, across, 0}
                           : (way){lines, k->P / mn, across, 0};
        c->way[back].stands = t.probabilistic[back];
    }
    return KOFN_OK;
}

/* Copies: the grids one after the other.  Two codes: the grid with its further rows,
 * and then its further columns. */
static size_t member(const counted *c, bool back, size_t group, size_t value,
                     size_t k)
{
    size_t m = c->nodes.m, n = c->nodes.n;
    size_t line = c->nodes.kind == DNN_TWO_MDS ? value : group;
    size_t row = back ? k : line, col = back ? line : k;

    if (c->nodes.kind != DNN_TWO_MDS)
        return value * m * n + row + m * col;
    return col < n ? row + (m + c->more) * col
                   : (m + c->more) * n + row + m * (col - n);
}

static bool strikes(counted *c)
{
    bool hit = dice_uniform(&c->d) < c->chance;

    c->did.faults += hit;
    return hit;
}

/* ---- a step ------------------------------------------------------------------ */

/* Whoever is in a wrong value has its block anew; false: it cannot be told. */
static bool settle(counted *c, bool back, bool *blocks, const bool *bad,
                   size_t g)
{
    const way *w = &c->way[back];
    size_t count = 0;

    for (size_t v = 0; v < w->values; v++)
        count += bad[v];
    if (count > w->stands)
        return false;
    for (size_t v = 0; v < w->values; v++)
        for (size_t k = 0; k < w->members && bad[v]; k++)
            blocks[member(c, back, g, v, k)] = false;
    c->did.corrected += count > 0;
    return true;
}

static bool multiply(counted *c, bool back, bool *blocks)
{
    const way *w = &c->way[back];
    bool bad[64], told = true;

    for (size_t g = 0; g < w->groups; g++) {
        for (size_t v = 0; v < w->values; v++) {
            bad[v] = false;
            for (size_t k = 0; k < w->members; k++)
                bad[v] |= strikes(c) | blocks[member(c, back, g, v, k)];
        }
        told &= settle(c, back, blocks, bad, g);
    }
    return told;
}

static bool step(counted *c)
{
    size_t P = c->nodes.P, L = c->l->shape.layers;

    for (size_t l = 0; l < L; l++)
        if (!multiply(c, false, c->wrong + l * P))
            return false;
    for (size_t l = L - 1; l > 0; l--)
        if (!multiply(c, true, c->wrong + l * P))
            return false;
    for (size_t i = 0; i < L * P; i++) /* the changes of all blocks */
        c->wrong[i] |= strikes(c);
    return true;
}

/* Blocks are compared before they are kept: those of a row, or a column, by its
 * code. */
static bool compare(counted *c)
{
    size_t P = c->nodes.P;
    bool told = true;

    for (size_t l = 0; l < c->l->shape.layers; l++)
        for (size_t back = 0; back < 2; back++) {
            const way *w = &c->way[back];
            bool *blocks = c->wrong + l * P;

            for (size_t g = 0; g < w->groups; g++)
                for (size_t k = 0; k < w->members; k++) {
                    size_t count = 0;

                    for (size_t v = 0; v < w->values; v++)
                        count += blocks[member(c, back, g, v, k)];
                    told &= count <= w->stands;
                    for (size_t v = 0; v < w->values && told; v++)
                        blocks[member(c, back, g, v, k)] = false;
                }
        }
    return told;
}

/* ---- the whole ----------------------------------------------------------------- */

static void go(counted *c)
{
    size_t blocks = c->l->shape.layers * c->nodes.P;
    unsigned kept = 0, taken = 0;

    while (c->did.steps < c->l->steps && taken++ < GIVE_UP * c->l->steps) {
        bool told = step(c);

        c->did.steps += told;
        if (told &&
            (c->did.steps % CHECKPOINT == 0 || c->did.steps == c->l->steps)) {
            told = compare(c);
            kept = told ? c->did.steps : kept;
        }
        if (!told) {
            c->did.steps = kept;
            c->did.rollbacks++;
            memset(c->wrong, 0, blocks * sizeof *c->wrong);
        }
    }
    c->did.finished = c->did.steps == c->l->steps;
}

kofn_status dnn_count(const dnn_lesson *l, const dnn_nodes *nodes,
                      double chance, dnn_did *out)
{
    counted c = {.l = l,
                 .nodes = *nodes,
                 .chance = chance,
                 .d = dice_for(l->seed, 4, (uint64_t)nodes->kind)};

    PAPERS_TRY(lay_out(&c));
    if (nodes->P > 64)
        return papers_fail(KOFN_INVAL, "%zu nodes; 64 at most are counted",
                           nodes->P);
    c.wrong = calloc(l->shape.layers * nodes->P, sizeof *c.wrong);
    if (!c.wrong)
        return KOFN_NOMEM;
    go(&c);
    *out = c.did;
    free(c.wrong);
    return KOFN_OK;
}
