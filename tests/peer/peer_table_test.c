/* peer_table_test.c -- what a node of a mesh derives from products that differ.
 */
#include "rig.h"

#include "mesh/host.h"
#include "peer/node.h"

typedef struct three_product {
    kofn_matrix A[3], v;
    kofn_plan *plan[3];
    kofn_operand operand[3];
    kofn_mesh_product product[3];
    kofn_transport t;
    kf_host *host;
} three_product;

static kofn_time no_time(void *ud)
{
    (void)ud;
    return 0;
}

/* The middle product has the longest product, needs the most nodes and has
 * seats for no more than five. */
static void products_up(three_product *x)
{
    static const char *const spec[] = {"mds:k=2", "mds:k=3,basis=harmonic",
                                       "mds:k=2"};
    static const size_t rows[] = {6, 30000, 6};
    const kofn_peer_options o = {.size = sizeof o, .seat = KOFN_NO_SEAT};
    kofn_program program = {.size = sizeof program,
                            .product = x->product,
                            .products = 3,
                            .operand = x->operand,
                            .operands = 3};

    *x = (three_product){.t.size = sizeof x->t,
                         .v = random_matrix(6, 1, KOFN_F64, 1)};
    for (uint32_t i = 0; i < 3; i++) {
        kofn_problem pb =
            KOFN_PROBLEM_INIT(KOFN_MATVEC, rows[i], 6, 1, KOFN_F64, false);

        x->A[i] = random_matrix(rows[i], 6, KOFN_F64, 2 + i);
        assert_ok(kofn_plan_new(&x->plan[i], &pb, spec[i], 5, 3));
        x->operand[i].dense = &x->A[i];
        x->product[i] = (kofn_mesh_product){.plan = x->plan[i], .operand = i};
    }
    assert_ok(kf_host_new(&x->host, &x->t, &program, &o, &x->v,
                          (kf_timer){no_time, NULL}));
}

static void products_down(three_product *x)
{
    kf_host_free(x->host);
    for (size_t i = 0; i < 3; i++) {
        kofn_plan_free(x->plan[i]);
        kf_free(x->A[i].data);
    }
    kf_free(x->v.data);
}

static void maxima_over_product(void **state)
{
    three_product x;

    (void)state;
    products_up(&x);
    assert_int_equal(x.host->node->enough, 3);
    assert_int_equal(x.host->node->max_seats, 5);
    assert_true(x.t.body_max >= 30000 * sizeof(double));
    products_down(&x);
}

static void decoders_are_trimmed(void **state)
{
    static const uint32_t seats[] = {0, 1, 3};
    const kofn_decoder *d;
    three_product x;

    (void)state;
    count_allocations();
    products_up(&x);
    for (size_t i = 0; i < 3; i++) {
        kf_peer_product *product = &x.host->node->product[i];
        size_t k = product->plan->layout.enough;
        long empty;

        kf_cache_free(product->cache);
        assert_ok(kf_cache_new(&product->cache, product->code, 0));
        assert_ok(kf_cache_get(product->cache, seats, k, false, &d));
        kf_cache_trim(product->cache); /* the rows of these seats stay */
        empty = allocated();
        assert_ok(kf_cache_get(product->cache, seats, k, false, &d));
        assert_true(allocated() > empty);
        kf_peer_clear_iterate(x.host->node);
        assert_int_equal(allocated(), empty);
    }
    products_down(&x);
    assert_int_equal(allocated(), 0);
    kofn_set_alloc(NULL, NULL);
}

static size_t groups_of(const char *spec, size_t nodes, kofn_errors errors)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATMUL, 4096, 64, 64, KOFN_F64, false);
    kofn_plan *p;
    size_t groups;

    assert_ok(kofn_plan_new(&p, &pb, spec, nodes, 1));
    groups = kf_node_groups(&(kofn_mesh_product){.plan = p}, nodes, errors);
    kofn_plan_free(p);
    return groups;
}

/* Expected values, by hand. If 7 of 8 nodes compute every group, a node
 * computes 2 of 2, which is 8/7 of the least. If 7 of 9 do, 2 of 2, 3 of 3 and
 * 4 of 4 are 9/7 of the least, and 4 of 5 is 36/35. If 9 of 12 do, 3 of 4 is
 * the least. If 3 of 9 do, 1 of 2 is 3/2 and 1 of 3 is the least. */
static void groups_if_errors_are_searched(void **state)
{
    const kofn_errors all = KOFN_ERRORS_ADVERSARIAL;

    (void)state;
    assert_int_equal(groups_of("mds:k=6", 8, KOFN_ERRORS_NONE), 8);
    assert_int_equal(groups_of("mds:k=6", 8, all), 2);
    assert_int_equal(groups_of("mds:k=6", 9, all), 5);
    assert_int_equal(groups_of("mds:k=6", 12, all), 4);
    assert_int_equal(groups_of("mds:k=2", 9, KOFN_ERRORS_PROBABILISTIC), 3);
}

TEST_FILE(peer_table_test)
{
    const struct CMUnitTest tests[] = {
        TEST(maxima_over_product,
             "peer: a node takes the largest need of all products"),
        TEST(decoders_are_trimmed,
             "peer: decoders of a past iterate are freed in every product"),
        TEST(groups_if_errors_are_searched,
             "peer: the number of groups minimizes the work with errors"),
    };

    rig_begin();
    return cmocka_run_group_tests_name("peer_table", tests, NULL, NULL);
}
