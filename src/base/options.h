/* options.h -- checks options and fills in their defaults. */
#ifndef KF_OPTIONS_H
#define KF_OPTIONS_H

#include <kofn.h>

/* The row of an option in the table of <kofn/options.h>. */
enum {
#define X(type, name, ...) KF_OPTION_##name,
    KOFN_OPTIONS_MAP(X)
#undef X
        KF_OPTIONS
};

/* Fails with KOFN_INVAL if the value at `at` is out of the range of option
 * i. */
kofn_status kf_option_check(size_t i, const void *at);
/* Checks the value of an option of any table in the same way. */
kofn_status kf_option_check_by(const kofn_option *w, const void *at);
/* Replaces a 0 that means a default by the default, and "never" by 0. */
void kf_option_settle_by(const kofn_option *w, void *at);
/* Checks all options of a job. */
kofn_status kf_options_check(const kofn_options *o);
/* Replaces each 0 that means a default by the default, and each "never" by
 * 0. */
void kf_options_settle(kofn_options *o);

#endif
