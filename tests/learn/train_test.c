/* train_test.c -- training by workers gives the weights of training without
 * them: for every scheme that sums, with stragglers, leaving and joining
 * workers. */
#include "train_rig.h"

static const size_t widths[] = {64, 16, 10};

/* Bounds on the distance between two trainings with few, small steps. */
#define ROUNDED_F64 1e-12
#define ROUNDED_F32 1e-5

static const kofn_faults straggling =
    KOFN_FAULTS_INIT(.spread = 0.3, .straggle = 0.2, .factor = 20,
                     .latency = 1e-4, .seed = 5);

static kofn_train_options options(void)
{
    return (kofn_train_options){.size = sizeof(kofn_train_options),
                                .step = 0.5,
                                .batch = 30,
                                .epochs = 2,
                                .momentum = 0.5,
                                .l2 = 1e-4,
                                .seed = 3};
}

/* ---- steps --------------------------------------------------------------- */

/* Keeps a copy of the weights of every step. */
typedef struct step_log {
    double loss[400], test[400];
    double w[400][2];
    unsigned steps, stop;
    kofn_train_step at; /* of the step `stop` */
    double *state;
    size_t n;
} step_log;

static int log_step(void *ud, const kofn_train_step *now,
                    const kofn_report *rep)
{
    step_log *d = ud;

    if (!rep)
        return 0;
    d->loss[now->step] = now->loss;
    d->test[now->step] = now->test_loss;
    d->steps = now->step;
    memcpy(d->w[now->step], now->state, sizeof d->w[0]);
    if (now->step != d->stop)
        return 0;
    d->at = *now;
    memcpy(d->state, now->state, 2 * d->n * sizeof(double));
    return 1;
}

/* One weight and one bias, fitted to one point by hand. */
static void steps_of_sgd(void **state)
{
    const size_t one[] = {1, 1};
    kofn_net_shape s = {.size = sizeof s,
                        .layers = 1,
                        .widths = one,
                        .loss = KOFN_NET_LOSS_SQUARES,
                        .output = KOFN_LINEAR};
    double x = 0.7, y = 1.3;
    kofn_matrix X = {&x, 1, 1, 1, KOFN_F64}, Y = {&y, 1, 1, 1, KOFN_F64};

    (void)state;
    for (int way = 0; way < 3; way++) {
        kofn_train_options o = {.size = sizeof o,
                                .step = 0.1,
                                .momentum = way ? 0.9 : 0,
                                .nesterov = way == 2,
                                .l2 = 0.01,
                                .epochs = 20};
        kofn_net *net = make_net(&s);
        step_log d = {0};
        double w[2], M[2] = {0};

        kf_net_read(net, w);
        o.watch = log_step;
        o.watch_ud = &d;
        train_plain(net, &X, &Y, &o, NULL);
        assert_int_equal(d.steps, 20);
        for (unsigned t = 1; t <= 20; t++) {
            double e = w[0] * x + w[1] - y, g[2] = {e * x, e};

            assert_at_most(fabs(d.loss[t] - e * e / 2), 1e-14);
            for (int i = 0; i < 2; i++) {
                g[i] += o.l2 * w[i];
                M[i] = o.momentum * M[i] + g[i];
                w[i] -= o.step * (way == 2 ? g[i] + o.momentum * M[i] : M[i]);
                assert_at_most(fabs(d.w[t][i] - w[i]), 1e-14);
            }
        }
        kofn_net_free(net);
    }
}

/* ---- with workers -------------------------------------------------------- */

static void compare(const worker_setup *c, const kofn_net_shape *s,
                    const kofn_matrix *X, const kofn_matrix *y,
                    const kofn_train_options *o, double bound)
{
    kofn_net *coded = make_net(s), *plain = make_net(s);
    kofn_train_result res = KOFN_TRAIN_RESULT_INIT,
                      want = KOFN_TRAIN_RESULT_INIT;

    train_plain(plain, X, y, o, &want);
    assert_ok(train_with(c, coded, X, y, o, &res));
    if (!(apart(coded, plain) <= bound))
        fail_msg("%s: weights are %g apart", c->spec, apart(coded, plain));
    assert_int_equal(res.steps, want.steps);
    assert_at_most(fabs(res.loss - want.loss), bound * 10);
    assert_true(res.rounds.rounds >= res.steps);
    kofn_net_free(coded);
    kofn_net_free(plain);
}

static void every_scheme_that_sums(void **state)
{
    static const char *const specs[] = {"gc:d=3",      "cgc:d=3",   "agc:d=3",
                                        "g-cgc:d=3",   "g-agc:d=3", "bcc",
                                        "replication", "uncoded"};
    kofn_net_shape s = {.size = sizeof s, .layers = 2, .widths = widths};
    kofn_train_options o = options();
    digits d = make_digits(100, 8, 10, 1);

    (void)state;
    for (size_t k = 0; k < COUNT(specs); k++)
        for (int sim = 0; sim < 2; sim++) {
            worker_setup c = {specs[k], 8, sim, sim ? &straggling : NULL, NULL};

            compare(&c, &s, &d.X, &d.y, &o, ROUNDED_F64);
        }
    digits_free(&d);
}

/* The rounding of sums has no effect on the count. Without labels there is no
 * accuracy. */
static void accuracy_is_counted(void **state)
{
    static const char *const specs[] = {"gc:d=3", "cgc:d=3", "agc:d=3",
                                        "g-agc:d=3"};
    kofn_net_shape s = {.size = sizeof s, .layers = 2, .widths = widths};
    kofn_train_options o = options();
    digits d = make_digits(100, 8, 10, 1);

    (void)state;
    o.watch = keep_accuracy;
    o.batch = 7;
    for (size_t k = 0; k < 2 * COUNT(specs); k++) {
        bool labels = k < COUNT(specs);
        worker_setup c = {specs[k % COUNT(specs)], 8, true, &straggling, NULL};
        accuracy_log plain = {{0}, 0}, coded = {{0}, 0};
        kofn_net *net;

        s.loss = labels ? KOFN_NET_LOSS_SOFTMAX : KOFN_NET_LOSS_SQUARES;
        s.autoencoder = !labels;
        s.widths = labels ? widths : (const size_t[]){64, 16, 64};
        net = make_net(&s);
        o.watch_ud = &plain;
        train_plain(net, &d.X, labels ? &d.y : NULL, &o, NULL);
        kofn_net_free(net);
        net = make_net(&s);
        o.watch_ud = &coded;
        assert_ok(train_with(&c, net, &d.X, labels ? &d.y : NULL, &o, NULL));
        kofn_net_free(net);
        assert_int_equal(plain.steps, 30);
        assert_int_equal(coded.steps, 30);
        for (unsigned i = 1; i <= 30; i++)
            assert_true(labels ? coded.of[i] == plain.of[i]
                               : isnan(coded.of[i]) && isnan(plain.of[i]));
    }
    digits_free(&d);
}

static void every_kind_of_net(void **state)
{
    static const kofn_activation f[] = {KOFN_SIGMOID, KOFN_TANH, KOFN_RELU,
                                        KOFN_LINEAR};
    const size_t deep[] = {64, 12, 10, 10}, wide[] = {64, 8, 5},
                 back[] = {64, 12, 64};
    worker_setup c = {"gc:d=3", 8, true, &straggling, NULL};
    kofn_train_options o = options();
    digits d = make_digits(70, 8, 10, 2); /* batches of 30, 30 and 10 */
    kofn_matrix T = random_matrix(70, 5, KOFN_F64, 4);

    (void)state;
    o.step = 0.1;
    for (size_t k = 0; k < 4; k++) {
        kofn_net_shape s = {
            .size = sizeof s, .layers = 3, .widths = deep, .activation = f[k]};

        o.nesterov = k % 2;
        compare(&c, &s, &d.X, &d.y, &o, ROUNDED_F64);
        s.loss = KOFN_NET_LOSS_SQUARES; /* labels, one of 10 each */
        s.output = f[3 - k];
        compare(&c, &s, &d.X, &d.y, &o, ROUNDED_F64);
        s.layers = 2; /* five numbers for each point */
        s.widths = wide;
        compare(&c, &s, &d.X, &T, &o, ROUNDED_F64);
        s.widths = back;
        s.autoencoder = true;
        compare(&c, &s, &d.X, NULL, &o, ROUNDED_F64);
    }
    {
        kofn_net_shape s = {.size = sizeof s,
                            .layers = 2,
                            .widths = back,
                            .loss = KOFN_NET_LOSS_SQUARES,
                            .autoencoder = true,
                            .sparsity = 0.1,
                            .sparsity_weight = 0.5};

        compare(&c, &s, &d.X, NULL, &o, ROUNDED_F64);
        s.dtype = KOFN_F32;
        compare(&c, &s, &d.X, NULL, &o, ROUNDED_F32);
    }
    kf_free(T.data);
    digits_free(&d);
}

static void float32(void **state)
{
    kofn_net_shape s = {
        .size = sizeof s, .layers = 2, .widths = widths, .dtype = KOFN_F32};
    kofn_train_options o = options();
    digits d = make_digits(100, 8, 10, 1);

    (void)state;
    for (int sim = 0; sim < 2; sim++) {
        worker_setup c = {"gc:d=3", 8, sim, sim ? &straggling : NULL, NULL};

        compare(&c, &s, &d.X, &d.y, &o, ROUNDED_F32);
    }
    digits_free(&d);
}

/* Workers leave and join at any step and within it. */
static void leaves_and_joins(void **state)
{
    static const kofn_fault_event all[] = {
        {2, 0, KOFN_FAULT_EVENT_LEAVE, 1, 0},
        {3, 0.5, KOFN_FAULT_EVENT_LEAVE, 4, 0},
        {4, 0, KOFN_FAULT_EVENT_JOIN, 0, 0},
        {4, 0, KOFN_FAULT_EVENT_JOIN, 0, 0},
        {5, 0, KOFN_FAULT_EVENT_SLOW, 2, 10},
        {5, 0.3, KOFN_FAULT_EVENT_LEAVE, 0, 0},
        {6, 0, KOFN_FAULT_EVENT_LEAVE, 9, 0},
        {6, 0.9, KOFN_FAULT_EVENT_JOIN, 0, 0},
        {7, 0, KOFN_FAULT_EVENT_JOIN, 0, 0},
        {8, 0, KOFN_FAULT_EVENT_LEAVE, 6, 0}};
    kofn_options opt = KOFN_OPTIONS_INIT;
    kofn_net_shape s = {.size = sizeof s, .layers = 2, .widths = widths};
    kofn_train_options o = options();
    digits d = make_digits(200, 8, 10, 1);

    (void)state;
    opt.events = all;
    opt.event_count = COUNT(all);
    for (int sim = 0; sim < 2; sim++) {
        worker_setup c = {"gc:d=3", 8, sim, NULL, &opt};
        kofn_net *coded = make_net(&s), *plain = make_net(&s);
        kofn_train_result res = KOFN_TRAIN_RESULT_INIT;

        train_plain(plain, &d.X, &d.y, &o, NULL);
        assert_ok(train_with(&c, coded, &d.X, &d.y, &o, &res));
        assert_at_most(apart(coded, plain), ROUNDED_F64);
        assert_int_equal(res.rounds.left, 5);
        assert_int_equal(res.rounds.joined, 4);
        kofn_net_free(coded);
        kofn_net_free(plain);
    }
    digits_free(&d);
}

static void too_few(void **state)
{
    static const kofn_fault_event all[] = {
        {3, 0, KOFN_FAULT_EVENT_LEAVE, 1, 0},
        {3, 0, KOFN_FAULT_EVENT_LEAVE, 4, 0},
        {3, 0, KOFN_FAULT_EVENT_LEAVE, 5, 0},
        {3, 0, KOFN_FAULT_EVENT_LEAVE, 6, 0}};
    kofn_options opt = KOFN_OPTIONS_INIT;
    kofn_net_shape s = {.size = sizeof s, .layers = 2, .widths = widths};
    kofn_train_options o = options();
    worker_setup c = {"gc:d=3", 8, true, NULL, &opt};
    digits d = make_digits(200, 8, 10, 1);
    kofn_net *net = make_net(&s), *two = make_net(&s);
    kofn_train_result res = KOFN_TRAIN_RESULT_INIT;

    (void)state;
    opt.events = all;
    opt.event_count = COUNT(all);
    assert_status(KOFN_TOOFEW, train_with(&c, net, &d.X, &d.y, &o, &res));
    assert_int_equal(res.steps, 2); /* the network is the result of two steps */
    {
        step_log stop = {.stop = 2, .n = two->total};

        stop.state = numbers(2 * stop.n, 8);
        o.watch = log_step;
        o.watch_ud = &stop;
        opt.event_count = 0;
        assert_int_equal(train_with(&c, two, &d.X, &d.y, &o, NULL), KOFN_AGAIN);
        assert_at_most(apart(net, two), 1e-14);
        kf_free(stop.state);
    }
    kofn_net_free(net);
    kofn_net_free(two);
    digits_free(&d);
}

/* Returns how far the first step went. */
static double step_length(const kofn_net *net, const kofn_net_shape *shape)
{
    kofn_net *before = make_net(shape);
    double way = apart(net, before);

    kofn_net_free(before);
    return way;
}

/* One part of eight is late and left out. The batch is smaller and its
 * gradient is scaled up: loss and step are nearly those of the whole batch. */
static void scaled_batch(void **state)
{
    static const kofn_fault_event gone[] = {
        {1, 0, KOFN_FAULT_EVENT_SLOW, 3, 1e6}};
    kofn_options opt = KOFN_OPTIONS_INIT;
    kofn_net_shape s = {.size = sizeof s, .layers = 2, .widths = widths};
    kofn_train_options o = {
        .size = sizeof o, .step = 0.5, .batch = 400, .epochs = 1};
    digits d = make_digits(400, 8, 10, 1);
    worker_setup c = {"ignore:wait=7,scale=none", 8, true, NULL, &opt};
    kofn_net *net = make_net(&s), *plain = make_net(&s);
    kofn_train_result all = KOFN_TRAIN_RESULT_INIT,
                      some = KOFN_TRAIN_RESULT_INIT;

    (void)state;
    opt.events = gone;
    opt.event_count = 1;
    train_plain(plain, &d.X, &d.y, &o, &all);
    assert_int_equal(train_with(&c, net, &d.X, &d.y, &o, &some), KOFN_PARTIAL);
    assert_true(apart(net, plain) > 1e-6);
    assert_at_most(fabs(some.loss / all.loss - 1), 0.04);
    assert_at_most(fabs(step_length(net, &s) / step_length(plain, &s) - 1),
                   0.06);
    kofn_net_free(net);
    kofn_net_free(plain);
    digits_free(&d);
}

/* ---- resuming ------------------------------------------------------------ */

static void resumes(void **state)
{
    kofn_net_shape s = {.size = sizeof s, .layers = 2, .widths = widths};
    worker_setup c = {"gc:d=3", 6, true, &straggling, NULL};
    digits d = make_digits(100, 8, 10, 1), t = make_digits(20, 8, 10, 9);
    kofn_train_options o = options();
    kofn_net *whole = make_net(&s);
    step_log all = {0};

    (void)state;
    o.watch = log_step;
    o.watch_ud = &all;
    o.test_X = &t.X;
    o.test_y = &t.y;
    assert_ok(train_with(&c, whole, &d.X, &d.y, &o, NULL));
    assert_int_equal(all.steps, 8);
    for (unsigned k = 1; k <= 8; k++)
        assert_true(isnan(all.test[k]) == (k % 4 != 0));
    for (unsigned stop = 1; stop <= 8; stop++) {
        kofn_net *net = make_net(&s), *next = make_net(&s);
        step_log first = {.stop = stop, .n = net->total}, rest = {0};

        first.state = numbers(2 * net->total, 8);
        o.watch_ud = &first;
        o.resume = NULL;
        assert_int_equal(train_with(&c, net, &d.X, &d.y, &o, NULL), KOFN_AGAIN);
        o.watch_ud = &rest;
        o.resume = &first.at;
        first.at.state = first.state;
        assert_ok(train_with(&c, next, &d.X, &d.y, &o, NULL));
        assert_int_equal(rest.steps, stop == 8 ? 0 : 8);
        assert_at_most(apart(next, whole), ROUNDED_F64);
        kf_free(first.state);
        kofn_net_free(net);
        kofn_net_free(next);
    }
    kofn_net_free(whole);
    digits_free(&d);
    digits_free(&t);
}

/* ---- learning ------------------------------------------------------------ */

static void digits_are_learnt(void **state)
{
    const size_t deep[] = {64, 32, 16, 10};
    digits d = make_digits(600, 8, 10, 1), t = make_digits(300, 8, 10, 2);
    kofn_net_shape s = {.size = sizeof s, .layers = 3, .widths = deep};
    kofn_train_options o = {.size = sizeof o,
                            .step = 2,
                            .batch = 20,
                            .epochs = 30,
                            .test_X = &t.X,
                            .test_y = &t.y};
    worker_setup c = {"gc:d=3", 6, true, &straggling, NULL};
    kofn_net *net = make_net(&s), *relu;
    kofn_train_result plain = KOFN_TRAIN_RESULT_INIT,
                      coded = KOFN_TRAIN_RESULT_INIT;

    (void)state;
    train_plain(net, &d.X, &d.y, &o, &plain);
    assert_true(plain.test_accuracy > 0.8); /* of ten classes */
    kofn_net_free(net);
    s.activation = KOFN_RELU;
    o.step = 0.05;
    o.momentum = 0.9;
    o.epochs = 15;
    net = make_net(&s);
    relu = make_net(&s);
    train_plain(relu, &d.X, &d.y, &o, &plain);
    assert_ok(train_with(&c, net, &d.X, &d.y, &o, &coded));
    assert_true(plain.test_accuracy > 0.8); /* of ten classes */
    assert_at_most(fabs(coded.test_accuracy - plain.test_accuracy), 0.002);
    kofn_net_free(net);
    kofn_net_free(relu);
    digits_free(&d);
    digits_free(&t);
}

static void too_long_steps(void **state)
{
    kofn_net_shape s = {.size = sizeof s,
                        .layers = 2,
                        .widths = widths,
                        .activation = KOFN_RELU,
                        .loss = KOFN_NET_LOSS_SQUARES,
                        .output = KOFN_LINEAR};
    kofn_train_options o = options();
    digits d = make_digits(100, 8, 10, 1);

    (void)state;
    o.step = 1e8;
    o.epochs = 40;
    for (int sim = 0; sim < 2; sim++) {
        worker_setup c = {"gc:d=2", 4, sim, NULL, NULL};
        kofn_net *net = make_net(&s);

        assert_status(KOFN_NONFINITE,
                      train_with(&c, net, &d.X, &d.y, &o, NULL));
        assert_non_null(strstr(kofn_errmsg(), "shorter"));
        kofn_net_free(net);
    }
    digits_free(&d);
}

/* A worker never answers. The network is the result of the steps before. */
static void stopped_within_a_round(void **state)
{
    static const kofn_fault_event slow[] = {
        {3, 0, KOFN_FAULT_EVENT_SLOW, 1, 1e6}};
    kofn_options opt = KOFN_OPTIONS_INIT;
    kofn_net_shape s = {.size = sizeof s, .layers = 2, .widths = widths};
    kofn_train_options o = options();
    digits d = make_digits(200, 8, 10, 1);
    kofn_net *net = make_net(&s);
    worker_setup c = {"uncoded", 3, false, NULL, &opt};
    kofn_train_result res = KOFN_TRAIN_RESULT_INIT;

    (void)state;
    opt.events = slow;
    opt.event_count = 1;
    opt.late = -1;
    o.watch = stop_on_wait;
    o.watch_ud = &(weights_log){.n = net->total};
    assert_int_equal(train_with(&c, net, &d.X, &d.y, &o, &res), KOFN_AGAIN);
    assert_true(res.steps <= 2);
    for (size_t i = 0; i <= res.steps; i++)
        kf_free(((weights_log *)o.watch_ud)->w[i]);
    assert_steps(net, res.steps, &s, &d.X, &d.y, &o, ROUNDED_F64);
    kofn_net_free(net);
    digits_free(&d);
}

static void failing_allocations(void **state)
{
    kofn_net_shape s = {.size = sizeof s, .layers = 2, .widths = widths};
    kofn_train_options o = options();
    kofn_status st = KOFN_NOMEM;
    digits d;

    (void)state;
    count_allocations(); /* before anything is allocated */
    d = make_digits(40, 8, 10, 1);
    o.test_X = &d.X;
    o.test_y = &d.y;
    for (long k = 1; st; k++) {
        kofn_net *net = NULL;
        kofn_training *t = NULL;
        long before = allocated();

        fail_allocation(k);
        st = kofn_net_new(&net, &s, 1);
        if (!st)
            st = kofn_training_new(&t, net, &d.X, &d.y, &o);
        if (!st)
            st = kofn_train_plain(t, NULL);
        fail_allocation(0);
        assert_true(st == KOFN_OK || st == KOFN_NOMEM);
        assert_true(!st == (k > 4) || k > 4);
        kofn_training_free(t);
        kofn_net_free(net);
        assert_int_equal(allocated(), before);
    }
    digits_free(&d);
}

TEST_FILE(train_test)
{
    const struct CMUnitTest tests[] = {
        TEST(steps_of_sgd, "train: steps are those of SGD, by hand"),
        TEST(every_scheme_that_sums,
             "train: every scheme that sums gives the plain weights"),
        TEST(accuracy_is_counted,
             "train: the accuracy of each step is the plain training's"),
        TEST(every_kind_of_net,
             "train: every kind of network gets the plain weights"),
        TEST(float32,
             "train: float32 trainings are the plain ones to rounding"),
        TEST(leaves_and_joins,
             "train: workers leave and join, and the weights are plain"),
        TEST(too_few,
             "train: too few workers end with the weights of the last step"),
        TEST(scaled_batch, "train: a batch without late parts is scaled up"),
        TEST(resumes, "train: a training resumes after any step"),
        TEST(digits_are_learnt,
             "train: coded training learns digits as well as plain training"),
        TEST(too_long_steps, "train: a step that overflows fails"),
        TEST(stopped_within_a_round,
             "train: a stop within a round keeps the last weights"),
        TEST(failing_allocations,
             "train: a failed allocation anywhere gives KOFN_NOMEM"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
