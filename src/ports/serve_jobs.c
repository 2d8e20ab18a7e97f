/* serve_jobs.c -- the jobs that a worker serves on one connection.
 *
 * A coordinator alone has one job. A fleet invites its workers to each of its
 * jobs; a worker holds a block for each, and they take turns by their weights.
 * When a job is over, its block may stay for a later job of the same number.
 *
 * The visit owns the servers. A server is freed only between two tasks, since a
 * running task looks for messages. */
#include <assert.h>
#include <stdio.h>
#include <unistd.h>

#include "serve.h"

#define KEPT 4        /* blocks of jobs that are over */
#define JOBS_MOST 256 /* others are refused: a coordinator has few */
#define WEIGHT_MOST 1e6

/* ---- finding ------------------------------------------------------------- */

server *kf_serve_of(const visit *w, uint64_t job)
{
    for (size_t i = 0; i < w->servers; i++)
        if (w->server[i]->job == job && !w->server[i]->over)
            return w->server[i];
    return NULL;
}

/* Returns the smallest share of time that a job had, so that a new one neither
 * waits for the others nor makes them wait. */
static double least_computed(const visit *w)
{
    double least = w->servers ? w->server[0]->computed : 0;

    for (size_t i = 1; i < w->servers; i++)
        if (w->server[i]->computed < least)
            least = w->server[i]->computed;
    return least;
}

static server *make(visit *w, uint64_t job)
{
    server *s;

    if (w->servers == JOBS_MOST) {
        w->t->dropped++;
        kf_serve_news(w, "the coordinator has more than 256 jobs; this worker "
                         "takes part in the first ones");
        return NULL;
    }
    if (kf_grow(&w->server, &w->cap, w->servers, sizeof(server *)) ||
        !(s = kf_zero(1, sizeof *s))) {
        kf_serve_end(w, KOFN_NOMEM);
        return NULL;
    }
    *s = (server){.w = w,
                  .job = job,
                  .weight = 1,
                  .computed = least_computed(w),
                  .exposed = w->emulate};
    s->exposed.ud = s;
    kf_serve_own_begin(s);
    w->server[w->servers++] = s;
    return s;
}

/* Moves a server to the front, behind which the others keep their order. */
static void to_front(visit *w, server *s)
{
    size_t i = 0;

    while (w->server[i] != s)
        i++;
    memmove(w->server + 1, w->server, i * sizeof *w->server);
    w->server[0] = s;
}

server *kf_serve_begin(visit *w, uint64_t job)
{
    server *s = kf_serve_of(w, job);

    for (size_t i = 0; i < w->servers && !w->shared; i++)
        if (w->server[i] != s)
            kf_serve_finish(w->server[i], KOFN_AGAIN);
    if (!s)
        s = make(w, job);
    if (s)
        to_front(w, s);
    return s;
}

/* ---- messages ------------------------------------------------------------ */

void kf_serve_hello(visit *w, const server *s)
{
    kf_head h = {.type = KF_WIRE_HELLO,
                 .job = s ? s->job : 0,
                 .block = s ? s->block_id : 0,
                 .lo = (uint64_t)getpid(),
                 .hi = w->opt.memory,
                 .which = w->opt.staged};
    char host[128] = "", words[300];
    kofn_lent body = {.done = kf_free};
    const char *name = w->opt.name ? w->opt.name : "";

    assert(w->connected);
    gethostname(host, sizeof host - 1);
    snprintf(words, sizeof words, "kofn %s, process %ld on %s%s%.64s",
             KOFN_VERSION, (long)getpid(), host, *name ? " as " : "", name);
    body.ud = kf_strdup(words);
    body.data = body.ud;
    body.bytes = strlen(words);
    if (!body.ud || kf_post(&w->outbox, w->t, w->head, &h, &body) == KOFN_NOMEM)
        kf_serve_end(w, KOFN_NOMEM);
}

void kf_serve_invited(visit *w, const kf_head *h)
{
    double weight = (double)h->lo / 1000;
    server *s;

    w->shared = true;
    s = kf_serve_begin(w, h->job);
    if (!s || s->welcome)
        return;
    s->weight = weight > 0 && weight <= WEIGHT_MOST ? weight : 1;
    kf_serve_hello(w, s);
}

/* Ends the kept jobs beyond KEPT; those that were used last stay. */
static void keep_few(visit *w)
{
    size_t kept = 0;

    for (size_t i = 0; i < w->servers; i++)
        if (w->server[i]->kept && ++kept > KEPT)
            kf_serve_finish(w->server[i], KOFN_OK);
}

void kf_serve_forget_kept(visit *w)
{
    for (size_t i = 0; i < w->servers; i++)
        if (w->server[i]->kept) {
            kf_serve_drop_block(w->server[i]);
            kf_serve_finish(w->server[i], KOFN_OK);
        }
}

void kf_serve_release(server *s, const kf_head *h)
{
    if (h->which != 1 || !s->block.whole || s->block.changed) {
        kf_serve_finish(s, KOFN_OK);
        return;
    }
    s->welcome = false;
    s->kept = true;
    kf_serve_drop_tasks(s);
    kf_serve_forget_inputs(s);
    keep_few(s->w);
}

/* ---- freeing ------------------------------------------------------------- */

void kf_serve_drop(visit *w, size_t i)
{
    assert(i < w->servers);
    server *s = w->server[i];

    kf_serve_drop_tasks(s);
    kf_serve_forget_inputs(s);
    kf_serve_drop_block(s);
    kf_free(s->pending);
    kf_free(s);
    w->servers--;
    memmove(w->server + i, w->server + i + 1,
            (w->servers - i) * sizeof *w->server);
}

void kf_serve_reap(visit *w)
{
    for (size_t i = w->servers; i > 0; i--) {
        const server *s = w->server[i - 1];

        if (!s->over)
            continue;
        if (s->end != KOFN_OK && s->end != KOFN_AGAIN && !w->opt.stay &&
            !w->shared)
            kf_serve_end(w, s->end);
        kf_serve_drop(w, i - 1);
    }
}
