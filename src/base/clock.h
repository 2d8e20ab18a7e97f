/* clock.h -- the time, and the processor time of a thread.
 *
 * The library is handed the time wherever something is decided; these are for
 * ports, transports and the command, who hand it.
 *
 * Nothing is kept here.  Only ports, transports, hosts and the command may
 * read a clock: core and peer are handed the time. */
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

/* Since some moment in the past; it never goes back. */
static inline kofn_time kf_clock(void)
{
    return kf_read_clock(CLOCK_MONOTONIC);
}

static inline double kf_clock_seconds(void)
{
    return 1e-9 * (double)kf_clock();
}

/* The processor time that this thread has had. */
static inline kofn_time kf_cpu_time(void)
{
    return kf_read_clock(CLOCK_THREAD_CPUTIME_ID);
}

/* A moment of kf_clock as the waits of pthreads take it. */
static inline struct timespec kf_timespec(kofn_time t)
{
    return (struct timespec){.tv_sec = (time_t)(t / KOFN_SECOND),
                             .tv_nsec = (long)(t % KOFN_SECOND)};
}

#endif
