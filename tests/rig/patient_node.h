/* patient_node.h -- the state machine of a single node of a mesh, which hears
 * what a test says. */
#ifndef KF_TEST_PATIENT_NODE_H
#define KF_TEST_PATIENT_NODE_H

#include "mesh_sim.h"

#include "peer/node.h"

/* Returns a node that sends a heartbeat every second and has very long
 * timeouts, in a mesh of `nodes`. */
static inline kf_node *patient_node_of(sim *s, const char *spec, size_t nodes,
                                       kofn_errors errors)
{
    const kf_node_options o = {.incarnation = 1,
                               .nodes = 4,
                               .confirm = 2,
                               .groups = 2,
                               .decoding = KOFN_DECODE_REPLICATED,
                               .errors = errors,
                               .wish = KOFN_NO_SEAT,
                               .beat = KOFN_SECOND,
                               .silence = 100000 * KOFN_SECOND,
                               .patience = 100000 * KOFN_SECOND};
    kf_node *n;

    sim_up(s, spec, nodes, 19, 2, 1);
    assert_ok(kf_node_new(&n, &s->product, 1, &o, KOFN_SECOND));
    return n;
}

static inline kf_node *patient_node(sim *s, size_t nodes)
{
    return patient_node_of(s, "mds:k=2", nodes, KOFN_ERRORS_NONE);
}

static inline void node_down(kf_node *n, sim *s)
{
    kf_node_free(n);
    sim_down(s);
}

/* The node hears a note of incarnation `from`, which has its own key. */
static inline void hears_note(kf_node *n, kofn_incarnation from,
                              const kf_note *note, kofn_time now)
{
    kf_note said = *note;
    kf_node_action action;

    said.from = from;
    assert_ok(kf_node_step(n, &(kf_node_event){.type = KF_NODE_NOTE,
                                               .now = now,
                                               .incarnation = from,
                                               .note = &said,
                                               .principal = from}));
    while (kf_node_next(n, &action))
        ;
}

/* The node hears incarnations 101 to `last` for the first time. */
static inline void hears_first(kf_node *n, kofn_incarnation last)
{
    const kf_note beat = {.type = KF_NOTE_BEAT, .seat = KOFN_NO_SEAT};

    for (kofn_incarnation from = 101; from <= last; from++)
        hears_note(n, from, &beat, 2 * KOFN_SECOND);
}

/* `leader`, which the node has heard, founds an epoch with the node and
 * incarnations 101, 102, ..., on seats 0, 1, ... */
static inline kofn_epoch hears_epoch(kf_node *n, kofn_incarnation leader,
                                     size_t members)
{
    const kofn_epoch epoch = {7, leader};
    kf_member member[8];

    for (size_t i = 0; i < members; i++)
        member[i] = (kf_member){i ? 100 + i : 1, (uint32_t)i, true};
    hears_note(n, leader,
               &(kf_note){.type = KF_NOTE_EPOCH,
                          .epoch = epoch,
                          .member = member,
                          .members = members},
               2 * KOFN_SECOND);
    assert_int_equal(n->in.members, members);
    return epoch;
}

/* The node does all tasks that it has. */
static inline void does_all(kf_node *n, kofn_time now)
{
    kf_node_task todo;
    kf_node_action action;

    for (kf_node_work(n, &todo); todo.type != KF_NODE_TASK_NONE;
         kf_node_work(n, &todo)) {
        assert_ok(kf_node_step(
            n,
            &(kf_node_event){.type = KF_NODE_DONE, .now = now, .task = &todo}));
        while (kf_node_next(n, &action))
            ;
    }
}

#endif
