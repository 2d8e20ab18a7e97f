/* back.c -- returns to a checkpoint when an iterate cannot be settled.
 *
 * Pieces may disagree so that it cannot be decided which are wrong, however
 * often the iterate is repeated.  The nodes then restart from their last common
 * checkpoint.
 *
 * A run consists of *attempts*.  Each attempt is a separate job, so a packet of
 * one attempt does not count in another.  Within an attempt no iterate is ever
 * taken back.  A node that has failed announces that it wants the next attempt,
 * and continues to serve the others.  When a node hears that half of the nodes
 * want an attempt, it starts that attempt.  The attempt begins at the last step
 * that all nodes had on disk, or at the start.  If an attempt fails before a
 * new checkpoint, the next one starts from an earlier checkpoint.
 *
 * Owns the number of the attempt and the vector of the start.  Files belong to
 * keep.c.  The coordinator of the node is rebuilt; quarantined nodes stay
 * quarantined. */
#include "keep.h"

#include <assert.h>

#define MOST_ATTEMPTS 16 /* of a run */
#define MOST_VAIN 3      /* in succession, without a new checkpoint */
#define WANTS 32 /* wait for other nodes, in silences; `give_up` is added */

static uint64_t job_of(const kf_host *h, unsigned attempt)
{
    uint64_t number = attempt;

    assert(attempt <= MOST_ATTEMPTS);
    return attempt ? kf_hash(h->back.job, &number, sizeof number) : h->back.job;
}

kofn_status kf_back_new(kf_host *h)
{
    kf_backing *b = &h->back;
    size_t bytes;

    b->job = h->job;
    if (!h->opt.keep || !h->program.change || h->opt.errors == KOFN_ERRORS_NONE)
        return KOFN_OK;
    return kf_mesh_vector_body(h, &b->start, &bytes);
}

void kf_back_free(kf_host *h)
{
    kf_buffer_drop(h->back.start);
    h->back.start = NULL;
}

/* ---- requests for another attempt ---------------------------------------- */

void kf_back_hear(kf_host *h, kofn_peer peer, const kofn_packet *p)
{
    kf_route *r = kf_route_of(h, peer);
    kf_note note;

    if (!h->back.start || !r)
        return;
    for (unsigned a = 0; a <= MOST_ATTEMPTS; a++)
        if (!kf_note_read(&note, p->head, p->head_bytes, job_of(h, a)) &&
            kf_route_is_of(h, r, note.from))
            r->attempt = a;
}

/* True if route i wants that attempt and is the first live connection of its
 * principal that does. */
static bool counts(const kf_host *h, size_t i, unsigned attempt)
{
    const kf_route *r = &h->route[i];

    assert(i < h->routes);
    for (size_t j = 0; j < i; j++)
        if (h->route[j].principal == r->principal && !h->route[j].over &&
            h->route[j].incarnation && h->route[j].attempt >= attempt)
            return false;
    return r->incarnation && !r->over && r->attempt >= attempt;
}

static size_t count(const kf_host *h, unsigned attempt, bool ourselves)
{
    size_t n = ourselves;

    for (size_t i = 0; i < h->routes; i++)
        n += counts(h, i, attempt);
    return n;
}

/* True if the leader wants another attempt, not only a repetition. */
static bool leader_wants(const kf_host *h)
{
    kofn_node_view view;
    kofn_incarnation leader;

    kf_node_look(h->node, &view);
    leader = view.epoch.proposer;
    for (size_t i = 0; i < h->routes; i++)
        if (h->route[i].incarnation == leader && !h->route[i].over)
            return h->route[i].attempt > h->back.attempt;
    return false;
}

/* True if another attempt is possible. */
static bool can_go(const kf_host *h)
{
    return h->back.start && h->back.vain < MOST_VAIN &&
           h->back.attempt < MOST_ATTEMPTS;
}

/* True if this node cannot continue in this attempt. */
static bool has_failed(const kf_host *h)
{
    return can_go(h) && (kf_node_failed(h->node) ||
                         (kf_node_is_stuck(h->node) && leader_wants(h)));
}

kofn_time kf_back_patience(const kf_host *h)
{
    return h->opt.give_up + (can_go(h) ? WANTS * kf_host_silence(h) : 0);
}

bool kf_back_waits(const kf_host *h)
{
    return has_failed(h) && h->back.since &&
           kf_host_now(h) - h->back.since < kf_back_patience(h);
}

/* ---- returning ----------------------------------------------------------- */

/* Adds the counts of the coordinator of a node. */
static void add(kofn_node_view *sum, const kofn_node_view *v)
{
    sum->epochs += v->epochs;
    sum->adopted += v->adopted;
    sum->dropped += v->dropped;
    sum->liars += v->liars;
    sum->left_out += v->left_out;
    sum->again += v->again;
    sum->outvoted += v->outvoted;
}

void kf_back_add(const kf_host *h, kofn_node_view *view)
{
    add(view, &h->back.before);
    view->back = h->back.times;
}

/* Starts from a copy of the first vector, because a vector is changed in
 * place. */
static kofn_status begin_at_start(kf_host *h)
{
    const kf_buffer *start = h->back.start;
    kf_buffer *body;
    kofn_status st;

    assert(h->back.start);
    for (size_t i = 0; i < h->program.operands; i++) {
        kf_mesh_operand *o = &h->operand[i];

        if (o->plan) /* as in a node that has just joined */
            TRY(kf_equilibrate_restart(
                kf_equilibrate_kind(o->plan, h->opt.errors), &o->dense,
                &o->scaling));
    }
    TRY(kf_buffer_new(&body, start->m.rows, start->m.cols, KOFN_F64));
    memcpy(body->m.data, start->m.data, kf_buffer_bytes(start));
    st = kf_mesh_vector_take(h, (kofn_iterate_id){0, h->job}, body);
    kf_buffer_drop(body);
    return st;
}

kofn_iterate_id kf_back_iterate(const kf_host *h, kofn_iterate_id kept)
{
    if (h->back.attempt > 0 && kept.step > 0)
        kept.lineage = kf_mix64(kf_state64(kept.lineage ^ h->job, 3));
    return kept;
}

/* Starts from a checkpoint before turn `before`, with a new coordinator. */
static kofn_status begin(kf_host *h, uint64_t before)
{
    assert(!h->node);
    TRY(begin_at_start(h));
    TRY(kf_keep_rewind(h, before));
    h->at = kf_back_iterate(h, h->at);
    TRY(kf_host_node_new(h));
    return kf_mail_greet(h);
}

/* Starts the attempt.  If that fails, the former coordinator stays, so that the
 * state of the node can be reported. */
static kofn_status go(kf_host *h, unsigned attempt)
{
    kf_backing *b = &h->back;
    uint64_t kept = kf_keep_last(h, UINT64_MAX);
    bool vain = b->times > 0 && kept == b->kept;
    uint64_t before = vain ? b->turn : UINT64_MAX;
    kf_node *was = h->node;
    kofn_node_view view;
    kofn_status st;

    assert(attempt > b->attempt);
    assert(attempt <= MOST_ATTEMPTS);
    b->vain = vain ? b->vain + 1 : 1;
    b->kept = kept;
    b->times++;
    b->attempt = attempt;
    b->since = 0;
    kf_node_look(was, &view);
    h->node = NULL;
    kf_host_forget(h);
    h->job = job_of(h, attempt);
    b->turn = kf_keep_last(h, before);
    st = begin(h, before);
    if (!h->node) {
        h->node = was;
        return st;
    }
    add(&b->before, &view);
    kf_node_free(was);
    return st;
}

/* True if another node wants a later attempt.  Usually none does, and this
 * saves the costlier count. */
static bool any_wants(const kf_host *h)
{
    for (size_t i = 0; i < h->routes; i++)
        if (h->route[i].attempt > h->back.attempt)
            return true;
    return false;
}

/* Returns the last attempt that half of the nodes want, or the present one. */
static unsigned wanted(const kf_host *h, bool failed)
{
    unsigned a = MOST_ATTEMPTS, now = h->back.attempt;
    size_t all = kf_max(count(h, 0, true), h->opt.nodes / 2 + 1);

    while (a > now && 2 * count(h, a, failed && a == now + 1) < all)
        a--;
    return a;
}

kofn_status kf_back_pass(kf_host *h)
{
    kf_backing *b = &h->back;
    kofn_time now = kf_host_now(h);
    unsigned next;
    bool failed;

    if (!b->start)
        return KOFN_OK;
    failed = has_failed(h);
    if (!failed && !any_wants(h))
        return KOFN_OK;
    if (failed && !b->since)
        b->since = now ? now : 1;
    if (failed && now - b->announced >= kf_host_beat(h)) {
        b->announced = now;
        TRY(kf_mail_announce(h, job_of(h, b->attempt + 1)));
    }
    next = wanted(h, failed);
    return next > b->attempt ? go(h, next) : KOFN_OK;
}
