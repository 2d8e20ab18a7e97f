/* elastic_test.c -- coded elastic computing against its paper and SPEC-A: data
 * that never move, shares that follow the live set, traces of joins and leaves,
 * work in hand, groups, speeds. */
#include "figure1.h"
#include "rig.h"
#include "walk.h"

#include "run/run.h"

#include <unistd.h>

#define L_MOST 8 /* of a threshold here */

/* ---- a port that watches another
 * ---------------------------------------------- */

typedef struct watcher {
    kofn_port base, *inner;
    kofn_block *block[WALKERS]; /* what each worker was given */
    uint64_t hash[WALKERS];
    size_t stores, results;
    void (*seen)(void *ud, const kofn_msg *m); /* a result */
    void *ud;
} watcher;

static uint64_t hash_words(uint64_t h, const void *p, size_t n)
{
    const unsigned char *at = p;

    for (size_t i = 0; i < n; i++) {
        uint64_t x;

        memcpy(&x, at + i * sizeof x, sizeof x);
        h = (h ^ x ^ x >> 32) * UINT64_C(1099511628211);
    }
    return h;
}

static uint64_t hash_block(const kofn_block *b)
{
    uint64_t h = UINT64_C(14695981039346656037);

    for (size_t l = 0; b->lane && l < b->lanes; l++)
        for (size_t i = 0; i < b->lane[l].rows; i++)
            h = hash_words(h, kf_at(&b->lane[l], i, 0), b->cols);
    if (b->A) {
        h = hash_words(h, b->first, b->used);
        h = hash_words(h, b->weight, b->lanes * b->used);
    }
    return h;
}

/* Nothing that was handed out has changed since (invariant I1). */
static void audit_blocks(const watcher *w)
{
    for (size_t i = 0; i < WALKERS; i++)
        if (w->block[i] && hash_block(w->block[i]) != w->hash[i])
            fail_msg("the block of worker %zu has changed", i);
}

static kofn_status watch_send(kofn_port *base, kofn_msg *m)
{
    watcher *w = (watcher *)base;

    if (m->type == KOFN_MSG_STORE) {
        assert_true(m->worker < WALKERS && !w->block[m->worker]);
        w->block[m->worker] = kofn_block_keep(m->block);
        w->hash[m->worker] = hash_block(m->block);
        w->stores++;
    }
    return w->inner->send(w->inner, m);
}

static kofn_status watch_wait(kofn_port *base, kofn_time until,
                              kofn_time atmost, kofn_msg *m)
{
    watcher *w = (watcher *)base;
    kofn_status st = w->inner->wait(w->inner, until, atmost, m);

    if (st == KOFN_OK && m->type == KOFN_MSG_RESULT) {
        w->results++;
        if (w->seen)
            w->seen(w->ud, m);
    }
    return st;
}

static kofn_time watch_now(kofn_port *base)
{
    watcher *w = (watcher *)base;

    return w->inner->now(w->inner);
}

static kofn_status watch_admit(kofn_port *base, uint32_t *worker)
{
    watcher *w = (watcher *)base;

    audit_blocks(w);
    return w->inner->admit(w->inner, worker);
}

static kofn_status watch_remove(kofn_port *base, uint32_t worker)
{
    watcher *w = (watcher *)base;

    audit_blocks(w);
    return w->inner->remove(w->inner, worker);
}

static void watch_close(kofn_port *base)
{
    watcher *w = (watcher *)base;

    audit_blocks(w);
    w->inner->close(w->inner);
    for (size_t i = 0; i < WALKERS; i++)
        kofn_block_drop(w->block[i]);
    kf_free(w);
}

static watcher *watch_port(bool sim, size_t workers,
                           const kofn_weather *weather)
{
    watcher *w = numbers(1, sizeof *w);

    assert_ok(sim ? kofn_port_sim(&w->inner, workers, weather)
                  : kofn_port_threads(&w->inner, workers, weather));
    w->base = (kofn_port){.name = "watched",
                          .simulated = w->inner->simulated,
                          .workers = w->inner->workers,
                          .send = watch_send,
                          .wait = watch_wait,
                          .now = watch_now,
                          .close = watch_close,
                          .admit = watch_admit,
                          .remove = watch_remove};
    return w;
}

static watcher *rig_watch(rig *r, const rig_kind *k)
{
    watcher *w;

    rig_inputs(r, k);
    w = watch_port(k->sim, k->workers, k->weather);
    assert_ok(kofn_open(&r->job, r->plan, &w->base, k->opt));
    assert_ok(k->sparse ? kofn_place_sparse(r->job, &r->sparse)
                        : kofn_place(r->job, &r->A));
    return w;
}

/* ---- traces of joins and leaves
 * -------------------------------------------------- */

static const struct {
    size_t P, L;
} sizes[] = {{6, 3}, {7, 4}, {5, 5}, {6, 1}, {8, 3}, {12, 6}};
#define SIZES (sizeof sizes / sizeof *sizes)

#define EVENTS 60
#define ROUNDS 24

static int by_time(const void *a, const void *b)
{
    const kofn_happening *x = a, *y = b;

    return x->round != y->round
               ? (x->round > y->round ? 1 : -1)
               : (x->fraction > y->fraction) - (x->fraction < y->fraction);
}

/* Sixty events over the rounds, most of them in the middle of one.  At least L
 * are live at any time, and sometimes more than P. */
static kofn_happening *make_trace(size_t P, size_t L, uint64_t seed)
{
    kofn_happening *h = numbers(EVENTS, sizeof *h);
    kf_rng r = kf_rng_stream(seed, KF_FOR_DATA, 60, 0);
    bool gone[WALKERS] = {false};
    size_t there = P, live = P, most = P;

    for (size_t i = 0; i < EVENTS; i++)
        h[i] = (kofn_happening){
            .round = 1 + (unsigned)(i * ROUNDS / EVENTS),
            .fraction = kf_rng_below(&r, 3) ? kf_rng_uniform(&r) : 0};
    qsort(h, EVENTS, sizeof *h, by_time);
    for (size_t i = 0; i < EVENTS; i++) {
        uint32_t who = (uint32_t)kf_rng_below(&r, there);

        if (live <= L || gone[who] || kf_rng_below(&r, 5) == 0) {
            h[i].kind = KOFN_EVENT_JOIN;
            there++;
            live++;
        } else {
            h[i].kind = KOFN_EVENT_LEAVE;
            h[i].worker = who;
            gone[who] = true;
            live--;
        }
        most = kf_max(live, most);
    }
    assert_true(most > P);
    return h;
}

/* One trace; `outputs` takes what all rounds gave. */
static void run_trace(const rig_kind *kind, const kofn_happening *events,
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
        kofn_report rep;

        rig_next(&r, 100 + round);
        assert_ok(rig_round(&r, &rep));
        assert_at_most(rig_error(&r), 1e-12);
        assert_at_most(rig_error(&r), rep.predicted);
        memcpy(outputs + round * k.m, r.y.data, k.m * 8);
        audit_blocks(w);
    }
    /* the initial blocks once, and one for each joiner */
    assert_true(w->stores > k.workers);
    rig_down(&r);
}

static void traces(bool sim, bool sparse, uint64_t seed)
{
    for (size_t i = 0; i < SIZES; i++) {
        size_t P = sizes[i].P, L = sizes[i].L, m = 211; /* a prime */
        kofn_happening *h = make_trace(P, L, seed + i);
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

/* ---- what is asked
 * ------------------------------------------------------------------ */

static kofn_plan *core_plan(const char *spec, size_t workers, size_t m)
{
    kofn_problem pb = {KOFN_MATVEC, m, 4, 1, KOFN_F64, false};
    kofn_plan *p;

    assert_ok(kofn_plan_new(&p, &pb, spec, workers, 11));
    return p;
}

/* n live machines touch floor or ceil of L span / n strips each, L span in
 * all, for every n from L to 2 L. */
static void shares_follow_the_live_set(void **state)
{
    (void)state;
    for (size_t L = 1; L <= L_MOST; L++)
        for (size_t span = 1; span < 60; span += 29) {
            char spec[40];
            kofn_plan *p;
            walk w;

            snprintf(spec, sizeof spec, "elastic:k=%zu,basis=gauss", L);
            p = core_plan(spec, 2 * L, L * span);
            assert_int_equal(p->span, span);
            walk_up(&w, p, NULL);
            for (size_t n = 2 * L; n >= L; n--) {
                size_t total = 0;

                walk_begin(&w);
                for (uint32_t i = 0; i < w.workers; i++) {
                    size_t load = walk_load(&w, i, 0);

                    total += load;
                    assert_true(w.gone[i]
                                    ? load == 0
                                    : load == L * span / n ||
                                          load == kf_ceil_div(L * span, n));
                }
                assert_int_equal(total, L * span);
                walk_answer_all(&w);
                assert_int_equal(w.ended, KOFN_OK);
                walk_leave(&w, (uint32_t)(2 * L - n) * 13 % w.workers);
            }
            walk_begin(&w);
            assert_int_equal(w.ended, KOFN_TOOFEW);
            walk_down(&w);
            kofn_plan_free(p);
        }
}

/* A5: inside a round there is no redundancy.  When all others have answered,
 * losing one machine leaves exactly its L groups open, and what is asked again
 * is one more result for each of their strips. */
static void one_loss_opens_L_groups(void **state)
{
    (void)state;
    for (size_t n = 2; n <= 9; n++)
        for (size_t L = 1; L < n; L++) {
            char spec[40];
            kofn_core_options o = {.pieces = 1};
            size_t span = 5 * n;
            kofn_plan *p;
            walk w;

            snprintf(spec, sizeof spec, "elastic:k=%zu,basis=gauss", L);
            p = core_plan(spec, n, L * span);
            for (uint32_t lost = 0; lost < n; lost++) {
                bool open[60] = {false};
                size_t before, again = 0;

                walk_up(&w, p, &o);
                walk_begin(&w);
                for (size_t i = 0; i < w.tasks; i++)
                    if (w.task[i].worker != lost)
                        walk_answer(&w, i, 0);
                before = w.tasks;
                walk_leave(&w, lost);
                for (size_t i = before; i < w.tasks; i++)
                    for (size_t s = w.task[i].lo; s < w.task[i].hi; s++) {
                        assert_false(open[s]); /* one more is enough */
                        open[s] = true;
                        again++;
                    }
                assert_int_equal(again, L * 5);
                for (size_t j = 0; j < n; j++) /* groups lost .. lost+L-1 */
                    for (size_t s = 5 * j; s < 5 * j + 5; s++)
                        assert_true(open[s] == ((j + n - lost) % n < L));
                walk_answer_all(&w);
                assert_int_equal(w.ended, KOFN_OK);
                walk_down(&w);
            }
            kofn_plan_free(p);
        }
}

/* Facts cec.eu.*: (e*, u*) = (n - L, N / n) at memory N / L. */
static void tolerance_and_load_of_the_paper(void **state)
{
    static const struct {
        const char *id;
        size_t n, L, N, e, u, m;
    } facts[] = {
        {"cec.eu.n6_L3_N30000", 6, 3, 30000, 3, 5000, 10000},
        {"cec.eu.n20_L10_N10000", 20, 10, 10000, 10, 500, 1000},
        {"cec.eu.n4_L3_N30000", 4, 3, 30000, 1, 7500, 10000},
        {"cec.eu.n3_L3_N30000", 3, 3, 30000, 0, 10000, 10000},
    };

    (void)state;
    for (size_t f = 0; f < sizeof facts / sizeof *facts; f++) {
        char spec[40];
        kofn_plan_info info;
        kofn_plan *p;
        walk w;

        snprintf(spec, sizeof spec, "elastic:k=%zu", facts[f].L);
        p = core_plan(spec, facts[f].n, facts[f].N);
        assert_ok(kofn_plan_describe(p, false, &info));
        assert_int_equal(info.block_rows, facts[f].m);
        assert_int_equal(info.workers - info.threshold, facts[f].e);
        walk_up(&w, p, NULL);
        walk_begin(&w);
        for (uint32_t i = 0; i < w.workers; i++)
            assert_int_equal(walk_load(&w, i, 0) * p->layout.lanes, facts[f].u);
        walk_answer_all(&w);
        for (uint32_t i = 0; i < facts[f].e; i++)
            walk_leave(&w, i);
        walk_begin(&w);
        walk_answer_all(&w);
        assert_int_equal(w.ended, KOFN_OK);
        walk_leave(&w, (uint32_t)facts[f].e);
        walk_begin(&w);
        assert_int_equal(w.ended, KOFN_TOOFEW);
        walk_down(&w);
        kofn_plan_free(p);
    }
}

/* I4 and I5: no L live rows, those of joiners among them, are near to
 * dependent. */
static void rows_are_well_conditioned(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIZES; i++) {
        size_t P = sizes[i].P, L = sizes[i].L, most = P + 6;
        kf_rng r = kf_rng_stream(i, KF_FOR_DATA, 45, 0);
        char spec[40];
        kofn_plan *p;
        kf_code *code;

        snprintf(spec, sizeof spec, "elastic:k=%zu", L);
        p = core_plan(spec, P, 100);
        assert_ok(kf_code_new(&code, p));
        for (size_t t = 0; t < 400; t++) {
            uint32_t set[16];
            size_t n = 0, at = t % most;
            kf_decoder *d;

            for (uint32_t s = 0; s < most; s++) /* windows, then any set */
                if (t < most ? (s + most - at) % most < L
                             : kf_rng_below(&r, most - s) < L - n)
                    set[n++] = s;
            assert_int_equal(n, L);
            assert_ok(kf_decoder_new(&d, code, set, L, false));
            assert_at_most(d->condition, 1e8);
            kf_decoder_free(d);
        }
        kf_code_free(code);
        kofn_plan_free(p);
    }
}

/* ---- the paper's figure 1, worked
 * ------------------------------------------------------ */

static const kofn_param fig1_params[] = {
    {"deal", 0, 0, 0, "shares of the work", "equal|speed"},
    {0},
};

/* What came: per worker and strip. */
typedef struct fig1_seen {
    double value[6][3];
    bool came[6][3];
} fig1_seen;

static void fig1_result(void *ud, const kofn_msg *m)
{
    fig1_seen *seen = ud;

    for (size_t s = m->lo; s < m->hi; s++) {
        seen->came[m->worker][s] = true;
        seen->value[m->worker][s] =
            ((const double *)kofn_parcel_matrix(m->result)->data)[s - m->lo];
    }
}

/* Fact cec.worked.matvec: X[i][k] = 10 i + k + 1 (9 x 2), w = (1, -2), machines
 * 1 and 3 gone. */
static void figure_1_worked(void **state)
{
    static const double coded[6][3] = {{-3, -13, -23},     {0, 0, 0},
                                       {-63, -73, -83},    {0, 0, 0},
                                       {-258, -318, -378}, {-702, -842, -982}};
    /* groups 1, 2, 3 are strips 0, 1, 2; group 0 is empty (cuts 0 0 1 2 3) */
    static const int users[3][3] = {{0, 2, 5}, {0, 2, 4}, {2, 4, 5}};
    static const kofn_happening events[] = {{1, 0, KOFN_EVENT_LEAVE, 1, 0},
                                            {1, 0, KOFN_EVENT_LEAVE, 3, 0}};
    kofn_scheme scheme = {.name = "fig1",
                          .summary = "figure 1 of the paper",
                          .ops = KOFN_MATVEC,
                          .params = fig1_params,
                          .layout = fig1_layout,
                          .seat = fig1_seat,
                          .deal = kofn_scheme_find("elastic")->deal};
    kofn_problem pb = {KOFN_MATVEC, 9, 2, 1, KOFN_F64, false};
    double x[18], v[2] = {1, -2}, y[9];
    kofn_matrix X = {x, 9, 2, 2, KOFN_F64}, in = {v, 2, 1, 1, KOFN_F64};
    kofn_matrix out = {y, 9, 1, 1, KOFN_F64};
    kofn_options o = KOFN_OPTIONS_INIT;
    fig1_seen seen = {0};
    kofn_plan *p;
    kofn_job *job;
    watcher *w;

    (void)state;
    for (size_t i = 0; i < 18; i++)
        x[i] = (double)(10 * (i / 2) + i % 2 + 1);
    o.events = events;
    o.event_count = 2;
    assert_ok(kofn_plan_new_for(&p, &pb, &scheme, NULL, 6, 0));
    w = watch_port(true, 6, NULL);
    w->seen = fig1_result;
    w->ud = &seen;
    assert_ok(kofn_open(&job, p, &w->base, &o));
    assert_ok(kofn_place(job, &X));
    assert_ok(kofn_round(job, &in, &out, NULL));
    for (size_t i = 0; i < 9; i++)
        assert_at_most(fabs(y[i] - (-3 - 10 * (double)i)), 1e-12);
    for (int s = 0; s < 3; s++)
        for (int i = 0; i < 6; i++) {
            bool used =
                users[s][0] == i || users[s][1] == i || users[s][2] == i;

            assert_true(seen.came[i][s] == used);
            if (used)
                assert_true(seen.value[i][s] == coded[i][s]);
        }
    kofn_close(job);
    kofn_plan_free(p);
}

/* ---- groups (A13)
 * ------------------------------------------------------------------------- */

static double choose(size_t n, size_t k)
{
    double c = 1;

    for (size_t i = 0; i < k; i++)
        c = c * (double)(n - i) / (double)(i + 1);
    return c;
}

/* [z^e] (sum_{i <= (P-L)/g} C(P/g, i) z^i)^g / C(P, e) */
static double survival(size_t P, size_t L, size_t g, size_t e)
{
    double c[64] = {1};

    for (size_t j = 0; j < g; j++) {
        double next[64] = {0};

        for (size_t a = 0; a <= e; a++)
            for (size_t i = 0; i <= (P - L) / g && a + i <= e; i++)
                next[a + i] += c[a] * choose(P / g, i);
        memcpy(c, next, sizeof c);
    }
    return c[e] / choose(P, e);
}

static bool survives(const kofn_plan *p, size_t losses, kf_rng *r)
{
    bool alive;
    walk w;

    walk_up(&w, p, NULL);
    for (size_t i = 0; i < losses;) {
        uint32_t who = (uint32_t)kf_rng_below(r, w.workers);

        if (w.gone[who])
            continue;
        walk_leave(&w, who);
        i++;
    }
    walk_begin(&w);
    walk_answer_all(&w);
    assert_false(w.running);
    alive = w.ended == KOFN_OK;
    assert_true(alive || w.ended == KOFN_TOOFEW);
    walk_down(&w);
    return alive;
}

static void groups_survive_as_often_as_they_should(void **state)
{
    const size_t P = 20, L = 10, trials = often(1000);

    (void)state;
    /* plain replication by two: five random losses survive with 0.520 */
    assert_at_most(fabs(survival(P, L, 10, 5) - 0.520), 5e-4);
    for (size_t g = 1; g <= 10; g++) {
        char spec[60];
        kofn_plan *p;

        if (P % g || L % g)
            continue;
        snprintf(spec, sizeof spec, "elastic:k=%zu,groups=%zu,basis=gauss", L,
                 g);
        p = core_plan(spec, P, 2 * L);
        for (size_t e = 1; e <= 11; e += 2) {
            kf_rng r = kf_rng_stream(13, KF_FOR_DATA, (uint32_t)g, (uint32_t)e);
            double want = survival(P, L, g, e), n = (double)trials;
            double sigma = sqrt(want * (1 - want) / n);
            size_t alive = 0;

            for (size_t t = 0; t < trials; t++)
                alive += survives(p, e, &r);
            assert_at_most(fabs((double)alive / n - want), 4.5 * sigma);
            if (e <= (P - L) / g) /* what each group tolerates for sure */
                assert_int_equal(alive, trials);
        }
        kofn_plan_free(p);
    }
}

/* ---- unequal speeds (A12)
 * ------------------------------------------------------------------- */

/* Fact cec.hetero.example: rows and segments for speeds 1 1 4 2 8. */
static void unequal_speeds_example(void **state)
{
    static const double speed[5] = {1, 1, 4, 2, 8};
    static const size_t rows[5] = {6, 5, 22, 11, 22};
    kofn_core_options o = {.pieces = 1};
    kofn_plan *p = core_plan("elastic:k=3,basis=gauss,deal=speed", 5, 66);
    bool used[22][5] = {{false}};
    walk w;

    (void)state;
    assert_int_equal(p->span, 22);
    walk_up(&w, p, &o);
    walk_begin(&w);
    for (size_t i = 0; i < w.tasks; i++)
        walk_answer(&w, i,
                    (kofn_time)((double)(w.task[i].hi - w.task[i].lo) /
                                speed[w.task[i].worker] * 1e6));
    walk_begin(&w);
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(walk_load(&w, i, 0), rows[i]);
    for (size_t i = 0; i < w.tasks; i++)
        for (size_t s = w.task[i].lo; s < w.task[i].hi; s++)
            used[s][w.task[i].worker] = true;
    for (size_t s = 0; s < 22; s++) {
        assert_true(used[s][2] && used[s][4]);
        assert_true(used[s][0] == (s < 6));
        assert_true(used[s][1] == (s >= 6 && s < 11));
        assert_true(used[s][3] == (s >= 11));
    }
    walk_down(&w);
    kofn_plan_free(p);
}

/* max over the workers of share / speed at the water-filling optimum: c with
 * sum min(1, c v) = L by bisection. */
static double best_time(const double *v, size_t n, size_t L)
{
    double lo = 0, hi = 1e6, time = 0;

    for (int i = 0; i < 200; i++) {
        double c = (lo + hi) / 2, sum = 0;

        for (size_t p = 0; p < n; p++)
            sum += fmin(1, c * v[p]);
        *(sum < (double)L ? &lo : &hi) = c;
    }
    for (size_t p = 0; p < n; p++)
        time = fmax(time, fmin(1, hi * v[p]) / v[p]);
    return time;
}

/* The simulator's clock: the first round is dealt equally, later ones as the
 * workers turned out to be.  One group of strips more or less is allowed. */
static void shares_follow_the_speeds(void **state)
{
    const size_t n = 9, L = 4, span = 300;

    (void)state;
    for (uint64_t seed = 0; seed < 8; seed++) {
        kofn_weather weather = {.spread = 0.7, .seed = seed};
        rig_kind k = {.spec = "elastic:k=4,basis=gauss,deal=speed",
                      .workers = n,
                      .m = L * span,
                      .n = 10,
                      .p = 1,
                      .sim = true,
                      .weather = &weather};
        double v[9], slowest = 0, strip = 10; /* nanoseconds */
        kofn_report rep;
        rig r;

        for (uint32_t i = 0; i < n; i++)
            v[i] = kf_weather_speed(&weather, i);
        rig_up(&r, &k);
        assert_ok(rig_round(&r, &rep));
        for (size_t i = 0; i < n; i++)
            slowest = fmax(slowest, (double)rep.rows[i] * strip / v[i]);
        assert_at_most(fabs((double)rep.took - slowest), 8);
        for (int round = 0; round < 3; round++) {
            double best = best_time(v, n, L) * (double)span * strip;

            assert_ok(rig_round(&r, &rep));
            assert_at_most(rig_error(&r), 1e-12);
            assert_at_most((double)rep.took, best + 2 * strip / 0.3);
            assert_at_most(best - 2 * strip / 0.3, (double)rep.took);
            assert_at_most((double)rep.took, slowest);
        }
        rig_down(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_follow_the_live_set),
        cmocka_unit_test(one_loss_opens_L_groups),
        cmocka_unit_test(tolerance_and_load_of_the_paper),
        cmocka_unit_test(rows_are_well_conditioned),
        cmocka_unit_test(figure_1_worked),
        cmocka_unit_test(groups_survive_as_often_as_they_should),
        cmocka_unit_test(unequal_speeds_example),
        cmocka_unit_test(shares_follow_the_speeds),
        cmocka_unit_test(traces_on_the_simulator),
        cmocka_unit_test(traces_on_threads),
    };

    rig_begin();
    return cmocka_run_group_tests_name("elastic", tests, NULL, NULL);
}
