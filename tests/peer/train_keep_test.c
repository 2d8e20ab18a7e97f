/* train_keep_test.c -- nodes that train keep what they have on disk, all are
 * lost, and others go on with it: every vector that any node ever has is the
 * plain training's, and every block the coded weights (train_mesh_rig.h). */
#include "train_keep_rig.h"

/* The last that this seat has kept is no more what it was. */
static char newest[400];

static void be_newest(const char *path)
{
    if (strcmp(path, newest) > 0)
        snprintf(newest, sizeof newest, "%s", path);
}

static void behead(const char *path)
{
    assert_int_equal(truncate(path, 8), 0);
}

static void spoil_newest(size_t seat, void (*spoil)(const char *path))
{
    char begin[40];

    newest[0] = 0;
    snprintf(begin, sizeof begin, "seat-%zu-", seat);
    assert_int_equal(each_of(begin, ".kept", be_newest), 2);
    spoil(newest);
}

/* All at once, at any time, twice; nobody needs others' blocks. */
static void all_lost(void **state)
{
    size_t resumed = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(lessons); i++)
        for (uint64_t seed = 0; seed < often(4); seed++) {
            const lesson *l = &lessons[i];
            uint64_t first = 0, second;
            fixture f;
            sim s;

            keeps_up(&s, &f, l, seed);
            start_all(&s);
            run_until(&s, s.opt.every + 1);
            for (size_t again = 0; again < 2; again++) {
                sim_run(&s,
                        s.now + (kofn_time)(sim_draw(&s) * 100 * (double)MS),
                        NULL);
                stop_all(&s);
                s.opt.resume = true;
                start_all(&s);
                resumed += begun(&s, &second) == s.nodes;
                assert_true(second >= first);
                first = second;
            }
            sim_finish(&s, s.now + 20 * KOFN_SECOND, NULL, l->scheme, seed);
            assert_int_equal(count_healed(&s), 0);
            mesh_down(&s, &f);
        }
    assert_true((size_t)resumed > COUNT(lessons));
}

/* All at once, when some may have done a step that is kept, and some not:
 * nobody begins where others have nothing yet, or had only what cannot be
 * brought there. */
static void between(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(lessons); i++)
        for (uint64_t wait = 0; wait < 8; wait++) {
            const lesson *l = &lessons[i];
            fixture f;
            sim s;

            keeps_up(&s, &f, l, wait);
            s.opt.every = 5;
            start_all(&s);
            run_until(&s, 10);
            sim_run(&s, s.now + (kofn_time)wait * MS / 2, NULL);
            stop_all(&s);
            s.opt.resume = true;
            start_all(&s);
            sim_finish(&s, s.now + 20 * KOFN_SECOND, NULL, l->scheme, wait);
            assert_int_equal(count_healed(&s), 0);
            mesh_down(&s, &f);
        }
}

static void be_draft(const char *path)
{
    char draft[400];

    snprintf(draft, sizeof draft, "%.*s.draft",
             (int)(strlen(path) - strlen(".kept")), path);
    assert_int_equal(rename(path, draft), 0);
}

/* All are lost when one of them has heard that all have the last, and so few
 * come again that it cannot be left behind: nobody needs to believe it, for
 * they have that, too. */
static void told_to_some(void **state)
{
    const lesson *l = &lessons[0];

    (void)state;
    for (uint64_t seed = 0; seed < 4; seed++) {
        fixture f;
        sim s;

        keeps_up(&s, &f, l, seed);
        s.opt.errors = KOFN_ERRORS_PROBABILISTIC;
        s.opt.confirm = 0; /* as many as errors take: two */
        s.opt.every = 2;
        s.opt.scrub = seed;
        start_all(&s);
        run_until(&s, 7);
        sim_run(&s, s.now + 20 * MS, NULL);
        stop_all(&s);
        for (size_t n = 1; n < s.nodes; n++)
            spoil_newest(n, be_draft);
        s.opt.resume = true;
        for (size_t n = 0; n < f.needs + 1; n++)
            sim_start(&s, n, true);
        assert_true(s.node[1].host->at.step < s.node[0].host->at.step);
        sim_finish(&s, s.now + 5 * KOFN_SECOND, NULL, l->scheme, seed);
        for (size_t n = 0; n < f.needs + 1; n++) {
            assert_int_equal(s.node[n].host->changing.healed, 0);
            assert_int_equal(s.node[n].host->back.times, 0);
        }
        mesh_down(&s, &f);
    }
}

/* One after the other, until nobody is there; all come again, in any order, and
 * some later than others.  Who was away for long makes its blocks of the
 * others'. */
static void one_by_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(lessons); i++)
        for (uint64_t seed = 0; seed < often(10); seed++) {
            const lesson *l = &lessons[i];
            fixture f;
            sim s;

            keeps_up(&s, &f, l, seed);
            start_all(&s);
            run_until(&s, 2);
            s.opt.resume = true;
            for (size_t n = 0; n < s.nodes; n++) {
                sim_run(&s, s.now + (kofn_time)(sim_draw(&s) * 40 * (double)MS),
                        NULL);
                sim_stop(&s, (n + seed) % s.nodes);
            }
            for (size_t n = 0; n < s.nodes; n++) {
                sim_start(&s, (n * (seed % 2 ? 1 : s.nodes - 1)) % s.nodes,
                          true);
                if (sim_draw(&s) < 0.3)
                    sim_run(&s,
                            s.now + (kofn_time)(sim_draw(&s) * 60 * (double)MS),
                            NULL);
            }
            sim_finish(&s, s.now + 20 * KOFN_SECOND, NULL, l->scheme, seed);
            mesh_down(&s, &f);
        }
}

/* Every node has at most the last two that it kept, and drafts of what came
 * since. */
static void few_files(void **state)
{
    const lesson *l = &lessons[0];
    fixture f;
    sim s;

    (void)state;
    keeps_up(&s, &f, l, 0);
    start_all(&s);
    for (uint64_t turn = 3; turn < f.steps; turn++) {
        run_until(&s, turn);
        assert_true(each_file("", NULL) <= 4 * s.nodes);
    }
    sim_finish(&s, s.now + 20 * KOFN_SECOND, NULL, l->scheme, 0);
    sim_run(&s, s.now + 100 * MS, NULL);
    /* the last is of a step that is a multiple of `every`, and all have told of
     * it */
    assert_int_equal(each_file(".kept", NULL), 2 * s.nodes);
    assert_int_equal(each_file(".draft", NULL), 0);
    mesh_down(&s, &f);
}

/* Another number of members does not matter: who is lost for good is not waited
 * for. */
static void some_stay_away(void **state)
{
    const lesson *l = &lessons[0];

    (void)state;
    for (uint64_t seed = 0; seed < 3; seed++) {
        fixture f;
        sim s;

        keeps_up(&s, &f, l, seed);
        start_all(&s);
        run_until(&s, 7);
        stop_all(&s);
        s.opt.resume = true;
        for (size_t n = 0; n < f.needs; n++)
            sim_start(&s, n, true);
        sim_finish(&s, s.now + 20 * KOFN_SECOND, NULL, l->scheme, seed);
        mesh_down(&s, &f);
    }
}

static kofn_status opens(const sim *s, const kofn_program *program)
{
    kofn_peer_options o = s->opt;
    kofn_transport t = {.size = sizeof t, .name = "none"};
    kofn_program p = *program;
    kf_host *h;
    kofn_status st;

    o.seat = 1;
    o.resume = true;
    p.ud = (void *)(uintptr_t)&s->node[1];
    st = kf_host_new(&h, &t, &p, &o, &s->v0,
                     (kf_timer){sim_clock, (void *)(uintptr_t)s});
    kf_host_free(h);
    return st;
}

/* Files that are not whole, or of something else, are told apart and named; and
 * of what is damaged later, when blocks are taken, others have enough. */
static void wrong_files(void **state)
{
    const lesson *l = &lessons[0];
    static void (*const spoil[])(const char *) = {damage, cut_short};
    kofn_program other;
    fixture f;
    sim s;

    (void)state;
    for (size_t i = 0; i < COUNT(spoil); i++) {
        keeps_up(&s, &f, l, 0);
        start_all(&s);
        run_until(&s, 6);
        stop_all(&s);
        assert_ok(opens(&s, &s.program));
        other = s.program;
        other.digest++;
        assert_status(KOFN_INVAL, opens(&s, &other));
        assert_non_null(strstr(kofn_errmsg(), "is of another training"));
        assert_int_equal(each_of("seat-1-", ".kept", spoil[i]), 2);
        assert_status(KOFN_FORMAT, opens(&s, &s.program));
        assert_non_null(strstr(kofn_errmsg(), "seat-1-step-"));
        assert_int_equal(each_of("seat-1-", ".kept", erase), 1);
        s.opt.resume = true;
        start_all(&s);
        each_of("seat-2-", ".kept", spoil[i]); /* its vector has been read */
        sim_finish(&s, s.now + 20 * KOFN_SECOND, NULL, l->scheme, i);
        mesh_down(&s, &f);
    }
    keeps_up(&s, &f, l, 0);
    s.opt.keep = "/nowhere";
    assert_status(KOFN_IO, opens(&s, &s.program));
    assert_non_null(strstr(kofn_errmsg(), "/nowhere"));
    s.opt.keep = folder;
    s.opt.every = 0;
    assert_status(KOFN_INVAL, opens(&s, &s.program));
    mesh_down(&s, &f);
}

/* What one node, or all, kept last is damaged: they begin with what they kept
 * before, and one alone follows the others. */
static void the_one_before(void **state)
{
    static void (*const spoil[])(const char *) = {damage, cut_short, behead};

    (void)state;
    for (size_t i = 0; i < COUNT(lessons); i++)
        for (uint64_t seed = 0; seed < often(6); seed++) {
            const lesson *l = &lessons[i];
            uint64_t least;
            fixture f;
            sim s;
            size_t n;

            keeps_up(&s, &f, l, seed);
            s.opt.every = 2;
            start_all(&s);
            run_until(&s, 7);
            sim_run(&s, s.now + 20 * MS, NULL);
            stop_all(&s);
            n = seed % 2 ? 1 : s.nodes;
            for (size_t k = 0; k < n; k++)
                spoil_newest(k, spoil[seed % COUNT(spoil)]);
            s.opt.resume = true;
            start_all(&s);
            assert_int_equal(begun(&s, &least), s.nodes);
            assert_true(least >= 2);
            assert_int_equal(each_file(".damaged", NULL), n);
            sim_finish(&s, s.now + 20 * KOFN_SECOND, NULL, l->scheme, seed);
            mesh_down(&s, &f);
        }
}

static void lose_all(size_t seat)
{
    char begin[40];

    snprintf(begin, sizeof begin, "seat-%zu-", seat);
    assert_true(each_of(begin, "", erase) > 0);
}

/* Some nodes are lost early, and others later with all their files: what the
 * rest kept last is what everybody believes, and too few have blocks of it.
 * They go back, also where nobody would wait for blocks for so long. */
static void few_have_the_last(void **state)
{
    const lesson *l = &lessons[0];

    (void)state;
    for (uint64_t seed = 0; seed < 3; seed++) {
        fixture f;
        sim s;

        keeps_up(&s, &f, l, seed);
        s.opt.errors = KOFN_ERRORS_PROBABILISTIC;
        s.opt.every = 2;
        s.opt.give_up = 100 * s.opt.beat; /* as the command has them */
        start_all(&s);
        run_until(&s, 3);
        for (size_t n = f.needs + 1; n < s.nodes; n++)
            sim_stop(&s, n);
        run_until(&s, f.steps - 1);
        stop_all(&s);
        for (size_t n = f.reads; n < f.needs + 1; n++)
            lose_all(n);
        s.opt.resume = true;
        start_all(&s);
        sim_finish(&s, s.now + 60 * KOFN_SECOND, NULL, l->scheme, seed);
        assert_true(s.node[0].host->back.times > 0);
        mesh_down(&s, &f);
    }
}

/* A number of the vector changes when its digest has been told, just before it
 * is kept. */
static void flip(void *ud, kofn_fault_place where, uint64_t t,
                 kofn_matrix *numbers)
{
    const sim_node *n = ud;
    kf_host *h = n->host;
    size_t first, rows;

    (void)numbers;
    if (where != KOFN_FAULT_IN_MEMORY || n->id != 0 || h->changing.turn != 2 ||
        h->outvoted)
        return;
    kf_host_wrote(h, t, &first, &rows);
    ((double *)h->v->m.data)[first] += 1;
}

/* Reads the first number that turn 2 wrote of the vector that this seat has on
 * disk. */
static bool read_kept(const sim *s, size_t seat, double *x)
{
    const kf_host *h = s->node[seat].host;
    size_t first, rows;
    char begin[40];
    FILE *f;

    snprintf(begin, sizeof begin, "seat-%zu-step-%012d", seat, 2);
    newest[0] = 0;
    if (each_of(begin, "", be_newest) == 0)
        return false;
    kf_host_wrote(h, kf_course_end(&h->course, 2), &first, &rows);
    f = fopen(newest, "rb");
    assert_non_null(f);
    assert_int_equal(
        fseek(f, (long)(56 + (KOFN_SCALARS + first) * sizeof *x), SEEK_SET), 0);
    assert_int_equal(fread(x, sizeof *x, 1, f), 1);
    assert_int_equal(fclose(f), 0);
    return true;
}

/* What is on disk is what the nodes agreed on. */
static void what_flips_is_not_kept(void **state)
{
    const lesson *l = &lessons[0];
    double ours, theirs;
    kofn_node_view v;
    fixture f;
    sim s;

    (void)state;
    keeps_up(&s, &f, l, 0);
    s.opt.errors = KOFN_ERRORS_ADVERSARIAL;
    s.opt.confirm = 0;
    s.opt.fault = flip;
    s.lenient = true;
    s.evil = &f;
    s.look = NULL;
    start_all(&s);
    while (s.node[1].host->changing.turn < 3)
        sim_run(&s, s.now + MS, NULL);
    assert_true(read_kept(&s, 1, &theirs));
    if (read_kept(&s, 0, &ours))
        assert_true(ours == theirs);
    sim_finish(&s, 60 * KOFN_SECOND, NULL, l->scheme, 0);
    kf_node_look(s.node[0].host->node, &v);
    assert_true(v.outvoted > 0);
    mesh_down(&s, &f);
}

TEST_FILE(train_keep_test)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_flips_is_not_kept),
        cmocka_unit_test(all_lost),
        cmocka_unit_test(one_by_one),
        cmocka_unit_test(between),
        cmocka_unit_test(told_to_some),
        cmocka_unit_test(few_files),
        cmocka_unit_test(some_stay_away),
        cmocka_unit_test(wrong_files),
        cmocka_unit_test(the_one_before),
        cmocka_unit_test(few_have_the_last),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
