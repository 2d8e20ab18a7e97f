/* papers.h -- parts that the computed papers share.
 *
 * They use the public interface of libkofn and two short headers, base/mix.h
 * and base/clock.h. Every draw depends on the seed and on the names of its
 * purpose. So compared schemes meet the same faults. */
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

/* Returns a number in [0, 1). */
static inline double dice_uniform(dice *d)
{
    return (double)(dice_roll(d) >> 11) * 0x1p-53;
}

static inline double dice_normal(dice *d)
{
    double u = dice_uniform(d), v = dice_uniform(d);

    return sqrt(-2 * log1p(-u)) * cos(6.283185307179586477 * v);
}

/* Returns an exponential number with mean 1. */
static inline double dice_exponential(dice *d)
{
    return -log1p(-dice_uniform(d));
}

/* Writes rows x cols normal numbers into x. Returns the place behind them. */
double *dice_matrix(uint64_t seed, uint64_t which, size_t rows, size_t cols,
                    double *x);

/* ---- folders (folder.c) -------------------------------------------------- */

/* Makes a new folder where temporary files go; path[0] == 0: it failed. */
kofn_status papers_folder_make(char *path, size_t room);
/* Removes the folder with its files. */
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

/* Returns the distance of a from b, relative to the size of b. */
double papers_distance(const double *a, const double *b, size_t n);
/* Compares doubles for qsort, ascending. */
int papers_ascending(const void *a, const void *b);
/* Returns the median; sorts x. */
double papers_median(double *x, size_t n);
/* Returns `scale` times the published size, rounded to a multiple of `step`,
 * at least one step. */
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
