/* mesh_sim.h -- simulates a mesh in one thread: real nodes with real data, over
 * a network that loses, delays, repeats and reorders packets. Nodes die, stop,
 * are cut off, slow down and join. A seed decides all of it. Fails if a vector
 * is not the plain iteration's, or if one iterate has two vectors. */
#ifndef KF_TEST_MESH_SIM_H
#define KF_TEST_MESH_SIM_H

#include "rig.h"

#include "base/heap.h"
#include "base/lent.h"
#include "mesh/host.h"
#include "peer/node.h"
#include <stdio.h>

#define SIM_NODES 16
#define SIM_STEPS 64
#define MS (KOFN_SECOND / 1000)

enum { SIM_WAKE, SIM_DELIVER, SIM_FAULT, SIM_HOSTILE, SIM_LINK };

typedef struct sim_packet {
    kofn_packet p;
    unsigned char *body;
    size_t to, from;
    unsigned from_life; /* incarnation of the sender when it was sent */
} sim_packet;

typedef struct sim_node {
    kofn_transport t;
    struct sim *sim;
    size_t id;
    kf_host *host;
    bool up, over, gone; /* gone: exited with the result */
    bool turncoat;       /* its notes are changed on their way */
    bool deaf;           /* accepts no packet */
    size_t steps;        /* the last iterate that it computes */
    unsigned lives;      /* earlier incarnations */
    kofn_status status;
    kofn_time busy, stopped, wakes;
    double slow;
    uint32_t peer[SIM_NODES]; /* current number of each other node */
    uint32_t peers;
    size_t node_of[4096]; /* the node behind each number */
    bool forgot[4096];    /* numbers that the node has forgotten */
    char name[32];        /* of the last request */
    sim_packet **inbox;
    size_t in, in_cap;
    kofn_iterate_id seen; /* last checked */
    unsigned attempt;     /* at that check */
} sim_node;

typedef struct sim {
    kf_heap heap;
    kofn_time now;
    uint64_t seed;
    kf_rng rng;
    sim_node node[SIM_NODES];
    size_t nodes;
    kofn_plan *plan;
    kofn_matrix A, v0;
    size_t steps; /* iterations */
    double *ref;  /* (steps + 1) x rows: the plain iteration */
    kofn_peer_options opt;
    kofn_mesh_product product;
    kofn_operand operand;
    kofn_program program;
    size_t window; /* bytes that are lent at a time, or 0 */
    void *own;     /* data of a test with another program */
    sim_packet **packet;
    size_t packets, packet_cap;

    /* A link with a rate (mesh_link.h), or NULL. `carry` returns true if it
     * takes the packet. */
    struct sim_slow *slow;
    bool (*carry)(struct sim *s, sim_packet *p, const kofn_lent *body,
                  bool urgent);
    void (*move)(struct sim *s);
    void (*sever)(struct sim *s, size_t id); /* called when a node stops */
    bool (*arriving)(kofn_transport *t, kofn_peer peer, kofn_arriving *a);

    double lose, repeat, reorder; /* probabilities */
    kofn_time latency;
    bool cut[SIM_NODES][SIM_NODES];
    bool report_deaths; /* the network reports deaths */
    bool exits;   /* a node that has the result exits, as a process does */
    bool retries; /* what the transport refuses is sent again, as by `live` */
    kofn_time compute;
    size_t early;        /* 1 + a node that stops one iterate early, or 0 */
    size_t unresponsive; /* 1 + a node that loses its results, or 0 */
    size_t delivered;    /* number of packets */
    /* Called at a new iterate; NULL: not called. */
    void (*look)(struct sim *s, size_t id);
    /* Called before each delivery; NULL: not called. */
    void (*inject)(struct sim *s);
    void *inject_ud;
    bool lenient; /* wrong iterates are counted and do not fail the test */
    size_t wrong;
    void *hostile; /* hostile nodes, see mesh_hostile.h; NULL: none */
    /* Changes what a hostile node sends. */
    void (*tamper)(struct sim *s, sim_packet *p);
    /* Hears what any node sends. */
    void (*listen)(struct sim *s, const sim_packet *p);
    void (*act)(struct sim *s, size_t id);
    void (*blamed)(struct sim *s, size_t by, size_t node);
    /* For each of the first `orders` packets: which of the outstanding ones
     * comes next. */
    const unsigned char *order;
    size_t orders;

    struct {
        kofn_iterate_id at;
        double *v;
    } * known; /* every vector that any node has had */
    size_t knowns, known_cap;
    double worst; /* largest deviation from the plain iteration */
    double room;  /* limit of that deviation; 0: 1e-9 */
} sim;

static inline kofn_time sim_clock(void *ud)
{
    return ((sim *)ud)->now;
}

static inline double sim_draw(sim *s)
{
    return kf_rng_uniform(&s->rng);
}

static inline kofn_time sim_delay(sim *s)
{
    return (kofn_time)((double)s->latency * (0.5 + sim_draw(s)));
}

static inline void sim_at(sim *s, kofn_time when, uint32_t kind, size_t node,
                          size_t what)
{
    assert_ok(kf_heap_push(&s->heap, (kf_heap_entry){.time = when,
                                                     .kind = kind,
                                                     .worker = (uint32_t)node,
                                                     .task = (uint32_t)what}));
}

static inline void sim_wake(sim *s, size_t id, kofn_time when)
{
    sim_node *n = &s->node[id];

    when = when < n->busy ? n->busy : when;
    when = when < n->stopped ? n->stopped : when;
    when = when < s->now ? s->now : when;
    if (n->wakes <= when && n->wakes > s->now)
        return; /* it wakes earlier */
    n->wakes = when;
    sim_at(s, when, SIM_WAKE, id, 0);
}

/* ---- the network --------------------------------------------------------- */

static inline void sim_free_packet(sim_packet *p)
{
    kf_free(p->body);
    kf_free(p);
}

static inline void sim_put(sim *s, sim_packet *p, kofn_time after)
{
    assert_ok(
        kf_grow(&s->packet, &s->packet_cap, s->packets, sizeof *s->packet));
    s->packet[s->packets] = p;
    sim_at(s, s->now + after, SIM_DELIVER, p->to, s->packets++);
}

static inline sim_packet *sim_copy(size_t from, size_t to, unsigned life,
                                   const void *head, size_t head_bytes,
                                   const void *body, size_t body_bytes)
{
    sim_packet *p = numbers(1, sizeof *p);

    p->p.what = KOFN_PACKET;
    p->from = from;
    p->to = to;
    p->from_life = life;
    p->p.head_bytes = head_bytes;
    memcpy(p->p.head, head, head_bytes);
    if (body_bytes) {
        p->body = numbers(body_bytes, 1);
        memcpy(p->body, body, body_bytes);
    }
    p->p.body_bytes = body_bytes;
    return p;
}

/* Replaces the lists in a packet by those of the note. */
static inline void sim_repack(sim_packet *p, const kf_note *note)
{
    kf_free(p->body);
    p->p.body_bytes = kf_note_bytes(note);
    p->body = numbers(p->p.body_bytes + 1, 1);
    kf_note_pack(note, p->body);
}

/* True if the note has a group's decoded result: see note.h. */
static inline bool sim_is_result(const unsigned char *head)
{
    return head[KF_AT_TYPE] == KF_NOTE_PARTIAL && head[16] == 0xff &&
           head[19] == 0xff;
}

static inline kofn_status sim_send(kofn_transport *t, kofn_peer peer,
                                   const void *head, size_t head_bytes,
                                   const kofn_lent *body, bool urgent)
{
    sim_node *n = (sim_node *)t;
    sim *s = n->sim;
    const void *data = body ? body->data : NULL;
    size_t bytes = body ? body->bytes : 0;
    size_t to;

    assert_true(peer < n->peers);
    to = n->node_of[peer];
    if (s->node[to].deaf || sim_draw(s) < 0.002)
        return KOFN_AGAIN;
    if (s->unresponsive == n->id + 1 && sim_is_result(head)) {
        kf_give_back(body);
        return KOFN_OK;
    }
    if (n->peer[to] == peer && !s->cut[n->id][to] &&
        !(s->lose > 0 && sim_draw(s) < s->lose)) {
        int copies = 1 + (s->repeat > 0 && sim_draw(s) < s->repeat);

        while (copies-- > 0) {
            kofn_time delay = sim_delay(s);

            sim_packet *p =
                sim_copy(n->id, to, n->lives, head, head_bytes, data, bytes);

            if (s->reorder > 0 && sim_draw(s) < s->reorder)
                delay *= 20;
            if (s->listen)
                s->listen(s, p);
            if (s->tamper && n->turncoat)
                s->tamper(s, p);
            if (s->carry && s->carry(s, p, body, urgent))
                return KOFN_OK;
            sim_put(s, p, delay);
        }
    }
    kf_give_back(body);
    return KOFN_OK;
}

static inline kofn_status sim_wait(kofn_transport *t, kofn_time atmost,
                                   kofn_packet *out)
{
    sim_node *n = (sim_node *)t;
    sim_packet *p;

    (void)atmost;
    for (;;) {
        if (n->in == 0)
            return KOFN_AGAIN;
        p = n->inbox[0];
        memmove(n->inbox, n->inbox + 1, --n->in * sizeof *n->inbox);
        if (p->p.what != KOFN_PACKET || !n->forgot[p->p.peer])
            break;
        sim_free_packet(p);
    }
    *out = p->p;
    out->body = p->body;
    if (p->p.what == KOFN_PACKET) {
        out->own = p;
    } else {
        sim_free_packet(p);
    }
    return KOFN_OK;
}

static inline void sim_forget(kofn_transport *t, kofn_peer peer)
{
    sim_node *n = (sim_node *)t;

    n->forgot[peer] = true;
    if (n->sim->blamed && !n->turncoat)
        n->sim->blamed(n->sim, n->id, n->node_of[peer]);
}

static inline void sim_release(kofn_transport *t, void *own)
{
    (void)t;
    sim_free_packet(own);
}

/* Each node has one key for all its connections. */
static inline const char *sim_principal(kofn_transport *t, kofn_peer peer)
{
    sim_node *n = (sim_node *)t;

    snprintf(n->name, sizeof n->name, "node %zu", n->node_of[peer]);
    return n->name;
}

/* Reports a new or lost connection between two nodes, under a new number,
 * after a delay. */
static inline void sim_link(sim *s, size_t a, size_t b, kofn_arrival what)
{
    sim_node *n = &s->node[a];
    sim_packet *p;

    if (!n->up || a == b || !n->host)
        return;
    p = sim_copy(b, a, s->node[b].lives, "", 0, NULL, 0);
    p->p.what = what;
    p->p.peer = n->peer[b];
    if (what == KOFN_CAME) {
        p->p.peer = n->peers;
        n->peer[b] = n->peers;
        n->node_of[n->peers++] = b;
        assert_true(n->peers < 4096);
    }
    sim_put(s, p, sim_delay(s));
}

/* ---- life of a node ------------------------------------------------------ */

static inline kofn_status sim_output(void *ud, uint64_t t, kofn_matrix *product,
                                     kofn_matrix *v,
                                     double scalar[KOFN_SCALARS], bool *final)
{
    const sim_node *n = ud;
    const double *next = product->data;
    double sum = 0, *to = v->data;

    for (size_t i = 0; i < v->rows; i++)
        sum += next[i] * next[i];
    for (size_t i = 0; i < v->rows; i++)
        to[i] = next[i] / sqrt(sum);
    scalar[0] = (double)t;
    *final = t >= n->steps;
    return KOFN_OK;
}

static inline void sim_start(sim *s, size_t id, bool prepared)
{
    sim_node *n = &s->node[id];
    kofn_peer_options o = s->opt;
    kofn_program program = s->program;

    program.ud = n;
    n->steps = s->steps - (id + 1 == s->early);
    o.incarnation = 1 + kf_rng_u64(&s->rng) / 2;
    o.fault_ud = o.erred_ud = n;
    o.seat = prepared ? (uint32_t)id : KOFN_NO_SEAT;
    n->t = (kofn_transport){.size = sizeof(kofn_transport),
                            .name = "sim",
                            .send = sim_send,
                            .wait = sim_wait,
                            .release = sim_release,
                            .principal_of = sim_principal,
                            .forget = sim_forget,
                            .arriving = s->arriving};
    n->sim = s;
    n->id = id;
    n->up = true;
    n->over = n->gone = false;
    n->slow = 1;
    n->busy = n->stopped = 0;
    n->wakes = -1;
    n->seen = (kofn_iterate_id){0, 0};
    n->status = KOFN_OK;
    assert_ok(kf_host_new(&n->host, &n->t, &program, &o, &s->v0,
                          (kf_timer){sim_clock, s}));
    if (s->window)
        n->host->blocks.changing.small = s->window;
    for (size_t i = 0; i < s->nodes; i++)
        if (i != id && s->node[i].up) {
            sim_link(s, id, i, KOFN_CAME);
            sim_link(s, i, id, KOFN_CAME);
        }
    sim_wake(s, id, s->now);
}

static inline void sim_stop(sim *s, size_t id)
{
    sim_node *n = &s->node[id];

    n->up = false;
    n->lives++;
    kf_host_free(n->host);
    n->host = NULL;
    while (n->in > 0)
        sim_free_packet(n->inbox[--n->in]);
    if (s->sever)
        s->sever(s, id);
    if (s->report_deaths)
        for (size_t i = 0; i < s->nodes; i++)
            sim_link(s, i, id, KOFN_WENT);
}

/* ---- what must hold ------------------------------------------------------ */

static inline void sim_check(sim *s, sim_node *n)
{
    size_t rows = s->v0.rows;
    const double *v = n->host->it.v->m.data;
    kofn_iterate_id at = n->host->it.at;
    double error = 0, room = s->room > 0 ? s->room : 1e-9;

    assert_true(kf_same_iterate(n->host->node->stage.at, at));
    if (n->attempt !=
        n->host->disk.back.attempt) /* it returned to a checkpoint */
        n->seen = (kofn_iterate_id){0, 0};
    n->attempt = n->host->disk.back.attempt;
    if (at.step == n->seen.step && at.lineage == n->seen.lineage)
        return;
    assert_true(at.step >= n->seen.step); /* steps never decrease */
    n->seen = at;
    if (s->look)
        s->look(s, n->id);
    if (s->lenient && at.step > s->steps) {
        s->wrong++;
        return;
    }
    assert_true(at.step <= s->steps);
    for (size_t i = 0; i < rows; i++)
        error = fmax(error, fabs(v[i] - s->ref[at.step * rows + i]));
    s->worst = fmax(s->worst, error);
    s->wrong += s->lenient && !(error <= room);
    if (!s->lenient && !(error <= room))
        fail_msg("seed %llu: iterate %llu is off by %g",
                 (unsigned long long)s->seed, (unsigned long long)at.step,
                 error);
    for (size_t k = 0; k < s->knowns; k++)
        if (s->known[k].at.step == at.step &&
            s->known[k].at.lineage == at.lineage) {
            if (!s->hostile && memcmp(v, s->known[k].v, rows * sizeof *v) != 0)
                fail_msg("seed %llu: two vectors of one iterate %llu",
                         (unsigned long long)s->seed,
                         (unsigned long long)at.step);
            return;
        }
    assert_ok(kf_grow(&s->known, &s->known_cap, s->knowns, sizeof *s->known));
    s->known[s->knowns].at = at;
    s->known[s->knowns].v = numbers(rows, sizeof *v);
    memcpy(s->known[s->knowns++].v, v, rows * sizeof *v);
}

/* ---- time ---------------------------------------------------------------- */

static inline void sim_turn(sim *s, size_t id)
{
    sim_node *n = &s->node[id];
    bool worked, over;

    if (!n->up || n->gone || n->status)
        return;
    if (n->stopped > s->now || n->busy > s->now) {
        sim_wake(s, id, s->now);
        return;
    }
    n->wakes = -1;
    n->status = kf_host_pass(n->host, &worked);
    if (n->status)
        return;
    if (!n->turncoat)
        sim_check(s, n);
    n->status = kf_host_hand_out(n->host, NULL, &over);
    n->over |= over;
    n->gone = over && s->exits;
    if (n->gone) {
        assert_true(n->host->node->stage.final); /* it has a result */
        for (size_t i = 0; i < s->nodes; i++)
            sim_link(s, i, id, KOFN_WENT);
        return;
    }
    if (worked) {
        double cost = (double)s->compute * (0.5 + sim_draw(s)) * n->slow;

        if (n->host->task.type != KF_NODE_TASK_COMPUTE)
            cost /= 4;
        n->busy = s->now + (kofn_time)cost;
        sim_wake(s, id, n->busy);
    } else {
        sim_wake(s, id, kf_node_alarm(n->host->node));
    }
    if (s->retries && kf_mail_waits(&n->host->net))
        sim_wake(s, id, s->now + MS);
}

static inline void sim_deliver(sim *s, size_t to, size_t index)
{
    sim_packet *p = s->packet[index];
    sim_node *n = &s->node[to];

    s->packet[index] = NULL;
    /* packets of an earlier incarnation are lost with the connection */
    if (!n->up || !n->host ||
        (p->p.what == KOFN_PACKET && p->from_life != s->node[p->from].lives)) {
        sim_free_packet(p);
        return;
    }
    if (p->p.what == KOFN_PACKET) /* of the connection by which it came */
        p->p.peer = n->peer[p->from];
    assert_ok(kf_grow(&n->inbox, &n->in_cap, n->in, sizeof *n->inbox));
    n->inbox[n->in++] = p;
    sim_wake(s, to, s->now);
}

/* Pops the earliest event. If an order is set, another packet may replace it
 * and so overtake. */
static inline kf_heap_entry sim_next(sim *s)
{
    kf_heap_entry e = kf_heap_pop(&s->heap), passed[8];
    size_t skip = 0, n = 0;

    if (e.kind == SIM_DELIVER && s->delivered < s->orders)
        skip = s->order[s->delivered];
    while (skip > 0 && s->heap.count && n < 8) {
        if (e.kind == SIM_DELIVER)
            skip--;
        passed[n++] = e;
        e = kf_heap_pop(&s->heap);
    }
    for (size_t i = 0; i < n; i++) {
        passed[i].time = e.time;
        assert_ok(kf_heap_push(&s->heap, passed[i]));
    }
    return e;
}

/* Runs until that time. Returns false if no event is left. */
static inline bool sim_run(sim *s, kofn_time until,
                           void (*fault)(sim *, size_t))
{
    while (s->heap.count && s->heap.entry[0].time <= until) {
        kf_heap_entry e = sim_next(s);

        s->now = e.time;
        if (e.kind == SIM_DELIVER) {
            s->delivered++;
            if (s->inject)
                s->inject(s);
        }
        if (e.kind == SIM_WAKE && s->node[e.worker].wakes == e.time)
            sim_turn(s, e.worker); /* other wakes were postponed or overtaken */
        else if (e.kind == SIM_WAKE)
            continue;
        else if (e.kind == SIM_DELIVER)
            sim_deliver(s, e.worker, e.task);
        else if (e.kind == SIM_HOSTILE)
            s->act(s, e.worker);
        else if (e.kind == SIM_LINK)
            s->move(s);
        else
            fault(s, e.task);
    }
    if (s->now < until)
        s->now = until;
    return s->heap.count > 0;
}

/* ---- a run --------------------------------------------------------------- */

static inline void sim_reference(sim *s)
{
    size_t rows = s->v0.rows;
    double *next = numbers(rows, sizeof *next), scalar[KOFN_SCALARS];
    sim_node any = {.steps = s->steps};
    bool final;

    s->ref = numbers((s->steps + 1) * rows, sizeof *s->ref);
    memcpy(s->ref, s->v0.data, rows * sizeof *s->ref);
    for (size_t t = 1; t <= s->steps; t++) {
        double *v = s->ref + t * rows;
        kofn_matrix product = {next, rows, 1, 1, KOFN_F64};
        kofn_matrix to = {v, rows, 1, 1, KOFN_F64};

        cblas_dgemv(CblasRowMajor, CblasNoTrans, (int)rows, (int)rows, 1,
                    s->A.data, (int)rows, v - rows, 1, 0, next, 1);
        assert_ok(sim_output(&any, t, &product, &to, scalar, &final));
    }
    kf_free(next);
}

/* Makes A symmetric, so that the iteration is not chaotic. */
static inline void sim_up(sim *s, const char *spec, size_t nodes, size_t rows,
                          size_t steps, uint64_t seed)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATVEC, rows, rows, 1, KOFN_F64, false);
    double *a;

    memset(s, 0, sizeof *s);
    s->rng = kf_rng_stream(seed, KF_FOR_SAMPLE, 77, 0);
    s->seed = seed;
    s->nodes = nodes;
    s->steps = steps;
    s->latency = MS;
    s->compute = MS;
    s->report_deaths = true;
    s->A = random_matrix(rows, rows, KOFN_F64, 5);
    a = s->A.data;
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < i; j++)
            a[i * rows + j] = a[j * rows + i];
    s->v0 = random_matrix(rows, 1, KOFN_F64, 6);
    sim_reference(s);
    assert_ok(kofn_plan_new(&s->plan, &pb, spec, nodes, 3));
    s->product = (kofn_mesh_product){.plan = s->plan};
    s->operand = (kofn_operand){.dense = &s->A};
    s->program = (kofn_program){.size = sizeof(kofn_program),
                                .product = &s->product,
                                .products = 1,
                                .operand = &s->operand,
                                .operands = 1,
                                .output = sim_output,
                                .digest = steps};
    s->opt = (kofn_peer_options){.size = sizeof s->opt,
                                 .nodes = nodes,
                                 .confirm = 1, /* no node is hostile */
                                 .decoding = KOFN_DECODE_REPLICATED,
                                 .beat = 10 * MS,
                                 .linger = KOFN_SECOND};
}

static inline void sim_down(sim *s)
{
    for (size_t i = 0; i < SIM_NODES; i++) {
        if (s->node[i].host) {
            s->report_deaths = false;
            sim_stop(s, i);
        }
        kf_free(s->node[i].inbox);
    }
    for (size_t i = 0; i < s->packets; i++)
        if (s->packet[i])
            sim_free_packet(s->packet[i]);
    for (size_t k = 0; k < s->knowns; k++)
        kf_free(s->known[k].v);
    kf_free(s->known);
    kf_free(s->packet);
    kf_free(s->heap.entry);
    kf_free(s->ref);
    kf_free(s->A.data);
    kf_free(s->v0.data);
    kofn_plan_free(s->plan);
}

#endif
