/* drawn_peers.h -- a transport that sends notes from an input to a mesh node.
 * The notes have any kind, iterate and body length. Some heads and bodies have
 * wrong checksums. */
#ifndef KF_FUZZ_DRAWN_PEERS_H
#define KF_FUZZ_DRAWN_PEERS_H

#include "draw.h"

#include "base/lent.h"
#include "mesh/host.h"

#define PEERS 4

typedef struct drawn_peers {
    kofn_transport base;
    draw d;
    kf_host *host;
    kofn_time now;
    kofn_peer next;
    bool there[PEERS];
    kofn_iterate_id seen; /* in the node's last note */
    kofn_epoch epoch;
    size_t out; /* bodies that were not returned */
    /* Replaces a note by one of an honest node, if there is one. May be NULL.
     */
    void (*honest)(struct drawn_peers *s, kofn_peer peer, kf_note *n);
    kf_note_type asked; /* the last request: for an iterate or for blocks */
} drawn_peers;

static kofn_time peers_clock(void *ud)
{
    drawn_peers *s = ud;

    return s->now += KOFN_SECOND / 1000;
}

static kofn_status peers_send(kofn_transport *t, kofn_peer peer,
                              const void *head, size_t head_bytes,
                              const kofn_lent *body, bool urgent)
{
    drawn_peers *s = (drawn_peers *)t;
    const void *data = body ? body->data : NULL;
    size_t bytes = body ? body->bytes : 0;
    kf_note note;

    (void)urgent;
    MUST(peer < PEERS);
    MUST(t->whole || kf_note_whole(head, data, bytes));
    if (s->host) {
        MUST(kf_note_read(&note, head, head_bytes, s->host->job) == KOFN_OK);
        s->seen = note.at;
        s->epoch = note.epoch;
        if (note.type == KF_NOTE_ASK || note.type == KF_NOTE_READ)
            s->asked = note.type;
    }
    if (s->d.left && s->d.data[0] % 16 == 9)
        return KOFN_AGAIN; /* the channel is full */
    kf_give_back(body);
    return s->there[peer] ? KOFN_OK : KOFN_TRANSPORT;
}

static kofn_iterate_id some_iterate(drawn_peers *s)
{
    kofn_iterate_id m = next(&s->d, 2) ? s->host->it.at : s->seen;

    if (next(&s->d, 4) == 0)
        m.step += 1 + next(&s->d, 3);
    if (next(&s->d, 16) == 0)
        m.step = size_of(&s->d, m.step);
    if (next(&s->d, 16) == 0)
        m.lineage = next(&s->d, 3);
    return m;
}

static kf_note some_note(drawn_peers *s)
{
    draw *d = &s->d;
    kf_note n = {.type =
                     (kf_note_type)(KF_NOTE_BEAT +
                                    next(d, KF_NOTE_BYE - KF_NOTE_BEAT + 1)),
                 .from = 2 + next(d, PEERS),
                 .epoch = s->epoch,
                 .at = some_iterate(s),
                 .word = {size_of(d, 7), size_of(d, 7)},
                 .final = next(d, 16) == 0,
                 .idle = next(d, 2),
                 .stranded = next(d, 2),
                 .group = (uint32_t)size_of(d, next(d, 4)),
                 .seat = next(d, 4) ? next(d, 5) : KOFN_NO_SEAT};

    if (next(d, 8) == 0)
        n.from = size_of(d, n.from);
    if (next(d, 8) == 0)
        n.epoch =
            (kofn_epoch){size_of(d, n.epoch.number + 1), 2 + next(d, PEERS)};
    if (next(d, 32) == 0)
        n.seat = (uint32_t)size_of(d, 3);
    if (n.type == KF_NOTE_BYE && next(d, 2))
        n.type = KF_NOTE_PRINT;
    if (d->left && d->data[0] % 16 == 5) /* notes of blocks; no more is drawn */
        n.type = d->data[0] < 128 ? KF_NOTE_READ : KF_NOTE_BLOCK;
    return n;
}

/* Returns the right length of the note's body most often, else another length.
 */
static size_t length_of(drawn_peers *s, const kf_note *n)
{
    size_t lo, strips, bytes = 0;

    if (kf_mesh_part_is(n))
        bytes = kf_mesh_part_bytes(s->host, n);
    else if (n->type == KF_NOTE_VECTOR)
        bytes =
            (s->host->it.v->m.rows + KOFN_SCALARS + s->host->program.recalls) *
            sizeof(double);
    if (n->type == KF_NOTE_BLOCK)
        bytes = kf_borrowed_bytes(&s->host->blocks, n->group, n->rows.lo,
                                  n->rows.hi) *
                (1 + next(&s->d, 2));
    if (n->type == KF_NOTE_PARTIAL && n->group < s->host->work.on->groups) {
        strips = kf_host_strips(s->host->work.on, n->group, &lo);
        bytes = kf_host_partial_bytes(s->host->work.on, strips, n->seat);
    }
    if (n->type == KF_NOTE_EPOCH)
        bytes = KF_NOTE_MEMBER * next(&s->d, 6);
    if (n->type == KF_NOTE_DECIDE)
        bytes = 4 * next(&s->d, 12);
    return next(&s->d, 16) ? bytes : next(&s->d, 255);
}

/* Fills a body. Members and lists are small numbers most often; so are
 * vectors. */
static void fill(drawn_peers *s, const kf_note *n, uint8_t *body, size_t bytes)
{
    memset(body, 0, bytes);
    if (n->type == KF_NOTE_EPOCH)
        for (size_t i = 0; i + KF_NOTE_MEMBER <= bytes; i += KF_NOTE_MEMBER) {
            body[i] = (uint8_t)(1 + next(&s->d, PEERS + 1));
            body[i + 8] = (uint8_t)next(&s->d, 5);
            body[i + 12] = (uint8_t)next(&s->d, 2);
        }
    else if (n->type == KF_NOTE_DECIDE)
        for (size_t i = 0; i + 4 <= bytes; i += 4)
            body[i] = (uint8_t)next(&s->d, 5);
    for (unsigned i = next(&s->d, 4); i > 2 && bytes; i--)
        body[next(&s->d, 256) % bytes] = (uint8_t)next(&s->d, 256);
}

static void deliver(drawn_peers *s, kofn_packet *k, kofn_peer peer)
{
    kf_note n = some_note(s);
    uint8_t *body;
    size_t bytes;
    unsigned at, damage;

    if (s->honest && next(&s->d, 4))
        s->honest(s, peer, &n);
    bytes = length_of(s, &n);
    body = malloc(bytes + 1); /* exact size, for the sanitizer */
    MUST(body);
    fill(s, &n, body, bytes);
    *k = (kofn_packet){.what = KOFN_PACKET,
                       .peer = peer,
                       .head_bytes = KF_HEAD,
                       .body_bytes = bytes};
    kf_note_write(k->head, &n, s->host->job, body, bytes);
    at = next(&s->d, KF_HEAD);
    damage = next(&s->d, 100);
    k->head[at] ^= damage == 1;
    if (damage >= 90 && bytes) /* the checksum of the body is wrong */
        body[at % bytes] ^= 1;
    if (bytes == 0) {
        free(body);
        return;
    }
    k->own = realloc(body, bytes);
    MUST(k->own);
    k->body = next(&s->d, 2) ? k->own : NULL;
    s->out++;
}

static kofn_status peers_wait(kofn_transport *t, kofn_time atmost,
                              kofn_packet *k)
{
    drawn_peers *s = (drawn_peers *)t;
    kofn_peer peer = next(&s->d, PEERS);

    s->now += atmost < KOFN_SECOND / 10 ? atmost : KOFN_SECOND / 10;
    if (!s->d.left)
        return KOFN_AGAIN;
    if (next(&s->d, 4) == 3)
        return KOFN_AGAIN;
    if (s->next < PEERS && peer >= s->next) {
        *k = (kofn_packet){.what = KOFN_CAME, .peer = s->next};
        s->there[s->next++] = true;
        return KOFN_OK;
    }
    if (!s->there[peer])
        return KOFN_AGAIN;
    if (next(&s->d, 50) == 1) {
        *k = (kofn_packet){.what = KOFN_WENT, .peer = peer};
        s->there[peer] = false;
        return KOFN_OK;
    }
    deliver(s, k, peer);
    return KOFN_OK;
}

static kofn_status peers_fetch(kofn_transport *t, kofn_packet *k, void *into)
{
    (void)t;
    memcpy(into, k->own, k->body_bytes);
    return KOFN_OK;
}

static void peers_release(kofn_transport *t, void *own)
{
    MUST(((drawn_peers *)t)->out-- > 0);
    free(own);
}

static void peers_forget(kofn_transport *t, kofn_peer peer)
{
    MUST(peer < PEERS);
    ((drawn_peers *)t)->there[peer] = false;
}

static const kofn_transport drawn_transport = {.size = sizeof(kofn_transport),
                                               .name = "fuzz",
                                               .send = peers_send,
                                               .wait = peers_wait,
                                               .fetch = peers_fetch,
                                               .release = peers_release,
                                               .forget = peers_forget};

#endif
