/* put_rig.h -- several products in flight on one job. Each is compared with
 * the plain product. */
#ifndef KF_TEST_PUT_RIG_H
#define KF_TEST_PUT_RIG_H

#include "trials.h"

#include "code/code.h"

/* ---- products in flight -------------------------------------------------- */

typedef struct flight {
    rig one[KOFN_OPEN_MOST];
    uint32_t number[KOFN_OPEN_MOST];
    size_t open;
} flight;

static inline void put(flight *f, const rig *r, uint32_t number)
{
    size_t i = f->open++;

    f->one[i] = rig_beside(r, number);
    assert_ok(kofn_put(r->job, &f->one[i].x, &f->one[i].y, &f->number[i]));
    assert_int_equal(f->number[i], number);
    /* the job has a copy of the input */
    memset(f->one[i].x.data, 0xff,
           f->one[i].x.rows * f->one[i].x.cols *
               (f->one[i].x.dtype == KOFN_F64 ? 8 : 4));
}

/* Makes the input again, because its norm is needed. */
static inline void renew(rig *one, const rig *r, uint32_t number)
{
    rig again = rig_beside(r, number);

    kf_free(one->x.data);
    one->x = again.x;
    kf_free(again.y.data);
    kf_free(again.want);
}

static inline void forget(flight *f, size_t i)
{
    rig_put_away(&f->one[i]);
    f->one[i] = f->one[--f->open];
    f->number[i] = f->number[f->open];
}

static inline void take(flight *f, const rig *r, size_t i, double most,
                        kofn_report *rep)
{
    double error;

    assert_ok(kofn_take(r->job, f->number[i], KOFN_NEVER, rep));
    renew(&f->one[i], r, f->number[i]);
    error = rig_error(&f->one[i]);
    if (!(error <= most))
        fail_msg("%s, product %u: error %g", r->plan->spec, f->number[i],
                 error);
    assert_int_equal(rep->rounds, 1);
    forget(f, i);
}

static inline void cancel(flight *f, const rig *r, size_t i)
{
    assert_ok(kofn_cancel(r->job, f->number[i]));
    forget(f, i);
}

/* Computes `products` products, up to `most` at once, taken in any order. One
 * in `cancels` is cancelled instead. 0 means that none is. */
static inline void fly(const rig *r, uint32_t products, size_t most,
                       double error, uint32_t cancels, kf_rng *rng,
                       kofn_report *sum)
{
    uint32_t next = 1, cancelled = 0;
    flight f = {.open = 0};

    *sum = (kofn_report)KOFN_REPORT_INIT;
    while (next <= products || f.open > 0) {
        kofn_report rep = KOFN_REPORT_INIT;
        size_t i;

        if (next <= products && f.open < most &&
            (f.open == 0 || kf_rng_below(rng, 3))) {
            put(&f, r, next++);
            continue;
        }
        i = kf_rng_below(rng, f.open);
        if (cancels && kf_rng_below(rng, cancels) == 0) {
            cancel(&f, r, i);
            cancelled++;
            continue;
        }
        take(&f, r, i, error, &rep);
        sum->corrupt += rep.corrupt;
        sum->left += rep.left;
        sum->late += rep.late;
    }
    kofn_job_totals(r->job, sum);
    assert_int_equal(sum->rounds, products - cancelled);
}

/* ---- faults -------------------------------------------------------------- */

/* Returns a job with a straggler, two leavers, a joiner and a faulty worker. */
static inline rig_kind troubled(kofn_options *o)
{
    static const kofn_fault_event events[] = {
        {2, 0, KOFN_FAULT_EVENT_SLOW, 1, 8},
        {3, 0.3, KOFN_FAULT_EVENT_CORRUPT, 2, 0},
        {6, 0.4, KOFN_FAULT_EVENT_LEAVE, 5, 0},
        {9, 0, KOFN_FAULT_EVENT_JOIN, 0, 0},
        {14, 0.2, KOFN_FAULT_EVENT_LEAVE, 0, 0},
        {16, 0, KOFN_FAULT_EVENT_NORMAL, 1, 0}};

    *o = with_events(events, sizeof events / sizeof *events);
    o->errors = KOFN_ERRORS_PROBABILISTIC;
    return (rig_kind){.spec = "elastic:k=3",
                      .workers = 9,
                      .m = 420,
                      .n = 30,
                      .p = 2,
                      .opt = o};
}

static inline void only_the_faulty(const kofn_report *sum)
{
    for (size_t w = 0; w < sum->workers; w++)
        assert_true(w == 2 || sum->located[w] == 0);
}

#endif
