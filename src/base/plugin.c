/* plugin.c -- finds the files of plugins beside this library.
 *
 * Owns nothing. It may not load them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/plugin.h"

bool kf_plugin_path(char *path, size_t room, const char *file)
{
    static const char *const folders[] = {"", "kofn/"};
    static const char here;
    const char *slash;
    Dl_info at;

    assert(room > 0);
    if (!dladdr(&here, &at) || !(slash = strrchr(at.dli_fname, '/')))
        return false;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (snprintf(path, room, "%.*s/%s%s", (int)(slash - at.dli_fname),
                     at.dli_fname, folders[i], file) < (int)room &&
            access(path, R_OK) == 0)
            return true;
    return false;
}
