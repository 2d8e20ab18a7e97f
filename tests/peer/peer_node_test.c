/* peer_node_test.c -- what the state machine of a single node of a mesh
 * believes: from which nodes, how far ahead, how often, and how many. */
#include "mesh_sim.h"

#include "peer/node.h"

/* Returns a node that sends a heartbeat every second and has very long
 * timeouts, in a mesh of `nodes`. */
static kf_node *patient_node_of(sim *s, const char *spec, size_t nodes,
                                kofn_errors errors)
{
    const kf_node_options o = {.incarnation = 1,
                               .nodes = 4,
                               .confirm = 2,
                               .groups = 2,
                               .decoding = KOFN_DECODE_REPLICATED,
                               .errors = errors,
                               .wish = KOFN_NO_SEAT,
                               .beat = KOFN_SECOND,
                               .silence = 100000 * KOFN_SECOND,
                               .patience = 100000 * KOFN_SECOND};
    kf_node *n;

    sim_up(s, spec, nodes, 19, 2, 1);
    assert_ok(kf_node_new(&n, &s->product, 1, &o, KOFN_SECOND));
    return n;
}

static kf_node *patient_node(sim *s, size_t nodes)
{
    return patient_node_of(s, "mds:k=2", nodes, KOFN_ERRORS_NONE);
}

static void node_down(kf_node *n, sim *s)
{
    kf_node_free(n);
    sim_down(s);
}

/* The node hears a note of incarnation `from`, which has its own key. */
static void hears_note(kf_node *n, kofn_incarnation from, const kf_note *note,
                       kofn_time now)
{
    kf_note said = *note;
    kf_node_action action;

    said.from = from;
    assert_ok(kf_node_step(n, &(kf_node_event){.type = KF_NODE_NOTE,
                                               .now = now,
                                               .incarnation = from,
                                               .note = &said,
                                               .principal = from}));
    while (kf_node_next(n, &action))
        ;
}

/* The node hears incarnations 101 to `last` for the first time. */
static void hears_first(kf_node *n, kofn_incarnation last)
{
    const kf_note beat = {.type = KF_NOTE_BEAT, .seat = KOFN_NO_SEAT};

    for (kofn_incarnation from = 101; from <= last; from++)
        hears_note(n, from, &beat, 2 * KOFN_SECOND);
}

/* `leader`, which the node has heard, founds an epoch with the node and
 * incarnations 101, 102, ..., on seats 0, 1, ... */
static kofn_epoch hears_epoch(kf_node *n, kofn_incarnation leader,
                              size_t members)
{
    const kofn_epoch epoch = {7, leader};
    kf_member member[8];

    for (size_t i = 0; i < members; i++)
        member[i] = (kf_member){i ? 100 + i : 1, (uint32_t)i, true};
    hears_note(n, leader,
               &(kf_note){.type = KF_NOTE_EPOCH,
                          .epoch = epoch,
                          .member = member,
                          .members = members},
               2 * KOFN_SECOND);
    assert_int_equal(n->in.members, members);
    return epoch;
}

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

static void does_all(kf_node *n, kofn_time now)
{
    kf_node_task todo;
    kf_node_action action;

    for (kf_node_work(n, &todo); todo.type != KF_NODE_TASK_NONE;
         kf_node_work(n, &todo)) {
        assert_ok(kf_node_step(
            n,
            &(kf_node_event){.type = KF_NODE_DONE, .now = now, .task = &todo}));
        while (kf_node_next(n, &action))
            ;
    }
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
        TEST(answer_is_waited_for,
             "node: it asks no other node while an answer arrives"),
        TEST(late_answer_is_accepted, "node: a late answer is accepted"),
        TEST(
            partials_are_waited_for,
            "node: it does not ask again for partial products that are arriving"),
        TEST(useless_nodes_are_not_waited_for,
             "node: it waits only for nodes that may bring a partial product"),
        TEST(faulty_keys_are_counted_once,
             "node: a faulty key counts once, whatever its incarnations"),
        TEST(silent_nodes_are_not_counted,
             "node: others count while they are heard or known as faulty"),
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
