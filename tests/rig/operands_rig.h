/* operands_rig.h -- a job of several resident operands, and their right
 * values. */
#ifndef KF_TEST_OPERANDS_RIG_H
#define KF_TEST_OPERANDS_RIG_H

#include "rig.h"

#include "cli/replay.h" /* a part of the command, linked with the tests */

#define OPERANDS 3
#define BATCH 5

/* Layer o maps `wide[o]` numbers to `wide[o + 1]`: rows times columns. */
static const size_t held_wide[OPERANDS + 1] = {29, 37, 18, 23};

typedef struct held {
    const char *spec;
    size_t workers;
    bool threads, one_sided; /* one_sided: no left products */
    kofn_port *port;         /* NULL: threads or the simulator */
    kofn_dtype dtype;
    const kofn_faults *faults;
    kofn_plan *plan[OPERANDS];
    kofn_matrix A[OPERANDS];  /* the placed operands ... */
    kofn_matrix is[OPERANDS]; /* ... and their present values */
    kofn_matrix in[OPERANDS]; /* inputs of products from the right ... */
    kofn_matrix out[OPERANDS];
    kofn_matrix from[OPERANDS]; /* ... and from the left */
    kofn_matrix to[OPERANDS];
    kofn_job *job;
} held;

static inline int held_by_round(const void *a, const void *b)
{
    const kofn_fault_event *x = a, *y = b;
    double p = x->round + x->fraction, q = y->round + y->fraction;

    return p < q ? -1 : p > q ? 1 : (int)x->worker - (int)y->worker;
}

static inline void held_plans(held *h)
{
    for (size_t o = 0; o < OPERANDS; o++) {
        size_t m = held_wide[o + 1], n = held_wide[o];
        kofn_problem pb =
            KOFN_PROBLEM_INIT(KOFN_MATMUL, m, n, BATCH, h->dtype, false);

        assert_ok(kofn_plan_new(&h->plan[o], &pb, h->spec, h->workers, 5));
        if (!h->one_sided)
            assert_ok(kofn_plan_serve_left(h->plan[o], BATCH));
        h->A[o] = random_matrix(m, n, h->dtype, 10 + o);
        h->is[o] = random_matrix(m, n, h->dtype, 10 + o);
        h->in[o] = random_matrix(n, BATCH, h->dtype, 20 + o);
        h->out[o] = random_matrix(m, BATCH, h->dtype, 30 + o);
        h->from[o] = random_matrix(BATCH, m, h->dtype, 40 + o);
        h->to[o] = random_matrix(BATCH, n, h->dtype, 50 + o);
    }
}

static inline void held_open(held *h, const kofn_options *opt)
{
    const kofn_plan *plans[OPERANDS];
    kofn_options exact = KOFN_OPTIONS_INIT;
    kofn_port *port;

    held_plans(h);
    exact.late = -1;
    for (size_t o = 0; o < OPERANDS; o++)
        plans[o] = h->plan[o];
    port = h->port;
    if (!port)
        assert_ok(h->threads ? kofn_port_threads(&port, h->workers, h->faults)
                             : kofn_port_sim(&port, h->workers, h->faults));
    assert_ok(
        kofn_open_all(&h->job, plans, OPERANDS, port, opt ? opt : &exact));
}

static inline void held_up(held *h, const kofn_options *opt)
{
    held_open(h, opt);
    for (size_t o = 0; o < OPERANDS; o++)
        assert_ok(kofn_place_at(h->job, o, KOFN_DENSE(&h->A[o])));
}

static inline void held_down(held *h)
{
    kofn_close(h->job);
    for (size_t o = 0; o < OPERANDS; o++) {
        kofn_plan_free(h->plan[o]);
        kf_free(h->A[o].data);
        kf_free(h->is[o].data);
        kf_free(h->in[o].data);
        kf_free(h->out[o].data);
        kf_free(h->from[o].data);
        kf_free(h->to[o].data);
    }
    *h = (held){.job = NULL};
}

static inline void held_replays(const char *path)
{
    replay_result res;
    FILE *f = fopen(path, "r");
    char *text;
    long n;
    int code;

    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    n = ftell(f);
    assert_true(n > 0);
    rewind(f);
    text = numbers((size_t)n, 1);
    assert_int_equal(fread(text, 1, (size_t)n, f), n);
    fclose(f);
    code = replay(text, (size_t)n, path, NULL, &res);
    if (code)
        fail_msg("%s", res.error);
    kf_free(text);
}

/* Returns ||got - a b||, relative to |a| |b|. */
static inline double held_error(const kofn_matrix *got, const kofn_matrix *a,
                                const kofn_matrix *b)
{
    double *want = plain_product(a, b), *y = as_doubles(got), top = 0;

    for (size_t i = 0; i < got->rows * got->cols; i++)
        top += (y[i] - want[i]) * (y[i] - want[i]);
    kf_free(want);
    kf_free(y);
    return sqrt(top) / (rig_norm(a) * rig_norm(b));
}

static inline void held_spoil(kofn_matrix *a)
{
    memset(a->data, 0xff, a->rows * a->cols * (a->dtype == KOFN_F64 ? 8 : 4));
}

static inline void held_right(held *h, size_t o, double most)
{
    held_spoil(&h->out[o]);
    assert_ok(kofn_put_at(h->job, o, false, &h->in[o], &h->out[o], NULL));
    assert_ok(kofn_take(h->job, 0, KOFN_NEVER, NULL));
    assert_at_most(held_error(&h->out[o], &h->is[o], &h->in[o]), most);
}

static inline void held_left(held *h, size_t o, double most)
{
    held_spoil(&h->to[o]);
    assert_ok(kofn_put_at(h->job, o, true, &h->from[o], &h->to[o], NULL));
    assert_ok(kofn_take(h->job, 0, KOFN_NEVER, NULL));
    assert_at_most(held_error(&h->to[o], &h->from[o], &h->is[o]), most);
}

#endif
