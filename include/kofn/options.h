/* options.h -- one table of a job's options: what each may be and what it does.
 *
 * For whoever offers the options of a job to others, as the command and the Python
 * package do, and for the library, which checks them by this table.  A part of
 * kofn.h, which includes it behind kofn_options; so it includes that before its own
 * guard.
 */
#include <kofn.h>

#ifndef KOFN_OPTIONS_H
#define KOFN_OPTIONS_H

#ifdef __cplusplus
extern "C" {
#endif

/* How a value is stored, and what people give. */
typedef enum kofn_option_kind {
    KOFN_OPTION_FLAG,     /* bool                                     */
    KOFN_OPTION_CHOICE,   /* an enum: the place of a word             */
    KOFN_OPTION_UNSIGNED, /* unsigned                                 */
    KOFN_OPTION_SIZE,     /* size_t                                   */
    KOFN_OPTION_REAL,     /* double                                   */
    KOFN_OPTION_SECONDS,  /* kofn_time, of which people give seconds  */
    KOFN_OPTION_FACTOR,   /* double; 0 is never, stored as below 0    */
    KOFN_OPTION_TERM,     /* kofn_time; likewise                      */
    KOFN_OPTION_FILE      /* const char *, a path                     */
} kofn_option_kind;

/* Jobs that an option makes a difference to, by what is computed. */
enum {
    KOFN_OF_MATRICES = 1,
    KOFN_OF_SUMS = 2,
    KOFN_OF_STREAMS = 4,
    KOFN_OF_ROUNDS = KOFN_OF_MATRICES | KOFN_OF_SUMS,
    KOFN_OF_ALL = KOFN_OF_ROUNDS | KOFN_OF_STREAMS
};

/* The options that the coordinator decides by, and those that the rest of a job
 * goes by, in the order of kofn_options:
 *
 *   X(type, name, kind, first, zero, least, most, value, jobs, text)
 *
 *   first        value in KOFN_OPTIONS_INIT
 *   zero         what 0 stands for; 0: itself, or what suits the plan
 *   least, most  what may be given beside that; seconds where they are times
 *   value        words of a choice; else what stands for the value, or its unit
 *   jobs         those that it makes a difference to
 *   text         what it does; in parentheses what holds where it is not given
 */
#define KOFN_OPTIONS_OF_CORE(X)                                                \
    X(kofn_in_flight, in_flight, CHOICE, KOFN_IN_FLIGHT_LEDGER, 0, 0, 2,       \
      "ledger|keep|abort", KOFN_OF_ROUNDS,                                     \
      "work in hand when somebody leaves: keep all results, decoded strips, "  \
      "or nothing (ledger)")                                                   \
    X(kofn_below, below, CHOICE, KOFN_BELOW_REFUSE, 0, 0, 2,                   \
      "refuse|pause|degrade", KOFN_OF_ALL,                                     \
      "when fewer workers are left than are needed: fail, wait for joiners, "  \
      "or deliver the plain blocks that are left (refuse)")                    \
    X(kofn_time, patience, SECONDS, 0, 0, 1e-6, 1e9, "SECONDS", KOFN_OF_ALL,   \
      "how long to wait for joiners where too few are left (for ever)")        \
    X(double, tolerance, REAL, 0, 0, 1e-300, 1, "E", KOFN_OF_ALL,              \
      "refuse to deliver above this predicted relative error, of rounding "    \
      "and, where errors are looked for, of what wrong results may hide (of "  \
      "rounding 1e-9, float32 1e-4)")                                          \
    X(double, late, FACTOR, 0, 1.5, 1, 1e9, "FACTOR", KOFN_OF_ALL,             \
      "ask others as well for what is still owed when this many times as "     \
      "long has passed as half of the workers took (1.5, sooner where that "   \
      "has proved right; 0: never); of a stream, as the first took")           \
    X(kofn_time, lease, TERM, 0, 30, 1e-9, 1e9, "SECONDS", KOFN_OF_ALL,        \
      "give up a worker that has owed an answer, or been at its block, for "   \
      "so long, and 50 times as long as others took (30; 0: never)")           \
    X(unsigned, pieces, UNSIGNED, 0, 0, 1, 10000, "N", KOFN_OF_ROUNDS,         \
      "results in which a worker sends its share (4 or fewer)")                \
    X(kofn_errors, errors, CHOICE, KOFN_ERRORS_NONE, 0, 0, 4,                  \
      "none|detect|adversarial|probabilistic|keyed", KOFN_OF_ALL,              \
      "wrong results: trust all; fail when results disagree; name and leave "  \
      "out liars that conspire, or faults that do not; or test A x and A B "   \
      "by a secret key of A and leave out any number of liars (none)")         \
    X(unsigned, quarantine, UNSIGNED, 0, 3, 1, 1e9, "N", KOFN_OF_ALL,          \
      "how sure to be that a worker is wrong more often than others before "   \
      "it gets no more work: by chance once in e^(12 N) rounds (3)")           \
    X(bool, beyond, FLAG, false, 0, 0, 1, "", KOFN_OF_ROUNDS,                  \
      "with float32 name more liars than half of the answers beyond the "      \
      "threshold, at the risk of naming the wrong ones")                       \
    X(size_t, seats, SIZE, 0, 0, 0, 1e6, "N", KOFN_OF_ALL,                     \
      "workers that one key, or where there are none one host, may have at "   \
      "work; more stand by (0: no limit)")                                     \
    X(double, mu, REAL, 0.25, 0, 0, 1e6, "MU", KOFN_OF_STREAMS,                \
      "a round lasts so many times longer than the first worker took for "     \
      "its list, unless all are done or more is due (0.25)")
#define KOFN_OPTIONS_OF_JOB(X)                                                 \
    X(unsigned, audit, UNSIGNED, 0, 1, 1, 1e9, "N", KOFN_OF_SUMS,              \
      "of codes for sums, where errors are looked for: code and check one "    \
      "round in N, and have each part computed once in the others (1)")        \
    X(kofn_time, start_within, SECONDS, 0, 0, 1e-3, 1e9, "SECONDS",            \
      KOFN_OF_ALL,                                                             \
      "fail when there are not enough workers for the first round by then "    \
      "(wait for ever)")                                                       \
    X(const char *, journal, FILE, NULL, 0, 0, 0, "FILE", KOFN_OF_ALL,         \
      "record the run for kofn replay and kofn trace")                         \
    X(const char *, metrics, FILE, NULL, 0, 0, 0, "FILE", KOFN_OF_ALL,         \
      "keep figures there while it runs, in the text format of Prometheus")    \
    X(const char *, trace, FILE, NULL, 0, 0, 0, "FILE", KOFN_OF_ALL,           \
      "draw the run for ui.perfetto.dev or chrome://tracing: who did what, "   \
      "and what for")                                                          \
    X(const char *, record, FILE, NULL, 0, 0, 0, "FILE", KOFN_OF_ALL,          \
      "write how much longer than the first each worker took in each round, "  \
      ".npy or .csv, as a pattern of who is slow")

#define KOFN_OPTIONS_MAP(X)                                                    \
    KOFN_OPTIONS_OF_CORE(X)                                                    \
    KOFN_OPTIONS_OF_JOB(X)

/* A row of the table: `name` is that of the field of kofn_options and `at` where it
 * is there; the others are told above. */
typedef struct kofn_option {
    const char *name;
    kofn_option_kind kind;
    size_t at;
    double zero, least, most;
    const char *value;
    unsigned jobs;
    const char *text;
} kofn_option;

/* Row i, from 0 on; NULL: there are no more. */
KOFN_API const kofn_option *kofn_option_at(size_t i);
/* What KOFN_OPTIONS_INIT has, for languages without macros. */
KOFN_API void kofn_options_begin(kofn_options *o);
/* Stores what people give for an option that is no file: seconds, the place of a
 * word, 0 for never.  KOFN_INVAL, with the name and the value, where that may not
 * be; 0 is no way to say "as if it were not given". */
KOFN_API kofn_status kofn_option_set(kofn_options *o, const kofn_option *which,
                                     double given);

#ifdef __cplusplus
}
#endif
#endif
