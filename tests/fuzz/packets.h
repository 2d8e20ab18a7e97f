/* packets.h -- what the targets of the wire share: blocks and their recipes. */
#ifndef KF_FUZZ_PACKETS_H
#define KF_FUZZ_PACKETS_H

#include "draw.h"

#include "wire/wire.h"

/* ---- blocks -------------------------------------------------------------- */

#define BLOCKS 3

/* A dense block, a sparse one and a sum over rows. */
typedef struct sample {
    kofn_plan *plan;
    kf_resident resident;
    kf_code *code;
    kofn_block *block;
    kf_bytes recipe;
} sample;

static double numbers[64];

static inline void make_sample(sample *s, size_t which)
{
    static const char *const spec[BLOCKS] = {"mds:k=2", "elastic:k=2",
                                             "gc:d=2"};
    static const size_t ptr[] = {0, 2, 3, 3, 6, 7, 8, 9};
    static const uint32_t col[] = {0, 3, 1, 0, 1, 2, 4, 0, 4};
    const kofn_problem pb[BLOCKS] = {{KOFN_MATVEC, 7, 5, 1, KOFN_F64, false},
                                     {KOFN_MATVEC, 7, 5, 1, KOFN_F64, true},
                                     {KOFN_SUM, 6, 6, 1, KOFN_F64, false}};
    const kofn_matrix A = {numbers, 7, 5, 5, KOFN_F64};
    const kofn_sparse S = {7, 5, ptr, col, numbers};
    const size_t seat = 2;

    for (size_t i = 0; i < 64; i++)
        numbers[i] = (double)(i * 7 % 11) - 5;
    MUST(kofn_plan_new(&s->plan, &pb[which], spec[which], 3, 7) == KOFN_OK);
    if (which == 0)
        MUST(kf_resident_dense(&s->resident, s->plan, &A) == KOFN_OK);
    else if (which == 1)
        MUST(kf_resident_sparse(&s->resident, s->plan, &S) == KOFN_OK);
    else
        kf_resident_sum(&s->resident, s->plan);
    if (which == 2) {
        s->resident.formula = kofn_formulas;
        s->resident.arg[1] = 2;
        s->resident.X = A;
        s->resident.y = numbers + 40;
    }
    MUST(kf_resident_away(&s->resident) == KOFN_OK);
    MUST(kf_code_new(&s->code, s->plan) == KOFN_OK);
    MUST(kf_data_encode(&s->resident, s->code, &seat, 1, &s->block) == KOFN_OK);
    MUST(kf_recipe_write(s->block, "A.npy", &s->recipe) == KOFN_OK);
}

/* Made once and kept. */
static inline sample *samples(void)
{
    static sample s[BLOCKS];

    for (size_t i = 0; i < BLOCKS && !s[i].plan; i++)
        make_sample(&s[i], i);
    return s;
}

#endif
