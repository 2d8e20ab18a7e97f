/* store.c -- writes sets of files, finds the one that is whole, and removes
 * sets.
 *
 * A draft is called .kofn-ID-NAME in the folder of the set.  ID differs between
 * processes, also on other machines, because all ranks of an MPI job may write
 * the same set at the same time.  Owns no descriptor between calls. */
#include "manifest.h"

#include "base/base.h"
#include "base/clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define DRAFT ".kofn-"
enum { PIECE = 1 << 16 };

/* Returns the path of a file in the folder, or with an id of its draft. */
static char *path_of(char out[KF_STORE_PATH], const kf_store *s, const char *id,
                     const char *name)
{
    snprintf(out, KF_STORE_PATH, "%s/%s%s%s%s", s->folder, id ? DRAFT : "",
             id ? id : "", id ? "-" : "", name);
    return out;
}

static kofn_status check_folder(const kf_store *s)
{
    assert(s->folder);
    assert(s->name);
    return strlen(s->folder) + 300 < KF_STORE_PATH
               ? KOFN_OK
               : kf_fail(KOFN_INVAL,
                         "the name of the folder has more than "
                         "%d bytes: %.60s...",
                         KF_STORE_PATH - 300, s->folder);
}

static kofn_status fail(const char *verb, const char *path)
{
    return kf_fail(KOFN_IO, "cannot %s %s: %s", verb, path, strerror(errno));
}

/* Forces names to disk.  Some file systems cannot. */
static void sync_folder(const kf_store *s)
{
    int fd = open(s->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return;
    fsync(fd);
    close(fd);
}

void kf_store_close(kf_store *s)
{
    kf_free(s->file);
    kf_free(s->text);
    s->file = NULL;
    s->files = s->cap = 0;
    s->text = NULL;
    s->is_old = false;
}

/* ---- digests ------------------------------------------------------------- */

/* Reads a file to its end: up to `room` bytes to `into`. */
static bool read_all(int fd, char *into, uint64_t room, kf_store_file *is)
{
    char piece[PIECE];
    XXH3_state_t x;
    ssize_t n;

    XXH3_64bits_reset(&x);
    is->bytes = 0;
    do {
        bool has_room = into && is->bytes < room;
        char *to = has_room ? into + is->bytes : piece;

        n = read(fd, to, has_room ? room - is->bytes : PIECE);
        if (n > 0)
            XXH3_64bits_update(&x, to, (size_t)n);
        is->bytes += n > 0 ? (uint64_t)n : 0;
    } while (n > 0 || (n < 0 && errno == EINTR));
    is->digest = XXH3_64bits_digest(&x);
    return n == 0;
}

static bool read_path(const char *path, void *into, uint64_t room,
                      kf_store_file *is)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC), error;
    bool ok = fd >= 0 && read_all(fd, into, room, is);

    error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return ok;
}

kofn_status kf_store_digest(const char *path, uint64_t *bytes, uint64_t *digest)
{
    kf_store_file is;

    if (!read_path(path, NULL, 0, &is))
        return fail("read", path);
    *bytes = is.bytes;
    *digest = is.digest;
    return KOFN_OK;
}

/* Compares the file of that path with what the manifest says of it. */
static kofn_status compare(const char *path, const kf_store_file *f, void *into)
{
    char why[200];
    kf_store_file is;

    if (!read_path(path, into, f->bytes, &is)) {
        if (errno != ENOENT)
            return fail("read", path);
        snprintf(why, sizeof why, "it is missing");
    } else if (is.bytes != f->bytes)
        snprintf(why, sizeof why,
                 "it has %" PRIu64 " bytes, and %" PRIu64 " were written",
                 is.bytes, f->bytes);
    else if (is.digest != f->digest)
        snprintf(why, sizeof why,
                 "its digest is %016" PRIx64 ", and a file with %016" PRIx64
                 " was written",
                 is.digest, f->digest);
    else
        return KOFN_OK;
    return kf_manifest_damaged(path, why);
}

/* ---- drafts -------------------------------------------------------------- */

/* Finds a draft of that name, or with `f` the draft of that file. */
static bool find_draft(const kf_store *s, const char *name,
                       const kf_store_file *f, void *into,
                       char path[KF_STORE_PATH])
{
    size_t n = strlen(DRAFT), end = strlen(name) + 1;
    DIR *d = opendir(s->folder);
    const struct dirent *e;
    bool has = false;

    while (d && !has && (e = readdir(d))) {
        size_t length = strlen(e->d_name);

        if (length <= n + end || strncmp(e->d_name, DRAFT, n) != 0 ||
            e->d_name[length - end] != '-' ||
            strcmp(e->d_name + length - end + 1, name) != 0)
            continue;
        path_of(path, s, NULL, e->d_name);
        has = !f || compare(path, f, into) == KOFN_OK;
    }
    if (d)
        closedir(d);
    return has;
}

static void remove_file(const kf_store *s, const char *name)
{
    char path[KF_STORE_PATH];

    if (unlink(path_of(path, s, NULL, name)) != 0 && errno == ENOENT)
        while (find_draft(s, name, NULL, NULL, path) && unlink(path) == 0)
            continue;
}

/* Removes files of a set that `now` has not. */
static void remove_files(const kf_store *old, const kf_store *now)
{
    for (size_t i = 0; i < old->files; i++) {
        bool stays = false;

        for (size_t j = 0; now && j < now->files; j++)
            stays |= strcmp(now->file[j].name, old->file[i].name) == 0;
        if (!stays)
            remove_file(old, old->file[i].name);
    }
}

/* Gives drafts of this set their names.  False: some are still drafts. */
static bool settle_files(const kf_store *s)
{
    char path[KF_STORE_PATH], to[KF_STORE_PATH];

    for (size_t i = 0; i < s->files; i++)
        if (kf_store_find(s, i, NULL, path) == KOFN_OK &&
            strcmp(path, path_of(to, s, NULL, s->file[i].name)) != 0 &&
            rename(path, to) != 0)
            return false;
    return true;
}

void kf_store_settle(kf_store *s)
{
    char path[KF_STORE_PATH], to[KF_STORE_PATH];
    const struct dirent *e;
    DIR *d;

    if (!settle_files(s))
        return;
    if (s->is_old && rename(path_of(path, s, NULL, s->before),
                            path_of(to, s, NULL, s->name)) == 0)
        s->is_old = false;
    d = opendir(s->folder);
    while (d && (e = readdir(d)))
        if (strncmp(e->d_name, DRAFT, strlen(DRAFT)) == 0)
            unlink(path_of(path, s, NULL, e->d_name));
    if (d)
        closedir(d);
}

/* ---- writing ------------------------------------------------------------- */

kofn_status kf_store_begin(kf_store *s)
{
    static atomic_uint counter;

    kf_store_close(s);
    /* processes on several machines may have the same number */
    snprintf(s->id, sizeof s->id, "%lx-%llx-%x", (unsigned long)getpid(),
             (unsigned long long)kf_clock() % 0x100000000,
             atomic_fetch_add(&counter, 1) % 0x10000);
    return check_folder(s);
}

kofn_status kf_store_add(kf_store *s, const char *name,
                         char path[KF_STORE_PATH])
{
    assert(*name);
    assert(strlen(name) < KF_STORE_NAME);
    assert(!strpbrk(name, "/\""));
    TRY(kf_grow(&s->file, &s->cap, s->files, sizeof *s->file));
    snprintf(s->file[s->files++].name, KF_STORE_NAME, "%s", name);
    path_of(path, s, s->id, name);
    return KOFN_OK;
}

static void remove_drafts(const kf_store *s)
{
    char path[KF_STORE_PATH];

    for (size_t i = 0; i < s->files; i++)
        unlink(path_of(path, s, s->id, s->file[i].name));
    unlink(path_of(path, s, s->id, s->name));
}

/* Writes the manifest as a draft, when all files are. */
static kofn_status write_manifest(kf_store *s, const char *json)
{
    char path[KF_STORE_PATH];

    for (size_t i = 0; i < s->files; i++) {
        kf_store_file *f = &s->file[i];

        TRY(kf_store_digest(path_of(path, s, s->id, f->name), &f->bytes,
                            &f->digest));
    }
    return kf_manifest_write(s, json, path_of(path, s, s->id, s->name));
}

/* Gives the manifest its name.  From then on the set counts. */
static kofn_status name_manifest(const kf_store *s)
{
    char from[KF_STORE_PATH], to[KF_STORE_PATH], before[KF_STORE_PATH];

    path_of(from, s, s->id, s->name);
    path_of(to, s, NULL, s->name);
    if (s->before) {
        unlink(path_of(before, s, NULL, s->before));
        if (link(to, before)) /* there is none, or links are not possible */
            errno = 0;
    }
    return rename(from, to) == 0 ? KOFN_OK : fail("write", to);
}

/* Gives files their names, when the manifest's is forced to disk.  After a
 * crash drafts are found, so the files' names need not be. */
static kofn_status name_files(const kf_store *s)
{
    char from[KF_STORE_PATH], to[KF_STORE_PATH];

    sync_folder(s);
    for (size_t i = 0; i < s->files; i++) {
        path_of(from, s, s->id, s->file[i].name);
        path_of(to, s, NULL, s->file[i].name);
        if (rename(from, to) != 0)
            return fail("write", to);
    }
    return KOFN_OK;
}

kofn_status kf_store_commit(kf_store *s, const char *json, kofn_status st)
{
    kf_store old = {.folder = s->folder, .name = s->name};

    if (!st)
        st = write_manifest(s, json);
    if (!st && !s->before)
        kf_store_look(&old); /* there may be none */
    if (!st)
        st = name_manifest(s);
    if (st)
        remove_drafts(s);
    else
        st = name_files(s);
    if (!st)
        remove_files(&old, s);
    kf_store_close(&old);
    return st;
}

/* ---- reading ------------------------------------------------------------- */

kofn_status kf_store_look(kf_store *s)
{
    char path[KF_STORE_PATH];
    kofn_status st;

    kf_store_close(s);
    TRY(check_folder(s));
    st = kf_manifest_read(s, path_of(path, s, NULL, s->name));
    if (st)
        kf_store_close(s);
    return st;
}

kofn_status kf_store_find(const kf_store *s, size_t i, void *into,
                          char path[KF_STORE_PATH])
{
    const kf_store_file *f = &s->file[i];
    char draft[KF_STORE_PATH];
    kofn_status st;

    assert(i < s->files);
    st = compare(path_of(path, s, NULL, f->name), f, into);
    if (!st)
        return KOFN_OK;
    if (find_draft(s, f->name, f, into, draft)) {
        memcpy(path, draft, sizeof draft);
        return KOFN_OK;
    }
    return compare(path, f, into); /* says again what is wrong */
}

/* Reads and checks the set with this manifest. */
static kofn_status open_as(kf_store *s, const char *name)
{
    kf_store is = *s;
    char path[KF_STORE_PATH];
    kofn_status st;

    is.name = name;
    st = kf_store_look(&is);
    for (size_t i = 0; !st && i < is.files; i++)
        st = kf_store_find(&is, i, NULL, path);
    is.name = s->name;
    *s = is;
    return st;
}

kofn_status kf_store_open(kf_store *s)
{
    kofn_status st = open_as(s, s->name);
    char why[KF_WORDS];

    if (!st || st == KOFN_NOMEM || st == KOFN_INVAL)
        return st;
    snprintf(why, sizeof why, "%s", kofn_errmsg());
    if (s->before && open_as(s, s->before) == KOFN_OK) {
        s->is_old = true;
        kf_fail(st, "%s", why);
        return KOFN_OK;
    }
    kf_store_close(s);
    return st == KOFN_FORMAT && s->remedy
               ? kf_fail(st, "%s; %s", why, s->remedy)
               : kf_fail(st, "%s", why);
}

/* ---- sets as a whole ----------------------------------------------------- */

kofn_status kf_store_rename(const kf_store *s, const char *to)
{
    kf_store old = {.folder = s->folder, .name = to};
    char from[KF_STORE_PATH], there[KF_STORE_PATH];
    kofn_status st = KOFN_OK;

    kf_store_look(&old); /* there may be none */
    path_of(from, s, NULL, s->name);
    if (rename(from, path_of(there, s, NULL, to)) != 0)
        st = fail("rename", from);
    if (!st)
        remove_files(&old, s);
    kf_store_close(&old);
    return st;
}

kofn_status kf_store_remove(const kf_store *s)
{
    char path[KF_STORE_PATH];

    remove_files(s, NULL);
    return unlink(path_of(path, s, NULL, s->name)) == 0 || errno == ENOENT
               ? KOFN_OK
               : fail("remove", path);
}
