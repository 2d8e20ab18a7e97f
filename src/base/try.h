/* try.h -- the end of a function with the status of a call that has failed.
 *
 * Macros alone, for all floors. */
#ifndef KF_TRY_H
#define KF_TRY_H

#define TRY(call)                                                              \
    do {                                                                       \
        kofn_status try_status_ = (call);                                      \
        if (try_status_ < 0)                                                   \
            return try_status_;                                                \
    } while (0)

/* As TRY, of what may also have been stopped (KOFN_AGAIN). */
#define TRY_UNSTOPPED(call)                                                    \
    do {                                                                       \
        kofn_status unstopped_status_ = (call);                                \
        if (unstopped_status_)                                                 \
            return unstopped_status_;                                          \
    } while (0)

#endif
