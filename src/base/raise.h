/* raise.h -- descriptors 0, 1 and 2 belong to the program, even if they are
 * closed.
 *
 * A file that the library opens as one of them would be printed into, and libuv
 * ends a process that has it close one.
 */
#ifndef KF_BASE_RAISE_H
#define KF_BASE_RAISE_H

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define KF_LOWEST 3

/* Returns the descriptor, or a copy of it that is 3 at least, which replaces
 * it; -1, with errno: there is none. */
static inline int kf_raise(int fd)
{
    int up, error;

    if (fd < 0 || fd >= KF_LOWEST)
        return fd;
    up = fcntl(fd, F_DUPFD_CLOEXEC, KF_LOWEST);
    error = errno;
    close(fd);
    errno = error;
    return up;
}

#endif
