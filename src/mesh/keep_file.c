/* keep_file.c -- a checkpoint file: the vector of an iterate, with all that
 * travels with it, and this node's blocks.
 *
 * Its name is seat-3-step-000000000120.draft, or .kept.  Its content,
 * little-endian:
 *
 *      0  "kofnkept"   8  u64  job          32  u64  complete turns (steps of
 *                                                    the program)
 *     16  u64  number of the iterate        40  u32  seat, u32 matrices
 *     24  u64  ... and its lineage          48  u64  bytes of the vector
 *
 * Then follow the vector as in the note VECTOR and, for each matrix, the length
 * of its block (u64, 0 if it does not change) and the block as in the note
 * BLOCK.  The file ends with a hash of all before it: XXH3 part by part, each
 * seeded with the hash so far.
 *
 * Owns nothing: keep.c decides about the files.  A file is first written under
 * another name.  Nothing of a damaged file is used. */
#include "host.h"

#include "io/out.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define LONGEST 4096 /* of a path */
#define MAGIC "kofnkept"

typedef struct head {
    char magic[8];
    uint64_t job;
    kofn_iterate_id at;
    uint64_t turn;
    uint32_t seat, operands;
    uint64_t vector;
} head;
_Static_assert(sizeof(head) == 56, "as it lies in files");

/* ---- names --------------------------------------------------------------- */

static kofn_status path_of(const kf_host *h, const kf_kept *k,
                           char out[LONGEST])
{
    int n = snprintf(out, LONGEST, "%s/seat-%u-step-%012llu.%s", h->opt.keep,
                     k->seat, (unsigned long long)k->turn,
                     k->whole ? "kept" : "draft");

    assert(h->opt.keep);
    return n > 0 && n < LONGEST
               ? KOFN_OK
               : kf_fail(KOFN_INVAL, "the folder's name has more than %d bytes",
                         LONGEST - 64);
}

static kofn_status fail(const char *verb, const char *path)
{
    return kf_fail(KOFN_IO, "cannot %s %s: %s", verb, path, strerror(errno));
}

kofn_status kf_kept_remove(const kf_host *h, const kf_kept *k)
{
    char path[LONGEST];

    TRY(path_of(h, k, path));
    return unlink(path) == 0 || errno == ENOENT ? KOFN_OK
                                                : fail("remove", path);
}

kofn_status kf_kept_rename(const kf_host *h, const kf_kept *k,
                           const kf_kept *to)
{
    char from[LONGEST], there[LONGEST];

    assert(k->turn == to->turn);
    assert(!k->whole);
    assert(to->whole);
    TRY(path_of(h, k, from));
    TRY(path_of(h, to, there));
    return rename(from, there) == 0 ? KOFN_OK : fail("rename", from);
}

kofn_status kf_kept_put_aside(const kf_host *h, const kf_kept *k)
{
    char path[LONGEST], aside[LONGEST + 8];

    TRY(path_of(h, k, path));
    snprintf(aside, sizeof aside, "%s.damaged", path);
    return rename(path, aside) == 0 ? KOFN_OK : fail("rename", path);
}

/* ---- writing ------------------------------------------------------------- */

static kofn_status put(kf_out *o, uint64_t *sum, const void *bytes, size_t n)
{
    *sum = kf_hash(*sum, bytes, n);
    return kf_out_put(o, bytes, n);
}

static kofn_status put_vector(kf_host *h, kf_out *o, uint64_t *sum)
{
    kf_buffer *body;
    size_t bytes;
    kofn_status st;

    TRY(kf_mesh_vector_body(h, &body, &bytes));
    st = put(o, sum, body->m.data, bytes);
    kf_buffer_drop(body);
    return st;
}

static kofn_status put_block(kf_host *h, uint32_t operand, kf_out *o,
                             uint64_t *sum)
{
    uint64_t bytes = 0;
    kf_buffer *body;
    kofn_status st;

    assert(operand < h->program.operands);
    if (kf_borrowed_whole(h, operand) == 0) /* it does not change */
        return put(o, sum, &bytes, sizeof bytes);
    TRY(kf_borrowed_body(h, operand, 0, h->blocks.operand[operand].block->rows,
                         &body, &bytes));
    st = put(o, sum, &bytes, sizeof bytes);
    if (!st)
        st = put(o, sum, body->m.data, bytes);
    kf_buffer_drop(body);
    return st;
}

static kofn_status put_all(kf_host *h, const kf_kept *k, kf_out *o)
{
    head first = {.magic = MAGIC,
                  .job = h->disk.keeping.job,
                  .at = k->at,
                  .turn = k->turn,
                  .seat = k->seat,
                  .operands = (uint32_t)h->program.operands,
                  .vector = kf_mesh_vector_bytes(h)};
    uint64_t sum = 0;

    TRY(put(o, &sum, &first, sizeof first));
    TRY(put_vector(h, o, &sum));
    for (uint32_t i = 0; i < h->program.operands; i++)
        TRY(put_block(h, i, o, &sum));
    return kf_out_put(o, &sum, sizeof sum);
}

kofn_status kf_kept_write(kf_host *h, const kf_kept *k)
{
    char path[LONGEST];
    kf_out o;

    assert(!k->whole);
    assert(k->seat == h->blocks.seat);
    TRY(path_of(h, k, path));
    TRY(kf_out_open(&o, path));
    return kf_out_close(&o, put_all(h, k, &o));
}

/* ---- reading ------------------------------------------------------------- */

static kofn_status damaged(const char *path)
{
    return kf_fail(KOFN_FORMAT,
                   "%s is damaged or incomplete; remove it, and the node's "
                   "state is rebuilt from the other nodes",
                   path);
}

/* Reads a file into a buffer.  Its length is checked before memory is
 * allocated.  A file that ends early is damaged. */
static kofn_status read_whole(const char *path, kf_buffer **out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    kofn_status st = KOFN_OK;
    struct stat s;
    size_t have = 0;

    *out = NULL;
    if (fd < 0)
        return fail("read", path);
    if (fstat(fd, &s) != 0)
        st = fail("read", path);
    else if (s.st_size < (off_t)(sizeof(head) + 8) || s.st_size % 8 != 0)
        st = damaged(path);
    if (!st)
        st = kf_buffer_new(out, (size_t)s.st_size / 8, 1, KOFN_F64);
    while (!st && have < (size_t)s.st_size) {
        ssize_t n =
            read(fd, (char *)(*out)->m.data + have, (size_t)s.st_size - have);

        if (n < 0 && errno != EINTR)
            st = fail("read", path);
        else if (n == 0)
            st = damaged(path);
        have += n > 0 ? (size_t)n : 0;
    }
    close(fd);
    return st;
}

/* Reads the next part.  Returns false if the file is too short. */
static bool next_part(kf_buffer *all, size_t *at, size_t n, uint64_t *sum,
                      const void **part)
{
    size_t bytes = kf_buffer_bytes(all);

    if (n > bytes || *at > bytes - n)
        return false;
    *part = (char *)all->m.data + *at;
    *sum = kf_hash(*sum, *part, n);
    *at += n;
    return true;
}

/* Offsets of the vector and the blocks in a file, in bytes. */
typedef struct places {
    size_t vector, *block, *bytes;
} places;

/* Finds the offsets of the vector and the blocks in a checkpoint.  Returns
 * false if any size, mark or checksum is wrong: the file is damaged then. */
static bool find_places(const kf_host *h, kf_buffer *all, const kf_kept *k,
                        places *p)
{
    uint64_t sum = 0, bytes;
    size_t at = 0, component;
    const void *part;
    head first;

    if (!next_part(all, &at, sizeof first, &sum, &part))
        return false;
    memcpy(&first, part, sizeof first);
    p->vector = at;
    if (first.vector != kf_mesh_vector_bytes(h) || first.seat != k->seat ||
        first.at.step != k->at.step || first.at.lineage != k->at.lineage ||
        first.turn != k->turn || first.operands != h->program.operands ||
        !next_part(all, &at, first.vector, &sum, &part))
        return false;
    for (uint32_t i = 0; i < h->program.operands; i++) {
        if (!next_part(all, &at, sizeof bytes, &sum, &part))
            return false;
        memcpy(&bytes, part, sizeof bytes);
        component = kf_borrowed_whole(h, i);
        if (bytes != component && bytes != 2 * component)
            return false;
        p->block[i] = at;
        p->bytes[i] = bytes;
        if (bytes && !next_part(all, &at, bytes, &sum, &part))
            return false;
    }
    return at + 8 == kf_buffer_bytes(all) &&
           memcmp((char *)all->m.data + at, &sum, 8) == 0;
}

static kofn_status view_of(kf_buffer *all, size_t at, size_t bytes,
                           kf_buffer **out)
{
    kofn_matrix part = {(char *)all->m.data + at, bytes / 8, 1, 1, KOFN_F64};

    assert(at % 8 == 0);
    assert(at + bytes <= kf_buffer_bytes(all));
    return kf_buffer_view(out, all, &part);
}

typedef kofn_status taker(kf_host *h, const kf_kept *k, kf_buffer *all,
                          const places *p, kf_buffer **out);

/* Reads and checks a file, and calls `take` with its offsets and `out`. */
static kofn_status with_file(kf_host *h, const kf_kept *k, taker *take,
                             kf_buffer **out)
{
    size_t n = h->program.operands;
    places p = {.block = kf_zero(n, sizeof *p.block),
                .bytes = kf_zero(n, sizeof *p.bytes)};
    kf_buffer *all = NULL;
    char path[LONGEST];
    kofn_status st = p.block && p.bytes ? KOFN_OK : KOFN_NOMEM;

    if (!st)
        st = path_of(h, k, path);
    if (!st)
        st = read_whole(path, &all);
    if (!st && !find_places(h, all, k, &p))
        st = damaged(path);
    if (!st)
        st = take(h, k, all, &p, out);
    kf_buffer_drop(all);
    kf_free(p.block);
    kf_free(p.bytes);
    return st;
}

static kofn_status view_vector(kf_host *h, const kf_kept *k, kf_buffer *all,
                               const places *p, kf_buffer **out)
{
    (void)k;
    return view_of(all, p->vector, kf_mesh_vector_bytes(h), out);
}

kofn_status kf_kept_vector(kf_host *h, const kf_kept *k, kf_buffer **body)
{
    *body = NULL;
    return with_file(h, k, view_vector, body);
}

/* Makes the block of a seat from these numbers.  If there are twice the bytes
 * of a half, those of a velocity follow. */
static kofn_status block_of(const kf_mesh_operand *o, size_t seat,
                            const char *from, size_t half, size_t bytes,
                            kf_block **out)
{
    kofn_status st;

    assert(half > 0);
    assert(bytes == half || bytes == 2 * half);
    TRY(kf_data_empty_blocks(&o->resident, o->code, &seat, 1, out));
    st = kf_block_write(*out, false, 0, (*out)->rows, from);
    if (!st && bytes > half)
        st = kf_block_write(*out, true, 0, (*out)->rows, from + half);
    if (st)
        kf_block_drop(*out);
    else
        (*out)->empty = false;
    return st;
}

static kofn_status take_blocks(kf_host *h, const kf_kept *k, kf_buffer *all,
                               const places *p, kf_buffer **out)
{
    (void)out;
    for (uint32_t i = 0; i < h->program.operands; i++) {
        kf_mesh_operand *o = &h->blocks.operand[i];
        kf_block *block;

        if (p->bytes[i] == 0)
            continue;
        TRY(block_of(o, k->seat, (char *)all->m.data + p->block[i],
                     kf_borrowed_whole(h, i), p->bytes[i], &block));
        kf_block_drop(o->block);
        o->block = block;
    }
    return KOFN_OK;
}

kofn_status kf_kept_take_blocks(kf_host *h, const kf_kept *k)
{
    return with_file(h, k, take_blocks, NULL);
}

kofn_status kf_kept_look_at(const kf_host *h, const char *name, bool *local,
                            kf_kept *k)
{
    char path[LONGEST];
    unsigned long long turn;
    unsigned seat;
    int n = 0, fd;
    head first = {.job = 0};
    ssize_t got;

    *local = false;
    if (sscanf(name, "seat-%u-step-%llu%n", &seat, &turn, &n) != 2)
        return KOFN_OK;
    *k = (kf_kept){.turn = turn, .seat = seat, .sound = true};
    k->whole = strcmp(name + n, ".kept") == 0;
    if (!k->whole && strcmp(name + n, ".draft") != 0)
        return KOFN_OK;
    if (h->opt.seat != KOFN_NO_SEAT && h->opt.seat != seat)
        return KOFN_OK;
    TRY(path_of(h, k, path));
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fail("read", path);
    got = read(fd, &first, sizeof first);
    close(fd);
    *local = k->whole; /* a damaged file is found out later */
    if (got != (ssize_t)sizeof first || memcmp(first.magic, MAGIC, 8) != 0)
        return KOFN_OK;
    if (first.job != h->disk.keeping.job)
        return kf_fail(
            KOFN_INVAL,
            "%s is of another %s options as then, or another folder", path,
            h->program.change
                ? "training or release; give the same data, scheme, nodes, "
                  "seed and"
                : "run or release; give the same data, seed and");
    if (h->program.turns && first.turn > h->program.turns)
        return kf_fail(KOFN_INVAL,
                       "%s is of step %llu, and only %llu are wanted now; give "
                       "as many epochs as then, or more",
                       path, (unsigned long long)first.turn,
                       (unsigned long long)h->program.turns);
    k->at = first.at; /* its blocks are compared after the node resumes */
    *local = true;
    return KOFN_OK;
}
