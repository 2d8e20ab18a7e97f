/* train_mesh.c -- steps of a training on a mesh: the products of its passes are
 * stages, and weights are matrices that change with every turn (Dutta, Bai,
 * Jeong, Low, Grover, "A unified coded deep neural network training strategy
 * based on generalized PolyDot codes", 2018; math/training.md 10).
 *
 * The vector has *tapes* of the last steps, what came out of every layer and
 * the deltas, which is all that the updates are made of besides the points that
 * everybody has; and behind them room for the weights, which are read when the
 * last step is over.  It is float64 also where the network is float32: each
 * number of it is then one that float32 has.
 *
 * Owns the passes of this node; points are borrowed.  What a stage makes may
 * depend on the vector and the points alone, for another node may have to make
 * the same. */
#include "coded.h"
#include "training.h"

#include "base/mix.h"
#include "mat/mat.h"

#include <math.h>

#define TAPES 4
enum { LOSS, ACCURACY }; /* in `scalar` */

static size_t layers_of(const kf_train_mesh *m)
{
    return m->t->net->shape.layers;
}

/* Products of a step: forward of all layers, back of all but the first. */
static size_t turn_of(const kf_train_mesh *m)
{
    return 2 * layers_of(m) - 1;
}

/* ---- the vector ---------------------------------------------------------- */

static bool is_single(const kf_train_mesh *m)
{
    return m->t->net->shape.dtype == KOFN_F32;
}

/* Numbers of the tape, where they lie or as a copy in float32. */
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

/* What came out of a layer, and its deltas. */
static size_t layer_of(const kf_train_mesh *m, size_t l)
{
    return m->p.X[l + 1].rows * m->p.X[l + 1].ld +
           m->p.D[l].rows * m->p.D[l].ld;
}

/* Where a layer lies in a tape, which is as long as to where one more would
 * lie. */
static size_t layer_at(const kf_train_mesh *m, size_t layer)
{
    size_t numbers = 0;

    for (size_t l = 0; l < layer; l++)
        numbers += layer_of(m, l);
    return numbers;
}

/* The passes look at this step, from 0, on its tape; where their numbers are
 * float32 at a copy of it. */
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

/* ---- stages -------------------------------------------------------------- */

/* `stage` is below that of the last forward product. */
static bool is_forward(const kf_train_mesh *m, size_t stage)
{
    return stage < layers_of(m);
}

/* The layer of which a stage makes what came out, or the deltas. */
static size_t layer_made(const kf_train_mesh *m, size_t stage)
{
    return is_forward(m, stage) ? stage : 2 * layers_of(m) - 2 - stage;
}

static kofn_status input(void *ud, uint64_t t, const kofn_matrix *v,
                         const double scalar[KOFN_SCALARS], kofn_matrix *in)
{
    kf_train_mesh *m = ud;
    size_t L = layers_of(m), stage = (t - 1) % turn_of(m);

    (void)scalar;
    turn_to(m, (t - 1) / turn_of(m), v);
    if (is_forward(m, stage)) {
        kf_mat_turn(&m->p.X[stage], in);
    } else {
        const kofn_matrix *D = &m->p.D[2 * L - 1 - stage];

        memcpy(in->data, D->data, D->rows * D->cols * kf_dtype_size(D->dtype));
    }
    return KOFN_OK;
}

/* Rows that are made one after the other of the same, as long as a cache holds
 * them. */
#define SLICE 16

static void go_forward(kf_train_mesh *m, size_t stage,
                       const kofn_matrix *product, double scalar[KOFN_SCALARS])
{
    size_t l = stage + 1;
    const kofn_matrix *X = &m->p.X[l];
    double right;

    for (size_t i = 0, end; i < X->rows; i = end) {
        kofn_matrix points = *product, S = *X;

        end = kf_min(i + SLICE, X->rows);
        points.data = kf_at(product, 0, i);
        S.data = kf_at(X, i, 0);
        S.rows = end - i;
        S.cols = m->t->net->widths[l];
        kf_mat_turn(&points, &S);
        kf_passes_done(&m->p, stage, (kf_draw){0}, i, end);
    }
    if (l == layers_of(m)) {
        scalar[LOSS] = kf_passes_mean_cost(&m->p, m->means, &right);
        scalar[ACCURACY] = m->t->classes ? right / (double)m->p.count : 0;
    }
}

/* Of layer l deltas made those of the one before; the last column is
 * nobody's. */
static void go_back(kf_train_mesh *m, size_t l, const kofn_matrix *product)
{
    const kofn_matrix *D = &m->p.D[l - 2];
    size_t s = layers_of(m) + 2 * (layers_of(m) - l) + 1;
    kf_draw draw = {kf_passes_weight(&m->p), m->means};

    kf_passes_know_means(&m->p, m->means);
    for (size_t i = 0; i < D->rows; i++) {
        memcpy(kf_at(D, i, 0), kf_at(product, i, 0),
               D->cols * kf_dtype_size(D->dtype));
        kf_passes_done(&m->p, s, draw, i, i + 1);
    }
}

/* What the passes have made of a layer goes to its tape. */
static void store_layer(const kf_train_mesh *m, uint64_t step, size_t layer,
                        const kofn_matrix *v)
{
    double *tape = (double *)v->data + step % TAPES * m->tape;

    store(&m->p.D[layer], store(&m->p.X[layer + 1], tape + layer_at(m, layer)));
}

/* The weights of a layer, where they belong. */
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
    size_t L = layers_of(m), stage = (t - 1) % turn_of(m);

    if (step >= m->steps) {
        size_t l = (size_t)(t - 1 - m->steps * turn_of(m));

        keep_weights(m, l, product, v);
        *final = l + 1 == L;
        return KOFN_OK;
    }
    turn_to(m, step, v);
    if (is_forward(m, stage))
        go_forward(m, stage, product, scalar);
    else
        go_back(m, 2 * L - stage, product);
    if (is_single(m))
        store_layer(m, step, layer_made(m, stage), v);
    if (stage + 1 == turn_of(m) && !kf_passes_finite(&m->p))
        return kf_fail(KOFN_NONFINITE,
                       "step %llu: the gradient is not finite; try a shorter "
                       "step",
                       (unsigned long long)step + 1);
    return KOFN_OK;
}

/* Of a stage what came out of its layer or went back to it, of the last one of
 * a step the whole tape, and of the last of all the weights. */
static void wrote(void *ud, uint64_t t, size_t *first, size_t *rows)
{
    kf_train_mesh *m = ud;
    uint64_t step = (t - 1) / turn_of(m);
    size_t stage = (t - 1) % turn_of(m), layer = layer_made(m, stage);

    if (step >= m->steps) {
        *first = TAPES * m->tape;
        *rows = m->t->net->total;
        return;
    }
    *first = step % TAPES * m->tape;
    *rows = m->tape;
    if (stage + 1 == turn_of(m))
        return;
    *first += layer_at(m, layer);
    *rows = layer_of(m, layer);
}

static kofn_status change(void *ud, uint64_t turn, uint32_t operand,
                          const kofn_matrix *v, kofn_turned *to)
{
    kf_train_mesh *m = ud;

    turn_to(m, turn - 1, v);
    to->change = kf_training_change(m->t);
    to->U = m->p.D[operand];
    to->V = m->p.X[operand];
    to->U.rows = to->V.rows = m->p.count;
    return KOFN_OK;
}

/* ---- what must be the same at all nodes ---------------------------------- */

/* Numbers of 64 bits. */
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
    /* not the epochs: a training goes on with more */
    const uint64_t counts[] = {o->nesterov,    o->batch,      o->seed,
                               t->points.rows, s->layers,     s->output,
                               s->cost,        s->activation, s->autoencoder};
    uint64_t d = digest(1, reals, 5);

    d = digest(d, counts, 9);
    d = digest(d, t->net->widths, s->layers + 1);
    d = digest(d, t->y, t->points.rows);
    for (size_t i = 0; i < t->points.rows; i++)
        d = digest(d, kf_at(&t->points, i, 0), t->points.cols);
    return d;
}

/* ---- the program --------------------------------------------------------- */

static void fill_stages(kf_train_mesh *m, const kofn_plan *const *plan)
{
    size_t L = layers_of(m);

    for (size_t l = 0; l < L; l++) {
        const kofn_stage s = {.plan = plan[l], .operand = (uint32_t)l};
        kofn_stage *reads = &m->stage[turn_of(m) + l];

        m->operand[l] = (kofn_operand){.dense = &m->t->net->W[l]};
        m->stage[l] = *reads = s;
        reads->read = true;
        if (l == 0) /* nobody asks for deltas of the points */
            continue;
        m->stage[turn_of(m) - l] = s;
        m->stage[turn_of(m) - l].left = true;
    }
}

kofn_status kf_train_mesh_new(kf_train_mesh *m, kofn_training *t,
                              const kofn_plan *const *plan,
                              kofn_program *program, kofn_matrix *v)
{
    size_t rows;

    *m = (kf_train_mesh){.t = t};
    if (t->opt.resume && t->opt.resume->step)
        return kf_fail(KOFN_UNSUITED,
                       "a mesh begins at the start; those who join it later go "
                       "on with the others anyway");
    m->steps = (uint64_t)kf_training_steps(t) * t->opt.epochs;
    TRY(kf_passes_new(&m->p, t->net, t->classes, kf_training_room(t)));
    m->tape = layer_at(m, layers_of(m));
    TRY_ZERO(m->means, kf_passes_means(t->net));
    if (!kf_mul(m->tape, TAPES, &rows) || !kf_add(rows, t->net->total, &rows))
        return kf_nomem(SIZE_MAX);
    TRY_ZERO(m->v, rows);
    fill_stages(m, plan);
    *v = (kofn_matrix){m->v, rows, 1, 1, KOFN_F64};
    *program = (kofn_program){.size = sizeof *program,
                              .stage = m->stage,
                              .stages = turn_of(m) + layers_of(m),
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
                              .recalls = TAPES};
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
