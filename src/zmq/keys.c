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

/* Of a secret nothing is left in memory, also where a compiler sees that nobody
 * reads it any more. */
static void wipe(void *secret, size_t n)
{
    volatile unsigned char *p = secret;

    while (n > 0)
        p[--n] = 0;
}

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

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
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

/* Whose the keys from `first` on are is told by the name of their file; what
 * is odd in it is not for a terminal. */
static void name_them(kf_keys *k, size_t first, const char *path)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t n = strlen(base) - (kf_keys_is_public(base) ? 7 : 0);

    n = kf_min(n, KF_KEY_NAME - 12);
    for (size_t i = first; i < k->count; i++) {
        char *name = k->key[i].name;

        snprintf(name, KF_KEY_NAME, "%.*s", (int)n, base);
        for (char *c = name; *c; c++)
            if (!is_plain(*c))
                *c = '_';
        if (i > first)
            snprintf(name + n, KF_KEY_NAME - n, "#%zu", i - first + 1);
    }
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

static bool is_our_group(gid_t group)
{
    int n = getgroups(0, NULL), i = 0;
    gid_t *list = n > 0 ? kf_new((size_t)n, sizeof *list) : NULL;
    bool found = group == getegid();

    n = list ? getgroups(n, list) : 0;
    while (!found && i < n)
        found = list[i++] == group;
    kf_free(list);
    return found;
}

/* What is wrong with how it is kept, or NULL.  Kubernetes and systemd hand a
 * secret to a process by one of its groups. */
static const char *exposed(const struct stat *s)
{
    if (s->st_mode & 07)
        return "is open to everybody";
    if (s->st_mode & 030)
        return "can be changed or run by its group";
    if (!(s->st_mode & 040))
        return NULL;
    if (s->st_uid != 0 && s->st_uid != geteuid())
        return "can be read by its group, and is neither root's nor this "
               "user's";
    return is_our_group(s->st_gid)
               ? NULL
               : "can be read by its group, which is none of this process's";
}

static kofn_status check_kept(const char *path, const struct stat *s)
{
    const char *what = exposed(s);

    return what ? kf_fail(KOFN_INVAL,
                          "%s %s (mode %03o): it is no secret any more; make "
                          "new keys, or chmod 600 %s",
                          path, what, (unsigned)s->st_mode & 0777, path)
                : KOFN_OK;
}

static kofn_status read_file(kf_keys *k, const char *path, bool secret)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat s;
    kofn_status st;
    char *text = NULL;
    size_t size = 0, had = k->count;

    if (fd < 0 || fstat(fd, &s)) {
        int error = errno;

        if (fd >= 0)
            close(fd);
        return kf_fail(KOFN_IO, "%s: %s%s", path, strerror(error),
                       advice(error));
    }
    st = secret ? check_kept(path, &s) : KOFN_OK;
    if (st) {
        close(fd);
        return st;
    }
    TRY(read_all(fd, path, &text, &size));
    st = kf_keys_parse(k, text, size, path);
    wipe(text, size);
    kf_free(text);
    name_them(k, had, path);
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

bool kf_keys_is_public(const char *name)
{
    size_t n = strlen(name);

    return name[0] != '.' && n > 7 && strcmp(name + n - 7, ".public") == 0;
}

/* One file of a list. */
static kofn_status add_listed(kf_keys *k, const char *dir, const char *name,
                              bool strict)
{
    size_t had = k->count;
    kofn_status st = kf_keys_public(k, dir, name);
    char path[PATH];

    if (!st || strict)
        return st;
    k->count = had;
    return st == KOFN_FORMAT || (!join(path, dir, name) && access(path, F_OK))
               ? KOFN_OK
               : st;
}

kofn_status kf_keys_listed(kf_keys *k, const char *path, bool strict)
{
    DIR *dir = opendir(path);
    kofn_status st = KOFN_OK;
    struct dirent *e;

    if (!dir && errno != ENOTDIR)
        return kf_fail(KOFN_IO, "%s: %s", path, strerror(errno));
    if (!dir)
        return read_file(k, path, false);
    while (!st && (e = readdir(dir)))
        if (kf_keys_is_public(e->d_name) &&
            strcmp(e->d_name, "coordinator.public") != 0)
            st = add_listed(k, path, e->d_name, strict);
    closedir(dir);
    if (!st && k->count == 0 && strict)
        st = kf_fail(KOFN_FORMAT,
                     "%s: nobody's key is in there: names end in "
                     ".public",
                     path);
    return st;
}

const kf_key *kf_keys_find(const kf_keys *k, const void *bits)
{
    for (size_t i = 0; i < k->count; i++)
        if (memcmp(k->key[i].bits, bits, KF_KEY) == 0)
            return &k->key[i];
    return NULL;
}

void kf_keys_free(kf_keys *k)
{
    wipe(k->secret, sizeof k->secret);
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

static kofn_status write_text(const char *dir, const char *name, mode_t mode,
                              const char *text)
{
    char path[PATH];

    TRY(join(path, dir, name));
    return write_file(path, mode, text);
}

static kofn_status write_public(const char *dir, const char *who,
                                const char *public)
{
    char name[KF_KEY_NAME + 8], text[256];

    snprintf(name, sizeof name, "%s.public", who);
    snprintf(text, sizeof text,
             "# kofn %s, public: anybody may know it\n"
             "public %s\n",
             who, public);
    return write_text(dir, name, 0644, text);
}

/* What is given is who's; `public` is for whoever lists it. */
static kofn_status write_secret(const char *dir, const char *who,
                                const char *tell, char public[KF_KEY_TEXT + 1])
{
    char secret[KF_KEY_TEXT + 1], name[32], text[256];
    kofn_status st;

    if (zmq_curve_keypair(public, secret))
        return kf_fail(KOFN_TRANSPORT, "no keys: %s", zmq_strerror(errno));
    snprintf(name, sizeof name, "%s.secret", who);
    snprintf(text, sizeof text, "# kofn %s, secret: %s\npublic %s\nsecret %s\n",
             who, tell, public, secret);
    st = write_text(dir, name, 0600, text);
    wipe(text, sizeof text);
    wipe(secret, sizeof secret);
    return st;
}

static kofn_status write_pair(const char *dir, const char *who,
                              const char *tell)
{
    char public[KF_KEY_TEXT + 1];

    TRY(write_secret(dir, who, tell, public));
    return write_public(dir, who, public);
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

static kofn_status make_folder(const char *dir)
{
    return mkdir(dir, 0700) && errno != EEXIST
               ? kf_fail(KOFN_IO, "%s: %s", dir, strerror(errno))
               : KOFN_OK;
}

/* Its files are there, also after a crash. */
static kofn_status keep(const char *dir)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int bad = fd < 0 || fsync(fd);

    if (fd >= 0)
        close(fd);
    return bad ? kf_fail(KOFN_IO, "%s: %s", dir, strerror(errno)) : KOFN_OK;
}

#define OF_COORDINATOR "stays where the coordinator runs"
#define OF_WORKER "goes to the workers and nobody else"

kofn_status kofn_zmq_keygen(const char *dir)
{
    TRY(make_folder(dir));
    TRY(none_there(dir));
    TRY(write_pair(dir, "coordinator", OF_COORDINATOR));
    TRY(write_pair(dir, "worker", OF_WORKER));
    return keep(dir);
}

/* ---- a key for one ------------------------------------------------------- */

static kofn_status check_name(const char *name)
{
    size_t n = strlen(name), i = 0;

    while (i < n && is_plain(name[i]))
        i++;
    if (n == 0 || i < n || n > KF_KEY_NAME - 14 || strchr("._-", name[0]))
        return kf_fail(KOFN_INVAL,
                       "worker's name '%.60s': give 1 to %d letters, digits "
                       "and ._-, the first a letter or a digit",
                       name, KF_KEY_NAME - 14);
    if (strcmp(name, "coordinator") == 0 || strcmp(name, "worker") == 0)
        return kf_fail(KOFN_INVAL,
                       "%s is no name for a worker: %s.public is "
                       "made by keygen without a name",
                       name, name);
    return KOFN_OK;
}

static kofn_status is_free(const char *dir, const char *name)
{
    char path[PATH];
    struct stat s;

    TRY(join(path, dir, name));
    return lstat(path, &s) ? KOFN_OK
                           : kf_fail(KOFN_IO,
                                     "%s is there already; keys are never "
                                     "overwritten, give another name",
                                     path);
}

/* It is listed last, when all of it is there. */
static kofn_status write_worker(const char *dir, const char *name)
{
    char own[PATH], public[KF_KEY_TEXT + 1], text[256];
    kf_keys head = {0};
    kofn_status st;

    TRY(join(own, dir, name));
    TRY(make_folder(own));
    st = kf_keys_public(&head, dir, "coordinator.public");
    if (!st)
        snprintf(text, sizeof text, "# kofn coordinator, public\npublic %s\n",
                 head.key[0].text);
    kf_keys_free(&head);
    TRY(st);
    TRY(write_text(own, "coordinator.public", 0644, text));
    TRY(write_secret(own, "worker", "goes to this worker and nobody else",
                     public));
    TRY(keep(own));
    return write_public(dir, name, public);
}

kofn_status kofn_zmq_keygen_worker(const char *dir, const char *name)
{
    char listed[KF_KEY_NAME + 8], path[PATH];

    TRY(check_name(name));
    snprintf(listed, sizeof listed, "%s.public", name);
    TRY(make_folder(dir));
    TRY(is_free(dir, listed));
    TRY(is_free(dir, name));
    TRY(join(path, dir, "coordinator.secret"));
    if (access(path, F_OK))
        TRY(write_pair(dir, "coordinator", OF_COORDINATOR));
    TRY(write_worker(dir, name));
    return keep(dir);
}
