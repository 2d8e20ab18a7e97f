/* any_product_test.c -- random products: any code, size, numbers of any
 * magnitude and zeros; workers leave, join, are late and wrong. A delivered
 * result is right row by row, as docs/numerics.md ("Rows of different size")
 * and docs/errors.md ("The floor") say, or it is refused for a real reason.
 * The reference is computed in long double. */
#include "any_rig.h"

enum { ROUNDS = 3 };

typedef struct draw {
    any_job any;
    size_t m, n, p;
    kofn_op op;
    bool sparse;
    size_t strips, lo, hi; /* of this round; 0 strips: all rows */
} draw;

static any_sum sum;

static const char *told(const draw *d)
{
    char text[200];

    snprintf(text, sizeof text,
             "operation %d, %zu x %zu x %zu%s, strips [%zu, %zu) of %zu",
             (int)d->op, d->m, d->n, d->p, d->sparse ? ", sparse" : "", d->lo,
             d->hi, d->strips);
    return any_told(&d->any, text);
}

/* ---- drawing --------------------------------------------------------------
 */

static void draw_all(draw *d, uint64_t seed, kf_rng *g)
{
    *d = (draw){.m = any_size(g), .n = any_size(g)};
    any_draw(&d->any, seed, false, g);
    d->p = one_in(g, 2) ? 1 : any_size(g);
    d->op = one_in(g, 4) ? KOFN_LEFT : d->p == 1 ? KOFN_MATVEC : KOFN_MATMUL;
    d->sparse = one_in(g, 6);
    if (d->sparse)
        d->any.dtype = KOFN_F64;
    if (d->op == KOFN_LEFT)
        d->any.opt.errors = KOFN_ERRORS_NONE;
    any_events(&d->any, ROUNDS, g);
}

/* ---- numbers ------------------------------------------------------------- */

/* Draws sizes of lines, up to `digits` digits apart, some of them zero. */
static double *draw_lines(kf_rng *g, size_t n, double digits, bool zeros)
{
    double *x = numbers(n, sizeof *x);

    for (size_t i = 0; i < n; i++)
        x[i] = zeros && one_in(g, 5) ? 0 : line(g, digits);
    return x;
}

/* Lines differ in size only, or are zero; no number is near zero. */
static void draw_matrix(kofn_matrix *a, double size, double rows, double cols,
                        kf_rng *g)
{
    double *row = draw_lines(g, a->rows, rows, one_in(g, 4));
    double *col = draw_lines(g, a->cols, cols, one_in(g, 4));
    bool counts = one_in(g, 4);

    for (size_t i = 0; i < a->rows; i++)
        for (size_t j = 0; j < a->cols; j++) {
            double x = counts ? 1 + (double)below(g, 2) : 1 + kf_rng_uniform(g);

            set(a, i, j, row[i] * col[j] * size, one_in(g, 2) ? x : -x);
        }
    kf_free(row);
    kf_free(col);
}

static void draw_sparse(rig *r, kf_rng *g)
{
    double *row = draw_lines(g, r->A.rows, one_in(g, 2) ? 0 : 60, false);

    for (size_t i = 0, e = 0; i < r->A.rows; i++)
        for (; e < r->sparse.ptr[i + 1]; e++)
            ((double *)(uintptr_t)r->sparse.val)[e] *= row[i];
    kf_free(r->A.data);
    r->A = sparse_as_dense(&r->sparse);
    kf_free(row);
}

/* The rows of a sparse A have different patterns, so the inner dimension has
 * one size. */
static void draw_numbers(draw *d, rig *r, kf_rng *g)
{
    bool wide = d->any.dtype == KOFN_F64, left = d->op == KOFN_LEFT;
    double least = wide ? 1e-290 : 1e-30, most = wide ? 1e200 : 1e25;
    double a = one_in(g, 6) ? least : one_in(g, 6) ? most : 1;
    double inner = d->sparse ? 0 : any_digits(&d->any, g),
           own = any_digits(&d->any, g);

    if (d->sparse)
        draw_sparse(r, g);
    else
        draw_matrix(&r->A, a, any_digits(&d->any, g), any_digits(&d->any, g),
                    g);
    draw_matrix(&r->x, one_in(g, 8) ? most : 1, left ? own : inner,
                left ? inner : own, g);
}

/* ---- guarantees -----------------------------------------------------------
 */

/* Computes norms of the rows of A, and of its columns after each row is
 * divided by its norm. For a sparse A only rows are scaled, and columns count
 * as the largest. */
static void norms_of(const double *a, size_t m, size_t n, double *row,
                     double *col)
{
    for (size_t i = 0; i < m; i++) {
        double most = 0, all = 0;

        for (size_t j = 0; j < n; j++)
            most = fmax(most, fabs(a[i * n + j]));
        for (size_t j = 0; j < n && most > 0; j++)
            all += a[i * n + j] / most * (a[i * n + j] / most);
        row[i] = most * sqrt(all);
        for (size_t j = 0; j < n && most > 0; j++)
            col[j] = hypot(col[j], a[i * n + j] / row[i]);
    }
}

/* Returns the norm over the inner dimension, with stride `step`. */
static long double norm_of(const double *x, size_t n, size_t step,
                           const double *by)
{
    long double all = 0;

    for (size_t i = 0; i < n; i++) {
        long double y = (long double)x[i * step] * (by ? by[i] : 1);

        all += y * y;
    }
    return sqrtl(all);
}

/* There is no guarantee for numbers below the smallest normal one, nor if
 * plain sums overflow. */
typedef struct bounds {
    const double *row, *col;
    long double by;     /* relative to the product of norms */
    long double unseen; /* a smaller input counts as this in a check */
    long double least, most;
} bounds;

static bounds independent(const draw *d, const kofn_report *rep, const rig *r)
{
    bool wide = d->any.dtype == KOFN_F64;
    double u = wide ? DBL_EPSILON / 2 : FLT_EPSILON / 2;
    double size = (double)(r->A.rows + r->A.cols);

    return (bounds){.by = 64 * ((long double)rep->predicted + size * u) +
                          256 * (long double)rep->floor,
                    .unseen = !d->any.lies ? 0
                              : wide       ? 0x1p-800L
                                           : 0x1p-60L,
                    .least = size * (wide ? DBL_MIN : FLT_MIN) *
                             (d->any.lies ? 1e4 : 1),
                    .most = (wide ? DBL_MAX : FLT_MAX) / (long double)size};
}

static bool is_of(const draw *d, size_t row)
{
    size_t strip = d->strips ? row % d->strips : 0;

    return d->strips == 0 || (strip >= d->lo && strip < d->hi);
}

static void compare(const draw *d, const rig *r, const bounds *to,
                    kofn_status st)
{
    double *a = as_doubles(&r->A), *x = as_doubles(&r->x);
    double *y = as_doubles(&r->y);
    bool left = r->op == KOFN_LEFT;
    size_t n = r->A.cols, inner = left ? r->A.rows : n;

    for (size_t i = 0; i < r->y.rows; i++)
        for (size_t j = 0; j < r->y.cols; j++) {
            double is = y[i * r->y.cols + j];
            const double *in = left ? x + i * inner : x + j;
            size_t step = left ? 1 : r->x.cols;
            const double *by = left ? to->row : d->sparse ? NULL : to->col;
            long double exact, size, own = left ? to->col[j] : to->row[i];

            if (isnan(is) && (st == KOFN_PARTIAL || (!left && !is_of(d, i))))
                continue;
            if (left)
                element(in, a + j, inner, n, &exact, &size);
            else
                element(a + i * n, in, inner, step, &exact, &size);
            own = (left && d->sparse ? 1 : own) *
                  fmaxl(norm_of(in, inner, step, by), to->unseen);
            if (!left && !is_of(d, i))
                fail_msg("row %zu is touched; %s", i, told(d));
            if (size <= to->most &&
                !(fabsl(is - exact) <= to->by * own + to->least))
                fail_msg("[%zu, %zu] is %g for %Lg, off by %Lg times the "
                         "norms, and not by %Lg; %s",
                         i, j, is, exact, fabsl(is - exact) / own, to->by,
                         told(d));
        }
    kf_free(a);
    kf_free(x);
    kf_free(y);
}

static void look_at(const draw *d, const kofn_report *rep, const rig *r,
                    kofn_status st)
{
    double *a = as_doubles(&r->A);
    double *row = numbers(r->A.rows, sizeof *row);
    double *col = numbers(r->A.cols, sizeof *col);
    bounds to = independent(d, rep, r);

    norms_of(a, r->A.rows, r->A.cols, row, col);
    to.row = row;
    to.col = col;
    compare(d, r, &to, st);
    kf_free(a);
    kf_free(row);
    kf_free(col);
}

/* ---- the test -------------------------------------------------------------
 */

static kofn_status open(draw *d, rig *r, kf_rng *g)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(d->op, d->m, d->n, d->p, d->any.dtype, d->sparse);
    kofn_port *port;
    kofn_status st;

    st = kofn_plan_new(&r->plan, &pb, d->any.spec, d->any.workers, d->any.seed);
    if (st)
        return st;
    port = any_port(&d->any, g);
    st = kofn_open(&r->job, r->plan, port, &d->any.opt);
    return st ? st : rig_place(r);
}

/* Limits the round to some rows; in left products the input is 0 elsewhere. */
static kofn_status limit(draw *d, rig *r, kf_rng *g)
{
    kofn_progress p = KOFN_PROGRESS_INIT;

    assert_ok(kofn_job_progress(r->job, &p));
    d->strips = 0;
    if (p.strips == 0)
        return KOFN_OK;
    d->strips = p.strips;
    d->lo = one_in(g, 2) ? 0 : below(g, p.strips);
    d->hi = one_in(g, 2) ? p.strips : d->lo + 1 + below(g, p.strips - d->lo);
    for (size_t i = 0; r->op == KOFN_LEFT && i < r->x.cols; i++)
        for (size_t j = 0; j < r->x.rows && !is_of(d, i); j++)
            set(&r->x, j, i, 0, 0);
    return kofn_limit(r->job, d->lo, d->hi);
}

static void one_product(uint64_t seed)
{
    kf_rng g = kf_rng_stream(seed, KF_FOR_SAMPLE, 17, 0);
    rig_kind kind = {.spec = NULL};
    draw d;
    rig r;

    draw_all(&d, seed, &g);
    kind.m = d.m;
    kind.n = d.n;
    kind.p = d.p;
    kind.op = d.op;
    kind.dtype = d.any.dtype;
    kind.sparse = d.sparse;
    rig_inputs(&r, &kind);
    draw_numbers(&d, &r, &g);
    for (int i = 0; i < ROUNDS && (i > 0 || !open(&d, &r, &g)); i++) {
        kofn_report rep = KOFN_REPORT_INIT;
        kofn_status st;

        if (one_in(&g, 3))
            assert_ok(limit(&d, &r, &g));
        st = rig_round(&r, &rep);
        if (st < 0) {
            any_refusal(&d.any, st, told(&d));
            sum.refused++;
            break;
        }
        look_at(&d, &rep, &r, st);
        sum.delivered++;
    }
    sum.happened += d.any.events;
    rig_down(&r);
    any_down();
}

static void any_product(void **state)
{
    (void)state;
    any_run(one_product, often(4000), &sum, "products");
}

TEST_FILE(any_product_test)
{
    const struct CMUnitTest tests[] = {TEST(
        any_product,
        "any product is right row by row or refused (random code, faults)")};

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
