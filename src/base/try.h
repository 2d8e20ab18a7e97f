/* try.h -- returns from a function with the status of a call that did not
 * succeed.
 *
 * Macros alone, for all floors. */
#ifndef KF_TRY_H
#define KF_TRY_H

/* Returns any status but KOFN_OK.  A status above 0 (KOFN_AGAIN, KOFN_PARTIAL)
 * returns too, because the call may have left its results unset.  A caller that
 * continues after such a status keeps it and compares it. */
#define TRY(call)                                                              \
    do {                                                                       \
        kofn_status try_status_ = (call);                                      \
        if (try_status_ != KOFN_OK)                                            \
            return try_status_;                                                \
    } while (0)

#endif
