/* meet.c -- comings and goings: who connects to us, whom we connect to, and
 * who is lost.
 *
 * A peer comes when both of its connections have said HELLO and goes when
 * either is lost.
 */
#include "inside.h"

#include <stdio.h>
#include <zmq.h>

#define HOLD (500 * KF_MILLI) /* that a mesh waits for its own dials */
#define GRACE KOFN_SECOND     /* to go when told to                  */

/* ---- news ---------------------------------------------------------------- */

static kofn_status tell(kf_transport *t, kofn_arrival what, kofn_peer peer)
{
    if (t->told == t->news_count)
        t->told = t->news_count = 0;
    TRY(kf_grow(&t->news, &t->news_cap, t->news_count, sizeof *t->news));
    t->news[t->news_count++] = (kf_news){what, peer};
    return KOFN_OK;
}

bool kf_meet_news(kf_transport *t, kofn_packet *p)
{
    if (t->told == t->news_count)
        return false;
    *p = (kofn_packet){.what = t->news[t->told].what,
                       .peer = t->news[t->told].peer};
    t->told++;
    return true;
}

static void drop(kf_transport *t)
{
    t->dropped++;
}

/* Room for the news of a coming and a going is made before a peer is kept, so
 * that its going can always be told. */
static kofn_status come(kf_transport *t, kf_peer *p)
{
    if (t->next == UINT32_MAX)
        return kf_fail(KOFN_TRANSPORT, "no peer numbers are left");
    TRY(tell(t, KOFN_CAME, t->next));
    kf_peers_number(&t->peers, p, t->next++);
    return KOFN_OK;
}

static kofn_status bury(kf_transport *t, kf_peer *p)
{
    kofn_status st = KOFN_OK;

    if (p->came && !p->forgotten)
        st = tell(t, KOFN_WENT, p->number);
    t->dying -= p->dying;
    kf_zmq_way_clear(t, &p->bulk);
    kf_zmq_way_clear(t, &p->urgent);
    kf_peers_remove(&t->peers, p);
    return st;
}

/* What was said last is still sent. */
#define LAST_WORD 200 /* ms */

static kofn_status end_life(kf_transport *t, kf_dial *d)
{
    kf_peer *p = d->welcome ? kf_peers_by_number(&t->peers, d->peer) : NULL;

    kf_dial_end(d, kf_clock(), p && p->bid ? LAST_WORD : 0);
    return p ? bury(t, p) : KOFN_OK;
}

/* ---- those who connect to us --------------------------------------------- */

void kf_zmq_route_id(char id[KF_ID], const kf_peer *p, char channel)
{
    id[0] = 'k';
    id[1] = channel;
    memcpy(id + 2, p->token, KF_TOKEN);
}

/* On the bulk connection; false: there is no room. */
static bool say(kf_transport *t, const kf_peer *p, kf_word word)
{
    void *s = p->dial ? p->dial->bulk : t->router;
    kf_greeting note = kf_address_greeting(
        p->dial ? p->dial->address : t->endpoint, &t->set, word);
    char id[KF_ID];

    kf_zmq_route_id(id, p, KF_BULK);
    return (p->dial ||
            kf_zmq_socket_send(s, id, sizeof id, ZMQ_SNDMORE) >= 0) &&
           kf_zmq_socket_send(s, &note, sizeof note, 0) >= 0;
}

static size_t whole_of(const kf_greeting *note)
{
    uint64_t whole = 0;

    for (int i = 8; i-- > 0;)
        whole = whole << 8 | note->whole[i];
    return kf_max(whole, KF_CHUNK);
}

/* Its connections, which the gate ends in case it does not do so itself. */
static void end_of(kf_transport *t, const kf_peer *p)
{
    kofn_time when = kf_clock() + GRACE;

    if (p->bulk.there)
        kf_doors_end(t->doors, p->bulk.fd, p->bulk.number, when);
    if (p->urgent.there)
        kf_doors_end(t->doors, p->urgent.fd, p->urgent.number, when);
}

/* It is buried when what it had sent has been heard. */
static void dies(kf_transport *t, kf_peer *p)
{
    p->dying = true;
    if (t->dying++ == 0)
        t->dying_since = kf_clock();
}

/* ZeroMQ hears and sends by that name on the other connection only, and tells
 * of no loss. */
void kf_meet_taken(kf_transport *t, kf_peer *p)
{
    drop(t);
    if (p->dial || p->dying)
        return;
    end_of(t, p);
    dies(t, p);
}

static bool lost(kf_transport *t, const kf_peer *p)
{
    return (p->bulk.there &&
            kf_doors_lost(t->doors, p->bulk.fd, p->bulk.number)) ||
           (p->urgent.there &&
            kf_doors_lost(t->doors, p->urgent.fd, p->urgent.number));
}

/* Who has another key is another, whatever he says. */
static kf_peer *same_node(const kf_transport *t, const unsigned char *node,
                          const char *principal)
{
    for (size_t i = 0; i < t->peers.count; i++) {
        kf_peer *p = t->peers.item[i];

        if (p->came && !p->forgotten && !p->dying &&
            memcmp(p->node, node, KF_TOKEN) == 0 &&
            strcmp(p->principal, principal) == 0)
            return p;
    }
    return NULL;
}

/* Might one of our own dials lead to a node that is connecting to us? */
static bool dialling(const kf_transport *t)
{
    for (size_t i = 0; i < t->dials; i++)
        if (t->dial[i]->bulk && !t->dial[i]->welcome)
            return true;
    return false;
}

/* Two nodes of a mesh may connect to each other at once.  The connection of
 * the lesser node is to stay: so it lets a greater one in only when none of
 * its own dials can be the same, and otherwise waits a moment. */
static kofn_status let_in(kf_transport *t, kf_peer *p, kofn_time since)
{
    if (t->mesh) {
        if (same_node(t, p->node, p->principal)) {
            say(t, p, KF_GO);
            end_of(t, p);
            p->forgotten = true;
            return KOFN_OK;
        }
        if (memcmp(t->set.node, p->node, KF_TOKEN) < 0 && dialling(t) &&
            kf_clock() - since < HOLD)
            return KOFN_AGAIN;
    }
    TRY(come(t, p));
    /* heartbeats come over the urgent one only */
    kf_doors_peer(t->doors, p->bulk.fd, p->bulk.number, KOFN_NEVER);
    kf_doors_peer(t->doors, p->urgent.fd, p->urgent.number, t->set.silence);
    say(t, p, KF_WELCOME);
    return KOFN_OK;
}

kofn_status kf_meet_held(kf_transport *t)
{
    t->held = 0;
    for (size_t i = 0; i < t->peers.count; i++) {
        kf_peer *p = t->peers.item[i];
        kofn_status st;

        if (p->came || p->forgotten || !p->bulk.there || !p->urgent.there)
            continue;
        st = let_in(t, p, p->since);
        if (st < 0)
            return st;
        t->held += st == KOFN_AGAIN;
    }
    return KOFN_OK;
}

/* Who answers for a connection without a key: its host; over a Unix socket,
 * where ZeroMQ calls it localhost:USER:GROUP:PROCESS, its user. */
static void principal_of(const char *address, char out[KF_KEY_NAME])
{
    unsigned user;

    if (sscanf(address, "localhost:%u:", &user) == 1)
        snprintf(out, KF_KEY_NAME, "user %u", user);
    else
        snprintf(out, KF_KEY_NAME, "%s",
                 strcmp(address, "-") ? address : "this machine");
}

/* As the gate called who connected to us: the connection's number, an address,
 * a key and its name. */
static bool read_user(const char *user, unsigned long long *number, kf_peer *p)
{
    char address[KF_KEY_NAME], name[KF_KEY_NAME];
    bool key;

    if (!user ||
        sscanf(user, "%llu %63s %40s %63s", number, address, p->key, name) != 4)
        return false;
    key = strcmp(p->key, "-") != 0;
    snprintf(p->name, sizeof p->name, "%s%s%s", address, key ? ", key " : "",
             key ? name : "");
    if (key)
        memcpy(p->principal, name, sizeof name);
    else
        principal_of(address, p->principal);
    return true;
}

/* Keys may be revoked after they have come in. */
static bool is_listed(const kf_transport *t, const kf_peer *p)
{
    unsigned char bits[KF_KEY];

    return !t->set.allowed || (zmq_z85_decode(bits, p->key) &&
                               kf_list_find(t->set.allowed, bits, NULL));
}

/* All that p had to say has come; it may close now. */
static kofn_status part(kf_transport *t, kf_peer *p)
{
    if (!t->closing)
        p->bid = say(t, p, KF_BYE);
    return p->dial ? end_life(t, p->dial) : bury(t, p);
}

size_t kf_meet_bid(kf_transport *t, bool *tried)
{
    size_t n = 0, silent = 0;

    for (size_t i = 0; i < t->peers.count; i++) {
        kf_peer *p = t->peers.item[i];

        if (!p->came || p->forgotten || p->dying)
            continue;
        silent += !p->bid;
        p->bid = p->bid || say(t, p, KF_BYE);
        n++;
    }
    if (tried)
        *tried = silent > 0;
    return n;
}

kofn_status kf_meet_hello(kf_transport *t, const char *id, void *m)
{
    const char *user = zmq_msg_gets(m, "User-Id");
    const unsigned char *token = (const unsigned char *)id + 2;
    int fd = zmq_msg_get(m, ZMQ_SRCFD);
    kf_peer *p = kf_peers_by_token(&t->peers, token);
    unsigned long long number;
    kf_peer who = {0};
    kf_greeting note;
    kf_zmq_way *way;

    memcpy(&note, zmq_msg_data(m), sizeof note);
    if (note.word == KF_BYE && id[1] == KF_BULK && p && p->came &&
        !p->forgotten)
        return part(t, p);
    if (note.word != KF_HELLO || fd < 0 || !read_user(user, &number, &who) ||
        !is_listed(t, &who)) {
        drop(t);
        return KOFN_OK;
    }
    if (kf_doors_lost(t->doors, fd, number))
        return KOFN_OK; /* and gone again */
    if (!p) {
        TRY(kf_peers_add(&t->peers, token, &p));
        memcpy(p->name, who.name, sizeof p->name);
        memcpy(p->key, who.key, sizeof p->key);
        memcpy(p->principal, who.principal, sizeof p->principal);
        if (t->mesh &&
            (!strcmp(p->key, "-") || !strcmp(p->principal, KF_COMMON)))
            p->principal[0] = 0; /* it answers for itself */
        memcpy(p->node, note.node, KF_TOKEN);
        p->since = kf_clock();
        p->whole = whole_of(&note);
    }
    way = id[1] == KF_BULK ? &p->bulk : &p->urgent;
    if (way->there && way->fd != fd) {
        kf_meet_taken(t, p);
        return KOFN_OK;
    }
    /* Both connections must be of the same owner. */
    if (way->there || strcmp(p->name, who.name) != 0 ||
        strcmp(p->key, who.key) != 0 ||
        memcmp(p->node, note.node, KF_TOKEN) != 0) {
        drop(t);
        return KOFN_OK;
    }
    way->there = true;
    way->fd = fd;
    way->number = number;
    return p->bulk.there && p->urgent.there ? kf_meet_held(t) : KOFN_OK;
}

/* ---- those whom we connect to -------------------------------------------- */

static kofn_status welcomed(kf_transport *t, kf_dial *d,
                            const kf_greeting *note)
{
    kf_peer *p = t->mesh ? same_node(t, note->node, d->who) : NULL;

    memcpy(d->node, note->node, KF_TOKEN);
    if (t->mesh && memcmp(note->node, t->set.node, KF_TOKEN) == 0) {
        snprintf(t->trouble, sizeof t->trouble,
                 "%s is this node itself: it is not reached", d->address);
        d->over = true;
        return end_life(t, d);
    }
    if (p && memcmp(t->set.node, note->node, KF_TOKEN) > 0)
        return end_life(t, d); /* theirs stays */
    if (p) {
        TRY(tell(t, KOFN_WENT, p->number));
        p->forgotten = true;
        kf_zmq_way_clear(t, &p->bulk);
        kf_zmq_way_clear(t, &p->urgent);
    }
    TRY(kf_peers_add(&t->peers, d->token, &p));
    memcpy(p->node, note->node, KF_TOKEN);
    snprintf(p->name, sizeof p->name, "%s", d->address);
    snprintf(p->principal, sizeof p->principal, "%.63s",
             t->mesh ? d->who : d->address);
    p->dial = d;
    p->whole = whole_of(note);
    TRY(come(t, p));
    d->peer = p->number;
    d->welcome = true;
    t->trouble[0] = 0;
    return KOFN_OK;
}

kofn_status kf_meet_greeting(kf_transport *t, kf_dial *d,
                             const kf_greeting *note)
{
    if (note->word == KF_WELCOME && !d->welcome)
        return welcomed(t, d, note);
    if (note->word == KF_BYE && d->welcome)
        return part(t, kf_peers_by_number(&t->peers, d->peer));
    if (note->word == KF_GO) {
        memcpy(d->node, note->node, KF_TOKEN);
        if (!t->mesh || !same_node(t, note->node, d->who))
            snprintf(t->trouble, sizeof t->trouble, "%s sent us away",
                     d->address);
        return end_life(t, d);
    }
    drop(t);
    return KOFN_OK;
}

/* Begins incarnations that are due; a mesh does not dial whom it knows
 * already. */
static bool redial(kf_transport *t, kofn_time now)
{
    static const unsigned char nobody[KF_TOKEN];
    bool any = false;

    for (size_t i = 0; i < t->dials; i++) {
        kf_dial *d = t->dial[i];

        if (d->bulk || d->over || now < d->next)
            continue;
        if (t->mesh && memcmp(d->node, nobody, KF_TOKEN) != 0 &&
            same_node(t, d->node, d->who))
            d->next = now + d->pause;
        else if (kf_dial_open(d, &t->set, now))
            snprintf(t->trouble, sizeof t->trouble, "%s", kofn_errmsg());
        else
            any = true;
    }
    return any;
}

/* ---- leaving ------------------------------------------------------------- */

void kf_meet_lost(kf_transport *t)
{
    bool keys = t->set.allowed && kf_list_changed(t->set.allowed);

    if (!t->gate || (!kf_doors_news(t->doors) && !keys))
        return;
    for (size_t i = 0; i < t->peers.count; i++) {
        kf_peer *p = t->peers.item[i];
        bool revoked = keys && !p->dial && !is_listed(t, p);

        if (p->dial || p->dying || !(revoked || lost(t, p)))
            continue;
        if (revoked) {
            say(t, p, KF_GO);
            end_of(t, p);
        }
        dies(t, p);
    }
}

kofn_status kf_meet_bury(kf_transport *t)
{
    for (size_t i = t->peers.count; i > 0; i--)
        if (t->peers.item[i - 1]->dying)
            TRY(bury(t, t->peers.item[i - 1]));
    return KOFN_OK;
}

kofn_status kf_meet_dials(kf_transport *t)
{
    kofn_time now = kf_clock();
    bool any = false;

    for (size_t i = 0; i < t->dials; i++) {
        kf_dial *d = t->dial[i];

        if (!d->bulk || !kf_dial_lost(d, now, t->trouble, sizeof t->trouble))
            continue;
        TRY(end_life(t, d));
        any = true;
    }
    any |= redial(t, now);
    return any ? KOFN_PARTIAL : KOFN_OK;
}

void kf_meet_forget(kofn_transport *base, kofn_peer peer)
{
    kf_transport *t = (kf_transport *)base;
    kf_peer *p = kf_peers_by_number(&t->peers, peer);

    if (!p)
        return;
    p->forgotten = true;
    kf_zmq_way_clear(t, &p->bulk);
    kf_zmq_way_clear(t, &p->urgent);
    if (p->dial) {
        p->dial->over = t->mesh; /* a worker tries again, as another */
        (void)end_life(t, p->dial);
    } else {
        say(t, p, KF_GO);
        end_of(t, p);
    }
    for (size_t i = t->told; i < t->news_count; i++)
        if (t->news[i].peer == peer) {
            memmove(&t->news[i], &t->news[i + 1],
                    (t->news_count - i - 1) * sizeof *t->news);
            t->news_count--;
            i--;
        }
}
