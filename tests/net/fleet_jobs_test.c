/* fleet_jobs_test.c -- jobs of one fleet, one after another and side by side,
 * on workers that stay. Products are compared with plain BLAS. */
#include "net_rig.h"
#include "rig.h"

#include <kofn/fleet.h>

#include <pthread.h>

#define WORKERS 4
#define M 90
#define N 40
#define P 3

/* ---- a fleet of threads over sockets ------------------------------------- */

typedef struct hand {
    pthread_t thread;
    const kofn_transport *at; /* the listening end */
    char name[16];
    atomic_bool leaves;
    kofn_status end;
    size_t connected;     /* how often a job or a coordinator was found */
    atomic_size_t stored; /* new blocks that it was sent */
    size_t memory;        /* limit; 0: none */
} hand;

typedef struct crew {
    kofn_fleet *f;
    hand hand[WORKERS];
    size_t hands, came;
} crew;

static kofn_leave look(void *ud, const char *news)
{
    hand *h = ud;

    h->connected += news && strstr(news, "connected as") != NULL;
    return h->leaves ? KOFN_LEAVE_NOW : KOFN_STAY;
}

/* Counts the new blocks. None is made from a file. */
static kofn_status count_block(void *ud, const char *name,
                               const kofn_matrix **A, const kofn_sparse **S)
{
    (void)name, (void)A, (void)S;
    ((hand *)ud)->stored++;
    return KOFN_STATE;
}

static void *work(void *ud)
{
    hand *h = ud;
    kofn_serve_options o = KOFN_SERVE_OPTIONS_INIT;

    o.patience = LIMIT;
    o.watch = look;
    o.operand = count_block;
    o.ud = h;
    o.stay = true;
    o.memory = h->memory;
    o.name = h->name;
    h->end = kofn_serve(dialler(h->at, &patient), &o);
    return NULL;
}

static void note(void *ud, const char *words)
{
    crew *c = ud;

    c->came += strstr(words, " came") != NULL;
}

static void hire(crew *c, size_t n, const kofn_transport *at)
{
    for (size_t i = 0; i < n; i++) {
        hand *h = &c->hand[c->hands++];

        h->at = at;
        snprintf(h->name, sizeof h->name, "hand%zu", c->hands);
        assert_int_equal(pthread_create(&h->thread, NULL, work, h), 0);
    }
}

static void open_crew_with(crew *c, size_t memory)
{
    kofn_fleet_options o = KOFN_FLEET_OPTIONS_INIT;
    kofn_transport *t;

    *c = (crew){0};
    o.workers = WORKERS;
    o.news = note;
    o.ud = c;
    t = listener(unix_socket, &patient);
    assert_ok(kofn_fleet_open(&c->f, t, &o));
    c->hand[0].memory = memory;
    hire(c, WORKERS, t);
}

static void open_crew(crew *c)
{
    open_crew_with(c, 0);
}

static void close_crew(crew *c)
{
    kofn_fleet_close(c->f);
    for (size_t i = 0; i < c->hands; i++)
        pthread_join(c->hand[i].thread, NULL);
}

/* ---- a job --------------------------------------------------------------- */

typedef struct task {
    kofn_plan *plan;
    kofn_job *job;
    kofn_matrix A;
} task;

static void begin_weighing(task *t, kofn_fleet *f, const char *spec,
                           unsigned seed, const kofn_away_options *o)
{
    kofn_problem pb = {.size = sizeof pb,
                       .op = KOFN_MATMUL,
                       .m = M,
                       .n = N,
                       .p = P,
                       .dtype = KOFN_F64};
    kofn_port *port;

    t->A = random_matrix(M, N, KOFN_F64, seed);
    assert_ok(kofn_plan_new(&t->plan, &pb, spec, WORKERS, 1));
    assert_ok(kofn_fleet_port(&port, f, o));
    assert_ok(kofn_open(&t->job, t->plan, port, NULL));
    assert_ok(kofn_place(t->job, &t->A));
}

static void begin(task *t, kofn_fleet *f, const char *spec, unsigned seed)
{
    begin_weighing(t, f, spec, seed, NULL);
}

/* Puts a product and compares it with BLAS. */
static void multiply(const task *t, unsigned seed)
{
    kofn_matrix B = random_matrix(N, P, KOFN_F64, seed);
    kofn_matrix C = {numbers(M * P, 8), M, P, P, KOFN_F64};
    double *want = numbers(M * P, 8);
    kofn_report rep = KOFN_REPORT_INIT;

    assert_ok(kofn_round(t->job, &B, &C, &rep));
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, M, P, N, 1,
                t->A.data, N, B.data, P, 0, want, P);
    for (size_t i = 0; i < M * P; i++)
        assert_true(fabs(want[i] - ((double *)C.data)[i]) < 1e-11);
    kf_free(B.data);
    kf_free(C.data);
    kf_free(want);
}

static void finish(task *t)
{
    kofn_close(t->job);
    kofn_plan_free(t->plan);
    kf_free(t->A.data);
}

/* ---- tests --------------------------------------------------------------- */

static void one_after_another(void **state)
{
    crew c;
    task t;

    (void)state;
    open_crew(&c);
    for (unsigned i = 0; i < 5; i++) {
        begin(&t, c.f, i % 2 ? "mds:k=3" : "elastic:k=2", i + 1);
        multiply(&t, 100 + i);
        multiply(&t, 200 + i);
        finish(&t);
    }
    assert_int_equal(kofn_fleet_workers(c.f), WORKERS);
    assert_int_equal(c.came, WORKERS); /* none connected twice */
    close_crew(&c);
    for (size_t i = 0; i < WORKERS; i++) {
        assert_int_equal(c.hand[i].end, KOFN_OK);
        assert_true(c.hand[i].connected >= 1);
    }
}

static void side_by_side(void **state)
{
    crew c;
    task t[3];

    (void)state;
    open_crew(&c);
    for (unsigned i = 0; i < 3; i++)
        begin(&t[i], c.f, "elastic:k=2", 10 + i);
    for (unsigned round = 0; round < 6; round++)
        multiply(&t[round * 2 % 3], round);
    finish(&t[1]);
    multiply(&t[0], 50);
    multiply(&t[2], 51);
    finish(&t[0]);
    finish(&t[2]);
    close_crew(&c);
}

/* The results of the first job arrive while the second one waits for its
 * own. */
static void products_of_a_job_that_is_not_asked(void **state)
{
    kofn_report rep = KOFN_REPORT_INIT;
    kofn_matrix B[8], C[8];
    uint32_t number[8];
    crew c;
    task t[2];

    (void)state;
    open_crew(&c);
    begin(&t[0], c.f, "elastic:k=2", 1);
    begin(&t[1], c.f, "mds:k=2", 2);
    multiply(&t[0], 3);
    for (size_t i = 0; i < 8; i++) {
        B[i] = random_matrix(N, P, KOFN_F64, (unsigned)i);
        C[i] = (kofn_matrix){numbers(M * P, 8), M, P, P, KOFN_F64};
        assert_ok(kofn_put(t[0].job, &B[i], &C[i], &number[i]));
    }
    for (unsigned i = 0; i < 4; i++)
        multiply(&t[1], 10 + i);
    for (size_t i = 0; i < 8; i++) {
        double want;

        assert_ok(kofn_take(t[0].job, number[i], KOFN_NEVER, &rep));
        want = cblas_ddot(N, t[0].A.data, 1, B[i].data, P);
        assert_true(fabs(want - ((double *)C[i].data)[0]) < 1e-11);
        kf_free(B[i].data);
        kf_free(C[i].data);
    }
    finish(&t[0]);
    finish(&t[1]);
    close_crew(&c);
}

/* ---- threads ------------------------------------------------------------- */

typedef struct rounds {
    kofn_fleet *f;
    unsigned seed;
} rounds;

static void *run_rounds(void *ud)
{
    const rounds *r = ud;

    for (unsigned j = 0; j < 3; j++) {
        task t;

        begin(&t, r->f, j % 2 ? "mds:k=2" : "elastic:k=3", r->seed + j);
        for (unsigned i = 0; i < 10; i++)
            multiply(&t, i);
        finish(&t);
    }
    return NULL;
}

static void on_threads(void **state)
{
    pthread_t thread[3];
    rounds r[3];
    crew c;

    (void)state;
    open_crew(&c);
    for (unsigned i = 0; i < 3; i++) {
        r[i] = (rounds){c.f, 100 * i};
        assert_int_equal(pthread_create(&thread[i], NULL, run_rounds, &r[i]),
                         0);
    }
    for (size_t i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
    close_crew(&c);
}

/* ---- workers that come and go -------------------------------------------- */

static void come_and_go(void **state)
{
    crew c;
    task t[2];

    (void)state;
    open_crew(&c);
    begin(&t[0], c.f, "elastic:k=2", 1);
    begin(&t[1], c.f, "elastic:k=2", 2);
    multiply(&t[0], 3);
    multiply(&t[1], 4);
    c.hand[0].leaves = true;
    pthread_join(c.hand[0].thread, NULL);
    assert_int_equal(c.hand[0].end, KOFN_AGAIN);
    for (unsigned i = 0; i < 4; i++)
        multiply(&t[i % 2], i);
    while (kofn_fleet_workers(c.f) == WORKERS)
        assert_ok(kofn_fleet_poll(c.f, KOFN_SECOND));
    c.hand[0].leaves = false; /* another one comes in its place */
    pthread_create(&c.hand[0].thread, NULL, work, &c.hand[0]);
    while (kofn_fleet_workers(c.f) < WORKERS)
        assert_ok(kofn_fleet_poll(c.f, KOFN_SECOND));
    for (unsigned i = 0; i < 4; i++)
        multiply(&t[i % 2], i);
    finish(&t[0]);
    finish(&t[1]);
    close_crew(&c);
}

static void keep_words(void *ud, const char *words)
{
    snprintf(ud, 256, "%s", words);
}

/* A worker that is lost between two jobs may never come back.  The job waits
 * for it for two seconds. */
static void lost_before(void **state)
{
    kofn_away_options o = KOFN_AWAY_OPTIONS_INIT;
    char words[256] = "";
    crew c;
    task t;

    (void)state;
    if (test_scale() < 1)
        skip(); /* it waits in real time */
    open_crew(&c);
    begin(&t, c.f, "mds:k=2", 1);
    multiply(&t, 2);
    finish(&t);
    c.hand[0].leaves = true;
    pthread_join(c.hand[0].thread, NULL);
    while (kofn_fleet_workers(c.f) == WORKERS)
        assert_ok(kofn_fleet_poll(c.f, KOFN_SECOND));
    o.workers = WORKERS;
    o.news = keep_words;
    o.ud = words;
    begin_weighing(&t, c.f, "mds:k=2", 3, &o);
    multiply(&t, 4);
    assert_string_equal(words, "1 of 4 workers ended before they came");
    c.hand[0].leaves = false; /* it may come back */
    pthread_create(&c.hand[0].thread, NULL, work, &c.hand[0]);
    while (kofn_fleet_workers(c.f) < WORKERS)
        assert_ok(kofn_fleet_poll(c.f, KOFN_SECOND));
    multiply(&t, 5);
    finish(&t);
    close_crew(&c);
}

static void described_and_drained(void **state)
{
    kofn_fleet_worker w = KOFN_FLEET_WORKER_INIT;
    char host[128] = "";
    crew c;
    task t;
    size_t drained = 0;

    (void)state;
    open_crew(&c);
    begin(&t, c.f, "elastic:k=2", 1);
    multiply(&t, 2);
    gethostname(host, sizeof host - 1);
    for (size_t i = 0; i < WORKERS; i++) {
        assert_ok(kofn_fleet_at(c.f, i, &w));
        assert_int_equal(strncmp(w.name, "hand", 4), 0);
        assert_string_equal(w.host, host);
        assert_int_equal(w.process, getpid());
        drained += strcmp(w.name, "hand2") == 0;
    }
    assert_int_equal(drained, 1);
    assert_int_equal(kofn_fleet_at(c.f, WORKERS, &w), KOFN_INVAL);
    assert_int_equal(kofn_fleet_drain(c.f, "hand9"), KOFN_INVAL);
    assert_ok(kofn_fleet_drain(c.f, "hand2"));
    while (kofn_fleet_workers(c.f) == WORKERS)
        assert_ok(kofn_fleet_poll(c.f, KOFN_SECOND));
    multiply(&t, 3);
    finish(&t);
    close_crew(&c);
    assert_int_equal(c.hand[1].end, KOFN_AGAIN);
    assert_int_equal(c.hand[0].end, KOFN_OK);
}

/* ---- numbered jobs ------------------------------------------------------- */

static size_t blocks_of(const crew *c)
{
    size_t n = 0;

    for (size_t i = 0; i < c->hands; i++)
        n += c->hand[i].stored;
    return n;
}

/* Blocks of a numbered job stay, so that they are not sent again. */
static void blocks_stay(void **state)
{
    kofn_away_options o = KOFN_AWAY_OPTIONS_INIT;
    crew c;
    task t;

    (void)state;
    open_crew(&c);
    o.job = 77;
    o.workers = WORKERS;
    o.source = "A";
    for (int i = 0; i < 2; i++) {
        begin_weighing(&t, c.f, "elastic:k=2", 5, &o);
        multiply(&t, 6);
        multiply(&t, 7);
        finish(&t);
        assert_int_equal(blocks_of(&c), WORKERS);
        begin(&t, c.f, "mds:k=2", 8); /* another job in between */
        multiply(&t, 9);
        finish(&t);
    }
    close_crew(&c);
}

/* ---- turns --------------------------------------------------------------- */

#define PUTS 6

/* The order in which one worker computes sums of jobs 1 and 2. Job 0 holds it
 * up until all sums of the others are there. */
typedef struct turns {
    atomic_bool open;
    atomic_size_t done;
    int order[2 * PUTS];
} turns;

static kofn_status in_turn(void *ctx, size_t number, size_t parts,
                           const kofn_matrix *in, kofn_matrix *out)
{
    turns *t = ctx;
    int job = (int)((double *)in->data)[0];

    (void)number, (void)parts;
    while (job == 0 && !t->open)
        nap(MILLI);
    if (job > 0)
        t->order[t->done++] = job;
    ((double *)out->data)[0] = job;
    return KOFN_OK;
}

static void *sum(void *ud)
{
    void *const *of = ud;
    kofn_serve_options o = KOFN_SERVE_OPTIONS_INIT;

    o.f = in_turn;
    o.ctx = of[1];
    o.stay = true;
    kofn_serve(dialler(of[0], &patient), &o);
    return NULL;
}

static bool is_busy(kofn_fleet *f)
{
    kofn_fleet_worker w = KOFN_FLEET_WORKER_INIT;

    assert_ok(kofn_fleet_at(f, 0, &w));
    return w.state == KOFN_FLEET_BUSY;
}

/* A job with 1000 times the weight computes its sums before those of another
 * job, but for the one that begins. */
static void weights_count(void **state)
{
    const double weight[] = {1, 1, 1000};
    kofn_problem pb = {
        .size = sizeof pb, .op = KOFN_SUM, .m = 1, .n = 1, .p = 1};
    kofn_transport *l = listener(unix_socket, &patient);
    turns t = {0};
    void *of[] = {l, &t};
    double to[3][PUTS], from[3] = {0, 1, 2};
    uint32_t number[3][PUTS];
    kofn_plan *plan;
    kofn_job *job[3];
    kofn_fleet *f;
    pthread_t thread;

    (void)state;
    assert_ok(kofn_fleet_open(&f, l, NULL));
    assert_ok(kofn_plan_new(&plan, &pb, "uncoded", 1, 1));
    pthread_create(&thread, NULL, sum, of);
    for (int i = 0; i < 3; i++) {
        kofn_away_options o = KOFN_AWAY_OPTIONS_INIT;
        kofn_port *port;

        o.weight = weight[i];
        assert_ok(kofn_fleet_port(&port, f, &o));
        assert_ok(kofn_open(&job[i], plan, port, NULL));
        assert_ok(kofn_place_parts(job[i], in_turn, &t));
        if (i) { /* the worker takes part in it */
            kofn_matrix in = {&from[i], 1, 1, 1, KOFN_F64};
            kofn_matrix out = {&to[i][0], 1, 1, 1, KOFN_F64};

            assert_ok(kofn_round(job[i], &in, &out, NULL));
        }
    }
    t.done = 0;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < (i ? PUTS : 1); j++) {
            kofn_matrix in = {&from[i], 1, 1, 1, KOFN_F64};
            kofn_matrix out = {&to[i][j], 1, 1, 1, KOFN_F64};

            assert_ok(kofn_put(job[i], &in, &out, &number[i][j]));
            if (i == 0) /* until it is the worker's */
                while (kofn_take(job[0], number[0][0], MILLI, NULL) ==
                           KOFN_AGAIN &&
                       !is_busy(f))
                    ;
        }
    t.open = true;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < (i ? PUTS : 1); j++) {
            assert_ok(kofn_take(job[i], number[i][j], KOFN_NEVER, NULL));
            assert_true(to[i][j] == i);
        }
    for (size_t i = 1; i < PUTS; i++) /* the first one may be of job 1 */
        assert_int_equal(t.order[i], 2);
    for (int i = 0; i < 3; i++)
        kofn_close(job[i]);
    kofn_plan_free(plan);
    kofn_fleet_close(f);
    pthread_join(thread, NULL);
}

/* ---- memory -------------------------------------------------------------- */

static void count_refusals(void *ud, const char *words)
{
    *(size_t *)ud += strstr(words, "memory") != NULL;
}

/* A block of one job is A, M N numbers. One worker has memory for one such
 * block, and not for those of two jobs. */
static void memory_is_shared(void **state)
{
    kofn_away_options o = KOFN_AWAY_OPTIONS_INIT;
    size_t refused = 0;
    crew c;
    task t[2];

    (void)state;
    open_crew_with(&c, M * N * sizeof(double) * 3 / 2);
    o.workers = WORKERS;
    o.news = count_refusals;
    o.ud = &refused;
    begin_weighing(&t[0], c.f, "mds:k=1", 1, &o);
    for (unsigned i = 0; i < 10; i++)
        multiply(&t[0], i);
    assert_int_equal(refused, 0);
    begin_weighing(&t[1], c.f, "mds:k=1", 2, &o);
    for (unsigned i = 0; i < 10; i++)
        multiply(&t[i % 2], i);
    assert_int_equal(refused, 1);
    assert_int_equal(kofn_fleet_workers(c.f), WORKERS); /* it stays for job 1 */
    finish(&t[0]);
    finish(&t[1]);
    close_crew(&c);
}

static void refusals(void **state)
{
    kofn_away_options o = KOFN_AWAY_OPTIONS_INIT;
    kofn_fleet_options bad = KOFN_FLEET_OPTIONS_INIT;
    kofn_port *port, *second;
    kofn_fleet *f;

    (void)state;
    bad.workers = 0;
    assert_int_equal(kofn_fleet_open(&f, NULL, &bad), KOFN_INVAL);
    bad.workers = 3;
    assert_ok(kofn_fleet_open(&f, NULL, &bad));
    assert_int_equal(kofn_fleet_workers(f), 3);
    kofn_fleet_close(f);
    assert_ok(kofn_fleet_open(&f, listener(unix_socket, &patient), NULL));
    o.weight = -1;
    assert_int_equal(kofn_fleet_port(&port, f, &o), KOFN_INVAL);
    o.weight = 2;
    o.job = 5;
    assert_ok(kofn_fleet_port(&port, f, &o));
    assert_int_equal(kofn_fleet_port(&second, f, &o), KOFN_INVAL);
    assert_non_null(strstr(kofn_errmsg(), "number 5"));
    kofn_fleet_close(f); /* ends with its last job */
    kofn_port_close(port);
}

TEST_FILE(fleet_jobs_test)
{
    const struct CMUnitTest tests[] = {
        TEST(one_after_another,
             "fleet: jobs follow one another on workers that stay connected"),
        TEST(side_by_side, "fleet: jobs of other schemes run side by side"),
        TEST(products_of_a_job_that_is_not_asked,
             "fleet: products of a job arrive while another is waited for"),
        TEST(on_threads, "fleet: three threads have jobs of their own"),
        TEST(come_and_go,
             "fleet: a worker that leaves or joins does so in all jobs"),
        TEST(lost_before,
             "fleet: a job does not wait for a worker that was lost before"),
        TEST(described_and_drained,
             "fleet: workers are described, and leave when they are drained"),
        TEST(blocks_stay,
             "fleet: blocks of a numbered job stay for the next one"),
        TEST(weights_count,
             "fleet: of two jobs the one with the larger weight goes first"),
        TEST(memory_is_shared,
             "fleet: jobs share the memory of a worker, which refuses a block"),
        TEST(refusals,
             "fleet: what cannot be is refused, and closing waits for jobs"),
    };

    rig_begin();
    name_socket();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
