/* pack.h -- writing compressed bytes as text into a file.
 *
 * A kf_pack is a struct of the caller's, opened and closed once. */
#ifndef KF_PACK_H
#define KF_PACK_H

#include "out.h"

typedef struct kf_pack {
    kf_out *out;  /* borrowed */
    void *stream; /* zlib's */
    unsigned char *bytes;
    unsigned char rest[3]; /* bytes that wait for two others */
    size_t rests;
} kf_pack;

/* Begins a stream of zlib (RFC 1950), written to *out in base64. */
kofn_status kf_pack_open(kf_pack *p, kf_out *out);
kofn_status kf_pack_put(kf_pack *p, const void *bytes, size_t n);
/* Closes in any case: `st` is what writing gave.  Ends the stream if that is
 * KOFN_OK. */
kofn_status kf_pack_close(kf_pack *p, kofn_status st);

#endif
