/* grid_test.c -- grids of blocks, copied or with coded rows and columns: the
 * answers needed for A B and for B A, and the products of a job. */
#include "code_rig.h"

#include "code/suspect.h"

#include <cblas.h>

enum { ROWS = 13, COLS = 11, INPUT = 3 };

static kofn_status plan_of(kofn_plan **plan, kofn_op op, const char *spec,
                           size_t workers)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(op, ROWS, COLS, INPUT, KOFN_F64, false);

    return kofn_plan_new(plan, &pb, spec, workers, 3);
}

/* ---- answers needed -------------------------------------------------------
 */

typedef struct sizes {
    size_t m, n, m2, n2;
} sizes;

/* Order of the seats: all plain blocks, the coded rows of each column, the
 * coded columns of each row; then the same again for copies. */
static void place_of(const sizes *s, size_t seat, size_t *row, size_t *col)
{
    size_t plain = s->m * s->n, coded = (s->m2 - s->m) * s->n;
    size_t at = seat % (plain + coded + s->m * (s->n2 - s->n));

    if (at < plain) {
        *row = at % s->m;
        *col = at / s->m;
    } else if (at < plain + coded) {
        *row = s->m + (at - plain) % (s->m2 - s->m);
        *col = (at - plain) / (s->m2 - s->m);
    } else {
        *row = (at - plain - coded) % s->m;
        *col = s->n + (at - plain - coded) / s->m;
    }
}

/* A B needs m different rows of every plain column, B A n columns of every
 * row. */
static bool decodes(const sizes *s, bool left, const uint32_t *set, size_t n)
{
    size_t lines = left ? s->m : s->n, need = left ? s->n : s->m;
    bool seen[5][5] = {{false}};

    for (size_t i = 0; i < n; i++) {
        size_t row, col;

        place_of(s, set[i], &row, &col);
        seen[left ? row : col][left ? col : row] = true;
    }
    for (size_t line = 0; line < lines; line++) {
        size_t count = 0;

        for (size_t i = 0; i < 5; i++)
            count += seen[line][i];
        if (count < need)
            return false;
    }
    return true;
}

static size_t members(unsigned mask, uint32_t *set)
{
    size_t n = 0;

    for (uint32_t i = 0; mask >> i; i++)
        if (mask >> i & 1)
            set[n++] = i;
    return n;
}

static void every_set(const char *spec, sizes s, size_t workers)
{
    for (int left = 0; left < 2; left++) {
        size_t most = 0;
        kofn_plan *plan;
        kf_code *code;

        assert_ok(
            plan_of(&plan, left ? KOFN_LEFT : KOFN_MATMUL, spec, workers));
        assert_ok(kf_code_new(&code, plan));
        for (unsigned mask = 1; mask < 1u << workers; mask++) {
            uint32_t set[12];
            size_t n = members(mask, set);
            kofn_decoder *d;
            kofn_status st = kf_decoder_new(&d, code, set, n, false);

            if (decodes(&s, left, set, n)) {
                assert_ok(st);
                assert_at_most(d->noise, 20);
                kf_decoder_free(d);
            } else {
                assert_status(KOFN_TOOFEW, st);
                most = kf_max(most, n);
            }
        }
        assert_int_equal(plan->layout.threshold, most + 1);
        kf_code_free(code);
        kofn_plan_free(plan);
    }
}

static void answers_needed(void **state)
{
    (void)state;
    every_set("grid:m=2,n=3", (sizes){2, 3, 2, 3}, 6);
    every_set("grid:m=2,n=2,copies=2", (sizes){2, 2, 2, 2}, 8);
    every_set("grid:m=1,n=2,copies=4", (sizes){1, 2, 1, 2}, 8);
    every_set("grid:m=2,n=2,m2=3,n2=3", (sizes){2, 2, 3, 3}, 8);
    every_set("grid:m=2,n=2,m2=4,n2=3", (sizes){2, 2, 4, 3}, 10);
    every_set("grid:m=2,n=1,m2=3", (sizes){2, 1, 3, 1}, 3);
    every_set("grid:m=3,n=2,m2=3,n2=3", (sizes){3, 2, 3, 3}, 9);
    every_set("grid:m=2,n=2,m2=5,n2=2", (sizes){2, 2, 5, 2}, 10);
}

/* A coded column does not help A B, nor a coded row B A. */
static void idle_seats(void **state)
{
    const sizes s = {2, 3, 3, 5};

    (void)state;
    for (int left = 0; left < 2; left++) {
        kofn_plan *plan;
        kf_code *code;

        assert_ok(plan_of(&plan, left ? KOFN_LEFT : KOFN_MATMUL,
                          "grid:m=2,n=3,m2=3,n2=5", 13));
        assert_ok(kf_code_new(&code, plan));
        for (size_t i = 0; i < 13; i++) {
            size_t row, col;
            const kf_seat *seat;
            bool idle;

            place_of(&s, i, &row, &col);
            idle = left ? row >= s.m : col >= s.n;
            assert_ok(kf_code_seat(code, i, &seat));
            assert_int_equal(seat->E1[0].n, !idle);
            assert_int_equal(seat->G[0].n > 0, !idle);
            assert_int_equal(kf_code_is_zero_result(plan, seat, 0, 0), idle);
        }
        kf_code_free(code);
        kofn_plan_free(plan);
    }
}

/* ---- sizes --------------------------------------------------------------- */

static void sizes_are_chosen(void **state)
{
    static const struct {
        const char *given, *made;
        size_t workers;
    } of[] = {
        {"grid", "grid:m=4,n=2,m2=4,n2=2,copies=1", 8},
        {"grid:copies=3", "grid:m=2,n=2,m2=2,n2=2,copies=3", 12},
        {"grid:m=2,n=2", "grid:m=2,n=2,m2=2,n2=2,copies=3", 13},
        {"grid:m=3,m2=4,n2=2", "grid:m=3,n=1,m2=4,n2=2,copies=1", 7},
        {"grid:n=2", "grid:m=3,n=2,m2=3,n2=2,copies=1", 7},
        {"grid", "grid:m=1,n=1,m2=1,n2=1,copies=1", 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        kofn_plan *plan;

        assert_ok(plan_of(&plan, KOFN_MATMUL, of[i].given, of[i].workers));
        assert_string_equal(plan->spec, of[i].made);
        kofn_plan_free(plan);
    }
}

static void sizes_are_refused(void **state)
{
    static const struct {
        const char *spec, *why;
        size_t workers;
    } of[] = {
        {"grid:m=3,n=3", "take 9 workers, and there are 8", 8},
        {"grid:m=2,n=2,copies=2", "take 8 workers, and there are 7", 7},
        {"grid:m=2,n=2,copies=1", "take 4 workers, and there are 8", 8},
        {"grid:m=2,n=2,m2=3,n2=3", "8 different blocks", 7},
        {"grid:m=3,m2=2,n=1", "ask for m2 >= m", 8},
        {"grid:copies=9", "take 9 workers", 8},
    };

    (void)state;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        kofn_plan *plan;

        assert_status(KOFN_INVAL,
                      plan_of(&plan, KOFN_MATMUL, of[i].spec, of[i].workers));
        if (!strstr(kofn_errmsg(), of[i].why))
            fail_msg("%s: %s", of[i].spec, kofn_errmsg());
    }
}

/* ---- jobs ---------------------------------------------------------------- */

static void multiply(const double *x, const double *y, double *z, size_t m,
                     size_t k, size_t n)
{
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)m, (int)n,
                (int)k, 1, x, (int)k, y, (int)n, 0, z, (int)n);
}

/* Both products of one job; workers leave before the first one. */
static void products_of(const char *spec, size_t workers, const uint32_t *gone,
                        size_t lost, bool right, bool left)
{
    double *a = normals(ROWS * COLS, 1), *b = normals(COLS * INPUT, 2);
    double *d = normals(INPUT * ROWS, 3), got[64], want[64];
    kofn_matrix A = {a, ROWS, COLS, COLS, KOFN_F64};
    kofn_matrix B = {b, COLS, INPUT, INPUT, KOFN_F64};
    kofn_matrix D = {d, INPUT, ROWS, ROWS, KOFN_F64};
    kofn_matrix AB = {got, ROWS, INPUT, INPUT, KOFN_F64};
    kofn_matrix DA = {got, INPUT, COLS, COLS, KOFN_F64};
    kofn_options opt = KOFN_OPTIONS_INIT;
    kofn_fault_event leave[12];
    kofn_plan *plan;
    kofn_port *port;
    kofn_job *job;

    for (size_t i = 0; i < lost; i++)
        leave[i] = (kofn_fault_event){1, 0, KOFN_FAULT_EVENT_LEAVE, gone[i], 0};
    opt.events = leave;
    opt.event_count = lost;
    assert_ok(plan_of(&plan, KOFN_MATMUL, spec, workers));
    assert_ok(kofn_plan_serve_left(plan, INPUT));
    assert_ok(kofn_port_sim(&port, workers, NULL));
    assert_ok(kofn_open(&job, plan, port, &opt));
    assert_ok(kofn_place(job, &A));
    assert_int_equal(kofn_round(job, &B, &AB, NULL),
                     right ? KOFN_OK : KOFN_TOOFEW);
    multiply(a, b, want, ROWS, COLS, INPUT);
    if (right)
        assert_at_most(relative_error(got, want, ROWS * INPUT), 1e-14);
    assert_int_equal(rig_left(job, &D, &DA), left ? KOFN_OK : KOFN_TOOFEW);
    multiply(d, a, want, INPUT, ROWS, COLS);
    if (left)
        assert_at_most(relative_error(got, want, INPUT * COLS), 1e-14);
    kofn_close(job);
    kofn_plan_free(plan);
    kf_free(a);
    kf_free(b);
    kf_free(d);
}

static void products_with_losses(void **state)
{
    static const uint32_t none[1] = {0}, first[] = {0, 4}, row[] = {1, 3},
                          coded[] = {4, 5, 6, 7};

    (void)state;
    products_of("grid:m=2,n=3", 6, none, 0, true, true);
    products_of("grid:m=2,n=3", 6, none, 1, false, false);
    products_of("grid:m=2,n=2,copies=2", 9, first, 1, true, true);
    products_of("grid:m=2,n=2,copies=2", 8, first, 2, false, false);
    /* rows 0 and 1 of column 0 are blocks 0 and 1, the coded ones 4 and 5 */
    products_of("grid:m=2,n=2,m2=3,n2=3", 8, none, 1, true, true);
    products_of("grid:m=2,n=2,m2=3,n2=3", 8, first, 2, false, true);
    products_of("grid:m=2,n=2,m2=3,n2=3", 8, row, 2, true, false);
    products_of("grid:m=2,n=2,m2=3,n2=3", 8, coded, 4, true, true);
}

TEST_FILE(grid_test)
{
    const struct CMUnitTest tests[] = {
        TEST(answers_needed,
             "grid: the answers needed are exactly those of the theory"),
        TEST(idle_seats, "grid: coded columns idle in A B, coded rows in B A"),
        TEST(sizes_are_chosen, "grid: omitted sizes are chosen"),
        TEST(sizes_are_refused, "grid: impossible sizes are refused"),
        TEST(products_with_losses,
             "grid: products are right under losses (both products)"),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
