/* keys.h -- certificates and secret keys, as files and in memory.
 *
 * Keys are the transport's and freed with it.  The text of a secret key is in memory
 * of a BIO, which is wiped when that is freed, as soon as OpenSSL has the key. */
#ifndef KF_NET_KEYS_H
#define KF_NET_KEYS_H

#include "inside.h"

#include <openssl/ssl.h>

#define KF_PATH 4096
#define KF_COMMON "worker" /* the name of a key that many share */

/* A certificate, and what it is called. */
typedef struct kf_card {
    X509 *x;
    char name[KF_NAME];
} kf_card;

typedef struct kf_cards {
    kf_card *card;
    size_t count, cap;
} kf_cards;

/* The files of a CA: its certificates, ours, and our secret key. */
enum { KF_FILE_CA, KF_FILE_CERT, KF_FILE_KEY, KF_FILES };

typedef struct kf_keys {
    SSL_CTX *context;
    kf_cards server; /* whose is expected of those who are reached ...     */
    bool by_name;    /* ... but of a mesh whose nodes have their own: none */
    kf_cards listed;
    char *allow; /* NULL: nobody comes, or whoever has one of the CA */
    uint64_t stamp;
    bool ca;
    char *file[KF_FILES]; /* of a CA; the stamp is theirs                  */
    char trouble[320];    /* with what is to be read now; "": none         */
    const char *effect;   /* what follows of the trouble                   */
    bool lasts;           /* the trouble: at two looks                     */
    kofn_time told_at;    /* when it was news last; 0: it was not          */
} kf_keys;

/* ---- openssl.c ----------------------------------------------------------- */

/* The library context that OpenSSL works with here, apart from the program's
 * own. */
OSSL_LIB_CTX *kf_openssl_library(void);
#define KF_ERRORS 16 /* that OpenSSL keeps for a thread */

/* An error in a thread's queue. */
typedef struct kf_error {
    unsigned long code;
    int line;
    char file[80], function[80], data[160];
} kf_error;

typedef struct kf_errors {
    size_t count;
    kf_error of[KF_ERRORS];
} kf_errors;

/* Around calls of OpenSSL: they begin with an empty queue, and afterwards the program's
 * errors are in it again. */
void kf_openssl_begin(kf_errors *e);
void kf_openssl_end(const kf_errors *e);
/* Returns the last error since kf_openssl_begin, or 0. */
unsigned long kf_openssl_error(void);
/* Returns the words of OpenSSL for that error. */
const char *kf_openssl_words(void);
/* In place of a password, for which nobody is asked. */
#define KF_NO_PASSWORD ((void *)(uintptr_t) "")

/* ---- keyfile.c ----------------------------------------------------------- */

/* A file of keys cannot be opened. */
kofn_status kf_keyfile_cannot(const char *path, int error);
kofn_status kf_keyfile_join(char path[KF_PATH], const char *dir,
                            const char *name);
/* The text of a file; a secret one must be kept well. */
kofn_status kf_keyfile_text(const char *path, bool secret, BIO **text);
bool kf_keyfile_is_plain(char c);
/* Adds every certificate of a file; they are called as it is, or, where many are
 * in one file, as they call themselves. */
kofn_status kf_keyfile_read(kf_cards *to, const char *path, bool many);
/* Returns the next certificate of a text, or NULL; and then, does the text end there?
 * After kf_openssl_begin. */
X509 *kf_keyfile_next(BIO *from);
bool kf_keyfile_ends(void);
void kf_cards_free(kf_cards *c);
/* The first that is this certificate, or is called so, or NULL. */
const kf_card *kf_cards_find(const kf_cards *c, const X509 *x);
const kf_card *kf_cards_named(const kf_cards *c, const char *name);
/* Its CN, if that can be told from all others when it is shown. */
bool kf_card_common_name(const X509 *x, char name[KF_NAME]);
/* Its first DNS name or URI, and where there is none the CN. */
bool kf_card_name(const X509 *x, char name[KF_NAME]);

/* ---- list.c -------------------------------------------------------------- */

/* Every certificate of a file, or of the files *.crt of a folder but for the
 * coordinator's own.  Unless `strict`, what holds none counts for nothing, and
 * there may be none. */
kofn_status kf_list_read(kf_cards *to, const char *path, bool strict);
/* Is there no such file or folder any more? */
bool kf_list_is_gone(const char *path);
/* A number that changes with the files; 0: they may change without that. */
uint64_t kf_list_stamp(const char *path);

/* ---- keys.c -------------------------------------------------------------- */

/* Is this the certificate of somebody who may be at the other end of the link, and
 * whose? */
bool kf_keys_know(const kf_link *l, const X509 *x, char name[KF_NAME]);

#endif
