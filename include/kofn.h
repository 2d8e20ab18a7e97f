/* kofn.h -- any k of n workers are enough.
 *
 * The whole user interface, in the order one meets it: status, memory,
 * matrices, plan, ports and their weather, job, report, iterations, model,
 * regression.
 *
 *   - 0 is success; > 0 is "answered, with a reservation" or "go on"; < 0 is
 *     failure, and kofn_errmsg() then says what was wrong and what to do.
 *   - Who called _new or _open owns the handle and ends it with _free or
 *     _close; both accept NULL.
 *   - A kofn_matrix is a borrowed view.  kofn never frees what it points to,
 *     and keeps it past the call only where a comment says so.
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

/* What the calling thread's last failed call had to say, with the offending
 * value.  Valid until that thread's next failure; "" when there was none. */
KOFN_API const char *kofn_errmsg(void);

typedef int64_t
    kofn_time; /* nanoseconds; absolute ones since the port opened */
#define KOFN_NEVER INT64_MAX
#define KOFN_SECOND INT64_C(1000000000)

/* ---- memory -------------------------------------------------------------- */

/* p == NULL allocates, want == 0 frees and returns NULL.  Results must be
 * aligned to 64 bytes. */
typedef struct kofn_alloc {
    void *(*fn)(void *ud, void *p, size_t want);
    void *ud;
} kofn_alloc;

/* Route every allocation of the library through `a`; NULL restores the C
 * library's.  Call it before anything else and from one thread. */
KOFN_API void kofn_set_alloc(const kofn_alloc *a);

/* ---- matrices ------------------------------------------------------------ */

typedef enum kofn_dtype { KOFN_F64, KOFN_F32 } kofn_dtype;

/* Row-major view: element (i,j) at data[i*ld + j].  A C-contiguous NumPy
 * array crosses the border without a copy. */
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

/* ---- plan: which code, with which numbers -------------------------------- */

typedef enum kofn_op {
    KOFN_MATVEC = 1 << 0, /* y = A x    A resident, x per round */
    KOFN_MATMUL = 1 << 1, /* C = A B    A resident, B per round */
    KOFN_LEFT = 1 << 2,   /* C = B A    A resident, B per round */
    KOFN_GRAM = 1 << 3,   /* y = A' A x A resident, x per round */
    KOFN_SUM = 1 << 4     /* y = sum_j f(j, x) over parts j, f the caller's */
} kofn_op;

typedef struct kofn_problem {
    kofn_op op;
    size_t m, n, p; /* A is m x n, the round input n x p, the output m x p;
                       LEFT: the input is p x m, the output p x n;
                       GRAM: p is 1 and the output n x 1;
                       SUM: no A; input n x p, output m x 1 */
    kofn_dtype dtype;
    bool sparse; /* A is a kofn_sparse */
} kofn_problem;

typedef struct kofn_plan kofn_plan;

typedef struct kofn_plan_info {
    const char *scheme, *spec; /* name; the whole string with its defaults   */
    size_t workers;            /* seats at the start                         */
    size_t block_rows;         /* rows of the block of a seat                */
    size_t parts;              /* SUM: parts that f is asked for             */
    size_t threshold;          /* any this many workers' answers decode      */
    size_t max_seats;          /* with joiners on fresh rows; SIZE_MAX: any  */
    double storage;            /* per worker, as a share of A                */
    double load;               /* per worker and round, as a share of A x    */
    double upload;             /* to a worker, as a share of the input       */
    double answer;             /* from a worker, as a share of the output    */
    double noise50, noise99;   /* amplification over random losses           */
} kofn_plan_info;

/* spec: "NAME" or "NAME:key=value,..."; see kofn_scheme_list() and
 * `kofn schemes`.  workers: seats at the start, >= 1.  seed: of the random
 * coefficients. */
KOFN_API kofn_status kofn_plan_new(kofn_plan **out, const kofn_problem *pb,
                                   const char *spec, size_t workers,
                                   uint64_t seed);
/* The blocks of A that a plan hands out serve left products too: let rounds
 * of kofn_left with inputs of p rows be run on it.  Before kofn_open. */
KOFN_API kofn_status kofn_plan_serve_left(kofn_plan *plan, size_t p);
/* Measures noise50 and noise99 on sampled losses when `noise` is true. */
KOFN_API kofn_status kofn_plan_describe(const kofn_plan *plan, bool noise,
                                        kofn_plan_info *info);
KOFN_API void kofn_plan_free(kofn_plan *plan);

/* ---- events and weather: what goes wrong --------------------------------- */

typedef enum kofn_happening_kind {
    KOFN_HAPPENING_LEAVE = 1, /* worker vanishes                              */
    KOFN_HAPPENING_JOIN,      /* a new worker, numbered after all before it   */
    KOFN_HAPPENING_SLOW,      /* worker takes `factor` times as long          */
    KOFN_HAPPENING_NORMAL,    /* worker is neither slow nor corrupt any more  */
    KOFN_HAPPENING_CORRUPT    /* worker's results are silently wrong          */
} kofn_happening_kind;

typedef struct kofn_happening {
    unsigned round;  /* 1 is the first */
    double fraction; /* 0: before the round; else after this share of its
                        strips has arrived */
    kofn_happening_kind kind;
    uint32_t worker; /* not for JOIN */
    double factor;   /* SLOW */
} kofn_happening;

/* Reads an events file: one `ROUND[.FRACTION] leave W | join | slow W FACTOR |
 * normal W | corrupt W` a line, # comments.  Checks workers and rounds against
 * `workers` at the start and `rounds` in all; kofn_step says what is counted.  *out is freed with
 * kofn_events_free. */
KOFN_API kofn_status kofn_events_read(kofn_happening **out, size_t *count,
                                      const char *path, size_t workers,
                                      size_t rounds);
/* The same from text; `name` stands in for the path in messages. */
KOFN_API kofn_status kofn_events_parse(kofn_happening **out, size_t *count,
                                       const char *text, size_t length,
                                       const char *name, size_t workers,
                                       size_t rounds);
KOFN_API void kofn_events_free(kofn_happening *events);

typedef enum kofn_clock {
    KOFN_CLOCK_MODELLED, /* simulator: a task takes what the weather says */
    KOFN_CLOCK_MEASURED  /* simulator: a task takes the processor time it
                            really took, as if each worker had a machine  */
} kofn_clock;

/* Zero is fair weather throughout, and every draw comes from a stream named
 * by (seed, purpose, worker, round): a seed repeats a run. */
typedef struct kofn_weather {
    double spread;   /* worker speed drawn from [1-spread, 1+spread]        */
    double straggle; /* chance that a worker straggles in a round           */
    double burst;    /* ... which is drawn anew in one of so many rounds, and
                        else is as in the round before; 0: in every round   */
    double factor;   /* ... and then takes this many times as long; 0: 5    */
    double delay;    /* ... or instead this many seconds longer             */
    double leave;    /* departures per worker-second                        */
    double join;     /* arrivals per second                                 */
    double corrupt;  /* chance that a result is silently wrong              */
    kofn_clock clock;
    double work;      /* modelled clock: seconds per 1e9 multiply-adds; 0: 1 */
    double latency;   /* simulator: seconds a message takes                  */
    double bandwidth; /* simulator: bytes per second; 0: unlimited           */
    uint64_t seed;
} kofn_weather;

/* "key=value,..." with the field names above (clock=modelled|measured), onto
 * what *w holds. */
KOFN_API kofn_status kofn_weather_parse(kofn_weather *w, const char *text);

/* ---- ports: ways to reach workers ---------------------------------------- */

typedef struct kofn_port kofn_port;

/* Threads of this process.  weather may be NULL; it is injected for real:
 * sleeps, vanishing threads, flipped results. */
KOFN_API kofn_status kofn_port_threads(kofn_port **out, size_t workers,
                                       const kofn_weather *weather);
/* A deterministic simulator with a clock of its own; results are real. */
KOFN_API kofn_status kofn_port_sim(kofn_port **out, size_t workers,
                                   const kofn_weather *weather);
/* Only for a port that was never given to kofn_open. */
KOFN_API void kofn_port_close(kofn_port *port);

/* ---- job: run it --------------------------------------------------------- */

typedef struct kofn_job kofn_job;

typedef enum kofn_in_flight { /* work in hand when the live set changes */
                              KOFN_IN_FLIGHT_LEDGER, /* keep every strip that has come         */
                              KOFN_IN_FLIGHT_KEEP, /* keep strips that are decoded           */
                              KOFN_IN_FLIGHT_ABORT /* begin the round again                  */
} kofn_in_flight;

typedef enum kofn_below { /* fewer live workers than the threshold */
                          KOFN_BELOW_REFUSE, /* fail with KOFN_TOOFEW                 */
                          KOFN_BELOW_PAUSE, /* wait for joiners, up to `patience`    */
                          KOFN_BELOW_DEGRADE /* deliver the plain blocks that are left,
                             NaN elsewhere, as KOFN_PARTIAL        */
} kofn_below;

/* What is done about results that are wrong without saying so.  Any k + 1
 * results show that there are some; the other modes name whose. */
typedef enum kofn_errors {
    KOFN_ERRORS_NONE,
    KOFN_ERRORS_DETECT,       /* KOFN_CORRUPT when results disagree          */
    KOFN_ERRORS_ADVERSARIAL,  /* liars who know the code and each other: up to
                                half of the answers beyond k               */
    KOFN_ERRORS_PROBABILISTIC /* faults that do not conspire: up to all
                                answers beyond k but one                   */
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
                           right; 0: 1.5, below 0: never                   */
    unsigned pieces;    /* results a worker's share is sent in; 0: 4       */
    const kofn_happening *events; /* borrowed until kofn_close             */
    size_t event_count;
    const char *journal; /* file to record the run in, or NULL             */
    kofn_errors errors;
    unsigned quarantine; /* rounds in which a worker may be located as corrupt
                            before it is no longer asked; 0: 3             */
    bool beyond;         /* float32: also locate more liars than half of the
                            answers beyond k, at the risk of error  */
    const char *metrics; /* file to keep figures in while it runs, or NULL */
    const char *trace;   /* file to draw the run in, or NULL               */
    size_t seats; /* that one principal, a key or a host, may have; more of its
                     workers stand by; 0: no limit                         */
    kofn_time start_within; /* fail when there are not enough workers for the
                               first round after so long; 0: wait for ever */
    kofn_time lease; /* give up a worker that has owed an answer, or been at its
                        block, for so long, and 50 times as long as others
                        took; 0: 30 s, below 0: never                      */
} kofn_options;
#define KOFN_OPTIONS_INIT                                                      \
    {                                                                          \
        sizeof(kofn_options), KOFN_IN_FLIGHT_LEDGER, KOFN_BELOW_REFUSE, 0, 0,  \
            0, 0, NULL, 0, NULL, KOFN_ERRORS_NONE, 0, false, NULL, NULL, 0, 0, \
            0                                                                  \
    }

typedef enum kofn_worker_state {
    KOFN_WORKER_UNKNOWN,     /* never seen                                    */
    KOFN_WORKER_STANDBY,     /* here, but no seat is free                     */
    KOFN_WORKER_STORING,     /* on its way to a seat                          */
    KOFN_WORKER_LIVE,        /* has its block                                 */
    KOFN_WORKER_LEAVING,     /* has given notice                              */
    KOFN_WORKER_GONE,        /* will not come again under this number         */
    KOFN_WORKER_QUARANTINED, /* was located as corrupt too often              */
    KOFN_WORKER_MUTE,        /* given up, for it left tasks unanswered        */
    KOFN_WORKER_STATES       /* so many there are                             */
} kofn_worker_state;

/* One round, or all since kofn_open for kofn_job_totals. */
typedef struct kofn_report {
    unsigned rounds;
    kofn_time took, encoding, waiting, decoding; /* on the port's clock       */
    double noise;     /* amplification of the worst strip decoded             */
    double predicted; /* relative error expected from it, and from lies as
                         large as the floor                                   */
    unsigned live;    /* workers at the round's end                           */
    unsigned joined, left; /* workers                                         */
    unsigned late;         /* results that were not needed, come or not       */
    unsigned dropped;      /* foreign, stale and duplicate messages           */
    const size_t *rows;    /* per worker id: rows of its block it was asked
                              for; valid until the next round                 */
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
                              this, in units of row norm of A times column
                              norm of the input; 0: nothing was checked       */
    uint64_t sent, received; /* bytes handed to the port, of blocks and of each
                                task's input; and taken from it, of results   */
    const double *weights;   /* KOFN_SUM: per part j, the answer is the sum of
                              weights[j] f(j, x): 1, but where a scheme leaves
                              out who is missing (KOFN_PARTIAL); valid as long
                              as rows                                         */
    const unsigned *ages;    /* where a scheme remembers: per part, how many
                              rounds ago its f was computed; else NULL        */
    size_t parts; /* length of weights and ages                      */
} kofn_report;

/* Takes the port over, even on failure; borrows the plan until kofn_close. */
KOFN_API kofn_status kofn_open(kofn_job **out, const kofn_plan *plan,
                               kofn_port *port, const kofn_options *opt);
/* Hand out the coded blocks of A.  Borrows A until kofn_close: joiners, and
 * workers that share this memory, read it. */
KOFN_API kofn_status kofn_place(kofn_job *job, const kofn_matrix *A);
KOFN_API kofn_status kofn_place_sparse(kofn_job *job, const kofn_sparse *A);
/* For KOFN_SUM: what a worker computes of part `part` of `parts`.  It fills
 * out (m x 1) and is called from the workers' threads, several at a time but
 * never two for one block; the same part and input must give the same numbers
 * on every worker.  A status other than KOFN_OK fails the task.  It must return:
 * kofn_close waits for it where the worker is a thread. */
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
    /* As kofn_part_fn.  On a worker elsewhere `arg` and `in` are what came:
     * check them. */
    kofn_status (*f)(const double arg[KOFN_FORMULA_ARGS], const kofn_rows *part,
                     const kofn_matrix *in, kofn_matrix *out);
} kofn_formula;
/* Borrows the formula, X and y until kofn_close; copies arg. */
KOFN_API kofn_status kofn_place_rows(kofn_job *job, const kofn_formula *formula,
                                     const double arg[KOFN_FORMULA_ARGS],
                                     const kofn_matrix *X, const double *y);
/* Those that every worker has: what kofn_regression_place places. */
extern KOFN_API const kofn_formula kofn_formulas[];
/* What f takes for all parts together, in multiply-adds, for the simulator's
 * modelled clock; until that is said, as many as there are numbers in its
 * answers.  After the function was placed and before the first round. */
KOFN_API kofn_status kofn_parts_work(kofn_job *job, double work);
/* One round: out = A in.  in is n x p, out m x p.  rep may be NULL. */
KOFN_API kofn_status kofn_round(kofn_job *job, const kofn_matrix *in,
                                kofn_matrix *out, kofn_report *rep);
/* One round of the other product, out = in A, where the plan serves it. */
KOFN_API kofn_status kofn_left(kofn_job *job, const kofn_matrix *in,
                               kofn_matrix *out, kofn_report *rep);
/* The same in two halves; `out` is borrowed until the round is over.
 * kofn_pump returns KOFN_AGAIN while it is not, after `atmost` of real time. */
KOFN_API kofn_status kofn_begin(kofn_job *job, const kofn_matrix *in,
                                kofn_matrix *out);
KOFN_API kofn_status kofn_begin_left(kofn_job *job, const kofn_matrix *in,
                                     kofn_matrix *out);
KOFN_API kofn_status kofn_pump(kofn_job *job, kofn_time atmost,
                               kofn_report *rep);
/* The rounds from here on are of strips lo .. hi-1 only, of kofn_strips() many:
 * rows k S + lo .. k S + hi-1 of A for k = 0, 1, ... when there are S strips.
 * Other rows of the output are left as they are; of a left product the input
 * must be 0 there.  The work is as much less.  kofn_strips() is 0, and
 * kofn_limit answers KOFN_UNSUITED, where the answers of a code are whole. */
KOFN_API size_t kofn_strips(const kofn_job *job);
KOFN_API kofn_status kofn_limit(kofn_job *job, size_t lo, size_t hi);

/* The rounds from here on are of step `step` of the caller's, which events
 * count instead: what is to happen before it happens before its first round,
 * fractions are of any of them.  Steps count from 1. */
KOFN_API kofn_status kofn_step(kofn_job *job, unsigned step);

typedef struct kofn_progress {
    unsigned round;
    size_t live, awaited;    /* workers; workers with a task in hand */
    double done;             /* share of this round's strips that has come */
    size_t joined, left;     /* workers, since the beginning               */
    size_t outstanding;      /* strips that workers were asked for and owe */
    uint64_t sent, received; /* bytes, since the beginning              */
    size_t here, expected; /* workers that have come for the start, and how many
                              are to come before it                          */
    size_t crowd;  /* workers that stand by because their principal has all the
                      seats it may have                                      */
    size_t needed; /* the round waits until so many are live; 0: it does not */
} kofn_progress;
KOFN_API void kofn_job_progress(const kofn_job *job, kofn_progress *p);
/* Who answers for a worker: a key's name, or a host; "" where it is nobody but
 * the worker.  Valid until the next call. */
KOFN_API const char *kofn_job_name(const kofn_job *job, size_t worker);
KOFN_API void kofn_job_totals(const kofn_job *job, kofn_report *rep);
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

/* ---- iterations: users of the rounds above ------------------------------- */

/* Called after every round; a non-zero answer stops the iteration, which then
 * returns KOFN_AGAIN.  While a round lasts it is called with rep == NULL at
 * least every tenth of a second. */
typedef int (*kofn_watch)(void *ud, unsigned iteration, double change,
                          const kofn_report *rep);

typedef struct kofn_iterate_options {
    size_t size;
    double tolerance;        /* stop when the change is below it; 0: 1e-10 */
    unsigned max_iterations; /* 0: 200 */
    double damping;          /* PageRank; 0: 0.85 */
    kofn_watch watch;
    void *watch_ud;
    /* Go on after these iterations with the vector that they made, which is in
     * v, as if there had been no break; NULL: begin. */
    const struct kofn_iterate_result *resume;
} kofn_iterate_options;

/* Kept up to date before every call of the watch. */
typedef struct kofn_iterate_result {
    unsigned iterations;
    double change;     /* of the last iteration */
    double eigenvalue; /* power iteration       */
    bool converged;
} kofn_iterate_result;

/* v <- A v / |A v|, A square, from the vector in v (n x 1 float64). */
KOFN_API kofn_status kofn_power(kofn_job *job, kofn_matrix *v,
                                const kofn_iterate_options *opt,
                                kofn_iterate_result *res);
/* The column-stochastic matrix of a graph with an entry (i,j) for each arc
 * i -> j: its transpose with rows scaled to sum 1.  *dangling (n flags) marks
 * nodes without an arc out.  Free both with kofn_sparse_free and kofn_free. */
KOFN_API kofn_status kofn_pagerank_matrix(kofn_sparse **out, uint8_t **dangling,
                                          const kofn_sparse *graph);
/* v <- d (M v + (sum of v over dangling)/n) + (1-d)/n from v = 1/n, until the
 * L1 change is below the tolerance.  M was placed on the job. */
KOFN_API kofn_status kofn_pagerank(kofn_job *job, const uint8_t *dangling,
                                   kofn_matrix *v,
                                   const kofn_iterate_options *opt,
                                   kofn_iterate_result *res);
/* The same on this thread alone, without workers or codes: what the coded
 * ones are compared with. */
KOFN_API kofn_status kofn_pagerank_plain(const kofn_sparse *M,
                                         const uint8_t *dangling,
                                         kofn_matrix *v,
                                         const kofn_iterate_options *opt,
                                         kofn_iterate_result *res);
KOFN_API kofn_status kofn_power_plain(const kofn_matrix *A, kofn_matrix *v,
                                      const kofn_iterate_options *opt,
                                      kofn_iterate_result *res);
/* out = A in by one BLAS call (float32 accumulated in double), or row by row
 * for a sparse A.  out is float64. */
KOFN_API kofn_status kofn_product_plain(const kofn_matrix *A,
                                        const kofn_matrix *in,
                                        kofn_matrix *out);
KOFN_API kofn_status kofn_product_plain_sparse(const kofn_sparse *A,
                                               const kofn_matrix *in,
                                               kofn_matrix *out);
KOFN_API void kofn_sparse_free(kofn_sparse *s);
KOFN_API void kofn_free(void *p);

/* ---- model: what gradient schemes take on the average -------------------- */

/* The restart model of adaptive gradient coding (docs/model.md).  An epoch is
 * a computation and then a message.  A worker that was started, or started
 * again, straggles with probability p, whatever the others do; while there are
 * too many stragglers to decode, they are started again in the next epoch. */
typedef struct kofn_aet_params {
    size_t n;    /* workers, and subsets of the data                     */
    size_t d;    /* subsets that each worker computes                    */
    double p;    /* chance of straggling, 0 .. KOFN_AET_MOST_P           */
    double t_cp; /* time of the computation of d subsets                 */
    double t_cm; /* time of a message as long as the gradient            */
    size_t lam;  /* AGC: pieces a gradient is cut into; 0: as many as give
                    the optimum, lcm(1..d)                               */
} kofn_aet_params;
#define KOFN_AET_MOST_P 0.9999
#define KOFN_AET_MOST_N 10000

typedef enum kofn_aet_kind {
    KOFN_AET_UNCODED = 1 << 0, /* a subset a worker, all must answer        */
    KOFN_AET_GC = 1 << 1,      /* whole gradients, d - 1 may straggle       */
    KOFN_AET_CGC = 1 << 2,     /* s may straggle, messages of 1/(d-s)       */
    KOFN_AET_G_CGC = 1 << 3,   /* the same in groups                        */
    KOFN_AET_AGC = 1 << 4,     /* as short as the stragglers there are let  */
    KOFN_AET_G_AGC = 1 << 5    /* the same in groups                        */
} kofn_aet_kind;

typedef struct kofn_aet_scheme {
    kofn_aet_kind kind;
    size_t s; /* CGC, G_CGC: how many may straggle, 0 .. d-1 */
} kofn_aet_scheme;

typedef struct kofn_aet_result {
    double time;   /* the average execution time of an iteration, AET */
    double epochs; /* epochs it takes on the average, >= 1            */
    double length; /* of the messages that are decoded, 1: a gradient */
    double mass;   /* probability that was summed over: 1 to rounding */
} kofn_aet_result;

KOFN_API kofn_status kofn_aet(const kofn_aet_params *q, kofn_aet_scheme scheme,
                              kofn_aet_result *res);
/* The same for any cost: time(ctx, i, s) is what the iteration has taken when
 * epoch i = 0, 1, .. is the one that decodes, with s stragglers, in the group
 * with the most of those that were running; s is the tolerance where the
 * messages have one length. */
typedef double (*kofn_aet_time)(void *ctx, size_t i, size_t s);
KOFN_API kofn_status kofn_aet_with(const kofn_aet_params *q,
                                   kofn_aet_scheme scheme, kofn_aet_time time,
                                   void *ctx, kofn_aet_result *res);
/* The scheme with the least AET among those whose kinds are in the mask, 0:
 * all; of equals the first by kind and s.  res may be NULL. */
KOFN_API kofn_status kofn_aet_best(const kofn_aet_params *q, unsigned among,
                                   kofn_aet_scheme *best, kofn_aet_result *res);
/* The communication vector: c[s], s = 0 .. *count-1, is the length of messages
 * when s straggle; there is room for d. */
KOFN_API kofn_status kofn_aet_lengths(const kofn_aet_params *q,
                                      kofn_aet_scheme scheme, double *c,
                                      size_t *count);
/* The length when stragglers[h] straggle in group h; KOFN_TOOFEW when that is
 * too many. */
KOFN_API kofn_status kofn_aet_length(const kofn_aet_params *q,
                                     kofn_aet_scheme scheme,
                                     const size_t *stragglers, double *length);
/* How many groups the scheme makes of the workers, and workers in group h. */
KOFN_API size_t kofn_aet_groups(const kofn_aet_params *q,
                                kofn_aet_scheme scheme);
KOFN_API size_t kofn_aet_group_size(const kofn_aet_params *q,
                                    kofn_aet_scheme scheme, size_t h);
/* "AGC", "G-CGC(1)", ..., into out and returned. */
KOFN_API const char *kofn_aet_name(kofn_aet_scheme scheme, char *out,
                                   size_t size);

/* The published comparison of schemes on 20 workers (Table VI of the paper),
 * its numbers as they are printed, computed with the paper's two slips, and
 * without them. */
typedef struct kofn_agc_row {
    kofn_aet_scheme scheme;
    double p;                             /* chance of straggling */
    double printed, as_printed, straight; /* seconds              */
} kofn_agc_row;
#define KOFN_AGC_ROWS 18
KOFN_API kofn_status kofn_agc_table(kofn_agc_row rows[KOFN_AGC_ROWS]);

/* ---- regression ---------------------------------------------------------- */

/* Linear models of m points, the rows of X, by gradient descent on
 *
 *     F(w) = 1/m sum_i loss(x_i . w, y_i) + ridge/2 |w|^2
 *
 * where workers compute the gradient of the sum: docs/regression.md. */
typedef enum kofn_loss {
    KOFN_LOSS_SQUARES,  /* (t - y)^2 / 2                                     */
    KOFN_LOSS_LOGISTIC, /* labels 0 and 1, or -1 and 1: log(1 + e^t) - y t   */
    KOFN_LOSS_POISSON   /* counts y >= 0: e^t - y t                          */
} kofn_loss;

typedef enum kofn_descent {
    KOFN_DESCENT_GD,
    KOFN_DESCENT_NESTEROV,
    KOFN_DESCENT_SGD /* a batch a step, in shuffled order: every `batches`-th
                        row, or a run of strips (kofn_limit) under row codes */
} kofn_descent;

typedef enum kofn_step_rule {
    KOFN_STEP_FIXED,  /* `step`; 0: 1/L, L from 30 power iterations          */
    KOFN_STEP_EXACT,  /* the minimum along the gradient                      */
    KOFN_STEP_ARMIJO, /* halved from `step` on (0: 16/L) until F falls enough */
    KOFN_STEP_GRID    /* the best of step 2^-k, k = 0 .. 13 (0: 16/L)        */
} kofn_step_rule;

/* One iteration: a gradient and a step. */
typedef struct kofn_regress_step {
    unsigned iteration; /* 1 is the first                               */
    double objective;   /* F where the gradient was taken; of the batch */
    double gradient;    /* its norm                                     */
    double test;        /* mean loss of the held-out points at w; NaN   */
    double step;        /* 0: none, for it has converged                */
    const double *w;    /* after the step                               */
    const double *v;    /* where the next gradient is taken; NESTEROV: not w */
    double first;       /* norm of the first gradient                   */
    double lipschitz;   /* L, where it was estimated; or 0              */
    bool partial;       /* some gradients were of some points only      */
    const kofn_report *setup; /* what it took to find L, in the iteration that
                                 did; or NULL.  It is not in that iteration's
                                 report                                  */
} kofn_regress_step;

/* Called after every iteration with what its rounds were together, and with
 * rep == NULL at least every tenth of a second while one lasts; a non-zero
 * answer stops the descent, which then returns KOFN_AGAIN. */
typedef int (*kofn_regress_watch)(void *ud, const kofn_regress_step *now,
                                  const kofn_report *rep);

typedef struct kofn_regress_options {
    size_t size; /* sizeof(kofn_regress_options) */
    kofn_loss loss;
    kofn_descent descent;
    kofn_step_rule rule; /* NESTEROV and SGD: FIXED                        */
    double step, ridge;
    double tolerance; /* stop when the gradient's norm is below this share of
                         the first one's; 0: 1e-8; not in SGD              */
    unsigned max_iterations; /* 0: 100                                     */
    unsigned batches;        /* SGD: 0: 10                                 */
    uint64_t seed;           /* order of the batches, start of the power
                                iteration                                  */
    const kofn_matrix *test_X, *test_y; /* held-out points, or NULL        */
    kofn_regress_watch watch;
    void *watch_ud;
    /* Go on after this step, which a watch was shown, as if there had been no
     * break; w is in the caller's w.  Read when kofn_regress is called, and for
     * it alone.  NULL, or of iteration 0: begin. */
    const kofn_regress_step *resume;
    bool intercept; /* the last column of X is all ones; the ridge is not of
                       its weight                                          */
} kofn_regress_options;

typedef struct kofn_regress_result {
    unsigned iterations;
    double objective, gradient, test; /* of the last iteration           */
    double lipschitz;                 /* L, where it was estimated; or 0 */
    bool converged;
    kofn_report rounds; /* all together */
} kofn_regress_result;

typedef struct kofn_regression kofn_regression;

/* X is m x n and y m x 1, float64.  Borrows X and test_X until
 * kofn_regression_free; the labels are copied. */
KOFN_API kofn_status kofn_regression_new(kofn_regression **out,
                                         const kofn_matrix *X,
                                         const kofn_matrix *y,
                                         const kofn_regress_options *opt);
/* The same of a sparse X, of which schemes pcr and elastic hold no dense block. */
KOFN_API kofn_status kofn_regression_new_sparse(
    kofn_regression **out, const kofn_sparse *X, const kofn_matrix *y,
    const kofn_regress_options *opt);
/* A scheme for it on so many workers, of which half may vanish or straggle, at
 * most 16, into `out` and returned.  Where X is small messages take longer than
 * work, and there are fewest under pcr (least squares) or gc; else elastic,
 * which does no work twice. */
KOFN_API const char *kofn_regression_scheme(const kofn_regression *r,
                                            size_t workers, char *out,
                                            size_t size);
/* What the plan for it must be made for under this scheme: KOFN_GRAM, X' X w
 * (squares only); KOFN_SUM, the sum of the gradients of parts of the points;
 * or KOFN_MATVEC, X w and then z' X, for which kofn_plan_serve_left(plan, 1)
 * must be called on it as well. */
KOFN_API kofn_status kofn_regression_problem(const kofn_regression *r,
                                             const char *spec, size_t workers,
                                             kofn_problem *pb);
/* Hand out the data, in the place of kofn_place, to a job whose plan is for
 * this operation.  The job must be closed before the regression is freed. */
KOFN_API kofn_status kofn_regression_place(kofn_regression *r, kofn_job *job,
                                           kofn_op op);
/* Descend from w (n x 1 float64) with the workers of that job.  When it fails
 * on the way w is what the last iteration made.  KOFN_PARTIAL: done, but under
 * a scheme that leaves out who is late some gradients were of the rest. */
KOFN_API kofn_status kofn_regress(kofn_regression *r, kofn_matrix *w,
                                  kofn_regress_result *res);
/* The same steps on this thread alone; in the batches that the workers make,
 * once the data is with them. */
KOFN_API kofn_status kofn_regress_plain(kofn_regression *r, kofn_matrix *w,
                                        kofn_regress_result *res);
/* What becomes of it without a code, on this thread: the points lie in `parts`
 * parts, one on each machine; a machine fails in an iteration with this
 * probability and is replaced `delay` iterations later, 0: never. */
typedef enum kofn_missing {
    KOFN_MISSING_IGNORED,   /* the other points stand for all             */
    KOFN_MISSING_REMEMBERED /* to first order, where they last were there */
} kofn_missing;

typedef struct kofn_failures {
    size_t parts;
    double probability;
    unsigned delay;
    kofn_missing missing;
    uint64_t seed;
} kofn_failures;

KOFN_API kofn_status kofn_regress_failing(kofn_regression *r,
                                          const kofn_failures *failures,
                                          kofn_matrix *w,
                                          kofn_regress_result *res);
KOFN_API void kofn_regression_free(kofn_regression *r);

/* What a model says of the rows of X (float64): the mean of y, which is x . w
 * for squares, the chance of label 1 for logistic regression, e^(x . w) for
 * Poisson's.  Where w is longer than rows by one its end is an intercept.
 * out is m x 1, contiguous. */
KOFN_API kofn_status kofn_predict(kofn_matrix *out, const kofn_matrix *X,
                                  const kofn_matrix *w, kofn_loss loss);
typedef struct kofn_fit {
    double loss;  /* mean, without any ridge                                */
    double share; /* explained: R^2 of squares, of the deviance of counts (NaN
                     where y is constant); of labels that are told right     */
} kofn_fit;
KOFN_API kofn_status kofn_fit_of(kofn_fit *fit, const kofn_matrix *X,
                                 const kofn_matrix *y, const kofn_matrix *w,
                                 kofn_loss loss);
/* The same of the points of a regression; w is n x 1. */
KOFN_API kofn_status kofn_regression_fit(kofn_fit *fit,
                                         const kofn_regression *r,
                                         const kofn_matrix *w);

/* K[i][j] = k(x_i, z_j) over the rows of X and Z (float64) for k = "linear":
 * x.z, "rbf:s=S": exp(-|x-z|^2 / (2 S^2)), or "poly:degree=D,c=C": (x.z + C)^D.
 * Regression on K(X, X) gives the coefficients of k(x_i, .), and K(T, X) times
 * them predicts at T.  K->data is freed with kofn_free. */
KOFN_API kofn_status kofn_kernel(kofn_matrix *K, const kofn_matrix *X,
                                 const kofn_matrix *Z, const char *kernel);

/* ---- the machine --------------------------------------------------------- */

typedef struct kofn_machine {
    const char *simd;     /* of kofn's own kernels: avx512, avx2, plain      */
    const char *blas;     /* the BLAS in force, e.g. OpenBLAS Haswell        */
    const char *advice;   /* "" or why it is slow, and the line that mends it */
    const char *coretype; /* value for OPENBLAS_CORETYPE, or NULL            */
    int blas_threads;     /* of each worker: 1, or 0 when this BLAS does not
                             let itself be told */
} kofn_machine;
/* Looks at the processor and at the BLAS that is loaded. */
KOFN_API void kofn_machine_info(kofn_machine *m);

#ifdef __cplusplus
}
#endif
#endif
