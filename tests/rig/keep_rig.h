/* keep_rig.h -- a folder for checkpoints, on a memory file system if there is
 * one. A simulated mesh forces more data to disk than it computes, and no test
 * reads it after a power cut. */
#ifndef KF_TEST_KEEP_RIG_H
#define KF_TEST_KEEP_RIG_H

#include "support.h"

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[sizeof "/dev/shm/kofn-XXXXXX"];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "%s/kofn-XXXXXX",
             access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    return mkdtemp(folder) ? 0 : -1;
}

static void empty(const char *of)
{
    DIR *d = opendir(of);
    const struct dirent *e;

    assert_non_null(d);
    while ((e = readdir(d))) {
        char path[400];

        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", of, e->d_name);
        assert_int_equal(unlink(path), 0);
    }
    closedir(d);
}

static int remove_folder(void **state)
{
    (void)state;
    empty(folder);
    return rmdir(folder);
}

#endif
