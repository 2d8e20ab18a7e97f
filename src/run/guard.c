/* guard.c -- the body's part in finding wrong results: scales of the operands
 * to measure them by, checks as the core asks for them, and their verdicts on
 * the way back to it. */
#include "run.h"

#include "code/operation.h"
#include "data/check.h"

#include <math.h>
#include <sys/random.h>

/* Results that hide larger lies than this, relative to the operands, do not
 * vouch for each other: one more is wanted.  Or more than the tolerance, if one
 * was asked for. */
#define HIDDEN_F64 1e-6
#define HIDDEN_F32 1e-2

/* Weights that a worker could foresee would let it lie where they are blind. */
kofn_status kf_guard_init(kf_guard *g, bool repeatable, uint64_t seed,
                          double tolerance)
{
    *g = (kf_guard){.secret = seed, .tolerance = tolerance};
    if (!repeatable &&
        getrandom(&g->secret, sizeof g->secret, 0) != (ssize_t)sizeof g->secret)
        return kf_fail(KOFN_IO, "the system has no random numbers to give");
    return KOFN_OK;
}

void kf_guard_free(kf_guard *g)
{
    for (size_t i = 0; i < g->groups; i++)
        kf_free(g->resident[i]);
    kf_free(g->resident);
    for (size_t i = g->next; i < g->count; i++)
        kf_free(g->verdict[i].bad);
    kf_free(g->verdict);
    kf_free(g->spent);
}

/* ---- scales -------------------------------------------------------------- */

/* Of the rows of A, group by group; for left products of its columns. */
static kofn_status know_resident(kf_guard *g, const kf_resident *r,
                                 const kofn_plan *use, size_t group)
{
    bool left = use->op->left;
    size_t cols = r->A ? r->A->cols : r->parts.cols;

    if (!g->resident) {
        g->resident = kf_zero(2 * use->layout.groups, sizeof *g->resident);
        if (!g->resident)
            return KOFN_NOMEM;
        g->groups = 2 * use->layout.groups;
    }
    group += left ? use->layout.groups : 0;
    if (g->resident[group])
        return KOFN_OK;
    g->resident[group] = kf_new(left ? cols : use->span, sizeof **g->resident);
    if (!g->resident[group])
        return KOFN_NOMEM;
    if (left)
        return kf_data_scales_of_resident_columns(r, g->resident[group], cols);
    return kf_data_scales_of_rows(r, group, g->resident[group]);
}

/* Of the columns of the input, over its parts; for left products of its rows. */
static kofn_status know_input(kf_measure *of)
{
    const kf_messages *m = of->messages;
    const kofn_plan *use = m->plan;
    bool left = use->op->left, cut = use->parts1 > 1;
    const kofn_matrix *part = cut ? m->parts.part : &m->plain->m;
    size_t parts = cut ? m->parts.count : 1;
    size_t rows = cut ? m->parts.rows : m->plain->m.rows;
    size_t cols = cut ? m->parts.cols : m->plain->m.cols;

    if (of->known)
        return KOFN_OK;
    kf_free(of->input);
    of->input = kf_new(left ? rows : cols, sizeof *of->input);
    if (!of->input)
        return KOFN_NOMEM;
    of->known = true;
    return left ? kf_data_scales_of_part_rows(part, parts, of->input, rows)
                : kf_data_scales_of_columns(part, parts, 1, of->input, cols);
}

/* ---- checks -------------------------------------------------------------- */

static kofn_status push(kf_guard *g, kf_verdict v)
{
    if (g->next == g->count)
        g->next = g->count = 0;
    if (kf_grow(&g->verdict, &g->cap, g->count, sizeof *g->verdict)) {
        kf_free(v.bad);
        return KOFN_NOMEM;
    }
    g->verdict[g->count++] = v;
    return KOFN_OK;
}

/* The relative error of an output that is wrong by as much in every entry, when
 * entries are as large as those of random numbers. */
static double as_error(const kofn_plan *use, double floor)
{
    const kofn_problem *pb = &use->layout.problem;

    return floor * sqrt((double)(use->op->over & KF_OVER_ROWS ? pb->m : pb->n));
}

static bool tolerable(const kf_guard *g, const kofn_plan *use, double floor)
{
    bool wide = use->layout.problem.dtype == KOFN_F64;

    if (g->tolerance > 0)
        return as_error(use, floor) <= g->tolerance;
    return floor <= (wide ? HIDDEN_F64 : HIDDEN_F32);
}

/* Where one result more may come there is no need to look at those that would not
 * be accepted if they agreed. */
static kofn_status verdict(const kf_guard *g, const kf_check *c, bool last,
                           kf_found *found)
{
    kofn_status st;

    if (!last && !tolerable(g, c->plan, kf_check_least_floor(c))) {
        *found = (kf_found){.bad = found->bad, .floor = HUGE_VAL};
        return KOFN_AGAIN;
    }
    st = kf_check_results(c, found);
    return st == KOFN_OK && !tolerable(g, c->plan, found->floor) ? KOFN_AGAIN
                                                                 : st;
}

kofn_status kf_guard_check(kf_guard *g, const kf_resident *r, kf_measure *of,
                           kofn_core *core, uint32_t number,
                           const kofn_action *a, const kf_source *source)
{
    const kofn_plan *use = of->messages->plan;
    bool left = use->op->left;
    kf_check c = {.plan = use,
                  .code = kofn_core_code(core, number),
                  .decoder = a->decoder,
                  .source = source,
                  .lo = a->lo,
                  .hi = a->hi,
                  .most = a->most,
                  .liars = a->liars,
                  .promised = a->promised,
                  .secret = g->secret,
                  .number = a->task};
    kf_verdict v = {.product = a->product, .number = a->task};
    kf_found found;

    TRY(know_resident(g, r, use, a->group));
    TRY(know_input(of));
    c.row = left ? of->input : g->resident[a->group];
    c.col = left ? g->resident[a->group + use->layout.groups] : of->input;
    TRY(kf_cache_parity(kofn_core_cache(core, number), a->decoder, &c.H, &c.q));
    TRY(kf_cache_hidden(kofn_core_cache(core, number), a->decoder,
                        kf_check_few(&c, a->count, 0), &c.hidden));
    found.bad = v.bad = kf_new(a->decoder->seats, sizeof *v.bad);
    if (!v.bad)
        return KOFN_NOMEM;
    v.status = verdict(g, &c, a->last, &found);
    v.count = found.count;
    v.doubted = found.doubted;
    if (v.status == KOFN_OK) {
        of->floor = kf_larger(of->floor, found.floor);
        of->error = kf_larger(of->error, as_error(use, found.floor));
    }
    if (v.status == KOFN_NOMEM) {
        kf_free(v.bad);
        return KOFN_NOMEM;
    }
    return push(g, v);
}

bool kf_guard_next(kf_guard *g, kofn_event *ev)
{
    const kf_verdict *v;

    kf_free(g->spent);
    g->spent = NULL;
    if (g->next == g->count)
        return false;
    v = &g->verdict[g->next++];
    g->spent = v->bad;
    *ev = (kofn_event){.type = KOFN_EV_VERDICT,
                       .product = v->product,
                       .task = v->number,
                       .status = v->status,
                       .bad = v->bad,
                       .bad_count = v->count,
                       .doubted = v->doubted};
    return true;
}
