/* any_product_test.c -- products drawn at random: any code, of any size, of numbers of
 * any size and zeros, by workers who come, go, are late and lie.  What is delivered is
 * right row by row, as docs/numerics.md ("Rows of different size") and docs/errors.md
 * ("The floor") promise, or it is refused for a reason that there is.  The reference is
 * computed in long double. */
#include "levels_rig.h"

enum { ROUNDS = 3, EVENTS = 4 };

/* Some of what is drawn cannot be; then nothing is lost but the try. */
typedef struct draw {
    uint64_t seed;
    char spec[96];
    size_t workers, m, n, p;
    kofn_op op;
    kofn_dtype dtype;
    bool sparse, sim, lies, leaves;
    kofn_fault_event event[EVENTS];
    size_t events;
    kofn_options opt;
    size_t strips, lo, hi; /* of this round; 0 strips: all rows */
} draw;

static struct {
    size_t delivered, refused, happened;
} sum;

static size_t below(kf_rng *g, size_t n)
{
    return (size_t)kf_rng_below(g, n);
}

static bool one_in(kf_rng *g, size_t n)
{
    return below(g, n) == 0;
}

/* ---- how it is told ------------------------------------------------------ */

static const char *told(const draw *d)
{
    static const char *const kinds[] = {"",       "leave",   "join", "slow",
                                        "normal", "corrupt", "flip"};
    static char text[400];
    int n =
        snprintf(text, sizeof text,
                 "KOFN_TEST_SEED=%llu, %s, %zu workers (%s), operation %d, "
                 "%zu x %zu x %zu, float%d%s, errors %d, below %d, in "
                 "flight %d, late %g, pieces %u, strips [%zu, %zu) of %zu:",
                 (unsigned long long)d->seed, d->spec, d->workers,
                 d->sim ? "sim" : "threads", (int)d->op, d->m, d->n, d->p,
                 d->dtype == KOFN_F64 ? 64 : 32, d->sparse ? ", sparse" : "",
                 (int)d->opt.errors, (int)d->opt.below, (int)d->opt.in_flight,
                 d->opt.late, d->opt.pieces, d->lo, d->hi, d->strips);

    for (size_t i = 0; i < d->events; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, " %g %s %u",
                      d->event[i].round + d->event[i].fraction,
                      kinds[d->event[i].kind], d->event[i].worker);
    return text;
}

/* ---- what is drawn ------------------------------------------------------- */

static size_t a_size(kf_rng *g)
{
    static const size_t of[] = {1, 2, 3, 7, 16, 33, 64, 100};

    return of[below(g, sizeof of / sizeof *of)];
}

/* A code, and workers who may be enough for it. */
static void draw_code(draw *d, kf_rng *g)
{
    static const char *const basis[] = {"quaternion", "harmonic", "haar",
                                        "gauss_sys", "gauss"};
    unsigned k = 1 + (unsigned)below(g, 8), m = 1 + (unsigned)below(g, 3);
    unsigned n = 1 + (unsigned)below(g, 3), p = 1 + (unsigned)below(g, 2);
    size_t more = below(g, 5);
    char *to = d->spec;

    switch (below(g, 10)) {
    case 0:
        snprintf(to, sizeof d->spec, "mds:k=%u", k);
        break;
    case 1:
        snprintf(to, sizeof d->spec, "elastic:k=%u,cut=columns", k);
        break;
    case 2:
        snprintf(to, sizeof d->spec, "elastic:k=%u,basis=%s", k,
                 basis[below(g, sizeof basis / sizeof *basis)]);
        break;
    case 3:
        snprintf(to, sizeof d->spec, "product:m=%u,m2=%u,p=%u,p2=%u", m, m + p,
                 p, p + n - 1);
        k = (m + p) * (p + n - 1);
        more = 0;
        break;
    case 4:
        snprintf(to, sizeof d->spec, "polynomial:m=%u,p=%u", m, p);
        k = m * p;
        break;
    case 5:
        snprintf(to, sizeof d->spec, "gpd:m=%u,n=%u,p=%u", m, n, p);
        k = m * n * p + n - 1;
        break;
    case 6:
        snprintf(to, sizeof d->spec, "polydot:m=%u,n=%u,p=%u", m, n, p);
        k = m * p * (2 * n - 1);
        break;
    case 7:
        snprintf(to, sizeof d->spec, "matdot:n=%u", n);
        k = 2 * n - 1;
        break;
    case 8:
        snprintf(to, sizeof d->spec, "grid:m=%u,n=%u", m, n);
        k = m * n * (1 + p);
        break;
    default:
        snprintf(to, sizeof d->spec, "elastic:k=%u", k);
    }
    d->workers = k + more;
}

static void draw_events(draw *d, kf_rng *g)
{
    static const kofn_fault_event_kind of[] = {
        KOFN_FAULT_EVENT_JOIN, KOFN_FAULT_EVENT_LEAVE, KOFN_FAULT_EVENT_SLOW,
        KOFN_FAULT_EVENT_CORRUPT, KOFN_FAULT_EVENT_FLIP};
    size_t kinds = d->opt.errors == KOFN_ERRORS_NONE ? 3 : 5;
    uint32_t liar = (uint32_t)below(g, d->workers); /* only one may lie */

    d->events = below(g, EVENTS + 1);
    for (size_t i = 0; i < d->events; i++) {
        kofn_fault_event *e = &d->event[i];

        *e = (kofn_fault_event){.round = 1 + (unsigned)below(g, ROUNDS),
                                .fraction = one_in(g, 2) ? 0 : 0.5,
                                .kind = of[below(g, kinds)],
                                .worker = (uint32_t)below(g, d->workers),
                                .factor = 10};
        if (e->kind == KOFN_FAULT_EVENT_CORRUPT ||
            e->kind == KOFN_FAULT_EVENT_FLIP) {
            e->worker = liar;
            d->lies = true;
        }
        d->leaves |= e->kind == KOFN_FAULT_EVENT_LEAVE;
    }
    d->opt.events = d->event;
    d->opt.event_count = d->events;
}

/* Who waits for joiners on threads waits for real time. */
static void draw_options(draw *d, kf_rng *g)
{
    static const double late[] = {0, 0, -1, 3};

    d->opt.in_flight = (kofn_in_flight)below(g, 3);
    d->opt.below = (kofn_below)below(g, 3);
    if (d->opt.below == KOFN_BELOW_PAUSE && !d->sim)
        d->opt.below = KOFN_BELOW_REFUSE;
    d->opt.late = late[below(g, 4)];
    d->opt.pieces = one_in(g, 2) ? 0 : 1 + (unsigned)below(g, 6);
    d->opt.quarantine = one_in(g, 2) ? 0 : 1 + (unsigned)below(g, 10);
}

static void draw_all(draw *d, uint64_t seed, kf_rng *g)
{
    *d = (draw){.seed = seed, .opt = KOFN_OPTIONS_INIT};
    draw_code(d, g);
    d->m = a_size(g);
    d->n = a_size(g);
    d->p = one_in(g, 2) ? 1 : a_size(g);
    d->op = one_in(g, 4) ? KOFN_LEFT : d->p == 1 ? KOFN_MATVEC : KOFN_MATMUL;
    d->sparse = one_in(g, 6);
    d->dtype = !d->sparse && one_in(g, 3) ? KOFN_F32 : KOFN_F64;
    d->sim = !one_in(g, 4);
    if (d->op != KOFN_LEFT && one_in(g, 2))
        d->opt.errors = (kofn_errors)(1 + below(g, 3));
    draw_options(d, g);
    draw_events(d, g);
}

/* ---- numbers ------------------------------------------------------------- */

/* Lines of normal numbers, up to so many digits apart, some of them zeros. */
static double *draw_lines(kf_rng *g, size_t n, double digits, bool zeros)
{
    double *x = numbers(n, sizeof *x);

    for (size_t i = 0; i < n; i++)
        x[i] = zeros && one_in(g, 5) ? 0 : line(g, digits);
    return x;
}

/* Lines are alike but for their size, or are zeros: no number is near to zero. */
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

static double draw_digits(const draw *d, kf_rng *g)
{
    static const double of[] = {0, 0, 6, 20, 80};

    return of[below(g, sizeof of / sizeof *of)] *
           (d->dtype == KOFN_F64 ? 1 : 0.2);
}

/* The rows of a sparse A are not alike, so what is summed over has one size. */
static void draw_numbers(draw *d, rig *r, kf_rng *g)
{
    bool wide = d->dtype == KOFN_F64, left = d->op == KOFN_LEFT;
    double least = wide ? 1e-290 : 1e-30, most = wide ? 1e200 : 1e25;
    double a = one_in(g, 6) ? least : one_in(g, 6) ? most : 1;
    double inner = d->sparse ? 0 : draw_digits(d, g), own = draw_digits(d, g);

    if (d->sparse)
        draw_sparse(r, g);
    else
        draw_matrix(&r->A, a, draw_digits(d, g), draw_digits(d, g), g);
    draw_matrix(&r->x, one_in(g, 8) ? most : 1, left ? own : inner,
                left ? inner : own, g);
}

/* ---- what is promised ---------------------------------------------------- */

/* Norms of the rows of A, and of its columns when each row is divided by its own.  Of a
 * sparse A only rows are raised, and columns are as the largest. */
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

/* Of what is summed over, and lies `step` apart. */
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

/* Nothing is promised of what is smaller than the smallest number that has all its
 * digits, nor where plain sums have no room. */
typedef struct promise {
    const double *row, *col;
    long double by;     /* of the product of norms                   */
    long double unseen; /* a smaller input counts as this in a check */
    long double least, most;
} promise;

static promise promised(const draw *d, const kofn_report *rep, const rig *r)
{
    bool wide = d->dtype == KOFN_F64;
    double u = wide ? DBL_EPSILON / 2 : FLT_EPSILON / 2;
    double size = (double)(r->A.rows + r->A.cols);

    return (promise){.by = 64 * ((long double)rep->predicted + size * u) +
                           256 * (long double)rep->floor,
                     .unseen = !d->lies ? 0
                               : wide   ? 0x1p-800L
                                        : 0x1p-60L,
                     .least = size * (wide ? DBL_MIN : FLT_MIN) *
                              (d->lies ? 1e4 : 1),
                     .most = (wide ? DBL_MAX : FLT_MAX) / (long double)size};
}

static bool is_of(const draw *d, size_t row)
{
    size_t strip = d->strips ? row % d->strips : 0;

    return d->strips == 0 || (strip >= d->lo && strip < d->hi);
}

static void compare(const draw *d, const rig *r, const promise *to,
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
    promise to = promised(d, rep, r);

    norms_of(a, r->A.rows, r->A.cols, row, col);
    to.row = row;
    to.col = col;
    compare(d, r, &to, st);
    kf_free(a);
    kf_free(row);
    kf_free(col);
}

/* ---- the whole ----------------------------------------------------------- */

/* Has it a reason?  What cannot be made at all is refused before. */
static void look_at_refusal(const draw *d, kofn_status st)
{
    bool few = d->leaves || d->opt.errors;
    bool right = st == KOFN_CORRUPT  ? d->lies
                 : st == KOFN_TOOFEW ? few
                 : st == KOFN_LATE
                     ? few && d->opt.below == KOFN_BELOW_PAUSE
                     : st == KOFN_NONFINITE || st == KOFN_UNSTABLE;

    if (!right)
        fail_msg("status %d: %s; %s", (int)st, kofn_errmsg(), told(d));
    sum.refused++;
}

static kofn_status open(const draw *d, rig *r)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(d->op, d->m, d->n, d->p, d->dtype, d->sparse);
    kofn_port *port;
    kofn_status st;

    st = kofn_plan_new(&r->plan, &pb, d->spec, d->workers, d->seed);
    if (st)
        return st;
    assert_ok(d->sim ? kofn_port_sim(&port, d->workers, NULL)
                     : kofn_port_threads(&port, d->workers, NULL));
    st = kofn_open(&r->job, r->plan, port, &d->opt);
    return st ? st : rig_place(r);
}

/* Of some rows only: of left products the input is 0 elsewhere. */
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
    kind.dtype = d.dtype;
    kind.sparse = d.sparse;
    rig_inputs(&r, &kind);
    draw_numbers(&d, &r, &g);
    for (int i = 0; i < ROUNDS && (i > 0 || !open(&d, &r)); i++) {
        kofn_report rep = KOFN_REPORT_INIT;
        kofn_status st;

        if (one_in(&g, 3))
            assert_ok(limit(&d, &r, &g));
        st = rig_round(&r, &rep);
        if (st < 0) {
            look_at_refusal(&d, st);
            break;
        }
        look_at(&d, &rep, &r, st);
        sum.delivered++;
    }
    sum.happened += d.events;
    rig_down(&r);
}

static void any_product(void **state)
{
    const char *one = getenv("KOFN_TEST_SEED"); /* the first of them */
    uint64_t first = one ? strtoull(one, NULL, 10) : 0, n = often(4000);

    (void)state;
    for (uint64_t seed = first; seed < first + n; seed++)
        one_product(seed);
    print_message("EVENTS %zu in %zu products from seed %zu: %zu rounds "
                  "delivered, %zu refused\n",
                  sum.happened, (size_t)n, (size_t)first, sum.delivered,
                  sum.refused);
    assert_true(sum.delivered > n);
}

TEST_FILE(any_product_test)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_product)};

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
