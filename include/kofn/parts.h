/* parts.h -- functions that workers compute: the function of a KOFN_SUM, and a
 * worker's own multiplication.
 *
 * For programs with sums, and for workers with a GPU.  <kofn.h> includes it. */
#ifndef KOFN_PARTS_H
#define KOFN_PARTS_H

#include <kofn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The function of a KOFN_SUM.  Computes f(part, in) into `out` (m x 1) for part
 * 0 .. parts - 1.
 *
 * Workers that are threads call it concurrently, but never two calls for one
 * block.  It must give the same numbers for the same part and input on every
 * worker.  It must not write to `in`, which other parts need and which may be
 * read-only.  It must return, because kofn_close waits for worker threads.  If
 * it returns a failure, the task fails; report the reason with kofn_say.
 *
 * Accuracy: an entry of the sum has the rounding error of the largest entry of
 * a part at that place.  If a code mixes segments (cgc and agc with m > 1), it
 * has that of the largest entry of the mixed segments. */
typedef kofn_status (*kofn_part_fn)(void *ctx, size_t part, size_t parts,
                                    const kofn_matrix *in, kofn_matrix *out);
/* Places the function of a KOFN_SUM.  `ctx` is passed to each call of it and
 * must stay valid until kofn_close.
 * KOFN_INVAL: f is NULL.  KOFN_STATE: a function is placed already.
 * KOFN_SHAPE: the plan is for a matrix. */
KOFN_API kofn_status kofn_place_parts(kofn_job *job, kofn_part_fn f, void *ctx);
/* A part of a matrix X that is cut by rows, with one number y for each row.
 * Part j of P holds the rows from j m / P up to, and without, (j + 1) m / P of
 * m rows. */
typedef struct kofn_rows {
    kofn_matrix X;   /* rows of this part, float64; there may be none */
    const double *y; /* a number for each row                         */
    size_t first;    /* index of the first row in the whole matrix    */
} kofn_rows;
#define KOFN_FORMULA_ARGS 4 /* numbers that a formula is given */
/* A function of a KOFN_SUM over the rows of a matrix.  Workers on other
 * machines are sent the rows of their parts, and find the function by its
 * name. */
typedef struct kofn_formula {
    const char *name; /* NULL ends a list */
    /* Computes the sum over the rows of `part`.  It has the duties of a
     * kofn_part_fn and must not write to `part` either.  On another machine
     * `arg`, `part`, `in` and the length of `out` come from the network:
     * validate them. */
    kofn_status (*f)(const double arg[KOFN_FORMULA_ARGS], const kofn_rows *part,
                     const kofn_matrix *in, kofn_matrix *out);
} kofn_formula;
/* Places a formula and its rows for a KOFN_SUM in float64.  X has a row for
 * each number of y.  Borrows formula, X and y until kofn_close; copies arg.
 * KOFN_INVAL: an argument is missing, or X has too many rows.
 * KOFN_STATE: a function is placed already.
 * KOFN_SHAPE: X or the plan is not float64, or the plan is for a matrix.
 * KOFN_NONFINITE: X or y has a NaN or an infinity. */
KOFN_API kofn_status kofn_place_rows(kofn_job *job, const kofn_formula *formula,
                                     const double arg[KOFN_FORMULA_ARGS],
                                     const kofn_matrix *X, const double *y);
/* The formulas that every worker knows, ended by a NULL name.
 * kofn_regression_place and kofn_training_place (<kofn/train.h>) place them. */
extern KOFN_API const kofn_formula kofn_formulas[];
/* Sets the number of multiply-adds that f takes for all parts together, for the
 * modelled clock of the simulator.  Without it, that is the number of entries
 * in the answers.  Call it after placing the function and before the first
 * round.
 * Allocates no memory.
 * KOFN_STATE: no function is placed, or the first round has begun.
 * KOFN_INVAL: work is not a finite number above 0. */
KOFN_API kofn_status kofn_parts_work(kofn_job *job, double work);
/* The operands of a worker's own multiplication (kofn_serve_options.multiply of
 * <kofn/transport.h>), which computes A B.  Both are dense, have the same type
 * and are not transposed.  One of them is a window of the block that the worker
 * stores: A or, if `left`, B. */
typedef struct kofn_factors {
    kofn_matrix A, B, whole; /* whole: the entire stored block */
    size_t row, col;         /* start of the window in `whole` */
    bool left;
    /* Version of the numbers of `whole`.  You may keep a copy of them, for
     * example on a GPU.  The copy is valid while whole.data and `version` stay
     * the same.  Keep no copy if `version` is 0: the numbers then belong to
     * this task only. */
    uint64_t version;
} kofn_factors;
/* Computes all of `out` = A B, A.rows x B.cols, contiguous and of the same
 * type.  It must write nothing else: A, B and `whole` may be read-only, and
 * later products need them.  It must be exact to the rounding of the type,
 * which TF32 is not. */
typedef kofn_status (*kofn_multiply_fn)(void *ctx, const kofn_factors *f,
                                        kofn_matrix *out);

#ifdef __cplusplus
}
#endif

#endif
