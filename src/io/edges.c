/* edges.c -- graphs as lists of edges, as the collections SNAP and KONECT have
 * them.
 *
 * Lines that begin with # or % are comments.  Each other line has two numbers
 * of nodes, separated by blanks or tabs: an arc from the first to the second,
 * which is an entry 1. An arc that is listed twice counts twice.  Nodes are
 * numbered from 0 to the largest number in the file.  Numbers that no line has
 * are nodes without arcs.  A third field is refused: it may be a weight or a
 * time.  Comments may say that the graph is undirected.  That is kept; the arcs
 * are the same.
 *
 * Fills the kofn_file with a sparse matrix; the mapped bytes are only read.
 */
#include "io.h"
#include "text.h"

#include <assert.h>

typedef struct edges {
    size_t count, nodes;
    size_t line; /* of the largest number */
} edges;

static kofn_status read_node(kf_text *t, const char *what, size_t *node)
{
    char shown[KF_SHOWN];
    const char *from;

    kf_skip_blanks(t);
    from = t->at;
    if (kf_at_line_end(t))
        return kf_fail(KOFN_FORMAT,
                       "line %zu ends where the node that an edge goes %s "
                       "should be",
                       t->line, what);
    if (!kf_scan_size(&t->at, t->end, node) || *node >= UINT32_MAX ||
        !(kf_at_line_end(t) || kf_is_blank(*t->at)))
        return kf_fail(KOFN_FORMAT,
                       "line %zu: '%s' is not the number of a node; an edge is "
                       "two numbers from 0 to 4294967294",
                       t->line, kf_io_show_word(shown, from, t->end));
    return KOFN_OK;
}

static kofn_status read_edge(kf_text *t, size_t *from, size_t *to)
{
    char shown[KF_SHOWN];

    TRY(read_node(t, "from", from));
    TRY(read_node(t, "to", to));
    kf_skip_blanks(t);
    if (kf_at_line_end(t))
        return KOFN_OK;
    return kf_fail(KOFN_FORMAT,
                   "line %zu: '%s' follows the two nodes of the edge; take it "
                   "away, or write weights into a Matrix Market file",
                   t->line, kf_io_show_word(shown, t->at, t->end));
}

/* ---- comments -------------------------------------------------------------
 */

/* Goes to the next edge; false: there is none. */
static bool next_edge(kf_text *t)
{
    while (kf_io_next_line(t, '#')) {
        if (*t->at != '%')
            return true;
        kf_io_skip_line(t);
    }
    return false;
}

static bool has_words(const char *p, const char *end, const char *words)
{
    size_t n = strlen(words);

    for (; (size_t)(end - p) >= n; p++)
        if (kf_io_alike(p, words, n))
            return true;
    return false;
}

/* SNAP writes "Undirected graph", or "Directed graph (each unordered pair of
 * nodes is saved once)", KONECT "sym" as the first word. */
static bool says_undirected(const char *p, const char *end)
{
    if (has_words(p, end, "undirected") || has_words(p, end, "unordered pair"))
        return true;
    for (p++; p < end && kf_is_blank(*p); p++)
        ;
    return end - p > 3 && kf_io_alike(p, "sym", 3) && kf_is_blank(p[3]);
}

/* Does a comment in front of all edges say that they have no direction? */
static bool is_undirected(kf_text t)
{
    for (;;) {
        const char *from;

        while (t.at < t.end &&
               (kf_is_blank(*t.at) || kf_line_ends(t.at, t.end)))
            t.at++;
        from = t.at;
        if (from == t.end || (*from != '#' && *from != '%'))
            return false;
        kf_io_skip_line(&t);
        if (says_undirected(from, t.at))
            return true;
    }
}

/* ---- the list ------------------------------------------------------------ */

/* Check all lines: how many edges there are, and nodes. */
static kofn_status survey(edges *e, kf_text t)
{
    for (; next_edge(&t); e->count++) {
        size_t i, j;

        TRY(read_edge(&t, &i, &j));
        i = i > j ? i : j;
        if (i < e->nodes)
            continue;
        e->nodes = i + 1;
        e->line = t.line;
    }
    return KOFN_OK;
}

/* A number that is a slip must not make us ask for the memory it claims. */
static kofn_status check_plausible(const edges *e)
{
    if (e->count == 0)
        return kf_fail(KOFN_FORMAT, "there is no edge in the file");
    if (e->nodes > (1u << 22) && e->nodes / 64 > e->count)
        return kf_fail(KOFN_FORMAT,
                       "line %zu has node %zu, but there are only %zu edges; "
                       "number the nodes from 0 on",
                       e->line, e->nodes - 1, e->count);
    return KOFN_OK;
}

static kofn_status place(const edges *e, kf_text t, kofn_sparse *s)
{
    kf_text first = t;
    size_t *ptr = kf_sparse_ptr(s), room, i, j;
    bool fits = true;

    assert(s->rows == e->nodes);
    while (next_edge(&t)) {
        TRY(read_edge(&t, &i, &j));
        if (i >= e->nodes || j >= e->nodes)
            return kf_io_changed();
        ptr[i + 1]++;
    }
    room = kf_io_sparse_lay(s);
    if (room != e->count)
        return kf_io_changed();
    for (t = first; fits && next_edge(&t);) {
        TRY(read_edge(&t, &i, &j));
        fits =
            i < e->nodes && j < e->nodes && kf_io_sparse_put(s, room, i, j, 1);
    }
    return kf_io_sparse_laid(s, room, fits);
}

kofn_status kf_edges_read(kf_file *f, const kf_input *in)
{
    kf_text t = kf_io_text(in->data, in->length);
    edges e = {0};

    TRY(survey(&e, t));
    TRY(check_plausible(&e));
    f->sparse = kf_io_sparse_new(e.nodes, e.nodes, e.count);
    if (!f->sparse)
        return KOFN_NOMEM;
    f->shown.edges = true;
    f->shown.undirected = is_undirected(t);
    TRY(place(&e, t, f->sparse));
    return kf_io_sparse_tidy(f->sparse);
}

kofn_status kf_edges_part(const kf_input *part, size_t *numbers)
{
    edges e = {0};

    TRY(survey(&e, kf_io_text(part->data, part->length)));
    *numbers = e.count;
    return KOFN_OK;
}
