/* coded_faults_test.c -- faults do not change what is learnt. Trainings on
 * coded weights under every kind of fault end close to the plain one. A plain
 * training with one more rounding per number has a similar deviation. */
#include "train_rig.h"

#include "learn/net.h"

/* A coded training may deviate from the plain weights by this factor more than
 * a rounded one. It rounds more than once, and codes amplify that. With error
 * search, errors below the reported floor may have passed; they count as
 * roundings of that size. */
#define TIMES 100

static const size_t widths[] = {64, 17, 11, 10};

/* ---- rounded trainings --------------------------------------------------- */

/* The plain training with every number of every product rounded once more, up
 * or down at random. */
typedef struct rounded_training {
    kofn_net *net;
    kf_rng r;
    double round; /* relative size; 0: the plain training itself */
} rounded_training;

static double rounded(rounded_training *t, double x)
{
    return x * (1 + (kf_rng_below(&t->r, 2) ? t->round : -t->round));
}

static void round_all(rounded_training *t, const kofn_matrix *a)
{
    for (size_t i = 0; i < a->rows; i++)
        for (size_t j = 0; j < a->cols; j++) {
            if (a->dtype == KOFN_F64) {
                double *x = kf_at(a, i, j);

                *x = rounded(t, *x);
            } else {
                float *x = kf_at(a, i, j);

                *x = (float)rounded(t, (double)*x);
            }
        }
}

static kofn_status multiply(void *ud, kf_pass pass, size_t layer,
                            const kofn_matrix *a, const kofn_matrix *b,
                            kofn_matrix *out)
{
    rounded_training *t = ud;

    TRY(kf_multiplier_plain.multiply(NULL, pass, layer, a, b, out));
    if (t->round > 0)
        round_all(t, out);
    return KOFN_OK;
}

/* Changes W and its velocity. All numbers of each are contiguous. */
static void move(const kofn_train_options *o, size_t n, const double *G,
                 double *W, double *M)
{
    for (size_t i = 0; i < n; i++) {
        double g = G[i] + o->l2 * W[i];

        M[i] = o->momentum * M[i] + g;
        W[i] -= o->step * (o->nesterov ? g + o->momentum * M[i] : M[i]);
    }
}

static void rounded_step(rounded_training *t, kf_passes *p, const digits *d,
                         size_t epoch, size_t from, const kofn_train_options *o,
                         kofn_net *G)
{
    size_t to = kf_min(from + o->batch, d->X.rows);
    double weight = 1 / (double)(to - from), cost = 0, right = 0;
    kf_multiplier by = {multiply, t};

    kf_passes_begin(p);
    for (size_t i = from; i < to; i++) {
        size_t k = kf_order_at(o->seed, epoch, i, d->X.rows);

        kf_passes_put(p, kf_at(&d->X, k, 0), kf_at(&d->y, k, 0));
    }
    assert_ok(kf_passes_forward(p, &by));
    kf_passes_cost(p, weight, &cost, &right);
    assert_ok(kf_passes_back(p, weight, NULL, &by, G->W));
}

static void train_rounded(rounded_training *t, const digits *d,
                          const kofn_train_options *o)
{
    size_t n = t->net->total;
    double *W = numbers(n, 8), *M = numbers(n, 8), *g = numbers(n, 8);
    kofn_net *G;
    kf_passes p;

    assert_ok(kofn_net_new(&G, &t->net->shape, 1));
    assert_ok(kf_passes_new(&p, t->net, true, o->batch));
    for (size_t epoch = 0; epoch < o->epochs; epoch++)
        for (size_t from = 0; from < d->X.rows; from += o->batch) {
            rounded_step(t, &p, d, epoch, from, o, G);
            kf_net_read(t->net, W);
            kf_net_read(G, g);
            move(o, n, g, W, M);
            kf_net_write(t->net, W);
        }
    kf_passes_free(&p);
    kofn_net_free(G);
    kf_free(W);
    kf_free(M);
    kf_free(g);
}

/* ---- a training with faults ---------------------------------------------- */

typedef struct coded_case {
    kofn_net_shape shape;
    kofn_train_options o;
    size_t points;
    digits d, held_out;
    kofn_net *plain;
    double accuracy;  /* of the held-out points, with the plain weights */
    double deviation; /* deviation of a rounded training from them */
} coded_case;

static double unit_of(const coded_case *t)
{
    return t->shape.dtype == KOFN_F64 ? 0x1p-53 : 0x1p-24;
}

/* Returns the largest deviation of a few rounded trainings. The first is the
 * plain training itself. */
static double largest_deviation(const coded_case *t)
{
    double unit = unit_of(t), most = 0;

    for (size_t i = 0; i < 4; i++) {
        rounded_training w = {make_net(&t->shape),
                              kf_rng_stream(9, KF_FOR_DATA, 7, (uint32_t)i),
                              i ? unit : 0};

        train_rounded(&w, &t->d, &t->o);
        if (i)
            most = fmax(most, apart(w.net, t->plain));
        else
            assert_at_most(apart(w.net, t->plain), 10 * unit);
        kofn_net_free(w.net);
    }
    return most;
}

static double accuracy_of(const coded_case *t, const kofn_net *net)
{
    kofn_score s;

    assert_ok(kofn_net_score(net, &t->held_out.X, &t->held_out.y, &s));
    return s.accuracy;
}

static void case_up(coded_case *t)
{
    t->d = make_digits(t->points, 8, 10, 1);
    t->held_out = make_digits(500, 8, 10, 2);
    t->plain = make_net(&t->shape);
    train_plain(t->plain, &t->d.X, &t->d.y, &t->o, NULL);
    t->accuracy = accuracy_of(t, t->plain);
    t->deviation = largest_deviation(t);
    assert_true(t->deviation > 0);
}

static void case_down(coded_case *t)
{
    digits_free(&t->d);
    digits_free(&t->held_out);
    kofn_net_free(t->plain);
}

/* A kind of fault. */
typedef struct fault {
    const char *name;
    kofn_faults faults;
    const kofn_fault_event *events;
    size_t count, left, joined;
    bool wrong_answers;
    kofn_errors errors;
} fault;

#define SLOW KOFN_FAULT_EVENT_SLOW
#define LEAVE KOFN_FAULT_EVENT_LEAVE
#define JOIN KOFN_FAULT_EVENT_JOIN
#define CORRUPT KOFN_FAULT_EVENT_CORRUPT
#define NORMAL KOFN_FAULT_EVENT_NORMAL

static const kofn_fault_event slow[] = {
    {2, 0, SLOW, 1, 30},    {3, 0.5, SLOW, 4, 30}, {6, 0, NORMAL, 1, 0},
    {8, 0.2, SLOW, 7, 100}, {9, 0, SLOW, 0, 100},
};
static const kofn_fault_event leave[] = {
    {2, 0.5, LEAVE, 3, 0},
    {9, 0, LEAVE, 0, 0},
};
/* In the end no worker of the start is left. */
static const kofn_fault_event exchange[] = {
    {2, 0, LEAVE, 0, 0},    {2, 0.3, JOIN, 0, 0},  {4, 0.5, LEAVE, 1, 0},
    {4, 0.5, JOIN, 0, 0},   {6, 0.2, LEAVE, 2, 0}, {7, 0, JOIN, 0, 0},
    {9, 0.9, LEAVE, 3, 0},  {9, 0.9, JOIN, 0, 0},  {11, 0, LEAVE, 4, 0},
    {11, 0.5, JOIN, 0, 0},  {13, 0, LEAVE, 5, 0},  {13, 0, JOIN, 0, 0},
    {15, 0.7, LEAVE, 6, 0}, {15, 0.8, JOIN, 0, 0}, {17, 0.1, LEAVE, 7, 0},
    {17, 0.1, JOIN, 0, 0},
};
/* Worker 2 errs from step 5 on, and later another worker too. */
static const kofn_fault_event errs[] = {
    {5, 0, CORRUPT, 2, 0},
    {12, 0.5, CORRUPT, 6, 0},
    {13, 0.5, NORMAL, 6, 0},
};
static const kofn_fault_event all[] = {
    {2, 0, SLOW, 1, 30},   {3, 0.3, LEAVE, 0, 0}, {3, 0.5, JOIN, 0, 0},
    {5, 0, CORRUPT, 2, 0}, {8, 0.5, LEAVE, 4, 0}, {8, 0.7, JOIN, 0, 0},
    {12, 0, JOIN, 0, 0},   {15, 0, LEAVE, 5, 0},
};

#define HAPPEN(h) .events = h, .count = COUNT(h)
static const fault faults[] = {
    {.name = "none"},
    {.name = "stragglers",
     .faults = {.spread = 0.3,
                .straggle = 0.2,
                .factor = 20,
                .latency = 1e-4,
                .seed = 5},
     HAPPEN(slow)},
    {.name = "leaves", HAPPEN(leave), .left = 2},
    {.name = "leaves and joins", HAPPEN(exchange), .left = 8, .joined = 8},
};
static const fault wrong_answers[] = {
    {.name = "none, checked", .errors = KOFN_ERRORS_ADVERSARIAL},
    {.name = "a faulty worker",
     HAPPEN(errs),
     .wrong_answers = true,
     .errors = KOFN_ERRORS_ADVERSARIAL},
    {.name = "wrong answers now and then",
     .faults = {.corrupt = 0.01, .seed = 3},
     .wrong_answers = true,
     .errors = KOFN_ERRORS_PROBABILISTIC},
    {.name = "all together",
     .faults = {.spread = 0.3, .straggle = 0.1, .factor = 10, .seed = 4},
     HAPPEN(all),
     .left = 3,
     .joined = 3,
     .wrong_answers = true,
     .errors = KOFN_ERRORS_ADVERSARIAL},
};

static kofn_status train_coded(const coded_case *t, const char *spec, bool sim,
                               const fault *f, kofn_net *net,
                               kofn_train_result *res)
{
    kofn_options opt = KOFN_OPTIONS_INIT;
    kofn_faults w = f->faults;
    kofn_plan *plan[KOFN_NET_MOST];
    kofn_training *train;
    kofn_port *port;
    kofn_job *job;
    kofn_status st;

    opt.events = f->events;
    opt.event_count = f->count;
    opt.errors = f->errors;
    opt.quarantine = 1000;
    assert_ok(kofn_training_new(&train, net, &t->d.X, &t->d.y, &t->o));
    assert_ok(kofn_training_plans(train, spec, 8, 3, plan));
    w.size = sizeof w;
    assert_ok(sim ? kofn_port_sim(&port, 8, &w)
                  : kofn_port_threads(&port, 8, &w));
    assert_ok(kofn_open_all(&job, (const kofn_plan *const *)plan,
                            t->shape.layers, port, &opt));
    assert_ok(kofn_training_place(train, job));
    st = kofn_train(train, res);
    kofn_close(job);
    for (size_t l = 0; l < t->shape.layers; l++)
        kofn_plan_free(plan[l]);
    kofn_training_free(train);
    return st;
}

static void try_fault(const coded_case *t, const char *spec, bool sim,
                      const fault *f)
{
    double few = t->shape.dtype == KOFN_F64 ? 1e-12 : 1e-5, far;
    kofn_net *net = make_net(&t->shape);
    kofn_train_result res = KOFN_TRAIN_RESULT_INIT;
    kofn_status st = train_coded(t, spec, sim, f, net, &res);

    if (st)
        fail_msg("%s under %s: %s", spec, f->name, kofn_errmsg());
    far = apart(net, t->plain);
    if (!(far <= t->deviation * (TIMES + res.rounds.floor / unit_of(t))) ||
        (TIMES * t->deviation <= few && !f->wrong_answers && !(far <= few)))
        fail_msg(
            "%s under %s: %.2e from the plain weights, rounded training %.2e",
            spec, f->name, far, t->deviation);
    assert_int_equal(res.rounds.left, f->left);
    assert_int_equal(res.rounds.joined, f->joined);
    assert_int_equal(res.rounds.corrupt > 0, f->wrong_answers);
    assert_at_most(fabs(accuracy_of(t, net) - t->accuracy), 0.002);
    kofn_net_free(net);
}

static coded_case small_case(kofn_dtype dtype)
{
    return (coded_case){.shape = {.size = sizeof(kofn_net_shape),
                                  .layers = 3,
                                  .widths = widths,
                                  .dtype = dtype},
                        .o = {.size = sizeof(kofn_train_options),
                              .step = 0.5,
                              .batch = 30,
                              .epochs = 3, /* 7 batches each, the last short */
                              .momentum = 0.5,
                              .l2 = 1e-4,
                              .seed = 3},
                        .points = 200};
}

static void try_all(coded_case t, const char *const *spec, size_t specs,
                    const fault *f, size_t kinds)
{
    case_up(&t);
    for (size_t i = 0; i < specs; i++)
        for (size_t k = 0; k < kinds; k++)
            for (size_t sim = 0; sim < 2; sim++)
                if (SLOWED == 1 || (i + k + sim) % 3 == 0)
                    try_fault(&t, spec[i], sim, &f[k]);
    case_down(&t);
}

static const char *const both[] = {"elastic:k=5", "gpd:m=2,n=2,p=1",
                                   "polydot:m=2,n=1,p=1",
                                   "grid:m=2,n=2,copies=2"};
static const char *const checked[] = {"gpd:m=2,n=1,p=1", "matdot:n=2",
                                      "polynomial:m=2,p=1,basis=circle"};

static void faults_change_nothing(void **state)
{
    (void)state;
    try_all(small_case(KOFN_F64), both, 3, faults, COUNT(faults));
    /* of two copies of a block one may leave, but not the successor of the
     * other */
    try_all(small_case(KOFN_F64), both + 3, 1, faults, 2);
}

static void wrong_results(void **state)
{
    (void)state;
    try_all(small_case(KOFN_F64), checked, COUNT(checked), wrong_answers,
            COUNT(wrong_answers));
}

static void single_precision(void **state)
{
    (void)state;
    try_all(small_case(KOFN_F32), both, 2, faults, COUNT(faults));
    try_all(small_case(KOFN_F32), checked, 1, wrong_answers,
            COUNT(wrong_answers));
}

/* The steps are long enough to amplify rounding, in the rounded training as
 * well. */
static void long_steps(void **state)
{
    coded_case t = small_case(KOFN_F64);

    (void)state;
    t.o.step = 4;
    t.o.momentum = 0;
    try_all(t, both, 2, faults, COUNT(faults));
    try_all(t, checked, 1, wrong_answers, COUNT(wrong_answers));
}

/* Blocks are rebuilt repeatedly from rebuilt blocks: worker i leaves and
 * another one replaces it. Each time other workers answer last, though not
 * late. Rounding must not grow from one generation to the next
 * (math/training.md 8). */
static void generations(void **state)
{
    enum { COMES = 40 };
    kofn_fault_event happen[2 * COMES];
    fault f = {.name = "generations",
               .faults = {.straggle = 0.5, .factor = 1.4},
               .events = happen,
               .count = 2 * COMES,
               .left = COMES,
               .joined = COMES};
    coded_case t = small_case(KOFN_F64);

    (void)state;
    for (unsigned i = 0; i < COMES; i++) {
        happen[2 * i] = (kofn_fault_event){2 + 2 * i, 0, LEAVE, i, 0};
        happen[2 * i + 1] = (kofn_fault_event){2 + 2 * i, 0, JOIN, 0, 0};
    }
    t.o.epochs = 1 + 2 * (COMES + 1) / 7; /* epochs of 7 steps */
    case_up(&t);
    for (f.faults.seed = 1; f.faults.seed <= 3; f.faults.seed++)
        try_fault(&t, "gpd:m=2,n=2,p=1", true, &f);
    case_down(&t);
}

static void accuracy_is_kept(void **state)
{
    const size_t wider[] = {64, 32, 16, 10};
    coded_case t = small_case(KOFN_F64);

    (void)state;
    t.shape.widths = wider;
    t.shape.activation = KOFN_RELU;
    t.points = 600;
    t.o.step = 0.05;
    t.o.momentum = 0.9;
    t.o.batch = 20;
    t.o.epochs = (unsigned)(SLOWED > 1 ? 3 : 15);
    case_up(&t);
    assert_true(SLOWED > 1 || t.accuracy > 0.8); /* of ten classes */
    try_fault(&t, "elastic:k=5", true, &faults[3]);
    try_fault(&t, "gpd:m=2,n=1,p=1", true, &wrong_answers[3]);
    case_down(&t);
}

TEST_FILE(coded_faults_test)
{
    const struct CMUnitTest tests[] = {
        TEST(faults_change_nothing,
             "coded: faults change the weights no more than rounding does"),
        TEST(wrong_results,
             "coded: wrong results change the weights no more than rounding"),
        TEST(single_precision, "coded: faults act like rounding in float32"),
        TEST(long_steps, "coded: faults act like rounding with long steps"),
        TEST(generations,
             "coded: rounding does not grow if blocks are rebuilt repeatedly"),
        TEST(accuracy_is_kept,
             "coded: the accuracy under faults is that of the plain training"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
