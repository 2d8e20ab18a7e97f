/* gz.c -- what gzip has compressed (RFC 1952), through zlib.
 *
 * A megabyte may hold a gigabyte, so it is inflated in steps.  Before each step
 * the reader of the format looks at the inflated bytes.  It refuses them, or
 * says how many bytes it wants next.  Never are more bytes inflated than that.
 *
 * Several members in a row are one file, as for gunzip.  Bytes behind the last
 * member are ignored if they do not begin a member, such as the zeros that fill
 * a block of a tape.  A member behind zeros is refused: gunzip would ignore it,
 * and other programs would not.
 *
 * The caller owns the inflated bytes.
 */
#include "io.h"

#include <assert.h>
#include <zlib.h>

#define MOST ((size_t)1 << 30)  /* zlib counts in 32 bits */
#define FIRST ((size_t)1 << 17) /* bytes that are inflated unseen */
#define SWELL 1040              /* no byte becomes more than 1032 */

typedef struct flow {
    z_stream z;
    const kf_input *in;
    size_t fed; /* bytes of it */
    unsigned char *to;
    size_t room, out;
    bool over;
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

/* Some more of it; zlib's answer. */
static int some(flow *f)
{
    size_t most = kf_min(f->room - f->out, MOST);
    int answer;

    assert(f->out < f->room);
    assert(f->fed <= f->in->length);
    if (f->z.avail_in == 0) {
        size_t n = kf_min(f->in->length - f->fed, MOST);

        f->z.next_in = (unsigned char *)(uintptr_t)f->in->data + f->fed;
        f->z.avail_in = (unsigned)n;
        f->fed += n;
    }
    f->z.next_out = f->to + f->out;
    f->z.avail_out = (unsigned)most;
    answer = inflate(&f->z, Z_NO_FLUSH);
    f->out += most - f->z.avail_out;
    return answer;
}

static kofn_status damaged(const flow *f, int answer)
{
    size_t at = f->fed - f->z.avail_in;

    assert(f->z.avail_in <= f->fed);
    if (answer == Z_MEM_ERROR)
        return KOFN_NOMEM; /* kf_new has said so */
    if (answer == Z_BUF_ERROR && at == f->in->length)
        return kf_fail(KOFN_FORMAT,
                       "the compressed file ends at byte %zu without its end "
                       "mark: it is cut off; copy it again",
                       at);
    return kf_fail(KOFN_FORMAT,
                   "byte %zu: what gzip compressed is damaged (%s); copy the "
                   "file again",
                   at, f->z.msg ? f->z.msg : "no more than that is known");
}

/* True if a member begins here, whole or cut off in its first two bytes. */
static bool is_member(const kf_input *in, size_t at)
{
    return at < in->length && in->data[at] == 0x1f &&
           (at + 1 == in->length || in->data[at + 1] == 0x8b);
}

/* Begins the next member, if one follows. */
static kofn_status next_member(flow *f)
{
    size_t at = f->fed - f->z.avail_in, zeros = 0;

    assert(f->z.avail_in <= f->fed);
    if (is_member(f->in, at)) {
        inflateReset(&f->z);
        return KOFN_OK;
    }
    f->over = true;
    while (at < f->in->length && !f->in->data[at])
        at++, zeros++;
    if (!zeros || !is_member(f->in, at))
        return KOFN_OK;
    return kf_fail(KOFN_FORMAT,
                   "byte %zu: compressed data follows %zu zeros, and programs "
                   "disagree on whether it belongs to the file; unpack it "
                   "with gunzip and look",
                   at, zeros);
}

/* On until all the room is used or everything is there. */
static kofn_status fill(flow *f)
{
    while (!f->over && f->out < f->room) {
        int answer = some(f);

        if (answer == Z_STREAM_END)
            TRY(next_member(f));
        else if (answer != Z_OK)
            return damaged(f, answer);
    }
    return KOFN_OK;
}

/* Room for `room` bytes in all, but no more than could ever come. */
static kofn_status widen(flow *f, size_t room)
{
    unsigned char *to;
    size_t most;

    if (!kf_mul(f->in->length, SWELL, &most))
        most = SIZE_MAX;
    room = kf_min(room, most);
    assert(f->out <= room);
    to = kf_new(room, 1);
    if (!to)
        return KOFN_NOMEM;
    if (f->out)
        memcpy(to, f->to, f->out);
    kf_free(f->to);
    f->to = to;
    f->room = room;
    return KOFN_OK;
}

static kofn_status run(flow *f, const char *path, kf_part_fn *look)
{
    kf_input part = *f->in;
    size_t room = FIRST;

    part.path = path;
    for (;;) {
        TRY(widen(f, room));
        TRY(fill(f));
        if (f->over)
            return KOFN_OK;
        part.data = f->to;
        part.length = f->out;
        TRY(look(&part, &room));
    }
}

kofn_status kf_io_unpack(const kf_input *in, const char *path, kf_part_fn *look,
                         unsigned char **bytes, size_t *n)
{
    flow f = {.z = {.zalloc = take, .zfree = give}, .in = in};
    kofn_status st;

    *bytes = NULL;
    if (inflateInit2(&f.z, 16 + MAX_WBITS) != Z_OK) /* 16: gzip's heads */
        return KOFN_NOMEM;
    st = run(&f, path, look);
    inflateEnd(&f.z);
    *bytes = f.to;
    *n = f.out;
    return st;
}

/* ---- how much to have next ----------------------------------------------- */

#define FREE ((size_t)16 << 20) /* bytes of text that may have no number */
#define EACH 256                /* bytes more that a number may take     */

kofn_status kf_io_part_exact(const kf_input *part, size_t data,
                             const size_t shape[2], size_t size, size_t *room)
{
    size_t total;

    if (!kf_mul(shape[0], shape[1], &total) || !kf_mul(total, size, &total) ||
        !kf_add(total, data, &total))
        total = SIZE_MAX;
    if (part->length > total)
        return kf_fail(KOFN_FORMAT,
                       "the header and its numbers have %zu bytes, and more "
                       "follow; kofn reads one array from a file",
                       total);
    if (!kf_add(total, 1, room)) /* one more, to see that it is over */
        *room = total;
    return KOFN_OK;
}

kofn_status kf_io_part_text(const kf_input *part, kf_part_fn *count,
                            size_t *room)
{
    kf_input lines = *part; /* whole ones, of a text that is not short */
    size_t numbers = 0, most, twice;

    if (lines.length < FREE)
        lines.length = 0;
    while (lines.length && lines.data[lines.length - 1] != '\n')
        lines.length--;
    if (lines.length)
        TRY(count(&lines, &numbers));
    if (!kf_mul(numbers, EACH, &most) || !kf_add(most, FREE, &most))
        most = SIZE_MAX;
    if (part->length >= most)
        return kf_fail(KOFN_FORMAT,
                       "the first %zu unpacked bytes have at most %zu numbers "
                       "in whole lines, and more follow; if that is meant, "
                       "unpack the file with gunzip",
                       part->length, numbers);
    *room = kf_mul(part->length, 2, &twice) ? kf_min(twice, most) : most;
    return KOFN_OK;
}
