/* between.h -- a port that stands before the simulator and changes what workers
 * send: all but `wait` and `close` is passed on.
 */
#ifndef KF_TEST_BETWEEN_H
#define KF_TEST_BETWEEN_H

#include "support.h"

#include "data/port.h"

typedef struct between {
    kofn_port base;
    kofn_port *sim;
} between;

static inline kofn_status between_send(kofn_port *p, kf_msg *m)
{
    kofn_port *sim = ((between *)p)->sim;

    return sim->send(sim, m);
}

static inline kofn_time between_now(kofn_port *p)
{
    kofn_port *sim = ((between *)p)->sim;

    return sim->now(sim);
}

static inline void between_spend(kofn_port *p, kofn_time cpu)
{
    kofn_port *sim = ((between *)p)->sim;

    sim->spend(sim, cpu);
}

static inline bool between_coming(kofn_port *p, uint32_t worker, kf_coming *c)
{
    kofn_port *sim = ((between *)p)->sim;

    return sim->coming(sim, worker, c);
}

/* `wait` and `close` are the caller's. */
static inline void between_open(between *b, size_t workers,
                                const kofn_faults *w)
{
    assert_ok(kofn_port_sim(&b->sim, workers, w));
    b->base = *b->sim;
    b->base.send = between_send;
    b->base.now = between_now;
    b->base.spend = between_spend;
    b->base.coming = between_coming;
    b->base.admit = NULL;
    b->base.remove = NULL;
    b->base.slow = NULL;
    b->base.corrupt = NULL;
}

#endif
