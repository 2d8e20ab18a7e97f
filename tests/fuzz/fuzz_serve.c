/* fuzz_serve.c -- fuzzes a worker with packets from a coordinator: blocks and
 * their slices, tasks, changes and cancellations. Their order and fields are
 * arbitrary, and their checksums are right.
 *
 * fuzz-iterations: 60000 */
#include "packets.h"

#include "base/lent.h"
#include "data/kernel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MEMORY ((size_t)64 << 10)
#define BODY_MOST 4096

/* A coordinator that an input controls. */
typedef struct drawn_coordinator {
    kofn_transport base;
    draw d;
    kofn_peer peer;
    bool there, greeted, stored;
    uint64_t job;
    const sample *block; /* the block that was stored last */
    uint64_t block_id;
    kf_head asked;           /* the last NEED */
    uint8_t body[BODY_MOST]; /* the body being made */
    size_t out;              /* bodies that were not returned */
} drawn_coordinator;

static kofn_status coordinator_send(kofn_transport *t, kofn_peer peer,
                                    const void *head, size_t head_bytes,
                                    const kofn_lent *body, bool urgent)
{
    drawn_coordinator *o = (drawn_coordinator *)t;
    const void *data = body ? body->data : NULL;
    size_t bytes = body ? body->bytes : 0;
    kf_head h;

    (void)urgent;
    MUST(kf_head_read(&h, head, head_bytes) == KOFN_OK);
    MUST(kf_wire_check(h.job, h.body_sum, data, bytes) == KOFN_OK);
    MUST(h.type <= KF_WIRE_CHANGED);
    if (o->there && peer == o->peer && o->d.left && o->d.data[0] % 16 == 9)
        return KOFN_AGAIN; /* the channel is full */
    if (h.type == KF_WIRE_NEED)
        o->asked = h;
    kf_give_back(body);
    return o->there && peer == o->peer ? KOFN_OK : KOFN_TRANSPORT;
}

/* Writes a block specification, sometimes with changed bytes. */
static size_t block_spec(drawn_coordinator *o, kf_head *h)
{
    const sample *s = &samples()[next(&o->d, BLOCKS)];
    unsigned changes = next(&o->d, 8);

    o->block = s;
    memcpy(o->body, s->block_spec.p, s->block_spec.n);
    for (unsigned i = 4; i < changes; i++) {
        size_t at = (next(&o->d, 256) + 256 * next(&o->d, 4)) % s->block_spec.n;

        o->body[at] = (uint8_t)next(&o->d, 256);
    }
    h->block = kf_hash(~o->job, o->body, s->block_spec.n) + (changes == 3);
    o->block_id = h->block;
    h->row = next(&o->d, 3);
    return s->block_spec.n;
}

/* Writes the requested slice. */
static size_t right_slice(drawn_coordinator *o, kf_head *h)
{
    const kf_block *b = o->block->block;
    kf_bytes made = {0};
    size_t units, bytes;
    const void *at;

    h->block = o->asked.block;
    h->which = o->asked.which;
    h->lo = o->asked.lo;
    h->hi = o->asked.hi;
    if (h->which >= kf_wire_sections(b))
        return 0;
    kf_wire_section(b, h->which, &units, &bytes);
    if (h->lo >= h->hi || h->hi > units || units * bytes > BODY_MOST)
        return 0;
    MUST(kf_slice_from(b, h->which, h->lo, h->hi, &made, &at) == KOFN_OK);
    memcpy(o->body, at, (h->hi - h->lo) * bytes);
    kf_bytes_free(&made);
    return (h->hi - h->lo) * bytes;
}

/* Writes the requested slice, or nearly that. */
static size_t slice(drawn_coordinator *o, kf_head *h)
{
    size_t n = o->block ? right_slice(o, h) : 0;

    if (next(&o->d, 4))
        return n;
    h->which = size_of(&o->d, h->which);
    h->lo = size_of(&o->d, h->lo);
    h->hi = size_of(&o->d, h->hi);
    for (unsigned i = next(&o->d, 8); n && i > 0; i--)
        o->body[next(&o->d, 256) % n] = (uint8_t)next(&o->d, 256);
    return next(&o->d, 2) ? n : next(&o->d, 256);
}

/* Makes a task that fits the block. */
static void right_work(const sample *s, kf_head *h)
{
    const kf_block *b = s->block;
    const kf_subset *sum = b->subset;
    const kf_kernel *k = kf_kernel_for(s->plan);

    h->how = k->how;
    h->dtype = b->dtype;
    h->hi = sum        ? sum->span
            : k->inner ? (k->left ? b->rows : b->cols)
                       : (k->left ? 1 : b->rows);
    fair_task(h, sum ? sum->components : b->components, b->rows,
              sum ? sum->X.cols + 1 : b->cols, 1);
    h->hi = sum ? 0 : h->hi;
}

/* Writes n numbers of a body, most of them 0. */
static size_t numbers_of(drawn_coordinator *o, const kf_head *h, size_t n)
{
    size_t bytes = n * (h->dtype == KOFN_F64 ? 8 : 4);

    if (bytes > BODY_MOST)
        return 0;
    for (size_t i = 0; i < bytes; i++)
        o->body[i] = (uint8_t)(next(&o->d, 4) ? 0 : next(&o->d, 256));
    return bytes;
}

/* Makes a task that brings both of its operands, or nearly. */
static size_t pair(drawn_coordinator *o, kf_head *h)
{
    h->block = 0;
    h->how = KF_HOW_ROWS;
    h->dtype = next(&o->d, 2) ? KOFN_F64 : KOFN_F32;
    h->lo = 0;
    h->hi = h->out_rows = 1 + next(&o->d, 12);
    h->rows = 1 + next(&o->d, 12);
    h->cols = h->out_cols = 1 + next(&o->d, 12);
    switch (next(&o->d, 16)) {
    case 1:
        h->hi = h->out_rows = size_of(&o->d, h->out_rows);
        break;
    case 2:
        h->rows = size_of(&o->d, h->rows);
        break;
    case 3: /* a result that is much longer than its operands */
        h->dtype = KOFN_F64;
        h->rows = 1;
        h->hi = h->out_rows = h->cols = h->out_cols = 255;
        return numbers_of(o, h, 510);
    case 4:
        h->how = (kf_how)next(&o->d, 6);
        h->lo = size_of(&o->d, h->lo);
        h->out_cols = size_of(&o->d, h->out_cols);
        break;
    case 5:
        return next(&o->d, 256);
    case 6:
        return 0;
    }
    if (h->out_rows > 64 || h->rows > 64 || h->cols > 64)
        return next(&o->d, 2) ? 0 : BODY_MOST;
    return numbers_of(o, h, h->out_rows * h->rows + h->rows * h->cols);
}

static size_t work(drawn_coordinator *o, kf_head *h)
{
    unsigned kind;

    h->task = next(&o->d, 8);
    h->round = next(&o->d, 3);
    h->input = next(&o->d, 4);
    h->product = next(&o->d, 3);
    h->row = next(&o->d, 4);
    kind = next(&o->d, 16);
    h->updates = kind == 1;
    h->state = kind == 2;
    if (kind > 10 && kind < 14)
        return pair(o, h);
    h->block = o->block_id + (next(&o->d, 16) == 1);
    if (o->block)
        right_work(o->block, h);
    if (next(&o->d, 2)) {
        h->how = (kf_how)next(&o->d, KF_HOW_READ + 1);
        h->dtype = next(&o->d, 8) ? KOFN_F64 : KOFN_F32;
        h->lo = size_of(&o->d, h->lo);
        h->hi = size_of(&o->d, h->hi);
        h->row = (uint32_t)size_of(&o->d, h->row);
        h->rows = size_of(&o->d, h->rows);
        h->cols = size_of(&o->d, h->cols);
        h->out_rows = size_of(&o->d, h->out_rows);
        h->out_cols = size_of(&o->d, h->out_cols);
    }
    if (next(&o->d, 8) == 0 || h->rows > 64 || h->cols > 64)
        return next(&o->d, 3) ? 0 : next(&o->d, 256);
    return numbers_of(o, h, h->rows * h->cols);
}

/* Makes a change of the block, or strips of it, that fit or nearly fit. */
static size_t change(drawn_coordinator *o, kf_head *h)
{
    const kf_block *b = o->block ? o->block->block : NULL;
    const kofn_change c = {sizeof c, next(&o->d, 6), {{1}}, {-0.5, 0.5}};
    bool all = next(&o->d, 2);
    size_t n;

    h->block = o->block_id;
    h->updates = next(&o->d, 4);
    h->state = (uint8_t)(next(&o->d, 4) * next(&o->d, 2));
    h->operand = next(&o->d, 16) == 1;
    h->dtype = b ? b->dtype : KOFN_F64;
    if (!b || h->type == KF_WIRE_WHOLE)
        return 0;
    if (h->type == KF_WIRE_UPDATE) {
        h->rows = 1 + next(&o->d, 3);
        h->cols = b->rows * (all ? b->components : 1);
        h->out_cols = b->cols * (next(&o->d, 2) ? b->components : 1);
        n = h->rows * (h->cols + h->out_cols);
    } else {
        h->lo = next(&o->d, 3);
        h->hi = h->lo + 1 + next(&o->d, 3);
        h->cols = b->cols;
        h->rows = b->components * (h->hi - h->lo);
        n = h->rows * h->cols;
    }
    if (next(&o->d, 4) == 1) {
        h->lo = size_of(&o->d, h->lo);
        h->hi = size_of(&o->d, h->hi);
        h->rows = size_of(&o->d, h->rows);
        h->cols = size_of(&o->d, h->cols);
        h->out_cols = size_of(&o->d, h->out_cols);
    }
    if (h->type == KF_WIRE_STRIPS)
        return numbers_of(o, h, n);
    n = numbers_of(o, h, n + KF_WIRE_CHANGE / kf_dtype_size(h->dtype));
    if (n)
        kf_wire_write_change(o->body, &c);
    return n;
}

static size_t words(drawn_coordinator *o)
{
    size_t n = next(&o->d, 40);

    for (size_t i = 0; i < n; i++)
        o->body[i] = (uint8_t)next(&o->d, 256);
    return n;
}

static size_t compose(drawn_coordinator *o, kf_head *h)
{
    static const kf_wire often[] = {
        KF_WIRE_STORE,  KF_WIRE_SLICE,   KF_WIRE_SLICE,   KF_WIRE_SLICE,
        KF_WIRE_WORK,   KF_WIRE_WORK,    KF_WIRE_WORK,    KF_WIRE_CANCEL,
        KF_WIRE_INJECT, KF_WIRE_WELCOME, KF_WIRE_REFUSED, KF_WIRE_DISMISS,
        KF_WIRE_HELLO,  KF_WIRE_RESULT};
    static const kf_wire changes[] = {KF_WIRE_UPDATE, KF_WIRE_STRIPS,
                                      KF_WIRE_WHOLE};
    static const kf_wire fleet[] = {KF_WIRE_INVITE, KF_WIRE_INVITE,
                                    KF_WIRE_RELEASE, KF_WIRE_DRAIN};
    unsigned which = next(&o->d, 64);

    if (!o->greeted || !o->stored) { /* it begins well most often */
        bool well = next(&o->d, 16) != 1;

        which = well ? o->greeted ? 0 : 9 : which;
        o->stored = o->greeted;
        o->greeted = true;
    }
    h->type = which < 14   ? often[which]
              : which < 20 ? fleet[next(&o->d, 4)]
              : which > 55 ? changes[which % 3]
              : which % 2  ? KF_WIRE_SLICE
                           : KF_WIRE_WORK;
    if ((h->type == KF_WIRE_DISMISS || h->type == KF_WIRE_REFUSED) &&
        next(&o->d, 4))
        h->type = KF_WIRE_STORE;
    h->job = o->job + (next(&o->d, 64) == 1);
    switch (h->type) {
    case KF_WIRE_STORE:
        return block_spec(o, h);
    case KF_WIRE_SLICE:
        return slice(o, h);
    case KF_WIRE_WORK:
        return work(o, h);
    case KF_WIRE_UPDATE:
    case KF_WIRE_STRIPS:
    case KF_WIRE_WHOLE:
        return change(o, h);
    case KF_WIRE_INVITE:
    case KF_WIRE_RELEASE:
        h->job += next(&o->d, 4);
        h->lo = next(&o->d, 3) * 1000;
        h->which = next(&o->d, 2);
        return 0;
    case KF_WIRE_CANCEL:
        h->task = next(&o->d, 8);
        return 0;
    case KF_WIRE_INJECT:
        h->which = next(&o->d, 3);
        h->lo = next(&o->d, 4); /* no slower: there is no time to wait */
        return 0;
    case KF_WIRE_WELCOME:
        h->job = o->job += next(&o->d, 2);
        return 0;
    default:
        return words(o);
    }
}

static void deliver(drawn_coordinator *o, kofn_packet *k, kf_head h, size_t n)
{
    h.body_sum = n ? kf_hash(h.job, o->body, n) : 0;
    h.body_sum ^= n && next(&o->d, 128) == 1;
    *k = (kofn_packet){.what = KOFN_PACKET,
                       .peer = o->peer,
                       .head_bytes = KF_HEAD,
                       .body_bytes = n};
    kf_head_write(k->head, &h);
    if (n == 0)
        return;
    k->own = malloc(n); /* exact size, for the sanitizer */
    MUST(k->own);
    memcpy(k->own, o->body, n);
    k->body = next(&o->d, 2) ? k->own : NULL; /* or it must be fetched */
    o->out++;
}

static kofn_status coordinator_wait(kofn_transport *t, kofn_time atmost,
                                    kofn_packet *k)
{
    drawn_coordinator *o = (drawn_coordinator *)t;
    kf_head h = {.type = KF_WIRE_WELCOME};
    size_t n;

    (void)atmost;
    if (!o->there) {
        o->there = true;
        o->greeted = o->stored = false;
        *k = (kofn_packet){.what = KOFN_CAME, .peer = ++o->peer};
        return KOFN_OK;
    }
    if (!o->d.left)
        return kf_fail(KOFN_TRANSPORT, "that is all");
    if (next(&o->d, 100) == 1) {
        o->there = false;
        *k = (kofn_packet){.what = KOFN_WENT, .peer = o->peer};
        return KOFN_OK;
    }
    if (next(&o->d, 8) == 7)
        return KOFN_AGAIN;
    n = compose(o, &h);
    deliver(o, k, h, n);
    return KOFN_OK;
}

static kofn_status coordinator_fetch(kofn_transport *t, kofn_packet *k,
                                     void *into)
{
    (void)t;
    memcpy(into, k->own, k->body_bytes);
    return KOFN_OK;
}

static void coordinator_release(kofn_transport *t, void *own)
{
    MUST(((drawn_coordinator *)t)->out-- > 0);
    free(own);
}

static void coordinator_forget(kofn_transport *t, kofn_peer peer)
{
    if (peer == ((drawn_coordinator *)t)->peer)
        ((drawn_coordinator *)t)->there = false;
}

static void coordinator_close(kofn_transport *t, kofn_time linger)
{
    (void)linger;
    MUST(((drawn_coordinator *)t)->out == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    drawn_coordinator o = {.base = {.size = sizeof(kofn_transport),
                                    .name = "fuzz",
                                    .send = coordinator_send,
                                    .wait = coordinator_wait,
                                    .fetch = coordinator_fetch,
                                    .release = coordinator_release,
                                    .forget = coordinator_forget,
                                    .close = coordinator_close},
                           .d = {data, size},
                           .job = 5};
    kofn_serve_options opt = KOFN_SERVE_OPTIONS_INIT;
    size_t before;
    kofn_status st;

    watch_memory();
    samples();
    before = held;
    most = held + ((size_t)384 << 10);
    opt.memory = MEMORY;
    opt.staged = true;
    opt.stay = size % 2 == 1;
    st = kofn_serve(&o.base, &opt);
    MUST(st == KOFN_OK || *kofn_errmsg());
    MUST(held == before);
    most = SIZE_MAX;
    return 0;
}
