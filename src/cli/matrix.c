/* matrix.c -- matrices that the command creates: allocation, elements of
 * either type as doubles, comparison, and writing.
 *
 * Owns nothing: the caller frees the data. */
#include "busy.h"
#include "cli.h"

#include "base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int cli_room(kofn_matrix *out, size_t rows, size_t cols, const char *what)
{
    size_t n;

    *out = (kofn_matrix){NULL, rows, cols, cols, KOFN_F64};
    if (!__builtin_mul_overflow(rows, cols, &n))
        out->data = calloc(n ? n : 1, sizeof(double));
    return out->data ? 0
                     : cli_say(EXIT_FAILED, "out of memory for %s, %zu x %zu",
                               what, rows, cols);
}

void cli_copy(const kofn_matrix *from, const kofn_matrix *to)
{
    size_t size = to->dtype == KOFN_F64 ? sizeof(double) : sizeof(float);

    for (size_t i = 0; i < to->rows; i++)
        memcpy((char *)to->data + i * to->ld * size,
               (const char *)from->data + i * from->ld * size, to->cols * size);
}

double cli_element(const kofn_matrix *a, size_t i, size_t j)
{
    return a->dtype == KOFN_F64
               ? ((const double *)a->data)[i * a->ld + j]
               : (double)((const float *)a->data)[i * a->ld + j];
}

int cli_divided(const kofn_matrix *a, double unit, kofn_matrix *out)
{
    double *to;

    TRY_CODE(cli_room(out, a->rows, a->cols, "a copy in double precision"));
    to = out->data;
    for (size_t i = 0; i < a->rows; i++)
        for (size_t j = 0; j < a->cols; j++)
            *to++ = cli_element(a, i, j) / unit;
    return 0;
}

double cli_largest(const kofn_matrix *a)
{
    double most = 0;

    for (size_t i = 0; i < a->rows; i++)
        for (size_t j = 0; j < a->cols; j++) {
            double x = fabs(cli_element(a, i, j));

            if (x > most || isnan(x))
                most = x;
            if (isnan(most))
                return most;
        }
    return most;
}

double cli_relative_error(const kofn_matrix *a, const kofn_matrix *b)
{
    double unit = cli_largest(b); /* keeps squares finite */
    double top = 0, bottom = 0;

    if (unit == 0)
        return cli_largest(a) == 0 ? 0 : (double)INFINITY;
    for (size_t i = 0; i < b->rows; i++)
        for (size_t j = 0; j < b->cols; j++) {
            double want = cli_element(b, i, j) / unit;
            double d = cli_element(a, i, j) / unit - want;

            top += d * d;
            bottom += want * want;
        }
    return sqrt(top / bottom);
}

int cli_wrote(kofn_status st)
{
    return st ? cli_say(EXIT_FAILED, "%s", kofn_errmsg()) : 0;
}

int cli_write_complex(const cli_args *a, const kofn_matrix *out, unsigned dims)
{
    double since = kf_clock_seconds();
    kofn_status st;

    if (!a->output)
        return 0;
    cli_guard(true);
    st = kofn_write_complex(a->output, out, dims);
    cli_guard(false);
    cli_spent(CLI_WRITING, since);
    return cli_wrote(st);
}

int cli_write(const cli_args *a, kofn_operand out, unsigned dims)
{
    double since = kf_clock_seconds();
    kofn_status st;

    if (!a->output)
        return 0;
    cli_guard(true);
    cli_busy("writing", a->output);
    st = kofn_write(a->output, out, dims);
    cli_busy_end();
    cli_guard(false);
    cli_spent(CLI_WRITING, since);
    return cli_wrote(st);
}
