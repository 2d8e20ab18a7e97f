/* replication.c -- k row bands, or parts of a sum, each on several workers; one
 * answer for each is enough.
 *
 * As a code: k groups of threshold 1.
 *
 * Owns nothing: rows are unit vectors. */
#include "code/author.h"

static const kofn_param params[] = {
    {"k", KOFN_AUTO, 1, 1000000, "row bands; auto: half the workers", 0},
    {0},
};

static kofn_status layout(kofn_layout *L)
{
    size_t n = L->workers;
    long k = kofn_arg(L, "k");

    if (k == KOFN_AUTO)
        k = (long)kf_ceil_div(n, 2);
    if ((size_t)k > n)
        return kofn_say(KOFN_INVAL,
                        "replication: k = %ld bands need as many workers, "
                        "there are %zu; ask for k <= %zu",
                        k, n, n);
    kofn_arg_choose(L, "k", k);
    if (L->problem.op == KOFN_SUM) {
        L->seats = L->max_seats = n;
        L->symbols = L->cut[0].rows = L->enough = (size_t)k;
        L->wants = 1;
        L->threshold = n - n / (size_t)k + 1;
        return KOFN_OK;
    }
    L->groups = (size_t)k;
    L->seats = kf_ceil_div(n, L->groups);
    L->enough = 1;
    return KOFN_OK;
}

static kofn_status seat(const kofn_layout *L, size_t i, double *E0, double *E1,
                        double *G)
{
    (void)E1;
    E0[i % L->cut[0].rows] = 1;
    if (L->problem.op == KOFN_SUM)
        G[i % L->symbols] = 1;
    return KOFN_OK;
}

static size_t part_of(const kofn_layout *L, size_t i)
{
    return i % L->symbols;
}

static kofn_status decode(const kofn_layout *L, const uint32_t *seats, size_t n,
                          double *D)
{
    return L->problem.op == KOFN_SUM
               ? kf_code_first_of_each(L, L->symbols, part_of, seats, n, D)
               : KOFN_UNSUITED;
}

const kofn_scheme kf_replication = {
    .size = sizeof(kofn_scheme),
    .name = "replication",
    .summary = "k row bands, each on n/k workers; the first answer counts",
    .cite = "the baseline of every paper",
    .ops = KOFN_MATVEC | KOFN_MATMUL | KOFN_SUM,
    .params = params,
    .layout = layout,
    .seat = seat,
    .decode = decode,
};
