/* train_slow_link_test.c -- a node joins a training without a master over a
 * slow link. It does not request again what is arriving, so it catches up and
 * gets blocks. Rates are given as the number of retry delays that a vector
 * takes. A vector of 2.2 MB takes 0.73 at 30 MB/s and 1.1 at 20 MB/s. */
#include "mesh_link.h"
#include "train_mesh_rig.h"

enum { TYPES = KF_NOTE_LAST + 1, ITERATES = 1024 };

typedef struct link_case {
    double hedges; /* retry delays that a vector takes */
    size_t window; /* bytes that are lent at a time */
    bool mute;     /* the transport does not report what is arriving */
    bool crawls;   /* bodies of node 0 arrive one byte at a time */
    bool parts;    /* the new part of a vector suffices */
} link_case;

/* Counts of notes sent to the last node, and its state. */
static struct {
    size_t sent[TYPES];
    /* Vectors sent while another of the same node was in transit. */
    size_t behind;
    size_t again;   /* partial products that had been sent before */
    size_t crawled; /* vectors of node 0 */
    /* Parts of vectors, their bytes, and the bytes of a whole one. */
    size_t parts, bytes, whole;
    /* By iterate, group and seat. */
    uint64_t lineage[ITERATES][SIM_NODES][SIM_NODES];
    /* Turns, and turns that ended with blocks at the node. */
    size_t turns, with;
    uint64_t turn; /* the turn that was counted last */
    kofn_node_view view;
} seen;

static size_t last_node(const sim *s)
{
    return s->nodes - 1;
}

static void read_note(const sim *s, const sim_packet *p, kf_note *note)
{
    assert_ok(kf_note_read(note, p->p.head, p->p.head_bytes,
                           s->node[p->from].host->job));
}

static void hear_partial(const kf_note *note)
{
    uint64_t *lineage;

    assert_true(note->at.step < ITERATES && note->group < SIM_NODES &&
                note->seat < SIM_NODES);
    lineage = &seen.lineage[note->at.step][note->group][note->seat];
    seen.again += *lineage == note->at.lineage;
    *lineage = note->at.lineage;
}

static void hear_vector(const sim *s, const sim_packet *p)
{
    seen.crawled += p->from == 0;
    for (const sim_queued *l = s->slow->queue[p->from]; l; l = l->next) {
        kf_note before;

        read_note(s, l->p, &before);
        seen.behind += before.type == KF_NOTE_VECTOR;
    }
}

static void listen(sim *s, const sim_packet *p)
{
    kf_note note;

    if (p->to != last_node(s))
        return;
    read_note(s, p, &note);
    seen.sent[note.type]++;
    if (note.type == KF_NOTE_PARTIAL)
        hear_partial(&note);
    if (kf_mesh_part_is(&note)) {
        seen.parts++;
        seen.bytes += p->p.body_bytes;
    }
    if (note.type == KF_NOTE_VECTOR)
        hear_vector(s, p);
}

/* Called at every packet; counts the turns that have ended. */
static void count(sim *s)
{
    uint64_t turn = s->node[1].host->blocks.changing.turn,
             more = turn - seen.turn;
    const kf_host *h = s->node[last_node(s)].host;

    if (!h || more == 0)
        return;
    seen.turn = turn;
    seen.turns += more;
    seen.with += h->blocks.seat != KOFN_NO_SEAT ? more : 0;
}

/* The last node joins in the tenth of 102 turns. Records its state when the
 * others have ended. */
static void run_case(link_case what)
{
    sim_slow slow = {.to = wide_case.nodes - 1, .crawls = what.crawls};
    fixture f;
    sim s;

    memset(&seen, 0, sizeof seen);
    mesh_up(&s, &f, &wide_case, 34, 1);
    s.compute = MS / 8;
    s.opt.confirm = 1;
    s.window = what.window;
    s.listen = listen;
    s.inject = count;
    if (!what.parts) {
        s.program.wrote = NULL;
        s.hostile = &seen; /* vectors may differ by rounding */
    }
    for (size_t i = 0; i < last_node(&s); i++)
        sim_start(&s, i, true);
    run_until(&s, 9);
    seen.turn = s.node[1].host->blocks.changing.turn;
    seen.whole = kf_mesh_vector_bytes(s.node[0].host);
    slow.rate = (double)seen.whole /
                (what.hedges * 1e-9 * (double)kf_host_hedge(s.node[0].host));
    link_up(&s, &slow, what.mute);
    sim_start(&s, last_node(&s), false);
    run_until(&s, f.steps);
    kf_host_look(s.node[last_node(&s)].host, &seen.view);
    mesh_down(&s, &f);
}

/* One vector may be in transit at the end. Blocks are small or large compared
 * with the windows. */
static void takes_all_vectors(void **state)
{
    static const double hedges[] = {0.73, 1.1};
    static const size_t window[] = {656, 5000, 40000};

    (void)state;
    for (size_t i = 0; i < 6; i++) {
        run_case((link_case){.hedges = hedges[i % 2], .window = window[i / 2]});
        assert_in_range(seen.sent[KF_NOTE_VECTOR], seen.view.adopted,
                        seen.view.adopted + 1);
        assert_int_equal(seen.view.rebuilt, 1);
        assert_true(2 * seen.with > seen.turns);
    }
}

/* The transport does not report what is arriving, so the node asks again. */
static void one_vector_at_a_time(void **state)
{
    (void)state;
    run_case((link_case){.hedges = 2.4, .window = 656, .mute = true});
    assert_true(seen.sent[KF_NOTE_VECTOR] > 20);
    assert_int_equal(seen.behind, 0);
}

static void partials_arrive_once(void **state)
{
    (void)state;
    run_case((link_case){.hedges = 0.01, .window = 656});
    assert_true(seen.sent[KF_NOTE_PARTIAL] > 1000);
    assert_int_equal(seen.again, 0);
}

/* After a part the node has the same vector as the others, bit for bit, at
 * every iterate (sim_check in mesh_sim.h). */
static void parts_of_vectors(void **state)
{
    (void)state;
    run_case((link_case){.hedges = 1.1, .window = 656, .parts = true});
    print_message("%zu of %zu vectors in parts of %zu bytes on average\n",
                  seen.parts, seen.sent[KF_NOTE_VECTOR],
                  seen.bytes / (seen.parts + 1));
    assert_true(2 * seen.parts > seen.sent[KF_NOTE_VECTOR]);
    assert_true(4 * seen.bytes < seen.parts * seen.whole);
    assert_true(2 * seen.with > seen.turns);
}

/* True if the node would take what was written since iterate `base`, up to
 * number t. */
static bool fits(const kf_host *h, kofn_iterate_id base, uint64_t t)
{
    return kf_mesh_part_bytes(h, &(kf_note){.type = KF_NOTE_VECTOR,
                                            .at = {t, 7},
                                            .vector.after = base.step + 1,
                                            .vector.lineage = base.lineage}) >
           0;
}

/* Gives the node a part that has only zeros, a scalar, and the lineages of our
 * turns. */
static void take_part(kf_host *h, kofn_iterate_id base, kofn_iterate_id at)
{
    kf_note note = {.type = KF_NOTE_VECTOR,
                    .at = at,
                    .vector.after = base.step + 1,
                    .vector.lineage = base.lineage};
    size_t n = kf_mesh_part_bytes(h, &note) / sizeof(double);
    size_t recalls = h->program.recalls;
    kf_buffer *body;

    assert_int_equal(kf_mesh_norms_count(&h->blocks), 0);
    assert_ok(kf_buffer_new(&body, n, 1, KOFN_F64));
    memset(body->m.data, 0, n * sizeof(double));
    *(double *)body->m.data = 5;
    memcpy(kf_at(&body->m, n - recalls, 0), h->blocks.changing.line,
           recalls * sizeof *h->blocks.changing.line);
    assert_ok(kf_mesh_part_take(h, &note, body));
    assert_true(h->it.scalar[0] == 5);
    kf_buffer_drop(body);
}

/* A program that reports too much as written. */
static void reports_too_much(void *ud, uint64_t t, size_t *first, size_t *rows)
{
    (void)ud;
    *first = t % 2 ? SIZE_MAX : 3;
    *rows = SIZE_MAX;
}

/* A part builds on an iterate that the node has, or from which its own was
 * made. It does not build on another iterate of the same number, on one too
 * long ago, or on a replaced one. */
static void parts_of_the_past(void **state)
{
    kofn_iterate_id at, was;
    kf_buffer *all;
    size_t bytes;
    fixture f;
    kf_host *h;
    sim s;

    (void)state;
    mesh_up(&s, &f, &wide_case, 34, 1);
    s.compute = MS / 8;
    s.opt.confirm = 1;
    for (size_t i = 0; i < s.nodes; i++)
        sim_start(&s, i, true);
    run_until(&s, 9);
    h = s.node[0].host;
    at = h->it.at;
    was = h->it.past[(at.step - 1) % KF_PAST];
    assert_true(was.step + 1 == at.step && fits(h, at, at.step + 1));
    assert_true(fits(h, was, at.step + 1));
    assert_true(fits(h, at, at.step + KF_PAST));
    assert_false(fits(h, at, at.step + KF_PAST + 1));
    assert_false(fits(h, was, at.step)); /* the node has it */
    assert_false(
        fits(h, (kofn_iterate_id){at.step, at.lineage + 1}, at.step + 1));
    assert_false(
        fits(h, (kofn_iterate_id){was.step, was.lineage + 1}, at.step + 1));
    assert_false(
        fits(h, (kofn_iterate_id){at.step + 1, at.lineage}, at.step + 2));
    assert_ok(kf_mesh_vector_body(h, &all, &bytes));
    take_part(h, was, (kofn_iterate_id){at.step + 1, 7});
    assert_true(fits(h, h->it.at, at.step + 2) && fits(h, was, at.step + 2));
    assert_false(fits(h, at, at.step + 2));
    assert_ok(kf_mesh_vector_take(h, (kofn_iterate_id){at.step + 2, 8}, all));
    assert_true(fits(h, h->it.at, at.step + 3));
    assert_false(fits(h, was, at.step + 3));
    h->program.wrote = reports_too_much; /* no more than there is */
    assert_int_equal(
        kf_mesh_part_bytes(h, &(kf_note){.type = KF_NOTE_VECTOR,
                                         .at = {at.step + 4, 7},
                                         .vector.after = h->it.at.step + 1,
                                         .vector.lineage = h->it.at.lineage}),
        bytes - 3 * sizeof(double));
    h->opt.errors = KOFN_ERRORS_PROBABILISTIC;
    assert_false(fits(h, h->it.at, at.step + 3));
    kf_buffer_drop(all);
    mesh_down(&s, &f);
}

static void crawling_sender(void **state)
{
    (void)state;
    run_case((link_case){.hedges = 0.73, .window = 656, .crawls = true});
    assert_true(seen.crawled > 0);
    assert_true(2 * seen.with > seen.turns);
}

/* Requests of the last node for a fingerprint of a vector after iterate 1. */
static size_t questions;

static void listen_to_questions(sim *s, const sim_packet *p)
{
    kf_note note;

    if (p->from != last_node(s))
        return;
    read_note(s, p, &note);
    questions += note.type == KF_NOTE_ASK && note.ask.key && note.at.step == 1;
}

static size_t ask_once(sim *s)
{
    const kf_note ask = {.type = KF_NOTE_ASK,
                         .from = s->node[last_node(s)].host->opt.incarnation,
                         .at = {1, 7}};

    questions = 0;
    assert_ok(kf_vector_quorum_ask(s->node[last_node(s)].host,
                                   s->node[0].host->opt.incarnation, &ask));
    sim_run(s, s->now + MS, NULL);
    return questions;
}

/* One of six nodes may be faulty, (6 - 3) / 2, so two must have a vector: its
 * sender and one other. Two of the other four are asked first, and then all. */
static void few_are_asked_for_fingerprints(void **state)
{
    fixture f;
    sim s;

    (void)state;
    mesh_up(&s, &f, &wide_case, 7, 1);
    s.compute = MS / 8;
    s.opt.errors = KOFN_ERRORS_ADVERSARIAL;
    s.opt.confirm = 0; /* the number that may be faulty, plus one */
    s.listen = listen_to_questions;
    s.hostile = &questions; /* vectors may differ by rounding */
    for (size_t i = 0; i < s.nodes; i++)
        sim_start(&s, i, true);
    run_until(&s, 3);
    assert_int_equal(ask_once(&s), 2);
    assert_int_equal(ask_once(&s), 4);
    sim_finish(&s, s.now + 60 * KOFN_SECOND, NULL, wide_case.scheme, 1);
    mesh_down(&s, &f);
}

TEST_FILE(train_slow_link_test)
{
    const struct CMUnitTest tests[] = {
        TEST(takes_all_vectors,
             "slow link: a node takes all vectors that arrive and gets blocks"),
        TEST(one_vector_at_a_time,
             "slow link: each node sends one vector at a time"),
        TEST(
            partials_arrive_once,
            "slow link: no partial product is sent twice if the link is fast enough"),
        TEST(parts_of_vectors,
             "slow link: a node behind is sent the new part of a vector only"),
        TEST(parts_of_the_past,
             "slow link: a part builds only on an iterate that the node has"),
        TEST(crawling_sender,
             "slow link: a sender of a byte now and then is not waited for"),
        TEST(few_are_asked_for_fingerprints,
             "slow link: a fingerprint is requested of few nodes at first"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
