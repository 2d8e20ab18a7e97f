/* keys.h -- certificates and secret keys, as files and in memory.
 *
 * The transport owns its keys and frees them. The text of a secret key is in
 * the memory of a BIO. It is wiped when the BIO is freed, as soon as OpenSSL
 * has the key. */
#ifndef KF_NET_KEYS_H
#define KF_NET_KEYS_H

#include "inside.h"

#include <openssl/ssl.h>

#define KF_PATH 4096
#define KF_COMMON "worker" /* the name of a key that many processes share */

/* A certificate and its name. */
typedef struct kf_card {
    X509 *x;
    char name[KF_NAME];
} kf_card;

typedef struct kf_cards {
    kf_card *card;
    size_t count, cap;
} kf_cards;

/* The files of a CA: its certificates, our certificate and our secret key. */
enum { KF_FILE_CA, KF_FILE_CERT, KF_FILE_KEY, KF_FILES };

typedef struct kf_keys {
    SSL_CTX *context;
    kf_cards server; /* the key expected at the other end of a dial */
    /* `server` is empty: each node of a mesh has its own key */
    bool by_name;
    kf_cards listed;
    kf_cards
        revoked; /* keys that were listed, so that they are known by name */
    char *allow; /* NULL: none may connect; with a CA, any that it certifies */
    uint64_t stamp;
    bool ca;
    char *file[KF_FILES];  /* files of a CA, if `ca`; `stamp` is their state */
    char trouble[320];     /* error of the last renewal; "": none */
    const char *effect;    /* the consequence of `trouble` */
    bool lasts;            /* `trouble` was found at two checks in a row */
    kofn_time reported_at; /* when it was last reported; 0: never */
} kf_keys;

/* ---- openssl.c ----------------------------------------------------------- */

/* Returns the library context that is used here, separate from the program's
 * own. */
OSSL_LIB_CTX *kf_openssl_library(void);
#define KF_ERRORS 16 /* errors that OpenSSL keeps for a thread */

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

/* Around calls of OpenSSL: _begin saves the program's errors and empties the
 * queue, _end restores them. */
void kf_openssl_begin(kf_errors *e);
void kf_openssl_end(const kf_errors *e);
/* Returns the last error since kf_openssl_begin, or 0. */
unsigned long kf_openssl_error(void);
/* Returns OpenSSL's text of that error. */
const char *kf_openssl_words(void);
/* Used as a password, so that OpenSSL does not ask for one. */
#define KF_NO_PASSWORD ((void *)(uintptr_t) "")

/* ---- keyfile.c ----------------------------------------------------------- */

/* Fails because a file of keys cannot be opened. */
kofn_status kf_keyfile_cannot(const char *path, int error);
kofn_status kf_keyfile_join(char path[KF_PATH], const char *dir,
                            const char *name);
/* Reads the text of a file. Refuses a secret one that other users may
 * access. */
kofn_status kf_keyfile_text(const char *path, bool secret, BIO **text);
bool kf_keyfile_is_plain(char c);
/* Adds every certificate of a file. Its name is that of the file. many: its
 * name is its CN, if that is usable. */
kofn_status kf_keyfile_read(kf_cards *to, const char *path, bool many);
/* kf_keyfile_next returns the next certificate of a text, or NULL. Afterwards
 * kf_keyfile_ends is true if the text ended there. Both only after
 * kf_openssl_begin. */
X509 *kf_keyfile_next(BIO *from);
bool kf_keyfile_ends(void);
void kf_cards_free(kf_cards *c);
/* Return the first card that is this certificate, or has this name, or NULL. */
const kf_card *kf_cards_find(const kf_cards *c, const X509 *x);
const kf_card *kf_cards_named(const kf_cards *c, const char *name);
/* Copies its CN; false if that is not printable and without spaces. */
bool kf_card_common_name(const X509 *x, char name[KF_NAME]);
/* Copies its first DNS name or URI, or its CN if it has neither. */
bool kf_card_name(const X509 *x, char name[KF_NAME]);

/* ---- list.c -------------------------------------------------------------- */

/* Adds every certificate of a file, or of the files *.crt of a folder. The
 * coordinator's own file in the folder is left out. strict: fails if a file of
 * the folder, or the whole folder, holds none. Otherwise such a file is
 * ignored. A list that is a single file must hold one. */
kofn_status kf_list_read(kf_cards *to, const char *path, bool strict);
/* True if there is no such file or folder any more. */
bool kf_list_is_gone(const char *path);
/* Returns a number that changes with the files; 0: they may change without a
 * change of it. */
uint64_t kf_list_stamp(const char *path);

/* ---- keys.c -------------------------------------------------------------- */

/* True if the certificate may be that of the link's other end; writes its
 * name. */
bool kf_keys_know(const kf_link *l, const X509 *x, char name[KF_NAME]);
/* Writes the date from which the certificate is valid, or "" if it is already.
 */
void kf_keys_begins(const X509 *x, char date[KF_DATE]);

#endif
