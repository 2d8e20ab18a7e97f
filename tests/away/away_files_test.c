/* away_files_test.c -- remote workers with the operand in a file of their own.
 * They make the blocks for which it equals the coordinator's operand. */
#include "fleet.h"
#include "trials.h"

#include "wire/wire.h"

/* Returns the number of slices that are sent to workers with this operand.
 * Checks that the results are right. */
static size_t slices_with(const trial *t, disk *d, const rig *has,
                          const char *name)
{
    kofn_away_options o = KOFN_AWAY_OPTIONS_INIT;
    fleet f;
    rig r;
    size_t sent;

    *d = (disk){has->sparse.ptr ? NULL : &has->A,
                has->sparse.ptr ? &has->sparse : NULL, 0};
    if (!has->A.data)
        d->A = NULL;
    o.source = name;
    rig_inputs(&r, &t->kind);
    fleet_init(&f, NULL);
    f.disk = d;
    f.serve.operand = from_disk;
    f.serve.operand_done = disk_done;
    assert_ok(
        kofn_open(&r.job, r.plan, fleet_port(&f, t->kind.workers, &o), NULL));
    assert_ok(rig_place(&r));
    assert_ok(rig_round(&r, NULL));
    if (!(rig_error(&r) <= t->most))
        fail_msg("%s: error %g", t->kind.spec, rig_error(&r));
    rig_down(&r);
    sent = f.net.sent[KF_WIRE_SLICE];
    fleet_down(&f);
    return sent;
}

/* Changes one number of the operand. */
static void change_one(rig *r, uint64_t seed)
{
    kf_rng g = kf_rng_stream(seed, KF_FOR_DATA, 3, 0);
    size_t n =
        r->sparse.ptr ? r->sparse.ptr[r->sparse.rows] : r->A.rows * r->A.cols;
    size_t i = (size_t)kf_rng_below(&g, n);

    if (r->sparse.ptr)
        ((double *)(uintptr_t)r->sparse.val)[i] += 1e-9;
    else if (r->A.dtype == KOFN_F64)
        ((double *)r->A.data)[i] += 1e-9;
    else
        ((float *)r->A.data)[i] += 1e-3f;
}

static void own_files(void **state)
{
    (void)state;
    for (size_t i = 0; i < TRIALS; i++) {
        const trial *t = &trials[i];
        rig same;
        disk d;

        if (t->kind.op == KOFN_SUM)
            continue;
        rig_inputs(&same, &t->kind);
        assert_int_equal(slices_with(t, &d, &same, "A.npy"), 0);
        assert_int_equal(d.asked, t->kind.workers);
        change_one(&same, i);
        /* workers with unchanged parts still make their blocks */
        assert_true(slices_with(t, &d, &same, "A.npy") > 0);
        kofn_plan_free(same.plan);
        sparse_free(&same.sparse);
        kf_free(same.A.data);
        kf_free(same.x.data);
        kf_free(same.y.data);
        kf_free(same.want);
        same = (rig){0};
        assert_true(slices_with(t, &d, &same, "A.npy") > 0);
    }
}

static void bad_names(void **state)
{
    static const char *const names[] = {"../A.npy", "/etc/A.npy", "..", ".",
                                        "a/../A.npy"};
    const trial *t = &trials[0];
    rig same;
    disk d;

    (void)state;
    rig_inputs(&same, &t->kind);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_true(slices_with(t, &d, &same, names[i]) > 0);
        assert_int_equal(d.asked, 0);
    }
    rig_down(&same);
}

TEST_FILE(away_files_test)
{
    const struct CMUnitTest tests[] = {
        TEST(own_files,
             "away: workers make their blocks from an equal file of their own"),
        TEST(bad_names, "away: a file name with a folder is not looked for"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
