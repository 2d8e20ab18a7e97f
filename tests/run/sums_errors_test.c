/* sums_errors_test.c -- wrong answers to sums of functions, with a size that
 * only the workers know. Whole jobs run on simulated workers, and some workers
 * are faulty.
 *
 * KOFN_TEST_SCALE=100 tries 10^5 clean rounds. */
#include "altered_port.h"
#include "rig.h"

#include "code/code.h"

#include "data/port.h"
#include <float.h>

#define MOST 24   /* workers */
#define LENGTH 60 /* of vectors */
#define LANES 4

/* ---- parts --------------------------------------------------------------- */

typedef enum kind {
    NORMAL,
    POSITIVE,
    EQUAL,      /* one number everywhere */
    BAD_PARTS,  /* of sizes from 1e-9 to 1e9 */
    BAD_PLACES, /* the same by entries */
    CANCELLING, /* their sum is tiny compared with them */
    HOLES,
    KINDS
} kind;

typedef struct parts {
    kind kind;
    uint64_t seed;
    size_t count;
    double x[MOST * LENGTH];
    long double sum[LENGTH];
} parts;

static double draw(const parts *p, kf_rng *r, size_t part, size_t e)
{
    double x = kf_rng_normal(r);

    switch (p->kind) {
    case POSITIVE:
        return fabs(x) + 1;
    case EQUAL:
        return 0.1;
    case BAD_PARTS:
        return x * pow(10, (double)(part * 7 % 19) - 9);
    case BAD_PLACES:
        return x * pow(10, (double)(e * 5 % 19) - 9);
    case HOLES:
        return e % 3 ? 0 : x;
    default:
        return x;
    }
}

static void fill_parts(parts *p, size_t count, kofn_dtype dtype)
{
    kf_rng r = kf_rng_stream(p->seed, KF_FOR_DATA, 3, 0);

    p->count = count;
    memset(p->sum, 0, sizeof p->sum);
    for (size_t j = 0; j < count; j++)
        for (size_t e = 0; e < LENGTH; e++) {
            double x = draw(p, &r, j, e);

            if (p->kind == CANCELLING && j + 1 == count)
                x = (1e-7 * x) - (double)p->sum[e];
            x = dtype == KOFN_F64 ? x : (double)(float)x;
            p->x[j * LENGTH + e] = x;
            p->sum[e] += (long double)x;
        }
}

static kofn_status part_of(void *ctx, size_t part, size_t of,
                           const kofn_matrix *in, kofn_matrix *out)
{
    const parts *p = ctx;

    (void)of;
    (void)in;
    for (size_t e = 0; e < LENGTH; e++) {
        if (out->dtype == KOFN_F64)
            ((double *)out->data)[e] = p->x[part * LENGTH + e];
        else
            ((float *)out->data)[e] = (float)p->x[part * LENGTH + e];
    }
    return KOFN_OK;
}

/* ---- faulty workers ------------------------------------------------------ */

typedef enum way {
    FLIP,
    SHIFT,
    DOUBLED,
    ZEROS,
    ENORMOUS,
    NOT_A_NUMBER,
    WAYS
} way;

typedef struct faulty_port {
    altered_port port;
    bool liar[MOST];
    uint32_t honest; /* bits: submessages that faulty workers leave unchanged */
    way way;
    uint32_t enormous; /* 1 + the worker that always sends ENORMOUS; 0: none */
    unsigned bit;
    size_t span, submessages;
    size_t longest; /* most submessages of one worker in a round */
    kf_rng r;
    double most[LENGTH]; /* largest answer at each entry of a strip */
} faulty_port;

static double read_at(const kofn_matrix *y, size_t e)
{
    return y->dtype == KOFN_F64 ? ((const double *)y->data)[e]
                                : (double)((const float *)y->data)[e];
}

static void write_at(kofn_matrix *y, size_t e, double x)
{
    if (y->dtype == KOFN_F64)
        ((double *)y->data)[e] = x;
    else
        ((float *)y->data)[e] = (float)x;
}

static void flip_at(kofn_matrix *y, size_t e, unsigned bit)
{
    if (y->dtype == KOFN_F64)
        ((uint64_t *)y->data)[e] ^= UINT64_C(1) << bit;
    else
        ((uint32_t *)y->data)[e] ^= UINT32_C(1) << bit % 32;
}

static void send_other(faulty_port *c, way w, kofn_matrix *y)
{
    size_t n = y->rows, one = kf_rng_below(&c->r, n);

    if (w == FLIP)
        flip_at(y, one, c->bit);
    else if (w == NOT_A_NUMBER)
        write_at(y, one, NAN);
    else
        for (size_t e = 0; e < n; e++) {
            double x = read_at(y, e);

            write_at(y, e,
                     w == SHIFT      ? x + 1
                     : w == DOUBLED  ? 2 * x
                     : w == ENORMOUS ? 1e30 * kf_rng_normal(&c->r)
                                     : 0);
        }
}

static kofn_status faulty_wait(kofn_port *p, kofn_time until, kofn_time atmost,
                               kf_msg *m)
{
    faulty_port *c = (faulty_port *)p;
    kofn_status st = c->port.sim->wait(c->port.sim, until, atmost, m);
    kofn_matrix *y;

    if (st || m->type != KF_MSG_RESULT)
        return st;
    y = kf_buffer_matrix(m->result);
    c->longest = kf_max(c->longest, m->row % c->submessages + 1);
    if (c->liar[m->worker] && !(c->honest >> m->row % c->submessages & 1))
        send_other(c, m->worker + 1 == c->enormous ? ENORMOUS : c->way, y);
    if (m->worker + 1 == c->enormous)
        return KOFN_OK;
    for (size_t e = 0; e < y->rows; e++) {
        double x = fabs(read_at(y, e)), *most = &c->most[e % c->span];

        *most = x > *most && x <= DBL_MAX ? x : *most;
    }
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
    size_t workers, beyond; /* spare answers */
} codes[] = {
    {"gc:d=2", 5, 1},
    {"gc:d=3", 7, 2},
    {"gc:d=5", 12, 4},
    {"gc:d=10", 16, 9},
    {"gc:d=3,construction=cyclic", 8, 2},
    {"gc:d=4,construction=polynomial", 9, 3},
    {"gc:d=5,construction=fractional", 10, 4},
    {"cgc:d=5,m=2", 11, 3},
    {"cgc:d=6,m=3", 8, 3},
    {"cgc:d=4,m=2,construction=random", 9, 2},
    {"g-cgc:d=4,m=2", 12, 2},
    {"agc:d=3", 7, 2},
    {"agc:d=5,lam=12,form=decoupled", 9, 4},
    {"agc:d=3,lam=4,form=staircase", 6, 2},
    {"agc:d=5,lam=10,form=decoupled", 5, 4},
    {"g-agc:d=3", 9, 2},
    {"g-agc:d=4", 10, 3},
    {"g-cgc:d=5,m=1", 14, 4},
};
#define CODES (sizeof codes / sizeof *codes)

typedef struct job {
    parts p;
    faulty_port *c;
    kofn_plan *plan;
    kofn_job *job;
    kofn_matrix in, out;
    size_t code;
    kofn_dtype dtype;
    kofn_errors errors;
    unsigned located[MOST]; /* rounds in which each worker was located */
} job;

static void job_up_in(job *j, size_t code, kofn_dtype dtype, kofn_errors errors,
                      uint64_t seed, kofn_faults w)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_SUM, LENGTH, 1, 1, dtype, false);
    kofn_options o = KOFN_OPTIONS_INIT;
    size_t n = codes[code].workers;

    *j = (job){.code = code, .dtype = dtype, .errors = errors};
    j->c = numbers(1, sizeof *j->c);
    altered_open(&j->c->port, n, &w);
    j->c->port.base.wait = faulty_wait;
    j->c->port.base.close = faulty_close;
    j->c->r = kf_rng_stream(seed, KF_FOR_DATA, 4, 0);
    o.errors = errors;
    o.quarantine = 1000000;
    assert_ok(kofn_plan_new(&j->plan, &pb, codes[code].spec, n, seed));
    j->c->span = j->plan->span;
    j->c->submessages = j->plan->layout.submessages;
    assert_ok(kofn_open(&j->job, j->plan, &j->c->port.base, &o));
    j->in = (kofn_matrix){numbers(1, 8), 1, 1, 1, dtype};
    j->out = (kofn_matrix){numbers(LENGTH, 8), LENGTH, 1, 1, dtype};
    assert_ok(kofn_place_parts(j->job, part_of, &j->p));
}

static void job_up(job *j, size_t code, kofn_dtype dtype, kofn_errors errors,
                   uint64_t seed)
{
    job_up_in(j, code, dtype, errors, seed,
              (kofn_faults)KOFN_FAULTS_INIT(.seed = seed, .spread = 0.3,
                                            .straggle = 0.3, .factor = 3));
}

static void job_down(job *j)
{
    kofn_close(j->job);
    kofn_plan_free(j->plan);
    kf_free(j->in.data);
    kf_free(j->out.data);
}

static kofn_status job_round(job *j, kind k, uint64_t seed, kofn_report *rep)
{
    j->p.kind = k;
    j->p.seed = seed;
    fill_parts(&j->p, j->plan->parts, j->dtype);
    memset(j->c->most, 0, sizeof j->c->most);
    return kofn_round(j->job, &j->in, &j->out, rep);
}

static void say_wrong(const job *j, const char *what, double x)
{
    fail_msg("%s, float%d, errors %d, parts %d, way %d, bit %u: %s (%g): %s",
             codes[j->code].spec, j->dtype == KOFN_F64 ? 64 : 32,
             (int)j->errors, (int)j->p.kind, (int)j->c->way, j->c->bit, what, x,
             kofn_errmsg());
}

/* Compares every entry with the sum in long double. */
static void within_floor(const job *j, const kofn_report *rep)
{
    double unit = j->dtype == KOFN_F64 ? 0x1p-53 : 0x1p-24;

    for (size_t e = 0; e < LENGTH; e++) {
        double off =
            (double)fabsl((long double)read_at(&j->out, e) - j->p.sum[e]);
        double most = j->c->most[e % j->c->span];
        double least = j->dtype == KOFN_F64 ? 0x1p-970 : 0x1p-103;
        double own = 30 * unit * fmax(rep->noise, 1) * most;

        most = fmax(most, least); /* below it numbers lose digits */
        if (!(off <= rep->floor * most + own))
            say_wrong(j, "delivered above the floor",
                      off / (rep->floor * most));
    }
}

/* ---- clean rounds -------------------------------------------------------- */

static const kofn_errors modes[] = {
    KOFN_ERRORS_DETECT, KOFN_ERRORS_PROBABILISTIC, KOFN_ERRORS_ADVERSARIAL};

static void clean_rounds(void **state)
{
    size_t rounds = often(14);

    (void)state;
    for (size_t k = 0; k < CODES * 6; k++) {
        job *j = numbers(1, sizeof *j);

        job_up(j, k / 6, k % 2 ? KOFN_F32 : KOFN_F64, modes[k / 2 % 3], k + 1);
        for (size_t t = 0; t < rounds; t++) {
            kofn_report rep = KOFN_REPORT_INIT;
            kofn_status st =
                job_round(j, (kind)(t % KINDS), 1000 * k + t, &rep);

            if (st || rep.corrupt)
                say_wrong(j, "a clean round is not", st);
            assert_true(rep.floor > 0);
            within_floor(j, &rep);
        }
        job_down(j);
        kf_free(j);
    }
}

/* A spare worker has the cost of a straggler. If none is missing, messages
 * are ceil(lam / (d - s)) submessages long (docs/math/errors.md 10.2). In
 * float32 more may be needed to be certain. */
static void short_messages(void **state)
{
    (void)state;
    for (size_t code = 0; code < CODES; code++)
        for (size_t k = 0; k < 2; k++) {
            kofn_errors errors =
                k ? KOFN_ERRORS_ADVERSARIAL : KOFN_ERRORS_DETECT;
            size_t lam, d = codes[code].beyond + 1;
            size_t spare = kf_max((d - 1) / 2, 1);
            job *j = numbers(1, sizeof *j);
            kofn_report rep = KOFN_REPORT_INIT;

            job_up_in(j, code, KOFN_F64, errors, 1,
                      (kofn_faults)KOFN_FAULTS_INIT(.seed = 1));
            lam = j->c->submessages;
            if (lam > 1) {
                assert_ok(job_round(j, NORMAL, k, &rep));
                assert_int_equal(j->c->longest,
                                 (lam + d - spare - 1) / (d - spare));
            }
            job_down(j);
            kf_free(j);
        }
}

/* ---- faulty workers ------------------------------------------------------ */

/* Plays a round with faulty workers. It is right within the floor, or the
 * round fails. Only faulty workers are named. */
static kofn_status faulty_round(job *j, kind k, uint64_t seed, size_t *named)
{
    kofn_report rep = KOFN_REPORT_INIT;
    kofn_status st = job_round(j, k, seed, &rep);

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
    if (!st) {
        if (*named) /* an excluded worker does not affect the floor */
            for (size_t e = 0; e < LENGTH; e++)
                j->c->most[e] = fmin(j->c->most[e], 1e12);
        within_floor(j, &rep);
    }
    return st;
}

static void flipped_bits(void **state)
{
    size_t located = 0, rounds = often(32), total = 0;

    (void)state;
    for (size_t k = 0; k < CODES * 6; k++) {
        job *j = numbers(1, sizeof *j);
        bool wide = k % 2 == 0;

        job_up(j, k / 6, wide ? KOFN_F64 : KOFN_F32, modes[k / 2 % 3], k + 1);
        for (size_t t = 0; t < rounds; t++) {
            size_t who = kf_rng_below(&j->c->r, codes[k / 6].workers), named;

            memset(j->c->liar, 0, sizeof j->c->liar);
            j->c->liar[who] = true;
            j->c->way = FLIP;
            j->c->bit = (unsigned)((t * 37 + k) % (wide ? 64 : 32));
            faulty_round(j, (kind)(t % KINDS), 1000 * k + t, &named);
            located += named;
            total++;
        }
        job_down(j);
        kf_free(j);
    }
    print_message("%zu of %zu located\n", located, total);
    assert_true(located > total / 8);
}

/* Up to half of the spare workers are faulty in every way. */
static void up_to_half(void **state)
{
    size_t rounds = often(12), within = 0, corrected = 0;

    (void)state;
    for (size_t k = 0; k < CODES * 4; k++) {
        kofn_errors errors =
            k % 4 < 2 ? KOFN_ERRORS_PROBABILISTIC : KOFN_ERRORS_ADVERSARIAL;
        size_t n = codes[k / 4].workers, half = codes[k / 4].beyond / 2;
        job *j = numbers(1, sizeof *j);

        job_up(j, k / 4, k % 2 ? KOFN_F32 : KOFN_F64, errors, k + 1);
        for (size_t t = 0; t < rounds && half; t++) {
            size_t liars = 1 + t % half, named;
            kofn_status st;

            memset(j->c->liar, 0, sizeof j->c->liar);
            for (size_t i = 0; i < liars;) {
                size_t who = kf_rng_below(&j->c->r, n);

                i += !j->c->liar[who];
                j->c->liar[who] = true;
            }
            j->c->way = (way)(1 + t % (WAYS - 1));
            st = faulty_round(j, NORMAL, 1000 * k + t, &named);
            within++;
            corrected += st == KOFN_OK;
            if (st && errors == KOFN_ERRORS_ADVERSARIAL)
                say_wrong(j, "not corrected", (double)liars);
        }
        job_down(j);
        kf_free(j);
    }
    print_message("%zu of %zu corrected\n", corrected, within);
    assert_true(corrected > within * 99 / 100);
}

/* More faulty workers of the group than the code can locate would explain the
 * pair's answers as well. */
static void pairs_of_one_group(void **state)
{
    size_t code = CODES - 1, first = 5, n = codes[code].workers;
    job *j = numbers(1, sizeof *j);

    (void)state;
    assert_string_equal(codes[code].spec, "g-cgc:d=5,m=1");
    job_up(j, code, KOFN_F64, KOFN_ERRORS_ADVERSARIAL, 1);
    j->c->way = SHIFT;
    for (size_t pair = 0; pair < n * n; pair++) {
        size_t a = pair / n, b = pair % n, named;

        if (a < first || b <= a)
            continue;
        memset(j->c->liar, 0, sizeof j->c->liar);
        j->c->liar[a] = j->c->liar[b] = true;
        if (faulty_round(j, NORMAL, pair, &named))
            say_wrong(j, "two of one group: not corrected", (double)pair);
    }
    job_down(j);
    kf_free(j);
}

/* One faulty seat is corrected. With a faulty neighbour no honest worker is
 * named. */
static void every_choice(void **state)
{
    size_t code = CODES - 7, n = codes[code].workers;

    (void)state;
    assert_string_equal(codes[code].spec, "agc:d=3");
    for (size_t k = 0; k < 4; k++) {
        job *j = numbers(1, sizeof *j);
        size_t seat = 0, corrected = 0;

        job_up(j, code, k % 2 ? KOFN_F32 : KOFN_F64, modes[1 + k / 2], k + 1);
        j->c->way = SHIFT;
        for (size_t t = 0; t < 2 * n * 63; t++) {
            bool two = t >= n * 63;
            size_t named;
            kofn_status st;

            seat = t % n;
            memset(j->c->liar, 0, sizeof j->c->liar);
            j->c->liar[seat] = true;
            j->c->liar[(seat + 1) % n] |= two;
            j->c->honest = (uint32_t)(t / n % 63);
            st = faulty_round(j, NORMAL, t, &named);
            if (st && !two)
                say_wrong(j, "one faulty worker: not corrected", (double)seat);
            corrected += st == KOFN_OK;
        }
        print_message("%zu of %zu corrected\n", corrected, 2 * n * 63);
        job_down(j);
        kf_free(j);
    }
}

/* One answer is so large that the other's error looks like rounding. After the
 * first is excluded, the rest is compared again. */
static void hidden(void **state)
{
    size_t code = 2, n = codes[code].workers, both = 0;
    job *j = numbers(1, sizeof *j);

    (void)state;
    assert_string_equal(codes[code].spec, "gc:d=5");
    job_up(j, code, KOFN_F64, KOFN_ERRORS_ADVERSARIAL, 1);
    j->c->way = SHIFT;
    for (uint32_t a = 0; a < n; a++) {
        uint32_t b = (a + 5) % (uint32_t)n;
        kofn_report rep = KOFN_REPORT_INIT;

        memset(j->c->liar, 0, sizeof j->c->liar);
        j->c->liar[a] = j->c->liar[b] = true;
        j->c->enormous = a + 1;
        assert_ok(job_round(j, NORMAL, a, &rep));
        within_floor(j, &rep);
        both +=
            rep.located[a] > j->located[a] && rep.located[b] > j->located[b];
        for (size_t i = 0; i < rep.workers; i++)
            j->located[i] = (unsigned)rep.located[i];
    }
    assert_true(both > 0);
    job_down(j);
    kf_free(j);
}

TEST_FILE(sums_errors_test)
{
    const struct CMUnitTest tests[] = {
        TEST(clean_rounds, "sum errors: clean rounds raise no alarm"),
        TEST(short_messages,
             "sum errors: messages are as short as the spare workers allow"),
        TEST(flipped_bits,
             "sum errors: flipped bits are located or below the floor"),
        TEST(up_to_half, "sum errors: half of the spare workers may be faulty"),
        TEST(pairs_of_one_group,
             "sum errors: two equal errors of a group are corrected"),
        TEST(every_choice,
             "sum errors: any wrong submessages of a seat are corrected"),
        TEST(hidden, "sum errors: a huge error does not hide another"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
