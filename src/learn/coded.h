/* coded.h -- networks with their weights coded at the workers of a job.
 *
 * A kf_coded borrows the job. Free it by kf_coded_free before the job is
 * closed. */
#ifndef KF_CODED_H
#define KF_CODED_H

#include "net.h"
#include "watch.h"

typedef struct kf_coded {
    kofn_net *net; /* its weights are those of the last fetch */
    kofn_job *job; /* operand l is W_{l+1}; borrowed */
    kf_passes p;
    void *in, *out; /* scratch: a product's input and output, transposed or with
                       the biases */
    double *means;  /* means of the hidden units, for the sparsity penalty */
    kf_look look;   /* asked during a round whether to stop */
    bool midway; /* a round is under way, or was when enough answers had come */
    kofn_report *sum; /* receives the counts of all rounds */
} kf_coded;

/* Makes one plan per layer, for batches of `room` points. Each plan serves the
 * forward and the backward product. */
kofn_status kf_coded_plans(const kofn_net *net, size_t room, const char *spec,
                           size_t workers, uint64_t seed, kofn_plan **plan);
kofn_status kf_coded_new(kf_coded *c, kofn_net *net, bool classes, size_t room,
                         kofn_job *job);
void kf_coded_free(kf_coded *c);
/* Trains one step on the points in c->p. Sets *cost to the mean cost and
 * *right to the number of labels predicted correctly. If it fails, the weights
 * are unchanged. */
kofn_status kf_coded_step(kf_coded *c, const kofn_change *change, double *cost,
                          double *right);
/* Compares the workers' blocks after a step, if enough workers are there.
 * Returns KOFN_OK if too few are there. */
kofn_status kf_coded_scrub(kf_coded *c);
/* Fetches the weights from the workers into c->net. */
kofn_status kf_coded_fetch(kf_coded *c);
/* Fetch the velocities from the workers, layer after layer; or send them to
 * the workers before the first step. */
kofn_status kf_coded_fetch_velocities(kf_coded *c, double *velocity);
kofn_status kf_coded_move(kf_coded *c, const double *velocity);

#endif
