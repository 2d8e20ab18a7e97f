/* print.c -- fingerprints of vectors, by which a node confirms the iterate of
 * another: sums with weights that follow from a key (src/verify/sums.h).
 *
 * Pure functions of vectors.
 */
#include "host.h"

#include <math.h>

/* Allowed differences, relative to the sum of the magnitudes of all entries.
 * Honest nodes may differ by more if the code is noisy: then none confirms, and
 * nothing is taken.  If nodes vote (ballot.c), fingerprints may differ by no
 * more than votes.  Otherwise a node could take a vector with an error that is
 * too small to be seen here, and the vote would blame it. */
#define MAY_DIFFER 1e-11
#define MAY_DIFFER_F32 1e-4

double kf_print_may_differ(const kf_mesh_work *work)
{
    return work->single ? MAY_DIFFER_F32 : MAY_DIFFER;
}

/* Returns the difference of fingerprints that a vote about the vector allows.
 * There is no limit without votes, or for a node that has decoded nothing and
 * so does not know the noise of the code. */
double kf_print_room(const kf_host *h, const double *body)
{
    size_t numbers = KOFN_SCALARS + h->it.v->m.rows;

    return h->opt.errors == KOFN_ERRORS_NONE || h->it.noise <= 0
               ? HUGE_VAL
               : kf_host_room(h, numbers, kf_sums_greatest(body, numbers, 0));
}

double kf_print_local(const kf_mesh_iterate *it, uint64_t key)
{
    return kf_sums_print(key, it->scalar, KOFN_SCALARS, it->v->m.data,
                         it->v->m.rows)
        .sum;
}
