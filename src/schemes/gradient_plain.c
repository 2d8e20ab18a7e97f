/* gradient_plain.c -- sums of gradients without coefficients.
 *
 *     bcc     Li, Mousavi Kalan, Avestimehr, Soltanolkotabi, "Near-optimal
 *             straggler mitigation for distributed gradient methods", 2018
 *             (batched coupon's collector).  Every worker sums up one of
 *             c = ceil(n/r) batches, drawn at random.  The first answer of
 *             each batch counts.
 *     ignore  Missing workers are left out and the sum is scaled up.
 *     distr-bgd
 *             A missing worker counts with its last answer (Narayanamurthy,
 *             Weimer, Mahajan, Condie, Sellamanickam, Keerthi, "Towards
 *             resource-elastic machine learning", 2013).
 *
 * The results of ignore and distr-bgd are not the exact sum.  Such a result
 * must be delivered as KOFN_PARTIAL.
 *
 * Its state belongs to the layout. */
#include "gradient.h"

/* Number of random placements to try before failing. */
#define PLACEMENTS 10000

kofn_status
kf_gradient_first_of_each(const kofn_layout *L, size_t classes,
                          size_t (*class_of)(const kofn_layout *, size_t),
                          const uint32_t *seats, size_t n, double *D)
{
    bool *seen;
    size_t missing = classes;

    TRY_ZERO(seen, classes);
    for (size_t i = 0; i < n; i++) {
        size_t c = class_of(L, seats[i]);

        D[i] = !seen[c];
        missing -= !seen[c];
        seen[c] = true;
    }
    kofn_free(seen);
    if (missing == 0)
        return KOFN_OK;
    return kf_fail(KOFN_TOOFEW, "no worker answered for %zu of %zu batches",
                   missing, classes);
}

/* ---- bcc ----------------------------------------------------------------- */

static const kofn_param bcc_params[] = {
    {"r", KOFN_AUTO, 1, 1000000,
     "parts that each worker computes; auto: a quarter of them", NULL},
    {0},
};

typedef struct placement {
    uint64_t seed;
    size_t batches, fewest; /* seats that hold the rarest batch */
} placement;

static size_t batch_of(const kofn_layout *L, size_t seat)
{
    const placement *p = L->state;

    return (size_t)(kf_mix64(kf_state64(p->seed, seat + 1)) % p->batches);
}

/* Returns the number of seats of the rarest batch. */
static size_t rarest(const kofn_layout *L, size_t *count)
{
    const placement *p = L->state;
    size_t fewest = L->seats;

    memset(count, 0, p->batches * sizeof *count);
    for (size_t i = 0; i < L->seats; i++)
        count[batch_of(L, i)]++;
    for (size_t b = 0; b < p->batches; b++)
        fewest = kf_min(fewest, count[b]);
    return fewest;
}

/* Draws a placement in which each batch has a seat; else a round would wait for
 * ever. */
static kofn_status place(kofn_layout *L, size_t r)
{
    placement *p = L->state;
    size_t *count;

    TRY_NEW(count, p->batches);
    for (size_t k = 0; k < PLACEMENTS && p->fewest == 0; k++) {
        p->seed = kf_mix64(kf_state64(L->seed, k + 1));
        p->fewest = rarest(L, count);
    }
    kofn_free(count);
    return p->fewest ? KOFN_OK
                     : kofn_say(KOFN_INVAL,
                                "bcc: of %d placements of %zu batches on %zu "
                                "workers none gave every batch to a worker; "
                                "ask for r > %zu",
                                PLACEMENTS, p->batches, L->seats, r);
}

static kofn_status bcc_layout(kofn_layout *L)
{
    size_t n = L->workers, r;
    long given = kofn_arg(L, "r");
    placement *p;
    kofn_status st;

    TRY_ZERO(p, 1);
    L->state = p;
    L->free_state = kofn_free;
    r = given == KOFN_AUTO ? kf_ceil_div(n, 4) : (size_t)given;
    if (r > n)
        return kofn_say(KOFN_INVAL,
                        "bcc: r = %zu parts for each of %zu workers; there "
                        "are as many parts as workers: ask for r <= %zu",
                        r, n, n);
    kofn_arg_choose(L, "r", (long)r);
    p->batches = kf_ceil_div(n, r);
    L->seats = L->max_seats = n;
    L->cut[0] = (kofn_cut){n, 1};
    L->wants = 1;
    L->symbols = n;
    st = place(L, r);
    L->enough = p->batches;
    L->threshold = n - p->fewest + 1;
    return st;
}

static kofn_status bcc_seat(const kofn_layout *L, size_t seat, double *E0,
                            double *E1, double *G)
{
    size_t r = (size_t)kofn_arg(L, "r"), from = batch_of(L, seat) * r;

    (void)E1;
    for (size_t j = from; j < from + r && j < L->symbols; j++)
        E0[j] = G[j] = 1;
    return KOFN_OK;
}

static kofn_status bcc_decode(const kofn_layout *L, const uint32_t *seats,
                              size_t n, double *D)
{
    const placement *p = L->state;

    return kf_gradient_first_of_each(L, p->batches, batch_of, seats, n, D);
}

const kofn_scheme kf_bcc = {
    .size = sizeof(kofn_scheme),
    .name = "bcc",
    .summary = "sums of gradients; batches drawn at random, one answer of each",
    .cite = "Li et al. 2018, arXiv:1710.09990",
    .ops = KOFN_SUM,
    .params = bcc_params,
    .layout = bcc_layout,
    .seat = bcc_seat,
    .decode = bcc_decode,
};

/* ---- whoever is there ---------------------------------------------------- */

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
