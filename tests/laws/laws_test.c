/* laws_test.c -- laws of rounds for every scheme, over a grid of the
 * parameters it declares: laws 4, 5 and 9. Those of codes alone are in
 * laws_codes_test.c. */
#include "fleet.h"
#include "laws_faults.h"

#include "run/run.h"

/* ---- law 4: order -------------------------------------------------------- */

/* A port that computes at once and answers in random order. It repeats some
 * answers, sends some in the name of another worker, and delivers cancelled
 * work. */
typedef struct shuffled {
    kofn_port base;
    kf_rng r;
    kf_block *block[64];
    kf_msg *box;
    size_t count, cap;
    kofn_time time;
} shuffled;

static kofn_status put(shuffled *s, kf_msg m)
{
    TRY(kf_grow(&s->box, &s->cap, s->count, sizeof *s->box));
    s->box[s->count++] = m;
    return KOFN_OK;
}

/* Delivers the same again from the same worker, or nonsense from another. */
static kofn_status put_copy(shuffled *s, kf_msg m, uint32_t worker)
{
    kf_buffer *p;

    TRY(kf_buffer_new(&p, m.result->m.rows, m.result->m.cols,
                      m.result->m.dtype));
    if (worker == m.worker)
        memcpy(p->m.data, m.result->m.data,
               p->m.rows * p->m.cols * kf_dtype_size(p->m.dtype));
    else
        memset(p->m.data, 0xff,
               p->m.rows * p->m.cols * kf_dtype_size(p->m.dtype));
    m.result = p;
    m.worker = worker;
    return put(s, m);
}

static kofn_status shuffled_send(kofn_port *base, kf_msg *m)
{
    shuffled *s = (shuffled *)base;

    switch (m->type) {
    case KF_MSG_STORE:
        s->block[m->worker] = m->block;
        return put(s, (kf_msg){.type = KF_MSG_STORED, .worker = m->worker});
    case KF_MSG_WORK:
        assert_ok(kf_work_do(m->block ? m->block : s->block[m->worker], m, NULL,
                             NULL));
        kf_buffer_drop(m->in);
        kf_block_drop(m->block);
        m->in = NULL;
        m->block = NULL;
        m->type = KF_MSG_RESULT;
        if (kf_rng_below(&s->r, 8) == 0)
            TRY(put_copy(s, *m, m->worker));
        if (kf_rng_below(&s->r, 8) == 0)
            TRY(put_copy(s, *m, m->worker + 1));
        return put(s, *m);
    default:
        return KOFN_OK;
    }
}

static kofn_status shuffled_wait(kofn_port *base, kofn_time until,
                                 kofn_time atmost, kf_msg *m)
{
    shuffled *s = (shuffled *)base;
    size_t i;

    (void)atmost;
    if (s->count == 0) {
        s->time = until;
        return until == KOFN_NEVER ? KOFN_LATE : KOFN_AGAIN;
    }
    i = (size_t)kf_rng_below(&s->r, s->count);
    *m = s->box[i];
    s->box[i] = s->box[--s->count];
    s->time += 1000;
    return KOFN_OK;
}

static kofn_time shuffled_now(kofn_port *base)
{
    return ((shuffled *)base)->time;
}

static void shuffled_close(kofn_port *base)
{
    shuffled *s = (shuffled *)base;

    for (size_t i = 0; i < s->count; i++)
        kf_buffer_drop(s->box[i].result);
    for (size_t i = 0; i < 64; i++)
        kf_block_drop(s->block[i]);
    kf_free(s->box);
    kf_free(s);
}

static kofn_port *shuffled_new(size_t workers, uint64_t seed)
{
    shuffled *s = numbers(1, sizeof *s);

    s->base = (kofn_port){.name = "shuffled",
                          .simulated = true,
                          .workers = workers,
                          .send = shuffled_send,
                          .wait = shuffled_wait,
                          .now = shuffled_now,
                          .close = shuffled_close};
    s->r = kf_rng_stream(seed, KF_FOR_DATA, 4, 4);
    for (size_t i = 0; i < workers; i++)
        assert_ok(
            put(s, (kf_msg){.type = KF_MSG_HELLO, .worker = (uint32_t)i}));
    return &s->base;
}

static void order_does_not_matter(const point *at, const kofn_plan *p,
                                  kf_rng *r)
{
    kofn_options o = KOFN_OPTIONS_INIT;
    rig_kind kind;
    rig x;

    job_inputs(&x, at, &kind);
    o.pieces = 1 + (unsigned)kf_rng_below(r, 4);
    o.late = kf_rng_below(r, 2) ? 1.5 : 0;
    assert_ok(
        kofn_open(&x.job, p, shuffled_new(at->workers, kf_rng_u64(r)), &o));
    check(rig_place(&x) == KOFN_OK);
    for (uint64_t round = 0; round < 5; round++) {
        kofn_report rep = KOFN_REPORT_INIT;
        kofn_status st;

        rig_next(&x, round + 50);
        st = rig_round(&x, &rep);
        check(st == KOFN_OK || st == KOFN_UNSTABLE);
        if (!st)
            check_answer(&x, &rep);
    }
    rig_down(&x);
}

static void order(void **state)
{
    (void)state;
    over_the_grid(order_does_not_matter, often(60), 3, 4);
}

/* ---- laws 5 and 9: fault model and replay -------------------------------- */

static kofn_port *simulated(const rig *x, const rig_kind *kind,
                            const kofn_faults *faults)
{
    kofn_port *port;

    (void)x;
    assert_ok(kofn_port_sim(&port, kind->workers, faults));
    return port;
}

static kofn_port *threads(const rig *x, const rig_kind *kind,
                          const kofn_faults *faults)
{
    kofn_port *port;

    (void)x;
    assert_ok(kofn_port_threads(&port, kind->workers, faults));
    return port;
}

/* Workers behind packets apply the fault model themselves. */
static fleet packets;

static kofn_port *behind(const rig *x, const rig_kind *kind,
                         const kofn_faults *faults)
{
    kofn_away_options o = KOFN_AWAY_OPTIONS_INIT;

    fleet_init(&packets, NULL);
    packets.serve.f = rig_part;
    packets.serve.ctx = (void *)(uintptr_t)x;
    packets.serve.faults = faults;
    packets.serve.staged = true;
    o.start = fleet_start;
    o.kill = fleet_kill;
    o.ud = &packets;
    return fleet_port(&packets, kind->workers, &o);
}

static void all_home(void)
{
    fleet_down(&packets);
}

static void on_the_simulator(const point *at, const kofn_plan *p, kf_rng *r)
{
    any_faults(at, p, r, &(site){.simulated = true, .open = simulated});
}

static void on_threads(const point *at, const kofn_plan *p, kf_rng *r)
{
    any_faults(at, p, r, &(site){.open = threads});
}

static void behind_packets(const point *at, const kofn_plan *p, kf_rng *r)
{
    any_faults(at, p, r,
               &(site){.staged = true, .open = behind, .close = all_home});
}

static void faults_and_replay_simulated(void **state)
{
    (void)state;
    over_the_grid(on_the_simulator, often(30), 3, 5);
}

static void faults_and_replay_on_threads(void **state)
{
    (void)state;
    over_the_grid(on_threads, often(12), 3, 9);
}

static void faults_and_replay_behind_packets(void **state)
{
    (void)state;
    over_the_grid(behind_packets, often(1), 3, 10);
}

TEST_FILE(laws_test)
{
    const struct CMUnitTest tests[] = {
        TEST(order, "law 4: order, repeats and forged senders do not matter"),
        TEST(faults_and_replay_simulated,
             "laws 5 and 9, simulated: right or refused, and replays"),
        TEST(faults_and_replay_on_threads,
             "laws 5 and 9, threads: right or refused, and replays"),
        TEST(faults_and_replay_behind_packets,
             "laws 5 and 9, packets: right or refused, and replays"),
    };

    if (argc > 1) /* only tests with that sentence, with asterisks */
        cmocka_set_test_filter(argv[1]);
    rig_begin();
    return cmocka_run_group_tests_name("laws", tests, NULL, NULL);
}
