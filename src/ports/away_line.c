/* away_line.c -- the connection between the coordinator and each remote worker:
 * sending, reports to the job, and lost workers.
 *
 * Owns nothing; everything belongs to the port. The other away_ files call this
 * one, and it calls none of them. */
#include "away.h"

#include "base/clock.h"
#include "base/number.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

/* Limits of unexpected packets of a worker: a burst, and a rate per second. */
#define STRIKES 256
#define STRIKES_RATE 64

kofn_time kf_away_now(kofn_port *base)
{
    return kf_clock() - ((port *)base)->clock.start;
}

/* ---- news and times ------------------------------------------------------ */

void kf_away_news(port *p, const char *format, ...)
{
    char words[400];
    va_list args;

    if (!p->opt.news)
        return;
    va_start(args, format);
    kf_vformat(words, sizeof words, format, args);
    va_end(args);
    p->opt.news(p->opt.ud, words);
}

kofn_time kf_away_storing(kofn_port *base, uint32_t id)
{
    const port *p = (const port *)base;
    const worker *w = id < p->workers ? p->worker[id] : NULL;

    if (!w || !w->held.block)
        return 0;
    return w->held.storing +
           (w->held.stored || w->held.asked || w->held.rebuilding
                ? 0
                : kf_away_now(base) - w->held.alone);
}

/* ---- lost workers -------------------------------------------------------- */

uint32_t kf_away_worker(const port *p, kofn_peer peer)
{
    return peer < p->peers && p->of_peer[peer] ? p->of_peer[peer] - 1 : NOBODY;
}

kf_bucket *kf_away_short_lived(port *p, uint32_t who)
{
    assert(who <= p->who.count);
    return who ? &p->who.principal[who - 1].short_lived : &p->short_lived;
}

void kf_away_close_peer(port *p, worker *w)
{
    assert(!w->gone);
    assert(p->serve.needs >= w->held.asked);
    assert(!w->held.to_store || p->stores > 0);
    w->gone = true;
    p->of_peer[w->peer] = 0;
    if (w->principal)
        p->who.principal[w->principal - 1].workers--;
    p->serve.needs -= w->held.asked;
    w->held.asked = 0;
    for (size_t i = 0; i < w->tasks.count; i++)
        kf_buffer_drop(w->tasks.pending[i].result);
    w->tasks.count = 0;
    kf_outbox_empty(&w->line.outbox);
    kf_block_drop(w->held.block);
    kf_block_drop(w->held.to_store);
    p->stores -= w->held.to_store != NULL;
    w->held.block = w->held.to_store = NULL;
}

kofn_status kf_away_lose(port *p, uint32_t id)
{
    assert(id < p->workers);
    const worker *w = p->worker[id];
    kf_bucket *b = kf_away_short_lived(p, w->principal);

    if (w->gone)
        return KOFN_OK;
    if (!w->useful && kf_bucket_leak(b, kf_away_now(&p->base), SHORT_LIVED_RATE,
                                     0) < FLEETING)
        b->level++;
    kf_away_close_peer(p, p->worker[id]);
    return kf_inbox_put(&p->ready, (kf_msg){.type = KF_MSG_BYE, .worker = id});
}

/* ---- sending ------------------------------------------------------------- */

/* Checks that the worker's outbox moves; if it does not for `silence`, the
 * worker is lost. Letters that were taken back do not count as movement. */
static kofn_status watch(port *p, uint32_t id, kofn_status posted)
{
    worker *w = p->worker[id];
    kofn_time now = kf_away_now(&p->base);
    bool moved = w->line.outbox.sent != w->line.behind;

    w->line.behind = w->line.outbox.sent;
    p->waiting += posted == KOFN_AGAIN;
    if (posted != KOFN_AGAIN) {
        if (moved)
            w->line.stuck = 0;
        return posted;
    }
    if (moved || !w->line.stuck)
        w->line.stuck = now + 1;
    if (now - w->line.stuck < p->opt.silence)
        return KOFN_OK;
    p->t->forget(p->t, w->peer);
    return kf_away_lose(p, id);
}

kofn_status kf_away_flush(port *p)
{
    if (!p->waiting)
        return KOFN_OK;
    p->waiting = 0;
    for (uint32_t i = 0; i < p->workers; i++) {
        worker *w = p->worker[i];

        if (w->line.outbox.count)
            TRY(watch(p, i, kf_outbox_flush(&w->line.outbox, p->t, w->peer)));
    }
    return KOFN_OK;
}

kofn_status kf_away_post(port *p, uint32_t id, const kf_head *h,
                         const kofn_lent *body)
{
    assert(id < p->workers);
    worker *w = p->worker[id];

    if (w->gone) {
        kf_give_back(body);
        return KOFN_OK;
    }
    return watch(p, id, kf_post(&w->line.outbox, p->t, w->peer, h, body));
}

void kf_away_say(port *p, kofn_peer peer, kf_wire type, uint32_t number,
                 const char *words)
{
    size_t n = words ? strlen(words) : 0;
    kf_head h = {.type = type,
                 .job = p->job,
                 .task = number,
                 .which = type == KF_WIRE_WELCOME && p->shared,
                 .body_sum = kf_post_sum(p->t, p->job, words, n)};
    unsigned char head[KF_HEAD];
    char *copy = n ? kf_strdup(words) : NULL;

    if (n && !copy)
        return;
    kf_head_write(head, &h);
    /* a dismissal overtakes everything; a welcome must precede the block */
    if (p->t->send(p->t, peer, head, sizeof head,
                   &(kofn_lent){copy, n, kf_free, copy},
                   type == KF_WIRE_DISMISS) == KOFN_AGAIN)
        kf_free(copy);
}

/* ---- names --------------------------------------------------------------- */

const char *kf_away_name(port *p, uint32_t id)
{
    const worker *w = id < p->workers ? p->worker[id] : NULL;
    const principal *of =
        w && w->principal ? &p->who.principal[w->principal - 1] : NULL;
    const char *its = of ? of->name : "";

    if (!w || !w->badge.named)
        return its;
    if (!of || !of->key || strcmp(its, w->badge.name) == 0)
        return w->badge.name;
    snprintf(p->text.name, sizeof p->text.name, "%.80s/%.160s", its,
             w->badge.name);
    return p->text.name;
}

const char *kf_away_title(port *p, uint32_t id)
{
    const char *name = kf_away_name(p, id);

    snprintf(p->text.title, sizeof p->text.title, "worker %u%s%s%s", id,
             *name ? " (" : "", name, *name ? ")" : "");
    return p->text.title;
}

/* ---- evicted or replaced workers ----------------------------------------- */

void kf_away_evict(port *p, uint32_t id)
{
    assert(id < p->workers);
    worker *w = p->worker[id];
    char words[400];

    snprintf(words, sizeof words,
             "%s is evicted: it is connected and answers nothing",
             kf_away_title(p, id));
    kf_away_news(p, "%s", words);
    kf_away_say(p, w->peer, KF_WIRE_REFUSED, 0, words);
    kf_away_close_peer(p, w);
}

kofn_status kf_away_hang_up(port *p, uint32_t id)
{
    p->base.dropped++;
    p->t->forget(p->t, p->worker[id]->peer);
    return kf_away_lose(p, id);
}

kofn_status kf_away_strike(port *p, uint32_t id)
{
    assert(id < p->workers);
    worker *w = p->worker[id];

    p->base.dropped++;
    if (w->gone || kf_bucket_leak(&w->strikes, kf_away_now(&p->base),
                                  STRIKES_RATE, 0) < STRIKES) {
        w->strikes.level++;
        return KOFN_OK;
    }
    kf_away_news(p, "%s was disconnected: it sends unexpected packets (%s)",
                 kf_away_title(p, id),
                 p->t->name_of ? p->t->name_of(p->t, w->peer) : p->t->name);
    return kf_away_hang_up(p, id);
}

kofn_status kf_away_enrol(port *p, const worker *like)
{
    uint32_t who = like->principal;
    worker *w;

    assert(like->peer < p->peers);
    assert(who <= p->who.count);
    TRY(kf_grow(&p->worker, &p->worker_cap, p->workers, sizeof *p->worker));
    TRY_NEW(w, 1);
    *w = *like;
    if (who)
        p->who.principal[who - 1].workers++;
    p->worker[p->workers] = w;
    p->of_peer[w->peer] = (uint32_t)p->workers + 1;
    kf_away_say(p, w->peer, KF_WIRE_WELCOME, (uint32_t)p->workers, NULL);
    return kf_inbox_put(&p->ready, (kf_msg){.type = KF_MSG_HELLO,
                                            .worker = (uint32_t)p->workers++,
                                            .principal = who});
}

kofn_status kf_away_renew(port *p, uint32_t id)
{
    assert(id < p->workers);
    const worker *w = p->worker[id];
    worker now = {.peer = w->peer,
                  .principal = w->principal,
                  .useful = w->useful,
                  .process = w->process,
                  .badge = w->badge,
                  .strikes = w->strikes,
                  .staged = w->staged,
                  .tasks.owes = w->tasks.owes + w->tasks.count +
                                w->held.announced - w->held.done};

    TRY(kf_away_lose(p, id));
    return kf_away_enrol(p, &now);
}
