/* numbers.c -- sizes, matrices, medians and messages for several papers. */
#include "papers.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

kofn_status papers_fail(kofn_status st, const char *fmt, ...)
{
    char words[500];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(words, sizeof words, fmt, ap);
    va_end(ap);
    return kofn_say(st, "%s", words);
}

double papers_distance(const double *a, const double *b, size_t n)
{
    double off = 0, size = 0;

    for (size_t i = 0; i < n; i++) {
        off += (a[i] - b[i]) * (a[i] - b[i]);
        size += b[i] * b[i];
    }
    return size > 0 ? sqrt(off / size) : sqrt(off);
}

int papers_ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

double papers_median(double *x, size_t n)
{
    qsort(x, n, sizeof *x, papers_ascending);
    return (x[(n - 1) / 2] + x[n / 2]) / 2;
}

size_t scaled_size(double scale, size_t published, size_t step)
{
    size_t n = (size_t)(scale * (double)published / (double)step + 0.5);

    return (n ? n : 1) * step;
}

double *dice_matrix(uint64_t seed, uint64_t which, size_t rows, size_t cols,
                    double *x)
{
    for (size_t i = 0; i < rows; i++) {
        dice d = dice_for(seed, which, i);

        for (size_t j = 0; j < cols; j++)
            *x++ = dice_normal(&d);
    }
    return x;
}

kofn_matrix as_matrix(const double *x, size_t rows, size_t cols)
{
    union {
        const double *given;
        void *kept;
    } data = {x};

    return (kofn_matrix){data.kept, rows, cols, cols, KOFN_F64};
}
