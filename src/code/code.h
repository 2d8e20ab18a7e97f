/* code.h -- floor 2: a plan, the rows of its seats, and what decodes them.
 *
 * Codes, caches, decoders and readers are made and freed by the functions
 * here; what they return const is theirs.  Nothing on this floor sees a matrix
 * but as the sources of combine. */
#ifndef KF_CODE_H
#define KF_CODE_H

#include "author.h"

#include "base/base.h"

/* ---- plan ---------------------------------------------------------------- */

#define KF_MAX_PARAMS 12
/* Rounds beyond its first that a product of a stream may take: it and those
 * that follow are open together, and one is decoded. */
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
    kofn_scheme own; /* what `scheme` is: all that its author knew of */
    kofn_args args;
    size_t workers;
    size_t span;      /* strips of a block: rows of a part of A        */
    size_t parts;     /* of A in one group                             */
    size_t parts1;    /* of the input                                  */
    bool mixes_parts; /* G is E0 and W the identity: symbols are the parts of A
                       */
    char spec[256];   /* with every default spelled out                */
    kofn_plan *left;  /* the same blocks in left products, or NULL     */
    const kofn_plan
        *of; /* a reader (blocks.c): the plan whose blocks it reads */
};

/* The plan for its own operation, or for the left product that it serves. */
static inline const kofn_plan *kf_plan_use(const kofn_plan *p, bool left)
{
    return left ? p->left : p;
}

/* The same of a stream for products of another shape; it shares what it points
 * to and is not to be freed. */
kofn_status kf_code_shape(kofn_plan *out, const kofn_plan *p, size_t rows,
                          size_t inner, size_t cols);

/* The group of a seat, and its number there. */
static inline size_t kf_group(const kofn_plan *p, size_t seat)
{
    return seat % p->layout.groups;
}

static inline size_t kf_local(const kofn_plan *p, size_t seat)
{
    return seat / p->layout.groups;
}

/* Is an answer, of the operation or of the left product, the sum of all that
 * workers send?  Then each is needed, and is no part of the answer by itself.
 */
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
    kf_row *E0;       /* lanes x inner rows over the parts of A */
    kf_row *E1;       /* inner rows over the parts of B, or NULL */
    kf_row *G;        /* lanes rows over the symbols; may be E0 */
    double weight;    /* most that its coding can enlarge: |E0| |E1|; of A' A x
                         |E0|^2, of one sub-block */
    bool quaternions; /* G is made of blocks L(q) (quaternion.c)  */
    kf_arrays own;    /* what the rows are of                     */
} kf_seat;

/* The rows of the seats of one group, made on demand and for ever. */
typedef struct kf_code {
    const kofn_plan *plan;
    kf_seat **seat;
    size_t cap;
    bool uneven;
} kf_code;

kofn_status kf_code_new(kf_code **out, const kofn_plan *plan);
/* From now on the rows of every seat that is not plain are enlarged by a number
 * of its own, from 1 to 2, before anybody has asked for any, unless the scheme
 * decodes by itself; of A' A x those of every seat.  It makes no
 * difference to what is decoded; but points that stand evenly have parities
 * that are equal or opposite, in which equal errors of two seats would
 * cancel. */
void kf_code_uneven(kf_code *c);
/* Does the scheme decode, which knows the rows as it gave them?  That of A' A x
 * looks for few answers that happen to suffice, and is not asked where they are
 * compared. */
bool kf_code_decodes_itself(const kofn_plan *p, bool uneven);
/* The least number of results that decode; where results are compared and there
 * is parity, the number that tell every symbol besides: of A' A x fewer may
 * tell the sum of them. */
size_t kf_code_enough(const kofn_plan *p, bool compared);
/* Seats of which any so many decode by the first `each` submessages of all of
 * them (math/errors.md 10). */
size_t kf_code_seats(const kofn_layout *L, size_t each);
/* Submessages of each seat among these rows, which ascend: of all as many. */
size_t kf_code_each(const kofn_layout *L, const uint32_t *rows, size_t n);
void kf_code_free(kf_code *c);
/* Rows of seat `local`, below layout.max_seats. */
kofn_status kf_code_seat(kf_code *c, size_t local, const kf_seat **out);

/* ---- empty parts (silent.c) ---------------------------------------------- */

/* From strip `lo` on there is nothing in the parts of operands that this seat's
 * results are made of: they are zero, whatever the input. */
bool kf_code_is_zero_result(const kofn_plan *p, const kf_seat *seat,
                            size_t group, size_t lo);
/* Fewer than half of the products of parts are there at all; of A' A x, whose
 * answers are products of parts with each other, not all. */
bool kf_code_is_sparse_part(const kofn_plan *p, size_t group);
/* No seat is: no part is empty. */
bool kf_code_has_no_zero_result(const kofn_plan *p, size_t group, size_t lo);

/* ---- decoding ------------------------------------------------------------ */

typedef struct kf_factor kf_factor;

/* A decoder turns the results of some seats into the wants of their group: want
 * w is result copy[w] as it stands, or the next row of D times all results. */
typedef struct kofn_decoder {
    size_t seats, results, wants;
    uint32_t *seat;    /* local numbers, ascending                       */
    int32_t *copy;     /* result, KF_MIXED or KF_LOST, per want          */
    size_t mixed;      /* rows of D                                      */
    double *D;         /* mixed x results                                */
    uint32_t *run;     /* per row of D: where to end, if rows are made in
                         runs of those made of the same results, with it */
    kf_factor *factor; /* D as a product, where that is quicker  */
    double noise;      /* ||D diag(|E0| |E1|)||_F / sqrt(terms wants)    */
    double predicted;  /* relative error: c u noise                      */
    double condition;  /* of the system that was solved: 1-norm, or about */
    bool whole;        /* nothing is lost                                */
    size_t q;          /* parities, once asked for                       */
    double *H;         /* q x results                                    */
    double hidden;     /* by so few results, once asked for (suspect.h)  */
    size_t few;
} kofn_decoder;
#define KF_MIXED (-1)
#define KF_LOST (-2)

/* KOFN_TOOFEW when the seats do not determine every want, unless `partial`:
 * then wants that no seat holds as they are become KF_LOST.  Seats ascend. */
kofn_status kf_decoder_new(kofn_decoder **out, kf_code *c,
                           const uint32_t *seats, size_t n, bool partial);
void kf_decoder_free(kofn_decoder *d);
/* The relative error that rounding may bring to an answer, before the noise of
 * decoding (rounding.c). */
double kf_code_rounding(const kofn_layout *L, size_t results);
/* The relative error that this decoder, of plan `of`, predicts for a product of
 * plan p, which differs from it in shape only. */
double kf_code_predicted(const kofn_decoder *d, const kofn_plan *of,
                         const kofn_plan *p);
/* Sets d->run; NULL where rows are made of everything (runs.c). */
kofn_status kf_decoder_runs(kofn_decoder *d);

/* Sets d->factor; NULL where D itself is quicker (factor.c). */
kofn_status kf_decoder_factor(kofn_decoder *d, size_t lanes,
                              size_t submessages);
void kf_factor_free(kf_factor *f);
/* Bytes of scratch for vectors of len numbers. */
size_t kf_factor_room(const kf_factor *f, size_t len);
/* dst = D src. */
void kf_factor_apply(const kf_factor *f, const void *const *src,
                     void *const *dst, size_t len, kofn_dtype dtype,
                     void *scratch);

/* Decoders by survivor set, the least recently used dropped beyond a budget.
 * What it hands out lives until the next kf_cache_trim, or the second
 * kf_cache_trim_idle. */
typedef struct kf_cache kf_cache;
kofn_status kf_cache_new(kf_cache **out, kf_code *c, size_t budget);
kofn_status kf_cache_get(kf_cache *cache, const uint32_t *seats, size_t n,
                         bool partial, const kofn_decoder **out);
void kf_cache_trim(kf_cache *cache);
void kf_cache_trim_idle(kf_cache *cache);
const kofn_plan *kf_cache_plan(const kf_cache *cache);
/* The parities of a decoder's seats (suspect.h), kept with it: q x results,
 * H G = 0, orthonormal rows.  *q may be 0. */
kofn_status kf_cache_parity(kf_cache *cache, const kofn_decoder *d,
                            const double **H, size_t *q);
/* kf_hidden_of it, kept with it, for as few results as that. */
kofn_status kf_cache_hidden(kf_cache *cache, const kofn_decoder *d, size_t few,
                            double *hidden);
void kf_cache_free(kf_cache *cache);

/* ---- what the answers so far come to (answers.c) ------------------------- */

typedef struct kf_answers {
    const kofn_decoder *decoder; /* within the tolerance, or NULL: one answer
                                  more is wanted ...                         */
    bool hopeless;  /* ... and there is none that could come                 */
    double refused; /* its predicted error, if that was all that was wrong;
                       HUGE_VAL: there is no decoder of so many; else 0      */
} kf_answers;

/* The answers of these n rows, which ascend. */
kofn_status kf_answers_judge(kf_cache *cache, const kofn_plan *p,
                             const uint32_t *rows, size_t n, double tolerance,
                             kf_answers *out);
/* Are n answers all that there can be? */
bool kf_answers_all(const kofn_plan *p, size_t n);

/* ---- the blocks themselves (blocks.c) ------------------------------------ */

/* The factors of a seat's lanes where each is an outer product: part (i, j) of
 * A is in lane l f[l, i] g[l, j] times. f is lanes x cut[0].rows, g lanes x
 * cut[0].cols, and all lanes have one of them in common, ones: f where rows of
 * A are not cut, and else g where columns are not.  A += U' V therefore adds to
 * lane l the product of two coded matrices, (sum_i f[l, i] U_i)' (sum_j g[l, j]
 * V_j), with U and V cut into columns as the rows and columns of A are.
 * KOFN_UNSUITED where a lane is no such product. */
kofn_status kf_code_factors(kf_code *c, size_t local, double *f, double *g);
/* Has it a reader? */
bool kf_code_can_be_read(const kofn_plan *p);
/* The plan by which A itself is had from blocks of this one, results being rows
 * of blocks as they stand (KF_READ).  Borrows `plan`; freed with
 * kofn_plan_free. */
kofn_status kf_code_reader(kofn_plan **out, const kofn_plan *plan);
/* The block of `seat` from those of others of its group, which ascend: its lane
 * l is row l of x, lanes x (n lanes), times all of theirs, with the relative
 * error predicted.  KOFN_TOOFEW when theirs do not determine it. */
kofn_status kf_code_regenerator(kf_code *c, const uint32_t *seats, size_t n,
                                size_t seat, double *x, double *predicted);

/* ---- parts of a sum (alone.c) -------------------------------------------- */

bool kf_code_can_be_alone(const kofn_plan *p);
/* The plan by which each part is computed by one worker.  Its rows and its
 * seats are numbered as the parts; freed with kofn_plan_free, also on failure.
 */
kofn_status kf_code_alone(kofn_plan **out, const kofn_plan *plan);
/* Does every seat of a sum's code compute the part of its own number? */
kofn_status kf_code_has_own(kf_code *c);

/* Strips [lo, hi) of a group. */
typedef struct kf_band {
    size_t group, lo, hi;
} kf_band;

/* ---- small dense systems (solve.c) --------------------------------------- */

/* P X = B, P of m x n numbers and B of m x cols. */
typedef struct kf_system {
    size_t m, n;
    double *P;
    size_t ldp, cols;
    double *B;
    size_t ldb;
} kf_system;
/* Least squares, m >= n: X takes the first n rows of B; P is destroyed. */
kofn_status kf_code_least_squares(const kf_system *s);
/* C -= A B, where A is m x k and B is k x n. */
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

/* True if these four rows are made of blocks L(q). */
bool kf_code_quaternions(const kf_row *g);
/* Numbers of lanes: four after the other are those of a block, or none. */
bool kf_code_in_fours(const uint32_t *x, size_t n, uint32_t none);
/* All columns of A, which is m x n and made of blocks, from the first of every
 * four. */
void kf_code_all_lanes(size_t m, size_t n, const double *first, double *A);
/* The same as kf_code_subtract_product where A, B and C are made of blocks. */
kofn_status kf_code_subtract_quaternions(size_t m, size_t k, size_t n,
                                         const double *A, const double *B,
                                         double *C);

#endif
