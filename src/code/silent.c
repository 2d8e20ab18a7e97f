/* silent.c -- rows with results that are always zero, because their parts are
 * empty.
 *
 * If an operand has fewer rows or columns than parts, some parts are empty;
 * towards the last strips more parts are.  A result made only of such parts is
 * zero for every input.  So it agrees with any other result and proves nothing.
 *
 * Owns nothing: pure functions of a plan and a row.  The checks of the core use
 * them to exclude such results. */
#include "code.h"

#include "operation.h"

#include <assert.h>

/* True if part i of `parts` equal parts of n numbers has more than `lo`
 * numbers. */
static bool goes_on(size_t n, size_t parts, size_t i, size_t lo)
{
    assert(parts > 0);
    return i * kf_ceil_div(n, parts) + lo < n;
}

/* True if part j of A has entries from strip lo on. */
static bool has_block(const kofn_plan *p, size_t group, size_t lo, size_t j)
{
    const kofn_layout *L = &p->layout;
    size_t high = L->cut[0].rows, at = group * high + j % high;

    if (p->op->over & KF_OVER_ROWS) /* strips are not rows of A */
        lo = 0;
    return goes_on(L->problem.m, L->groups * high, at, lo) &&
           goes_on(L->problem.n, L->cut[0].cols, j / high, 0);
}

/* True if part j of the input has entries. */
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

/* Counts the parts of A and of the input that have entries from strip lo on. */
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

    assert(group < p->layout.groups);
    if (p->op->factors == 0) /* parts are numbers passed to a function */
        return false;
    count_parts(p, group, 0, &blocks, &inputs);
    return p->op->factors > 1 ? blocks < p->parts
                              : 2 * blocks * inputs < p->parts * p->parts1;
}

bool kf_code_has_no_zero_result(const kofn_plan *p, size_t group, size_t lo)
{
    size_t blocks, inputs;

    assert(group < p->layout.groups);
    count_parts(p, group, lo, &blocks, &inputs);
    return p->op->factors == 0 || (blocks == p->parts && inputs == p->parts1);
}

bool kf_code_is_zero_result(const kofn_plan *p, const kf_seat *seat,
                            size_t group, size_t lo)
{
    size_t inner = p->layout.inner;

    assert(group < p->layout.groups);
    for (size_t i = 0; i < p->layout.components * inner; i++)
        if (!block_is_empty(p, &seat->E0[i], group, lo) &&
            !(seat->E1 && input_is_empty(p, &seat->E1[i % inner])))
            return false;
    return true;
}
