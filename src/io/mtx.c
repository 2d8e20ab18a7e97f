/* mtx.c -- Matrix Market files.
 *
 * Format: Boisvert, Pozo, Remington, "The Matrix Market Exchange Formats:
 * Initial Design", NISTIR 5935 (1996), and math.nist.gov/MatrixMarket.
 * These rules hold, about which the format says nothing:
 *
 *   - Comments and blank lines may be anywhere after the banner.
 *   - Entries of the same place are summed; an entry of a pattern counts 1.
 *   - A line has one entry, in array files as well.  So a matrix written row by
 * row is not taken for one written by columns.
 *
 * Some programs write more than the format has, and that is read, too:
 * symmetric matrices with all entries above the diagonal, skew-symmetric ones
 * with zeros on it, the fields double and unsigned-integer, exponents with D,
 * and hermitian for real matrices.
 *
 * An m x n matrix of complex numbers becomes a real m x 2n matrix.  Columns 2j
 * and 2j + 1 have the real and the imaginary part of column j.
 *
 * A coordinate file is read twice: to check every line and count the entries of
 * each row, then to put them in place.  So the only memory is that of the
 * result.
 *
 * Fills the kofn_file, dense or sparse; the mapped bytes are only read.
 */
#include "io.h"
#include "text.h"

#include <assert.h>

typedef enum symmetry { GENERAL, SYMMETRIC, SKEW, HERMITIAN } symmetry;

typedef enum values {
    REAL,
    DOUBLE,
    INTEGER,
    UNSIGNED,
    PATTERN,
    COMPLEX
} values;

typedef struct market {
    bool coordinate;
    bool part; /* these are the first bytes of a longer file */
    values field;
    symmetry symmetry;
    size_t rows, cols;
    size_t entries;   /* lines of numbers */
    size_t size_line; /* the line of these sizes */
} market;

/* Returns the number of real numbers in an entry. */
static inline size_t width(const market *m)
{
    return m->field == COMPLEX ? 2 : 1;
}

/* ---- banner -------------------------------------------------------------- */

/* The next word of the line in lower case, "" when there is none. */
static const char *word(kf_text *t, char out[32])
{
    size_t n = 0;

    kf_skip_blanks(t);
    for (; !kf_at_line_end(t) && !kf_is_blank(*t->at); t->at++)
        if (n < 31)
            out[n++] = kf_small(*t->at);
    out[n] = 0;
    return out;
}

/* Which of `names` is the next word?  `choice` are these in the message. */
static kofn_status choose(kf_text *t, const char *what,
                          const char *const *names, const char *choice,
                          unsigned *found)
{
    char w[32], shown[KF_SHOWN];

    word(t, w);
    for (*found = 0; names[*found]; ++*found)
        if (strcmp(w, names[*found]) == 0)
            return KOFN_OK;
    return kf_fail(KOFN_FORMAT, "line 1: the %s is '%s'; kofn reads %s", what,
                   kf_io_show(shown, w, w + strlen(w)), choice);
}

/* Reads the field and the symmetry. */
static kofn_status read_kind(market *m, kf_text *t)
{
    static const char *const fields[] = {
        "real",    "double",  "integer", "unsigned-integer",
        "pattern", "complex", NULL};
    static const char *const symmetries[] = {
        "general", "symmetric", "skew-symmetric", "hermitian", NULL};
    unsigned found;

    TRY(choose(t, "field", fields,
               "real, double, integer, unsigned-integer, pattern and complex",
               &found));
    m->field = (values)found;
    if (m->field == PATTERN && !m->coordinate)
        return kf_fail(KOFN_FORMAT,
                       "line 1: an array file cannot be a pattern");
    TRY(choose(t, "symmetry", symmetries,
               "general, symmetric, skew-symmetric and hermitian", &found));
    m->symmetry = (symmetry)found;
    if (m->symmetry == HERMITIAN && m->field != COMPLEX)
        m->symmetry = SYMMETRIC;
    if (m->field == PATTERN && m->symmetry == SKEW)
        return kf_fail(KOFN_FORMAT,
                       "line 1: a pattern cannot be skew-symmetric");
    return KOFN_OK;
}

static kofn_status read_banner(market *m, kf_text *t)
{
    static const char *const objects[] = {"matrix", NULL};
    static const char *const formats[] = {"array", "coordinate", NULL};
    char w[32], shown[KF_SHOWN];
    unsigned found;

    if (strcmp(word(t, w), "%%matrixmarket") != 0)
        return kf_fail(KOFN_FORMAT,
                       "line 1: it does not begin with %%%%MatrixMarket");
    TRY(choose(t, "object", objects, "matrix only", &found));
    TRY(choose(t, "format", formats, "array and coordinate", &found));
    m->coordinate = found == 1;
    TRY(read_kind(m, t));
    if (word(t, w)[0])
        return kf_fail(KOFN_FORMAT, "line 1: '%s' follows the banner",
                       kf_io_show_word(shown, w, w + strlen(w)));
    return KOFN_OK;
}

/* ---- sizes --------------------------------------------------------------- */

static kofn_status read_size(kf_text *t, const char *what, size_t *value)
{
    char shown[KF_SHOWN];
    const char *from;

    kf_skip_blanks(t);
    from = t->at;
    if (!kf_scan_size(&t->at, t->end, value) ||
        !(kf_at_line_end(t) || kf_is_blank(*t->at)))
        return kf_fail(KOFN_FORMAT,
                       "line %zu: '%s' is not a number of %s (the line says "
                       "how large the matrix is)",
                       t->line, kf_io_show_word(shown, from, t->end), what);
    return KOFN_OK;
}

static kofn_status expect_line_end(kf_text *t)
{
    char shown[KF_SHOWN];

    kf_skip_blanks(t);
    if (kf_at_line_end(t))
        return KOFN_OK;
    return kf_fail(KOFN_FORMAT, "line %zu: '%s' follows; one entry a line",
                   t->line, kf_io_show_word(shown, t->at, t->end));
}

/* Refuses sizes that the file cannot have, before memory for them is allocated.
 * An entry takes at least 4 bytes ("1 1" and a line end; 2 in an array file).
 * A matrix with far more rows than entries is refused as well. */
static kofn_status check_plausible(const market *m, const kf_text *t)
{
    size_t left = (size_t)(t->end - t->at), least = m->coordinate ? 4 : 2;

    left -= left > 0; /* the end of this line */
    if (m->entries > (left + 1) / least)
        return kf_fail(KOFN_FORMAT,
                       "line %zu says %zu entries, but only %zu bytes follow",
                       m->size_line, m->entries, left);
    if (m->coordinate && m->rows > (1u << 22) && m->rows / 64 > m->entries)
        return kf_fail(KOFN_FORMAT,
                       "line %zu says %zu rows with only %zu entries; drop "
                       "the empty rows",
                       m->size_line, m->rows, m->entries);
    return KOFN_OK;
}

/* Entries an array file lists: all, or those below the diagonal. */
static kofn_status count_listed(market *m)
{
    size_t n = m->rows;

    if (!kf_mul(m->rows, m->cols, &m->entries))
        return kf_fail(KOFN_FORMAT,
                       "line %zu: %zu x %zu numbers are more than "
                       "there is memory anywhere",
                       m->size_line, m->rows, m->cols);
    if (m->symmetry != GENERAL)
        m->entries = (m->entries - n) / 2 + (m->symmetry == SKEW ? 0 : n);
    return KOFN_OK;
}

static kofn_status read_sizes(market *m, kf_text *t)
{
    if (!kf_io_next_line(t, '%'))
        return kf_fail(KOFN_FORMAT,
                       "line %zu: the file ends before the line of sizes",
                       t->line);
    m->size_line = t->line;
    TRY(read_size(t, "rows", &m->rows));
    TRY(read_size(t, "columns", &m->cols));
    if (m->coordinate)
        TRY(read_size(t, "entries", &m->entries));
    TRY(expect_line_end(t));
    if (m->rows == 0 || m->cols == 0)
        return kf_fail(KOFN_FORMAT, "line %zu: the %zu x %zu matrix is empty",
                       t->line, m->rows, m->cols);
    if (m->rows > UINT32_MAX || m->cols > UINT32_MAX / width(m))
        return kf_fail(KOFN_FORMAT,
                       "line %zu: %zu x %zu; kofn reads fewer than 2^32 rows "
                       "and 2^%d columns",
                       t->line, m->rows, m->cols,
                       m->field == COMPLEX ? 31 : 32);
    if (m->symmetry != GENERAL && m->rows != m->cols)
        return kf_fail(KOFN_FORMAT,
                       "line %zu: a symmetric matrix cannot be %zu x %zu",
                       t->line, m->rows, m->cols);
    if (!m->coordinate)
        TRY(count_listed(m));
    return m->part ? KOFN_OK : check_plausible(m, t);
}

/* ---- entries ------------------------------------------------------------- */

static kofn_status index_fail(const kf_text *t, const char *from,
                              const char *what, size_t limit)
{
    char shown[KF_SHOWN];

    if (kf_line_ends(from, t->end))
        return kf_fail(KOFN_FORMAT, "line %zu ends where a %s number should be",
                       t->line, what);
    return kf_fail(KOFN_FORMAT, "line %zu: %s '%s' is not among 1 .. %zu",
                   t->line, what, kf_io_show_word(shown, from, t->end), limit);
}

/* A row or column number; given from 0. */
static inline kofn_status read_index(kf_text *t, const char *what, size_t limit,
                                     size_t *index)
{
    const char *from;

    kf_skip_blanks(t);
    from = t->at;
    if (!kf_scan_size(&t->at, t->end, index) || *index < 1 || *index > limit ||
        !(kf_at_line_end(t) || kf_is_blank(*t->at)))
        return index_fail(t, from, what, limit);
    --*index;
    return KOFN_OK;
}

static kofn_status value_fail(const kf_text *t, const char *from, kf_scan found,
                              values field)
{
    char shown[KF_SHOWN];

    if (kf_line_ends(from, t->end))
        return kf_fail(KOFN_FORMAT, "line %zu ends where a value should be",
                       t->line);
    kf_io_show_word(shown, from, t->end);
    if (found == KF_NAN)
        return kf_fail(KOFN_NONFINITE, "line %zu: the value is %s", t->line,
                       shown);
    if (found == KF_TOO_LARGE)
        return kf_fail(KOFN_NONFINITE,
                       "line %zu: %s is too large for a float64", t->line,
                       shown);
    return kf_fail(KOFN_FORMAT, "line %zu: '%s' is not %s", t->line, shown,
                   field == INTEGER    ? "an integer"
                   : field == UNSIGNED ? "an integer without a sign"
                                       : "a number");
}

static inline kofn_status read_value(kf_text *t, values field, double *value)
{
    const char *from, *p;
    kf_scan found;

    kf_skip_blanks(t);
    from = t->at;
    found = kf_scan_fortran(from, t->end, &t->at, value);
    if (found == KF_WORD || !(kf_at_line_end(t) || kf_is_blank(*t->at)))
        return value_fail(t, from, KF_WORD, field);
    if (found != KF_NUMBER)
        return value_fail(t, from, found, field);
    if (field != INTEGER && field != UNSIGNED)
        return KOFN_OK;
    p = from + (*from == '+' || (*from == '-' && field == INTEGER));
    for (; p < t->at; p++)
        if (!kf_is_digit(*p))
            return value_fail(t, from, KF_WORD, field);
    return KOFN_OK;
}

/* An entry of a coordinate file that was read. */
typedef struct entry {
    size_t i, j; /* from 0 */
    double v[2]; /* the second is 0 if the field is real */
} entry;

/* Reads the numbers that follow on the line. */
static inline kofn_status read_numbers(const market *m, kf_text *t, double *v)
{
    v[0] = 1;
    v[1] = 0;
    if (m->field != PATTERN)
        TRY(read_value(t, m->field, &v[0]));
    if (m->field == COMPLEX)
        TRY(read_value(t, m->field, &v[1]));
    return expect_line_end(t);
}

static kofn_status read_entry(const market *m, kf_text *t, entry *e)
{
    TRY(read_index(t, "row", m->rows, &e->i));
    TRY(read_index(t, "column", m->cols, &e->j));
    return read_numbers(m, t, e->v);
}

static const char *symmetry_name(const market *m)
{
    return m->symmetry == SKEW        ? "skew-symmetric"
           : m->symmetry == HERMITIAN ? "hermitian"
                                      : "symmetric";
}

/* Checks an entry on the diagonal of a symmetric matrix. */
static kofn_status check_diagonal(const market *m, const kf_text *t,
                                  const entry *e)
{
    bool zero = m->symmetry == SKEW, odd = zero && e->v[0] != 0;

    odd |= m->symmetry != SYMMETRIC && e->v[1] != 0;
    return odd ? kf_fail(KOFN_FORMAT,
                         "line %zu: entry (%zu, %zu) on the diagonal of a %s "
                         "matrix is not %s",
                         t->line, e->i + 1, e->j + 1, symmetry_name(m),
                         zero ? "0" : "real")
               : KOFN_OK;
}

/* *out = the entry on the other side of the diagonal. */
static inline void mirror(const market *m, const entry *e, entry *out)
{
    *out = (entry){e->j, e->i, {e->v[0], e->v[1]}};
    if (m->symmetry == SKEW)
        out->v[0] = -out->v[0];
    if (m->symmetry != SYMMETRIC)
        out->v[1] = -out->v[1];
}

/* Checks that a symmetric matrix lists one triangle only.  seen[1] and seen[0]
 * get the lines of the first entries below and above the diagonal, 0 for none.
 */
static kofn_status check_triangle(const market *m, const kf_text *t,
                                  const entry *e, size_t seen[2])
{
    bool below = e->i > e->j;

    if (e->i == e->j)
        return check_diagonal(m, t, e);
    if (!seen[below])
        seen[below] = t->line;
    if (!seen[!below])
        return KOFN_OK;
    return kf_fail(KOFN_FORMAT,
                   "line %zu: entry (%zu, %zu) is %s the diagonal and that of "
                   "line %zu is not; of a %s matrix list one side only, or "
                   "say general",
                   t->line, e->i + 1, e->j + 1, below ? "below" : "above",
                   seen[!below], symmetry_name(m));
}

static kofn_status too_few(const market *m, const kf_text *t, size_t have)
{
    return kf_fail(KOFN_FORMAT,
                   "line %zu: the file ends after %zu entries, and line %zu "
                   "says there are %zu",
                   t->line, have, m->size_line, m->entries);
}

static kofn_status expect_end(const market *m, kf_text *t)
{
    if (!kf_io_next_line(t, '%'))
        return KOFN_OK;
    return kf_fail(KOFN_FORMAT,
                   "line %zu: more entries than the %zu that line %zu says",
                   t->line, m->entries, m->size_line);
}

/* ---- the two formats ----------------------------------------------------- */

/* Checks all lines and counts: ptr[i + 1] gets the numbers of row i. */
static kofn_status count_entries(const market *m, kf_text t, size_t *ptr)
{
    size_t seen[2] = {0};

    for (size_t k = 0; k < m->entries; k++) {
        entry e;

        if (!kf_io_next_line(&t, '%'))
            return too_few(m, &t, k);
        TRY(read_entry(m, &t, &e));
        ptr[e.i + 1] += width(m);
        if (m->symmetry == GENERAL)
            continue;
        TRY(check_triangle(m, &t, &e, seen));
        ptr[e.j + 1] += e.i != e.j ? width(m) : 0;
    }
    return expect_end(m, &t);
}

static inline bool place(const market *m, kofn_sparse *s, size_t room,
                         const entry *e)
{
    size_t j = e->j * width(m);

    return kf_io_sparse_put(s, room, e->i, j, e->v[0]) &&
           (width(m) == 1 || kf_io_sparse_put(s, room, e->i, j + 1, e->v[1]));
}

static kofn_status place_entries(const market *m, kf_text t, kofn_sparse *s)
{
    size_t room = kf_io_sparse_lay(s);
    bool fits = true;

    assert(s->rows == m->rows);
    assert(s->cols == m->cols * width(m));
    for (size_t k = 0; k < m->entries && fits; k++) {
        entry e, other;

        if (!kf_io_next_line(&t, '%'))
            return too_few(m, &t, k);
        TRY(read_entry(m, &t, &e));
        fits = place(m, s, room, &e);
        if (m->symmetry != GENERAL && e.i != e.j) {
            mirror(m, &e, &other);
            fits &= place(m, s, room, &other);
        }
    }
    return kf_io_sparse_laid(s, room, fits);
}

static kofn_status read_coordinate(const market *m, const kf_text *t,
                                   kf_file *f)
{
    size_t room = m->entries;

    assert(m->coordinate);
    /* Twice is a little too much, because the diagonal is not counted
     * before. */
    if (!kf_mul(room, m->symmetry != GENERAL ? 2 : 1, &room) ||
        !kf_mul(room, width(m), &room))
        return kf_nomem(SIZE_MAX);
    f->sparse = kf_io_sparse_new(m->rows, m->cols * width(m), room);
    if (!f->sparse)
        return KOFN_NOMEM;
    TRY(count_entries(m, *t, kf_sparse_ptr(f->sparse)));
    TRY(place_entries(m, *t, f->sparse));
    return kf_io_sparse_tidy_wide(f->sparse, width(m));
}

/* Writes an entry into a dense matrix. */
static inline void set(const market *m, const kf_file *f, const entry *e)
{
    double *to = f->owned;

    to += e->i * f->dense.cols + e->j * width(m);
    memcpy(to, e->v, width(m) * sizeof *to);
}

static kofn_status read_array(const market *m, kf_text *t, kf_file *f)
{
    entry e = {0}, other;
    size_t have = 0;

    assert(!m->coordinate);
    TRY(kf_file_dense(f, m->rows, m->cols * width(m)));
    if (m->symmetry == SKEW)
        memset(f->owned, 0, m->rows * f->dense.cols * sizeof(double));
    for (e.j = 0; e.j < m->cols; e.j++) {
        e.i = m->symmetry == GENERAL ? 0 : e.j + (m->symmetry == SKEW);
        for (; e.i < m->rows; e.i++, have++) {
            if (!kf_io_next_line(t, '%'))
                return too_few(m, t, have);
            TRY(read_numbers(m, t, e.v));
            set(m, f, &e);
            if (m->symmetry == GENERAL)
                continue;
            if (e.i == e.j)
                TRY(check_diagonal(m, t, &e));
            mirror(m, &e, &other);
            set(m, f, &other);
        }
    }
    return expect_end(m, t);
}

static kofn_status read_head(market *m, const kf_input *in, kf_text *t)
{
    *t = kf_io_text(in->data, in->length);
    TRY(read_banner(m, t));
    if (m->field == COMPLEX && !in->pairs)
        return kf_fail_in(kf_io_refuse_complex(), "line 1");
    return read_sizes(m, t);
}

kofn_status kf_mtx_part(const kf_input *part, size_t *numbers)
{
    market m = {.part = true};
    kf_text t;

    TRY(read_head(&m, part, &t));
    for (; *numbers < m.entries && kf_io_next_line(&t, '%'); ++*numbers) {
        entry e;

        if (m.coordinate) {
            TRY(read_entry(&m, &t, &e));
            continue;
        }
        TRY(read_numbers(&m, &t, e.v));
    }
    return *numbers == m.entries ? expect_end(&m, &t) : KOFN_OK;
}

kofn_status kf_mtx_read(kf_file *f, const kf_input *in)
{
    market m = {0};
    kf_text t;

    TRY(read_head(&m, in, &t));
    f->shown.is_complex = m.field == COMPLEX;
    return m.coordinate ? read_coordinate(&m, &t, f) : read_array(&m, &t, f);
}
