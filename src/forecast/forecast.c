/* forecast.c -- forecasts of one job, and of a job under all codes.
 *
 * Owns plans and lists during a call; the list of forecasts is the caller's. */
#include "candidates.h"
#include "dry.h"

#include "base/number.h"
#include "code/code.h"
#include "code/operation.h"
#include "mat/mat.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* A first, short simulation of each candidate decides which ones are simulated
 * in full. Large fleets have fewer of both. */
#define SHORT 6
/* Rounds that are simulated at most. */
#define MOST 10000u
#define FINALISTS 24
#define FEW 6
#define LARGE 64

/* ---- one job ------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double quantile(const double *x, unsigned n, double q)
{
    return n ? x[kf_min((size_t)(q * n), n - 1)] : 0;
}

/* Completes the options: the costs are those of this machine unless given. */
static kofn_status complete(kofn_forecast_options *o, kofn_costs *costs,
                            const kofn_problem *pb, size_t workers,
                            const kofn_forecast_options *given)
{
    *o = (kofn_forecast_options)KOFN_FORECAST_OPTIONS_INIT;
    TRY(kf_given(o, sizeof *o, given, "KOFN_FORECAST_OPTIONS_INIT"));
    *costs = (kofn_costs)KOFN_COSTS_INIT;
    if (o->costs)
        TRY(kf_given(costs, sizeof *costs, o->costs, "KOFN_COSTS_INIT"));
    else
        TRY(kofn_costs_measure(costs, pb, workers));
    o->costs = costs;
    if (o->rounds == 0)
        o->rounds = 1;
    return KOFN_OK;
}

static void plainly(kofn_forecast *f, const kofn_problem *pb,
                    const kofn_forecast_options *o)
{
    double work = kf_dry_plain(pb, o->part);

    f->round50 = f->round90 = f->round99 = 1e-9 * work * o->costs->plain;
    f->total = f->round50 * o->rounds;
    f->memory =
        kf_operation_of(pb->op)->factors == 0
            ? o->data
            : (double)pb->m * (double)pb->n * (double)kf_dtype_size(pb->dtype);
    f->work = 1;
}

/* Returns how many faulty workers can be found, by keys where there are some
 * and else by comparing. */
static size_t most_faulty(const kf_operation *op, size_t spare)
{
    if (op->factors == 1 && !op->stream)
        return spare;
    return spare > 0 ? spare - 1 : 0;
}

static kofn_status describe(kofn_forecast *f, const kofn_plan *plan,
                            double data)
{
    kofn_plan_info info = KOFN_PLAN_INFO_INIT;

    TRY(kofn_plan_describe(plan, false, &info));
    kf_format(f->spec, sizeof f->spec, "%s", info.spec);
    f->memory = kf_dry_block(plan, data);
    f->survives = plan->workers - kf_min(plan->workers, info.threshold);
    f->faulty = most_faulty(plan->op, f->survives);
    return KOFN_OK;
}

/* Simulates the job with this plan. It counts rounds beyond MOST like the
 * others. */
static kofn_status simulate(kofn_forecast *f, const kofn_plan *plan,
                            const kofn_forecast_options *o)
{
    const kofn_problem *pb = &plan->layout.problem;
    double more = o->rounds > MOST ? (double)o->rounds / MOST : 1, rounds;
    kofn_forecast_options opt = *o;
    kf_dry_times t;
    kofn_status st;

    opt.rounds = o->rounds < MOST ? o->rounds : MOST;
    st = kf_dry_run(&t, plan, &opt);
    rounds = t.rounds ? t.rounds : 1;
    if (!st) {
        f->status = t.status;
        f->place = t.place;
        f->total = t.rest;
        f->error = t.error;
        f->sent = t.sent * more;
        f->received = t.received * more;
        f->work = t.work / (kf_dry_plain(pb, o->part) * rounds);
        for (unsigned r = 0; r < t.rounds; r++)
            f->total += t.round[r];
        f->total = t.place + f->total * more;
        qsort(t.round, t.rounds, sizeof *t.round, ascending);
        f->round50 = quantile(t.round, t.rounds, 0.5);
        f->round90 = quantile(t.round, t.rounds, 0.9);
        f->round99 = quantile(t.round, t.rounds, 0.99);
    }
    kf_free(t.round);
    return st;
}

static kofn_status forecast(kofn_forecast *f, const kofn_problem *pb,
                            const char *spec, size_t workers,
                            const kofn_forecast_options *o)
{
    kofn_plan *plan;
    kofn_status st;

    *f = (kofn_forecast)KOFN_FORECAST_INIT;
    if (!*spec) {
        plainly(f, pb, o);
        return KOFN_OK;
    }
    TRY(kofn_plan_new(&plan, pb, spec, workers, 1));
    st = describe(f, plan, o->data);
    if (!st)
        st = simulate(f, plan, o);
    kofn_plan_free(plan);
    return st;
}

kofn_status kofn_forecast_job(kofn_forecast *out, const kofn_problem *pb,
                              const char *spec, size_t workers,
                              const kofn_forecast_options *opt)
{
    kofn_forecast_options o;
    kofn_costs costs;
    kofn_forecast f;

    TRY(kf_begun(out, "KOFN_FORECAST_INIT"));
    TRY(kf_dry_check(pb, workers));
    TRY(complete(&o, &costs, pb, workers, opt));
    TRY(forecast(&f, pb, spec, workers, &o));
    kf_give(out, &f, sizeof f);
    return KOFN_OK;
}

/* ---- all codes ----------------------------------------------------------- */

/* True if workers have different speeds. */
static bool is_uneven(const kofn_forecast_options *o)
{
    return o->faults && (o->faults->spread > 0 || o->faults->straggle > 0 ||
                         o->faults->pattern);
}

/* True if the forecast keeps what the options demand. */
static bool suits(const kofn_forecast *f, const kofn_forecast_options *o)
{
    return !(o->memory > 0 && f->memory > o->memory) &&
           f->faulty >= o->faulty && f->survives >= o->survive;
}

/* True if b is not worse than a in anything, and better in something. Of two
 * equal ones the first is better. */
static bool dominated(const kofn_forecast *a, const kofn_forecast *b)
{
    if (a->status || b->status)
        return a->status && !b->status;
    if (b->total > a->total || b->memory > a->memory ||
        b->survives < a->survives || b->faulty < a->faulty)
        return false;
    return b->total < a->total || b->memory < a->memory ||
           b->survives > a->survives || b->faulty > a->faulty || b < a;
}

static int by_total(const void *a, const void *b)
{
    const kofn_forecast *x = a, *y = b;

    if (!x->status != !y->status)
        return x->status ? 1 : -1;
    return (x->total > y->total) - (x->total < y->total);
}

/* Removes what is dominated, and sorts the rest. */
static size_t leave_best(kofn_forecast *f, size_t n)
{
    bool *out = kf_zero(n, sizeof *out);
    size_t kept = 0;

    for (size_t i = 0; out && i < n; i++)
        for (size_t j = 0; j < n && !out[i]; j++)
            out[i] = dominated(&f[i], &f[j]);
    for (size_t i = 0; i < n; i++)
        if (!out || !out[i])
            f[kept++] = f[i];
    kf_free(out);
    qsort(f, kept, sizeof *f, by_total);
    return kept;
}

/* Returns the number of rounds of a first, short simulation. */
static unsigned few_rounds(const kofn_forecast_options *o, size_t workers)
{
    unsigned few = workers > LARGE ? 2 : SHORT;

    return few < o->rounds ? few : o->rounds;
}

/* Simulates a few rounds of one candidate. Sets *fits to false if no such job
 * is possible, or if it is not asked for. */
static kofn_status glance(kofn_forecast *f, const kofn_problem *pb,
                          const char *spec, size_t workers,
                          const kofn_forecast_options *o, bool *fits)
{
    kofn_forecast_options few = *o;
    kofn_plan *plan;
    kofn_status st = kofn_plan_new(&plan, pb, spec, workers, 1);

    *fits = false;
    if (st) /* KOFN_SHAPE: the problem itself is impossible */
        return st == KOFN_NOMEM || st == KOFN_SHAPE ? st : KOFN_OK;
    few.rounds = few_rounds(o, workers);
    *f = (kofn_forecast)KOFN_FORECAST_INIT;
    st = describe(f, plan, o->data);
    if (!st && suits(f, o)) {
        *fits = true;
        st = simulate(f, plan, &few);
        f->total += (o->rounds - few.rounds) * f->round50;
        kf_format(f->spec, sizeof f->spec, "%s", spec);
    }
    kofn_plan_free(plan);
    return st;
}

static kofn_status glance_at_all(kofn_forecast *f, size_t *count,
                                 const kofn_problem *pb, size_t workers,
                                 const kofn_forecast_options *o)
{
    kf_candidates c;
    kofn_status st = kf_candidates_list(&c, pb, workers, is_uneven(o));
    size_t n = 0;

    for (size_t i = 0; i < c.count && !st; i++) {
        bool fits;

        st = glance(&f[n], pb, c.spec[i], workers, o, &fits);
        n += !st && fits;
    }
    kf_candidates_free(&c);
    *count = n;
    return st;
}

/* Completes the name of a scheme. */
static kofn_status name(kofn_forecast *f, const kofn_problem *pb,
                        size_t workers, const kofn_forecast_options *o)
{
    kofn_plan *plan;
    kofn_status st;

    TRY(kofn_plan_new(&plan, pb, f->spec, workers, 1));
    st = describe(f, plan, o->data);
    kofn_plan_free(plan);
    return st;
}

/* Simulates the finalists in full, unless the first simulation was, and leaves
 * those that keep the deadline. */
static kofn_status finish(kofn_forecast *f, size_t *count,
                          const kofn_problem *pb, size_t workers,
                          const kofn_forecast_options *o)
{
    bool again = few_rounds(o, workers) < o->rounds;
    size_t n = 0;

    for (size_t i = 0; i < *count; i++) {
        char spec[sizeof f->spec];

        f[n] = f[i];

        memcpy(spec, f[i].spec, sizeof spec);
        TRY(again ? forecast(&f[n], pb, spec, workers, o)
                  : name(&f[n], pb, workers, o));
        n += !(o->deadline > 0 && f[n].total > o->deadline);
    }
    *count = n;
    return KOFN_OK;
}

kofn_status kofn_forecast_all(kofn_forecast **out, size_t *count,
                              const kofn_problem *pb, size_t workers,
                              const kofn_forecast_options *opt)
{
    kofn_forecast_options o;
    kofn_costs costs;
    kofn_forecast *f;
    size_t n = 0;
    kofn_status st;

    *out = NULL;
    *count = 0;
    TRY(kf_dry_check(pb, workers));
    TRY(complete(&o, &costs, pb, workers, opt));
    TRY_ZERO(f, 1001);
    st = forecast(&f[0], pb, "", workers, &o);
    if (!st)
        st = glance_at_all(f + 1, &n, pb, workers, &o);
    if (!st) {
        n = kf_min(leave_best(f + 1, n), workers > LARGE ? FEW : FINALISTS);
        st = finish(f + 1, &n, pb, workers, &o);
    }
    if (st) {
        kf_free(f);
        return st;
    }
    *count = 1 + leave_best(f + 1, n);
    *out = f;
    return KOFN_OK;
}
