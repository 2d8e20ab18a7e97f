/* receive.c -- packets that come to a node of a mesh.
 *
 * Nothing that comes is believed before the note was checked.
 */
#include "host.h"

#include <assert.h>

/* True if it speaks for that incarnation; the note is of this attempt. */
static bool speaks_for(const kf_host *h, kf_route *r,
                       kofn_incarnation incarnation)
{
    if (!kf_route_is_of(h, r, incarnation))
        return false;
    r->attempt = h->disk.back.attempt;
    r->met = true;
    return true;
}

/* ---- bodies -------------------------------------------------------------- */

static void release_body(void *from, void *own)
{
    kofn_transport *t = from;

    t->release(t, own);
}

/* Takes over the body.  A partial product stays in the memory in which it came,
 * because it is not changed; other bodies are copied. */
static kofn_status take_body(kf_host *h, const kf_note *note, kofn_packet *p,
                             kf_buffer **body)
{
    size_t numbers = kf_ceil_div(p->body_bytes, sizeof(double));
    kofn_matrix m = {(void *)(uintptr_t)p->body, numbers, 1, 1, KOFN_F64};

    if (note->type == KF_NOTE_PARTIAL && p->body && p->own &&
        (uintptr_t)p->body % sizeof(double) == 0) {
        TRY(kf_buffer_around(body, &m, release_body, h->t, p->own));
        p->own = NULL;
        return KOFN_OK;
    }
    if (note->type == KF_NOTE_VECTOR)
        TRY(kf_mesh_vector_room(&h->it, p->body_bytes, body));
    else
        TRY(kf_buffer_new(body, numbers, 1, KOFN_F64));
    if (!p->body)
        return h->t->fetch(h->t, p, (*body)->m.data);
    memcpy((*body)->m.data, p->body, p->body_bytes);
    return KOFN_OK;
}

/* Fetches the whole body, and checks it before it counts. */
static kofn_status fetch(kf_host *h, const kf_note *note, kofn_packet *p,
                         kf_buffer **body)
{
    kofn_status st = take_body(h, note, p, body);

    if (!st &&
        (h->t->whole || kf_note_whole(p->head, (*body)->m.data, p->body_bytes)))
        return KOFN_OK;
    kf_buffer_drop(*body);
    *body = NULL;
    return st ? st : KOFN_AGAIN;
}

/* Returns `has` if that is the bytes of a block with some optimizer states,
 * each as long as the block; else the bytes of a block alone. */
static size_t bytes_of_states(const kf_host *h, size_t each, size_t has)
{
    bool fits = each > 0 && has > 0 && has % each == 0 &&
                has / each <= 1 + h->blocks.states;

    return fits ? has : each;
}

/* Returns the bytes that the body of this note must have, if it has `has` now.
 * SIZE_MAX: any. */
static size_t body_bytes(const kf_host *h, const kf_note *note, size_t has)
{
    const kf_host_product_data *p = kf_host_product(&h->work, note->at.step);
    size_t lo, strips;

    switch (note->type) {
    case KF_NOTE_VECTOR:
        return kf_mesh_part_is(note) ? kf_mesh_part_bytes(h, note)
                                     : kf_mesh_vector_bytes(h);
    case KF_NOTE_PARTIAL:
        if (note->group >= p->groups)
            return 0;
        strips = kf_host_strips(p, note->group, &lo);
        return kf_host_partial_bytes(p, strips, note->seat);
    case KF_NOTE_BLOCK: /* or none */
        lo = note->seat == KOFN_NO_SEAT
                 ? 0
                 : kf_borrowed_bytes(&h->blocks, note->group, note->rows.lo,
                                     note->rows.hi);
        return bytes_of_states(h, lo, has);
    case KF_NOTE_SKETCH:
        return bytes_of_states(h, kf_sketch_bytes(&h->blocks, note->group),
                               has);
    case KF_NOTE_EPOCH:
    case KF_NOTE_DECIDE:
        return SIZE_MAX;
    default:
        return 0;
    }
}

/* Reads a packet.  KOFN_AGAIN: it is dropped. */
static kofn_status read_packet(kf_host *h, kofn_packet *p, kf_note *note,
                               kf_buffer **body, void **room)
{
    size_t want;

    if (kf_note_read(note, p->head, p->head_bytes, h->job)) {
        kf_attempt_hear(h, p->peer, p);
        return KOFN_AGAIN;
    }
    if (kf_route_is_held(h, p->peer, note->from))
        return KOFN_AGAIN;
    want = body_bytes(h, note, p->body_bytes);
    if (want != SIZE_MAX && want != p->body_bytes)
        return KOFN_AGAIN;
    if (p->body_bytes == 0)
        return kf_note_whole(p->head, NULL, 0) ? KOFN_OK : KOFN_AGAIN;
    TRY(fetch(h, note, p, body));
    if (want == SIZE_MAX &&
        kf_note_unpack(note, (*body)->m.data, p->body_bytes, room))
        return KOFN_AGAIN;
    return KOFN_OK;
}

/* ---- notes --------------------------------------------------------------- */

static kofn_status tell_node(kf_host *h, kf_sender from, const kf_note *note,
                             bool *take)
{
    kf_node_event ev = {.type = KF_NODE_NOTE,
                        .now = kf_host_now(h),
                        .note = note,
                        .principal = from.principal};

    *take = false;
    TRY(kf_node_step(h->node, &ev));
    return kf_host_act(h, take);
}

static kofn_status take_vector(kf_host *h, kofn_iterate_id at, kf_buffer *body)
{
    uint64_t was = h->blocks.changing.turn;
    bool again = at.step == h->it.at.step;

    TRY(kf_mesh_vector_take(h, at, body));
    return kf_turns_taken(h, was, again);
}

static kofn_status take_part(kf_host *h, const kf_note *note,
                             const kf_buffer *body)
{
    uint64_t was = h->blocks.changing.turn;

    TRY(kf_mesh_part_take(h, note, body));
    return kf_turns_taken(h, was, false);
}

static kofn_status keep(kf_host *h, kofn_peer from, const kf_note *note,
                        kf_buffer *body)
{
    const kf_host_product_data *on = h->work.on;
    size_t lo, strips;

    if (kf_mesh_part_is(note))
        return take_part(h, note, body);
    if (note->type == KF_NOTE_VECTOR) {
        kf_host_way_take(&h->it, &note->digest);
        return take_vector(h, note->at, body);
    }
    assert(note->group < on->groups);
    strips = kf_host_strips(on, note->group, &lo);
    body->m = kf_host_partial_shape(on, strips, note->seat, body->m.data);
    if (note->seat == KOFN_NO_SEAT) { /* it stays, to be sent to others */
        kf_data_scatter(on->plan, 0, lo, lo + strips, body->m.data,
                        &on->out->m);
        kf_mesh_freivalds_widen(&h->work);
    }
    return kf_host_keep(&h->pieces, note->group, note->seat, from,
                        kf_buffer_keep(body));
}

static kofn_status receive_note(kf_host *h, kf_sender from, const kf_note *note,
                                kf_buffer *body)
{
    bool take;

    TRY(tell_node(h, from, note, &take));
    return take ? keep(h, from.peer, note, body) : KOFN_OK;
}

/* Stores an iterate or a fingerprint.  An iterate is handed over only when it
 * is confirmed. */
static kofn_status hear_vector_quorum(kf_host *h, kf_route *r,
                                      const kf_note *note, kf_buffer *body)
{
    kf_node_digest sent;
    kf_note ready;
    kf_buffer *its;
    kofn_status st;

    if (note->type == KF_NOTE_VECTOR)
        kf_vector_quorum_vector(h, r, note, body);
    else
        kf_vector_quorum_print(r, note);
    if (!kf_vector_quorum_ready(h, &ready, &its))
        return KOFN_OK;
    sent = ready.digest;
    ready.digest = kf_host_digest(h, ready.at.step, its->m.data,
                                  kf_at(&its->m, KOFN_SCALARS, 0));
    if (sent.exact == ready.digest.exact)
        ready.digest.way = sent.way;
    st = receive_note(h, h->it.quorum.sender, &ready, its);
    kf_buffer_drop(its);
    return st;
}

/* Handles the vector of a file like one that another node sent. */
static kofn_status restore(kf_host *h, const kf_kept *k)
{
    kf_note note = {.type = KF_NOTE_VECTOR, .at = kf_attempt_iterate(h, k->at)};
    bool take = false;
    kf_buffer *body;
    kofn_status st;

    assert(h->node);
    TRY(kf_kept_vector(h, k, &body));
    note.digest = kf_host_digest(h, note.at.step, body->m.data,
                                 kf_at(&body->m, KOFN_SCALARS, 0));
    st = kf_node_step(h->node, &(kf_node_event){.type = KF_NODE_RESTORED,
                                                .now = kf_host_now(h),
                                                .note = &note});
    if (!st)
        st = kf_host_act(h, &take);
    if (!st && take)
        st = take_vector(h, note.at, body);
    kf_buffer_drop(body);
    return st;
}

/* Handles a heartbeat of another node at that iterate.  If this node is at an
 * earlier one and has that iterate on disk, it continues from the file.  When
 * all nodes were lost, only some may have had time to keep it. */
static kofn_status meet(kf_host *h, kofn_iterate_id at)
{
    kf_keeping *k = &h->disk.keeping;

    for (size_t i = 0; i < k->files && h->blocks.changes; i++) {
        const kf_kept f = k->file[i];
        kofn_iterate_id mark = kf_attempt_iterate(h, f.at);
        kofn_status st;

        if (f.turn <= h->blocks.changing.turn || mark.step != at.step ||
            mark.lineage != at.lineage)
            continue;
        st = restore(h, &f);
        if (st != KOFN_FORMAT && st != KOFN_IO)
            return st;
        kf_kept_forget(k, i); /* other nodes have it, too */
        return KOFN_OK;
    }
    return KOFN_OK;
}

/* Takes a note of a peer that speaks for its incarnation.  Notes for the host
 * are handled here; the others go to the coordinator of the node. */
static kofn_status receive_from(kf_host *h, kofn_peer peer, const kf_note *note,
                                kf_buffer *body)
{
    kf_route *r;

    TRY(kf_route_add(h, peer, &r));
    if (!speaks_for(h, r, note->from)) {
        h->net.foreign++;
        return KOFN_OK;
    }
    kf_vector_quorum_hear(&h->it, r, note);
    if (note->type == KF_NOTE_BEAT)
        TRY(meet(h, note->at));
    switch (note->type) {
    case KF_NOTE_VECTOR:
    case KF_NOTE_PRINT:
        return hear_vector_quorum(h, r, note, body);
    case KF_NOTE_BYE:
        return kf_mail_part(h, r, false, KF_NODE_WENT);
    case KF_NOTE_READ:
        return kf_borrowed_give(h, r, note);
    case KF_NOTE_BLOCK:
        return kf_borrowed_take(h, r, note, body);
    case KF_NOTE_KEPT:
        return kf_keep_receive(h, r, note->at);
    case KF_NOTE_SKETCH:
        return kf_sketch_take(h, r, note, body);
    default:
        return receive_note(h, (kf_sender){r->peer, r->principal}, note, body);
    }
}

/* ---- packets ------------------------------------------------------------- */

/* Decides whether one more packet of the peer is read.  A peer that sends on
 * although nothing of it is read any more is disconnected. */
static kofn_status admit(kf_host *h, kofn_peer peer, bool *heard)
{
    kf_route *r;
    bool floods;

    TRY(kf_route_add(h, peer, &r));
    *heard = !r->over;
    if (r->over || h->confirm < 2 || h->blocks.changes) /* no node is hostile */
        return KOFN_OK;
    *heard = kf_route_spend(h, r, &floods);
    return floods ? kf_mail_part(h, r, true, KF_NODE_WENT) : KOFN_OK;
}

static kofn_status receive_packet(kf_host *h, kofn_packet *p)
{
    kf_note note;
    kf_buffer *body = NULL;
    void *room = NULL;
    bool heard = false;
    kofn_status st = admit(h, p->peer, &heard);

    if (!st)
        st = heard ? read_packet(h, p, &note, &body, &room) : KOFN_AGAIN;
    if (p->own)
        h->t->release(h->t, p->own);
    if (st == KOFN_AGAIN) {
        h->net.foreign++;
        st = KOFN_OK;
    } else if (!st) {
        st = receive_from(h, p->peer, &note, body);
    }
    kf_buffer_drop(body);
    kf_free(room);
    return st ? st : kf_step_deliver(h);
}

kofn_status kf_mail_receive(kf_host *h, kofn_time atmost)
{
    /* A bounded number at a time, so that the alarm is not missed. */
    for (size_t i = 0; i < 1024; i++) {
        kofn_packet p = {0};
        kofn_status st = h->t->wait(h->t, i ? 0 : atmost, &p);

        if (st == KOFN_AGAIN)
            break;
        if (st == KOFN_TRANSPORT)
            return kf_mail_lose_all(h);
        TRY(st);
        if (p.what == KOFN_CAME)
            TRY(kf_mail_came(h, p.peer));
        else if (p.what == KOFN_WENT)
            TRY(kf_mail_went(h, p.peer));
        else
            TRY(receive_packet(h, &p));
    }
    kf_mail_flush(h);
    return KOFN_OK;
}

kofn_status kf_mail_look(kf_host *h)
{
    kofn_time now = kf_host_now(h);

    if (!h->t->arriving || now - h->net.looked < kf_host_beat(h))
        return KOFN_OK;
    h->net.looked = now;
    for (size_t i = 0; i < h->net.routes; i++) {
        const kf_route *r = &h->net.route[i];

        if (r->incarnation && !r->over && kf_route_is_arriving(h, r))
            TRY(kf_host_step(h, &(kf_node_event){.type = KF_NODE_ARRIVING,
                                                 .now = now,
                                                 .incarnation = r->incarnation,
                                                 .principal = r->principal}));
    }
    return KOFN_OK;
}
