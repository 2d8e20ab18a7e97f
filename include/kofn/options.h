/* options.h -- tables of the options of a job, of a regression and of a
 * training: ranges, defaults and help texts.
 *
 * For programs that offer these options to users, such as the command and the
 * Python package.  The library checks options with this table.  <kofn.h>
 * includes this header after kofn_options, so this header includes <kofn.h>
 * before its own guard.
 */
#include <kofn.h>

#ifndef KOFN_OPTIONS_H
#define KOFN_OPTIONS_H

#ifdef __cplusplus
extern "C" {
#endif

/* Type of an option in kofn_options, and the number that a user gives for
 * it. */
typedef enum kofn_option_kind {
    KOFN_OPTION_FLAG,     /* bool                                           */
    KOFN_OPTION_CHOICE,   /* an enum; given as the index of a word          */
    KOFN_OPTION_UNSIGNED, /* unsigned                                       */
    KOFN_OPTION_SIZE,     /* size_t                                         */
    KOFN_OPTION_REAL,     /* double                                         */
    KOFN_OPTION_SECONDS,  /* kofn_time; given in seconds                    */
    KOFN_OPTION_FACTOR,   /* double; given 0 means never, stored as -1      */
    KOFN_OPTION_TERM,     /* kofn_time; given in seconds; 0: as for FACTOR  */
    KOFN_OPTION_FILE      /* const char *, a path                           */
} kofn_option_kind;

/* Kinds of jobs, as bits: on matrices, on sums (KOFN_SUM), on streams
 * (KOFN_STREAM). */
enum {
    KOFN_OF_MATRICES = 1,
    KOFN_OF_SUMS = 2,
    KOFN_OF_STREAMS = 4,
    KOFN_OF_ROUNDS = KOFN_OF_MATRICES | KOFN_OF_SUMS,
    KOFN_OF_ALL = KOFN_OF_ROUNDS | KOFN_OF_STREAMS
};

/* The rows of the table, in the order of kofn_options.  KOFN_OPTIONS_OF_CORE
 * has the options on which the coordinator's decisions depend.
 * KOFN_OPTIONS_OF_JOB has the others.
 *
 *   X(type, name, kind, first, zero, least, most, value, jobs, text)
 *
 *   `first`        Value in KOFN_OPTIONS_INIT.
 *   `zero`         Value that a stored 0 stands for.  If this is 0 too, it
 *                  stands for 0 or for a default of the plan.
 *   `least, most`  Range of other values; in seconds for times.
 *   `value`        Words of a choice, separated by |.  Otherwise a placeholder
 *                  or unit.
 *   `jobs`         Kinds of jobs that the option affects.
 *   `text`         Help text, with the default in parentheses.
 */
#define KOFN_OPTIONS_OF_CORE(X)                                                \
    X(kofn_in_flight, in_flight, CHOICE, KOFN_IN_FLIGHT_LEDGER, 0, 0, 2,       \
      "ledger|keep|abort", KOFN_OF_ROUNDS,                                     \
      "work to keep when a worker leaves: all results, decoded strips, or "    \
      "nothing (ledger)")                                                      \
    X(kofn_below, below, CHOICE, KOFN_BELOW_REFUSE, 0, 0, 2,                   \
      "refuse|pause|degrade", KOFN_OF_ALL,                                     \
      "if too few workers are left: fail, wait for joiners, or deliver the "   \
      "uncoded blocks that are left (refuse)")                                 \
    X(kofn_time, patience, SECONDS, 0, 0, 1e-6, 1e9, "SECONDS", KOFN_OF_ALL,   \
      "with --below pause, longest wait for joiners (no limit)")               \
    X(double, max_error, REAL, 0, 0, 1e-300, 1, "E", KOFN_OF_ALL,              \
      "refuse results with a predicted relative error above E, from rounding " \
      "and, with --errors, from undetected wrong results (rounding: 1e-9, "    \
      "float32 1e-4)")                                                         \
    X(double, late, FACTOR, 0, 1.5, 1, 1e9, "FACTOR", KOFN_OF_ALL,             \
      "also give outstanding work to other workers after FACTOR times the "    \
      "median time (1.5, shorter if late answers never came; 0: never); "      \
      "stream: times the first worker's time")                                 \
    X(kofn_time, lease, TERM, 0, 30, 1e-9, 1e9, "SECONDS", KOFN_OF_ALL,        \
      "evict a worker that has owed an answer or a stored block for SECONDS "  \
      "and for 50 times the median time (30; 0: never)")                       \
    X(unsigned, pieces, UNSIGNED, 0, 0, 1, 10000, "N", KOFN_OF_ROUNDS,         \
      "send each worker's share of a round in N results (4 or fewer)")         \
    X(kofn_errors, errors, CHOICE, KOFN_ERRORS_NONE, 0, 0, 4,                  \
      "none|detect|adversarial|probabilistic|keyed", KOFN_OF_ALL,              \
      "none: trust all results; detect: fail if they disagree; adversarial, "  \
      "probabilistic: leave out workers that conspire, or fail "               \
      "independently; keyed: leave out any number, for A x and A B (none)")    \
    X(unsigned, quarantine, UNSIGNED, 0, 3, 1, 1e9, "N", KOFN_OF_ALL,          \
      "exclude a worker that is wrong more often than the others; a false "    \
      "exclusion occurs at most once in e^(12 N) rounds (3)")                  \
    X(bool, beyond, FLAG, false, 0, 0, 1, "", KOFN_OF_ROUNDS,                  \
      "float32: also name more faulty workers than half of the spare "         \
      "answers; honest workers may be named")                                  \
    X(size_t, workers_per_principal, SIZE, 0, 0, 0, 1e6, "N", KOFN_OF_ALL,     \
      "at most N working workers for each key or, without keys, each host; "   \
      "others stand by (0: no limit)")                                         \
    X(double, mu, REAL, 0.25, 0, 0, 1e6, "MU", KOFN_OF_STREAMS,                \
      "end a round at 1 + MU times the first worker's time without workers "   \
      "that are not done, if the scheme allows it and no due product needs "   \
      "them (0.25)")
#define KOFN_OPTIONS_OF_JOB(X)                                                 \
    X(unsigned, audit, UNSIGNED, 0, 1, 1, 1e9, "N", KOFN_OF_SUMS,              \
      "with --errors, check only one round in N; in the others each part is "  \
      "computed once and trusted (1)")                                         \
    X(kofn_time, start_within, SECONDS, 0, 0, 1e-3, 1e9, "SECONDS",            \
      KOFN_OF_ALL,                                                             \
      "fail if after SECONDS too few workers have come for the first round "   \
      "(no limit)")                                                            \
    X(const char *, journal, FILE, NULL, 0, 0, 0, "FILE", KOFN_OF_ALL,         \
      "record the run for kofn replay and kofn trace")                         \
    X(const char *, metrics, FILE, NULL, 0, 0, 0, "FILE", KOFN_OF_ALL,         \
      "keep current figures in FILE, in the text format of Prometheus")        \
    X(const char *, trace, FILE, NULL, 0, 0, 0, "FILE", KOFN_OF_ALL,           \
      "write a timeline of all tasks for ui.perfetto.dev or "                  \
      "chrome://tracing")                                                      \
    X(const char *, record, FILE, NULL, 0, 0, 0, "FILE", KOFN_OF_ALL,          \
      "write the slowdown of each worker in each round as a pattern, .npy "    \
      "or .csv")                                                               \
    X(const char *, report, FILE, NULL, 0, 0, 0, "FILE", KOFN_OF_ALL,          \
      "write a page of HTML about the run: every worker in every round")

#define KOFN_OPTIONS_MAP(X)                                                    \
    KOFN_OPTIONS_OF_CORE(X)                                                    \
    KOFN_OPTIONS_OF_JOB(X)

/* The rows of the tables of kofn_regress_options, kofn_net_shape and
 * kofn_train_options, with columns as above:
 *
 *   X(name, kind, zero, least, most, value, text)
 */
#define KOFN_OPTIONS_OF_REGRESS(X)                                             \
    X(loss, CHOICE, 0, 0, 2, "squares|logistic|poisson",                       \
      "loss to minimise: least squares, logistic for two labels, poisson for " \
      "counts (squares)")                                                      \
    X(l2, REAL, 0, 0, 1e100, "LAMBDA",                                         \
      "weight of the penalty |w|^2 / 2, without the intercept (0)")            \
    X(optimizer, CHOICE, 0, 0, 4, "auto|gd|nesterov|sgd|lbfgs",                \
      "optimizer; auto: lbfgs, or gd with a step or a line search, and for "   \
      "schemes ignore and distr-bgd (auto)")                                   \
    X(line_search, CHOICE, 0, 0, 3, "none|exact|armijo|grid",                  \
      "line search of gd; none: fixed steps of 1/L, with L measured on the "   \
      "workers (none)")                                                        \
    X(step, REAL, 0, 1e-300, 1e300, "S",                                       \
      "length of fixed steps; armijo, grid: of the longest step tried (1/L; "  \
      "16/L)")                                                                 \
    X(tol, REAL, 1e-8, 1e-300, 1e300, "T",                                     \
      "converged when the gradient is below T times the first one, and w "     \
      "within sqrt(T) |w| of the minimum; not for sgd (1e-8)")                 \
    X(max_iterations, UNSIGNED, 100, 1, 1e9, "N", "limit of iterations (100)") \
    X(batches, UNSIGNED, 10, 1, 1e9, "B",                                      \
      "sgd: number of batches of the points; each is one step (10)")
#define KOFN_OPTIONS_OF_NET(X)                                                 \
    X(activation, CHOICE, 0, 0, 3, "sigmoid|tanh|relu|linear",                 \
      "activation of all layers but the last (sigmoid; command and Python: "   \
      "relu)")                                                                 \
    X(loss, CHOICE, 0, 0, 1, "softmax|squares",                                \
      "softmax: cross-entropy of labels 0, 1, ...; squares: of labels or of "  \
      "numbers (softmax; autoencoder: squares)")                               \
    X(output, CHOICE, 0, 0, 3, "sigmoid|tanh|relu|linear",                     \
      "with squares: activation of the last layer (linear; autoencoder: that " \
      "of the others)")                                                        \
    X(autoencoder, FLAG, 0, 0, 1, "",                                          \
      "train to reproduce the points; there is no y")                          \
    X(sparsity, REAL, 0, 1e-6, 1 - 1e-6, "R",                                  \
      "autoencoder of two layers: wanted mean activation of hidden units")     \
    X(sparsity_weight, REAL, 0, 0, 1e100, "B",                                 \
      "weight of the sparsity penalty (0)")
#define KOFN_OPTIONS_OF_TRAIN(X)                                               \
    X(step, REAL, 0.1, 1e-300, 1e300, "S", "length of steps (0.1)")            \
    X(momentum, REAL, 0, 0, 0.999999, "M",                                     \
      "momentum: share of the last step that is added to the next (0; "        \
      "command and Python: 0.9)")                                              \
    X(nesterov, FLAG, 0, 0, 1, "", "with momentum: Nesterov's form")           \
    X(l2, REAL, 0, 0, 1e100, "LAMBDA",                                         \
      "weight of the penalty |W|^2 / 2, biases included (0)")                  \
    X(batch, SIZE, 32, 1, 1e9, "B", "points in a step (32)")                   \
    X(epochs, UNSIGNED, 100, 1, 1e6, "E", "passes through all points (100)")   \
    X(scrub, UNSIGNED, 0, 1, 1e9, "N",                                         \
      "compare the blocks of all workers or nodes after every N steps, and "   \
      "rebuild wrong ones; for weights that the workers keep, with errors "    \
      "looked for (never)")

/* The tables, each of the members of one struct. */
typedef enum kofn_option_table {
    KOFN_TABLE_JOB,     /* kofn_options         */
    KOFN_TABLE_REGRESS, /* kofn_regress_options */
    KOFN_TABLE_NET,     /* kofn_net_shape       */
    KOFN_TABLE_TRAIN    /* kofn_train_options   */
} kofn_option_table;

/* A row of a table.  `name` is the member of the table's struct, and `at` its
 * offset there.  `jobs` is 0 except in KOFN_TABLE_JOB.  The other members are
 * the columns described above. */
typedef struct kofn_option {
    const char *name;
    kofn_option_kind kind;
    size_t at;
    double zero, least, most;
    const char *value;
    unsigned jobs;
    const char *text;
} kofn_option;

/* Returns row i of the table of a job's options, from 0; NULL if there is no
 * such row. */
KOFN_API const kofn_option *kofn_option_at(size_t i);
/* Returns row i of this table, from 0; NULL if there is no such row or table.
 */
KOFN_API const kofn_option *kofn_option_in(kofn_option_table table, size_t i);
/* Initialises *o like KOFN_OPTIONS_INIT, for languages without macros. */
KOFN_API void kofn_options_begin(kofn_options *o);
/* Stores a value in the form that users give: seconds, the index of a word, or
 * 0 for never.  `o` is the struct of the table, and `which` a row of it and not
 * a FILE.  To have the
 * default, do not call it: 0 is not the default here.
 * Allocates no memory.
 * KOFN_INVAL: the value is out of range; the message has name and value. */
KOFN_API kofn_status kofn_option_set(void *o, const kofn_option *which,
                                     double given);

#ifdef __cplusplus
}
#endif
#endif
