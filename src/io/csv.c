/* csv.c -- tables of numbers in text.
 *
 * Fields are separated by semicolons, commas, tabs, bars or blanks
 * (csv_tell.c).  The first line has names if none of its fields is a number. It
 * is refused if all of its fields are words for a missing number.  Lines that
 * begin with # and blank lines are skipped.  # behind numbers begins a comment,
 * and a field may be in double quotes (RFC 4180).  Every row may end in a
 * separator.  If commas do not separate fields, they are decimal commas.  But
 * 1,500 could also be 1500, and is refused unless the file decides it.  One
 * column is a vector.
 *
 * The text is read twice: to count and check, then to keep.  Fields are read in
 * place, in the mapped bytes.  A table with two readings is refused.  Fills the
 * kofn_file.
 */
#include "csv.h"

/* Checks all rows and counts them; *t is where they begin. */
static kofn_status count_rows(kf_table *tb, kf_text *t, size_t *rows)
{
    kf_text at;

    TRY(kf_csv_tell(tb, t));
    for (at = *t; kf_csv_next(tb, &at); ++*rows)
        TRY(kf_csv_row(tb, &at, NULL));
    return KOFN_OK;
}

kofn_status kf_csv_part(const kf_input *part, size_t *numbers)
{
    kf_table tb = {.infinite = part->infinite};
    kf_text t = kf_io_text(part->data, part->length);
    size_t rows = 0;

    TRY(count_rows(&tb, &t, &rows));
    *numbers = rows * tb.cols; /* each has a byte at least */
    return KOFN_OK;
}

/* Finds the column of labels, if it is given by its name. */
static kofn_status find_label(const kf_table *tb, const char *label, kf_file *f)
{
    char shown[KF_SHOWN];
    kf_field name;

    f->named = tb->names.at;
    for (size_t j = 1; label && j <= tb->cols && kf_csv_name(tb, j, &name); j++)
        if ((size_t)(name.to - name.from) == strlen(label) &&
            memcmp(name.from, label, strlen(label)) == 0) {
            if (f->label)
                return kf_fail(KOFN_INVAL,
                               "columns %zu and %zu are both named '%s'; "
                               "give a number",
                               f->label, j,
                               kf_io_show(shown, name.from, name.to));
            f->label = j;
        }
    return KOFN_OK;
}

kofn_status kf_csv_read(kf_file *f, const kf_input *in)
{
    kf_table tb = {.infinite = in->infinite};
    kf_text t = kf_io_text(in->data, in->length);
    size_t rows = 0;

    TRY(count_rows(&tb, &t, &rows));
    if (rows == 0)
        return kf_fail(KOFN_FORMAT, "no line of numbers follows the header%s",
                       memchr(in->data, '\r', in->length)
                           ? "; lines must end in \\n or \\r\\n, not \\r"
                           : "");
    TRY(kf_csv_check_commas(&tb));
    TRY(find_label(&tb, in->label, f));
    TRY(kf_file_dense(f, rows, tb.cols));
    f->shown.dims = tb.cols == 1 ? 1 : 2;
    for (size_t r = 0; r < rows; r++) {
        if (!kf_csv_next(&tb, &t))
            return kf_io_changed();
        TRY(kf_csv_row(&tb, &t, (double *)f->owned + r * tb.cols));
    }
    return KOFN_OK;
}
