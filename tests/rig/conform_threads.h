/* conform_threads.h -- the laws of transports (conform.h), with ends on
 * threads of one process. */
#ifndef CONFORM_THREADS_H
#define CONFORM_THREADS_H

#include "support.h"

#include "conform.h"

#include <pthread.h>

enum { ENDS = 5 };

static inline void *one_end(void *ud)
{
    (void)conform(ud);
    return NULL;
}

/* Runs all ends on threads. `end` has their transports. */
static inline void hold(conform_end *end, uint32_t seed)
{
    pthread_t thread[ENDS];
    atomic_bool filled = false;

    for (unsigned i = 0; i < ENDS; i++) {
        end[i].filled = &filled;
        end[i].me = i;
        end[i].ends = ENDS;
        end[i].seed = seed;
    }
    for (unsigned i = 0; i < ENDS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, one_end, &end[i]), 0);
    for (unsigned i = 0; i < ENDS; i++)
        pthread_join(thread[i], NULL);
    for (unsigned i = 0; i < ENDS; i++)
        if (end[i].why[0])
            fail_msg("end %u: %s", i, end[i].why);
}

#endif
