/* mds.c -- any k of n (Lee, Lam, Pedarsani, Papailiopoulos, Ramchandran,
 * "Speeding up distributed machine learning using codes", 2018).
 *
 * A is cut into k row blocks, and a seat stores a combination of them.  Every
 * seat computes all its strips, and the first k answers to a strip decode it.
 *
 * Owns nothing: the rows come from code/basis.c. */
#include "code/author.h"

static const kofn_param params[] = {
    KF_BASIS_PARAMS,
    {0},
};

static kofn_status layout(kofn_layout *L)
{
    size_t n = L->workers;

    return kf_basis_layout(L, n, 1, kf_code_spare(n));
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
