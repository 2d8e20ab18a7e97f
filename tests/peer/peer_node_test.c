/* peer_node_test.c -- what the coordinator of one node of a mesh believes, by
 * itself: of whom, how far ahead, how often, how many. */
#include "mesh_sim.h"

#include "peer/node.h"

/* A node that beats every second, and does nothing else by itself for long; of
 * a mesh of so many. */
static kf_node *patient_node(sim *s, size_t nodes)
{
    const kf_node_options o = {.incarnation = 1,
                               .nodes = 4,
                               .confirm = 2,
                               .groups = 2,
                               .decoding = KOFN_DECODE_REPLICATED,
                               .wish = KOFN_NO_SEAT,
                               .beat = KOFN_SECOND,
                               .silence = 100000 * KOFN_SECOND,
                               .patience = 100000 * KOFN_SECOND};
    kf_node *n;

    sim_up(s, "mds:k=2", nodes, 19, 2, 1);
    assert_ok(kf_node_new(&n, &s->stage, 1, &o, KOFN_SECOND));
    return n;
}

static void node_down(kf_node *n, sim *s)
{
    kf_node_free(n);
    sim_down(s);
}

/* An incarnation whose key no other has tells something. */
static void tells_node(kf_node *n, kofn_incarnation from, const kf_note *note,
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

/* It hears others, incarnations 101 to `last`, for the first time. */
static void meets(kf_node *n, kofn_incarnation last)
{
    const kf_note beat = {.type = KF_NOTE_BEAT, .seat = KOFN_NO_SEAT};

    for (kofn_incarnation who = 101; who <= last; who++)
        tells_node(n, who, &beat, 2 * KOFN_SECOND);
}

/* `leader`, whom it has met, founds an epoch of itself, 1, and others 101, 102,
 * ..., on seats 0, 1, ... */
static kofn_epoch joins(kf_node *n, kofn_incarnation leader, size_t members)
{
    const kofn_epoch epoch = {7, leader};
    kf_member member[8];

    for (size_t i = 0; i < members; i++)
        member[i] = (kf_member){i ? 100 + i : 1, (uint32_t)i, true};
    tells_node(n, leader,
               &(kf_note){.type = KF_NOTE_EPOCH,
                          .epoch = epoch,
                          .member = member,
                          .members = members},
               2 * KOFN_SECOND);
    assert_int_equal(n->members, members);
    return epoch;
}

/* `from` tells of an epoch that `leader` proposed; is the node in it now? */
static bool follows(kf_node *n, kofn_incarnation from, kofn_incarnation leader,
                    uint64_t number, kofn_time now)
{
    const kf_member only = {leader, 0, true};
    const kofn_epoch epoch = {number, leader};
    kofn_node_view v;

    tells_node(n, from,
               &(kf_note){.type = KF_NOTE_EPOCH,
                          .epoch = epoch,
                          .member = &only,
                          .members = 1},
               now);
    kf_node_look(n, &v);
    return kf_same_epoch(v.epoch, epoch);
}

/* What is told of others' epochs is believed of two, and one's own is not
 * believed where it is far beyond what two are in. */
static void epochs_far_ahead(void **state)
{
    const kofn_time now = 2 * KOFN_SECOND;
    kf_node *n;
    sim s;

    (void)state;
    n = patient_node(&s, 4);
    meets(n, 103);
    assert_false(follows(n, 102, 101, 5, now));
    assert_true(follows(n, 103, 101, 5, now));
    assert_false(follows(n, 103, 103, 5 + (1 << 20) + 1, now));
    assert_false(follows(n, 103, 103, UINT64_MAX, now));
    assert_true(follows(n, 103, 103, 5 + (1 << 20), now));
    node_down(n, &s);
}

/* Each time it is longer until it is followed again, and at last 256 times as
 * long as at first. */
static void who_leads_in_failed_terms(void **state)
{
    const kofn_time step = KOFN_SECOND / 20;
    kofn_time now = 2 * KOFN_SECOND, led = now, before = 0;
    kf_node *n;
    sim s;

    (void)state;
    n = patient_node(&s, 4);
    meets(n, 103);
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
    /* another one is none the worse for it */
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

/* Incarnation 101 leads, is ready and decides nothing.  When does the node take
 * over? */
static kofn_time takes_over(kf_node *n, kofn_time now)
{
    const kofn_epoch epoch = {n->epoch.number + 1, 101};
    const kf_member both[] = {{n->opt.incarnation, 0, true}, {101, 1, true}};
    kf_node_action action;

    tells_node(n, 101,
               &(kf_note){.type = KF_NOTE_EPOCH,
                          .epoch = epoch,
                          .member = both,
                          .members = 2},
               now);
    tells_node(n, 101,
               &(kf_note){.type = KF_NOTE_BEAT,
                          .epoch = epoch,
                          .at = n->at,
                          .idle = true,
                          .seat = 1},
               now);
    does_all(n, now);
    while (kf_same_epoch(n->epoch, epoch)) {
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

/* Where nothing comes of that it waits twice as long each time, although it is
 * the first in line: nodes that stand at different iterates are to see that all
 * are idle. */
static void who_takes_over_in_vain(void **state)
{
    kofn_time now = 2 * KOFN_SECOND, before = 0;
    kf_node *n;
    sim s;

    (void)state;
    n = patient_node(&s, 4);
    n->opt.patience = KOFN_SECOND;
    n->opt.changes = true; /* it makes no iterate alone */
    for (size_t times = 0; times < 8; times++) {
        kofn_time waited = takes_over(n, now) - now;

        assert_true(times == 0 || waited == 2 * before);
        now += before = waited;
    }
    node_down(n, &s);
}

/* However many come, each with a key of its own. */
static void incarnations_that_are_remembered(void **state)
{
    kf_node *n;
    sim s;

    (void)state;
    n = patient_node(&s, 4);
    meets(n, 2999);
    assert_int_equal(n->others, 1024);
    node_down(n, &s);
}

/* Of two groups the first and the third prompt member decide one each: whoever
 * is not prompt decides nothing, wherever it sits. */
static void prompt_members_decide(void **state)
{
    const kf_member member[] = {{1, 0, false},  {101, 1, true}, {102, 2, false},
                                {103, 3, true}, {104, 4, true}, {105, 5, true}};
    const kf_note told = {.type = KF_NOTE_EPOCH,
                          .epoch = {7, 104},
                          .member = member,
                          .members = sizeof member / sizeof *member};
    const kofn_time now = 2 * KOFN_SECOND;
    kf_node *n;
    sim s;

    (void)state;
    n = patient_node(&s, 6);
    meets(n, 105);
    n->opt.decoding = KOFN_DECODE_DISTRIBUTED;
    tells_node(n, 104, &told, now);
    assert_int_equal(n->members, 6);
    assert_int_equal(n->on->groups, 2);
    assert_int_equal(n->decider[0], 1);
    assert_int_equal(n->decider[1], 4);
    node_down(n, &s);
}

/* Where the evidence of who decides does not come, 24 times the patience are
 * waited for it, then everybody is asked, and what does not come is done
 * without. */
static void evidence_is_not_waited_for_forever(void **state)
{
    (void)state;
    for (int errors = 0; errors < 2; errors++) {
        kf_node *n;
        sim s;

        n = patient_node(&s, 4);
        n->opt.errors = errors ? KOFN_ERRORS_ADVERSARIAL : KOFN_ERRORS_NONE;
        meets(n, 103);
        joins(n, 101, 4);
        assert_int_equal(n->mine | n->own, 0);
        for (size_t g = 0; g < n->on->groups; g++) {
            kf_cluster *c = &n->cluster[g]; /* of a piece that is not here */

            assert_ok(kf_grow(&c->evidence, &c->evidence_cap, 0,
                              sizeof *c->evidence));
            c->evidence[0] = 3;
            c->shown = 1;
        }
        n->now = n->began + 24 * kf_peer_patience(n) - 1;
        assert_ok(kf_peer_tick_checks(n));
        assert_int_equal(n->own, 0);
        assert_false(n->cluster[0].judged);
        n->now++;
        n->alarm = KOFN_NEVER;
        assert_ok(kf_peer_tick_checks(n));
        assert_int_equal(n->alarm, errors
                                       ? n->began + 32 * kf_peer_patience(n) + 1
                                       : KOFN_NEVER);
        assert_int_equal(n->own, errors ? n->on->all : 0);
        assert_int_equal(n->cluster[0].judged, errors);
        node_down(n, &s);
    }
}

/* Who has asked for a newer iterate proposes no epoch before it has asked four
 * times. */
static void a_newer_iterate_comes_first(void **state)
{

    (void)state;
    for (unsigned tries = 3; tries <= 4; tries++)
        for (int asked = 0; asked < 2; asked++) {
            kf_node *n;
            sim s;

            n = patient_node(&s, 4);
            n->opt.nodes = 5; /* that found a mesh: one is missing yet */
            meets(n, 103);
            assert_int_equal(n->epoch.number, 0);
            n->opt.nodes = 4;
            n->catch_up.asked = asked ? 101 : 0;
            n->catch_up.tries = tries;
            assert_ok(kf_peer_tick_epoch(n));
            assert_int_equal(n->epoch.number > 0, !asked || tries == 4);
            node_down(n, &s);
        }
}

/* Whom the step has it ask for something of that kind, the last; 0: nobody. */
static kofn_incarnation asks(kf_node *n, const kf_node_event *ev,
                             kf_note_type kind)
{
    kofn_incarnation who = 0;
    kf_node_action a;

    assert_ok(kf_node_step(n, ev));
    while (kf_node_next(n, &a))
        if (a.type == KF_NODE_SEND && a.note.type == kind)
            who = a.to;
    return who;
}

/* Seconds from when it asks one of three that are ahead to when it asks
 * another, if something of the first is coming in for so many. */
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
            kofn_incarnation who;

            ev.type = KF_NODE_NOTE;
            ev.note = &beat;
            who = asks(n, &ev, KF_NOTE_ASK);
            if (who && who != asked && asked)
                return now - began;
            if (who && !asked) {
                asked = who;
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

/* While its answer is coming in nobody else is asked, but only for two
 * silences. */
static void an_answer_is_waited_for(void **state)
{
    static const struct {
        kofn_time arriving, waits;
    } story[] = {{0, 2}, {10, 11}, {900, KF_SLOWEST * 20}};

    (void)state;
    for (size_t i = 0; i < sizeof story / sizeof *story; i++) {
        kf_node *n;
        sim s;

        n = patient_node(&s, 4);
        n->opt.silence = 20 * KOFN_SECOND;
        assert_int_equal(n->opt.hedge, 2 * KOFN_SECOND);
        assert_int_equal(waits(n, story[i].arriving), story[i].waits);
        node_down(n, &s);
    }
}

/* It is told all that the next iterate is made of: seat 0 is its own, 1 the
 * leader's. */
static void is_told_all(kf_node *n, kofn_epoch epoch, kofn_time now)
{
    static const uint32_t list[] = {2, 0, 1, 2, 0, 1};

    for (uint32_t g = 0; g < 2; g++)
        tells_node(n, 101,
                   &(kf_note){.type = KF_NOTE_PIECE,
                              .epoch = epoch,
                              .at = n->at,
                              .group = g,
                              .seat = 1},
                   now);
    tells_node(n, 101,
               &(kf_note){.type = KF_NOTE_DECIDE,
                          .epoch = epoch,
                          .at = n->at,
                          .coded = 3,
                          .list = list,
                          .listed = sizeof list / sizeof *list},
               now);
    for (uint32_t g = 0; g < 2; g++)
        assert_true(kf_peer_complete(&n->cluster[g]));
}

/* Who has asked for a later iterate, and then has all that the next is made of,
 * asks no more; yet takes the answer, which would not be given twice. */
static void a_late_answer_is_taken(void **state)
{
    const kofn_iterate_id far = {5, 77};
    const kofn_time now = 2 * KOFN_SECOND;
    kofn_epoch epoch;
    kf_node *n;
    sim s;

    (void)state;
    n = patient_node(&s, 4);
    n->opt.confirm = 1;
    meets(n, 102);
    epoch = joins(n, 101, 3);
    does_all(n, now);
    tells_node(n, 102, &(kf_note){.type = KF_NOTE_BEAT, .at = far}, now);
    assert_int_equal(n->catch_up.asked, 102);
    is_told_all(n, epoch, now);
    assert_int_equal(n->catch_up.asked, 0);
    tells_node(n, 102, &(kf_note){.type = KF_NOTE_VECTOR, .at = far}, now);
    assert_true(kf_same_iterate(n->at, far));
    node_down(n, &s);
}

/* Those whose pieces are coming in are not asked for them again, for two
 * silences. */
static void pieces_are_waited_for(void **state)
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
    meets(n, 102);
    joins(n, 101, 3);
    n->began = n->now;
    for (kofn_time now = 3; now <= late + 300; now++) {
        kofn_incarnation who;

        ev.now = now * KOFN_SECOND;
        who = asks(n, &ev, KF_NOTE_WANT); /* the last: 102, if it is asked */
        another |= who == 101;
        if (who == 102) {
            assert_true(now >= late);
            break;
        }
        assert_true(now < late + 300);
    }
    assert_true(another);
    node_down(n, &s);
}

/* ---- standing still ------------------------------------------------------ */

#define PATIENCE (4 * KOFN_SECOND)
#define STEP (KOFN_SECOND / 4)
#define GIVES_UP (600 * KOFN_SECOND)

/* All others are heard of with this again and again; when does the node, which
 * nobody gives pieces, find that nothing goes on any more? */
static kofn_time fails_after(kf_node *n, const kf_note *beat, size_t others)
{
    const kofn_time from = 2 * KOFN_SECOND;
    kofn_time now = from;
    kf_node_action action;

    for (; !n->failed_check; now += STEP) {
        assert_true(now < 2 * GIVES_UP);
        for (size_t i = 0; i < others; i++) {
            kf_note note = beat[i];

            note.at = n->at;
            note.epoch = n->epoch;
            tells_node(n, 101 + i, &note, now);
        }
        assert_ok(kf_node_step(
            n, &(kf_node_event){.type = KF_NODE_TICK, .now = now}));
        while (kf_node_next(n, &action))
            ;
        does_all(n, now);
    }
    assert_int_equal(n->failed_check, KOFN_TOOFEW);
    return now - from;
}

/* Three of four nodes make an iterate where errors are looked for.  The others
 * are waited for as long as one of them may bring something. */
static void who_can_bring_nothing_is_not_waited_for(void **state)
{
    enum { WHOLE, FAILED, LACKS, MAKES, AWAY };
    static const struct {
        int is[3];      /* the others */
        kofn_time took; /* an iterate; 0: none was made */
        kofn_time after;
    } of[] = {
        {{WHOLE, WHOLE, FAILED}, 1, 8 * PATIENCE},
        {{WHOLE, WHOLE, LACKS}, 1, 8 * PATIENCE},
        {{WHOLE, FAILED, LACKS}, 1, 8 * KOFN_SECOND},
        {{WHOLE, LACKS, LACKS}, 0, 8 * KOFN_SECOND},
        {{WHOLE, WHOLE, FAILED}, 0, GIVES_UP},
        {{WHOLE, WHOLE, AWAY}, 1, GIVES_UP},
        {{WHOLE, LACKS, MAKES}, 1, GIVES_UP},
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
        n->opt.give_up = GIVES_UP;
        meets(n, 100 + others);
        joins(n, 101, 1 + others);
        n->took = of[k].took;
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

/* Who comes back under the same key and lies again is one liar. */
static void liars_are_counted_once(void **state)
{
    static const struct {
        kofn_incarnation who;
        uint64_t key;
        size_t liars;
    } lie[] = {{101, 7, 1}, {102, 7, 1}, {103, 8, 2}, {104, 7, 2},
               {105, 0, 3}, {106, 0, 4}}; /* nobody answers for these */
    const kf_note beat = {.type = KF_NOTE_BEAT, .seat = KOFN_NO_SEAT};
    kf_node *n;
    sim s;

    (void)state;
    n = patient_node(&s, 8);
    n->opt.errors = KOFN_ERRORS_ADVERSARIAL;
    for (size_t i = 0; i < sizeof lie / sizeof *lie; i++) {
        kf_note note = beat;
        kf_node_event ev = {.type = KF_NODE_NOTE,
                            .now = 2 * KOFN_SECOND,
                            .incarnation = lie[i].who,
                            .note = &note,
                            .principal = lie[i].key};
        kf_node_action a;
        kofn_node_view v;

        note.from = lie[i].who;
        for (int told = 0; told < 2; told++) {
            assert_ok(kf_node_step(n, &ev));
            while (kf_node_next(n, &a))
                ;
            ev.type = KF_NODE_LIAR;
        }
        kf_node_look(n, &v);
        assert_int_equal(v.liars, lie[i].liars);
        assert_int_equal(kf_peer_heads(n), 1 + lie[i].liars);
    }
    node_down(n, &s);
}

TEST_FILE(peer_node_test)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(epochs_far_ahead),
        cmocka_unit_test(who_leads_in_failed_terms),
        cmocka_unit_test(who_takes_over_in_vain),
        cmocka_unit_test(incarnations_that_are_remembered),
        cmocka_unit_test(prompt_members_decide),
        cmocka_unit_test(evidence_is_not_waited_for_forever),
        cmocka_unit_test(a_newer_iterate_comes_first),
        cmocka_unit_test(an_answer_is_waited_for),
        cmocka_unit_test(a_late_answer_is_taken),
        cmocka_unit_test(pieces_are_waited_for),
        cmocka_unit_test(who_can_bring_nothing_is_not_waited_for),
        cmocka_unit_test(liars_are_counted_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
