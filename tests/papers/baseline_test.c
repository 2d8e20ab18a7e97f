/* baseline_test.c -- replication and two MDS codes, trained on faulty nodes:
 * their weights against the library's plain training (math/training.md 7). */
#include "rig.h"

#include "dnn/baseline.h"

#include <string.h>

/* ---- training cases -------------------------------------------------------
 */

#define POINTS 50 /* in batches of 20: the last one of an epoch has 10 */
#define INPUTS 7

typedef struct school {
    images points;
    dnn_lesson l;
    size_t widths[4];
} school;

static void fill(kofn_matrix *X, kofn_matrix *y, size_t rows, uint64_t seed)
{
    double *x = calloc(rows * INPUTS, sizeof *x),
           *label = calloc(rows, sizeof *label);
    dice d = dice_for(seed, 77, rows);

    assert_true(x && label);
    for (size_t i = 0; i < rows; i++) {
        label[i] = floor(4 * dice_uniform(&d));
        for (size_t j = 0; j < INPUTS; j++)
            x[i * INPUTS + j] = fmin(fmax(0.5 + 0.1 * dice_normal(&d) +
                                              (j == (size_t)label[i] ? 0.3 : 0),
                                          0),
                                     1);
    }
    *X = as_matrix(x, rows, INPUTS);
    *y = as_matrix(label, rows, 1);
}

/* Trains plainly, by the library: 3 steps per epoch. Widths are not multiples
 * of the parts. */
static void begin(school *s, size_t layers, unsigned epochs)
{
    bool autoencoder = layers == 2;
    kofn_score score;

    *s = (school){.widths = {INPUTS, 9, 5, 4}};
    s->widths[layers] = autoencoder ? INPUTS : 4;
    s->l = (dnn_lesson){.shape = {.size = sizeof s->l.shape,
                                  .layers = layers,
                                  .widths = s->widths,
                                  .output = KOFN_SIGMOID,
                                  .loss = autoencoder ? KOFN_NET_LOSS_SQUARES
                                                      : KOFN_NET_LOSS_SOFTMAX,
                                  .autoencoder = autoencoder,
                                  .sparsity = autoencoder ? 0.2 : 0,
                                  .sparsity_weight = autoencoder ? 0.1 : 0},
                        .opt = {.step = 0.5, .epochs = epochs},
                        .seed = 5};
    fill(&s->points.X, &s->points.y, POINTS, 1);
    fill(&s->points.test_X, &s->points.test_y, 40, 2);
    assert_ok(dnn_learn_plainly(&s->l, &s->points, &score));
}

static void end(school *s)
{
    kofn_net_free(s->l.plain);
    images_free(&s->points);
}

static double largest(const kofn_net *net)
{
    const kofn_matrix *W;
    double most = 0;

    for (size_t l = 1; (W = kofn_net_weights(net, l)); l++)
        for (size_t i = 0; i < W->rows * W->cols; i++)
            most = fmax(most, fabs(((double *)W->data)[i]));
    return most;
}

/* Trains to the end, and checks that the weights equal the plain ones. */
static dnn_run same_as_plain(const dnn_baseline *b)
{
    dnn_run run;
    kofn_net *net;
    kofn_score score;

    assert_ok(dnn_baseline_train(b, &run, &net));
    assert_true(run.did.finished);
    assert_int_equal(run.did.steps, b->l->steps);
    assert_at_most(dnn_apart(net, b->l->plain), 1e-12 * largest(net));
    assert_true(run.apart == dnn_apart(net, b->l->plain));
    assert_ok(kofn_net_score(net, b->l->test_X, b->l->test_y, &score));
    assert_true(run.loss == score.loss);
    assert_true(!b->l->y || run.accuracy == score.accuracy);
    kofn_net_free(net);
    return run;
}

static const dnn_nodes copies_12 = {DNN_REPLICATION, 12, 2, 2, {1, 1}},
                       copies_16 = {DNN_REPLICATION, 16, 2, 2, {1, 1}},
                       codes_12 = {DNN_TWO_MDS, 12, 2, 2, {1, 1}},
                       codes_16 = {DNN_TWO_MDS, 16, 2, 2, {1, 1}};

/* ---- without errors ------------------------------------------------------ */

static void right_nodes_train_plainly(void **state)
{
    static const dnn_nodes nodes[] = {{DNN_REPLICATION, 12, 2, 2, {1, 1}},
                                      {DNN_REPLICATION, 18, 3, 2, {1, 1}},
                                      {DNN_REPLICATION, 3, 1, 1, {1, 1}},
                                      {DNN_REPLICATION, 4, 2, 2, {1, 1}},
                                      {DNN_TWO_MDS, 12, 2, 2, {1, 1}},
                                      {DNN_TWO_MDS, 16, 2, 2, {1, 1}},
                                      {DNN_TWO_MDS, 21, 3, 2, {1, 1}},
                                      {DNN_TWO_MDS, 8, 2, 2, {1, 1}}};

    (void)state;
    for (size_t layers = 1; layers <= 3; layers++) {
        school s;

        begin(&s, layers, 20);
        for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
            const dnn_baseline b = {.l = &s.l, .nodes = nodes[i]};
            dnn_run run = same_as_plain(&b);

            assert_true(run.did.faults == 0 && run.did.rollbacks == 0 &&
                        run.did.corrected == 0);
        }
        end(&s);
    }
}

/* ---- chosen errors --------------------------------------------------------
 */

/* Nodes that are wrong in one operation of one step. */
typedef struct errors {
    unsigned attempt;
    dnn_operation op;
    size_t layer;
    uint64_t nodes;
} errors;

static bool strike(void *ud, size_t node, unsigned attempt, dnn_operation op,
                   size_t layer)
{
    const errors *e = ud;

    return attempt == e->attempt && op == e->op && layer == e->layer &&
           e->nodes >> node & 1;
}

/* Trains with these errors, to the plain weights all the same. */
static void erring(const school *s, dnn_nodes nodes, errors e, size_t corrected,
                   size_t rollbacks)
{
    const dnn_baseline b = {
        .l = &s->l, .nodes = nodes, .err = strike, .err_ud = &e};
    dnn_run run = same_as_plain(&b);
    size_t faults = 0;

    for (uint64_t left = e.nodes; left; left &= left - 1)
        faults++;
    assert_int_equal(run.did.faults, faults);
    assert_int_equal(run.did.corrected, corrected);
    assert_int_equal(run.did.rollbacks, rollbacks);
}

/* Node 4 q + i + 2 j has row i and column j of copy q. */
#define COPY(q, i, j) (UINT64_C(1) << (4 * (q) + (i) + 2 * (j)))

/* F.10: with four copies two may be wrong, not three. */
static void copies_vote(void **state)
{
    school s;

    (void)state;
    begin(&s, 3, 20);
    for (dnn_operation op = DNN_FORWARD; op <= DNN_UPDATE; op++) {
        uint64_t two = COPY(0, 1, 0) | COPY(2, 1, 0);

        erring(&s, copies_16, (errors){7, op, 2, two}, 1, 0);
        erring(&s, copies_16, (errors){7, op, 2, two | COPY(3, 1, 0)}, 0, 1);
        /* Another row, and another column, have their own votes. */
        erring(&s, copies_16, (errors){7, op, 2, two | COPY(3, 0, 1)}, 2, 0);
    }
    erring(&s, copies_12, (errors){7, DNN_BACK, 3, COPY(1, 1, 1)}, 1, 0);
    erring(&s, copies_12,
           (errors){7, DNN_BACK, 3, COPY(1, 1, 1) | COPY(2, 0, 1)}, 0, 1);
    end(&s);
}

/* Returns the node in a code with `more` parity rows and columns on 2 x 2:
 * column by column, then the parity columns. */
static uint64_t coded(size_t more, size_t row, size_t col)
{
    size_t tall = 2 + more;

    return UINT64_C(1) << (col < 2 ? row + tall * col
                                   : 2 * tall + row + 2 * (col - 2));
}

static void codes_correct(void **state)
{
    school s;

    (void)state;
    begin(&s, 3, 20);
    for (size_t row = 0; row < 4;
         row++) /* both nodes of a row form one value */
        erring(&s, codes_12,
               (errors){9, DNN_FORWARD, 2, coded(2, row, 0) | coded(2, row, 1)},
               1, 0);
    for (size_t col = 0; col < 4; col++)
        erring(&s, codes_12, (errors){9, DNN_BACK, 2, coded(2, 1, col)}, 1, 0);
    erring(&s, codes_12,
           (errors){9, DNN_FORWARD, 1, coded(2, 0, 0) | coded(2, 3, 0)}, 0, 1);
    erring(&s, codes_12,
           (errors){9, DNN_BACK, 3, coded(2, 0, 1) | coded(2, 0, 3)}, 0, 1);
    /* With three parity lines, two errors are corrected. */
    erring(&s, codes_16,
           (errors){9, DNN_FORWARD, 1, coded(3, 0, 0) | coded(3, 4, 1)}, 1, 0);
    erring(&s, codes_16,
           (errors){9, DNN_FORWARD, 1,
                    coded(3, 0, 0) | coded(3, 4, 1) | coded(3, 1, 1)},
           0, 1);
    end(&s);
}

/* F.10: a wrong update of a parity column shows after the next backward
 * product. The first layer has none: there it is found when blocks are kept. */
static void updates_of_parity_columns(void **state)
{
    school s;

    (void)state;
    begin(&s, 3, 20);
    erring(&s, codes_12, (errors){9, DNN_UPDATE, 2, coded(2, 0, 3)}, 1, 0);
    erring(&s, codes_12, (errors){9, DNN_UPDATE, 1, coded(2, 0, 3)}, 0, 0);
    erring(&s, codes_12,
           (errors){9, DNN_UPDATE, 1, coded(2, 0, 2) | coded(2, 0, 3)}, 0, 1);
    /* in a step after which blocks are kept */
    erring(&s, codes_12, (errors){50, DNN_UPDATE, 3, coded(2, 2, 1)}, 0, 0);
    erring(&s, copies_12, (errors){50, DNN_UPDATE, 3, COPY(0, 0, 0)}, 0, 0);
    erring(&s, copies_12,
           (errors){50, DNN_UPDATE, 3, COPY(0, 0, 0) | COPY(1, 0, 0)}, 0, 1);
    end(&s);
}

/* Tables I and III: the stated number of wrong values is corrected; one more
 * causes a rollback. */
static void published_limits_are_reached(void **state)
{
    static const size_t sizes[][3] = {{12, 2, 2}, {18, 3, 2}, {18, 2, 3},
                                      {27, 3, 3}, {16, 2, 2}, {24, 2, 3}};
    static const dnn_redundancy kinds[] = {DNN_REPLICATION, DNN_TWO_MDS};
    school s;

    (void)state;
    begin(&s, 3, 4);
    for (size_t i = 0; i < 4 * sizeof sizes / sizeof *sizes; i++) {
        const size_t *z = sizes[i / 4];
        const dnn_nodes nodes = {kinds[i / 2 % 2], z[0], z[1], z[2], {1, 1}};
        bool back = i % 2;
        errors e = {5, back ? DNN_BACK : DNN_FORWARD, 2, 0};
        dnn_tolerance t;
        baseline_code c;

        assert_ok(dnn_tolerance_of(&nodes, &t));
        assert_ok(baseline_code_new(&c, &nodes));
        for (size_t v = 0; v <= t.probabilistic[back]; v++) {
            e.nodes |= UINT64_C(1) << baseline_member(&c, back, 0, v, v % 2);
            erring(&s, nodes, e, v < t.probabilistic[back],
                   v == t.probabilistic[back]);
        }
        baseline_code_free(&c);
    }
    end(&s);
}

/* ---- random errors --------------------------------------------------------
 */

/* One copy cannot be compared. */
static void without_spare_nodes_errors_stay(void **state)
{
    static const dnn_nodes nodes[] = {{DNN_REPLICATION, 4, 2, 2, {1, 1}},
                                      {DNN_TWO_MDS, 4, 2, 2, {1, 1}}};
    school s;

    (void)state;
    begin(&s, 3, 20);
    for (size_t i = 0; i < 2; i++) {
        const dnn_baseline b = {.l = &s.l, .nodes = nodes[i], .chance = 0.01};
        dnn_run run;

        assert_ok(dnn_baseline_train(&b, &run, NULL));
        assert_true(run.did.finished && run.did.faults > 0);
        assert_true(run.apart > 0.1);
    }
    end(&s);
}

static void same_weights(const kofn_net *a, const kofn_net *b)
{
    const kofn_matrix *x, *y;

    for (size_t l = 1; (x = kofn_net_weights(a, l)); l++) {
        y = kofn_net_weights(b, l);
        assert_memory_equal(x->data, y->data,
                            x->rows * x->cols * sizeof(double));
    }
}

static void threads_do_the_same(void **state)
{
    static const dnn_nodes *const nodes[] = {&copies_12, &codes_12};
    school s;

    (void)state;
    begin(&s, 3, 34);
    for (size_t i = 0; i < 2; i++) {
        dnn_baseline b = {.l = &s.l, .nodes = *nodes[i], .chance = 0.009};
        kofn_net *net[2];
        dnn_run run[2];

        for (int threads = 0; threads < 2; threads++) {
            b.threads = threads;
            assert_ok(dnn_baseline_train(&b, &run[threads], &net[threads]));
            assert_string_equal(run[threads].mesh,
                                threads ? "threads" : "simulated");
        }
        same_weights(net[0], net[1]);
        assert_true(run[0].did.rollbacks > 0 && run[0].did.corrected > 0);
        assert_true(run[0].did.finished && run[1].did.finished);
        assert_int_equal(run[0].did.steps, run[1].did.steps);
        assert_int_equal(run[0].did.faults, run[1].did.faults);
        assert_int_equal(run[0].did.corrected, run[1].did.corrected);
        assert_int_equal(run[0].did.rollbacks, run[1].did.rollbacks);
        assert_true(run[0].accuracy == run[1].accuracy);
        kofn_net_free(net[0]);
        kofn_net_free(net[1]);
    }
    end(&s);
}

/* F.14: at q = 0.02 both roll back more often than they keep blocks. */
static void too_many_errors_are_declared(void **state)
{
    static const dnn_nodes *const nodes[] = {&copies_12, &codes_12};
    school s;

    (void)state;
    begin(&s, 3, 50);
    for (size_t i = 0; i < 2; i++) {
        const dnn_baseline b = {.l = &s.l, .nodes = *nodes[i], .chance = 0.02};
        dnn_run run;

        assert_ok(dnn_baseline_train(&b, &run, NULL));
        assert_false(run.did.finished);
        assert_true(run.did.steps < 150 && run.did.rollbacks > 50);
        assert_true(isnan(run.accuracy) && isnan(run.apart));
    }
    end(&s);
}

/* ---- frequency of rollbacks -----------------------------------------------
 */

static double either(double p, double q)
{
    return 1 - (1 - p) * (1 - q);
}

/* Returns the probability that at most one of several values is wrong: a with
 * probability p, b with probability q. */
static double one_at_most(int a, double p, int b, double q)
{
    double none = pow(1 - p, a) * pow(1 - q, b);

    return none * (1 + a * p / (1 - p) + b * q / (1 - q));
}

/* Returns the probability that 50 steps of two layers and the check after them
 * succeed, on 12 nodes in grids of 2 x 2, if each operation fails with
 * probability q. Derived by hand: a wrong block shows in the next product and
 * is then right. A value has two members, and one value of a group may be
 * wrong. */
static double cycle_of_copies(double q)
{
    double late = either(q, q), seen = either(late, late), fresh = either(q, q);
    double forward = pow(one_at_most(3, seen, 0, 0), 2),
           first = pow(one_at_most(3, fresh, 0, 0), 2);
    double kept = pow(one_at_most(3, q, 0, 0), 4);

    return pow(first * pow(forward, 49), 2) * pow(first, 50) * kept * kept;
}

/* The same for two codes (4, 2). Before the check, nodes of parity columns
 * show only in the backward product, which the first layer lacks. */
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

#define CYCLES 200 /* of 50 steps; blocks are kept after each cycle */

static void goes_back_as_often(const school *s, dnn_nodes nodes, double q,
                               double p)
{
    const dnn_baseline b = {.l = &s->l, .nodes = nodes, .chance = q};
    double expected = CYCLES * (1 / p - 1),
           deviation = sqrt(CYCLES * (1 - p)) / p;
    dnn_run run;

    assert_ok(dnn_baseline_train(&b, &run, NULL));
    assert_true(run.did.finished && run.did.steps == 50 * CYCLES);
    if (fabs((double)run.did.rollbacks - expected) > 4 * deviation)
        fail_msg("%zu rollbacks, expected %g +- %g", run.did.rollbacks,
                 expected, deviation);
}

static void rollbacks_are_as_reckoned(void **state)
{
    school s;

    (void)state;
    begin(&s, 2, 1);
    s.widths[0] = s.widths[1] = s.widths[2] = 2; /* blocks without padding */
    s.points.X.cols = s.points.test_X.cols = 2;
    s.l.opt.batch = 1;
    s.l.opt.step = 1e-3;
    s.l.steps = 50 * CYCLES;
    kofn_net_free(s.l.plain);
    assert_ok(kofn_net_new(&s.l.plain, &s.l.shape, 1));
    goes_back_as_often(&s, copies_12, 0.004, cycle_of_copies(0.004));
    goes_back_as_often(&s, codes_12, 0.004, cycle_of_two_codes(0.004));
    end(&s);
}

/* ---- refusals -------------------------------------------------------------
 */

static void refused(const dnn_baseline *b, kofn_status want, const char *words)
{
    dnn_run run;

    assert_status(want, dnn_baseline_train(b, &run, NULL));
    assert_non_null(strstr(kofn_errmsg(), words));
}

static void refusals(void **state)
{
    school s;
    dnn_baseline b;

    (void)state;
    begin(&s, 3, 1);
    b = (dnn_baseline){.l = &s.l, .nodes = {DNN_GPD_UVN, 12, 2, 2, {1, 1}}};
    refused(&b, KOFN_INVAL, "replication");
    b.nodes = (dnn_nodes){DNN_REPLICATION, 52, 2, 2, {1, 1}};
    refused(&b, KOFN_INVAL, "48 at most");
    b.nodes = (dnn_nodes){DNN_TWO_MDS, 48, 2, 2, {1, 1}};
    refused(&b, KOFN_INVAL, "12 at most");
    b.nodes = (dnn_nodes){DNN_TWO_MDS, 3, 2, 2, {1, 1}};
    refused(&b, KOFN_TOOFEW, "2 x 2");
    b.nodes = copies_12;
    s.l.shape.activation = KOFN_RELU;
    refused(&b, KOFN_UNSUITED, "sigmoids");
    end(&s);
}

/* Missing memory at one node ends all of them and frees everything. */
static void out_of_memory(void **state)
{
    static const long when[] = {1, 20, 100, 500, 10000};
    school s;

    (void)state;
    begin(&s, 3, 1);
    for (size_t i = 0; i < sizeof when / sizeof *when; i++)
        for (int threads = 0; threads < 2; threads++) {
            const dnn_baseline b = {
                .l = &s.l, .nodes = codes_12, .threads = threads};
            long before = allocated();
            kofn_status st;
            dnn_run run;

            fail_allocation(when[i]);
            st = dnn_baseline_train(&b, &run, NULL);
            fail_allocation(0);
            assert_int_equal(st, i == 0 || (threads && i < 4) ? KOFN_NOMEM
                                                              : KOFN_OK);
            assert_int_equal(allocated(), before);
        }
    end(&s);
}

TEST_FILE(baseline_test)
{
    const struct CMUnitTest tests[] = {
        TEST(right_nodes_train_plainly,
             "baselines: correct nodes train to the plain weights"),
        TEST(copies_vote,
             "replication: four copies outvote two wrong ones, not three"),
        TEST(codes_correct,
             "two MDS codes: errors up to the limit are corrected"),
        TEST(updates_of_parity_columns,
             "baselines: a wrong update of a parity column is found"),
        TEST(published_limits_are_reached,
             "baselines: the limits of Tables I and III are reached"),
        TEST(without_spare_nodes_errors_stay,
             "baselines: one copy keeps its errors"),
        TEST(threads_do_the_same,
             "baselines: threads and simulation give equal weights"),
        TEST(too_many_errors_are_declared,
             "baselines: at q = 0.02 the training counts as stuck"),
        TEST(rollbacks_are_as_reckoned,
             "baselines: rollbacks are as often as computed by hand"),
        TEST(refusals, "baselines: impossible trainings are refused"),
        TEST(out_of_memory,
             "baselines: missing memory ends all nodes and frees everything"),
    };

    rig_begin();
    count_allocations();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
