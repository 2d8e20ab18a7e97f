/* act.c -- carries out the actions of the core: sends blocks and work, mixes,
 * checks, decodes and delivers.
 *
 * Takes actions one after the other.  Results and buffers belong to the
 * product.  It decides nothing beyond what the actions say. */
#include "job.h"

#include "base/number.h"

#include <assert.h>

static kofn_status do_mix(kofn_job *j, product *p, const kofn_action *a)
{
    kf_stopwatch watch = kf_job_start_work(j, KF_ENCODE);
    kofn_status st = kf_messages_mix(&p->messages, a->decoder, a->lo, a->hi);

    kf_job_end_work(j, watch, "mix");
    return st;
}

static kofn_status do_cancel(kofn_job *j, product *p, const kofn_action *a)
{
    assert(p);
    kf_msg m = {.type = KF_MSG_CANCEL,
                .worker = a->worker,
                .product = a->product,
                .task = a->task};
    kf_slot *s = kf_job_task(p, a->task);

    return s && kf_pace_cancel(j, s) ? KOFN_OK : kf_job_send(j, &m);
}

kofn_status kf_job_evict(kofn_job *j, uint32_t worker)
{
    kf_msg m = {.type = KF_MSG_EVICT, .worker = worker};

    kf_job_count(j, &(kofn_report){.left = 1});
    return kf_job_send(j, &m);
}

/* Returns the results of the tasks of an action; NULL if memory is short.  The
 * caller frees them. */
static kf_source *sources(const product *p, const kofn_action *a)
{
    kf_source *source = kf_new(a->count, sizeof *source);

    for (size_t i = 0; source && i < a->count; i++) {
        const kf_slot *s = kf_job_task(p, a->tasks[i]);

        assert(s && s->result);
        source[i] = (kf_source){&s->result->m, s->lo, s->hi};
    }
    return source;
}

static kofn_status do_decode(kofn_job *j, product *p, const kofn_action *a)
{
    kf_source *source = sources(p, a);
    kofn_status st;

    if (!source)
        return KOFN_NOMEM;
    if (kf_is_stream(j))
        return kf_pair_decode_later(j, p, a, source);
    for (size_t i = 0; p->number == 0 && i < a->count; i++) {
        source[i].lo -= p->lo; /* strips of a window count from its first */
        source[i].hi -= p->lo;
    }
    st = kf_job_decode(j, p, a, source);
    kf_free(source);
    return st;
}

static kofn_status do_check(kofn_job *j, product *p, const kofn_action *a)
{
    kf_source *source = sources(p, a);
    kf_stopwatch watch = kf_job_start_work(j, KF_CHECK);
    kofn_status st = KOFN_NOMEM;

    if (source)
        st = kf_guard_check(
            &j->guard,
            p->pair.first.plan ? &p->pair.first : &j->held[p->operand],
            &p->measure, kf_core_use(j->core, kf_job_use_number(p)), a, source);
    kf_free(source);
    kf_job_end_work(j, watch, "check");
    return st ? st : kf_evidence_receive(j, p, a);
}

/* Refuses an answer that may be less exact than the caller tolerates.  If
 * results were compared, the prediction includes errors below the floor. */
static void refuse_inexact(const kofn_job *j, product *p)
{
    const kofn_report *r = &p->rep;

    if (j->opt.max_error <= 0 || r->predicted <= j->opt.max_error ||
        p->end.odd || p->measure.drifts)
        return;
    p->end.odd = KOFN_UNSTABLE;
    kf_format(p->end.why, sizeof p->end.why,
              "predicted relative error %.1e exceeds max_error %.1e: %.1e by "
              "rounding, %.1e by undetected wrong results; use more workers, "
              "another basis or a larger max_error",
              r->predicted, j->opt.max_error, r->predicted - p->measure.error,
              p->measure.error);
}

/* Adds to the message the reason that a worker gave for its failure, if too
 * few workers answered in time.  The last line of a traceback is what was
 * raised. */
static void tell_failure(const kofn_job *j, product *p, kofn_status st)
{
    char title[KF_TITLE];
    const char *from = p->end.failure, *to, *line;
    size_t n = strlen(p->end.why);

    if (!from || (st != KOFN_TOOFEW && st != KOFN_LATE))
        return;
    for (to = from + strlen(from); to > from && to[-1] == '\n';)
        to--;
    for (line = to; line > from && line[-1] != '\n';)
        line--;
    snprintf(p->end.why + n, sizeof p->end.why - n, "; %s failed: %.*s",
             kf_job_title(j, p->end.failed_by, title), (int)(to - line), line);
}

/* ---- whole products ------------------------------------------------------ */

/* Tests a decoded product by the key of its operand.  If the test fails, *st is
 * KOFN_CORRUPT, and *again says whether to compute the product once more.  The
 * second computation finds workers that are wrong in the same way: it compares
 * more answers or, under KOFN_ERRORS_KEYED, tests each answer. */
static kofn_status test_whole(kofn_job *j, product *p, double noise,
                              kofn_status *st, bool *again)
{
    kf_stopwatch watch = kf_job_start_work(j, KF_CHECK);
    bool agrees;

    TRY(kf_guard_test(&j->held[p->operand], &p->measure, noise, &p->out,
                      &p->back, &agrees));
    kf_job_end_work(j, watch, "check");
    if (agrees)
        return KOFN_OK;
    *again = !p->start.alike && (j->opt.errors == KOFN_ERRORS_PROBABILISTIC ||
                                 j->opt.errors == KOFN_ERRORS_KEYED);
    j->guard.doubt = true;
    *st = KOFN_CORRUPT;
    kf_format(
        p->end.why, sizeof p->end.why,
        "the answers agree with each other but decode to a wrong product: "
        "too many workers are wrong in the same way; %s",
        j->opt.errors == KOFN_ERRORS_DETECT
            ? "run with errors probabilistic or adversarial to find them"
            : "use more workers, or a smaller threshold");
    return KOFN_OK;
}

/* Ends the product: fills in its report, and finishes or restarts it. */
static kofn_status do_deliver(kofn_job *j, product *p, const kofn_action *a)
{
    kofn_status st = a->status;
    bool again = false;

    assert(p->start.tasks);
    if (st == KOFN_OK && p->end.odd)
        again = p->measure.keyed && !p->measure.each; /* a wrong answer may be
                                                         NaN */
    else if (st == KOFN_OK && (p->start.keyed || p->measure.each))
        TRY(test_whole(j, p, a->noise, &st, &again));
    p->start.alike |= again;
    TRY(kf_job_report(j, p, a));
    kf_job_count_late(j, p);
    kf_job_tell_doing(j, true);
    if (st >= 0)
        refuse_inexact(j, p);
    if (a->status < 0) {
        snprintf(p->end.why, sizeof p->end.why, "%s", a->why);
        tell_failure(j, p, st);
    } else if (st == KOFN_OK && p->start.alike && p->rep.corrupt == 0) {
        j->guard.doubt = false; /* no worker is wrong any more */
    }
    again |= p->as == KOFN_USE_PARTS && (st < 0 || p->end.odd);
    if (st == KOFN_CORRUPT && kf_job_overflows(j, p))
        st = KOFN_NONFINITE;
    if (kf_is_stream(j))
        kf_pair_over(j, p, st);
    else if (again)
        kf_job_begin_again(j, p);
    else
        kf_job_finish_product(j, p, st);
    return KOFN_OK;
}

kofn_status kf_job_act(kofn_job *j, const kofn_action *a)
{
    product *p = kf_job_find(j, a->product);

    switch (a->type) {
    case KOFN_DO_WORK:
        return kf_pace_give(j, p, kf_job_task(p, a->task));
    case KOFN_DO_CANCEL:
        return do_cancel(j, p, a);
    case KOFN_DO_DECODE:
        return do_decode(j, p, a);
    case KOFN_DO_DELIVER:
        return do_deliver(j, p, a);
    case KOFN_DO_MIX:
        return do_mix(j, p, a);
    case KOFN_DO_CHECK:
        return do_check(j, p, a);
    case KOFN_DO_STORE:
        return kf_lease_owe(j, a);
    case KOFN_DO_EVICT:
        return kf_job_evict(j, a->worker);
    case KOFN_DO_END:
        kf_pair_end_round(j);
    }
    return KOFN_OK;
}

/* ---- a step's actions ---------------------------------------------------- */

/* Encodes the inputs for all work on this product in the step. */
static kofn_status encode_inputs(kofn_job *j, product *p,
                                 const kofn_action *todo, size_t n)
{
    size_t *rows, count = 0;
    kf_stopwatch watch;
    kofn_status st = KOFN_OK;

    assert(n > 0);
    if (p->use->parts1 <= 1 && !kf_is_stream(j))
        return KOFN_OK;
    TRY_NEW(rows, n);
    for (size_t i = 0; i < n; i++)
        if (todo[i].type == KOFN_DO_WORK && todo[i].product == p->start.core)
            rows[count++] = kf_job_row(p, todo[i].row, todo[i].group);
    if (count > 0) {
        watch = kf_job_start_work(j, KF_ENCODE);
        st = kf_messages_encode(
            &p->messages, kf_core_use(j->core, kf_job_use_number(p))->code,
            rows, count);
        if (!st && kf_is_stream(j))
            st = kf_pair_encode(j, p, rows, count);
        kf_job_end_work(j, watch, "encode");
    }
    kf_free(rows);
    return st;
}

kofn_status kf_job_encode_inputs(kofn_job *j, const kofn_action *todo, size_t n)
{
    for (size_t i = 0; n > 0 && i < j->open.count; i++)
        if (kf_job_is_running(j->open.list[i]))
            TRY(encode_inputs(j, j->open.list[i], todo, n));
    return KOFN_OK;
}
