/* coded.h -- networks whose weights live coded at the workers of a job.
 *
 * A kf_coded is freed by kf_coded_free before the job is closed that it
 * borrows. */
#ifndef KF_CODED_H
#define KF_CODED_H

#include "net.h"
#include "watch.h"

typedef struct kf_coded {
    kofn_net *net; /* its weights are those of the last fetch */
    kofn_job *job; /* operand l holds W_{l+1}                 */
    kf_passes p;
    void *in, *out;   /* of a product, turned, or with the biases */
    double *means;    /* of hidden units, for the penalty on them */
    kf_look look;     /* while there is a round */
    bool midway;      /* there is one, or there was when it was enough */
    kofn_report *sum; /* what its rounds were is added here */
} kf_coded;

/* A plan a layer, of batches of `room` points, each of which serves both
 * products. */
kofn_status kf_coded_plans(const kofn_net *net, size_t room, const char *spec,
                           size_t workers, uint64_t seed, kofn_plan **plan);
kofn_status kf_coded_new(kf_coded *c, kofn_net *net, bool classes, size_t room,
                         kofn_job *job);
void kf_coded_free(kf_coded *c);
/* A step by the points that were put into c->p; the mean cost, and how many
 * labels were told right.  When it fails the weights are as before. */
kofn_status kf_coded_step(kf_coded *c, const kofn_change *change, double *cost,
                          double *right);
/* After a step: compare the workers' blocks, where enough are there for it. */
kofn_status kf_coded_scrub(kf_coded *c);
/* The weights into the net. */
kofn_status kf_coded_fetch(kf_coded *c);
/* Velocities, layer after layer, from the workers and, before the first step,
 * to them. */
kofn_status kf_coded_fetch_velocities(kf_coded *c, double *velocity);
kofn_status kf_coded_move(kf_coded *c, const double *velocity);

#endif
