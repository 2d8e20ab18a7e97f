/* images.c -- points to train networks with: generated, or read from MNIST's
 * files. */
#include "images.h"

#include <kofn/io.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- generated ------------------------------------------------------------
 */

/* Draws one of ten wave patterns, of random strength, with noise. */
static void draw(dice *d, double *x, double *label)
{
    size_t kind = (size_t)(dice_uniform(d) * IMAGES_KINDS);
    double turn = 0.7 * (double)kind, strength = 0.5 + dice_uniform(d) / 2;

    *label = (double)kind;
    for (size_t i = 0; i < IMAGES_PIXELS; i++) {
        double down = (double)(i / 28) / 28 - 0.5,
               right = (double)(i % 28) / 28 - 0.5;
        double wave = sin(9 * (down * cos(turn) + right * sin(turn)) + turn);

        x[i] = strength * (0.5 + 0.5 * wave) + 0.2 * dice_normal(d);
        x[i] = fmin(fmax(x[i], 0), 1);
    }
}

static kofn_status draw_all(kofn_matrix *X, kofn_matrix *y, size_t n,
                            uint64_t seed, uint64_t which)
{
    double *x = calloc(n, IMAGES_PIXELS * sizeof *x),
           *labels = calloc(n, sizeof *labels);

    *X = as_matrix(x, n, IMAGES_PIXELS);
    *y = as_matrix(labels, n, 1);
    if (!x || !labels)
        return KOFN_NOMEM;
    for (size_t i = 0; i < n; i++) {
        dice d = dice_for(seed, which, i);

        draw(&d, x + i * IMAGES_PIXELS, labels + i);
    }
    return KOFN_OK;
}

kofn_status images_make(images *p, size_t train, size_t test, uint64_t seed)
{
    kofn_status st;

    *p = (images){.classes = IMAGES_KINDS};
    st = draw_all(&p->X, &p->y, train, seed, 0);
    return st ? st : draw_all(&p->test_X, &p->test_y, test, seed, 1);
}

void images_free(images *p)
{
    free(p->X.data);
    free(p->y.data);
    free(p->test_X.data);
    free(p->test_y.data);
    *p = (images){.X = {.data = NULL}};
}

/* ---- read ---------------------------------------------------------------- */

/* Copies a, divided by `unit`. */
static kofn_status keep(const kofn_matrix *a, double unit, kofn_matrix *out)
{
    double *x = calloc(a->rows, a->cols * sizeof *x);

    *out = as_matrix(x, a->rows, a->cols);
    for (size_t i = 0; x && i < a->rows; i++)
        for (size_t j = 0; j < a->cols; j++)
            x[i * a->cols + j] =
                ((const double *)a->data)[i * a->ld + j] / unit;
    return x ? KOFN_OK : KOFN_NOMEM;
}

static kofn_status read_one(const char *folder, const char *name, size_t cols,
                            double unit, kofn_matrix *out)
{
    char path[4096];
    kofn_file *file = NULL;
    const kofn_matrix *a;
    kofn_status st;

    if ((size_t)snprintf(path, sizeof path, "%s/%s.gz", folder, name) >=
        sizeof path)
        return papers_fail(KOFN_INVAL, "%.40s...: the name is too long",
                           folder);
    if (access(path, R_OK)) /* try the unpacked name */
        snprintf(path, sizeof path, "%s/%s", folder, name);
    st = kofn_file_open(&file, path, KOFN_FILE_READ);
    a = st ? NULL : file->matrix.dense;
    if (!st && (!a || a->cols != cols || a->dtype != KOFN_F64))
        st = papers_fail(KOFN_FORMAT,
                         "%s: has no %zu numbers a line; give images of 784 "
                         "pixels and a label each",
                         path, cols);
    if (!st)
        st = keep(a, unit, out);
    kofn_file_free(file);
    return st;
}

kofn_status images_read(images *p, const char *folder)
{
    static const char *const names[] = {
        "train-images-idx3-ubyte", "train-labels-idx1-ubyte",
        "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
    kofn_matrix *const to[] = {&p->X, &p->y, &p->test_X, &p->test_y};
    kofn_status st = KOFN_OK;

    *p = (images){.classes = IMAGES_KINDS};
    for (size_t i = 0; i < 4 && !st; i++)
        st = read_one(folder, names[i], i % 2 ? 1 : IMAGES_PIXELS,
                      i % 2 ? 1 : 255, to[i]);
    if (!st && (p->X.rows != p->y.rows || p->test_X.rows != p->test_y.rows))
        st = papers_fail(KOFN_FORMAT,
                         "%s: %zu and %zu images with %zu and %zu labels; give "
                         "each a label",
                         folder, p->X.rows, p->test_X.rows, p->y.rows,
                         p->test_y.rows);
    return st;
}
