/* train_slow_link_test.c -- a node that comes to a training without a master over a slow
 * link: the same is not sent to it over and over while it comes in (src/peer/others.c),
 * so that it follows and makes its blocks of the others'. */
#include "train_mesh_rig.h"

static const lesson wide = {.scheme = "matdot:n=2",
                            .nodes = 6,
                            .layers = 3,
                            .widths = {SIDE * SIDE, 44, 60, 3},
                            .activation = KOFN_SIGMOID,
                            .momentum = 0.9};

enum { TYPES = KF_NOTE_SKETCH + 1 };

static struct {
    size_t sent[TYPES], bytes[TYPES];
    size_t turns, with; /* ... and those in which it has blocks */
    uint64_t turn;
} seen;

static size_t who(const sim *s)
{
    return s->nodes - 1;
}

static void listen(sim *s, const sim_packet *p)
{
    kf_note note;

    assert_ok(kf_note_read(&note, p->p.head, p->p.head_bytes,
                           s->node[p->from].host->job));
    if (p->to != who(s) && !(p->from == who(s) && note.type == KF_NOTE_ASK))
        return;
    seen.sent[note.type]++;
    seen.bytes[note.type] += p->p.head_bytes + p->p.body_bytes;
}

/* Whenever a turn is over. */
static void count(sim *s)
{
    uint64_t turn = s->node[0].host->changing.turn;
    const kf_host *h = s->node[who(s)].host;

    if (!h || turn == seen.turn)
        return;
    seen.turns += turn - seen.turn;
    seen.with += h->seat != KOFN_NO_SEAT ? turn - seen.turn : 0;
    seen.turn = turn;
}

static void look(sim *s, size_t id)
{
    (void)s;
    (void)id;
}

static void try(double hedges, double compute)
{
    fixture f;
    sim s;
    size_t vector;
    kofn_time t0;
    kofn_node_view v;

    memset(&seen, 0, sizeof seen);
    mesh_up(&s, &f, &wide, 34, 1);
    s.compute = (kofn_time)(MS * compute);
    s.opt.confirm = 1;
    s.window = 656;
    s.look = look;
    s.listen = listen;
    s.inject = count;
    s.evil = &s;
    for (size_t i = 0; i + 1 < wide.nodes; i++)
        sim_start(&s, i, true);
    run_until(&s, 9);
    t0 = s.now;
    seen.turn = 9;
    vector = kf_mesh_vector_bytes(s.node[0].host);
    s.narrow = wide.nodes;
    s.rate = (double)vector / (hedges * 0.020);
    sim_start(&s, who(&s), false);
    run_until(&s, f.steps);
    fprintf(stderr, "hedges %g compute %g: turn %.2f ms, vector %zu in %.2f ms; ",
            hedges, compute, (double)(s.now - t0) / 1e6 / (double)seen.turns,
            vector, (double)vector / s.rate * 1e3);
    for (size_t i = 0; i < TYPES; i++)
        if (seen.sent[i])
            fprintf(stderr, " %zu:%zux %zuB", i, seen.sent[i], seen.bytes[i]);
    kf_host_look(s.node[who(&s)].host, &v);
    fprintf(stderr, "; turns %zu with %zu adopted %zu dropped %zu healed %zu\n", seen.turns, seen.with, (size_t)v.adopted, (size_t)v.dropped, (size_t)v.healed);
    mesh_down(&s, &f);
}

static void tries(void **state)
{
    (void)state;
    for (int c = 0; c < 3; c++)
    for (int i = 0; i < 7; i++)
        try((double[]){0.01, 0.25, 0.5, 0.75, 1.1, 1.6, 2.4}[i], (double[]){0.125, 0.5, 2}[c]);
}

TEST_FILE(train_slow_link_test)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tries),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
