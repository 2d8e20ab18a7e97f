/* reading.h -- whether the blocks of a matrix agree.
 *
 * A kf_reading owns its code and its lists until kf_reading_free; the numbers
 * of blocks are borrowed. */
#ifndef KF_READING_H
#define KF_READING_H

#include "compare.h"

/* A block for comparison. */
typedef struct kf_read {
    uint32_t from; /* sender, numbered by the caller */
    const void
        *state[KOFN_CHANGE_STATES + 1]; /* numbers of each; NULL: zeros */
} kf_read;

/* Blocks of a matrix for comparison: rows of the blocks, or products of the
 * blocks with one vector. */
typedef struct kf_reading {
    kofn_plan *plan; /* the plan for reading */
    kf_code *code;
    kf_cache *cache;
    uint32_t *seat; /* ascending; with their blocks */
    kf_read *block;
    size_t n;
    size_t states; /* the largest number of optimizer states of a block */
    kofn_matrix *rows;
    kf_source *source; /* rows of each block */
    double *col;       /* norms of the factors, per column */
    void *zeros;
    uint32_t *bad;    /* memory of a finding */
    size_t cols;      /* numbers of each row */
    kofn_dtype dtype; /* their type */
    /* By default whole blocks are compared.  The caller may set rows [lo, hi).
     * It sets `row`, the norms of the rows of the state, `changes`, and the
     * weights. */
    kf_compare check;
    kofn_errors errors; /* how blocks may be wrong                        */
    double hidden;      /* largest error that may stay undetected */
} kf_reading;

/* Allocates room for `room` blocks. Free it even after a failure. */
kofn_status kf_reading_new(kf_reading *r, const kofn_plan *of, size_t room);
void kf_reading_free(kf_reading *r);
/* Adds a block with borrowed numbers.  If a seat has two blocks the first
 * counts. */
void kf_reading_add(kf_reading *r, uint32_t seat, kf_read block);
/* Draws the weights of a sketch, between 1/2 and 1 of either sign; returns
 * their norm. */
double kf_reading_weigh(kf_rng r, double *w, size_t n);
/* Computes a sketch of a state of a block: the product of each row with these
 * weights, always in float64. */
void kf_reading_sketch(const kf_block *b, size_t state, const double *w,
                       double *to);
/* Sketches are added instead of blocks, by weights of this norm. */
void kf_reading_of_sketches(kf_reading *r, double norm);
/* Compares a state of the blocks.  KOFN_OK: all agree except those
 * found.  KOFN_CORRUPT: they disagree, and not all wrong blocks are found.
 * KOFN_TOOFEW: more blocks are needed. */
kofn_status kf_reading_judge(kf_reading *r, size_t state, kf_found *found);

#endif
