/* mesh_evil.h -- hostile nodes in the simulated mesh.
 *
 * A *forger* has no matrix: it has connections, many if it likes, and sends
 * over them whatever it wants whenever it wants, made of what it hears.  A
 * *turncoat* is a real node, with its seat in the mesh, of whose notes some
 * are changed on their way out, differently for each who gets them.
 */
#ifndef KF_TEST_MESH_EVIL_H
#define KF_TEST_MESH_EVIL_H

#include "mesh_sim.h"

#include "peer/node.h"

#define EVIL_LIVES 64

typedef struct evil {
    size_t honest;  /* nodes before this one are; all after it are not */
    size_t forgers; /* the last ones                       */
    kofn_time pace; /* between two notes of a forger       */
    kofn_time until;
    double change;  /* chance of a note of a turncoat      */
    uint64_t kinds; /* bit: only notes of that type, 0 all */
    bool stay;      /* each with one connection            */
    bool hurry;     /* ... or with another one every other note */
    kofn_incarnation heard[EVIL_LIVES];
    size_t lives;
    kofn_iterate_id at; /* the farthest that honest ones said */
    kofn_epoch epoch;
    uint64_t job;
    size_t sent;
} evil;

static inline evil *evil_of(sim *s)
{
    return s->evil;
}

static inline bool is_evil(const sim *s, size_t id)
{
    return s->evil && id >= ((evil *)s->evil)->honest;
}

static inline bool is_forger(const sim *s, size_t id)
{
    const evil *e = s->evil;

    return e && id >= s->nodes - e->forgers;
}

/* ---- what they know ------------------------------------------------------ */

static inline void evil_hear(sim *s, const sim_packet *p)
{
    evil *e = evil_of(s);
    kf_note n;

    if (p->p.what != KOFN_PACKET || p->p.head_bytes != KF_NOTE_HEAD)
        return;
    memcpy(&e->job, p->p.head + 8, 8);
    if (is_evil(s, p->from) ||
        kf_note_read(&n, p->p.head, p->p.head_bytes, e->job))
        return;
    if (n.at.step >= e->at.step)
        e->at = n.at;
    if (kf_before(e->epoch, n.epoch))
        e->epoch = n.epoch;
    for (size_t i = 0; i < e->lives; i++)
        if (e->heard[i] == n.from)
            return;
    if (e->lives < EVIL_LIVES)
        e->heard[e->lives++] = n.from;
}

/* ---- what they make up --------------------------------------------------- */

static inline uint64_t evil_number(sim *s)
{
    switch (kf_rng_below(&s->rng, 5)) {
    case 0:
        return 0;
    case 1:
        return UINT64_MAX - kf_rng_below(&s->rng, 3);
    case 2:
        return kf_rng_u64(&s->rng);
    default:
        return kf_rng_below(&s->rng, 16);
    }
}

static inline kofn_incarnation evil_incarnation(sim *s, kofn_incarnation own)
{
    const evil *e = evil_of(s);

    if (kf_rng_below(&s->rng, 2) || e->lives == 0)
        return own;
    if (kf_rng_below(&s->rng, 8) == 0)
        return kf_rng_u64(&s->rng);
    return e->heard[kf_rng_below(&s->rng, e->lives)];
}

static inline kofn_iterate_id evil_mark(sim *s)
{
    const evil *e = evil_of(s);
    kofn_iterate_id at = e->at;

    switch (kf_rng_below(&s->rng, 6)) {
    case 0:
        at.step = evil_number(s);
        break;
    case 1:
        at = (kofn_iterate_id){at.step + 1 + kf_rng_below(&s->rng, 2), 7};
        break;
    case 2:
        at.lineage ^= 1;
        break;
    default:
        break;
    }
    return at;
}

static inline kofn_epoch evil_epoch(sim *s, kofn_incarnation own)
{
    const evil *e = evil_of(s);
    kofn_epoch epoch = e->epoch;

    switch (kf_rng_below(&s->rng, 4)) {
    case 0:
        return (kofn_epoch){evil_number(s), evil_incarnation(s, own)};
    case 1:
        return (kofn_epoch){epoch.number + 1, own};
    case 2:
        return (kofn_epoch){epoch.number + 1 + kf_rng_below(&s->rng, 4),
                            evil_incarnation(s, own)};
    default:
        return epoch;
    }
}

#define EVIL_LIST 64

typedef struct evil_note {
    kf_note n;
    kf_member member[EVIL_LIST];
    uint32_t list[EVIL_LIST];
} evil_note;

static inline void evil_members(sim *s, evil_note *x, kofn_incarnation own)
{
    size_t count = 1 + kf_rng_below(&s->rng, 8);

    for (size_t i = 0; i < count; i++)
        x->member[i] = (kf_member){evil_incarnation(s, own),
                                   (uint32_t)(i + kf_rng_below(&s->rng, 2)),
                                   kf_rng_below(&s->rng, 2)};
    x->member[kf_rng_below(&s->rng, count)].incarnation = own;
    x->n.member = x->member;
    x->n.members = count;
}

static inline void evil_list(sim *s, evil_note *x)
{
    size_t at = 0;

    x->n.coded = kf_rng_below(&s->rng, 64);
    while (at < EVIL_LIST / 2) {
        size_t count = kf_rng_below(&s->rng, 8);

        x->list[at++] = (uint32_t)count;
        for (size_t i = 0; i < count; i++)
            x->list[at++] = (uint32_t)(i + kf_rng_below(&s->rng, 2));
    }
    x->n.list = x->list;
    x->n.listed = at;
}

static inline void evil_make(sim *s, evil_note *x, kofn_incarnation own)
{
    const evil *e = evil_of(s);

    do
        x->n = (kf_note){
            .type = (kf_note_type)(1 + kf_rng_below(&s->rng, KF_NOTE_PRINT))};
    while (e->kinds && !(e->kinds & kf_bit(x->n.type)));
    x->n.from = evil_incarnation(s, own);
    x->n.epoch = evil_epoch(s, own);
    x->n.at = evil_mark(s);
    x->n.final = kf_rng_below(&s->rng, 2);
    x->n.idle = x->n.stranded = kf_rng_below(&s->rng, 2);
    x->n.coded = kf_rng_below(&s->rng, 2) ? UINT64_MAX : evil_number(s);
    if (x->n.type == KF_NOTE_VECTOR && kf_rng_below(&s->rng, 4))
        x->n.coded = 0; /* else it is a part, which nobody here asks for */
    x->n.decoded = evil_number(s);
    x->n.group = (uint32_t)kf_rng_below(&s->rng, 8);
    x->n.seat = kf_rng_below(&s->rng, 4) ? (uint32_t)kf_rng_below(&s->rng, 8)
                                         : KOFN_NO_SEAT;
    if (x->n.type == KF_NOTE_EPOCH)
        evil_members(s, x, own);
    if (x->n.type == KF_NOTE_DECIDE)
        evil_list(s, x);
}

/* Of the right size, mostly. */
static inline size_t evil_bytes(sim *s, const kf_note *n)
{
    size_t rows = s->v0.rows,
           groups = kf_node_groups(&s->stage, s->opt.nodes, s->opt.errors);
    size_t span = s->plan->span, strips;

    if (kf_rng_below(&s->rng, 20) == 0)
        return 8 * kf_rng_below(&s->rng, 64);
    if (n->type == KF_NOTE_VECTOR)
        return (rows + KOFN_SCALARS) * sizeof(double);
    if (n->type != KF_NOTE_PIECE || n->group >= groups)
        return kf_note_bytes(n);
    strips = span / groups + (n->group < span % groups);
    return strips * sizeof(double) *
           (n->seat == KOFN_NO_SEAT ? s->plan->layout.wants
                                    : s->plan->layout.lanes);
}

static inline double evil_value(sim *s)
{
    switch (kf_rng_below(&s->rng, 8)) {
    case 0:
        return NAN;
    case 1:
        return INFINITY;
    case 2:
        return 0;
    default:
        return 2 * kf_rng_uniform(&s->rng) - 1;
    }
}

/* A forger's note to somebody, in a packet. */
static inline void evil_send(sim *s, size_t from, size_t to)
{
    kofn_incarnation own = 1000 + 1000 * from + s->node[from].lives;
    unsigned char head[KF_NOTE_HEAD];
    static evil_note x;
    double *body;
    size_t bytes, numbers_there;

    evil_make(s, &x, own);
    bytes = evil_bytes(s, &x.n);
    numbers_there = bytes / sizeof *body + 1;
    body = numbers(numbers_there, sizeof *body);
    for (size_t i = 0; i < numbers_there; i++)
        body[i] = evil_value(s);
    if (bytes == kf_note_bytes(&x.n))
        kf_note_pack(&x.n, (unsigned char *)body);
    kf_note_write(head, &x.n, evil_of(s)->job, body, bytes);
    if (kf_rng_below(&s->rng, 50) == 0)
        head[kf_rng_below(&s->rng, sizeof head)] ^= 1;
    sim_put(
        s,
        sim_copy(from, to, s->node[from].lives, head, sizeof head, body, bytes),
        sim_delay(s));
    kf_free(body);
    evil_of(s)->sent++;
}

/* Another identity, over another connection. */
static inline void evil_reborn(sim *s, size_t id)
{
    for (size_t i = 0; i < s->nodes; i++)
        if (i != id && s->node[i].up && !is_forger(s, i))
            sim_link(s, i, id, KOFN_WENT);
    s->node[id].lives++;
    for (size_t i = 0; i < s->nodes; i++)
        if (i != id && s->node[i].up && !is_forger(s, i))
            sim_link(s, i, id, KOFN_CAME);
}

static inline void evil_act(sim *s, size_t id)
{
    evil *e = evil_of(s);

    if (s->now >= e->until)
        return;
    for (size_t i = 0; i < e->honest && e->job; i++)
        if (s->node[i].up)
            evil_send(s, id, i);
    if (kf_rng_below(&s->rng, e->hurry ? 2 : 100) == 0 && !e->stay)
        evil_reborn(s, id);
    sim_at(s, s->now + 1 + (kofn_time)((double)e->pace * 2 * sim_draw(s)),
           SIM_EVIL, id, 0);
}

/* ---- turncoats ----------------------------------------------------------- */

/* Its note, changed: the numbers, or what it says of itself. */
static inline void evil_twist(sim *s, sim_packet *p)
{
    evil *e = evil_of(s);
    double *body = (double *)(void *)p->body;
    size_t n = p->p.body_bytes / sizeof *body;
    static evil_note x;
    kf_note note;

    if (sim_draw(s) >= e->change ||
        kf_note_read(&note, p->p.head, p->p.head_bytes, e->job))
        return;
    if (note.type == KF_NOTE_PIECE || note.type == KF_NOTE_VECTOR) {
        size_t i = kf_rng_below(&s->rng, n);

        if (kf_rng_below(&s->rng, 2))
            body[i] *= 1 + pow(10, -8 * kf_rng_uniform(&s->rng));
        else
            body[i] = evil_value(s);
    } else {
        kf_note_type type = note.type;

        if (type == KF_NOTE_EPOCH || type == KF_NOTE_DECIDE)
            return;
        evil_make(s, &x, note.from);
        note.at = kf_rng_below(&s->rng, 2) ? x.n.at : note.at;
        note.final = x.n.final;
        note.idle = x.n.idle;
        note.stranded = x.n.stranded;
        note.coded = x.n.coded;
        note.epoch = kf_rng_below(&s->rng, 4) ? note.epoch : x.n.epoch;
    }
    kf_note_write(p->p.head, &note, e->job, p->body, p->p.body_bytes);
    e->sent++;
}

/* ---- what must hold ------------------------------------------------------ */

/* No honest node is sent away. */
static inline void evil_blamed(sim *s, size_t by, size_t who)
{
    if (!is_evil(s, who))
        fail_msg("seed %llu: node %zu takes node %zu for a liar",
                 (unsigned long long)s->seed, by, who);
}

/* What waits for one peer is bounded, whatever it asks for. */
static inline void evil_weigh(const kf_host *h, kofn_peer peer)
{
    size_t letters = 0, vectors = 0, bytes = 0;

    for (size_t i = 0; i < h->waits; i++)
        if (h->waiting[i].peer == peer) {
            letters++;
            vectors += h->waiting[i].head[6] == KF_NOTE_VECTOR;
            bytes += h->waiting[i].bytes;
        }
    assert_true(letters <= 512);
    assert_true(vectors <= 1);
    assert_true(bytes <=
                65536 + 5 * (h->v->m.rows + KOFN_SCALARS) * sizeof(double));
}

/* In the end honest nodes know each other: none was taken for gone. */
static inline void evil_check(sim *s)
{
    const evil *e = evil_of(s);

    for (size_t i = 0; i < e->honest; i++) {
        kf_node *n = s->node[i].host->node;

        assert_true(n->others <= KF_MOST_LIVES);
        assert_true(s->node[i].host->waits <= 4096);
        for (uint32_t p = 0; p < s->node[i].peers; p++)
            evil_weigh(s->node[i].host, p);
        for (size_t j = 0; j < e->honest; j++) {
            kofn_incarnation incarnation =
                s->node[j].host->node->opt.incarnation;
            const kf_other *o = kf_peer_find(n, incarnation);

            if (i != j && (!o || o->heard == KF_LONG_AGO))
                fail_msg("seed %llu: node %zu takes node %zu for gone",
                         (unsigned long long)s->seed, i, j);
        }
    }
}

static inline void evil_start(sim *s, evil *e)
{
    s->evil = e;
    s->twist = evil_twist;
    s->listen = evil_hear;
    s->act = evil_act;
    s->blamed = evil_blamed;
    for (size_t i = 0; i < s->nodes; i++) {
        if (!is_forger(s, i)) {
            sim_start(s, i, true);
            s->node[i].turncoat = is_evil(s, i);
            continue;
        }
        s->node[i].up = true;
        s->node[i].sim = s;
        for (size_t j = 0; j < i; j++)
            if (!is_forger(s, j))
                sim_link(s, j, i, KOFN_CAME);
        sim_at(s, s->now, SIM_EVIL, i, 0);
    }
}

#endif
