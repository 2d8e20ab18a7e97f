/* mute_test.c -- workers that are there, say so, and never answer: a thread of
 * theirs is stuck.  They are given up and named, on threads and by packets, and
 * nothing of what they owe is kept. */
#include "fleet.h"

#include "ports/away.h"

#include <time.h>

#define N 4
#define AT_MOST (60 * KOFN_SECOND) /* far beyond what a test takes */

/* Whoever is the first to compute part 2 does not come back from it before it
 * is let go. */
typedef struct trap {
    rig r;
    atomic_flag caught;
    atomic_bool sprung, open;
} trap;

static kofn_status sticky(void *ctx, size_t part, size_t parts,
                          const kofn_matrix *in, kofn_matrix *out)
{
    trap *t = ctx;

    if (part == 2 && !atomic_flag_test_and_set(&t->caught)) {
        atomic_store(&t->sprung, true);
        for (int i = 0; i < 100000 && !atomic_load(&t->open); i++)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return rig_part(&t->r, part, parts, in, out);
}

static kofn_time wall(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (kofn_time)t.tv_sec * KOFN_SECOND + t.tv_nsec;
}

typedef struct stuck {
    trap t;
    fleet f;
    bool packets;
    port *p;
    size_t told; /* who was given up, in words */
} stuck;

static void hear(void *ud, const char *words)
{
    stuck *s = ud;

    s->told += strstr(words, "answers nothing") != NULL;
}

static void stuck_up(stuck *s, const char *spec, bool packets)
{
    rig_kind k = {.spec = spec, .workers = N, .m = 40, .n = 9, .p = 1,
                  .op = KOFN_SUM};
    kofn_away_options away = KOFN_AWAY_OPTIONS_INIT;
    kofn_options o = KOFN_OPTIONS_INIT;
    kofn_port *base;

    *s = (stuck){.packets = packets, .t.caught = ATOMIC_FLAG_INIT};
    o.lease = KOFN_SECOND / 5;
    away.silence = KOFN_SECOND / 20;
    away.news = hear;
    away.ud = s;
    rig_inputs(&s->t.r, &k);
    if (packets) {
        fleet_init(&s->f, NULL);
        s->f.serve.f = sticky;
        s->f.serve.ctx = &s->t;
        base = fleet_port(&s->f, N, &away);
        s->p = (port *)base;
    } else {
        assert_ok(kofn_port_threads(&base, N, NULL));
    }
    assert_ok(kofn_open(&s->t.r.job, s->t.r.plan, base, &o));
    assert_ok(kofn_place_parts(s->t.r.job, sticky, &s->t));
}

static void stuck_down(stuck *s)
{
    atomic_store(&s->t.open, true);
    kofn_close(s->t.r.job);
    s->t.r.job = NULL;
    if (s->packets)
        fleet_down(&s->f);
    rig_down(&s->t.r);
}

static kofn_status next_round(stuck *s, kofn_report *rep)
{
    kofn_status st = kofn_begin(s->t.r.job, &s->t.r.x, &s->t.r.y);

    return st ? st : kofn_pump(s->t.r.job, AT_MOST, rep);
}

/* Who needs everybody fails and says whom it waited for. */
static void the_round_ends_and_names_it(void **state)
{
    (void)state;
    for (int packets = 0; packets < 2; packets++) {
        kofn_report rep;
        stuck s;

        stuck_up(&s, "uncoded", packets);
        assert_int_equal(next_round(&s, &rep), KOFN_TOOFEW);
        assert_true(atomic_load(&s.t.sprung));
        assert_non_null(strstr(kofn_errmsg(), "worker 2 was given up"));
        assert_int_equal(rep.states[2], 'm');
        assert_int_equal(s.told, packets);
        stuck_down(&s);
    }
}

/* Room for results that are waited for. */
static size_t rooms(const worker *w)
{
    size_t n = 0;

    for (size_t i = 0; i < w->errands; i++)
        n += w->errand[i].result != NULL;
    return n;
}

/* Who can do without it goes on; cancelled tasks are not kept, and who leaves
 * many without a word is given up as well. */
static void rounds_go_on_and_keep_nothing(void **state)
{
    (void)state;
    for (int packets = 0; packets < 2; packets++) {
        size_t named = 0, rounds = 0, kept = 0;
        kofn_time end;
        stuck s;

        stuck_up(&s, "gc:d=2", packets);
        end = wall() + AT_MOST;
        while (named == 0 && wall() < end) {
            kofn_report rep;

            assert_ok(next_round(&s, &rep));
            assert_at_most(rig_error(&s.t.r), 1e-10);
            rounds++;
            for (size_t i = 0; i < rep.workers; i++)
                named += rep.states[i] == 'm';
            for (size_t i = 0; packets && i < N; i++)
                kept = kf_max(kept, rooms(s.p->worker[i]));
        }
        assert_true(atomic_load(&s.t.sprung));
        assert_int_equal(named, 1);
        assert_int_equal(s.told, packets);
        assert_true(rounds >= 64);
        assert_int_equal(kept, 0); /* between rounds nothing is owed */
        assert_ok(next_round(&s, NULL));
        stuck_down(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_round_ends_and_names_it),
        cmocka_unit_test(rounds_go_on_and_keep_nothing),
    };

    rig_begin();
    return cmocka_run_group_tests_name("mute", tests, NULL, NULL);
}
