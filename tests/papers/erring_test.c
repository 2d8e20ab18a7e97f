/* erring_test.c -- training on faulty nodes: the published tolerances are
 * reached and not exceeded, and the nodes of a mesh end like the plain
 * training. */
#include "train_rig.h"

#include "dnn/dnn.h"

static const dnn_redundancy kinds[] = {DNN_GPD_UVN, DNN_GPD_VUM,
                                       DNN_REPLICATION, DNN_TWO_MDS};

/* ---- limits ----------------------------------------------------------------
 */

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
        assert_true(got.declared);
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

/* ---- a mesh ---------------------------------------------------------------
 */

#define POINTS 120
#define BATCH 20
#define STEPS (POINTS / BATCH) /* of an epoch */

static kofn_net_shape shape_of(bool autoencoder)
{
    static const size_t widths[] = {25, 13, 12, 10}, hour_glass[] = {25, 9, 25};

    return autoencoder ? (kofn_net_shape){.size = sizeof(kofn_net_shape),
                                          .layers = 2,
                                          .widths = hour_glass,
                                          .output = KOFN_SIGMOID,
                                          .loss = KOFN_NET_LOSS_SQUARES,
                                          .autoencoder = true,
                                          .sparsity = 0.1,
                                          .sparsity_weight = 0.3}
                       : (kofn_net_shape){.size = sizeof(kofn_net_shape),
                                          .layers = 3,
                                          .widths = widths};
}

static dnn_run erred(bool autoencoder, bool coded, double chance,
                     unsigned epochs)
{
    digits d = make_digits(POINTS, 5, 10, 7);
    const kofn_matrix *y = autoencoder ? NULL : &d.y;
    dnn_lesson l = {.shape = shape_of(autoencoder),
                    .opt = {.size = sizeof l.opt,
                            .step = 0.5,
                            .l2 = 1e-5,
                            .batch = BATCH,
                            .epochs = epochs,
                            .seed = 3},
                    .X = &d.X,
                    .y = y,
                    .test_X = &d.X,
                    .test_y = y,
                    .seed = 5,
                    .steps = epochs * STEPS};
    kofn_training *t;
    dnn_run run;

    assert_ok(kofn_net_new(&l.plain, &l.shape, l.seed));
    assert_ok(kofn_training_new(&t, l.plain, l.X, l.y, &l.opt));
    assert_ok(kofn_train_plain(t, NULL));
    assert_ok(dnn_mesh_train(&l, coded, chance, &run));
    kofn_training_free(t);
    kofn_net_free(l.plain);
    digits_free(&d);
    assert_true(run.did.finished && run.did.steps == l.steps);
    return run;
}

static void a_mesh_takes_the_same_steps(void **state)
{
    (void)state;
    for (int coded = 0; coded < 2; coded++) {
        dnn_run r = erred(false, coded, 0, 3);

        assert_true(r.apart < 1e-12);
        assert_int_equal(r.did.faults + r.did.corrected + r.did.rollbacks, 0);
    }
}

/* With the code, faults in any operation lead to the same end. */
static void faults_cost_nothing(void **state)
{
    (void)state;
    for (int autoencoder = 0; autoencoder < 2; autoencoder++) {
        dnn_run r = erred(autoencoder, true, 0.02, 3);

        assert_true(r.did.faults > 0 && r.did.corrected > 0);
        assert_true(r.apart < 1e-8);
    }
}

/* Without a code, noise changes the result. Operations fail with the given
 * probability: in a step four nodes compute five products and change three
 * blocks. */
static void nothing_sees_it_without_code(void **state)
{
    const unsigned epochs = 40;
    dnn_run r = erred(false, false, 0.02, epochs);
    double expected = 0.02 * 4 * (5 + 3) * epochs * STEPS;

    (void)state;
    assert_true(fabs((double)r.did.faults - expected) < 6 * sqrt(expected));
    assert_int_equal(r.did.corrected + r.did.rollbacks, 0);
    assert_true(r.apart > 0.1);
}

TEST_FILE(erring_test)
{
    const struct CMUnitTest tests[] = {
        TEST(published_limits,
             "dnn: the published limits are reached and not exceeded"),
        TEST(refusals, "dnn: impossible sizes are refused"),
        TEST(a_mesh_takes_the_same_steps,
             "dnn: a mesh takes the steps of the plain training"),
        TEST(faults_cost_nothing,
             "dnn: with the code, random faults do not change the weights"),
        TEST(nothing_sees_it_without_code,
             "dnn: without a code, random faults change the weights"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
