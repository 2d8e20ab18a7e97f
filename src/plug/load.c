/* load.c -- functions of <kofn/net.h> in libkofn, which load the plugin for
 * sockets at the first call.
 *
 * Owns the loaded plugin, which stays until the process ends. It may not use
 * sockets itself. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/base.h"
#include "base/plugin.h"
#include "plug/net.h"

#define FILE_NAME "libkofn-net.so"

/* Threads may load at the same time: all find the same table. */
static _Atomic(const kf_net_plugin *) loaded;

static kofn_status load(const kf_net_plugin **plugin)
{
    char path[4096];
    void *so;

    *plugin = atomic_load(&loaded);
    if (*plugin)
        return KOFN_OK;
    if (!kf_plugin_path(path, sizeof path, FILE_NAME))
        return kf_fail(KOFN_UNSUITED,
                       "this kofn has no addresses (tcp:, ipc:) and no keys: "
                       "%s is not beside libkofn; install it, or build kofn "
                       "with -DKOFN_NET=ON",
                       FILE_NAME);
    so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!so)
        return kf_fail(KOFN_TRANSPORT,
                       "%s; addresses need libuv and OpenSSL 3, and a plugin "
                       "of this version of kofn",
                       dlerror());
    *plugin = dlsym(so, "kofn_net_plugin");
    if (!*plugin)
        return kf_fail(KOFN_TRANSPORT,
                       "%s is no plugin of kofn; install kofn again", path);
    atomic_store(&loaded, *plugin);
    return KOFN_OK;
}

kofn_status kofn_net_listen(kofn_transport **out, const char *address,
                            const kofn_net_options *o)
{
    const kf_net_plugin *p;

    *out = NULL;
    TRY(load(&p));
    return p->listen(out, address, o);
}

kofn_status kofn_net_connect(kofn_transport **out, const char *address,
                             const kofn_net_options *o)
{
    const kf_net_plugin *p;

    *out = NULL;
    TRY(load(&p));
    return p->connect(out, address, o);
}

kofn_status kofn_net_mesh(kofn_transport **out, const char *address,
                          const kofn_net_options *o)
{
    const kf_net_plugin *p;

    *out = NULL;
    TRY(load(&p));
    return p->mesh(out, address, o);
}

kofn_status kofn_net_keygen(const char *dir, const char *name)
{
    const kf_net_plugin *p;

    TRY(load(&p));
    return p->keygen(dir, name);
}

/* Returns the plugin that made a transport. */
static const kf_net_plugin *made_it(void)
{
    const kf_net_plugin *p = atomic_load(&loaded);

    assert(p);
    return p;
}

size_t kofn_net_listed(const kofn_transport *t)
{
    return made_it()->listed(t);
}

const char *kofn_net_endpoint(const kofn_transport *t)
{
    return made_it()->endpoint(t);
}

const char *kofn_net_trouble(const kofn_transport *t)
{
    return made_it()->trouble(t);
}
