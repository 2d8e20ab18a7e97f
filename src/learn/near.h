/* near.h -- how far a descent is from the minimum.
 *
 * Nothing is kept; the distance costs rounds of the job, so it is asked for
 * seldom. */
#ifndef KF_LEARN_NEAR_H
#define KF_LEARN_NEAR_H

#include "regress.h"

/* From `at`, where F and its gradient, in d->g, were just taken, to the minimum:
 * an estimate from below where it is more than `enough`; HUGE_VAL where it cannot
 * be told.  It takes some products. */
kofn_status kf_learn_distance(kf_descent *d, const double *at, double F,
                              double enough, double *distance);

#endif
