/* out.h -- writing a file that is there whole or not at all.
 *
 * A kf_out is a struct of the caller's, opened and closed once; when it is not
 * closed well the old file stays. */
#ifndef KF_OUT_H
#define KF_OUT_H

#include "base/base.h"

/* A file under a temporary name that takes its real name when it is whole. */
typedef struct kf_out {
    int fd;
    bool made;  /* temp exists */
    bool loose; /* to be seen whole, but not to survive a crash: not forced to
                   disk; the user sets it */
    char *path, *temp;
    size_t folder; /* length of the folder's name in front of temp */
    unsigned char *buffer;
    size_t used;
} kf_out;

kofn_status kf_out_open(kf_out *o, const char *path);
kofn_status kf_out_put(kf_out *o, const void *bytes, size_t n);
kofn_status kf_out_text(kf_out *o, const char *fmt, ...) KF_PRINTF(2, 3);
/* Closes in any case: `st` is what writing gave.  When that and everything
 * here succeeds the file has its name, else nothing has changed. */
kofn_status kf_out_close(kf_out *o, kofn_status st);

#endif
