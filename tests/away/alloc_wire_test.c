/* alloc_wire_test.c -- memory runs out at every place in turn: in a worker, in
 * a coordinator, and in the transport. The result is a status, never a crash,
 * a leak or a hang. */
#include "alloc_rig.h"
#include "fleet.h"
#include "scripted_coordinator.h"
#include "sgd.h"

#include <kofn/net.h>

/* ---- a worker ------------------------------------------------------------ */

typedef struct order {
    scripted o;
    rig r;
    kf_resident resident;
    kf_code *code;
    kf_block *block;
} order;

/* Prepares seat 2 of the operand, and a task for it. */
static void prepare(order *p, const rig_kind *k)
{
    const size_t seat = 2;

    rig_inputs(&p->r, k);
    if (k->op == KOFN_SUM) {
        kf_resident_sum(&p->resident, p->r.plan);
        p->resident.formula = kofn_formulas;
        p->resident.arg[1] = 1;
        p->resident.X = p->r.A;
        p->resident.y = p->r.A.data; /* any numbers */
    } else if (k->sparse) {
        assert_ok(kf_resident_sparse(&p->resident, p->r.plan, &p->r.sparse));
    } else {
        assert_ok(kf_resident_dense(&p->resident, p->r.plan, &p->r.A));
    }
    assert_ok(kf_resident_away(&p->resident));
    assert_ok(kf_code_new(&p->code, p->r.plan));
    assert_ok(kf_data_encode(&p->resident, p->code, &seat, 1, &p->block));
    script_offer(&p->o, p->block);
    p->o.work = (kf_head){.type = KF_WIRE_WORK,
                          .task = 1,
                          .row = 7,
                          .round = 1,
                          .product = 1,
                          .cols = 1,
                          .out_cols = 1};
    if (k->op == KOFN_SUM) {
        p->o.work.how = KF_HOW_SUBMESSAGE;
        p->o.work.rows = p->r.A.cols + 1;
        p->o.work.out_rows =
            p->block->subset->components * p->block->subset->span;
    } else {
        p->o.work.how = KF_HOW_ROWS;
        p->o.work.hi = p->block->rows;
        p->o.work.rows = p->block->cols;
        p->o.work.out_rows = p->block->components * p->block->rows;
    }
}

static void clean_up(order *p)
{
    kf_block_drop(p->block);
    kf_code_free(p->code);
    kf_resident_free(&p->resident);
    rig_down(&p->r);
}

static kofn_status work(const void *ud)
{
    scripted *o = (scripted *)(uintptr_t)ud;
    kofn_status st = script_serve(o, 0);

    if (!st) /* a task may lack memory for a moment */
        assert_int_equal(o->results + o->failures, 1);
    return st;
}

static void a_worker(void **state)
{
    static const rig_kind kinds[] = {
        {.spec = "mds:k=2", .workers = 3, .m = 20, .n = 6, .p = 1},
        {.spec = "elastic:k=2",
         .workers = 3,
         .m = 20,
         .n = 6,
         .p = 1,
         .sparse = true},
        {.spec = "gc:d=2",
         .workers = 3,
         .m = 20,
         .n = 6,
         .p = 1,
         .op = KOFN_SUM}};

    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        static order p;

        p = (order){0};
        kofn_set_alloc(NULL, NULL);
        prepare(&p, &kinds[i]);
        both_ways(work, &p.o, KOFN_OK, 1);
        clean_up(&p);
    }
}

static void a_worker_of_a_stream(void **state)
{
    static scripted o;

    (void)state;
    o = script_pair();
    both_ways(work, &o, KOFN_OK, 1);
}

/* ---- a coordinator and its workers --------------------------------------- */

/* Computes the plain product three times. */
static kofn_status pairs(kofn_job *job, const rig *r, kofn_matrix *y)
{
    kofn_status st = KOFN_OK;

    for (int i = 0; i < 3 && !st; i++) {
        uint32_t number;

        st = kofn_put_pair(job, &r->A, &r->x, y, &number);
        if (!st)
            st = kofn_take(job, number, KOFN_NEVER, NULL);
        for (size_t k = 0; k < y->rows && !st; k++)
            assert_at_most(fabs(((double *)y->data)[k] - r->want[k]), 1e-10);
    }
    return st;
}

/* Changes A after each product: y_i is then less by u_i (v' x). */
static kofn_status changes(kofn_job *job, const rig *r, kofn_matrix *y)
{
    sgd c = SGD_INIT;
    double u[64], v[64], vx = 0;
    kofn_matrix U = {u, 1, r->A.rows, r->A.rows, KOFN_F64};
    kofn_matrix V = {v, 1, r->A.cols, r->A.cols, KOFN_F64};
    kofn_status st = kofn_place(job, &r->A);

    for (size_t i = 0; i < U.cols; i++)
        u[i] = (double)i / 64;
    for (size_t i = 0; i < V.cols; i++) {
        v[i] = 1 - (double)i / 8;
        vx += v[i] * ((const double *)r->x.data)[i];
    }
    for (int n = 0; n <= 3 && !st; n++) {
        c.momentum =
            n == 3 ? 0.5
                   : 0; /* there was no momentum before: it changes nothing */
        if (n > 0)      /* then only some blocks are stored */
            st = sgd_update(job, 0, &c, &U, &V);
        if (!st)
            st = kofn_round(job, &r->x, y, NULL);
        for (size_t i = 0; i < y->rows && !st; i++)
            assert_at_most(
                fabs(((double *)y->data)[i] - r->want[i] + n * u[i] * vx),
                1e-9);
    }
    return st;
}

/* Runs a job in which memory may run out anywhere: in a worker, which is then
 * lost, or in the coordinator. */
static kofn_status rounds_of(kofn_op op, const char *spec, bool change,
                             const void *ud)
{
    const rig *r = ud;
    static double answer[64];
    kofn_matrix y = {answer, r->A.rows, 1, 1, KOFN_F64};
    kofn_away_options away = KOFN_AWAY_OPTIONS_INIT;
    kofn_problem pb =
        KOFN_PROBLEM_INIT(op, r->A.rows, r->A.cols, 1, KOFN_F64, false);
    kofn_options o = KOFN_OPTIONS_INIT;
    kofn_job *job = NULL;
    kofn_transport *hub;
    kofn_plan *plan;
    kofn_port *port;
    kofn_status st = kofn_plan_new(&plan, &pb, spec, 4, 7);
    fleet f;

    if (st)
        return st;
    fleet_init(&f, NULL);
    hub = loop_hub(&f.net);
    away.workers = 1;
    o.below = KOFN_BELOW_PAUSE;
    o.patience = (op == KOFN_STREAM || change ? 1 : 5) * KOFN_SECOND;
    for (size_t i = 0; i < 4; i++)
        fleet_add(&f);
    st = kofn_port_away(&port, hub, &away);
    if (!st)
        st = kofn_open(&job, plan, port, &o);
    if (!st && op == KOFN_STREAM) {
        st = pairs(job, r, &y);
    } else if (!st && change) {
        st = changes(job, r, &y);
    } else if (!st) {
        st = kofn_place(job, &r->A);
        for (int i = 0; i < 3 && !st; i++)
            st = kofn_round(job, &r->x, &y, NULL);
    }
    for (size_t i = 0; i < y.rows && !st && !change; i++)
        assert_at_most(fabs(answer[i] - r->want[i]), 1e-10);
    kofn_close(job);
    kofn_plan_free(plan);
    fleet_down(&f);
    return st;
}

static kofn_status rounds(const void *ud)
{
    return rounds_of(KOFN_MATVEC, "mds:k=2", false, ud);
}

static kofn_status stream(const void *ud)
{
    return rounds_of(KOFN_STREAM, "dip:m=2,p=1,T=1", false, ud);
}

static kofn_status changing(const void *ud)
{
    return rounds_of(KOFN_MATVEC, "mds:k=2", true, ud);
}

static void a_job(void **state)
{
    static const rig_kind kind = {
        .spec = "mds:k=2", .workers = 4, .m = 40, .n = 9, .p = 1};
    rig r;

    (void)state;
    kofn_set_alloc(NULL, NULL);
    rig_inputs(&r, &kind);
    kofn_set_alloc(fail_once, NULL);
    every_allocation(rounds, &r, false, KOFN_TOOFEW, often(1) > 1 ? 1 : 5);
    every_allocation(stream, &r, false, KOFN_TOOFEW, often(1) > 1 ? 1 : 23);
    every_allocation(changing, &r, false, KOFN_TOOFEW, often(1) > 1 ? 1 : 23);
    kofn_set_alloc(NULL, NULL);
    rig_down(&r);
}

/* ---- the transport ------------------------------------------------------- */

#define WORDS 3

/* Exchanges packets, one of each end at a time, for a few seconds at most. By
 * then all have come, or an end has reported that memory ran out. */
static kofn_status talk(kofn_transport *const end[2])
{
    static const char words[WORDS + 1][8] = {"one", "two", "three", ""};
    static unsigned char
        body[5000]; /* lent, perhaps for longer than this call */
    size_t heard[2] = {0}, said[2] = {0};
    kofn_peer peer[2] = {0};
    bool there[2] = {false, false};

    for (int turn = 0; turn < 20000; turn++) {
        int i = turn % 2;
        kofn_packet p;
        kofn_status st = end[i]->wait(end[i], KOFN_SECOND / 1000, &p);

        if (st != KOFN_OK && st != KOFN_AGAIN)
            return st;
        if (st == KOFN_OK && p.what == KOFN_CAME) {
            there[i] = true;
            peer[i] = p.peer;
            said[i] = heard[i] = 0; /* earlier packets may be lost */
        } else if (st == KOFN_OK && p.what == KOFN_PACKET) {
            heard[i]++;
            if (p.own)
                end[i]->release(end[i], p.own);
        } else if (st == KOFN_OK) {
            there[i] = false;
        }
        if (there[i] && said[i] < WORDS) {
            st = end[i]->send(end[i], peer[i], words[said[i]], 8,
                              &(kofn_lent){.data = body, .bytes = sizeof body},
                              false);
            if (st == KOFN_NOMEM)
                return st;
            said[i] += st == KOFN_OK;
        }
        if (heard[0] >= WORDS && heard[1] >= WORDS)
            return KOFN_OK;
    }
    return KOFN_LATE;
}

static kofn_status meeting(const void *ud)
{
    const char *address = ud;
    const kofn_net_options o = {.size = sizeof o, .silence = 10 * KOFN_SECOND};
    kofn_transport *end[2];
    kofn_status st = kofn_net_listen(&end[0], address, &o);

    if (st)
        return st;
    st = kofn_net_connect(&end[1], kofn_net_endpoint(end[0]), &o);
    if (!st) {
        st = talk(end);
        end[1]->close(end[1], 0);
    }
    end[0]->close(end[0], 0);
    return st;
}

static void a_transport(void **state)
{
    char address[64];

    (void)state;
    snprintf(address, sizeof address, "ipc:///tmp/kofn-alloc-%ld.sock",
             (long)getpid());
    both_ways(meeting, address, KOFN_NOMEM, 1);
}

TEST_FILE(alloc_wire_test)
{
    const struct CMUnitTest tests[] = {
        TEST(a_worker, "away: a worker without memory fails and leaks nothing"),
        TEST(a_worker_of_a_stream,
             "away: a stream's worker without memory fails and leaks nothing"),
        TEST(a_job,
             "away: a job is right or fails if memory runs out at any place"),
        TEST(a_transport,
             "net: a transport without memory fails and leaks nothing"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
