/* sites_rig.h -- a job on threads, behind packets and on the simulator. */
#ifndef KF_TEST_SITES_RIG_H
#define KF_TEST_SITES_RIG_H

#include "fleet.h"
#include "rig.h"

enum { THREADS, PACKETS, SIMULATOR };

#define SITES (PORTS + 1)

static fleet packets;

static inline kofn_port *port_at(int site, rig *r, const rig_kind *k)
{
    kofn_away_options o = KOFN_AWAY_OPTIONS_INIT;
    kofn_port *port;

    if (site == SIMULATOR) {
        assert_ok(kofn_port_sim(&port, k->workers, k->faults));
        return port;
    }
    if (site == THREADS) {
        assert_ok(kofn_port_threads(&port, k->workers, k->faults));
        return port;
    }
    fleet_init(&packets, NULL);
    packets.serve.f = rig_part;
    packets.serve.ctx = r;
    packets.serve.faults = k->faults;
    packets.serve.staged = true;
    o.start = fleet_start;
    o.kill = fleet_kill;
    o.ud = &packets;
    return fleet_port(&packets, k->workers, &o);
}

static inline void up(rig *r, const rig_kind *k, int site)
{
    rig_inputs(r, k);
    assert_ok(kofn_open(&r->job, r->plan, port_at(site, r, k), k->opt));
    assert_ok(rig_place(r));
}

static inline void down(rig *r, int site)
{
    kofn_close(r->job);
    r->job = NULL;
    if (site == PACKETS)
        fleet_down(&packets);
    rig_down(r);
}

/* Sets the width of products beside r. */
static inline void set_width(rig *r, size_t p)
{
    if (r->op == KOFN_LEFT)
        r->x.rows = r->y.rows = p;
    else
        r->x.cols = r->x.ld = r->y.cols = r->y.ld = p;
}

#endif
