/* size.c -- what tasks, blocks and messages of a plan come to, from its shapes.
 *
 * Owns nothing, and computes with no numbers of matrices. */
#include "dry.h"

#include "code/code.h"
#include "code/operation.h"
#include "data/kernel.h"

#include <assert.h>
#include <math.h>

#define WORKERS_MOST 100000
#define ROWS_MOST 1024 /* of a product that a worker makes in one piece */

static double bytes_each(const kofn_plan *p)
{
    return (double)kf_dtype_size(p->layout.problem.dtype);
}

double kf_dry_width(const kofn_plan *p)
{
    const kofn_layout *L = &p->layout;
    size_t parts = p->op->left ? L->cut[1].rows : L->cut[1].cols;

    return (double)kf_ceil_div(L->problem.p, kf_max(1, parts));
}

/* Returns the size of a task of a sum. The first submessage needs the values of
 * all parts of the seat. */
static kf_dry_size of_sum(const kofn_plan *p, size_t row, double part)
{
    const kofn_layout *L = &p->layout;
    kofn_plan_info info = KOFN_PLAN_INFO_INIT;
    kf_dry_size s = {0, (double)(L->components * p->span)};

    if (row % L->submessages == 0 && !kofn_plan_describe(p, false, &info))
        s.work = info.load * (part > 0 ? part : (double)L->problem.m);
    s.work += s.elements;
    return s;
}

kf_dry_size kf_dry_task(const kofn_plan *p, size_t row, size_t lo, size_t hi,
                        double part)
{
    const kf_kernel *k = kf_kernel_for(p);
    kf_extent e = kf_extent_of(p);
    double strips = (double)(hi - lo), c = (double)e.components,
           rows = (double)e.rows, cols = (double)e.cols, w = kf_dry_width(p);

    assert(lo <= hi);
    if (p->op->factors == 0)
        return of_sum(p, row, part);
    switch (k->how) {
    case KF_HOW_ROWS:
        return (kf_dry_size){c * strips * cols * w, c * strips * w};
    case KF_HOW_LEFT_ROWS:
        return (kf_dry_size){c * strips * rows * cols, c * strips * cols};
    case KF_HOW_INNER:
        return (kf_dry_size){c * strips * rows * w, rows * w};
    case KF_HOW_LEFT_INNER:
        return (kf_dry_size){c * strips * cols * w, w * cols};
    default: /* both factors of A' A x */
        return (kf_dry_size){2 * c * rows * cols, cols};
    }
}

double kf_dry_stride(const kofn_plan *p)
{
    kf_extent e = kf_extent_of(p);
    double w = kf_dry_width(p), rows = (double)e.rows;

    switch (kf_kernel_for(p)->how) {
    case KF_HOW_ROWS:
        rows = w > 1 ? fmin(rows, ROWS_MOST) : 0;
        return fmax(KF_LOOK_UP_WORK, rows * w * KF_LOOK_UP_DEPTH);
    case KF_HOW_INNER:
        return fmax(KF_LOOK_UP_WORK, rows * w * KF_LOOK_UP_DEPTH);
    default:
        return KF_LOOK_UP_WORK;
    }
}

double kf_dry_block(const kofn_plan *p, double data)
{
    kofn_plan_info info = KOFN_PLAN_INFO_INIT;
    kf_extent e = kf_extent_of(p);

    if (p->op->factors == 0)
        return kofn_plan_describe(p, false, &info) ? 0 : info.storage * data;
    return (double)e.components * (double)e.rows * (double)e.cols *
           bytes_each(p);
}

double kf_dry_input(const kofn_plan *p)
{
    const kofn_problem *pb = &p->layout.problem;

    return (double)kf_size_of(pb, p->op->in.rows) *
           (double)kf_size_of(pb, p->op->in.cols) * bytes_each(p) /
           (double)kf_max(1, p->parts1);
}

double kf_dry_plain(const kofn_problem *pb, double part)
{
    const kf_operation *op = kf_operation_of(pb->op);

    if (op->factors == 0)
        return part > 0 ? part : (double)pb->m;
    return (double)op->factors * (double)pb->m * (double)pb->n * (double)pb->p;
}

kofn_status kf_dry_check(const kofn_problem *pb, size_t workers)
{
    if (!pb)
        return kf_fail(KOFN_INVAL, "the problem is NULL");
    if (!kf_operation_of(pb->op) || !pb->m || !pb->n || !pb->p)
        return kf_fail(KOFN_INVAL,
                       "there is no operation %d with matrices of %zu x %zu "
                       "and %zu x %zu",
                       (int)pb->op, pb->m, pb->n, pb->n, pb->p);
    if (workers > 0 && workers <= WORKERS_MOST)
        return KOFN_OK;
    return kf_fail(KOFN_INVAL, "%zu workers; give 1 to %d", workers,
                   WORKERS_MOST);
}
