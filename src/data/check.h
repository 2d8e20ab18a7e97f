/* check.h -- from results to a verdict: do they agree, and if not, who is
 * corrupt?
 *
 * Results and weights are borrowed; what a check finds goes into the caller's
 * arrays.  Nothing here excludes a worker. */
#ifndef KF_CHECK_H
#define KF_CHECK_H

#include "data.h"

/* A check of one cell: the results that have come for strips [lo, hi) of one
 * group.
 *
 * Entry (i, c) of a result is a dot product, and by Cauchy and Schwarz no
 * larger than the weight of its seat times row[i] col[c].  In A B row[i]^2
 * sums row i over the parts of A and col[c]^2 column c over those of the
 * input; in B A the factors change places. */
typedef struct kf_check {
    const kofn_plan *plan;
    kf_code *code;
    const kofn_decoder *decoder; /* whose seats answered                      */
    const double *H;             /* their parities, q x results: kf_parity    */
    size_t q;
    double hidden;           /* of decoder and H: kf_hidden_of, with
                                  kf_check_few of all, nobody located         */
    const kf_source *source; /* one per seat of the decoder               */
    size_t lo, hi;
    size_t most;       /* seats that may be located; 0: detect only   */
    size_t liars;      /* seats that may lie as they like           */
    size_t promised;   /* ... in ways that do not conspire          */
    const double *row; /* per strip of a block, `span` of them      */
    const double *col; /* per column of a result                    */
    size_t terms;      /* products summed in an entry, at most; 0:
                                  as many as the operands are long          */
    uint64_t changes;  /* of the blocks, since they were encoded    */
    bool drifts;       /* how far they have drifted apart is asked for */
    uint64_t secret;   /* of the weights: unknown to workers        */
    uint32_t number;   /* of the cell: fresh weights for each       */
} kf_check;

typedef struct kf_found {
    uint32_t *bad;  /* indices into decoder->seat, with room for all: first
                       those who are located, then those only left out      */
    size_t count;   /* of both; 0: clean                                  */
    size_t doubted; /* left out                                           */
    double floor;   /* entry (i, c) of the output may be wrong by less than
                       that times row[i] col[c]; HUGE_VAL: there was nothing
                       to compare with                                    */
    double drift;   /* the part of the results that is none of a codeword,
                           root mean square to root mean square; 0: some were
                           left out, or it was not asked for                  */
} kf_found;

/* As many of n results as may be wrong together, whatever they do, and have to
 * show, when `located` are known. */
size_t kf_check_few(const kf_check *c, size_t n, size_t located);
/* Completes a check, of which all else is filled in: H, q and hidden. */
kofn_status kf_check_know(kf_check *c, kf_cache *cache);
/* The most that rounding makes of an entry of a result, relative to the scales
 * of its row and column, for a seat of weight 1: a sum of so many terms, of
 * blocks that have changed so often. */
double kf_check_alarm(const kofn_plan *plan, double terms, uint64_t changes);
/* The lowest floor that these results can have if none of them is left out. */
double kf_check_least_floor(const kf_check *c);
/* KOFN_OK: all agree but those in bad[].
 * KOFN_CORRUPT: they disagree and cannot be sorted out; bad[] has those of
 * whom it is sure. */
kofn_status kf_check_results(const kf_check *c, kf_found *found);
/* The same, and KOFN_AGAIN: one result more is wanted before these are
 * accepted, since more than `most` may be hidden in them; or, in float32, where
 * much may, since they show more than rounding.  `last`: there are no more, and
 * what is within `most` is accepted. */
kofn_status kf_check_decide(const kf_check *c, double most, bool last,
                            kf_found *found);

/* ---- blocks (reading.c) -------------------------------------------------- */

/* A block that is compared with others: the numbers that were read of it, and
 * of its velocity, NULL if it has none. */
typedef struct kf_read {
    uint32_t from; /* whoever sent it, as the caller calls him */
    const void *numbers, *velocity;
} kf_read;

/* Blocks of a matrix, to be compared: rows of a block of each seat, or what is
 * left of them when all are multiplied by one vector. */
typedef struct kf_reading {
    kofn_plan *plan; /* by which the matrix is read */
    kf_code *code;
    kf_cache *cache;
    uint32_t *seat; /* ascending; and the block of each */
    kf_read *block;
    size_t n;
    bool moves; /* some have a velocity */
    kofn_matrix *rows;
    kf_source *source; /* the rows of each block */
    double *ones;
    void *zeros;
    uint32_t *bad; /* of a finding */
    /* What is read: whole blocks, if the caller does not say something else. */
    size_t lo, hi;     /* these rows,                                ...  */
    size_t cols;       /* ... so many numbers of each,               ...  */
    kofn_dtype dtype;  /* ... of this type,                          ...  */
    size_t terms;      /* ... which are sums of so many products     ...  */
    const double *col; /* ... with what has these norms, one a column     */
    /* The caller says this before each comparison. */
    const double *row;  /* norms of the rows of the matrix, or its velocity's */
    kofn_errors errors; /* how blocks may be wrong                        */
    double hidden;      /* larger lies than this may not stay unseen      */
    uint64_t changes, secret; /* as of a kf_check ... */
    uint32_t number;          /* ... likewise         */
} kf_reading;

/* With room for so many blocks; freed in any case. */
kofn_status kf_reading_new(kf_reading *r, const kofn_plan *of, size_t room);
void kf_reading_free(kf_reading *r);
/* One more block, whose numbers are borrowed; of two of one seat the first
 * counts. */
void kf_reading_add(kf_reading *r, uint32_t seat, kf_read block);
/* Compares the blocks, or their velocities.  KOFN_OK: all agree but those that
 * were found.  KOFN_CORRUPT: they do not, and these are not all who are wrong.
 * KOFN_TOOFEW: there must be more. */
kofn_status kf_reading_judge(kf_reading *r, bool velocity, kf_found *found);

/* ---- scales -------------------------------------------------------------- */

/* Norms of rows, or of columns, over parts that lie side by side, or one over
 * the other; parts without rows count for nothing.  Entries whose squares are
 * beyond the range of a double are allowed. */
kofn_status kf_data_scales_of_part_rows(const kofn_matrix *part, size_t parts,
                                        double *row, size_t rows);
/* Of columns multiplied by a power of two. */
kofn_status kf_data_scales_of_columns(const kofn_matrix *part, size_t parts,
                                      double by, double *col, size_t cols);
/* Of the columns of A, of which there are so many in a part. */
kofn_status kf_data_scales_of_resident_columns(const kf_resident *r,
                                               double *col, size_t cols);
/* Of the rows of the parts of A that belong to a group, `span` of them, as
 * blocks have them (kf_resident.by). */
kofn_status kf_data_scales_of_rows(const kf_resident *r, size_t group,
                                   double *row);
/* Of entries of A' A x in strips [lo, hi) of a check, by the columns of A, the
 * input as it was sent and the answers. */
kofn_status kf_data_scales_of_gram(const kf_check *c, const double *col,
                                   const kofn_matrix *x, double *row);
/* Norms of the rows of A that belong to a group, or of its columns, in memory
 * of their own; *out that is there already stays. */
kofn_status kf_data_norms(const kf_resident *r, bool columns, size_t group,
                          double **out);
/* Of the columns of the input of a product, or of left products of its rows,
 * `whole` or as it is cut and multiplied by `by`; ones where A itself is read.
 */
kofn_status kf_data_norms_of_input(const kofn_plan *use, const kf_parts *cut,
                                   const kofn_matrix *whole, double by,
                                   double **out);
/* Of a matrix that changes: of the rows of each group, and of its columns
 * behind them. */
typedef struct kf_norms {
    double *const *norm;  /* bounds of their norms                           */
    double *const *speed; /* the same of the velocity                        */
    double *const *least; /* or NULL: at least what they were in the largest
                             step since they were known, less what decays    */
} kf_norms;
/* After a change. */
kofn_status kf_data_grow_norms(const kf_resident *r, const kofn_change *change,
                               const kofn_matrix *U, const kofn_matrix *V,
                               const kf_norms *n);

#endif
