/* peer_node_test.c -- what the state machine of a single node of a mesh
 * believes: from which nodes, how far ahead, how often, and how many. */
#include "patient_node.h"

/* `from` reports an epoch that `leader` proposed. Returns true if the node is
 * in it then. */
static bool follows(kf_node *n, kofn_incarnation from, kofn_incarnation leader,
                    uint64_t number, kofn_time now)
{
    const kf_member only = {leader, 0, true};
    const kofn_epoch epoch = {number, leader};
    kofn_node_view v;

    hears_note(n, from,
               &(kf_note){.type = KF_NOTE_EPOCH,
                          .epoch = epoch,
                          .member = &only,
                          .members = 1},
               now);
    kf_node_look(n, &v);
    return kf_same_epoch(v.epoch, epoch);
}

/* A third node's epoch is believed if two report it. A proposer's own report
 * is not believed if its number is far beyond the epochs of two others. */
static void epochs_far_ahead(void **state)
{
    const kofn_time now = 2 * KOFN_SECOND;
    kf_node *n;
    sim s;

    (void)state;
    n = patient_node(&s, 4);
    hears_first(n, 103);
    assert_false(follows(n, 102, 101, 5, now));
    assert_true(follows(n, 103, 101, 5, now));
    assert_false(follows(n, 103, 103, 5 + (1 << 20) + 1, now));
    assert_false(follows(n, 103, 103, UINT64_MAX, now));
    assert_true(follows(n, 103, 103, 5 + (1 << 20), now));
    node_down(n, &s);
}

/* The wait until the leader is followed again doubles each time, up to 256
 * times the first. */
static void failed_leader(void **state)
{
    const kofn_time step = KOFN_SECOND / 20;
    kofn_time now = 2 * KOFN_SECOND, led = now, before = 0;
    kf_node *n;
    sim s;

    (void)state;
    n = patient_node(&s, 4);
    hears_first(n, 103);
    assert_true(follows(n, 101, 101, 1, now));
    for (uint64_t number = 2; number < 12; number++) {
        kofn_time waited;

        while (!follows(n, 101, 101, number, now += step))
            assert_true(now < 1000 * KOFN_SECOND);
        waited = now - led;
        if (number > 2 && number <= 9)
            assert_in_range(waited - 2 * before + 2 * step, 0, 4 * step);
        if (number > 9)
            assert_in_range(waited - before + 2 * step, 0, 4 * step);
        led = now;
        before = waited;
    }
    /* another leader is followed at once */
    assert_true(follows(n, 102, 102, 100, now));
    node_down(n, &s);
}

/* Incarnation 101 leads, is ready and decides nothing. Returns the time at
 * which the node takes over. */
static kofn_time takes_over(kf_node *n, kofn_time now)
{
    const kofn_epoch epoch = {n->in.epoch.number + 1, 101};
    const kf_member both[] = {{n->opt.incarnation, 0, true}, {101, 1, true}};
    kf_node_action action;

    hears_note(n, 101,
               &(kf_note){.type = KF_NOTE_EPOCH,
                          .epoch = epoch,
                          .member = both,
                          .members = 2},
               now);
    hears_note(n, 101,
               &(kf_note){.type = KF_NOTE_BEAT,
                          .epoch = epoch,
                          .at = n->stage.at,
                          .idle = true,
                          .seat = 1},
               now);
    does_all(n, now);
    while (kf_same_epoch(n->in.epoch, epoch)) {
        now += KOFN_SECOND / 20;
        assert_true(now < 10000 * KOFN_SECOND);
        assert_ok(kf_node_step(
            n, &(kf_node_event){.type = KF_NODE_TICK, .now = now}));
        while (kf_node_next(n, &action))
            ;
    }
    assert_true(kf_leads(n));
    return now;
}

/* The wait doubles although the node is the first in rank. Nodes at different
 * iterates must see that all are idle. */
static void failed_takeovers(void **state)
{
    kofn_time now = 2 * KOFN_SECOND, before = 0;
    kf_node *n;
    sim s;

    (void)state;
    n = patient_node(&s, 4);
    n->opt.patience = KOFN_SECOND;
    n->opt.changes = true; /* it computes no iterate alone */
    for (size_t times = 0; times < 8; times++) {
        kofn_time waited = takes_over(n, now) - now;

        assert_true(times == 0 || waited == 2 * before);
        now += before = waited;
    }
    node_down(n, &s);
}

/* Each incarnation has its own key. */
static void incarnations_are_bounded(void **state)
{
    kf_node *n;
    sim s;

    (void)state;
    n = patient_node(&s, 4);
    hears_first(n, 2999);
    assert_int_equal(n->table.count, 1024);
    node_down(n, &s);
}

/* There are two groups. The first and the third prompt member decide one each.
 */
static void prompt_members_decide(void **state)
{
    const kf_member member[] = {{1, 0, false},  {101, 1, true}, {102, 2, false},
                                {103, 3, true}, {104, 4, true}, {105, 5, true}};
    const kf_note epoch_note = {.type = KF_NOTE_EPOCH,
                                .epoch = {7, 104},
                                .member = member,
                                .members = sizeof member / sizeof *member};
    const kofn_time now = 2 * KOFN_SECOND;
    kf_node *n;
    sim s;

    (void)state;
    n = patient_node(&s, 6);
    hears_first(n, 105);
    n->opt.decoding = KOFN_DECODE_DISTRIBUTED;
    hears_note(n, 104, &epoch_note, now);
    assert_int_equal(n->in.members, 6);
    assert_int_equal(n->on->groups, 2);
    assert_int_equal(n->pieces.decider[0], 1);
    assert_int_equal(n->pieces.decider[1], 4);
    node_down(n, &s);
}

/* After 24 times the patience the node asks all others for the evidence. What
 * does not arrive then is left out. */
static void evidence_wait_is_bounded(void **state)
{
    (void)state;
    for (int errors = 0; errors < 2; errors++) {
        kf_node *n;
        sim s;

        n = patient_node(&s, 4);
        n->opt.errors = errors ? KOFN_ERRORS_ADVERSARIAL : KOFN_ERRORS_NONE;
        hears_first(n, 103);
        hears_epoch(n, 101, 4);
        assert_int_equal(n->pieces.mine | n->pieces.local, 0);
        for (size_t g = 0; g < n->on->groups; g++) {
            kf_cluster *c =
                &n->pieces
                     .cluster[g]; /* of a partial product that is not here */

            assert_ok(kf_grow(&c->evidence, &c->evidence_cap, 0,
                              sizeof *c->evidence));
            c->evidence[0] = 3;
            c->shown = 1;
        }
        n->now = n->stage.began + 24 * kf_peer_patience(n) - 1;
        assert_ok(kf_peer_tick_checks(n));
        assert_int_equal(n->pieces.local, 0);
        assert_false(n->pieces.cluster[0].judged);
        n->now++;
        n->alarm = KOFN_NEVER;
        assert_ok(kf_peer_tick_checks(n));
        assert_int_equal(n->alarm,
                         errors ? n->stage.began + 32 * kf_peer_patience(n) + 1
                                : KOFN_NEVER);
        assert_int_equal(n->pieces.local, errors ? n->on->all : 0);
        assert_int_equal(n->pieces.cluster[0].judged, errors);
        node_down(n, &s);
    }
}

static void newer_iterate_comes_first(void **state)
{

    (void)state;
    for (unsigned tries = 3; tries <= 4; tries++)
        for (int asked = 0; asked < 2; asked++) {
            kf_node *n;
            sim s;

            n = patient_node(&s, 4);
            n->opt.nodes = 5; /* the number that found a mesh: one is missing */
            hears_first(n, 103);
            assert_int_equal(n->in.epoch.number, 0);
            n->opt.nodes = 4;
            n->catch_up.asked = asked ? 101 : 0;
            n->catch_up.tries = tries;
            assert_ok(kf_peer_tick_epoch(n));
            assert_int_equal(n->in.epoch.number > 0, !asked || tries == 4);
            node_down(n, &s);
        }
}

static void faulty_keys_are_counted_once(void **state)
{
    static const struct {
        kofn_incarnation from;
        uint64_t key;
        size_t liars;
    } faulty[] = {{101, 7, 1}, {102, 7, 1}, {103, 8, 2},
                  {104, 7, 2}, {105, 0, 3}, {106, 0, 4}}; /* without a key */
    const kf_note beat = {.type = KF_NOTE_BEAT, .seat = KOFN_NO_SEAT};
    kf_node *n;
    sim s;

    (void)state;
    n = patient_node(&s, 8);
    n->opt.errors = KOFN_ERRORS_ADVERSARIAL;
    for (size_t i = 0; i < sizeof faulty / sizeof *faulty; i++) {
        kf_note note = beat;
        kf_node_event ev = {.type = KF_NODE_NOTE,
                            .now = 2 * KOFN_SECOND,
                            .incarnation = faulty[i].from,
                            .note = &note,
                            .principal = faulty[i].key};
        kf_node_action a;
        kofn_node_view v;

        note.from = faulty[i].from;
        for (int times = 0; times < 2; times++) {
            assert_ok(kf_node_step(n, &ev));
            while (kf_node_next(n, &a))
                ;
            ev.type = KF_NODE_LIAR;
        }
        kf_node_look(n, &v);
        assert_int_equal(v.liars, faulty[i].liars);
        assert_int_equal(kf_peer_heads(n), 1 + faulty[i].liars);
    }
    node_down(n, &s);
}

/* Two members and two others are heard. The others no longer count when they
 * are silent, unless they are known to be faulty. */
static void silent_nodes_are_not_counted(void **state)
{
    kf_node *n;
    sim s;

    (void)state;
    n = patient_node_of(&s, "mds:k=2", 8, KOFN_ERRORS_ADVERSARIAL);
    hears_first(n, 103);
    hears_epoch(n, 101, 2);
    assert_int_equal(kf_peer_heads(n), 4);
    n->now += n->opt.silence;
    assert_int_equal(kf_peer_heads(n), 2);
    n->table.other[1].liar = true;
    assert_int_equal(n->table.other[1].incarnation, 102);
    assert_int_equal(kf_peer_heads(n), 3);
    node_down(n, &s);
}

TEST_FILE(peer_node_test)
{
    const struct CMUnitTest tests[] = {
        TEST(epochs_far_ahead,
             "node: an epoch far ahead is believed if two nodes report it"),
        TEST(failed_leader,
             "node: a leader of failed epochs is followed after growing waits"),
        TEST(failed_takeovers,
             "node: the wait doubles after each takeover without progress"),
        TEST(incarnations_are_bounded,
             "node: at most 1024 incarnations are remembered"),
        TEST(prompt_members_decide, "node: only prompt members decide"),
        TEST(evidence_wait_is_bounded,
             "node: the wait for a decider's evidence is bounded"),
        TEST(newer_iterate_comes_first,
             "node: four requests for a newer iterate precede a new epoch"),
        TEST(faulty_keys_are_counted_once,
             "node: a faulty key counts once, whatever its incarnations"),
        TEST(silent_nodes_are_not_counted,
             "node: others count while they are heard or known as faulty"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
