/* keep.c -- checkpoints on disk, from which a mesh resumes after the loss of
 * all nodes.
 *
 * After every `every` turns, and after the last, a node writes the vector, with
 * all that travels with it, and its own blocks: a *draft*.  It announces the
 * draft to the others (KEPT).  With errors it does so only when its blocks were
 * compared with theirs (sketch.c).  When all members have announced drafts of
 * the same iterate, that iterate is *kept*.  Older files are removed, except
 * the one that was kept before: if the last is damaged, a node starts from
 * that.  So if one node has kept an iterate, all nodes that were members then
 * have at least a draft of it.
 *
 * A node that restarts begins at the iterate that it kept.  Other nodes may
 * have kept a later one.  It takes that from them, like every node that is
 * behind, and finds its blocks for it among its drafts.
 *
 * If a member has no blocks, or wrong ones, all try again some turns later.
 * Then not all members are necessary, so that a member that errs in every step
 * cannot prevent it.
 *
 * Owns the files in the folder that begin with its seat (keep_file.c).  A
 * damaged file is renamed and never used. */
#include "host.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>

/* wait before another try: twice that for the sketches of all */
#define HEDGES 8

/* Returns the turn of an iterate.  If matrices do not change, each iterate is
 * one. */
static uint64_t turn_at(const kf_host *h, uint64_t t)
{
    return h->blocks.changes ? kf_course_turn(&h->work.course, t) : t;
}

/* ---- the list of files --------------------------------------------------- */

void kf_kept_forget(kf_keeping *k, size_t i)
{
    assert(i < k->files);
    k->file[i] = k->file[--k->files];
}

static kofn_status remember(kf_keeping *k, kf_kept file)
{
    for (size_t i = k->files; i > 0; i--)
        if (k->file[i - 1].turn == file.turn &&
            k->file[i - 1].seat == file.seat &&
            k->file[i - 1].whole == file.whole)
            kf_kept_forget(k, i - 1);
    TRY(kf_grow(&k->file, &k->cap, k->files, sizeof *k->file));
    k->file[k->files++] = file;
    return KOFN_OK;
}

/* Returns the last file that was kept before that turn, or NULL. */
static kf_kept *last_kept(const kf_keeping *k, uint64_t turn)
{
    kf_kept *last = NULL;

    for (size_t i = 0; i < k->files; i++)
        if (k->file[i].whole && k->file[i].turn < turn &&
            (!last || k->file[i].turn > last->turn))
            last = &k->file[i];
    return last;
}

/* Returns the turn of that file, or 0. */
static uint64_t kept_before(const kf_keeping *k, uint64_t turn)
{
    const kf_kept *last = last_kept(k, turn);

    return last ? last->turn : 0;
}

static kofn_status discard(kf_host *h, size_t i)
{
    TRY(kf_kept_remove(h, &h->disk.keeping.file[i]));
    kf_kept_forget(&h->disk.keeping, i);
    return KOFN_OK;
}

/* Removes files of earlier turns, and drafts of the same turn.  The one that
 * was kept before stays. */
static kofn_status sweep(kf_host *h, uint64_t last)
{
    kf_keeping *k = &h->disk.keeping;
    const uint64_t before = kept_before(k, last);

    for (size_t i = k->files; i > 0; i--) {
        const kf_kept *f = &k->file[i - 1];

        if (f->turn < last ? !f->whole || f->turn != before
                           : f->turn == last && !f->whole)
            TRY(discard(h, i - 1));
    }
    return KOFN_OK;
}

/* Returns the number of other nodes that have announced it. */
static size_t count_holders(const kf_connections *net, kofn_iterate_id at)
{
    size_t n = 0;

    for (size_t i = 0; i < net->routes; i++) {
        const kf_route *r = &net->route[i];
        bool has = false, twice = false;

        for (size_t s = 0; s < KF_KEPT && !r->over; s++)
            has |=
                r->kept[s].step == at.step && r->kept[s].lineage == at.lineage;
        for (size_t j = 0; j < i; j++)
            twice |= net->route[j].incarnation == r->incarnation;
        n += has && !twice;
    }
    return n;
}

/* True if enough members have it.  Usually all must.  For a checkpoint that
 * replaces a missed one, members that may be wrong together are not needed, but
 * more than half of the nodes are. */
static bool suffice(const kf_host *h, size_t holders, kofn_iterate_id at)
{
    uint64_t turn = turn_at(h, at.step);
    kofn_node_view view;
    size_t needed;

    assert(h->opt.every > 0);
    kf_node_look(h->node, &view);
    needed = view.members;
    if (h->opt.errors != KOFN_ERRORS_NONE && turn % h->opt.every != 0 &&
        turn != h->program.turns)
        needed = kf_max(needed - kf_min(needed, kf_host_most_wrong(h)),
                        h->opt.nodes / 2 + 1);
    return view.seat != KOFN_NO_SEAT && holders >= needed;
}

static kofn_status keep_those_that_suffice(kf_host *h)
{
    kf_keeping *k = &h->disk.keeping;

    for (size_t i = 0; i < k->files; i++) {
        const kf_kept *f = &k->file[i];
        kf_kept now = *f;

        if (f->whole || !f->sound ||
            !suffice(h, count_holders(&h->net, f->at) + 1, f->at))
            continue;
        now.whole = true;
        TRY(kf_kept_rename(h, f, &now));
        kf_kept_forget(k, i);
        TRY(remember(k, now)); /* replaces that of a former attempt */
        return sweep(h, now.turn);
    }
    return KOFN_OK;
}

uint64_t kf_keep_last(const kf_mesh_disk *disk, uint64_t before)
{
    const kf_keeping *k = &disk->keeping;
    uint64_t last = kept_before(k, before);

    return k->others < before && k->others > last ? k->others : last;
}

/* ---- keeping ------------------------------------------------------------- */

/* True if an earlier checkpoint was missed, and there was time for it. */
static bool is_missed(const kf_host *h, uint64_t turn)
{
    uint64_t after = turn % h->opt.every, again = kf_max(h->opt.every / 8, 1);

    assert(h->opt.every > 0);
    return turn > after && after % again == 0 &&
           kf_keep_last(&h->disk, turn) < turn - after &&
           kf_host_now(h) - h->disk.keeping.tried >= HEDGES * kf_host_hedge(h);
}

bool kf_keep_is_due(const kf_host *h)
{
    uint64_t turn = turn_at(h, h->it.at.step);
    uint64_t t =
        h->blocks.changes ? kf_course_end(&h->work.course, turn) : turn;

    return h->opt.keep && h->blocks.seat != KOFN_NO_SEAT && turn > 0 &&
           h->it.at.step == t &&
           (turn % h->opt.every == 0 || turn == h->program.turns ||
            is_missed(h, turn));
}

/* Sets *same if our vector is still the one whose digest was sent. */
static kofn_status confirm_own(kf_host *h, bool *same)
{
    kf_buffer *body;
    size_t bytes;

    assert(h->node);
    TRY(kf_mesh_vector_body(h, &body, &bytes));
    *same = kf_host_confirm_local(h, body->m.data,
                                  kf_at(&body->m, KOFN_SCALARS, 0));
    kf_buffer_drop(body);
    return KOFN_OK;
}

/* Announces drafts up to that turn as sound.  An error in a block stays there.
 * So if the block is right now, it was right when it was written, if it is the
 * same block (kf_keep_forget). */
kofn_status kf_keep_sound(kf_host *h, uint64_t turn)
{
    kf_keeping *k = &h->disk.keeping;

    for (size_t i = 0; i < k->files; i++) {
        kf_kept *f = &k->file[i];

        if (f->turn > turn || f->sound || f->whole)
            continue;
        f->sound = true;
        TRY(kf_mail_to_all(h, &(kf_note){.type = KF_NOTE_KEPT,
                                         .from = h->opt.incarnation,
                                         .at = f->at}));
    }
    return keep_those_that_suffice(h);
}

/* Writes a draft.  It is not announced before its blocks were compared. */
kofn_status kf_keep_turn(kf_host *h)
{
    kf_kept now = {.at = h->it.at,
                   .turn = turn_at(h, h->it.at.step),
                   .seat = h->blocks.seat};
    kf_keeping *k = &h->disk.keeping;
    bool same;

    if (!kf_keep_is_due(h))
        return KOFN_OK;
    TRY(confirm_own(h, &same));
    if (!same)
        return KOFN_OK;
    TRY(kf_kept_write(h, &now));
    TRY(remember(k, now));
    k->tried = kf_host_now(h);
    for (size_t i = k->files; i > 0; i--) /* drafts that not all members had */
        if (!k->file[i - 1].whole &&
            k->file[i - 1].turn + 2 * h->opt.every < now.turn)
            TRY(discard(h, i - 1));
    return kf_sketch_vouches(h) ? kf_keep_sound(h, now.turn) : KOFN_OK;
}

kofn_status kf_keep_forget(kf_host *h)
{
    kf_keeping *k = &h->disk.keeping;

    for (size_t i = k->files; i > 0; i--)
        if (!k->file[i - 1].sound && !k->file[i - 1].whole)
            TRY(discard(h, i - 1));
    return KOFN_OK;
}

kofn_status kf_keep_receive(kf_host *h, kf_route *r, kofn_iterate_id at)
{
    if (!h->opt.keep)
        return KOFN_OK;
    r->kept[r->tells++ % KF_KEPT] = at;
    if (suffice(h, count_holders(&h->net, at), at))
        h->disk.keeping.others =
            kf_max(h->disk.keeping.others, turn_at(h, at.step));
    return keep_those_that_suffice(h);
}

kofn_status kf_keep_load(kf_host *h, uint32_t seat)
{
    kf_keeping *k = &h->disk.keeping;

    assert(seat != KOFN_NO_SEAT);
    for (size_t i = 0; i < k->files; i++) {
        const kf_kept f = k->file[i];
        kofn_status st;

        if (f.seat != seat ||
            !kf_changing_knows(&h->blocks, f.turn, f.at.lineage))
            continue;
        st = kf_kept_take_blocks(h, &f);
        if (st == KOFN_NOMEM)
            return st;
        if (st) { /* other nodes have it, too */
            kf_kept_forget(k, i--);
            continue;
        }
        return kf_changing_fresh(h, seat, f.turn);
    }
    return KOFN_AGAIN;
}

/* ---- resuming ------------------------------------------------------------ */

/* Sets the seat of the node, and forgets the files of other seats.  If no seat
 * is given, it is that with the newest files. */
static void choose_seat(kf_host *h)
{
    kf_keeping *k = &h->disk.keeping;
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
            kf_kept_forget(k, i - 1);
}

static kofn_status list_files(kf_host *h)
{
    DIR *folder = opendir(h->opt.keep);
    kofn_status st = KOFN_OK;
    const struct dirent *e;

    if (!folder)
        return kf_fail(KOFN_IO, "cannot look into %s: %s", h->opt.keep,
                       strerror(errno));
    while (!st && (e = readdir(folder))) {
        bool local;
        kf_kept k;

        st = kf_kept_look_at(h, e->d_name, &local, &k);
        if (!st && local)
            st = remember(&h->disk.keeping, k);
    }
    closedir(folder);
    return st;
}

static kofn_status take_vector(kf_host *h, const kf_kept *k)
{
    kf_buffer *body;
    kofn_status st;

    TRY(kf_kept_vector(h, k, &body));
    st = kf_mesh_vector_take(h, k->at, body);
    kf_buffer_drop(body);
    return st;
}

/* Starts from the last checkpoint before that turn, or if that is damaged from
 * the one before. */
static kofn_status begin(kf_host *h, uint64_t before)
{
    kf_keeping *k = &h->disk.keeping;
    const kf_kept *last;

    while ((last = last_kept(k, before))) {
        kofn_status st = take_vector(h, last);

        if (st != KOFN_FORMAT || !kept_before(k, last->turn))
            return st;
        TRY(kf_kept_put_aside(h, last));
        kf_kept_forget(k, (size_t)(last - k->file));
    }
    return KOFN_OK;
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
        return kf_fail(KOFN_INVAL, "`every` is 0; a node saves its state "
                                   "every `every` turns, so give 1 or more");
    if (!h->opt.resume)
        return KOFN_OK;
    TRY(list_files(h));
    choose_seat(h);
    return begin(h, UINT64_MAX);
}

void kf_keep_close(kf_mesh_disk *disk)
{
    kf_free(disk->keeping.file);
}
