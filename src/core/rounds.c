/* rounds.c -- the products that are open, or just over.
 *
 * Owns the list of rounds, in the order in which they began, and one spare for
 * its memory.  An open round is never forgotten. */
#include "state.h"

#include <assert.h>

kf_round *kf_core_find_round(const kofn_core *c, uint32_t product)
{
    for (size_t i = c->rounds; i > 0; i--)
        if (c->round[i - 1]->p.number == product)
            return c->round[i - 1];
    return NULL;
}

size_t kf_core_open_rounds(const kofn_core *c)
{
    size_t n = 0;

    for (size_t i = 0; i < c->rounds; i++)
        n += kf_is_open(c->round[i]);
    return n;
}

/* Forgets rounds that are over; the memory of one is kept. */
void kf_core_forget_over(kofn_core *c)
{
    size_t kept = 0;

    for (size_t i = 0; i < c->rounds; i++) {
        kf_round *r = c->round[i];

        if (kf_is_open(r)) {
            c->round[kept++] = r;
            continue;
        }
        kf_round_free(c->spare);
        c->spare = r;
    }
    c->rounds = kept;
}

kofn_status kf_core_add_round(kofn_core *c)
{
    kf_round *r = c->spare;

    c->spare = NULL;
    if (!r)
        TRY(kf_round_new(&r, c->fleet.groups));
    if (kf_round_know(r, c->fleet.workers) ||
        kf_grow(&c->round, &c->round_cap, c->rounds, sizeof *c->round)) {
        c->spare = r;
        return KOFN_NOMEM;
    }
    assert(!kf_is_open(r) && r->busy == 0);
    for (size_t i = 0; i < r->workers; i++) {
        r->rows[i] = 0;
        r->load[i] = (kf_load){.again = KF_NO_ROW};
    }
    c->round[c->rounds++] = r;
    return KOFN_OK;
}
