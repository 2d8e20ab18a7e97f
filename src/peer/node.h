/* node.h -- the state of the coordinator of one node of a mesh.
 *
 * The node owns all of it.  Pointers that a note shows are valid until the next
 * step.  Only files of this folder may read these structs. */
#ifndef KF_PEER_NODE_H
#define KF_PEER_NODE_H

#include "peer.h"

#include <assert.h>

/* Silences after which the nodes that could settle a disagreement count as
 * gone. */
#define KF_UNSETTLED 8
#define KF_MOST_AGAINS 5 /* times that an iterate is repeated */
#define KF_NONE SIZE_MAX
#define KF_LONG_AGO INT64_MIN
#define KF_MOST_LIVES 1024 /* other nodes that are remembered */
/* how far the number of an epoch may exceed the highest one known */
#define KF_FAR (UINT64_C(1) << 20)

#define KF_BALLOTS 4 /* latest iterates that are compared */

/* The digest that a node has of an iterate. */
typedef struct kf_ballot {
    kofn_iterate_id at;
    kf_node_digest digest;
    bool agreed;  /* ours: the majority has the same */
    bool rounded; /* ours: allows for rounding between like machines too */
    bool erred;   /* of another node: that it differs was reported */
} kf_ballot;

/* A request of another node, with its iterate and epoch. */
typedef struct kf_want {
    kofn_iterate_id at;
    kofn_epoch epoch;
    kf_request of;
} kf_want;

/* Another incarnation, as described by its notes.  If two principals claim the
 * same incarnation, one of them wrongly, each has an entry, with `duplicate`
 * set. */
typedef struct kf_other {
    kofn_incarnation incarnation;
    uint64_t principal;
    bool duplicate;
    kofn_time heard;    /* KF_LONG_AGO: lost, or it has left */
    kofn_time lost;     /* when; KF_LONG_AGO: it will not return */
    kofn_time arriving; /* when a body of it was last arriving */
    kofn_epoch epoch;   /* the highest epoch that it said it is in */
    uint64_t roster;    /* digest of the members of that epoch */
    /* epochs that it proposed and that made no iterate */
    unsigned failed_terms;
    kofn_time led; /* when the last of these epochs was entered */
    kofn_iterate_id at;
    bool final, idle, stranded;
    bool slow;              /* it did not answer its last request in time */
    bool ended;             /* it left, and had the result */
    kofn_iterate_id result; /* the iterate that is this result, if it said so */
    bool liar; /* it sent something wrong, and was not heard since */
    uint32_t wish;
    size_t rank; /* rank among the members, or KF_NONE */
    kf_ballot ballot[KF_BALLOTS];
    size_t ballots; /* number ever stored */
    kf_want want;   /* what it wants from this node */
    /* The groups of our iterate that this node has asked it for. */
    kf_request asked;
} kf_other;

/* The largest value that a principal says, over its incarnations. */
typedef struct kf_voice {
    uint64_t principal, value;
} kf_voice;

/* A product that leads from an iterate to the next. */
typedef struct kf_peer_product {
    const kofn_plan *plan;
    kofn_plan *reader; /* owned `plan` of a product that reads; else NULL */
    kf_code *code;
    kf_cache *cache;
    size_t groups;
    uint64_t all; /* the set of all groups */
    kf_bounds bounds;
    bool silent; /* some seats may have the result 0 for every input */
} kf_peer_product;

/* A group of our iterate. */
typedef struct kf_cluster {
    uint32_t *have; /* seats of the partial products that are here, ascending */
    kofn_incarnation *by; /* the incarnation that made each partial product */
    size_t count, cap, by_cap;
    const kofn_decoder *decoder; /* NULL until the group is decided */
    /* If errors are looked for: the seats of the compared partial products. */
    uint32_t *evidence;
    size_t shown, evidence_cap;
    /* decoder of `evidence`; none if `shown` is 0 */
    const kofn_decoder *all;
    bool judged; /* the verdict on `evidence` is there */
    size_t need; /* least number of partial products for the next comparison */
} kf_cluster;

/* The decisions of a leader about an iterate, as DECIDE sends them. */
typedef struct kf_decisions {
    kofn_iterate_id at;
    kofn_epoch epoch;
    uint64_t groups;
    uint32_t *list;
    size_t listed, cap;
} kf_decisions;

/* Catching up with nodes that are ahead (catch_up.c). */
typedef struct kf_catch_up {
    uint64_t agreed; /* the farthest iterate that enough others say they have */
    bool behind;     /* another node says that it is ahead, on another way */
    /* since when another node has the iterate that we are about to make */
    kofn_time ahead;
    /* the node that was asked for its iterate; 0: none */
    kofn_incarnation asked;
    kofn_time asked_at;
    unsigned tries; /* requests without an answer */
} kf_catch_up;

/* Becoming the leader. */
typedef struct kf_lead {
    unsigned failed;       /* times that we took over, since the last iterate */
    unsigned failed_terms; /* times that we proposed, since the last iterate */
    kofn_time proposed, leaderless, stalled; /* since when */
} kf_lead;

/* The iterate of the majority (vote.c). */
typedef struct kf_votes {
    kf_ballot ballot[KF_BALLOTS]; /* of the last iterates */
    size_t ballots;               /* number ever stored */
    uint64_t doubted_from; /* the first iterate in doubt, as last detected */
    kofn_time doubted;
    bool outvoted; /* the majority has another iterate */
    bool doubts;   /* our vector may be wrong */
    bool spoilt;   /* our vector has changed since its digest was sent */
    /* KOFN_CORRUPT: all have sent a digest, and no majority has the same
     * result.  KOFN_TOOFEW: no other node has sent one. */
    kofn_status unsure;
    bool recount; /* a digest came */
} kf_votes;

/* An iterate that does not lead to the next (fail.c, again.c). */
typedef struct kf_unsettled {
    kofn_status failed; /* not KOFN_OK: failed for good */
    /* not KOFN_OK: it cannot be decided which partial products are wrong */
    kofn_status stuck;
    kofn_time stuck_at;
    unsigned agains; /* times that this iterate was repeated */
    /* since when all nodes stay; since when all are idle */
    kofn_time still, quiet;
    uint64_t places; /* digest of the iterates of all nodes at `still`, or 0 */
} kf_unsettled;

/* The actions of the last step, which the caller takes one by one (node.c). */
typedef struct kf_node_todo {
    kf_node_action *action;
    size_t count, cap, next;
} kf_node_todo;

/* The table of other incarnations (others.c). */
typedef struct kf_peer_table {
    kf_other *other;
    size_t count, cap;
    kf_voice *voice; /* `confirm` entries; see kf_peer_common */
} kf_peer_table;

/* The epoch, its members, and the place of this node among them (epoch.c). */
typedef struct kf_membership {
    kofn_epoch epoch;
    kf_member *member;
    size_t members, cap;
    kf_voices voices; /* of the members */
    /* principals that may include faulty ones; see kf_peer_heads */
    size_t heads;
    /* The members are too few, or their partial products do not decode, even if
     * more nodes are heard. */
    bool falls_short;
    size_t rank;   /* our rank among the members, or KF_NONE */
    uint32_t seat; /* our seat as a member */
    kf_lead lead;
} kf_membership;

/* The blocks that are here (node.c). */
typedef struct kf_peer_blocks {
    uint32_t holds;   /* their seat */
    uint32_t made_of; /* seat of the blocks that made `made` */
    bool lacks;       /* for some silences no node could lend the blocks */
} kf_peer_blocks;

/* The iterate, and how far this node is with it (iterate.c). */
typedef struct kf_stage {
    kofn_iterate_id at,
        before; /* the previous one; its partial products are kept */
    kofn_epoch before_epoch;
    bool final;
    uint64_t made, decided, done; /* sets of groups of `at` */
    uint64_t made_before, done_before;
    kofn_time began, finished;
    kofn_time took; /* duration of an iteration, smoothed */
} kf_stage;

/* The partial products of our iterate, and the members that decide about them
 * (partials.c, decisions.c, faulty.c). */
typedef struct kf_pieces {
    kf_cluster cluster[KF_MAX_GROUPS];
    kf_decisions decisions[2];     /* of `at`, and of `before` */
    size_t decider[KF_MAX_GROUPS]; /* rank that decides, or KF_NONE */
    uint64_t mine;                 /* groups that we decide */
    uint64_t local;      /* groups that we check without the decider */
    bool disagreed;      /* partial products of this iterate disagree */
    kofn_time wanted_at; /* the last request */
    unsigned repeats;    /* times that the same requests were repeated */
} kf_pieces;

/* Going on without the others (node.c). */
typedef struct kf_alone {
    bool pending;      /* the next iterate is to be made without the others */
    unsigned single;   /* iterates that we made alone, in succession */
    kofn_time starved; /* since when the quorum is missing */
    kofn_time idled;   /* when there first was nothing to do */
} kf_alone;

struct kf_node {
    kf_node_options opt;
    kf_peer_product *product;
    kf_course course; /* order of the products */
    /* the product that is computed from our iterate */
    const kf_peer_product *on;
    /* over all products: the fewest seats; the most partial products that a
     * decoding needs */
    size_t max_seats, enough;

    kofn_time now, alarm;
    /* end of the last time in which this node did not run */
    kofn_time returned;
    kofn_time beat_at; /* the last heartbeat */
    bool beat_due;     /* a heartbeat is sent at the end of this step */

    kf_peer_table table;
    kf_membership in;
    kf_peer_blocks blocks;
    kf_stage stage;
    kf_pieces pieces;
    kf_alone alone;
    kf_catch_up catch_up;
    kf_votes votes;
    kf_unsettled unsettled;

    kf_node_todo todo;
    kofn_node_view ever; /* only the counts are used */
};

static inline bool kf_same_iterate(kofn_iterate_id a, kofn_iterate_id b)
{
    return a.step == b.step && a.lineage == b.lineage;
}

static inline bool kf_same_epoch(kofn_epoch a, kofn_epoch b)
{
    return a.number == b.number && a.proposer == b.proposer;
}

static inline bool kf_before(kofn_epoch a, kofn_epoch b)
{
    return a.number != b.number ? a.number < b.number : a.proposer < b.proposer;
}

static inline uint64_t kf_bit(size_t group)
{
    assert(group < KF_MAX_GROUPS);
    return UINT64_C(1) << group;
}

static inline bool kf_leads(const kf_node *n)
{
    return n->in.epoch.number > 0 && n->in.epoch.proposer == n->opt.incarnation;
}

/* True if others may be hostile.  If matrices change, all members are trusted
 * to take part. */
static inline bool kf_wary(const kf_node *n)
{
    return n->opt.confirm > 1 && !n->opt.changes;
}

/* The end of `other`. */
static inline kf_other *kf_end(const kf_node *n)
{
    return n->table.count ? n->table.other + n->table.count : n->table.other;
}

static inline bool kf_live(const kf_node *n, const kf_other *o)
{
    return o->heard != KF_LONG_AGO && n->now - o->heard < n->opt.silence;
}

/* Returns `t`, doubled for every one of `times`, at most 256 t. */
static inline kofn_time kf_longer(kofn_time t, unsigned times)
{
    return t << (times < 8 ? times : 8);
}

/* Keeps in *since when a condition began to hold; KF_LONG_AGO while it does
 * not.  Returns `holds`. */
static inline bool kf_track_since(const kf_node *n, kofn_time *since,
                                  bool holds)
{
    if (!holds)
        *since = KF_LONG_AGO;
    else if (*since == KF_LONG_AGO)
        *since = n->now;
    return holds;
}

/* Counts a note or a result that is of no use.  That is no failure. */
static inline kofn_status kf_drop(kf_node *n)
{
    n->ever.dropped++;
    return KOFN_OK;
}

static inline bool kf_among(uint32_t seat, const uint32_t *seats, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (seats[i] == seat)
            return true;
    return false;
}

/* True if the partial product of this seat is here; if it is one of the
 * compared partial products. */
static inline bool kf_has(const kf_cluster *c, uint32_t seat)
{
    return kf_among(seat, c->have, c->count);
}

static inline bool kf_compares(const kf_cluster *c, uint32_t seat)
{
    return kf_among(seat, c->evidence, c->shown);
}

/* True if `after` has passed since `since`.  Otherwise sets the alarm to that
 * time. */
static inline bool kf_elapsed_or_wake(kf_node *n, kofn_time since,
                                      kofn_time after)
{
    kofn_time t = kf_later(since, after);

    if (n->now >= t)
        return true;
    if (t < n->alarm)
        n->alarm = t;
    return false;
}

/* Has a heartbeat sent to all at the end of this step. */
static inline void kf_peer_beat_soon(kf_node *n)
{
    n->beat_at = n->now;
    n->beat_due = true;
}

/* True if the decoder takes the partial product of this seat. */
static inline bool kf_decodes(const kofn_decoder *d, uint32_t seat)
{
    return kf_among(seat, d->seat, d->seats);
}

/* The files of this room, from the lowest: a file calls those above it in this
 * list. */

/* products.c */
/* Returns the product that is computed from iterate t. */
const kf_peer_product *kf_peer_product_of(const kf_node *n, uint64_t t);
kofn_status kf_peer_products_new(kf_node *n, const kofn_mesh_product *product,
                                 size_t products, const kf_node_options *opt);
/* Trims the caches of decoders.  Call it only if no decoder is in use. */
void kf_peer_products_trim(kf_node *n);
void kf_peer_products_free(kf_node *n);
/* Looks for a decoder of our iterate for the partial products of these seats,
 * which ascend.  With `whole`, a decoder that leaves wants out does not count.
 */
kofn_status kf_peer_find_decoder(const kf_node *n, const uint32_t *seats,
                                 size_t count, bool whole, kf_answers *a);
/* Sets *decode if the partial products of all members decode every product. */
kofn_status kf_peer_members_decode(const kf_node *n, bool *decode);

/* actions.c */
/* node.c */
kofn_status kf_peer_send(kf_node *n, kofn_incarnation to, kf_note note);
kofn_status kf_peer_take(kf_node *n, const kf_note *note);
/* Reports that `who` disagrees with the majority. */
kofn_status kf_peer_erred(kf_node *n, const kf_other *who);

/* fail.c */
/* Repeats the iterate, or fails with `st`, because it cannot be decided which
 * partial products are wrong, or there are too few. */
kofn_status kf_peer_give_up(kf_node *n, kofn_status st);
/* Fails for good with `st`, and reports it to all. */
kofn_status kf_peer_fail(kf_node *n, kofn_status st);

/* members.c */
/* Returns the rank among the members, or KF_NONE. */
size_t kf_peer_rank_of(const kf_node *n, kofn_incarnation incarnation);
/* True if errors are looked for. */
bool kf_peer_checks(const kf_node *n);
/* Returns the value for n->in.voices.  It changes when members come, are heard
 * first, or are found faulty. */
kf_voices kf_peer_voices(const kf_node *n);
/* True if it is a member, and the first entry of that member.  Among
 * duplicates, one that is not known as faulty comes first. */
bool kf_peer_has_a_say(const kf_node *n, const kf_other *o);

/* others.c */
/* Returns the entry of an incarnation, or NULL.  Among duplicates it prefers a
 * live one. */
kf_other *kf_peer_find(kf_node *n, kofn_incarnation incarnation);
kf_other *kf_peer_find_one(kf_node *n, kofn_incarnation incarnation,
                           uint64_t principal);
/* Finds or adds the entry.  *out is NULL if there is no room for more. */
kofn_status kf_peer_meet(kf_node *n, kofn_incarnation incarnation,
                         uint64_t principal, kf_other **out);
/* True if the entry is live, or ended if `or_ended`.  Of duplicates only the
 * first such entry counts.  kf_peer_count counts these entries and this
 * node. */
bool kf_peer_is_another(const kf_node *n, const kf_other *o, bool or_ended);
size_t kf_peer_count(const kf_node *n, bool or_ended);
/* True if the answer to a request of time `since` is arriving.  Over a slow
 * link a repeated request would only delay it.  A node that sends a little from
 * time to time is waited for no longer than KF_SLOWEST silences. */
bool kf_peer_is_coming(kf_node *n, const kf_other *o, kofn_time since);
/* Resets the delays between epochs, because the leader has led to an
 * iterate. */
void kf_peer_reset_leader_backoff(kf_node *n);
/* True if the leader is past our iterate and has not sent how that is
 * decoded. */
bool kf_peer_leader_went_on(kf_node *n);
/* Returns how long a node waits while no other seems to work. */
kofn_time kf_peer_patience(const kf_node *n);

/* vote.c */
/* Stores the digest of our iterate, which is not known before. */
void kf_peer_cast(kf_node *n, kf_node_digest digest);
void kf_peer_forget_ballots(kf_node *n);
/* Returns the digest of our iterate, as it is sent. */
kf_node_digest kf_peer_digest(const kf_node *n);
/* Stores the digest that another node sent of its iterate. */
void kf_peer_receive_digest(kf_node *n, kf_other *o, const kf_note *note);
kofn_status kf_peer_count_votes(kf_node *n);
/* True if our iterate is not finite and the majority is not known to have the
 * same. */
bool kf_peer_is_odd(const kf_node *n);
/* True if the other node has our iterate. */
bool kf_peer_has_local(const kf_node *n, const kf_other *o);
/* True if the other node has the iterate of the majority and we have another,
 * or if it has a later one.  If ours is in doubt, any iterate of our number
 * counts. */
bool kf_peer_has_right(const kf_node *n, const kf_other *o);
/* Marks our vector as doubtful: numbers that were not compared may be wrong. */
void kf_peer_doubt(kf_node *n);
/* Marks our vector as spoilt: it has changed since its digest was sent, or it
 * cannot be computed with.  `digest` is that of the present vector. */
void kf_peer_spoil(kf_node *n, kf_node_digest digest);

/* quorum.c */
/* True if the quorum is there, or was there until some nodes had the result and
 * left. */
bool kf_peer_have_quorum(const kf_node *n);
/* True if the live nodes are too few to make the next iterate. */
bool kf_peer_are_too_few(const kf_node *n);
/* Returns the largest value that enough principals of live nodes reach; 0 if
 * there is none.  Enough is the number that must confirm an iterate, so at
 * least one of them is honest. */
uint64_t kf_peer_common(const kf_node *n,
                        uint64_t (*value)(const kf_other *o, const void *of),
                        const void *of);
/* Returns the number of principals that may include faulty ones: the members.
 * With adversarial errors, other nodes that can be reached or are known to be
 * faulty count as well.  The proposer of an epoch may have left them out, and
 * nodes differ in what they know.  At most the number of seats. */
size_t kf_peer_heads(const kf_node *n);
/* Returns how many partial products of a group its members make without a
 * request. */
size_t kf_peer_awaited(const kf_node *n);
/* Returns the number of partial products that identify the nodes that may be
 * faulty, in addition to the `known` ones. */
size_t kf_peer_least(const kf_node *n, size_t known);

/* decisions.c */
/* partials.c */
void kf_peer_clear_iterate(kf_node *n);
void kf_peer_clear_decisions(kf_node *n);
/* Sends the decisions about that iterate to the other node again, if this node
 * leads. */
kofn_status kf_peer_tell_again(kf_node *n, const kf_other *o,
                               kofn_iterate_id at);
/* Assigns each group to a member of the epoch, which decides it.
 * kf_peer_decides returns the groups of one member. */
void kf_peer_set_deciders(kf_node *n);
uint64_t kf_peer_decides(const kf_node *n, size_t rank);
/* Send the decisions to the members: when a quarter of the groups is new or all
 * are decided; at once. */
kofn_status kf_peer_tell_members(kf_node *n);
kofn_status kf_peer_tell_now(kf_node *n);

/* requests.c */
/* Asks the members for the missing partial products; with `again` also those
 * that were asked before. */
kofn_status kf_peer_ask_partials(kf_node *n, bool again);
/* Returns the group to compute next, or KF_NONE. */
size_t kf_peer_next_group(const kf_node *n);
bool kf_peer_wants(const kf_node *n, size_t group);
/* True if the group is decided and all partial products that decode it are
 * here. */
bool kf_peer_complete(const kf_cluster *c);
/* Cancels the outstanding requests for partial products of a decided group. */
kofn_status kf_peer_say_enough(kf_node *n, size_t group);

/* faulty.c */
/* Offers the partial products that are here for a comparison, if they are
 * enough. */
kofn_status kf_peer_gather(kf_node *n, size_t group);
/* Takes over the evidence of the decider: the seats that it compared.  *sound
 * becomes false if they are too few or do not decode. */
kofn_status kf_peer_shown(kf_node *n, size_t group, const uint32_t *seats,
                          size_t count, bool *sound);
bool kf_peer_to_check(const kf_node *n, kf_node_task *out);
kofn_status kf_peer_judged(kf_node *n, const kf_node_event *ev);
kofn_status kf_peer_tick_checks(kf_node *n);

/* partials.c */
kofn_status kf_peer_receive_want(kf_node *n, kf_other *o, const kf_note *note);
kofn_status kf_peer_receive_partial(kf_node *n, const kf_note *note);
kofn_status kf_peer_receive_decide(kf_node *n, const kf_note *note);
kofn_status kf_peer_made(kf_node *n, size_t group);
kofn_status kf_peer_decoded(kf_node *n, size_t group);
/* Drops the partial products of nodes that no longer have their seat.  Blocks
 * of one seat that were made from the blocks of others differ by rounding, and
 * so do their partial products. */
void kf_peer_drop_former(kf_node *n);
/* Decides all groups for which enough partial products are here. */
kofn_status kf_peer_decide_all(kf_node *n);

/* work.c */
/* True if nothing is left to do for our iterate. */
bool kf_peer_idle(const kf_node *n);

/* iterate.c */
/* Moves this node to the iterate `to`. */
kofn_status kf_peer_advance(kf_node *n, kofn_iterate_id to,
                            kf_node_digest digest, bool final);
kofn_iterate_id kf_peer_child(kofn_epoch e, kofn_iterate_id at);

/* epoch.c */
/* epoch.c */
kofn_status kf_peer_tick_epoch(kf_node *n);
kofn_status kf_peer_receive_epoch(kf_node *n, kf_other *o, const kf_note *note);

/* catch_up.c */
/* Asks for the iterate of a node that is ahead. */
kofn_status kf_peer_catch_up(kf_node *n);
kofn_status kf_peer_restore(kf_node *n, const kf_note *note);
kofn_status kf_peer_receive_vector(kf_node *n, kf_other *o,
                                   const kf_note *note);

/* again.c */
kofn_status kf_peer_tick_again(kf_node *n);
/* Fails if this iterate leads to no other any more. */
kofn_status kf_peer_tick_still(kf_node *n);

/* assert_state.c */
/* assert_state.c: Returns NULL, or the invariant that does not hold between
 * steps. */
const char *kf_node_assert_state(const kf_node *n);

#endif
