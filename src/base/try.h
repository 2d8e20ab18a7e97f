/* try.h -- the end of a function with the status of a call that has failed.
 *
 * A macro alone, for all floors. */
#ifndef KF_TRY_H
#define KF_TRY_H

#define TRY(call)                                                              \
    do {                                                                       \
        kofn_status try_status_ = (call);                                      \
        if (try_status_ < 0)                                                   \
            return try_status_;                                                \
    } while (0)

#endif
