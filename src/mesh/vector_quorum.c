/* vector_quorum.c -- takes the iterate of another node when enough others have
 * the same.  A node cannot check it itself.
 *
 * One node is asked for the vector, others for a fingerprint of theirs: twice
 * the number that must confirm it, and all if these do not suffice.  A
 * fingerprint is the product of the vector with a row that follows from a key.
 * Each node gets another key, which no other node knows.  So a node cannot make
 * up a vector that fits the fingerprints of honest nodes.
 *
 * The entries of the row are products of two weights from 1/2 to 1, of a span
 * and of a place in it.  So an error e of one number is seen if e > 4 t.
 * Errors of several numbers come within t of zero with a chance of at most 4 t
 * / e, with e the largest.  The vectors of honest nodes need not be equal bit
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

#include "base/mix.h"
#include "base/vectors.h"

#include <assert.h>
#include <math.h>

/* Allowed differences, relative to the sum of the magnitudes of all entries.
 * Honest nodes may differ by more if the code is noisy: then none confirms, and
 * nothing is taken.  If nodes vote (ballot.c), fingerprints may differ by no
 * more than votes.  Otherwise a node could take a vector with an error that is
 * too small to be seen here, and the vote would blame it. */
#define MAY_DIFFER 1e-11
#define MAY_DIFFER_F32 1e-4

static double may_differ(const kf_host *h)
{
    return h->single ? MAY_DIFFER_F32 : MAY_DIFFER;
}

/* With fewer components gcc 12 shuffles them across its vectors, which takes
 * three times the time. */
#define LANES 32
#define SPAN 512 /* numbers that share a weight */

/* Returns the largest of `most` and the magnitudes of n numbers. */
KF_VECTORS(optimize("O3"))
static double greatest(const double *x, size_t n, double most)
{
    double top[LANES] = {0};
    size_t i = 0;

    for (; i + LANES <= n; i += LANES)
        for (size_t k = 0; k < LANES; k++) {
            double magnitude = fabs(x[i + k]);

            top[k] = magnitude > top[k] ? magnitude : top[k];
        }
    for (; i < n; i++)
        most = fmax(most, fabs(x[i]));
    for (size_t k = 0; k < LANES; k++)
        most = fmax(most, top[k]);
    return most;
}

/* Returns the difference of fingerprints that a vote about the vector allows.
 * There is no limit without votes, or for a node that has decoded nothing and
 * so does not know the noise of the code. */
static double room_of(const kf_host *h, const double *body)
{
    size_t numbers = KOFN_SCALARS + h->v->m.rows;

    return h->opt.errors == KOFN_ERRORS_NONE || h->noise <= 0
               ? HUGE_VAL
               : kf_host_room(h, numbers, greatest(body, numbers, 0));
}

/* A fingerprint before its components are added up. */
typedef struct components {
    double sum[LANES], size[LANES];
} components;

/* Adds a span of at most SPAN numbers, with the weights of their places and
 * `own`, the weight of the span. */
KF_VECTORS(optimize("O3"))
static void add(components *to, const double weight[SPAN], double own,
                const double *x, size_t n)
{
    double sum[LANES] = {0}, size[LANES] = {0};
    size_t i = 0;

    assert(n <= SPAN);
    for (; i + LANES <= n; i += LANES)
        for (size_t k = 0; k < LANES; k++) {
            double y = weight[i + k] * x[i + k];

            sum[k] += y;
            size[k] += fabs(y);
        }
    for (size_t k = 0; i + k < n; k++) {
        double y = weight[i + k] * x[i + k];

        sum[k] += y;
        size[k] += fabs(y);
    }
    for (size_t k = 0; k < LANES; k++) {
        to->sum[k] += own * sum[k];
        to->size[k] += fabs(own) * size[k];
    }
}

static double weight_of(uint64_t key, size_t number)
{
    return kf_weight64(kf_mix64(kf_state64(key, number)));
}

static kf_print print_of(uint64_t key, const double *scalar, const double *v,
                         size_t rows)
{
    double weight[SPAN];
    size_t drawn = 0;
    components all = {0};
    kf_print p = {0};

    for (size_t k = 0; k < SPAN; k++)
        weight[k] = weight_of(key, drawn++);
    add(&all, weight, weight_of(key, drawn++), scalar, KOFN_SCALARS);
    for (size_t at = 0; at < rows; at += SPAN)
        add(&all, weight, weight_of(key, drawn++), v + at,
            kf_min(SPAN, rows - at));
    for (size_t k = 0; k < LANES; k++) {
        p.sum += all.sum[k];
        p.most += all.size[k];
    }
    return p;
}

double kf_vector_quorum_local(const kf_host *h, uint64_t key)
{
    return print_of(key, h->scalar, h->v->m.data, h->v->m.rows).sum;
}

/* Returns the number of others that are asked for a fingerprint at first.  It
 * is the number that must confirm in addition to the sender of the vector,
 * doubled, because some may be faulty or late. */
static size_t prints_wanted(const kf_host *h)
{
    assert(kf_node_confirmed_by(h->node) >= 1);
    return 2 * (kf_node_confirmed_by(h->node) - 1);
}

/* True if it can have a fingerprint of the requested vector. */
static bool can_confirm(const kf_host *h, const kf_route *r, const kf_note *ask)
{
    return r->incarnation != h->vector_quorum.asked && !r->over &&
           kf_node_is_ahead(h->node, r->incarnation, ask->at.step + 1);
}

/* True if all others are asked.  The nodes that were asked first did not
 * suffice, too few are known to have the vector, or our own vector is in
 * doubt. */
static bool asks_all(const kf_host *h, const kf_note *ask)
{
    const kofn_iterate_id *was = &h->vector_quorum.from;
    size_t can = 0;

    for (size_t i = 0; i < h->routes; i++)
        can += can_confirm(h, &h->route[i], ask);
    return can < prints_wanted(h) ||
           (was->step == ask->at.step && was->lineage == ask->at.lineage);
}

static kofn_status ask_print(kf_host *h, kf_route *r, const kf_note *ask)
{
    kf_note note = *ask;

    while (r->key == 0)
        TRY(kf_host_random(&r->key, sizeof r->key));
    note.ask.key = r->key;
    return kf_mail_to(h, r->peer, &note);
}

/* Asks for fingerprints.  Each costs a pass over the vector.  Each call begins
 * with another node. */
kofn_status kf_vector_quorum_ask(kf_host *h, kofn_incarnation incarnation,
                                 const kf_note *ask)
{
    size_t left = prints_wanted(h);
    bool all;

    assert(incarnation != 0);
    h->vector_quorum.asked = incarnation;
    all = asks_all(h, ask);
    h->vector_quorum.from = ask->at;
    for (size_t i = 0; i < h->routes && h->confirm > 1; i++) {
        kf_route *r = &h->route[(ask->at.step + i) % h->routes];

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
void kf_vector_quorum_hear(const kf_host *h, kf_route *r, const kf_note *note)
{
    bool stands = note->type == KF_NOTE_BEAT || note->type == KF_NOTE_WANT;
    uint64_t t = note->at.step;
    uint64_t since = t > r->asked_from ? t - r->asked_from : 0;

    if (note->type == KF_NOTE_ASK && !note->ask.key)
        r->base = note->ask.part ? note->at : (kofn_iterate_id){0, 0};
    if (note->type == KF_NOTE_ASK && note->ask.key) {
        r->remote = note->ask.key;
        r->asked_from = t;
        r->more = KF_PRINTS;
    } else if (stands && (since > 1 || (since == 1 && (t >= h->at.step ||
                                                       h->at.step - t == 1)))) {
        r->more = 0;
    }
}

kofn_status kf_vector_quorum_tell(kf_host *h)
{
    kofn_node_view view;

    kf_node_look(h->node, &view);
    for (size_t i = 0; i < h->routes; i++) {
        kf_route *r = &h->route[i];
        kf_note note = {.type = KF_NOTE_PRINT,
                        .from = h->opt.incarnation,
                        .epoch = view.epoch,
                        .at = view.at,
                        .print.key = r->remote,
                        .final = view.final,
                        .digest = kf_node_beat(h->node).digest};

        if (r->over || r->more == 0)
            continue;
        r->more--;
        TRY(kf_mail_to(h, r->peer, &note));
    }
    return KOFN_OK;
}

void kf_vector_quorum_print(kf_route *r, const kf_note *note)
{
    size_t i = r->prints++ % KF_PRINTS;

    assert(note->type == KF_NOTE_PRINT);
    r->print[i].t = note->at.step;
    r->print[i].final = note->final;
    r->print[i].taken = note->digest.taken;
    r->print[i].value = note->print.value;
}

void kf_vector_quorum_vector(kf_host *h, const kf_route *r, const kf_note *note,
                             kf_buffer *body)
{
    assert(note->type == KF_NOTE_VECTOR);
    if (note->from != h->vector_quorum.asked || !body)
        return;
    kf_buffer_drop(h->vector_quorum.body);
    for (size_t i = 0; i < h->routes; i++)
        h->route[i].expected.made = false;
    h->vector_quorum.sender = *r;
    h->vector_quorum.note = *note;
    h->vector_quorum.body = kf_buffer_keep(body);
    h->vector_quorum.room = room_of(h, body->m.data);
}

/* Computes the fingerprint of the vector that came, under the key of this peer.
 * It is made once, and compared whenever something comes. */
static void expect(const kf_host *h, kf_route *r)
{
    assert(h->vector_quorum.body);
    assert(r->key != 0);
    const double *body = h->vector_quorum.body->m.data;

    if (!r->expected.made)
        r->expected.print =
            print_of(r->key, body, body + KOFN_SCALARS, h->v->m.rows);
    r->expected.made = true;
}

/* True if the node is no witness, because it took the iterate of others. */
static bool follows(const kf_host *h, bool final, bool taken)
{
    return final && taken && kf_node_hears_makers(h->node);
}

static bool confirms(const kf_host *h, kf_route *r)
{
    const kf_vector_quorum *c = &h->vector_quorum;

    if (!r->incarnation || r->over || !r->key)
        return false;
    for (size_t i = 0; i < KF_PRINTS && i < r->prints; i++) {
        if (r->print[i].t != c->note.at.step ||
            r->print[i].final != c->note.final ||
            follows(h, c->note.final, r->print[i].taken))
            continue;
        expect(h, r);
        if (fabs(r->expected.print.sum - r->print[i].value) <=
                fmin(may_differ(h) * r->expected.print.most, c->room) &&
            isfinite(r->expected.print.most))
            return true;
    }
    return false;
}

bool kf_mesh_alike(const double *x, const double *y, size_t n, double room)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabs(x[i] - y[i]) <= room))
            return false;
    return true;
}

/* True if the vector has our number, and the same numbers as ours. */
static bool is_local(const kf_host *h)
{
    const kf_vector_quorum *c = &h->vector_quorum;
    const double *body = c->body->m.data;

    return c->note.at.step == h->at.step &&
           memcmp(body, h->scalar, sizeof h->scalar) == 0 &&
           memcmp(body + KOFN_SCALARS, h->v->m.data,
                  h->v->m.rows * sizeof *body) == 0;
}

/* True if the vector agrees with our own of the same number.  It then needs no
 * confirmation.  At most once per iterate: otherwise a hostile node could move
 * it a little each time. */
static bool like_local(const kf_host *h)
{
    const kf_vector_quorum *c = &h->vector_quorum;
    const double *body = c->body->m.data, *v = h->v->m.data;
    size_t rows = h->v->m.rows;
    double most = greatest(v, rows, 0);

    return c->note.at.step == h->at.step && c->merged != h->at.step &&
           !c->note.final &&
           kf_mesh_alike(body + KOFN_SCALARS, v, rows, may_differ(h) * most) &&
           kf_mesh_alike(body, h->scalar, KOFN_SCALARS,
                         may_differ(h) *
                             greatest(h->scalar, KOFN_SCALARS, most));
}

/* True if enough principals agree, with that of the sender.  Examines no more
 * of them than necessary. */
static bool is_confirmed(kf_host *h)
{
    const kf_note *note = &h->vector_quorum.note;
    size_t say = !follows(h, note->final, note->digest.taken);
    size_t wanted = kf_node_confirmed_by(h->node);

    for (size_t i = 0; i < h->routes && say < wanted; i++) {
        kf_route *r = &h->route[i];
        bool again = r->principal == h->vector_quorum.sender.principal;

        for (size_t j = 0; j < i && !again; j++)
            again = h->route[j].agrees && h->route[j].principal == r->principal;
        r->agrees = !again && confirms(h, r);
        say += r->agrees;
    }
    return say >= wanted;
}

bool kf_vector_quorum_ready(kf_host *h, kf_note *note, kf_buffer **body)
{
    if (!h->vector_quorum.body)
        return false;
    if (!is_confirmed(h) && !is_local(h)) {
        if (!like_local(h))
            return false;
        h->vector_quorum.merged = h->at.step;
    }
    *note = h->vector_quorum.note;
    *body = h->vector_quorum.body;
    h->vector_quorum.body = NULL;
    return true;
}

void kf_vector_quorum_drop(kf_host *h)
{
    kf_buffer_drop(h->vector_quorum.body);
    h->vector_quorum = (kf_vector_quorum){0};
}
