/* change_test.c -- tests changes of a worker's blocks. An update concerns the
 * operand that it names. A change that does not fit is refused and changes
 * nothing. */
#include "rig.h"

#include "code/code.h"
#include "run/run.h"

/* Two operands, with a block of each; the blocks differ. Both belong to the
 * worker alone after a first update. */
typedef struct held {
    rig r;
    kf_code *code;
    kf_resident resident[2];
    kf_block *block;
    kf_buffer *U, *V;
} held;

static void update(const held *h, uint32_t operand)
{
    const kofn_change c = KOFN_CHANGE_INIT;
    kf_msg m = {
        .type = KF_MSG_UPDATE, .operand = operand, .in = h->U, .with = h->V};

    assert_ok(kf_states_change_new(&m.change, &c));
    assert_ok(kf_block_change(h->block, &m));
    kf_buffer_drop(m.change);
}

static void up(held *h)
{
    rig_kind k = {
        .spec = "mds:k=2,basis=gauss", .workers = 3, .m = 12, .n = 5, .p = 1};
    const size_t seat = 2;

    rig_inputs(&h->r, &k);
    assert_ok(kf_code_new(&h->code, h->r.plan));
    for (size_t o = 2; o-- > 0;) {
        kf_block *b;

        assert_ok(kf_resident_dense(&h->resident[o], h->r.plan, &h->r.A));
        assert_ok(kf_data_encode(&h->resident[o], h->code, &seat, 1, &b));
        b->next = o ? NULL : h->block;
        h->block = b;
    }
    assert_ok(kf_buffer_new(&h->U, 1, h->block->rows, KOFN_F64));
    assert_ok(kf_buffer_new(&h->V, 1, h->block->cols, KOFN_F64));
    for (size_t i = 0; i < h->U->m.cols; i++)
        *(double *)kf_at(&h->U->m, 0, i) = (double)i;
    for (size_t i = 0; i < h->V->m.cols; i++)
        *(double *)kf_at(&h->V->m, 0, i) = 1;
    update(h, 0);
    update(h, 1);
}

static void down(held *h)
{
    kf_buffer_drop(h->U);
    kf_buffer_drop(h->V);
    kf_block_drop(h->block);
    for (size_t o = 0; o < 2; o++)
        kf_resident_free(&h->resident[o]);
    kf_code_free(h->code);
    rig_down(&h->r);
}

/* Updates that were lost on their way count for the block of their operand, so
 * that the block is known to be behind. An unknown operand counts nowhere. */
static void missed_updates_count(void **state)
{
    held h = {.block = NULL};

    (void)state;
    up(&h);
    for (uint32_t operand = 0; operand < 4; operand++)
        kf_block_miss(h.block, &(kf_msg){.operand = operand});
    kf_block_miss(h.block, &(kf_msg){.operand = 1});
    assert_int_equal(h.block->updates, 2);
    assert_int_equal(h.block->next->updates, 3);
    down(&h);
}

/* A slice that repairs a block must have its strips, columns and type. */
static void slices_must_fit(void **state)
{
    static const struct {
        size_t lo, hi, rows, cols;
        uint32_t operand;
        kofn_status st;
    } slice[] = {
        {0, 6, 6, 5, 0, KOFN_OK},    {2, 4, 2, 5, 1, KOFN_OK},
        {6, 6, 0, 5, 0, KOFN_OK},    {1, 7, 6, 5, 0, KOFN_SHAPE},
        {4, 2, 2, 5, 0, KOFN_SHAPE}, {2, 4, 3, 5, 0, KOFN_SHAPE},
        {2, 4, 2, 4, 0, KOFN_SHAPE}, {2, 4, 2, 5, 2, KOFN_SHAPE},
    };
    held h = {.block = NULL};
    double x[6 * 5];

    (void)state;
    up(&h);
    assert_int_equal(h.block->components, 1);
    assert_int_equal(h.block->rows, 6);
    for (size_t i = 0; i < 6 * 5; i++)
        x[i] = 1000 + (double)i;
    for (size_t p = 0; p < sizeof slice / sizeof *slice; p++) {
        kofn_matrix component = {x, slice[p].rows, slice[p].cols, slice[p].cols,
                                 KOFN_F64};
        kf_block with = {.components = 1,
                         .rows = slice[p].rows,
                         .cols = slice[p].cols,
                         .dtype = KOFN_F64,
                         .component = &component};
        kf_msg m = {.type = KF_MSG_SLICE,
                    .operand = slice[p].operand,
                    .block = &with,
                    .lo = slice[p].lo,
                    .hi = slice[p].hi};
        kf_block *to = slice[p].operand == 1 ? h.block->next : h.block;
        double was[6 * 5];

        memcpy(was, to->component[0].data, sizeof was);
        if (slice[p].st == KOFN_OK)
            memcpy(was + 5 * slice[p].lo, x, slice[p].rows * 5 * sizeof *was);
        assert_status(slice[p].st, kf_block_change(h.block, &m));
        if (slice[p].st)
            assert_non_null(strstr(kofn_errmsg(), "does not fit the block"));
        assert_memory_equal(was, to->component[0].data, sizeof was);
    }
    down(&h);
}

TEST_FILE(change_test)
{
    const struct CMUnitTest tests[] = {
        TEST(missed_updates_count,
             "data: a missed update counts for its operand only"),
        TEST(slices_must_fit,
             "data: a slice that does not fit the block changes nothing"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
