/* step.c -- the coordinator of the node takes a step: an event goes in, and its
 * actions are done.
 *
 * Files below this one cannot take a step.  They record the changes of our
 * blocks and our vector in h->told, which is delivered here.
 */
#include "host.h"

#include <assert.h>

static kofn_status send(kf_host *h, kofn_incarnation to, const kf_note *note)
{
    kf_note out = *note;

    assert(to != h->opt.incarnation);
    if (note->type == KF_NOTE_ASK) {
        TRY(kf_vector_quorum_ask(h, to, note));
        out.ask.part = kf_mesh_part_suffices(h);
    }
    for (size_t i = 0; i < h->net.routes; i++)
        if (h->net.route[i].incarnation == to && !h->net.route[i].over)
            TRY(kf_mail_to(h, h->net.route[i].peer, &out));
    return KOFN_OK;
}

/* Discards all that was made from the iterate, which is repeated. */
static kofn_status begin_again(kf_host *h)
{
    kofn_node_view view;

    kf_node_look(h->node, &view);
    h->it.again = view.again;
    h->it.at = view.at;
    kf_host_drop_partials(h->pieces.now);
    kf_host_forget_input(&h->work);
    kf_comparison_void(&h->net);
    return kf_sketch_begin(h);
}

kofn_status kf_host_act(kf_host *h, bool *take)
{
    kf_node_action a;

    if (kf_node_agains(h->node) != h->it.again)
        TRY(begin_again(h));

    while (kf_node_next(h->node, &a)) {
        if (a.type == KF_NODE_SEND)
            TRY(send(h, a.to, &a.note));
        else if (a.type == KF_NODE_ERRED)
            kf_comparison_outvoted(h, a.to, a.principal);
        else if (take)
            *take = true;
    }
    return KOFN_OK;
}

kofn_status kf_host_step(kf_host *h, const kf_node_event *ev)
{
    TRY(kf_node_step(h->node, ev));
    return kf_host_act(h, NULL);
}

kofn_status kf_step_deliver(kf_host *h)
{
    const kf_told told = h->told;
    kf_node_event ev = {.digest = told.digest};

    if (!told.lost && !told.doubt && !told.spoilt) /* after most packets */
        return KOFN_OK;
    ev.now = kf_host_now(h);
    h->told = (kf_told){.lost = false};
    if (told.lost) {
        ev.type = KF_NODE_LOST;
        TRY(kf_keep_forget(h));
        TRY(kf_host_step(h, &ev));
    }
    if (told.doubt) {
        ev.type = KF_NODE_DOUBT;
        TRY(kf_host_step(h, &ev));
    }
    if (told.spoilt) {
        ev.type = KF_NODE_SPOILT;
        TRY(kf_host_step(h, &ev));
    }
    return KOFN_OK;
}
