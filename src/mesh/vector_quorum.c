/* vector_quorum.c -- takes the iterate of another node when enough others have
 * the same.  A node cannot check it itself.
 *
 * One node is asked for the vector, others for a fingerprint of theirs: twice
 * the number that must confirm it, and all if these do not suffice.  A
 * fingerprint is the product of the vector with a row that follows from a key.
 * Each node gets another key, which no other node knows.  So a node cannot make
 * up a vector that fits the fingerprints of honest nodes
 * (src/verify/sums.h).  The vectors of honest nodes need not be equal bit
 * for bit, because they may have come to one iterate on different ways.  With f
 * hostile nodes, at least one of f + 1 that agree is honest.
 *
 * Nodes continue in the meantime, so fingerprints may be of earlier iterates
 * than the vector.  Nodes that were asked also send the fingerprints of some
 * later ones.
 *
 * The host owns keys and fingerprints.  A vector with too few witnesses is
 * never taken.
 */
#include "host.h"

#include "base/entropy.h"

#include <assert.h>
#include <math.h>

/* Returns the number of others that are asked for a fingerprint at first.  It
 * is the number that must confirm in addition to the sender of the vector,
 * doubled, because some may be faulty or late. */
static size_t prints_wanted(const kf_node *node)
{
    assert(kf_node_confirmed_by(node) >= 1);
    return 2 * (kf_node_confirmed_by(node) - 1);
}

/* True if it can have a fingerprint of the requested vector. */
static bool can_confirm(const kf_host *h, const kf_route *r, const kf_note *ask)
{
    return r->incarnation != h->it.quorum.asked && !r->over &&
           kf_node_is_ahead(h->node, r->incarnation, ask->at.step + 1);
}

/* True if all others are asked.  The nodes that were asked first did not
 * suffice, too few are known to have the vector, or our own vector is in
 * doubt. */
static bool asks_all(const kf_host *h, const kf_note *ask)
{
    const kofn_iterate_id *was = &h->it.quorum.from;
    size_t can = 0;

    for (size_t i = 0; i < h->net.routes; i++)
        can += can_confirm(h, &h->net.route[i], ask);
    return can < prints_wanted(h->node) ||
           (was->step == ask->at.step && was->lineage == ask->at.lineage);
}

static kofn_status ask_print(kf_host *h, kf_route *r, const kf_note *ask)
{
    kf_note note = *ask;

    TRY(kf_entropy_number(&r->witness.key));
    note.ask.key = r->witness.key;
    return kf_mail_to(h, r->peer, &note);
}

/* Asks for fingerprints.  Each costs a pass over the vector.  Each call begins
 * with another node. */
kofn_status kf_vector_quorum_ask(kf_host *h, kofn_incarnation incarnation,
                                 const kf_note *ask)
{
    size_t left = prints_wanted(h->node);
    bool all;

    assert(incarnation != 0);
    h->it.quorum.asked = incarnation;
    all = asks_all(h, ask);
    h->it.quorum.from = ask->at;
    for (size_t i = 0; i < h->net.routes && h->confirm > 1; i++) {
        kf_route *r = &h->net.route[(ask->at.step + i) % h->net.routes];

        if (r->incarnation == 0 || r->over || r->incarnation == incarnation)
            continue;
        if (!all && (left == 0 || !can_confirm(h, r, ask)))
            continue;
        left -= left > 0;
        TRY(ask_print(h, r, ask));
    }
    return KOFN_OK;
}

/* A node that asked, and has made or taken the iterate that it lacked, asks
 * again if that is not enough. */
void kf_vector_quorum_hear(const kf_mesh_iterate *it, kf_route *r,
                           const kf_note *note)
{
    bool stands = note->type == KF_NOTE_BEAT || note->type == KF_NOTE_WANT;
    uint64_t t = note->at.step;
    uint64_t since = t > r->witness.asked_from ? t - r->witness.asked_from : 0;

    if (note->type == KF_NOTE_ASK && !note->ask.key)
        r->base = note->ask.part ? note->at : (kofn_iterate_id){0, 0};
    if (note->type == KF_NOTE_ASK && note->ask.key) {
        r->witness.remote = note->ask.key;
        r->witness.asked_from = t;
        r->witness.more = KF_PRINTS;
    } else if (stands &&
               (since > 1 ||
                (since == 1 && (t >= it->at.step || it->at.step - t == 1)))) {
        r->witness.more = 0;
    }
}

kofn_status kf_vector_quorum_tell(kf_host *h)
{
    kofn_node_view view;

    kf_node_look(h->node, &view);
    for (size_t i = 0; i < h->net.routes; i++) {
        kf_route *r = &h->net.route[i];
        kf_note note = {.type = KF_NOTE_PRINT,
                        .from = h->opt.incarnation,
                        .epoch = view.epoch,
                        .at = view.at,
                        .print.key = r->witness.remote,
                        .final = view.final,
                        .digest = kf_node_beat(h->node).digest};

        if (r->over || r->witness.more == 0)
            continue;
        r->witness.more--;
        TRY(kf_mail_to(h, r->peer, &note));
    }
    return KOFN_OK;
}

void kf_vector_quorum_print(kf_route *r, const kf_note *note)
{
    size_t i = r->witness.prints++ % KF_PRINTS;

    assert(note->type == KF_NOTE_PRINT);
    r->witness.print[i].t = note->at.step;
    r->witness.print[i].final = note->final;
    r->witness.print[i].taken = note->digest.taken;
    r->witness.print[i].value = note->print.value;
}

void kf_vector_quorum_vector(kf_host *h, const kf_route *r, const kf_note *note,
                             kf_buffer *body)
{
    assert(note->type == KF_NOTE_VECTOR);
    if (note->from != h->it.quorum.asked || !body)
        return;
    kf_buffer_drop(h->it.quorum.body);
    for (size_t i = 0; i < h->net.routes; i++)
        h->net.route[i].witness.expected.made = false;
    h->it.quorum.sender = (kf_sender){r->peer, r->principal};
    h->it.quorum.note = *note;
    h->it.quorum.body = kf_buffer_keep(body);
    h->it.quorum.room = kf_print_room(h, body->m.data);
}

/* Computes the fingerprint of the vector that came, under the key of this peer.
 * It is made once, and compared whenever something comes. */
static void expect(const kf_mesh_iterate *it, kf_route *r)
{
    assert(it->quorum.body);
    assert(r->witness.key != 0);
    const double *body = it->quorum.body->m.data;

    if (!r->witness.expected.made)
        r->witness.expected.print =
            kf_sums_print(r->witness.key, body, KOFN_SCALARS,
                          body + KOFN_SCALARS, it->v->m.rows);
    r->witness.expected.made = true;
}

/* True if the node is no witness, because it took the iterate of others. */
static bool follows(const kf_node *node, bool final, bool taken)
{
    return final && taken && kf_node_hears_makers(node);
}

static bool confirms(const kf_host *h, kf_route *r)
{
    const kf_vector_quorum *c = &h->it.quorum;

    if (!r->incarnation || r->over || !r->witness.key)
        return false;
    for (size_t i = 0; i < KF_PRINTS && i < r->witness.prints; i++) {
        if (r->witness.print[i].t != c->note.at.step ||
            r->witness.print[i].final != c->note.final ||
            follows(h->node, c->note.final, r->witness.print[i].taken))
            continue;
        expect(&h->it, r);
        if (fabs(r->witness.expected.print.sum - r->witness.print[i].value) <=
                fmin(kf_print_may_differ(&h->work) *
                         r->witness.expected.print.most,
                     c->room) &&
            isfinite(r->witness.expected.print.most))
            return true;
    }
    return false;
}

/* True if the vector has our number, and the same numbers as ours. */
static bool is_local(const kf_mesh_iterate *it)
{
    const kf_vector_quorum *c = &it->quorum;
    const double *body = c->body->m.data;

    return c->note.at.step == it->at.step &&
           memcmp(body, it->scalar, sizeof it->scalar) == 0 &&
           memcmp(body + KOFN_SCALARS, it->v->m.data,
                  it->v->m.rows * sizeof *body) == 0;
}

/* True if the vector agrees with our own of the same number.  It then needs no
 * confirmation.  At most once per iterate: otherwise a hostile node could move
 * it a little each time. */
static bool like_local(const kf_host *h)
{
    const kf_vector_quorum *c = &h->it.quorum;
    const double *body = c->body->m.data, *v = h->it.v->m.data;
    size_t rows = h->it.v->m.rows;
    double most = kf_sums_greatest(v, rows, 0);

    return c->note.at.step == h->it.at.step && c->merged != h->it.at.step &&
           !c->note.final &&
           kf_sums_alike(body + KOFN_SCALARS, v, rows,
                         kf_print_may_differ(&h->work) * most) &&
           kf_sums_alike(
               body, h->it.scalar, KOFN_SCALARS,
               kf_print_may_differ(&h->work) *
                   kf_sums_greatest(h->it.scalar, KOFN_SCALARS, most));
}

/* True if enough principals agree, with that of the sender.  Examines no more
 * of them than necessary. */
static bool is_confirmed(kf_host *h)
{
    const kf_note *note = &h->it.quorum.note;
    size_t say = !follows(h->node, note->final, note->digest.taken);
    size_t wanted = kf_node_confirmed_by(h->node);

    for (size_t i = 0; i < h->net.routes && say < wanted; i++) {
        kf_route *r = &h->net.route[i];
        bool again = r->principal == h->it.quorum.sender.principal;

        for (size_t j = 0; j < i && !again; j++)
            again = h->net.route[j].witness.agrees &&
                    h->net.route[j].principal == r->principal;
        r->witness.agrees = !again && confirms(h, r);
        say += r->witness.agrees;
    }
    return say >= wanted;
}

bool kf_vector_quorum_ready(kf_host *h, kf_note *note, kf_buffer **body)
{
    if (!h->it.quorum.body)
        return false;
    if (!is_confirmed(h) && !is_local(&h->it)) {
        if (!like_local(h))
            return false;
        h->it.quorum.merged = h->it.at.step;
    }
    *note = h->it.quorum.note;
    *body = h->it.quorum.body;
    h->it.quorum.body = NULL;
    return true;
}

void kf_vector_quorum_drop(kf_mesh_iterate *it)
{
    kf_buffer_drop(it->quorum.body);
    it->quorum = (kf_vector_quorum){0};
}
