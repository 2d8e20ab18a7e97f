/* serve_line.c -- the connection between a worker and its coordinator: sending,
 * the queue of tasks, and what is dropped with either.
 *
 * Owns nothing; everything belongs to the visit. The other serve_ files call
 * this one. It calls only serve_work.c. */
#include "serve.h"

#include "base/clock.h"

#include <assert.h>

void kf_serve_finish(server *s, kofn_status st)
{
    if (!s->over)
        s->end = st;
    s->over = true;
}

void kf_serve_end(visit *w, kofn_status st)
{
    if (!w->over)
        w->end = st;
    w->over = true;
}

void kf_serve_news(visit *w, const char *words)
{
    if (w->opt.watch)
        w->opt.watch(w->opt.ud, words);
}

void kf_serve_fail(server *s, kofn_status st)
{
    if (st == KOFN_NOMEM) {
        kf_serve_finish(s, st);
    } else if (st) {
        s->w->t->dropped++;
        kf_serve_news(s->w, kofn_errmsg());
    }
}

/* ---- sending ------------------------------------------------------------- */

void kf_serve_post(server *s, const kf_head *h, const kofn_lent *body)
{
    if (!s->w->connected)
        kf_give_back(body);
    else if (kf_post(&s->w->outbox, s->w->t, s->w->head, h, body) == KOFN_NOMEM)
        kf_serve_finish(s, KOFN_NOMEM);
}

void kf_serve_post_words(server *s, kf_head *h, const char *words)
{
    char *copy = kf_strdup(words);

    if (copy)
        kf_serve_post(s, h, &(kofn_lent){copy, strlen(words), kf_free, copy});
    else
        kf_serve_finish(s, KOFN_NOMEM);
}

void kf_serve_say(server *s, kf_wire type)
{
    kf_head h = {.type = type, .job = s->job, .block = s->block_id};

    kf_serve_post(s, &h, NULL);
}

void kf_serve_refuse(server *s, kofn_status st)
{
    kf_head h = {.type = KF_WIRE_BYE, .job = s->job, .block = s->block_id};

    assert(st != KOFN_OK);
    kf_serve_post_words(s, &h, kofn_errmsg());
    kf_serve_finish(s, st);
}

/* ---- tasks and the block ------------------------------------------------- */

/* Places a task before those of later rounds, but after the first task and
 * after changes of the block. */
void kf_serve_queue_up(server *s, pending_task e)
{
    assert(s->first + s->pending_count < s->cap);
    pending_task *queue = s->pending + s->first;
    size_t i = s->pending_count++;

    for (; i > 1 && e.msg.type == KF_MSG_WORK &&
           queue[i - 1].msg.type == KF_MSG_WORK &&
           queue[i - 1].msg.round > e.msg.round;
         i--)
        queue[i] = queue[i - 1];
    queue[i] = e;
}

void kf_serve_drop_tasks(server *s)
{
    for (size_t i = 0; i < s->pending_count; i++)
        kf_post_drop(&s->pending[s->first + i].msg);
    s->first = s->pending_count = 0;
}

void kf_serve_drop_block(server *s)
{
    kf_serve_drop_tasks(s);
    kf_block_spec_free(&s->block.block_spec);
    kf_block_drop(s->block.block_spec.block);
    s->block = (making){0};
    s->block_id = 0;
}

/* ---- losing the coordinator ---------------------------------------------- */

/* Drops what the coordinator sends anew. The block stays, unless it has
 * changed: the coordinator changes it while this worker is away. */
static void forget_connection(server *s)
{
    s->welcome = false;
    kf_serve_drop_tasks(s);
    kf_serve_forget_inputs(s);
    if (s->block.changed)
        kf_serve_drop_block(s);
}

void kf_serve_disconnected(visit *w)
{
    if (!w->connected)
        return;
    w->connected = w->shared = false;
    w->lost = kf_clock();
    for (size_t i = 0; i < w->servers; i++)
        forget_connection(w->server[i]);
    kf_outbox_empty(&w->outbox);
    kf_serve_news(w, "the coordinator is gone; waiting for it");
}

void kf_serve_hang_up(visit *w)
{
    w->t->dropped++;
    w->t->forget(w->t, w->head);
    kf_serve_disconnected(w);
}
