/* sparse_test.c -- tests A' A x and left products of a sparse A against dense
 * products by BLAS. A sparse A is never mixed. The laws test every scheme with
 * random sizes; here are the cases of sparse operands only. */
#include "rig.h"

#include "code/code.h"
#include "run/run.h"

static const struct {
    const char *spec;
    size_t workers, p;
    kofn_op op;
} codes[] = {
    {"pcr:r=3", 9, 1, KOFN_GRAM},
    {"pcr:r=3,layout=paper", 9, 1, KOFN_GRAM},
    {"pcr:r=2,systematic=1", 7, 1, KOFN_GRAM},
    {"pcr:r=3,basis=lagrange", 8, 1, KOFN_GRAM},
    {"elastic:k=3", 6, 1, KOFN_LEFT},
    {"elastic:k=4", 6, 5, KOFN_LEFT},
    {"elastic:k=3,basis=harmonic", 5, 3, KOFN_LEFT},
    {"elastic:k=1", 2, 3, KOFN_LEFT},
    {"gpd:m=2,n=1,p=2", 8, 6, KOFN_LEFT},
    {"gpd:m=1,n=1,p=3", 7, 2, KOFN_LEFT},
    {"polydot:m=3,n=1,p=1", 9, 7, KOFN_LEFT},
};
#define CODES (sizeof codes / sizeof *codes)

static rig_kind kind_of(size_t c, size_t m, size_t n, bool sim)
{
    return (rig_kind){.spec = codes[c].spec,
                      .workers = codes[c].workers,
                      .m = m,
                      .n = n,
                      .p = codes[c].p,
                      .op = codes[c].op,
                      .sim = sim,
                      .sparse = true};
}

/* Sizes go from fewer rows than blocks to a few thousand strips a block. With
 * few rows some blocks are empty, and one reaches beyond A. */
static void every_port(void **state)
{
    static const size_t sizes[][2] = {{1, 1},   {2, 40},   {7, 3},
                                      {53, 31}, {400, 17}, {5003, 6}};

    (void)state;
    for (size_t c = 0; c < CODES; c++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (int sim = 0; sim < 2; sim++) {
                rig_kind k = kind_of(c, sizes[s][0], sizes[s][1], sim);
                rig r;

                rig_up(&r, &k);
                for (uint64_t round = 0; round < 3; round++) {
                    rig_next(&r, 30 + round);
                    assert_ok(rig_round(&r, NULL));
                    assert_at_most(rig_error(&r), 1e-10);
                }
                rig_down(&r);
            }
}

/* All workers are live at first, then fewer. One joins and gets a new block. */
static void workers_come_and_go(void **state)
{
    static const kofn_fault_event events[] = {
        {2, 0, KOFN_FAULT_EVENT_LEAVE, 1, 0},
        {3, 0.5, KOFN_FAULT_EVENT_LEAVE, 2, 0},
        {4, 0, KOFN_FAULT_EVENT_JOIN, 0, 0},
        {5, 0.2, KOFN_FAULT_EVENT_LEAVE, 0, 0},
        {5, 0.4, KOFN_FAULT_EVENT_JOIN, 0, 0}};
    kofn_options o = with_events(events, sizeof events / sizeof *events);

    (void)state;
    for (int sim = 0; sim < 2; sim++) {
        rig_kind k = {.spec = "elastic:k=3",
                      .workers = 6,
                      .m = 301,
                      .n = 40,
                      .p = 3,
                      .op = KOFN_LEFT,
                      .sparse = true,
                      .sim = sim,
                      .opt = &o};
        rig r;

        rig_up(&r, &k);
        for (uint64_t round = 0; round < 6; round++) {
            rig_next(&r, 60 + round);
            assert_ok(rig_round(&r, NULL));
            assert_at_most(rig_error(&r), 1e-10);
        }
        rig_down(&r);
    }
}

static void both_products(void **state)
{
    (void)state;
    for (int sim = 0; sim < 2; sim++) {
        rig_kind k = {.workers = 6, .m = 90, .n = 41, .p = 4, .sparse = true};
        kofn_problem pb =
            KOFN_PROBLEM_INIT(KOFN_MATMUL, 90, 41, 4, KOFN_F64, true);
        kofn_matrix d = random_matrix(2, 90, KOFN_F64, 8);
        kofn_matrix e = random_matrix(2, 41, KOFN_F64, 9);
        double *want;
        kofn_port *port;
        rig r;

        rig_inputs(&r, &k);
        want = plain_product(&d, &r.A);
        assert_ok(kofn_plan_new(&r.plan, &pb, "elastic:k=4", 6, 7));
        assert_ok(kofn_plan_serve_left(r.plan, 2));
        assert_ok(sim ? kofn_port_sim(&port, 6, NULL)
                      : kofn_port_threads(&port, 6, NULL));
        assert_ok(kofn_open(&r.job, r.plan, port, NULL));
        assert_ok(rig_place(&r));
        for (int round = 0; round < 3; round++) {
            assert_ok(rig_round(&r, NULL));
            assert_at_most(rig_error(&r), 1e-11);
            memset(e.data, 0xff, 2 * 41 * sizeof(double));
            assert_ok(rig_left(r.job, &d, &e));
            assert_at_most(relative_error(e.data, want, 2 * 41), 1e-11);
        }
        kf_free(want);
        kf_free(d.data);
        kf_free(e.data);
        rig_down(&r);
    }
}

/* A left product has spare answers, so the faulty worker is located and the
 * product is right. */
static void faulty_worker_is_located(void **state)
{
    static const kofn_fault_event faulty[] = {
        {1, 0, KOFN_FAULT_EVENT_CORRUPT, 3, 0}};
    kofn_options o = with_events(faulty, 1);
    rig_kind k = {.spec = "gpd:m=2,n=1,p=2",
                  .workers = 12,
                  .m = 120,
                  .n = 50,
                  .p = 8,
                  .op = KOFN_LEFT,
                  .sparse = true,
                  .sim = true,
                  .opt = &o};
    kofn_report rep = KOFN_REPORT_INIT;
    rig r;

    (void)state;
    o.errors = KOFN_ERRORS_ADVERSARIAL;
    o.late = -1;
    rig_up(&r, &k);
    assert_ok(rig_round(&r, &rep));
    assert_at_most(rig_error(&r), 1e-9);
    assert_int_equal(rep.located[3], 1);
    assert_true(rep.corrupt > 0);
    rig_down(&r);
}

/* Returns component l of a sparse block, mixed. */
static kofn_matrix component_of(const kf_block *b, const kofn_matrix *A,
                                size_t l)
{
    kofn_matrix component = {numbers(b->rows * b->cols, sizeof(double)),
                             b->rows, b->cols, b->cols, KOFN_F64};

    for (size_t j = 0; j < b->used; j++)
        for (size_t i = 0; i < b->rows && b->first[j] + i < A->rows; i++)
            cblas_daxpy((int)b->cols, b->weight[l * b->used + j],
                        kf_at(A, b->first[j] + i, 0), 1,
                        kf_at(&component, i, 0), 1);
    return component;
}

/* No scheme of the library has several components from the left on rows, but a
 * scheme of a user may. */
static void components_from_the_left(void **state)
{
    rig_kind k = {.spec = "elastic:k=3",
                  .workers = 6,
                  .m = 70,
                  .n = 31,
                  .p = 5,
                  .op = KOFN_MATMUL,
                  .sparse = true};
    kf_resident resident;
    kf_block *block;
    kf_code *code;
    kf_buffer *in, *result;
    size_t seat = 4, strips = 3;
    kofn_matrix x;
    kf_msg m;
    rig r;

    (void)state;
    rig_inputs(&r, &k);
    assert_ok(kf_resident_sparse(&resident, r.plan, &r.sparse));
    assert_ok(kf_code_new(&code, r.plan));
    assert_ok(kf_data_encode(&resident, code, &seat, 1, &block));
    assert_int_equal(block->components, 4);
    x = random_matrix(5, block->rows, KOFN_F64, 3);
    assert_ok(kf_buffer_new(&in, 5, block->rows, KOFN_F64));
    assert_ok(kf_buffer_new(&result, 4 * strips, 31, KOFN_F64));
    memcpy(in->m.data, x.data, 5 * block->rows * sizeof(double));
    m = (kf_msg){.row = (uint32_t)seat,
                 .how = KF_HOW_LEFT_ROWS,
                 .lo = 1,
                 .hi = 1 + strips,
                 .in = in,
                 .result = result};
    assert_ok(kf_work_fits(block, &m, &in->m, &result->m));
    assert_ok(kf_work_do(block, &m, NULL, NULL));
    for (size_t l = 0; l < 4; l++) {
        kofn_matrix component = component_of(block, &r.A, l);
        double *want = plain_product(&x, &component);

        assert_at_most(relative_error(kf_at(&result->m, l * strips, 0),
                                      want + 31, strips * 31),
                       1e-13);
        kf_free(want);
        kf_free(component.data);
    }
    kf_free(x.data);
    kf_buffer_drop(in);
    kf_buffer_drop(result);
    kf_block_drop(block);
    kf_code_free(code);
    kf_resident_free(&resident);
    rig_down(&r);
}

static bool always(void *ud)
{
    (void)ud;
    return true;
}

/* The reported work is twice the number of entries of A for A' A x. For a left
 * product it is that number for each row of the input. */
static void work_is_counted_and_stopped(void **state)
{
    static const struct {
        const char *spec;
        kofn_op op;
        kf_how how;
        size_t workers, rows, p;
    } work[] = {{"pcr:r=1", KOFN_GRAM, KF_HOW_GRAM, 1, 600000, 1},
                {"elastic:k=1,basis=harmonic", KOFN_LEFT, KF_HOW_LEFT_INNER, 1,
                 600000, 3},
                {"gpd:m=1,n=1,p=1", KOFN_LEFT, KF_HOW_LEFT_ROWS, 1, 6000, 3}};

    (void)state;
    for (size_t c = 0; c < sizeof work / sizeof *work; c++) {
        rig_kind k = {.spec = work[c].spec,
                      .workers = work[c].workers,
                      .m = work[c].rows,
                      .n = 9,
                      .p = work[c].p,
                      .op = work[c].op,
                      .sparse = true};
        kf_resident resident;
        kf_block *block;
        kf_code *code;
        kf_buffer *in, *result;
        double entries;
        size_t seat = 0;
        kf_msg m;
        rig r;

        rig_inputs(&r, &k);
        entries = (double)r.sparse.ptr[k.m];
        assert_true(entries > 0);
        assert_ok(kf_resident_sparse(&resident, r.plan, &r.sparse));
        assert_ok(kf_code_new(&code, r.plan));
        assert_ok(kf_data_encode(&resident, code, &seat, 1, &block));
        assert_ok(kf_buffer_new(&in, r.x.rows, r.x.cols, KOFN_F64));
        assert_ok(kf_buffer_new(&result, r.y.rows, r.y.cols, KOFN_F64));
        memcpy(in->m.data, r.x.data, r.x.rows * r.x.cols * sizeof(double));
        m = (kf_msg){
            .how = work[c].how, .hi = r.plan->span, .in = in, .result = result};
        assert_ok(kf_work_fits(block, &m, &in->m, &result->m));
        assert_true(kf_work_size(block, &m) ==
                    (work[c].op == KOFN_GRAM ? 2 : 3) * entries);
        assert_int_equal(kf_work_do(block, &m, always, NULL), KOFN_AGAIN);
        assert_ok(kf_work_do(block, &m, NULL, NULL));
        memcpy(r.y.data, result->m.data, r.y.rows * r.y.cols * sizeof(double));
        assert_at_most(rig_error(&r), 1e-12);
        kf_buffer_drop(in);
        kf_buffer_drop(result);
        kf_block_drop(block);
        kf_code_free(code);
        kf_resident_free(&resident);
        rig_down(&r);
    }
}

static void refusals(void **state)
{
    kofn_sparse s = random_sparse(40, 30, 3, 1);
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_LEFT, 40, 30, 5, KOFN_F64, true);
    kofn_plan *plan;
    kofn_port *port;
    kofn_job *job;

    (void)state;
    assert_status(KOFN_UNSUITED,
                  kofn_plan_new(&plan, &pb, "elastic:k=3,cut=columns", 6, 1));
    assert_status(KOFN_UNSUITED, kofn_plan_new(&plan, &pb, "matdot:n=2", 6, 1));
    pb = (kofn_problem)KOFN_PROBLEM_INIT(KOFN_SUM, 30, 30, 1, KOFN_F64, true);
    assert_status(KOFN_UNSUITED, kofn_plan_new(&plan, &pb, "gc", 6, 1));
    assert_non_null(strstr(kofn_errmsg(), "sum of functions"));
    pb = (kofn_problem)KOFN_PROBLEM_INIT(KOFN_GRAM, 40, 30, 1, KOFN_F32, true);
    assert_ok(kofn_plan_new(&plan, &pb, "pcr:r=3", 6, 1));
    assert_ok(kofn_port_sim(&port, 6, NULL));
    assert_ok(kofn_open(&job, plan, port, NULL));
    assert_status(KOFN_SHAPE, kofn_place_at(job, 0, KOFN_SPARSE(&s)));
    kofn_close(job);
    kofn_plan_free(plan);
    sparse_free(&s);
}

/* All row ends are checked before any entry is, because an end may lie beyond
 * the entries. */
static void ends_that_descend(void **state)
{
    const size_t ptr[] = {0, SIZE_MAX / 16, 1};
    const uint32_t col[] = {0};
    const double val[] = {1};
    const kofn_sparse s = {2, 1, ptr, col, val};

    (void)state;
    assert_status(KOFN_INVAL, kf_mat_check_sparse(&s, "it"));
    assert_string_equal(kofn_errmsg(), "it: row 1 ends before it starts");
}

/* Pointers into a mapped file may be no multiple of the size of their type. */
static void misaligned_pointers(void **state)
{
    size_t place[4] = {0};
    const kofn_sparse good = {1, 1, place, (void *)place, (void *)place};
    kofn_matrix a = {(char *)place + 4, 1, 1, 1, KOFN_F32};
    void *misaligned = (char *)place + 2;

    (void)state;
    assert_ok(kf_mat_check_matrix(&a, "it"));
    a.dtype = KOFN_F64;
    assert_status(KOFN_INVAL, kf_mat_check_matrix(&a, "it"));
    assert_non_null(strstr(kofn_errmsg(), "a multiple of their 8 bytes; copy"));
    a = (kofn_matrix){misaligned, 1, 1, 1, KOFN_F32};
    assert_status(KOFN_INVAL, kf_mat_check_matrix(&a, "it"));
    for (int i = 0; i < 4; i++) {
        kofn_sparse s = good;

        s.ptr = i == 1 ? misaligned : s.ptr;
        s.col = i == 2 ? misaligned : s.col;
        s.val = i == 3 ? misaligned : s.val;
        assert_status(i ? KOFN_INVAL : KOFN_OK, kf_mat_check_sparse(&s, "it"));
    }
}

TEST_FILE(sparse_test)
{
    const struct CMUnitTest tests[] = {
        TEST(every_port,
             "sparse: products are right on threads and in the simulator"),
        TEST(workers_come_and_go,
             "sparse: products are right while workers leave and join"),
        TEST(both_products, "sparse: A x and x A are right from one encoding"),
        TEST(faulty_worker_is_located,
             "sparse: a faulty worker of a left product is located"),
        TEST(components_from_the_left,
             "sparse: a left product of four components is right"),
        TEST(work_is_counted_and_stopped,
             "sparse: work is counted by entries and can be stopped"),
        TEST(refusals, "sparse: cuts by columns and float32 are refused"),
        TEST(ends_that_descend,
             "sparse: a row that ends before it starts is refused"),
        TEST(misaligned_pointers, "sparse: misaligned pointers are refused"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
