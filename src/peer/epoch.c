/* epoch.c -- who belongs to the mesh, and who decides.
 *
 * A leader that hears of a joiner or misses a member proposes the next epoch.
 * Where the leader is gone, or everybody is ready and it decides nothing, the
 * next in rank proposes itself.  An epoch needs no answers: members of it make
 * pieces, and a leader that does not get enough of them decides nothing.
 * Whoever was taken for gone wrongly finds itself outside, goes on beating,
 * and is let in again as a new member.
 *
 * A leader may be hostile: decide nothing, or leave out who should be in.  It
 * cannot be told from one that is unlucky, but whoever proposes in vain is
 * followed again only after twice as long as the time before, so that what it
 * costs grows with the logarithm of the time at most; and who finds himself
 * outside for long proposes himself.
 *
 * Members and epoch are the node's.  It may not wait for answers, and enters
 * no epoch that is lower than the one it is in.
 */
#include "node.h"

#include <assert.h>
#include <stdlib.h>

/* ---- entering ------------------------------------------------------------ */

static int by_seat(const void *a, const void *b)
{
    const kf_member *x = a, *y = b;

    return (x->seat > y->seat) - (x->seat < y->seat);
}

/* The members are in place. */
static kofn_status enter(kf_node *n, kofn_epoch e)
{
    bool decode;

    n->epoch = e;
    n->ever.epochs++;
    for (kf_other *o = n->other; o != kf_end(n); o++)
        o->rank = kf_peer_rank_of(n, o->incarnation);
    n->rank = kf_peer_rank_of(n, n->opt.incarnation);
    n->voices = kf_peer_voices(n);
    n->heads = kf_peer_heads(n);
    assert(n->rank == KF_NONE || n->rank < n->members);
    if (n->rank != KF_NONE)
        n->seat = n->member[n->rank].seat;
    n->lead.proposed = n->now;
    n->lead.stalled = n->lead.leaderless = KF_LONG_AGO;
    TRY(kf_peer_members_decode(n, &decode));
    n->falls_short = !decode || n->members < n->enough + kf_peer_checks(n);
    kf_peer_set_deciders(n);
    kf_peer_clear_decisions(n);
    if (n->opt.changes)
        kf_peer_drop_former(n);
    TRY(kf_peer_decide_all(n));
    return kf_peer_ask_pieces(n, true);
}

/* Everybody has a seat and an incarnation of its own, the proposer too. */
static bool sound(const kf_node *n, const kf_note *note)
{
    const kf_member *m = note->member;
    bool leads = false;

    for (size_t r = 0; r < note->members; r++) {
        if (m[r].incarnation == 0 || m[r].seat >= n->max_seats ||
            m[r].seat == KOFN_NO_SEAT || (r > 0 && m[r].seat <= m[r - 1].seat))
            return false;
        for (size_t q = 0; q < r; q++)
            if (m[q].incarnation == m[r].incarnation)
                return false;
        leads |= m[r].incarnation == note->epoch.proposer;
    }
    return leads;
}

static uint64_t number_of_epoch(const kf_other *o, const void *of)
{
    (void)of;
    return o->epoch.number;
}

/* The number that every new epoch exceeds.  One node alone cannot push it. */
static uint64_t top(const kf_node *n)
{
    return kf_max(n->epoch.number, kf_peer_common(n, number_of_epoch, NULL));
}

static uint64_t roster_of(const kf_note *note)
{
    uint64_t sum = note->members;

    for (size_t r = 0; r < note->members; r++) {
        sum = kf_mix64(sum ^ note->member[r].incarnation);
        sum = kf_mix64(sum ^ note->member[r].seat ^
                       (uint64_t)note->member[r].prompt << 32);
    }
    return sum;
}

typedef struct roster {
    kofn_epoch epoch;
    uint64_t members;
} roster;

static uint64_t tells(const kf_other *o, const void *of)
{
    const roster *r = of;

    return kf_same_epoch(o->epoch, r->epoch) && o->roster == r->members;
}

/* An epoch is believed of the one who proposed it, or when enough others tell
 * the same of it. */
static bool vouched(const kf_node *n, const kf_note *note)
{
    roster r = {note->epoch, roster_of(note)};

    return note->from == note->epoch.proposer ||
           (note->epoch.proposer != n->opt.incarnation &&
            kf_peer_common(n, tells, &r) > 0);
}

/* Each epoch of one proposer that ends without an iterate doubles the time
 * until its next is entered.  An honest leader waits for twice as long itself
 * (`lead`), and so is never refused. */
static bool too_soon(kf_node *n, kf_other *leader)
{
    return leader && leader->failed_terms &&
           n->now - leader->led <
               kf_longer(n->opt.beat / 4, leader->failed_terms);
}

void kf_peer_reset_leader_backoff(kf_node *n)
{
    kf_other *leader = kf_peer_find(n, n->epoch.proposer);

    n->lead.failed_terms = 0;
    if (leader)
        leader->failed_terms = 0;
}

kofn_status kf_peer_receive_epoch(kf_node *n, kf_other *o, const kf_note *note)
{
    kf_other *leader = kf_peer_find(n, note->epoch.proposer);

    if (kf_before(note->epoch, n->epoch))
        return kf_peer_send(n, note->from, (kf_note){.type = KF_NOTE_EPOCH});
    if (kf_same_epoch(o->epoch, note->epoch))
        o->roster = roster_of(note);
    if (!kf_before(n->epoch, note->epoch) ||
        note->epoch.number > top(n) + KF_FAR || !vouched(n, note) ||
        too_soon(n, leader) || !sound(n, note)) {
        n->ever.dropped += !kf_same_epoch(n->epoch, note->epoch);
        return KOFN_OK;
    }
    if (leader) {
        leader->failed_terms++;
        leader->led = n->now;
    }
    TRY(kf_reach(&n->member, &n->member_cap, note->members, sizeof *n->member));
    memcpy(n->member, note->member, note->members * sizeof *n->member);
    n->members = note->members;
    TRY(enter(n, note->epoch));
    return n->rank == KF_NONE
               ? kf_peer_send(n, note->from,
                              kf_node_beat(n)) /* asks to be let in */
               : KOFN_OK;
}

/* ---- proposing ----------------------------------------------------------- */

static bool taken(const kf_member *m, size_t count, uint32_t seat)
{
    for (size_t i = 0; i < count; i++)
        if (m[i].seat == seat)
            return true;
    return false;
}

/* The seat it would like, or the first that is free. */
static uint32_t free_seat(const kf_node *n, const kf_member *m, size_t count,
                          uint32_t wish)
{
    size_t most = n->max_seats;
    uint32_t seat = 0;

    if (wish < most && wish != KOFN_NO_SEAT && !taken(m, count, wish))
        return wish;
    while (seat < most && seat < KOFN_NO_SEAT && taken(m, count, seat))
        seat++;
    return seat < most ? seat : KOFN_NO_SEAT;
}

/* Is no result missing that this member was to decode? */
static bool still_prompt(const kf_node *n, size_t rank, bool stalled)
{
    if (stalled)
        return n->member[rank].prompt && !(kf_peer_decides(n, rank) & ~n->done);
    return n->member[rank].prompt ||
           n->now - n->lead.proposed > 32 * n->opt.patience;
}

static bool is_live(kf_node *n, kofn_incarnation incarnation)
{
    const kf_other *o = kf_peer_find(n, incarnation);

    return incarnation == n->opt.incarnation || (o && kf_live(n, o));
}

static void admit(const kf_node *n, kf_member *m, size_t *count,
                  kofn_incarnation incarnation, uint32_t wish)
{
    uint32_t seat = free_seat(n, m, *count, wish);

    if (seat != KOFN_NO_SEAT)
        m[(*count)++] = (kf_member){incarnation, seat, true};
}

/* Admits nodes that are not members: those that wish for a seat before those
 * that do not, or have not said so yet, and would be given the seat of
 * another. */
static void admit_others(const kf_node *n, kf_member *m, size_t *count)
{
    for (int wishing = 1; wishing >= 0; wishing--)
        for (const kf_other *o = n->other; o != kf_end(n); o++)
            if (o->rank == KF_NONE && kf_peer_is_another(n, o, false) &&
                (o->wish != KOFN_NO_SEAT) == wishing)
                admit(n, m, count, o->incarnation, o->wish);
}

/* Members that live keep their seats, others are let in after them. */
static size_t list_members(kf_node *n, kf_member *m, bool stalled)
{
    size_t count = 0;

    for (size_t r = 0; r < n->members; r++)
        if (is_live(n, n->member[r].incarnation)) {
            m[count] = n->member[r];
            m[count++].prompt = still_prompt(n, r, stalled);
        }
    if (n->rank == KF_NONE)
        admit(n, m, &count, n->opt.incarnation,
              n->holds != KOFN_NO_SEAT ? n->holds : n->opt.wish);
    admit_others(n, m, &count);
    qsort(m, count, sizeof *m, by_seat);
    return count;
}

/* Enters an epoch of its own with the members it knows and tells all live
 * nodes.  The number exceeds all that are known, so it ends every epoch that
 * it knows of. */
static kofn_status propose(kf_node *n, bool stalled)
{
    size_t room = n->members + n->others + 1, count;
    bool seated = false;
    kf_member *m;

    TRY_NEW(m, room);
    count = list_members(n, m, stalled);
    for (size_t i = 0; i < count; i++)
        seated |= m[i].incarnation == n->opt.incarnation;
    if (!seated) { /* who has no seat can only watch */
        n->lead.proposed = n->now;
        kf_free(m);
        return KOFN_OK;
    }
    kf_free(n->member);
    n->member = m;
    n->member_cap = room;
    n->members = count;
    n->lead.failed_terms++;
    TRY(enter(n, (kofn_epoch){top(n) + 1, n->opt.incarnation}));
    for (const kf_other *o = n->other; o != kf_end(n); o++)
        if (kf_live(n, o))
            TRY(kf_peer_send(n, o->incarnation,
                             (kf_note){.type = KF_NOTE_EPOCH}));
    return kf_peer_beat_all(n);
}

/* ---- when to ------------------------------------------------------------- */

/* Somebody came or went. */
static bool changed(kf_node *n)
{
    size_t members = n->rank != KF_NONE, joiners = 0;

    for (const kf_other *o = n->other; o != kf_end(n); o++)
        if (kf_peer_is_another(n, o, false))
            *(o->rank == KF_NONE ? &joiners : &members) += 1;
    return members < n->members || (joiners > 0 && n->members < n->max_seats);
}

/* Have as many members as are needed to decode, this node among them, made all
 * that was wanted of them for this iterate? */
static bool all_ready(kf_node *n)
{
    size_t ready = 0, awaited = kf_peer_awaited(n);

    for (const kf_other *o = n->other; o != kf_end(n); o++)
        ready += kf_live(n, o) && o->rank != KF_NONE && o->idle &&
                 kf_same_iterate(o->at, n->at);
    return ready >= awaited || (ready + 1 == awaited && kf_node_beat(n).idle);
}

kofn_time kf_peer_patience(const kf_node *n)
{
    kofn_time p = n->opt.patience;

    if (n->took > p / 4)
        p = n->took > KOFN_NEVER / 1024 ? KOFN_NEVER / 256 : 4 * n->took;
    return p;
}

/* How many come before us where the leader is to be replaced. */
static size_t place_in_line(const kf_node *n)
{
    size_t before = 0;

    for (const kf_other *o = n->other; o != kf_end(n); o++) {
        if (!kf_live(n, o) || o->incarnation == n->epoch.proposer)
            continue;
        before += o->rank != n->rank ? o->rank < n->rank
                                     : o->incarnation < n->opt.incarnation;
    }
    return before;
}

/* Each waits a `hedge` longer than the one before it in line, and the steps
 * double with every proposal without success, so that in the end one epoch is
 * known to all before the next is proposed. */
static kofn_time wait_in_line(const kf_node *n, kofn_time first)
{
    size_t slots = place_in_line(n)
                   << (n->lead.failed < 6 ? n->lead.failed : 6);

    return first + (kofn_time)kf_min(slots, 4096) * n->opt.hedge;
}

/* Nothing comes of this epoch, or it leaves us out. */
static bool overdue(kf_node *n)
{
    kofn_time first =
        n->rank == KF_NONE ? n->opt.silence : 16 * kf_peer_patience(n);
    kofn_time since = n->lead.proposed > n->began ? n->lead.proposed : n->began;

    if (first > KOFN_NEVER >> 16)
        first = KOFN_NEVER >> 16;
    first = kf_longer(first, n->lead.failed);
    return kf_elapsed_or_wake(n, since, wait_in_line(n, first));
}

/* A new epoch voids what was decided for members that have yet to make the
 * iterate before ours of it.  Where that is believed of several only they could
 * not take it of us, and nobody would go on; so they have the time to come
 * here, also such as stop now and then. */
static bool others_are_about_to_come(kf_node *n)
{
    bool about = false;

    for (const kf_other *o = n->other; o != kf_end(n); o++)
        about |= o->rank != KF_NONE && kf_live(n, o) && o->at.step < n->at.step;
    return about && n->opt.confirm > 1 &&
           !kf_elapsed_or_wake(n, n->began, kf_peer_patience(n));
}

/* Has the leader gone on without telling in this epoch how this iterate is
 * decoded?  It will not any more, and where an iterate has to be believed it
 * cannot be had of the leader alone. */
bool kf_peer_leader_went_on(kf_node *n)
{
    const kf_other *leader = kf_peer_find(n, n->epoch.proposer);
    bool told = false;

    for (size_t g = 0; g < n->on->groups; g++)
        told |= n->cluster[g].shown > 0;
    return !told && n->opt.confirm > 1 && leader &&
           leader->at.step > n->at.step;
}

/* Proposes itself where the leader is gone, or is there and decides nothing
 * although all is ready.  Nodes wait in line by rank, so that mostly one
 * proposes; and where nothing comes of it, for twice as long each time, so that
 * all are seen to be idle where nothing can (kf_peer_tick_still). */
static kofn_status take_over(kf_node *n)
{
    const kf_other *leader = kf_peer_find(n, n->epoch.proposer);
    bool founding = n->epoch.number == 0, due;
    kofn_time first;

    if (!kf_track_since(n, &n->lead.leaderless,
                        !leader || !kf_live(n, leader))) {
        first = kf_peer_patience(n);
        first = kf_peer_leader_went_on(n) ? first / 2 : 2 * first;
        due = kf_track_since(n, &n->lead.stalled, all_ready(n))
                  ? kf_elapsed_or_wake(
                        n, n->lead.stalled,
                        wait_in_line(n, kf_longer(first, n->lead.failed)))
                  : overdue(n);
    } else {
        due = founding && kf_peer_count(n, false) >= n->opt.nodes &&
              place_in_line(n) == 0;
        if (!due)
            due = kf_elapsed_or_wake(
                n, n->lead.leaderless,
                wait_in_line(n, founding ? n->opt.silence : 0));
    }
    if (!due || others_are_about_to_come(n))
        return KOFN_OK;
    n->lead.failed++;
    return propose(n, n->lead.stalled != KF_LONG_AGO);
}

static kofn_status lead(kf_node *n)
{
    if (n->decided == n->on->all && n->opt.decoding == KOFN_DECODE_REPLICATED)
        return KOFN_OK; /* all is decided: a new epoch would void that */
    if (changed(n)) {
        if (kf_elapsed_or_wake(
                n, n->lead.proposed,
                kf_longer(n->opt.beat / 4, n->lead.failed_terms + 1)) &&
            !others_are_about_to_come(n))
            return propose(n, false);
        return KOFN_OK;
    }
    if (!kf_track_since(n, &n->lead.stalled, all_ready(n)) ||
        n->opt.decoding == KOFN_DECODE_REPLICATED ||
        !kf_elapsed_or_wake(n, n->lead.stalled, kf_peer_patience(n)))
        return KOFN_OK;
    return propose(n, true);
}

kofn_status kf_peer_tick_epoch(kf_node *n)
{
    /* An epoch with fewer members than the quorum could decide nothing; and a
     * node that has asked for a newer iterate waits for that first. */
    if (n->final || n->failed_check || kf_peer_count(n, false) < n->opt.quorum)
        return KOFN_OK;
    if (n->catch_up.asked && n->catch_up.tries < 4)
        return KOFN_OK;
    return kf_leads(n) ? lead(n) : take_over(n);
}
