/* rhat.h -- what a round of a stream of products takes on the average. */
#ifndef PAPERS_STREAM_RHAT_H
#define PAPERS_STREAM_RHAT_H

#include "papers.h"

/* A product begins every round; each worker is slow in a round with chance
 * delta, whatever it was before, and then takes alpha times as long for all it
 * is asked for, of which nothing comes earlier.  A round lasts until the scheme
 * can do without those that are not done, and unless all are done mu times
 * longer than the first worker took. */
typedef struct rhat_params {
    size_t workers;
    double alpha, delta, mu;
} rhat_params;

typedef enum rhat_kind {
    RHAT_ONCE = 1, /* every product by itself, a result from each worker */
    RHAT_DIP,
    RHAT_IDIP
} rhat_kind;

#define RHAT_ENDLESS SIZE_MAX

typedef struct rhat_scheme {
    rhat_kind kind;
    size_t threshold; /* results that decode a product; IDIP: 0, or PW - N   */
    size_t parts;     /* one is so much of a product; 0: threshold           */
    size_t T, lambda; /* DIP: rounds of delay, or RHAT_ENDLESS; workers
                         that are enough in the last of them, 0: all         */
    size_t N, W;      /* IDIP: of any W rounds N marks are done without      */
    bool late;        /* IDIP: products are carried to their due rounds though
                         they could be decoded before                        */
} rhat_scheme;

typedef struct rhat_result {
    double rhat;  /* mean time of a round, by that of a whole product on one
                        worker; IDIP: exact_early_finish, or exact_fixed_load
                        where that is late                                   */
    size_t slots; /* mini-tasks of a worker in a round, at most; or
                        RHAT_ENDLESS, and likewise delay                */
    size_t threshold, delay;
    double load;      /* slots by parts */
    double mean_load; /* of a round     */
    /* DIP: rounds that a product takes without a deadline, where all being slow
     * counts as nobody being so, and where it brings nothing. */
    double f_tie, f_binomial;
    /* IDIP, the first two with mu = 0: the paper's bound, what it should be, and
     * the mean where each product is carried to its end, or finished early. */
    double bound_printed, bound_corrected, exact_fixed_load, exact_early_finish;
} rhat_result;

kofn_status rhat_of(const rhat_params *q, const rhat_scheme *scheme,
                    rhat_result *out);
/* The parameters with the least rhat: ONCE a threshold below the number of
 * workers P, DIP P to (T+1)P results, without end P to 10P - 1, and any lambda,
 * IDIP any N with W = T+1.  out may be NULL. */
kofn_status rhat_best(const rhat_params *q, rhat_kind kind, size_t T,
                      rhat_scheme *best, rhat_result *out);

#endif
