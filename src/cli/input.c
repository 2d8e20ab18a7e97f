/* input.c -- reads points and labels from files, in double precision.
 *
 * The caller owns what it reads and frees it by input_free. Nothing here may
 * change a file. */
#include "cli.h"

#include <stdlib.h>

int input_points(input *in, kofn_matrix *out, const kofn_sparse **sparse,
                 const char *path)
{
    kofn_status st = kofn_file_open(&in->file, path, KOFN_FILE_READ);
    const kofn_matrix *a = st ? NULL : in->file->matrix.dense;

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

/* Copies sparse rows into dense ones with `cols` columns. */
static int fill(input *in, kofn_matrix *out, const kofn_sparse *s, size_t cols)
{
    double *row;

    TRY_CODE(cli_room(out, s->rows, cols, "the points of --test"));
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
    return sparse ? fill(in, out, sparse, X->cols) : 0;
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
}

const char *cli_share_name(kofn_loss loss)
{
    return loss == KOFN_LOSS_LOGISTIC  ? "accuracy"
           : loss == KOFN_LOSS_POISSON ? "explained_deviance"
                                       : "r2";
}
