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
#include "host.h"

#include <assert.h>

kofn_status kf_back_new(kf_host *h)
{
    kf_backing *b = &h->disk.back;
    size_t bytes;

    b->job = h->job;
    if (!h->opt.keep || !h->blocks.changes || h->opt.errors == KOFN_ERRORS_NONE)
        return KOFN_OK;
    return kf_mesh_vector_body(h, &b->start, &bytes);
}

void kf_back_free(kf_mesh_disk *disk)
{
    kf_buffer_drop(disk->back.start);
    disk->back.start = NULL;
}

/* ---- requests for another attempt ---------------------------------------- */

/* True if route i wants that attempt and is the first live connection of its
 * principal that does. */
static bool counts(const kf_connections *net, size_t i, unsigned attempt)
{
    const kf_route *r = &net->route[i];

    assert(i < net->routes);
    for (size_t j = 0; j < i; j++)
        if (net->route[j].principal == r->principal && !net->route[j].over &&
            net->route[j].incarnation && net->route[j].attempt >= attempt)
            return false;
    return r->incarnation && !r->over && r->attempt >= attempt;
}

static size_t count(const kf_connections *net, unsigned attempt, bool ourselves)
{
    size_t n = ourselves;

    for (size_t i = 0; i < net->routes; i++)
        n += counts(net, i, attempt);
    return n;
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

void kf_back_add(const kf_mesh_disk *disk, kofn_node_view *view)
{
    add(view, &disk->back.before);
    view->back = disk->back.times;
}

/* Starts from a copy of the first vector, because a vector is changed in
 * place. */
static kofn_status begin_at_start(kf_host *h)
{
    const kf_buffer *start = h->disk.back.start;
    kf_buffer *body;
    kofn_status st;

    assert(h->disk.back.start);
    for (size_t i = 0; i < h->blocks.operands; i++) {
        kf_mesh_operand *o = &h->blocks.operand[i];

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

/* Starts from a checkpoint before turn `before`, with a new coordinator. */
static kofn_status begin(kf_host *h, uint64_t before)
{
    assert(!h->node);
    TRY(begin_at_start(h));
    TRY(kf_keep_rewind(h, before));
    h->it.at = kf_attempt_iterate(h, h->it.at);
    TRY(kf_host_node_new(h));
    return kf_mail_greet(h);
}

/* Discards all that was made or came, except the quarantine list. */
static void forget(kf_host *h)
{
    kf_changing *c = &h->blocks.changing;

    kf_borrowed_forget(&h->blocks);
    kf_sketch_forget(&h->blocks);
    kf_vector_quorum_drop(&h->it);
    h->it.quorum.merged = 0;
    c->turn = c->changed = 0;
    memset(c->line, 0, h->blocks.changing.recalls * sizeof *c->line);
    h->opt.seat = h->blocks.seat != KOFN_NO_SEAT ? h->blocks.seat : h->opt.seat;
    h->blocks.seat = KOFN_NO_SEAT;
    h->it.again = h->it.outvoted = 0;
    h->told = (kf_told){.lost = false};
    h->it.odd = false;
    h->it.blown = (kofn_iterate_id){0, 0};
    h->net.greeted = 0;
    for (size_t i = 0; i < h->net.routes; i++) {
        h->net.route[i].t = 0;
        h->net.route[i].witness.prints = 0;
        h->net.route[i].witness.agrees = h->net.route[i].met = false;
    }
}

/* Starts the attempt.  If that fails, the former coordinator stays, so that the
 * state of the node can be reported. */
static kofn_status go(kf_host *h, unsigned attempt)
{
    kf_backing *b = &h->disk.back;
    uint64_t kept = kf_keep_last(&h->disk, UINT64_MAX);
    bool vain = b->times > 0 && kept == b->kept;
    uint64_t before = vain ? b->turn : UINT64_MAX;
    kf_node *was = h->node;
    kofn_node_view view;
    kofn_status st;

    assert(attempt > b->attempt);
    assert(attempt <= KF_MOST_ATTEMPTS);
    b->vain = vain ? b->vain + 1 : 1;
    b->kept = kept;
    b->times++;
    b->attempt = attempt;
    b->since = 0;
    kf_node_look(was, &view);
    h->node = NULL;
    forget(h);
    h->job = kf_attempt_job(&h->disk, attempt);
    b->turn = kf_keep_last(&h->disk, before);
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
    for (size_t i = 0; i < h->net.routes; i++)
        if (h->net.route[i].attempt > h->disk.back.attempt)
            return true;
    return false;
}

/* Returns the last attempt that half of the nodes want, or the present one. */
static unsigned wanted(const kf_host *h, bool failed)
{
    unsigned a = KF_MOST_ATTEMPTS, now = h->disk.back.attempt;
    size_t all = kf_max(count(&h->net, 0, true), h->opt.nodes / 2 + 1);

    while (a > now && 2 * count(&h->net, a, failed && a == now + 1) < all)
        a--;
    return a;
}

kofn_status kf_back_pass(kf_host *h)
{
    kf_backing *b = &h->disk.back;
    kofn_time now = kf_host_now(h);
    unsigned next;
    bool failed;

    if (!b->start)
        return KOFN_OK;
    failed = kf_attempt_has_failed(h);
    if (!failed && !any_wants(h))
        return KOFN_OK;
    if (failed && !b->since)
        b->since = now ? now : 1;
    if (failed && now - b->announced >= kf_host_beat(h)) {
        b->announced = now;
        TRY(kf_mail_announce(h, kf_attempt_job(&h->disk, b->attempt + 1)));
    }
    next = wanted(h, failed);
    return next > b->attempt ? go(h, next) : KOFN_OK;
}
