/* net.c -- a dense network: its shape, its weights, and its outputs.
 *
 * A network owns its weights in one allocation, layer after layer. Nothing
 * here trains. */
#include "net.h"
#include "vector.h"

#include "base/rng.h"
#include "mat/mat.h"

#include <assert.h>
#include <limits.h>
#include <math.h>

#define CHUNK 256 /* points handled at a time */

/* ---- shapes -------------------------------------------------------------- */

static bool is_activation(kofn_activation f)
{
    return f == KOFN_SIGMOID || f == KOFN_TANH || f == KOFN_RELU ||
           f == KOFN_LINEAR;
}

static kofn_status check_widths(const kofn_net_shape *s)
{
    size_t total = 0, n;

    if (s->layers < 1 || s->layers > KOFN_NET_MOST || !s->widths)
        return kf_fail(KOFN_INVAL, "%zu layers; a network has 1 to %d",
                       s->layers, KOFN_NET_MOST);
    for (size_t l = 0; l <= s->layers; l++)
        if (s->widths[l] < 1 || s->widths[l] >= INT_MAX)
            return kf_fail(KOFN_INVAL,
                           "layer %zu is %zu wide; widths are 1 to %d", l,
                           s->widths[l], INT_MAX - 1);
    for (size_t l = 0; l < s->layers; l++)
        if (!kf_mul(s->widths[l] + 1, s->widths[l + 1], &n) ||
            !kf_add(total, n, &total) || total > PTRDIFF_MAX / 64)
            return kf_fail(KOFN_INVAL,
                           "layers of %zu and %zu have more weights than "
                           "there is memory anywhere",
                           s->widths[l], s->widths[l + 1]);
    return KOFN_OK;
}

static kofn_status check_sparsity(const kofn_net_shape *s)
{
    if (!(s->sparsity_weight >= 0 && s->sparsity_weight <= 1e100))
        return kf_fail(KOFN_INVAL,
                       "the weight of sparsity is %g, and cannot be below 0",
                       s->sparsity_weight);
    if (s->sparsity_weight == 0)
        return KOFN_OK;
    if (!s->autoencoder || s->layers != 2 || s->activation != KOFN_SIGMOID)
        return kf_fail(KOFN_INVAL,
                       "a penalty on sparsity is for an autoencoder of two "
                       "layers with sigmoids between them");
    if (!(s->sparsity > 0 && s->sparsity < 1))
        return kf_fail(KOFN_INVAL, "sparsity %g is not between 0 and 1",
                       s->sparsity);
    return KOFN_OK;
}

kofn_status kf_net_check(const kofn_net_shape *s)
{
    TRY(check_widths(s));
    if (!is_activation(s->activation) || !is_activation(s->output))
        return kf_fail(KOFN_INVAL, "there is no activation %d or %d",
                       (int)s->activation, (int)s->output);
    if (s->loss != KOFN_NET_LOSS_SOFTMAX && s->loss != KOFN_NET_LOSS_SQUARES)
        return kf_fail(KOFN_INVAL, "loss = %d is no kofn_net_loss",
                       (int)s->loss);
    if (s->dtype != KOFN_F64 && s->dtype != KOFN_F32)
        return kf_fail(KOFN_INVAL, "there is no type of numbers %d",
                       (int)s->dtype);
    if (s->loss == KOFN_NET_LOSS_SOFTMAX && s->widths[s->layers] < 2)
        return kf_fail(KOFN_INVAL, "a softmax needs two classes or more, and "
                                   "the last layer is 1 wide");
    if (s->autoencoder && (s->loss != KOFN_NET_LOSS_SQUARES ||
                           s->widths[0] != s->widths[s->layers]))
        return kf_fail(KOFN_INVAL,
                       "an autoencoder needs loss squares and the same number "
                       "of outputs and inputs, not %zu and %zu",
                       s->widths[s->layers], s->widths[0]);
    return check_sparsity(s);
}

void kf_net_fill(kofn_net *net, const kofn_net_shape *s)
{
    *net = (kofn_net){.shape = *s};
    memcpy(net->widths, s->widths, (s->layers + 1) * sizeof *s->widths);
    net->shape.size = sizeof net->shape;
    net->shape.widths = net->widths;
    for (size_t l = 0; l < s->layers; l++)
        net->total += (s->widths[l] + 1) * s->widths[l + 1];
}

void kf_net_lay(kofn_net *net, void *weights)
{
    char *at = weights;

    for (size_t l = 0; l < net->shape.layers; l++) {
        kofn_matrix *W = &net->W[l];

        *W = (kofn_matrix){at, net->widths[l + 1], net->widths[l] + 1,
                           net->widths[l] + 1, net->shape.dtype};
        at += W->rows * W->cols * kf_dtype_size(W->dtype);
    }
}

/* ---- weights ------------------------------------------------------------- */

void kf_net_read(const kofn_net *net, double *to)
{
    kf_mat_widen(net->W[0].data, net->total, net->shape.dtype, to);
}

void kf_net_write(kofn_net *net, const double *from)
{
    kf_mat_narrow(from, net->total, net->shape.dtype, net->W[0].data);
}

static void draw_row(const kofn_matrix *W, size_t l, size_t i, uint64_t seed)
{
    kf_rng r = kf_rng_stream(seed, KF_FOR_WEIGHTS, (uint32_t)l, (uint32_t)i);
    size_t inputs = W->cols - 1;
    double most = sqrt(6.0 / (double)(inputs + W->rows));

    assert(i < W->rows);
    assert(W->cols > 1);
    for (size_t j = 0; j < inputs; j++)
        kf_mat_put(W, i, j, most * (2 * kf_rng_uniform(&r) - 1));
    kf_mat_put(W, i, inputs, 0);
}

kofn_status kf_net_of_shape(kofn_net **out, const kofn_net_shape *shape)
{
    kofn_net *net;
    void *weights;

    *out = NULL;
    TRY_NEW(net, 1);
    kf_net_fill(net, shape);
    weights = kf_new(net->total, kf_dtype_size(shape->dtype));
    if (!weights) {
        kf_free(net);
        return KOFN_NOMEM;
    }
    kf_net_lay(net, weights);
    *out = net;
    return KOFN_OK;
}

kofn_status kf_net_copy(kofn_net **out, const kofn_net *net)
{
    TRY(kf_net_of_shape(out, &net->shape));
    memcpy((*out)->W[0].data, net->W[0].data,
           net->total * kf_dtype_size(net->shape.dtype));
    return KOFN_OK;
}

kofn_status kofn_net_new(kofn_net **out, const kofn_net_shape *shape,
                         uint64_t seed)
{
    kofn_net_shape all = KOFN_NET_SHAPE_INIT;

    *out = NULL;
    TRY(kf_given(&all, sizeof all, shape, "KOFN_NET_SHAPE_INIT"));
    TRY(kf_net_check(&all));
    TRY(kf_net_of_shape(out, &all));
    for (size_t l = 0; l < all.layers; l++)
        for (size_t i = 0; i < (*out)->W[l].rows; i++)
            draw_row(&(*out)->W[l], l, i, seed);
    return KOFN_OK;
}

void kofn_net_free(kofn_net *net)
{
    if (!net)
        return;
    kf_free(net->W[0].data);
    kf_free(net);
}

void kofn_net_describe(const kofn_net *net, kofn_net_shape *shape)
{
    kf_give(shape, &net->shape, sizeof net->shape);
}

const kofn_matrix *kofn_net_weights(const kofn_net *net, size_t l)
{
    return l >= 1 && l <= net->shape.layers ? &net->W[l - 1] : NULL;
}

/* ---- points -------------------------------------------------------------- */

static kofn_status check_plain(const kofn_matrix *a, const char *name)
{
    TRY(kf_mat_check_matrix(a, name));
    if (a->dtype != KOFN_F64)
        return kf_fail(KOFN_INVAL, "%s must be float64", name);
    return kf_mat_check_finite(a, name);
}

kofn_status kf_net_check_points(const kofn_net *net, const kofn_matrix *X,
                                const char *name)
{
    TRY(check_plain(X, name));
    return X->cols == net->widths[0]
               ? KOFN_OK
               : kf_fail(KOFN_SHAPE,
                         "%s has %zu columns, and the network's first width "
                         "is %zu",
                         name, X->cols, net->widths[0]);
}

static kofn_status check_label(double y, size_t i, size_t classes,
                               const char *name)
{
    return y >= 0 && y < (double)classes && y == floor(y)
               ? KOFN_OK
               : kf_fail(KOFN_INVAL,
                         "%s[%zu] = %g; with %zu classes labels are 0 to %zu",
                         name, i, y, classes, classes - 1);
}

kofn_status kf_net_check_targets(const kofn_net *net, size_t m,
                                 const kofn_matrix *y, const char *name,
                                 bool *classes)
{
    size_t n = net->widths[net->shape.layers];

    *classes = false;
    if (net->shape.autoencoder)
        return !y ? KOFN_OK
                  : kf_fail(KOFN_INVAL,
                            "%s is not used: the targets of an autoencoder "
                            "are its points",
                            name);
    TRY(check_plain(y, name));
    *classes =
        net->shape.loss == KOFN_NET_LOSS_SOFTMAX || (y->cols == 1 && n > 1);
    if (y->rows != m || y->cols != (*classes ? 1 : n))
        return kf_fail(KOFN_SHAPE,
                       "%s is %zu x %zu; for %zu points it must be %zu x 1%s",
                       name, y->rows, y->cols, m, m,
                       net->shape.loss == KOFN_NET_LOSS_SOFTMAX || n == 1
                           ? ""
                           : ", labels, or as wide as the last layer");
    for (size_t i = 0; i < m && *classes; i++)
        TRY(check_label(*(double *)kf_at(y, i, 0), i, n, name));
    return KOFN_OK;
}

/* ---- what it says -------------------------------------------------------- */

/* The outputs of a network for all points. */
typedef struct said {
    double *out; /* one row per point; NULL: not wanted */
    double cost, right;
} said;

/* Computes the outputs of some points, from row `from` of X on. */
static kofn_status go_through(kf_passes *p, const kofn_matrix *X,
                              const kofn_matrix *y, size_t from, said *all)
{
    size_t n = p->net->widths[p->net->shape.layers];
    const kofn_matrix *last = &p->X[p->net->shape.layers];

    assert(from < X->rows);
    kf_passes_begin(p);
    for (size_t i = from; i < kf_min(from + CHUNK, X->rows); i++)
        kf_passes_put(p, kf_at(X, i, 0), y ? kf_at(y, i, 0) : NULL);
    TRY(kf_passes_forward(p, &kf_multiplier_plain));
    kf_passes_cost(p, 1, &all->cost, &all->right);
    if (all->out)
        kf_mat_widen(last->data, p->count * n, last->dtype,
                     all->out + from * n);
    return KOFN_OK;
}

static kofn_status all_through(const kofn_net *net, const kofn_matrix *X,
                               const kofn_matrix *y, bool classes, said *all)
{
    kf_passes p;
    kofn_status st = kf_passes_new(&p, net, classes, kf_min(CHUNK, X->rows));

    for (size_t i = 0; i < X->rows && !st; i += CHUNK)
        st = go_through(&p, X, y, i, all);
    kf_passes_free(&p);
    return st;
}

kofn_status kofn_net_predict(const kofn_net *net, const kofn_matrix *X,
                             kofn_matrix *out)
{
    size_t n = net->widths[net->shape.layers];
    said all = {0};

    TRY(kf_net_check_points(net, X, "X"));
    TRY(kf_vector_check(out, X->rows, n, "the predictions"));
    all.out = out->data;
    TRY(all_through(net, X, NULL, false, &all));
    return kf_mat_check_finite(out, "the predictions");
}

kofn_status kofn_net_score(const kofn_net *net, const kofn_matrix *X,
                           const kofn_matrix *y, kofn_score *score)
{
    said all = {0};
    double m;
    bool classes;

    *score = (kofn_score){0};
    TRY(kf_net_check_points(net, X, "X"));
    TRY(kf_net_check_targets(net, X->rows, y, "y", &classes));
    TRY(all_through(net, X, y, classes, &all));
    m = (double)X->rows;
    score->loss = all.cost / m;
    score->accuracy = classes ? all.right / m : (double)NAN;
    return KOFN_OK;
}
