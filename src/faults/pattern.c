/* pattern.c -- which worker is slow in which round: models of stragglers that
 * change over time, and the record of a run; math/stream_model.md 1.
 *
 * Draws depend on (seed, worker, round) alone, as in faults.c.  In a window
 * model the number of slow workers of a round depends on (seed, round).
 *
 * The caller frees the pattern by kofn_free.
 */
#include "faults.h"

#include "base/rng.h"
#include "io/io.h"

#include <assert.h>
#include <stdlib.h>

enum { UNIFORM, MAX, ONOFF, STICKY };

typedef struct numbers {
    double p, a, b, M, N, W, B, eps, style;
    double q, tail, rare, worst;          /* lambda */
    double changes, present, hour, group; /* spot   */
} numbers;

typedef struct maker {
    const struct model *model;
    numbers x;
    size_t workers, rounds;
    double *slow; /* rounds x workers: 0 or 1 until all is drawn, or
                     slowdowns if the model draws them */
    uint64_t seed;
} maker;

/* ---- each by itself ------------------------------------------------------ */

static double *at(const maker *k, size_t t, size_t w)
{
    assert(t < k->rounds);
    assert(w < k->workers);
    return &k->slow[t * k->workers + w];
}

/* Rounds count from 0 here, from 1 in the names of streams. */
static kf_rng dice_of(const maker *k, size_t t, size_t w)
{
    return kf_rng_stream(k->seed, KF_FOR_PATTERN, (uint32_t)w,
                         (uint32_t)(t + 1));
}

static kofn_status make_iid(const maker *k)
{
    for (size_t t = 0; t < k->rounds; t++)
        for (size_t w = 0; w < k->workers; w++) {
            kf_rng r = dice_of(k, t, w);

            *at(k, t, w) = kf_rng_uniform(&r) < k->x.p;
        }
    return KOFN_OK;
}

/* Draws a chain of states 0..M; 0 is the good state. */
static kofn_status make_fritchman(const maker *k)
{
    for (size_t w = 0; w < k->workers; w++) {
        double state = 0;

        for (size_t t = 0; t < k->rounds; t++) {
            kf_rng r = dice_of(k, t, w);

            *at(k, t, w) = state > 0;
            if (kf_rng_uniform(&r) < (state > 0 ? k->x.b : k->x.a))
                state = state < k->x.M ? state + 1 : 0;
        }
    }
    return KOFN_OK;
}

/* ---- after traces -------------------------------------------------------- */

/* The defaults of lambda are statistics of 256 cloud functions, probably those
 * of Krishnan, Ebrahimi and Khisti (ICLR 2023).  Those of spot are statistics
 * of fleets of 16 machines by Wu et al. (NSDI 2024).  docs/stragglers.md says
 * what is published and what is assumed. */

#define ABOVE 1.5 /* lambda: p and q count the workers above this slowdown */

/* Returns the slowdown that a worker exceeds with chance u.  It exceeds ABOVE
 * with chance `share`, and nothing below the median, which is 1. */
static double exceeded(double share, double tail, double u)
{
    assert(share > 0 && share < 0.5);
    assert(u > 0);
    if (u >= 0.5)
        return 1;
    if (u >= share)
        return 1 + (ABOVE - 1) * log(0.5 / u) / log(0.5 / share);
    return ABOVE * pow(share / u, 1 / tail);
}

/* Draws slowdowns as of cloud functions.  A round has its own share of slow
 * workers, from p to q.  An accident, with chance `rare`, has any size. */
static kofn_status make_lambda(const maker *k)
{
    const numbers *x = &k->x;

    for (size_t t = 0; t < k->rounds; t++) {
        kf_rng of_round = dice_of(k, t, UINT32_MAX);
        double share = x->p * pow(x->q / x->p, kf_rng_uniform(&of_round));

        for (size_t w = 0; w < k->workers; w++) {
            kf_rng r = dice_of(k, t, w);
            double f = exceeded(share, x->tail, 1 - kf_rng_uniform(&r));

            if (kf_rng_uniform(&r) < x->rare)
                f = ABOVE * pow(x->worst / ABOVE, kf_rng_uniform(&r));
            *at(k, t, w) = fmin(f, x->worst);
        }
    }
    return KOFN_OK;
}

/* Returns the chance that a group of `spot` changes between two rounds, in the
 * long run. */
static double turnover(const maker *k)
{
    double groups = ceil((double)k->workers / k->x.group);

    return k->x.changes / k->x.hour / groups;
}

/* Draws workers that leave and come back, each group as one chain of two
 * states.  Half of the changes of a chain are departures.  The first round is
 * in equilibrium. */
static kofn_status make_spot(const maker *k)
{
    const numbers *x = &k->x;
    double half = turnover(k) / 2;

    for (size_t w = 0; w < k->workers; w++) {
        size_t group = w / (size_t)x->group;
        bool there = false;

        for (size_t t = 0; t < k->rounds; t++) {
            kf_rng r = dice_of(k, t, group);
            double u = kf_rng_uniform(&r);

            if (t == 0)
                there = u < x->present;
            else
                there = there ? u >= half / x->present
                              : u < half / (1 - x->present);
            *at(k, t, w) = there ? 1 : HUGE_VAL;
        }
    }
    return KOFN_OK;
}

/* ---- all together, within a window --------------------------------------- */

/* And not arbitrary, which has no B? */
static bool is_bursty(const maker *k)
{
    return k->x.B > 0;
}

typedef struct lot {
    double key; /* workers are tried in the order of their keys */
    size_t worker;
} lot;

typedef struct window {
    const maker *k;
    lot *lot;
    size_t *first; /* bursty, per worker: when it first was slow in this window;
                      the round that is drawn: not before                   */
    size_t used;   /* arbitrary: marks in this window, before that round */
    size_t t, room; /* for marks, or for more workers                     */
    bool bursty;
} window;

static int by_key(const void *a, const void *b)
{
    const lot *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->worker > y->worker) - (x->worker < y->worker);
}

/* Puts workers in random order.  In one style, those slow in the round before
 * come first. */
static void cast_lots(window *v)
{
    const maker *k = v->k;

    assert(v->t < k->rounds);
    for (size_t w = 0; w < k->workers; w++) {
        kf_rng r = dice_of(k, v->t, w);
        bool again =
            k->x.style == STICKY && v->t > 0 && *at(k, v->t - 1, w) != 0;

        v->lot[w] = (lot){kf_rng_uniform(&r) - again, w};
    }
    qsort(v->lot, k->workers, sizeof *v->lot, by_key);
}

/* Finds what the window that ends now has room for. */
static void slide(window *v)
{
    const maker *k = v->k;
    size_t W = (size_t)k->x.W, from = v->t + 1 > W ? v->t + 1 - W : 0;

    if (!v->bursty) {
        for (size_t w = 0; from > 0 && w < k->workers; w++)
            v->used -= *at(k, from - 1, w) > 0;
        assert(v->used <= (size_t)k->x.N);
        v->room = (size_t)k->x.N - v->used;
        return;
    }
    v->room = (size_t)k->x.eps;
    for (size_t w = 0; w < k->workers; w++) {
        size_t *f = &v->first[w];

        while (*f < v->t && (*f < from || *at(k, *f, w) == 0))
            ++*f;
        v->room -= *f < v->t;
    }
}

/* May this worker be slow now? */
static bool may(const window *v, size_t worker)
{
    assert(worker < v->k->workers);
    if (!v->bursty || v->first[worker] == v->t)
        return v->room > 0;
    return v->t - v->first[worker] < (size_t)v->k->x.B;
}

/* Count those who may be, and mark them, `want` at most. */
static size_t mark(window *v, size_t want, bool really)
{
    size_t before = v->room, marked = 0;

    for (size_t i = 0; i < v->k->workers && marked < want; i++) {
        size_t w = v->lot[i].worker;

        if (!may(v, w))
            continue;
        v->room -= !v->bursty || v->first[w] == v->t;
        marked++;
        if (really)
            *at(v->k, v->t, w) = 1;
    }
    if (!really)
        v->room = before;
    return marked;
}

static size_t how_many(const window *v, size_t most)
{
    kf_rng r = dice_of(v->k, v->t, UINT32_MAX);

    if (v->k->x.style == MAX)
        return most;
    if (v->k->x.style == ONOFF)
        return kf_rng_below(&r, 2) ? most : 0;
    return kf_rng_below(&r, most + 1);
}

static kofn_status make_window(const maker *k)
{
    window v = {.k = k,
                .bursty = is_bursty(k),
                .lot = kf_new(k->workers, sizeof *v.lot),
                .first = kf_zero(k->workers, sizeof *v.first)};
    kofn_status st = v.lot && v.first ? KOFN_OK : KOFN_NOMEM;

    for (; v.t < k->rounds && !st; v.t++) {
        cast_lots(&v);
        slide(&v);
        v.used += mark(&v, how_many(&v, mark(&v, SIZE_MAX, false)), true);
    }
    kf_free(v.lot);
    kf_free(v.first);
    return st;
}

/* ---- what they take ------------------------------------------------------ */

typedef struct key {
    const char *model, *name;
    size_t offset;
    double least, most;
    bool whole;
    double otherwise; /* if it is not given; below 0: it must be given */
} key;

static const key keys[] = {
    {"iid", "p", offsetof(numbers, p), 0, 1, false, -1},
    {"fritchman", "a", offsetof(numbers, a), 0, 1, false, -1},
    {"fritchman", "b", offsetof(numbers, b), 0, 1, false, -1},
    {"fritchman", "M", offsetof(numbers, M), 1, 1e6, true, -1},
    {"arbitrary", "N", offsetof(numbers, N), 0, 1e9, true, -1},
    {"arbitrary", "W", offsetof(numbers, W), 1, 1e9, true, -1},
    {"bursty", "B", offsetof(numbers, B), 1, 1e9, true, -1},
    {"bursty", "W", offsetof(numbers, W), 1, 1e9, true, -1},
    {"bursty", "eps", offsetof(numbers, eps), 1, 1e9, true, -1},
    {"lambda", "p", offsetof(numbers, p), 1e-9, 0.49, false, 0.002},
    {"lambda", "q", offsetof(numbers, q), 1e-9, 0.49, false, 0.07},
    {"lambda", "tail", offsetof(numbers, tail), 0.1, 1e6, false, 8},
    {"lambda", "rare", offsetof(numbers, rare), 0, 1, false, 2e-5},
    {"lambda", "worst", offsetof(numbers, worst), ABOVE, 1e6, false, 24},
    {"spot", "changes", offsetof(numbers, changes), 0, 1e9, false, 0.6},
    {"spot", "present", offsetof(numbers, present), 0.01, 0.99, false,
     6.9 / 16},
    {"spot", "hour", offsetof(numbers, hour), 1e-6, 1e9, false, 12},
    {"spot", "group", offsetof(numbers, group), 1, 1e9, true, 1},
};
#define KEYS (sizeof keys / sizeof *keys)

static const char *const styles[] = {"uniform", "max", "onoff", "sticky"};

static const struct model {
    const char *name, *takes;
    kofn_status (*make)(const maker *k);
    bool slowdowns; /* draws them itself: the caller's factor is not used */
} models[] = {
    {"iid", "p", make_iid, false},
    {"fritchman", "a, b, M", make_fritchman, false},
    {"arbitrary", "N, W, style", make_window, false},
    {"bursty", "B, W, eps, style", make_window, false},
    {"lambda", "p, q, tail, rare, worst", make_lambda, true},
    {"spot", "changes, present, hour, group", make_spot, true},
};

static double *number(maker *k, const key *f)
{
    return (double *)(void *)((char *)&k->x + f->offset);
}

static kofn_status set_style(maker *k, const char *value, size_t n)
{
    for (int i = 0; i < 4; i++)
        if (kf_faults_is(styles[i], value, n)) {
            k->x.style = i;
            return KOFN_OK;
        }
    return kf_fail(KOFN_INVAL,
                   "pattern %s: style=%.*s is none of max, uniform, onoff, "
                   "sticky",
                   k->model->name, (int)kf_min(n, 40), value);
}

static kofn_status set_key(maker *k, const char *name, size_t length,
                           const char *value, size_t n)
{
    const key *f = keys;
    double x;

    if (k->model->make == make_window && kf_faults_is("style", name, length))
        return set_style(k, value, n);
    while (f < keys + KEYS && (strcmp(f->model, k->model->name) != 0 ||
                               !kf_faults_is(f->name, name, length)))
        f++;
    if (f == keys + KEYS)
        return kf_fail(KOFN_INVAL, "pattern %s has no \"%.*s\"; it takes %s",
                       k->model->name, (int)kf_min(length, 40), name,
                       k->model->takes);
    if (!kf_faults_number(value, n, &x))
        return kf_fail(KOFN_INVAL, "pattern %s: %s=%.*s is not a number",
                       k->model->name, f->name, (int)kf_min(n, 40), value);
    if (!(x >= f->least && x <= f->most) || (f->whole && floor(x) != x))
        return kf_fail(KOFN_INVAL,
                       "pattern %s: %s=%.*s is not a %snumber from %g to %g",
                       k->model->name, f->name, (int)n, value,
                       f->whole ? "whole " : "", f->least, f->most);
    *number(k, f) = x;
    return KOFN_OK;
}

/* Sets the numbers of all models to -1, and then those of this model to their
 * defaults, because models share some. */
static void set_defaults(maker *k)
{
    for (size_t i = 0; i < KEYS; i++)
        *number(k, &keys[i]) = -1;
    for (size_t i = 0; i < KEYS; i++)
        if (!strcmp(keys[i].model, k->model->name))
            *number(k, &keys[i]) = keys[i].otherwise;
}

static kofn_status parse(maker *k, const char *text)
{
    set_defaults(k);
    while (*text) {
        size_t n = strcspn(text, ","), name = strcspn(text, "=,");

        if (name == n)
            return kf_fail(KOFN_INVAL,
                           "pattern %s: \"%.*s\" is not of the form "
                           "key=value; it takes %s",
                           k->model->name, (int)kf_min(n, 40), text,
                           k->model->takes);
        TRY(set_key(k, text, name, text + name + 1, n - name - 1));
        text += n;
        text += *text == ',';
    }
    for (size_t i = 0; i < KEYS; i++)
        if (!strcmp(keys[i].model, k->model->name) && *number(k, &keys[i]) < 0)
            return kf_fail(KOFN_INVAL, "pattern %s needs %s; it takes %s",
                           k->model->name, keys[i].name, k->model->takes);
    return KOFN_OK;
}

/* Refuses a chain that would have to change more often than once a round. */
static kofn_status check_spot(const maker *k)
{
    const numbers *x = &k->x;
    double most = 2 * fmin(x->present, 1 - x->present);

    if (turnover(k) <= most)
        return KOFN_OK;
    return kf_fail(KOFN_INVAL,
                   "pattern spot: changes=%g an hour: with %zu workers in "
                   "groups of %g, hour=%g rounds and present=%g it is at most "
                   "%g",
                   x->changes, k->workers, x->group, x->hour, x->present,
                   x->changes * most / turnover(k));
}

static kofn_status check_window(const maker *k)
{
    const numbers *x = &k->x;

    if (!is_bursty(k) && x->N >= (double)k->workers * x->W)
        return kf_fail(KOFN_INVAL,
                       "pattern arbitrary: N=%g: with %zu workers and W=%g it "
                       "is at most %g, or no worker is ever in time",
                       x->N, k->workers, x->W, (double)k->workers * x->W - 1);
    if (is_bursty(k) && x->B >= x->W)
        return kf_fail(KOFN_INVAL, "pattern bursty: B=%g is not less than W=%g",
                       x->B, x->W);
    if (x->eps > (double)k->workers)
        return kf_fail(KOFN_INVAL,
                       "pattern bursty: eps=%g is more than the %zu workers",
                       x->eps, k->workers);
    return KOFN_OK;
}

/* Refuses keys that do not go with one another or with the number of
 * workers. */
static kofn_status check(const maker *k)
{
    const numbers *x = &k->x;

    if (k->model->make == make_window)
        return check_window(k);
    if (k->model->make == make_spot)
        return check_spot(k);
    if (k->model->make == make_lambda && x->p > x->q)
        return kf_fail(KOFN_INVAL, "pattern lambda: p=%g is more than q=%g",
                       x->p, x->q);
    return KOFN_OK;
}

/* ---- making one ---------------------------------------------------------- */

static kofn_status make(kofn_matrix *out, maker *k, double factor)
{
    size_t count;
    kofn_status st;

    if (!(factor > 1) || (isfinite(factor) && factor > 1e6))
        return kf_fail(KOFN_INVAL,
                       "factor = %g: give a number above 1, up to 1e6, or "
                       "infinity if workers are never to answer",
                       factor);
    if (k->workers < 1 || k->workers >= UINT32_MAX || k->rounds < 1 ||
        k->rounds >= UINT32_MAX || !kf_mul(k->workers, k->rounds, &count))
        return kf_fail(KOFN_INVAL,
                       "a pattern of %zu rounds and %zu workers: give at least "
                       "one of each, and fewer than 2^32",
                       k->rounds, k->workers);
    TRY(check(k));
    TRY_ZERO(k->slow, count);
    st = k->model->make(k);
    if (st) {
        kf_free(k->slow);
        return st;
    }
    for (size_t i = 0; i < count && !k->model->slowdowns; i++)
        k->slow[i] = k->slow[i] > 0 ? factor : 1;
    *out = (kofn_matrix){k->slow, k->rounds, k->workers, k->workers, KOFN_F64};
    return KOFN_OK;
}

static kofn_status copy(kofn_matrix *out, const kofn_matrix *a,
                        const char *path, size_t workers)
{
    double *x;

    if (!a)
        return kf_fail(
            KOFN_FORMAT,
            "%s: a pattern is a dense matrix with a row a round; give "
            "a .npy or .csv file",
            path);
    if (a->rows == 0 || a->cols < workers)
        return kf_fail(KOFN_SHAPE,
                       "%s: a pattern of %zu rounds and %zu workers, and there "
                       "are %zu; give fewer workers or another file",
                       path, a->rows, a->cols, workers);
    TRY_NEW(x, a->rows * a->cols);
    for (size_t i = 0; i < a->rows; i++)
        for (size_t j = 0; j < a->cols; j++) {
            double f = x[i * a->cols + j] = kf_mat_entry(a, i, j);

            if (f >= 0)
                continue;
            kf_free(x);
            return kf_fail(KOFN_FORMAT,
                           "%s: element [%zu, %zu] is %g; give the slowdown of "
                           "a worker, 0 or more",
                           path, i, j, f);
        }
    *out = (kofn_matrix){x, a->rows, a->cols, a->cols, KOFN_F64};
    return KOFN_OK;
}

static kofn_status read_file(kofn_matrix *out, const char *path, size_t workers)
{
    kofn_file *f;
    kofn_status st = kf_file_open_infinite(&f, path);

    if (st == KOFN_IO)
        return kf_fail_in(st,
                          "no pattern of this name (there are iid, "
                          "fritchman, arbitrary, bursty, lambda, spot), and no "
                          "file");
    TRY(st);
    st = copy(out, f->matrix.dense, path, workers);
    kofn_file_free(f);
    return st;
}

kofn_status kofn_pattern_new(kofn_matrix *out, const char *text, size_t workers,
                             size_t rounds, double factor, uint64_t seed)
{
    maker k = {.workers = workers, .rounds = rounds, .seed = seed};
    size_t n = strcspn(text, ":");

    *out = (kofn_matrix){NULL, 0, 0, 0, KOFN_F64};
    for (size_t i = 0; i < sizeof models / sizeof *models && !k.model; i++)
        if (kf_faults_is(models[i].name, text, n))
            k.model = &models[i];
    if (!k.model)
        return read_file(out, text, workers);
    TRY(parse(&k, text + n + (text[n] == ':')));
    return make(out, &k, factor);
}
