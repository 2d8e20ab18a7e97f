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

/* What is asked, in front of the means and the weights. */
typedef struct request {
    double layers, activation, output, loss, dtype, autoencoder, classes;
    double sparsity, sparsity_weight;
    double seed[2]; /* its halves, the upper one first */
    double epoch, points, from, to, means;
    double width[KOFN_NET_MOST + 1];
} request;
#define HEAD (sizeof(request) / sizeof(double))

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
    request q = {
        .layers = (double)s->layers,
        .activation = s->activation,
        .output = s->output,
        .loss = s->loss,
        .dtype = s->dtype,
        .autoencoder = s->autoencoder,
        .classes = classes,
        .sparsity = s->sparsity,
        .sparsity_weight = s->sparsity_weight,
        .seed = {(double)(batch->seed >> 32), (double)(uint32_t)batch->seed},
        .epoch = (double)batch->epoch,
        .points = (double)batch->points,
        .from = (double)batch->from,
        .to = (double)batch->to,
        .means = batch->means};

    for (size_t l = 0; l <= s->layers; l++)
        q.width[l] = (double)net->widths[l];
    memcpy(in, &q, sizeof q);
    for (size_t j = 0; j < n; j++)
        in[HEAD + j] = means ? means[j] : 0;
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

/* Checks the numbers that name one of a few things. */
static kofn_status check_names(const request *a)
{
    const struct {
        const char *what;
        double x, most;
    } of[] = {{"activation", a->activation, KOFN_LINEAR},
              {"activation", a->output, KOFN_LINEAR},
              {"cost", a->loss, KOFN_NET_LOSS_SQUARES},
              {"type", a->dtype, KOFN_F32},
              {"flag", a->autoencoder, 1},
              {"flag", a->classes, 1}};

    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (!is_count(of[i].x, of[i].most))
            return odd(of[i].what, of[i].x);
    return KOFN_OK;
}

/* Takes the network's shape.  The request came over the wire, so every number
 * is checked to be a count within its range. */
static kofn_status take_shape(question *q, const request *a)
{
    kofn_net_shape s = {.widths = q->widths};

    if (!(a->layers >= 1 && is_count(a->layers, KOFN_NET_MOST)))
        return odd("layers", a->layers);
    TRY(check_names(a));
    s.layers = (size_t)a->layers;
    for (size_t l = 0; l <= s.layers; l++) {
        if (!is_count(a->width[l], 0x1p31))
            return odd("width", a->width[l]);
        q->widths[l] = (size_t)a->width[l];
    }
    s.activation = (kofn_activation)a->activation;
    s.output = (kofn_activation)a->output;
    s.loss = (kofn_net_loss)a->loss;
    s.dtype = (kofn_dtype)a->dtype;
    s.autoencoder = a->autoencoder != 0;
    s.sparsity = a->sparsity;
    s.sparsity_weight = a->sparsity_weight;
    TRY(kf_net_check(&s));
    q->classes = a->classes != 0;
    if (q->classes != (s.loss == KOFN_NET_LOSS_SOFTMAX) &&
        (s.autoencoder || !q->classes))
        return odd("labels", a->classes);
    kf_net_fill(&q->net, &s);
    return KOFN_OK;
}

static kofn_status take_batch(question *q, const request *a,
                              const kofn_rows *part)
{
    if (!is_count(a->seed[0], UINT32_MAX) || !is_count(a->seed[1], UINT32_MAX))
        return odd("seed", a->seed[0]);
    if (!is_count(a->epoch, UINT32_MAX))
        return odd("epoch", a->epoch);
    if (!is_count(a->points, 0x1p53) || a->points < (double)part->first ||
        a->points - (double)part->first < (double)part->X.rows)
        return odd("points", a->points);
    if (!is_count(a->to, a->points) || !is_count(a->from, a->to))
        return odd("batch", a->from);
    if (!is_count(a->means, kf_passes_means(&q->net) > 0))
        return odd("means", a->means);
    q->batch =
        (kf_batch){.seed = (uint64_t)a->seed[0] << 32 | (uint64_t)a->seed[1],
                   .epoch = (uint64_t)a->epoch,
                   .points = (size_t)a->points,
                   .from = (size_t)a->from,
                   .to = (size_t)a->to,
                   .means = a->means != 0};
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
    request a;

    if (in->rows < HEAD || in->cols != 1 || out->cols != 1)
        return kf_fail(KOFN_SHAPE,
                       "a request for a network's gradient has %zu numbers and "
                       "the weights, not %zu x %zu",
                       HEAD, in->rows, in->cols);
    memcpy(&a, x, sizeof a);
    TRY(take_shape(q, &a));
    if (in->rows != kf_train_input(&q->net) ||
        out->rows != q->net.total + KF_SUM_EXTRA)
        return kf_fail(KOFN_SHAPE,
                       "a network of %zu weights has requests of %zu numbers "
                       "and answers of %zu, not %zu and %zu",
                       q->net.total, kf_train_input(&q->net),
                       q->net.total + KF_SUM_EXTRA, in->rows, out->rows);
    TRY(take_batch(q, &a, part));
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
