/* gz.c -- what gzip has compressed (RFC 1952), through zlib.
 *
 * It is gone through twice: first to count, so that the room that is taken is
 * what really comes out, whatever the file says of it, and then to keep.
 * Checksums are looked at both times.  One file after the other in it are one,
 * as gunzip has it.
 */
#include "io.h"

#include <zlib.h>

#define MOST ((size_t)1 << 30) /* zlib counts in 32 bits */
#define SCRATCH ((size_t)1 << 15)

typedef struct flow {
    z_stream z;
    const kf_input *in;
    size_t fed;        /* bytes of it                       */
    unsigned char *to; /* NULL: into the scratch, to count  */
    size_t room, out;
    unsigned char scratch[SCRATCH];
} flow;

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

static bool is_all(const flow *f)
{
    return f->z.avail_in == 0 && f->fed == f->in->length;
}

/* Some more of it; zlib's answer. */
static int some(flow *f)
{
    size_t most = f->to ? kf_min(f->room - f->out, MOST) : SCRATCH;
    int answer;

    if (f->z.avail_in == 0) {
        size_t n = kf_min(f->in->length - f->fed, MOST);

        f->z.next_in = (unsigned char *)(uintptr_t)f->in->data + f->fed;
        f->z.avail_in = (unsigned)n;
        f->fed += n;
    }
    f->z.next_out = f->to ? f->to + f->out : f->scratch;
    f->z.avail_out = (unsigned)most;
    answer = inflate(&f->z, Z_NO_FLUSH);
    f->out += most - f->z.avail_out;
    return answer;
}

static kofn_status damaged(const flow *f, int answer)
{
    size_t at = f->fed - f->z.avail_in;

    if (answer == Z_MEM_ERROR)
        return KOFN_NOMEM; /* kf_new has said so */
    if (answer == Z_BUF_ERROR && is_all(f))
        return kf_fail(KOFN_FORMAT,
                       "the compressed file ends at byte %zu, before its end "
                       "was told: it is cut off; copy it again",
                       at);
    return kf_fail(KOFN_FORMAT,
                   "byte %zu: what gzip compressed is damaged (%s); copy the "
                   "file again",
                   at, f->z.msg ? f->z.msg : "no more than that is known");
}

/* All of it, once. */
static kofn_status run(flow *f)
{
    int answer = Z_OK;
    kofn_status st = KOFN_OK;

    f->z = (z_stream){.zalloc = take, .zfree = give};
    if (inflateInit2(&f->z, 16 + MAX_WBITS) != Z_OK) /* 16: gzip's heads */
        return KOFN_NOMEM;
    while (!st && !(answer == Z_STREAM_END && is_all(f))) {
        if (answer == Z_STREAM_END)
            inflateReset(&f->z); /* one more file */
        answer = some(f);
        if (answer != Z_OK && answer != Z_STREAM_END)
            st = damaged(f, answer);
    }
    inflateEnd(&f->z);
    return st;
}

static kofn_status unpack(flow *f, unsigned char **bytes)
{
    TRY(run(f));
    f->room = f->out;
    *bytes = f->to = kf_new(f->room, 1);
    if (!f->to)
        return KOFN_NOMEM;
    f->fed = f->out = 0;
    TRY(run(f));
    return f->out == f->room
               ? KOFN_OK
               : kf_fail(KOFN_IO, "the file was changed while it was read");
}

kofn_status kf_io_unpack(const kf_input *in, unsigned char **bytes, size_t *n)
{
    flow *f = kf_zero(1, sizeof *f);
    kofn_status st;

    *bytes = NULL;
    if (!f)
        return KOFN_NOMEM;
    f->in = in;
    st = unpack(f, bytes);
    *n = f->room;
    kf_free(f);
    return st;
}
