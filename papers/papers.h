/* papers.h -- what the papers that are computed here share.
 *
 * They stand on the public interface of libkofn, and on two headers of a few
 * lines, base/mix.h and base/clock.h.  Every draw comes from the seed and the
 * names of what it is for, so that schemes that are compared meet the same
 * fault model.
 */
#ifndef PAPERS_H
#define PAPERS_H

#include <kofn.h>

#include <math.h>

#include "base/mix.h"

/* ---- dice ---------------------------------------------------------------- */

/* splitmix64 (Steele, Lea, Flood, 2014). */
typedef struct dice {
    uint64_t state;
} dice;

static inline uint64_t dice_roll(dice *d)
{
    return kf_next64(&d->state);
}

static inline dice dice_for(uint64_t seed, uint64_t i, uint64_t j)
{
    dice d = {seed};

    d.state = dice_roll(&d) ^ i;
    d.state = dice_roll(&d) ^ j;
    d.state = dice_roll(&d);
    return d;
}

/* [0, 1) */
static inline double dice_uniform(dice *d)
{
    return (double)(dice_roll(d) >> 11) * 0x1p-53;
}

static inline double dice_normal(dice *d)
{
    double u = dice_uniform(d), v = dice_uniform(d);

    return sqrt(-2 * log1p(-u)) * cos(6.283185307179586477 * v);
}

/* Mean 1. */
static inline double dice_exponential(dice *d)
{
    return -log1p(-dice_uniform(d));
}

/* rows x cols normal numbers into x; what is behind them. */
double *dice_matrix(uint64_t seed, uint64_t which, size_t rows, size_t cols,
                    double *x);

/* ---- folders (folder.c) -------------------------------------------------- */

/* A new one where temporary files go; path[0] == 0: there is none. */
kofn_status papers_folder_make(char *path, size_t room);
/* With the files in it. */
void papers_folder_remove(const char *path);

/* ---- numbers (numbers.c) ------------------------------------------------- */

/* Keeps the message for kofn_errmsg and returns st. */
kofn_status papers_fail(kofn_status st, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
#define PAPERS_TRY(call)                                                       \
    do {                                                                       \
        kofn_status try_status_ = (call);                                      \
        if (try_status_ < 0)                                                   \
            return try_status_;                                                \
    } while (0)

/* How far a is from b, by the size of b. */
double papers_distance(const double *a, const double *b, size_t n);
/* For qsort: doubles from the least on. */
int papers_ascending(const void *a, const void *b);
/* Of numbers, which are put in order. */
double papers_median(double *x, size_t n);
/* A share of the published size, as a multiple of `step`, one at least. */
size_t scaled_size(double scale, size_t published, size_t step);
kofn_matrix as_matrix(const double *x, size_t rows, size_t cols);

static inline size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static inline size_t ceil_div(size_t a, size_t b)
{
    return a / b + (a % b != 0);
}

#endif
