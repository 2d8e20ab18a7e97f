/* finish.c -- decodes results and ends products.
 *
 * Writes the output, which is the caller's, and gives results back to the
 * pool. */
#include "job.h"

#include <assert.h>

/* ---- decoding ------------------------------------------------------------ */

static kofn_status decode(kofn_job *j, product *p, const kofn_action *a,
                          const kf_source *source)
{
    const kofn_plan *plan = p->number == 0 ? &p->shape : p->use;
    size_t from = p->number == 0 ? p->lo : 0;
    kf_band band = {a->group, a->lo - from, a->hi - from};

    assert(a->lo >= from);
    if (!a->decoder) {
        TRY(kf_data_add_up(source, a->count, &p->out));
        return kf_range_restore(&p->out, &p->back);
    }
    if (j->tally.age)
        return kf_tally_recall(&j->tally, p->use, a->decoder, source, &p->out);
    if (j->tally.parts)
        TRY(kf_tally_count(&j->tally,
                           kf_core_use(j->core, kf_job_use_number(p))->code,
                           a->decoder));
    return kf_data_decode(plan, a->decoder, source, band,
                          &(kf_output){&p->out, &p->back}, &j->scratch);
}

/* True if an honest worker may have given an infinite answer. */
static bool may_overflow(const product *p)
{
    return !p->room && p->use->op->factors > 0;
}

static void tell_infinite(const kofn_job *j, product *p, uint32_t worker)
{
    char title[KF_TITLE];

    snprintf(p->end.why, sizeof p->end.why, "%s answered NaN or infinity; %s",
             kf_job_title(j, worker, title),
             may_overflow(p)
                 ? "the product may have elements that its type cannot "
                   "hold: divide an operand by a power of two"
                 : "find wrong answers with the option errors");
}

/* Records that a result is not finite, and which worker gave it.  The product
 * fails for this when it is over; the next one is not affected. */
static void note_odd(const kofn_job *j, product *p, const kofn_action *a,
                     const kf_source *source)
{
    if (p->end.odd)
        return;
    p->end.odd = KOFN_NONFINITE;
    snprintf(p->end.why, sizeof p->end.why, "%s", kofn_errmsg());
    for (size_t i = 0; i < a->count; i++) {
        if (!kf_mat_check_finite(source[i].result, "an answer"))
            continue;
        if (p->room)
            p->end.odd = KOFN_CORRUPT;
        tell_infinite(j, p, kf_job_task(p, a->tasks[i])->worker);
    }
}

bool kf_job_overflows(const kofn_job *j, product *p)
{
    assert(p->start.tasks);
    for (size_t i = 0; i < p->start.tasks->count && may_overflow(p); i++) {
        const kf_slot *t = &p->start.tasks->task[i];

        if (!t->result || !kf_mat_check_finite(&t->result->m, "an answer"))
            continue;
        tell_infinite(j, p, t->worker);
        return true;
    }
    return false;
}

kofn_status kf_job_decode(kofn_job *j, product *p, const kofn_action *a,
                          const kf_source *source)
{
    kf_stopwatch watch = kf_job_start_work(j, KF_DECODE);
    kofn_status st = decode(j, p, a, source);

    if (st == KOFN_NONFINITE) {
        note_odd(j, p, a, source);
        st = KOFN_OK;
    }
    kf_job_end_work(j, watch, "decode");
    return st;
}

/* ---- the end ------------------------------------------------------------- */

/* Ends the tasks of a product.  `round`: the number to report. */
static void close_tasks(kofn_job *j, product *p, unsigned round)
{
    assert(p->start.tasks);
    for (size_t i = 0; i < p->start.tasks->count; i++) {
        kf_buffer *came = p->start.tasks->task[i].result;

        p->rep.messages += came != NULL;
        p->rep.scalars += came ? came->m.rows * came->m.cols : 0;
        kf_pool_give(&j->spare, came);
    }
    kf_job_note_over(j, p, p->start.began + p->rep.took, round);
    kf_task_outcomes_close(&j->outcomes, p->start.core);
    p->start.tasks = NULL;
}

void kf_job_finish_product(kofn_job *j, product *p, kofn_status st)
{
    assert(p->end.ended == KOFN_AGAIN);
    kf_phase_since(j, &p->start.from, &p->rep);
    p->end.ended = st >= 0 && p->end.odd ? p->end.odd : st;
    p->rep.unchecked = p->as == KOFN_USE_PARTS;
    close_tasks(j, p, p->number);
}

void kf_job_begin_again(kofn_job *j, product *p)
{
    assert(p->start.begun);
    assert(p->end.ended == KOFN_AGAIN);
    close_tasks(j, p, 0);
    if (p->as == KOFN_USE_PARTS)
        kf_job_code_it(j, p);
    p->end.odd = KOFN_OK;
    p->end.why[0] = 0;
    kf_job_feed_again(p);
    p->start.begun = false;
}
