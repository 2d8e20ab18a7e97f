/* open.c -- loads plugins of libkofn at their first use.
 *
 * Owns nothing: a loaded plugin stays until the process ends. */
#include "plug/open.h"

#include "base/plugin.h"

#include <dlfcn.h>

const void *kf_plug_try(kf_plug *p)
{
    const void *table = atomic_load(&p->table);
    char path[4096];
    void *so;

    if (table || !kf_plugin_path(path, sizeof path, p->file))
        return table;
    so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    table = so ? dlsym(so, p->symbol) : NULL;
    if (table)
        atomic_store(&p->table, table);
    return table;
}

kofn_status kf_plug_load(kf_plug *p, const void **table)
{
    char path[4096];
    const char *why;

    *table = kf_plug_try(p);
    if (*table)
        return KOFN_OK;
    why = dlerror();
    if (!kf_plugin_path(path, sizeof path, p->file))
        return kf_fail(
            KOFN_UNSUITED,
            "this kofn has no %s: %s is not in the folder of libkofn; "
            "install it, or build kofn with %s",
            p->absent, p->file, p->needs);
    return kf_fail(KOFN_TRANSPORT,
                   "%s; the plugin must be of this version of kofn, built "
                   "with %s",
                   why ? why : p->file, p->needs);
}
