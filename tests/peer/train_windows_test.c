/* train_windows_test.c -- trainings without a master with blocks so large, for
 * the windows that are lent, that whoever has none makes it of several
 * (src/mesh/rebuild.c): while steps go on, with lenders that lie or keep it
 * waiting, and with a vector that was wrong meanwhile.  Blocks are compared
 * with the coded weights as soon as they are whole. */
#include "train_mesh_rig.h"

enum { WIDE = 1, MOST_WINDOWS = 64 };

/* What happens to the last node, who makes its blocks, and what is seen of
 * it. */
typedef struct story {
    /* node 1 spoils a number of each of its windows but the first, ... */
    bool lies;
    /* ... or nothing that it sends is what was asked for */
    bool silent;
    /* nor is what anybody sends, from the third window until two turns are
     * over */
    bool keeps;
    /* its own vector is wrong as a turn ends, when it has some rows */
    bool errs;
    size_t begun; /* windows of the large block that it asked for */
    size_t lo[MOST_WINDOWS], rows[MOST_WINDOWS];
    uint64_t turn[MOST_WINDOWS]; /* when it did */
    kofn_time when[MOST_WINDOWS];
    size_t told, erred;
    size_t held; /* bytes of others' blocks, at most */
} story;

static story now;

static size_t who(const sim *s)
{
    return s->nodes - 1;
}

static uint64_t turn_of(const sim *s)
{
    return s->node[0].host->changing.turn;
}

static uint64_t outvoted(const sim *s)
{
    kofn_node_view v;

    kf_node_look(s->node[who(s)].host->node, &v);
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
    if (note.type != KF_NOTE_READ || p->from != who(s) || note.group != WIDE ||
        (now.begun && now.lo[now.begun - 1] == note.coded))
        return;
    assert_true(now.begun < MOST_WINDOWS);
    now.lo[now.begun] = note.coded;
    now.rows[now.begun] = note.decoded - note.coded;
    now.when[now.begun] = s->now;
    now.turn[now.begun++] = turn_of(s);
}

/* True if answers do not come to it now: until it is outvoted, where it
 * errs. */
static bool is_kept(const sim *s)
{
    if (now.errs)
        return now.begun >= 3 && outvoted(s) == 0;
    return now.keeps && now.begun == 3 && turn_of(s) < now.turn[2] + 2;
}

static void twist(sim *s, sim_packet *p)
{
    kf_note note;

    read_note(s, p, &note);
    if (note.type != KF_NOTE_BLOCK || note.group != WIDE || p->to != who(s))
        return;
    if (now.lies && p->from == 1 && note.coded > 0) {
        ((double *)(void *)p->body)[p->p.body_bytes / 16 - 1] += 1e-3;
        now.told++;
    }
    if (is_kept(s) || (now.silent && p->from == 1)) {
        note.coded++; /* rows that it did not ask for */
        note.decoded++;
        now.told++;
    }
    kf_note_write(p->p.head, &note, s->node[p->from].host->job, p->body,
                  p->p.body_bytes);
}

static void err(void *ud, kofn_fault_place where, uint64_t t,
                kofn_matrix *numbers)
{
    const sim_node *n = ud;
    const fixture *f = n->sim->own;

    if (!now.errs || now.erred || n->id != who(n->sim) || now.begun < 3 ||
        where != KOFN_FAULT_IN_VECTOR || (t + 1) % f->turn != 0)
        return;
    now.erred++;
    for (size_t i = 0; i < numbers->rows; i++)
        *(double *)kf_at(numbers, i, 0) += 0.5;
}

static void hold(sim *s)
{
    const kf_host *h = s->node[who(s)].host;
    size_t held = 0;

    for (size_t i = 0; h && i < h->changing.lents; i++) {
        const kf_borrowed *l = &h->changing.lent[i];

        if (l->from != KF_OURS)
            held += (l->block->velocity ? 2 : 1) * l->block->rows *
                    l->block->lanes * l->block->cols * sizeof(double);
    }
    now.held = kf_max(now.held, held);
}

static void look_at_its_blocks(sim *s, size_t id)
{
    if (id == who(s) && !is_kept(s))
        look_at_blocks(s, id);
}

/* It goes, and comes again when nobody can tell any more how the first steps
 * were. */
static void heal(sim *s, fixture *f, story what, kofn_errors errors)
{
    now = what;
    mesh_up(s, f, &wide, 7, 1);
    s->compute = MS / 8;
    s->opt.errors = errors;
    s->opt.confirm = 1;
    s->opt.fault = err;
    s->window = 656;
    s->look = look_at_its_blocks;
    s->listen = listen;
    s->inject = hold;
    s->twist = twist;
    s->evil =
        &now; /* vectors may differ by rounding, or be wrong for a while */
    s->lenient = what.errs;
    for (size_t i = 0; i < wide.nodes; i++) {
        sim_start(s, i, true);
        s->node[i].turncoat =
            i < who(s) &&
            (what.keeps || what.errs || ((what.lies || what.silent) && i == 1));
    }
    run_until(s, 6);
    sim_stop(s, who(s));
    run_until(s, 9);
    sim_start(s, who(s), false);
    sim_finish(s, s->now + 60 * KOFN_SECOND, NULL, wide.scheme, 1);
    assert_int_equal(s->node[who(s)].host->changing.healed, 1);
    assert_int_equal(s->node[who(s)].host->changing.wrong, 0);
}

/* Of blocks, with velocities. */
static size_t bytes_of_all(const fixture *f)
{
    size_t bytes = 0;

    for (size_t i = 0; i < wide.layers; i++) {
        kf_extent e = kf_extent_of(f->plan[i]);

        bytes += 2 * e.lanes * e.rows * e.cols * sizeof(double);
    }
    return bytes;
}

/* All rows are asked for once, the next when the ones before are made, and
 * steps are taken meanwhile.  Windows grow, but never are those of all others
 * together more than its own blocks. */
static void while_steps_go_on(void **state)
{
    fixture f;
    sim s;
    size_t rows = 0;

    (void)state;
    heal(&s, &f, (story){.lies = false}, KOFN_ERRORS_NONE);
    assert_in_range(now.held, 1, bytes_of_all(&f));
    assert_true(now.begun >= wide.nodes);
    for (size_t i = 0; i < now.begun; i++) {
        assert_int_equal(now.lo[i], rows);
        rows += now.rows[i];
    }
    assert_int_equal(rows, kf_extent_of(f.plan[WIDE]).rows);
    assert_true(now.turn[now.begun - 1] > now.turn[0]);
    assert_true(now.rows[1] > now.rows[0]);
    mesh_down(&s, &f);
}

/* One that no turn sufficed for is followed by one of half as many rows. */
static void kept_waiting(void **state)
{
    fixture f;
    sim s;

    (void)state;
    heal(&s, &f, (story){.keeps = true}, KOFN_ERRORS_NONE);
    assert_true(now.told > 0);
    assert_in_range(now.rows[3], now.rows[2] / 2, now.rows[2] / 2 + 1);
    mesh_down(&s, &f);
}

/* One of whom nothing comes is waited for in the first window, and in no
 * other. */
static void a_lender_is_silent(void **state)
{
    fixture f;
    sim s;

    (void)state;
    heal(&s, &f, (story){.silent = true}, KOFN_ERRORS_NONE);
    assert_true(now.told > 1);
    for (size_t i = 2; i < now.begun; i++)
        assert_true(now.when[i] - now.when[i - 1] <
                    kf_host_hedge(s.node[0].host));
    mesh_down(&s, &f);
}

/* One number of one lender is wrong, in rows that are not the first. */
static void a_lender_lies(void **state)
{
    fixture f;
    sim s;

    (void)state;
    heal(&s, &f, (story){.lies = true}, KOFN_ERRORS_ADVERSARIAL);
    assert_true(now.told > 0);
    mesh_down(&s, &f);
}

/* It is outvoted, and only then goes on, when what it has so far was changed by
 * its own wrong vector: all of that agrees, and is wrong. */
static void a_wrong_vector(void **state)
{
    fixture f;
    sim s;

    (void)state;
    heal(&s, &f, (story){.errs = true}, KOFN_ERRORS_ADVERSARIAL);
    assert_int_equal(now.erred, 1);
    assert_int_equal(outvoted(&s), 1);
    mesh_down(&s, &f);
}

TEST_FILE(train_windows_test)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(while_steps_go_on),  cmocka_unit_test(kept_waiting),
        cmocka_unit_test(a_lender_is_silent), cmocka_unit_test(a_lender_lies),
        cmocka_unit_test(a_wrong_vector),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
