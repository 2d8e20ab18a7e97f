/* train_votes_test.c -- trainings without a master with nodes that err: in
 * every place where a node can, before the pieces are compared or after, in any
 * iterate, one node or several.  Up to half of the nodes, where it is after,
 * all end with the plain training's weights, bit for bit the same, and the
 * others know who erred; beyond that nobody ends with a result.  Nobody
 * believes one who says that it is ahead. */
#include "train_mesh_rig.h"

enum { EPOCHS = 1 };

/* Of the iterates that are tried one in so many where the code is slow. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SPARED 4
#else
#define SPARED 1
#endif

typedef struct fault {
    uint64_t nodes;         /* set of those that err ...             */
    uint64_t t;             /* ... as this iterate is made           */
    kofn_fault_place where; /* 0: nowhere                            */
    bool alike;             /* all by the same ...                   */
    bool ahead;             /* ... and before the others make it     */
    bool infinite;          /* a number is no number any more        */
    bool liar;              /* they say that they are far ahead      */
    bool digests;           /* ... or tell false digests             */
    bool loses;             /* ... in all numbers, and lose their blocks */
    bool parted;            /* ... they are cut off there, ...      */
    bool right;             /* ... and do not err                   */
    uint64_t turn;          /* their vectors change as this turn ends, or 0 */
    size_t victim;          /* 1 + a node to which they send wrong pieces */
    bool flips;             /* ... when the digest of iterate t was told */
} fault;

static fault now;
static size_t told[SIM_NODES][SIM_NODES], erred, again;
static size_t wrong; /* times that one has found its blocks wrong, at most */
static bool
    once; /* each node errs in the first pieces that it makes of the iterate */
static uint64_t line_of[SIM_NODES];

static void cut_off(sim *s, size_t id)
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
    if (once && line_of[n->id] && line_of[n->id] != n->host->at.lineage)
        return;
    line_of[n->id] = n->host->at.lineage;
    erred++;
    if (now.parted)
        cut_off(n->sim, n->id);
    if (now.infinite)
        *(double *)numbers->data = t % 2 ? -INFINITY : (double)NAN;
    for (size_t i = 0; i < numbers->rows; i++)
        for (size_t j = 0; j < numbers->cols; j++)
            if (i * numbers->cols + j < 5 || i + 1 == numbers->rows ||
                now.loses)
                *(double *)kf_at(numbers, i, j) += 0.5 * by;
}

/* Of the vector a number by which blocks are changed, and that is not written
 * again for four turns, when its digest has been told. */
static kofn_status change(void *ud, uint64_t turn, uint32_t operand,
                          const kofn_matrix *v, kofn_turned *to)
{
    const sim_node *n = ud;
    const kf_train_mesh *m = at_node(n);

    if (turn == now.turn && now.nodes & kf_bit(n->id) && !line_of[n->id]) {
        line_of[n->id] = n->host->at.lineage;
        erred++;
        *(double *)kf_at(
            v, (turn - 1) % 4 * m->tape + m->p.X[1].rows * m->p.X[1].ld, 0) +=
            now.infinite ? INFINITY : 0.5;
    }
    return sim_change(ud, turn, operand, v, to);
}

/* Numbers that the iterate wrote, the largest bit of an exponent, or they are
 * none. */
static void flip(sim *s, size_t id)
{
    kf_host *h = s->node[id].host;
    size_t first, rows;
    double *x = h->v->m.data;

    if (!now.flips || !(now.nodes & kf_bit(id)) || h->at.step != now.t ||
        line_of[id])
        return;
    line_of[id] = 1;
    erred++;
    kf_host_wrote(h, now.t, &first, &rows);
    for (size_t i = 0; i < rows; i += 3)
        x[first + i] = now.infinite ? (double)NAN : x[first + i] * 0x1p500;
    if (now.parted)
        cut_off(s, id);
}

/* It makes its blocks of the start anew, by its vector, before it hears of
 * others. */
static void lose(sim *s, size_t id)
{
    kf_host *h = s->node[id].host;

    flip(s, id);
    if (now.loses && now.nodes & kf_bit(id) && h->at.step == now.t)
        assert_ok(kf_changing_lose(h));
}

static void hear(void *ud, uint32_t seat, const char *name, bool excluded)
{
    const sim_node *n = ud;
    size_t who = (size_t)atoi(name + strlen("node "));

    (void)seat;
    assert_true(!excluded || (now.digests && now.nodes & kf_bit(who)));
    told[n->id][who]++;
}

/* A vector that it makes up, of an iterate that is far ahead. */
static void twist(sim *s, sim_packet *p)
{
    uint64_t job = s->node[p->from].host->job;
    kf_note note;

    if (!now.liar && !now.digests && p->to + 1 != now.victim)
        return;
    assert_ok(kf_note_read(&note, p->p.head, p->p.head_bytes, job));
    if (now.victim) {
        if (note.type != KF_NOTE_PIECE)
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

static void begin(sim *s, fixture *f, const lesson *l, kofn_errors errors,
                  uint64_t seed)
{
    memset(told, 0, sizeof told);
    memset(line_of, 0, sizeof line_of);
    erred = again = wrong = 0;
    mesh_up(s, f, l, EPOCHS, seed);
    s->program.change = change;
    s->opt.scrub = now.turn > 0;
    s->opt.errors = errors;
    s->opt.confirm = 0;
    s->opt.erred = hear;
    s->evil = &now; /* two vectors under one mark are what this is about */
    s->lenient = true;
    s->look = lose;
    s->twist = twist;
    s->opt.fault = err;
}

static void start_all(sim *s, const lesson *l)
{
    for (size_t i = 0; i < l->nodes; i++) {
        sim_start(s, i, true);
        s->node[i].slow = now.ahead && !(now.nodes & kf_bit(i)) ? 8 : 1;
        s->node[i].turncoat =
            (now.liar || now.digests || now.victim) && now.nodes & kf_bit(i);
    }
}

/* All have ended, or failed. */
static void run_to_the_end(sim *s, const lesson *l)
{
    bool all = false;

    while (!all) {
        sim_run(s, s->now + MS, NULL);
        if (s->now > 300 * KOFN_SECOND) {
            sim_print(s);
            fail_msg("iterate %llu, nodes %llx: not everybody has ended",
                     (unsigned long long)now.t, (unsigned long long)now.nodes);
        }
        all = true;
        for (size_t i = 0; i < l->nodes; i++)
            all &= s->node[i].over || s->node[i].status || s->node[i].turncoat;
    }
}

/* Where the weights begin, which the vector ends with. */
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
    const double *v = s->node[id].host->v->m.data;
    const double *right = f->ref + iterates(f) * rows;

    for (size_t i = first; i < rows; i++)
        if (!(fabs(v[i] - right[i]) <= 1e-9))
            fail_msg("iterate %llu, nodes %llx: node %zu has %g for %g",
                     (unsigned long long)now.t, (unsigned long long)now.nodes,
                     id, v[i], right[i]);
}

/* All end well.  Gives how often those who err had what most had not; others
 * may, too, for they leave out other pieces, and take what is the same to the
 * bit. */
static size_t try_well(const lesson *l, kofn_errors errors, fault what,
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
        assert_memory_equal(kf_at(&n->host->v->m, at, 0),
                            kf_at(&first->host->v->m, at, 0),
                            (f.v0.rows - at) * 8);
        again += v.again;
        wrong = kf_max(wrong, n->host->changing.wrong);
        outvoted += what.nodes & kf_bit(i) ? v.outvoted : 0;
        kf_comparison_advance(n->host);
    }
    mesh_down(&s, &f);
    return outvoted;
}

static size_t iterates_of(const lesson *l)
{
    fixture f;
    size_t n;

    set_up(&f, l, EPOCHS);
    n = iterates(&f);
    tear_down(&f);
    return n;
}

static void one(const lesson *l, uint64_t t, kofn_fault_place where,
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
    assert_true(told[by][id] > 0);
}

static void decoding(void **state)
{
    const lesson *l = &lessons[2];
    size_t n = iterates_of(l);

    (void)state;
    for (uint64_t t = n; t > 0; t -= t > SPARED ? SPARED : t)
        one(l, t, KOFN_FAULT_IN_DECODING, t);
}

/* Fewer than half of the nodes make the same wrong result before the others
 * make theirs.  Of these some take it, and are no witnesses for it. */
static void alike_and_ahead(void **state)
{
    const lesson *l = &lessons[2];
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

/* Not every iterate in each place: a step, and the end. */
static void everywhere(void **state)
{
    (void)state;
    for (size_t i = SPARED > 1 ? 2 : 0; i <= 2; i += 2)
        for (unsigned where = 1; where <= KOFN_FAULT_IN_MEMORY; where *= 2) {
            const lesson *l = &lessons[i];
            size_t n = iterates_of(l), turn = 2 * l->layers - 1, tries = 0;

            for (uint64_t t = turn + 1; t <= n; t++)
                if (t <= 2 * turn || t + l->layers > n) {
                    one(l, t, where, t + where);
                    tries += erred > 0;
                }
            assert_true(tries > 0);
        }
}

/* As many as are not half of all. */
static void several(void **state)
{
    const lesson *l = &lessons[2];
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

/* Who is outvoted knows that the blocks are wrong that it has changed by its
 * vector, or made anew: nobody else has to find that. */
static void what_is_outvoted(void **state)
{
    (void)state;
    for (size_t i = 0; i <= 2; i += 2)
        for (size_t id = 0; id < lessons[i].nodes; id += SPARED) {
            uint64_t turn = 2 * lessons[i].layers - 1;

            for (uint64_t t = turn; t <= turn + 1; t++) {
                fault what = {.nodes = kf_bit(id),
                              .t = t,
                              .where = KOFN_FAULT_IN_VECTOR,
                              .loses = t > turn};
                assert_true(try_well(&lessons[i], KOFN_ERRORS_ADVERSARIAL, what,
                                     id) > 0);
                assert_int_equal(erred, 1);
                assert_int_equal(wrong, 0);
            }
        }
}

/* Numbers of the vector change when its digest has been told, also of the last
 * iterate: no node hands that out, or multiplies it, and each takes the vector
 * of others. */
static void what_flips(void **state)
{
    const lesson *l = &lessons[2];
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

/* One is cut off as its result changes: it has none to hand out. */
static void what_flips_alone(void **state)
{
    const lesson *l = &lessons[2];
    fixture f;
    sim s;

    (void)state;
    now =
        (fault){.nodes = 1, .t = iterates_of(l), .flips = true, .parted = true};
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

/* One sends wrong pieces to another, which leaves them out and decodes of
 * others.  So it has the same but for rounding: it takes nobody's vector for
 * that, and keeps its blocks. */
static void what_is_rounded(void **state)
{
    const lesson *l = &lessons[2];

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
        assert_int_equal(v.outvoted + v.healed, 0);
        run_to_the_end(&s, l);
        for (size_t i = 0; i < l->nodes; i++)
            if (i != id)
                compare_weights(&f, &s, i);
        mesh_down(&s, &f);
    }
}

/* A number that no vote looks at any more makes the blocks of a node wrong, and
 * again those that it makes in their place.  Then it takes the vector of
 * others, and makes right ones. */
static void what_blocks_are_made_by(void **state)
{
    const lesson *l = &lessons[0];

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

/* More nodes err at once than can be told, each in a product: the iterate is
 * made again, and that was all. */
static void accidents(void **state)
{
    const lesson *l = &lessons[2];
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

/* Of no result more than half of the nodes are sure, or so many have the same
 * wrong one that the others cannot be. */
static void beyond(void **state)
{
    const lesson *l = &lessons[2];
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

/* One is cut off as it decodes the last iterate, of pieces that are here: right
 * or wrong, it believes itself only where it has heard what others made of it.
 */
static void alone(void **state)
{
    const lesson *l = &lessons[2];
    size_t n = iterates_of(l), unsure = 0;

    (void)state;
    for (size_t id = 0; id < l->nodes; id++) {
        fixture f;
        sim s;

        now = (fault){.nodes = kf_bit(id),
                      .t = n,
                      .where = KOFN_FAULT_IN_DECODING,
                      .parted = true,
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

/* One says from the beginning that it has the result, and hands one out. */
static void claims(void **state)
{
    const lesson *l = &lessons[2];
    size_t n = iterates_of(l);

    (void)state;
    for (size_t id = 0; id < l->nodes; id++)
        try_well(l, KOFN_ERRORS_ADVERSARIAL,
                 (fault){.nodes = kf_bit(id), .t = n, .liar = true}, id);
}

/* Some tell digests of no vector, to each another: they are named, and that is
 * all. */
static void false_digests(void **state)
{
    const lesson *l = &lessons[2];

    (void)state;
    for (size_t id = 0; id < l->nodes; id += 2) {
        fault what = {.nodes = kf_bit(id) | kf_bit(id + 1), .digests = true};

        try_well(l, KOFN_ERRORS_ADVERSARIAL, what, id);
        for (size_t i = 0; i < l->nodes; i++)
            if (!(what.nodes & kf_bit(i)))
                assert_true(told[i][id] > 0 && told[i][id + 1] > 0);
    }
}

/* Others who must have the same before it is taken, of nine of which five
 * decode the forward product: one more than lie together, half of four, or one
 * by accident. */
static void believed(void **state)
{
    static const struct {
        kofn_errors errors;
        size_t told, confirm;
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
        begin(&s, &f, &lessons[0], expected[i].errors, i);
        s.opt.confirm = expected[i].told;
        sim_start(&s, 0, true);
        assert_int_equal(s.node[0].host->confirm, expected[i].confirm);
        mesh_down(&s, &f);
    }
}

/* All that are left have made so many iterates. */
static bool all_are_at(const sim *s, const lesson *l, uint64_t t)
{
    bool all = true;

    for (size_t i = 0; i < l->nodes; i++)
        all &= !s->node[i].up || s->node[i].host->at.step >= t;
    return all;
}

/* From the death of node `id`, `after` it all began, until all others have made
 * two more iterates. */
static kofn_time time_lost(size_t id, kofn_time after)
{
    const lesson *l = &lessons[0];
    uint64_t top = 0;
    kofn_time died;
    fixture f;
    sim s;

    now = (fault){.where = 0};
    begin(&s, &f, l, KOFN_ERRORS_PROBABILISTIC, 7);
    start_all(&s, l);
    run_until(&s, 1);
    for (size_t i = 0; i < l->nodes; i++)
        s.node[i].slow = 1 + (double)(i % 3) / 2;
    sim_run(&s, s.now + after, NULL);
    for (size_t i = 0; i < l->nodes; i++)
        top = kf_max(top, s.node[i].host->at.step);
    died = s.now;
    sim_stop(&s, id);
    while (!all_are_at(&s, l, kf_min(top + 2, iterates(&f))))
        sim_run(&s, s.now + MS / 4, NULL);
    died = s.now - died;
    mesh_down(&s, &f);
    return died;
}

/* A member that dies has nobody wait as long as for a leader that decides
 * nothing, twice the patience, whenever that is: what is decided already is not
 * made void. */
static void deaths(void **state)
{
    const kofn_time beat = 10 * MS, patience = 5 * beat;
    kofn_time worst = 0;

    (void)state;
    for (size_t id = 0; id < lessons[0].nodes; id++)
        for (kofn_time after = 0; after < 20 * MS; after += 2 * MS * SPARED) {
            kofn_time lost = time_lost(id, after);

            worst = lost > worst ? lost : worst;
        }
    assert_true(worst < 2 * patience);
}

TEST_FILE(train_votes_test)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decoding),
        cmocka_unit_test(everywhere),
        cmocka_unit_test(several),
        cmocka_unit_test(alike_and_ahead),
        cmocka_unit_test(what_blocks_are_made_by),
        cmocka_unit_test(what_is_outvoted),
        cmocka_unit_test(what_flips),
        cmocka_unit_test(what_is_rounded),
        cmocka_unit_test(what_flips_alone),
        cmocka_unit_test(accidents),
        cmocka_unit_test(beyond),
        cmocka_unit_test(alone),
        cmocka_unit_test(claims),
        cmocka_unit_test(false_digests),
        cmocka_unit_test(believed),
        cmocka_unit_test(deaths),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
