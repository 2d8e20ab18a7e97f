/* faults.h -- simulated faults: events in given rounds, and a random model.
 *
 * For programs that test a job with slow, lost and faulty workers.  Worker
 * threads and simulated workers follow both.  <kofn.h> includes this header
 * after the types that it needs, so this header includes <kofn.h> before its
 * own guard.
 */
#include <kofn.h>

#ifndef KOFN_FAULTS_H
#define KOFN_FAULTS_H

#ifdef __cplusplus
extern "C" {
#endif

/* ---- events -------------------------------------------------------------- */

/* What happens in a fault event. */
typedef enum kofn_fault_event_kind {
    /* The worker vanishes. */
    KOFN_FAULT_EVENT_LEAVE = 1,
    /* A new worker joins.  It gets the next number. */
    KOFN_FAULT_EVENT_JOIN,
    /* The worker takes `factor` times its usual time. */
    KOFN_FAULT_EVENT_SLOW,
    /* The worker is no longer slow or corrupt. */
    KOFN_FAULT_EVENT_NORMAL,
    /* All results of the worker are silently wrong. */
    KOFN_FAULT_EVENT_CORRUPT,
    /* One bit of the worker's stored block flips. */
    KOFN_FAULT_EVENT_FLIP,
    /* A node of a mesh makes one error (<kofn/peer.h>). */
    KOFN_FAULT_EVENT_ERR
} kofn_fault_event_kind;

/* Places in which a node of a mesh can err during an iterate.  A set of places
 * is the sum of their values.  Source: Dutta, Bai, Jeong, Low, Grover, "A
 * unified coded deep neural network training strategy based on generalized
 * PolyDot codes", 2018, section V. */
typedef enum kofn_fault_place {
    /* The coded input of its seat, if the input is cut. */
    KOFN_FAULT_IN_ENCODING = 1,
    /* A piece that it computes; a product has several. */
    KOFN_FAULT_IN_PRODUCT = 2,
    /* The product that it decodes. */
    KOFN_FAULT_IN_DECODING = 4,
    /* The vector that it computes from the product: activations, deltas. */
    KOFN_FAULT_IN_VECTOR = 8,
    /* A block, while it is updated. */
    KOFN_FAULT_IN_UPDATE = 16,
    /* A block, at any other time. */
    KOFN_FAULT_IN_MEMORY = 32
} kofn_fault_place;

/* A simulated fault at a given time. */
typedef struct kofn_fault_event {
    unsigned round; /* 1 is the first */
    /* 0: before the round.  Otherwise after this share of its strips has
     * arrived; less than 1. */
    double fraction;
    kofn_fault_event_kind kind;
    uint32_t worker; /* not used by JOIN */
    double factor;   /* SLOW: the factor; ERR: a kofn_fault_place */
} kofn_fault_event;

/* Reads an events file of at most 1 MiB.  It has one event on a line; # begins
 * a comment:
 *
 *     ROUND[.FRACTION] leave W | join | slow W FACTOR | normal W | corrupt W
 *                      | flip W | err W PLACE
 *
 * FACTOR is 0.001 .. 1000000.  PLACE is encode, product, decode, vector, update
 * or memory.  There are `workers` workers at the start and `rounds` rounds;
 * events outside them are refused.  A round is a product, or a step
 * (kofn_step).
 *
 * *out has *count events, sorted by time.  The caller frees it with kofn_free;
 * it is NULL on failure.
 * KOFN_IO: the file cannot be read.
 * KOFN_FORMAT: a line is malformed, or names a round or worker that does not
 * exist. */
KOFN_API kofn_status kofn_events_read(kofn_fault_event **out, size_t *count,
                                      const char *path, size_t workers,
                                      size_t rounds);
/* Reads events like kofn_events_read, from text of `length` bytes.  Messages
 * call it "events".
 * KOFN_FORMAT: a line is malformed, or names a round or worker that does not
 * exist. */
KOFN_API kofn_status kofn_events_parse(kofn_fault_event **out, size_t *count,
                                       const char *text, size_t length,
                                       size_t workers, size_t rounds);
/* Spoils numbers as fault number n of a worker does.  Half of the faults change
 * all numbers.  The others change one: they flip a bit, or make it NaN,
 * infinite or huge.  Equal arguments give equal faults. */
KOFN_API void kofn_faults_spoil(uint64_t seed, uint32_t worker, uint32_t n,
                                kofn_matrix *numbers);

/* ---- the fault model ----------------------------------------------------- */

/* How the simulator determines the time of a task. */
typedef enum kofn_clock {
    /* Simulator: a task takes the time that the fault model computes. */
    KOFN_CLOCK_MODELLED,
    /* Simulator: a task takes the processor time that it really took, as if
     * each worker had its own machine. */
    KOFN_CLOCK_MEASURED
} kofn_clock;

/* A random model of faults.  A model of zeros has no faults.  Each random
 * number comes from a stream named by (seed, purpose, worker, round), so equal
 * seeds repeat a run.  Chances are 0 .. 1. */
typedef struct kofn_faults {
    size_t size;     /* sizeof(kofn_faults) */
    double spread;   /* speeds of workers are in [1 - spread, 1 + spread] */
    double straggle; /* chance that a worker straggles in a round         */
    /* Mean length of a burst, in rounds.  On average, stragglers are drawn
     * again in one of `burst` rounds.  In the other rounds they are the same as
     * in the round before.  If it is 0 or 1, they are drawn again in every
     * round. */
    double burst;
    double factor; /* slowdown of a straggler; 0 means 5 */
    /* If above 0: a straggler is not slowed down by `factor`, but takes `delay`
     * seconds longer in the round. */
    double delay;
    double leave;   /* departures per worker and second        */
    double join;    /* arrivals per second                     */
    double corrupt; /* chance that a result is silently wrong  */
    kofn_clock clock;
    double work;    /* modelled clock: seconds per 1e9 multiply-adds; 0: 1 */
    double latency; /* simulator: seconds that a message takes             */
    /* Simulator: bytes per second.  Answers of a worker are sent one after the
     * other.  0: unlimited. */
    double bandwidth;
    uint64_t seed;
    /* NULL, or slowdown factors: a row for each round and a column for each
     * worker.  The rows repeat after the last.  0 and 1: normal speed;
     * infinity: no answer.  Workers without a column have normal speed.  It
     * applies in addition to `straggle`.  Borrowed; kofn_pattern_new makes
     * one. */
    const kofn_matrix *pattern;
    /* Simulator: a slow worker sends all results of a round together, when it
     * has computed the last. */
    bool whole;
    /* Chances in each update of an operand (kofn_update): that a bit of the
     * stored block flips, and that the worker misses the update. */
    double flip, miss;
    /* Chance that a node of a mesh errs, in each iterate and in each place of
     * `where`, a set of kofn_fault_place. */
    double fault;
    unsigned where;
} kofn_faults;
/* Initialises a kofn_faults with members by name:
 * KOFN_FAULTS_INIT(.straggle = 0.1, .seed = 7).  In C++ it takes no members;
 * set them afterwards. */
#ifdef __cplusplus
#define KOFN_FAULTS_INIT()                                                     \
    {                                                                          \
        sizeof(kofn_faults), 0, 0, 0, 0, 0, 0, 0, 0, KOFN_CLOCK_MODELLED, 0,   \
            0, 0, 0, NULL, false, 0, 0, 0, 0                                   \
    }
#else
#define KOFN_FAULTS_INIT(...)                                                  \
    {                                                                          \
        .size = sizeof(kofn_faults), __VA_ARGS__                               \
    }
#endif

/* Sets members of *w from "key=value,...".  The keys are the names of the
 * members, except `seed` and `pattern`.  `clock` is modelled or measured.
 * `where` is a sum of places, such as product+update, in the words of an events
 * file.
 * Allocates no memory.
 * KOFN_INVAL: a key is unknown or a value out of range; *w is unchanged. */
KOFN_API kofn_status kofn_faults_parse(kofn_faults *w, const char *text);
/* Returns the name of a member that is set and has no meaning for nodes of a
 * mesh; NULL if there is none. */
KOFN_API const char *kofn_faults_not_of_nodes(const kofn_faults *w);

/* Makes a matrix for kofn_faults.pattern: rounds x workers, float64, with
 * `factor` where a worker is slow and 1 elsewhere.  `text` is one of these
 * models, or the name of a file:
 *
 *     iid:p=P                  Each worker is slow with chance P, independently
 *                              in each round.
 *     fritchman:a=A,b=B,M=M    A Markov chain for each worker.  It goes from
 *                              the good state to the first of M bad ones with
 *                              chance A.  From a bad state it goes to the next
 *                              with chance B.
 *     arbitrary:N=N,W=W        At most N slow (worker, round) pairs in any W
 *                              rounds.
 *     bursty:B=B,W=W,eps=E     At most E slow workers in any W rounds, each
 *                              within B consecutive rounds; B < W.
 *
 *     lambda:p=P,q=Q,tail=E,rare=R,worst=S
 *                              Slowdowns as of cloud functions.  The median is
 *                              1.  In each round a share of the workers is
 *                              slower than 1.5 times; the shares are
 *                              log-uniform from P to Q.  The share above 1.5 z
 *                              is less by z^E.  A worker has any slowdown from
 *                              1.5 to S with chance R.  No slowdown is above
 *                              S.  Default: P = 0.002, Q = 0.07, E = 8,
 *                              R = 2e-5, S = 24.
 *     spot:changes=C,present=P,hour=H,group=G
 *                              Workers that leave and come back, G at a time,
 *                              by a Markov chain with two states.  All workers
 *                              together change C times an hour, an hour has H
 *                              rounds, and the share P is there on average.
 *                              Default: C = 0.6, P = 6.9 / 16, H = 12, G = 1.
 *
 * The defaults of lambda and spot are statistics of real machines; see
 * docs/stragglers.md.  Both draw slowdowns, infinite for absent workers, and do
 * not use `factor`.
 *
 * The models arbitrary and bursty take one more key, `style`: the number of
 * permitted workers that are slow in a round.
 *     uniform                  Any number; the default.
 *     max                      All.
 *     onoff                    All or none.
 *     sticky                   Any number, first those that were slow in the
 *                              last round.
 *
 * A file has such a matrix, as kofn_options.record writes it, with at least
 * `workers` columns.  Then `rounds`, `factor` and `seed` are not used.
 *
 * `factor` is above 1 and at most 1e6, or infinity for workers that never
 * answer.  The caller frees out->data with kofn_free.
 * KOFN_INVAL: an argument or a key is invalid.
 * KOFN_IO, KOFN_FORMAT, KOFN_SHAPE: the file cannot be read, is no pattern, or
 * has too few columns. */
KOFN_API kofn_status kofn_pattern_new(kofn_matrix *out, const char *text,
                                      size_t workers, size_t rounds,
                                      double factor, uint64_t seed);

#ifdef __cplusplus
}
#endif
#endif
