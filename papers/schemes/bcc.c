/* bcc.c -- sums of gradients; batches drawn at random (batched coupon's
 * collector: Li, Mousavi Kalan, Avestimehr, Soltanolkotabi, "Near-optimal
 * straggler mitigation for distributed gradient methods", 2018).
 *
 * Every worker sums up one of c = ceil(n/r) batches.  The first answer of each
 * batch counts.
 *
 * Its state, the placement, belongs to the layout. */
#include "code/author.h"
#include "schemes.h"

/* Number of random placements to try before failing. */
#define PLACEMENTS 10000

static const kofn_param params[] = {
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

static kofn_status layout(kofn_layout *L)
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

static kofn_status seat(const kofn_layout *L, size_t at, double *E0, double *E1,
                        double *G)
{
    size_t r = (size_t)kofn_arg(L, "r"), from = batch_of(L, at) * r;

    (void)E1;
    for (size_t j = from; j < from + r && j < L->symbols; j++)
        E0[j] = G[j] = 1;
    return KOFN_OK;
}

static kofn_status decode(const kofn_layout *L, const uint32_t *seats, size_t n,
                          double *D)
{
    const placement *p = L->state;

    return kf_code_first_of_each(L, p->batches, batch_of, seats, n, D);
}

const kofn_scheme kf_bcc = {
    .size = sizeof(kofn_scheme),
    .name = "bcc",
    .summary = "sums of gradients; batches drawn at random, one answer of each",
    .cite = "Li et al. 2018, arXiv:1710.09990",
    .ops = KOFN_SUM,
    .params = params,
    .layout = layout,
    .seat = seat,
    .decode = decode,
};
