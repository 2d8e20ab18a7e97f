/* describe.c -- what a plan needs and costs, and the noise it makes over
 * random losses. */
#include "code.h"

#include "base/rng.h"

#include <math.h>
#include <stdlib.h>

#define TRIALS 200
/* Multiply-adds that sampling may take in all: a second or two. */
#define SAMPLING 4e9

/* A uniformly random subset of k out of n, ascending (Floyd's algorithm would
 * do with fewer draws; n is small). */
static void random_subset(kf_rng *r, uint32_t *out, size_t k, size_t n)
{
    for (size_t i = 0, taken = 0; taken < k; i++)
        if (kf_rng_below(r, n - i) < k - taken)
            out[taken++] = (uint32_t)i;
}

static int ascending(const void *a, const void *b)
{
    double x, y;

    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

static size_t affordable(const kofn_layout *L)
{
    size_t lost = kf_min(L->seats - L->enough, L->enough) + 1;
    double m = (double)(lost * L->lanes);
    double cost = m * m * (m + 2 * (double)(L->enough * L->lanes));
    double n = SAMPLING / cost;

    return n > TRIALS ? TRIALS : n < 3 ? 3 : (size_t)n;
}

static kofn_status sample(const kofn_plan *p, kf_code *code, double *noise,
                          size_t trials)
{
    const kofn_layout *L = &p->layout;
    uint32_t *set = kf_new(L->enough, sizeof *set);
    kofn_status st = set ? KOFN_OK : KOFN_NOMEM;

    for (size_t t = 0; t < trials && !st; t++) {
        kf_rng r = kf_rng_stream(L->seed, KF_FOR_SAMPLE, (uint32_t)t, 0);
        kf_decoder *d;

        random_subset(&r, set, L->enough, L->seats);
        st = kf_decoder_new(&d, code, set, L->enough, false);
        noise[t] = st ? HUGE_VAL : d->noise;
        kf_decoder_free(d);
        if (st != KOFN_NOMEM)
            st = KOFN_OK; /* singular: as noisy as can be */
    }
    kf_free(set);
    return st;
}

static kofn_status measure_noise(const kofn_plan *p, kofn_plan_info *info)
{
    size_t trials = affordable(&p->layout);
    double *noise = kf_new(trials, sizeof *noise);
    kf_code *code = NULL;
    kofn_status st = noise ? kf_code_new(&code, p) : KOFN_NOMEM;

    if (!st)
        st = sample(p, code, noise, trials);
    if (!st) {
        qsort(noise, trials, sizeof *noise, ascending);
        info->noise50 = noise[trials / 2];
        info->noise99 = noise[trials - 1 - trials / 100];
    }
    kf_code_free(code);
    kf_free(noise);
    return st;
}

kofn_status kofn_plan_describe(const kofn_plan *p, bool noise,
                               kofn_plan_info *info)
{
    const kofn_layout *L = &p->layout;
    double blocks = (double)L->groups * (double)p->parts / (double)L->lanes;

    *info = (kofn_plan_info){
        .scheme = p->scheme->name,
        .spec = p->spec,
        .workers = p->workers,
        .block_rows = p->span * L->lanes,
        /* Losing more than this from the smallest group is losing it. */
        .threshold = p->workers - (p->workers / L->groups - L->threshold),
        .max_seats = L->max_seats == SIZE_MAX ? SIZE_MAX
                                              : L->max_seats * L->groups,
        .storage = 1 / blocks,
        .load = 1 / blocks,
        .noise50 = NAN,
        .noise99 = NAN,
    };
    if (p->scheme->deal)
        info->load *= (double)L->enough / (double)L->seats;
    return noise ? measure_noise(p, info) : KOFN_OK;
}
