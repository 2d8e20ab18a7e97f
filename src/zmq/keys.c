/* keys.c -- key files: made, read, believed only if they are kept well.
 *
 *     # kofn worker, secret: for this machine only
 *     public 4Fr8c...   (40 characters of Z85, ZeroMQ RFC 32)
 *     secret Tz9(e...
 *
 * Lines of comment, then keys; a list of those who may come has a line
 * "public" for each.  Nothing else is allowed in them, not even a blank.
 */
#include "keys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#define FILE_MAX ((size_t)1 << 20)
#define PATH 4096

/* ---- reading ------------------------------------------------------------- */

static bool is_z85(const char *p)
{
    static const char alphabet[] =
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
        ".-:+=^!/*?&<>()[]{}@%$#";

    for (size_t i = 0; i < KF_KEY_TEXT; i++)
        if (!p[i] || !strchr(alphabet, p[i]))
            return false;
    return true;
}

/* "WORD KEY\n" at p, of which n bytes are there. */
static bool is_line(const char *p, size_t n, const char *word)
{
    char key[KF_KEY_TEXT + 1] = "";
    unsigned char bits[KF_KEY];

    if (n < KF_KEY_LINE || memcmp(p, word, 6) != 0 || p[6] != ' ' ||
        p[KF_KEY_LINE - 1] != '\n' || !is_z85(p + 7))
        return false;
    memcpy(key, p + 7, KF_KEY_TEXT);
    /* Five characters can name more than 32 bits; those are no key. */
    return zmq_z85_decode(bits, key) != NULL;
}

static kofn_status add(kf_keys *k, const char *p)
{
    kf_key *key;

    TRY(kf_grow(&k->key, &k->cap, k->count, sizeof *k->key));
    key = &k->key[k->count++];
    memset(key, 0, sizeof *key);
    memcpy(key->text, p + 7, KF_KEY_TEXT);
    zmq_z85_decode(key->bits, key->text);
    return KOFN_OK;
}

kofn_status kf_keys_parse(kf_keys *k, const char *text, size_t size,
                          const char *name)
{
    const char *p = text, *end = text + size;
    size_t line = 1;

    for (; p < end && *p == '#'; line++) {
        const char *next = memchr(p, '\n', (size_t)(end - p));

        p = next ? next + 1 : end;
    }
    for (; p < end; p += KF_KEY_LINE, line++) {
        size_t left = (size_t)(end - p);

        if (is_line(p, left, "public")) {
            TRY(add(k, p));
        } else if (is_line(p, left, "secret") && k->count == 1 &&
                   !k->secret[0]) {
            memcpy(k->secret, p + 7, KF_KEY_TEXT);
        } else {
            return kf_fail(KOFN_FORMAT,
                           "%s: line %zu is no key: 'public' or "
                           "'secret', a blank and 40 characters; make keys "
                           "with kofn keygen",
                           name, line);
        }
    }
    if (k->count == 0)
        return kf_fail(KOFN_FORMAT,
                       "%s holds no key; make keys with kofn "
                       "keygen",
                       name);
    return KOFN_OK;
}

/* The file's text; its descriptor is closed. */
static kofn_status read_all(int fd, const char *path, char **out, size_t *size)
{
    char *text = kf_new(FILE_MAX, 1);
    kofn_status st = KOFN_OK;
    ssize_t n = 1;

    *size = 0;
    if (!text)
        st = KOFN_NOMEM;
    while (!st && *size < FILE_MAX && n > 0) {
        n = read(fd, text + *size, FILE_MAX - *size);
        if (n > 0)
            *size += (size_t)n;
        else if (n < 0)
            st = kf_fail(KOFN_IO, "%s: %s", path, strerror(errno));
    }
    if (!st && *size == FILE_MAX)
        st = kf_fail(KOFN_FORMAT, "%s: more than %zu bytes are no keys", path,
                     FILE_MAX);
    close(fd);
    if (st) {
        kf_free(text);
        return st;
    }
    *out = text;
    return KOFN_OK;
}

static const char *advice(int error)
{
    return error == ENOENT    ? "; make keys with kofn keygen"
           : error == ENOTDIR ? "; give the folder that kofn keygen made"
           : error == EACCES  ? "; keys are for their owner only"
                              : "";
}

static kofn_status read_file(kf_keys *k, const char *path, bool secret)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat s;
    kofn_status st;
    char *text = NULL;
    size_t size = 0;

    if (fd < 0 || fstat(fd, &s)) {
        int error = errno;

        if (fd >= 0)
            close(fd);
        return kf_fail(KOFN_IO, "%s: %s%s", path, strerror(error),
                       advice(error));
    }
    if (secret && (s.st_mode & 077)) {
        close(fd);
        return kf_fail(KOFN_INVAL,
                       "%s can be read by others (mode %03o): it "
                       "is no secret any more; make new keys, or chmod 600",
                       path, (unsigned)s.st_mode & 0777);
    }
    TRY(read_all(fd, path, &text, &size));
    st = kf_keys_parse(k, text, size, path);
    memset(text, 0, size);
    kf_free(text);
    return st;
}

static kofn_status join(char path[PATH], const char *dir, const char *name)
{
    if (snprintf(path, PATH, "%s/%s", dir, name) >= PATH)
        return kf_fail(KOFN_INVAL, "%.80s...: the path is too long", dir);
    return KOFN_OK;
}

kofn_status kf_keys_secret(kf_keys *k, const char *dir, const char *name)
{
    char path[PATH], public[KF_KEY_TEXT + 1];

    TRY(join(path, dir, name));
    TRY(read_file(k, path, true));
    if (!k->secret[0] || zmq_curve_public(public, k->secret) ||
        strcmp(public, k->key[0].text) != 0)
        return kf_fail(KOFN_FORMAT,
                       "%s: its secret key is missing or does not "
                       "belong to its public key; make keys with kofn keygen",
                       path);
    return KOFN_OK;
}

kofn_status kf_keys_public(kf_keys *k, const char *dir, const char *name)
{
    char path[PATH];

    TRY(join(path, dir, name));
    return read_file(k, path, false);
}

static bool ends_in_public(const char *name)
{
    size_t n = strlen(name);

    return name[0] != '.' && n > 7 && strcmp(name + n - 7, ".public") == 0;
}

kofn_status kf_keys_listed(kf_keys *k, const char *path)
{
    DIR *dir = opendir(path);
    kofn_status st = KOFN_OK;
    struct dirent *e;

    if (!dir && errno != ENOTDIR)
        return kf_fail(KOFN_IO, "%s: %s", path, strerror(errno));
    if (!dir)
        return read_file(k, path, false);
    while (!st && (e = readdir(dir)))
        if (ends_in_public(e->d_name))
            st = kf_keys_public(k, path, e->d_name);
    closedir(dir);
    if (!st && k->count == 0)
        st = kf_fail(KOFN_FORMAT,
                     "%s: nobody's key is in there: names end in "
                     ".public",
                     path);
    return st;
}

bool kf_keys_have(const kf_keys *k, const void *bits)
{
    for (size_t i = 0; i < k->count; i++)
        if (memcmp(k->key[i].bits, bits, KF_KEY) == 0)
            return true;
    return false;
}

void kf_keys_free(kf_keys *k)
{
    memset(k->secret, 0, sizeof k->secret);
    kf_free(k->key);
    k->key = NULL;
    k->count = k->cap = 0;
}

/* ---- making -------------------------------------------------------------- */

static kofn_status write_file(const char *path, mode_t mode, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    size_t n = strlen(text), at = 0;
    int error = 0;

    if (fd < 0)
        return kf_fail(KOFN_IO, "%s: %s%s", path, strerror(errno),
                       errno == EEXIST ? "; keys are never overwritten, name "
                                         "another folder"
                                       : "");
    while (at < n && !error) {
        ssize_t wrote = write(fd, text + at, n - at);

        if (wrote < 0)
            error = errno;
        else
            at += (size_t)wrote;
    }
    if (!error && fsync(fd))
        error = errno;
    if (close(fd) && !error)
        error = errno;
    if (error) {
        unlink(path);
        return kf_fail(KOFN_IO, "%s: %s", path, strerror(error));
    }
    return KOFN_OK;
}

static kofn_status write_pair(const char *dir, const char *who,
                              const char *tell)
{
    char public[KF_KEY_TEXT + 1], secret[KF_KEY_TEXT + 1];
    char path[PATH], name[32], text[256];
    kofn_status st;

    if (zmq_curve_keypair(public, secret))
        return kf_fail(KOFN_TRANSPORT, "no keys: %s", zmq_strerror(errno));
    snprintf(name, sizeof name, "%s.secret", who);
    st = join(path, dir, name);
    snprintf(text, sizeof text, "# kofn %s, secret: %s\npublic %s\nsecret %s\n",
             who, tell, public, secret);
    if (!st)
        st = write_file(path, 0600, text);
    memset(text, 0, sizeof text);
    memset(secret, 0, sizeof secret);
    TRY(st);
    snprintf(name, sizeof name, "%s.public", who);
    TRY(join(path, dir, name));
    snprintf(text, sizeof text,
             "# kofn %s, public: anybody may know it\n"
             "public %s\n",
             who, public);
    return write_file(path, 0644, text);
}

static kofn_status none_there(const char *dir)
{
    static const char *const names[] = {"coordinator.secret", "worker.secret",
                                        "coordinator.public", "worker.public"};
    char path[PATH];
    struct stat s;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        TRY(join(path, dir, names[i]));
        if (lstat(path, &s) == 0)
            return kf_fail(KOFN_IO,
                           "%s is there already; keys are never "
                           "overwritten, name another folder",
                           path);
    }
    return KOFN_OK;
}

kofn_status kofn_zmq_keygen(const char *dir)
{
    int fd, bad;

    if (mkdir(dir, 0700) && errno != EEXIST)
        return kf_fail(KOFN_IO, "%s: %s", dir, strerror(errno));
    TRY(none_there(dir));
    TRY(write_pair(dir, "coordinator", "stays where the coordinator runs"));
    TRY(write_pair(dir, "worker", "goes to the workers and nobody else"));
    fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bad = fd < 0 || fsync(fd);
    if (fd >= 0)
        close(fd);
    return bad ? kf_fail(KOFN_IO, "%s: %s", dir, strerror(errno)) : KOFN_OK;
}
