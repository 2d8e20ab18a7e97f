/* report.h -- what rounds were together. */
#ifndef KF_REPORT_H
#define KF_REPORT_H

#include <kofn.h>

/* Counts and times are added up, of floors and errors the worst is kept, of
 * `liars` the fewest; what is of one moment is that of `r`. */
void kf_report_add(kofn_report *sum, const kofn_report *r);

#endif
