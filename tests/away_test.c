/* away_test.c -- jobs on workers that are reached by packets only: the same
 * answers as by plain BLAS, whatever is lost, damaged or made up on the way. */
#include "fleet.h"

#include "wire/wire.h"

typedef struct trial {
    rig_kind kind;
    double most; /* relative error */
} trial;

/* Every shape of message and block that travels. */
static const trial trials[] = {
    {{.spec = "mds:k=3", .workers = 5, .m = 301, .n = 40, .p = 1}, 1e-12},
    {{.spec = "mds:k=3", .workers = 5, .m = 301, .n = 40, .p = 7}, 1e-12},
    {{.spec = "uncoded", .workers = 3, .m = 50, .n = 9, .p = 2}, 1e-14},
    {{.spec = "elastic:k=3", .workers = 5, .m = 301, .n = 40, .p = 3}, 1e-12},
    {{.spec = "elastic:k=3,cut=columns",
      .workers = 5,
      .m = 61,
      .n = 100,
      .p = 3},
     1e-12},
    {{.spec = "elastic:k=3",
      .workers = 5,
      .m = 100,
      .n = 61,
      .p = 3,
      .op = KOFN_LEFT},
     1e-12},
    {{.spec = "mds:k=3",
      .workers = 5,
      .m = 300,
      .n = 40,
      .p = 2,
      .dtype = KOFN_F32},
     1e-5},
    {{.spec = "mds:k=3",
      .workers = 5,
      .m = 200,
      .n = 90,
      .p = 1,
      .sparse = true},
     1e-12},
    {{.spec = "elastic:k=3",
      .workers = 5,
      .m = 100,
      .n = 61,
      .p = 3,
      .op = KOFN_LEFT,
      .sparse = true},
     1e-12},
    {{.spec = "gpd:m=2,n=1,p=2",
      .workers = 12,
      .m = 61,
      .n = 50,
      .p = 7,
      .op = KOFN_LEFT,
      .sparse = true},
     1e-9},
    {{.spec = "pcr:r=3",
      .workers = 9,
      .m = 91,
      .n = 20,
      .p = 1,
      .op = KOFN_GRAM,
      .sparse = true},
     1e-9},
    {{.spec = "pcr:r=3,layout=paper",
      .workers = 9,
      .m = 91,
      .n = 20,
      .p = 1,
      .op = KOFN_GRAM,
      .sparse = true},
     1e-9},
    {{.spec = "polynomial", .workers = 6, .m = 60, .n = 30, .p = 40}, 1e-10},
    {{.spec = "matdot", .workers = 6, .m = 60, .n = 30, .p = 40}, 1e-10},
    {{.spec = "gpd", .workers = 12, .m = 60, .n = 30, .p = 40}, 1e-9},
    {{.spec = "pcr", .workers = 9, .m = 90, .n = 20, .p = 1, .op = KOFN_GRAM},
     1e-9},
    {{.spec = "gc", .workers = 6, .m = 90, .n = 20, .p = 1, .op = KOFN_SUM},
     1e-10},
    {{.spec = "cgc", .workers = 6, .m = 90, .n = 20, .p = 1, .op = KOFN_SUM},
     1e-10},
    {{.spec = "cgc:d=3,m=2",
      .workers = 6,
      .m = 9,
      .n = 30001,
      .p = 1,
      .op = KOFN_SUM},
     1e-10},
};
#define TRIALS (sizeof trials / sizeof *trials)

static void open_away(rig *r, fleet *f, const rig_kind *k,
                      const loop_faults *faults, const kofn_away_options *o)
{
    rig_inputs(r, k);
    fleet_init(f, faults);
    f->serve.f = rig_part;
    f->serve.ctx = r;
    assert_ok(
        kofn_open(&r->job, r->plan, fleet_port(f, k->workers, o), k->opt));
    assert_ok(rig_place(r));
}

static void run_away(const trial *t, const loop_faults *faults)
{
    fleet f;
    rig r;

    open_away(&r, &f, &t->kind, faults, NULL);
    for (uint64_t round = 0; round < 3; round++) {
        rig_next(&r, 11 + round);
        assert_ok(rig_round(&r, NULL));
        if (!(rig_error(&r) <= t->most))
            fail_msg("%s, trial %d, round %d: error %g", t->kind.spec,
                     (int)(t - trials), (int)round, rig_error(&r));
    }
    kofn_close(r.job);
    r.job = NULL;
    for (size_t i = 0; i < f.members; i++) /* all are dismissed */
        pthread_join(f.member[i]->thread, NULL);
    for (size_t i = 0; i < f.members; i++) {
        assert_int_equal(f.member[i]->ended, KOFN_OK);
        free(f.member[i]);
    }
    pthread_mutex_destroy(&f.net.lock);
    rig_down(&r); /* workers read it until they are gone */
}

static void every_operation(void **state)
{
    (void)state;
    for (size_t i = 0; i < TRIALS; i++)
        run_away(&trials[i], NULL);
}

static void bodies_that_come_separately(void **state)
{
    const loop_faults fetching = {.fetching = true};

    (void)state;
    for (size_t i = 0; i < TRIALS; i++)
        run_away(&trials[i], &fetching);
}

static void narrow_pipes(void **state)
{
    const loop_faults narrow = {.room = 1000};

    (void)state;
    for (size_t i = 0; i < TRIALS; i++)
        run_away(&trials[i], &narrow);
}

/* ---- faults -------------------------------------------------------------- */

/* Whatever happens on the way, a round ends with the right answer or with an
 * error that says that too few are left. */
static void faults_on_the_way(void **state)
{
    size_t failed = 0, rounds = 0, dropped = 0;

    (void)state;
    for (uint64_t seed = 0; seed < often(40); seed++) {
        const trial *t = &trials[seed % TRIALS];
        const loop_faults faults = {.twice = 0.05,
                                    .damage = 0.01,
                                    .truncate = 0.01,
                                    .cut = 0.005,
                                    .seed = seed};
        kofn_options o = KOFN_OPTIONS_INIT;
        rig_kind kind = t->kind;
        kofn_report total;
        fleet f;
        rig r;

        o.below = KOFN_BELOW_PAUSE;
        o.patience = 3 * KOFN_SECOND;
        o.late = 20;
        kind.opt = &o;
        open_away(&r, &f, &kind, &faults, NULL);
        for (uint64_t round = 0; round < 5; round++) {
            kofn_report rep;
            kofn_status st;

            rig_next(&r, 11 + round);
            rig_spoil(&r);
            assert_ok(kofn_begin(r.job, &r.x, &r.y));
            st = kofn_pump(r.job, 20 * KOFN_SECOND, &rep);
            rounds++;
            if (st == KOFN_AGAIN)
                fail_msg("%s, seed %d: hangs", kind.spec, (int)seed);
            if (st) {
                assert_true(st == KOFN_TOOFEW || st == KOFN_LATE);
                failed++;
                break;
            }
            if (!(rig_error(&r) <= t->most))
                fail_msg("%s, seed %d: error %g", kind.spec, (int)seed,
                         rig_error(&r));
        }
        kofn_job_totals(r.job, &total);
        dropped += total.dropped;
        kofn_close(r.job);
        r.job = NULL;
        fleet_down(&f);
        rig_down(&r);
    }
    print_message("%zu rounds, %zu could not be ended, %zu packets dropped\n",
                  rounds, failed, dropped);
    assert_true(failed <= rounds / 10);
}

/* ---- blocks from a file of the worker's own ------------------------------ */

typedef struct disk {
    const kofn_matrix *A;
    const kofn_sparse *S;
    atomic_size_t asked;
} disk;

static kofn_status from_disk(void *ud, const char *name, const kofn_matrix **A,
                             const kofn_sparse **S)
{
    member *m = ud;
    disk *d = m->of->disk;

    assert_string_equal(name, "A.npy");
    atomic_fetch_add(&d->asked, 1);
    *A = d->A;
    *S = d->S;
    return d->A || d->S ? KOFN_OK : kf_fail(KOFN_IO, "there is no A.npy");
}

static void disk_done(void *ud)
{
    (void)ud;
}

/* Pieces that are sent when the workers have this; the answers are right. */
static size_t pieces_with(const trial *t, disk *d, const rig *has,
                          const char *name)
{
    kofn_away_options o = KOFN_AWAY_OPTIONS_INIT;
    fleet f;
    rig r;
    size_t sent;

    *d = (disk){has->sparse.ptr ? NULL : &has->A,
                has->sparse.ptr ? &has->sparse : NULL, 0};
    if (!has->A.data)
        d->A = NULL;
    o.source = name;
    rig_inputs(&r, &t->kind);
    fleet_init(&f, NULL);
    f.disk = d;
    f.serve.operand = from_disk;
    f.serve.operand_done = disk_done;
    assert_ok(
        kofn_open(&r.job, r.plan, fleet_port(&f, t->kind.workers, &o), NULL));
    assert_ok(rig_place(&r));
    assert_ok(rig_round(&r, NULL));
    if (!(rig_error(&r) <= t->most))
        fail_msg("%s: error %g", t->kind.spec, rig_error(&r));
    rig_down(&r);
    sent = f.net.sent[KF_WIRE_PIECE];
    fleet_down(&f);
    return sent;
}

/* One number of it is another. */
static void change_one(rig *r, uint64_t seed)
{
    kf_rng g = kf_rng_stream(seed, KF_FOR_DATA, 3, 0);
    size_t n =
        r->sparse.ptr ? r->sparse.ptr[r->sparse.rows] : r->A.rows * r->A.cols;
    size_t i = (size_t)kf_rng_below(&g, n);

    if (r->sparse.ptr)
        ((double *)(uintptr_t)r->sparse.val)[i] += 1e-9;
    else if (r->A.dtype == KOFN_F64)
        ((double *)r->A.data)[i] += 1e-9;
    else
        ((float *)r->A.data)[i] += 1e-3f;
}

static void files_of_workers(void **state)
{
    (void)state;
    for (size_t i = 0; i < TRIALS; i++) {
        const trial *t = &trials[i];
        rig same;
        disk d;

        if (t->kind.op == KOFN_SUM)
            continue;
        rig_inputs(&same, &t->kind);
        assert_int_equal(pieces_with(t, &d, &same, "A.npy"), 0);
        assert_int_equal(d.asked, t->kind.workers);
        change_one(&same, i);
        /* those whose parts are not concerned still make their blocks */
        assert_true(pieces_with(t, &d, &same, "A.npy") > 0);
        kofn_plan_free(same.plan);
        sparse_free(&same.sparse);
        kf_free(same.A.data);
        kf_free(same.x.data);
        kf_free(same.y.data);
        kf_free(same.want);
        same = (rig){0};
        assert_true(pieces_with(t, &d, &same, "A.npy") > 0);
    }
}

/* What names a file elsewhere is not looked for, and the block is sent. */
static void names_of_files(void **state)
{
    static const char *const names[] = {"../A.npy", "/etc/A.npy", "..", ".",
                                        "a/../A.npy"};
    const trial *t = &trials[0];
    rig same;
    disk d;

    (void)state;
    rig_inputs(&same, &t->kind);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_true(pieces_with(t, &d, &same, names[i]) > 0);
        assert_int_equal(d.asked, 0);
    }
    rig_down(&same);
}

/* ---- sums over rows ------------------------------------------------------ */

typedef struct points {
    kofn_matrix X, y;
    kofn_regress_options opt;
} points;

static points make_points(kofn_loss loss)
{
    points p = {random_matrix(157, 11, KOFN_F64, 3),
                random_matrix(157, 1, KOFN_F64, 4),
                {.size = sizeof p.opt,
                 .loss = loss,
                 .step = 0.02,
                 .ridge = 0.01,
                 .max_iterations = 12,
                 .tolerance = 1e-14}};
    double *y = p.y.data;

    for (size_t i = 0; i < p.y.rows && loss != KOFN_LOSS_SQUARES; i++)
        y[i] = loss == KOFN_LOSS_LOGISTIC ? y[i] > 0 : floor(fabs(2 * y[i]));
    return p;
}

static void points_free(points *p)
{
    kf_free(p->X.data);
    kf_free(p->y.data);
}

/* w after the descent on the workers of this port, 12 of them. */
static kofn_matrix descend(const points *p, const char *spec, kofn_port *port)
{
    kofn_matrix w = {numbers(p->X.cols, 8), p->X.cols, 1, 1, KOFN_F64};
    kofn_regress_result res;
    kofn_regression *r;
    kofn_problem pb;
    kofn_plan *plan;
    kofn_job *job;
    kofn_status st;

    assert_ok(kofn_regression_new(&r, &p->X, &p->y, &p->opt));
    assert_ok(kofn_regression_problem(r, spec, 12, &pb));
    assert_int_equal(pb.op, KOFN_SUM);
    assert_ok(kofn_plan_new(&plan, &pb, spec, 12, 3));
    assert_ok(kofn_open(&job, plan, port, NULL));
    assert_ok(kofn_regression_place(r, job, pb.op));
    st = kofn_regress(r, &w, &res);
    assert_true(st == KOFN_OK || st == KOFN_PARTIAL);
    assert_int_equal(res.iterations, p->opt.max_iterations);
    kofn_close(job);
    kofn_plan_free(plan);
    kofn_regression_free(r);
    return w;
}

/* The same steps by the definition of the gradient, with plain loops. */
static double *descend_plainly(const points *p)
{
    size_t n = p->X.cols, m = p->X.rows;
    double *w = numbers(n, 8), *g = numbers(n, 8);
    const double *X = p->X.data, *y = p->y.data;

    for (unsigned t = 0; t < p->opt.max_iterations; t++) {
        for (size_t j = 0; j < n; j++)
            g[j] = p->opt.ridge * w[j];
        for (size_t i = 0; i < m; i++) {
            double u = cblas_ddot((int)n, X + i * n, 1, w, 1);
            double mean = p->opt.loss == KOFN_LOSS_SQUARES ? u
                          : p->opt.loss == KOFN_LOSS_LOGISTIC
                              ? 1 / (1 + exp(-u))
                              : exp(u);

            cblas_daxpy((int)n, (mean - y[i]) / (double)m, X + i * n, 1, g, 1);
        }
        cblas_daxpy((int)n, -p->opt.step, g, 1, w, 1);
    }
    kf_free(g);
    return w;
}

static double distance(const double *a, const double *b, size_t n)
{
    double sum = 0;

    for (size_t j = 0; j < n; j++)
        sum += (a[j] - b[j]) * (a[j] - b[j]);
    return sqrt(sum) / cblas_dnrm2((int)n, b, 1);
}

static void gradients_by_name(void **state)
{
    static const char *const specs[] = {"gc:d=3",
                                        "gc:d=4,construction=fractional",
                                        "cgc:d=3", "agc", "distr-bgd:wait=12"};
    const loop_faults fetching = {.fetching = true}, narrow = {.room = 1000};

    (void)state;
    for (int i = 0; i < 15; i++) {
        const char *spec = specs[i % 5];
        points p = make_points((kofn_loss)(i / 5));
        double *want = descend_plainly(&p);
        kofn_matrix w, threads;
        kofn_problem pb;
        kofn_regression *r;
        kofn_port *port;
        fleet f;

        assert_ok(kofn_regression_new(&r, &p.X, &p.y, &p.opt));
        if (kofn_regression_problem(r, spec, 12, &pb) || pb.op != KOFN_SUM)
            fail_msg("%s: %s", spec, kofn_errmsg());
        kofn_regression_free(r);
        assert_ok(kofn_port_threads(&port, 12, NULL));
        threads = descend(&p, spec, port);
        fleet_init(&f, i % 3 == 1 ? &fetching : i % 3 == 2 ? &narrow : NULL);
        w = descend(&p, spec, fleet_port(&f, 12, NULL));
        if (!(distance(w.data, threads.data, w.rows) <= 1e-12 &&
              distance(w.data, want, w.rows) <= 1e-9))
            fail_msg("%s, loss %d: %g from threads, %g from the truth", spec,
                     i / 5, distance(w.data, threads.data, w.rows),
                     distance(w.data, want, w.rows));
        fleet_down(&f);
        kf_free(w.data);
        kf_free(threads.data);
        kf_free(want);
        points_free(&p);
    }
}

/* With X on the workers' disks only y travels, in pieces of 8 bytes a row. */
static void rows_from_files(void **state)
{
    points p = make_points(KOFN_LOSS_LOGISTIC);
    double *want = descend_plainly(&p);
    kofn_matrix other = random_matrix(p.X.rows, p.X.cols, KOFN_F64, 3), w;
    kofn_away_options o = KOFN_AWAY_OPTIONS_INIT;
    disk d = {.A = &p.X};

    (void)state;
    o.source = "A.npy";
    ((double *)other.data)[77] += 1e-12;
    for (int changed = 0; changed < 2; changed++) {
        size_t held = 12 * p.X.rows / 12 * 3; /* d = 3 times each row */
        fleet f;

        d.A = changed ? &other : &p.X;
        fleet_init(&f, NULL);
        f.disk = &d;
        f.serve.operand = from_disk;
        f.serve.operand_done = disk_done;
        w = descend(&p, "gc:d=3", fleet_port(&f, 12, &o));
        assert_true(distance(w.data, want, w.rows) <= 1e-9);
        if (changed)
            assert_true(f.net.bytes[KF_WIRE_PIECE] > held * 8);
        else
            assert_int_equal(f.net.bytes[KF_WIRE_PIECE], held * 8);
        fleet_down(&f);
        kf_free(w.data);
    }
    kf_free(want);
    kf_free(other.data);
    points_free(&p);
}

/* ---- a block that is half there ------------------------------------------ */

static void only_the_rest_is_sent(void **state)
{
    const rig_kind kind = {
        .spec = "uncoded", .workers = 1, .m = 4000, .n = 640, .p = 1};
    kofn_options o = KOFN_OPTIONS_INIT;
    rig_kind k = kind;
    fleet f;
    rig r;

    (void)state;
    o.below = KOFN_BELOW_PAUSE;
    o.patience = 20 * KOFN_SECOND;
    k.opt = &o;
    rig_inputs(&r, &k);
    fleet_init(&f, NULL);
    f.net.cut_type = KF_WIRE_PIECE;
    f.net.cut_at = 2; /* of 5 */
    assert_ok(kofn_open(&r.job, r.plan, fleet_port(&f, 1, NULL), k.opt));
    assert_ok(rig_place(&r));
    assert_ok(rig_round(&r, NULL));
    assert_true(rig_error(&r) <= 1e-13);
    rig_down(&r);
    assert_int_equal(f.net.sent[KF_WIRE_HELLO], 2);
    assert_int_equal(f.net.sent[KF_WIRE_STORE], 2);
    assert_int_equal(f.net.sent[KF_WIRE_PIECE], 5);
    assert_int_equal(f.net.bytes[KF_WIRE_PIECE], 4000 * 640 * 8);
    fleet_down(&f);
}

/* ---- who never stores ---------------------------------------------------- */

/* Somebody who says hello and then nothing. */
static kofn_transport *mute_worker(fleet *f)
{
    const kf_head hello = {.type = KF_WIRE_HELLO};
    kofn_transport *spoke = loop_spoke(&f->net);
    unsigned char head[KF_HEAD];
    kofn_packet p;

    assert_ok(spoke->wait(spoke, KOFN_SECOND, &p));
    assert_int_equal(p.what, KOFN_CAME);
    kf_head_write(head, &hello);
    assert_ok(spoke->send(spoke, p.peer, head, sizeof head, NULL, 0, false,
                          NULL, NULL));
    return spoke;
}

/* It holds up no more than one round, and that for no longer than the lease. */
static void a_joiner_that_never_stores(void **state)
{
    kofn_options o = KOFN_OPTIONS_INIT;
    rig_kind k = {
        .spec = "mds:k=2", .workers = 3, .m = 60, .n = 8, .p = 1, .opt = &o};
    kofn_transport *spoke;
    kofn_report rep;
    fleet f;
    rig r;

    (void)state;
    o.lease = KOFN_SECOND / 5;
    rig_inputs(&r, &k);
    fleet_init(&f, NULL);
    assert_ok(kofn_open(&r.job, r.plan, fleet_port(&f, 3, NULL), &o));
    assert_ok(rig_place(&r));
    assert_ok(rig_round(&r, NULL));
    spoke = mute_worker(&f);
    for (int round = 0; round < 4; round++) {
        rig_next(&r, (uint64_t)round);
        assert_ok(kofn_begin(r.job, &r.x, &r.y));
        assert_int_equal(kofn_pump(r.job, 20 * KOFN_SECOND, &rep), KOFN_OK);
        assert_true(rig_error(&r) <= 1e-12);
    }
    assert_int_equal(rep.workers, 4);
    assert_true(rep.states[3] == KOFN_WORKER_STORING ||
                rep.states[3] == KOFN_WORKER_MUTE);
    assert_int_equal(rep.live, 3);
    spoke->close(spoke, 0);
    rig_down(&r);
    fleet_down(&f);
}

/* ---- another version ----------------------------------------------------- */

/* Such a head as kofn `version` might send. */
static size_t foreign_head(unsigned char *head, unsigned version, kf_wire type)
{
    kf_head h = {.type = type};
    uint16_t v = (uint16_t)version;
    uint64_t sum;
    size_t n = KF_HEAD + 16; /* it has grown */

    kf_head_write(head, &h);
    memset(head + KF_HEAD, 0, n - KF_HEAD);
    memcpy(head + 4, &v, sizeof v);
    sum = kf_wire_checksum(0, head, n - sizeof sum);
    memcpy(head + n - sizeof sum, &sum, sizeof sum);
    return n;
}

static void names_both(const char *words, unsigned version)
{
    char want[40];

    snprintf(want, sizeof want, "version %u", version);
    assert_non_null(strstr(words, want));
    snprintf(want, sizeof want, "this kofn %u", KF_WIRE_VERSION);
    assert_non_null(strstr(words, want));
}

static void keep_words(void *ud, const char *words)
{
    snprintf(ud, 300, "%s", words);
}

static void a_worker_of_another_version(void **state)
{
    unsigned char head[KOFN_HEAD_MAX];
    char told[300] = "", refused[300];
    kofn_away_options o = KOFN_AWAY_OPTIONS_INIT;
    kofn_transport *hub, *spoke;
    kofn_packet k;
    kofn_port *port;
    kofn_msg m;
    loop_net net;
    kf_head h;

    (void)state;
    o.news = keep_words;
    o.ud = told;
    loop_net_init(&net, NULL);
    hub = loop_hub(&net);
    spoke = loop_spoke(&net);
    assert_ok(kofn_port_away(&port, hub, &o));
    assert_ok(spoke->wait(spoke, KOFN_SECOND, &k));
    assert_int_equal(k.what, KOFN_CAME);
    assert_ok(spoke->send(spoke, k.peer, head,
                          foreign_head(head, 1, KF_WIRE_HELLO), NULL, 0, false,
                          NULL, NULL));
    assert_int_equal(
        port->wait(port, port->now(port) + KOFN_SECOND / 20, KOFN_NEVER, &m),
        KOFN_AGAIN);
    names_both(told, 1);
    assert_ok(spoke->wait(spoke, KOFN_SECOND, &k));
    assert_ok(kf_head_read(&h, k.head, k.head_bytes));
    assert_int_equal(h.type, KF_WIRE_REFUSED);
    assert_ok(kf_wire_check_body(&h, k.body, k.body_bytes));
    snprintf(refused, sizeof refused, "%.*s", (int)k.body_bytes,
             (const char *)k.body);
    names_both(refused, 1);
    spoke->release(spoke, k.own);
    port->close(port);
    spoke->close(spoke, 0);
    pthread_mutex_destroy(&net.lock);
}

static void a_coordinator_of_another_version(void **state)
{
    unsigned char head[KOFN_HEAD_MAX];
    kofn_serve_options o = KOFN_SERVE_OPTIONS_INIT;
    kofn_transport *hub, *spoke;
    loop_net net;

    (void)state;
    o.patience = 10 * KOFN_SECOND;
    loop_net_init(&net, NULL);
    hub = loop_hub(&net);
    spoke = loop_spoke(&net);
    assert_ok(hub->send(hub, 0, head, foreign_head(head, 7, KF_WIRE_WELCOME),
                        NULL, 0, false, NULL, NULL));
    assert_int_equal(kofn_serve(spoke, &o), KOFN_UNSUITED);
    names_both(kofn_errmsg(), 7);
    hub->close(hub, 0);
    pthread_mutex_destroy(&net.lock);
}

static size_t ended_so_far(void *ud)
{
    return *(size_t *)ud;
}

/* Nobody else comes in their place, so that waiting would not end. */
static void those_who_end_before_they_come(void **state)
{
    kofn_away_options o = KOFN_AWAY_OPTIONS_INIT;
    kofn_time end = kf_clock() + 60 * KOFN_SECOND;
    kofn_status st = KOFN_OK;
    size_t ended = 0;
    kofn_port *port;
    kofn_msg m;
    fleet f;

    (void)state;
    fleet_init(&f, NULL);
    o.workers = 2;
    o.ended = ended_so_far;
    o.ud = &ended;
    assert_ok(kofn_port_away(&port, loop_hub(&f.net), &o));
    fleet_add(&f);
    assert_ok(port->wait(port, KOFN_NEVER, KOFN_NEVER, &m));
    assert_int_equal(m.type, KOFN_MSG_HELLO);
    assert_int_equal(port->wait(port, KOFN_NEVER, KOFN_SECOND / 4, &m),
                     KOFN_AGAIN);
    for (ended = 1; st >= 0 && kf_clock() < end;)
        st = port->wait(port, KOFN_NEVER, KOFN_SECOND / 4, &m);
    assert_int_equal(st, KOFN_TOOFEW);
    assert_string_equal(kofn_errmsg(), "1 of 2 workers ended before they came");
    kofn_port_close(port);
    fleet_down(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation),
        cmocka_unit_test(bodies_that_come_separately),
        cmocka_unit_test(narrow_pipes),
        cmocka_unit_test(files_of_workers),
        cmocka_unit_test(names_of_files),
        cmocka_unit_test(only_the_rest_is_sent),
        cmocka_unit_test(a_joiner_that_never_stores),
        cmocka_unit_test(a_worker_of_another_version),
        cmocka_unit_test(a_coordinator_of_another_version),
        cmocka_unit_test(gradients_by_name),
        cmocka_unit_test(rows_from_files),
        cmocka_unit_test(faults_on_the_way),
        cmocka_unit_test(those_who_end_before_they_come),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
