/* plugin.c -- the table of the plugin for meshes.
 *
 * Owns nothing. It is in the plugin only (cmake/plugin.cmake). */
#include "plug/mesh.h"

const kf_mesh_plugin kofn_mesh_plugin = {
    .run = kofn_peer_run,
    .train = kofn_train_peers,
    .decoding_for = kofn_decoding_for,
    .find = kofn_nodes_find,
    .create = kofn_mesh_new,
    .join = kofn_mesh_join,
    .start = kofn_mesh_start,
    .release = kofn_mesh_free,
};
