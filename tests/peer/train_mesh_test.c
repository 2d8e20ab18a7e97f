/* train_mesh_test.c -- training without a master, on the simulated mesh and on
 * threads. Every vector of any node, with the outputs of every layer, is
 * compared with the plain passes. Every block is compared with the coded
 * weights. */
#include "train_mesh_rig.h"

static void reference_is_plain(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(training_cases); i++) {
        const kofn_train_options o = options_of(&training_cases[i], 4);
        size_t at = 0;
        kofn_train_result res = KOFN_TRAIN_RESULT_INIT;
        fixture f;

        set_up(&f, &training_cases[i], 4);
        train_plain(f.net, &f.d.X,
                    training_cases[i].autoencoder ? NULL : &f.d.y, &o, &res);
        assert_int_equal(res.steps, f.steps);
        for (size_t l = 0; l < training_cases[i].layers; l++) {
            const kofn_matrix *W = &f.W[f.steps * training_cases[i].layers + l];
            const double *v = f.ref + iterates(&f) * f.v0.rows;
            size_t n = W->rows * W->cols;

            assert_at_most(relative_error(W->data, f.net->W[l].data, n), 1e-13);
            assert_at_most(relative_error(v + f.v0.rows - f.net->total + at,
                                          f.net->W[l].data, n),
                           1e-13);
            at += n;
        }
        tear_down(&f);
    }
}

static void all_well(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(training_cases); i++)
        for (uint64_t seed = 0; seed < 4; seed++) {
            const training_case *l = &training_cases[i];
            fixture f;
            sim s;

            mesh_up(&s, &f, l, 3, seed);
            if (seed % 2)
                s.opt.decoding = KOFN_DECODE_DISTRIBUTED;
            s.opt.confirm = seed / 2 ? 0 : 1;
            for (size_t n = 0; n < l->nodes; n++)
                sim_start(&s, n, n % 2);
            sim_finish(&s, 20 * KOFN_SECOND, NULL, l->scheme, seed);
            for (size_t n = 0; n < l->nodes; n++) {
                const kf_host *h = s.node[n].host;
                kofn_node_view v;

                kf_node_look(h->node, &v);
                assert_int_equal(v.at.step, iterates(&f));
                assert_int_equal(v.alone, 0);
                /* decoded from the same bytes by all */
                assert_memory_equal(h->it.v->m.data,
                                    s.node[0].host->it.v->m.data,
                                    f.v0.rows * 8);
            }
            assert_true(f.blocks > f.steps * l->layers);
            mesh_down(&s, &f);
        }
}

/* ---- faults -------------------------------------------------------------- */

/* Returns the number of nodes with blocks of the last step or the one before,
 * without this node. */
static size_t count_whole(const sim *s, size_t without)
{
    uint64_t last = last_turn(s);
    size_t whole = 0;

    for (size_t i = 0; i < s->nodes; i++)
        whole += i != without && s->node[i].up &&
                 s->node[i].host->blocks.seat != KOFN_NO_SEAT &&
                 s->node[i].host->blocks.changing.turn + 1 >= last;
    return whole;
}

/* Injects a fault. No node dies with a block that the others may need. Nodes
 * that are stopped lose theirs when the others continue. */
static void inject_fault(sim *s, size_t gentle)
{
    const fixture *f = s->own;
    size_t i = faults_pick(s, true);

    if (sim_draw(s) >= 0.25) {
        faults_inject_from(s, 1, gentle);
    } else if (count_whole(s, i) >= f->needs) {
        faults_injected++;
        sim_stop(s, i);
    }
}

static size_t rebuilt, adopted;

static void count_lives(const sim *s)
{
    for (size_t i = 0; i < s->nodes; i++) {
        kofn_node_view v;

        if (!s->node[i].host)
            continue;
        kf_node_look(s->node[i].host->node, &v);
        adopted += v.adopted;
        rebuilt += s->node[i].host->blocks.changing.rebuilt;
    }
}

typedef struct tally {
    double worst, drift;
    size_t blocks;
} tally;

static void run_history(uint64_t seed, tally *sum)
{
    kf_rng r = kf_rng_stream(seed, KF_FOR_SAMPLE, 83, 0);
    const training_case *l =
        &training_cases[kf_rng_below(&r, COUNT(training_cases))];
    size_t faults = kf_rng_below(&r, 16);
    fixture f;
    sim s;

    mesh_up(&s, &f, l, 2 + (unsigned)kf_rng_below(&r, 5), seed);
    if (kf_rng_below(&r, 2))
        s.opt.decoding = KOFN_DECODE_DISTRIBUTED;
    faults_draw(&s, &r);
    for (size_t i = 0; i < l->nodes; i++)
        if (i < f.needs || sim_draw(&s) < 0.9)
            sim_start(&s, i, sim_draw(&s) < 0.8);
    for (size_t i = 0; i < faults; i++)
        sim_at(&s, (kofn_time)(sim_draw(&s) * 800 * (double)MS), SIM_FAULT, 0,
               0);
    sim_run(&s, 800 * MS, inject_fault);
    sim_finish(&s, faults_end(&s, f.needs) + 4 * KOFN_SECOND, inject_fault,
               l->scheme, seed);
    sum->worst = fmax(sum->worst, s.worst);
    sum->drift = fmax(sum->drift, f.drift);
    sum->blocks += f.blocks;
    count_lives(&s);
    mesh_down(&s, &f);
}

static void histories(void **state)
{
    const char *one = getenv("KOFN_TEST_SEED"); /* the first seed */
    uint64_t first = one ? strtoull(one, NULL, 10) : 0;
    tally sum = {0};

    (void)state;
    for (uint64_t seed = first; seed < first + often(40); seed++)
        run_history(seed, &sum);
    print_message("%zu faults: worst deviation %.3g, drift %.3g of %zu "
                  "blocks; %zu vectors taken, %zu times blocks rebuilt\n",
                  faults_injected, sum.worst, sum.drift, sum.blocks, adopted,
                  rebuilt);
    if (!one)
        assert_happened(sum.worst > 0 && adopted > 0 && rebuilt > 0);
}

/* Regression: a seat with a finished partial product passed to a node with
 * rebuilt blocks within one iterate. */
static void regressions(void **state)
{
    static const uint64_t seeds[] = {90197};
    tally sum = {0};

    (void)state;
    for (size_t i = 0; i < COUNT(seeds); i++)
        run_history(seeds[i], &sum);
}

/* ---- rebuilt blocks ------------------------------------------------------ */

/* The vector no longer has the first steps. The node may be a new one or the
 * old one. Its block and velocity are rebuilt from the others. */
static void late_node(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(training_cases); i++)
        for (uint64_t seed = 0; seed < 4; seed++) {
            const training_case *l = &training_cases[i];
            size_t node = l->nodes - 1;
            kofn_node_view v;
            fixture f;
            sim s;

            mesh_up(&s, &f, l, 12, seed);
            for (size_t n = 0; n < l->nodes; n++)
                sim_start(&s, n, true);
            run_until(&s, 6);
            sim_stop(&s, node);
            run_until(&s, 9);
            sim_start(&s, node, seed % 2);
            sim_finish(&s, 20 * KOFN_SECOND, NULL, l->scheme, seed);
            kf_node_look(s.node[node].host->node, &v);
            assert_int_equal(v.seat, node);
            assert_int_equal(s.node[node].host->blocks.seat, node);
            assert_int_equal(s.node[node].host->blocks.changing.rebuilt, 1);
            for (size_t n = 0; n < node; n++)
                assert_int_equal(s.node[n].host->blocks.changing.rebuilt, 0);
            mesh_down(&s, &f);
        }
}

/* Blocks are rebuilt repeatedly from rebuilt blocks (docs/math/training.md,
 * 8). The bound is the drift of nodes that all stay, plus the same for each of
 * the three times that a node's blocks are rebuilt. Rebuilding from the
 * minimum number of blocks drifts 10 to 470 times further. */
static void generations(void **state)
{
    const training_case *l = &training_cases[0];
    const size_t comes = 24;
    double undisturbed = 0;

    (void)state;
    for (size_t change = 0; change < 2; change++) {
        size_t made = 0;
        fixture f;
        sim s;

        mesh_up(&s, &f, l, (unsigned)(comes + 3), change);
        for (size_t n = 0; n < l->nodes; n++)
            sim_start(&s, n, true);
        for (size_t g = 0; g < comes && change; g++) {
            size_t node = 1 + g % (l->nodes - 1);

            run_until(&s, 5 + 3 * g);
            sim_stop(&s, node);
            run_until(&s, 6 + 3 * g);
            sim_start(&s, node, false);
            run_until(&s, 7 + 3 * g);
        }
        sim_finish(&s, s.now + 40 * KOFN_SECOND, NULL, l->scheme, change);
        for (size_t n = 0; n < l->nodes; n++)
            made += s.node[n].host->blocks.changing.rebuilt;
        print_message("%zu nodes with rebuilt blocks: drift %.3g\n", made,
                      f.drift);
        if (!change)
            undisturbed = f.drift;
        assert_true(made >= change * kf_min(l->nodes - 1, comes));
        assert_at_most(f.drift, 4 * undisturbed);
        mesh_down(&s, &f);
    }
}

/* The vector has the changes of a few past steps. */
static void sleeps(void **state)
{
    (void)state;
    for (uint64_t turns = 1; turns < 8; turns++) {
        const training_case *l = &training_cases[0];
        size_t node = 3;
        fixture f;
        sim s;

        mesh_up(&s, &f, l, 12, turns);
        s.opt.silence = 20 * KOFN_SECOND; /* no node counts as failed */
        for (size_t n = 0; n < l->nodes; n++)
            sim_start(&s, n, true);
        run_until(&s, 5);
        s.node[node].stopped = KOFN_NEVER / 2;
        run_until(&s, s.node[node].host->blocks.changing.turn + turns);
        s.node[node].stopped = 0;
        sim_wake(&s, node, s.now);
        sim_finish(&s, 40 * KOFN_SECOND, NULL, "sleeps", turns);
        if (turns < 3)
            assert_int_equal(s.node[node].host->blocks.changing.rebuilt, 0);
        if (turns > 5)
            assert_int_equal(s.node[node].host->blocks.changing.rebuilt, 1);
        mesh_down(&s, &f);
    }
}

/* Fewer nodes have blocks than determine the weights, whatever the number of
 * nodes. */
static void too_few(void **state)
{
    const training_case *l = &training_cases[0];
    fixture f;
    sim s;

    (void)state;
    mesh_up(&s, &f, l, 12, 1);
    s.opt.give_up = KOFN_SECOND;
    for (size_t n = 0; n < l->nodes; n++)
        sim_start(&s, n, true);
    run_until(&s, 6);
    for (size_t n = f.reads - 1; n < l->nodes; n++)
        sim_stop(&s, n);
    for (size_t n = f.reads - 1; n < l->nodes; n++)
        sim_start(&s, n, false);
    sim_run(&s, s.now + 10 * KOFN_SECOND, NULL);
    for (size_t n = 0; n < l->nodes; n++)
        assert_int_equal(s.node[n].status, KOFN_TOOFEW);
    assert_true(s.node[0].host->it.at.step < iterates(&f));
    mesh_down(&s, &f);
}

/* ---- on threads ---------------------------------------------------------- */

typedef struct thread_node {
    const fixture *f;
    kofn_net *net;
    bool leaves;
    kofn_decoding decoding;
    kofn_status status;
    kofn_train_result res;
    char why[200];
} thread_node;

static int leave(void *ud, const kofn_node_view *view, const double *scalar)
{
    const thread_node *l = ud;

    (void)scalar;
    return l->leaves && view->at.step >= 4;
}

static void run_node(void *ud, kofn_transport *transport)
{
    thread_node *l = ud;
    kofn_peer_options o = {.size = sizeof o,
                           .seat = KOFN_NO_SEAT,
                           .decoding = l->decoding,
                           .linger = 20 * KOFN_SECOND,
                           .watch = leave,
                           .watch_ud = l};
    kofn_training *t = make_training(l->f, l->net, 4);

    l->status = kofn_train_peers(
        transport, t, (const kofn_plan *const *)l->f->plan, &o, &l->res, NULL);
    snprintf(l->why, sizeof l->why, "%s", kofn_errmsg());
    kofn_training_free(t);
}

/* Returns the predicted error of the worst set of seats. Any set may answer
 * first. */
static double worst_of(const kofn_plan *p, size_t nodes)
{
    size_t k = p->layout.enough;
    double worst = 0;
    kf_code *code;

    assert_ok(kf_code_new(&code, p));
    for (unsigned set = 0; set < 1u << nodes; set++) {
        uint32_t seat[SIM_NODES];
        kofn_decoder *d;
        size_t n = 0;

        for (uint32_t i = 0; i < nodes; i++)
            if (set >> i & 1)
                seat[n++] = i;
        if (n != k)
            continue;
        assert_ok(kf_decoder_new(&d, code, seat, n, false));
        worst = fmax(worst, d->predicted);
        kf_decoder_free(d);
    }
    kf_code_free(code);
    return worst;
}

/* Returns a bound on the deviation: the sum over all products of all steps,
 * times 100 as for other trainings under faults (docs/training.md). Short
 * steps do not amplify it. */
static double room_of(const fixture *f)
{
    double worst = 0;

    for (size_t i = 0; i < f->l->layers; i++) {
        worst = fmax(worst, worst_of(f->plan[i], f->l->nodes));
        worst = fmax(worst, worst_of(f->plan[i]->left, f->l->nodes));
    }
    return 100 * worst * (double)iterates(f);
}

static void try_threads(const training_case *of, kofn_decoding decoding)
{
    kofn_net_shape shape = shape_of(of);
    size_t nodes = of->nodes, n;
    thread_node l[SIM_NODES];
    kofn_mesh *mesh;
    double *w, *first;
    fixture f;

    set_up(&f, of, 4);
    n = f.net->total;
    w = numbers(n, 8);
    first = numbers(n, 8);
    assert_ok(kofn_mesh_new(&mesh));
    for (size_t i = 0; i < nodes; i++) {
        l[i] = (thread_node){.f = &f,
                             .net = make_net(&shape),
                             .leaves = i == 0,
                             .decoding = decoding,
                             .res = KOFN_TRAIN_RESULT_INIT};
        assert_ok(kofn_mesh_start(mesh, run_node, &l[i]));
    }
    kofn_mesh_free(mesh); /* after all have ended */
    for (size_t i = 0; i < nodes; i++) {
        if (l[i].status != (l[i].leaves ? KOFN_AGAIN : KOFN_OK))
            fail_msg("%s, node %zu: %s", of->scheme, i, l[i].why);
        if (l[i].leaves)
            continue;
        kf_net_read(l[i].net, w);
        if (i == 1)
            memcpy(first, w, n * 8);
        assert_memory_equal(w, first, n * 8); /* bit for bit */
        assert_int_equal(l[i].res.steps, f.steps);
        assert_true(l[i].res.loss > 0);
    }
    assert_at_most(
        relative_error(first, f.ref + iterates(&f) * f.v0.rows + f.v0.rows - n,
                       n),
        room_of(&f));
    for (size_t i = 0; i < nodes; i++)
        kofn_net_free(l[i].net);
    kf_free(w);
    kf_free(first);
    tear_down(&f);
}

static void on_threads(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(training_cases); i++)
        try_threads(&training_cases[i],
                    i % 2 ? KOFN_DECODE_REPLICATED : KOFN_DECODE_DISTRIBUTED);
}

/* ---- refusals ------------------------------------------------------------ */

static kofn_status run(const kofn_program *p, size_t confirm,
                       const kofn_matrix *v0)
{
    const kofn_peer_options o = {
        .size = sizeof o, .seat = KOFN_NO_SEAT, .confirm = confirm};
    kofn_transport nobody = {.size = sizeof nobody};
    kofn_matrix v = *v0;

    return kofn_peer_run(&nobody, p, &o, &v, NULL, NULL);
}

static void programs(void **state)
{
    kofn_mesh_product both[3 * MOST];
    kofn_program p;
    fixture f;

    (void)state;
    set_up(&f, &training_cases[1], 1);
    assert_status(KOFN_UNSUITED, run(&f.program, 2, &f.v0));
    assert_non_null(strstr(kofn_errmsg(), "confirm = 2 needs `errors`"));
    p = f.program;
    p.recalls = 1;
    assert_status(KOFN_INVAL, run(&p, 1, &f.v0));
    assert_non_null(
        strstr(kofn_errmsg(), "`recalls` is 1; it must be at least 2"));
    p = f.program;
    p.states = KOFN_CHANGE_STATES + 1;
    assert_status(KOFN_INVAL, run(&p, 1, &f.v0));
    assert_non_null(strstr(kofn_errmsg(), "`states` is 4"));
    p = f.program;
    p.change = NULL;
    assert_status(KOFN_INVAL, run(&p, 1, &f.v0));
    assert_non_null(strstr(kofn_errmsg(), "product 3 has `read`"));
    p = f.program;
    p.after = p.products;
    assert_status(KOFN_INVAL, run(&p, 1, &f.v0));
    assert_non_null(strstr(kofn_errmsg(), "5 of 5 products"));
    p = f.program;
    p.turns = 0;
    assert_status(KOFN_INVAL, run(&p, 1, &f.v0));
    p = f.program;
    memcpy(both, p.product, p.products * sizeof *both);
    both[0].left = both[0].read = true;
    p.product = both;
    assert_status(KOFN_INVAL, run(&p, 1, &f.v0));
    assert_non_null(strstr(kofn_errmsg(), "is a left product; choose one"));
    tear_down(&f);
}

/* A program whose changes have more optimizer states than it says. */
static void too_many_states(void **state)
{
    kf_turn_change a;
    fixture f;
    sim s;

    (void)state;
    mesh_up(&s, &f, &training_cases[0], 1, 1);
    sim_start(&s, 0, true);
    assert_ok(kf_turn_change_ask(s.node[0].host, 1, 0, &a));
    assert_int_equal(a.to.change.states, 1);
    kf_turn_change_done(&a);
    s.node[0].host->blocks.states = 0;
    assert_status(KOFN_INVAL, kf_turn_change_ask(s.node[0].host, 1, 0, &a));
    assert_non_null(strstr(kofn_errmsg(),
                           "a change with 1 optimizer states, and the program "
                           "says 0 (kofn_program.states)"));
    s.node[0].host->blocks.states = 1;
    mesh_down(&s, &f);
}

static kofn_status train(const training_case *l, const char *scheme)
{
    kofn_net_shape shape = shape_of(l);
    kofn_train_options o = options_of(l, 1);
    digits d = make_digits(POINTS, SIDE, 3, 1);
    kofn_transport nobody = {.size = sizeof nobody};
    kofn_plan *plan[MOST];
    kofn_training *t;
    kofn_net *net;
    kofn_status st;

    net = make_net(&shape);
    assert_ok(kofn_training_new(&t, net, &d.X, &d.y, &o));
    assert_ok(kofn_training_plans(t, scheme, l->nodes, 3, plan));
    st = kofn_train_peers(&nobody, t, (const kofn_plan *const *)plan, NULL,
                          NULL, NULL);
    for (size_t i = 0; i < l->layers; i++)
        kofn_plan_free(plan[i]);
    kofn_training_free(t);
    kofn_net_free(net);
    digits_free(&d);
    return st;
}

static void unsuited_code(void **state)
{
    const training_case *l = &training_cases[0];

    (void)state;
    assert_status(KOFN_UNSUITED, train(l, "elastic:k=4"));
    assert_non_null(strstr(kofn_errmsg(), "use gpd"));
}

TEST_FILE(train_mesh_test)
{
    const struct CMUnitTest tests[] = {
        TEST(reference_is_plain,
             "train: the reference has the weights of the plain training"),
        TEST(all_well,
             "train: all nodes end with the plain weights if none fails"),
        TEST(late_node,
             "train: a node that joins late rebuilds its blocks from others"),
        TEST(generations,
             "train: rounding does not grow if blocks are rebuilt repeatedly"),
        TEST(sleeps,
             "train: a node rebuilds its blocks only after a long sleep"),
        TEST(too_few, "train: too few blocks end all nodes with KOFN_TOOFEW"),
        TEST(histories,
             "train: seeded histories of faults end with the plain weights"),
        TEST(regressions,
             "train: histories that once failed end with the plain weights"),
        TEST(on_threads,
             "train: nodes on threads end with the same plain weights"),
        TEST(programs,
             "train: programs that do not fit are refused with the value"),
        TEST(too_many_states,
             "train: more optimizer states than the program says are refused"),
        TEST(unsuited_code,
             "train: a code that does not fit a training is refused"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
