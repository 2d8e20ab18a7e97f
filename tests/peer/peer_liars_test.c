/* peer_liars_test.c -- nodes with wrong partial products, if errors are
 * searched. They are one or many, err once or always, and send the same to all
 * or not. Also deciders that falsify what they compared.
 *
 * Up to the limit every node ends with the vector of the plain iteration and
 * finds the same faulty nodes. Beyond it all end with KOFN_CORRUPT, and no
 * node ever has a wrong vector (sim_check). The products with A itself, which
 * find what the code does not, must find nothing. */
#include "mesh_sim_end.h"

#define STEPS 12

typedef struct fault {
    uint64_t faulty;      /* set of faulty nodes */
    uint64_t first, last; /* the iterates with faults */
    bool turn;            /* in iterate t only node t mod nodes is faulty */
    bool same; /* the same partial products for all; else wrong ones for some */
    bool deciders; /* the leader lists other seats than it compared */
    bool all;      /* all entries are wrong, not one */
    bool may_blame;
    size_t rows; /* 0 means 19 */
    size_t sent;
} fault;

static bool is_faulty(const sim *s, size_t id, uint64_t t)
{
    const fault *f = s->own;
    uint64_t set = f->turn ? kf_bit(t % s->nodes) : f->faulty;

    return t >= f->first && t <= f->last && set & kf_bit(id);
}

static void spoil_numbers(sim *s, double *x, size_t n)
{
    fault *f = s->own;
    size_t one = kf_rng_below(&s->rng, n);

    for (size_t i = 0; i < n; i++)
        if (f->all || i == one)
            x[i] += (0.5 + sim_draw(s)) * (sim_draw(s) < 0.5 ? -1 : 1) *
                    pow(10, -4 * sim_draw(s));
    f->sent++;
}

static void spoil(void *ud, kofn_fault_place where, uint64_t t,
                  kofn_matrix *partial)
{
    sim_node *n = ud;

    if (where == KOFN_FAULT_IN_PRODUCT && is_faulty(n->sim, n->id, t))
        spoil_numbers(n->sim, partial->data, partial->rows * partial->cols);
}

/* ---- in transit ---------------------------------------------------------- */

/* Lists seats that no node has, or too few to find errors. Returns the length
 * of the list. */
static size_t list_others(sim *s, const kf_note *note, uint32_t *list)
{
    size_t at = 0, listed = note->listed;

    memcpy(list, note->list, listed * sizeof *list);
    while (at < listed) {
        size_t count = list[at], seat = 0;

        for (size_t i = 0; i < count; i++) {
            seat += sim_draw(s) < 0.3;
            list[at + 1 + i] = (uint32_t)seat++;
        }
        if (sim_draw(s) < 0.3 && at + 1 + count == listed) {
            list[at] = (uint32_t)count - 1;
            listed--;
        }
        at += 1 + count;
    }
    return listed;
}

/* Lists for each group the lowest three seats and its own. Any three partial
 * products agree. */
static size_t list_few(size_t own, const kf_note *note, uint32_t *list)
{
    size_t listed = 0;

    for (size_t at = 0; at < note->listed; at += 1 + note->list[at]) {
        list[listed++] = 3;
        list[listed++] = 0;
        list[listed++] = 1;
        list[listed++] = own > 2 ? (uint32_t)own : 2;
    }
    return listed;
}

static void list_wrongly(sim *s, sim_packet *p, kf_note *note)
{
    const fault *f = s->own;
    uint32_t list[512];
    void *room;

    assert_ok(kf_note_unpack(note, p->body, p->p.body_bytes, &room));
    assert_true(note->listed <= 512);
    note->listed =
        f->same ? list_few(p->from, note, list) : list_others(s, note, list);
    note->list = list;
    sim_repack(p, note);
    kf_free(room);
}

static void tamper(sim *s, sim_packet *p)
{
    fault *f = s->own;
    uint64_t job = s->node[p->from].host->job;
    kf_note note;

    assert_ok(kf_note_read(&note, p->p.head, p->p.head_bytes, job));
    if (f->deciders && note.type == KF_NOTE_DECIDE) {
        list_wrongly(s, p, &note);
        f->sent++;
    } else if (!f->deciders && note.type == KF_NOTE_PARTIAL && p->to % 2 &&
               is_faulty(s, p->from, note.at.step)) {
        spoil_numbers(s, (double *)(void *)p->body,
                      p->p.body_bytes / sizeof(double));
    } else {
        return;
    }
    kf_note_write(p->p.head, &note, job, p->body, p->p.body_bytes);
}

/* ---- a run --------------------------------------------------------------- */

static void blamed(sim *s, size_t by, size_t node)
{
    const fault *f = s->own;

    if (!f->may_blame || f->turn || !(f->faulty & kf_bit(node)))
        fail_msg("seed %llu: node %zu takes node %zu for faulty",
                 (unsigned long long)s->seed, by, node);
}

static void begin(sim *s, const char *spec, size_t nodes, kofn_errors errors,
                  fault *f, uint64_t seed)
{
    sim_up(s, spec, nodes, f->rows ? f->rows : 19, STEPS, seed);
    s->opt.errors = errors;
    s->own = f;
    s->blamed = blamed;
    if (f->same)
        s->opt.fault = spoil;
    if (!f->same || f->deciders) {
        s->hostile = f; /* vectors of nodes may differ by rounding */
        s->tamper = tamper;
    }
    for (size_t i = 0; i < nodes; i++) {
        sim_start(s, i, true);
        s->node[i].turncoat = f->may_blame && f->faulty & kf_bit(i);
    }
}

static size_t try_to_the_end(const char *spec, size_t nodes, kofn_errors errors,
                             fault f, uint64_t seed)
{
    size_t left_out = 0;
    sim s;

    begin(&s, spec, nodes, errors, &f, seed);
    sim_finish(&s, 120 * KOFN_SECOND, NULL, spec, seed);
    for (size_t i = 0; i < nodes; i++) {
        kofn_node_view v;

        if (s.node[i].turncoat) /* no node hears it any more */
            continue;
        kf_node_look(s.node[i].host->node, &v);
        assert_int_equal(v.at.step, STEPS);
        assert_int_equal(v.failed, KOFN_OK);
        assert_int_equal(s.node[i].host->work.freivalds.remade, 0);
        left_out += v.left_out;
    }
    assert_true(f.sent > 0);
    sim_down(&s);
    return left_out;
}

/* Runs until every node fails with KOFN_CORRUPT at the iterate with faults.
 * The decider reports the failure at once, so no other node
 * waits for its patience. */
static void try_to_fail(const char *spec, size_t nodes, kofn_errors errors,
                        fault f, uint64_t seed)
{
    kofn_time first = KOFN_NEVER;
    bool all = false;
    sim s;

    begin(&s, spec, nodes, errors, &f, seed);
    while (!all) {
        if (s.now >= 120 * KOFN_SECOND) {
            sim_print(&s);
            fail_msg("%s, seed %llu: not every node has failed", spec,
                     (unsigned long long)seed);
        }
        sim_run(&s, s.now + MS, NULL);
        all = true;
        for (size_t i = 0; i < nodes; i++) {
            all &= s.node[i].status != KOFN_OK;
            if (first == KOFN_NEVER && s.node[i].status != KOFN_OK)
                first = s.now;
        }
    }
    if (errors == KOFN_ERRORS_DETECT)
        assert_in_range(s.now - first, 0,
                        kf_peer_patience(s.node[0].host->node));
    for (size_t i = 0; i < nodes; i++) {
        kofn_node_view v;

        kf_node_look(s.node[i].host->node, &v);
        assert_int_equal(s.node[i].status, KOFN_CORRUPT);
        assert_int_equal(v.at.step, f.first);
    }
    sim_down(&s);
}

/* ---- up to the limit ----------------------------------------------------- */

static const kofn_errors finding[] = {KOFN_ERRORS_ADVERSARIAL,
                                      KOFN_ERRORS_PROBABILISTIC};

static void one_faulty_node(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < often(2); seed++)
        for (size_t id = 0; id < 6; id++)
            for (size_t e = 0; e < 2; e++)
                assert_true(try_to_the_end("mds:k=3", 6, finding[e],
                                           (fault){.faulty = kf_bit(id),
                                                   .last = UINT64_MAX,
                                                   .same = true,
                                                   .all = seed % 2,
                                                   .may_blame = true},
                                           seed) > 0);
}

/* The limit is floor((n - K) / 2) for any errors. It is n - K - 1 for
 * independent errors if partial products have more entries than that. */
static void several_faulty_nodes(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 3 * often(2); seed++) {
        uint64_t two = kf_bit(seed % 7) | kf_bit((seed + 1 + seed % 3) % 7);
        uint64_t three = two | kf_bit((seed + 5) % 7);
        fault f = {.faulty = two,
                   .last = UINT64_MAX,
                   .same = true,
                   .all = seed % 2,
                   .may_blame = true};

        assert_true(
            try_to_the_end("mds:k=3", 7, KOFN_ERRORS_ADVERSARIAL, f, seed) > 0);
        f.faulty = three;
        f.rows = 252; /* parts of 21 rows each, all full */
        f.all = true;
        assert_true(try_to_the_end("mds:k=3", 7, KOFN_ERRORS_PROBABILISTIC, f,
                                   seed) > 0);
    }
}

static void changing_faulty_node(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < often(2); seed++)
        for (size_t e = 0; e < 2; e++) {
            fault f = {.turn = true,
                       .last = UINT64_MAX,
                       .same = true,
                       .all = seed % 2};

            assert_true(try_to_the_end("mds:k=3", 6, finding[e], f, seed) > 0);
        }
}

/* The node sends right partial products to some nodes. */
static void inconsistent_node(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < often(1); seed++)
        for (size_t id = 0; id < 6; id++)
            try_to_the_end("mds:k=3", 6, finding[seed % 2],
                           (fault){.faulty = kf_bit(id),
                                   .last = UINT64_MAX,
                                   .all = seed % 2,
                                   .may_blame = true},
                           seed);
}

/* The list may name seats without a node, or too few. */
static void false_lists(void **state)
{
    size_t sent = 0;

    (void)state;
    for (uint64_t seed = 0; seed < often(1); seed++)
        for (size_t id = 0; id < 6; id++) {
            sim s;
            fault f = {
                .faulty = kf_bit(id), .deciders = true, .may_blame = true};

            begin(&s, "mds:k=3", 6, finding[seed % 2], &f, seed);
            sim_finish(&s, 300 * KOFN_SECOND, NULL, "decider", seed);
            for (size_t i = 0; i < 6; i++)
                assert_int_equal(s.node[i].host->work.freivalds.remade, 0);
            sent += f.sent;
            sim_down(&s);
        }
    assert_true(sent > 0);
}

/* The decider sends a wrong partial product. It lists too few partial products
 * to show an error. The others use their own lists. */
static void false_lists_and_partials(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < often(1); seed++)
        for (size_t id = 0; id < 6; id++)
            try_to_the_end("mds:k=3", 6, finding[seed % 2],
                           (fault){.faulty = kf_bit(id),
                                   .last = UINT64_MAX,
                                   .same = true,
                                   .deciders = true,
                                   .may_blame = true},
                           seed);
}

/* ---- beyond the limit ---------------------------------------------------- */

static void detected(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < often(1); seed++)
        for (size_t id = 0; id < 6; id++)
            try_to_fail("mds:k=3", 6, KOFN_ERRORS_DETECT,
                        (fault){.faulty = kf_bit(id) | kf_bit((id + 1) % 6) |
                                          kf_bit((id + 2) % 6),
                                .first = 1 + seed % 5,
                                .last = UINT64_MAX,
                                .same = true,
                                .all = true},
                        seed);
}

/* Three of six nodes are faulty, and three decode. */
static void too_many(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < often(1); seed++)
        for (size_t id = 0; id < 6; id++)
            for (size_t e = 0; e < 2; e++)
                try_to_fail("mds:k=3", 6, finding[e],
                            (fault){.faulty = kf_bit(id) |
                                              kf_bit((id + 2) % 6) |
                                              kf_bit((id + 3) % 6),
                                    .first = 1 + seed % 5,
                                    .last = UINT64_MAX,
                                    .same = true,
                                    .all = true},
                            seed);
}

/* ---- what a node computes from an iterate -------------------------------- */

static void spoil_vector(void *ud, kofn_fault_place where, uint64_t t,
                         kofn_matrix *v)
{
    sim_node *n = ud;

    if (where == KOFN_FAULT_IN_VECTOR && is_faulty(n->sim, n->id, t))
        spoil_numbers(n->sim, v->data, v->rows * v->cols);
}

/* Three of five nodes are up, and each computes the only iterate alone, before
 * any node leads. One errs in it. No node is a member, but most have an
 * iterate that the faulty one has not. */
static void before_any_epoch(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 12; seed++) { /* in some it is the first */
        size_t id = seed % 3;
        fault f = {.faulty = kf_bit(id), .last = UINT64_MAX};
        sim s;

        sim_up(&s, "mds:k=1", 5, 19, 1, seed);
        s.opt.errors = KOFN_ERRORS_ADVERSARIAL;
        s.opt.silence = 10 * KOFN_SECOND;
        s.opt.confirm = 3;
        s.opt.fault = spoil_vector;
        s.own = &f;
        s.hostile = &f; /* vectors of one iterate may differ */
        s.lenient = s.exits = true;
        for (size_t i = 0; i < 3; i++)
            sim_start(&s, i, true);
        sim_run(&s, 200 * KOFN_SECOND, NULL);
        assert_true(f.sent > 0 && s.wrong > 0);
        for (size_t i = 0; i < 3; i++) {
            assert_int_equal(s.node[i].host->node->in.epoch.number, 0);
            assert_int_equal(s.node[i].gone, i != id);
            assert_int_equal(s.node[i].status, i == id ? KOFN_CORRUPT : 0);
        }
        sim_down(&s);
    }
}

TEST_FILE(peer_liars_test)
{
    const struct CMUnitTest tests[] = {
        TEST(
            one_faulty_node,
            "errors: one node with wrong partial products is found (mds:k=3, n=6)"),
        TEST(several_faulty_nodes,
             "errors: faulty nodes up to the limit are found (mds:k=3, n=7)"),
        TEST(changing_faulty_node,
             "errors: no node is excluded if another one errs in each iterate"),
        TEST(
            inconsistent_node,
            "errors: a node that sends wrong partial products to some does no harm"),
        TEST(false_lists,
             "errors: a decider with false lists gets no honest node blamed"),
        TEST(
            false_lists_and_partials,
            "errors: false lists and wrong partial products of a decider do no harm"),
        TEST(detected,
             "errors: detect ends all with KOFN_CORRUPT at the first error"),
        TEST(too_many,
             "errors: too many faulty nodes end all with KOFN_CORRUPT"),
        TEST(before_any_epoch,
             "errors: a wrong iterate before the first epoch is found by vote"),
    };

    rig_begin();
    return cmocka_run_group_tests_name("peer_liars", tests, NULL, NULL);
}
