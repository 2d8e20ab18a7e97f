/* suspect_rig.h -- artificial results with known wrong nodes. Correct results
 * are G times random numbers, with rounding. Wrong ones deviate in every known
 * way. */
#ifndef KF_TEST_SUSPECT_RIG_H
#define KF_TEST_SUSPECT_RIG_H

#include "support.h"

#include "base/rng.h"
#include "code/suspect.h"

#include <cblas.h>
#include <float.h>
#include <lapacke.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define EVERY 60
#else
#define EVERY 1
#endif

#define MOST_NODES 24
#define UNIT 0x1p-52
/* As in compare.c for sums of about a hundred terms. */
#define NOISE (1.5 * UNIT)
#define ALARM (64 * 1.8 * UNIT)

static inline size_t effort(double n)
{
    return (size_t)ceil(n * test_scale() / EVERY);
}

/* ---- codes --------------------------------------------------------------- */

typedef struct code_case {
    kofn_plan *plan;
    kf_code *code;
    size_t nodes, k, components, symbols;
} code_case;

static inline void fleet_up(code_case *f, const char *spec, size_t nodes)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATMUL, 1000, 96, 1000, KOFN_F64, false);

    assert_ok(kofn_plan_new(&f->plan, &pb, spec, nodes, 5));
    assert_ok(kf_code_new(&f->code, f->plan));
    f->nodes = nodes;
    f->k = f->plan->layout.threshold;
    f->components = f->plan->layout.components;
    f->symbols = f->plan->layout.symbols;
}

static inline void fleet_down(code_case *f)
{
    kf_code_free(f->code);
    kofn_plan_free(f->plan);
}

/* Returns the row of a result, divided by the weight of its seat. */
static inline void weighted_row(const code_case *f, uint32_t seat,
                                size_t component, double *out)
{
    const kf_seat *s;

    assert_ok(kf_code_seat(f->code, seat, &s));
    memset(out, 0, f->symbols * sizeof *out);
    for (size_t e = 0; e < s->G[component].n; e++)
        out[s->G[component].col[e]] = s->G[component].val[e] / s->weight;
}

static const size_t sizes[][2] = {{7, 4},  {9, 5},  {12, 9}, {14, 5},
                                  {16, 9}, {18, 9}, {24, 9}};

#define SIZES (sizeof sizes / sizeof *sizes)

/* Codes with these numbers, from families with different properties. */
#define FAMILIES 4

static inline void fleet_of(code_case *f, size_t family, size_t P, size_t K)
{
    static const char *const basis[] = {"quaternion", "harmonic", "gauss_sys"};
    char spec[64];

    if (family < 3)
        snprintf(spec, sizeof spec, "mds:k=%zu,basis=%s", K, basis[family]);
    else if (K % 2)
        snprintf(spec, sizeof spec, "matdot:n=%zu,angles=%zu", (K + 1) / 2, P);
    else
        snprintf(spec, sizeof spec,
                 "polynomial:m=2,p=%zu,basis=circle,angles=%zu", K / 2, P);
    fleet_up(f, spec, P);
    assert_int_equal(f->k, K);
}

/* ---- a cell -------------------------------------------------------------- */

typedef struct cell {
    const code_case *f;
    size_t n, rows, columns, q;
    uint32_t seat[MOST_NODES];
    double *H, *Y, *honest;
    bool lied[MOST_NODES];
    /* the verdict */
    kofn_status st;
    uint8_t bad[MOST_NODES];
    size_t count;
    double floor;
} cell;

/* Keeps all nodes but `lost` random ones. */
static inline void survive(cell *c, const code_case *f, size_t lost, kf_rng *r)
{
    *c = (cell){.f = f};
    for (size_t i = 0; i < f->nodes; i++) {
        if (kf_rng_below(r, f->nodes - i) < lost)
            lost--;
        else
            c->seat[c->n++] = (uint32_t)i;
    }
    c->rows = c->n * f->components;
    assert_ok(kf_parity(f->code, c->seat, c->n, &c->H, &c->q));
    assert_int_equal(c->q, (c->n - f->k) * f->components);
}

static inline void fill(cell *c, size_t columns, kf_rng *r)
{
    const code_case *f = c->f;
    double *X = kf_new(f->symbols * columns, sizeof *X);
    double *row = kf_new(f->symbols, sizeof *row);

    c->columns = columns;
    c->Y = kofn_layout_table(c->rows, columns);
    c->honest = kofn_layout_table(c->rows, columns);
    assert_true(X && row && c->Y && c->honest);
    for (size_t i = 0; i < f->symbols * columns; i++)
        X[i] = 0.1 * kf_rng_normal(r);
    for (size_t i = 0; i < c->rows; i++) {
        double *y = c->Y + i * columns;

        weighted_row(f, c->seat[i / f->components], i % f->components, row);
        for (size_t s = 0; s < f->symbols; s++)
            for (size_t k = 0; k < columns && row[s] != 0; k++)
                y[k] += row[s] * X[s * columns + k];
        for (size_t k = 0; k < columns; k++)
            y[k] += 0.5 * UNIT * kf_rng_normal(r);
    }
    memcpy(c->honest, c->Y, c->rows * columns * sizeof *c->Y);
    kf_free(X);
    kf_free(row);
}

static inline void cell_free(cell *c)
{
    kf_free(c->H);
    kf_free(c->Y);
    kf_free(c->honest);
}

/* Returns the largest error that stays hidden in a result, for parities of
 * length one. */
static inline double most_hidden(const cell *c)
{
    size_t n = 0, q, components = c->f->components, few;
    uint32_t seat[MOST_NODES];
    double *H, worst = 0;
    kf_evidence e;

    for (size_t i = 0; i < c->n; i++)
        if (c->st != KOFN_OK || !c->bad[i])
            seat[n++] = c->seat[i];
    assert_ok(kf_parity(c->f->code, seat, n, &H, &q));
    few = kf_min((c->n - c->f->k) / 2, q / components);
    e = (kf_evidence){.nodes = n, .components = components, .q = q, .H = H};
    if (q > 0)
        assert_ok(kf_hidden(&e, NULL, 0, few, &worst));
    kf_free(H);
    return worst;
}

static inline void ask(cell *c, size_t most)
{
    kf_evidence e = {c->n,
                     c->f->components,
                     c->f->components == 4,
                     c->q,
                     c->H,
                     c->columns,
                     c->Y,
                     NOISE,
                     ALARM,
                     3,
                     c->n - c->f->k,
                     (c->n - c->f->k) / 2,
                     c->n - c->f->k - 1};

    c->st = kf_suspect(&e, most, c->bad, &c->count, &c->floor);
    assert_int_not_equal(c->st, KOFN_NOMEM);
    c->floor *= most_hidden(c);
}

/* Returns the largest error of a node; HUGE_VAL if it is not a number. */
static inline double lie(const cell *c, size_t node)
{
    size_t each = c->f->components * c->columns;
    double top = 0;

    for (size_t i = node * each; i < (node + 1) * each; i++) {
        double d = fabs(c->Y[i] - c->honest[i]);

        top = d <= DBL_MAX ? fmax(top, d) : HUGE_VAL;
    }
    return top;
}

/* Checks what must hold of any verdict. True if the wrong nodes were located.
 */
static inline bool judge(const cell *c, const char *what)
{
    size_t named = 0;

    for (size_t i = 0; i < c->n; i++) {
        named += c->bad[i] == KF_LOCATED;
        if (c->bad[i] == KF_LOCATED && !c->lied[i])
            fail_msg("%s: node %zu was named and is honest", what, i);
        if (c->st == KOFN_OK && !c->bad[i] && lie(c, i) > c->floor)
            fail_msg("%s: a lie of %g passed, the floor is %g", what, lie(c, i),
                     c->floor);
    }
    assert_int_equal(named, c->count);
    return c->st == KOFN_OK;
}

static inline void choose_liars(cell *c, size_t t, kf_rng *r)
{
    for (size_t i = 0, left = t; i < c->n; i++) {
        c->lied[i] = kf_rng_below(r, c->n - i) < left;
        left -= c->lied[i];
    }
}

/* ---- kinds of errors ------------------------------------------------------
 */

typedef enum way { DENSE, MIXED, ENTRY, FLIP, ODD, ANY, WAYS } way;

static const char *const way_names[] = {
    "dense",      "of sizes 1e-6..1e6",  "in one entry",
    "of one bit", "not finite, or huge", "of all kinds"};

static inline void flip_bit(double *x, size_t bit)
{
    uint64_t b;

    memcpy(&b, x, sizeof b);
    b ^= UINT64_C(1) << bit;
    memcpy(x, &b, sizeof b);
}

static inline void tell_a_lie(cell *c, size_t node, way w, kf_rng *r)
{
    static const double odd[] = {NAN, INFINITY, -INFINITY, 1e300, -1e12, 4};
    size_t n = c->f->components * c->columns;
    double *y = c->Y + node * n, *one = y + kf_rng_below(r, n);
    double size = w == DENSE ? 0.1 : 0.1 * pow(10, 12 * kf_rng_uniform(r) - 6);

    if (w == ANY)
        w = (way)kf_rng_below(r, ANY);
    if (w == FLIP)
        flip_bit(one, kf_rng_below(r, 64));
    else if (w == ODD)
        *one = odd[kf_rng_below(r, sizeof odd / sizeof *odd)];
    else if (w == ENTRY)
        *one += size;
    else
        for (size_t i = 0; i < n; i++)
            y[i] += size * kf_rng_normal(r);
}

/* Returns a number of columns: from the number of wrong nodes to a sketch's. */
static inline size_t width(size_t t, kf_rng *r)
{
    static const size_t usual[] = {16, 64, 256};
    size_t least = kf_max(t, 1);

    if (kf_rng_below(r, 4) == 0)
        return least;
    return kf_max(least, usual[kf_rng_below(r, 3)]);
}

static inline void some_lie(cell *c, const code_case *f, size_t t, size_t lost,
                            way w, kf_rng *r)
{
    survive(c, f, lost, r);
    fill(c, width(t, r), r);
    choose_liars(c, t, r);
    for (size_t i = 0; i < c->n; i++)
        if (c->lied[i])
            tell_a_lie(c, i, w, r);
}

#endif
