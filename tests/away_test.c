/* away_test.c -- jobs on workers that are reached by packets only: the same
 * answers as by plain BLAS, whatever is lost, damaged or made up on the way. */
#include "fleet.h"

#include "run/wire.h"

typedef struct trial {
    rig_kind kind;
    double most; /* relative error */
} trial;

/* Every shape of message and block that travels. */
static const trial trials[] = {
    {{.spec = "mds:k=3", .workers = 5, .m = 301, .n = 40, .p = 1}, 1e-12},
    {{.spec = "mds:k=3", .workers = 5, .m = 301, .n = 40, .p = 7}, 1e-12},
    {{.spec = "uncoded", .workers = 3, .m = 50, .n = 9, .p = 2}, 1e-14},
    {{.spec = "elastic:k=3", .workers = 5, .m = 301, .n = 40, .p = 3}, 1e-12},
    {{.spec = "elastic:k=3,cut=columns", .workers = 5, .m = 61, .n = 100,
      .p = 3}, 1e-12},
    {{.spec = "elastic:k=3", .workers = 5, .m = 100, .n = 61, .p = 3,
      .op = KOFN_LEFT}, 1e-12},
    {{.spec = "mds:k=3", .workers = 5, .m = 300, .n = 40, .p = 2,
      .dtype = KOFN_F32}, 1e-5},
    {{.spec = "mds:k=3", .workers = 5, .m = 200, .n = 90, .p = 1,
      .sparse = true}, 1e-12},
    {{.spec = "polynomial", .workers = 6, .m = 60, .n = 30, .p = 40}, 1e-10},
    {{.spec = "matdot", .workers = 6, .m = 60, .n = 30, .p = 40}, 1e-10},
    {{.spec = "gpd", .workers = 12, .m = 60, .n = 30, .p = 40}, 1e-9},
    {{.spec = "pcr", .workers = 9, .m = 90, .n = 20, .p = 1,
      .op = KOFN_GRAM}, 1e-9},
    {{.spec = "gc", .workers = 6, .m = 90, .n = 20, .p = 1,
      .op = KOFN_SUM}, 1e-10},
    {{.spec = "cgc", .workers = 6, .m = 90, .n = 20, .p = 1,
      .op = KOFN_SUM}, 1e-10},
};
#define TRIALS (sizeof trials / sizeof *trials)

static void open_away(rig *r, fleet *f, const rig_kind *k,
                      const loop_faults *faults, const kofn_away_options *o)
{
    rig_inputs(r, k);
    fleet_init(f, faults);
    f->serve.f = rig_part;
    f->serve.ctx = r;
    assert_ok(kofn_open(&r->job, r->plan, fleet_port(f, k->workers, o),
                        k->opt));
    assert_ok(rig_place(r));
}

static void run_away(const trial *t, const loop_faults *faults)
{
    fleet f;
    rig r;

    open_away(&r, &f, &t->kind, faults, NULL);
    for (uint64_t round = 0; round < 3; round++) {
        rig_next(&r, 11 + round);
        assert_ok(rig_round(&r, NULL));
        if (!(rig_error(&r) <= t->most))
            fail_msg("%s, trial %d, round %d: error %g", t->kind.spec, (int)(t - trials), (int)round, rig_error(&r));
    }
    kofn_close(r.job);
    r.job = NULL;
    for (size_t i = 0; i < f.members; i++) /* all are dismissed */
        pthread_join(f.member[i]->thread, NULL);
    for (size_t i = 0; i < f.members; i++) {
        assert_int_equal(f.member[i]->ended, KOFN_OK);
        free(f.member[i]);
    }
    pthread_mutex_destroy(&f.net.lock);
    rig_down(&r); /* workers read it until they are gone */
}

static void every_operation(void **state)
{
    (void)state;
    for (size_t i = 0; i < TRIALS; i++)
        run_away(&trials[i], NULL);
}

static void bodies_that_come_separately(void **state)
{
    const loop_faults fetching = {.fetching = true};

    (void)state;
    for (size_t i = 0; i < TRIALS; i++)
        run_away(&trials[i], &fetching);
}

static void narrow_pipes(void **state)
{
    const loop_faults narrow = {.room = 1000};

    (void)state;
    for (size_t i = 0; i < TRIALS; i++)
        run_away(&trials[i], &narrow);
}

/* ---- faults -------------------------------------------------------------------- */

/* Whatever happens on the way, a round ends with the right answer or with an
 * error that says that too few are left. */
static void faults_on_the_way(void **state)
{
    size_t failed = 0, rounds = 0, dropped = 0;

    (void)state;
    for (uint64_t seed = 0; seed < often(40); seed++) {
        const trial *t = &trials[seed % TRIALS];
        const loop_faults faults = {.twice = 0.05,
                                    .damage = 0.01,
                                    .truncate = 0.01,
                                    .cut = 0.005,
                                    .seed = seed};
        kofn_options o = KOFN_OPTIONS_INIT;
        rig_kind kind = t->kind;
        kofn_report total;
        fleet f;
        rig r;

        o.below = KOFN_BELOW_PAUSE;
        o.patience = 3 * KOFN_SECOND;
        o.late = 20;
        kind.opt = &o;
        open_away(&r, &f, &kind, &faults, NULL);
        for (uint64_t round = 0; round < 5; round++) {
            kofn_report rep;
            kofn_status st;

            rig_next(&r, 11 + round);
            rig_spoil(&r);
            assert_ok(kofn_begin(r.job, &r.x, &r.y));
            st = kofn_pump(r.job, 20 * KOFN_SECOND, &rep);
            rounds++;
            if (st == KOFN_AGAIN)
                fail_msg("%s, seed %d: hangs", kind.spec, (int)seed);
            if (st) {
                assert_true(st == KOFN_TOOFEW || st == KOFN_LATE);
                failed++;
                break;
            }
            if (!(rig_error(&r) <= t->most))
                fail_msg("%s, seed %d: error %g", kind.spec, (int)seed,
                         rig_error(&r));
        }
        kofn_job_totals(r.job, &total);
        dropped += total.dropped;
        kofn_close(r.job);
        r.job = NULL;
        fleet_down(&f);
        rig_down(&r);
    }
    print_message("%zu rounds, %zu could not be ended, %zu packets dropped\n",
                  rounds, failed, dropped);
    assert_true(failed <= rounds / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation),
        cmocka_unit_test(bodies_that_come_separately),
        cmocka_unit_test(narrow_pipes),
        cmocka_unit_test(faults_on_the_way),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
