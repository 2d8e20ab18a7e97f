/* busy.c -- says on a terminal what takes long: reading, writing, verifying.
 *
 * A thread draws the line. It exists only while something is named, so that no
 * process is forked meanwhile. */
#include "busy.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define QUIET 2 /* seconds before the first line */

static struct {
    bool wanted, running, over;
    char what[200];
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t end;
} busy = {.lock = PTHREAD_MUTEX_INITIALIZER, .end = PTHREAD_COND_INITIALIZER};

void cli_busy_allow(bool wanted)
{
    busy.wanted = wanted && isatty(STDERR_FILENO);
}

static void *tick(void *ud)
{
    struct timespec at;
    unsigned seconds = 0;

    (void)ud;
    clock_gettime(CLOCK_REALTIME, &at);
    pthread_mutex_lock(&busy.lock);
    while (!busy.over) {
        at.tv_sec++;
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
    cli_busy_end();
    if (!busy.wanted)
        return;
    snprintf(busy.what, sizeof busy.what, "%s %.180s", doing, name);
    busy.over = false;
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
    busy.running = false;
    cli_erase();
}
