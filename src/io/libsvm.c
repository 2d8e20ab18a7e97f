/* libsvm.c -- points with labels, in the format of LIBSVM and SVMlight.
 *
 * Each line is a point, `label index:value index:value ...`: a label, and the
 * nonzero numbers of a row of a sparse matrix.  Indices are counted from 1 and
 * ascend within a line.  The largest index is the number of columns.  # begins
 * a comment.
 *
 * Fills the kofn_file with sparse points and their labels; the mapped bytes
 * are only read.
 */
#include "io.h"
#include "text.h"

#include <assert.h>

typedef struct listing {
    size_t rows, cols, entries; /* that have been read */
    kofn_sparse *to;            /* NULL: entries are only counted */
    size_t room;                /* entries that fit into it */
    double *label;
} listing;

/* ---- a line ----------------------------------------------------------------
 */

static bool ends(const kf_text *t)
{
    return kf_at_line_end(t) || kf_is_blank(*t->at) || *t->at == '#';
}

/* Is there nothing more on the line but a comment? */
static bool row_ends(kf_text *t)
{
    kf_skip_blanks(t);
    if (t->at < t->end && *t->at == '#')
        kf_io_skip_line(t);
    return kf_at_line_end(t);
}

/* Fails with the reason why `word` is no number. */
static kofn_status number_fail(const kf_text *t, const char *word,
                               const char *what, kf_scan found)
{
    char shown[KF_SHOWN];

    kf_io_show_word(shown, word, t->end);
    if (found == KF_NAN)
        return kf_fail(KOFN_NONFINITE,
                       "line %zu: the %s of '%s' is no finite number; leave "
                       "the point out, or give it one",
                       t->line, what, shown);
    if (found == KF_TOO_LARGE)
        return kf_fail(KOFN_NONFINITE,
                       "line %zu: the %s of '%s' is too large for a float64",
                       t->line, what, shown);
    return kf_fail(KOFN_FORMAT,
                   "line %zu: '%s' has no number for its %s; a line is 'label "
                   "index:value index:value ...'",
                   t->line, shown, what);
}

static kofn_status read_number(kf_text *t, const char *word, const char *what,
                               double *value)
{
    kf_scan found = kf_scan_number(t->at, t->end, &t->at, value);

    if (found == KF_WORD || !ends(t))
        return number_fail(t, word, what, KF_WORD);
    return found == KF_NUMBER ? KOFN_OK : number_fail(t, word, what, found);
}

static kofn_status index_fail(const kf_text *t, const char *word)
{
    char shown[KF_SHOWN];

    kf_io_show_word(shown, word, t->end);
    if (strncmp(shown, "qid:", 4) == 0)
        return kf_fail(KOFN_FORMAT,
                       "line %zu: '%s': queries of rankings are not "
                       "supported; remove every qid: from the file",
                       t->line, shown);
    return kf_fail(KOFN_FORMAT,
                   "line %zu: '%s' is not index:value with an index from 1 to "
                   "4294967295",
                   t->line, shown);
}

/* *index is that of the entry before, 0 before the first. */
static kofn_status read_entry(kf_text *t, size_t *index, double *value)
{
    const char *word = t->at;
    size_t last = *index;

    if (!kf_scan_size(&t->at, t->end, index) || *index > UINT32_MAX ||
        t->at == t->end || *t->at != ':')
        return index_fail(t, word);
    if (*index == 0)
        return kf_fail(KOFN_FORMAT,
                       "line %zu: index 0; indices are counted from 1 on, add "
                       "1 to all of the file",
                       t->line);
    if (*index <= last)
        return kf_fail(KOFN_FORMAT,
                       "line %zu: index %zu comes after index %zu; each may "
                       "be there once, in ascending order",
                       t->line, *index, last);
    t->at++;
    return read_number(t, word, "value", value);
}

/* ---- all lines ----------------------------------------------------------- */

static kofn_status add_entry(listing *l, size_t j, double v)
{
    if (l->to) {
        if (l->entries >= l->room || j >= l->to->cols)
            return kf_io_changed();
        kf_sparse_col(l->to)[l->entries] = (uint32_t)j;
        kf_sparse_val(l->to)[l->entries] = v;
    }
    l->entries++;
    l->cols = l->cols > j ? l->cols : j + 1;
    return KOFN_OK;
}

static kofn_status read_row(listing *l, kf_text *t)
{
    size_t index = 0;
    double v;

    TRY(read_number(t, t->at, "label", &v));
    if (l->to) {
        if (l->rows >= l->to->rows)
            return kf_io_changed();
        l->label[l->rows] = v;
    }
    while (!row_ends(t)) {
        TRY(read_entry(t, &index, &v));
        TRY(add_entry(l, index - 1, v));
    }
    l->rows++;
    if (l->to)
        kf_sparse_ptr(l->to)[l->rows] = l->entries;
    return KOFN_OK;
}

static kofn_status read_rows(listing *l, kf_text t)
{
    while (kf_io_next_line(&t, '#'))
        TRY(read_row(l, &t));
    return KOFN_OK;
}

static kofn_status begin(kf_file *f, const listing *found, listing *l)
{
    assert(!f->sparse);
    *l = (listing){.room = found->entries};
    f->sparse = kf_io_sparse_new(found->rows, found->cols, found->entries);
    l->to = f->sparse;
    l->label = f->sparse ? kf_new(found->rows, sizeof *l->label) : NULL;
    if (!l->label)
        return KOFN_NOMEM;
    f->labels = (kofn_matrix){l->label, found->rows, 1, 1, KOFN_F64};
    return KOFN_OK;
}

kofn_status kf_libsvm_read(kf_file *f, const kf_input *in)
{
    kf_text t = kf_io_text(in->data, in->length);
    listing found = {0}, l;

    TRY(read_rows(&found, t));
    if (found.entries == 0)
        return kf_fail(KOFN_FORMAT,
                       "%zu lines have labels and none has an index:value; "
                       "there is no column",
                       found.rows);
    TRY(begin(f, &found, &l));
    TRY(read_rows(&l, t));
    return l.rows == found.rows && l.entries == found.entries ? KOFN_OK
                                                              : kf_io_changed();
}

bool kf_libsvm_begins(const kf_input *in)
{
    kf_text t = kf_io_text(in->data, in->length);
    size_t index = 0;
    double v;

    return kf_io_next_line(&t, '#') &&
           read_number(&t, t.at, "label", &v) == KOFN_OK && !row_ends(&t) &&
           read_entry(&t, &index, &v) == KOFN_OK;
}

kofn_status kf_libsvm_part(const kf_input *part, size_t *numbers)
{
    listing found = {0};

    TRY(read_rows(&found, kf_io_text(part->data, part->length)));
    *numbers = found.rows + found.entries;
    return KOFN_OK;
}
