/* labels.c -- takes a column of labels out of a dense matrix.
 *
 * Replaces the numbers of the kofn_file by a copy without the column. The bytes
 * of the file are only read. */
#include "io.h"
#include "text.h"

static kofn_status no_column(const kf_file *f, const char *label)
{
    char name[KF_SHOWN];

    kf_io_show(name, label, label + strlen(label));
    return kf_fail(
        KOFN_INVAL, "there is no column '%s'; give a number from 1 to %zu%s",
        name, f->dense.cols, f->named ? ", or a name in the first line" : "");
}

/* Finds the column by its number, if it has not been found by its name. */
static kofn_status find(const kf_file *f, const char *label, size_t *column)
{
    const char *at = label, *end = label + strlen(label);

    *column = f->label;
    if (*column)
        return KOFN_OK;
    if (!kf_scan_size(&at, end, column) || at != end || *column == 0 ||
        *column > f->dense.cols)
        return no_column(f, label);
    return KOFN_OK;
}

/* Copies all numbers but those of `column`, which become labels. */
static void split(kf_file *f, const kofn_matrix *from, size_t column)
{
    double *x = f->dense.data, *y = f->labels.data;

    for (size_t i = 0; i < from->rows; i++)
        for (size_t j = 0; j < from->cols; j++) {
            double v = kf_mat_entry(from, i, j);

            if (j + 1 == column)
                *y++ = v;
            else
                *x++ = v;
        }
}

kofn_status kf_io_take_labels(kf_file *f, const char *label)
{
    const kofn_matrix from = f->dense;
    void *old = f->owned;
    char name[KF_SHOWN];
    size_t column;
    kofn_status st;

    if (f->sparse || f->labels.data)
        return kf_fail(KOFN_INVAL,
                       "its labels are not in a column; leave column '%s' out",
                       kf_io_show(name, label, label + strlen(label)));
    TRY(find(f, label, &column));
    if (from.cols == 1)
        return kf_fail(KOFN_INVAL,
                       "the only column has the labels, and there are no "
                       "points");
    f->labels = (kofn_matrix){kf_new(from.rows, sizeof(double)), from.rows, 1,
                              1, KOFN_F64};
    if (!f->labels.data)
        return KOFN_NOMEM;
    f->owned = NULL;
    st = kf_file_dense(f, from.rows, from.cols - 1);
    if (st)
        f->owned = old;
    else {
        split(f, &from, column);
        kf_free(old);
    }
    return st;
}
