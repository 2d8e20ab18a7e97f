/* route.c -- connections: whom each is of, how much of it is heard, and who is
 * not heard because it was found to lie.
 *
 * A liar that connects anew is not heard for a silence, then for two, four, and
 * up to 256: so it costs the others a number of exclusions that grows with the
 * logarithm of the time, and a node whose memory failed for a while comes back.
 * When it is heard again, being wrong once more excludes it again, until it has
 * been right for long.
 *
 * Who has a name, a key, is known by it, and with it everything that comes
 * under that name.  Of others nothing is known but the incarnation that they
 * name, which is not held against it while another connection names it as well:
 * one of the two speaks falsely, and it may have been the liar.
 *
 * Owns the routes and the list of liars.  Nothing is told to other nodes. */
#include "host.h"

#define MOST_INCARNATIONS 8 /* of one principal that has a name */
#define MOST_DOUBLED 8      /* times that a wait becomes twice as long */
#define NO_NAME (UINT64_C(1) << 63)

/* Notes that are heard of one peer: those of an iterate are a few for each of
 * at most 64 groups. */
#define BURST 65536
#define FLOOD (4 * BURST) /* beyond what it may send: it is hostile */
#define PER_ITERATE 512
#define PER_SECOND 16384

/* ---- whom a peer is ------------------------------------------------------ */

kf_route *kf_route_of(const kf_host *h, kofn_peer peer)
{
    for (size_t i = 0; i < h->routes; i++)
        if (h->route[i].peer == peer)
            return &h->route[i];
    return NULL;
}

/* The principal that answers for a peer: peers that have a name share it. */
static uint64_t principal_of(const kf_host *h, kofn_peer peer)
{
    const char *name =
        h->t->principal_of ? h->t->principal_of(h->t, peer) : NULL;

    return name ? kf_hash(0, name, strlen(name)) & ~NO_NAME : NO_NAME | peer;
}

kofn_status kf_route_add(kf_host *h, kofn_peer peer, kf_route **out)
{
    *out = kf_route_of(h, peer);
    if (*out)
        return KOFN_OK;
    TRY(kf_grow(&h->route, &h->route_cap, h->routes, sizeof *h->route));
    *out = &h->route[h->routes++];
    **out = (kf_route){.peer = peer,
                       .principal = principal_of(h, peer),
                       .credit = BURST,
                       .t = h->at.step,
                       .since = kf_host_now(h)};
    return KOFN_OK;
}

/* Has its principal fewer incarnations than it may have? */
static bool may_live(const kf_host *h, const kf_route *r)
{
    size_t incarnations = 0;

    for (size_t i = 0; i < h->routes; i++)
        incarnations += h->route[i].incarnation != 0 && !h->route[i].over &&
                        h->route[i].principal == r->principal;
    return incarnations < MOST_INCARNATIONS;
}

/* ---- what is under way -----------------------------------------------------
 */

bool kf_route_is_told(kf_route *r)
{
    if (r->telling && atomic_load(&r->telling->refs) > 1)
        return true;
    kf_buffer_drop(r->telling);
    r->telling = NULL;
    return false;
}

void kf_route_recall(kf_host *h)
{
    for (size_t i = 0; i < h->routes; i++)
        (void)kf_route_is_told(&h->route[i]);
}

kofn_status kf_route_tell(kf_route *r, kf_buffer **body)
{
    kf_buffer *view;

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

/* ---- liars --------------------------------------------------------------- */

/* Its place in the list of liars; NULL: it is not there. */
static kf_quarantine *find_liar(const kf_host *h, const kf_route *r,
                                kofn_incarnation incarnation)
{
    bool named = !(r->principal & NO_NAME);
    uint64_t who = named ? r->principal : incarnation;

    for (size_t i = 0; i < h->liars; i++)
        if (h->liar[i].named == named && h->liar[i].who == who)
            return (kf_quarantine *)(uintptr_t)&h->liar[i];
    return NULL;
}

/* A place for one more, or that of whom is waited for least. */
static kf_quarantine *place_for_liar(kf_host *h)
{
    kf_quarantine *least = h->liar;

    if (h->liars < KF_MOST_QUARANTINED)
        return &h->liar[h->liars++];
    for (size_t i = 1; i < h->liars; i++)
        if (h->liar[i].until < least->until)
            least = &h->liar[i];
    return least;
}

static bool another_names_it(const kf_host *h, const kf_route *r)
{
    for (size_t i = 0; i < h->routes; i++)
        if (&h->route[i] != r && !h->route[i].over &&
            h->route[i].incarnation == r->incarnation)
            return true;
    return false;
}

void kf_route_quarantine(kf_host *h, const kf_route *r)
{
    bool named = !(r->principal & NO_NAME);
    kf_quarantine *q;

    if (!named && (r->incarnation == 0 || another_names_it(h, r)))
        return;
    q = find_liar(h, r, r->incarnation);
    if (!q) {
        q = place_for_liar(h);
        *q = (kf_quarantine){.named = named,
                             .who = named ? r->principal : r->incarnation};
    }
    q->until = kf_host_now(h) + (kf_node_told(h->node)->silence << q->times);
    q->times += q->times < MOST_DOUBLED;
}

bool kf_route_is_held(const kf_host *h, kofn_peer peer,
                      kofn_incarnation incarnation)
{
    const kf_route *r = kf_route_of(h, peer);
    const kf_quarantine *q =
        r && !r->incarnation ? find_liar(h, r, incarnation) : NULL;

    return q && kf_host_now(h) < q->until;
}

bool kf_route_is_of(const kf_host *h, kf_route *r, kofn_incarnation incarnation)
{
    if (r->over || incarnation == 0)
        return false;
    if (r->incarnation == 0 && may_live(h, r) &&
        !kf_route_is_held(h, r->peer, incarnation)) {
        r->incarnation = incarnation;
        if (find_liar(h, r, incarnation))
            kf_blame_warn(&r->blame, h->opt.quarantine);
    }
    return r->incarnation == incarnation;
}

/* ---- how much is heard --------------------------------------------------- */

/* Gives a peer more credit: what others have to say grows with the iterates,
 * and a little with time. */
static void give_credit(kf_host *h, kf_route *r)
{
    kofn_time each = KOFN_SECOND / PER_SECOND;
    kofn_time notes = (kf_host_now(h) - r->since) / each;
    uint64_t iterates =
        kf_min(h->at.step - r->t, (BURST + FLOOD) / PER_ITERATE);

    r->since += notes * each;
    r->t = h->at.step;
    if (notes > BURST + FLOOD)
        notes = BURST + FLOOD;
    r->credit += notes + (int64_t)iterates * PER_ITERATE;
    if (r->credit > BURST)
        r->credit = BURST;
}

bool kf_route_spend(kf_host *h, kf_route *r, bool *floods)
{
    give_credit(h, r);
    r->credit--;
    *floods = r->credit <= -FLOOD;
    return r->credit >= 0;
}
