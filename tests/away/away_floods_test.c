/* away_floods_test.c -- workers that send the coordinator more than it asked
 * for, next to honest ones. Rounds continue and are right, and memory stays
 * bounded. A flooding worker is dropped and named. */
#include "fleet.h"

#include "base/hash.h"
#include "ports/away.h"

#define ROUNDS 5

typedef enum mode {
    HELLOS = 1, /* again and again */
    NOTICES,
    NEEDS,        /* asks for a slice, at full speed, and reads all */
    WRONG,        /* asks for slices that do not exist */
    RESULTS,      /* long results that were not asked for */
    POLITE,       /* asks for a slice when it has the last, for ever */
    GREEDY,       /* asks now and then, and takes nothing */
    FLEETING_ONES /* comes and goes */
} mode;

typedef struct hostile {
    kofn_transport *t;
    mode mode;
    pthread_t thread;
    atomic_bool stop;
    atomic_size_t sent;
    kofn_peer head;
    uint64_t job, block;
    bool welcome, gone, has; /* has: the requested slice came */
} hostile;

static void say(hostile *h, kf_head head, size_t body_bytes)
{
    unsigned char bytes[KF_HEAD];
    void *body = body_bytes ? calloc(body_bytes, 1) : NULL;

    head.job = head.type == KF_WIRE_HELLO ? 0 : h->job;
    head.body_sum = body ? kf_hash(head.job, body, body_bytes) : 0;
    kf_head_write(bytes, &head);
    while (h->t->send(h->t, h->head, bytes, sizeof bytes,
                      &(kofn_lent){.data = body, .bytes = body_bytes},
                      false) == KOFN_AGAIN &&
           !atomic_load(&h->stop))
        nanosleep(&(struct timespec){0, 100000}, NULL);
    free(body);
    atomic_fetch_add(&h->sent, 1);
}

/* Handles one arrival. Returns false if there is none. */
static bool listen(hostile *h, kofn_time atmost)
{
    kofn_packet k = {0};
    kf_head head;

    if (h->t->wait(h->t, atmost, &k))
        return false;
    if (k.what == KOFN_CAME) {
        h->head = k.peer;
        h->welcome = false;
        h->block = 0;
        say(h, (kf_head){.type = KF_WIRE_HELLO}, 0);
    } else if (k.what == KOFN_WENT) {
        h->gone = true;
    } else if (!kf_head_read(&head, k.head, k.head_bytes)) {
        h->welcome |= head.type == KF_WIRE_WELCOME;
        h->job = head.job;
        h->has |= head.type == KF_WIRE_SLICE || head.type == KF_WIRE_STORE;
        if (head.type == KF_WIRE_STORE) { /* rounds wait for it */
            h->block = head.block;
            say(h, (kf_head){.type = KF_WIRE_STORED, .block = head.block}, 0);
        }
    }
    if (k.own)
        h->t->release(h->t, k.own);
    return true;
}

static void flood_once(hostile *h)
{
    const kf_head slice = {
        .type = KF_WIRE_NEED, .block = h->block, .lo = 0, .hi = 1};
    kf_head wrong = slice;

    wrong.hi = UINT64_MAX;
    switch (h->mode) {
    case HELLOS:
        say(h, (kf_head){.type = KF_WIRE_HELLO}, 0);
        break;
    case NOTICES:
        say(h, (kf_head){.type = KF_WIRE_NOTICE}, 0);
        break;
    case NEEDS:
    case GREEDY:
        if (h->block)
            say(h, slice, 0);
        break;
    case POLITE:
        if (h->block && h->has)
            say(h, slice, 0);
        h->has = h->has && !h->block;
        break;
    case WRONG:
        say(h, wrong, 0);
        break;
    case RESULTS:
        say(h,
            (kf_head){
                .type = KF_WIRE_RESULT, .task = 77, .rows = 100, .cols = 100},
            80000);
        break;
    case FLEETING_ONES:
        say(h, (kf_head){.type = KF_WIRE_BYE}, 0);
        h->t->forget(h->t, h->head);
        break;
    }
}

/* True if it sends nothing before something comes. */
static bool idle(const hostile *h)
{
    return !h->welcome || (h->mode == POLITE && !h->has);
}

static void *flooder(void *ud)
{
    hostile *h = ud;
    size_t n = 0;

    while (!atomic_load(&h->stop) &&
           (h->mode != FLEETING_ONES || atomic_load(&h->sent) < 400)) {
        bool more = true;

        for (int i = 0; i < 100 && more && !(h->mode == GREEDY && h->block);
             i++)
            more = listen(h, idle(h) ? KOFN_SECOND / 100 : 0);
        if (!h->welcome)
            continue;
        flood_once(h);
        if (++n % 64 == 0) /* the queues of this network have no limit */
            nanosleep(&(struct timespec){0, 1000000}, NULL);
        if (h->mode == FLEETING_ONES)
            h->welcome = false;
        if (h->mode == GREEDY)
            nanosleep(&(struct timespec){0, 20000000}, NULL);
    }
    return NULL;
}

/* ---- a job with one of them ---------------------------------------------- */

typedef struct flood_case {
    fleet f;
    rig r;
    hostile h;
    kofn_port *port;
    char told[400];
    size_t dropped;
} flood_case;

static void keep_words(void *ud, const char *words)
{
    flood_case *c = ud;

    snprintf(c->told, sizeof c->told, "%s", words);
    c->dropped += strstr(words, "was disconnected") != NULL;
}

static const rig_kind kind = {
    .spec = "mds:k=2", .workers = 3, .m = 3000, .n = 400, .p = 1};

/* A job with short rounds, for the tests that take hundreds of them. */
static const rig_kind brief = {
    .spec = "mds:k=2", .workers = 3, .m = 60, .n = 40, .p = 1};

static void right_round(flood_case *c, uint64_t seed)
{
    kofn_report rep = KOFN_REPORT_INIT;
    kofn_status st;

    rig_next(&c->r, seed);
    rig_spoil(&c->r);
    assert_ok(kofn_put(c->r.job, &c->r.x, &c->r.y, NULL));
    st = kofn_take(c->r.job, 0, 300 * KOFN_SECOND, &rep);
    if (st)
        fail_msg("%s: %s", kofn_strerror(st), kofn_errmsg());
    assert_true(rig_error(&c->r) <= 1e-12);
}

/* Opens the job. The honest workers come first. */
static void begin(flood_case *c, mode m, const loop_faults *faults)
{
    kofn_away_options o = KOFN_AWAY_OPTIONS_INIT;

    o.news = keep_words;
    o.ud = c;
    o.silence = 300 * KOFN_SECOND; /* the failure timeout is not the bound */
    rig_inputs(&c->r, m >= POLITE ? &brief : &kind);
    fleet_init(&c->f, faults);
    c->port = fleet_port(&c->f, kind.workers, &o);
    assert_ok(kofn_open(&c->r.job, c->r.plan, c->port, NULL));
    assert_ok(rig_place(&c->r));
    right_round(c, 0);
    if (m) {
        c->h.mode = m;
        c->h.t = loop_spoke(&c->f.net);
        assert_int_equal(pthread_create(&c->h.thread, NULL, flooder, &c->h), 0);
    }
}

static void finish(flood_case *c)
{
    atomic_store(&c->h.stop, true);
    if (c->h.t)
        pthread_join(c->h.thread, NULL);
    kofn_close(c->r.job);
    c->r.job = NULL;
    if (c->h.t)
        c->h.t->close(c->h.t, 0);
    fleet_down(&c->f);
    rig_down(&c->r);
}

/* ---- workers that are dropped -------------------------------------------- */

static void dropped_and_named(mode m)
{
    flood_case *c = calloc(1, sizeof *c);

    assert_non_null(c);
    begin(c, m, NULL);
    for (uint64_t i = 0; i < ROUNDS || !c->dropped; i++) {
        if (i == 20000)
            fail_msg("mode %d is not dropped", m);
        right_round(c, i);
    }
    if (!strstr(c->told, "sends unexpected packets"))
        fail_msg("it says \"%s\"", c->told);
    finish(c);
    free(c);
}

static void hellos(void **state)
{
    (void)state;
    dropped_and_named(HELLOS);
}

static void notices(void **state)
{
    (void)state;
    dropped_and_named(NOTICES);
}

static void requests(void **state)
{
    (void)state;
    dropped_and_named(NEEDS);
}

static void bad_requests(void **state)
{
    (void)state;
    dropped_and_named(WRONG);
}

static void results(void **state)
{
    (void)state;
    dropped_and_named(RESULTS);
}

/* ---- memory that they can cost ------------------------------------------- */

/* A worker that takes nothing may just be slow, so it is not dropped. */
static void untaken_slices(void **state)
{
    const loop_faults narrow = {.room = 1};
    flood_case *c = calloc(1, sizeof *c);
    const port *p;

    (void)state;
    assert_non_null(c);
    begin(c, GREEDY, &narrow);
    p = (const port *)c->port;
    for (uint64_t i = 0; atomic_load(&c->h.sent) < 60; i++) {
        right_round(c, i);
        for (size_t w = 0; w < p->workers; w++) {
            size_t slices = 0;
            const kf_outbox *b = &p->worker[w]->line.outbox;

            for (size_t k = 0; k < b->count; k++)
                slices += b->letter[b->first + k].body.bytes &&
                          b->letter[b->first + k].type != KF_WIRE_WORK;
            assert_true(slices <= 1);
        }
    }
    assert_int_equal(c->dropped, 0);
    finish(c);
    free(c);
}

static void endless_requests(void **state)
{
    flood_case *c = calloc(1, sizeof *c);
    const port *p;
    size_t all;

    (void)state;
    assert_non_null(c);
    begin(c, POLITE, NULL);
    p = (const port *)c->port;
    for (uint64_t i = 0; p->workers < 4 || !p->worker[3]->held.block; i++)
        right_round(c, i);
    all = 4 * kf_block_bytes(p->worker[3]->held.block) + 1024 * SLICE_COST;
    for (uint64_t i = 0; p->worker[3]->held.served <= all; i++)
        right_round(c, i);
    for (uint64_t i = 0; i < 300; i++)
        right_round(c, i);
    assert_true(p->worker[3]->held.served <= all + 65536 + SLICE_COST);
    finish(c);
    free(c);
}

static void returning(void **state)
{
    flood_case *c = calloc(1, sizeof *c);
    const port *p;
    kofn_time start, spent;

    (void)state;
    assert_non_null(c);
    begin(c, FLEETING_ONES, NULL);
    p = (const port *)c->port;
    start = c->port->now(c->port);
    for (uint64_t i = 0; atomic_load(&c->h.sent) < 300; i++)
        right_round(c, i);
    spent = c->port->now(c->port) - start;
    assert_true((double)p->workers <=
                5 + FLEETING + SHORT_LIVED_RATE * (1 + (double)spent * 1e-9));
    finish(c);
    free(c);
}

static bool wants(const flood_case *c, uint32_t id, kf_head h, size_t bytes)
{
    port *p = (port *)c->port;
    unsigned char head[KF_HEAD];

    h.job = p->job;
    kf_head_write(head, &h);
    return kf_away_wanted(p, id < p->workers ? p->worker[id]->peer : 4711, head,
                          sizeof head, bytes);
}

static void unwanted_bodies(void **state)
{
    kf_head result = {.type = KF_WIRE_RESULT, .task = 4711};
    flood_case *c = calloc(1, sizeof *c);
    worker *w;

    (void)state;
    assert_non_null(c);
    begin(c, 0, NULL);
    w = ((port *)c->port)->worker[0];
    assert_false(wants(c, 0, result, 8 << 20));
    assert_ok(kf_grow(&w->tasks.pending, &w->tasks.cap, w->tasks.count,
                      sizeof *w->tasks.pending));
    w->tasks.pending[w->tasks.count++] =
        (pending_task){.task = 4711, .bytes = 8 << 20};
    assert_true(wants(c, 0, result, 8 << 20));
    assert_false(wants(c, 0, result, 9 << 20));
    assert_false(wants(c, 1, result, 8 << 20));
    assert_false(wants(c, UINT32_MAX, result, 8 << 20));
    result.type = KF_WIRE_NEED;
    assert_false(wants(c, 0, result, 8 << 20));
    w->tasks.count--;
    finish(c);
    free(c);
}

/* ---- blocks -------------------------------------------------------------- */

static void blocks_among_noise(void **state)
{
    const loop_faults babble = {.babble = true};
    flood_case *c = calloc(1, sizeof *c);

    (void)state;
    assert_non_null(c);
    begin(c, 0, &babble);
    for (uint64_t i = 0; i < ROUNDS; i++)
        right_round(c, i);
    finish(c);
    free(c);
}

TEST_FILE(away_floods_test)
{
    const struct CMUnitTest tests[] = {
        TEST(hellos,
             "away: a worker that sends hello on and on is dropped and named"),
        TEST(
            notices,
            "away: a worker that sends notices on and on is dropped and named"),
        TEST(requests,
             "away: a worker that asks on and on is dropped and named"),
        TEST(
            bad_requests,
            "away: a worker that asks for missing slices is dropped and named"),
        TEST(results,
             "away: a worker with unexpected results is dropped and named"),
        TEST(untaken_slices,
             "away: one slice at most waits for a worker that takes none"),
        TEST(endless_requests,
             "away: a worker that asks for ever gets its block a few times"),
        TEST(
            returning,
            "away: the admissions of a worker that comes and goes are limited"),
        TEST(unwanted_bodies,
             "away: only results of outstanding tasks may have long bodies"),
        TEST(blocks_among_noise,
             "away: blocks are sent although other packets never stop"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
