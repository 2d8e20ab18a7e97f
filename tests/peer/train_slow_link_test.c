/* train_slow_link_test.c -- a node that comes to a training without a master
 * over a slow link: what is coming in is not asked for again, and so it
 * follows, and has blocks.  The rates are those at which a vector takes so many
 * hedges, the time after which a node asks again: vectors of 2.2 MB take 0.73
 * at 30 MB/s, and 1.1 at 20 MB/s. */
#include "mesh_link.h"
#include "train_mesh_rig.h"

enum { TYPES = KF_NOTE_SKETCH + 1, ITERATES = 1024 };

typedef struct story {
    double hedges; /* that a vector takes                                   */
    size_t window; /* bytes that are lent at a time                         */
    bool mute;     /* the transport does not tell what is coming in         */
    bool crawls;   /* ... and from node 0 bodies come a byte at a time      */
    bool parts;    /* of a vector what was written since is enough          */
} story;

/* What was sent to the node, and what it had. */
static struct {
    size_t sent[TYPES];
    size_t behind; /* vectors, while one of the same node was not through yet */
    size_t again;  /* pieces that had been sent to it before   */
    size_t crawled;             /* vectors of node 0                        */
    size_t parts, bytes, whole; /* of vectors; bytes of these, and of one   */
    uint64_t line[ITERATES][SIM_NODES][SIM_NODES]; /* by iterate, group, seat */
    size_t turns, with; /* ... and those at the end of which it had blocks */
    uint64_t turn;      /* that was counted last                           */
    kofn_node_view view;
} seen;

static size_t who(const sim *s)
{
    return s->nodes - 1;
}

static void read_note(const sim *s, const sim_packet *p, kf_note *note)
{
    assert_ok(kf_note_read(note, p->p.head, p->p.head_bytes,
                           s->node[p->from].host->job));
}

static void hear_piece(const kf_note *note)
{
    uint64_t *line;

    assert_true(note->at.step < ITERATES && note->group < SIM_NODES &&
                note->seat < SIM_NODES);
    line = &seen.line[note->at.step][note->group][note->seat];
    seen.again += *line == note->at.lineage;
    *line = note->at.lineage;
}

static void hear_vector(const sim *s, const sim_packet *p)
{
    seen.crawled += p->from == 0;
    for (const sim_letter *l = s->slow->way[p->from]; l; l = l->next) {
        kf_note before;

        read_note(s, l->p, &before);
        seen.behind += before.type == KF_NOTE_VECTOR;
    }
}

static void listen(sim *s, const sim_packet *p)
{
    kf_note note;

    if (p->to != who(s))
        return;
    read_note(s, p, &note);
    seen.sent[note.type]++;
    if (note.type == KF_NOTE_PIECE)
        hear_piece(&note);
    if (kf_mesh_part_is(&note)) {
        seen.parts++;
        seen.bytes += p->p.body_bytes;
    }
    if (note.type == KF_NOTE_VECTOR)
        hear_vector(s, p);
}

/* Whenever a turn is over. */
static void count(sim *s)
{
    uint64_t turn = s->node[1].host->changing.turn, more = turn - seen.turn;
    const kf_host *h = s->node[who(s)].host;

    if (!h || more == 0)
        return;
    seen.turn = turn;
    seen.turns += more;
    seen.with += h->seat != KOFN_NO_SEAT ? more : 0;
}

/* The last node comes in the tenth of 102 turns; what has become of it when the
 * others are through. */
static void comes(story what)
{
    sim_slow slow = {.to = wide.nodes - 1, .crawls = what.crawls};
    fixture f;
    sim s;

    memset(&seen, 0, sizeof seen);
    mesh_up(&s, &f, &wide, 34, 1);
    s.compute = MS / 8;
    s.opt.confirm = 1;
    s.window = what.window;
    s.listen = listen;
    s.inject = count;
    if (!what.parts) {
        s.program.wrote = NULL;
        s.evil = &seen; /* vectors may differ by rounding */
    }
    for (size_t i = 0; i < who(&s); i++)
        sim_start(&s, i, true);
    run_until(&s, 9);
    seen.turn = s.node[1].host->changing.turn;
    seen.whole = kf_mesh_vector_bytes(s.node[0].host);
    slow.rate = (double)seen.whole /
                (what.hedges * 1e-9 * (double)kf_host_hedge(s.node[0].host));
    link_up(&s, &slow, what.mute);
    sim_start(&s, who(&s), false);
    run_until(&s, f.steps);
    kf_host_look(s.node[who(&s)].host, &seen.view);
    mesh_down(&s, &f);
}

/* It takes all vectors that come, but one that was under way in the end, and
 * has blocks in most turns, be they small for the windows that are lent or
 * large. */
static void takes_all_that_comes(void **state)
{
    static const double hedges[] = {0.73, 1.1};
    static const size_t window[] = {656, 5000, 40000};

    (void)state;
    for (size_t i = 0; i < 6; i++) {
        comes((story){.hedges = hedges[i % 2], .window = window[i / 2]});
        assert_in_range(seen.sent[KF_NOTE_VECTOR], seen.view.adopted,
                        seen.view.adopted + 1);
        assert_int_equal(seen.view.healed, 1);
        assert_true(2 * seen.with > seen.turns);
    }
}

/* Of each node one vector at a time is under way, even where it is asked again
 * because the transport tells nothing. */
static void one_at_a_time(void **state)
{
    (void)state;
    comes((story){.hedges = 2.4, .window = 656, .mute = true});
    assert_true(seen.sent[KF_NOTE_VECTOR] > 20);
    assert_int_equal(seen.behind, 0);
}

/* Over a link that is fast enough no piece is sent twice. */
static void pieces_come_once(void **state)
{
    (void)state;
    comes((story){.hedges = 0.01, .window = 656});
    assert_true(seen.sent[KF_NOTE_PIECE] > 1000);
    assert_int_equal(seen.again, 0);
}

/* Who is behind is sent no more of a vector than was written since its own, and
 * has the same as the others then, bit for bit, at every iterate (sim_check in
 * mesh_sim.h). */
static void parts_of_vectors(void **state)
{
    (void)state;
    comes((story){.hedges = 1.1, .window = 656, .parts = true});
    print_message("%zu of %zu vectors in parts of %zu bytes on average\n",
                  seen.parts, seen.sent[KF_NOTE_VECTOR],
                  seen.bytes / (seen.parts + 1));
    assert_true(2 * seen.parts > seen.sent[KF_NOTE_VECTOR]);
    assert_true(4 * seen.bytes < seen.parts * seen.whole);
    assert_true(2 * seen.with > seen.turns);
}

/* Would the node take what was written since that iterate, up to number t? */
static bool fits(const kf_host *h, kofn_iterate_id base, uint64_t t)
{
    return kf_mesh_part_bytes(h, &(kf_note){.type = KF_NOTE_VECTOR,
                                            .at = {t, 7},
                                            .coded = base.step + 1,
                                            .decoded = base.lineage}) > 0;
}

/* A part with no numbers but 0 and a scalar, and the lines of our turns. */
static void take_part(kf_host *h, kofn_iterate_id base, kofn_iterate_id at)
{
    kf_note note = {.type = KF_NOTE_VECTOR,
                    .at = at,
                    .coded = base.step + 1,
                    .decoded = base.lineage};
    size_t n = kf_mesh_part_bytes(h, &note) / sizeof(double);
    size_t recalls = h->program.recalls;
    kf_buffer *body;

    assert_int_equal(kf_mesh_norms_count(h), 0);
    assert_ok(kf_buffer_new(&body, n, 1, KOFN_F64));
    memset(body->m.data, 0, n * sizeof(double));
    *(double *)body->m.data = 5;
    memcpy(kf_at(&body->m, n - recalls, 0), h->changing.line,
           recalls * sizeof *h->changing.line);
    assert_ok(kf_mesh_part_take(h, &note, body));
    assert_true(h->scalar[0] == 5);
    kf_buffer_drop(body);
}

/* Of a program that counts wrongly. */
static void says_too_much(void *ud, uint64_t t, size_t *first, size_t *rows)
{
    (void)ud;
    *first = t % 2 ? SIZE_MAX : 3;
    *rows = SIZE_MAX;
}

/* A part is of an iterate that the node has, or that its own was made of: not
 * of another under the same number, of one too long ago, or of one that was
 * replaced. */
static void parts_of_the_past(void **state)
{
    kofn_iterate_id at, was;
    kf_buffer *all;
    size_t bytes;
    fixture f;
    kf_host *h;
    sim s;

    (void)state;
    mesh_up(&s, &f, &wide, 34, 1);
    s.compute = MS / 8;
    s.opt.confirm = 1;
    for (size_t i = 0; i < s.nodes; i++)
        sim_start(&s, i, true);
    run_until(&s, 9);
    h = s.node[0].host;
    at = h->at;
    was = h->past[(at.step - 1) % KF_PAST];
    assert_true(was.step + 1 == at.step && fits(h, at, at.step + 1));
    assert_true(fits(h, was, at.step + 1));
    assert_true(fits(h, at, at.step + KF_PAST));
    assert_false(fits(h, at, at.step + KF_PAST + 1));
    assert_false(fits(h, was, at.step)); /* it is there */
    assert_false(
        fits(h, (kofn_iterate_id){at.step, at.lineage + 1}, at.step + 1));
    assert_false(
        fits(h, (kofn_iterate_id){was.step, was.lineage + 1}, at.step + 1));
    assert_false(
        fits(h, (kofn_iterate_id){at.step + 1, at.lineage}, at.step + 2));
    assert_ok(kf_mesh_vector_body(h, &all, &bytes));
    take_part(h, was, (kofn_iterate_id){at.step + 1, 7});
    assert_true(fits(h, h->at, at.step + 2) && fits(h, was, at.step + 2));
    assert_false(fits(h, at, at.step + 2));
    assert_ok(kf_mesh_vector_take(h, (kofn_iterate_id){at.step + 2, 8}, all));
    assert_true(fits(h, h->at, at.step + 3));
    assert_false(fits(h, was, at.step + 3));
    h->program.wrote = says_too_much; /* no more than there is */
    assert_int_equal(
        kf_mesh_part_bytes(h, &(kf_note){.type = KF_NOTE_VECTOR,
                                         .at = {at.step + 4, 7},
                                         .coded = h->at.step + 1,
                                         .decoded = h->at.lineage}),
        bytes - 3 * sizeof(double));
    h->opt.errors = KOFN_ERRORS_PROBABILISTIC;
    assert_false(fits(h, h->at, at.step + 3));
    kf_buffer_drop(all);
    mesh_down(&s, &f);
}

/* Whoever sends a byte now and then, for ever, is not waited for. */
static void somebody_crawls(void **state)
{
    (void)state;
    comes((story){.hedges = 0.73, .window = 656, .crawls = true});
    assert_true(seen.crawled > 0);
    assert_true(2 * seen.with > seen.turns);
}

/* Questions of the last node for a fingerprint of a vector after iterate 1. */
static size_t questions;

static void listen_to_questions(sim *s, const sim_packet *p)
{
    kf_note note;

    if (p->from != who(s))
        return;
    read_note(s, p, &note);
    questions += note.type == KF_NOTE_ASK && note.coded && note.at.step == 1;
}

static size_t ask_once(sim *s)
{
    const kf_note ask = {.type = KF_NOTE_ASK,
                         .from = s->node[who(s)].host->opt.incarnation,
                         .at = {1, 7}};

    questions = 0;
    assert_ok(kf_vector_quorum_ask(s->node[who(s)].host,
                                   s->node[0].host->opt.incarnation, &ask));
    sim_run(s, s->now + MS, NULL);
    return questions;
}

/* Of the six nodes one may lie, (6 - 3) / 2, so that two must have a vector:
 * the one that sends it and another.  Two of the other four are asked, and then
 * all. */
static void few_are_asked_for_fingerprints(void **state)
{
    fixture f;
    sim s;

    (void)state;
    mesh_up(&s, &f, &wide, 7, 1);
    s.compute = MS / 8;
    s.opt.errors = KOFN_ERRORS_ADVERSARIAL;
    s.opt.confirm = 0; /* as many as may lie, and one */
    s.listen = listen_to_questions;
    s.evil = &questions; /* vectors may differ by rounding */
    for (size_t i = 0; i < s.nodes; i++)
        sim_start(&s, i, true);
    run_until(&s, 3);
    assert_int_equal(ask_once(&s), 2);
    assert_int_equal(ask_once(&s), 4);
    sim_finish(&s, s.now + 60 * KOFN_SECOND, NULL, wide.scheme, 1);
    mesh_down(&s, &f);
}

TEST_FILE(train_slow_link_test)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_all_that_comes),
        cmocka_unit_test(one_at_a_time),
        cmocka_unit_test(pieces_come_once),
        cmocka_unit_test(parts_of_vectors),
        cmocka_unit_test(parts_of_the_past),
        cmocka_unit_test(somebody_crawls),
        cmocka_unit_test(few_are_asked_for_fingerprints),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
