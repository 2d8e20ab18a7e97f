/* plugin.c -- the table of the plugin for sockets.
 *
 * Owns nothing. It is in the plugin only (cmake/plugin.cmake). */
#include "plug/net.h"

const kf_net_plugin kofn_net_plugin = {
    .listen = kofn_net_listen,
    .connect = kofn_net_connect,
    .mesh = kofn_net_mesh,
    .keygen = kofn_net_keygen,
    .listed = kofn_net_listed,
    .endpoint = kofn_net_endpoint,
    .trouble = kofn_net_trouble,
};
