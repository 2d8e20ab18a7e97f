/* seats_test.c -- keys as principals, over TCP. A key may come any number of
 * times and counts once. Keys are added and revoked while a job runs.
 *
 * The enemy of these tests knows the protocol, has a listed key, and answers
 * zeros over all the connections that it can get. */
#include "support.h"

#include <kofn/net.h>

#include "base/clock.h"
#include "base/hash.h"
#include "core/state.h"
#include "run/job.h"
#include "wire/wire.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define HONEST 7
#define MANY 30
#define LIMIT (30 * KOFN_SECOND)

/* ---- a folder of keys ---------------------------------------------------- */

typedef struct keyring {
    char dir[64];
    char names[16][32];
    size_t count;
} keyring;

static void keyring_new(keyring *k)
{
    *k = (keyring){.dir = "/tmp/kofn-seats-XXXXXX"};
    assert_non_null(mkdtemp(k->dir));
}

static void keyring_add(keyring *k, const char *name)
{
    snprintf(k->names[k->count++], sizeof *k->names, "%s", name);
    assert_ok(kofn_net_keygen(k->dir, name));
}

static void remove_in(const char *dir, const char *name)
{
    char path[300];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    remove(path);
}

static void revoke(const keyring *k, const char *name)
{
    char file[64];

    snprintf(file, sizeof file, "%s.crt", name);
    remove_in(k->dir, file);
}

static void keyring_free(keyring *k)
{
    char own[200];

    for (size_t i = 0; i < k->count; i++) {
        revoke(k, k->names[i]);
        snprintf(own, sizeof own, "%s/%s", k->dir, k->names[i]);
        remove_in(own, "worker.key");
        remove_in(own, "worker.crt");
        remove_in(own, "coordinator.crt");
        remove(own);
    }
    remove_in(k->dir, "coordinator.key");
    remove_in(k->dir, "coordinator.crt");
    assert_int_equal(remove(k->dir), 0);
}

static kofn_transport *connect_as(const keyring *k, const char *name,
                                  const char *address)
{
    kofn_net_options o = {.size = sizeof o, .silence = 10 * KOFN_SECOND};
    kofn_transport *t;
    char own[200];

    snprintf(own, sizeof own, "%s/%s", k->dir, name);
    o.keys = own;
    assert_ok(kofn_net_connect(&t, address, &o));
    return t;
}

/* ---- honest workers ------------------------------------------------------ */

typedef struct honest {
    kofn_transport *t;
    pthread_t thread;
    atomic_int leave;
    kofn_status ended;
} honest;

static kofn_leave watch(void *ud, const char *news)
{
    (void)news;
    return (kofn_leave)atomic_load(&((honest *)ud)->leave);
}

static void *run_honest(void *ud)
{
    honest *h = ud;
    kofn_serve_options o = KOFN_SERVE_OPTIONS_INIT;

    o.watch = watch;
    o.ud = h;
    h->ended = kofn_serve(h->t, &o);
    return NULL;
}

static void be_honest(honest *h, kofn_transport *t)
{
    h->t = t;
    atomic_init(&h->leave, KOFN_STAY);
    assert_int_equal(pthread_create(&h->thread, NULL, run_honest, h), 0);
}

/* ---- the enemy ----------------------------------------------------------- */

typedef struct enemy {
    kofn_transport *t[MANY];
    size_t count;
    pthread_t thread;
    atomic_bool over;
    atomic_size_t seats; /* seats of the enemy that stored a block */
} enemy;

static void post(kofn_transport *t, kofn_peer peer, kf_head h, void *body,
                 size_t bytes)
{
    unsigned char head[KF_HEAD];

    h.body_sum = bytes ? kf_hash(h.job, body, bytes) : 0;
    kf_head_write(head, &h);
    if (t->send(t, peer, head, sizeof head,
                &(kofn_lent){body, bytes, free, body}, false) == KOFN_AGAIN)
        free(body);
}

static void answer(enemy *e, kofn_transport *t, kofn_peer peer,
                   const kf_head *h)
{
    kf_head a = {.job = h->job, .block = h->block};
    size_t n = h->out_rows * h->out_cols;

    if (h->type == KF_WIRE_STORE) {
        a.type = KF_WIRE_STORED;
        post(t, peer, a, NULL, 0);
        atomic_fetch_add(&e->seats, 1);
    } else if (h->type == KF_WIRE_WORK) {
        a.type = KF_WIRE_RESULT;
        a.task = h->task;
        a.round = h->round;
        a.product = h->product;
        a.row = h->row;
        a.rows = h->out_rows;
        a.cols = h->out_cols;
        a.dtype = h->dtype;
        a.took = 1;
        post(t, peer, a, calloc(n, sizeof(double)), n * sizeof(double));
    }
}

static void *lie(void *ud)
{
    enemy *e = ud;

    while (!atomic_load(&e->over))
        for (size_t i = 0; i < e->count; i++) {
            kf_head h = {.type = KF_WIRE_HELLO, .lo = i + 1};
            kofn_packet p;

            if (e->t[i]->wait(e->t[i], i ? 0 : KOFN_SECOND / 1000, &p))
                continue;
            if (p.what == KOFN_CAME)
                post(e->t[i], p.peer, h, NULL, 0);
            else if (p.what == KOFN_PACKET &&
                     !kf_head_read(&h, p.head, p.head_bytes))
                answer(e, e->t[i], p.peer, &h);
            if (p.what == KOFN_PACKET)
                e->t[i]->release(e->t[i], p.own);
        }
    for (size_t i = 0; i < e->count; i++)
        e->t[i]->close(e->t[i], 0);
    return NULL;
}

/* ---- a job between them -------------------------------------------------- */

typedef struct scene {
    keyring keys;
    honest honest[HONEST];
    enemy enemy;
    kofn_plan *plan;
    kofn_job *job;
    kofn_transport *hub;
    double A[120 * 8], x[8], y[120], want[120];
    kofn_matrix mA, mx, my;
} scene;

static void fill(scene *s)
{
    for (size_t i = 0; i < 120 * 8; i++)
        s->A[i] = (double)((i * 7919) % 101) - 50;
    for (size_t j = 0; j < 8; j++)
        s->x[j] = (double)j - 3;
    for (size_t i = 0; i < 120; i++) {
        s->want[i] = 0;
        for (size_t j = 0; j < 8; j++)
            s->want[i] += s->A[8 * i + j] * s->x[j];
    }
    s->mA = (kofn_matrix){s->A, 120, 8, 8, KOFN_F64};
    s->mx = (kofn_matrix){s->x, 8, 1, 1, KOFN_F64};
    s->my = (kofn_matrix){s->y, 120, 1, 1, KOFN_F64};
}

static double error_of(const scene *s)
{
    double worst = 0;

    for (size_t i = 0; i < 120; i++) {
        double d = s->y[i] - s->want[i];

        worst = d * d > worst ? d * d : worst;
    }
    return worst;
}

/* Makes seven keys for seven workers, and one key that connects thirty times.
 * `seats` and `alone` are options of the coordinator. */
static void scene_up(scene *s, size_t workers, size_t seats, bool alone)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATVEC, 120, 8, 1, KOFN_F64, false);
    kofn_net_options z = {
        .size = sizeof z, .silence = 10 * KOFN_SECOND, .keys = s->keys.dir};
    kofn_away_options o = KOFN_AWAY_OPTIONS_INIT;
    kofn_options jo = KOFN_OPTIONS_INIT;
    kofn_port *port;

    keyring_new(&s->keys);
    for (size_t i = 0; i < HONEST; i++) {
        char name[16];

        snprintf(name, sizeof name, "honest-%zu", i);
        keyring_add(&s->keys, name);
    }
    keyring_add(&s->keys, "mallory");
    fill(s);
    assert_ok(kofn_net_listen(&s->hub, "tcp://127.0.0.1:*", &z));
    for (size_t i = 0; i < HONEST; i++)
        be_honest(&s->honest[i], connect_as(&s->keys, s->keys.names[i],
                                            kofn_net_endpoint(s->hub)));
    s->enemy.count = MANY;
    atomic_init(&s->enemy.over, false);
    atomic_init(&s->enemy.seats, 0);
    for (size_t i = 0; i < MANY; i++)
        s->enemy.t[i] =
            connect_as(&s->keys, "mallory", kofn_net_endpoint(s->hub));
    assert_int_equal(pthread_create(&s->enemy.thread, NULL, lie, &s->enemy), 0);
    o.workers = workers;
    o.alone = alone;
    assert_ok(kofn_port_away(&port, s->hub, &o));
    assert_ok(kofn_plan_new(&s->plan, &pb, "mds:k=3", 8, 1));
    jo.errors = KOFN_ERRORS_ADVERSARIAL;
    jo.workers_per_principal = seats;
    jo.start_within = LIMIT;
    assert_ok(kofn_open(&s->job, s->plan, port, &jo));
    assert_ok(kofn_place(s->job, &s->mA));
}

static void scene_down(scene *s)
{
    kofn_close(s->job);
    for (size_t i = 0; i < HONEST; i++)
        atomic_store(&s->honest[i].leave, KOFN_LEAVE_NOW);
    for (size_t i = 0; i < HONEST; i++)
        pthread_join(s->honest[i].thread, NULL);
    atomic_store(&s->enemy.over, true);
    pthread_join(s->enemy.thread, NULL);
    kofn_plan_free(s->plan);
    keyring_free(&s->keys);
}

static void one_seat(void **state)
{
    static scene s;
    kofn_report rep = KOFN_REPORT_INIT;

    (void)state;
    scene_up(&s, HONEST + 1, 1, false);
    for (int round = 0; round < 5; round++) {
        memset(s.y, 0, sizeof s.y);
        assert_ok(kofn_round(s.job, &s.mx, &s.my, &rep));
        assert_at_most(error_of(&s), 1e-16);
        assert_int_equal(rep.liars, 2);
    }
    for (size_t i = 0; i < rep.workers; i++) {
        bool mallory = strcmp(kofn_job_name(s.job, i), "mallory") == 0;

        assert_true(rep.located[i] == 0 || mallory);
        assert_true((rep.states[i] == KOFN_WORKER_QUARANTINED) <= mallory);
    }
    assert_true(atomic_load(&s.enemy.seats) <= 1);
    scene_down(&s);
}

static void many_seats(void **state)
{
    static scene s;
    kofn_report rep = KOFN_REPORT_INIT;
    kofn_status st;

    (void)state;
    scene_up(&s, HONEST + MANY, 0, false);
    st = kofn_round(s.job, &s.mx, &s.my, &rep);
    assert_true(st == KOFN_TOOFEW || st == KOFN_CORRUPT);
    for (size_t i = 0; i < rep.workers; i++)
        assert_true(rep.located[i] == 0 ||
                    strcmp(kofn_job_name(s.job, i), "mallory") == 0);
    scene_down(&s);
}

/* Checks that the enemy is one. If every connection counted separately, no
 * round would be right, and some wrong rounds would pass as right. */
static void separate_seats(void **state)
{
    static scene s;
    kofn_report rep = KOFN_REPORT_INIT;

    (void)state;
    scene_up(&s, HONEST + MANY, 0, true);
    assert_true(kofn_round(s.job, &s.mx, &s.my, &rep) != KOFN_OK ||
                error_of(&s) > 1);
    scene_down(&s);
}

/* ---- blocks that outlive the coordinator --------------------------------- */

/* A scripted worker: sends HELLO, and STORED for every block that it is sent.
 */
typedef struct scripted_worker {
    kofn_transport *t;
    uint64_t job, holds; /* the job and the block that it reports first, and is
                            sent later */
    bool stored;
} scripted_worker;

static void hear(scripted_worker *h)
{
    kf_head hello = {.type = KF_WIRE_HELLO, .job = h->job, .block = h->holds},
            in;
    kofn_packet p;

    while (h->t && h->t->wait(h->t, 0, &p) == KOFN_OK) {
        if (p.what == KOFN_CAME) {
            post(h->t, p.peer, hello, NULL, 0);
        } else if (p.what == KOFN_PACKET) {
            if (!kf_head_read(&in, p.head, p.head_bytes) &&
                in.type == KF_WIRE_STORE) {
                h->holds = in.block;
                h->job = in.job;
                h->stored = true;
                in = (kf_head){
                    .type = KF_WIRE_STORED, .job = in.job, .block = in.block};
                post(h->t, p.peer, in, NULL, 0);
            }
            h->t->release(h->t, p.own);
        }
    }
}

/* Connects two scripted workers, one after the other, to a coordinator of job
 * 7. */
static void run_scripted(scene *s, scripted_worker *first, const char *name,
                         scripted_worker *second, const char *other)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATVEC, 120, 8, 1, KOFN_F64, false);
    kofn_net_options z = {
        .size = sizeof z, .silence = 10 * KOFN_SECOND, .keys = s->keys.dir};
    kofn_away_options o = KOFN_AWAY_OPTIONS_INIT;
    kofn_options jo = KOFN_OPTIONS_INIT;
    kofn_time end = kf_clock() + LIMIT;
    kofn_port *port;

    assert_ok(kofn_net_listen(&s->hub, "tcp://127.0.0.1:*", &z));
    o.workers = 2;
    o.job = 7;
    jo.workers_per_principal = 1;
    assert_ok(kofn_port_away(&port, s->hub, &o));
    assert_ok(kofn_plan_new(&s->plan, &pb, "mds:k=2", 2, 1));
    assert_ok(kofn_open(&s->job, s->plan, port, &jo));
    assert_ok(kofn_place(s->job, &s->mA));
    assert_ok(kofn_put(s->job, &s->mx, &s->my, NULL));
    first->stored = second->stored = false;
    first->t = connect_as(&s->keys, name, kofn_net_endpoint(s->hub));
    while (kf_clock() < end && s->job->core->fleet.workers < 2) {
        kofn_take(s->job, 0, KOFN_SECOND / 100, NULL);
        if (s->job->core->fleet.workers == 1 && !second->t)
            second->t = connect_as(&s->keys, other, kofn_net_endpoint(s->hub));
        hear(first);
        hear(second);
    }
    while (kf_clock() < end && (!s->job->open.list[0]->start.tasks ||
                                !s->job->open.list[0]->start.tasks->count)) {
        kofn_take(s->job, 0, KOFN_SECOND / 100, NULL);
        hear(first);
        hear(second);
    }
    assert_true(first->stored && second->stored);
}

static void end_scripted(scene *s, scripted_worker *a, scripted_worker *b)
{
    a->t->close(a->t, 0);
    b->t->close(b->t, 0);
    a->t = b->t = NULL;
    kofn_close(s->job);
    kofn_plan_free(s->plan);
}

static void numbers_follow(void **state)
{
    static scene s;
    scripted_worker anna = {NULL, 0, 0, false}, bert = {NULL, 0, 0, false};
    uint64_t had;

    (void)state;
    keyring_new(&s.keys);
    keyring_add(&s.keys, "anna");
    keyring_add(&s.keys, "bert");
    fill(&s);
    run_scripted(&s, &anna, "anna", &bert, "bert");
    assert_string_equal(kofn_job_name(s.job, 0), "anna");
    assert_int_equal(s.job->core->fleet.worker[0].principal, 1);
    end_scripted(&s, &anna, &bert);
    had = anna.holds;
    assert_true(had && bert.holds && had != bert.holds);

    run_scripted(&s, &bert, "bert", &anna, "anna");
    assert_true(anna.holds == had);
    assert_string_equal(kofn_job_name(s.job, 0), "anna");
    assert_string_equal(kofn_job_name(s.job, 1), "bert");
    assert_int_equal(s.job->core->fleet.worker[0].principal,
                     2); /* it came second */
    assert_int_equal(s.job->core->fleet.worker[1].principal, 1);
    end_scripted(&s, &anna, &bert);
    keyring_free(&s.keys);
}

/* ---- keys that are added and revoked ------------------------------------- */

/* Waits for the next arrival. Returns KOFN_AGAIN after `atmost`. */
static kofn_status next(kofn_transport *t, kofn_time atmost, kofn_packet *p)
{
    return t->wait(t, atmost, p);
}

static kofn_peer until(kofn_transport *a, kofn_transport *b, kofn_arrival what)
{
    kofn_time end = kf_clock() + LIMIT;
    kofn_packet p;

    while (kf_clock() < end) {
        next(b, 0, &p);
        if (next(a, KOFN_SECOND / 100, &p) == KOFN_OK && p.what == what)
            return p.peer;
    }
    fail_msg("nothing comes: %s", kofn_net_trouble(b));
    return 0;
}

static void add_and_revoke(void **state)
{
    kofn_net_options z = {.size = sizeof z, .silence = 10 * KOFN_SECOND};
    kofn_transport *hub, *anna, *bert;
    keyring k, other;
    char from[200], to[200];
    kofn_time end;
    kofn_peer peer;
    FILE *f;

    (void)state;
    keyring_new(&k);
    keyring_new(&other);
    keyring_add(&k, "anna");
    z.keys = k.dir;
    assert_ok(kofn_net_listen(&hub, "tcp://127.0.0.1:*", &z));
    assert_int_equal(kofn_net_listed(hub), 1);
    anna = connect_as(&k, "anna", kofn_net_endpoint(hub));
    peer = until(hub, anna, KOFN_CAME);
    assert_string_equal(hub->principal_of(hub, peer), "anna");
    assert_non_null(strstr(hub->name_of(hub, peer), "key anna"));

    /* adds another key, and a file that lists no key */
    keyring_add(&k, "bert");
    snprintf(to, sizeof to, "%s/half.crt", k.dir);
    f = fopen(to, "w");
    assert_non_null(f);
    fputs("# kofn half, public\npubl", f);
    fclose(f);
    bert = connect_as(&k, "bert", kofn_net_endpoint(hub));
    peer = until(hub, bert, KOFN_CAME);
    assert_string_equal(hub->principal_of(hub, peer), "bert");
    assert_int_equal(kofn_net_listed(hub), 2);

    /* anna's key is revoked: its connection ends, and it does not come back */
    revoke(&k, "anna");
    assert_int_equal(until(hub, anna, KOFN_WENT), 0);
    assert_int_equal(kofn_net_listed(hub), 1);
    end = kf_clock() + KOFN_SECOND;
    for (bool told = false; !told || kf_clock() < end;) {
        kofn_packet p;

        next(anna, 0, &p);
        assert_int_equal(next(hub, KOFN_SECOND / 50, &p), KOFN_AGAIN);
        told |= strstr(kofn_net_trouble(anna), "key revoked") != NULL;
        assert_true(kf_clock() < end + LIMIT);
    }
    assert_ok(hub->send(hub, peer, "x", 1, NULL, false));

    /* bert's file now holds another key: the connected bert is no longer
     * listed */
    keyring_add(&other, "bert");
    snprintf(from, sizeof from, "%s/bert.crt", other.dir);
    snprintf(to, sizeof to, "%s/bert.crt", k.dir);
    assert_int_equal(rename(from, to), 0);
    assert_int_equal(until(hub, bert, KOFN_WENT), peer);
    remove_in(k.dir, "half.crt");
    anna->close(anna, 0);
    bert->close(bert, 0);
    hub->close(hub, 0);
    keyring_free(&k);
    keyring_free(&other);
}

static void hosts_and_users(void **state)
{
    kofn_net_options z = {.size = sizeof z, .silence = 10 * KOFN_SECOND};
    char address[100], user[40];

    (void)state;
    snprintf(address, sizeof address, "ipc:///tmp/kofn-seats-%ld.sock",
             (long)getpid());
    snprintf(user, sizeof user, "user %u", (unsigned)getuid());
    for (int unix_socket = 0; unix_socket < 2; unix_socket++) {
        kofn_transport *hub, *t;
        kofn_peer peer;

        assert_ok(kofn_net_listen(
            &hub, unix_socket ? address : "tcp://127.0.0.1:*", &z));
        assert_ok(kofn_net_connect(&t, kofn_net_endpoint(hub), &z));
        peer = until(hub, t, KOFN_CAME);
        assert_string_equal(hub->principal_of(hub, peer),
                            unix_socket ? user : "127.0.0.1");
        assert_int_equal(kofn_net_listed(hub), 0);
        t->close(t, 0);
        hub->close(hub, 0);
    }
}

static void key_names(void **state)
{
    static const char *const bad[] = {
        "",
        ".",
        "..",
        "a/b",
        "-x",
        "_x",
        "a b",
        "a\nb",
        "coordinator",
        "worker",
        "012345678901234567890123456789012345678901234567890"};
    char path[200];
    struct stat s;
    keyring k;

    (void)state;
    keyring_new(&k);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_status(KOFN_INVAL, kofn_net_keygen(k.dir, bad[i]));
    keyring_add(&k, "01234567890123456789012345678");
    keyring_add(&k, "a.b-c_D");
    assert_status(KOFN_IO, kofn_net_keygen(k.dir, "a.b-c_D"));
    assert_non_null(strstr(kofn_errmsg(), "never overwritten"));
    snprintf(path, sizeof path, "%s/a.b-c_D/worker.key", k.dir);
    assert_int_equal(stat(path, &s), 0);
    assert_int_equal(s.st_mode & 0777, 0600);
    snprintf(path, sizeof path, "%s/a.b-c_D", k.dir);
    assert_int_equal(stat(path, &s), 0);
    assert_int_equal(s.st_mode & 0777, 0700);
    keyring_free(&k);
}

TEST_FILE(seats_test)
{
    const struct CMUnitTest tests[] = {
        TEST(
            one_seat,
            "seats: a key with 30 connections is located as one faulty worker"),
        TEST(many_seats,
             "seats: rounds fail if a key has too many seats to correct"),
        TEST(separate_seats,
             "seats: 30 seats of a key ruin a round if each counts"),
        TEST(numbers_follow,
             "seats: numbers follow blocks, keys follow workers"),
        TEST(add_and_revoke,
             "seats: added keys are admitted; revoked and changed ones end"),
        TEST(hosts_and_users,
             "seats: without keys the principal is the host or the user"),
        TEST(key_names,
             "keygen: bad names are refused, and files have their modes"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
