/* nets_stream_test.c -- five networks are trained together. Each of their
 * products is one of a stream of coded products. With two hidden layers there
 * are eight in an iteration. They are put while the products of other networks
 * are under way (math/training.md 3). */
#include "alloc_rig.h"
#include "train_rig.h"

#define NETS 5
#define BATCH 40
#define POINTS 200
#define EPOCHS 6
#define ITERATIONS (EPOCHS * POINTS / BATCH)

static const size_t widths[] = {64, 24, 16, 10};
static const double steps[NETS] = {0.1, 0.15, 0.2, 0.25, 0.3};

/* Networks on one job, and the reports to their watch function. */
typedef struct networks {
    kofn_net *net[NETS];
    digits d;
    kofn_nets *nets;
    kofn_plan *plan;
    kofn_job *job;
    size_t products, over;
    double apart, loss[NETS];
    unsigned stop; /* stops after this number of products; 0: never */
} networks;

static int watch(void *ud, const kofn_nets_step *now, const kofn_report *rep)
{
    networks *c = ud;

    if (!now)
        return 0;
    assert_int_equal(now->net, c->products++ % NETS);
    assert_int_equal(now->product - 1, (c->products - 1) / NETS % 8);
    assert_int_equal(now->of, 8);
    assert_true(rep->number == c->products && rep->ended >= rep->began);
    if (now->product == now->of) {
        c->over++;
        assert_int_equal(now->iteration, (c->products - 1) / NETS / 8 + 1);
        c->apart = fmax(c->apart, now->apart);
        c->loss[now->net] = now->loss;
    } else {
        assert_true(isnan(now->loss) && isnan(now->apart));
    }
    return c->stop && c->products == c->stop;
}

static kofn_net_shape shape(void)
{
    return (kofn_net_shape){.size = sizeof(kofn_net_shape),
                            .layers = 3,
                            .widths = widths,
                            .activation = KOFN_RELU};
}

static kofn_nets_options options(networks *c)
{
    return (kofn_nets_options){.size = sizeof(kofn_nets_options),
                               .step = steps,
                               .batch = BATCH,
                               .iterations = ITERATIONS,
                               .seed = 1,
                               .verify = true,
                               .watch = watch,
                               .watch_ud = c};
}

static void begin(networks *c, const kofn_net_shape *s,
                  const kofn_nets_options *o, const char *spec, bool sim,
                  const kofn_faults *faults)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_STREAM, BATCH, 65, 24, s->dtype, false);
    kofn_port *port;

    c->d = make_digits(POINTS, 8, 10, 1);
    for (size_t i = 0; i < NETS; i++)
        c->net[i] = make_net(s);
    assert_ok(kofn_nets_new(&c->nets, c->net, NETS, &c->d.X, &c->d.y, o));
    assert_ok(kofn_plan_new(&c->plan, &pb, spec, 4, 7));
    assert_ok(sim ? kofn_port_sim(&port, 4, faults)
                  : kofn_port_threads(&port, 4, faults));
    assert_ok(kofn_open(&c->job, c->plan, port, NULL));
}

static void end(networks *c)
{
    kofn_close(c->job);
    kofn_plan_free(c->plan);
    kofn_nets_free(c->nets);
    for (size_t i = 0; i < NETS; i++)
        kofn_net_free(c->net[i]);
    digits_free(&c->d);
}

/* ---- the plain weights --------------------------------------------------- */

/* Compares network i with the result of kofn_train_plain, which computes the
 * same batches in another way. */
static void assert_trained(const networks *c, size_t i, const kofn_net_shape *s)
{
    kofn_train_options o = {.size = sizeof o,
                            .step = steps[i],
                            .batch = BATCH,
                            .epochs = EPOCHS,
                            .seed = 1};
    kofn_net *plain = make_net(s);
    kofn_train_result res = KOFN_TRAIN_RESULT_INIT;
    kofn_score before, after;

    assert_ok(kofn_net_score(plain, &c->d.X, &c->d.y, &before));
    assert_ok(kofn_net_score(c->net[i], &c->d.X, &c->d.y, &after));
    assert_true(after.loss < before.loss);
    train_plain(plain, &c->d.X, &c->d.y, &o, &res);
    assert_at_most(apart(c->net[i], plain), 1e-8);
    assert_at_most(fabs(c->loss[i] - res.loss), 1e-8);
    kofn_net_free(plain);
}

static void train_five(const char *spec, bool sim, const kofn_faults *faults)
{
    kofn_net_shape s = shape();
    networks c = {.products = 0};
    kofn_nets_options o = options(&c);

    begin(&c, &s, &o, spec, sim, faults);
    assert_ok(kofn_nets_train(c.nets, c.job));
    assert_int_equal(c.products, NETS * ITERATIONS * 8);
    assert_int_equal(c.over, NETS * ITERATIONS);
    assert_at_most(c.apart, 1e-8);
    for (size_t i = 0; i < NETS; i++)
        assert_trained(&c, i, &s);
    assert_int_equal(kofn_nets_train(c.nets, c.job), KOFN_STATE);
    end(&c);
}

static void five_networks(void **state)
{
    static const char *const specs[] = {"dip:m=2,p=3,T=3,lambda=1",
                                        "polynomial:m=2,p=1", "uncoded",
                                        "idip:m=2,p=3,N=10,W=4"};
    static const kofn_faults slow =
        KOFN_FAULTS_INIT(.straggle = 0.3, .factor = 5,
                         .clock = KOFN_CLOCK_MODELLED, .seed = 3);

    (void)state;
    for (size_t k = 0; k < COUNT(specs); k++)
        train_five(specs[k], true, &slow);
    train_five(specs[0], false, NULL);
}

/* ---- gradients ----------------------------------------------------------- */

/* Returns the mean cost over all points with weight j changed by `by`. */
static double cost_with(const networks *c, kofn_net *net, double *w, size_t j,
                        double by)
{
    double was = w[j];
    kofn_score score;

    w[j] += by;
    kf_net_write(net, w);
    assert_ok(kofn_net_score(net, &c->d.X, &c->d.y, &score));
    w[j] = was;
    return score.loss;
}

/* Makes a step over all points. The activations are sigmoids, which have no
 * corners. The change of the weights is compared with the slope of the cost. */
static void gradients(void **state)
{
    static const double one[NETS] = {1, 1, 1, 1, 1};
    kofn_net_shape s = shape();
    networks c = {.products = 0};
    kofn_nets_options o = options(&c);
    kofn_net *at = make_net(&(kofn_net_shape){.size = sizeof s,
                                              .layers = 3,
                                              .widths = widths,
                                              .activation = KOFN_SIGMOID});
    double *w, *moved, scale = 0;

    (void)state;
    s.activation = KOFN_SIGMOID;
    o.step = one;
    o.batch = POINTS;
    o.iterations = 1;
    begin(&c, &s, &o, "dip:m=2,p=3,T=3,lambda=1", true, NULL);
    assert_ok(kofn_nets_train(c.nets, c.job));
    w = numbers(at->total, 8);
    moved = numbers(at->total, 8);
    kf_net_read(at, w);
    kf_net_read(c.net[2], moved);
    for (size_t j = 0; j < at->total; j++)
        scale = fmax(scale, fabs(w[j] - moved[j]));
    for (size_t j = 0; j < at->total; j += 37) {
        double h = 1e-4, slope = (cost_with(&c, at, w, j, h) -
                                  cost_with(&c, at, w, j, -h)) /
                                 (2 * h);

        assert_at_most(fabs(w[j] - moved[j] - slope) / scale, 1e-6);
    }
    kf_free(w);
    kf_free(moved);
    kofn_net_free(at);
    end(&c);
}

/* ---- others -------------------------------------------------------------- */

/* The training in single precision is stopped. Completed steps stay. */
static void float32_and_stopped(void **state)
{
    kofn_net_shape s = shape();
    networks c = {.stop = 8 * NETS + 3};
    kofn_nets_options o = options(&c);

    (void)state;
    s.dtype = KOFN_F32;
    begin(&c, &s, &o, "idip:m=2,p=3,N=10,W=4", true, NULL);
    assert_int_equal(kofn_nets_train(c.nets, c.job), KOFN_AGAIN);
    assert_int_equal(c.products, c.stop);
    assert_int_equal(c.over, NETS);
    assert_at_most(c.apart, 1e-5);
    assert_true(c.apart > 0);
    end(&c);
}

static void refusals(void **state)
{
    static const double none[NETS] = {0.1, 0, 0.1, 0.1, 0.1};
    static const size_t sparse[] = {64, 9, 64}, narrow[] = {63, 24, 10};
    kofn_net_shape s = shape(),
                   a = {.size = sizeof a,
                        .layers = 2,
                        .widths = sparse,
                        .loss = KOFN_NET_LOSS_SQUARES,
                        .autoencoder = true,
                        .sparsity = 0.1,
                        .sparsity_weight = 1},
                   b = {.size = sizeof b, .layers = 2, .widths = narrow};
    networks c = {.products = 0};
    kofn_nets_options o = options(&c);
    kofn_net *good = make_net(&s), *bad = make_net(&a), *other = make_net(&b);
    kofn_net *const five[] = {good, good, good, good, good};
    digits d = make_digits(POINTS, 8, 10, 1);
    kofn_nets *n;

    (void)state;
    assert_int_equal(kofn_nets_new(&n, five, 0, &d.X, &d.y, &o), KOFN_INVAL);
    assert_int_equal(kofn_nets_new(&n, five, 17, &d.X, &d.y, &o), KOFN_INVAL);
    assert_int_equal(kofn_nets_new(&n, five, 5, NULL, &d.y, &o), KOFN_INVAL);
    assert_int_equal(kofn_nets_new(&n, five, 5, &d.X, NULL, &o), KOFN_INVAL);
    assert_int_equal(kofn_nets_new(&n, &bad, 1, &d.X, NULL, &o), KOFN_UNSUITED);
    assert_int_equal(kofn_nets_new(&n, &other, 1, &d.X, &d.y, &o), KOFN_SHAPE);
    o.step = none;
    assert_int_equal(kofn_nets_new(&n, five, 5, &d.X, &d.y, &o), KOFN_INVAL);
    assert_null(n);
    kofn_nets_free(NULL);
    kofn_net_free(good);
    kofn_net_free(bad);
    kofn_net_free(other);
    digits_free(&d);
}

/* The step of one network is so large that numbers overflow. The error names
 * the network. */
static void overflow(void **state)
{
    static const double step[NETS] = {0.1, 0.1, 1e200, 0.1, 0.1};
    kofn_net_shape s = shape();
    networks c = {.products = 0};
    kofn_nets_options o = options(&c);

    (void)state;
    o.step = step;
    o.verify = false;
    begin(&c, &s, &o, "dip:m=2,p=3,T=3,lambda=1", true, NULL);
    assert_true(kofn_nets_train(c.nets, c.job) < 0);
    assert_non_null(strstr(kofn_errmsg(), "network 2, iteration 2"));
    end(&c);
}

/* ---- networks for a delay ------------------------------------------------ */

static void long_delay(void **state)
{
    static const char *const specs[] = {"dip:m=2,p=3,T=4,lambda=1",
                                        "idip:m=2,p=3,N=14,W=5"};
    kofn_net_shape s = shape();

    (void)state;
    for (size_t k = 0; k < COUNT(specs); k++) {
        networks c = {.products = 0};
        kofn_nets_options o = options(&c);

        begin(&c, &s, &o, specs[k], true, NULL);
        assert_int_equal(kofn_nets_train(c.nets, c.job), KOFN_UNSUITED);
        assert_non_null(strstr(kofn_errmsg(), "4 rounds more"));
        assert_non_null(strstr(kofn_errmsg(), "6 networks"));
        assert_int_equal(c.products, 0);
        end(&c);
    }
}

/* ---- memory -------------------------------------------------------------- */

#define FEW 3

static kofn_status few_trained(const kofn_matrix *X, const kofn_matrix *y,
                               kofn_net *const *net, kofn_nets **nets,
                               kofn_job *job)
{
    const kofn_nets_options o = {
        .size = sizeof o, .batch = 4, .iterations = 2, .verify = true};
    kofn_status st = kofn_nets_new(nets, net, FEW, X, y, &o);

    return st ? st : kofn_nets_train(*nets, job);
}

static kofn_status few_networks(const void *ud)
{
    static const size_t small[] = {4, 3, 2};
    static const kofn_net_shape s = {
        .size = sizeof s, .layers = 2, .widths = small};
    const kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_STREAM, 4, 5, 3, KOFN_F64, false);
    const digits *d = ud;
    kofn_net *net[FEW] = {NULL};
    kofn_nets *nets = NULL;
    kofn_plan *plan = NULL;
    kofn_job *job = NULL;
    kofn_port *port;
    kofn_status st = KOFN_OK;

    for (size_t i = 0; i < FEW && !st; i++)
        st = kofn_net_new(&net[i], &s, i);
    if (!st)
        st = kofn_plan_new(&plan, &pb, "dip:m=1,p=2,T=1", 2, 7);
    if (!st)
        st = kofn_port_sim(&port, 2, NULL);
    if (!st)
        st = kofn_open(&job, plan, port, NULL);
    if (!st)
        st = few_trained(&d->X, &d->y, net, &nets, job);
    kofn_close(job);
    kofn_nets_free(nets);
    kofn_plan_free(plan);
    for (size_t i = 0; i < FEW; i++)
        kofn_net_free(net[i]);
    return st;
}

static void memory_runs_out(void **state)
{
    digits d;

    (void)state;
    kofn_set_alloc(NULL, NULL);
    d = make_digits(8, 2, 2, 3);
    both_ways(few_networks, &d, KOFN_TOOFEW, SLOWED == 1 ? 1 : 11);
    digits_free(&d);
}

TEST_FILE(nets_stream_test)
{
    const struct CMUnitTest tests[] = {
        TEST(five_networks,
             "nets: weights are the plain ones (five networks, four codes)"),
        TEST(gradients, "nets: a step follows the gradient of the cost"),
        TEST(float32_and_stopped,
             "nets: a stopped training keeps its steps (float32)"),
        TEST(refusals, "nets: invalid networks, data and options are refused"),
        TEST(overflow, "nets: an overflow names its network and iteration"),
        TEST(long_delay,
             "nets: a stream's delay beyond five networks is refused"),
        TEST(memory_runs_out,
             "nets: a training without memory fails and leaks nothing"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
