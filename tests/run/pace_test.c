/* pace_test.c -- workers send submessages one after the other until they are
 * stopped. Over links that take time, the traffic is that of Theorem 1 of the
 * paper. */
#include "gradient_rig.h"

#include "run/job.h"

/* ---- received shares ----------------------------------------------------- */

enum { WORKERS = 8, ROUNDS = 4, NUMBERS = 960, UNEVEN = 10000 };

typedef struct trial {
    const char *spec;
    size_t late,
        gone; /* workers that never answer, and workers that have left */
    double latency;
    double uneven; /* worker 1 takes (1 + uneven) times the time of worker 0,
                      worker 2 (1 + uneven / 2) times, ... */
} trial;

/* Results of a trial. share: vectors received in a round, divided by WORKERS.
 * took: seconds of the last round. A vector takes a second. */
typedef struct outcome {
    double share, took;
} outcome;

static outcome outcome_of(const trial *l)
{
    double slow[WORKERS];
    kofn_matrix pattern = {slow, 1, WORKERS, WORKERS, KOFN_F64};
    kofn_faults w =
        KOFN_FAULTS_INIT(.latency = l->latency, .bandwidth = 8 * NUMBERS,
                         .pattern = &pattern);
    kofn_fault_event leave[WORKERS];
    kofn_options o = with_events(leave, l->gone);
    rig_kind k = {.spec = l->spec,
                  .workers = WORKERS,
                  .m = 2 * WORKERS + 1,
                  .n = NUMBERS,
                  .p = 1,
                  .op = KOFN_SUM,
                  .sim = true,
                  .faults = &w,
                  .opt = &o};
    kofn_report rep = KOFN_REPORT_INIT;
    kofn_progress all = KOFN_PROGRESS_INIT;
    rig x;

    for (uint32_t i = 0; i < WORKERS; i++) {
        slow[i] = i < l->late ? HUGE_VAL : i ? 1 + l->uneven / i : 1;
        leave[i] = (kofn_fault_event){1, 0, KOFN_FAULT_EVENT_LEAVE, i, 0};
    }
    rig_up(&x, &k);
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        rig_next(&x, round);
        assert_ok(rig_round(&x, &rep));
        assert_at_most(rig_error(&x), 1e-9);
    }
    kofn_job_progress(x.job, &all);
    rig_down(&x);
    return (outcome){(double)all.received / (8.0 * NUMBERS * WORKERS * ROUNDS),
                     (double)rep.took * 1e-9};
}

/* math/gradients.md 2: n - s workers send 1/(d - s) each. The last submessages
 * of groups other than the slowest may be missing when a round ends. */
static void shares(void **state)
{
    static const double latency[] = {0, 0.001, 3};
    static const struct {
        const char *spec;
        size_t d;
    } t[] = {{"agc:d=2", 2},   {"agc:d=3", 3},
             {"agc:d=4", 4},   {"agc:d=3,form=decoupled", 3},
             {"g-agc:d=2", 2}, {"g-agc:d=4", 4}};

    (void)state;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        for (size_t s = 0; s < t[i].d; s++)
            for (size_t k = 0; k < 3; k++) {
                trial late = {t[i].spec, s, 0, latency[k], 0};
                trial gone = {t[i].spec, 0, s, latency[k], 0};
                double theorem =
                    (double)(WORKERS - s) / WORKERS / (double)(t[i].d - s);

                assert_at_most(outcome_of(&late).share, 1.15 * theorem);
                assert_at_most(outcome_of(&gone).share, 1.15 * theorem);
            }
}

/* A round takes a trip there and one back, and a second for the input, which
 * has the length of a vector. The work takes next to nothing, and the answer
 * takes 1/(d - s) of a vector. Each submessage beyond those that all present
 * workers must send takes a further trip there and back, and a pause of a
 * quarter of that time. Without the pause, the needed lam + (n - d) lam/d
 * submessages would not come together. */
static void trips(void **state)
{
    const double trip = 6, n = WORKERS, d = 3, lam = 6;

    (void)state;
    for (size_t k = 0; k < 3; k++) {
        trial late = {"agc:d=3", k, 0, trip / 2, 0};
        trial gone = {"agc:d=3", 0, k, trip / 2, 0};
        double s = (double)k, least = trip + 1 + 1 / (d - s);
        double at_once = ceil((lam + (n - d) * lam / d) / (n - s));
        double each = trip + 1 / lam / 4;

        assert_at_most(fabs(outcome_of(&gone).took - least -
                            (lam / (d - s) - at_once) * each),
                       0.01);
        assert_at_most(fabs(outcome_of(&late).took - least -
                            (lam / (d - s) - lam / d) * each),
                       0.01);
    }
}

/* A worker that has sent its part waits for slightly later ones, by less than
 * a quarter of the time of a submessage. */
static void slightly_late(void **state)
{
    const double submessage = 1.0 / 6;
    trial even = {"agc:d=3", 0, 0, 0, 0}, uneven = {"agc:d=3", 0, 0, 0, UNEVEN};
    outcome same = outcome_of(&even), later = outcome_of(&uneven);

    (void)state;
    assert_at_most(fabs(same.share - 1.0 / 3), 1e-12);
    assert_at_most(fabs(later.share - 1.0 / 3), 1e-12);
    assert_at_most(later.took - same.took, submessage / 4);
    assert_at_most(submessage / 8, later.took - same.took);
}

/* The first answer of a worker is under way since the request. Neither the
 * start of the job nor the worker's last answer counts. The time is a trip
 * there, the input, the worker's half of a vector, and a trip back. */
static void first_answers(void **state)
{
    const double trip = 3, way = 2 * trip + 1 + 1.0 / 2;
    kofn_faults w = KOFN_FAULTS_INIT(.latency = trip, .bandwidth = 8 * NUMBERS);
    rig_kind k = {.spec = "agc:d=2,lam=2",
                  .workers = WORKERS,
                  .m = 2 * WORKERS + 1,
                  .n = NUMBERS,
                  .p = 1,
                  .op = KOFN_SUM,
                  .sim = true,
                  .faults = &w};
    rig x;

    (void)state;
    rig_up(&x, &k);
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        rig_next(&x, round);
        assert_ok(rig_round(&x, NULL));
        assert_int_equal(x.job->paced.workers, WORKERS);
        for (size_t i = 0; i < WORKERS; i++)
            assert_at_most(
                fabs((double)x.job->paced.window[i].way * 1e-9 - way), 0.01);
    }
    rig_down(&x);
}

/* The wait may be longer if the missing part is on its way, and comes before
 * another submessage could. */
static void being_sent(void **state)
{
    const double submessage = 1.0 / 6;
    trial even = {"agc:d=3", 0, 0, 0, 0}, uneven = {"agc:d=3", 0, 0, 0, 0};
    outcome same = outcome_of(&even), later;

    (void)state;
    uneven.uneven = 4 * UNEVEN;
    later = outcome_of(&uneven);
    assert_at_most(fabs(later.share - 1.0 / 3), 1e-12);
    assert_at_most(submessage / 2, later.took - same.took);
    assert_at_most(later.took - same.took, submessage);
}

/* ---- requested submessages ----------------------------------------------- */

/* A port in front of another one that counts the outstanding tasks of each
 * worker. */
typedef struct counting {
    kofn_port base;
    kofn_port *to;
    size_t in_hand[WORKERS], most;
    bool out[8192];   /* true for each outstanding task */
    uint32_t product; /* the product that was given out last */
    kofn_time
        stopped; /* when worker 0 stopped within a result; 0: it did not */
} counting;

/* Ends a task, once: a cancelled result may come all the same. */
static void over(counting *c, const kf_msg *m)
{
    c->in_hand[m->worker] -= c->out[m->task];
    c->out[m->task] = false;
}

static kofn_status counting_send(kofn_port *base, kf_msg *m)
{
    counting *c = (counting *)base;

    if (m->type == KF_MSG_WORK) {
        c->out[m->task] = true;
        c->product = m->product;
        c->most = kf_max(c->most, ++c->in_hand[m->worker]);
    } else if (m->type == KF_MSG_CANCEL) {
        assert_true(c->out[m->task]); /* else it was not requested */
        over(c, m);
    }
    return c->to->send(c->to, m);
}

static kofn_status counting_wait(kofn_port *base, kofn_time until,
                                 kofn_time atmost, kf_msg *m)
{
    counting *c = (counting *)base;
    kofn_status st = c->to->wait(c->to, until, atmost, m);

    if (!st && m->type == KF_MSG_RESULT)
        over(c, m);
    return st;
}

static kofn_time counting_now(kofn_port *base)
{
    return ((counting *)base)->to->now(((counting *)base)->to);
}

/* Reports that worker 0 holds back the last bit of its result for ever. */
static bool counting_coming(kofn_port *base, uint32_t worker, kf_coming *c)
{
    const counting *x = (const counting *)base;

    if (worker > 0)
        return x->to->coming(x->to, worker, c);
    *c = (kf_coming){x->product, 0.999, x->stopped};
    return true;
}

static void counting_close(kofn_port *base)
{
    kofn_port_close(((counting *)base)->to);
}

/* Without stragglers no worker has more tasks than are needed, and only
 * requested tasks are cancelled. */
static void outstanding(void **state)
{
    (void)state;
    for (size_t d = 2; d <= 4; d++) {
        char spec[20];
        counting c = {.base = {.name = "counting",
                               .workers = WORKERS,
                               .send = counting_send,
                               .wait = counting_wait,
                               .now = counting_now,
                               .close = counting_close}};
        rig_kind k = {.spec = spec,
                      .workers = WORKERS,
                      .m = 2 * WORKERS + 1,
                      .n = NUMBERS,
                      .p = 1,
                      .op = KOFN_SUM};
        rig x;

        snprintf(spec, sizeof spec, "agc:d=%zu", d);
        rig_inputs(&x, &k);
        assert_ok(kofn_port_threads(&c.to, WORKERS, NULL));
        assert_ok(kofn_open(&x.job, x.plan, &c.base, NULL));
        assert_ok(rig_place(&x));
        for (uint64_t round = 1; round <= 20; round++) {
            rig_next(&x, round);
            assert_ok(rig_round(&x, NULL));
            assert_at_most(rig_error(&x), 1e-9);
        }
        /* lam is a multiple of d, so lam/d submessages are a d-th */
        assert_int_equal(c.most, x.plan->layout.submessages / d);
        rig_down(&x);
    }
}

/* Most of a result of the slow worker has come, and the rest does not. The
 * others soon get requests for the missing part. */
static void stalled(void **state)
{
    double slow[WORKERS] = {HUGE_VAL, 1, 1, 1, 1, 1, 1, 1};
    kofn_matrix pattern = {slow, 1, WORKERS, WORKERS, KOFN_F64};
    kofn_faults w =
        KOFN_FAULTS_INIT(.bandwidth = 8 * NUMBERS, .pattern = &pattern);
    counting c = {.base = {.name = "counting",
                           .workers = WORKERS,
                           .send = counting_send,
                           .wait = counting_wait,
                           .now = counting_now,
                           .close = counting_close,
                           .coming = counting_coming},
                  .stopped = KOFN_SECOND};
    rig_kind k = {.spec = "agc:d=2",
                  .workers = WORKERS,
                  .m = 2 * WORKERS + 1,
                  .n = NUMBERS,
                  .p = 1,
                  .op = KOFN_SUM};
    const double input = 1, submessage = 0.5, way = input + submessage;
    double took;
    rig x;

    (void)state;
    rig_inputs(&x, &k);
    assert_ok(kofn_port_sim(&c.to, WORKERS, &w));
    assert_ok(kofn_open(&x.job, x.plan, &c.base, NULL));
    assert_ok(rig_place(&x));
    rig_next(&x, 1);
    assert_ok(rig_round(&x, NULL));
    assert_at_most(rig_error(&x), 1e-9);
    /* four times the time of the others since it began; it may be looked at a
     * pause later, and then they send */
    took = (double)counting_now(&c.base) * 1e-9;
    assert_at_most(input + 4 * way, took);
    assert_at_most(took, input + 4 * way + way / 4 + submessage + 0.01);
    rig_down(&x);
}

/* Three of five workers leave, and others join at the same moment. The two that
 * stay are at once sent what suffices without the new ones, which is more than
 * the level and not enough. As soon as the new ones have stored, the level
 * falls behind. They take no part in this round. So each rise of the level must
 * let a task go, or the round stands still. */
static void replaced(void **state)
{
    enum { SEATS = 5, GONE = 3 };
    static const double share[] = {0, 0.1, 0.2, 0.3, 0.4, 0.5};
    /* less than a nanosecond: all that can be answered comes at once */
    kofn_faults w = KOFN_FAULTS_INIT(.work = 1e-6);

    (void)state;
    for (size_t i = 0; i < sizeof share / sizeof *share; i++)
        for (uint32_t early = 0; early < GONE; early++) {
            kofn_fault_event e[2 * GONE];
            kofn_options o = with_events(e, 2 * GONE);
            rig_kind k = {.spec = "g-agc:d=4,lam=12,form=staircase",
                          .workers = SEATS,
                          .m = 2 * SEATS + 1,
                          .n = 37,
                          .p = 1,
                          .op = KOFN_SUM,
                          .sim = true,
                          .faults = &w,
                          .opt = &o};
            rig x;

            for (uint32_t j = 0; j < GONE; j++) {
                double at = j < early ? 0 : share[i];

                e[j] = (kofn_fault_event){1, at, KOFN_FAULT_EVENT_LEAVE, j, 0};
                e[GONE + j] = (kofn_fault_event){1, share[i],
                                                 KOFN_FAULT_EVENT_JOIN, 0, 0};
            }
            rig_up(&x, &k);
            rig_next(&x, 1);
            assert_ok(rig_round(&x, NULL));
            assert_at_most(rig_error(&x), 1e-9);
            rig_down(&x);
        }
}

/* ---- products in a row --------------------------------------------------- */

typedef struct often_asked {
    const rig *r;
    size_t times[64]; /* per part */
} often_asked;

static kofn_status count_part(void *ctx, size_t part, size_t parts,
                              const kofn_matrix *in, kofn_matrix *out)
{
    often_asked *o = ctx;

    o->times[part]++;
    return rig_part((void *)(uintptr_t)o->r, part, parts, in, out);
}

/* Several products are put at once. A worker that waits for its turn already
 * has the next one, but computes each part of a product once. */
static void parts_are_computed_once(void **state)
{
    kofn_faults w =
        KOFN_FAULTS_INIT(.latency = 3, .bandwidth = 8 * NUMBERS, .spread = 0.5);
    rig_kind k = {.spec = "agc:d=3",
                  .workers = WORKERS,
                  .m = 2 * WORKERS + 1,
                  .n = NUMBERS,
                  .p = 1,
                  .op = KOFN_SUM,
                  .sim = true,
                  .faults = &w};
    enum { PRODUCTS = 4 };
    rig x, one[PRODUCTS];
    often_asked o = {.r = &x};
    uint32_t number[PRODUCTS];

    (void)state;
    w.work = 1e6;
    rig_inputs(&x, &k);
    {
        kofn_port *port;

        assert_ok(kofn_port_sim(&port, WORKERS, &w));
        assert_ok(kofn_open(&x.job, x.plan, port, NULL));
        assert_ok(kofn_place_parts(x.job, count_part, &o));
    }
    for (uint64_t i = 0; i < PRODUCTS; i++) {
        one[i] = rig_beside(&x, i + 10);
        assert_ok(kofn_put(x.job, &one[i].x, &one[i].y, &number[i]));
    }
    for (size_t i = 0; i < PRODUCTS; i++) {
        assert_ok(kofn_take(x.job, number[i], KOFN_NEVER, NULL));
        assert_at_most(rig_error(&one[i]), 1e-9);
        rig_put_away(&one[i]);
    }
    for (size_t i = 0; i < WORKERS; i++) /* d workers compute each part */
        assert_true(o.times[i] <= 3 * PRODUCTS);
    rig_down(&x);
}

/* ---- the simulated link -------------------------------------------------- */

static kf_msg next_of(kofn_port *port, kf_msg_type type)
{
    kf_msg m = {0};

    assert_ok(port->wait(port, KOFN_NEVER, KOFN_NEVER, &m));
    assert_int_equal(m.type, type);
    return m;
}

/* A worker has sent the first of three results when the last is cancelled. The
 * last has not begun, and does not come. A segment takes `NUMBERS / lam`
 * milliseconds of the link, and no work. */
static void cancelled(void **state)
{
    kofn_faults w = KOFN_FAULTS_INIT(.bandwidth = 8e3, .work = 1e-9);
    kf_buffer *in;
    kf_block *block;
    kf_resident r;
    kofn_port *port;
    kf_msg m;
    size_t seat = 0;
    kofn_time each, began;
    sum_case f;

    (void)state;
    case_plan(&f, "agc:d=3", WORKERS, NUMBERS, KOFN_F64);
    make_parts(&f, f.plan->parts);
    kf_resident_sum(&r, f.plan);
    r.f = stored_part;
    r.ctx = &f;
    each = KOFN_SECOND / 1000 * NUMBERS / (kofn_time)f.L->submessages;
    assert_ok(kf_data_encode(&r, f.code, &seat, 1, &block));
    assert_ok(kofn_port_sim(&port, 1, &w));
    next_of(port, KF_MSG_HELLO);
    m = (kf_msg){.type = KF_MSG_STORE, .block = block};
    assert_ok(port->send(port, &m));
    next_of(port, KF_MSG_STORED);
    began = port->now(port) + KOFN_SECOND / 1000; /* for the input */
    assert_ok(kf_buffer_new(&in, 1, 1, KOFN_F64));
    memset(in->m.data, 0, 8);
    for (uint32_t t = 0; t < 3; t++) {
        m = (kf_msg){.type = KF_MSG_WORK,
                     .product = 1,
                     .round = 1,
                     .task = t,
                     .row = t,
                     .how = KF_HOW_SUBMESSAGE,
                     .hi = f.plan->span,
                     .in = kf_buffer_keep(in)};
        assert_ok(kf_buffer_new(&m.result, f.L->components * f.plan->span, 1,
                                KOFN_F64));
        assert_ok(port->send(port, &m));
    }
    for (uint32_t t = 0; t < 2; t++) {
        kf_msg came = next_of(port, KF_MSG_RESULT);
        kofn_time sent = port->now(port) - began;

        assert_int_equal(came.task, t);
        assert_at_most(fabs((double)(sent - each * (kofn_time)(t + 1))), 1000);
        kf_buffer_drop(came.result);
        m = (kf_msg){.type = KF_MSG_CANCEL, .task = 2};
        assert_ok(port->send(port, &m));
    }
    assert_status(KOFN_LATE, port->wait(port, KOFN_NEVER, KOFN_NEVER, &m));
    kofn_port_close(port);
    kf_buffer_drop(in);
    kf_resident_free(&r);
    case_down(&f);
}

TEST_FILE(pace_test)
{
    const struct CMUnitTest tests[] = {
        TEST(shares, "agc: received shares are those of Theorem 1 (+15 %)"),
        TEST(trips, "agc: a round takes few trips over a slow link"),
        TEST(slightly_late, "agc: slightly later submessages are waited for"),
        TEST(first_answers, "agc: a first answer is timed from its request"),
        TEST(being_sent, "agc: a submessage on its way is waited for"),
        TEST(outstanding, "agc: workers have no more tasks than are needed"),
        TEST(stalled, "agc: a worker that stops within a result is replaced"),
        TEST(replaced, "agc: a round ends if others join as workers leave"),
        TEST(parts_are_computed_once,
             "agc: each part is computed once for each product"),
        TEST(
            cancelled,
            "agc: a submessage that is cancelled before it begins is not sent"),
    };

    rig_begin();
    return cmocka_run_group_tests_name("pace", tests, NULL, NULL);
}
