/* gate.h -- a port before the simulator that lets the answers of some workers
 * through and loses those of others, and at which workers go and come between
 * any two messages. */
#ifndef KF_TEST_GATE_H
#define KF_TEST_GATE_H

#include "altered_port.h"

#define GATE_NEVER SIZE_MAX

typedef struct gate {
    altered_port b;
    uint32_t open;   /* bit w: answers of worker w come through             */
    uint32_t gone;   /* bit w: it goes before anything else comes           */
    size_t come;     /* messages that have come through                     */
    size_t goes_at;  /* who is to go then goes when so many have come, ...  */
    uint32_t goer;   /* ... which is this one                               */
    size_t joins_at; /* and one joins when so many have come                */
    uint32_t joiner; /* who that was                                        */
} gate;

static inline kofn_status gate_remove(gate *g, uint32_t worker, kf_msg *m)
{
    *m = (kf_msg){.type = KF_MSG_BYE, .worker = worker};
    return g->b.sim->remove(g->b.sim, worker);
}

static inline kofn_status gate_admit(gate *g, kf_msg *m)
{
    *m = (kf_msg){.type = KF_MSG_HELLO};
    g->joins_at = GATE_NEVER;
    assert_ok(g->b.sim->admit(g->b.sim, &m->worker));
    g->joiner = m->worker;
    return KOFN_OK;
}

/* Something that is to happen now? */
static inline bool gate_happens(gate *g, kf_msg *m)
{
    for (uint32_t w = 0; w < 32; w++)
        if (g->gone >> w & 1) {
            g->gone &= ~(UINT32_C(1) << w);
            assert_ok(gate_remove(g, w, m));
            return true;
        }
    if (g->come >= g->goes_at) {
        g->goes_at = GATE_NEVER;
        assert_ok(gate_remove(g, g->goer, m));
        return true;
    }
    if (g->come >= g->joins_at) {
        assert_ok(gate_admit(g, m));
        return true;
    }
    return false;
}

static inline kofn_status gate_wait(kofn_port *p, kofn_time until,
                                    kofn_time atmost, kf_msg *m)
{
    gate *g = (gate *)p;
    kofn_port *sim = g->b.sim;

    if (gate_happens(g, m))
        return KOFN_OK;
    for (;;) {
        kofn_status st = sim->wait(sim, until, atmost, m);

        if (st)
            return st;
        if (m->type != KF_MSG_RESULT || g->open >> m->worker & 1) {
            g->come++;
            return KOFN_OK;
        }
        kf_buffer_drop(m->in);
        kf_buffer_drop(m->result);
        kofn_free(m->why);
    }
}

static inline void gate_close(kofn_port *p)
{
    gate *g = (gate *)p;

    g->b.sim->close(g->b.sim);
}

/* All are let through, and nothing happens.  It lives until the job is
 * closed. */
static inline kofn_port *gate_new(gate *g, size_t workers)
{
    *g = (gate){
        .open = UINT32_MAX, .goes_at = GATE_NEVER, .joins_at = GATE_NEVER};
    altered_open(&g->b, workers, NULL);
    g->b.base.wait = gate_wait;
    g->b.base.close = gate_close;
    return &g->b.base;
}

#endif
