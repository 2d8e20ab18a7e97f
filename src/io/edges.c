/* edges.c -- graphs as lists of edges, as SNAP, KONECT and NetworkX write them.
 *
 * Lines that begin with # or % are comments.  Each other line has two nodes,
 * separated by blanks, tabs or a comma: an arc from the first to the second.
 * An arc that is listed twice is one entry.  The entry is 1, or with
 * KOFN_GRAPH_WEIGHTS the third field, summed over the lines of the arc.
 *
 * Nodes are numbers or names.  The first line decides: if it has numbers, all
 * nodes are numbers.  If it has none but the second has, it is a header.  Only
 * nodes that edges name exist, in ascending order; with KOFN_GRAPH_ISOLATED
 * every number from 0 to the largest is a node.  An edge without direction is
 * two arcs, if a comment in front or KOFN_GRAPH_UNDIRECTED says so.
 *
 * Fills the kofn_file with a sparse matrix; the mapped bytes are only read.
 */
#include "edges.h"

#include "text.h"

#include <assert.h>
#include <math.h>

/* ---- fields -------------------------------------------------------------- */

static bool ends_field(const char *p, const char *end)
{
    return kf_line_ends(p, end) || kf_is_blank(*p) || *p == ',';
}

/* Reads the next field of the line; an empty one if there is none. */
static kf_token field(kf_text *t)
{
    kf_token f;

    kf_skip_blanks(t);
    f.at = t->at;
    while (!ends_field(t->at, t->end))
        t->at++;
    f.length = (size_t)(t->at - f.at);
    kf_skip_blanks(t);
    if (t->at < t->end && *t->at == ',')
        t->at++;
    return f;
}

static bool is_number(kf_token f)
{
    size_t digits = 0;

    while (digits < f.length && kf_is_digit(f.at[digits]))
        digits++;
    return f.length > 0 && digits == f.length;
}

/* Drops leading zeros, so that a node has one spelling. */
static kf_token plain_number(kf_token f)
{
    while (f.length > 1 && *f.at == '0') {
        f.at++;
        f.length--;
    }
    return f;
}

static const char *shown(char room[KF_SHOWN], kf_token f)
{
    return kf_io_show(room, f.at, f.at + f.length);
}

/* A line of the list. */
typedef struct edge {
    kf_token node[2];
    double weight;
} edge;

static kofn_status read_weight(kf_text *t, edge *e)
{
    kf_token f = field(t);
    char room[KF_SHOWN];
    const char *next;

    if (f.length == 0)
        return kf_fail(KOFN_FORMAT, "line %zu has no weight after its nodes",
                       t->line);
    if (kf_scan_number(f.at, f.at + f.length, &next, &e->weight) != KF_NUMBER ||
        next != f.at + f.length || e->weight < 0)
        return kf_fail(KOFN_FORMAT,
                       "line %zu: '%s' is no weight; it must be a number >= 0",
                       t->line, shown(room, f));
    return KOFN_OK;
}

static kofn_status read_edge(kf_text *t, bool weights, edge *e)
{
    char room[KF_SHOWN];
    kf_token more;

    for (int i = 0; i < 2; i++) {
        e->node[i] = field(t);
        if (e->node[i].length == 0)
            return kf_fail(KOFN_FORMAT,
                           "line %zu ends where the node that an edge goes %s "
                           "should be",
                           t->line, i ? "to" : "from");
    }
    e->weight = 1;
    if (weights)
        TRY(read_weight(t, e));
    more = field(t);
    if (more.length == 0 && kf_at_line_end(t))
        return KOFN_OK;
    return kf_fail(KOFN_FORMAT,
                   weights
                       ? "line %zu: '%s' follows the weight of the edge; "
                         "take it away"
                       : "line %zu: '%s' follows the two nodes of the edge; "
                         "take it away, or ask for weights (--weights)",
                   t->line, shown(room, more));
}

/* ---- comments ------------------------------------------------------------ */

/* Goes to the next edge; false if there is none. */
static bool next_edge(kf_text *t)
{
    while (kf_io_next_line(t, '#')) {
        if (*t->at != '%')
            return true;
        kf_io_skip_line(t);
    }
    return false;
}

/* Returns what follows these words in a comment, or NULL. */
static const char *after(const char *p, const char *end, const char *words)
{
    size_t n = strlen(words);

    for (; (size_t)(end - p) >= n; p++)
        if (kf_io_alike(p, words, n))
            return p + n;
    return NULL;
}

/* SNAP writes "Undirected graph", KONECT "sym" as the first word.  "Directed
 * graph (each unordered pair of nodes is saved once)" heads SNAP's directed
 * graphs, too. */
static bool says_undirected(const char *p, const char *end)
{
    if (after(p, end, "undirected"))
        return true;
    for (p++; p < end && kf_is_blank(*p); p++)
        ;
    return end - p > 3 && kf_io_alike(p, "sym", 3) && kf_is_blank(p[3]);
}

/* Sets *count to the number after these words, if they are there. */
static void read_count(const char *p, const char *end, const char *words,
                       size_t *count)
{
    const char *at = after(p, end, words);

    while (at && at < end && kf_is_blank(*at))
        at++;
    if (at)
        (void)kf_scan_size(&at, end, count);
}

/* Reads the comments in front of all edges. */
static void read_comments(kf_text t, kofn_file *out)
{
    for (;;) {
        const char *from;

        while (t.at < t.end &&
               (kf_is_blank(*t.at) || kf_line_ends(t.at, t.end)))
            t.at++;
        from = t.at;
        if (from == t.end || (*from != '#' && *from != '%'))
            return;
        kf_io_skip_line(&t);
        out->undirected |= says_undirected(from, t.at);
        read_count(from, t.at, "Nodes:", &out->said_nodes);
        read_count(from, t.at, "Edges:", &out->said_edges);
    }
}

/* ---- the list ------------------------------------------------------------ */

/* Refuses a node that is no number, if all are numbers. */
static kofn_status check_number(const kf_text *t, kf_token f)
{
    char room[KF_SHOWN];

    return is_number(f) ? KOFN_OK
                        : kf_fail(KOFN_FORMAT,
                                  "line %zu: '%s' is not the number of a node, "
                                  "and the nodes before it are numbers",
                                  t->line, shown(room, f));
}

static bool has_number(const edge *e)
{
    return is_number(e->node[0]) || is_number(e->node[1]);
}

/* Decides from the first two edges whether nodes are numbers, and moves *t
 * behind a header. */
static kofn_status know_kind(kf_text *t, bool *numbers)
{
    kf_text at = *t, second;
    edge e;

    *numbers = false;
    if (!next_edge(&at))
        return kf_fail(KOFN_FORMAT, "there is no edge in the file");
    for (int i = 0; i < 2; i++)
        e.node[i] = field(&at);
    *numbers = has_number(&e);
    kf_io_skip_line(&at);
    second = at;
    if (*numbers || !next_edge(&at))
        return KOFN_OK;
    for (int i = 0; i < 2; i++)
        e.node[i] = field(&at);
    *numbers = is_number(e.node[0]) && is_number(e.node[1]);
    if (*numbers)
        *t = second;
    return KOFN_OK;
}

static kofn_status add_edge(kf_edge_list *l, const kf_text *t, const edge *e)
{
    TRY(kf_reach(&l->end, &l->end_cap, 2 * l->count + 2, sizeof *l->end));
    for (size_t i = 0; i < 2; i++) {
        kf_token f = e->node[i];

        if (l->numbers) {
            TRY(check_number(t, f));
            f = plain_number(f);
        }
        TRY(kf_nodes_find(&l->nodes, f, &l->end[2 * l->count + i]));
    }
    if (l->weighted) {
        TRY(kf_grow(&l->weight, &l->weight_cap, l->count, sizeof *l->weight));
        l->weight[l->count] = e->weight;
    }
    l->count++;
    return KOFN_OK;
}

static kofn_status read_list(kf_edge_list *l, kf_text t)
{
    edge e;

    TRY(know_kind(&t, &l->numbers));
    while (next_edge(&t)) {
        TRY(read_edge(&t, l->weighted, &e));
        TRY(add_edge(l, &t, &e));
    }
    return KOFN_OK;
}

/* ---- the matrix ---------------------------------------------------------- */

/* Adds the arcs of the list to the rows of s, or counts them in ptr. */
static bool put_arcs(const kf_edge_list *l, kofn_sparse *s, size_t room,
                     bool both)
{
    bool fits = true;

    for (size_t k = 0; k < l->count && fits; k++) {
        size_t i = l->nodes.rank[l->end[2 * k]];
        size_t j = l->nodes.rank[l->end[2 * k + 1]];
        double w = l->weight ? l->weight[k] : 1;

        fits = kf_io_sparse_put(s, room, i, j, w);
        if (both && i != j)
            fits &= kf_io_sparse_put(s, room, j, i, w);
    }
    return fits;
}

static void count_arcs(const kf_edge_list *l, size_t *ptr, bool both)
{
    for (size_t k = 0; k < l->count; k++) {
        size_t i = l->nodes.rank[l->end[2 * k]];
        size_t j = l->nodes.rank[l->end[2 * k + 1]];

        ptr[i + 1]++;
        if (both && i != j)
            ptr[j + 1]++;
    }
}

static kofn_status make_matrix(const kf_edge_list *l, kf_file *f)
{
    bool both = f->shown.undirected;
    size_t arcs, room;
    kofn_sparse *s;

    assert(l->count > 0);
    if (!kf_mul(l->count, both ? 2 : 1, &arcs))
        return KOFN_NOMEM;
    s = f->sparse = kf_io_sparse_new(l->nodes.size, l->nodes.size, arcs);
    if (!s)
        return KOFN_NOMEM;
    count_arcs(l, kf_sparse_ptr(s), both);
    room = kf_io_sparse_lay(s);
    TRY(kf_io_sparse_laid(s, room, put_arcs(l, s, room, both)));
    TRY(kf_io_sparse_tidy(s));
    for (size_t e = 0; !l->weighted && e < s->ptr[s->rows]; e++)
        kf_sparse_val(s)[e] = 1; /* an arc that is listed twice is one */
    return KOFN_OK;
}

static kofn_status read_graph(kf_edge_list *l, kf_file *f, const kf_input *in)
{
    kf_text t = kf_io_text(in->data, in->length);
    unsigned use = in->graph;

    f->shown.edges = true;
    read_comments(t, &f->shown);
    if (use & KOFN_GRAPH_UNDIRECTED)
        f->shown.undirected = true;
    if (use & KOFN_GRAPH_DIRECTED)
        f->shown.undirected = false;
    l->weighted = use & KOFN_GRAPH_WEIGHTS;
    TRY(read_list(l, t));
    TRY(kf_nodes_order(l, use & KOFN_GRAPH_ISOLATED));
    TRY(make_matrix(l, f));
    f->shown.listed = l->count;
    return kf_nodes_name(l, f);
}

kofn_status kf_edges_read(kf_file *f, const kf_input *in)
{
    kf_edge_list l = {.count = 0};
    kofn_status st = read_graph(&l, f, in);

    kf_edge_list_free(&l);
    return st;
}

kofn_status kf_edges_part(const kf_input *part, size_t *numbers)
{
    kf_text t = kf_io_text(part->data, part->length);

    for (*numbers = 0; next_edge(&t); ++*numbers)
        kf_io_skip_line(&t);
    return KOFN_OK;
}
