/* io_test.c -- opening and writing files: completely or not at all, on any
 * disk and with any memory. */
#include "io_rig.h"

#include "base/rng.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* ---- writing ------------------------------------------------------------- */

static void round_trips(void **state)
{
    enum { N = 700 };
    static double a[N * 40];
    static float b[N * 40];
    static const char *const name[] = {"r.npy", "r.csv", "r.mtx"};
    kf_rng r = kf_rng_stream(6, KF_FOR_DATA, 0, 0);

    (void)state;
    for (size_t k = 0; k < COUNT(a); k++) {
        a[k] = kf_rng_normal(&r) * pow(10, (double)kf_rng_below(&r, 60) - 30);
        b[k] = (float)a[k];
    }
    for (int k = 0; k < 18; k++) {
        size_t cols = k / 3 % 3 == 0 ? 1 : k / 3 % 3 == 1 ? 37 : 40;
        bool single = k >= 9;
        kofn_matrix m = {single ? (void *)b : (void *)a, N, cols, 40,
                         single ? KOFN_F32 : KOFN_F64};
        unsigned dims = cols == 1 && k % 3 == 0 ? 1 : 2;
        kofn_file *f;
        const kofn_matrix *back;

        assert_ok(kofn_write(path_of(name[k % 3]), KOFN_DENSE(&m), dims));
        assert_ok(kofn_file_open(&f, path_of(name[k % 3]), KOFN_FILE_READ));
        back = f->matrix.dense;
        assert_int_equal(back->rows, N);
        assert_int_equal(back->cols, cols);
        assert_int_equal(kf_file_mapped(f), k % 3 == 0);
        assert_int_equal(f->dims, cols == 1 && k % 3 < 2 ? 1 : 2);
        for (size_t i = 0; i < N; i++)
            for (size_t j = 0; j < cols; j++)
                assert_true(single ? (float)at(back, i, j) == b[i * 40 + j]
                                   : at(back, i, j) == a[i * 40 + j]);
        kofn_file_free(f);
    }
}

static void partial_answers_can_be_kept(void **state)
{
    double a[] = {1, NAN, -INFINITY};
    kofn_matrix m = {a, 3, 1, 1, KOFN_F64};
    char text[100];
    kofn_file *f;

    (void)state;
    assert_ok(kofn_write(path_of("p.csv"), KOFN_DENSE(&m), 2));
    read_file("p.csv", text, sizeof text);
    assert_string_equal(text, "1\nnan\n-inf\n");
    assert_ok(kofn_write_npy(path_of("p.npy"), &m, 1));
    assert_status(KOFN_NONFINITE,
                  kofn_file_open(&f, path_of("p.npy"), KOFN_FILE_READ));
    assert_non_null(strstr(kofn_errmsg(), "p.npy: element [1]"));
}

static void writers_refuse(void **state)
{
    double a[4] = {1, 2, 3, 4};
    kofn_matrix m = {a, 2, 2, 2, KOFN_F64}, thin = {a, 2, 2, 1, KOFN_F64};
    kofn_matrix none = {a, 0, 2, 2, KOFN_F64};
    char name[400];

    (void)state;
    assert_status(KOFN_SHAPE, kofn_write_npy(path_of("w.npy"), &m, 1));
    assert_status(KOFN_INVAL, kofn_write_npy(path_of("w.npy"), &m, 3));
    assert_status(KOFN_SHAPE, kofn_write_npy(path_of("w.npy"), &thin, 2));
    assert_status(KOFN_SHAPE, kofn_write_npy(path_of("w.npy"), &none, 2));
    assert_status(KOFN_INVAL, kofn_write_npy(path_of("w.npy"), NULL, 2));
    assert_status(KOFN_INVAL, kofn_write_npy(NULL, &m, 2));
    assert_status(KOFN_INVAL, kofn_write(path_of("w.txt"), KOFN_DENSE(&m), 2));
    assert_non_null(strstr(kofn_errmsg(), ".npy, .csv or .mtx"));
    assert_status(KOFN_IO, kofn_write_npy(path_of("no/w.npy"), &m, 2));
    assert_non_null(strstr(kofn_errmsg(), "no/w.npy: No such file"));
    assert_status(KOFN_IO, kofn_write_npy(folder, &m, 2));
    assert_non_null(strstr(kofn_errmsg(), "directory"));
    /* A pipe instead of /dev/null, which a test must not endanger. */
    assert_int_equal(mkfifo(path_of("pipe.npy"), 0600), 0);
    assert_status(KOFN_IO, kofn_write_npy(path_of("pipe.npy"), &m, 2));
    assert_non_null(strstr(kofn_errmsg(), "not an ordinary file"));
    assert_status(KOFN_IO, kofn_write_npy("", &m, 2));
    assert_int_equal(symlink("nowhere", path_of("dangling.npy")), 0);
    assert_status(KOFN_IO, kofn_write_npy(path_of("dangling.npy"), &m, 2));
    memset(name, 'x', 399);
    name[399] = 0;
    assert_status(KOFN_IO, kofn_write_npy(name, &m, 2));
    assert_non_null(strstr(kofn_errmsg(), "xxx: File name too long"));
    assert_int_equal(listed("w."), 0);
    assert_int_equal(listed(".kofn"), 0);
}

static void links_and_permissions_stay(void **state)
{
    double a = 1;
    kofn_matrix m = {&a, 1, 1, 1, KOFN_F64};
    struct stat st;

    (void)state;
    write_file("real.npy", "old", 3);
    assert_int_equal(chmod(path_of("real.npy"), 0640), 0);
    assert_int_equal(symlink("real.npy", path_of("link.npy")), 0);
    assert_ok(kofn_write_npy(path_of("link.npy"), &m, 2));
    assert_int_equal(lstat(path_of("link.npy"), &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(lstat(path_of("real.npy"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(st.st_size, 136);
    assert_ok(kofn_write_npy(path_of("new.npy"), &m, 2));
    assert_int_equal(lstat(path_of("new.npy"), &st), 0);
    umask(umask(077) | 077); /* reads the mask without changing it */
    assert_true((st.st_mode & 0600) == 0600 && !(st.st_mode & 0111));
}

/* A disk that is full after a number of bytes: every failing write leaves the
 * old file and nothing else. */
static void full_disk(void **state)
{
    enum { N = 20000 };
    static double a[N];
    static const char *const name[] = {"full.npy", "full.csv", "full.mtx"};
    kofn_matrix m = {a, N / 4, 4, 4, KOFN_F64};
    struct rlimit before, small;
    char text[64];

    (void)state;
    for (size_t k = 0; k < N; k++)
        a[k] = (double)k / 3;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    for (int k = 0; k < 12; k++) {
        kofn_status st;

        write_file(name[k % 3], "the old file", 12);
        small = before;
        small.rlim_cur = ((rlim_t[]){0, 100, 70000, 159000})[k / 3];
        setrlimit(RLIMIT_FSIZE, &small);
        st = kofn_write(path_of(name[k % 3]), KOFN_DENSE(&m), 2);
        setrlimit(RLIMIT_FSIZE, &before);
        assert_int_equal(st, KOFN_IO);
        assert_non_null(strstr(kofn_errmsg(), name[k % 3]));
        assert_non_null(strstr(kofn_errmsg(), "File too large"));
        assert_int_equal(read_file(name[k % 3], text, sizeof text), 12);
        assert_string_equal(text, "the old file");
        assert_int_equal(listed(".kofn"), 0);
    }
    signal(SIGXFSZ, SIG_DFL);
}

/* ---- opening ------------------------------------------------------------- */

static void open_fails(const char *name, kofn_status want, const char *word)
{
    kofn_file *f = (kofn_file *)(uintptr_t)8;

    assert_status(want, kofn_file_open(&f, path_of(name), KOFN_FILE_READ));
    assert_null(f);
    if (!strstr(kofn_errmsg(), word) || !strstr(kofn_errmsg(), name))
        fail_msg("no '%s' in: %s", word, kofn_errmsg());
}

static void opening(void **state)
{
    const char *array = MM "array real general\n1 1\n5\n";
    kofn_file *f;
    char name[600];

    (void)state;
    open_fails("absent.npy", KOFN_IO, "No such file");
    open_fails("", KOFN_IO, "directory");
    assert_int_equal(mkfifo(path_of("fifo.csv"), 0600), 0);
    open_fails("fifo.csv", KOFN_IO, "pipe");
    write_file("none.csv", "", 0);
    open_fails("none.csv", KOFN_FORMAT, "empty");
    write_file("what.xyz", "1,2\n", 4);
    open_fails("what.xyz", KOFN_FORMAT, ".npy, .mtx, .csv, IDX");
    write_file("packed.csv", "\x1f\x8b\x08", 3);
    open_fails("packed.csv", KOFN_FORMAT, "cut off");
    write_file("zip.npy", "PK\x03\x04", 4);
    open_fails("zip.npy", KOFN_FORMAT, ".npz");
    write_file("wide.csv",
               "\xff\xfe"
               "1\0",
               4);
    open_fails("wide.csv", KOFN_FORMAT, "UTF-8");
    if (geteuid() != 0) {
        write_file("secret.csv", "1\n", 2);
        chmod(path_of("secret.csv"), 0);
        open_fails("secret.csv", KOFN_IO, "Permission denied");
    }
    memset(name, 'y', sizeof name);
    memcpy(name + 595, "\n.npy", 5);
    name[599] = 0;
    assert_status(KOFN_IO, kofn_file_open(&f, name, KOFN_FILE_READ));
    assert_non_null(strstr(kofn_errmsg(), "cannot open ...yyy"));
    assert_non_null(strstr(kofn_errmsg(), "yy?.np: File name too long"));
    assert_status(KOFN_INVAL, kofn_file_open(NULL, "a.npy", KOFN_FILE_READ));
    assert_status(KOFN_INVAL, kofn_file_open(&f, NULL, KOFN_FILE_READ));
    assert_status(KOFN_FORMAT, kf_file_parse(&f, NULL, 5, "a.csv"));
    /* The first bytes count for more than the suffix. */
    write_file("market.csv", array, strlen(array));
    assert_ok(kofn_file_open(&f, path_of("market.csv"), KOFN_FILE_READ));
    assert_true(at(f->matrix.dense, 0, 0) == 5);
    kofn_file_free(f);
    kofn_file_free(NULL);
}

/* ---- memory -------------------------------------------------------------- */

static kofn_status read_one(const char *name)
{
    kofn_file *f;
    kofn_status st = kofn_file_open(&f, path_of(name), KOFN_FILE_READ);

    if (st < 0)
        assert_null(f);
    else
        kofn_file_free(f);
    return st;
}

static kofn_status write_one(const char *name)
{
    double a[] = {1, 2, 3, 4};
    kofn_matrix m = {a, 2, 2, 2, KOFN_F64};

    return kofn_write(path_of(name), KOFN_DENSE(&m), 2);
}

static kofn_status draw_one(const char *name)
{
    kofn_sparse *s;
    kofn_status st = kofn_rmat(&s, 100, 1000, 1);

    (void)name;
    if (st == KOFN_OK)
        kofn_free(s);
    return st;
}

/* Lets each allocation fail in turn. */
static void without_memory(kofn_status (*work)(const char *), const char *name)
{
    long before, n;

    count_allocations();
    fail_allocation(0);
    before = allocated();
    assert_ok(work(name));
    n = allocations();
    assert_true(n > 0);
    for (long k = 1; k <= n; k++) {
        fail_allocation(k);
        assert_status(KOFN_NOMEM, work(name));
        assert_int_equal(allocated(), before);
    }
    fail_allocation(0);
    kofn_set_alloc(NULL, NULL);
}

static void no_memory(void **state)
{
    const char *array = MM "array real general\n1 1\n5\n";
    const char *turned = MM "coordinate real symmetric\n2 2 1\n2 1 5\n";
    unsigned char file[512], data[48] = {0};
    size_t n = npy(file, 1, DICT(">f8", "True", "(3, 2)"), 0, data, 48);

    (void)state;
    write_file("m.npy", file, n);
    write_file("m.csv", "1,2\n3,4\n", 8);
    write_file("m.mtx", turned, strlen(turned));
    write_file("array.mtx", array, strlen(array));
    without_memory(read_one, "m.npy");
    without_memory(read_one, "m.csv");
    without_memory(read_one, "m.mtx");
    without_memory(read_one, "array.mtx");
    without_memory(write_one, "mw.npy");
    without_memory(write_one, "mw.csv");
    without_memory(write_one, "mw.mtx");
    without_memory(draw_one, NULL);
    assert_int_equal(listed(".kofn"), 0);
}

/* Reading holds the result and next to nothing else. */
static void memory_is_bounded(void **state)
{
    enum { N = 20000 };
    kf_rng r = kf_rng_stream(9, KF_FOR_DATA, 0, 0);
    static char text[N * 16];
    size_t n;
    kofn_file *f;

    (void)state;
    kofn_set_alloc(weigh, NULL);
    n = (size_t)sprintf(text, "%s coordinate pattern general\n3 900 %d\n", MM,
                        N);
    for (int k = 0; k < N; k++)
        n += (size_t)sprintf(text + n, "%d %d\n", 1 + k % 3,
                             1 + (int)kf_rng_below(&r, 900));
    peak = now = 0;
    assert_ok(kf_file_parse(&f, text, n, "a"));
    assert_true(peak < 12 * N + 1024);
    kofn_file_free(f);
    n = 0;
    for (int k = 0; k < N; k++)
        n += (size_t)sprintf(text + n, "%d%c", k, k % 10 == 9 ? '\n' : ' ');
    peak = now = 0;
    assert_ok(kf_file_parse(&f, text, n, "a.txt"));
    assert_true(peak < 8 * N + 1024);
    kofn_file_free(f);
    assert_int_equal(now, 0);
    kofn_set_alloc(NULL, NULL);
    assert_null(kf_io_sparse_new(SIZE_MAX, 1, 1));
    assert_null(kf_io_sparse_new(SIZE_MAX / 8, 1, 1));
    assert_null(kf_io_sparse_new(1, 1, SIZE_MAX / 8 - 2));
    assert_null(kf_io_sparse_new(1, 1, SIZE_MAX / 12 + 1));
}

TEST_FILE(io_test)
{
    const struct CMUnitTest tests[] = {
        TEST(round_trips,
             "io: matrices survive writing and reading (npy, csv, mtx)"),
        TEST(partial_answers_can_be_kept,
             "io: a partial answer with NaN can be written"),
        TEST(writers_refuse,
             "io: writers refuse impossible names, shapes and places"),
        TEST(links_and_permissions_stay,
             "io: writing keeps links and permissions"),
        TEST(full_disk, "io: a full disk leaves the old file and nothing else"),
        TEST(opening, "io: opening refuses wrong files with the reason"),
        TEST(no_memory,
             "io: each failing allocation is reported, reading and writing"),
        TEST(memory_is_bounded,
             "io: reading allocates little beyond the result"),
    };

    return cmocka_run_group_tests_name("io", tests, set_up, tear_down);
}
