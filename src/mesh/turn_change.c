/* turn_change.c -- the change of a matrix by a turn, as the program gives it,
 * scaled as the matrix is.
 *
 * The caller owns a change until it is done.
 */
#include "host.h"

#include "data/kernel.h"

#include <assert.h>

static kofn_status check_change(const kf_host *h, const kofn_change *c)
{
    TRY(kf_states_check_change(c));
    return c->states <= h->blocks.states
               ? KOFN_OK
               : kf_fail(KOFN_INVAL,
                         "a change with %zu optimizer states, and the program "
                         "says %zu (kofn_program.states)",
                         c->states, h->blocks.states);
}

kofn_status kf_turn_change_ask(const kf_host *h, uint64_t turn,
                               uint32_t operand, kf_turn_change *out)
{
    const kf_mesh_operand *o = &h->blocks.operand[operand];
    kofn_matrix *U = &out->to.U, *V = &out->to.V;
    kofn_status st;

    assert(operand < h->blocks.operands);
    assert(o->plan);
    *out = (kf_turn_change){.to.change = KOFN_CHANGE_INIT};
    TRY(h->program.change(h->program.ud, turn, operand, &h->it.v->m, &out->to));
    st = check_change(h, &out->to.change);
    if (!st)
        st = kf_data_check_change(&o->plan->layout.problem, U, V);
    if (st)
        return kf_fail_in(st, "turn %llu changes matrix %u",
                          (unsigned long long)turn, operand);
    return kf_equilibrate_change(&o->scaling, U, V, out->owned);
}

void kf_turn_change_done(kf_turn_change *a)
{
    kf_free(a->owned[0]);
    kf_free(a->owned[1]);
}
