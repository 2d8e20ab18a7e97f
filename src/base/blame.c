/* blame.c -- is a worker wrong more often than chance explains?
 *
 * The caller owns the counts.  Core and mesh decide what happens to a worker or
 * node. */
#include "blame.h"

#include <assert.h>
#include <math.h>

/* Returns the level from which on a worker is to be excluded. */
static double limit(unsigned sure)
{
    return 12.0 * sure;
}

/* Returns the rate at which the others are wrong.  With few comparisons it is
 * too large rather than too small. */
static double rate_of_others(const kf_blame *one, const kf_blame *all)
{
    assert(one->wrong <= all->wrong && one->times <= all->times);
    return (double)(all->wrong - one->wrong + 1) /
           (double)(all->times - one->times + 1);
}

void kf_blame_note(kf_blame *one, kf_blame *all, bool wrong)
{
    double q = rate_of_others(one, all), p = fmax(0.1, sqrt(q));

    if (q < 1) /* else there are no others to compare with */
        one->level += wrong ? log(p / q) : log1p(-p) - log1p(-q);
    one->level = fmax(one->level, 0);
    one->wrong += wrong;
    all->wrong += wrong;
    one->times++;
    all->times++;
}

void kf_blame_warn(kf_blame *one, unsigned sure)
{
    one->level = (1 - 1e-9) * limit(sure);
}

void kf_blame_leave(const kf_blame *one, kf_blame *all)
{
    assert(one->wrong <= all->wrong);
    assert(one->times <= all->times);
    all->wrong -= one->wrong;
    all->times -= one->times;
}

bool kf_blame_suffices(const kf_blame *one, unsigned sure)
{
    return one->level >= limit(sure);
}
