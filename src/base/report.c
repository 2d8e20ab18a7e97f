/* report.c -- reports of rounds added up.
 *
 * Owns nothing: both reports are the caller's.  Sums and largest values are
 * formed here and nowhere else, so that all totals agree. */
#include "report.h"

/* Written by place, so that a field without a row does not compile. */
#define X(...) 0,
_Static_assert(sizeof((kofn_report){0, KF_REPORT_MAP(X)}) ==
                   sizeof(kofn_report),
               "every field has a row");
#undef X

#define SUM(was, now) ((was) + (now))
#define MOST(was, now) ((was) > (now) ? (was) : (now))
#define LAST(was, now) (now)
#define OWN(was, now) (was)

void kf_report_add(kofn_report *sum, const kofn_report *r)
{
    kofn_report was = *sum;

#define X(field, adds, ...) sum->field = adds(was.field, r->field);
    KF_REPORT_MAP(X)
#undef X
    /* of rounds that were believed nothing is known */
    if (was.rounds <= was.unchecked || !(was.liars < r->liars || r->unchecked))
        sum->liars = r->liars;
    sum->size = sizeof *sum;
    sum->number = 0;
}
