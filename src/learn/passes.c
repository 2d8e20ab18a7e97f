/* passes.c -- takes a batch forward through the layers, computes its cost, and
 * takes it back (math/training.md 1 to 4).
 *
 * The caller supplies every product with weights: by BLAS on this thread, or
 * by workers. Row operations are done in double precision, whatever type the
 * numbers are stored in.
 *
 * Owns the activations and deltas of one batch, freed by kf_passes_free. */
#include "net.h"
#include "watch.h"

#include "mat/mat.h"

#include <limits.h>
#include <math.h>

/* ---- products ------------------------------------------------------------ */

static kofn_status multiply_plain(void *ud, kf_pass pass, size_t layer,
                                  const kofn_matrix *a, const kofn_matrix *b,
                                  kofn_matrix *out)
{
    (void)ud;
    (void)layer;
    kf_mat_multiply_transposed(a, pass == KF_PASS_GRADIENT, b,
                               pass == KF_PASS_FORWARD, out);
    return KOFN_OK;
}

const kf_multiplier kf_multiplier_plain = {multiply_plain, NULL};

/* ---- rows ---------------------------------------------------------------- */

/* Returns row i in double precision: in place, or as a copy in `room`. */
static double *open_row(const kofn_matrix *a, size_t i, double *room)
{
    if (a->dtype == KOFN_F64)
        return kf_at(a, i, 0);
    kf_mat_widen(kf_at(a, i, 0), a->cols, a->dtype, room);
    return room;
}

static void close_row(const kofn_matrix *a, size_t i, const double *row)
{
    if (a->dtype != KOFN_F64)
        kf_mat_narrow(row, a->cols, a->dtype, kf_at(a, i, 0));
}

static void zero_rows(const kofn_matrix *a, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        memset(kf_at(a, i, 0), 0, a->cols * kf_dtype_size(a->dtype));
}

/* Returns a view of the first `rows` rows, without the last `without` columns.
 */
static kofn_matrix part_of(const kofn_matrix *a, size_t rows, size_t without)
{
    kofn_matrix b = *a;

    b.rows = rows;
    b.cols -= without;
    return b;
}

/* ---- memory -------------------------------------------------------------- */

static size_t last_of(const kf_passes *p)
{
    return p->net->shape.layers;
}

/* Returns the numbers of one row of all matrices, and the widest row. */
static size_t count_numbers(const kofn_net *net, size_t *widest)
{
    size_t n = net->widths[net->shape.layers] + 1;

    *widest = 0;
    for (size_t l = 0; l <= net->shape.layers; l++) {
        assert(net->widths[l] < INT_MAX); /* kf_net_check saw to it */
        n += 2 * net->widths[l] + 2;
        *widest = kf_max(*widest, net->widths[l] + 1);
    }
    return n;
}

static kofn_matrix carve(char **at, size_t rows, size_t cols, kofn_dtype dtype)
{
    kofn_matrix a = {*at, rows, cols, cols, dtype};

    *at += rows * cols * kf_dtype_size(dtype);
    return a;
}

kofn_status kf_passes_new(kf_passes *p, const kofn_net *net, bool classes,
                          size_t room)
{
    kofn_dtype dtype = net->shape.dtype;
    size_t n, widest, L = net->shape.layers;
    char *at;

    *p = (kf_passes){.net = net, .classes = classes, .room = room};
    if (!kf_mul(count_numbers(net, &widest), room, &n) ||
        !kf_add(n, 2 * widest, &n))
        return kf_nomem(SIZE_MAX);
    at = p->memory = kf_zero(n, sizeof(double));
    if (!at)
        return KOFN_NOMEM;
    p->row = (double *)(void *)at;
    p->other = p->row + widest;
    at = (char *)(p->other + widest);
    p->T = carve(&at, room, classes ? 1 : net->widths[L], KOFN_F64);
    for (size_t l = 0; l <= L; l++)
        p->X[l] = carve(&at, room, net->widths[l] + (l < L), dtype);
    for (size_t l = 0; l < L; l++)
        p->D[l] = carve(&at, room, net->widths[l + 1], dtype);
    return KOFN_OK;
}

void kf_passes_free(kf_passes *p)
{
    kf_free(p->memory);
    *p = (kf_passes){0};
}

/* ---- a batch ------------------------------------------------------------- */

void kf_passes_begin(kf_passes *p)
{
    p->rows = p->count = 0;
}

void kf_passes_put(kf_passes *p, const double *x, const double *y)
{
    size_t i = p->count++, n = p->net->widths[0];
    double *row = open_row(&p->X[0], i, p->row);
    double *target = kf_at(&p->T, i, 0);

    p->rows = p->count;
    memcpy(row, x, n * sizeof *x);
    row[n] = 1;
    close_row(&p->X[0], i, row);
    if (p->net->shape.autoencoder) {
        memcpy(target, x, n * sizeof *x);
        return;
    }
    for (size_t j = 0; j < p->T.cols; j++)
        target[j] = y ? y[j] : 0;
}

void kf_passes_pad(kf_passes *p, size_t rows)
{
    zero_rows(&p->X[0], p->count, rows);
    p->rows = rows;
}

/* ---- forward ------------------------------------------------------------- */

static bool is_softmax(const kf_passes *p, size_t l)
{
    return l == last_of(p) && p->net->shape.loss == KOFN_NET_LOSS_SOFTMAX;
}

static kofn_activation activation_of(const kf_passes *p, size_t l)
{
    return l == last_of(p) ? p->net->shape.output : p->net->shape.activation;
}

static void activate_rows(kf_passes *p, size_t l, size_t from, size_t to)
{
    size_t n = p->net->widths[l];

    for (size_t i = from; i < kf_min(to, p->count); i++) {
        double *row = open_row(&p->X[l], i, p->row);

        if (!is_softmax(p, l))
            kf_activation_apply(activation_of(p, l), row, n);
        if (l < last_of(p))
            row[n] = 1;
        close_row(&p->X[l], i, row);
    }
    zero_rows(&p->X[l], kf_max(from, p->count), to);
}

void kf_passes_hidden(kf_passes *p, double *sums)
{
    for (size_t i = 0; i < p->count; i++) {
        const double *x = open_row(&p->X[1], i, p->row);

        for (size_t j = 0; j < p->net->widths[1]; j++)
            sums[j] += x[j];
    }
}

double kf_passes_weight(const kf_passes *p)
{
    return 1.0 / (double)p->count;
}

void kf_passes_know_means(kf_passes *p, double *means)
{
    size_t n = kf_passes_means(p->net);

    if (n == 0)
        return;
    memset(means, 0, n * sizeof *means);
    kf_passes_hidden(p, means);
    for (size_t j = 0; j < n; j++)
        means[j] *= kf_passes_weight(p);
}

/* ---- cost ---------------------------------------------------------------- */

/* Replaces x by its softmax. Returns the log of the sum of exponentials. */
static double soften(double *x, size_t n)
{
    double most = x[0], sum = 0;

    for (size_t j = 1; j < n; j++)
        most = kf_larger(most, x[j]);
    for (size_t j = 0; j < n; j++)
        sum += x[j] = exp(x[j] - most);
    for (size_t j = 0; j < n; j++)
        x[j] /= sum;
    return most + log(sum);
}

static bool is_largest(const double *x, size_t n, size_t at)
{
    for (size_t j = 0; j < n; j++)
        if (x[j] > x[at] || (x[j] == x[at] && j < at))
            return false;
    return true;
}

/* Returns the cost of one point with output x. Sets d to the derivative by the
 * output, or by the input of the softmax. */
static double cost_of(const kf_passes *p, double *x, const double *target,
                      double *d, bool *right)
{
    size_t n = p->net->widths[last_of(p)];
    size_t label = p->classes ? (size_t)target[0] : 0;
    double cost = 0;

    *right = p->classes && is_largest(x, n, label);
    if (p->net->shape.loss == KOFN_NET_LOSS_SOFTMAX) {
        double s = x[label];

        cost = soften(x, n) - s;
        memcpy(d, x, n * sizeof *d);
        d[label] -= 1;
        return cost;
    }
    for (size_t j = 0; j < n; j++) {
        d[j] = x[j] - (!p->classes ? target[j] : j == label);
        cost += d[j] * d[j] / 2;
    }
    kf_activation_slope(p->net->shape.output, x, d, n);
    return cost;
}

void kf_passes_cost(kf_passes *p, double weight, double *cost, double *right)
{
    size_t L = last_of(p), n = p->net->widths[L];
    const kofn_matrix *D = &p->D[L - 1];

    for (size_t i = 0; i < p->count; i++) {
        double *x = open_row(&p->X[L], i, p->row);
        double *d = D->dtype == KOFN_F64 ? kf_at(D, i, 0) : p->other;
        bool is_right;

        *cost += cost_of(p, x, kf_at(&p->T, i, 0), d, &is_right);
        *right += is_right;
        for (size_t j = 0; j < n; j++)
            d[j] *= weight;
        close_row(&p->X[L], i, x);
        close_row(D, i, d);
    }
    zero_rows(D, p->count, p->rows);
}

double kf_passes_mean_cost(kf_passes *p, double *means, double *right)
{
    double weight = kf_passes_weight(p), cost = 0;

    *right = 0;
    kf_passes_know_means(p, means);
    kf_passes_cost(p, weight, &cost, right);
    return cost * weight + kf_passes_penalty(p->net, means);
}

bool kf_passes_finite(const kf_passes *p)
{
    bool finite = true;

    for (size_t l = 0; l < last_of(p) && finite; l++) {
        const kofn_matrix *D = &p->D[l];
        size_t n = p->count * D->cols;

        finite = kf_mat_first_odd(D->data, n, D->dtype) == n;
    }
    return finite;
}

/* ---- sparsity ------------------------------------------------------------ */

size_t kf_passes_means(const kofn_net *net)
{
    return net->shape.sparsity_weight > 0 ? net->widths[1] : 0;
}

static double clipped(double mean)
{
    return fmin(fmax(mean, 1e-6), 1 - 1e-6);
}

double kf_passes_penalty(const kofn_net *net, const double *means)
{
    double rho = net->shape.sparsity, sum = 0;

    for (size_t j = 0; j < kf_passes_means(net); j++) {
        double r = clipped(means[j]);

        sum += rho * log(rho / r) + (1 - rho) * log((1 - rho) / (1 - r));
    }
    return net->shape.sparsity_weight * sum;
}

/* Returns the derivative of the penalty by unit j's activation at one point,
 * which has weight `weight`. */
static double pull(const kofn_net *net, double mean, double weight)
{
    double rho = net->shape.sparsity, r = clipped(mean);

    return weight * net->shape.sparsity_weight *
           ((1 - rho) / (1 - r) - rho / r);
}

/* ---- one product after the other ----------------------------------------- */

size_t kf_passes_products(const kf_passes *p)
{
    return 3 * last_of(p) - 1;
}

static kf_wanted forward(const kf_passes *p, size_t l)
{
    return (kf_wanted){KF_PASS_FORWARD, l, part_of(&p->X[l - 1], p->rows, 0),
                       p->net->W[l - 1],
                       part_of(&p->X[l], p->rows, l < last_of(p))};
}

static kf_wanted gradient_of(const kf_passes *p, size_t l,
                             const kofn_matrix *gradient)
{
    return (kf_wanted){KF_PASS_GRADIENT, l, part_of(&p->D[l - 1], p->rows, 0),
                       part_of(&p->X[l - 1], p->rows, 0), gradient[l - 1]};
}

static kf_wanted back(const kf_passes *p, size_t l)
{
    const kofn_matrix *W = &p->net->W[l - 1];

    return (kf_wanted){KF_PASS_BACK, l, part_of(&p->D[l - 1], p->rows, 0),
                       part_of(W, W->rows, 1),
                       part_of(&p->D[l - 2], p->rows, 0)};
}

kf_wanted kf_passes_wanted(const kf_passes *p, size_t s,
                           const kofn_matrix *gradient)
{
    size_t L = last_of(p), l = s < L ? s + 1 : L - (s - L) / 2;

    return s < L              ? forward(p, l)
           : (s - L) % 2 == 0 ? gradient_of(p, l, gradient)
                              : back(p, l);
}

/* Turns products with layer l's deltas into the deltas of layer l - 1, by the
 * slopes of its activations. */
static void bend_rows(kf_passes *p, size_t l, kf_draw draw, size_t from,
                      size_t to)
{
    const kofn_net *net = p->net;
    const kofn_matrix *C = &p->D[l - 2];

    for (size_t i = from; i < kf_min(to, p->count); i++) {
        double *d = open_row(C, i, p->row);
        const double *x = open_row(&p->X[l - 1], i, p->other);

        for (size_t j = 0; j < kf_passes_means(net); j++)
            d[j] += pull(net, draw.means[j], draw.weight);
        kf_activation_slope(net->shape.activation, x, d, C->cols);
        close_row(C, i, d);
    }
    zero_rows(C, kf_max(from, p->count), to);
}

void kf_passes_done(kf_passes *p, size_t s, kf_draw draw, size_t from,
                    size_t to)
{
    size_t L = last_of(p);

    if (s < L)
        activate_rows(p, s + 1, from, to);
    else if ((s - L) % 2)
        bend_rows(p, L - (s - L) / 2, draw, from, to);
}

static kofn_status go(kf_passes *p, size_t from, size_t to, kf_draw draw,
                      const kf_multiplier *by, const kofn_matrix *gradient)
{
    for (size_t s = from; s < to; s++) {
        kf_wanted w = kf_passes_wanted(p, s, gradient);

        TRY(by->multiply(by->ud, w.pass, w.layer, &w.a, &w.b, &w.out));
        kf_passes_done(p, s, draw, 0, p->rows);
    }
    return KOFN_OK;
}

kofn_status kf_passes_forward(kf_passes *p, const kf_multiplier *by)
{
    return go(p, 0, last_of(p), (kf_draw){0}, by, NULL);
}

kofn_status kf_passes_back(kf_passes *p, double weight, const double *means,
                           const kf_multiplier *by, kofn_matrix *gradient)
{
    return go(p, last_of(p), kf_passes_products(p), (kf_draw){weight, means},
              by, gradient);
}
