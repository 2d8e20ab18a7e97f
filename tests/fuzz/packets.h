/* packets.h -- has what targets of the wire share: blocks and their
 * specifications. */
#ifndef KF_FUZZ_PACKETS_H
#define KF_FUZZ_PACKETS_H

#include "draw.h"

#include "base/hash.h"
#include "wire/wire.h"

/* ---- blocks -------------------------------------------------------------- */

#define BLOCKS 6

/* Sample blocks: dense, sparse, sums over rows, single precision for left
 * products, sparse for A' A x, and dense with a second, changed operand. */
typedef struct sample {
    kofn_plan *plan;
    kf_resident resident;
    kf_code *code;
    kf_block *block;
    kf_bytes block_spec;
} sample;

static double numbers[64];

static inline void make_sample(sample *s, size_t which)
{
    static const char *const spec[BLOCKS] = {"mds:k=2", "elastic:k=2",
                                             "gc:d=2",  "elastic:k=2",
                                             "pcr:r=2", "mds:k=2"};
    static const size_t ptr[] = {0, 2, 3, 3, 6, 7, 8, 9};
    static const uint32_t col[] = {0, 3, 1, 0, 1, 2, 4, 0, 4};
    const kofn_problem pb[BLOCKS] = {
        KOFN_PROBLEM_INIT(KOFN_MATVEC, 7, 5, 1, KOFN_F64, false),
        KOFN_PROBLEM_INIT(KOFN_MATVEC, 7, 5, 1, KOFN_F64, true),
        KOFN_PROBLEM_INIT(KOFN_SUM, 6, 6, 1, KOFN_F64, false),
        KOFN_PROBLEM_INIT(KOFN_LEFT, 7, 5, 1, KOFN_F32, false),
        KOFN_PROBLEM_INIT(KOFN_GRAM, 7, 5, 1, KOFN_F64, true),
        KOFN_PROBLEM_INIT(KOFN_MATVEC, 7, 5, 1, KOFN_F64, false)};
    const kofn_matrix A = {numbers, 7, 5, 5, KOFN_F64};
    const kofn_matrix narrow = {numbers, 7, 5, 5, KOFN_F32};
    const kofn_sparse S = {7, 5, ptr, col, numbers};
    const size_t seat = 2;

    for (size_t i = 0; i < 64; i++)
        numbers[i] = (double)(i * 7 % 11) - 5;
    MUST(kofn_plan_new(&s->plan, &pb[which], spec[which], 3, 7) == KOFN_OK);
    if (which == 0 || which == 5)
        MUST(kf_resident_dense(&s->resident, s->plan, &A) == KOFN_OK);
    else if (which == 3)
        MUST(kf_resident_dense(&s->resident, s->plan, &narrow) == KOFN_OK);
    else if (which != 2)
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
    if (which == 5)
        MUST(kf_data_empty_blocks(&s->resident, s->code, &seat, 1,
                                  &s->block->next) == KOFN_OK);
    MUST(kf_block_spec_write(s->block, "A.npy", &s->block_spec) == KOFN_OK);
}

/* Sets the sizes of a task's input and result. Its `how` and strips are known.
 * `components` are those of the block, and `wide` is the number of vectors.
 * Products may wrap round. */
static inline void fair_task(kf_head *h, uint64_t components, uint64_t rows,
                             uint64_t cols, uint64_t wide)
{
    uint64_t strips = components * (h->hi - h->lo);
    const uint64_t size[][4] = {
        [KF_HOW_ROWS] = {cols, wide, strips, wide},
        [KF_HOW_LEFT_ROWS] = {h->hi, rows, strips, cols},
        [KF_HOW_INNER] = {components * cols, wide, rows, wide},
        [KF_HOW_LEFT_INNER] = {wide, components * rows, wide, cols},
        [KF_HOW_GRAM] = {cols, 1, cols, 1},
        [KF_HOW_SUBMESSAGE] = {cols, wide, strips, 1},
        [KF_HOW_READ] = {1, 1, strips, cols}};

    h->rows = size[h->how][0];
    h->cols = size[h->how][1];
    h->out_rows = size[h->how][2];
    h->out_cols = size[h->how][3];
}

/* Returns the samples, which are made once. */
static inline sample *samples(void)
{
    static sample s[BLOCKS];

    for (size_t i = 0; i < BLOCKS && !s[i].plan; i++)
        make_sample(&s[i], i);
    return s;
}

#endif
