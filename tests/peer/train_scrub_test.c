/* train_scrub_test.c -- trainings without a master in which nodes compare
 * their blocks in memory. Wrong numbers that no product shows are found and
 * repaired, and so are more wrong blocks than products can locate. No wrong
 * block is written to a checkpoint. All nodes end with the plain training's
 * weights. */
#include "train_mesh_rig.h"

/* Tries one of SPARED nodes if the code is slow. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SPARED 4
#else
#define SPARED 1
#endif

/* TURN is late enough that blocks of the start are of no use. */
enum { EPOCHS = 3, TURN = 5 };

static uint64_t spoilt; /* nodes with blocks that change after TURN */
static bool all;        /* all numbers change, not one */
static size_t changed;  /* blocks that changed */
static unsigned epochs = EPOCHS;
/* The turn at which each node found the error. */
static uint64_t found[SIM_NODES];

/* The first number of a component is a weight of an input that is always 0. */
static void err(void *ud, kofn_fault_place where, uint64_t t,
                kofn_matrix *numbers)
{
    const sim_node *n = ud;
    const fixture *f = n->sim->own;

    if (where != KOFN_FAULT_IN_MEMORY || t != TURN * f->turn ||
        !(spoilt & kf_bit(n->id)) || numbers->cols != cut_of(f->l))
        return;
    for (size_t i = 0; i < numbers->rows; i++)
        for (size_t j = 0; j < numbers->cols; j++)
            if (all || i + j == 0)
                *(double *)kf_at(numbers, i, j) += 0.5 + sim_draw(n->sim);
    changed++;
}

static void look(sim *s, size_t id)
{
    const kf_host *h = s->node[id].host;

    if (h->blocks.changing.wrong && !found[id])
        found[id] = h->blocks.changing.turn;
}

static void begin(sim *s, fixture *f, const training_case *l, uint64_t scrub,
                  uint64_t seed)
{
    changed = 0;
    memset(found, 0, sizeof found);
    mesh_up(s, f, l, epochs, seed);
    s->opt.errors =
        seed % 2 ? KOFN_ERRORS_ADVERSARIAL : KOFN_ERRORS_PROBABILISTIC;
    s->opt.scrub = scrub;
    s->opt.confirm = 0;
    s->opt.fault = err;
    s->hostile =
        &spoilt; /* nodes that rebuild leave out other partial products */
    s->look = look;
    for (size_t i = 0; i < l->nodes; i++)
        sim_start(s, i, true);
}

/* Runs until all nodes end with the plain weights. */
static void finish(sim *s, const training_case *l, uint64_t seed)
{
    sim_finish(s, 300 * KOFN_SECOND, NULL, l->scheme, seed);
    for (size_t i = 0; i < l->nodes; i++) {
        assert_ok(s->node[i].status);
        look(s, i);
    }
}

static training_case with_zero_input(size_t which)
{
    training_case l = training_cases[which];

    l.zero_input = true;
    return l;
}

/* Cases 0 and 2 have nodes to spare. */
static void hidden(void **state)
{
    (void)state;
    for (size_t k = 0; k <= 2; k += 2)
        for (uint64_t seed = 0; seed < training_cases[k].nodes;
             seed += SPARED) {
            const training_case l = with_zero_input(k);
            fixture f;
            sim s;

            spoilt = kf_bit(seed);
            begin(&s, &f, &l, 1, seed);
            finish(&s, &l, seed);
            assert_int_equal(changed, 1);
            for (size_t i = 0; i < l.nodes; i++)
                if (i == seed)
                    assert_true(found[i] && found[i] < f.steps);
                else
                    assert_int_equal(found[i], 0);
            mesh_down(&s, &f);
        }
}

static void seen_at_the_end(void **state)
{
    const training_case l = with_zero_input(0);
    fixture f;
    sim s;

    (void)state;
    spoilt = kf_bit(3);
    begin(&s, &f, &l, 0, 0);
    finish(&s, &l, 0);
    assert_int_equal(changed, 1);
    assert_true(!found[3] || found[3] == f.steps);
    mesh_down(&s, &f);
}

/* Three of nine nodes have wrong blocks. Products locate two if faulty nodes
 * may collude. So the iterate is recomputed, blocks are compared, and three
 * are rebuilt. */
static void more_than_products_locate(void **state)
{
    const training_case *l = &training_cases[0];

    (void)state;
    all = true;
    epochs = 16;
    for (uint64_t seed = 1; seed < 12; seed += 2) {
        size_t again = 0;
        fixture f;
        sim s;

        spoilt = UINT64_C(7) << seed / 2;
        begin(&s, &f, l, 0, seed);
        finish(&s, l, seed);
        assert_int_equal(changed, 3);
        for (size_t i = 0; i < l->nodes; i++) {
            kofn_node_view v;

            kf_host_look(s.node[i].host, &v);
            assert_int_equal(v.rebuilt, spoilt >> i & 1);
            assert_int_equal(found[i] > 0, spoilt >> i & 1);
            assert_true(v.scrubs > 0 || found[i]);
            again += v.again;
        }
        assert_true(again > 0);
        mesh_down(&s, &f);
    }
    all = false;
    epochs = EPOCHS;
}

/* More blocks are due to be compared before the comparison ends. */
static void one_is_silent(void **state)
{
    const training_case *l = &training_cases[0];
    kofn_node_view before, after;
    fixture f;
    sim s;

    (void)state;
    mesh_up(&s, &f, l, 200, 1);
    s.opt.errors = KOFN_ERRORS_ADVERSARIAL;
    s.opt.confirm = 0;
    s.opt.scrub = 1;
    s.opt.hedge = 50 * MS; /* more than a step takes */
    s.opt.silence = KOFN_SECOND;
    for (size_t i = 0; i < l->nodes; i++)
        sim_start(&s, i, true);
    sim_run(&s, s.now + 30 * MS, NULL);
    s.node[8].stopped = s.now + 900 * MS; /* less than the failure timeout */
    sim_run(&s, s.now + 50 * MS, NULL);
    kf_host_look(s.node[0].host, &before);
    sim_run(&s, s.now + 800 * MS, NULL);
    kf_host_look(s.node[0].host, &after);
    assert_true(after.at.step > before.at.step + 5 * TURN);
    assert_false(after.final);
    assert_true(after.scrubs > before.scrubs);
    assert_true(after.drift > 0 && after.drift < 1e-13);
    mesh_down(&s, &f);
}

TEST_FILE(train_scrub_test)
{
    const struct CMUnitTest tests[] = {
        TEST(hidden,
             "scrub: a hidden wrong number of a block is found and repaired"),
        TEST(seen_at_the_end,
             "scrub: without it the error is found when weights are read"),
        TEST(more_than_products_locate,
             "scrub: more wrong blocks than products locate are repaired"),
        TEST(one_is_silent, "scrub: a comparison ends without a silent member"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
