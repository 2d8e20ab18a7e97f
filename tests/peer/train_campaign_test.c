/* train_campaign_test.c -- trainings without a master, with random faults drawn
 * from a seed. Nodes die, stop, are cut off, join, err in every place, send
 * false notes, have bits of their blocks flipped, and are all lost. Five to
 * nine nodes look for errors, compare their blocks, write checkpoints and
 * return to them.
 *
 * At most one node errs or is false at a time, and enough others are left to
 * find errors. Then all nodes that are up end with the plain training's
 * weights, or fail because errors cannot be located or nodes are too few.
 * Failed nodes are restarted, as a user would do. `scripts/campaign 1000000
 * train_campaign_test` injects that number of events. KOFN_TEST_SEED is the
 * first history. */
#include "train_faults.h"

#include "peer/node.h"

enum { RESTARTS = 6 };  /* limit on restarts of failed nodes */
enum { INJECT = 1000 }; /* a new fault; other values end one, see `end_fault` */

static const training_case random_cases[] = {
    {.scheme = "matdot:n=2",
     .nodes = 6,
     .layers = 2,
     .widths = {SIDE * SIDE, 5, 3},
     .activation = KOFN_TANH,
     .momentum = 0.9},
    {.scheme = "gpd:m=1,n=1,p=1",
     .nodes = 5,
     .layers = 2,
     .widths = {SIDE * SIDE, 4, 3},
     .activation = KOFN_SIGMOID},
    {.scheme = "matdot:n=2",
     .nodes = 8,
     .layers = 2,
     .widths = {SIDE * SIDE, 5, 3},
     .activation = KOFN_RELU,
     .l2 = 0.01},
    {.scheme = "gpd:m=2,n=2,p=1",
     .nodes = 9,
     .layers = 2,
     .widths = {SIDE * SIDE, 5, 3},
     .activation = KOFN_SIGMOID,
     .momentum = 0.5,
     .nesterov = true},
    {.scheme = "polynomial:m=2,p=1,basis=circle",
     .nodes = 7,
     .layers = 2,
     .widths = {SIDE * SIDE, 6, SIDE *SIDE},
     .activation = KOFN_SIGMOID,
     .loss = KOFN_NET_LOSS_SQUARES,
     .autoencoder = true},
};

/* Histories that ended at once, after restarts, or not at all; and those not,
 * after others had exited with the result. */
static size_t ended[4];

/* True if no node errs or is false now: one node errs at a time. */
static bool is_calm(const sim *s)
{
    for (size_t i = 0; i < s->nodes; i++)
        if (now.errs[i] || now.erred[i] || now.flipped[i] ||
            s->node[i].turncoat || s->node[i].status)
            return false;
    return true;
}

static size_t count_able(const sim *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->nodes; i++)
        n += s->node[i].up && s->node[i].stopped <= s->now &&
             !s->node[i].status && !s->node[i].turncoat;
    return n;
}

/* True if some node still has to compute. */
static bool is_running(const sim *s)
{
    for (size_t i = 0; i < s->nodes; i++)
        if (s->node[i].up && !s->node[i].status &&
            s->node[i].host->it.at.step < s->steps)
            return true;
    return false;
}

/* Stops nodes with false notes. They send right ones when they restart. */
static void stop_false_nodes(sim *s)
{
    for (size_t i = 0; i < s->nodes; i++)
        if (s->node[i].turncoat && s->node[i].up) {
            lose(s, i);
            now.falsified[i] = 0;
            sim_at(s, s->now + ABSENCE, SIM_FAULT, 0, 1 + i);
        }
}

static void inject_random(sim *s, size_t what)
{
    timed_fault b = {0, kf_rng_below(&s->rng, s->nodes),
                     kf_rng_below(&s->rng, KINDS)};

    if (what != INJECT) { /* the end of a fault */
        end_fault(s, what);
        return;
    }
    if (!is_running(s))
        return;
    if (b.kind == LOSE_ALL && sim_draw(s) < 0.8)
        b.kind = STOP;
    /* a block of the start may be part of the matrix that nodes return to */
    if (b.kind == FLIP && s->node[b.node].up &&
        s->node[b.node].host->blocks.changing.turn == 0)
        return;
    if (b.kind >= FLIP && !is_calm(s))
        b.kind = sim_draw(s) < 0.5 ? STOP : FLAP;
    if (s->node[b.node].turncoat || sim_draw(s) < 0.1)
        stop_false_nodes(s);
    else if (b.kind == JOIN || b.kind == FLAP || b.kind == LOSE_ALL ||
             count_able(s) > needed(s))
        inject_one(s, &b);
}

/* Restarts nodes that failed because errors could not be located or nodes were
 * too few. Returns true if there were any. */
static bool restart_failed(sim *s)
{
    bool again = false;

    for (size_t i = 0; i < s->nodes; i++) {
        sim_node *n = &s->node[i];

        if (!n->up || !n->status || n->turncoat)
            continue;
        if (n->status != KOFN_CORRUPT && n->status != KOFN_TOOFEW)
            fail_msg("node %zu: status %d: %s", i, (int)n->status,
                     kofn_errmsg());
        lose(s, i);
        s->opt.resume = true;
        begin_node(s, i, i < now.of->l->nodes);
        again = true;
    }
    return again;
}

/* Runs until all nodes that are up have ended. Returns the number of restarts.
 * After each restart nodes may wait for `give_up`, and stand still for 32
 * failure timeouts, more than once. */
static size_t run_to_the_end(sim *s, kofn_time within)
{
    kofn_time by = s->now + within;
    size_t times = 0;

    for (bool all = false; !all;) {
        if (s->now >= by) {
            sim_print(s);
            fail_msg("not every node has ended after %.3g s, restarted %zu "
                     "times",
                     (double)s->now * 1e-9, times);
        }
        sim_run(s, s->now + MS, inject_random);
        all = all_have_ended(s);
        if (all && restart_failed(s)) {
            all = false;
            times++;
            by = s->now + within;
        }
        if (times == RESTARTS)
            return times;
    }
    return times;
}

static void draw_scenario(scenario *o, uint64_t seed, kf_rng *r)
{
    *o = (scenario){.l = &random_cases[kf_rng_below(r, COUNT(random_cases))],
                    .seed = seed,
                    .epochs = 3 + (unsigned)kf_rng_below(r, 6),
                    .errors = kf_rng_below(r, 2) ? KOFN_ERRORS_ADVERSARIAL
                                                 : KOFN_ERRORS_PROBABILISTIC,
                    .scrub = kf_rng_below(r, 4),
                    .every = 2 + kf_rng_below(r, 3),
                    .report_deaths = kf_rng_below(r, 2),
                    .give_up = 20 * KOFN_SECOND};
}

/* True if some node has exited with the result. The result is right, and a
 * node that restarts then is alone. */
static bool some_have_gone(sim *s)
{
    bool some = false;

    for (size_t i = 0; i < s->nodes; i++)
        if (s->node[i].gone) { /* a node that is down was compared before */
            if (s->node[i].up && !s->node[i].turncoat)
                look_at_weights(s, i);
            some = true;
        }
    return some;
}

static void run_history(uint64_t seed, outcome *sum)
{
    kf_rng r = kf_rng_stream(seed, KF_FOR_SAMPLE, 91, 0);
    size_t faults = 8 + kf_rng_below(&r, 56), times;
    kofn_time length;
    fixture f;
    scenario o;
    sim s;

    draw_scenario(&o, seed, &r);
    scenario_up(&s, &f, &o);
    length = (kofn_time)((double)(12 * MS) * (double)faults *
                         (0.2 + kf_rng_uniform(&r)));
    for (size_t i = 0; i < faults; i++)
        sim_at(&s, (kofn_time)((double)length * sim_draw(&s)), SIM_FAULT, 0,
               INJECT);
    sim_run(&s, length, inject_random);
    sim_rebuil(&s);
    times = run_to_the_end(&s, 400 * KOFN_SECOND);
    if (times < RESTARTS) {
        ended[times > 0]++;
        scenario_end(&s, &f, sum);
    } else {
        ended[some_have_gone(&s) ? 3 : 2]++;
    }
    mesh_down(&s, &f);
    scenario_text[0] = 0;
}

static void histories(void **state)
{
    const char *one = getenv("KOFN_TEST_SEED"); /* the first seed */
    uint64_t first = one ? strtoull(one, NULL, 10) : 0, n = often(80);
    outcome sum = {0};

    (void)state;
    for (uint64_t seed = first; seed < first + n; seed++)
        run_history(seed, &sum);
    print_message(
        "EVENTS %zu in %zu histories from seed %zu: %zu ended at once, %zu "
        "after restarts, %zu not, %zu alone; worst deviation %.3g, drift %.3g of %zu "
        "blocks; %zu outvoted, %zu partial products left out, %zu recomputed, %zu "
        "rebuilt, %zu scrubs, %zu returned\n",
        sum.injected, (size_t)n, (size_t)first, ended[0], ended[1], ended[2],
        ended[3], sum.worst, sum.drift, sum.blocks, sum.outvoted, sum.left_out,
        sum.again, sum.rebuilt, sum.scrubs, sum.back);
    assert_true(10 * (ended[0] + ended[1] + ended[3]) >= 9 * n);
    assert_happened(sum.outvoted > 0 && sum.left_out > 0 && sum.scrubs > 0);
}

/* Runs one history. Fails unless all nodes end, or the rest are left alone by
 * nodes that ended. */
static void history_ends(uint64_t seed)
{
    outcome sum = {0};

    memset(ended, 0, sizeof ended);
    run_history(seed, &sum);
    assert_int_equal(ended[2], 0);
}

/* A node that is left behind must not count nodes that have ended for its
 * quorum. It fails with KOFN_TOOFEW. */
static void left_behind(void **state)
{
    (void)state;
    history_ends(9990040);
}

/* A node makes blocks from a wrong vector and takes the vector of others
 * before both were compared. */
static void replaced_before_the_vote(void **state)
{
    outcome sum = {0};

    (void)state;
    run_history(11750005, &sum);
}

/* The vector is of a later iterate. */
static void replaced_by_a_later_iterate(void **state)
{
    outcome sum = {0};

    (void)state;
    run_history(21070068, &sum);
    run_history(70630056, &sum); /* most others have it by then */
}

/* The last iterate has two versions, and neither has a majority. A node that
 * failed because of this does not end with the result while it waits for
 * others to return. */
static void failed_and_waiting(void **state)
{
    (void)state;
    history_ends(11930057);
}

/* A node errs in the last iterate. Two others have another version of it and
 * exit, while two restarting nodes could still vote. Being alone does not make
 * the faulty node right. */
static void wrong_and_left_alone(void **state)
{
    (void)state;
    history_ends(341270071);
}

/* All nodes but the first `whole` lose their blocks, and they cannot rebuild
 * them. */
static void blocks_are_lost(const training_case *l, size_t whole, bool flips)
{
    scenario o = {.l = l,
                  .seed = 1,
                  .epochs = 4,
                  .errors = KOFN_ERRORS_ADVERSARIAL,
                  .give_up = 600 * KOFN_SECOND};
    outcome sum = {0};
    fixture f;
    sim s;

    scenario_up(&s, &f, &o);
    run_until(&s, 5);
    assert_true(whole <= f.reads);
    for (size_t i = whole + flips; i < l->nodes; i++)
        kf_changing_lose(s.node[i].host);
    if (flips)
        flip(&s, whole);
    assert_int_equal(run_to_the_end(&s, 200 * KOFN_SECOND), 1);
    scenario_end(&s, &f, &sum);
    mesh_down(&s, &f);
    scenario_text[0] = 0;
}

/* All nodes are up, but fewer have blocks than the others need to rebuild
 * theirs. They fail with KOFN_TOOFEW before `give_up`. */
static void too_few_have_blocks(void **state)
{
    (void)state;
    blocks_are_lost(&random_cases[3], 3, false);
}

/* Just enough nodes have blocks to compare, and one block is wrong. The wrong
 * one cannot be located, however often the blocks are lent. */
static void too_few_are_right(void **state)
{
    (void)state;
    blocks_are_lost(&random_cases[2], 2, true);
}

/* A node that cannot advance while others can gives them time to find that
 * they cannot either. This may take `give_up`. */
static void first_failure_waits(void **state)
{
    scenario o = {.l = &random_cases[3],
                  .seed = 1,
                  .epochs = 4,
                  .errors = KOFN_ERRORS_ADVERSARIAL,
                  .every = 2,
                  .give_up = 20 * KOFN_SECOND};
    kofn_time from, least;
    kf_node_action lost;
    const sim_node *n;
    fixture f;
    sim s;

    (void)state;
    scenario_up(&s, &f, &o);
    run_until(&s, 3);
    n = &s.node[o.l->nodes - 1];
    assert_ok(kf_peer_fail(n->host->node, KOFN_TOOFEW));
    while (kf_node_next(n->host->node, &lost))
        ;
    from = s.now;
    least = o.give_up + 32 * kf_host_silence(n->host);
    while (!n->status && s.now < from + 2 * least)
        sim_run(&s, s.now + MS, NULL);
    assert_int_equal(n->status, KOFN_TOOFEW);
    assert_true(s.now - from >= least);
    mesh_down(&s, &f);
    scenario_text[0] = 0;
}

/* A bit of a block flips, and the node writes it to its checkpoint and
 * restarts from that. */
static void flipped_and_kept(void **state)
{
    outcome sum = {0};

    (void)state;
    run_history(18550054, &sum);
    run_history(301030015, &sum); /* it starts with a vector of the start */
}

TEST_FILE(train_campaign_test)
{
    const struct CMUnitTest tests[] = {
        TEST_AROUND(histories,
                    "train, campaign: seeded histories of faults end well",
                    NULL, print_scenario),
        TEST_AROUND(
            left_behind,
            "train: a node left behind does not count ended nodes as quorum",
            NULL, print_scenario),
        TEST_AROUND(
            replaced_before_the_vote,
            "train: blocks of a vector replaced before the vote are rebuilt",
            NULL, print_scenario),
        TEST_AROUND(
            replaced_by_a_later_iterate,
            "train: blocks of a vector replaced by a later one are rebuilt",
            NULL, print_scenario),
        TEST_AROUND(
            failed_and_waiting,
            "train: a node that failed on two versions ends with no result",
            NULL, print_scenario),
        TEST_AROUND(
            wrong_and_left_alone,
            "train: a faulty node left alone does not take its own result",
            NULL, print_scenario),
        TEST_AROUND(too_few_have_blocks,
                    "train: too few nodes with blocks end with KOFN_TOOFEW",
                    NULL, print_scenario),
        TEST_AROUND(
            too_few_are_right,
            "train: too few right blocks end the run, and a restart resumes",
            NULL, print_scenario),
        TEST_AROUND(first_failure_waits,
                    "train: the first node that fails waits for others to fail",
                    NULL, print_scenario),
        TEST_AROUND(
            flipped_and_kept,
            "train: a flipped bit in a checkpoint causes no wrong result", NULL,
            print_scenario),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, make_folders, remove_folders);
}
