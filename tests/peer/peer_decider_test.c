/* peer_decider_test.c -- a faulty node that decides which partial products
 * decode, or decodes for others. Its notes may be false, and may differ for
 * each receiver. No honest node gets a vector that differs from the plain
 * iteration. No honest node is blamed, and all end with the result. */
#include "mesh_sim_end.h"

#define NODES 5
#define LISTED 512

typedef enum falsehood {
    STRANGE_SEATS, /* seats without a node, or that computed nothing */
    ANOTHER_SET,   /* another set for each receiver */
    ANOTHER_GROUP, /* the seats, or the numbers, of another group */
    NONSENSE,      /* invalid lists */
    NOT_SENT,      /* the decision is not sent */
    NUMBERS,       /* slightly wrong */
    NOTHING,       /* zeros */
    KINDS
} falsehood;

typedef struct faulty {
    size_t id;
    falsehood what;
    double chance; /* probability that a note is false */
    size_t sent;   /* false notes sent */
    double last[64];
    size_t lasts; /* numbers of the previous result, of another group */
    uint32_t group;
} faulty;

/* ---- which partial products decode --------------------------------------- */

/* Draws `count` seats below `most`, ascending, and writes them behind their
 * count. Returns the number of entries written. */
static size_t draw_seats(sim *s, uint32_t *list, size_t count, size_t most)
{
    size_t n = 0;

    list[n++] = (uint32_t)count;
    for (size_t seat = 0; seat < most && n <= count; seat++)
        if (kf_rng_below(&s->rng, most - seat) < count + 1 - n)
            list[n++] = (uint32_t)seat;
    return n;
}

/* Writes a false list for every group of the note. */
static size_t list_falsely(sim *s, const kf_note *note, uint32_t *list)
{
    faulty *l = s->hostile;
    size_t k = s->plan->layout.enough, n = 0;

    for (size_t g = 0; g < 64; g++) {
        if (!(note->decide.groups & kf_bit(g)))
            continue;
        n += draw_seats(s, list + n, k,
                        l->what == ANOTHER_SET ? s->nodes : 2 * s->nodes);
    }
    if (l->what != NONSENSE)
        return n;
    switch (kf_rng_below(&s->rng, 4)) {
    case 0:
        list[1] = list[2]; /* one seat twice */
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

/* Rotates the lists of its groups by one. */
static size_t rotate_lists(const kf_note *note, uint32_t *list)
{
    size_t first = 1 + (size_t)note->list[0], rest = note->listed - first;

    memcpy(list, note->list + first, rest * sizeof *list);
    memcpy(list + rest, note->list, first * sizeof *list);
    return note->listed;
}

/* Makes a decision false. It may name groups for which the node has no partial
 * products.
 */
static void falsify_decision(sim *s, sim_packet *p, kf_note *note)
{
    faulty *l = s->hostile;
    uint32_t list[LISTED];
    void *room;

    assert_ok(kf_note_unpack(note, p->body, p->p.body_bytes, &room));
    if (l->what == NOT_SENT)
        note->epoch.number--;
    else if (l->what != ANOTHER_GROUP)
        note->decide.groups |= kf_rng_below(&s->rng, 2) ? kf_bit(NODES) - 1 : 0;
    note->listed = l->what == NOT_SENT        ? note->listed
                   : l->what == ANOTHER_GROUP ? rotate_lists(note, list)
                                              : list_falsely(s, note, list);
    if (l->what != NOT_SENT)
        note->list = list;
    sim_repack(p, note);
    kf_free(room);
}

/* ---- decoded results ----------------------------------------------------- */

static void falsify_result(sim *s, sim_packet *p, const kf_note *note)
{
    faulty *l = s->hostile;
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

static void tamper(sim *s, sim_packet *p)
{
    faulty *l = s->hostile;
    bool result = sim_is_result(p->p.head);
    kf_note note;

    if (sim_draw(s) >= l->chance ||
        (!result && p->p.head[KF_AT_TYPE] != KF_NOTE_DECIDE))
        return;
    assert_ok(kf_note_read(&note, p->p.head, p->p.head_bytes,
                           s->node[l->id].host->job));
    if (result && l->what == NOT_SENT)
        note.epoch.number--;
    else if (result)
        falsify_result(s, p, &note);
    else
        falsify_decision(s, p, &note);
    kf_note_write(p->p.head, &note, s->node[l->id].host->job, p->body,
                  p->p.body_bytes);
    l->sent++;
}

static void blamed(sim *s, size_t by, size_t node)
{
    if (node != ((faulty *)s->hostile)->id)
        fail_msg("seed %llu: node %zu takes node %zu for faulty",
                 (unsigned long long)s->seed, by, node);
}

static size_t try_falsehood(const char *spec, bool distributed, faulty l,
                            uint64_t seed)
{
    sim s;

    sim_up(&s, spec, NODES, 19, 12, seed);
    s.opt.confirm = 2;
    s.opt.decoding =
        distributed ? KOFN_DECODE_DISTRIBUTED : KOFN_DECODE_REPLICATED;
    s.hostile = &l;
    s.tamper = tamper;
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
    return l.sent;
}

/* Makes every node the faulty one in turn, whichever node leads. */
static void try_falsehoods(bool distributed, const falsehood *what,
                           size_t kinds)
{
    static const char *const spec[] = {"mds:k=2", "mds:k=3,basis=gauss_sys"};

    for (size_t i = 0; i < kinds; i++) {
        size_t sent = 0;

        for (uint64_t seed = 0; seed < 4 * often(1); seed++)
            for (size_t id = 0; id < NODES; id++)
                sent += try_falsehood(spec[seed % 2], distributed,
                                      (faulty){.id = id,
                                               .what = what[i],
                                               .chance = seed & 2 ? 0.5 : 1},
                                      seed);
        assert_true(sent > 0);
    }
}

static void false_decisions(void **state)
{
    static const falsehood what[] = {STRANGE_SEATS, ANOTHER_SET, ANOTHER_GROUP,
                                     NONSENSE, NOT_SENT};

    (void)state;
    try_falsehoods(false, what, sizeof what / sizeof *what);
}

static void false_results(void **state)
{
    static const falsehood what[] = {ANOTHER_GROUP, NOT_SENT, NUMBERS, NOTHING};

    (void)state;
    try_falsehoods(true, what, sizeof what / sizeof *what);
}

TEST_FILE(peer_decider_test)
{
    const struct CMUnitTest tests[] = {
        TEST(false_decisions,
             "mesh: false decisions cause no wrong iterate, and all nodes end"),
        TEST(false_results,
             "mesh: false decoded results cause no wrong iterate, and all end"),
    };

    rig_begin();
    return cmocka_run_group_tests_name("peer_decider", tests, NULL, NULL);
}
