/* start_test.c -- many workers come to a coordinator at once. A slow worker is
 * not dismissed, and waiting costs next to nothing. So starting n workers
 * costs n times the start of one. */
#define _GNU_SOURCE /* RUSAGE_THREAD */
#include "net_rig.h"

#include <kofn/transport.h>

#include "base/lent.h"
#include "wire/wire.h"

#include <sys/resource.h>

#define MANY 200

/* ---- a transport that records its calls ---------------------------------- */

typedef struct ledger {
    kofn_transport base;
    size_t peers;   /* peers that have come ... */
    size_t greeted; /* ... and that have said hello */
    size_t forgotten, waits;
    kofn_time longest;
} ledger;

/* All peers come first. Only then all say hello. */
static kofn_status crowd_wait(kofn_transport *t, kofn_time atmost,
                              kofn_packet *p)
{
    ledger *l = (ledger *)t;
    const kf_head hello = {.type = KF_WIRE_HELLO};

    (void)atmost;
    if (l->greeted == MANY)
        return KOFN_AGAIN;
    if (l->peers < MANY) {
        *p = (kofn_packet){.what = KOFN_CAME, .peer = (kofn_peer)l->peers++};
        return KOFN_OK;
    }
    *p = (kofn_packet){.what = KOFN_PACKET,
                       .peer = (kofn_peer)l->greeted++,
                       .head_bytes = KF_HEAD};
    kf_head_write(p->head, &hello);
    return KOFN_OK;
}

static kofn_status take(kofn_transport *t, kofn_peer peer, const void *head,
                        size_t head_bytes, const kofn_lent *body, bool urgent)
{
    (void)t, (void)peer, (void)head, (void)head_bytes;
    (void)body, (void)urgent;
    kf_give_back(body);
    return KOFN_OK;
}

static void forget(kofn_transport *t, kofn_peer peer)
{
    (void)peer;
    ((ledger *)t)->forgotten++;
}

static kofn_status silent_wait(kofn_transport *t, kofn_time atmost,
                               kofn_packet *p)
{
    ledger *l = (ledger *)t;

    (void)p;
    l->waits++;
    l->longest = atmost > l->longest ? atmost : l->longest;
    return KOFN_AGAIN;
}

static void close_nothing(kofn_transport *t, kofn_time linger)
{
    (void)t, (void)linger;
}

/* ---- tests --------------------------------------------------------------- */

static void crowd(void **state)
{
    ledger l = {.base = {.size = sizeof l.base,
                         .name = "crowd",
                         .send = take,
                         .wait = crowd_wait,
                         .forget = forget,
                         .close = close_nothing}};
    kofn_away_options o = KOFN_AWAY_OPTIONS_INIT;
    kofn_port *port;
    kf_msg m;

    (void)state;
    o.workers = MANY;
    assert_ok(kofn_port_away(&port, &l.base, &o));
    for (uint32_t i = 0; i < MANY; i++) {
        assert_ok(port->wait(port, KOFN_NEVER, KOFN_SECOND, &m));
        assert_int_equal(m.type, KF_MSG_HELLO);
        assert_int_equal(m.worker, i);
    }
    assert_int_equal(l.forgotten, 0);
    kofn_port_close(port);
}

static kofn_leave leave_after_waits(void *ud, const char *news)
{
    (void)news;
    return ((ledger *)ud)->waits > 1000 ? KOFN_LEAVE_NOW : KOFN_STAY;
}

/* The first waits are short. The last ones are the cost of being idle. */
static void waiting(void **state)
{
    ledger l = {.base = {.size = sizeof l.base,
                         .name = "silence",
                         .send = take,
                         .wait = silent_wait,
                         .forget = forget,
                         .close = close_nothing}};
    kofn_serve_options o = KOFN_SERVE_OPTIONS_INIT;

    (void)state;
    o.watch = leave_after_waits;
    o.ud = &l;
    assert_int_equal(kofn_serve(&l.base, &o), KOFN_AGAIN);
    assert_true(l.longest >= KOFN_SECOND / 5);
    assert_true(l.longest <= KOFN_SECOND / 2);
}

/* A closing worker waits for a coordinator that serves others first. The
 * system counts the sleeps of this thread. Earlier there were a thousand in
 * this second, on all workers of a machine at once. */
static void closing(void **state)
{
    struct rusage before, after;
    pair m;

    (void)state;
    m = meet(addresses[1], &patient);
    getrusage(RUSAGE_THREAD, &before);
    m.b->close(m.b, KOFN_SECOND); /* the other end does not listen */
    getrusage(RUSAGE_THREAD, &after);
    assert_true(after.ru_nvcsw - before.ru_nvcsw < 100);
    m.a->close(m.a, 0);
}

TEST_FILE(start_test)
{
    const struct CMUnitTest tests[] = {
        TEST(crowd, "away: 200 workers that come at once are all kept"),
        TEST(waiting,
             "away: a waiting worker sleeps up to half a second at a time"),
        TEST(closing,
             "net: a closing worker sleeps while the other end is busy"),
    };

    name_socket();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
