/* away_hostile_test.c -- workers who send anything at any time, beside honest
 * ones: every round ends, its answer is the plain product's or an error, no
 * honest worker is named, and memory stays bounded. */
#include "fleet.h"

#include "run/wire.h"

#include <malloc.h>

/* ---- memory --------------------------------------------------------------- */

static atomic_size_t held, most;

static void *weigh(void *ud, void *p, size_t want)
{
    size_t now, top = atomic_load(&most);

    (void)ud;
    if (p)
        atomic_fetch_sub(&held, malloc_usable_size(p));
    free(p);
    p = want ? aligned_alloc(64, (want + 63) / 64 * 64) : NULL;
    if (!p)
        return NULL;
    now = atomic_fetch_add(&held, malloc_usable_size(p)) +
          malloc_usable_size(p);
    while (now > top && !atomic_compare_exchange_weak(&most, &top, now))
        ;
    return p;
}

/* ---- hostile workers -------------------------------------------------------- */

#define IDENTITIES 256

typedef struct hostile {
    kofn_transport *t;
    pthread_t thread;
    kf_rng r;
    atomic_bool stop;
    kofn_peer hub;
    bool here, stores;
    uint64_t job;
    kf_head work, old; /* the last that it was to do, and one before */
    kf_head store;
    uint32_t number[IDENTITIES]; /* it was given */
    size_t numbers;
    size_t sent;
} hostile;

static void say(hostile *h, kf_head head, size_t body_bytes)
{
    unsigned char bytes[KF_HEAD];
    double *body = calloc(body_bytes / 8 + 1, 8);

    for (size_t i = 0; i < body_bytes / 8; i++)
        body[i] = kf_rng_below(&h->r, 50) ? kf_rng_uniform(&h->r) - 0.5 : NAN;
    head.job = kf_rng_below(&h->r, 50) ? h->job : kf_rng_u64(&h->r);
    if (head.type == KF_WIRE_HELLO)
        head.job = 0;
    head.body_sum = body_bytes ? kf_checksum(head.job, body, body_bytes) : 0;
    kf_head_write(bytes, &head);
    if (kf_rng_below(&h->r, 100) == 0)
        bytes[kf_rng_below(&h->r, sizeof bytes)] ^= 4;
    if (h->here)
        h->t->send(h->t, h->hub, bytes, sizeof bytes, body, body_bytes, false,
                   NULL, NULL);
    free(body);
    h->sent++;
}

/* What a worker could say to this work, true or not. */
static void answer(hostile *h, const kf_head *w)
{
    size_t bytes = w->out_rows * w->out_cols *
                   (w->dtype == KOFN_F32 ? 4 : 8);
    kf_head head = {.type = KF_WIRE_RESULT,
                    .task = w->task,
                    .round = w->round,
                    .dtype = w->dtype,
                    .rows = w->out_rows,
                    .cols = w->out_cols};

    switch (kf_rng_below(&h->r, 10)) {
    case 0: /* never */
        return;
    case 1:
        head.round += 1 + (uint32_t)kf_rng_below(&h->r, 2);
        break;
    case 2:
        head.task = (uint32_t)kf_rng_below(&h->r, 64);
        break;
    case 3:
        head.rows = 1 + kf_rng_below(&h->r, 100);
        bytes = head.rows * head.cols * 8;
        break;
    case 4:
        head.type = KF_WIRE_FAILED;
        head.status = (int)kf_rng_below(&h->r, 40) - 20;
        bytes = kf_rng_below(&h->r, 40);
        break;
    case 5:
        bytes = kf_rng_below(&h->r, 1 << 20);
        break;
    case 6:
        say(h, head, bytes); /* and once more */
        break;
    default:
        break;
    }
    say(h, head, bytes);
}

/* Whatever comes to mind. */
static void babble(hostile *h)
{
    kf_head head = {.type = (kf_wire)(1 + kf_rng_below(&h->r, 50)),
                    .task = (uint32_t)kf_rng_below(&h->r, 1000),
                    .round = h->work.round,
                    .id = h->store.id,
                    .lo = kf_rng_below(&h->r, 4),
                    .hi = kf_rng_below(&h->r, 2) ? kf_rng_u64(&h->r)
                                                 : kf_rng_below(&h->r, 8),
                    .turn = kf_rng_below(&h->r, 4),
                    .rows = kf_rng_below(&h->r, 8),
                    .cols = kf_rng_below(&h->r, 8)};

    if (kf_rng_below(&h->r, 3) == 0)
        answer(h, &h->old); /* cancelled or over by now */
    else
        say(h, head, head.rows * head.cols * 8);
}

static void hear(hostile *h, const kofn_packet *k)
{
    kf_head head;

    if (k->what == KOFN_CAME) {
        h->hub = k->peer;
        h->here = true;
        h->stores = kf_rng_below(&h->r, 4) > 0;
        say(h, (kf_head){.type = KF_WIRE_HELLO}, 0);
        return;
    }
    if (k->what == KOFN_WENT) {
        h->here = false;
        return;
    }
    if (kf_head_read(&head, k->head, k->head_bytes))
        return;
    h->job = head.job;
    switch (head.type) {
    case KF_WIRE_WELCOME:
        assert_true(h->numbers < IDENTITIES);
        h->number[h->numbers++] = head.task;
        break;
    case KF_WIRE_STORE:
        h->store = head;
        if (h->stores) /* it has nothing */
            say(h, (kf_head){.type = KF_WIRE_STORED, .id = head.id}, 0);
        break;
    case KF_WIRE_WORK:
        if (kf_rng_below(&h->r, 4) == 0)
            h->old = h->work;
        h->work = head;
        answer(h, &head);
        break;
    default:
        break;
    }
}

static void *plague(void *ud)
{
    hostile *h = ud;

    while (!atomic_load(&h->stop)) {
        kofn_packet k = {0};

        if (h->t->wait(h->t, KOFN_SECOND / 2000, &k) == KOFN_OK) {
            hear(h, &k);
            if (k.own)
                h->t->release(h->t, k.own);
        }
        if (h->job && kf_rng_below(&h->r, 3) == 0)
            babble(h);
        if (h->job && h->numbers < 40 && kf_rng_below(&h->r, 150) == 0)
            h->t->forget(h->t, h->hub); /* as another */
    }
    return NULL;
}

/* ---- runs ----------------------------------------------------------------------- */

enum { HOSTILE = 2, ROUNDS = 60 };

typedef struct tally {
    size_t rounds, right, errors, sent;
} tally;

static bool is_hostile(const hostile *h, uint32_t worker)
{
    for (size_t i = 0; i < HOSTILE; i++)
        for (size_t k = 0; k < h[i].numbers; k++)
            if (h[i].number[k] == worker)
                return true;
    return false;
}

static void run(uint64_t seed, tally *t)
{
    static const rig_kind kind = {
        .spec = "mds:k=3", .workers = 8, .m = 301, .n = 40, .p = 1};
    const double cut = 1e-9;
    kofn_options opt = KOFN_OPTIONS_INIT;
    hostile *h = calloc(HOSTILE, sizeof *h);
    fleet f;
    rig r;

    opt.errors = KOFN_ERRORS_ADVERSARIAL;
    opt.below = KOFN_BELOW_PAUSE;
    opt.patience = 20 * KOFN_SECOND * SLOWED;
    opt.late = 3;
    rig_inputs(&r, &kind);
    fleet_init(&f, NULL);
    assert_ok(kofn_open(&r.job, r.plan, fleet_port(&f, kind.workers, NULL),
                        &opt));
    assert_ok(rig_place(&r));
    for (size_t i = 0; i < HOSTILE; i++) {
        h[i].r = kf_rng_stream(seed, KF_FOR_DATA, 31, (uint32_t)i);
        h[i].t = loop_spoke(&f.net);
        assert_int_equal(pthread_create(&h[i].thread, NULL, plague, &h[i]), 0);
    }
    for (uint64_t round = 0; round < ROUNDS; round++) {
        kofn_report rep;
        kofn_status st;

        rig_next(&r, 11 + round);
        rig_spoil(&r);
        assert_ok(kofn_begin(r.job, &r.x, &r.y));
        st = kofn_pump(r.job, 100 * KOFN_SECOND * SLOWED, &rep);
        t->rounds++;
        t->right += st == KOFN_OK;
        t->errors += st != KOFN_OK;
        if (st == KOFN_OK && !(rig_error(&r) <= cut))
            fail_msg("seed %d: round %d is off by %g", (int)seed, (int)round,
                     rig_error(&r));
        if (st != KOFN_OK && st != KOFN_CORRUPT && st != KOFN_TOOFEW &&
            st != KOFN_LATE)
            fail_msg("seed %d: %s (%s)", (int)seed, kofn_strerror(st),
                     kofn_errmsg());
    }
    for (size_t i = 0; i < HOSTILE; i++) {
        atomic_store(&h[i].stop, true);
        pthread_join(h[i].thread, NULL);
        t->sent += h[i].sent;
    }
    {
        kofn_report rep;

        kofn_job_totals(r.job, &rep);
        for (uint32_t w = 0; w < rep.workers; w++)
            if (rep.lies && rep.lies[w] && !is_hostile(h, w))
                fail_msg("seed %d: worker %u was named and is honest",
                         (int)seed, w);
    }
    kofn_close(r.job);
    r.job = NULL;
    for (size_t i = 0; i < HOSTILE; i++)
        h[i].t->close(h[i].t, 0);
    fleet_down(&f);
    rig_down(&r);
    free(h);
}

static void anything_at_any_time(void **state)
{
    const char *one = getenv("KOFN_TEST_SEED");
    uint64_t first = one ? strtoull(one, NULL, 10) : 0;
    size_t n = often(6);
    tally t = {0};

    (void)state;
    for (uint64_t seed = first; seed < first + n; seed++) {
        size_t before = atomic_load(&held);

        run(seed, &t);
        if (atomic_load(&held) != before)
            fail_msg("seed %d keeps %zu bytes", (int)seed,
                     atomic_load(&held) - before);
    }
    print_message("EVENTS %zu hostile packets in %zu rounds: %zu right, %zu "
                  "errors; at most %zu KiB held\n", t.sent, t.rounds,
                  t.right, t.errors,
                  atomic_load(&most) >> 10);
    assert_true(t.right >= t.rounds * 3 / 4);
    assert_true(atomic_load(&most) < (size_t)128 << 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(anything_at_any_time)};
    const kofn_alloc weighed = {weigh, NULL};

    rig_begin();
    kofn_set_alloc(&weighed);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
