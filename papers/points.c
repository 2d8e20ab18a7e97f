/* points.c -- reads the user's points to train networks with: a file of
 * points, one row each, and a file of labels.
 *
 * Every fourth point is held out: points 3, 7, 11 and so on, counted from 0. */
#include "show.h"

#include <kofn/io.h>

#include <stdlib.h>

#define FOURTH 4
#define LEAST 8
#define MOST_CLASSES 1000

static double at(const kofn_matrix *a, size_t i, size_t j)
{
    size_t k = i * a->ld + j;

    return a->dtype == KOFN_F64 ? ((const double *)a->data)[k]
                                : (double)((const float *)a->data)[k];
}

/* Returns the number of rows of a part: the held-out points, or the others. */
static size_t part_of(size_t rows, bool held)
{
    return held ? rows / FOURTH : rows - rows / FOURTH;
}

/* Copies the rows of a part into new memory. */
static kofn_status copy_part(const kofn_matrix *a, bool held, kofn_matrix *out)
{
    double *x = calloc(part_of(a->rows, held), a->cols * sizeof *x), *to = x;

    *out = as_matrix(x, part_of(a->rows, held), a->cols);
    if (!x)
        return KOFN_NOMEM;
    for (size_t i = 0; i < a->rows; i++)
        for (size_t j = 0; j < a->cols && (i % FOURTH == FOURTH - 1) == held;
             j++)
            *to++ = at(a, i, j);
    return KOFN_OK;
}

static kofn_status open_file(const char *option, const char *path,
                             kofn_file **out, const kofn_matrix **a)
{
    kofn_status st = kofn_file_open(out, path, KOFN_FILE_READ);

    if (st == KOFN_NOMEM)
        return st;
    if (st)
        return papers_fail(KOFN_INVAL, "%s: %s; give a file of numbers", option,
                           kofn_errmsg());
    *a = (*out)->matrix.dense;
    if (!*a)
        return papers_fail(KOFN_INVAL,
                           "%s %s: it holds a sparse matrix; give a dense one",
                           option, path);
    return KOFN_OK;
}

static kofn_status check_labels(const papers_args *a, const kofn_matrix *y,
                                size_t *classes)
{
    *classes = 0;
    for (size_t i = 0; i < y->rows; i++) {
        double label = at(y, i, 0);

        if (!(label >= 0 && label < MOST_CLASSES && label == floor(label)))
            return papers_fail(KOFN_INVAL,
                               "--labels %s: label %zu is %g; give whole "
                               "numbers from 0 to %d",
                               a->labels, i, label, MOST_CLASSES - 1);
        *classes = larger(*classes, (size_t)label + 1);
    }
    if (*classes < 2)
        return papers_fail(KOFN_INVAL,
                           "--labels %s: all labels are 0; give two classes "
                           "at least",
                           a->labels);
    return KOFN_OK;
}

static kofn_status check_sizes(const papers_args *a, const kofn_matrix *X,
                               const kofn_matrix *y)
{
    if (y->cols != 1)
        return papers_fail(KOFN_INVAL,
                           "--labels %s: it has %zu numbers a row; give one "
                           "label a row",
                           a->labels, y->cols);
    if (X->rows != y->rows)
        return papers_fail(KOFN_INVAL,
                           "--labels %s: %zu labels of %zu points in %s; give "
                           "each point a label",
                           a->labels, y->rows, X->rows, a->points);
    if (X->rows < LEAST)
        return papers_fail(KOFN_INVAL,
                           "--points %s: it has %zu points; give %d at least",
                           a->points, X->rows, LEAST);
    return KOFN_OK;
}

static kofn_status split(const papers_args *a, const kofn_matrix *X,
                         const kofn_matrix *y, images *p)
{
    PAPERS_TRY(check_sizes(a, X, y));
    PAPERS_TRY(check_labels(a, y, &p->classes));
    PAPERS_TRY(copy_part(X, false, &p->X));
    PAPERS_TRY(copy_part(y, false, &p->y));
    PAPERS_TRY(copy_part(X, true, &p->test_X));
    return copy_part(y, true, &p->test_y);
}

kofn_status papers_points(const papers_args *a, images *p)
{
    kofn_file *points = NULL, *labels = NULL;
    const kofn_matrix *X = NULL, *y = NULL;
    kofn_status st = open_file("--points", a->points, &points, &X);

    *p = (images){.X = {.data = NULL}};
    if (!st)
        st = open_file("--labels", a->labels, &labels, &y);
    if (!st)
        st = split(a, X, y, p);
    kofn_file_free(points);
    kofn_file_free(labels);
    return st;
}
