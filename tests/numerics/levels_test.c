/* levels_test.c -- rows and columns of very different size: every element of a
 * product is as exact as with plain BLAS, row by row, whatever its rows were
 * mixed with. The reference is computed in long double. */
#include "altered_port.h"
#include "levels_rig.h"
#include "sgd.h"

#include <float.h>

typedef struct wide_kind {
    const char *spec;
    kofn_op op;
    size_t p;
    bool sparse, checked;
    bool holes; /* three of four entries are 0 */
} wide_kind;

static const wide_kind kinds[] = {
    {"mds:k=3", KOFN_MATVEC, 1, false, true, false},
    {"mds:k=3", KOFN_MATVEC, 1, true, true, false},
    {"elastic:k=3", KOFN_MATVEC, 1, false, true, false},
    {"elastic:k=3", KOFN_MATMUL, 5, true, true, false},
    {"elastic:k=3", KOFN_LEFT, 3, false, false, false},
    {"gpd:m=2,n=1,p=2", KOFN_LEFT, 6, false, false, false},
    {"polydot:m=1,n=2,p=2", KOFN_LEFT, 6, false, false, false},
    {"polynomial:m=2,p=2,basis=circle", KOFN_LEFT, 6, false, false, false},
    {"elastic:k=3,cut=columns", KOFN_MATMUL, 3, false, false, false},
    {"polynomial:m=2,p=2", KOFN_MATMUL, 6, false, true, false},
    {"matdot:n=2", KOFN_MATMUL, 4, false, true, false},
    {"polydot:m=2,n=2,p=1", KOFN_MATMUL, 4, false, true, false},
    {"gpd:m=2,n=1,p=2", KOFN_MATMUL, 6, false, true, false},
    {"product:m=2,m2=4,p=2,p2=3", KOFN_MATMUL, 6, false, true, false},
    {"grid:m=2,n=3", KOFN_MATMUL, 4, false, false, false},
    {"dip", KOFN_STREAM, 8, false, false, false},
    {"idip", KOFN_STREAM, 8, false, false, false},
    {"pcr:r=3", KOFN_GRAM, 1, false, false, false},
    {"uncoded", KOFN_MATVEC, 1, false, false, false},
    {"mds:k=3,basis=gauss", KOFN_MATVEC, 1, false, true, true},
    {"elastic:k=3,cut=columns,basis=gauss", KOFN_MATMUL, 3, false, false, true},
};
#define KINDS (sizeof kinds / sizeof *kinds)

/* Spread in decimal digits of: lines of A; columns of A, inverse in the input;
 * lines of the input; the inner dimension in the input alone. */
typedef struct widths {
    double rows, inner, own, alone;
} widths;
static const widths of_f64[] = {{300, 0, 0, 0},
                                {0, 120, 0, 0},
                                {0, 0, 300, 0},
                                {150, 100, 140, 0},
                                {100, 0, 100, 80}};
static const widths of_f32[] = {
    {30, 0, 0, 0}, {0, 16, 0, 0}, {0, 0, 30, 0}, {12, 8, 12, 0}, {8, 0, 8, 6}};
#define WIDTHS (sizeof of_f64 / sizeof *of_f64)

static void make_wide(rig *r, widths w, kf_rng *g)
{
    size_t most = r->A.rows + r->A.cols + r->x.rows + r->x.cols;
    double *row = numbers(most, sizeof *row), *col = numbers(most, sizeof *col);
    double *own = numbers(most, sizeof *own);
    bool left = r->op == KOFN_LEFT;
    double *inner = left ? row : col, *outer = left ? col : row;

    for (size_t i = 0; i < most; i++) {
        inner[i] = line(g, w.inner);
        outer[i] = r->op == KOFN_GRAM ? 1 : line(g, w.rows);
        own[i] = r->x.cols == 1 ? 1 : line(g, w.own);
    }
    fill(&r->A, row, col, g);
    for (size_t e = 0, i = 0; r->sparse.ptr && i < r->A.rows; i++)
        for (; e < r->sparse.ptr[i + 1]; e++)
            ((double *)(uintptr_t)r->sparse.val)[e] =
                ((double *)r->A.data)[i * r->A.ld + r->sparse.col[e]];
    if (r->sparse.ptr) {
        kf_free(r->A.data);
        r->A = sparse_as_dense(&r->sparse);
    }
    for (size_t i = 0; i < most; i++)
        inner[i] = line(g, w.alone) / inner[i];
    fill(&r->x, left ? own : inner, left ? inner : own, g);
    kf_free(row);
    kf_free(col);
    kf_free(own);
}

/* At random: blocks that share no row and no column cannot be compared in
 * size. */
static void make_holes(rig *r, kf_rng *g)
{
    for (size_t i = 0; i < r->A.rows; i++)
        for (size_t j = 0; j < r->A.cols; j++)
            if (kf_rng_below(g, 4) > 0)
                set(&r->A, i, j, 0, 0);
}

static double worst_of(const rig *r)
{
    double *a = as_doubles(&r->A), *x = as_doubles(&r->x);
    double *y = as_doubles(&r->y), most = 0;
    size_t m = r->A.rows, n = r->A.cols;

    if (r->op == KOFN_LEFT) {
        most = worst(x, a, y, r->x.rows, m, n);
    } else if (r->op != KOFN_GRAM) {
        most = worst(a, x, y, m, n, r->x.cols);
    } else {
        for (size_t j = 0; j < n; j++) { /* sum over i of a_ij (a_i . x) */
            long double all = 0, size = 0, one, of;

            for (size_t i = 0; i < m; i++) {
                element(a + i * n, x, n, 1, &one, &of);
                all += a[i * n + j] * one;
                size += fabsl(a[i * n + j]) * of;
            }
            most = fmax(most, (double)(fabsl(y[j] - all) / size));
        }
    }
    kf_free(a);
    kf_free(x);
    kf_free(y);
    return most;
}

/* Predictions hold for lines of equal size. These lines are at most 2^6 apart
 * in all (src/data/scaling.c). Sums of absolute values, of numbers from 1 to 2,
 * add at most the root of their length. */
static double allowed(const kofn_report *rep, const rig *r)
{
    double u = r->A.dtype == KOFN_F64 ? DBL_EPSILON / 2 : FLT_EPSILON / 2;
    double n = (double)r->A.cols + (double)r->A.rows;

    return 64 * sqrt(n) * (rep->predicted + n * u);
}

static void try_kind(const wide_kind *k, kofn_dtype dtype, widths w,
                     kofn_errors errors)
{
    kofn_options o = KOFN_OPTIONS_INIT;
    rig_kind kind = {.spec = k->spec,
                     .workers = 12,
                     .m = 50,
                     .n = 40,
                     .p = k->p,
                     .op = k->op,
                     .sim = true,
                     .sparse = k->sparse,
                     .dtype = dtype,
                     .opt = &o};
    kf_rng g = kf_rng_stream(5, KF_FOR_DATA, 0, 0);
    kofn_report rep = KOFN_REPORT_INIT;
    double error;
    rig r;

    o.errors = errors;
    rig_inputs(&r, &kind);
    make_wide(&r, w, &g);
    if (k->holes)
        make_holes(&r, &g);
    rig_open(&r, &kind);
    assert_ok(rig_round(&r, &rep));
    assert_int_equal(rep.corrupt, 0);
    error = worst_of(&r);
    if (!(error <= allowed(&rep, &r)))
        fail_msg("%s, float%d, %g digits of rows, %g of what is summed, %g of "
                 "the input, %g of it alone: %g of |A| |x|, allowed %g",
                 k->spec, dtype == KOFN_F64 ? 64 : 32, w.rows, w.inner, w.own,
                 w.alone, error, allowed(&rep, &r));
    rig_down(&r);
}

/* Rows with numbers in different columns are not alike if the input's lines
 * differ (docs/numerics.md); all others are. */
static void every_row_is_exact(void **state)
{
    (void)state;
    for (size_t i = 0; i < KINDS; i++)
        for (size_t w = 0; w < WIDTHS; w++)
            for (int e = KOFN_ERRORS_NONE; e <= KOFN_ERRORS_DETECT; e++) {
                bool odd =
                    (kinds[i].sparse || kinds[i].holes) && of_f64[w].alone > 0;

                if ((e && !kinds[i].checked) || odd)
                    continue;
                try_kind(&kinds[i], KOFN_F64, of_f64[w], (kofn_errors)e);
                if (!kinds[i].sparse)
                    try_kind(&kinds[i], KOFN_F32, of_f32[w], (kofn_errors)e);
            }
}

/* At first each worker has a plain part, and a joining worker gets a mixture:
 * rows are scaled for that from the start. */
static void joiners_mix(void **state)
{
    const struct {
        const char *spec;
        size_t workers, p;
        bool sparse;
    } of[] = {{"elastic:k=3", 3, 1, false},
              {"elastic:k=3", 3, 1, true},
              {"mds:k=3", 3, 1, false},
              {"polynomial:m=3,p=1", 3, 4, false}};
    const kofn_fault_event events[] = {
        {.round = 2, .kind = KOFN_FAULT_EVENT_JOIN},
        {.round = 2, .kind = KOFN_FAULT_EVENT_LEAVE, .worker = 0}};

    (void)state;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        kofn_options o = with_events(events, 2);
        rig_kind kind = {.spec = of[i].spec,
                         .workers = of[i].workers,
                         .m = 50,
                         .n = 40,
                         .p = of[i].p,
                         .sim = true,
                         .sparse = of[i].sparse,
                         .opt = &o};
        kf_rng g = kf_rng_stream(10, KF_FOR_DATA, 0, 0);
        kofn_report rep = KOFN_REPORT_INIT;
        rig r;

        rig_inputs(&r, &kind);
        make_wide(&r, of_f64[0], &g);
        rig_open(&r, &kind);
        for (int round = 0; round < 3; round++) {
            assert_ok(rig_round(&r, &rep));
            assert_at_most(worst_of(&r), allowed(&rep, &r));
        }
        assert_true(rep.noise > 1); /* a mixture was in it */
        rig_down(&r);
    }
}

/* One wrong worker is located, and its results are excluded. */
static void find_liar(const char *spec, widths w, bool sparse)
{
    const kofn_fault_event lies = {
        .round = 2, .kind = KOFN_FAULT_EVENT_CORRUPT, .worker = 2};
    kofn_options o = with_events(&lies, 1);
    rig_kind kind = {.spec = spec,
                     .workers = 12,
                     .m = 50,
                     .n = 40,
                     .p = 1,
                     .sim = true,
                     .sparse = sparse,
                     .opt = &o};
    kf_rng g = kf_rng_stream(6, KF_FOR_DATA, 0, 0);
    size_t told = 0;
    kofn_report rep = KOFN_REPORT_INIT;
    rig r;

    o.errors = KOFN_ERRORS_ADVERSARIAL;
    rig_inputs(&r, &kind);
    make_wide(&r, w, &g);
    rig_open(&r, &kind);
    for (int round = 0; round < 4; round++) {
        assert_ok(rig_round(&r, &rep));
        assert_at_most(worst_of(&r), allowed(&rep, &r));
        told += rep.corrupt;
    }
    assert_true(told > 0);
    rig_down(&r);
}

/* Among rows that are 300 digits apart, and among columns that the input
 * balances; also if answers are compared but no lines are mixed. */
static void wrong_among_wide_lines(void **state)
{
    const char *const spec[] = {"mds:k=3", "grid:m=3,n=1,copies=4",
                                "grid:m=2,n=2,copies=3", "mds:k=1",
                                "replication:k=4"};

    (void)state;
    for (size_t i = 0; i < sizeof spec / sizeof *spec; i++)
        for (size_t w = 0; w < 2; w++) {
            find_liar(spec[i], of_f64[w], false);
            if (i == 0)
                find_liar(spec[i], of_f64[w], true);
        }
}

/* ---- errors below the floor -----------------------------------------------
 */

/* A worker with this relative error. */
typedef struct slanted {
    altered_port port;
    double by;
} slanted;

static kofn_status slanted_wait(kofn_port *p, kofn_time until, kofn_time atmost,
                                kf_msg *m)
{
    slanted *s = (slanted *)p;
    kofn_status st = s->port.sim->wait(s->port.sim, until, atmost, m);
    kofn_matrix *y = st || m->type != KF_MSG_RESULT || m->worker != 2
                         ? NULL
                         : kf_buffer_matrix(m->result);

    for (size_t e = 0; y && e < y->rows * y->cols; e++)
        ((double *)y->data)[e] *= 1 + s->by;
    return st;
}

static void slanted_close(kofn_port *p)
{
    slanted *s = (slanted *)p;

    s->port.sim->close(s->port.sim);
    kf_free(s);
}

static void slanted_open(rig *r, const kofn_options *o, double by)
{
    slanted *s = numbers(1, sizeof *s);

    altered_open(&s->port, 12, NULL);
    s->port.base.wait = slanted_wait;
    s->port.base.close = slanted_close;
    s->by = by;
    assert_ok(kofn_open(&r->job, r->plan, &s->port.base, o));
    assert_ok(rig_place(r));
}

/* |A| |x| of a row is at most the product of norms, and here, with numbers
 * from 1 to 2, at least half of it. After scaling, of k = 3 coded rows none
 * has more than twice the norm of another. */
static void is_within(const rig *r, const kofn_report *rep)
{
    const double u = DBL_EPSILON / 2;
    kofn_report rounding = *rep;

    assert_true(rep->floor > 0);
    rounding.predicted = u * fmax(rep->noise, 1) * sqrt(576 + 0.8 * 40);
    assert_at_most(worst_of(r),
                   2 * 2 * sqrt(3) * rep->floor + allowed(&rounding, r));
}

/* Results stay within the report's floor in every row, relative to its own |A|
 * |x|, although rows are 300 digits apart. Larger errors are detected. */
static void small_errors(void **state)
{
    size_t seen = 0, passed = 0;

    (void)state;
    for (int i = 0; i < 24; i++) {
        kofn_options o = KOFN_OPTIONS_INIT;
        rig_kind kind = {.spec = "mds:k=3,basis=gauss",
                         .workers = 12,
                         .m = 50,
                         .n = 40,
                         .p = 1};
        kf_rng g = kf_rng_stream(9, KF_FOR_DATA, 0, 0);
        kofn_report rep = KOFN_REPORT_INIT;
        kofn_status st;
        rig r;

        o.errors = KOFN_ERRORS_DETECT;
        rig_inputs(&r, &kind);
        make_wide(&r, of_f64[0], &g);
        slanted_open(&r, &o, 1e-16 * pow(4, i));
        st = rig_round(&r, &rep);
        seen += st == KOFN_CORRUPT;
        passed += st == KOFN_OK;
        if (st == KOFN_OK)
            is_within(&r, &rep);
        rig_down(&r);
    }
    assert_true(seen > 0 && passed > 0);
    assert_int_equal(seen + passed, 24);
}

/* ---- changing and read operands -------------------------------------------
 */

#define ZEROS 7 /* a row of zeros */

static void check_read(const rig *r, const kofn_matrix *got,
                       const kofn_matrix *U, const kofn_matrix *V)
{
    for (size_t i = 0; i < r->A.rows; i++)
        for (size_t j = 0; j < r->A.cols; j++) {
            double a = ((double *)r->A.data)[i * r->A.ld + j];
            double c = ((double *)U->data)[i] * ((double *)V->data)[j];
            double is = ((double *)got->data)[i * got->ld + j];

            assert_at_most(fabs(is - (a + c)), 1e-12 * (fabs(a) + fabs(c)));
        }
}

/* The other rows change in proportion; what is added to a row of zeros is not
 * lost. */
static void rows_change_and_are_read(void **state)
{
    sgd change = SGD_INIT;
    rig_kind kind = {.spec = "elastic:k=3,basis=quaternion",
                     .workers = 8,
                     .m = 50,
                     .n = 40,
                     .p = 1,
                     .sim = true};
    kf_rng g = kf_rng_stream(7, KF_FOR_DATA, 0, 0);
    kofn_matrix U, V, got;
    kofn_report rep = KOFN_REPORT_INIT;
    rig r;

    (void)state;
    rig_inputs(&r, &kind);
    make_wide(&r, of_f64[0], &g);
    for (size_t j = 0; j < 40; j++)
        set(&r.A, ZEROS, j, 0, 0);
    rig_open(&r, &kind);
    got = random_matrix(50, 40, KOFN_F64, 1);
    U = random_matrix(1, 50, KOFN_F64, 1);
    V = random_matrix(1, 40, KOFN_F64, 2);
    for (size_t i = 0; i < 50; i++)
        ((double *)U.data)[i] *=
            i == ZEROS ? 1 : ((double *)r.A.data)[i * r.A.ld];
    change.step = -1;
    assert_ok(rig_round(&r, &rep));
    assert_ok(sgd_update(r.job, 0, &change, &U, &V));
    assert_ok(kofn_fetch(r.job, 0, 0, &got, &rep));
    check_read(&r, &got, &U, &V);
    for (size_t i = 0; i < 50; i++)
        for (size_t j = 0; j < 40; j++)
            ((double *)r.A.data)[i * r.A.ld + j] +=
                ((double *)U.data)[i] * ((double *)V.data)[j];
    assert_ok(rig_round(&r, &rep));
    assert_at_most(worst_of(&r), 64 * allowed(&rep, &r));
    kf_free(U.data);
    kf_free(V.data);
    kf_free(got.data);
    rig_down(&r);
}

/* ---- small numbers --------------------------------------------------------
 */

/* A 2^a times x 2^b: one of them is below the smallest normal number, and
 * lines of x differ in size. */
static void small_times_large(void **state)
{
    const struct {
        kofn_dtype dtype;
        int a, b;
    } at[] = {{KOFN_F64, 330, -1035}, {KOFN_F64, -1035, 330},
              {KOFN_F64, -1060, 330}, {KOFN_F32, -139, 33},
              {KOFN_F32, 33, -139},   {KOFN_F64, -600, -100},
              {KOFN_F32, -100, -10}};

    (void)state;
    for (size_t k = 0; k < KINDS; k++)
        for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
            kofn_options o = KOFN_OPTIONS_INIT;
            rig_kind kind = {.spec = kinds[k].spec,
                             .workers = 12,
                             .m = 50,
                             .n = 40,
                             .p = kinds[k].p,
                             .op = kinds[k].op,
                             .sim = true,
                             .dtype = at[i].dtype,
                             .opt = &o};
            kf_rng g = kf_rng_stream(8, KF_FOR_DATA, 0, 0);
            kofn_report rep = KOFN_REPORT_INIT;
            rig r;

            if (kinds[k].op == KOFN_GRAM)
                continue;
            kind.sparse = kinds[k].sparse && at[i].dtype == KOFN_F64;
            o.errors = kinds[k].checked ? KOFN_ERRORS_DETECT : KOFN_ERRORS_NONE;
            rig_inputs(&r, &kind);
            make_wide(&r, (widths){.own = at[i].dtype == KOFN_F64 ? 40 : 4},
                      &g);
            for (size_t e = 0; e < 50 * 40; e++)
                set(&r.A, 0, e, ldexp(1, at[i].a), as_double(&r.A, e));
            for (size_t e = 0; kind.sparse && e < r.sparse.ptr[50]; e++)
                ((double *)(uintptr_t)r.sparse.val)[e] *= ldexp(1, at[i].a);
            for (size_t e = 0; e < r.x.rows * r.x.cols; e++)
                set(&r.x, 0, e, ldexp(1, at[i].b), as_double(&r.x, e));
            rig_open(&r, &kind);
            assert_ok(rig_round(&r, &rep));
            assert_at_most(worst_of(&r), allowed(&rep, &r));
            rig_down(&r);
        }
}

/* Losses among rows of A and among columns of B together may reach 2^6: lines
 * that are nearly that far apart on both sides are scaled. */
static void both_sides_together(void **state)
{
    static const rig_kind kind[] = {
        {"polynomial:m=2,p=2", 6, 30, 40, 20, KOFN_MATMUL, .sim = true},
        {"polydot:m=2,n=2,p=2", 14, 30, 40, 20, KOFN_MATMUL, .sim = true},
        {"gpd:m=2,n=1,p=2", 6, 40, 30, 20, KOFN_LEFT, .sim = true}};

    (void)state;
    for (size_t k = 0; k < sizeof kind / sizeof *kind; k++) {
        kofn_report rep = KOFN_REPORT_INIT;
        double apart[40];
        kf_rng g = kf_rng_stream(k, KF_FOR_SAMPLE, 1, 0);
        bool left = kind[k].op == KOFN_LEFT;
        rig r;

        for (size_t i = 0; i < 40; i++)
            apart[i] = i % 4 ? 1.0 / 60 : 1;
        rig_inputs(&r, &kind[k]);
        fill(&r.A, left ? NULL : apart, left ? apart : NULL, &g);
        fill(&r.x, left ? apart : NULL, left ? NULL : apart, &g);
        rig_open(&r, &kind[k]);
        assert_ok(rig_round(&r, &rep));
        assert_at_most(worst_of(&r), 16 * rep.predicted);
        rig_down(&r);
    }
}

TEST_FILE(levels_test)
{
    const struct CMUnitTest tests[] = {
        TEST(every_row_is_exact,
             "scaling: every row is as exact as with plain BLAS (300 digits)"),
        TEST(joiners_mix, "scaling: mixtures for joining workers are exact"),
        TEST(wrong_among_wide_lines,
             "scaling: a wrong worker is located among rows 300 digits apart"),
        TEST(small_errors,
             "scaling: results stay within the floor in every row"),
        TEST(rows_change_and_are_read,
             "scaling: changed rows are read exactly"),
        TEST(small_times_large,
             "scaling: subnormal times large numbers are exact"),
        TEST(both_sides_together,
             "scaling: rows and columns nearly 2^6 apart are scaled"),
    };

    rig_begin();
    return cmocka_run_group_tests_name("levels", tests, NULL, NULL);
}
