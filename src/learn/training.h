/* training.h -- what a training is of, for whoever takes its steps.
 *
 * The training owns what it points to unless it says borrowed.  Steps are
 * taken by train.c, train_mesh.c or train_sum.c, by one of them at a time. */
#ifndef KF_TRAINING_H
#define KF_TRAINING_H

#include "net.h"

#include <kofn/peer.h>

struct kofn_training {
    kofn_net *net;
    kofn_train_options opt;
    bool classes;
    kofn_matrix points; /* rows as workers have them */
    double *wide;       /* in memory of their own: with what should come out */
    double *y;          /* a number for each of them */
    kofn_job *job;
    kofn_net *placed; /* as it was handed out, where workers have the weights */
    struct run *run;  /* while there is one */
};

size_t kf_training_steps(const kofn_training *t); /* of an epoch */
size_t kf_training_room(const kofn_training *t);  /* points of a batch */
/* The batch of a step, from 0; and its points put into the passes. */
kf_batch kf_training_batch(const kofn_training *t, uint64_t step);
void kf_training_put(const kofn_training *t, const kf_batch *b, kf_passes *p);
/* The change that a step makes of weights and velocities. */
kofn_change kf_training_change(const kofn_training *t);

/* ---- train_mesh.c -------------------------------------------------------- */

/* The training as a program for a mesh, at one node. */
typedef struct kf_train_mesh {
    kofn_training *t;
    uint64_t steps;
    kofn_stage stage[3 * KOFN_NET_MOST];
    kofn_operand operand[KOFN_NET_MOST];
    kf_passes p;     /* with the points of a step, and its tape in the vector */
    uint64_t loaded; /* 1 + that step; 0: none */
    size_t tape;     /* numbers of one         */
    double *means, *v;
} kf_train_mesh;

/* v: the vector to begin with. */
kofn_status kf_train_mesh_new(kf_train_mesh *m, kofn_training *t,
                              const kofn_plan *const *plan,
                              kofn_program *program, kofn_matrix *v);
void kf_train_mesh_free(kf_train_mesh *m);

#endif
