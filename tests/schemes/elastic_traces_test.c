/* elastic_traces_test.c -- coded elastic computing under traces of joins and
 * leaves: data never move, and work in flight survives. */
#include "elastic_rig.h"

#define EVENTS 60
#define ROUNDS 24

static int by_time(const void *a, const void *b)
{
    const kofn_fault_event *x = a, *y = b;

    return x->round != y->round
               ? (x->round > y->round ? 1 : -1)
               : (x->fraction > y->fraction) - (x->fraction < y->fraction);
}

/* Makes sixty events over the rounds, most of them in the middle of one. At
 * least L workers are live at any time, and sometimes more than P. */
static kofn_fault_event *make_trace(size_t P, size_t L, uint64_t seed)
{
    kofn_fault_event *h = numbers(EVENTS, sizeof *h);
    kf_rng r = kf_rng_stream(seed, KF_FOR_DATA, 60, 0);
    bool gone[SCRIPT_WORKERS] = {false};
    size_t there = P, live = P, most = P;

    for (size_t i = 0; i < EVENTS; i++)
        h[i] = (kofn_fault_event){
            .round = 1 + (unsigned)(i * ROUNDS / EVENTS),
            .fraction = kf_rng_below(&r, 3) ? kf_rng_uniform(&r) : 0};
    qsort(h, EVENTS, sizeof *h, by_time);
    for (size_t i = 0; i < EVENTS; i++) {
        uint32_t who = (uint32_t)kf_rng_below(&r, there);

        if (live <= L || gone[who] || kf_rng_below(&r, 5) == 0) {
            h[i].kind = KOFN_FAULT_EVENT_JOIN;
            there++;
            live++;
        } else {
            h[i].kind = KOFN_FAULT_EVENT_LEAVE;
            h[i].worker = who;
            gone[who] = true;
            live--;
        }
        most = kf_max(live, most);
    }
    assert_true(most > P);
    return h;
}

/* Runs one trace; `outputs` receives the results of all rounds. */
static void run_trace(const rig_kind *kind, const kofn_fault_event *events,
                      kofn_in_flight mode, double *outputs)
{
    kofn_options o = KOFN_OPTIONS_INIT;
    rig_kind k = *kind;
    watcher *w;
    rig r;

    o.in_flight = mode;
    o.events = events;
    o.event_count = EVENTS;
    k.opt = &o;
    w = rig_watch(&r, &k);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        kofn_report rep = KOFN_REPORT_INIT;

        rig_next(&r, 100 + round);
        assert_ok(rig_round(&r, &rep));
        assert_at_most(rig_error(&r), 1e-12);
        assert_at_most(rig_error(&r), rep.predicted);
        memcpy(outputs + round * k.m, r.y.data, k.m * 8);
        audit_blocks(w);
    }
    /* the initial blocks once, and one for each joining worker */
    assert_true(w->stores > k.workers);
    rig_down(&r);
}

static void traces(bool sim, bool sparse, uint64_t seed)
{
    for (size_t i = 0; i < SIZES; i++) {
        size_t P = sizes[i].P, L = sizes[i].L, m = 211; /* m is a prime */
        kofn_fault_event *h = make_trace(P, L, seed + i);
        double *y[3];
        char spec[80];
        rig_kind k = {.spec = spec,
                      .workers = P,
                      .m = m,
                      .n = 53,
                      .p = 1,
                      .sim = sim,
                      .sparse = sparse};

        snprintf(spec, sizeof spec, "elastic:k=%zu%s", L,
                 (seed + i) % 3 ? "" : ",deal=speed");
        for (int mode = 0; mode < 3; mode++) {
            y[mode] = numbers(ROUNDS * m, 8);
            run_trace(&k, h, (kofn_in_flight)mode, y[mode]);
            assert_at_most(relative_error(y[mode], y[0], ROUNDS * m), 1e-13);
        }
        for (int mode = 0; mode < 3; mode++)
            kf_free(y[mode]);
        kf_free(h);
    }
}

static void traces_on_the_simulator(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < often(24); seed++)
        traces(true, seed % 4 == 3, 10 * seed);
}

static void traces_on_threads(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < often(8); seed++)
        traces(false, seed % 4 == 3, 7 * seed + 3);
}

TEST_FILE(elastic_traces_test)
{
    const struct CMUnitTest tests[] = {
        TEST(traces_on_the_simulator,
             "elastic: 60 leaves and joins move no data (simulated, 3 modes)"),
        TEST(traces_on_threads,
             "elastic: 60 leaves and joins move no data (threads, 3 modes)"),
    };

    rig_begin();
    return cmocka_run_group_tests_name("elastic_traces", tests, NULL, NULL);
}
