/* repair_test.c -- a block is made of those of other seats, some rows at a time, and
 * is then what A would have been encoded to; and blocks that are read agree, but for
 * one that is wrong. */
#include "rig.h"

#include "code/code.h"
#include "data/check.h"
#include "data/data.h"

#include <math.h>

#define SEATS 5

/* The blocks of all seats, and one of the last with nothing in it. */
typedef struct blocks {
    rig r;
    kf_code *code;
    kf_resident resident;
    kf_block *of[SEATS], *empty;
} blocks;

static void up(blocks *b)
{
    rig_kind k = {.spec = "mds:k=2,basis=gauss",
                  .workers = SEATS,
                  .m = 14,
                  .n = 6,
                  .p = 1};
    const size_t seat[SEATS] = {0, 1, 2, 3, 4};

    rig_inputs(&b->r, &k);
    assert_ok(kf_code_new(&b->code, b->r.plan));
    assert_ok(kf_resident_dense(&b->resident, b->r.plan, &b->r.A));
    assert_ok(kf_data_encode(&b->resident, b->code, seat, SEATS, b->of));
    assert_ok(
        kf_data_empty_blocks(&b->resident, b->code, &seat[4], 1, &b->empty));
}

static void down(blocks *b)
{
    for (size_t i = 0; i < SEATS; i++)
        kf_block_drop(b->of[i]);
    kf_block_drop(b->empty);
    kf_resident_free(&b->resident);
    kf_code_free(b->code);
    rig_down(&b->r);
}

/* Rows [lo, hi) of the block of a seat, alone. */
static kf_block *rows_of(const blocks *b, size_t seat, size_t lo, size_t hi)
{
    const kf_block *whole = b->of[seat];
    kf_buffer *body;
    kf_block *some;

    assert_ok(kf_buffer_new(&body, (hi - lo) * whole->cols, 1, whole->dtype));
    kf_block_read(whole, false, lo, hi, body->m.data);
    assert_ok(kf_block_around(&some, body, 1, hi - lo, whole->cols));
    kf_buffer_drop(body);
    return some;
}

static void a_block_is_made_window_by_window(void **state)
{
    blocks b;
    const size_t window[] = {0, 3, 7};
    double made[7 * 6], was[7 * 6];

    (void)state;
    up(&b);
    assert_int_equal(b.of[4]->rows, 7);
    for (size_t w = 0; w < 2; w++) {
        size_t lo = window[w], hi = window[w + 1];
        kf_block *lent[] = {rows_of(&b, 1, lo, hi), rows_of(&b, 3, lo, hi)};
        uint32_t seat[] = {1, 3};
        const kf_block *block[] = {lent[0], lent[1]};
        kf_others o = {seat, block, 1};

        assert_int_equal(kf_block_regenerate(b.empty, b.code, 4, lo, &o),
                         KOFN_TOOFEW);
        o.n = 2;
        assert_ok(kf_block_regenerate(b.empty, b.code, 4, lo, &o));
        kf_block_drop(lent[0]);
        kf_block_drop(lent[1]);
    }
    assert_null(b.empty->velocity);
    kf_block_read(b.empty, false, 0, 7, made);
    kf_block_read(b.of[4], false, 0, 7, was);
    for (size_t i = 0; i < 7 * 6; i++)
        assert_true(fabs(made[i] - was[i]) <= 1e-13);
    down(&b);
}

static void rows_are_read_as_they_were_written(void **state)
{
    blocks b;
    double to[4 * 6], from[2 * 6];

    (void)state;
    up(&b);
    for (size_t i = 0; i < 2 * 6; i++)
        from[i] = (double)i + 1;
    kf_block_read(b.of[0], true, 0, 2, to); /* it has no velocity */
    for (size_t i = 0; i < 2 * 6; i++)
        assert_true(to[i] == 0);
    assert_ok(kf_block_write(b.empty, true, 3, 5, from));
    kf_block_read(b.empty, true, 2, 6, to);
    for (size_t i = 0; i < 4 * 6; i++)
        assert_true(to[i] == (i < 6 || i >= 18 ? 0 : from[i - 6]));
    down(&b);
}

/* Sketches of blocks are rows of the code times the same numbers, so that they are
 * compared as blocks are. */
static void a_wrong_sketch_is_found(void **state)
{
    blocks b;
    kf_reading r;
    kf_found found;
    double w[6], row[7], sketch[SEATS][7], norm;

    (void)state;
    up(&b);
    norm = kf_data_weigh(kf_rng_stream(1, KF_FOR_SKETCH, 0, 0), w, 6);
    assert_ok(kf_data_scales_of_rows(&b.resident, 0, row));
    assert_ok(kf_reading_new(&r, b.r.plan, SEATS));
    r.cols = 1;
    r.terms = 6;
    r.col = &norm;
    r.row = row;
    r.errors = KOFN_ERRORS_ADVERSARIAL;
    r.hidden = 1e-9;
    r.secret = 7;
    for (uint32_t i = SEATS; i-- > 0;) { /* in any order */
        kf_block_sketch(b.of[i], false, w, sketch[i]);
        kf_reading_add(&r, i, (kf_read){100 + i, sketch[i], NULL});
    }
    assert_ok(kf_reading_judge(&r, false, &found));
    assert_int_equal(found.count, 0);
    sketch[2][5] += 1e-3;
    assert_ok(kf_reading_judge(&r, false, &found));
    assert_int_equal(found.count, 1);
    assert_int_equal(r.block[found.bad[0]].from, 102);
    r.n = 2; /* nothing is left to compare with */
    assert_int_equal(kf_reading_judge(&r, false, &found), KOFN_TOOFEW);
    kf_reading_free(&r);
    down(&b);
}

TEST_FILE(repair_test)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_is_made_window_by_window),
        cmocka_unit_test(rows_are_read_as_they_were_written),
        cmocka_unit_test(a_wrong_sketch_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
