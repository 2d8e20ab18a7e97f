/* net.h -- interface between libkofn and its plugin for sockets.
 *
 * The plugin is linked with libuv and OpenSSL, so that a program without
 * workers at addresses loads neither. It calls libkofn's functions for
 * messages and memory, which only this version of libkofn has
 * (cmake/exports.map). */
#ifndef KF_PLUG_NET_H
#define KF_PLUG_NET_H

#include <kofn/net.h>

/* Functions of <kofn/net.h>. */
typedef struct kf_net_plugin {
    kofn_status (*listen)(kofn_transport **out, const char *address,
                          const kofn_net_options *o);
    kofn_status (*connect)(kofn_transport **out, const char *address,
                           const kofn_net_options *o);
    kofn_status (*mesh)(kofn_transport **out, const char *address,
                        const kofn_net_options *o);
    kofn_status (*keygen)(const char *dir, const char *name);
    size_t (*listed)(const kofn_transport *t);
    const char *(*endpoint)(const kofn_transport *t);
    const char *(*trouble)(const kofn_transport *t);
} kf_net_plugin;

/* The only symbol of the plugin. */
KOFN_API extern const kf_net_plugin kofn_net_plugin;

#endif
