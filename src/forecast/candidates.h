/* candidates.h -- the schemes and parameters among which a plan chooses. */
#ifndef KF_FORECAST_CANDIDATES_H
#define KF_FORECAST_CANDIDATES_H

#include <kofn/forecast.h>

#include "base/base.h"

/* Scheme strings of at most KF_CANDIDATE bytes. */
#define KF_CANDIDATE 64
typedef struct kf_candidates {
    char (*spec)[KF_CANDIDATE];
    size_t count, cap, most;
} kf_candidates;

/* Lists up to a thousand candidates for this operation and number of workers;
 * `uneven`: workers have different speeds.
 * Some may not fit the problem; kofn_plan_new refuses these. */
kofn_status kf_candidates_list(kf_candidates *out, const kofn_problem *pb,
                               size_t workers, bool uneven);
void kf_candidates_free(kf_candidates *c);

#endif
