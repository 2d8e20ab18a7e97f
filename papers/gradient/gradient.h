/* gradient.h -- mean times of gradient codes, in closed form. */
#ifndef PAPERS_GRADIENT_GRADIENT_H
#define PAPERS_GRADIENT_GRADIENT_H

#include "papers.h"

/* The restart model of adaptive gradient coding (docs/model.md). An epoch is a
 * computation and then a message. A worker that was started or restarted
 * straggles with probability p, independently of the others. While too many
 * straggle to decode, they are restarted in the next epoch. */
typedef struct aet_params {
    size_t n;    /* workers, and subsets of the data */
    size_t d;    /* subsets that each worker computes */
    double p;    /* chance of straggling, 0 .. AET_MOST_P */
    double t_cp; /* time to compute d subsets */
    double t_cm; /* time of a message as long as the gradient */
    size_t lam;  /* AGC: segments of a gradient; 0: the number for the optimum,
                    lcm(1..d) */
} aet_params;
#define AET_MOST_P 0.9999
#define AET_MOST_N 10000

typedef enum aet_kind {
    AET_UNCODED = 1 << 0, /* one subset per worker, all must answer */
    AET_GC = 1 << 1,      /* whole gradients, d - 1 may straggle */
    AET_CGC = 1 << 2,     /* s may straggle, messages of 1/(d-s) */
    AET_G_CGC = 1 << 3,   /* CGC in groups */
    AET_AGC = 1 << 4,     /* as short as the present stragglers permit */
    AET_G_AGC = 1 << 5    /* AGC in groups */
} aet_kind;

typedef struct aet_scheme {
    aet_kind kind;
    size_t s; /* CGC, G_CGC: workers that may straggle, 0 .. d-1 */
} aet_scheme;

typedef struct aet_result {
    double time;   /* mean time of an iteration (AET) */
    double epochs; /* mean number of epochs, >= 1 */
    double length; /* mean length of decoded messages; 1: a gradient */
    double mass;   /* summed probability: 1 up to rounding */
} aet_result;

kofn_status aet_of(const aet_params *q, aet_scheme scheme, aet_result *res);
/* Computes the same for any cost. time(ctx, i, s) is the time of an iteration
 * that decodes in epoch i = 0, 1, ... s is the number of stragglers in the
 * worst group still running, or the tolerance if all messages have one length.
 */
typedef double (*aet_time)(void *ctx, size_t i, size_t s);
kofn_status aet_with(const aet_params *q, aet_scheme scheme, aet_time time,
                     void *ctx, aet_result *res);
/* Finds the scheme with the least AET among the kinds in the mask; 0: all.
 * Among equals, the first by kind and s. res may be NULL. */
kofn_status aet_best(const aet_params *q, unsigned among, aet_scheme *best,
                     aet_result *res);
/* Writes the communication vector: c[s], s = 0, 1, ..., is the length of
 * messages if s straggle. c has room for d. Returns their number. */
size_t aet_lengths(const aet_params *q, aet_scheme scheme, double *c);
/* Return the number of groups of the scheme, and the workers in group h. */
size_t aet_groups(const aet_params *q, aet_scheme scheme);
size_t aet_group_size(const aet_params *q, aet_scheme scheme, size_t h);
/* Writes the name, such as "AGC" or "G-CGC(1)", into out and returns it. */
const char *aet_name(aet_scheme scheme, char *out, size_t size);

/* Seconds from the paper's measurements. s: number of stragglers. */
typedef struct agc_costs {
    double compute;
    double code[3];       /* encoding and decoding with s stragglers */
    double code_again[3]; /* the same in later epochs */
    double length[3];     /* length of messages, in gradients */
} agc_costs;

/* A row of the published comparison on 20 workers (Table VI): the printed
 * number, the number computed with the paper's two slips, and the number
 * without them. */
typedef struct agc_row {
    aet_scheme scheme;
    double p;                             /* chance of straggling */
    double printed, as_printed, straight; /* seconds */
    agc_costs costs;                      /* without the slips */
} agc_row;
#define AGC_ROWS 18
/* An aet_time for agc_costs: equations 91 and 92. */
double agc_seconds(void *costs, size_t i, size_t s);
kofn_status agc_table(agc_row rows[AGC_ROWS]);

#endif
