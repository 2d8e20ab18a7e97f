/* bounds.h -- how many results are awaited for comparison, and how many of
 * them may be wrong.
 *
 * Rounds and streams compare results (src/core/guard.c), nodes of a mesh
 * compare pieces (src/peer/faulty.c), and readers compare blocks
 * (src/verify/reading.c).  Each counts its own results; only this file computes
 * from the numbers.
 *
 * Let there be s results beyond those that decode.  A codeword that agrees with
 * all but e of n results is the true one if at most n - e - enough of the
 * agreeing results are wrong.  So e = n - enough - s results may be located if
 * s wrong results must be survived.  If that is not enough, one more result is
 * requested (docs/errors.md).
 *
 * Errors are counted by principals: one key or host may have many workers, and
 * all their results may be one lie.  So s is at least the number of results
 * that one principal can return. */
#ifndef KF_CODE_PROMISE_H
#define KF_CODE_PROMISE_H

#include "code.h"

/* The consequences of the plan and the mode. */
typedef struct kf_bounds {
    kofn_errors errors;
    size_t enough; /* results that decode; fewer never do */
    size_t surely; /* any set of this size decodes: the K of math/errors.md */
    bool copies;   /* wrong results may agree by accident */
    bool alike;    /* nothing else finds wrong results that agree */
    bool half;     /* at most half of the results beyond `enough` are located */
} kf_bounds;

/* Counts of results by sender; 0 if unknown or none. */
typedef struct kf_voices {
    size_t one;    /* most that one principal can return or has returned */
    size_t alone;  /* from workers with a principal of their own */
    size_t all;    /* that could be compared, from all workers */
    size_t here;   /* that are compared                                     */
    size_t known;  /* of principals known to be wrong, not compared here */
    size_t silent; /* that are zero for every input */
} kf_voices;

/* The limits of a comparison, as in KOFN_DO_CHECK of <kofn/core.h>. */
typedef struct kf_verdicts {
    size_t most, liars, independent;
} kf_verdicts;

/* Returns a promise with `alike` and `half` false. */
kf_bounds kf_bounds_of(const kofn_plan *plan, size_t group, kofn_errors errors);
/* True if wrong results may agree with each other. */
bool kf_bounds_allow_collusion(const kf_bounds *p);
/* Returns the number of awaited results beyond those that decode; ignores
 * `known`. */
size_t kf_bounds_spare(const kf_bounds *p, const kf_voices *v);
/* Returns the same number minus `known`, but at least 1 if it is not 0. */
size_t kf_bounds_vouch(const kf_bounds *p, const kf_voices *v);
kf_verdicts kf_bounds_verdicts(const kf_bounds *p, const kf_voices *v);
/* Returns the number of results to have if `here` results disagree and `liars`
 * may be wrong. */
size_t kf_bounds_apart(const kf_bounds *p, size_t here, size_t liars);

/* Returns `spare` minus `known`, but at least 1 if `spare` is not 0. */
static inline size_t kf_bounds_besides(size_t spare, size_t known)
{
    return spare - kf_min(known, spare - kf_min(spare, 1));
}

#endif
