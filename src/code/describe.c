/* describe.c -- the needs and costs of a plan, and its noise over random
 * losses.
 *
 * Owns nothing beyond a call.  Random losses come from a named random stream,
 * so a plan has the same description everywhere. */
#include "code.h"

#include "base/rng.h"
#include "operation.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#define TRIALS 200
/* Total multiply-adds for sampling: a second or two. */
#define SAMPLING 4e9

/* Draws a uniformly random subset of k out of n, ascending (Floyd's algorithm
 * needs fewer draws, but n is small). */
static void random_subset(kf_rng *r, uint32_t *out, size_t k, size_t n)
{
    assert(k <= n);
    for (size_t i = 0, taken = 0; taken < k; i++)
        if (kf_rng_below(r, n - i) < k - taken)
            out[taken++] = (uint32_t)i;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Computes the number of survivor sets for which decoders are affordable.  A
 * systematic code solves for the lost symbols, another code for all symbols. */
static kofn_status affordable(const kofn_layout *L, kf_code *code,
                              size_t *trials)
{
    size_t lost = L->seats > L->threshold
                      ? kf_min(L->seats - L->threshold, L->enough) + 1
                      : 1;
    double m = (double)(lost * L->components), n;
    const kf_seat *first;

    TRY(kf_code_seat(code, 0, &first));
    if (L->W || first->G[0].n > 1)
        m = (double)L->symbols;
    if (code->plan->scheme->decode) /* faster than least squares */
        n = SAMPLING / (double)(L->wants * L->threshold * L->components) /
            (double)(first->G[0].n + 100);
    else
        n = SAMPLING /
            (m * m * (m + 2 * (double)(L->threshold * L->components)));
    *trials = n > TRIALS ? TRIALS : n < 3 ? 3 : (size_t)n;
    return KOFN_OK;
}

/* Returns a number K such that any K seats with all their submessages decode.
 */
static size_t seats_enough(const kofn_layout *L)
{
    return kf_ceil_div(L->threshold, L->submessages);
}

/* Lists the first `each` submessages of these seats as answers. */
static void answers_of(const uint32_t *seat, size_t seats, size_t each,
                       size_t submessages, uint32_t *answer)
{
    assert(each <= submessages);
    for (size_t i = 0; i < seats; i++)
        for (size_t t = 0; t < each; t++)
            answer[i * each + t] =
                seat[i] * (uint32_t)submessages + (uint32_t)t;
}

/* Computes the noise if only these seats answer, each with the least number of
 * submessages that decodes.  Smaller numbers fail quickly. */
static kofn_status noise_of(const kofn_layout *L, kf_code *code,
                            const uint32_t *seat, size_t seats,
                            uint32_t *answer, double *noise)
{
    size_t each = kf_ceil_div(L->enough, L->seats);
    kofn_decoder *d = NULL;
    kofn_status st;

    assert(seats > 0);
    do {
        answers_of(seat, seats, each, L->submessages, answer);
        st = kf_decoder_new(&d, code, answer, seats * each, false);
    } while (st == KOFN_TOOFEW && ++each <= L->submessages);
    *noise = st ? HUGE_VAL : d->noise; /* singular: infinite noise */
    kf_decoder_free(d);
    return st == KOFN_NOMEM ? st : KOFN_OK;
}

static kofn_status sample(const kofn_plan *p, kf_code *code, double *noise,
                          size_t trials)
{
    const kofn_layout *L = &p->layout;
    size_t seats = seats_enough(L);
    kf_arrays a = {0};
    uint32_t *seat = kf_arrays_new(&a, seats, sizeof *seat);
    uint32_t *answer =
        kf_arrays_new(&a, seats * L->submessages, sizeof *answer);
    kofn_status st = kf_arrays_status(&a);

    assert(trials <= TRIALS);
    for (size_t t = 0; t < trials && !st; t++) {
        kf_rng r = kf_rng_stream(L->seed, KF_FOR_SAMPLE, (uint32_t)t, 0);

        random_subset(&r, seat, seats, L->seats);
        st = noise_of(L, code, seat, seats, answer, &noise[t]);
    }
    kf_arrays_free(&a);
    return st;
}

static kofn_status measure_noise(const kofn_plan *p, kofn_plan_info *info)
{
    double noise[TRIALS];
    size_t trials = 0;
    kf_code *code;
    kofn_status st = kf_code_new(&code, p);

    if (!st)
        st = affordable(&p->layout, code, &trials);
    if (!st)
        st = sample(p, code, noise, trials);
    if (!st) {
        qsort(noise, trials, sizeof *noise, ascending);
        info->noise50 = noise[trials / 2];
        info->noise99 = noise[trials - 1 - trials / 100];
    }
    kf_code_free(code);
    return st;
}

/* Measures costs as fractions of one computer's work with whole operands.  An
 * adjoint code sends mixed strips and receives answers of full size.  For A' A
 * x both have full size. */
static void measure_shares(const kofn_plan *p, kofn_plan_info *info)
{
    const kofn_layout *L = &p->layout;
    bool left = p->op->left;
    double products = (double)(L->components * L->inner);
    double blocks = (double)(L->groups * p->parts);
    /* number of parts along the sides, of the input and of A, that the output
     * has */
    double wide = (double)(left ? L->cut[1].rows : L->cut[1].cols);
    double tall =
        left ? (double)L->cut[0].cols : (double)(L->groups * L->cut[0].rows);
    double dealt = p->scheme->deal ? (double)L->enough / (double)L->seats : 1;

    info->storage = products / blocks;
    info->load = products / blocks / wide * dealt;
    info->upload =
        L->adjoint ? dealt / blocks : (double)L->inner / (double)p->parts1;
    info->answer = L->adjoint ? 1 : (double)L->components / tall / wide * dealt;
    if (p->op->stream) /* blocks are sent for one product and not kept */
        info->storage = 0;
    if (p->op->whole)
        info->upload = info->answer = 1;
}

/* Measures fractions of the parts, and of a vector.  If seats answer in
 * submessages, it assumes no stragglers. */
static kofn_status measure_sum(const kofn_plan *p, kofn_plan_info *info)
{
    const kofn_layout *L = &p->layout;
    double submessages = (double)kf_ceil_div(L->enough, L->seats);
    const kf_seat *first;
    kf_code *code;
    kofn_status st = kf_code_new(&code, p);

    if (!st)
        st = kf_code_seat(code, 0, &first);
    if (!st) {
        info->parts = p->parts;
        info->storage = (double)first->E0[0].n / (double)p->parts;
        info->load = info->storage;
        info->upload = 1;
        info->answer = submessages * (double)(L->components * p->span) /
                       (double)L->problem.m;
        info->block_rows = L->components * p->span;
    }
    kf_code_free(code);
    return st;
}

/* Returns the threshold.  The worst case loses all spare seats of the smallest
 * group and one more. */
static size_t threshold_of(const kofn_plan *p)
{
    const kofn_layout *L = &p->layout;

    return p->workers - (p->workers / L->groups - seats_enough(L));
}

kofn_status kofn_plan_describe(const kofn_plan *p, bool noise,
                               kofn_plan_info *info)
{
    const kofn_layout *L = &p->layout;
    size_t rows, cols, left = p->left ? threshold_of(p->left) : 0;
    kofn_plan_info all;

    TRY(kf_begun(info, "KOFN_PLAN_INFO_INIT"));
    kf_operation_block(L, &rows, &cols);
    all = (kofn_plan_info){
        .size = sizeof all,
        .scheme = p->scheme->name,
        .spec = p->spec,
        .workers = p->workers,
        .block_rows = L->components * rows,
        .threshold = kf_max(threshold_of(p), left),
        .max_seats =
            L->max_seats == SIZE_MAX ? SIZE_MAX : L->max_seats * L->groups,
        .delay = L->delay,
        .slots = L->slots,
        .noise50 = NAN,
        .noise99 = NAN,
    };
    if (p->op->factors == 0)
        TRY(measure_sum(p, &all));
    else
        measure_shares(p, &all);
    if (noise)
        TRY(measure_noise(p, &all));
    kf_give(info, &all, sizeof all);
    return KOFN_OK;
}
