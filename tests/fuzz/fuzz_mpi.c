/* fuzz_mpi.c -- fuzzes the frames and bodies that other ranks of an MPI job
 * may send, in any order and with odd fields. fuzz-iterations: 200000 */
#include "draw.h"

/* part of the plugins, not of the library */
#include "mpi/report.c"

#include "mpi/receive.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RANKS 3
#define BODIES 16
#define PART 4096 /* mpi.c has 16 MiB */

/* A receive that was begun and has not ended, as MPI keeps it. */
typedef struct pending {
    kf_mpi_op *op;
    void *into;
    size_t bytes;
    bool frame;
} pending;

static pending begun[BODIES * 64];
static size_t begins;

size_t kf_mpi_parts(size_t bytes)
{
    return kf_ceil_div(bytes, PART);
}

kofn_status kf_mpi_reserve(kf_mpi_world *w, size_t n)
{
    (void)w;
    return n <= BODIES * 64 - begins ? KOFN_OK : KOFN_NOMEM;
}

kofn_status kf_mpi_receive(kf_mpi_world *w, kf_mpi_place from, void *into,
                           size_t bytes, kf_mpi_op *op)
{
    (void)w;
    MUST(from.rank > 0 && from.rank <= RANKS);
    for (size_t at = 0; at < bytes; at += PART)
        begun[begins++] =
            (pending){op, into ? (char *)into + at : NULL,
                      kf_min(PART, bytes - at), from.tag < TAG_BODY};
    return KOFN_OK;
}

kofn_status kf_mpi_post(channel *l, kind k, const void *head, size_t head_bytes,
                        const kofn_lent *body)
{
    (void)l, (void)k, (void)head, (void)head_bytes;
    MUST(!body);
    return KOFN_OK;
}

void kf_mpi_say(channel *l, kind k)
{
    (void)l, (void)k;
}

static kofn_status no(kofn_status st, const char *fmt, ...)
{
    (void)fmt;
    return st;
}

/* ---- incoming data ------------------------------------------------------- */

static size_t some_frame(draw *d, unsigned char *bytes)
{
    frame f = {.magic = next(d, 32) ? FRAME_MAGIC : next(d, 256),
               .kind = (uint16_t)(next(d, 4) ? PACKET : next(d, 8)),
               .head_bytes = (uint16_t)next(d, 128),
               .taken = {next(d, 4), next(d, 4)}};
    size_t body = next(d, 99);

    f.body_bytes = size_of(d, body);
    if (next(d, 4) == 0) {
        f.body_tag = TAG_BODY + next(d, 3);
        f.body_bytes = size_of(d, SHORT_BODY + next(d, 64) * 64);
        body = 0;
    }
    if (next(d, 16) == 0)
        f.head_bytes = (uint16_t)size_of(d, f.head_bytes);
    memset(bytes, 'x', FRAME_MAX);
    memcpy(bytes, &f, sizeof f);
    return next(d, 16) ? sizeof f + kf_min(f.head_bytes, 256) + body
                       : next(d, 200);
}

static void finish(draw *d)
{
    size_t i = next(d, 256) % begins;
    pending p = begun[i];
    size_t n = p.bytes;

    memmove(&begun[i], &begun[i + 1], (--begins - i) * sizeof *begun);
    if (p.frame) {
        unsigned char bytes[FRAME_MAX];

        n = some_frame(d, bytes);
        MUST(n <= p.bytes);
        memcpy(p.into, bytes, n);
    } else if (p.into) {
        n = next(d, 8) ? n : next(d, 99) % (n + 1);
        memset(p.into, 'y', n);
    }
    p.op->finish(p.op, n, next(d, 64) != 1);
}

static void receive_packet(transport *t, draw *d)
{
    kofn_packet k;

    if (!kf_mpi_next(t, &k))
        return;
    MUST(k.peer < RANKS);
    MUST(k.head_bytes <= KOFN_HEAD_MAX && k.body_bytes <= t->base.body_max);
    MUST(!k.body_bytes == !k.own);
    for (size_t i = 0; k.own && i < k.body_bytes; i++)
        MUST(((unsigned char *)k.own)[i] == 'x' ||
             ((unsigned char *)k.own)[i] == 'y');
    if (k.own)
        t->host->drop(k.own);
    if (next(d, 64) == 1)
        kf_mpi_hush(&t->peer[k.peer]);
}

/* Ends all receives, so that all memory is returned. */
static void end(transport *t)
{
    kofn_packet k;

    while (begins) {
        pending p = begun[--begins];

        if (!p.frame)
            p.op->finish(p.op, p.bytes, true);
    }
    for (size_t i = 0; i < RANKS; i++)
        kf_mpi_hush(&t->peer[i]);
    MUST(!kf_mpi_next(t, &k));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const kf_mpi_host host = {no, kf_zero, kf_new, kf_free};
    static peer q[RANKS];
    transport t = {.base = {.body_max = 64 << 10},
                   .host = &host,
                   .peers = RANKS,
                   .peer = q,
                   .live = RANKS};
    draw d = {data, size};

    watch_memory();
    begins = 0;
    for (int i = 0; i < RANKS; i++) {
        q[i] = (peer){.t = &t, .rank = i + 1, .live = true};
        MUST(kf_mpi_came(&q[i]) == KOFN_OK);
        for (int l = 0; l < CHANNELS; l++) {
            kf_mpi_channel(&q[i].channel[l], &q[i], TAG_CHANNEL + l);
            kf_mpi_listen(&q[i].channel[l]);
        }
    }
    while (d.left) {
        if (begins)
            finish(&d);
        else
            d.left = 0;
        receive_packet(&t, &d);
    }
    end(&t);
    MUST(held == 0);
    return 0;
}
