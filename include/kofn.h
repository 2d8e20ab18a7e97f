/* kofn.h -- any k of n workers are enough.
 *
 * For whoever has products of matrices, or sums of a function, computed by workers
 * of which some are slow, lost or wrong.
 *
 * The whole user interface, in the order one meets it: status, memory,
 * matrices, plan, ports, job, report; in kofn/faults.h, what goes wrong; in
 * kofn/options.h, a job's options as a table; and in kofn/learn.h, what is made of
 * rounds: iterations, regression.
 *
 *   - 0 is success; > 0 is "answered, with a reservation" or "go on"; < 0 is
 *     failure, and kofn_errmsg() then says what was wrong and what to do.
 *   - Who called _new or _open owns the handle and ends it with _free or
 *     _close; both accept NULL.
 *   - A struct that begins with its size is begun with its _INIT: so it can grow,
 *     and who was compiled before goes on with what it has.  KOFN_INVAL: it was not.
 *   - A kofn_matrix is a borrowed view.  kofn never frees what it points to,
 *     and keeps it past the call only where a comment says so.
 *   - Times are in nanoseconds (kofn_time) where they are whole numbers, and in
 *     seconds where they are not.
 *   - Nothing prints or exits.  One handle, one thread at a time.
 */
#ifndef KOFN_H
#define KOFN_H

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

#define KOFN_VERSION "0.1.0"

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
    X(UNSTABLE, -12, "the predicted error exceeds the tolerance")              \
    X(FORMAT, -13, "malformed file")                                           \
    X(NONFINITE, -14, "NaN or infinity where a number is needed")

typedef enum kofn_status {
#define X(name, value, text) KOFN_##name = value,
    KOFN_STATUS_MAP(X)
#undef X
} kofn_status;

/* The status in words. */
KOFN_API const char *kofn_strerror(kofn_status st);

/* The message of the calling thread's last failed call, with the offending
 * value.  Valid until that thread's next failure; "" when no call has failed. */
KOFN_API const char *kofn_errmsg(void);
/* Has kofn_errmsg say so in this thread, as printf would, and returns st: for a
 * function of the user's that fails, of a scheme or one that workers call,
 * `return kofn_say(KOFN_INVAL, "part %zu is missing", part)`.  Of at most 4095
 * characters; see kofn_job_failure. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
KOFN_API kofn_status
kofn_say(kofn_status st, const char *fmt, ...);

typedef int64_t
    kofn_time; /* nanoseconds; absolute ones since the port opened */
#define KOFN_NEVER INT64_MAX
#define KOFN_SECOND INT64_C(1000000000)

/* ---- memory -------------------------------------------------------------- */

/* p == NULL allocates, want == 0 frees and returns NULL.  Results must be
 * aligned to 64 bytes. */
typedef void *(*kofn_alloc_fn)(void *ud, void *p, size_t want);

/* Route every allocation of the library through `fn`; NULL restores the C
 * library's.  Call it before anything else and from one thread. */
KOFN_API void kofn_set_alloc(kofn_alloc_fn fn, void *ud);

/* ---- matrices ------------------------------------------------------------ */

typedef enum kofn_dtype { KOFN_F64, KOFN_F32 } kofn_dtype;

/* Row-major view: element (i,j) at data[i*ld + j].  A C-contiguous NumPy
 * array crosses the border without a copy.  Numbers lie at multiples of their size, as
 * the C language has it: KOFN_INVAL is said of others. */
typedef struct kofn_matrix {
    void *data;
    size_t rows, cols, ld;
    kofn_dtype dtype;
} kofn_matrix;

/* Compressed sparse rows: row i holds entries ptr[i] .. ptr[i+1]-1. */
typedef struct kofn_sparse {
    size_t rows, cols;
    const size_t *ptr;   /* rows + 1, ascending, ptr[0] == 0 */
    const uint32_t *col; /* ptr[rows], each < cols           */
    const double *val;   /* ptr[rows]                        */
} kofn_sparse;

/* An operand of either kind; the other pointer is NULL. */
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

/* Frees what a function of the library gave, a kofn_sparse with its arrays. */
KOFN_API void kofn_free(void *p);
/* out = A in by one BLAS call (float32 accumulated in double), or row by row
 * for a sparse A.  out is float64. */
KOFN_API kofn_status kofn_product_plain(kofn_operand A, const kofn_matrix *in,
                                        kofn_matrix *out);

/* ---- plan: which code, with which numbers -------------------------------- */

typedef enum kofn_op {
    KOFN_MATVEC = 1 << 0, /* y = A x    A resident, x per round */
    KOFN_MATMUL = 1 << 1, /* C = A B    A resident, B per round */
    KOFN_LEFT = 1 << 2,   /* C = B A    A resident, B per round */
    KOFN_GRAM = 1 << 3,   /* y = A' A x A resident, x per round */
    KOFN_SUM = 1 << 4,    /* y = sum_j f(j, x) over parts j, f the caller's */
    KOFN_STREAM = 1 << 5  /* C = A B    both come with each of many products */
} kofn_op;

typedef struct kofn_problem {
    size_t size; /* sizeof(kofn_problem) */
    kofn_op op;
    size_t m, n, p; /* A is m x n, the round input n x p, the output m x p;
                       LEFT: the input is p x m, the output p x n;
                       GRAM: p is 1 and the output n x 1;
                       SUM: no A; input n x p, output m x 1;
                       STREAM: of a product, others may be of other sizes */
    kofn_dtype dtype;
    bool sparse; /* A is a kofn_sparse */
} kofn_problem;
/* Of its members, by place from `op` on. */
#define KOFN_PROBLEM_INIT(...)                                                 \
    {                                                                          \
        sizeof(kofn_problem), __VA_ARGS__                                      \
    }

typedef struct kofn_plan kofn_plan;

typedef struct kofn_plan_info {
    size_t size; /* sizeof(kofn_plan_info), so that it may grow          */
    const char *scheme, *spec; /* name; the whole string with its defaults   */
    size_t workers;            /* seats at the start                         */
    size_t block_rows;         /* rows of the block of a seat                */
    size_t parts;              /* SUM: parts that f is asked for             */
    size_t threshold;          /* any this many workers' answers decode, in
                                  left products too if they are served       */
    size_t max_seats;          /* with joiners on fresh rows; SIZE_MAX: any  */
    double storage;            /* per worker, as a share of A                */
    double load;               /* per worker and round, as a share of A x;
                                  STREAM: this and the next two of one task  */
    double upload;             /* to a worker, as a share of the input       */
    double answer;             /* from a worker, as a share of the output    */
    double noise50, noise99;   /* amplification over random losses           */
    size_t delay; /* STREAM: rounds after its first in which a product is due */
    size_t slots; /* STREAM: rows that a worker may be asked for in a round, as
                     long as nobody comes, goes or lies                       */
} kofn_plan_info;
#define KOFN_PLAN_INFO_INIT                                                    \
    {                                                                          \
        .size = sizeof(kofn_plan_info)                                         \
    }

/* spec: "NAME" or "NAME:key=value,..."; see kofn_scheme_at() of
 * <kofn/scheme.h> and `kofn schemes`.  workers: seats at the start, >= 1.  seed: of the random
 * coefficients. */
KOFN_API kofn_status kofn_plan_new(kofn_plan **out, const kofn_problem *pb,
                                   const char *spec, size_t workers,
                                   uint64_t seed);
/* The blocks of A that a plan hands out serve left products too: let rounds
 * from the left (kofn_put_at) with inputs of p rows be run on it.  Before
 * kofn_open. */
KOFN_API kofn_status kofn_plan_serve_left(kofn_plan *plan, size_t p);
/* Measures noise50 and noise99 on sampled losses when `noise` is true. */
KOFN_API kofn_status kofn_plan_describe(const kofn_plan *plan, bool noise,
                                        kofn_plan_info *info);
KOFN_API void kofn_plan_free(kofn_plan *plan);

#include <kofn/faults.h>

/* ---- ports: ways to reach workers ---------------------------------------- */

typedef struct kofn_port kofn_port;

/* Threads of this process.  `faults` may be NULL; they are injected for real:
 * sleeps, vanishing threads, flipped results. */
KOFN_API kofn_status kofn_port_threads(kofn_port **out, size_t workers,
                                       const kofn_faults *faults);
/* A deterministic simulator with a clock of its own; results are real. */
KOFN_API kofn_status kofn_port_sim(kofn_port **out, size_t workers,
                                   const kofn_faults *faults);
/* Only for a port that was never given to kofn_open. */
KOFN_API void kofn_port_close(kofn_port *port);

/* ---- job: run it --------------------------------------------------------- */

typedef struct kofn_job kofn_job;

/* Treatment of work in hand when the live set changes. */
typedef enum kofn_in_flight {
    KOFN_IN_FLIGHT_LEDGER, /* every strip that has come is kept */
    KOFN_IN_FLIGHT_KEEP,   /* strips that are decoded are kept  */
    KOFN_IN_FLIGHT_ABORT   /* the round begins again            */
} kofn_in_flight;

/* Behaviour when fewer workers are live than the threshold. */
typedef enum kofn_below {
    KOFN_BELOW_REFUSE, /* fail with KOFN_TOOFEW                              */
    KOFN_BELOW_PAUSE,  /* wait for joiners, up to `patience`                 */
    KOFN_BELOW_DEGRADE /* deliver the plain blocks that are left, NaN
                          elsewhere, as KOFN_PARTIAL                         */
} kofn_below;

/* Treatment of results that are wrong without saying so: DETECT finds that some
 * are wrong, from k + 1 results or more; the other modes find whose they are.  KEYED
 * tests results by secret random sums of the rows of A.
 * docs/errors.md says what is promised, and where it ends. */
typedef enum kofn_errors {
    KOFN_ERRORS_NONE,
    KOFN_ERRORS_DETECT,        /* KOFN_CORRUPT when results disagree          */
    KOFN_ERRORS_ADVERSARIAL,   /* liars who know the code and each other: up to
                                half of the answers beyond k               */
    KOFN_ERRORS_PROBABILISTIC, /* faults that do not conspire: up to all
                                answers beyond k but one                   */
    KOFN_ERRORS_KEYED /* A x and A B, of an A that does not change: all but k
                         workers, whatever they do.  k answers are awaited   */
} kofn_errors;

typedef struct kofn_options {
    size_t size; /* sizeof(kofn_options), so that it may grow */
    kofn_in_flight in_flight;
    kofn_below below;
    kofn_time patience; /* PAUSE: how long to wait; 0: for ever            */
    double tolerance;   /* refuse to decode where the predicted relative
                           error exceeds it; 0: 1e-9, float32 1e-4         */
    double late;        /* ask others as well for what is still owed when
                           this many times as long has passed as half of the
                           workers took, counted on from the last of them
                           that got ready, and sooner where that proved
                           right; 0: 1.5, below 0: never.  STREAM: as the
                           first took, and the same row where there are no
                           others                                          */
    kofn_time lease; /* give up a worker that has owed an answer, or been at its
                        block, for so long, and 50 times as long as others
                        took; 0: 30 s, below 0: never                      */
    unsigned pieces; /* results a worker's share is sent in; 0: 4, fewer
                        where a product of matrices has few rows           */
    kofn_errors errors;
    unsigned
        quarantine; /* how sure to be that a worker is wrong more often than
                            chance makes the others before it gets no more
                            work: by chance it happens once in
                            e^(12 quarantine) rounds (docs/errors.md); 0: 3 */
    bool beyond;    /* float32: also locate more liars than half of the
                            answers beyond k, at the risk of error  */
    size_t seats; /* that one principal, a key or a host, may have; more of its
                     workers stand by; 0: no limit                         */
    double mu;    /* STREAM: whoever takes more than 1 + mu times as long as the
                  first to have done its list is not waited for, where the
                  scheme allows that; 0 and more                             */
    unsigned audit; /* KOFN_SUM with errors: only the first of every so many
                       products is coded and checked; in the others each part is
                       computed by one worker and believed, and they are coded
                       only where a worker is missing or answers what is no
                       number; 0 or 1: all are                               */
    kofn_time start_within; /* fail when there are not enough workers for the
                               first round after so long; 0: wait for ever */
    const char *journal;    /* file to record the run in, or NULL             */
    const char *metrics;    /* file to keep figures in while it runs, or NULL */
    const char *trace;      /* file to draw the run in, or NULL               */
    const char *record; /* .npy or .csv file for a pattern (kofn_pattern_new)
                           of who was how slow in each round, or NULL; written
                           by kofn_finish                                     */
    const kofn_fault_event *events; /* borrowed until kofn_close             */
    size_t event_count;
} kofn_options;

#include <kofn/options.h>

#define KOFN_OPTION_FIRST_(type, name, kind, first, ...) first,
#define KOFN_OPTIONS_INIT                                                      \
    {                                                                          \
        sizeof(kofn_options), KOFN_OPTIONS_MAP(KOFN_OPTION_FIRST_) NULL, 0     \
    }

typedef enum kofn_worker_state {
    KOFN_WORKER_UNKNOWN,     /* never seen                                    */
    KOFN_WORKER_STANDBY,     /* here, but no seat is free                     */
    KOFN_WORKER_STORING,     /* on its way to a seat                          */
    KOFN_WORKER_LIVE,        /* has its block                                 */
    KOFN_WORKER_LEAVING,     /* has given notice                              */
    KOFN_WORKER_GONE,        /* will not come again under this number         */
    KOFN_WORKER_QUARANTINED, /* was located as corrupt too often              */
    KOFN_WORKER_UNRESPONSIVE, /* given up, for it left tasks unanswered        */
    KOFN_WORKER_STATES /* so many there are                             */
} kofn_worker_state;

/* The account of one product, or for kofn_job_totals of all since kofn_open.
 * Events of no product (workers that come and go, blocks) are told with the
 * product that is taken next; where products overlap, each report counts all
 * the time that its product was open. */
typedef struct kofn_report {
    size_t size; /* sizeof(kofn_report): what is filled of it */
    unsigned rounds;
    kofn_time took, encoding, waiting, decoding; /* on the port's clock       */
    double noise;     /* amplification of the worst strip decoded             */
    double predicted; /* relative error expected from it, and from lies as
                         large as the floor; of rows of different size that of
                         each beside |A| |x| of its own                       */
    unsigned live;    /* workers at the round's end                           */
    unsigned joined, left; /* workers                                         */
    unsigned late;         /* results that were not needed, come or not       */
    unsigned dropped;      /* foreign, stale and duplicate messages           */
    const size_t *rows;    /* per worker id: rows of its block it was asked
                              for; valid until another product is taken       */
    const kofn_worker_state *states; /* per worker id; valid as long as rows  */
    const unsigned *located; /* per worker id: rounds in which it was located as
                              corrupt, since the beginning                    */
    size_t workers;    /* length of rows, states and located                */
    unsigned messages; /* results that had come when the round ended      */
    uint64_t scalars;  /* numbers in them                                 */
    unsigned corrupt;  /* results that were found wrong                   */
    size_t liars;      /* so many principals may lie together, whatever they
                              know, and no wrong answer passes; 0 where nothing
                              is checked; in totals the fewest of any round   */
    double floor;      /* an entry of the output may be wrong by less than
                              this times the norms of the rows of A and columns
                              of the input that are coded with its own, none of
                              which counts for more than 2^7 of its own; of a
                              KOFN_SUM times the largest of the answers in which
                              it is, of a KOFN_GRAM times the norms of its column
                              of A and of A x (docs/errors.md); 0: nothing was
                              checked                                         */
    uint64_t sent, received; /* bytes handed to the port, of blocks and of each
                                task's input; and taken from it, of results   */
    const double *weights;   /* KOFN_SUM: per part j, the answer is the sum of
                              weights[j] f(j, x): 1, but where a scheme leaves
                              out who is missing (KOFN_PARTIAL); valid as long
                              as rows                                         */
    const unsigned *ages;    /* where a scheme remembers: per part, how many
                              rounds ago its f was computed; else NULL        */
    size_t parts;    /* length of weights and ages                      */
    uint32_t number; /* of the product; in totals 0                           */
    unsigned began, ended; /* KOFN_STREAM: its first round and its last       */
    size_t plain, coded;   /* KOFN_STREAM: answers that it was made of        */
    unsigned again;  /* workers that were located, and asked for their blocks of
                         an operand that changes: was it that?               */
    unsigned healed; /* workers whose block was wrong, and was made anew     */
    unsigned healing; /* workers whose blocks are being made of others'       */
    double drift; /* kofn_scrub: by so much of their size numbers of blocks are
                     off what the code allows, root mean square; the worst; 0:
                     nothing was compared                                     */
    unsigned unchecked; /* products that were believed (kofn_options.audit) */
} kofn_report;
#define KOFN_REPORT_INIT                                                       \
    {                                                                          \
        .size = sizeof(kofn_report)                                            \
    }

/* Takes the port over, even on failure; borrows the plan until kofn_close. */
KOFN_API kofn_status kofn_open(kofn_job **out, const kofn_plan *plan,
                               kofn_port *port, const kofn_options *opt);
/* The same for up to KOFN_OPERANDS_MOST resident operands, each with a plan of its
 * own: operand 0, 1, ...  All plans are of as many workers, groups, seats and of
 * one type, and none is of a KOFN_SUM or a KOFN_STREAM: KOFN_UNSUITED.  A worker
 * stores a block of each.  kofn_open is that of one. */
#define KOFN_OPERANDS_MOST 65536
KOFN_API kofn_status kofn_open_all(kofn_job **out, const kofn_plan *const *plan,
                                   size_t operands, kofn_port *port,
                                   const kofn_options *opt);
/* Hand out the coded blocks of A.  Borrows A until kofn_close: joiners, and
 * workers that share this memory, read it.  Each row of a product is as exact as
 * plain BLAS has it, relative to |A| |x| of that row, however small it is beside
 * others; where the large numbers of rows stand in different columns, and x takes
 * those of some away, only relative to the norms of these rows times that of x
 * (docs/numerics.md). */
KOFN_API kofn_status kofn_place(kofn_job *job, const kofn_matrix *A);
/* The same for an operand, dense or sparse; each is placed before the first round.
 * Calls that do not name an operand are of operand 0. */
KOFN_API kofn_status kofn_place_at(kofn_job *job, size_t operand,
                                   kofn_operand A);
/* For KOFN_SUM: what a worker computes of part `part` of `parts`.  It fills
 * out (m x 1) and is called from the workers' threads, several at a time but
 * never two for one block; the same part and input must give the same numbers
 * on every worker.  It must not write to `in`: other parts need it, and it may be
 * read-only memory.  A status other than KOFN_OK fails the task (kofn_say).  It must
 * return: kofn_close waits for it where the worker is a thread.  An entry of the sum has the
 * rounding of the largest of the parts' entries there, and where a code mixes
 * segments of them (cgc and agc with m > 1) of the largest of those: nothing is
 * promised of a small one beside it. */
typedef kofn_status (*kofn_part_fn)(void *ctx, size_t part, size_t parts,
                                    const kofn_matrix *in, kofn_matrix *out);
KOFN_API kofn_status kofn_place_parts(kofn_job *job, kofn_part_fn f, void *ctx);
/* The same of a matrix that is cut into parts by rows, with a number y for
 * each row: part j of P is rows j m / P up to (j + 1) m / P of m.  Workers
 * elsewhere are sent the rows of their parts and know the function by its
 * name. */
typedef struct kofn_rows {
    kofn_matrix X;   /* those of a part, float64; there may be none */
    const double *y; /* one for each                                */
    size_t first;    /* the number of the first among all           */
} kofn_rows;
#define KOFN_FORMULA_ARGS 4
typedef struct kofn_formula {
    const char *name; /* NULL ends a list */
    /* As kofn_part_fn, and must not write to `part` either.  On a worker
     * elsewhere `arg`, `part`, `in` and the length of `out` are what came:
     * check them. */
    kofn_status (*f)(const double arg[KOFN_FORMULA_ARGS], const kofn_rows *part,
                     const kofn_matrix *in, kofn_matrix *out);
} kofn_formula;
/* Borrows the formula, X and y until kofn_close; copies arg. */
KOFN_API kofn_status kofn_place_rows(kofn_job *job, const kofn_formula *formula,
                                     const double arg[KOFN_FORMULA_ARGS],
                                     const kofn_matrix *X, const double *y);
/* The formulas that every worker has: those that kofn_regression_place and, of
 * kofn/train.h, kofn_training_place place. */
extern KOFN_API const kofn_formula kofn_formulas[];
/* Sets the multiply-adds that f takes for all parts together, for the
 * simulator's modelled clock; until that is said, as many as there are numbers
 * in its answers.  To be called after the function was placed and before the
 * first round. */
KOFN_API kofn_status kofn_parts_work(kofn_job *job, double work);
/* The arguments of a worker's own way to multiply (kofn_serve_options of
 * <kofn/transport.h>), which is asked for A B: both dense, of one type, float32
 * or float64, neither transposed; rows lie ld numbers apart.  One of them is of
 * what the worker stores: A, or B where `left`.  It is the rows from `row` on
 * and the columns from `col` on of `whole`, which may be kept where products
 * are fast, on a GPU say: while `version` is the same, and not 0, so are the
 * numbers at whole.data.  Under another version what was kept is of no use any
 * more; 0: the numbers came with their task and go with it. */
typedef struct kofn_factors {
    kofn_matrix A, B, whole;
    size_t row, col;
    bool left;
    uint64_t version;
} kofn_factors;
/* Writes all of `out`, A.rows x B.cols of the same type with rows one behind the
 * other.  It must write nothing else: A, B and `whole` may be read-only memory, and
 * later products need them.  It must be exact to the rounding of that
 * type: TF32 and the like are not. */
typedef kofn_status (*kofn_multiply_fn)(void *ctx, const kofn_factors *f,
                                        kofn_matrix *out);
/* Open a product, out = A in, and do not wait for it.  in is n x p and copied,
 * out m x p and borrowed until the product is taken or cancelled.  *number, which may be
 * NULL: 1, 2, ... in the order they are put.  Up to KOFN_OPEN_MOST may be put and not
 * taken; beyond that KOFN_STATE.  Workers do what is of the oldest first, and go on with
 * the next where they have nothing more to do for it. */
#define KOFN_OPEN_MOST 16
KOFN_API kofn_status kofn_put(kofn_job *job, const kofn_matrix *in,
                              kofn_matrix *out, uint32_t *number);
/* The same with that operand; left: out = in A, p x m to p x n, where its plan
 * serves it, else KOFN_STATE. */
KOFN_API kofn_status kofn_put_at(kofn_job *job, size_t operand, bool left,
                                 const kofn_matrix *in, kofn_matrix *out,
                                 uint32_t *number);
/* For KOFN_STREAM, whose products come one after another with both operands:
 * queue out = X Y, of the plan's type and of any shape, m x n times n x p.  A
 * round begins with the next that is queued when the last round is over; a
 * product may take `delay` rounds more (kofn_plan_info), in which workers make
 * up for those who were slow: Krishnan, Hosseini, Khisti, "Coded sequential
 * matrix multiplication for straggler mitigation", 2020, docs/stream.md.  All
 * three are borrowed until the product is over and X and Y may not change
 * meanwhile; they are copied only where they are encoded. */
KOFN_API kofn_status kofn_put_pair(kofn_job *job, const kofn_matrix *X,
                                   const kofn_matrix *Y, kofn_matrix *out,
                                   uint32_t *number);
/* Wait until that product is over, in whatever order, and say what came of it;
 * the others go on meanwhile.  Of number 0: until the next one is, rep->number;
 * each is taken once.  KOFN_AGAIN after `atmost` of real time, and it can be
 * taken later.  rep may be NULL.  A stream goes on without another product only
 * while one of it is waited for here. */
KOFN_API kofn_status kofn_take(kofn_job *job, uint32_t number, kofn_time atmost,
                               kofn_report *rep);
/* Gives up a product that is not wanted any more, in whatever state: what
 * workers have of it in hand is cancelled, its output is the caller's again and
 * may be written in part, and what it cost is in the totals of the job.  Not
 * for a product of a stream. */
KOFN_API kofn_status kofn_cancel(kofn_job *job, uint32_t number);

/* Of a worker that had not done its list when a round of a stream ended: the
 * scheme counts on its being slow; or it was late (kofn_options.late), and since
 * the scheme does not admit that one more is slow, it is taken for one that left. */
enum { KOFN_MARKED = 1, KOFN_EXCUSED };

/* A round of a stream that is over. */
typedef struct kofn_stream_round {
    unsigned round;      /* 1 is the first                              */
    uint32_t product;    /* that began with it; 0: none                 */
    size_t open;         /* products that it was spent on               */
    size_t slots;        /* tasks in the longest list of a worker       */
    size_t live;         /* workers that had a list                     */
    kofn_time took;      /* all of it                                   */
    kofn_time first;     /* until the first worker had done its list    */
    kofn_time waited;    /* beyond (1 + mu) times that                  */
    double load;         /* multiply-adds of the longest list           */
    const uint8_t *mark; /* per worker's number: not 0 if it had not done its
                               list when the round ended; valid during the
                               call                                           */
    const kofn_time
        *times;     /* likewise: when it had, from the round's beginning;
                               KOFN_NEVER: it had not, or had no list         */
    size_t workers; /* length of mark and times                       */
} kofn_stream_round;
/* Have f(ud, round) called at the end of every round of a stream, before the
 * next begins.  It must not call the job.  NULL: no more. */
KOFN_API void kofn_on_round(kofn_job *job,
                            void (*f)(void *ud, const kofn_stream_round *round),
                            void *ud);

/* Runs one round: puts a product and takes it. */
KOFN_API kofn_status kofn_round(kofn_job *job, const kofn_matrix *in,
                                kofn_matrix *out, kofn_report *rep);
/* How an operand changes: G = U' V + decay A, M = momentum M + G, and A becomes
 * A - step M, with Nesterov's A - step (G + momentum M); M is 0 at first, and what
 * there is of it is forgotten when momentum is 0.  PyTorch's SGD. */
typedef struct kofn_change {
    size_t size; /* sizeof(kofn_change) */
    double step, decay, momentum;
    bool nesterov;
} kofn_change;
#define KOFN_CHANGE_INIT                                                       \
    {                                                                          \
        sizeof(kofn_change), 1, 0, 0, false                                    \
    }
/* Change an operand where its blocks lie, at the workers: U is r x m and V r x n,
 * a row an example of a batch.  What is placed is never written: a block that is
 * a view of it becomes the worker's own.  Told and not done when this returns, but
 * before what is begun afterwards; U and V are the caller's again.  Both NULL: U' V
 * is 0, and decay and momentum alone are what changes A.  The code's
 * rows of a seat must be outer products, as they are but with basis=complex:
 * else KOFN_UNSUITED, and so for sparse operands and for workers that may hold
 * blocks of before (kofn_away_options.job).  Workers that come afterwards have their
 * blocks of others', while products go on; where too few are left for that KOFN_TOOFEW.
 * With errors the floor (kofn_report) grows with every change, until the operand is
 * fetched; then it is that of what the operand is, or of what it was at the last fetch or
 * has changed by at once since, if that is more.  KOFN_STATE while a product of the
 * operand is not over. */
KOFN_API kofn_status kofn_update(kofn_job *job, size_t operand,
                                 const kofn_change *change,
                                 const kofn_matrix *U, const kofn_matrix *V);
/* Read an operand, m x n, as it is now, from any blocks that determine it; or its
 * velocity, M of kofn_change, which is 0 where it has none. */
KOFN_API kofn_status kofn_fetch(kofn_job *job, size_t operand, bool velocity,
                                kofn_matrix *A, kofn_report *rep);
/* Compare the blocks of all operands, read from everybody who is not late: also
 * those that no product shows to be wrong are found.  Who has one that is wrong
 * is located (kofn_report) and has it made anew of those of others, or of what was
 * placed, while products go on; that counts against it (kofn_options.quarantine).
 * Where operands change this is done of itself to an operand as soon
 * as somebody is located in a product of it.  KOFN_UNSUITED without errors, and
 * for plans whose blocks cannot be read; KOFN_CORRUPT where more differ than can
 * be told, KOFN_TOOFEW where too few are live: nobody is judged then, and the job
 * goes on. */
KOFN_API kofn_status kofn_scrub(kofn_job *job, kofn_report *rep);
/* The rounds from here on are of strips lo .. hi-1 only, of kofn_progress.strips many:
 * rows k S + lo .. k S + hi-1 of A for k = 0, 1, ... when there are S strips.
 * Other rows of the output are left as they are; of a left product the input
 * must be 0 there.  The work is as much less.  There are 0 strips, and
 * kofn_limit answers KOFN_UNSUITED, where the answers of a code are whole. */
KOFN_API kofn_status kofn_limit(kofn_job *job, size_t lo, size_t hi);

/* KOFN_SUM with errors and the option `audit`: from here on the next sum and then one
 * of every `every` are coded and checked; 1: all are.  KOFN_INVAL: `every` is 0.
 * KOFN_UNSUITED: the job was opened without `audit`.  A loop that ends has its last sum
 * checked so; kofn_regress and kofn_train do. */
KOFN_API kofn_status kofn_audit(kofn_job *job, unsigned every);
/* The option `audit` that the job was opened with; 1: all sums are checked, or none. */
KOFN_API unsigned kofn_audited(const kofn_job *job);

/* The rounds from here on are of step `step` of the caller's, which events
 * count instead: what is to happen before it happens before its first round,
 * fractions are of any of them.  Steps count from 1.  Where several products are
 * open, fractions are of the newest: what has not happened by then happens before
 * the next one begins. */
KOFN_API kofn_status kofn_step(kofn_job *job, unsigned step);

typedef struct kofn_progress {
    size_t size; /* sizeof(kofn_progress), so that it may grow */
    unsigned round;
    size_t live, awaited;    /* workers; workers with a task in hand */
    double done;             /* share of this round's strips that has come */
    size_t joined, left;     /* workers, since the beginning               */
    size_t outstanding;      /* strips that workers were asked for and owe */
    uint64_t sent, received; /* bytes, since the beginning              */
    size_t here, expected; /* workers that have come for the start, and how many
                              are to come before it                          */
    size_t crowd;   /* workers that stand by because their principal has all the
                      seats it may have                                      */
    size_t needed;  /* the round waits until so many are live; 0: it does not */
    size_t healing; /* workers whose blocks are being made of others'       */
    unsigned corrupt; /* results that were found wrong, since the beginning   */
    size_t strips;    /* that a round has, for kofn_limit; 0: it is whole     */
} kofn_progress;
#define KOFN_PROGRESS_INIT                                                     \
    {                                                                          \
        .size = sizeof(kofn_progress)                                          \
    }
KOFN_API kofn_status kofn_job_progress(const kofn_job *job, kofn_progress *p);
/* The plan it was opened with, of its first operand. */
KOFN_API const kofn_plan *kofn_job_plan(const kofn_job *job);
/* The name of the principal that answers for a worker: a key's name, or a host;
 * "" where only the worker itself does.  Valid until the next call. */
KOFN_API const char *kofn_job_name(const kofn_job *job, size_t worker);
/* The message of the worker whose task was the first to fail of the product
 * that was taken last: printable ASCII and newlines where it came from
 * elsewhere; "" where none failed.  Valid until the next product is taken. */
KOFN_API const char *kofn_job_failure(const kofn_job *job);
KOFN_API kofn_status kofn_job_totals(const kofn_job *job, kofn_report *rep);
/* Complete the files of options.metrics and options.trace; no round can follow.
 * KOFN_IO when one of them could not be written, now or before: the rounds do
 * not suffer from it.  kofn_close does the same but cannot tell. */
KOFN_API kofn_status kofn_finish(kofn_job *job);
/* Dismisses the workers and waits for those that are threads, which use what was
 * placed.  So a function of the caller's (kofn_place_parts, kofn_place_rows) that
 * does not return keeps kofn_close from returning, also where its worker was
 * given up (options.lease) and the rounds went on: what may hang belongs into
 * processes. */
KOFN_API void kofn_close(kofn_job *job);

/* ---- the machine --------------------------------------------------------- */

typedef struct kofn_machine {
    size_t size;          /* sizeof(kofn_machine), so that it may grow       */
    const char *simd;     /* of kofn's own kernels: avx512, avx2, plain      */
    const char *blas;     /* the BLAS in force, e.g. OpenBLAS Haswell        */
    const char *advice;   /* "" or why it is slow, and the line that mends it */
    const char *coretype; /* value for OPENBLAS_CORETYPE, or NULL            */
    int blas_threads;     /* of each worker: 1, or 0 when this BLAS does not
                             let itself be told */
} kofn_machine;
#define KOFN_MACHINE_INIT                                                      \
    {                                                                          \
        .size = sizeof(kofn_machine)                                           \
    }
/* Looks at the processor and at the BLAS that is loaded. */
KOFN_API kofn_status kofn_machine_info(kofn_machine *m);

#ifdef __cplusplus
}
#endif

#include <kofn/learn.h>

#endif
