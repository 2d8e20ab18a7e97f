/* lbfgs.h -- a descent that remembers its last steps.
 *
 * A kf_lbfgs owns the steps it remembers; it may be used for one descent only. */
#ifndef KF_LEARN_LBFGS_H
#define KF_LEARN_LBFGS_H

#include "regress.h"

typedef struct kf_lbfgs kf_lbfgs;

/* For n features; to be freed even where it fails. */
kofn_status kf_lbfgs_new(kf_lbfgs **out, size_t n);
void kf_lbfgs_free(kf_lbfgs *b);
/* F at w and its gradient in d->g, of a descent with d->pairs; without a product
 * where the last step knows them. */
kofn_status kf_lbfgs_gradient(kf_descent *d, const double *w, double *F);
/* A step from w, where F and d->g are known; its length in d->now.step. */
kofn_status kf_lbfgs_step(kf_descent *d, double *w, double F);

#endif
