/* peers.c -- the incarnations that are there, found by token and by number.
 *
 * Goings are rare against packets, so the table is made anew at each of them and
 * never has holes.
 */
#include "inside.h"

static size_t at_token(const kf_peers *ps, const unsigned char *token)
{
    uint64_t h;

    memcpy(&h, token, sizeof h); /* it is random */
    return (size_t)(h & (ps->slots - 1));
}

static size_t at_number(const kf_peers *ps, kofn_peer number)
{
    return (size_t)((number * KF_STEP64 >> 32) & (ps->slots - 1));
}

static void put(kf_peers *ps, size_t i, kf_peer *p)
{
    while (ps->slot[i])
        i = (i + 1) & (ps->slots - 1);
    ps->slot[i] = p;
}

static void fill(kf_peers *ps)
{
    memset(ps->slot, 0, ps->slots * sizeof *ps->slot);
    for (size_t k = 0; k < ps->count; k++) {
        kf_peer *p = ps->item[k];

        put(ps, at_token(ps, p->token), p);
        if (p->came)
            put(ps, at_number(ps, p->number), p);
    }
}

/* Every peer may stand twice, and at most half of the slots are taken. */
static kofn_status make_room(kf_peers *ps)
{
    size_t slots = ps->slots ? ps->slots : 64;
    kf_peer **slot;

    TRY(kf_grow(&ps->item, &ps->cap, ps->count, sizeof *ps->item));
    while (slots < 4 * (ps->count + 1))
        slots *= 2;
    if (slots == ps->slots)
        return KOFN_OK;
    slot = kf_new(slots, sizeof *slot);
    if (!slot)
        return KOFN_NOMEM;
    kf_free(ps->slot);
    ps->slot = slot;
    ps->slots = slots;
    fill(ps);
    return KOFN_OK;
}

kofn_status kf_peers_add(kf_peers *ps, const unsigned char *token,
                         kf_peer **out)
{
    kf_peer *p;

    TRY(make_room(ps));
    p = kf_zero(1, sizeof *p);
    if (!p)
        return KOFN_NOMEM;
    memcpy(p->token, token, KF_TOKEN);
    ps->item[ps->count++] = p;
    put(ps, at_token(ps, p->token), p);
    *out = p;
    return KOFN_OK;
}

void kf_peers_number(kf_peers *ps, kf_peer *p, kofn_peer number)
{
    p->number = number;
    p->came = true;
    put(ps, at_number(ps, number), p);
}

void kf_peers_remove(kf_peers *ps, kf_peer *p)
{
    size_t k = 0;

    while (ps->item[k] != p)
        k++;
    memmove(&ps->item[k], &ps->item[k + 1],
            (--ps->count - k) * sizeof *ps->item);
    kf_free(p);
    fill(ps);
}

kf_peer *kf_peers_by_token(const kf_peers *ps, const unsigned char *token)
{
    if (ps->slots == 0)
        return NULL;
    for (size_t i = at_token(ps, token); ps->slot[i];
         i = (i + 1) & (ps->slots - 1))
        if (memcmp(ps->slot[i]->token, token, KF_TOKEN) == 0)
            return ps->slot[i];
    return NULL;
}

kf_peer *kf_peers_by_number(const kf_peers *ps, kofn_peer number)
{
    if (ps->slots == 0)
        return NULL;
    for (size_t i = at_number(ps, number); ps->slot[i];
         i = (i + 1) & (ps->slots - 1))
        if (ps->slot[i]->came && ps->slot[i]->number == number)
            return ps->slot[i];
    return NULL;
}

void kf_peers_free(kf_peers *ps)
{
    for (size_t k = 0; k < ps->count; k++)
        kf_free(ps->item[k]);
    kf_free(ps->item);
    kf_free(ps->slot);
    *ps = (kf_peers){0};
}
