/* audit_test.c -- how a node of a mesh checks a product that other nodes
 * computed. */
#include "rig.h"

#include "code/operation.h"
#include "mesh/host.h"

#include <float.h>

#define ROWS 19

typedef struct audit_case {
    kf_host h;
    kf_mesh_operand operand;
    kf_host_product_data product;
    kofn_plan *plan;
    kofn_matrix A;
    double exact[ROWS];
    double unseen; /* errors below this need not be found: docs/masterless.md */
} audit_case;

/* Prepares A v, or v A if `left`. */
static void up(audit_case *b, bool left)
{
    const kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATVEC, ROWS, ROWS, 1, KOFN_F64, false);
    const kofn_layout *L;
    double *v, most = 0;

    *b = (audit_case){.A = random_matrix(ROWS, ROWS, KOFN_F64, 7)};
    assert_ok(
        kofn_plan_new(&b->plan, &pb, left ? "gpd:m=2,n=2" : "mds:k=2", 8, 1));
    if (left)
        assert_ok(kofn_plan_serve_left(b->plan, 1));
    b->operand = (kf_mesh_operand){.dense = b->A, .plan = b->plan};
    b->product = (kf_host_product_data){.plan = kf_plan_use(b->plan, left),
                                        .of = &b->operand};
    b->h.work.product = b->h.work.on = &b->product;
    L = &b->product.plan->layout;
    assert_ok(kf_buffer_new(&b->h.it.v, ROWS, 1, KOFN_F64));
    assert_ok(kf_buffer_new(&b->product.out, left ? 1 : ROWS, left ? ROWS : 1,
                            KOFN_F64));
    v = b->h.it.v->m.data;
    for (size_t i = 0; i < ROWS; i++)
        v[i] = sin((double)i + 1);
    cblas_dgemv(CblasRowMajor, left ? CblasTrans : CblasNoTrans, ROWS, ROWS, 1,
                b->A.data, ROWS, v, 1, 0, b->exact, 1);
    for (size_t i = 0; i < ROWS; i++)
        for (size_t j = 0; j < ROWS; j++)
            most += fabs(*(double *)kf_at(&b->A, i, j) * v[left ? i : j]);
    /* 4 k (N + k) u |x| |A| |v|, with |x| at most 1 */
    b->unseen = 4 * (double)L->wants * (double)(ROWS + L->enough) *
                (DBL_EPSILON / 2) * most;
}

static void down(audit_case *b)
{
    kf_buffer_drop(b->h.it.v);
    kf_buffer_drop(b->h.work.in);
    kf_buffer_drop(b->h.work.lowered);
    kf_buffer_drop(b->product.out);
    kf_messages_free(&b->h.work.messages);
    kofn_plan_free(b->plan);
    kf_free(b->A.data);
}

static void draw_secret(audit_case *b)
{
    const kf_scaling *l = &b->operand.scaling;

    assert_ok(kf_secret_new(&b->product.secret, b->product.plan,
                            KOFN_DENSE(&b->operand.dense),
                            b->product.plan->op->left ? l->col : l->row));
}

/* Returns true if the check accepts a product with one entry off by `error`
 * and the next off by -`error`. The weights are random and secret. */
static bool accepts(audit_case *b, double error)
{
    double *next = b->product.out->m.data;
    bool same;

    memcpy(next, b->exact, sizeof b->exact);
    next[0] += error;
    next[1] -= error;
    draw_secret(b);
    assert_ok(kf_mesh_freivalds_next(&b->h));
    same = fabs(next[0] - b->exact[0]) >= error / 2;
    if (!same) /* it was recomputed from A */
        assert_at_most(fabs(next[0] - b->exact[0]), b->unseen);
    kf_secret_free(&b->product.secret);
    return same;
}

static void rounding_is_accepted(void **state)
{
    (void)state;
    for (int left = 0; left < 2; left++) {
        audit_case b;

        up(&b, left);
        for (int i = 0; i < 1000; i++) {
            double *next = b.product.out->m.data;

            memcpy(next, b.exact, sizeof b.exact);
            draw_secret(&b);
            next[i % ROWS] += 0x1p-50 * b.exact[i % ROWS];
            assert_ok(kf_mesh_freivalds_next(&b.h));
            assert_true(next[i % ROWS] !=
                        b.exact[i % ROWS]); /* not recomputed */
            kf_secret_free(&b.product.secret);
        }
        down(&b);
    }
}

/* Two opposite errors hide from a random row if its weights for the two
 * entries are close. At ten times the smallest error that must be found, one
 * row in seven hides them. One row would accept 139 of 1000 products; four
 * rows accept fewer than one. */
static void errors_above_rounding_are_found(void **state)
{
    (void)state;
    for (int left = 0; left < 2; left++) {
        size_t passed = 0;
        audit_case b;

        up(&b, left);
        for (int i = 0; i < 1000; i++)
            passed += accepts(&b, 10 * b.unseen);
        assert_in_range(passed, 0, 10);
        for (int i = 0; i < 1000; i++)
            assert_false(accepts(&b, 1e9 * b.unseen));
        down(&b);
    }
}

/* Scales rows, or columns of left products, by powers from 2^-120 to 2^120. */
static void make_wide(audit_case *b, bool left)
{
    kofn_matrix raised = b->A;

    for (size_t i = 0; i < ROWS; i++) {
        double size = ldexp(1, 30 * ((int)i % 9 - 4));

        cblas_dscal(ROWS, size, kf_at(&b->A, left ? 0 : i, left ? i : 0),
                    left ? ROWS : 1);
        b->exact[i] *= size;
    }
    assert_ok(
        kf_equilibrate_dense(kf_equilibrate_kind(b->plan, KOFN_ERRORS_NONE),
                             &raised, &b->operand.scaling, &b->operand.scaled));
}

/* The check works on rows scaled to size 1. So it finds an error in the
 * smallest row next to the largest. */
static void small_rows_are_audited(void **state)
{
    (void)state;
    for (int left = 0; left < 2; left++) {
        const int *digits;
        audit_case b;

        up(&b, left);
        make_wide(&b, left);
        digits = left ? b.operand.scaling.col : b.operand.scaling.row;
        assert_non_null(digits);
        for (size_t i = 0; i < ROWS; i++) {
            double *next = b.product.out->m.data, wrong;
            /* no entry of the scaled A exceeds 1, so |A| |v| is at most ROWS^2
             */
            double unseen = b.unseen * ROWS * ROWS * ldexp(1, -digits[i]);

            memcpy(next, b.exact, sizeof b.exact);
            wrong = next[i] + 1e3 * unseen;
            next[i] = wrong;
            draw_secret(&b);
            assert_ok(kf_mesh_freivalds_next(&b.h));
            assert_true(next[i] != wrong);
            assert_at_most(fabs(next[i] - b.exact[i]), unseen);
            kf_secret_free(&b.product.secret);
        }
        kf_scaling_free(&b.operand.scaling);
        kf_free(b.operand.scaled);
        down(&b);
    }
}

TEST_FILE(audit_test)
{
    const struct CMUnitTest tests[] = {
        TEST(rounding_is_accepted, "audit: rounding errors are accepted"),
        TEST(errors_above_rounding_are_found,
             "audit: errors at ten times the rounding bound are found"),
        TEST(small_rows_are_audited,
             "audit: errors in small rows are found next to large ones"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
