/* node.h -- what the coordinator of one node of a mesh remembers.
 *
 * All is the node's, and pointers that a note shows hold until the next step.
 * Only files of this folder may read these structs. */
#ifndef KF_PEER_NODE_H
#define KF_PEER_NODE_H

#include "peer.h"

#define KF_UNSETTLED                                                           \
    8 /* silences after which those who could settle it are gone */
#define KF_NONE SIZE_MAX
#define KF_LONG_AGO INT64_MIN
#define KF_MOST_LIVES 1024         /* others that are remembered */
#define KF_FAR (UINT64_C(1) << 20) /* epochs, beyond what is known */

#define KF_BALLOTS 4 /* iterates that are compared, the last */

/* What a node has of an iterate. */
typedef struct kf_ballot {
    kofn_iterate_id at;
    kf_node_digest digest;
    bool agreed;  /* ours: as most have it                       */
    bool rounded; /* ... but for rounding, also on like machines */
    bool erred;   /* another's: that was told                    */
} kf_ballot;

/* Another incarnation, as far as it has told.  Where two principals say that
 * they are the same incarnation, one of them wrongly, these are two others,
 * with duplicate numbers. */
typedef struct kf_other {
    kofn_incarnation incarnation;
    uint64_t principal;
    bool duplicate;
    kofn_time heard;       /* KF_LONG_AGO: lost, or it has left     */
    kofn_time lost;        /* when; KF_LONG_AGO: it will not be back */
    kofn_time arriving;    /* a body of it was coming in, the last time */
    kofn_epoch epoch;      /* the highest that it said it is in     */
    uint64_t roster;       /* ... and a digest of its members       */
    unsigned failed_terms; /* epochs of its own without an iterate  */
    kofn_time led;         /* when the last of them was entered     */
    kofn_iterate_id at;
    bool final, idle, stranded;
    bool slow;  /* it did not answer in time when it was asked last */
    bool ended; /* it went, and had the result ...                  */
    kofn_iterate_id result; /* ... which is this iterate, if it said so */
    bool liar; /* what it sent was wrong, and it was not heard since */
    uint32_t wish;
    size_t rank; /* among the members, or KF_NONE         */
    kf_ballot ballot[KF_BALLOTS];
    size_t ballots; /* ever */
    /* The iterate that the other node wants of us ... */
    kofn_iterate_id want;
    kofn_epoch want_epoch;
    uint64_t coded, decoded;
    /* ... and what it was asked for, of our iterate. */
    uint64_t asked_coded, asked_decoded;
} kf_other;

/* The largest value that a principal says, over its incarnations. */
typedef struct kf_voice {
    uint64_t principal, value;
} kf_voice;

/* A product that leads from an iterate to the next. */
typedef struct kf_peer_stage {
    const kofn_plan *plan;
    kofn_plan *reader; /* that is `plan`, or NULL */
    kf_code *code;
    kf_cache *cache;
    size_t groups;
    uint64_t all; /* of them, as a set */
    kf_promise promise;
    bool silent; /* some seats may say nothing, whatever is asked */
} kf_peer_stage;

/* A group of our iterate. */
typedef struct kf_cluster {
    uint32_t *have;       /* seats whose pieces are here, ascending */
    kofn_incarnation *by; /* who made each                    */
    size_t count, cap, by_cap;
    const kofn_decoder *decoder; /* once it is decided */
    /* Where errors are looked for: the seats whose pieces are compared, ... */
    uint32_t *evidence;
    size_t shown, evidence_cap;
    const kofn_decoder *all; /* ... theirs; 0 shown: none yet                */
    bool judged;             /* there is a verdict on them                   */
    size_t need;             /* pieces that another takes                    */
} kf_cluster;

/* The decisions of a leader about an iterate, as they are told. */
typedef struct kf_decisions {
    kofn_iterate_id at;
    kofn_epoch epoch;
    uint64_t groups;
    uint32_t *list;
    size_t listed, cap;
} kf_decisions;

/* Catching up with those who are ahead (others.c). */
typedef struct kf_catch_up {
    uint64_t agreed;        /* the farthest that enough others say they are */
    bool behind;            /* somebody says that he is ahead, on another way */
    kofn_time ahead;        /* since when somebody is                         */
    kofn_incarnation asked; /* for its iterate; 0: nobody ... */
    kofn_time asked_at;
    unsigned tries; /* ... in vain so far */
} kf_catch_up;

/* Taking over (epoch.c). */
typedef struct kf_lead {
    unsigned failed;       /* times since the last iterate ...   */
    unsigned failed_terms; /* ... and that we proposed at all    */
    kofn_time proposed, leaderless, stalled; /* since when */
} kf_lead;

/* What most have (vote.c). */
typedef struct kf_votes {
    kf_ballot ballot[KF_BALLOTS]; /* of the last iterates  */
    size_t ballots;               /* ever                  */
    uint64_t doubted_from;        /* ... from this one on, the last time, ... */
    kofn_time doubted;
    bool outvoted;      /* our iterate is not what most have      */
    bool doubts;        /* ... or what it is made of              */
    bool spoilt;        /* ... or it has changed since it was told */
    kofn_status unsure; /* all have told, and no most have the same result:
                           KOFN_CORRUPT; or nobody else has told: TOOFEW */
    bool recount;       /* somebody told, or went                 */
} kf_votes;

/* An iterate from which nothing goes on (again.c). */
typedef struct kf_unsettled {
    kofn_status stuck; /* it cannot be told whose pieces are wrong, ... */
    kofn_time stuck_at;
    unsigned agains;        /* ... so often, of this iterate */
    kofn_time still, quiet; /* since when */
    uint64_t places;        /* where all stood, `still`: or 0 */
} kf_unsettled;

/* The actions of the last step, which its caller takes one by one (node.c). */
typedef struct kf_node_todo {
    kf_node_action *action;
    size_t count, cap, next;
} kf_node_todo;

struct kf_node {
    kf_node_options opt;
    kf_peer_stage *stage;
    kf_course course;         /* through the stages */
    const kf_peer_stage *on;  /* that of our iterate */
    size_t max_seats, enough; /* of all stages: the least, and the most */
    kofn_time now, alarm;

    /* Lives and epochs. */
    kf_other *other;
    size_t others, other_cap;
    kf_voice *voice; /* `confirm` of them, see kf_peer_common */
    kofn_epoch epoch;
    kf_member *member;
    size_t members, member_cap;
    kf_voices voices; /* of the members */
    size_t heads;     /* these, or all who are there: see kf_peer_heads */
    bool falls_short; /* the members are too few, whoever else is heard, or
                         their pieces do not decode                     */
    size_t rank;      /* among the members, or KF_NONE   */
    uint32_t seat;    /* ... and our seat there          */
    uint32_t holds;   /* seat whose blocks are here     */
    uint32_t made_of; /* ... and of whose `made` are   */
    bool lacks;       /* nobody has had such blocks to give for some silences */
    kf_lead lead;

    /* The iterate. */
    kofn_iterate_id at,
        before; /* before: the one that pieces are kept of too */
    kofn_epoch before_epoch;
    bool final;
    bool solo_pending;            /* the next is to be made alone */
    uint64_t made, decided, done; /* of `at` */
    uint64_t made_before, done_before;
    kf_cluster cluster[KF_MAX_GROUPS];
    kf_decisions told[2];          /* of `at`, and of `before` */
    size_t decider[KF_MAX_GROUPS]; /* rank that decides, or KF_NONE */
    uint64_t mine;                 /* groups that we decide          */
    uint64_t own;                  /* ... or check by ourselves      */
    bool disagreed;                /* pieces of this iterate do      */
    kofn_status failed_check;      /* ... or are too few; for good   */
    unsigned repeats;              /* of what pieces are wanted      */
    kofn_time took;                /* iterations, smoothed           */
    kf_catch_up catch_up;
    kf_votes votes;
    kf_unsettled unsettled;

    /* Since when. */
    kofn_time began, starved, finished;
    kofn_time wanted_at, beat_at;
    unsigned single;    /* iterates that we made alone, in succession */
    kofn_time idled;    /* when there first was nothing to do       */
    kofn_time returned; /* from a time in which it did not run   */

    kf_node_todo todo;
    kofn_node_view ever; /* only what is counted */
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
    return UINT64_C(1) << group;
}

static inline bool kf_leads(const kf_node *n)
{
    return n->epoch.number > 0 && n->epoch.proposer == n->opt.incarnation;
}

/* May others be hostile?  Where matrices change all trust each other to take
 * part. */
static inline bool kf_wary(const kf_node *n)
{
    return n->opt.confirm > 1 && !n->opt.changes;
}

/* Behind the last of the others. */
static inline kf_other *kf_end(const kf_node *n)
{
    return n->others ? n->other + n->others : n->other;
}

static inline bool kf_live(const kf_node *n, const kf_other *o)
{
    return o->heard != KF_LONG_AGO && n->now - o->heard < n->opt.silence;
}

/* `t`, doubled for every time that it was too short. */
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

/* What came is of no use, which is no failure. */
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

/* Is the piece of this seat here; is it one of those that are compared? */
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

/* node.c */
kofn_status kf_peer_send(kf_node *n, kofn_incarnation to, kf_note note);
kofn_status kf_peer_take(kf_node *n, const kf_note *note);
/* It had another iterate than most. */
kofn_status kf_peer_erred(kf_node *n, const kf_other *who);
kofn_status kf_peer_beat_all(kf_node *n);
/* Our iterate is another one now. */
kofn_status kf_peer_advance(kf_node *n, kofn_iterate_id to,
                            kf_node_digest digest, bool final);
kofn_iterate_id kf_peer_child(kofn_epoch e, kofn_iterate_id at);

/* vote.c */
/* What this node has of its iterate; nothing is known of it before. */
void kf_peer_cast(kf_node *n, kf_node_digest digest);
void kf_peer_forget_ballots(kf_node *n);
/* The digest of our iterate, as it is told. */
kf_node_digest kf_peer_digest(const kf_node *n);
/* The other node told its own. */
void kf_peer_receive_digest(kf_node *n, kf_other *o, const kf_note *note);
kofn_status kf_peer_count_votes(kf_node *n);
/* Ours is not finite, and it is not known if that is so at most. */
bool kf_peer_is_odd(const kf_node *n);
/* Has the other node our iterate? */
bool kf_peer_has_ours(const kf_node *n, const kf_other *o);
/* Has it the one that most have, and we have another; or a later one, or any
 * where ours is doubted? */
bool kf_peer_has_right(const kf_node *n, const kf_other *o);
/* Numbers of our vector that were not compared may be wrong. */
void kf_peer_doubt(kf_node *n);
/* Our vector has changed since its digest was told, or is none that can be
 * computed with: that is what it is now. */
void kf_peer_spoil(kf_node *n, kf_node_digest digest);

/* again.c */
/* It cannot be told which pieces are wrong, or there are too few: the iterate
 * is made again, or has failed. */
kofn_status kf_peer_give_up(kf_node *n, kofn_status st);
kofn_status kf_peer_tick_again(kf_node *n);
/* Nothing goes on any more, and nothing will. */
kofn_status kf_peer_tick_still(kf_node *n);

/* stage.c */
/* The product that is made of iterate t. */
const kf_peer_stage *kf_peer_stage_of(const kf_node *n, uint64_t t);
kofn_status kf_peer_stages_new(kf_node *n, const kofn_stage *stage,
                               size_t stages, const kf_node_options *opt);
/* Nobody has a decoder in hand. */
void kf_peer_stages_trim(kf_node *n);
void kf_peer_stages_free(kf_node *n);
/* Do the pieces of these seats, which ascend, decode our iterate?  `whole`: a
 * decoder that leaves wants out does not count. */
kofn_status kf_peer_find_decoder(const kf_node *n, const uint32_t *seats,
                                 size_t count, bool whole, kf_answers *a);

/* Do the pieces of all members decode, those of every stage? */
kofn_status kf_peer_members_decode(const kf_node *n, bool *decode);

/* check.c: what must hold between steps: NULL, or what does not. */
const char *kf_node_check(const kf_node *n);

/* others.c */
/* Of duplicates one who is live, if any is. */
kf_other *kf_peer_find(kf_node *n, kofn_incarnation incarnation);
kf_other *kf_peer_find_one(kf_node *n, kofn_incarnation incarnation,
                           uint64_t principal);
/* NULL when there is no room for more. */
kofn_status kf_peer_meet(kf_node *n, kofn_incarnation incarnation,
                         uint64_t principal, kf_other **out);
/* Is it live, or else has ended where that counts, and no duplicate of one that
 * comes before it?  How many are, with this node? */
bool kf_peer_is_another(const kf_node *n, const kf_other *o, bool or_ended);
size_t kf_peer_count(const kf_node *n, bool or_ended);
/* Is the quorum there, or was it until some had the result and went? */
bool kf_peer_have_quorum(const kf_node *n);
/* Can the next iterate not be made of the pieces of those who are there? */
bool kf_peer_are_too_few(const kf_node *n);
/* All that could be done of our iterate is done. */
bool kf_peer_idle(const kf_node *n);
/* The largest `value` that as many principals of those who are live reach as
 * must confirm an iterate, and so at least one who is honest; 0: none. */
uint64_t kf_peer_common(const kf_node *n,
                        uint64_t (*value)(const kf_other *o, const void *of),
                        const void *of);
/* Is what it was asked for then coming in?  Where the link is slow, to ask
 * again would only make it take longer.  Whoever sends a little now and then is
 * waited for no longer than KF_SLOWEST. */
bool kf_peer_is_coming(kf_node *n, const kf_other *o, kofn_time since);
/* Takes the iterate of those who are ahead. */
kofn_status kf_peer_catch_up(kf_node *n);
kofn_status kf_peer_restore(kf_node *n, const kf_note *note);
kofn_status kf_peer_receive_vector(kf_node *n, kf_other *o,
                                   const kf_note *note);

/* epoch.c */
kofn_status kf_peer_tick_epoch(kf_node *n);
kofn_status kf_peer_receive_epoch(kf_node *n, kf_other *o, const kf_note *note);
/* An iterate was made: whoever leads is good for something. */
void kf_peer_reset_leader_backoff(kf_node *n);
/* Is it past the iterate that we are at, and has not told how that is
 * decoded? */
bool kf_peer_leader_went_on(kf_node *n);
/* How long a node waits where nobody seems to be at work. */
kofn_time kf_peer_patience(const kf_node *n);

/* pieces.c */
void kf_peer_clear_iterate(kf_node *n);
void kf_peer_clear_decisions(kf_node *n);
/* Ask the members for what is missing; `again`: also those asked before. */
kofn_status kf_peer_ask_pieces(kf_node *n, bool again);
kofn_status kf_peer_receive_want(kf_node *n, kf_other *o, const kf_note *note);
kofn_status kf_peer_receive_piece(kf_node *n, const kf_note *note);
kofn_status kf_peer_receive_decide(kf_node *n, const kf_note *note);
kofn_status kf_peer_made(kf_node *n, size_t group);
kofn_status kf_peer_decoded(kf_node *n, size_t group);
/* Tell the other node again what this node has decided of that iterate, if it
 * leads. */
kofn_status kf_peer_tell_again(kf_node *n, const kf_other *o,
                               kofn_iterate_id at);
/* The group to compute next, or KF_NONE. */
size_t kf_peer_next_group(const kf_node *n);
bool kf_peer_wants(const kf_node *n, size_t group);
/* All seats whose pieces decode a group are here. */
bool kf_peer_complete(const kf_cluster *c);
/* Among the members, or KF_NONE. */
size_t kf_peer_rank_of(const kf_node *n, kofn_incarnation incarnation);
/* Share the deciding out among the members of a new epoch; groups of one of
 * them. */
void kf_peer_set_deciders(kf_node *n);
uint64_t kf_peer_decides(const kf_node *n, size_t rank);
/* Blocks of one seat that were made of others' differ by rounding, and so do
 * the pieces: within an epoch those count that are of who has the seat. */
void kf_peer_drop_former(kf_node *n);
/* Decide what can be decided from what is here. */
kofn_status kf_peer_decide_all(kf_node *n);
/* Tell the members what was decided, a quarter of the groups at a time; or
 * now. */
kofn_status kf_peer_tell_members(kf_node *n);
kofn_status kf_peer_tell_now(kf_node *n);

/* liars.c */
/* Are errors looked for? */
bool kf_peer_checks(const kf_node *n);
/* What n->voices are: they change as members come, are heard first, or lie. */
kf_voices kf_peer_voices(const kf_node *n);
/* Of whom some may lie: the members; and, where liars conspire, who can be
 * reached or is known to lie besides, for whoever proposes an epoch may leave
 * others out, and what one node knows another does not.  As many as there are
 * seats. */
size_t kf_peer_heads(const kf_node *n);
/* Pieces of a group that its members make unasked. */
size_t kf_peer_awaited(const kf_node *n);
/* Compare those that are here, if they are enough. */
kofn_status kf_peer_gather(kf_node *n, size_t group);
/* The decider compared these. */
kofn_status kf_peer_shown(kf_node *n, size_t group, const uint32_t *seats,
                          size_t count, bool *sound);
bool kf_peer_to_check(const kf_node *n, kf_node_task *out);
kofn_status kf_peer_judged(kf_node *n, const kf_node_event *ev);
kofn_status kf_peer_tick_checks(kf_node *n);
/* Pieces disagreed, and those who could tell whose are wrong are gone. */
kofn_status kf_peer_fail(kf_node *n, kofn_status st);

#endif
