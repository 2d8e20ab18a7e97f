/* peer_hostile_test.c -- hostile nodes in a mesh, next to honest ones. Forged
 * notes are not believed and wrong partial products are not used. No honest
 * node is blamed, and the iteration advances. */
#include "base/lent.h"
#include "mesh_hostile.h"

#include <malloc.h>

/* ---- memory -------------------------------------------------------------- */

static size_t held, most;

static void *count_bytes(void *ud, void *p, size_t want)
{
    (void)ud;
    held -= p ? malloc_usable_size(p) : 0;
    free(p);
    p = want ? aligned_alloc(64, (want + 63) / 64 * 64) : NULL;
    held += p ? malloc_usable_size(p) : 0;
    most = held > most ? held : most;
    return p;
}

/* ---- a run --------------------------------------------------------------- */

typedef struct hostile_case {
    const char *spec;
    size_t honest, turncoats, forgers, confirm;
    uint64_t kinds;
    kofn_time pace;
    bool distributed, deaf;
    double change;
} hostile_case;

static void pause_node(sim *s, size_t id)
{
    s->node[id].stopped = s->now + 60 * MS;
}

static size_t run(const hostile_case *c, uint64_t seed, double *worst,
                  uint64_t *named)
{
    hostile e = {.honest = c->honest,
                 .forgers = c->forgers,
                 .pace = c->pace,
                 .until = 3 * KOFN_SECOND,
                 .change = c->change,
                 .kinds = c->kinds,
                 .stay = c->deaf};
    size_t events;
    sim s;

    sim_up(&s, c->spec, c->honest + c->turncoats, 19, 12, seed);
    s.nodes += c->forgers;
    s.opt.confirm = c->confirm;
    if (c->distributed)
        s.opt.decoding = KOFN_DECODE_DISTRIBUTED;
    for (size_t i = 0; c->deaf && i < c->forgers; i++)
        s.node[s.nodes - 1 - i].deaf = true;
    hostile_start(&s, &e);
    for (size_t i = 0; i < seed % 3; i++)
        sim_at(&s, (kofn_time)(sim_draw(&s) * 80 * (double)MS), SIM_FAULT, 0,
               kf_rng_below(&s.rng, c->honest));
    sim_finish(&s, 20 * KOFN_SECOND, pause_node, c->spec, seed);
    hostile_check(&s);
    for (size_t i = 0; i < c->honest; i++) {
        kofn_node_view v;

        kf_node_look(s.node[i].host->node, &v);
        assert_int_equal(v.at.step, s.steps);
        *named += v.liars;
    }
    if (getenv("SHOW"))
        fprintf(stderr, "seed %llu kinds %llx d %d: %.3g s, %zu forged\n",
                (unsigned long long)seed, (unsigned long long)c->kinds,
                c->distributed, (double)s.now * 1e-9, e.sent);
    *worst = fmax(*worst, s.worst);
    events = e.sent;
    sim_down(&s);
    return events;
}

/* Sends one type of note at a time, in a flood. */
static void forged_notes(void **state)
{
    size_t events = 0;
    uint64_t named = 0;
    double worst = 0;

    (void)state;
    for (uint64_t seed = 0; seed < often(1); seed++)
        for (unsigned type = KF_NOTE_BEAT; type <= KF_NOTE_PRINT; type++)
            for (int d = 0; d < 2; d++) {
                const hostile_case c = {.spec = "mds:k=2",
                                        .honest = 4,
                                        .forgers = 1,
                                        .confirm = 2,
                                        .kinds = kf_bit(type),
                                        .pace = MS / 2,
                                        .distributed = d};

                events += run(&c, seed, &worst, &named);
            }
    print_message("%zu forged notes, worst deviation %.3g\n", events, worst);
}

/* The forger asks for everything repeatedly and accepts no packet. */
static void deaf_forger(void **state)
{
    uint64_t named = 0;
    double worst = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 4; seed++) {
        const hostile_case c = {.spec = "mds:k=2",
                                .honest = 4,
                                .forgers = 1,
                                .confirm = 2,
                                .kinds = kf_bit(KF_NOTE_ASK) |
                                         kf_bit(KF_NOTE_WANT) |
                                         kf_bit(KF_NOTE_BEAT),
                                .pace = MS / 10,
                                .distributed = seed % 2,
                                .deaf = true};

        run(&c, seed, &worst, &named);
    }
    assert_int_equal(named, 0);
}

/* ---- one node, and what it receives -------------------------------------- */

#define ONE_PEER 7
#define ANOTHER 8

/* A transport over which one note arrives `left` times. It accepts nothing for
 * ONE_PEER. */
typedef struct channel {
    kofn_transport t;
    kofn_packet p;
    size_t left, forgotten[16], vectors;
    kofn_time now;
} channel;

static kofn_time channel_clock(void *ud)
{
    return ((channel *)ud)->now;
}

static kofn_status channel_send(kofn_transport *t, kofn_peer peer,
                                const void *head, size_t head_bytes,
                                const kofn_lent *body, bool urgent)
{
    (void)head_bytes;
    (void)body;
    (void)urgent;
    if (peer == ONE_PEER)
        return KOFN_AGAIN;
    ((channel *)t)->vectors +=
        ((const unsigned char *)head)[KF_AT_TYPE] == KF_NOTE_VECTOR;
    kf_give_back(body);
    return KOFN_OK;
}

static kofn_status channel_wait(kofn_transport *t, kofn_time atmost,
                                kofn_packet *p)
{
    channel *l = (channel *)t;

    (void)atmost;
    if (l->left == 0)
        return KOFN_AGAIN;
    l->left--;
    *p = l->p;
    return KOFN_OK;
}

static void channel_forget(kofn_transport *t, kofn_peer peer)
{
    ((channel *)t)->forgotten[peer]++;
}

/* Returns a lone node of a mesh of `nodes`, with a vector of `rows` rows. */
static kf_host *one_node(channel *l, sim *s, size_t nodes, size_t rows)
{
    kofn_peer_options o;
    kf_host *h;

    sim_up(s, "mds:k=2", nodes, rows, 2, 1);
    o = s->opt;
    o.incarnation = 1;
    o.confirm = nodes / 2;
    *l = (channel){.t = {.size = sizeof l->t,
                         .name = "channel",
                         .send = channel_send,
                         .wait = channel_wait,
                         .forget = channel_forget},
                   .now = KOFN_SECOND};
    assert_ok(kf_host_new(&h, &l->t, &s->program, &o, &s->v0,
                          (kf_timer){channel_clock, l}));
    return h;
}

static void node_down(kf_host *h, sim *s)
{
    kf_host_free(h);
    sim_down(s);
}

/* Lets the node hear `times` notes of a peer. */
static void hear_times(channel *l, kf_host *h, kofn_peer peer,
                       kf_note_type type, size_t times)
{
    const kf_note note = {.type = type, .from = 1000 + peer};

    l->p =
        (kofn_packet){.what = KOFN_PACKET, .peer = peer, .head_bytes = KF_HEAD};
    kf_note_write(l->p.head, &note, h->job, NULL, 0);
    for (l->left = times; l->left > 0;)
        assert_ok(kf_mail_receive(h, 0));
}

/* Two peers have one key, two another, and two have none. */
static const char *channel_principal(kofn_transport *t, kofn_peer peer)
{
    static const char *const name[] = {"one", "one", "another", "another"};

    (void)t;
    return peer - ANOTHER < 4 ? name[peer - ANOTHER] : NULL;
}

static kf_route *channel_route(kf_host *h, kofn_peer peer)
{
    size_t i = 0;

    while (i < h->net.routes && h->net.route[i].peer != peer)
        i++;
    assert_true(i < h->net.routes);
    return &h->net.route[i];
}

/* The peer sends the fingerprint of our own vector, which is what the asked
 * node sent. Returns true if that suffices. */
static bool agrees(kf_host *h, kofn_peer peer)
{
    kf_route *r = channel_route(h, peer);
    kf_note ready;
    kf_buffer *body;

    assert_true(r->witness.key != 0);
    kf_vector_quorum_print(
        r, &(kf_note){.type = KF_NOTE_PRINT,
                      .from = r->incarnation,
                      .at = {1, 1},
                      .print.value = kf_print_local(&h->it, r->witness.key)});
    if (!kf_vector_quorum_ready(h, &ready, &body))
        return false;
    kf_buffer_drop(body);
    return true;
}

/* Peer ANOTHER, which was asked, sends our own vector with one number off by
 * `wrong_by`. */
static void asked_sends(kf_host *h, const sim *s, double wrong_by)
{
    const kf_note ask = {.type = KF_NOTE_ASK, .from = 1};
    const kf_note vector = {
        .type = KF_NOTE_VECTOR, .from = 1000 + ANOTHER, .at = {1, 1}};
    kf_buffer *body;

    assert_ok(kf_vector_quorum_ask(h, vector.from, &ask));
    assert_ok(kf_buffer_new(&body, KOFN_SCALARS + s->v0.rows, 1, KOFN_F64));
    memset(body->m.data, 0, KOFN_SCALARS * sizeof(double));
    memcpy((double *)body->m.data + KOFN_SCALARS, s->v0.data,
           s->v0.rows * sizeof(double));
    ((double *)body->m.data)[KOFN_SCALARS + 7] += wrong_by;
    kf_vector_quorum_vector(h, channel_route(h, ANOTHER), &vector, body);
    kf_buffer_drop(body);
}

/* The key that sent the iterate cannot confirm it, and two peers of one key
 * count as one. A peer without a key counts for itself. */
static void one_key_confirms_once(void **state)
{
    channel l;
    sim s;
    kf_host *h;

    (void)state;
    h = one_node(&l, &s, 8, 19);
    l.t.principal_of = channel_principal;
    for (kofn_peer peer = ANOTHER; peer < ANOTHER + 6; peer++)
        hear_times(&l, h, peer, KF_NOTE_BEAT, 1);
    asked_sends(h, &s, 0);
    for (kofn_peer peer = ANOTHER + 1; peer < ANOTHER + 5; peer++)
        assert_false(agrees(h, peer));
    assert_true(agrees(h, ANOTHER + 5));
    node_down(h, &s);
}

/* A node that accepts a vector is reported wrong if the votes about it differ.
 * So fingerprints may differ by no more than votes may. For a vector of ones
 * the smallest fingerprint is a quarter of its length. An error shows by at
 * least a quarter, under every key. */
static void prints_and_votes(void **state)
{
    enum { ROWS = 1300 };
    double room;
    channel l;
    sim s;
    kf_host *h;

    (void)state;
    h = one_node(&l, &s, 4, ROWS);
    for (kofn_peer peer = ANOTHER; peer < ANOTHER + 2; peer++)
        hear_times(&l, h, peer, KF_NOTE_BEAT, 1);
    for (size_t i = 0; i < ROWS; i++)
        ((double *)s.v0.data)[i] = ((double *)h->it.v->m.data)[i] = 1;
    h->it.noise = 1.1e-13;
    room = 20 * sqrt(ROWS + KOFN_SCALARS) * 2 * h->it.noise;
    assert_true(5 * room < 1e-11 * ROWS / 4);
    asked_sends(h, &s, 5 * room);
    assert_true(agrees(h, ANOTHER + 1)); /* there are no votes */
    h->opt.errors = KOFN_ERRORS_ADVERSARIAL;
    asked_sends(h, &s, 5 * room);
    assert_false(agrees(h, ANOTHER + 1));
    asked_sends(h, &s, room / 2);
    assert_true(agrees(h, ANOTHER + 1));
    h->it.noise = 0; /* it has decoded nothing, so it does not know the code */
    asked_sends(h, &s, 5 * room);
    assert_true(agrees(h, ANOTHER + 1));
    node_down(h, &s);
}

/* The weights are products of two factors from 1/2 to 1. An error of 1 in one
 * place changes the fingerprint by 1/4 to 1, by another amount under each key.
 */
static void fingerprints_show_every_number(void **state)
{
    enum { ROWS = 1300, KEYS = 8 };
    channel l;
    sim s;
    kf_host *h;

    (void)state;
    h = one_node(&l, &s, 4, ROWS);
    for (size_t i = 0; i < KOFN_SCALARS + ROWS; i++) {
        double *x = i < KOFN_SCALARS
                        ? &h->it.scalar[i]
                        : (double *)h->it.v->m.data + (i - KOFN_SCALARS);
        double share[KEYS];

        for (uint64_t key = 0; key < KEYS; key++) {
            double was = kf_print_local(&h->it, key + 1);

            *x += 1;
            share[key] = fabs(kf_print_local(&h->it, key + 1) - was);
            *x -= 1;
            assert_true(share[key] > 0.2499 && share[key] < 1.0001);
            for (uint64_t other = 0; other < key; other++)
                assert_true(fabs(share[key] - share[other]) > 1e-12);
        }
    }
    node_down(h, &s);
}

static const char *channel_one(kofn_transport *t, kofn_peer peer)
{
    (void)t;
    (void)peer;
    return "one";
}

static void incarnations_of_a_key(void **state)
{
    channel l;
    sim s;
    kf_host *h;

    (void)state;
    h = one_node(&l, &s, 4, 19);
    l.t.principal_of = channel_one;
    for (kofn_peer peer = ANOTHER; peer < ANOTHER + 100; peer++)
        hear_times(&l, h, peer, KF_NOTE_BEAT, 1);
    assert_int_equal(h->node->table.count, 8);
    assert_int_equal(h->net.foreign, 92);
    node_down(h, &s);
}

/* The vector is a new one at each request. Vectors that wait for a peer that
 * accepts nothing do not add up. */
static void waiting_vectors(void **state)
{
    channel l;
    sim s;
    kf_host *h;
    size_t before;

    (void)state;
    h = one_node(&l, &s, 4, 256);
    before = held;
    for (uint64_t t = 1; t <= 600; t++) {
        hear_times(&l, h, ONE_PEER, KF_NOTE_ASK, 2);
        l.now += MS;
        kf_host_advance(h, (kofn_iterate_id){t, 1});
    }
    hostile_check_waiting(h, ONE_PEER);
    assert_true(kf_mail_waits(&h->net) > 0);
    assert_true(held - before < 256 << 10);
    node_down(h, &s);
}

static void waiting_bytes(void **state)
{
    static uint32_t list[4096];
    channel l;
    sim s;
    kf_host *h;

    (void)state;
    h = one_node(&l, &s, 4, 19);
    hear_times(&l, h, ONE_PEER, KF_NOTE_BEAT, 1);
    for (uint64_t t = 1; t <= 600; t++)
        assert_ok(kf_mail_to(h, ONE_PEER,
                             &(kf_note){.type = KF_NOTE_DECIDE,
                                        .from = 1,
                                        .at = {t, 1},
                                        .list = list,
                                        .listed = 4096}));
    hostile_check_waiting(h, ONE_PEER);
    assert_in_range(kf_mail_waits(&h->net), 1, 16);
    node_down(h, &s);
}

static void repeated_requests(void **state)
{
    channel l;
    sim s;
    kf_host *h;

    (void)state;
    h = one_node(&l, &s, 4, 19);
    for (int i = 0; i < 1000; i++) {
        hear_times(&l, h, ANOTHER, KF_NOTE_ASK, 10);
        l.now += MS;
    }
    assert_in_range(l.vectors, 10, 50);
    node_down(h, &s);
}

/* A peer that sends one note for each iterate is heard, and so is a peer after
 * one large burst. */
static void floods(void **state)
{
    kofn_node_view v;
    uint64_t foreign;
    channel l;
    sim s;
    kf_host *h;

    (void)state;
    h = one_node(&l, &s, 4, 19);
    for (uint64_t t = 1; t <= 2000; t++) {
        hear_times(&l, h, ANOTHER, KF_NOTE_ENOUGH, 300);
        kf_host_advance(h, (kofn_iterate_id){t, 1});
    }
    assert_int_equal(h->net.foreign, 0);
    hear_times(&l, h, ANOTHER, KF_NOTE_ENOUGH, 100000);
    assert_in_range(h->net.foreign, 1, 99999);
    l.now += 20 * KOFN_SECOND;
    foreign = h->net.foreign;
    hear_times(&l, h, ANOTHER, KF_NOTE_ENOUGH, 10000);
    assert_int_equal(h->net.foreign, foreign);
    assert_int_equal(l.forgotten[ANOTHER], 0);
    hear_times(&l, h, ONE_PEER, KF_NOTE_ASK, 1);
    assert_int_equal(kf_mail_waits(&h->net), 1);
    hear_times(&l, h, ONE_PEER, KF_NOTE_BEAT, 1000000);
    assert_int_equal(l.forgotten[ONE_PEER], 1);
    kf_node_look(h->node, &v);
    assert_int_equal(v.liars, 0); /* its notes were not wrong */
    assert_int_equal(kf_route_of(&h->net, ONE_PEER)->outbox.count, 0);
    hear_times(&l, h, ANOTHER, KF_NOTE_ENOUGH, 10);
    assert_int_equal(l.forgotten[ANOTHER], 0);
    foreign = h->net.foreign;
    h->confirm =
        1; /* a node that believes every other also bears every other */
    hear_times(&l, h, ANOTHER + 1, KF_NOTE_ENOUGH, 1000000);
    assert_int_equal(h->net.foreign, foreign);
    assert_int_equal(l.forgotten[ANOTHER + 1], 0);
    node_down(h, &s);
}

/* ---- whole runs ---------------------------------------------------------- */

/* With `confirm` 1 a single forger succeeds, and with 2 it does not. */
static void one_forger(void **state)
{
    size_t wrong[2] = {0, 0};

    (void)state;
    for (size_t confirm = 1; confirm <= 2; confirm++)
        for (uint64_t seed = 0; seed < often(16); seed++) {
            hostile e = {.honest = 4,
                         .forgers = 1,
                         .pace = MS / 2,
                         .until = KOFN_SECOND,
                         .kinds =
                             kf_bit(KF_NOTE_BEAT) | kf_bit(KF_NOTE_VECTOR)};
            sim s;

            sim_up(&s, "mds:k=2", 4, 19, 12, seed);
            s.nodes++;
            s.opt.confirm = confirm;
            s.lenient = true;
            hostile_start(&s, &e);
            sim_run(&s, 2 * KOFN_SECOND, NULL);
            wrong[confirm - 1] += s.wrong;
            for (size_t i = 0; i < 4 && confirm == 2; i++) {
                kofn_node_view v;

                kf_node_look(s.node[i].host->node, &v);
                assert_true(v.final && v.at.step == s.steps);
            }
            sim_down(&s);
        }
    print_message("%zu wrong iterates if every node is believed\n", wrong[0]);
    assert_happened(wrong[0] > 0);
    assert_int_equal(wrong[1], 0);
}

/* The forger reconnects with new incarnations, or under the names of other
 * nodes. It counts as one, so it does not end the run early. */
static void reconnecting_forger(void **state)
{
    size_t sent = 0;

    (void)state;
    for (uint64_t seed = 0; seed < often(240); seed++) {
        hostile e = {
            .honest = 4,
            .forgers = 1,
            .pace = (kofn_time)(1 + seed % 4) * MS / 2,
            .until = KOFN_SECOND / 5,
            .kinds =
                kf_bit(KF_NOTE_BEAT) |
                (seed % 2 ? kf_bit(KF_NOTE_VECTOR) | kf_bit(KF_NOTE_PRINT) : 0),
            .hurry = true};
        sim s;

        sim_up(&s, "mds:k=2", 4, 19, 12, seed);
        s.nodes++;
        s.opt.confirm = 2;
        s.compute = 4 * MS;
        hostile_start(&s, &e);
        sim_finish(&s, 20 * KOFN_SECOND, NULL, "comes again", seed);
        hostile_check(&s);
        for (size_t i = 0; i < 4; i++) {
            kofn_node_view v;

            kf_node_look(s.node[i].host->node, &v);
            if (v.at.step != s.steps)
                fail_msg("seed %llu: node %zu ended at iterate %llu",
                         (unsigned long long)seed, i,
                         (unsigned long long)v.at.step);
        }
        sent += e.sent;
        sim_down(&s);
    }
    print_message("EVENTS %zu notes of a forger that reconnects\n", sent);
}

/* Every partial product of one of five nodes is wrong. */
static void faulty_node_is_named(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 6; seed++) {
        const hostile_case c = {.spec = seed % 2 ? "mds:k=3" : "mds:k=2",
                                .honest = 4,
                                .turncoats = 1,
                                .confirm = 2,
                                .change = 1};
        uint64_t named = 0;
        double worst = 0;

        run(&c, seed, &worst, &named);
        assert_true(named > 0);
    }
}

static void histories(void **state)
{
    static const char *const spec[] = {"mds:k=2", "mds:k=3,basis=gauss_sys",
                                       "mds:k=1", "mds:k=3"};
    static const size_t needs[] = {2, 3, 1, 3};
    const char *one = getenv("KOFN_TEST_SEED");
    uint64_t first = one ? strtoull(one, NULL, 10) : 0, named = 0;
    size_t n = often(40), events = 0;
    double worst = 0;

    (void)state;
    for (uint64_t seed = first; seed < first + n; seed++) {
        kf_rng r = kf_rng_stream(seed, KF_FOR_SAMPLE, 79, 0);
        size_t which = kf_rng_below(&r, 4);
        hostile_case c = {.spec = spec[which],
                          .turncoats = kf_rng_below(&r, 3),
                          .forgers = kf_rng_below(&r, 3),
                          .distributed = kf_rng_below(&r, 2),
                          .change = 0.5 * kf_rng_uniform(&r)};
        size_t bad = c.turncoats + c.forgers;

        c.honest = kf_max(needs[which], bad + 2) + kf_rng_below(&r, 2);
        c.confirm = bad + 1;
        c.pace = (kofn_time)((0.2 + 5 * kf_rng_uniform(&r)) * (double)MS);
        events += run(&c, seed, &worst, &named);
    }
    print_message(
        "EVENTS %zu hostile notes in %zu histories: %llu times a "
        "faulty node was named, worst deviation %.3g, at most %zu KiB "
        "held\n",
        events, n, (unsigned long long)named, worst, most >> 10);
    assert_happened(named > 0);
    assert_true(most < (size_t)64 << 20);
}

TEST_FILE(peer_hostile_test)
{
    const struct CMUnitTest tests[] = {
        TEST(waiting_vectors,
             "hostile: one vector waits for a peer that accepts nothing"),
        TEST(waiting_bytes,
             "hostile: the bytes that wait for one peer are bounded"),
        TEST(repeated_requests,
             "hostile: repeated requests get the vector once in 20 ms at most"),
        TEST(floods,
             "hostile: a flood is not read, and its connection is ended"),
        TEST(deaf_forger,
             "hostile: a peer that asks for all and takes none does no harm"),
        TEST(forged_notes,
             "hostile: forged notes of any type cause no wrong iterate"),
        TEST(one_forger,
             "hostile: one forger is not believed if two nodes must confirm"),
        TEST(one_key_confirms_once,
             "hostile: one key confirms an iterate once"),
        TEST(prints_and_votes,
             "hostile: fingerprints tolerate the same rounding as votes"),
        TEST(fingerprints_show_every_number,
             "hostile: a fingerprint shows an error in every number"),
        TEST(incarnations_of_a_key,
             "hostile: 8 incarnations of one key are heard at a time"),
        TEST(reconnecting_forger,
             "hostile: a forger that reconnects does not end the run early"),
        TEST(
            faulty_node_is_named,
            "hostile: a node with wrong partial products is named and disconnected"),
        TEST(histories,
             "hostile: seeded histories give no wrong iterate or false blame"),
    };

    rig_begin();
    kofn_set_alloc(count_bytes, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
