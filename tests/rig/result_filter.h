/* result_filter.h -- a port in front of the simulator that passes the results
 * of some workers and drops those of others. Workers leave and join between
 * any two messages. */
#ifndef KF_TEST_RESULT_FILTER_H
#define KF_TEST_RESULT_FILTER_H

#include "altered_port.h"

#define FILTER_NEVER SIZE_MAX

typedef struct result_filter {
    altered_port b;
    uint32_t open;    /* bit w: results of worker w pass */
    uint32_t gone;    /* bit w: worker w leaves before the next message */
    size_t passed;    /* messages that have passed */
    size_t leaves_at; /* after this number of messages ... */
    uint32_t leaver;  /* ... this worker leaves */
    size_t joins_at;  /* after this number of messages a worker joins */
    uint32_t joiner;  /* number of the worker that joined */
} result_filter;

static inline kofn_status filter_remove(result_filter *g, uint32_t worker,
                                        kf_msg *m)
{
    *m = (kf_msg){.type = KF_MSG_BYE, .worker = worker};
    return g->b.sim->remove(g->b.sim, worker);
}

static inline kofn_status filter_admit(result_filter *g, kf_msg *m)
{
    *m = (kf_msg){.type = KF_MSG_HELLO};
    g->joins_at = FILTER_NEVER;
    assert_ok(g->b.sim->admit(g->b.sim, &m->worker));
    g->joiner = m->worker;
    return KOFN_OK;
}

/* Lets a worker leave or join if that is due. Returns true with a message in
 * *m if one did. */
static inline bool filter_change(result_filter *g, kf_msg *m)
{
    for (uint32_t w = 0; w < 32; w++)
        if (g->gone >> w & 1) {
            g->gone &= ~(UINT32_C(1) << w);
            assert_ok(filter_remove(g, w, m));
            return true;
        }
    if (g->passed >= g->leaves_at) {
        g->leaves_at = FILTER_NEVER;
        assert_ok(filter_remove(g, g->leaver, m));
        return true;
    }
    if (g->passed >= g->joins_at) {
        assert_ok(filter_admit(g, m));
        return true;
    }
    return false;
}

static inline kofn_status filter_wait(kofn_port *p, kofn_time until,
                                      kofn_time atmost, kf_msg *m)
{
    result_filter *g = (result_filter *)p;
    kofn_port *sim = g->b.sim;

    if (filter_change(g, m))
        return KOFN_OK;
    for (;;) {
        kofn_status st = sim->wait(sim, until, atmost, m);

        if (st)
            return st;
        if (m->type != KF_MSG_RESULT || g->open >> m->worker & 1) {
            g->passed++;
            return KOFN_OK;
        }
        kf_buffer_drop(m->in);
        kf_buffer_drop(m->result);
        kofn_free(m->why);
    }
}

static inline void filter_close(kofn_port *p)
{
    result_filter *g = (result_filter *)p;

    g->b.sim->close(g->b.sim);
}

/* Opens the port. All results pass and no worker leaves or joins. *g must live
 * until the job is closed. */
static inline kofn_port *filter_new(result_filter *g, size_t workers)
{
    *g = (result_filter){.open = UINT32_MAX,
                         .leaves_at = FILTER_NEVER,
                         .joins_at = FILTER_NEVER};
    altered_open(&g->b, workers, NULL);
    g->b.base.wait = filter_wait;
    g->b.base.close = filter_close;
    return &g->b.base;
}

#endif
