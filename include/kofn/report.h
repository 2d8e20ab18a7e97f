/* report.h -- the report of a product, and of all together.
 *
 * <kofn.h> includes it. */
#ifndef KOFN_REPORT_H
#define KOFN_REPORT_H

#include <kofn/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* State of a worker, in kofn_report. */
typedef enum kofn_worker_state {
    KOFN_WORKER_UNKNOWN,      /* never seen                                  */
    KOFN_WORKER_STANDBY,      /* present, but no seat is free for it         */
    KOFN_WORKER_STORING,      /* has a seat and is receiving its block       */
    KOFN_WORKER_LIVE,         /* holds its block and can work                */
    KOFN_WORKER_LEAVING,      /* has announced that it leaves                */
    KOFN_WORKER_GONE,         /* left; its number is never used again        */
    KOFN_WORKER_QUARANTINED,  /* excluded, because it was wrong too often    */
    KOFN_WORKER_UNRESPONSIVE, /* evicted, because it left tasks unanswered   */
    KOFN_WORKER_STATES        /* the number of states                        */
} kofn_worker_state;

/* The report of one product, or of all products (kofn_job_totals).  Joining,
 * leaving and block transfers belong to no product; they are counted in the
 * report of the next product that is taken.  If products overlap, each report
 * counts the whole time in which its product was open.  "Worker id" is an index
 * from 0. */
typedef struct kofn_report {
    size_t size;     /* sizeof(kofn_report) */
    unsigned rounds; /* completed products: 1, or 0 if the product failed */
    /* Time of the product, and how the coordinator spent it: see `placing`
     * below.  On the port's clock. */
    kofn_time took, encoding, waiting, decoding;
    /* Largest amplification of rounding errors by a decoding of this product; 1
     * means none. */
    double noise;
    /* Predicted relative error of the output: rounding, amplified by `noise`,
     * and undetected wrong results as large as `floor`.  If the rows of A
     * differ in size, it is relative to |row| |x| in each of them. */
    double predicted;
    unsigned live;         /* workers at the end of the round                */
    unsigned joined, left; /* workers                                        */
    unsigned late;    /* results that were not needed, received or not       */
    unsigned dropped; /* messages ignored as foreign, stale or duplicate     */
    /* Rows of its block that each worker was asked for, by worker id.  This and
     * all arrays below are valid until the next product is taken. */
    const size_t *rows;
    const kofn_worker_state *states; /* by worker id */
    /* Rounds since kofn_open in which each worker was located as faulty, by
     * worker id. */
    const unsigned *located;
    size_t workers;    /* length of rows, states and located              */
    unsigned messages; /* results that had arrived when the round ended   */
    uint64_t scalars;  /* numbers in these results                        */
    unsigned corrupt;  /* results that were found wrong                   */
    /* Number of principals that may lie together, in any way, without a wrong
     * result passing undetected.  0: nothing was checked.  In totals: the
     * smallest of all checked rounds. */
    size_t liars;
    /* Error floor: the largest undetected error of an entry is floor x scale.
     *   A x, A B  The scale is the norm of the row of A times that of the
     *             column of the input.  Rows and columns coded with them are
     *             included, each with at most 2^7 times the norm of the entry's
     *             own.
     *   SUM       The scale is the largest answer that contains the entry.
     *   GRAM      The scale is the norm of the column of A times that of A x,
     *             or two other norms if they are larger (docs/errors.md, "The
     *             floor").
     * 0: nothing was checked. */
    double floor;
    /* Bytes sent (blocks, and the input of each task) and received
     * (results). */
    uint64_t sent, received;
    /* KOFN_SUM: the answer is the sum of weights[j] f(j, x) over all parts j.
     * Weights are 1, except in a KOFN_PARTIAL sum of a scheme that leaves
     * missing workers out.  Otherwise NULL. */
    const double *weights;
    /* Schemes that remember: for each part, how many rounds ago its f was
     * computed.  Otherwise NULL. */
    const unsigned *ages;
    size_t parts;          /* length of weights and ages                */
    uint32_t number;       /* of the product, from 1; 0 in totals       */
    unsigned began, ended; /* STREAM: first and last round              */
    size_t plain, coded; /* STREAM: uncoded and coded answers that were used */
    /* Located workers that had to send their blocks of a changing operand, to
     * show whether the blocks themselves are wrong. */
    unsigned again;
    unsigned rebuilt; /* workers with a wrong block that was rebuilt          */
    unsigned rebuilding; /* workers waiting for a block rebuilt from others */
    /* kofn_scrub: deviation of the blocks from the code, root mean square,
     * relative to that of the numbers; the largest.  0: nothing was
     * compared. */
    double drift;
    unsigned unchecked; /* sums that were trusted (kofn_options.audit) */
    /* The coordinator's time, from the beginning of a product to its end:
     *   encoding   it makes blocks and messages
     *   placing    it waits for workers that come, or that store their blocks
     *   sending    it hands messages to the port
     *   waiting    it waits for answers
     *   receiving  it takes messages, and decides
     *   decoding, checking
     *   outside    the caller does other work
     * The eight add up to `took`.  In totals they add up to the time since
     * kofn_open, and so include the placing of A; `took` is then the sum of all
     * products' times. */
    kofn_time placing, sending, receiving, checking, outside;
    /* Time that each worker computed for this product, by worker id, as it
     * reports. */
    const kofn_time *computed;
} kofn_report;
#define KOFN_REPORT_INIT KOFN_REPORT_OF_(sizeof(kofn_report))
#define KOFN_REPORT_OF_(bytes)                                                 \
    {                                                                          \
        (bytes), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, 0, 0,   \
            0, 0, 0, 0, 0, 0, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  \
            0, 0, 0, 0, NULL                                                   \
    }

#ifdef __cplusplus
}
#endif
#endif
