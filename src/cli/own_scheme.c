/* own_scheme.c -- schemes of shared objects: -s ./FILE.so:key=value.
 *
 * The object has a list of schemes, KOFN_SCHEMES_SYMBOL. All are added, and the
 * first one is meant. The object stays loaded. */
#include "schemes.h"

#include <dlfcn.h>
#include <string.h>

/* Loads the file, once. */
static int load(const char *path, const kofn_scheme *const **schemes)
{
    void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (!so)
        return cli_say(EXIT_USAGE, "-s %s: %s", path, dlerror());
    *schemes = dlsym(so, KOFN_SCHEMES_SYMBOL);
    if (!*schemes || !**schemes)
        return cli_say(EXIT_USAGE,
                       "-s %s has no list of schemes; define const kofn_scheme "
                       "*const " KOFN_SCHEMES_SYMBOL "[], ending with NULL",
                       path);
    return 0;
}

int cli_own_scheme(const char **scheme, char room[CLI_SPEC])
{
    const kofn_scheme *const *all = NULL;
    size_t n = strcspn(*scheme, ":");
    char path[CLI_SPEC];

    if (!memchr(*scheme, '/', n))
        return 0;
    snprintf(path, sizeof path, "%.*s", (int)n, *scheme);
    TRY_CODE(load(path, &all));
    for (size_t i = 0; all[i]; i++)
        if (!kofn_scheme_find(all[i]->name))
            TRY_CODE(cli_fail(kofn_scheme_add(all[i])));
    snprintf(room, CLI_SPEC, "%s%s", all[0]->name, *scheme + n);
    *scheme = room;
    return 0;
}
