/* base.h -- status, time, memory and matrices.
 *
 * For every program; <kofn.h> includes it and has the conventions. */
#ifndef KOFN_BASE_H
#define KOFN_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define KOFN_API __attribute__((visibility("default")))
#else
#define KOFN_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- status -------------------------------------------------------------- */

/* The values are part of the interface and never change. */
#define KOFN_STATUS_MAP(X)                                                     \
    X(OK, 0, "ok")                                                             \
    X(PARTIAL, 1,                                                              \
      "answered in part: rows of lost blocks are NaN, parts of a "             \
      "sum are left out")                                                      \
    X(AGAIN, 2, "not finished; call again")                                    \
    X(NOMEM, -1, "out of memory")                                              \
    X(INVAL, -2, "invalid argument")                                           \
    X(SHAPE, -3, "matrix shapes do not agree")                                 \
    X(NOSCHEME, -4, "no such scheme")                                          \
    X(UNSUITED, -5, "the scheme does not serve this operation")                \
    X(TOOFEW, -6, "too few workers are left to decode")                        \
    X(LATE, -7, "patience ran out before enough results had come")             \
    X(CORRUPT, -8, "more corrupt results than the code can correct")           \
    X(TRANSPORT, -9, "the transport failed")                                   \
    X(IO, -10, "a file could not be read or written")                          \
    X(STATE, -11, "call made in the wrong state")                              \
    X(UNSTABLE, -12, "the predicted error exceeds max_error")                  \
    X(FORMAT, -13, "malformed file")                                           \
    X(NONFINITE, -14, "NaN or infinity where a number is needed")

/* The result of a function.  0 is success, a value above 0 an answer with a
 * reservation or "call again", and a value below 0 a failure. */
typedef enum kofn_status {
#define X(name, value, text) KOFN_##name = value,
    KOFN_STATUS_MAP(X)
#undef X
} kofn_status;

/* Returns a short description of the status, a constant string. */
KOFN_API const char *kofn_strerror(kofn_status st);

/* Returns the message of the last call that failed in this thread, with the
 * offending value.  The string is valid until the next failure in this thread;
 * it is "" if no call has failed. */
KOFN_API const char *kofn_errmsg(void);
/* Sets the message that kofn_errmsg returns in this thread, formatted as by
 * printf, and returns `st`.  The message has at most 4095 characters.
 *
 * Use it in your own functions that kofn calls, in schemes and on workers:
 * `return kofn_say(KOFN_INVAL, "part %zu is missing", part)`.  kofn_job_failure
 * returns the message of a worker's task. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
KOFN_API kofn_status
kofn_say(kofn_status st, const char *fmt, ...);

/* A time in nanoseconds.  A point in time counts from the opening of the port.
 */
typedef int64_t kofn_time;
#define KOFN_NEVER INT64_MAX            /* later than any time */
#define KOFN_SECOND INT64_C(1000000000) /* in nanoseconds      */

/* ---- memory -------------------------------------------------------------- */

/* Allocates `want` bytes if p is NULL, else resizes p to them.  Frees p and
 * returns NULL if `want` is 0.  The returned memory must be aligned to 64
 * bytes. */
typedef void *(*kofn_alloc_fn)(void *ud, void *p, size_t want);

/* Makes the library allocate with `fn` only; NULL restores the C library's
 * allocator.  Call it before any other function, from one thread. */
KOFN_API void kofn_set_alloc(kofn_alloc_fn fn, void *ud);

/* ---- matrices ------------------------------------------------------------ */

/* Type of the numbers of a matrix: float64 or float32. */
typedef enum kofn_dtype { KOFN_F64, KOFN_F32 } kofn_dtype;

/* A view of a matrix in row-major order: element (i, j) is data[i * ld + j].  A
 * C-contiguous NumPy array can be passed without a copy.  `data` must be
 * aligned to the size of a number; otherwise functions return KOFN_INVAL. */
typedef struct kofn_matrix {
    void *data;
    size_t rows, cols, ld;
    kofn_dtype dtype;
} kofn_matrix;

/* Compressed sparse rows: row i holds entries ptr[i] .. ptr[i+1]-1. */
typedef struct kofn_sparse {
    size_t rows, cols;
    const size_t *ptr;   /* rows + 1 numbers, ascending, ptr[0] == 0 */
    const uint32_t *col; /* ptr[rows] numbers, each < cols           */
    const double *val;   /* ptr[rows] numbers                        */
} kofn_sparse;

/* A dense or a sparse operand.  The other pointer is NULL. */
typedef struct kofn_operand {
    const kofn_matrix *dense;
    const kofn_sparse *sparse;
} kofn_operand;
#ifdef __cplusplus
#define KOFN_DENSE(matrix)                                                     \
    kofn_operand                                                               \
    {                                                                          \
        (matrix), nullptr                                                      \
    }
#define KOFN_SPARSE(matrix)                                                    \
    kofn_operand                                                               \
    {                                                                          \
        nullptr, (matrix)                                                      \
    }
#else
#define KOFN_DENSE(matrix) ((kofn_operand){(matrix), NULL})
#define KOFN_SPARSE(matrix) ((kofn_operand){NULL, (matrix)})
#endif

/* Frees memory that a function of the library returned.  A kofn_sparse is freed
 * together with its arrays.  NULL is allowed. */
KOFN_API void kofn_free(void *p);
/* Computes out = A in on this thread, without workers or codes.  A dense
 * product is one BLAS call, in which float32 is accumulated in double; a sparse
 * product is computed row by row.  `out` is float64.
 * KOFN_INVAL, KOFN_SHAPE: a matrix is missing or misaligned, or shapes or types
 * do not agree. */
KOFN_API kofn_status kofn_product_plain(kofn_operand A, const kofn_matrix *in,
                                        kofn_matrix *out);

#ifdef __cplusplus
}
#endif

#endif
