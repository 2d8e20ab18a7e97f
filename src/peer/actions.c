/* actions.c -- the queue of actions that a step leaves: notes to send, vectors
 * to take, and nodes that disagreed with the majority.
 *
 * Pointers in queued notes may become void; kf_node_next completes each note
 * when it is taken.  The node owns the queue. */
#include "node.h"

#include <assert.h>

static kofn_status act(kf_node *n, kf_node_action a)
{
    TRY(kf_grow(&n->todo.action, &n->todo.cap, n->todo.count,
                sizeof *n->todo.action));
    n->todo.action[n->todo.count++] = a;
    return KOFN_OK;
}

kofn_status kf_peer_send(kf_node *n, kofn_incarnation to, kf_note note)
{
    assert(to != n->opt.incarnation);
    note.from = n->opt.incarnation;
    if (note.type != KF_NOTE_PARTIAL) /* a result names its epoch */
        note.epoch = n->in.epoch;
    return act(n,
               (kf_node_action){.type = KF_NODE_SEND, .to = to, .note = note});
}

kofn_status kf_peer_take(kf_node *n, const kf_note *note)
{
    return act(n, (kf_node_action){.type = KF_NODE_TAKE, .note = *note});
}

kofn_status kf_peer_erred(kf_node *n, const kf_other *who)
{
    return act(n, (kf_node_action){.type = KF_NODE_ERRED,
                                   .to = who->incarnation,
                                   .principal = who->principal});
}

/* Completes a note.  Its pointers may have moved, or become void, since it was
 * written.  Returns false if it is void. */
static bool complete(const kf_node *n, kf_note *note)
{
    if (note->type == KF_NOTE_EPOCH) {
        note->epoch = n->in.epoch;
        note->member = n->in.member;
        note->members = n->in.members;
    }
    if (note->type != KF_NOTE_DECIDE)
        return true;
    for (size_t i = 0; i < 2; i++) {
        const kf_decisions *d = &n->pieces.decisions[i];

        if (d->groups && kf_same_iterate(note->at, d->at)) {
            note->epoch = d->epoch;
            note->decide.groups = d->groups;
            note->list = d->list;
            note->listed = d->listed;
            return true;
        }
    }
    return false;
}

bool kf_node_next(kf_node *n, kf_node_action *out)
{
    while (n->todo.next < n->todo.count) {
        *out = n->todo.action[n->todo.next++];
        if (out->type != KF_NODE_SEND || complete(n, &out->note))
            return true;
    }
    return false;
}
