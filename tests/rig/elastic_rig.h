/* elastic_rig.h -- a port around another: checks that placed data never move,
 * and sees all results. */
#ifndef KF_TEST_ELASTIC_RIG_H
#define KF_TEST_ELASTIC_RIG_H

#include "rig.h"
#include "scripted_core.h"

#include "run/run.h"

typedef struct watcher {
    kofn_port base, *inner;
    kf_block *block[SCRIPT_WORKERS]; /* the block of each worker */
    uint64_t hash[SCRIPT_WORKERS];
    size_t stores, results;
    void (*seen)(void *ud, const kf_msg *m); /* called for a result */
    void *ud;
} watcher;

static inline uint64_t hash_words(uint64_t h, const void *p, size_t n)
{
    const unsigned char *at = p;

    for (size_t i = 0; i < n; i++) {
        uint64_t x;

        memcpy(&x, at + i * sizeof x, sizeof x);
        h = kf_fnv(h, x ^ x >> 32);
    }
    return h;
}

static inline uint64_t hash_block(const kf_block *b)
{
    uint64_t h = KF_FNV;

    for (size_t l = 0; b->component && l < b->components; l++)
        for (size_t i = 0; i < b->component[l].rows; i++)
            h = hash_words(h, kf_at(&b->component[l], i, 0), b->cols);
    if (b->A) {
        h = hash_words(h, b->first, b->used);
        h = hash_words(h, b->weight, b->components * b->used);
    }
    return h;
}

/* Checks that no placed block has changed (invariant I1). */
static inline void audit_blocks(const watcher *w)
{
    for (size_t i = 0; i < SCRIPT_WORKERS; i++)
        if (w->block[i] && hash_block(w->block[i]) != w->hash[i])
            fail_msg("the block of worker %zu has changed", i);
}

static inline kofn_status watch_send(kofn_port *base, kf_msg *m)
{
    watcher *w = (watcher *)base;

    if (m->type == KF_MSG_STORE) {
        assert_true(m->worker < SCRIPT_WORKERS && !w->block[m->worker]);
        w->block[m->worker] = kf_block_keep(m->block);
        w->hash[m->worker] = hash_block(m->block);
        w->stores++;
    }
    return w->inner->send(w->inner, m);
}

static inline kofn_status watch_wait(kofn_port *base, kofn_time until,
                                     kofn_time atmost, kf_msg *m)
{
    watcher *w = (watcher *)base;
    kofn_status st = w->inner->wait(w->inner, until, atmost, m);

    if (st == KOFN_OK && m->type == KF_MSG_RESULT) {
        w->results++;
        if (w->seen)
            w->seen(w->ud, m);
    }
    return st;
}

static inline kofn_time watch_now(kofn_port *base)
{
    watcher *w = (watcher *)base;

    return w->inner->now(w->inner);
}

static inline kofn_status watch_admit(kofn_port *base, uint32_t *worker)
{
    watcher *w = (watcher *)base;

    audit_blocks(w);
    return w->inner->admit(w->inner, worker);
}

static inline kofn_status watch_remove(kofn_port *base, uint32_t worker)
{
    watcher *w = (watcher *)base;

    audit_blocks(w);
    return w->inner->remove(w->inner, worker);
}

static inline void watch_close(kofn_port *base)
{
    watcher *w = (watcher *)base;

    audit_blocks(w);
    w->inner->close(w->inner);
    for (size_t i = 0; i < SCRIPT_WORKERS; i++)
        kf_block_drop(w->block[i]);
    kf_free(w);
}

static inline watcher *watch_port(bool sim, size_t workers,
                                  const kofn_faults *faults)
{
    watcher *w = numbers(1, sizeof *w);

    assert_ok(sim ? kofn_port_sim(&w->inner, workers, faults)
                  : kofn_port_threads(&w->inner, workers, faults));
    w->base = (kofn_port){.name = "watched",
                          .simulated = w->inner->simulated,
                          .workers = w->inner->workers,
                          .send = watch_send,
                          .wait = watch_wait,
                          .now = watch_now,
                          .close = watch_close,
                          .admit = watch_admit,
                          .remove = watch_remove};
    return w;
}

static inline watcher *rig_watch(rig *r, const rig_kind *k)
{
    watcher *w;

    rig_inputs(r, k);
    w = watch_port(k->sim, k->workers, k->faults);
    assert_ok(kofn_open(&r->job, r->plan, &w->base, k->opt));
    assert_ok(k->sparse ? kofn_place_at(r->job, 0, KOFN_SPARSE(&r->sparse))
                        : kofn_place(r->job, &r->A));
    return w;
}

static const struct {
    size_t P, L;
} sizes[] = {{6, 3}, {7, 4}, {5, 5}, {6, 1}, {8, 3}, {12, 6}};
#define SIZES (sizeof sizes / sizeof *sizes)

#endif
