/* spawn_test.c -- a fleet of processes of this machine: its products, lost
 * processes, and what is left after it. Products are compared with plain BLAS.
 */
#include "net_rig.h"
#include "rig.h"

#include <kofn/fleet.h>

#include <dirent.h>

#define WORKERS 3
#define M 40
#define N 20

/* ---- a private TMPDIR ---------------------------------------------------- */

static char tmp[40];

static int begin_test(void **state)
{
    (void)state;
    snprintf(tmp, sizeof tmp, "/tmp/kofn-spawn.XXXXXX");
    assert_non_null(mkdtemp(tmp));
    return setenv("TMPDIR", tmp, 1);
}

/* Fails if anything is left in it. */
static int end_test(void **state)
{
    (void)state;
    unsetenv("TMPDIR");
    return rmdir(tmp);
}

static size_t files(void)
{
    DIR *dir = opendir(tmp);
    size_t n = 0;

    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir));)
        n += e->d_name[0] != '.';
    closedir(dir);
    return n;
}

/* ---- a fleet ------------------------------------------------------------- */

typedef struct band {
    kofn_fleet *f;
    pid_t process[WORKERS];
} band;

static void open_band(band *b)
{
    kofn_fleet_options o = KOFN_FLEET_OPTIONS_INIT;
    kofn_fleet_worker w = KOFN_FLEET_WORKER_INIT;

    o.workers = WORKERS;
    o.program = getenv("KOFN");
    assert_non_null(o.program);
    assert_ok(kofn_fleet_spawn(&b->f, &o));
    assert_int_equal(files(), 1);
    while (kofn_fleet_workers(b->f) < WORKERS)
        assert_ok(kofn_fleet_poll(b->f, KOFN_SECOND));
    for (size_t i = 0; i < WORKERS; i++) {
        assert_ok(kofn_fleet_at(b->f, i, &w));
        b->process[i] = (pid_t)w.process;
    }
}

static void close_band(band *b)
{
    kofn_fleet_close(b->f);
    assert_int_equal(files(), 0);
    for (size_t i = 0; i < WORKERS; i++) {
        assert_int_equal(kill(b->process[i], 0), -1);
        assert_int_equal(errno, ESRCH);
    }
}

/* Multiplies on any two of the workers, and returns the status. */
static kofn_status multiply(kofn_fleet *f, unsigned seed)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_MATVEC, M, N, 1, KOFN_F64, false);
    kofn_matrix A = random_matrix(M, N, KOFN_F64, seed);
    kofn_matrix x = random_matrix(N, 1, KOFN_F64, seed + 1);
    kofn_matrix y = {numbers(M, 8), M, 1, 1, KOFN_F64};
    double *want = numbers(M, 8);
    kofn_port *port;
    kofn_plan *plan;
    kofn_job *job;
    kofn_status st;

    assert_ok(kofn_plan_new(&plan, &pb, "mds:k=2", WORKERS, 1));
    assert_ok(kofn_fleet_port(&port, f, NULL));
    assert_ok(kofn_open(&job, plan, port, NULL));
    st = kofn_place(job, &A);
    if (!st)
        st = kofn_round(job, &x, &y, NULL);
    cblas_dgemv(CblasRowMajor, CblasNoTrans, M, N, 1, A.data, N, x.data, 1, 0,
                want, 1);
    for (size_t i = 0; !st && i < M; i++)
        assert_true(fabs(want[i] - ((double *)y.data)[i]) < 1e-11);
    kofn_close(job);
    kofn_plan_free(plan);
    kf_free(A.data);
    kf_free(x.data);
    kf_free(y.data);
    kf_free(want);
    return st;
}

/* ---- tests --------------------------------------------------------------- */

static void leaves_nothing(void **state)
{
    static const int number[] = {SIGCHLD, SIGINT, SIGTERM, SIGUSR2, SIGALRM};
    struct sigaction is;
    pid_t other = fork();
    int status;
    band b;

    (void)state;
    if (other == 0)
        _exit(7);
    open_band(&b);
    assert_ok(multiply(b.f, 1));
    assert_ok(multiply(b.f, 3)); /* a second job */
    for (size_t i = 0; i < sizeof number / sizeof *number; i++) {
        assert_int_equal(sigaction(number[i], NULL, &is), 0);
        assert_true(is.sa_handler == SIG_DFL);
    }
    close_band(&b);
    /* a child that is not the fleet's is still to be waited for */
    assert_int_equal(waitpid(other, &status, 0), other);
    assert_int_equal(WEXITSTATUS(status), 7);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static void loses_one(void **state)
{
    band b;

    (void)state;
    open_band(&b);
    assert_ok(multiply(b.f, 5));
    assert_int_equal(kill(b.process[1], SIGKILL), 0);
    while (kofn_fleet_workers(b.f) == WORKERS)
        assert_ok(kofn_fleet_poll(b.f, KOFN_SECOND));
    assert_ok(multiply(b.f, 7));
    assert_int_equal(kofn_fleet_workers(b.f), WORKERS - 1);
    close_band(&b);
}

static void closes_with_a_stopped_one(void **state)
{
    band b;

    (void)state;
    open_band(&b);
    assert_int_equal(kill(b.process[0], SIGSTOP), 0);
    close_band(&b);
}

static void wrong_program(void **state)
{
    kofn_fleet_options o = KOFN_FLEET_OPTIONS_INIT;
    kofn_fleet *f = NULL;

    (void)state;
    o.program = "/no/such/kofn";
    assert_int_equal(kofn_fleet_spawn(&f, &o), KOFN_IO);
    assert_null(f);
    assert_non_null(strstr(kofn_errmsg(), "/no/such/kofn"));
    assert_non_null(strstr(kofn_errmsg(), strerror(ENOENT)));
    assert_int_equal(files(), 0);
    o.workers = 0;
    assert_int_equal(kofn_fleet_spawn(&f, &o), KOFN_INVAL);
    assert_int_equal(files(), 0);
    o.workers = 2;
    o.program = "false"; /* is found, and ends at once */
    assert_ok(kofn_fleet_spawn(&f, &o));
    assert_int_equal(multiply(f, 9), KOFN_TOOFEW);
    kofn_fleet_close(f);
}

TEST_FILE(spawn_test)
{
    const struct CMUnitTest tests[] = {
        TEST_AROUND(
            leaves_nothing,
            "spawn: products are right, and no process, folder or handler "
            "is left",
            begin_test, end_test),
        TEST_AROUND(loses_one, "spawn: a killed process is a lost worker",
                    begin_test, end_test),
        TEST_AROUND(closes_with_a_stopped_one,
                    "spawn: a stopped process ends with the fleet", begin_test,
                    end_test),
        TEST_AROUND(wrong_program,
                    "spawn: a program that cannot be started, or ends at once",
                    begin_test, end_test),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
