/* train_votes_test.c -- trainings without a master with nodes that err. Errors
 * occur in every place, before the partial products are compared or after, in
 * any iterate, in one node or several. If fewer than half of the nodes err
 * after the comparison, all end with the plain training's weights, bit for bit
 * the same. The others know which nodes erred. Beyond that no node ends with a
 * result. No node believes a single node that claims to be ahead. */
#include "train_mesh_rig.h"

enum { EPOCHS = 1 };

/* Tries one of SPARED iterates if the code is slow. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SPARED 4
#else
#define SPARED 1
#endif

typedef struct fault {
    uint64_t nodes;         /* set of nodes that err */
    uint64_t t;             /* the iterate in which they err */
    kofn_fault_place where; /* 0: no error */
    bool alike;             /* all err by the same amount */
    bool ahead;             /* they compute before the others do */
    bool infinite;          /* a number becomes NaN or infinite */
    bool claims_result;     /* they claim to be far ahead */
    bool digests;           /* they send false digests */
    bool loses;    /* all numbers are wrong, and they lose their blocks */
    bool cut_off;  /* they are cut off at that time */
    bool right;    /* they do not err */
    uint64_t turn; /* their vectors change at the end of this turn; 0: no */
    size_t victim; /* 1 + a node to which they send wrong partial products */
    bool flips;    /* numbers change after the digest of iterate t was sent */
} fault;

static fault now;
static size_t reports[SIM_NODES][SIM_NODES], erred, again;
/* Largest number of times that a node found its blocks wrong. */
static size_t wrong;
static bool
    once; /* each node errs in its first partial products of the iterate */
static uint64_t lineage_of[SIM_NODES];

static void cut_links(sim *s, size_t id)
{
    for (size_t i = 0; i < s->nodes; i++)
        s->cut[i][id] = s->cut[id][i] = true;
}

static void err(void *ud, kofn_fault_place where, uint64_t t,
                kofn_matrix *numbers)
{
    const sim_node *n = ud;
    double by = now.right ? 0 : now.alike ? 1 : 1 + (double)n->id;

    if (t + 1 != now.t || where != now.where || !(now.nodes & kf_bit(n->id)))
        return;
    if (once && lineage_of[n->id] &&
        lineage_of[n->id] != n->host->it.at.lineage)
        return;
    lineage_of[n->id] = n->host->it.at.lineage;
    erred++;
    if (now.cut_off)
        cut_links(n->sim, n->id);
    if (now.infinite)
        *(double *)numbers->data = t % 2 ? -INFINITY : (double)NAN;
    for (size_t i = 0; i < numbers->rows; i++)
        for (size_t j = 0; j < numbers->cols; j++)
            if (i * numbers->cols + j < 5 || i + 1 == numbers->rows ||
                now.loses)
                *(double *)kf_at(numbers, i, j) += 0.5 * by;
}

/* Changes a number of the vector after its digest was sent. Blocks change by
 * that number, and it is not rewritten for four turns. */
static kofn_status change(void *ud, uint64_t turn, uint32_t operand,
                          const kofn_matrix *v, kofn_turn_change *to)
{
    const sim_node *n = ud;
    const kf_train_mesh *m = at_node(n);

    if (turn == now.turn && now.nodes & kf_bit(n->id) && !lineage_of[n->id]) {
        lineage_of[n->id] = n->host->it.at.lineage;
        erred++;
        *(double *)kf_at(
            v, (turn - 1) % 4 * m->tape + m->p.X[1].rows * m->p.X[1].ld, 0) +=
            now.infinite ? INFINITY : 0.5;
    }
    return sim_change(ud, turn, operand, v, to);
}

/* Changes numbers that the iterate wrote, by a high bit of the exponent or to
 * NaN. */
static void flip(sim *s, size_t id)
{
    kf_host *h = s->node[id].host;
    size_t first, rows;
    double *x = h->it.v->m.data;

    if (!now.flips || !(now.nodes & kf_bit(id)) || h->it.at.step != now.t ||
        lineage_of[id])
        return;
    lineage_of[id] = 1;
    erred++;
    kf_host_wrote(h, now.t, &first, &rows);
    for (size_t i = 0; i < rows; i += 3)
        x[first + i] = now.infinite ? (double)NAN : x[first + i] * 0x1p500;
    if (now.cut_off)
        cut_links(s, id);
}

/* The node rebuilds its blocks from the start, by its own vector, before it
 * hears of others. */
static void lose(sim *s, size_t id)
{
    kf_host *h = s->node[id].host;

    flip(s, id);
    if (now.loses && now.nodes & kf_bit(id) && h->it.at.step == now.t)
        kf_changing_lose(h);
}

static void hear(void *ud, uint32_t seat, const char *name, bool excluded)
{
    const sim_node *n = ud;
    size_t node = (size_t)atoi(name + strlen("node "));

    (void)seat;
    assert_true(!excluded || (now.digests && now.nodes & kf_bit(node)));
    reports[n->id][node]++;
}

/* Replaces a vector by an invented one, of an iterate far ahead. */
static void tamper(sim *s, sim_packet *p)
{
    uint64_t job = s->node[p->from].host->job;
    kf_note note;

    if (!now.claims_result && !now.digests && p->to + 1 != now.victim)
        return;
    assert_ok(kf_note_read(&note, p->p.head, p->p.head_bytes, job));
    if (now.victim) {
        if (note.type != KF_NOTE_PARTIAL)
            return;
        ((double *)(void *)p->body)[0] += 1;
        kf_note_write(p->p.head, &note, job, p->body, p->p.body_bytes);
        return;
    }
    if (now.digests) {
        note.digest.exact += 2 * (p->to + note.at.step);
        note.digest.sum += 1 + (double)p->to;
        kf_note_write(p->p.head, &note, job, p->body, p->p.body_bytes);
        return;
    }
    if (note.type != KF_NOTE_BEAT && note.type != KF_NOTE_WANT &&
        note.type != KF_NOTE_VECTOR)
        return;
    note.at.step = now.t;
    note.at.lineage = 4711;
    note.final = note.type != KF_NOTE_WANT;
    if (note.type == KF_NOTE_VECTOR)
        ((double *)(void *)p->body)[KOFN_SCALARS] += 1;
    kf_note_write(p->p.head, &note, job, p->body, p->p.body_bytes);
}

static void begin(sim *s, fixture *f, const training_case *l,
                  kofn_errors errors, uint64_t seed)
{
    memset(reports, 0, sizeof reports);
    memset(lineage_of, 0, sizeof lineage_of);
    erred = again = wrong = 0;
    mesh_up(s, f, l, EPOCHS, seed);
    s->program.change = change;
    s->opt.scrub = now.turn > 0;
    s->opt.errors = errors;
    s->opt.confirm = 0;
    s->opt.erred = hear;
    s->hostile = &now; /* two vectors of one iterate are the subject here */
    s->lenient = true;
    s->look = lose;
    s->tamper = tamper;
    s->opt.fault = err;
}

static void start_all(sim *s, const training_case *l)
{
    for (size_t i = 0; i < l->nodes; i++) {
        sim_start(s, i, true);
        s->node[i].slow = now.ahead && !(now.nodes & kf_bit(i)) ? 8 : 1;
        s->node[i].turncoat =
            (now.claims_result || now.digests || now.victim) &&
            now.nodes & kf_bit(i);
    }
}

/* Runs until all have ended or failed. */
static void run_to_the_end(sim *s, const training_case *l)
{
    bool all = false;

    while (!all) {
        sim_run(s, s->now + MS, NULL);
        if (s->now > 300 * KOFN_SECOND) {
            sim_print(s);
            fail_msg("iterate %llu, nodes %llx: not every node has ended",
                     (unsigned long long)now.t, (unsigned long long)now.nodes);
        }
        all = true;
        for (size_t i = 0; i < l->nodes; i++)
            all &= s->node[i].over || s->node[i].status || s->node[i].turncoat;
    }
}

/* Returns the first row of the weights, which end the vector. */
static size_t weights_at(const fixture *f)
{
    size_t first = f->v0.rows;

    for (size_t l = 0; l < f->l->layers; l++)
        first -= f->net->W[l].rows * f->net->W[l].cols;
    return first;
}

static void compare_weights(const fixture *f, const sim *s, size_t id)
{
    size_t rows = f->v0.rows, first = weights_at(f);
    const double *v = s->node[id].host->it.v->m.data;
    const double *right = f->ref + iterates(f) * rows;

    for (size_t i = first; i < rows; i++)
        if (!(fabs(v[i] - right[i]) <= 1e-9))
            fail_msg("iterate %llu, nodes %llx: node %zu has %g for %g",
                     (unsigned long long)now.t, (unsigned long long)now.nodes,
                     id, v[i], right[i]);
}

/* Fails unless all end well. Returns how often the nodes that err were
 * outvoted. Others may be outvoted too: they leave out other partial products,
 * and take a vector that is the same bit for bit. */
static size_t try_well(const training_case *l, kofn_errors errors, fault what,
                       uint64_t seed)
{
    size_t outvoted = 0, at;
    const sim_node *first;
    fixture f;
    sim s;

    now = what;
    begin(&s, &f, l, errors, seed);
    start_all(&s, l);
    run_to_the_end(&s, l);
    first = &s.node[s.node[0].turncoat ? 1 : 0];
    for (size_t i = 0; i < l->nodes; i++) {
        const sim_node *n = &s.node[i];
        kofn_node_view v;

        if (n->turncoat)
            continue;
        if (n->status)
            fail_msg("iterate %llu, nodes %llx: node %zu: %s",
                     (unsigned long long)what.t, (unsigned long long)what.nodes,
                     i, kofn_errmsg());
        kf_node_look(n->host->node, &v);
        assert_int_equal(v.at.step, iterates(&f));
        compare_weights(&f, &s, i);
        at = weights_at(&f); /* tapes may differ by rounding */
        assert_memory_equal(kf_at(&n->host->it.v->m, at, 0),
                            kf_at(&first->host->it.v->m, at, 0),
                            (f.v0.rows - at) * 8);
        again += v.again;
        wrong = kf_max(wrong, n->host->blocks.changing.wrong);
        outvoted += what.nodes & kf_bit(i) ? v.outvoted : 0;
        kf_comparison_advance(n->host);
    }
    mesh_down(&s, &f);
    return outvoted;
}

static size_t iterates_of(const training_case *l)
{
    fixture f;
    size_t n;

    set_up(&f, l, EPOCHS);
    n = iterates(&f);
    tear_down(&f);
    return n;
}

static void try_one(const training_case *l, uint64_t t, kofn_fault_place where,
                    uint64_t seed)
{
    size_t id = seed % l->nodes, by = id ? 0 : 1;
    fault what = {
        .nodes = kf_bit(id), .t = t, .where = where, .infinite = t % 3 == 0};
    size_t outvoted = try_well(
        l, seed % 2 ? KOFN_ERRORS_ADVERSARIAL : KOFN_ERRORS_PROBABILISTIC, what,
        seed);

    if (where != KOFN_FAULT_IN_DECODING && where != KOFN_FAULT_IN_VECTOR)
        return;
    assert_int_equal(erred, 1);
    assert_true(outvoted > 0);
    assert_true(reports[by][id] > 0);
}

static void decoding(void **state)
{
    const training_case *l = &training_cases[2];
    size_t n = iterates_of(l);

    (void)state;
    for (uint64_t t = n; t > 0; t -= t > SPARED ? SPARED : t)
        try_one(l, t, KOFN_FAULT_IN_DECODING, t);
}

/* Fewer than half of the nodes compute the same wrong result before the others
 * compute theirs. Some of the others take it, but do not count as witnesses. */
static void alike_and_ahead(void **state)
{
    const training_case *l = &training_cases[2];
    size_t n = iterates_of(l);

    (void)state;
    for (uint64_t seed = 0; seed < 6; seed++) {
        fault what = {.nodes = (seed % 2 ? UINT64_C(3) : UINT64_C(7))
                               << seed / 2,
                      .t = n,
                      .where = KOFN_FAULT_IN_DECODING,
                      .alike = true,
                      .ahead = true};

        assert_true(try_well(l, KOFN_ERRORS_PROBABILISTIC, what, seed) > 0);
        assert_int_equal(erred, seed % 2 ? 2 : 3);
    }
}

/* Covers a step and the end, not every iterate. */
static void everywhere(void **state)
{
    (void)state;
    for (size_t i = SPARED > 1 ? 2 : 0; i <= 2; i += 2)
        for (unsigned where = 1; where <= KOFN_FAULT_IN_MEMORY; where *= 2) {
            const training_case *l = &training_cases[i];
            size_t n = iterates_of(l), turn = 2 * l->layers - 1, tries = 0;

            for (uint64_t t = turn + 1; t <= n; t++)
                if (t <= 2 * turn || t + l->layers > n) {
                    try_one(l, t, where, t + where);
                    tries += erred > 0;
                }
            assert_true(tries > 0);
        }
}

static void several(void **state)
{
    const training_case *l = &training_cases[2];
    size_t n = iterates_of(l);
    uint64_t at[] = {1, 3, n - 2, n - 1, n};

    (void)state;
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        fault what = {.nodes = UINT64_C(7) << i,
                      .t = at[i],
                      .where = KOFN_FAULT_IN_DECODING};

        assert_true(try_well(l, KOFN_ERRORS_ADVERSARIAL, what, i) > 0);
        assert_int_equal(erred, 3);
    }
}

/* No other node has to find the blocks that it changed by its wrong vector, or
 * rebuilt. */
static void outvoted_blocks(void **state)
{
    (void)state;
    for (size_t i = 0; i <= 2; i += 2)
        for (size_t id = 0; id < training_cases[i].nodes; id += SPARED) {
            uint64_t turn = 2 * training_cases[i].layers - 1;

            for (uint64_t t = turn; t <= turn + 1; t++) {
                fault what = {.nodes = kf_bit(id),
                              .t = t,
                              .where = KOFN_FAULT_IN_VECTOR,
                              .loses = t > turn};
                assert_true(try_well(&training_cases[i],
                                     KOFN_ERRORS_ADVERSARIAL, what, id) > 0);
                assert_int_equal(erred, 1);
                assert_int_equal(wrong, 0);
            }
        }
}

/* The numbers change after the digest was sent, also in the last iterate. No
 * node uses or returns that vector, and each takes the vector of others. */
static void flipped_numbers(void **state)
{
    const training_case *l = &training_cases[2];
    size_t n = iterates_of(l);

    (void)state;
    for (size_t i = 0; i < n; i += i < n - 2 ? 2 * SPARED : 1)
        for (size_t k = 0; k < 2; k++) {
            fault what = {.nodes = (i % 2 ? UINT64_C(7) : 1) << i % 6,
                          .t = n - i,
                          .flips = true,
                          .infinite = k == 1};

            try_well(l, KOFN_ERRORS_ADVERSARIAL, what, i + k);
            assert_int_equal(erred, i % 2 ? 3 : 1);
        }
}

/* The node is cut off as its result changes. */
static void flipped_result_alone(void **state)
{
    const training_case *l = &training_cases[2];
    fixture f;
    sim s;

    (void)state;
    now = (fault){
        .nodes = 1, .t = iterates_of(l), .flips = true, .cut_off = true};
    begin(&s, &f, l, KOFN_ERRORS_PROBABILISTIC, 3);
    start_all(&s, l);
    run_to_the_end(&s, l);
    assert_int_equal(s.node[0].status, KOFN_CORRUPT);
    for (size_t i = 1; i < l->nodes; i++) {
        assert_ok(s.node[i].status);
        compare_weights(&f, &s, i);
    }
    mesh_down(&s, &f);
}

/* The receiver leaves the wrong partial products out and decodes from others.
 * So its vector is the same except for rounding: it takes no other vector and
 * keeps its blocks. */
static void rounding_is_accepted(void **state)
{
    const training_case *l = &training_cases[2];

    (void)state;
    for (size_t id = 0; id < l->nodes; id += 2) {
        kofn_node_view v;
        fixture f;
        sim s;

        now = (fault){.nodes = kf_bit(id), .victim = 2 + id};
        begin(&s, &f, l, KOFN_ERRORS_ADVERSARIAL, id);
        s.opt.quarantine = 1000;
        start_all(&s, l);
        run_until(&s, f.steps);
        kf_host_look(s.node[id + 1].host, &v);
        assert_true(v.left_out > f.steps);
        assert_int_equal(v.outvoted + v.rebuilt, 0);
        run_to_the_end(&s, l);
        for (size_t i = 0; i < l->nodes; i++)
            if (i != id)
                compare_weights(&f, &s, i);
        mesh_down(&s, &f);
    }
}

/* A number that no vote covers any more makes the blocks of a node wrong, and
 * the rebuilt ones again. Then the node takes the vector of others and
 * rebuilds right ones. */
static void number_behind_the_blocks(void **state)
{
    const training_case *l = &training_cases[0];

    (void)state;
    for (uint64_t turn = 1; turn <= 2; turn++)
        for (size_t id = 0; id < l->nodes; id += SPARED) {
            fault what = {
                .nodes = kf_bit(id), .turn = turn, .infinite = id % 3 == 2};

            assert_true(try_well(l, KOFN_ERRORS_ADVERSARIAL, what, id) > 0);
            assert_int_equal(erred, 1);
            assert_int_equal(wrong, what.infinite ? 0 : 2);
        }
}

/* More nodes err at once than can be located, each in one product. */
static void accidents(void **state)
{
    const training_case *l = &training_cases[2];
    size_t n = iterates_of(l);

    (void)state;
    for (uint64_t t = n; t > 0; t -= t > SPARED ? SPARED : t) {
        fault what = {.nodes = 0x1f, .t = t, .where = KOFN_FAULT_IN_PRODUCT};

        once = true;
        try_well(l, KOFN_ERRORS_ADVERSARIAL, what, t);
        once = false;
        assert_true(again > 0);
    }
}

/* More than half of the nodes agree on no result, or on a wrong one. */
static void beyond(void **state)
{
    const training_case *l = &training_cases[2];
    size_t n = iterates_of(l);

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        fixture f;
        sim s;

        now = (fault){.nodes = 0xf,
                      .t = n,
                      .where = KOFN_FAULT_IN_DECODING,
                      .alike = i == 1,
                      .infinite = i == 2};
        begin(&s, &f, l, KOFN_ERRORS_ADVERSARIAL, i);
        start_all(&s, l);
        run_to_the_end(&s, l);
        for (size_t k = 0; k < l->nodes; k++)
            assert_int_equal(s.node[k].status, KOFN_CORRUPT);
        mesh_down(&s, &f);
    }
}

/* The node has the partial products that it decodes, and is right or wrong. It
 * believes its result only if it has heard the results of others. */
static void alone(void **state)
{
    const training_case *l = &training_cases[2];
    size_t n = iterates_of(l), unsure = 0;

    (void)state;
    for (size_t id = 0; id < l->nodes; id++) {
        fixture f;
        sim s;

        now = (fault){.nodes = kf_bit(id),
                      .t = n,
                      .where = KOFN_FAULT_IN_DECODING,
                      .cut_off = true,
                      .right = id % 2};
        begin(&s, &f, l, KOFN_ERRORS_PROBABILISTIC, id);
        start_all(&s, l);
        run_to_the_end(&s, l);
        assert_int_equal(erred, 1);
        for (size_t i = 0; i < l->nodes; i++) {
            assert_true(i == id || s.node[i].status == KOFN_OK);
            if (s.node[i].status == KOFN_OK)
                compare_weights(&f, &s, i);
        }
        unsure += s.node[id].status == KOFN_TOOFEW;
        mesh_down(&s, &f);
    }
    assert_true(unsure > 0);
}

/* The node claims from the start to have the result, and sends one. */
static void claims(void **state)
{
    const training_case *l = &training_cases[2];
    size_t n = iterates_of(l);

    (void)state;
    for (size_t id = 0; id < l->nodes; id++)
        try_well(l, KOFN_ERRORS_ADVERSARIAL,
                 (fault){.nodes = kf_bit(id), .t = n, .claims_result = true},
                 id);
}

/* Two nodes send a different false digest to each receiver. */
static void false_digests(void **state)
{
    const training_case *l = &training_cases[2];

    (void)state;
    for (size_t id = 0; id < l->nodes; id += 2) {
        fault what = {.nodes = kf_bit(id) | kf_bit(id + 1), .digests = true};

        try_well(l, KOFN_ERRORS_ADVERSARIAL, what, id);
        for (size_t i = 0; i < l->nodes; i++)
            if (!(what.nodes & kf_bit(i)))
                assert_true(reports[i][id] > 0 && reports[i][id + 1] > 0);
    }
}

/* The code has nine nodes, and five decode the forward product. Expected: one
 * more than may collude, half of four, or one for an accident. */
static void confirm_defaults(void **state)
{
    static const struct {
        kofn_errors errors;
        size_t given, confirm;
    } expected[] = {{KOFN_ERRORS_NONE, 0, 1},
                    {KOFN_ERRORS_DETECT, 0, 2},
                    {KOFN_ERRORS_PROBABILISTIC, 0, 2},
                    {KOFN_ERRORS_ADVERSARIAL, 0, 3},
                    {KOFN_ERRORS_ADVERSARIAL, 5, 5}};

    (void)state;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        fixture f;
        sim s;

        now = (fault){.where = 0};
        begin(&s, &f, &training_cases[0], expected[i].errors, i);
        s.opt.confirm = expected[i].given;
        sim_start(&s, 0, true);
        assert_int_equal(s.node[0].host->confirm, expected[i].confirm);
        mesh_down(&s, &f);
    }
}

TEST_FILE(train_votes_test)
{
    const struct CMUnitTest tests[] = {
        TEST(decoding,
             "votes: a wrong decoding of one node in any iterate is outvoted"),
        TEST(everywhere, "votes: one error in any place is found"),
        TEST(several,
             "votes: several nodes that err, fewer than half, are outvoted"),
        TEST(alike_and_ahead,
             "votes: equal wrong results ahead of the others are outvoted"),
        TEST(number_behind_the_blocks,
             "votes: a wrong number behind the blocks is found"),
        TEST(outvoted_blocks,
             "votes: an outvoted node rebuilds its blocks unasked"),
        TEST(flipped_numbers,
             "votes: numbers that change after the digest do no harm"),
        TEST(rounding_is_accepted,
             "votes: a vector that differs by rounding is not outvoted"),
        TEST(flipped_result_alone,
             "votes: a lone node with a changed result fails"),
        TEST(accidents, "votes: simultaneous single errors cost one iterate"),
        TEST(beyond,
             "votes: half of the nodes with errors end all without a result"),
        TEST(alone, "votes: a node cut off at the end needs confirmed results"),
        TEST(claims, "votes: a false claim to have the result is not believed"),
        TEST(false_digests, "votes: nodes with false digests are named"),
        TEST(confirm_defaults,
             "votes: the default of confirm fits the kind of errors"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
