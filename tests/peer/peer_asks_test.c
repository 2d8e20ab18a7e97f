/* peer_asks_test.c -- what the state machine of a single node of a mesh asks of
 * others, and how long it waits for iterates and partial products. */
#include "patient_node.h"

/* Steps the node. Returns the last incarnation that it asks for that kind of
 * note, or 0. */
static kofn_incarnation asks(kf_node *n, const kf_node_event *ev,
                             kf_note_type kind)
{
    kofn_incarnation asked_node = 0;
    kf_node_action a;

    assert_ok(kf_node_step(n, ev));
    while (kf_node_next(n, &a))
        if (a.type == KF_NODE_SEND && a.note.type == kind)
            asked_node = a.to;
    return asked_node;
}

/* Three nodes are ahead. Returns the seconds from the request to one of them
 * until the node asks another. A body of the first keeps arriving for
 * `arriving` seconds. */
static kofn_time waits(kf_node *n, kofn_time arriving)
{
    kofn_incarnation asked = 0;
    kofn_time now = 2, began = 0;

    for (;; now++) {
        kf_node_event ev = {.now = now * KOFN_SECOND};

        for (ev.incarnation = 101; ev.incarnation <= 103; ev.incarnation++) {
            const kf_note beat = {.type = KF_NOTE_BEAT,
                                  .from = ev.incarnation,
                                  .at = {5, 77},
                                  .seat = KOFN_NO_SEAT};
            kofn_incarnation asked_node;

            ev.type = KF_NODE_NOTE;
            ev.note = &beat;
            asked_node = asks(n, &ev, KF_NOTE_ASK);
            if (asked_node && asked_node != asked && asked)
                return now - began;
            if (asked_node && !asked) {
                asked = asked_node;
                began = now;
            }
        }
        ev.type = KF_NODE_ARRIVING;
        ev.incarnation = asked;
        ev.note = NULL;
        if (asked && now < began + arriving)
            assert_int_equal(asks(n, &ev, KF_NOTE_ASK), 0);
        assert_true(now < 1000);
    }
}

/* The limit is two failure timeouts. */
static void answer_is_waited_for(void **state)
{
    static const struct {
        kofn_time arriving, waits;
    } cases[] = {{0, 2}, {10, 11}, {900, KF_SLOWEST * 20}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kf_node *n;
        sim s;

        n = patient_node(&s, 4);
        n->opt.silence = 20 * KOFN_SECOND;
        assert_int_equal(n->opt.hedge, 2 * KOFN_SECOND);
        assert_int_equal(waits(n, cases[i].arriving), cases[i].waits);
        node_down(n, &s);
    }
}

/* The node hears all that the next iterate is made of. Seat 0 is its own, seat
 * 1 the leader's. */
static void hears_all(kf_node *n, kofn_epoch epoch, kofn_time now)
{
    static const uint32_t list[] = {2, 0, 1, 2, 0, 1};

    for (uint32_t g = 0; g < 2; g++)
        hears_note(n, 101,
                   &(kf_note){.type = KF_NOTE_PARTIAL,
                              .epoch = epoch,
                              .at = n->stage.at,
                              .group = g,
                              .seat = 1},
                   now);
    hears_note(n, 101,
               &(kf_note){.type = KF_NOTE_DECIDE,
                          .epoch = epoch,
                          .at = n->stage.at,
                          .decide.groups = 3,
                          .list = list,
                          .listed = sizeof list / sizeof *list},
               now);
    for (uint32_t g = 0; g < 2; g++)
        assert_true(kf_peer_complete(&n->pieces.cluster[g]));
}

/* The node has asked for a later iterate, and then gets all that its next one
 * is made of. It asks no more. It accepts the answer, which would not be sent
 * twice. */
static void late_answer_is_accepted(void **state)
{
    const kofn_iterate_id far = {5, 77};
    const kofn_time now = 2 * KOFN_SECOND;
    kofn_epoch epoch;
    kf_node *n;
    sim s;

    (void)state;
    n = patient_node(&s, 4);
    n->opt.confirm = 1;
    hears_first(n, 102);
    epoch = hears_epoch(n, 101, 3);
    does_all(n, now);
    hears_note(n, 102, &(kf_note){.type = KF_NOTE_BEAT, .at = far}, now);
    assert_int_equal(n->catch_up.asked, 102);
    hears_all(n, epoch, now);
    assert_int_equal(n->catch_up.asked, 0);
    hears_note(n, 102, &(kf_note){.type = KF_NOTE_VECTOR, .at = far}, now);
    assert_true(kf_same_iterate(n->stage.at, far));
    node_down(n, &s);
}

/* The limit is two failure timeouts. */
static void partials_are_waited_for(void **state)
{
    const kofn_time late = 2 + KF_SLOWEST * 20;
    kf_node_event ev = {.type = KF_NODE_ARRIVING, .incarnation = 102};
    bool another = false;
    kf_node *n;
    sim s;

    (void)state;
    n = patient_node(&s, 4);
    n->opt.confirm = 1;
    n->opt.silence = 20 * KOFN_SECOND;
    hears_first(n, 102);
    hears_epoch(n, 101, 3);
    n->stage.began = n->now;
    for (kofn_time now = 3; now <= late + 300; now++) {
        kofn_incarnation asked_node;

        ev.now = now * KOFN_SECOND;
        asked_node =
            asks(n, &ev, KF_NOTE_WANT); /* the last one: 102, if it is asked */
        another |= asked_node == 101;
        if (asked_node == 102) {
            assert_true(now >= late);
            break;
        }
        assert_true(now < late + 300);
    }
    assert_true(another);
    node_down(n, &s);
}

/* ---- no progress --------------------------------------------------------- */

#define PATIENCE (4 * KOFN_SECOND)
#define STEP (KOFN_SECOND / 4)
#define GIVE_UP (600 * KOFN_SECOND)

/* The other nodes send this heartbeat repeatedly, but no partial products.
 * Returns the time after which the node fails with KOFN_TOOFEW. */
static kofn_time fails_after(kf_node *n, const kf_note *beat, size_t others)
{
    const kofn_time from = 2 * KOFN_SECOND;
    kofn_time now = from;
    kf_node_action action;

    for (; !n->unsettled.failed; now += STEP) {
        assert_true(now < 2 * GIVE_UP);
        for (size_t i = 0; i < others; i++) {
            kf_note note = beat[i];

            note.at = n->stage.at;
            note.epoch = n->in.epoch;
            hears_note(n, 101 + i, &note, now);
        }
        assert_ok(kf_node_step(
            n, &(kf_node_event){.type = KF_NODE_TICK, .now = now}));
        while (kf_node_next(n, &action))
            ;
        does_all(n, now);
    }
    assert_int_equal(n->unsettled.failed, KOFN_TOOFEW);
    return now - from;
}

/* Three of four nodes compute an iterate, and errors are searched. */
static void useless_nodes_are_not_waited_for(void **state)
{
    enum { WHOLE, FAILED, LACKS, MAKES, AWAY };
    static const struct {
        int is[3];      /* the other nodes */
        kofn_time took; /* time for one iterate; 0: there was none */
        kofn_time after;
    } of[] = {
        {{WHOLE, WHOLE, FAILED}, 1, 8 * PATIENCE},
        {{WHOLE, WHOLE, LACKS}, 1, 8 * PATIENCE},
        {{WHOLE, FAILED, LACKS}, 1, 8 * KOFN_SECOND},
        {{WHOLE, LACKS, LACKS}, 0, 8 * KOFN_SECOND},
        {{WHOLE, WHOLE, FAILED}, 0, GIVE_UP},
        {{WHOLE, WHOLE, AWAY}, 1, GIVE_UP},
        {{WHOLE, LACKS, MAKES}, 1, GIVE_UP},
    };

    (void)state;
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        kf_note beat[3];
        size_t others = of[k].is[2] == AWAY ? 2 : 3;
        kofn_time after;
        kf_node *n;
        sim s;

        n = patient_node(&s, 4);
        n->opt.changes = true;
        n->opt.errors = KOFN_ERRORS_PROBABILISTIC;
        n->opt.silence = KOFN_SECOND;
        n->opt.patience = PATIENCE;
        n->opt.give_up = GIVE_UP;
        hears_first(n, 100 + others);
        hears_epoch(n, 101, 1 + others);
        n->stage.took = of[k].took;
        for (size_t i = 0; i < others; i++) {
            int is = of[k].is[i];
            bool has = is == WHOLE || is == FAILED;

            beat[i] = (kf_note){.type = KF_NOTE_BEAT,
                                .idle = is == WHOLE,
                                .stranded = is == FAILED || is == LACKS,
                                .seat = has ? (uint32_t)i + 1 : KOFN_NO_SEAT};
        }
        after = fails_after(n, beat, others);
        assert_in_range(after, of[k].after, of[k].after + 2 * STEP);
        node_down(n, &s);
    }
}

/* ---- partial products and verdicts ----------------------------------------
 */

/* Two different points of three decode, and two of the four seats share one. So
 * two results may be enough. If errors are searched, three are needed that
 * surely decode, and one more. */
static void awaited_partials(void **state)
{
    (void)state;
    for (int errors = 0; errors < 2; errors++) {
        kf_node *n;
        sim s;

        n = patient_node_of(&s, "polynomial:m=2,basis=circle,angles=3", 4,
                            errors ? KOFN_ERRORS_ADVERSARIAL
                                   : KOFN_ERRORS_NONE);
        hears_first(n, 103);
        hears_epoch(n, 101, 4);
        assert_int_equal(kf_peer_awaited(n), errors ? 4 : 2);
        node_down(n, &s);
    }
}

/* Incarnation 101 has answered, 103 was not asked, and 104 is no member. */
static void enough_is_said_to_those_asked(void **state)
{
    static const uint64_t asked[] = {3, 3, 2, 3}, left[] = {3, 2, 2, 3};
    kofn_incarnation to = 0;
    kf_node_action a;
    size_t said = 0;
    kf_cluster *c;
    kf_node *n;
    sim s;

    (void)state;
    n = patient_node(&s, 5);
    hears_first(n, 104);
    hears_epoch(n, 101, 4);
    n->opt.decoding = KOFN_DECODE_DISTRIBUTED;
    n->stage.decided = 1;
    c = &n->pieces.cluster[0];
    assert_ok(kf_grow(&c->have, &c->cap, c->count, sizeof *c->have));
    c->have[c->count++] = 1;
    for (size_t i = 0; i < 4; i++)
        n->table.other[i].asked.partials = asked[i];
    assert_ok(kf_peer_say_enough(n, 0));
    while (kf_node_next(n, &a))
        if (a.type == KF_NODE_SEND && a.note.type == KF_NOTE_ENOUGH) {
            assert_int_equal(a.note.enough.groups, 1);
            to = a.to;
            said++;
        }
    assert_int_equal(said, 1);
    assert_int_equal(to, 102);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(n->table.other[i].asked.partials, left[i]);
    node_down(n, &s);
}

/* There is no memory for the list of right partial products. */
static void verdict_without_memory(void **state)
{
    const kf_node_task task = {.type = KF_NODE_TASK_CHECK};
    const kf_node_event ev = {.task = &task, .verdict = KOFN_OK};
    kf_cluster *c;
    kf_node *n;
    sim s;

    (void)state;
    count_allocations();
    n = patient_node_of(&s, "mds:k=2", 4, KOFN_ERRORS_ADVERSARIAL);
    hears_first(n, 103);
    hears_epoch(n, 101, 4);
    c = &n->pieces.cluster[0];
    assert_ok(kf_grow(&c->evidence, &c->evidence_cap, 0, sizeof *c->evidence));
    c->evidence[0] = 3;
    c->shown = 1;
    fail_allocation(1);
    assert_int_equal(kf_peer_judged(n, &ev), KOFN_NOMEM);
    fail_allocation(0);
    node_down(n, &s);
    kofn_set_alloc(NULL, NULL);
}

TEST_FILE(peer_asks_test)
{
    const struct CMUnitTest tests[] = {
        TEST(answer_is_waited_for,
             "node: it asks no other node while an answer arrives"),
        TEST(late_answer_is_accepted, "node: a late answer is accepted"),
        TEST(
            partials_are_waited_for,
            "node: it does not ask again for partial products that are arriving"),
        TEST(useless_nodes_are_not_waited_for,
             "node: it waits only for nodes that may bring a partial product"),
        TEST(
            awaited_partials,
            "node: it awaits as few partial products as may decode, without errors"),
        TEST(enough_is_said_to_those_asked,
             "node: only members that were asked hear that it is enough"),
        TEST(verdict_without_memory,
             "node: a verdict without memory fails with that status"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
