/* drawing.c -- makes a trace, a record and a report of a run that is over, from
 * its journal.
 *
 * Owns the observers and the tasks; borrows the core, which receives the same
 * events.  It does not check numbers, because the reader of the journal has
 * checked them. */
#include "task_outcomes.h"

#include "base/base.h"

#include <string.h>

struct kofn_drawing {
    kf_task_outcomes outcomes;
    bool finished;  /* the run reported nothing after this */
    unsigned round; /* the largest number of a product that is over */
};

kofn_status kofn_drawing_new(kofn_drawing **out, const kofn_core *core,
                             const kofn_plan *plan,
                             const kofn_drawing_options *opt)
{
    kofn_drawing_options o = KOFN_DRAWING_OPTIONS_INIT;
    kofn_drawing *d;
    kofn_status st;

    *out = NULL;
    TRY(kf_given(&o, sizeof o, opt, "KOFN_DRAWING_OPTIONS_INIT"));
    TRY_ZERO(d, 1);
    d->outcomes.core = core;
    d->outcomes.abort = o.in_flight == KOFN_IN_FLIGHT_ABORT;
    st = kf_task_outcomes_watch(&d->outcomes, plan, o.port, o.trace, o.record);
    if (!st && o.report)
        st = kf_page_new(&d->outcomes.observers, NULL, core, plan, o.port,
                         o.report);
    if (!st && o.report && o.label)
        st = kf_page_caption(d->outcomes.observers, "run", o.label);
    if (st)
        kofn_drawing_end(d, false);
    else
        *out = d;
    return st;
}

kofn_status kofn_drawing_event(kofn_drawing *d, const kofn_event *ev)
{
    kofn_event room;

    ev = kf_whole(&room, sizeof room, ev,
                  kf_core_options(d->outcomes.core)->event);
    return d->finished ? KOFN_OK : kf_task_outcomes_event(&d->outcomes, ev);
}

kofn_status kofn_drawing_action(kofn_drawing *d, const kofn_action *a)
{
    kofn_action room;

    a = kf_whole(&room, sizeof room, a,
                 kf_core_options(d->outcomes.core)->action);
    return d->finished ? KOFN_OK : kf_task_outcomes_action(&d->outcomes, a);
}

void kofn_drawing_note(kofn_drawing *d, const kofn_note *n)
{
    if (d->finished)
        return;
    kf_task_outcomes_note(&d->outcomes, n);
    d->round = n->round > d->round ? n->round : d->round;
    if (!strcmp(n->own, "over"))
        kf_task_outcomes_close(&d->outcomes, n->product);
    d->finished = !strcmp(n->own, "finished");
}

kofn_status kofn_drawing_name(kofn_drawing *d, uint32_t worker,
                              const char *name)
{
    if (!name)
        return kf_fail(KOFN_INVAL, "the name of worker %u is NULL", worker);
    return kf_page_name(d->outcomes.observers, worker, name);
}

kofn_status kofn_drawing_totals(kofn_drawing *d, const kofn_report *total,
                                const char *verdict)
{
    kofn_report r = KOFN_REPORT_INIT;

    if (!verdict)
        return kf_fail(KOFN_INVAL, "the sentence is NULL");
    TRY(kf_given(&r, sizeof r, total, "KOFN_REPORT_INIT"));
    return kf_page_totals(d->outcomes.observers, &r, verdict);
}

/* Ends the products that are still open: those of a run that was killed.  The
 * journal does not have their numbers for the caller, which are the next
 * ones. */
kofn_status kofn_drawing_end(kofn_drawing *d, bool keep)
{
    kofn_status st;

    if (!d)
        return KOFN_OK;
    while (!d->finished && d->outcomes.opens > 0) {
        const kf_slots *t = d->outcomes.open[0];

        kofn_drawing_note(d, &(kofn_note){.own = "over",
                                          .now = d->outcomes.now,
                                          .since = t->began,
                                          .status = KOFN_AGAIN,
                                          .product = t->product,
                                          .round = d->round + 1});
    }
    st = kf_task_outcomes_end(&d->outcomes, keep);
    kf_task_outcomes_free(&d->outcomes);
    kf_free(d);
    return st;
}
