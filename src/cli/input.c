/* input.c -- reads points and labels from files, in double precision.
 *
 * The caller owns what it reads and frees it by input_free. Nothing here may
 * change a file. */
#include "busy.h"

#include <math.h>
#include <stdlib.h>

int input_points(input *in, kofn_matrix *out, const kofn_sparse **sparse,
                 const char *path)
{
    const kofn_matrix *a;
    kofn_status st;

    cli_busy("reading", path);
    st = in->label ? kofn_file_open_labelled(&in->file, path, in->label)
                   : kofn_file_open(&in->file, path, KOFN_FILE_READ);
    cli_busy_end();
    a = st ? NULL : in->file->matrix.dense;
    if (st)
        return cli_fail_input(st);
    if (!a) {
        *sparse = in->file->matrix.sparse;
        *out = (kofn_matrix){NULL, (*sparse)->rows, (*sparse)->cols,
                             (*sparse)->cols, KOFN_F64};
        return 0;
    }
    *out = *a;
    if (a->dtype == KOFN_F64)
        return 0;
    TRY_CODE(cli_divided(a, 1, out));
    in->copy = out->data;
    return 0;
}

int input_refuse_sparse(const char *path)
{
    return cli_say(EXIT_USAGE,
                   "%s is sparse, and is to be dense here; write it as .npy or "
                   ".csv",
                   path);
}

void input_column(kofn_matrix *m)
{
    if (m->rows == 1)
        *m = (kofn_matrix){m->data, m->cols, 1, 1, m->dtype};
}

int input_matrix(input *in, kofn_matrix *out, const char *path)
{
    const kofn_sparse *sparse = NULL;
    int code = input_points(in, out, &sparse, path);

    return code || !sparse ? code : input_refuse_sparse(path);
}

int input_fill(input *in, kofn_matrix *out, const kofn_sparse *s, size_t cols)
{
    double *row;

    TRY_CODE(cli_room(out, s->rows, cols, "the points"));
    row = in->copy = out->data;
    for (size_t i = 0; i < s->rows; i++, row += cols)
        for (size_t e = s->ptr[i]; e < s->ptr[i + 1]; e++)
            row[s->col[e]] = s->val[e];
    return 0;
}

int input_like(input *in, kofn_matrix *out, const char *path,
               const kofn_matrix *X, const char *X_path)
{
    const kofn_sparse *sparse = NULL;

    TRY_CODE(input_points(in, out, &sparse, path));
    if (sparse ? out->cols > X->cols : out->cols != X->cols)
        return cli_say(EXIT_USAGE, "%s has %zu columns and %s %zu", path,
                       out->cols, X_path, X->cols);
    return sparse ? input_fill(in, out, sparse, X->cols) : 0;
}

int input_targets(input *in, kofn_matrix *out, const char *path)
{
    const kofn_sparse *sparse = NULL;

    TRY_CODE(input_points(in, out, &sparse, path));
    if (!in->file->labels)
        return sparse ? input_refuse_sparse(path) : 0;
    *out = *in->file->labels;
    return 0;
}

int input_labels(input *in, kofn_matrix *y, const char *path,
                 const kofn_matrix *X, const char *X_path)
{
    TRY_CODE(input_targets(in, y, path));
    if (y->cols == X->rows)
        input_column(y);
    if (y->rows == X->rows && y->cols == 1)
        return 0;
    return cli_say(EXIT_USAGE,
                   "%s is %zu x %zu; %s, %zu x %zu, needs %zu labels", path,
                   y->rows, y->cols, X_path, X->rows, X->cols, X->rows);
}

void input_free(input *in)
{
    kofn_file_free(in->file);
    free(in->copy);
    free(in->classes);
}

int cli_check_label(const cli_args *a, const char *labels)
{
    if (!labels && a->test_y != a->test_X)
        labels = a->test_y;
    if (!a->label || !labels)
        return 0;
    return cli_say(EXIT_USAGE,
                   "--label %s: the labels are in a column of the points; "
                   "leave %s out",
                   a->label, labels);
}

/* ---- two classes --------------------------------------------------------- */

void classes_find(classes *c, const kofn_matrix *y)
{
    double low = HUGE_VAL, high = -HUGE_VAL;

    *c = (classes){{0, 0}};
    for (size_t i = 0; i < y->rows; i++) {
        low = fmin(low, cli_element(y, i, 0));
        high = fmax(high, cli_element(y, i, 0));
    }
    for (size_t i = 0; i < y->rows; i++) {
        double v = cli_element(y, i, 0);

        if (v != low && v != high)
            return;
    }
    if (low < high && (high != 1 || (low != 0 && low != -1)))
        *c = (classes){{low, high}};
}

int classes_apply(const classes *c, input *in, kofn_matrix *y, const char *path)
{
    const kofn_matrix from = *y;

    if (c->label[0] == c->label[1])
        return 0;
    TRY_CODE(cli_room(y, from.rows, 1, "the labels"));
    in->classes = y->data;
    for (size_t i = 0; i < from.rows; i++) {
        double v = cli_element(&from, i, 0);

        if (v != c->label[0] && v != c->label[1])
            return cli_say(
                EXIT_USAGE,
                "%s: label [%zu] is %.17g, and the classes are %.17g "
                "and %.17g",
                path, i, v, c->label[0], c->label[1]);
        in->classes[i] = v == c->label[1];
    }
    return 0;
}

void classes_tell(const classes *c, const char *path)
{
    if (c->label[0] < c->label[1])
        cli_say(0,
                "%s: labels %.17g and %.17g are two classes; probabilities are "
                "those of %.17g",
                path, c->label[0], c->label[1], c->label[1]);
}

const char *cli_share_name(kofn_loss loss)
{
    return loss == KOFN_LOSS_LOGISTIC  ? "accuracy"
           : loss == KOFN_LOSS_POISSON ? "explained_deviance"
                                       : "r2";
}
