/* folder.c -- a folder for the files of a run.
 *
 * Owns nothing: the caller owns the path and removes the folder. */
#define _GNU_SOURCE
#include "papers.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

kofn_status papers_folder_make(char *path, size_t room)
{
    const char *tmp = getenv("TMPDIR");

    if (!tmp || strlen(tmp) > 40)
        tmp = "/tmp";
    snprintf(path, room, "%s/kofn.XXXXXX", tmp);
    if (mkdtemp(path))
        return KOFN_OK;
    papers_fail(KOFN_IO, "%s: %s; set TMPDIR to a folder that can be written",
                path, strerror(errno));
    *path = '\0';
    return KOFN_IO;
}

void papers_folder_remove(const char *path)
{
    DIR *d = *path ? opendir(path) : NULL;
    const struct dirent *e;

    while (d && (e = readdir(d)))
        unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        closedir(d);
    if (*path)
        rmdir(path);
}
