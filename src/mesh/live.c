/* live.c -- the whole life of a node on the machine's clock, until all nodes
 * have the result.
 *
 * Owns the node from its start to its end; host.c does the work. */
#include "host.h"

#include "base/clock.h"

static kofn_time wall_clock(void *ud)
{
    (void)ud;
    return kf_clock();
}

#define WAY_MAY_BE_FREE (KOFN_SECOND / 1000)

/* Runs the node.  The result goes to `v`. */
static kofn_status live(kf_host *h, double *v)
{
    for (;;) {
        bool worked, over;
        kofn_time atmost;

        TRY(kf_host_pass(h, &worked));
        TRY(kf_host_hand_out(h, v, &over));
        if (over) {
            /* reports faulty nodes of the last iterate */
            kf_comparison_advance(h);
            return KOFN_OK;
        }
        atmost = kf_node_alarm(h->node) - wall_clock(NULL);
        if (kf_mail_waits(&h->net) && atmost > WAY_MAY_BE_FREE)
            atmost = WAY_MAY_BE_FREE;
        if (!worked && atmost > 0)
            TRY(kf_host_hear(h, atmost));
    }
}

kofn_status kofn_peer_run(kofn_transport *t, const kofn_program *program,
                          const kofn_peer_options *opt, kofn_matrix *v,
                          double scalar[KOFN_SCALARS], kofn_node_view *end)
{
    kofn_node_view view = KOFN_NODE_VIEW_INIT;
    kf_host *h;
    kofn_status st;

    TRY(kf_begun(end, "KOFN_NODE_VIEW_INIT"));
    kf_give(end, &view, sizeof view);
    if (scalar)
        memset(scalar, 0, KOFN_SCALARS * sizeof *scalar);
    TRY(kf_host_new(&h, t, program, opt, v, (kf_timer){wall_clock, NULL}));
    st = live(h, v->data);
    if (scalar)
        memcpy(scalar, h->it.scalar, sizeof h->it.scalar);
    kf_host_look(h, &view);
    kf_give(end, &view, sizeof view);
    kf_host_free(h);
    return st;
}
