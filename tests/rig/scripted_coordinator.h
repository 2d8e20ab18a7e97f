/* scripted_coordinator.h -- a coordinator that follows a script, for one
 * worker. It is a transport with a far end that sends WELCOME, STORE, the
 * requested slices, WORK and DISMISS, one after the other, without a thread. */
#ifndef KF_TEST_SCRIPTED_COORDINATOR_H
#define KF_TEST_SCRIPTED_COORDINATOR_H

#include "rig.h"

#include "base/hash.h"
#include "base/lent.h"
#include "wire/wire.h"

#define SCRIPT_BODY ((size_t)1 << 16)

typedef struct scripted {
    kofn_transport base;
    unsigned char block_spec[4096];
    size_t block_spec_bytes;
    struct {
        unsigned char p[4096];
        size_t unit; /* bytes; 0: sends 64 KiB of 'A' instead of the requested
                        units */
    } section[4];
    kf_head work; /* the task, or all 0: none */
    size_t works; /* number of such tasks, one behind the other; 0: one */
    const kofn_faults *faults; /* of the worker, or NULL */
    bool pair;         /* the task brings its block, and none is stored */
    size_t bytes;      /* length of the body; 0: as the head says */
    kf_head asked[16]; /* slices that were not sent */
    size_t first, asks;
    unsigned char body[SCRIPT_BODY];
    int said;
    size_t given, results, failures;
    size_t changed;            /* updates that the worker reports as done */
    const kofn_change *change; /* the change of an UPDATE; NULL: zeros */
    bool forgotten; /* the worker has hung up, which ends the script */
} scripted;

/* Returns a task of a stream with five rows, three columns, and an inner size
 * of six. */
static inline scripted script_pair(void)
{
    return (scripted){.pair = true,
                      .work = {.type = KF_WIRE_WORK,
                               .how = KF_HOW_ROWS,
                               .task = 1,
                               .row = 7,
                               .round = 1,
                               .product = 1,
                               .hi = 5,
                               .rows = 6,
                               .cols = 3,
                               .out_rows = 5,
                               .out_cols = 3}};
}

static inline kofn_status script_send(kofn_transport *t, kofn_peer peer,
                                      const void *head, size_t head_bytes,
                                      const kofn_lent *body, bool urgent)
{
    scripted *o = (scripted *)t;
    kf_head h;

    (void)peer, (void)body, (void)urgent;
    assert_ok(kf_head_read(&h, head, head_bytes));
    if (h.type == KF_WIRE_NEED) {
        assert_true(o->asks < 16);
        o->asked[o->asks++] = h;
    }
    o->results += h.type == KF_WIRE_RESULT;
    o->failures += h.type == KF_WIRE_FAILED && h.status != KOFN_AGAIN;
    o->changed += h.type == KF_WIRE_CHANGED;
    kf_give_back(body);
    return KOFN_OK;
}

static inline size_t script_slice(scripted *o, kf_head *h)
{
    kf_head need = o->asked[o->first++];
    size_t unit = o->section[need.which % 4].unit, bytes;

    h->type = KF_WIRE_SLICE;
    h->block = need.block;
    h->which = need.which;
    h->lo = need.lo;
    h->hi = need.hi;
    if (!unit) {
        h->hi = SCRIPT_BODY / 8;
        memset(o->body, 'A', SCRIPT_BODY);
        return SCRIPT_BODY;
    }
    bytes = unit * (need.hi - need.lo);
    assert_true(need.which < 4 && need.hi * unit <= sizeof o->section[0].p);
    memcpy(o->body, o->section[need.which].p + need.lo * unit, bytes);
    return bytes;
}

/* Makes the script send this block. */
static inline void script_offer(scripted *o, const kf_block *b)
{
    kf_bytes block_spec = {0};

    assert_ok(kf_block_spec_write(b, NULL, &block_spec));
    assert_true(block_spec.n <= sizeof o->block_spec);
    memcpy(o->block_spec, block_spec.p, block_spec.n);
    o->block_spec_bytes = block_spec.n;
    kf_bytes_free(&block_spec);
    for (size_t s = 0; s < kf_wire_sections(b); s++) {
        kf_bytes made = {0};
        size_t units, bytes;
        const void *at;

        assert_true(s < 4);
        kf_wire_section(b, s, &units, &bytes);
        o->section[s].unit = bytes;
        assert_true(units * bytes <= sizeof o->section[s].p);
        if (units) {
            assert_ok(kf_slice_from(b, s, 0, units, &made, &at));
            memcpy(o->section[s].p, at, units * bytes);
        }
        kf_bytes_free(&made);
    }
}

/* Writes the next head, and its body. Returns the length of the body. */
static inline size_t script_says(scripted *o, kf_head *h)
{
    if (o->said == 1) {
        o->said += o->pair ? 2 : 1;
        h->type = KF_WIRE_WELCOME;
        return 0;
    }
    if (o->said == 2) {
        o->said++;
        h->type = KF_WIRE_STORE;
        memcpy(o->body, o->block_spec, o->block_spec_bytes);
        h->block = kf_hash(~h->job, o->body, o->block_spec_bytes);
        h->row = o->work.row;
        return o->block_spec_bytes;
    }
    if (o->first < o->asks)
        return script_slice(o, h);
    h->type = KF_WIRE_DISMISS;
    if (o->said > 3 || !o->work.type)
        return 0;
    *h = o->work;
    h->task += (uint32_t)o->given;
    o->said += ++o->given >= o->works;
    memset(o->body, 0, sizeof o->body);
    if (o->change)
        kf_wire_write_change(o->body, o->change);
    if (!o->pair)
        h->block = kf_hash(~(uint64_t)5, o->block_spec, o->block_spec_bytes);
    if (o->bytes)
        return o->bytes;
    if (o->pair)
        return (h->out_rows * h->rows + h->rows * h->cols) * 8;
    return h->rows * h->cols * 8;
}

static inline kofn_status script_wait(kofn_transport *t, kofn_time atmost,
                                      kofn_packet *k)
{
    scripted *o = (scripted *)t;
    kf_head h = {.type = KF_WIRE_DISMISS};

    if (o->forgotten)
        return kf_fail(KOFN_TRANSPORT, "the worker has hung up");
    *k = (kofn_packet){.what = KOFN_CAME, .peer = 1};
    if (o->said == 0) {
        o->said++;
        return KOFN_OK;
    }
    if (o->said == 4 && atmost == 0)
        return KOFN_AGAIN; /* it is not dismissed while it works */
    h.job = 5;
    k->what = KOFN_PACKET;
    k->body_bytes = script_says(o, &h);
    h.job = 5;
    h.body_sum = 0;
    if (k->body_bytes) {
        k->body = o->body;
        h.body_sum = kf_hash(h.job, o->body, k->body_bytes);
    }
    k->head_bytes = KF_HEAD;
    kf_head_write(k->head, &h);
    return KOFN_OK;
}

static inline void script_forget(kofn_transport *t, kofn_peer peer)
{
    (void)peer;
    ((scripted *)t)->forgotten = true;
}

static inline void script_release(kofn_transport *t, void *own)
{
    (void)t, (void)own;
}

static inline void script_close(kofn_transport *t, kofn_time linger)
{
    (void)t, (void)linger;
}

/* Runs a worker from hello to dismissal with this coordinator. */
static inline kofn_status script_serve(scripted *o, size_t memory)
{
    kofn_serve_options opt = KOFN_SERVE_OPTIONS_INIT;

    o->base = (kofn_transport){.size = sizeof(kofn_transport),
                               .name = "test",
                               .send = script_send,
                               .wait = script_wait,
                               .release = script_release,
                               .forget = script_forget,
                               .close = script_close};
    o->said = 0;
    o->forgotten = false;
    o->given = o->first = o->asks = o->results = o->failures = 0;
    o->changed = 0;
    opt.memory = memory;
    opt.faults = o->faults;
    return kofn_serve(&o->base, &opt);
}

#endif
