/* keys.h -- keys of CurveZMQ, as files and in memory. */
#ifndef KF_ZMQ_KEYS_H
#define KF_ZMQ_KEYS_H

#include <kofn/zmq.h>

#include "base/base.h"

#define KF_KEY 32      /* bytes */
#define KF_KEY_TEXT 40 /* characters of Z85 */
#define KF_KEY_NAME 64
#define KF_COMMON "worker" /* the name of a key that many share */
#define KF_KEY_LINE (7 + KF_KEY_TEXT + 1) /* "public " KEY "\n" */

typedef struct kf_key {
    char text[KF_KEY_TEXT + 1];
    unsigned char bits[KF_KEY];
    char name[KF_KEY_NAME]; /* whose it is: of its file, without .public */
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
/* Every key of a list, or of the files *.public of a folder but for the
 * coordinator's own.  Unless `strict`, what holds no key counts for nothing and
 * there may be none. */
kofn_status kf_keys_listed(kf_keys *k, const char *path, bool strict);
bool kf_keys_is_public(const char *name);
/* NULL: it is not there. */
const kf_key *kf_keys_find(const kf_keys *k, const void *bits);
void kf_keys_free(kf_keys *k);

/* ---- list.c: whose keys come in ------------------------------------------ */

/* Used by the gate's thread, which looks, and by the transport's. */
typedef struct kf_list kf_list;

kofn_status kf_list_open(kf_list **out, const char *path);
/* Reads it again if it has changed; true if so. */
bool kf_list_look(kf_list *l);
/* Has it since the last call? */
bool kf_list_changed(kf_list *l);
/* Is this key listed, and whose is it?  name may be NULL. */
bool kf_list_find(kf_list *l, const void *bits, char name[KF_KEY_NAME]);
/* The key of that name; false: there is none. */
bool kf_list_key(kf_list *l, const char *name, kf_key *out);
size_t kf_list_count(kf_list *l);
void kf_list_free(kf_list *l);

#endif
