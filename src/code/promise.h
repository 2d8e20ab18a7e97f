/* promise.h -- how many results are awaited where they are compared, and how
 * many of them may be wrong.
 *
 * Rounds and streams compare results (src/core/guard.c), nodes of a mesh pieces
 * (src/peer/liars.c) and blocks (src/data/reading.c).  Each of them counts who
 * has a say; what is made of the numbers is here, and nowhere else.
 *
 * With s results beyond those that decode, any codeword that agrees with all
 * but e of n results is the true one as long as at most n - e - enough lies are
 * among those it agrees with.  So e = n - enough - s may be located where s
 * lies have to be survived, and one result more is asked for when that is not
 * enough (docs/errors.md).
 *
 * Who lies is a principal: a key or a host may have many workers, and what they
 * say may be one lie.  So s is never less than what one principal can say. */
#ifndef KF_CODE_PROMISE_H
#define KF_CODE_PROMISE_H

#include "code.h"

/* What follows of the plan and of the mode. */
typedef struct kf_promise {
    kofn_errors errors;
    size_t enough; /* results that decode, of which fewer never do     */
    size_t surely; /* any so many decode: the K of math/errors.md      */
    bool copies;   /* what is wrong may be wrong alike, by accident    */
    bool alike;    /* nothing else finds what is wrong alike           */
    bool half;     /* at most half of what is beyond `enough` is named */
} kf_promise;

/* Who may have a say, in results; 0 where it is not known, or nobody. */
typedef struct kf_voices {
    size_t one;    /* the most that one principal can give, or has given    */
    size_t alone;  /* of those who answer for themselves alone              */
    size_t all;    /* that could be compared, of everybody                  */
    size_t here;   /* that are compared                                     */
    size_t known;  /* of those known to lie who have no part in these: so
                      many fewer may lie among these                        */
    size_t silent; /* that say nothing, whatever was asked                  */
} kf_voices;

/* What may be made of a comparison, as in KOFN_DO_CHECK of <kofn/core.h>. */
typedef struct kf_verdicts {
    size_t most, liars, promised;
} kf_verdicts;

/* `alike` and `half` are false. */
kf_promise kf_promise_of(const kofn_plan *plan, size_t group,
                         kofn_errors errors);
/* May those who are wrong be so in ways that agree? */
bool kf_promise_conspires(const kf_promise *p);
/* Results that are awaited beyond those that decode; `known` may be
 * anything. */
size_t kf_promise_spare(const kf_promise *p, const kf_voices *v);
/* The same without those who are known to lie, but one. */
size_t kf_promise_vouch(const kf_promise *p, const kf_voices *v);
kf_verdicts kf_promise_verdicts(const kf_promise *p, const kf_voices *v);
/* The results that are wanted where `here` disagree, and `liars` may lie. */
size_t kf_promise_apart(const kf_promise *p, size_t here, size_t liars);

/* `spare` results less those of the `known`, but one. */
static inline size_t kf_promise_besides(size_t spare, size_t known)
{
    return spare - kf_min(known, spare - kf_min(spare, 1));
}

#endif
