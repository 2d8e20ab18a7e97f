/* kofn.h -- coded distributed computing: any k of n workers suffice.
 *
 * Computes products of matrices, and sums of a function, on workers that may be
 * slow, lost or faulty.  This header has what a program needs, in that order:
 * plan, ports, job, report.  It includes <kofn/base.h> (status, memory,
 * matrices), <kofn/faults.h> (simulated faults), <kofn/options.h> (table of the
 * options of a job), <kofn/parts.h> (functions of sums), <kofn/change.h>
 * (operands that change) and <kofn/learn.h> (iterations and regression).
 *
 * Conventions:
 *   - A status of 0 is success.  A status above 0 is an answer with a
 *     reservation, or "call again".  A status below 0 is a failure;
 *     kofn_errmsg() then says what was wrong and what to do.
 *   - Every function with a status can return KOFN_NOMEM, unless its comment
 *     says that it allocates no memory.
 *   - The caller of a _new or _open function owns the handle and releases it
 *     with _free or _close.  Both accept NULL.
 *   - Initialise each struct that begins with `size` with its _INIT macro.
 *     Otherwise functions that take it return KOFN_INVAL.  The size lets
 *     structs grow: programs that were compiled earlier keep working.
 *   - A kofn_matrix is a borrowed view.  kofn never frees its numbers, and uses
 *     them after the call only if a comment says so.
 *   - Times of type kofn_time are whole nanoseconds.  Times of type double are
 *     seconds.
 *   - The library never prints and never exits.  Use a handle from one thread
 *     at a time.
 *   - |v| is the Euclidean norm of a vector, A' the transpose of A.
 */
#ifndef KOFN_H
#define KOFN_H

#include <kofn/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KOFN_VERSION "0.1.0"

/* ---- plan: which code, with which numbers -------------------------------- */

/* The operation of a plan.  A' is the transpose of A.  A *resident* operand is
 * sent to the workers once; the other operand is the input of each round. */
typedef enum kofn_op {
    KOFN_MATVEC = 1 << 0, /* y = A x     A resident, x per round */
    KOFN_MATMUL = 1 << 1, /* C = A B     A resident, B per round */
    KOFN_LEFT = 1 << 2,   /* C = B A     A resident, B per round */
    KOFN_GRAM = 1 << 3,   /* y = A' A x  A resident, x per round */
    KOFN_SUM = 1 << 4,    /* y = sum_j f(j, x) over parts j, f the caller's */
    KOFN_STREAM = 1 << 5  /* C = A B     both new in each product */
} kofn_op;

/* The operation, and the sizes of its matrices.  A is m x n, the input of a
 * round n x p and the output m x p.  Some operations differ:
 *   MATVEC  p is 1.
 *   LEFT    The input is p x m and the output p x n.
 *   GRAM    p is 1 and the output is n x 1.
 *   SUM     There is no A.  The input is n x p and the output m x 1.
 *   STREAM  The sizes are those of a typical product; each product may have
 *           others. */
typedef struct kofn_problem {
    size_t size; /* sizeof(kofn_problem) */
    kofn_op op;
    size_t m, n, p;   /* each at least 1 */
    kofn_dtype dtype; /* of A, input and output */
    bool sparse;      /* A is a kofn_sparse */
} kofn_problem;
/* Initialises a kofn_problem with its members in order, from `op` on. */
#define KOFN_PROBLEM_INIT(...)                                                 \
    {                                                                          \
        sizeof(kofn_problem), __VA_ARGS__                                      \
    }

/* A code with its numbers, for one problem and one number of workers. */
typedef struct kofn_plan kofn_plan;

/* Size and cost of a plan.  A seat is a position in the code; each working
 * worker has one. */
typedef struct kofn_plan_info {
    size_t size; /* sizeof(kofn_plan_info) */
    /* The name of the scheme, and the complete scheme string with all defaults.
     * Both are owned by the plan. */
    const char *scheme, *spec;
    size_t workers;    /* seats at the start                   */
    size_t block_rows; /* rows of the block that a seat stores */
    size_t parts;      /* SUM: parts of the sum; otherwise 0   */
    /* The answers of any `threshold` workers suffice, also for left products if
     * the plan serves them. */
    size_t threshold;
    size_t max_seats; /* most seats, joiners included; SIZE_MAX: no limit */
    double storage;   /* stored by a worker, as a share of A; STREAM: 0   */
    /* Work, input and answer of a worker in a round, as shares of the whole
     * product, input and output.  STREAM: those of a task, not of a round. */
    double load;
    double upload;
    double answer;
    /* Median and 99 % quantile of the amplification of rounding errors by
     * decoding, over random losses of workers.  NaN if they were not
     * measured. */
    double noise50, noise99;
    /* STREAM: a product is due `delay` rounds after its first round. */
    size_t delay;
    /* STREAM: most rows of the code that a worker is asked for in a round,
     * while no worker joins, leaves or is faulty. */
    size_t slots;
} kofn_plan_info;
#define KOFN_PLAN_INFO_INIT                                                    \
    {                                                                          \
        sizeof(kofn_plan_info), NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,   \
            0, 0                                                               \
    }

/* Makes a plan: a code for this problem and this number of workers.
 *
 * `spec` is "NAME" or "NAME:key=value,..."; kofn_scheme_at() of <kofn/scheme.h>
 * and the command `kofn schemes` list the schemes.  `workers` is the number of
 * seats at the start, 1 .. 1000000.  `seed` determines the random coefficients,
 * so equal seeds give equal plans.  The caller frees *out with kofn_plan_free.
 * It is NULL on failure.
 * KOFN_NOSCHEME: there is no scheme NAME.
 * KOFN_UNSUITED: the scheme does not serve this operation, or no sparse A.
 * KOFN_SHAPE: a size is 0 or too large, or p is not 1 in MATVEC or GRAM.
 * KOFN_INVAL: `op`, `workers` or a key or value in `spec` is invalid. */
KOFN_API kofn_status kofn_plan_new(kofn_plan **out, const kofn_problem *pb,
                                   const char *spec, size_t workers,
                                   uint64_t seed);
/* Writes the scheme `spec` with the parameter with which any `lost` of the
 * `workers` may be lost: k of elastic and mds, d of gc and agc, r of pcr.  It
 * is that which the command takes for --tolerate, and Python for tolerate=.
 * KOFN_UNSUITED: the scheme has no such parameter.
 * KOFN_INVAL: `spec` has that parameter already, `lost` is not below `workers`,
 * or the text is longer than `room`. */
KOFN_API kofn_status kofn_scheme_tolerate(const char *spec, size_t workers,
                                          size_t lost, char *out, size_t room);
/* Makes the plan also serve left products B A on the same blocks, with inputs B
 * of p rows (kofn_put_at).  Call it before kofn_open.  Under elastic with A cut
 * into rows, the inputs of later products may have any number of rows.
 * KOFN_STATE: the plan serves left products already.
 * KOFN_UNSUITED: the scheme has no left products, or stores other blocks for
 * them.
 * KOFN_SHAPE: p is 0 or too large. */
KOFN_API kofn_status kofn_plan_serve_left(kofn_plan *plan, size_t p);
/* Fills *info.  If `noise` is true, it also measures noise50 and noise99 on 3
 * to 200 random sets of survivors, which takes up to some seconds. */
KOFN_API kofn_status kofn_plan_describe(const kofn_plan *plan, bool noise,
                                        kofn_plan_info *info);
/* Frees the plan; NULL is allowed.  Close the jobs that borrow it first. */
KOFN_API void kofn_plan_free(kofn_plan *plan);

#include <kofn/faults.h>

/* ---- ports: ways to reach workers ---------------------------------------- */

/* A way to reach workers.  kofn_open takes it over, even if it fails. */
typedef struct kofn_port kofn_port;

/* Starts workers that are threads of this process.  `faults` may be NULL; it is
 * copied, but its pattern is borrowed.  Faults are emulated for real: threads
 * sleep, end, or return wrong numbers.  The caller owns *out until it calls
 * kofn_open, which takes the port over even if it fails.
 * KOFN_TRANSPORT: a thread cannot be started. */
KOFN_API kofn_status kofn_port_threads(kofn_port **out, size_t workers,
                                       const kofn_faults *faults);
/* Makes a deterministic simulator of workers with a simulated clock.  Results
 * are computed for real.  `faults` and *out are as in kofn_port_threads.
 * Workers on other machines: kofn_port_away in <kofn/transport.h>. */
KOFN_API kofn_status kofn_port_sim(kofn_port **out, size_t workers,
                                   const kofn_faults *faults);
/* Closes a port that was never given to kofn_open. */
KOFN_API void kofn_port_close(kofn_port *port);

/* ---- job: run it --------------------------------------------------------- */

/* A run of products.  Some failures, of the port for example, make the job fail
 * as a whole.  Further calls then return KOFN_STATE; close the job with
 * kofn_close. */
typedef struct kofn_job kofn_job;

/* Which work of the current round is kept when a worker leaves.  A strip is a
 * row offset of a block, the unit in which work is dealt and decoded. */
typedef enum kofn_in_flight {
    KOFN_IN_FLIGHT_LEDGER, /* all results that have arrived */
    KOFN_IN_FLIGHT_KEEP,   /* the strips that are decoded   */
    KOFN_IN_FLIGHT_ABORT   /* nothing; the round restarts   */
} kofn_in_flight;

/* Behaviour if fewer workers are live than a round needs. */
typedef enum kofn_below {
    /* The product fails with KOFN_TOOFEW. */
    KOFN_BELOW_REFUSE,
    /* The product waits for joiners, at most for `patience`. */
    KOFN_BELOW_PAUSE,
    /* The product delivers the uncoded blocks of A that workers still hold,
     * with NaN in all other rows, as KOFN_PARTIAL. */
    KOFN_BELOW_DEGRADE
} kofn_below;

/* How wrong results are found.  n is the number of workers, k the number of
 * answers that suffice.  docs/errors.md says what is guaranteed. */
typedef enum kofn_errors {
    /* Results are not checked. */
    KOFN_ERRORS_NONE,
    /* Compares k + 1 results or more.  The product fails with KOFN_CORRUPT if
     * they disagree. */
    KOFN_ERRORS_DETECT,
    /* Locates and leaves out up to floor((n - k) / 2) workers that know the
     * code and conspire. */
    KOFN_ERRORS_ADVERSARIAL,
    /* Locates and leaves out up to n - k - 1 workers with independent faults,
     * and up to floor((n - k) / 2) workers with any faults. */
    KOFN_ERRORS_PROBABILISTIC,
    /* Tests results by secret random sums of the rows of A.  Locates and leaves
     * out up to n - k workers, whatever they send, and waits for k answers
     * only.  For A x and A B with an A that does not change. */
    KOFN_ERRORS_KEYED
} kofn_errors;

/* Options of a job.  Initialise it with KOFN_OPTIONS_INIT; a member that is 0
 * has its default then.  KOFN_OPTIONS_MAP of <kofn/options.h> has the
 * ranges. */
typedef struct kofn_options {
    size_t size; /* sizeof(kofn_options) */
    /* Which work of a round is kept when a worker leaves.  Default: LEDGER. */
    kofn_in_flight in_flight;
    /* Behaviour if too few workers are live.  Default: REFUSE. */
    kofn_below below;
    /* KOFN_BELOW_PAUSE: longest wait for joiners, 1 us .. 1e9 s.  After it the
     * product fails with KOFN_LATE.  0: no limit. */
    kofn_time patience;
    /* Largest predicted relative error that is delivered, 1e-300 .. 1.  It
     * covers rounding and, with `errors`, undetected wrong results.  A product
     * above it fails with KOFN_UNSTABLE.  0: only rounding is limited, to 1e-9
     * in float64 and 1e-4 in float32. */
    double max_error;
    /* Hedge factor, 1 .. 1e9.  Let t be the time in which half of the workers
     * completed their work of the round.  If then no worker completes for
     * (late - 1) t, the outstanding work is also given to other workers, and
     * the first answer counts.  The wait is halved, down to a quarter, after a
     * round that ended before a late answer arrived; otherwise it doubles back.
     * It is longer if others have larger shares, and at least 1 ms except on
     * the simulator.
     *
     * The default, 0, means 1.5.  In schemes that leave late answers out
     * (ignore, distr-bgd) it means never.  Negative: never.
     *
     * STREAM: t is the time of the first worker, the wait is not adapted, and
     * another worker gets the same row if the code has no fresh one. */
    double late;
    /* Timeout of a worker, 1 ns .. 1e9 s.  A worker is evicted if it owes an
     * answer, or stores its block, for longer than `lease` and than 50 times
     * the median time of the workers.  While fewer than half of them have
     * completed, the timeout is 10 times `lease`; before the first has
     * completed, there is none.  0 means the default, 30 s; negative: never. */
    kofn_time lease;
    /* Number of results in which a worker sends its share of a round,
     * 1 .. 10000.  The work of a slow worker counts up to its last result.  0
     * means 4, or fewer for products of matrices in which a share has few
     * rows. */
    unsigned pieces;
    /* How wrong results are found.  Default: NONE. */
    kofn_errors errors;
    /* Evidence that excludes a faulty worker, 1 .. 1e9.  A worker gets no more
     * work if it is wrong significantly more often than the others.  A worker
     * that is no worse than the others is excluded at most once in
     * e^(12 quarantine) rounds (Page's test, docs/errors.md).  0 means the
     * default, 3. */
    unsigned quarantine;
    /* float32 only: also locate more faulty workers than half of the answers
     * beyond k.  Honest workers may then be named. */
    bool beyond;
    /* Most seats of one principal, which is the owner of a worker: a key or,
     * without keys, a host.  Its other workers stand by.  0: no limit. */
    size_t workers_per_principal;
    /* STREAM: let t be the time in which the first worker completed its list.
     * Workers that are not complete after (1 + mu) t are not waited for, if the
     * scheme allows that.  0 .. 1e6; KOFN_OPTIONS_INIT sets 0.25. */
    double mu;
    /* KOFN_SUM with `errors`: only the first of every `audit` sums is coded and
     * checked, 1 .. 1e9.  In the other sums one worker computes each part and
     * is trusted.  Such a sum is repeated, coded, if a worker is missing or
     * answers NaN or infinity.  0 or 1: all sums are checked. */
    unsigned audit;
    /* Longest wait for enough workers before the first round, 1 ms .. 1e9 s.
     * After it the call that waits, such as kofn_take, returns KOFN_LATE.
     * 0: no limit. */
    kofn_time start_within;
    /* Files that the job writes; NULL: none.  The names are copied. */
    const char *journal; /* the events and decisions, for `kofn replay`      */
    const char *metrics; /* figures for Prometheus, rewritten during the run */
    const char *trace;   /* the run for ui.perfetto.dev, chrome://tracing    */
    /* The slowdown of each worker in each round, as .npy or .csv.
     * kofn_pattern_new reads the file.  kofn_finish writes it. */
    const char *record;
    /* A page of HTML about the run, for people.  kofn_finish writes it. */
    const char *report;
    /* Simulated faults, in ascending order of rounds.  Borrowed until
     * kofn_close. */
    const kofn_fault_event *events;
    size_t event_count;
} kofn_options;

#include <kofn/options.h>

#define KOFN_OPTION_FIRST_(type, name, kind, first, ...) first,
#define KOFN_OPTIONS_INIT                                                      \
    {                                                                          \
        sizeof(kofn_options), KOFN_OPTIONS_MAP(KOFN_OPTION_FIRST_) NULL, 0     \
    }

#include <kofn/report.h>

#define KOFN_OPERANDS_MOST 65536 /* operands of a job */
/* Takes the port over, even if it fails, and opens a job with one resident
 * operand.  So never close a port that was given to kofn_open: kofn_close does,
 * or kofn_open itself if it fails.  Otherwise it is like kofn_open_all, and
 * returns the statuses of that function. */
KOFN_API kofn_status kofn_open(kofn_job **out, const kofn_plan *plan,
                               kofn_port *port, const kofn_options *opt);
/* Takes the port over, even if it fails, and opens a job with operands 0, 1,
 * ..., each with its own plan.  A worker stores a block of each operand.  All
 * plans need the same numbers of workers, groups and seats and the same type; a
 * SUM or STREAM plan must be the only one.
 *
 * If it fails, it closes the port.  Borrows the plans until kofn_close.
 * `opt` is copied; NULL means all defaults.  The caller ends *out with
 * kofn_close; it is NULL on failure.
 * KOFN_INVAL: `operands` is not in 1 .. KOFN_OPERANDS_MOST, an option is out of
 * its range, or `errors` is set and there are too few workers to compare
 * results.
 * KOFN_UNSUITED: a plan or the port does not support an option, or the plans do
 * not fit each other.
 * KOFN_IO: a file of the options cannot be opened, or the system has no random
 * numbers. */
KOFN_API kofn_status kofn_open_all(kofn_job **out, const kofn_plan *const *plan,
                                   size_t operands, kofn_port *port,
                                   const kofn_options *opt);
/* Places a dense A as operand 0, as kofn_place_at does.  It returns the
 * statuses of kofn_place_at. */
KOFN_API kofn_status kofn_place(kofn_job *job, const kofn_matrix *A);
/* Places A, dense or sparse, as this operand; its coded blocks go to the
 * workers with the first round.  Place every operand before the first round.
 * Functions without an operand number use operand 0.
 *
 * Borrows A until kofn_close: joiners, and workers in this process, read it.
 *
 * Accuracy: each row of a product is as exact as plain BLAS, relative to |row|
 * |x|, even if other rows are much larger.  There is one exception: the large
 * numbers of the rows are in different columns and x is small in some of these.
 * The error of a row is then relative to the norms of the larger rows
 * (docs/numerics.md).
 * KOFN_INVAL: there is no such operand, or A is missing or misaligned.
 * KOFN_STATE: the operand is placed already, or the plan is for a STREAM.
 * KOFN_SHAPE: shape, type or kind of A are not those of the plan.
 * KOFN_NONFINITE: A has a NaN or an infinity. */
KOFN_API kofn_status kofn_place_at(kofn_job *job, size_t operand,
                                   kofn_operand A);
/* A matrix that is read row by row. */
typedef struct kofn_source {
    size_t size; /* set by KOFN_SOURCE_INIT */
    /* Writes rows row, row + 1, ... of A to all rows of *out, which are ld
     * numbers apart.  It may be called for any rows, several times, on the
     * thread of the job's caller.  It must not call functions of the job.
     * While workers are waited for it is also called with out == NULL, at
     * least every tenth of a second.  Any status but KOFN_OK ends the
     * placing. */
    kofn_status (*read)(void *ud, size_t row, const kofn_matrix *out);
    void *ud;     /* passed to read */
    size_t panel; /* bytes of A to read at a time; at least one row, or one row
                     of each part, is read; 0: 64 MiB                        */
} kofn_source;
#define KOFN_SOURCE_INIT                                                       \
    {                                                                          \
        sizeof(kofn_source), NULL, NULL, 0                                     \
    }
/* Places an operand that no process has as a whole, such as one that is spread
 * over machines.  Waits for the workers, and returns when enough of them have
 * their blocks.  A is read twice; afterwards `source` is not used.  Memory here
 * is a few times `panel`.
 *
 * It must be the last operand that is placed.  The blocks of later workers are
 * made from those of others, as after kofn_update, which may be called.  So no
 * more workers may be lost at a time than the scheme allows.
 *
 * Accuracy is that of kofn_place_at.
 * KOFN_INVAL: there is no such operand, or the source is missing.
 * KOFN_STATE: the operand is placed already, another one is not, or the plan is
 * for a STREAM.
 * KOFN_SHAPE: the plan is for a sum or for a sparse matrix.
 * KOFN_UNSUITED: the scheme, `errors` = keyed, or a job with a number needs A
 * as a whole; or rows and columns differ in size, and there are zeros.
 * KOFN_NONFINITE: A has a NaN or an infinity.
 * KOFN_LATE: too few workers came in time.
 * KOFN_TOOFEW: too few workers are left, and the option `below` is not to wait,
 * or `patience` is over.
 * Otherwise it returns the failures of `read`.  If blocks were sent, the job is
 * broken after a failure. */
KOFN_API kofn_status kofn_place_from(kofn_job *job, size_t operand,
                                     const kofn_source *source);
#define KOFN_OPEN_MOST 16 /* open products of a job */
/* Starts a product out = A in with operand 0 and returns without waiting for
 * it.
 *
 * `in` has the shape of the round input and is copied; `out` has that of the
 * output and is borrowed until the product is taken or cancelled (kofn_problem
 * has the shapes).  For KOFN_MATMUL both may have any number of columns; p of
 * the problem should be the usual one.  *number becomes 1, 2, ... in the order
 * of the calls; `number` may be NULL.  Up to KOFN_OPEN_MOST products may be
 * open, which means started and not taken.  Workers do the oldest product
 * first, and the next one when they have nothing left to do for it.
 *
 * KOFN_STATE: KOFN_OPEN_MOST products are open, an operand is not placed, the
 * plan is for a STREAM, or the job has failed.
 * KOFN_INVAL, KOFN_SHAPE, KOFN_NONFINITE: a matrix is missing, has a wrong
 * shape or type, or `in` has a NaN or an infinity.
 * KOFN_UNSUITED: the product is wider than the problem, and an answer would be
 * longer than the port can receive.
 * KOFN_TRANSPORT: the transport failed, and with it the job. */
KOFN_API kofn_status kofn_put(kofn_job *job, const kofn_matrix *in,
                              kofn_matrix *out, uint32_t *number);
/* Starts a product with this operand, like kofn_put.  If `left` is true it
 * computes out = in A, with `in` p x m and `out` p x n.
 * KOFN_STATE: also if the plan of the operand does not serve this side
 * (kofn_plan_serve_left).
 * KOFN_INVAL: also if there is no such operand.
 * Otherwise it returns the statuses of kofn_put. */
KOFN_API kofn_status kofn_put_at(kofn_job *job, size_t operand, bool left,
                                 const kofn_matrix *in, kofn_matrix *out,
                                 uint32_t *number);
/* Queues the product out = X Y of a KOFN_STREAM.  X is m x n, Y n x p, out m x
 * p, in the type of the plan; the sizes may differ between products.
 *
 * A round begins with the next queued product when the last round is over.  A
 * product may take `delay` further rounds (kofn_plan_info), in which workers
 * compensate for slow ones.  Source: Krishnan, Hosseini, Khisti, "Coded
 * sequential matrix multiplication for straggler mitigation", 2020;
 * docs/stream.md.
 *
 * All three matrices are borrowed until the product is over.  X and Y must not
 * change before that, because they are read when rows are encoded.
 * KOFN_STATE: the plan is not for a STREAM, KOFN_OPEN_MOST products are open,
 * or the job has failed.
 * KOFN_UNSUITED: an answer would be longer than the port can receive.
 * KOFN_INVAL, KOFN_SHAPE, KOFN_NONFINITE: a matrix is missing, has a wrong
 * shape or type, or X or Y has a NaN or an infinity.
 * KOFN_TRANSPORT: the transport failed, and with it the job. */
KOFN_API kofn_status kofn_put_pair(kofn_job *job, const kofn_matrix *X,
                                   const kofn_matrix *Y, kofn_matrix *out,
                                   uint32_t *number);
/* Waits until this product is over, and closes it.  Products may be taken in
 * any order; the others continue meanwhile.  number 0 takes the next product
 * that is over; rep->number then says which.  `atmost` limits the wait, in
 * nanoseconds of real time.  `rep` may be NULL.  A stream continues without a
 * queued product only during this call.
 *
 * These statuses close the product and leave the job usable:
 * KOFN_OK: `out` is complete.
 * KOFN_PARTIAL: parts are missing (KOFN_BELOW_DEGRADE, or a scheme that leaves
 * late workers out).
 * KOFN_TOOFEW: too few workers are left, or their results do not determine the
 * answer.
 * KOFN_LATE: too few workers came within `patience`.
 * KOFN_CORRUPT: results are wrong, and it cannot be decided which.
 * KOFN_UNSTABLE: the predicted error exceeds `max_error`.
 * KOFN_NONFINITE: an answer has a NaN or an infinity.
 *
 * Others:
 * KOFN_AGAIN: not over within `atmost`; take it later.
 * KOFN_STATE: no such product is open, or the job has failed before.
 * KOFN_LATE, KOFN_TRANSPORT and all other failures: no worker can come any
 * more, `start_within` has passed, or the port failed.  The job has failed;
 * close it. */
KOFN_API kofn_status kofn_take(kofn_job *job, uint32_t number, kofn_time atmost,
                               kofn_report *rep);
/* Cancels a product in any state and closes it.  Workers are stopped.  Its
 * output belongs to the caller again, and may be partly written.  Its cost
 * counts in the totals.
 * KOFN_UNSUITED: the product is of a stream.
 * KOFN_STATE: no such product is open, or the job has failed.
 * KOFN_TRANSPORT: the transport failed, and with it the job. */
KOFN_API kofn_status kofn_cancel(kofn_job *job, uint32_t number);

/* Why a worker had not completed its list when a round of a stream ended.
 * KOFN_MARKED: it was slow, as the scheme permits.
 * KOFN_EXCUSED: it was late (kofn_options.late), and the scheme permits no
 * further slow worker; it is treated as one that left. */
enum { KOFN_MARKED = 1, KOFN_EXCUSED };

/* Describes a completed round of a stream.  A worker's list is its tasks of a
 * round. */
typedef struct kofn_stream_round {
    unsigned round;   /* 1 is the first                                      */
    uint32_t product; /* product that began in this round; 0: none           */
    size_t open;      /* products that were worked on                        */
    size_t slots;     /* tasks in the longest list                           */
    size_t live;      /* workers that had a list                             */
    kofn_time took;   /* duration of the round                               */
    kofn_time first;  /* duration until the first worker completed its list  */
    kofn_time waited; /* duration beyond (1 + mu) first; 0 if none           */
    double load;      /* multiply-adds of the longest list                   */
    /* By worker id: KOFN_MARKED or KOFN_EXCUSED, or 0 if its list was complete
     * or it had none. Valid during the call. */
    const uint8_t *mark;
    /* By worker id: when its list was complete, from the start of the round.
     * KOFN_NEVER: it was not, or there was no list.  Valid during the call. */
    const kofn_time *times;
    size_t workers; /* length of mark and times */
} kofn_stream_round;
/* Sets a function that is called at the end of every round of a stream, before
 * the next one begins.  It must not call functions of the job.  NULL removes
 * it. */
KOFN_API void kofn_on_round(kofn_job *job,
                            void (*f)(void *ud, const kofn_stream_round *round),
                            void *ud);

/* Computes one product: kofn_put, then kofn_take without a limit.
 * KOFN_PARTIAL: as for kofn_take.
 * Otherwise it returns the failures of kofn_put and kofn_take. */
KOFN_API kofn_status kofn_round(kofn_job *job, const kofn_matrix *in,
                                kofn_matrix *out, kofn_report *rep);
/* Computes C = A B with a code on threads of this process: the whole life of a
 * plan, a port and a job in one call.  `scheme` and `workers` are as in
 * kofn_plan_new; a plan with a seed of 1 is made.
 *
 * A is m x n, B is n x p and C is m x p, all of one type.  C must not overlap A
 * or B.  No matrix is used after the call.
 * KOFN_INVAL: a matrix or `scheme` is missing, a matrix is misaligned, or
 * `workers` or a key or value in `scheme` is invalid.
 * KOFN_SHAPE: shapes or types do not agree, or a size is 0 or too large.
 * KOFN_NOSCHEME: there is no such scheme.
 * KOFN_UNSUITED: the scheme does not serve KOFN_MATMUL.
 * Otherwise it returns the failures of kofn_port_threads, kofn_place and
 * kofn_round. */
KOFN_API kofn_status kofn_product(const kofn_matrix *A, const kofn_matrix *B,
                                  kofn_matrix *C, const char *scheme,
                                  size_t workers);
/* Limits later rounds to strips lo .. hi-1 of S = kofn_progress.strips: to rows
 * k S + lo .. k S + hi-1 of A for k = 0, 1, ...  The work is less in
 * proportion.  Other rows of the output keep their values; of a left product
 * the input must be 0 there.
 * Allocates no memory.
 * KOFN_INVAL: not 0 <= lo < hi <= S.
 * KOFN_UNSUITED: S is 0, because a round of this plan cannot be divided. */
KOFN_API kofn_status kofn_limit(kofn_job *job, size_t lo, size_t hi);

/* Sets how often sums are checked, in a KOFN_SUM job with `errors` and `audit`:
 * the next sum, and then one of every `every`.  1: all are checked.  Have the
 * last sum of a loop checked with kofn_audit(job, 1), as kofn_regress and
 * kofn_train do.
 * Allocates no memory.
 * KOFN_INVAL: `every` is 0.
 * KOFN_UNSUITED: the job was opened without `audit`. */
KOFN_API kofn_status kofn_audit(kofn_job *job, unsigned every);
/* Returns the option `audit` of the job; 1 if all sums are checked, or none. */
KOFN_API unsigned kofn_audited(const kofn_job *job);

/* Sets the step, from 1, to which later products belong.  Fault events
 * (kofn_options.events) then count steps instead of products.
 *
 * An event before the step occurs before its first product.  An event at a
 * fraction occurs in any product of the step.  If several products are open,
 * fractions refer to the newest; an event that has not occurred then occurs
 * before the next product begins.
 * Allocates no memory.
 * KOFN_INVAL: `step` is 0. */
KOFN_API kofn_status kofn_step(kofn_job *job, unsigned step);

/* The state of a job at one moment. */
typedef struct kofn_progress {
    size_t size; /* sizeof(kofn_progress) */
    unsigned round;
    size_t live, awaited;    /* workers; workers that owe an answer          */
    double done;             /* share of the round's strips that has arrived */
    size_t joined, left;     /* workers since kofn_open                      */
    size_t outstanding;      /* strips that workers owe                      */
    uint64_t sent, received; /* bytes since kofn_open                        */
    /* Workers that have come for the start, and the number expected. */
    size_t here, expected;
    /* Workers on standby because their principal has its limit of seats. */
    size_t crowd;
    size_t needed;     /* live workers that the round waits for; 0: none  */
    size_t rebuilding; /* workers waiting for a block rebuilt from others */
    unsigned corrupt;  /* results found wrong since kofn_open             */
    size_t strips;     /* strips of a round, for kofn_limit; 0: not divisible */
    size_t storing;    /* workers that are storing a block                */
    /* Bytes of blocks since kofn_open: of all, and of those that workers on
     * other machines have been sent.  `placed` is 0 on other ports. */
    uint64_t blocks, placed;
} kofn_progress;
#define KOFN_PROGRESS_INIT                                                     \
    {                                                                          \
        sizeof(kofn_progress), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
            0, 0, 0                                                            \
    }
/* Fills *p with the present state.  Allocates no memory. */
KOFN_API kofn_status kofn_job_progress(const kofn_job *job, kofn_progress *p);
/* Returns the plan of operand 0. */
KOFN_API const kofn_plan *kofn_job_plan(const kofn_job *job);
/* Returns the name of a worker for messages: the one that it was started with,
 * or else that of its principal, a key or a host.  "" if it has neither.
 * A worker with a key and another name is called KEY/NAME, since a worker may
 * claim any name.  Valid until the next call. */
KOFN_API const char *kofn_job_name(const kofn_job *job, size_t worker);
/* Returns the present state of a worker; KOFN_WORKER_UNKNOWN if no worker had
 * this number yet.  The states of a report are those at its end. */
KOFN_API kofn_worker_state kofn_job_worker(const kofn_job *job, size_t worker);
/* Returns the message of the first task that failed in the product taken last;
 * "" if none failed.  A message from another machine has only printable ASCII
 * and newlines.  Valid until the next product is taken. */
KOFN_API const char *kofn_job_failure(const kofn_job *job);
/* Fills *rep with the totals of all products that were taken or cancelled.
 * Allocates no memory. */
KOFN_API kofn_status kofn_job_totals(const kofn_job *job, kofn_report *rep);
/* Enough bytes for the sentence of kofn_job_verdict. */
#define KOFN_VERDICT 1024
/* Writes one sentence about all products so far: what the code tolerates; the
 * workers that were lost, slow or wrong; and the time.  A report has it too.
 * It is cut to `room` bytes.
 * KOFN_INVAL: `out` is NULL or `room` is 0. */
KOFN_API kofn_status kofn_job_verdict(const kofn_job *job, char *out,
                                      size_t room);
/* Adds a line to the file `report` of the options, which shows `name` and
 * `words`.  A line named "command" is how to repeat the run.  Without a report
 * it does nothing.
 * KOFN_INVAL: `name` or `words` is NULL. */
KOFN_API kofn_status kofn_caption(kofn_job *job, const char *name,
                                  const char *words);
/* Completes the files `metrics`, `trace`, `record` and `report` of the options.
 * No product may start afterwards.  kofn_close does the same, but cannot report
 * a failure. KOFN_IO: one of them could not be written, now or earlier;
 * products are unaffected. KOFN_STATE: `record` is set and there was no round.
 */
KOFN_API kofn_status kofn_finish(kofn_job *job);
/* Ends the job: dismisses the workers, waits for those that are threads, closes
 * the port and frees the job.  It does not return before every function of the
 * caller (kofn_place_parts, kofn_place_rows) has returned, even on an evicted
 * worker.  Run functions that may hang on workers that are processes. */
KOFN_API void kofn_close(kofn_job *job);

/* ---- the machine --------------------------------------------------------- */

/* Facts that determine the speed of this machine.  Strings are valid until the
 * next call in this thread. */
typedef struct kofn_machine {
    size_t size;        /* sizeof(kofn_machine)                              */
    const char *simd;   /* kernels of kofn: avx512, avx2 or plain            */
    const char *blas;   /* the loaded BLAS, such as OpenBLAS Haswell         */
    const char *advice; /* why it is slow, and what to do; "" if it is not   */
    const char *coretype; /* better value for OPENBLAS_CORETYPE, or NULL */
    int blas_threads; /* of each worker: 1; 0 if this BLAS cannot be set   */
} kofn_machine;
#define KOFN_MACHINE_INIT                                                      \
    {                                                                          \
        sizeof(kofn_machine), NULL, NULL, NULL, NULL, 0                        \
    }
/* Fills *m by looking at the processor and the loaded BLAS.  Allocates no
 * memory. */
KOFN_API kofn_status kofn_machine_info(kofn_machine *m);

#ifdef __cplusplus
}
#endif

#include <kofn/change.h>
#include <kofn/complex.h>
#include <kofn/learn.h>
#include <kofn/parts.h>

#endif
