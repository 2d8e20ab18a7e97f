/* code_rig.h -- numbers and a product for tests of codes. */
#ifndef KF_TEST_CODE_RIG_H
#define KF_TEST_CODE_RIG_H

#include "support.h"

#include "base/rng.h"
#include "code/code.h"
#include "mat/mat.h"

#include <lapacke.h> /* it has arguments called U */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define U 0x1p-53 /* unit roundoff of double */

/* Sanitizers cost a factor of twenty, so they see a sample. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define EVERY 2
#else
#define EVERY 1
#endif

static inline double *numbers(size_t n)
{
    double *x = kf_zero(n, sizeof *x);

    assert_non_null(x);
    return x;
}

static inline double *normals(size_t n, uint32_t tag)
{
    kf_rng r = kf_rng_stream(11, KF_FOR_DATA, tag, (uint32_t)n);
    double *x = numbers(n);

    for (size_t i = 0; i < n; i++)
        x[i] = kf_rng_normal(&r);
    return x;
}

static const kofn_problem matvec =
    KOFN_PROBLEM_INIT(KOFN_MATVEC, 120, 7, 1, KOFN_F64, false);

static inline int setup(void **state)
{
    (void)state;
    count_allocations();
    kf_blas_single();
    return 0;
}

#endif
