/* update_away_test.c -- several resident operands that change, on workers
 * behind packets. Connections break and damage packets. Workers join, fall
 * behind, lack memory, or get impossible orders. */
#include "base/lent.h"
#include "fleet.h"
#include "operands_rig.h"
#include "scripted_coordinator.h"
#include "sgd.h"

/* ---- the same changes on one machine ------------------------------------- */

/* The operands with their present values (`is`), and their velocities. */
typedef struct away {
    held h;
    fleet f;
    double *M[OPERANDS];
} away;

static const sgd ways[] = {
    {0.05, 0, 0, false},
    {0.05, 0.1, 0, false},
    {0.05, 0.1, 0.9, false},
    {0.05, 0.1, 0.9, true},
};
#define WAYS (sizeof ways / sizeof *ways)

static double get(const kofn_matrix *a, size_t i)
{
    return a->dtype == KOFN_F64 ? ((double *)a->data)[i]
                                : ((float *)a->data)[i];
}

static void put(const kofn_matrix *a, size_t i, double x)
{
    if (a->dtype == KOFN_F64)
        ((double *)a->data)[i] = x;
    else
        ((float *)a->data)[i] = (float)x;
}

/* Applies the change as the header defines it. */
static void plain_step(away *a, size_t o, const sgd *c, const kofn_matrix *U,
                       const kofn_matrix *V)
{
    size_t m = U->cols, n = V->cols;

    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            double A = get(&a->h.is[o], i * n + j), *M = &a->M[o][i * n + j];
            double G = c->decay * A;

            for (size_t k = 0; k < U->rows; k++)
                G += get(U, k * m + i) * get(V, k * n + j);
            *M = c->momentum * *M + G;
            put(&a->h.is[o], i * n + j,
                A - c->step * (c->nesterov ? G + c->momentum * *M : *M));
        }
}

static void change(away *a, size_t o, const sgd *c, uint64_t seed)
{
    size_t r = 1 + seed % 7;
    kofn_matrix U = random_matrix(r, a->h.A[o].rows, a->h.dtype, 1000 + seed);
    kofn_matrix V = random_matrix(r, a->h.A[o].cols, a->h.dtype, 2000 + seed);

    assert_ok(sgd_update(a->h.job, o, c, &U, &V));
    plain_step(a, o, c, &U, &V);
    held_spoil(&U); /* they are the caller's again */
    held_spoil(&V);
    kf_free(U.data);
    kf_free(V.data);
}

static void check_fetched(away *a, size_t o, double most)
{
    const kofn_matrix *is = &a->h.is[o];
    kofn_matrix A = random_matrix(is->rows, is->cols, is->dtype, 1);
    double off = 0;

    held_spoil(&A);
    assert_ok(kofn_fetch(a->h.job, o, 0, &A, NULL));
    for (size_t i = 0; i < A.rows * A.cols; i++)
        off = fmax(off, fabs(get(&A, i) - get(is, i)));
    kf_free(A.data);
    if (!(off <= most * rig_norm(is)))
        fail_msg("%s: operand %zu is %g off", a->h.spec, o, off);
}

/* Makes a step of training: all products, and then a change of all operands. */
static void train(away *a, unsigned step, size_t way, double most)
{
    assert_ok(kofn_step(a->h.job, step));
    for (size_t o = 0; o < OPERANDS; o++) {
        held_right(&a->h, o, most);
        held_left(&a->h, o, most);
    }
    for (size_t o = 0; o < OPERANDS; o++)
        change(a, o, &ways[way], 10 * step + o);
}

static void away_up(away *a, held h, const loop_faults *faults,
                    const kofn_options *opt, const kofn_away_options *how)
{
    a->h = h;
    fleet_init(&a->f, faults);
    a->f.serve.staged = true;
    a->h.port = fleet_port(&a->f, h.workers, how);
    held_up(&a->h, opt);
    for (size_t o = 0; o < OPERANDS; o++)
        a->M[o] = numbers(a->h.A[o].rows * a->h.A[o].cols, 8);
}

static void away_down(away *a)
{
    for (size_t o = 0; o < OPERANDS; o++)
        kf_free(a->M[o]);
    held_down(&a->h);
    fleet_down(&a->f);
}

static kofn_options patient(void)
{
    kofn_options o = KOFN_OPTIONS_INIT;

    o.below = KOFN_BELOW_PAUSE;
    o.patience = 60 * KOFN_SECOND;
    o.late = -1;
    return o;
}

/* ---- steps --------------------------------------------------------------- */

static const char *const specs[] = {
    "elastic:k=3",
    "elastic:k=3,cut=columns",
    "gpd:m=2,n=2,p=1",
    "polydot:m=2,n=1,p=1",
    "matdot:n=2",
    "polynomial:m=2,p=1,basis=circle",
    "gpd:m=2,n=2,p=1,basis=monomial",
};

static void some_steps(held h, size_t way, const loop_faults *faults,
                       double most)
{
    kofn_options opt = patient();
    static away a;

    away_up(&a, h, faults, &opt, NULL);
    for (unsigned step = 1; step <= 4; step++)
        train(&a, step, way, most);
    for (size_t o = 0; o < OPERANDS; o++)
        check_fetched(&a, o, most);
    away_down(&a);
}

static void every_scheme(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof specs / sizeof *specs; s++)
        some_steps((held){.spec = specs[s], .workers = 8}, s % WAYS, NULL,
                   1e-10);
    for (size_t s = 0; s < 3; s++)
        some_steps((held){.spec = specs[s], .workers = 8, .dtype = KOFN_F32},
                   3 - s, NULL, 1e-4);
}

/* The body of an update has the factors and 32 bytes more. */
static void bytes_sent(void **state)
{
    kofn_options opt = patient();
    static away a;
    size_t other, rows = 19, cols = 29; /* of a block: 37 rows are cut in two */

    (void)state;
    away_up(&a, (held){.spec = "polynomial:m=2,p=1,basis=circle", .workers = 4},
            NULL, &opt, NULL);
    for (size_t o = 0; o < OPERANDS; o++)
        held_right(&a.h, o, 1e-10);
    other = a.f.net.sent[KF_WIRE_STORE];
    assert_int_equal(other, 4); /* blocks of all operands come together */
    change(&a, 0, &ways[0], 6); /* of seven examples */
    held_right(&a.h, 0, 1e-10);
    check_fetched(&a, 0, 1e-10);
    assert_int_equal(a.f.net.sent[KF_WIRE_UPDATE], 4);
    assert_int_equal(a.f.net.bytes[KF_WIRE_UPDATE],
                     4 * (KF_WIRE_CHANGE + 7 * (rows + cols) * 8));
    assert_int_equal(a.f.net.sent[KF_WIRE_STORE], other);
    assert_int_equal(a.f.net.sent[KF_WIRE_STRIPS], 0);
    away_down(&a);
}

/* The cases: bodies that are fetched, narrow pipes, connections that break and
 * are restored, and packets that are damaged, cut short or repeated. A worker
 * that misses an update, or has it twice, gets blocks that are made from those
 * of others. */
static void bad_connections(void **state)
{
    static const loop_faults faults[] = {
        {.fetching = true},
        {.room = 4096},
        {.room = 1024, .fetching = true},
        {.twice = 0.01, .seed = 1},
        {.damage = 0.002, .seed = 2},
        {.truncate = 0.002, .cut = 0.002, .seed = 3}};

    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        some_steps((held){.spec = i % 2 ? "gpd:m=2,n=2,p=1" : "elastic:k=3",
                          .workers = 12},
                   i % WAYS, &faults[i], 1e-8);
}

/* ---- workers that join later --------------------------------------------- */

#define STEPS 8

/* In every step one of the first workers leaves, and another joins. In the end
 * no worker is left that was given the placed blocks. */
static void replace_workers(const char *spec, size_t way, double fraction)
{
    kofn_fault_event come[2 * STEPS];
    kofn_options opt = patient();
    kofn_away_options how = KOFN_AWAY_OPTIONS_INIT;
    static away a;

    for (unsigned s = 0; s < STEPS; s++) {
        come[2 * s] =
            (kofn_fault_event){2 + s, fraction, KOFN_FAULT_EVENT_LEAVE, s, 0};
        come[2 * s + 1] =
            (kofn_fault_event){2 + s, fraction, KOFN_FAULT_EVENT_JOIN, 0, 0};
    }
    opt.events = come;
    opt.event_count = 2 * STEPS;
    how.start = fleet_start;
    how.kill = fleet_kill;
    how.ud = &a.f;
    away_up(&a, (held){.spec = spec, .workers = 8}, NULL, &opt, &how);
    for (unsigned step = 1; step <= STEPS + 3; step++)
        train(&a, step, way, 1e-8);
    for (size_t o = 0; o < OPERANDS; o++)
        check_fetched(&a, o, 1e-8);
    assert_true(a.f.net.sent[KF_WIRE_STRIPS] > 0);
    assert_true(a.f.net.sent[KF_WIRE_WHOLE] > 0);
    away_down(&a);
}

static void joiners(void **state)
{
    (void)state;
    for (size_t s = 0; s < 4; s++)
        replace_workers(specs[s], s % WAYS, s % 2 ? 0.5 : 0);
}

/* ---- workers that fall behind -------------------------------------------- */

/* A peer that reports that it stored its block, and nothing else. */
typedef struct slow_peer {
    kofn_transport base;
    int said;
    uint64_t job, block;
    size_t updates, stores, whole, acknowledged;
    bool acknowledges;
} slow_peer;

static kofn_status slow_peer_send(kofn_transport *t, kofn_peer peer,
                                  const void *head, size_t head_bytes,
                                  const kofn_lent *body, bool urgent)
{
    slow_peer *s = (slow_peer *)t;
    kf_head h;

    (void)peer, (void)body, (void)urgent;
    assert_ok(kf_head_read(&h, head, head_bytes));
    s->job = h.job;
    s->updates += h.type == KF_WIRE_UPDATE;
    s->whole += h.type == KF_WIRE_WHOLE;
    if (h.type == KF_WIRE_STORE) {
        s->stores++;
        s->block = h.block;
    }
    kf_give_back(body);
    return KOFN_OK;
}

static kofn_status slow_peer_wait(kofn_transport *t, kofn_time atmost,
                                  kofn_packet *k)
{
    slow_peer *s = (slow_peer *)t;
    kf_head h = {.job = s->job, .block = s->block};

    (void)atmost;
    *k = (kofn_packet){.what = KOFN_CAME, .peer = 0};
    if (s->said == 0) {
        s->said++;
        return KOFN_OK;
    }
    k->what = KOFN_PACKET;
    k->head_bytes = KF_HEAD;
    if (s->said == 1)
        h.type = KF_WIRE_HELLO;
    else if (s->acknowledges && s->acknowledged < s->updates) {
        h.type = KF_WIRE_CHANGED;
        h.updates = ++s->acknowledged;
    } else
        return KOFN_AGAIN;
    s->said = 2;
    kf_head_write(k->head, &h);
    return KOFN_OK;
}

static void slow_peer_forget(kofn_transport *t, kofn_peer peer)
{
    (void)t, (void)peer;
}

static void slow_peer_close(kofn_transport *t, kofn_time linger)
{
    (void)t, (void)linger;
}

static void hear(kofn_port *port, kf_msg_type type, uint32_t worker)
{
    kf_msg m;

    assert_ok(port->wait(port, KOFN_NEVER, KOFN_SECOND, &m));
    assert_int_equal(m.type, type);
    assert_int_equal(m.worker, worker);
}

static kf_block *some_block(void)
{
    kf_buffer *p;
    kf_block *b;

    assert_ok(kf_buffer_new(&p, 4, 6, KOFN_F64));
    assert_ok(kf_block_around(&b, p, 1, 4, 6));
    kf_buffer_drop(p);
    b->empty = b->changes = true;
    return b;
}

static void update(kofn_port *port, uint32_t worker, size_t rows)
{
    const kofn_change c = KOFN_CHANGE_INIT;
    kf_msg m = {.type = KF_MSG_UPDATE, .worker = worker};

    assert_ok(kf_states_change_new(&m.change, &c));
    assert_ok(kf_buffer_new(&m.in, rows, 4, KOFN_F64));
    assert_ok(kf_buffer_new(&m.with, rows, 6, KOFN_F64));
    memset(m.in->m.data, 0, kf_buffer_bytes(m.in));
    memset(m.with->m.data, 0, kf_buffer_bytes(m.with));
    assert_ok(port->send(port, &m));
}

/* Sends updates of `rows` examples until the peer, which answers none of them,
 * counts as another worker without a block. Returns the number of updates,
 * `most` at most. */
static size_t updates_until_lost(slow_peer *s, size_t rows, size_t most)
{
    kofn_away_options opt = KOFN_AWAY_OPTIONS_INIT;
    kofn_port *port;
    kf_msg m;
    size_t n = 0;

    s->base = (kofn_transport){.size = sizeof(kofn_transport),
                               .name = "test",
                               .send = slow_peer_send,
                               .wait = slow_peer_wait,
                               .forget = slow_peer_forget,
                               .close = slow_peer_close};
    assert_ok(kofn_port_away(&port, &s->base, &opt));
    hear(port, KF_MSG_HELLO, 0);
    m = (kf_msg){.type = KF_MSG_STORE, .worker = 0, .block = some_block()};
    assert_ok(port->send(port, &m));
    assert_int_equal(s->stores, 1);
    while (n < most && s->updates == n) {
        update(port, 0, rows);
        n++;
        if (s->acknowledges)
            assert_int_equal(port->wait(port, 0, 0, &m), KOFN_AGAIN);
    }
    if (s->updates < n) {
        hear(port, KF_MSG_BYE, 0);
        hear(port, KF_MSG_HELLO, 1);
        update(port, 0, rows); /* there is no such worker */
        assert_int_equal(port->wait(port, 0, 0, &m), KOFN_AGAIN);
    }
    port->close(port);
    return s->updates;
}

static void falling_behind(void **state)
{
    slow_peer s = {.said = 0};

    (void)state;
    /* a few are always allowed, however long */
    assert_int_equal(updates_until_lost(&s, 100000, 100), 4);
    /* short ones until they take 4 MiB: each has 10 numbers for an example */
    s = (slow_peer){.said = 0};
    assert_in_range(updates_until_lost(&s, 1000, 1000), 50, 54);
    s = (slow_peer){.said = 0};
    assert_int_equal(updates_until_lost(&s, 1, 3000), 1024);
    /* a worker that completes them may have any number */
    s = (slow_peer){.acknowledges = true};
    assert_int_equal(updates_until_lost(&s, 100000, 40), 40);
}

/* ---- blocks that are wrong ----------------------------------------------- */

/* A bit of a stored block flips, which the worker does not notice. The block
 * is replaced even if it has not changed since it was placed. The worker has
 * that block specification already. */
static void flipped_bit(void **state)
{
    static const kofn_fault_event flip = {2, 0, KOFN_FAULT_EVENT_FLIP, 2, 0};
    kofn_options opt = patient();
    static away a;
    kofn_report r = KOFN_REPORT_INIT;

    (void)state;
    opt.errors = KOFN_ERRORS_PROBABILISTIC;
    opt.events = &flip;
    opt.event_count = 1;
    away_up(&a, (held){.spec = "gpd:m=2,n=1,p=1", .workers = 8}, NULL, &opt,
            NULL);
    for (unsigned step = 1; step <= 2; step++) {
        assert_ok(kofn_step(a.h.job, step));
        held_right(&a.h, 0, 1e-10);
        assert_ok(kofn_scrub(a.h.job, &r));
        assert_int_equal(r.corrupt > 0, step == 2);
    }
    assert_ok(kofn_scrub(a.h.job, &r));
    assert_int_equal(r.corrupt, 0);
    assert_int_equal(r.states[2], KOFN_WORKER_LIVE);
    for (unsigned step = 3; step <= 5; step++)
        train(&a, step, 2, 1e-8);
    kofn_job_totals(a.h.job, &r);
    assert_int_equal(r.rebuilt, 1);
    assert_int_equal(r.again, 1);
    away_down(&a);
}

/* ---- orders that are impossible ------------------------------------------ */

/* Seat 2 of some operand, for a worker with little memory. */
typedef struct order {
    scripted o;
    rig r;
    kf_resident resident;
    kf_code *code;
    kf_block *block;
} order;

static void prepare(order *p)
{
    static const rig_kind k = {
        .spec = "mds:k=2", .workers = 3, .m = 20, .n = 6, .p = 1};
    const size_t seat = 2;

    *p = (order){.code = NULL};
    rig_inputs(&p->r, &k);
    assert_ok(kf_resident_dense(&p->resident, p->r.plan, &p->r.A));
    assert_ok(kf_resident_away(&p->resident));
    assert_ok(kf_code_new(&p->code, p->r.plan));
    assert_ok(kf_data_encode(&p->resident, p->code, &seat, 1, &p->block));
    script_offer(&p->o, p->block);
}

static void clean_up(order *p)
{
    kf_block_drop(p->block);
    kf_code_free(p->code);
    kf_resident_free(&p->resident);
    rig_down(&p->r);
}

/* Orders a change of type `type`. An update has three examples for a block of
 * four components of three rows and six columns. Strips are two of each
 * component. */
static void give_order(order *p, kf_wire type)
{
    p->o.work = (kf_head){.type = type,
                          .row = 7,
                          .rows = 3,
                          .cols = 12,
                          .out_cols = 6,
                          .updates = 1};
    p->o.bytes = KF_WIRE_CHANGE + 3 * 18 * 8;
    if (type == KF_WIRE_STRIPS) {
        p->o.work.lo = 1;
        p->o.work.hi = 3;
        p->o.work.rows = 8;
        p->o.work.cols = 6;
        p->o.work.updates = 0;
        p->o.bytes = 8 * 6 * 8;
    }
}

static void valid_orders(void **state)
{
    static order p;

    (void)state;
    prepare(&p);
    give_order(&p, KF_WIRE_UPDATE);
    assert_ok(script_serve(&p.o, 0));
    assert_int_equal(p.o.changed, 1);
    assert_false(p.o.forgotten);
    give_order(&p, KF_WIRE_STRIPS);
    assert_ok(script_serve(&p.o, 0));
    assert_false(p.o.forgotten);
    clean_up(&p);
}

/* A change is not applied if it does not belong to the stored block, if its
 * length differs from the head, or if it is empty. The stored block is then
 * void. */
static void wrong_heads(void **state)
{
    const uint64_t odd[] = {0, 4, UINT64_C(1) << 32, UINT64_C(1) << 61,
                            UINT64_MAX};
    static order p;

    (void)state;
    prepare(&p);
    for (size_t t = 0; t < 2; t++)
        for (size_t field = 0; field < 8; field++)
            for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
                bool strips = t == 1;
                uint64_t *const at[] = {&p.o.work.rows,    &p.o.work.cols,
                                        &p.o.work.updates, &p.o.work.out_cols,
                                        &p.o.work.lo,      &p.o.work.hi};

                if (strips ? field == 3 || (field == 2 && !odd[i])
                           : field == 4 || field == 5)
                    continue; /* the value is not used, or is right */
                give_order(&p, strips ? KF_WIRE_STRIPS : KF_WIRE_UPDATE);
                if (field < 6)
                    *at[field] = odd[i];
                else if (field == 6)
                    p.o.work.operand = 1 + (uint32_t)i;
                else
                    p.o.work.dtype = KOFN_F32;
                script_serve(&p.o, (size_t)1 << 20);
                if (p.o.changed || !p.o.forgotten)
                    fail_msg("type %zu, field %zu, value %zu was done", t,
                             field, i);
            }
    clean_up(&p);
}

/* The block takes 576 bytes, and has a block specification. An update takes
 * 600 more, and each optimizer state 576. */
static void worker_memory(void **state)
{
    static order p;
    size_t least = 0;
    kofn_change c = KOFN_CHANGE_INIT;

    (void)state;
    prepare(&p);
    for (c.states = 0; c.states <= KOFN_CHANGE_STATES; c.states++) {
        size_t memory = 576, had = least;

        for (;; memory += 16) {
            give_order(&p, KF_WIRE_UPDATE);
            p.o.change = &c;
            script_serve(&p.o, memory);
            assert_int_equal(p.o.results + p.o.failures, 0);
            assert_true(memory < 10000);
            if (p.o.changed)
                break;
        }
        least = memory;
        if (c.states > 0)
            assert_in_range(least - had, 576 - 16, 576 + 16);
    }
    clean_up(&p);
}

TEST_FILE(update_away_test)
{
    const struct CMUnitTest tests[] = {
        TEST(every_scheme,
             "update: remote operands are right after changes (each code)"),
        TEST(bytes_sent,
             "update: a change sends the factors once to each worker"),
        TEST(bad_connections,
             "update: operands are right over bad connections"),
        TEST(joiners,
             "update, packets: blocks of joiners are right after all left"),
        TEST(falling_behind,
             "update: a worker that falls behind is admitted anew"),
        TEST(flipped_bit,
             "update: a block with a flipped bit is replaced, as placed too"),
        TEST(valid_orders, "update: valid updates and strips are applied"),
        TEST(wrong_heads,
             "update: updates and strips with wrong heads are not applied"),
        TEST(worker_memory,
             "update: optimizer states count to the worker's memory"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
