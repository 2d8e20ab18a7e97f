/* badge.c -- see badge.h; and kofn_fleet_ask, the other end.
 *
 * Owns nothing but the transport that kofn_fleet_ask was given. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "badge.h"

#include "base/clock.h"
#include "base/number.h"

#define SLOW 1.15      /* times the median */
#define SLOW_ROUNDS 10 /* products, one after another */
#define FEWEST 3       /* workers that are compared */
#define LINE 600

/* Values of `which` in the packets of an answer. */
enum { TOLD_WORKER, TOLD_END, TOLD_JOB };

/* ---- badges ---------------------------------------------------------------
 */

/* The words are "kofn V, process P on HOST as NAME"; without a name it is
 * HOST:P. */
void kf_badge_read(kf_badge *c, const kf_head *h, const kofn_packet *k)
{
    char words[LINE] = "", *host, *name;
    size_t n = k->body ? kf_min(k->body_bytes, sizeof words - 1) : 0;

    if (n)
        memcpy(words, k->body, n);
    kf_post_plain(words, n);
    words[strcspn(words, "\n")] = 0;
    host = strstr(words, " on ");
    host = host ? host + 4 : words;
    name = strstr(host, " as ");
    c->process = h->lo;
    c->memory = h->hi;
    if (name) {
        *name = 0;
        snprintf(c->name, sizeof c->name, "%.64s", name + 4);
        c->named = *c->name;
    }
    snprintf(c->host, sizeof c->host, "%.127s", host);
    if (!*c->name)
        snprintf(c->name, sizeof c->name, "%s:%llu", c->host,
                 (unsigned long long)c->process);
}

void kf_badge_count(kf_badge *c, const kf_head *h, size_t bytes)
{
    if (h->type != KF_WIRE_RESULT)
        return;
    c->tasks++;
    c->computed += (double)h->took * 1e-9;
    c->bytes += (double)bytes;
    c->took += (double)h->took;
    c->numbers += (double)h->rows * (double)h->cols;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

void kf_badge_compare(kf_badge *const *badge, size_t n, double *scratch)
{
    size_t count = 0;
    double median;

    for (size_t i = 0; i < n; i++)
        if (badge[i]->numbers > 0 && badge[i]->took > 0)
            scratch[count++] = badge[i]->took / badge[i]->numbers;
    qsort(scratch, count, sizeof *scratch, by_size);
    median = count ? scratch[(count - 1) / 2] : 0;
    for (size_t i = 0; i < n; i++) {
        kf_badge *c = badge[i];
        double times =
            c->numbers > 0 && median > 0 ? c->took / c->numbers / median : 0;

        c->took = c->numbers = 0;
        if (count < FEWEST || times == 0)
            continue;
        c->rounds++;
        c->slow_rounds = times > SLOW ? c->slow_rounds + 1 : 0;
        c->slow = c->rounds < SLOW_ROUNDS        ? 0
                  : c->slow_rounds < SLOW_ROUNDS ? 1
                  : c->slow > 1 ? c->slow + (times - c->slow) / 8
                                : times;
    }
}

kofn_fleet_worker kf_badge_describe(const kf_badge *c, kofn_fleet_state state)
{
    kofn_fleet_worker w = KOFN_FLEET_WORKER_INIT;

    w.name = c->name;
    w.host = c->host;
    w.process = c->process;
    w.memory = c->memory;
    w.state = state;
    w.tasks = c->tasks;
    w.computed = c->computed;
    w.bytes = c->bytes;
    w.slow = c->slow;
    return w;
}

/* ---- answering ----------------------------------------------------------- */

/* Sends a line of an answer. False if the peer does not read. */
static bool post_line(kofn_transport *t, kofn_peer peer, uint64_t which,
                      const char *line)
{
    kf_head h = {.type = KF_WIRE_TOLD, .which = which};
    unsigned char head[KF_HEAD];
    size_t n = strlen(line);
    char *copy = kf_strdup(line);

    if (!copy)
        return false;
    h.body_sum = kf_post_sum(t, 0, n ? copy : NULL, n);
    kf_head_write(head, &h);
    if (t->send(t, peer, head, sizeof head,
                &(kofn_lent){n ? copy : NULL, n, kf_free, copy},
                false) != KOFN_AGAIN)
        return true;
    kf_free(copy);
    return false;
}

bool kf_badge_tell_job(kofn_transport *t, kofn_peer peer, const kf_doing *d)
{
    char line[LINE];

    if (!d->since)
        return true;
    snprintf(line, sizeof line,
             "job %llu %llu %zu %zu %llu %llu %llu %s\t%s\t%s",
             (unsigned long long)d->at, (unsigned long long)d->of, d->live,
             d->workers, (unsigned long long)((kf_clock() - d->since) / 1000),
             (unsigned long long)d->sent, (unsigned long long)d->received,
             d->unit, d->scheme, d->name);
    return post_line(t, peer, TOLD_JOB, line);
}

bool kf_badge_tell(kofn_transport *t, kofn_peer peer,
                   const kofn_fleet_worker *w, const char *words)
{
    char line[LINE] = "";

    if (w)
        snprintf(line, sizeof line, "%d %llu %llu %llu %llu %llu %llu %s\t%s",
                 (int)w->state, (unsigned long long)w->process,
                 (unsigned long long)w->memory, (unsigned long long)w->tasks,
                 (unsigned long long)(w->computed * 1e6),
                 (unsigned long long)w->bytes,
                 (unsigned long long)(w->slow * 1000), w->host, w->name);
    else if (words)
        snprintf(line, sizeof line, "%s", words);
    return post_line(t, peer, w ? TOLD_WORKER : TOLD_END, line);
}

const char *kf_badge_may_drain(kofn_transport *t, kofn_peer asks,
                               kofn_peer worker)
{
    const char *who =
        t->whole && t->principal_of ? t->principal_of(t, asks) : NULL;
    const char *of;
    char mine[160];

    if (!who || strcmp(who, "operator") == 0)
        return NULL;
    snprintf(mine, sizeof mine, "%s", who);
    of = t->principal_of(t, worker);
    return of && strcmp(of, mine) == 0
               ? NULL
               : "only the key of \"operator\" may drain workers of other keys";
}

/* ---- asking -------------------------------------------------------------- */

typedef struct question {
    kofn_transport *t;
    const char *drain;
    void (*job)(void *ud, const kofn_fleet_job *j);
    void (*each)(void *ud, const kofn_fleet_worker *w);
    void *ud;
    bool over;
    kofn_status end;
} question;

static kofn_status ask(const question *q, kofn_peer peer)
{
    size_t n = q->drain ? strlen(q->drain) : 0;
    kf_head h = {.type = KF_WIRE_ASK};
    unsigned char head[KF_HEAD];
    char *copy = n ? kf_strdup(q->drain) : NULL;

    if (n && !copy)
        return KOFN_NOMEM;
    h.body_sum = kf_post_sum(q->t, 0, copy, n);
    kf_head_write(head, &h);
    return q->t->send(q->t, peer, head, sizeof head,
                      &(kofn_lent){copy, n, kf_free, copy}, false);
}

/* Reads seven whole numbers, each with a blank after it. Returns the rest of
 * the line; NULL: there are fewer. */
static char *read_numbers(char *line, unsigned long long v[7])
{
    char *at = line;

    for (int i = 0; i < 7; i++) {
        char *after;

        v[i] = strtoull(at, &after, 10);
        if (after == at || *after != ' ')
            return NULL;
        at = after + 1;
    }
    return at;
}

/* Ends the text at the next tab. Returns what comes after the tab, or NULL
 * without one. */
static char *cut(char *at)
{
    char *tab = at ? strchr(at, '\t') : NULL;

    if (!tab)
        return NULL;
    *tab = 0;
    return tab + 1;
}

/* Reads a worker's line. False: it is none. */
static bool read_worker(char *line, kofn_fleet_worker *w)
{
    unsigned long long v[7];
    char *host = read_numbers(line, v), *name = cut(host);

    if (!name || v[0] > KOFN_FLEET_DRAINING)
        return false;
    *w = (kofn_fleet_worker)KOFN_FLEET_WORKER_INIT;
    w->name = name;
    w->host = host;
    w->process = v[1];
    w->memory = (size_t)v[2];
    w->state = (kofn_fleet_state)v[0];
    w->tasks = v[3];
    w->computed = (double)v[4] * 1e-6;
    w->bytes = (double)v[5];
    w->slow = (double)v[6] * 1e-3;
    return true;
}

/* Reads a job's line. False: it is none. */
static bool read_job(char *line, kofn_fleet_job *j)
{
    unsigned long long v[7];
    char *unit, *scheme, *name;

    if (strncmp(line, "job ", 4) != 0)
        return false;
    unit = read_numbers(line + 4, v);
    scheme = cut(unit);
    name = cut(scheme);
    if (!name)
        return false;
    kf_post_plain(unit, strlen(unit));
    kf_post_plain(scheme, strlen(scheme));
    kf_post_plain(name, strlen(name));
    *j = (kofn_fleet_job){.size = sizeof *j,
                          .name = name,
                          .scheme = scheme,
                          .unit = unit,
                          .at = v[0],
                          .of = v[1],
                          .live = (size_t)v[2],
                          .workers = (size_t)v[3],
                          .seconds = (double)v[4] * 1e-6,
                          .sent = (double)v[5],
                          .received = (double)v[6]};
    return true;
}

static void hear(question *q, kofn_packet *k)
{
    kofn_fleet_worker w;
    kofn_fleet_job j;
    char line[LINE] = "";
    size_t n = k->body ? kf_min(k->body_bytes, sizeof line - 1) : 0;
    kf_head h;

    if (kf_head_read(&h, k->head, k->head_bytes)) {
        q->end = h.version ? KOFN_UNSUITED : KOFN_FORMAT;
        q->over = true;
        return;
    }
    if (n)
        memcpy(line, k->body, n);
    if (h.type != KF_WIRE_TOLD)
        return;
    if (h.which == TOLD_END) {
        kf_post_plain(line, n);
        q->end = n ? kf_fail(KOFN_UNSUITED, "%s", line) : KOFN_OK;
        q->over = true;
    } else if (h.which == TOLD_JOB) {
        if (read_job(line, &j) && q->job)
            q->job(q->ud, &j);
    } else if (read_worker(line, &w) && q->each) {
        q->each(q->ud, &w);
    }
}

static kofn_status converse(question q, kofn_time atmost)
{
    kofn_transport *t = q.t;
    kofn_time until = kf_later(kf_clock(), atmost), now;

    q.end = kf_fail(KOFN_LATE,
                    "there was no answer in %.3g s; is a "
                    "coordinator running there?",
                    (double)atmost * 1e-9);
    while (!q.over && (now = kf_clock()) < until) {
        kofn_packet k = {0};
        kofn_status st = t->wait(t, until - now, &k);

        if (st == KOFN_OK && k.what == KOFN_CAME)
            st = ask(&q, k.peer);
        else if (st == KOFN_OK && k.what == KOFN_PACKET)
            hear(&q, &k);
        if (k.own)
            t->release(t, k.own);
        if (st && st != KOFN_AGAIN) {
            q.end = st;
            q.over = true;
        }
    }
    t->close(t, KOFN_SECOND);
    return q.end;
}

kofn_status kofn_fleet_ask(kofn_transport *t, const char *drain,
                           kofn_time atmost,
                           void (*each)(void *ud, const kofn_fleet_worker *w),
                           void *ud)
{
    return converse((question){.t = t, .drain = drain, .each = each, .ud = ud},
                    atmost);
}

kofn_status kofn_fleet_ask_jobs(kofn_transport *t, kofn_time atmost,
                                void (*job)(void *ud, const kofn_fleet_job *j),
                                void (*each)(void *ud,
                                             const kofn_fleet_worker *w),
                                void *ud)
{
    return converse((question){.t = t, .job = job, .each = each, .ud = ud},
                    atmost);
}
