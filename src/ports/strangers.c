/* strangers.c -- the list of peers that have not said hello.
 *
 * A list belongs to the port or to the fleet whose peers it names. */
#include "strangers.h"

kofn_status kf_strangers_add(kf_strangers *s, kofn_peer peer, kofn_time now)
{
    TRY(kf_grow(&s->stranger, &s->cap, s->count, sizeof *s->stranger));
    s->stranger[s->count++] = (kf_stranger){peer, false, now};
    return KOFN_OK;
}

kf_stranger *kf_strangers_find(const kf_strangers *s, kofn_peer peer)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->stranger[i].peer == peer)
            return &s->stranger[i];
    return NULL;
}

void kf_strangers_drop(kf_strangers *s, kofn_peer peer)
{
    kf_stranger *at = kf_strangers_find(s, peer);

    if (!at)
        return;
    s->count--;
    memmove(at, at + 1,
            (size_t)(s->stranger + s->count - at) * sizeof *s->stranger);
}

bool kf_strangers_surplus(const kf_strangers *s, size_t most, kofn_time expired,
                          kofn_peer *peer)
{
    if (s->count == 0 || (s->count <= most && s->stranger[0].since >= expired))
        return false;
    *peer = s->stranger[0].peer;
    return true;
}
