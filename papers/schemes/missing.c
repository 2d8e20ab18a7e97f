/* missing.c -- sums of gradients of those who answer; nothing is coded.
 *
 *     ignore  Missing workers are left out and the sum is scaled up.
 *     distr-bgd
 *             A missing worker counts with its last answer (Narayanamurthy,
 *             Weimer, Mahajan, Condie, Sellamanickam, Keerthi, "Towards
 *             resource-elastic machine learning", 2013).
 *
 * Such a result is not the exact sum.  It must be delivered as KOFN_PARTIAL.
 *
 * Owns nothing: rows are unit vectors. */
#include "schemes.h"

#define WAIT_PARAM                                                             \
    "wait", KOFN_AUTO, 1, 1000000,                                             \
        "answers to wait for; auto: those of all who are live and not late",   \
        NULL

static const kofn_param ignore_params[] = {
    {WAIT_PARAM},
    {"scale", 1, 0, 0,
     "up: the sum is multiplied by parts/answers, so that it is right on the "
     "average; none: as it is",
     "none|up"},
    {0},
};

static const kofn_param distr_bgd_params[] = {
    {WAIT_PARAM},
    {0},
};

static kofn_status wait_layout(kofn_layout *L, const char *who)
{
    size_t n = L->workers;
    long wait = kofn_arg(L, "wait");

    if (wait != KOFN_AUTO && (size_t)wait > n)
        return kofn_say(KOFN_INVAL,
                        "%s: wait = %ld answers of %zu workers; ask for "
                        "wait <= %zu",
                        who, wait, n, n);
    L->everybody = wait == KOFN_AUTO;
    L->enough = L->everybody ? 1 : (size_t)wait;
    L->seats = L->max_seats = L->symbols = n;
    L->cut[0] = (kofn_cut){n, 1};
    L->wants = 1;
    return KOFN_OK;
}

static kofn_status ignore_layout(kofn_layout *L)
{
    return wait_layout(L, "ignore");
}

static kofn_status distr_bgd_layout(kofn_layout *L)
{
    L->remembers = true;
    return wait_layout(L, "distr-bgd");
}

static kofn_status own_part(const kofn_layout *L, size_t seat, double *E0,
                            double *E1, double *G)
{
    (void)L;
    (void)E1;
    E0[seat] = G[seat] = 1;
    return KOFN_OK;
}

static kofn_status sum_of_some(const kofn_layout *L, size_t n, double weight,
                               double *D)
{
    for (size_t i = 0; i < n; i++)
        D[i] = weight;
    return n < L->seats ? KOFN_PARTIAL : KOFN_OK;
}

static kofn_status ignore_decode(const kofn_layout *L, const uint32_t *seats,
                                 size_t n, double *D)
{
    bool up = kofn_arg(L, "scale") == 1;

    (void)seats;
    return sum_of_some(L, n, up ? (double)L->seats / (double)n : 1, D);
}

static kofn_status distr_bgd_decode(const kofn_layout *L, const uint32_t *seats,
                                    size_t n, double *D)
{
    (void)seats;
    return sum_of_some(L, n, 1, D);
}

const kofn_scheme kf_ignore = {
    .size = sizeof(kofn_scheme),
    .name = "ignore",
    .summary = "sums of gradients; those who are missing are left out",
    .cite = "the baseline of Tandon et al. 2017, arXiv:1612.03301",
    .ops = KOFN_SUM,
    .params = ignore_params,
    .layout = ignore_layout,
    .seat = own_part,
    .decode = ignore_decode,
};

const kofn_scheme kf_distr_bgd = {
    .size = sizeof(kofn_scheme),
    .name = "distr-bgd",
    .summary = "sums of gradients; those who are missing count as last known",
    .cite = "Narayanamurthy et al. 2013, elastic distributed batch gradient "
            "descent",
    .ops = KOFN_SUM,
    .params = distr_bgd_params,
    .layout = distr_bgd_layout,
    .seat = own_part,
    .decode = distr_bgd_decode,
};
