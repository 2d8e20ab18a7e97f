/* train_rig.h -- shared by tests of networks: labelled points, a training with
 * workers, and a plain training. */
#ifndef KF_TEST_TRAIN_RIG_H
#define KF_TEST_TRAIN_RIG_H

#include "rig.h"

#include "learn/net.h"

#include <kofn/train.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* Images of `side` x `side` pixels from 0 to 1. Each class has one pattern,
 * moved by up to one pixel, with random strength and noise. */
typedef struct digits {
    kofn_matrix X, y;
} digits;

static inline double pattern(size_t label, size_t i, size_t j, size_t side)
{
    double a = 0.7 + 0.6 * (double)label, x = (double)i / (double)side - 0.5,
           y = (double)j / (double)side - 0.5;

    return 0.5 + 0.5 * sin(6 * (x * cos(a) + y * sin(a)) + (double)label) *
                     cos(5 * (y * cos(2 * a) - x * sin(3 * a)));
}

static inline digits make_digits(size_t m, size_t side, size_t classes,
                                 uint64_t seed)
{
    digits d = {
        {numbers(m * side * side, 8), m, side * side, side * side, KOFN_F64},
        {numbers(m, 8), m, 1, 1, KOFN_F64}};
    kf_rng r = kf_rng_stream(seed, KF_FOR_DATA, 3, 0);

    for (size_t k = 0; k < m; k++) {
        size_t label = (size_t)kf_rng_below(&r, classes);
        size_t down = (size_t)kf_rng_below(&r, 3),
               right = (size_t)kf_rng_below(&r, 3);
        double strength = 0.5 + kf_rng_uniform(&r) / 2;

        ((double *)d.y.data)[k] = (double)label;
        for (size_t i = 0; i < side; i++)
            for (size_t j = 0; j < side; j++)
                ((double *)d.X.data)[(k * side + i) * side + j] =
                    strength * pattern(label, i + down, j + right, side) +
                    0.15 * kf_rng_normal(&r);
    }
    return d;
}

static inline void digits_free(digits *d)
{
    kf_free(d->X.data);
    kf_free(d->y.data);
}

static inline kofn_net *make_net(const kofn_net_shape *shape)
{
    kofn_net *net;

    assert_ok(kofn_net_new(&net, shape, 7));
    return net;
}

/* ||a - b|| / ||b|| over all weights. */
static inline double apart(const kofn_net *a, const kofn_net *b)
{
    double *x = numbers(a->total, 8), *y = numbers(a->total, 8), e;

    kf_net_read(a, x);
    kf_net_read(b, y);
    e = relative_error(x, y, a->total);
    kf_free(x);
    kf_free(y);
    return e;
}

typedef struct worker_setup {
    const char *spec;
    size_t workers;
    bool sim;
    const kofn_faults *faults;
    const kofn_options *opt;
} worker_setup;

/* Trains with workers. Returns the status, and the result in `res`. */
static inline kofn_status train_with(const worker_setup *c, kofn_net *net,
                                     const kofn_matrix *X, const kofn_matrix *y,
                                     const kofn_train_options *o,
                                     kofn_train_result *res)
{
    kofn_training *t;
    kofn_problem pb = {.size = sizeof pb};
    kofn_plan *plan;
    kofn_port *port;
    kofn_job *job;
    kofn_status st;

    assert_ok(kofn_training_new(&t, net, X, y, o));
    assert_ok(kofn_training_problem(t, &pb));
    assert_ok(kofn_plan_new(&plan, &pb, c->spec, c->workers, 3));
    assert_ok(c->sim ? kofn_port_sim(&port, c->workers, c->faults)
                     : kofn_port_threads(&port, c->workers, c->faults));
    assert_ok(kofn_open(&job, plan, port, c->opt));
    assert_ok(kofn_training_place(t, job));
    st = kofn_train(t, res);
    kofn_close(job);
    kofn_plan_free(plan);
    kofn_training_free(t);
    return st;
}

static inline void train_plain(kofn_net *net, const kofn_matrix *X,
                               const kofn_matrix *y,
                               const kofn_train_options *o,
                               kofn_train_result *res)
{
    kofn_training *t;

    assert_ok(kofn_training_new(&t, net, X, y, o));
    assert_ok(kofn_train_plain(t, res));
    kofn_training_free(t);
}

/* Records the accuracy of every step. */
typedef struct accuracy_log {
    double of[100];
    unsigned steps;
} accuracy_log;

static inline int keep_accuracy(void *ud, const kofn_train_step *now,
                                const kofn_report *rep)
{
    accuracy_log *m = ud;

    if (rep)
        m->of[m->steps = now->step] = now->accuracy;
    return 0;
}

/* Records the weights of every step. Stops the training as soon as a round
 * waits. */
typedef struct weights_log {
    double *w[100];
    size_t n;
} weights_log;

static inline int stop_on_wait(void *ud, const kofn_train_step *now,
                               const kofn_report *rep)
{
    weights_log *i = ud;

    if (rep && now->state) {
        i->w[now->step] = numbers(i->n, 8);
        memcpy(i->w[now->step], now->state, i->n * sizeof(double));
    }
    return !rep;
}

/* Fails unless the network has the weights of the plain training after `steps`
 * steps. */
static inline void assert_steps(const kofn_net *net, unsigned steps,
                                const kofn_net_shape *s, const kofn_matrix *X,
                                const kofn_matrix *y,
                                const kofn_train_options *opt, double bound)
{
    kofn_net *plain = make_net(s);
    kofn_train_options o = *opt;
    weights_log all = {.n = plain->total};

    o.watch = stop_on_wait;
    o.watch_ud = &all;
    all.w[0] = numbers(all.n, 8);
    kf_net_read(plain, all.w[0]);
    train_plain(plain, X, y, &o, NULL);
    kf_net_write(plain, all.w[steps]);
    assert_at_most(apart(net, plain), bound);
    for (size_t i = 0; i < COUNT(all.w); i++)
        kf_free(all.w[i]);
    kofn_net_free(plain);
}

#endif
