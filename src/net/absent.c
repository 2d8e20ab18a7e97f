/* absent.c -- replaces the transport over TCP and Unix sockets in a build
 * without it.
 *
 * Owns nothing: functions that can fail do, and say what is missing in this
 * build. */
#include <kofn/net.h>

#include "base/base.h"

static kofn_status absent(void)
{
    return kf_fail(
        KOFN_UNSUITED,
        "this kofn was built without src/net, so it has no addresses "
        "(tcp:, ipc:) and no keys; configure it with -DKOFN_NET=ON");
}

#define OPENS(name)                                                            \
    kofn_status name(kofn_transport **out, const char *address,                \
                     const kofn_net_options *o)                                \
    {                                                                          \
        (void)address, (void)o;                                                \
        *out = NULL;                                                           \
        return absent();                                                       \
    }
OPENS(kofn_net_listen)
OPENS(kofn_net_connect)
OPENS(kofn_net_mesh)

kofn_status kofn_net_keygen(const char *dir, const char *name)
{
    (void)dir, (void)name;
    return absent();
}

size_t kofn_net_listed(const kofn_transport *t)
{
    (void)t;
    return 0;
}

const char *kofn_net_endpoint(const kofn_transport *t)
{
    (void)t;
    return "";
}

const char *kofn_net_trouble(const kofn_transport *t)
{
    (void)t;
    return "";
}
