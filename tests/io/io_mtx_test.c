/* io_mtx_test.c -- Matrix Market: every variant, every refusal, and round
 * trips; and the graphs of kofn_rmat. */
#include "io_rig.h"

#include "base/rng.h"

static void mtx_variants(void **state)
{
    static const struct {
        const char *text;
        size_t rows, cols;
        double want[9];
        /* clang-format off */
    } all[] = {
        {MM "coordinate real general\n% c\n2 3 3\n2 3 1.5\n1 1 -2\n2 1 .5\n",
         2, 3, {-2, 0, 0, .5, 0, 1.5}},
        {MM "coordinate real general\n2 2 4\n1 1 1\n2 2 8\n1 1 2\n1 1 .25\n",
         2, 2, {3.25, 0, 0, 8}},
        {MM "coordinate integer general\n2 2 2\n1 2 -5\n2 1 +7\n",
         2, 2, {0, -5, 7, 0}},
        {MM "coordinate pattern general\n2 2 3\n1 2\n2 1\n1 2",
         2, 2, {0, 2, 1, 0}},
        {MM "coordinate pattern symmetric\n2 2 2\n1 1\n2 1\n",
         2, 2, {1, 1, 1, 0}},
        {MM "coordinate real symmetric\n3 3 3\n3 1 2\n2 2 4\n3 1 1\n",
         3, 3, {0, 0, 3, 0, 4, 0, 3, 0, 0}},
        {MM "coordinate real skew-symmetric\n3 3 2\n3 1 2\n2 1 4\n",
         3, 3, {0, -4, -2, 4, 0, 0, 2, 0, 0}},
        {MM "array real general\n2 3\n1\n2\n3\n4\n5\n6",
         2, 3, {1, 3, 5, 2, 4, 6}},
        {MM "array integer symmetric\n3 3\n1\n2\n3\n4\n5\n6\n",
         3, 3, {1, 2, 3, 2, 4, 5, 3, 5, 6}},
        {MM "array real skew-symmetric\n3 3\n1\n2\n3e0\n",
         3, 3, {0, -1, -2, 1, 0, -3, 2, 3, 0}},
        {MM "array real skew-symmetric\n1 1\n", 1, 1, {0}},
        {MM "coordinate real general\n2 1 0\n", 2, 1, {0, 0}},
        {MM "coordinate pattern symmetric\n3 3 2\n1 2\n1 3\n",
         3, 3, {0, 1, 1, 1, 0, 0, 1, 0, 0}},
        {MM "coordinate real symmetric\n2 2 3\n1 1 1\n1 2 3\n2 2 4\n",
         2, 2, {1, 3, 3, 4}},
        {MM "coordinate real skew-symmetric\n2 2 1\n1 2 3\n",
         2, 2, {0, 3, -3, 0}},
        {MM "coordinate real skew-symmetric\n2 2 2\n1 1 0\n2 1 2\n",
         2, 2, {0, -2, 2, 0}},
        {MM "coordinate integer skew-symmetric\n2 2 3\n1 2 2\n2 2 -0\n1 1 0\n",
         2, 2, {0, 2, -2, 0}},
        {MM "coordinate unsigned-integer general\n2 2 1\n1 1 3\n",
         2, 2, {3, 0, 0, 0}},
        {MM "array unsigned-integer general\n2 1\n4\n+3\n", 2, 1, {4, 3}},
        {MM "coordinate double general\n2 2 2\n1 1 1.0\n2 2 2.5\n",
         2, 2, {1, 0, 0, 2.5}},
        {MM "array double symmetric\n2 2\n1\n2\n3\n", 2, 2, {1, 2, 2, 3}},
        {MM "coordinate real general\n2 2 2\n1 1 1.0D+00\n2 2 2.5d0\n",
         2, 2, {1, 0, 0, 2.5}},
        {MM "array real general\n2 1\n-.5D-1\r\n12D2\n", 2, 1, {-.05, 1200}},
        {MM "coordinate real hermitian\n2 2 2\n1 1 5\n2 1 7\n",
         2, 2, {5, 7, 7, 0}},
        {MM "coordinate integer Hermitian\n2 2 1\n1 2 7\n",
         2, 2, {0, 7, 7, 0}},
        {"\xef\xbb\xbf" MM "coordinate real general\n2 2 2\n1 1 1.0\n2 2 2.5\n",
         2, 2, {1, 0, 0, 2.5}},
        {"%%matrixMARKET  Matrix\tCOORDINATE Real GENERAL\r\n%x\r\n\r\n 2 1\t2 "
         "\r\n\r\n  1 1 7 \r\n% between\r\n2 1 8\r\n \r\n% end",
         2, 1, {7, 8}},
    };
    /* clang-format on */

    (void)state;
    for (size_t k = 0; k < COUNT(all); k++)
        reads_as("a", all[k].text, strlen(all[k].text), 2, all[k].rows,
                 all[k].cols, all[k].want);
}

static void mtx_refusals(void **state)
{
    static const char *const all[][2] = {
        {"%%MatrixMarke matrix", "line 1|%%MatrixMarket"},
        {MM "coordinate quaternion general\n",
         "line 1|'quaternion'|real, double|complex"},
        {MM "coordinate real selfadjoint\n", "'selfadjoint'|hermitian"},
        {MM "coordinate unsigned-integer general\n1 1 1\n1 1 -3\n",
         "line 3|'-3'|without a sign"},
        {MM "coordinate unsigned-integer general\n1 1 1\n1 1 3.0\n",
         "line 3|'3.0'|without a sign"},
        {MM "coordinate integer general\n1 1 1\n1 1 3D0\n",
         "line 3|'3D0' is not an integer"},
        {MM "coordinate real general\n1 1 1\n1 1 1.0D\n", "line 3|'1.0D'"},
        {MM "coordinate real general\n1 1 1\n1 1 1.0D+0E1\n", "'1.0D+0E1'"},
        {MM "coordinate real general\n1 1 1\n1D0 1 1\n", "row '1D0'"},
        {"\xef\xbb%%MatrixMarket matrix", "line 1|%%MatrixMarket"},
        {MM "elemental real general\n", "line 1|'elemental'"},
        {"%%MatrixMarket vector", "'vector'"},
        {MM "array pattern general\n", "array file cannot be a pattern"},
        {MM "coordinate pattern skew-symmetric\n", "skew"},
        {MM "coordinate real general \x1b\n", "'\\x1b' follows the banner"},
        {MM "coordinate real\n", "symmetry is ''"},
        {MM "coordinate real general\n% only\n", "line 3|ends before"},
        {MM "coordinate real general\n1 1\n", "line 2|''|entries"},
        {MM "coordinate real general\n1 x 1\n", "line 2|'x'|columns"},
        {MM "coordinate real general\n-1 1 1\n", "line 2|'-1'|rows"},
        {MM "coordinate real general\n1 1 1 1\n", "line 2|'1' follows"},
        {MM "coordinate real general\n0 1 0\n", "line 2|0 x 1|empty"},
        {MM "coordinate real symmetric\n2 3 0\n", "line 2|2 x 3"},
        {MM "coordinate real general\n4294967296 1 0\n", "2^32"},
        {MM "coordinate real general\n1 4294967296 0\n", "2^32"},
        {MM "coordinate real general\n9 9 1000000000000\n1 1 1\n",
         "line 2|1000000000000 entries|6 bytes"},
        {MM "coordinate real general\n4294967295 9 1\n1 1 1\n",
         "4294967295 rows with only 1"},
        {MM "array real general\n4000000000 4000000000\n1\n", "bytes follow"},
        {MM "array real general\n3 1\n1\n2\n", "line 2|3 entries"},
        {MM "array real general\n3 1\n1.0000\n2\n",
         "line 5|after 2 entries|line 2|3"},
        {MM "array real general\n2 1\n1\n2\n3\n", "line 5|more entries|2"},
        {MM "array real general\n2 2\n1 2\n3 4\n", "line 3|'2' follows"},
        {MM "coordinate real general\n2 2 2\n1 1 1.0000\n",
         "line 4|after 1 entries|line 2|2"},
        {MM "coordinate real general\n2 2 1\n1 1 1\n\n2 2 2\n",
         "line 5|more entries than the 1"},
        {MM "coordinate real general\n2 2 2\n1 1 1\n0 1 1\n",
         "line 4|row '0'|1 .. 2"},
        {MM "coordinate real general\n2 2 1\n3 1 1\n", "line 3|row '3'|1 .. 2"},
        {MM "coordinate real general\n2 2 1\n1 3 1\n", "column '3'|1 .. 2"},
        {MM "coordinate real general\n2 2 1\n1 1.0 1\n", "column '1.0'"},
        {MM "coordinate real general\n2 2 1\n1 -1 1\n", "column '-1'"},
        {MM "coordinate real general\n2 2 1\n18446744073709551617 1 1\n",
         "row '18446744073709551617'"},
        {MM "coordinate real general\n2 2 1\n1     \n", "line 3|column"},
        {MM "coordinate real general\n2 2 1\n1 1   \n", "line 3|value"},
        {MM "coordinate real general\n2 2 1\n1 1 1,5\n", "line 3|'1,5'"},
        {MM "coordinate real general\n2 2 1\n1 1 0x1\r\n", "line 3|'0x1'"},
        {MM "coordinate real general\n2 2 1\n1\r1 7  \n", "'1\\x0d1'"},
        {MM "coordinate real general\r\n2 2 1\r\n1 1\r\n    \r\n",
         "line 3 ends where a value"},
        {MM "coordinate real general\n2 2 1\n1 1 1 2\n", "line 3|'2' follows"},
        {MM "coordinate integer general\n2 2 1\n1 1 1.5\n",
         "'1.5' is not an integer"},
        {MM "coordinate pattern general\n2 2 1\n1 1 1\n", "'1' follows"},
        {MM "coordinate real symmetric\n2 2 3\n1 1 1\n1 2 1\n2 1 1\n",
         "line 5|(2, 1) is below|line 4|general"},
        {MM "coordinate pattern symmetric\n3 3 3\n3 1\n2 2\n2 3\n",
         "line 5|(2, 3) is above|line 3|symmetric"},
        {MM "coordinate real skew-symmetric\n2 2 2\n2 1 1\n1 2 -1\n",
         "line 4|(1, 2) is above|line 3|skew-symmetric"},
        {MM "coordinate real skew-symmetric\n2 2 1\n2 2 1e-300\n",
         "line 3|(2, 2)|diagonal|skew|not 0"},
    };
    static const char *const odd[][2] = {
        {MM "coordinate real general\n2 2 1\n1 1 NaN\n", "line 3|NaN"},
        {MM "coordinate real general\n2 2 1\n1 1 -inf\n", "line 3|-inf"},
        {MM "array real general\n1 1\n1e309\n", "line 3|1e309|too large"},
        {MM "coordinate real general\n1 2 2\n1 2 1e308\n1 2 1e308\n",
         "row 1, column 2"},
    };

    (void)state;
    for (size_t k = 0; k < COUNT(all); k++)
        refused(KOFN_FORMAT, "a.mtx", all[k][0], strlen(all[k][0]), all[k][1]);
    for (size_t k = 0; k < COUNT(odd); k++)
        refused(KOFN_NONFINITE, "a.mtx", odd[k][0], strlen(odd[k][0]),
                odd[k][1]);
}

/* Random files, also with long and shuffled rows, compared with a dense
 * matrix. Values are multiples of 1/8, so no sum is rounded. */
static void mtx_against_dense(void **state)
{
    enum { N = 60, ROOM = 200000 };
    static const char *const kind[] = {"general", "symmetric",
                                       "skew-symmetric"};
    static char text[ROOM];
    static double want[N * N];

    (void)state;
    for (uint32_t trial = 0; trial < 120 * test_scale(); trial++) {
        kf_rng r = kf_rng_stream(11, KF_FOR_DATA, trial, 0);
        size_t sym = trial % 3, n = 1 + kf_rng_below(&r, N), at_byte;
        size_t m = sym ? n : 1 + kf_rng_below(&r, N);
        size_t entries = kf_rng_below(&r, trial % 5 ? 40 : 3000);

        entries = m == 1 && sym == 2 ? 0 : entries;
        memset(want, 0, sizeof want);
        at_byte = (size_t)sprintf(text, "%s coordinate real %s\n%zu %zu %zu\n",
                                  MM, kind[sym], m, n, entries);
        for (size_t k = 0; k < entries; k++) {
            size_t i = kf_rng_below(&r, m), j = kf_rng_below(&r, n);
            double v = ((double)kf_rng_below(&r, 2001) - 1000) / 8;

            if (sym == 2 && i == j)
                i = i ? i : 1, j = 0;
            if (sym && (trial % 2 ? i > j : i < j)) {
                size_t swap = i;
                i = j;
                j = swap;
            }
            want[i * n + j] += v;
            if (sym && i != j)
                want[j * n + i] += sym == 2 ? -v : v;
            at_byte += (size_t)sprintf(
                text + at_byte, "%s%zu%s%zu %.3f%s\n", k % 7 ? "" : "% x\n\n",
                i + 1, k % 3 ? " " : "\t ", j + 1, v, k % 2 ? "" : "\t\r");
        }
        reads_as("a.mtx", text, at_byte, 2, m, n, want);
    }
}

static void sparse_round_trips(void **state)
{
    size_t ptr[] = {0, 2, 2, 5};
    uint32_t col[] = {1, 2, 0, 1, 3};
    double val[] = {1, 1, 1, 1, 1};
    kofn_sparse s = {3, 4, ptr, col, val};
    char text[200];

    (void)state;
    for (int k = 0; k < 2; k++) {
        kofn_file *f;
        const kofn_sparse *b;

        assert_ok(kofn_write(path_of("s.mtx"), KOFN_SPARSE(&s), 2));
        assert_ok(kofn_file_open(&f, path_of("s.mtx"), KOFN_FILE_READ));
        b = f->matrix.sparse;
        assert_false(kf_file_mapped(f));
        assert_int_equal(b->rows, 3);
        assert_int_equal(b->cols, 4);
        assert_memory_equal(b->ptr, ptr, sizeof ptr);
        assert_memory_equal(b->col, col, sizeof col);
        assert_memory_equal(b->val, val, sizeof val);
        kofn_file_free(f);
        read_file("s.mtx", text, sizeof text);
        assert_int_equal(strstr(text, "pattern") != NULL, k == 0);
        val[3] = -1 / 3.0;
    }
    assert_string_equal(text, MM "coordinate real general\n3 4 5\n1 2 1\n1 3 1"
                                 "\n3 1 1\n3 2 -0.3333333333333333\n3 4 1\n");
    col[1] = 4;
    assert_status(KOFN_INVAL, kofn_write(path_of("s.mtx"), KOFN_SPARSE(&s), 2));
    col[1] = 2, ptr[1] = 3;
    assert_status(KOFN_INVAL, kofn_write(path_of("s.mtx"), KOFN_SPARSE(&s), 2));
    ptr[1] = 2, ptr[0] = 1;
    assert_status(KOFN_INVAL, kofn_write(path_of("s.mtx"), KOFN_SPARSE(&s), 2));
    assert_status(KOFN_INVAL,
                  kofn_write(path_of("s.mtx"), KOFN_SPARSE(NULL), 2));
    assert_status(KOFN_INVAL, kofn_write(path_of("s.npy"), KOFN_SPARSE(&s), 2));
    assert_non_null(strstr(kofn_errmsg(), "s.npy"));
    assert_status(KOFN_INVAL, kofn_write(path_of("s.mtx"), KOFN_SPARSE(&s), 1));
}

/* ---- graphs -------------------------------------------------------------- */

static void rmat(void **state)
{
    enum { NODES = 3000, ARCS = 60000 };
    kofn_sparse *a, *b, *c;
    size_t most = 0, arcs, low = 0, same = 0;

    (void)state;
    assert_ok(kofn_rmat(&a, NODES, ARCS, 5));
    assert_ok(kofn_rmat(&b, NODES, ARCS, 5));
    assert_ok(kofn_rmat(&c, NODES, ARCS, 6));
    check_sorted(a); /* so there are no duplicates */
    arcs = a->ptr[NODES];
    assert_true(arcs < ARCS && arcs > ARCS / 2);
    assert_int_equal(a->rows, NODES);
    assert_int_equal(a->cols, NODES);
    for (size_t i = 0; i < NODES; i++) {
        size_t degree = a->ptr[i + 1] - a->ptr[i];

        most = degree > most ? degree : most;
        low += i < NODES / 2 ? degree : 0;
        for (size_t k = a->ptr[i]; k < a->ptr[i + 1]; k++)
            assert_true(a->col[k] != i && a->val[k] == 1);
        same += degree == c->ptr[i + 1] - c->ptr[i];
    }
    assert_true(most > 10 * arcs / NODES);
    /* Unshuffled, three quarters of the arcs would start in the lower half. */
    assert_true(low > arcs * 2 / 5 && low < arcs * 3 / 5);
    assert_true(same < NODES / 2);
    assert_memory_equal(a->ptr, b->ptr, (NODES + 1) * sizeof *a->ptr);
    assert_memory_equal(a->col, b->col, arcs * sizeof *a->col);
    kofn_free(a);
    kofn_free(b);
    kofn_free(c);
    assert_ok(kofn_rmat(&a, 2, 0, 1));
    assert_int_equal(a->ptr[2], 0);
    kofn_free(a);
    assert_ok(kofn_rmat(&a, 2, 1000, 1));
    assert_int_equal(a->ptr[2], 2);
    kofn_free(a);
    assert_status(KOFN_INVAL, kofn_rmat(&a, 1, 10, 1));
    assert_status(KOFN_INVAL, kofn_rmat(&a, (size_t)1 << 32, 10, 1));
    assert_status(KOFN_NOMEM, kofn_rmat(&a, 10, SIZE_MAX / 8, 1));
    assert_null(a);
}

TEST_FILE(io_mtx_test)
{
    const struct CMUnitTest tests[] = {
        TEST(mtx_variants, "mtx: every variant is read"),
        TEST(mtx_refusals, "mtx: wrong files are refused with line and reason"),
        TEST(mtx_against_dense,
             "mtx: random files equal a dense matrix (long, shuffled rows)"),
        TEST(sparse_round_trips,
             "mtx: sparse matrices survive writing and reading"),
        TEST(rmat,
             "rmat: graphs have the sizes, no duplicates, skewed degrees"),
    };

    return cmocka_run_group_tests_name("io_mtx", tests, set_up, tear_down);
}
