/* support.c -- see support.h. */
#include "support.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

double relative_error(const double *a, const double *b, size_t n)
{
    double top = 0, bottom = 0;

    for (size_t i = 0; i < n; i++) {
        top += (a[i] - b[i]) * (a[i] - b[i]);
        bottom += b[i] * b[i];
    }
    if (bottom == 0)
        return top == 0 ? 0 : INFINITY;
    return sqrt(top / bottom);
}

static atomic_long countdown, made, held;

static void *counting(void *ud, void *p, size_t want)
{
    (void)ud;
    if (want == 0) {
        if (p)
            atomic_fetch_sub(&held, 1);
        free(p);
        return NULL;
    }
    atomic_fetch_add(&made, 1);
    if (atomic_load(&countdown) > 0 && atomic_load(&made) >= countdown)
        return NULL;
    atomic_fetch_add(&held, 1);
    return aligned_alloc(64, (want + 63) / 64 * 64);
}

void fail_allocation(long n)
{
    atomic_store(&countdown, n);
    atomic_store(&made, 0);
}

long allocations(void)
{
    return atomic_load(&made);
}

long allocated(void)
{
    return atomic_load(&held);
}

void count_allocations(void)
{

    kofn_set_alloc(counting, NULL);
}

double test_scale(void)
{
    const char *s = getenv("KOFN_TEST_SCALE");

    return s && atof(s) > 0 ? atof(s) : 1;
}
