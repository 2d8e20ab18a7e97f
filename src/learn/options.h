/* options.h -- checks the options of regressions and trainings, and fills in
 * their defaults. */
#ifndef KF_LEARN_OPTIONS_H
#define KF_LEARN_OPTIONS_H

#include <kofn.h>

/* Checks the options of this table in the struct *o, and replaces each 0 that
 * means a default by the default.  Fails with KOFN_INVAL if one is out of
 * range. */
kofn_status kf_learn_settle(kofn_option_table table, void *o);

#endif
