/* nets.c -- networks trained side by side. Each product of a network is one of
 * a stream, and is started while those of the other networks are under way
 * (math/training.md 3, "Coded Sequential Matrix Multiplication For Straggler
 * Mitigation", Krishnan, Hosseini, Khisti, section 5).
 *
 * Owns the passes of each network. Networks and job are borrowed while they
 * are trained. Never starts more products than the job may have open. */
#include "coded.h"
#include "watch.h"

#include "mat/mat.h"

#include <math.h>
#include <stdio.h>

#define LOOK (KOFN_SECOND / 10)

/* A network in training. */
typedef struct learner {
    kofn_net *net;
    double step, cost;
    kf_passes p;
    kofn_net *G; /* the gradient, stored like weights */
    size_t s;    /* the product of the iteration that is under way */
    kf_wanted wanted;
    void *transposed; /* scratch: a transposed operand */
    uint32_t number;
} learner;

struct kofn_nets {
    kofn_nets_options opt;
    kofn_matrix X, y; /* y has no data for autoencoders */
    bool begun;
    size_t nets;
    learner *coded,
        *plain;     /* one per network; `plain` only if results are verified */
    unsigned *done; /* iterations completed, per network */
};

/* ---- options ------------------------------------------------------------- */

static kofn_status with_defaults(kofn_nets_options *o,
                                 const kofn_nets_options *opt, size_t m)
{
    *o = (kofn_nets_options)KOFN_NETS_OPTIONS_INIT;
    TRY(kf_given(o, sizeof *o, opt, "KOFN_NETS_OPTIONS_INIT"));
    o->batch = kf_min(o->batch ? o->batch : 32, m);
    o->iterations = o->iterations ? o->iterations : 1;
    return KOFN_OK;
}

static kofn_status check_net(const kofn_nets *n, size_t i, const kofn_net *net,
                             const kofn_matrix *y, bool *classes)
{
    double step = n->opt.step ? n->opt.step[i] : 0.1;

    if (!net)
        return kf_fail(KOFN_INVAL, "network %zu is missing", i);
    if (!(step > 0 && step < HUGE_VAL))
        return kf_fail(KOFN_INVAL, "step %g of network %zu; it must be above 0",
                       step, i);
    if (kf_passes_means(net))
        return kf_fail(KOFN_UNSUITED,
                       "network %zu has a sparsity penalty, which networks "
                       "side by side do not support; use kofn_train",
                       i);
    TRY(kf_net_check_points(net, &n->X, "X"));
    return kf_net_check_targets(net, n->X.rows, y, "y", classes);
}

/* ---- memory -------------------------------------------------------------- */

/* Sets *n to the numbers of the largest operand that is transposed: weights or
 * deltas. */
static bool largest_transposed(const kofn_net *net, size_t batch, size_t *n)
{
    size_t most = 0, here;

    for (size_t l = 1; l <= net->shape.layers; l++) {
        if (!kf_mul(net->widths[l], kf_max(net->widths[l - 1] + 1, batch),
                    &here))
            return false;
        most = kf_max(most, here);
    }
    *n = most;
    return true;
}

static kofn_status learner_new(learner *a, kofn_net *net, bool classes,
                               double step, size_t batch)
{
    size_t transposed;

    *a = (learner){.net = net, .step = step};
    if (!largest_transposed(net, batch, &transposed))
        return kf_nomem(SIZE_MAX);
    TRY(kf_passes_new(&a->p, net, classes, batch));
    TRY(kf_net_of_shape(&a->G, &net->shape));
    a->transposed = kf_new(transposed, kf_dtype_size(net->shape.dtype));
    return a->transposed ? KOFN_OK : KOFN_NOMEM;
}

static void learner_free(learner *a)
{
    kf_passes_free(&a->p);
    kofn_net_free(a->G);
    kf_free(a->transposed);
}

static kofn_status add_net(kofn_nets *n, kofn_net *net, const kofn_matrix *y)
{
    size_t i = n->nets;
    double step = n->opt.step ? n->opt.step[i] : 0.1;
    kofn_net *copy;
    bool classes;

    TRY(check_net(n, i, net, y, &classes));
    n->nets++; /* kofn_nets_free then frees what exists of it */
    TRY(learner_new(&n->coded[i], net, classes, step, n->opt.batch));
    if (!n->opt.verify)
        return KOFN_OK;
    TRY(kf_net_copy(&copy, net));
    return learner_new(&n->plain[i], copy, classes, step, n->opt.batch);
}

static kofn_status fill(kofn_nets *n, kofn_net *const *net, size_t nets,
                        const kofn_matrix *X, const kofn_matrix *y,
                        const kofn_nets_options *opt)
{
    if (nets < 1 || nets > KOFN_OPEN_MOST)
        return kf_fail(KOFN_INVAL,
                       "%zu networks; the limit is 1 to %d side "
                       "by side",
                       nets, KOFN_OPEN_MOST);
    TRY(kf_mat_check_matrix(X, "X"));
    n->X = *X;
    if (y)
        n->y = *y;
    TRY(with_defaults(&n->opt, opt, X->rows));
    TRY_ZERO(n->coded, nets);
    TRY_ZERO(n->plain, nets);
    TRY_ZERO(n->done, nets);
    for (size_t i = 0; i < nets; i++)
        TRY(add_net(n, net[i], y));
    n->opt.step = NULL; /* the learners have copied it */
    return KOFN_OK;
}

kofn_status kofn_nets_new(kofn_nets **out, kofn_net *const *net, size_t nets,
                          const kofn_matrix *X, const kofn_matrix *y,
                          const kofn_nets_options *opt)
{
    kofn_nets *n;
    kofn_status st;

    *out = NULL;
    TRY_ZERO(n, 1);
    st = fill(n, net, nets, X, y, opt);
    if (st) {
        kofn_nets_free(n);
        return st;
    }
    *out = n;
    return KOFN_OK;
}

void kofn_nets_free(kofn_nets *n)
{
    if (!n)
        return;
    for (size_t i = 0; i < n->nets; i++) {
        learner_free(&n->coded[i]);
        kofn_net_free(n->plain[i].net);
        learner_free(&n->plain[i]);
    }
    kf_free(n->coded);
    kf_free(n->plain);
    kf_free(n->done);
    kf_free(n);
}

/* ---- an iteration -------------------------------------------------------- */

/* Begins a whole batch: products must keep their shape. */
static void begin_batch(const kofn_nets *n, learner *a, unsigned iteration)
{
    size_t each = n->X.rows / n->opt.batch;
    uint64_t epoch = (iteration - 1) / each;
    size_t from = (iteration - 1) % each * n->opt.batch;

    kf_passes_begin(&a->p);
    for (size_t i = from; i < from + n->opt.batch; i++) {
        size_t k = kf_order_at(n->opt.seed, epoch, i, n->X.rows);

        kf_passes_put(&a->p, kf_at(&n->X, k, 0),
                      n->y.data ? kf_at(&n->y, k, 0) : NULL);
    }
    a->s = 0;
}

static void move(learner *a)
{
    void *w = a->net->W[0].data;
    const void *g = a->G->W[0].data;

    for (size_t i = 0; i < a->net->total; i++) {
        if (a->net->shape.dtype == KOFN_F64)
            ((double *)w)[i] -= a->step * ((const double *)g)[i];
        else
            ((float *)w)[i] -= (float)a->step * ((const float *)g)[i];
    }
}

/* Runs the iteration without workers, and sets *apart to how far the two
 * results differ. */
static kofn_status verify(const kofn_nets *n, size_t i, unsigned iteration,
                          double *apart)
{
    learner *a = &n->plain[i];
    const void *w = a->net->W[0].data, *coded = n->coded[i].net->W[0].data;
    double off = 0, size = 0, right;

    begin_batch(n, a, iteration);
    TRY(kf_passes_forward(&a->p, &kf_multiplier_plain));
    kf_passes_mean_cost(&a->p, NULL, &right);
    TRY(kf_passes_back(&a->p, kf_passes_weight(&a->p), NULL,
                       &kf_multiplier_plain, a->G->W));
    move(a);
    for (size_t k = 0; k < a->net->total; k++) {
        double want = kf_mat_number(w, k, a->net->shape.dtype);
        double d = kf_mat_number(coded, k, a->net->shape.dtype) - want;

        off += d * d;
        size += want * want;
    }
    *apart = sqrt(off / size);
    return KOFN_OK;
}

/* ---- products ------------------------------------------------------------ */

static kofn_matrix transpose(const kofn_matrix *a, void *memory)
{
    kofn_matrix b = {memory, a->cols, a->rows, a->rows, a->dtype};

    kf_mat_transpose(a, &b);
    return b;
}

static kofn_status put(learner *a, kofn_job *job)
{
    kf_wanted *w = &a->wanted;

    *w = kf_passes_wanted(&a->p, a->s, a->G->W);
    if (w->pass == KF_PASS_FORWARD)
        w->b = transpose(&w->b, a->transposed);
    if (w->pass == KF_PASS_GRADIENT)
        w->a = transpose(&w->a, a->transposed);
    return kofn_put_pair(job, &w->a, &w->b, &w->out, &a->number);
}

static kofn_status await(const kofn_nets *n, kofn_job *job, uint32_t number,
                         kofn_report *rep)
{
    const kofn_nets_options *o = &n->opt;
    kofn_status st;

    do
        st = kofn_take(job, number, o->watch ? LOOK : KOFN_NEVER, rep);
    while (st == KOFN_AGAIN && !o->watch(o->watch_ud, NULL, NULL));
    return st;
}

static kofn_status end_iteration(kofn_nets *n, size_t i, kofn_nets_step *now)
{
    learner *a = &n->coded[i];
    size_t total = a->net->total;

    if (kf_mat_first_odd(a->G->W[0].data, total, a->net->shape.dtype) < total)
        return kf_fail(KOFN_NONFINITE, "the gradient is not finite");
    move(a);
    n->done[i]++;
    now->loss = a->cost;
    return n->opt.verify ? verify(n, i, now->iteration, &now->apart) : KOFN_OK;
}

/* Takes a completed product and gives it to the passes. */
static kofn_status take(kofn_nets *n, size_t i, kofn_job *job)
{
    learner *a = &n->coded[i];
    kofn_report rep = KOFN_REPORT_INIT;
    kofn_nets_step now = {.net = i,
                          .iteration = n->done[i] + 1,
                          .product = (unsigned)a->s + 1,
                          .of = (unsigned)kf_passes_products(&a->p),
                          .loss = NAN,
                          .apart = NAN};
    double right;

    TRY(await(n, job, a->number, &rep));
    kf_passes_done(&a->p, a->s, (kf_draw){kf_passes_weight(&a->p), NULL}, 0,
                   a->p.rows);
    if (++a->s == a->net->shape.layers)
        a->cost = kf_passes_mean_cost(&a->p, NULL, &right);
    if (a->s == now.of)
        TRY(end_iteration(n, i, &now));
    return n->opt.watch && n->opt.watch(n->opt.watch_ud, &now, &rep)
               ? KOFN_AGAIN
               : KOFN_OK;
}

static kofn_status next(const kofn_nets *n, size_t i, kofn_job *job)
{
    learner *a = &n->coded[i];

    if (n->done[i] == n->opt.iterations)
        return KOFN_OK;
    if (a->s == kf_passes_products(&a->p))
        begin_batch(n, a, n->done[i] + 1);
    return put(a, job);
}

/* Adds the network's number to the message of a failed product. */
static kofn_status tell(const kofn_nets *n, size_t i, const kofn_job *job,
                        kofn_status st)
{
    char why[400];

    if (st >= 0)
        return st;
    snprintf(why, sizeof why, "%s", kofn_errmsg());
    return kf_fail(st, "network %zu, iteration %u: %s%s%s", i, n->done[i] + 1,
                   why, st == KOFN_NONFINITE ? "; " : "",
                   st == KOFN_NONFINITE ? kf_learn_remedy(job, n->done[i] > 0)
                                        : "");
}

static kofn_status go(kofn_nets *n, size_t i, kofn_job *job)
{
    TRY(take(n, i, job));
    return next(n, i, job);
}

/* Checks that there are enough networks. A product is due `delay` rounds after
 * its first round and is decoded in the round after that. Only then is it that
 * network's turn again. */
static kofn_status check_delay(const kofn_nets *n, const kofn_job *job)
{
    kofn_plan_info info = KOFN_PLAN_INFO_INIT;

    TRY(kofn_plan_describe(kofn_job_plan(job), false, &info));
    if (!info.delay || info.delay + 2 <= n->nets)
        return KOFN_OK;
    return kf_fail(KOFN_UNSUITED,
                   "products of %s may take %zu rounds more; this needs %zu "
                   "networks side by side, not %zu; train more of them, or "
                   "choose a shorter delay",
                   info.spec, info.delay, info.delay + 2, n->nets);
}

kofn_status kofn_nets_train(kofn_nets *n, kofn_job *job)
{
    if (n->begun)
        return kf_fail(KOFN_STATE, "these networks are already trained; "
                                   "create others with kofn_nets_new");
    TRY(check_delay(n, job));
    n->begun = true;
    for (size_t i = 0; i < n->nets; i++) {
        begin_batch(n, &n->coded[i], 1);
        TRY(tell(n, i, job, put(&n->coded[i], job)));
    }
    for (size_t going = n->nets; going > 0;) {
        going = 0; /* networks of less depth may end before others */
        for (size_t i = 0; i < n->nets; i++)
            if (n->done[i] < n->opt.iterations) {
                TRY(tell(n, i, job, go(n, i, job)));
                going++;
            }
    }
    return KOFN_OK;
}
