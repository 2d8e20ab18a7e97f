/* peer_decider_test.c -- a node that decides, and lies: which pieces decode,
 * or what came out.  Whatever it tells, and whomever it tells something else,
 * no honest node has a vector that is not the plain iteration's, none is
 * blamed, and all end with the result. */
#include "mesh_sim.h"

#define NODES 5
#define LISTED 512

typedef enum lie {
    STRANGE_SEATS, /* that nobody has, or that others have made nothing of */
    ANOTHER_SET,   /* for each who is told                               */
    ANOTHER_GROUP, /* the seats, or the numbers, of another group        */
    NONSENSE,      /* lists that are none                                */
    SILENCE,       /* what is decided is not told                        */
    NUMBERS,       /* a little wrong, or altogether                      */
    NOTHING,       /* zeros                                              */
    LIES
} lie;

typedef struct liar {
    size_t id;
    lie what;
    double chance; /* of a note that is a lie */
    size_t told;   /* lies                    */
    double last[64];
    size_t lasts; /* numbers of the result before, of another group */
    uint32_t group;
} liar;

/* ---- which pieces decode ------------------------------------------------- */

/* `count` seats of those below `most`, ascending. */
static size_t draw_seats(sim *s, uint32_t *list, size_t count, size_t most)
{
    size_t n = 0;

    list[n++] = (uint32_t)count;
    for (size_t seat = 0; seat < most && n <= count; seat++)
        if (kf_rng_below(&s->rng, most - seat) < count + 1 - n)
            list[n++] = (uint32_t)seat;
    return n;
}

/* For every group of the note. */
static size_t list_lies(sim *s, const kf_note *note, uint32_t *list)
{
    liar *l = s->evil;
    size_t k = s->plan->layout.enough, n = 0;

    for (size_t g = 0; g < 64; g++) {
        if (!(note->coded & kf_bit(g)))
            continue;
        n += draw_seats(s, list + n, k,
                        l->what == ANOTHER_SET ? s->nodes : 2 * s->nodes);
    }
    if (l->what != NONSENSE)
        return n;
    switch (kf_rng_below(&s->rng, 4)) {
    case 0:
        list[1] = list[2]; /* one twice */
        break;
    case 1:
        list[0] = UINT32_MAX;
        break;
    case 2:
        list[k] = UINT32_MAX;
        break;
    default:
        n -= 1 + kf_rng_below(&s->rng, n);
        break;
    }
    return n;
}

/* The lists of its groups go round. */
static size_t turn_lists(const kf_note *note, uint32_t *list)
{
    size_t first = 1 + (size_t)note->list[0], rest = note->listed - first;

    memcpy(list, note->list + first, rest * sizeof *list);
    memcpy(list + rest, note->list, first * sizeof *list);
    return note->listed;
}

/* It may tell of groups for which it has no pieces. */
static void lie_of_pieces(sim *s, sim_packet *p, kf_note *note)
{
    liar *l = s->evil;
    uint32_t list[LISTED];
    void *room;

    assert_ok(kf_note_unpack(note, p->body, p->p.body_bytes, &room));
    if (l->what == SILENCE)
        note->epoch.number--;
    else if (l->what != ANOTHER_GROUP)
        note->coded |= kf_rng_below(&s->rng, 2) ? kf_bit(NODES) - 1 : 0;
    note->listed = l->what == SILENCE         ? note->listed
                   : l->what == ANOTHER_GROUP ? turn_lists(note, list)
                                              : list_lies(s, note, list);
    if (l->what != SILENCE)
        note->list = list;
    sim_repack(p, note);
    kf_free(room);
}

/* ---- what came out ------------------------------------------------------- */

static void lie_of_results(sim *s, sim_packet *p, const kf_note *note)
{
    liar *l = s->evil;
    double *body = (double *)(void *)p->body, was[64];
    size_t n = p->p.body_bytes / sizeof *body;

    assert_true(n <= 64);
    memcpy(was, body, n * sizeof *body);
    if (l->what == NOTHING)
        memset(body, 0, n * sizeof *body);
    else if (l->what == ANOTHER_GROUP)
        for (size_t i = 0; i < n; i++)
            body[i] = l->lasts ? l->last[i % l->lasts] : -body[i];
    else
        for (size_t i = 0; i < n; i++)
            body[i] *= 1 + pow(10, -7 * kf_rng_uniform(&s->rng));
    if (note->group != l->group || l->lasts == 0) {
        memcpy(l->last, was, n * sizeof *body);
        l->lasts = n;
        l->group = note->group;
    }
}

/* ---- a run --------------------------------------------------------------- */

static void twist(sim *s, sim_packet *p)
{
    liar *l = s->evil;
    bool result = sim_is_result(p->p.head);
    kf_note note;

    if (sim_draw(s) >= l->chance || (!result && p->p.head[6] != KF_NOTE_DECIDE))
        return;
    assert_ok(kf_note_read(&note, p->p.head, p->p.head_bytes,
                           s->node[l->id].host->job));
    if (result && l->what == SILENCE)
        note.epoch.number--;
    else if (result)
        lie_of_results(s, p, &note);
    else
        lie_of_pieces(s, p, &note);
    kf_note_write(p->p.head, &note, s->node[l->id].host->job, p->body,
                  p->p.body_bytes);
    l->told++;
}

static void blamed(sim *s, size_t by, size_t who)
{
    if (who != ((liar *)s->evil)->id)
        fail_msg("seed %llu: node %zu takes node %zu for a liar",
                 (unsigned long long)s->seed, by, who);
}

static size_t try_lie(const char *spec, bool distributed, liar l, uint64_t seed)
{
    sim s;

    sim_up(&s, spec, NODES, 19, 12, seed);
    s.opt.confirm = 2;
    s.opt.decoding =
        distributed ? KOFN_DECODE_DISTRIBUTED : KOFN_DECODE_REPLICATED;
    s.evil = &l;
    s.twist = twist;
    s.blamed = blamed;
    for (size_t i = 0; i < NODES; i++) {
        sim_start(&s, i, true);
        s.node[i].turncoat = i == l.id;
    }
    sim_finish(&s, 60 * KOFN_SECOND, NULL, spec, seed);
    for (size_t i = 0; i < NODES; i++)
        if (i != l.id) {
            kofn_node_view v;

            kf_node_look(s.node[i].host->node, &v);
            assert_int_equal(v.at.step, s.steps);
        }
    sim_down(&s);
    return l.told;
}

/* Every node in turn is the liar, whoever leads. */
static void try_lies(bool distributed, const lie *what, size_t lies)
{
    static const char *const spec[] = {"mds:k=2", "mds:k=3,basis=gauss_sys"};

    for (size_t i = 0; i < lies; i++) {
        size_t told = 0;

        for (uint64_t seed = 0; seed < 4 * often(1); seed++)
            for (size_t id = 0; id < NODES; id++)
                told += try_lie(spec[seed % 2], distributed,
                                (liar){.id = id,
                                       .what = what[i],
                                       .chance = seed & 2 ? 0.5 : 1},
                                seed);
        assert_true(told > 0);
    }
}

static void which_pieces_decode(void **state)
{
    static const lie what[] = {STRANGE_SEATS, ANOTHER_SET, ANOTHER_GROUP,
                               NONSENSE, SILENCE};

    (void)state;
    try_lies(false, what, sizeof what / sizeof *what);
}

static void what_came_out(void **state)
{
    static const lie what[] = {ANOTHER_GROUP, SILENCE, NUMBERS, NOTHING};

    (void)state;
    try_lies(true, what, sizeof what / sizeof *what);
}

TEST_FILE(peer_decider_test)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(which_pieces_decode),
        cmocka_unit_test(what_came_out),
    };

    rig_begin();
    return cmocka_run_group_tests_name("peer_decider", tests, NULL, NULL);
}
