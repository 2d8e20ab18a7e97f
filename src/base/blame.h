/* blame.h -- is a worker wrong more often than chance explains?
 *
 * A worker that errs at the rate of all others is not excluded, however long it
 * runs. So evidence is gathered by Page's test (E. S. Page, Continuous
 * inspection schemes, Biometrika 41, 1954).  It compares the rate q at which
 * the others are wrong with a larger rate, p = max(1/10, sqrt q).  A wrong
 * answer adds ln(p / q) to the worker's level.  A right answer adds ln((1 - p)
 * / (1 - q)), which is negative.  The level never falls below 0.  By chance it
 * reaches a limit h at most once in e^h answers (G. Lorden, Procedures for
 * reacting to a change in distribution, Annals of Mathematical Statistics 42,
 * 1971).
 *
 * The caller owns the counts: one for each worker, and one for all of them.
 * Nothing here allocates memory or excludes a worker.
 */
#ifndef KF_BASE_BLAME_H
#define KF_BASE_BLAME_H

#include <stdbool.h>
#include <stdint.h>

/* The counts of one worker, or of all together.  The level of all is not
 * used. */
typedef struct kf_blame {
    double level;
    uint64_t wrong,
        times; /* comparisons that found it wrong, and all of them */
} kf_blame;

/* Adds a comparison to the counts of this worker and to those of all. */
void kf_blame_note(kf_blame *one, kf_blame *all, bool wrong);
/* Raises the level of a worker that was excluded and is back.  One more wrong
 * answer is then more than chance, until the worker has been right for long. */
void kf_blame_warn(kf_blame *one, unsigned sure);
/* Subtracts the counts of an excluded worker from the counts of all, because
 * they say nothing about the other workers. */
void kf_blame_leave(const kf_blame *one, kf_blame *all);
/* True if the level is more than chance explains.  Chance alone reaches it once
 * in e^(12 sure) answers.  With sure = 3 that is once in 10^6 hours of 1,000
 * workers and a product a millisecond.  A worker of eight that is always wrong
 * is found in 20 products. */
bool kf_blame_suffices(const kf_blame *one, unsigned sure);

#endif
