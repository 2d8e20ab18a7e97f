/* low.c -- descriptors 0, 1 and 2, where the program has closed them: nothing of the
 * transport's gets one of them.
 *
 * What is opened here is moved up.  What libuv opens cannot be moved: while a loop is
 * made, /dev/null takes the places that are free.  A lock keeps those who move
 * descriptors away from those who fill places.
 *
 * Owns the descriptors that fill places, as long as a loop is made.
 */
#include "inside.h"

#include "base/raise.h"

#include <sys/stat.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void kf_low_begin(void)
{
    pthread_mutex_lock(&lock);
}

int kf_low_end(int fd)
{
    int error;

    fd = kf_raise(fd);
    error = errno;
    pthread_mutex_unlock(&lock);
    errno = error;
    return fd;
}

void kf_low_fill(kf_low *low)
{
    int fd;

    kf_low_begin();
    low->count = 0;
    while ((fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0 &&
           fd < KF_LOWEST && low->count < KF_LOWEST)
        low->fd[low->count++] = fd;
    if (fd >= 0)
        close(fd);
}

/* Is it still the same file, or has the program put its own there? */
static bool is_ours(int fd)
{
    struct stat s, null;

    return fstat(fd, &s) == 0 && stat("/dev/null", &null) == 0 &&
           s.st_dev == null.st_dev && s.st_ino == null.st_ino;
}

void kf_low_empty(kf_low *low)
{
    for (int i = 0; i < low->count; i++)
        if (is_ours(low->fd[i]))
            close(low->fd[i]);
    (void)kf_low_end(-1);
}
