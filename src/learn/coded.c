/* coded.c -- a network with its weights coded at the workers (Dutta, Bai,
 * Jeong, Low, Grover, "A unified coded deep neural network training strategy
 * based on generalized PolyDot codes", 2018; math/training.md 10).
 *
 * Workers compute every product of a step that involves weights. After a step
 * they receive the change of all weights. This side computes activations only.
 *
 * Owns the plans and what it fetched. The job is borrowed and must have been
 * opened with these plans. The weights exist nowhere uncoded until they are
 * fetched. */
#include "coded.h"

#include "base/report.h"
#include "mat/mat.h"

#include <assert.h>
#include <stdio.h>

/* ---- plans --------------------------------------------------------------- */

static kofn_problem problem_of(const kofn_net *net, size_t l, size_t room)
{
    assert(l < net->shape.layers);
    return (kofn_problem)KOFN_PROBLEM_INIT(KOFN_MATMUL, net->widths[l + 1],
                                           net->widths[l] + 1, room,
                                           net->shape.dtype, false);
}

/* True for codes that also cut the input and are given without sizes. By
 * themselves they would choose sizes for the forward product alone. Here the
 * product that needs more answers counts, and cutting batches gains nothing.
 * `choose` takes the most blocks that leave two workers to spare, or one, or
 * none; among equals, the grid that needs the fewest answers. */
static bool chooses(const char *spec)
{
    return !strcmp(spec, "gpd") || !strcmp(spec, "polydot");
}

/* Returns the number of answers that suffices for both products with this
 * grid; 0 if the grid is impossible. */
static size_t answers_of(kofn_problem pb, const char *spec, size_t workers)
{
    static const kofn_op ops[] = {KOFN_MATMUL, KOFN_LEFT};
    size_t most = 0;

    for (size_t i = 0; i < 2; i++) {
        kofn_plan_info info = KOFN_PLAN_INFO_INIT;
        kofn_plan *p;
        kofn_status st;

        pb.op = ops[i];
        st = kofn_plan_new(&p, &pb, spec, workers, 0);
        if (!st)
            st = kofn_plan_describe(p, false, &info);
        kofn_plan_free(p);
        if (st)
            return 0;
        most = kf_max(most, info.threshold);
    }
    return most;
}

static void choose(const kofn_net *net, const char *name, size_t workers,
                   char *spec, size_t size)
{
    size_t most = 0, fewest = 0;
    char found[256];

    snprintf(found, sizeof found, "%s:m=1,n=1,p=1", name);
    for (size_t beyond = kf_min(3, workers); !most && beyond > 0; beyond--)
        for (size_t m = 1; m <= workers; m++)
            for (size_t n = 1; m * n <= workers; n++) {
                size_t need;

                snprintf(spec, size, "%s:m=%zu,n=%zu,p=1", name, m, n);
                need = answers_of(problem_of(net, 0, 1), spec, workers);
                if (!need || need + beyond - 1 > workers || m * n < most ||
                    (m * n == most && need >= fewest))
                    continue;
                most = m * n;
                fewest = need;
                snprintf(found, sizeof found, "%s", spec);
            }
    snprintf(spec, size, "%s", found);
}

/* True for `polynomial` without p: it would decide by the forward product
 * whether to cut the batch. */
static bool may_cut_batches(const char *spec)
{
    return !strncmp(spec, "polynomial", strlen("polynomial")) &&
           !strstr(spec, ":p=") && !strstr(spec, ",p=");
}

kofn_status kf_coded_plans(const kofn_net *net, size_t room, const char *spec,
                           size_t workers, uint64_t seed, kofn_plan **plan)
{
    size_t L = net->shape.layers;
    kofn_status st = KOFN_OK;
    char chosen[256];

    if (chooses(spec)) {
        choose(net, spec, workers, chosen, sizeof chosen);
        spec = chosen;
    } else if (may_cut_batches(spec)) {
        snprintf(chosen, sizeof chosen, "%s%sp=1", spec,
                 strchr(spec, ':') ? "," : ":");
        spec = chosen;
    }
    memset(plan, 0, L * sizeof *plan);
    for (size_t l = 0; l < L && !st; l++) {
        kofn_problem pb = problem_of(net, l, room);

        st = kofn_plan_new(&plan[l], &pb, spec, workers, seed);
        if (!st)
            st = kofn_plan_serve_left(plan[l], pb.p);
    }
    for (size_t l = 0; l < L && st; l++) {
        kofn_plan_free(plan[l]);
        plan[l] = NULL;
    }
    return st;
}

/* ---- memory -------------------------------------------------------------- */

kofn_status kf_coded_new(kf_coded *c, kofn_net *net, bool classes, size_t room,
                         kofn_job *job)
{
    size_t widest = 0, means = kf_passes_means(net);

    *c = (kf_coded){.net = net, .job = job};
    for (size_t l = 0; l <= net->shape.layers; l++)
        widest = kf_max(widest, net->widths[l] + 1);
    c->in = kf_new(room, widest * sizeof(double));
    c->out = kf_new(room, widest * sizeof(double));
    c->means = kf_new(means, sizeof *c->means);
    return c->in && c->out && c->means
               ? kf_passes_new(&c->p, net, classes, room)
               : KOFN_NOMEM;
}

void kf_coded_free(kf_coded *c)
{
    kf_passes_free(&c->p);
    kf_free(c->in);
    kf_free(c->out);
    kf_free(c->means);
}

/* ---- products ------------------------------------------------------------ */

static kofn_status product(kf_coded *c, size_t layer, bool left,
                           const kofn_matrix *in, kofn_matrix *out)
{
    kofn_report rep = KOFN_REPORT_INIT;
    uint32_t number;
    kofn_status st;

    assert(layer > 0);
    TRY(kofn_put_at(c->job, layer - 1, left, in, out, &number));
    c->midway = true;
    st = kf_learn_wait(c->job, number, c->look, &rep);
    c->midway = st == KOFN_AGAIN;
    TRY(st);
    kf_report_add(c->sum, &rep);
    return KOFN_OK;
}

static kofn_matrix laid(void *at, size_t rows, size_t cols, kofn_dtype dtype)
{
    return (kofn_matrix){at, rows, cols, cols, dtype};
}

/* Computes X W' as (W X')'. */
static kofn_status forward(kf_coded *c, size_t layer, const kofn_matrix *X,
                           const kofn_matrix *out)
{
    kofn_matrix in = laid(c->in, X->cols, X->rows, X->dtype);
    kofn_matrix S = laid(c->out, out->cols, out->rows, out->dtype);

    assert(X->dtype == out->dtype);
    assert(X->rows == out->rows);
    kf_mat_transpose(X, &in);
    TRY(product(c, layer, false, &in, &S));
    kf_mat_transpose(&S, out);
    return KOFN_OK;
}

/* Computes D W without its last column, which belongs to the biases. */
static kofn_status back(kf_coded *c, size_t layer, const kofn_matrix *D,
                        const kofn_matrix *out)
{
    kofn_matrix C = laid(c->out, out->rows, out->cols + 1, out->dtype);

    assert(D->dtype == out->dtype);
    assert(D->rows == out->rows);
    TRY(product(c, layer, true, D, &C));
    C.cols = out->cols;
    kf_mat_copy(&C, out);
    return KOFN_OK;
}

static kofn_status multiply(void *ud, kf_pass pass, size_t layer,
                            const kofn_matrix *a, const kofn_matrix *b,
                            kofn_matrix *out)
{
    (void)b; /* the workers have b */
    return pass == KF_PASS_FORWARD ? forward(ud, layer, a, out)
           : pass == KF_PASS_BACK
               ? back(ud, layer, a, out)
               : KOFN_OK; /* the workers compute gradients themselves */
}

/* ---- a step -------------------------------------------------------------- */

static kofn_status change_all(kf_coded *c, const kofn_change *change)
{
    assert(c->p.count <= c->p.room);
    for (size_t l = 0; l < c->net->shape.layers; l++) {
        kofn_matrix D = c->p.D[l], X = c->p.X[l];

        D.rows = X.rows = c->p.count;
        TRY(kofn_update(c->job, l, change, &D, &X));
    }
    return KOFN_OK;
}

kofn_status kf_coded_step(kf_coded *c, const kofn_change *change, double *cost,
                          double *right)
{
    const kf_multiplier by = {multiply, c};
    kf_passes *p = &c->p;

    kf_passes_pad(p, p->room);
    TRY(kf_passes_forward(p, &by));
    *cost = kf_passes_mean_cost(p, c->means, right);
    TRY(kf_passes_back(p, kf_passes_weight(p), c->means, &by, c->net->W));
    if (!kf_passes_finite(p))
        return kf_fail(KOFN_NONFINITE, "a derivative is not finite");
    return change_all(c, change);
}

/* Fetches a state of all weights from the workers into `to`. */
static kofn_status fetch_all(kf_coded *c, kofn_net *to, size_t state)
{
    for (size_t l = 0; l < to->shape.layers; l++) {
        kofn_report rep = KOFN_REPORT_INIT;

        TRY(kofn_fetch(c->job, l, state, &to->W[l], &rep));
        kf_report_add(c->sum, &rep);
    }
    return KOFN_OK;
}

kofn_status kf_coded_fetch(kf_coded *c)
{
    return fetch_all(c, c->net, 0);
}

kofn_status kf_coded_fetch_velocities(kf_coded *c, double *velocity)
{
    kofn_net *M;
    kofn_status st;

    TRY(kf_net_of_shape(&M, &c->net->shape));
    st = fetch_all(c, M, 1);
    if (!st)
        kf_net_read(M, velocity);
    kofn_net_free(M);
    return st;
}

/* ---- velocities ---------------------------------------------------------- */

/* Sends velocities.  The update adds U' V to the velocity and nothing to the
 * weights.  V holds rows of the velocity, U their places. */
static kofn_status move_layer(kf_coded *c, size_t l, const double *velocity,
                              kofn_matrix *U, kofn_matrix *V)
{
    const kofn_change change = {sizeof change, 1, {{1}, {0, 1}}, {0, 1}};
    size_t room = U->rows, m = U->cols, n = V->cols;

    assert(room > 0);
    assert(U->rows == V->rows);
    for (size_t at = 0; at < m; at += room) {
        U->rows = V->rows = kf_min(room, m - at);
        memset(U->data, 0, U->rows * m * kf_dtype_size(U->dtype));
        for (size_t i = 0; i < U->rows; i++) {
            kf_mat_put(U, i, at + i, 1);
            for (size_t k = 0; k < n; k++)
                kf_mat_put(V, i, k, velocity[(at + i) * n + k]);
        }
        TRY(kofn_update(c->job, l, &change, U, V));
    }
    return KOFN_OK;
}

kofn_status kf_coded_move(kf_coded *c, const double *velocity)
{
    for (size_t l = 0; l < c->net->shape.layers; l++) {
        const kofn_matrix *W = &c->net->W[l];
        kofn_matrix U = laid(c->in, c->p.room, W->rows, W->dtype);
        kofn_matrix V = laid(c->out, c->p.room, W->cols, W->dtype);

        TRY(move_layer(c, l, velocity, &U, &V));
        velocity += W->rows * W->cols;
    }
    return KOFN_OK;
}

/* ---- blocks -------------------------------------------------------------- */

kofn_status kf_coded_scrub(kf_coded *c)
{
    kofn_report rep = KOFN_REPORT_INIT;
    kofn_status st = kofn_scrub(c->job, &rep);

    kf_report_add(c->sum, &rep);
    return st == KOFN_TOOFEW ? KOFN_OK
                             : st; /* a faulty block shows in later products */
}
