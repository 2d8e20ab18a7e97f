/* fuzz_away.c -- fuzzes the coordinator's port with packets from peers:
 * greetings, requests for slices, results, failures and updates. Their order
 * and fields are arbitrary, and their checksums are right. Meanwhile a job
 * stores blocks, changes them and gives out tasks.
 *
 * fuzz-iterations: 60000 */
#include <kofn/fleet.h>

#include "base/lent.h"
#include "packets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PEERS 6
#define TASKS 16

/* Peers that an input controls. */
typedef struct drawn_workers {
    kofn_transport base;
    draw d;
    bool there[PEERS]; /* each peer comes once */
    kofn_peer next;
    uint64_t job;
    kf_head work, store, update; /* the last of each */
    size_t out;
    size_t results; /* results that the job received */
    uint8_t body[KF_WORDS + 8];
} drawn_workers;

static kofn_status workers_send(kofn_transport *t, kofn_peer peer,
                                const void *head, size_t head_bytes,
                                const kofn_lent *body, bool urgent)
{
    drawn_workers *c = (drawn_workers *)t;
    const void *data = body ? body->data : NULL;
    size_t bytes = body ? body->bytes : 0;
    kf_head h;

    MUST(kf_head_read(&h, head, head_bytes) == KOFN_OK);
    MUST(kf_wire_check(h.job, h.body_sum, data, bytes) == KOFN_OK);
    MUST(h.type >= KF_WIRE_WELCOME);
    if (!urgent && c->d.left && c->d.data[0] % 8 == 5)
        return KOFN_AGAIN; /* the channel is full */
    c->job = h.job;
    if (h.type == KF_WIRE_WORK)
        c->work = h;
    if (h.type == KF_WIRE_STORE)
        c->store = h;
    if (h.type == KF_WIRE_UPDATE)
        c->update = h;
    kf_give_back(body);
    return peer < PEERS && c->there[peer] ? KOFN_OK : KOFN_TRANSPORT;
}

static size_t result(drawn_workers *c, kf_head *h)
{
    size_t n;

    h->task = next(&c->d, 4) ? c->work.task : next(&c->d, TASKS);
    h->product = c->work.product + (next(&c->d, 16) == 1);
    h->row = c->work.row + (next(&c->d, 16) == 1);
    h->rows = c->work.out_rows;
    h->cols = 1;
    if (next(&c->d, 4) == 0) {
        h->rows = size_of(&c->d, h->rows);
        h->cols = size_of(&c->d, h->cols);
    }
    h->dtype = next(&c->d, 8) ? KOFN_F64 : KOFN_F32;
    h->took = size_of(&c->d, 100);
    n = h->rows <= 8 && h->cols <= 8 ? h->rows * h->cols * 8 : next(&c->d, 256);
    if (next(&c->d, 8) == 0)
        n = next(&c->d, 256);
    for (size_t i = 0; i < n; i++)
        c->body[i] = (uint8_t)next(&c->d, 256);
    return n;
}

static size_t compose(drawn_workers *c, kf_head *h)
{
    static const kf_wire often[] = {
        KF_WIRE_HELLO,   KF_WIRE_HELLO,  KF_WIRE_NEED,    KF_WIRE_NEED,
        KF_WIRE_NEED,    KF_WIRE_STORED, KF_WIRE_NOTICE,  KF_WIRE_BYE,
        KF_WIRE_RESULT,  KF_WIRE_RESULT, KF_WIRE_RESULT,  KF_WIRE_FAILED,
        KF_WIRE_WELCOME, KF_WIRE_ASK,    KF_WIRE_CHANGED, KF_WIRE_CHANGED};

    h->type = often[next(&c->d, 16)];
    h->job = c->job + (next(&c->d, 64) == 1);
    h->block = next(&c->d, 16) ? c->store.block : next(&c->d, 4);
    h->hi = 1 + next(&c->d, 4);
    if (next(&c->d, 2)) {
        h->which = size_of(&c->d, 0);
        h->lo = size_of(&c->d, 0);
        h->hi = size_of(&c->d, 4);
    }
    if (h->type == KF_WIRE_CHANGED)
        h->updates = next(&c->d, 4) ? 1 + next(&c->d, 8)
                                    : size_of(&c->d, c->update.updates);
    h->status = h->type == KF_WIRE_FAILED ? (int)next(&c->d, 32) - 16 : 0;
    if (h->type == KF_WIRE_FAILED) {
        h->task = next(&c->d, TASKS);
        return next(&c->d, 2) ? next(&c->d, sizeof c->body) : 0;
    }
    return h->type == KF_WIRE_RESULT ? result(c, h)
           : next(&c->d, 8)          ? 0
                                     : next(&c->d, 99);
}

static void deliver(drawn_workers *c, kofn_packet *k, kofn_peer peer)
{
    kf_head h = {.type = KF_WIRE_HELLO};
    size_t n = compose(c, &h);

    h.body_sum = n ? kf_hash(h.job, c->body, n) : 0;
    h.body_sum ^= n && next(&c->d, 64) == 1;
    *k = (kofn_packet){.what = KOFN_PACKET,
                       .peer = peer,
                       .head_bytes = KF_HEAD,
                       .body_bytes = n};
    kf_head_write(k->head, &h);
    k->head[next(&c->d, KF_HEAD)] ^= next(&c->d, 100) == 1;
    if (n == 0)
        return;
    k->own = malloc(n);
    MUST(k->own);
    memcpy(k->own, c->body, n);
    k->body = next(&c->d, 2) ? k->own : NULL;
    c->out++;
}

static kofn_status workers_wait(kofn_transport *t, kofn_time atmost,
                                kofn_packet *k)
{
    drawn_workers *c = (drawn_workers *)t;
    kofn_peer peer = next(&c->d, PEERS);

    (void)atmost;
    if (!c->d.left)
        return kf_fail(KOFN_TRANSPORT, "that is all");
    if (next(&c->d, 8) == 7)
        return KOFN_AGAIN;
    if (c->next < PEERS && peer >= c->next) {
        *k = (kofn_packet){.what = KOFN_CAME, .peer = c->next};
        c->there[c->next++] = true;
        return KOFN_OK;
    }
    if (!c->there[peer])
        return KOFN_AGAIN;
    if (next(&c->d, 50) == 1) {
        *k = (kofn_packet){.what = KOFN_WENT, .peer = peer};
        c->there[peer] = false;
        return KOFN_OK;
    }
    deliver(c, k, peer);
    return KOFN_OK;
}

static kofn_status workers_fetch(kofn_transport *t, kofn_packet *k, void *into)
{
    (void)t;
    memcpy(into, k->own, k->body_bytes);
    return KOFN_OK;
}

static void workers_release(kofn_transport *t, void *own)
{
    MUST(((drawn_workers *)t)->out-- > 0);
    free(own);
}

static void workers_forget(kofn_transport *t, kofn_peer peer)
{
    MUST(peer < PEERS);
    ((drawn_workers *)t)->there[peer] = false;
}

static void workers_close(kofn_transport *t, kofn_time linger)
{
    (void)linger;
    MUST(((drawn_workers *)t)->out == 0);
}

/* ---- a job --------------------------------------------------------------- */

static kf_block *small_block(void)
{
    kf_buffer *p;
    kf_block *b;

    MUST(kf_buffer_new(&p, 4, 6, KOFN_F64) == KOFN_OK);
    memset(p->m.data, 0, 4 * 6 * 8);
    MUST(kf_block_around(&b, p, 1, 4, 6) == KOFN_OK);
    kf_buffer_drop(p);
    return b;
}

static void send_worker(kofn_port *port, uint32_t worker, unsigned type,
                        uint32_t task)
{
    kf_block *b = samples()[worker % BLOCKS].block;
    kf_msg m = {.type = type,
                .worker = worker,
                .product = 1,
                .task = task,
                .row = task % 3,
                .round = 1};

    if (type == KF_MSG_STORE)
        m.block = kf_block_keep(b);
    if (type == KF_MSG_WORK) {
        m.how = b->subset ? KF_HOW_SUBMESSAGE : KF_HOW_ROWS;
        m.hi = 4;
        if (task % 3 == 2) { /* it brings its block */
            m.how = KF_HOW_ROWS;
            m.block = small_block();
        }
        MUST(kf_buffer_new(&m.in, 6, 1, KOFN_F64) == KOFN_OK);
        memset(m.in->m.data, 0, 48);
        MUST(kf_buffer_new(&m.result, 4, 1, KOFN_F64) == KOFN_OK);
    }
    if (type == KF_MSG_UPDATE) { /* the size soon exceeds the limit */
        const kofn_change change = KOFN_CHANGE_INIT;
        size_t rows = task % 4 == 0 ? 2000 : 1;

        m.operand = task % 5 == 4;
        MUST(kf_states_change_new(&m.change, &change) == KOFN_OK);
        MUST(kf_buffer_new(&m.in, rows, 6, KOFN_F64) == KOFN_OK);
        MUST(kf_buffer_new(&m.with, rows, 4, KOFN_F64) == KOFN_OK);
        memset(m.in->m.data, 0, kf_buffer_bytes(m.in));
        memset(m.with->m.data, 0, kf_buffer_bytes(m.with));
    }
    if (type == KF_MSG_SLICE && task % 2) {
        m.block = small_block();
        m.hi = 4;
    }
    MUST(port->send(port, &m) == KOFN_OK);
}

static void receive(drawn_workers *c, kofn_port *port, kf_msg *m)
{
    MUST(m->type <= KF_MSG_FAILED && m->worker < 9999 && m->took >= 0);
    if (m->type == KF_MSG_HELLO)
        send_worker(port, m->worker, KF_MSG_STORE, 0);
    if (m->type == KF_MSG_RESULT) {
        MUST(m->result && m->result->m.rows == 4 && m->result->m.cols == 1 &&
             m->result->m.dtype == KOFN_F64 && m->task < TASKS);
        c->results++;
    }
    MUST(m->type != KF_MSG_FAILED || m->status < 0);
    MUST(!m->why || strlen(m->why) <= KF_WORDS);
    for (const char *s = m->why; s && *s; s++)
        MUST((*s >= ' ' && *s <= '~') || *s == '\n');
    kf_buffer_drop(m->in);
    kf_buffer_drop(m->result);
    kofn_free(m->why);
    kf_block_drop(m->block);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    drawn_workers c = {.base = {.size = sizeof(kofn_transport),
                                .name = "fuzz",
                                .send = workers_send,
                                .wait = workers_wait,
                                .fetch = workers_fetch,
                                .release = workers_release,
                                .forget = workers_forget,
                                .close = workers_close},
                       .d = {data, size}};
    kofn_away_options opt = KOFN_AWAY_OPTIONS_INIT;
    kofn_fleet *f = NULL; /* every fourth input is for a job of a fleet */
    kofn_port *port;
    kf_msg m;
    size_t before, given = 0;

    watch_memory();
    samples();
    before = held;
    most = held + ((size_t)16 << 20);
    opt.job = 5;
    opt.source = "A.npy";
    opt.strangers = 4;
    if (size % 4 == 1)
        MUST(kofn_fleet_open(&f, &c.base, NULL) == KOFN_OK &&
             kofn_fleet_port(&port, f, &opt) == KOFN_OK);
    else
        MUST(kofn_port_away(&port, &c.base, &opt) == KOFN_OK);
    c.job = opt.job;
    while (c.d.left) {
        kofn_status st = port->wait(port, 0, 0, &m);

        MUST(st == KOFN_OK || st == KOFN_AGAIN || !c.d.left);
        if (st == KOFN_OK)
            receive(&c, port, &m);
        else if (given < TASKS && next(&c.d, 2) == 0)
            send_worker(port, next(&c.d, PEERS), KF_MSG_WORK,
                        (uint32_t)given++);
        else if (next(&c.d, 4) == 0)
            send_worker(port, next(&c.d, 2 * PEERS),
                        next(&c.d, 4) ? KF_MSG_UPDATE : KF_MSG_SLICE,
                        next(&c.d, 256));
        else if (next(&c.d, 16) == 0)
            send_worker(port, next(&c.d, PEERS), KF_MSG_CANCEL,
                        next(&c.d, TASKS));
    }
    MUST(c.results <= given);
    port->close(port);
    kofn_fleet_close(f);
    MUST(held == before);
    most = SIZE_MAX;
    return 0;
}
