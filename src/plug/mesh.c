/* mesh.c -- functions of <kofn/peer.h> and <kofn/train.h> in libkofn, which
 * load the plugin for meshes at the first call.
 *
 * Owns nothing. */
#include "plug/mesh.h"

#include "plug/open.h"

static kf_plug plug = {.file = "libkofn-mesh.so",
                       .symbol = "kofn_mesh_plugin",
                       .absent = "nodes without a master",
                       .needs = "-DKOFN_MESH=ON"};

static kofn_status load(const kf_mesh_plugin **plugin)
{
    const void *table;

    TRY(kf_plug_load(&plug, &table));
    *plugin = table;
    return KOFN_OK;
}

kofn_status kofn_peer_run(kofn_transport *t, const kofn_program *program,
                          const kofn_peer_options *opt, kofn_matrix *v,
                          double scalar[KOFN_SCALARS], kofn_node_view *end)
{
    const kf_mesh_plugin *p;

    TRY(load(&p));
    return p->run(t, program, opt, v, scalar, end);
}

kofn_status kofn_train_peers(kofn_transport *transport, kofn_training *t,
                             const kofn_plan *const *plan,
                             const kofn_peer_options *peers,
                             kofn_train_result *res, kofn_node_view *end)
{
    const kf_mesh_plugin *p;

    TRY(load(&p));
    return p->train(transport, t, plan, peers, res, end);
}

/* Without the plugin no node can run, so any decoding will do. */
kofn_decoding kofn_decoding_for(const kofn_plan *plan, size_t nodes,
                                double multiply, double move, double trip)
{
    const kf_mesh_plugin *p;

    return load(&p) ? KOFN_DECODE_REPLICATED
                    : p->decoding_for(plan, nodes, multiply, move, trip);
}

kofn_status kofn_nodes_find(const kofn_plan *plan, kofn_errors errors,
                            size_t nodes)
{
    const kf_mesh_plugin *p;

    TRY(load(&p));
    return p->find(plan, errors, nodes);
}

kofn_status kofn_mesh_new(kofn_mesh **out)
{
    const kf_mesh_plugin *p;

    *out = NULL;
    TRY(load(&p));
    return p->create(out);
}

kofn_status kofn_mesh_join(kofn_mesh *m, kofn_transport **out)
{
    const kf_mesh_plugin *p;

    *out = NULL;
    TRY(load(&p));
    return p->join(m, out);
}

kofn_status kofn_mesh_start(kofn_mesh *m,
                            void (*run)(void *ud, kofn_transport *t), void *ud)
{
    const kf_mesh_plugin *p;

    TRY(load(&p));
    return p->start(m, run, ud);
}

void kofn_mesh_free(kofn_mesh *m)
{
    const kf_mesh_plugin *p;

    if (m && !load(&p))
        p->release(m);
}
