/* silent.c -- rows that say nothing, since what they are made of is empty.
 *
 * Where an operand has fewer rows or columns than it is cut into parts, some
 * parts are empty, and towards the last strips more of them.  A result that is
 * made of such parts alone is zero whatever was asked, and so agrees with
 * everybody.
 *
 * Owns nothing: pure functions of a plan and a row.  Who asks are the core's
 * checks, which would else count silence as agreement.
 */
#include "code.h"

#include "operation.h"

/* Does part i of so many equal ones of n go beyond the first `lo` of its
 * own? */
static bool goes_on(size_t n, size_t parts, size_t i, size_t lo)
{
    return i * kf_ceil_div(n, parts) + lo < n;
}

/* Has part j of A anything from strip lo on? */
static bool has_block(const kofn_plan *p, size_t group, size_t lo, size_t j)
{
    const kofn_layout *L = &p->layout;
    size_t high = L->cut[0].rows, at = group * high + j % high;

    if (p->op->over & KF_OVER_ROWS) /* strips are no rows of A */
        lo = 0;
    return goes_on(L->problem.m, L->groups * high, at, lo) &&
           goes_on(L->problem.n, L->cut[0].cols, j / high, 0);
}

/* Has part j of the input anything? */
static bool has_input(const kofn_plan *p, size_t j)
{
    const kofn_layout *L = &p->layout;
    size_t rows = kf_size_of(&L->problem, p->op->in.rows);
    size_t cols = kf_size_of(&L->problem, p->op->in.cols);

    return goes_on(rows, L->cut[1].rows, j % L->cut[1].rows, 0) &&
           goes_on(cols, L->cut[1].cols, j / L->cut[1].rows, 0);
}

static bool block_is_empty(const kofn_plan *p, const kf_row *row, size_t group,
                           size_t lo)
{
    for (size_t e = 0; e < row->n; e++)
        if (has_block(p, group, lo, row->col[e]))
            return false;
    return true;
}

static bool input_is_empty(const kofn_plan *p, const kf_row *row)
{
    for (size_t e = 0; e < row->n; e++)
        if (has_input(p, row->col[e]))
            return false;
    return true;
}

/* Parts of A and of the input that have anything from strip lo on. */
static void count_parts(const kofn_plan *p, size_t group, size_t lo,
                        size_t *blocks, size_t *inputs)
{
    *blocks = *inputs = 0;
    for (size_t j = 0; j < p->parts; j++)
        *blocks += has_block(p, group, lo, j);
    for (size_t j = 0; j < p->parts1; j++)
        *inputs += has_input(p, j);
}

bool kf_code_is_sparse_part(const kofn_plan *p, size_t group)
{
    size_t blocks, inputs;

    if (p->op->factors ==
        0) /* parts are numbers that a function is called with */
        return false;
    count_parts(p, group, 0, &blocks, &inputs);
    return p->op->factors > 1 ? blocks < p->parts
                              : 2 * blocks * inputs < p->parts * p->parts1;
}

bool kf_code_has_no_zero_result(const kofn_plan *p, size_t group, size_t lo)
{
    size_t blocks, inputs;

    count_parts(p, group, lo, &blocks, &inputs);
    return p->op->factors == 0 || (blocks == p->parts && inputs == p->parts1);
}

bool kf_code_is_zero_result(const kofn_plan *p, const kf_seat *seat,
                            size_t group, size_t lo)
{
    size_t inner = p->layout.inner;

    for (size_t i = 0; i < p->layout.lanes * inner; i++)
        if (!block_is_empty(p, &seat->E0[i], group, lo) &&
            !(seat->E1 && input_is_empty(p, &seat->E1[i % inner])))
            return false;
    return true;
}
