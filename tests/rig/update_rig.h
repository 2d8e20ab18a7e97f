/* update_rig.h -- operands that change at workers, and the same changes on one
 * machine. */
#ifndef KF_TEST_UPDATE_RIG_H
#define KF_TEST_UPDATE_RIG_H

#include "operands_rig.h"
#include "sgd.h"

/* ---- the same changes on one machine ------------------------------------- */

/* A and M of each operand, in double precision. */
typedef struct twin {
    double *A[OPERANDS], *M[OPERANDS];
} twin;

static inline void twin_up(twin *t, const held *h)
{
    for (size_t o = 0; o < OPERANDS; o++) {
        t->A[o] = as_doubles(&h->A[o]);
        t->M[o] = numbers(h->A[o].rows * h->A[o].cols, 8);
    }
}

static inline void twin_down(twin *t)
{
    for (size_t o = 0; o < OPERANDS; o++) {
        kf_free(t->A[o]);
        kf_free(t->M[o]);
    }
}

/* Applies the change as the header defines it. */
static inline void twin_step(twin *t, size_t o, const sgd *c,
                             const kofn_matrix *U, const kofn_matrix *V)
{
    size_t m = U->cols, n = V->cols, r = U->rows;
    double *u = as_doubles(U), *v = as_doubles(V);

    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            double *A = &t->A[o][i * n + j], *M = &t->M[o][i * n + j];
            double G = c->decay * *A;

            for (size_t k = 0; k < r; k++)
                G += u[k * m + i] * v[k * n + j];
            *M = c->momentum * *M + G;
            *A -= c->step * (c->nesterov ? G + c->momentum * *M : *M);
            *M *= c->momentum != 0;
        }
    kf_free(u);
    kf_free(v);
}

static inline void change(held *h, twin *t, size_t o, const sgd *c,
                          uint64_t seed)
{
    size_t r = 1 + seed % 7;
    kofn_matrix U = random_matrix(r, h->A[o].rows, h->dtype, 1000 + seed);
    kofn_matrix V = random_matrix(r, h->A[o].cols, h->dtype, 2000 + seed);

    assert_ok(sgd_update(h->job, o, c, &U, &V));
    twin_step(t, o, c, &U, &V);
    held_spoil(&U); /* they are the caller's again */
    held_spoil(&V);
    kf_free(U.data);
    kf_free(V.data);
}

/* Sets the operands that products are compared with. */
static inline void now(held *h, const twin *t)
{
    for (size_t o = 0; o < OPERANDS; o++)
        for (size_t i = 0; i < h->A[o].rows * h->A[o].cols; i++) {
            if (h->dtype == KOFN_F64)
                ((double *)h->is[o].data)[i] = t->A[o][i];
            else
                ((float *)h->is[o].data)[i] = (float)t->A[o][i];
        }
}

static inline double fetched(held *h, const twin *t, size_t o)
{
    size_t n = h->A[o].rows * h->A[o].cols;
    kofn_matrix A = random_matrix(h->A[o].rows, h->A[o].cols, h->dtype, 1);
    double *x, top = 0, bottom = 0;

    held_spoil(&A);
    assert_ok(kofn_fetch(h->job, o, 0, &A, NULL));
    x = as_doubles(&A);
    for (size_t i = 0; i < n; i++) {
        top += (x[i] - t->A[o][i]) * (x[i] - t->A[o][i]);
        bottom += t->A[o][i] * t->A[o][i];
    }
    kf_free(x);
    kf_free(A.data);
    return sqrt(top / bottom);
}

static inline kofn_report all_of(const held *h)
{
    kofn_report r = KOFN_REPORT_INIT;

    kofn_job_totals(h->job, &r);
    return r;
}

static const sgd ways[] = {
    {0.05, 0, 0, false},
    {0.05, 0.1, 0, false},
    {0.05, 0.1, 0.9, false},
    {0.05, 0.1, 0.9, true},
};
#define WAYS (sizeof ways / sizeof *ways)

/* Makes a step of training: all products, and then a change of all operands. */
static inline void train(held *h, twin *t, unsigned step, size_t way,
                         double most)
{
    assert_ok(kofn_step(h->job, step));
    now(h, t);
    for (size_t o = 0; o < OPERANDS; o++) {
        held_right(h, o, most);
        if (!h->one_sided)
            held_left(h, o, most);
    }
    for (size_t o = 0; o < OPERANDS; o++)
        change(h, t, o, &ways[way], 10 * step + o);
}

/* Opens the job and trains `steps` steps. It waits for joiners, and the events
 * of these steps happen. */
static inline void trained(held *h, twin *t, const kofn_fault_event *come,
                           size_t count, unsigned steps)
{
    kofn_options opt = KOFN_OPTIONS_INIT;

    opt.below = KOFN_BELOW_PAUSE;
    opt.late = -1;
    opt.events = come;
    opt.event_count = count;
    held_up(h, &opt);
    twin_up(t, h);
    for (unsigned step = 1; step <= steps; step++)
        train(h, t, step, 3, 1e-8);
}

/* ---- workers that leave and join as operands change ---------------------- */

#define STEPS 12

/* Fills events: in every step a worker leaves and another joins. Original
 * workers leave first, so none of them is there in the end. Returns the number
 * of events. */
static inline size_t replace_all(kofn_fault_event *h, unsigned from,
                                 double fraction)
{
    size_t n = 0;

    for (unsigned s = 0; s < STEPS; s++) {
        h[n++] = (kofn_fault_event){from + s, fraction, KOFN_FAULT_EVENT_LEAVE,
                                    s, 0};
        h[n++] =
            (kofn_fault_event){from + s, fraction, KOFN_FAULT_EVENT_JOIN, 0, 0};
    }
    return n;
}

/* Fills events: `some` workers leave and join at once. Too few are left for a
 * product, so products wait for blocks that are made from those of the others.
 * Returns the number of events. */
static inline size_t replace_some(kofn_fault_event *h, unsigned step,
                                  double fraction, uint32_t some)
{
    size_t n = 0;

    for (uint32_t i = 0; i < some; i++)
        h[n++] =
            (kofn_fault_event){step, fraction, KOFN_FAULT_EVENT_LEAVE, i, 0};
    for (uint32_t i = 0; i < some; i++)
        h[n++] =
            (kofn_fault_event){step, fraction, KOFN_FAULT_EVENT_JOIN, 0, 0};
    return n;
}

#endif
