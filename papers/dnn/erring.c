/* erring.c -- a training as nodes that err would take its steps: the passes with
 * products that are computed node by node, and checkpoints to go back to. */
#include "dnn/erring.h"

#include "learn/training.h"

#include "mat/mat.h"

#define STRENGTH 10
#define CHECKPOINT 50
#define MOST 10 /* times the training's steps */

typedef struct run {
    kofn_training *t;
    const erring_options *e;
    erring_nodes nodes;
    erring_layer layer[KOFN_NET_MOST];
    double *saved[KOFN_NET_MOST]; /* blocks at the checkpoint */
    unsigned since;               /* steps that it has        */
    kf_passes p;
    double *means;
    erring_fate fate;
    erring_result res;
} run;

static size_t layers(const run *r)
{
    return r->t->net->shape.layers;
}

static size_t block_bytes(const erring_layer *l)
{
    return l->nodes->P * l->high * l->wide * sizeof(double);
}

/* ---- products ---------------------------------------------------------------- */

/* Who was found gets its block anew, and what it had made of the layer before with
 * it: nothing of that outlives this product. */
static kofn_status multiply(void *ud, kf_pass pass, size_t layer,
                            const kofn_matrix *a, const kofn_matrix *b,
                            kofn_matrix *out)
{
    run *r = ud;
    erring_layer *l = &r->layer[layer - 1];
    bool back = pass == KF_PASS_BACK;
    size_t bad;

    (void)b;
    if (pass == KF_PASS_GRADIENT) /* when all deltas are there */
        return KOFN_OK;
    r->fate.copies = r->fate.everywhere && (back || layer > 1);
    erring_answer(l, back, a, &r->fate);
    TRY(erring_decode(l, back, r->e->adversarial, out, &bad));
    r->res.products++;
    r->res.corrected += bad > 0;
    r->res.repaired += bad;
    return bad ? erring_repair(l, &r->nodes.way[back].code) : KOFN_OK;
}

/* ---- a step -------------------------------------------------------------------- */

static kofn_status passes(run *r)
{
    const kf_multiplier by = {multiply, r};
    size_t n = kf_passes_means(r->t->net);
    double weight = 1 / (double)r->p.count, cost = 0, right = 0;

    TRY(kf_passes_forward(&r->p, &by));
    memset(r->means, 0, n * sizeof *r->means);
    if (n)
        kf_passes_hidden(&r->p, r->means);
    for (size_t j = 0; j < n; j++)
        r->means[j] *= weight;
    kf_passes_cost(&r->p, weight, &cost, &right);
    return kf_passes_back(&r->p, weight, r->means, &by, r->t->net->W);
}

static kofn_status take_step(run *r)
{
    const kofn_training *t = r->t;
    kf_batch batch = kf_training_batch(t, r->res.steps);

    kf_training_put(t, &batch, &r->p);
    kf_passes_pad(&r->p, kf_training_room(t));
    TRY(passes(r));
    for (size_t l = layers(r); l > 0; l--) {
        kofn_matrix D = r->p.D[l - 1], X = r->p.X[l - 1];

        D.rows = X.rows = r->p.rows;
        r->fate.copies = r->fate.everywhere && l == 1;
        erring_update(&r->layer[l - 1], &D, &X, t->opt.step, t->opt.l2,
                      &r->fate);
    }
    return KOFN_OK;
}

/* ---- checkpoints ----------------------------------------------------------------- */

/* Blocks are compared first: what is wrong by the last step was not seen yet. */
static kofn_status save(run *r)
{
    for (size_t l = 0; l < layers(r); l++) {
        size_t bad;

        TRY(erring_verify(&r->layer[l], r->e->adversarial, &bad));
        r->res.repaired += bad;
    }
    for (size_t l = 0; l < layers(r); l++)
        memcpy(r->saved[l], r->layer[l].block, block_bytes(&r->layer[l]));
    r->since = r->res.steps;
    return KOFN_OK;
}

static void go_back(run *r)
{
    for (size_t l = 0; l < layers(r); l++)
        memcpy(r->layer[l].block, r->saved[l], block_bytes(&r->layer[l]));
    r->res.steps = r->since;
    r->res.rollbacks++;
}

static kofn_status go(run *r)
{
    unsigned steps = (unsigned)kf_training_steps(r->t) * r->t->opt.epochs;
    unsigned every = r->e->checkpoint ? r->e->checkpoint : CHECKPOINT;
    unsigned most = r->e->most ? r->e->most : MOST * steps;

    TRY(save(r));
    while (r->res.steps < steps && r->res.taken < most) {
        kofn_status st = take_step(r);

        r->res.taken++;
        if (!st) {
            r->res.steps++;
            if (r->res.steps % every == 0 || r->res.steps == steps)
                st = save(r);
        }
        if (st == KOFN_CORRUPT)
            go_back(r);
        else if (st)
            return st;
    }
    r->res.finished = r->res.steps == steps;
    for (size_t l = 0; l < layers(r); l++)
        TRY(erring_read(&r->layer[l], &r->t->net->W[l]));
    return KOFN_OK;
}

/* ---- the run --------------------------------------------------------------------- */

static kofn_status check(const kofn_training *t, const erring_options *e)
{
    if (t->net->shape.dtype != KOFN_F64 || t->opt.momentum > 0)
        return kf_fail(KOFN_UNSUITED,
                       "nodes that err train in float64 and without momentum");
    if (!(e->chance >= 0 && e->chance < 1) || !(e->strength >= 0))
        return kf_fail(KOFN_INVAL,
                       "a chance of %g and a strength of %g; a chance is from "
                       "0 to less than 1, a strength 0 or more",
                       e->chance, e->strength);
    if (e->everywhere && e->kind > DNN_GPD_VUM)
        return kf_fail(KOFN_UNSUITED,
                       "only Generalized PolyDot codes see what goes wrong "
                       "outside of products and changes");
    return KOFN_OK;
}

static kofn_status run_new(run *r)
{
    const kofn_training *t = r->t;
    const kofn_net *net = t->net;
    size_t room = kf_training_room(t);

    TRY(erring_nodes_new(
        &r->nodes,
        &(dnn_nodes){r->e->kind, r->e->nodes, r->e->m, r->e->n, {1, 1}}));
    r->means = kf_zero(kf_passes_means(net), sizeof *r->means);
    if (!r->means)
        return KOFN_NOMEM;
    TRY(kf_passes_new(&r->p, net, t->classes, room));
    for (size_t l = 0; l < layers(r); l++) {
        erring_layer *a = &r->layer[l];

        TRY(erring_layer_new(a, &r->nodes, net->W[l].rows, net->W[l].cols,
                             room));
        erring_encode(a, &net->W[l]);
        r->saved[l] = kf_new(block_bytes(a), 1);
        if (!r->saved[l])
            return KOFN_NOMEM;
    }
    return KOFN_OK;
}

static void run_free(run *r)
{
    for (size_t l = 0; l < layers(r); l++) {
        erring_layer_free(&r->layer[l]);
        kf_free(r->saved[l]);
    }
    kf_passes_free(&r->p);
    kf_free(r->means);
    erring_nodes_free(&r->nodes);
}

kofn_status erring_train(kofn_training *t, const erring_options *e,
                         erring_result *out)
{
    run *r = kf_zero(1, sizeof *r);
    kofn_status st;

    *out = (erring_result){0};
    if (!r)
        return KOFN_NOMEM;
    r->t = t;
    r->e = e;
    r->fate = (erring_fate){
        .chance = e->chance,
        .strength = e->strength > 0 ? e->strength : STRENGTH,
        .everywhere = e->everywhere,
        .rng = kf_rng_stream(e->seed, KF_FOR_CORRUPT, (uint32_t)e->kind, 0)};
    st = check(t, e);
    if (!st)
        st = run_new(r);
    if (!st)
        st = go(r);
    r->res.faults = r->fate.faults;
    *out = r->res;
    run_free(r);
    kf_free(r);
    return st;
}
