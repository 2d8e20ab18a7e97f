/* drawing.c -- makes a trace and a record of a run that is over, from its
 * journal.
 *
 * Owns the observers and the tasks; borrows the core, which receives the same
 * events.  It does not check numbers, because the reader of the journal has
 * checked them. */
#include "fates.h"

#include "base/base.h"

#include <string.h>

struct kofn_drawing {
    kf_fates fates;
    bool finished; /* the run reported nothing after this */
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
    d->fates.core = core;
    d->fates.abort = o.in_flight == KOFN_IN_FLIGHT_ABORT;
    st = kf_fates_watch(&d->fates, plan, o.port, o.trace, o.record);
    if (st)
        kofn_drawing_end(d, false);
    else
        *out = d;
    return st;
}

kofn_status kofn_drawing_event(kofn_drawing *d, const kofn_event *ev)
{
    kofn_event room;

    ev =
        kf_whole(&room, sizeof room, ev, kf_core_options(d->fates.core)->event);
    return d->finished ? KOFN_OK : kf_fates_event(&d->fates, ev);
}

kofn_status kofn_drawing_action(kofn_drawing *d, const kofn_action *a)
{
    kofn_action room;

    a = kf_whole(&room, sizeof room, a, kf_core_options(d->fates.core)->action);
    return d->finished ? KOFN_OK : kf_fates_action(&d->fates, a);
}

void kofn_drawing_note(kofn_drawing *d, const kofn_note *n)
{
    if (d->finished)
        return;
    kf_fates_note(&d->fates, n);
    if (!strcmp(n->own, "over"))
        kf_fates_close(&d->fates, n->product);
    d->finished = !strcmp(n->own, "finished");
}

/* Ends the products that are still open: those of a run that was killed. */
kofn_status kofn_drawing_end(kofn_drawing *d, bool keep)
{
    kofn_status st;

    if (!d)
        return KOFN_OK;
    while (!d->finished && d->fates.opens > 0) {
        const kf_slots *t = d->fates.open[0];

        kofn_drawing_note(d, &(kofn_note){.own = "over",
                                          .now = d->fates.now,
                                          .since = t->began,
                                          .status = KOFN_AGAIN,
                                          .product = t->product,
                                          .round = t->product});
    }
    st = kf_fates_end(&d->fates, keep);
    kf_fates_free(&d->fates);
    kf_free(d);
    return st;
}
