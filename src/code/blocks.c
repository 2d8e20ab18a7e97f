/* blocks.c -- reading the blocks of A: how they are composed, for callers that
 * change A in place, and how A or another block is computed from them.
 *
 * Products of a coded A are decoded from answers.  Blocks are read in the same
 * way, as if multiplied by the identity.  The rows of the answers are then the
 * rows of the blocks; the symbols and wants are the parts of A.  A reader is
 * the plan of such a product.  It needs no more answers than any product
 * (math/training.md 8).
 *
 * Makes plans and rows that the caller frees.  It never sees the numbers of a
 * block, only the coefficients. */
#include "code.h"

#include "operation.h"

#include <assert.h>
#include <math.h>

/* ---- outer products ------------------------------------------------------ */

/* Rounding, relative to the largest coefficient, which determines the pivot row
 * and column.  The other entries are sums of a few numbers. */
#define ROUNDING (64 * 0x1p-53)

static kofn_status no_outer_product(const kofn_plan *p, size_t local)
{
    return kf_fail(
        KOFN_UNSUITED,
        "%s: the coefficients of seat %zu are no outer product of some "
        "for the rows and some for the columns of A, so that no update "
        "of A can be coded; choose another basis, as circle",
        p->spec, local);
}

/* Writes the rows of a seat as a dense matrix, components x parts. */
static void spread(const kf_seat *seat, size_t components, size_t parts,
                   double *E)
{
    for (size_t l = 0; l < components; l++)
        for (size_t e = 0; e < seat->E0[l].n; e++)
            E[l * parts + seat->E0[l].col[e]] = seat->E0[l].val[e];
}

static size_t largest(const double *E, size_t n)
{
    size_t at = 0;

    assert(n > 0);
    for (size_t i = 1; i < n; i++)
        if (fabs(E[i]) > fabs(E[at]))
            at = i;
    return at;
}

/* Does one step of elimination with both pivots; true if nothing is left.  One
 * of the two factors is scaled to ones.  If only rows or only columns are cut,
 * all components have this factor in common. */
static bool eliminate(const double *E, size_t rows, size_t cols, double *f,
                      double *g)
{
    size_t at = largest(E, rows * cols), row = at % rows, col = at / rows;
    double most = fabs(E[at]), off = 0;
    double of_f = rows > 1 || most == 0 ? 1 : E[at];
    double of_g = rows == 1 || most == 0 ? 1 : E[at];

    assert(rows > 0);
    assert(cols > 0);
    for (size_t i = 0; i < rows; i++)
        f[i] = E[i + rows * col] / of_f;
    for (size_t j = 0; j < cols; j++)
        g[j] = E[row + rows * j] / of_g;
    for (size_t j = 0; j < cols; j++)
        for (size_t i = 0; i < rows; i++)
            off = kf_larger(off, fabs(E[i + rows * j] - f[i] * g[j]));
    return off <= ROUNDING * most;
}

kofn_status kf_code_factors(kf_code *c, size_t local, double *f, double *g)
{
    const kofn_layout *L = &c->plan->layout;
    size_t rows = L->cut[0].rows, cols = L->cut[0].cols;
    bool outer = L->inner == 1;
    const kf_seat *seat;
    double *E;

    TRY(kf_code_seat(c, local, &seat));
    E = kofn_layout_table(L->components, rows * cols);
    if (!E)
        return KOFN_NOMEM;
    spread(seat, L->components, rows * cols, E);
    for (size_t l = 0; l < L->components && outer; l++)
        outer = eliminate(E + l * rows * cols, rows, cols, f + l * rows,
                          g + l * cols);
    kf_free(E);
    return outer ? KOFN_OK : no_outer_product(c->plan, local);
}

/* ---- reading ------------------------------------------------------------- */

/* Returns the reason why the blocks cannot be read, or NULL. */
static const char *unreadable(const kofn_plan *p)
{
    if (p->op->factors != 1 || p->op->stream || p->layout.problem.sparse)
        return "blocks are read of products A B and B A with a dense A";
    if (p->layout.inner > 1)
        return "a block that stands for two, side by side, is not read; choose "
               "another basis, as circle";
    return NULL;
}

bool kf_code_can_be_read(const kofn_plan *p)
{
    return !unreadable(p) && !p->of;
}

static kofn_status readable(const kofn_plan *p)
{
    const char *why = unreadable(p);

    return why ? kf_fail(KOFN_UNSUITED, "%s: %s", p->spec, why) : KOFN_OK;
}

kofn_status kf_code_reader(kofn_plan **out, const kofn_plan *plan)
{
    kofn_plan *r;
    kofn_layout *L;

    *out = NULL;
    TRY(readable(plan));
    if (plan->of)
        return kf_fail(KOFN_STATE, "%s: a reader has no reader", plan->spec);
    TRY_NEW(r, 1);
    *r = *plan;
    r->of = plan;
    r->left = NULL;
    r->op = kf_operation_of(KF_READ);
    r->parts1 = 1;
    r->mixes_parts = true;
    L = &r->layout;
    L->args = &r->args;
    L->problem.op = KF_READ;
    L->problem.p = 1;
    L->cut[1] = (kofn_cut){1, 1};
    L->symbols = L->wants = r->parts;
    L->grid_rows = L->cut[0].rows;
    L->enough = kf_ceil_div(r->parts, L->components);
    L->threshold = kf_max(L->enough, L->threshold);
    L->adjoint = false;
    L->W = NULL;
    L->state = NULL;
    L->free_state = NULL;
    r->span = r->op->span(L);
    *out = r;
    return KOFN_OK;
}

/* ---- a block from others ------------------------------------------------- */

/* Largest difference of X G from E0.  If it is larger, the wanted block is no
 * combination of the other blocks; else the difference is only rounding. */
#define OFF 1e-6
/* Rounding of a sum of rounded blocks. */
#define EACH (4 * 0x1p-53)

/* The rows of the available blocks, and of the wanted block. */
typedef struct regeneration {
    kf_code *code;
    kf_arrays arrays;
    size_t results, parts;
    double *G;    /* of all available blocks, components below each other */
    double *norm; /* of each row of G */
    double *E;    /* of the wanted block, one component per row */
} regeneration;

static kofn_status gather(regeneration *t, const uint32_t *seats, size_t n)
{
    kf_code *c = t->code;
    size_t components = c->plan->layout.components, parts = t->parts;

    for (size_t i = 0; i < n; i++) {
        const kf_seat *seat;

        TRY(kf_code_seat(c, seats[i], &seat));
        spread(seat, components, parts, t->G + i * components * parts);
    }
    for (size_t r = 0; r < t->results; r++) {
        t->norm[r] = 0;
        for (size_t j = 0; j < parts; j++)
            t->norm[r] = hypot(t->norm[r], t->G[r * parts + j]);
    }
    return KOFN_OK;
}

/* Raises *noise to the effect of rounding in the other blocks, and *off to |X G
 * - E|, both relative to the norm of row l of E. */
static void errors_of(const regeneration *t, const double *x, size_t l,
                      double *noise, double *off)
{
    const double *E = t->E + l * t->parts;
    double size = 0, gain = 0, rest = 0;

    assert(l < t->code->plan->layout.components);
    x += l * t->results;
    for (size_t r = 0; r < t->results; r++)
        gain = hypot(gain, x[r] * t->norm[r]);
    for (size_t j = 0; j < t->parts; j++) {
        double sum = 0;

        for (size_t r = 0; r < t->results; r++)
            sum += x[r] * t->G[r * t->parts + j];
        rest = hypot(rest, sum - E[j]);
        size = hypot(size, E[j]);
    }
    if (size > 0) {
        *noise = kf_larger(*noise, gain / size);
        *off = kf_larger(*off, rest / size);
    }
}

static kofn_status not_determined(const kofn_plan *p, size_t n, size_t seat)
{
    return kf_fail(
        KOFN_TOOFEW,
        "%s: the blocks of these %zu seats do not determine that of seat "
        "%zu; any %zu do",
        p->spec, n, seat, p->layout.threshold);
}

/* x = E G^+ */
static kofn_status solve(regeneration *t, const uint32_t *seats, size_t n,
                         size_t seat, double *x, double *predicted)
{
    kf_code *c = t->code;
    size_t components = c->plan->layout.components;
    double condition, noise = 0, off = 0;
    const kf_seat *wanted;

    assert(n > 0);
    t->G = kf_arrays_table(&t->arrays, t->results, t->parts);
    t->norm = kf_arrays_table(&t->arrays, n, components);
    t->E = kf_arrays_table(&t->arrays, components, t->parts);
    TRY(kf_arrays_status(&t->arrays));
    TRY(kf_code_seat(c, seat, &wanted));
    spread(wanted, components, t->parts, t->E);
    TRY(gather(t, seats, n));
    TRY(kf_pseudo(&(kf_equation){t->results, t->parts, t->G, components, t->E},
                  x, &condition));
    for (size_t l = 0; l < components; l++)
        errors_of(t, x, l, &noise, &off);
    *predicted = kf_larger(EACH * noise, off);
    return off <= OFF ? KOFN_OK : not_determined(c->plan, n, seat);
}

kofn_status kf_code_regenerator(kf_code *c, const uint32_t *seats, size_t n,
                                size_t seat, double *x, double *predicted)
{
    regeneration t = {.code = c,
                      .results = n * c->plan->layout.components,
                      .parts = c->plan->parts};
    kofn_status st;

    TRY(readable(c->plan));
    if (n == 0)
        return not_determined(c->plan, n, seat);
    st = solve(&t, seats, n, seat, x, predicted);
    kf_arrays_free(&t.arrays);
    return st;
}
