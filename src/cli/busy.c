/* busy.c -- says on a terminal what takes long: reading, writing, verifying.
 *
 * A thread draws the line. It exists only while something is named, so that no
 * process is forked meanwhile. */
#include "busy.h"

#include "base/clock.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#define QUIET 2 /* seconds before the first line */

static struct {
    bool wanted, running, over;
    char what[200];
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t end;
} busy = {.lock = PTHREAD_MUTEX_INITIALIZER};

void cli_busy_allow(bool wanted)
{
    busy.wanted = wanted && isatty(STDERR_FILENO);
}

static void *tick(void *ud)
{
    kofn_time begin = kf_clock();
    unsigned seconds = 0;

    (void)ud;
    pthread_mutex_lock(&busy.lock);
    while (!busy.over) {
        struct timespec at = kf_timespec(begin + (seconds + 1) * KOFN_SECOND);

        while (!busy.over &&
               !pthread_cond_timedwait(&busy.end, &busy.lock, &at))
            ;
        if (!busy.over && ++seconds >= QUIET)
            cli_draw("%s, %u s", busy.what, seconds);
    }
    pthread_mutex_unlock(&busy.lock);
    return NULL;
}

void cli_busy(const char *doing, const char *name)
{
    pthread_condattr_t attr;

    cli_busy_end();
    if (!busy.wanted)
        return;
    snprintf(busy.what, sizeof busy.what, "%s %.180s", doing, name);
    busy.over = false;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&busy.end, &attr);
    pthread_condattr_destroy(&attr);
    busy.running = pthread_create(&busy.thread, NULL, tick, NULL) == 0;
}

void cli_busy_end(void)
{
    if (!busy.running)
        return;
    pthread_mutex_lock(&busy.lock);
    busy.over = true;
    pthread_cond_signal(&busy.end);
    pthread_mutex_unlock(&busy.lock);
    pthread_join(busy.thread, NULL);
    pthread_cond_destroy(&busy.end);
    busy.running = false;
    cli_erase();
}
