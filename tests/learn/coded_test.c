/* coded_test.c -- training on coded weights at the workers gives the weights
 * of training without workers, for every code of both products and under
 * stragglers. */
#include "train_rig.h"

#include "code/code.h"

/* Widths that no grid divides. */
static const size_t widths[] = {64, 17, 11, 10};

/* Bounds on the distance between two trainings with few, small steps. */
#define ROUNDED_F64 1e-12
#define ROUNDED_F32 1e-5

static const kofn_faults straggling =
    KOFN_FAULTS_INIT(.spread = 0.3, .straggle = 0.2, .factor = 20,
                     .latency = 1e-4, .seed = 5);

static kofn_net_shape shape_of_three(void)
{
    return (kofn_net_shape){
        .size = sizeof(kofn_net_shape), .layers = 3, .widths = widths};
}

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

/* A training on coded weights, and its job. */
typedef struct coded_job {
    kofn_training *t;
    kofn_plan *plan[KOFN_NET_MOST];
    kofn_job *job;
    size_t layers;
} coded_job;

static void coded_up(coded_job *k, const worker_setup *c, kofn_net *net,
                     const kofn_matrix *X, const kofn_matrix *y,
                     const kofn_train_options *o)
{
    kofn_port *port;

    *k = (coded_job){.layers = net->shape.layers};
    assert_ok(kofn_training_new(&k->t, net, X, y, o));
    assert_ok(kofn_training_plans(k->t, c->spec, c->workers, 3, k->plan));
    assert_ok(c->sim ? kofn_port_sim(&port, c->workers, c->faults)
                     : kofn_port_threads(&port, c->workers, c->faults));
    assert_ok(kofn_open_all(&k->job, (const kofn_plan *const *)k->plan,
                            k->layers, port, c->opt));
}

static void coded_down(coded_job *k)
{
    kofn_close(k->job);
    for (size_t l = 0; l < k->layers; l++)
        kofn_plan_free(k->plan[l]);
    kofn_training_free(k->t);
}

static kofn_status train_coded(const worker_setup *c, kofn_net *net,
                               const kofn_matrix *X, const kofn_matrix *y,
                               const kofn_train_options *o,
                               kofn_train_result *res)
{
    coded_job k;
    kofn_status st;

    coded_up(&k, c, net, X, y, o);
    assert_ok(kofn_training_place(k.t, k.job));
    st = kofn_train(k.t, res);
    coded_down(&k);
    return st;
}

static void compare(const worker_setup *c, const kofn_net_shape *s,
                    const kofn_matrix *X, const kofn_matrix *y,
                    const kofn_train_options *o, double bound)
{
    kofn_net *coded = make_net(s), *plain = make_net(s);
    kofn_train_result res = KOFN_TRAIN_RESULT_INIT,
                      want = KOFN_TRAIN_RESULT_INIT;

    train_plain(plain, X, y, o, &want);
    assert_ok(train_coded(c, coded, X, y, o, &res));
    if (!(apart(coded, plain) <= bound))
        fail_msg("%s: weights are %g apart", c->spec, apart(coded, plain));
    assert_int_equal(res.steps, want.steps);
    assert_at_most(fabs(res.loss - want.loss), bound * 10);
    assert_true(s->loss == KOFN_NET_LOSS_SQUARES ||
                res.accuracy == want.accuracy);
    if (o->test_X)
        assert_at_most(fabs(res.test_loss - want.test_loss), bound * 10);
    kofn_net_free(coded);
    kofn_net_free(plain);
}

/* ---- every code ---------------------------------------------------------- */

static void every_scheme_of_both_products(void **state)
{
    static const char *const specs[] = {
        "elastic",
        "elastic:k=6",
        "elastic:k=3,cut=columns",
        "gpd",
        "gpd:m=2,n=2,p=1",
        "gpd:m=2,n=2,p=1,sub=vum",
        "gpd:m=3,n=1,p=1",
        "gpd:m=1,n=2,p=2",
        "polydot",
        "matdot:n=3",
        "polynomial:m=3,p=1,basis=circle",
        "grid:m=4,n=2",
        "grid:m=2,n=2,copies=2",
        "grid:m=2,n=2,m2=3,n2=3",
    };
    kofn_net_shape s = shape_of_three();
    kofn_train_options o = options();
    digits d = make_digits(100, 8, 10, 1); /* batches of 30, 30, 30, 10 */

    (void)state;
    for (size_t k = 0; k < COUNT(specs); k++)
        for (int sim = 0; sim < PORTS; sim++) {
            worker_setup c = {specs[k], 8, sim, sim ? &straggling : NULL, NULL};

            compare(&c, &s, &d.X, &d.y, &o, ROUNDED_F64);
        }
    digits_free(&d);
}

static void every_kind_of_net(void **state)
{
    static const kofn_activation f[] = {KOFN_SIGMOID, KOFN_TANH, KOFN_RELU,
                                        KOFN_LINEAR};
    const size_t wide[] = {64, 8, 5}, back[] = {64, 12, 64};
    worker_setup c = {"gpd:m=2,n=2,p=1", 8, true, &straggling, NULL};
    kofn_train_options o = options();
    digits d = make_digits(70, 8, 10, 2);
    kofn_matrix T = random_matrix(70, 5, KOFN_F64, 4);

    (void)state;
    o.step = 0.1;
    o.test_X = &d.X;
    for (size_t k = 0; k < 4; k++) {
        kofn_net_shape s = shape_of_three();

        s.activation = f[k];
        o.nesterov = k % 2;
        o.momentum = k == 3 ? 0.9 : 0.5;
        o.test_y = &d.y;
        compare(&c, &s, &d.X, &d.y, &o, ROUNDED_F64);
        s.loss = KOFN_NET_LOSS_SQUARES;
        s.output = f[3 - k];
        compare(&c, &s, &d.X, &d.y, &o, ROUNDED_F64);
        s.layers = 2;
        s.widths = wide;
        o.test_y = &T;
        compare(&c, &s, &d.X, &T, &o, ROUNDED_F64);
        s.widths = back;
        s.autoencoder = true;
        o.test_y = NULL;
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
    }
    kf_free(T.data);
    digits_free(&d);
}

static void float32(void **state)
{
    static const char *const specs[] = {"elastic", "gpd",
                                        "grid:m=2,n=2,m2=3,n2=3"};
    kofn_net_shape s = shape_of_three();
    kofn_train_options o = options();
    digits d = make_digits(100, 8, 10, 1);

    (void)state;
    s.dtype = KOFN_F32;
    for (size_t k = 0; k < COUNT(specs); k++)
        for (int sim = 0; sim < PORTS; sim++) {
            worker_setup c = {specs[k], 8, sim, sim ? &straggling : NULL, NULL};

            compare(&c, &s, &d.X, &d.y, &o, ROUNDED_F32);
        }
    digits_free(&d);
}

static void accuracy_is_counted(void **state)
{
    const size_t back[] = {64, 12, 64};
    kofn_net_shape s = shape_of_three();
    kofn_train_options o = options();
    worker_setup c = {"gpd:m=2,n=2,p=1", 8, true, &straggling, NULL};
    digits d = make_digits(100, 8, 10, 1);

    (void)state;
    o.watch = keep_accuracy;
    for (int labels = 0; labels < 2; labels++) {
        accuracy_log plain = {{0}, 0}, coded = {{0}, 0};
        kofn_net *net;

        s.loss = labels ? KOFN_NET_LOSS_SOFTMAX : KOFN_NET_LOSS_SQUARES;
        s.autoencoder = !labels;
        s.widths = labels ? widths : back;
        s.layers = labels ? 3 : 2;
        net = make_net(&s);
        o.watch_ud = &plain;
        train_plain(net, &d.X, labels ? &d.y : NULL, &o, NULL);
        kofn_net_free(net);
        net = make_net(&s);
        o.watch_ud = &coded;
        assert_ok(train_coded(&c, net, &d.X, labels ? &d.y : NULL, &o, NULL));
        kofn_net_free(net);
        assert_int_equal(coded.steps, plain.steps);
        for (unsigned i = 1; i <= plain.steps; i++)
            assert_true(labels ? coded.of[i] == plain.of[i]
                               : isnan(coded.of[i]) && isnan(plain.of[i]));
    }
    digits_free(&d);
}

/* A step that cannot be completed has no effect: the network is the result of
 * the steps before. */
static void too_long_steps(void **state)
{
    static const char *const specs[] = {"elastic:k=4", "gpd:m=2,n=2,p=1"};
    kofn_net_shape s = shape_of_three();
    kofn_train_options o = options();
    digits d = make_digits(100, 8, 10, 1);

    (void)state;
    s.activation = KOFN_RELU;
    s.loss = KOFN_NET_LOSS_SQUARES;
    s.output = KOFN_LINEAR;
    o.step = 1e8;
    o.epochs = 40;
    for (size_t k = 0; k < 2 * COUNT(specs); k++) {
        worker_setup c = {specs[k / 2], 8, k % 2, NULL, NULL};
        kofn_net *net = make_net(&s);
        kofn_train_result res = KOFN_TRAIN_RESULT_INIT;

        assert_status(KOFN_NONFINITE,
                      train_coded(&c, net, &d.X, &d.y, &o, &res));
        assert_non_null(strstr(kofn_errmsg(), "try a shorter step"));
        for (size_t l = 1; l <= 3; l++) {
            const kofn_matrix *W = kofn_net_weights(net, l);

            for (size_t i = 0; i < W->rows * W->cols; i++)
                assert_true(isfinite(((const double *)W->data)[i]));
        }
        kofn_net_free(net);
    }
    digits_free(&d);
}

/* ---- joining and leaving workers ----------------------------------------- */

/* Joining workers get blocks of the current weights, rebuilt from others. They
 * are needed: five of the first eight leave, and six answers are required. */
static void leaves_and_joins(void **state)
{
    static const kofn_fault_event all[] = {
        {2, 0, KOFN_FAULT_EVENT_LEAVE, 1, 0},
        {3, 0.5, KOFN_FAULT_EVENT_SLOW, 2, 10},
        {3, 0, KOFN_FAULT_EVENT_JOIN, 0, 0},
        {5, 0.3, KOFN_FAULT_EVENT_LEAVE, 0, 0},
        {6, 0, KOFN_FAULT_EVENT_JOIN, 0, 0},
        {6, 0.6, KOFN_FAULT_EVENT_JOIN, 0, 0},
        {8, 0, KOFN_FAULT_EVENT_LEAVE, 4, 0},
        {9, 0, KOFN_FAULT_EVENT_LEAVE, 5, 0},
        {10, 0.9, KOFN_FAULT_EVENT_JOIN, 0, 0},
        {12, 0, KOFN_FAULT_EVENT_LEAVE, 7, 0}};
    static const char *const specs[] = {"elastic:k=4", "gpd:m=2,n=2,p=1"};
    kofn_options opt = KOFN_OPTIONS_INIT;
    kofn_net_shape s = shape_of_three();
    kofn_train_options o = options();
    digits d = make_digits(200, 8, 10, 1);

    (void)state;
    opt.events = all;
    opt.event_count = COUNT(all);
    for (size_t k = 0; k < COUNT(specs); k++)
        for (int sim = 0; sim < PORTS; sim++) {
            worker_setup c = {specs[k], 8, sim, sim ? &straggling : NULL, &opt};
            kofn_net *coded = make_net(&s), *plain = make_net(&s);
            kofn_train_result res = KOFN_TRAIN_RESULT_INIT;

            train_plain(plain, &d.X, &d.y, &o, NULL);
            assert_ok(train_coded(&c, coded, &d.X, &d.y, &o, &res));
            assert_at_most(apart(coded, plain), ROUNDED_F64);
            assert_int_equal(res.rounds.left, 5);
            assert_int_equal(res.rounds.joined, 4);
            kofn_net_free(coded);
            kofn_net_free(plain);
        }
    digits_free(&d);
}

/* ---- state --------------------------------------------------------------- */

/* Stops after a step and keeps its state. */
typedef struct saved_state {
    coded_job *k;
    unsigned stop;
    kofn_train_step at;
    double *state;
    size_t n;
} saved_state;

static int save_state(void *ud, const kofn_train_step *now,
                      const kofn_report *rep)
{
    saved_state *d = ud;
    const double *state;

    if (!rep || now->step != d->stop)
        return 0;
    assert_null(now->state);
    assert_ok(kofn_training_state(d->k->t, &state));
    d->at = *now;
    memcpy(d->state, state, 2 * d->n * sizeof *state);
    d->at.state = d->state;
    return 1;
}

/* Three of eight workers leave in step 3, and any six are needed. The network
 * is the result of two steps, which five workers still determine. */
static void too_few(void **state)
{
    static const kofn_fault_event all[] = {
        {3, 0, KOFN_FAULT_EVENT_LEAVE, 1, 0},
        {3, 0, KOFN_FAULT_EVENT_LEAVE, 4, 0},
        {3, 0, KOFN_FAULT_EVENT_LEAVE, 6, 0}};
    kofn_options opt = KOFN_OPTIONS_INIT;
    kofn_net_shape s = shape_of_three();
    kofn_train_options o = options();
    worker_setup c = {"gpd:m=2,n=2,p=1", 8, true, NULL, &opt};
    digits d = make_digits(200, 8, 10, 1);
    kofn_net *net = make_net(&s), *two = make_net(&s);
    coded_job k;
    saved_state at = {.k = &k, .stop = 2, .n = net->total};
    kofn_train_result res = KOFN_TRAIN_RESULT_INIT;

    (void)state;
    o.momentum = 0;
    opt.events = all;
    opt.event_count = COUNT(all);
    assert_status(KOFN_TOOFEW, train_coded(&c, net, &d.X, &d.y, &o, &res));
    assert_non_null(strstr(kofn_errmsg(), "5 workers are left"));
    assert_int_equal(res.steps, 2);
    at.state = numbers(2 * at.n, 8);
    o.watch = save_state;
    o.watch_ud = &at;
    opt.event_count = 0;
    coded_up(&k, &c, two, &d.X, &d.y, &o);
    assert_ok(kofn_training_place(k.t, k.job));
    assert_int_equal(kofn_train(k.t, NULL), KOFN_AGAIN);
    coded_down(&k);
    assert_at_most(apart(net, two), ROUNDED_F64);
    kf_free(at.state);
    kofn_net_free(net);
    kofn_net_free(two);
    digits_free(&d);
}

/* Weights and velocities are read from workers and given to others, with the
 * result of an unbroken training. */
static void stop_and_resume(const worker_setup *c, kofn_net_shape s,
                            kofn_train_options o, const digits *d, double bound)
{
    kofn_net *net = make_net(&s), *plain = make_net(&s), *rest = make_net(&s);
    coded_job k;
    saved_state at = {.k = &k, .stop = 3, .n = net->total};

    at.state = numbers(2 * at.n, 8);
    train_plain(plain, &d->X, &d->y, &o, NULL);
    o.watch = save_state;
    o.watch_ud = &at;
    coded_up(&k, c, net, &d->X, &d->y, &o);
    assert_ok(kofn_training_place(k.t, k.job));
    assert_int_equal(kofn_train(k.t, NULL), KOFN_AGAIN);
    {
        const double *none;

        assert_status(KOFN_STATE, kofn_training_state(k.t, &none));
    }
    coded_down(&k);
    kf_net_write(rest, at.state); /* the network has it as well */
    assert_true(apart(net, rest) == 0);
    o.watch = NULL;
    o.resume = &at.at;
    assert_ok(train_coded(c, rest, &d->X, &d->y, &o, NULL));
    assert_at_most(apart(rest, plain), bound);
    kofn_net_free(net);
    kofn_net_free(plain);
    kofn_net_free(rest);
    kf_free(at.state);
}

static void resumes_from_a_state(void **state)
{
    static const char *const specs[] = {"elastic:k=4", "gpd:m=2,n=2,p=1",
                                        "matdot:n=3"};
    digits d = make_digits(100, 8, 10, 1);

    (void)state;
    for (size_t k = 0; k < COUNT(specs); k++)
        for (int way = 0; way < 4; way++) {
            worker_setup c = {specs[k], 8, way != 1,
                              way != 1 ? &straggling : NULL, NULL};
            kofn_train_options o = options();
            kofn_net_shape s = shape_of_three();

            o.momentum = way ? 0.9 : 0;
            o.nesterov = way == 2;
            s.dtype = way == 3 ? KOFN_F32 : KOFN_F64;
            stop_and_resume(&c, s, o, &d, way == 3 ? ROUNDED_F32 : ROUNDED_F64);
        }
    digits_free(&d);
}

static int has_no_state(void *ud, const kofn_train_step *now,
                        const kofn_report *rep)
{
    (void)rep;
    assert_null(now->state);
    ++*(unsigned *)ud;
    return 0;
}

/* The weights are also read for a test on other points. */
static void no_state_unasked(void **state)
{
    kofn_net_shape s = shape_of_three();
    kofn_train_options o = options();
    worker_setup c = {"elastic:k=4", 8, true, NULL, NULL};
    digits d = make_digits(100, 8, 10, 1);
    kofn_net *net = make_net(&s);
    unsigned looks = 0;

    (void)state;
    o.test_X = &d.X;
    o.test_y = &d.y;
    o.watch = has_no_state;
    o.watch_ud = &looks;
    assert_ok(train_coded(&c, net, &d.X, &d.y, &o, NULL));
    assert_true(looks >= 8);
    kofn_net_free(net);
    digits_free(&d);
}

/* ---- wrong blocks -------------------------------------------------------- */

/* Bits flip, one worker errs from some step on, others leave and join. The
 * weights are those of the plain training, and the faulty worker is
 * quarantined. */
static void wrong_blocks(void **state)
{
    static const kofn_fault_event all[] = {
        {2, 0, KOFN_FAULT_EVENT_FLIP, 1, 0},
        {3, 0.5, KOFN_FAULT_EVENT_FLIP, 0, 0},
        {4, 0, KOFN_FAULT_EVENT_CORRUPT, 3, 0},
        {6, 0, KOFN_FAULT_EVENT_LEAVE, 4, 0},
        {6, 0, KOFN_FAULT_EVENT_JOIN, 0, 0},
        {9, 0, KOFN_FAULT_EVENT_FLIP, 6, 0}};
    static const char *const specs[] = {"gpd:m=2,n=1,p=1", "matdot:n=2",
                                        "polynomial:m=2,p=1,basis=circle"};
    digits d = make_digits(200, 8, 10, 1);
    kofn_net_shape s = shape_of_three();
    kofn_train_options o = options();

    (void)state;
    o.scrub = 1;
    for (size_t k = 0; k < COUNT(specs); k++)
        for (int sim = 0; sim < PORTS; sim++) {
            kofn_options opt = KOFN_OPTIONS_INIT;
            worker_setup c = {specs[k], 8, sim, NULL, &opt};
            kofn_net *coded = make_net(&s), *plain = make_net(&s);
            kofn_train_result res = KOFN_TRAIN_RESULT_INIT;
            coded_job t;

            opt.quarantine = 1;
            opt.errors = KOFN_ERRORS_PROBABILISTIC;
            opt.late = -1;
            opt.events = all;
            opt.event_count = COUNT(all);
            train_plain(plain, &d.X, &d.y, &o, NULL);
            coded_up(&t, &c, coded, &d.X, &d.y, &o);
            assert_ok(kofn_training_place(t.t, t.job));
            assert_ok(kofn_train(t.t, &res));
            assert_at_most(apart(coded, plain), ROUNDED_F64);
            assert_true(res.rounds.rebuilt >=
                        2); /* flipped bits may have no effect */
            assert_int_equal(res.rounds.states[3], KOFN_WORKER_QUARANTINED);
            /* errors below the floor remain in rebuilt blocks */
            assert_true(res.rounds.drift > 0 &&
                        res.rounds.drift < res.rounds.floor);
            coded_down(&t);
            kofn_net_free(coded);
            kofn_net_free(plain);
        }
    digits_free(&d);
}

/* With sums, or without error search, there is nothing to compare. */
static void scrubs_are_refused(void **state)
{
    kofn_net_shape s = shape_of_three();
    kofn_train_options o = options();
    digits d = make_digits(40, 8, 10, 1);
    worker_setup c = {"gc:d=2", 4, true, NULL, NULL};
    kofn_net *net = make_net(&s);

    (void)state;
    o.scrub = 2;
    assert_status(KOFN_UNSUITED, train_with(&c, net, &d.X, &d.y, &o, NULL));
    c.spec = "matdot:n=2";
    assert_status(KOFN_UNSUITED, train_coded(&c, net, &d.X, &d.y, &o, NULL));
    kofn_net_free(net);
    digits_free(&d);
}

/* The round is still outstanding, so the weights are those of the last fetch.
 */
static void stopped_within_a_round(void **state)
{
    static const kofn_fault_event slow[] = {
        {3, 0, KOFN_FAULT_EVENT_SLOW, 1, 1e6}};
    kofn_options opt = KOFN_OPTIONS_INIT;
    kofn_net_shape s = shape_of_three();
    kofn_train_options o = options();
    digits d = make_digits(200, 8, 10, 1);
    kofn_net *net = make_net(&s);
    worker_setup c = {"grid:m=2,n=2", 4, false, NULL, &opt};
    kofn_train_result res = KOFN_TRAIN_RESULT_INIT;

    (void)state;
    opt.events = slow;
    opt.event_count = 1;
    opt.late = -1;
    o.watch = stop_on_wait;
    o.watch_ud = &(weights_log){.n = net->total};
    assert_int_equal(train_coded(&c, net, &d.X, &d.y, &o, &res), KOFN_AGAIN);
    assert_true(res.steps <= 2);
    assert_steps(net, 0, &s, &d.X, &d.y, &o, 0);
    kofn_net_free(net);
    digits_free(&d);
}

static void failing_allocations(void **state)
{
    kofn_net_shape s = shape_of_three();
    kofn_train_options o = options();
    worker_setup c = {"gpd:m=2,n=2,p=1", 6, true, NULL, NULL};
    digits d = make_digits(40, 8, 10, 1);
    kofn_net *net = make_net(&s);
    long before = allocated();
    kofn_status st = KOFN_NOMEM;

    (void)state;
    o.epochs = 1;
    for (long k = 1; st; k += 1 + k / 8) {
        kofn_plan *plan[3] = {NULL};
        kofn_training *t = NULL;
        kofn_job *job = NULL;
        kofn_port *port;

        fail_allocation(k);
        st = kofn_training_new(&t, net, &d.X, &d.y, &o);
        if (!st)
            st = kofn_training_plans(t, c.spec, c.workers, 3, plan);
        for (size_t l = 0; l < 3 && st; l++)
            assert_null(plan[l]);
        if (!st)
            st = kofn_port_sim(&port, c.workers, NULL);
        if (!st)
            st = kofn_open_all(&job, (const kofn_plan *const *)plan, 3, port,
                               NULL);
        if (!st)
            st = kofn_training_place(t, job);
        if (!st)
            st = kofn_train(t, NULL);
        fail_allocation(0);
        assert_true(st == KOFN_OK || st == KOFN_NOMEM);
        kofn_close(job);
        for (size_t l = 0; l < 3; l++)
            kofn_plan_free(plan[l]);
        kofn_training_free(t);
        assert_int_equal(allocated(), before);
    }
    kofn_net_free(net);
    digits_free(&d);
}

/* ---- plans --------------------------------------------------------------- */

static void plans_are_chosen(void **state)
{
    static const struct {
        const char *given, *made;
        size_t workers;
    } of[] = {
        {"gpd", "gpd:m=2,n=2,p=1,sub=uvn,basis=circle,angles=8", 8},
        {"gpd", "gpd:m=2,n=2,p=1,sub=uvn,basis=circle,angles=9", 9},
        {"gpd", "gpd:m=2,n=3,p=1,sub=uvn,basis=circle,angles=12", 12},
        {"gpd", "gpd:m=1,n=1,p=1,sub=uvn,basis=circle,angles=1", 1},
        {"polydot", "polydot:m=2,n=2,p=1,basis=circle,angles=8", 8},
    };
    kofn_net_shape s = shape_of_three();
    digits d = make_digits(50, 8, 10, 1);
    kofn_net *net = make_net(&s);
    kofn_training *t;

    (void)state;
    assert_ok(kofn_training_new(&t, net, &d.X, &d.y, NULL));
    for (size_t i = 0; i < COUNT(of); i++) {
        kofn_plan *plan[3];

        assert_ok(kofn_training_plans(t, of[i].given, of[i].workers, 3, plan));
        assert_string_equal(plan[2]->spec, of[i].made);
        assert_int_equal(plan[1]->layout.problem.m, 11);
        assert_int_equal(plan[1]->layout.problem.n, 18);
        assert_int_equal(plan[1]->layout.problem.p, 32); /* a batch */
        for (size_t l = 0; l < 3; l++)
            kofn_plan_free(plan[l]);
    }
    {
        kofn_plan *plan[3];

        assert_status(KOFN_UNSUITED,
                      kofn_training_plans(t, "mds:k=3", 8, 3, plan));
        assert_null(plan[0]);
    }
    kofn_training_free(t);
    kofn_net_free(net);
    digits_free(&d);
}

TEST_FILE(coded_test)
{
    const struct CMUnitTest tests[] = {
        TEST(every_scheme_of_both_products,
             "coded: every code of both products gives the plain weights"),
        TEST(every_kind_of_net,
             "coded: every kind of network gets the plain weights"),
        TEST(float32,
             "coded: float32 trainings are the plain ones to rounding"),
        TEST(accuracy_is_counted,
             "coded: the accuracy of each step is the plain training's"),
        TEST(too_long_steps,
             "coded: a step that overflows fails and changes no weight"),
        TEST(leaves_and_joins,
             "coded: five workers leave, four join, and the weights are plain"),
        TEST(too_few,
             "coded: too few workers end with the weights of the last step"),
        TEST(resumes_from_a_state, "coded: a training resumes from its state"),
        TEST(no_state_unasked, "coded: a watch gets no state without asking"),
        TEST(wrong_blocks,
             "coded: wrong blocks are rebuilt and a faulty worker excluded"),
        TEST(scrubs_are_refused,
             "coded: a scrub without error search is refused"),
        TEST(stopped_within_a_round,
             "coded: a stop within a round keeps the last weights"),
        TEST(failing_allocations,
             "coded: a failed allocation anywhere ends with KOFN_NOMEM"),
        TEST(plans_are_chosen, "coded: plans are chosen for both products"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
