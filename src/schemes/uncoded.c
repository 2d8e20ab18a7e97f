/* uncoded.c -- each row band, or part of a sum, on one worker.  All workers
 * must answer.
 *
 * Owns nothing: rows are unit vectors.  Copy this file to write a new scheme.
 */
#include <kofn/scheme.h>

static const kofn_param params[] = {
    {0},
};

/* Lays out one group for each row band.  A stream and a sum have one code of
 * all bands or parts, one on each seat. */
static kofn_status layout(kofn_layout *L)
{
    size_t n = L->workers;

    if (L->problem.op != KOFN_SUM && L->problem.op != KOFN_STREAM) {
        L->groups = n;
        L->enough = 1;
        return KOFN_OK;
    }
    L->seats = L->max_seats = L->enough = L->cut[0].rows = n;
    if (L->problem.op == KOFN_SUM) {
        L->symbols = n;
        L->wants = 1;
    }
    return KOFN_OK;
}

/* Part i; the only part of a group. */
static kofn_status seat(const kofn_layout *L, size_t i, double *E0, double *E1,
                        double *G)
{
    (void)E1;
    E0[i % L->cut[0].rows] = 1;
    if (L->problem.op == KOFN_SUM)
        G[i] = 1;
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
