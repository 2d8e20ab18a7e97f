/* data.h -- floor 4: everything that touches the numbers of a matrix.
 *
 * Buffers and blocks are counted references: keep makes one more, drop gives
 * one back.  What else a function here makes is freed by the _free beside it.
 */
#ifndef KF_DATA_H
#define KF_DATA_H

#include "port.h"
#include <kofn/core.h>

#include <stdatomic.h>

#include "base/rng.h"
#include "code/code.h"
#include "mat/mat.h"

/* ---- buffers (buffer.c) -------------------------------------------------- */

struct kf_buffer {
    atomic_uint refs;
    kofn_matrix m;
    size_t capacity; /* bytes; 0: they are another's                 */
    kf_buffer *of;   /* ... buffer's, which this one keeps           */
    void (*release)(void *from, void *own); /* ... or a transport's  */
    void *from, *own;
};

/* rows x cols, contiguous, not initialised. */
kofn_status kf_buffer_new(kf_buffer **out, size_t rows, size_t cols,
                          kofn_dtype dtype);
/* A view of a part of another buffer. */
kofn_status kf_buffer_view(kf_buffer **out, kf_buffer *of,
                           const kofn_matrix *part);
size_t kf_buffer_bytes(const kf_buffer *p); /* of its numbers; NULL: 0 */
/* Around numbers that `release(from, own)` gives back. */
kofn_status kf_buffer_around(kf_buffer **out, const kofn_matrix *m,
                             void (*release)(void *from, void *own), void *from,
                             void *own);

/* Buffers to be used again. */
typedef struct kf_pool {
    kf_buffer **buffer;
    size_t count, cap;
} kf_pool;

/* Takes a buffer that nobody else holds any more, or a new one. */
kofn_status kf_pool_take(kf_pool *pool, size_t rows, size_t cols,
                         kofn_dtype dtype, kf_buffer **out);
/* Takes the reference over; NULL is nothing.  A view, or one that there is no
 * memory to remember, is dropped. */
void kf_pool_give(kf_pool *pool, kf_buffer *p);
void kf_pool_free(kf_pool *pool);

/* ---- mixtures (mix.c) ---------------------------------------------------- */

/* into = by sum_j row[j] part_j */
typedef struct kf_mixed {
    const kf_row *row;
    kofn_matrix into;
    double by; /* a power of two */
} kf_mixed;
/* n mixtures of parts of rows x cols in one pass over them.  A part without
 * rows counts as zero. */
kofn_status kf_mix(const kf_mixed *mixed, size_t n, const kofn_matrix *part,
                   size_t parts, size_t rows, size_t cols);

/* ---- blocks (block.c) ---------------------------------------------------- */

/* The lines that are of one size in a copy of an operand. */
enum { KF_RAISED_ROWS = 1, KF_RAISED_COLS = 2 };

/* The resident operand, cut. */
typedef struct kf_resident {
    const kofn_plan *plan;
    kf_parts parts;       /* dense: of all groups, row bands first */
    double most, by;      /* no element is larger; a power of two that blocks
                              are multiplied by: range.c */
    const kofn_sparse *A; /* sparse: parts are row ranges of it    */
    kofn_sparse view;     /* what A points to                      */
    kofn_part_fn f;       /* sums of a function: that function ...  */
    void *ctx;
    const kofn_formula *formula; /* ... or this one of rows of a matrix */
    double arg[KOFN_FORMULA_ARGS];
    kofn_matrix X;
    const double *y;
    uint64_t *digest; /* away: of each part; 0: not known yet */
    unsigned raised;  /* KF_RAISED_*: it is a copy whose lines are multiplied by
                        powers of two (level.c)                 */
    bool lent;   /* no block may point into it: who lent it wants it back while
                    workers may still be at work */
    bool away;   /* blocks go to other machines: coded lanes are made piece by
                  piece, when they are asked for */
    double work; /* that it takes for all parts; 0: not known */
} kf_resident;

/* The parts of a sum that a seat computes, and how it mixes them. */
typedef struct kf_subset {
    kofn_part_fn f;
    void *ctx;
    const kofn_formula *formula; /* or NULL: f */
    double arg[KOFN_FORMULA_ARGS];
    size_t points; /* rows of all parts            */
    kofn_matrix X; /* where they lie: all of them, or at a worker
                          elsewhere those of its parts */
    double *y;
    void *own;                     /* there: what both live in     */
    size_t *at;                    /* row of X where each part begins */
    size_t held;                   /* rows in all of its parts     */
    size_t parts, of;              /* how many, of how many        */
    size_t *part;                  /* which                        */
    size_t length, segments, span; /* of f: in all, as it is cut    */
    size_t submessages, lanes;
    double work;      /* that f takes for a part      */
    double *mix;      /* submessages lanes x parts segments   */
    void *value;      /* parts x (segments span): what f made of the input
                          of `product`                */
    uint32_t product; /* 0: nothing yet               */
} kf_subset;

struct kf_block {
    atomic_uint refs;
    size_t lanes, rows, cols; /* of each lane */
    kofn_dtype dtype;
    kf_block *next;    /* of the next operand, or NULL */
    size_t row;        /* the first of its group's code that it answers */
    kofn_matrix *lane; /* dense: one view a lane; rows == 0 for zeros */
    void *owned;       /* what the coded lanes among them live in     */
    kf_buffer *of;     /* ... or in what they came with                */
    bool changes;      /* all of them do, each below the other, and are no
                          more what A is encoded to                      */
    void *velocity;    /* likewise, while there is momentum              */
    bool empty;        /* its numbers come in pieces                     */
    uint64_t updates;  /* that it has had, or at the coordinator of workers
                          elsewhere was sent                             */

    /* For a worker elsewhere: coded lanes are made when they are asked for
     * (piece.c) and have no data until then. */
    const struct kf_resident *from;
    size_t group;
    const kf_row *coded; /* lanes x inner rows over the group's parts */

    kf_subset *subset;    /* sums of a function */
    const kofn_sparse *A; /* sparse: plain parts, mixed after computing */
    size_t used;          /* how many                                   */
    size_t *first;        /* row of A where each begins                 */
    double *weight;       /* lanes x used                               */
    kofn_sparse own;      /* at a worker elsewhere: what A points to ... */
    size_t entries;       /* ... and how many entries it has room for    */
};

kofn_status kf_resident_dense(kf_resident *r, const kofn_plan *plan,
                              const kofn_matrix *A);
kofn_status kf_resident_sparse(kf_resident *r, const kofn_plan *plan,
                               const kofn_sparse *A);
void kf_resident_sum(kf_resident *r, const kofn_plan *plan);
/* The blocks of this operand are for workers elsewhere. */
kofn_status kf_resident_away(kf_resident *r);
void kf_resident_free(kf_resident *r);
/* Part j of a group; one beyond the operand's edge has no rows. */
const kofn_matrix *kf_resident_part(const kf_resident *r, size_t group,
                                    size_t j);
/* Where it is in the grid of the parts of all groups. */
size_t kf_data_part_index(const kofn_plan *p, size_t group, size_t j);
/* The blocks of several seats at once: all of A is read once. */
kofn_status kf_data_encode(const kf_resident *r, kf_code *code,
                           const size_t *seats, size_t n, kf_block **blocks);
/* Lane l of its velocity, without rows where there is none (change.c). */
kofn_matrix kf_block_velocity(const kf_block *b, size_t l);
/* It has a velocity from now on, of zeros where it had none. */
kofn_status kf_block_set_moving(kf_block *b);
/* Memory for all lanes, one below the other, which is zeros; and lane l
 * there. */
kofn_status kf_block_room(const kf_block *b, void **out);
kofn_matrix kf_block_lane(const kf_block *b, void *all, size_t l);
/* Bytes of it; false: of no size that can be. */
bool kf_block_velocity_bytes(const kf_block *b, size_t *bytes);
/* Can it be changed by U' V, of these shapes? */
bool kf_block_takes(const kf_block *b, const kofn_matrix *U,
                    const kofn_matrix *V);
/* Has the block miss a change, as if the update had been done. */
void kf_block_miss(kf_block *b, const kf_msg *m);
/* Have a bit of a number that is stored be another: one that matters, of the
 * sign, the exponent or the first digits of the fraction, of any number that is
 * not 0. Nothing happens to sparse blocks and those of sums. */
kofn_status kf_block_flip(kf_block *b, kf_rng *r);
/* U or V of a change by U' V, cut as A is in one direction (side.c). */
typedef struct kf_side {
    kf_parts parts;
    const kofn_matrix *part; /* the first of the group in hand           */
    size_t cut;              /* parts of it in a group                   */
    bool alike;              /* it is the same for all seats             */
    size_t lanes;            /* that a mixture is made for: 1 if for all */
    kofn_dtype dtype;
    double by;
    kf_buffer *common; /* what the seats of the group have in common, or NULL */
} kf_side;
/* Both of them. */
typedef struct kf_sides {
    kf_side u, v;
    double *f, *g; /* factors of a seat */
    uint32_t *col; /* 0, 1, ...         */
} kf_sides;
/* Of the first group; freed in any case. */
kofn_status kf_sides_new(kf_sides *s, const kf_resident *r,
                         const kofn_matrix *U, const kofn_matrix *V);
void kf_sides_free(kf_sides *s);
/* Of that group mixtures are taken from now on. */
void kf_sides_choose(kf_sides *s, size_t group);
/* What the block of a seat is changed by, as an update has it: references of
 * the caller's own. */
kofn_status kf_sides_take(kf_sides *s, kf_code *code, size_t local, kf_msg *m);
/* Can A be changed by them? */
kofn_status kf_data_check_change(const kofn_problem *pb, const kofn_matrix *U,
                                 const kofn_matrix *V);
/* Blocks with nothing in them, for pieces of what others hold. */
kofn_status kf_data_empty_blocks(const kf_resident *r, kf_code *code,
                                 const size_t *seats, size_t n,
                                 kf_block **blocks);

/* ---- blocks without A (repair.c) ----------------------------------------- */

/* Rows [lo, hi) of a dense block, or of its velocity, one lane below the other:
 * as KF_HOW_READ gives them ... */
void kf_block_read(const kf_block *b, bool velocity, size_t lo, size_t hi,
                   void *to);
/* ... and from such numbers.  The block must be its caller's own to change. */
kofn_status kf_block_write(kf_block *b, bool velocity, size_t lo, size_t hi,
                           const void *from);
/* Some rows of blocks of other seats, which ascend. */
typedef struct kf_others {
    uint32_t *seat;
    const kf_block **block;
    size_t n;
} kf_others;
/* Makes the rows from `lo` on of the block of a seat, and of its velocity, of
 * the same rows of others.  KOFN_TOOFEW: they do not determine them well
 * enough. */
kofn_status kf_block_regenerate(kf_block *b, kf_code *code, uint32_t seat,
                                size_t lo, const kf_others *others);
/* The weights of a sketch, between 1/2 and 1 of either sign; returns their
 * norm. */
double kf_data_weigh(kf_rng r, double *w, size_t n);
/* A sketch of a block, or of its velocity: its rows times these weights, a
 * number each, in float64 whatever the block is kept in. */
void kf_block_sketch(const kf_block *b, bool velocity, const double *w,
                     double *to);

/* The block of an operand, of those that a seat stores; NULL: there is none. */
kf_block *kf_block_of(const kf_block *b, uint32_t operand);

/* A block whose lanes are the first rows x cols numbers of a buffer, which it
 * keeps, those behind them, and so on. */
kofn_status kf_block_around(kf_block **out, kf_buffer *of, size_t lanes,
                            size_t rows, size_t cols);

/* Does the work asked for, of an input and a result of these shapes, fit this
 * block?  For messages that come from elsewhere. */
kofn_status kf_work_fits(const kf_block *b, const kf_msg *m,
                         const kofn_matrix *in, const kofn_matrix *out);

/* Strips [lo, hi) of the block times `in`, as KF_HOW_ROWS. */
kofn_status kf_data_compute(const kf_block *b, const kofn_matrix *in, size_t lo,
                            size_t hi, kofn_matrix *out);

/* ---- sums of a function (subset.c) --------------------------------------- */

kofn_status kf_subset_new(kf_subset **out, const kf_resident *r, kf_code *code,
                          size_t seat);
void kf_subset_free(kf_subset *s);
/* Where the rows of part `part` of `parts` begin, of `rows`. */
static inline size_t kf_part_begin(size_t rows, size_t part, size_t parts)
{
    return part * rows / parts;
}
/* Sets `at` and `held`. */
kofn_status kf_subset_rows(kf_subset *s, bool elsewhere);

/* ---- the end of the range (range.c) -------------------------------------- */

/* Powers of two: what to multiply an operand by whose elements, so many of
 * which are added up, are at most `most`; what to multiply a round's input by;
 * and what then to multiply the result by. */
double kf_range_resident(double most, double terms, kofn_dtype dtype);
double kf_range_input(const kofn_plan *use, const kf_resident *r, double most);
/* Are all elements of the product, and of its coded ones, within the range? */
bool kf_range_has_room(const kofn_plan *use, const kf_resident *r, double most);
double kf_range_back(const kofn_plan *use, const kf_resident *r, double by);
/* Do mixtures with these coefficients fit? */
kofn_status kf_range_row(const kf_resident *r, const kf_row *row);
void kf_range_multiply(const kofn_matrix *a, double by);
/* The way back for a decoded product: it is multiplied by a power of two, and
 * what its rows and columns are raised by is divided out (level.c). */
typedef struct kf_back {
    double by;
    const int *row, *col; /* or NULL */
} kf_back;
/* A result multiplied back: KOFN_NONFINITE when it is not a number, or no
 * longer. */
kofn_status kf_range_restore(const kofn_matrix *out, const kf_back *back);

/* ---- lines of different size (level.c) ----------------------------------- */

/* A line of zeros may be raised by any digits; lowered by these, anything is
 * 0. */
#define KF_LEVEL_ZERO 2200
/* Binary digits by which each row and each column of a matrix is raised before
 * it is coded; NULL: by none. */
typedef struct kf_levels {
    int *row, *col;
} kf_levels;
/* The levels that make the rows, and then the columns, of one size, where they
 * are not and this is asked for; columns as well where rows are not. */
kofn_status kf_levels_of(const kofn_matrix *a, bool rows, bool cols,
                         kf_levels *out);
/* Of an input: of its rows only, or of its columns. */
kofn_status kf_levels_of_input(const kofn_matrix *a, bool rows, kf_levels *out);
/* Of the rows of a sparse one, and if asked for of its columns. */
kofn_status kf_levels_of_sparse(const kofn_sparse *a, bool cols,
                                kf_levels *out);
static inline bool kf_levels_any(const kf_levels *l)
{
    return l->row || l->col;
}
/* Do they change any number of a matrix with so many? */
bool kf_levels_change(const kf_levels *l, size_t rows, size_t cols);
void kf_levels_free(kf_levels *l);
/* Raises rows and columns by sign times their digits.  Either may be NULL. */
void kf_level_multiply(const kofn_matrix *a, const int *row, const int *col,
                       int sign);
/* Lowers them, and multiplies all by a power of two: at once, for in between a
 * number may be out of range that is not in the end. */
void kf_level_lower(const kofn_matrix *a, const int *row, const int *col,
                    double by);
/* The values of a sparse one whose rows and columns are raised. */
kofn_status kf_level_values(const kofn_sparse *a, const kf_levels *l,
                            double **out);
/* A copy, which is to be freed, raised likewise. */
kofn_status kf_level_copy(const kofn_matrix *a, const int *row, const int *col,
                          int sign, kofn_matrix *out);

/* ---- operands that are raised (raise.c) ---------------------------------- */

/* KF_RAISED_*: which lines of an operand are raised where they are not of one
 * size; where errors are looked for they are more. */
unsigned kf_raise_kind(const kofn_plan *p, kofn_errors errors);
/* An operand is to be held: where that is better *A becomes a raised copy of
 * it, of numbers *own, which are to be freed. */
kofn_status kf_raise_dense(unsigned kind, kofn_matrix *A, kf_levels *l,
                           void **own);
kofn_status kf_raise_sparse(unsigned kind, kofn_sparse *A, kf_levels *l,
                            void **own);
/* Prepares for changes of the operand: what is added to lines of zeros is not
 * to vanish. */
void kf_raise_await(const kf_levels *l, size_t rows, size_t cols);
/* Takes that back: the operand is A again, as it was raised. */
kofn_status kf_raise_restart(unsigned kind, const kofn_matrix *A, kf_levels *l);
/* U and V of a change of it become raised copies, of numbers own[0] and own[1],
 * which are to be freed in any case; NULL: they are as they were. */
kofn_status kf_raise_change(const kf_levels *l, kofn_matrix *U, kofn_matrix *V,
                            void *own[2]);
/* Has the input of a product of it to be lowered?  And that done to a copy. */
bool kf_raise_lowers(const kf_levels *held, const kofn_plan *use);
void kf_raise_lower(const kf_levels *held, const kofn_plan *use,
                    const kofn_matrix *in);
/* The input becomes a copy that is lowered and has lines of its own raised,
 * where either is wanted; *own is then to be freed. */
kofn_status kf_raise_input(const kf_levels *held, const kofn_plan *use,
                           kf_levels *raised, kofn_matrix *in, void **own);
/* The way back that undoes both in the product's output. */
void kf_raise_back(const kf_levels *held, const kf_levels *raised,
                   const kofn_plan *use, kf_back *back);

/* ---- what is sent with the work (message.c) ------------------------------ */

/* A product's input as it is sent: one for all, or coded for each row of the
 * code.  Here rows have numbers in the plan, as seats have. */
typedef struct kf_messages {
    const kofn_plan *plan;
    kf_buffer *plain; /* the input itself         */
    kf_parts parts;   /* as it is cut             */
    kf_buffer **row;  /* message of each row, so far */
    size_t rows;
    kf_pool pool;
    bool lent; /* `parts` are of what is another's ...        */
    double by; /* ... and are multiplied when they are mixed */
} kf_messages;

/* A new round of this plan; copies `in`, multiplied by a power of two. */
kofn_status kf_messages_begin(kf_messages *m, const kofn_plan *plan,
                              const kofn_matrix *in, double by);
/* The same of an input that may be looked at until kf_messages_release; where
 * it is cut it is copied only part by part, as its mixtures are made. */
kofn_status kf_messages_lend(kf_messages *m, const kofn_plan *plan,
                             const kofn_matrix *in, double by);
/* Look at it no more. */
void kf_messages_release(kf_messages *m);
/* Nobody asks for this row's any more. */
void kf_messages_forget(kf_messages *m, size_t row);
/* See that these rows have their coded input. */
kofn_status kf_messages_encode(kf_messages *m, kf_code *code,
                               const size_t *rows, size_t n);
/* Adjoint codes: strips [lo, hi) for the rows of the decoder. */
kofn_status kf_messages_mix(kf_messages *m, const kofn_decoder *d, size_t lo,
                            size_t hi);
/* The message for whoever answers this row; a reference of the caller's own. */
kf_buffer *kf_messages_take(const kf_messages *m, size_t row);
void kf_messages_free(kf_messages *m);

/* ---- decoding (decode.c) ------------------------------------------------- */

/* Results of one row for strips [lo, hi): lanes x (hi - lo) rows. */
typedef struct kf_source {
    const kofn_matrix *result;
    size_t lo, hi;
} kf_source;

/* Write strips [lo, hi) of the group's wants into `out`.  scratch grows as
 * needed and is the caller's to free. */
typedef struct kf_scratch {
    void *p;
    size_t bytes;
    const void **src;
    void **dst;
    size_t srcs, dsts;
    void *sums; /* of a decoder in factors */
    size_t sums_bytes;
} kf_scratch;
kofn_status kf_decode(const kofn_plan *plan, const kofn_decoder *d,
                      const kf_source *sources, kf_band band, kofn_matrix *out,
                      kf_scratch *scratch);
/* Strips [lo, hi) of the group's wants, one want below the other, out of `out`
 * into `rows` and back; what falls over the edge is zeros. */
void kf_data_gather(const kofn_plan *plan, size_t group, size_t lo, size_t hi,
                    const kofn_matrix *out, void *rows);
void kf_data_scatter(const kofn_plan *plan, size_t group, size_t lo, size_t hi,
                     const void *rows, kofn_matrix *out);
/* The same, multiplied back: KOFN_NONFINITE, when all is written, where that
 * leaves anything that is not a number and is not lost. */
typedef struct kf_output {
    kofn_matrix *out;
    const kf_back *back;
} kf_output;
kofn_status kf_data_decode(const kofn_plan *plan, const kofn_decoder *d,
                           const kf_source *sources, kf_band band,
                           const kf_output *to, kf_scratch *scratch);
/* Adjoint codes: out = sum of n results. */
kofn_status kf_data_add_up(const kf_source *source, size_t n, kofn_matrix *out);
void kf_scratch_free(kf_scratch *s);

/* ---- what a sum is made of (tally.c) ------------------------------------- */

typedef struct kf_tally {
    size_t parts;
    double *weight; /* per part: f(part) is so often in the sum */
    unsigned *age;  /* NULL: nothing is remembered; per part: rounds since
                      it was computed */
    bool *known;    /* it ever was                                       */
    void *value;    /* parts x span: what it was then                    */
} kf_tally;

/* One of zeros, or of before; to be freed even where it fails. */
kofn_status kf_tally_new(kf_tally *t, const kofn_plan *plan);
void kf_tally_free(kf_tally *t);
/* The weights that this decoder gives. */
kofn_status kf_tally_count(kf_tally *t, kf_code *code, const kofn_decoder *d);
/* Remember these results, and sum all that is known into `out`. */
kofn_status kf_tally_recall(kf_tally *t, const kofn_plan *plan,
                            const kofn_decoder *d, const kf_source *source,
                            kofn_matrix *out);

#endif
