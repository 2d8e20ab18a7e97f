/* regress.c -- least squares on workers, predictions, and a kernel matrix. */
#include "example.h"

#define M 120
#define N 4

static double x[M * N], y[M], w[N], plain[N];
static const double truth[N] = {1, -2, 0.5, 3};

/* Minimises with workers: scheme, problem, plan, job, descent. */
static void with_workers(kofn_regression *r)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_GRAM, 1, 1, 1, KOFN_F64, false);
    kofn_regress_result res = KOFN_REGRESS_RESULT_INIT;
    kofn_matrix weights = matrix(w, N, 1);
    char spec[100];
    kofn_plan *plan;
    kofn_job *job;

    kofn_regression_scheme(r, 6, spec, sizeof spec);
    must(kofn_regression_problem(r, spec, 6, &pb));
    must(kofn_plan_new(&plan, &pb, spec, 6, 1));
    if (pb.op == KOFN_MATVEC)
        must(kofn_plan_serve_left(plan, 1));
    job = open_job(plan, 6, NULL);
    must(kofn_regression_place(r, job, pb.op));
    must(kofn_regress(r, &weights, &res));
    expect(res.converged, "it converged");
    for (int j = 0; j < N; j++)
        expect(fabs(w[j] - truth[j]) < 1e-5, "the weights");
    kofn_close(job);
    kofn_plan_free(plan);
}

/* Makes the same steps on this thread. */
static void without_workers(kofn_regression *r)
{
    kofn_matrix weights = matrix(plain, N, 1);

    must(kofn_regress_plain(r, &weights, NULL));
    for (int j = 0; j < N; j++)
        expect(fabs(plain[j] - truth[j]) < 1e-5, "the weights");
}

/* Fits other labels to the same points, by weights of the points. */
static void other_labels(kofn_regress_options opt)
{
    static double ones[M];
    kofn_matrix X = matrix(x, M, N), labels = matrix(y, M, 1);
    kofn_matrix twice = matrix(ones, M, 1), weights = matrix(plain, N, 1);
    kofn_regression *r;

    for (int i = 0; i < M; i++)
        ones[i] = 2;
    opt.weights = &twice;
    must(kofn_regression_new(&r, KOFN_DENSE(&X), &labels, &opt));
    for (int i = 0; i < M; i++)
        y[i] = 2 * y[i];
    must(kofn_regression_relabel(r, &labels));
    must(kofn_regress_plain(r, &weights, NULL));
    for (int j = 0; j < N; j++)
        expect(fabs(plain[j] - 2 * truth[j]) < 1e-4, "twice the weights");
    must(kofn_regression_penalise(r, 1e6));
    must(kofn_regress_plain(r, &weights, NULL));
    for (int j = 0; j < N; j++)
        expect(fabs(plain[j]) < 1e-4, "a large penalty");
    kofn_regression_free(r);
}

static void predict(void)
{
    static double t[M];
    kofn_matrix X = matrix(x, M, N), labels = matrix(y, M, 1);
    kofn_matrix weights = matrix(w, N, 1), out = matrix(t, M, 1);
    kofn_fit fit;

    must(kofn_predict(&out, &X, &weights, KOFN_LOSS_SQUARES));
    must(kofn_fit_of(&fit, KOFN_DENSE(&X), &labels, &weights,
                     KOFN_LOSS_SQUARES));
    expect(fabs(t[5] - y[5]) < 1e-4 && fit.share > 0.999, "the fit");
}

static void kernel(void)
{
    kofn_matrix X = matrix(x, 3, N), K;
    double d = 0;

    must(kofn_kernel(&K, &X, &X, "rbf:s=2"));
    for (int j = 0; j < N; j++)
        d += (x[j] - x[N + j]) * (x[j] - x[N + j]);
    expect(fabs(((double *)K.data)[1] - exp(-d / 8)) < 1e-12, "K[0][1]");
    kofn_free(K.data);
}

int main(void)
{
    kofn_matrix X = matrix(x, M, N), labels = matrix(y, M, 1);
    kofn_regress_options opt = KOFN_REGRESS_OPTIONS_INIT;
    kofn_regression *r;

    fill(x, M * N, 1);
    for (int i = 0; i < M * N; i++)
        y[i / N] += x[i] * truth[i % N];
    opt.optimizer = KOFN_OPTIMIZER_LBFGS;
    must(kofn_regression_new(&r, KOFN_DENSE(&X), &labels, &opt));
    with_workers(r);
    without_workers(r);
    predict();
    kernel();
    other_labels(opt);
    kofn_regression_free(r);
    return 0;
}
