/* mesh.h -- interface between libkofn and its plugin for meshes, jobs of nodes
 * without a master.
 *
 * A program that has a coordinator does not load it. It calls functions of
 * libkofn that only this version has (cmake/exports.map). */
#ifndef KF_PLUG_MESH_H
#define KF_PLUG_MESH_H

#include <kofn/peer.h>
#include <kofn/train.h>

/* Functions of <kofn/peer.h> and <kofn/train.h>. */
typedef struct kf_mesh_plugin {
    kofn_status (*run)(kofn_transport *t, const kofn_program *program,
                       const kofn_peer_options *opt, kofn_matrix *v,
                       double scalar[KOFN_SCALARS], kofn_node_view *end);
    kofn_status (*train)(kofn_transport *transport, kofn_training *t,
                         const kofn_plan *const *plan,
                         const kofn_peer_options *peers, kofn_train_result *res,
                         kofn_node_view *end);
    kofn_decoding (*decoding_for)(const kofn_plan *plan, size_t nodes,
                                  double multiply, double move, double trip);
    kofn_status (*find)(const kofn_plan *plan, kofn_errors errors,
                        size_t nodes);
    kofn_status (*create)(kofn_mesh **out);
    kofn_status (*join)(kofn_mesh *m, kofn_transport **out);
    kofn_status (*start)(kofn_mesh *m, void (*run)(void *ud, kofn_transport *t),
                         void *ud);
    void (*release)(kofn_mesh *m);
} kf_mesh_plugin;

/* The only symbol of the plugin. */
KOFN_API extern const kf_mesh_plugin kofn_mesh_plugin;

#endif
