/* mail.c -- sends notes with their bodies.
 *
 * Owns nothing: a body is made from what the node has when its note is sent.
 */
#include "host.h"

#include <assert.h>

/* time between two greetings of a peer that sends no note */
#define GREET (KOFN_SECOND / 4)
/* least time between two equal answers to a peer */
#define SOON (KOFN_SECOND / 50)

static kofn_status bytes_body(const kf_note *note, kf_buffer **body,
                              size_t *bytes)
{
    *bytes = kf_note_bytes(note);
    if (*bytes == 0)
        return KOFN_OK;
    TRY(kf_buffer_new(body, kf_ceil_div(*bytes, 8), 1, KOFN_F64));
    kf_note_pack(note, (*body)->m.data);
    return KOFN_OK;
}

/* Returns NULL if it is not here any more. */
static kf_buffer *partial_body(const kf_host *h, const kf_note *note)
{
    bool now =
        note->at.step == h->it.at.step && note->at.lineage == h->it.at.lineage;
    bool before = note->at.step == h->pieces.before_at.step &&
                  note->at.lineage == h->pieces.before_at.lineage;
    kf_buffer *p;

    assert(note->group < KF_MAX_GROUPS);
    if (!now && !before)
        return NULL;
    p = kf_host_partial(&(now ? h->pieces.now : h->pieces.before)[note->group],
                        note->seat);
    return p ? kf_buffer_keep(p) : NULL;
}

static kofn_status body_of(kf_host *h, const kf_note *note, kf_buffer **body,
                           size_t *bytes)
{
    *body = NULL;
    *bytes = 0;
    if (kf_mesh_part_is(note))
        return kf_mesh_part_body(h, note, body, bytes);
    if (note->type == KF_NOTE_VECTOR)
        return kf_mesh_vector_body(h, body, bytes);
    if (note->type == KF_NOTE_BLOCK && note->seat != KOFN_NO_SEAT)
        return kf_borrowed_body(&h->blocks, note->group, note->rows.lo,
                                note->rows.hi, body, bytes);
    if (note->type != KF_NOTE_PARTIAL && note->type != KF_NOTE_SKETCH)
        return bytes_body(note, body, bytes);
    *body = note->type == KF_NOTE_PARTIAL ? partial_body(h, note)
                                          : kf_sketch_body(h, note);
    if (!*body)
        return KOFN_AGAIN;
    *bytes = kf_buffer_bytes(*body);
    return KOFN_OK;
}

/* True if this answer must not be sent so soon.  An iterate and its fingerprint
 * cost a pass over the vector.  A peer that asks again at once has the answer
 * on its way, or only wants to cost time. */
static bool too_soon(const kf_host *h, kf_route *r, const kf_note *note)
{
    kofn_time now = kf_host_now(h);
    bool print = note->type == KF_NOTE_PRINT;

    if (!print && note->type != KF_NOTE_VECTOR)
        return false;
    if (!print && kf_route_is_announced(r))
        return true;
    if (r->last_sent[print].when && now - r->last_sent[print].when < SOON &&
        r->last_sent[print].at.step == note->at.step &&
        r->last_sent[print].at.lineage == note->at.lineage)
        return true;
    r->last_sent[print].at = note->at;
    r->last_sent[print].when = now;
    return false;
}

static void drop_body(void *buffer)
{
    kf_buffer_drop(buffer);
}

/* Writes the head, and takes over the body. */
static kofn_status post(kf_host *h, kf_route *r, const kf_note *note,
                        uint64_t job, const kofn_lent *body)
{
    kf_letter l = {.type = note->type,
                   .body = *body,
                   .urgent = kf_note_kind_of(note->type).urgent};

    kf_note_write(l.head, note, job, body->data, h->t->whole ? 0 : body->bytes);
    return kf_mail_post(h, r, &l);
}

kofn_status kf_mail_to(kf_host *h, kofn_peer peer, const kf_note *note)
{
    kf_note out = *note;
    kf_route *r = kf_route_of(&h->net, peer);
    kf_buffer *body;
    size_t bytes;
    kofn_status st;

    assert(peer != KF_LOCAL);
    if (!r || too_soon(h, r, note))
        return KOFN_OK;
    if (note->type == KF_NOTE_VECTOR)
        kf_mesh_part_choose(h, r, &out);
    st = body_of(h, &out, &body, &bytes);
    if (!st && note->type == KF_NOTE_VECTOR)
        st = kf_route_tell(r, &body);
    if (st)
        return st == KOFN_AGAIN ? KOFN_OK : st;
    if (note->type == KF_NOTE_PRINT)
        out.print.value = kf_print_local(&h->it, note->print.key);
    return post(h, r, &out, h->job,
                &(kofn_lent){.data = body ? body->m.data : NULL,
                             .bytes = bytes,
                             .done = body ? drop_body : NULL,
                             .ud = body});
}

kofn_status kf_mail_to_all(kf_host *h, const kf_note *note)
{
    for (size_t i = 0; i < h->net.routes; i++)
        if (h->net.route[i].incarnation && !h->net.route[i].over)
            TRY(kf_mail_to(h, h->net.route[i].peer, note));
    return KOFN_OK;
}

/* ---- greetings ----------------------------------------------------------- */

kofn_status kf_mail_hello(kf_host *h, kofn_peer peer)
{
    const kf_note hello = kf_node_beat(h->node);

    return kf_mail_to(h, peer, &hello);
}

/* A node that is already in that attempt takes the sender for one at the
 * start. */
kofn_status kf_mail_announce(kf_host *h, uint64_t job)
{
    const kf_note hello = {
        .type = KF_NOTE_BEAT, .from = h->opt.incarnation, .seat = KOFN_NO_SEAT};

    for (size_t i = 0; i < h->net.routes; i++)
        if (!h->net.route[i].over)
            TRY(post(h, &h->net.route[i], &hello, job, &(kofn_lent){0}));
    return KOFN_OK;
}

/* Otherwise two nodes that do not know each other's incarnation would wait
 * forever. */
kofn_status kf_mail_greet(kf_host *h)
{
    kofn_time now = kf_host_now(h);

    if (now - h->net.greeted < GREET)
        return KOFN_OK;
    h->net.greeted = now;
    for (size_t i = 0; i < h->net.routes; i++)
        if (!h->net.route[i].met && !h->net.route[i].over)
            TRY(kf_mail_hello(h, h->net.route[i].peer));
    return KOFN_OK;
}

void kf_mail_free(kf_connections *net)
{
    for (size_t i = 0; i < net->routes; i++) {
        kf_outbox_free(&net->route[i].outbox);
        kf_buffer_drop(net->route[i].telling);
    }
    kf_free(net->route);
}
