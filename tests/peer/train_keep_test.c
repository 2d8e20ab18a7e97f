/* train_keep_test.c -- nodes that train keep what they have on disk, all are lost, and
 * others go on with it: every vector that any node ever has is the plain training's,
 * and every block the coded weights (train_mesh_rig.h). */
#include "keep_rig.h"
#include "train_mesh_rig.h"

#include <sys/stat.h>

/* Files whose names begin and end so; each is given to `take`, which may be NULL. */
static size_t each_of(const char *begin, const char *end,
                      void (*take)(const char *path))
{
    DIR *d = opendir(folder);
    const struct dirent *e;
    size_t n = 0;

    assert_non_null(d);
    while ((e = readdir(d))) {
        size_t length = strlen(e->d_name), wants = strlen(end);
        char path[400];

        if (length < wants || e->d_name[0] == '.' ||
            strncmp(e->d_name, begin, strlen(begin)) != 0 ||
            strcmp(e->d_name + length - wants, end) != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (take)
            take(path);
        n++;
    }
    closedir(d);
    return n;
}

static size_t each_file(const char *end, void (*take)(const char *path))
{
    return each_of("", end, take);
}

static void erase(const char *path)
{
    assert_int_equal(unlink(path), 0);
}

/* One bit is another. */
static void damage(const char *path)
{
    FILE *f = fopen(path, "r+b");
    struct stat s;
    int c;

    assert_non_null(f);
    assert_int_equal(stat(path, &s), 0);
    assert_int_equal(fseek(f, s.st_size / 2, SEEK_SET), 0);
    c = fgetc(f);
    assert_int_equal(fseek(f, s.st_size / 2, SEEK_SET), 0);
    fputc(c ^ 4, f);
    assert_int_equal(fclose(f), 0);
}

static void cut_short(const char *path)
{
    struct stat s;

    assert_int_equal(stat(path, &s), 0);
    assert_int_equal(truncate(path, s.st_size - 16), 0);
}

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

static void keeps_up(sim *s, fixture *f, const lesson *l, uint64_t seed)
{
    mesh_up(s, f, l, 8, seed);
    s->opt.keep = folder;
    s->opt.every = 2 + seed % 4;
    if (seed % 4 == 3 && l->nodes > f->needs + 1)
        s->opt.errors = KOFN_ERRORS_PROBABILISTIC;
    empty(folder);
}

static void start_all(sim *s)
{
    for (size_t n = 0; n < s->nodes; n++)
        if (!s->node[n].up)
            sim_start(s, n, true);
}

static void stop_all(sim *s)
{
    for (size_t n = 0; n < s->nodes; n++)
        if (s->node[n].up)
            sim_stop(s, n);
}

/* Turns that the nodes begin with. */
static size_t begun(const sim *s, uint64_t *least)
{
    size_t n = 0;

    *least = UINT64_MAX;
    for (size_t i = 0; i < s->nodes; i++) {
        n += s->node[i].host->at.t > 0;
        *least = kf_min(*least, s->node[i].host->changing.turn);
    }
    return n;
}

static size_t count_healed(const sim *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->nodes; i++)
        n += s->node[i].host->changing.healed;
    return n;
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

/* All at once, when some may have done a step that is kept, and some not: nobody
 * begins where others have nothing yet, or had only what cannot be brought there. */
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

/* All are lost when one of them has heard that all have the last, and so few come again
 * that it cannot be left behind: nobody needs to believe it, for they have that, too. */
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
        assert_true(s.node[1].host->at.t < s.node[0].host->at.t);
        sim_finish(&s, s.now + 5 * KOFN_SECOND, NULL, l->scheme, seed);
        for (size_t n = 0; n < f.needs + 1; n++) {
            assert_int_equal(s.node[n].host->changing.healed, 0);
            assert_int_equal(s.node[n].host->back.times, 0);
        }
        mesh_down(&s, &f);
    }
}

/* One after the other, until nobody is there; all come again, in any order, and some
 * later than others.  Who was away for long makes its blocks of the others'. */
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

/* More nodes than can be told from the others are wrong, for a while. */
static void be_wrong(void *ud, kofn_fault_place where, uint64_t t,
                     kofn_matrix *piece)
{
    const sim_node *n = ud;
    const fixture *f = n->sim->own;
    double *x = piece->data;

    for (size_t k = 0; k < piece->rows * piece->cols && n->id < 5; k++)
        if (where == KOFN_FAULT_IN_PRODUCT && n->lives == 0 && t >= 7 * f->turn)
            x[k] += 1 + sim_draw(n->sim);
}

/* The same, in the first attempt. */
static void be_wrong_once(void *ud, kofn_fault_place where, uint64_t t,
                          kofn_matrix *piece)
{
    const sim_node *n = ud;

    if (n->host->back.attempt == 0)
        be_wrong(ud, where, t, piece);
}

static size_t send_back(sim *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->nodes; i++)
        if (s->node[i].status) {
            assert_int_equal(s->node[i].status, KOFN_CORRUPT);
            sim_stop(s, i);
            sim_start(s, i, true);
            n++;
        }
    return n;
}

/* All see that, none can tell who is wrong, and those who come next go on with what
 * they kept. */
static void goes_back(void **state)
{
    const lesson *l = &lessons[0];

    (void)state;
    for (uint64_t seed = 0; seed < 2; seed++) {
        kofn_time until;
        uint64_t least;
        fixture f;
        size_t n;
        sim s;

        keeps_up(&s, &f, l, seed);
        s.opt.errors = KOFN_ERRORS_PROBABILISTIC;
        s.opt.fault = be_wrong;
        s.opt.resume = true;
        start_all(&s);
        for (until = s.now + 60 * KOFN_SECOND; s.now < until;) {
            for (n = 0; n < s.nodes && s.node[n].status; n++)
                ;
            if (n == s.nodes)
                break;
            sim_run(&s, s.now + MS, NULL);
        }
        assert_int_equal(send_back(&s), s.nodes);
        assert_int_equal(begun(&s, &least), s.nodes);
        assert_true(least >= 4 && least <= 7);
        sim_finish(&s, s.now + 20 * KOFN_SECOND, NULL, l->scheme, seed);
        mesh_down(&s, &f);
    }
}

/* A number of a block that no product shows, as the step is over that is kept. */
static void be_hidden(void *ud, kofn_fault_place where, uint64_t t,
                      kofn_matrix *block)
{
    const sim_node *n = ud;
    const fixture *f = n->sim->own;

    if (where == KOFN_FAULT_IN_MEMORY && t == n->sim->opt.every * f->turn &&
        n->id == n->sim->seed && block->cols == cut_of(f->l))
        *(double *)block->data += 0.5;
}

/* Nobody keeps a step of which a block is wrong; the next is kept by all, and whoever
 * goes on with that has the right blocks. */
static void wrong_blocks_are_not_kept(void **state)
{
    lesson l = lessons[0];

    (void)state;
    l.dark = true;
    for (uint64_t seed = 0; seed < 3; seed++) {
        uint64_t least;
        fixture f;
        sim s;

        keeps_up(&s, &f, &l, seed);
        s.opt.errors = KOFN_ERRORS_PROBABILISTIC;
        s.opt.every = 5;
        s.opt.fault = be_hidden;
        s.look = NULL; /* until the block is mended */
        start_all(&s);
        run_until(&s, 9);
        assert_int_equal(count_healed(&s), 1);
        assert_int_equal(each_file(".kept", NULL), 0);
        assert_int_equal(each_file("005.draft", NULL), s.nodes - 1);
        run_until(&s, 12);
        assert_int_equal(each_file("010.kept", NULL), s.nodes);
        stop_all(&s);
        s.look = look_at_blocks;
        s.opt.resume = true;
        start_all(&s);
        assert_int_equal(begun(&s, &least), s.nodes);
        sim_finish(&s, s.now + 20 * KOFN_SECOND, NULL, l.scheme, seed);
        mesh_down(&s, &f);
    }
}

/* Where a step that is to be kept cannot be, a later one is, long before the next that
 * is to be. */
static void what_is_missed_is_made_up_for(void **state)
{
    lesson l = lessons[0];

    (void)state;
    l.dark = true;
    for (uint64_t seed = 0; seed < 2; seed++) {
        fixture f;
        sim s;

        mesh_up(&s, &f, &l, 30, seed);
        s.opt.keep = folder;
        s.opt.every = 32;
        s.opt.errors = KOFN_ERRORS_PROBABILISTIC;
        s.opt.fault = be_hidden;
        s.look = NULL; /* until the block is mended */
        empty(folder);
        start_all(&s);
        run_until(&s, 62);
        assert_int_equal(each_file("032.kept", NULL), 0);
        assert_int_equal(each_file(".kept", NULL), s.nodes);
        assert_int_equal(each_file(".draft", NULL), 0);
        mesh_down(&s, &f);
    }
}

/* The same, and in the first attempt much that is made some steps later. */
static void be_hidden_and_wrong(void *ud, kofn_fault_place where, uint64_t t,
                                kofn_matrix *numbers)
{
    const sim_node *n = ud;
    const fixture *f = n->sim->own;

    if (n->host->back.attempt == 0 && t >= 50 * f->turn)
        be_wrong(ud, where, t, numbers);
    be_hidden(ud, where, t, numbers);
}

/* What one node tells that it has on disk is lost, in the first attempt. */
static void lose_what_is_kept(sim *s)
{
    const kf_host *h = s->node[s->seed].host;
    size_t *seen = s->inject_ud;

    for (; *seen < s->packets; ++*seen) {
        sim_packet *p = s->packet[*seen];
        kf_note note;

        if (p && p->from == s->seed && h->back.attempt == 0 &&
            !kf_note_read(&note, p->p.head, p->p.head_bytes, h->job) &&
            note.type == KF_NOTE_KEPT)
            p->p.head[0] ^= 1;
    }
}

/* Of what makes up for a step that was missed not all members need to have told.  Who has
 * none of it goes back there with the others, by what these have. */
static void who_does_not_tell_is_not_waited_for(void **state)
{
    lesson l = lessons[0];

    (void)state;
    l.dark = true;
    for (uint64_t seed = 0; seed < 2; seed++) {
        size_t other = seed + 1, seen = 0;
        fixture f;
        sim s;

        mesh_up(&s, &f, &l, 30, seed);
        s.opt.keep = folder;
        s.opt.every = 32;
        s.opt.errors = KOFN_ERRORS_PROBABILISTIC;
        s.opt.fault = be_hidden_and_wrong;
        s.inject = lose_what_is_kept;
        s.inject_ud = &seen;
        s.look = NULL; /* until the block is mended */
        empty(folder);
        start_all(&s);
        run_until(&s, 49);
        assert_int_equal(each_file("032.kept", NULL), 0);
        assert_int_equal(each_file(".kept", NULL), s.nodes);
        s.look = look_at_blocks;
        s.node[other].host->keeping.files = 0;
        sim_finish(&s, s.now + 60 * KOFN_SECOND, NULL, l.scheme, seed);
        for (size_t i = 0; i < s.nodes; i++) {
            assert_int_equal(s.node[i].host->back.times, 1);
            assert_true(s.node[i].host->back.turn > 32);
        }
        mesh_down(&s, &f);
    }
}

/* They go back by themselves, to the last step that was kept, or to the start. */
static void go_back_by_themselves(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 6; seed++) {
        const lesson *l = &lessons[seed % 2 ? 2 : 0];
        fixture f;
        sim s;

        keeps_up(&s, &f, l, seed);
        s.opt.errors = KOFN_ERRORS_PROBABILISTIC;
        s.opt.every = seed < 4 ? 5 : 8;
        s.opt.fault = be_wrong_once;
        start_all(&s);
        sim_finish(&s, s.now + 60 * KOFN_SECOND, NULL, l->scheme, seed);
        for (size_t i = 0; i < s.nodes; i++) {
            kofn_node_view v;

            assert_ok(s.node[i].status);
            kf_host_look(s.node[i].host, &v);
            assert_int_equal(v.back, 1);
        }
        mesh_down(&s, &f);
    }
}

/* Who has lost what it kept, or finds it damaged, follows the others. */
static void some_have_nothing_to_go_back_to(void **state)
{
    static void (*const spoil[])(const char *) = {erase, damage, cut_short};
    const lesson *l = &lessons[0];

    (void)state;
    for (size_t i = 0; i < COUNT(spoil); i++) {
        fixture f;
        sim s;

        keeps_up(&s, &f, l, i);
        s.opt.errors = KOFN_ERRORS_PROBABILISTIC;
        s.opt.every = 5;
        s.opt.fault = be_wrong_once;
        start_all(&s);
        run_until(&s, 7);
        assert_int_equal(each_of("seat-6-", ".kept", spoil[i]), 1);
        sim_finish(&s, s.now + 60 * KOFN_SECOND, NULL, l->scheme, i);
        for (size_t k = 0; k < s.nodes; k++) {
            kofn_node_view v;

            kf_host_look(s.node[k].host, &v);
            assert_int_equal(v.back, 1);
        }
        mesh_down(&s, &f);
    }
}

/* Those who were started again err in the first two attempts. */
static void be_wrong_twice(void *ud, kofn_fault_place where, uint64_t t,
                           kofn_matrix *piece)
{
    const sim_node *n = ud;
    const fixture *f = n->sim->own;
    double *x = piece->data;

    if (where != KOFN_FAULT_IN_PRODUCT || n->id >= 5 || n->lives == 0 ||
        n->host->back.attempt > 1 || t < 3 * f->turn)
        return;
    for (size_t k = 0; k < piece->rows * piece->cols; k++)
        x[k] += 1 + sim_draw(n->sim);
}

/* They go on with what was kept, which is of no use, and nothing was kept before: they
 * begin at the start, of which they have the vector although they did not begin there. */
static void go_back_to_the_start(void **state)
{
    const lesson *l = &lessons[0];
    uint64_t least;
    fixture f;
    sim s;

    (void)state;
    keeps_up(&s, &f, l, 0);
    s.opt.errors = KOFN_ERRORS_PROBABILISTIC;
    s.opt.every = 2;
    s.opt.fault = be_wrong_twice;
    start_all(&s);
    run_until(&s, 3);
    sim_run(&s, s.now + 2 * MS, NULL);
    stop_all(&s);
    s.opt.resume = true;
    start_all(&s);
    assert_int_equal(begun(&s, &least), s.nodes);
    assert_int_equal(least, 2);
    sim_finish(&s, s.now + 60 * KOFN_SECOND, NULL, l->scheme, 0);
    for (size_t i = 0; i < s.nodes; i++) {
        kofn_node_view v;

        kf_host_look(s.node[i].host, &v);
        assert_int_equal(v.back, 2);
    }
    mesh_down(&s, &f);
}

/* What is wrong again and again ends the run, after as many attempts as promised. */
static void they_do_not_go_back_for_ever(void **state)
{
    const lesson *l = &lessons[0];
    size_t ended = 0;
    fixture f;
    sim s;

    (void)state;
    keeps_up(&s, &f, l, 0);
    s.opt.errors = KOFN_ERRORS_PROBABILISTIC;
    s.opt.every = 5;
    s.opt.fault = be_wrong;
    start_all(&s);
    while (ended < s.nodes) {
        sim_run(&s, s.now + MS, NULL);
        assert_true(s.now < 300 * KOFN_SECOND);
        ended = 0;
        for (size_t i = 0; i < s.nodes; i++)
            ended += s.node[i].status != KOFN_OK;
    }
    for (size_t i = 0; i < s.nodes; i++) {
        kofn_node_view v;

        assert_int_equal(s.node[i].status, KOFN_CORRUPT);
        kf_host_look(s.node[i].host, &v);
        assert_int_equal(v.back, 3);
        assert_int_equal(v.at.t, 7 * f.turn);
    }
    mesh_down(&s, &f);
}

/* Every node has at most the last two that it kept, and drafts of what came since. */
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
    /* the last is of a step that is a multiple of `every`, and all have told of it */
    assert_int_equal(each_file(".kept", NULL), 2 * s.nodes);
    assert_int_equal(each_file(".draft", NULL), 0);
    mesh_down(&s, &f);
}

/* Another number of members does not matter: who is lost for good is not waited for. */
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

/* Files that are not whole, or of something else, are told apart and named; and of what
 * is damaged later, when blocks are taken, others have enough. */
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

/* What one node, or all, kept last is damaged: they begin with what they kept before,
 * and one alone follows the others. */
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

TEST_FILE(train_keep_test)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_lost),
        cmocka_unit_test(one_by_one),
        cmocka_unit_test(between),
        cmocka_unit_test(goes_back),
        cmocka_unit_test(wrong_blocks_are_not_kept),
        cmocka_unit_test(what_is_missed_is_made_up_for),
        cmocka_unit_test(who_does_not_tell_is_not_waited_for),
        cmocka_unit_test(go_back_by_themselves),
        cmocka_unit_test(some_have_nothing_to_go_back_to),
        cmocka_unit_test(go_back_to_the_start),
        cmocka_unit_test(they_do_not_go_back_for_ever),
        cmocka_unit_test(told_to_some),
        cmocka_unit_test(few_files),
        cmocka_unit_test(some_stay_away),
        cmocka_unit_test(wrong_files),
        cmocka_unit_test(the_one_before),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
