/* hand_over.h -- the coordinator's reference: hands tasks to threads and back,
 * by mutex and condition variable alone. */
#ifndef KF_BENCH_HAND_OVER_H
#define KF_BENCH_HAND_OVER_H

#include "bench.h"

#include <pthread.h>

#define STOP 1000000 /* a box this full means: stop */

typedef struct box {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    int full;
} box;

typedef struct ping {
    box in, *out;
    pthread_t thread;
} ping;

typedef struct hands {
    ping *of;
    int workers;
    box back;
} hands;

static inline void box_put(box *b, int many)
{
    pthread_mutex_lock(&b->lock);
    b->full += many;
    pthread_cond_signal(&b->filled);
    pthread_mutex_unlock(&b->lock);
}

static inline int box_take(box *b)
{
    int got;

    pthread_mutex_lock(&b->lock);
    while (b->full == 0)
        pthread_cond_wait(&b->filled, &b->lock);
    got = b->full--;
    pthread_mutex_unlock(&b->lock);
    return got;
}

static inline void *hand_back(void *ud)
{
    ping *p = ud;

    while (box_take(&p->in) < STOP)
        box_put(p->out, 1);
    return NULL;
}

static inline void hands_up(hands *h, int workers)
{
    const box empty = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};

    *h = (hands){calloc((size_t)workers, sizeof *h->of), workers, empty};
    must(h->of, "memory");
    for (int i = 0; i < workers; i++) {
        ping *p = &h->of[i];

        p->in = empty;
        p->out = &h->back;
        must(!pthread_create(&p->thread, NULL, hand_back, p), "thread");
    }
}

/* Hands `each` tasks to each thread and back, `rounds` times. */
static inline double hand_over(hands *h, int each, int rounds)
{
    double t = now();

    for (int r = 0; r < rounds; r++) {
        for (int k = 0; k < each; k++)
            for (int i = 0; i < h->workers; i++)
                box_put(&h->of[i].in, 1);
        for (int k = 0; k < each * h->workers; k++)
            box_take(&h->back);
    }
    return now() - t;
}

static inline void hands_down(hands *h)
{
    for (int i = 0; i < h->workers; i++) {
        box_put(&h->of[i].in, 2 * STOP);
        pthread_join(h->of[i].thread, NULL);
    }
    free(h->of);
}

#endif
