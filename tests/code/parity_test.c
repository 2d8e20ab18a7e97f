/* parity_test.c -- the parities of survivor sets, against LAPACK. */
#include "suspect_rig.h"

/* Returns the number of parities by singular values of the weighted rows. */
static size_t by_rank(const double *G, size_t rows, size_t cols)
{
    double *A = kf_new(rows * cols, sizeof *A);
    double *S = kf_new(kf_min(rows, cols), sizeof *S);
    double *junk = kf_new(kf_min(rows, cols), sizeof *junk), none;
    size_t rank = 0;

    assert_true(A && S && junk);
    memcpy(A, G, rows * cols * sizeof *A);
    assert_int_equal(LAPACKE_dgesvd(LAPACK_ROW_MAJOR, 'N', 'N',
                                    (lapack_int)rows, (lapack_int)cols, A,
                                    (lapack_int)cols, S, &none, 1, &none, 1,
                                    junk),
                     0);
    for (size_t i = 0; i < kf_min(rows, cols); i++)
        rank += S[i] > 1e-13 * S[0];
    kf_free(A);
    kf_free(S);
    kf_free(junk);
    return rows - rank;
}

/* Checks these seats: the right number of parities, orthonormal, and H G = 0.
 */
static void check_parities(const code_case *f, const uint32_t *seat, size_t n)
{
    size_t rows = n * f->components, q;
    double *G = kf_new(rows * f->symbols, sizeof *G), *H;
    double *P = kf_new(rows * kf_max(rows, f->symbols), sizeof *P);
    double worst = 0;

    assert_true(G && P);
    for (size_t r = 0; r < rows; r++)
        weighted_row(f, seat[r / f->components], r % f->components,
                     G + r * f->symbols);
    assert_ok(kf_parity(f->code, seat, n, &H, &q));
    if (q != by_rank(G, rows, f->symbols))
        fail_msg("%s, %zu seats: %zu parities, not %zu", f->plan->spec, n, q,
                 by_rank(G, rows, f->symbols));
    if (q > 0) {
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)q,
                    (int)f->symbols, (int)rows, 1, H, (int)rows, G,
                    (int)f->symbols, 0, P, (int)f->symbols);
        for (size_t i = 0; i < q * f->symbols; i++)
            worst = fmax(worst, fabs(P[i]));
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)q, (int)q,
                    (int)rows, 1, H, (int)rows, H, (int)rows, 0, P, (int)q);
        for (size_t i = 0; i < q * q; i++)
            worst = fmax(worst, fabs(P[i] - (i % (q + 1) == 0)));
        assert_at_most(worst, 2e-15);
    }
    kf_free(G);
    kf_free(P);
    kf_free(H);
}

static void parities(void **state)
{
    static const struct {
        const char *spec;
        size_t nodes, joined; /* joined: fresh seats besides */
    } codes[] = {
        {"mds:k=5", 12, 0},
        {"mds:k=5,weight=4", 12, 0},
        {"mds:k=12,basis=gauss", 16, 0},
        {"mds:k=12,basis=gauss_sys", 30, 0},
        {"mds:k=9,basis=harmonic", 24, 0},
        {"mds-published:k=6,basis=chebyshev", 14, 0},
        {"mds-published:k=6,basis=cauchy", 14, 0},
        {"elastic:k=4", 8, 9},
        {"replication:k=2", 9, 0},
        {"uncoded", 7, 0},
        {"matdot:n=4,angles=12", 12, 0},
        {"matdot:n=3,angles=7", 20, 0}, /* each angle several times */
        {"polynomial:m=2,p=3", 10, 0},
        {"gpd:m=2,n=2,p=2", 14, 0},
        {"product:m=2,m2=3,p=2,p2=4", 12, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        code_case f;
        size_t seats;

        fleet_up(&f, codes[i].spec, codes[i].nodes);
        seats = codes[i].nodes / f.plan->layout.groups + codes[i].joined;
        for (uint32_t n = 0; n < effort(20); n++) {
            kf_rng r = kf_rng_stream(i, KF_FOR_SAMPLE, n, 5);
            size_t left = 1 + kf_rng_below(&r, seats), count = 0;
            uint32_t seat[40];

            /* from one to all */
            for (uint32_t j = 0; j < seats; j++)
                if (kf_rng_below(&r, seats - j) < left - count)
                    seat[count++] = j;
            check_parities(&f, seat, count);
        }
        fleet_down(&f);
    }
}

/* In large codes it matters that only lost symbols are solved for: here three
 * of a thousand. */
static void parities_of_a_thousand(void **state)
{
    uint32_t seat[1000];
    size_t n = 0, q;
    double *H, *y, *sum;
    code_case f;

    (void)state;
    fleet_up(&f, "mds:k=990", 1000);
    for (uint32_t i = 0; i < 1000; i++)
        if (i != 17 && i != 400 && i != 801)
            seat[n++] = i;
    assert_ok(kf_parity(f.code, seat, n, &H, &q));
    assert_int_equal(q, 28);
    y = kofn_layout_table(n, 4);
    sum = kf_zero(q, sizeof *sum);
    assert_true(y && sum);
    /* results for symbols 1, -1, 1, -1, ... */
    for (size_t i = 0; i < n; i++) {
        const kf_seat *s;

        assert_ok(kf_code_seat(f.code, seat[i], &s));
        for (size_t l = 0; l < 4; l++)
            for (size_t e = 0; e < s->G[l].n; e++)
                y[4 * i + l] +=
                    (s->G[l].col[e] % 2 ? -1 : 1) * s->G[l].val[e] / s->weight;
    }
    cblas_dgemv(CblasRowMajor, CblasNoTrans, (int)q, (int)(4 * n), 1, H,
                (int)(4 * n), y, 1, 0, sum, 1);
    for (size_t i = 0; i < q; i++)
        assert_at_most(fabs(sum[i]), 1e-13);
    kf_free(H);
    kf_free(y);
    kf_free(sum);
    fleet_down(&f);
}

TEST_FILE(parity_test)
{
    const struct CMUnitTest tests[] = {
        TEST(parities,
             "parity: parities are orthonormal and complete (LAPACK ranks)"),
        TEST(parities_of_a_thousand,
             "parity: three of a thousand are found by solving for them only"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
