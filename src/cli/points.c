/* points.c -- prepares points for regress: adds a column of ones for the
 * intercept, or scales the columns. Converts the weights back.
 *
 * Owns the mean and the scale of each column. Changes the points in the
 * caller's memory. The weights must be converted back before they leave the
 * command. */
#include "cli.h"

#include <math.h>
#include <stdlib.h>

/* Computes mean and standard deviation of column j, relative to its first
 * element. So the deviation of a constant column is exactly 0. */
static void know_column(points *p, const kofn_matrix *X, size_t j)
{
    double m = (double)X->rows, first = cli_element(X, 0, j), off = 0,
           squares = 0;

    for (size_t i = 0; i < X->rows; i++)
        off += (cli_element(X, i, j) - first) / m;
    for (size_t i = 0; i < X->rows; i++) {
        double d = cli_element(X, i, j) - first - off;

        squares += d * d / m;
    }
    p->mean[j] = first + off;
    p->deviation[j] = sqrt(squares);
}

int points_know(points *p, const kofn_matrix *X, bool intercept, bool scale)
{
    *p = (points){.columns = X->cols, .intercept = intercept, .scale = scale};
    p->mean = calloc(X->cols, sizeof *p->mean);
    p->deviation = calloc(X->cols, sizeof *p->deviation);
    if (!p->mean || !p->deviation)
        return cli_say(EXIT_FAILED, "out of memory");
    for (size_t j = 0; j < X->cols; j++)
        know_column(p, X, j);
    return 0;
}

/* Returns the column's mean, or 0 without an intercept: centring columns would
 * then change the model. */
static double origin(const points *p, size_t j)
{
    return p->scale && p->intercept ? p->mean[j] : 0;
}

static double unit(const points *p, size_t j)
{
    return p->scale && p->deviation[j] > 0 ? p->deviation[j] : 1;
}

int points_prepare(const points *p, const kofn_matrix *X, kofn_matrix *out)
{
    size_t wide = p->columns + p->intercept;
    double *x;

    TRY_CODE(cli_room(out, X->rows, wide, "the points"));
    x = out->data;
    for (size_t i = 0; i < X->rows; i++, x += wide) {
        for (size_t j = 0; j < p->columns; j++)
            x[j] = (cli_element(X, i, j) - origin(p, j)) / unit(p, j);
        if (p->intercept)
            x[p->columns] = 1;
    }
    return 0;
}

void points_undo(const points *p, const double *w, double *out)
{
    double before = p->intercept ? w[p->columns] : 0;

    for (size_t j = 0; j < p->columns; j++) {
        out[j] = w[j] / unit(p, j);
        before -= out[j] * origin(p, j);
    }
    if (p->intercept)
        out[p->columns] = before;
}

void points_redo(const points *p, const double *w, double *out)
{
    double after = p->intercept ? w[p->columns] : 0;

    for (size_t j = 0; j < p->columns; j++) {
        out[j] = w[j] * unit(p, j);
        after += w[j] * origin(p, j);
    }
    if (p->intercept)
        out[p->columns] = after;
}

double points_spread(const points *p)
{
    double least = HUGE_VAL, most = 0;

    for (size_t j = 0; p->deviation && j < p->columns && !p->scale; j++)
        if (p->deviation[j] > 0) {
            least = fmin(least, p->deviation[j]);
            most = fmax(most, p->deviation[j]);
        }
    return most > 0 ? most / least : 1;
}

int points_prepare_sparse(points *p, const kofn_sparse *X, bool intercept,
                          kofn_sparse *out)
{
    size_t n = X->ptr[X->rows] + X->rows, *ptr;
    uint32_t *col;
    double *val;

    *p = (points){.columns = X->cols, .intercept = intercept};
    *out = *X;
    if (!intercept)
        return 0;
    out->cols++;
    out->ptr = p->ptr = ptr = calloc(X->rows + 1, sizeof *ptr);
    out->col = p->col = col = calloc(n, sizeof *col);
    out->val = p->val = val = calloc(n, sizeof *val);
    if (!ptr || !col || !val)
        return cli_say(EXIT_FAILED, "out of memory for %zu x %zu points",
                       X->rows, X->cols + 1);
    for (size_t i = 0, e = 0; i < X->rows; i++) {
        for (; e < X->ptr[i + 1]; e++) {
            col[e + i] = X->col[e];
            val[e + i] = X->val[e];
        }
        col[e + i] = (uint32_t)X->cols;
        val[e + i] = 1;
        ptr[i + 1] = e + i + 1;
    }
    return 0;
}

void points_free(points *p)
{
    free(p->mean);
    free(p->deviation);
    free(p->ptr);
    free(p->col);
    free(p->val);
    *p = (points){0};
}
