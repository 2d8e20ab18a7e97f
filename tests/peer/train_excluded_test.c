/* train_excluded_test.c -- nodes that were found faulty in a training and
 * connect again. Such a node is not heard for times that double, so it is
 * excluded a few times, however often it comes. A node with a temporary memory
 * fault is admitted again and takes part. A node that names the incarnation of
 * another cannot get it excluded. Every vector of every honest node is the
 * plain training's, and every block its coded weights (train_mesh_rig.h). */
#include "train_mesh_rig.h"

enum { FAULTY = 5, FORGER = 8, FORGED = 3 };

typedef struct run {
    uint64_t first, last; /* iterates in which FAULTY errs */
    bool nameless;        /* nodes have no keys */
    bool forgers; /* FORGER speaks as FORGED and sends wrong partial products */
    /* How often each node excluded FAULTY or FORGER. */
    size_t excluded[SIM_NODES];
    kofn_incarnation known[SIM_NODES]; /* of each node, at its start */
} run;

static run now;

/* ---- wrong partial products ---------------------------------------------- */

static void spoil(void *ud, kofn_fault_place where, uint64_t t,
                  kofn_matrix *partial)
{
    const sim_node *n = ud;
    double *x = partial->data;

    if (where == KOFN_FAULT_IN_PRODUCT && n->id == FAULTY && t >= now.first &&
        t <= now.last)
        for (size_t i = 0; i < partial->rows * partial->cols; i++)
            x[i] += 0.5 + sim_draw(n->sim);
}

/* Sends what FORGED sends from FORGER as well, earlier and falsified. */
static void forge(sim *s, const sim_packet *p)
{
    uint64_t job = s->node[0].host->job;
    sim_packet *q;
    kf_note note;

    if (p->from != FORGED || p->to == FORGER ||
        kf_note_read(&note, p->p.head, p->p.head_bytes, job))
        return;
    q = sim_copy(FORGER, p->to, 0, p->p.head, p->p.head_bytes, p->body,
                 p->p.body_bytes);
    if (note.type == KF_NOTE_PARTIAL)
        for (size_t i = 0; i < q->p.body_bytes / sizeof(double); i++)
            ((double *)(void *)q->body)[i] += 0.5 + sim_draw(s);
    note.digest.exact ^= note.digest.exact ? 1 + kf_rng_below(&s->rng, 9) : 0;
    note.digest.sum += 1;
    kf_note_write(q->p.head, &note, job, q->body, q->p.body_bytes);
    sim_put(s, q, 0);
}

/* ---- connections --------------------------------------------------------- */

/* Reconnects the node at once. The connection of FORGED breaks at the same
 * time. */
static void reconnect(sim *s, size_t what)
{
    size_t by = what / SIM_NODES, node = what % SIM_NODES;

    faults_break(s, by, node);
    if (node == FORGER)
        faults_break(s, by, FORGED);
}

static void blamed(sim *s, size_t by, size_t node)
{
    if (node != (now.forgers ? FORGER : FAULTY))
        fail_msg("seed %llu: node %zu takes node %zu for faulty",
                 (unsigned long long)s->seed, by, node);
    now.excluded[by]++;
    sim_at(s, s->now + MS, SIM_FAULT, by, by * SIM_NODES + node);
}

/* ---- a run --------------------------------------------------------------- */

static void begin(sim *s, fixture *f, const run *what, unsigned epochs,
                  uint64_t seed)
{
    now = *what;
    mesh_up(s, f, &training_cases[2], epochs, seed);
    s->opt.errors = KOFN_ERRORS_PROBABILISTIC;
    s->opt.fault = spoil;
    s->blamed = blamed;
    s->hostile = &now; /* vectors of nodes may differ by rounding */
    for (size_t i = 0; i < f->l->nodes; i++) {
        sim_start(s, i, true);
        if (now.nameless)
            s->node[i].t.principal_of = NULL;
        now.known[i] = s->node[i].host->opt.incarnation;
    }
    if (!now.forgers)
        return;
    assert_int_equal(f->l->nodes, FORGER);
    s->nodes++;
    s->node[FORGER].up = true;
    s->listen = forge;
    for (size_t i = 0; i < FORGER; i++)
        sim_link(s, i, FORGER, KOFN_CAME);
}

/* Fails unless node `by` has the node among its members. */
static void has_member(const sim *s, size_t by, size_t node)
{
    assert_int_not_equal(
        kf_node_seat_of(s->node[by].host->node, now.known[node]), KOFN_NO_SEAT);
}

/* Returns how many waits of 1, 2, 4, ... failure timeouts fit into that time.
 */
static size_t waits_in(const sim *s, kofn_time time)
{
    kofn_time each = kf_node_reported(s->node[0].host->node)->silence;
    size_t waits = 0;

    while ((each << waits) - each <= time)
        waits++;
    return waits;
}

/* ---- what must hold ------------------------------------------------------ */

static void faulty_node_reconnects(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 2; seed++) {
        const run what = {.last = UINT64_MAX, .nameless = seed % 2};
        size_t excluded = 0;
        fixture f;
        sim s;

        begin(&s, &f, &what, 90, seed);
        s.node[FAULTY].turncoat = true;
        sim_finish(&s, 120 * KOFN_SECOND, reconnect, "a faulty node", seed);
        for (size_t i = 0; i < f.l->nodes; i++) {
            excluded += now.excluded[i];
            assert_in_range(now.excluded[i], 0, waits_in(&s, s.now));
        }
        assert_true(excluded > f.l->nodes);
        mesh_down(&s, &f);
    }
}

static void fault_ends(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 2; seed++) {
        const run what = {.first = 20, .last = 60, .nameless = seed % 2};
        size_t excluded = 0;
        fixture f;
        sim s;

        begin(&s, &f, &what, 60, seed);
        s.look = NULL; /* the node has no blocks for a while */
        sim_finish(&s, 120 * KOFN_SECOND, reconnect, "a fault", seed);
        for (size_t i = 0; i < f.l->nodes; i++) {
            excluded += now.excluded[i];
            has_member(&s, i, FAULTY);
            assert_in_range(now.excluded[i], 0, 2);
        }
        assert_true(excluded > 0);
        assert_int_not_equal(s.node[FAULTY].host->blocks.seat, KOFN_NO_SEAT);
        mesh_down(&s, &f);
    }
}

/* Nodes have no keys. False notes under another name do not count against the
 * named node. It is heard although its connection breaks when the notes are
 * found false. */
static void forged_names(void **state)
{
    const run what = {.first = 1, .last = 0, .nameless = true, .forgers = true};
    size_t excluded = 0;
    fixture f;
    sim s;

    (void)state;
    begin(&s, &f, &what, 30, 1);
    s.node[FORGER].turncoat = true;
    sim_finish(&s, 120 * KOFN_SECOND, reconnect, "forged", 1);
    for (size_t i = 0; i < FORGER; i++) {
        excluded += now.excluded[i];
        assert_int_equal(s.node[i].host->net.quarantined, 0);
        has_member(&s, i, FORGED);
    }
    assert_true(excluded > 0);
    mesh_down(&s, &f);
}

TEST_FILE(train_excluded_test)
{
    const struct CMUnitTest tests[] = {
        TEST(faulty_node_reconnects,
             "excluded: a faulty node is not heard for times that double"),
        TEST(fault_ends,
             "excluded: a node takes part again after its fault has ended"),
        TEST(forged_names,
             "excluded: a forged name does not exclude the named node"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
