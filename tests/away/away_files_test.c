/* away_files_test.c -- workers elsewhere that have the operand in a file of
 * their own make their blocks of it, as far as it is the same. */
#include "fleet.h"
#include "trials.h"

#include "wire/wire.h"

/* Pieces that are sent when the workers have this; the answers are right. */
static size_t pieces_with(const trial *t, disk *d, const rig *has,
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
    sent = f.net.sent[KF_WIRE_PIECE];
    fleet_down(&f);
    return sent;
}

/* One number of it is another. */
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

static void files_of_workers(void **state)
{
    (void)state;
    for (size_t i = 0; i < TRIALS; i++) {
        const trial *t = &trials[i];
        rig same;
        disk d;

        if (t->kind.op == KOFN_SUM)
            continue;
        rig_inputs(&same, &t->kind);
        assert_int_equal(pieces_with(t, &d, &same, "A.npy"), 0);
        assert_int_equal(d.asked, t->kind.workers);
        change_one(&same, i);
        /* those whose parts are not concerned still make their blocks */
        assert_true(pieces_with(t, &d, &same, "A.npy") > 0);
        kofn_plan_free(same.plan);
        sparse_free(&same.sparse);
        kf_free(same.A.data);
        kf_free(same.x.data);
        kf_free(same.y.data);
        kf_free(same.want);
        same = (rig){0};
        assert_true(pieces_with(t, &d, &same, "A.npy") > 0);
    }
}

/* What names a file elsewhere is not looked for, and the block is sent. */
static void names_of_files(void **state)
{
    static const char *const names[] = {"../A.npy", "/etc/A.npy", "..", ".",
                                        "a/../A.npy"};
    const trial *t = &trials[0];
    rig same;
    disk d;

    (void)state;
    rig_inputs(&same, &t->kind);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_true(pieces_with(t, &d, &same, names[i]) > 0);
        assert_int_equal(d.asked, 0);
    }
    rig_down(&same);
}

TEST_FILE(away_files_test)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_of_workers),
        cmocka_unit_test(names_of_files),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
