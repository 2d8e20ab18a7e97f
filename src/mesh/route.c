/* route.c -- connections: their incarnations, the limits of their packets, and
 * the quarantine of faulty nodes.
 *
 * A faulty node that connects again is ignored for one silence, then for two,
 * four, and up to 256.  So the number of its exclusions grows with the
 * logarithm of the time, and a node can come back after its memory failed for a
 * while.  After it is heard again, one more error excludes it, until it has
 * been right for long.
 *
 * A connection that has a name, from a key, is known by that name; all that
 * comes under the name belongs to it.  Of other connections only the
 * incarnation is known that they name.  It does not count against them while
 * another connection names it as well: one of the two is false, perhaps the
 * faulty one.
 *
 * Owns the routes and the quarantine list.  Other nodes are not informed. */
#include "host.h"

#include <assert.h>

#define MOST_INCARNATIONS 8 /* of one principal that has a name */
#define MOST_DOUBLED 8      /* times that a wait is doubled */
#define NO_NAME (UINT64_C(1) << 63)

/* Notes that are accepted from one peer at once.  An iterate needs a few for
 * each of at most 64 groups. */
#define BURST 65536
#define FLOOD (4 * BURST) /* more than these: the peer is hostile */
#define PER_ITERATE 512
#define PER_SECOND 16384

/* ---- identities ---------------------------------------------------------- */

kf_route *kf_route_of(const kf_connections *net, kofn_peer peer)
{
    for (size_t i = 0; i < net->routes; i++)
        if (net->route[i].peer == peer)
            return &net->route[i];
    return NULL;
}

/* Returns the principal of a peer: peers with the same name share it. */
static uint64_t principal_of(const kf_host *h, kofn_peer peer)
{
    const char *name =
        h->t->principal_of ? h->t->principal_of(h->t, peer) : NULL;

    return name ? kf_hash(0, name, strlen(name)) & ~NO_NAME : NO_NAME | peer;
}

kofn_status kf_route_add(kf_host *h, kofn_peer peer, kf_route **out)
{
    assert(peer != KF_LOCAL);
    *out = kf_route_of(&h->net, peer);
    if (*out)
        return KOFN_OK;
    TRY(kf_grow(&h->net.route, &h->net.route_cap, h->net.routes,
                sizeof *h->net.route));
    *out = &h->net.route[h->net.routes++];
    **out = (kf_route){.peer = peer,
                       .principal = principal_of(h, peer),
                       .notes.since = kf_host_now(h),
                       .t = h->it.at.step};
    return KOFN_OK;
}

/* True if its principal may have one more incarnation. */
static bool may_live(const kf_connections *net, const kf_route *r)
{
    size_t incarnations = 0;

    for (size_t i = 0; i < net->routes; i++)
        incarnations += net->route[i].incarnation != 0 && !net->route[i].over &&
                        net->route[i].principal == r->principal;
    return incarnations < MOST_INCARNATIONS;
}

bool kf_route_is_announced(kf_route *r)
{
    if (r->telling && atomic_load(&r->telling->refs) > 1)
        return true;
    kf_buffer_drop(r->telling);
    r->telling = NULL;
    return false;
}

void kf_route_recall(kf_connections *net)
{
    for (size_t i = 0; i < net->routes; i++)
        (void)kf_route_is_announced(&net->route[i]);
}

kofn_status kf_route_tell(kf_route *r, kf_buffer **body)
{
    kf_buffer *view;

    assert(*body);
    TRY(kf_buffer_view(&view, *body, &(*body)->m));
    kf_buffer_drop(*body);
    *body = view;
    kf_buffer_drop(r->telling);
    r->telling = kf_buffer_keep(view);
    return KOFN_OK;
}

bool kf_route_is_arriving(const kf_host *h, const kf_route *r)
{
    kofn_time most = KF_SLOWEST * kf_host_silence(h);
    kofn_arriving a;

    return h->t->arriving && h->t->arriving(h->t, r->peer, &a) && a.at > 0 &&
           (double)a.age * (double)a.body_bytes <= (double)most * (double)a.at;
}

/* ---- quarantine ---------------------------------------------------------- */

/* Returns its entry in the quarantine list, or NULL. */
static kf_quarantine *find_liar(const kf_connections *net, const kf_route *r,
                                kofn_incarnation incarnation)
{
    bool named = !(r->principal & NO_NAME);
    uint64_t who = named ? r->principal : incarnation;

    for (size_t i = 0; i < net->quarantined; i++)
        if (net->quarantine[i].named == named && net->quarantine[i].who == who)
            return (kf_quarantine *)(uintptr_t)&net->quarantine[i];
    return NULL;
}

/* Returns a free entry, or the one that expires first. */
static kf_quarantine *place_for_liar(kf_connections *net)
{
    kf_quarantine *least = net->quarantine;

    assert(net->quarantined <= KF_MOST_QUARANTINED);
    if (net->quarantined < KF_MOST_QUARANTINED)
        return &net->quarantine[net->quarantined++];
    for (size_t i = 1; i < net->quarantined; i++)
        if (net->quarantine[i].until < least->until)
            least = &net->quarantine[i];
    return least;
}

static bool another_names_it(const kf_connections *net, const kf_route *r)
{
    for (size_t i = 0; i < net->routes; i++)
        if (&net->route[i] != r && !net->route[i].over &&
            net->route[i].incarnation == r->incarnation)
            return true;
    return false;
}

void kf_route_quarantine(kf_host *h, const kf_route *r)
{
    bool named = !(r->principal & NO_NAME);
    kf_quarantine *q;

    if (!named && (r->incarnation == 0 || another_names_it(&h->net, r)))
        return;
    q = find_liar(&h->net, r, r->incarnation);
    if (!q) {
        q = place_for_liar(&h->net);
        *q = (kf_quarantine){.named = named,
                             .who = named ? r->principal : r->incarnation};
    }
    assert(q->times <= MOST_DOUBLED);
    q->until =
        kf_host_now(h) + (kf_node_reported(h->node)->silence << q->times);
    q->times += q->times < MOST_DOUBLED;
}

bool kf_route_is_held(const kf_host *h, kofn_peer peer,
                      kofn_incarnation incarnation)
{
    const kf_route *r = kf_route_of(&h->net, peer);
    const kf_quarantine *q =
        r && !r->incarnation ? find_liar(&h->net, r, incarnation) : NULL;

    return q && kf_host_now(h) < q->until;
}

bool kf_route_is_of(const kf_host *h, kf_route *r, kofn_incarnation incarnation)
{
    if (r->over || incarnation == 0)
        return false;
    if (r->incarnation == 0 && may_live(&h->net, r) &&
        !kf_route_is_held(h, r->peer, incarnation)) {
        r->incarnation = incarnation;
        if (find_liar(&h->net, r, incarnation))
            kf_blame_warn(&r->blame, h->opt.quarantine);
    }
    return r->incarnation == incarnation;
}

/* ---- limits -------------------------------------------------------------- */

/* Nodes need more notes with each iterate, and a few with time. */
bool kf_route_spend(kf_host *h, kf_route *r, bool *floods)
{
    double iterates = (double)(h->it.at.step - r->t);

    assert(!r->over);
    assert(h->it.at.step >= r->t);
    kf_bucket_leak(&r->notes, kf_host_now(h), PER_SECOND,
                   PER_ITERATE * iterates);
    r->t = h->it.at.step;
    r->notes.level++;
    *floods = r->notes.level >= BURST + FLOOD;
    return r->notes.level <= BURST;
}

void kf_route_accuse(kf_connections *net, kofn_peer peer)
{
    kf_connections *c = net;

    assert(peer != KF_LOCAL);
    assert(c->accusations <= KF_MOST_LIARS);
    for (size_t i = 0; i < c->accusations; i++)
        if (c->accused[i] == peer)
            return;
    if (c->accusations < KF_MOST_LIARS)
        c->accused[c->accusations++] = peer;
}
