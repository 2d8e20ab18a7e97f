/* train_keep_test.c -- nodes that train write checkpoints, all are lost, and
 * others resume. Every vector of any node is the plain training's, and every
 * block the coded weights (train_mesh_rig.h). */
#include "train_keep_rig.h"

/* The newest checkpoint of a seat, and a file of it. */
static char newest[400], part[400];

static void note_newest(const char *path)
{
    if (strcmp(path, newest) > 0)
        snprintf(newest, sizeof newest, "%s", path);
}

static void note_part(const char *path)
{
    snprintf(part, sizeof part, "%s", path);
}

/* Finds the file of a checkpoint. Its name has more than the manifest's. */
static const char *part_of(const char *path, const char *end)
{
    const char *name = strrchr(path, '/') + 1;
    char begin[100];

    snprintf(begin, sizeof begin, "%.*s-", (int)(strrchr(name, '.') - name),
             name);
    part[0] = 0;
    each_of(begin, end, note_part);
    assert_true(part[0]);
    return part;
}

static void damage_vector(const char *path)
{
    damage(part_of(path, ".vector"));
}

static void damage_blocks(const char *path)
{
    damage(part_of(path, ".blocks"));
}

static void lose_blocks(const char *path)
{
    erase(part_of(path, ".blocks"));
}

static void cut_to_head(const char *path)
{
    assert_int_equal(truncate(path, 8), 0);
}

static void spoil_newest(size_t seat, void (*spoil)(const char *path))
{
    char begin[40];

    newest[0] = 0;
    snprintf(begin, sizeof begin, "seat-%zu-", seat);
    assert_int_equal(each_of(begin, ".kept", note_newest), 2);
    spoil(newest);
}

/* All nodes are lost twice, at random times. No node needs blocks of others. */
static void all_lost(void **state)
{
    size_t resumed = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(training_cases); i++)
        for (uint64_t seed = 0; seed < often(4); seed++) {
            const training_case *l = &training_cases[i];
            uint64_t first = 0, second;
            fixture f;
            sim s;

            checkpoints_up(&s, &f, l, seed);
            start_all(&s);
            run_until(&s, s.opt.every + 1);
            for (size_t again = 0; again < 2; again++) {
                sim_run(&s,
                        s.now + (kofn_time)(sim_draw(&s) * 100 * (double)MS),
                        NULL);
                stop_all(&s);
                s.opt.resume = true;
                start_all(&s);
                resumed += count_resumed(&s, &second) == s.nodes;
                assert_true(second >= first);
                first = second;
            }
            sim_finish(&s, s.now + 20 * KOFN_SECOND, NULL, l->scheme, seed);
            assert_int_equal(count_rebuiled(&s), 0);
            mesh_down(&s, &f);
        }
    assert_true((size_t)resumed > COUNT(training_cases));
}

/* Some nodes may have finished the step of the checkpoint and others not. No
 * node starts from an iterate that the others cannot reach with their blocks.
 */
static void lost_between_steps(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(training_cases); i++)
        for (uint64_t wait = 0; wait < 8; wait++) {
            const training_case *l = &training_cases[i];
            fixture f;
            sim s;

            checkpoints_up(&s, &f, l, wait);
            s.opt.every = 5;
            start_all(&s);
            run_until(&s, 10);
            sim_run(&s, s.now + (kofn_time)wait * MS / 2, NULL);
            stop_all(&s);
            s.opt.resume = true;
            start_all(&s);
            sim_finish(&s, s.now + 20 * KOFN_SECOND, NULL, l->scheme, wait);
            assert_int_equal(count_rebuiled(&s), 0);
            mesh_down(&s, &f);
        }
}

static void make_draft(const char *path)
{
    char draft[400];

    snprintf(draft, sizeof draft, "%.*s.draft",
             (int)(strlen(path) - strlen(".kept")), path);
    assert_int_equal(rename(path, draft), 0);
}

/* One node has heard that all have the last checkpoint when all are lost. Few
 * nodes restart, so it cannot be left behind. The others need not confirm it,
 * because they have that checkpoint too. */
static void known_to_one_node(void **state)
{
    const training_case *l = &training_cases[0];

    (void)state;
    for (uint64_t seed = 0; seed < 4; seed++) {
        fixture f;
        sim s;

        checkpoints_up(&s, &f, l, seed);
        s.opt.errors = KOFN_ERRORS_PROBABILISTIC;
        s.opt.confirm = 0; /* the default with errors: two */
        s.opt.every = 2;
        s.opt.scrub = seed;
        start_all(&s);
        run_until(&s, 7);
        sim_run(&s, s.now + 20 * MS, NULL);
        stop_all(&s);
        for (size_t n = 1; n < s.nodes; n++)
            spoil_newest(n, make_draft);
        s.opt.resume = true;
        for (size_t n = 0; n < f.needs + 1; n++)
            sim_start(&s, n, true);
        assert_true(s.node[1].host->it.at.step < s.node[0].host->it.at.step);
        sim_finish(&s, s.now + 5 * KOFN_SECOND, NULL, l->scheme, seed);
        for (size_t n = 0; n < f.needs + 1; n++) {
            assert_int_equal(s.node[n].host->blocks.changing.rebuilt, 0);
            assert_int_equal(s.node[n].host->disk.back.times, 0);
        }
        mesh_down(&s, &f);
    }
}

/* Nodes restart in any order, some later than others. A node that was down for
 * long rebuilds its blocks. */
static void one_by_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(training_cases); i++)
        for (uint64_t seed = 0; seed < often(10); seed++) {
            const training_case *l = &training_cases[i];
            fixture f;
            sim s;

            checkpoints_up(&s, &f, l, seed);
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

/* Drafts of later steps may be there as well. */
static void few_files(void **state)
{
    const training_case *l = &training_cases[0];
    size_t sets;
    fixture f;
    sim s;

    (void)state;
    checkpoints_up(&s, &f, l, 0);
    start_all(&s);
    for (uint64_t turn = 3; turn < f.steps; turn++) {
        run_until(&s, turn);
        sets = each_file(".kept", NULL) + each_file(".draft", NULL);
        assert_true(sets <= 4 * s.nodes);
        assert_int_equal(each_file(".vector", NULL), sets);
        assert_int_equal(each_file("", NULL), 3 * sets);
    }
    sim_finish(&s, s.now + 20 * KOFN_SECOND, NULL, l->scheme, 0);
    sim_run(&s, s.now + 100 * MS, NULL);
    /* the last step is a multiple of `every`, and all nodes have reported it */
    assert_int_equal(each_file(".kept", NULL), 2 * s.nodes);
    assert_int_equal(each_file("", NULL), 3 * 2 * s.nodes);
    mesh_down(&s, &f);
}

/* The number of members may differ. Lost nodes are not waited for. */
static void fewer_nodes_resume(void **state)
{
    const training_case *l = &training_cases[0];

    (void)state;
    for (uint64_t seed = 0; seed < 3; seed++) {
        fixture f;
        sim s;

        checkpoints_up(&s, &f, l, seed);
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

/* Incomplete files and files of another run give different errors that name
 * the file. If a file is damaged later, when blocks are read, the others have
 * enough. */
static void wrong_files(void **state)
{
    const training_case *l = &training_cases[0];
    static void (*const spoil[])(const char *) = {damage, cut_short,
                                                  damage_blocks};
    kofn_program other;
    fixture f;
    sim s;

    (void)state;
    for (size_t i = 0; i < COUNT(spoil); i++) {
        checkpoints_up(&s, &f, l, 0);
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
    checkpoints_up(&s, &f, l, 0);
    s.opt.keep = "/nowhere";
    assert_status(KOFN_IO, opens(&s, &s.program));
    assert_non_null(strstr(kofn_errmsg(), "/nowhere"));
    s.opt.keep = folder;
    s.opt.every = 0;
    assert_status(KOFN_INVAL, opens(&s, &s.program));
    mesh_down(&s, &f);
}

/* The last checkpoint of one node, or of all, is damaged. One node alone then
 * follows the others. */
static void checkpoint_before(void **state)
{
    static void (*const spoil[])(const char *) = {
        damage, cut_short, cut_to_head, damage_vector, lose_blocks};

    (void)state;
    for (size_t i = 0; i < COUNT(training_cases); i++)
        for (uint64_t seed = 0; seed < often(6); seed++) {
            const training_case *l = &training_cases[i];
            uint64_t least;
            fixture f;
            sim s;
            size_t n;

            checkpoints_up(&s, &f, l, seed);
            s.opt.every = 2;
            start_all(&s);
            run_until(&s, 7);
            sim_run(&s, s.now + 20 * MS, NULL);
            stop_all(&s);
            n = seed % 2 ? 1 : s.nodes;
            for (size_t k = 0; k < n; k++)
                spoil_newest(k, spoil[(seed + i) % COUNT(spoil)]);
            s.opt.resume = true;
            start_all(&s);
            assert_int_equal(count_resumed(&s, &least), s.nodes);
            assert_true(least >= 2);
            assert_int_equal(each_file(".damaged", NULL), n);
            sim_finish(&s, s.now + 20 * KOFN_SECOND, NULL, l->scheme, seed);
            mesh_down(&s, &f);
        }
}

static void erase_files(size_t seat)
{
    char begin[40];

    snprintf(begin, sizeof begin, "seat-%zu-", seat);
    assert_true(each_of(begin, "", erase) > 0);
}

/* Some nodes are lost early, and others later with all their files. All
 * believe the last checkpoint of the rest, but too few have blocks of it. */
static void few_have_the_last(void **state)
{
    const training_case *l = &training_cases[0];

    (void)state;
    for (uint64_t seed = 0; seed < 3; seed++) {
        fixture f;
        sim s;

        checkpoints_up(&s, &f, l, seed);
        s.opt.errors = KOFN_ERRORS_PROBABILISTIC;
        s.opt.every = 2;
        s.opt.give_up = 100 * s.opt.beat; /* as in the command */
        start_all(&s);
        run_until(&s, 3);
        for (size_t n = f.needs + 1; n < s.nodes; n++)
            sim_stop(&s, n);
        run_until(&s, f.steps - 1);
        stop_all(&s);
        for (size_t n = f.reads; n < f.needs + 1; n++)
            erase_files(n);
        s.opt.resume = true;
        start_all(&s);
        sim_finish(&s, s.now + 60 * KOFN_SECOND, NULL, l->scheme, seed);
        assert_true(s.node[0].host->disk.back.times > 0);
        mesh_down(&s, &f);
    }
}

/* Changes a number of the vector after its digest was sent and before it is
 * written. */
static void flip(void *ud, kofn_fault_place where, uint64_t t,
                 kofn_matrix *numbers)
{
    const sim_node *n = ud;
    kf_host *h = n->host;
    size_t first, rows;

    (void)numbers;
    if (where != KOFN_FAULT_IN_MEMORY || n->id != 0 ||
        h->blocks.changing.turn != 2 || h->it.outvoted)
        return;
    kf_host_wrote(h, t, &first, &rows);
    ((double *)h->it.v->m.data)[first] += 1;
}

/* Reads the first number that turn 2 wrote of the vector on disk of this seat.
 */
static bool read_kept(const sim *s, size_t seat, double *x)
{
    const kf_host *h = s->node[seat].host;
    size_t first, rows;
    char begin[40];
    FILE *f;

    snprintf(begin, sizeof begin, "seat-%zu-step-%012d", seat, 2);
    newest[0] = 0;
    if (each_of(begin, ".vector", note_newest) == 0)
        return false;
    kf_host_wrote(h, kf_course_end(&h->work.course, 2), &first, &rows);
    f = fopen(newest, "rb");
    assert_non_null(f);
    assert_int_equal(
        fseek(f, (long)((KOFN_SCALARS + first) * sizeof *x), SEEK_SET), 0);
    assert_int_equal(fread(x, sizeof *x, 1, f), 1);
    assert_int_equal(fclose(f), 0);
    return true;
}

static void flipped_number_is_not_kept(void **state)
{
    const training_case *l = &training_cases[0];
    double ours, theirs;
    kofn_node_view v;
    fixture f;
    sim s;

    (void)state;
    checkpoints_up(&s, &f, l, 0);
    s.opt.errors = KOFN_ERRORS_ADVERSARIAL;
    s.opt.confirm = 0;
    s.opt.fault = flip;
    s.lenient = true;
    s.hostile = &f;
    s.look = NULL;
    start_all(&s);
    while (s.node[1].host->blocks.changing.turn < 3)
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
        TEST(flipped_number_is_not_kept,
             "keep: a checkpoint has the vector that the nodes agreed on"),
        TEST(all_lost, "keep: a training resumes after the loss of all nodes"),
        TEST(one_by_one,
             "keep: a training resumes after all nodes left one by one"),
        TEST(lost_between_steps,
             "keep: a training resumes if all are lost during a checkpoint"),
        TEST(known_to_one_node,
             "keep: it resumes if one node alone knows the last checkpoint"),
        TEST(few_files, "keep: a node keeps two checkpoints at most"),
        TEST(fewer_nodes_resume, "keep: fewer nodes may resume"),
        TEST(wrong_files,
             "keep: damaged and foreign files are refused by name"),
        TEST(checkpoint_before,
             "keep: a damaged checkpoint is replaced by the one before"),
        TEST(few_have_the_last,
             "keep: nodes return if too few have blocks of the last step"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
