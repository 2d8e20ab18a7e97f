/* csv_row.c -- the rows of a table in text: fields, and the numbers in them.
 *
 * Owns nothing: a row goes into the caller's memory.  It allocates nothing,
 * and may not read beyond the end of the line. */
#include "csv.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>

/* ---- lines and fields ---------------------------------------------------- */

/* Finds the next row.  kf_io_next_line passes the blanks before the first
 * field; if tabs separate fields, one of them may be a separator. */
bool kf_csv_next(const kf_table *tb, kf_text *t)
{
    bool found = kf_io_next_line(t, '#');

    while (found && tb->mark == '\t' && t->at > t->begin && t->at[-1] != '\n')
        t->at--;
    return found;
}

static bool is_mark(const kf_table *tb, char c)
{
    return tb->mark == KF_BLANKS ? kf_is_blank(c) : c == tb->mark;
}

static void skip_padding(const kf_table *tb, kf_text *t)
{
    while (t->at < t->end && kf_is_blank(*t->at) &&
           (tb->mark == KF_BLANKS || *t->at != tb->mark))
        t->at++;
}

static inline bool ends(const kf_text *t, bool names)
{
    return kf_at_line_end(t) || (!names && *t->at == '#');
}

/* From an opening quote to the closing one; two in a row are a quote mark of
 * the text. */
static bool take_quoted(kf_text *t, kf_field *f)
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

kofn_status kf_csv_field(const kf_table *tb, kf_text *t, size_t column,
                         bool names, kf_field *f)
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
        while (!ends(t, names) && !is_mark(tb, *t->at))
            t->at++;
        f->to = t->at;
    }
    behind = t->at;
    skip_padding(tb, t);
    f->more = !ends(t, names);
    if (f->more && !is_mark(tb, tb->mark == KF_BLANKS ? *behind : *t->at))
        return kf_fail(KOFN_FORMAT,
                       "line %zu, column %zu: '%s' follows the closing quote",
                       t->line, column, kf_io_show_word(shown, t->at, t->end));
    if (f->more && tb->mark != KF_BLANKS)
        t->at++;
    while (f->to > f->from && kf_is_blank(f->to[-1]))
        f->to--;
    while (f->from < f->to && kf_is_blank(*f->from))
        f->from++;
    return KOFN_OK;
}

/* ---- numbers ------------------------------------------------------------- */

/* A comma in a number is a decimal one where it cannot separate fields. */
static bool has_commas(const kf_table *tb)
{
    return tb->mark == ';' || tb->mark == '\t' || tb->mark == '|';
}

static kf_scan scan_comma(const kf_field *f, double *value)
{
    char text[128], *comma;
    size_t n = (size_t)(f->to - f->from);
    const char *next;
    kf_scan found;

    assert(f->from <= f->to);
    if (n >= sizeof text || memchr(f->from, '.', n))
        return KF_WORD;
    memcpy(text, f->from, n);
    comma = memchr(text, ',', n);
    if (!comma)
        return KF_WORD;
    *comma = '.';
    found = kf_scan_number(text, text + n, &next, value);
    return next == text + n ? found : KF_WORD;
}

kf_scan kf_csv_scan(const kf_table *tb, const kf_field *f, double *value)
{
    const char *next;
    kf_scan found = kf_scan_number(f->from, f->to, &next, value);

    assert(f->from <= f->to);
    if (next != f->to)
        return has_commas(tb) ? scan_comma(f, value) : KF_WORD;
    if (found != KF_NAN || !tb->infinite ||
        tolower((unsigned char)f->to[-1]) == 'n')
        return found;
    *value = *f->from == '-' ? -HUGE_VAL : HUGE_VAL;
    return KF_NUMBER;
}

/* Could it be a number of thousands, 1,500 as one and a half is written where
 * commas are decimal and as 1500 is where they group digits? */
static bool like_thousands(const char *from, const char *to)
{
    const char *comma;

    from += from < to && (*from == '-' || *from == '+');
    comma = memchr(from, ',', (size_t)(to - from));
    if (!comma || to - comma != 4 || comma == from || comma - from > 3 ||
        *from == '0')
        return false;
    for (const char *p = from; p < to; p++)
        if (p != comma && !kf_is_digit(*p))
            return false;
    return true;
}

/* All decimals are written alike, with a comma or a point. */
static kofn_status note_decimal(kf_table *tb, const kf_text *t,
                                const kf_field *f)
{
    size_t n = (size_t)(f->to - f->from);
    bool comma = memchr(f->from, ',', n), point = memchr(f->from, '.', n);
    char shown[KF_SHOWN];

    if (comma && !tb->comma) {
        tb->comma = t->line;
        tb->from = f->from;
        tb->to = f->to;
    }
    if (point && !tb->point)
        tb->point = t->line;
    tb->decimal |= comma && !like_thousands(f->from, f->to);
    if ((!comma && !point) || !tb->comma || !tb->point)
        return KOFN_OK;
    return kf_fail(KOFN_FORMAT,
                   "line %zu: '%s' has a %s, and a number of line %zu has a "
                   "%s; write all decimals alike",
                   t->line, kf_io_show(shown, f->from, f->to),
                   comma ? "comma" : "point", comma ? tb->point : tb->comma,
                   comma ? "point" : "comma");
}

kofn_status kf_csv_check_commas(const kf_table *tb)
{
    char shown[KF_SHOWN];

    if (!tb->comma || tb->decimal)
        return KOFN_OK;
    kf_io_show(shown, tb->from, tb->to);
    return kf_fail(KOFN_FORMAT,
                   "line %zu: the comma of '%s' could be a decimal one or "
                   "group digits, as all in the file could; write a point, or "
                   "no comma",
                   tb->comma, shown);
}

/* ---- rows ---------------------------------------------------------------- */

bool kf_csv_name(const kf_table *tb, size_t column, kf_field *f)
{
    kf_text t = tb->names;

    if (!t.at)
        return false;
    f->more = true;
    for (size_t i = 0; i < column; i++)
        if (!f->more || kf_csv_field(tb, &t, i + 1, true, f) != KOFN_OK)
            return false;
    return true;
}

/* Writes " ('NAME')" if the column has a name. */
static const char *show_name(char to[KF_SHOWN + 8], const kf_table *tb,
                             size_t column)
{
    char shown[KF_SHOWN];
    kf_field f;

    to[0] = '\0';
    if (kf_csv_name(tb, column, &f) && f.from < f.to)
        snprintf(to, KF_SHOWN + 8, " ('%s')", kf_io_show(shown, f.from, f.to));
    return to;
}

static kofn_status field_fail(const kf_table *tb, const kf_text *t,
                              const kf_field *f, size_t column, kf_scan found)
{
    char shown[KF_SHOWN], name[KF_SHOWN + 8];

    kf_io_show(shown, f->from, f->to);
    show_name(name, tb, column);
    if (f->from == f->to)
        return kf_fail(KOFN_FORMAT,
                       "line %zu, column %zu%s: the field is empty", t->line,
                       column, name);
    if (found == KF_NAN)
        return kf_fail(KOFN_NONFINITE, "line %zu, column %zu%s is %s", t->line,
                       column, name, shown);
    if (found == KF_TOO_LARGE)
        return kf_fail(KOFN_NONFINITE,
                       "line %zu, column %zu%s: %s is too large for a float64",
                       t->line, column, name, shown);
    return kf_fail(KOFN_FORMAT, "line %zu, column %zu%s: '%s' is not a number",
                   t->line, column, name, shown);
}

static kofn_status too_many(const kf_table *tb, const kf_text *t)
{
    return kf_fail(KOFN_FORMAT,
                   "line %zu has more than the %zu columns of line %zu",
                   t->line, tb->cols, tb->first);
}

/* Behind the last number stands a mark and nothing else, as in other rows. */
static kofn_status take_last_mark(const kf_table *tb, kf_text *t, kf_field *f)
{
    if (!f->more)
        return kf_fail(KOFN_FORMAT,
                       "line %zu does not end in a separator, and the lines "
                       "before it do",
                       t->line);
    TRY(kf_csv_field(tb, t, tb->cols + 1, false, f));
    return f->more || f->from != f->to ? too_many(tb, t) : KOFN_OK;
}

kofn_status kf_csv_row(kf_table *tb, kf_text *t, double *out)
{
    kf_field f = {.more = true};
    size_t n = 0;

    while (f.more && !(tb->trailing && n == tb->cols)) {
        double v;
        kf_scan found;

        if (n++ == tb->cols)
            return too_many(tb, t);
        TRY(kf_csv_field(tb, t, n, false, &f));
        found = kf_csv_scan(tb, &f, &v);
        if (found != KF_NUMBER)
            return field_fail(tb, t, &f, n, found);
        if (out)
            out[n - 1] = v;
        else if (has_commas(tb))
            TRY(note_decimal(tb, t, &f));
    }
    if (n < tb->cols)
        return kf_fail(KOFN_FORMAT,
                       "line %zu has %zu columns, and line %zu has %zu",
                       t->line, n, tb->first, tb->cols);
    if (tb->trailing)
        TRY(take_last_mark(tb, t, &f));
    kf_io_skip_line(t); /* a comment */
    return KOFN_OK;
}
