/* bench.h -- parts that the benches share: clocks, medians of repetitions,
 * operands, and failing. Include it before every other header. */
#ifndef KF_BENCH_H
#define KF_BENCH_H

#define _GNU_SOURCE
#include <kofn.h>

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define MOST 101 /* most repetitions */

static inline double now(void)
{
    return kf_clock_seconds();
}

/* Returns the processor time of this thread. */
static inline double cpu_now(void)
{
    return 1e-9 * (double)kf_cpu_time();
}

/* ---- medians ------------------------------------------------------------- */

static inline int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Returns the median and sorts x, so that its ends are the extremes. */
static inline double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, by_value);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

/* Returns the median of at most MOST numbers without changing their order. */
static inline double turn_median(const double *x, int n)
{
    double y[MOST];

    memcpy(y, x, (size_t)n * sizeof *y);
    return median(y, n);
}

/* Returns the median of x / y, taken turn by turn. */
static inline double turn_ratio(const double *x, const double *y, int n)
{
    double r[MOST];

    for (int i = 0; i < n; i++)
        r[i] = x[i] / y[i];
    return median(r, n);
}

/* ---- failing --------------------------------------------------------------
 */

static inline void check(kofn_status st, const char *what)
{
    if (st == KOFN_OK)
        return;
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what,
            kofn_errmsg());
    exit(1);
}

/* Ends the bench if a system call failed. */
static inline void must(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "%s: %s: %s (%s)\n", program_invocation_short_name, what,
            strerror(errno), kofn_errmsg());
    exit(1);
}

/* ---- figures ------------------------------------------------------------- */

/* Reports a figure for comparisons between runs: appends a line of JSON to the
 * file named by KOFN_FIGURES (scripts/bench). The case is the formatted text
 * and identifies the figure within the bench. `better` is "less" or "more".
 * Ratios have the unit "". */
__attribute__((format(printf, 4, 5))) static inline void
figure(double value, const char *unit, const char *better, const char *format,
       ...)
{
    const char *path = getenv("KOFN_FIGURES");
    FILE *f = path && *path && isfinite(value) ? fopen(path, "a") : NULL;
    va_list more;

    if (!f)
        return;
    fprintf(f, "{\"bench\": \"%s\", \"case\": \"",
            program_invocation_short_name);
    va_start(more, format);
    vfprintf(f, format, more);
    va_end(more);
    fprintf(f, "\", \"value\": %.6g, \"unit\": \"%s\", \"better\": \"%s\"}\n",
            value, unit, better);
    fclose(f);
}

/* ---- memory -------------------------------------------------------------- */

/* Keeps freed memory, as the command does (src/cli/process.c). */
static inline void keep_memory(void)
{
    mallopt(M_MMAP_THRESHOLD, INT_MAX);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    mallopt(M_ARENA_MAX, 1);
}

/* ---- operands ------------------------------------------------------------ */

static inline void *need(size_t bytes)
{
    void *p = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);

    if (!p) {
        fprintf(stderr, "%s: no %zu MB of memory\n",
                program_invocation_short_name, bytes / 1000000);
        exit(1);
    }
    return p;
}

/* Returns n numbers; their values do not matter. */
static inline double *numbers(size_t n)
{
    double *x = need(n * sizeof *x);

    for (size_t i = 0; i < n; i++)
        x[i] = (double)(i % 1013) * 1e-3 - 0.5;
    return x;
}

/* ---- the BLAS ------------------------------------------------------------ */

/* Restarts every bench with the fastest OpenBLAS kernels for this processor,
 * as the command does, and prints what computes. A bench without BLAS defines
 * BENCH_NO_BLAS. */
#ifndef BENCH_NO_BLAS
__attribute__((constructor)) static void choose_blas(int argc, char **argv)
{
    kofn_machine m = KOFN_MACHINE_INIT;

    (void)argc;
    kofn_machine_info(&m);
    if (m.coretype && !getenv("OPENBLAS_CORETYPE") &&
        setenv("OPENBLAS_CORETYPE", m.coretype, 1) == 0)
        execv("/proc/self/exe", argv);
    fprintf(stderr, "%s: %s%s%s\n", program_invocation_short_name, m.blas,
            *m.advice ? ": " : "", m.advice);
}
#endif

/* Sets OpenBLAS's threads; other libraries are left as they are. */
static inline void blas_threads(int n)
{
    void *found = dlsym(RTLD_DEFAULT, "openblas_set_num_threads");
    void (*set)(int);

    memcpy(&set, &found, sizeof set);
    if (found)
        set(n);
}

#endif
