/* rounding.c -- the relative error of an answer by rounding alone.
 *
 * Owns nothing: pure functions of a plan.  An estimate must not be below usual
 * rounding, or honest results would be refused. */
#include "code.h"

#include "operation.h"

#include <assert.h>
#include <math.h>

/* One rounding changes a number by at most 0.42 u of it, root mean square.  The
 * sum of t numbers, added in any order, has sqrt(t / 2) times that.  Three
 * standard deviations are u sqrt(0.8 t); docs/numerics.md derives it. */
#define EACH_TERM 0.8
/* Added to the terms of the sums.  Encoding, input, product and output each
 * round once.  In double the numbers of D dominate: 24 u in all measurements.
 */
#define START_F32 6.5
#define FACTOR_F32 4.8 /* A' A x: encoding again, A x and a product */
#define START_F64 (24.0 * 24)
/* Returns the number of terms that a worker adds up for one of its results, as
 * if one after another.  Products with a float32 vector are summed in panels
 * (kf_mat_multiply).  Other products may be wider than the problem says. */
static double terms_of(const kofn_layout *L)
{
    const kofn_problem *pb = &L->problem;
    const kf_operation *op = kf_operation_of_layout(L);
    double rows = (double)pb->m / (double)L->cut[0].rows;
    double cols = (double)pb->n / (double)L->cut[0].cols;
    double terms;

    assert(op);
    if (pb->dtype == KOFN_F32 && op->vector && cols > KF_PANEL)
        cols = KF_PANEL + cols / KF_PANEL;
    if (op->factors == 0) /* rounding inside the user's function is unknown */
        return 1;
    if (op->below) /* blocks below each other have more rows */
        return cols + rows * (double)L->inner;
    terms = (op->over & KF_OVER_COLS ? cols : 0) +
            (op->over & KF_OVER_ROWS ? rows : 0);
    return terms * (double)L->inner;
}

/* Returns the rounding of an answer.  The answer is rounded once, whatever the
 * number of averaged results.  Decoding adds up in double, so its own rounding
 * matters only in double. */
double kf_code_rounding(const kofn_layout *L, size_t results)
{
    double terms = terms_of(L);
    bool twice = kf_operation_of_layout(L)->factors > 1;

    if (L->problem.dtype == KOFN_F64)
        return 0x1p-53 *
               sqrt(START_F64 + EACH_TERM * (terms + (double)results));
    return 0x1p-24 * sqrt(START_F32 + twice * FACTOR_F32 + EACH_TERM * terms);
}

/* Scales with the number of terms that the product sums. */
double kf_code_predicted(const kofn_decoder *d, const kofn_plan *of,
                         const kofn_plan *p)
{
    double here, there;

    if (of == p)
        return d->predicted;
    here = kf_code_rounding(&p->layout, d->results);
    there = kf_code_rounding(&of->layout, d->results);
    return d->predicted * kf_larger(here / there, 1);
}
