/* codes_bench.c -- published codes next to kofn's: accuracy, and speed of
 * decoding.
 *
 * 1. Accuracy. Takes a whole product for each family of coefficients. Operands
 * are coded. Every worker multiplies in float64 over an inner side of 64. The
 * K answers of a survivor set are decoded, with kofn's solver for all
 * families. The error is the Frobenius norm against a product in long double.
 * There are three kinds of survivor sets:
 *
 *      rack    workers with the lowest numbers are lost.
 *      random  the worst of 50.
 *      steps   losses at equal distances, the worst of all distances. One of
 *              them is neighbouring points of a code on a line or circle.
 *
 * The table begins with the answers needed, and what a worker stores, in parts
 * of A. A complex block is kept as a real one of four times the size. Then
 * come the errors, and the worst noise of these sets (docs/numerics.md). The
 * condition number is the worst of the survivors' rows, for the rack and for
 * the noisiest random set. The last columns are the worst predicted error, and
 * how many sets the default tolerance would refuse.
 *
 * 2. Speed. Results of 8 MiB are decoded with the lowest-numbered workers
 * lost. The figure is bytes of results read and output written per second. It
 * is divided by the speed of bare calls of the engine with the same sources
 * and outputs, or of memcpy if nothing is mixed. Both are measured in turn, in
 * processor time of this thread, with caches full of other data. Ratios are
 * taken turn by turn.
 *
 *     codes_bench [--accuracy | --speed] [REPETITIONS] */
#include "bench.h"

#include "base/rng.h"
#include "code/combine.h"
#include "run/run.h"

#include <math.h>

#define MIB ((size_t)1 << 20)
#define WASH (128 * MIB) /* far more than the caches hold */
#define SEATS 128
#define TOLERANCE 1e-9

static int reps = 7;

static kofn_matrix random_matrix(size_t rows, size_t cols, uint32_t name)
{
    kofn_matrix a = {need(rows * cols * 8), rows, cols, cols, KOFN_F64};
    kf_rng r = kf_rng_stream(1, KF_FOR_DATA, name, 0);

    for (size_t i = 0; i < rows * cols; i++)
        ((double *)a.data)[i] = kf_rng_normal(&r);
    return a;
}

/* ---- a code and the answers of all its workers --------------------------- */

typedef struct fleet {
    const char *spec;
    size_t workers, k;
    kofn_plan *plan;
    kf_code *code;
    kf_resident resident;
    kf_messages messages;
    kofn_matrix A, B, C;
    double *want;
    kf_block *block[SEATS];
    kf_buffer *result[SEATS];
} fleet;

static double *product(const kofn_matrix *a, const kofn_matrix *b)
{
    double *c = need(a->rows * b->cols * 8);

    for (size_t i = 0; i < a->rows; i++)
        for (size_t j = 0; j < b->cols; j++) {
            long double sum = 0;

            for (size_t t = 0; t < a->cols; t++)
                sum += (long double)*(double *)kf_at(a, i, t) *
                       *(double *)kf_at(b, t, j);
            c[i * b->cols + j] = (double)sum;
        }
    return c;
}

static void work(fleet *f)
{
    for (size_t i = 0; i < f->workers; i++) {
        kf_msg m = {.how = KF_HOW_ROWS,
                    .hi = f->plan->span,
                    .in = kf_messages_take(&f->messages, i)};

        check(kf_buffer_new(&m.result,
                            f->plan->layout.components * f->plan->span,
                            m.in->m.cols, KOFN_F64),
              f->spec);
        check(kf_work_do(f->block[i], &m, NULL, NULL), f->spec);
        kf_buffer_drop(m.in);
        f->result[i] = m.result;
    }
}

static void fleet_up(fleet *f, const char *spec, size_t workers, size_t m,
                     size_t n, size_t p)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_MATMUL, m, n, p, KOFN_F64, false);
    size_t seat[SEATS];

    *f = (fleet){.spec = spec, .workers = workers};
    for (size_t i = 0; i < workers; i++)
        seat[i] = i;
    f->A = random_matrix(m, n, 1);
    f->B = random_matrix(n, p, 2);
    f->C = random_matrix(m, p, 3);
    f->want = product(&f->A, &f->B);
    check(kofn_plan_new(&f->plan, &pb, spec, workers, 1), spec);
    check(kf_code_new(&f->code, f->plan), spec);
    check(kf_resident_dense(&f->resident, f->plan, &f->A), spec);
    check(kf_data_encode(&f->resident, f->code, seat, workers, f->block), spec);
    check(kf_messages_begin(&f->messages, f->plan, &f->B, 1), spec);
    check(kf_messages_encode(&f->messages, f->code, seat, workers), spec);
    f->k = f->plan->layout.threshold;
    work(f);
}

static void fleet_down(fleet *f)
{
    for (size_t i = 0; i < f->workers; i++) {
        kf_block_drop(f->block[i]);
        kf_buffer_drop(f->result[i]);
    }
    kf_messages_free(&f->messages);
    kf_resident_free(&f->resident);
    kf_code_free(f->code);
    kofn_plan_free(f->plan);
    free(f->A.data);
    free(f->B.data);
    free(f->C.data);
    free(f->want);
}

/* ---- 1: how exact -------------------------------------------------------- */

/* Returns ||G|| by the power method; its speed does not matter. */
static double norm2(size_t m, size_t n, const double *G)
{
    double *x = need((m + n) * 8), *y = x + n, size = 0;

    for (size_t j = 0; j < n; j++)
        x[j] = 1 + (double)(j * 7 % 5);
    for (int step = 0; step < 100; step++) {
        double sum = 0;

        for (size_t i = 0; i < m; i++) {
            y[i] = 0;
            for (size_t j = 0; j < n; j++)
                y[i] += G[i * n + j] * x[j];
        }
        for (size_t j = 0; j < n; j++)
            x[j] = 0;
        for (size_t i = 0; i < m; i++)
            for (size_t j = 0; j < n; j++)
                x[j] += G[i * n + j] * y[i];
        for (size_t j = 0; j < n; j++)
            sum += x[j] * x[j];
        size = sqrt(sqrt(sum)); /* of G'G: the square of that of G */
        for (size_t j = 0; j < n; j++)
            x[j] /= sqrt(sum);
    }
    free(x);
    return size;
}

/* Returns the condition number, in the 2-norm, of the survivors' rows. */
static double condition(const fleet *f, const uint32_t *set, size_t seats)
{
    size_t components = f->plan->layout.components, n = f->plan->layout.symbols;
    size_t m = seats * components;
    double *G = need(m * n * 8), *P = need(m * n * 8), *X = need(m * m * 8);
    double found = HUGE_VAL;

    memset(G, 0, m * n * 8);
    memset(X, 0, m * m * 8);
    for (size_t i = 0; i < m; i++) {
        const kf_seat *s;

        check(kf_code_seat(f->code, set[i / components], &s), f->spec);
        for (size_t e = 0; e < s->G[i % components].n; e++)
            G[i * n + s->G[i % components].col[e]] =
                s->G[i % components].val[e];
        X[i * m + i] = 1;
    }
    memcpy(P, G, m * n * 8);
    if (m >= n &&
        !(m == n ? kf_solve(n, P, n, m, X, m)
                 : kf_code_least_squares(&(kf_system){m, n, P, n, m, X, m})))
        found = norm2(m, n, G) * norm2(n, m, X);
    free(G);
    free(P);
    free(X);
    return found;
}

typedef struct finding {
    double error, noise, predicted, condition;
    size_t sets, refused;
} finding;

static double larger(double a, double b)
{
    return a >= b ? a : b == b ? b : HUGE_VAL; /* NaN counts as the worst */
}

static double error_of(const fleet *f)
{
    double off = 0, all = 0;

    for (size_t i = 0; i < f->C.rows * f->C.cols; i++) {
        double d = ((double *)f->C.data)[i] - f->want[i];

        off += d * d;
        all += f->want[i] * f->want[i];
    }
    return sqrt(off / all);
}

/* Decodes from this set. Returns true if it is the noisiest set up to now. */
static bool try_set(fleet *f, const uint32_t *set, size_t n, finding *out)
{
    kf_source source[SEATS];
    kf_scratch scratch = {0};
    kofn_decoder *d;
    bool worst;

    out->sets++;
    if (kf_decoder_new(&d, f->code, set, n, false)) {
        out->refused++;
        out->error = out->noise = out->predicted = HUGE_VAL;
        return false;
    }
    for (size_t i = 0; i < n; i++)
        source[i] = (kf_source){&f->result[set[i]]->m, 0, f->plan->span};
    check(kf_decode(f->plan, d, source, (kf_band){0, 0, f->plan->span}, &f->C,
                    &scratch),
          f->spec);
    worst = !(d->noise <= out->noise);
    out->refused += !(d->predicted <= TOLERANCE);
    out->error = larger(out->error, error_of(f));
    out->noise = larger(out->noise, d->noise);
    out->predicted = larger(out->predicted, d->predicted);
    kf_scratch_free(&scratch);
    kf_decoder_free(d);
    return worst;
}

/* Writes all workers but the marked ones. */
static size_t survivors(const fleet *f, const bool *lost, uint32_t *set)
{
    size_t n = 0;

    for (uint32_t i = 0; i < f->workers; i++)
        if (!lost[i])
            set[n++] = i;
    return n;
}

static void try_rack(fleet *f, finding *out)
{
    bool lost[SEATS] = {false};
    uint32_t set[SEATS];
    size_t n;

    for (size_t i = 0; i < f->workers - f->k; i++)
        lost[i] = true;
    n = survivors(f, lost, set);
    try_set(f, set, n, out);
    out->condition = condition(f, set, n);
}

static void try_random(fleet *f, finding *out)
{
    uint32_t set[SEATS], worst[SEATS] = {0};

    for (uint32_t t = 0; t < 50; t++) {
        kf_rng r = kf_rng_stream(1, KF_FOR_SAMPLE, t, 0);

        for (size_t i = 0, n = 0; n < f->k; i++)
            if (kf_rng_below(&r, f->workers - i) < f->k - n)
                set[n++] = (uint32_t)i;
        if (try_set(f, set, f->k, out))
            memcpy(worst, set, sizeof worst);
    }
    out->condition =
        out->noise < HUGE_VAL ? condition(f, worst, f->k) : HUGE_VAL;
}

static void try_steps(fleet *f, finding *out)
{
    for (size_t step = 1; step <= f->workers / 2; step++) {
        bool lost[SEATS] = {false};
        uint32_t set[SEATS];

        for (size_t i = 0, at = 0; i < f->workers - f->k; i++) {
            while (lost[at])
                at = (at + 1) % f->workers;
            lost[at] = true;
            at = (at + step) % f->workers;
        }
        try_set(f, set, survivors(f, lost, set), out);
    }
}

/* Prints x; above `most` its exact value does not matter. */
static void put(double x, double most)
{
    char text[16];

    if (x <= most)
        snprintf(text, sizeof text, "%.1e", x);
    else
        snprintf(text, sizeof text, "> %.0g", most);
    printf(" %8s", text);
}

static double largest(double a, double b, double c)
{
    return larger(larger(a, b), c);
}

static void accuracy_line(const char *basis, bool ours, size_t parts, fleet *f)
{
    finding rack = {0}, any = {0}, steps = {0};
    kofn_plan_info info = KOFN_PLAN_INFO_INIT;
    size_t refused, sets;

    check(kofn_plan_describe(f->plan, false, &info), f->spec);
    try_rack(f, &rack);
    try_random(f, &any);
    try_steps(f, &steps);
    printf("    %c %-11s %4zu %5.0f", ours ? '*' : ' ', basis, f->k,
           info.storage * (double)parts);
    put(rack.error, 1);
    put(any.error, 1);
    put(steps.error, 1);
    put(largest(rack.noise, any.noise, steps.noise), 1e16);
    put(larger(rack.condition, any.condition), 1e16);
    put(largest(rack.predicted, any.predicted, steps.predicted), 1);
    refused = rack.refused + any.refused + steps.refused;
    sets = rack.sets + any.sets + steps.sets;
    if (refused == sets)
        printf("       all\n");
    else if (refused)
        printf("  %2zu of %zu\n", refused, sets);
    else
        printf("         -\n");
}

/* The sizes of one block of the table. */
typedef struct size {
    size_t n, k, parts, grid[3], outer[2];
} size;

static const size sizes[] = {
    {18, 15, 8, {2, 3, 2}, {5, 3}},
    {31, 23, 12, {2, 2, 5}, {6, 4}},
    {69, 65, 33, {4, 2, 8}, {8, 8}},
    {103, 99, 50, {7, 2, 7}, {11, 9}},
};

/* The first of each is kofn's. */
static const char *const mds[] = {"quaternion", "harmonic", "haar", NULL};
static const char *const published[] = {"chebyshev", "monomial", "cauchy",
                                        "vandermonde", NULL};
static const char *const summed[] = {"circle",   "complex",     "chebyshev",
                                     "monomial", "vandermonde", NULL};
static const char *const both[] = {"circle", "complex", "monomial",
                                   "vandermonde", NULL};
static const char *const outer[] = {"quaternion", "circle",   "complex",
                                    "chebyshev",  "monomial", "vandermonde",
                                    NULL};

/* A is cut into `parts` parts. Products are m x n by n x p, decoded from k
 * answers. For real operands, complex codes need fewer answers: they are also
 * shown with the number that the plan states. */
static void family(size_t workers, const char *args, const char *const *basis,
                   size_t parts, size_t k, size_t m, size_t n, size_t p)
{
    printf("  %s\n", args);
    for (size_t i = 0; basis[i]; i++) {
        char spec[80];
        size_t fewest;
        fleet f;

        snprintf(spec, sizeof spec, "%s,basis=%s", args, basis[i]);
        fleet_up(&f, spec, workers, m, n, p);
        fewest = f.k;
        f.k = k;
        accuracy_line(basis[i], i == 0 && basis != published, parts, &f);
        f.k = fewest;
        if (fewest < k)
            accuracy_line(basis[i], false, parts, &f);
        fleet_down(&f);
    }
}

static void accuracy(const size *s)
{
    const size_t *g = s->grid, *o = s->outer, inner = 64;
    char args[64];

    printf("%3zu workers       from stores  error of:\n%29s     rack   random"
           "    steps    noise  condit. predict.  refused\n",
           s->n, "");
    snprintf(args, sizeof args, "mds:k=%zu", s->k);
    family(s->n, args, mds, s->k, s->k, 8 * s->k, inner, 4);
    snprintf(args, sizeof args, "mds-published:k=%zu", s->k);
    family(s->n, args, published, s->k, s->k, 8 * s->k, inner, 4);
    snprintf(args, sizeof args, "matdot:n=%zu", s->parts);
    family(s->n, args, summed, s->parts, 2 * s->parts - 1, 8, inner * s->parts,
           8);
    snprintf(args, sizeof args, "gpd:m=%zu,n=%zu,p=%zu", g[0], g[1], g[2]);
    family(s->n, args, both, g[0] * g[1], g[0] * g[1] * g[2] + g[1] - 1,
           8 * g[0], inner * g[1], 4 * g[2]);
    snprintf(args, sizeof args, "polynomial:m=%zu,p=%zu", o[0], o[1]);
    family(s->n, args, outer, o[0], o[0] * o[1], 8 * o[0], inner, 4 * o[1]);
}

/* ---- 2: how fast --------------------------------------------------------- */

typedef struct stack {
    kofn_plan *plan;
    kf_code *code;
    size_t groups, n; /* results in each group */
    kofn_decoder *d;
    kofn_matrix result[SEATS], out;
    kf_source source[SEATS];
    kf_scratch scratch;
    const void *src[4 * SEATS]; /* the same, for the engine alone */
    void *dst[4 * SEATS];
    size_t sources, outputs, length;
    double *D;
} stack;

#define COLUMNS 512 /* of a result: rows of 4 KiB */

static volatile double sink;

/* Fills the caches with other, clean data. */
static void wash(void)
{
    static double *other;
    double sum = 0;

    if (!other) {
        other = need(WASH);
        memset(other, 0, WASH);
    }
    for (size_t i = 0; i < WASH / sizeof *other; i += 8)
        sum += other[i];
    sink = sum;
}

/* Prepares decoding with the lowest-numbered workers of each group lost. */
static void stack_decoder(stack *s)
{
    const kofn_layout *L = &s->plan->layout;
    uint32_t set[SEATS];

    s->groups = L->groups;
    s->n = L->adjoint ? L->seats : L->threshold;
    for (size_t i = 0; i < s->n; i++)
        set[i] = (uint32_t)(L->seats - s->n + i);
    if (!L->adjoint)
        check(kf_decoder_new(&s->d, s->code, set, s->n, false), "decoder");
}

/* Prepares sources, outputs and coefficients of the bare engine: the components
 * of the results, and the mixed part of the output. */
static void stack_engine(stack *s)
{
    size_t components = s->d ? s->plan->layout.components : 1, rows;

    s->sources = s->groups * s->n * components;
    s->outputs = s->d ? s->d->mixed : 1;
    s->D = need((s->sources * s->outputs + 1) * 8);
    for (size_t i = 0; i < s->sources * s->outputs; i++)
        s->D[i] = s->d ? s->d->D[i] : 1;
    rows = s->result[0].rows / components;
    s->length = rows * COLUMNS;
    for (size_t i = 0; i < s->sources; i++)
        s->src[i] = kf_at(&s->result[i / components], i % components * rows, 0);
    for (size_t i = 0; i * s->length < s->out.rows * s->out.cols; i++)
        s->dst[i] = (double *)s->out.data + i * s->length;
}

static void stack_up(stack *s, const char *spec, size_t workers)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_MATMUL, SEATS * SEATS, 4096,
                                        SEATS * SEATS, KOFN_F64, false);
    const kofn_layout *L;
    size_t rows = 8 * MIB / 8 / COLUMNS;

    *s = (stack){0};
    check(kofn_plan_new(&s->plan, &pb, spec, workers, 1), spec);
    L = &s->plan->layout; /* the output's size depends on the layout */
    pb.m =
        L->adjoint ? rows : rows / L->components * L->groups * L->cut[0].rows;
    pb.p = L->adjoint ? COLUMNS : COLUMNS * L->cut[1].cols;
    kofn_plan_free(s->plan);
    check(kofn_plan_new(&s->plan, &pb, spec, workers, 1), spec);
    check(kf_code_new(&s->code, s->plan), spec);
    stack_decoder(s);
    s->out = random_matrix(pb.m, pb.p, 3);
    for (size_t i = 0; i < s->groups * s->n; i++) {
        s->result[i] = random_matrix(rows, COLUMNS, (uint32_t)i);
        s->source[i] = (kf_source){&s->result[i], 0, s->plan->span};
    }
    stack_engine(s);
}

static void stack_down(stack *s)
{
    for (size_t i = 0; i < s->groups * s->n; i++)
        free(s->result[i].data);
    free(s->out.data);
    free(s->D);
    kf_scratch_free(&s->scratch);
    kf_decoder_free(s->d);
    kf_code_free(s->code);
    kofn_plan_free(s->plan);
}

/* Returns bytes per second. */
static double decode(stack *s)
{
    size_t bytes = s->out.rows * s->out.cols * 8 + s->groups * s->n * 8 * MIB;
    double t;

    wash();
    t = cpu_now();
    for (size_t g = 0; s->d && g < s->groups; g++)
        check(kf_decode(s->plan, s->d, s->source + g * s->n,
                        (kf_band){g, 0, s->plan->span}, &s->out, &s->scratch),
              "decode");
    if (!s->d)
        check(kf_data_add_up(s->source, s->n, &s->out), "add up");
    return (double)bytes / (cpu_now() - t);
}

static double engine(stack *s)
{
    size_t moved = s->sources + (s->outputs ? s->outputs : s->sources);
    double t;

    wash();
    t = cpu_now();
    if (s->outputs)
        kf_combine(&(kf_combination){s->outputs, s->sources, s->D, s->sources,
                                     s->src, s->dst},
                   s->length, KOFN_F64);
    for (size_t i = 0; i < s->sources && !s->outputs; i++)
        memcpy(s->dst[i], s->src[i], s->length * 8);
    return (double)(moved * s->length * 8) / (cpu_now() - t);
}

static void speed_line(const char *spec, size_t workers)
{
    double ratio[MOST], ours[MOST], bare[MOST], mid;
    size_t wants;
    stack s;

    stack_up(&s, spec, workers);
    wants = s.d ? s.groups * s.d->wants : 1;
    decode(&s);
    engine(&s);
    for (int i = 0; i < reps; i++) {
        bare[i] = engine(&s);
        ours[i] = decode(&s);
        ratio[i] = ours[i] / bare[i];
    }
    mid = median(ratio, reps);
    printf("  %-31s %8zu %7zu %7zu %6zu %5zu %8.1f %8.1f %8.2f  %.2f..%.2f\n",
           spec, workers, s.groups * s.n, s.sources, wants - s.outputs,
           s.outputs, median(ours, reps) * 1e-9, median(bare, reps) * 1e-9, mid,
           ratio[0], ratio[reps - 1]);
    figure(mid, "", "more", "decoding %s of %zu", spec, workers);
    stack_down(&s);
}

static const struct {
    const char *spec;
    size_t workers;
} speeds[] = {
    {"uncoded", 8},
    {"replication:k=4", 12},
    {"mds:k=8", 12},
    {"mds:k=8,basis=harmonic", 12},
    {"mds:k=23", 31},
    {"elastic:k=8", 12},
    {"elastic:k=8,cut=columns", 12},
    {"product:m=2,m2=4,p=2,p2=3", 12},
    {"polynomial:m=4,p=2", 12},
    {"polynomial:m=4,p=2,basis=circle", 12},
    {"matdot:n=4", 12},
    {"matdot:n=12", 31},
    {"polydot:m=2,n=2,p=2", 15},
    {"gpd:m=2,n=2,p=2", 12},
    {"gpd:m=2,n=2,p=5", 31},
};

int main(int argc, char **argv)
{
    bool exact = true, fast = true;
    int threads = kf_blas_single();

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--accuracy"))
            fast = false;
        else if (!strcmp(argv[i], "--speed"))
            exact = false;
        else
            reps = atoi(argv[i]);
    }
    if (reps < 1 || reps > MOST) {
        fprintf(stderr,
                "usage: codes_bench [--accuracy | --speed] "
                "[REPETITIONS in 1..%d]\n",
                MOST);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (exact)
        printf("relative error of a decoded product, float64, inner side 64; "
               "* ours; refused above %.0e\n",
               TOLERANCE);
    for (size_t i = 0; exact && i < sizeof sizes / sizeof *sizes; i++)
        accuracy(&sizes[i]);
    if (fast)
        printf("decoding results of 8 MiB, GB/s; SIMD %s, median of %d\n"
               "  %-31s  workers answers sources copied mixed   decode   engine"
               "    ratio  min..max\n",
               kf_combine_level(), reps, "");
    for (size_t i = 0; fast && i < sizeof speeds / sizeof *speeds; i++)
        speed_line(speeds[i].spec, speeds[i].workers);
    kf_blas_restore(threads);
    return 0;
}
