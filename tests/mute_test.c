/* mute_test.c -- workers that are there, say so, and never answer, or never
 * have a block: a thread of theirs is stuck.  They are given up and named, on
 * threads and by packets, and nothing of what they owe is kept. */
#include "fleet.h"

#include "base/clock.h"
#include "ports/away.h"
#include "run/wire.h"

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
        end = kf_clock() + AT_MOST;
        while (named == 0 && kf_clock() < end) {
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

/* ---- who never stores ------------------------------------------------------------- */

typedef struct silence {
    const char *spec;
    size_t honest, mute;
    bool asks; /* for one piece of its block, before it is silent */
    kofn_below below;
} silence;

typedef struct mute {
    kofn_transport *t;
    bool asked;
} mute;

static void mute_say(mute *m, kofn_peer to, const kf_head *h)
{
    unsigned char head[KF_HEAD];

    kf_head_write(head, h);
    m->t->send(m->t, to, head, sizeof head, NULL, 0, false, NULL, NULL);
}

/* All that it does: say hello, and perhaps ask once. */
static void mute_turn(mute *m, bool asks)
{
    kofn_packet p;
    kf_head h;

    while (m->t->wait(m->t, 0, &p) == KOFN_OK) {
        if (p.what == KOFN_CAME)
            mute_say(m, p.peer, &(kf_head){.type = KF_WIRE_HELLO});
        if (p.what != KOFN_PACKET)
            continue;
        assert_ok(kf_head_read(&h, p.head, p.head_bytes));
        if (h.type == KF_WIRE_STORE && asks && !m->asked) {
            m->asked = true;
            mute_say(m, p.peer, &(kf_head){.type = KF_WIRE_NEED, .job = h.job,
                                           .id = h.id, .hi = 1});
        }
        if (p.own)
            m->t->release(m->t, p.own);
    }
}

/* The end of the first round; where workers can be had one comes for each that
 * is given up. */
static kofn_status silent_round(stuck *s, const silence *c, mute *m,
                                kofn_report *rep)
{
    kofn_time end = kf_clock() + AT_MOST;
    kofn_status st = KOFN_AGAIN;
    size_t came = 0;

    assert_ok(kofn_begin(s->t.r.job, &s->t.r.x, &s->t.r.y));
    while (st == KOFN_AGAIN && kf_clock() < end) {
        for (size_t i = 0; i < c->mute; i++)
            mute_turn(&m[i], c->asks);
        st = kofn_pump(s->t.r.job, KOFN_SECOND / 200, rep);
        for (; c->below == KOFN_BELOW_PAUSE && came < s->told; came++)
            fleet_add(&s->f);
    }
    return st;
}

static void try_silence(const silence *c)
{
    rig_kind k = {.spec = c->spec, .workers = (unsigned)(c->honest + c->mute),
                  .m = 60, .n = 8, .p = 1};
    kofn_away_options away = KOFN_AWAY_OPTIONS_INIT;
    kofn_options o = KOFN_OPTIONS_INIT;
    mute m[3] = {{NULL, false}};
    stuck s = {.told = 0};
    kofn_report rep;
    kofn_port *base;
    kofn_status st;

    o.lease = KOFN_SECOND / 10;
    o.below = c->below;
    away.workers = k.workers;
    away.news = hear;
    away.ud = &s;
    rig_inputs(&s.t.r, &k);
    fleet_init(&s.f, NULL);
    assert_ok(kofn_port_away(&base, loop_hub(&s.f.net), &away));
    assert_ok(kofn_open(&s.t.r.job, s.t.r.plan, base, &o));
    assert_ok(rig_place(&s.t.r));
    for (size_t i = 0; i < c->honest; i++)
        fleet_add(&s.f);
    for (size_t i = 0; i < c->mute; i++)
        m[i].t = loop_spoke(&s.f.net);
    st = silent_round(&s, c, m, &rep);
    if (c->below == KOFN_BELOW_PAUSE) {
        assert_int_equal(st, KOFN_OK);
        assert_at_most(rig_error(&s.t.r), 1e-12);
    } else {
        assert_int_equal(st, KOFN_TOOFEW);
        assert_non_null(strstr(kofn_errmsg(), "given up"));
    }
    assert_true(s.told >= 1);
    for (size_t i = 0; i < c->mute; i++) {
        assert_int_equal(m[i].asked, c->asks);
        m[i].t->close(m[i].t, 0);
    }
    rig_down(&s.t.r);
    fleet_down(&s.f);
}

/* It is there, says so, and has no block for ever: where the others are not
 * enough the round fails, or waits for somebody else. */
static void who_never_stores_is_given_up(void **state)
{
    static const silence cases[] = {
        {"uncoded", 2, 1, false, KOFN_BELOW_REFUSE},
        {"uncoded", 2, 1, true, KOFN_BELOW_REFUSE},
        {"mds:k=2", 1, 2, false, KOFN_BELOW_REFUSE},
        {"mds:k=2", 0, 3, true, KOFN_BELOW_REFUSE},
        {"uncoded", 2, 1, false, KOFN_BELOW_PAUSE},
        {"mds:k=3", 1, 2, true, KOFN_BELOW_PAUSE},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        try_silence(&cases[i]);
}

/* Nobody comes: the round says so when the time for that is over. */
static void nobody_comes(void **state)
{
    rig_kind k = {.spec = "uncoded", .workers = 2, .m = 60, .n = 8, .p = 1};
    kofn_options o = KOFN_OPTIONS_INIT;
    kofn_away_options away = KOFN_AWAY_OPTIONS_INIT;
    kofn_port *base;
    fleet f;
    rig r;

    (void)state;
    o.start_within = KOFN_SECOND / 5;
    away.workers = 2;
    rig_inputs(&r, &k);
    fleet_init(&f, NULL);
    assert_ok(kofn_port_away(&base, loop_hub(&f.net), &away));
    assert_ok(kofn_open(&r.job, r.plan, base, &o));
    assert_ok(rig_place(&r));
    assert_int_equal(rig_round(&r, NULL), KOFN_LATE);
    rig_down(&r);
    fleet_down(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_round_ends_and_names_it),
        cmocka_unit_test(rounds_go_on_and_keep_nothing),
        cmocka_unit_test(who_never_stores_is_given_up),
        cmocka_unit_test(nobody_comes),
    };

    rig_begin();
    return cmocka_run_group_tests_name("mute", tests, NULL, NULL);
}
