/* uncoded.c -- each row band once, one worker each; all must answer. */
#include <kofn/scheme.h>

static const kofn_param params[] = {
    {0},
};

static kofn_status layout(kofn_layout *L)
{
    L->groups = kofn_arg_workers(L);
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

const kofn_scheme kf_uncoded = {
    .name = "uncoded",
    .summary = "each row band on one worker; all must answer",
    .cite = "the baseline of every paper",
    .ops = KOFN_MATVEC | KOFN_MATMUL,
    .params = params,
    .layout = layout,
    .seat = seat,
};
