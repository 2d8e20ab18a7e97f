/* code.h -- floor 2: a plan, the rows of its seats, and what decodes them.
 *
 * The functions here make and free codes, caches, decoders and readers; what
 * they return const stays theirs.  Only combine sees the numbers of a matrix on
 * this floor. */
#ifndef KF_CODE_H
#define KF_CODE_H

#include "author.h"

#include "base/base.h"

/* ---- plan ---------------------------------------------------------------- */

#define KF_MAX_PARAMS 12
/* Rounds after the first that a product of a stream may take.  It and the later
 * products are open at the same time, and one is being decoded. */
#define KF_MOST_DELAY (KOFN_OPEN_MOST - 2)

struct kofn_args {
    const kofn_param *params;
    long value[KF_MAX_PARAMS];
};

struct kf_operation; /* operation.h */

struct kofn_plan {
    kofn_layout layout;
    const struct kf_operation *op;
    const kofn_scheme *scheme;
    kofn_scheme owned; /* copy of the author's scheme, for `scheme` */
    kofn_args args;
    size_t workers;
    size_t span;      /* strips of a block: rows of a part of A        */
    size_t parts;     /* of A in one group */
    size_t parts1;    /* of the input                                  */
    bool mixes_parts; /* G is E0 and W the identity: symbols are the parts of A
                       */
    char spec[256];   /* with every default spelled out                */
    kofn_plan *left;  /* the same blocks in left products, or NULL */
    const kofn_plan
        *of; /* of a reader (blocks.c): the plan that made the blocks */
};

/* Returns the plan of the operation, or of the left product that it also
 * serves. */
static inline const kofn_plan *kf_plan_use(const kofn_plan *p, bool left)
{
    return left ? p->left : p;
}

/* Copies a plan for products of another shape.  The copy shares all pointers
 * and must not be freed. */
kofn_status kf_code_shape(kofn_plan *out, const kofn_plan *p, size_t rows,
                          size_t inner, size_t cols);

/* Return the group of a seat, and its number in the group. */
static inline size_t kf_group(const kofn_plan *p, size_t seat)
{
    return seat % p->layout.groups;
}

static inline size_t kf_local(const kofn_plan *p, size_t seat)
{
    return seat / p->layout.groups;
}

/* True if the result, of the operation or of the left product, is the sum of
 * all that workers send.  Then every answer is needed, and no single answer is
 * part of the result. */
static inline bool kf_code_adds_up(const kofn_plan *p)
{
    return p->layout.adjoint || (p->left && p->left->layout.adjoint);
}

/* ---- coefficients -------------------------------------------------------- */

/* A row of coefficients without its zeros; columns ascend. */
typedef struct kf_row {
    size_t n;
    uint32_t *col;
    double *val;
} kf_row;

typedef struct kf_seat {
    kf_row *E0;       /* components x inner rows over the parts of A */
    kf_row *E1;       /* inner rows over the parts of B, or NULL */
    kf_row *G;        /* components rows over the symbols; may be E0 */
    double weight;    /* gain of its coding: |E0| |E1|; of A' A x |E0|^2, of one
                       * sub-block */
    bool quaternions; /* G consists of blocks L(q) (quaternion.c) */
    kf_arrays owned;  /* owns the rows */
} kf_seat;

/* The rows of the seats of one group, made on demand and kept. */
typedef struct kf_code {
    const kofn_plan *plan;
    kf_seat **seat;
    size_t cap;
    bool uneven;
} kf_code;

kofn_status kf_code_new(kf_code **out, const kofn_plan *plan);
/* Multiplies the rows of each seat that is not plain by its own number from 1
 * to 2; for A' A x, of every seat.  Call it before the first use of a row.  It
 * has no effect if the scheme decodes itself.  Results do not change.  Without
 * it, evenly spaced points have parities that are equal or opposite, in which
 * equal errors of two seats would cancel. */
void kf_code_uneven(kf_code *c);
/* True if the scheme's own decoder is used.  It needs the original rows.  The
 * decoder of A' A x looks for small sets that happen to suffice; it is not used
 * if answers are compared. */
bool kf_code_decodes_itself(const kofn_plan *p, bool uneven);
/* Returns the least number of results that decode.  If results are compared,
 * they must also determine every symbol: fewer results of A' A x may determine
 * only the sum. */
size_t kf_code_enough(const kofn_plan *p, bool compared);
/* Returns K such that the first `each` submessages of any K seats decode
 * (math/errors.md 10). */
size_t kf_code_seats(const kofn_layout *L, size_t each);
/* Returns the number of submessages that every seat has among these rows, which
 * ascend. */
size_t kf_code_each(const kofn_layout *L, const uint32_t *rows, size_t n);
void kf_code_free(kf_code *c);
/* Sets *out to the rows of seat `local`, below layout.max_seats. */
kofn_status kf_code_seat(kf_code *c, size_t local, const kf_seat **out);

/* ---- empty parts (silent.c) ---------------------------------------------- */

/* True if this seat's results are zero from strip `lo` on for every input,
 * because their parts of the operands are empty. */
bool kf_code_is_zero_result(const kofn_plan *p, const kf_seat *seat,
                            size_t group, size_t lo);
/* True if fewer than half of the products of parts are not empty.  For A' A x,
 * which multiplies parts with each other: if any is empty. */
bool kf_code_is_sparse_part(const kofn_plan *p, size_t group);
/* True if no seat is such: no part is empty. */
bool kf_code_has_no_zero_result(const kofn_plan *p, size_t group, size_t lo);

/* ---- decoding ------------------------------------------------------------ */

typedef struct kf_factor kf_factor;

/* Turns the results of some seats into the wants of their group.  Want w is
 * either a copy of result copy[w], or the next row of D times all results. */
typedef struct kofn_decoder {
    size_t seats, results, wants;
    uint32_t *seat;    /* numbers in the group, ascending */
    int32_t *copy;     /* per want: a result, KF_MIXED or KF_LOST */
    size_t mixed;      /* rows of D                                      */
    double *D;         /* mixed x results                                */
    uint32_t *run;     /* per row of D: end of its run of rows with the same
                        * results; NULL: no runs */
    kf_factor *factor; /* D as a product, or NULL if D is faster */
    double noise;      /* ||D diag(|E0| |E1|)||_F / sqrt(terms wants)    */
    double predicted;  /* relative error: c u noise                      */
    double condition;  /* of the solved system: 1-norm, or about */
    bool whole;        /* nothing is lost                                */
    size_t q;          /* number of parities, after the first request */
    double *H;         /* q x results                                    */
    double hidden;     /* kf_hidden_of for `few` results, if requested */
    size_t few;
} kofn_decoder;
#define KF_MIXED (-1)
#define KF_LOST (-2)

/* Makes a decoder.  Fails with KOFN_TOOFEW if the seats do not determine every
 * want.  If `partial`, wants that no seat holds plainly become KF_LOST instead.
 * Seats ascend. */
kofn_status kf_decoder_new(kofn_decoder **out, kf_code *c,
                           const uint32_t *seats, size_t n, bool partial);
void kf_decoder_free(kofn_decoder *d);
/* Returns the relative error by rounding, before the noise of decoding
 * (rounding.c). */
double kf_code_rounding(const kofn_layout *L, size_t results);
/* Returns the relative error that this decoder, of plan `of`, predicts for a
 * product of plan p.  The plans differ only in shape. */
double kf_code_predicted(const kofn_decoder *d, const kofn_plan *of,
                         const kofn_plan *p);
/* Sets d->run; NULL if each row is made from all results (runs.c). */
kofn_status kf_decoder_runs(kofn_decoder *d);

/* Sets d->factor; NULL if D itself is faster (factor.c). */
kofn_status kf_decoder_factor(kofn_decoder *d, size_t components,
                              size_t submessages);
void kf_factor_free(kf_factor *f);
/* Returns the bytes of scratch for vectors of `len` numbers. */
size_t kf_factor_room(const kf_factor *f, size_t len);
/* Computes dst = D src. */
void kf_factor_apply(const kf_factor *f, const void *const *src,
                     void *const *dst, size_t len, kofn_dtype dtype,
                     void *scratch);

/* Decoders by survivor set.  Beyond a budget the least recently used are
 * dropped.  A returned decoder is valid until the next kf_cache_trim or the
 * second next kf_cache_trim_idle. */
typedef struct kf_cache kf_cache;
kofn_status kf_cache_new(kf_cache **out, kf_code *c, size_t budget);
kofn_status kf_cache_get(kf_cache *cache, const uint32_t *seats, size_t n,
                         bool partial, const kofn_decoder **out);
/* From now on solves the systems of at most that number of survivor sets of a
 * size.  Other sets get the decoder of the set that is most like them.  Its
 * counts are about right; its seats and numbers are not. */
void kf_cache_sample(kf_cache *cache, size_t sets);
void kf_cache_trim(kf_cache *cache);
void kf_cache_trim_idle(kf_cache *cache);
const kofn_plan *kf_cache_plan(const kf_cache *cache);
/* Returns the parities of a decoder's seats (suspect.h), which are kept with
 * it: q x results, H G = 0, orthonormal rows.  *q may be 0. */
kofn_status kf_cache_parity(kf_cache *cache, const kofn_decoder *d,
                            const double **H, size_t *q);
/* Returns kf_hidden_of the decoder for `few` results, and keeps it. */
kofn_status kf_cache_hidden(kf_cache *cache, const kofn_decoder *d, size_t few,
                            double *hidden);
void kf_cache_free(kf_cache *cache);

/* ---- what the answers so far come to (answers.c) ------------------------- */

typedef struct kf_answers {
    const kofn_decoder *decoder; /* within the tolerance; NULL: one more is
                                  * needed */
    bool hopeless;               /* decoder is NULL, and no more answers can
                                  * come */
    double refused; /* predicted error if too large; HUGE_VAL: no decoder; else
                     * 0 */
} kf_answers;

/* Judges the answers of these n rows, which ascend. */
kofn_status kf_answers_judge(kf_cache *cache, const kofn_plan *p,
                             const uint32_t *rows, size_t n, double max_error,
                             kf_answers *out);
/* True if there cannot be more than n answers. */
bool kf_answers_all(const kofn_plan *p, size_t n);

/* ---- the blocks themselves (blocks.c) ------------------------------------ */

/* Finds the factors of a seat's components if each component is an outer
 * product.  Component l is the sum of f[l, i] g[l, j] times part (i, j) of A.
 * Here f is components x cut[0].rows and g is components x cut[0].cols.
 *
 * All components have one factor in common, which is all ones: f if rows of A
 * are not cut, else g if columns are not.  So A += U' V adds to component l the
 * product of two coded matrices, (sum_i f[l, i] U_i)' (sum_j g[l, j] V_j). Here
 * U and V are cut into columns as the rows and columns of A are.  Fails with
 * KOFN_UNSUITED if a component is no such product. */
kofn_status kf_code_factors(kf_code *c, size_t local, double *f, double *g);
/* True if the plan has a reader. */
bool kf_code_can_be_read(const kofn_plan *p);
/* Makes the plan that computes A itself from the blocks of this one.  Its
 * results are rows of blocks (KF_READ).  Borrows `plan`; freed with
 * kofn_plan_free. */
kofn_status kf_code_reader(kofn_plan **out, const kofn_plan *plan);
/* Finds the combination of other blocks of the group that gives the block of
 * `seat`.  Component l is row l of x, components x (n components), times all
 * their components. *predicted is the relative error.  Seats ascend.  Fails
 * with KOFN_TOOFEW if the blocks do not determine it. */
kofn_status kf_code_regenerator(kf_code *c, const uint32_t *seats, size_t n,
                                size_t seat, double *x, double *predicted);

/* ---- parts of a sum (alone.c) -------------------------------------------- */

bool kf_code_can_be_alone(const kofn_plan *p);
/* Makes the plan in which one worker computes each part.  A row, its seat and
 * its part have the same number.  Freed with kofn_plan_free, also on failure.
 */
kofn_status kf_code_alone(kofn_plan **out, const kofn_plan *plan);
/* Fails with KOFN_UNSUITED unless seat i of a sum's code computes part i, for
 * all i. */
kofn_status kf_code_has_own(kf_code *c);

/* Strips [lo, hi) of a group. */
typedef struct kf_band {
    size_t group, lo, hi;
} kf_band;

/* ---- small dense systems (solve.c) --------------------------------------- */

/* The system P X = B, with P of m x n numbers and B of m x cols. */
typedef struct kf_system {
    size_t m, n;
    double *P;
    size_t ldp, cols;
    double *B;
    size_t ldb;
} kf_system;
/* Solves least squares for m >= n.  The first n rows of B become X; P is
 * destroyed. */
kofn_status kf_code_least_squares(const kf_system *s);
/* Computes C -= A B; A is m x k and B is k x n. */
typedef struct kf_difference {
    size_t m, k, n;
    const double *A;
    size_t lda;
    const double *B;
    size_t ldb;
    double *C;
    size_t ldc;
} kf_difference;
void kf_code_subtract_product(const kf_difference *d);

/* ---- quaternions (quaternion.c) ------------------------------------------ */

/* True if these four rows consist of blocks L(q). */
bool kf_code_quaternions(const kf_row *g);
/* True if each four consecutive numbers of components belong to one block, or
 * all four are `none`. */
bool kf_code_in_fours(const uint32_t *x, size_t n, uint32_t none);
/* Computes all columns of A (m x n, made of blocks) from the first of every
 * four. */
void kf_code_all_components(size_t m, size_t n, const double *first, double *A);
/* Does the same as kf_code_subtract_product for A, B and C made of blocks. */
kofn_status kf_code_subtract_quaternions(size_t m, size_t k, size_t n,
                                         const double *A, const double *B,
                                         double *C);

#endif
