/* sgd.h -- changes by the parameters of SGD, from which tests compute the same
 * changes on one machine. */
#ifndef KF_TEST_SGD_H
#define KF_TEST_SGD_H

#include "kofn/change.h"

typedef struct sgd {
    double step, decay, momentum;
    bool nesterov;
} sgd;
#define SGD_INIT                                                               \
    {                                                                          \
        1, 0, 0, false                                                         \
    }

/* Changes an operand by such a step; returns the first failure. */
static inline kofn_status sgd_update(kofn_job *job, size_t operand,
                                     const sgd *s, const kofn_matrix *U,
                                     const kofn_matrix *V)
{
    kofn_change c = KOFN_CHANGE_INIT;
    kofn_status st;

    if (!s)
        return kofn_update(job, operand, NULL, U, V);
    st = kofn_change_sgd(&c, s->step, s->decay, s->momentum, s->nesterov);
    return st ? st : kofn_update(job, operand, &c, U, V);
}

#endif
