/* mesh_hostile.h -- hostile nodes in the simulated mesh.
 *
 * A *forger* has no matrix. It has connections, any number of them, and sends
 * any note at any time, made from what it hears. A *turncoat* is a real node
 * with a seat in the mesh. Some of its notes are changed on their way,
 * differently for each receiver. */
#ifndef KF_TEST_MESH_HOSTILE_H
#define KF_TEST_MESH_HOSTILE_H

#include "mesh_sim_end.h"

#include "peer/node.h"

#define HOSTILE_HEARD 64

typedef struct hostile {
    size_t honest;  /* nodes below this index are honest, all others hostile */
    size_t forgers; /* number of forgers; they are the last nodes */
    kofn_time pace; /* mean time between two notes of a forger */
    kofn_time until;
    double change;  /* probability that a note of a turncoat is changed */
    uint64_t kinds; /* bit set of note types that are sent; 0: all */
    bool stay;      /* each forger keeps one connection */
    bool hurry;     /* a forger reconnects at every other note */
    kofn_incarnation heard[HOSTILE_HEARD];
    size_t lives;
    kofn_iterate_id at; /* the latest iterate that honest nodes reported */
    kofn_epoch epoch;
    uint64_t job;
    size_t sent;
} hostile;

static inline hostile *hostile_of(sim *s)
{
    return s->hostile;
}

static inline bool is_hostile(const sim *s, size_t id)
{
    return s->hostile && id >= ((hostile *)s->hostile)->honest;
}

static inline bool is_forger(const sim *s, size_t id)
{
    const hostile *e = s->hostile;

    return e && id >= s->nodes - e->forgers;
}

/* ---- what hostile nodes hear --------------------------------------------- */

static inline void hostile_hear(sim *s, const sim_packet *p)
{
    hostile *e = hostile_of(s);
    kf_note n;

    if (p->p.what != KOFN_PACKET || p->p.head_bytes != KF_HEAD)
        return;
    memcpy(&e->job, p->p.head + KF_AT_JOB, 8);
    if (is_hostile(s, p->from) ||
        kf_note_read(&n, p->p.head, p->p.head_bytes, e->job))
        return;
    if (n.at.step >= e->at.step)
        e->at = n.at;
    if (kf_before(e->epoch, n.epoch))
        e->epoch = n.epoch;
    for (size_t i = 0; i < e->lives; i++)
        if (e->heard[i] == n.from)
            return;
    if (e->lives < HOSTILE_HEARD)
        e->heard[e->lives++] = n.from;
}

/* ---- what they forge ----------------------------------------------------- */

static inline uint64_t hostile_number(sim *s)
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

static inline kofn_incarnation hostile_incarnation(sim *s, kofn_incarnation own)
{
    const hostile *e = hostile_of(s);

    if (kf_rng_below(&s->rng, 2) || e->lives == 0)
        return own;
    if (kf_rng_below(&s->rng, 8) == 0)
        return kf_rng_u64(&s->rng);
    return e->heard[kf_rng_below(&s->rng, e->lives)];
}

static inline kofn_iterate_id hostile_iterate(sim *s)
{
    const hostile *e = hostile_of(s);
    kofn_iterate_id at = e->at;

    switch (kf_rng_below(&s->rng, 6)) {
    case 0:
        at.step = hostile_number(s);
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

static inline kofn_epoch hostile_epoch(sim *s, kofn_incarnation own)
{
    const hostile *e = hostile_of(s);
    kofn_epoch epoch = e->epoch;

    switch (kf_rng_below(&s->rng, 4)) {
    case 0:
        return (kofn_epoch){hostile_number(s), hostile_incarnation(s, own)};
    case 1:
        return (kofn_epoch){epoch.number + 1, own};
    case 2:
        return (kofn_epoch){epoch.number + 1 + kf_rng_below(&s->rng, 4),
                            hostile_incarnation(s, own)};
    default:
        return epoch;
    }
}

#define HOSTILE_LIST 64

typedef struct hostile_note {
    kf_note n;
    kf_member member[HOSTILE_LIST];
    uint32_t list[HOSTILE_LIST];
} hostile_note;

static inline void hostile_members(sim *s, hostile_note *x,
                                   kofn_incarnation own)
{
    size_t count = 1 + kf_rng_below(&s->rng, 8);

    for (size_t i = 0; i < count; i++)
        x->member[i] = (kf_member){hostile_incarnation(s, own),
                                   (uint32_t)(i + kf_rng_below(&s->rng, 2)),
                                   kf_rng_below(&s->rng, 2)};
    x->member[kf_rng_below(&s->rng, count)].incarnation = own;
    x->n.member = x->member;
    x->n.members = count;
}

static inline void hostile_list(sim *s, hostile_note *x)
{
    size_t at = 0;

    x->n.decide.groups = kf_rng_below(&s->rng, 64);
    while (at < HOSTILE_LIST / 2) {
        size_t count = kf_rng_below(&s->rng, 8);

        x->list[at++] = (uint32_t)count;
        for (size_t i = 0; i < count; i++)
            x->list[at++] = (uint32_t)(i + kf_rng_below(&s->rng, 2));
    }
    x->n.list = x->list;
    x->n.listed = at;
}

static inline void hostile_forge(sim *s, hostile_note *x, kofn_incarnation own)
{
    const hostile *e = hostile_of(s);

    do
        x->n = (kf_note){
            .type =
                (kf_note_type)(KF_NOTE_BEAT +
                               kf_rng_below(&s->rng,
                                            KF_NOTE_PRINT - KF_NOTE_BEAT + 1))};
    while (e->kinds && !(e->kinds & kf_bit(x->n.type)));
    x->n.from = hostile_incarnation(s, own);
    x->n.epoch = hostile_epoch(s, own);
    x->n.at = hostile_iterate(s);
    x->n.final = kf_rng_below(&s->rng, 2);
    x->n.idle = x->n.stranded = kf_rng_below(&s->rng, 2);
    x->n.word[0] = kf_rng_below(&s->rng, 2) ? UINT64_MAX : hostile_number(s);
    if (x->n.type == KF_NOTE_VECTOR && kf_rng_below(&s->rng, 4))
        x->n.vector.after =
            0; /* else it is a part of a vector, which no node here asks for */
    x->n.word[1] = hostile_number(s);
    x->n.group = (uint32_t)kf_rng_below(&s->rng, 8);
    x->n.seat = kf_rng_below(&s->rng, 4) ? (uint32_t)kf_rng_below(&s->rng, 8)
                                         : KOFN_NO_SEAT;
    if (x->n.type == KF_NOTE_EPOCH)
        hostile_members(s, x, own);
    if (x->n.type == KF_NOTE_DECIDE)
        hostile_list(s, x);
}

/* Returns the number of bytes of the body, mostly the right one. */
static inline size_t hostile_bytes(sim *s, const kf_note *n)
{
    size_t rows = s->v0.rows,
           groups = kf_node_groups(&s->product, s->opt.nodes, s->opt.errors);
    size_t span = s->plan->span, strips;

    if (kf_rng_below(&s->rng, 20) == 0)
        return 8 * kf_rng_below(&s->rng, 64);
    if (n->type == KF_NOTE_VECTOR)
        return (rows + KOFN_SCALARS) * sizeof(double);
    if (n->type != KF_NOTE_PARTIAL || n->group >= groups)
        return kf_note_bytes(n);
    strips = span / groups + (n->group < span % groups);
    return strips * sizeof(double) *
           (n->seat == KOFN_NO_SEAT ? s->plan->layout.wants
                                    : s->plan->layout.components);
}

static inline double hostile_value(sim *s)
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

/* Sends a note of a forger to a node, in a packet. */
static inline void hostile_send(sim *s, size_t from, size_t to)
{
    kofn_incarnation own = 1000 + 1000 * from + s->node[from].lives;
    unsigned char head[KF_HEAD];
    static hostile_note x;
    double *body;
    size_t bytes, numbers_there;

    hostile_forge(s, &x, own);
    bytes = hostile_bytes(s, &x.n);
    numbers_there = bytes / sizeof *body + 1;
    body = numbers(numbers_there, sizeof *body);
    for (size_t i = 0; i < numbers_there; i++)
        body[i] = hostile_value(s);
    if (bytes == kf_note_bytes(&x.n))
        kf_note_pack(&x.n, (unsigned char *)body);
    kf_note_write(head, &x.n, hostile_of(s)->job, body, bytes);
    if (kf_rng_below(&s->rng, 50) == 0)
        head[kf_rng_below(&s->rng, sizeof head)] ^= 1;
    sim_put(
        s,
        sim_copy(from, to, s->node[from].lives, head, sizeof head, body, bytes),
        sim_delay(s));
    kf_free(body);
    hostile_of(s)->sent++;
}

/* Reconnects under another identity. */
static inline void hostile_reconnect(sim *s, size_t id)
{
    for (size_t i = 0; i < s->nodes; i++)
        if (i != id && s->node[i].up && !is_forger(s, i))
            sim_link(s, i, id, KOFN_WENT);
    s->node[id].lives++;
    for (size_t i = 0; i < s->nodes; i++)
        if (i != id && s->node[i].up && !is_forger(s, i))
            sim_link(s, i, id, KOFN_CAME);
}

static inline void hostile_act(sim *s, size_t id)
{
    hostile *e = hostile_of(s);

    if (s->now >= e->until)
        return;
    for (size_t i = 0; i < e->honest && e->job; i++)
        if (s->node[i].up)
            hostile_send(s, id, i);
    if (kf_rng_below(&s->rng, e->hurry ? 2 : 100) == 0 && !e->stay)
        hostile_reconnect(s, id);
    sim_at(s, s->now + 1 + (kofn_time)((double)e->pace * 2 * sim_draw(s)),
           SIM_HOSTILE, id, 0);
}

/* ---- turncoats ----------------------------------------------------------- */

/* Changes a note of a turncoat: its numbers, or what it reports of itself. */
static inline void hostile_change(sim *s, sim_packet *p)
{
    hostile *e = hostile_of(s);
    double *body = (double *)(void *)p->body;
    size_t n = p->p.body_bytes / sizeof *body;
    static hostile_note x;
    kf_note note;

    if (sim_draw(s) >= e->change ||
        kf_note_read(&note, p->p.head, p->p.head_bytes, e->job))
        return;
    if (note.type == KF_NOTE_PARTIAL || note.type == KF_NOTE_VECTOR) {
        size_t i = kf_rng_below(&s->rng, n);

        if (kf_rng_below(&s->rng, 2))
            body[i] *= 1 + pow(10, -8 * kf_rng_uniform(&s->rng));
        else
            body[i] = hostile_value(s);
    } else {
        kf_note_type type = note.type;

        if (type == KF_NOTE_EPOCH || type == KF_NOTE_DECIDE)
            return;
        hostile_forge(s, &x, note.from);
        note.at = kf_rng_below(&s->rng, 2) ? x.n.at : note.at;
        note.final = x.n.final;
        note.idle = x.n.idle;
        note.stranded = x.n.stranded;
        note.word[0] = x.n.word[0];
        note.epoch = kf_rng_below(&s->rng, 4) ? note.epoch : x.n.epoch;
    }
    kf_note_write(p->p.head, &note, e->job, p->body, p->p.body_bytes);
    e->sent++;
}

/* ---- what must hold ------------------------------------------------------ */

/* Fails if an honest node is disconnected as faulty. */
static inline void hostile_blamed(sim *s, size_t by, size_t node)
{
    if (!is_hostile(s, node))
        fail_msg("seed %llu: node %zu takes node %zu for faulty",
                 (unsigned long long)s->seed, by, node);
}

/* Fails if what waits for one peer exceeds its bounds, whatever the peer asks
 * for. */
static inline void hostile_check_waiting(const kf_host *h, kofn_peer peer)
{
    size_t letters = 0, vectors = 0, bytes = 0;

    const kf_route *r = kf_route_of(&h->net, peer);

    for (size_t i = 0; r && i < r->outbox.count; i++) {
        const kf_letter *l = &r->outbox.letter[r->outbox.first + i];

        letters++;
        vectors += l->head[KF_AT_TYPE] == KF_NOTE_VECTOR;
        bytes += l->body.bytes;
    }
    assert_true(letters <= 512);
    assert_true(vectors <= 1);
    assert_true(bytes <=
                65536 + 5 * (h->it.v->m.rows + KOFN_SCALARS) * sizeof(double));
}

/* Fails if an honest node regards another honest node as failed in the end. */
static inline void hostile_check(sim *s)
{
    const hostile *e = hostile_of(s);

    for (size_t i = 0; i < e->honest; i++) {
        kf_node *n = s->node[i].host->node;

        assert_true(n->table.count <= KF_MOST_LIVES);
        assert_true(kf_mail_waits(&s->node[i].host->net) <= 4096);
        for (uint32_t p = 0; p < s->node[i].peers; p++)
            hostile_check_waiting(s->node[i].host, p);
        for (size_t j = 0; j < e->honest; j++) {
            kofn_incarnation incarnation =
                s->node[j].host->node->opt.incarnation;
            const kf_other *o = kf_peer_find(n, incarnation);

            if (i != j && (!o || o->heard == KF_LONG_AGO))
                fail_msg("seed %llu: node %zu takes node %zu for failed",
                         (unsigned long long)s->seed, i, j);
        }
    }
}

static inline void hostile_start(sim *s, hostile *e)
{
    s->hostile = e;
    s->tamper = hostile_change;
    s->listen = hostile_hear;
    s->act = hostile_act;
    s->blamed = hostile_blamed;
    for (size_t i = 0; i < s->nodes; i++) {
        if (!is_forger(s, i)) {
            sim_start(s, i, true);
            s->node[i].turncoat = is_hostile(s, i);
            continue;
        }
        s->node[i].up = true;
        s->node[i].sim = s;
        for (size_t j = 0; j < i; j++)
            if (!is_forger(s, j))
                sim_link(s, j, i, KOFN_CAME);
        sim_at(s, s->now, SIM_HOSTILE, i, 0);
    }
}

#endif
