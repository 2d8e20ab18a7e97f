/* epoch.c -- membership of the mesh, and its leader.
 *
 * A leader proposes the next epoch when it hears of a joiner or misses a
 * member.  The next node by rank proposes itself if the leader is gone, or if
 * all are ready and it decides nothing.  An epoch needs no answers: its members
 * make partial products, and a leader that does not get enough of them decides
 * nothing. A node that was wrongly counted as gone finds that it is no member.
 * It keeps sending heartbeats and is admitted again as a new member.
 *
 * A leader may be hostile: it may decide nothing, or leave out live nodes.
 * Such a leader looks like one with bad luck.  But if the epochs of a node make
 * no iterate, it is followed again only after twice the previous delay.  So the
 * cost grows at most with the logarithm of the time.  A node that is left out
 * for long proposes itself.
 *
 * Members and epoch are part of the node.  These functions must not wait for
 * answers, and never enter an epoch that is lower than the present one.
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

/* Enters epoch `e`; its members are already in n->in.member. */
static kofn_status enter(kf_node *n, kofn_epoch e)
{
    bool decode;

    assert(kf_before(n->in.epoch, e));
    assert(n->in.members > 0);
    assert(n->in.members <= n->in.cap);
    n->in.epoch = e;
    n->ever.epochs++;
    for (kf_other *o = n->table.other; o != kf_end(n); o++)
        o->rank = kf_peer_rank_of(n, o->incarnation);
    n->in.rank = kf_peer_rank_of(n, n->opt.incarnation);
    n->in.voices = kf_peer_voices(n);
    n->in.heads = kf_peer_heads(n);
    assert(n->in.rank == KF_NONE || n->in.rank < n->in.members);
    if (n->in.rank != KF_NONE)
        n->in.seat = n->in.member[n->in.rank].seat;
    n->in.lead.proposed = n->now;
    n->in.lead.stalled = n->in.lead.leaderless = KF_LONG_AGO;
    TRY(kf_peer_members_decode(n, &decode));
    n->in.falls_short =
        !decode || n->in.members < n->enough + kf_peer_checks(n);
    kf_peer_set_deciders(n);
    kf_peer_clear_decisions(n);
    if (n->opt.changes)
        kf_peer_drop_former(n);
    TRY(kf_peer_decide_all(n));
    return kf_peer_ask_partials(n, true);
}

/* True if each member has its own seat and incarnation, and the proposer is a
 * member. */
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

/* Returns the number that every new epoch exceeds.  A single node cannot raise
 * it. */
static uint64_t top(const kf_node *n)
{
    return kf_max(n->in.epoch.number, kf_peer_common(n, number_of_epoch, NULL));
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

/* True if an epoch can be believed: its proposer sent it, or enough others sent
 * the same. */
static bool vouched(const kf_node *n, const kf_note *note)
{
    roster r = {note->epoch, roster_of(note)};

    return note->from == note->epoch.proposer ||
           (note->epoch.proposer != n->opt.incarnation &&
            kf_peer_common(n, tells, &r) > 0);
}

/* True if this proposer must wait.  Each of its epochs that ends without an
 * iterate doubles the delay until its next one is entered.  An honest leader
 * waits for twice that delay (`lead`), so it is never refused. */
static bool too_soon(kf_node *n, kf_other *leader)
{
    return leader && leader->failed_terms &&
           n->now - leader->led <
               kf_longer(n->opt.beat / 4, leader->failed_terms);
}

kofn_status kf_peer_receive_epoch(kf_node *n, kf_other *o, const kf_note *note)
{
    kf_other *leader = kf_peer_find(n, note->epoch.proposer);

    assert(o->incarnation == note->from);
    if (kf_before(note->epoch, n->in.epoch))
        return kf_peer_send(n, note->from, (kf_note){.type = KF_NOTE_EPOCH});
    if (kf_same_epoch(o->epoch, note->epoch))
        o->roster = roster_of(note);
    if (!kf_before(n->in.epoch, note->epoch) ||
        note->epoch.number > top(n) + KF_FAR || !vouched(n, note) ||
        too_soon(n, leader) || !sound(n, note)) {
        n->ever.dropped += !kf_same_epoch(n->in.epoch, note->epoch);
        return KOFN_OK;
    }
    if (leader) {
        leader->failed_terms++;
        leader->led = n->now;
    }
    assert(note->members <= n->max_seats);
    TRY(kf_reach(&n->in.member, &n->in.cap, note->members,
                 sizeof *n->in.member));
    memcpy(n->in.member, note->member, note->members * sizeof *n->in.member);
    n->in.members = note->members;
    TRY(enter(n, note->epoch));
    return n->in.rank == KF_NONE
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

/* Returns the seat that the node wishes, or the first that is free. */
static uint32_t free_seat(const kf_node *n, const kf_member *m, size_t count,
                          uint32_t wish)
{
    size_t most = n->max_seats;
    uint32_t seat = 0;

    assert(count <= n->max_seats);
    if (wish < most && wish != KOFN_NO_SEAT && !taken(m, count, wish))
        return wish;
    while (seat < most && seat < KOFN_NO_SEAT && taken(m, count, seat))
        seat++;
    return seat < most ? seat : KOFN_NO_SEAT;
}

/* True if this member still decodes for others, because no result of its groups
 * is missing. */
static bool still_prompt(const kf_node *n, size_t rank, bool stalled)
{
    assert(rank < n->in.members);
    if (stalled)
        return n->in.member[rank].prompt &&
               !(kf_peer_decides(n, rank) & ~n->stage.done);
    return n->in.member[rank].prompt ||
           n->now - n->in.lead.proposed > 32 * n->opt.patience;
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

    assert(incarnation != 0);
    if (seat != KOFN_NO_SEAT)
        m[(*count)++] = (kf_member){incarnation, seat, true};
}

/* Admits nodes that are no members.  Nodes that wish for a seat come first, so
 * that no other node gets the wished seat.  The others have no wish, or have
 * not sent one. */
static void admit_others(const kf_node *n, kf_member *m, size_t *count)
{
    for (int wishing = 1; wishing >= 0; wishing--)
        for (const kf_other *o = n->table.other; o != kf_end(n); o++)
            if (o->rank == KF_NONE && kf_peer_is_another(n, o, false) &&
                (o->wish != KOFN_NO_SEAT) == wishing)
                admit(n, m, count, o->incarnation, o->wish);
}

/* Lists the members of the next epoch.  Live members keep their seats, and new
 * ones follow. */
static size_t list_members(kf_node *n, kf_member *m, bool stalled)
{
    size_t count = 0;

    for (size_t r = 0; r < n->in.members; r++)
        if (is_live(n, n->in.member[r].incarnation)) {
            m[count] = n->in.member[r];
            m[count++].prompt = still_prompt(n, r, stalled);
        }
    if (n->in.rank == KF_NONE)
        admit(n, m, &count, n->opt.incarnation,
              n->blocks.holds != KOFN_NO_SEAT ? n->blocks.holds : n->opt.wish);
    admit_others(n, m, &count);
    assert(count <= n->in.members + n->table.count + 1);
    qsort(m, count, sizeof *m, by_seat);
    return count;
}

/* Enters a new epoch, which this node leads, with the nodes that it knows.
 * Sends it to all live nodes.  Its number exceeds all known numbers, so it ends
 * every epoch that this node knows. */
static kofn_status propose(kf_node *n, bool stalled)
{
    size_t room = n->in.members + n->table.count + 1, count;
    bool seated = false;
    kf_member *m;

    assert(!n->stage.final);
    assert(n->unsettled.failed == KOFN_OK);
    TRY_NEW(m, room);
    count = list_members(n, m, stalled);
    for (size_t i = 0; i < count; i++)
        seated |= m[i].incarnation == n->opt.incarnation;
    if (!seated) { /* a node without a seat can only watch */
        n->in.lead.proposed = n->now;
        kf_free(m);
        return KOFN_OK;
    }
    kf_free(n->in.member);
    n->in.member = m;
    n->in.cap = room;
    n->in.members = count;
    n->in.lead.failed_terms++;
    TRY(enter(n, (kofn_epoch){top(n) + 1, n->opt.incarnation}));
    for (const kf_other *o = n->table.other; o != kf_end(n); o++)
        if (kf_live(n, o))
            TRY(kf_peer_send(n, o->incarnation,
                             (kf_note){.type = KF_NOTE_EPOCH}));
    kf_peer_beat_soon(n);
    return KOFN_OK;
}

/* ---- when to ------------------------------------------------------------- */

/* True if a node came or went. */
static bool changed(kf_node *n)
{
    size_t members = n->in.rank != KF_NONE, joiners = 0;

    for (const kf_other *o = n->table.other; o != kf_end(n); o++)
        if (kf_peer_is_another(n, o, false))
            *(o->rank == KF_NONE ? &joiners : &members) += 1;
    return members < n->in.members ||
           (joiners > 0 && n->in.members < n->max_seats);
}

/* True if enough members for a decoding, this node included, have made all
 * partial products that were requested for this iterate. */
static bool all_ready(kf_node *n)
{
    size_t ready = 0, awaited = kf_peer_awaited(n);

    for (const kf_other *o = n->table.other; o != kf_end(n); o++)
        ready += kf_live(n, o) && o->rank != KF_NONE && o->idle &&
                 kf_same_iterate(o->at, n->stage.at);
    return ready >= awaited || (ready + 1 == awaited && kf_node_beat(n).idle);
}

/* Returns how many nodes are ahead of this one in the order in which a leader
 * is replaced. */
static size_t place_in_line(const kf_node *n)
{
    size_t before = 0;

    for (const kf_other *o = n->table.other; o != kf_end(n); o++) {
        if (!kf_live(n, o) || o->incarnation == n->in.epoch.proposer)
            continue;
        before += o->rank != n->in.rank ? o->rank < n->in.rank
                                        : o->incarnation < n->opt.incarnation;
    }
    return before;
}

/* Returns the wait of this node in that order: one `hedge` more than the node
 * before it.  The steps double with every proposal without success.  So in the
 * end all nodes know one epoch before the next is proposed. */
static kofn_time wait_in_line(const kf_node *n, kofn_time first)
{
    size_t slots = place_in_line(n)
                   << (n->in.lead.failed < 6 ? n->in.lead.failed : 6);

    return first + (kofn_time)kf_min(slots, 4096) * n->opt.hedge;
}

/* True if this epoch makes no iterate for too long, or this node is no member
 * of it. */
static bool overdue(kf_node *n)
{
    kofn_time first =
        n->in.rank == KF_NONE ? n->opt.silence : 16 * kf_peer_patience(n);
    kofn_time since = n->in.lead.proposed > n->stage.began ? n->in.lead.proposed
                                                           : n->stage.began;

    if (first > KOFN_NEVER >> 16)
        first = KOFN_NEVER >> 16;
    first = kf_longer(first, n->in.lead.failed);
    return kf_elapsed_or_wake(n, since, wait_in_line(n, first));
}

/* True while other members are about to reach our iterate.  A new epoch voids
 * the decisions for the iterate before ours, which these members still make.
 * If an iterate needs several witnesses, they could not take ours, and all
 * would stop.  So they get the patience as a delay, even if they stop from time
 * to time. */
static bool others_are_about_to_come(kf_node *n)
{
    bool about = false;

    for (const kf_other *o = n->table.other; o != kf_end(n); o++)
        about |= o->rank != KF_NONE && kf_live(n, o) &&
                 o->at.step < n->stage.at.step;
    return about && n->opt.confirm > 1 &&
           !kf_elapsed_or_wake(n, n->stage.began, kf_peer_patience(n));
}

/* Proposes this node as the leader if the leader is gone, or decides nothing
 * although all are ready.  Nodes wait in the order of their ranks, so usually
 * one proposes.  Without success each wait is twice the last.  So if no
 * progress is possible, all nodes are idle long enough for kf_peer_tick_still
 * to see it. */
static kofn_status take_over(kf_node *n)
{
    const kf_other *leader = kf_peer_find(n, n->in.epoch.proposer);
    bool founding = n->in.epoch.number == 0, due;
    kofn_time first;

    assert(!kf_leads(n));
    if (!kf_track_since(n, &n->in.lead.leaderless,
                        !leader || !kf_live(n, leader))) {
        first = kf_peer_patience(n);
        first = kf_peer_leader_went_on(n) ? first / 2 : 2 * first;
        due = kf_track_since(n, &n->in.lead.stalled, all_ready(n))
                  ? kf_elapsed_or_wake(
                        n, n->in.lead.stalled,
                        wait_in_line(n, kf_longer(first, n->in.lead.failed)))
                  : overdue(n);
    } else {
        due = founding && kf_peer_count(n, false) >= n->opt.nodes &&
              place_in_line(n) == 0;
        if (!due)
            due = kf_elapsed_or_wake(
                n, n->in.lead.leaderless,
                wait_in_line(n, founding ? n->opt.silence : 0));
    }
    if (!due || others_are_about_to_come(n))
        return KOFN_OK;
    n->in.lead.failed++;
    return propose(n, n->in.lead.stalled != KF_LONG_AGO);
}

static kofn_status lead(kf_node *n)
{
    assert(kf_leads(n));
    assert(n->in.rank != KF_NONE);
    if (n->stage.decided == n->on->all &&
        n->opt.decoding == KOFN_DECODE_REPLICATED)
        return KOFN_OK; /* all is decided: a new epoch would void that */
    if (changed(n)) {
        if (kf_elapsed_or_wake(
                n, n->in.lead.proposed,
                kf_longer(n->opt.beat / 4, n->in.lead.failed_terms + 1)) &&
            !others_are_about_to_come(n))
            return propose(n, false);
        return KOFN_OK;
    }
    if (!kf_track_since(n, &n->in.lead.stalled, all_ready(n)) ||
        n->opt.decoding == KOFN_DECODE_REPLICATED ||
        !kf_elapsed_or_wake(n, n->in.lead.stalled, kf_peer_patience(n)))
        return KOFN_OK;
    return propose(n, true);
}

kofn_status kf_peer_tick_epoch(kf_node *n)
{
    /* An epoch with fewer members than the quorum could decide nothing.  A node
     * that has asked for a newer iterate waits for that first. */
    if (n->stage.final || n->unsettled.failed ||
        kf_peer_count(n, false) < n->opt.quorum)
        return KOFN_OK;
    if (n->catch_up.asked && n->catch_up.tries < 4)
        return KOFN_OK;
    return kf_leads(n) ? lead(n) : take_over(n);
}
