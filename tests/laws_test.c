/* laws_test.c -- what rounds by every scheme must obey, over a grid of the
 * parameters it declares: laws 4, 5 and 9.  Those of codes alone are in
 * laws_codes_test.c. */
#include "fleet.h"
#include "laws_rig.h"

#include "cli/replay.c" /* part of the command, not of the library */
#include "run/run.h"

#include <unistd.h>

/* ---- law 4: order -------------------------------------------------------- */

/* A port that computes at once and answers in random order, some things twice
 * and some in the name of another, and lets cancelled work come all the same.
 */
typedef struct shuffled {
    kofn_port base;
    kf_rng r;
    kofn_block *block[64];
    kofn_msg *box;
    size_t count, cap;
    kofn_time time;
} shuffled;

static kofn_status put(shuffled *s, kofn_msg m)
{
    TRY(kf_grow(&s->box, &s->cap, s->count, sizeof *s->box));
    s->box[s->count++] = m;
    return KOFN_OK;
}

/* The same from the same worker, or nonsense from another. */
static kofn_status put_copy(shuffled *s, kofn_msg m, uint32_t worker)
{
    kofn_parcel *p;

    TRY(kf_parcel_new(&p, m.result->m.rows, m.result->m.cols,
                      m.result->m.dtype));
    if (worker == m.worker)
        memcpy(p->m.data, m.result->m.data,
               p->m.rows * p->m.cols * kf_dtype_size(p->m.dtype));
    else
        memset(p->m.data, 0xff,
               p->m.rows * p->m.cols * kf_dtype_size(p->m.dtype));
    m.result = p;
    m.worker = worker;
    return put(s, m);
}

static kofn_status shuffled_send(kofn_port *base, kofn_msg *m)
{
    shuffled *s = (shuffled *)base;

    switch (m->type) {
    case KOFN_MSG_STORE:
        s->block[m->worker] = m->block;
        return put(s, (kofn_msg){.type = KOFN_MSG_STORED, .worker = m->worker});
    case KOFN_MSG_WORK:
        assert_ok(kofn_work(s->block[m->worker], m, NULL, NULL));
        kofn_parcel_drop(m->in);
        m->in = NULL;
        m->type = KOFN_MSG_RESULT;
        if (kf_rng_below(&s->r, 8) == 0)
            TRY(put_copy(s, *m, m->worker));
        if (kf_rng_below(&s->r, 8) == 0)
            TRY(put_copy(s, *m, m->worker + 1));
        return put(s, *m);
    default:
        return KOFN_OK;
    }
}

static kofn_status shuffled_wait(kofn_port *base, kofn_time until,
                                 kofn_time atmost, kofn_msg *m)
{
    shuffled *s = (shuffled *)base;
    size_t i;

    (void)atmost;
    if (s->count == 0) {
        s->time = until;
        return until == KOFN_NEVER ? KOFN_LATE : KOFN_AGAIN;
    }
    i = (size_t)kf_rng_below(&s->r, s->count);
    *m = s->box[i];
    s->box[i] = s->box[--s->count];
    s->time += 1000;
    return KOFN_OK;
}

static kofn_time shuffled_now(kofn_port *base)
{
    return ((shuffled *)base)->time;
}

static void shuffled_close(kofn_port *base)
{
    shuffled *s = (shuffled *)base;

    for (size_t i = 0; i < s->count; i++)
        kofn_parcel_drop(s->box[i].result);
    for (size_t i = 0; i < 64; i++)
        kofn_block_drop(s->block[i]);
    kf_free(s->box);
    kf_free(s);
}

static kofn_port *shuffled_new(size_t workers, uint64_t seed)
{
    shuffled *s = numbers(1, sizeof *s);

    s->base = (kofn_port){.name = "shuffled",
                          .simulated = true,
                          .workers = workers,
                          .send = shuffled_send,
                          .wait = shuffled_wait,
                          .now = shuffled_now,
                          .close = shuffled_close};
    s->r = kf_rng_stream(seed, KF_FOR_DATA, 4, 4);
    for (size_t i = 0; i < workers; i++)
        assert_ok(
            put(s, (kofn_msg){.type = KOFN_MSG_HELLO, .worker = (uint32_t)i}));
    return &s->base;
}

static void job_inputs(rig *x, const point *at, rig_kind *kind)
{
    *kind = (rig_kind){.workers = at->workers,
                       .m = at->problem.m,
                       .n = at->problem.n,
                       .p = at->problem.p,
                       .dtype = at->problem.dtype,
                       .sparse = at->problem.sparse,
                       .op = at->problem.op};
    if (kind->op == KOFN_SUM) /* rows of A are shared out among the parts */
        kind->m = 53;
    rig_inputs(x, kind);
}

/* The plain product, as far as rounding and the code allow.  What is predicted
 * holds for many numbers; four times that for few. */
static void check_answer(const rig *x, const kofn_report *rep)
{
    double room = x->y.dtype == KOFN_F64 ? 1e-12 : 1e-5;

    /* lies below the floor may have passed, and are amplified like rounding */
    room = fmax(room, 4 * rep->predicted) +
           10 * sqrt((double)x->A.cols) * rep->floor * rep->noise;
    if (!(rig_error(x) <= room))
        print_message("error %.2e predicted %.2e floor %.2e noise %.2e\n",
                      rig_error(x), rep->predicted, rep->floor, rep->noise);
    check(rig_error(x) <= room);
}

static void place(rig *x, const point *at)
{
    (void)at;
    check(rig_place(x) == KOFN_OK);
}

static void order_does_not_matter(const point *at, const kofn_plan *p,
                                  kf_rng *r)
{
    kofn_options o = KOFN_OPTIONS_INIT;
    rig_kind kind;
    rig x;

    job_inputs(&x, at, &kind);
    o.pieces = 1 + (unsigned)kf_rng_below(r, 4);
    o.late = kf_rng_below(r, 2) ? 1.5 : 0;
    assert_ok(
        kofn_open(&x.job, p, shuffled_new(at->workers, kf_rng_u64(r)), &o));
    place(&x, at);
    for (uint64_t round = 0; round < 5; round++) {
        kofn_report rep;
        kofn_status st;

        rig_next(&x, round + 50);
        st = rig_round(&x, &rep);
        check(st == KOFN_OK || st == KOFN_UNSTABLE);
        if (!st)
            check_answer(&x, &rep);
    }
    rig_down(&x);
}

static void order(void **state)
{
    (void)state;
    over_the_grid(order_does_not_matter, often(60), 3, 4);
}

/* ---- laws 5 and 9: weather and replay ------------------------------------ */

#define HAPPENINGS 24
#define ROUNDS 5

/* Workers are only sent away while they are there. */
static size_t random_happenings(kofn_happening *h, size_t workers, kf_rng *r)
{
    static const double at[] = {0, 0.1, 0.25, 0.5, 0.75, 0.9, 1};
    bool gone[64] = {false};
    size_t n = 0, there = workers;

    for (unsigned round = 1; round <= ROUNDS; round++)
        for (size_t f = 0; f < 7 && n < HAPPENINGS; f++) {
            kofn_event_kind kind = (kofn_event_kind)(1 + kf_rng_below(r, 4));
            uint32_t who = (uint32_t)kf_rng_below(r, there);

            if (kf_rng_below(r, 2) || (gone[who] && kind != KOFN_EVENT_JOIN))
                continue;
            h[n++] = (kofn_happening){round, at[f], kind, who,
                                      1 + (double)kf_rng_below(r, 9)};
            gone[who] |= kind == KOFN_EVENT_LEAVE;
            there += kind == KOFN_EVENT_JOIN;
        }
    return n;
}

/* Where the workers are. */
typedef enum place_of { SIMULATED, ON_THREADS, AWAY } place_of;

static kofn_weather random_weather(place_of port, kf_rng *r)
{
    bool sim = port == SIMULATED;
    double fast = sim ? 1e4 : 20; /* rounds last that much less */
    kofn_weather w = {.seed = kf_rng_u64(r)};

    if (kf_rng_below(r, 2))
        w.spread = 0.5;
    if (kf_rng_below(r, 2))
        w.straggle = 0.3;
    if (kf_rng_below(r, 3) == 0)
        w.delay = sim ? 1e-5 : 1e-3;
    if (kf_rng_below(r, 3) == 0)
        w.leave = fast;
    if (kf_rng_below(r, 3) == 0 && port != AWAY)
        w.join = fast;
    if (sim && kf_rng_below(r, 2)) {
        w.latency = 1e-6;
        w.bandwidth = 1e9;
    }
    return w;
}

/* With somebody to spare, errors are looked for now and then. */
static kofn_errors random_errors(const kofn_plan *p, kf_rng *r)
{
    const kofn_layout *L = &p->layout;

    if (L->adjoint || L->whole || p->workers / L->groups <= L->enough)
        return KOFN_ERRORS_NONE;
    return (kofn_errors)kf_rng_below(r, 4);
}

static kofn_options random_options(const kofn_plan *p, kf_rng *r)
{
    kofn_options o = KOFN_OPTIONS_INIT;
    bool plain = p->mixes_parts && !p->layout.adjoint;

    o.in_flight = (kofn_in_flight)kf_rng_below(r, 3);
    o.errors = random_errors(p, r);
    plain &= o.errors == KOFN_ERRORS_NONE;
    o.below = (kofn_below)kf_rng_below(r, plain ? 3 : 2);
    o.patience = KOFN_SECOND / 100;
    o.late = kf_rng_below(r, 2) ? 2 : 0;
    o.pieces = 1 + (unsigned)kf_rng_below(r, 5);
    return o;
}

/* What is there is right, the rest is NaN: whole rows of it, except where
 * blocks are of columns. */
static void check_partial(const rig *x)
{
    size_t cols = x->y.cols;
    double *y = as_doubles(&x->y);

    for (size_t i = 0; i < x->y.rows; i++) {
        size_t nans = 0;

        for (size_t j = 0; j < cols; j++)
            nans += isnan(y[i * cols + j]) ? 1 : 0;
        check(x->op == KOFN_LEFT || nans == 0 || nans == cols);
        for (size_t j = 0; j < cols; j++)
            check(isnan(y[i * cols + j]) ||
                  fabs(y[i * cols + j] - x->want[i * cols + j]) <=
                  (x->y.dtype == KOFN_F64 ? 1e-8 : 1e-2));
    }
    kf_free(y);
}

static char *read_all(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    char *text;

    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    text = numbers(*n + 1, 1);
    assert_int_equal(fread(text, 1, *n, f), *n);
    fclose(f);
    return text;
}

static int replay_edited(const char *text, size_t n, size_t at, size_t cut,
                         const char *instead)
{
    char *copy = numbers(n + strlen(instead) + 1, 1);
    replay_result res;
    int code;

    memcpy(copy, text, at);
    memcpy(copy + at, instead, strlen(instead));
    memcpy(copy + at + strlen(instead), text + at + cut, n - at - cut);
    code = replay(copy, n - cut + strlen(instead), "edited", &res);
    check(code == SAME || (res.line > 0 && *res.error));
    kf_free(copy);
    return code;
}

/* One field of a line whose event made the core act, changed. */
static void spoil_line(const char *text, size_t n, const char *line,
                       size_t length, kf_rng *r)
{
    static const char *const keys[] = {"\"h\":\"",
                                       "\"w\":", "\"k\":", "\"ev\":\""};
    static const char *const instead[] = {"0123456789abcdef", "190000",
                                          "4000000000", "nonsense"};
    size_t f = (size_t)kf_rng_below(r, 4), key = strlen(keys[f]), at, cut;
    char field[400];
    const char *found;

    assert_true(length < sizeof field);
    memcpy(field, line, length);
    field[length] = 0;
    found = strstr(field, keys[f]);
    if (!found)
        return;
    at = (size_t)(line - text) + (size_t)(found - field) + key;
    cut = strcspn(found + key, "\",}");

    check(replay_edited(text, n, at, cut, instead[f]) != SAME);

}

static void spoil_journal(const char *text, size_t n, kf_rng *r)
{
    const char *line = text, *end;

    while ((end = memchr(line, '\n', (size_t)(text + n - line)))) {
        size_t length = (size_t)(end - line);

        if (line > text && length > 5 && strstr(line, "\"h\"") &&
            strstr(line, "\"h\"") < end && kf_rng_below(r, 12) == 0)
            spoil_line(text, n, line, length, r);
        line = end + 1;
    }
    check(replay_edited(text, n, 2, 4, "oldw") == NOT_A_JOURNAL);
    check(replay_edited(text, n, n - 1, 1, "") == SAME); /* cut off */
}

static void replays(const char *path, unsigned rounds, kf_rng *r)
{
    replay_result res;
    size_t n;
    char *text = read_all(path, &n);
    int code = replay(text, n, path, &res);

    if (code)
        fail_msg("%s:%s: %s", where->scheme->name, where->args, res.error);
    check(res.events > 0 && res.rounds == rounds);
    spoil_journal(text, n, r);
    kf_free(text);
}

/* Workers behind packets: the weather is theirs. */
static kofn_port *away(fleet *f, const rig *x, size_t workers,
                       const kofn_weather *weather)
{
    kofn_away_options o = KOFN_AWAY_OPTIONS_INIT;

    f->serve.f = rig_part;
    f->serve.ctx = (void *)(uintptr_t)x;
    f->serve.weather = weather;
    f->serve.staged = true;
    o.start = fleet_start;
    o.kill = fleet_kill;
    o.ud = f;
    return fleet_port(f, workers, &o);
}

/* Whatever the weather: the right answer, or a status with a message. */
static void any_weather(const point *at, const kofn_plan *p, kf_rng *r,
                        place_of where_to)
{
    kofn_happening events[HAPPENINGS];
    kofn_weather weather = random_weather(where_to, r);
    kofn_options o = random_options(p, r);
    char path[] = "laws_test.XXXXXX";
    int fd = mkstemp(path);
    unsigned delivered = 0;
    rig_kind kind;
    rig x;
    kofn_port *port;
    fleet f;
    bool broken = false;

    assert_true(fd >= 0);
    close(fd);
    o.journal = path;
    o.events = events;
    o.event_count = random_happenings(events, at->workers, r);
    if (o.errors != KOFN_ERRORS_NONE && kf_rng_below(r, 2))
        weather.corrupt = 0.1;
    job_inputs(&x, at, &kind);
    fleet_init(&f, NULL);
    if (where_to == AWAY)
        port = away(&f, &x, at->workers, &weather);
    else
        assert_ok(where_to == SIMULATED
                      ? kofn_port_sim(&port, at->workers, &weather)
                      : kofn_port_threads(&port, at->workers, &weather));
    assert_ok(kofn_open(&x.job, p, port, &o));
    place(&x, at);
    for (uint64_t round = 0; round < ROUNDS && !broken; round++) {
        kofn_report rep;
        kofn_status st;

        rig_next(&x, round + 70);
        st = rig_round(&x, &rep);
        if (st == KOFN_OK)
            check_answer(&x, &rep);
        else if (st == KOFN_PARTIAL)
            check_partial(&x);
        else
            check(st == KOFN_TOOFEW || st == KOFN_UNSTABLE ||
                  st == KOFN_LATE ||
                  (st == KOFN_CORRUPT && weather.corrupt > 0));
        check(st >= 0 || *kofn_errmsg());
        check(st != KOFN_PARTIAL || o.below == KOFN_BELOW_DEGRADE);
        broken = st == KOFN_LATE && strstr(kofn_errmsg(), "can come");
        delivered += !broken;
    }
    kofn_close(x.job);
    x.job = NULL;
    fleet_down(&f); /* before what its members read */
    rig_down(&x);
    replays(path, delivered, r);
    unlink(path);
}

static void on_the_simulator(const point *at, const kofn_plan *p, kf_rng *r)
{
    any_weather(at, p, r, SIMULATED);
}

static void on_threads(const point *at, const kofn_plan *p, kf_rng *r)
{
    any_weather(at, p, r, ON_THREADS);
}

static void behind_packets(const point *at, const kofn_plan *p, kf_rng *r)
{
    any_weather(at, p, r, AWAY);
}

static void weather_and_replay_simulated(void **state)
{
    (void)state;
    over_the_grid(on_the_simulator, often(30), 3, 5);
}

static void weather_and_replay_on_threads(void **state)
{
    (void)state;
    over_the_grid(on_threads, often(12), 3, 9);
}

static void weather_and_replay_behind_packets(void **state)
{
    (void)state;
    over_the_grid(behind_packets, often(1), 3, 10);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order),
        cmocka_unit_test(weather_and_replay_simulated),
        cmocka_unit_test(weather_and_replay_on_threads),
        cmocka_unit_test(weather_and_replay_behind_packets),
    };

    if (argc > 1) /* only tests of that name, with asterisks */
        cmocka_set_test_filter(argv[1]);
    rig_begin();
    return cmocka_run_group_tests_name("laws", tests, NULL, NULL);
}
