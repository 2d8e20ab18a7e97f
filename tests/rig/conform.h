/* conform.h -- the laws of <kofn/transport.h>, for any transport.
 *
 * The ends form a star: end 0, the hub, and the spokes 1 .. ends-1. Each has a
 * separate transport, on a thread or in a process. Every end calls conform(),
 * which checks one law after the other. The hub names the law, all ends do
 * their part, and the spokes report. Faults are reported in words.
 *
 * - exchange: packets of all sizes arrive whole and once. Those that are not
 *   urgent arrive in order. `done` is called once for each.
 * - full: an end that does not listen gets only a little. A refused packet is
 *   still the caller's, and goes later.
 * - idle: wait answers KOFN_AGAIN if nothing comes.
 * - too_long: a body longer than body_max does not arrive, and no other end is
 *   affected.
 * - last_words: packets sent before closing arrive, then KOFN_WENT, and nothing
 *   can be sent to that number again.
 * - forgotten: nothing of a forgotten peer arrives under its number.
 *
 * In all laws, the coming of a peer is reported before its packets, and
 * nothing after its going. No number is used twice. */
#ifndef KF_TEST_CONFORM_H
#define KF_TEST_CONFORM_H

#include <kofn/transport.h>

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CONFORM_ENDS = 8, CONFORM_COUNT = 40, CONFORM_PEERS = 64 };

typedef enum conform_law {
    LAW_NONE, /* all laws are over */
    LAW_EXCHANGE,
    LAW_FULL,
    LAW_IDLE,
    LAW_TOO_LONG,
    LAW_LAST_WORDS,
    LAW_FORGOTTEN,
    LAWS
} conform_law;

typedef enum conform_what {
    SAY_HELLO = 1, /* a spoke: my number is `from` */
    SAY_LAW,       /* the hub: this law begins */
    SAY_DONE,      /* a spoke: my part of it is done */
    SAY_DATA
} conform_what;

typedef struct conform_head {
    uint32_t what, from, law, number, urgent, bytes;
} conform_head;

typedef struct conform_peer {
    bool came, went, forgotten;
    unsigned
        end; /* its number, once it has said hello; CONFORM_ENDS: unknown */
} conform_peer;

/* One end. The caller gives `t`, `me`, `ends`, `seed` and the abilities of the
 * network. */
typedef struct conform_end {
    kofn_transport *t; /* closed by conform() */
    unsigned me, ends;
    uint32_t seed;
    bool fills;          /* a channel can be full; false: it has no limit */
    bool bounded;        /* body_max is enforced */
    size_t longest;      /* longest body that is tried */
    atomic_bool *filled; /* end 1 sleeps until it is set; NULL if ends share no
                            memory: it sleeps for a while */

    conform_peer peer[CONFORM_PEERS];
    kofn_peer of[CONFORM_ENDS]; /* the live peer that is this end */
    bool known[CONFORM_ENDS], lost[CONFORM_ENDS];
    uint32_t sent[CONFORM_ENDS];
    uint64_t got[CONFORM_ENDS];  /* set of the numbers that came in this law */
    uint32_t next[CONFORM_ENDS]; /* smallest number that may come next, if not
                                    urgent */
    bool reported[CONFORM_ENDS];
    conform_law law;        /* the law that was named last */
    size_t given, finished; /* bodies lent, bodies given back */
    char why[240];
} conform_end;

static inline bool conform_wrong(conform_end *c, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    if (!c->why[0])
        vsnprintf(c->why, sizeof c->why, fmt, ap);
    va_end(ap);
    return false;
}

static inline double conform_clock(void)
{
    struct timespec s;

    clock_gettime(CLOCK_MONOTONIC, &s);
    return (double)s.tv_sec + 1e-9 * (double)s.tv_nsec;
}

/* ---- packets that are sent ----------------------------------------------- */

/* Returns a size around a border: none, short, separate from the head, or a
 * size that networks treat differently. */
static inline size_t conform_size(const conform_end *c, unsigned from,
                                  uint32_t number)
{
    static const size_t sizes[] = {0,    1,    8,     3703,  3704,    3705,
                                   4096, 8192, 65536, 65537, 1 << 20, 8 << 20};
    uint32_t x = (c->seed * 31 + from) * 2654435761u + number * 40503u;
    size_t n = sizes[(x >> 13) % (number % 4 ? 10 : 12)];

    return n > c->longest ? c->longest : n;
}

static inline bool conform_urgent(uint32_t number)
{
    return number % 5 == 3;
}

static inline void conform_fill(unsigned char *p, size_t n, uint32_t key)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (unsigned char)(key * 131 + i * 31 + (i >> 8));
}

/* Each loan has its own body. So a sanitizer finds a transport that reads it
 * too late. */
typedef struct conform_loan {
    conform_end *c;
    unsigned char body[];
} conform_loan;

static inline void conform_done(void *ud)
{
    conform_loan *l = ud;

    __atomic_add_fetch(&l->c->finished, 1, __ATOMIC_SEQ_CST);
    free(l);
}

/* Sends a packet. Returns KOFN_AGAIN if it was refused and nothing was sent. */
static inline kofn_status conform_send(conform_end *c, kofn_peer to,
                                       const conform_head *h)
{
    conform_loan *l = malloc(sizeof *l + h->bytes);
    kofn_status st;

    if (!l)
        return KOFN_NOMEM;
    l->c = c;
    conform_fill(l->body, h->bytes, h->number + h->from);
    c->given++;
    st =
        c->t->send(c->t, to, h, sizeof *h,
                   &(kofn_lent){l->body, h->bytes, conform_done, l}, h->urgent);
    if (st == KOFN_AGAIN) { /* done will not be called */
        c->given--;
        free(l);
    }
    return st;
}

/* ---- packets that come --------------------------------------------------- */

static inline bool conform_data(conform_end *c, const kofn_packet *p,
                                const conform_head *h, unsigned end)
{
    size_t bytes = p->body_bytes;
    unsigned char *copy = NULL;
    const unsigned char *b = p->body;
    bool right = true;

    if (bytes != h->bytes || h->number >= 64 || h->from != end)
        return conform_wrong(c, "packet %u of end %u has %zu bytes, not %u",
                             h->number, end, bytes, h->bytes);
    if (c->got[end] >> h->number & 1)
        return conform_wrong(c, "packet %u of end %u came twice", h->number,
                             end);
    c->got[end] |= (uint64_t)1 << h->number;
    if (!h->urgent && h->number < c->next[end])
        return conform_wrong(c, "packet %u of end %u came after %u", h->number,
                             end, c->next[end] - 1);
    if (!h->urgent)
        c->next[end] = h->number + 1;
    if (!b && bytes) {
        kofn_packet k = *p;

        b = copy = malloc(bytes);
        if (!copy || !c->t->fetch || c->t->fetch(c->t, &k, copy))
            right = conform_wrong(c, "a body of %zu bytes cannot be fetched",
                                  bytes);
    }
    for (size_t i = 0; right && i < bytes; i++)
        if (b[i] !=
            (unsigned char)((h->number + h->from) * 131 + i * 31 + (i >> 8)))
            right = conform_wrong(c,
                                  "byte %zu of %zu from end %u is not what "
                                  "was sent",
                                  i, bytes, end);
    free(copy);
    return right;
}

static inline bool conform_hello(conform_end *c, kofn_peer peer,
                                 const conform_head *h)
{
    if (h->from >= c->ends)
        return conform_wrong(c, "an end %u says hello", h->from);
    c->peer[peer].end = h->from;
    c->of[h->from] = peer;
    c->known[h->from] = true;
    return true;
}

static inline bool conform_packet(conform_end *c, const kofn_packet *p)
{
    conform_peer *q = &c->peer[p->peer];
    conform_head h;
    unsigned end = c->me ? 0 : q->end;

    if (p->head_bytes != sizeof h)
        return conform_wrong(c, "a head of %zu bytes", p->head_bytes);
    memcpy(&h, p->head, sizeof h);
    if (!q->came || q->went || q->forgotten)
        return conform_wrong(c, "a packet of peer %u, which %s", p->peer,
                             !q->came  ? "has not come"
                             : q->went ? "has gone"
                                       : "was forgotten");
    if (h.what == SAY_HELLO)
        return conform_hello(c, p->peer, &h);
    if (end == CONFORM_ENDS)
        return conform_wrong(c, "peer %u overtakes its own hello", p->peer);
    if (h.what == SAY_DATA)
        return conform_data(c, p, &h, end);
    if (h.what == SAY_LAW)
        c->law = (conform_law)h.law;
    else if (h.what == SAY_DONE)
        c->reported[end] = true;
    else
        return conform_wrong(c, "a packet that says %u", h.what);
    return true;
}

static inline bool conform_came(conform_end *c, kofn_peer peer)
{
    conform_peer *q = &c->peer[peer];
    conform_head h = {.what = SAY_HELLO, .from = c->me};

    if (q->came)
        return conform_wrong(c, "peer %u came twice", peer);
    *q = (conform_peer){.came = true, .end = CONFORM_ENDS};
    if (c->me == 0)
        return true;
    c->of[0] = peer;
    c->known[0] = true;
    if (conform_send(c, peer, &h) == KOFN_AGAIN)
        return conform_wrong(c,
                             "the channel to the hub is full from the start");
    return true;
}

static inline bool conform_take(conform_end *c, const kofn_packet *p)
{
    bool right = true;

    if (p->peer >= CONFORM_PEERS)
        return conform_wrong(c, "a peer %u", p->peer);
    if (p->what == KOFN_CAME)
        return conform_came(c, p->peer);
    if (p->what == KOFN_PACKET) {
        right = conform_packet(c, p);
        c->t->release(c->t, p->own);
        return right;
    }
    if (!c->peer[p->peer].came || c->peer[p->peer].went)
        return conform_wrong(c, "peer %u goes and was not there", p->peer);
    c->peer[p->peer].went = true;
    if (c->peer[p->peer].end < CONFORM_ENDS)
        c->lost[c->peer[p->peer].end] = true;
    else if (c->me)
        c->lost[0] = true;
    return true;
}

/* Handles one arrival, if there is one. */
static inline bool conform_listen(conform_end *c, kofn_time atmost)
{
    kofn_packet p;
    kofn_status st = c->t->wait(c->t, atmost, &p);

    if (st == KOFN_OK)
        return conform_take(c, &p);
    if (st == KOFN_TRANSPORT && c->me)
        c->lost[0] = true; /* nothing can ever come again */
    else if (st != KOFN_AGAIN)
        return conform_wrong(c, "wait: %s: %s", kofn_strerror(st),
                             kofn_errmsg());
    return true;
}

/* Listens until this holds, 30 s at most. */
#define CONFORM_UNTIL(c, holds, what)                                          \
    do {                                                                       \
        double began_ = conform_clock();                                       \
        while (!(holds)) {                                                     \
            if (!conform_listen(c, KOFN_SECOND / 100))                         \
                return false;                                                  \
            if (conform_clock() - began_ > 30)                                 \
                return conform_wrong(c, "after 30 s: %s", what);               \
        }                                                                      \
    } while (0)

/* ---- the laws ------------------------------------------------------------ */

static inline bool conform_is_peer(const conform_end *c, unsigned end)
{
    return end < c->ends && end != c->me && (c->me == 0 || end == 0) &&
           c->known[end] && !c->lost[end];
}

/* Sends the next packet to that end, if it is accepted. Returns false if
 * something is wrong. */
static inline bool conform_next(conform_end *c, unsigned end, bool *taken)
{
    uint32_t n = c->sent[end];
    conform_head h = {.what = SAY_DATA,
                      .from = c->me,
                      .number = n,
                      .urgent = conform_urgent(n),
                      .bytes = (uint32_t)conform_size(c, c->me, n)};
    kofn_status st = conform_send(c, c->of[end], &h);

    *taken = st == KOFN_OK;
    c->sent[end] += *taken;
    return st == KOFN_OK || st == KOFN_AGAIN ||
           conform_wrong(c, "packet %u to end %u: %s: %s", n, end,
                         kofn_strerror(st), kofn_errmsg());
}

#define CONFORM_ALL (((uint64_t)1 << CONFORM_COUNT) - 1)

static inline bool conform_all_here(const conform_end *c)
{
    for (unsigned e = 0; e < c->ends; e++)
        if (conform_is_peer(c, e) &&
            (c->got[e] != CONFORM_ALL || c->sent[e] < CONFORM_COUNT))
            return false;
    return true;
}

static inline bool law_exchange(conform_end *c)
{
    double began = conform_clock();

    while (!conform_all_here(c)) {
        bool any = false, taken = false;

        for (unsigned e = 0; e < c->ends; e++)
            if (conform_is_peer(c, e) && c->sent[e] < CONFORM_COUNT) {
                if (!conform_next(c, e, &taken))
                    return false;
                any |= taken;
            }
        if (!conform_listen(c, any ? 0 : KOFN_SECOND / 100))
            return false;
        if (conform_clock() - began > 60)
            return conform_wrong(c, "not all has come after 60 s");
    }
    return true;
}

static inline void conform_sleep(const conform_end *c)
{
    const struct timespec nap = {0, 300000000}, look = {0, 1000000};
    double began = conform_clock();

    if (!c->filled)
        nanosleep(&nap, NULL);
    while (c->filled && !atomic_load(c->filled) && conform_clock() - began < 60)
        nanosleep(&look, NULL);
}

/* The hub fills the channel to end 1, which sleeps. */
static inline bool conform_way_fills(conform_end *c)
{
    bool full = false;
    uint32_t n;

    for (n = 0; n < 60 && !full; n++) {
        conform_head h = {
            .what = SAY_DATA, .number = n, .bytes = (uint32_t)c->longest};
        kofn_status st = conform_send(c, c->of[1], &h);

        full = st == KOFN_AGAIN;
        if (st && !full)
            return conform_wrong(c, "send: %s", kofn_errmsg());
    }
    return full || !c->fills ||
           conform_wrong(c,
                         "%u packets of %zu bytes went to an end that does "
                         "not listen",
                         n, c->longest);
}

static inline bool law_full(conform_end *c)
{
    bool right = true;

    if (c->me == 1)
        conform_sleep(c);
    if (c->me == 0) {
        right = conform_way_fills(c);
        if (c->filled)
            atomic_store(c->filled, true);
    }
    return right;
}

static inline bool law_idle(conform_end *c)
{
    kofn_packet p;

    if (c->me == 0)
        return true; /* reports come to the hub */
    for (int i = 0; i < 20; i++) {
        kofn_status st = c->t->wait(c->t, 0, &p);

        if (st != KOFN_AGAIN)
            return conform_wrong(c, "wait answers %d with nothing there", st);
    }
    return true;
}

/* The hub accepts shorter bodies from here on. End 1 sends it one body that is
 * too long, and end 2 a short one. */
static inline bool law_too_long(conform_end *c)
{
    conform_head h = {.what = SAY_DATA,
                      .from = c->me,
                      .number = c->me,
                      .bytes = c->me == 1 ? 65537 : 8};
    uint64_t dropped = c->t->dropped;

    if (!c->bounded)
        return true;
    if (c->me == 0)
        c->t->body_max = 65536;
    if (c->me == 1 || c->me == 2) {
        kofn_status st;

        do {
            st = conform_send(c, c->of[0], &h);
            if (!conform_listen(c, KOFN_SECOND / 100))
                return false;
        } while (st == KOFN_AGAIN);
        return true;
    }
    if (c->me)
        return true;
    CONFORM_UNTIL(
        c, c->t->dropped > dropped || c->lost[1],
        "a body that is too long is neither dropped nor its end lost");
    if (c->ends > 2)
        CONFORM_UNTIL(c, c->got[2], "the others suffer from what is too long");
    return !c->got[1] || conform_wrong(c, "a body that is too long arrived");
}

/* The last end sends, and closes. */
static inline bool law_last_words(conform_end *c)
{
    unsigned last = c->ends - 1;
    conform_head h = {.what = SAY_DATA, .from = c->me, .bytes = 4096};
    kofn_status st;

    if (c->me == last) {
        for (h.number = 0; h.number < 10; h.number++)
            if (conform_send(c, c->of[0], &h))
                return conform_wrong(c, "last words: %s", kofn_errmsg());
        return true;
    }
    if (c->me)
        return true;
    CONFORM_UNTIL(c, c->lost[last], "an end that has closed is not missed");
    if (c->got[last] != (1 << 10) - 1)
        return conform_wrong(c, "of ten last words came 0x%llx",
                             (unsigned long long)c->got[last]);
    h.number = 63;
    st = conform_send(c, c->of[last], &h);
    return st == KOFN_TRANSPORT ||
           conform_wrong(c, "send to a lost end answers %d", st);
}

/* The hub forgets end 1, which still sends for a while. */
static inline bool law_forgotten(conform_end *c)
{
    conform_head h = {.what = SAY_DATA, .from = c->me, .bytes = 8};
    double began = conform_clock();

    if (c->me == 1)
        for (h.number = 0; h.number < 20 && !c->lost[0]; h.number++) {
            if (conform_send(c, c->of[0], &h) < 0)
                break;
            if (!conform_listen(c, KOFN_SECOND / 100))
                return false;
        }
    if (c->me)
        return true;
    c->peer[c->of[1]].forgotten = true;
    c->lost[1] = true;
    c->t->forget(c->t, c->of[1]);
    while (conform_clock() - began < 0.4)
        if (!conform_listen(c, KOFN_SECOND / 100))
            return false;
    return true;
}

/* ---- all laws in order --------------------------------------------------- */

static inline bool conform_do(conform_end *c, conform_law law)
{
    switch (law) {
    case LAW_EXCHANGE:
        return law_exchange(c);
    case LAW_FULL:
        return law_full(c);
    case LAW_IDLE:
        return law_idle(c);
    case LAW_TOO_LONG:
        return law_too_long(c);
    case LAW_LAST_WORDS:
        return law_last_words(c);
    case LAW_FORGOTTEN:
        return law_forgotten(c);
    default:
        return true;
    }
}

static inline void conform_clear(conform_end *c)
{
    memset(c->sent, 0, sizeof c->sent);
    memset(c->next, 0, sizeof c->next);
    memset(c->reported, 0, sizeof c->reported);
}

/* Sends until the packet is accepted. */
static inline bool conform_tell(conform_end *c, unsigned end,
                                const conform_head *h)
{
    double began = conform_clock();
    kofn_status st;

    while ((st = conform_send(c, c->of[end], h)) == KOFN_AGAIN) {
        if (!conform_listen(c, KOFN_SECOND / 100))
            return false;
        if (conform_clock() - began > 30)
            return conform_wrong(c, "the channel to end %u stays full", end);
    }
    return st == KOFN_OK || c->lost[end] ||
           conform_wrong(c, "end %u cannot be reached: %s", end, kofn_errmsg());
}

static inline bool conform_reported(const conform_end *c)
{
    for (unsigned e = 1; e < c->ends; e++)
        if (conform_is_peer(c, e) && !c->reported[e])
            return false;
    return true;
}

static inline bool conform_met(const conform_end *c)
{
    for (unsigned e = 1; e < c->ends; e++)
        if (!c->known[e])
            return false;
    return true;
}

static inline bool conform_hub(conform_end *c)
{
    CONFORM_UNTIL(c, conform_met(c), "not all ends have come");
    for (conform_law law = LAW_EXCHANGE; law <= LAWS; law++) {
        conform_head h = {.what = SAY_LAW, .law = law % LAWS};

        conform_clear(c);
        memset(c->got, 0, sizeof c->got);
        for (unsigned e = 1; e < c->ends; e++)
            if (conform_is_peer(c, e) && !conform_tell(c, e, &h))
                return false;
        if (!conform_do(c, law % LAWS))
            return false;
        if (law < LAWS)
            CONFORM_UNTIL(c, conform_reported(c), "an end does not report");
    }
    return true;
}

static inline bool conform_spoke(conform_end *c)
{
    conform_head report = {.what = SAY_DONE, .from = c->me};
    conform_law law;

    CONFORM_UNTIL(c, c->known[0], "the hub cannot be reached");
    for (;;) {
        c->law = LAWS;
        CONFORM_UNTIL(c, c->law != LAWS || c->lost[0], "the hub names no law");
        law = c->law;
        if (c->lost[0] || law == LAW_NONE)
            return true;
        conform_clear(c);
        if (!conform_do(c, law))
            return false;
        if (law == LAW_LAST_WORDS && c->me == c->ends - 1)
            return true;
        if (law == LAW_FORGOTTEN && c->me == 1)
            return true; /* no end waits for its report */
        if (!c->lost[0] && !conform_tell(c, 0, &report))
            return false;
        c->got[0] = 0;
    }
}

/* Does this end's part, and closes its transport. Returns NULL, or the fault.
 */
static inline const char *conform(conform_end *c)
{
    bool right = c->me ? conform_spoke(c) : conform_hub(c);

    c->t->close(c->t, KOFN_SECOND);
    if (right && c->given != c->finished)
        conform_wrong(c, "%zu bodies were lent and %zu given back", c->given,
                      c->finished);
    return c->why[0] ? c->why : NULL;
}

#endif
