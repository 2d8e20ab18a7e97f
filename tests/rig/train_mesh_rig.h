/* train_mesh_rig.h -- trainings on the simulated mesh. Every vector of any
 * node, with the outputs of every layer, is compared with the plain passes.
 * Every block is compared with the coded weights. */
#ifndef KF_TEST_TRAIN_MESH_RIG_H
#define KF_TEST_TRAIN_MESH_RIG_H

#include "mesh_faults.h"
#include "train_rig.h"

#include "data/kernel.h"
#include "learn/training.h"
#include "mat/mat.h"

#include <kofn/peer.h>

/* ---- trainings ----------------------------------------------------------- */

enum { MOST = 3, SIDE = 4, POINTS = 11 };

typedef struct training_case {
    const char *scheme;
    size_t nodes, layers, widths[MOST + 1];
    kofn_activation activation;
    kofn_net_loss loss;
    bool autoencoder;
    double sparsity, momentum, l2;
    bool nesterov;
    bool zero_input; /* the first input of each half is always 0 (cut_of) */
    size_t batch;    /* 0 means 4 */
    kofn_dtype dtype;
} training_case;

/* Vectors and blocks that take long over slow links or with small windows. */
static const training_case wide_case = {.scheme = "matdot:n=2",
                                        .nodes = 6,
                                        .layers = 3,
                                        .widths = {SIDE * SIDE, 44, 60, 3},
                                        .activation = KOFN_SIGMOID,
                                        .momentum = 0.9};

/* Codes with products from both sides that need more answers, fewer, or
 * different ones. The last batch of an epoch is short. */
static const training_case training_cases[] = {
    {.scheme = "gpd:m=2,n=2,p=1",
     .nodes = 9,
     .layers = 3,
     .widths = {SIDE * SIDE, 9, 5, 3},
     .activation = KOFN_SIGMOID,
     .momentum = 0.9},
    {.scheme = "matdot:n=2",
     .nodes = 5,
     .layers = 2,
     .widths = {SIDE * SIDE, 7, 3},
     .activation = KOFN_TANH,
     .loss = KOFN_NET_LOSS_SQUARES,
     .l2 = 0.01},
    /* both sides of a divided network may continue for a while */
    {.scheme = "matdot:n=2",
     .nodes = 8,
     .layers = 2,
     .widths = {SIDE * SIDE, 5, 3},
     .activation = KOFN_RELU,
     .momentum = 0.9},
    /* points of a batch are mixed with each other, on the way back by two as
     * well */
    {.scheme = "gpd:m=2,n=2,p=2",
     .nodes = 12,
     .layers = 2,
     .widths = {SIDE * SIDE, 6, 3},
     .activation = KOFN_SIGMOID,
     .momentum = 0.9},
    {.scheme = "gpd:m=1,n=2,p=2,q=1",
     .nodes = 9,
     .layers = 2,
     .widths = {SIDE * SIDE, 5, 3},
     .activation = KOFN_RELU},
    {.scheme = "polynomial:m=2,p=1,basis=circle",
     .nodes = 5,
     .layers = 2,
     .widths = {SIDE * SIDE, 6, SIDE *SIDE},
     .activation = KOFN_SIGMOID,
     .loss = KOFN_NET_LOSS_SQUARES,
     .autoencoder = true,
     .sparsity = 0.2,
     .momentum = 0.5,
     .nesterov = true},
};

typedef struct fixture {
    const training_case *l;
    digits d;
    kofn_net *net;
    kofn_training *t;
    kofn_plan *plan[MOST];
    size_t turn, steps;
    size_t reads, needs; /* blocks that determine the others; nodes that the
                            training needs */
    kf_train_mesh m[SIM_NODES + 1]; /* of each node, and of the reference */
    kofn_program program;
    kofn_matrix v0;
    double *ref;
    kofn_matrix *W; /* weights after each step, of each layer */
    size_t blocks;  /* blocks that were compared */
    double drift;
} fixture;

static kofn_train_options options_of(const training_case *l, unsigned epochs)
{
    return (kofn_train_options){.size = sizeof(kofn_train_options),
                                .step = 0.2,
                                .momentum = l->momentum,
                                .nesterov = l->nesterov,
                                .l2 = l->l2,
                                .batch = l->batch ? l->batch : 4,
                                .epochs = epochs,
                                .seed = 5};
}

static kofn_net_shape shape_of(const training_case *l)
{
    return (kofn_net_shape){.size = sizeof(kofn_net_shape),
                            .layers = l->layers,
                            .widths = l->widths,
                            .activation = l->activation,
                            .output = KOFN_LINEAR,
                            .loss = l->loss,
                            .autoencoder = l->autoencoder,
                            .dtype = l->dtype,
                            .sparsity = l->sparsity,
                            .sparsity_weight = l->sparsity > 0 ? 0.1 : 0};
}

static kofn_training *make_training(const fixture *f, kofn_net *net,
                                    unsigned epochs)
{
    const kofn_train_options o = options_of(f->l, epochs);
    kofn_training *t;

    assert_ok(kofn_training_new(&t, net, &f->d.X,
                                f->l->autoencoder ? NULL : &f->d.y, &o));
    return t;
}

/* ---- the plain training -------------------------------------------------- */

static kofn_matrix copy_of(const kofn_matrix *a)
{
    kofn_matrix b = *a;

    b.data = numbers(a->rows * a->cols, 8);
    memcpy(b.data, a->data, a->rows * a->cols * kf_dtype_size(a->dtype));
    return b;
}

static void put_entry(const kofn_matrix *a, size_t i, size_t j, double x)
{
    if (a->dtype == KOFN_F64)
        *(double *)kf_at(a, i, j) = x;
    else
        *(float *)kf_at(a, i, j) = (float)x;
}

/* Takes a step as docs/training.md defines it, and as PyTorch's SGD does. */
static void step_plainly(const kofn_train_options *c, const kofn_matrix *U,
                         const kofn_matrix *V, kofn_matrix *W, double *M)
{
    for (size_t i = 0; i < W->rows; i++)
        for (size_t j = 0; j < W->cols; j++) {
            size_t k = i * W->cols + j;
            double w = kf_mat_entry(W, i, j), g = c->l2 * w;

            for (size_t b = 0; b < U->rows; b++)
                g += kf_mat_entry(U, b, i) * kf_mat_entry(V, b, j);
            M[k] = c->momentum * M[k] + g;
            w -= c->step * (c->nesterov ? g + c->momentum * M[k] : M[k]);
            put_entry(W, i, j, w);
        }
}

static void take_turn(fixture *f, uint64_t turn, const kofn_matrix *v,
                      double **M)
{
    size_t L = f->l->layers;
    kofn_matrix *W = f->W + turn * L;

    for (uint32_t l = 0; l < L; l++) {
        kofn_turn_change to;

        W[l] = copy_of(&W[l] - L);
        assert_ok(f->program.change(&f->m[SIM_NODES], turn, l, v, &to));
        step_plainly(&f->t->opt, &to.U, &to.V, &W[l], M[l]);
    }
}

/* Returns the product, or the matrix read, of the product that makes iterate t.
 */
static kofn_matrix product_of(const fixture *f, const kofn_mesh_product *s,
                              uint64_t t, const kofn_matrix *v,
                              const double *scalar)
{
    uint64_t turn = (t - 1) / f->turn;
    size_t room = f->m[0].p.room;
    const kofn_matrix *W =
        &f->W[(turn < f->steps ? turn : f->steps) * f->l->layers + s->operand];
    kofn_matrix in = {NULL, s->left ? room : W->cols, s->left ? W->rows : room,
                      s->left ? W->rows : room, W->dtype};
    kofn_matrix out = {NULL, s->left ? room : W->rows, s->left ? W->cols : room,
                       s->left ? W->cols : room, W->dtype};

    if (s->read)
        return copy_of(W);
    in.data = numbers(in.rows * in.cols, 8);
    out.data = numbers(out.rows * out.cols, 8);
    assert_ok(f->program.input((void *)(uintptr_t)&f->m[SIM_NODES], t, v,
                               scalar, &in));
    kf_mat_multiply(s->left ? &in : W, s->left ? W : &in, false, out.data);
    kf_free(in.data);
    return out;
}

static size_t iterates(const fixture *f)
{
    return f->steps * f->turn + f->l->layers;
}

static void make_reference(fixture *f)
{
    size_t rows = f->v0.rows, L = f->l->layers, n = iterates(f);
    kf_course course = {f->program.products, f->program.turns,
                        f->program.after};
    double scalar[KOFN_SCALARS] = {0}, *M[MOST];
    bool final = false;

    f->ref = numbers((n + 1) * rows, 8);
    f->W = numbers((f->steps + 1) * L, sizeof *f->W);
    memcpy(f->ref, f->v0.data, rows * 8);
    for (size_t l = 0; l < L; l++) {
        f->W[l] = copy_of(&f->net->W[l]);
        M[l] = numbers(f->W[l].rows * f->W[l].cols, 8);
    }
    for (uint64_t t = 1; t <= n; t++) {
        const kofn_mesh_product *s =
            &f->program.product[kf_course_product(&course, t - 1)];
        kofn_matrix v = {f->ref + t * rows, rows, 1, 1, KOFN_F64}, product;

        assert_false(final);
        memcpy(v.data, f->ref + (t - 1) * rows, rows * 8);
        product = product_of(f, s, t, &v, scalar);
        assert_ok(f->program.output(&f->m[SIM_NODES], t, &product, &v, scalar,
                                    &final));
        kf_free(product.data);
        if (t % f->turn == 0 && t / f->turn <= f->steps)
            take_turn(f, t / f->turn, &v, M);
    }
    assert_true(final);
    for (size_t l = 0; l < L; l++)
        kf_free(M[l]);
}

/* ---- a training ---------------------------------------------------------- */

/* Returns the columns of a part of the first layer's weights, which have one
 * more column for biases. */
static size_t cut_of(const training_case *l)
{
    return (l->widths[0] + 2) / 2;
}

static void clear_column(digits *d, size_t column)
{
    for (size_t i = 0; i < d->X.rows; i++)
        *(double *)kf_at(&d->X, i, column) = 0;
}

static void set_up(fixture *f, const training_case *l, unsigned epochs)
{
    kofn_net_shape shape = shape_of(l);
    kofn_matrix v;

    memset(f, 0, sizeof *f);
    f->l = l;
    f->d = make_digits(POINTS, SIDE, 3, 1);
    for (size_t i = 0; l->zero_input && i < 2; i++)
        clear_column(&f->d, i * cut_of(l));
    f->net = make_net(&shape);
    f->t = make_training(f, f->net, epochs);
    assert_ok(kofn_training_plans(f->t, l->scheme, l->nodes, 3, f->plan));
    f->turn = 2 * l->layers - 1;
    f->steps = kf_training_steps(f->t) * epochs;
    for (size_t i = 0; i <= SIM_NODES; i++)
        assert_ok(kf_train_mesh_new(&f->m[i], f->t,
                                    (const kofn_plan *const *)f->plan,
                                    &f->program, i ? &v : &f->v0));
    for (size_t i = 0; i < l->layers; i++) {
        const kofn_plan *p = f->plan[i];

        f->needs = kf_max(f->needs, p->layout.enough);
        f->needs = kf_max(f->needs, p->left->layout.enough);
        f->reads =
            kf_max(f->reads, kf_ceil_div(p->parts, p->layout.components));
    }
    f->needs = kf_max(f->needs, l->nodes / 2 + 1);
    make_reference(f);
}

static void tear_down(fixture *f)
{
    for (size_t i = 0; i < (f->steps + 1) * f->l->layers; i++)
        kf_free(f->W[i].data);
    kf_free(f->W);
    kf_free(f->ref);
    for (size_t i = 0; i <= SIM_NODES; i++)
        kf_train_mesh_free(&f->m[i]);
    for (size_t l = 0; l < f->l->layers; l++)
        kofn_plan_free(f->plan[l]);
    kofn_training_free(f->t);
    kofn_net_free(f->net);
    digits_free(&f->d);
}

/* ---- on the simulated mesh ----------------------------------------------- */

static kf_train_mesh *at_node(const sim_node *n)
{
    return &((fixture *)n->sim->own)->m[n->id];
}

static kofn_status sim_input(void *ud, uint64_t t, const kofn_matrix *v,
                             const double scalar[KOFN_SCALARS], kofn_matrix *in)
{
    const sim_node *n = ud;

    return ((fixture *)n->sim->own)
        ->program.input(at_node(n), t, v, scalar, in);
}

static kofn_status sim_makes(void *ud, uint64_t t, kofn_matrix *product,
                             kofn_matrix *v, double scalar[KOFN_SCALARS],
                             bool *final)
{
    const sim_node *n = ud;
    const kofn_program *p = &((fixture *)n->sim->own)->program;
    double *now = v->data, *was = numbers(v->rows, sizeof *was);
    size_t first, rows;
    kofn_status st;

    memcpy(was, now, v->rows * sizeof *was);
    st = p->output(at_node(n), t, product, v, scalar, final);
    p->wrote(at_node(n), t, &first, &rows);
    for (size_t i = 0; i < v->rows; i++)
        if ((i < first || i - first >= rows) &&
            memcmp(&now[i], &was[i], sizeof *was) != 0)
            fail_msg("iterate %llu wrote row %zu of the vector",
                     (unsigned long long)t, i);
    kf_free(was);
    return st;
}

static void sim_wrote(void *ud, uint64_t t, size_t *first, size_t *rows)
{
    const sim_node *n = ud;

    ((fixture *)n->sim->own)->program.wrote(at_node(n), t, first, rows);
}

static kofn_status sim_change(void *ud, uint64_t turn, uint32_t operand,
                              const kofn_matrix *v, kofn_turn_change *to)
{
    const sim_node *n = ud;

    return ((fixture *)n->sim->own)
        ->program.change(at_node(n), turn, operand, v, to);
}

static void compare_block(fixture *f, const kf_block *b, const kf_block *right)
{
    for (size_t l = 0; l < b->components; l++)
        for (size_t i = 0; i < b->component[l].rows; i++)
            for (size_t j = 0; j < b->cols; j++) {
                double apart = fabs(kf_mat_entry(&b->component[l], i, j) -
                                    kf_mat_entry(&right->component[l], i, j));

                f->drift = fmax(f->drift, isnan(apart) ? INFINITY : apart);
            }
    f->blocks++;
}

/* Measures how far a node's blocks are from the coded weights of the step of
 * its vector. */
static void measure_blocks(sim *s, size_t id)
{
    fixture *f = s->own;
    const kf_host *h = s->node[id].host;
    uint64_t turn = kf_course_turn(&h->work.course, h->it.at.step);
    size_t seat = h->blocks.seat;

    if (h->blocks.seat == KOFN_NO_SEAT)
        return;
    assert_true(h->blocks.changing.turn == turn);
    for (size_t l = 0; l < f->l->layers; l++) {
        const kofn_matrix *W = &f->W[turn * f->l->layers + l];
        kf_block *right;
        kf_resident r;

        assert_ok(kf_resident_dense(&r, f->plan[l], W));
        r.by = h->blocks.operand[l].resident.by;
        assert_ok(
            kf_data_encode(&r, h->blocks.operand[l].code, &seat, 1, &right));
        compare_block(f, h->blocks.operand[l].block, right);
        kf_block_drop(right);
        kf_resident_free(&r);
    }
}

/* Five times the deviation of the histories of train_single_test.c in float64,
 * 4e-14, in units of the rounding of float32. */
#define ROOM_F32 (0x1p29 * 2e-13)

/* Fails unless the node's blocks are the coded weights. */
static void look_at_blocks(sim *s, size_t id)
{
    const fixture *f = s->own;

    measure_blocks(s, id);
    assert_at_most(f->drift, f->l->dtype == KOFN_F64 ? 1e-11 : ROOM_F32);
}

static void mesh_up(sim *s, fixture *f, const training_case *l, unsigned epochs,
                    uint64_t seed)
{
    set_up(f, l, epochs);
    sim_up(s, "mds:k=2", l->nodes, 4, iterates(f), seed);
    kf_free(s->v0.data);
    kf_free(s->ref);
    s->v0 = copy_of(&f->v0);
    s->ref = numbers((iterates(f) + 1) * f->v0.rows, 8);
    memcpy(s->ref, f->ref, (iterates(f) + 1) * f->v0.rows * 8);
    s->own = f;
    s->program = f->program;
    s->program.input = sim_input;
    s->program.output = sim_makes;
    s->program.change = sim_change;
    s->program.wrote = sim_wrote;
    s->look = look_at_blocks;
    s->window = seed % 2 ? 128 : 0; /* a row or two */
    s->room = l->dtype == KOFN_F64 ? 0 : ROOM_F32;
}

static void mesh_down(sim *s, fixture *f)
{
    sim_down(s);
    tear_down(f);
}

/* Returns the last turn that a node has applied to its blocks. */
static inline uint64_t last_turn(const sim *s)
{
    uint64_t last = 0;

    for (size_t i = 0; i < s->nodes; i++)
        if (s->node[i].up)
            last = kf_max(last, s->node[i].host->blocks.changing.turn);
    return last;
}

static inline void run_until(sim *s, uint64_t turn)
{
    while (s->node[0].host->blocks.changing.turn < turn) {
        sim_run(s, s->now + MS, NULL);
        assert_true(s->now < 60 * KOFN_SECOND);
    }
}

#endif
