/* mds.c -- any k of n (Lee, Lam, Pedarsani, Papailiopoulos, Ramchandran,
 * "Speeding up distributed machine learning using codes", 2018).
 *
 * A is cut into k row blocks; a seat stores a combination of them.  Every
 * seat works on everything, and the first k answers to a strip decode it.
 *
 * Owns nothing: rows are those of code/basis.c.
 */
#include "code/author.h"

#include <kofn/scheme.h>

static const kofn_param params[] = {
    KF_BASIS_PARAMS,
    {0},
};

/* A quarter of the workers may be slow or lost, at most 16: so far the
 * accuracy of the default basis is proven for any losses whatever. */
static kofn_status layout(kofn_layout *L)
{
    size_t n = kofn_arg_workers(L), spare = n < 8 ? n / 2 : n / 4;

    return kf_basis_layout(L, n, 1, spare < 16 ? spare : 16);
}

const kofn_scheme kf_mds = {
    .size = sizeof(kofn_scheme),
    .name = "mds",
    .summary = "any k of n answers; stragglers are not waited for",
    .cite = "Lee et al. 2018, arXiv:1512.02673",
    .ops = KOFN_MATVEC | KOFN_MATMUL,
    .params = params,
    .layout = layout,
    .seat = kf_basis_seat,
};
