/* train_deaths_test.c -- the time that a dying member costs the others, for
 * each member and from many moments of a turn on. The time is that of the
 * simulation. */
#include "train_mesh_rig.h"

/* Tries one of SPARED moments if the code is slow. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SPARED 4
#else
#define SPARED 1
#endif

/* True if all nodes that are up have made t iterates. */
static bool all_are_at(const sim *s, const training_case *l, uint64_t t)
{
    bool all = true;

    for (size_t i = 0; i < l->nodes; i++)
        all &= !s->node[i].up || s->node[i].host->it.at.step >= t;
    return all;
}

/* Returns the time from the death of node `id` until all others have made two
 * more iterates. The death is `after` the first turn. */
static kofn_time time_lost(size_t id, kofn_time after)
{
    const training_case *l = &training_cases[0];
    uint64_t top = 0;
    kofn_time died;
    fixture f;
    sim s;

    mesh_up(&s, &f, l, 1, 7);
    s.opt.errors = KOFN_ERRORS_PROBABILISTIC;
    s.opt.confirm = 0;
    for (size_t i = 0; i < l->nodes; i++)
        sim_start(&s, i, true);
    run_until(&s, 1);
    for (size_t i = 0; i < l->nodes; i++)
        s.node[i].slow = 1 + (double)(i % 3) / 2;
    sim_run(&s, s.now + after, NULL);
    for (size_t i = 0; i < l->nodes; i++)
        top = kf_max(top, s.node[i].host->it.at.step);
    died = s.now;
    sim_stop(&s, id);
    while (!all_are_at(&s, l, kf_min(top + 2, iterates(&f))))
        sim_run(&s, s.now + MS / 4, NULL);
    died = s.now - died;
    mesh_down(&s, &f);
    return died;
}

/* Decisions that were made stay valid. The bound is twice the patience, the
 * wait for a leader that decides nothing. */
static void deaths(void **state)
{
    const kofn_time beat = 10 * MS, patience = 5 * beat;
    kofn_time worst = 0;

    (void)state;
    for (size_t id = 0; id < training_cases[0].nodes; id++)
        for (kofn_time after = 0; after < 20 * MS; after += 2 * MS * SPARED) {
            kofn_time lost = time_lost(id, after);

            worst = lost > worst ? lost : worst;
        }
    assert_true(worst < 2 * patience);
}

TEST_FILE(train_deaths_test)
{
    const struct CMUnitTest tests[] = {
        TEST(deaths,
             "deaths: a dying member delays the others by less than twice the "
             "patience"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
