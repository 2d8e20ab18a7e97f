/* nodes.c -- the nodes of a list of edges: a hash table of their spellings, and
 * their order.
 *
 * Owns the table, and borrows the bytes of the file. */
#include "edges.h"

#include "text.h"

#include "base/hash.h"

#include <assert.h>
#include <stdlib.h>

#define FIRST_SLOTS 1024
#define MOST_NODES ((size_t)UINT32_MAX - 1)

/* ---- the table ----------------------------------------------------------- */

static bool same(kf_token a, kf_token b)
{
    return a.length == b.length && memcmp(a.at, b.at, a.length) == 0;
}

/* Returns the slot of this node, or the empty slot where it belongs. */
static size_t slot_of(const kf_nodes *n, kf_token f)
{
    size_t i = (size_t)kf_hash(0, f.at, f.length) & (n->slots - 1);

    assert(n->slots > n->count);
    while (n->table[i] && !same(n->node[n->table[i] - 1], f))
        i = (i + 1) & (n->slots - 1);
    return i;
}

/* Doubles the table. */
static kofn_status spread(kf_nodes *n)
{
    size_t slots = n->slots ? 2 * n->slots : FIRST_SLOTS;
    uint32_t *old = n->table;

    n->table = kf_zero(slots, sizeof *n->table);
    if (!n->table) {
        n->table = old;
        return KOFN_NOMEM;
    }
    n->slots = slots;
    for (size_t k = 0; k < n->count; k++)
        n->table[slot_of(n, n->node[k])] = (uint32_t)k + 1;
    kf_free(old);
    return KOFN_OK;
}

kofn_status kf_nodes_find(kf_nodes *n, kf_token f, uint32_t *number)
{
    size_t slot;

    assert(f.length > 0);
    if (2 * n->count >= n->slots)
        TRY(spread(n));
    slot = slot_of(n, f);
    if (!n->table[slot]) {
        if (n->count == MOST_NODES)
            return kf_fail(KOFN_FORMAT, "there are more than %zu nodes",
                           MOST_NODES);
        TRY(kf_grow(&n->node, &n->cap, n->count, sizeof *n->node));
        n->node[n->count] = f;
        n->table[slot] = (uint32_t)++n->count;
    }
    *number = n->table[slot] - 1;
    return KOFN_OK;
}

/* ---- the order ----------------------------------------------------------- */

typedef struct place {
    kf_token node;
    uint32_t number;
} place;

static int by_bytes(const void *a, const void *b)
{
    kf_token x = ((const place *)a)->node, y = ((const place *)b)->node;
    int c = memcmp(x.at, y.at, kf_min(x.length, y.length));

    return c ? c : (x.length > y.length) - (x.length < y.length);
}

/* Numbers have no leading zeros, so a longer one is larger. */
static int by_value(const void *a, const void *b)
{
    kf_token x = ((const place *)a)->node, y = ((const place *)b)->node;

    return x.length != y.length ? (x.length < y.length ? -1 : 1)
                                : memcmp(x.at, y.at, x.length);
}

static kofn_status in_order(kf_edge_list *l)
{
    kf_nodes *n = &l->nodes;
    place *p;

    TRY_NEW(p, n->count);
    for (size_t k = 0; k < n->count; k++)
        p[k] = (place){n->node[k], (uint32_t)k};
    qsort(p, n->count, sizeof *p, l->numbers ? by_value : by_bytes);
    for (size_t k = 0; k < n->count; k++)
        n->rank[p[k].number] = (uint32_t)k;
    n->size = n->count;
    kf_free(p);
    return KOFN_OK;
}

/* A wrong number must not make us ask for the memory that it claims. */
static kofn_status check_plausible(const kf_edge_list *l, kf_token largest)
{
    size_t size = l->nodes.size;
    char room[KF_SHOWN];

    if (size <= MOST_NODES && (size <= (1u << 22) || size / 64 <= l->count))
        return KOFN_OK;
    return kf_fail(KOFN_FORMAT,
                   "node %s is far more than the %zu edges explain; number the "
                   "nodes from 0 on, or leave out nodes without edges",
                   kf_io_show(room, largest.at, largest.at + largest.length),
                   l->count);
}

/* The number of a node is its row. */
static kofn_status by_number(kf_edge_list *l)
{
    kf_nodes *n = &l->nodes;

    if (!l->numbers)
        return kf_fail(KOFN_FORMAT, "the nodes have names, so there are none "
                                    "without edges between them");
    n->size = 0;
    for (size_t k = 0; k < n->count; k++) {
        kf_token f = n->node[k];
        const char *at = f.at;
        size_t number = SIZE_MAX;

        if (!kf_scan_size(&at, f.at + f.length, &number) ||
            number >= MOST_NODES)
            number = MOST_NODES;
        n->rank[k] = (uint32_t)number;
        n->size = kf_max(n->size, number + 1);
        if (n->size == number + 1)
            TRY(check_plausible(l, f));
    }
    return KOFN_OK;
}

kofn_status kf_nodes_order(kf_edge_list *l, bool isolated)
{
    assert(!l->nodes.rank);
    if (l->count == 0)
        return kf_fail(KOFN_FORMAT, "there is no edge in the file");
    TRY_NEW(l->nodes.rank, l->nodes.count);
    return isolated ? by_number(l) : in_order(l);
}

/* ---- names --------------------------------------------------------------- */

/* True if the nodes are 0, 1, 2, ... */
static bool is_counting(const kf_edge_list *l)
{
    const kf_nodes *n = &l->nodes;

    for (size_t k = 0; k < n->count && l->numbers; k++) {
        kf_token f = n->node[k];
        const char *at = f.at;
        size_t number;

        if (!kf_scan_size(&at, f.at + f.length, &number) ||
            number != n->rank[k])
            return false;
    }
    return l->numbers;
}

kofn_status kf_nodes_name(const kf_edge_list *l, kf_file *f)
{
    const kf_nodes *n = &l->nodes;
    size_t bytes = 0;
    char **name, *text;

    if (is_counting(l))
        return KOFN_OK;
    assert(n->size == n->count);
    for (size_t k = 0; k < n->count; k++)
        bytes += n->node[k].length + 1; /* all are in the file */
    TRY_NEW(name, n->count);
    f->names = name;
    TRY_NEW(f->spellings, bytes);
    text = f->spellings;
    for (size_t k = 0; k < n->count; k++) {
        memcpy(text, n->node[k].at, n->node[k].length);
        text[n->node[k].length] = 0;
        name[n->rank[k]] = text;
        text += n->node[k].length + 1;
    }
    f->shown.names = (const char *const *)name;
    return KOFN_OK;
}

void kf_edge_list_free(kf_edge_list *l)
{
    kf_free(l->nodes.node);
    kf_free(l->nodes.table);
    kf_free(l->nodes.rank);
    kf_free(l->end);
    kf_free(l->weight);
}
