/* regress_rig.h -- shared by tests of regression: labelled points, a
 * regression on workers and one without, and the error of a fit. */
#ifndef KF_TEST_REGRESS_RIG_H
#define KF_TEST_REGRESS_RIG_H

#include "rig.h"

#include <kofn/scheme.h>
#include <lapacke.h>

/* Task times are modelled, so that some workers straggle in each round. */
static const kofn_faults straggling =
    KOFN_FAULTS_INIT(.spread = 0.3, .straggle = 0.2, .factor = 20,
                     .latency = 1e-4, .seed = 5);

/* ---- data ---------------------------------------------------------------- */

typedef struct data {
    kofn_matrix X, y;
    double *w; /* the weights with which the labels were made */
} data;

static inline kofn_matrix column(size_t n)
{
    return (kofn_matrix){numbers(n, 8), n, 1, 1, KOFN_F64};
}

static inline void data_free(data *d)
{
    kf_free(d->X.data);
    kf_free(d->y.data);
    kf_free(d->w);
}

static inline double dot(const double *x, const double *y, size_t n)
{
    return cblas_ddot((int)n, x, 1, y, 1);
}

/* Returns random, well-conditioned points with labels of this loss. */
static inline data make_data(size_t m, size_t n, kofn_loss loss, uint64_t seed)
{
    data d = {random_matrix(m, n, KOFN_F64, seed), column(m), NULL};
    kf_rng r = kf_rng_stream(seed, KF_FOR_DATA, 7, 0);
    double *X = d.X.data, *y = d.y.data;

    d.w = numbers(n, sizeof *d.w);
    for (size_t j = 0; j < n; j++)
        d.w[j] = kf_rng_normal(&r) / sqrt((double)n);
    for (size_t i = 0; i < m; i++) {
        double t = dot(X + i * n, d.w, n), u = kf_rng_uniform(&r);

        if (loss == KOFN_LOSS_SQUARES)
            y[i] = t + 0.3 * kf_rng_normal(&r);
        else if (loss == KOFN_LOSS_LOGISTIC)
            y[i] = u < 1 / (1 + exp(-t));
        else
            y[i] = floor(exp(t) * 2 * u);
    }
    return d;
}

/* ---- a regression on workers --------------------------------------------- */

typedef struct fit {
    kofn_regression *r;
    kofn_plan *plan;
    kofn_job *job;
    kofn_problem pb;
    kofn_matrix w;
    kofn_regress_result res;
} fit;

typedef struct worker_setup {
    const char *spec;
    size_t workers;
    bool sim;
    const kofn_faults *faults;
    const kofn_options *opt;
} worker_setup;

/* Opens a regression. Returns KOFN_UNSUITED if the scheme does not fit it. */
static inline kofn_status fit_up(fit *f, const data *d,
                                 const kofn_regress_options *o,
                                 const worker_setup *k)
{
    kofn_port *port;
    kofn_status st;

    *f = (fit){.w = column(d->X.cols),
               .pb = {.size = sizeof f->pb},
               .res = KOFN_REGRESS_RESULT_INIT};
    assert_ok(kofn_regression_new(&f->r, KOFN_DENSE(&d->X), &d->y, o));
    st = kofn_regression_problem(f->r, k->spec, k->workers, &f->pb);
    if (st)
        return st;
    assert_ok(kofn_plan_new(&f->plan, &f->pb, k->spec, k->workers, 3));
    if (f->pb.op == KOFN_MATVEC)
        assert_ok(kofn_plan_serve_left(f->plan, 1));
    assert_ok(k->sim ? kofn_port_sim(&port, k->workers, k->faults)
                     : kofn_port_threads(&port, k->workers, k->faults));
    assert_ok(kofn_open(&f->job, f->plan, port, k->opt));
    assert_ok(kofn_regression_place(f->r, f->job, f->pb.op));
    return KOFN_OK;
}

static inline void fit_down(fit *f)
{
    kofn_close(f->job);
    kofn_plan_free(f->plan);
    kofn_regression_free(f->r);
    kf_free(f->w.data);
}

/* Returns w of the plain descent. */
static inline double *plain(const data *d, const kofn_regress_options *o,
                            kofn_regress_result *res)
{
    kofn_matrix w = column(d->X.cols);
    kofn_regression *r;

    assert_ok(kofn_regression_new(&r, KOFN_DENSE(&d->X), &d->y, o));
    assert_ok(kofn_regress_plain(r, &w, res));
    kofn_regression_free(r);
    return w.data;
}

/* Returns the minimum of F = |X w - y|^2 / (2m) + ridge/2 |w|^2. */
static inline double *least_squares(const data *d, double ridge)
{
    size_t m = d->X.rows, n = d->X.cols;
    double *A = numbers((m + n) * n, 8), *b = numbers(m + n, 8), *sv;
    lapack_int rank;

    memcpy(A, d->X.data, m * n * 8);
    memcpy(b, d->y.data, m * 8);
    for (size_t j = 0; j < n; j++)
        A[(m + j) * n + j] = sqrt(ridge * (double)m);
    sv = numbers(n, 8);
    assert_int_equal(LAPACKE_dgelsd(LAPACK_ROW_MAJOR, (lapack_int)(m + n),
                                    (lapack_int)n, 1, A, (lapack_int)n, b, 1,
                                    sv, 1e-14, &rank),
                     0);
    assert_int_equal(rank, n);
    kf_free(A);
    kf_free(sv);
    return b;
}

/* Sets what a point with margin t adds to the gradient and the curvature. */
static inline void newton_point(kofn_loss loss, double t, double y, double *z,
                                double *h)
{
    double mu = loss == KOFN_LOSS_POISSON ? exp(t) : 1 / (1 + exp(-t));

    *z = mu - y;
    *h = loss == KOFN_LOSS_POISSON ? mu : mu * (1 - mu);
}

/* Returns w of logistic or Poisson regression by Newton's method, with steps
 * of length 1 at most. */
static inline double *newton(const data *d, kofn_loss loss, double ridge)
{
    size_t m = d->X.rows, n = d->X.cols;
    const double *X = d->X.data, *y = d->y.data;
    double *w = numbers(n, 8), *g = numbers(n, 8), *H = numbers(n * n, 8);

    memset(w, 0, n * 8);
    for (int k = 0; k < 200; k++) {
        double size;

        memset(H, 0, n * n * 8);
        for (size_t j = 0; j < n; j++) {
            g[j] = ridge * (double)m * w[j];
            H[j * n + j] = ridge * (double)m;
        }
        for (size_t i = 0; i < m; i++) {
            const double *x = X + i * n;
            double z, h;

            newton_point(loss, dot(x, w, n), y[i], &z, &h);
            cblas_daxpy((int)n, z, x, 1, g, 1);
            cblas_dger(CblasRowMajor, (int)n, (int)n, h, x, 1, x, 1, H, (int)n);
        }
        assert_int_equal(LAPACKE_dposv(LAPACK_ROW_MAJOR, 'U', (lapack_int)n, 1,
                                       H, (lapack_int)n, g, 1),
                         0);
        size = cblas_dnrm2((int)n, g, 1);
        cblas_daxpy((int)n, size > 1 ? -1 / size : -1, g, 1, w, 1);
    }
    kf_free(g);
    kf_free(H);
    return w;
}

static inline double mean_square(const data *d, const double *w)
{
    size_t m = d->X.rows, n = d->X.cols;
    const double *X = d->X.data, *y = d->y.data;
    double sum = 0;

    for (size_t i = 0; i < m; i++) {
        double e = dot(X + i * n, w, n) - y[i];

        sum += e * e;
    }
    return sum / (double)m;
}

#endif
