/* net.c -- functions of <kofn/net.h> in libkofn, which load the plugin for
 * sockets at the first call.
 *
 * Owns nothing. It may not use sockets itself. */
#include "plug/net.h"

#include "plug/open.h"

static kf_plug plug = {.file = "libkofn-net.so",
                       .symbol = "kofn_net_plugin",
                       .absent = "addresses (tcp:, ipc:) and no keys",
                       .needs = "-DKOFN_NET=ON (libuv and OpenSSL 3)"};

static kofn_status load(const kf_net_plugin **plugin)
{
    const void *table;

    TRY(kf_plug_load(&plug, &table));
    *plugin = table;
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
    const kf_net_plugin *p = atomic_load(&plug.table);

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
