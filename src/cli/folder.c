/* folder.c -- a temporary folder of this process for a socket and files of its
 * workers. Also removes folders of killed processes.
 *
 * The owner of a folder holds a lock on a file in it. The lock ends with the
 * process, even if it is killed. A folder with a free lock has no owner. A
 * folder without a lock file may be just being made, and is left alone. */
#define _GNU_SOURCE
#include "cli.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME "kofn.XXXXXX"
#define TRIES 10

static bool lock(int fd)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    return fcntl(fd, F_SETLK, &whole) == 0;
}

/* ---- of others ----------------------------------------------------------- */

static void sweep_one(int tmp, const char *name)
{
    int dir = openat(tmp, name, O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), held;
    struct stat s;

    if (dir < 0)
        return;
    held =
        fstat(dir, &s) || s.st_uid != geteuid()
            ? -1
            : openat(dir, "lock", O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (held >= 0 && lock(held)) {
        unlinkat(dir, "socket", 0);
        unlinkat(dir, "pattern.npy", 0);
        unlinkat(dir, "lock", 0);
        unlinkat(tmp, name, AT_REMOVEDIR);
    }
    if (held >= 0)
        close(held);
    close(dir);
}

/* Removes ownerless folders. Call it before this process has a folder: closing
 * that folder's lock here would release it. */
static void sweep(const char *path)
{
    DIR *tmp = opendir(path);
    const struct dirent *e;

    while (tmp && (e = readdir(tmp)))
        if (strlen(e->d_name) == strlen(NAME) &&
            strncmp(e->d_name, NAME, strlen("kofn.")) == 0)
            sweep_one(dirfd(tmp), e->d_name);
    if (tmp)
        closedir(tmp);
}

/* ---- of our own ---------------------------------------------------------- */

/* Locks the folder. A sweeping process may have held the lock first; then it
 * has removed the folder. On systems without locks no process sweeps. */
static bool claim(cli_folder *f)
{
    char path[80];
    struct stat s;

    snprintf(path, sizeof path, "%s/lock", f->path);
    f->lock = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (f->lock < 0)
        return true;
    if (lock(f->lock))
        return fstat(f->lock, &s) == 0 && s.st_nlink > 0;
    if (errno == EACCES || errno == EAGAIN)
        return false;
    unlink(path);
    return true;
}

int cli_folder_make(cli_folder *f)
{
    const char *tmp = getenv("TMPDIR");

    if (!tmp || strlen(tmp) > 40)
        tmp = "/tmp";
    sweep(tmp);
    for (int i = 0; i < TRIES; i++) {
        snprintf(f->path, sizeof f->path, "%s/" NAME, tmp);
        if (!mkdtemp(f->path))
            break;
        if (claim(f))
            return 0;
        close(f->lock);
    }
    return cli_say(EXIT_FAILED,
                   "%s: %s; set TMPDIR to a folder that can be written",
                   f->path, strerror(errno));
}

void cli_folder_remove(cli_folder *f)
{
    static const char *const name[] = {"socket", "pattern.npy", "lock"};
    char path[80];

    if (!*f->path)
        return;
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", f->path, name[i]);
        unlink(path);
    }
    rmdir(f->path);
    if (f->lock >= 0)
        close(f->lock);
    *f->path = 0;
}
