/* back.c -- going back: where it cannot be told whose pieces are wrong, however often the
 * iterate is made again, the nodes begin again at what they kept last.
 *
 * A run is made in *attempts*, each of which is a job of its own, so that nothing of one
 * is taken for something of another: within an attempt no iterate is ever gone back
 * from.  A node that has failed tells the others that it wants the next attempt, and
 * goes on serving them.  All who hear that half of the nodes want it begin it: at the
 * last step of which all had files, or at the start.  Where an attempt fails before
 * anything was kept, the next begins with what was kept before that.
 *
 * Owns the number of the attempt and the vector of the start.  What is kept is keep.c's;
 * the coordinator of the node is made anew, and who lied is not heard again. */
#include "host.h"

#define MOST_ATTEMPTS 16 /* of a run                                    */
#define MOST_VAIN 3      /* one after the other, with nothing kept      */
#define WANTS 32         /* silences that a node waits for the others   */

static uint64_t job_of(const kf_host *h, unsigned attempt)
{
    uint64_t number = attempt;

    return attempt ? kf_mesh_digest(h->back.job, &number, sizeof number)
                   : h->back.job;
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

/* ---- who wants it -------------------------------------------------------- */

void kf_back_hear(kf_host *h, kofn_peer peer, const kofn_packet *p)
{
    kf_route *r = kf_mail_route(h, peer);
    kf_note note;

    if (!h->back.start || !r)
        return;
    for (unsigned a = 0; a <= MOST_ATTEMPTS; a++)
        if (!kf_note_read(&note, p->head, p->head_bytes, job_of(h, a)) &&
            kf_mail_is_of(h, r, note.from))
            r->attempt = a;
}

/* Is it the first connection of its principal that is there, and wants that? */
static bool counts(const kf_host *h, size_t i, unsigned attempt)
{
    const kf_route *r = &h->route[i];

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

/* Does the leader want more than to make the iterate again? */
static bool leader_wants(const kf_host *h, kofn_incarnation leader)
{
    for (size_t i = 0; i < h->routes; i++)
        if (h->route[i].incarnation == leader && !h->route[i].over)
            return h->route[i].attempt > h->back.attempt;
    return false;
}

/* This node cannot go on. */
static bool has_failed(const kf_host *h)
{
    kofn_node_view view;

    kf_node_look(h->node, &view);
    return h->back.start && h->back.vain < MOST_VAIN &&
           h->back.attempt < MOST_ATTEMPTS &&
           (view.failed != KOFN_OK || (kf_node_is_stuck(h->node) &&
                                       leader_wants(h, view.epoch.proposer)));
}

bool kf_back_waits(const kf_host *h)
{
    return has_failed(h) && h->back.since &&
           kf_host_now(h) - h->back.since < WANTS * kf_host_silence(h);
}

/* ---- going --------------------------------------------------------------- */

/* What the coordinator counted, which is made anew. */
static void remember(kf_host *h)
{
    kofn_node_view *sum = &h->back.before, view;

    kf_node_look(h->node, &view);
    sum->epochs += view.epochs;
    sum->adopted += view.adopted;
    sum->dropped += view.dropped;
    sum->liars += view.liars;
    sum->left_out += view.left_out;
    sum->again += view.again;
    sum->outvoted += view.outvoted;
}

void kf_back_add(const kf_host *h, kofn_node_view *view)
{
    const kofn_node_view *sum = &h->back.before;

    view->epochs += sum->epochs;
    view->adopted += sum->adopted;
    view->dropped += sum->dropped;
    view->liars += sum->liars;
    view->left_out += sum->left_out;
    view->again += sum->again;
    view->outvoted += sum->outvoted;
    view->back = h->back.times;
}

/* Of a copy, for a vector is written where it lies. */
static kofn_status begin_at_start(kf_host *h)
{
    const kf_buffer *start = h->back.start;
    kf_buffer *body;
    kofn_status st;

    for (size_t i = 0; i < h->program.operands; i++) {
        kf_mesh_operand *o = &h->operand[i];

        if (o->plan) /* as whoever comes new has them */
            TRY(kf_raise_restart(o->plan, &o->dense, &o->levels));
    }
    TRY(kf_buffer_new(&body, start->m.rows, start->m.cols, KOFN_F64));
    memcpy(body->m.data, start->m.data, kf_buffer_bytes(start));
    st = kf_mesh_vector_take(h, (kofn_mark){0, h->job}, body);
    kf_buffer_drop(body);
    return st;
}

static kofn_status go(kf_host *h, unsigned attempt)
{
    kf_backing *b = &h->back;
    bool vain = b->times > 0 && h->keeping.kept == b->kept;

    b->vain = vain ? b->vain + 1 : 1;
    b->kept = h->keeping.kept;
    b->times++;
    b->attempt = attempt;
    b->since = 0;
    remember(h);
    kf_node_free(h->node);
    h->node = NULL;
    kf_host_forget(h);
    h->job = job_of(h, attempt);
    TRY(begin_at_start(h));
    TRY(kf_keep_rewind(h, vain ? b->turn : UINT64_MAX));
    /* the same at all nodes, and of no iterate of another attempt */
    if (h->at.t > 0)
        h->at.line = kf_mix64(kf_state64(h->at.line ^ h->job, 3));
    b->turn = h->changing.turn;
    TRY(kf_host_node_new(h));
    return kf_mail_greet(h);
}

kofn_status kf_back_pass(kf_host *h)
{
    kf_backing *b = &h->back;
    kofn_time now = kf_host_now(h);
    bool failed = has_failed(h);
    size_t all;

    if (!b->start)
        return KOFN_OK;
    if (failed && !b->since)
        b->since = now ? now : 1;
    if (failed && now - b->told >= kf_host_beat(h)) {
        b->told = now;
        TRY(kf_mail_announce(h, job_of(h, b->attempt + 1)));
    }
    all = kf_max(count(h, 0, true), h->opt.nodes / 2 + 1);
    for (unsigned a = MOST_ATTEMPTS; a > b->attempt; a--)
        if (2 * count(h, a, failed && a == b->attempt + 1) >= all)
            return go(h, a);
    return KOFN_OK;
}
