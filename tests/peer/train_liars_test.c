/* train_liars_test.c -- trainings without a master with nodes whose pieces are
 * wrong: always, in one stage or one iterate, of one node or two, to all or to
 * some, by deciders and by lenders of blocks; and memory that changes by
 * itself.  Up to the limit every node's vectors are the plain training's, and
 * its blocks the coded weights (train_mesh_rig.h); beyond it all end with
 * KOFN_CORRUPT. */
#include "train_mesh_rig.h"

enum { ALWAYS = -1 };

typedef struct fault {
    uint64_t liars; /* set of nodes ...                             */
    uint64_t first; /* ... that lie from this iterate on ...        */
    uint64_t last;  /* ... to this one, or for good: 0              */
    int stage;      /* ... of this stage, or ALWAYS                 */
    bool turn;      /* of iterate t only the (t mod nodes)-th node  */
    bool all;       /* entries, not one                             */
    bool some;      /* only to some                                 */
    bool deciders;  /* who leads lists other seats than it compared */
    bool epochs;    /* ... only theirs, and says that they are all members */
    bool lenders;   /* blocks that they lend are wrong              */
    bool velocity;  /* ... or only their velocities                 */
    size_t told;
} fault;

static fault now;

static bool lies(const sim *s, size_t id, uint64_t t)
{
    const fixture *f = s->own;
    kf_course course = {f->program.stages, f->program.turns, f->program.after};
    uint64_t who = now.turn ? kf_bit(t % s->nodes) : now.liars;

    return t >= now.first && (!now.last || t <= now.last) && who & kf_bit(id) &&
           (now.stage == ALWAYS ||
            kf_course_stage(&course, t) == (size_t)now.stage);
}

static void spoil_numbers(sim *s, double *x, size_t n)
{
    size_t one = kf_rng_below(&s->rng, n);

    for (size_t i = 0; i < n; i++)
        if (now.epochs)
            x[i] += 0.5; /* as all who lie */
        else if (now.all || i == one)
            x[i] += (0.5 + sim_draw(s)) * (sim_draw(s) < 0.5 ? -1 : 1) *
                    pow(10, -4 * sim_draw(s));
    now.told++;
}

static void spoil(void *ud, kofn_fault_place where, uint64_t t,
                  kofn_matrix *piece)
{
    sim_node *n = ud;

    if (where == KOFN_FAULT_IN_PRODUCT && lies(n->sim, n->id, t))
        spoil_numbers(n->sim, piece->data, piece->rows * piece->cols);
}

/* ---- on their way -------------------------------------------------------- */

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

/* Members are those who lie, and the one who is told so. */
static size_t leave_out(const sim *s, const kf_note *note, size_t to,
                        kf_member *m)
{
    size_t count = 0;

    for (size_t r = 0; r < note->members; r++) {
        size_t i = node_of(s, note->member[r].incarnation);

        if (i == to || now.liars & kf_bit(i))
            m[count++] = note->member[r];
    }
    return count;
}

/* Of each group the seats of those who lie. */
static size_t list_liars(const sim *s, const kf_note *note, uint32_t *list)
{
    size_t n = 0;

    for (size_t at = 0; at < note->listed; at += 1 + note->list[at]) {
        size_t first = n++;

        for (uint32_t seat = 0; seat < SIM_NODES; seat++)
            for (size_t i = 0; i < s->nodes; i++)
                if (now.liars & kf_bit(i) && s->node[i].host->seat == seat)
                    list[n++] = seat;
        list[first] = (uint32_t)(n - first - 1);
    }
    return n;
}

static void leave_all_out(sim *s, sim_packet *p, kf_note *note)
{
    uint32_t list[KF_MAX_GROUPS * (SIM_NODES + 1)];
    kf_member m[SIM_NODES];
    void *room;

    assert_ok(kf_note_unpack(note, p->body, p->p.body_bytes, &room));
    if (note->type == KF_NOTE_EPOCH) {
        note->members = leave_out(s, note, p->to, m);
        note->member = m;
    } else {
        note->listed = list_liars(s, note, list);
        note->list = list;
    }
    sim_repack(p, note);
    kf_free(room);
}

/* A note of its own epoch. */
static bool leads(const sim *s, const sim_packet *p, const kf_note *note)
{
    return (note->type == KF_NOTE_EPOCH || note->type == KF_NOTE_DECIDE) &&
           now.liars & kf_bit(p->from) &&
           node_of(s, note->epoch.proposer) == p->from;
}

static void twist(sim *s, sim_packet *p)
{
    uint64_t job = s->node[p->from].host->job;
    double *x = (double *)(void *)p->body;
    size_t n = p->p.body_bytes / sizeof *x;
    kf_note note;

    assert_ok(kf_note_read(&note, p->p.head, p->p.head_bytes, job));
    if (now.deciders && note.type == KF_NOTE_DECIDE) {
        list_others(s, p, &note);
        now.told++;
    } else if (now.epochs && leads(s, p, &note)) {
        leave_all_out(s, p, &note);
        now.told++;
    } else if (now.lenders && note.type == KF_NOTE_BLOCK) {
        size_t skip = now.velocity ? n / 2 : 0;

        spoil_numbers(s, x + skip, n - skip);
    } else if (now.some && note.type == KF_NOTE_PIECE && p->to % 2 &&
               lies(s, p->from, note.at.step)) {
        spoil_numbers(s, x, n);
    } else {
        return;
    }
    kf_note_write(p->p.head, &note, job, p->body, p->p.body_bytes);
}

/* ---- a run --------------------------------------------------------------- */

static void blamed(sim *s, size_t by, size_t who)
{
    if (now.turn || !(now.liars & kf_bit(who)))
        fail_msg("seed %llu: node %zu takes node %zu for a liar",
                 (unsigned long long)s->seed, by, who);
}

static void begin(sim *s, fixture *f, const lesson *l, unsigned epochs,
                  kofn_errors errors, uint64_t seed)
{
    mesh_up(s, f, l, epochs, seed);
    s->opt.errors = errors;
    s->opt.confirm = 1;
    s->blamed = blamed;
    if (now.some || now.deciders || now.lenders || now.epochs) {
        s->evil = &now; /* nodes may have vectors that differ by rounding */
        s->twist = twist;
    }
    if (!s->evil || now.epochs)
        s->opt.fault = spoil;
    for (size_t i = 0; i < l->nodes; i++) {
        sim_start(s, i, true);
        s->node[i].turncoat = (now.liars & kf_bit(i)) != 0;
    }
}

/* All who are honest have the plain training's result, and what they decoded
 * from the same bytes is the same. */
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
        if (!s->evil)
            assert_memory_equal(n->host->v->m.data, first->host->v->m.data,
                                f->v0.rows * 8);
        left_out += v.left_out;
    }
    return left_out;
}

static size_t try_to_the_end(const lesson *l, kofn_errors errors, fault what,
                             uint64_t seed)
{
    size_t left_out;
    fixture f;
    sim s;

    now = what;
    begin(&s, &f, l, 3, errors, seed);
    sim_finish(&s, 120 * KOFN_SECOND, NULL, l->scheme, seed);
    left_out = end_well(&s, &f);
    assert_true(now.told > 0 || now.deciders || now.stage != ALWAYS);
    mesh_down(&s, &f);
    return left_out;
}

/* Every node ends so, and none has gone on from the iterate that failed.  Lies
 * that are drawn anew as it is made again may be such that they can be told, by
 * being larger than any piece: then it is right, and a later one fails. */
static void try_to_fail(const lesson *l, kofn_errors errors, fault what,
                        uint64_t seed)
{
    bool all = false;
    fixture f;
    sim s;

    now = what;
    begin(&s, &f, l, 3, errors, seed);
    while (!all) {
        if (s.now >= 120 * KOFN_SECOND)
            fail_msg("%s, seed %llu: not everybody has failed", l->scheme,
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

static const kofn_errors telling[] = {KOFN_ERRORS_ADVERSARIAL,
                                      KOFN_ERRORS_PROBABILISTIC};

/* 0 and 2: those with two nodes to spare, or five. */
static void one_lies(void **state)
{
    (void)state;
    for (size_t i = 0; i <= 2; i += 2)
        for (size_t id = 0; id < lessons[i].nodes; id++)
            assert_true(try_to_the_end(&lessons[i], telling[(id + i / 2) % 2],
                                       (fault){.liars = kf_bit(id),
                                               .stage = ALWAYS,
                                               .all = id / 2 % 2},
                                       id) > 0);
}

/* Nodes that stop for up to so long now and then, as threads of a busy machine
 * do. */
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

/* One of them lies.  Those who do not have the result and have gone within so
 * long. */
static void go_apart(const lesson *l, uint64_t seed, kofn_time longest,
                     unsigned seconds)
{
    size_t liar = seed % l->nodes;
    fixture f;
    sim s;

    now = (fault){.liars = kf_bit(liar),
                  .stage = ALWAYS,
                  .first = 2 + seed % 9,
                  .all = true};
    mesh_up(&s, &f, l, 3, seed);
    s.opt.errors = KOFN_ERRORS_ADVERSARIAL;
    s.opt.confirm = 0;
    s.opt.fault = spoil;
    s.opt.beat = (l->nodes > 7 ? 50 : 20) * MS;
    s.blamed = blamed;
    s.evil = &now; /* nodes may have vectors that differ by rounding */
    s.latency = s.compute = MS / 50;
    s.exits = true;
    for (size_t i = 0; i < l->nodes; i++)
        sim_start(&s, i, true);
    s.node[liar].turncoat = true;
    while (!have_all_gone(&s)) {
        if (s.now >= seconds * KOFN_SECOND)
            fail_msg("seed %llu: not all have gone", (unsigned long long)seed);
        stop_some(&s, longest);
        sim_run(&s, s.now + MS / 2, NULL);
    }
    mesh_down(&s, &f);
}

static lesson uncut(size_t nodes)
{
    return (lesson){.scheme = "gpd:m=1,n=1,p=1",
                    .nodes = nodes,
                    .layers = 2,
                    .widths = {SIDE * SIDE, 4, 3},
                    .activation = KOFN_SIGMOID};
}

/* Such nodes are apart by some iterates.  What those have who are ahead the
 * others must be able to take from so few, whether they know the liar or not.
 * The first ten seeds, and of many more those in which that took long or
 * failed. */
static void few_are_ahead(void **state)
{
    static const uint64_t eleven[] = {82, 311, 621, 972, 1015, 1451, 1797};
    static const uint64_t seven[] = {406, 614, 783};
    static const uint64_t five[] = {65, 172, 792};
    const lesson of_eleven = uncut(11), of_seven = uncut(7);

    (void)state;
    for (uint64_t seed = 0; seed < 10; seed++)
        go_apart(&of_eleven, seed, 6 * MS, 5);
    for (size_t i = 0; i < sizeof eleven / sizeof *eleven; i++)
        go_apart(&of_eleven, eleven[i], 6 * MS, 5);
    go_apart(&of_eleven, 44, 30 * MS, 20);
    for (size_t i = 0; i < sizeof seven / sizeof *seven; i++)
        go_apart(&of_seven, seven[i], 4 * MS, 10);
    for (size_t i = 0; i < sizeof five / sizeof *five; i++)
        go_apart(&lessons[1], five[i], 50 * MS, 15);
}

/* Who leads leaves all out but those who lie, and one who is to believe
 * them. */
static void small_epochs(void **state)
{
    const lesson of_seven = uncut(7);

    (void)state;
    for (uint64_t seed = 0; seed < 21; seed++) {
        size_t liar = seed % 7;
        fault what = {.liars = kf_bit(liar) | kf_bit((liar + seed / 7) % 7),
                      .stage = ALWAYS,
                      .first = seed % 4,
                      .epochs = true};

        try_to_the_end(&of_seven, KOFN_ERRORS_ADVERSARIAL, what, seed);
    }
}

/* Some nodes' pieces of a stage of few groups nobody waits for. */
static void in_each_stage(void **state)
{
    (void)state;
    for (size_t i = 0; i <= 2; i += 2)
        for (size_t k = 0; k < 3 * lessons[i].layers - 1; k++) {
            size_t left_out = 0;

            for (size_t id = 0; id < lessons[i].nodes && !left_out; id++) {
                fault what = {.liars = kf_bit(id), .stage = (int)k};

                left_out = try_to_the_end(&lessons[i], telling[k % 2], what, k);
            }
            assert_true(left_out > 0);
        }
}

static void two_lie(void **state)
{
    const lesson *l = &lessons[2];

    (void)state;
    for (size_t id = 0; id < l->nodes; id++)
        assert_true(try_to_the_end(
                        l, KOFN_ERRORS_ADVERSARIAL,
                        (fault){.liars = kf_bit(id) |
                                         kf_bit((id + 1 + id % 3) % l->nodes),
                                .stage = ALWAYS,
                                .all = id % 2},
                        id) > 0);
}

/* Another in every iterate: an accident, for which nobody is left. */
static void once(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 2; seed++)
        assert_true(
            try_to_the_end(&lessons[2 * seed], telling[seed],
                           (fault){.turn = true, .stage = ALWAYS, .last = 15},
                           seed) > 0);
}

static void two_tongues(void **state)
{
    const lesson *l = &lessons[2];

    (void)state;
    for (size_t id = 0; id < l->nodes; id++)
        try_to_the_end(
            l, telling[id % 2],
            (fault){.liars = kf_bit(id), .stage = ALWAYS, .some = true}, id);
}

static void lying_deciders(void **state)
{
    const lesson *l = &lessons[2];

    (void)state;
    for (size_t id = 0; id < l->nodes; id++)
        try_to_the_end(
            l, telling[id % 2],
            (fault){.liars = kf_bit(id), .stage = ALWAYS, .deciders = true},
            id);
}

/* ---- beyond it ----------------------------------------------------------- */

static void detected(void **state)
{
    (void)state;
    for (size_t id = 0; id < 3; id++)
        try_to_fail(&lessons[2], KOFN_ERRORS_DETECT,
                    (fault){.liars = UINT64_C(7) << id,
                            .first = 1 + id,
                            .stage = ALWAYS,
                            .all = true},
                    id);
}

/* Of eight of which three decode five lie. */
static void too_many(void **state)
{
    (void)state;
    for (size_t id = 0; id < 4; id++)
        try_to_fail(&lessons[2], telling[id % 2],
                    (fault){.liars = UINT64_C(31) << id % 4,
                            .first = 1 + id,
                            .stage = ALWAYS,
                            .all = true},
                    id);
}

/* ---- memory -------------------------------------------------------------- */

static size_t flipped;

static void look_at_others(sim *s, size_t id)
{
    if (id != flipped || s->node[id].host->changing.healed > 0)
        look_at_blocks(s, id);
}

/* A bit that changes a number, of a block or what moves it. */
static void flip(sim *s, size_t id, size_t operand, bool velocity)
{
    kf_block *b = s->node[id].host->operand[operand].block;
    double *x = velocity ? b->velocity : b->lane[0].data;
    size_t i = kf_rng_below(&s->rng, b->rows * b->cols);
    uint64_t bits;

    assert_non_null(x);
    memcpy(&bits, &x[i], sizeof bits);
    bits ^= UINT64_C(1) << 62; /* by a factor of 2^512, or nearly all */
    memcpy(&x[i], &bits, sizeof bits);
}

/* The node finds it itself, and makes its block of those of others, while they
 * go on; nobody takes it for a liar. */
static void memory(void **state)
{
    (void)state;
    for (size_t i = 0; i <= 2; i += 2)
        for (size_t k = 0; k < 2 * lessons[i].layers; k++) {
            const lesson *l = &lessons[i];
            fixture f;
            sim s;

            now = (fault){.stage = ALWAYS};
            flipped = k % l->nodes;
            begin(&s, &f, l, 12, telling[k % 2], k);
            s.look = look_at_others;
            run_until(&s, 6);
            flip(&s, flipped, k / 2, k % 2);
            sim_finish(&s, 120 * KOFN_SECOND, NULL, l->scheme, k);
            end_well(&s, &f);
            for (size_t n = 0; n < l->nodes; n++) {
                const kf_changing *c = &s.node[n].host->changing;

                assert_int_equal(c->wrong, n == flipped);
                assert_int_equal(c->healed, n == flipped);
            }
            mesh_down(&s, &f);
        }
}

/* Who comes late is lent wrong blocks by one. */
static void lenders(void **state)
{
    const lesson *l = &lessons[2];
    size_t who = l->nodes - 1;

    (void)state;
    for (size_t id = 0; id < who; id++) {
        fixture f;
        sim s;

        now = (fault){.liars = kf_bit(id),
                      .stage = ALWAYS,
                      .lenders = true,
                      .all = id % 2,
                      .velocity = id / 2 % 2};
        begin(&s, &f, l, 12, telling[id % 2], id);
        run_until(&s, 6);
        sim_stop(&s, who);
        run_until(&s, 9);
        sim_start(&s, who, false);
        sim_finish(&s, 120 * KOFN_SECOND, NULL, l->scheme, id);
        end_well(&s, &f);
        assert_true(now.told > 0);
        assert_int_equal(s.node[who].host->changing.healed, 1);
        mesh_down(&s, &f);
    }
}

TEST_FILE(train_liars_test)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_lies),     cmocka_unit_test(few_are_ahead),
        cmocka_unit_test(small_epochs), cmocka_unit_test(in_each_stage),
        cmocka_unit_test(two_lie),      cmocka_unit_test(once),
        cmocka_unit_test(two_tongues),  cmocka_unit_test(lying_deciders),
        cmocka_unit_test(detected),     cmocka_unit_test(too_many),
        cmocka_unit_test(memory),       cmocka_unit_test(lenders),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
