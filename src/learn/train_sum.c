/* train_sum.c -- a worker's share of a training step: the gradient of those
 * points of its part that belong to the batch. The coordinator sums over the
 * parts (Tandon, Lei, Dimakis, Karampatziakis, "Gradient coding", 2017;
 * math/training.md 6).
 *
 * The round's input says what to compute: the network's shape, the batch, the
 * weights. On a remote worker it comes from the wire, so every number in it is
 * checked.
 *
 * Scratch lives for one call; the points are the worker's rows. It may call
 * neither the job nor the training. */
#include "net.h"

#include "mat/mat.h"

#include <math.h>

/* Numbers in front of the means and the weights. */
enum {
    LAYERS,
    ACTIVATION,
    OUTPUT,
    COST,
    DTYPE,
    AUTOENCODER,
    CLASSES,
    SPARSITY,
    SPARSITY_WEIGHT,
    SEED, /* in two halves */
    SEED_REST,
    EPOCH,
    POINTS,
    FROM,
    TO,
    MEANS,
    WIDTHS,
    HEAD = WIDTHS + KOFN_NET_MOST + 1
};

/* ---- asking -------------------------------------------------------------- */

size_t kf_train_input(const kofn_net *net)
{
    return HEAD + kf_passes_means(net) + net->total;
}

void kf_train_ask(const kofn_net *net, bool classes, const kf_batch *batch,
                  const double *means, double *in)
{
    const kofn_net_shape *s = &net->shape;
    size_t n = kf_passes_means(net);

    memset(in, 0, (HEAD + n) * sizeof *in);
    in[LAYERS] = (double)s->layers;
    in[ACTIVATION] = s->activation;
    in[OUTPUT] = s->output;
    in[COST] = s->loss;
    in[DTYPE] = s->dtype;
    in[AUTOENCODER] = s->autoencoder;
    in[CLASSES] = classes;
    in[SPARSITY] = s->sparsity;
    in[SPARSITY_WEIGHT] = s->sparsity_weight;
    in[SEED] = (double)(batch->seed >> 32);
    in[SEED_REST] = (double)(uint32_t)batch->seed;
    in[EPOCH] = (double)batch->epoch;
    in[POINTS] = (double)batch->points;
    in[FROM] = (double)batch->from;
    in[TO] = (double)batch->to;
    in[MEANS] = batch->means;
    for (size_t l = 0; l <= s->layers; l++)
        in[WIDTHS + l] = (double)net->widths[l];
    for (size_t j = 0; j < n && means; j++)
        in[HEAD + j] = means[j];
    kf_net_read(net, in + HEAD + n);
}

/* ---- being asked --------------------------------------------------------- */

typedef struct question {
    kofn_net net;
    kf_batch batch;
    bool classes;
    size_t widths[KOFN_NET_MOST + 1];
    void *narrow; /* weights in float32, or NULL */
} question;

static bool is_count(double x, double most)
{
    return x >= 0 && x <= most && x == floor(x);
}

static kofn_status odd(const char *what, double x)
{
    return kf_fail(KOFN_INVAL,
                   "a request for a network's gradient has the invalid %s %g",
                   what, x);
}

/* Reads the network's shape from the round's input. The input came over the
 * wire, so every number is checked to be a count within its range. */
static kofn_status take_shape(question *q, const double *in)
{
    static const char *const what[] = {"activation", "activation", "cost",
                                       "type",       "flag",       "flag"};
    static const double most[] = {
        KOFN_LINEAR, KOFN_LINEAR, KOFN_NET_LOSS_SQUARES, KOFN_F32, 1, 1};
    kofn_net_shape s = {.widths = q->widths};

    if (!(in[LAYERS] >= 1 && is_count(in[LAYERS], KOFN_NET_MOST)))
        return odd("layers", in[LAYERS]);
    for (size_t i = 0; i < 6; i++)
        if (!is_count(in[ACTIVATION + i], most[i]))
            return odd(what[i], in[ACTIVATION + i]);
    s.layers = (size_t)in[LAYERS];
    for (size_t l = 0; l <= s.layers; l++) {
        if (!is_count(in[WIDTHS + l], 0x1p31))
            return odd("width", in[WIDTHS + l]);
        q->widths[l] = (size_t)in[WIDTHS + l];
    }
    s.activation = (kofn_activation)in[ACTIVATION];
    s.output = (kofn_activation)in[OUTPUT];
    s.loss = (kofn_net_loss)in[COST];
    s.dtype = (kofn_dtype)in[DTYPE];
    s.autoencoder = in[AUTOENCODER] != 0;
    s.sparsity = in[SPARSITY];
    s.sparsity_weight = in[SPARSITY_WEIGHT];
    TRY(kf_net_check(&s));
    q->classes = in[CLASSES] != 0;
    if (q->classes != (s.loss == KOFN_NET_LOSS_SOFTMAX) &&
        (s.autoencoder || !q->classes))
        return odd("labels", in[CLASSES]);
    kf_net_fill(&q->net, &s);
    return KOFN_OK;
}

static kofn_status take_batch(question *q, const double *in,
                              const kofn_rows *part)
{
    kf_batch *b = &q->batch;

    if (!is_count(in[SEED], UINT32_MAX) || !is_count(in[SEED_REST], UINT32_MAX))
        return odd("seed", in[SEED]);
    if (!is_count(in[EPOCH], UINT32_MAX))
        return odd("epoch", in[EPOCH]);
    if (!is_count(in[POINTS], 0x1p53) || in[POINTS] < (double)part->first ||
        in[POINTS] - (double)part->first < (double)part->X.rows)
        return odd("points", in[POINTS]);
    if (!is_count(in[TO], in[POINTS]) || !is_count(in[FROM], in[TO]))
        return odd("batch", in[FROM]);
    if (!is_count(in[MEANS], kf_passes_means(&q->net) > 0))
        return odd("means", in[MEANS]);
    *b = (kf_batch){.seed = (uint64_t)in[SEED] << 32 | (uint64_t)in[SEED_REST],
                    .epoch = (uint64_t)in[EPOCH],
                    .points = (size_t)in[POINTS],
                    .from = (size_t)in[FROM],
                    .to = (size_t)in[TO],
                    .means = in[MEANS] != 0};
    return KOFN_OK;
}

size_t kf_train_columns(const kofn_net *net, bool classes)
{
    size_t n = net->widths[net->shape.layers];

    return net->widths[0] +
           (classes || net->shape.autoencoder || n == 1 ? 0 : n);
}

static kofn_status check_rows(const question *q, const kofn_rows *part)
{
    size_t classes = q->net.widths[q->net.shape.layers];

    if (part->X.cols != kf_train_columns(&q->net, q->classes))
        return kf_fail(KOFN_SHAPE,
                       "a network of %zu inputs and %zu outputs does not fit "
                       "rows of %zu numbers",
                       q->net.widths[0], classes, part->X.cols);
    for (size_t i = 0; i < part->X.rows && q->classes; i++)
        if (!(part->y[i] < (double)classes && is_count(part->y[i], 0x1p31)))
            return odd("label", part->y[i]);
    return KOFN_OK;
}

/* Takes the weights in place, or as float32 in its own memory. */
static kofn_status take_weights(question *q, const double *from)
{
    if (q->net.shape.dtype == KOFN_F64) {
        kf_net_lay(&q->net, (void *)(uintptr_t)from);
        return KOFN_OK;
    }
    q->narrow = kf_new(q->net.total, kf_dtype_size(q->net.shape.dtype));
    if (!q->narrow)
        return KOFN_NOMEM;
    kf_net_lay(&q->net, q->narrow);
    kf_net_write(&q->net, from);
    return KOFN_OK;
}

static kofn_status take_question(question *q, const kofn_rows *part,
                                 const kofn_matrix *in, const kofn_matrix *out)
{
    const double *x = in->data;

    if (in->rows < HEAD || in->cols != 1 || out->cols != 1)
        return kf_fail(KOFN_SHAPE,
                       "a request for a network's gradient has %d numbers and "
                       "the weights, not %zu x %zu",
                       HEAD, in->rows, in->cols);
    TRY(take_shape(q, x));
    if (in->rows != kf_train_input(&q->net) ||
        out->rows != q->net.total + KF_SUM_EXTRA)
        return kf_fail(KOFN_SHAPE,
                       "a network of %zu weights has requests of %zu numbers "
                       "and answers of %zu, not %zu and %zu",
                       q->net.total, kf_train_input(&q->net),
                       q->net.total + KF_SUM_EXTRA, in->rows, out->rows);
    TRY(take_batch(q, x, part));
    TRY(check_rows(q, part));
    return take_weights(q, x + HEAD + kf_passes_means(&q->net));
}

kofn_status kf_train_formula(const double *arg, const kofn_rows *part,
                             const kofn_matrix *in, kofn_matrix *out)
{
    question q = {0};
    kofn_status st = take_question(&q, part, in, out);

    (void)arg;
    if (!st)
        st = kf_train_part(&q.net, q.classes, &q.batch,
                           (const double *)in->data + HEAD, part, out->data);
    kf_free(q.narrow);
    return st;
}

/* ---- answering ----------------------------------------------------------- */

#define CHUNK 512 /* points handled at a time */

/* Adds the results of the points put to `out`. G has room for a
 * gradient. */
static kofn_status add_batch(kf_passes *p, const kf_batch *batch,
                             const double *means, kofn_net *G, double *out)
{
    const kofn_net *net = p->net;
    double weight = 1.0 / (double)(batch->to - batch->from);
    double *extra = out + net->total;

    TRY(kf_passes_forward(p, &kf_multiplier_plain));
    extra[2] += (double)p->count;
    if (batch->means) {
        kf_passes_hidden(p, out);
        return KOFN_OK;
    }
    kf_passes_cost(p, weight, &extra[0], &extra[1]);
    TRY(kf_passes_back(p, weight, means, &kf_multiplier_plain, G->W));
    for (size_t i = 0; i < net->total; i++)
        out[i] += kf_mat_number(G->W[0].data, i, net->shape.dtype);
    return KOFN_OK;
}

/* Examines the i-th candidate and sets *row. Candidates are the places of the
 * batch or the points of the part, whichever are fewer. True if the point is
 * in both. */
static bool is_in_both(const kf_batch *b, const kofn_rows *part, size_t i,
                       size_t *row)
{
    if (b->to - b->from <= part->X.rows) {
        size_t k = kf_order_at(b->seed, b->epoch, b->from + i, b->points);

        *row = k >= part->first ? k - part->first : part->X.rows;
        return *row < part->X.rows;
    }
    *row = i;
    i = kf_order_place(b->seed, b->epoch, part->first + i, b->points);
    return i >= b->from && i < b->to;
}

static kofn_status go_through(kf_passes *p, const kf_batch *batch,
                              const double *means, const kofn_rows *part,
                              kofn_net *G, double *out)
{
    size_t n = p->net->widths[0], k;

    kf_passes_begin(p);
    for (size_t i = 0; i < kf_min(batch->to - batch->from, part->X.rows); i++) {
        const double *x;

        if (!is_in_both(batch, part, i, &k))
            continue;
        x = kf_at(&part->X, k, 0);
        kf_passes_put(p, x, part->X.cols > n ? x + n : part->y + k);
        if (p->count == p->room) {
            TRY(add_batch(p, batch, means, G, out));
            kf_passes_begin(p);
        }
    }
    return p->count ? add_batch(p, batch, means, G, out) : KOFN_OK;
}

kofn_status kf_train_part(const kofn_net *net, bool classes,
                          const kf_batch *batch, const double *means,
                          const kofn_rows *part, double *out)
{
    size_t room = kf_min(kf_min(CHUNK, part->X.rows), batch->to - batch->from);
    double weight = 1.0 / (double)kf_max(1, batch->to - batch->from);
    kofn_net *G;
    kf_passes p;
    kofn_status st;

    memset(out, 0, (net->total + KF_SUM_EXTRA) * sizeof *out);
    if (room == 0)
        return KOFN_OK;
    TRY(kf_net_of_shape(&G, &net->shape));
    st = kf_passes_new(&p, net, classes, room);
    if (!st)
        st = go_through(&p, batch, means, part, G, out);
    kf_passes_free(&p);
    kofn_net_free(G);
    for (size_t i = 0; i < KF_SUM_EXTRA; i++)
        out[net->total + i] *= weight;
    for (size_t j = 0; j < net->widths[1] && batch->means; j++)
        out[j] *= weight;
    return st;
}
