/* out.c -- writes files atomically: a file is there whole or not at all.
 *
 * The bytes go to a temporary name in the same folder and are forced to disk.
 * Then the file takes its real name by rename(2), which POSIX makes atomic.
 * Last, the folder is forced to disk, so that the new name survives a crash.  A
 * process that is killed leaves the old file as it was, and at worst a
 * .kofn-*.tmp in the folder.  Files that need not survive a crash are not
 * forced to disk.
 *
 * A mount point, as a single file mounted into a container, cannot be replaced.
 * Such a file is written in place once the temporary file is whole, which stays
 * if that fails.
 *
 * A kf_out owns its descriptor and the temporary name until it is closed.  No
 * other file under the real name is ever opened for writing.
 */
#define _XOPEN_SOURCE 700 /* realpath */

#include "io.h"

#include "base/number.h"
#include "base/raise.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER ((size_t)1 << 16)

/* The file that `path` means: a symbolic link is followed, so that what it
 * points to is replaced and not the link.  Keeps the permissions of the file
 * that is there in *mode; 0 when there is none. */
static kofn_status find_target(kf_out *o, const char *path, mode_t *mode)
{
    char name[KF_NAME], whole[PATH_MAX];
    struct stat st;

    kf_io_show_path(name, path);
    *mode = 0;
    if (stat(path, &st) == 0) {
        if (!S_ISREG(st.st_mode))
            return kf_fail(KOFN_IO, "cannot write %s: it is %s", name,
                           S_ISDIR(st.st_mode) ? "a directory"
                                               : "not an ordinary file");
        *mode = st.st_mode & 0777;
        if (!realpath(path, whole))
            return kf_io_errno_fail("write", path, errno);
        path = whole;
    } else if (errno != ENOENT) {
        return kf_io_errno_fail("write", path, errno);
    } else if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode)) {
        /* not a file that another process has just put there */
        return kf_fail(KOFN_IO,
                       "cannot write %s: it is a link to a file that does not "
                       "exist",
                       name);
    } else if (!*path || path[strlen(path) - 1] == '/') {
        return kf_fail(KOFN_IO, "cannot write '%s': it names no file", name);
    }
    o->path = kf_strdup(path);
    return o->path ? KOFN_OK : KOFN_NOMEM;
}

/* Creates a file with a new name and the usual permissions (mkstemp would give
 * 0600). */
static kofn_status create(kf_out *o)
{
    static atomic_uint counter;
    const char *slash = strrchr(o->path, '/');
    size_t room;

    o->folder = slash ? (size_t)(slash - o->path) + 1 : 0;
    room = o->folder + 64;
    o->temp = kf_new(room, 1);
    if (!o->temp)
        return KOFN_NOMEM;
    memcpy(o->temp, o->path, o->folder);
    for (int tries = 0; tries < 1000; tries++) {
        snprintf(o->temp + o->folder, room - o->folder, ".kofn-%ld-%u.tmp",
                 (long)getpid(), atomic_fetch_add(&counter, 1));
        o->fd = kf_raise(
            open(o->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
        if (o->fd >= 0 || errno != EEXIST)
            break;
    }
    o->made = o->fd >= 0;
    return o->made ? KOFN_OK : kf_io_errno_fail("write", o->path, errno);
}

/* Frees everything, and removes the temporary file if it still exists. */
static void drop(kf_out *o)
{
    if (o->fd >= 0)
        close(o->fd);
    if (o->made)
        unlink(o->temp);
    kf_free(o->path);
    kf_free(o->temp);
    kf_free(o->buffer);
    *o = (kf_out){.fd = -1};
}

kofn_status kf_out_open(kf_out *o, const char *path)
{
    kofn_status st;
    mode_t mode;

    *o = (kf_out){.fd = -1};
    if (!path)
        return kf_fail(KOFN_INVAL, "the file's name is NULL");
    st = find_target(o, path, &mode);
    if (st == KOFN_OK) {
        o->buffer = kf_new(BUFFER, 1);
        st = o->buffer ? create(o) : KOFN_NOMEM;
    }
    if (st == KOFN_OK && mode && fchmod(o->fd, mode) != 0)
        st = kf_io_errno_fail("write", path, errno);
    if (st < 0)
        drop(o);
    return st;
}

/* ---- bytes --------------------------------------------------------------- */

static kofn_status write_all(kf_out *o, const unsigned char *p, size_t n)
{
    while (n) {
        ssize_t done = write(o->fd, p, n);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return kf_io_errno_fail("write", o->path, errno);
        p += done;
        n -= (size_t)done;
    }
    return KOFN_OK;
}

static kofn_status flush(kf_out *o)
{
    size_t n = o->used;

    o->used = 0;
    return write_all(o, o->buffer, n);
}

kofn_status kf_out_put(kf_out *o, const void *bytes, size_t n)
{
    if (n > BUFFER - o->used)
        TRY(flush(o));
    if (n > BUFFER)
        return write_all(o, bytes, n);
    memcpy(o->buffer + o->used, bytes, n);
    o->used += n;
    return KOFN_OK;
}

kofn_status kf_out_text(kf_out *o, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = kf_vformat(text, sizeof text, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof text)
        return kf_fail(KOFN_INVAL, "a line of %d bytes is too long", n);
    return kf_out_put(o, text, (size_t)n);
}

/* ---- the end ------------------------------------------------------------- */

/* Some file systems cannot sync a folder and say EINVAL, and one may write to
 * a folder that one may not read; both have done what they can. */
static kofn_status sync_folder(kf_out *o)
{
    int fd, error = 0;

    memcpy(o->temp + o->folder, ".", 2);
    fd = open(o->temp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) != 0)
        error = errno;
    if (fd >= 0)
        close(fd);
    if (!error || error == EINVAL || error == ENOTSUP || error == EACCES)
        return KOFN_OK;
    return kf_io_errno_fail("force to disk the folder of", o->path, error);
}

/* Copies all of `from` into the file under the real name. */
static bool copy_into(kf_out *o, int from)
{
    int fd = open(o->path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    ssize_t n = -1;
    bool ok = fd >= 0;

    while (ok && (n = read(from, o->buffer, BUFFER)) != 0) {
        ok = n > 0 || errno == EINTR;
        for (ssize_t at = 0, done; ok && at<n; at += done> 0 ? done : 0) {
            done = write(fd, o->buffer + at, (size_t)(n - at));
            ok = done >= 0 || errno == EINTR;
        }
    }
    ok = ok && (o->loose || fsync(fd) == 0);
    if (fd >= 0 && close(fd) != 0 && errno != EINTR)
        ok = false;
    return ok;
}

/* Overwrites a file that cannot be replaced. */
static kofn_status write_in_place(kf_out *o)
{
    int from = open(o->temp, O_RDONLY | O_CLOEXEC), error;
    bool ok = from >= 0 && copy_into(o, from);

    error = errno;
    if (from >= 0)
        close(from);
    o->made = ok; /* then it is removed */
    return ok ? KOFN_OK
              : kf_fail_in(kf_io_errno_fail("write", o->path, error),
                           "%s has all of it", o->temp);
}

static kofn_status commit(kf_out *o)
{
    int closed;

    TRY(flush(o));
    if (!o->loose && fsync(o->fd) != 0)
        return kf_io_errno_fail("write", o->path, errno);
    closed = close(o->fd);
    o->fd = -1;
    if (closed != 0 && errno != EINTR) /* network file systems fail here */
        return kf_io_errno_fail("write", o->path, errno);
    if (rename(o->temp, o->path) != 0)
        return errno == EBUSY ? write_in_place(o)
                              : kf_io_errno_fail("write", o->path, errno);
    o->made = false;
    return o->loose ? KOFN_OK : sync_folder(o);
}

kofn_status kf_out_close(kf_out *o, kofn_status st)
{
    if (st == KOFN_OK)
        st = commit(o);
    drop(o);
    return st;
}
