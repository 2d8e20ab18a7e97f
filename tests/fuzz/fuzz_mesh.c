/* fuzz_mesh.c -- a node of a mesh with its data, and what others may send it:
 * notes of any kind about any iterate, with bodies of any length, all with
 * right checksums.  fuzz-iterations: 20000 */
#include "draw.h"

#include "mesh/host.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PEERS 4
#define ROWS 12
#define BODY_MOST 1024

typedef struct street {
    kofn_transport base;
    draw d;
    kf_host *host;
    kofn_time now;
    kofn_peer next;
    bool there[PEERS];
    kofn_mark seen; /* in what the node said last */
    kofn_epoch epoch;
    size_t out; /* bodies that were not given back */
} street;

static kofn_time street_clock(void *ud)
{
    street *s = ud;

    return s->now += KOFN_SECOND / 1000;
}

static kofn_status street_send(kofn_transport *t, kofn_peer peer,
                               const void *head, size_t head_bytes,
                               const void *body, size_t body_bytes, bool urgent,
                               void (*done)(void *ud), void *ud)
{
    street *s = (street *)t;
    kofn_note note;

    (void)urgent;
    MUST(peer < PEERS && kf_note_whole(head, body, body_bytes));
    if (s->host) {
        MUST(kf_note_read(&note, head, head_bytes, s->host->job) == KOFN_OK);
        s->seen = note.at;
        s->epoch = note.epoch;
    }
    if (s->d.left && s->d.data[0] % 16 == 9)
        return KOFN_AGAIN; /* the way is full */
    if (done)
        done(ud);
    return s->there[peer] ? KOFN_OK : KOFN_TRANSPORT;
}

static kofn_mark some_mark(street *s)
{
    kofn_mark m = next(&s->d, 2) ? s->host->at : s->seen;

    if (next(&s->d, 4) == 0)
        m.t += 1 + next(&s->d, 3);
    if (next(&s->d, 16) == 0)
        m.t = size_of(&s->d, m.t);
    if (next(&s->d, 16) == 0)
        m.line = next(&s->d, 3);
    return m;
}

static kofn_note some_note(street *s)
{
    draw *d = &s->d;
    kofn_note n = {.type = (kofn_note_type)(1 + next(d, KOFN_NOTE_BYE)),
                   .from = 2 + next(d, PEERS),
                   .epoch = s->epoch,
                   .at = some_mark(s),
                   .coded = size_of(d, 7),
                   .decoded = size_of(d, 7),
                   .final = next(d, 16) == 0,
                   .idle = next(d, 2),
                   .group = (uint32_t)size_of(d, next(d, 4)),
                   .seat = next(d, 4) ? next(d, 5) : KOFN_NO_SEAT};

    if (next(d, 8) == 0)
        n.from = size_of(d, n.from);
    if (next(d, 8) == 0)
        n.epoch =
            (kofn_epoch){size_of(d, n.epoch.number + 1), 2 + next(d, PEERS)};
    if (next(d, 32) == 0)
        n.seat = (uint32_t)size_of(d, 3);
    if (n.type == KOFN_NOTE_BYE && next(d, 2))
        n.type = KOFN_NOTE_PRINT;
    return n;
}

/* As many bytes as such a note should have, or others. */
static size_t length_of(street *s, const kofn_note *n)
{
    size_t lo, strips, bytes = 0;

    if (n->type == KOFN_NOTE_VECTOR)
        bytes = (ROWS + KOFN_SCALARS) * sizeof(double);
    if (n->type == KOFN_NOTE_PIECE && n->group < s->host->on->groups) {
        strips = kf_host_strips(s->host->on, n->group, &lo);
        bytes = kf_host_piece_bytes(s->host->on, strips, n->seat);
    }
    if (n->type == KOFN_NOTE_EPOCH)
        bytes = KF_NOTE_MEMBER * next(&s->d, 6);
    if (n->type == KOFN_NOTE_DECIDE)
        bytes = 4 * next(&s->d, 12);
    return next(&s->d, 16) ? bytes : next(&s->d, 255);
}

/* Members and lists are small numbers, most often; so are vectors. */
static void fill(street *s, const kofn_note *n, uint8_t *body, size_t bytes)
{
    memset(body, 0, bytes);
    if (n->type == KOFN_NOTE_EPOCH)
        for (size_t i = 0; i + KF_NOTE_MEMBER <= bytes; i += KF_NOTE_MEMBER) {
            body[i] = (uint8_t)(1 + next(&s->d, PEERS + 1));
            body[i + 8] = (uint8_t)next(&s->d, 5);
            body[i + 12] = (uint8_t)next(&s->d, 2);
        }
    else if (n->type == KOFN_NOTE_DECIDE)
        for (size_t i = 0; i + 4 <= bytes; i += 4)
            body[i] = (uint8_t)next(&s->d, 5);
    for (unsigned i = next(&s->d, 4); i > 2 && bytes; i--)
        body[next(&s->d, 256) % bytes] = (uint8_t)next(&s->d, 256);
}

static void deliver(street *s, kofn_packet *k, kofn_peer peer)
{
    kofn_note n = some_note(s);
    size_t bytes = length_of(s, &n);
    uint8_t body[BODY_MOST];

    fill(s, &n, body, bytes);
    *k = (kofn_packet){.what = KOFN_PACKET,
                       .peer = peer,
                       .head_bytes = KF_NOTE_HEAD,
                       .body_bytes = bytes};
    kf_note_write(k->head, &n, s->host->job, body, bytes);
    k->head[next(&s->d, KF_NOTE_HEAD)] ^= next(&s->d, 100) == 1;
    if (bytes == 0)
        return;
    k->own = malloc(bytes); /* as long as it is, for the sanitizer */
    MUST(k->own);
    memcpy(k->own, body, bytes);
    k->body = next(&s->d, 2) ? k->own : NULL;
    s->out++;
}

static kofn_status street_wait(kofn_transport *t, kofn_time atmost,
                               kofn_packet *k)
{
    street *s = (street *)t;
    kofn_peer peer = next(&s->d, PEERS);

    s->now += atmost < KOFN_SECOND / 10 ? atmost : KOFN_SECOND / 10;
    if (!s->d.left)
        return KOFN_AGAIN;
    if (next(&s->d, 4) == 3)
        return KOFN_AGAIN;
    if (s->next < PEERS && peer >= s->next) {
        *k = (kofn_packet){.what = KOFN_CAME, .peer = s->next};
        s->there[s->next++] = true;
        return KOFN_OK;
    }
    if (!s->there[peer])
        return KOFN_AGAIN;
    if (next(&s->d, 50) == 1) {
        *k = (kofn_packet){.what = KOFN_WENT, .peer = peer};
        s->there[peer] = false;
        return KOFN_OK;
    }
    deliver(s, k, peer);
    return KOFN_OK;
}

static kofn_status street_fetch(kofn_transport *t, kofn_packet *k, void *into)
{
    (void)t;
    memcpy(into, k->own, k->body_bytes);
    return KOFN_OK;
}

static void street_release(kofn_transport *t, void *own)
{
    MUST(((street *)t)->out-- > 0);
    free(own);
}

static void street_forget(kofn_transport *t, kofn_peer peer)
{
    MUST(peer < PEERS);
    ((street *)t)->there[peer] = false;
}

static kofn_status halve(void *ud, uint64_t t, kofn_matrix *product,
                         kofn_matrix *v, double scalar[KOFN_SCALARS],
                         bool *final)
{
    double *to = v->data;
    const double *from = product->data;

    (void)ud;
    for (size_t i = 0; i < v->rows; i++)
        to[i] = from[i] / 2;
    scalar[0] = (double)t;
    *final = t >= 6;
    return KOFN_OK;
}

/* Some have two stages, and some believe everybody. */
static void run(street *s, const kofn_plan *plan)
{
    static double numbers_of_A[ROWS * ROWS], start[ROWS];
    const kofn_matrix A = {numbers_of_A, ROWS, ROWS, ROWS, KOFN_F64};
    const kofn_matrix v = {start, ROWS, 1, 1, KOFN_F64};
    kofn_peer_options o = {.size = sizeof o,
                           .nodes = 3,
                           .incarnation = 1,
                           .give_up = 60 * KOFN_SECOND};
    const kofn_stage stage[] = {{.plan = plan}, {.plan = plan}};
    const kofn_operand operand = {.dense = &A};
    /* bits of a number that is drawn for something else, too */
    unsigned more = s->d.left ? s->d.data[0] / 2 : 0;
    const kofn_program program = {.stage = stage,
                                  .stages = more / 4 % 4 == 3 ? 2 : 1,
                                  .operand = &operand,
                                  .operands = 1,
                                  .output = halve,
                                  .digest = 9};
    kofn_status st = KOFN_OK;

    o.confirm = more % 4 == 3 ? 1 : 0;
    o.seat = next(&s->d, 2) ? 0 : KOFN_NO_SEAT;
    o.decoding =
        next(&s->d, 2) ? KOFN_DECODE_REPLICATED : KOFN_DECODE_DISTRIBUTED;
    for (size_t i = 0; i < ROWS * ROWS; i++)
        numbers_of_A[i] = (double)(i % 7) - 3;
    start[0] = 1;
    MUST(kf_host_new(&s->host, &s->base, &program, &o, &v, street_clock, s) ==
         KOFN_OK);
    while (s->d.left && !st) {
        bool worked;

        st = kf_host_pass(s->host, &worked);
    }
    MUST(!st || *kofn_errmsg());
    kf_host_free(s->host);
    MUST(s->out == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static kofn_plan *plan;
    kofn_problem pb = {KOFN_MATVEC, ROWS, ROWS, 1, KOFN_F64, false};
    street s = {.base = {.name = "fuzz",
                         .send = street_send,
                         .wait = street_wait,
                         .fetch = street_fetch,
                         .release = street_release,
                         .forget = street_forget},
                .d = {data, size}};
    size_t before;

    watch_memory();
    if (!plan)
        MUST(kofn_plan_new(&plan, &pb, "mds:k=2,basis=gauss_sys", 4, 1) ==
             KOFN_OK);
    before = held;
    most = held + ((size_t)16 << 20);
    run(&s, plan);
    MUST(held == before);
    most = SIZE_MAX;
    return 0;
}
