/* put_rig.h -- several products in flight on one job, each of which is compared
 * with the plain product. */
#ifndef KF_TEST_PUT_RIG_H
#define KF_TEST_PUT_RIG_H

#include "rig.h"

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
    /* what was put is the job's own */
    memset(f->one[i].x.data, 0xff,
           f->one[i].x.rows * f->one[i].x.cols *
               (f->one[i].x.dtype == KOFN_F64 ? 8 : 4));
}

/* The input is read again, for the norm of it. */
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

/* So many products, up to `most` of them at once, taken in any order; one in
 * `cancels` (0: none) is cancelled instead. */
static inline void fly(const rig *r, uint32_t products, size_t most,
                       double error, uint32_t cancels, kf_rng *rng,
                       kofn_report *sum)
{
    uint32_t next = 1, cancelled = 0;
    flight f = {.open = 0};

    *sum = (kofn_report){0};
    while (next <= products || f.open > 0) {
        kofn_report rep;
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

typedef struct trial {
    rig_kind kind;
    double most; /* relative error */
} trial;

/* One of each way that inputs, blocks and answers have. */
static const trial trials[] = {
    {{.spec = "elastic:k=3", .workers = 5, .m = 301, .n = 40, .p = 1}, 1e-11},
    {{.spec = "mds:k=3", .workers = 5, .m = 301, .n = 40, .p = 7}, 1e-11},
    {{.spec = "elastic:k=3,cut=columns",
      .workers = 5,
      .m = 61,
      .n = 100,
      .p = 3},
     1e-11},
    {{.spec = "gpd:m=2,n=1,p=2", .workers = 12, .m = 61, .n = 50, .p = 7},
     1e-9},
    {{.spec = "gc:d=2", .workers = 5, .m = 61, .n = 20, .p = 1, .op = KOFN_SUM},
     1e-9},
    {{.spec = "agc:d=3",
      .workers = 6,
      .m = 61,
      .n = 24,
      .p = 1,
      .op = KOFN_SUM},
     1e-9},
    {{.spec = "mds:k=3",
      .workers = 5,
      .m = 200,
      .n = 90,
      .p = 1,
      .sparse = true},
     1e-11},
    {{.spec = "mds:k=3",
      .workers = 5,
      .m = 300,
      .n = 40,
      .p = 2,
      .dtype = KOFN_F32},
     1e-4},
};

#endif
