/* pcr_errors_test.c -- wrong answers E' E x. Their rounding is estimated from
 * the answers alone (math/errors.md 9). Whole jobs run on simulated workers,
 * and some workers are faulty. Results are compared with sums in long double.
 *
 * KOFN_TEST_SCALE=100 tries 10^5 clean rounds. */
#include "altered_port.h"
#include "rig.h"

#include "code/code.h"

#include "data/port.h"
#include <float.h>

#define MOST 24 /* workers */
#define ROWS 70
#define COLS 60
#define LONGEST 4096

/* ---- operands ------------------------------------------------------------ */

typedef enum kind {
    NORMAL,
    POSITIVE,
    EQUAL,  /* one number everywhere */
    HALVES, /* equal rows, and the halves of each cancel when multiplied by x */
    BAD_ROWS,    /* of sizes from 1e-9 to 1e9 */
    BAD_BANDS,   /* the same by parts */
    BAD_COLUMNS, /* and in x */
    CANCELLING,  /* A x is tiny compared with its terms */
    HOLES,
    TINY, /* products underflow */
    KINDS
} kind;

typedef struct job {
    struct faulty_port *c;
    kofn_plan *plan;
    kofn_job *job;
    kofn_matrix A, x, y;
    kind kind;
    size_t code;
    kofn_dtype dtype;
    kofn_errors errors;
    kf_rng r;
    long double want[LONGEST];
    double scale[LONGEST];  /* scale of each entry, without the floor */
    unsigned located[MOST]; /* rounds in which each worker was located */
} job;

static void write_at(kofn_matrix *y, size_t i, size_t k, double x)
{
    if (y->dtype == KOFN_F64)
        ((double *)y->data)[i * y->ld + k] = x;
    else
        ((float *)y->data)[i * y->ld + k] = (float)x;
}

static double of_size(double x, size_t i)
{
    return x * pow(10, (double)(i % 19) - 9);
}

static double draw_A(job *j, size_t i, size_t k)
{
    double x = kf_rng_normal(&j->r);

    switch (j->kind) {
    case POSITIVE:
        return fabs(x) + 1;
    case EQUAL:
    case HALVES:
        return 0.1;
    case BAD_ROWS:
        return of_size(x, i * 7);
    case BAD_BANDS:
        return of_size(x, i / 8 * 5);
    case BAD_COLUMNS:
        return of_size(x, k * 7);
    case CANCELLING:
        return (double)(i + 1) + 1e-7 * x;
    case HOLES:
        return (i + k) % 3 ? 0 : x;
    case TINY:
        return x * (j->dtype == KOFN_F64 ? 1e-150 : 1e-18);
    default:
        return x;
    }
}

static double draw_x(job *j, size_t k)
{
    double x = kf_rng_normal(&j->r);

    switch (j->kind) {
    case POSITIVE:
        return fabs(x) + 1;
    case EQUAL:
        return 0.7;
    case HALVES:
        return k < j->x.rows / 2 ? 0.7 : -0.31;
    case BAD_COLUMNS:
        return of_size(x, k * 5);
    case CANCELLING:
        return k % 2 ? -1 : 1;
    default:
        return x;
    }
}

static void fill_A(job *j)
{
    for (size_t i = 0; i < j->A.rows; i++)
        for (size_t k = 0; k < j->A.cols; k++)
            write_at(&j->A, i, k, draw_A(j, i, k));
}

/* Draws x, and computes the right result. */
static void fill_x(job *j)
{
    size_t m = j->A.rows, n = j->A.cols;
    long double all = 0, squares = 0, margins = 0, column[LONGEST] = {0};

    for (size_t k = 0; k < n; k++) {
        write_at(&j->x, k, 0, draw_x(j, k));
        j->want[k] = 0;
    }
    for (size_t i = 0; i < m; i++) {
        long double t = 0;

        for (size_t k = 0; k < n; k++)
            t += (long double)kf_mat_entry(&j->A, i, k) *
                 kf_mat_entry(&j->x, k, 0);
        margins += t * t;
        for (size_t k = 0; k < n; k++) {
            long double a = kf_mat_entry(&j->A, i, k);

            j->want[k] += t * a;
            column[k] += a * a;
        }
    }
    for (size_t k = 0; k < n; k++) {
        long double a = sqrtl(column[k]) * kf_mat_entry(&j->x, k, 0);

        all += fabsl(a);
        squares += a * a;
    }
    for (size_t k = 0; k < n; k++)
        j->scale[k] =
            (double)(sqrtl(column[k]) *
                     fmaxl(sqrtl(margins), fmaxl(sqrtl(squares), all / 8)));
}

/* ---- faulty workers ------------------------------------------------------ */

typedef enum way {
    FLIP,
    SHIFT,
    DENSE,
    DOUBLED,
    ZEROS,
    ENORMOUS,
    NOT_A_NUMBER,
    WAYS
} way;

typedef struct faulty_port {
    altered_port port;
    const job *of;
    bool liar[MOST];
    way way;
    uint32_t enormous; /* 1 + the worker that always sends ENORMOUS; 0: none */
    unsigned bit;
    kf_rng r;
} faulty_port;

static void flip_at(kofn_matrix *y, size_t e, unsigned bit)
{
    if (y->dtype == KOFN_F64)
        ((uint64_t *)y->data)[e] ^= UINT64_C(1) << bit;
    else
        ((uint32_t *)y->data)[e] ^= UINT32_C(1) << bit % 32;
}

static double other_number(faulty_port *c, way w, double y, double scale)
{
    switch (w) {
    case SHIFT:
        return y + scale;
    case DENSE:
        return y + scale * kf_rng_normal(&c->r);
    case DOUBLED:
        return 2 * y;
    case ENORMOUS:
        return 1e30 * kf_rng_normal(&c->r);
    default:
        return 0;
    }
}

static void send_other(faulty_port *c, way w, kofn_matrix *y)
{
    size_t n = y->rows, one = kf_rng_below(&c->r, n);

    if (w == FLIP)
        flip_at(y, one, c->bit);
    else if (w == NOT_A_NUMBER)
        write_at(y, one, 0, NAN);
    else
        for (size_t e = 0; e < n; e++)
            write_at(
                y, e, 0,
                other_number(c, w, kf_mat_entry(y, e, 0), c->of->scale[e]));
}

static kofn_status faulty_wait(kofn_port *p, kofn_time until, kofn_time atmost,
                               kf_msg *m)
{
    faulty_port *c = (faulty_port *)p;
    kofn_status st = c->port.sim->wait(c->port.sim, until, atmost, m);

    if (st || m->type != KF_MSG_RESULT)
        return st;
    if (c->liar[m->worker])
        send_other(c, m->worker + 1 == c->enormous ? ENORMOUS : c->way,
                   kf_buffer_matrix(m->result));
    return KOFN_OK;
}

static void faulty_close(kofn_port *p)
{
    faulty_port *c = (faulty_port *)p;

    c->port.sim->close(c->port.sim);
    kf_free(c);
}

/* ---- a job --------------------------------------------------------------- */

static const struct {
    const char *spec;
    size_t workers;
} codes[] = {
    {"pcr:r=3", 9},
    {"pcr:r=4", 12},
    {"pcr:r=5", 16},
    {"pcr:r=2", 6},
    {"pcr:r=3,systematic=1", 8},
    {"pcr:r=3,basis=lagrange", 9},
    {"pcr:r=4,basis=lagrange,systematic=1", 8},
    {"pcr:r=3,layout=paper", 9},
    {"pcr:r=6", 6},
    {"pcr:r=5,angles=6", 10},
};
#define CODES (sizeof codes / sizeof *codes)

static void open_job(job *j, uint64_t seed)
{
    kofn_faults w = KOFN_FAULTS_INIT(.seed = seed, .spread = 0.3,
                                     .straggle = 0.3, .factor = 3);
    kofn_options o = KOFN_OPTIONS_INIT;

    j->c = numbers(1, sizeof *j->c);
    altered_open(&j->c->port, codes[j->code].workers, &w);
    j->c->port.base.wait = faulty_wait;
    j->c->port.base.close = faulty_close;
    j->c->r = kf_rng_stream(seed, KF_FOR_DATA, 4, 0);
    j->c->of = j;
    o.errors = j->errors;
    o.quarantine = 1000000;
    assert_ok(kofn_open(&j->job, j->plan, &j->c->port.base, &o));
    assert_ok(kofn_place(j->job, &j->A));
}

static job *job_of(size_t code, size_t m, size_t n, kind k, kofn_dtype dtype,
                   kofn_errors errors, uint64_t seed)
{
    job *j = numbers(1, sizeof *j);
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_GRAM, m, n, 1, dtype, false);

    *j = (job){.code = code, .kind = k, .dtype = dtype, .errors = errors};
    j->r = kf_rng_stream(seed, KF_FOR_DATA, 6, 0);
    j->A = (kofn_matrix){numbers(m * n, 8), m, n, n, dtype};
    j->x = (kofn_matrix){numbers(n, 8), n, 1, 1, dtype};
    j->y = (kofn_matrix){numbers(n, 8), n, 1, 1, dtype};
    fill_A(j);
    assert_ok(kofn_plan_new(&j->plan, &pb, codes[code].spec,
                            codes[code].workers, seed));
    open_job(j, seed);
    return j;
}

static job *job_up(size_t code, kind k, kofn_dtype dtype, kofn_errors errors,
                   uint64_t seed)
{
    kf_rng r = kf_rng_stream(seed, KF_FOR_DATA, 5, 0);
    bool small =
        kf_rng_below(&r, 4) == 0; /* perhaps smaller than the number of parts */
    size_t m = 1 + kf_rng_below(&r, small ? 6 : ROWS);
    size_t n = 1 + kf_rng_below(&r, small ? 3 : COLS);

    return job_of(code, m, n, k, dtype, errors, seed);
}

static void job_down(job *j)
{
    kofn_close(j->job);
    kofn_plan_free(j->plan);
    kf_free(j->A.data);
    kf_free(j->x.data);
    kf_free(j->y.data);
    kf_free(j);
}

static kofn_status job_round(job *j, kofn_report *rep)
{
    fill_x(j);
    return kofn_round(j->job, &j->x, &j->y, rep);
}

static void say_wrong(const job *j, const char *what, double x)
{
    fail_msg("%s, %zu x %zu, float%d, errors %d, numbers %d, way %d, bit %u: "
             "%s (%g): %s",
             codes[j->code].spec, j->A.rows, j->A.cols,
             j->dtype == KOFN_F64 ? 64 : 32, (int)j->errors, (int)j->kind,
             (int)j->c->way, j->c->bit, what, x, kofn_errmsg());
}

/* Checks every entry, within the floor and the rounding of sums with this
 * number of terms in any order (docs/numerics.md). */
static void within_floor(const job *j, const kofn_report *rep)
{
    bool wide = j->dtype == KOFN_F64;
    double terms = (double)(j->A.rows + j->A.cols);
    double own = (wide ? 0x1p-53 : 0x1p-24) *
                 sqrt((wide ? 576 : 11.3) + 0.8 * terms) * fmax(rep->noise, 1);
    double least = wide ? 0x1p-970 : 0x1p-103; /* below it digits are lost */

    for (size_t e = 0; e < j->y.rows; e++) {
        double scale = fmax(j->scale[e], least);
        double off = (double)fabsl(kf_mat_entry(&j->y, e, 0) - j->want[e]);

        if (!(off <= (rep->floor + own) * scale))
            say_wrong(j, "delivered above the floor",
                      off / (rep->floor * scale));
    }
}

/* ---- clean rounds -------------------------------------------------------- */

static const kofn_errors modes[] = {
    KOFN_ERRORS_DETECT, KOFN_ERRORS_PROBABILISTIC, KOFN_ERRORS_ADVERSARIAL};

static void clean_rounds(void **state)
{
    size_t rounds = often(2), total = 0;

    (void)state;
    for (size_t k = 0; k < CODES * 6 * KINDS; k++) {
        job *j = job_up(k / KINDS / 6, (kind)(k % KINDS),
                        k / KINDS % 2 ? KOFN_F32 : KOFN_F64,
                        modes[k / KINDS / 2 % 3], k + 1);

        for (size_t t = 0; t < rounds; t++) {
            kofn_report rep = KOFN_REPORT_INIT;
            kofn_status st = job_round(j, &rep);

            if (st || rep.corrupt)
                say_wrong(j, "a clean round is not", st);
            assert_true(rep.floor > 0);
            within_floor(j, &rep);
            total++;
        }
        job_down(j);
    }
    print_message("%zu rounds\n", total);
}

/* In long sums rounding in one direction adds up. */
static void long_sums(void **state)
{
    static const kind kinds[] = {NORMAL, EQUAL, HALVES, CANCELLING};

    (void)state;
    for (size_t k = 0; k < 16; k++) {
        job *j =
            job_of(k / 8, 300 + 600 * (k / 2 % 2), 1000 - 700 * (k / 2 % 2),
                   kinds[k / 2 % 4], k % 2 ? KOFN_F32 : KOFN_F64,
                   KOFN_ERRORS_ADVERSARIAL, k + 1);
        kofn_report rep = KOFN_REPORT_INIT;

        if (job_round(j, &rep) || rep.corrupt)
            say_wrong(j, "a clean round is not", 0);
        within_floor(j, &rep);
        job_down(j);
    }
}

/* ---- faulty workers ------------------------------------------------------ */

/* Plays a round with faulty workers. It is right within the floor, or the
 * round fails. Only faulty workers are named. */
static kofn_status faulty_round(job *j, size_t *named)
{
    kofn_report rep = KOFN_REPORT_INIT;
    kofn_status st = job_round(j, &rep);

    *named = 0;
    if (st && st != KOFN_CORRUPT && st != KOFN_TOOFEW)
        say_wrong(j, "a round failed", st);
    for (size_t i = 0; i < rep.workers; i++) {
        bool now = rep.located[i] > j->located[i];

        if (now && !j->c->liar[i])
            say_wrong(j, "an honest worker was located", (double)i);
        *named += now;
        j->located[i] = (unsigned)rep.located[i];
    }
    if (!st)
        within_floor(j, &rep);
    return st;
}

static void choose_faulty(job *j, size_t liars)
{
    memset(j->c->liar, 0, sizeof j->c->liar);
    while (liars > 0) {
        size_t who = kf_rng_below(&j->c->r, codes[j->code].workers);

        liars -= !j->c->liar[who];
        j->c->liar[who] = true;
    }
}

static void flipped_bits(void **state)
{
    size_t located = 0, rounds = often(8), total = 0;

    (void)state;
    for (size_t k = 0; k < CODES * 6 * KINDS; k++) {
        bool wide = k / KINDS % 2 == 0;
        job *j =
            job_up(k / KINDS / 6, (kind)(k % KINDS), wide ? KOFN_F64 : KOFN_F32,
                   modes[k / KINDS / 2 % 3], k + 1);

        for (size_t t = 0; t < rounds; t++) {
            size_t named;

            choose_faulty(j, 1);
            j->c->way = FLIP;
            j->c->bit = (unsigned)((t * 37 + k) % (wide ? 64 : 32));
            faulty_round(j, &named);
            located += named;
            total++;
        }
        job_down(j);
    }
    print_message("%zu of %zu located\n", located, total);
    assert_true(located > total / 10);
}

static size_t answers_to_spare(const job *j)
{
    return codes[j->code].workers - j->plan->layout.threshold;
}

/* Up to half of the spare workers are faulty in every way. `adversarial`
 * leaves all of them out. In float32 with few numbers, other sets of workers
 * sometimes fit nearly as well, and the round fails. */
static void up_to_half(void **state)
{
    size_t rounds = often(6), within = 0, corrected = 0, located = 0;
    size_t declared = 0;

    (void)state;
    for (size_t k = 0; k < CODES * 4 * 3; k++) {
        kofn_errors errors =
            k % 4 < 2 ? KOFN_ERRORS_PROBABILISTIC : KOFN_ERRORS_ADVERSARIAL;
        job *j = job_up(k / 12, (kind)(k / 4 % 3), k % 2 ? KOFN_F32 : KOFN_F64,
                        errors, k + 1);
        size_t half = answers_to_spare(j) / 2;

        for (size_t t = 0; t < rounds && half; t++) {
            size_t named;
            kofn_status st;

            choose_faulty(j, 1 + t % half);
            j->c->way = (way)(1 + t % (WAYS - 1));
            st = faulty_round(j, &named);
            within++;
            corrected += st == KOFN_OK;
            located += named;
            if (st && errors == KOFN_ERRORS_ADVERSARIAL &&
                (j->dtype == KOFN_F64 || j->y.rows > 4))
                say_wrong(j, "not corrected", (double)(1 + t % half));
            declared += st && errors == KOFN_ERRORS_ADVERSARIAL;
        }
        job_down(j);
    }
    print_message("%zu of %zu corrected, %zu located, %zu declared under "
                  "adversarial\n",
                  corrected, within, located, declared);
    assert_true(declared * 100 <= within);
    assert_true(corrected > within * 95 / 100);
    assert_true(located > within / 2);
}

/* More workers are faulty, without conspiracy. `probabilistic` finds them in
 * results that are wide enough, or the round fails. */
static void beyond_half(void **state)
{
    size_t rounds = often(12), within = 0, corrected = 0;

    (void)state;
    for (size_t k = 0; k < CODES * 2; k++) {
        job *j =
            job_up(k / 2, NORMAL, KOFN_F64, KOFN_ERRORS_PROBABILISTIC, 100 + k);
        size_t half = answers_to_spare(j) / 2, most = answers_to_spare(j);

        most -= most > 0;
        for (size_t t = 0; t < rounds && most > half; t++) {
            size_t named;

            choose_faulty(j, half + 1 + t % (most - half));
            j->c->way = t % 2 ? DENSE : ENORMOUS;
            corrected += faulty_round(j, &named) == KOFN_OK;
            within++;
        }
        job_down(j);
    }
    print_message("%zu of %zu corrected\n", corrected, within);
    assert_true(corrected > within / 2);
}

/* Two seats on opposite points of the circle are wrong by the same amount. */
static void equal_errors(void **state)
{
    size_t code = 4, n = codes[code].workers;
    job *j = job_up(code, NORMAL, KOFN_F64, KOFN_ERRORS_PROBABILISTIC, 7);

    (void)state;
    assert_string_equal(codes[code].spec, "pcr:r=3,systematic=1");
    j->c->way = SHIFT;
    for (size_t pair = 0; pair < n * n; pair++) {
        size_t a = pair / n, b = pair % n, named;

        if (b <= a)
            continue;
        memset(j->c->liar, 0, sizeof j->c->liar);
        j->c->liar[a] = j->c->liar[b] = true;
        faulty_round(j, &named);
    }
    job_down(j);
}

/* One worker sends numbers so large that all others seem small. */
static void hidden(void **state)
{
    size_t code = 1, n = codes[code].workers, both = 0;
    job *j = job_up(code, NORMAL, KOFN_F64, KOFN_ERRORS_ADVERSARIAL, 1);

    (void)state;
    assert_string_equal(codes[code].spec, "pcr:r=4");
    j->c->way = SHIFT;
    for (uint32_t a = 0; a < n; a++) {
        uint32_t b = (a + 5) % (uint32_t)n;
        kofn_report rep = KOFN_REPORT_INIT;

        memset(j->c->liar, 0, sizeof j->c->liar);
        j->c->liar[a] = j->c->liar[b] = true;
        j->c->enormous = a + 1;
        assert_ok(job_round(j, &rep));
        within_floor(j, &rep);
        both +=
            rep.located[a] > j->located[a] && rep.located[b] > j->located[b];
        for (size_t i = 0; i < rep.workers; i++)
            j->located[i] = (unsigned)rep.located[i];
    }
    assert_true(both > 0);
    job_down(j);
}

TEST_FILE(pcr_errors_test)
{
    const struct CMUnitTest tests[] = {
        TEST(clean_rounds, "pcr errors: clean rounds raise no alarm"),
        TEST(long_sums, "pcr errors: long sums raise no alarm"),
        TEST(flipped_bits,
             "pcr errors: flipped bits are located or below the floor"),
        TEST(up_to_half, "pcr errors: half of the spare workers may be faulty"),
        TEST(beyond_half,
             "pcr errors: more independent faulty workers are mostly located"),
        TEST(equal_errors,
             "pcr errors: equal errors of two seats do not cancel"),
        TEST(hidden, "pcr errors: a huge error does not hide another"),
    };

    rig_begin();
    return cmocka_run_group_tests_name("pcr_errors", tests, NULL, NULL);
}
