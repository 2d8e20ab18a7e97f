/* train_liars_test.c -- trainings without a master with wrong partial products.
 * They come always, in one product or in one iterate, from one node or two, to
 * all or to some, from deciders and from lenders of blocks. Memory changes by
 * bit flips. Up to the limit every node's vectors are the plain training's, and
 * its blocks the coded weights (train_mesh_rig.h). Beyond it all end with
 * KOFN_CORRUPT. */
#include "train_mesh_rig.h"

enum { ALWAYS = -1 };

typedef struct fault {
    uint64_t faulty; /* set of faulty nodes */
    uint64_t first;  /* first iterate with faults */
    uint64_t last;   /* last iterate with faults; 0: no last */
    int product;     /* of this product, or ALWAYS */
    bool turn;       /* in iterate t only node t mod nodes errs */
    bool all;        /* all entries, not one */
    bool some;       /* only for some receivers */
    bool deciders;   /* the leader lists other seats than it compared */
    bool epochs; /* it lists only faulty nodes, and names them as all members */
    bool lenders;  /* the blocks that they lend are wrong */
    bool velocity; /* only the velocities are wrong */
    size_t sent;
} fault;

static fault now;

static bool is_faulty(const sim *s, size_t id, uint64_t t)
{
    const fixture *f = s->own;
    kf_course course = {f->program.products, f->program.turns,
                        f->program.after};
    uint64_t set = now.turn ? kf_bit(t % s->nodes) : now.faulty;

    return t >= now.first && (!now.last || t <= now.last) && set & kf_bit(id) &&
           (now.product == ALWAYS ||
            kf_course_product(&course, t) == (size_t)now.product);
}

static void spoil_numbers(sim *s, double *x, size_t n)
{
    size_t one = kf_rng_below(&s->rng, n);

    for (size_t i = 0; i < n; i++)
        if (now.epochs)
            x[i] += 0.5; /* as all faulty nodes */
        else if (now.all || i == one)
            x[i] += (0.5 + sim_draw(s)) * (sim_draw(s) < 0.5 ? -1 : 1) *
                    pow(10, -4 * sim_draw(s));
    now.sent++;
}

static void spoil(void *ud, kofn_fault_place where, uint64_t t,
                  kofn_matrix *partial)
{
    sim_node *n = ud;

    if (where == KOFN_FAULT_IN_PRODUCT && is_faulty(n->sim, n->id, t))
        spoil_numbers(n->sim, partial->data, partial->rows * partial->cols);
}

/* ---- in transit ---------------------------------------------------------- */

static void list_others(sim *s, sim_packet *p, kf_note *note)
{
    uint32_t *list;
    void *room;

    assert_ok(kf_note_unpack(note, p->body, p->p.body_bytes, &room));
    list = (uint32_t *)(uintptr_t)note->list;
    for (size_t at = 0; at < note->listed; at += 1 + list[at])
        for (size_t i = 0, seat = 0; i < list[at]; i++) {
            seat += sim_draw(s) < 0.3;
            list[at + 1 + i] = (uint32_t)seat++;
        }
    kf_note_pack(note, p->body);
    kf_free(room);
}

static size_t node_of(const sim *s, kofn_incarnation incarnation)
{
    size_t i = 0;

    while (i < s->nodes && s->node[i].host->opt.incarnation != incarnation)
        i++;
    return i;
}

/* Keeps as members the faulty nodes and the receiver. */
static size_t leave_out(const sim *s, const kf_note *note, size_t to,
                        kf_member *m)
{
    size_t count = 0;

    for (size_t r = 0; r < note->members; r++) {
        size_t i = node_of(s, note->member[r].incarnation);

        if (i == to || now.faulty & kf_bit(i))
            m[count++] = note->member[r];
    }
    return count;
}

/* Lists the seats of faulty nodes for each group. */
static size_t list_faulty(const sim *s, const kf_note *note, uint32_t *list)
{
    size_t n = 0;

    for (size_t at = 0; at < note->listed; at += 1 + note->list[at]) {
        size_t first = n++;

        for (uint32_t seat = 0; seat < SIM_NODES; seat++)
            for (size_t i = 0; i < s->nodes; i++)
                if (now.faulty & kf_bit(i) &&
                    s->node[i].host->blocks.seat == seat)
                    list[n++] = seat;
        list[first] = (uint32_t)(n - first - 1);
    }
    return n;
}

static void name_faulty_only(sim *s, sim_packet *p, kf_note *note)
{
    uint32_t list[KF_MAX_GROUPS * (SIM_NODES + 1)];
    kf_member m[SIM_NODES];
    void *room;

    assert_ok(kf_note_unpack(note, p->body, p->p.body_bytes, &room));
    if (note->type == KF_NOTE_EPOCH) {
        note->members = leave_out(s, note, p->to, m);
        note->member = m;
    } else {
        note->listed = list_faulty(s, note, list);
        note->list = list;
    }
    sim_repack(p, note);
    kf_free(room);
}

/* True if the note belongs to the sender's own epoch. */
static bool leads(const sim *s, const sim_packet *p, const kf_note *note)
{
    return (note->type == KF_NOTE_EPOCH || note->type == KF_NOTE_DECIDE) &&
           now.faulty & kf_bit(p->from) &&
           node_of(s, note->epoch.proposer) == p->from;
}

static void tamper(sim *s, sim_packet *p)
{
    uint64_t job = s->node[p->from].host->job;
    double *x = (double *)(void *)p->body;
    size_t n = p->p.body_bytes / sizeof *x;
    kf_note note;

    assert_ok(kf_note_read(&note, p->p.head, p->p.head_bytes, job));
    if (now.deciders && note.type == KF_NOTE_DECIDE) {
        list_others(s, p, &note);
        now.sent++;
    } else if (now.epochs && leads(s, p, &note)) {
        name_faulty_only(s, p, &note);
        now.sent++;
    } else if (now.lenders && note.type == KF_NOTE_BLOCK) {
        size_t skip = now.velocity ? n / 2 : 0;

        spoil_numbers(s, x + skip, n - skip);
    } else if (now.some && note.type == KF_NOTE_PARTIAL && p->to % 2 &&
               is_faulty(s, p->from, note.at.step)) {
        spoil_numbers(s, x, n);
    } else {
        return;
    }
    kf_note_write(p->p.head, &note, job, p->body, p->p.body_bytes);
}

/* ---- a run --------------------------------------------------------------- */

static void blamed(sim *s, size_t by, size_t node)
{
    if (now.turn || !(now.faulty & kf_bit(node)))
        fail_msg("seed %llu: node %zu takes node %zu for faulty",
                 (unsigned long long)s->seed, by, node);
}

static void begin(sim *s, fixture *f, const training_case *l, unsigned epochs,
                  kofn_errors errors, uint64_t seed)
{
    mesh_up(s, f, l, epochs, seed);
    s->opt.errors = errors;
    s->opt.confirm = 1;
    s->blamed = blamed;
    if (now.some || now.deciders || now.lenders || now.epochs) {
        s->hostile = &now; /* vectors of nodes may differ by rounding */
        s->tamper = tamper;
    }
    if (!s->hostile || now.epochs)
        s->opt.fault = spoil;
    for (size_t i = 0; i < l->nodes; i++) {
        sim_start(s, i, true);
        s->node[i].turncoat = (now.faulty & kf_bit(i)) != 0;
    }
}

/* Fails unless all honest nodes have the plain training's result. What they
 * decoded from the same bytes must be the same. */
static size_t end_well(sim *s, fixture *f)
{
    const sim_node *first = NULL;
    size_t left_out = 0;

    for (size_t i = 0; i < f->l->nodes; i++) {
        const sim_node *n = &s->node[i];
        kofn_node_view v;

        if (n->turncoat)
            continue;
        first = first ? first : n;
        kf_node_look(n->host->node, &v);
        assert_int_equal(v.at.step, iterates(f));
        assert_int_equal(v.failed, KOFN_OK);
        assert_int_equal(v.alone, 0);
        if (!s->hostile)
            assert_memory_equal(n->host->it.v->m.data,
                                first->host->it.v->m.data, f->v0.rows * 8);
        left_out += v.left_out;
    }
    return left_out;
}

static size_t try_to_the_end(const training_case *l, kofn_errors errors,
                             fault what, uint64_t seed)
{
    size_t left_out;
    fixture f;
    sim s;

    now = what;
    begin(&s, &f, l, 3, errors, seed);
    sim_finish(&s, 120 * KOFN_SECOND, NULL, l->scheme, seed);
    left_out = end_well(&s, &f);
    assert_true(now.sent > 0 || now.deciders || now.product != ALWAYS);
    mesh_down(&s, &f);
    return left_out;
}

/* Runs until every node fails, and none has advanced past the iterate with
 * faults. When the iterate is recomputed with new errors, they may be larger
 * than any partial product and so be located. Then it is right, and a later one
 * fails. */
static void try_to_fail(const training_case *l, kofn_errors errors, fault what,
                        uint64_t seed)
{
    bool all = false;
    fixture f;
    sim s;

    now = what;
    begin(&s, &f, l, 3, errors, seed);
    while (!all) {
        if (s.now >= 120 * KOFN_SECOND)
            fail_msg("%s, seed %llu: not every node has failed", l->scheme,
                     (unsigned long long)seed);
        sim_run(&s, s.now + MS, NULL);
        all = true;
        for (size_t i = 0; i < l->nodes; i++)
            all &= s.node[i].status != KOFN_OK;
    }
    for (size_t i = 0; i < l->nodes; i++) {
        kofn_node_view v;

        kf_node_look(s.node[i].host->node, &v);
        assert_int_equal(s.node[i].status, KOFN_CORRUPT);
        if (errors == KOFN_ERRORS_DETECT)
            assert_int_equal(v.at.step, what.first);
        else
            assert_true(v.at.step >= what.first);
    }
    mesh_down(&s, &f);
}

/* ---- up to the limit ----------------------------------------------------- */

static const kofn_errors finding[] = {KOFN_ERRORS_ADVERSARIAL,
                                      KOFN_ERRORS_PROBABILISTIC};

/* Cases 0 and 2 have two nodes to spare, or five. */
static void one_faulty_node(void **state)
{
    (void)state;
    for (size_t i = 0; i <= 2; i += 2)
        for (size_t id = 0; id < training_cases[i].nodes; id++)
            assert_true(try_to_the_end(&training_cases[i],
                                       finding[(id + i / 2) % 2],
                                       (fault){.faulty = kf_bit(id),
                                               .product = ALWAYS,
                                               .all = id / 2 % 2},
                                       id) > 0);
}

/* Stops nodes now and then for up to `longest`, as the threads of a busy
 * machine stop. */
static void stop_some(sim *s, kofn_time longest)
{
    for (size_t i = 0; i < s->nodes; i++) {
        sim_node *n = &s->node[i];

        if (n->stopped > s->now || sim_draw(s) > 0.2)
            continue;
        n->stopped = s->now + (kofn_time)((double)longest * sim_draw(s));
        sim_wake(s, i, n->stopped);
    }
}

static bool have_all_gone(const sim *s)
{
    bool all = true;

    for (size_t i = 0; i < s->nodes; i++) {
        const sim_node *n = &s->node[i];

        assert_true(n->turncoat || n->status == KOFN_OK);
        all &= n->turncoat || n->gone;
    }
    return all;
}

/* One node is faulty. The others get the result and exit within `seconds`. */
static void run_unevenly(const training_case *l, uint64_t seed,
                         kofn_time longest, unsigned seconds)
{
    size_t bad = seed % l->nodes;
    fixture f;
    sim s;

    now = (fault){.faulty = kf_bit(bad),
                  .product = ALWAYS,
                  .first = 2 + seed % 9,
                  .all = true};
    mesh_up(&s, &f, l, 3, seed);
    s.opt.errors = KOFN_ERRORS_ADVERSARIAL;
    s.opt.confirm = 0;
    s.opt.fault = spoil;
    s.opt.beat = (l->nodes > 7 ? 50 : 20) * MS;
    s.blamed = blamed;
    s.hostile = &now; /* vectors of nodes may differ by rounding */
    s.latency = s.compute = MS / 50;
    s.exits = true;
    for (size_t i = 0; i < l->nodes; i++)
        sim_start(&s, i, true);
    s.node[bad].turncoat = true;
    while (!have_all_gone(&s)) {
        if (s.now >= seconds * KOFN_SECOND)
            fail_msg("seed %llu: not all have gone", (unsigned long long)seed);
        stop_some(&s, longest);
        sim_run(&s, s.now + MS / 2, NULL);
    }
    mesh_down(&s, &f);
}

static training_case uncut(size_t nodes)
{
    return (training_case){.scheme = "gpd:m=1,n=1,p=1",
                           .nodes = nodes,
                           .layers = 2,
                           .widths = {SIDE * SIDE, 4, 3},
                           .activation = KOFN_SIGMOID};
}

/* Nodes that stop are some iterates apart. Nodes that are behind must accept
 * the vector of the few that are ahead, whether they know the faulty node or
 * not. Runs the first ten seeds, and others in which that once took long or
 * failed. */
static void few_are_ahead(void **state)
{
    static const uint64_t eleven[] = {82, 311, 621, 972, 1015, 1451, 1797};
    static const uint64_t seven[] = {406, 614, 783};
    static const uint64_t five[] = {65, 172, 792};
    const training_case of_eleven = uncut(11), of_seven = uncut(7);

    (void)state;
    for (uint64_t seed = 0; seed < 10; seed++)
        run_unevenly(&of_eleven, seed, 6 * MS, 5);
    for (size_t i = 0; i < sizeof eleven / sizeof *eleven; i++)
        run_unevenly(&of_eleven, eleven[i], 6 * MS, 5);
    run_unevenly(&of_eleven, 44, 30 * MS, 20);
    for (size_t i = 0; i < sizeof seven / sizeof *seven; i++)
        run_unevenly(&of_seven, seven[i], 4 * MS, 10);
    for (size_t i = 0; i < sizeof five / sizeof *five; i++)
        run_unevenly(&training_cases[1], five[i], 50 * MS, 15);
}

/* The leader's epoch has the faulty nodes and one receiver that is to believe
 * them. */
static void small_epochs(void **state)
{
    const training_case of_seven = uncut(7);

    (void)state;
    for (uint64_t seed = 0; seed < 21; seed++) {
        size_t bad = seed % 7;
        fault what = {.faulty = kf_bit(bad) | kf_bit((bad + seed / 7) % 7),
                      .product = ALWAYS,
                      .first = seed % 4,
                      .epochs = true};

        try_to_the_end(&of_seven, KOFN_ERRORS_ADVERSARIAL, what, seed);
    }
}

/* Pieces of some nodes are not needed in a product with few groups, so each
 * product is tried with several nodes. */
static void in_each_product(void **state)
{
    (void)state;
    for (size_t i = 0; i <= 2; i += 2)
        for (size_t k = 0; k < 3 * training_cases[i].layers - 1; k++) {
            size_t left_out = 0;

            for (size_t id = 0; id < training_cases[i].nodes && !left_out;
                 id++) {
                fault what = {.faulty = kf_bit(id), .product = (int)k};

                left_out =
                    try_to_the_end(&training_cases[i], finding[k % 2], what, k);
            }
            assert_true(left_out > 0);
        }
}

static void two_faulty_nodes(void **state)
{
    const training_case *l = &training_cases[2];

    (void)state;
    for (size_t id = 0; id < l->nodes; id++)
        assert_true(try_to_the_end(
                        l, KOFN_ERRORS_ADVERSARIAL,
                        (fault){.faulty = kf_bit(id) |
                                          kf_bit((id + 1 + id % 3) % l->nodes),
                                .product = ALWAYS,
                                .all = id % 2},
                        id) > 0);
}

static void changing_faulty_node(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 2; seed++)
        assert_true(
            try_to_the_end(&training_cases[2 * seed], finding[seed],
                           (fault){.turn = true, .product = ALWAYS, .last = 15},
                           seed) > 0);
}

static void inconsistent_node(void **state)
{
    const training_case *l = &training_cases[2];

    (void)state;
    for (size_t id = 0; id < l->nodes; id++)
        try_to_the_end(
            l, finding[id % 2],
            (fault){.faulty = kf_bit(id), .product = ALWAYS, .some = true}, id);
}

static void false_lists(void **state)
{
    const training_case *l = &training_cases[2];

    (void)state;
    for (size_t id = 0; id < l->nodes; id++)
        try_to_the_end(
            l, finding[id % 2],
            (fault){.faulty = kf_bit(id), .product = ALWAYS, .deciders = true},
            id);
}

/* ---- beyond the limit ---------------------------------------------------- */

static void detected(void **state)
{
    (void)state;
    for (size_t id = 0; id < 3; id++)
        try_to_fail(&training_cases[2], KOFN_ERRORS_DETECT,
                    (fault){.faulty = UINT64_C(7) << id,
                            .first = 1 + id,
                            .product = ALWAYS,
                            .all = true},
                    id);
}

/* Three of eight nodes decode, and five are faulty. */
static void too_many(void **state)
{
    (void)state;
    for (size_t id = 0; id < 4; id++)
        try_to_fail(&training_cases[2], finding[id % 2],
                    (fault){.faulty = UINT64_C(31) << id % 4,
                            .first = 1 + id,
                            .product = ALWAYS,
                            .all = true},
                    id);
}

/* ---- memory -------------------------------------------------------------- */

static size_t flipped;

static void look_at_others(sim *s, size_t id)
{
    if (id != flipped || s->node[id].host->blocks.changing.rebuilt > 0)
        look_at_blocks(s, id);
}

/* Flips a bit that changes a number, of a block or of its velocity. */
static void flip(sim *s, size_t id, size_t operand, bool velocity)
{
    kf_block *b = s->node[id].host->blocks.operand[operand].block;
    double *x = kf_block_state(b, velocity, 0).data;
    size_t i = kf_rng_below(&s->rng, b->rows * b->cols);
    uint64_t bits;

    assert_non_null(x);
    memcpy(&bits, &x[i], sizeof bits);
    /* Changes the number by a factor of 2^512, or by nearly its whole value. */
    bits ^= UINT64_C(1) << 62;
    memcpy(&x[i], &bits, sizeof bits);
}

/* The node finds the error itself, and rebuilds its block from the others
 * while they continue. It is not blamed. */
static void memory(void **state)
{
    (void)state;
    for (size_t i = 0; i <= 2; i += 2)
        for (size_t k = 0; k < 2 * training_cases[i].layers; k++) {
            const training_case *l = &training_cases[i];
            fixture f;
            sim s;

            now = (fault){.product = ALWAYS};
            flipped = k % l->nodes;
            begin(&s, &f, l, 12, finding[k % 2], k);
            s.look = look_at_others;
            run_until(&s, 6);
            flip(&s, flipped, k / 2, k % 2);
            sim_finish(&s, 120 * KOFN_SECOND, NULL, l->scheme, k);
            end_well(&s, &f);
            for (size_t n = 0; n < l->nodes; n++) {
                const kf_changing *c = &s.node[n].host->blocks.changing;

                assert_int_equal(c->wrong, n == flipped);
                assert_int_equal(c->rebuilt, n == flipped);
            }
            mesh_down(&s, &f);
        }
}

static void lenders(void **state)
{
    const training_case *l = &training_cases[2];
    size_t node = l->nodes - 1;

    (void)state;
    for (size_t id = 0; id < node; id++) {
        fixture f;
        sim s;

        now = (fault){.faulty = kf_bit(id),
                      .product = ALWAYS,
                      .lenders = true,
                      .all = id % 2,
                      .velocity = id / 2 % 2};
        begin(&s, &f, l, 12, finding[id % 2], id);
        run_until(&s, 6);
        sim_stop(&s, node);
        run_until(&s, 9);
        sim_start(&s, node, false);
        sim_finish(&s, 120 * KOFN_SECOND, NULL, l->scheme, id);
        end_well(&s, &f);
        assert_true(now.sent > 0);
        assert_int_equal(s.node[node].host->blocks.changing.rebuilt, 1);
        mesh_down(&s, &f);
    }
}

TEST_FILE(train_liars_test)
{
    const struct CMUnitTest tests[] = {
        TEST(one_faulty_node,
             "train: one node with wrong partial products is found"),
        TEST(few_are_ahead,
             "train: nodes take the vector of the few that are ahead"),
        TEST(small_epochs,
             "train: an epoch of faulty nodes and one other does no harm"),
        TEST(in_each_product,
             "train: wrong partial products are found in each product"),
        TEST(two_faulty_nodes,
             "train: two nodes with wrong partial products are found"),
        TEST(changing_faulty_node,
             "train: no node is excluded if another one errs in each iterate"),
        TEST(
            inconsistent_node,
            "train: a node that sends wrong partial products to some does no harm"),
        TEST(false_lists,
             "train: a decider with false lists gets no honest node blamed"),
        TEST(detected,
             "train: detect ends all nodes with KOFN_CORRUPT at the error"),
        TEST(too_many,
             "train: too many faulty nodes end all with KOFN_CORRUPT"),
        TEST(memory, "train: a flipped bit of a block is found and repaired"),
        TEST(lenders, "train: a wrong block of one lender is not taken"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
