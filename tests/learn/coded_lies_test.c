/* coded_lies_test.c -- what lies of a certain size can do to a training on
 * coded weights: those well above the floor nothing at all, and those below it
 * what rounding to that size would do (math/training.md 11). */
#include "train_rig.h"

#include "data/data.h"
#include "learn/net.h"

/* So many times as far from the plain weights as a twin may a training be:
 * codes enlarge what answers are wrong by, and the twin's roundings are by
 * chance. */
#define TIMES 100

#define LIAR 2

static const size_t widths[] = {64, 18, 12, 10};

/* ---- a twin -------------------------------------------------------------- */

/* The plain training, in which every number of the products that workers make
 * is wrong by `size` times the norms of what it is made of, up or down. */
typedef struct twin {
    kf_rng r;
    double size;
} twin;

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
    twin *t = ud;

    TRY(kf_multiplier_plain.multiply(NULL, pass, layer, a, b, out));
    for (size_t i = 0; pass != KF_PASS_GRADIENT && i < out->rows; i++)
        for (size_t j = 0; j < out->cols; j++) {
            double off =
                t->size * norm(a, false, i) * norm(b, pass == KF_PASS_BACK, j);

            *(double *)kf_at(out, i, j) += kf_rng_below(&t->r, 2) ? off : -off;
        }
    return KOFN_OK;
}

static void twin_step(twin *t, kofn_net *net, kf_passes *p, const digits *d,
                      size_t epoch, size_t from, const kofn_train_options *o)
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

/* ---- a liar -------------------------------------------------------------- */

typedef enum lie {
    ALL_WRONG, /* every number of an answer ... */
    ONE_WRONG, /* ... or one of them is off by so much of the largest */
    TURNED,
    NOTHING,
    NO_NUMBER,
    LIES
} lie;

/* Worker 2, as far as products go: what it stores is right, and so is what is
 * read of it. */
static struct {
    kofn_status (*send)(kofn_port *p, kf_msg *m);
    kofn_status (*wait)(kofn_port *p, kofn_time until, kofn_time atmost,
                        kf_msg *m);
    struct {
        uint32_t product, task;
    } asked[1 << 12];
    size_t count;
    lie way;
    double size;
    kf_rng r;
} liar;

static double largest(const kofn_matrix *y)
{
    double most = 0;

    for (size_t i = 0; i < y->rows * y->cols; i++)
        most = fmax(most, fabs(((double *)y->data)[i]));
    return most;
}

static void spoil(const kofn_matrix *y)
{
    size_t n = y->rows * y->cols, one = kf_rng_below(&liar.r, n);
    double *x = y->data, off = liar.size * largest(y);

    for (size_t i = 0; i < n; i++) {
        if (liar.way == ALL_WRONG || (liar.way == ONE_WRONG && i == one))
            x[i] += kf_rng_below(&liar.r, 2) ? off : -off;
        else if (liar.way == TURNED)
            x[i] = -x[i];
        else if (liar.way == NOTHING)
            x[i] = 0;
        else if (liar.way == NO_NUMBER && i == one)
            x[i] = (double)NAN;
    }
}

static kofn_status lying_send(kofn_port *p, kf_msg *m)
{
    if (m->type == KF_MSG_WORK && m->worker == LIAR && m->how != KF_HOW_READ) {
        assert_true(liar.count < COUNT(liar.asked));
        liar.asked[liar.count].product = m->product;
        liar.asked[liar.count++].task = m->task;
    }
    return liar.send(p, m);
}

static kofn_status lying_wait(kofn_port *p, kofn_time until, kofn_time atmost,
                              kf_msg *m)
{
    kofn_status st = liar.wait(p, until, atmost, m);

    for (size_t i = 0; !st && m->type == KF_MSG_RESULT && i < liar.count; i++)
        if (m->worker == LIAR && liar.asked[i].product == m->product &&
            liar.asked[i].task == m->task)
            spoil(&m->result->m);
    return st;
}

static void lies(kofn_port *port, lie way, double size)
{
    memset(&liar, 0, sizeof liar);
    liar.send = port->send;
    liar.wait = port->wait;
    liar.way = way;
    liar.size = size;
    liar.r = kf_rng_stream(5, KF_FOR_DATA, 9, 0);
    port->send = lying_send;
    port->wait = lying_wait;
}

/* ---- a training ---------------------------------------------------------- */

typedef struct lesson {
    kofn_net_shape shape;
    kofn_train_options o;
    digits d;
    kofn_net *plain;
} lesson;

static void lesson_up(lesson *t)
{
    *t = (lesson){.shape = {.size = sizeof(kofn_net_shape),
                            .layers = 3,
                            .widths = widths},
                  .o = {.size = sizeof(kofn_train_options),
                        .step = 0.5,
                        .batch = 30,
                        .epochs = 2,
                        .seed = 3}};
    t->d = make_digits(240, 8, 10,
                       1); /* whole batches: beside 0 no lie is small */
    t->plain = make_net(&t->shape);
    train_plain(t->plain, &t->d.X, &t->d.y, &t->o, NULL);
}

static void lesson_down(lesson *t)
{
    digits_free(&t->d);
    kofn_net_free(t->plain);
}

/* How far from the plain weights a twin ends, at most of a few. */
static double twins(const lesson *t, double size)
{
    double most = 0;

    for (uint32_t i = 0; i < 3; i++) {
        twin w = {kf_rng_stream(9, KF_FOR_DATA, 7, i), size};
        kofn_net *net = make_net(&t->shape);
        kf_passes p;

        assert_ok(kf_passes_new(&p, net, true, t->o.batch));
        for (size_t epoch = 0; epoch < t->o.epochs; epoch++)
            for (size_t at = 0; at < t->d.X.rows; at += t->o.batch)
                twin_step(&w, net, &p, &t->d, epoch, at, &t->o);
        most = fmax(most, apart(net, t->plain));
        kf_passes_free(&p);
        kofn_net_free(net);
    }
    return most;
}

/* How far it ends from the plain weights; its products' report. */
static double trained(const lesson *t, const char *spec, kofn_errors errors,
                      lie way, double size, kofn_report *rep)
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
    opt.quarantine = 1000; /* it lies to the end */
    opt.late = -1;
    assert_ok(kofn_training_new(&train, net, &t->d.X, &t->d.y, &t->o));
    assert_ok(kofn_training_plans(train, spec, 8, 3, plan));
    assert_ok(kofn_port_sim(&port, 8, NULL));
    lies(port, way, size);
    assert_ok(kofn_open_all(&job, (const kofn_plan *const *)plan,
                            t->shape.layers, port, &opt));
    assert_ok(kofn_training_place(train, job));
    assert_ok(kofn_train(train, &res));
    for (size_t w = 0; w < res.rounds.workers; w++)
        assert_true(res.rounds.located[w] == 0 || w == LIAR);
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

/* Were any of them let pass, the weights would be off by much more. */
static void large_lies_cost_nothing(void **state)
{
    static const double sizes[] = {1e-4, 1, 1e8};
    double honest;
    lesson t;

    (void)state;
    lesson_up(&t);
    honest = twins(&t, 0x1p-53);
    for (size_t s = 0; s < COUNT(specs); s++)
        for (size_t e = 0; e < COUNT(modes); e++)
            for (size_t way = 0; way < LIES; way++)
                for (size_t i = 0; i < (way <= ONE_WRONG ? 3 : 1); i++) {
                    kofn_report rep = KOFN_REPORT_INIT;
                    double far = trained(&t, specs[s], modes[e], (lie)way,
                                         sizes[i], &rep);

                    assert_true(rep.corrupt > 0);
                    if (!(far <= 1e-12 && far <= TIMES * honest))
                        fail_msg("%s: %g from the plain weights by lies %zu of "
                                 "%g, and a twin %g",
                                 specs[s], far, way, sizes[i], honest);
                }
    lesson_down(&t);
}

/* From below the rounding of a number to far above the floor: what passes does
 * no more than rounding to the size of the lie or to the floor, whichever is
 * less.  And it does pass: nothing better can be promised. */
static void small_lies_are_roundings(void **state)
{
    size_t passed = 0, felt = 0, found = 0;
    double step = SLOWED > 1 ? 100 : 10, honest;
    lesson t;

    (void)state;
    lesson_up(&t);
    honest = twins(&t, 0x1p-53);
    for (size_t s = 0; s < COUNT(specs); s++)
        for (size_t way = ALL_WRONG; way <= ONE_WRONG; way++)
            for (double size = 1e-16; size < 1e-3; size *= step) {
                kofn_report rep = KOFN_REPORT_INIT;
                double far =
                    trained(&t, specs[s], modes[way], (lie)way, size, &rep);
                double least = fmax(0x1p-53, fmin(size, rep.floor));
                double rounded = twins(&t, least);

                if (getenv("KOFN_TEST_TELL"))
                    print_message("%s, %s of %.0e: %.1e, twin %.1e, floor "
                                  "%.1e, %u found\n",
                                  specs[s], way ? "one" : "all", size, far,
                                  rounded, rep.floor, rep.corrupt);
                if (!(far <= TIMES * rounded))
                    fail_msg("%s: %g from the plain weights by lies of %g, and "
                             "a twin %g, with a floor of %g",
                             specs[s], far, size, rounded, rep.floor);
                passed += rep.corrupt == 0;
                felt += rep.corrupt == 0 && far > TIMES * honest;
                found += rep.corrupt > 0;
            }
    assert_true(passed > 0 && felt > 0 && found > 0);
    lesson_down(&t);
}

TEST_FILE(coded_lies_test)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_lies_cost_nothing),
        cmocka_unit_test(small_lies_are_roundings),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
