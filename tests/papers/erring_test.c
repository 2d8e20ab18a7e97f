/* erring_test.c -- nodes that err and train together, each computed by itself: the
 * published tolerances reached and not exceeded, and trainings that end as the plain
 * one does. */
#include "train_rig.h"

#include "dnn/erring.h"

static const dnn_redundancy kinds[] = {DNN_GPD_UVN, DNN_GPD_VUM,
                                       DNN_REPLICATION, DNN_TWO_MDS};

/* ---- limits ---------------------------------------------------------------- */

static void limits_are(size_t P, size_t m, size_t n, size_t cut1, size_t cut2)
{
    for (size_t k = 0; k < COUNT(kinds); k++) {
        const dnn_nodes c = {kinds[k], P, m, n, {cut1, cut2}};
        dnn_tolerance t;
        dnn_tried got;

        if (dnn_tolerance_of(&c, &t) == KOFN_TOOFEW)
            continue;
        assert_ok(dnn_tolerance_try(&c, 6, 1, &got));
        for (size_t back = 0; back < 2; back++) {
            assert_int_equal(got.adversarial[back], t.adversarial[back]);
            assert_int_equal(got.probabilistic[back], t.probabilistic[back]);
        }
        assert_true(got.declared || kinds[k] > DNN_GPD_VUM);
    }
}

static void published_limits(void **state)
{
    (void)state;
    limits_are(12, 2, 2, 1, 1);
    limits_are(18, 3, 2, 1, 1);
    limits_are(18, 2, 3, 1, 1);
    limits_are(16, 2, 2, 2, 1);
    limits_are(17, 2, 2, 1, 2);
}

/* Every set of nodes whose answers are noise.  A group of values, which here are a
 * node's each (n = 1) or one group's sums, is right while so many of them are wrong
 * as the closed form says, and else it is told of; a product needs all its groups. */
static bool stands(const erring_code *c, size_t set, size_t limit)
{
    for (size_t g = 0; g < c->groups; g++) {
        size_t wrong = 0;

        for (size_t v = 0; v < c->values; v++) {
            bool any = false;

            for (size_t k = 0; k < c->members; k++)
                any |=
                    set >> c->member[(g * c->values + v) * c->members + k] & 1;
            wrong += any;
        }
        if (wrong > limit)
            return false;
    }
    return true;
}

/* Whoever is in the set answers with noise more: by a block that is not its own. */
static void spoil(erring_layer *l, size_t set, kf_rng *r)
{
    size_t size = l->high * l->wide;

    for (size_t p = 0; p < l->nodes->P; p++)
        for (size_t i = 0; i < size && set >> p & 1; i++)
            l->block[p * size + i] += 3 * kf_rng_normal(r);
}

static double away(const kofn_matrix *a, const double *b)
{
    double most = 0;

    for (size_t i = 0; i < a->rows * a->cols; i++)
        most = fmax(most, fabs(((double *)a->data)[i] - b[i]));
    return most;
}

#define OUT 8
#define IN 6
#define ROWS 8

static void every_set_of(dnn_redundancy kind, size_t P, size_t m, size_t n)
{
    const dnn_nodes asked = {kind, P, m, n, {1, 1}};
    erring_nodes c;
    erring_layer l;
    dnn_tolerance t;
    kf_rng r = kf_rng_stream(9, KF_FOR_DATA, 0, 0);
    double W[OUT * IN], x[2][ROWS * OUT], y[ROWS * OUT],
        want[2][ROWS * OUT] = {{0}};
    kofn_matrix w = {W, OUT, IN, IN, KOFN_F64};

    assert_ok(erring_nodes_new(&c, &asked));
    assert_ok(erring_layer_new(&l, &c, OUT, IN, ROWS));
    assert_ok(dnn_tolerance_of(&asked, &t));
    for (size_t i = 0; i < OUT * IN; i++)
        W[i] = kf_rng_normal(&r);
    for (size_t i = 0; i < 2 * ROWS * OUT; i++)
        x[i / (ROWS * OUT)][i % (ROWS * OUT)] = kf_rng_normal(&r);
    for (size_t b = 0; b < ROWS; b++)
        for (size_t o = 0; o < OUT; o++)
            for (size_t i = 0; i < IN; i++) {
                want[0][b * OUT + o] += x[0][b * IN + i] * W[o * IN + i];
                want[1][b * IN + i] += x[1][b * OUT + o] * W[o * IN + i];
            }
    for (size_t set = 0; set < (size_t)1 << c.P; set++)
        for (int back = 0; back < 2; back++) {
            erring_fate none = {.chance = 0};
            kofn_matrix a = {x[back], ROWS, back ? OUT : IN, back ? OUT : IN,
                             KOFN_F64},
                        out = {y, ROWS, back ? IN : OUT, back ? IN : OUT,
                               KOFN_F64};
            bool stood = stands(&c.way[back].code, set, t.probabilistic[back]);
            size_t bad;
            kofn_status st;

            erring_encode(&l, &w);
            spoil(&l, set, &r);
            erring_answer(&l, back, &a, &none);
            st = erring_decode(&l, back, false, &out, &bad);
            assert_int_equal(st, stood ? KOFN_OK : KOFN_CORRUPT);
            if (!stood)
                continue;
            assert_true(away(&out, want[back]) < 1e-10);
            /* and repaired: the blocks are those of W again */
            assert_ok(erring_repair(&l, &c.way[back].code));
            if (bad && kind <= DNN_GPD_VUM) {
                double again[OUT * IN];
                kofn_matrix read = {again, OUT, IN, IN, KOFN_F64};

                assert_ok(erring_read(&l, &read));
                assert_true(away(&read, W) < 1e-10);
            }
        }
    erring_layer_free(&l);
    erring_nodes_free(&c);
}

static void every_set_of_wrong_nodes(void **state)
{
    (void)state;
    every_set_of(DNN_GPD_UVN, 9, 2, 1);
    every_set_of(DNN_GPD_UVN, 9, 2, 2);
    every_set_of(DNN_GPD_VUM, 9, 2, 2);
    every_set_of(DNN_REPLICATION, 8, 2, 1);
    every_set_of(DNN_REPLICATION, 8, 1, 2);
    every_set_of(DNN_TWO_MDS, 8, 2, 1);
    every_set_of(DNN_TWO_MDS, 8, 1, 2);
}

/* ---- trainings --------------------------------------------------------------- */

#define POINTS 120
#define BATCH 20

static double parted(const kofn_net *a, const kofn_net *b, size_t layers)
{
    double most = 0;

    for (size_t l = 1; l <= layers; l++) {
        const kofn_matrix *x = kofn_net_weights(a, l),
                          *y = kofn_net_weights(b, l);

        for (size_t i = 0; i < x->rows * x->cols; i++)
            most = fmax(most,
                        fabs(((double *)x->data)[i] - ((double *)y->data)[i]));
    }
    return most;
}

static kofn_net_shape shape_of(bool autoencoder)
{
    static const size_t widths[] = {25, 13, 12, 10}, hour_glass[] = {25, 9, 25};

    return autoencoder ? (kofn_net_shape){.size = sizeof(kofn_net_shape),
                                          .layers = 2,
                                          .widths = hour_glass,
                                          .output = KOFN_SIGMOID,
                                          .cost = KOFN_COST_SQUARES,
                                          .autoencoder = true,
                                          .sparsity = 0.1,
                                          .sparsity_weight = 0.3}
                       : (kofn_net_shape){.size = sizeof(kofn_net_shape),
                                          .layers = 3,
                                          .widths = widths};
}

static erring_result erred(const kofn_net_shape *shape, const erring_options *e,
                           unsigned epochs, double *distance)
{
    digits d = make_digits(POINTS, 5, 10, 7);
    const kofn_train_options opt = {.size = sizeof opt,
                                    .step = 0.5,
                                    .l2 = 1e-5,
                                    .batch = BATCH,
                                    .epochs = epochs,
                                    .seed = 3};
    kofn_net *plain, *net;
    kofn_training *a, *b;
    erring_result res;
    const kofn_matrix *y = shape->autoencoder ? NULL : &d.y;

    assert_ok(kofn_net_new(&plain, shape, 5));
    assert_ok(kofn_net_new(&net, shape, 5));
    assert_ok(kofn_training_new(&a, plain, &d.X, y, &opt));
    assert_ok(kofn_training_new(&b, net, &d.X, y, &opt));
    assert_ok(kofn_train_plain(a, NULL));
    assert_ok(erring_train(b, e, &res));
    *distance = parted(plain, net, shape->layers);
    kofn_training_free(a);
    kofn_training_free(b);
    kofn_net_free(plain);
    kofn_net_free(net);
    digits_free(&d);
    return res;
}

/* Without faults every kind of nodes takes the steps of the plain training. */
static void all_take_the_same_steps(void **state)
{
    static const dnn_redundancy all[] = {
        DNN_GPD_UVN, DNN_GPD_VUM, DNN_REPLICATION, DNN_TWO_MDS, DNN_NONE};

    (void)state;
    for (size_t k = 0; k < COUNT(all); k++)
        for (size_t grid = 0; grid < 3; grid++) {
            static const size_t m[] = {2, 3, 2}, n[] = {2, 2, 3};
            erring_options e = {.size = sizeof e,
                                .kind = all[k],
                                .nodes = 18,
                                .m = m[grid],
                                .n = n[grid]};
            kofn_net_shape shape = shape_of(grid == 2);
            double distance;
            erring_result r = erred(&shape, &e, 4, &distance);

            assert_true(r.finished && r.steps == 24 && r.taken == 24);
            assert_int_equal(r.faults + r.corrected + r.repaired + r.rollbacks,
                             0);
            assert_int_equal(r.products, 24 * (2 * shape.layers - 1));
            assert_true(distance < 1e-12);
        }
}

/* With them a code ends there as well, whatever operation of a node went wrong. */
static void faults_cost_nothing(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT(kinds); k++)
        for (size_t hour_glass = 0; hour_glass < 2; hour_glass++) {
            erring_options e = {.size = sizeof e,
                                .kind = kinds[k],
                                .nodes = 12,
                                .m = 2,
                                .n = 2,
                                .chance = k < 2 ? 0.01 : 0.003,
                                .everywhere = k < 2,
                                .checkpoint = 6,
                                .seed = 11};
            kofn_net_shape shape = shape_of(hour_glass);
            double distance;
            erring_result r = erred(&shape, &e, 8, &distance);

            assert_true(r.finished && r.faults > 0 && r.repaired > 0);
            assert_true(r.taken >= r.steps && distance < 1e-11);
        }
}

/* No code, and noise in a training: what comes out is something else. */
static void nothing_sees_it_without_code(void **state)
{
    erring_options e = {.size = sizeof e,
                        .kind = DNN_NONE,
                        .nodes = 4,
                        .m = 2,
                        .n = 2,
                        .chance = 0.02,
                        .seed = 2};
    kofn_net_shape shape = shape_of(false);
    double distance;
    erring_result r;

    (void)state;
    r = erred(&shape, &e, 8, &distance);
    assert_true(r.finished && r.faults > 0 && r.rollbacks == 0);
    assert_true(distance > 0.1);
}

/* Operations that go wrong are as many as the chance says: of 12 nodes, 600 steps of
 * two layers, 12 x (2 + 1 + 2) = 60 a step, within six deviations. */
static void as_often_as_chance_says(void **state)
{
    erring_options e = {.size = sizeof e,
                        .kind = DNN_REPLICATION,
                        .nodes = 12,
                        .m = 2,
                        .n = 2,
                        .chance = 0.002,
                        .checkpoint = 6,
                        .seed = 4};
    kofn_net_shape shape = shape_of(true);
    double distance, trials, deviation;
    erring_result r;

    (void)state;
    r = erred(&shape, &e, 20, &distance);
    /* a step that ends with going back has had the forward product at least */
    trials = 60.0 * r.taken;
    deviation = sqrt(trials * 0.002);
    assert_true(fabs((double)r.faults - trials * 0.002) <
                6 * deviation + 60.0 * r.rollbacks * 0.002);
}

static void refusals(void **state)
{
    dnn_tried got;

    (void)state;
    assert_int_equal(
        dnn_tolerance_try(&(dnn_nodes){DNN_GPD_UVN, 7, 2, 2, {1, 1}}, 1, 1,
                          &got),
        KOFN_OK);
    assert_int_equal(
        dnn_tolerance_try(&(dnn_nodes){DNN_GPD_UVN, 6, 2, 2, {1, 1}}, 1, 1,
                          &got),
        KOFN_TOOFEW);
    assert_int_equal(
        dnn_tolerance_try(&(dnn_nodes){DNN_NONE, 8192, 90, 90, {1, 1}}, 1, 1,
                          &got),
        KOFN_INVAL);
}

TEST_FILE(erring_test)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_limits),
        cmocka_unit_test(every_set_of_wrong_nodes),
        cmocka_unit_test(all_take_the_same_steps),
        cmocka_unit_test(faults_cost_nothing),
        cmocka_unit_test(nothing_sees_it_without_code),
        cmocka_unit_test(as_often_as_chance_says),
        cmocka_unit_test(refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
