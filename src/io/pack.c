/* pack.c -- compresses bytes through zlib and writes them in base64 (RFC 4648),
 * so that a page of HTML can have them.
 *
 * Owns zlib's stream and a buffer until it is closed.  Borrows the file. */
#include "pack.h"

#include <assert.h>
#include <zlib.h>

#define ROOM ((size_t)1 << 15)
#define MOST ((size_t)1 << 30) /* zlib counts in 32 bits */

static void *take(void *ud, unsigned n, unsigned size)
{
    (void)ud;
    return kf_new(n, size);
}

static void give(void *ud, void *p)
{
    (void)ud;
    kf_free(p);
}

kofn_status kf_pack_open(kf_pack *p, kf_out *out)
{
    z_stream *z;

    *p = (kf_pack){.out = out};
    p->bytes = kf_new(ROOM, 1);
    p->stream = z = kf_zero(1, sizeof *z);
    if (!p->bytes || !z)
        return kf_pack_close(p, KOFN_NOMEM);
    z->zalloc = take;
    z->zfree = give;
    if (deflateInit(z, Z_BEST_COMPRESSION) != Z_OK) {
        kf_free(p->stream);
        p->stream = NULL;
        return kf_pack_close(p, KOFN_NOMEM);
    }
    return KOFN_OK;
}

/* ---- base64 -------------------------------------------------------------- */

static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwx"
                            "yz0123456789+/";

/* Writes four characters for one to three bytes. */
static void encode(const unsigned char in[3], size_t n, char out[4])
{
    unsigned bits = (unsigned)in[0] << 16 | (n > 1 ? in[1] : 0u) << 8 |
                    (n > 2 ? in[2] : 0u);

    assert(n >= 1 && n <= 3);
    for (size_t i = 0; i < 4; i++)
        out[i] = i > n ? '=' : digit[bits >> (18 - 6 * i) & 63];
}

static kofn_status put_text(kf_pack *p, const unsigned char *in, size_t n)
{
    char out[4];

    for (size_t i = 0; i < n; i++) {
        p->rest[p->rests++] = in[i];
        if (p->rests < 3)
            continue;
        encode(p->rest, 3, out);
        p->rests = 0;
        TRY(kf_out_put(p->out, out, sizeof out));
    }
    return KOFN_OK;
}

/* ---- compression --------------------------------------------------------- */

/* Gives zlib its input until it has taken all, and to the end of the stream if
 * `how` is Z_FINISH. */
static kofn_status squeeze(kf_pack *p, int how)
{
    z_stream *z = p->stream;

    do {
        z->next_out = p->bytes;
        z->avail_out = ROOM;
        if (deflate(z, how) == Z_STREAM_ERROR)
            return kf_fail(KOFN_STATE, "zlib cannot compress: %s",
                           z->msg ? z->msg : "no reason is known");
        TRY(put_text(p, p->bytes, ROOM - z->avail_out));
    } while (z->avail_out == 0);
    return KOFN_OK;
}

kofn_status kf_pack_put(kf_pack *p, const void *bytes, size_t n)
{
    z_stream *z = p->stream;

    z->next_in = (unsigned char *)(uintptr_t)bytes;
    while (n) {
        z->avail_in = (unsigned)kf_min(n, MOST);
        n -= z->avail_in;
        TRY(squeeze(p, Z_NO_FLUSH));
    }
    return KOFN_OK;
}

static kofn_status finish(kf_pack *p)
{
    char out[4];

    TRY(squeeze(p, Z_FINISH));
    if (!p->rests)
        return KOFN_OK;
    encode(p->rest, p->rests, out);
    return kf_out_put(p->out, out, sizeof out);
}

kofn_status kf_pack_close(kf_pack *p, kofn_status st)
{
    if (!st)
        st = finish(p);
    if (p->stream)
        deflateEnd(p->stream);
    kf_free(p->stream);
    kf_free(p->bytes);
    *p = (kf_pack){.out = NULL};
    return st;
}
