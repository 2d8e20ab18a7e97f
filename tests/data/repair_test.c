/* repair_test.c -- tests that a block is rebuilt from blocks of other seats,
 * some rows at a time, and equals the encoded one.  Sketches of blocks must
 * agree unless one is wrong. */
#include "rig.h"

#include "code/code.h"
#include "data/data.h"
#include "mat/mat.h"
#include "verify/norms.h"
#include "verify/reading.h"

#include <math.h>

#define SEATS 5
#define MOST 256 /* numbers of a block */

/* The blocks of all seats, and an empty one for the last seat. */
typedef struct blocks {
    rig r;
    kf_code *code;
    kf_resident resident;
    kf_block *of[SEATS], *empty;
} blocks;

static void up(blocks *b, const char *spec, kofn_dtype dtype)
{
    rig_kind k = {.spec = spec,
                  .dtype = dtype,
                  .workers = SEATS,
                  .m = 32,
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

/* Returns a block with rows [lo, hi) of a seat's block. Its optimizer states
 * have the same numbers. */
static kf_block *rows_of(const blocks *b, size_t seat, size_t lo, size_t hi,
                         size_t states)
{
    const kf_block *whole = b->of[seat];
    kf_buffer *body;
    kf_block *some;

    assert_ok(kf_buffer_new(&body, whole->components * (hi - lo) * whole->cols,
                            1, whole->dtype));
    kf_block_read(whole, 0, lo, hi, body->m.data);
    assert_ok(
        kf_block_around(&some, body, whole->components, hi - lo, whole->cols));
    assert_ok(kf_block_set_states(some, states));
    for (size_t i = 0; i < states; i++)
        memcpy(some->state[i], body->m.data, kf_buffer_bytes(body));
    kf_buffer_drop(body);
    return some;
}

/* Checks that this state of the rebuilt block equals the encoded block. */
static void is_right(const blocks *b, size_t of)
{
    const kf_block *right = b->of[4];
    size_t n = right->components * right->rows * right->cols;
    double made[MOST], was[MOST];

    assert_true(n <= MOST);
    kf_block_read(b->empty, of, 0, right->rows, made);
    kf_block_read(right, 0, 0, right->rows, was);
    for (size_t i = 0; i < n; i++)
        assert_true(fabs(kf_mat_number(made, i, right->dtype) -
                         kf_mat_number(was, i, right->dtype)) <=
                    (right->dtype == KOFN_F32 ? 1e-5 : 1e-13));
}

static void make_by_windows(const char *spec, kofn_dtype dtype, size_t states)
{
    blocks b;
    size_t window[3] = {0};

    up(&b, spec, dtype);
    window[2] = b.of[4]->rows;
    window[1] = window[2] / 2;
    for (size_t w = 0; w < 2; w++) {
        size_t lo = window[w], hi = window[w + 1];
        kf_block *lent[] = {rows_of(&b, 1, lo, hi, states),
                            rows_of(&b, 3, lo, hi, states)};
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
    assert_int_equal(b.empty->states, states);
    for (size_t s = 0; s <= states; s++)
        is_right(&b, s);
    down(&b);
}

static void rebuild_by_windows(void **state)
{
    static const char *spec[] = {"mds:k=2,basis=gauss",
                                 "mds:k=2,basis=quaternion"};

    (void)state;
    for (size_t i = 0; i < 2; i++)
        for (size_t s = 0; s <= KOFN_CHANGE_STATES; s++) {
            make_by_windows(spec[i], KOFN_F64, s);
            make_by_windows(spec[i], KOFN_F32, s);
        }
}

/* Writes two rows of each component, and reads them with one row before and one
 * behind. */
static void write_and_read(const char *spec)
{
    blocks b;
    double to[MOST], from[MOST];
    size_t cols, components;

    up(&b, spec, KOFN_F64);
    cols = b.empty->cols;
    components = b.empty->components;
    assert_true(b.empty->rows >= 4 && 4 * components * cols <= MOST);
    for (size_t i = 0; i < MOST; i++)
        from[i] = (double)i + 1;
    kf_block_read(b.of[0], 1, 0, 2, to); /* it has no such state */
    for (size_t i = 0; i < 2 * components * cols; i++)
        assert_true(to[i] == 0);
    for (size_t s = 0; s <= KOFN_CHANGE_STATES; s++) {
        assert_ok(kf_block_write(b.empty, s, 1, 3, from));
        kf_block_read(b.empty, s, 0, 4, to);
        for (size_t i = 0; i < 4 * components; i++)
            for (size_t j = 0; j < cols; j++)
                assert_true(to[i * cols + j] ==
                            (i % 4 == 0 || i % 4 == 3
                                 ? 0
                                 : from[(i / 4 * 2 + i % 4 - 1) * cols + j]));
    }
    down(&b);
}

static void read_what_was_written(void **state)
{
    (void)state;
    write_and_read("mds:k=2,basis=gauss");
    write_and_read("mds:k=2,basis=quaternion");
}

/* Sketches are rows of the code times the same numbers, so they are compared
 * like blocks. */
static void wrong_sketch_is_found(void **state)
{
    blocks b;
    kf_reading r;
    kf_found found;
    double w[6], row[16], sketch[SEATS][16], norm;

    (void)state;
    up(&b, "mds:k=2,basis=gauss", KOFN_F64);
    norm = kf_reading_weigh(kf_rng_stream(1, KF_FOR_SKETCH, 0, 0), w, 6);
    assert_ok(kf_norms_of_rows(&b.resident, 0, row));
    assert_ok(kf_reading_new(&r, b.r.plan, SEATS));
    kf_reading_of_sketches(&r, norm);
    r.check.row = row;
    r.errors = KOFN_ERRORS_ADVERSARIAL;
    r.hidden = 1e-9;
    r.check.secret = 7;
    for (uint32_t i = SEATS; i-- > 0;) { /* in any order */
        kf_reading_sketch(b.of[i], 0, w, sketch[i]);
        kf_reading_add(&r, i, (kf_read){100 + i, {sketch[i]}});
    }
    assert_ok(kf_reading_judge(&r, 0, &found));
    assert_int_equal(found.count, 0);
    sketch[2][5] += 1e-3;
    assert_ok(kf_reading_judge(&r, 0, &found));
    assert_int_equal(found.count, 1);
    assert_int_equal(r.block[found.bad[0]].from, 102);
    r.n = 2; /* too few are left to compare */
    assert_int_equal(kf_reading_judge(&r, 0, &found), KOFN_TOOFEW);
    kf_reading_free(&r);
    down(&b);
}

TEST_FILE(repair_test)
{
    const struct CMUnitTest tests[] = {
        TEST(rebuild_by_windows,
             "data: a block is rebuilt from two others, window by window"),
        TEST(read_what_was_written,
             "data: rows of a block are read as they were written"),
        TEST(wrong_sketch_is_found,
             "data: the wrong one of five block sketches is found"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
