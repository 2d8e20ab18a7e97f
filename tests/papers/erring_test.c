/* erring_test.c -- nodes that err and train together: the published tolerances reached
 * and not exceeded, nodes of a mesh that end as the plain training does, and strategies
 * that are counted going back as often as can be reckoned. */
#include "train_rig.h"

#include "dnn/dnn.h"

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
    dnn_lesson l = {.shape = {.layers = 1}, .steps = 1};
    dnn_tried got;
    dnn_did did;

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
    assert_int_equal(
        dnn_count(&l, &(dnn_nodes){DNN_REPLICATION, 3, 2, 2, {1, 1}}, 0, &did),
        KOFN_TOOFEW);
    assert_int_equal(
        dnn_count(&l, &(dnn_nodes){DNN_TWO_MDS, 65, 2, 2, {1, 1}}, 0, &did),
        KOFN_INVAL);
}

/* ---- what is counted --------------------------------------------------------- */

#define CYCLES 4000 /* of 50 steps, each kept when it ends */

static dnn_did counted(dnn_redundancy kind, double q)
{
    dnn_lesson l = {.shape = {.layers = 2}, .steps = 50 * CYCLES, .seed = 8};
    dnn_did did = {0};

    assert_ok(dnn_count(&l, &(dnn_nodes){kind, 12, 2, 2, {1, 1}}, q, &did));
    return did;
}

static double either(double p, double q)
{
    return 1 - (1 - p) * (1 - q);
}

/* At most one of some values is wrong: a of chance p, b of chance q. */
static double one_at_most(int a, double p, int b, double q)
{
    double none = pow(1 - p, a) * pow(1 - q, b);

    return none * (1 + a * p / (1 - p) + b * q / (1 - q));
}

/* The chance that 50 steps of two layers and the comparison after them are told to be
 * right, 12 nodes in grids of 2 x 2, each of whose operations errs with chance q: by
 * hand, for a node is seen to be wrong in the product after, and is right then.  A
 * value has two members, and one value of a group may be wrong. */
static double cycle_of_copies(double q)
{
    double late = either(q, q), seen = either(late, late), fresh = either(q, q);
    double forward = pow(one_at_most(3, seen, 0, 0), 2),
           first = pow(one_at_most(3, fresh, 0, 0), 2);
    double kept = pow(one_at_most(3, q, 0, 0), 4);

    return pow(first * pow(forward, 49), 2) * pow(first, 50) * kept * kept;
}

/* Two codes (4, 2): the four further nodes of the columns are seen on the way back
 * alone, which the first layer does not have, before all are compared. */
static double cycle_of_two_codes(double q)
{
    double late = either(q, q), seen = either(late, late), fresh = either(q, q),
           ever = 1 - pow(1 - q, 50);
    double forward = one_at_most(4, seen, 0, 0),
           first = one_at_most(4, fresh, 0, 0);
    double back = one_at_most(2, fresh, 2, seen);
    double rows = pow(one_at_most(4, q, 0, 0), 2);
    double kept1 = rows * pow(1 - ever * ever, 2),
           kept2 = rows * pow(1 - q * q, 2);

    return pow(first * pow(forward, 49), 2) * first * pow(back, 49) * kept1 *
           kept2;
}

static void goes_back_as_often(dnn_redundancy kind, double q, double p)
{
    dnn_did did = counted(kind, q);
    double expected = CYCLES * (1 / p - 1),
           deviation = sqrt(CYCLES * (1 - p)) / p;

    assert_true(did.finished && did.steps == 50 * CYCLES);
    if (fabs((double)did.rollbacks - expected) > 5 * deviation)
        fail_msg("%zu rollbacks, expected %g +- %g", did.rollbacks, expected,
                 deviation);
}

static void rollbacks_are_as_reckoned(void **state)
{
    (void)state;
    for (double q = 0.001; q < 0.006; q += 0.002) {
        goes_back_as_often(DNN_REPLICATION, q, cycle_of_copies(q));
        goes_back_as_often(DNN_TWO_MDS, q, cycle_of_two_codes(q));
    }
}

static void nothing_goes_wrong_without_chance(void **state)
{
    (void)state;
    for (size_t k = 2; k < COUNT(kinds); k++) {
        dnn_did did = counted(kinds[k], 0);

        assert_true(did.finished);
        assert_int_equal(did.faults + did.corrected + did.rollbacks, 0);
    }
}

/* ---- a mesh ------------------------------------------------------------------ */

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
                                          .cost = KOFN_COST_SQUARES,
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

/* Wherever nodes err the code ends there as well. */
static void faults_cost_nothing(void **state)
{
    (void)state;
    for (int autoencoder = 0; autoencoder < 2; autoencoder++) {
        dnn_run r = erred(autoencoder, true, 0.02, 3);

        assert_true(r.did.faults > 0 && r.did.corrected > 0);
        assert_true(r.apart < 1e-8);
    }
}

/* No code, and noise in a training: what comes out is something else.  Operations go
 * wrong as often as the chance says: in a step four nodes make five products, and
 * change three blocks. */
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
        cmocka_unit_test(published_limits),
        cmocka_unit_test(refusals),
        cmocka_unit_test(rollbacks_are_as_reckoned),
        cmocka_unit_test(nothing_goes_wrong_without_chance),
        cmocka_unit_test(a_mesh_takes_the_same_steps),
        cmocka_unit_test(faults_cost_nothing),
        cmocka_unit_test(nothing_sees_it_without_code),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
