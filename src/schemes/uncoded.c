/* uncoded.c -- each row band, or part of a sum, once, one worker each; all
 * must answer.
 *
 * Owns nothing: rows are unit vectors.  The scheme to copy for a new one. */
#include <kofn/scheme.h>

static const kofn_param params[] = {
    {0},
};

/* Lays out a group for each row band; of a stream, and of a sum, one code of
 * all bands or parts, which are each a seat's. */
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

/* Part i; of a group the one there is. */
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
