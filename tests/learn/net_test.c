/* net_test.c -- networks: gradients compared with differences, padding, the
 * order of points, refusals. */
#include "train_rig.h"

/* ---- gradients ----------------------------------------------------------- */

/* Returns the mean cost of the points plus the penalty on sparsity. */
static double objective(const kofn_net *net, bool classes, const kofn_matrix *X,
                        const kofn_matrix *y)
{
    double cost = 0, right = 0, means[64] = {0}, m = (double)X->rows;
    kf_passes p;

    assert_ok(kf_passes_new(&p, net, classes, X->rows));
    kf_passes_begin(&p);
    for (size_t i = 0; i < X->rows; i++)
        kf_passes_put(&p, kf_at(X, i, 0), y ? kf_at(y, i, 0) : NULL);
    assert_ok(kf_passes_forward(&p, &kf_multiplier_plain));
    if (kf_passes_means(net))
        kf_passes_hidden(&p, means);
    for (size_t j = 0; j < kf_passes_means(net); j++)
        means[j] /= m;
    kf_passes_cost(&p, 1, &cost, &right);
    kf_passes_free(&p);
    return cost / m + kf_passes_penalty(net, means);
}

/* Counts the products of each pass. */
typedef struct counter {
    size_t of[3];
} counter;

static kofn_status counted(void *ud, kf_pass pass, size_t layer,
                           const kofn_matrix *a, const kofn_matrix *b,
                           kofn_matrix *out)
{
    counter *c = ud;

    c->of[pass]++;
    return kf_multiplier_plain.multiply(NULL, pass, layer, a, b, out);
}

/* Runs the passes once with more points than later. None of these points may
 * remain then. */
static void use(kf_passes *p, const kofn_matrix *X, const kofn_matrix *y,
                kofn_net *G)
{
    double cost = 0, right = 0, means[64] = {0.5};

    kf_passes_begin(p);
    for (size_t i = 0; i < p->room; i++)
        kf_passes_put(p, kf_at(X, i % X->rows, 0),
                      y ? kf_at(y, i % X->rows, 0) : NULL);
    assert_ok(kf_passes_forward(p, &kf_multiplier_plain));
    kf_passes_cost(p, 1, &cost, &right);
    assert_ok(kf_passes_back(p, 1, means, &kf_multiplier_plain, G->W));
}

/* Computes the gradient into `to`, with `pad` rows of zeros behind the points.
 */
static void gradient(const kofn_net *net, bool classes, const kofn_matrix *X,
                     const kofn_matrix *y, size_t pad, double *to)
{
    double cost = 0, right = 0, means[64] = {0}, weight = 1 / (double)X->rows;
    size_t L = net->shape.layers;
    counter c = {{0}};
    kf_multiplier by = {counted, &c};
    kf_passes p;
    kofn_net G;

    kf_net_fill(&G, &net->shape);
    kf_net_lay(&G, to);
    assert_ok(kf_passes_new(&p, net, classes, X->rows + pad));
    use(&p, X, y, &G);
    kf_passes_begin(&p);
    for (size_t i = 0; i < X->rows; i++)
        kf_passes_put(&p, kf_at(X, i, 0), y ? kf_at(y, i, 0) : NULL);
    kf_passes_pad(&p, X->rows + pad);
    assert_ok(kf_passes_forward(&p, &by));
    kf_passes_hidden(&p, means);
    for (size_t j = 0; j < net->widths[1]; j++)
        means[j] *= weight;
    kf_passes_cost(&p, weight, &cost, &right);
    assert_ok(kf_passes_back(&p, weight, means, &by, G.W));
    assert_int_equal(c.of[KF_PASS_FORWARD], L);
    assert_int_equal(c.of[KF_PASS_BACK], L - 1);
    assert_int_equal(c.of[KF_PASS_GRADIENT], L); /* 3 L - 1 in all */
    kf_passes_free(&p);
}

static void check_gradient(const kofn_net_shape *s, bool classes,
                           const kofn_matrix *X, const kofn_matrix *y)
{
    kofn_net *net = make_net(s);
    double *w = net->W[0].data, *g = numbers(net->total, 8);
    double *padded = numbers(net->total, 8), *d = numbers(net->total, 8);
    const double h = 1e-5;

    for (size_t l = 0; l < s->layers; l++) /* biases that are not 0 */
        for (size_t i = 0; i < net->W[l].rows; i++)
            *(double *)kf_at(&net->W[l], i, net->W[l].cols - 1) =
                0.1 * (double)(i % 5) - 0.17;
    gradient(net, classes, X, y, 0, g);
    gradient(net, classes, X, y, 5, padded);
    assert_at_most(relative_error(padded, g, net->total), 1e-14);
    for (size_t i = 0; i < net->total; i++) {
        double at = w[i], above, below;

        w[i] = at + h;
        above = objective(net, classes, X, y);
        w[i] = at - h;
        below = objective(net, classes, X, y);
        w[i] = at;
        d[i] = (above - below) / (2 * h);
    }
    if (!(relative_error(g, d, net->total) <= 1e-6))
        fail_msg("activation %d, output %d, cost %d: off by %g",
                 (int)s->activation, (int)s->output, (int)s->loss,
                 relative_error(g, d, net->total));
    kf_free(g);
    kf_free(padded);
    kf_free(d);
    kofn_net_free(net);
}

static const kofn_activation every[] = {KOFN_SIGMOID, KOFN_TANH, KOFN_RELU,
                                        KOFN_LINEAR};

static void gradients_match_differences(void **state)
{
    const size_t widths[] = {6, 7, 5, 4};
    kofn_matrix X = random_matrix(9, 7, KOFN_F64, 1);
    kofn_matrix T = random_matrix(9, 4, KOFN_F64, 2);
    kofn_matrix y = {numbers(9, 8), 9, 1, 1, KOFN_F64};

    (void)state;
    for (size_t i = 0; i < 9; i++)
        ((double *)y.data)[i] = (double)(i * i % 4);
    for (size_t layers = 1; layers <= 3; layers++)
        for (size_t f = 0; f < 4; f++) {
            kofn_net_shape s = {.size = sizeof s,
                                .layers = layers,
                                .widths = widths + 3 - layers,
                                .activation = every[f]};
            kofn_matrix in = X;

            in.cols = s.widths[0]; /* a view */
            check_gradient(&s, true, &in, &y);
            s.loss = KOFN_NET_LOSS_SQUARES;
            for (size_t o = 0; o < 4; o++) {
                s.output = every[o];
                check_gradient(&s, true, &in, &y);
                check_gradient(&s, false, &in, &T);
            }
        }
    kf_free(X.data);
    kf_free(T.data);
    kf_free(y.data);
}

static void autoencoders(void **state)
{
    const size_t widths[] = {6, 4, 6};
    kofn_matrix X = random_matrix(9, 6, KOFN_F64, 3);

    (void)state;
    for (size_t o = 0; o < 4; o++)
        for (int sparse = 0; sparse < 3; sparse++) {
            kofn_net_shape s = {.size = sizeof s,
                                .layers = 2,
                                .widths = widths,
                                .output = every[o],
                                .loss = KOFN_NET_LOSS_SQUARES,
                                .autoencoder = true,
                                .sparsity = sparse == 2 ? 0.3 : 0.05,
                                .sparsity_weight = 0.7 * sparse};

            check_gradient(&s, false, &X, NULL);
        }
    kf_free(X.data);
}

/* Compares a step of training with differences of the whole objective, with
 * the decay times |W|^2/2. The result is in units of the step. */
static void check_step(const kofn_net_shape *s, const kofn_matrix *X,
                       const kofn_matrix *y)
{
    kofn_train_options o = {.size = sizeof o,
                            .step = 1e-3,
                            .l2 = 0.3,
                            .batch = X->rows,
                            .epochs = 1,
                            .seed = 2};
    kofn_net *net = make_net(s);
    size_t n = net->total;
    double *w = net->W[0].data, *was = numbers(n, 8), *g = numbers(n, 8);
    double *d = numbers(n, 8);
    const double h = 1e-5;

    for (size_t i = 0; i < n; i++) {
        double at = w[i], above, below;

        w[i] = at + h;
        above = objective(net, y != NULL, X, y);
        w[i] = at - h;
        below = objective(net, y != NULL, X, y);
        was[i] = w[i] = at;
        d[i] = (above - below) / (2 * h) + o.l2 * at;
    }
    train_plain(net, X, y, &o, NULL);
    for (size_t i = 0; i < n; i++)
        g[i] = (was[i] - w[i]) / o.step;
    if (!(relative_error(g, d, n) <= 1e-6))
        fail_msg("activation %d, cost %d: a step is off by %g",
                 (int)s->activation, (int)s->loss, relative_error(g, d, n));
    kf_free(was);
    kf_free(g);
    kf_free(d);
    kofn_net_free(net);
}

static void steps_match_differences(void **state)
{
    const size_t widths[] = {6, 7, 5, 4}, back[] = {6, 4, 6};
    kofn_matrix X = random_matrix(9, 6, KOFN_F64, 1);
    kofn_matrix y = {numbers(9, 8), 9, 1, 1, KOFN_F64};

    (void)state;
    for (size_t i = 0; i < 9; i++)
        ((double *)y.data)[i] = (double)(i * i % 4);
    for (size_t f = 0; f < 4; f++)
        for (int squares = 0; squares < 2; squares++) {
            kofn_net_shape s = {.size = sizeof s,
                                .layers = 3,
                                .widths = widths,
                                .activation = every[f],
                                .output = every[3 - f],
                                .loss = squares ? KOFN_NET_LOSS_SQUARES
                                                : KOFN_NET_LOSS_SOFTMAX};

            check_step(&s, &X, &y);
        }
    for (int sparse = 0; sparse < 2; sparse++) {
        kofn_net_shape s = {.size = sizeof s,
                            .layers = 2,
                            .widths = back,
                            .loss = KOFN_NET_LOSS_SQUARES,
                            .autoencoder = true,
                            .sparsity = 0.1,
                            .sparsity_weight = 0.7 * sparse};

        check_step(&s, &X, NULL);
    }
    kf_free(X.data);
    kf_free(y.data);
}

/* A unit that is never on has mean 0, one that is always on 1. These means
 * count as 1e-6 and 1 - 1e-6. */
static void means_are_clipped(void **state)
{
    const size_t widths[] = {3, 2, 3};
    kofn_net_shape s = {.size = sizeof s,
                        .layers = 2,
                        .widths = widths,
                        .loss = KOFN_NET_LOSS_SQUARES,
                        .autoencoder = true,
                        .sparsity = 0.5,
                        .sparsity_weight = 2};
    kofn_net *net = make_net(&s);
    const double ends[] = {0, 1}, near[] = {1e-6, 1 - 1e-6};
    double a = kf_passes_penalty(net, ends), b = kf_passes_penalty(net, near);

    (void)state;
    assert_true(a - a == 0);
    assert_true(a == b);
    /* 2 (1/2 log(1/2 / 1e-6) + 1/2 log(1/2 / (1 - 1e-6))), for both units */
    assert_at_most(fabs(a - 2 * (log(0.5e6) + log(0.5 / (1 - 1e-6)))), 1e-9);
    kofn_net_free(net);
}

static void large_softmax(void **state)
{
    const size_t widths[] = {1, 3};
    kofn_net_shape s = {.size = sizeof s, .layers = 1, .widths = widths};
    kofn_net *net = make_net(&s);
    double x = 1e4, y = 1, out[3];
    kofn_matrix X = {&x, 1, 1, 1, KOFN_F64}, Y = {&y, 1, 1, 1, KOFN_F64};
    kofn_matrix O = {out, 1, 3, 3, KOFN_F64};
    const double w[] = {1, 0, -1, 0, 2, 0};
    kofn_score score;

    (void)state;
    kf_net_write(net, w); /* 10000, -10000 and 20000 before the softmax */
    assert_ok(kofn_net_predict(net, &X, &O));
    assert_true(out[0] == 0 && out[1] == 0 && out[2] == 1);
    assert_ok(kofn_net_score(net, &X, &Y, &score));
    assert_true(score.loss == 30000 && score.accuracy == 0);
    kofn_net_free(net);
}

/* ---- float32 ------------------------------------------------------------- */

static void float32_is_near_float64(void **state)
{
    const size_t widths[] = {64, 20, 10};
    kofn_net_shape s = {.size = sizeof s, .layers = 2, .widths = widths};
    digits d = make_digits(50, 8, 10, 5);
    kofn_net *wide = make_net(&s), *narrow;
    double *w = numbers(wide->total, 8), *g = numbers(wide->total + 3, 8);
    double *h = numbers(wide->total + 3, 8);
    const kofn_rows all = {d.X, d.y.data, 0};
    kf_batch batch = {.points = 50, .to = 50};

    (void)state;
    s.dtype = KOFN_F32;
    narrow = make_net(&s);
    kf_net_read(narrow, w);
    kf_net_write(wide, w);
    assert_ok(kf_train_part(wide, true, &batch, NULL, &all, g));
    assert_ok(kf_train_part(narrow, true, &batch, NULL, &all, h));
    assert_at_most(relative_error(h, g, wide->total), 1e-5);
    assert_true(relative_error(h, g, wide->total) > 1e-9); /* it was float32 */
    kf_free(w);
    kf_free(g);
    kf_free(h);
    digits_free(&d);
    kofn_net_free(wide);
    kofn_net_free(narrow);
}

/* ---- weights and order --------------------------------------------------- */

static void initial_weights(void **state)
{
    const size_t widths[] = {30, 20, 10}, other[] = {30, 25, 10};
    kofn_net_shape s = {.size = sizeof s, .layers = 2, .widths = widths};
    kofn_net *a = make_net(&s), *b = make_net(&s), *c;
    const kofn_matrix *W = kofn_net_weights(a, 1);
    double most = sqrt(6.0 / 50), sum = 0, largest = 0;

    (void)state;
    assert_true(apart(a, b) == 0);
    assert_int_equal(W->rows, 20);
    assert_int_equal(W->cols, 31);
    for (size_t i = 0; i < 20; i++) {
        assert_true(*(double *)kf_at(W, i, 30) == 0);
        for (size_t j = 0; j < 30; j++) {
            double x = *(double *)kf_at(W, i, j);

            sum += x;
            largest = fmax(largest, fabs(x));
        }
    }
    assert_true(largest < most && largest > 0.98 * most);
    assert_at_most(fabs(sum / 600), 4 * most / sqrt(3 * 600.0));
    /* a row depends on its number only, except for its range */
    s.widths = other;
    c = make_net(&s);
    assert_at_most(fabs(*(double *)kf_at(&c->W[0], 3, 4) / sqrt(6.0 / 55) -
                        *(double *)kf_at(W, 3, 4) / most),
                   1e-14);
    assert_null(kofn_net_weights(a, 0));
    assert_null(kofn_net_weights(a, 3));
    kofn_net_free(a);
    kofn_net_free(b);
    kofn_net_free(c);
    kofn_net_free(NULL);
}

static void orders_are_permutations(void **state)
{
    (void)state;
    for (size_t m = 1; m < 300; m += m < 40 ? 1 : 37) {
        bool seen[300] = {false};
        size_t same = 0;

        for (size_t i = 0; i < m; i++) {
            size_t k = kf_order_at(5, 2, i, m);

            assert_true(k < m && !seen[k]);
            assert_int_equal(kf_order_place(5, 2, k, m), i);
            seen[k] = true;
            same += k == kf_order_at(5, 3, i, m);
        }
        assert_true(m < 20 || same < m / 2); /* another order in each epoch */
    }
}

/* Counts how often a point comes first, over many epochs. All points must have
 * about the same count. */
static void orders_are_fair(void **state)
{
    size_t first[10] = {0};
    double sum = 0;

    (void)state;
    for (uint64_t epoch = 0; epoch < 10000; epoch++)
        first[kf_order_at(1, epoch, 0, 10)]++;
    for (size_t k = 0; k < 10; k++)
        sum += ((double)first[k] - 1000) * ((double)first[k] - 1000) / 1000;
    assert_at_most(
        sum, 33.7); /* chi square with 9 degrees of freedom: 1 in 10,000 */
}

/* ---- parts --------------------------------------------------------------- */

static void parts_add_up_to_the_batch(void **state)
{
    const size_t widths[] = {64, 9, 10};
    kofn_net_shape s = {.size = sizeof s, .layers = 2, .widths = widths};
    digits d = make_digits(100, 8, 10, 6);
    kofn_net *net = make_net(&s);
    size_t n = net->total + KF_SUM_EXTRA;
    double *all = numbers(n, 8), *sum = numbers(n, 8), *part = numbers(n, 8);

    (void)state;
    for (size_t b = 0; b < 4; b++) { /* the last one is short */
        kf_batch batch = {.seed = 3,
                          .epoch = 1,
                          .points = 100,
                          .from = 30 * b,
                          .to = kf_min(30 * b + 30, 100)};
        kofn_rows rows = {d.X, d.y.data, 0};

        assert_ok(kf_train_part(net, true, &batch, NULL, &rows, all));
        assert_at_most(fabs(all[n - 1] - 1), 1e-15);
        memset(sum, 0, n * sizeof *sum);
        for (size_t k = 0; k < 7; k++) {
            size_t from = k * 100 / 7, to = (k + 1) * 100 / 7;

            rows = (kofn_rows){d.X, (double *)d.y.data + from, from};
            rows.X.data = kf_at(&d.X, from, 0);
            rows.X.rows = to - from;
            assert_ok(kf_train_part(net, true, &batch, NULL, &rows, part));
            for (size_t i = 0; i < n; i++)
                sum[i] += part[i];
        }
        assert_at_most(relative_error(sum, all, n), 1e-14);
    }
    kf_free(all);
    kf_free(sum);
    kf_free(part);
    digits_free(&d);
    kofn_net_free(net);
}

/* The input comes from the network. Each number in turn gets wrong values. */
static void wrong_inputs(void **state)
{
    static const double odd[] = {-1,   0.5,    17,  1e300, -1e300,
                                 1e18, 1e-300, 3e9, NAN,   HUGE_VAL};
    const size_t widths[] = {4, 3, 4};
    kofn_net_shape s = {.size = sizeof s,
                        .layers = 2,
                        .widths = widths,
                        .loss = KOFN_NET_LOSS_SQUARES,
                        .autoencoder = true,
                        .sparsity = 0.1,
                        .sparsity_weight = 1};
    kofn_matrix X = random_matrix(10, 4, KOFN_F64, 1);
    kofn_net *net = make_net(&s);
    size_t n = kf_train_input(net), head = n - net->total - 3, refused = 0;
    size_t m = net->total + KF_SUM_EXTRA;
    double *in = malloc(n * 8), *out = malloc(m * 8), y[10] = {0};
    const double means[] = {0.2, 0.3, 0.4};
    kofn_matrix ask = {in, n, 1, 1, KOFN_F64};
    kofn_matrix answer = {out, m, 1, 1, KOFN_F64};
    kofn_rows part = {X, y, 20};
    kf_batch batch = {.points = 40, .from = 5, .to = 25};

    (void)state;
    assert_true(in && out);
    kf_train_ask(net, false, &batch, means, in);
    assert_ok(kf_train_formula(NULL, &part, &ask, &answer));
    for (size_t i = 0; i < head; i++)
        for (size_t k = 0; k < COUNT(odd); k++) {
            double was = in[i];

            in[i] = odd[k];
            refused += kf_train_formula(NULL, &part, &ask, &answer) != KOFN_OK;
            in[i] = was;
        }
    assert_true(refused > 100);
    ask.rows = n - 1;
    assert_status(KOFN_SHAPE, kf_train_formula(NULL, &part, &ask, &answer));
    ask.rows = 3;
    assert_status(KOFN_SHAPE, kf_train_formula(NULL, &part, &ask, &answer));
    ask.rows = n;
    answer.rows = m - 1;
    assert_status(KOFN_SHAPE, kf_train_formula(NULL, &part, &ask, &answer));
    answer.rows = m;
    part.X.cols = 3;
    assert_status(KOFN_SHAPE, kf_train_formula(NULL, &part, &ask, &answer));
    part.X.cols = 4;
    part.first = 31; /* beyond the number of points */
    assert_status(KOFN_INVAL, kf_train_formula(NULL, &part, &ask, &answer));
    free(in);
    free(out);
    kf_free(X.data);
    kofn_net_free(net);
}

static void wrong_labels(void **state)
{
    static const double odd[] = {3, -1, 0.5, 1e18, NAN, HUGE_VAL};
    const size_t widths[] = {4, 3};
    kofn_net_shape s = {.size = sizeof s, .layers = 1, .widths = widths};
    kofn_matrix X = random_matrix(10, 4, KOFN_F64, 1);
    kofn_net *net = make_net(&s);
    size_t n = kf_train_input(net), m = net->total + KF_SUM_EXTRA;
    double *in = numbers(n, 8), *out = numbers(m, 8), y[10] = {2, 1};
    kofn_matrix ask = {in, n, 1, 1, KOFN_F64};
    kofn_matrix answer = {out, m, 1, 1, KOFN_F64};
    kofn_rows part = {X, y, 0};
    kf_batch batch = {.points = 10, .to = 10};

    (void)state;
    kf_train_ask(net, true, &batch, NULL, in);
    assert_ok(kf_train_formula(NULL, &part, &ask, &answer));
    for (size_t k = 0; k < COUNT(odd); k++) {
        y[9] = odd[k];
        assert_status(KOFN_INVAL, kf_train_formula(NULL, &part, &ask, &answer));
    }
    kf_free(in);
    kf_free(out);
    kf_free(X.data);
    kofn_net_free(net);
}

/* ---- refusals ------------------------------------------------------------ */

static void shape_refused(kofn_net_shape s, const char *word)
{
    kofn_net *net;

    s.size = sizeof s;
    assert_status(KOFN_INVAL, kofn_net_new(&net, &s, 1));
    assert_null(net);
    if (!strstr(kofn_errmsg(), word))
        fail_msg("no '%s' in: %s", word, kofn_errmsg());
}

static void shapes_are_checked(void **state)
{
    static const size_t good[] = {4, 3, 4}, zero[] = {4, 0, 4}, one[] = {4, 1},
                        most[] = {2147483646, 2147483646, 2147483646};

    (void)state;
#define SHAPE(n, w, ...)                                                       \
    ((kofn_net_shape){.size = sizeof(kofn_net_shape),                          \
                      .layers = n,                                             \
                      .widths = w,                                             \
                      __VA_ARGS__})
    shape_refused(SHAPE(0, good, .sparsity = 0), "0 layers");
    shape_refused(SHAPE(17, good, .sparsity = 0), "17 layers");
    shape_refused(SHAPE(2, zero, .sparsity = 0), "layer 1 is 0 wide");
    shape_refused(SHAPE(2, most, .sparsity = 0), "memory anywhere");
    shape_refused(SHAPE(1, one, .sparsity = 0), "two classes");
    shape_refused(SHAPE(2, good, .activation = (kofn_activation)9),
                  "activation 9");
    shape_refused(SHAPE(2, good, .loss = (kofn_net_loss)9), "loss = 9");
    shape_refused(SHAPE(2, good, .autoencoder = true), "squares");
    shape_refused(SHAPE(2, good, .sparsity_weight = 1, .sparsity = 0.5),
                  "autoencoder");
    shape_refused(SHAPE(2, good, .sparsity_weight = NAN), "nan");
    shape_refused(SHAPE(2, good, .loss = KOFN_NET_LOSS_SQUARES,
                        .autoencoder = true, .sparsity_weight = 1,
                        .sparsity = 1),
                  "sparsity 1");
#undef SHAPE
}

static void points_are_checked(void **state)
{
    const size_t widths[] = {4, 3};
    kofn_net_shape s = {.size = sizeof s, .layers = 1, .widths = widths};
    kofn_matrix X = random_matrix(5, 4, KOFN_F64, 1), bad = X;
    double y[] = {0, 1, 2, 1, 0};
    kofn_matrix Y = {y, 5, 1, 1, KOFN_F64};
    kofn_train_options o = {.size = sizeof o};
    kofn_net *net = make_net(&s);
    kofn_training *t;

    (void)state;
#define REFUSED(status, word)                                                  \
    do {                                                                       \
        assert_status(status, kofn_training_new(&t, net, &bad, &Y, &o));       \
        assert_null(t);                                                        \
        if (!strstr(kofn_errmsg(), word))                                      \
            fail_msg("no '%s' in: %s", word, kofn_errmsg());                   \
    } while (0)
    bad.cols = 3;
    REFUSED(KOFN_SHAPE, "3 columns");
    bad = X;
    y[3] = 3;
    REFUSED(KOFN_INVAL, "y[3] = 3");
    y[3] = 0.5;
    REFUSED(KOFN_INVAL, "y[3] = 0.5");
    y[3] = NAN;
    REFUSED(KOFN_NONFINITE, "[3, 0]");
    y[3] = 1;
    Y.rows = 4;
    REFUSED(KOFN_SHAPE, "4 x 1");
    Y.rows = 5;
    o.step = -1;
    REFUSED(KOFN_INVAL, "step = -1");
    o.step = 0;
    o.momentum = 1;
    REFUSED(KOFN_INVAL, "momentum = 1");
    o.momentum = 0;
    o.nesterov = true;
    REFUSED(KOFN_INVAL, "Nesterov");
    o.nesterov = false;
    o.batch = 1;
    o.epochs = 4000000000u;
    REFUSED(KOFN_INVAL, "epochs");
    o.epochs = 1;
    o.l2 = NAN;
    REFUSED(KOFN_INVAL, "l2");
#undef REFUSED
    o.l2 = 0;
    assert_ok(kofn_training_new(&t, net, &X, &Y, &o));
    assert_status(KOFN_STATE, kofn_train(t, NULL));
    kofn_training_free(t);
    kofn_training_free(NULL);
    kf_free(X.data);
    kofn_net_free(net);
}

/* If outputs are equal the first counts, as in NumPy's argmax. */
static void ties(void **state)
{
    const size_t two[] = {2, 3};
    kofn_net_shape s = {.size = sizeof s, .layers = 1, .widths = two};
    kofn_matrix X = random_matrix(3, 2, KOFN_F64, 4);
    double labels[] = {0, 1, 2}, none[9] = {0};
    kofn_matrix y = {labels, 3, 1, 1, KOFN_F64};
    kofn_net *net = make_net(&s);
    kofn_score score;

    (void)state;
    kf_net_write(net, none);
    assert_ok(kofn_net_score(net, &X, &y, &score));
    assert_true(score.accuracy == 1.0 / 3);
    assert_at_most(fabs(score.loss - log(3)), 1e-15);
    kofn_net_free(net);
    kf_free(X.data);
}

TEST_FILE(net_test)
{
    const struct CMUnitTest tests[] = {
        TEST(gradients_match_differences,
             "net: gradients are the differences of the objective"),
        TEST(autoencoders,
             "net: gradients of autoencoders are the differences"),
        TEST(steps_match_differences,
             "net: a step follows the differences of the objective"),
        TEST(means_are_clipped,
             "net: means of sparse units are clipped at 1e-6"),
        TEST(large_softmax,
             "net: the softmax of large numbers does not overflow"),
        TEST(float32_is_near_float64,
             "net: gradients in float32 are near those in float64"),
        TEST(initial_weights,
             "net: a row of initial weights depends on its number only"),
        TEST(orders_are_permutations,
             "net: the order of points is a permutation in each epoch"),
        TEST(orders_are_fair, "net: each point is first equally often"),
        TEST(parts_add_up_to_the_batch,
             "net: gradients of parts sum to the batch's"),
        TEST(wrong_inputs, "net: odd numbers in a worker's input are refused"),
        TEST(wrong_labels, "net: labels out of range are refused by a worker"),
        TEST(shapes_are_checked,
             "net: impossible shapes are refused with the value"),
        TEST(points_are_checked,
             "net: wrong points, labels and options are refused"),
        TEST(ties, "net: the first of equal outputs counts as the prediction"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
