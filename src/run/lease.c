/* lease.c -- how long a worker may be at its block.
 *
 * One that is there and never stores is given up as one that never answers
 * (core/times.c): after the lease and many times what half of the others took,
 * and after many leases while there is no such half.  What it waits for us and
 * what a block of that size may take do not count; the port knows both.
 *
 * Times are the job's.  It looks at real time, for a block is made by real
 * work, and gives up workers only by an event to the core.
 */
#include "job.h"

#include "base/clock.h"

#define MANY 50 /* times as long as others took                          */
#define FEW 10  /* leases that it lasts before half of them have a block */

static kofn_time times(kofn_time t, unsigned by)
{
    return t < KOFN_NEVER / by ? t * by : KOFN_NEVER;
}

static bool half(const kofn_job *j)
{
    return kf_core_live(j->core) >= kf_core_storing(j->core);
}

static kofn_time allowed(const kofn_job *j)
{
    kofn_time least = times(j->opt.lease, half(j) ? 1 : FEW);
    kofn_time many = times(j->pace, MANY);

    return many > least ? many : least;
}

void kf_lease_stored(kofn_job *j, uint32_t worker)
{
    kofn_time took = j->port->storing ? j->port->storing(j->port, worker) : 0;

    if (!half(j) && took > j->pace)
        j->pace = took;
    j->look_at = 0;
}

static kofn_status give_up(kofn_job *j, uint32_t worker)
{
    kf_msg m = {.type = KF_MSG_EVICT, .worker = worker};
    kofn_event ev = {.type = KOFN_EV_UNRESPONSIVE, .worker = worker};

    j->rep.left++;
    TRY(j->port->send(j->port, &m));
    return kf_job_step(j, &ev);
}

/* Looks at workers that are storing: one that is in time now is looked at again
 * when it would not be any more. */
static kofn_status look(kofn_job *j, kofn_time now)
{
    j->look_at = KOFN_NEVER;
    for (uint32_t i = 0; i < kf_core_known(j->core); i++) {
        kofn_time left;

        if (kf_core_worker(j->core, i) != KOFN_WORKER_STORING)
            continue;
        left = allowed(j) - j->port->storing(j->port, i);
        if (left <= 0)
            TRY(give_up(j, i)); /* perhaps another has its seat now */
        else if (left < j->look_at - now)
            j->look_at = now + left;
    }
    return KOFN_OK;
}

kofn_status kf_lease_look(kofn_job *j, kofn_time *atmost)
{
    kofn_time now = kf_clock(), left;

    if (!j->port->storing || j->opt.lease == 0 || kf_core_storing(j->core) == 0)
        return KOFN_OK;
    if (now >= j->look_at)
        TRY(look(j, now));
    left = j->look_at > now ? j->look_at - now : 0;
    *atmost = left < *atmost ? left : *atmost;
    return KOFN_OK;
}
