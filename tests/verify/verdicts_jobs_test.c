/* verdicts_jobs_test.c -- runs the campaign of verdicts_test.c with whole
 * jobs: a coordinator and simulated workers. Results are made wrong on their
 * way or by events, and BLAS computes the expected product. No honest worker
 * is located, and the output is within the floor of the report.
 *
 * KOFN_TEST_SCALE=10 tries ten times more jobs. */
#include "altered_port.h"
#include "rig.h"
#include "verdicts_rig.h"

#include "code/code.h"

#include "data/port.h"

#define INNER 61
#define MOST_ROWS 90
#define LARGEST (MOST_ROWS * 64 * 2) /* numbers of a result */

/* ---- results that are made wrong on their way ---------------------------- */

/* A simulator in which some workers send wrong results. */
typedef struct faulty_port {
    altered_port port;
    bool faulty[MOST_NODES];
    uint32_t partner[MOST_NODES]; /* the worker that results are swapped with */
    way way;
    double size, constant;
    kf_rng r;
    size_t span, components;
    double *honest[2][MOST_NODES]; /* of odd and even rounds */
} faulty_port;

/* Returns the place of entry e of a result within the result for the whole
 * block. */
static size_t place(const faulty_port *c, const kf_msg *m, size_t e)
{
    size_t cols = kf_buffer_matrix(m->result)->cols, strips = m->hi - m->lo;
    size_t row = e / cols, at = row / strips * c->span + m->lo + row % strips;

    assert_true(at < c->components * c->span);
    return at * cols + e % cols;
}

static double other_number(faulty_port *c, const kf_msg *m, size_t e, double y)
{
    size_t at = place(c, m, e), now = m->round % 2;

    switch (c->way) {
    case DENSE:
        return y + c->size * kf_rng_normal(&c->r);
    case CONSTANT:
        return y + c->constant;
    case DOUBLED:
        return 2 * y;
    case STALE:
        return m->round > 1 ? c->honest[!now][m->worker][at] : y;
    case ZEROS:
        return 0;
    case SWAPPED:
        return c->honest[now][c->partner[m->worker]][at];
    default:
        return y;
    }
}

static void remember(faulty_port *c, const kf_msg *m)
{
    kofn_matrix *y = kf_buffer_matrix(m->result);
    double *x = as_doubles(y);

    for (size_t e = 0; e < y->rows * y->cols; e++)
        c->honest[m->round % 2][m->worker][place(c, m, e)] = x[e];
    kf_free(x);
}

static void send_other(faulty_port *c, const kf_msg *m)
{
    kofn_matrix *y = kf_buffer_matrix(m->result);
    size_t n = y->rows * y->cols, one = kf_rng_below(&c->r, n);
    bool wide = y->dtype == KOFN_F64;
    trial t = {.wide = wide, .r = c->r};
    double *x = as_doubles(y);

    assert_int_equal(y->ld, y->cols);
    if (c->way == FLIP || c->way == EXPONENT)
        flip(&t, x + one, 1, c->way == EXPONENT);
    else
        for (size_t e = 0; e < n; e++)
            x[e] = other_number(c, m, e, x[e]);
    c->r = t.r;
    for (size_t e = 0; e < n; e++) {
        if (wide)
            ((double *)y->data)[e] = x[e];
        else
            ((float *)y->data)[e] = (float)x[e];
    }
    kf_free(x);
}

static kofn_status faulty_wait(kofn_port *p, kofn_time until, kofn_time atmost,
                               kf_msg *m)
{
    faulty_port *c = (faulty_port *)p;
    kofn_status st = c->port.sim->wait(c->port.sim, until, atmost, m);

    if (st || m->type != KF_MSG_RESULT)
        return st;
    remember(c, m);
    if (c->faulty[m->worker])
        send_other(c, m);
    return KOFN_OK;
}

static void faulty_close(kofn_port *p)
{
    faulty_port *c = (faulty_port *)p;

    c->port.sim->close(c->port.sim);
    for (size_t i = 0; i < 2 * MOST_NODES; i++)
        kf_free(c->honest[i % 2][i / 2]);
    kf_free(c);
}

static faulty_port *open_faulty_port(size_t workers, const kofn_faults *w)
{
    faulty_port *c = numbers(1, sizeof *c);

    altered_open(&c->port, workers, w);
    c->port.base.wait = faulty_wait;
    c->port.base.close = faulty_close;
    for (size_t i = 0; i < workers; i++)
        for (size_t k = 0; k < 2; k++)
            c->honest[k][i] = numbers(LARGEST, sizeof(double));
    return c;
}

/* ---- a job --------------------------------------------------------------- */

typedef struct job {
    rig x;
    rig_kind kind;
    kofn_options opt;
    kofn_faults faults;
    kofn_fault_event events[MOST_NODES];
    trial t; /* faulty workers, kind of error, mode */
    size_t rows, cols;
    size_t half, most; /* promised faulty workers: with any errors; without a
                          conspiracy */
    bool by_events;
} job;

static const kofn_errors errors_of[] = {
    KOFN_ERRORS_PROBABILISTIC, KOFN_ERRORS_ADVERSARIAL, KOFN_ERRORS_DETECT};

/* ---- empty parts --------------------------------------------------------- */

/* Copies the coefficients of a row that belong to parts that reach the last
 * strip. */
static void without_empty(const kf_row *row, kofn_cut cut, size_t bands,
                          size_t m, size_t n, size_t strip, double *to)
{
    size_t high = kf_ceil_div(m, cut.rows * bands);
    size_t wide = kf_ceil_div(n, cut.cols);

    for (size_t e = 0; e < row->n; e++) {
        size_t r = (bands - 1) * cut.rows + row->col[e] % cut.rows;

        if (r * high + strip < m && row->col[e] / cut.rows * wide < n)
            to[row->col[e]] = row->val[e];
    }
}

/* Computes row l of a seat in terms of products of a part of A and a part of
 * the input. */
static void products_of(const kofn_plan *p, const kf_seat *seat, size_t l,
                        double *to)
{
    const kofn_layout *L = &p->layout;
    double *a = numbers(p->parts, 8), *b = numbers(p->parts1, 8);

    for (size_t i = 0; i < L->inner; i++) {
        memset(a, 0, p->parts * 8);
        memset(b, 0, p->parts1 * 8);
        b[0] = 1;
        without_empty(&seat->E0[l * L->inner + i], L->cut[0], L->groups,
                      L->problem.m, L->problem.n, p->span - 1, a);
        if (seat->E1)
            b[0] = 0;
        if (seat->E1)
            without_empty(&seat->E1[i], L->cut[1], 1, L->problem.n,
                          L->problem.p, 0, b);
        for (size_t e = 0; e < p->parts * p->parts1; e++)
            to[e] += a[e / p->parts1] * b[e % p->parts1];
    }
    kf_free(a);
    kf_free(b);
}

/* Returns the number of results that determine all nonempty products in the
 * last strip, whichever they are. It is the threshold if no part is empty. */
static size_t results_that_decide(const kofn_plan *p)
{
    size_t terms = p->parts * p->parts1, components = p->layout.components,
           rank = 0;
    double *Q = numbers(MOST_NODES * components * terms, 8);
    kf_code *code;

    assert_ok(kf_code_new(&code, p));
    for (size_t i = 0; i < p->workers / p->layout.groups; i++)
        for (size_t l = 0; l < components; l++) {
            double *row = Q + rank * terms, was, is;
            const kf_seat *seat;

            assert_ok(kf_code_seat(code, i, &seat));
            memset(row, 0, terms * sizeof *row);
            products_of(p, seat, l, row);
            was = cblas_dnrm2((int)terms, row, 1);
            for (size_t k = 0; k < 2 * rank; k++) {
                const double *q = Q + k % rank * terms;

                cblas_daxpy((int)terms, -cblas_ddot((int)terms, q, 1, row, 1),
                            q, 1, row, 1);
            }
            is = cblas_dnrm2((int)terms, row, 1);
            if (!(is > 1e-9 * was))
                continue;
            cblas_dscal((int)terms, 1 / is, row, 1);
            rank++;
        }
    kf_code_free(code);
    kf_free(Q);
    return rank / components;
}

/* Opens a simulator in which the faulty workers send wrong results. */
static kofn_port *port_of_results(job *j)
{
    faulty_port *c = open_faulty_port(j->kind.workers, &j->faults);
    trial *t = &j->t;

    for (size_t i = 0; i < t->liars; i++) {
        uint32_t w = t->liar[i];
        size_t other = (i ^ 1) < t->liars ? i ^ 1 : i;

        t->lied[w] = true;
        c->faulty[w] = true;
        c->partner[w] = t->liar[other];
    }
    c->way = t->way;
    c->size = INNER * alarm_level(t) * pow(10, 7 * kf_rng_uniform(&t->r) - 1);
    c->constant = INNER * t->constant;
    c->r = t->r;
    c->span = j->x.plan->span;
    c->components = j->x.plan->layout.components;
    return &c->port.base;
}

static kofn_port *port_of_events(job *j)
{
    kofn_port *sim;

    for (size_t i = 0; i < j->t.liars; i++) {
        j->t.lied[j->t.liar[i]] = true;
        j->events[i] =
            (kofn_fault_event){1, 0, KOFN_FAULT_EVENT_CORRUPT, j->t.liar[i], 0};
    }
    j->opt.event_count = j->t.liars;
    assert_ok(kofn_port_sim(&sim, j->kind.workers, &j->faults));
    return sim;
}

/* Returns the number of faulty workers that are promised to be handled. With
 * empty parts fewer results agree on another input (math/errors.md 6). */
static size_t faulty_promised(const job *j)
{
    size_t decide = results_that_decide(j->x.plan);
    size_t k = j->x.plan->layout.threshold;
    bool agree = j->t.way == DOUBLED || j->t.way == STALE ||
                 j->t.way == ZEROS || j->t.way == SWAPPED;

    if (2 * decide < k)
        return j->half;
    return agree ? kf_max(j->half, kf_min(j->most, decide)) : j->most;
}

static void open_job(job *j, size_t code, uint64_t seed)
{
    size_t n = codes[code].nodes;
    kofn_port *port;

    j->faults = (kofn_faults)KOFN_FAULTS_INIT(.seed = seed, .spread = 0.3,
                                              .straggle = 0.3, .factor = 3);
    j->kind = (rig_kind){.spec = codes[code].spec,
                         .workers = n,
                         .m = j->rows,
                         .n = INNER,
                         .p = j->cols,
                         .op = KOFN_MATMUL,
                         .dtype = j->t.wide ? KOFN_F64 : KOFN_F32};
    j->opt = (kofn_options)KOFN_OPTIONS_INIT;
    j->opt.errors = errors_of[j->t.mode];
    j->opt.quarantine = 1000000;
    j->opt.events = j->events;
    rig_inputs(&j->x, &j->kind);
    j->t.liars = kf_min(j->t.liars, faulty_promised(j));
    port = j->by_events ? port_of_events(j) : port_of_results(j);
    assert_ok(kofn_open(&j->x.job, j->x.plan, port, &j->opt));
    assert_ok(rig_place(&j->x));
}

/* ---- checks -------------------------------------------------------------- */

static void fail_job(const job *j, const char *what, double off)
{
    fail_msg("%s of %zu, %s, %zu rows, %zu columns, float%d, %zu faulty, %s: "
             "%s (%g)",
             j->kind.spec, j->kind.workers, mode_names[j->t.mode], j->kind.m,
             j->t.columns, j->t.wide ? 64 : 32, j->t.liars,
             j->by_events ? "corrupted by events" : way_names[j->t.way], what,
             off);
}

/* Returns the norms of the rows of `a`. Rows that are `each` apart are coded
 * together, and count as one long row. */
static double *norms(const double *a, size_t rows, size_t cols, size_t stride,
                     size_t step, size_t each)
{
    double *x = numbers(rows, sizeof *x), *sum = numbers(each, sizeof *sum);

    for (size_t i = 0; i < rows; i++) {
        double one = cblas_dnrm2((int)cols, a + i * stride, (int)step);

        sum[i % each] += one * one;
    }
    for (size_t i = 0; i < rows; i++)
        x[i] = sqrt(sum[i % each]);
    kf_free(sum);
    return x;
}

/* Compares every entry with that of BLAS.  The bound is the floor times the
 * norms of the rows and columns that are coded together.  The rounding of a sum
 * of n terms in any order is added to it. */
static void within_floor(const job *j, const kofn_report *rep)
{
    const rig *x = &j->x;
    const kofn_plan *plan = x->plan;
    size_t n = x->A.cols, cols = x->y.cols;
    size_t groups = plan->layout.groups, band = x->A.rows;
    double *y = as_doubles(&x->y), *A = as_doubles(&x->A),
           *B = as_doubles(&x->x);
    double unit = j->t.wide ? 0x1p-53 : 0x1p-24;
    double own = unit * sqrt((j->t.wide ? 576 : 6.5) + 0.8 * (double)n);
    double *row, *col;

    if (groups > 1) /* a band of rows each */
        band = plan->span * plan->layout.cut[0].rows;
    col =
        norms(B, cols, n, 1, cols, kf_ceil_div(cols, plan->layout.cut[1].cols));
    for (size_t from = 0; from < x->A.rows; from += band) {
        size_t rows = kf_min(band, x->A.rows - from);

        row = norms(A + from * n, rows, n, n, 1, plan->span);
        for (size_t e = 0; e < rows * cols; e++) {
            size_t at = from * cols + e;
            double off = fabs(y[at] - x->want[at]);

            off /= row[e / cols] * col[e % cols];
            if (!(off <= rep->floor + own * fmax(rep->noise, 1)))
                fail_job(j, "an error above the floor", off / rep->floor);
        }
        kf_free(row);
    }
    /* relative errors need entries as large as those of random numbers */
    if (x->A.rows * cols >= 64 && !(rig_error(x) <= rep->predicted))
        fail_job(j, "an error above the prediction",
                 rig_error(x) / rep->predicted);
    kf_free(y);
    kf_free(A);
    kf_free(B);
    kf_free(col);
}

static void only_faulty_located(const job *j, const kofn_report *rep)
{
    for (size_t i = 0; i < rep->workers; i++)
        if (rep->located[i] && !j->t.lied[i])
            fail_job(j, "an honest worker was located", (double)i);
}

typedef struct tally {
    size_t rounds, declared, located;
} tally;

/* Runs some rounds with these faulty workers. */
static void run_job(job *j, size_t rounds, uint64_t seed, tally *to)
{
    for (size_t k = 0; k < rounds; k++) {
        kofn_report rep = KOFN_REPORT_INIT;
        kofn_status st;

        rig_next(&j->x, 1000 * seed + k);
        st = rig_round(&j->x, &rep);
        only_faulty_located(j, &rep);
        if (st == KOFN_OK)
            within_floor(j, &rep);
        else if (st != KOFN_CORRUPT && st != KOFN_TOOFEW)
            fail_job(j, kofn_errmsg(), st);
        to->rounds++;
        to->declared += st != KOFN_OK;
        for (size_t i = 0; i < rep.workers; i++)
            to->located += rep.located[i] > 0;
    }
}

/* ---- the campaign -------------------------------------------------------- */

/* Draws the sizes. Half of the time all parts have the same number of rows and
 * columns, else some parts may be empty. */
static void draw_sides(job *j, const kofn_layout *L)
{
    size_t parts = L->cut[0].rows * L->groups;

    j->t.columns = widths[kf_rng_below(&j->t.r, WIDTHS)];
    j->rows = parts * (1 + kf_rng_below(&j->t.r, MOST_ROWS / parts));
    j->cols = j->t.columns * L->cut[1].cols;
    if (kf_rng_below(&j->t.r, 2))
        return;
    j->rows = 1 + kf_rng_below(&j->t.r, kf_rng_below(&j->t.r, 2) ? 6 : 90);
    j->cols = 1 + kf_rng_below(&j->t.r, j->cols);
    j->t.columns = kf_ceil_div(j->cols, L->cut[1].cols);
}

static void draw(job *j, size_t code, uint64_t seed)
{
    trial *t = &j->t;
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATMUL, 96, 96, 96, KOFN_F64, false);
    kofn_plan *plan;
    code_case f = {.nodes = codes[code].nodes};

    t->r = kf_rng_stream(3, KF_FOR_SAMPLE, (uint32_t)code, (uint32_t)seed);
    assert_ok(kofn_plan_new(&plan, &pb, codes[code].spec, f.nodes, 5));
    f.nodes /= plan->layout.groups;
    f.k = plan->layout.threshold;
    f.copies = plan->layout.enough == 1 || f.k > plan->layout.enough;
    draw_sides(j, &plan->layout);
    kofn_plan_free(plan);
    t->f = &f;
    t->wide = kf_rng_below(&t->r, 2);
    j->most = t->liars = most_liars(t);
    j->half = kf_min(j->most, t->mode == DETECT ? 1 : half(&f));
    t->liars = t->liars ? 1 + kf_rng_below(&t->r, t->liars) : 0;
    t->constant = pow(10, 3 * kf_rng_uniform(&t->r) - 3);
    shuffle(t->liar, codes[code].nodes, &t->r);
    t->f = NULL;
}

static void whole_jobs(void **state)
{
    tally all[MODES] = {{0}};
    size_t jobs = often(CODES * (WAYS + 1) * MODES), rounds = 0;

    (void)state;
    for (size_t i = 0; i < jobs; i++) {
        size_t w = i / CODES % (WAYS + 1);
        job j = {.by_events = w == WAYS};

        j.t.way = (way)(w % WAYS);
        j.t.mode = (mode)(i / CODES / (WAYS + 1) % MODES);
        draw(&j, i % CODES, i);
        open_job(&j, i % CODES, i);
        run_job(&j, 3, i, &all[j.t.mode]);
        rig_down(&j.x);
    }
    for (size_t m = 0; m < MODES; m++) {
        print_message("    %-13s %zu rounds, %zu declared failures, %zu "
                      "workers located\n",
                      mode_names[m], all[m].rounds, all[m].declared,
                      all[m].located);
        rounds += all[m].rounds;
    }
    assert_int_equal(rounds, 3 * jobs);
    assert_int_equal(all[DETECT].located, 0);
}

/* ---- a decoder that amplifies errors ------------------------------------- */

/* Runs 25 rounds in single precision with one faulty worker. The error that
 * decoding makes of an unseen wrong result is within the floor, and the
 * prediction includes it. */
static void single_precision(const char *spec, size_t nodes)
{
    size_t seeds = kf_max(often(40), 1), rounds = 0, large = 0;
    double worst = 0, floor = 0;

    for (size_t s = 0; s < seeds; s++) {
        job j = {.by_events = true};
        uint64_t seed = s ? s : 391;

        j.faults = (kofn_faults)KOFN_FAULTS_INIT(.seed = seed);
        j.events[0] = (kofn_fault_event){1, 0, KOFN_FAULT_EVENT_CORRUPT, 4, 0};
        j.opt = with_events(j.events, 1);
        j.opt.errors = KOFN_ERRORS_PROBABILISTIC;
        j.opt.quarantine = 1000000;
        j.t = (trial){.columns = 1, .liars = 1, .lied[4] = true};
        j.kind =
            (rig_kind){spec, nodes, 72,       46,        1,     KOFN_MATVEC,
                       true, false, KOFN_F32, &j.faults, &j.opt};
        rig_up(&j.x, &j.kind);
        for (uint32_t i = 0; i < 25; i++, rounds++) {
            kofn_report rep = KOFN_REPORT_INIT;

            rig_next(&j.x, 1000 * seed + i);
            assert_ok(rig_round(&j.x, &rep));
            only_faulty_located(&j, &rep);
            within_floor(&j, &rep);
            worst = fmax(worst, rig_error(&j.x));
            floor = fmax(floor, rep.floor);
            large += rig_error(&j.x) > 1e-4;
        }
        rig_down(&j.x);
    }
    assert_at_most(floor, HIDDEN_F32);
    print_message("    %s: %zu rounds of %zu seeds within the floor (%.1e at "
                  "most), error at most %.1e, above 1e-4 in %zu\n",
                  spec, rounds, seeds, floor, worst, large);
}

static void harmonic(void **state)
{
    (void)state;
    single_precision("mds:k=9,basis=harmonic", 18);
}

static void elastic(void **state)
{
    (void)state;
    single_precision("elastic:k=4", 8);
}

TEST_FILE(verdicts_jobs_test)
{
    const struct CMUnitTest tests[] = {
        TEST(whole_jobs,
             "verdicts: jobs locate no honest worker and keep the floor"),
        TEST(harmonic,
             "verdicts: float32 keeps the floor (mds, harmonic, 18 workers)"),
        TEST(elastic, "verdicts: float32 keeps the floor (elastic, 8 workers)"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
