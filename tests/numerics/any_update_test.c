/* any_update_test.c -- random operands that change: any code, sizes, numbers
 * and changes; workers leave, join, are late and wrong. Products from both
 * sides and fetched operands are right row by row, as docs/numerics.md ("Rows
 * of different size") says for lines that change in proportion, or are refused
 * for a real reason. The reference is computed in long double. */
#include "any_rig.h"
#include "sgd.h"

enum { OPERANDS_MOST = 3, STEPS = 6 };

typedef struct operand {
    size_t m, n, p; /* p: columns of its inputs */
    kofn_plan *plan;
    kofn_matrix A;
    double *row, *col;       /* the sizes of its lines */
    long double *is, *speed; /* the current value, and its velocity */
    long double *size,
        *force; /* the same for absolute values, which never fall */
    size_t changes;
} operand;

typedef struct draw {
    any_job any;
    size_t count;
    operand of[OPERANDS_MOST];
    bool left;
    kofn_job *job;
    unsigned step;
    const char *does;
} draw;

static any_sum sum;

static const char *told(const draw *d)
{
    char text[200];
    int n = snprintf(text, sizeof text, "step %u, %s,", d->step, d->does);

    for (size_t o = 0; o < d->count; o++)
        n += snprintf(text + n, sizeof text - (size_t)n, " %zux%zux%zu",
                      d->of[o].m, d->of[o].n, d->of[o].p);
    return any_told(&d->any, text);
}

/* ---- drawing --------------------------------------------------------------
 */

static void draw_operand(draw *d, operand *o, kf_rng *g)
{
    size_t all;

    *o = (operand){.m = any_size(g), .n = any_size(g), .p = 1 + below(g, 5)};
    all = o->m * o->n;
    o->row = any_lines(g, o->m, any_digits(&d->any, g));
    o->col = any_lines(g, o->n, any_digits(&d->any, g));
    o->A = random_matrix(o->m, o->n, d->any.dtype, 1);
    fill(&o->A, o->row, o->col, g);
    o->is = numbers(all, sizeof *o->is);
    o->speed = numbers(all, sizeof *o->is);
    o->size = numbers(all, sizeof *o->is);
    o->force = numbers(all, sizeof *o->is);
    for (size_t i = 0; i < all; i++) {
        o->is[i] = as_double(&o->A, i);
        o->size[i] = fabsl(o->is[i]);
    }
}

static void draw_all(draw *d, uint64_t seed, kf_rng *g)
{
    *d = (draw){.does = "open"};
    any_draw(&d->any, seed, true, g);
    d->any.opt.below =
        KOFN_BELOW_REFUSE; /* A is read completely or not at all */
    d->left = one_in(g, 2);
    d->count = 1 + below(g, OPERANDS_MOST);
    for (size_t o = 0; o < d->count; o++)
        draw_operand(d, &d->of[o], g);
    any_events(&d->any, STEPS, g);
}

/* ---- the reference --------------------------------------------------------
 */

static void change_twin(operand *o, const sgd *c, const kofn_matrix *U,
                        const kofn_matrix *V)
{
    for (size_t i = 0; i < o->m; i++)
        for (size_t j = 0; j < o->n; j++) {
            size_t e = i * o->n + j;
            long double g = c->decay * o->is[e],
                        s = fabsl(c->decay) * o->size[e];
            long double *M = &o->speed[e], *F = &o->force[e];

            for (size_t k = 0; U && k < U->rows; k++) {
                long double x = (long double)as_double(U, k * o->m + i) *
                                as_double(V, k * o->n + j);

                g += x;
                s += fabsl(x);
            }
            *M = c->momentum * *M + g;
            *F = c->momentum * *F + s;
            o->is[e] -= c->step * (c->nesterov ? g + c->momentum * *M : *M);
            o->size[e] += c->step * (c->nesterov ? s + c->momentum * *F : *F);
            if (c->momentum == 0)
                *M = *F = 0;
        }
    o->changes++;
}

/* ---- guarantees -----------------------------------------------------------
 */

static void fail_at(const draw *d, const char *what, size_t at, double is,
                    long double exact, long double off, long double by)
{
    fail_msg("%s [%zu] is %g for %Lg, off by %Lg and not by %Lg; %s", what, at,
             is, exact, off, by, told(d));
}

/* Computes the largest norms so far of rows, and of columns relative to rows.
 */
static void norms_of(const operand *o, long double *row, long double *col)
{
    for (size_t i = 0; i < o->m; i++) {
        for (size_t j = 0; j < o->n; j++)
            row[i] += square(o->size[i * o->n + j] / o->col[j]);
        row[i] = sqrtl(row[i]);
        for (size_t j = 0; j < o->n; j++)
            col[j] += square(o->size[i * o->n + j] / row[i]);
    }
    for (size_t j = 0; j < o->n; j++)
        col[j] = sqrtl(col[j]);
}

static long double independent(const draw *d, const operand *o,
                               const kofn_report *rep)
{
    bool wide = d->any.dtype == KOFN_F64;
    double u = wide ? DBL_EPSILON / 2 : FLT_EPSILON / 2;
    double size = (double)(o->m + o->n) + 16;

    return 64 * (rep->predicted + size * u) * (1 + (double)o->changes) +
           256 * (long double)rep->floor;
}

static long double least(const draw *d)
{
    return d->any.dtype == KOFN_F64 ? 1e-280L : 1e-30L;
}

static void compare(const draw *d, const operand *o, bool left,
                    const kofn_matrix *in, const kofn_matrix *out,
                    long double by)
{
    long double *row = numbers(o->m, sizeof *row);
    long double *col = numbers(o->n, sizeof *col);
    size_t inner = left ? o->m : o->n, outer = left ? o->n : o->m;

    norms_of(o, row, col);
    for (size_t i = 0; i < outer; i++)
        for (size_t j = 0; j < o->p; j++) {
            size_t at = left ? j * outer + i : i * o->p + j;
            long double exact = 0, norm = 0;

            for (size_t k = 0; k < inner; k++) {
                long double x =
                    as_double(in, left ? j * inner + k : k * o->p + j);
                size_t e = left ? k * o->n + i : i * o->n + k;
                long double unit = left ? row[k] : col[k];

                exact += x * o->is[e];
                norm += square(x * unit);
            }
            norm = sqrtl(norm) * (left ? col[i] : row[i]);
            if (!(fabsl(as_double(out, at) - exact) <= by * norm + least(d)))
                fail_at(d, left ? "left" : "right", at, as_double(out, at),
                        exact, fabsl(as_double(out, at) - exact) / norm, by);
        }
    kf_free(row);
    kf_free(col);
    sum.delivered++;
}

static void compare_fetched(const draw *d, const operand *o, bool velocity,
                            const kofn_matrix *is, long double by)
{
    long double *row = numbers(o->m, sizeof *row);
    long double *col = numbers(o->n, sizeof *col);

    norms_of(o, row, col);
    for (size_t e = 0; e < o->m * o->n; e++) {
        long double exact = velocity ? o->speed[e] : o->is[e];
        long double norm = row[e / o->n] * col[e % o->n];

        if (!(fabsl(as_double(is, e) - exact) <= by * norm + least(d)))
            fail_at(d, velocity ? "velocity" : "fetched", e, as_double(is, e),
                    exact, fabsl(as_double(is, e) - exact) / norm, by);
    }
    kf_free(row);
    kf_free(col);
    sum.delivered++;
}

static bool look_at_refusal(const draw *d, kofn_status st)
{
    any_refusal(&d->any, st, told(d));
    sum.refused++;
    return false;
}

/* ---- products -------------------------------------------------------------
 */

typedef struct product {
    operand *of;
    bool left;
    kofn_matrix in, out;
    uint32_t number;
} product;

static kofn_status put(draw *d, product *p, kf_rng *g)
{
    operand *o = p->of = &d->of[below(g, d->count)];
    bool left = p->left = d->left && one_in(g, 2);
    size_t inner = left ? o->m : o->n, outer = left ? o->n : o->m;
    double *unit =
        any_lines(g, inner, one_in(g, 2) ? 0 : any_digits(&d->any, g));
    kofn_status st;

    p->in = random_matrix(left ? o->p : inner, left ? inner : o->p,
                          d->any.dtype, 1);
    p->out = random_matrix(left ? o->p : outer, left ? outer : o->p,
                           d->any.dtype, 1);
    if (one_in(g, 2)) /* large for the small lines it meets */
        for (size_t i = 0; i < inner; i++)
            unit[i] /= left ? o->row[i] : o->col[i];
    fill(&p->in, left ? NULL : unit, left ? unit : NULL, g);
    memset(p->out.data, 0xff,
           o->p * outer * (d->any.dtype == KOFN_F64 ? 8 : 4));
    st = kofn_put_at(d->job, (size_t)(o - d->of), left, &p->in, &p->out,
                     &p->number);
    kf_free(unit);
    return st;
}

static kofn_status take(draw *d, product *p, kf_rng *g)
{
    kofn_report rep = KOFN_REPORT_INIT;
    kofn_status st;

    if (one_in(g, 8))
        return kofn_cancel(d->job, p->number);
    st = kofn_take(d->job, p->number, KOFN_NEVER, &rep);
    if (!st)
        compare(d, p->of, p->left, &p->in, &p->out,
                independent(d, p->of, &rep));
    return st;
}

/* Puts some and takes them in any order. */
static bool multiply(draw *d, kf_rng *g)
{
    product p[4] = {{.number = 0}};
    size_t n = one_in(g, 2) ? 1 : 1 + below(g, 4), left = n;
    kofn_status st = KOFN_OK;

    d->does = "products";
    for (size_t i = 0; i < n && !st; i++)
        st = put(d, &p[i], g);
    while (left > 0 && !st) {
        product *one = &p[below(g, n)];

        if (one->number == 0)
            continue;
        st = take(d, one, g);
        one->number = 0;
        left--;
    }
    for (size_t i = 0; i < n; i++)
        if (p[i].number)
            kofn_cancel(d->job, p[i].number);
    for (size_t i = 0; i < n; i++) {
        kf_free(p[i].in.data);
        kf_free(p[i].out.data);
    }
    return !st || look_at_refusal(d, st);
}

static bool change(draw *d, operand *o, kf_rng *g)
{
    static const double momenta[] = {0, 0, 0.9, 0.5};
    sgd c = SGD_INIT;
    size_t r = below(g, 8);
    kofn_matrix U = random_matrix(r, o->m, d->any.dtype, 1);
    kofn_matrix V = random_matrix(r, o->n, d->any.dtype, 1);
    kofn_status st;

    d->does = "change";
    c.step = one_in(g, 2) ? 0.05 : 1;
    c.decay = one_in(g, 2) ? 0 : 0.1;
    c.momentum = momenta[below(g, 4)];
    c.nesterov = c.momentum > 0 && one_in(g, 2);
    fill(&U, NULL, o->row, g);
    fill(&V, NULL, o->col, g);
    st = sgd_update(d->job, (size_t)(o - d->of), &c, r ? &U : NULL,
                    r ? &V : NULL);
    if (!st)
        change_twin(o, &c, r ? &U : NULL, r ? &V : NULL);
    kf_free(U.data);
    kf_free(V.data);
    return !st || look_at_refusal(d, st);
}

static bool fetch(draw *d, operand *o, kf_rng *g)
{
    kofn_matrix is = random_matrix(o->m, o->n, d->any.dtype, 1);
    kofn_report rep = KOFN_REPORT_INIT;
    bool velocity = one_in(g, 3);
    kofn_status st;

    d->does = velocity ? "fetch velocity" : "fetch";
    st = kofn_fetch(d->job, (size_t)(o - d->of), velocity, &is, &rep);
    if (!st)
        compare_fetched(d, o, velocity, &is, independent(d, o, &rep));
    kf_free(is.data);
    return !st || look_at_refusal(d, st);
}

static bool scrub(draw *d)
{
    kofn_report rep = KOFN_REPORT_INIT;
    kofn_status st;

    d->does = "scrub";
    st = kofn_scrub(d->job, &rep);
    return !st || look_at_refusal(d, st);
}

static bool one_step(draw *d, kf_rng *g)
{
    size_t acts = 1 + below(g, 4);

    assert_ok(kofn_step(d->job, ++d->step));
    for (size_t i = 0; i < acts; i++) {
        operand *o = &d->of[below(g, d->count)];
        size_t what = below(g, 8);

        if (!(what < 4                         ? multiply(d, g)
              : what < 6                       ? change(d, o, g)
              : what < 7 || !d->any.opt.errors ? fetch(d, o, g)
                                               : scrub(d)))
            return false;
    }
    return true;
}

/* ---- the test -------------------------------------------------------------
 */

static kofn_status open(draw *d, kf_rng *g)
{
    const kofn_plan *plans[OPERANDS_MOST];
    kofn_port *port;
    kofn_status st;

    for (size_t i = 0; i < d->count; i++) {
        operand *o = &d->of[i];
        kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_MATMUL, o->m, o->n, o->p,
                                            d->any.dtype, false);

        st = kofn_plan_new(&o->plan, &pb, d->any.spec, d->any.workers,
                           d->any.seed);
        if (!st && d->left)
            st = kofn_plan_serve_left(o->plan, o->p);
        if (st)
            return st;
        plans[i] = o->plan;
    }
    port = any_port(&d->any, g);
    st = kofn_open_all(&d->job, plans, d->count, port, &d->any.opt);
    for (size_t i = 0; i < d->count && !st; i++)
        st = kofn_place_at(d->job, i, KOFN_DENSE(&d->of[i].A));
    return st;
}

static void down(draw *d)
{
    kofn_close(d->job);
    any_down();
    for (size_t i = 0; i < d->count; i++) {
        operand *o = &d->of[i];

        kofn_plan_free(o->plan);
        kf_free(o->A.data);
        kf_free(o->row);
        kf_free(o->col);
        kf_free(o->is);
        kf_free(o->speed);
        kf_free(o->size);
        kf_free(o->force);
    }
}

static void one_job(uint64_t seed)
{
    kf_rng g = kf_rng_stream(seed, KF_FOR_SAMPLE, 18, 0);
    draw d;

    draw_all(&d, seed, &g);
    if (!open(&d, &g))
        for (size_t i = 0; i < STEPS && one_step(&d, &g); i++)
            ;
    sum.happened += d.any.events;
    down(&d);
}

static void any_update(void **state)
{
    (void)state;
    any_run(one_job, often(2000), &sum, "jobs");
}

TEST_FILE(any_update_test)
{
    const struct CMUnitTest tests[] = {
        TEST(any_update,
             "any changing operand is right row by row or refused (faults)")};

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
