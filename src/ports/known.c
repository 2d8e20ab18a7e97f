/* known.c -- how much a message to a simulated worker is.
 *
 * Owns nothing; which input a worker has is of the simulator.  Called for
 * sizes only, so that simulated traffic is that of docs/wire.md. */
#include "known.h"

#include "data/data.h"

static bool knows(kf_known *k, const kf_msg *m)
{
    for (size_t i = 0; i < 2; i++)
        if (k->of[i] == m->in && k->product[i] == m->product)
            return true;
    k->of[1] = k->of[0];
    k->product[1] = k->product[0];
    k->of[0] = m->in;
    k->product[0] = m->product;
    return false;
}

/* A task that brings its block brings its input, too. */
double kf_known_bytes(kf_known *k, const kf_msg *m)
{
    bool again = m->type == KF_MSG_WORK && !m->block && knows(k, m);
    double bytes = (double)kf_buffer_bytes(m->with);

    if (m->block)
        bytes += (double)kf_block_bytes(m->block);
    return again ? bytes : bytes + (double)kf_buffer_bytes(m->in);
}
