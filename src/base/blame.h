/* blame.h -- is somebody wrong more often than chance makes the others?
 *
 * A fault now and then is chance: who is wrong as often as all others are is not
 * to be excluded, however long it runs.  So evidence is gathered by Page's test
 * (E. S. Page, Continuous inspection schemes, Biometrika 41, 1954) of the rate q at
 * which the others are wrong against a larger one, p = max(1/10, sqrt q): each time
 * that it is wrong adds ln(p / q), each time that it is right ln((1 - p) / (1 - q)),
 * which is less than 0, and the sum never falls below 0.  By chance it reaches a
 * limit h once in e^h times at most (G. Lorden, Procedures for reacting to a change in
 * distribution, Annals of Mathematical Statistics 42, 1971).
 *
 * The counts are the caller's, one for each of those who are judged and one
 * for all of them; nothing here allocates or decides what becomes of anybody.
 */
#ifndef KF_BASE_BLAME_H
#define KF_BASE_BLAME_H

#include <stdbool.h>
#include <stdint.h>

/* Of one; and of all together, whose level is not used. */
typedef struct kf_blame {
    double level;
    uint64_t wrong, times; /* it was compared, and found wrong */
} kf_blame;

/* Count one more comparison of this one, and of all: `all` counts it as well. */
void kf_blame_note(kf_blame *one, kf_blame *all, bool wrong);
/* It was excluded before, and is back: to be wrong once more is more than chance, until
 * it has been right for long. */
void kf_blame_warn(kf_blame *one, unsigned sure);
/* Take the one that is excluded out of the counts of all, since its findings
 * say nothing of the others. */
void kf_blame_leave(const kf_blame *one, kf_blame *all);
/* Is that more than chance?  Chance is taken for it once in e^(12 sure) times: with
 * sure = 3 that is once in 10^6 hours of 1,000 workers and a product a millisecond,
 * and who is always wrong among eight is found in 20 products. */
bool kf_blame_suffices(const kf_blame *one, unsigned sure);

#endif
