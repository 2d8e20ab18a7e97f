/* nets_stream_test.c -- five networks trained side by side, each product of each
 * of them one of a stream of coded products: eight an iteration with two hidden
 * layers, put while those of the others are under way (math/training.md 3). */
#include "train_rig.h"

#define NETS 5
#define BATCH 40
#define POINTS 200

static const size_t widths[] = {64, 24, 16, 10};

/* A network on its way, and the product of it that is under way. */
typedef struct learner {
    kofn_net *net;
    kf_passes p;
    kofn_net G;
    double step, cost;
    size_t s, iteration;
    kofn_matrix x, y, out; /* operands as they are put, and what comes */
    kf_wanted wanted;
    uint32_t number;
} learner;

static kofn_matrix copy(const kofn_matrix *a, bool turned)
{
    kofn_matrix b = {numbers(a->rows * a->cols, 8), a->rows, a->cols, a->cols,
                     KOFN_F64};

    if (turned)
        b = (kofn_matrix){b.data, a->cols, a->rows, a->rows, KOFN_F64};
    for (size_t i = 0; i < a->rows; i++)
        for (size_t j = 0; j < a->cols; j++)
            *(double *)(turned ? kf_at(&b, j, i) : kf_at(&b, i, j)) =
                *(double *)kf_at(a, i, j);
    return b;
}

static void begin_batch(learner *n, const digits *d)
{
    size_t each = POINTS / BATCH;

    kf_passes_begin(&n->p);
    for (size_t i = 0; i < BATCH; i++) {
        size_t k = kf_order_at(1, n->iteration / each,
                               n->iteration % each * BATCH + i, POINTS);

        kf_passes_put(&n->p, kf_at(&d->X, k, 0), kf_at(&d->y, k, 0));
    }
    n->s = 0;
}

static void put(learner *n, kofn_job *job)
{
    kf_wanted *w = &n->wanted;

    *w = kf_passes_wanted(&n->p, n->s, n->G.W);
    n->x = copy(&w->a, w->pass == KF_PASS_GRADIENT);
    n->y = copy(&w->b, w->pass == KF_PASS_FORWARD);
    n->out = (kofn_matrix){numbers(w->out.rows * w->out.cols, 8), w->out.rows,
                           w->out.cols, w->out.cols, KOFN_F64};
    assert_ok(kofn_put_pair(job, &n->x, &n->y, &n->out, &n->number));
}

static void move(learner *n)
{
    for (size_t l = 0; l < n->net->shape.layers; l++) {
        double *w = n->net->W[l].data, *g = n->G.W[l].data;

        for (size_t i = 0; i < n->net->W[l].rows * n->net->W[l].cols; i++)
            w[i] -= n->step * g[i];
    }
}

/* What came is what the passes wanted; true: an iteration is over. */
static bool take(learner *n, kofn_job *job)
{
    double right = 0;

    assert_ok(kofn_take(job, n->number, KOFN_NEVER, NULL));
    for (size_t i = 0; i < n->out.rows; i++)
        memcpy(kf_at(&n->wanted.out, i, 0), kf_at(&n->out, i, 0),
               n->out.cols * 8);
    kf_free(n->x.data);
    kf_free(n->y.data);
    kf_free(n->out.data);
    kf_passes_done(&n->p, n->s, 1.0 / BATCH, NULL);
    n->s++;
    if (n->s == n->net->shape.layers)
        kf_passes_cost(&n->p, 1.0 / BATCH, &n->cost, &right);
    if (n->s < kf_passes_products(&n->p))
        return false;
    move(n);
    n->iteration++;
    return true;
}

static void twin(const learner *n, const digits *d, kofn_net *net,
                 size_t iterations)
{
    kofn_train_options o = {.size = sizeof o,
                            .step = n->step,
                            .batch = BATCH,
                            .epochs = (unsigned)(iterations * BATCH / POINTS),
                            .seed = 1};

    train_plain(net, &d->X, &d->y, &o, NULL);
}

static void train_five(const char *spec, bool sim, const kofn_weather *weather)
{
    const size_t iterations = 6 * POINTS / BATCH; /* six epochs */
    kofn_net_shape s = {.size = sizeof s,
                        .layers = 3,
                        .widths = widths,
                        .activation = KOFN_RELU};
    kofn_problem pb = {KOFN_STREAM, BATCH, 65, 24, KOFN_F64, false};
    digits d = make_digits(POINTS, 8, 10, 1);
    learner n[NETS] = {{0}};
    size_t products = 0;
    kofn_plan *plan;
    kofn_port *port;
    kofn_job *job;

    assert_ok(kofn_plan_new(&plan, &pb, spec, 4, 7));
    assert_ok(sim ? kofn_port_sim(&port, 4, weather)
                  : kofn_port_threads(&port, 4, weather));
    assert_ok(kofn_open(&job, plan, port, NULL));
    for (size_t i = 0; i < NETS; i++) {
        n[i].net = make_net(&s);
        n[i].step = 0.1 + 0.05 * (double)i;
        assert_ok(kf_passes_new(&n[i].p, n[i].net, true, BATCH));
        kf_net_fill(&n[i].G, &s);
        kf_net_lay(&n[i].G, numbers(n[i].net->total, 8));
        begin_batch(&n[i], &d);
        put(&n[i], job);
    }
    for (size_t left = NETS; left;)
        for (size_t i = 0; i < NETS; i++) {
            bool over = take(&n[i], job);

            products++;
            if (over && n[i].iteration == iterations) {
                left--;
                continue;
            }
            if (over)
                begin_batch(&n[i], &d);
            put(&n[i], job);
        }
    assert_int_equal(products, NETS * iterations * 8);
    kofn_close(job);
    kofn_plan_free(plan);
    for (size_t i = 0; i < NETS; i++) {
        kofn_net *plain = make_net(&s);
        kofn_score before, after;

        assert_ok(kofn_net_score(plain, &d.X, &d.y, &before));
        assert_ok(kofn_net_score(n[i].net, &d.X, &d.y, &after));
        assert_true(after.loss < before.loss);
        twin(&n[i], &d, plain, iterations);
        assert_at_most(apart(n[i].net, plain), 1e-8);
        kofn_net_free(plain);
        kofn_net_free(n[i].net);
        kf_free(n[i].G.W[0].data);
        kf_passes_free(&n[i].p);
    }
    digits_free(&d);
}

static void five_networks(void **state)
{
    static const char *const specs[] = {"dip:m=2,p=3,T=3,lambda=1",
                                        "polynomial:m=2,p=1", "uncoded",
                                        "idip:m=2,p=3,N=10,W=4"};
    static const kofn_weather slow = {
        .straggle = 0.3, .factor = 5, .clock = KOFN_CLOCK_MODELLED, .seed = 3};

    (void)state;
    for (size_t k = 0; k < COUNT(specs); k++)
        train_five(specs[k], true, &slow);
    train_five(specs[0], false, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(five_networks),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
