/* unresponsive_test.c -- workers that are connected and never answer, or never
 * have a block, because one of their threads is stuck. They are evicted and
 * named, on threads and by packets, and nothing of their tasks is kept. */
#include "fleet.h"

#include "base/clock.h"
#include "ports/away.h"
#include "wire/wire.h"

#define N 4
#define AT_MOST (60 * KOFN_SECOND) /* far beyond the time of a test */

/* The first worker that computes part 2 is stuck there until the trap is
 * opened. */
typedef struct trap {
    rig r;
    atomic_flag caught;
    atomic_bool sprung, open;
} trap;

static kofn_status sticky(void *ctx, size_t part, size_t parts,
                          const kofn_matrix *in, kofn_matrix *out)
{
    trap *t = ctx;

    if (part == 2 && !atomic_flag_test_and_set(&t->caught)) {
        atomic_store(&t->sprung, true);
        for (int i = 0; i < 100000 && !atomic_load(&t->open); i++)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return rig_part(&t->r, part, parts, in, out);
}

typedef struct stuck {
    trap t;
    fleet f;
    bool packets;
    port *p;
    size_t told; /* number of evictions in the news */
} stuck;

static void hear(void *ud, const char *words)
{
    stuck *s = ud;

    s->told += strstr(words, "answers nothing") != NULL;
}

static void stuck_up(stuck *s, const char *spec, bool packets, kofn_time lease)
{
    rig_kind k = {
        .spec = spec, .workers = N, .m = 40, .n = 9, .p = 1, .op = KOFN_SUM};
    kofn_away_options away = KOFN_AWAY_OPTIONS_INIT;
    kofn_options o = KOFN_OPTIONS_INIT;
    kofn_port *base;

    *s = (stuck){.packets = packets, .t.caught = ATOMIC_FLAG_INIT};
    o.lease = lease;
    away.silence = KOFN_SECOND / 20;
    away.news = hear;
    away.ud = s;
    rig_inputs(&s->t.r, &k);
    if (packets) {
        fleet_init(&s->f, NULL);
        s->f.serve.f = sticky;
        s->f.serve.ctx = &s->t;
        base = fleet_port(&s->f, N, &away);
        s->p = (port *)base;
    } else {
        assert_ok(kofn_port_threads(&base, N, NULL));
    }
    assert_ok(kofn_open(&s->t.r.job, s->t.r.plan, base, &o));
    assert_ok(kofn_place_parts(s->t.r.job, sticky, &s->t));
}

static void stuck_down(stuck *s)
{
    atomic_store(&s->t.open, true);
    kofn_close(s->t.r.job);
    s->t.r.job = NULL;
    if (s->packets)
        fleet_down(&s->f);
    rig_down(&s->t.r);
}

static kofn_status next_round(stuck *s, kofn_report *rep)
{
    kofn_status st = kofn_put(s->t.r.job, &s->t.r.x, &s->t.r.y, NULL);

    return st ? st : kofn_take(s->t.r.job, 0, AT_MOST, rep);
}

static void named(void **state)
{
    (void)state;
    for (int packets = 0; packets < 2; packets++) {
        kofn_report rep = KOFN_REPORT_INIT;
        stuck s;

        stuck_up(&s, "uncoded", packets, KOFN_SECOND / 5);
        assert_int_equal(next_round(&s, &rep), KOFN_TOOFEW);
        assert_true(atomic_load(&s.t.sprung));
        assert_non_null(strstr(kofn_errmsg(), "worker 2 did not answer"));
        assert_int_equal(rep.states[2], KOFN_WORKER_UNRESPONSIVE);
        assert_int_equal(s.told, packets);
        stuck_down(&s);
    }
}

/* Returns the number of results that have memory. */
static size_t rooms(const worker *w)
{
    size_t n = 0;

    for (size_t i = 0; i < w->tasks.count; i++)
        n += w->tasks.pending[i].result != NULL;
    return n;
}

/* Cancelled tasks are not kept. A worker that leaves many unanswered is
 * evicted too. */
static void rounds_continue(void **state)
{
    (void)state;
    for (int packets = 0; packets < 2; packets++) {
        size_t named = 0, rounds = 0, kept = 0;
        kofn_time end;
        stuck s;

        stuck_up(&s, "gc:d=2", packets, KOFN_SECOND / 5);
        end = kf_clock() + AT_MOST;
        while (named == 0 && kf_clock() < end) {
            kofn_report rep = KOFN_REPORT_INIT;

            assert_ok(next_round(&s, &rep));
            assert_at_most(rig_error(&s.t.r), 1e-10);
            rounds++;
            for (size_t i = 0; i < rep.workers; i++)
                named += rep.states[i] == KOFN_WORKER_UNRESPONSIVE;
            for (size_t i = 0; packets && i < N; i++)
                kept = kf_max(kept, rooms(s.p->worker[i]));
        }
        assert_true(atomic_load(&s.t.sprung));
        assert_int_equal(named, 1);
        assert_int_equal(s.told, packets);
        assert_true(rounds >= 64);
        assert_int_equal(kept, 0); /* between rounds no answer is due */
        assert_ok(next_round(&s, NULL));
        stuck_down(&s);
    }
}

/* The limit holds for the cancelled tasks of a worker that is not evicted. */
static void bounded_memory(void **state)
{
    size_t most = 0;
    stuck s;

    (void)state;
    stuck_up(&s, "gc:d=2", true, -1);
    s.p->opt.silence =
        100 * KOFN_SECOND; /* longer than the test, so it is not evicted */
    for (size_t round = 0; round < 1100; round++) {
        assert_ok(next_round(&s, NULL));
        for (size_t i = 0; i < N; i++)
            most = kf_max(most, s.p->worker[i]->tasks.count);
    }
    assert_true(atomic_load(&s.t.sprung));
    assert_in_range(most, 1000, 1025);
    stuck_down(&s);
}

/* ---- workers that never store their blocks ------------------------------- */

typedef struct silence {
    const char *spec;
    size_t honest, unresponsive;
    bool asks; /* it asks for one slice of its block first */
    kofn_below below;
} silence;

typedef struct unresponsive {
    kofn_transport *t;
    bool asked;
} unresponsive;

static void unresponsive_say(unresponsive *m, kofn_peer to, const kf_head *h)
{
    unsigned char head[KF_HEAD];

    kf_head_write(head, h);
    m->t->send(m->t, to, head, sizeof head, NULL, false);
}

/* Sends hello, and perhaps one request, and nothing else. */
static void unresponsive_turn(unresponsive *m, bool asks)
{
    kofn_packet p;
    kf_head h;

    while (m->t->wait(m->t, 0, &p) == KOFN_OK) {
        if (p.what == KOFN_CAME)
            unresponsive_say(m, p.peer, &(kf_head){.type = KF_WIRE_HELLO});
        if (p.what != KOFN_PACKET)
            continue;
        assert_ok(kf_head_read(&h, p.head, p.head_bytes));
        if (h.type == KF_WIRE_STORE && asks && !m->asked) {
            m->asked = true;
            unresponsive_say(m, p.peer,
                             &(kf_head){.type = KF_WIRE_NEED,
                                        .job = h.job,
                                        .block = h.block,
                                        .hi = 1});
        }
        if (p.own)
            m->t->release(m->t, p.own);
    }
}

/* Plays the first round to its end. If the job pauses, one worker comes for
 * each that is evicted. */
static kofn_status silent_round(stuck *s, const silence *c, unresponsive *m,
                                kofn_report *rep)
{
    kofn_time end = kf_clock() + AT_MOST;
    kofn_status st = KOFN_AGAIN;
    size_t came = 0;

    assert_ok(kofn_put(s->t.r.job, &s->t.r.x, &s->t.r.y, NULL));
    while (st == KOFN_AGAIN && kf_clock() < end) {
        for (size_t i = 0; i < c->unresponsive; i++)
            unresponsive_turn(&m[i], c->asks);
        st = kofn_take(s->t.r.job, 0, KOFN_SECOND / 200, rep);
        for (; c->below == KOFN_BELOW_PAUSE && came < s->told; came++)
            fleet_add(&s->f);
    }
    return st;
}

static void try_silence(const silence *c)
{
    rig_kind k = {.spec = c->spec,
                  .workers = (unsigned)(c->honest + c->unresponsive),
                  .m = 60,
                  .n = 8,
                  .p = 1};
    kofn_away_options away = KOFN_AWAY_OPTIONS_INIT;
    kofn_options o = KOFN_OPTIONS_INIT;
    unresponsive m[3] = {{NULL, false}};
    stuck s = {.told = 0};
    kofn_report rep = KOFN_REPORT_INIT;
    kofn_port *base;
    kofn_status st;

    o.lease = KOFN_SECOND / 10;
    o.below = c->below;
    away.workers = k.workers;
    away.news = hear;
    away.ud = &s;
    rig_inputs(&s.t.r, &k);
    fleet_init(&s.f, NULL);
    assert_ok(kofn_port_away(&base, loop_hub(&s.f.net), &away));
    assert_ok(kofn_open(&s.t.r.job, s.t.r.plan, base, &o));
    assert_ok(rig_place(&s.t.r));
    for (size_t i = 0; i < c->honest; i++)
        fleet_add(&s.f);
    for (size_t i = 0; i < c->unresponsive; i++)
        m[i].t = loop_spoke(&s.f.net);
    st = silent_round(&s, c, m, &rep);
    if (c->below == KOFN_BELOW_PAUSE) {
        assert_int_equal(st, KOFN_OK);
        assert_at_most(rig_error(&s.t.r), 1e-12);
    } else {
        assert_int_equal(st, KOFN_TOOFEW);
        assert_non_null(strstr(kofn_errmsg(), "evicted"));
    }
    assert_true(s.told >= 1);
    for (size_t i = 0; i < c->unresponsive; i++) {
        assert_int_equal(m[i].asked, c->asks);
        m[i].t->close(m[i].t, 0);
    }
    rig_down(&s.t.r);
    fleet_down(&s.f);
}

/* The other workers do not suffice: the round fails, or waits for another
 * worker. */
static void no_block(void **state)
{
    static const silence cases[] = {
        {"uncoded", 2, 1, false, KOFN_BELOW_REFUSE},
        {"uncoded", 2, 1, true, KOFN_BELOW_REFUSE},
        {"mds:k=2", 1, 2, false, KOFN_BELOW_REFUSE},
        {"mds:k=2", 0, 3, true, KOFN_BELOW_REFUSE},
        {"uncoded", 2, 1, false, KOFN_BELOW_PAUSE},
        {"mds:k=3", 1, 2, true, KOFN_BELOW_PAUSE},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        try_silence(&cases[i]);
}

/* ---- how long a block may take ------------------------------------------- */

/* A port to workers that come at once. The test sets how long each has been at
 * its block, and whether it has stored it. */
typedef struct stage {
    kofn_port base;
    kf_msg queue[64];
    size_t first, count;
    kofn_time spent[N]; /* time at its block */
    bool stores[N];
    unsigned given_up; /* a bit for each worker */
} stage;

static kofn_status stage_send(kofn_port *base, kf_msg *m)
{
    stage *p = (stage *)base;

    if (m->type == KF_MSG_STORE && p->stores[m->worker])
        p->queue[p->count++] =
            (kf_msg){.type = KF_MSG_STORED, .worker = m->worker};
    if (m->type == KF_MSG_EVICT)
        p->given_up |= 1u << m->worker;
    kf_block_drop(m->block);
    kf_buffer_drop(m->in);
    kf_buffer_drop(m->result);
    return KOFN_OK;
}

static kofn_status stage_wait(kofn_port *base, kofn_time until,
                              kofn_time atmost, kf_msg *m)
{
    stage *p = (stage *)base;

    (void)until;
    (void)atmost;
    if (p->first == p->count)
        return KOFN_AGAIN;
    *m = p->queue[p->first++];
    return KOFN_OK;
}

static kofn_time stage_now(kofn_port *base)
{
    (void)base;
    return kf_clock();
}

static void stage_close(kofn_port *base)
{
    free(base);
}

static kofn_time stage_storing(kofn_port *base, uint32_t id)
{
    return ((stage *)base)->spent[id];
}

/* Returns the evicted workers, as bits, with a lease of one second. */
static unsigned given_up(const kofn_time spent[N], unsigned stores)
{
    const rig_kind k = {
        .spec = "mds:k=4", .workers = N, .m = 40, .n = 9, .p = 1};
    kofn_options o = KOFN_OPTIONS_INIT;
    stage *p = calloc(1, sizeof *p);
    unsigned who;
    rig r;

    p->base = (kofn_port){.name = "stage",
                          .workers = N,
                          .send = stage_send,
                          .wait = stage_wait,
                          .now = stage_now,
                          .close = stage_close,
                          .storing = stage_storing};
    for (uint32_t i = 0; i < N; i++) {
        p->queue[p->count++] = (kf_msg){.type = KF_MSG_HELLO, .worker = i};
        p->spent[i] = spent[i];
        p->stores[i] = stores >> i & 1;
    }
    o.lease = KOFN_SECOND;
    o.below = KOFN_BELOW_PAUSE;
    rig_inputs(&r, &k);
    assert_ok(kofn_open(&r.job, r.plan, &p->base, &o));
    assert_ok(rig_place(&r));
    assert_ok(kofn_put(r.job, &r.x, &r.y, NULL));
    assert_int_equal(kofn_take(r.job, 0, KOFN_SECOND / 20, NULL), KOFN_AGAIN);
    who = p->given_up;
    rig_down(&r);
    return who;
}

#define MS (KOFN_SECOND / 1000)

static void block_limit(void **state)
{
    (void)state;
    /* Until half of them have a block the limit is ten leases. */
    assert_int_equal(given_up((kofn_time[]){9000 * MS, 0, 0, 0}, 0), 0);
    assert_int_equal(given_up((kofn_time[]){11000 * MS, 0, 0, 0}, 0), 1);
    assert_int_equal(given_up((kofn_time[]){11000 * MS, 0, 0, 0}, 8), 1);
    /* Then it is one lease, and at least 50 times the time of the faster half.
     */
    assert_int_equal(given_up((kofn_time[]){900 * MS, 0, 1, 1}, 12), 0);
    assert_int_equal(given_up((kofn_time[]){1100 * MS, 0, 1, 1}, 12), 1);
    assert_int_equal(
        given_up((kofn_time[]){4000 * MS, 0, 100 * MS, 100 * MS}, 12), 0);
    assert_int_equal(
        given_up((kofn_time[]){6000 * MS, 5500 * MS, 100 * MS, 100 * MS}, 12),
        3);
}

/* A second for each MiB does not count, nor the time in which the worker waits
 * for the coordinator. */
static void excluded_time(void **state)
{
    const rig_kind k = {
        .spec = "uncoded", .workers = 1, .m = 1024, .n = 512, .p = 1};
    kofn_away_options away = KOFN_AWAY_OPTIONS_INIT;
    kofn_port *base;
    kofn_time at;
    worker *w;
    unresponsive m;
    fleet f;
    rig r;

    (void)state;
    away.workers = 1;
    rig_inputs(&r, &k);
    fleet_init(&f, NULL);
    assert_ok(kofn_port_away(&base, loop_hub(&f.net), &away));
    assert_ok(kofn_open(&r.job, r.plan, base, NULL));
    assert_ok(rig_place(&r));
    m = (unresponsive){.t = loop_spoke(&f.net)};
    assert_ok(kofn_put(r.job, &r.x, &r.y, NULL));
    while (((port *)base)->workers == 0 ||
           !((port *)base)->worker[0]->held.block) {
        unresponsive_turn(&m, false);
        assert_int_equal(kofn_take(r.job, 0, KOFN_SECOND / 1000, NULL),
                         KOFN_AGAIN);
    }
    w = ((port *)base)->worker[0];
    assert_int_equal(w->held.storing, -4 * KOFN_SECOND);
    at = kf_away_storing(base, 0);
    assert_true(at >= -4 * KOFN_SECOND);
    w->held.alone -= 10 * KOFN_SECOND;
    assert_true(kf_away_storing(base, 0) >= at + 10 * KOFN_SECOND);
    w->held.asked = 1; /* it has asked for a slice that was not sent */
    assert_int_equal(kf_away_storing(base, 0), w->held.storing);
    w->held.asked = 0;
    m.t->close(m.t, 0);
    rig_down(&r);
    fleet_down(&f);
}

static void no_workers(void **state)
{
    rig_kind k = {.spec = "uncoded", .workers = 2, .m = 60, .n = 8, .p = 1};
    kofn_options o = KOFN_OPTIONS_INIT;
    kofn_away_options away = KOFN_AWAY_OPTIONS_INIT;
    kofn_port *base;
    fleet f;
    rig r;

    (void)state;
    o.start_within = KOFN_SECOND / 5;
    away.workers = 2;
    rig_inputs(&r, &k);
    fleet_init(&f, NULL);
    assert_ok(kofn_port_away(&base, loop_hub(&f.net), &away));
    assert_ok(kofn_open(&r.job, r.plan, base, &o));
    assert_ok(rig_place(&r));
    assert_int_equal(rig_round(&r, NULL), KOFN_LATE);
    rig_down(&r);
    fleet_down(&f);
}

TEST_FILE(unresponsive_test)
{
    const struct CMUnitTest tests[] = {
        TEST(
            named,
            "unresponsive: a round that needs a stuck worker fails, naming it"),
        TEST(rounds_continue,
             "unresponsive: rounds continue, cancelled tasks are not kept"),
        TEST(bounded_memory,
             "unresponsive: at most 1024 cancelled tasks are remembered"),
        TEST(no_block,
             "unresponsive: a worker that never stores its block is evicted"),
        TEST(block_limit,
             "unresponsive: the limit for a block follows the faster workers"),
        TEST(excluded_time,
             "unresponsive: sending time and our delays do not count"),
        TEST(no_workers,
             "unresponsive: a round without workers fails after start_within"),
    };

    rig_begin();
    return cmocka_run_group_tests_name("unresponsive", tests, NULL, NULL);
}
