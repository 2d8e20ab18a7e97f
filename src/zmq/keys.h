/* keys.h -- keys of CurveZMQ, as files and in memory. */
#ifndef KF_ZMQ_KEYS_H
#define KF_ZMQ_KEYS_H

#include <kofn/zmq.h>

#include "base/base.h"

#define KF_KEY 32                         /* bytes */
#define KF_KEY_TEXT 40                    /* characters of Z85 */
#define KF_KEY_LINE (7 + KF_KEY_TEXT + 1) /* "public " KEY "\n" */

typedef struct kf_key {
    char text[KF_KEY_TEXT + 1];
    unsigned char bits[KF_KEY];
} kf_key;

typedef struct kf_keys {
    kf_key *key; /* public ones */
    size_t count, cap;
    char secret[KF_KEY_TEXT + 1]; /* of key[0], or "" */
} kf_keys;

/* All add to k, which begins as {0} and ends with kf_keys_free, whatever the
 * answer.  A secret key belongs to the only public one. */
kofn_status kf_keys_parse(kf_keys *k, const char *text, size_t size,
                          const char *name);
kofn_status kf_keys_secret(kf_keys *k, const char *dir, const char *name);
kofn_status kf_keys_public(kf_keys *k, const char *dir, const char *name);
/* Every key of a list, or of the files *.public of a folder. */
kofn_status kf_keys_listed(kf_keys *k, const char *path);
bool kf_keys_have(const kf_keys *k, const void *bits);
void kf_keys_free(kf_keys *k);

#endif
