/* sizes_test.c -- structs that begin with their size, or are given with it.
 * Their caller was compiled with shorter ones, has longer ones, or did not
 * initialize them. */
#include "core_rig.h"
#include "rig.h"

#include <stddef.h>

static const rig_kind kind = {
    .spec = "mds:k=3", .workers = 5, .m = 60, .n = 7, .p = 1, .sim = true};

static bool untouched(const void *p, size_t from, size_t to)
{
    const unsigned char *byte = p;

    for (; from < to; from++)
        if (byte[from] != 0xA5)
            return false;
    return true;
}

static void reports(void **state)
{
    const size_t older = offsetof(kofn_report, number);
    struct {
        kofn_report now;
        char later[16];
    } rep;
    rig r;

    (void)state;
    rig_up(&r, &kind);
    for (size_t i = 0; i < 2; i++) {
        size_t size = i ? sizeof rep : older;

        memset(&rep, 0xA5, sizeof rep);
        rep.now.size = size;
        assert_ok(i ? kofn_job_totals(r.job, &rep.now)
                    : rig_round(&r, &rep.now));
        assert_true(rep.now.rounds == 1 && rep.now.received > 0);
        assert_true(rep.now.size == size);
        assert_true(untouched(&rep, i ? sizeof rep.now : older, sizeof rep));
    }
    rig_down(&r);
}

/* Nothing has begun when it is refused. */
static void empty_reports(void **state)
{
    kofn_report none = {0}, rep = KOFN_REPORT_INIT;
    uint32_t number;
    rig r;

    (void)state;
    rig_up(&r, &kind);
    assert_status(KOFN_INVAL, rig_round(&r, &none));
    assert_non_null(strstr(kofn_errmsg(), "KOFN_REPORT_INIT"));
    assert_status(KOFN_INVAL, kofn_fetch(r.job, 0, 0, &r.A, &none));
    assert_status(KOFN_INVAL, kofn_fetch(r.job, 0, 1, &r.A, &none));
    assert_status(KOFN_INVAL, kofn_scrub(r.job, &none));
    assert_status(KOFN_INVAL, kofn_job_totals(r.job, &none));
    assert_ok(rig_put(&r, &number));
    assert_status(KOFN_INVAL, kofn_take(r.job, number, KOFN_NEVER, &none));
    assert_ok(kofn_take(r.job, number, KOFN_NEVER, &rep));
    assert_ok(rig_round(&r, &rep));
    assert_int_equal(rep.number, 2);
    /* a round is still under way */
    assert_ok(kofn_put(r.job, &r.x, &r.y, NULL));
    assert_status(KOFN_INVAL, kofn_take(r.job, 0, KOFN_NEVER, &none));
    assert_ok(kofn_take(r.job, 0, KOFN_NEVER, &rep));
    assert_int_equal(rep.number, 3);
    rig_down(&r);
}

/* Figures of a job, of its plan and of the machine are filled up to the
 * caller's size. */
static void figures(void **state)
{
    kofn_progress p;
    kofn_plan_info info;
    kofn_machine m;
    rig r;

    (void)state;
    rig_up(&r, &kind);
    assert_ok(rig_round(&r, NULL));
    memset(&p, 0xA5, sizeof p);
    p.size = offsetof(kofn_progress, joined);
    assert_ok(kofn_job_progress(r.job, &p));
    assert_true(p.round == 1 && p.live == 5);
    assert_int_equal(p.size, offsetof(kofn_progress, joined));
    assert_true(untouched(&p, offsetof(kofn_progress, joined), sizeof p));
    memset(&info, 0xA5, sizeof info);
    info.size = offsetof(kofn_plan_info, noise50);
    assert_ok(kofn_plan_describe(kofn_job_plan(r.job), true, &info));
    assert_int_equal(info.threshold, 3);
    assert_int_equal(info.size, offsetof(kofn_plan_info, noise50));
    assert_true(
        untouched(&info, offsetof(kofn_plan_info, noise50), sizeof info));
    memset(&m, 0xA5, sizeof m);
    m.size = offsetof(kofn_machine, coretype);
    assert_ok(kofn_machine_info(&m));
    assert_true(m.simd[0] && m.blas[0]);
    assert_int_equal(m.size, offsetof(kofn_machine, coretype));
    assert_true(untouched(&m, offsetof(kofn_machine, coretype), sizeof m));
    p.size = info.size = m.size = 0;
    assert_status(KOFN_INVAL, kofn_job_progress(r.job, &p));
    assert_non_null(strstr(kofn_errmsg(), "KOFN_PROGRESS_INIT"));
    assert_status(KOFN_INVAL,
                  kofn_plan_describe(kofn_job_plan(r.job), true, &info));
    assert_non_null(strstr(kofn_errmsg(), "KOFN_PLAN_INFO_INIT"));
    assert_status(KOFN_INVAL, kofn_machine_info(&m));
    assert_non_null(strstr(kofn_errmsg(), "KOFN_MACHINE_INIT"));
    rig_down(&r);
}

static void problems(void **state)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_MATVEC, 60, 7, 1, KOFN_F64, true);
    kofn_plan *p;

    (void)state;
    pb.size = offsetof(kofn_problem, sparse);
    assert_ok(kofn_plan_new(&p, &pb, kind.spec, 5, 1));
    assert_false(p->layout.problem.sparse);
    assert_int_equal(p->layout.problem.size, sizeof pb);
    kofn_plan_free(p);
    pb.size = 0;
    assert_status(KOFN_INVAL, kofn_plan_new(&p, &pb, kind.spec, 5, 1));
    assert_non_null(strstr(kofn_errmsg(), "KOFN_PROBLEM_INIT"));
}

/* All results would be wrong if the struct were longer. */
static void faults(void **state)
{
    kofn_faults w = KOFN_FAULTS_INIT(.corrupt = 1, .seed = 3);
    kofn_port *port;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        rig_kind k = kind;
        rig r;

        k.faults = &w;
        w.size = i ? sizeof w : offsetof(kofn_faults, corrupt);
        rig_up(&r, &k);
        assert_true((rig_round(&r, NULL) || rig_error(&r) > 1e-9) == (i == 1));
        rig_down(&r);
    }
    w.size = 0;
    assert_status(KOFN_INVAL, kofn_port_sim(&port, 2, &w));
    assert_non_null(strstr(kofn_errmsg(), "KOFN_FAULTS_INIT"));
    assert_status(KOFN_INVAL, kofn_port_threads(&port, 2, &w));
    assert_status(KOFN_INVAL, kofn_faults_parse(&w, "join=1"));
    memset(&w, 0xA5, sizeof w);
    w.size = offsetof(kofn_faults, seed);
    assert_ok(kofn_faults_parse(&w, "straggle=0.5"));
    assert_true(w.straggle == 0.5);
    assert_true(untouched(&w, offsetof(kofn_faults, seed), sizeof w));
}

static void events_and_actions(void **state)
{
    kofn_core_options o = KOFN_CORE_OPTIONS_INIT;
    kofn_plan *p = make_plan("mds:k=2", 3, 4);
    kofn_event ev;
    kofn_action a;
    kofn_core *c;

    (void)state;
    o.event = offsetof(kofn_event, use);
    o.action = offsetof(kofn_action, noise);
    assert_ok(kf_core_new(&c, p, &o));
    memset(&ev, 0xA5, sizeof ev);
    ev.now = 0;
    ev.principal = 0;
    for (ev.worker = 0; ev.worker < 3; ev.worker++)
        for (ev.type = KOFN_EV_JOINED; ev.type <= KOFN_EV_STORED; ev.type++) {
            assert_ok(kofn_core_step(c, &ev));
            while (kofn_core_next(c, &a))
                continue;
        }
    ev.type =
        KOFN_EV_BEGIN; /* of a use that does not exist, if it were longer */
    ev.product = 1;
    assert_ok(kofn_core_step(c, &ev));
    memset(&a, 0xA5, sizeof a);
    assert_true(kofn_core_next(c, &a));
    assert_int_equal(a.type, KOFN_DO_WORK);
    assert_true(untouched(&a, o.action, sizeof a));
    kofn_core_free(c);
    kofn_plan_free(p);
}

TEST_FILE(sizes_test)
{
    const struct CMUnitTest tests[] = {
        TEST(reports, "sizes: reports are filled up to the caller's size"),
        TEST(empty_reports,
             "sizes: reports without a size are refused before a call begins"),
        TEST(figures, "sizes: figures are filled up to the caller's size"),
        TEST(problems,
             "sizes: shorter problems have defaults, empty ones are refused"),
        TEST(faults,
             "sizes: shorter fault models have defaults, empty ones refused"),
        TEST(events_and_actions,
             "sizes: events and actions have the caller's size"),
    };

    rig_begin();
    return cmocka_run_group_tests_name("sizes", tests, NULL, NULL);
}
