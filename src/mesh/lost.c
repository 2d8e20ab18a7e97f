/* lost.c -- connections that come and go, and those that are ended because
 * their node is faulty.
 */
#include "host.h"

#include <assert.h>

/* True if this node has another connection to it. */
static bool can_reach(const kf_connections *net, const kf_route *r)
{
    for (size_t i = 0; i < net->routes; i++)
        if (net->route[i].incarnation == r->incarnation &&
            !net->route[i].over && net->route[i].principal == r->principal)
            return true;
    return false;
}

static kofn_status lose(kf_host *h, const kf_route *r, kf_node_event_type how)
{
    if (r->incarnation == 0 || (how == KF_NODE_WENT && can_reach(&h->net, r)))
        return KOFN_OK;
    return kf_host_step(h, &(kf_node_event){.type = how,
                                            .now = kf_host_now(h),
                                            .incarnation = r->incarnation,
                                            .principal = r->principal});
}

/* Stops sending to the peer and receiving from it. */
kofn_status kf_mail_part(kf_host *h, kf_route *r, bool forget,
                         kf_node_event_type how)
{
    if (r->over)
        return KOFN_OK;
    r->over = true;
    kf_outbox_empty(&r->outbox);
    if (forget && h->t->forget)
        h->t->forget(h->t, r->peer);
    return lose(h, r, how);
}

kofn_status kf_mail_exclude(kf_host *h, kofn_peer peer)
{
    kf_route *liar = kf_route_of(&h->net, peer);
    uint64_t principal;

    if (!liar)
        return KOFN_OK;
    principal = liar->principal;
    kf_route_quarantine(h, liar);
    for (size_t i = 0; i < h->net.routes; i++)
        if (h->net.route[i].principal == principal)
            TRY(kf_mail_part(h, &h->net.route[i], true, KF_NODE_LIAR));
    return KOFN_OK;
}

kofn_status kf_mail_exclude_accused(kf_host *h)
{
    kf_connections *c = &h->net;

    while (c->accusations > 0)
        TRY(kf_mail_exclude(h, c->accused[--c->accusations]));
    return KOFN_OK;
}

/* ---- the transport ------------------------------------------------------- */

kofn_status kf_mail_came(kf_host *h, kofn_peer peer)
{
    kf_route *r;

    TRY(kf_route_add(h, peer, &r));
    return kf_mail_hello(h, peer);
}

kofn_status kf_mail_went(kf_host *h, kofn_peer peer)
{
    kf_route *r = kf_route_of(&h->net, peer), was;

    if (!r)
        return KOFN_OK;
    kf_outbox_free(&r->outbox);
    kf_buffer_drop(r->telling);
    was = *r;
    *r = h->net.route[--h->net.routes];
    return was.over ? KOFN_OK : lose(h, &was, KF_NODE_WENT);
}

/* Drops all peers: none is there, and none can come. */
kofn_status kf_mail_lose_all(kf_host *h)
{
    kofn_node_view view;

    while (h->net.routes > 0)
        TRY(kf_mail_went(h, h->net.route[0].peer));
    kf_node_look(h->node, &view);
    if (view.over || view.failed)
        return KOFN_OK;
    return kf_fail_in(KOFN_TRANSPORT, "this node reached iteration %llu",
                      (unsigned long long)view.at.step);
}
