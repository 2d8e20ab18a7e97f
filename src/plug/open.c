/* open.c -- loads plugins of libkofn at their first use.
 *
 * Owns nothing: a loaded plugin stays until the process ends. */
#include "plug/open.h"

#include "base/plugin.h"

#include <dlfcn.h>

kofn_status kf_plug_load(kf_plug *p, const void **table)
{
    char path[4096];
    void *so;

    *table = atomic_load(&p->table);
    if (*table)
        return KOFN_OK;
    if (!kf_plugin_path(path, sizeof path, p->file))
        return kf_fail(
            KOFN_UNSUITED,
            "this kofn has no %s: %s is not in the folder of libkofn; "
            "install it, or build kofn with %s",
            p->absent, p->file, p->needs);
    so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!so)
        return kf_fail(KOFN_TRANSPORT,
                       "%s; the plugin must be of this version of kofn, built "
                       "with %s",
                       dlerror(), p->needs);
    *table = dlsym(so, p->symbol);
    if (!*table)
        return kf_fail(KOFN_TRANSPORT,
                       "%s is no plugin of kofn; install kofn again", path);
    atomic_store(&p->table, *table);
    return KOFN_OK;
}
