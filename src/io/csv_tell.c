/* csv_tell.c -- finds the separator of a table in text, and whether its first
 * line has names.
 *
 * The candidates are a semicolon, a comma, a tab, a bar and blanks, in this
 * order.  The separator is the first one in the first line, if the next lines
 * agree with it.  Otherwise it is the first candidate except blanks with which
 * they all agree.  So a name may contain any of them.  If none fits, the first
 * is taken, and reading by it reports the mistake.
 *
 * Fills the caller's kf_table, and owns nothing.
 */
#include "csv.h"

#define LINES 64                   /* lines that are looked at, at most */
#define REACH ((ptrdiff_t)1 << 16) /* bytes in which they must begin */

/* ---- the first line ------------------------------------------------------ */

static char shown_mark(kf_text t)
{
    static const char marks[] = ";,\t|";
    bool quoted = false, seen[4] = {false}, blank = false;
    const char *from = t.at;

    kf_io_skip_line(&t);
    /* Blanks at the line's end separate nothing. */
    while (t.at > from && (kf_is_blank(t.at[-1]) || t.at[-1] == '\r'))
        t.at--;
    for (; from < t.at; from++) {
        quoted ^= *from == '"';
        for (size_t i = 0; i < 4; i++)
            seen[i] |= !quoted && *from == marks[i];
        blank |= !quoted && kf_is_blank(*from);
    }
    for (size_t i = 0; i < 4; i++)
        if (seen[i])
            return marks[i];
    return blank ? KF_BLANKS : KF_NO_MARK;
}

/* Nothing but words that stand for a number that is not there? */
static bool is_missing(const kf_field *f)
{
    static const char *const words[] = {"na",  "n/a",     "null", "none",
                                        "nil", "missing", "-",    "--",
                                        "?",   ".",       "*"};
    const char *p = f->from;

    while (p < f->to) {
        const char *to = p;
        size_t i = 0;

        while (to < f->to && !kf_is_blank(*to))
            to++;
        while (i < sizeof words / sizeof *words &&
               !kf_io_is_word(p, to, words[i]))
            i++;
        if (to > p && i == sizeof words / sizeof *words)
            return false;
        p = to + (to < f->to);
    }
    return true;
}

/* True if the field is a number, or begins with one that a blank, a tab or one
 * of ; , | follows. */
static bool begins_with_number(const kf_field *f)
{
    const char *next;
    double v;

    return kf_scan_number(f->from, f->to, &next, &v) != KF_WORD &&
           (next == f->to || memchr("; ,\t|", *next, 5));
}

/* The numbers of fields of a line, by kind. */
typedef struct line {
    size_t fields, numbers, missing;
    size_t doubtful; /* begin with a number */
    bool open;       /* the last one is empty, and not the only one */
} line;

static kofn_status look(const kf_table *tb, kf_text *t, bool names, line *l)
{
    kf_field f = {.more = true};

    *l = (line){0};
    while (f.more) {
        double v;

        TRY(kf_csv_field(tb, t, ++l->fields, names, &f));
        l->numbers += kf_csv_scan(tb, &f, &v) != KF_WORD;
        l->missing += is_missing(&f);
        l->doubtful += begins_with_number(&f);
    }
    l->open = l->fields > 1 && f.from == f.to && tb->mark != KF_BLANKS;
    kf_io_skip_line(t);
    return KOFN_OK;
}

/* The columns that the first line has, and whether rows end in a mark; those of
 * names need not. */
static void count_columns(kf_table *tb, const line *names, const line *row)
{
    tb->cols = names->fields;
    if (row->open && names->open && row->fields == names->fields)
        tb->cols--;
    else if (names->numbers || !row->open || row->fields != names->fields + 1)
        return;
    tb->trailing = true;
}

/* A line without numbers: is it one of names? */
static kofn_status check_names(const kf_table *tb, const kf_text *t,
                               const line *l, char shown)
{
    if (l->missing == l->fields)
        return kf_fail(KOFN_FORMAT,
                       "line %zu has no numbers and could be data, since its "
                       "words stand for missing ones; take the line away, or "
                       "give the columns names",
                       t->line);
    if (l->doubtful == l->fields || (tb->mark != shown && l->doubtful) ||
        (tb->mark == KF_NO_MARK && shown != tb->mark && shown != KF_BLANKS))
        return kf_fail(KOFN_FORMAT,
                       "line %zu has no numbers and could be data, because "
                       "numbers stand in its fields",
                       t->line);
    return KOFN_OK;
}

/* Count the columns, and pass the line if it is one of names. */
static kofn_status read_first(kf_table *tb, kf_text *t, char shown)
{
    kf_text after = *t, next;
    line first, second = {0};

    tb->first = t->line;
    tb->names = (kf_text){NULL, NULL, NULL, 0};
    TRY(look(tb, &after, false, &first));
    if (first.numbers == 0) {
        after = *t; /* in names # is a letter */
        TRY(look(tb, &after, true, &first));
        TRY(check_names(tb, t, &first, shown));
        tb->names = *t;
        *t = after;
    }
    next = after;
    if (kf_csv_next(tb, &next))
        TRY(look(tb, &next, false, &second));
    count_columns(tb, &first, &second);
    return KOFN_OK;
}

/* ---- the separator ------------------------------------------------------- */

/* Do the first lines agree with the mark? */
static bool fits(kf_table tb, kf_text t, char shown)
{
    const char *begin = t.at;
    size_t rows = 0;

    kf_csv_next(&tb, &t);
    if (read_first(&tb, &t, shown) != KOFN_OK)
        return false;
    for (; rows < LINES && t.at - begin < REACH && kf_csv_next(&tb, &t); rows++)
        if (kf_csv_row(&tb, &t, NULL) != KOFN_OK)
            return false;
    return rows && (tb.cols > 1 || tb.trailing || tb.mark == KF_NO_MARK);
}

/* Excel's first line, sep=; say, which may be quoted.  It is passed. */
static kofn_status take_sep(kf_table *tb, kf_text *t)
{
    const char *p = t->at, *end = t->end;
    bool quoted = p < end && *p == '"';

    p += quoted;
    if (end - p < 5 || !kf_io_is_word(p, p + 4, "sep=") ||
        !kf_line_ends(p + 5 + (quoted && end - p > 5 && p[5] == '"'), end))
        return KOFN_OK;
    if (!memchr(";,\t| ", p[4], 5)) {
        char shown[KF_SHOWN];

        return kf_fail(KOFN_FORMAT,
                       "line %zu: sep='%s' is no separator that kofn knows: ; "
                       ", | a tab or a blank",
                       t->line, kf_io_show(shown, p + 4, p + 5));
    }
    tb->mark = p[4];
    kf_io_skip_line(t);
    return KOFN_OK;
}

kofn_status kf_csv_tell(kf_table *tb, kf_text *t)
{
    static const char marks[] = {';', ',', '\t', '|', KF_NO_MARK};
    kf_text start, first;
    char shown;

    tb->mark = KF_NO_MARK;
    TRY(take_sep(tb, t));
    start = first = *t;
    if (!kf_csv_next(tb, &first))
        return kf_fail(KOFN_FORMAT, "there is no number in the file");
    shown = tb->mark;
    if (shown == KF_NO_MARK) {
        shown = tb->mark = shown_mark(first);
        for (size_t i = 0; i < sizeof marks && !fits(*tb, start, shown); i++)
            tb->mark = marks[i];
        if (!fits(*tb, start, shown))
            tb->mark = shown;
    }
    kf_csv_next(tb, t);
    return read_first(tb, t, shown);
}
