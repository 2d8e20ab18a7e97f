/* elastic.c -- coded elastic computing (Yang, Interlandi, Grover, Kar,
 * Amizadeh, Weimer, "Coded elastic computing", 2018).
 *
 * Blocks are those of an MDS code and never change.  A change of the live set
 * changes only which worker computes which strips.  With n live workers each
 * strip is given to k of them, cyclically, so each worker computes k/n of its
 * block.  If a worker leaves, the others get a little more work and no data
 * moves.  If one joins, all others get less work.
 *
 * With unequal speeds, worker p gets the share mu_p = min(1, c v_p) of its
 * block.  The number c is such that the shares sum to k.  This minimises the
 * time of the slowest worker.  Intervals of these lengths are laid one after
 * the other around the circle of strips.  No interval is longer than the
 * circle, and together they cover it exactly k times.  So each strip has k
 * different workers.
 *
 * Owns nothing: shares go into the caller's deals.  It is called after each
 * change of the live set and keeps no state. */
#include "code/author.h"

static const kofn_param params[] = {
    KF_BASIS_PARAMS,
    {"groups", 1, 1, 100000,
     "codes side by side, decoded apart; divides workers and k; not in regress",
     0},
    {"deal", 0, 0, 0,
     "shares of the work, in strips: four rows with basis=quaternion, else one",
     "equal|speed"},
    {"cut", 0, 0, 0,
     "what A is cut into; columns: the input is re-coded for the live set",
     "rows|columns"},
    {0},
};

/* Plans for the loss of half of the workers, at most 16. */
static kofn_status layout(kofn_layout *L)
{
    size_t n = L->workers, g = (size_t)kofn_arg(L, "groups");
    size_t spare = kf_min(n / 2, 16);
    bool columns = kofn_arg(L, "cut") == 1;
    kofn_status st =
        kf_basis_layout(L, n, g, n % g == 0 ? spare - spare % g : spare);

    if (columns)
        L->cut[0] = (kofn_cut){1, L->cut[0].rows};
    /* With A cut into columns, A B is a sum over the parts.  So is B A with A
     * cut into rows.  Then the code is transposed (math/elastic.md 10, 11). */
    L->adjoint = columns != (L->problem.op == KOFN_LEFT);
    if (!st && g > 1 && (L->adjoint || columns))
        return kofn_say(KOFN_INVAL,
                        "elastic: groups = %zu goes with products A B and "
                        "cut=rows only",
                        g);
    return st;
}

/* Gives one worker the strips [from, from + length) of a circle of `span`. */
static kofn_status deal_arc(kofn_deals *out, size_t who, size_t from,
                            size_t length, size_t span)
{
    if (from + length <= span)
        return kofn_deals_add(out, who, from, from + length);
    TRY(kofn_deals_add(out, who, from, span));
    return kofn_deals_add(out, who, 0, from + length - span);
}

/* Cuts the strips into n groups at floor(j span / n); the worker of rank p gets
 * the k groups from p on. */
static kofn_status deal_equally(size_t k, size_t n, size_t span,
                                kofn_deals *out)
{
    kofn_status st = KOFN_OK;

    for (size_t p = 0; p < n && !st; p++) {
        size_t from = p * span / n, to = (p + k) % n * span / n;
        size_t length = p + k < n ? to - from : span - from + to;

        st = deal_arc(out, p, from, length, span);
    }
    return st;
}

/* Gives each worker a whole number of strips in proportion to its speed, laid
 * around the circle one after the other.  No share exceeds the block, so each
 * strip has k different workers. */
static kofn_status deal_by_speed(const kofn_live *live, size_t k, size_t n,
                                 size_t span, kofn_deals *out)
{
    double *share = kofn_layout_table(n, 2);
    double *rest = share + n;
    size_t full = 0, again, total = 0, start = 0;
    kofn_status st = KOFN_OK;

    if (!share)
        return KOFN_NOMEM;
    /* Water-filling: a worker with a share above its whole block gets the whole
     * block. */
    do {
        double sum = 0;

        for (size_t p = 0; p < n; p++)
            sum += share[p] < 1 ? live[p].speed : 0;
        again = 0;
        for (size_t p = 0; p < n; p++)
            if (share[p] < 1) {
                rest[p] = (double)(k - full) * live[p].speed / sum;
                again += rest[p] >= 1;
            }
        for (size_t p = 0; p < n; p++)
            if (share[p] < 1 && (rest[p] >= 1 || !again))
                share[p] = rest[p] >= 1 ? 1 : rest[p];
        full += again;
    } while (again && full < k && full < n);

    /* Whole strips by largest remainders; the lower rank wins ties. */
    for (size_t p = 0; p < n; p++) {
        double exact = share[p] < 1 ? share[p] * (double)span : (double)span;
        size_t whole = (size_t)exact;

        rest[p] = whole < span ? exact - (double)whole : -1;
        share[p] = (double)whole;
        total += whole;
    }
    while (total < k * span) {
        size_t best = n;

        for (size_t p = 0; p < n; p++)
            if (rest[p] >= 0 && (best == n || rest[p] > rest[best]))
                best = p;
        if (best == n) { /* remainders used: first with room */
            for (best = 0; share[best] >= (double)span;)
                best++;
        }
        share[best] += 1;
        rest[best] = -1;
        total++;
    }
    for (size_t p = 0; p < n && !st; p++) {
        if (share[p] > 0)
            st = deal_arc(out, p, start, (size_t)share[p], span);
        start = (start + (size_t)share[p]) % span;
    }
    kofn_free(share);
    return st;
}

static kofn_status deal(const kofn_layout *L, const kofn_live *live, size_t n,
                        size_t cover, size_t span, kofn_deals *out)
{
    bool equal = kofn_arg(L, "deal") == 0;

    for (size_t p = 1; p < n && !equal; p++)
        if (live[p].speed != live[0].speed)
            return deal_by_speed(live, cover, n, span, out);
    return deal_equally(cover, n, span, out);
}

const kofn_scheme kf_elastic = {
    .size = sizeof(kofn_scheme),
    .name = "elastic",
    .summary = "any k of n store; work re-dealt as workers come and go",
    .cite = "Yang et al. 2018, arXiv:1812.06411",
    .ops = KOFN_MATVEC | KOFN_MATMUL | KOFN_LEFT,
    .params = params,
    .layout = layout,
    .seat = kf_basis_seat,
    .deal = deal,
};
