/* mesh.c -- trains on the nodes of a mesh that go wrong: twelve with a
 * Generalized PolyDot code, which check for errors, or four uncoded, which do
 * not. The nodes are kofn's own, on threads of this process. Their results are
 * spoilt here. */
#include "dnn/dnn.h"

#define STRENGTH 10 /* times the mean magnitude of the result */
/* Twelve threads may share one core, so none is declared lost for silence. The
 * mesh ends by itself if nothing moves (docs/masterless.md). If more nodes
 * have lost their blocks than can be rebuilt, it rolls back after PATIENCE, or
 * 32 silences: all nodes are here and no others will come. */
#define SILENCE (2 * KOFN_SECOND)
#define PATIENCE (60 * KOFN_SECOND)
#define KEPT 50 /* steps between checkpoints, as in baseline_node.c */

/* Operations of a step (<kofn/faults.h>): all, and, without error detection,
 * only products and updates of blocks. */
#define EVERYWHERE                                                             \
    (KOFN_FAULT_IN_ENCODING | KOFN_FAULT_IN_PRODUCT | KOFN_FAULT_IN_DECODING | \
     KOFN_FAULT_IN_VECTOR | KOFN_FAULT_IN_UPDATE)
#define SOME (KOFN_FAULT_IN_PRODUCT | KOFN_FAULT_IN_UPDATE)

static const struct way {
    const char *spec;
    size_t nodes;
    kofn_errors errors;
    unsigned where;
} coded_way = {"gpd:m=2,n=2,p=1", 12, KOFN_ERRORS_PROBABILISTIC, EVERYWHERE},
  plain_way = {"grid:m=2,n=2", 4, KOFN_ERRORS_NONE, SOME};

typedef struct node {
    const struct run *all;
    kofn_net *net;
    dice d;
    bool multiplies_wrong; /* this product is wrong */
    size_t faults;
    kofn_node_view end;
    kofn_status status;
} node;

typedef struct run {
    const dnn_lesson *l;
    const struct way *way;
    double chance;
    kofn_plan *plan[KOFN_NET_MOST];
    char folder[64]; /* of checkpoints; "": none */
    node node[12];
} run;

/* ---- a node ---------------------------------------------------------------
 */

/* Adds Gaussian noise to all of it. */
static void spoil(dice *d, kofn_matrix *a)
{
    double *x = a->data, mean = 0;

    for (size_t i = 0; i < a->rows; i++)
        for (size_t j = 0; j < a->cols; j++)
            mean += fabs(x[i * a->ld + j]) / (double)(a->rows * a->cols);
    for (size_t i = 0; i < a->rows; i++)
        for (size_t j = 0; j < a->cols; j++)
            x[i * a->ld + j] += STRENGTH * mean * dice_normal(d);
}

static bool strikes(node *n)
{
    bool hit = dice_uniform(&n->d) < n->all->chance;

    n->faults += hit;
    return hit;
}

/* A product is computed partial product by partial product; all of its partial
 * products are wrong or none. The draw happens when its input is encoded, which
 * comes first, and once more if the product is repeated. */
static void fault(void *ud, kofn_fault_place where, uint64_t t,
                  kofn_matrix *numbers)
{
    node *n = ud;

    (void)t;
    if (where == KOFN_FAULT_IN_ENCODING)
        n->multiplies_wrong = strikes(n);
    if (where == KOFN_FAULT_IN_PRODUCT
            ? n->multiplies_wrong
            : n->all->way->where & where && strikes(n))
        spoil(&n->d, numbers);
}

static kofn_status train(node *n, kofn_transport *t)
{
    const run *r = n->all;
    const dnn_lesson *l = r->l;
    const kofn_peer_options opt = {.size = sizeof opt,
                                   .nodes = r->way->nodes,
                                   .seat = (uint32_t)(n - r->node),
                                   .decoding = KOFN_DECODE_REPLICATED,
                                   .silence = SILENCE,
                                   .give_up = PATIENCE,
                                   .errors = r->way->errors,
                                   .keep = *r->folder ? r->folder : NULL,
                                   .every = KEPT,
                                   .fault = fault,
                                   .fault_ud = n};
    kofn_training *training = NULL;
    kofn_status st;

    n->end = (kofn_node_view)KOFN_NODE_VIEW_INIT;
    st = kofn_net_new(&n->net, &l->shape, l->seed);
    if (!st)
        st = kofn_training_new(&training, n->net, l->X, l->y, &l->opt);
    if (!st)
        st = kofn_train_peers(t, training, (const kofn_plan *const *)r->plan,
                              &opt, NULL, &n->end);
    kofn_training_free(training);
    return st;
}

static void live(void *ud, kofn_transport *t)
{
    node *n = ud;

    n->status = train(n, t);
}

/* ---- the result -----------------------------------------------------------
 */

double dnn_apart(const kofn_net *a, const kofn_net *b)
{
    const kofn_matrix *x, *y;
    double most = 0;

    for (size_t l = 1; (x = kofn_net_weights(a, l)); l++) {
        y = kofn_net_weights(b, l);
        for (size_t i = 0; i < x->rows * x->cols; i++)
            most = fmax(most,
                        fabs(((double *)x->data)[i] - ((double *)y->data)[i]));
    }
    return most;
}

kofn_status dnn_lesson_score(const dnn_lesson *l, const kofn_net *net,
                             kofn_score *score)
{
    kofn_status st = kofn_net_score(net, l->test_X, l->test_y, score);

    if (st == KOFN_NONFINITE) { /* such a network predicts nothing correctly */
        *score = (kofn_score){HUGE_VAL, 0};
        st = KOFN_OK;
    }
    return st;
}

/* Takes the result of a node. A node may fail because its numbers are no
 * longer finite, the faulty node cannot be located, too few nodes have blocks
 * to give, or nothing moves. */
static kofn_status look_at(const run *r, const node *n, dnn_run *out)
{
    unsigned steps = (unsigned)(n->end.at.step / (2 * r->l->shape.layers - 1));

    out->did.steps = (unsigned)larger(out->did.steps, steps);
    out->did.faults += n->faults;
    out->did.rollbacks = larger(out->did.rollbacks, n->end.back);
    out->did.corrected = larger(out->did.corrected, n->end.left_out);
    out->did.outvoted += n->end.outvoted;
    if (n->status == KOFN_NONFINITE)
        out->accuracy = 0;
    return n->status == KOFN_NONFINITE || n->status == KOFN_CORRUPT ||
                   n->status == KOFN_TOOFEW
               ? KOFN_OK
               : n->status;
}

/* As with kofn train, more than half of the nodes must have weights. */
static kofn_status gather(const run *r, dnn_run *out)
{
    const dnn_lesson *l = r->l;
    const node *has = NULL;
    kofn_score score;
    size_t have = 0;
    double apart = 0;

    *out = (dnn_run){
        .mesh = "threads", .accuracy = NAN, .loss = NAN, .apart = NAN};
    for (size_t i = 0; i < r->way->nodes; i++) {
        const node *n = &r->node[i];

        PAPERS_TRY(look_at(r, n, out));
        if (n->status)
            continue;
        has = n;
        have++;
        apart = fmax(apart, dnn_apart(n->net, l->plain));
    }
    out->did.steps = (unsigned)smaller(out->did.steps, l->steps);
    out->did.finished = 2 * have > r->way->nodes;
    if (!out->did.finished)
        return KOFN_OK;
    PAPERS_TRY(dnn_lesson_score(l, has->net, &score));
    out->accuracy = score.accuracy;
    out->loss = score.loss;
    out->apart = apart;
    return KOFN_OK;
}

/* ---- the run --------------------------------------------------------------
 */

static kofn_status make_plans(run *r)
{
    const dnn_lesson *l = r->l;
    kofn_net *net = NULL;
    kofn_training *t = NULL;
    kofn_status st = kofn_net_new(&net, &l->shape, l->seed);

    if (!st)
        st = kofn_training_new(&t, net, l->X, l->y, &l->opt);
    if (!st)
        st = kofn_training_plans(t, r->way->spec, r->way->nodes, l->seed,
                                 r->plan);
    kofn_training_free(t);
    kofn_net_free(net);
    return st;
}

static kofn_status run_nodes(run *r)
{
    kofn_mesh *mesh = NULL;
    kofn_status st = kofn_mesh_new(&mesh);

    for (size_t i = 0; i < r->way->nodes && !st; i++)
        st = kofn_mesh_start(mesh, live, &r->node[i]);
    kofn_mesh_free(mesh);
    return st;
}

kofn_status dnn_mesh_train(const dnn_lesson *l, bool coded, double chance,
                           dnn_run *out)
{
    run r = {.l = l, .way = coded ? &coded_way : &plain_way, .chance = chance};
    kofn_status st = make_plans(&r);

    if (!st && r.way->errors)
        st = papers_folder_make(r.folder, sizeof r.folder);
    for (size_t i = 0; i < r.way->nodes; i++) {
        r.node[i].all = &r;
        r.node[i].d = dice_for(l->seed, 2 + coded, i);
    }
    if (!st)
        st = run_nodes(&r);
    if (!st)
        st = gather(&r, out);
    papers_folder_remove(r.folder);
    for (size_t i = 0; i < r.way->nodes; i++)
        kofn_net_free(r.node[i].net);
    for (size_t i = 0; i < KOFN_NET_MOST; i++)
        kofn_plan_free(r.plan[i]);
    return st;
}
