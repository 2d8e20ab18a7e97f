/* results_test.c -- tests that a comparison is prepared from its operands.  The
 * measures of results are the norms of all rows and columns that are coded
 * together, here summed entry by entry.  They are kept until the input is
 * forgotten. */
#include "check_rig.h"

#include "verify/results.h"

#define CACHE ((size_t)1 << 20)

/* One product with its operands still there. */
typedef struct case_of {
    check_case f;
    kf_resident resident;
    kf_messages messages;
    kf_norms norms;
    kf_sides sides;
    kf_cache *cache;
    const kofn_decoder *decoder;
    kf_source source[MOST_SEATS];
} case_of;

static void up(case_of *c, const kind *k)
{
    uint32_t seat[MOST_SEATS];

    *c = (case_of){.norms = {.groups = 0}};
    check_case_up(&c->f, k);
    send_honest(&c->f);
    assert_ok(kf_resident_dense(&c->resident, c->f.plan, &c->f.A));
    assert_ok(kf_messages_begin(&c->messages, c->f.plan, &c->f.in, 1));
    c->sides = (kf_sides){.resident = &c->resident,
                          .norms = &c->norms,
                          .messages = &c->messages,
                          .whole = &c->messages.plain->m};
    for (uint32_t i = 0; i < c->f.seats; i++) {
        seat[i] = i;
        c->source[i] = (kf_source){&c->f.sent[i], 0, c->f.plan->span};
    }
    assert_ok(kf_cache_new(&c->cache, c->f.code, CACHE));
    assert_ok(kf_cache_get(c->cache, seat, c->f.seats, false, &c->decoder));
}

static void down(case_of *c)
{
    kf_sides_forget(&c->sides);
    kf_norms_forget(&c->norms);
    kf_messages_free(&c->messages);
    kf_resident_free(&c->resident);
    kf_cache_free(c->cache);
    check_case_down(&c->f);
}

static kf_compare compare_all(case_of *c)
{
    size_t n = c->f.seats, spare = n - c->f.enough;

    return (kf_compare){.plan = c->f.plan,
                        .code = c->f.code,
                        .decoder = c->decoder,
                        .source = c->source,
                        .hi = c->f.plan->span,
                        .most = spare - 1,
                        .liars = spare / 2,
                        .independent = spare - 1,
                        .secret = 5,
                        .number = 1};
}

/* Returns the norm of all rows (or columns) of x that are `every` apart, from
 * this one on. */
static double together(const kofn_matrix *x, bool column, size_t from,
                       size_t every)
{
    double sum = 0;

    for (size_t i = 0; i < x->rows; i++)
        for (size_t j = 0; j < x->cols; j++)
            if ((column ? j : i) % every == from)
                sum += kf_mat_entry(x, i, j) * kf_mat_entry(x, i, j);
    return sqrt(sum);
}

static void are_measured(const case_of *c, const kf_compare *by)
{
    bool left = is_left(c->f.k);
    const kofn_matrix *first = left ? &c->f.in : &c->f.A;
    const kofn_matrix *second = left ? &c->f.A : &c->f.in;
    size_t width = c->f.sent[0].cols;

    for (size_t i = 0; i < c->f.plan->span; i++)
        assert_at_most(
            fabs(together(first, false, i, c->f.plan->span) - by->row[i]),
            1e-12 * by->row[i]);
    for (size_t j = 0; j < width; j++)
        assert_at_most(fabs(together(second, true, j, width) - by->col[j]),
                       1e-12 * by->col[j]);
}

static void operands_measure_results(void **state)
{
    static const kind of[] = {
        {"mds:k=4", 7, KOFN_MATMUL, 40, 11, 6, KOFN_F64, false},
        {"matdot:n=3", 8, KOFN_MATMUL, 10, 12, 7, KOFN_F64, false},
        {"polynomial:m=2,p=2", 9, KOFN_MATMUL, 21, 8, 9, KOFN_F64, false},
        {"gpd:m=2,n=2,p=1,sub=vum", 10, KOFN_LEFT, 18, 12, 9, KOFN_F64, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        uint32_t bad[MOST_SEATS];
        kf_found found = {.bad = bad};
        kf_compare by;
        case_of c;

        up(&c, &of[i]);
        by = compare_all(&c);
        assert_ok(
            kf_verify_results(&by, &c.sides, c.cache, 1e-6, true, &found));
        assert_ok(found.status);
        assert_int_equal(found.count, 0);
        are_measured(&c, &by);
        *(double *)c.f.sent[2].data += 1;
        assert_ok(
            kf_verify_results(&by, &c.sides, c.cache, 1e-6, true, &found));
        assert_ok(found.status);
        assert_int_equal(found.count, 1);
        assert_int_equal(kf_found_located(&found), 1);
        assert_int_equal(bad[0], 2);
        down(&c);
    }
}

/* Norms are those of the input that was there when they were computed. */
static void norms_are_kept(void **state)
{
    static const kind of = {"mds:k=4", 7, KOFN_MATMUL, 40,
                            11,        6, KOFN_F64,    false};
    double *x, was;
    kf_compare by;
    case_of c;

    (void)state;
    up(&c, &of);
    by = compare_all(&c);
    assert_ok(kf_sides_measure(&c.sides, &by));
    was = by.col[3];
    assert_true(was > 0);
    x = c.messages.plain->m.data;
    for (size_t i = 0; i < 11 * 6; i++)
        x[i] *= 2;
    assert_ok(kf_sides_measure(&c.sides, &by));
    assert_true(by.col[3] == was);
    kf_sides_forget(&c.sides);
    assert_ok(kf_sides_measure(&c.sides, &by));
    assert_true(by.col[3] == 2 * was);
    down(&c);
}

/* Strips that were read replace the bounds of a matrix that has changed, but
 * not below what its blocks were rounded at. */
static void read_norms_replace_bounds(void **state)
{
    static const kind of = {"mds:k=4", 7, KOFN_MATMUL, 40,
                            11,        6, KOFN_F64,    false};
    kofn_change change = KOFN_CHANGE_INIT;
    kofn_matrix U = random_matrix(2, 40, KOFN_F64, 7);
    kofn_matrix V = random_matrix(2, 11, KOFN_F64, 8);
    double was, bound;
    case_of c;

    (void)state;
    up(&c, &of);
    change.add[0] = -1e-3;
    assert_ok(kf_norms_await(&c.norms, &c.resident, 0, true));
    was = c.norms.norm[0][1];
    assert_ok(kf_norms_grow(&c.norms, &c.resident, &change, &U, &V));
    bound = c.norms.norm[0][1];
    assert_true(bound > was);
    assert_ok(kf_norms_renew(&c.norms, &c.resident));
    assert_true(c.norms.norm[0][1] == was);
    for (size_t g = 0; g < c.norms.groups; g++)
        c.norms.least[g][1] = 2 * was;
    assert_ok(kf_norms_renew(&c.norms, &c.resident));
    assert_true(c.norms.norm[0][1] == 2 * was);
    kf_free(U.data);
    kf_free(V.data);
    down(&c);
}

TEST_FILE(results_test)
{
    const struct CMUnitTest tests[] = {
        TEST(operands_measure_results,
             "results: are measured by what is multiplied"),
        TEST(norms_are_kept, "results: norms are kept while the input is"),
        TEST(read_norms_replace_bounds,
             "results: norms that were read replace bounds"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
