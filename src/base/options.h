/* options.h -- a job's options checked, and their defaults filled in. */
#ifndef KF_OPTIONS_H
#define KF_OPTIONS_H

#include <kofn.h>

/* Where an option is in the table of <kofn/options.h>. */
enum {
#define X(type, name, ...) KF_OPTION_##name,
    KOFN_OPTIONS_MAP(X)
#undef X
        KF_OPTIONS
};

/* Of one option, as it is stored at `at`: KOFN_INVAL where it may not be that. */
kofn_status kf_option_check(size_t i, const void *at);
/* Of all. */
kofn_status kf_options_check(const kofn_options *o);
/* Where 0 stands for something that is put there, and 0 where it is never. */
void kf_options_settle(kofn_options *o);

#endif
