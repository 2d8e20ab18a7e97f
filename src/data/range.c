/* range.c -- numbers near the end of their range.
 *
 * A code mixes numbers, and a mixture may be larger than any number of the
 * plain product.  If that could leave the range, operands are multiplied by
 * powers of two, and the decoded result is multiplied back.  This is exact
 * except for elements so small, relative to the largest, that no mixture keeps
 * them.  Operands of very small numbers are treated in the same way, because
 * mixtures would lose digits at the lower end.
 *
 * If the sum of the coefficients exceeds the reciprocal of the rounding unit,
 * no digit of a result is right.  So ROOM binary digits are enough for every
 * useful code.  If the plain product fits the range, so does the coded one.
 *
 * Owns nothing: the factor of an operand is in its kf_resident.  Factors are
 * powers of two; a number that cannot be restored gives KOFN_NONFINITE. */
#include "data.h"

#include "code/operation.h"

#include <assert.h>
#include <float.h>
#include <limits.h>
#include <math.h>

#define ROOM_F64 54 /* binary digits */
#define ROOM_F32 25
#define TOP_F64 (DBL_MAX_EXP - ROOM_F64)
#define TOP_F32 (FLT_MAX_EXP - ROOM_F32)

/* Returns e with x <= 2^e. */
static int exponent(double x)
{
    int e;

    frexp(x, &e);
    return e;
}

/* Returns the power of two that moves numbers up to 2^e away from the lower end
 * of the range, so that they keep their digits. */
static int up(int e, kofn_dtype dtype)
{
    int low = dtype == KOFN_F64 ? KF_MAT_TINY_F64 : KF_MAT_TINY_F32;
    int end = dtype == KOFN_F64 ? DBL_MAX_EXP - 4 : FLT_MAX_EXP - 4;

    if (e > low)
        return 0;
    return -e < end ? -e : end;
}

static double power(int scaled, int excess)
{
    return ldexp(1, scaled - (excess > 0 ? excess : 0));
}

double kf_range_resident(double most, double terms, kofn_dtype dtype)
{
    int scaled = most > 0 ? up(exponent(most), dtype) : 0;

    assert(terms >= 1);
    return power(scaled, exponent(most) + scaled + exponent(terms) -
                             (dtype == KOFN_F64 ? TOP_F64 : TOP_F32));
}

/* Returns the exponent of the product's elements with an input of elements up
 * to `most`. */
static int exponent_of_product(const kofn_plan *use, const kf_resident *r,
                               double most)
{
    const kofn_problem *pb = &use->layout.problem;
    int product = (int)use->op->factors * exponent(r->most * r->by);

    if (use->op->over & KF_OVER_COLS)
        product += exponent((double)pb->n);
    if (use->op->over & KF_OVER_ROWS)
        product += exponent((double)pb->m);
    return product + exponent(most);
}

/* Returns the largest exponent that has to fit.  The plain product has no
 * larger numbers; here it is multiplied by the factor of A.  If rows or columns
 * are equilibrated, the limit is unknown, and the result is a very large
 * number. */
static int farthest(const kofn_plan *use, const kf_resident *r)
{
    bool wide = use->layout.problem.dtype == KOFN_F64;
    int end = wide ? TOP_F64 + ROOM_F64 : TOP_F32 + ROOM_F32;

    if (r->scaled)
        return INT_MAX / 2;
    return r->by > 1 ? end + (int)use->op->factors * ilogb(r->by) : end;
}

double kf_range_input(const kofn_plan *use, const kf_resident *r, double most)
{
    kofn_dtype dtype = use->layout.problem.dtype;
    int scaled = most > 0 ? up(exponent(most), dtype) : 0;
    int in = exponent(most) + scaled;
    int product = exponent_of_product(use, r, most) + scaled;

    if (use->op->factors == 0) /* not linear in its input */
        return 1;
    if (product > farthest(use, r) + scaled)
        product = farthest(use, r) + scaled;
    return power(scaled, (in > product ? in : product) -
                             (dtype == KOFN_F64 ? TOP_F64 : TOP_F32));
}

bool kf_range_has_room(const kofn_plan *use, const kf_resident *r, double most)
{
    return use->op->factors > 0 &&
           exponent_of_product(use, r, most) <= farthest(use, r);
}

double kf_range_back(const kofn_plan *use, const kf_resident *r, double by)
{
    assert(by > 0);
    for (unsigned i = 0; i < use->op->factors; i++)
        by *= r->by;
    return 1 / by;
}

kofn_status kf_range_row(const kf_resident *r, const kf_row *row)
{
    bool wide = r->plan->layout.problem.dtype == KOFN_F64;
    double sum = 0;

    for (size_t e = 0; e < row->n; e++)
        sum += fabs(row->val[e]);
    if (sum * (r->most * r->by) < (wide ? DBL_MAX : FLT_MAX) / 2)
        return KOFN_OK;
    return kf_fail(KOFN_NONFINITE,
                   "the coefficients of a block add up to %g, "
                   "and A has elements up to %g: mixtures may not fit into "
                   "float%d; divide A by a power of two",
                   sum, r->most, wide ? 64 : 32);
}

void kf_range_multiply(const kofn_matrix *a, double by)
{
    for (size_t i = 0; i < a->rows && by != 1; i++)
        for (size_t j = 0; j < a->cols; j++)
            kf_mat_put(a, i, j, kf_mat_entry(a, i, j) * by);
}

static bool any_digits(const int *digits, size_t n)
{
    bool any = false;

    for (size_t i = 0; digits && i < n; i++)
        any |= digits[i] != 0;
    return any;
}

kofn_status kf_range_restore(const kofn_matrix *out, const kf_back *back)
{
    if (kf_mat_check_finite(out, "") != KOFN_OK)
        return kf_fail(KOFN_NONFINITE, "the result holds NaN or infinity");
    if (any_digits(back->row, out->rows) || any_digits(back->col, out->cols))
        kf_scaling_divide(out, back->row, back->col, back->by);
    else if (back->by != 1)
        kf_range_multiply(out, back->by);
    else
        return KOFN_OK;
    return kf_mat_check_finite(out, "") != KOFN_OK
               ? kf_fail(KOFN_NONFINITE,
                         "the result has elements that float%d "
                         "cannot hold; divide an operand by a power of two",
                         out->dtype == KOFN_F64 ? 64 : 32)
               : KOFN_OK;
}
