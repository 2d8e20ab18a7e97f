/* train_back_test.c -- nodes that train keep no step of which blocks are wrong,
 * and go back to what they kept where it cannot be told who errs: what they
 * have after that is the plain training's, as in train_keep_test.c. */
#include "train_keep_rig.h"

/* More nodes than can be told from the others are wrong, for a while. */
static void be_wrong(void *ud, kofn_fault_place where, uint64_t t,
                     kofn_matrix *piece)
{
    const sim_node *n = ud;
    const fixture *f = n->sim->own;
    double *x = piece->data;

    for (size_t k = 0; k < piece->rows * piece->cols && n->id < 5; k++)
        if (where == KOFN_FAULT_IN_PRODUCT && n->lives == 0 && t >= 7 * f->turn)
            x[k] += 1 + sim_draw(n->sim);
}

/* The same, in the first attempt. */
static void be_wrong_once(void *ud, kofn_fault_place where, uint64_t t,
                          kofn_matrix *piece)
{
    const sim_node *n = ud;

    if (n->host->back.attempt == 0)
        be_wrong(ud, where, t, piece);
}

static size_t send_back(sim *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->nodes; i++)
        if (s->node[i].status) {
            assert_int_equal(s->node[i].status, KOFN_CORRUPT);
            sim_stop(s, i);
            sim_start(s, i, true);
            n++;
        }
    return n;
}

/* All see that, none can tell who is wrong, and those who come next go on with
 * what they kept. */
static void goes_back(void **state)
{
    const lesson *l = &lessons[0];

    (void)state;
    for (uint64_t seed = 0; seed < 2; seed++) {
        kofn_time until;
        uint64_t least;
        fixture f;
        size_t n;
        sim s;

        keeps_up(&s, &f, l, seed);
        s.opt.errors = KOFN_ERRORS_PROBABILISTIC;
        s.opt.fault = be_wrong;
        s.opt.resume = true;
        start_all(&s);
        for (until = s.now + 60 * KOFN_SECOND; s.now < until;) {
            for (n = 0; n < s.nodes && s.node[n].status; n++)
                ;
            if (n == s.nodes)
                break;
            sim_run(&s, s.now + MS, NULL);
        }
        assert_int_equal(send_back(&s), s.nodes);
        assert_int_equal(begun(&s, &least), s.nodes);
        assert_true(least >= 4 && least <= 7);
        sim_finish(&s, s.now + 20 * KOFN_SECOND, NULL, l->scheme, seed);
        mesh_down(&s, &f);
    }
}

/* A number of a block that no product shows, as the step is over that is
 * kept. */
static void be_hidden(void *ud, kofn_fault_place where, uint64_t t,
                      kofn_matrix *block)
{
    const sim_node *n = ud;
    const fixture *f = n->sim->own;

    if (where == KOFN_FAULT_IN_MEMORY && t == n->sim->opt.every * f->turn &&
        n->id == n->sim->seed && block->cols == cut_of(f->l))
        *(double *)block->data += 0.5;
}

/* A training one of whose nodes has such a block. */
static void hides_up(sim *s, fixture *f, unsigned epochs, uint64_t every,
                     uint64_t seed)
{
    static lesson dark;

    dark = lessons[0];
    dark.dark = true;
    mesh_up(s, f, &dark, epochs, seed);
    s->opt.keep = folder;
    s->opt.every = every;
    s->opt.errors = KOFN_ERRORS_PROBABILISTIC;
    s->opt.fault = be_hidden;
    s->look = NULL; /* until the block is mended */
    empty(folder);
}

/* Nobody keeps a step of which a block is wrong; the next is kept by all, and
 * whoever goes on with that has the right blocks. */
static void wrong_blocks_are_not_kept(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 3; seed++) {
        uint64_t least;
        fixture f;
        sim s;

        hides_up(&s, &f, 8, 5, seed);
        start_all(&s);
        run_until(&s, 9);
        assert_int_equal(count_healed(&s), 1);
        assert_int_equal(each_file(".kept", NULL), 0);
        assert_int_equal(each_file("005.draft", NULL), s.nodes - 1);
        run_until(&s, 12);
        assert_int_equal(each_file("010.kept", NULL), s.nodes);
        stop_all(&s);
        s.look = look_at_blocks;
        s.opt.resume = true;
        start_all(&s);
        assert_int_equal(begun(&s, &least), s.nodes);
        sim_finish(&s, s.now + 20 * KOFN_SECOND, NULL, f.l->scheme, seed);
        mesh_down(&s, &f);
    }
}

/* Where a step that is to be kept cannot be, a later one is, long before the
 * next that is to be. */
static void what_is_missed_is_made_up_for(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 2; seed++) {
        fixture f;
        sim s;

        hides_up(&s, &f, 30, 32, seed);
        start_all(&s);
        run_until(&s, 62);
        assert_int_equal(each_file("032.kept", NULL), 0);
        assert_int_equal(each_file(".kept", NULL), s.nodes);
        assert_int_equal(each_file(".draft", NULL), 0);
        mesh_down(&s, &f);
    }
}

/* The same, and in the first attempt much that is made some steps later. */
static void be_hidden_and_wrong(void *ud, kofn_fault_place where, uint64_t t,
                                kofn_matrix *numbers)
{
    const sim_node *n = ud;
    const fixture *f = n->sim->own;

    if (n->host->back.attempt == 0 && t >= 50 * f->turn)
        be_wrong(ud, where, t, numbers);
    be_hidden(ud, where, t, numbers);
}

/* What one node tells that it has on disk is lost, in the first attempt. */
static void lose_what_is_kept(sim *s)
{
    const kf_host *h = s->node[s->seed].host;
    size_t *seen = s->inject_ud;

    for (; *seen < s->packets; ++*seen) {
        sim_packet *p = s->packet[*seen];
        kf_note note;

        if (p && p->from == s->seed && h->back.attempt == 0 &&
            !kf_note_read(&note, p->p.head, p->p.head_bytes, h->job) &&
            note.type == KF_NOTE_KEPT)
            p->p.head[0] ^= 1;
    }
}

/* Of what makes up for a step that was missed not all members need to have
 * told.  Who has none of it goes back there with the others, by what these
 * have. */
static void who_does_not_tell_is_not_waited_for(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 2; seed++) {
        size_t other = seed + 1, seen = 0;
        fixture f;
        sim s;

        hides_up(&s, &f, 30, 32, seed);
        s.opt.fault = be_hidden_and_wrong;
        s.inject = lose_what_is_kept;
        s.inject_ud = &seen;
        start_all(&s);
        run_until(&s, 49);
        assert_int_equal(each_file("032.kept", NULL), 0);
        assert_int_equal(each_file(".kept", NULL), s.nodes);
        s.look = look_at_blocks;
        s.node[other].host->keeping.files = 0;
        sim_finish(&s, s.now + 60 * KOFN_SECOND, NULL, f.l->scheme, seed);
        for (size_t i = 0; i < s.nodes; i++) {
            assert_int_equal(s.node[i].host->back.times, 1);
            assert_true(s.node[i].host->back.turn > 32);
        }
        mesh_down(&s, &f);
    }
}

/* They go back by themselves, to the last step that was kept, or to the
 * start. */
static void go_back_by_themselves(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 6; seed++) {
        const lesson *l = &lessons[seed % 2 ? 2 : 0];
        fixture f;
        sim s;

        keeps_up(&s, &f, l, seed);
        s.opt.errors = KOFN_ERRORS_PROBABILISTIC;
        s.opt.every = seed < 4 ? 5 : 8;
        s.opt.fault = be_wrong_once;
        start_all(&s);
        sim_finish(&s, s.now + 60 * KOFN_SECOND, NULL, l->scheme, seed);
        for (size_t i = 0; i < s.nodes; i++) {
            kofn_node_view v;

            assert_ok(s.node[i].status);
            kf_host_look(s.node[i].host, &v);
            assert_int_equal(v.back, 1);
        }
        mesh_down(&s, &f);
    }
}

/* Who has lost what it kept, or finds it damaged, follows the others. */
static void some_have_nothing_to_go_back_to(void **state)
{
    static void (*const spoil[])(const char *) = {erase, damage, cut_short};
    const lesson *l = &lessons[0];

    (void)state;
    for (size_t i = 0; i < COUNT(spoil); i++) {
        fixture f;
        sim s;

        keeps_up(&s, &f, l, i);
        s.opt.errors = KOFN_ERRORS_PROBABILISTIC;
        s.opt.every = 5;
        s.opt.fault = be_wrong_once;
        start_all(&s);
        run_until(&s, 7);
        assert_int_equal(each_of("seat-6-", ".kept", spoil[i]), 1);
        sim_finish(&s, s.now + 60 * KOFN_SECOND, NULL, l->scheme, i);
        for (size_t k = 0; k < s.nodes; k++) {
            kofn_node_view v;

            kf_host_look(s.node[k].host, &v);
            assert_int_equal(v.back, 1);
        }
        mesh_down(&s, &f);
    }
}

/* Those who were started again err in the first two attempts. */
static void be_wrong_twice(void *ud, kofn_fault_place where, uint64_t t,
                           kofn_matrix *piece)
{
    const sim_node *n = ud;
    const fixture *f = n->sim->own;
    double *x = piece->data;

    if (where != KOFN_FAULT_IN_PRODUCT || n->id >= 5 || n->lives == 0 ||
        n->host->back.attempt > 1 || t < 3 * f->turn)
        return;
    for (size_t k = 0; k < piece->rows * piece->cols; k++)
        x[k] += 1 + sim_draw(n->sim);
}

/* They go on with what was kept, which is of no use, and nothing was kept
 * before: they begin at the start, of which they have the vector although they
 * did not begin there. */
static void go_back_to_the_start(void **state)
{
    const lesson *l = &lessons[0];
    uint64_t least;
    fixture f;
    sim s;

    (void)state;
    keeps_up(&s, &f, l, 0);
    s.opt.errors = KOFN_ERRORS_PROBABILISTIC;
    s.opt.every = 2;
    s.opt.fault = be_wrong_twice;
    start_all(&s);
    run_until(&s, 3);
    sim_run(&s, s.now + 2 * MS, NULL);
    stop_all(&s);
    s.opt.resume = true;
    start_all(&s);
    assert_int_equal(begun(&s, &least), s.nodes);
    assert_int_equal(least, 2);
    sim_finish(&s, s.now + 60 * KOFN_SECOND, NULL, l->scheme, 0);
    for (size_t i = 0; i < s.nodes; i++) {
        kofn_node_view v;

        kf_host_look(s.node[i].host, &v);
        assert_int_equal(v.back, 2);
    }
    mesh_down(&s, &f);
}

/* What is wrong again and again ends the run, after as many attempts as
 * promised. */
static void they_do_not_go_back_for_ever(void **state)
{
    const lesson *l = &lessons[0];
    size_t ended = 0;
    fixture f;
    sim s;

    (void)state;
    keeps_up(&s, &f, l, 0);
    s.opt.errors = KOFN_ERRORS_PROBABILISTIC;
    s.opt.every = 5;
    s.opt.fault = be_wrong;
    start_all(&s);
    while (ended < s.nodes) {
        sim_run(&s, s.now + MS, NULL);
        assert_true(s.now < 300 * KOFN_SECOND);
        ended = 0;
        for (size_t i = 0; i < s.nodes; i++)
            ended += s.node[i].status != KOFN_OK;
    }
    for (size_t i = 0; i < s.nodes; i++) {
        kofn_node_view v;

        assert_int_equal(s.node[i].status, KOFN_CORRUPT);
        kf_host_look(s.node[i].host, &v);
        assert_int_equal(v.back, 3);
        assert_int_equal(v.at.step, 7 * f.turn);
    }
    mesh_down(&s, &f);
}

TEST_FILE(train_back_test)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goes_back),
        cmocka_unit_test(wrong_blocks_are_not_kept),
        cmocka_unit_test(what_is_missed_is_made_up_for),
        cmocka_unit_test(who_does_not_tell_is_not_waited_for),
        cmocka_unit_test(go_back_by_themselves),
        cmocka_unit_test(some_have_nothing_to_go_back_to),
        cmocka_unit_test(go_back_to_the_start),
        cmocka_unit_test(they_do_not_go_back_for_ever),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
