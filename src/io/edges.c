/* edges.c -- graphs as lists of edges, as the collection SNAP has them.
 *
 * Lines that begin with # are comments.  Each other line has two numbers of
 * nodes, between blanks or tabs: an arc from the first to the second, an entry
 * 1 there; one that is listed twice counts twice.  Nodes are numbered from 0
 * and as many as the largest number tells; those that no line has are nodes
 * without arcs.  A third field is refused: it may be a weight or a time.
 *
 * Fills the kofn_file with a sparse matrix; the mapped bytes are only read.
 */
#include "io.h"
#include "text.h"

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

/* Check all lines: how many edges there are, and nodes. */
static kofn_status survey(edges *e, kf_text t)
{
    for (; kf_io_next_line(&t, '#'); e->count++) {
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

    while (kf_io_next_line(&t, '#')) {
        TRY(read_edge(&t, &i, &j));
        if (i >= e->nodes || j >= e->nodes)
            return kf_io_changed();
        ptr[i + 1]++;
    }
    room = kf_io_sparse_lay(s);
    if (room != e->count)
        return kf_io_changed();
    for (t = first; fits && kf_io_next_line(&t, '#');) {
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
