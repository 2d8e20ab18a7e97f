/* mesh_net_test.c -- a hostile node in a mesh over TCP, among honest ones, in
 * real time. It has a listed key and any number of connections, and sends what
 * would do the most harm. Each honest node ends with the result, or reports
 * that it has none. */
#include "support.h"

#include "mesh/note.h"

#include <kofn/net.h>

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { NODES = 4, ROWS = 24, STEPS = 200, FACES = 3, PEERS = 4096 };

/* Notes that the hostile node sends before a node may end. */
#define ENOUGH 600
/* An honest node with the result serves a node that works on for this time, and
 * the hostile node never ends. */
#define SERVED (6 * KOFN_SECOND)
/* The hostile node ends after this time at the latest. */
#define LIMIT (120 * KOFN_SECOND)

static kofn_time clock_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * KOFN_SECOND + t.tv_nsec;
}

/* ---- keys ---------------------------------------------------------------- */

static char dir[] = "/tmp/kofn-mesh-XXXXXX";
static const char *const names[] = {"n0", "n1", "n2", "n3", "evil"};

static int make_keys(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(dir));
    for (size_t i = 0; i < 5; i++)
        assert_ok(kofn_net_keygen(dir, names[i]));
    return 0;
}

static void remove_in(const char *folder, const char *name, const char *end)
{
    char path[300];

    snprintf(path, sizeof path, "%s/%s%s%s", dir, folder, name, end);
    remove(path);
}

static int remove_keys(void **state)
{
    (void)state;
    for (size_t i = 0; i < 5; i++) {
        char own[40];

        snprintf(own, sizeof own, "%s/", names[i]);
        remove_in(own, "worker", ".secret");
        remove_in(own, "coordinator", ".public");
        remove_in("", names[i], "");
        remove_in("", names[i], ".public");
    }
    remove_in("", "coordinator", ".secret");
    remove_in("", "coordinator", ".public");
    rmdir(dir);
    return 0;
}

static kofn_transport *open_node(const char *name)
{
    char own[200];
    const kofn_net_options o = {.size = sizeof o, .keys = own, .allow = dir};
    kofn_transport *t;

    snprintf(own, sizeof own, "%s/%s", dir, name);
    assert_ok(kofn_net_mesh(&t, "tcp://127.0.0.1:*", &o));
    return t;
}

static char where[NODES][160]; /* addresses at which nodes listen */

static void reach(kofn_transport *t, size_t node)
{
    char address[250];

    snprintf(address, sizeof address, "%s@%s", names[node], where[node]);
    assert_ok(t->reach(t, address));
}

/* ---- the honest nodes ---------------------------------------------------- */

typedef struct honest {
    pthread_t thread;
    kofn_transport *t;
    const kofn_plan *plan;
    const kofn_matrix *A;
    const kofn_iterate_options *it;
    kofn_matrix v;
    atomic_size_t *acts, *over;
    kofn_iterate_result res;
    kofn_status status;
} honest;

/* Delays a node until the hostile node has had time to act. */
static int delay_honest(void *ud, const kofn_node_view *view, const double *x)
{
    honest *h = ud;
    const struct timespec ms = {0, 1000000};

    (void)x;
    if (view->at.step >= 5 && atomic_load(h->acts) < ENOUGH)
        nanosleep(&ms, NULL);
    return 0;
}

static void *run_honest(void *ud)
{
    honest *h = ud;
    const kofn_peer_options p = {.size = sizeof p,
                                 .nodes = NODES,
                                 .seat = KOFN_NO_SEAT,
                                 .confirm = 2,
                                 .give_up = SERVED,
                                 .watch = delay_honest,
                                 .watch_ud = h};
    const kofn_peering at = {sizeof at, h->t, h->plan, &p, NULL};

    h->res = (kofn_iterate_result)KOFN_ITERATE_RESULT_INIT;
    h->status = kofn_power_peers(&at, KOFN_DENSE(h->A), &h->v, h->it, &h->res);
    h->t->close(h->t, KOFN_SECOND);
    atomic_fetch_add(h->over, 1);
    return NULL;
}

/* ---- the hostile node ---------------------------------------------------- */

typedef enum harm {
    FINAL,  /* the iterate of the addressee is the last, as is one of mine */
    BYE,    /* every node leaves */
    LIVES,  /* the sender is a new incarnation, again and again */
    EPOCHS, /* the sender leads, far ahead, and no other node is a member */
    HARMS
} harm;

typedef struct face {
    kofn_transport *t;
    kofn_incarnation incarnation;
    bool there[PEERS];
    kofn_peer most;
} face;

typedef struct hostile {
    face face[FACES];
    harm harm;
    uint64_t job;
    kofn_iterate_id at; /* the farthest iterate that was heard */
    kofn_incarnation heard[16];
    size_t lives, said;
    kofn_incarnation next;
} hostile;

static void face_up(hostile *e, face *f)
{
    *f = (face){.t = open_node("evil"), .incarnation = ++e->next};
    for (size_t i = 0; i < NODES; i++)
        reach(f->t, i);
}

static void say(hostile *e, face *f, kofn_peer to, kf_note n)
{
    unsigned char head[KF_HEAD];
    size_t room = (KOFN_SCALARS + ROWS) * sizeof(double);
    size_t bytes = n.type == KF_NOTE_VECTOR ? room : kf_note_bytes(&n);
    double *body = malloc(room);
    kofn_status st;

    assert_non_null(body);
    n.from = f->incarnation;
    for (size_t i = 0; i < KOFN_SCALARS + ROWS; i++)
        body[i] = 666;
    if (n.type != KF_NOTE_VECTOR && bytes)
        kf_note_pack(&n, (unsigned char *)body);
    kf_note_write(head, &n, e->job, body, bytes);
    st =
        f->t->send(f->t, to, head, sizeof head,
                   &(kofn_lent){bytes ? body : NULL, bytes, free, body}, false);
    if (st == KOFN_AGAIN)
        free(body);
    e->said += st == KOFN_OK;
}

/* Sends one node what the harm requires. All faces send it together. */
static void harm_one(hostile *e, face *f, kofn_peer to)
{
    size_t which = (size_t)(f - e->face);
    const kofn_epoch far = {(UINT64_C(1) << 19) + e->said, f->incarnation};
    kf_member only = {f->incarnation, 0, true};
    kofn_iterate_id ahead = {e->at.step + 1 + e->said % 2, 7};

    if (e->harm == BYE && which < e->lives)
        f->incarnation = e->heard[which];
    say(e, f, to,
        (kf_note){.type = KF_NOTE_BEAT,
                  .epoch = e->harm == EPOCHS ? far : (kofn_epoch){0, 0},
                  .at = e->said % 3 ? e->at : ahead,
                  .final = e->harm != EPOCHS,
                  .seat = KOFN_NO_SEAT});
    if (e->harm == BYE)
        say(e, f, to, (kf_note){.type = KF_NOTE_BYE, .at = e->at});
    if (e->harm == EPOCHS)
        say(e, f, to,
            (kf_note){.type = KF_NOTE_EPOCH,
                      .epoch = far,
                      .at = e->at,
                      .member = &only,
                      .members = 1});
}

static void hear(hostile *e, face *f, const kofn_packet *p)
{
    kf_note n;

    memcpy(&e->job, p->head + KF_AT_JOB, sizeof e->job);
    if (kf_note_read(&n, p->head, p->head_bytes, e->job))
        return;
    if (n.at.step >= e->at.step)
        e->at = n.at;
    for (size_t i = 0; i < e->lives; i++)
        if (e->heard[i] == n.from)
            n.from = 0;
    if (n.from && e->lives < 16)
        e->heard[e->lives++] = n.from;
    if (n.type == KF_NOTE_ASK)
        say(e, f, p->peer,
            (kf_note){.type = n.ask.key ? KF_NOTE_PRINT : KF_NOTE_VECTOR,
                      .at = e->at,
                      .final = true});
}

static void face_turn(hostile *e, face *f)
{
    kofn_packet p;

    while (f->t->wait(f->t, 0, &p) == KOFN_OK) {
        assert_true(p.peer < PEERS);
        f->there[p.peer] = p.what != KOFN_WENT;
        f->most = p.peer >= f->most ? p.peer + 1 : f->most;
        if (p.what == KOFN_PACKET)
            hear(e, f, &p);
        if (p.own)
            f->t->release(f->t, p.own);
    }
    for (kofn_peer to = 0; to < f->most && e->job; to++)
        if (f->there[to])
            harm_one(e, f, to);
}

/* Acts until all other nodes have ended, or until the limit. */
static void be_hostile(hostile *e, atomic_size_t *acts, atomic_size_t *over)
{
    const struct timespec pause = {0, 5000000};
    kofn_time end = clock_now() + LIMIT;
    size_t turns = 0;

    for (size_t i = 0; i < FACES; i++)
        face_up(e, &e->face[i]);
    while (atomic_load(over) < NODES && clock_now() < end) {
        for (size_t i = 0; i < FACES; i++)
            face_turn(e, &e->face[i]);
        atomic_store(acts, e->said);
        nanosleep(&pause, NULL);
        if (++turns % 40 == 0 && e->harm == LIVES) {
            face *f = &e->face[turns / 40 % FACES];

            f->t->close(f->t, 0);
            face_up(e, f);
        }
    }
    atomic_store(acts, ENOUGH); /* else no node could end */
    for (size_t i = 0; i < FACES; i++)
        e->face[i].t->close(e->face[i].t, 0);
}

static void reach_names(void **state)
{
    kofn_transport *t = open_node(names[0]);
    const char *address = kofn_net_endpoint(t);
    char named[250];

    (void)state;
    assert_status(KOFN_INVAL, t->reach(t, address));
    snprintf(named, sizeof named, "nobody@%s", address);
    assert_status(KOFN_INVAL, t->reach(t, named));
    snprintf(named, sizeof named, "@%s", address);
    assert_status(KOFN_INVAL, t->reach(t, named));
    snprintf(named, sizeof named, "n1@http://somewhere");
    assert_status(KOFN_INVAL, t->reach(t, named));
    t->close(t, 0);
}

/* True if the two meet within `atmost`. */
static bool comes(kofn_transport *a, kofn_transport *b, kofn_time atmost)
{
    kofn_time end = clock_now() + atmost;
    bool came[2] = {false, false};
    kofn_packet p;

    while (clock_now() < end && !(came[0] && came[1])) {
        came[0] |=
            a->wait(a, KOFN_SECOND / 200, &p) == KOFN_OK && p.what == KOFN_CAME;
        came[1] |=
            b->wait(b, KOFN_SECOND / 200, &p) == KOFN_OK && p.what == KOFN_CAME;
    }
    assert_int_equal(came[0], came[1]);
    return came[0];
}

static void other_key(void **state)
{
    char named[250];

    (void)state;
    for (size_t right = 0; right < 2; right++) {
        kofn_transport *a = open_node(names[0]), *b = open_node(names[1]);

        snprintf(named, sizeof named, "%s@%s", names[right ? 0 : 2],
                 kofn_net_endpoint(a));
        assert_ok(b->reach(b, named));
        assert_int_equal(comes(a, b, right ? LIMIT : KOFN_SECOND), right);
        b->close(b, 0);
        a->close(a, 0);
    }
}

/* ---- one run ------------------------------------------------------------- */

static void check(const honest *h, const double *want, const char *what)
{
    double sign, error = 0;
    const double *v = h->v.data;

    if (h->status) { /* the node reports it */
        assert_true(h->status < 0);
        print_message("%s: %s\n", what, kofn_strerror(h->status));
        return;
    }
    assert_int_equal(h->res.iterations, STEPS);
    sign = v[0] * want[0] < 0 ? -1 : 1;
    for (size_t i = 0; i < ROWS; i++)
        error = fmax(error, fabs(v[i] - sign * want[i]));
    assert_true(error <= 1e-9);
}

static void run_harm(harm what, const char *name)
{
    const kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATVEC, ROWS, ROWS, 1, KOFN_F64, false);
    const kofn_iterate_options it = {
        .size = sizeof it, .tol = 1e-300, .max_iterations = STEPS};
    static double a[ROWS * ROWS], v[NODES + 1][ROWS];
    const kofn_matrix A = {a, ROWS, ROWS, ROWS, KOFN_F64};
    kofn_matrix plain = {v[NODES], ROWS, 1, 1, KOFN_F64};
    static hostile e;
    honest h[NODES];
    atomic_size_t acts = 0, over = 0;
    kofn_iterate_result res = KOFN_ITERATE_RESULT_INIT;
    kofn_plan *plan;

    /* The iteration converges slowly, so an early iterate is wrong. */
    for (size_t i = 0; i < ROWS; i++) {
        for (size_t j = 0; j < ROWS; j++)
            a[i * ROWS + j] = i == j ? 1 + (double)i / 1000 : 1e-5;
        for (size_t j = 0; j <= NODES; j++)
            v[j][i] = 1;
    }
    assert_ok(kofn_power_peers(NULL, KOFN_DENSE(&A), &plain, &it, &res));
    assert_ok(kofn_plan_new(&plan, &pb, "mds:k=2", NODES, 3));
    for (int i = 0; i < NODES; i++)
        h[i] = (honest){.t = open_node(names[i]),
                        .plan = plan,
                        .A = &A,
                        .it = &it,
                        .v = {v[i], ROWS, 1, 1, KOFN_F64},
                        .acts = &acts,
                        .over = &over};
    for (size_t i = 0; i < NODES; i++) {
        snprintf(where[i], sizeof where[i], "%s", kofn_net_endpoint(h[i].t));
        for (size_t j = 0; j < i; j++)
            reach(h[i].t, j);
    }
    e = (hostile){.harm = what, .next = 1000};
    for (int i = 0; i < NODES; i++)
        assert_int_equal(pthread_create(&h[i].thread, NULL, run_honest, &h[i]),
                         0);
    be_hostile(&e, &acts, &over);
    for (int i = 0; i < NODES; i++)
        pthread_join(h[i].thread, NULL);
    print_message("EVENTS %zu notes, %s\n", e.said, name);
    assert_true(e.said > 0);
    for (int i = 0; i < NODES; i++)
        check(&h[i], v[NODES], name);
    kofn_plan_free(plan);
}

static void forged_ends(void **state)
{
    (void)state;
    run_harm(FINAL, "forged ends");
}

static void forged_byes(void **state)
{
    (void)state;
    run_harm(BYE, "forged byes");
}

static void forged_incarnations(void **state)
{
    (void)state;
    run_harm(LIVES, "invented lives");
}

static void forged_epochs(void **state)
{
    (void)state;
    run_harm(EPOCHS, "forged epochs");
}

TEST_FILE(mesh_net_test)
{
    const struct CMUnitTest tests[] = {
        TEST(reach_names,
             "mesh: only nodes with names of listed keys can be reached"),
        TEST(other_key,
             "mesh: a listener with another key than named is not reached"),
        TEST(forged_ends,
             "mesh: honest nodes end right or fail (forged final iterates)"),
        TEST(forged_byes, "mesh: honest nodes end right or fail (forged byes)"),
        TEST(forged_incarnations,
             "mesh: honest nodes end right or fail (many incarnations)"),
        TEST(forged_epochs,
             "mesh: honest nodes end right or fail (forged epochs)"),
    };

    return cmocka_run_group_tests_name("mesh over sockets", tests, make_keys,
                                       remove_keys);
}
