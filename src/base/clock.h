/* clock.h -- the time, and the processor time of a thread.
 *
 * Only ports, transports, hosts and the command read a clock.  core and peer
 * get the time as an argument.  Nothing is kept here. */
#ifndef KF_CLOCK_H
#define KF_CLOCK_H

#include <kofn.h>

#include <time.h>

static inline kofn_time kf_read_clock(clockid_t which)
{
    struct timespec t;

    clock_gettime(which, &t);
    return (kofn_time)t.tv_sec * KOFN_SECOND + t.tv_nsec;
}

/* Returns nanoseconds since a fixed moment in the past.  The time never goes
 * back. */
static inline kofn_time kf_clock(void)
{
    return kf_read_clock(CLOCK_MONOTONIC);
}

static inline double kf_clock_seconds(void)
{
    return 1e-9 * (double)kf_clock();
}

/* Returns the processor time that this thread has used, in nanoseconds. */
static inline kofn_time kf_cpu_time(void)
{
    return kf_read_clock(CLOCK_THREAD_CPUTIME_ID);
}

/* Converts a time of kf_clock to the type that pthreads wait with. */
static inline struct timespec kf_timespec(kofn_time t)
{
    return (struct timespec){.tv_sec = (time_t)(t / KOFN_SECOND),
                             .tv_nsec = (long)(t % KOFN_SECOND)};
}

#endif
