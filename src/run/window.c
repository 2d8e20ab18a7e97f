/* window.c -- reads operands that have changed, some strips at a time, to make
 * blocks of them (rebuild.c) or to compare blocks (scrub.c).  No process holds
 * such an operand as a whole.
 *
 * A window borrows the operand's plan.  It owns the strips while they are read,
 * which begins at once.  At most one window is in memory. */
#include "job.h"

#include <assert.h>

/* Returns the plan for whole parts of the window's strips, as if A had no
 * others. */
static kofn_plan shape_of(const kf_window *w, const kofn_plan *p)
{
    const kofn_cut cut = p->layout.cut[0];
    size_t strips = w->to - w->at;
    kofn_plan shape = *p;

    assert(w->at < w->to);
    shape.layout.problem.n =
        kf_ceil_div(shape.layout.problem.n, cut.cols) * cut.cols;
    shape.layout.problem.m = p->layout.groups * cut.rows * strips;
    shape.span = strips;
    return shape;
}

static const kofn_plan *reader(const kofn_job *j, const kf_window *w)
{
    assert(w->operand < j->operands);
    return kf_job_plan(j, (uint32_t)w->operand, KOFN_USE_READ);
}

size_t kf_window_strips(const kofn_job *j, const kf_window *w)
{
    return reader(j, w)->span;
}

/* bytes of a window that cost no more than their messages */
#define LEAST 4096.0

void kf_window_shape(const kofn_job *j, const kf_window *w, size_t *rows,
                     size_t *cols)
{
    kofn_plan shape = shape_of(w, j->held[w->operand].plan);

    *rows = shape.layout.problem.m;
    *cols = shape.layout.problem.n;
}

/* Returns the number of strips that moves the same number of bytes as the last
 * product. */
static size_t width(const kofn_job *j, const kf_window *w)
{
    const kofn_problem *pb = &j->held[w->operand].plan->layout.problem;
    size_t strips = kf_window_strips(j, w);
    double bytes = (double)pb->m * (double)pb->n / (double)strips *
                   (double)kf_dtype_size(pb->dtype);
    double n = kf_larger((double)j->reported.moved, LEAST) / bytes;

    if (n > (double)strips)
        return strips;
    return kf_max((size_t)n, kf_ceil_div(strips, 64));
}

void kf_window_next(const kofn_job *j, kf_window *w)
{
    assert(w->at < kf_window_strips(j, w));
    w->to = kf_min(w->at + width(j, w), kf_window_strips(j, w));
    w->state = 0;
}

kofn_status kf_window_read(kofn_job *j, kf_window *w)
{
    const kofn_plan *use = reader(j, w);
    kofn_plan shape = shape_of(w, use);
    const kofn_problem *pb = &shape.layout.problem;
    double zero = 0;
    kofn_matrix in = {&zero, 1, 1, 1, pb->dtype};
    product *p = kf_job_last_idle(j);

    assert(!w->reading);
    assert(w->to <= kf_window_strips(j, w));
    kf_free(w->into.data);
    w->into = (kofn_matrix){kf_new(pb->m * pb->n, kf_dtype_size(pb->dtype)),
                            pb->m, pb->n, pb->n, pb->dtype};
    if (!w->into.data || !p)
        return KOFN_NOMEM;
    TRY(kf_messages_begin(&p->messages, use, &in, 1));
    kf_job_reset(j, p, use);
    p->operand = (uint32_t)w->operand;
    p->as = KOFN_USE_READ;
    p->measure.sides.state = w->state;
    p->measure.drifts = w == &j->scrub.window;
    p->shape = shape;
    p->lo = w->at;
    p->hi = w->to;
    p->back =
        (kf_back){.by = kf_range_back(use, &j->held[w->operand].resident, 1)};
    p->room = true;
    p->out = w->into;
    kf_job_opened_first(j);
    w->reading = p;
    return kf_job_begin(j, p);
}

void kf_window_close(kofn_job *j, kf_window *w)
{
    product *p = w->reading;

    kf_job_count(j, &(kofn_report){.dropped = p->rep.dropped,
                                   .sent = p->rep.sent,
                                   .received = p->rep.received,
                                   .corrupt = p->rep.corrupt,
                                   .drift = p->rep.drift});
    kf_free(p->end.failure);
    p->end.failure = NULL;
    w->reading = NULL;
    kf_job_close_product(j, p);
}

kofn_status kf_window_resident(const kofn_job *j, kf_window *w,
                               const kofn_plan *plan, kf_resident *out)
{
    const kf_held *held = &j->held[w->operand];
    kofn_status st;

    w->shape = shape_of(w, plan);
    st = kf_resident_dense(out, &w->shape, &w->into);
    out->most = w->state ? held->most[w->state - 1] : held->resident.most;
    out->by = held->resident.by;
    out->lent = true; /* the next window is read into the same memory */
    return st;
}
