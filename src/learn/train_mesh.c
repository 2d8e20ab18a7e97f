/* train_mesh.c -- training steps on a mesh. The products of the passes are
 * products, and the weights are matrices that change after every step (Dutta,
 * Bai, Jeong, Low, Grover, "A unified coded deep neural network training
 * strategy based on generalized PolyDot codes", 2018; math/training.md 10).
 *
 * The vector holds *tapes* of the last steps: the outputs and deltas of every
 * layer. With the points, which every node has, tapes determine the updates.
 * Behind the tapes there is room for the weights, which are read after the
 * last step. The vector is float64 even if the network is float32. Then each
 * of its numbers is a float32 number.
 *
 * Owns the passes of this node; points are borrowed. A product may use the
 * vector and the points alone, because another node may have to compute the
 * same. */
#include "coded.h"
#include "training.h"

#include "base/mix.h"
#include "mat/mat.h"

#include <math.h>

#define TAPES 4
enum { LOSS, ACCURACY }; /* places in `scalar` */

static size_t layers_of(const kf_train_mesh *m)
{
    return m->t->net->shape.layers;
}

/* Returns the products of a step: forward for all layers, back for all but the
 * first. */
static size_t turn_of(const kf_train_mesh *m)
{
    return 2 * layers_of(m) - 1;
}

/* ---- the vector ---------------------------------------------------------- */

static bool is_single(const kf_train_mesh *m)
{
    return m->t->net->shape.dtype == KOFN_F32;
}

/* Opens a matrix of the tape: in place, or as a copy in float32. */
static double *open(const kf_train_mesh *m, kofn_matrix *a, double *at)
{
    if (is_single(m))
        kf_mat_narrow(at, a->rows * a->ld, a->dtype, a->data);
    else
        a->data = at;
    return at + a->rows * a->ld;
}

static double *store(const kofn_matrix *a, double *at)
{
    kf_mat_widen(a->data, a->rows * a->ld, a->dtype, at);
    return at + a->rows * a->ld;
}

/* Returns the numbers of a layer in the tape: its outputs and deltas. */
static size_t layer_of(const kf_train_mesh *m, size_t l)
{
    return m->p.X[l + 1].rows * m->p.X[l + 1].ld +
           m->p.D[l].rows * m->p.D[l].ld;
}

/* Returns the place of a layer in a tape. For the number of layers, that is
 * the length of a tape. */
static size_t layer_at(const kf_train_mesh *m, size_t layer)
{
    size_t numbers = 0;

    for (size_t l = 0; l < layer; l++)
        numbers += layer_of(m, l);
    return numbers;
}

/* Points the passes to this step, from 0, and its tape, or to a float32 copy
 * of it. */
static void turn_to(kf_train_mesh *m, uint64_t step, const kofn_matrix *v)
{
    double *at = (double *)v->data + step % TAPES * m->tape;
    kf_batch batch = kf_training_batch(m->t, step);

    for (size_t l = 1; l <= layers_of(m); l++) {
        at = open(m, &m->p.X[l], at);
        at = open(m, &m->p.D[l - 1], at);
    }
    if (m->loaded == step + 1)
        return;
    kf_training_put(m->t, &batch, &m->p);
    kf_passes_pad(&m->p, m->p.room);
    m->loaded = step + 1;
}

/* ---- products ------------------------------------------------------------ */

/* Returns the product of the passes that this product is; gradients are not
 * computed, because the blocks change by their factors. */
static size_t pass_of(const kf_train_mesh *m, size_t which)
{
    size_t L = layers_of(m);

    return which < L ? which : L + 2 * (which - L) + 1;
}

static kf_wanted wanted(const kf_train_mesh *m, size_t which)
{
    return kf_passes_wanted(&m->p, pass_of(m, which), NULL);
}

/* Returns the layer that gets outputs or deltas from this product. */
static size_t layer_made(const kf_train_mesh *m, size_t which)
{
    kf_wanted w = wanted(m, which);

    return w.pass == KF_PASS_FORWARD ? w.layer - 1 : w.layer - 2;
}

static kofn_status input(void *ud, uint64_t t, const kofn_matrix *v,
                         const double scalar[KOFN_SCALARS], kofn_matrix *in)
{
    kf_train_mesh *m = ud;
    kf_wanted w;

    (void)scalar;
    turn_to(m, (t - 1) / turn_of(m), v);
    w = wanted(m, (t - 1) % turn_of(m));
    if (w.pass == KF_PASS_FORWARD)
        kf_mat_transpose(&w.a, in);
    else
        kf_mat_copy(&w.a, in);
    return KOFN_OK;
}

/* Rows handled together, so that they stay in the cache. */
#define SLICE 16

static void go_forward(kf_train_mesh *m, size_t which,
                       const kofn_matrix *product, double scalar[KOFN_SCALARS])
{
    size_t l = which + 1;
    const kofn_matrix *X = &m->p.X[l];
    double right;

    for (size_t i = 0, end; i < X->rows; i = end) {
        kofn_matrix points = *product, S = *X;

        end = kf_min(i + SLICE, X->rows);
        points.data = kf_at(product, 0, i);
        S.data = kf_at(X, i, 0);
        S.rows = end - i;
        S.cols = m->t->net->widths[l];
        kf_mat_transpose(&points, &S);
        kf_passes_done(&m->p, which, (kf_draw){0}, i, end);
    }
    if (l == layers_of(m)) {
        scalar[LOSS] = kf_passes_mean_cost(&m->p, m->means, &right);
        scalar[ACCURACY] = m->t->classes ? right / (double)m->p.count : 0;
    }
}

/* Turns the product into the deltas of the layer before. The product's last
 * column belongs to the biases and is skipped. */
static void go_back(kf_train_mesh *m, size_t which, const kofn_matrix *product)
{
    const kofn_matrix *D = &m->p.D[layer_made(m, which)];
    kf_draw draw = {kf_passes_weight(&m->p), m->means};

    kf_passes_know_means(&m->p, m->means);
    for (size_t i = 0; i < D->rows; i++) {
        memcpy(kf_at(D, i, 0), kf_at(product, i, 0),
               D->cols * kf_dtype_size(D->dtype));
        kf_passes_done(&m->p, pass_of(m, which), draw, i, i + 1);
    }
}

/* Copies a layer from the passes to its tape. */
static void store_layer(const kf_train_mesh *m, uint64_t step, size_t layer,
                        const kofn_matrix *v)
{
    double *tape = (double *)v->data + step % TAPES * m->tape;

    store(&m->p.D[layer], store(&m->p.X[layer + 1], tape + layer_at(m, layer)));
}

/* Copies a layer's weights to their place in the vector. */
static void keep_weights(const kf_train_mesh *m, size_t l,
                         const kofn_matrix *product, const kofn_matrix *v)
{
    double *to = (double *)v->data + TAPES * m->tape;

    for (size_t i = 0; i < l; i++)
        to += m->t->net->W[i].rows * m->t->net->W[i].cols;
    store(product, to);
}

static kofn_status output(void *ud, uint64_t t, kofn_matrix *product,
                          kofn_matrix *v, double scalar[KOFN_SCALARS],
                          bool *final)
{
    kf_train_mesh *m = ud;
    uint64_t step = (t - 1) / turn_of(m);
    size_t L = layers_of(m), which = (t - 1) % turn_of(m);

    if (step >= m->steps) {
        size_t l = (size_t)(t - 1 - m->steps * turn_of(m));

        keep_weights(m, l, product, v);
        *final = l + 1 == L;
        return KOFN_OK;
    }
    turn_to(m, step, v);
    if (which < L)
        go_forward(m, which, product, scalar);
    else
        go_back(m, which, product);
    if (is_single(m))
        store_layer(m, step, layer_made(m, which), v);
    if (which + 1 == turn_of(m) && !kf_passes_finite(&m->p))
        return kf_fail(KOFN_NONFINITE,
                       "step %llu: the gradient is not finite; try a shorter "
                       "step",
                       (unsigned long long)step + 1);
    return KOFN_OK;
}

/* Returns which numbers of the vector a product writes: a layer's outputs or
 * deltas. The last product of a step writes the whole tape; the final products
 * write the weights. */
static void wrote(void *ud, uint64_t t, size_t *first, size_t *rows)
{
    kf_train_mesh *m = ud;
    uint64_t step = (t - 1) / turn_of(m);
    size_t which = (t - 1) % turn_of(m), layer = layer_made(m, which);

    if (step >= m->steps) {
        *first = TAPES * m->tape;
        *rows = m->t->net->total;
        return;
    }
    *first = step % TAPES * m->tape;
    *rows = m->tape;
    if (which + 1 == turn_of(m))
        return;
    *first += layer_at(m, layer);
    *rows = layer_of(m, layer);
}

static kofn_status change(void *ud, uint64_t turn, uint32_t operand,
                          const kofn_matrix *v, kofn_turn_change *to)
{
    kf_train_mesh *m = ud;

    turn_to(m, turn - 1, v);
    TRY(kf_training_change(m->t, &to->change));
    to->U = m->p.D[operand];
    to->V = m->p.X[operand];
    to->U.rows = to->V.rows = m->p.count;
    return KOFN_OK;
}

/* ---- what must be the same at all nodes ---------------------------------- */

/* Adds n 64-bit numbers to the digest. */
static uint64_t digest(uint64_t d, const void *numbers, size_t n)
{
    const char *at = numbers;

    for (size_t i = 0; i < n; i++, at += 8) {
        uint64_t x;

        memcpy(&x, at, 8);
        d = kf_mix64(kf_state64(d, 1) ^ x);
    }
    return d;
}

static uint64_t digest_of(const kofn_training *t)
{
    const kofn_net_shape *s = &t->net->shape;
    const kofn_train_options *o = &t->opt;
    const double reals[] = {o->step, o->momentum, o->l2, s->sparsity,
                            s->sparsity_weight};
    /* without the epochs: a training may resume with more of them */
    const uint64_t counts[] = {o->nesterov,    o->batch,      o->seed,
                               t->points.rows, s->layers,     s->output,
                               s->loss,        s->activation, s->autoencoder};
    uint64_t d = digest(1, reals, 5);

    d = digest(d, counts, 9);
    d = digest(d, t->net->widths, s->layers + 1);
    d = digest(d, t->y, t->points.rows);
    for (size_t i = 0; i < t->points.rows; i++)
        d = digest(d, kf_at(&t->points, i, 0), t->points.cols);
    return d;
}

/* ---- the program --------------------------------------------------------- */

static void fill_product(kf_train_mesh *m, const kofn_plan *const *plan)
{
    size_t L = layers_of(m);

    for (size_t l = 0; l < L; l++) {
        const kofn_mesh_product s = {.plan = plan[l], .operand = (uint32_t)l};
        kofn_mesh_product *reads = &m->product[turn_of(m) + l];

        m->operand[l] = (kofn_operand){.dense = &m->t->net->W[l]};
        m->product[l] = *reads = s;
        reads->read = true;
        if (l == 0) /* deltas of the points are not needed */
            continue;
        m->product[turn_of(m) - l] = s;
        m->product[turn_of(m) - l].left = true;
    }
}

kofn_status kf_train_mesh_new(kf_train_mesh *m, kofn_training *t,
                              const kofn_plan *const *plan,
                              kofn_program *program, kofn_matrix *v)
{
    size_t rows;

    *m = (kf_train_mesh){.t = t};
    if (t->opt.resume && t->opt.resume->step)
        return kf_fail(
            KOFN_UNSUITED,
            "a mesh cannot resume from a step of a training (resume); "
            "its nodes resume from their own checkpoints "
            "(kofn_peer_options.resume)");
    m->steps = (uint64_t)kf_training_steps(t) * t->opt.epochs;
    TRY(kf_passes_new(&m->p, t->net, t->classes, kf_training_room(t)));
    m->tape = layer_at(m, layers_of(m));
    TRY_ZERO(m->means, kf_passes_means(t->net));
    if (!kf_mul(m->tape, TAPES, &rows) || !kf_add(rows, t->net->total, &rows))
        return kf_nomem(SIZE_MAX);
    TRY_ZERO(m->v, rows);
    fill_product(m, plan);
    *v = (kofn_matrix){m->v, rows, 1, 1, KOFN_F64};
    *program = (kofn_program){.size = sizeof *program,
                              .product = m->product,
                              .products = turn_of(m) + layers_of(m),
                              .operand = m->operand,
                              .operands = layers_of(m),
                              .input = input,
                              .output = output,
                              .wrote = wrote,
                              .ud = m,
                              .digest = digest_of(t),
                              .turns = m->steps,
                              .after = layers_of(m),
                              .change = change,
                              .recalls = TAPES,
                              .states = m->t->opt.momentum != 0};
    return KOFN_OK;
}

void kf_train_mesh_free(kf_train_mesh *m)
{
    kf_passes_free(&m->p);
    kf_free(m->means);
    kf_free(m->v);
}

/* ---- a node -------------------------------------------------------------- */

static kofn_status conclude(const kf_train_mesh *m,
                            const double scalar[KOFN_SCALARS],
                            kofn_train_result *res)
{
    const kofn_training *t = m->t;
    kofn_score score = {NAN, NAN};
    kofn_train_result all;

    kf_net_write(t->net, m->v + TAPES * m->tape);
    if (t->opt.test_X)
        TRY(kofn_net_score(t->net, t->opt.test_X,
                           t->net->shape.autoencoder ? NULL : t->opt.test_y,
                           &score));
    all = (kofn_train_result){.steps = (unsigned)m->steps,
                              .loss = scalar[LOSS],
                              .accuracy =
                                  t->classes ? scalar[ACCURACY] : (double)NAN,
                              .test_loss = score.loss,
                              .test_accuracy = score.accuracy};
    kf_give(res, &all, sizeof all);
    return KOFN_OK;
}

kofn_status kofn_train_peers(kofn_transport *transport, kofn_training *t,
                             const kofn_plan *const *plan,
                             const kofn_peer_options *peers,
                             kofn_train_result *res, kofn_node_view *end)
{
    double scalar[KOFN_SCALARS];
    kofn_program program;
    kf_train_mesh m;
    kofn_matrix v;
    kofn_peer_options own = KOFN_PEER_OPTIONS_INIT;
    const kofn_train_result none = KOFN_TRAIN_RESULT_INIT;
    kofn_status st;

    TRY(kf_begun(res, "KOFN_TRAIN_RESULT_INIT"));
    kf_give(res, &none, sizeof none);
    st = kf_train_mesh_new(&m, t, plan, &program, &v);
    if (!st)
        st = kf_given(&own, sizeof own, peers, "KOFN_PEER_OPTIONS_INIT");
    if (own.scrub == 0)
        own.scrub = t->opt.scrub;
    if (!st)
        st = kofn_peer_run(transport, &program, &own, &v, scalar, end);
    if (!st)
        st = conclude(&m, scalar, res);
    kf_train_mesh_free(&m);
    return st;
}
