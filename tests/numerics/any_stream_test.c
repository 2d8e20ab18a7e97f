/* any_stream_test.c -- random streams of products: any code, different sizes,
 * put and taken in any order; workers leave, join, are late and wrong. A
 * delivered result is right row by row, as docs/numerics.md ("Rows of
 * different size") says, or it is refused for a real reason. The reference is
 * computed in long double. */
#include "any_rig.h"

enum { PRODUCTS = 6 };

typedef struct product {
    kofn_matrix X, Y, out;
    double *inner; /* sizes of the inner dimension in X */
    uint32_t number;
} product;

typedef struct draw {
    any_job any;
    size_t m, n, p; /* of the plan */
    kofn_plan *plan;
    kofn_job *job;
    product product[PRODUCTS];
} draw;

static any_sum sum;

static const char *told(const draw *d)
{
    char text[100];

    snprintf(text, sizeof text, "%zu x %zu x %zu", d->m, d->n, d->p);
    return any_told(&d->any, text);
}

/* ---- drawing --------------------------------------------------------------
 */

static void draw_code(any_job *a, kf_rng *g)
{
    static const char *const more[] = {
        "",          ",plain=no",     ",n=2",       ",basis=quaternion", ",n=2",
        ",plain=no", ",order=newest", ",order=due", ",basis=circle"};
    size_t m = 1 + below(g, 4), p = 1 + below(g, 3), n = 1 + below(g, 3);

    a->workers = 2 + below(g, 7);
    switch (below(g, 8)) {
    case 0:
        snprintf(a->spec, sizeof a->spec, "idip:N=%zu,W=%zu", n, 1 + m);
        break;
    case 1:
        snprintf(a->spec, sizeof a->spec, "polynomial:m=%zu,p=%zu", m, p);
        break;
    case 2:
        snprintf(a->spec, sizeof a->spec, "matdot:n=%zu", n);
        break;
    case 3:
        snprintf(a->spec, sizeof a->spec, "gpd:m=%zu,n=%zu,p=%zu", 1 + m / 3, n,
                 p);
        break;
    case 4:
        snprintf(a->spec, sizeof a->spec, "uncoded");
        break;
    default:
        snprintf(a->spec, sizeof a->spec, "dip:m=%zu,p=%zu,T=%zu%s", m, p,
                 below(g, 4), more[below(g, sizeof more / sizeof *more)]);
    }
}

/* Draws a product of about the plan's size. Y has the inverse sizes of the
 * inner dimension. */
static void draw_product(draw *d, product *p, kf_rng *g)
{
    size_t m = d->m + below(g, 2), n = d->n + below(g, 2);
    size_t cols = d->p + below(g, 2);
    double *row = any_lines(g, m, any_digits(&d->any, g)),
           *col = any_lines(g, cols, any_digits(&d->any, g));
    double *back = numbers(n, sizeof *back);

    p->inner = any_lines(g, n, any_digits(&d->any, g));
    for (size_t k = 0; k < n; k++)
        back[k] = 1 / p->inner[k];
    p->X = random_matrix(m, n, d->any.dtype, 1);
    p->Y = random_matrix(n, cols, d->any.dtype, 2);
    p->out = random_matrix(m, cols, d->any.dtype, 3);
    fill(&p->X, row, p->inner, g);
    fill(&p->Y, back, col, g);
    memset(p->out.data, 0xff,
           m * cols * (d->any.dtype == KOFN_F64 ? sizeof(double) : 4));
    kf_free(row);
    kf_free(col);
    kf_free(back);
}

static void draw_all(draw *d, uint64_t seed, kf_rng *g)
{
    static const double mu[] = {0, 0, 1e-3, 4};

    *d = (draw){.m = any_size(g), .n = any_size(g), .p = any_size(g)};
    any_draw(&d->any, seed, true, g);
    draw_code(&d->any, g);
    d->any.opt.mu = mu[below(g, 4)];
    if (d->any.opt.below == KOFN_BELOW_DEGRADE)
        d->any.opt.below = KOFN_BELOW_REFUSE;
    for (size_t i = 0; i < PRODUCTS; i++)
        draw_product(d, &d->product[i], g);
    any_events(&d->any, PRODUCTS, g);
}

/* ---- guarantees -----------------------------------------------------------
 */

static void compare(const draw *d, const product *p, const kofn_report *rep)
{
    bool wide = d->any.dtype == KOFN_F64;
    double u = wide ? DBL_EPSILON / 2 : FLT_EPSILON / 2;
    size_t m = p->X.rows, n = p->X.cols, cols = p->Y.cols;
    long double by = 64 * (rep->predicted + (double)(m + n) * u) +
                     256 * (long double)rep->floor;

    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < cols; j++) {
            long double exact = 0, x = 0, y = 0, off;
            double is = as_double(&p->out, i * cols + j);

            for (size_t k = 0; k < n; k++) {
                long double a = as_double(&p->X, i * n + k);
                long double b = as_double(&p->Y, k * cols + j);

                exact += a * b;
                x += square(a / p->inner[k]);
                y += square(b * p->inner[k]);
            }
            off = fabsl(is - exact);
            if (!(off <= by * sqrtl(x * y) + (wide ? 1e-290L : 1e-33L)))
                fail_msg("product %u, [%zu, %zu] is %g for %Lg, off by %Lg "
                         "times the norms, and not by %Lg; %s",
                         p->number, i, j, is, exact, off / sqrtl(x * y), by,
                         told(d));
        }
    sum.delivered++;
}

/* ---- the test -------------------------------------------------------------
 */

static kofn_status open(draw *d, kf_rng *g)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_STREAM, d->m, d->n, d->p, d->any.dtype, false);
    kofn_status st =
        kofn_plan_new(&d->plan, &pb, d->any.spec, d->any.workers, d->any.seed);

    return st ? st
              : kofn_open(&d->job, d->plan, any_port(&d->any, g), &d->any.opt);
}

static bool take(draw *d, product *p)
{
    kofn_report rep = KOFN_REPORT_INIT;
    kofn_status st = kofn_take(d->job, p->number, KOFN_NEVER, &rep);

    if (!st) {
        compare(d, p, &rep);
        return true;
    }
    any_refusal(&d->any, st, told(d));
    sum.refused++;
    return st == KOFN_UNSTABLE || st == KOFN_NONFINITE;
}

/* Puts and takes in any order. */
static void go_through(draw *d, kf_rng *g)
{
    size_t put = 0, taken = 0;

    while (taken < PRODUCTS) {
        product *p = &d->product[below(g, put ? put : 1)];

        if (put < PRODUCTS && (put == taken || one_in(g, 2))) {
            p = &d->product[put++];
            assert_ok(kofn_put_pair(d->job, &p->X, &p->Y, &p->out, &p->number));
        } else if (p->number) {
            if (!take(d, p))
                return;
            p->number = 0;
            taken++;
        }
    }
}

static void one_stream(uint64_t seed)
{
    kf_rng g = kf_rng_stream(seed, KF_FOR_SAMPLE, 19, 0);
    draw d;

    draw_all(&d, seed, &g);
    if (!open(&d, &g))
        go_through(&d, &g);
    sum.happened += d.any.events;
    kofn_close(d.job);
    any_down();
    kofn_plan_free(d.plan);
    for (size_t i = 0; i < PRODUCTS; i++) {
        kf_free(d.product[i].X.data);
        kf_free(d.product[i].Y.data);
        kf_free(d.product[i].out.data);
        kf_free(d.product[i].inner);
    }
}

static void any_stream(void **state)
{
    (void)state;
    any_run(one_stream, often(1000), &sum, "streams");
}

TEST_FILE(any_stream_test)
{
    const struct CMUnitTest tests[] = {TEST(
        any_stream,
        "any stream is right row by row or refused (random code, faults)")};

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
