/* replication.c -- k row bands, each on several workers; one answer a band.
 *
 * As a code: k groups of threshold 1.
 */
#include <kofn/scheme.h>

static const kofn_param params[] = {
    {"k", KOFN_AUTO, 1, 1000000, "row bands; auto: half the workers", 0},
    {0},
};

static kofn_status layout(kofn_layout *L)
{
    size_t n = kofn_arg_workers(L);
    long k = kofn_arg(L, "k");

    if (k == KOFN_AUTO)
        k = (long)((n + 1) / 2);
    if ((size_t)k > n)
        return kofn_refuse("replication: k = %ld bands need as many workers, "
                           "there are %zu; ask for k <= %zu", k, n, n);
    kofn_arg_settle(L, "k", k);
    L->groups = (size_t)k;
    L->seats = (n + L->groups - 1) / L->groups;
    L->enough = 1;
    return KOFN_OK;
}

static kofn_status seat(const kofn_layout *L, size_t i, double *E0, double *E1,
                        double *G)
{
    (void)L, (void)i, (void)E1, (void)G;
    E0[0] = 1;
    return KOFN_OK;
}

const kofn_scheme kf_replication = {
    .name = "replication",
    .summary = "k row bands, each on n/k workers; the first answer counts",
    .cite = "the baseline of every paper",
    .ops = KOFN_MATVEC | KOFN_MATMUL,
    .params = params,
    .layout = layout,
    .seat = seat,
};
