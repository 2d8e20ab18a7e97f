/* altered_port.h -- a port in front of the simulator that changes the messages
 * of workers. It passes on all calls but `wait` and `close`. */
#ifndef KF_TEST_ALTERED_PORT_H
#define KF_TEST_ALTERED_PORT_H

#include "support.h"

#include "data/port.h"

typedef struct altered_port {
    kofn_port base;
    kofn_port *sim;
} altered_port;

static inline kofn_status altered_send(kofn_port *p, kf_msg *m)
{
    kofn_port *sim = ((altered_port *)p)->sim;

    return sim->send(sim, m);
}

static inline kofn_time altered_now(kofn_port *p)
{
    kofn_port *sim = ((altered_port *)p)->sim;

    return sim->now(sim);
}

static inline void altered_spend(kofn_port *p, kofn_time cpu)
{
    kofn_port *sim = ((altered_port *)p)->sim;

    sim->spend(sim, cpu);
}

static inline bool altered_coming(kofn_port *p, uint32_t worker, kf_coming *c)
{
    kofn_port *sim = ((altered_port *)p)->sim;

    return sim->coming(sim, worker, c);
}

/* Opens the port. The caller sets `wait` and `close`. */
static inline void altered_open(altered_port *b, size_t workers,
                                const kofn_faults *w)
{
    assert_ok(kofn_port_sim(&b->sim, workers, w));
    b->base = *b->sim;
    b->base.send = altered_send;
    b->base.now = altered_now;
    b->base.spend = altered_spend;
    b->base.coming = altered_coming;
    b->base.admit = NULL;
    b->base.remove = NULL;
    b->base.slow = NULL;
    b->base.corrupt = NULL;
}

#endif
