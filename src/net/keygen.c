/* keygen.c -- makes keys: a secret key and its self-signed certificate.
 *
 * A file appears only when it is complete, and no file is overwritten. A secret
 * key is in memory only until it is written; that memory is wiped. */
#define _GNU_SOURCE /* mkostemp */
#include "keys.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_MOST 50
#define FOR_EVER "99991231235959Z" /* RFC 5280: no expiration date */

/* ---- files --------------------------------------------------------------- */

static kofn_status cannot(const char *path, int error)
{
    return kf_fail(KOFN_IO, "%s: %s%s", path, strerror(error),
                   error == EEXIST ? "; keys are never overwritten, name "
                                     "another folder"
                                   : "");
}

/* Gives the file its name, if that is free; returns 0 or an errno. */
static int put_there(const char *made, const char *path)
{
    struct stat s;

    if (link(made, path) == 0) {
        unlink(made);
        return 0;
    }
    if (errno == EEXIST || lstat(path, &s) == 0)
        return EEXIST;
    return rename(made, path) ? errno : 0; /* for file systems without links */
}

/* Writes a file; its name is the first part followed by `end`. */
static kofn_status write_file(const char *dir, const char *who, const char *end,
                              mode_t mode, BIO *from)
{
    char name[NAME_MOST + 8], path[KF_PATH], made[KF_PATH], *text;
    size_t n = (size_t)BIO_get_mem_data(from, &text);
    int fd, error = 0;

    snprintf(name, sizeof name, "%.*s%s", NAME_MOST, who, end);
    TRY(kf_keyfile_join(path, dir, name));
    TRY(kf_keyfile_join(made, dir, ".kofn-XXXXXX"));
    kf_low_begin();
    fd = kf_low_end(mkostemp(made, O_CLOEXEC));
    if (fd < 0)
        return cannot(path, errno);
    if (!kf_share_write(fd, text, n) || fchmod(fd, mode) || fsync(fd))
        error = errno;
    if (close(fd) && !error)
        error = errno;
    if (!error)
        error = put_there(made, path);
    if (error)
        unlink(made);
    return error ? cannot(path, error) : KOFN_OK;
}

static kofn_status is_free(const char *dir, const char *name,
                           const char *remedy)
{
    char path[KF_PATH];
    struct stat s;

    TRY(kf_keyfile_join(path, dir, name));
    return lstat(path, &s) ? KOFN_OK
                           : kf_fail(KOFN_IO,
                                     "%s is there already; keys are never "
                                     "overwritten, %s",
                                     path, remedy);
}

static kofn_status make_folder(const char *dir)
{
    return mkdir(dir, 0700) && errno != EEXIST
               ? kf_fail(KOFN_IO, "%s: %s", dir, strerror(errno))
               : KOFN_OK;
}

/* Makes sure that the files of the folder survive a crash. */
static kofn_status keep(const char *dir)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int bad = fd < 0 || fsync(fd);

    if (fd >= 0)
        close(fd);
    return bad ? kf_fail(KOFN_IO, "%s: %s", dir, strerror(errno)) : KOFN_OK;
}

static void drop(const char *dir, const char *name)
{
    char path[KF_PATH];

    if (!kf_keyfile_join(path, dir, name))
        unlink(path);
}

/* ---- certificates -------------------------------------------------------- */

/* Fills in and signs the certificate, which never expires. */
static bool describe(X509 *x, EVP_PKEY *key, const char *name)
{
    X509_NAME *of = X509_get_subject_name(x);
    BASIC_CONSTRAINTS *none = BASIC_CONSTRAINTS_new();
    uint64_t serial;
    bool good =
        none &&
        RAND_bytes_ex(kf_openssl_library(), (unsigned char *)&serial,
                      sizeof serial, 0) == 1 &&
        X509_set_version(x, X509_VERSION_3) &&
        ASN1_INTEGER_set_uint64(X509_get_serialNumber(x), serial) &&
        ASN1_TIME_set_string_X509(X509_getm_notBefore(x), "20000101000000Z") &&
        ASN1_TIME_set_string_X509(X509_getm_notAfter(x), FOR_EVER) &&
        X509_NAME_add_entry_by_txt(of, "CN", MBSTRING_ASC,
                                   (const unsigned char *)name, -1, -1, 0) &&
        X509_set_issuer_name(x, of) && X509_set_pubkey(x, key) &&
        X509_add1_ext_i2d(x, NID_basic_constraints, none, 1, 0) == 1 &&
        X509_sign(x, key, NULL) > 0;

    BASIC_CONSTRAINTS_free(none);
    return good;
}

/* Makes a key and its certificate as text, each with a first line that
 * describes it. */
static kofn_status make_pair(const char *name, const char *tell, BIO *secret,
                             BIO *open)
{
    EVP_PKEY *key = EVP_PKEY_Q_keygen(kf_openssl_library(), NULL, "ED25519");
    X509 *x = X509_new_ex(kf_openssl_library(), NULL);
    bool good =
        key && x && secret && open && describe(x, key, name) &&
        BIO_printf(secret, "# kofn %s, secret: %s\n", name, tell) > 0 &&
        BIO_printf(open, "# kofn %s, certificate, not secret\n", name) > 0 &&
        PEM_write_bio_PrivateKey_ex(secret, key, NULL, NULL, 0, NULL, NULL,
                                    kf_openssl_library(), NULL) &&
        PEM_write_bio_X509(open, x);

    X509_free(x);
    EVP_PKEY_free(key);
    return good ? KOFN_OK
                : kf_fail(KOFN_TRANSPORT, "no keys: %s", kf_openssl_words());
}

/* Writes a pair to `dir`: the second argument is the name of both files,
 * without .key and .crt, and the third is the name in the certificate. Also
 * writes the certificate to `list`, last of all, unless `list` is NULL. */
static kofn_status write_pair(const char *dir, const char *who,
                              const char *name, const char *tell,
                              const char *list)
{
    kf_errors errors;
    BIO *secret = BIO_new(BIO_s_mem()), *open = BIO_new(BIO_s_mem());
    kofn_status st;
    char file[16];

    kf_openssl_begin(&errors);
    st = make_pair(name, tell, secret, open);
    kf_openssl_end(&errors);
    if (!st)
        st = write_file(dir, who, ".key", 0600, secret);
    if (!st) {
        st = write_file(dir, who, ".crt", 0644, open);
        if (!st && list)
            st = keep(dir);
        if (!st && list)
            st = write_file(list, name, ".crt", 0644, open);
        snprintf(file, sizeof file, "%.11s.key", who);
        if (st)
            drop(dir, file);
    }
    BIO_free(secret); /* this wipes the memory of a BIO */
    BIO_free(open);
    return st;
}

/* ---- a pair -------------------------------------------------------------- */

static const char *const pair[] = {"coordinator.key", "worker.key",
                                   "coordinator.crt", "worker.crt"};

#define OF_COORDINATOR "stays where the coordinator runs"

static kofn_status make_common(const char *dir)
{
    kofn_status st;

    for (size_t i = 0; i < sizeof pair / sizeof *pair; i++)
        TRY(is_free(dir, pair[i], "name another folder"));
    TRY(write_pair(dir, "coordinator", "coordinator", OF_COORDINATOR, NULL));
    st = write_pair(dir, "worker", KF_COMMON, "give it to the workers only",
                    NULL);
    if (!st)
        return keep(dir);
    drop(dir, "coordinator.key"); /* all or none */
    drop(dir, "coordinator.crt");
    return st;
}

/* ---- a key for one worker ------------------------------------------------ */

static kofn_status check_name(const char *name)
{
    size_t n = strlen(name), i = 0;

    while (i < n && kf_keyfile_is_plain(name[i]))
        i++;
    if (n == 0 || i < n || n > NAME_MOST || strchr("._-", name[0]))
        return kf_fail(KOFN_INVAL,
                       "worker's name '%.60s': give 1 to %d letters, digits "
                       "and ._-, the first a letter or a digit",
                       name, NAME_MOST);
    if (strcmp(name, "coordinator") == 0 || strcmp(name, KF_COMMON) == 0)
        return kf_fail(KOFN_INVAL,
                       "%s is no name for a worker: %s.crt is made by keygen "
                       "without a name",
                       name, name);
    return KOFN_OK;
}

/* Writes a worker's key and certificate. The certificate is put into the list
 * last, when all else is there. */
static kofn_status write_worker(const char *dir, const char *name)
{
    char own[KF_PATH], path[KF_PATH];
    kofn_status st;
    BIO *text;

    TRY(kf_keyfile_join(own, dir, name));
    TRY(kf_keyfile_join(path, dir, "coordinator.crt"));
    TRY(kf_keyfile_text(path, false, &text));
    /* another process may be making that folder, so it is not removed */
    st = mkdir(own, 0700) ? cannot(own, errno) : KOFN_OK;
    if (st) {
        BIO_free(text);
        return st;
    }
    st = write_file(own, "coordinator", ".crt", 0644, text);
    BIO_free(text);
    if (!st)
        st =
            write_pair(own, "worker", name, "give it to this worker only", dir);
    if (st) {
        drop(own, "worker.crt");
        drop(own, "coordinator.crt");
        rmdir(own);
    }
    return st;
}

static kofn_status make_one(const char *dir, const char *name)
{
    char listed[NAME_MOST + 8], path[KF_PATH];

    snprintf(listed, sizeof listed, "%.*s.crt", NAME_MOST, name);
    TRY(is_free(dir, listed, "give another name"));
    TRY(is_free(dir, name, "give another name"));
    TRY(kf_keyfile_join(path, dir, "coordinator.key"));
    if (access(path, F_OK))
        TRY(write_pair(dir, "coordinator", "coordinator", OF_COORDINATOR,
                       NULL));
    TRY(write_worker(dir, name));
    return keep(dir);
}

/* Makes keys. A lock lets one process at a time make keys in a folder. Some
 * file systems have no locks; even there a name is used only once. */
kofn_status kofn_net_keygen(const char *dir, const char *name)
{
    kofn_status st;
    int fd;

    if (name)
        TRY(check_name(name));
    TRY(make_folder(dir));
    kf_low_begin();
    fd = kf_low_end(open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd < 0)
        return kf_fail(KOFN_IO, "%s: %s", dir, strerror(errno));
    (void)!TEMP_FAILURE_RETRY(flock(fd, LOCK_EX));
    st = name ? make_one(dir, name) : make_common(dir);
    close(fd);
    return st;
}
