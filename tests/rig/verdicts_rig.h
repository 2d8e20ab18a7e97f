/* verdicts_rig.h -- a round of a code with some wrong workers, and its
 * verdict, in the steps of the coordinator. In every case no honest worker is
 * named. The distance of a delivered result from the result of honest workers
 * is below the floor. */
#ifndef KF_TEST_VERDICTS_RIG_H
#define KF_TEST_VERDICTS_RIG_H

#include "support.h"

#include "base/mix.h"
#include "base/rng.h"
#include "code/suspect.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST_NODES 18
/* One more answer is requested if more than this may be hidden, as in guard.c.
 */
#define HIDDEN_F64 1e-6
#define HIDDEN_F32 1e-2

typedef enum way {
    FLIP,
    EXPONENT,
    DENSE,
    CONSTANT,
    DOUBLED,
    STALE,
    ZEROS,
    SWAPPED,
    WAYS
} way;

static const char *const way_names[] = {"one flipped bit",
                                        "flipped exponent",
                                        "0.1 to 1e6 alarms",
                                        "the same constant",
                                        "scaled by two",
                                        "of the round before",
                                        "zeros",
                                        "two swapped"};

typedef enum mode { PROBABILISTIC, ADVERSARIAL, DETECT, MODES } mode;

static const char *const mode_names[] = {"probabilistic", "adversarial",
                                         "detect"};

/* Every scheme with redundancy. */
static const struct {
    const char *spec;
    size_t nodes;
    size_t every; /* rounds that are left out if they take long; prime to all
                     choices */
} codes[] = {
    {"mds:k=4", 9, 1},
    {"mds:k=9", 18, 17},
    {"mds:k=5,basis=harmonic", 9, 1},
    {"mds:k=9,basis=harmonic", 18, 5},
    {"mds:k=9,basis=gauss_sys", 18, 5},
    {"mds:k=5,basis=gauss", 10, 1},
    {"elastic:k=4", 8, 1},
    {"elastic:k=5,basis=gauss_sys", 10, 1},
    {"replication:k=2", 8, 1},
    {"replication:k=2", 15, 1},
    {"mds:k=1", 6, 1},
    {"product:m=2,m2=3,p=2,p2=3", 9, 5},
    {"polynomial:m=2,p=2", 9, 1},
    {"polynomial:m=2,p=2,basis=circle", 9, 1},
    {"matdot:n=3", 8, 1},
    {"matdot:n=2,angles=5", 12, 1},
    {"polydot:m=2,n=1,p=2", 8, 1},
    {"gpd:m=2,n=2,p=1", 10, 1},
    {"gpd:m=2,n=2,p=2", 14, 1},
    {"mds-published:k=5,basis=chebyshev", 9, 1},
    {"mds:k=5,basis=haar", 10, 1},
    {"polynomial:m=2,p=2,basis=chebyshev", 9, 1},
    {"matdot:n=3,basis=chebyshev", 8, 1},
    {"elastic:k=5,basis=harmonic", 10, 1},
    {"product:m=3,m2=4,p=2,p2=3", 12, 5},
};

#define CODES (sizeof codes / sizeof *codes)

static const size_t widths[] = {1, 2, 3, 4, 5, 6, 7, 8, 64};

#define WIDTHS (sizeof widths / sizeof *widths)

/* ---- a code and its round ------------------------------------------------ */

typedef struct code_case {
    kofn_plan *plan;
    kf_code *code;
    kf_cache *cache;
    size_t nodes, k, enough, components, rows, symbols;
    double *G; /* rows x symbols, in units of the weights */
    double weight[MOST_NODES];
    bool copies; /* some seats have the rows of others */
} code_case;

typedef struct trial {
    const code_case *f;
    kf_rng r;
    size_t columns, liars;
    way way;
    mode mode;
    bool wide; /* double precision */
    double *sent, *honest;
    bool lied[MOST_NODES];
    uint32_t liar[MOST_NODES];  /* the first `liars` are faulty */
    uint32_t order[MOST_NODES]; /* order in which answers come */
    double constant;
    uint64_t digest; /* of all verdicts; 0: not begun */
} trial;

typedef enum end { RIGHT, DECLARED, ENDS } end;

static inline void code_case_up(code_case *f, const char *spec, size_t nodes)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATMUL, 1000, 96, 1000, KOFN_F64, false);

    *f = (code_case){.nodes = nodes};
    assert_ok(kofn_plan_new(&f->plan, &pb, spec, nodes, 5));
    assert_ok(kf_code_new(&f->code, f->plan));
    kf_code_uneven(f->code);
    assert_ok(kf_cache_new(&f->cache, f->code, 100 << 20));
    f->k = f->plan->layout.threshold;
    f->enough = f->plan->layout.enough;
    f->copies = f->enough == 1 || f->k > f->enough;
    f->components = f->plan->layout.components;
    f->nodes /= f->plan->layout.groups;
    f->rows = f->nodes * f->components;
    f->symbols = f->plan->layout.symbols;
    f->G = kofn_layout_table(f->rows, f->symbols);
    assert_non_null(f->G);
    for (size_t r = 0; r < f->rows; r++) {
        const kf_row *g;
        const kf_seat *s;

        assert_ok(kf_code_seat(f->code, r / f->components, &s));
        f->weight[r / f->components] = s->weight;
        g = &s->G[r % f->components];
        for (size_t e = 0; e < g->n; e++)
            f->G[r * f->symbols + g->col[e]] = g->val[e] / s->weight;
    }
}

static inline void code_case_down(code_case *f)
{
    kf_free(f->G);
    kf_cache_free(f->cache);
    kf_code_free(f->code);
    kofn_plan_free(f->plan);
}

static inline double unit(const trial *t)
{
    return t->wide ? 0x1p-52 : 0x1p-23;
}

/* Returns the rounding of sums of about a hundred terms, as compare.c estimates
 * it. */
static inline double noise(const trial *t)
{
    return 1.5 * unit(t);
}

static inline double alarm_level(const trial *t)
{
    return (t->wide ? 64 : 6) * 1.8 * unit(t);
}

/* Rounds like a worker. */
static inline double rounded(const trial *t, double x)
{
    return t->wide ? x : (double)(float)x;
}

static inline void honest_results(trial *t, double *Y)
{
    const code_case *f = t->f;
    size_t m = t->columns;
    double *X = kf_new(f->symbols * m, sizeof *X);

    assert_non_null(X);
    for (size_t i = 0; i < f->symbols * m; i++)
        X[i] = 0.1 * kf_rng_normal(&t->r);
    for (size_t i = 0; i < f->rows; i++)
        for (size_t c = 0; c < m; c++) {
            double y = 0.5 * unit(t) * kf_rng_normal(&t->r);

            for (size_t s = 0; s < f->symbols; s++)
                y += f->G[i * f->symbols + s] * X[s * m + c];
            Y[i * m + c] = rounded(t, y);
        }
    kf_free(X);
}

static inline void shuffle(uint32_t *x, size_t n, kf_rng *r)
{
    for (uint32_t i = 0; i < n; i++)
        x[i] = i;
    for (size_t i = 0; i < n; i++) {
        size_t j = i + kf_rng_below(r, n - i);
        uint32_t t = x[i];

        x[i] = x[j];
        x[j] = t;
    }
}

/* ---- kinds of errors ----------------------------------------------------- */

static inline double flipped(trial *t, double x, size_t first, size_t bits)
{
    size_t bit = first + kf_rng_below(&t->r, bits);

    if (t->wide) {
        uint64_t b;

        memcpy(&b, &x, sizeof b);
        b ^= UINT64_C(1) << bit;
        memcpy(&x, &b, sizeof x);
        return x;
    }
    {
        float y = (float)x;
        uint32_t b;

        memcpy(&b, &y, sizeof b);
        b ^= UINT32_C(1) << bit;
        memcpy(&y, &b, sizeof y);
        return (double)y;
    }
}

static inline void flip(trial *t, double *y, size_t n, bool exponent)
{
    double *one = y + kf_rng_below(&t->r, n);
    size_t bits = t->wide ? 64 : 32, mantissa = t->wide ? 52 : 23;

    *one = exponent ? flipped(t, *one, mantissa, bits - 1 - mantissa)
                    : flipped(t, *one, 0, bits);
}

/* Flips a bit of a sent number, which is not divided by the weight. */
static inline void flip_sent(trial *t, size_t node, double *y, size_t n)
{
    double *one = y + kf_rng_below(&t->r, n), weight = t->f->weight[node];

    *one *= weight;
    flip(t, one, 1, t->way == EXPONENT);
    *one = rounded(t, *one / weight);
}

static inline void err(trial *t, size_t node, const double *other)
{
    size_t n = t->f->components * t->columns;
    double *y = t->sent + node * n;
    double size = alarm_level(t) * pow(10, 7 * kf_rng_uniform(&t->r) - 1);

    switch (t->way) {
    case FLIP:
    case EXPONENT:
        flip_sent(t, node, y, n);
        break;
    case DENSE:
        for (size_t i = 0; i < n; i++)
            y[i] = rounded(t, y[i] + size * kf_rng_normal(&t->r));
        break;
    case CONSTANT:
        for (size_t i = 0; i < n; i++)
            y[i] = rounded(t, y[i] + t->constant / t->f->weight[node]);
        break;
    case DOUBLED:
        for (size_t i = 0; i < n; i++)
            y[i] *= 2;
        break;
    case STALE:
        memcpy(y, other + node * n, n * sizeof *y);
        break;
    case ZEROS:
        memset(y, 0, n * sizeof *y);
        break;
    case SWAPPED:
    case WAYS:
        break;
    }
}

/* Each faulty worker sends the result of the next one, for the numbers that
 * both have. */
static inline void swap_results(trial *t)
{
    size_t n = t->f->components * t->columns;

    for (size_t i = 0; i < t->liars; i++) {
        size_t from = t->liar[(i ^ 1) < t->liars ? i ^ 1 : i];
        size_t to = t->liar[i];
        double f = t->f->weight[from] / t->f->weight[to];

        for (size_t k = 0; k < n; k++)
            t->sent[to * n + k] = rounded(t, t->honest[from * n + k] * f);
    }
}

static inline void spoil(trial *t)
{
    size_t n = t->f->components * t->columns;
    double *other = kf_new(t->f->rows * t->columns, sizeof *other);

    assert_non_null(other);
    honest_results(t, other);
    for (size_t i = 0; i < t->liars && t->way != SWAPPED; i++)
        err(t, t->liar[i], other);
    if (t->way == SWAPPED)
        swap_results(t);
    for (size_t i = 0; i < t->f->nodes; i++)
        t->lied[i] =
            memcmp(t->sent + i * n, t->honest + i * n, n * sizeof *other) != 0;
    kf_free(other);
}

/* ---- a verdict, in the steps of the coordinator -------------------------- */

typedef struct verdict {
    kofn_status st;
    uint32_t seat[MOST_NODES];
    size_t n, count;
    uint8_t found[MOST_NODES];
    double floor;
} verdict;

static inline int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* Returns the decoder of these seats, or NULL if they do not decode. */
static const kofn_decoder *decoder(const code_case *f, const uint32_t *seat,
                                   size_t n)
{
    const kofn_decoder *d;
    kofn_status st;

    kf_cache_trim(f->cache);
    st = kf_cache_get(f->cache, seat, n, false, &d);
    assert_int_not_equal(st, KOFN_NOMEM);
    return st ? NULL : d;
}

static inline size_t half(const code_case *f)
{
    return (f->nodes - f->k) / 2;
}

/* True if faulty workers may conspire. Answers that show the fault are then
 * waited for. */
static inline bool may_conspire(const trial *t)
{
    return t->mode == ADVERSARIAL || (t->mode == PROBABILISTIC && t->f->copies);
}

static inline size_t spare_answers(const trial *t)
{
    return may_conspire(t) ? kf_max(half(t->f), 1) : 1;
}

/* Sets the bounds as guard.c of the core does. */
static inline void bounds(const trial *t, kf_evidence *e)
{
    const code_case *f = t->f;
    size_t spare = spare_answers(t);

    e->liars = t->mode == DETECT ? spare : kf_max(half(f), spare);
    e->independent = e->liars;
    if (t->mode != ADVERSARIAL && !f->copies)
        e->independent = kf_max(e->liars, f->nodes - f->k - 1);
}

/* Returns the promised number of located workers. Copies that fail in the same
 * way confirm each other. With copies half of the spare workers are located,
 * and one is detected. */
static inline size_t most_liars(const trial *t)
{
    const code_case *f = t->f;

    if (t->mode == DETECT && f->copies)
        return 1;
    return may_conspire(t) ? half(f) : f->nodes - f->k - 1;
}

static inline void left_over(const verdict *v, uint32_t *seat, size_t *n)
{
    *n = 0;
    for (size_t i = 0; i < v->n; i++)
        if (!v->found[i])
            seat[(*n)++] = v->seat[i];
}

/* Requests a verdict on the first n answers. */
static inline void ask(const trial *t, size_t n, verdict *v)
{
    const code_case *f = t->f;
    size_t each = f->components * t->columns, over = n - kf_min(n, f->k);
    size_t most =
        t->mode == DETECT
            ? 0
            : n - f->enough - (t->mode == ADVERSARIAL ? spare_answers(t) : 1);
    size_t rest, few, q;
    double *Y = kf_new(n * each, sizeof *Y), hidden = 0;
    const kofn_decoder *d;
    const double *H;
    kf_evidence e = {.nodes = n,
                     .components = f->components,
                     .closed = f->components == 4,
                     .columns = t->columns,
                     .Y = Y,
                     .noise = noise(t),
                     .alarm = alarm_level(t),
                     .bound = 3,
                     .over = over};
    uint32_t seat[MOST_NODES];

    assert_non_null(Y);
    bounds(t, &e);
    v->n = n;
    memcpy(v->seat, t->order, n * sizeof *seat);
    qsort(v->seat, n, sizeof *seat, by_number);
    for (size_t i = 0; i < n; i++)
        memcpy(Y + i * each, t->sent + v->seat[i] * each, each * sizeof *Y);
    if (!t->wide)
        most = kf_min(most, (n - f->enough) / 2);
    v->st = KOFN_AGAIN;
    memset(v->found, 0, sizeof v->found);
    d = decoder(f, v->seat, n);
    if (d) {
        assert_ok(kf_cache_parity(f->cache, d, &e.H, &e.q));
        v->st = kf_suspect(&e, most, v->found, &v->count, &v->floor);
        assert_int_not_equal(v->st, KOFN_NOMEM);
    }
    kf_free(Y);
    if (v->st)
        return;
    left_over(v, seat, &rest);
    d = decoder(f, seat, rest);
    few = kf_code_may_hide(e.liars, e.independent, v->count,
                           rest - kf_min(rest, f->k));
    if (d) {
        assert_ok(kf_cache_parity(f->cache, d, &H, &q));
        assert_ok(kf_cache_hidden(f->cache, d, few, &hidden));
        v->floor =
            kf_code_floor(v->floor, hidden, q, v->count + few < e.independent);
    }
    if (!d || !(v->floor <= (t->wide ? HIDDEN_F64 : HIDDEN_F32)))
        v->st = KOFN_AGAIN;
}

static inline void digest(trial *t, const verdict *v)
{
    t->digest = kf_fnv(t->digest, (uint32_t)v->st);
    for (size_t i = 0; i < v->n; i++)
        t->digest = kf_fnv(t->digest, 4 * v->seat[i] + v->found[i]);
}

/* ---- checks -------------------------------------------------------------- */

static inline void describe(const trial *t, const char *what)
{
    fail_msg("%s of %zu, %s, %zu columns, float%d, %zu faulty, %s: %s",
             t->f->plan->spec, t->f->nodes, mode_names[t->mode], t->columns,
             t->wide ? 64 : 32, t->liars, way_names[t->way], what);
}

static inline void nobody_honest(const trial *t, const verdict *v)
{
    for (size_t i = 0; i < v->n; i++)
        if (v->found[i] == KF_LOCATED && !t->lied[v->seat[i]])
            describe(t, "an honest worker was named");
}

/* Compares every delivered entry with the right one. */
static inline void near_enough(const trial *t, const verdict *v)
{
    const code_case *f = t->f;
    uint32_t seat[MOST_NODES];
    const kofn_decoder *d;
    size_t n, m = t->columns;

    left_over(v, seat, &n);
    d = decoder(f, seat, n);
    for (size_t w = 0, row = 0; w < d->wants; w++) {
        const double *D = d->D + row * d->results;

        row += d->copy[w] == KF_MIXED;
        for (size_t c = 0; c < m; c++) {
            double off = 0;

            for (size_t r = 0; r < d->results; r++) {
                size_t node = seat[r / f->components];
                size_t at = (node * f->components + r % f->components) * m + c;
                double by =
                    d->copy[w] == KF_MIXED ? D[r] : d->copy[w] == (int32_t)r;

                if (t->lied[node])
                    off += by * f->weight[node] * (t->sent[at] - t->honest[at]);
            }
            if (!(fabs(off) <= v->floor))
                describe(t, "a wrong result was delivered");
        }
    }
}

/* Plays the round of these faulty workers, with answers in any order. */
static inline end run(trial *t)
{
    const code_case *f = t->f;
    end e = DECLARED;
    size_t n;

    t->sent = kf_new(f->rows * t->columns, sizeof *t->sent);
    t->honest = kf_new(f->rows * t->columns, sizeof *t->honest);
    assert_true(t->sent && t->honest);
    honest_results(t, t->honest);
    memcpy(t->sent, t->honest, f->rows * t->columns * sizeof *t->sent);
    spoil(t);
    shuffle(t->order, f->nodes, &t->r);
    for (n = f->enough + spare_answers(t); n <= f->nodes; n++) {
        verdict v;

        ask(t, n, &v);
        digest(t, &v);
        nobody_honest(t, &v);
        if (v.st == KOFN_OK) {
            near_enough(t, &v);
            e = RIGHT;
            break;
        }
        if (t->mode == DETECT && v.st == KOFN_CORRUPT)
            break;
    }
    kf_free(t->sent);
    kf_free(t->honest);
    return e;
}

#endif
