/* alone.c -- a plan in which one worker computes each part of a sum, which it
 * holds anyway.  It serves the rounds that are not checked if wrong answers are
 * looked for only now and then.  No part is then computed twice.
 *
 * Makes a plan that its caller frees.  The core and the body decide whether
 * this plan may be used. */
#include "code.h"

#include "operation.h"

static kofn_status seat(const kofn_layout *L, size_t i, double *E0, double *E1,
                        double *G)
{
    (void)L;
    (void)E1;
    E0[i] = G[i] = 1;
    return KOFN_OK;
}

static kofn_status decode(const kofn_layout *L, const uint32_t *seats, size_t n,
                          double *D)
{
    (void)L;
    (void)seats;
    for (size_t i = 0; i < n; i++)
        D[i] = 1;
    return KOFN_OK;
}

static const kofn_scheme alone = {
    .size = sizeof(kofn_scheme),
    .name = "the parts of a sum",
    .ops = (unsigned)KF_PARTS,
    .seat = seat,
    .decode = decode,
};

/* True if the plan has one part and one answer for each seat, and all answers
 * are needed. */
bool kf_code_can_be_alone(const kofn_plan *p)
{
    const kofn_layout *L = &p->layout;

    return p->op->factors == 0 && L->groups == 1 && L->submessages == 1 &&
           !L->everybody && !L->remembers && L->seats == p->parts &&
           L->max_seats == L->seats && p->workers == L->seats;
}

kofn_status kf_code_alone(kofn_plan **out, const kofn_plan *plan)
{
    kofn_plan *p = kf_new(1, sizeof *p);
    kofn_layout *L;

    *out = p;
    if (!p)
        return KOFN_NOMEM;
    *p = *plan;
    p->scheme = &alone;
    p->op = kf_operation_of(KF_PARTS);
    p->left = NULL;
    L = &p->layout;
    L->args = &p->args;
    L->problem.op = KF_PARTS;
    L->components = L->wants = L->grid_rows = 1;
    L->symbols = p->parts;
    L->enough = L->threshold = L->seats;
    L->state = NULL;
    L->free_state = NULL;
    p->span = p->op->span(L);
    L->W = kofn_layout_table(1, p->parts);
    for (size_t j = 0; L->W && j < p->parts; j++)
        L->W[j] = 1;
    return L->W ? KOFN_OK : KOFN_NOMEM;
}

kofn_status kf_code_has_own(kf_code *c)
{
    const kofn_plan *p = c->plan;

    for (size_t i = 0; i < p->parts; i++) {
        const kf_seat *rows;
        bool owned = false;

        TRY(kf_code_seat(c, i, &rows));
        for (size_t e = 0; e < rows->E0[0].n; e++)
            owned |= rows->E0[0].col[e] == i;
        if (!owned)
            return kf_fail(
                KOFN_UNSUITED,
                "%s: seat %zu does not compute part %zu, and has none "
                "of its own; use gc or cgc as they are by default",
                p->spec, i, i);
    }
    return KOFN_OK;
}
