/* gradient.h -- what gradient codes take on the average, in closed form. */
#ifndef PAPERS_GRADIENT_GRADIENT_H
#define PAPERS_GRADIENT_GRADIENT_H

#include "papers.h"

/* The restart model of adaptive gradient coding (docs/model.md).  An epoch is
 * a computation and then a message.  A worker that was started, or started
 * again, straggles with probability p, whatever the others do; while there are
 * too many stragglers to decode, they are started again in the next epoch. */
typedef struct aet_params {
    size_t n;    /* workers, and subsets of the data                     */
    size_t d;    /* subsets that each worker computes                    */
    double p;    /* chance of straggling, 0 .. AET_MOST_P           */
    double t_cp; /* time of the computation of d subsets                 */
    double t_cm; /* time of a message as long as the gradient            */
    size_t lam;  /* AGC: segments a gradient is cut into; 0: as many as give
                    the optimum, lcm(1..d)                               */
} aet_params;
#define AET_MOST_P 0.9999
#define AET_MOST_N 10000

typedef enum aet_kind {
    AET_UNCODED = 1 << 0, /* a subset a worker, all must answer        */
    AET_GC = 1 << 1,      /* whole gradients, d - 1 may straggle       */
    AET_CGC = 1 << 2,     /* s may straggle, messages of 1/(d-s)       */
    AET_G_CGC = 1 << 3,   /* the same in groups                        */
    AET_AGC = 1 << 4,     /* as short as the stragglers there are let  */
    AET_G_AGC = 1 << 5    /* the same in groups                        */
} aet_kind;

typedef struct aet_scheme {
    aet_kind kind;
    size_t s; /* CGC, G_CGC: how many may straggle, 0 .. d-1 */
} aet_scheme;

typedef struct aet_result {
    double time;   /* the average execution time of an iteration, AET */
    double epochs; /* epochs it takes on the average, >= 1            */
    double length; /* of the messages that are decoded, 1: a gradient */
    double mass;   /* probability that was summed over: 1 to rounding */
} aet_result;

kofn_status aet_of(const aet_params *q, aet_scheme scheme, aet_result *res);
/* The same for any cost: time(ctx, i, s) is what the iteration has taken when
 * epoch i = 0, 1, .. is the one that decodes, with s stragglers, in the group
 * with the most of those that were running; s is the tolerance where the
 * messages have one length. */
typedef double (*aet_time)(void *ctx, size_t i, size_t s);
kofn_status aet_with(const aet_params *q, aet_scheme scheme, aet_time time,
                     void *ctx, aet_result *res);
/* The scheme with the least AET among those whose kinds are in the mask, 0:
 * all; of equals the first by kind and s.  res may be NULL. */
kofn_status aet_best(const aet_params *q, unsigned among, aet_scheme *best,
                     aet_result *res);
/* The communication vector: c[s], s = 0 and on, is the length of messages when
 * s straggle; there is room for d.  Returns how many. */
size_t aet_lengths(const aet_params *q, aet_scheme scheme, double *c);
/* How many groups the scheme makes of the workers, and workers in group h. */
size_t aet_groups(const aet_params *q, aet_scheme scheme);
size_t aet_group_size(const aet_params *q, aet_scheme scheme, size_t h);
/* "AGC", "G-CGC(1)", ..., into out and returned. */
const char *aet_name(aet_scheme scheme, char *out, size_t size);

/* Seconds, from the paper's measurements; s: of stragglers. */
typedef struct agc_costs {
    double compute;
    double code[3];       /* encoding and decoding with s stragglers */
    double code_again[3]; /* the same in later epochs                */
    double length[3];     /* of messages, in gradients               */
} agc_costs;

/* The published comparison of schemes on 20 workers (Table VI of the paper),
 * its numbers as they are printed, computed with the paper's two slips, and
 * without them. */
typedef struct agc_row {
    aet_scheme scheme;
    double p;                             /* chance of straggling */
    double printed, as_printed, straight; /* seconds              */
    agc_costs costs;                      /* without slips        */
} agc_row;
#define AGC_ROWS 18
/* Of agc_costs, as aet_time: equations 91 and 92. */
double agc_seconds(void *costs, size_t i, size_t s);
kofn_status agc_table(agc_row rows[AGC_ROWS]);

#endif
