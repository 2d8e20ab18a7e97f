/* keyfile.c -- files of keys and certificates: reading, checks of permissions,
 * and names of certificates.
 *
 * A secret key and a certificate are separate files, in PEM.
 *
 * Owns nothing: the text belongs to the caller, which wipes secret ones. A
 * secret file that others may read is refused. */
#define _GNU_SOURCE /* group_member */
#include "keys.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX ((off_t)16 << 20)

/* ---- files --------------------------------------------------------------- */

kofn_status kf_keyfile_join(char path[KF_PATH], const char *dir,
                            const char *name)
{
    if (snprintf(path, KF_PATH, "%s/%s", dir, name) >= KF_PATH)
        return kf_fail(KOFN_INVAL, "%.80s...: the path is too long", dir);
    return KOFN_OK;
}

kofn_status kf_keyfile_cannot(const char *path, int error)
{
    return kf_fail(KOFN_IO, "%s: %s%s", path, strerror(error),
                   error == ENOENT ? "; make keys with kofn keygen"
                   : error == ENOTDIR
                       ? "; give the folder that kofn keygen made"
                   : error == EACCES ? "; keys are for their owner only"
                                     : "");
}

/* Returns the fault in the permissions of a secret file, or NULL. Kubernetes
 * and systemd pass a secret to a process by one of its groups. If root owns the
 * file, root decides. */
static const char *exposed(const struct stat *s)
{
    if (s->st_mode & 07)
        return "is open to everybody";
    if (s->st_mode & 030)
        return "can be changed or run by its group";
    if (!(s->st_mode & 040) || s->st_uid == 0)
        return NULL;
    if (s->st_uid != geteuid())
        return "can be read by its group, and is neither root's nor this "
               "user's";
    return group_member(s->st_gid)
               ? NULL
               : "can be read by its group, which is none of this process's";
}

/* Reads the file, at most the size that it had when it was checked. */
static kofn_status read_all(int fd, const char *path, off_t left, BIO *to)
{
    kofn_status st = KOFN_OK;
    char some[4096];
    ssize_t n = 1;

    while (!st && n > 0) {
        n = read(fd, some, sizeof some);
        left -= n;
        if (n < 0)
            st = kf_fail(KOFN_IO, "%s: %s", path, strerror(errno));
        else if (left < 0)
            st = kf_fail(KOFN_IO, "%s: it changes", path);
        else if (BIO_write(to, some, (int)n) != n)
            st = KOFN_NOMEM;
    }
    OPENSSL_cleanse(some, sizeof some);
    return st;
}

kofn_status kf_keyfile_text(const char *path, bool secret, BIO **text)
{
    kofn_status st = KOFN_OK;
    const char *what;
    struct stat s;
    int fd;

    *text = NULL;
    kf_low_begin();
    fd = kf_low_end(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (fd < 0)
        return kf_keyfile_cannot(path, errno);
    if (fstat(fd, &s))
        st = kf_fail(KOFN_IO, "%s: %s", path, strerror(errno));
    else if (!S_ISREG(s.st_mode))
        st = kf_fail(KOFN_FORMAT,
                     "%s is no regular file; keys and certificates are read "
                     "from regular files",
                     path);
    else if (s.st_size > FILE_MAX)
        st = kf_fail(KOFN_FORMAT,
                     "%s has %lld bytes; files of keys have %lld at most", path,
                     (long long)s.st_size, (long long)FILE_MAX);
    else if (secret && (what = exposed(&s)))
        st = kf_fail(KOFN_INVAL,
                     "%s %s (mode %03o): it is no secret any more; make new "
                     "keys, or chmod 600 %s",
                     path, what, (unsigned)s.st_mode & 0777, path);
    if (!st && !(*text = BIO_new(BIO_s_mem())))
        st = KOFN_NOMEM;
    if (!st)
        st = read_all(fd, path, s.st_size, *text);
    close(fd);
    if (st) {
        BIO_free(*text);
        *text = NULL;
    }
    return st;
}

/* ---- names --------------------------------------------------------------- */

bool kf_keyfile_is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

/* Copies a name that is printable and has no spaces; false if it is empty, too
 * long or has other characters. */
static bool copy_name(const ASN1_STRING *s, char name[KF_NAME])
{
    int n = s ? ASN1_STRING_length(s) : 0;
    const unsigned char *p = s ? ASN1_STRING_get0_data(s) : NULL;

    if (n <= 0 || n >= KF_NAME)
        return false;
    for (int i = 0; i < n; i++)
        if (p[i] <= ' ' || p[i] > '~')
            return false;
    memcpy(name, p, (size_t)n);
    name[n] = '\0';
    return true;
}

bool kf_card_common_name(const X509 *x, char name[KF_NAME])
{
    const X509_NAME *of = X509_get_subject_name(x);
    int i = X509_NAME_get_index_by_NID(of, NID_commonName, -1);

    return i >= 0 &&
           copy_name(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(of, i)),
                     name);
}

bool kf_card_name(const X509 *x, char name[KF_NAME])
{
    GENERAL_NAMES *all = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
    bool named = false, found = false;

    for (int i = 0; i < sk_GENERAL_NAME_num(all) && !named; i++) {
        const GENERAL_NAME *g = sk_GENERAL_NAME_value(all, i);

        named = g->type == GEN_DNS || g->type == GEN_URI;
        if (named)
            found = copy_name(g->d.ia5, name);
    }
    GENERAL_NAMES_free(all);
    return named ? found : kf_card_common_name(x, name);
}

/* ---- certificates -------------------------------------------------------- */

void kf_cards_free(kf_cards *c)
{
    for (size_t i = 0; i < c->count; i++)
        X509_free(c->card[i].x);
    kf_free(c->card);
    *c = (kf_cards){0};
}

const kf_card *kf_cards_named(const kf_cards *c, const char *name)
{
    for (size_t i = 0; i < c->count; i++)
        if (strcmp(c->card[i].name, name) == 0)
            return &c->card[i];
    return NULL;
}

const kf_card *kf_cards_find(const kf_cards *c, const X509 *x)
{
    for (size_t i = 0; i < c->count; i++)
        if (X509_cmp(c->card[i].x, x) == 0)
            return &c->card[i];
    return NULL;
}

/* Makes a name from the name of the file; unusual characters become '_'. */
static void file_name(const char *path, char name[KF_NAME])
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t n = strlen(base),
           end = n > 4 && !strcmp(base + n - 4, ".crt") ? 4 : 0;

    snprintf(name, KF_NAME, "%.*s", (int)kf_min(n - end, KF_NAME - 32), base);
    for (char *c = name; *c; c++)
        if (!kf_keyfile_is_plain(*c))
            *c = '_';
}

/* Adds a certificate and takes it over, unless it fails. If the name exists
 * already, a number is appended. */
static kofn_status add(kf_cards *to, X509 *x, const char *path, bool many)
{
    kf_card *card;
    size_t n;

    TRY(kf_grow(&to->card, &to->cap, to->count, sizeof *to->card));
    card = &to->card[to->count];
    card->x = x;
    if (!many || !kf_card_common_name(x, card->name))
        file_name(path, card->name);
    n = kf_min(strlen(card->name), KF_NAME - 32);
    if (kf_cards_named(to, card->name))
        snprintf(card->name + n, KF_NAME - n, "#%zu", to->count + 1);
    to->count++;
    return KOFN_OK;
}

X509 *kf_keyfile_next(BIO *from)
{
    X509 *x = X509_new_ex(kf_openssl_library(), NULL);

    if (x && PEM_read_bio_X509(from, &x, NULL, KF_NO_PASSWORD))
        return x;
    X509_free(x);
    return NULL;
}

bool kf_keyfile_ends(void)
{
    unsigned long e = kf_openssl_error();

    return ERR_GET_LIB(e) == ERR_LIB_PEM &&
           ERR_GET_REASON(e) == PEM_R_NO_START_LINE;
}

kofn_status kf_keyfile_read(kf_cards *to, const char *path, bool many)
{
    kf_errors errors;
    size_t had = to->count;
    kofn_status st = KOFN_OK;
    BIO *from;
    X509 *x;

    TRY(kf_keyfile_text(path, false, &from));
    kf_openssl_begin(&errors);
    while (!st && (x = kf_keyfile_next(from))) {
        st = add(to, x, path, many);
        if (st)
            X509_free(x);
    }
    if (!st && (to->count == had || !kf_keyfile_ends()))
        st = kf_fail(KOFN_FORMAT,
                     "%s holds no certificate; make keys with kofn keygen",
                     path);
    kf_openssl_end(&errors);
    BIO_free(from);
    return st;
}
