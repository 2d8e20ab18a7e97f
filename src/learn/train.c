/* train.c -- training steps: a gradient of a batch, from workers or from this
 * thread, and the update of the weights (math/training.md 5 and 6).
 *
 * A training borrows the network, the points and the job. It owns velocities,
 * batches and scratch. Without a job every step runs on this thread. */
#include "audit.h"
#include "coded.h"
#include "options.h"
#include "training.h"
#include "watch.h"

#include "base/report.h"
#include "mat/mat.h"

#include <math.h>
#include <stdio.h>

/* A running training. */
typedef struct run {
    kofn_training *t;
    bool plain,
        some; /* runs on this thread; the last sum covered some points only */
    kofn_train_step now;
    kofn_report sum, all;
    void *memory; /* holds the vectors below */
    double *in, *out, *means;
    double *state;   /* weights and velocities */
    unsigned done;   /* steps before this start */
    kf_coded *coded; /* the workers hold the weights; NULL: they do not */
    bool fetched;    /* c->net has the workers' weights */
} run;

/* ---- options ------------------------------------------------------------- */

static kofn_status with_defaults(kofn_train_options *o,
                                 const kofn_train_options *opt)
{
    *o = (kofn_train_options)KOFN_TRAIN_OPTIONS_INIT;
    TRY(kf_given(o, sizeof *o, opt, "KOFN_TRAIN_OPTIONS_INIT"));
    return kf_learn_settle(KOFN_TABLE_TRAIN, o);
}

size_t kf_training_steps(const kofn_training *t)
{
    return kf_ceil_div(t->points.rows, t->opt.batch);
}

static kofn_status check_options(const kofn_training *t)
{
    const kofn_train_options *o = &t->opt;

    if (o->nesterov && o->momentum == 0)
        return kf_fail(KOFN_INVAL, "Nesterov's steps need a momentum");
    if (kf_training_steps(t) > UINT32_MAX / o->epochs)
        return kf_fail(KOFN_INVAL,
                       "%u epochs of %zu steps are more than can be counted",
                       o->epochs, kf_training_steps(t));
    if (!o->test_X)
        return KOFN_OK;
    TRY(kf_net_check_points(t->net, o->test_X, "the held-out X"));
    return kf_net_check_targets(t->net, o->test_X->rows,
                                t->net->shape.autoencoder ? NULL : o->test_y,
                                "the held-out y", &(bool){false});
}

/* ---- points -------------------------------------------------------------- */

/* Appends targets of more than one number to each point's row. */
static kofn_status widen(kofn_training *t, const kofn_matrix *y)
{
    const kofn_matrix X = t->points;
    size_t cols = kf_train_columns(t->net, t->classes);
    kofn_matrix behind;

    if (cols == X.cols)
        return KOFN_OK;
    TRY(kf_mat_new(&t->points, X.rows, cols, KOFN_F64));
    t->wide = t->points.data;
    behind = t->points;
    behind.data = kf_at(&t->points, 0, X.cols);
    kf_mat_copy(&X, &t->points);
    kf_mat_copy(y, &behind);
    return KOFN_OK;
}

static kofn_status fill(kofn_training *t, const kofn_matrix *X,
                        const kofn_matrix *y)
{
    TRY(kf_net_check_points(t->net, X, "X"));
    TRY(kf_net_check_targets(t->net, X->rows, y, "y", &t->classes));
    t->points = *X;
    TRY(check_options(t));
    TRY_ZERO(t->y, X->rows);
    for (size_t i = 0; i < X->rows && y && y->cols == 1; i++)
        t->y[i] = *(double *)kf_at(y, i, 0);
    return widen(t, y);
}

kofn_status kofn_training_new(kofn_training **out, kofn_net *net,
                              const kofn_matrix *X, const kofn_matrix *y,
                              const kofn_train_options *opt)
{
    kofn_training *t;
    kofn_status st;

    *out = NULL;
    TRY_ZERO(t, 1);
    t->net = net;
    st = with_defaults(&t->opt, opt);
    if (!st)
        st = fill(t, X, y);
    if (st) {
        kofn_training_free(t);
        return st;
    }
    *out = t;
    return KOFN_OK;
}

void kofn_training_free(kofn_training *t)
{
    if (!t)
        return;
    kf_free(t->wide);
    kf_free(t->y);
    kofn_net_free(t->placed);
    kf_free(t);
}

size_t kofn_training_size(const kofn_training *t)
{
    return t->net->total;
}

kofn_status kofn_training_problem(const kofn_training *t, kofn_problem *pb)
{
    const kofn_problem of =
        KOFN_PROBLEM_INIT(KOFN_SUM, t->net->total + KF_SUM_EXTRA,
                          kf_train_input(t->net), 1, KOFN_F64, false);

    TRY(kf_begun(pb, "KOFN_PROBLEM_INIT"));
    kf_give(pb, &of, sizeof of);
    return KOFN_OK;
}

const char *kofn_training_scheme(const kofn_training *t, size_t workers,
                                 bool mesh, char *out, size_t size)
{
    (void)t;
    snprintf(out, size, "%s",
             mesh          ? "gpd"
             : workers < 2 ? "uncoded"
                           : "gc:d=2");
    return out;
}

static const kofn_formula *formula(void)
{
    const kofn_formula *f = kofn_formulas;

    while (f->f != kf_train_formula)
        f++;
    return f;
}

static kofn_status place_points(kofn_training *t, kofn_job *job)
{
    const double arg[KOFN_FORMULA_ARGS] = {0};
    double points = (double)kf_min(t->opt.batch, t->points.rows);

    TRY(kofn_place_rows(job, formula(), arg, &t->points, t->y));
    t->job = job;
    return kofn_parts_work(job, 3 * points * (double)t->net->total);
}

/* ---- weights at the workers ---------------------------------------------- */

size_t kf_training_room(const kofn_training *t)
{
    return kf_min(t->opt.batch, t->points.rows);
}

kofn_status kofn_training_plans(const kofn_training *t, const char *spec,
                                size_t workers, uint64_t seed, kofn_plan **plan)
{
    return kf_coded_plans(t->net, kf_training_room(t), spec, workers, seed,
                          plan);
}

/* Places the weights at the workers. Blocks may point into what is placed, and
 * fetching overwrites the net's own weights; so a copy is placed. */
static kofn_status place_weights(kofn_training *t, kofn_job *job)
{
    const kofn_train_step *before = t->opt.resume;

    if (before && before->step)
        kf_net_write(t->net, before->state);
    kofn_net_free(t->placed);
    TRY(kf_net_copy(&t->placed, t->net));
    for (size_t l = 0; l < t->net->shape.layers; l++)
        TRY(kofn_place_at(job, l, KOFN_DENSE(&t->placed->W[l])));
    t->job = job;
    return KOFN_OK;
}

kofn_status kofn_training_place(kofn_training *t, kofn_job *job)
{
    kofn_plan_info info = KOFN_PLAN_INFO_INIT;

    TRY(kofn_plan_describe(kofn_job_plan(job), false, &info));
    return info.parts ? place_points(t, job) : place_weights(t, job);
}

/* ---- a batch ------------------------------------------------------------- */

kf_batch kf_training_batch(const kofn_training *t, uint64_t step)
{
    size_t each = kf_training_steps(t), at = step % each;

    return (kf_batch){.seed = t->opt.seed,
                      .epoch = step / each,
                      .points = t->points.rows,
                      .from = at * t->opt.batch,
                      .to = kf_min((at + 1) * t->opt.batch, t->points.rows)};
}

void kf_training_put(const kofn_training *t, const kf_batch *b, kf_passes *p)
{
    size_t inputs = t->net->widths[0];

    kf_passes_begin(p);
    for (size_t i = b->from; i < b->to; i++) {
        size_t k = kf_order_at(b->seed, b->epoch, i, b->points);
        const double *x = kf_at(&t->points, k, 0);

        kf_passes_put(p, x, t->points.cols > inputs ? x + inputs : t->y + k);
    }
}

kofn_status kf_training_change(const kofn_training *t, kofn_change *out)
{
    const kofn_train_options *o = &t->opt;

    *out = (kofn_change)KOFN_CHANGE_INIT;
    return kofn_change_sgd(out, o->step, o->l2, o->momentum, o->nesterov);
}

static int look(void *ud)
{
    const run *r = ud;

    return r->t->opt.watch(r->t->opt.watch_ud, &r->now, NULL);
}

/* Runs one round of the job. */
static kofn_status sum_round(run *r, const kf_batch *batch)
{
    const kofn_training *t = r->t;
    size_t n = kf_train_input(t->net), m = t->net->total + KF_SUM_EXTRA;
    kofn_matrix in = {r->in, n, 1, 1, KOFN_F64};
    kofn_matrix out = {r->out, m, 1, 1, KOFN_F64};
    kofn_report rep = KOFN_REPORT_INIT;
    kofn_status st;

    kf_train_ask(t->net, t->classes, batch, r->means, r->in);
    st = kf_learn_round(t->job, false, &in, &out,
                        (kf_look){t->opt.watch ? look : NULL, r}, &rep);
    if (st < 0 || st == KOFN_AGAIN)
        return st;
    if (rep.ages)
        return kf_fail(KOFN_UNSUITED,
                       "a scheme that remembers gradients goes with descents "
                       "over all points, not with batches; use another");
    r->some = st == KOFN_PARTIAL;
    r->now.partial |= r->some;
    kf_report_add(&r->sum, &rep);
    return KOFN_OK;
}

static const char *remedy(const run *r)
{
    return kf_learn_remedy(r->plain ? NULL : r->t->job, r->now.step > 1);
}

static kofn_status not_finite(const run *r)
{
    return kf_fail(KOFN_NONFINITE, "step %u: the gradient is not finite; %s",
                   r->now.step, remedy(r));
}

/* Computes the wanted sum over all points, into r->out. */
static kofn_status sum(run *r, const kf_batch *batch)
{
    const kofn_training *t = r->t;
    const kofn_rows all = {t->points, t->y, 0};
    size_t m = t->net->total + KF_SUM_EXTRA;
    kofn_status st = r->plain ? kf_train_part(t->net, t->classes, batch,
                                              r->means, &all, r->out)
                              : sum_round(r, batch);

    if (st == KOFN_NONFINITE ||
        (st == KOFN_OK && kf_mat_first_odd(r->out, m, KOFN_F64) < m))
        return not_finite(r);
    TRY(st);
    if (!r->some && fabs(r->out[m - 1] - 1) > 1e-3)
        return kf_fail(KOFN_NONFINITE,
                       "step %u: the gradient is so large that rounding hides "
                       "its small parts; %s",
                       r->now.step, remedy(r));
    return r->out[m - 1] > 1e-9
               ? KOFN_OK
               : kf_fail(KOFN_TOOFEW,
                         "step %u: none of the batch's points are with the "
                         "workers that answered",
                         r->now.step);
}

/* Computes the gradient into r->out, and takes the costs out of it. */
static kofn_status gradient(run *r, kf_batch batch)
{
    const kofn_training *t = r->t;
    size_t total = t->net->total, n = kf_passes_means(t->net);
    double share, *extra = r->out + total;
    double points = (double)(batch.to - batch.from);

    if (n) {
        batch.means = true;
        TRY(sum(r, &batch));
        share = r->some ? extra[2] : 1;
        for (size_t j = 0; j < n; j++)
            r->means[j] = r->out[j] / share;
        batch.means = false;
    }
    TRY(sum(r, &batch));
    share = r->some ? extra[2] : 1;
    for (size_t i = 0; i < total && r->some; i++)
        r->out[i] /= share;
    r->now.loss = extra[0] / share + kf_passes_penalty(t->net, r->means);
    r->now.accuracy = t->classes ? extra[1] / share : (double)NAN;
    if (t->classes && !r->some) /* there `right` is a count */
        r->now.accuracy = round(extra[1] * points) / points;
    return KOFN_OK;
}

/* ---- a step -------------------------------------------------------------- */

static void move(run *r)
{
    const kofn_train_options *o = &r->t->opt;
    size_t n = r->t->net->total;
    double *w = r->state, *velocity = r->state + n;

    for (size_t i = 0; i < n; i++) {
        double g = r->out[i] + o->l2 * w[i];

        velocity[i] = o->momentum * velocity[i] + g;
        w[i] -= o->step *
                (o->nesterov ? g + o->momentum * velocity[i] : velocity[i]);
    }
    kf_net_write(r->t->net, w);
    kf_net_read(r->t->net, w); /* as rounded to the network's type */
}

/* Fetches the workers' weights into the net and the state. */
static kofn_status fetch(run *r)
{
    if (!r->coded || r->fetched)
        return KOFN_OK;
    if (r->coded->midway) /* a worker may hang; do not wait for it */
        return kf_fail(KOFN_STATE, "a round is under way; the state is asked "
                                   "for after a step");
    TRY(kf_coded_fetch(r->coded));
    kf_net_read(r->t->net, r->state);
    r->fetched = true;
    if (r->t->opt.momentum == 0)
        r->now.state = r->state;
    return KOFN_OK;
}

static kofn_status coded_step(run *r, const kf_batch *b)
{
    const kofn_training *t = r->t;
    kofn_change change;
    double right;
    kofn_status st;

    TRY(kf_training_change(t, &change));
    kf_training_put(t, b, &r->coded->p);
    st = kf_coded_step(r->coded, &change, &r->now.loss, &right);
    if (st == KOFN_NONFINITE)
        return not_finite(r);
    TRY(st);
    r->now.accuracy =
        t->classes ? right / (double)(b->to - b->from) : (double)NAN;
    r->now.state = NULL;
    r->fetched = false;
    return t->opt.scrub && r->now.step % t->opt.scrub == 0
               ? kf_coded_scrub(r->coded)
               : KOFN_OK;
}

static kofn_status test(run *r)
{
    const kofn_train_options *o = &r->t->opt;
    kofn_score score;

    r->now.test_loss = r->now.test_accuracy = NAN;
    if (!o->test_X || r->now.step % kf_training_steps(r->t))
        return KOFN_OK;
    TRY(fetch(r));
    TRY(kofn_net_score(r->t->net, o->test_X,
                       r->t->net->shape.autoencoder ? NULL : o->test_y,
                       &score));
    r->now.test_loss = score.loss;
    r->now.test_accuracy = score.accuracy;
    return KOFN_OK;
}

static kofn_status step(run *r)
{
    const kofn_training *t = r->t;
    kf_batch batch = kf_training_batch(t, r->now.step - 1);

    r->now.epoch = (unsigned)batch.epoch + 1;
    if (!r->plain)
        TRY(kofn_step(t->job, r->now.step - r->done));
    TRY(r->coded ? coded_step(r, &batch) : gradient(r, batch));
    if (!r->coded)
        move(r);
    return test(r);
}

/* Takes one step, and lets the audit judge it. */
static kofn_status take_step(run *r, kf_audit *a)
{
    const kofn_train_options *o = &r->t->opt;
    unsigned t = ++r->now.step;
    kf_audit_move to;
    kofn_status st = kf_audit_before(a, t, t == r->now.steps);

    if (!st)
        st = step(r);
    TRY(kf_audit_after(a, t, &r->sum, false, &st, &to));
    if (to == KF_AUDIT_BACK)
        kf_net_write(r->t->net, r->state);
    else if (st)
        r->now.step--;
    else if (o->watch && o->watch(o->watch_ud, &r->now, &r->sum))
        st = KOFN_AGAIN;
    return st;
}

static kofn_status go(run *r)
{
    kf_audit_part state[KF_AUDIT_PARTS] = {
        {&r->now, sizeof r->now},
        {r->state, 2 * r->t->net->total * sizeof *r->state}};
    kf_audit a;
    kofn_status st = kf_audit_begin(&a, r->plain || r->coded ? NULL : r->t->job,
                                    state, &r->now.loss);

    while (!st && r->now.step < r->now.steps) {
        st = take_step(r, &a);
        kf_learn_add_up(&r->all, &r->sum);
    }
    kf_audit_free(&a);
    return st ? st : r->now.partial ? KOFN_PARTIAL : KOFN_OK;
}

/* ---- the run ------------------------------------------------------------- */

static kofn_status run_new(run *r)
{
    const kofn_training *t = r->t;
    size_t n = t->net->total, means = kf_passes_means(t->net);
    size_t asked = kf_train_input(t->net);
    const kofn_train_step *before = r->plain ? NULL : t->opt.resume;

    r->memory = kf_zero(3 * n + KF_SUM_EXTRA + means + asked, sizeof *r->state);
    if (!r->memory)
        return KOFN_NOMEM;
    r->state = r->memory;
    r->out = r->state + 2 * n;
    r->means = r->out + n + KF_SUM_EXTRA;
    r->in = r->means + means;
    if (before && before->step) {
        r->now = *before;
        r->done = before->step;
        memcpy(r->state, before->state, 2 * n * sizeof *r->state);
        kf_net_write(t->net, r->state);
    }
    kf_net_read(t->net, r->state);
    r->now.state = r->state;
    r->now.steps = (unsigned)kf_training_steps(t) * t->opt.epochs;
    return KOFN_OK;
}

/* Fetches the weights after the last step, if enough workers are there. A
 * training that failed keeps its first error. */
static kofn_status fetch_last(run *r, kofn_status st)
{
    kofn_status got;
    char why[400];

    snprintf(why, sizeof why, "%s", kofn_errmsg());
    got = fetch(r);
    if (st == KOFN_OK)
        return got;
    return st < 0 ? kf_fail(st, "%s", why) : st;
}

static kofn_status go_coded(run *r)
{
    kf_coded c;
    kofn_status st = kf_coded_new(&c, r->t->net, r->t->classes,
                                  kf_training_room(r->t), r->t->job);

    r->coded = &c;
    r->fetched = true;
    c.sum = &r->sum;
    c.look = (kf_look){r->t->opt.watch ? look : NULL, r};
    if (!st && r->done && r->t->opt.momentum > 0)
        st = kf_coded_move(&c, r->state + r->t->net->total);
    if (!st)
        st = fetch_last(r, go(r));
    kf_learn_add_up(&r->all, &r->sum);
    kf_coded_free(&c);
    return st;
}

static kofn_status train(run r, kofn_train_result *res)
{
    kofn_status st = kf_begun(res, "KOFN_TRAIN_RESULT_INIT");
    kofn_train_result all;

    TRY(st);
    st = run_new(&r);
    r.t->run = &r;
    if (!st)
        st = !r.plain && r.t->placed ? go_coded(&r) : go(&r);
    r.t->run = NULL;
    all = (kofn_train_result){
        sizeof all,      r.now.step,          r.now.loss, r.now.accuracy,
        r.now.test_loss, r.now.test_accuracy, r.all};
    kf_give(res, &all, sizeof all);
    kf_free(r.memory);
    return st;
}

kofn_status kofn_train(kofn_training *t, kofn_train_result *res)
{
    if (!t->job)
        return kf_fail(KOFN_STATE, "no worker has the points; call "
                                   "kofn_training_place");
    if (t->opt.scrub && !t->placed)
        return kf_fail(KOFN_UNSUITED,
                       "only coded weights at the workers can be scrubbed "
                       "(kofn_training_plans)");
    return train((run){.t = t}, res);
}

kofn_status kofn_train_plain(kofn_training *t, kofn_train_result *res)
{
    return train((run){.t = t, .plain = true}, res);
}

kofn_status kofn_training_state(kofn_training *t, const double **state)
{
    run *r = t->run;

    *state = NULL;
    if (!r)
        return kf_fail(KOFN_STATE,
                       "there is no training under way; its state is "
                       "asked for from its watch");
    TRY(fetch(r));
    if (r->coded && !r->now.state)
        TRY(kf_coded_fetch_velocities(r->coded, r->state + t->net->total));
    *state = r->now.state = r->state;
    return KOFN_OK;
}
