/* training.h -- a training, for the files that take its steps.
 *
 * The training owns what it points to unless a comment says borrowed. Its
 * steps are taken by train.c, train_mesh.c or train_sum.c, by one of them at a
 * time. */
#ifndef KF_TRAINING_H
#define KF_TRAINING_H

#include "net.h"

#include <kofn/peer.h>

struct kofn_training {
    kofn_net *net;
    kofn_train_options opt;
    bool classes;
    kofn_matrix points; /* rows as workers have them */
    double *wide; /* owned memory of `points` if targets follow each point */
    double *y;    /* one number per point */
    kofn_job *job;
    kofn_net
        *placed; /* the network as it was placed, if workers hold the weights */
    struct run *run; /* NULL unless a run is under way */
};

size_t kf_training_steps(const kofn_training *t); /* steps of an epoch */
size_t kf_training_room(const kofn_training *t);  /* points of a batch */
/* Return the batch of a step, counted from 0; put its points into the passes.
 */
kf_batch kf_training_batch(const kofn_training *t, uint64_t step);
void kf_training_put(const kofn_training *t, const kf_batch *b, kf_passes *p);
/* Returns how a step changes weights and velocities. */
kofn_status kf_training_change(const kofn_training *t, kofn_change *out);

/* ---- train_mesh.c -------------------------------------------------------- */

/* The training as a program for a mesh, at one node. */
typedef struct kf_train_mesh {
    kofn_training *t;
    uint64_t steps;
    kofn_mesh_product product[3 * KOFN_NET_MOST];
    kofn_operand operand[KOFN_NET_MOST];
    kf_passes p;     /* hold the points of a step; its tape is in the vector */
    uint64_t loaded; /* 1 + the step of the loaded points; 0: none */
    size_t tape;     /* numbers of one tape */
    double *means, *v;
} kf_train_mesh;

/* Sets up m, and sets *program and *v, the start vector.  Both point into m and
 * are valid until kf_train_mesh_free. */
kofn_status kf_train_mesh_new(kf_train_mesh *m, kofn_training *t,
                              const kofn_plan *const *plan,
                              kofn_program *program, kofn_matrix *v);
void kf_train_mesh_free(kf_train_mesh *m);

#endif
