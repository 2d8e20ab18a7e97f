/* job_test.c -- whole rounds over the ports, against plain BLAS. */
#include "support.h"

#include "base/base.h"
#include "base/rng.h"

#include <cblas.h>
#include <math.h>

typedef struct rig {
    kofn_plan *plan;
    kofn_job *job;
    kofn_matrix A, x, y;
    double *want;
} rig;

static kofn_matrix random_matrix(size_t m, size_t n, uint64_t seed)
{
    kofn_matrix a = {kf_new(m * n, 8), m, n, n, KOFN_F64};
    kf_rng r = kf_rng_stream(seed, KF_FOR_DATA, 0, 0);
    double *x = a.data;

    assert_non_null(x);
    for (size_t i = 0; i < m * n; i++)
        x[i] = kf_rng_normal(&r);
    return a;
}

static void plain_product(const kofn_matrix *a, const kofn_matrix *b, double *c)
{
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)a->rows,
                (int)b->cols, (int)a->cols, 1, a->data, (int)a->ld, b->data,
                (int)b->ld, 0, c, (int)b->cols);
}

static void rig_up(rig *r, const char *spec, size_t workers, size_t m, size_t n,
                   size_t p, bool sim, const kofn_weather *weather,
                   const kofn_options *opt)
{
    kofn_problem pb = {p == 1 ? KOFN_MATVEC : KOFN_MATMUL, m, n, p, KOFN_F64,
                       false};
    kofn_port *port;

    r->A = random_matrix(m, n, 1);
    r->x = random_matrix(n, p, 2);
    r->y = random_matrix(m, p, 3);
    r->want = kf_new(m * p, 8);
    plain_product(&r->A, &r->x, r->want);
    assert_ok(kofn_plan_new(&r->plan, &pb, spec, workers, 7));
    assert_ok(sim ? kofn_port_sim(&port, workers, weather)
                  : kofn_port_threads(&port, workers, weather));
    assert_ok(kofn_open(&r->job, r->plan, port, opt));
    assert_ok(kofn_place(r->job, &r->A));
}

static void rig_down(rig *r)
{
    kofn_close(r->job);
    kofn_plan_free(r->plan);
    kf_free(r->A.data);
    kf_free(r->x.data);
    kf_free(r->y.data);
    kf_free(r->want);
}

static double one_round(rig *r, kofn_report *rep)
{
    assert_ok(kofn_round(r->job, &r->x, &r->y, rep));
    return relative_error(r->y.data, r->want, r->y.rows * r->y.cols);
}

static const char *const specs[] = {
    "uncoded",          "replication:k=3",  "mds:k=5",
    "elastic:k=3",      "elastic:k=8",      "mds:k=5,basis=harmonic",
    "elastic:k=4,groups=2", "mds:k=6,basis=gauss", "mds:k=6,weight=4",
};

static void every_scheme_on_both_ports(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof specs / sizeof *specs; s++)
        for (int sim = 0; sim < 2; sim++)
            for (size_t p = 1; p < 4; p += 2) {
                rig r;
                kofn_report rep;

                rig_up(&r, specs[s], 8, 101, 37, p, sim, NULL, NULL);
                for (int k = 0; k < 3; k++)
                    assert_at_most(one_round(&r, &rep), 1e-12);
                rig_down(&r);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_scheme_on_both_ports),
    };

    return cmocka_run_group_tests_name("job", tests, NULL, NULL);
}
