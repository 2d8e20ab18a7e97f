/* peer_test.c -- iterations without a master, on the simulated mesh: single
 * faults, refusals, and why one node decides. */
#include "mesh_sim_end.h"

static void all_well(void **state)
{
    static const char *const spec[] = {"mds:k=3,basis=gauss_sys", "mds:k=4",
                                       "mds:k=1", "mds:k=5,basis=harmonic"};

    (void)state;
    for (size_t i = 0; i < 4; i++)
        for (int distributed = 0; distributed < 2; distributed++) {
            sim s;

            sim_up(&s, spec[i], 5, 23, 12, i);
            s.opt.decoding =
                distributed ? KOFN_DECODE_DISTRIBUTED : KOFN_DECODE_REPLICATED;
            for (size_t n = 0; n < 5; n++)
                sim_start(&s, n, true);
            sim_finish(&s, 3 * KOFN_SECOND, NULL, spec[i], i);
            if (getenv("SHOW")) {
                printf("%s %d: %.4g s, worst %.3g\n", spec[i], distributed,
                       (double)s.now * 1e-9, s.worst);
                sim_print(&s);
            }
            sim_down(&s);
        }
}

/* ---- single faults ------------------------------------------------------- */

/* Cuts almost all links to one node for the rest of the run. The node still
 * sends. Depending on the run it is the leader, a node that decodes for
 * others, or neither. */
static void cut_links(sim *s)
{
    size_t one_node_hears_little = (size_t)(uintptr_t)s->inject_ud;

    if (s->delivered == 200)
        for (size_t i = 0; i < s->nodes; i++)
            s->cut[i][one_node_hears_little] =
                i != one_node_hears_little &&
                i != (one_node_hears_little + 1) % s->nodes;
}

static void one_node_hears_little(void **state)
{
    (void)state;
    for (size_t i = 0; i < 10; i++) {
        sim s;

        sim_up(&s, "mds:k=3", 5, 19, 20, 40 + i / 5);
        if (i >= 5)
            s.opt.decoding = KOFN_DECODE_DISTRIBUTED;
        s.inject = cut_links;
        s.inject_ud = (void *)(uintptr_t)(i % 5);
        for (size_t n = 0; n < 5; n++)
            sim_start(&s, n, true);
        sim_finish(&s, 6 * KOFN_SECOND, NULL, "hears little", i);
        assert_true(s.delivered > 200);
        sim_down(&s);
    }
}

static void results_are_lost(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 5; seed++) {
        sim s;

        sim_up(&s, "mds:k=3", 5, 19, 20, seed);
        s.opt.decoding = KOFN_DECODE_DISTRIBUTED;
        s.unresponsive = 1 + seed % 5;
        for (size_t n = 0; n < 5; n++)
            sim_start(&s, n, true);
        sim_finish(&s, 10 * KOFN_SECOND, NULL, "results lost", seed);
        sim_down(&s);
    }
}

static uint64_t step_of(const sim *s, size_t i)
{
    kofn_node_view v;

    kf_node_look(s->node[i].host->node, &v);
    return v.at.step;
}

/* Two nodes decode. With a quorum of 3 neither half advances once a failure
 * timeout has passed. */
static void divided_halves(void **state)
{
    (void)state;
    for (int quorum = 0; quorum < 2; quorum++)
        for (uint64_t seed = 0; seed < 4; seed++) {
            uint64_t before[4];
            bool moved = false;
            sim s;

            sim_up(&s, "mds:k=2", 4, 19, 2000, seed);
            s.opt.quorum = quorum ? 3 : 0;
            if (seed % 2)
                s.opt.decoding = KOFN_DECODE_DISTRIBUTED;
            for (size_t n = 0; n < 4; n++)
                sim_start(&s, n, true);
            sim_run(&s, 200 * MS, NULL);
            assert_true(step_of(&s, 0) > 5);
            for (size_t i = 0; i < 4; i++)
                for (size_t j = 0; j < 4; j++)
                    s.cut[i][j] = i / 2 != j / 2;
            sim_run(&s, 700 * MS, NULL);
            for (size_t i = 0; i < 4; i++)
                before[i] = step_of(&s, i);
            sim_run(&s, 1200 * MS, NULL);
            for (size_t i = 0; i < 4; i++) {
                moved |= step_of(&s, i) > before[i];
                assert_true(quorum || step_of(&s, i) > before[i] + 10);
            }
            assert_true(moved == !quorum);
            sim_rebuil(&s);
            sim_run(&s, 1800 * MS, NULL);
            for (size_t i = 0; i < 4; i++) {
                assert_true(step_of(&s, i) > before[i] + 10);
                assert_true(step_of(&s, i) + 5 > step_of(&s, 0));
            }
            sim_down(&s);
        }
}

/* On different machines one node may find an iterate good enough one step
 * before the others do. All end with that iterate or the next. */
static void one_stops_early(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        sim s;

        sim_up(&s, seed % 2 ? "mds:k=3" : "mds:k=4", 4, 19, 9, seed);
        s.early = 1 + seed % 4;
        if (seed % 3 == 0)
            s.opt.decoding = KOFN_DECODE_DISTRIBUTED;
        for (size_t i = 0; i < 4; i++)
            sim_start(&s, i, true);
        sim_finish(&s, 3 * KOFN_SECOND, NULL, "stops early", seed);
        for (size_t i = 0; i < 4; i++)
            assert_true(step_of(&s, i) >= 8 && step_of(&s, i) <= 9);
        sim_down(&s);
    }
}

static void too_few(void **state)
{
    sim s;

    (void)state;
    sim_up(&s, "mds:k=3", 4, 19, 50, 1);
    s.opt.give_up = KOFN_SECOND;
    for (size_t i = 0; i < 4; i++)
        sim_start(&s, i, true);
    sim_run(&s, 100 * MS, NULL);
    sim_stop(&s, 0);
    sim_stop(&s, 1);
    sim_run(&s, 3 * KOFN_SECOND, NULL);
    assert_int_equal(s.node[2].status, KOFN_TOOFEW);
    assert_int_equal(s.node[3].status, KOFN_TOOFEW);
    assert_non_null(strstr(kofn_errmsg(), "2 of the 3 nodes"));
    assert_true(step_of(&s, 2) < 50);
    sim_down(&s);
}

/* A grid stores each part of A twice. Any three of four seats decode, and two
 * seats do if they hold different parts. Two nodes that hold the same part are
 * too few until a node with the other part joins. */
static void seats_of_one_part(void **state)
{
    (void)state;
    for (size_t other = 1; other < 4; other++)
        for (int joined = 0; joined < 2; joined++) {
            sim s;

            sim_up(&s, "grid:m=2,n=1", 4, 19, 50, other);
            s.opt.give_up = 2 * KOFN_SECOND;
            if (joined)
                s.opt.decoding = KOFN_DECODE_DISTRIBUTED;
            for (size_t i = 0; i < 4; i++)
                sim_start(&s, i, true);
            sim_run(&s, 50 * MS, NULL);
            sim_stop(&s, 0);
            sim_stop(&s, other);
            sim_run(&s, KOFN_SECOND, NULL);
            assert_true(other != 2 || step_of(&s, 1) < 50);
            if (joined)
                sim_start(&s, 0, false);
            if (other != 2 || joined) {
                sim_finish(&s, 9 * KOFN_SECOND, NULL, "parts", other);
            } else {
                sim_run(&s, 9 * KOFN_SECOND, NULL);
                assert_int_equal(s.node[1].status, KOFN_TOOFEW);
                assert_int_equal(s.node[3].status, KOFN_TOOFEW);
                assert_non_null(strstr(kofn_errmsg(), "do not decode"));
            }
            sim_down(&s);
        }
}

/* All nodes are up, and errors are searched for. They fail with KOFN_TOOFEW
 * and the message `said`. */
static void never_enough(const char *spec, size_t seats, size_t nodes,
                         const char *said)
{
    sim s;

    sim_up(&s, spec, seats, 19, 50, 1);
    s.nodes = nodes;
    s.opt.errors = KOFN_ERRORS_DETECT;
    s.opt.give_up = KOFN_SECOND;
    for (size_t i = 0; i < nodes; i++)
        sim_start(&s, i, i < seats);
    sim_run(&s, 5 * KOFN_SECOND, NULL);
    for (size_t i = 0; i < nodes; i++)
        assert_int_equal(s.node[i].status, KOFN_TOOFEW);
    assert_non_null(strstr(kofn_errmsg(), said));
    sim_down(&s);
}

/* If partial products are compared, each part needs a second copy that shows it
 * to be wrong. Of five seats that hold three parts, one has no second copy. */
static void part_without_a_copy(void **state)
{
    (void)state;
    never_enough("grid:m=3,n=1", 5, 5, "5 of the 6 nodes");
}

/* The third node has no seat, so it does not help either. */
static void node_without_a_seat(void **state)
{
    (void)state;
    never_enough("gpd:m=2,n=1,p=1", 2, 3, "could be reached");
}

/* The last notes of the three others to the stopped node are lost. In half of
 * the runs older notes of theirs may arrive first. */
static void stopped_until_all_have_ended(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++)
        for (uint64_t seed = 0; seed < 5; seed++) {
            kofn_node_view v;
            sim s;

            sim_up(&s, "mds:k=2", 4, 19, 12, seed);
            s.exits = true;
            s.opt.give_up = 5 * KOFN_SECOND;
            for (size_t i = 0; i < 4; i++)
                sim_start(&s, i, true);
            do {
                sim_run(&s, s.now + MS, NULL);
                kf_node_look(s.node[3].host->node, &v);
            } while (v.at.step < 4);
            s.node[3].stopped = KOFN_NEVER / 2;
            if (late)
                sim_run(&s, s.now + 2 * MS, NULL);
            for (size_t i = 0; i < 3; i++)
                s.cut[i][3] = true;
            while (!s.node[0].over || !s.node[1].over || !s.node[2].over) {
                assert_true(s.now < 100 * KOFN_SECOND);
                sim_run(&s, s.now + MS, NULL);
            }
            sim_run(&s, s.now + 10 * KOFN_SECOND, NULL);
            s.node[3].stopped = 0;
            sim_wake(&s, 3, s.now);
            sim_finish(&s, s.now + 60 * KOFN_SECOND, NULL, "stopped", seed);
            kf_node_look(s.node[3].host->node, &v);
            assert_int_equal(v.at.step, 12);
            assert_true(v.alone > 0);
            sim_down(&s);
        }
}

/* Time in which the node is stopped does not count against its limit for
 * giving up. */
static void stopped_repeatedly(void **state)
{
    const kofn_time run = KOFN_SECOND / 2;
    sim s;

    (void)state;
    sim_up(&s, "mds:k=2", 4, 19, 12, 1);
    s.opt.give_up = 5 * KOFN_SECOND;
    sim_start(&s, 0, true);
    for (int times = 0; s.node[0].status == KOFN_OK; times++) {
        assert_true(times < 11);
        sim_run(&s, s.now + run, NULL);
        s.node[0].stopped = s.now + 10 * KOFN_SECOND;
        sim_run(&s, s.node[0].stopped, NULL);
        sim_wake(&s, 0, s.now);
    }
    assert_int_equal(s.node[0].status, KOFN_TOOFEW);
    sim_down(&s);
}

static void refusals(void **state)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATVEC, 20, 20, 1, KOFN_F64, false);
    kofn_problem gram =
        KOFN_PROBLEM_INIT(KOFN_GRAM, 20, 20, 1, KOFN_F64, false);
    kofn_mesh_product product = {.plan = NULL};
    kf_node_options o = {.incarnation = 1,
                         .nodes = 3,
                         .groups = 3,
                         .wish = KOFN_NO_SEAT,
                         .decoding = KOFN_DECODE_REPLICATED};
    kofn_plan *p;
    kf_node *n;

    (void)state;
    assert_ok(kofn_plan_new(&p, &gram, "pcr", 6, 1));
    product.plan = p;
    assert_status(KOFN_UNSUITED, kf_node_new(&n, &product, 1, &o, 0));
    kofn_plan_free(p);
    assert_ok(kofn_plan_new(&p, &pb, "elastic:k=2,groups=2", 4, 1));
    product.plan = p;
    assert_status(KOFN_UNSUITED, kf_node_new(&n, &product, 1, &o, 0));
    assert_null(n);
    kofn_plan_free(p);
    assert_ok(kofn_plan_new(&p, &pb, "mds:k=2", 3, 1));
    product.plan = p;
    assert_status(KOFN_INVAL, kf_node_new(&n, &product, 0, &o, 0));
    o.groups = 65;
    assert_status(KOFN_INVAL, kf_node_new(&n, &product, 1, &o, 0));
    assert_non_null(strstr(kofn_errmsg(), "65"));
    o.groups = 3;
    o.incarnation = 0;
    assert_status(KOFN_INVAL, kf_node_new(&n, &product, 1, &o, 0));
    o.incarnation = 1;
    o.decoding = KOFN_DECODE_AUTO;
    assert_status(KOFN_INVAL, kf_node_new(&n, &product, 1, &o, 0));
    product.left = true;
    o.decoding = KOFN_DECODE_REPLICATED;
    assert_status(KOFN_INVAL, kf_node_new(&n, &product, 1, &o, 0));
    assert_non_null(strstr(kofn_errmsg(), "kofn_plan_serve_left"));
    kofn_plan_free(p);
}

/* math/elastic.md 14: compares (1 - 1/n) k N multiply-adds with (k-1) N/(k n)
 * numbers and one latency. */
static void decoding_is_chosen_by_cost(void **state)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATVEC, 1000, 1000, 1, KOFN_F64, false);
    kofn_plan *p;

    (void)state;
    assert_ok(kofn_plan_new(&p, &pb, "mds:k=4", 8, 1));
    /* saves 3500 multiply-adds, sends 93.75 numbers more */
    assert_int_equal(kofn_decoding_for(p, 8, 1, 37, 1),
                     KOFN_DECODE_DISTRIBUTED);
    assert_int_equal(kofn_decoding_for(p, 8, 1, 38, 1), KOFN_DECODE_REPLICATED);
    assert_int_equal(kofn_decoding_for(p, 8, 1, 1, 3400),
                     KOFN_DECODE_DISTRIBUTED);
    assert_int_equal(kofn_decoding_for(p, 8, 1, 1, 3410),
                     KOFN_DECODE_REPLICATED);
    kofn_plan_free(p);
}

/* Any 4 of 8 decode, and a fifth shows an error. basis=chebyshev has no more
 * seats than it was made for. */
static void nodes_to_find_errors(void **state)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATVEC, 40, 30, 1, KOFN_F64, false);
    kofn_plan *p;

    (void)state;
    assert_ok(kofn_plan_new(&p, &pb, "mds:k=4", 8, 1));
    assert_ok(kofn_nodes_find(p, KOFN_ERRORS_NONE, 4));
    assert_ok(kofn_nodes_find(p, KOFN_ERRORS_PROBABILISTIC, 5));
    assert_status(KOFN_TOOFEW, kofn_nodes_find(p, KOFN_ERRORS_ADVERSARIAL, 4));
    assert_non_null(strstr(kofn_errmsg(), "partial products of 5 nodes"));
    assert_non_null(strstr(kofn_errmsg(), "only 4 are available"));
    kofn_plan_free(p);
    assert_ok(
        kofn_plan_new(&p, &pb, "mds-published:k=4,basis=chebyshev", 4, 1));
    assert_status(KOFN_TOOFEW, kofn_nodes_find(p, KOFN_ERRORS_ADVERSARIAL, 9));
    kofn_plan_free(p);
}

/* ---- why one node decides ------------------------------------------------ */

enum { D_NODES = 8, D_K = 5, D_ROWS = 40, D_STEPS = 60 };

static void random_set(kf_rng *r, uint32_t set[D_K])
{
    bool in[D_NODES] = {false};

    for (size_t k = 0; k < D_K;) {
        size_t i = kf_rng_below(r, D_NODES);

        k += !in[i];
        in[i] = true;
    }
    for (uint32_t i = 0, k = 0; i < D_NODES; i++)
        if (in[i])
            set[k++] = i;
}

/* Returns the largest distance between the iterates of two nodes after all
 * steps. Each node decodes from other seats, or all decode from the `same`. In
 * either case each node adds one rounding error, as different machines do. */
static double drift(const char *spec, bool same, uint64_t seed)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATVEC, D_ROWS, D_ROWS, 1, KOFN_F64, false);
    kofn_matrix A = random_matrix(D_ROWS, D_ROWS, KOFN_F64, 5);
    kofn_matrix v[D_NODES], partial[D_NODES],
        next = {numbers(D_ROWS, 8), D_ROWS, 1, 1, KOFN_F64};
    kf_rng r = kf_rng_stream(seed, KF_FOR_SAMPLE, 79, 0);
    kf_block *block[D_NODES];
    kofn_plan *plan;
    kf_resident res;
    kf_code *code;
    kf_cache *cache;
    kf_scratch scratch = {0};
    double *a = A.data, worst = 0, scalar[KOFN_SCALARS];
    size_t seats[D_NODES];
    sim_node any = {.steps = D_STEPS};

    for (size_t i = 0; i < D_ROWS; i++)
        for (size_t j = 0; j < i; j++)
            a[i * D_ROWS + j] = a[j * D_ROWS + i];
    assert_ok(kofn_plan_new(&plan, &pb, spec, D_NODES, 3));
    assert_ok(kf_code_new(&code, plan));
    assert_ok(kf_cache_new(&cache, code, 1 << 20));
    assert_ok(kf_resident_dense(&res, plan, &A));
    for (size_t i = 0; i < D_NODES; i++)
        seats[i] = i;
    assert_ok(kf_data_encode(&res, code, seats, D_NODES, block));
    for (size_t i = 0; i < D_NODES; i++) {
        size_t rows = plan->span * plan->layout.components;

        v[i] = random_matrix(D_ROWS, 1, KOFN_F64, 6);
        partial[i] = (kofn_matrix){numbers(rows, 8), rows, 1, 1, KOFN_F64};
    }
    for (uint64_t t = 1; t <= D_STEPS; t++) {
        uint32_t set[D_K];

        random_set(&r, set);
        for (size_t i = 0; i < D_NODES; i++)
            assert_ok(
                kf_data_compute(block[i], &v[i], 0, plan->span, &partial[i]));
        for (size_t i = 0; i < D_NODES; i++) {
            const kofn_decoder *d;
            kf_source source[D_K];
            double *x = v[i].data;
            bool final;

            if (!same)
                random_set(&r, set);
            assert_ok(kf_cache_get(cache, set, D_K, false, &d));
            for (size_t k = 0; k < D_K; k++)
                source[k] = (kf_source){&partial[set[k]], 0, plan->span};
            assert_ok(kf_decode(plan, d, source, (kf_band){0, 0, plan->span},
                                &next, &scratch));
            assert_ok(sim_output(&any, t, &next, &v[i], scalar, &final));
            for (size_t e = 0; e < D_ROWS; e++)
                x[e] *= 1 + (kf_rng_uniform(&r) - 0.5) * 0x1p-52;
        }
    }
    for (size_t i = 1; i < D_NODES; i++)
        worst = fmax(worst, relative_error(v[i].data, v[0].data, D_ROWS));
    for (size_t i = 0; i < D_NODES; i++) {
        kf_block_drop(block[i]);
        kf_free(v[i].data);
        kf_free(partial[i].data);
    }
    kf_scratch_free(&scratch);
    kf_resident_free(&res);
    kf_cache_free(cache);
    kf_code_free(code);
    kofn_plan_free(plan);
    kf_free(next.data);
    kf_free(A.data);
    return worst;
}

static void drift_of_iterates(void **state)
{
    static const char *const spec[] = {"mds:k=5", "mds:k=5,basis=gauss_sys",
                                       "mds:k=5,basis=harmonic"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        double apart = 0, same = 0;

        for (uint64_t seed = 0; seed < 5; seed++) {
            apart = fmax(apart, drift(spec[i], false, seed));
            same = fmax(same, drift(spec[i], true, seed));
        }
        print_message("%-24s %d iterations: own seats %.2g, the same %.2g\n",
                      spec[i], D_STEPS, apart, same);
        assert_at_most(same, 1e-15); /* one rounding, never more */
        /* one rounding error in each step: at least a random walk */
        assert_true(apart > sqrt(D_STEPS) * same);
    }
}

TEST_FILE(peer_test)
{
    const struct CMUnitTest tests[] = {
        TEST(all_well,
             "peer: all nodes end with the plain iterates if none fails"),
        TEST(drift_of_iterates,
             "peer: iterates drift apart if nodes decode from different seats"),
        TEST(one_node_hears_little,
             "peer: one node hears almost no other, and all end"),
        TEST(results_are_lost,
             "peer: one node's decoded results are lost, and all end"),
        TEST(divided_halves,
             "peer: divided halves advance unless the quorum forbids it"),
        TEST(one_stops_early,
             "peer: one node stops an iterate early, and all end near it"),
        TEST(too_few, "peer: nodes below the quorum fail with KOFN_TOOFEW"),
        TEST(seats_of_one_part,
             "peer: two seats of the same part do not decode (grid:m=2,n=1)"),
        TEST(part_without_a_copy,
             "peer: error search needs a second copy of each part (grid:m=3)"),
        TEST(node_without_a_seat,
             "peer: a node without a seat does not help to find errors (gpd)"),
        TEST(refusals,
             "peer: options and plans out of range are refused with the value"),
        TEST(decoding_is_chosen_by_cost,
             "peer: the way to decode is chosen by its predicted cost"),
        TEST(
            nodes_to_find_errors,
            "peer: error search needs the partial products of one more node (mds:k=4)"),
        TEST(stopped_until_all_have_ended,
             "peer: a node that stops until all others have ended ends alone"),
        TEST(stopped_repeatedly,
             "peer: a lone node that stops repeatedly ends after its limit"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
