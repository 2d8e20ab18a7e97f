/* train_campaign_test.c -- trainings without a master to which anything
 * happens, drawn from a seed: nodes die, stop, are cut off, come, err in every
 * place, lie, have bits of their blocks flipped, and are all lost; five to nine
 * of them look for errors, compare their blocks, keep their steps and go back.
 *
 * No more than one node errs or lies at a time, and so many are left as errors
 * need. Then all who are there end with the plain training's weights, or say
 * that they cannot tell, or are too few: those are started again, as whoever
 * runs them would.  `scripts/campaign 1000000 train_campaign_test` has so many
 * events; KOFN_TEST_SEED is the first history. */
#include "train_story.h"

#include "peer/node.h"

enum { LIVES = 6 };     /* times that all are started again */
enum { STRIKE = 1000 }; /* else something ends, as `later` has it */

static const lesson lessons_drawn[] = {
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
     .cost = KOFN_COST_SQUARES,
     .autoencoder = true},
};

static size_t ended[4]; /* histories that ended at once, later, not, or not
                           since the others had gone with the result */

/* Whom nobody may doubt now: one node errs at a time. */
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

/* Has somebody still something to make? */
static bool goes_on(const sim *s)
{
    for (size_t i = 0; i < s->nodes; i++)
        if (s->node[i].up && !s->node[i].status &&
            s->node[i].host->at.step < s->steps)
            return true;
    return false;
}

/* A liar is put out of the way, and is honest when it comes again. */
static void end_lies(sim *s)
{
    for (size_t i = 0; i < s->nodes; i++)
        if (s->node[i].turncoat && s->node[i].up) {
            lose(s, i);
            now.lies[i] = 0;
            sim_at(s, s->now + AWAY, SIM_FAULT, 0, 1 + i);
        }
}

static void happens(sim *s, size_t what)
{
    blow b = {0, kf_rng_below(&s->rng, s->nodes), kf_rng_below(&s->rng, KINDS)};

    if (what != STRIKE) { /* something that ends */
        later(s, what);
        return;
    }
    if (!goes_on(s))
        return;
    if (b.kind == ALL && sim_draw(s) < 0.8)
        b.kind = STOP;
    /* a block of the start may be the matrix that a node goes back to */
    if (b.kind == FLIP && s->node[b.node].up &&
        s->node[b.node].host->changing.turn == 0)
        return;
    if (b.kind >= FLIP && !is_calm(s))
        b.kind = sim_draw(s) < 0.5 ? STOP : FLAP;
    if (s->node[b.node].turncoat || sim_draw(s) < 0.1)
        end_lies(s);
    else if (b.kind == COME || b.kind == FLAP || b.kind == ALL ||
             count_able(s) > needed(s))
        strike(s, &b);
}

/* Those who could not tell, or were too few, are started again. */
static bool begin_again(sim *s)
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

/* Until all who are there have ended; how often they were started again.  Each
 * time they may wait for `give_up`, and stand still for 32 silences, more than
 * once. */
static size_t see_it_through(sim *s, kofn_time within)
{
    kofn_time by = s->now + within;
    size_t times = 0;

    for (bool all = false; !all;) {
        if (s->now >= by) {
            sim_print(s);
            fail_msg("not everybody has ended after %.3g s, begun again %zu "
                     "times",
                     (double)s->now * 1e-9, times);
        }
        sim_run(s, s->now + MS, happens);
        all = all_have_ended(s);
        if (all && begin_again(s)) {
            all = false;
            times++;
            by = s->now + within;
        }
        if (times == LIVES)
            return times;
    }
    return times;
}

static void draw(story *o, uint64_t seed, kf_rng *r)
{
    *o = (story){.l = &lessons_drawn[kf_rng_below(r, COUNT(lessons_drawn))],
                 .seed = seed,
                 .epochs = 3 + (unsigned)kf_rng_below(r, 6),
                 .errors = kf_rng_below(r, 2) ? KOFN_ERRORS_ADVERSARIAL
                                              : KOFN_ERRORS_PROBABILISTIC,
                 .scrub = kf_rng_below(r, 4),
                 .every = 2 + kf_rng_below(r, 3),
                 .tell = kf_rng_below(r, 2),
                 .give_up = 20 * KOFN_SECOND};
}

/* Has anybody gone with the result?  It is right, and who is started again is
 * alone. */
static bool some_have_gone(sim *s)
{
    bool some = false;

    for (size_t i = 0; i < s->nodes; i++)
        if (s->node[i].gone) { /* who is not up was looked at before */
            if (s->node[i].up && !s->node[i].turncoat)
                look_at_weights(s, i);
            some = true;
        }
    return some;
}

static void live_through(uint64_t seed, told *sum)
{
    kf_rng r = kf_rng_stream(seed, KF_FOR_SAMPLE, 91, 0);
    size_t faults = 8 + kf_rng_below(&r, 56), times;
    kofn_time length;
    fixture f;
    story o;
    sim s;

    draw(&o, seed, &r);
    story_up(&s, &f, &o);
    length = (kofn_time)((double)(12 * MS) * (double)faults *
                         (0.2 + kf_rng_uniform(&r)));
    for (size_t i = 0; i < faults; i++)
        sim_at(&s, (kofn_time)((double)length * sim_draw(&s)), SIM_FAULT, 0,
               STRIKE);
    sim_run(&s, length, happens);
    sim_heal(&s);
    times = see_it_through(&s, 400 * KOFN_SECOND);
    if (times < LIVES) {
        ended[times > 0]++;
        story_end(&s, &f, sum);
    } else {
        ended[some_have_gone(&s) ? 3 : 2]++;
    }
    mesh_down(&s, &f);
    now_told[0] = 0;
}

static void histories(void **state)
{
    const char *one = getenv("KOFN_TEST_SEED"); /* the first of them */
    uint64_t first = one ? strtoull(one, NULL, 10) : 0, n = often(80);
    told sum = {0};

    (void)state;
    for (uint64_t seed = first; seed < first + n; seed++)
        live_through(seed, &sum);
    print_message(
        "EVENTS %zu in %zu histories from seed %zu: %zu ended at once, %zu "
        "when started again, %zu not, %zu alone; worst deviation %.3g, drift %.3g of %zu "
        "blocks; %zu outvoted, %zu pieces left out, %zu made again, %zu "
        "healed, %zu scrubs, %zu went back\n",
        sum.happened, (size_t)n, (size_t)first, ended[0], ended[1], ended[2],
        ended[3], sum.worst, sum.drift, sum.blocks, sum.outvoted, sum.left_out,
        sum.again, sum.healed, sum.scrubs, sum.back);
    assert_true(10 * (ended[0] + ended[1] + ended[3]) >= 9 * n);
    assert_happened(sum.outvoted > 0 && sum.left_out > 0 && sum.scrubs > 0);
}

/* All end, or are left alone by who ended. */
static void comes_to_an_end(uint64_t seed)
{
    told sum = {0};

    memset(ended, 0, sizeof ended);
    live_through(seed, &sum);
    assert_int_equal(ended[2], 0);
}

/* One is left behind by others who have the result, and is not to count them
 * for a quorum: it says that they are too few. */
static void left_behind(void **state)
{
    (void)state;
    comes_to_an_end(9990040);
}

/* One makes blocks of a vector that is wrong, and takes that of others before
 * they have compared both: the blocks are made anew. */
static void replaced_unseen(void **state)
{
    told sum = {0};

    (void)state;
    live_through(11750005, &sum);
}

/* The same, by a vector of a later iterate. */
static void replaced_by_a_later_one(void **state)
{
    told sum = {0};

    (void)state;
    live_through(21070068, &sum);
    live_through(70630056, &sum); /* most others have that by then */
}

/* Two marks of the last iterate, and no most that have the same: who failed for
 * that does not end with the result while it waits for others to go back. */
static void failed_and_waiting(void **state)
{
    (void)state;
    comes_to_an_end(11930057);
}

/* One errs in the last iterate, which two others have otherwise, under another
 * mark; they go while two who begin anew could still vote.  Who is alone then
 * is not right for that. */
static void wrong_and_left_alone(void **state)
{
    (void)state;
    comes_to_an_end(341270071);
}

/* All but the first `whole` lose their blocks, and the rest cannot make them
 * anew. */
static void blocks_are_lost(const lesson *l, size_t whole, bool flips)
{
    story o = {.l = l,
               .seed = 1,
               .epochs = 4,
               .errors = KOFN_ERRORS_ADVERSARIAL,
               .give_up = 600 * KOFN_SECOND};
    told sum = {0};
    fixture f;
    sim s;

    story_up(&s, &f, &o);
    run_until(&s, 5);
    assert_true(whole <= f.reads);
    for (size_t i = whole + flips; i < l->nodes; i++)
        assert_ok(kf_changing_lose(s.node[i].host));
    if (flips)
        flip(&s, whole);
    assert_int_equal(see_it_through(&s, 200 * KOFN_SECOND), 1);
    story_end(&s, &f, &sum);
    mesh_down(&s, &f);
    now_told[0] = 0;
}

/* All are there, and fewer have blocks than the others can make theirs of: they
 * do not wait for `give_up` for somebody to bring some, and are too few. */
static void too_few_have_blocks(void **state)
{
    (void)state;
    blocks_are_lost(&lessons_drawn[3], 3, false);
}

/* As many have as are compared, and one's is wrong: it cannot be told whose,
 * however often they are lent. */
static void too_few_are_right(void **state)
{
    (void)state;
    blocks_are_lost(&lessons_drawn[2], 2, true);
}

/* One that cannot go on while the others can gives them time to find that they
 * cannot, either, for which they may take `give_up`. */
static void who_fails_first_waits(void **state)
{
    story o = {.l = &lessons_drawn[3],
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
    story_up(&s, &f, &o);
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
    now_told[0] = 0;
}

/* A bit of a block flips, the node keeps that, dies, and comes again with
 * it. */
static void flipped_and_kept(void **state)
{
    told sum = {0};

    (void)state;
    live_through(18550054, &sum);
    live_through(301030015, &sum); /* it begins with a vector of the start */
}

TEST_FILE(train_campaign_test)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(histories, tell_story),
        cmocka_unit_test_teardown(left_behind, tell_story),
        cmocka_unit_test_teardown(replaced_unseen, tell_story),
        cmocka_unit_test_teardown(replaced_by_a_later_one, tell_story),
        cmocka_unit_test_teardown(failed_and_waiting, tell_story),
        cmocka_unit_test_teardown(wrong_and_left_alone, tell_story),
        cmocka_unit_test_teardown(too_few_have_blocks, tell_story),
        cmocka_unit_test_teardown(too_few_are_right, tell_story),
        cmocka_unit_test_teardown(who_fails_first_waits, tell_story),
        cmocka_unit_test_teardown(flipped_and_kept, tell_story),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, make_folders, remove_folders);
}
