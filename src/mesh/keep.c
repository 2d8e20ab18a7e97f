/* keep.c -- what a node keeps on disk, so that a mesh that is lost goes on.
 *
 * Of every so many turns, and of the last, it writes the vector, with all that travels
 * with it, and its own blocks: a *draft*, of which it tells the others (KEPT), where
 * errors are looked for when its blocks were compared with theirs (sketch.c).  When all
 * members have told that they have drafts of the same iterate it is *kept*, and older
 * files are removed, but for the one that was kept before: should the last be damaged, a
 * node begins with that.  Where a member has no blocks, or wrong ones, all try again some
 * turns later.  So whatever anybody has kept, all who were members then have at least a
 * draft of.  A node that is started again begins at the iterate that it kept; others may
 * have kept a later one, which it takes from them, as whoever is behind does, and finds
 * its blocks of that among its drafts.
 *
 *     seat-3-step-000000000120.draft    or .kept, and in it, little-endian,
 *     0  "kofnkept"   8  u64  job          32  u64  turns that are over
 *    16  u64  number of the iterate        40  u32  seat, u32 matrices
 *    24  u64  ... and its line             48  u64  bytes of the vector
 *     then the vector as a VECTOR's body, of each matrix u64 bytes and the block as a
 *     BLOCK's body, and XXH3 of all that, each part seeded by what those before give.
 *
 * Owns the files in the folder whose names begin with its seat.  A file is
 * written under another name first, and a damaged one is put aside and never
 * used. */
#include "host.h"

#include "io/out.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define LONGEST 4096 /* of a path */
#define MAGIC "kofnkept"
#define HEDGES 8 /* twice as many as sketches of all are waited for */

typedef struct head {
    char magic[8];
    uint64_t job;
    kofn_mark at;
    uint64_t turn;
    uint32_t seat, operands;
    uint64_t vector;
} head;
_Static_assert(sizeof(head) == 56, "as it lies in files");

/* ---- names --------------------------------------------------------------- */

static kofn_status path_of(const kf_host *h, const kf_kept *k, bool whole,
                           char out[LONGEST])
{
    int n = snprintf(out, LONGEST, "%s/seat-%u-step-%012llu.%s", h->opt.keep,
                     k->seat, (unsigned long long)k->turn,
                     whole ? "kept" : "draft");

    return n > 0 && n < LONGEST
               ? KOFN_OK
               : kf_fail(KOFN_INVAL, "the folder's name has more than %d bytes",
                         LONGEST - 64);
}

static kofn_status fail(const char *verb, const char *path)
{
    return kf_fail(KOFN_IO, "cannot %s %s: %s", verb, path, strerror(errno));
}

/* Where matrices do not change every iterate is a turn. */
static uint64_t turn_of(const kf_host *h)
{
    return h->program.change ? h->changing.turn : h->at.t;
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

    if (kf_lent_whole(h, operand) == 0) /* it does not change */
        return put(o, sum, &bytes, sizeof bytes);
    TRY(kf_lent_body(h, operand, 0, h->operand[operand].block->rows, &body,
                     &bytes));
    st = put(o, sum, &bytes, sizeof bytes);
    if (!st)
        st = put(o, sum, body->m.data, bytes);
    kf_buffer_drop(body);
    return st;
}

static kofn_status put_all(kf_host *h, kf_out *o)
{
    head first = {.magic = MAGIC,
                  .job = h->keeping.job,
                  .at = h->at,
                  .turn = turn_of(h),
                  .seat = h->seat,
                  .operands = (uint32_t)h->program.operands,
                  .vector = kf_mesh_vector_bytes(h)};
    uint64_t sum = 0;

    TRY(put(o, &sum, &first, sizeof first));
    TRY(put_vector(h, o, &sum));
    for (uint32_t i = 0; i < h->program.operands; i++)
        TRY(put_block(h, i, o, &sum));
    return kf_out_put(o, &sum, sizeof sum);
}

/* ---- files that there are ------------------------------------------------ */

static void forget(kf_keeping *k, size_t i)
{
    k->file[i] = k->file[--k->files];
}

static kofn_status remember(kf_keeping *k, kf_kept file)
{
    for (size_t i = k->files; i > 0; i--)
        if (k->file[i - 1].turn == file.turn &&
            k->file[i - 1].seat == file.seat &&
            k->file[i - 1].whole == file.whole)
            forget(k, i - 1);
    TRY(kf_grow(&k->file, &k->cap, k->files, sizeof *k->file));
    k->file[k->files++] = file;
    return KOFN_OK;
}

/* The last that was kept before that turn; 0: none. */
static uint64_t kept_before(const kf_keeping *k, uint64_t turn)
{
    uint64_t last = 0;

    for (size_t i = 0; i < k->files; i++)
        if (k->file[i].whole && k->file[i].turn < turn)
            last = k->file[i].turn > last ? k->file[i].turn : last;
    return last;
}

static kofn_status discard(kf_host *h, size_t i)
{
    const kf_kept *f = &h->keeping.file[i];
    char path[LONGEST];

    TRY(path_of(h, f, f->whole, path));
    if (unlink(path) != 0 && errno != ENOENT)
        return fail("remove", path);
    forget(&h->keeping, i);
    return KOFN_OK;
}

/* Removes files of turns before that, or of the same turn under another name,
 * but for what was kept before. */
static kofn_status sweep(kf_host *h, uint64_t last)
{
    kf_keeping *k = &h->keeping;
    const uint64_t before = kept_before(k, last);

    for (size_t i = k->files; i > 0; i--) {
        const kf_kept *f = &k->file[i - 1];

        if (f->turn < last ? !f->whole || f->turn != before
                           : f->turn == last && !f->whole)
            TRY(discard(h, i - 1));
    }
    return KOFN_OK;
}

/* Members that have told of it, and this node. */
static size_t count_holders(const kf_host *h, kofn_mark at)
{
    size_t n = 1;

    for (size_t i = 0; i < h->routes; i++) {
        const kf_route *r = &h->route[i];
        bool has = false, twice = false;

        for (size_t s = 0; s < KF_KEPT && !r->over; s++)
            has |= r->kept[s].t == at.t && r->kept[s].line == at.line;
        for (size_t j = 0; j < i; j++)
            twice |= h->route[j].incarnation == r->incarnation;
        n += has && !twice;
    }
    return n;
}

static kofn_status keep_those_that_all_have(kf_host *h)
{
    kf_keeping *k = &h->keeping;
    kofn_node_view view;

    kf_node_look(h->node, &view);
    for (size_t i = 0; i < k->files && view.seat != KOFN_NO_SEAT; i++) {
        const kf_kept *f = &k->file[i];
        char from[LONGEST], to[LONGEST];
        kf_kept now = *f;

        if (f->whole || !f->sound || count_holders(h, f->at) < view.members)
            continue;
        TRY(path_of(h, f, false, from));
        TRY(path_of(h, f, true, to));
        if (rename(from, to) != 0)
            return fail("rename", from);
        now.whole = true;
        forget(k, i);
        k->kept = now.turn > k->kept ? now.turn : k->kept;
        TRY(remember(k, now)); /* in the place of that of a former attempt */
        return sweep(h, now.turn);
    }
    return KOFN_OK;
}

/* ---- keeping ------------------------------------------------------------- */

/* One that was to be kept some turns before is not, and had the time? */
static bool is_missed(const kf_host *h, uint64_t turn)
{
    uint64_t after = turn % h->opt.every, again = kf_max(h->opt.every / 8, 1);

    return turn > after && after % again == 0 &&
           kept_before(&h->keeping, turn) < turn - after &&
           kf_host_now(h) - h->keeping.tried >= HEDGES * kf_host_hedge(h);
}

bool kf_keep_is_due(const kf_host *h)
{
    uint64_t turn = turn_of(h);
    uint64_t each = h->program.change ? h->course.stages - h->course.after : 1;

    return h->opt.keep && h->seat != KOFN_NO_SEAT && turn > 0 &&
           h->at.t == turn * each &&
           (turn % h->opt.every == 0 || turn == h->program.turns ||
            is_missed(h, turn));
}

/* Nobody is told of blocks before they were compared. */
kofn_status kf_keep_turn(kf_host *h)
{
    kf_kept now = {.at = h->at, .turn = turn_of(h), .seat = h->seat};
    kf_keeping *k = &h->keeping;
    char path[LONGEST];
    kf_out o;

    if (!kf_keep_is_due(h))
        return KOFN_OK;
    TRY(path_of(h, &now, false, path));
    TRY(kf_out_open(&o, path));
    TRY(kf_out_close(&o, put_all(h, &o)));
    TRY(remember(k, now));
    k->tried = kf_host_now(h);
    for (size_t i = k->files; i > 0; i--) /* drafts that not all members had */
        if (!k->file[i - 1].whole &&
            k->file[i - 1].turn + 2 * h->opt.every < now.turn)
            TRY(discard(h, i - 1));
    return kf_sketch_vouches(h) ? kf_keep_sound(h, now.turn) : KOFN_OK;
}

/* What is wrong in a block stays wrong, so that blocks which are right now were so when
 * they were written, as long as they are the same (kf_keep_forget). */
kofn_status kf_keep_sound(kf_host *h, uint64_t turn)
{
    kf_keeping *k = &h->keeping;

    for (size_t i = 0; i < k->files; i++) {
        kf_kept *f = &k->file[i];

        if (f->turn > turn || f->sound || f->whole)
            continue;
        f->sound = true;
        TRY(kf_mail_to_all(h, &(kf_note){.type = KF_NOTE_KEPT,
                                         .from = h->opt.incarnation,
                                         .at = f->at}));
    }
    return keep_those_that_all_have(h);
}

kofn_status kf_keep_forget(kf_host *h)
{
    kf_keeping *k = &h->keeping;

    for (size_t i = k->files; i > 0; i--)
        if (!k->file[i - 1].sound && !k->file[i - 1].whole)
            TRY(discard(h, i - 1));
    return KOFN_OK;
}

kofn_status kf_keep_receive(kf_host *h, kf_route *r, kofn_mark at)
{
    if (!h->opt.keep)
        return KOFN_OK;
    r->kept[r->tells++ % KF_KEPT] = at;
    return keep_those_that_all_have(h);
}

/* ---- reading ------------------------------------------------------------- */

static kofn_status damaged(const char *path)
{
    return kf_fail(KOFN_FORMAT,
                   "%s is damaged, or was cut short; remove it, and what this "
                   "node had is made of what the others have",
                   path);
}

/* Reads a file into a buffer.  Its length is checked before memory is asked
 * for; a file that ends early is damaged. */
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

/* The next part; false: there is not so much. */
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

/* Where its vector and blocks lie in a file, in bytes. */
typedef struct places {
    size_t vector, *block, *bytes;
} places;

/* Finds the places of the vector and the blocks in a kept file.  False where
 * any size, mark or checksum is not what it must be: the file is damaged
 * then. */
static bool find_places(const kf_host *h, kf_buffer *all, const kf_kept *k,
                        places *p)
{
    uint64_t sum = 0, bytes;
    size_t at = 0, lane;
    const void *part;
    head first;

    if (!next_part(all, &at, sizeof first, &sum, &part))
        return false;
    memcpy(&first, part, sizeof first);
    p->vector = at;
    if (first.vector != kf_mesh_vector_bytes(h) || first.seat != k->seat ||
        first.at.t != k->at.t || first.at.line != k->at.line ||
        first.turn != k->turn || first.operands != h->program.operands ||
        !next_part(all, &at, first.vector, &sum, &part))
        return false;
    for (uint32_t i = 0; i < h->program.operands; i++) {
        if (!next_part(all, &at, sizeof bytes, &sum, &part))
            return false;
        memcpy(&bytes, part, sizeof bytes);
        lane = kf_lent_whole(h, i);
        if (bytes != lane && bytes != 2 * lane)
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

    return kf_buffer_view(out, all, &part);
}

typedef kofn_status taker(kf_host *h, const kf_kept *k, kf_buffer *all,
                          const places *p);

/* Whole, and `take` is told where all lies in it. */
static kofn_status with_file(kf_host *h, const kf_kept *k, taker *take)
{
    size_t n = h->program.operands;
    places p = {.block = kf_zero(n, sizeof *p.block),
                .bytes = kf_zero(n, sizeof *p.bytes)};
    kf_buffer *all = NULL;
    char path[LONGEST];
    kofn_status st = p.block && p.bytes ? KOFN_OK : KOFN_NOMEM;

    if (!st)
        st = path_of(h, k, k->whole, path);
    if (!st)
        st = read_whole(path, &all);
    if (!st && !find_places(h, all, k, &p))
        st = damaged(path);
    if (!st)
        st = take(h, k, all, &p);
    kf_buffer_drop(all);
    kf_free(p.block);
    kf_free(p.bytes);
    return st;
}

static kofn_status take_vector(kf_host *h, const kf_kept *k, kf_buffer *all,
                               const places *p)
{
    kf_buffer *body;
    kofn_status st;

    TRY(view_of(all, p->vector, kf_mesh_vector_bytes(h), &body));
    st = kf_mesh_vector_take(h, k->at, body);
    kf_buffer_drop(body);
    return st;
}

static kofn_status take_blocks(kf_host *h, const kf_kept *k, kf_buffer *all,
                               const places *p)
{
    kofn_status st = KOFN_OK;

    for (uint32_t i = 0; i < h->program.operands && !st; i++) {
        kf_mesh_operand *o = &h->operand[i];
        kf_block *block = NULL;
        kf_buffer *body;

        if (p->bytes[i] == 0)
            continue;
        TRY(view_of(all, p->block[i], p->bytes[i], &body));
        st = kf_lent_block(o, k->seat, body, p->bytes[i] > kf_lent_whole(h, i),
                           &block);
        kf_buffer_drop(body);
        if (st)
            return st;
        kf_block_drop(o->block);
        o->block = block;
    }
    return KOFN_OK;
}

/* As an iterate that another sent. */
static kofn_status restore(kf_host *h, const kf_kept *k, kf_buffer *all,
                           const places *p)
{
    kf_note note = {.type = KF_NOTE_VECTOR, .at = kf_back_mark(h, k->at)};
    bool take = false;
    kf_buffer *body;
    kofn_status st;

    TRY(view_of(all, p->vector, kf_mesh_vector_bytes(h), &body));
    note.digest = kf_host_digest(h, note.at.t, body->m.data,
                                 kf_at(&body->m, KOFN_SCALARS, 0));
    st = kf_node_step(h->node, &(kf_node_event){.type = KF_NODE_RESTORED,
                                                .now = kf_host_now(h),
                                                .note = &note});
    if (!st)
        st = kf_host_act(h, &take);
    if (!st && take)
        st = kf_mesh_vector_take(h, note.at, body);
    kf_buffer_drop(body);
    return st;
}

kofn_status kf_keep_meet(kf_host *h, kofn_mark at)
{
    kf_keeping *k = &h->keeping;

    for (size_t i = 0; i < k->files && h->program.change; i++) {
        const kf_kept f = k->file[i];
        kofn_mark mark = kf_back_mark(h, f.at);
        kofn_status st;

        if (f.turn <= h->changing.turn || mark.t != at.t ||
            mark.line != at.line)
            continue;
        st = with_file(h, &f, restore);
        if (st != KOFN_FORMAT && st != KOFN_IO)
            return st;
        forget(k, i); /* others have it, too */
        return KOFN_OK;
    }
    return KOFN_OK;
}

kofn_status kf_keep_load(kf_host *h, uint32_t seat)
{
    kf_keeping *k = &h->keeping;

    for (size_t i = 0; i < k->files; i++) {
        const kf_kept f = k->file[i];
        kofn_status st;

        if (f.seat != seat || !kf_changing_knows(h, f.turn, f.at.line))
            continue;
        st = with_file(h, &f, take_blocks);
        if (st == KOFN_NOMEM)
            return st;
        if (st) { /* others have it, too */
            forget(k, i--);
            continue;
        }
        return kf_changing_fresh(h, seat, f.turn);
    }
    return KOFN_AGAIN;
}

/* ---- going on ------------------------------------------------------------ */

/* *ours: it is such a file. */
static kofn_status look_at(kf_host *h, const char *name, bool *ours, kf_kept *k)
{
    char path[LONGEST];
    unsigned long long turn;
    unsigned seat;
    int n = 0, fd;
    head first = {.job = 0};
    ssize_t got;

    *ours = false;
    if (sscanf(name, "seat-%u-step-%llu%n", &seat, &turn, &n) != 2)
        return KOFN_OK;
    *k = (kf_kept){.turn = turn, .seat = seat, .sound = true};
    k->whole = strcmp(name + n, ".kept") == 0;
    if (!k->whole && strcmp(name + n, ".draft") != 0)
        return KOFN_OK;
    if (h->opt.seat != KOFN_NO_SEAT && h->opt.seat != seat)
        return KOFN_OK;
    TRY(path_of(h, k, k->whole, path));
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fail("read", path);
    got = read(fd, &first, sizeof first);
    close(fd);
    *ours = k->whole; /* it is seen later that it is damaged */
    if (got != (ssize_t)sizeof first || memcmp(first.magic, MAGIC, 8) != 0)
        return KOFN_OK;
    if (first.job != h->keeping.job)
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
    k->at = first.at; /* its blocks are compared when it is gone on with */
    *ours = true;
    return KOFN_OK;
}

/* Of its seat, or of that whose files are the newest. */
static void choose_seat(kf_host *h)
{
    kf_keeping *k = &h->keeping;
    const kf_kept *best = NULL;

    for (size_t i = 0; i < k->files; i++) {
        const kf_kept *f = &k->file[i];

        if (!best || f->whole > best->whole ||
            (f->whole == best->whole && f->turn > best->turn))
            best = f;
    }
    if (!best)
        return;
    h->opt.seat = best->seat;
    for (size_t i = k->files; i > 0; i--)
        if (k->file[i - 1].seat != h->opt.seat)
            forget(k, i - 1);
}

static kofn_status list_files(kf_host *h)
{
    DIR *folder = opendir(h->opt.keep);
    kofn_status st = KOFN_OK;
    const struct dirent *e;

    if (!folder)
        return fail("look into", h->opt.keep);
    while (!st && (e = readdir(folder))) {
        bool ours;
        kf_kept k;

        st = look_at(h, e->d_name, &ours, &k);
        if (!st && ours)
            st = remember(&h->keeping, k);
    }
    closedir(folder);
    return st;
}

/* Puts a damaged file aside, so that it is not begun with again. */
static kofn_status put_aside(kf_host *h, const kf_kept *k)
{
    char path[LONGEST], aside[LONGEST + 8];

    TRY(path_of(h, k, true, path));
    snprintf(aside, sizeof aside, "%s.damaged", path);
    return rename(path, aside) == 0 ? KOFN_OK : fail("rename", path);
}

/* Begin with the last that was kept before that turn, or where that is damaged with the
 * one before. */
static kofn_status begin(kf_host *h, uint64_t before)
{
    kf_keeping *k = &h->keeping;
    size_t last;
    kofn_status st;

    for (;;) {
        last = k->files;
        for (size_t i = 0; i < k->files; i++)
            if (k->file[i].whole && k->file[i].turn < before &&
                (last == k->files || k->file[i].turn > k->file[last].turn))
                last = i;
        if (last == k->files)
            return KOFN_OK;
        st = with_file(h, &k->file[last], take_vector);
        if (st != KOFN_FORMAT || !kept_before(k, k->file[last].turn))
            return st;
        TRY(put_aside(h, &k->file[last]));
        forget(k, last);
    }
}

kofn_status kf_keep_rewind(kf_host *h, uint64_t before)
{
    kofn_status st;

    TRY(kf_keep_forget(h));
    st = begin(h, before);
    return st == KOFN_FORMAT || st == KOFN_IO ? KOFN_OK : st;
}

kofn_status kf_keep_open(kf_host *h)
{
    if (!h->opt.keep)
        return KOFN_OK;
    if (h->opt.every == 0)
        return kf_fail(KOFN_INVAL, "a node keeps what it has after every so "
                                   "many turns, and `every` is 0");
    if (!h->opt.resume)
        return KOFN_OK;
    TRY(list_files(h));
    choose_seat(h);
    return begin(h, UINT64_MAX);
}

void kf_keep_close(kf_host *h)
{
    kf_free(h->keeping.file);
}
