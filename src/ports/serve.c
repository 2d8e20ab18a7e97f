/* serve.c -- the life of a worker: it finds the coordinator, stores a block,
 * and works until it is dismissed. The other side of docs/wire.md.
 *
 * One thread computes and receives. A computation calls `stopped` about every
 * millisecond; that call receives messages. So a cancelled task ends at once,
 * and the input of the next task arrives before its turn.
 *
 * The block outlives the coordinator. A coordinator that restarts with the same
 * job requests the same block, and nothing is sent again, not even the slices
 * of an incomplete block.
 *
 * Owns the worker's block, tasks and outbox, on one thread. It decides nothing:
 * it refuses a task that it cannot do. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "serve.h"

#include "base/clock.h"
#include "data/kernel.h"

#define LOOK_UP (KOFN_SECOND / 1000) /* messages are received */
#define IDLE (KOFN_SECOND / 50)      /* `watch` is called */
#define IDLE_MOST (16 * IDLE)        /* ... if the worker only waits */
#define ASK_AGAIN (2 * KOFN_SECOND)  /* requested slices count as lost */

/* ---- sending ------------------------------------------------------------- */

/* Counts an answer; p is the result. */
static void count(visit *w, const kf_buffer *p, kofn_status st, kofn_time took)
{
    kofn_serve_counts *c = &w->counts;

    c->failures += st && st != KOFN_AGAIN;
    if (st)
        return;
    c->results++;
    c->computed += (double)took * 1e-9;
    c->bytes += (double)kf_buffer_bytes(p);
}

/* Sends the answer to a task; takes over m's result. */
static void answer(server *s, kf_msg *m, kofn_status st, kofn_time took)
{
    kf_head h = {.type = st ? KF_WIRE_FAILED : KF_WIRE_RESULT,
                 .job = s->job,
                 .task = m->task,
                 .round = m->round,
                 .product = m->product,
                 .row = m->row,
                 .status = st,
                 .took = (uint64_t)took};
    kf_buffer *p = m->result;
    kofn_lent lent;

    assert(st || m->result);
    count(s->w, p, st, took);
    m->result = NULL;
    if (st) {
        kf_buffer_drop(p);
        if (st == KOFN_AGAIN)
            kf_serve_post(s, &h, NULL);
        else
            kf_serve_post_words(s, &h, kofn_errmsg());
        return;
    }
    h.rows = p->m.rows;
    h.cols = p->m.cols;
    h.dtype = p->m.dtype;
    lent = kf_post_lend(p);
    kf_serve_post(s, &h, &lent);
}

/* ---- inputs and tasks ---------------------------------------------------- */

/* Checks a task before it allocates memory for it. */
static kofn_status make_pending(server *s, const kf_head *h, kofn_packet *k,
                                kf_msg *m)
{
    TRY(kf_serve_can_do(s, h, m));
    TRY(kf_serve_operands(s, h, k, m));
    TRY(kf_buffer_new(&m->result, h->out_rows, h->out_cols, h->dtype));
    return kf_outbox_room(&s->pending, &s->first, s->pending_count, &s->cap,
                          sizeof *s->pending);
}

static void take_work(server *s, const kf_head *h, kofn_packet *k)
{
    kf_msg m = kf_serve_task_of(h);
    kofn_status st = make_pending(s, h, k, &m);

    if (st) {
        kf_post_drop(&m);
        answer(s, &m, st, 0);
        kf_serve_fail(s, st);
        if (st == KOFN_FORMAT) /* damaged in transit */
            kf_serve_hang_up(s->w);
        return;
    }
    kf_serve_queue_up(s, (pending_task){m, false, h->updates});
}

/* Cancels a task. A task that only waits is answered at once and its memory
 * freed. */
static void cancel(server *s, uint32_t task)
{
    pending_task *queue;
    size_t i = 0;
    kf_msg m;

    if (s->pending_count == 0)
        return;
    queue = s->pending + s->first;
    while (i < s->pending_count &&
           (queue[i].msg.type != KF_MSG_WORK || queue[i].msg.task != task))
        i++;
    if (i == s->pending_count)
        return;
    if (i == 0) { /* it may be running */
        queue->cancelled = true;
        return;
    }
    m = queue[i].msg;
    s->pending_count--;
    memmove(&queue[i], &queue[i + 1], (s->pending_count - i) * sizeof *queue);
    kf_post_drop(&m);
    answer(s, &m, KOFN_AGAIN, 0);
}

/* ---- messages ------------------------------------------------------------ */

static void greet(server *s, const kf_head *h)
{
    char words[80];

    if (h->task != s->exposed.worker)
        kf_serve_drop_tasks(s); /* tasks of its former number */
    s->welcome = true;
    s->kept = false;
    s->exposed.worker = h->task;
    if (s->w->vanish == KOFN_NEVER)
        s->w->vanish = kf_later(
            kf_clock(),
            kf_faults_nanoseconds(kf_faults_leave(s->exposed.faults, h->task)));
    /* product numbers restart */
    if (s->block.block_spec.block && s->block.block_spec.block->subset)
        s->block.block_spec.block->subset->product = 0;
    snprintf(words, sizeof words, "connected as worker %u", h->task);
    kf_serve_news(s->w, words);
}

/* Ends the worker, or only its part in one of several jobs. */
static void refused(visit *w, const kf_head *h, const kofn_packet *k)
{
    server *s = kf_serve_of(w, h->job);
    char words[301];
    size_t n = kf_min(k->body_bytes, sizeof words - 1);
    kofn_status st;

    if (n)
        memcpy(words, k->body, n);
    kf_post_plain(words, n);
    st = kf_fail(KOFN_UNSUITED, "the coordinator refuses this worker: %.*s",
                 (int)n, words);
    if (!w->shared || !s || !s->welcome) {
        kf_serve_end(w, st);
        return;
    }
    kf_serve_news(w, kofn_errmsg());
    kf_serve_finish(s, st);
}

/* Handles the end of a job or, if `which` is 1, of the whole fleet. */
static void dismissed(visit *w, const kf_head *h)
{
    server *s = kf_serve_of(w, h->job);
    bool any = false;

    for (size_t i = 0; i < w->servers; i++)
        any = any || w->server[i]->welcome;
    if (any && !(s && s->welcome) && !(w->shared && h->which == 1))
        w->t->dropped++;
    else if (h->which == 1 || !w->opt.stay)
        kf_serve_end(w, KOFN_OK);
    else if (s)
        kf_serve_finish(s, KOFN_OK);
    if (!w->over && s && !w->shared) { /* that coordinator waits for this */
        w->t->forget(w->t, w->head);
        kf_serve_disconnected(w);
    }
}

/* Flips a bit of the block, as a memory fault does; the worker does not know of
 * it. */
static void flip(server *s)
{
    if (!s->block.whole)
        return;
    s->version++;
    kf_serve_fail(s, kf_faults_flip(s->exposed.faults, s->exposed.worker,
                                    &s->flips, s->block.block_spec.block));
}

static void stage(server *s, const kf_head *h)
{
    if (!s->w->opt.staged)
        s->w->t->dropped++;
    else if (h->which == KF_INJECT_SLOW)
        s->exposed.factor = (double)h->lo / 1000;
    else if (h->which == KF_INJECT_CORRUPT)
        s->exposed.wrong = h->lo != 0;
    else if (h->which == KF_INJECT_FLIP)
        flip(s);
    else
        s->w->t->dropped++;
}

/* Passes a packet of a job to the function for its kind. Before the welcome it
 * is dropped. */
static void dispatch_to(server *s, const kf_head *h, kofn_packet *k)
{
    if (h->type == KF_WIRE_STORE)
        kf_serve_store(s, h, k);
    else if (h->type == KF_WIRE_SLICE)
        kf_serve_slice(s, h, k);
    else if (h->type == KF_WIRE_WORK)
        take_work(s, h, k);
    else if (h->type == KF_WIRE_UPDATE || h->type == KF_WIRE_STRIPS ||
             h->type == KF_WIRE_WHOLE)
        kf_serve_change(s, h, k);
    else if (h->type == KF_WIRE_CANCEL)
        cancel(s, h->task);
    else if (h->type == KF_WIRE_RELEASE)
        kf_serve_release(s, h);
    else if (h->type == KF_WIRE_INJECT)
        stage(s, h);
    else
        s->w->t->dropped++;
}

/* Passes a packet of the coordinator on. A packet of an unknown job is dropped,
 * except those that begin a job, and a dismissal, which is urgent and may
 * overtake the welcome. */
static void dispatch(visit *w, const kf_head *h, kofn_packet *k)
{
    server *s = kf_serve_of(w, h->job);

    if (h->type == KF_WIRE_REFUSED) {
        refused(w, h, k);
    } else if (h->type == KF_WIRE_WELCOME) {
        w->shared = w->shared || h->which == 1;
        s = kf_serve_begin(w, h->job);
        if (s)
            greet(s, h);
    } else if (h->type == KF_WIRE_INVITE) {
        kf_serve_invited(w, h);
    } else if (h->type == KF_WIRE_DISMISS) {
        dismissed(w, h);
    } else if (h->type == KF_WIRE_DRAIN && (w->shared || (s && s->welcome))) {
        w->drained = true;
    } else if (!s || !s->welcome || s->over) {
        w->t->dropped++;
    } else {
        dispatch_to(s, h, k);
    }
}

/* Receives a body that is still arriving, of any kind. */
static kofn_status fetch(visit *w, kofn_packet *k, void **room)
{
    *room = NULL;
    if (k->body || k->body_bytes == 0)
        return KOFN_OK;
    *room = kf_new(k->body_bytes, 1);
    if (!*room)
        return KOFN_NOMEM;
    TRY(w->t->fetch(w->t, k, *room));
    k->body = *room;
    return KOFN_OK;
}

/* True if a body longer than a slice is wanted; asked before there is memory
 * for it. */
static bool wanted(void *ud, kofn_peer peer, const void *head,
                   size_t head_bytes, size_t bytes)
{
    const visit *w = ud;
    const server *s;
    kf_head h;

    if (peer != w->head || kf_head_read(&h, head, head_bytes))
        return false;
    s = kf_serve_of(w, h.job);
    if (!s || !s->welcome)
        return false;
    if (h.type == KF_WIRE_STORE)
        return !s->w->opt.memory || bytes <= kf_serve_memory(s);
    if (h.type == KF_WIRE_SLICE)
        return kf_serve_waits_for(s, &h, bytes);
    if (h.type == KF_WIRE_UPDATE || h.type == KF_WIRE_STRIPS)
        return kf_serve_may_change(s, &h, bytes);
    return h.type == KF_WIRE_WORK && kf_serve_is_wanted(s, &h, bytes);
}

/* True if the body is received into the buffer in which it is used. */
static bool takes_in_place(const kf_head *h)
{
    return h->type == KF_WIRE_UPDATE || h->type == KF_WIRE_STRIPS ||
           (h->type == KF_WIRE_WORK && !kf_kernel_of(h->how)->inner);
}

static void packet(visit *w, kofn_packet *k)
{
    kf_head h;
    kofn_status st = kf_head_read(&h, k->head, k->head_bytes);
    void *room = NULL;

    if (st && h.version) {
        /* another version; kofn_errmsg() says so */
        kf_serve_end(w, KOFN_UNSUITED);
    } else if (!st && takes_in_place(&h)) {
        dispatch(w, &h, k);
    } else if (!st) {
        st = fetch(w, k, &room);
        if (!st)
            dispatch(w, &h, k);
    }
    if (st && !w->over)
        kf_serve_hang_up(w);
    kf_free(room);
    if (k->own)
        w->t->release(w->t, k->own);
}

/* Receives one packet within `atmost`; false if none came. */
static bool listen(visit *w, kofn_time atmost)
{
    kofn_packet k = {0};
    kofn_status st = w->t->wait(w->t, atmost, &k);

    if (st == KOFN_AGAIN)
        return false;
    /* the transport's orderly end before the dismissal also ends the job */
    if (st) {
        bool in_order = st == KOFN_TRANSPORT && w->t->over;

        kf_serve_end(w, in_order ? KOFN_OK : st);
        return false;
    }
    w->idle = IDLE;
    if (k.what == KOFN_CAME) {
        kf_serve_disconnected(w);
        w->head = k.peer;
        w->connected = true;
        kf_serve_hello(w, w->servers ? w->server[0] : NULL);
    } else if (k.what == KOFN_WENT) {
        if (k.peer == w->head)
            kf_serve_disconnected(w);
    } else {
        packet(w, &k);
    }
    return true;
}

/* ---- the loop ------------------------------------------------------------ */

static void say_to_all(visit *w, kf_wire type)
{
    for (size_t i = 0; i < w->servers; i++)
        if (w->server[i]->welcome)
            kf_serve_say(w->server[i], type);
}

static bool has_tasks(const visit *w)
{
    for (size_t i = 0; i < w->servers; i++)
        if (w->server[i]->pending_count)
            return true;
    return false;
}

/* Asks the program whether the worker stays, after the counts were given. */
static kofn_leave ask_program(visit *w)
{
    kofn_serve_counts *c = &w->counts;

    if (!w->opt.watch)
        return KOFN_STAY;
    c->connected = w->connected;
    c->waiting = 0;
    for (size_t i = 0; i < w->servers; i++)
        c->waiting += w->server[i]->pending_count;
    if (w->opt.counts)
        kf_give(w->opt.counts, c, sizeof *c);
    return w->opt.watch(w->opt.ud, NULL);
}

static void consider_leaving(visit *w)
{
    kofn_leave want = ask_program(w);

    if (want == KOFN_STAY && w->drained)
        want = KOFN_LEAVE_SOON;

    if (kf_clock() >= w->vanish) /* without notice: the fault model ends it */
        kf_serve_end(w, KOFN_AGAIN);
    if (want == KOFN_STAY || w->over)
        return;
    if (!w->leaving) {
        w->leaving = kf_clock();
        say_to_all(w, KF_WIRE_NOTICE);
    }
    if (want == KOFN_LEAVE_NOW || !w->connected || !has_tasks(w) ||
        kf_clock() - w->leaving >= w->opt.grace) {
        say_to_all(w, KF_WIRE_BYE);
        kf_serve_end(w, KOFN_AGAIN);
    }
}

/* Does the periodic work: sends, receives, repeats requests, checks
 * timeouts. */
static void look_up(visit *w)
{
    w->looked = kf_clock();
    if (kf_outbox_flush(&w->outbox, w->t, w->head) == KOFN_NOMEM)
        kf_serve_end(w, KOFN_NOMEM);
    for (int i = 0; i < 64 && !w->over && listen(w, 0); i++)
        ;
    for (size_t i = 0; i < w->servers; i++) {
        server *s = w->server[i];
        const making *b = &s->block;

        if (!b->whole && b->ahead && s->welcome &&
            kf_clock() - b->last > ASK_AGAIN)
            kf_serve_ask_again(s);
    }
    consider_leaving(w);
    if (!w->connected && w->opt.patience &&
        kf_clock() - w->lost >= w->opt.patience)
        kf_serve_end(w, kf_fail(KOFN_LATE,
                                "no coordinator for %.3g s; is it running, "
                                "and is the address right?",
                                (double)w->opt.patience * 1e-9));
}

/* True if the running task should stop. It is the first of the queue, unless
 * the queue is empty. */
static bool stopped(void *ud)
{
    server *s = ud;

    if (kf_clock() - s->w->looked >= LOOK_UP)
        look_up(s->w);
    return s->w->over || s->over || s->pending_count == 0 ||
           s->pending[s->first].cancelled;
}

/* True if work of a later round waits. A CANCEL may never arrive, and later
 * work also shows that the task is not needed. */
static bool is_outlived(const server *s)
{
    const pending_task *queue = s->pending + s->first;

    return s->pending_count > 1 &&
           queue[s->pending_count - 1].msg.round > queue->msg.round;
}

static void sleep_for(void *ud, double seconds)
{
    server *s = ud;
    kofn_time until = kf_clock() + kf_faults_nanoseconds(seconds);
    bool never = seconds >= KF_FOR_EVER;

    while (!stopped(s) && kf_clock() < until && !(never && is_outlived(s))) {
        kofn_time left = until - kf_clock();

        listen(s->w, left < IDLE ? left : IDLE);
    }
}

/* Does the first task of the queue. Messages are received meanwhile, so the
 * queue may have changed afterwards. */
static void work(server *s)
{
    assert(s->pending_count > 0);
    assert(s->pending[s->first].msg.type == KF_MSG_WORK);
    kf_msg m = s->pending[s->first].msg;
    kf_block *b = kf_block_keep(m.block ? m.block : s->block.block_spec.block);
    kf_buffer *in = kf_buffer_keep(m.in);
    kf_buffer *result = kf_buffer_keep(m.result);
    kofn_time took = 0;
    kofn_status st = KOFN_AGAIN;

    s->user.version = m.block ? 0 : s->version;
    if (!s->pending[s->first].cancelled)
        st = kf_emulate(&s->exposed, b, &m, &took);
    if (s->pending_count && s->pending[s->first].msg.result == result) {
        s->first++;
        s->pending_count--;
        kf_block_drop(m.block);
        kf_buffer_drop(m.in);
        answer(s, &m, st, took); /* takes over m.result */
    } else if (b->subset) {
        b->subset->product = 0; /* it may be of another job */
    }
    kf_block_drop(b);
    kf_buffer_drop(in);
    kf_buffer_drop(result);
}

/* True if the task's block has the updates that the coordinator counts. */
static bool is_now(const server *s, const pending_task *e)
{
    const kf_block *b = kf_block_of(s->block.block_spec.block, e->msg.operand);

    return e->msg.block || (b && b->updates == e->updates);
}

/* True for a change that must wait for slices of its block. */
static bool is_early(const server *s)
{
    assert(s->pending_count > 0);
    return s->pending[s->first].msg.type != KF_MSG_WORK &&
           !kf_serve_has_slices(s);
}

static void do_next(server *s)
{
    const pending_task *e = &s->pending[s->first];

    if (e->msg.type != KF_MSG_WORK) {
        kf_serve_do_change(s);
    } else if (is_now(s, e)) {
        work(s);
    } else { /* an update was missed or repeated: start over */
        kf_serve_fail(s, kf_fail(KOFN_STATE,
                                 "a task is for a block after %zu updates, but "
                                 "this worker applied another number",
                                 (size_t)e->updates));
        kf_serve_hang_up(s->w);
    }
}

/* Returns the job with something to do that had the smallest share of the time.
 * NULL: there is nothing to do. */
static server *turn_of(const visit *w)
{
    server *next = NULL;

    for (size_t i = 0; i < w->servers; i++) {
        server *s = w->server[i];

        if (s->pending_count && !s->over && !is_early(s) &&
            (!next || s->computed < next->computed))
            next = s;
    }
    return next;
}

/* Waits when there is nothing to do. If nothing comes, each wait is longer than
 * the last, so that many idle workers do not keep a machine busy. */
static void rest(visit *w)
{
    kofn_time left = w->vanish - kf_clock(), atmost = w->idle;

    if (w->outbox.count)
        atmost = LOOK_UP;
    else if (has_tasks(w) || w->leaving)
        atmost = IDLE;
    if (left < atmost)
        atmost = left > 0 ? left : 0;
    if (!listen(w, atmost) && w->idle < IDLE_MOST)
        w->idle *= 2;
}

/* Does the first task of a job, and counts the time. */
static void take_turn(server *s)
{
    kofn_time began = kf_clock();

    do_next(s);
    s->computed += (double)(kf_clock() - began) * 1e-9 / s->weight;
}

static void live(visit *w)
{
    w->lost = kf_clock();
    w->idle = IDLE;
    while (!w->over) {
        server *s;

        kf_serve_reap(w);
        if (!w->over && !turn_of(w))
            rest(w);
        if (kf_clock() - w->looked >= LOOK_UP)
            look_up(w);
        s = w->over ? NULL : turn_of(w);
        if (s)
            take_turn(s);
    }
}

kofn_status kofn_serve(kofn_transport *t, const kofn_serve_options *opt)
{
    visit w = {.t = t, .end = KOFN_OK, .vanish = KOFN_NEVER};
    kofn_status st;

    w.opt = (kofn_serve_options)KOFN_SERVE_OPTIONS_INIT;
    st = kf_given(&w.opt, sizeof w.opt, opt, "KOFN_SERVE_OPTIONS_INIT");
    if (!st)
        st = kf_complete(t, sizeof *t, "kofn_transport");
    if (!st)
        st = kf_given(&w.faults, sizeof w.faults, w.opt.faults,
                      "KOFN_FAULTS_INIT");
    if (st) {
        t->close(t, 0);
        return st;
    }
    w.emulate = (kf_exposed){.faults = &w.faults,
                             .factor = 1,
                             .sleep_for = sleep_for,
                             .stopped = stopped};
    t->wanted = wanted;
    t->wanted_ud = &w;
    live(&w);
    st = w.end;
    if (st != KOFN_AGAIN)
        kf_outbox_empty(&w.outbox);
    kf_outbox_free(&w.outbox);
    while (w.servers)
        kf_serve_drop(&w, w.servers - 1);
    kf_free(w.server);
    t->close(t, KOFN_SECOND);
    return st;
}
