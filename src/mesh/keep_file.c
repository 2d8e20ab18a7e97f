/* keep_file.c -- a checkpoint of a node: the vector of an iterate, with all
 * that travels with it, and this node's blocks.
 *
 * It is a set of files (store/store.h).  Its manifest is called
 * seat-3-step-000000000120.draft, or .kept, and names the iterate.  The vector
 * is a file as in the note VECTOR.  If blocks change, they are the other file:
 * for each of their matrices the length of the block (u64, little-endian) and
 * the block as in the note BLOCK.
 *
 * Owns nothing: keep.c decides about the sets.  Nothing of a damaged set is
 * used. */
#include "host.h"

#include "io/out.h"
#include "store/store.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#define HEAD                                                                   \
    "\"job\": \"%016" PRIx64 "\", \"iterate\": %" PRIu64                       \
    ", \"lineage\": \"%016" PRIx64 "\", \"turn\": %" PRIu64                    \
    ", \"seat\": %" PRIu32
#define HEAD_READ                                                              \
    "\"job\": \"%16" SCNx64 "\", \"iterate\": %" SCNu64                        \
    ", \"lineage\": \"%16" SCNx64 "\", \"turn\": %" SCNu64                     \
    ", \"seat\": %" SCNu32

/* What a manifest says besides its files. */
typedef struct head {
    uint64_t job, turn;
    kofn_iterate_id at;
    uint32_t seat;
} head;

/* ---- sets ---------------------------------------------------------------- */

static kf_store set_of(const kf_host *h, const kf_kept *k,
                       char name[KF_STORE_NAME])
{
    assert(h->opt.keep);
    snprintf(name, KF_STORE_NAME, "seat-%u-step-%012llu.%s", k->seat,
             (unsigned long long)k->turn, k->whole ? "kept" : "draft");
    return (kf_store){.folder = h->opt.keep,
                      .name = name,
                      .remedy = "remove the file .kept of that step: the node "
                                "takes its state from the other nodes, or "
                                "starts anew if none has one"};
}

/* Returns false if the text is not that of a checkpoint. */
static bool read_head(const kf_store *s, head *out)
{
    const char *from = strstr(s->text, "\"job\": ");

    return from && sscanf(from, HEAD_READ, &out->job, &out->at.step,
                          &out->at.lineage, &out->turn, &out->seat) == 5;
}

kofn_status kf_kept_remove(const kf_host *h, const kf_kept *k)
{
    char name[KF_STORE_NAME];
    kf_store s = set_of(h, k, name);
    kofn_status st = kf_store_look(&s);

    if (st != KOFN_NOMEM) /* of a damaged one the manifest alone is removed */
        st = kf_store_remove(&s);
    kf_store_close(&s);
    return st;
}

kofn_status kf_kept_rename(const kf_host *h, const kf_kept *k,
                           const kf_kept *to)
{
    char from[KF_STORE_NAME], there[KF_STORE_NAME];
    kf_store s = set_of(h, k, from);

    assert(k->turn == to->turn);
    assert(!k->whole);
    assert(to->whole);
    set_of(h, to, there);
    return kf_store_rename(&s, there);
}

kofn_status kf_kept_put_aside(const kf_host *h, const kf_kept *k)
{
    char name[KF_STORE_NAME], aside[KF_STORE_NAME + 8];
    kf_store s = set_of(h, k, name);

    snprintf(aside, sizeof aside, "%s.damaged", name);
    return kf_store_rename(&s, aside);
}

/* ---- writing ------------------------------------------------------------- */

static kofn_status put_vector(kf_host *h, kf_out *o)
{
    kf_buffer *body;
    size_t bytes;
    kofn_status st;

    TRY(kf_mesh_vector_body(h, &body, &bytes));
    st = kf_out_put(o, body->m.data, bytes);
    kf_buffer_drop(body);
    return st;
}

static kofn_status put_blocks(kf_host *h, kf_out *o)
{
    const kf_mesh_blocks *blocks = &h->blocks;

    for (uint32_t i = 0; i < blocks->operands; i++) {
        uint64_t bytes;
        kf_buffer *body;
        kofn_status st;

        if (kf_borrowed_whole(blocks, i) == 0) /* it does not change */
            continue;
        TRY(kf_borrowed_body(blocks, i, 0, blocks->operand[i].block->rows,
                             &body, &bytes));
        st = kf_out_put(o, &bytes, sizeof bytes);
        if (!st)
            st = kf_out_put(o, body->m.data, bytes);
        kf_buffer_drop(body);
        TRY(st);
    }
    return KOFN_OK;
}

static bool has_blocks(const kf_mesh_blocks *blocks)
{
    for (uint32_t i = 0; i < blocks->operands; i++)
        if (kf_borrowed_whole(blocks, i) > 0)
            return true;
    return false;
}

/* Adds a file to the set.  Its name differs from those of all other sets. */
static kofn_status write_part(kf_host *h, kf_store *s, const char *what,
                              kofn_status (*put)(kf_host *h, kf_out *o))
{
    char name[KF_STORE_NAME], path[KF_STORE_PATH];
    kf_out o;

    snprintf(name, sizeof name, "%.*s-%s.%s",
             (int)(strrchr(s->name, '.') - s->name), s->name, s->id, what);
    TRY(kf_store_add(s, name, path));
    TRY(kf_out_open(&o, path));
    return kf_out_close(&o, put(h, &o));
}

static kofn_status write_parts(kf_host *h, kf_store *s)
{
    TRY(kf_store_begin(s));
    TRY(write_part(h, s, "vector", put_vector));
    return has_blocks(&h->blocks) ? write_part(h, s, "blocks", put_blocks)
                                  : KOFN_OK;
}

kofn_status kf_kept_write(kf_host *h, const kf_kept *k)
{
    char name[KF_STORE_NAME], text[300];
    kf_store s = set_of(h, k, name);
    kofn_status st;

    assert(!k->whole);
    assert(k->seat == h->blocks.seat);
    snprintf(text, sizeof text, "{" HEAD "}", h->disk.keeping.job, k->at.step,
             k->at.lineage, k->turn, k->seat);
    st = kf_store_commit(&s, text, write_parts(h, &s));
    kf_store_close(&s);
    return st;
}

/* ---- reading ------------------------------------------------------------- */

/* Reads file i of the set, if it has from `least` to `most` bytes. */
static kofn_status load(const kf_store *s, size_t i, size_t least, size_t most,
                        kf_buffer **out)
{
    size_t bytes = i < s->files ? s->file[i].bytes : 0;
    char path[KF_STORE_PATH];
    kofn_status st;

    *out = NULL;
    if (bytes < least || bytes > most || bytes % 8 != 0)
        return kf_fail(KOFN_FORMAT, "%s/%s is of nodes with other blocks; %s",
                       s->folder, s->name, s->remedy);
    TRY(kf_buffer_new(out, bytes / 8, 1, KOFN_F64));
    st = kf_store_find(s, i, (*out)->m.data, path);
    if (st) {
        kf_buffer_drop(*out);
        *out = NULL;
    }
    return st;
}

/* Checks all files of a set that was listed as that. */
static kofn_status open_set(const kf_kept *k, kf_store *s)
{
    kofn_status st = kf_store_open(s);
    head is;

    if (st == KOFN_AGAIN)
        return KOFN_IO; /* it was removed */
    TRY(st);
    return read_head(s, &is) && is.seat == k->seat && is.turn == k->turn &&
                   is.at.step == k->at.step && is.at.lineage == k->at.lineage
               ? KOFN_OK
               : kf_fail(KOFN_FORMAT, "%s/%s is not what its name says; %s",
                         s->folder, s->name, s->remedy);
}

kofn_status kf_kept_vector(kf_host *h, const kf_kept *k, kf_buffer **body)
{
    size_t bytes = kf_mesh_vector_bytes(h);
    char name[KF_STORE_NAME];
    kf_store s = set_of(h, k, name);
    kofn_status st = open_set(k, &s);

    *body = NULL;
    if (!st)
        st = load(&s, 0, bytes, bytes, body);
    kf_store_close(&s);
    return st;
}

/* Makes the block of a seat from these numbers, of A and then of its optimizer
 * states, with `each` bytes. */
static kofn_status block_of(const kf_mesh_operand *o, size_t seat,
                            const char *from, size_t each, size_t bytes,
                            kf_block **out)
{
    kofn_status st;

    assert(each > 0);
    assert(bytes % each == 0);
    TRY(kf_data_empty_blocks(&o->resident, o->code, &seat, 1, out));
    st = KOFN_OK;
    for (size_t s = 0; s < bytes / each && !st; s++)
        st = kf_block_write(*out, s, 0, (*out)->rows, from + s * each);
    if (st)
        kf_block_drop(*out);
    else
        (*out)->empty = false;
    return st;
}

/* Finds block i at *at in the file of blocks, and moves *at behind it.  Returns
 * false if it does not fit. */
static bool find_block(const kf_mesh_blocks *blocks, uint32_t i, kf_buffer *all,
                       size_t *at, uint64_t *bytes)
{
    size_t whole = kf_borrowed_whole(blocks, i),
           room = kf_buffer_bytes(all) - *at;

    if (room < sizeof *bytes)
        return false;
    memcpy(bytes, (char *)all->m.data + *at, sizeof *bytes);
    *at += sizeof *bytes + *bytes;
    return *bytes > 0 && *bytes % whole == 0 &&
           *bytes / whole <= 1 + blocks->states &&
           *bytes <= room - sizeof *bytes;
}

static bool blocks_fit(const kf_mesh_blocks *blocks, kf_buffer *all)
{
    uint64_t bytes;
    size_t at = 0;

    for (uint32_t i = 0; i < blocks->operands; i++)
        if (kf_borrowed_whole(blocks, i) > 0 &&
            !find_block(blocks, i, all, &at, &bytes))
            return false;
    return at == kf_buffer_bytes(all);
}

static kofn_status take_blocks(kf_host *h, const kf_kept *k, kf_buffer *all)
{
    uint64_t bytes;
    size_t at = 0;

    if (!blocks_fit(&h->blocks, all))
        return kf_fail(KOFN_FORMAT, "the blocks of a checkpoint do not fit");
    for (uint32_t i = 0; i < h->blocks.operands; i++) {
        kf_mesh_operand *o = &h->blocks.operand[i];
        kf_block *block;

        if (kf_borrowed_whole(&h->blocks, i) == 0)
            continue;
        find_block(&h->blocks, i, all, &at, &bytes);
        TRY(block_of(o, k->seat, (char *)all->m.data + at - bytes,
                     kf_borrowed_whole(&h->blocks, i), bytes, &block));
        kf_block_drop(o->block);
        o->block = block;
    }
    return KOFN_OK;
}

kofn_status kf_kept_take_blocks(kf_host *h, const kf_kept *k)
{
    char name[KF_STORE_NAME];
    kf_store s = set_of(h, k, name);
    kofn_status st = open_set(k, &s);
    kf_buffer *all = NULL;

    if (!st && has_blocks(&h->blocks))
        st = load(&s, 1, 1, SIZE_MAX, &all);
    if (!st && all)
        st = take_blocks(h, k, all);
    kf_buffer_drop(all);
    kf_store_close(&s);
    return st;
}

/* ---- looking ------------------------------------------------------------- */

/* Refuses a checkpoint of another job. */
static kofn_status check_job(const kf_host *h, const char *name, const head *is)
{
    if (is->job != h->disk.keeping.job)
        return kf_fail(
            KOFN_INVAL,
            "%s/%s is of another %s options as then, or another folder",
            h->opt.keep, name,
            h->blocks.changes
                ? "training or release; give the same data, scheme, nodes, "
                  "seed and"
                : "run or release; give the same data, seed and");
    if (h->program.turns && is->turn > h->program.turns)
        return kf_fail(KOFN_INVAL,
                       "%s/%s is of step %llu, and only %llu are wanted now; "
                       "give as many epochs as then, or more",
                       h->opt.keep, name, (unsigned long long)is->turn,
                       (unsigned long long)h->program.turns);
    return KOFN_OK;
}

/* Reads the manifest.  A damaged one is found out later. */
static kofn_status look_at(const kf_host *h, kf_kept *k, bool *local)
{
    char name[KF_STORE_NAME];
    kf_store s = set_of(h, k, name);
    kofn_status st = kf_store_look(&s);
    head is;

    *local = k->whole;
    if (!st && read_head(&s, &is)) {
        st = check_job(h, name, &is);
        k->at = is.at; /* its blocks are compared after the node resumes */
        *local = true;
    }
    kf_store_close(&s);
    return st == KOFN_FORMAT ? KOFN_OK : st;
}

kofn_status kf_kept_look_at(const kf_host *h, const char *name, bool *local,
                            kf_kept *k)
{
    unsigned long long turn;
    unsigned seat;
    int n = 0;

    *local = false;
    if (sscanf(name, "seat-%u-step-%llu%n", &seat, &turn, &n) != 2)
        return KOFN_OK;
    *k = (kf_kept){.turn = turn, .seat = seat, .sound = true};
    k->whole = strcmp(name + n, ".kept") == 0;
    if (!k->whole && strcmp(name + n, ".draft") != 0)
        return KOFN_OK;
    if (h->opt.seat != KOFN_NO_SEAT && h->opt.seat != seat)
        return KOFN_OK;
    return look_at(h, k, local);
}
