/* coded_lies_test.c -- effect of wrong results of a given size on a training
 * on coded weights. Errors well above the floor have no effect. Errors below
 * it have the effect of rounding to that size (math/training.md 11). */
#include "train_rig.h"

#include "data/data.h"
#include "learn/net.h"

/* A training may deviate from the plain weights by this factor more than a
 * rounded one. Codes amplify errors of results, and roundings are random. */
#define TIMES 100

#define FAULTY 2

static const size_t widths[] = {64, 18, 12, 10};

/* ---- rounded trainings --------------------------------------------------- */

/* The plain training with every number of the workers' products off by `size`
 * times the norms of its factors, up or down at random. */
typedef struct rounded_training {
    kf_rng r;
    double size;
} rounded_training;

static double norm(const kofn_matrix *a, bool column, size_t k)
{
    size_t n = column ? a->rows : a->cols;
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        double x = *(double *)(column ? kf_at(a, i, k) : kf_at(a, k, i));

        sum += x * x;
    }
    return sqrt(sum);
}

static kofn_status multiply(void *ud, kf_pass pass, size_t layer,
                            const kofn_matrix *a, const kofn_matrix *b,
                            kofn_matrix *out)
{
    rounded_training *t = ud;

    TRY(kf_multiplier_plain.multiply(NULL, pass, layer, a, b, out));
    for (size_t i = 0; pass != KF_PASS_GRADIENT && i < out->rows; i++)
        for (size_t j = 0; j < out->cols; j++) {
            double off =
                t->size * norm(a, false, i) * norm(b, pass == KF_PASS_BACK, j);

            *(double *)kf_at(out, i, j) += kf_rng_below(&t->r, 2) ? off : -off;
        }
    return KOFN_OK;
}

static void rounded_step(rounded_training *t, kofn_net *net, kf_passes *p,
                         const digits *d, size_t epoch, size_t from,
                         const kofn_train_options *o)
{
    size_t to = kf_min(from + o->batch, d->X.rows);
    double weight = 1 / (double)(to - from), cost = 0, right = 0;
    kf_multiplier by = {multiply, t};
    kofn_net *G;

    assert_ok(kofn_net_new(&G, &net->shape, 1));
    kf_passes_begin(p);
    for (size_t i = from; i < to; i++) {
        size_t k = kf_order_at(o->seed, epoch, i, d->X.rows);

        kf_passes_put(p, kf_at(&d->X, k, 0), kf_at(&d->y, k, 0));
    }
    assert_ok(kf_passes_forward(p, &by));
    kf_passes_cost(p, weight, &cost, &right);
    assert_ok(kf_passes_back(p, weight, NULL, &by, G->W));
    for (size_t l = 0; l < net->shape.layers; l++)
        for (size_t i = 0; i < G->W[l].rows * G->W[l].cols; i++)
            ((double *)net->W[l].data)[i] -=
                o->step * ((double *)G->W[l].data)[i];
    kofn_net_free(G);
}

/* ---- the faulty worker --------------------------------------------------- */

typedef enum error_kind {
    ALL_WRONG, /* every number of a result is off ... */
    ONE_WRONG, /* ... or one is, by `size` times the largest */
    NEGATED,
    ZEROS,
    NOT_A_NUMBER,
    ERROR_KINDS
} error_kind;

/* Worker 2 errs in products. What it stores is right, and so is what is read
 * from it. */
static struct {
    kofn_status (*send)(kofn_port *p, kf_msg *m);
    kofn_status (*wait)(kofn_port *p, kofn_time until, kofn_time atmost,
                        kf_msg *m);
    struct {
        uint32_t product, task;
    } asked[1 << 12];
    size_t count;
    error_kind way;
    double size;
    kf_rng r;
} faulty;

static double largest(const kofn_matrix *y)
{
    double most = 0;

    for (size_t i = 0; i < y->rows * y->cols; i++)
        most = fmax(most, fabs(((double *)y->data)[i]));
    return most;
}

static void spoil(const kofn_matrix *y)
{
    size_t n = y->rows * y->cols, one = kf_rng_below(&faulty.r, n);
    double *x = y->data, off = faulty.size * largest(y);

    for (size_t i = 0; i < n; i++) {
        if (faulty.way == ALL_WRONG || (faulty.way == ONE_WRONG && i == one))
            x[i] += kf_rng_below(&faulty.r, 2) ? off : -off;
        else if (faulty.way == NEGATED)
            x[i] = -x[i];
        else if (faulty.way == ZEROS)
            x[i] = 0;
        else if (faulty.way == NOT_A_NUMBER && i == one)
            x[i] = (double)NAN;
    }
}

static kofn_status faulty_send(kofn_port *p, kf_msg *m)
{
    if (m->type == KF_MSG_WORK && m->worker == FAULTY &&
        m->how != KF_HOW_READ) {
        assert_true(faulty.count < COUNT(faulty.asked));
        faulty.asked[faulty.count].product = m->product;
        faulty.asked[faulty.count++].task = m->task;
    }
    return faulty.send(p, m);
}

static kofn_status faulty_wait(kofn_port *p, kofn_time until, kofn_time atmost,
                               kf_msg *m)
{
    kofn_status st = faulty.wait(p, until, atmost, m);

    for (size_t i = 0; !st && m->type == KF_MSG_RESULT && i < faulty.count; i++)
        if (m->worker == FAULTY && faulty.asked[i].product == m->product &&
            faulty.asked[i].task == m->task)
            spoil(&m->result->m);
    return st;
}

static void add_errors(kofn_port *port, error_kind way, double size)
{
    memset(&faulty, 0, sizeof faulty);
    faulty.send = port->send;
    faulty.wait = port->wait;
    faulty.way = way;
    faulty.size = size;
    faulty.r = kf_rng_stream(5, KF_FOR_DATA, 9, 0);
    port->send = faulty_send;
    port->wait = faulty_wait;
}

/* ---- a training ---------------------------------------------------------- */

typedef struct coded_case {
    kofn_net_shape shape;
    kofn_train_options o;
    digits d;
    kofn_net *plain;
} coded_case;

static void case_up(coded_case *t)
{
    *t = (coded_case){.shape = {.size = sizeof(kofn_net_shape),
                                .layers = 3,
                                .widths = widths},
                      .o = {.size = sizeof(kofn_train_options),
                            .step = 0.5,
                            .batch = 30,
                            .epochs = 2,
                            .seed = 3}};
    /* Whole batches: next to zeros every error is large. */
    t->d = make_digits(240, 8, 10, 1);
    t->plain = make_net(&t->shape);
    train_plain(t->plain, &t->d.X, &t->d.y, &t->o, NULL);
}

static void case_down(coded_case *t)
{
    digits_free(&t->d);
    kofn_net_free(t->plain);
}

/* Returns the largest deviation of a few rounded trainings from the plain
 * weights. */
static double rounded_deviation(const coded_case *t, double size)
{
    double most = 0;

    for (uint32_t i = 0; i < 3; i++) {
        rounded_training w = {kf_rng_stream(9, KF_FOR_DATA, 7, i), size};
        kofn_net *net = make_net(&t->shape);
        kf_passes p;

        assert_ok(kf_passes_new(&p, net, true, t->o.batch));
        for (size_t epoch = 0; epoch < t->o.epochs; epoch++)
            for (size_t at = 0; at < t->d.X.rows; at += t->o.batch)
                rounded_step(&w, net, &p, &t->d, epoch, at, &t->o);
        most = fmax(most, apart(net, t->plain));
        kf_passes_free(&p);
        kofn_net_free(net);
    }
    return most;
}

/* Trains with the faulty worker. Returns the deviation from the plain weights,
 * and the report of the products. */
static double trained(const coded_case *t, const char *spec, kofn_errors errors,
                      error_kind way, double size, kofn_report *rep)
{
    kofn_options opt = KOFN_OPTIONS_INIT;
    kofn_net *net = make_net(&t->shape);
    kofn_plan *plan[KOFN_NET_MOST];
    kofn_train_result res = KOFN_TRAIN_RESULT_INIT;
    kofn_training *train;
    kofn_port *port;
    kofn_job *job;
    double far;

    opt.errors = errors;
    opt.quarantine = 1000; /* the worker errs to the end */
    opt.late = -1;
    assert_ok(kofn_training_new(&train, net, &t->d.X, &t->d.y, &t->o));
    assert_ok(kofn_training_plans(train, spec, 8, 3, plan));
    assert_ok(kofn_port_sim(&port, 8, NULL));
    add_errors(port, way, size);
    assert_ok(kofn_open_all(&job, (const kofn_plan *const *)plan,
                            t->shape.layers, port, &opt));
    assert_ok(kofn_training_place(train, job));
    assert_ok(kofn_train(train, &res));
    for (size_t w = 0; w < res.rounds.workers; w++)
        assert_true(res.rounds.located[w] == 0 || w == FAULTY);
    *rep = res.rounds;
    kofn_close(job);
    for (size_t l = 0; l < t->shape.layers; l++)
        kofn_plan_free(plan[l]);
    kofn_training_free(train);
    far = apart(net, t->plain);
    kofn_net_free(net);
    return far;
}

static const char *const specs[] = {"gpd:m=2,n=1,p=1", "matdot:n=2"};
static const kofn_errors modes[] = {KOFN_ERRORS_ADVERSARIAL,
                                    KOFN_ERRORS_PROBABILISTIC};

/* If any error passed, the weights would deviate by much more. */
static void large_errors(void **state)
{
    static const double sizes[] = {1e-4, 1, 1e8};
    double honest;
    coded_case t;

    (void)state;
    case_up(&t);
    honest = rounded_deviation(&t, 0x1p-53);
    for (size_t s = 0; s < COUNT(specs); s++)
        for (size_t e = 0; e < COUNT(modes); e++)
            for (size_t way = 0; way < ERROR_KINDS; way++)
                for (size_t i = 0; i < (way <= ONE_WRONG ? 3 : 1); i++) {
                    kofn_report rep = KOFN_REPORT_INIT;
                    double far = trained(&t, specs[s], modes[e],
                                         (error_kind)way, sizes[i], &rep);

                    assert_true(rep.corrupt > 0);
                    if (!(far <= 1e-12 && far <= TIMES * honest))
                        fail_msg(
                            "%s: %g from the plain weights by errors %zu of "
                            "%g, rounded training %g",
                            specs[s], far, way, sizes[i], honest);
                }
    case_down(&t);
}

/* Sizes go from below the rounding of a number to far above the floor. What
 * passes has at most the effect of rounding to the size of the error or to the
 * floor, whichever is less. Some errors do pass: nothing better can be
 * promised. */
static void small_errors(void **state)
{
    size_t passed = 0, felt = 0, found = 0;
    double step = SLOWED > 1 ? 100 : 10, honest;
    coded_case t;

    (void)state;
    case_up(&t);
    honest = rounded_deviation(&t, 0x1p-53);
    for (size_t s = 0; s < COUNT(specs); s++)
        for (size_t way = ALL_WRONG; way <= ONE_WRONG; way++)
            for (double size = 1e-16; size < 1e-3; size *= step) {
                kofn_report rep = KOFN_REPORT_INIT;
                double far = trained(&t, specs[s], modes[way], (error_kind)way,
                                     size, &rep);
                double least = fmax(0x1p-53, fmin(size, rep.floor));
                double rounded = rounded_deviation(&t, least);

                if (getenv("KOFN_TEST_PRINT"))
                    print_message("%s, %s of %.0e: %.1e, rounded %.1e, floor "
                                  "%.1e, %u found\n",
                                  specs[s], way ? "one" : "all", size, far,
                                  rounded, rep.floor, rep.corrupt);
                if (!(far <= TIMES * rounded))
                    fail_msg("%s: %g from the plain weights by errors of %g, "
                             "rounded training %g, floor %g",
                             specs[s], far, size, rounded, rep.floor);
                passed += rep.corrupt == 0;
                felt += rep.corrupt == 0 && far > TIMES * honest;
                found += rep.corrupt > 0;
            }
    assert_true(passed > 0 && felt > 0 && found > 0);
    case_down(&t);
}

TEST_FILE(coded_lies_test)
{
    const struct CMUnitTest tests[] = {
        TEST(large_errors,
             "coded: errors above the floor do not change the weights"),
        TEST(small_errors, "coded: errors below the floor act like rounding"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
