/* away_receive.c -- packets from remote workers, which are not trusted.
 *
 * A body belongs to the packet until it is taken. Results go into the buffer
 * that came with the task. A packet that is not expected is counted and
 * dropped. */
#include "away.h"

#include <assert.h>

/* ---- receiving ----------------------------------------------------------- */

static void discard(port *p, kofn_packet *k)
{
    if (k->own)
        p->t->release(p->t, k->own);
    k->own = NULL;
}

/* Drops a malformed packet. */
static kofn_status refuse(port *p, kofn_packet *k)
{
    p->base.dropped++;
    discard(p, k);
    return KOFN_OK;
}

/* Disconnects a peer, which may connect again. */
static void send_away(port *p, kofn_peer peer)
{
    p->base.dropped++;
    kf_strangers_drop(&p->crowd, peer);
    p->t->forget(p->t, peer);
}

static kofn_status meet(port *p, kofn_peer peer)
{
    TRY(kf_reach(&p->of_peer, &p->peers, (size_t)peer + 1, sizeof *p->of_peer));
    TRY(kf_strangers_add(&p->crowd, peer, p->clock.listened));
    if (kf_strangers_surplus(&p->crowd, p->opt.strangers, 0, &peer)) {
        p->t->forget(p->t, peer);
        kf_strangers_drop(&p->crowd, peer);
    }
    return KOFN_OK;
}

/* True if the principal is the key of the peer: the transport then names the
 * peer by its address and its key. */
static bool is_key(const port *p, kofn_peer peer, const char *its)
{
    const char *name = p->t->name_of ? p->t->name_of(p->t, peer) : "";
    const char *key = strstr(name, ", key ");

    return key && strcmp(key + strlen(", key "), its) == 0;
}

/* Finds the number of the principal that is responsible for the peer; 0:
 * none. */
static kofn_status who_answers(port *p, kofn_peer peer, uint32_t *number)
{
    const char *name = p->t->principal_of && !p->opt.alone
                           ? p->t->principal_of(p->t, peer)
                           : NULL;
    char *copy;

    *number = 0;
    if (!name)
        return KOFN_OK;
    while (*number < p->who.count &&
           strcmp(p->who.principal[*number].name, name) != 0)
        ++*number;
    if (*number == p->who.count) {
        TRY(kf_grow(&p->who.principal, &p->who.cap, p->who.count,
                    sizeof *p->who.principal));
        if (!(copy = kf_strdup(name)))
            return KOFN_NOMEM;
        p->who.principal[p->who.count++] =
            (principal){.name = copy, .key = is_key(p, peer, copy)};
    }
    ++*number;
    return KOFN_OK;
}

/* True if a new worker has to wait. Workers that leave without an answer use up
 * numbers, seats and lines of the journal; if there were many, new ones wait. A
 * principal that has its limit of workers waits until one of them has gone,
 * since the loss of a connection may not be noticed at once. */
static bool has_to_wait(port *p, uint32_t who)
{
    const principal *of = who ? &p->who.principal[who - 1] : NULL;

    if (kf_bucket_leak(kf_away_short_lived(p, who), kf_away_now(&p->base),
                       SHORT_LIVED_RATE, 0) >= FLEETING - 1)
        return true;
    if (!of || !p->opt.crowd || of->workers < p->opt.crowd)
        return false;
    kf_away_news(p,
                 "a worker of %.64s was sent away: its limit of %zu "
                 "workers is reached",
                 of->name, p->opt.crowd);
    return true;
}

static kofn_status welcome(port *p, const kofn_packet *k, const kf_head *h)
{
    kofn_peer peer = k->peer;
    worker w = {.peer = peer, .process = h->lo, .staged = h->which != 0};
    uint32_t who;

    kf_badge_read(&w.badge, h, k);

    TRY(who_answers(p, peer, &who));
    if (has_to_wait(p, who)) {
        send_away(p, peer);
        return KOFN_OK;
    }
    kf_strangers_drop(&p->crowd, peer);
    w.principal = who;
    w.held.holds = h->job == p->job ? h->block : 0;
    TRY(kf_away_enrol(p, &w));
    return kf_away_store(p);
}

static kofn_status unasked(port *p, uint32_t id, kofn_packet *k)
{
    discard(p, k);
    return kf_away_strike(p, id);
}

/* Returns the pending task that this head is a result for, if the body has the
 * right length; else NULL. */
static const pending_task *pending_of(const port *p, uint32_t id,
                                      const void *head, size_t head_bytes,
                                      size_t body_bytes)
{
    const pending_task *e;
    kf_head h;

    if (id >= p->workers || p->worker[id]->gone ||
        kf_head_read(&h, head, head_bytes) || h.type != KF_WIRE_RESULT ||
        h.job != p->job)
        return NULL;
    e = kf_away_pending(p->worker[id], h.task);
    return e && body_bytes == e->bytes ? e : NULL;
}

/* True for a result that is waited for. Asked for bodies that are longer than a
 * slice. */
bool kf_away_wanted(void *ud, kofn_peer peer, const void *head,
                    size_t head_bytes, size_t body_bytes)
{
    return pending_of(ud, kf_away_worker(ud, peer), head, head_bytes,
                      body_bytes) != NULL;
}

bool kf_away_coming(kofn_port *base, uint32_t id, kf_coming *c)
{
    const port *p = (const port *)base;
    const pending_task *e;
    kofn_arriving a;

    if (id >= p->workers || !p->t->arriving ||
        !p->t->arriving(p->t, p->worker[id]->peer, &a))
        return false;
    e = pending_of(p, id, a.head, a.head_bytes, a.body_bytes);
    if (!e || !e->result || a.at == 0 || a.at >= e->bytes)
        return false;
    *c = (kf_coming){.product = e->product,
                     .part = (double)a.at / (double)a.body_bytes,
                     .since = kf_away_now(base) - a.age};
    return true;
}

/* Reports the worker's answer to a pending task, with the reason if it failed.
 */
static kofn_status answer(port *p, uint32_t id, const kf_head *h,
                          kf_buffer *result, kofn_status status, char *why)
{
    return kf_inbox_put(
        &p->ready, (kf_msg){.type = status ? KF_MSG_FAILED : KF_MSG_RESULT,
                            .worker = id,
                            .product = h->product,
                            .task = h->task,
                            .row = h->row,
                            .round = h->round,
                            .result = result,
                            .status = status,
                            .why = why,
                            .took = (kofn_time)kf_min(h->took, KOFN_NEVER)});
}

static kofn_status take_failure(port *p, uint32_t id, const kf_head *h,
                                kofn_packet *k, kf_buffer *result)
{
    char *why;
    kofn_status st = kf_post_take_words(p->t, k, h, &why);

    discard(p, k);
    if (st == KOFN_OK)
        return answer(p, id, h, result,
                      h->status < 0 ? (kofn_status)h->status : KOFN_TRANSPORT,
                      why);
    kf_buffer_drop(result);
    return st == KOFN_NOMEM ? st : kf_away_hang_up(p, id);
}

/* Compares the workers when results of a later product come. */
static void compare(port *p, uint32_t product)
{
    kf_badge **badge = kf_new(p->workers, sizeof *badge);
    double *scratch = kf_new(p->workers, sizeof *scratch);
    size_t n = 0;

    for (size_t i = 0; badge && scratch && i < p->workers; i++)
        if (!p->worker[i]->gone)
            badge[n++] = &p->worker[i]->badge;
    if (badge && scratch)
        kf_badge_compare(badge, n, scratch);
    p->compared = product;
    kf_free(badge);
    kf_free(scratch);
}

/* Takes the result of a task that the worker has. Its buffer was allocated when
 * the task was sent. A result of another shape is reported as a failure, and a
 * damaged body ends the connection. */
static kofn_status take_result(port *p, uint32_t id, const kf_head *h,
                               kofn_packet *k)
{
    worker *w = p->worker[id];
    pending_task *e = kf_away_pending(w, h->task);
    kf_head bounded = *h;
    kf_buffer *result;
    bool as_asked;
    kofn_status st;

    if (!e && w->tasks.owes) { /* sent under its former number */
        w->tasks.owes--;
        return refuse(p, k);
    }
    if (!e)
        return unasked(p, id, k);
    if (h->product > p->compared)
        compare(p, h->product);
    kf_badge_count(&w->badge, h, k->body_bytes);
    w->useful = true;
    w->tasks.heard = kf_away_now(&p->base);
    if (!e->result) { /* the task was cancelled */
        kf_away_end(w, e);
        assert(w->tasks.cancelled > 0);
        w->tasks.cancelled--;
        discard(p, k);
        return KOFN_OK;
    }
    as_asked = h->product == e->product && h->row == e->row;
    bounded.product = e->product;
    bounded.row = e->row;
    bounded.took = kf_min(h->took, (uint64_t)(w->tasks.heard - e->since));
    h = &bounded;
    result = kf_away_end(w, e);
    if (h->type == KF_WIRE_FAILED)
        return take_failure(p, id, h, k, result);
    if (!as_asked || h->rows != result->m.rows || h->cols != result->m.cols ||
        h->dtype != result->m.dtype) {
        refuse(p, k);
        return answer(p, id, h, result, KOFN_FORMAT, NULL);
    }
    st = kf_post_take_body(p->t, k, h, &result);
    if (st == KOFN_OK)
        return answer(p, id, h, result, KOFN_OK, NULL);
    kf_buffer_drop(result);
    return st == KOFN_NOMEM ? st : kf_away_hang_up(p, id);
}

static kofn_status from_stranger(port *p, const kf_head *h, kofn_status st,
                                 kofn_packet *k)
{
    kofn_peer peer = k->peer;
    kf_stranger *s = kf_strangers_find(&p->crowd, peer);
    kofn_status welcomed = KOFN_OK;

    if (s && !s->refused && !st && h->type == KF_WIRE_HELLO)
        welcomed = welcome(p, k, h);
    else if (s && !st && h->type == KF_WIRE_ASK)
        kf_away_tell(p, k);
    discard(p, k);
    if (s && !st && (h->type == KF_WIRE_HELLO || h->type == KF_WIRE_ASK))
        return welcomed;
    if (!s || s->refused) {
        p->base.dropped++;
    } else if (h->version && st) {
        /* Another version of kofn: it leaves when it reads the refusal, or is
         * disconnected later. */
        kf_away_news(p, "a worker was turned away: %s", kofn_errmsg());
        kf_away_say(p, peer, KF_WIRE_REFUSED, 0, kofn_errmsg());
        s->refused = true;
        p->base.dropped++;
    } else {
        /* another program, or damaged */
        send_away(p, peer);
    }
    return KOFN_OK;
}

/* Prints the first line of the reason that a worker gives for leaving, at most
 * 200 characters. */
static void tell_why(port *p, uint32_t id, const kf_head *h, kofn_packet *k)
{
    char *words;

    if (kf_post_take_words(p->t, k, h, &words) || !words)
        return;
    kf_away_news(p, "%s went: %.*s", kf_away_title(p, id),
                 (int)kf_min(strcspn(words, "\n"), 200), words);
    kf_free(words);
}

/* Handles a packet of a known worker. A malformed or repeated one is a strike
 * against the worker. */
static kofn_status from_worker(port *p, uint32_t id, const kf_head *h,
                               kofn_packet *k)
{
    assert(id < p->workers);
    kf_msg m = {.worker = id};

    if (h->job != p->job && h->type != KF_WIRE_HELLO)
        return unasked(p, id, k);
    if (h->type == KF_WIRE_RESULT || h->type == KF_WIRE_FAILED)
        return take_result(p, id, h, k);
    if (h->type == KF_WIRE_BYE)
        tell_why(p, id, h, k);
    discard(p, k);
    switch (h->type) {
    case KF_WIRE_HELLO: /* repeated: the welcome has not arrived */
        kf_away_say(p, k->peer, KF_WIRE_WELCOME, id, NULL);
        return kf_away_strike(p, id);
    case KF_WIRE_NEED:
        return kf_away_ask(p, id, h);
    case KF_WIRE_CHANGED:
        return kf_away_changed(p, id, h);
    case KF_WIRE_STORED:
        if (h->block != p->worker[id]->held.block_id ||
            p->worker[id]->held.stored)
            break;
        p->worker[id]->held.storing = kf_away_storing(&p->base, id);
        p->worker[id]->held.stored = true;
        m.type = KF_MSG_STORED;
        return kf_inbox_put(&p->ready, m);
    case KF_WIRE_NOTICE:
        if (p->worker[id]->noticed)
            break;
        p->worker[id]->noticed = true;
        m.type = KF_MSG_NOTICE;
        return kf_inbox_put(&p->ready, m);
    case KF_WIRE_BYE:
        return kf_away_lose(p, id);
    default:
        break;
    }
    return kf_away_strike(p, id);
}

kofn_status kf_away_receive(port *p, kofn_packet *k)
{
    uint32_t id = kf_away_worker(p, k->peer);
    kofn_status st;
    kf_head h;

    if (k->what == KOFN_CAME)
        return meet(p, k->peer);
    if (k->what == KOFN_WENT) {
        kf_strangers_drop(&p->crowd, k->peer);
        return id == NOBODY ? KOFN_OK : kf_away_lose(p, id);
    }
    st = kf_head_read(&h, k->head, k->head_bytes);
    if (id == NOBODY)
        return from_stranger(p, &h, st, k);
    if (!st)
        return from_worker(p, id, &h, k);
    discard(p, k);
    return kf_away_hang_up(p, id);
}

/* Disconnects peers that connect and do not say hello. */
void kf_away_send_away(port *p)
{
    kofn_peer peer;

    while (kf_strangers_surplus(&p->crowd, SIZE_MAX,
                                p->clock.listened - HELLO_TIME, &peer))
        send_away(p, peer);
}

/* ---- questions ----------------------------------------------------------- */

static kofn_fleet_state state_of(const worker *w)
{
    return w->noticed       ? KOFN_FLEET_DRAINING
           : w->tasks.count ? KOFN_FLEET_BUSY
                            : KOFN_FLEET_FREE;
}

/* Lets the worker of that name leave. Returns NULL, or why it does not. */
static const char *drain(port *p, kofn_peer asks, const char *name)
{
    const kf_head h = {.type = KF_WIRE_DRAIN, .job = p->job};
    const char *why = "no connected worker has that name";

    for (uint32_t i = 0; i < p->workers; i++)
        if (!p->worker[i]->gone &&
            strcmp(p->worker[i]->badge.name, name) == 0) {
            why = kf_badge_may_drain(p->t, asks, p->worker[i]->peer);
            if (!why)
                kf_away_post(p, i, &h, NULL);
        }
    return why;
}

void kf_away_tell(port *p, kofn_packet *k)
{
    char name[KF_NAME_MOST + 1] = "";
    size_t n = k->body ? kf_min(k->body_bytes, KF_NAME_MOST) : 0;
    bool reads = true;

    if (n)
        memcpy(name, k->body, n);
    else
        reads = kf_badge_tell_job(p->t, k->peer, &p->doing);
    for (size_t i = 0; reads && !n && i < p->workers; i++)
        if (!p->worker[i]->gone) {
            kofn_fleet_worker w =
                kf_badge_describe(&p->worker[i]->badge, state_of(p->worker[i]));

            reads = kf_badge_tell(p->t, k->peer, &w, NULL);
        }
    if (reads)
        kf_badge_tell(p->t, k->peer, NULL, n ? drain(p, k->peer, name) : NULL);
}
