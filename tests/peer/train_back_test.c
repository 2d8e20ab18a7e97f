/* train_back_test.c -- nodes that train keep no step with wrong blocks, and
 * return to their checkpoint if errors cannot be located. After that their
 * vectors and blocks are the plain training's, as in train_keep_test.c. */
#include "train_keep_rig.h"

/* Makes more nodes err, for a while, than the others can locate. */
static void err_in_products(void *ud, kofn_fault_place where, uint64_t t,
                            kofn_matrix *partial)
{
    const sim_node *n = ud;
    const fixture *f = n->sim->own;
    double *x = partial->data;

    for (size_t k = 0; k < partial->rows * partial->cols && n->id < 5; k++)
        if (where == KOFN_FAULT_IN_PRODUCT && n->lives == 0 && t >= 7 * f->turn)
            x[k] += 1 + sim_draw(n->sim);
}

/* Makes them err in the first attempt only. */
static void err_once(void *ud, kofn_fault_place where, uint64_t t,
                     kofn_matrix *partial)
{
    const sim_node *n = ud;

    if (n->host->disk.back.attempt == 0)
        err_in_products(ud, where, t, partial);
}

static size_t restart_failed(sim *s)
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

/* All nodes detect the errors and none can locate them. Restarted nodes resume
 * from their checkpoints. */
static void restarts_resume(void **state)
{
    const training_case *l = &training_cases[0];

    (void)state;
    for (uint64_t seed = 0; seed < 2; seed++) {
        kofn_time until;
        uint64_t least;
        fixture f;
        size_t n;
        sim s;

        checkpoints_up(&s, &f, l, seed);
        s.opt.errors = KOFN_ERRORS_PROBABILISTIC;
        s.opt.fault = err_in_products;
        s.opt.resume = true;
        start_all(&s);
        for (until = s.now + 60 * KOFN_SECOND; s.now < until;) {
            for (n = 0; n < s.nodes && s.node[n].status; n++)
                ;
            if (n == s.nodes)
                break;
            sim_run(&s, s.now + MS, NULL);
        }
        assert_int_equal(restart_failed(&s), s.nodes);
        assert_int_equal(count_resumed(&s, &least), s.nodes);
        assert_true(least >= 4 && least <= 7);
        sim_finish(&s, s.now + 20 * KOFN_SECOND, NULL, l->scheme, seed);
        mesh_down(&s, &f);
    }
}

/* Changes a number of a block that no product shows, at the end of the step of
 * the checkpoint. */
static void err_hidden(void *ud, kofn_fault_place where, uint64_t t,
                       kofn_matrix *block)
{
    const sim_node *n = ud;
    const fixture *f = n->sim->own;

    if (where == KOFN_FAULT_IN_MEMORY && t == n->sim->opt.every * f->turn &&
        n->id == n->sim->seed && block->cols == cut_of(f->l))
        *(double *)block->data += 0.5;
}

/* A training in which one node has such a block. */
static void hidden_up(sim *s, fixture *f, unsigned epochs, uint64_t every,
                      uint64_t seed)
{
    static training_case zero_input;

    zero_input = training_cases[0];
    zero_input.zero_input = true;
    mesh_up(s, f, &zero_input, epochs, seed);
    s->opt.keep = folder;
    s->opt.every = every;
    s->opt.errors = KOFN_ERRORS_PROBABILISTIC;
    s->opt.fault = err_hidden;
    s->look = NULL; /* until the block is repaired */
    empty(folder);
}

/* The next step is kept by all, and nodes that resume from it have right
 * blocks. */
static void wrong_blocks_are_not_kept(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 3; seed++) {
        uint64_t least;
        fixture f;
        sim s;

        hidden_up(&s, &f, 8, 5, seed);
        start_all(&s);
        run_until(&s, 9);
        assert_int_equal(count_rebuiled(&s), 1);
        assert_int_equal(each_file(".kept", NULL), 0);
        assert_int_equal(each_file("005.draft", NULL), s.nodes - 1);
        run_until(&s, 12);
        assert_int_equal(each_file("010.kept", NULL), s.nodes);
        stop_all(&s);
        s.look = look_at_blocks;
        s.opt.resume = true;
        start_all(&s);
        assert_int_equal(count_resumed(&s, &least), s.nodes);
        sim_finish(&s, s.now + 20 * KOFN_SECOND, NULL, f.l->scheme, seed);
        mesh_down(&s, &f);
    }
}

/* The next regular step would be 64. */
static void missed_step_is_made_up_for(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 2; seed++) {
        fixture f;
        sim s;

        hidden_up(&s, &f, 30, 32, seed);
        start_all(&s);
        run_until(&s, 62);
        assert_int_equal(each_file("032.kept", NULL), 0);
        assert_int_equal(each_file(".kept", NULL), s.nodes);
        assert_int_equal(each_file(".draft", NULL), 0);
        mesh_down(&s, &f);
    }
}

/* Changes a hidden number, and in the first attempt many others some steps
 * later. */
static void err_hidden_and_in_products(void *ud, kofn_fault_place where,
                                       uint64_t t, kofn_matrix *numbers)
{
    const sim_node *n = ud;
    const fixture *f = n->sim->own;

    if (n->host->disk.back.attempt == 0 && t >= 50 * f->turn)
        err_in_products(ud, where, t, numbers);
    err_hidden(ud, where, t, numbers);
}

/* Loses what one node reports about its checkpoint, in the first attempt. */
static void lose_what_is_kept(sim *s)
{
    const kf_host *h = s->node[s->seed].host;
    size_t *seen = s->inject_ud;

    for (; *seen < s->packets; ++*seen) {
        sim_packet *p = s->packet[*seen];
        kf_note note;

        if (p && p->from == s->seed && h->disk.back.attempt == 0 &&
            !kf_note_read(&note, p->p.head, p->p.head_bytes, h->job) &&
            note.type == KF_NOTE_KEPT)
            p->p.head[0] ^= 1;
    }
}

/* Not all members need to report such a step. A node that lacks it returns
 * there with the data of the others. */
static void silent_member_is_not_waited_for(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 2; seed++) {
        size_t other = seed + 1, seen = 0;
        fixture f;
        sim s;

        hidden_up(&s, &f, 30, 32, seed);
        s.opt.fault = err_hidden_and_in_products;
        s.inject = lose_what_is_kept;
        s.inject_ud = &seen;
        start_all(&s);
        run_until(&s, 49);
        assert_int_equal(each_file("032.kept", NULL), 0);
        assert_int_equal(each_file(".kept", NULL), s.nodes);
        s.look = look_at_blocks;
        s.node[other].host->disk.keeping.files = 0;
        sim_finish(&s, s.now + 60 * KOFN_SECOND, NULL, f.l->scheme, seed);
        for (size_t i = 0; i < s.nodes; i++) {
            assert_int_equal(s.node[i].host->disk.back.times, 1);
            assert_true(s.node[i].host->disk.back.turn > 32);
        }
        mesh_down(&s, &f);
    }
}

static void nodes_return(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 6; seed++) {
        const training_case *l = &training_cases[seed % 2 ? 2 : 0];
        fixture f;
        sim s;

        checkpoints_up(&s, &f, l, seed);
        s.opt.errors = KOFN_ERRORS_PROBABILISTIC;
        s.opt.every = seed < 4 ? 5 : 8;
        s.opt.fault = err_once;
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

static void lost_checkpoint(void **state)
{
    static void (*const spoil[])(const char *) = {erase, damage, cut_short};
    const training_case *l = &training_cases[0];

    (void)state;
    for (size_t i = 0; i < COUNT(spoil); i++) {
        fixture f;
        sim s;

        checkpoints_up(&s, &f, l, i);
        s.opt.errors = KOFN_ERRORS_PROBABILISTIC;
        s.opt.every = 5;
        s.opt.fault = err_once;
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

/* Restarted nodes err in the first two attempts. */
static void err_twice(void *ud, kofn_fault_place where, uint64_t t,
                      kofn_matrix *partial)
{
    const sim_node *n = ud;
    const fixture *f = n->sim->own;
    double *x = partial->data;

    if (where != KOFN_FAULT_IN_PRODUCT || n->id >= 5 || n->lives == 0 ||
        n->host->disk.back.attempt > 1 || t < 3 * f->turn)
        return;
    for (size_t k = 0; k < partial->rows * partial->cols; k++)
        x[k] += 1 + sim_draw(n->sim);
}

/* The nodes resume from a checkpoint that is of no use, and there is no
 * earlier one. They restart from the start. They have its vector although they
 * did not begin there. */
static void return_to_the_start(void **state)
{
    const training_case *l = &training_cases[0];
    uint64_t least;
    fixture f;
    sim s;

    (void)state;
    checkpoints_up(&s, &f, l, 0);
    s.opt.errors = KOFN_ERRORS_PROBABILISTIC;
    s.opt.every = 2;
    s.opt.fault = err_twice;
    start_all(&s);
    run_until(&s, 3);
    sim_run(&s, s.now + 2 * MS, NULL);
    stop_all(&s);
    s.opt.resume = true;
    start_all(&s);
    assert_int_equal(count_resumed(&s, &least), s.nodes);
    assert_int_equal(least, 2);
    sim_finish(&s, s.now + 60 * KOFN_SECOND, NULL, l->scheme, 0);
    for (size_t i = 0; i < s.nodes; i++) {
        kofn_node_view v;

        kf_host_look(s.node[i].host, &v);
        assert_int_equal(v.back, 2);
    }
    mesh_down(&s, &f);
}

static void returns_are_bounded(void **state)
{
    const training_case *l = &training_cases[0];
    size_t ended = 0;
    fixture f;
    sim s;

    (void)state;
    checkpoints_up(&s, &f, l, 0);
    s.opt.errors = KOFN_ERRORS_PROBABILISTIC;
    s.opt.every = 5;
    s.opt.fault = err_in_products;
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
        TEST(restarts_resume,
             "back: restarted nodes resume from the checkpoint before errors"),
        TEST(wrong_blocks_are_not_kept,
             "back: no node keeps a step with a wrong block"),
        TEST(missed_step_is_made_up_for,
             "back: a step soon after a missed one is kept instead"),
        TEST(silent_member_is_not_waited_for,
             "back: such a step needs no report of every member"),
        TEST(nodes_return,
             "back: nodes return to the last checkpoint or to the start"),
        TEST(lost_checkpoint,
             "back: a node with a lost or damaged checkpoint follows"),
        TEST(return_to_the_start,
             "back: nodes return to the start if the checkpoint does not help"),
        TEST(returns_are_bounded,
             "back: repeated errors end the run after 3 returns"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
