/* faults.h -- what goes wrong: events at given rounds, and a model of chance, which
 * threads and simulated workers follow.
 *
 * For whoever tries a job under stragglers, losses and wrong numbers.  A part of
 * kofn.h, which includes it where its types are needed first; so it includes that
 * before its own guard.
 */
#include <kofn.h>

#ifndef KOFN_FAULTS_H
#define KOFN_FAULTS_H

#ifdef __cplusplus
extern "C" {
#endif

/* ---- events -------------------------------------------------------------- */

typedef enum kofn_fault_event_kind {
    KOFN_FAULT_EVENT_LEAVE =
        1,                    /* worker vanishes                              */
    KOFN_FAULT_EVENT_JOIN,    /* a new worker, numbered after all before it   */
    KOFN_FAULT_EVENT_SLOW,    /* worker takes `factor` times as long          */
    KOFN_FAULT_EVENT_NORMAL,  /* worker is neither slow nor corrupt any more  */
    KOFN_FAULT_EVENT_CORRUPT, /* worker's results are silently wrong          */
    KOFN_FAULT_EVENT_FLIP,    /* a bit of what the worker stores is another   */
    KOFN_FAULT_EVENT_ERR      /* a node of a mesh errs once                   */
} kofn_fault_event_kind;

/* Where a node of a mesh can err while an iterate is made; a set of them is their sum
 * (Dutta, Bai, Jeong, Low, Grover, "A unified coded deep neural network training
 * strategy based on generalized PolyDot codes", 2018, section V). */
typedef enum kofn_fault_place {
    KOFN_FAULT_IN_ENCODING =
        1, /* the input, mixed for its seat; where it is cut */
    KOFN_FAULT_IN_PRODUCT =
        2, /* a piece that it makes, several of a product   */
    KOFN_FAULT_IN_DECODING =
        4, /* the product that it decodes                   */
    KOFN_FAULT_IN_VECTOR =
        8, /* what it makes of that: activations, deltas    */
    KOFN_FAULT_IN_UPDATE =
        16, /* a block that changes, as it does              */
    KOFN_FAULT_IN_MEMORY =
        32 /* ... at any other time                         */
} kofn_fault_place;

typedef struct kofn_fault_event {
    unsigned round;  /* 1 is the first */
    double fraction; /* 0: before the round; else after this share of its
                        strips has arrived */
    kofn_fault_event_kind kind;
    uint32_t worker; /* not for JOIN */
    double factor;   /* SLOW; ERR: where, a kofn_fault_place */
} kofn_fault_event;

/* Reads an events file: one `ROUND[.FRACTION] leave W | join | slow W FACTOR |
 * normal W | corrupt W | flip W | err W PLACE` a line, # comments; PLACE is one of
 * encode, product, decode, vector, update, memory.  Checks workers and rounds against
 * `workers` at the start and `rounds` in all; kofn_step says what is counted.
 * *out is freed with kofn_free. */
KOFN_API kofn_status kofn_events_read(kofn_fault_event **out, size_t *count,
                                      const char *path, size_t workers,
                                      size_t rounds);
/* The same from text, which messages call "events". */
KOFN_API kofn_status kofn_events_parse(kofn_fault_event **out, size_t *count,
                                       const char *text, size_t length,
                                       size_t workers, size_t rounds);
/* What a fault does to numbers: all of them are wrong, or one is, by a bit, or by being
 * no number, or out of all proportion.  The n-th fault of a worker is the same for the
 * same seed. */
KOFN_API void kofn_faults_spoil(uint64_t seed, uint32_t worker, uint32_t n,
                                kofn_matrix *numbers);

/* ---- the fault model ----------------------------------------------------- */

typedef enum kofn_clock {
    KOFN_CLOCK_MODELLED, /* simulator: a task takes what the fault model says */
    KOFN_CLOCK_MEASURED  /* simulator: a task takes the processor time it
                            really took, as if each worker had a machine  */
} kofn_clock;

/* Zero is no fault at all, and every draw comes from a stream named
 * by (seed, purpose, worker, round): a seed repeats a run. */
typedef struct kofn_faults {
    size_t size;     /* sizeof(kofn_faults) */
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
    double bandwidth; /* simulator: bytes per second; a worker's answers go one
                         after the other; 0: unlimited                       */
    uint64_t seed;
    /* Or a row a round, which begins again at its end, and in it how many times
     * as long each worker takes: 0, 1: as usual, infinity: it never answers.
     * Workers that have no column are as usual.  Borrowed; see
     * kofn_pattern_new. */
    const kofn_matrix *pattern;
    bool whole; /* simulator: what a slow worker computed comes together, when
                   it has nothing more of this round to do               */
    /* Chances that, with an update of an operand (kofn_update), a bit of what a
     * worker stores flips; that the worker misses it. */
    double flip, miss;
    /* Chance that a node of a mesh errs in each of the places of `where`, a set, at
     * any iterate. */
    double fault;
    unsigned where;
} kofn_faults;
/* Of its members by name: KOFN_FAULTS_INIT(.straggle = 0.1, .seed = 7). */
#define KOFN_FAULTS_INIT(...)                                                  \
    {                                                                          \
        .size = sizeof(kofn_faults), __VA_ARGS__                               \
    }

/* "key=value,..." with the field names above (clock=modelled|measured,
 * where=product+update+... of the places of an events file), onto what *w holds. */
KOFN_API kofn_status kofn_faults_parse(kofn_faults *w, const char *text);
/* The name of a number that is given and means nothing to nodes of a mesh; NULL:
 * there is none. */
KOFN_API const char *kofn_faults_not_of_nodes(const kofn_faults *w);

/* Makes a pattern of slowness, rounds x workers factors for
 * kofn_faults.pattern: 1, or `factor` where a worker is slow in a round.  `text`
 * is one of
 *
 *     iid:p=P                  each by itself, anew in every round
 *     fritchman:a=A,b=B,M=M    each by itself: good, with chance A the first
 *                              of M bad states, each left for the next with
 *                              chance B
 *     arbitrary:N=N,W=W        at most N times in any W rounds, all together
 *     bursty:B=B,W=W,eps=E     in any W rounds at most E workers, and each of
 *                              them within B rounds
 *
 * and arbitrary and bursty may have a style: max, as many as ever may be;
 * onoff, so or none; uniform, any number (the default); sticky, that too, of
 * those who were slow just before if possible.  Else it is a file with a matrix
 * of that kind, as options.record makes one; of that, workers are at least
 * those in it, and rounds, factor and seed say nothing.  out->data is freed
 * with kofn_free. */
KOFN_API kofn_status kofn_pattern_new(kofn_matrix *out, const char *text,
                                      size_t workers, size_t rounds,
                                      double factor, uint64_t seed);

#ifdef __cplusplus
}
#endif
#endif
