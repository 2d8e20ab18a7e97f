/* peer_test.c -- iterations without a master, on the simulated mesh. */
#include "mesh_sim.h"

#include <pthread.h>
#include <time.h>

static void print_state(const sim *s)
{
    for (size_t i = 0; i < s->nodes; i++) {
        const sim_node *n = &s->node[i];
        kofn_node_view v;

        if (!n->host) {
            fprintf(stderr, "  node %zu: down\n", i);
            continue;
        }
        kofn_node_look(n->host->node, &v);
        fprintf(stderr,
                "  node %zu: t %llu line %04llx epoch %llu/%04llx seat %d "
                "members %zu live %zu%s%s%s adopted %llu dropped %llu\n",
                i, (unsigned long long)v.at.t,
                (unsigned long long)v.at.line & 0xffff,
                (unsigned long long)v.epoch.number,
                (unsigned long long)v.epoch.proposer & 0xffff, (int)v.seat,
                v.members, v.live, v.leader ? " LEADER" : "",
                v.final ? " final" : "", n->over ? " over" : "",
                (unsigned long long)v.adopted,
                (unsigned long long)v.dropped);
    }
}

/* Every node that is up has the result, by this time. */
static void all_have_it(sim *s, kofn_time by, void (*fault)(sim *, size_t),
                        const char *what, uint64_t seed)
{
    for (;;) {
        bool all = true;

        for (size_t i = 0; i < s->nodes; i++)
            if (s->node[i].up) {
                kofn_node_view v;

                if (s->node[i].status)
                    fail_msg("%s, seed %llu: node %zu: %s", what,
                             (unsigned long long)seed, i, kofn_errmsg());
                kofn_node_look(s->node[i].host->node, &v);
                all &= v.final;
            }
        if (all)
            return;
        if (s->now >= by) {
            print_state(s);
            fail_msg("%s, seed %llu: not everybody has the result after "
                     "%.3g s", what, (unsigned long long)seed,
                     (double)s->now * 1e-9);
        }
        sim_run(s, s->now + MS, fault);
    }
}

static void fair(void **state)
{
    static const char *const spec[] = {"mds:k=3,basis=gauss_sys", "mds:k=4",
                                       "mds:k=1", "mds:k=5,basis=harmonic"};

    (void)state;
    for (size_t i = 0; i < 4; i++)
        for (int distributed = 0; distributed < 2; distributed++) {
            sim s;

            sim_up(&s, spec[i], 5, 23, 12, i);
            s.opt.decoding = distributed ? KOFN_DECODE_DISTRIBUTED
                                         : KOFN_DECODE_REPLICATED;
            for (size_t n = 0; n < 5; n++)
                sim_start(&s, n, true);
            all_have_it(&s, 3 * KOFN_SECOND, NULL, spec[i], i);
            if (getenv("SHOW")) {
                printf("%s %d: %.4g s, worst %.3g\n", spec[i], distributed,
                       (double)s.now * 1e-9, s.worst);
                print_state(&s);
            }
            sim_down(&s);
        }
}

/* ---- histories ------------------------------------------------------------- */

static size_t count_up(const sim *s)
{
    size_t up = 0;

    for (size_t i = 0; i < s->nodes; i++)
        up += s->node[i].up;
    return up;
}

static size_t pick(sim *s, bool up)
{
    size_t i = kf_rng_below(&s->rng, s->nodes);

    for (size_t q = 0; q < s->nodes; q++, i = (i + 1) % s->nodes)
        if (s->node[i].up == up)
            return i;
    return s->nodes;
}

static void cut_network(sim *s)
{
    bool side[SIM_NODES];

    for (size_t i = 0; i < s->nodes; i++)
        side[i] = sim_draw(s) < 0.5;
    for (size_t i = 0; i < s->nodes; i++)
        for (size_t j = 0; j < s->nodes; j++)
            s->cut[i][j] = side[i] != side[j];
}

/* One way only, or between two only: what suspects wrongly for long. */
static void cut_link(sim *s)
{
    size_t a = kf_rng_below(&s->rng, s->nodes);
    size_t b = kf_rng_below(&s->rng, s->nodes);

    s->cut[a][b] = true;
    if (sim_draw(s) < 0.5)
        s->cut[b][a] = true;
}

static void heal(sim *s)
{
    memset(s->cut, 0, sizeof s->cut);
}

/* The connection breaks and comes again while both live. */
static void flap(sim *s)
{
    size_t a = pick(s, true), b = kf_rng_below(&s->rng, s->nodes);

    if (a == b || !s->node[b].up)
        return;
    sim_link(s, a, b, KOFN_WENT);
    sim_link(s, b, a, KOFN_WENT);
    sim_link(s, a, b, KOFN_CAME);
    sim_link(s, b, a, KOFN_CAME);
}

static void misfortune(sim *s, size_t gentle)
{
    kofn_time length = (kofn_time)((double)(400 * MS) * sim_draw(s));
    size_t i = pick(s, true);

    switch (kf_rng_below(&s->rng, gentle ? 2 : 8)) {
    case 0:
        if (count_up(s) > 1)
            sim_stop(s, i);
        break;
    case 1:
        s->node[i].slow = sim_draw(s) < 0.3 ? 1 : 1 + 30 * sim_draw(s);
        break;
    case 2:
    case 3:
        s->node[i].stopped = s->now + length;
        break;
    case 4:
        i = pick(s, false);
        if (i < s->nodes)
            sim_start(s, i, sim_draw(s) < 0.5);
        break;
    case 5:
        if (sim_draw(s) < 0.5)
            cut_network(s);
        else
            cut_link(s);
        break;
    case 6:
        heal(s);
        break;
    default:
        flap(s);
    }
}

static void history(uint64_t seed, double *worst, uint64_t *adopted)
{
    static const char *const spec[] = {
        "mds:k=1", "mds:k=2", "mds:k=3,basis=gauss_sys", "mds:k=4",
        "mds:k=3", "mds:k=2,basis=gauss"};
    static const size_t needs[] = {1, 2, 3, 4, 3, 2};
    kf_rng r = kf_rng_stream(seed, KF_FOR_SAMPLE, 78, 0);
    size_t which = kf_rng_below(&r, 6), k = needs[which];
    size_t nodes = k + 1 + kf_rng_below(&r, 4);
    size_t faults = kf_rng_below(&r, 16);
    kofn_time bound;
    sim s;

    sim_up(&s, spec[which], nodes, 19, 8 + kf_rng_below(&r, 40), seed);
    if (kf_rng_below(&r, 2))
        s.opt.decoding = KOFN_DECODE_DISTRIBUTED;
    if (kf_rng_below(&r, 3) == 0) {
        s.lose = 0.05 * kf_rng_uniform(&r);
        s.repeat = 0.05 * kf_rng_uniform(&r);
        s.reorder = 0.05 * kf_rng_uniform(&r);
    }
    s.tell = kf_rng_below(&r, 2);
    s.latency = 1 + (kofn_time)(kf_rng_uniform(&r) * 5 * (double)MS);
    s.compute = (kofn_time)(kf_rng_uniform(&r) * 5 * (double)MS);
    for (size_t i = 0; i < nodes; i++)
        if (i < k || sim_draw(&s) < 0.9)
            sim_start(&s, i, sim_draw(&s) < 0.8);
    for (size_t f = 0; f < faults; f++)
        sim_at(&s, (kofn_time)(sim_draw(&s) * 800 * (double)MS), SIM_FAULT, 0,
               0);
    sim_run(&s, 800 * MS, misfortune);
    /* From here on the network is well and enough nodes are there. */
    heal(&s);
    s.lose = s.repeat = s.reorder = 0;
    for (size_t i = 0; i < nodes; i++) {
        s.node[i].stopped = 0;
        s.node[i].slow = fmin(s.node[i].slow, 3);
        if (!s.node[i].up && count_up(&s) < k)
            sim_start(&s, i, false);
        if (s.node[i].up)
            sim_wake(&s, i, s.now);
    }
    bound = s.now + 2 * KOFN_SECOND +
            (kofn_time)s.steps * (10 * s.latency +
                                  8 * (kofn_time)nodes * s.compute);
    all_have_it(&s, bound, misfortune, spec[which], seed);
    for (size_t i = 0; i < nodes; i++) {
        kofn_node_view v;

        if (!s.node[i].up)
            continue;
        kofn_node_look(s.node[i].host->node, &v);
        *adopted += v.adopted;
        assert_int_equal(v.at.t, s.steps);
    }
    *worst = fmax(*worst, s.worst);
    sim_down(&s);
}

static void histories(void **state)
{
    size_t n = often(300);
    double worst = 0;
    uint64_t adopted = 0, first;
    const char *one = getenv("KOFN_TEST_SEED"); /* the first of them */

    (void)state;
    first = one ? strtoull(one, NULL, 10) : 0;
    for (uint64_t seed = first; seed < first + n; seed++)
        history(seed, &worst, &adopted);
    print_message("%zu histories, worst deviation %.3g, %llu vectors adopted\n",
                  n, worst, (unsigned long long)adopted);
}

/* ---- every moment, every order ------------------------------------------------ */

enum { DIE, PAUSE, APART, RETURN, BREAK, KINDS };

typedef struct blow {
    size_t when; /* before this packet */
    size_t node, kind;
} blow;

typedef struct blows {
    blow blow[2];
    size_t count, needs;
} blows;

#define AWAY (300 * MS) /* longer than silence */

static void strike(sim *s, const blow *b, size_t needs)
{
    sim_node *n = &s->node[b->node];

    if (!n->up)
        return;
    switch (b->kind) {
    case DIE:
        if (count_up(s) > needs)
            sim_stop(s, b->node);
        break;
    case PAUSE:
        n->stopped = s->now + AWAY;
        break;
    case APART:
        for (size_t i = 0; i < s->nodes; i++)
            s->cut[i][b->node] = s->cut[b->node][i] = true;
        sim_at(s, s->now + AWAY, SIM_FAULT, 0, 0);
        break;
    case RETURN: /* dies and begins again */
        sim_stop(s, b->node);
        sim_start(s, b->node, false);
        break;
    default:
        for (size_t i = 0; i < s->nodes; i++)
            if (i != b->node && s->node[i].up) {
                sim_link(s, i, b->node, KOFN_WENT);
                sim_link(s, b->node, i, KOFN_WENT);
                sim_link(s, i, b->node, KOFN_CAME);
                sim_link(s, b->node, i, KOFN_CAME);
            }
    }
}

static void inject(sim *s)
{
    blows *all = s->inject_ud;

    for (size_t i = 0; i < all->count; i++)
        if (all->blow[i].when == s->delivered)
            strike(s, &all->blow[i], all->needs);
}

static void heal_now(sim *s, size_t what)
{
    (void)what;
    heal(s);
}

typedef struct small {
    const char *spec;
    size_t nodes, needs;
} small;

static const small smalls[] = {{"mds:k=2,basis=gauss_sys", 3, 2},
                               {"mds:k=2,basis=gauss_sys", 4, 2},
                               {"mds:k=3,basis=gauss_sys", 4, 3}};

/* How many packets it took. */
static size_t small_run(const small *c, bool distributed, bool tell,
                        blows *all, const unsigned char *order, size_t orders)
{
    char what[96];
    size_t packets;
    sim s;

    sim_up(&s, c->spec, c->nodes, 7, 3, 1);
    s.tell = tell;
    if (distributed)
        s.opt.decoding = KOFN_DECODE_DISTRIBUTED;
    s.order = order;
    s.orders = orders;
    if (all) {
        all->needs = c->needs;
        s.inject = inject;
        s.inject_ud = all;
    }
    for (size_t i = 0; i < c->nodes; i++)
        sim_start(&s, i, true);
    snprintf(what, sizeof what, "%zu nodes, %s, %s", c->nodes, c->spec,
             distributed ? "distributed" : "replicated");
    for (size_t i = 0; all && i < all->count; i++) {
        size_t n = strlen(what);

        snprintf(what + n, sizeof what - n, ", %zu:%zu:%zu",
                 all->blow[i].when, all->blow[i].node, all->blow[i].kind);
    }
    all_have_it(&s, 4 * KOFN_SECOND, heal_now, what, 0);
    packets = s.delivered;
    sim_down(&s);
    return packets;
}

/* Every n-th; every one where there is more time. */
static size_t sparse(size_t n)
{
    double x = (double)n * SLOWED / test_scale();

    return x < 1 ? 1 : (size_t)x;
}

/* Anything that can befall any node, before any packet. */
static void one_blow(void **state)
{
    size_t runs = 0, stride = sparse(4);

    (void)state;
    for (size_t c = 0; c < 3; c++)
        for (int d = 0; d < 2; d++) {
            size_t packets = small_run(&smalls[c], d, true, NULL, NULL, 0);

            for (size_t m = 1; m <= packets; m += stride)
                for (size_t i = 0; i < smalls[c].nodes * KINDS; i++, runs++) {
                    blows b = {{{m, i / KINDS, i % KINDS}}, 1, 0};

                    small_run(&smalls[c], d, (m + i) % 2, &b, NULL, 0);
                }
        }
    print_message("%zu runs\n", runs);
}

/* Two of them, at moments on a grid. */
static void two_blows(void **state)
{
    size_t runs = 0, stride = sparse(29);

    (void)state;
    for (size_t c = 0; c < 3; c += 2)
        for (int d = 0; d < 2; d++) {
            size_t packets = small_run(&smalls[c], d, true, NULL, NULL, 0);
            size_t all = smalls[c].nodes * KINDS;

            for (size_t m = 1; m <= packets; m += stride)
                for (size_t n = m; n <= packets; n += stride)
                    for (size_t i = runs % 7; i < all * all; i += 7, runs++) {
                        blows b = {{{m, i % all / KINDS, i % KINDS},
                                    {n, i / all / KINDS, i / all % KINDS}},
                                   2, 0};

                        small_run(&smalls[c], d, runs % 2, &b, NULL, 0);
                    }
        }
    print_message("%zu runs\n", runs);
}

/* All orders in which the first packets may come, three being under way; each
 * from two points of the run on. */
static void orders(void **state)
{
    enum { DEPTH = 6 };
    unsigned char order[64] = {0};
    size_t runs = 0;

    (void)state;
    for (size_t c = 0; c < 3; c++)
        for (size_t from = 0; from < 36; from += sparse(18))
            for (size_t code = 0; code < 729; code++, runs++) {
                size_t x = code;

                memset(order, 0, sizeof order);
                for (size_t i = 0; i < DEPTH; i++, x /= 3)
                    order[from + i] = (unsigned char)(x % 3);
                small_run(&smalls[c], code % 2, true, NULL, order,
                          from + DEPTH);
            }
    print_message("%zu runs\n", runs);
}

/* ---- particular misfortunes ---------------------------------------------------- */

/* A node that is heard but hears too little, for good: as leader, as one who
 * decodes for others, or as neither. */
static void go_deaf(sim *s)
{
    size_t deaf = (size_t)(uintptr_t)s->inject_ud;

    if (s->delivered == 200)
        for (size_t i = 0; i < s->nodes; i++)
            s->cut[i][deaf] = i != deaf && i != (deaf + 1) % s->nodes;
}

static void deaf(void **state)
{
    (void)state;
    for (size_t i = 0; i < 10; i++) {
        sim s;

        sim_up(&s, "mds:k=3", 5, 19, 20, 40 + i / 5);
        if (i >= 5)
            s.opt.decoding = KOFN_DECODE_DISTRIBUTED;
        s.inject = go_deaf;
        s.inject_ud = (void *)(uintptr_t)(i % 5);
        for (size_t n = 0; n < 5; n++)
            sim_start(&s, n, true);
        all_have_it(&s, 6 * KOFN_SECOND, NULL, "deaf", i);
        assert_true(s.delivered > 200);
        sim_down(&s);
    }
}

/* Hears everything, and answers beats, but what it sends of the results that
 * it owes is lost: nothing but its being slow shows. */
static void owing(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 5; seed++) {
        sim s;

        sim_up(&s, "mds:k=3", 5, 19, 20, seed);
        s.opt.decoding = KOFN_DECODE_DISTRIBUTED;
        s.mute = 1 + seed % 5;
        for (size_t n = 0; n < 5; n++)
            sim_start(&s, n, true);
        all_have_it(&s, 10 * KOFN_SECOND, NULL, "owing", seed);
        sim_down(&s);
    }
}

static uint64_t t_of(const sim *s, size_t i)
{
    kofn_node_view v;

    kofn_node_look(s->node[i].host->node, &v);
    return v.at.t;
}

/* Two halves of four, two of whom decode: both go on, and meet again; with a
 * quorum of three neither does, after a silence. */
static void halves(void **state)
{
    (void)state;
    for (int quorum = 0; quorum < 2; quorum++)
        for (uint64_t seed = 0; seed < 4; seed++) {
            uint64_t before[4];
            bool moved = false;
            sim s;

            sim_up(&s, "mds:k=2", 4, 19, 2000, seed);
            s.opt.quorum = quorum ? 3 : 0;
            if (seed % 2)
                s.opt.decoding = KOFN_DECODE_DISTRIBUTED;
            for (size_t n = 0; n < 4; n++)
                sim_start(&s, n, true);
            sim_run(&s, 200 * MS, NULL);
            assert_true(t_of(&s, 0) > 5);
            for (size_t i = 0; i < 4; i++)
                for (size_t j = 0; j < 4; j++)
                    s.cut[i][j] = i / 2 != j / 2;
            sim_run(&s, 700 * MS, NULL);
            for (size_t i = 0; i < 4; i++)
                before[i] = t_of(&s, i);
            sim_run(&s, 1200 * MS, NULL);
            for (size_t i = 0; i < 4; i++) {
                moved |= t_of(&s, i) > before[i];
                assert_true(quorum || t_of(&s, i) > before[i] + 10);
            }
            assert_true(moved == !quorum);
            heal(&s);
            sim_run(&s, 1800 * MS, NULL);
            for (size_t i = 0; i < 4; i++) {
                assert_true(t_of(&s, i) > before[i] + 10);
                assert_true(t_of(&s, i) + 5 > t_of(&s, 0));
            }
            sim_down(&s);
        }
}

/* Processes that go when they are done leave nobody behind. */
static void exits(void **state)
{
    size_t n = often(60);

    (void)state;
    for (uint64_t seed = 0; seed < n; seed++) {
        sim s;

        sim_up(&s, "mds:k=3", 6, 19, 10 + seed % 9, seed);
        s.exits = true;
        s.tell = seed % 2;
        if (seed % 3 == 0)
            s.opt.decoding = KOFN_DECODE_DISTRIBUTED;
        for (size_t i = 0; i < 6; i++)
            sim_start(&s, i, seed % 5 > 0);
        for (size_t i = 0; i < 3; i++) /* at most, of which slow is one kind */
            sim_at(&s, (kofn_time)(sim_draw(&s) * 120 * (double)MS), SIM_FAULT,
                   0, 1);
        all_have_it(&s, 6 * KOFN_SECOND, misfortune, "exits", seed);
        sim_down(&s);
    }
}

/* On unlike machines one may find that it is enough an iterate earlier: all
 * end, with that one or the next. */
static void verdicts(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        sim s;

        sim_up(&s, seed % 2 ? "mds:k=3" : "mds:k=4", 4, 19, 9, seed);
        s.hasty = 1 + seed % 4;
        if (seed % 3 == 0)
            s.opt.decoding = KOFN_DECODE_DISTRIBUTED;
        for (size_t i = 0; i < 4; i++)
            sim_start(&s, i, true);
        all_have_it(&s, 3 * KOFN_SECOND, NULL, "verdicts", seed);
        for (size_t i = 0; i < 4; i++)
            assert_true(t_of(&s, i) >= 8 && t_of(&s, i) <= 9);
        sim_down(&s);
    }
}

/* Below the quorum it is told, and nothing is answered. */
static void too_few(void **state)
{
    sim s;

    (void)state;
    sim_up(&s, "mds:k=3", 4, 19, 50, 1);
    s.opt.give_up = KOFN_SECOND;
    for (size_t i = 0; i < 4; i++)
        sim_start(&s, i, true);
    sim_run(&s, 100 * MS, NULL);
    sim_stop(&s, 0);
    sim_stop(&s, 1);
    sim_run(&s, 3 * KOFN_SECOND, NULL);
    assert_int_equal(s.node[2].status, KOFN_TOOFEW);
    assert_int_equal(s.node[3].status, KOFN_TOOFEW);
    assert_non_null(strstr(kofn_errmsg(), "2 of the 3 nodes"));
    assert_true(t_of(&s, 2) < 50);
    sim_down(&s);
}

/* What cannot be is refused, with the value. */
static void refusals(void **state)
{
    kofn_problem pb = {KOFN_MATVEC, 20, 20, 1, KOFN_F64, false};
    kofn_problem wide = {KOFN_MATVEC, 20, 21, 1, KOFN_F64, false};
    kofn_node_options o = {.life = 1,
                           .nodes = 3,
                           .groups = 3,
                           .wish = KOFN_NO_SEAT,
                           .decoding = KOFN_DECODE_REPLICATED};
    kofn_plan *p;
    kofn_node *n;

    (void)state;
    assert_ok(kofn_plan_new(&p, &wide, "mds:k=2", 3, 1));
    assert_status(KOFN_UNSUITED, kofn_node_new(&n, p, &o, 0));
    kofn_plan_free(p);
    assert_ok(kofn_plan_new(&p, &pb, "elastic:k=2,groups=2", 4, 1));
    assert_status(KOFN_UNSUITED, kofn_node_new(&n, p, &o, 0));
    assert_null(n);
    kofn_plan_free(p);
    assert_ok(kofn_plan_new(&p, &pb, "mds:k=2", 3, 1));
    o.groups = 65;
    assert_status(KOFN_INVAL, kofn_node_new(&n, p, &o, 0));
    assert_non_null(strstr(kofn_errmsg(), "65"));
    o.groups = 3;
    o.life = 0;
    assert_status(KOFN_INVAL, kofn_node_new(&n, p, &o, 0));
    o.life = 1;
    o.decoding = KOFN_DECODE_AUTO;
    assert_status(KOFN_INVAL, kofn_node_new(&n, p, &o, 0));
    kofn_plan_free(p);
}

/* A14: (1 - 1/n) k N multiply-adds against (k-1) N/(k n) numbers and a trip. */
static void costs(void **state)
{
    kofn_problem pb = {KOFN_MATVEC, 1000, 1000, 1, KOFN_F64, false};
    kofn_plan *p;

    (void)state;
    assert_ok(kofn_plan_new(&p, &pb, "mds:k=4", 8, 1));
    /* saved 3500 multiply-adds, moved 93.75 numbers more */
    assert_int_equal(kofn_decoding_for(p, 8, 1, 37, 1),
                     KOFN_DECODE_DISTRIBUTED);
    assert_int_equal(kofn_decoding_for(p, 8, 1, 38, 1),
                     KOFN_DECODE_REPLICATED);
    assert_int_equal(kofn_decoding_for(p, 8, 1, 1, 3400),
                     KOFN_DECODE_DISTRIBUTED);
    assert_int_equal(kofn_decoding_for(p, 8, 1, 1, 3410),
                     KOFN_DECODE_REPLICATED);
    kofn_plan_free(p);
}

/* ---- why somebody decides -------------------------------------------------------- */

enum { D_NODES = 8, D_K = 5, D_ROWS = 40, D_STEPS = 60 };

static void random_set(kf_rng *r, uint32_t set[D_K])
{
    bool in[D_NODES] = {false};

    for (size_t k = 0; k < D_K;) {
        size_t i = kf_rng_below(r, D_NODES);

        k += !in[i];
        in[i] = true;
    }
    for (uint32_t i = 0, k = 0; i < D_NODES; i++)
        if (in[i])
            set[k++] = i;
}

/* How far apart two of the nodes' iterates are at most, after all steps, when
 * each decodes from seats of its own, or all from the same; in either case
 * with an error of one rounding of its own, as unlike machines make. */
static double drift(const char *spec, bool same, uint64_t seed)
{
    kofn_problem pb = {KOFN_MATVEC, D_ROWS, D_ROWS, 1, KOFN_F64, false};
    kofn_matrix A = random_matrix(D_ROWS, D_ROWS, KOFN_F64, 5);
    kofn_matrix v[D_NODES], piece[D_NODES], next = {numbers(D_ROWS, 8), D_ROWS,
                                                    1, 1, KOFN_F64};
    kf_rng r = kf_rng_stream(seed, KF_FOR_SAMPLE, 79, 0);
    kofn_block *block[D_NODES];
    kofn_plan *plan;
    kf_resident res;
    kf_code *code;
    kf_cache *cache;
    kf_scratch scratch = {0};
    double *a = A.data, worst = 0, scalar[KOFN_SCALARS];
    size_t seats[D_NODES];
    sim_node any = {.steps = D_STEPS};

    for (size_t i = 0; i < D_ROWS; i++)
        for (size_t j = 0; j < i; j++)
            a[i * D_ROWS + j] = a[j * D_ROWS + i];
    assert_ok(kofn_plan_new(&plan, &pb, spec, D_NODES, 3));
    assert_ok(kf_code_new(&code, plan));
    assert_ok(kf_cache_new(&cache, code, 1 << 20));
    assert_ok(kf_resident_dense(&res, plan, &A));
    for (size_t i = 0; i < D_NODES; i++)
        seats[i] = i;
    assert_ok(kf_encode(&res, code, seats, D_NODES, block));
    for (size_t i = 0; i < D_NODES; i++) {
        size_t rows = plan->span * plan->layout.lanes;

        v[i] = random_matrix(D_ROWS, 1, KOFN_F64, 6);
        piece[i] = (kofn_matrix){numbers(rows, 8), rows, 1, 1, KOFN_F64};
    }
    for (uint64_t t = 1; t <= D_STEPS; t++) {
        uint32_t set[D_K];

        random_set(&r, set);
        for (size_t i = 0; i < D_NODES; i++)
            assert_ok(kofn_compute(block[i], &v[i], 0, plan->span, &piece[i],
                                   NULL, NULL));
        for (size_t i = 0; i < D_NODES; i++) {
            const kf_decoder *d;
            kf_source source[D_K];
            double *x = v[i].data;
            bool final;

            if (!same)
                random_set(&r, set);
            assert_ok(kf_cache_get(cache, set, D_K, false, &d));
            for (size_t k = 0; k < D_K; k++)
                source[k] = (kf_source){&piece[set[k]], 0, plan->span};
            assert_ok(kf_decode(plan, d, source, 0, 0, plan->span, &next,
                                &scratch));
            assert_ok(sim_update(&any, t, D_ROWS, x, next.data, scalar, &final));
            for (size_t e = 0; e < D_ROWS; e++)
                x[e] *= 1 + (kf_rng_uniform(&r) - 0.5) * 0x1p-52;
        }
    }
    for (size_t i = 1; i < D_NODES; i++)
        worst = fmax(worst, relative_error(v[i].data, v[0].data, D_ROWS));
    for (size_t i = 0; i < D_NODES; i++) {
        kofn_block_drop(block[i]);
        kf_free(v[i].data);
        kf_free(piece[i].data);
    }
    kf_scratch_free(&scratch);
    kf_resident_free(&res);
    kf_cache_free(cache);
    kf_code_free(code);
    kofn_plan_free(plan);
    kf_free(next.data);
    kf_free(A.data);
    return worst;
}

static void drifting(void **state)
{
    static const char *const spec[] = {"mds:k=5", "mds:k=5,basis=gauss_sys",
                                       "mds:k=5,basis=harmonic"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        double apart = 0, same = 0;

        for (uint64_t seed = 0; seed < 5; seed++) {
            apart = fmax(apart, drift(spec[i], false, seed));
            same = fmax(same, drift(spec[i], true, seed));
        }
        print_message("%-24s %d iterations: own seats %.2g, the same %.2g\n",
                      spec[i], D_STEPS, apart, same);
        assert_at_most(same, 1e-15); /* one rounding, never more */
        assert_true(apart > 100 * same);
    }
}

/* ---- threads, in real time ------------------------------------------------------- */

enum { THREADS = 6 };

typedef struct life {
    pthread_t thread;
    kofn_mesh *mesh;
    const kofn_plan *plan;
    const kofn_matrix *A;
    kofn_matrix v;
    uint32_t seat;
    kofn_decoding decoding;
    unsigned sleep_at, die_at; /* iterations; 0: never */
    bool slept;
    kofn_transport *t;
    kofn_status status;
    kofn_iterate_result res;
    kofn_node_view end;
} life;

static kofn_status send_nothing(kofn_transport *t, kofn_peer peer,
                                const void *head, size_t head_bytes,
                                const void *body, size_t body_bytes,
                                bool urgent, void (*done)(void *), void *ud)
{
    (void)t, (void)peer, (void)head, (void)head_bytes, (void)body;
    (void)body_bytes, (void)urgent;
    if (done)
        done(ud);
    return KOFN_OK;
}

/* Stops for longer than silence, or goes without a word. */
static int life_watch(void *ud, const kofn_node_view *view, const double *x)
{
    life *l = ud;

    (void)x;
    if (l->sleep_at && view->at.t >= l->sleep_at && !l->slept) {
        struct timespec nap = {0, 400000000};

        l->slept = true;
        nanosleep(&nap, NULL);
    }
    if (l->die_at && view->at.t >= l->die_at) {
        l->t->send = send_nothing;
        return 1;
    }
    return 0;
}

static void *live_life(void *ud)
{
    life *l = ud;
    kofn_iterate_options o = {.size = sizeof o,
                              .tolerance = 1e-12,
                              .max_iterations = 400};
    kofn_peer_options p = {.size = sizeof p,
                           .nodes = THREADS,
                           .seat = l->seat,
                           .decoding = l->decoding,
                           .beat = 10 * MS,
                           .linger = 20 * KOFN_SECOND,
                           .give_up = 60 * KOFN_SECOND,
                           .watch = life_watch,
                           .watch_ud = l};

    l->status = kofn_mesh_join(l->mesh, &l->t);
    if (l->status)
        return NULL;
    l->status = kofn_power_peers(l->t, l->plan, l->A, &l->v, &o, &p, &l->res,
                                 &l->end);
    l->t->close(l->t, KOFN_SECOND);
    return NULL;
}

/* A matrix with eigenvalues 1 and 0.9 and less, and its plain iteration. */
static void threads(void **state)
{
    enum { ROWS = 60 };
    kofn_problem pb = {KOFN_MATVEC, ROWS, ROWS, 1, KOFN_F64, false};

    (void)state;
    for (int d = 0; d < 2; d++) {
        kofn_matrix A = random_matrix(ROWS, ROWS, KOFN_F64, 8), plain;
        kofn_matrix start = random_matrix(ROWS, 1, KOFN_F64, 9);
        kofn_iterate_options o = {.size = sizeof o,
                                  .tolerance = 1e-12,
                                  .max_iterations = 400};
        kofn_iterate_result want;
        life l[THREADS + 1];
        kofn_plan *plan;
        kofn_mesh *mesh;
        double *a = A.data;

        for (size_t i = 0; i < ROWS; i++) {
            for (size_t j = 0; j < i; j++)
                a[i * ROWS + j] = a[j * ROWS + i] *= 0.01;
            a[i * ROWS + i] = i == 7 ? 2 : 1.8 * (double)i / ROWS;
        }
        plain = start;
        plain.data = numbers(ROWS, 8);
        memcpy(plain.data, start.data, ROWS * 8);
        assert_ok(kofn_power_plain(&A, &plain, &o, &want));
        assert_true(want.converged);
        assert_ok(kofn_plan_new(&plan, &pb, "mds:k=4", THREADS, 3));
        assert_ok(kofn_mesh_new(&mesh));
        for (size_t i = 0; i <= THREADS; i++) {
            l[i] = (life){.mesh = mesh,
                          .plan = plan,
                          .A = &A,
                          .seat = i < THREADS ? (uint32_t)i : KOFN_NO_SEAT,
                          .decoding = d ? KOFN_DECODE_DISTRIBUTED
                                        : KOFN_DECODE_REPLICATED,
                          .sleep_at = i == 1 ? 9 : 0,
                          .die_at = i == 0 ? 5 : 0,
                          .v = start};
            l[i].v.data = numbers(ROWS, 8);
            memcpy(l[i].v.data, start.data, ROWS * 8);
            if (i == THREADS) { /* the last one comes late */
                struct timespec nap = {0, 30000000};

                nanosleep(&nap, NULL);
            }
            assert_int_equal(pthread_create(&l[i].thread, NULL, live_life,
                                            &l[i]), 0);
        }
        for (size_t i = 0; i <= THREADS; i++)
            pthread_join(l[i].thread, NULL);
        for (size_t i = 0; i <= THREADS; i++) {
            double sign, error = 0;
            const double *x = l[i].v.data, *y = plain.data;

            if (l[i].die_at)
                continue;
            if (l[i].status)
                fail_msg("node %zu: %s", i, kofn_strerror(l[i].status));
            sign = x[7] * y[7] < 0 ? -1 : 1;
            for (size_t r = 0; r < ROWS; r++)
                error = fmax(error, fabs(x[r] - sign * y[r]));
            assert_at_most(error, 1e-11);
            assert_true(l[i].end.final && l[i].res.converged);
            assert_memory_equal(x, l[2].v.data, ROWS * 8);
            assert_int_equal(l[i].res.iterations, want.iterations);
            assert_at_most(fabs(l[i].res.eigenvalue - want.eigenvalue), 1e-11);
        }
        for (size_t i = 0; i <= THREADS; i++)
            kf_free(l[i].v.data);
        kofn_mesh_free(mesh);
        kofn_plan_free(plan);
        kf_free(A.data);
        kf_free(start.data);
        kf_free(plain.data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fair),
        cmocka_unit_test(drifting),
        cmocka_unit_test(one_blow),
        cmocka_unit_test(two_blows),
        cmocka_unit_test(orders),
        cmocka_unit_test(histories),
        cmocka_unit_test(deaf),
        cmocka_unit_test(owing),
        cmocka_unit_test(halves),
        cmocka_unit_test(exits),
        cmocka_unit_test(verdicts),
        cmocka_unit_test(too_few),
        cmocka_unit_test(refusals),
        cmocka_unit_test(costs),
        cmocka_unit_test(threads),
    };

    rig_begin();
    cmocka_set_test_filter(getenv("KOFN_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
