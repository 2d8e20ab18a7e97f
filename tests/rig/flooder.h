/* flooder.h -- workers that send anything at any time, under many numbers. */
#ifndef KF_TEST_FLOODER_H
#define KF_TEST_FLOODER_H

#include "support.h"

#include <kofn/transport.h>

#include "base/base.h"
#include "base/hash.h"
#include "base/rng.h"
#include "wire/wire.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define IDENTITIES 256

typedef struct hostile {
    kofn_transport *t;
    pthread_t thread;
    kf_rng r;
    atomic_bool stop;
    kofn_peer hub;
    bool here, stores;
    uint64_t job;
    kf_head work, old; /* the last task, and one before */
    kf_head store;
    uint32_t number[IDENTITIES]; /* the numbers that it was given */
    size_t numbers;
    size_t sent;
} hostile;

static inline void say(hostile *h, kf_head head, size_t body_bytes)
{
    unsigned char bytes[KF_HEAD];
    double *body = calloc(body_bytes / 8 + 1, 8);

    for (size_t i = 0; i < body_bytes / 8; i++)
        body[i] = kf_rng_below(&h->r, 50) ? kf_rng_uniform(&h->r) - 0.5 : NAN;
    head.job = kf_rng_below(&h->r, 50) ? h->job : kf_rng_u64(&h->r);
    if (head.type == KF_WIRE_HELLO)
        head.job = 0;
    head.body_sum = body_bytes ? kf_hash(head.job, body, body_bytes) : 0;
    kf_head_write(bytes, &head);
    if (kf_rng_below(&h->r, 100) == 0)
        bytes[kf_rng_below(&h->r, sizeof bytes)] ^= 4;
    if (!h->here || h->t->send(h->t, h->hub, bytes, sizeof bytes,
                               &(kofn_lent){body, body_bytes, free, body},
                               false) == KOFN_AGAIN)
        free(body);
    h->sent++;
}

/* Sends an answer to this task, true or not. */
static inline void answer(hostile *h, const kf_head *w)
{
    size_t bytes = w->out_rows * w->out_cols * (w->dtype == KOFN_F32 ? 4 : 8);
    kf_head head = {.type = KF_WIRE_RESULT,
                    .task = w->task,
                    .round = w->round,
                    .product = w->product,
                    .row = w->row,
                    .dtype = w->dtype,
                    .rows = w->out_rows,
                    .cols = w->out_cols};

    switch (kf_rng_below(&h->r, 12)) {
    case 0: /* never answers */
        return;
    case 1:
        head.round += 1 + (uint32_t)kf_rng_below(&h->r, 2);
        break;
    case 2:
        head.task = (uint32_t)kf_rng_below(&h->r, 64);
        break;
    case 3:
        head.rows = 1 + kf_rng_below(&h->r, 100);
        bytes = head.rows * head.cols * 8;
        break;
    case 4:
        head.type = KF_WIRE_FAILED;
        head.status = (int)kf_rng_below(&h->r, 40) - 20;
        bytes = kf_rng_below(&h->r, kf_rng_below(&h->r, 2) ? 40 : 2 * KF_WORDS);
        break;
    case 5:
        bytes = kf_rng_below(&h->r, 1 << 20);
        break;
    case 6:
        say(h, head, bytes); /* twice */
        break;
    case 7:
        head.product += 1 + (uint32_t)kf_rng_below(&h->r, 2);
        break;
    case 8:
        head.row += 1 + (uint32_t)kf_rng_below(&h->r, 2);
        break;
    default:
        break;
    }
    say(h, head, bytes);
}

/* Sends a random packet. */
static inline void babble(hostile *h)
{
    kf_head head = {.type = (kf_wire)(1 + kf_rng_below(&h->r, 50)),
                    .task = (uint32_t)kf_rng_below(&h->r, 1000),
                    .round = h->work.round,
                    .block = h->store.block,
                    .lo = kf_rng_below(&h->r, 4),
                    .hi = kf_rng_below(&h->r, 2) ? kf_rng_u64(&h->r)
                                                 : kf_rng_below(&h->r, 8),
                    .which = kf_rng_below(&h->r, 4),
                    .rows = kf_rng_below(&h->r, 8),
                    .cols = kf_rng_below(&h->r, 8)};

    if (kf_rng_below(&h->r, 3) == 0)
        answer(h, &h->old); /* cancelled or over by now */
    else
        say(h, head, head.rows * head.cols * 8);
}

static inline void hear(hostile *h, const kofn_packet *k)
{
    kf_head head;

    if (k->what == KOFN_CAME) {
        h->hub = k->peer;
        h->here = true;
        h->stores = kf_rng_below(&h->r, 4) > 0;
        say(h, (kf_head){.type = KF_WIRE_HELLO}, 0);
        return;
    }
    if (k->what == KOFN_WENT) {
        h->here = false;
        return;
    }
    if (kf_head_read(&head, k->head, k->head_bytes))
        return;
    h->job = head.job;
    switch (head.type) {
    case KF_WIRE_WELCOME:
        h->number[h->numbers++ % IDENTITIES] = head.task;
        break;
    case KF_WIRE_STORE:
        h->store = head;
        if (h->stores) /* it stored no block */
            say(h, (kf_head){.type = KF_WIRE_STORED, .block = head.block}, 0);
        break;
    case KF_WIRE_WORK:
        if (kf_rng_below(&h->r, 4) == 0)
            h->old = h->work;
        h->work = head;
        answer(h, &head);
        break;
    default:
        break;
    }
}

static inline void flooder_turn(hostile *h)
{
    kofn_packet k = {0};

    if (h->t->wait(h->t, KOFN_SECOND / 2000, &k) == KOFN_OK) {
        hear(h, &k);
        if (k.own)
            h->t->release(h->t, k.own);
    }
    if (h->job && kf_rng_below(&h->r, 3) == 0)
        babble(h);
    if (h->job && h->numbers < 40 && kf_rng_below(&h->r, 150) == 0) {
        h->t->forget(h->t, h->hub); /* returns as another worker */
        h->here = false;
    }
}

static inline void *flooder(void *ud)
{
    hostile *h = ud;

    while (!atomic_load(&h->stop))
        flooder_turn(h);
    return NULL;
}

#endif
