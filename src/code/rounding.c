/* rounding.c -- what rounding alone may do to an answer, relative to it.
 *
 * Owns nothing: pure functions of a plan.  An estimate here must not be below
 * what rounding usually does, or honest results would be refused. */
#include "code.h"

#include "operation.h"

#include <math.h>

/* A rounding changes a number by at most 0.42 u of it, root mean square, and
 * the sum of t numbers, added in whatever order, by sqrt(t / 2) times that:
 * three standard deviations are u sqrt(0.8 t).  docs/numerics.md derives it. */
#define EACH_TERM 0.8
/* Beside the sums: what is encoded, taken in and given out is rounded once
 * each, and so is a product; in double it is the numbers of D that count, 24 u
 * in all measurements. */
#define START_F32 6.5
#define FACTOR_F32 4.8 /* A' A x: the block again, A x and another product */
#define START_F64 (24.0 * 24)
/* The number of terms that a worker adds up for one of its results, as if one
 * after another; for a vector of float32 in panels (kf_mat_multiply). */
static double terms_of(const kofn_layout *L)
{
    const kofn_problem *pb = &L->problem;
    const kf_operation *op = kf_operation_of_layout(L);
    double rows = (double)pb->m / (double)L->cut[0].rows;
    double cols = (double)pb->n / (double)L->cut[0].cols;
    double terms;

    if (pb->dtype == KOFN_F32 && pb->p == 1 && cols > KF_PANEL)
        cols = KF_PANEL + cols / KF_PANEL;
    if (op->factors == 0) /* what f adds up is its own affair */
        return 1;
    if (op->below) /* one block below the other makes more rows */
        return cols + rows * (double)L->inner;
    terms = (op->over & KF_OVER_COLS ? cols : 0) +
            (op->over & KF_OVER_ROWS ? rows : 0);
    return terms * (double)L->inner;
}

/* However many results are averaged, the answer is rounded once.  Decoding adds
 * up in double always, so that it shows in double only. */
double kf_code_rounding(const kofn_layout *L, size_t results)
{
    double terms = terms_of(L);
    bool twice = kf_operation_of_layout(L)->factors > 1;

    if (L->problem.dtype == KOFN_F64)
        return 0x1p-53 *
               sqrt(START_F64 + EACH_TERM * (terms + (double)results));
    return 0x1p-24 * sqrt(START_F32 + twice * FACTOR_F32 + EACH_TERM * terms);
}

/* The larger the product, the more is added up. */
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
