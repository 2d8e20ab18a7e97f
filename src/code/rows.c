/* rows.c -- the rows of seats, made on demand and kept.
 *
 * A kf_code owns the rows that it has made, until kf_code_free; the plan is
 * borrowed. */
#include "code.h"

#include "operation.h"

#include <assert.h>
#include <math.h>

kofn_status kf_code_new(kf_code **out, const kofn_plan *plan)
{
    kf_code *c = kf_zero(1, sizeof *c);

    *out = c;
    if (!c)
        return KOFN_NOMEM;
    c->plan = plan;
    return KOFN_OK;
}

void kf_code_uneven(kf_code *c)
{
    assert(c->cap == 0);
    c->uneven = true;
}

static void free_seat(kf_seat *s)
{
    if (s)
        kf_arrays_free(&s->owned);
    kf_free(s);
}

void kf_code_free(kf_code *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->cap; i++)
        free_seat(c->seat[i]);
    kf_free(c->seat);
    kf_free(c);
}

#define ZEROS 16

/* True if all n numbers are 0, of either sign. */
static bool all_zero(const double *x)
{
    uint64_t any = 0, b[4];

    for (size_t i = 0; i < ZEROS; i += 4) {
        memcpy(b, x + i, sizeof b);
        any |= b[0] | b[1] | b[2] | b[3];
    }
    return any << 1 == 0;
}

/* Returns the first index from `at` on with a number that is not 0, or n.  With
 * many parts rows are mostly zeros, and there is one row for each part. */
static size_t next_entry(const double *dense, size_t at, size_t n)
{
    if (at < n && dense[at] != 0)
        return at;
    while (at + ZEROS <= n && all_zero(dense + at))
        at += ZEROS;
    while (at < n && dense[at] == 0)
        at++;
    return at;
}

/* Compresses a row. Columns and values share one allocation, columns first. */
static kofn_status compress(kf_row *r, kf_arrays *a, const double *dense,
                            size_t n)
{
    size_t first = next_entry(dense, 0, n), end = first, count = 0, cols;

    for (size_t i = first; i < n; i = next_entry(dense, i + 1, n)) {
        count++;
        end = i + 1;
    }
    cols = (count + 1) / 2 * 2 * sizeof *r->col;
    r->col = kf_arrays_new(a, cols + count * sizeof *r->val, 1);
    if (!r->col)
        return KOFN_NOMEM;
    r->n = 0;
    r->val = (double *)(void *)((char *)r->col + cols);
    for (size_t i = first; i < end; i = next_entry(dense, i + 1, end)) {
        r->col[r->n] = (uint32_t)i;
        r->val[r->n++] = dense[i];
    }
    assert(r->n == count);
    return KOFN_OK;
}

static kofn_status finite_row(const kofn_plan *p, size_t local, const kf_row *r)
{
    for (size_t i = 0; i < r->n; i++)
        if (!(r->val[i] - r->val[i] == 0))
            return kf_fail(KOFN_UNSTABLE,
                           "%s: the coefficients of seat %zu overflow; choose "
                           "another basis or fewer parts",
                           p->spec, local);
    return KOFN_OK;
}

/* The seat that is being made, and its plan. */
typedef struct making {
    const kofn_plan *plan;
    size_t local;
    kf_seat *seat;
} making;

static kofn_status compress_rows(const making *m, kf_row **rows,
                                 const double *dense, size_t n, size_t cols)
{
    kf_arrays *a = &m->seat->owned;

    *rows = kf_arrays_new(a, n, sizeof **rows);
    TRY(kf_arrays_status(a));
    for (size_t i = 0; i < n; i++) {
        TRY(compress(&(*rows)[i], a, dense + i * cols, cols));
        TRY(finite_row(m->plan, m->local, &(*rows)[i]));
    }
    return KOFN_OK;
}

/* Returns the largest norm of a component's rows; `inner` rows count together.
 */
static double largest_norm(const kf_row *rows, size_t components, size_t inner)
{
    double top = 0;

    assert(inner > 0);
    for (size_t l = 0; l < components; l++) {
        double sum = 0;

        for (size_t t = l * inner; t < (l + 1) * inner; t++)
            for (size_t i = 0; i < rows[t].n; i++)
                sum += rows[t].val[i] * rows[t].val[i];
        top = kf_larger(top, sqrt(sum));
    }
    return top;
}

/* True if the rows are plain symbols. */
static bool plain_rows(const double *rows, size_t n, size_t cols)
{
    bool plain = true;

    for (size_t i = 0; i < n; i++) {
        size_t terms = 0;

        for (size_t j = 0; j < cols; j++) {
            double x = rows[i * cols + j];

            terms += x != 0;
            plain &= x == 0 || x == 1;
        }
        plain &= terms == 1;
    }
    return plain;
}

static void enlarge(double by, double *rows, size_t n)
{
    for (size_t i = 0; rows && i < n; i++)
        rows[i] *= by;
}

static void make_uneven(const kofn_plan *p, size_t local, double *E0, double *G)
{
    const kofn_layout *L = &p->layout;
    size_t rows = L->components * L->inner;
    /* multiples of 1/1024 in the order of the golden section */
    double by = 1 + (double)(local % 1024 * 633 % 1024) / 1024;
    bool twice = p->op->factors > 1;

    if (kf_code_decodes_itself(p, true))
        return;
    /* In A' A x even plain blocks are evenly spaced. */
    if (!twice &&
        plain_rows(G ? G : E0, L->components, G ? L->symbols : p->parts))
        return;
    enlarge(by, E0, rows * p->parts);
    enlarge(twice ? by * by : by, G, L->components * L->symbols);
}

/* Returns the plan that the scheme made; the rows of a reader come from another
 * plan. */
static const kofn_plan *made_by_scheme(const kofn_plan *p)
{
    return p->of ? p->of : p;
}

static kofn_status fill_seat(kf_code *c, size_t local, kf_seat *s, double *E0,
                             double *E1, double *G)
{
    const kofn_plan *p = c->plan, *of = made_by_scheme(p);
    const kofn_layout *L = &p->layout;
    size_t rows = L->components * L->inner;
    making m = {p, local, s};

    TRY(of->scheme->seat(&of->layout, local, E0, E1, G));
    if (c->uneven)
        make_uneven(of, local, E0, G);
    TRY(compress_rows(&m, &s->E0, E0, rows, p->parts));
    if (p->op->factors > 1) /* sub-blocks below each other are not summed */
        s->weight = pow(largest_norm(s->E0, rows, 1), 2);
    else
        s->weight = largest_norm(s->E0, L->components, L->inner);
    s->G = s->E0;
    if (p->parts1 > 1) {
        TRY(compress_rows(&m, &s->E1, E1, L->inner, p->parts1));
        s->weight *= largest_norm(s->E1, 1, L->inner);
    }
    if (p->mixes_parts)
        return KOFN_OK;
    return compress_rows(&m, &s->G, G, L->components, L->symbols);
}

static kofn_status make_seat(kf_code *c, size_t local, kf_seat **out)
{
    const kofn_plan *p = made_by_scheme(c->plan);
    const kofn_layout *L = &p->layout;
    bool coded = p->parts1 > 1;
    kf_seat *s = kf_zero(1, sizeof *s);
    kf_arrays a = {.failed = !s};
    double *E0 = kf_arrays_table(&a, L->components * L->inner, p->parts);
    double *E1 = coded ? kf_arrays_table(&a, L->inner, p->parts1) : NULL;
    double *G =
        p->mixes_parts ? NULL : kf_arrays_table(&a, L->components, L->symbols);
    kofn_status st = kf_arrays_status(&a);

    if (!st)
        st = fill_seat(c, local, s, E0, E1, G);
    if (!st && L->components == 4)
        s->quaternions = kf_code_quaternions(s->G);
    kf_arrays_free(&a);
    if (st) {
        free_seat(s);
        s = NULL;
    }
    *out = s;
    return st;
}

kofn_status kf_code_seat(kf_code *c, size_t local, const kf_seat **out)
{
    TRY(kf_reach(&c->seat, &c->cap, local + 1, sizeof *c->seat));
    if (!c->seat[local])
        TRY(make_seat(c, local, &c->seat[local]));
    *out = c->seat[local];
    return KOFN_OK;
}
