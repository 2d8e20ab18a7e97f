/* mail.c -- packets of a node of a mesh: notes with their bodies, sent and
 * received.
 *
 * Owns the packets that wait to be sent.  Bodies are buffers, lent to the
 * transport while they are sent.  Nothing that comes is believed before the
 * note was checked.
 */
#include "keep.h"

#include <assert.h>

#define MOST_WAITING 4096
/* waiting packets for one peer, which may ask without end */
#define MOST_FOR_ONE 512
/* bytes for one peer, in addition to vectors and partial products */
#define MOST_SMALL 65536
#define GREET (KOFN_SECOND / 4)
#define SOON (KOFN_SECOND / 50)

/* True if it speaks for that incarnation; the note is of this attempt. */
static bool speaks_for(const kf_host *h, kf_route *r,
                       kofn_incarnation incarnation)
{
    if (!kf_route_is_of(h, r, incarnation))
        return false;
    r->attempt = h->back.attempt;
    r->met = true;
    return true;
}

/* ---- sending ------------------------------------------------------------- */

static void sent(void *buffer)
{
    kf_buffer_drop(buffer);
}

/* Sends a packet if the transport takes it.  The body is kept until it is
 * sent. */
static kofn_status try_send(kf_host *h, const kf_waiting *w)
{
    kofn_status st;

    assert(w->bytes == 0 || w->body);
    if (w->body)
        kf_buffer_keep(w->body);
    st = h->t->send(h->t, w->peer, w->head, sizeof w->head,
                    &(kofn_lent){w->body ? w->body->m.data : NULL, w->bytes,
                                 w->body ? sent : NULL, w->body},
                    w->urgent);
    if (st == KOFN_AGAIN)
        kf_buffer_drop(w->body);
    return st;
}

static size_t waits_for(const kf_host *h, kofn_peer peer, size_t before)
{
    size_t n = 0;

    for (size_t i = 0; i < before; i++)
        n += h->waiting[i].peer == peer;
    return n;
}

static void drop_waiting(kf_host *h, kofn_peer peer)
{
    size_t kept = 0;

    for (size_t i = 0; i < h->waits; i++)
        if (h->waiting[i].peer != peer)
            h->waiting[kept++] = h->waiting[i];
        else
            kf_buffer_drop(h->waiting[i].body);
    h->waits = kept;
}

/* Sends each peer's packets in order, until the transport takes no more. */
static void send_waiting(kf_host *h)
{
    size_t kept = 0;

    for (size_t i = 0; i < h->waits; i++) {
        kf_waiting *w = &h->waiting[i];

        if (waits_for(h, w->peer, kept) || try_send(h, w) == KOFN_AGAIN)
            h->waiting[kept++] = *w;
        else
            kf_buffer_drop(w->body);
    }
    h->waits = kept;
}

/* True if the new packet replaces one that waits.  Vectors, epochs and
 * heartbeats report a state, so the newest is enough.  Other notes replace only
 * equal ones. */
static bool replaces(const kf_waiting *w, const kf_waiting *old)
{
    if (w->peer != old->peer || w->type != old->type)
        return false;
    return w->type == KF_NOTE_VECTOR || w->type == KF_NOTE_EPOCH ||
           w->type == KF_NOTE_BEAT ||
           memcmp(w->head, old->head, sizeof w->head) == 0;
}

/* Sets *out to the waiting packet that this one replaces, or to a free place.
 * NULL: too much waits for this peer, which may ask without end or take
 * nothing.  The vector, and the coded and decoded partial products of two
 * iterates, are at most five times the largest of vectors and products. */
static kofn_status find_place(kf_host *h, const kf_waiting *w, kf_waiting **out)
{
    size_t letters = 0, bytes = w->bytes;

    *out = NULL;
    for (size_t i = 0; i < h->waits; i++) {
        kf_waiting *x = &h->waiting[i];

        if (replaces(w, x)) {
            *out = x;
        } else if (x->peer == w->peer) {
            letters++;
            bytes += x->bytes;
        }
    }
    if (letters >= MOST_FOR_ONE || bytes > 5 * h->largest + MOST_SMALL)
        *out = NULL;
    else if (!*out && h->waits < MOST_WAITING) {
        TRY(kf_grow(&h->waiting, &h->wait_cap, h->waits, sizeof *h->waiting));
        *out = &h->waiting[h->waits++];
        (*out)->body = NULL;
    }
    return KOFN_OK;
}

/* Sends a packet or lets it wait; takes over the body.  A packet that cannot be
 * sent is lost: notes are repeated, and nodes repeat their requests. */
static kofn_status post(kf_host *h, kf_waiting w)
{
    kf_waiting *place = NULL;
    kofn_status st =
        waits_for(h, w.peer, h->waits) ? KOFN_AGAIN : try_send(h, &w);

    if (st == KOFN_AGAIN)
        st = find_place(h, &w, &place);
    else
        st = KOFN_OK;
    kf_buffer_drop(place ? place->body : w.body);
    if (place)
        *place = w;
    return st;
}

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
    bool now = note->at.step == h->at.step && note->at.lineage == h->at.lineage;
    bool before = note->at.step == h->before_at.step &&
                  note->at.lineage == h->before_at.lineage;
    kf_buffer *p;

    assert(note->group < KF_MAX_GROUPS);
    if (!now && !before)
        return NULL;
    p = kf_host_partial(&(now ? h->now : h->before)[note->group], note->seat);
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
        return kf_borrowed_body(h, note->group, note->rows.lo, note->rows.hi,
                                body, bytes);
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

kofn_status kf_mail_to(kf_host *h, kofn_peer peer, const kf_note *note)
{
    kf_note out = *note;
    kf_waiting w = {.peer = peer, .type = note->type};
    kf_route *r = kf_route_of(h, peer);
    kofn_status st;

    assert(peer != KF_LOCAL);
    if (r && too_soon(h, r, note))
        return KOFN_OK;
    if (r && note->type == KF_NOTE_VECTOR)
        kf_mesh_part_choose(h, r, &out);
    st = body_of(h, &out, &w.body, &w.bytes);
    if (!st && r && note->type == KF_NOTE_VECTOR)
        st = kf_route_tell(r, &w.body);
    if (st)
        return st == KOFN_AGAIN ? KOFN_OK : st;
    if (note->type == KF_NOTE_PRINT)
        out.print.value = kf_vector_quorum_local(h, note->print.key);
    w.urgent = note->type == KF_NOTE_DECIDE || note->type == KF_NOTE_ENOUGH ||
               note->type == KF_NOTE_EPOCH;
    kf_note_write(w.head, &out, h->job, w.body ? w.body->m.data : NULL,
                  h->t->whole ? 0 : w.bytes);
    return post(h, w);
}

kofn_status kf_mail_to_all(kf_host *h, const kf_note *note)
{
    for (size_t i = 0; i < h->routes; i++)
        if (h->route[i].incarnation && !h->route[i].over)
            TRY(kf_mail_to(h, h->route[i].peer, note));
    return KOFN_OK;
}

kofn_status kf_mail_send(kf_host *h, kofn_incarnation to, const kf_note *note)
{
    kf_note out = *note;

    assert(to != h->opt.incarnation);
    if (note->type == KF_NOTE_ASK) {
        TRY(kf_vector_quorum_ask(h, to, note));
        out.ask.part = kf_mesh_part_suffices(h);
    }
    for (size_t i = 0; i < h->routes; i++)
        if (h->route[i].incarnation == to && !h->route[i].over)
            TRY(kf_mail_to(h, h->route[i].peer, &out));
    return KOFN_OK;
}

/* ---- lost peers ---------------------------------------------------------- */

/* True if this node has another connection to it. */
static bool can_reach(const kf_host *h, const kf_route *r)
{
    for (size_t i = 0; i < h->routes; i++)
        if (h->route[i].incarnation == r->incarnation && !h->route[i].over &&
            h->route[i].principal == r->principal)
            return true;
    return false;
}

static kofn_status lose(kf_host *h, const kf_route *r, kf_node_event_type how)
{
    if (r->incarnation == 0 || (how == KF_NODE_WENT && can_reach(h, r)))
        return KOFN_OK;
    return kf_host_step(h, &(kf_node_event){.type = how,
                                            .now = kf_host_now(h),
                                            .incarnation = r->incarnation,
                                            .principal = r->principal});
}

/* Stops sending to the peer and receiving from it. */
static kofn_status part(kf_host *h, kf_route *r, bool forget,
                        kf_node_event_type how)
{
    if (r->over)
        return KOFN_OK;
    r->over = true;
    drop_waiting(h, r->peer);
    if (forget && h->t->forget)
        h->t->forget(h->t, r->peer);
    return lose(h, r, how);
}

kofn_status kf_mail_exclude(kf_host *h, kofn_peer peer)
{
    kf_route *liar = kf_route_of(h, peer);
    uint64_t principal;

    if (!liar)
        return KOFN_OK;
    principal = liar->principal;
    kf_route_quarantine(h, liar);
    for (size_t i = 0; i < h->routes; i++)
        if (h->route[i].principal == principal)
            TRY(part(h, &h->route[i], true, KF_NODE_LIAR));
    return KOFN_OK;
}

/* ---- receiving ----------------------------------------------------------- */

static kofn_status tell_node(kf_host *h, const kf_route *from,
                             const kf_note *note, bool *take)
{
    kf_node_event ev = {.type = KF_NODE_NOTE,
                        .now = kf_host_now(h),
                        .note = note,
                        .principal = from->principal};

    *take = false;
    TRY(kf_node_step(h->node, &ev));
    return kf_host_act(h, take);
}

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
        TRY(kf_mesh_vector_room(h, p->body_bytes, body));
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

/* Returns the bytes that the body of this note must have, if it has `has` now.
 * SIZE_MAX: any. */
static size_t body_bytes(const kf_host *h, const kf_note *note, size_t has)
{
    const kf_host_product_data *p = kf_host_product(h, note->at.step);
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
    case KF_NOTE_BLOCK: /* with its velocity, or without, or none */
        lo = note->seat == KOFN_NO_SEAT
                 ? 0
                 : kf_borrowed_bytes(h, note->group, note->rows.lo,
                                     note->rows.hi);
        return has == 2 * lo ? has : lo;
    case KF_NOTE_SKETCH: /* also with or without its velocity */
        lo = kf_sketch_bytes(h, note->group);
        return has == 2 * lo ? has : lo;
    case KF_NOTE_EPOCH:
    case KF_NOTE_DECIDE:
        return SIZE_MAX;
    default:
        return 0;
    }
}

static kofn_status keep(kf_host *h, kofn_peer from, const kf_note *note,
                        kf_buffer *body)
{
    const kf_host_product_data *on = h->on;
    size_t lo, strips;

    if (kf_mesh_part_is(note))
        return kf_mesh_part_take(h, note, body);
    if (note->type == KF_NOTE_VECTOR) {
        kf_host_way_take(h, &note->digest);
        return kf_mesh_vector_take(h, note->at, body);
    }
    assert(note->group < on->groups);
    strips = kf_host_strips(on, note->group, &lo);
    body->m = kf_host_partial_shape(on, strips, note->seat, body->m.data);
    if (note->seat == KOFN_NO_SEAT) { /* it stays, to be sent to others */
        kf_data_scatter(on->plan, 0, lo, lo + strips, body->m.data,
                        &on->out->m);
        kf_mesh_freivalds_widen(h);
    }
    return kf_host_keep(h, note->group, note->seat, from, kf_buffer_keep(body));
}

/* Reads a packet.  KOFN_AGAIN: it is dropped. */
static kofn_status read_packet(kf_host *h, kofn_packet *p, kf_note *note,
                               kf_buffer **body, void **room)
{
    size_t want;

    if (kf_note_read(note, p->head, p->head_bytes, h->job)) {
        kf_back_hear(h, p->peer, p);
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

static kofn_status receive_note(kf_host *h, const kf_route *from,
                                const kf_note *note, kf_buffer *body)
{
    kofn_peer peer = from->peer;
    bool take;

    TRY(tell_node(h, from, note, &take));
    return take ? keep(h, peer, note, body) : KOFN_OK;
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
    st = receive_note(h, &h->vector_quorum.sender, &ready, its);
    kf_buffer_drop(its);
    return st;
}

/* Takes a note of a peer that speaks for its incarnation.  Notes for the host
 * are handled here; the others go to the coordinator of the node. */
static kofn_status receive_from(kf_host *h, kofn_peer peer, const kf_note *note,
                                kf_buffer *body)
{
    kf_route *r;

    TRY(kf_route_add(h, peer, &r));
    if (!speaks_for(h, r, note->from)) {
        h->foreign++;
        return KOFN_OK;
    }
    kf_vector_quorum_hear(h, r, note);
    if (note->type == KF_NOTE_BEAT)
        TRY(kf_keep_meet(h, note->at));
    switch (note->type) {
    case KF_NOTE_VECTOR:
    case KF_NOTE_PRINT:
        return hear_vector_quorum(h, r, note, body);
    case KF_NOTE_BYE:
        return part(h, r, false, KF_NODE_WENT);
    case KF_NOTE_READ:
        return kf_borrowed_give(h, r, note);
    case KF_NOTE_BLOCK:
        return kf_borrowed_take(h, r, note, body);
    case KF_NOTE_KEPT:
        return kf_keep_receive(h, r, note->at);
    case KF_NOTE_SKETCH:
        return kf_sketch_take(h, r, note, body);
    default:
        return receive_note(h, r, note, body);
    }
}

/* Decides whether one more packet of the peer is read.  A peer that sends on
 * although nothing of it is read any more is disconnected. */
static kofn_status admit(kf_host *h, kofn_peer peer, bool *heard)
{
    kf_route *r;
    bool floods;

    TRY(kf_route_add(h, peer, &r));
    *heard = !r->over;
    if (r->over || h->confirm < 2 || h->program.change) /* no node is hostile */
        return KOFN_OK;
    *heard = kf_route_spend(h, r, &floods);
    return floods ? part(h, r, true, KF_NODE_WENT) : KOFN_OK;
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
        h->foreign++;
        st = KOFN_OK;
    } else if (!st) {
        st = receive_from(h, p->peer, &note, body);
    }
    kf_buffer_drop(body);
    kf_free(room);
    return st;
}

static kofn_status greet(kf_host *h, kofn_peer peer)
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

    for (size_t i = 0; i < h->routes; i++) {
        kf_waiting w = {.peer = h->route[i].peer, .type = hello.type};

        if (h->route[i].over)
            continue;
        kf_note_write(w.head, &hello, job, NULL, 0);
        TRY(post(h, w));
    }
    return KOFN_OK;
}

static kofn_status came(kf_host *h, kofn_peer peer)
{
    kf_route *r;

    TRY(kf_route_add(h, peer, &r));
    return greet(h, peer);
}

/* Otherwise two nodes that do not know each other's incarnation would wait
 * forever. */
kofn_status kf_mail_greet(kf_host *h)
{
    kofn_time now = kf_host_now(h);

    if (now - h->greeted < GREET)
        return KOFN_OK;
    h->greeted = now;
    for (size_t i = 0; i < h->routes; i++)
        if (!h->route[i].met && !h->route[i].over)
            TRY(greet(h, h->route[i].peer));
    return KOFN_OK;
}

static kofn_status went(kf_host *h, kofn_peer peer)
{
    kf_route *r = kf_route_of(h, peer), was;

    drop_waiting(h, peer);
    if (!r)
        return KOFN_OK;
    kf_buffer_drop(r->telling);
    was = *r;
    *r = h->route[--h->routes];
    return was.over ? KOFN_OK : lose(h, &was, KF_NODE_WENT);
}

/* Drops all peers: none is there, and none can come. */
static kofn_status lose_all(kf_host *h)
{
    kofn_node_view view;

    while (h->routes > 0)
        TRY(went(h, h->route[0].peer));
    kf_node_look(h->node, &view);
    if (view.over || view.failed)
        return KOFN_OK;
    return kf_fail_in(KOFN_TRANSPORT, "this node reached iteration %llu",
                      (unsigned long long)view.at.step);
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
            return lose_all(h);
        TRY(st);
        if (p.what == KOFN_CAME)
            TRY(came(h, p.peer));
        else if (p.what == KOFN_WENT)
            TRY(went(h, p.peer));
        else
            TRY(receive_packet(h, &p));
    }
    send_waiting(h);
    return KOFN_OK;
}

kofn_status kf_mail_look(kf_host *h)
{
    kofn_time now = kf_host_now(h);

    if (!h->t->arriving || now - h->looked < kf_host_beat(h))
        return KOFN_OK;
    h->looked = now;
    for (size_t i = 0; i < h->routes; i++) {
        const kf_route *r = &h->route[i];

        if (r->incarnation && !r->over && kf_route_is_arriving(h, r))
            TRY(kf_host_step(h, &(kf_node_event){.type = KF_NODE_ARRIVING,
                                                 .now = now,
                                                 .incarnation = r->incarnation,
                                                 .principal = r->principal}));
    }
    return KOFN_OK;
}

void kf_mail_free(kf_host *h)
{
    for (size_t i = 0; i < h->waits; i++)
        kf_buffer_drop(h->waiting[i].body);
    for (size_t i = 0; i < h->routes; i++)
        kf_buffer_drop(h->route[i].telling);
    kf_free(h->waiting);
    kf_free(h->route);
}
