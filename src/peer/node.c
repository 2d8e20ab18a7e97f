/* node.c -- the life of the coordinator of one node of a mesh.
 *
 * It tracks the state of the node, and passes each event to the file that
 * handles it.  It owns the node and all that is in it, from kf_node_new to
 * kf_node_free.  Like the coordinator of rounds it must not wait, read a clock
 * or see a matrix.
 */
#include "node.h"

#include <assert.h>

#define FARTHEST (UINT64_MAX / 4) /* so that no count overflows */

/* ---- notes --------------------------------------------------------------- */

/* Sends a note to all nodes that are not lost. */
static kofn_status send_all(kf_node *n, kf_note note)
{
    for (const kf_other *o = n->table.other; o != kf_end(n); o++)
        if (o->heard != KF_LONG_AGO)
            TRY(kf_peer_send(n, o->incarnation, note));
    return KOFN_OK;
}

/* Stores the iterate of the other node, unless a newer note overtook this
 * one. */
static void place(kf_other *o, const kf_note *note)
{
    if (note->at.step < o->at.step)
        return;
    if (!kf_same_iterate(note->at, o->at))
        o->final = o->idle = false;
    o->at = note->at;
}

static kofn_status hear_beat(kf_node *n, kf_other *o, const kf_note *note)
{
    place(o, note);
    if (kf_same_iterate(o->at, note->at)) {
        o->final |= note->final;
        o->idle = note->idle;
    }
    o->wish = note->seat;
    o->stranded = note->stranded;
    if (kf_before(note->epoch, n->in.epoch))
        return kf_peer_send(n, o->incarnation,
                            (kf_note){.type = KF_NOTE_EPOCH});
    if (kf_before(n->in.epoch, note->epoch)) /* it will answer with the epoch */
        return kf_peer_send(n, o->incarnation, kf_node_beat(n));
    return kf_peer_tell_again(n, o, note->at);
}

/* Forgets the iterate of a node until it is heard again.  `at` is the time at
 * which it was lost, or KF_LONG_AGO if it said that it will not return. */
static void lose(kf_other *o, kofn_time at)
{
    o->lost = at;
    if (o->final) {
        o->ended = true;
        o->result = o->at;
    }
    o->at = (kofn_iterate_id){0, 0};
    o->epoch = (kofn_epoch){0, 0};
    o->roster = 0;
    o->final = o->idle = false;
    o->heard = KF_LONG_AGO;
    o->asked.partials = o->asked.results = 0;
}

static kofn_status dispatch(kf_node *n, kf_other *o, const kf_note *note)
{
    switch (note->type) {
    case KF_NOTE_BEAT:
        kf_peer_receive_digest(n, o, note);
        return hear_beat(n, o, note);
    case KF_NOTE_EPOCH:
        return kf_peer_receive_epoch(n, o, note);
    case KF_NOTE_DECIDE:
        if (note->at.step > n->stage.at.step)
            place(o, note);
        return kf_peer_receive_decide(n, note);
    case KF_NOTE_WANT:
        place(o, note);
        kf_peer_receive_digest(n, o, note);
        return kf_peer_receive_want(n, o, note);
    case KF_NOTE_ENOUGH:
        if (kf_same_iterate(o->want.at, note->at))
            o->want.of.partials &= ~note->enough.groups;
        return KOFN_OK;
    case KF_NOTE_PARTIAL:
        return kf_peer_receive_partial(n, note);
    case KF_NOTE_ASK:
        place(o, note);
        return kf_peer_send(
            n, o->incarnation,
            (kf_note){.type = note->ask.key ? KF_NOTE_PRINT : KF_NOTE_VECTOR,
                      .at = n->stage.at,
                      .print.key = note->ask.key,
                      .final = n->stage.final,
                      .digest = kf_peer_digest(n)});
    case KF_NOTE_VECTOR:
        place(o, note);
        return kf_peer_receive_vector(n, o, note);
    case KF_NOTE_BYE:
        lose(o, KF_LONG_AGO);
        return KOFN_OK;
    case KF_NOTE_PRINT: /* for the host */
        place(o, note);
        return KOFN_OK;
    default: /* for the host, too; they never come here */
        break;
    }
    return kf_drop(n);
}

/* Refuses numbers beyond FARTHEST: one hostile note could exhaust them. */
static kofn_status receive(kf_node *n, const kf_note *note, uint64_t principal)
{
    kf_other *o;
    bool back;

    if (note->from == n->opt.incarnation || note->from == 0 ||
        note->at.step > FARTHEST || note->epoch.number > FARTHEST)
        return kf_drop(n);
    TRY(kf_peer_meet(n, note->from, principal, &o));
    if (!o)
        return kf_drop(n);
    back = o->heard == KF_LONG_AGO;
    o->heard = n->now;
    if (o->liar) {
        o->liar = false;
        n->in.voices = kf_peer_voices(n);
    }
    if (kf_elapsed_or_wake(n, n->returned,
                           n->opt.silence)) /* else it may be an old note */
        o->ended = false;
    if (note->type != KF_NOTE_PARTIAL && kf_before(o->epoch, note->epoch)) {
        o->epoch = note->epoch;
        o->roster = 0;
    }
    if (back) /* it counted as lost when partial products were requested */
        TRY(kf_peer_ask_partials(n, false));
    return dispatch(n, o, note);
}

/* ---- work ---------------------------------------------------------------- */

/* Handles the end of a task.  Its result is of no use if the iterate or the
 * epoch has changed. */
static kofn_status finished(kf_node *n, const kf_node_event *ev)
{
    const kf_node_task *t = ev->task;
    bool now = kf_same_iterate(t->at, n->stage.at),
         open = now && !n->stage.final;

    switch (t->type) {
    case KF_NODE_TASK_ENCODE:
        if (n->blocks.made_of != t->seat)
            n->stage.made = n->stage.made_before =
                0; /* those were partial products of another seat */
        n->blocks.holds = n->blocks.made_of = t->seat;
        return KOFN_OK;
    case KF_NODE_TASK_COMPUTE:
        if (now && t->seat == n->blocks.holds && t->group < n->on->groups)
            return kf_peer_made(n, t->group);
        break;
    case KF_NODE_TASK_CHECK:
    case KF_NODE_TASK_DECODE:
        if (open && kf_same_epoch(t->epoch, n->in.epoch) &&
            t->group < n->on->groups)
            return t->type == KF_NODE_TASK_CHECK ? kf_peer_judged(n, ev)
                                                 : kf_peer_decoded(n, t->group);
        break;
    case KF_NODE_TASK_UPDATE:
        if (open && n->stage.done == n->on->all) {
            n->alone.single = 0;
            return kf_peer_advance(n, kf_peer_child(n->in.epoch, n->stage.at),
                                   ev->digest, ev->final);
        }
        break;
    case KF_NODE_TASK_SOLO:
        if (!open)
            break;
        n->ever.alone++;
        n->alone.single++;
        return kf_peer_advance(
            n,
            kf_peer_child((kofn_epoch){~n->in.epoch.number, n->opt.incarnation},
                          n->stage.at),
            ev->digest, ev->final);
    case KF_NODE_TASK_NONE:
        break;
    }
    return kf_drop(n);
}

/* ---- timeouts ------------------------------------------------------------ */

/* Shifts all times by the time `away` in which this node did not run: no other
 * node counts as silent for it, and no wait includes it.  Other nodes may have
 * ended meanwhile.  If matrices do not change, a node that is not heard again
 * counts as ended, and the rest is computed alone. */
static void refresh_liveness(kf_node *n, kofn_time away)
{
    kofn_time *since[] = {&n->in.lead.stalled, &n->in.lead.leaderless,
                          &n->alone.starved,   &n->alone.idled,
                          &n->unsettled.still, &n->unsettled.quiet};

    for (kf_other *o = n->table.other; o != kf_end(n); o++) {
        if (o->lost != KF_LONG_AGO)
            o->lost += away;
        if (o->heard == KF_LONG_AGO)
            continue;
        o->ended |= kf_live(n, o) && !n->opt.changes && !o->liar;
        o->heard += away;
    }
    for (size_t i = 0; i < sizeof since / sizeof *since; i++)
        if (*since[i] != KF_LONG_AGO)
            *since[i] += away;
    n->stage.began += away;
    n->returned = n->now + away;
}

static kofn_status check_quorum(kf_node *n)
{
    bool was = n->alone.starved != KF_LONG_AGO;
    size_t live;

    if (!kf_track_since(n, &n->alone.starved,
                        !kf_peer_have_quorum(n) && !n->stage.final))
        return was ? kf_peer_decide_all(n) : KOFN_OK;
    if (n->pieces.disagreed && !n->unsettled.failed &&
        kf_elapsed_or_wake(n, n->alone.starved, KF_UNSETTLED * n->opt.silence))
        return kf_peer_fail(n, KOFN_CORRUPT);
    if (n->unsettled.failed || n->opt.give_up == 0 ||
        !kf_elapsed_or_wake(n, n->alone.starved, n->opt.give_up))
        return KOFN_OK;
    live = kf_peer_count(n, false);
    if (live >= n->opt.quorum)
        return kf_fail(
            KOFN_TOOFEW,
            "the seats of the %zu nodes that could be reached in %.3g s "
            "do not decode; start more nodes, or wait longer",
            live, (double)n->opt.give_up * 1e-9);
    return kf_fail(KOFN_TOOFEW,
                   "%zu of the %zu nodes that are needed could be "
                   "reached in %.3g s; start more nodes, or wait longer",
                   live, n->opt.quorum, (double)n->opt.give_up * 1e-9);
}

/* Returns how long this node waits before it makes an iterate alone.  It does
 * not wait if too few nodes are left because the others have the result.  A
 * node that is behind waits for less than one that is not, so that it catches
 * up. */
static kofn_time solo_after(const kf_node *n, bool deserted)
{
    kofn_time busy = 4 * (n->alone.idled - n->stage.began);
    kofn_time wait = (4 * n->opt.patience + busy) >>
                     (n->alone.single < 8 ? n->alone.single : 8);

    assert(n->alone.idled != KF_LONG_AGO);
    if (n->catch_up.asked)
        return wait;
    if (deserted)
        return 0;
    if (n->catch_up.behind)
        return n->opt.beat + busy;
    return wait > 4 * n->opt.beat ? wait : 4 * n->opt.beat;
}

/* Lets this node make the next iterate alone if it has nothing to do for long.
 * No trusted node offers an iterate, and too few nodes that claim ours help to
 * make the next.  Hostile nodes can cause this.  So can a leader that leaves
 * while the honest nodes are at two iterates.  Each then continues alone, until
 * they agree again. */
static void consider_solo(kf_node *n)
{
    bool deserted = kf_peer_are_too_few(n);

    if (n->opt.changes || n->unsettled.failed || n->votes.outvoted ||
        (n->opt.confirm < 2 && !deserted) || n->stage.final ||
        n->alone.pending || !kf_peer_have_quorum(n) || !kf_peer_idle(n))
        return;
    kf_track_since(n, &n->alone.idled, true);
    n->alone.pending =
        kf_elapsed_or_wake(n, n->alone.idled, solo_after(n, deserted));
}

/* Sends a heartbeat when its time has come, or if something happened that the
 * others should know at once. */
static kofn_status beat(kf_node *n)
{
    if (kf_elapsed_or_wake(n, n->beat_at, n->opt.beat)) {
        n->in.heads = kf_peer_heads(n);
        kf_peer_beat_soon(n);
        kf_elapsed_or_wake(n, n->beat_at, n->opt.beat);
    }
    if (!n->beat_due)
        return KOFN_OK;
    n->beat_due = false;
    return send_all(n, kf_node_beat(n));
}

static kofn_status on_tick(kf_node *n)
{
    n->alarm = KOFN_NEVER;
    TRY(check_quorum(n));
    TRY(kf_peer_catch_up(n));
    TRY(kf_peer_tick_epoch(n));
    if (!n->stage.final &&
        kf_elapsed_or_wake(n, n->pieces.wanted_at,
                           kf_longer(n->opt.hedge, n->pieces.repeats))) {
        n->pieces.repeats++;
        TRY(kf_peer_ask_partials(n, true));
        kf_elapsed_or_wake(n, n->pieces.wanted_at,
                           kf_longer(n->opt.hedge, n->pieces.repeats));
    }
    TRY(kf_peer_tick_checks(n));
    TRY(kf_peer_count_votes(n));
    TRY(kf_peer_tick_again(n));
    TRY(kf_peer_tick_still(n));
    consider_solo(n);
    return beat(n);
}

/* Excludes a node that sent something wrong.  The entry is NULL if there is
 * none.  A principal counts once, however many faulty incarnations it has. */
static void condemn(kf_node *n, kf_other *who, uint64_t principal)
{
    bool counted = false;

    for (const kf_other *o = n->table.other; o != kf_end(n); o++)
        counted |= o->liar && o->principal == principal;
    n->ever.liars += !counted;
    if (!who)
        return;
    lose(who, KF_LONG_AGO);
    who->ended = false;
    who->liar = true;
    n->in.voices = kf_peer_voices(n);
}

kofn_status kf_node_step(kf_node *n, const kf_node_event *ev)
{
    uint64_t principal = ev->principal ? ev->principal
                         : ev->note    ? ev->note->from
                                       : ev->incarnation;
    kf_other *who = NULL;

    if (n->todo.next < n->todo.count)
        return kf_fail(KOFN_STATE,
                       "%zu actions of the last step were not taken",
                       n->todo.count - n->todo.next);
    n->todo.count = n->todo.next = 0;
    if (ev->now > n->now) {
        kofn_time away = ev->now - n->now;

        if (away > n->opt.silence / 2)
            refresh_liveness(n, away);
        n->now = ev->now;
    }
    if (ev->incarnation)
        who = kf_peer_find_one(n, ev->incarnation, principal);
    switch (ev->type) {
    case KF_NODE_TICK:
        n->blocks.lacks = ev->lacks;
        break;
    case KF_NODE_WENT:
        if (who)
            lose(who, n->now);
        break;
    case KF_NODE_NOTE:
        TRY(receive(n, ev->note, principal));
        break;
    case KF_NODE_DONE:
        TRY(finished(n, ev));
        break;
    case KF_NODE_LEAVE:
        return send_all(n, (kf_note){.type = KF_NOTE_BYE});
    case KF_NODE_RESTORED:
        TRY(kf_peer_restore(n, ev->note));
        return beat(n);
    case KF_NODE_LOST:
        n->blocks.holds = KOFN_NO_SEAT; /* what was made from them stays */
        break;
    case KF_NODE_DOUBT:
        kf_peer_doubt(n);
        break;
    case KF_NODE_SPOILT:
        kf_peer_spoil(n, ev->digest);
        break;
    case KF_NODE_ARRIVING:
        if (who)
            who->arriving = n->now;
        break;
    case KF_NODE_LIAR:
        condemn(n, who, principal);
        break;
    }
    TRY(on_tick(n));
    assert(!kf_node_assert_state(n));
    return KOFN_OK;
}

kofn_time kf_node_alarm(const kf_node *n)
{
    return n->alarm;
}

/* ---- life ---------------------------------------------------------------- */

static void settle(kf_node_options *o, size_t enough)
{
    if (o->quorum < enough)
        o->quorum = enough;
    if (o->confirm == 0)
        o->confirm = kf_node_confirm(o->nodes);
    if (!(o->tolerance > 0))
        o->tolerance = 1e-9;
    if (o->beat <= 0)
        o->beat = KOFN_SECOND / 20;
    if (o->silence <= 0)
        o->silence = 20 * o->beat;
    if (o->hedge <= 0)
        o->hedge = 2 * o->beat;
    if (o->patience <= 0)
        o->patience = 5 * o->beat;
    if (o->linger <= 0)
        o->linger = 2 * KOFN_SECOND;
}

static kofn_status check_options(const kf_node_options *o)
{
    if (o->incarnation == 0)
        return kf_fail(KOFN_INVAL,
                       "incarnation 0 is reserved; number incarnations from 1");
    if (o->groups < 1 || o->groups > KF_MAX_GROUPS)
        return kf_fail(KOFN_INVAL, "%zu groups; a mesh has 1 to %d", o->groups,
                       KF_MAX_GROUPS);
    if (o->decoding != KOFN_DECODE_REPLICATED &&
        o->decoding != KOFN_DECODE_DISTRIBUTED)
        return kf_fail(KOFN_INVAL,
                       "decoding %d is neither replicated nor distributed",
                       (int)o->decoding);
    if (o->errors == KOFN_ERRORS_KEYED)
        return kf_fail(KOFN_UNSUITED,
                       "errors = keyed needs a coordinator; nodes of a mesh "
                       "take probabilistic or adversarial");
    if (o->errors != KOFN_ERRORS_NONE && o->decoding != KOFN_DECODE_REPLICATED)
        return kf_fail(KOFN_UNSUITED,
                       "errors can be located only with replicated decoding; "
                       "set decoding to replicated");
    return KOFN_OK;
}

static kofn_status make(kf_node *n, const kofn_mesh_product *product,
                        size_t products, const kf_node_options *opt,
                        kofn_time now)
{
    TRY(kf_peer_products_new(n, product, products, opt));
    n->opt = *opt;
    settle(&n->opt, n->enough + kf_peer_checks(n));
    n->now = n->stage.began = now;
    n->alarm = now;
    n->in.rank = KF_NONE;
    n->in.voices = kf_peer_voices(n);
    n->in.heads = 1;
    n->in.seat = n->blocks.holds = n->blocks.made_of = KOFN_NO_SEAT;
    n->stage.at = n->stage.before =
        opt->from.step ? opt->from : (kofn_iterate_id){0, opt->job};
    n->on = kf_peer_product_of(n, n->stage.at.step);
    n->in.lead.leaderless = n->in.lead.stalled = n->catch_up.ahead =
        n->alone.starved = n->alone.idled = n->returned = n->votes.doubted =
            n->unsettled.still = n->unsettled.quiet = KF_LONG_AGO;
    n->in.lead.proposed = n->beat_at = n->catch_up.asked_at =
        n->pieces.wanted_at = now;
    TRY_ZERO(n->table.voice, n->opt.confirm);
    return KOFN_OK;
}

kofn_status kf_node_new(kf_node **out, const kofn_mesh_product *product,
                        size_t products, const kf_node_options *opt,
                        kofn_time now)
{
    kf_node *n;
    kofn_status st;

    *out = NULL;
    TRY(check_options(opt));
    TRY_ZERO(n, 1);
    st = make(n, product, products, opt, now);
    if (st) {
        kf_node_free(n);
        return st;
    }
    *out = n;
    return KOFN_OK;
}

void kf_node_free(kf_node *n)
{
    if (!n)
        return;
    for (size_t g = 0; g < KF_MAX_GROUPS; g++) {
        kf_free(n->pieces.cluster[g].have);
        kf_free(n->pieces.cluster[g].by);
        kf_free(n->pieces.cluster[g].evidence);
    }
    kf_free(n->pieces.decisions[0].list);
    kf_free(n->pieces.decisions[1].list);
    kf_peer_products_free(n);
    kf_free(n->table.other);
    kf_free(n->table.voice);
    kf_free(n->in.member);
    kf_free(n->todo.action);
    kf_free(n);
}
