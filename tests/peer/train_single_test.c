/* train_single_test.c -- trainings without a master in float32, on the
 * simulated mesh. Every vector of any node is that of the plain passes in
 * float32, and every block the coded weights, to the rounding of float32
 * (train_mesh_rig.h). Blocks have an odd number of entries, so messages and
 * checkpoints are padded. */
#include "keep_rig.h"
#include "train_mesh_rig.h"

static training_case single(size_t which)
{
    training_case l = training_cases[which];

    l.dtype = KOFN_F32;
    return l;
}

static void start_all(sim *s)
{
    for (size_t i = 0; i < s->nodes; i++)
        if (!s->node[i].up)
            sim_start(s, i, true);
}

/* Deviations of one history in both types. In units of rounding, float32
 * deviates like float64 except for chance, which has a factor of 10. */
typedef struct both_types {
    double worst[2], drift[2];
} both_types;

static void measure(both_types *t, const sim *s, const fixture *f)
{
    size_t k = f->l->dtype == KOFN_F32;

    t->worst[k] = fmax(t->worst[k], s->worst);
    t->drift[k] = fmax(t->drift[k], f->drift);
}

static void compare(const both_types *t, const char *what)
{
    print_message("%s: vectors %.3g and %.3g, blocks %.3g and %.3g\n", what,
                  t->worst[0], t->worst[1], t->drift[0], t->drift[1]);
    assert_true(t->worst[1] > t->worst[0] && t->drift[1] > t->drift[0]);
    assert_at_most(t->worst[1], 10 * 0x1p29 * t->worst[0]);
    assert_at_most(t->drift[1], 10 * 0x1p29 * t->drift[0]);
}

/* Fails unless all nodes have the same vector, bit for bit, with numbers of
 * float32. */
static void end_alike(sim *s, fixture *f, const char *what, uint64_t seed)
{
    const double *first = s->node[0].host->it.v->m.data;

    sim_finish(s, s->now + 60 * KOFN_SECOND, NULL, what, seed);
    for (size_t i = 0; i < s->nodes; i++) {
        const kf_host *h = s->node[i].host;

        assert_ok(s->node[i].status);
        assert_int_equal(h->it.at.step, iterates(f));
        assert_memory_equal(h->it.v->m.data, first, f->v0.rows * 8);
    }
    for (size_t i = 0; i < f->v0.rows && f->l->dtype == KOFN_F32; i++)
        assert_true((double)(float)first[i] == first[i]);
}

static void reference_is_plain(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(training_cases); i++) {
        const training_case l = single(i);
        const kofn_train_options o = options_of(&l, 4);
        kofn_train_result res = KOFN_TRAIN_RESULT_INIT;
        double *w;
        fixture f;

        set_up(&f, &l, 4);
        train_plain(f.net, &f.d.X, l.autoencoder ? NULL : &f.d.y, &o, &res);
        w = numbers(f.net->total, 8);
        kf_net_read(f.net, w);
        assert_at_most(relative_error(f.ref + (iterates(&f) + 1) * f.v0.rows -
                                          f.net->total,
                                      w, f.net->total),
                       1e-5); /* as for jobs */
        kf_free(w);
        tear_down(&f);
    }
}

static void try_all_well(const training_case *l, uint64_t seed, both_types *t)
{
    fixture f;
    sim s;

    mesh_up(&s, &f, l, 3, seed);
    if (seed % 2)
        s.opt.decoding = KOFN_DECODE_DISTRIBUTED;
    else if (seed && l->nodes > f.needs + 1)
        s.opt.errors = KOFN_ERRORS_ADVERSARIAL;
    start_all(&s);
    end_alike(&s, &f, l->scheme, seed);
    for (size_t n = 0; n < l->nodes; n++) {
        kofn_node_view v;

        kf_host_look(s.node[n].host, &v);
        assert_int_equal(v.left_out + v.outvoted + v.rebuilt, 0);
    }
    measure(t, &s, &f);
    mesh_down(&s, &f);
}

static void all_well(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(training_cases); i++) {
        const training_case l = single(i);
        both_types t = {{0}, {0}};

        for (uint64_t seed = 0; seed < 4; seed++) {
            try_all_well(&training_cases[i], seed, &t);
            try_all_well(&l, seed, &t);
        }
        compare(&t, l.scheme);
    }
}

/* ---- faulty nodes -------------------------------------------------------- */

static kofn_fault_place place;
static size_t faulty, spoilt; /* the node, and its number of errors */

static void err(void *ud, kofn_fault_place where, uint64_t t,
                kofn_matrix *numbers)
{
    const sim_node *n = ud;
    const fixture *f = n->sim->own;
    size_t i = 0, j = 0; /* a weight of an input that is always 0 */

    if (where != place || n->id != faulty ||
        (place == KOFN_FAULT_IN_MEMORY &&
         (t != 5 * f->turn || numbers->cols != cut_of(f->l))) ||
        (place == KOFN_FAULT_IN_DECODING &&
         (t % 4 || t + f->l->layers >= iterates(f))))
        return;
    if (place != KOFN_FAULT_IN_MEMORY) {
        i = kf_rng_below(&n->sim->rng, numbers->rows);
        j = kf_rng_below(&n->sim->rng, numbers->cols);
    }
    put_entry(numbers, i, j,
              kf_mat_entry(numbers, i, j) + 0.5 + sim_draw(n->sim));
    spoilt++;
}

static uint64_t left_out, rebuilt;

/* One node errs in partial products, vectors or blocks. No other node is found,
 * and all end well. */
static void one_errs(kofn_fault_place where, size_t which, uint64_t seed)
{
    training_case l = single(which);
    fixture f;
    sim s;

    l.zero_input = where == KOFN_FAULT_IN_MEMORY;
    place = where;
    faulty = seed % l.nodes;
    spoilt = 0;
    mesh_up(&s, &f, &l, 6, seed);
    s.opt.errors =
        seed % 2 ? KOFN_ERRORS_ADVERSARIAL : KOFN_ERRORS_PROBABILISTIC;
    s.opt.scrub = 1;
    s.opt.confirm = where == KOFN_FAULT_IN_DECODING ? 0 : 1;
    s.opt.fault = err;
    s.hostile = &place; /* the node that errs has other vectors and blocks for a
                           while */
    s.lenient = where == KOFN_FAULT_IN_DECODING;
    s.look = NULL;
    s.opt.quarantine = 1000;
    start_all(&s);
    sim_finish(&s, 120 * KOFN_SECOND, NULL, l.scheme, seed);
    assert_true(spoilt > 0);
    for (size_t i = 0; i < l.nodes; i++) {
        kofn_node_view v;

        kf_host_look(s.node[i].host, &v);
        assert_ok(s.node[i].status);
        assert_int_equal(v.at.step, iterates(&f));
        assert_at_most(relative_error(s.node[i].host->it.v->m.data,
                                      s.ref + iterates(&f) * f.v0.rows,
                                      f.v0.rows),
                       ROOM_F32);
        if (where == KOFN_FAULT_IN_MEMORY)
            assert_int_equal(v.rebuilt, i == faulty);
        left_out += v.left_out;
        if (where == KOFN_FAULT_IN_DECODING) /* more than once, because the last
                                                iterate counts too */
            assert_true(v.outvoted > 0 || i != faulty);
        rebuilt += v.rebuilt;
    }
    mesh_down(&s, &f);
}

static void partials(void **state)
{
    (void)state;
    left_out = 0;
    for (size_t which = 0; which <= 2; which += 2)
        for (uint64_t seed = 0; seed < 8; seed++)
            one_errs(KOFN_FAULT_IN_PRODUCT, which, seed);
    assert_true(left_out > 0);
}

/* Sketches find the error. The block is rebuilt from blocks of others, which
 * are compared. */
static void blocks(void **state)
{
    (void)state;
    rebuilt = 0;
    for (size_t which = 0; which <= 2; which += 2)
        for (uint64_t seed = 0; seed < 8; seed++)
            one_errs(KOFN_FAULT_IN_MEMORY, which, seed);
    assert_int_equal(rebuilt, 16);
}

static void wrong_iterates(void **state)
{
    (void)state;
    for (size_t which = 0; which <= 2; which += 2)
        for (uint64_t seed = 0; seed < 8; seed++)
            one_errs(KOFN_FAULT_IN_DECODING, which, seed);
}

/* Replaces some decoded numbers by the next larger or smaller one. */
static void round_differently(void *ud, kofn_fault_place where, uint64_t t,
                              kofn_matrix *numbers)
{
    const sim_node *n = ud;

    (void)t;
    for (size_t i = 0; where == KOFN_FAULT_IN_DECODING && i < numbers->rows;
         i++)
        for (size_t j = 0; j < numbers->cols; j++) {
            float *x = kf_at(numbers, i, j);
            double to = sim_draw(n->sim) < 0.5 ? -INFINITY : INFINITY;

            *x = sim_draw(n->sim) < 0.5 ? *x : nextafterf(*x, (float)to);
        }
}

/* On different machines nodes decode the same except for rounding. A node that
 * joins finds its vector confirmed by others, which have slightly different
 * ones. */
static void different_rounding(void **state)
{
    (void)state;
    for (size_t which = 0; which <= 2; which += 2)
        for (uint64_t seed = 0; seed < 4; seed++) {
            const training_case l = single(which);
            size_t node = 1 + seed;
            kofn_node_view v;
            fixture f;
            sim s;

            mesh_up(&s, &f, &l, 6, seed);
            s.opt.errors = KOFN_ERRORS_PROBABILISTIC;
            s.opt.confirm = 0;
            s.opt.fault = round_differently;
            s.hostile = &place; /* vectors differ */
            start_all(&s);
            for (size_t i = 0; i < l.nodes; i++)
                s.node[i].host->it.machine += i;
            run_until(&s, 6);
            sim_stop(&s, node);
            run_until(&s, 9);
            sim_start(&s, node, false);
            s.node[node].host->it.machine += node;
            sim_finish(&s, s.now + 60 * KOFN_SECOND, NULL, l.scheme, seed);
            for (size_t i = 0; i < l.nodes; i++) {
                kf_host_look(s.node[i].host, &v);
                assert_ok(s.node[i].status);
                assert_int_equal(v.outvoted + v.left_out, 0);
                assert_int_equal(v.rebuilt, i == node);
            }
            mesh_down(&s, &f);
        }
}

/* ---- joining and resuming ------------------------------------------------ */

/* One node dies and returns when the vector no longer has the first steps. Its
 * block and velocity are rebuilt from the others. */
static void join_one(const training_case *l, uint64_t seed, both_types *t)
{
    size_t node = l->nodes - 1;
    fixture f;
    sim s;

    mesh_up(&s, &f, l, 12, seed);
    start_all(&s);
    run_until(&s, 6);
    sim_stop(&s, node);
    run_until(&s, 9);
    sim_start(&s, node, seed % 2);
    sim_finish(&s, 20 * KOFN_SECOND, NULL, l->scheme, seed);
    assert_int_equal(s.node[node].host->blocks.seat, node);
    assert_int_equal(s.node[node].host->blocks.changing.rebuilt, 1);
    measure(t, &s, &f);
    mesh_down(&s, &f);
}

static void late_node(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(training_cases); i++) {
        const training_case l = single(i);
        both_types t = {{0}, {0}};

        for (uint64_t seed = 0; seed < 2; seed++) {
            join_one(&training_cases[i], seed, &t);
            join_one(&l, seed, &t);
        }
        compare(&t, l.scheme);
    }
}

/* No node needs blocks of others. */
static void all_lost(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(training_cases); i++)
        for (uint64_t seed = 0; seed < 2; seed++) {
            const training_case l = single(i);
            fixture f;
            sim s;

            mesh_up(&s, &f, &l, 8, seed);
            s.opt.keep = folder;
            s.opt.every = 2;
            if (seed && l.nodes > f.needs + 1)
                s.opt.errors = KOFN_ERRORS_PROBABILISTIC;
            start_all(&s);
            run_until(&s, 7);
            for (size_t n = 0; n < l.nodes; n++)
                sim_stop(&s, n);
            s.opt.resume = true;
            start_all(&s);
            for (size_t n = 0; n < l.nodes; n++)
                assert_true(s.node[n].host->blocks.changing.turn >= 2);
            sim_finish(&s, s.now + 60 * KOFN_SECOND, NULL, l.scheme, seed);
            for (size_t n = 0; n < l.nodes; n++)
                assert_int_equal(s.node[n].host->blocks.changing.rebuilt, 0);
            mesh_down(&s, &f);
            empty(folder);
        }
}

/* ---- refusals ------------------------------------------------------------ */

static kofn_status run(const kofn_program *p, const kofn_matrix *v)
{
    const kofn_peer_options o = {.size = sizeof o, .seat = KOFN_NO_SEAT};
    kofn_transport nobody = {.size = sizeof nobody};
    kofn_matrix own = *v;

    return kofn_peer_run(&nobody, p, &o, &own, NULL, NULL);
}

static void programs(void **state)
{
    const training_case l = single(1);
    kofn_operand operand[MOST];
    kofn_program p;
    kofn_matrix W;
    fixture f;

    (void)state;
    set_up(&f, &l, 1);
    p = f.program;
    p.input = NULL;
    assert_status(KOFN_UNSUITED, run(&p, &f.v0));
    assert_non_null(strstr(kofn_errmsg(), "in float32 a mesh multiplies only"));
    memcpy(operand, f.program.operand, l.layers * sizeof *operand);
    W = *operand[0].dense;
    W.dtype = KOFN_F64;
    operand[0].dense = &W;
    p = f.program;
    p.operand = operand;
    assert_status(KOFN_SHAPE, run(&p, &f.v0));
    assert_non_null(strstr(kofn_errmsg(), "the plan for float32"));
    tear_down(&f);
}

TEST_FILE(train_single_test)
{
    const struct CMUnitTest tests[] = {
        TEST(reference_is_plain,
             "float32: the reference has the weights of the plain training"),
        TEST(all_well, "float32: errors are float64's in units of rounding"),
        TEST(partials, "float32: wrong partial products of one node are found"),
        TEST(blocks, "float32: a wrong block of one node is found and rebuilt"),
        TEST(wrong_iterates,
             "float32: wrong iterates of one node are outvoted"),
        TEST(different_rounding,
             "float32: nodes that round differently are not outvoted"),
        TEST(late_node, "float32: a node that joins late rebuilds its blocks"),
        TEST(all_lost,
             "float32: a training resumes after the loss of all nodes"),
        TEST(programs, "float32: programs that do not fit are refused"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
