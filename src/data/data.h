/* data.h -- floor 4: everything that touches the numbers of a matrix.
 *
 * Buffers and blocks have counted references: keep adds one, drop returns one.
 * All other objects are freed by the _free function declared with them. */
#ifndef KF_DATA_H
#define KF_DATA_H

#include "port.h"
#include <kofn/core.h>

#include <assert.h>
#include <stdatomic.h>

#include "base/rng.h"
#include "code/code.h"
#include "mat/mat.h"

/* ---- buffers (buffer.c) -------------------------------------------------- */

struct kf_buffer {
    atomic_uint refs;
    kofn_matrix m;
    size_t capacity; /* bytes; 0: the numbers belong to ... */
    kf_buffer *of;   /* ... this buffer, which is kept */
    void (*release)(void *from, void *owned); /* ... or a transport */
    void *from, *own;
};

/* Allocates rows x cols numbers, contiguous, not initialised. */
kofn_status kf_buffer_new(kf_buffer **out, size_t rows, size_t cols,
                          kofn_dtype dtype);
/* Makes a view of a part of another buffer. */
kofn_status kf_buffer_view(kf_buffer **out, kf_buffer *of,
                           const kofn_matrix *part);
/* Returns the bytes of its numbers; 0 for NULL. */
size_t kf_buffer_bytes(const kf_buffer *p);
/* Wraps numbers that `release(from, own)` returns. */
kofn_status kf_buffer_around(kf_buffer **out, const kofn_matrix *m,
                             void (*release)(void *from, void *owned),
                             void *from, void *owned);

/* Buffers for reuse. */
typedef struct kf_pool {
    kf_buffer **buffer;
    size_t count, cap;
} kf_pool;

/* Takes a buffer without other references, or makes a new one. */
kofn_status kf_pool_take(kf_pool *pool, size_t rows, size_t cols,
                         kofn_dtype dtype, kf_buffer **out);
/* Takes the reference over; NULL is allowed.  A view is dropped, and so is a
 * buffer if there is no memory to list it. */
void kf_pool_give(kf_pool *pool, kf_buffer *p);
void kf_pool_free(kf_pool *pool);

/* ---- mixtures (mix.c) ---------------------------------------------------- */

/* into = by sum_j row[j] part_j */
typedef struct kf_mixed {
    const kf_row *row;
    kofn_matrix into;
    double by; /* a power of two */
} kf_mixed;
/* Makes n mixtures of parts of rows x cols in one pass.  A part without rows
 * counts as zero. */
kofn_status kf_mix(const kf_mixed *mixed, size_t n, const kofn_matrix *part,
                   size_t parts, size_t rows, size_t cols);

/* ---- blocks (block.c) ---------------------------------------------------- */

/* The rows or columns that are equilibrated in a copy of an operand. */
enum { KF_SCALED_ROWS = 1, KF_SCALED_COLS = 2 };

/* The resident operand, cut. */
typedef struct kf_resident {
    const kofn_plan *plan;
    kf_parts parts;       /* dense: parts of all groups, row bands first */
    double most, by;      /* largest element; factor of blocks (range.c) */
    const kofn_sparse *A; /* sparse: parts are ranges of its rows */
    kofn_sparse view;     /* storage of A */
    kofn_part_fn f;       /* sums of a function: the function ... */
    void *ctx;
    const kofn_formula *formula; /* ... or a formula on rows of a matrix */
    double arg[KOFN_FORMULA_ARGS];
    kofn_matrix X;
    const double *y;
    uint64_t *digest; /* with `away`: digest of each part; 0: not computed */
    unsigned scaled;  /* KF_SCALED_*: it is an equilibrated copy (scaling.c) */
    bool lent;   /* no block may point into it: its owner may take it back while
                  * workers run */
    bool away;   /* blocks go to other machines: coded components are made slice
                  * by   slice on request */
    double work; /* of all parts; 0: unknown */
} kf_resident;

/* The parts of a sum that a seat computes, and how it mixes them. */
typedef struct kf_subset {
    kofn_part_fn f;
    void *ctx;
    const kofn_formula *formula; /* or NULL: f */
    double arg[KOFN_FORMULA_ARGS];
    size_t points; /* rows of all parts            */
    kofn_matrix X; /* all rows, or on another machine those of its parts */
    double *y;
    void *own;                     /* on another machine: memory of both */
    size_t *at;                    /* first row of X of each part */
    size_t held;                   /* number of rows in its parts */
    size_t parts, of;              /* parts of the seat, and of all */
    size_t *part;                  /* numbers of the parts */
    size_t length, segments, span; /* of f, and of its segments */
    size_t submessages, components;
    double work;      /* of f for one part */
    double *mix;      /* submessages components x parts segments */
    void *value;      /* parts x (segments span): values of f for the input of
                       * `product` */
    uint32_t product; /* 0: no values */
} kf_subset;

struct kf_block {
    atomic_uint refs;
    size_t components, rows, cols; /* of each component */
    kofn_dtype dtype;
    kf_block *next; /* block of the next operand, or NULL */
    size_t row;     /* first row of its group's code that it answers */
    kofn_matrix
        *component; /* dense: one view per component; rows == 0 for zeros */
    void *owned;    /* memory of its coded components */
    kf_buffer *of;  /* ... or the buffer that has them */
    bool changes; /* all components are in `owned`, below each other, and differ
                   * from the encoding of A */
    size_t states; /* optimizer states, 0 to KOFN_CHANGE_STATES */
    void *state[KOFN_CHANGE_STATES]; /* memory of state i + 1, or NULL */
    bool empty;                      /* its numbers arrive in slices */
    uint64_t updates; /* updates done; at the coordinator, of remote workers:
                       * sent */

    /* For a remote worker: coded components are made on request (slice.c) and
     * have no data before. */
    const struct kf_resident *from;
    size_t group;
    const kf_row *coded; /* components x inner rows over the group's parts */

    kf_subset *subset;    /* sums of a function */
    const kofn_sparse *A; /* sparse: plain parts, mixed after the products */
    size_t used;          /* number of plain parts */
    size_t *first;        /* first row of A of each */
    double *weight;       /* components x used                               */
    kofn_sparse own;      /* on a remote worker: storage of A ... */
    size_t entries;       /* ... and its room in entries */
};

kofn_status kf_resident_dense(kf_resident *r, const kofn_plan *plan,
                              const kofn_matrix *A);
/* Makes one of this plan's shape without numbers. */
void kf_resident_shape(kf_resident *r, const kofn_plan *plan);
kofn_status kf_resident_sparse(kf_resident *r, const kofn_plan *plan,
                               const kofn_sparse *A);
void kf_resident_sum(kf_resident *r, const kofn_plan *plan);
/* Prepares the operand for blocks on other machines. */
kofn_status kf_resident_away(kf_resident *r);
void kf_resident_free(kf_resident *r);
/* Returns part j of a group; a part beyond the operand's edge has no rows. */
const kofn_matrix *kf_resident_part(const kf_resident *r, size_t group,
                                    size_t j);
/* Returns its position in the grid of the parts of all groups. */
size_t kf_data_part_index(const kofn_plan *p, size_t group, size_t j);
/* Makes the blocks of several seats in one pass over A. */
kofn_status kf_data_encode(const kf_resident *r, kf_code *code,
                           const size_t *seats, size_t n, kf_block **blocks);
/* Returns component l of a state: of A for state 0, else of an optimizer state.
 * It has no rows if the component is zeros or there is no such state
 * (states.c). */
kofn_matrix kf_block_state(const kf_block *b, size_t state, size_t l);
/* Sets the number of optimizer states.  New ones are zeros; those beyond the
 * number are discarded. */
kofn_status kf_block_set_states(kf_block *b, size_t states);
/* Changes all states of a block by U' V, mixed for it.  The block must not
 * share its memory. */
kofn_status kf_block_change_states(kf_block *b, const kofn_change *c,
                                   const kofn_matrix *U, const kofn_matrix *V);
/* Makes a buffer that has a change, for messages; returns the change. */
kofn_status kf_states_change_new(kf_buffer **out, const kofn_change *c);
static inline const kofn_change *kf_states_change_of(const kf_buffer *b)
{
    assert(kf_buffer_bytes(b) >= sizeof(kofn_change));
    return b->m.data;
}
/* Checks the factors of a change, of the caller or of a packet. */
kofn_status kf_states_check_change(const kofn_change *c);
/* Allocate memory of zeros for all components below each other; return
 * component l in it.
 */
kofn_status kf_block_room(const kf_block *b, void **out);
kofn_matrix kf_block_component(const kf_block *b, void *all, size_t l);
/* Computes the bytes of an optimizer state; false if they overflow. */
bool kf_block_state_bytes(const kf_block *b, size_t *bytes);
/* True if U' V with these shapes can change the block. */
bool kf_block_takes(const kf_block *b, const kofn_matrix *U,
                    const kofn_matrix *V);
/* Makes the block miss a change, but counts the update. */
void kf_block_miss(kf_block *b, const kf_msg *m);
/* Flips one bit of a stored number, for fault injection.  The number is not 0,
 * and the bit matters: the sign, the exponent or a leading bit of the fraction.
 * Sparse blocks and those of sums do not change. */
kofn_status kf_block_flip(kf_block *b, kf_rng *r);
/* U or V of a change by U' V, cut like A in one direction (update_factors.c).
 */
typedef struct kf_update_factor {
    kf_parts parts;
    const kofn_matrix *part; /* first part of the chosen group */
    size_t cut;              /* number of parts in a group */
    bool alike;              /* equal for all seats */
    size_t components;       /* components of a mixture: 1 if common to all */
    kofn_dtype dtype;
    double by;
    kf_buffer *common; /* the common mixture of the group's seats, or NULL */
} kf_update_factor;
/* Both U and V. */
typedef struct kf_update_factors {
    kf_update_factor u, v;
    double *f, *g; /* factors of a seat */
    uint32_t *col; /* 0, 1, ...         */
    kf_buffer *change;
} kf_update_factors;
/* Prepares both for the first group. Free them even after a failure. */
kofn_status kf_update_factors_new(kf_update_factors *s, const kf_resident *r,
                                  const kofn_change *c, const kofn_matrix *U,
                                  const kofn_matrix *V);
void kf_update_factors_free(kf_update_factors *s);
/* Chooses the group for the next mixtures. */
void kf_update_factors_choose(kf_update_factors *s, size_t group);
/* Fills the change, and the mixtures for the block of a seat, into an update
 * message, as references of the caller. */
kofn_status kf_update_factors_take(kf_update_factors *s, kf_code *code,
                                   size_t local, kf_msg *m);
/* Checks that U and V can change A. */
kofn_status kf_data_check_change(const kofn_problem *pb, const kofn_matrix *U,
                                 const kofn_matrix *V);
/* Makes empty blocks, to be filled with slices of other blocks. */
kofn_status kf_data_empty_blocks(const kf_resident *r, kf_code *code,
                                 const size_t *seats, size_t n,
                                 kf_block **blocks);

/* ---- blocks without A (repair.c) ----------------------------------------- */

/* Copies rows [lo, hi) of a state of a dense block, one component below the
 * other, as KF_HOW_READ returns them. */
void kf_block_read(const kf_block *b, size_t state, size_t lo, size_t hi,
                   void *to);
/* Copies such numbers into the block, which gets the state if it has none.  The
 * caller must be its only owner. */
kofn_status kf_block_write(kf_block *b, size_t state, size_t lo, size_t hi,
                           const void *from);
/* Some rows of the blocks of other seats, which ascend. */
typedef struct kf_others {
    uint32_t *seat;
    const kf_block **block;
    size_t n;
} kf_others;
/* Makes rows of all states of a seat's block, from row `lo` on, from the same
 * rows of other blocks.  Fails with KOFN_TOOFEW if these do not determine them
 * well enough. */
kofn_status kf_block_regenerate(kf_block *b, kf_code *code, uint32_t seat,
                                size_t lo, const kf_others *others);
/* Returns the block of this operand among the blocks of a seat, or NULL. */
kf_block *kf_block_of(const kf_block *b, uint32_t operand);

/* Makes a block on a buffer, which it keeps.  Each component is the next rows x
 * cols numbers. */
kofn_status kf_block_around(kf_block **out, kf_buffer *of, size_t components,
                            size_t rows, size_t cols);

/* Checks that the requested work, with an input and a result of these shapes,
 * fits this block.  Needed for messages from other machines. */
kofn_status kf_work_fits(const kf_block *b, const kf_msg *m,
                         const kofn_matrix *in, const kofn_matrix *out);

/* Computes strips [lo, hi) of the block times `in`, as KF_HOW_ROWS. */
kofn_status kf_data_compute(const kf_block *b, const kofn_matrix *in, size_t lo,
                            size_t hi, kofn_matrix *out);

/* ---- sums of a function (subset.c) --------------------------------------- */

kofn_status kf_subset_new(kf_subset **out, const kf_resident *r, kf_code *code,
                          size_t seat);
void kf_subset_free(kf_subset *s);
/* Returns the first row of part `part` of `parts`, of `rows` rows in all. */
static inline size_t kf_part_begin(size_t rows, size_t part, size_t parts)
{
    assert(part <= parts);
    return part * rows / parts;
}
/* Sets `at` and `held`. */
kofn_status kf_subset_rows(kf_subset *s, bool elsewhere);

/* ---- the end of the range (range.c) -------------------------------------- */

/* Return powers of two that keep numbers within the range.  The first
 * multiplies an operand with elements up to `most` in sums of `terms`.  The
 * second multiplies a round's input.  kf_range_back returns the factor that
 * restores the result. */
double kf_range_resident(double most, double terms, kofn_dtype dtype);
double kf_range_input(const kofn_plan *use, const kf_resident *r, double most);
/* True if all elements of the product, coded or not, are within the range. */
bool kf_range_has_room(const kofn_plan *use, const kf_resident *r, double most);
double kf_range_back(const kofn_plan *use, const kf_resident *r, double by);
/* Fails with KOFN_NONFINITE if mixtures with these coefficients may overflow.
 */
kofn_status kf_range_row(const kf_resident *r, const kf_row *row);
void kf_range_multiply(const kofn_matrix *a, double by);
/* Restores a decoded product: multiplies it by a power of two and divides the
 * scaling out of its rows and columns (scaling.c). */
typedef struct kf_back {
    double by;
    const int *row, *col; /* or NULL */
} kf_back;
/* Restores a result.  Fails with KOFN_NONFINITE if a number is or becomes NaN
 * or infinite. */
kofn_status kf_range_restore(const kofn_matrix *out, const kf_back *back);

/* ---- lines of different size (scaling.c) --------------------------------- */

/* The number of binary digits that marks a row or column of zeros.  Scaling
 * down by this number makes anything 0. */
#define KF_SCALING_ZERO 2200
/* Binary digits by which each row and column of a matrix is scaled up before it
 * is coded; NULL: none. */
typedef struct kf_scaling {
    int *row, *col;
} kf_scaling;
/* Computes the digits that equilibrate the rows and then the columns, each if
 * requested and if their sizes differ.  Scaled rows require that columns are
 * scaled too. */
kofn_status kf_scaling_of(const kofn_matrix *a, bool rows, bool cols,
                          kf_scaling *out);
/* Does the same for an input: only its rows, or only its columns. */
kofn_status kf_scaling_of_input(const kofn_matrix *a, bool rows,
                                kf_scaling *out);
/* Does the same for the rows of a sparse matrix, and for its columns if
 * requested. */
kofn_status kf_scaling_of_sparse(const kofn_sparse *a, bool cols,
                                 kf_scaling *out);
static inline bool kf_scaling_any(const kf_scaling *l)
{
    return l->row || l->col;
}
/* True if the digits change any row or column of a matrix of this size. */
bool kf_scaling_change(const kf_scaling *l, size_t rows, size_t cols);
struct kf_scale;
/* Computes the digits that equilibrate n rows or columns with these scales;
 * NULL if there is nothing to do. */
kofn_status kf_scaling_even(const struct kf_scale *s, size_t n, int **out);
void kf_scaling_free(kf_scaling *l);
/* Scales rows and columns up by sign times their digits. Either may be NULL. */
void kf_scaling_multiply(const kofn_matrix *a, const int *row, const int *col,
                         int sign);
/* Scales rows and columns down and multiplies all numbers by a power of two, in
 * one step.  Between two steps a number might leave the range. */
void kf_scaling_divide(const kofn_matrix *a, const int *row, const int *col,
                       double by);
/* Returns the values of a sparse matrix with scaled rows and columns. */
kofn_status kf_scaling_values(const kofn_sparse *a, const kf_scaling *l,
                              double **out);
/* Makes a copy with scaled rows and columns; the caller frees it. */
kofn_status kf_scaling_copy(const kofn_matrix *a, const int *row,
                            const int *col, int sign, kofn_matrix *out);

/* ---- operands that are equilibrated (equilibrate.c) ---------------------- */

/* Returns KF_SCALED_*: the rows or columns of an operand to equilibrate.  With
 * a search for errors there are more. */
unsigned kf_equilibrate_kind(const kofn_plan *p, kofn_errors errors);
/* Equilibrates an operand if its rows or columns differ in size.  *A then
 * becomes a scaled copy with numbers *owned, which the caller frees. */
kofn_status kf_equilibrate_dense(unsigned kind, kofn_matrix *A, kf_scaling *l,
                                 void **owned);
kofn_status kf_equilibrate_sparse(unsigned kind, kofn_sparse *A, kf_scaling *l,
                                  void **owned);
/* Prepares for changes of the operand: unmarks rows and columns of zeros,
 * because they may get other numbers. */
void kf_equilibrate_await(const kf_scaling *l, size_t rows, size_t cols);
/* Undoes kf_equilibrate_await: the operand is A again, with its original
 * scaling. */
kofn_status kf_equilibrate_restart(unsigned kind, const kofn_matrix *A,
                                   kf_scaling *l);
/* Replaces U and V of a change by scaled copies with numbers owned[0] and
 * owned[1], if needed.  The caller frees both in any case; NULL means
 * unchanged. */
kofn_status kf_equilibrate_change(const kf_scaling *l, kofn_matrix *U,
                                  kofn_matrix *V, void *owned[2]);
/* True if the input of a product must be scaled down; scales a copy down. */
bool kf_equilibrate_divides(const kf_scaling *held, const kofn_plan *use);
void kf_equilibrate_divide(const kf_scaling *held, const kofn_plan *use,
                           const kofn_matrix *in);
/* Replaces the input by a copy if needed: scaled down along the summed side,
 * with its other rows or columns equilibrated.  The caller frees *owned. */
kofn_status kf_equilibrate_input(const kf_scaling *held, const kofn_plan *use,
                                 kf_scaling *scaled, kofn_matrix *in,
                                 void **owned);
/* Fills *back with what undoes both scalings in the product's output. */
void kf_equilibrate_back(const kf_scaling *held, const kf_scaling *scaled,
                         const kofn_plan *use, kf_back *back);

/* ---- operands that come panel by panel (panels.c) ------------------------ */

/* What is known of the rows that have come. */
typedef struct kf_panels {
    unsigned kind; /* KF_SCALED_* */
    size_t rows, cols;
    double most;          /* largest number */
    bool zeros;           /* there are some; known if `kind` is not 0 */
    struct kf_scale *row; /* scales; NULL: rows are not scaled */
    int *digits;          /* by which rows were scaled before columns were
                             measured */
    struct kf_scale *col; /* exponents of norms so far */
    double *sum;          /* squares of these norms in units of the exponent */
} kf_panels;

/* Begins an operand of this shape; `kind` is by kf_equilibrate_kind. */
kofn_status kf_panels_new(kf_panels *p, unsigned kind, size_t rows,
                          size_t cols);
/* Measures rows from `at` on, and overwrites them.  Fails with KOFN_NONFINITE
 * if there is a NaN or an infinity. */
kofn_status kf_panels_add(kf_panels *p, size_t at, const kofn_matrix *panel);
/* Decides how the operand is scaled, and bounds its scaled numbers. */
kofn_status kf_panels_end(kf_panels *p, kf_scaling *l, double *most);
void kf_panels_free(kf_panels *p);

/* ---- what is sent with the work (message.c) ------------------------------ */

/* The input of a product as it is sent: one message for all, or one coded
 * message for each row of the code.  Rows are numbered like seats in the plan.
 */
typedef struct kf_messages {
    const kofn_plan *plan;
    kf_buffer *plain; /* the input, not coded */
    kf_parts parts;   /* its parts */
    kf_buffer **row;  /* message of each row, or NULL */
    size_t rows;
    kf_pool pool;
    bool lent; /* `parts` are views of borrowed memory ... */
    double by; /* ... and are multiplied by this when mixed */
} kf_messages;

/* Starts a round of this plan with a copy of `in` times a power of two. */
kofn_status kf_messages_begin(kf_messages *m, const kofn_plan *plan,
                              const kofn_matrix *in, double by);
/* Does the same with an input that is borrowed until kf_messages_release.  A
 * cut input is copied only part by part, in the mixtures. */
kofn_status kf_messages_lend(kf_messages *m, const kofn_plan *plan,
                             const kofn_matrix *in, double by);
/* Stops using the borrowed input. */
void kf_messages_release(kf_messages *m);
/* Frees this row's message, which is no longer needed. */
void kf_messages_forget(kf_messages *m, size_t row);
/* Makes the coded messages of these rows. */
kofn_status kf_messages_encode(kf_messages *m, kf_code *code,
                               const size_t *rows, size_t n);
/* Mixes strips [lo, hi) of an adjoint code for the rows of the decoder. */
kofn_status kf_messages_mix(kf_messages *m, const kofn_decoder *d, size_t lo,
                            size_t hi);
/* Returns the message for this row, as a reference of the caller. */
kf_buffer *kf_messages_take(const kf_messages *m, size_t row);
void kf_messages_free(kf_messages *m);

/* ---- decoding (decode.c) ------------------------------------------------- */

/* The result of one row for strips [lo, hi): components x (hi - lo) rows. */
typedef struct kf_source {
    const kofn_matrix *result;
    size_t lo, hi;
} kf_source;

/* Memory for decoding; it grows as needed, and the caller frees it. */
typedef struct kf_scratch {
    void *p;
    size_t bytes;
    const void **src;
    void **dst;
    size_t srcs, dsts;
    void *sums; /* of a decoder with a factor */
    size_t sums_bytes;
} kf_scratch;
kofn_status kf_decode(const kofn_plan *plan, const kofn_decoder *d,
                      const kf_source *sources, kf_band band, kofn_matrix *out,
                      kf_scratch *scratch);
/* Copy strips [lo, hi) of the group's wants, one want below the other, from
 * `out` to `rows` and back.  Parts beyond the edge are zeros. */
void kf_data_gather(const kofn_plan *plan, size_t group, size_t lo, size_t hi,
                    const kofn_matrix *out, void *rows);
void kf_data_scatter(const kofn_plan *plan, size_t group, size_t lo, size_t hi,
                     const void *rows, kofn_matrix *out);
/* Decodes and restores.  Fails with KOFN_NONFINITE if a number that is not lost
 * is NaN or infinite; everything is written before. */
typedef struct kf_output {
    kofn_matrix *out;
    const kf_back *back;
} kf_output;
kofn_status kf_data_decode(const kofn_plan *plan, const kofn_decoder *d,
                           const kf_source *sources, kf_band band,
                           const kf_output *to, kf_scratch *scratch);
/* Sums n results of an adjoint code into `out`. */
kofn_status kf_data_add_up(const kf_source *source, size_t n, kofn_matrix *out);
void kf_scratch_free(kf_scratch *s);

/* ---- what a sum is made of (tally.c) ------------------------------------- */

typedef struct kf_tally {
    size_t parts;
    double *weight; /* per part: its weight in the sum */
    unsigned *age;  /* per part: rounds since its last value; or NULL */
    bool *known;    /* per part: it has a value */
    void *value;    /* parts x span: last values */
} kf_tally;

/* Makes a tally of zeros. Free it even after a failure. */
kofn_status kf_tally_new(kf_tally *t, const kofn_plan *plan);
void kf_tally_free(kf_tally *t);
/* Sets the weights from this decoder. */
kofn_status kf_tally_count(kf_tally *t, kf_code *code, const kofn_decoder *d);
/* Remembers these results and sums all known values into `out`. */
kofn_status kf_tally_recall(kf_tally *t, const kofn_plan *plan,
                            const kofn_decoder *d, const kf_source *source,
                            kofn_matrix *out);

#endif
