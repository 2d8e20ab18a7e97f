/* train_windows_test.c -- trainings without a master with blocks larger than
 * the windows that are lent. A node without a block rebuilds it from several
 * windows (src/mesh/rebuild.c) while steps continue. Lenders may be faulty or
 * late, and a vector may be wrong meanwhile. Blocks are compared with the
 * coded weights as soon as they are whole. */
#include "train_mesh_rig.h"

enum { WIDE = 1, MOST_WINDOWS = 64 };

/* Faults of the last node, which rebuilds its blocks, and what is recorded
 * about it. */
typedef struct window_case {
    /* Node 1 spoils a number of each of its windows but the first. */
    bool spoils;
    /* Node 1 sends nothing that was requested. */
    bool silent;
    /* No node sends what was requested, from the third window until two turns
     * have ended. */
    bool keeps;
    /* The node's own vector is wrong at the end of a turn, when it has some
     * rows. */
    bool errs;
    bool widens;  /* node 1 lends rows with one more optimizer state */
    size_t begun; /* windows of the large block that it requested */
    size_t lo[MOST_WINDOWS], rows[MOST_WINDOWS];
    uint64_t turn[MOST_WINDOWS]; /* the turn of each request */
    kofn_time when[MOST_WINDOWS];
    size_t sent, erred;
    size_t held; /* largest number of bytes of borrowed blocks */
} window_case;

static window_case now;

static size_t last_node(const sim *s)
{
    return s->nodes - 1;
}

static uint64_t turn_of(const sim *s)
{
    return s->node[0].host->blocks.changing.turn;
}

static uint64_t outvoted(const sim *s)
{
    kofn_node_view v;

    kf_node_look(s->node[last_node(s)].host->node, &v);
    return v.outvoted;
}

static void read_note(const sim *s, const sim_packet *p, kf_note *note)
{
    assert_ok(kf_note_read(note, p->p.head, p->p.head_bytes,
                           s->node[p->from].host->job));
}

static void listen(sim *s, const sim_packet *p)
{
    kf_note note;

    read_note(s, p, &note);
    if (note.type != KF_NOTE_READ || p->from != last_node(s) ||
        note.group != WIDE ||
        (now.begun && now.lo[now.begun - 1] == note.rows.lo))
        return;
    assert_true(now.begun < MOST_WINDOWS);
    now.lo[now.begun] = note.rows.lo;
    now.rows[now.begun] = note.rows.hi - note.rows.lo;
    now.when[now.begun] = s->now;
    now.turn[now.begun++] = turn_of(s);
}

/* True if no answer reaches the node now. If it errs, this lasts until it is
 * outvoted. */
static bool is_withheld(const sim *s)
{
    if (now.errs)
        return now.begun >= 3 && outvoted(s) == 0;
    return now.keeps && now.begun == 3 && turn_of(s) < now.turn[2] + 2;
}

static void tamper(sim *s, sim_packet *p)
{
    kf_note note;

    read_note(s, p, &note);
    if (note.type != KF_NOTE_BLOCK || note.group != WIDE ||
        p->to != last_node(s))
        return;
    if (now.spoils && p->from == 1 && note.rows.lo > 0) {
        ((double *)(void *)p->body)[p->p.body_bytes / 16 - 1] += 1e-3;
        now.sent++;
    }
    if (now.widens && p->from == 1) {
        size_t each = p->p.body_bytes / 2;
        unsigned char *wide = numbers(3 * each, 1);

        memcpy(wide, p->body, 2 * each);
        kf_free(p->body);
        p->body = wide;
        p->p.body_bytes = 3 * each;
        now.sent++;
    }
    if (is_withheld(s) || (now.silent && p->from == 1)) {
        note.rows.lo++; /* rows that it did not request */
        note.rows.hi++;
        now.sent++;
    }
    kf_note_write(p->p.head, &note, s->node[p->from].host->job, p->body,
                  p->p.body_bytes);
}

static void err(void *ud, kofn_fault_place where, uint64_t t,
                kofn_matrix *numbers)
{
    const sim_node *n = ud;
    const fixture *f = n->sim->own;

    if (!now.errs || now.erred || n->id != last_node(n->sim) || now.begun < 3 ||
        where != KOFN_FAULT_IN_VECTOR || (t + 1) % f->turn != 0)
        return;
    now.erred++;
    for (size_t i = 0; i < numbers->rows; i++)
        *(double *)kf_at(numbers, i, 0) += 0.5;
}

static void hold(sim *s)
{
    const kf_host *h = s->node[last_node(s)].host;
    size_t held = 0;

    for (size_t i = 0; h && i < h->blocks.changing.lents; i++) {
        const kf_borrowed *l = &h->blocks.changing.lent[i];

        if (l->from != KF_LOCAL)
            held += (1 + l->block->states) * l->block->rows *
                    l->block->components * l->block->cols * sizeof(double);
    }
    now.held = kf_max(now.held, held);
}

static void look_at_its_blocks(sim *s, size_t id)
{
    if (id == last_node(s) && !is_withheld(s))
        look_at_blocks(s, id);
}

/* Stops the node and restarts it when the vector no longer has the first
 * steps. */
static void rebuild(sim *s, fixture *f, window_case what, kofn_errors errors)
{
    now = what;
    mesh_up(s, f, &wide_case, 7, 1);
    s->compute = MS / 8;
    s->opt.errors = errors;
    s->opt.confirm = 1;
    s->opt.fault = err;
    s->window = 656;
    s->look = look_at_its_blocks;
    s->listen = listen;
    s->inject = hold;
    s->tamper = tamper;
    s->hostile =
        &now; /* vectors may differ by rounding, or be wrong for a while */
    s->lenient = what.errs;
    for (size_t i = 0; i < wide_case.nodes; i++) {
        sim_start(s, i, true);
        s->node[i].turncoat =
            i < last_node(s) &&
            (what.keeps || what.errs ||
             ((what.spoils || what.silent || what.widens) && i == 1));
    }
    run_until(s, 6);
    sim_stop(s, last_node(s));
    run_until(s, 9);
    sim_start(s, last_node(s), false);
    sim_finish(s, s->now + 60 * KOFN_SECOND, NULL, wide_case.scheme, 1);
    assert_int_equal(s->node[last_node(s)].host->blocks.changing.rebuilt, 1);
    assert_int_equal(s->node[last_node(s)].host->blocks.changing.wrong, 0);
}

/* Returns the bytes of all blocks with velocities. */
static size_t bytes_of_all(const fixture *f)
{
    size_t bytes = 0;

    for (size_t i = 0; i < wide_case.layers; i++) {
        kf_extent e = kf_extent_of(f->plan[i]);

        bytes += 2 * e.components * e.rows * e.cols * sizeof(double);
    }
    return bytes;
}

/* All rows are requested once, the next after the ones before are rebuilt.
 * Windows grow. The windows of all others together never exceed the node's own
 * blocks. */
static void while_steps_continue(void **state)
{
    fixture f;
    sim s;
    size_t rows = 0;

    (void)state;
    rebuild(&s, &f, (window_case){.spoils = false}, KOFN_ERRORS_NONE);
    assert_in_range(now.held, 1, bytes_of_all(&f));
    assert_true(now.begun >= wide_case.nodes);
    for (size_t i = 0; i < now.begun; i++) {
        assert_int_equal(now.lo[i], rows);
        rows += now.rows[i];
    }
    assert_int_equal(rows, kf_extent_of(f.plan[WIDE]).rows);
    assert_true(now.turn[now.begun - 1] > now.turn[0]);
    assert_true(now.rows[1] > now.rows[0]);
    mesh_down(&s, &f);
}

static void late_window(void **state)
{
    fixture f;
    sim s;

    (void)state;
    rebuild(&s, &f, (window_case){.keeps = true}, KOFN_ERRORS_NONE);
    assert_true(now.sent > 0);
    assert_in_range(now.rows[3], now.rows[2] / 2, now.rows[2] / 2 + 1);
    mesh_down(&s, &f);
}

static void silent_lender(void **state)
{
    fixture f;
    sim s;

    (void)state;
    rebuild(&s, &f, (window_case){.silent = true}, KOFN_ERRORS_NONE);
    assert_true(now.sent > 1);
    for (size_t i = 2; i < now.begun; i++)
        assert_true(now.when[i] - now.when[i - 1] <
                    kf_host_hedge(s.node[0].host));
    mesh_down(&s, &f);
}

/* The wrong number is in rows that are not the first. */
static void faulty_lender(void **state)
{
    fixture f;
    sim s;

    (void)state;
    rebuild(&s, &f, (window_case){.spoils = true}, KOFN_ERRORS_ADVERSARIAL);
    assert_true(now.sent > 0);
    mesh_down(&s, &f);
}

/* The training has one optimizer state. Rows with two are not taken, and those
 * of the others suffice. */
static void one_more_state(void **state)
{
    fixture f;
    sim s;

    (void)state;
    rebuild(&s, &f, (window_case){.widens = true}, KOFN_ERRORS_ADVERSARIAL);
    assert_true(now.sent > 0);
    for (size_t i = 0; i < wide_case.nodes; i++)
        assert_int_equal(s.node[i].host->blocks.operand[WIDE].block->states, 1);
    mesh_down(&s, &f);
}

/* The node is outvoted. It continues only then, with rows that its own wrong
 * vector changed. They agree with each other and are wrong. */
static void wrong_vector(void **state)
{
    fixture f;
    sim s;

    (void)state;
    rebuild(&s, &f, (window_case){.errs = true}, KOFN_ERRORS_ADVERSARIAL);
    assert_int_equal(now.erred, 1);
    assert_int_equal(outvoted(&s), 1);
    mesh_down(&s, &f);
}

TEST_FILE(train_windows_test)
{
    const struct CMUnitTest tests[] = {
        TEST(while_steps_continue,
             "windows: a node rebuilds its blocks while steps continue"),
        TEST(late_window,
             "windows: the window after a late one has half the rows"),
        TEST(silent_lender,
             "windows: a silent lender is waited for in the first window only"),
        TEST(faulty_lender, "windows: a wrong number of a lender is found"),
        TEST(one_more_state,
             "windows: rows with more optimizer states are not taken"),
        TEST(wrong_vector,
             "windows: rows changed by a wrong vector are rebuilt"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
