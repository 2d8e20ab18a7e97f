/* csv.c -- tables of numbers in text.
 *
 * Fields are separated by semicolons, commas, tabs or blanks, whichever the
 * first line shows (in this order: a semicolon beside commas means that the
 * commas are something else).  That line may be a header: it is one when none
 * of its fields is a number.  Lines that begin with # and blank lines are
 * skipped, and a field may stand in double quotes (RFC 4180).  One column is
 * a vector.
 *
 * The text is read twice, to count and check, then to keep.
 */
#include "io.h"
#include "text.h"

#include <ctype.h>
#include <math.h>

#define NONE '\n' /* one field a line */
#define BLANKS ' '

typedef struct table {
    char mark; /* between fields; NONE, BLANKS or the character */
    size_t cols;
    size_t first; /* the line that said how many */
    bool infinite;
} table;

typedef struct field {
    const char *from, *to;
    bool more; /* another follows on the line */
} field;

/* ---- lines and fields ---------------------------------------------------- */

/* To the next line with fields.  kf_io_next_line passes the blanks before the
 * first field, but where tabs separate one of them may be a separator. */
static bool next_row(const table *tb, kf_text *t)
{
    bool found = kf_io_next_line(t, '#');

    while (found && tb->mark == '\t' && t->at > t->begin && t->at[-1] != '\n')
        t->at--;
    return found;
}

static bool is_mark(const table *tb, char c)
{
    return tb->mark == BLANKS ? kf_is_blank(c) : c == tb->mark;
}

static void skip_padding(const table *tb, kf_text *t)
{
    while (t->at < t->end && kf_is_blank(*t->at) &&
           (tb->mark == BLANKS || *t->at != tb->mark))
        t->at++;
}

/* From an opening quote to the closing one; two in a row are a quote mark of
 * the text. */
static bool take_quoted(kf_text *t, field *f)
{
    f->from = ++t->at;
    for (; !kf_at_line_end(t); t->at++) {
        if (*t->at != '"')
            continue;
        f->to = t->at++;
        if (kf_at_line_end(t) || *t->at != '"')
            return true;
    }
    return false;
}

static kofn_status take_field(const table *tb, kf_text *t, size_t column,
                              field *f)
{
    char shown[KF_SHOWN];
    const char *behind;

    skip_padding(tb, t);
    if (t->at < t->end && *t->at == '"') {
        if (!take_quoted(t, f))
            return kf_fail(KOFN_FORMAT,
                           "line %zu, column %zu: the quote is never closed",
                           t->line, column);
    } else {
        f->from = t->at;
        while (!kf_at_line_end(t) && !is_mark(tb, *t->at))
            t->at++;
        f->to = t->at;
    }
    behind = t->at;
    skip_padding(tb, t);
    f->more = !kf_at_line_end(t);
    if (f->more && !is_mark(tb, tb->mark == BLANKS ? *behind : *t->at))
        return kf_fail(KOFN_FORMAT,
                       "line %zu, column %zu: '%s' follows the closing quote",
                       t->line, column, kf_io_show_word(shown, t->at, t->end));
    if (f->more && tb->mark != BLANKS)
        t->at++;
    while (f->to > f->from && kf_is_blank(f->to[-1]))
        f->to--;
    while (f->from < f->to && kf_is_blank(*f->from))
        f->from++;
    return KOFN_OK;
}

static kf_scan scan_field(const table *tb, const field *f, double *value)
{
    const char *next;
    kf_scan found = kf_scan_number(f->from, f->to, &next, value);

    if (next != f->to)
        return KF_WORD;
    if (found != KF_NAN || !tb->infinite ||
        tolower((unsigned char)f->to[-1]) == 'n')
        return found;
    *value = *f->from == '-' ? -HUGE_VAL : HUGE_VAL;
    return KF_NUMBER;
}

/* ---- rows ---------------------------------------------------------------- */

static kofn_status field_fail(const kf_text *t, const field *f, size_t column,
                              kf_scan found)
{
    char shown[KF_SHOWN];

    kf_io_show(shown, f->from, f->to);
    if (f->from == f->to)
        return kf_fail(KOFN_FORMAT, "line %zu, column %zu: the field is empty",
                       t->line, column);
    if (found == KF_NAN)
        return kf_fail(KOFN_NONFINITE, "line %zu, column %zu is %s", t->line,
                       column, shown);
    if (found == KF_TOO_LARGE)
        return kf_fail(KOFN_NONFINITE,
                       "line %zu, column %zu: %s is too large for a float64",
                       t->line, column, shown);
    return kf_fail(KOFN_FORMAT, "line %zu, column %zu: '%s' is not a number",
                   t->line, column, shown);
}

/* One line into out, or nowhere when that is NULL. */
static kofn_status read_row(const table *tb, kf_text *t, double *out)
{
    field f = {.more = true};
    size_t n = 0;

    while (f.more) {
        double v;
        kf_scan found;

        if (n++ == tb->cols)
            return kf_fail(KOFN_FORMAT,
                           "line %zu has more than the %zu columns of line "
                           "%zu",
                           t->line, tb->cols, tb->first);
        TRY(take_field(tb, t, n, &f));
        found = scan_field(tb, &f, &v);
        if (found != KF_NUMBER)
            return field_fail(t, &f, n, found);
        if (out)
            out[n - 1] = v;
    }
    if (n < tb->cols)
        return kf_fail(KOFN_FORMAT,
                       "line %zu has %zu columns, and line %zu has %zu",
                       t->line, n, tb->first, tb->cols);
    return KOFN_OK;
}

/* ---- the first line ------------------------------------------------------ */

static char find_mark(kf_text t)
{
    bool quoted = false, semicolon = false, comma = false, tab = false,
         blank = false;
    const char *from = t.at;

    kf_io_skip_line(&t);
    /* Blanks at the line's end separate nothing. */
    while (t.at > from && (kf_is_blank(t.at[-1]) || t.at[-1] == '\r'))
        t.at--;
    for (; from < t.at; from++) {
        quoted ^= *from == '"';
        semicolon |= !quoted && *from == ';';
        comma |= !quoted && *from == ',';
        tab |= !quoted && *from == '\t';
        blank |= !quoted && kf_is_blank(*from);
    }
    return semicolon ? ';' : comma ? ',' : tab ? '\t' : blank ? BLANKS : NONE;
}

/* Count the columns and pass the line if it is a header. */
static kofn_status read_first(table *tb, kf_text *t)
{
    kf_text after = *t;
    field f = {.more = true};
    size_t numbers = 0;

    tb->first = t->line;
    while (f.more) {
        double v;

        TRY(take_field(tb, &after, ++tb->cols, &f));
        numbers += scan_field(tb, &f, &v) != KF_WORD;
    }
    if (numbers == 0)
        *t = after;
    return KOFN_OK;
}

kofn_status kf_csv_read(kofn_file *f, const kf_input *in)
{
    const char *p = (const char *)in->data;
    size_t bom = kf_bom(p, in->length);
    kf_text t = {p + bom, p + bom, p + in->length, 1}, start = t;
    table tb = {.mark = NONE, .infinite = in->infinite};
    size_t rows = 0;

    if (!next_row(&tb, &t))
        return kf_fail(KOFN_FORMAT, "there is no number in the file");
    tb.mark = find_mark(t);
    t = start;
    next_row(&tb, &t);
    TRY(read_first(&tb, &t));

    for (start = t; next_row(&tb, &t); rows++)
        TRY(read_row(&tb, &t, NULL));
    if (rows == 0)
        return kf_fail(KOFN_FORMAT, "no line of numbers follows the header%s",
                       memchr(p, '\r', in->length)
                           ? "; lines must end in \\n or \\r\\n, not \\r"
                           : "");
    TRY(kf_file_dense(f, rows, tb.cols));
    f->dims = tb.cols == 1 ? 1 : 2;
    t = start;
    for (size_t r = 0; r < rows; r++) {
        if (!next_row(&tb, &t))
            return kf_fail(KOFN_IO, "the file changed while it was read");
        TRY(read_row(&tb, &t, (double *)f->owned + r * tb.cols));
    }
    return KOFN_OK;
}
