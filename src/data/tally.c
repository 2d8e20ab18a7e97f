/* tally.c -- the composition of a sum of functions: the weight of each part
 * and, if the scheme remembers, the last values that replace missing ones.
 *
 * Owns the weights and, if the scheme remembers, the last value of each part,
 * for the life of the job. */
#include "data.h"

#include <assert.h>

kofn_status kf_tally_new(kf_tally *t, const kofn_plan *plan)
{
    const kofn_layout *L = &plan->layout;

    kf_tally_free(t);
    t->parts = plan->parts;
    TRY_ZERO(t->weight, t->parts);
    if (!L->remembers)
        return KOFN_OK;
    TRY_ZERO(t->age, t->parts);
    TRY_ZERO(t->known, t->parts);
    t->value = kf_zero(t->parts, plan->span * kf_dtype_size(L->problem.dtype));
    return t->value ? KOFN_OK : KOFN_NOMEM;
}

void kf_tally_free(kf_tally *t)
{
    kf_free(t->weight);
    kf_free(t->age);
    kf_free(t->known);
    kf_free(t->value);
    *t = (kf_tally){0};
}

/* Counts the first segment; all segments have the same weights. */
kofn_status kf_tally_count(kf_tally *t, kf_code *code, const kofn_decoder *d)
{
    const kofn_layout *L = &code->plan->layout;

    for (size_t j = 0; j < t->parts; j++)
        t->weight[j] = d->whole;
    for (size_t i = 0; i < d->seats && !d->whole; i++) {
        const kf_seat *rows;

        TRY(kf_code_seat(code, d->seat[i], &rows));
        for (size_t l = 0; l < L->components; l++)
            for (size_t e = 0; e < rows->G[l].n; e++)
                if (rows->G[l].col[e] % L->wants == 0)
                    t->weight[rows->G[l].col[e] / L->wants] +=
                        d->D[i * L->components + l] * rows->G[l].val[e];
    }
    return KOFN_OK;
}

static kofn_matrix value_of(const kf_tally *t, const kofn_plan *plan, size_t j)
{
    kofn_dtype dtype = plan->layout.problem.dtype;

    assert(t->value);
    assert(j < t->parts);
    return (kofn_matrix){(char *)t->value +
                             j * plan->span * kf_dtype_size(dtype),
                         plan->span, 1, 1, dtype};
}

static const kf_back plainly = {.by = 1};

/* Remembers all results, or none if one is not finite. */
static kofn_status remember(kf_tally *t, const kofn_plan *plan,
                            const kofn_decoder *d, const kf_source *source)
{
    assert(t->age);
    for (size_t i = 0; i < d->seats; i++)
        TRY(kf_range_restore(source[i].result, &plainly));
    for (size_t j = 0; j < t->parts; j++)
        t->age[j]++;
    for (size_t i = 0; i < d->seats; i++) {
        size_t j = d->seat[i];
        kofn_matrix to = value_of(t, plan, j);

        memcpy(to.data, source[i].result->data,
               plan->span * kf_dtype_size(to.dtype));
        t->known[j] = true;
        t->age[j] = 0;
    }
    return KOFN_OK;
}

/* Part j is seat j, and a result is its value; the layout guarantees this. */
kofn_status kf_tally_recall(kf_tally *t, const kofn_plan *plan,
                            const kofn_decoder *d, const kf_source *source,
                            kofn_matrix *out)
{
    kofn_matrix *value = kf_new(t->parts, sizeof *value);
    kf_source *known = kf_new(t->parts, sizeof *known);
    kofn_status st = value && known ? remember(t, plan, d, source) : KOFN_NOMEM;
    size_t n = 0;

    assert(plan->layout.remembers);
    assert(plan->parts == t->parts);
    for (size_t j = 0; j < t->parts && !st; j++) {
        t->weight[j] = t->known[j];
        if (!t->known[j])
            continue;
        value[n] = value_of(t, plan, j);
        known[n] = (kf_source){&value[n], 0, plan->span};
        n++;
    }
    if (!st)
        st = kf_data_add_up(known, n, out);
    if (!st)
        st = kf_range_restore(out, &plainly);
    kf_free(value);
    kf_free(known);
    return st;
}
