/* uncoded.c -- each row band, or part of a sum, once, one worker each; all
 * must answer.
 *
 * Owns nothing: rows are unit vectors.  The scheme to copy for a new one. */
#include <kofn/scheme.h>

static const kofn_param params[] = {
    {0},
};

static kofn_status sum_layout(kofn_layout *L)
{
    L->seats = L->max_seats = L->enough = kofn_arg_workers(L);
    L->symbols = L->cut[0].rows = L->seats;
    L->wants = 1;
    return KOFN_OK;
}

/* Lays out one code of all row bands: any worker may compute any of them. */
static kofn_status stream_layout(kofn_layout *L)
{
    L->seats = L->max_seats = L->enough = kofn_arg_workers(L);
    L->cut[0].rows = L->seats;
    return KOFN_OK;
}

static kofn_status layout(kofn_layout *L)
{
    if (L->problem.op == KOFN_SUM)
        return sum_layout(L);
    if (L->problem.op == KOFN_STREAM)
        return stream_layout(L);
    L->groups = kofn_arg_workers(L);
    L->enough = 1;
    return KOFN_OK;
}

static kofn_status seat(const kofn_layout *L, size_t i, double *E0, double *E1,
                        double *G)
{
    (void)E1;
    if (L->problem.op == KOFN_SUM)
        E0[i] = G[i] = 1;
    else if (L->problem.op == KOFN_STREAM)
        E0[i] = 1;
    else
        E0[0] = 1;
    return KOFN_OK;
}

static kofn_status decode(const kofn_layout *L, const uint32_t *seats, size_t n,
                          double *D)
{
    (void)seats;
    if (L->problem.op != KOFN_SUM)
        return KOFN_UNSUITED;
    for (size_t i = 0; i < n; i++)
        D[i] = 1;
    return KOFN_OK;
}

const kofn_scheme kf_uncoded = {
    .size = sizeof(kofn_scheme),
    .name = "uncoded",
    .summary = "each row band on one worker; all must answer",
    .cite = "the baseline of every paper",
    .ops = KOFN_MATVEC | KOFN_MATMUL | KOFN_SUM | KOFN_STREAM,
    .params = params,
    .layout = layout,
    .seat = seat,
    .decode = decode,
};
